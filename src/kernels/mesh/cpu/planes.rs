//! Planes of one bit per point, and the crossed edges and valid cells that follow from them.

use super::{
    super::{
        grid::CellGrid,
        voxel::{Isovalue, Voxel},
    },
    cells::Corners,
    mesher::Mesher,
    simd_ops::SimdOps,
};
use crate::util::{
    error::Result,
    memory,
    parallel::{self, Parallel},
};
use pulp::NullaryFnOnce;

/// One bit per point of every slice in the slab, 64 to a word along x:
///
/// ```text
/// index of a word = (z * points[1] + y) * words + x / 64        bit = x % 64
/// ```
pub(super) struct BitPlanes {
    pub(super) grid: CellGrid,
    /// Words of 64 points per row.
    pub(super) words: usize,
    pub(super) inside: Vec<u64>,
    /// Whether the cell at each point exists and has no NaN, from the layer below the first to the layer above the
    /// last. Empty if no sample is NaN.
    pub(super) valid: Vec<u64>,
}

/// The four rows of points around a row of cells.
#[derive(Clone, Copy)]
pub(super) struct PointRows {
    pub(super) y: usize,
    pub(super) z: usize,
    /// First words of the rows (y, z), (y + 1, z), (y, z + 1) and (y + 1, z + 1). Beyond the last row or slice, the
    /// last one is repeated, so that no edge is crossed there.
    pub(super) first: [usize; 4],
    /// Whether there are cells between the rows.
    pub(super) has_cells: bool,
}

impl BitPlanes {
    pub(super) fn slice_words(&self) -> usize {
        self.words * self.grid.points[1]
    }

    #[inline(always)]
    pub(super) fn rows(&self, y: usize, z: usize) -> PointRows {
        let CellGrid { points, slices, layers, .. } = self.grid;
        let y1 = (y + 1).min(points[1] - 1);
        let z1 = (z + 1).min(slices - 1);
        let row = |y, z| (z * points[1] + y) * self.words;
        let first = [row(y, z), row(y1, z), row(y, z1), row(y1, z1)];
        PointRows { y, z, first, has_cells: y1 > y && z < layers }
    }

    /// Points of word `word` of a row that have a neighbour at x + 1.
    #[inline(always)]
    pub(super) fn edge_mask(&self, word: usize) -> u64 {
        let left = (self.grid.points[0] - 1).saturating_sub(64 * word);
        if left >= 64 { u64::MAX } else { (1 << left) - 1 }
    }

    /// Whether no edge between the four rows of points is crossed.
    #[inline(always)]
    pub(super) fn are_uniform(&self, rows: &PointRows) -> bool {
        let row = |i: usize| &self.inside[rows.first[i]..][..self.words];
        let (a, b, c, d) = (row(0), row(1), row(2), row(3));
        let first = a[0];
        let mut other = 0;
        for i in 0..self.words {
            other |= (a[i] ^ first) | (b[i] ^ first) | (c[i] ^ first) | (d[i] ^ first);
        }
        other == 0 && (first == 0 || first == u64::MAX)
    }

    #[inline(always)]
    pub(super) fn corners(&self, rows: &PointRows, word: usize) -> Corners {
        Corners::load(&self.inside, &rows.first, word, self.words)
    }

    /// Points of a word where edges with a vertex along x, y and z begin.
    ///
    /// ```text
    /// point           7 6 5 4 3 2 1 0
    /// inside          1 0 0 1 1 1 0 0
    /// inside >> 1     . 1 0 0 1 1 1 0    bit x is point x + 1
    /// XOR             . 1 0 1 0 0 1 0    the edges (x, x + 1) that are crossed
    /// ```
    /// Along y and z, the words of the neighbouring rows replace `inside >> 1`.
    #[inline(always)]
    pub(super) fn crossed(&self, rows: &PointRows, word: usize) -> [u64; 3] {
        let plane = &self.inside[..];
        let [here, next_row, above, _] = rows.first;
        let (here, next_row, above) =
            (plane[here + word], plane[next_row + word], plane[above + word]);
        let mut next = here >> 1;
        if word + 1 < self.words {
            next |= plane[rows.first[0] + word + 1] << 63;
        }
        let crossed = [(here ^ next) & self.edge_mask(word), here ^ next_row, here ^ above];
        match self.valid.is_empty() {
            true => crossed,
            false => std::array::from_fn(|axis| {
                crossed[axis] & self.touches_valid(axis, rows.y, rows.z, word)
            }),
        }
    }

    /// Valid cells of word `word` of row `y` of layer `z` - 1. Cells beyond the grid are not valid.
    pub(super) fn valid_at(&self, y: isize, z: usize, word: isize) -> u64 {
        let y = usize::try_from(y).ok();
        let word = usize::try_from(word).ok();
        let at = |y: usize, word: usize| (z * self.grid.points[1] + y) * self.words + word;
        y.zip(word).map_or(0, |(y, word)| self.valid[at(y, word)])
    }

    /// Edges along `axis` from the points of a word that touch a valid cell. Other edges have no vertex. Only for
    /// planes with NaN.
    pub(super) fn touches_valid(&self, axis: usize, y: usize, z: usize, word: usize) -> u64 {
        let (y, word) = (y as isize, word as isize);
        // The cells from x on; those from x - 1 on lie one bit lower.
        let from = |word: isize| {
            let here = self.valid_at(y, z + 1, word);
            let before = self.valid_at(y - 1, z + 1, word);
            let below = self.valid_at(y, z, word);
            match axis {
                0 => here | before | below | self.valid_at(y - 1, z, word),
                1 => here | below,
                _ => here | before,
            }
        };
        let here = from(word);
        match axis {
            0 => here,
            _ => here | here << 1 | from(word - 1) >> 63,
        }
    }

    /// Cells whose corners are all set in `numbers`, a plane that begins one slice lower.
    fn whole_cells(&self, numbers: &[u64]) -> Result<Vec<u64>> {
        let CellGrid { points, first_layer, layers, .. } = self.grid;
        let slice = self.slice_words();
        let mut valid = memory::zeros::<u64>((layers + 2) * slice)?;
        let lowest = usize::from(first_layer == 0);
        let highest = (layers + 2).min(points[2] - first_layer);
        for z in lowest..highest {
            for y in 0..points[1] - 1 {
                let row = z * slice + y * self.words;
                let first = [row, row + self.words, row + slice, row + slice + self.words];
                for word in 0..self.words {
                    let corners = Corners::load(numbers, &first, word, self.words);
                    valid[row + word] = corners.all_set() & self.edge_mask(word);
                }
            }
        }
        Ok(valid)
    }
}

impl<T: Voxel> Mesher<'_, T> {
    /// Compares every sample with the isovalue and finds the cells without NaN.
    pub(super) fn planes<S: SimdOps>(&self, simd: S) -> Result<BitPlanes> {
        let Self { grid, iso, samples, .. } = *self;
        let words = grid.points[0].div_ceil(64);
        let inside = self.plane(simd, words, 0, T::is_inside, false)?;
        let mut planes = BitPlanes { grid, words, inside, valid: Vec::new() };
        let has_nan = T::MAY_BE_NAN && parallel::any(samples, |v| !v.is_number(&iso));
        if has_nan {
            let numbers = self.plane(simd, words, 1, T::is_number, true)?;
            planes.valid = planes.whole_cells(&numbers)?;
        }
        Ok(planes)
    }

    /// Plane of one bit per point, of all slices and of `below` further slices below them: `is_set` of samples,
    /// `beyond` outside of them.
    fn plane<S: SimdOps>(
        &self,
        simd: S,
        words: usize,
        below: usize,
        is_set: impl Fn(T, &Isovalue) -> bool + Copy + Sync,
        beyond: bool,
    ) -> Result<Vec<u64>> {
        let Self { grid, .. } = *self;
        let slice_words = words * grid.points[1];
        let mut plane = memory::zeros::<u64>((grid.slices + below) * slice_words)?;
        plane.chunks_mut(slice_words).enumerate().par_each(|(z, slice)| {
            for (y, row) in slice.chunks_exact_mut(words).enumerate() {
                match grid.sample_row(y as isize, z as isize - below as isize) {
                    None => row.fill(if beyond { u64::MAX } else { 0 }),
                    Some(start) => {
                        let samples = &self.samples[start..start + grid.width];
                        let (iso, out) = (&self.iso, &mut *row);
                        simd.vectorize(PackBits { iso, simd, samples, is_set, out });
                        if grid.pad == 1 {
                            pad_row(row, beyond, grid.width);
                        }
                    }
                }
            }
        });
        Ok(plane)
    }
}

/// Converts a row of samples to bits.
struct PackBits<'a, T, S, F> {
    iso: &'a Isovalue,
    simd: S,
    samples: &'a [T],
    is_set: F,
    out: &'a mut [u64],
}

impl<T: Voxel, S: SimdOps, F: Fn(T, &Isovalue) -> bool> NullaryFnOnce for PackBits<'_, T, S, F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { iso, simd, samples, is_set, out } = self;
        let (whole, rest) = samples.as_chunks::<64>();
        for (word, values) in out.iter_mut().zip(whole) {
            let mut flags = [0; 64];
            for (flag, &value) in flags.iter_mut().zip(values) {
                *flag = u8::from(is_set(value, iso));
            }
            *word = simd.movemask(flags);
        }
        for (i, &value) in rest.iter().enumerate() {
            out[whole.len()] |= u64::from(is_set(value, iso)) << i;
        }
    }
}

/// Shifts a row of `width` bits up by one and sets the bits before and after it to `beyond`.
fn pad_row(row: &mut [u64], beyond: bool, width: usize) {
    let mut carry = u64::from(beyond);
    for word in row.iter_mut() {
        (*word, carry) = (*word << 1 | carry, *word >> 63);
    }
    if beyond {
        row[(width + 1) / 64] |= 1 << ((width + 1) % 64);
    }
}
