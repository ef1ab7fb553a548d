//! Surfaces by shards: each shard writes the part of its layers of cells, and `merge` joins the parts to the PLY that
//! one process writes.
//!
//! A shard numbers its vertices from 0. The vertices on the border to the next shard belong to the next shard, where
//! they come first. A triangle that uses one of them names it by a number from the shard's own count of vertices on.
//! Merging therefore adds one constant to all numbers of a shard: the count of vertices of all shards before it.

use serde::{Deserialize, Serialize};

use super::{
    estimate,
    input::VolumeInput,
    job::{Iso, MeshJob},
    memory::Plan,
    report::Summary,
    surfaces::layers,
};
use crate::{
    data::{placement::Space, shard::Shard, surface::Surface},
    engine::session::Session,
    io::{
        Sink,
        identity::Identity,
        mesh::{
            Details, MeshFormat,
            ply::{self, Attributes},
        },
        partial::{self, PartReader, PartWriter},
        volume::VolumeFile,
    },
    util::error::{Error, Result},
};

/// Block kind: positions, three f32 each, followed by as many normals if the surface has normals.
const VERTICES: u8 = 1;
/// Block kind: triangles, three u32 each.
const TRIANGLES: u8 = 2;
/// Most vertices or triangles in a block. Merging holds one block at a time in memory.
const BLOCK: usize = 1 << 16;

/// The end of a part file: counts, and how the surface is written.
#[derive(Serialize, Deserialize)]
struct End {
    vertices: u64,
    triangles: u64,
    has_normals: bool,
    ascii: bool,
    /// Name of the anatomical space of the coordinates.
    space: Option<String>,
    summary: Summary,
}

/// Meshes the layers of cells that belong to `shard` and writes them to the output of `job`.
pub(super) fn write(mut job: MeshJob, shard: Shard, session: &Session) -> Result<()> {
    let [iso] = job.isovalues[..] else {
        return Err(Error::usage("with --shard, give one --iso"));
    };
    if let Some(what) = job.needs_whole_surface() {
        return Err(Error::usage(format_args!(
            "--shard writes a part of a PLY and cannot be combined with {what}"
        )));
    }
    if !job.region.is_all() {
        return Err(Error::usage(
            "--shard meshes layers of whole volumes: not with --roi or --mask",
        ));
    }
    let identity =
        Identity::of_part("mesh", &(job.parameters(), session.strict), job.inputs(), shard)?;
    if job.share.resumes && partial::is_done(&job.output, &identity, session.max_memory) {
        session.events.skipped(&job.volume, Some(&job.output));
        return Ok(());
    }
    let file = VolumeFile::describe(&job.volume, &job.layout)?;
    let placed = job.placing.apply(&mut job.kernel, &job.volume, &file)?;
    let (job, sink) = (&job, &job.output);
    file.check(session.limits(1))?;
    session.device.expect(|| estimate::of_job(job, &file));
    let mut part = PartWriter::create(sink, session.no_clobber, &identity)?;
    let input = VolumeInput::Stream(Box::new(file.clone()), Plan::new(job, &file, session)?);
    let iso = match iso {
        Iso::Value(iso) => iso,
        Iso::Found(rule) => input.threshold(job, rule, session)?,
    };
    let kernel = job.kernel(iso);
    let own = shard.range(kernel.layers(file.dims[2]));
    let (mut summary, mut has_normals) = (Summary::default(), false);
    layers((&input, &placed), &kernel, own, session, |surface| {
        summary.add(&surface);
        has_normals |= !surface.normals.is_empty();
        session.timings.time("write", || add(&mut part, &surface))
    })?;
    summary.report(iso, sink, session);
    let (vertices, triangles) = summary.counts();
    let space = placed.space.map(|space| space.name().to_owned());
    part.finish(&End { vertices, triangles, has_normals, ascii: job.ascii, space, summary })
}

/// Writes a surface to a part file in blocks.
fn add(part: &mut PartWriter, surface: &Surface) -> Result<()> {
    let Surface { positions, normals, triangles, .. } = surface;
    for (i, positions) in positions.chunks(BLOCK).enumerate() {
        let mut floats = positions.as_flattened().to_vec();
        if !normals.is_empty() {
            floats.extend_from_slice(normals[i * BLOCK..][..positions.len()].as_flattened());
        }
        let bytes: Vec<u8> = floats.into_iter().flat_map(f32::to_le_bytes).collect();
        part.block(VERTICES, &bytes)?;
    }
    for triangles in triangles.chunks(BLOCK) {
        let numbers = triangles.as_flattened().iter();
        let bytes: Vec<u8> = numbers.flat_map(|number| number.to_le_bytes()).collect();
        part.block(TRIANGLES, &bytes)?;
    }
    Ok(())
}

/// Joins `parts`, which are in the order of the shards, to a PLY at `output`, block by block.
///
/// # Errors
/// When a part is broken or the output cannot be written, and when the output has the extension of another format.
pub fn merge(parts: &mut [PartReader], output: &Sink, session: &Session) -> Result<()> {
    let extension = output.extension();
    if !extension.is_empty() && extension.parse() != Ok(MeshFormat::Ply) {
        return Err(Error::usage(format_args!("{output}: surfaces are joined to a .ply")));
    }
    let ends = parts.iter().map(PartReader::end).collect::<Result<Vec<End>>>()?;
    let sum = |count: fn(&End) -> u64| ends.iter().map(count).fold(0, u64::saturating_add);
    let (vertices, triangles) = (sum(|end| end.vertices), sum(|end| end.triangles));
    if vertices > 1 << 32 {
        return Err(Error::bad_input(
            "the surface has more than 4,294,967,296 vertices, which faces of 32-bit numbers cannot name",
        ));
    }
    let End { ascii, space, .. } = &ends[0];
    let space =
        space.as_ref().and_then(|name| Space::ALL.into_iter().find(|space| space.name() == name));
    let has_normals = ends.iter().any(|end| end.has_normals);
    let failed = |error| Error::io("write", output.to_string(), error);
    let mut file = output.create(session.no_clobber)?;
    let details = Details { ascii: *ascii, space, metres: 1.0 };
    let attributes = Attributes { normals: has_normals, colors: false };
    let counts = [vertices, triangles];
    ply::write_header(&mut file, details, counts, attributes, &[]).map_err(failed)?;
    let mut bar = session.progress.bar("merge", 2 * parts.len() as u64);
    for (part, end) in parts.iter_mut().zip(&ends) {
        each_vertices(part, end, |block| {
            ply::write_vertices(&mut file, block, *ascii).map_err(failed)
        })?;
        bar.advance(1);
    }
    let mut before = 0;
    for (part, end) in parts.iter_mut().zip(&ends) {
        each_triangles(part, end, [before, vertices], |block| {
            ply::write_faces(&mut file, &block.triangles, *ascii).map_err(failed)
        })?;
        before += end.vertices;
        bar.advance(1);
    }
    file.commit()?;
    let summary = ends.into_iter().map(|end| end.summary).fold(Summary::default(), Summary::and);
    // A part holds its isovalue only within the text of the job's parameters.
    summary.report(f64::NAN, output, session);
    Ok(())
}

/// Hands each block of vertices of a part to `write`.
fn each_vertices(
    part: &mut PartReader,
    end: &End,
    mut write: impl FnMut(&Surface) -> Result<()>,
) -> Result<()> {
    let mut found = 0;
    part.rewind()?;
    while let Some(bytes) = part.next_of(VERTICES)? {
        let block = vertices_of(&bytes, end.has_normals).ok_or_else(|| part.broken())?;
        found += block.positions.len() as u64;
        write(&block)?;
    }
    if found == end.vertices { Ok(()) } else { Err(part.broken()) }
}

/// Hands each block of triangles of a part to `write`. `before` is added to the numbers of their vertices, all of which
/// must be below `vertices`.
fn each_triangles(
    part: &mut PartReader,
    end: &End,
    [before, vertices]: [u64; 2],
    mut write: impl FnMut(&Surface) -> Result<()>,
) -> Result<()> {
    let mut found = 0;
    part.rewind()?;
    while let Some(bytes) = part.next_of(TRIANGLES)? {
        let block = triangles_of(&bytes, before, vertices).ok_or_else(|| part.broken())?;
        found += block.triangles.len() as u64;
        write(&block)?;
    }
    if found == end.triangles { Ok(()) } else { Err(part.broken()) }
}

/// Decodes a block of vertices; `None` where its length is wrong.
fn vertices_of(bytes: &[u8], has_normals: bool) -> Option<Surface> {
    let (numbers, []) = bytes.as_chunks::<4>() else { return None };
    let floats: Vec<f32> = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let (vectors, []) = floats.as_chunks::<3>() else { return None };
    let (positions, normals) = match has_normals {
        true if vectors.len().is_multiple_of(2) => vectors.split_at(vectors.len() / 2),
        true => return None,
        false => (vectors, &[][..]),
    };
    Some(Surface { positions: positions.to_vec(), normals: normals.to_vec(), ..Surface::default() })
}

/// Decodes a block of triangles and adds `before` to the numbers of their vertices; `None` where a number reaches
/// `vertices` or the length is wrong.
fn triangles_of(bytes: &[u8], before: u64, vertices: u64) -> Option<Surface> {
    let (numbers, []) = bytes.as_chunks::<4>() else { return None };
    let moved = |bytes: &[u8; 4]| {
        let number = u64::from(u32::from_le_bytes(*bytes)) + before;
        (number < vertices).then_some(number as u32)
    };
    let numbers = numbers.iter().map(moved).collect::<Option<Vec<u32>>>()?;
    let (triangles, []) = numbers.as_chunks::<3>() else { return None };
    Some(Surface { triangles: triangles.to_vec(), ..Surface::default() })
}
