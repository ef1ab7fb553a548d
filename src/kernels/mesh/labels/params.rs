//! The parameters of surface nets, and the layers and slices that a slab depends on.

use std::{ops::Range, sync::Arc};

use super::super::params::Slab;
use crate::{
    data::{label_mesh::UNIT, samples::Samples, volume::Volume},
    util::error::{Error, Hint, Result},
};

/// Surface nets with their parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct SurfaceNets {
    /// Steps of smoothing. Without any, the faces are those of the samples' boxes.
    pub steps: u32,
    /// The most bytes that the faces of a slab may take.
    pub max_bytes: u64,
}

/// Layers that the sheets of a quad depend on, below and above.
const SHEET_HALO: usize = 2;

impl SurfaceNets {
    /// Surface nets with `steps` steps of smoothing.
    pub fn new(steps: u32) -> Self {
        Self { steps, max_bytes: u64::MAX }
    }

    /// The whole of `volume` as one slab.
    pub fn whole(volume: impl Into<Arc<Volume>>) -> Slab {
        let volume = volume.into();
        let depth = volume.dims[2];
        Slab { volume, first_slice: 0, depth, layers: 0..Self::layers(depth), first_vertex: 0 }
    }

    /// Layers of cells in a volume of `depth` slices.
    pub fn layers(depth: usize) -> usize {
        depth + 1
    }

    /// The layers of cells that `layers` depend on, in a volume of `depth` slices: one more on each side for each step
    /// of smoothing, and no fewer than sheets need.
    pub(super) fn reach(&self, layers: &Range<usize>, depth: usize) -> Range<usize> {
        let halo = (self.steps as usize).max(SHEET_HALO);
        layers.start.saturating_sub(halo)..(layers.end + halo).min(Self::layers(depth))
    }

    /// The slices of a volume of `depth` that must be at hand to mesh `layers`.
    pub fn slices(&self, layers: &Range<usize>, depth: usize) -> Range<usize> {
        let reach = self.reach(layers, depth);
        reach.start.saturating_sub(1)..reach.end.min(depth)
    }

    /// Refuses faces of a slab that take more than [`max_bytes`](Self::max_bytes), with the tables of all vertices
    /// `within_reach`.
    pub(super) fn check_bytes(
        &self,
        slab: &Slab,
        [vertices, quads]: [u64; 2],
        within_reach: u64,
    ) -> Result<()> {
        // Bytes of a vertex, of a quad, and of the tables by vertex within reach: two places of 8, four neighbours of
        // 4, and 10 for cell and kind.
        let bytes = 12 * vertices + 28 * quads + 42 * within_reach;
        match bytes <= self.max_bytes {
            true => Ok(()),
            false => Err(Error::bad_input(format_args!(
                "the faces between the labels of layers {} to {} of the volume take {bytes} bytes, more than the {} \
                 that there are for them",
                slab.layers.start,
                slab.layers.end - 1,
                self.max_bytes
            ))
            .with_hint(Hint::Memory)),
        }
    }
}

/// The cells of a slab and those that they depend on.
#[derive(Clone, Debug)]
pub(super) struct NetGrid {
    /// Samples of a row and rows of a slice.
    pub(super) width: usize,
    pub(super) height: usize,
    /// Cells along x, y and z of the whole volume.
    pub(super) cells: [usize; 3],
    /// Layers that are meshed, and those that they depend on.
    pub(super) layers: Range<usize>,
    pub(super) reach: Range<usize>,
    /// The slices at hand.
    pub(super) slices: Range<usize>,
}

impl NetGrid {
    /// Nothing when there is no sample.
    pub(super) fn new(kernel: &SurfaceNets, slab: &Slab) -> Result<Option<Self>> {
        let [width, height, held] = slab.volume.dims;
        if width * height * slab.depth == 0 || slab.layers.is_empty() {
            return Ok(None);
        }
        if [width, height, slab.depth].iter().any(|&n| n as u64 + 2 > u64::from(u32::MAX / UNIT)) {
            return Err(Error::bad_input(format_args!(
                "labels of more than {} samples along an axis are not meshed",
                u32::MAX / UNIT - 2
            )));
        }
        if !matches!(slab.volume.samples, Samples::U8(_) | Samples::U16(_) | Samples::U32(_)) {
            let dtype = slab.volume.samples.dtype();
            return Err(Error::bad_input(format_args!("samples of type {dtype} are no labels")));
        }
        let layers = slab.layers.clone();
        assert!(layers.end <= SurfaceNets::layers(slab.depth), "layers {layers:?}");
        let needed = kernel.slices(&layers, slab.depth);
        let slices = slab.first_slice..slab.first_slice + held;
        assert!(slices.start <= needed.start && needed.end <= slices.end, "{slices:?}, {needed:?}");
        Ok(Some(Self {
            width,
            height,
            cells: [width + 1, height + 1, slab.depth + 1],
            reach: kernel.reach(&layers, slab.depth),
            layers,
            slices,
        }))
    }

    /// Where the samples of the row of points `y`, `z` begin, unless these are beyond the samples.
    #[inline(always)]
    pub(super) fn row(&self, y: usize, z: usize) -> Option<usize> {
        if y == 0 || y > self.height || z == 0 || z >= self.cells[2] {
            return None;
        }
        Some(((z - 1 - self.slices.start) * self.height + y - 1) * self.width)
    }
}

/// An error when `count` more vertices than `before` cannot be numbered in 32 bits.
pub(super) fn check_count(before: u64, count: u64) -> Result<()> {
    match before + count > 1 << 32 {
        true => Err(Error::bad_input(
            "the labels have more than 4,294,967,296 vertices, which faces of 32-bit numbers cannot name",
        )),
        false => Ok(()),
    }
}

/// The type of a sample that is a label.
pub(super) trait Label: bytemuck::Pod + Eq + Default + Into<u32> + Send + Sync {}

impl Label for u8 {}
impl Label for u16 {}
impl Label for u32 {}
