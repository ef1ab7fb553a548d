//! The native twin's bits: which edges of the grid are crossed, their numbers, and the triangles.

use std::{mem, sync::LazyLock};

use pulp::{NullaryFnOnce, Scalar, Simd};
use rayon::prelude::*;

use super::{
    Grid,
    table::{CASES, CORNERS},
};
use crate::error::Result;
use crate::memory;

/// [`CASES`] in the order of the twin's own words: how many triangles, which of the sixteen numbers at
/// a cell name their corners, and loops beyond the first. A case's number here has bit x + 2 y + 4 z
/// for the corner x, y, z, so that it is four pairs of neighbouring bits.
struct Flat {
    count: [u8; 256],
    corners: [[u8; 16]; 256],
    more_loops: [u8; 256],
}

static FLAT: LazyLock<Flat> = LazyLock::new(|| {
    let mut flat = Flat { count: [0; 256], corners: [[0; 16]; 256], more_loops: [0; 256] };
    // The order of `Planes::sets`, then those of the next point along x.
    const NUMBERS: [u8; 12] = [0, 1, 2, 3, 4, 12, 5, 13, 6, 14, 7, 15];
    for (number, case) in CASES.iter().enumerate() {
        let number = CORNERS.iter().enumerate().fold(0, |own, (corner, [x, y, z])| {
            own | (number >> corner & 1) << (x + 2 * y + 4 * z)
        });
        flat.count[number] = case.triangles.len() as u8;
        for (own, &edge) in flat.corners[number].iter_mut().zip(case.triangles.as_flattened()) {
            *own = NUMBERS[usize::from(edge)];
        }
        flat.more_loops[number] = case.loops.saturating_sub(1);
    }
    flat
});

/// Steps for which AVX2 has something of its own.
pub(super) trait Lanes: Simd {
    /// One bit for each flag of 0 or 1, the first in the lowest bit.
    fn mask(self, flags: [u8; 64]) -> u64;

    /// The numbers in the given order.
    fn arrange(self, numbers: [u32; 16], order: &[u8; 16]) -> [u32; 16];
}

impl Lanes for Scalar {
    #[inline(always)]
    fn mask(self, flags: [u8; 64]) -> u64 {
        let eights = flags.as_chunks::<8>().0.iter().enumerate();
        eights.fold(0, |mask, (i, &flags)| {
            // The product gathers the eight lowest bits in the highest byte.
            let bits = u64::from_le_bytes(flags).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            mask | bits << (8 * i)
        })
    }

    #[inline(always)]
    fn arrange(self, numbers: [u32; 16], order: &[u8; 16]) -> [u32; 16] {
        order.map(|i| numbers[usize::from(i & 15)])
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::__m256i;

    use pulp::{cast, x86::V3};

    use super::Lanes;

    impl Lanes for V3 {
        #[inline(always)]
        fn mask(self, flags: [u8; 64]) -> u64 {
            let [low, high]: [__m256i; 2] = cast(flags);
            let (low, high) = (self.signs(low), self.signs(high));
            u64::from(low) | u64::from(high) << 32
        }

        #[inline(always)]
        fn arrange(self, numbers: [u32; 16], order: &[u8; 16]) -> [u32; 16] {
            let [first, second]: [u64; 2] = cast(*order);
            cast([self.eight(numbers, first), self.eight(numbers, second)])
        }
    }

    /// No closures here: they would be compiled without the instructions.
    trait Steps {
        fn signs(self, flags: __m256i) -> u32;
        fn eight(self, numbers: [u32; 16], order: u64) -> __m256i;
    }

    impl Steps for V3 {
        #[inline(always)]
        fn signs(self, flags: __m256i) -> u32 {
            let signs = self.avx2._mm256_sub_epi8(self.avx._mm256_setzero_si256(), flags);
            self.avx2._mm256_movemask_epi8(signs) as u32
        }

        #[inline(always)]
        fn eight(self, numbers: [u32; 16], order: u64) -> __m256i {
            let [low, high]: [__m256i; 2] = cast(numbers);
            let order = self.avx2._mm256_cvtepu8_epi32(cast([order, 0]));
            let low = self.avx2._mm256_permutevar8x32_epi32(low, order);
            let high = self.avx2._mm256_permutevar8x32_epi32(high, order);
            let is_high = self.avx2._mm256_cmpgt_epi32(order, self.avx._mm256_set1_epi32(7));
            self.avx2._mm256_blendv_epi8(low, high, is_high)
        }
    }
}

/// One bit a point of every slice at hand, 64 to a word along x.
pub(super) struct Planes {
    pub(super) grid: Grid,
    /// Words a row.
    pub(super) words: usize,
    /// Whether the point is inside.
    pub(super) inside: Vec<u64>,
    /// Whether the cell that begins at the point exists and all its corners are numbers, from the
    /// layer below the first to the one above the last; empty when no sample is NaN.
    pub(super) valid: Vec<u64>,
}

/// The numbers of the first vertices of 32 points on edges along x, y and z.
#[derive(Clone, Copy, Default, bytemuck::Zeroable)]
pub(super) struct Start {
    x: u32,
    /// Vertices on edges along x, then those and the ones on edges along y.
    to_y: u8,
    to_z: u8,
}

impl Start {
    #[inline(always)]
    fn y(self) -> u32 {
        self.x.wrapping_add(self.to_y.into())
    }

    #[inline(always)]
    fn z(self) -> u32 {
        self.x.wrapping_add(self.to_z.into())
    }
}

/// What a slice contributes.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) vertices: u64,
    pub(super) triangles: u64,
    pub(super) nan_cells: u64,
}

/// The four rows of points around a row of cells, as indices of their first words; the last row and
/// slice stand in for what is beyond them, so that no edge is crossed there.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    y: usize,
    z: usize,
    at: [usize; 4],
    /// Whether there are cells.
    cells: bool,
}

impl Planes {
    #[inline(always)]
    pub(super) fn rows(&self, y: usize, z: usize) -> Rows {
        let Grid { points, slices, layers, .. } = self.grid;
        let y1 = (y + 1).min(points[1] - 1);
        let z1 = (z + 1).min(slices - 1);
        let row = |y, z| (z * points[1] + y) * self.words;
        let at = [row(y, z), row(y1, z), row(y, z1), row(y1, z1)];
        Rows { y, z, at, cells: y1 > y && z < layers }
    }

    /// Which points of word `word` of a row have a neighbour at x + 1.
    #[inline(always)]
    fn edge_mask(&self, word: usize) -> u64 {
        let left = (self.grid.points[0] - 1).saturating_sub(64 * word);
        if left >= 64 { u64::MAX } else { (1 << left) - 1 }
    }

    /// Whether nothing is crossed between four rows of points, in one sweep.
    #[inline(always)]
    pub(super) fn are_uniform(&self, rows: &Rows) -> bool {
        let row = |i: usize| &self.inside[rows.at[i]..][..self.words];
        let (a, b, c, d) = (row(0), row(1), row(2), row(3));
        let first = a[0];
        let mut other = 0;
        for i in 0..self.words {
            other |= (a[i] ^ first) | (b[i] ^ first) | (c[i] ^ first) | (d[i] ^ first);
        }
        other == 0 && (first == 0 || first == u64::MAX)
    }

    /// Of `numbers`, a plane that begins one slice lower, the cells all of whose corners are set.
    pub(super) fn whole_cells(&self, numbers: &[u64]) -> Result<Vec<u64>> {
        let Grid { points, first, layers, .. } = self.grid;
        let slice = self.words * points[1];
        let mut valid = memory::zeros::<u64>((layers + 2) * slice)?;
        let lowest = usize::from(first == 0);
        let highest = (layers + 2).min(points[2] - first);
        for z in lowest..highest {
            for y in 0..points[1] - 1 {
                let row = z * slice + y * self.words;
                let at = [row, row + self.words, row + slice, row + slice + self.words];
                for word in 0..self.words {
                    let corners = Corners::load(numbers, &at, word, self.words);
                    valid[row + word] = corners.all() & self.edge_mask(word);
                }
            }
        }
        Ok(valid)
    }

    /// Which of the cells at word `word` of row `y` of layer `z` - 1 are valid; none is beyond the grid.
    fn valid_at(&self, y: isize, z: usize, word: isize) -> u64 {
        let y = usize::try_from(y).ok();
        let word = usize::try_from(word).ok();
        let at = |y: usize, word: usize| (z * self.grid.points[1] + y) * self.words + word;
        y.zip(word).map_or(0, |(y, word)| self.valid[at(y, word)])
    }

    /// Which edges along `axis` from the points of a word have a valid cell around them: others carry
    /// no vertex. Only for planes with NaN.
    fn beside_valid(&self, axis: usize, y: usize, z: usize, word: usize) -> u64 {
        let (y, word) = (y as isize, word as isize);
        let around = |word: isize| {
            let here = self.valid_at(y, z + 1, word);
            let before = self.valid_at(y - 1, z + 1, word);
            let below = self.valid_at(y, z, word);
            match axis {
                0 => here | before | below | self.valid_at(y - 1, z, word),
                1 => here | below,
                _ => here | before,
            }
        };
        let here = around(word);
        match axis {
            0 => here,
            _ => here | here << 1 | around(word - 1) >> 63,
        }
    }

    #[inline(always)]
    fn corners(&self, rows: &Rows, word: usize) -> Corners {
        Corners::load(&self.inside, &rows.at, word, self.words)
    }

    /// The points of a word from which an edge with a vertex runs along x, y and z.
    #[inline(always)]
    pub(super) fn crossed(&self, rows: &Rows, word: usize) -> [u64; 3] {
        let plane = &self.inside[..];
        let (x, y, z) =
            (plane[rows.at[0] + word], plane[rows.at[1] + word], plane[rows.at[2] + word]);
        let mut next = x >> 1;
        if word + 1 < self.words {
            next |= plane[rows.at[0] + word + 1] << 63;
        }
        let crossed = [(x ^ next) & self.edge_mask(word), x ^ y, x ^ z];
        match self.valid.is_empty() {
            true => crossed,
            false => std::array::from_fn(|axis| {
                crossed[axis] & self.beside_valid(axis, rows.y, rows.z, word)
            }),
        }
    }

    /// Counts what each slice contributes: one more than there are layers, for the vertices that the
    /// topmost layer shares with the next slab.
    pub(super) fn counts<S: Lanes>(&self, simd: S) -> Vec<Counts> {
        let slices = (0..self.grid.layers + 1).into_par_iter();
        slices.map(|z| simd.vectorize(Count(self, z))).collect()
    }

    /// Numbers the vertices of slice `z` from `next` on. Rows without a vertex are passed over.
    #[inline(always)]
    fn number(&self, z: usize, mut next: u32, starts: &mut [Start]) {
        for (y, starts) in starts.chunks_exact_mut(2 * self.words).enumerate() {
            let rows = self.rows(y, z);
            if self.are_uniform(&rows) {
                continue;
            }
            for (word, starts) in starts.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                let crossed = self.crossed(&rows, word);
                for (half, start) in starts.iter_mut().enumerate() {
                    let [mut x, mut y, mut z] = crossed;
                    for set in [&mut x, &mut y, &mut z] {
                        *set = u64::from(((*set >> (32 * half)) as u32).count_ones());
                    }
                    let (x, y, z) = (x as u32, y as u32, z as u32);
                    *start = Start { x: next, to_y: x as u8, to_z: (x + y) as u8 };
                    next = next.wrapping_add(x + y + z);
                }
            }
        }
    }

    /// The eight sets of edges that begin at the points of a word, in the corners of the cells there:
    /// along x of all four rows, along y of both slices, along z of both rows.
    #[inline(always)]
    fn sets(&self, corners: &Corners, rows: &Rows, word: usize) -> [u64; 8] {
        let [a, b, c, d] = corners.rows;
        let mask = self.edge_mask(word);
        let x = corners.along_x();
        let sets = [x[0] & mask, x[1] & mask, x[2] & mask, x[3] & mask, a ^ b, c ^ d, a ^ c, b ^ d];
        if self.valid.is_empty() {
            return sets;
        }
        const PLACES: [[usize; 3]; 8] = [
            [0, 0, 0],
            [0, 1, 0],
            [0, 0, 1],
            [0, 1, 1],
            [1, 0, 0],
            [1, 0, 1],
            [2, 0, 0],
            [2, 1, 0],
        ];
        std::array::from_fn(|i| {
            let [axis, y, z] = PLACES[i];
            sets[i] & self.beside_valid(axis, rows.y + y, rows.z + z, word)
        })
    }

    /// Writes the triangles of the layer above slice `z`, whose own and whose next slice's vertices
    /// have the numbers `starts`.
    #[inline(always)]
    fn triangles<S: Lanes>(
        &self,
        simd: S,
        z: usize,
        starts: [&[Start]; 2],
        triangles: &mut [[u32; 3]],
    ) {
        let flat = &*FLAT;
        let mut out = triangles.as_flattened_mut();
        let row = 2 * self.words;
        for y in 0..self.grid.points[1] - 1 {
            let rows = self.rows(y, z);
            if self.are_uniform(&rows) {
                continue;
            }
            for word in 0..self.words {
                let corners = self.corners(&rows, word);
                let mixed = corners.mixed();
                if mixed == 0 {
                    continue;
                }
                let mut cells = mixed & self.edge_mask(word);
                if !self.valid.is_empty() {
                    cells &= self.valid_at(y as isize, z + 1, word as isize);
                }
                let sets = self.sets(&corners, &rows, word);
                for half in 0..2 {
                    let shift = 32 * half;
                    let (mut visit, cells) = ((mixed >> shift) as u32, (cells >> shift) as u32);
                    if cells == 0 {
                        continue;
                    }
                    let mut here = [0; 8];
                    for (here, set) in here.iter_mut().zip(sets) {
                        *here = (set >> shift) as u32;
                    }
                    let at = y * row + 2 * word + half;
                    // The running numbers of the vertices on each set of edges.
                    let [a, b] = [starts[0][at], starts[0][at + row]];
                    let [c, d] = [starts[1][at], starts[1][at + row]];
                    let mut numbers = [a.x, b.x, c.x, d.x, a.y(), c.y(), a.z(), b.z()];
                    while visit != 0 {
                        let x = visit.trailing_zeros();
                        visit &= visit - 1;
                        let mut next = numbers;
                        for (next, set) in next.iter_mut().zip(here) {
                            *next = next.wrapping_add(set >> x & 1);
                        }
                        if cells >> x & 1 == 1 {
                            if x == 31 {
                                // The cell straddles two words.
                                let [a, b] = [starts[0][at + 1], starts[0][at + row + 1]];
                                let c = starts[1][at + 1];
                                next[4..].copy_from_slice(&[a.y(), c.y(), a.z(), b.z()]);
                            }
                            let case = corners.case(shift as u32 + x);
                            let len = 3 * usize::from(flat.count[case]);
                            let mut all = [0; 16];
                            all[..8].copy_from_slice(&numbers);
                            all[8..].copy_from_slice(&next);
                            let found = simd.arrange(all, &flat.corners[case]);
                            // All sixteen at once where there is room: the next cell writes over those
                            // that are too many.
                            match out.first_chunk_mut::<16>() {
                                Some(out) => *out = found,
                                None => copy_some(out, &found),
                            }
                            out = &mut mem::take(&mut out)[len..];
                        }
                        numbers = next;
                    }
                }
            }
        }
        debug_assert!(out.is_empty());
    }
}

/// Counts what a slice and the layer above it contribute.
struct Count<'a>(&'a Planes, usize);

// The work is in the calls themselves, and not in closures, lest it be compiled without the
// instructions that `vectorize` is for.
impl NullaryFnOnce for Count<'_> {
    type Output = Counts;

    #[inline(always)]
    fn call(self) -> Counts {
        let Self(this, z) = self;
        let flat = &*FLAT;
        let mut counts = Counts::default();
        for y in 0..this.grid.points[1] {
            let rows = this.rows(y, z);
            if this.valid.is_empty() && this.are_uniform(&rows) {
                continue;
            }
            for word in 0..this.words {
                let mut cells = if rows.cells { this.edge_mask(word) } else { 0 };
                if !this.valid.is_empty() {
                    let valid = this.valid_at(y as isize, z + 1, word as isize);
                    counts.nan_cells += u64::from((cells & !valid).count_ones());
                    cells &= valid;
                }
                let corners = this.corners(&rows, word);
                if corners.mixed() == 0 {
                    continue;
                }
                let crossed = this.crossed(&rows, word);
                for set in crossed {
                    counts.vertices += u64::from(set.count_ones());
                }
                counts.triangles += u64::from(corners.triangles(cells, flat));
            }
        }
        counts
    }
}

/// What a slice contributes to the result: its place, the number of its first vertex, and the triangles
/// of the layer above it.
pub(super) struct Faces<'a> {
    pub(super) z: usize,
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) triangles: &'a mut [[u32; 3]],
}

/// Writes the triangles of slices that follow each other.
pub(super) struct Emit<'a, S> {
    pub(super) planes: &'a Planes,
    pub(super) simd: S,
    pub(super) slices: Vec<Faces<'a>>,
    /// Room for the numbers of two slices.
    pub(super) starts: [Vec<Start>; 2],
}

impl<S: Lanes> NullaryFnOnce for Emit<'_, S> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { planes, simd, slices, starts: [mut here, mut above] } = self;
        for (i, Faces { z, first, end, triangles }) in slices.into_iter().enumerate() {
            if z == planes.grid.layers {
                break;
            }
            if i == 0 {
                planes.number(z, first as u32, &mut here);
            }
            // The numbers wrap only past the last vertex of a surface of exactly 2^32.
            planes.number(z + 1, end as u32, &mut above);
            planes.triangles(simd, z, [&here, &above], triangles);
            mem::swap(&mut here, &mut above);
        }
    }
}

/// As many of `numbers` as there is room for; apart, lest both ways become one copy of unknown length.
#[cold]
#[inline(never)]
fn copy_some(out: &mut [u32], numbers: &[u32; 16]) {
    out.iter_mut().zip(numbers).for_each(|(out, &number)| *out = number);
}

/// The words of the eight corners of 64 cells: four rows of points, and the same one step along x.
struct Corners {
    rows: [u64; 4],
    steps: [u64; 4],
}

impl Corners {
    #[inline(always)]
    fn load(plane: &[u64], at: &[usize; 4], word: usize, words: usize) -> Self {
        let (mut rows, mut steps) = ([0; 4], [0; 4]);
        for row in 0..4 {
            rows[row] = plane[at[row] + word];
            steps[row] = rows[row] >> 1;
            if word + 1 < words {
                steps[row] |= plane[at[row] + word + 1] << 63;
            }
        }
        Self { rows, steps }
    }

    /// The cells whose corners are all set.
    #[inline(always)]
    fn all(&self) -> u64 {
        let ([a, b, c, d], [e, f, g, h]) = (self.rows, self.steps);
        a & b & c & d & e & f & g & h
    }

    /// The cells with different corners; the end of a row seems to differ from what is beyond.
    #[inline(always)]
    fn mixed(&self) -> u64 {
        let ([a, b, c, d], [e, f, g, h]) = (self.rows, self.steps);
        (a | b | c | d | e | f | g | h) & !self.all()
    }

    /// The edges along x that are crossed.
    #[inline(always)]
    fn along_x(&self) -> [u64; 4] {
        let ([a, b, c, d], [e, f, g, h]) = (self.rows, self.steps);
        [a ^ e, b ^ f, c ^ g, d ^ h]
    }

    /// The case of the cell at bit `x`, as [`Flat`] numbers them.
    #[inline(always)]
    fn case(&self, x: u32) -> usize {
        let pair = |row: usize| (self.rows[row] >> x & 1) | (self.steps[row] >> x & 1) << 1;
        (pair(0) | pair(1) << 2 | pair(2) << 4 | pair(3) << 6) as usize
    }

    /// The number of triangles of the cells `cells`: each loop of n crossed edges makes n - 2, so only
    /// cells that may have a second loop are looked at one by one.
    #[inline(always)]
    fn triangles(&self, cells: u64, flat: &Flat) -> u32 {
        let (r, s) = (&self.rows, &self.steps);
        let [x0, x1, x2, x3] = self.along_x();
        let [y0, y1, y2, y3] = [r[0] ^ r[1], s[0] ^ s[1], r[2] ^ r[3], s[2] ^ s[3]];
        let [z0, z1, z2, z3] = [r[0] ^ r[2], s[0] ^ s[2], r[1] ^ r[3], s[1] ^ s[3]];
        let edges = [x0, x1, x2, x3, y0, y1, y2, y3, z0, z1, z2, z3];
        let mut crossings = 0;
        for edge in edges {
            crossings += (edge & cells).count_ones();
        }
        // Faces whose corners alternate.
        let faces =
            x0 & x1 & y0 | x2 & x3 & y2 | x0 & x2 & z0 | x1 & x3 & z2 | y0 & y2 & z0 | y1 & y3 & z1;
        // Two opposite corners of the cube that differ from all others.
        let diagonals = x0 & y0 & z0 & x3 & y3 & z3 & !(r[0] ^ s[3])
            | x0 & y1 & z1 & x3 & y2 & z2 & !(s[0] ^ r[3])
            | x1 & y0 & z2 & x2 & y3 & z1 & !(r[1] ^ s[2])
            | x1 & y1 & z3 & x2 & y2 & z0 & !(s[1] ^ r[2]);
        let mut look = (faces | diagonals) & cells;
        let mut more = 0;
        while look != 0 {
            more += u32::from(flat.more_loops[self.case(look.trailing_zeros())]);
            look &= look - 1;
        }
        crossings - 2 * (self.mixed() & cells).count_ones() - 2 * more
    }
}
