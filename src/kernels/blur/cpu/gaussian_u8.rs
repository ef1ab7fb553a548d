//! A Gaussian of u8 along x and then y, tile by tile, so that values between the passes stay in the cache, in
//! 16-bit products summed in pairs. Chosen for one iteration over an image, with radii below
//! [`LONG_RADIUS`](super::super::plan), on processors with AVX2.
//!
//! Integers throughout: sums along x are below 2^24 and become 15 bits, 7 of them fraction; sums along
//! y are below 2^31. All arithmetic is exact modulo 2^32, so results are those of pass by pass.

use super::{Arithmetic, Edge, Format, Pass, Rounding, Shape, lanes::Lanes, lines::Lines};
use crate::{error::Result, memory, parallel::Parallel, simd};
use pulp::Arch;

/// Rows that are summed together along y: each loaded line goes into all of them.
const ROWS: usize = 4;
/// Vectors that are summed together along x.
const VECTORS: usize = 4;
/// Tile widths are multiples of this many samples: whole pixels and whole vectors.
const TILE_STEP: usize = 192;
/// Samples, of two bytes each, of a tile's lines between the passes, which are to stay in the cache.
const CACHE: usize = 1 << 18;

/// Blurs `source` by both passes of `plan`, if they are of that kind and the processor has the instructions.
///
/// # Errors
/// [`Kind::Failure`](crate::error::Kind::Failure) when there is no memory for the result.
pub fn blur(plan: &[Pass], edge: Edge, shape: Shape, source: &[u8]) -> Result<Option<Vec<u8>>> {
    let [x, y] = plan else { return Ok(None) };
    if (x.axis, x.arithmetic, x.rounding) != (0, Arithmetic::ExactF32, Rounding::Shift(9))
        || (y.axis, y.arithmetic, y.rounding) != (1, Arithmetic::U32, Rounding::Shift(23))
        || y.to != Format::U8
    {
        return Ok(None);
    }
    let weights = [Weights::along_x(&x.integer_weights), Weights::along_y(&y.integer_weights)];
    let job = Job { x, y, weights: &weights, edge, shape };
    match simd::arch() {
        #[cfg(target_arch = "x86_64")]
        Arch::V4(simd) => job.run(simd, source).map(Some),
        #[cfg(target_arch = "x86_64")]
        Arch::V3(simd) => job.run(simd, source).map(Some),
        _ => Ok(None),
    }
}

/// Weights of a pass, two as the i16 of an i32 each.
struct Weights {
    pairs: Vec<i32>,
    /// Whether the centre's weight is beyond i16, and so 2^16 too small as one.
    centre_wraps: bool,
}

fn pair(first: u32, second: u32) -> i32 {
    (first & 0xffff | second << 16) as i32
}

impl Weights {
    /// For sums of the two samples at each distance, of distances 0 and 1, 2 and 3, ... The centre is
    /// its own partner, so its weight is halved; it is even.
    fn along_x(half: &[u32]) -> Self {
        let weight = |i: usize| match i {
            0 => half[0] / 2,
            _ => half.get(i).copied().unwrap_or(0),
        };
        let pairs = (0..half.len()).step_by(2).map(|i| pair(weight(i), weight(i + 1))).collect();
        Self { pairs, centre_wraps: weight(0) > i16::MAX as u32 }
    }

    /// For lines 0 and 1, 2 and 3, ... of those that [`ROWS`] rows depend on: a pair for each row.
    fn along_y(half: &[u32]) -> Self {
        let radius = half.len() as isize - 1;
        let weight = |tap: isize| match (tap - radius).unsigned_abs() {
            distance if distance < half.len() => half[distance],
            _ => 0,
        };
        let lines = 2 * radius + ROWS as isize;
        let pairs = (0..lines)
            .step_by(2)
            .flat_map(|line| {
                (0..ROWS as isize).map(move |row| pair(weight(line - row), weight(line - row + 1)))
            })
            .collect();
        Self { pairs, centre_wraps: half[0] > i16::MAX as u32 }
    }
}

#[derive(Clone, Copy)]
struct Job<'a> {
    x: &'a Pass,
    y: &'a Pass,
    weights: &'a [Weights; 2],
    edge: Edge,
    shape: Shape,
}

impl Job<'_> {
    fn run<L: Lanes>(&self, lanes: L, source: &[u8]) -> Result<Vec<u8>> {
        let [width, height, _] = self.shape.dims;
        let row = width * self.shape.channels;
        let window = 2 * self.y.taps.radius + 2 * ROWS;
        // Lines between the passes: all of a tile's where those are few, else a ring of them.
        let keep_all = height <= 2 * window;
        let kept = if keep_all { height + 1 } else { window };
        let tile_width = (CACHE / kept / TILE_STEP).max(2) * TILE_STEP;
        let tile_height = match keep_all {
            true => height,
            false => (height / (2 * rayon::current_num_threads())).clamp(4 * window, 16 * window),
        };
        let mut target = memory::zeros(source.len())?;
        let slices = source.chunks_exact(row * height).zip(target.chunks_exact_mut(row * height));
        for (source, target) in slices {
            let mut tiles = Vec::new();
            for (number, strip) in target.chunks_mut(tile_height * row).enumerate() {
                let mut across: Vec<Vec<&mut [u8]>> = Vec::new();
                across.resize_with(row.div_ceil(tile_width), Vec::new);
                for row in strip.chunks_exact_mut(row) {
                    let parts = row.chunks_mut(tile_width).zip(&mut across);
                    parts.for_each(|(part, rows)| rows.push(part));
                }
                tiles.extend(across.into_iter().enumerate().map(|(x, rows)| (number, x, rows)));
            }
            tiles.into_iter().par_each(|(y, x, rows)| {
                let (left, top) = (x * tile_width, y * tile_height);
                let tile = Tile { job: self, source, left, top, kept, keep_all };
                lanes.vectorize(
                    #[inline(always)]
                    || tile.run(lanes, rows),
                );
            });
        }
        Ok(target)
    }
}

/// A part of an image that one thread blurs.
struct Tile<'a> {
    job: &'a Job<'a>,
    source: &'a [u8],
    /// The first sample of each row.
    left: usize,
    /// The first row.
    top: usize,
    /// Lines between the passes that are kept.
    kept: usize,
    /// Whether all lines are kept, and one of the constant outside; otherwise the kept lines are a ring.
    keep_all: bool,
}

impl Tile<'_> {
    #[inline(always)]
    fn run<L: Lanes>(&self, lanes: L, mut rows: Vec<&mut [u8]>) {
        let Job { x, y, weights: [x_weights, y_weights], edge, shape } = *self.job;
        let (height, radius) = (shape.dims[1], y.taps.radius as isize);
        let width = rows[0].len();
        let stride = width.next_multiple_of(VECTORS * L::COUNT);
        let lines = Lines::new(x, edge, shape);
        let (row_len, margin) = (lines.block(), x.taps.radius * shape.channels);
        let mut padded = vec![0; stride + 2 * margin + L::COUNT];
        let mut kept = vec![0; stride * self.kept];
        // The kept line of row `at`, which may be outside of the image.
        let index = |at: isize| match self.keep_all {
            true => edge.map(at, height).unwrap_or(height),
            false => at.rem_euclid(self.kept as isize) as usize,
        };
        let mut next = if self.keep_all { 0 } else { self.top as isize - radius };
        for (number, rows) in rows.chunks_mut(ROWS).enumerate() {
            let first = (self.top + number * ROWS) as isize - radius;
            let end = first + 2 * radius + ROWS as isize;
            let needed = if self.keep_all { height as isize + 1 } else { end };
            for at in next..needed {
                let (row, line) = match self.keep_all {
                    true => ((at < height as isize).then_some(at as usize), at as usize),
                    false => (edge.map(at, height), index(at)),
                };
                let row = row.map(|y| &self.source[y * row_len..][..row_len]);
                lines.pad_part(row, self.left, width, &mut padded, i16::from, |value| value as i16);
                let line = &mut kept[line * stride..][..stride];
                along_x(lanes, &padded, x_weights, [x.taps.radius, shape.channels], line);
            }
            next = next.max(needed);
            let taps: Vec<&[i16]> =
                (first..end).map(|at| &kept[index(at) * stride..][..stride]).collect();
            along_y(lanes, &taps, y_weights, rows);
        }
    }
}

/// Sums along x of samples up to `radius` times `step` apart, rounded to 7 fraction bits.
#[inline(always)]
fn along_x<L: Lanes>(
    lanes: L,
    padded: &[i16],
    weights: &Weights,
    [radius, step]: [usize; 2],
    to: &mut [i16],
) {
    let span = VECTORS * L::COUNT;
    let centre = radius * step;
    for (number, to) in to.chunks_exact_mut(span).enumerate() {
        let padded = &padded[number * span..][..2 * centre + span];
        let mut sums = [[lanes.splat_i32(1 << 8); 2]; VECTORS];
        if weights.centre_wraps {
            for (i, sums) in sums.iter_mut().enumerate() {
                let middle = lanes.load(&padded[centre + i * L::COUNT..]);
                add_shifted(lanes, lanes.add_i16(middle, middle), sums);
            }
        }
        for (i, &pair) in weights.pairs.iter().enumerate() {
            let pair = lanes.splat_i32(pair);
            // Distances of even and odd taps; beyond the radius the weight is 0.
            let (even, odd) = (2 * i * step, (2 * i + 1).min(radius) * step);
            let [a, b] = [centre - even, centre + even].map(|at| &padded[at..at + span]);
            let [c, d] = [centre - odd, centre + odd].map(|at| &padded[at..at + span]);
            for (i, sums) in sums.iter_mut().enumerate() {
                let at = i * L::COUNT;
                let even = lanes.add_i16(lanes.load(&a[at..]), lanes.load(&b[at..]));
                let odd = lanes.add_i16(lanes.load(&c[at..]), lanes.load(&d[at..]));
                add_products(lanes, lanes.interleave(even, odd), pair, sums);
            }
        }
        for (sums, to) in sums.into_iter().zip(to.chunks_exact_mut(L::COUNT)) {
            lanes.store_i16(sums, to);
        }
    }
}

/// Sums along y of the `lines` that [`along_x`] made, for up to [`ROWS`] rows of u8.
#[inline(always)]
fn along_y<L: Lanes>(lanes: L, lines: &[&[i16]], weights: &Weights, rows: &mut [&mut [u8]]) {
    let centre = lines.len() / 2 - ROWS / 2;
    for start in (0..rows[0].len()).step_by(L::COUNT) {
        let mut sums = [[lanes.splat_i32(1 << 22); 2]; ROWS];
        if weights.centre_wraps {
            for (row, sums) in sums.iter_mut().enumerate() {
                add_shifted(lanes, lanes.load(&lines[centre + row][start..]), sums);
            }
        }
        let pairs = weights.pairs.as_chunks::<ROWS>().0;
        for (two, pairs) in lines.as_chunks::<2>().0.iter().zip(pairs) {
            let [a, b] = two.map(|line| lanes.load(&line[start..]));
            let samples = lanes.interleave(a, b);
            for (sums, &pair) in sums.iter_mut().zip(pairs) {
                add_products(lanes, samples, lanes.splat_i32(pair), sums);
            }
        }
        for (row, sums) in rows.iter_mut().zip(sums) {
            match row.get_mut(start..start + L::COUNT) {
                Some(row) => lanes.store_u8(sums, row),
                None => {
                    let mut bytes = [0; 32];
                    lanes.store_u8(sums, &mut bytes);
                    let rest = &mut row[start..];
                    rest.copy_from_slice(&bytes[..rest.len()]);
                }
            }
        }
    }
}

/// Adds the products of interleaved samples with a pair of weights.
#[inline(always)]
fn add_products<L: Lanes>(
    lanes: L,
    samples: [L::Vector; 2],
    pair: L::Vector,
    sums: &mut [L::Vector; 2],
) {
    for (sum, samples) in sums.iter_mut().zip(samples) {
        *sum = lanes.add_i32(*sum, lanes.multiply_pairs(samples, pair));
    }
}

/// Adds 2^16 times `samples`, which a centre weight that wraps around i16 is too small by.
#[inline(always)]
fn add_shifted<L: Lanes>(lanes: L, samples: L::Vector, sums: &mut [L::Vector; 2]) {
    let shifted = lanes.interleave(lanes.splat_i32(0), samples);
    for (sum, shifted) in sums.iter_mut().zip(shifted) {
        *sum = lanes.add_i32(*sum, shifted);
    }
}
