//! Reads meshes back, as far as gpuproc and common programs write them.

use std::{collections::HashMap, fmt};

use flate2::bufread::MultiGzDecoder;
use ply_rs_bw::{
    parser::{ParseError, Reader},
    ply::{Property, PropertyAccess, PropertyAccessResult},
};
use serde_json::Value;

use super::{
    decode::{add_polygon, text, triples, truncated, unpacked},
    glb::UNSIGNED_INT,
    mz3,
    read_xml::{gifti, three_mf, vtp},
};
use crate::{
    data::surface::Surface,
    io::{Limits, Source},
    util::error::{Error, Result},
};

/// Extensions of the meshes that can be read, and the names of their formats.
const FORMATS: [(&str, &str, Parser); 9] = [
    ("ply", "PLY", |bytes, _| ply(bytes)),
    ("stl", "STL", |bytes, _| stl(bytes)),
    ("obj", "OBJ", |bytes, _| obj(bytes)),
    ("off", "OFF", |bytes, _| off(bytes)),
    ("glb", "GLB", |bytes, _| glb(bytes)),
    ("vtp", "VTP", |bytes, limit| Ok(vtp(bytes, limit)?.into())),
    ("3mf", "3MF", |bytes, limit| Ok(three_mf(bytes, limit)?.into())),
    ("gii", "GIfTI", |bytes, limit| Ok(gifti(bytes, limit)?.into())),
    ("mz3", "MZ3", mz3),
];

/// Parses a file, of which each part may be unpacked to the given number of bytes.
type Parser = fn(&[u8], u64) -> Parsed;
type Parsed = Result<Mesh, String>;

/// A mesh in a file.
#[derive(Debug, Default)]
pub struct Mesh {
    /// Number of vertices.
    pub vertices: u64,
    /// Number of triangles.
    pub triangles: u64,
    /// The triangles; `None` where they are compressed.
    pub surface: Option<Surface>,
}

impl From<Surface> for Mesh {
    fn from(surface: Surface) -> Self {
        let (vertices, triangles) = (surface.positions.len(), surface.triangles.len());
        Self { vertices: vertices as u64, triangles: triangles as u64, surface: Some(surface) }
    }
}

/// Reads the mesh in `source`, within the memory of `limits`, and returns it with the name of its format. `None` if
/// the extension is not that of a mesh.
pub fn read_mesh(source: &Source, limits: Limits) -> Result<Option<(&'static str, Mesh)>> {
    let extension = source.extension();
    if !FORMATS.iter().any(|(known, ..)| *known == extension) {
        return Ok(None);
    }
    parse_mesh(source, &extension, &source.read_all(limits)?, limits.bytes())
}

/// Reads the mesh in `bytes`, the content of the file `source`, as [`read_mesh`] does.
pub fn parse_mesh(
    source: &dyn fmt::Display,
    extension: &str,
    bytes: &[u8],
    limit: u64,
) -> Result<Option<(&'static str, Mesh)>> {
    let Some((_, name, parse)) = FORMATS.into_iter().find(|(known, ..)| *known == extension) else {
        return Ok(None);
    };
    let wrong = |what: String| Error::bad_input(format_args!("{source}: invalid {name}: {what}"));
    let mesh = parse(bytes, limit).map_err(wrong)?;
    if let Some(Surface { positions, triangles, .. }) = &mesh.surface {
        let count = positions.len();
        if let Some(vertex) = triangles.iter().flatten().find(|vertex| **vertex as usize >= count) {
            return Err(wrong(format!(
                "a triangle refers to vertex {vertex}, but there are only {count}"
            )));
        }
    }
    Ok(Some((name, mesh)))
}

/// A vertex or a face of a PLY.
#[derive(Default)]
struct PlyElement {
    position: [f32; 3],
    /// Vertices of a face.
    corners: Vec<u32>,
}

impl PropertyAccess for PlyElement {
    fn new() -> Self {
        Self::default()
    }

    fn set_property(&mut self, name: &str, property: Property) -> PropertyAccessResult {
        let axis = ["x", "y", "z"].iter().position(|axis| *axis == name);
        match (axis, property) {
            (Some(axis), Property::Float(value)) => self.position[axis] = value,
            (Some(axis), Property::Double(value)) => self.position[axis] = value as f32,
            (_, Property::ListUInt(corners)) => self.corners = corners,
            (_, Property::ListInt(corners)) => {
                self.corners = corners.into_iter().map(|corner| corner as u32).collect();
            }
            _ => return PropertyAccessResult::Ignored,
        }
        PropertyAccessResult::Set
    }
}

fn ply(bytes: &[u8]) -> Parsed {
    // The details of the crate's messages are on further lines.
    let first_line =
        |error: ParseError| error.to_string().lines().next().unwrap_or_default().to_owned();
    let (parser, mut reader) = (ply_rs_bw::parser::Parser::<PlyElement>::new(), Reader::new(bytes));
    let header = parser.read_header(&mut reader).map_err(first_line)?;
    let mut surface = Surface::default();
    for (name, element) in &header.elements {
        // Elements without properties take no bytes, so the file would not limit their number.
        if element.properties.is_empty() {
            return Err(format!("element {name} has no properties"));
        }
        let elements = parser.read_payload_for_element(&mut reader, element, &header);
        let elements = elements.map_err(first_line)?;
        elements.iter().for_each(|element| add_polygon(&mut surface, &element.corners));
        if name == "vertex" {
            surface.positions.extend(elements.iter().map(|element| element.position));
        }
    }
    Ok(surface.into())
}

/// Corners at the same place become one vertex: STL has no shared ones.
fn stl(bytes: &[u8]) -> Parsed {
    /// Bytes before the triangles, and bytes of each.
    const SIZES: [usize; 2] = [84, 50];
    let [head, each] = SIZES;
    let count = bytes.get(80..head).and_then(|count| count.try_into().ok()).map(u32::from_le_bytes);
    let is_binary = count
        .is_some_and(|count| bytes.len() as u64 == head as u64 + each as u64 * u64::from(count));
    let corners: Vec<[f32; 3]> = if is_binary {
        let number = |bytes: &[u8; 4]| f32::from_le_bytes(*bytes);
        let triangles = bytes[head..].chunks_exact(each).map(|triangle| &triangle[12..48]);
        let numbers = triangles.flat_map(|corners| corners.as_chunks().0).map(number);
        numbers.collect::<Vec<f32>>().as_chunks().0.to_vec()
    } else {
        let text = text(bytes)?;
        if !text.starts_with("solid") {
            return Err(
                "expected `solid` (text), or 50 bytes for each triangle (binary)".to_owned()
            );
        }
        let corners = text.lines().filter_map(|line| line.trim_start().strip_prefix("vertex "));
        corners.map(position).collect::<Result<_, _>>()?
    };
    let (mut positions, mut numbers) = (Vec::new(), HashMap::new());
    let vertices = corners.into_iter().map(|corner| {
        // -0 is the same place as 0.
        let key = corner.map(|value| (value + 0.0).to_bits());
        *numbers.entry(key).or_insert_with(|| {
            positions.push(corner);
            positions.len() as u32 - 1
        })
    });
    let vertices: Vec<u32> = vertices.collect();
    let triangles = vertices.as_chunks().0.to_vec();
    Ok(Surface { positions, triangles, ..Surface::default() }.into())
}

/// The first three numbers of a line.
fn position(line: &str) -> Result<[f32; 3], String> {
    let mut words = line.split_ascii_whitespace();
    let mut next = || words.next()?.parse().ok();
    let position = (|| Some([next()?, next()?, next()?]))();
    position.ok_or_else(|| format!("expected three coordinates, found `{line}`"))
}

fn obj(bytes: &[u8]) -> Parsed {
    let mut surface = Surface::default();
    for line in text(bytes)?.lines() {
        match line.split_once(' ') {
            Some(("v", numbers)) => surface.positions.push(position(numbers)?),
            Some(("f", corners)) => {
                // Vertices count from 1. Numbers of texture coordinates and normals follow after slashes.
                let vertex = |corner: &str| {
                    let number: u32 = corner.split('/').next()?.parse().ok()?;
                    number.checked_sub(1)
                };
                let corners: Option<Vec<u32>> =
                    corners.split_ascii_whitespace().map(vertex).collect();
                let corners = corners
                    .ok_or_else(|| format!("expected the vertices of a face, found `{line}`"))?;
                add_polygon(&mut surface, &corners);
            }
            _ => {}
        }
    }
    Ok(surface.into())
}

fn off(bytes: &[u8]) -> Parsed {
    let lines = text(bytes)?.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let mut lines = lines.filter(|line| !line.is_empty());
    if !lines.next().is_some_and(|first| first.ends_with("OFF")) {
        return Err("expected OFF in the first line".to_owned());
    }
    let counts = lines.next().ok_or_else(truncated)?;
    let mut numbers =
        counts.split_ascii_whitespace().map_while(|number| number.parse::<u64>().ok());
    let (Some(vertices), Some(faces)) = (numbers.next(), numbers.next()) else {
        return Err(format!("expected the numbers of vertices and faces, found `{counts}`"));
    };
    let mut surface = Surface::default();
    for _ in 0..vertices {
        surface.positions.push(position(lines.next().ok_or_else(truncated)?)?);
    }
    for _ in 0..faces {
        let line = lines.next().ok_or_else(truncated)?;
        let numbers: Result<Vec<u32>, _> = line.split_ascii_whitespace().map(str::parse).collect();
        match numbers.as_deref() {
            Ok([count, corners @ ..]) if corners.len() >= *count as usize => {
                add_polygon(&mut surface, &corners[..*count as usize]);
            }
            _ => return Err(format!("expected the vertices of a face, found `{line}`")),
        }
    }
    Ok(surface.into())
}

/// All meshes of a GLB together, in the coordinates of their arrays: those of the volume, before the nodes turn them.
fn glb(bytes: &[u8]) -> Parsed {
    let chunk = |at: usize, kind: &[u8; 4]| {
        let length = u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize;
        (bytes.get(at + 4..at + 8)? == kind).then_some(())?;
        bytes.get(at + 8..(at + 8).checked_add(length)?)
    };
    let json = chunk(12, b"JSON").filter(|_| bytes.starts_with(b"glTF")).ok_or_else(truncated)?;
    let root: Value = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    let arrays = chunk(20 + json.len(), b"BIN\0").unwrap_or_default();
    let is_packed = root["extensionsUsed"].to_string().contains("meshopt");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let (mut mesh, mut surface) = (Mesh::default(), Surface::default());
    for primitive in list(&root["meshes"]).iter().flat_map(|entry| list(&entry["primitives"])) {
        let accessor = |index: &Value| &root["accessors"][number(index) as usize];
        let [vertices, corners] =
            [&primitive["attributes"]["POSITION"], &primitive["indices"]].map(accessor);
        mesh.vertices += number(&vertices["count"]);
        mesh.triangles += number(&corners["count"]) / 3;
        if is_packed {
            continue;
        }
        let array = |accessor: &Value, bytes: u64| {
            let view = &root["bufferViews"][number(&accessor["bufferView"]) as usize];
            let start = number(&view["byteOffset"]).saturating_add(number(&accessor["byteOffset"]));
            let end = start.saturating_add(number(&accessor["count"]).saturating_mul(bytes));
            arrays.get(start as usize..end as usize).ok_or_else(truncated)
        };
        if number(&corners["componentType"]) != u64::from(UNSIGNED_INT) {
            return Err("expected 32-bit indices".to_owned());
        }
        let first = surface.positions.len() as u32;
        surface.positions.extend(triples(array(vertices, 12)?, f32::from_le_bytes));
        let triangles = triples(array(corners, 4)?, u32::from_le_bytes);
        let triangles = triangles.map(|corners| corners.map(|corner| corner.saturating_add(first)));
        surface.triangles.extend(triangles);
    }
    if is_packed { Ok(mesh) } else { Ok(surface.into()) }
}

fn mz3(bytes: &[u8], limit: u64) -> Parsed {
    let inflated;
    let bytes = match bytes {
        [0x1f, 0x8b, ..] => {
            inflated = unpacked(MultiGzDecoder::new(bytes), limit)?;
            &inflated[..]
        }
        _ => bytes,
    };
    let &[head, triangles, vertices, skipped] =
        bytes.as_chunks::<4>().0.first_chunk().ok_or_else(truncated)?;
    let [magic, arrays] = [[head[0], head[1]], [head[2], head[3]]].map(u16::from_le_bytes);
    if magic != mz3::MAGIC || arrays & mz3::ARRAYS != mz3::ARRAYS {
        return Err("expected the signature of MZ3, and triangles and vertices".to_owned());
    }
    let [triangles, vertices, skipped] =
        [triangles, vertices, skipped].map(|number| u64::from(u32::from_le_bytes(number)));
    let start = 16 + skipped;
    let middle = start + 12 * triangles;
    let array = |from: u64, to: u64| bytes.get(from as usize..to as usize).ok_or_else(truncated);
    let triangles = triples(array(start, middle)?, u32::from_le_bytes).collect();
    let positions = triples(array(middle, middle + 12 * vertices)?, f32::from_le_bytes).collect();
    Ok(Surface { positions, triangles, ..Surface::default() }.into())
}
