//! Readers of mesh files that are independent of gpuproc.

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
