//! Readers of mesh files that are independent of gpuproc.

use std::collections::HashMap;

use gpuproc::data::surface::Surface;
use ply_rs_bw::{parser::Parser, ply::DefaultElement};

/// Reads a PLY independently of gpuproc.
pub fn read_ply(bytes: &[u8]) -> Surface {
    let ply = Parser::<DefaultElement>::new().read_ply(&mut &bytes[..]).unwrap();
    let float = |element: &DefaultElement, name: &str| element[name].to_f32_lossy().unwrap();
    let vertices = &ply.payload["vertex"];
    let has_normals = vertices.first().is_some_and(|vertex| vertex.contains_key("nx"));
    let triple = |names: [&str; 3]| -> Vec<[f32; 3]> {
        vertices.iter().map(|vertex| names.map(|name| float(vertex, name))).collect()
    };
    Surface {
        positions: triple(["x", "y", "z"]),
        normals: if has_normals { triple(["nx", "ny", "nz"]) } else { Vec::new() },
        triangles: ply.payload["face"]
            .iter()
            .map(|face| face["vertex_indices"].to_u32_list().unwrap().try_into().unwrap())
            .collect(),
        ..Surface::default()
    }
}

/// Reads a binary STL. Equal corners become one vertex.
pub fn read_stl(bytes: &[u8]) -> Surface {
    let float = |at: usize| f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let mut numbers: HashMap<[u32; 3], u32> = HashMap::new();
    let mut positions = Vec::new();
    let triangles = (84..bytes.len()).step_by(50).map(|at| {
        [1, 2, 3].map(|corner| {
            let position = [0, 4, 8].map(|axis| float(at + 12 * corner + axis));
            *numbers.entry(position.map(f32::to_bits)).or_insert_with(|| {
                positions.push(position);
                positions.len() as u32 - 1
            })
        })
    });
    let triangles = triangles.collect();
    Surface { positions, triangles, ..Surface::default() }
}
