//! Planes of one bit per edge of the grid: whether it is crossed, that is, whether its ends have different labels.

use pulp::NullaryFnOnce;

use super::{
    super::{super::cpu::simd_ops::SimdOps, params::NetGrid},
    Label,
};
use crate::util::{error::Result, memory, parallel::Parallel};

/// One bit per point, 64 to a word along x:
///
/// ```text
/// index of a word = (z * rows + y) * words + x / 64        bit = x % 64
/// ```
/// The first slice is the lower one of the first layer within reach. There is one more slice than layers.
pub(super) struct EdgePlanes {
    pub(super) grid: NetGrid,
    pub(super) words: usize,
    pub(super) rows: usize,
    /// Whether the edge from the point along x, y or z is crossed.
    pub(super) along: [Vec<u64>; 3],
}

impl EdgePlanes {
    pub(super) fn new<T: Label, S: SimdOps>(simd: S, grid: NetGrid, samples: &[T]) -> Result<Self> {
        let [points_x, rows] = [grid.cells[0] + 1, grid.cells[1] + 1];
        let words = points_x.div_ceil(64);
        let slices = grid.reach.len() + 1;
        let plane = || memory::zeros::<u64>(slices * rows * words);
        let mut along = [plane()?, plane()?, plane()?];
        let zeros = memory::zeros::<T>(grid.width)?;
        let slice = rows * words;
        let [x, y, z] = along.each_mut().map(|plane| plane.chunks_exact_mut(slice));
        x.zip(y).zip(z).enumerate().par_each(|(layer, ((x, y), z))| {
            let mut slice = SliceEdges { grid: &grid, samples, zeros: &zeros, words, x, y, z };
            slice.fill(simd, layer + grid.reach.start);
        });
        Ok(Self { words, rows, along, grid })
    }

    pub(super) fn slice(&self) -> usize {
        self.rows * self.words
    }
}

/// The bits of one slice of points.
struct SliceEdges<'a, T> {
    grid: &'a NetGrid,
    samples: &'a [T],
    zeros: &'a [T],
    words: usize,
    x: &'a mut [u64],
    y: &'a mut [u64],
    z: &'a mut [u64],
}

impl<T: Label> SliceEdges<'_, T> {
    fn fill<S: SimdOps>(&mut self, simd: S, z: usize) {
        let Self { grid, samples, zeros, words, .. } = *self;
        let row = |y: usize, z: usize| grid.row(y, z).map(|start| &samples[start..][..grid.width]);
        // No cell within reach has an edge along z above the topmost slice of points.
        let is_last = z == grid.reach.end;
        for y in 0..grid.cells[1] {
            let (here, next_row) = (row(y, z), row(y + 1, z));
            let above = if is_last { here } else { row(y, z + 1) };
            let out = y * words..(y + 1) * words;
            let (x_out, y_out, z_out) =
                (&mut self.x[out.clone()], &mut self.y[out.clone()], &mut self.z[out]);
            if let Some(here) = here {
                simd.vectorize(CompareRows { simd, one: &here[1..], other: here, out: x_out });
                let last = grid.width;
                x_out[0] |= u64::from(here[0] != T::default());
                x_out[last / 64] |= u64::from(here[last - 1] != T::default()) << (last % 64);
            }
            for (other, out) in [(next_row, y_out), (above, z_out)] {
                let (one, other) = match (here, other) {
                    (None, None) => continue,
                    (one, other) => (one.unwrap_or(zeros), other.unwrap_or(zeros)),
                };
                simd.vectorize(CompareRows { simd, one, other, out });
            }
        }
    }
}

/// Compares two rows of samples. Sets bit x + 1 where samples x differ, since point 0 is before the first sample.
struct CompareRows<'a, T, S> {
    simd: S,
    one: &'a [T],
    other: &'a [T],
    out: &'a mut [u64],
}

impl<T: Label, S: SimdOps> NullaryFnOnce for CompareRows<'_, T, S> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { simd, one, other, out } = self;
        let len = one.len().min(other.len());
        let (whole, rest) = one[..len].as_chunks::<64>();
        let (other_whole, other_rest) = other[..len].as_chunks::<64>();
        let mut carry = 0;
        for ((word, one), other) in out.iter_mut().zip(whole).zip(other_whole) {
            let mut flags = [0; 64];
            for i in 0..64 {
                flags[i] = u8::from(one[i] != other[i]);
            }
            let bits = simd.movemask(flags);
            (*word, carry) = (bits << 1 | carry, bits >> 63);
        }
        let mut bits = 0u64;
        for (i, (one, other)) in rest.iter().zip(other_rest).enumerate() {
            bits |= u64::from(one != other) << i;
        }
        // There are more points than samples, so the carried bit always has a word.
        let at = whole.len();
        out[at] = bits << 1 | carry;
        if bits >> 63 != 0 {
            out[at + 1] = 1;
        }
    }
}
