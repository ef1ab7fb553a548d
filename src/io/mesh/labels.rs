//! The surfaces of all labels in one file: PLY with the two labels of each face, or GLB and OBJ with a mesh for each
//! label.

use std::{
    fs::File,
    io::{self, Read, Seek, Write},
    path::PathBuf,
};

use serde_json::json;

use super::{
    chunks::{CHUNK, too_large, write_each},
    glb::{self, Arrays},
    ply::{copy, write_vertices},
    space_comment,
};
use crate::{
    data::{label_mesh::Quad, placement::Space, surface::Surface},
    io::temporary_file,
};

/// Maps the number of a label, as in `Quad`, to the label in the input file.
pub type LabelOf<'a> = &'a (dyn Fn(u32) -> u64 + Sync);

/// The type of labels in a PLY: the smallest one that holds them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelType {
    /// 8 bits.
    Uchar,
    /// 16 bits.
    Ushort,
    /// 32 bits.
    Uint,
    /// A 64-bit float, exact up to 2^53: PLY has no larger integers.
    Double,
}

impl LabelType {
    /// The smallest type for labels up to `most`; `None` beyond 2^53.
    pub fn for_labels_up_to(most: u64) -> Option<Self> {
        match most {
            0..=0xff => Some(Self::Uchar),
            0x100..=0xffff => Some(Self::Ushort),
            0x1_0000..=0xffff_ffff => Some(Self::Uint),
            _ => (most <= 1 << 53).then_some(Self::Double),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Uchar => "uchar",
            Self::Ushort => "ushort",
            Self::Uint => "uint",
            Self::Double => "double",
        }
    }

    fn write(self, label: u64, bytes: &mut Vec<u8>) {
        match self {
            Self::Uchar => bytes.push(label as u8),
            Self::Ushort => bytes.extend_from_slice(&(label as u16).to_le_bytes()),
            Self::Uint => bytes.extend_from_slice(&(label as u32).to_le_bytes()),
            Self::Double => bytes.extend_from_slice(&(label as f64).to_le_bytes()),
        }
    }
}

/// A PLY of all faces between labels, each once, with the properties `label` and `neighbor`. A face points out of the
/// region of `label`. Parts are kept in memory, and in temporary files once they take more than a limit.
#[derive(Debug)]
pub struct LabelPly {
    ascii: bool,
    space: Option<Space>,
    /// Whether the order of corners is reversed, because the placement mirrors.
    is_mirrored: bool,
    limit: u64,
    folder: PathBuf,
    parts: Vec<(Surface, Vec<Quad>)>,
    /// Bytes in `parts`.
    held: u64,
    files: Option<[File; 2]>,
    vertices: u64,
    faces: u64,
}

impl LabelPly {
    /// An empty file in coordinates of `space`, mirrored or not. Keeps about `limit` bytes at most in memory, and the
    /// rest in temporary files in `folder`.
    pub fn new(
        ascii: bool,
        (space, is_mirrored): (Option<Space>, bool),
        limit: u64,
        folder: PathBuf,
    ) -> Self {
        let (parts, held, files, vertices, faces) = Default::default();
        Self { ascii, space, is_mirrored, limit, folder, parts, held, files, vertices, faces }
    }

    /// Adds vertices, and quads between the vertices added so far. Each quad becomes two triangles.
    ///
    /// # Errors
    /// When a temporary file cannot be written.
    pub fn push(&mut self, positions: Vec<[f32; 3]>, quads: Vec<Quad>) -> io::Result<()> {
        self.vertices += positions.len() as u64;
        self.faces += 2 * quads.len() as u64;
        let part = Surface { positions, ..Surface::default() };
        self.held += part.bytes() + size_of_val(&quads[..]) as u64;
        self.parts.push((part, quads));
        if self.held <= self.limit {
            return Ok(());
        }
        let [vertices, faces] = match &mut self.files {
            Some(files) => files,
            None => {
                let file = || temporary_file(&self.folder);
                self.files.insert([file()?, file()?])
            }
        };
        self.held = 0;
        for (part, quads) in self.parts.drain(..) {
            write_vertices(vertices, &part, self.ascii)?;
            faces.write_all(bytemuck::cast_slice(&quads))?;
        }
        Ok(())
    }

    /// Writes the header, all vertices and all faces.
    ///
    /// # Errors
    /// When writing fails, or reading a temporary file; also when there are too many vertices for the format.
    pub fn finish(
        self,
        out: &mut impl Write,
        label_of: LabelOf<'_>,
        label_type: LabelType,
    ) -> io::Result<()> {
        if self.vertices > 1 << 32 {
            return Err(too_large("PLY holds at most 4,294,967,296 vertices"));
        }
        let encoding = if self.ascii { "ascii" } else { "binary_little_endian" };
        let mut header = format!("ply\nformat {encoding} 1.0\n");
        if let Some(space) = self.space {
            header += &format!("comment {}\n", space_comment(space));
        }
        header += &format!("element vertex {}\n", self.vertices);
        header += "property float x\nproperty float y\nproperty float z\n";
        header += &format!("element face {}\n", self.faces);
        header += "property list uchar uint vertex_indices\n";
        for name in ["label", "neighbor"] {
            header += &format!("property {} {name}\n", label_type.name());
        }
        header += "end_header\n";
        out.write_all(header.as_bytes())?;
        let [vertices, faces] = self.files.map_or([None, None], |files| files.map(Some));
        copy(vertices, out)?;
        for (part, _) in &self.parts {
            write_vertices(out, part, self.ascii)?;
        }
        let format = |quad: &Quad, bytes: &mut Vec<u8>| {
            let [label, neighbour] = quad.labels.map(label_of);
            // The order of the labels' numbers may differ from that of the labels. The smaller label comes first, but
            // for 0.
            let turned = neighbour != 0 && neighbour < label;
            let labels = if turned { [neighbour, label] } else { [label, neighbour] };
            for [a, b, c] in quad.triangles() {
                let triangle = if turned != self.is_mirrored { [a, c, b] } else { [a, b, c] };
                write_face(triangle, labels, label_type, self.ascii, bytes);
            }
        };
        if let Some(mut file) = faces {
            file.rewind()?;
            let mut chunk = vec![Quad::default(); CHUNK];
            let mut left = file.metadata()?.len() as usize / size_of::<Quad>();
            while left > 0 {
                let chunk = &mut chunk[..left.min(CHUNK)];
                file.read_exact(bytemuck::cast_slice_mut(chunk))?;
                write_each(out, chunk, format)?;
                left -= chunk.len();
            }
        }
        self.parts.iter().try_for_each(|(_, quads)| write_each(out, quads, format))
    }
}

fn write_face(
    triangle: [u32; 3],
    labels: [u64; 2],
    label_type: LabelType,
    ascii: bool,
    bytes: &mut Vec<u8>,
) {
    if ascii {
        let ([a, b, c], [label, neighbour]) = (triangle, labels);
        let written = writeln!(bytes, "3 {a} {b} {c} {label} {neighbour}");
        return written.expect("memory takes every byte");
    }
    bytes.push(3);
    triangle.iter().for_each(|corner| bytes.extend_from_slice(&corner.to_le_bytes()));
    labels.iter().for_each(|&label| label_type.write(label, bytes));
}

/// A label and its surface.
pub type LabelPart = (u64, Surface);

/// Writes a GLB with a node, a mesh and a material for each label, whose colour is [`colour`] of the label.
///
/// # Errors
/// When writing fails, or the file is too large for the format.
pub fn write_glb(out: &mut impl Write, parts: &[LabelPart]) -> io::Result<()> {
    let mut arrays = Arrays::default();
    let (mut nodes, mut meshes, mut materials) = (Vec::new(), Vec::new(), Vec::new());
    for (number, (label, surface)) in parts.iter().enumerate() {
        let name = format!("label {label}");
        let mut primitive = arrays.add_surface(surface);
        primitive["material"] = number.into();
        let [red, green, blue] = colour(*label);
        nodes.push(json!({ "mesh": number, "name": name }));
        meshes.push(json!({ "name": name, "primitives": [primitive] }));
        materials.push(json!({
            "name": name,
            "pbrMetallicRoughness": {
                "baseColorFactor": [red, green, blue, 1.0], "metallicFactor": 0.0,
            },
        }));
    }
    let mut root = json!({
        "asset": { "version": "2.0", "generator": "gpuproc" }, "scene": 0, "nodes": [{}],
        "scenes": [{ "nodes": (0..nodes.len().max(1)).collect::<Vec<_>>() }],
    });
    if !nodes.is_empty() {
        root["nodes"] = nodes.into();
        root["meshes"] = meshes.into();
        root["materials"] = materials.into();
    }
    glb::write_document(out, root, &arrays)?;
    parts.iter().try_for_each(|(_, surface)| glb::write_arrays(out, surface))
}

/// Writes an OBJ with an object for each label.
///
/// # Errors
/// When writing fails.
pub fn write_obj(
    out: &mut impl Write,
    parts: &[LabelPart],
    space: Option<Space>,
) -> io::Result<()> {
    if let Some(space) = space {
        writeln!(out, "# {}", space_comment(space))?;
    }
    let mut before = 1u64;
    for (label, Surface { positions, triangles, .. }) in parts {
        writeln!(out, "o label_{label}")?;
        write_each(out, positions, |[x, y, z], bytes| {
            writeln!(bytes, "v {x} {y} {z}").expect("memory takes every byte");
        })?;
        write_each(out, triangles, |triangle, bytes| {
            let [a, b, c] = triangle.map(|corner| u64::from(corner) + before);
            writeln!(bytes, "f {a} {b} {c}").expect("memory takes every byte");
        })?;
        before += positions.len() as u64;
    }
    Ok(())
}

/// The linear RGB colour of a label: its hue is a multiple of the golden ratio, so that hues of consecutive labels
/// differ.
pub fn colour(label: u64) -> [f32; 3] {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let hue = (label.wrapping_mul(GOLDEN) >> 40) as f32 / (1 << 24) as f32;
    [0.0, 2.0, 4.0].map(|shift| {
        let distance = ((hue * 6.0 + shift) % 6.0 - 3.0).abs() - 1.0;
        0.1 + 0.8 * distance.clamp(0.0, 1.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_take_the_least_type() {
        let of = LabelType::for_labels_up_to;
        assert_eq!([of(255), of(256)], [Some(LabelType::Uchar), Some(LabelType::Ushort)]);
        assert_eq!([of(65536), of(1 << 32)], [Some(LabelType::Uint), Some(LabelType::Double)]);
        assert_eq!([of(1 << 53), of((1 << 53) + 1)], [Some(LabelType::Double), None]);
    }

    #[test]
    fn colours_differ_and_stay() {
        assert_eq!(colour(1), colour(1));
        let far = |a: [f32; 3], b: [f32; 3]| (0..3).any(|i| (a[i] - b[i]).abs() > 0.2);
        assert!((1..8).all(|label| far(colour(label), colour(label + 1))));
    }
}
