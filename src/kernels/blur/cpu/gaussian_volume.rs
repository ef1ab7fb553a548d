//! A Gaussian in f32 along x, y and z, tile by tile, so that what lies between stays in the cache. Chosen for volumes of
//! 16 bits and f32, unless the Gaussian is so wide that tiles would have too few rows.
//!
//! Each sum is made of the same products in the same order as pass by pass, and so is the same.
//!
//! ```text
//! source slices  -> along x and y ->   ring of 2 radius + 8 planes   -> along z ->   8 target slices
//! ```

use bytemuck::Zeroable;
use pulp::{Simd, WithSimd};

use super::{
    Arithmetic, Edge, Pass, Shape,
    gaussian_f32::{self, Tile},
    number::{Keep, Round, Sample},
    weighted::{LANES, store, sums},
};
use crate::{error::Result, memory, parallel::Parallel, simd};

/// Slices that are summed along z before the next slices are along x and y.
const SLICES: usize = 8;
/// Samples of a tile's planes between the passes: what stays in the cache.
const CACHE: usize = 1 << 17;

/// Whether three passes are of this kind.
pub fn fits([x, y, z]: [&Pass; 3], shape: Shape) -> bool {
    [x, y, z].iter().all(|pass| pass.arithmetic == Arithmetic::F32)
        && (x.axis, y.axis, z.axis) == (0, 1, 2)
        && shape.channels == 1
        && tile_size(y, z).is_some()
}

/// The width and height of tiles; nothing where each would make as many rows for its neighbours as for itself.
fn tile_size(y: &Pass, z: &Pass) -> Option<[usize; 2]> {
    let planes = 2 * z.taps.radius + SLICES;
    let sizes = [2 * LANES, LANES].map(|width| [width, CACHE / planes / width]);
    sizes.into_iter().find(|&[_, height]| height >= (2 * y.taps.radius).max(1))
}

/// Blurs `source` by three passes that fit, and rounds each sum.
///
/// # Errors
/// When there is no memory.
pub fn blur<T: Sample<f32>, D: Zeroable + Copy + Send>(
    [x, y, z]: [&Pass; 3],
    edge: Edge,
    shape: Shape,
    source: &[T],
    round: impl Round<f32, D>,
) -> Result<Vec<D>> {
    let [width, height, depth] = shape.dims;
    let [tile_width, tile_height] = tile_size(y, z).expect("they fit");
    let counts = [width.div_ceil(tile_width), height.div_ceil(tile_height)];
    // A tile begins with planes that the tile below has made as well: there are more along z only where threads would
    // have nothing to do.
    let wanted = (4 * rayon::current_num_threads()).div_ceil(counts[0] * counts[1]);
    let parts = wanted.min(depth / (4 * z.taps.radius).max(1)).max(1);
    let tile_depth = depth.div_ceil(parts);
    let plane = gaussian_f32::Job { x, y, edge, shape, round: Keep };
    let job = Job { plane, z, round };
    let mut target = memory::zeros(source.len())?;
    let number = counts[0] * counts[1] * depth.div_ceil(tile_depth);
    let mut tiles: Vec<_> = (0..number)
        .map(|number| Block {
            job: &job,
            source,
            left: number % counts[0] * tile_width,
            top: number / counts[0] % counts[1] * tile_height,
            first: number / (counts[0] * counts[1]) * tile_depth,
            rows: Vec::new(),
        })
        .collect();
    for (at, row) in target.chunks_exact_mut(width).enumerate() {
        let [y, z] = [at % height / tile_height, at / height / tile_depth];
        let first = (z * counts[1] + y) * counts[0];
        let tiles = &mut tiles[first..first + counts[0]];
        tiles
            .iter_mut()
            .zip(row.chunks_mut(tile_width))
            .for_each(|(tile, row)| tile.rows.push(row));
    }
    tiles.into_iter().par_fold(Vec::new, |ring, block| simd::dispatch(Work { block, ring }));
    Ok(target)
}

struct Job<'a, R> {
    /// Along x and y.
    plane: gaussian_f32::Job<'a, Keep>,
    z: &'a Pass,
    round: R,
}

/// A part of a volume that one thread blurs.
struct Block<'a, T, D, R> {
    job: &'a Job<'a, R>,
    source: &'a [T],
    /// The first sample of each row.
    left: usize,
    /// The first row of each slice.
    top: usize,
    /// The first slice.
    first: usize,
    /// Those of the target, slice by slice.
    rows: Vec<&'a mut [D]>,
}

struct Work<'a, 'r, T, D, R> {
    block: Block<'a, T, D, R>,
    /// Of the thread's block before this one, to be used again.
    ring: &'r mut Vec<f32>,
}

impl<T: Sample<f32>, D, R: Round<f32, D>> WithSimd for Work<'_, '_, T, D, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { block: Block { job, source, left, top, first, mut rows }, ring } = self;
        let gaussian_f32::Job { edge, shape: Shape { dims, .. }, .. } = job.plane;
        let tile_height = tile_size(job.plane.y, job.z).expect("they fit")[1];
        let (width, height) = (rows[0].len(), tile_height.min(dims[1] - top));
        let stride = width.next_multiple_of(LANES);
        let (weights, radius) = (&job.z.float_weights[..], job.z.taps.radius);
        let kept = 2 * radius + SLICES;
        ring.resize(kept * height * stride, 0.0);
        let planes = |range: isize| range.rem_euclid(kept as isize) as usize * height * stride;
        let mut next = first as isize - radius as isize;
        for (number, rows) in rows.chunks_mut(SLICES * height).enumerate() {
            let slices = rows.len() / height;
            let start = (first + number * SLICES) as isize - radius as isize;
            let end = start + (slices + 2 * radius) as isize;
            for at in next..end {
                let plane = &mut ring[planes(at)..][..height * stride];
                let Some(inside) = edge.map(at, dims[2]) else {
                    plane.fill(job.z.fill[0] as f32);
                    continue;
                };
                let slice = dims[0] * dims[1];
                let source = &source[inside * slice..][..slice];
                let rows = plane.chunks_exact_mut(stride).collect();
                Tile { job: &job.plane, source, left, top, rows }.with_simd(simd);
            }
            next = end;
            let taps: Vec<&[f32]> = (start..end).map(|at| &ring[planes(at)..]).collect();
            for row in 0..height {
                for from in (0..width).step_by(LANES) {
                    let to = (from + LANES).min(width);
                    for slice in 0..slices {
                        let tap = |i: isize| {
                            &taps[(slice + radius).wrapping_add_signed(i)][row * stride + from..]
                        };
                        let sums = sums::<S, _, _, LANES>(weights, tap);
                        let target = &mut rows[slice * height + row][from..to];
                        store::<_, _, _, LANES>(&sums, target, job.round);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::super::{Blur, Format, Method, Taps, Values},
        super::{lines::Lines, nearest_u16, number::Nearest, run_pass},
        *,
    };

    /// Whatever tiles there are, bits are those of pass after pass.
    #[test]
    fn sums_are_those_of_one_pass_after_the_other() {
        let sigmas = [[2.0, 2.0, 2.0], [0.5, 3.0, 6.0], [4.0, 0.4, 1.0]];
        let all = [[130, 70, 40], [1, 1, 3], [64, 257, 5], [200, 3, 91], [65, 2, 1]];
        let edges = [Edge::Clamp, Edge::Reflect, Edge::Mirror, Edge::Wrap, Edge::Constant(777.0)];
        for (dims, edge) in all.into_iter().zip(edges) {
            let shape = Shape { dims, channels: 1 };
            let value = |i: usize| (i as u32).wrapping_mul(2_654_435_761).to_be_bytes();
            let source: Vec<u16> = (0..dims.iter().product())
                .map(|i| u16::from_be_bytes([value(i)[0], value(i)[1]]))
                .collect();
            for sigma in sigmas {
                let axes = sigma.map(|sigma| Taps::gaussian(sigma, (3.0 * sigma).ceil() as usize));
                let blur =
                    Blur { method: Method::Gaussian, axes, iterations: 1, edge, linear: false };
                let plan = blur.plan(Format::F32, [777.0; 4]);
                let [x, y, z] = &plan[..] else { panic!("{plan:?}") };
                assert!(fits([x, y, z], shape));
                let floats: Vec<f32> = source.iter().map(|&v| v.into()).collect();
                let mut values = Values::F32(floats.clone().into());
                for pass in &plan {
                    values = run_pass(&Lines::new(pass, edge, shape), &values).unwrap();
                }
                let Values::F32(expected) = values else { panic!("the type changed") };
                let found = blur_of([x, y, z], edge, shape, &floats);
                assert!(found == *expected, "{dims:?} {sigma:?} {edge:?}");
                let found: Vec<u16> =
                    super::blur([x, y, z], edge, shape, &source, Nearest).unwrap();
                let expected: Vec<u16> = expected.iter().map(|&v| nearest_u16(v)).collect();
                assert!(found == expected, "{dims:?} {sigma:?} {edge:?}");
            }
        }
    }

    fn blur_of(plan: [&Pass; 3], edge: Edge, shape: Shape, source: &[f32]) -> Vec<f32> {
        super::blur(plan, edge, shape, source, Keep).unwrap()
    }
}
