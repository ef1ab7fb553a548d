//! What of the memory the samples, the surface and the steps that need it whole may take.

use super::job::MeshJob;
use crate::{
    data::surface::Surface,
    error::{Error, Hint, Result},
    io::volume::VolumeFile,
    kernels::mesh::MarchingCubes,
    session::Session,
};

/// Bytes of samples a slab, where memory allows.
const SLAB: u64 = 64 << 20;
/// Bytes of parts of a surface that wait in memory, where memory allows: with the slabs, less than 500 MB.
const HELD: u64 = 128 << 20;
/// Memory that may be taken whatever the limit.
const LEAST: u64 = 16 << 20;
/// Slices that a slab has beyond its layers, and those that it shares with the next one.
const BEYOND: u64 = 3;
pub(super) const SHARED: usize = 3;

/// Bytes that meshing a volume takes, about at most: in noise a sample makes some 64 bytes of surface, and simplification
/// takes another 600; 850 were seen where one volume follows another on a thread.
pub(super) fn worst(job: &MeshJob, file: &VolumeFile) -> Option<u64> {
    const SURFACE: u64 = 64;
    const WITH_STEPS: u64 = 1024;
    let samples = file.dims.iter().fold(1u64, |all, &n| all.saturating_mul(n as u64));
    let each = if job.needs_whole_surface() { WITH_STEPS } else { SURFACE };
    Some(file.bytes()?.saturating_add(samples.saturating_mul(each)))
}

/// How a volume goes through slab by slab.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Layers of cells a slab.
    pub(super) layers: usize,
    /// Whether the next slab is read and the last part of the surface consumed while a slab is meshed.
    pub(super) overlaps: bool,
    /// Bytes that parts of the surface may take together.
    pub(super) surface: u64,
    /// Bytes of them that may wait in memory to be written; more go to temporary files.
    pub(super) held: u64,
}

impl Plan {
    /// Slabs as high as the memory allows.
    pub(super) fn new(job: &MeshJob, file: &VolumeFile, session: &Session) -> Result<Self> {
        let sample = file.dtype.size() as u64;
        let [width, height, depth] = file.dims;
        let slice = (width as u64).saturating_mul(height as u64).saturating_mul(sample);
        let memory = session.max_memory.saturating_sub(file.held_bytes());
        let takes = |layers: usize, slabs: u64| {
            let slices = (layers as u64 + BEYOND).min(depth as u64);
            let samples = slice.saturating_mul(slabs * slices + SHARED as u64);
            samples.saturating_add(job.kernel.cpu_scratch(
                [width, height],
                layers,
                file.dtype.is_float(),
            ))
        };
        // Three parts of the surface are under way at a time, each of at most some 64 bytes a sample, and take
        // half of the memory.
        let worst = memory / (2 * 3 * 64) * sample;
        let most = (SLAB.min(worst) / slice.max(1)).max(1) as usize;
        let mut layers = most;
        while layers > 1 && takes(layers, 3) > memory / 2 {
            layers /= 2;
        }
        let least = memory.max(LEAST);
        let overlaps = takes(layers, 3) <= least / 2;
        let samples = takes(layers, if overlaps { 3 } else { 1 });
        if samples > least / 4 * 3 {
            let needed = samples.saturating_add(file.held_bytes());
            return Err(Error::bad_input(format_args!(
                "{}: a layer with the slices around it takes {} bytes, and --max-memory allows {}",
                job.volume,
                needed.saturating_add(needed / 3),
                session.max_memory
            )));
        }
        Ok(Self { layers, overlaps, surface: least - samples, held: (memory / 4).min(HELD) })
    }

    /// For a volume in memory, which takes `samples` bytes.
    pub(super) fn whole(
        kernel: &MarchingCubes,
        file: &VolumeFile,
        samples: u64,
        memory: u64,
    ) -> Self {
        let [width, height, depth] = file.dims;
        let layers = kernel.layers(depth);
        let scratch = kernel.cpu_scratch([width, height], layers, file.dtype.is_float());
        let surface = memory.max(LEAST).saturating_sub(samples.saturating_add(scratch));
        Self { layers, overlaps: false, surface, held: (memory / 4).min(HELD) }
    }

    /// Bytes of a part: one is meshed, one waits, one is consumed and one converted where that overlaps.
    pub(super) fn part(&self) -> u64 {
        self.surface / if self.overlaps { 6 } else { 3 }
    }
}

/// Refuses what takes more than the memory.
pub(super) fn allow(what: &str, surface: &Surface, more: u64, session: &Session) -> Result<()> {
    let (needed, allowed) = (surface.bytes().saturating_add(more), session.max_memory.max(LEAST));
    match needed <= allowed {
        true => Ok(()),
        false => Err(Error::bad_input(format_args!(
            "{what} of {} triangles takes {needed} bytes, more than the {allowed} allowed",
            surface.triangles.len()
        ))
        .with_hint(Hint::Memory)),
    }
}
