//! Reads meshes back: PLY, STL, OBJ, OFF and GLB, as far as gpuproc writes them.

use std::{collections::HashMap, str::SplitAsciiWhitespace};

use serde_json::Value;

use super::glb::UNSIGNED_INT;
use crate::{
    data::surface::Surface,
    io::Source,
    util::error::{Error, Result},
};

/// Extensions of the meshes that can be read, and the names of their formats.
const FORMATS: [(&str, &str, Parser); 5] = [
    ("ply", "PLY", ply),
    ("stl", "STL", stl),
    ("obj", "OBJ", obj),
    ("off", "OFF", off),
    ("glb", "GLB", glb),
];

type Parser = fn(&[u8]) -> Parsed;
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

/// Reads the mesh in `source`, a file of at most `limit` bytes, and returns it with the name of its format. `None` if
/// the extension is not that of a mesh.
///
/// # Errors
/// [`Kind::BadInput`](crate::util::error::Kind::BadInput) for a file that is broken, and errors of reading.
pub fn read_mesh(source: &Source, limit: u64) -> Result<Option<(&'static str, Mesh)>> {
    let extension = source.extension();
    let Some((_, name, parse)) = FORMATS.into_iter().find(|(known, ..)| *known == extension) else {
        return Ok(None);
    };
    let wrong = |what: String| Error::bad_input(format_args!("{source}: invalid {name}: {what}"));
    let mesh = parse(&source.read_all(limit)?).map_err(wrong)?;
    if let Some(Surface { positions, triangles, .. }) = &mesh.surface {
        let count = positions.len();
        if let Some(vertex) = triangles.iter().flatten().find(|vertex| **vertex as usize >= count) {
            return Err(wrong(format!("a triangle names vertex {vertex} of {count}")));
        }
    }
    Ok(Some((name, mesh)))
}

fn truncated() -> String {
    "the file ends early".to_owned()
}

/// Adds the triangles of a polygon.
fn add_polygon(surface: &mut Surface, corners: &[u32]) {
    let fan = corners.windows(2).skip(1).map(|pair| [corners[0], pair[0], pair[1]]);
    surface.triangles.extend(fan);
}

/// The numbers of a PLY, as text or binary.
enum Numbers<'a> {
    Text(SplitAsciiWhitespace<'a>),
    Binary(&'a [u8]),
}

impl Numbers<'_> {
    /// The next number, of the PLY type `kind`.
    fn next(&mut self, kind: &str) -> Result<f64, String> {
        let bytes = match self {
            Self::Text(words) => {
                return words.next().and_then(|word| word.parse().ok()).ok_or_else(truncated);
            }
            Self::Binary(bytes) => bytes,
        };
        macro_rules! next {
            ($type:ty) => {{
                let (first, rest) = bytes.split_first_chunk().ok_or_else(truncated)?;
                *bytes = rest;
                Ok(<$type>::from_le_bytes(*first) as f64)
            }};
        }
        match kind {
            "char" | "int8" => next!(i8),
            "uchar" | "uint8" => next!(u8),
            "short" | "int16" => next!(i16),
            "ushort" | "uint16" => next!(u16),
            "int" | "int32" => next!(i32),
            "uint" | "uint32" => next!(u32),
            "float" | "float32" => next!(f32),
            "double" | "float64" => next!(f64),
            other => Err(format!("unknown type `{other}`")),
        }
    }
}

fn ply(bytes: &[u8]) -> Parsed {
    const END: &[u8] = b"end_header\n";
    let end = bytes.windows(END.len()).position(|window| window == END).ok_or_else(truncated)?;
    let head = text(&bytes[..end])?;
    let body = &bytes[end + END.len()..];
    let lines: Vec<Vec<&str>> = head.lines().map(|line| line.split(' ').collect()).collect();
    let mut numbers =
        match lines.iter().find(|line| line[0] == "format").map(|line| line[1..].first()) {
            Some(Some(&"ascii")) => Numbers::Text(text(body)?.split_ascii_whitespace()),
            Some(Some(&"binary_little_endian")) => Numbers::Binary(body),
            _ => return Err("expected ascii or binary_little_endian".to_owned()),
        };
    let mut surface = Surface::default();
    let is_element = |line: &Vec<&str>| line[0] == "element";
    for element in lines.chunk_by(|_, next| !is_element(next)) {
        let ["element", name, count] = element[0][..] else { continue };
        let count: u64 = count.parse().map_err(|_| format!("`{count}` {name} elements"))?;
        let properties: Vec<&[&str]> =
            element.iter().filter(|line| line[0] == "property").map(|line| &line[1..]).collect();
        for _ in 0..if properties.is_empty() { 0 } else { count } {
            let mut position = [0.0; 3];
            for property in &properties {
                match property {
                    ["list", length, kind, _] => {
                        let length = numbers.next(length)? as usize;
                        let corners = (0..length).map(|_| Ok(numbers.next(kind)? as u32));
                        let corners = corners.collect::<Result<Vec<u32>, String>>()?;
                        add_polygon(&mut surface, &corners);
                    }
                    [kind, axis] => {
                        let value = numbers.next(kind)? as f32;
                        let axis = ["x", "y", "z"].iter().position(|name| name == axis);
                        axis.into_iter().for_each(|axis| position[axis] = value);
                    }
                    _ => return Err("invalid property line: expected a type and a name".to_owned()),
                }
            }
            if name == "vertex" {
                surface.positions.push(position);
            }
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
            return Err("expected `solid`, or 50 bytes for each triangle".to_owned());
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

fn text(bytes: &[u8]) -> Result<&str, String> {
    str::from_utf8(bytes).map_err(|_| "expected text".to_owned())
}

/// The first three numbers of a line.
fn position(line: &str) -> Result<[f32; 3], String> {
    let mut words = line.split_ascii_whitespace();
    let mut next = || words.next()?.parse().ok();
    let position = (|| Some([next()?, next()?, next()?]))();
    position.ok_or_else(|| format!("`{line}` is not a position"))
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
                let corners = corners.ok_or_else(|| format!("`{line}` is not a face"))?;
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
        return Err(format!("`{counts}` are not two counts"));
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
            _ => return Err(format!("`{line}` is not a face")),
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
        let positions = array(vertices, 12)?.as_chunks::<12>().0.iter();
        surface.positions.extend(positions.map(|bytes| {
            let [x, y, z] = *bytes.as_chunks::<4>().0 else { unreachable!("12 bytes") };
            [x, y, z].map(f32::from_le_bytes)
        }));
        let corners = array(corners, 4)?.as_chunks().0.iter();
        let corners: Vec<u32> =
            corners.map(|corner| u32::from_le_bytes(*corner).saturating_add(first)).collect();
        surface.triangles.extend(corners.as_chunks::<3>().0);
    }
    match is_packed {
        true => Ok(mesh),
        false => Ok(surface.into()),
    }
}
