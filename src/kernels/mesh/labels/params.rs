//! Parameters of surface nets, and the layers and slices that a slab depends on.

use std::{ops::Range, sync::Arc};

use super::super::params::{Slab, check_bytes};
use crate::{
    data::{grid::Grid, label_mesh::UNIT, samples::Samples},
    util::error::{Error, Result},
};

/// Number of smoothing steps that is right for most segmentations.
pub const DEFAULT_STEPS: u32 = 10;

/// Maximum number of smoothing steps.
pub const MAX_STEPS: u32 = 1000;

/// Surface nets with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct SurfaceNets {
    /// Number of smoothing steps. With 0, the faces are those of the samples' boxes.
    pub steps: u32,
    /// Maximum bytes of the faces of a slab.
    pub max_bytes: u64,
}

/// Number of layers below and above that the sheets of a quad depend on.
const SHEET_HALO: usize = 2;

impl SurfaceNets {
    /// Surface nets with `steps` smoothing steps.
    pub fn new(steps: u32) -> Self {
        Self { steps, max_bytes: u64::MAX }
    }

    /// All of `volume` as one slab.
    pub fn whole(volume: impl Into<Arc<Grid>>) -> Slab {
        let volume = volume.into();
        let depth = volume.dims[2];
        Slab { volume, first_slice: 0, depth, layers: 0..Self::layers(depth), first_vertex: 0 }
    }

    /// Number of layers of cells in a volume of `depth` slices.
    pub fn layers(depth: usize) -> usize {
        depth + 1
    }

    /// Layers of cells that `layers` depend on, in a volume of `depth` slices: one on each side per smoothing step, but
    /// at least [`SHEET_HALO`].
    pub(super) fn reach(&self, layers: &Range<usize>, depth: usize) -> Range<usize> {
        let halo = (self.steps as usize).max(SHEET_HALO);
        layers.start.saturating_sub(halo)..(layers.end + halo).min(Self::layers(depth))
    }

    /// Slices needed to mesh `layers` of a volume of `depth` slices.
    pub fn slices(&self, layers: &Range<usize>, depth: usize) -> Range<usize> {
        let reach = self.reach(layers, depth);
        reach.start.saturating_sub(1)..reach.end.min(depth)
    }

    /// Fails if the faces of a slab, with the tables of all vertices `within_reach`, take more than
    /// [`max_bytes`](Self::max_bytes).
    pub(super) fn check_bytes(
        &self,
        slab: &Slab,
        [vertices, quads]: [u64; 2],
        within_reach: u64,
    ) -> Result<()> {
        // Bytes of a vertex, of a quad, and of the tables per vertex within reach: two offsets of 8 bytes, four
        // neighbours of 4, and 10 for cell and kind.
        let bytes = 12 * vertices + 28 * quads + 42 * within_reach;
        check_bytes("the mesh of the labels", &slab.layers, bytes, self.max_bytes)
    }
}

/// The cells of a slab, and those that they depend on.
#[derive(Clone, Debug)]
pub(super) struct NetGrid {
    /// Size of a slice in samples.
    pub(super) width: usize,
    pub(super) height: usize,
    /// Number of cells of the whole volume along x, y and z.
    pub(super) cells: [usize; 3],
    /// Layers that are meshed.
    pub(super) layers: Range<usize>,
    /// Layers that these depend on.
    pub(super) reach: Range<usize>,
    pub(super) slices: Range<usize>,
}

impl NetGrid {
    /// The grid of a slab; `None` if it has no samples or no layers.
    pub(super) fn new(kernel: &SurfaceNets, slab: &Slab) -> Result<Option<Self>> {
        let [width, height, held] = slab.volume.dims;
        if width * height * slab.depth == 0 || slab.layers.is_empty() {
            return Ok(None);
        }
        if [width, height, slab.depth].iter().any(|&n| n as u64 + 2 > u64::from(u32::MAX / UNIT)) {
            return Err(Error::bad_input(format_args!(
                "label volumes may have at most {} samples along an axis",
                u32::MAX / UNIT - 2
            )));
        }
        if !matches!(slab.volume.samples, Samples::U8(_) | Samples::U16(_) | Samples::U32(_)) {
            let dtype = slab.volume.samples.dtype();
            return Err(Error::bad_input(format_args!("samples of type {dtype} cannot be labels")));
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

    /// Index of the first sample of the row of points `y`, `z`; `None` beyond the samples.
    #[inline(always)]
    pub(super) fn row(&self, y: usize, z: usize) -> Option<usize> {
        if y == 0 || y > self.height || z == 0 || z >= self.cells[2] {
            return None;
        }
        Some(((z - 1 - self.slices.start) * self.height + y - 1) * self.width)
    }
}

/// Fails if `before + count` vertices cannot be numbered in 32 bits.
pub(super) fn check_count(before: u64, count: u64) -> Result<()> {
    match before + count > 1 << 32 {
        true => Err(Error::bad_input(
            "the mesh of the labels has more vertices than the maximum of 4,294,967,296 (32-bit vertex numbers)",
        )),
        false => Ok(()),
    }
}

/// Sample type of labels.
pub(super) trait Label: bytemuck::Pod + Eq + Default + Into<u32> + Send + Sync {}

impl<T: bytemuck::Pod + Eq + Default + Into<u32> + Send + Sync> Label for T {}
