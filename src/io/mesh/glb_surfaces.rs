//! Several surfaces in one binary glTF file, each with a name and a colour; see-through ones are drawn after the others.

use std::io::{self, Write};

use serde_json::json;

use super::glb::{Arrays, write_arrays, write_document};
use crate::data::surface::Surface;

/// A surface of a file.
#[derive(Clone, Debug)]
pub struct ColoredSurface {
    /// What it is called.
    pub name: String,
    /// Red, green, blue and alpha from 0 to 1, linear; the colours of the surface's vertices are multiplied by it.
    pub color: [f32; 4],
    /// The triangles.
    pub surface: Surface,
}

/// Writes all of them.
///
/// # Errors
/// When writing fails, or they are too large for the format.
pub fn write_colored(out: &mut impl Write, surfaces: &[ColoredSurface]) -> io::Result<()> {
    let mut arrays = Arrays::default();
    let (mut nodes, mut meshes, mut materials) = (Vec::new(), Vec::new(), Vec::new());
    for ColoredSurface { name, color, surface } in surfaces {
        // An empty surface has no mesh: an empty list is not allowed anywhere.
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
