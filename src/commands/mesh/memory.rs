//! Memory that meshing takes, from which the engine plans its blocks.

use super::job::MeshJob;
use crate::{
    data::grid::Grid,
    engine::{
        plan::{MeshCost, MeshPlan},
        session::Session,
    },
    io::volume::VolumeFile,
    kernels::mesh::{MarchingCubes, labels::SurfaceNets},
    util::error::Result,
};

/// Bytes that the surface of a volume of noise takes for each sample, about.
const SURFACE: u64 = 64;

/// An upper estimate of the bytes that meshing a volume takes. In noise, simplification takes some 600 for each sample.
/// On a thread that meshes several volumes in turn, the maximum was 850.
pub(super) fn worst(job: &MeshJob, file: &VolumeFile) -> Option<u64> {
    const WITH_STEPS: u64 = 1024;
    let samples = file.dims.iter().fold(1u64, |all, &n| all.saturating_mul(n as u64));
    let each = if job.needs_whole_surface().is_some() { WITH_STEPS } else { SURFACE };
    Some(file.bytes()?.saturating_add(samples.saturating_mul(each)))
}

/// Plans the blocks in which an isosurface is meshed.
pub(super) fn plan(job: &MeshJob, file: &VolumeFile, session: &Session) -> Result<MeshPlan> {
    /// A block of n layers of cells has up to n + 3 slices: n + 1 with the corners of its cells, and one more on either
    /// side. It shares three of them with the next block.
    const BEYOND: usize = 3;
    let [width, height, depth] = file.dims;
    let sample = file.dtype.size() as u64;
    let slice = (width as u64).saturating_mul(height as u64).saturating_mul(sample);
    let samples = |layers: usize| slice.saturating_mul((layers + BEYOND).min(depth) as u64);
    let scratch = |layers: usize| {
        let scratch = job.kernel.cpu_scratch([width, height], layers, file.dtype.is_float());
        slice.saturating_mul(BEYOND as u64).saturating_add(scratch)
    };
    let (max_layers, reader_bytes) = (job.kernel.layers(depth), file.reader_bytes());
    let cost = MeshCost { samples: &samples, scratch: &scratch, max_layers, reader_bytes };
    MeshPlan::overlapping(&cost, SURFACE.div_ceil(sample), session).map_err(|needed| {
        let what = format_args!("{}: a layer with the slices around it", job.volume);
        session.exceeds_memory(what, needed)
    })
}

/// The plan for a volume in memory.
pub(super) fn plan_whole(kernel: &MarchingCubes, volume: &Grid, session: &Session) -> MeshPlan {
    let [width, height, depth] = volume.dims;
    let (layers, samples) = (kernel.layers(depth), volume.samples.as_bytes().len() as u64);
    let scratch = kernel.cpu_scratch([width, height], layers, volume.samples.dtype().is_float());
    MeshPlan::whole(layers, samples.saturating_add(scratch), session)
}

/// Plans the blocks in which labels are meshed. A number of a label takes `size` bytes.
pub(super) fn plan_labels(
    job: &MeshJob,
    kernel: &SurfaceNets,
    file: &VolumeFile,
    size: usize,
    session: &Session,
) -> Result<MeshPlan> {
    let [width, height, depth] = file.dims;
    let all = SurfaceNets::layers(depth);
    // For each sample: its number, the copy of it for the next block, the sample itself, and a byte of tables.
    let point = (2 * size + file.dtype.size() + 1) as u64;
    let slice = (width as u64).saturating_mul(height as u64).saturating_mul(point);
    let slices = |layers: usize| {
        let start = (all / 2).saturating_sub(layers / 2);
        kernel.slices(&(start..(start + layers).min(all)), depth).len() as u64 + 1
    };
    let samples = |layers: usize| slice.saturating_mul(slices(layers));
    let reader_bytes = file.reader_bytes();
    let cost = MeshCost { samples: &samples, scratch: &|_| 0, max_layers: all, reader_bytes };
    MeshPlan::sequential(&cost, session).map_err(|needed| {
        let (volume, slices) = (&job.volume, slices(1));
        let what = format_args!("{volume}: a layer of cells with the {slices} slices around it");
        session.exceeds_memory(what, needed)
    })
}
