//! PLY (Stanford polygons), binary or text, written in any number of parts.

use std::{
    fs::File,
    io::{self, Read, Seek, Write},
    path::PathBuf,
};

use super::{
    chunks::{write_ahead, write_each},
    space_comment,
};
use crate::{
    data::{placement::Space, surface::Surface},
    io::temporary_file,
};
use ply_rs_bw::{
    ply::{
        Addable, ElementDef, Encoding, Header, PropertyAccess, PropertyDef, PropertyType,
        ScalarType,
    },
    writer::Writer,
};

/// Properties that vertices have beside their positions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Has {
    /// Three f32 each.
    pub normals: bool,
    /// Three bytes each.
    pub colors: bool,
}

impl Has {
    fn of(surface: &Surface) -> Self {
        Self { normals: !surface.normals.is_empty(), colors: !surface.colors.is_empty() }
    }
}

const COLORS: [&str; 3] = ["red", "green", "blue"];

/// The header of a PLY file.
fn header(
    encoding: Encoding,
    space: Option<Space>,
    [vertices, faces]: [u64; 2],
    has: Has,
) -> Header {
    let mut vertex = ElementDef::new("vertex".into());
    vertex.count = vertices as usize;
    let names = ["x", "y", "z", "nx", "ny", "nz"];
    for name in &names[..if has.normals { 6 } else { 3 }] {
        let float = PropertyType::Scalar(ScalarType::Float);
        vertex.properties.add(PropertyDef::new((*name).into(), float));
    }
    for name in &COLORS[..if has.colors { 3 } else { 0 }] {
        let byte = PropertyType::Scalar(ScalarType::UChar);
        vertex.properties.add(PropertyDef::new((*name).into(), byte));
    }
    let mut face = ElementDef::new("face".into());
    face.count = faces as usize;
    let list = PropertyType::List(ScalarType::UChar, ScalarType::UInt);
    face.properties.add(PropertyDef::new("vertex_indices".into(), list));
    let mut header = Header::new();
    header.encoding = encoding;
    header.comments.extend(space.map(space_comment));
    header.elements.add(vertex);
    header.elements.add(face);
    header
}

/// Writes a PLY part by part. In the file, all vertices come before the first face, and their counts before both; so
/// parts are kept in memory, and in temporary files once they take more than a limit.
#[derive(Debug)]
pub struct PlyWriter {
    ascii: bool,
    space: Option<Space>,
    has: Has,
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
    /// An empty file in coordinates of `space`. Keeps about `limit` bytes at most in memory, and the rest in temporary
    /// files in `folder`.
    pub fn new(ascii: bool, space: Option<Space>, limit: u64, folder: PathBuf) -> Self {
        Self {
            ascii,
            space,
            has: Has::default(),
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
        let has = Has::of(&part);
        self.has.normals |= has.normals;
        self.has.colors |= has.colors;
        self.held += part.bytes();
        self.parts.push(part);
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
        for part in self.parts.drain(..) {
            write_vertices(vertices, &part, self.ascii)?;
            write_faces(faces, &part, self.ascii)?;
        }
        Ok(())
    }

    /// Writes the header, all vertices and all faces.
    ///
    /// # Errors
    /// When writing fails, or reading a temporary file.
    pub fn finish(self, out: &mut (impl Write + Send)) -> io::Result<()> {
        let counts = [self.vertices, self.faces];
        write_header(out, self.ascii, self.space, counts, self.has)?;
        let [vertices, faces] = self.files.map_or([None, None], |files| files.map(Some));
        copy(vertices, out)?;
        self.parts.iter().try_for_each(|part| write_vertices(out, part, self.ascii))?;
        copy(faces, out)?;
        self.parts.iter().try_for_each(|part| write_faces(out, part, self.ascii))
    }
}

/// Writes the header of a PLY; `counts` are those of vertices and faces. All vertices must follow, then all faces.
///
/// # Errors
/// When writing fails.
pub fn write_header(
    out: &mut impl Write,
    ascii: bool,
    space: Option<Space>,
    counts: [u64; 2],
    has: Has,
) -> io::Result<()> {
    let encoding = if ascii { Encoding::Ascii } else { Encoding::BinaryLittleEndian };
    let mut bytes = Vec::new();
    let header = header(encoding, space, counts, has);
    Writer::<PlyVertex>::new().write_header(&mut bytes, &header)?;
    out.write_all(&bytes)
}

/// Copies a temporary file from its beginning.
pub(super) fn copy(file: Option<File>, out: &mut impl Write) -> io::Result<()> {
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

/// Writes vertices of a PLY: three little-endian f32, three more for the normal, and three bytes for the colour.
///
/// # Errors
/// When writing fails.
pub fn write_vertices(out: &mut impl Write, surface: &Surface, ascii: bool) -> io::Result<()> {
    if ascii {
        return write_ascii(out, surface, "vertex", &vertices(surface));
    }
    let Has { normals, colors } = Has::of(surface);
    if !normals && !colors && cfg!(target_endian = "little") {
        return out.write_all(bytemuck::cast_slice(&surface.positions));
    }
    write_each(out, &vertices(surface), |vertex, bytes| {
        let values = vertex.position.iter().chain(vertex.normal.iter().flatten());
        values.for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
        bytes.extend_from_slice(vertex.color.as_ref().map_or(&[], |color| &color[..]));
    })
}

fn vertices(surface: &Surface) -> Vec<PlyVertex> {
    let Surface { positions, normals, colors, .. } = surface;
    let vertex = |(i, position): (usize, &[f32; 3])| PlyVertex {
        position: *position,
        normal: normals.get(i).copied(),
        color: colors.get(i).copied(),
    };
    positions.iter().enumerate().map(vertex).collect()
}

/// Bytes of a triangle in a binary PLY: the count 3, then three little-endian u32.
const FACE: usize = 13;

/// Writes faces of a PLY.
///
/// # Errors
/// When writing fails.
pub fn write_faces(
    out: &mut (impl Write + Send),
    surface: &Surface,
    ascii: bool,
) -> io::Result<()> {
    let triangles = &surface.triangles;
    if ascii {
        let faces: Vec<PlyFace> = triangles.iter().map(|&triangle| PlyFace(triangle)).collect();
        return write_ascii(out, surface, "face", &faces);
    }
    write_ahead(out, triangles, FACE, |triangles, bytes| {
        for (face, [a, b, c]) in bytes.as_chunks_mut::<FACE>().0.iter_mut().zip(triangles) {
            face[0] = 3;
            face[1..5].copy_from_slice(&a.to_le_bytes());
            face[5..9].copy_from_slice(&b.to_le_bytes());
            face[9..].copy_from_slice(&c.to_le_bytes());
        }
    })
}

/// Writes the elements `name` of a text PLY.
fn write_ascii<E: PropertyAccess + Sync>(
    out: &mut impl Write,
    surface: &Surface,
    name: &str,
    elements: &[E],
) -> io::Result<()> {
    let header = header(Encoding::Ascii, None, [0, 0], Has::of(surface));
    let definition = &header.elements[name];
    write_each(out, elements, |element, bytes| {
        let written = Writer::<E>::new().write_ascii_element(bytes, element, definition);
        written.expect("every property is there, and memory takes every byte");
    })
}

#[derive(Clone, Copy, Default)]
struct PlyVertex {
    position: [f32; 3],
    normal: Option<[f32; 3]>,
    color: Option<[u8; 3]>,
}

impl PropertyAccess for PlyVertex {
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

    fn get_uchar(&self, key: &str) -> Option<u8> {
        let channel = COLORS.iter().position(|name| *name == key)?;
        Some(self.color?[channel])
    }
}

struct PlyFace([u32; 3]);

impl PropertyAccess for PlyFace {
    fn new() -> Self {
        Self([0; 3])
    }

    fn get_list_uint(&self, _: &str) -> Option<&[u32]> {
        Some(&self.0)
    }
}
