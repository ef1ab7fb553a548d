//! PLY (Stanford polygons), binary or text, written block by block.

use std::{
    fs::File,
    io::{self, Read, Seek, Write},
    iter::zip,
    path::PathBuf,
};

use super::{
    Details, Out,
    chunks::{CHUNK, to_count, write_ahead, write_each, write_text, write_triples},
};
use crate::{data::surface::Surface, io::temporary_file};
use bytemuck::Pod;

/// Properties of vertices besides their positions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attributes {
    /// Three f32 each.
    pub normals: bool,
    /// Three bytes each.
    pub colors: bool,
}

/// Writes a PLY block by block. In the file, all vertices precede the first face, and their counts precede both; so blocks
/// are kept in memory, or in temporary files once they exceed a limit. `F` is the type of faces.
#[derive(Debug)]
pub struct PlyWriter<F = [u32; 3]> {
    pub(super) details: Details,
    attributes: Attributes,
    limit: u64,
    folder: PathBuf,
    parts: Vec<(Surface, Vec<F>)>,
    /// Size of `parts` in bytes.
    held: u64,
    /// Formatted vertices, and faces in memory layout.
    files: Option<[File; 2]>,
    vertices: u64,
    faces: u64,
}

impl<F: Pod> PlyWriter<F> {
    /// An empty PLY. About `limit` bytes are kept in memory, the rest in temporary files in `folder`.
    pub fn new(details: Details, limit: u64, folder: PathBuf) -> Self {
        let (attributes, parts, held, files, vertices, faces) = Default::default();
        Self { details, attributes, limit, folder, parts, held, files, vertices, faces }
    }

    /// Adds the vertices of a surface, and faces between the vertices added so far.
    pub fn push(&mut self, part: Surface, faces: Vec<F>) -> io::Result<()> {
        self.vertices += part.positions.len() as u64;
        self.faces += faces.len() as u64;
        self.attributes.normals |= !part.normals.is_empty();
        self.attributes.colors |= !part.colors.is_empty();
        self.held += part.bytes() + size_of_val(&faces[..]) as u64;
        self.parts.push((part, faces));
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
        for (part, part_faces) in self.parts.drain(..) {
            write_vertices(vertices, &part, self.details.ascii)?;
            faces.write_all(bytemuck::cast_slice(&part_faces))?;
        }
        Ok(())
    }

    /// Writes the header, all vertices, and all faces by `write`. A face in memory becomes `per_face` faces in the file
    /// with further `properties`, as lines of the header.
    pub(super) fn finish_with(
        self,
        out: &mut Out<'_>,
        per_face: u64,
        properties: &str,
        write: impl Fn(&mut Out<'_>, &[F]) -> io::Result<()>,
    ) -> io::Result<()> {
        to_count::<u32>(
            self.vertices.saturating_sub(1),
            "PLY holds at most 4,294,967,296 vertices",
        )?;
        let counts = [self.vertices, per_face * self.faces];
        write_header(out, self.details, counts, self.attributes, properties)?;
        let [vertices, faces] = self.files.map_or([None, None], |files| files.map(Some));
        if let Some(mut file) = vertices {
            file.rewind()?;
            io::copy(&mut file, out)?;
        }
        for (part, _) in &self.parts {
            write_vertices(out, part, self.details.ascii)?;
        }
        if let Some(mut file) = faces {
            let mut left = file.stream_position()? as usize / size_of::<F>();
            file.rewind()?;
            let mut chunk = vec![F::zeroed(); CHUNK.min(left)];
            while left > 0 {
                let chunk = &mut chunk[..left.min(CHUNK)];
                file.read_exact(bytemuck::cast_slice_mut(chunk))?;
                write(out, chunk)?;
                left -= chunk.len();
            }
        }
        self.parts.iter().try_for_each(|(_, faces)| write(out, faces))
    }
}

impl PlyWriter {
    /// Writes the header, all vertices and all triangles.
    pub fn finish(self, out: &mut Out<'_>) -> io::Result<()> {
        let ascii = self.details.ascii;
        self.finish_with(out, 1, "", |out, faces| write_faces(out, faces, ascii))
    }
}

pub(super) fn write(out: &mut Out<'_>, surface: &Surface, details: Details) -> io::Result<()> {
    let Surface { positions, normals, colors, triangles, .. } = surface;
    let counts = [positions.len() as u64, triangles.len() as u64];
    let attributes = Attributes { normals: !normals.is_empty(), colors: !colors.is_empty() };
    write_header(out, details, counts, attributes, "")?;
    write_vertices(out, surface, details.ascii)?;
    write_faces(out, triangles, details.ascii)
}

/// Writes the header of a PLY with the numbers of vertices and faces. `face_properties` are the lines of the properties
/// of faces after their vertices. All vertices must follow, then all faces.
pub fn write_header(
    out: &mut Out<'_>,
    details: Details,
    [vertices, faces]: [u64; 2],
    has: Attributes,
    face_properties: &str,
) -> io::Result<()> {
    let encoding = if details.ascii { "ascii" } else { "binary_little_endian" };
    writeln!(out, "ply\nformat {encoding} 1.0")?;
    details.write_space(out, "comment ", "\n")?;
    writeln!(out, "element vertex {vertices}")?;
    let normals = if has.normals { &["nx", "ny", "nz"][..] } else { &[] };
    let colors = if has.colors { &["red", "green", "blue"][..] } else { &[] };
    for name in ["x", "y", "z"].iter().chain(normals) {
        writeln!(out, "property float {name}")?;
    }
    for name in colors {
        writeln!(out, "property uchar {name}")?;
    }
    write!(
        out,
        "element face {faces}\nproperty list uchar uint vertex_indices\n{face_properties}end_header\n"
    )
}

/// Writes vertices of a PLY: three little-endian f32, three more for the normal, and three bytes for the colour.
pub fn write_vertices(
    out: &mut (impl Write + ?Sized),
    surface: &Surface,
    ascii: bool,
) -> io::Result<()> {
    let Surface { positions, normals, colors, .. } = surface;
    if !ascii && normals.is_empty() && colors.is_empty() {
        return write_triples(out, positions);
    }
    let numbers: Vec<usize> = (0..positions.len()).collect();
    write_each(out, &numbers, |&i, bytes| {
        let floats = [Some(&positions[i]), normals.get(i)].into_iter().flatten().flatten();
        let channels = colors.get(i).into_iter().flatten();
        if ascii {
            let mut words: Vec<String> = floats.map(f32::to_string).collect();
            words.extend(channels.map(u8::to_string));
            bytes.extend_from_slice((words.join(" ") + "\n").as_bytes());
        } else {
            floats.for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
            bytes.extend(channels);
        }
    })
}

/// Bytes of a triangle in a binary PLY: the count 3, then three little-endian u32.
const FACE: usize = 13;

/// Writes triangles as faces of a PLY.
pub fn write_faces(out: &mut Out<'_>, triangles: &[[u32; 3]], ascii: bool) -> io::Result<()> {
    if ascii {
        return write_text!(out, triangles, |[a, b, c]| "3 {a} {b} {c}\n");
    }
    write_ahead(out, triangles, FACE, |triangles, bytes| {
        for (face, [a, b, c]) in zip(bytes.as_chunks_mut::<FACE>().0, triangles) {
            face[0] = 3;
            face[1..5].copy_from_slice(&a.to_le_bytes());
            face[5..9].copy_from_slice(&b.to_le_bytes());
            face[9..].copy_from_slice(&c.to_le_bytes());
        }
    })
}
