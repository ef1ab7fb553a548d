//! Surfaces by shards: each shard writes the part of its layers of cells, and `merge` joins the parts to the PLY that
//! one process writes.
//!
//! A shard numbers its vertices from 0. The vertices on the border to the next shard belong to the next shard, where
//! they come first. A triangle that uses such a vertex refers to it by a number from the shard's number of vertices on.
//! Merging therefore adds a constant to all numbers of a shard: the number of vertices of all shards before it.

use serde::{Deserialize, Serialize};

use super::{
    estimate,
    input::{VolumeInput, check_cells},
    job::{Iso, MeshJob},
    memory::plan,
    report::Summary,
    surfaces::layers,
};
use crate::{
    data::{placement::Space, shard::Shard, surface::Surface},
    engine::{reduce::write_part, session::Session},
    io::{
        Sink,
        identity::Identity,
        mesh::{
            Details, MeshFormat,
            ply::{self, Attributes},
        },
        part_file::{PartReader, PartWriter},
    },
    util::error::{Error, Result},
};

/// Kind of records of positions and, if the surface has normals, as many normals.
const VERTICES: u8 = 1;
/// Kind of records of triangles.
const TRIANGLES: u8 = 2;
/// Maximum number of vertices or triangles in a record. Merging holds one record at a time in memory.
const RECORD: usize = 1 << 16;

/// The totals of a part file: how the surface is written, and its summary.
#[derive(Serialize, Deserialize)]
struct Totals {
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
        return Err(Error::usage("--shard divides whole volumes: leave out --roi and --mask"));
    }
    let identity =
        Identity::for_part("mesh", &(job.parameters(), session.strict), job.inputs(), shard)?;
    let (volume, sink) = (job.volume.clone(), job.output.clone());
    write_part(&identity, ([volume], &sink), job.sharding.resume, session, |part| {
        let file = job.describe(session)?;
        let placed = job.coordinates.apply(&mut job.kernel, &job.volume, &file)?;
        let job = &job;
        file.check(session.limits(1))?;
        check_cells(job, &file)?;
        session.device.set_estimate(|| estimate::for_job(job, &file));
        let input = VolumeInput::Stream(Box::new(file.clone()), plan(job, &file, session)?);
        let iso = match iso {
            Iso::Value(iso) => iso,
            Iso::Auto(rule) => input.threshold(job, rule, session)?,
        };
        let kernel = job.kernel(iso);
        let own = shard.range(kernel.layers(file.dims[2]));
        let (mut summary, mut has_normals) = (Summary::default(), false);
        layers(&input, &placed, &kernel, own, session, |surface| {
            summary.add(&surface);
            has_normals |= !surface.normals.is_empty();
            session.timings.time("write", || add(part, &surface))
        })?;
        summary.report(iso, &sink, session);
        let space = placed.space.map(|space| space.name().to_owned());
        Ok(Totals { has_normals, ascii: job.ascii, space, summary })
    })
}

/// Writes a surface to a part file.
fn add(part: &mut PartWriter, surface: &Surface) -> Result<()> {
    let Surface { positions, normals, triangles, .. } = surface;
    let mut normals = normals.chunks(RECORD);
    for positions in positions.chunks(RECORD) {
        part.record(VERTICES, &(positions, normals.next().unwrap_or_default()))?;
    }
    triangles.chunks(RECORD).try_for_each(|triangles| part.record(TRIANGLES, &triangles))
}

/// Joins `parts`, which are in the order of the shards, to a PLY at `output`, block by block.
pub fn merge(parts: &[PartReader], output: &Sink, session: &Session) -> Result<()> {
    let extension = output.extension();
    if !extension.is_empty() && extension.parse() != Ok(MeshFormat::Ply) {
        return Err(Error::usage(format_args!("{output}: surfaces are merged to a .ply file")));
    }
    let ends = parts.iter().map(PartReader::totals).collect::<Result<Vec<Totals>>>()?;
    let sum = |count: fn(&Totals) -> u64| ends.iter().map(count).fold(0, u64::saturating_add);
    let (vertices, triangles) = (sum(|end| end.summary.vertices), sum(|end| end.summary.triangles));
    if vertices > 1 << 32 {
        return Err(Error::bad_input(
            "the surface has more vertices than the maximum of 4,294,967,296 (32-bit vertex numbers)",
        ));
    }
    let Totals { ascii, space, .. } = &ends[0];
    let space =
        space.as_ref().and_then(|name| Space::ALL.into_iter().find(|space| space.name() == name));
    let has_normals = ends.iter().any(|end| end.has_normals);
    let failed = |error| Error::io("write", output.to_string(), error);
    let mut file = output.create(session.no_clobber)?;
    let details = Details { ascii: *ascii, space, metres: 1.0 };
    let attributes = Attributes { normals: has_normals, colors: false };
    let counts = [vertices, triangles];
    ply::write_header(&mut file, details, counts, attributes, "").map_err(failed)?;
    let mut bar = session.progress.bar("merge", 2 * parts.len() as u64);
    for (part, end) in parts.iter().zip(&ends) {
        each_vertices(part, end, |block| {
            ply::write_vertices(&mut file, block, *ascii).map_err(failed)
        })?;
        bar.advance(1);
    }
    let mut before = 0;
    for (part, end) in parts.iter().zip(&ends) {
        each_triangles(part, end, [before, vertices], |triangles| {
            ply::write_faces(&mut file, triangles, *ascii).map_err(failed)
        })?;
        before += end.summary.vertices;
        bar.advance(1);
    }
    file.commit()?;
    let summary = ends.into_iter().map(|end| end.summary).fold(Summary::default(), Summary::and);
    // A part stores its isovalue only in the text of the job's parameters.
    summary.report(f64::NAN, output, session);
    Ok(())
}

/// Passes the vertices of each record of a part to `write`.
fn each_vertices(
    part: &PartReader,
    end: &Totals,
    mut write: impl FnMut(&Surface) -> Result<()>,
) -> Result<()> {
    let mut found = 0;
    for record in part.records(VERTICES) {
        let (positions, normals): (Vec<[f32; 3]>, Vec<[f32; 3]>) = record?;
        if normals.len() != if end.has_normals { positions.len() } else { 0 } {
            return Err(part.damaged());
        }
        found += positions.len() as u64;
        write(&Surface { positions, normals, ..Surface::default() })?;
    }
    if found == end.summary.vertices { Ok(()) } else { Err(part.damaged()) }
}

/// Passes the triangles of each record of a part to `write`. Adds `before` to the numbers of their vertices, which must
/// then be below `vertices`.
fn each_triangles(
    part: &PartReader,
    end: &Totals,
    [before, vertices]: [u64; 2],
    mut write: impl FnMut(&[[u32; 3]]) -> Result<()>,
) -> Result<()> {
    let mut found = 0;
    for record in part.records(TRIANGLES) {
        let mut triangles: Vec<[u32; 3]> = record?;
        for corner in triangles.as_flattened_mut() {
            let number = u64::from(*corner) + before;
            if number >= vertices {
                return Err(part.damaged());
            }
            *corner = number as u32;
        }
        found += triangles.len() as u64;
        write(&triangles)?;
    }
    if found == end.summary.triangles { Ok(()) } else { Err(part.damaged()) }
}
