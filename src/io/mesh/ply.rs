//! PLY (Stanford polygons), binary or text, in parts of any number.

use std::{
    fmt,
    fs::File,
    io::{self, Read, Seek, Write},
    path::PathBuf,
};

use rayon::prelude::*;

use super::chunks::{CHUNK, write_each};
use crate::data::surface::Surface;

/// The header of a PLY file.
fn header(ascii: bool, vertices: u64, faces: u64, normals: bool) -> String {
    let format = if ascii { "ascii" } else { "binary_little_endian" };
    let names = ["x", "y", "z", "nx", "ny", "nz"];
    let names = names[..if normals { 6 } else { 3 }].iter();
    let properties: String = names.map(|name| format!("property float {name}\n")).collect();
    format!(
        "ply\nformat {format} 1.0\nelement vertex {vertices}\n{properties}element face {faces}\n\
         property list uchar uint vertex_indices\nend_header\n"
    )
}

/// A PLY that grows part by part. In the format all vertices come before the first face, and their counts
/// before both: parts are kept in memory, and in temporary files once they take more than a limit.
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
        let header = header(self.ascii, self.vertices, self.faces, self.has_normals);
        out.write_all(header.as_bytes())?;
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

/// The vertices of a PLY: the position and, where there is one, the normal.
fn write_vertices(out: &mut impl Write, surface: &Surface, ascii: bool) -> io::Result<()> {
    let Surface { positions, normals, .. } = surface;
    if normals.is_empty() {
        return write_rows(out, positions, ascii);
    }
    let rows =
        positions.iter().zip(normals).map(|(&[x, y, z], &[nx, ny, nz])| [x, y, z, nx, ny, nz]);
    write_rows(out, &rows.collect::<Vec<_>>(), ascii)
}

/// Rows of numbers, as text or as little-endian f32.
fn write_rows<const N: usize>(
    out: &mut impl Write,
    rows: &[[f32; N]],
    ascii: bool,
) -> io::Result<()> {
    match ascii {
        true => write_each(out, rows, |row, bytes| write_line(bytes, row)),
        false if cfg!(target_endian = "little") => {
            out.write_all(bytemuck::cast_slice(rows.as_flattened()))
        }
        false => write_each(out, rows, |row, bytes| {
            row.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
        }),
    }
}

/// Numbers with spaces between them, and the end of the line.
fn write_line(bytes: &mut Vec<u8>, numbers: &[impl fmt::Display]) {
    for (i, number) in numbers.iter().enumerate() {
        let before = if i == 0 { "" } else { " " };
        write!(bytes, "{before}{number}").expect("memory takes every byte");
    }
    bytes.push(b'\n');
}

/// Bytes of a triangle in a binary PLY: the count 3, then three little-endian u32.
const FACE: usize = 13;

fn write_faces(out: &mut impl Write, surface: &Surface, ascii: bool) -> io::Result<()> {
    let triangles = &surface.triangles;
    if ascii {
        return write_each(out, triangles, |&[a, b, c], bytes| write_line(bytes, &[3, a, b, c]));
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
