//! A Gaussian along x and then y, tile by tile, so that values between the passes stay in the cache. Chosen for samples
//! of 16 bits and f32, and for those of 8 bits in 24.
//!
//! ```text
//! source rows    -> along x ->   ring of 2 radius + 8 lines   -> along y ->   8 target rows
//! ```

use bytemuck::Zeroable;
use pulp::{Simd, WithSimd};

use super::{
    Edge, Pass, Shape,
    lines::Lines,
    number::{Round, Sample},
    tiled::Tiled,
    weighted::LANES,
};
use crate::{error::Result, memory, parallel::Parallel, simd};

/// Rows that are summed along y before the next rows are along x.
const ROWS: usize = 8;
/// Samples of a tile's lines between the passes: what stays in the cache.
const CACHE: usize = 1 << 17;

/// Whether two passes are of this kind.
pub fn fits<A: Tiled>([x, y]: [&Pass; 2]) -> bool {
    [x, y].iter().all(|pass| A::fits(pass)) && (x.axis, y.axis) == (0, 1)
}

/// Blurs `source` by two passes that fit.
///
/// # Errors
/// When there is no memory.
pub fn blur<A: Tiled, T: Sample<A::Wide>, D: Zeroable + Copy + Send>(
    [x, y]: [&Pass; 2],
    edge: Edge,
    shape: Shape,
    source: &[T],
) -> Result<Vec<D>>
where
    A::Round: Round<A::Wide, D>,
{
    let [width, height, _] = shape.dims;
    let row = width * shape.channels;
    let kept = 2 * y.taps.radius + ROWS;
    // Whole pixels and whole vectors.
    let step = LANES * shape.channels;
    let tile_width = (CACHE / kept / step).max(1) * step;
    // The tile above computes the first rows of a tile as well.
    let tile_height = (height / (2 * rayon::current_num_threads())).max(2 * kept);
    let job = Job::<A>::new([x, y], edge, shape);
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
            let tile = |(i, rows)| Tile { job: &job, source, left: i * tile_width, top, rows };
            tiles.extend(across.into_iter().enumerate().map(tile));
        }
    }
    tiles.into_iter().par_each(simd::dispatch);
    Ok(target)
}

/// Two passes over an image.
pub struct Job<'a, A> {
    x: &'a Pass,
    y: &'a Pass,
    edge: Edge,
    shape: Shape,
    sums: [A; 2],
}

impl<'a, A: Tiled> Job<'a, A> {
    pub fn new([x, y]: [&'a Pass; 2], edge: Edge, shape: Shape) -> Self {
        Self { x, y, edge, shape, sums: [x, y].map(A::new) }
    }
}

/// A part of an image that one thread blurs.
pub struct Tile<'a, A, T, D> {
    pub job: &'a Job<'a, A>,
    pub source: &'a [T],
    /// The first sample of each row.
    pub left: usize,
    /// The first row.
    pub top: usize,
    /// The tile's rows of the target; they may reach beyond the image.
    pub rows: Vec<&'a mut [D]>,
}

impl<A: Tiled, T: Sample<A::Wide>, D> WithSimd for Tile<'_, A, T, D>
where
    A::Round: Round<A::Wide, D>,
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { job: Job { x, y, edge, shape, sums }, source, left, top, mut rows } = self;
        let lines = Lines::new(x, *edge, *shape);
        let (height, row) = (shape.dims[1], lines.block());
        let [across, radius] = [x, y].map(|pass| pass.taps.radius);
        let width = rows[0].len();
        let stride = width.next_multiple_of(LANES);
        let mut padded = vec![A::Wide::default(); stride + 2 * across * lines.inner];
        let kept = 2 * radius + ROWS;
        let mut ring = vec![A::Kept::zeroed(); stride * kept];
        let line = |at: isize| at.rem_euclid(kept as isize) as usize * stride;
        let mut next = top as isize - radius as isize;
        for (number, rows) in rows.chunks_mut(ROWS).enumerate() {
            let first = (top + number * ROWS) as isize - radius as isize;
            let end = first + (rows.len() + 2 * radius) as isize;
            for at in next..end {
                let source = edge.map(at, height).map(|y| &source[y * row..][..row]);
                lines.pad_part(source, left, width, &mut padded, T::widen, A::Wide::from_f64);
                let target = &mut ring[line(at)..][..stride];
                sums[0].along_row(simd, &padded, lines.inner, target);
            }
            next = end;
            let taps: Vec<&[A::Kept]> =
                (first..end).map(|at| &ring[line(at)..][..stride]).collect();
            sums[1].across_lines::<S, D>(&taps, rows, 1);
        }
    }
}
