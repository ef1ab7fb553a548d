//! The native twin's short way for Gaussians of bytes along x and y: both passes over a tile at once,
//! so that what lies between them never leaves the cache, in 16-bit products that are summed in pairs
//! (`pmaddwd`). All sums are exact modulo 2^32, so the results are those of any other way.

use pulp::Arch;
use rayon::prelude::*;

use super::{
    Edge, Shape,
    plan::{Arithmetic, Format, Pass, Rounding},
};
use crate::{
    memory::{self, raise},
    simd,
};

/// Blurs `source` along x and y by the first two passes of `plan`; nothing where they are of another
/// kind or the processor has no such instructions.
pub fn blur(plan: &[Pass], edge: Edge, shape: Shape, source: &[u8]) -> Option<Vec<u8>> {
    let [x, y] = plan else { return None };
    let short = |pass: &Pass, axis, math| pass.axis == axis && pass.arithmetic == math;
    let (Rounding::Shift(9), Rounding::Shift(23)) = (x.rounding, y.rounding) else { return None };
    let bytes = x.from == Format::U8 && y.to == Format::U8;
    if !bytes || !short(x, 0, Arithmetic::ExactF32) || !short(y, 1, Arithmetic::U32) {
        return None;
    }
    let job = Job { x, y, edge, shape };
    match simd::arch() {
        #[cfg(target_arch = "x86_64")]
        Arch::V4(simd) => Some(job.run(simd, source)),
        #[cfg(target_arch = "x86_64")]
        Arch::V3(simd) => Some(job.run(simd, source)),
        _ => None,
    }
}

/// 16-bit numbers side by side and what is done with them.
///
/// `low` and `high` interleave two vectors in a way that `store` and `store_bytes` undo.
trait Lanes: Copy + Send + Sync {
    type V: Copy;
    const COUNT: usize;
    fn vectorize(self, work: impl FnOnce());
    fn load(self, from: &[i16]) -> Self::V;
    fn every(self, value: i32) -> Self::V;
    /// Adds 16-bit numbers.
    fn add_short(self, a: Self::V, b: Self::V) -> Self::V;
    /// Adds 32-bit numbers.
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    fn low(self, a: Self::V, b: Self::V) -> Self::V;
    fn high(self, a: Self::V, b: Self::V) -> Self::V;
    /// Multiplies 16-bit numbers and adds neighbouring products.
    fn weigh(self, a: Self::V, b: Self::V) -> Self::V;
    /// Sums below 2^24, shifted by 9.
    fn store(self, low: Self::V, high: Self::V, to: &mut [i16]);
    /// Sums shifted by 23.
    fn store_bytes(self, low: Self::V, high: Self::V, to: &mut [u8]);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{__m256i, __m512i};

    use pulp::{
        Simd, cast,
        x86::{V3, V4},
    };

    use super::Lanes;

    impl Lanes for V4 {
        type V = __m512i;
        const COUNT: usize = 32;

        #[inline(always)]
        fn vectorize(self, work: impl FnOnce()) {
            Simd::vectorize(self, work);
        }
        #[inline(always)]
        fn load(self, from: &[i16]) -> __m512i {
            cast(*from.first_chunk::<32>().expect("a whole vector"))
        }
        #[inline(always)]
        fn every(self, value: i32) -> __m512i {
            self.avx512f._mm512_set1_epi32(value)
        }
        #[inline(always)]
        fn add_short(self, a: __m512i, b: __m512i) -> __m512i {
            self.avx512bw._mm512_add_epi16(a, b)
        }
        #[inline(always)]
        fn add(self, a: __m512i, b: __m512i) -> __m512i {
            self.avx512f._mm512_add_epi32(a, b)
        }
        #[inline(always)]
        fn low(self, a: __m512i, b: __m512i) -> __m512i {
            self.avx512bw._mm512_unpacklo_epi16(a, b)
        }
        #[inline(always)]
        fn high(self, a: __m512i, b: __m512i) -> __m512i {
            self.avx512bw._mm512_unpackhi_epi16(a, b)
        }
        #[inline(always)]
        fn weigh(self, a: __m512i, b: __m512i) -> __m512i {
            self.avx512bw._mm512_madd_epi16(a, b)
        }
        #[inline(always)]
        fn store(self, low: __m512i, high: __m512i, to: &mut [i16]) {
            let shift = |sum| self.avx512f._mm512_srli_epi32::<9>(sum);
            let packed = self.avx512bw._mm512_packus_epi32(shift(low), shift(high));
            *to.first_chunk_mut::<32>().expect("a whole vector") = cast(packed);
        }
        #[inline(always)]
        fn store_bytes(self, low: __m512i, high: __m512i, to: &mut [u8]) {
            let shift = |sum| self.avx512f._mm512_srli_epi32::<23>(sum);
            let packed = self.avx512bw._mm512_packus_epi32(shift(low), shift(high));
            let bytes = self.avx512bw._mm512_cvtepi16_epi8(packed);
            *to.first_chunk_mut::<32>().expect("a whole vector") = cast(bytes);
        }
    }

    impl Lanes for V3 {
        type V = __m256i;
        const COUNT: usize = 16;

        #[inline(always)]
        fn vectorize(self, work: impl FnOnce()) {
            Simd::vectorize(self, work);
        }
        #[inline(always)]
        fn load(self, from: &[i16]) -> __m256i {
            cast(*from.first_chunk::<16>().expect("a whole vector"))
        }
        #[inline(always)]
        fn every(self, value: i32) -> __m256i {
            self.avx._mm256_set1_epi32(value)
        }
        #[inline(always)]
        fn add_short(self, a: __m256i, b: __m256i) -> __m256i {
            self.avx2._mm256_add_epi16(a, b)
        }
        #[inline(always)]
        fn add(self, a: __m256i, b: __m256i) -> __m256i {
            self.avx2._mm256_add_epi32(a, b)
        }
        #[inline(always)]
        fn low(self, a: __m256i, b: __m256i) -> __m256i {
            self.avx2._mm256_unpacklo_epi16(a, b)
        }
        #[inline(always)]
        fn high(self, a: __m256i, b: __m256i) -> __m256i {
            self.avx2._mm256_unpackhi_epi16(a, b)
        }
        #[inline(always)]
        fn weigh(self, a: __m256i, b: __m256i) -> __m256i {
            self.avx2._mm256_madd_epi16(a, b)
        }
        #[inline(always)]
        fn store(self, low: __m256i, high: __m256i, to: &mut [i16]) {
            let shift = |sum| self.avx2._mm256_srli_epi32::<9>(sum);
            let packed = self.avx2._mm256_packus_epi32(shift(low), shift(high));
            *to.first_chunk_mut::<16>().expect("a whole vector") = cast(packed);
        }
        #[inline(always)]
        fn store_bytes(self, low: __m256i, high: __m256i, to: &mut [u8]) {
            let shift = |sum| self.avx2._mm256_srli_epi32::<23>(sum);
            let packed = self.avx2._mm256_packus_epi32(shift(low), shift(high));
            let lower = self.avx._mm256_castsi256_si128(packed);
            let upper = self.avx2._mm256_extracti128_si256::<1>(packed);
            let bytes = self.sse2._mm_packus_epi16(lower, upper);
            *to.first_chunk_mut::<16>().expect("a whole vector") = cast(bytes);
        }
    }
}

/// Rows that are computed together.
const ROWS: usize = 4;
/// Vectors along x that are computed together.
const VECTORS: usize = 4;
/// Tiles are multiples of this many samples: whole pixels, and whole vectors.
const STEP: usize = 192;
/// What of a tile has to stay in the cache, in samples of two bytes.
const CACHE: usize = 1 << 18;

#[derive(Clone, Copy)]
struct Job<'a> {
    x: &'a Pass,
    y: &'a Pass,
    edge: Edge,
    shape: Shape,
}

/// Weights of a pass, two by two as the processor takes them.
struct Weights {
    pairs: Vec<i32>,
    /// Whether the first, taken as a signed number, is 2^16 too small.
    wraps: bool,
}

fn pair(first: u32, second: u32) -> i32 {
    (first & 0xffff | second << 16) as i32
}

impl Weights {
    /// Of sums of the two samples at each distance: the centre, which is its own partner, by half.
    fn of_sums(half: &[u32]) -> Self {
        let weight = |i: usize| match i {
            0 => half[0] / 2,
            _ => half.get(i).copied().unwrap_or(0),
        };
        let pairs = (0..half.len()).step_by(2).map(|i| pair(weight(i), weight(i + 1))).collect();
        Self { pairs, wraps: weight(0) > i16::MAX as u32 }
    }

    /// Of [`ROWS`] rows that start one after another: `ROWS` for each two taps.
    fn of_rows(half: &[u32]) -> Self {
        let radius = half.len() as isize - 1;
        let weight = |tap: isize| match (tap - radius).unsigned_abs() {
            distance if distance < half.len() => half[distance],
            _ => 0,
        };
        let taps = 2 * half.len() - 2 + ROWS;
        let pairs = (0..taps as isize)
            .step_by(2)
            .flat_map(|tap| {
                (0..ROWS as isize).map(move |row| pair(weight(tap - row), weight(tap - row + 1)))
            })
            .collect();
        Self { pairs, wraps: half[0] > i16::MAX as u32 }
    }
}

impl Job<'_> {
    fn run<L: Lanes>(&self, lanes: L, source: &[u8]) -> Vec<u8> {
        let [width, height, _] = self.shape.dims;
        let row = width * self.shape.channels;
        let radius = self.y.taps.radius;
        // All rows of a tile are kept where that is little more than what is needed at a time.
        let window = 2 * radius + 2 * ROWS;
        let all = height <= 2 * window;
        let kept = if all { height + 1 } else { window };
        let tile = (CACHE / kept / STEP).max(2) * STEP;
        let strip = match all {
            true => height,
            false => (height / (2 * rayon::current_num_threads())).clamp(4 * window, 16 * window),
        };
        let weights =
            (Weights::of_sums(&self.x.integer_weights), Weights::of_rows(&self.y.integer_weights));
        let mut target = memory::zeros(source.len()).unwrap_or_else(raise);
        let slices = source.chunks_exact(row * height).zip(target.chunks_exact_mut(row * height));
        for (source, target) in slices {
            let mut parts = Vec::new();
            for (number, rows) in target.chunks_mut(strip * row).enumerate() {
                let mut tiles: Vec<Vec<&mut [u8]>> = Vec::new();
                tiles.resize_with(row.div_ceil(tile), Vec::new);
                for row in rows.chunks_exact_mut(row) {
                    row.chunks_mut(tile).zip(&mut tiles).for_each(|(part, tile)| tile.push(part));
                }
                parts.extend(tiles.into_iter().enumerate().map(|(x, tile)| (number, x, tile)));
            }
            parts.into_par_iter().for_each(|(number, x, rows)| {
                let part = Tile {
                    job: self,
                    source,
                    weights: &weights,
                    left: x * tile,
                    top: number * strip,
                    kept,
                    all,
                };
                lanes.vectorize(
                    #[inline(always)]
                    || part.run(lanes, rows),
                );
            });
        }
        target
    }
}

/// A part of an image that one thread blurs.
struct Tile<'a> {
    job: &'a Job<'a>,
    source: &'a [u8],
    weights: &'a (Weights, Weights),
    /// The first sample of a row, and the first row.
    left: usize,
    top: usize,
    /// How many rows are kept at a time; all, and one of what lies outside, or those in turn that are
    /// needed.
    kept: usize,
    all: bool,
}

impl Tile<'_> {
    #[inline(always)]
    fn run<L: Lanes>(&self, lanes: L, mut rows: Vec<&mut [u8]>) {
        let Job { x, y, edge, shape, .. } = *self.job;
        let (height, radius) = (shape.dims[1] as isize, y.taps.radius as isize);
        let width = rows[0].len();
        let stride = width.next_multiple_of(VECTORS * L::COUNT);
        let reach = x.taps.radius * shape.channels;
        let mut pad = vec![0; stride + 2 * reach + L::COUNT];
        let mut kept = vec![0; stride * self.kept];
        // What row of `kept` stands for a row of the image or outside of it.
        let place = |at: isize| match self.all {
            true => edge.map(at, height as usize).unwrap_or(height as usize),
            false => at.rem_euclid(self.kept as isize) as usize,
        };
        let mut next = if self.all { 0 } else { self.top as isize - radius };
        for (number, rows) in rows.chunks_mut(ROWS).enumerate() {
            let first = (self.top + number * ROWS) as isize - radius;
            let end = first + 2 * radius + ROWS as isize;
            while next < if self.all { height + 1 } else { end } {
                let inside = match self.all {
                    true => (next < height).then_some(next as usize),
                    false => edge.map(next, height as usize),
                };
                let to = if self.all { next as usize } else { place(next) };
                self.pad(inside, width, &mut pad);
                let to = &mut kept[to * stride..][..stride];
                along_x(lanes, &pad, &self.weights.0, [x.taps.radius, shape.channels], to);
                next += 1;
            }
            let lines: Vec<&[i16]> =
                (first..end).map(|at| &kept[place(at) * stride..][..stride]).collect();
            along_y(lanes, &lines, &self.weights.1, rows);
        }
    }

    /// A row's samples in the tile and on either side as far as the blur reaches.
    #[inline(always)]
    fn pad(&self, inside: Option<usize>, width: usize, pad: &mut [i16]) {
        let Job { x, edge, shape, .. } = self.job;
        let (channels, positions) = (shape.channels, shape.dims[0]);
        let row = positions * channels;
        let reach = x.taps.radius * channels;
        let Some(y) = inside else {
            let len = width + 2 * reach;
            pad[..len].iter_mut().enumerate().for_each(|(i, to)| *to = x.fill[i % channels] as i16);
            return;
        };
        let line = &self.source[y * row..][..row];
        let start = self.left as isize - reach as isize;
        let end = self.left + width + reach;
        let from = start.max(0) as usize;
        let to = end.min(row);
        let inner = &mut pad[(from as isize - start) as usize..][..to - from];
        inner.iter_mut().zip(&line[from..to]).for_each(|(to, &from)| *to = from.into());
        let outside = (start..0).chain(row as isize..end as isize);
        for at in outside {
            let (position, channel) =
                (at.div_euclid(channels as isize), at.rem_euclid(channels as isize) as usize);
            pad[(at - start) as usize] = match edge.map(position, positions) {
                Some(position) => line[position * channels + channel].into(),
                None => x.fill[channel] as i16,
            };
        }
    }
}

/// Weighs the samples of a line that lie up to `radius` times `step` apart, and puts 2^7 times the mean to
/// `to`.
#[inline(always)]
fn along_x<L: Lanes>(
    lanes: L,
    pad: &[i16],
    weights: &Weights,
    [radius, step]: [usize; 2],
    to: &mut [i16],
) {
    let span = VECTORS * L::COUNT;
    for (number, to) in to.chunks_exact_mut(span).enumerate() {
        let pad = &pad[number * span..][..2 * radius * step + span];
        let centre = radius * step;
        let mut sums = [[lanes.every(1 << 8); 2]; VECTORS];
        if weights.wraps {
            for (i, [low, high]) in sums.iter_mut().enumerate() {
                let middle = lanes.load(&pad[centre + i * L::COUNT..]);
                let twice = lanes.add_short(middle, middle);
                *low = lanes.add(*low, lanes.low(lanes.every(0), twice));
                *high = lanes.add(*high, lanes.high(lanes.every(0), twice));
            }
        }
        for (i, &pair) in weights.pairs.iter().enumerate() {
            let pair = lanes.every(pair);
            let (near, far) = (2 * i * step, (2 * i + 1).min(radius) * step);
            let [a, b] = [centre - near, centre + near].map(|at| &pad[at..at + span]);
            let [c, d] = [centre - far, centre + far].map(|at| &pad[at..at + span]);
            for (i, [low, high]) in sums.iter_mut().enumerate() {
                let at = i * L::COUNT;
                let near = lanes.add_short(lanes.load(&a[at..]), lanes.load(&b[at..]));
                let far = lanes.add_short(lanes.load(&c[at..]), lanes.load(&d[at..]));
                *low = lanes.add(*low, lanes.weigh(lanes.low(near, far), pair));
                *high = lanes.add(*high, lanes.weigh(lanes.high(near, far), pair));
            }
        }
        for ([low, high], to) in sums.into_iter().zip(to.chunks_exact_mut(L::COUNT)) {
            lanes.store(low, high, to);
        }
    }
}

/// Weighs `lines`, which [`along_x`] made, for up to [`ROWS`] rows of bytes.
#[inline(always)]
fn along_y<L: Lanes>(lanes: L, lines: &[&[i16]], weights: &Weights, rows: &mut [&mut [u8]]) {
    let centre = lines.len() / 2 - ROWS / 2;
    for start in (0..rows[0].len()).step_by(L::COUNT) {
        let mut sums = [[lanes.every(1 << 22); 2]; ROWS];
        if weights.wraps {
            for (row, [low, high]) in sums.iter_mut().enumerate() {
                let middle = lanes.load(&lines[centre + row][start..]);
                *low = lanes.add(*low, lanes.low(lanes.every(0), middle));
                *high = lanes.add(*high, lanes.high(lanes.every(0), middle));
            }
        }
        let pairs = weights.pairs.as_chunks::<ROWS>().0;
        for (two, pairs) in lines.as_chunks::<2>().0.iter().zip(pairs) {
            let [a, b] = two.map(|line| lanes.load(&line[start..]));
            let (a, b) = (lanes.low(a, b), lanes.high(a, b));
            for ([low, high], &pair) in sums.iter_mut().zip(pairs) {
                let pair = lanes.every(pair);
                *low = lanes.add(*low, lanes.weigh(a, pair));
                *high = lanes.add(*high, lanes.weigh(b, pair));
            }
        }
        for (row, [low, high]) in rows.iter_mut().zip(sums) {
            match row.get_mut(start..start + L::COUNT) {
                Some(row) => lanes.store_bytes(low, high, row),
                None => {
                    let mut bytes = [0; 32];
                    lanes.store_bytes(low, high, &mut bytes);
                    let rest = &mut row[start..];
                    rest.copy_from_slice(&bytes[..rest.len()]);
                }
            }
        }
    }
}
