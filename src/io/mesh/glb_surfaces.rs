//! Several surfaces in one binary glTF file, each with a name and a colour. Transparent ones are marked for alpha
//! blending.

use std::io::{self, Write};

use serde_json::json;

use super::glb::{Arrays, write_arrays, write_document};
use crate::data::surface::Surface;

/// A surface with name and colour.
#[derive(Clone, Debug)]
pub struct ColoredSurface {
    /// Name of its node, mesh and material.
    pub name: String,
    /// Red, green, blue and alpha from 0 to 1, linear; the colours of the surface's vertices are multiplied by it.
    pub color: [f32; 4],
    /// The triangles.
    pub surface: Surface,
}

/// Writes all surfaces that are not empty.
///
/// # Errors
/// When writing fails, or the surfaces are too large for the format.
pub fn write_colored(out: &mut impl Write, surfaces: &[ColoredSurface]) -> io::Result<()> {
    let mut arrays = Arrays::default();
    let (mut nodes, mut meshes, mut materials) = (Vec::new(), Vec::new(), Vec::new());
    for ColoredSurface { name, color, surface } in surfaces {
        // glTF allows no empty list, so an empty surface has no mesh.
        if surface.triangles.is_empty() {
            continue;
        }
        let mut primitive = arrays.add_surface(surface);
        let mut material = json!({
            "name": name, "doubleSided": true,
            "pbrMetallicRoughness": {
                "baseColorFactor": color, "metallicFactor": 0.0, "roughnessFactor": 0.6,
            },
        });
        if color[3] < 1.0 {
            material["alphaMode"] = "BLEND".into();
        }
        let number = meshes.len();
        primitive["material"] = number.into();
        meshes.push(json!({ "name": name, "primitives": [primitive] }));
        nodes.push(json!({ "name": name, "mesh": number }));
        materials.push(material);
    }
    if nodes.is_empty() {
        nodes.push(json!({}));
    }
    let numbers: Vec<usize> = (0..nodes.len()).collect();
    let mut root = json!({
        "asset": { "version": "2.0", "generator": "gpuproc" }, "scene": 0,
        "scenes": [{ "nodes": numbers }], "nodes": nodes,
    });
    if !meshes.is_empty() {
        root["meshes"] = meshes.into();
        root["materials"] = materials.into();
    }
    write_document(out, root, &arrays)?;
    let mut full = surfaces.iter().filter(|colored| !colored.surface.triangles.is_empty());
    full.try_for_each(|colored| write_arrays(out, &colored.surface))
}
