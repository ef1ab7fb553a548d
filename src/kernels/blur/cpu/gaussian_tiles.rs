//! A Gaussian along x and then y in tiles, so that values between the passes stay in the cache. Chosen for 8-bit
//! samples on processors with [16-bit lanes](super::lanes), for 16-bit samples, and for f32.
//!
//! ```text
//! source rows    -> along x ->   ring of 2 radius + 8 lines   -> along y ->   8 target rows
//! ```

use bytemuck::{Pod, Zeroable};
use pulp::{Simd, WithSimd};

use super::{
    Edge, Pass, Shape,
    lines::Lines,
    number::{Round, Sample},
    sums::{LANES, Tiled},
};
use crate::util::{error::Result, memory, parallel::Parallel, simd};

/// Number of rows that are summed along y before the next rows are summed along x.
const ROWS: usize = 8;

/// Whether this route can compute two passes with the sums `A`.
pub fn fits<A: Tiled>([x, y]: [&Pass; 2]) -> bool {
    [x, y].iter().all(|pass| A::fits(pass)) && (x.axis, y.axis) == (0, 1)
}

/// Computes two passes that fit.
pub fn blur<A: Tiled, T: Sample<A::Number>, D: Pod + Send>(
    [x, y]: [&Pass; 2],
    edge: Edge,
    shape: Shape,
    source: &[T],
) -> Result<Vec<D>>
where
    A::Round: Round<A::Number, D>,
{
    let [width, height, _] = shape.dims;
    let row = width * shape.channels;
    let (buffered, holds_all) = buffered_lines(y, height);
    // Whole pixels and whole vectors.
    let step = LANES * shape.channels;
    let tile_width = (A::CACHE / buffered / step).max(1) * step;
    let tile_height = match holds_all {
        true => height,
        // The first lines of a tile are also computed for the tile above.
        false => (height / (2 * rayon::current_num_threads())).clamp(2 * buffered, 16 * buffered),
    };
    let passes = ImagePasses::<A>::new([x, y], edge, shape);
    let mut target = memory::zeros(source.len())?;
    let mut tiles = Vec::new();
    let slices = source.chunks_exact(row * height).zip(target.chunks_exact_mut(row * height));
    for (source, target) in slices {
        for (number, strip) in target.chunks_mut(tile_height * row).enumerate() {
            let mut across: Vec<Vec<&mut [D]>> = Vec::new();
            across.resize_with(row.div_ceil(tile_width), Vec::new);
            for row in strip.chunks_exact_mut(row) {
                let parts = row.chunks_mut(tile_width).zip(&mut across);
                parts.for_each(|(part, rows)| rows.push(part));
            }
            let top = number * tile_height;
            let tile =
                |(i, rows)| Tile { passes: &passes, source, left: i * tile_width, top, rows };
            tiles.extend(across.into_iter().enumerate().map(tile));
        }
    }
    tiles.into_iter().par_each(simd::dispatch);
    Ok(target)
}

/// Number of lines that are buffered between the passes. The flag is true if these are all lines of an image of `height`
/// rows and one line of the constant outside, false if they are a ring.
fn buffered_lines(y: &Pass, height: usize) -> (usize, bool) {
    let ring = 2 * y.taps.radius + ROWS;
    if height <= 2 * ring { (height + 1, true) } else { (ring, false) }
}

/// Two passes over an image.
pub struct ImagePasses<'a, A> {
    x: &'a Pass,
    y: &'a Pass,
    edge: Edge,
    shape: Shape,
    sums: [A; 2],
}

impl<'a, A: Tiled> ImagePasses<'a, A> {
    pub fn new([x, y]: [&'a Pass; 2], edge: Edge, shape: Shape) -> Self {
        Self { x, y, edge, shape, sums: [x, y].map(A::for_pass) }
    }
}

/// A part of an image that one thread blurs.
pub struct Tile<'a, A, T, D> {
    pub passes: &'a ImagePasses<'a, A>,
    pub source: &'a [T],
    /// The first sample of each row.
    pub left: usize,
    /// The first row.
    pub top: usize,
    /// The tile's rows of the target, which may be longer than those of the image.
    pub rows: Vec<&'a mut [D]>,
}

impl<A: Tiled, T: Sample<A::Number>, D: Pod> WithSimd for Tile<'_, A, T, D>
where
    A::Round: Round<A::Number, D>,
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { passes: ImagePasses { x, y, edge, shape, sums }, source, left, top, mut rows } =
            self;
        let lines = Lines::new(x, *edge, *shape);
        let (height, row) = (shape.dims[1], lines.block());
        let [across, radius] = [x, y].map(|pass| pass.taps.radius);
        let width = rows[0].len();
        let stride = width.next_multiple_of(A::lanes::<S>());
        let mut padded = memory::filled(A::Number::default(), stride + 2 * across * lines.inner);
        // A tile with only some rows of the image keeps a ring.
        let (buffered, holds_all) = match buffered_lines(y, height) {
            (_, true) if rows.len() < height => (2 * radius + ROWS, false),
            buffered => buffered,
        };
        let mut ring = memory::filled(A::Intermediate::zeroed(), stride * buffered);
        // Offset of the buffered line of row `at`, which may be outside of the image.
        let line = |at: isize| match holds_all {
            true => edge.map(at, height).unwrap_or(height) * stride,
            false => at.rem_euclid(buffered as isize) as usize * stride,
        };
        let mut next = if holds_all { 0 } else { top as isize - radius as isize };
        for (number, rows) in rows.chunks_mut(ROWS).enumerate() {
            let first = (top + number * ROWS) as isize - radius as isize;
            let end = first + (rows.len() + 2 * radius) as isize;
            let needed = if holds_all { height as isize + 1 } else { end };
            for at in next..needed {
                let (inside, to) = match holds_all {
                    true => (Some(at as usize).filter(|&y| y < height), at as usize * stride),
                    false => (edge.map(at, height), line(at)),
                };
                let target = &mut ring[to..][..stride];
                let Some(inside) = inside else {
                    let samples = target.iter_mut().enumerate();
                    let fill = |i: usize| A::Intermediate::from_f64(y.fill[i % shape.channels]);
                    samples.for_each(|(i, to)| *to = fill(i));
                    continue;
                };
                let source = &source[inside * row..][..row];
                lines.pad_part(source, left, width, &mut padded);
                sums[0].along_row::<S, _>(&padded, lines.inner, target);
            }
            next = next.max(needed);
            let taps: Vec<&[A::Intermediate]> =
                (first..end).map(|at| &ring[line(at)..][..stride]).collect();
            sums[1].across_lines::<S, _, D>(&taps, rows, 1);
        }
    }
}
