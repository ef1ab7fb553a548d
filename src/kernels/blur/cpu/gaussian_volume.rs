//! A Gaussian along x, y and z in tiles, so that values between the passes stay in the cache. Chosen for volumes of 16
//! bits and f32, unless the Gaussian is so wide that tiles would have too few rows.
//!
//! ```text
//! source slices  -> along x and y ->   ring of 2 radius + 8 planes   -> along z ->   8 target slices
//! ```

use bytemuck::Pod;
use pulp::{Simd, WithSimd};

use super::{
    Edge, Pass, Shape,
    gaussian_tiles::{ImagePasses, Tile},
    number::{Round, Sample},
    sums::{LANES, Tiled},
};
use crate::util::{error::Result, memory, parallel::Parallel, simd};

/// Number of slices that are summed along z before the next slices are summed along x and y.
const SLICES: usize = 8;
/// Maximum number of samples of a tile's planes between the passes, which should stay in the cache.
const CACHE: usize = 1 << 17;

/// Whether this route can compute three passes with the sums `A`.
pub fn fits<A: Tiled>([x, y, z]: [&Pass; 3], shape: Shape) -> bool {
    [x, y, z].iter().all(|pass| A::fits(pass))
        && (x.axis, y.axis, z.axis) == (0, 1, 2)
        && shape.channels == 1
        && tile_size(y, z).is_some()
}

/// Width and height of tiles; `None` if a tile would have fewer rows than its halo.
fn tile_size(y: &Pass, z: &Pass) -> Option<[usize; 2]> {
    let planes = 2 * z.taps.radius + SLICES;
    let sizes = [LANES, LANES / 2].map(|width| [width, CACHE / planes / width]);
    sizes.into_iter().find(|&[_, height]| height >= (2 * y.taps.radius).max(1))
}

/// Computes three passes that fit.
pub fn blur<A: Tiled, T: Sample<A::Number>, D: Pod + Send>(
    [x, y, z]: [&Pass; 3],
    edge: Edge,
    shape: Shape,
    source: &[T],
) -> Result<Vec<D>>
where
    A::Round: Round<A::Number, D>,
{
    let [width, height, depth] = shape.dims;
    let [tile_width, tile_height] = tile_size(y, z).expect("they fit");
    let counts = [width.div_ceil(tile_width), height.div_ceil(tile_height)];
    // Neighbouring tiles along z compute the planes between them twice. So the volume is cut along z only if there
    // would be too few tiles for all threads.
    let wanted = (4 * rayon::current_num_threads()).div_ceil(counts[0] * counts[1]);
    let cuts = wanted.min(depth / (4 * z.taps.radius).max(1)).max(1);
    let tile_depth = depth.div_ceil(cuts);
    let plane = ImagePasses::new([x, y], edge, shape);
    let passes = VolumePasses::<A> { plane, edge, shape, y, z, sums: A::for_pass(z) };
    let mut target = memory::zeros(source.len())?;
    let number = counts[0] * counts[1] * depth.div_ceil(tile_depth);
    let mut tiles = memory::collected((0..number).map(|number| VolumeTile {
        passes: &passes,
        source,
        left: number % counts[0] * tile_width,
        top: number / counts[0] % counts[1] * tile_height,
        first: number / (counts[0] * counts[1]) * tile_depth,
        rows: Vec::new(),
    }));
    for (at, row) in target.chunks_exact_mut(width).enumerate() {
        let [y, z] = [at % height / tile_height, at / height / tile_depth];
        let first = (z * counts[1] + y) * counts[0];
        let tiles = &mut tiles[first..first + counts[0]];
        tiles
            .iter_mut()
            .zip(row.chunks_mut(tile_width))
            .for_each(|(tile, row)| tile.rows.push(row));
    }
    tiles.into_iter().par_fold(Vec::new, |ring, tile| simd::dispatch(TileWithRing { tile, ring }));
    Ok(target)
}

struct VolumePasses<'a, A> {
    /// Passes along x and y.
    plane: ImagePasses<'a, A>,
    edge: Edge,
    shape: Shape,
    y: &'a Pass,
    z: &'a Pass,
    /// Sums along z.
    sums: A,
}

/// A part of a volume that one thread blurs.
struct VolumeTile<'a, A, T, D> {
    passes: &'a VolumePasses<'a, A>,
    source: &'a [T],
    /// The first sample of each row.
    left: usize,
    /// The first row of each slice.
    top: usize,
    /// The first slice.
    first: usize,
    /// The tile's rows of the target, slice by slice.
    rows: Vec<&'a mut [D]>,
}

struct TileWithRing<'a, 'r, A: Tiled, T, D> {
    tile: VolumeTile<'a, A, T, D>,
    /// Planes between the passes, in the memory of the thread's previous tile.
    ring: &'r mut Vec<A::Intermediate>,
}

impl<A: Tiled, T: Sample<A::Number>, D: Pod> WithSimd for TileWithRing<'_, '_, A, T, D>
where
    A::Round: Round<A::Number, D>,
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { tile: VolumeTile { passes, source, left, top, first, mut rows }, ring } = self;
        let VolumePasses { plane, edge, shape: Shape { dims, .. }, y, z, sums } = passes;
        let tile_height = tile_size(y, z).expect("they fit")[1];
        let (width, height) = (rows[0].len(), tile_height.min(dims[1] - top));
        let stride = width.next_multiple_of(A::lanes::<S>());
        let radius = z.taps.radius;
        let ring_len = 2 * radius + SLICES;
        memory::resize(ring, ring_len * height * stride).unwrap_or_else(memory::raise);
        let offset = |plane: isize| plane.rem_euclid(ring_len as isize) as usize * height * stride;
        let mut next = first as isize - radius as isize;
        for (number, rows) in rows.chunks_mut(SLICES * height).enumerate() {
            let start = (first + number * SLICES) as isize - radius as isize;
            let end = start + (rows.len() / height + 2 * radius) as isize;
            for at in next..end {
                let plane_rows = &mut ring[offset(at)..][..height * stride];
                let Some(inside) = edge.map(at, dims[2]) else {
                    plane_rows.fill(A::Intermediate::from_f64(z.fill[0]));
                    continue;
                };
                let slice = dims[0] * dims[1];
                let source = &source[inside * slice..][..slice];
                let rows = plane_rows.chunks_exact_mut(stride).collect();
                Tile { passes: plane, source, left, top, rows }.with_simd(simd);
            }
            next = end;
            let mut lines: Vec<&[_]> = (start..end).map(|at| &ring[offset(at)..]).collect();
            for row in 0..height {
                sums.across_lines::<S, _, D>(&lines, &mut rows[row..], height);
                lines.iter_mut().for_each(|line| *line = &line[stride..]);
            }
        }
    }
}
