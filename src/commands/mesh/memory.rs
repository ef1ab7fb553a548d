//! How `--max-memory` is divided among the samples, the surface and the steps that need the whole surface.

use super::{budget::LEAST, job::MeshJob};
use crate::{
    engine::session::Session,
    io::volume::VolumeFile,
    kernels::mesh::{MarchingCubes, labels::SurfaceNets},
    util::error::{Error, Result},
};

/// Most bytes of samples in a slab.
const SLAB: u64 = 64 << 20;
/// Most bytes of the surface that wait in memory to be written, and at most a quarter of the memory. More goes to
/// temporary files, and so is written twice.
const HELD: u64 = 1 << 30;
/// Most bytes of samples in a slab of labels, unless `WORTH` asks for more.
const LABEL_SLAB: u64 = 256 << 20;
/// Where memory allows, a slab of labels takes at least this many times the bytes of a slab of one layer: its halo is then
/// a small share of it.
const WORTH: u64 = 4;
/// Most bytes of faces between labels that wait in memory to be written.
const LABELS_HELD: u64 = 128 << 20;
/// A slab of n layers of cells has up to n + 3 slices: n + 1 with the corners of its cells, and one more on either
/// side.
const BEYOND: u64 = 3;
/// Slices that a slab shares with the next one.
const SHARED: usize = 3;

/// An upper estimate of the bytes that meshing a volume takes. In noise, the surface takes some 64 bytes for each
/// sample, and simplification another 600. Where one thread meshes several volumes in turn, 850 have been measured in
/// all.
pub(super) fn worst(job: &MeshJob, file: &VolumeFile) -> Option<u64> {
    const SURFACE: u64 = 64;
    const WITH_STEPS: u64 = 1024;
    let samples = file.dims.iter().fold(1u64, |all, &n| all.saturating_mul(n as u64));
    let each = if job.needs_whole_surface().is_some() { WITH_STEPS } else { SURFACE };
    Some(file.bytes()?.saturating_add(samples.saturating_mul(each)))
}

/// The height of the slabs of a volume, and the memory for its surface.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Layers of cells in a slab.
    pub(super) layers: usize,
    /// Whether the next slab is read and the previous part of the surface is consumed while a slab is meshed.
    pub(super) overlaps: bool,
    /// Bytes that one part of the surface, and the kernel's tables for labels, may take. Several parts are in memory at a
    /// time: where steps overlap, one is meshed while others wait, are converted and are consumed.
    pub(super) part: u64,
    /// Bytes that all parts of the surface in memory may take together.
    pub(super) surface: u64,
    /// Bytes of the surface that may wait in memory to be written; the rest goes to temporary files.
    pub(super) held: u64,
}

impl Plan {
    /// Plans slabs that are as high as the memory allows.
    ///
    /// # Errors
    /// When even a single layer of cells takes too much memory.
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
        // At any time, the surfaces of three slabs may be in memory, of some 64 bytes for each sample in the worst
        // case. Together, they may take half of the memory.
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
        let surface = least - samples;
        let part = surface / if overlaps { 6 } else { 3 };
        Ok(Self { layers, overlaps, part, surface, held: (memory / 4).min(HELD) })
    }

    /// The plan for a volume in memory, whose samples take `samples` bytes.
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
        let (part, held) = (surface / 3, (memory / 4).min(HELD));
        Self { layers, overlaps: false, part, surface, held }
    }

    /// Plans slabs of labels that are as high as the memory allows. A number of a label takes `size` bytes.
    ///
    /// # Errors
    /// When even a single layer of cells, with the slices that it depends on, takes too much memory.
    pub(super) fn labels(
        kernel: &SurfaceNets,
        file: &VolumeFile,
        size: usize,
        session: &Session,
    ) -> Result<Self> {
        let [width, height, depth] = file.dims;
        let slice = (width as u64).saturating_mul(height as u64);
        let all = SurfaceNets::layers(depth);
        // For each sample: its number, the copy of it for the next slab, the sample itself, and a byte of tables.
        let point = (2 * size + file.dtype.size() + 1) as u64;
        let slices = |layers: usize| {
            let middle = all / 2;
            let some = middle.saturating_sub(layers / 2)..(middle + layers).min(all);
            kernel.slices(&some, depth).len() as u64 + 1
        };
        let takes = |layers: usize| slice.saturating_mul(slices(layers)).saturating_mul(point);
        let memory = session.max_memory.saturating_sub(file.held_bytes()).max(LEAST);
        // Each slab computes its halo anew. Where the halo is large, slabs are made higher.
        let most = LABEL_SLAB.min(memory / 4).max(WORTH * takes(1)).min(memory / 2);
        let mut layers = all;
        while layers > 1 && takes(layers) > most {
            layers -= layers.div_ceil(8);
        }
        let samples = takes(layers);
        if samples > memory / 2 {
            return Err(Error::bad_input(format_args!(
                "a layer of cells and the {} slices that it depends on take {samples} bytes, and --max-memory leaves \
                 {} for them",
                slices(1),
                memory / 2
            )));
        }
        let (left, overlaps) = (memory - samples, false);
        let [part, surface] = [left / 2; 2];
        Ok(Self { layers, overlaps, part, surface, held: (left / 4).min(LABELS_HELD) })
    }
}
