//! Meshes: PLY, binary by default.

use std::io::{self, Write};

use ply_rs_bw::{
    ply::{
        Addable, ElementDef, Encoding, Header, PropertyAccess, PropertyDef, PropertyType,
        ScalarType,
    },
    writer::Writer,
};

use crate::kernels::mesh::Surface;

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

/// Writes a whole surface as PLY.
///
/// # Errors
/// When writing fails.
pub fn write_ply(out: &mut impl Write, surface: &Surface, ascii: bool) -> io::Result<()> {
    let Surface { positions, normals, triangles, .. } = surface;
    let encoding = if ascii { Encoding::Ascii } else { Encoding::BinaryLittleEndian };
    let (vertices, faces) = (positions.len() as u64, triangles.len() as u64);
    let header = ply_header(encoding, vertices, faces, !normals.is_empty());
    write_header(out, &header)?;
    if ascii {
        return write_ascii(out, &header, surface);
    }
    write_vertices(out, surface)?;
    write_faces(out, triangles)
}

fn write_header(out: &mut impl Write, header: &Header) -> io::Result<()> {
    let mut bytes = Vec::new();
    Writer::<Vertex>::new().write_header(&mut bytes, header)?;
    out.write_all(&bytes)
}

/// Elements that are turned into bytes at a time: enough that each write is a large one.
const CHUNK: usize = 1 << 17;

/// The vertices of a binary PLY: three little-endian f32, and three more for the normal.
fn write_vertices(out: &mut impl Write, surface: &Surface) -> io::Result<()> {
    let Surface { positions, normals, .. } = surface;
    if normals.is_empty() && cfg!(target_endian = "little") {
        return out.write_all(bytemuck::cast_slice(positions));
    }
    let mut bytes = Vec::new();
    for (chunk, positions) in positions.chunks(CHUNK).enumerate() {
        bytes.clear();
        for (i, position) in positions.iter().enumerate() {
            let normal = normals.get(chunk * CHUNK + i);
            for value in position.iter().chain(normal.into_iter().flatten()) {
                bytes.extend_from_slice(&value.to_le_bytes());
            }
        }
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// Bytes of a triangle in a binary PLY: the count 3, then three little-endian u32.
const FACE: usize = 13;

fn write_faces(out: &mut impl Write, triangles: &[[u32; 3]]) -> io::Result<()> {
    let mut bytes = vec![0; CHUNK.min(triangles.len()) * FACE];
    for chunk in triangles.chunks(CHUNK) {
        let bytes = &mut bytes[..chunk.len() * FACE];
        for (face, [a, b, c]) in bytes.chunks_exact_mut(FACE).zip(chunk) {
            face[0] = 3;
            face[1..5].copy_from_slice(&a.to_le_bytes());
            face[5..9].copy_from_slice(&b.to_le_bytes());
            face[9..].copy_from_slice(&c.to_le_bytes());
        }
        out.write_all(bytes)?;
    }
    Ok(())
}

fn write_ascii(out: &mut impl Write, header: &Header, surface: &Surface) -> io::Result<()> {
    let Surface { positions, normals, triangles, .. } = surface;
    let mut out = io::BufWriter::with_capacity(1 << 20, out);
    let writer = Writer::<Vertex>::new();
    for (i, position) in positions.iter().enumerate() {
        let vertex = Vertex { position: *position, normal: normals.get(i).copied() };
        writer.write_ascii_element(&mut out, &vertex, &header.elements["vertex"])?;
    }
    let writer = Writer::<Face>::new();
    for triangle in triangles {
        writer.write_ascii_element(&mut out, &Face(*triangle), &header.elements["face"])?;
    }
    out.flush()
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
