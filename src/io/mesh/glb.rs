//! Binary glTF 2.0: a header, a chunk of JSON, a chunk of arrays (positions, triangles, normals, colours).

use std::io::{self, Write};

use serde_json::{Value, json};

use super::chunks::{too_large, write_each};
use crate::data::{srgb, surface::Surface};

// Constants of OpenGL that glTF uses for types and targets.
const UNSIGNED_SHORT: u32 = 5123;
const FLOAT: u32 = 5126;
const UNSIGNED_INT: u32 = 5125;
const ARRAY_BUFFER: u32 = 34962;
const ELEMENT_ARRAY_BUFFER: u32 = 34963;

pub(super) fn write(out: &mut impl Write, surface: &Surface) -> io::Result<()> {
    let mut arrays = Arrays::default();
    let primitive = arrays.add_surface(surface);
    write_document(out, document(surface, &primitive), &arrays)?;
    write_arrays(out, surface)
}

/// Writes everything before the arrays: the header, and the JSON of `root` and `arrays`.
pub(super) fn write_document(
    out: &mut impl Write,
    mut root: Value,
    arrays: &Arrays,
) -> io::Result<()> {
    if arrays.length > 0 {
        root["accessors"] = arrays.accessors.clone().into();
        root["bufferViews"] = arrays.views.clone().into();
        root["buffers"] = json!([{ "byteLength": arrays.length }]);
    }
    let mut text = root.to_string().into_bytes();
    // The length of a chunk is a multiple of four bytes.
    text.resize(text.len().next_multiple_of(4), b' ');
    let body = if arrays.length > 0 { 8 + arrays.length } else { 0 };
    let total = 12 + 8 + text.len() as u64 + body;
    let total = u32::try_from(total).map_err(|_| too_large("GLB holds at most 4 GiB"))?;
    let mut head = Vec::new();
    for word in [u32::from_le_bytes(*b"glTF"), 2, total, text.len() as u32] {
        head.extend_from_slice(&word.to_le_bytes());
    }
    head.extend_from_slice(b"JSON");
    head.append(&mut text);
    if arrays.length > 0 {
        head.extend_from_slice(&(arrays.length as u32).to_le_bytes());
        head.extend_from_slice(b"BIN\0");
    }
    out.write_all(&head)
}

/// Writes the arrays of a surface in the order of [`Arrays::add_surface`].
pub(super) fn write_arrays(out: &mut impl Write, surface: &Surface) -> io::Result<()> {
    let triple = |values: &[f32; 3], bytes: &mut Vec<u8>| {
        values.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
    };
    write_each(out, &surface.positions, triple)?;
    write_each(out, &surface.triangles, |triangle, bytes| {
        triangle.iter().for_each(|i| bytes.extend_from_slice(&i.to_le_bytes()));
    })?;
    write_each(out, &surface.normals, triple)?;
    // Colours in glTF are linear; 8 bits would be too coarse for dark ones. Alpha is opaque.
    let light: Vec<[u8; 2]> = (0..=255u8)
        .map(|v| (srgb::to_linear(f64::from(v) / 255.0) * 65535.0).round() as u16)
        .map(u16::to_le_bytes)
        .collect();
    write_each(out, &surface.colors, |color, bytes| {
        color.iter().for_each(|&v| bytes.extend_from_slice(&light[usize::from(v)]));
        bytes.extend_from_slice(&u16::MAX.to_le_bytes());
    })
}

/// Descriptions of the arrays of the binary chunk.
#[derive(Default)]
pub(super) struct Arrays {
    views: Vec<Value>,
    accessors: Vec<Value>,
    /// Length of the binary chunk in bytes.
    length: u64,
}

impl Arrays {
    /// Adds the arrays of a surface: positions, indices, and normals and colours if there are any; none for an empty
    /// surface. Returns the `attributes` and `indices` of a primitive.
    pub(super) fn add_surface(&mut self, surface: &Surface) -> Value {
        let Surface { positions, normals, colors, triangles, .. } = surface;
        let Some([low, high]) = surface.bounds() else { return json!({}) };
        let first = self.accessors.len();
        let mut attributes = json!({ "POSITION": first });
        let vectors = json!({
            "componentType": FLOAT, "count": positions.len(), "type": "VEC3",
            "min": low, "max": high,
        });
        self.add(size_of_val(&positions[..]), ARRAY_BUFFER, vectors);
        let indices = json!({
            "componentType": UNSIGNED_INT, "count": 3 * triangles.len(), "type": "SCALAR",
        });
        self.add(size_of_val(&triangles[..]), ELEMENT_ARRAY_BUFFER, indices);
        if !normals.is_empty() {
            let vectors = json!({
                "componentType": FLOAT, "count": normals.len(), "type": "VEC3",
            });
            attributes["NORMAL"] = self.accessors.len().into();
            self.add(size_of_val(&normals[..]), ARRAY_BUFFER, vectors);
        }
        if !colors.is_empty() {
            let vectors = json!({
                "componentType": UNSIGNED_SHORT, "normalized": true, "count": colors.len(),
                "type": "VEC4",
            });
            attributes["COLOR_0"] = self.accessors.len().into();
            self.add(8 * colors.len(), ARRAY_BUFFER, vectors);
        }
        json!({ "attributes": attributes, "indices": first + 1 })
    }

    fn add(&mut self, bytes: usize, target: u32, mut accessor: Value) {
        self.views.push(json!({
            "buffer": 0, "byteOffset": self.length, "byteLength": bytes, "target": target,
        }));
        accessor["bufferView"] = self.accessors.len().into();
        self.accessors.push(accessor);
        self.length += bytes as u64;
    }
}

/// The JSON chunk, without the arrays.
fn document(surface: &Surface, primitive: &Value) -> Value {
    let mut root = json!({
        "asset": { "version": "2.0", "generator": "gpuproc" }, "scene": 0,
        "scenes": [{ "nodes": [0] }], "nodes": [{}],
    });
    // glTF allows no empty list: an empty surface becomes a node without a mesh.
    if !surface.triangles.is_empty() {
        root["nodes"] = json!([{ "mesh": 0 }]);
        root["meshes"] = json!([{ "primitives": [primitive] }]);
    }
    root
}
