//! Binary glTF 2.0: a header, a chunk of JSON, a chunk of arrays (positions, triangles, normals, colours). Each surface
//! has a node; transparent ones are marked for alpha blending.

use std::io;

use serde_json::{Value, json};

use super::{
    Details, Out,
    chunks::{to_count, write_each, write_triples},
};
use crate::data::{placement::Space, srgb, surface::Surface};

// Constants of OpenGL that glTF uses for types and targets.
pub(super) const BYTE: u32 = 5120;
pub(super) const UNSIGNED_SHORT: u32 = 5123;
pub(super) const UNSIGNED_INT: u32 = 5125;
const FLOAT: u32 = 5126;
pub(super) const ARRAY_BUFFER: u32 = 34962;
pub(super) const ELEMENT_ARRAY_BUFFER: u32 = 34963;

/// A surface with a name and a colour.
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
pub fn write_colored(
    out: &mut Out<'_>,
    surfaces: &[ColoredSurface],
    details: Details,
) -> io::Result<()> {
    let mut document = Document::default();
    for ColoredSurface { name, color, surface } in surfaces {
        document.add(surface, Some(name), *color, details);
    }
    document.write(out)?;
    surfaces.iter().try_for_each(|colored| write_arrays(out, &colored.surface))
}

/// The linear colour of surfaces that have none.
pub(super) const BONE: [f32; 4] = [0.84, 0.76, 0.64, 1.0];

pub(super) fn write(out: &mut Out<'_>, surface: &Surface, details: Details) -> io::Result<()> {
    let mut document = Document::default();
    let color = if surface.colors.is_empty() { BONE } else { [1.0; 4] };
    document.add(surface, None, color, details);
    document.write(out)?;
    write_arrays(out, surface)
}

/// Writes the arrays of a surface in the order of [`Document::add`].
fn write_arrays(out: &mut Out<'_>, surface: &Surface) -> io::Result<()> {
    if surface.triangles.is_empty() {
        return Ok(());
    }
    write_triples(out, &surface.positions)?;
    write_triples(out, &surface.triangles)?;
    write_triples(out, &surface.normals)?;
    // Colours in glTF are linear; 8 bits would be too coarse for dark ones. Alpha is opaque.
    let linear: Vec<[u8; 2]> = (0..=255u8)
        .map(|v| (srgb::to_linear(f64::from(v) / 255.0) * 65535.0).round() as u16)
        .map(u16::to_le_bytes)
        .collect();
    write_each(out, &surface.colors, |color, bytes| {
        color.iter().for_each(|&v| bytes.extend_from_slice(&linear[usize::from(v)]));
        bytes.extend_from_slice(&u16::MAX.to_le_bytes());
    })
}

/// The JSON chunk.
#[derive(Default)]
pub(super) struct Document {
    /// If empty, [`Document::write_head`] adds a node without a mesh.
    nodes: Vec<Value>,
    meshes: Vec<Value>,
    materials: Vec<Value>,
    pub(super) accessors: Vec<Value>,
    pub(super) views: Vec<Value>,
    pub(super) buffers: Vec<Value>,
    pub(super) extensions: &'static [&'static str],
    /// Length of the arrays in bytes.
    pub(super) length: u64,
}

impl Document {
    /// Adds a surface with its arrays: positions, indices, and normals and colours if there are any. Does nothing for
    /// an empty surface.
    fn add(&mut self, surface: &Surface, name: Option<&String>, color: [f32; 4], details: Details) {
        let Surface { positions, normals, colors, triangles, .. } = surface;
        let Some([low, high]) = surface.bounds().filter(|_| !triangles.is_empty()) else { return };
        let vectors =
            |count: usize| json!({ "componentType": FLOAT, "count": count, "type": "VEC3" });
        let mut positions_accessor = vectors(positions.len());
        (positions_accessor["min"], positions_accessor["max"]) = (json!(low), json!(high));
        let mut attributes = json!({});
        attributes["POSITION"] =
            self.add_array(size_of_val(&positions[..]), ARRAY_BUFFER, positions_accessor);
        let numbers = json!({
            "componentType": UNSIGNED_INT, "count": 3 * triangles.len(), "type": "SCALAR",
        });
        let indices = self.add_array(size_of_val(&triangles[..]), ELEMENT_ARRAY_BUFFER, numbers);
        if !normals.is_empty() {
            let (bytes, accessor) = (size_of_val(&normals[..]), vectors(normals.len()));
            attributes["NORMAL"] = self.add_array(bytes, ARRAY_BUFFER, accessor);
        }
        if !colors.is_empty() {
            let accessor = json!({
                "componentType": UNSIGNED_SHORT, "normalized": true, "count": colors.len(),
                "type": "VEC4",
            });
            attributes["COLOR_0"] = self.add_array(8 * colors.len(), ARRAY_BUFFER, accessor);
        }
        let primitive = json!({ "attributes": attributes, "indices": indices });
        self.add_mesh(primitive, name, color, details, [0.0; 3], 1.0);
    }

    /// Adds a node with a mesh of one primitive, and its material. Positions are multiplied by `scale`, then moved by
    /// `translation`, and then turned and scaled to the axes and the unit of glTF: y is up, z is the front, in metres.
    pub(super) fn add_mesh(
        &mut self,
        mut primitive: Value,
        name: Option<&String>,
        color: [f32; 4],
        details: Details,
        [x, y, z]: [f32; 3],
        scale: f64,
    ) {
        const HALF: f64 = std::f64::consts::FRAC_1_SQRT_2;
        let (rotation, translation) = match details.space {
            // The front is +y: x to the left, as seen from there.
            Some(Space::Ras | Space::Las) => ([0.0, HALF, HALF, 0.0], [-x, z, y]),
            Some(Space::Lps) | None => ([-HALF, 0.0, 0.0, HALF], [x, z, -y]),
        };
        let scale = scale * details.metres;
        let translation = translation.map(|v| f64::from(v) * details.metres);
        let mut material = json!({
            "doubleSided": true,
            "pbrMetallicRoughness": {
                "baseColorFactor": color, "metallicFactor": 0.0, "roughnessFactor": 0.6,
            },
        });
        if color[3] < 1.0 {
            material["alphaMode"] = "BLEND".into();
        }
        primitive["material"] = self.materials.len().into();
        let mut node = json!({
            "mesh": self.meshes.len(), "rotation": rotation, "translation": translation,
            "scale": [scale, scale, scale],
        });
        let mut mesh = json!({ "primitives": [primitive] });
        if let Some(name) = name {
            for part in [&mut node, &mut mesh, &mut material] {
                part["name"] = name.as_str().into();
            }
        }
        self.nodes.push(node);
        self.meshes.push(mesh);
        self.materials.push(material);
    }

    fn add_array(&mut self, bytes: usize, target: u32, accessor: Value) -> Value {
        let view = json!({
            "buffer": 0, "byteOffset": self.length, "byteLength": bytes, "target": target,
        });
        self.length += bytes as u64;
        self.add_view(view, accessor)
    }

    /// Adds a view and its accessor; returns the accessor's number.
    pub(super) fn add_view(&mut self, view: Value, mut accessor: Value) -> Value {
        let number = Value::from(self.accessors.len());
        accessor["bufferView"] = number.clone();
        self.views.push(view);
        self.accessors.push(accessor);
        number
    }

    fn write(mut self, out: &mut Out<'_>) -> io::Result<()> {
        let length = self.length;
        self.buffers = vec![json!({ "byteLength": length })];
        self.write_head(out, length)
    }

    /// Writes everything before the arrays: the header of the file, the JSON, and the header of the binary chunk of
    /// `length` bytes.
    pub(super) fn write_head(mut self, out: &mut Out<'_>, length: u64) -> io::Result<()> {
        // glTF does not allow empty lists: an empty surface becomes a node without a mesh.
        if self.nodes.is_empty() {
            self.nodes.push(json!({}));
        }
        let numbers: Vec<usize> = (0..self.nodes.len()).collect();
        let mut root = json!({
            "asset": { "version": "2.0", "generator": "gpuproc" }, "scene": 0,
            "scenes": [{ "nodes": numbers }], "nodes": self.nodes,
        });
        if length > 0 {
            root["buffers"] = self.buffers.into();
        }
        for (name, list) in [
            ("meshes", self.meshes),
            ("materials", self.materials),
            ("accessors", self.accessors),
            ("bufferViews", self.views),
        ] {
            if !list.is_empty() {
                root[name] = list.into();
            }
        }
        if !self.extensions.is_empty() {
            root["extensionsUsed"] = json!(self.extensions);
            root["extensionsRequired"] = json!(self.extensions);
        }
        let mut text = root.to_string().into_bytes();
        // The length of a chunk is a multiple of four bytes.
        text.resize(text.len().next_multiple_of(4), b' ');
        let chunk = if length > 0 { 8 + length } else { 0 };
        let total: u32 = to_count(20 + text.len() as u64 + chunk, "GLB holds at most 4 GiB")?;
        let words = [u32::from_le_bytes(*b"glTF"), 2, total, text.len() as u32];
        let mut head = words.map(u32::to_le_bytes).concat();
        head.extend_from_slice(b"JSON");
        head.append(&mut text);
        if length > 0 {
            head.extend_from_slice(&(length as u32).to_le_bytes());
            head.extend_from_slice(b"BIN\0");
        }
        out.write_all(&head)
    }
}
