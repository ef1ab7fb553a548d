//! The grid of points that cells are made of, and how a slab lies in it.

use std::ops::Range;

use super::params::{MarchingCubes, Slab};

/// The points of the whole volume: its samples, with one more on every side when the surface is closed
/// on the volume's box (`pad`). Cell and edges of a point lie towards greater x, y and z.
///
/// ```text
/// layers of cells    first_layer .. first_layer + layers
/// slices of points   first_layer .. first_layer + slices
///                    slices = layers + 1, and one more where the volume goes on
/// ```
#[derive(Clone, Copy, Debug)]
pub(super) struct CellGrid {
    /// Samples of a slice.
    pub(super) width: usize,
    pub(super) height: usize,
    /// Points beyond the samples on each side, 0 or 1.
    pub(super) pad: usize,
    /// Points along x, y and z of the whole volume.
    pub(super) points: [usize; 3],
    /// Words of 32 points per row, as vertices are numbered by them.
    pub(super) words: usize,
    /// The first layer of cells in the whole volume, and how many layers.
    pub(super) first_layer: usize,
    pub(super) layers: usize,
    /// Slices of points at hand.
    pub(super) slices: usize,
    /// `slice of samples in the slab = slice of points in the volume + sample_z`.
    pub(super) sample_z: isize,
}

impl CellGrid {
    /// The grid of a slab; `None` when it has no cell.
    pub(super) fn new(kernel: &MarchingCubes, slab: &Slab) -> Option<Self> {
        let [width, height, held] = slab.volume.dims;
        let dims = [width, height, slab.depth];
        let Range { start, end } = slab.layers;
        if dims.iter().any(|&n| n + 2 * kernel.pad() < 2) || start >= end {
            return None;
        }
        assert!(end <= kernel.layers(slab.depth), "layers {:?} of {}", slab.layers, slab.depth);
        let needed = kernel.slices(&slab.layers, slab.depth);
        let held = slab.first_slice..slab.first_slice + held;
        assert!(held.start <= needed.start && needed.end <= held.end, "{held:?} for {needed:?}");
        Some(Self::of(kernel, dims, &held, &slab.layers))
    }

    /// The grid over `layers` of a volume of `dims` whose `slices` are at hand.
    pub(super) fn of(
        kernel: &MarchingCubes,
        dims: [usize; 3],
        slices: &Range<usize>,
        layers: &Range<usize>,
    ) -> Self {
        let pad = kernel.pad();
        let points = dims.map(|n| n + 2 * pad);
        Self {
            width: dims[0],
            height: dims[1],
            pad,
            points,
            words: points[0].div_ceil(32),
            first_layer: layers.start,
            layers: layers.len(),
            slices: (layers.end + 2).min(points[2]) - layers.start,
            sample_z: -((pad + slices.start) as isize),
        }
    }

    /// Words of 32 points per slice.
    pub(super) fn slice_words(&self) -> usize {
        self.words * self.points[1]
    }

    /// The slices whose vertices this slab emits: the topmost one's belong to the next slab, if there is
    /// one.
    pub(super) fn owned(&self) -> usize {
        let is_last = self.first_layer + self.layers + 1 == self.points[2];
        self.layers + usize::from(is_last)
    }

    /// Where the samples of row `y` of slice `z` of the slab begin, unless the row is beyond them.
    #[inline(always)]
    pub(super) fn sample_row(&self, y: isize, z: isize) -> Option<usize> {
        let Self { width, height, pad, points, .. } = *self;
        let y = usize::try_from(y - pad as isize).ok().filter(|&y| y < height)?;
        let z = z + self.first_layer as isize;
        if z < pad as isize || z >= (points[2] - pad) as isize {
            return None;
        }
        let z = (z + self.sample_z) as usize;
        Some((z * height + y) * width)
    }

    /// The coordinate along `axis` of the sample nearest to a point.
    #[inline(always)]
    pub(super) fn clamp(&self, coordinate: isize, axis: usize) -> isize {
        let Self { points, pad, first_layer, .. } = self;
        let shift = if axis == 2 { *first_layer as isize } else { 0 };
        let (pad, points) = (*pad as isize, points[axis] as isize);
        coordinate.clamp(pad - shift, points - pad - 1 - shift)
    }
}
