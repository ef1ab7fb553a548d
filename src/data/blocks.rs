//! Cuts an axis or a grid into blocks that are computed one at a time, each with the halo that its
//! results depend on: bands of rows, slabs of slices, blocks of a volume.
//!
//! ```text
//! axis      0 ........................ len
//! blocks    |    0    |    1    |  2  |
//! block 1        [hhhh|ccccccccc|hhhh]      c core, h halo, [ ] padded
//! ```
//! Only arithmetic. A halo ends where the axis ends, and the kernel supplies what lies outside; on an axis that wraps,
//! the halo at one end holds positions from the other end.

use std::ops::Range;

use crate::util::{error::Result, memory};

/// Division of an axis into blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Number of positions along the axis.
    pub len: usize,
    /// Number of positions in a block, at least 1; the last block may have fewer.
    pub block: usize,
    /// Numbers of positions before and after a block that its results depend on.
    pub halo: [usize; 2],
    /// Whether the halo continues at the other end of the axis. Otherwise it ends with the axis.
    pub wraps: bool,
}

/// A block along one axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Positions that are computed.
    pub core: Range<usize>,
    /// The core and its halo: `before + core.len() + after` positions, modulo the length of an axis
    /// that wraps.
    pub padded: Range<usize>,
    /// Positions of the halo before the core.
    pub before: usize,
}

impl Split {
    /// An axis that is one block.
    pub fn whole(len: usize) -> Self {
        Self { len, block: len.max(1), halo: [0; 2], wraps: false }
    }

    /// Number of blocks.
    pub fn count(&self) -> usize {
        self.len.div_ceil(self.block)
    }

    /// The block with the number `index`.
    pub fn span(&self, index: usize) -> Span {
        let start = index * self.block;
        self.padded(start..(start + self.block).min(self.len))
    }

    /// The block `core` with its halo. A block that covers the axis has no halo.
    pub fn padded(&self, core: Range<usize>) -> Span {
        let [before, after] = match self.wraps && core.len() < self.len {
            true => self.halo,
            false => [self.halo[0].min(core.start), self.halo[1].min(self.len - core.end)],
        };
        // Positions are not negative: a halo that begins before 0 is moved by whole lengths of the axis.
        let lengths = before.saturating_sub(core.start).div_ceil(self.len.max(1));
        let first = core.start + lengths * self.len - before;
        Span { padded: first..first + before + core.len() + after, core, before }
    }

    /// All blocks, in order.
    pub fn spans(self) -> impl ExactSizeIterator<Item = Span> {
        (0..self.count()).map(move |index| self.span(index))
    }

    /// Number of positions of the longest padded block, or a few more.
    pub fn longest(&self) -> usize {
        let padded = self.halo[0] + self.block + self.halo[1];
        if self.wraps && self.block < self.len { padded } else { padded.min(self.len) }
    }
}

/// Division of a grid into blocks along x, y and z.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks(pub [Split; 3]);

/// A block along x, y and z.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockSpans(pub [Span; 3]);

impl BlockSpans {
    /// Size along x, y and z with the halo.
    pub fn padded(&self) -> [usize; 3] {
        self.0.each_ref().map(|span| span.padded.len())
    }
}

impl Blocks {
    /// The whole grid, halved along one axis after the other until `fits` accepts the dimensions of a padded block;
    /// `None` if it refuses even a single position with its halo.
    pub fn fitting(
        dims: [usize; 3],
        halo: [usize; 3],
        wraps: bool,
        fits: impl Fn([usize; 3]) -> bool,
    ) -> Option<Self> {
        let mut blocks = Self(std::array::from_fn(|axis| Split {
            halo: [halo[axis]; 2],
            wraps,
            ..Split::whole(dims[axis])
        }));
        while !fits(blocks.longest()) {
            // Axes whose blocks stay longer than their halo come first, then y and z, since whole rows are copied fast.
            let axis = (0..3).filter(|&axis| blocks.0[axis].block > 1).max_by_key(|&axis| {
                let block = blocks.0[axis].block;
                (block.div_ceil(2) > halo[axis], axis > 0, block)
            })?;
            blocks.0[axis].block = blocks.0[axis].block.div_ceil(2);
        }
        Some(blocks)
    }

    /// Size of the grid.
    pub fn dims(&self) -> [usize; 3] {
        self.0.map(|axis| axis.len)
    }

    /// Whether one block is the whole grid.
    pub fn is_whole(&self) -> bool {
        self.0.iter().all(|axis| axis.block >= axis.len)
    }

    /// Size of the largest padded block, or slightly more.
    pub fn longest(&self) -> [usize; 3] {
        self.0.map(|axis| axis.longest())
    }

    /// All blocks, along x first.
    pub fn iter(self) -> impl Iterator<Item = BlockSpans> {
        let [nx, ny, nz] = self.0.map(|axis| axis.count());
        (0..nx * ny * nz).map(move |number| {
            let index = [number % nx, number / nx % ny, number / nx / ny];
            BlockSpans(std::array::from_fn(|axis| self.0[axis].span(index[axis])))
        })
    }

    /// Whether a block is shorter than its halo.
    pub fn are_mostly_halo(&self) -> bool {
        self.0.iter().any(|axis| axis.block < axis.len && axis.block < axis.halo[0])
    }

    /// Copies each padded block out of `source`, calls `run(dims, input, output)` on it, and copies the core of `output`
    /// to `target`. `sizes` are the bytes per position in the two grids.
    pub fn run_each(
        &self,
        source: &[u8],
        target: &mut [u8],
        sizes: [usize; 2],
        run: impl Fn([usize; 3], &[u8], &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        if self.is_whole() {
            return run(self.dims(), source, target);
        }
        for block in self.iter() {
            let (dims, from) = (block.padded(), self.gather(&block, sizes[0], source)?);
            let mut to = memory::zeros(dims.iter().product::<usize>() * sizes[1])?;
            run(dims, &from, &mut to)?;
            self.scatter(&block, sizes[1], &to, target);
        }
        Ok(())
    }

    /// Copies the samples of a padded block from a grid with `channels` samples per position.
    pub fn gather<T: Copy>(
        &self,
        block: &BlockSpans,
        channels: usize,
        grid: &[T],
    ) -> Result<Vec<T>> {
        let [nx, ny, nz] = self.dims();
        let [x, y, z] = block.0.each_ref().map(|span| span.padded.clone());
        let mut samples = memory::room(x.len() * y.len() * z.len() * channels)?;
        for row in z.flat_map(|z| y.clone().map(move |y| z % nz * ny + y % ny)) {
            let row = &grid[row * nx * channels..][..nx * channels];
            // Up to the row's end, then again from its start.
            let mut at = x.start;
            while at < x.end {
                let first = at % nx;
                let len = (nx - first).min(x.end - at);
                samples.extend_from_slice(&row[first * channels..][..len * channels]);
                at += len;
            }
        }
        Ok(samples)
    }

    /// Copies the core of a padded block's `samples` to its position in `grid`.
    pub fn scatter<T: Copy>(
        &self,
        block: &BlockSpans,
        channels: usize,
        samples: &[T],
        grid: &mut [T],
    ) {
        let [nx, ny, _] = self.dims();
        let [x, y, z] = &block.0;
        let len = x.core.len() * channels;
        for dz in 0..z.core.len() {
            for dy in 0..y.core.len() {
                let from = (z.before + dz) * y.padded.len() + y.before + dy;
                let from = (from * x.padded.len() + x.before) * channels;
                let to = ((z.core.start + dz) * ny + y.core.start + dy) * nx + x.core.start;
                grid[to * channels..][..len].copy_from_slice(&samples[from..][..len]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(len: usize, block: usize, halo: [usize; 2], wraps: bool) -> Split {
        Split { len, block, halo, wraps }
    }

    #[test]
    fn cores_cover_the_axis_and_halos_end_with_it() {
        for len in [0, 1, 2, 7, 64, 101] {
            for block in [1, 2, 3, 50, 64, 200] {
                for halo in [[0, 0], [1, 2], [5, 0], [300, 300]] {
                    let split = split(len, block, halo, false);
                    let mut next = 0;
                    for Span { core, padded, before } in split.spans() {
                        assert_eq!(core.start, next);
                        assert!(!core.is_empty() && core.len() <= block);
                        assert_eq!(padded.start, core.start.saturating_sub(halo[0]));
                        assert_eq!(padded.end, (core.end + halo[1]).min(len));
                        assert_eq!(padded.start + before, core.start);
                        assert!(padded.len() <= split.longest());
                        next = core.end;
                    }
                    assert_eq!(next, len);
                }
            }
        }
    }

    #[test]
    fn halos_wrap_as_often_as_they_are_long() {
        let spans: Vec<Span> = split(10, 4, [3, 1], true).spans().collect();
        assert_eq!(spans[0], Span { core: 0..4, padded: 7..15, before: 3 });
        assert_eq!(spans[1], Span { core: 4..8, padded: 1..9, before: 3 });
        assert_eq!(spans[2], Span { core: 8..10, padded: 5..11, before: 3 });
        // Two and a half lengths before the core.
        let far = split(4, 2, [10, 0], true).span(0);
        assert_eq!(far, Span { core: 0..2, padded: 2..14, before: 10 });
        // A kernel that has the whole axis wraps by itself.
        let whole = split(10, 10, [3, 1], true);
        assert_eq!(whole.span(0), Span { core: 0..10, padded: 0..10, before: 0 });
        assert_eq!(whole.longest(), 10);
    }

    #[test]
    fn what_is_gathered_and_scattered_again_is_the_grid() {
        let dims = [7, 5, 3];
        for wraps in [false, true] {
            for channels in [1, 3] {
                let grid: Vec<u32> = (0..105 * channels as u32).collect();
                for block in [[7, 5, 3], [3, 2, 1], [1, 5, 2], [4, 1, 3]] {
                    for halo in [0, 2, 9] {
                        let blocks = Blocks(std::array::from_fn(|axis| {
                            split(dims[axis], block[axis], [halo; 2], wraps)
                        }));
                        let mut copy = vec![u32::MAX; grid.len()];
                        for block in blocks.iter() {
                            let samples = blocks.gather(&block, channels, &grid).unwrap();
                            // Position by position.
                            let [x, y, z] = block.0.each_ref().map(|span| span.padded.clone());
                            let mut at = samples.chunks_exact(channels);
                            for (z, y) in z.flat_map(|z| y.clone().map(move |y| (z % 3, y % 5))) {
                                for x in x.clone().map(|x| x % 7) {
                                    let first = ((z * 5 + y) * 7 + x) * channels;
                                    assert_eq!(at.next().unwrap(), &grid[first..][..channels]);
                                }
                            }
                            assert!(at.next().is_none());
                            blocks.scatter(&block, channels, &samples, &mut copy);
                        }
                        assert_eq!(copy, grid);
                    }
                }
            }
        }
    }

    #[test]
    fn blocks_are_halved_until_they_fit() {
        let at_most = |max: usize| move |dims: [usize; 3]| dims.iter().product::<usize>() <= max;
        let blocks = Blocks::fitting([64, 64, 64], [2; 3], false, at_most(1 << 18)).unwrap();
        assert!(blocks.is_whole());
        let blocks = Blocks::fitting([64, 64, 64], [2; 3], false, at_most(1 << 16)).unwrap();
        // Rows stay whole as long as possible.
        assert_eq!(blocks.0[0].block, 64);
        assert!(blocks.longest().iter().product::<usize>() <= 1 << 16);
        // Down to single positions, each with 40 on every side.
        let fitting = |max| Blocks::fitting([200; 3], [40; 3], true, at_most(max));
        assert_eq!(fitting(81 * 81 * 81).map(|blocks| blocks.longest()), Some([81; 3]));
        assert_eq!(fitting(81 * 81 * 81 - 1), None);
    }
}
