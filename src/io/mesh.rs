//! Meshes: PLY in parts of any number, STL, OBJ and GLB.

use std::{
    fmt,
    fs::File,
    io::{self, Read, Seek, Write},
    path::PathBuf,
    str::FromStr,
};

use ply_rs_bw::{
    ply::{
        Addable, ElementDef, Encoding, Header, PropertyAccess, PropertyDef, PropertyType,
        ScalarType,
    },
    writer::Writer,
};
use rayon::prelude::*;

use crate::data::surface::Surface;

/// A file format for meshes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum MeshFormat {
    /// Stanford polygons: shared vertices, normals
    Ply,
    /// Stereolithography, binary: three corners a triangle
    Stl,
    /// Wavefront, text: shared vertices, normals
    Obj,
    /// Binary glTF 2.0: shared vertices, normals
    Glb,
}

impl FromStr for MeshFormat {
    type Err = String;

    /// From a file's extension.
    fn from_str(extension: &str) -> Result<Self, String> {
        match extension {
            "ply" => Ok(Self::Ply),
            "stl" => Ok(Self::Stl),
            "obj" => Ok(Self::Obj),
            "glb" => Ok(Self::Glb),
            _ => Err(format!("`{extension}` is none of ply stl obj glb")),
        }
    }
}

/// Writes a whole surface.
///
/// # Errors
/// When writing fails, or the surface is too large for the format.
pub fn write(
    out: &mut impl Write,
    surface: Surface,
    format: MeshFormat,
    ascii: bool,
) -> io::Result<()> {
    match format {
        MeshFormat::Ply => {
            let mut ply = PlyWriter::new(ascii, u64::MAX, PathBuf::new());
            ply.push(surface)?;
            ply.finish(out)
        }
        MeshFormat::Stl => write_stl(out, &surface),
        MeshFormat::Obj => write_obj(out, &surface),
        MeshFormat::Glb => write_glb(out, &surface),
    }
}

/// Items that are turned into bytes at a time, so that each write is a large one.
const CHUNK: usize = 1 << 17;

/// Writes what `format` makes of each of `items`, many at a time and in order.
fn write_each<T: Sync>(
    out: &mut impl Write,
    items: &[T],
    format: impl Fn(&T, &mut Vec<u8>) + Sync,
) -> io::Result<()> {
    for items in items.chunks(CHUNK) {
        let parts: Vec<Vec<u8>> = items
            .par_chunks(CHUNK / 16)
            .map(|items| {
                let mut bytes = Vec::new();
                items.iter().for_each(|item| format(item, &mut bytes));
                bytes
            })
            .collect();
        out.write_all(&parts.concat())?;
    }
    Ok(())
}

// ---- PLY ----

/// The header of a PLY file.
fn ply_header(encoding: Encoding, vertices: u64, faces: u64, normals: bool) -> Header {
    let mut vertex = ElementDef::new("vertex".into());
    vertex.count = vertices as usize;
    let names = ["x", "y", "z", "nx", "ny", "nz"];
    for name in &names[..if normals { 6 } else { 3 }] {
        let float = PropertyType::Scalar(ScalarType::Float);
        vertex.properties.add(PropertyDef::new((*name).into(), float));
    }
    let mut face = ElementDef::new("face".into());
    face.count = faces as usize;
    let list = PropertyType::List(ScalarType::UChar, ScalarType::UInt);
    face.properties.add(PropertyDef::new("vertex_indices".into(), list));
    let mut header = Header::new();
    header.encoding = encoding;
    header.elements.add(vertex);
    header.elements.add(face);
    header
}

/// A PLY that grows part by part. The format wants all vertices before the first face, and their
/// counts before both: parts wait in memory, and in temporary files once they take more than a limit.
#[derive(Debug)]
pub struct PlyWriter {
    ascii: bool,
    has_normals: bool,
    limit: u64,
    folder: PathBuf,
    parts: Vec<Surface>,
    /// Bytes in `parts`.
    held: u64,
    files: Option<[File; 2]>,
    vertices: u64,
    faces: u64,
}

impl PlyWriter {
    /// Keeps at most about `limit` bytes in memory and the rest in temporary files in `folder`.
    pub fn new(ascii: bool, limit: u64, folder: PathBuf) -> Self {
        Self {
            ascii,
            has_normals: false,
            limit,
            folder,
            parts: Vec::new(),
            held: 0,
            files: None,
            vertices: 0,
            faces: 0,
        }
    }

    /// Adds the next part.
    ///
    /// # Errors
    /// When a temporary file cannot be written.
    pub fn push(&mut self, part: Surface) -> io::Result<()> {
        self.vertices += part.positions.len() as u64;
        self.faces += part.triangles.len() as u64;
        self.has_normals |= !part.normals.is_empty();
        self.held += part.bytes();
        self.parts.push(part);
        if self.held <= self.limit {
            return Ok(());
        }
        let [vertices, faces] = match &mut self.files {
            Some(files) => files,
            None => {
                let file = || tempfile::tempfile_in(&self.folder);
                self.files.insert([file()?, file()?])
            }
        };
        self.held = 0;
        for part in self.parts.drain(..) {
            write_vertices(vertices, &part, self.ascii)?;
            write_faces(faces, &part, self.ascii)?;
        }
        Ok(())
    }

    /// Writes header, vertices and faces.
    ///
    /// # Errors
    /// When writing fails, or reading a temporary file.
    pub fn finish(self, out: &mut impl Write) -> io::Result<()> {
        let encoding = if self.ascii { Encoding::Ascii } else { Encoding::BinaryLittleEndian };
        let header = ply_header(encoding, self.vertices, self.faces, self.has_normals);
        let mut bytes = Vec::new();
        Writer::<Vertex>::new().write_header(&mut bytes, &header)?;
        out.write_all(&bytes)?;
        let [vertices, faces] = self.files.map_or([None, None], |files| files.map(Some));
        copy(vertices, out)?;
        self.parts.iter().try_for_each(|part| write_vertices(out, part, self.ascii))?;
        copy(faces, out)?;
        self.parts.iter().try_for_each(|part| write_faces(out, part, self.ascii))
    }
}

/// All of a temporary file.
fn copy(file: Option<File>, out: &mut impl Write) -> io::Result<()> {
    let Some(mut file) = file else { return Ok(()) };
    file.rewind()?;
    let mut bytes = vec![0; 1 << 20];
    loop {
        match file.read(&mut bytes)? {
            0 => return Ok(()),
            len => out.write_all(&bytes[..len])?,
        }
    }
}

/// The vertices of a PLY: three little-endian f32, and three more for the normal.
fn write_vertices(out: &mut impl Write, surface: &Surface, ascii: bool) -> io::Result<()> {
    let Surface { positions, normals, .. } = surface;
    if ascii {
        return write_ascii(out, surface, "vertex", &vertices(surface));
    }
    if normals.is_empty() && cfg!(target_endian = "little") {
        return out.write_all(bytemuck::cast_slice(positions));
    }
    write_each(out, &vertices(surface), |vertex, bytes| {
        let values = vertex.position.iter().chain(vertex.normal.iter().flatten());
        values.for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
    })
}

fn vertices(surface: &Surface) -> Vec<Vertex> {
    let Surface { positions, normals, .. } = surface;
    let vertex = |(i, position): (usize, &[f32; 3])| Vertex {
        position: *position,
        normal: normals.get(i).copied(),
    };
    positions.iter().enumerate().map(vertex).collect()
}

/// Bytes of a triangle in a binary PLY: the count 3, then three little-endian u32.
const FACE: usize = 13;

fn write_faces(out: &mut impl Write, surface: &Surface, ascii: bool) -> io::Result<()> {
    let triangles = &surface.triangles;
    if ascii {
        let faces: Vec<Face> = triangles.iter().map(|&triangle| Face(triangle)).collect();
        return write_ascii(out, surface, "face", &faces);
    }
    let mut bytes = vec![0; CHUNK.min(triangles.len()) * FACE];
    for chunk in triangles.chunks(CHUNK) {
        let bytes = &mut bytes[..chunk.len() * FACE];
        let parts = bytes.par_chunks_mut(FACE << 13).zip(chunk.par_chunks(1 << 13));
        parts.for_each(|(bytes, triangles)| {
            for (face, [a, b, c]) in bytes.as_chunks_mut::<FACE>().0.iter_mut().zip(triangles) {
                face[0] = 3;
                face[1..5].copy_from_slice(&a.to_le_bytes());
                face[5..9].copy_from_slice(&b.to_le_bytes());
                face[9..].copy_from_slice(&c.to_le_bytes());
            }
        });
        out.write_all(bytes)?;
    }
    Ok(())
}

/// The elements `name` of a text PLY.
fn write_ascii<E: PropertyAccess + Sync>(
    out: &mut impl Write,
    surface: &Surface,
    name: &str,
    elements: &[E],
) -> io::Result<()> {
    let header = ply_header(Encoding::Ascii, 0, 0, !surface.normals.is_empty());
    let definition = &header.elements[name];
    write_each(out, elements, |element, bytes| {
        let written = Writer::<E>::new().write_ascii_element(bytes, element, definition);
        written.expect("every property is there, and memory takes every byte");
    })
}

#[derive(Clone, Copy, Default)]
struct Vertex {
    position: [f32; 3],
    normal: Option<[f32; 3]>,
}

impl PropertyAccess for Vertex {
    fn new() -> Self {
        Self::default()
    }

    fn get_float(&self, key: &str) -> Option<f32> {
        let axis = ["x", "y", "z"].iter().position(|name| key.ends_with(name))?;
        match key.starts_with('n') {
            true => Some(self.normal?[axis]),
            false => Some(self.position[axis]),
        }
    }
}

struct Face([u32; 3]);

impl PropertyAccess for Face {
    fn new() -> Self {
        Self([0; 3])
    }

    fn get_list_uint(&self, _: &str) -> Option<&[u32]> {
        Some(&self.0)
    }
}

// ---- STL ----

/// Binary STL: 80 bytes of text, the count, then 50 bytes a triangle.
fn write_stl(out: &mut impl Write, surface: &Surface) -> io::Result<()> {
    let count = u32::try_from(surface.triangles.len())
        .map_err(|_| too_large("STL holds at most 4,294,967,295 triangles"))?;
    let mut header = [b' '; 80];
    header[..7].copy_from_slice(b"gpuproc");
    out.write_all(&header)?;
    out.write_all(&count.to_le_bytes())?;
    write_each(out, &surface.triangles, |triangle, bytes| {
        let corners = triangle.map(|i| surface.positions[i as usize]);
        let values = normal(corners).into_iter().chain(corners.into_iter().flatten());
        values.for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
        bytes.extend_from_slice(&[0; 2]);
    })
}

/// The unit normal of a triangle; zeros where it has no area.
fn normal([a, b, c]: [[f32; 3]; 3]) -> [f32; 3] {
    let u: [f64; 3] = std::array::from_fn(|i| f64::from(b[i]) - f64::from(a[i]));
    let v: [f64; 3] = std::array::from_fn(|i| f64::from(c[i]) - f64::from(a[i]));
    let n = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
    let length = n.iter().map(|v| v * v).sum::<f64>().sqrt();
    if length > 0.0 { n.map(|v| (v / length) as f32) } else { [0.0; 3] }
}

fn too_large(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, message)
}

// ---- OBJ ----

fn write_obj(out: &mut impl Write, surface: &Surface) -> io::Result<()> {
    let Surface { positions, normals, triangles, .. } = surface;
    let line = |bytes: &mut Vec<u8>, text: fmt::Arguments<'_>| {
        bytes.write_fmt(text).expect("memory takes every byte");
    };
    write_each(out, positions, |[x, y, z], bytes| line(bytes, format_args!("v {x} {y} {z}\n")))?;
    write_each(out, normals, |[x, y, z], bytes| line(bytes, format_args!("vn {x} {y} {z}\n")))?;
    write_each(out, triangles, |triangle, bytes| {
        let [a, b, c] = triangle.map(|i| u64::from(i) + 1);
        match normals.is_empty() {
            true => line(bytes, format_args!("f {a} {b} {c}\n")),
            false => line(bytes, format_args!("f {a}//{a} {b}//{b} {c}//{c}\n")),
        }
    })
}

// ---- GLB ----

/// Binary glTF 2.0: a header, a chunk of JSON, a chunk with positions, normals and indices.
fn write_glb(out: &mut impl Write, surface: &Surface) -> io::Result<()> {
    const FLOAT: u32 = 5126;
    const UNSIGNED_INT: u32 = 5125;
    const ARRAY_BUFFER: u32 = 34962;
    const ELEMENT_ARRAY_BUFFER: u32 = 34963;
    let Surface { positions, normals, triangles, .. } = surface;
    let (mut views, mut accessors, mut length) = (Vec::new(), Vec::new(), 0u64);
    let mut add = |bytes: usize, target: u32, mut accessor: serde_json::Value| {
        views.push(serde_json::json!({
            "buffer": 0, "byteOffset": length, "byteLength": bytes, "target": target,
        }));
        accessor["bufferView"] = accessors.len().into();
        accessors.push(accessor);
        length += bytes as u64;
    };
    if let Some([low, high]) = surface.bounds() {
        add(
            size_of_val(&positions[..]),
            ARRAY_BUFFER,
            serde_json::json!({
                "componentType": FLOAT, "count": positions.len(), "type": "VEC3",
                "min": low, "max": high,
            }),
        );
        let indices = serde_json::json!({
            "componentType": UNSIGNED_INT, "count": 3 * triangles.len(), "type": "SCALAR",
        });
        add(size_of_val(&triangles[..]), ELEMENT_ARRAY_BUFFER, indices);
        if !normals.is_empty() {
            let normals = serde_json::json!({
                "componentType": FLOAT, "count": normals.len(), "type": "VEC3",
            });
            add(size_of_val(&surface.normals[..]), ARRAY_BUFFER, normals);
        }
    }
    let mut root = serde_json::json!({
        "asset": { "version": "2.0", "generator": "gpuproc" }, "scene": 0,
        "scenes": [{ "nodes": [0] }], "nodes": [{}],
    });
    // An empty list is not allowed anywhere: an empty surface is a node without a mesh.
    if !triangles.is_empty() {
        let mut attributes = serde_json::json!({ "POSITION": 0 });
        if !normals.is_empty() {
            attributes["NORMAL"] = 2.into();
        }
        let primitive = serde_json::json!({ "attributes": attributes, "indices": 1 });
        root["nodes"] = serde_json::json!([{ "mesh": 0 }]);
        root["meshes"] = serde_json::json!([{ "primitives": [primitive] }]);
        root["accessors"] = accessors.into();
        root["bufferViews"] = views.into();
        root["buffers"] = serde_json::json!([{ "byteLength": length }]);
    }
    let mut text = root.to_string().into_bytes();
    text.resize(text.len().next_multiple_of(4), b' ');
    let total = 12 + 8 + text.len() as u64 + if length > 0 { 8 + length } else { 0 };
    let total = u32::try_from(total).map_err(|_| too_large("GLB holds at most 4 GiB"))?;
    let mut head = Vec::new();
    for word in [u32::from_le_bytes(*b"glTF"), 2, total, text.len() as u32] {
        head.extend_from_slice(&word.to_le_bytes());
    }
    head.extend_from_slice(b"JSON");
    head.append(&mut text);
    if length > 0 {
        head.extend_from_slice(&(length as u32).to_le_bytes());
        head.extend_from_slice(b"BIN\0");
    }
    out.write_all(&head)?;
    let triple = |values: &[f32; 3], bytes: &mut Vec<u8>| {
        values.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
    };
    write_each(out, positions, triple)?;
    write_each(out, triangles, |triangle, bytes| {
        triangle.iter().for_each(|i| bytes.extend_from_slice(&i.to_le_bytes()));
    })?;
    write_each(out, normals, triple)
}
