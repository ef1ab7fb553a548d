//! The grid of points, whose cells are meshed, and the position of a slab in it.

use std::ops::Range;

use super::params::{MarchingCubes, Slab};

/// The points of the whole volume: its samples, plus one more point on every side if the surface is closed on the
/// volume's box (`pad`). The cell and the edges of a point extend from it towards larger x, y and z.
///
/// ```text
/// layers of cells    first_layer .. first_layer + layers
/// slices of points   first_layer .. first_layer + slices
///                    slices = layers + 1, or layers + 2 if the volume continues above
/// ```
#[derive(Clone, Copy, Debug)]
pub(super) struct CellGrid {
    /// Size of a slice in samples.
    pub(super) width: usize,
    pub(super) height: usize,
    /// Points added beyond the samples on each side, 0 or 1.
    pub(super) pad: usize,
    /// Number of points of the whole volume along x, y and z.
    pub(super) points: [usize; 3],
    /// Words of 32 points per row. They determine the order of the vertices.
    pub(super) words: usize,
    /// Index of the slab's first layer of cells in the whole volume, and number of layers.
    pub(super) first_layer: usize,
    pub(super) layers: usize,
    /// Slices of points in the slab.
    pub(super) slices: usize,
    /// Index of a slice of samples in the slab minus index of its slice of points in the volume.
    pub(super) sample_z: isize,
}

impl CellGrid {
    /// The grid of a slab; `None` if the slab has no cells.
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
        Some(Self::for_layers(kernel, dims, &held, &slab.layers))
    }

    /// The grid of `layers` of a volume of size `dims`. The slab holds `slices`.
    pub(super) fn for_layers(
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

    /// Number of slices whose vertices this slab emits. The vertices of the topmost slice belong to the next slab, if
    /// there is one.
    pub(super) fn owned(&self) -> usize {
        let is_last = self.first_layer + self.layers + 1 == self.points[2];
        self.layers + usize::from(is_last)
    }

    /// Index of the first sample of row `y` of slice `z` of the slab; `None` if the row lies beyond the samples.
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

    /// Coordinate along `axis` of the sample nearest to a point.
    #[inline(always)]
    pub(super) fn clamp(&self, coordinate: isize, axis: usize) -> isize {
        let Self { points, pad, first_layer, .. } = self;
        let shift = if axis == 2 { *first_layer as isize } else { 0 };
        let (pad, points) = (*pad as isize, points[axis] as isize);
        coordinate.clamp(pad - shift, points - pad - 1 - shift)
    }
}
