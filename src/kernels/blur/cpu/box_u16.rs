//! A box filter along x and then y, row by row, so that values between the passes stay in the cache. Chosen for 16-bit
//! samples, and for 8-bit samples with alpha or in linear light, if the rows of a window fit in the cache.
//!
//! ```text
//! source rows   -> along x ->   ring of 2 radius + 1 rows   -> sums slide along y ->   target rows
//! ```

use bytemuck::Pod;

use super::{
    Arithmetic, Edge, Pass, PassFormat, Rounding, Shape,
    lines::Lines,
    number::{Round, Sample},
    sliding::{LANES, Window, sum_row},
};
use crate::{
    data::division::RoundedF64,
    util::{error::Result, memory, parallel::Parallel},
};

/// Maximum bytes of the rows of a window: half of a core's second-level cache.
const CACHE: usize = 1 << 19;

/// Whether this route can compute two passes over a grid of `shape`.
pub fn fits([x, y]: [&Pass; 2], shape: Shape) -> bool {
    let divides = |pass: &Pass| {
        pass.arithmetic == Arithmetic::U32 && matches!(pass.rounding, Rounding::Divide { .. })
    };
    let row = shape.dims[0] * shape.channels;
    (x.axis, y.axis, x.to) == (0, 1, PassFormat::U24)
        && [x, y].into_iter().all(divides)
        && y.taps.count() * row * size_of::<u32>() <= CACHE
}

/// Computes two passes that fit.
pub fn blur<T: Sample<u32>, D: Pod + Send>(
    [x, y]: [&Pass; 2],
    edge: Edge,
    shape: Shape,
    source: &[T],
) -> Result<Vec<D>>
where
    RoundedF64: Round<u32, D>,
{
    let height = shape.dims[1];
    let x_lines = Lines::new(x, edge, shape);
    let row = x_lines.block();
    let fill = memory::collected((0..row).map(|i| y.fill[i % shape.channels] as u32));
    let passes = TwoPasses { x: x_lines, y, edge, fill, rounding: [x, y].map(rounding) };
    // The first rows of a strip are also summed along x for the strip above.
    let rows = height.div_ceil(2 * rayon::current_num_threads()).max(4 * y.taps.count());
    let mut target = memory::zeros(source.len())?;
    let slices = source.chunks_exact(row * height).zip(target.chunks_exact_mut(row * height));
    let strips = slices.flat_map(|(source, target)| {
        let strips = target.chunks_mut(rows * row).enumerate();
        strips.map(move |(number, target)| (source, number * rows, target))
    });
    memory::collected(strips).into_iter().par_fold(
        || Scratch::new(&passes),
        |scratch, (source, top, target)| passes.run(scratch, source, top as isize, target),
    );
    Ok(target)
}

fn rounding(pass: &Pass) -> RoundedF64 {
    let Rounding::Divide { up, divisor } = pass.rounding else { unreachable!("they fit") };
    RoundedF64::new(up, divisor)
}

struct TwoPasses<'a> {
    x: Lines<'a>,
    y: &'a Pass,
    edge: Edge,
    /// A row outside of the image, for a constant edge.
    fill: Vec<u32>,
    /// Rounding of sums along x and y.
    rounding: [RoundedF64; 2],
}

/// The memory of a thread.
struct Scratch {
    /// A source row with the radius on both sides, and more samples for sums of several taps.
    padded: Vec<u32>,
    /// Rows summed along x.
    ring: Vec<u32>,
    /// Sums along y.
    sums: Vec<u32>,
}

impl Scratch {
    fn new(passes: &TwoPasses<'_>) -> Self {
        let row = passes.x.block();
        Self {
            padded: memory::filled(0, row + 2 * passes.x.radius() * passes.x.inner + LANES),
            ring: memory::filled(0, row * passes.y.taps.count()),
            sums: memory::filled(0, row),
        }
    }
}

impl TwoPasses<'_> {
    /// Computes the rows of `target`, the first of which is row `top` of `source`.
    fn run<T: Sample<u32>, D>(
        &self,
        Scratch { padded, ring, sums }: &mut Scratch,
        source: &[T],
        top: isize,
        target: &mut [D],
    ) where
        RoundedF64: Round<u32, D>,
    {
        let (row, ring_len) = (self.x.block(), self.y.taps.count());
        let (radius, height) = (self.y.taps.radius as isize, source.len() / row);
        // Rows of a window before its last.
        let before_last = ring_len as isize - 1;
        let offset = |at: isize| at.rem_euclid(ring_len as isize) as usize * row;
        let mut enter = |ring: &mut [u32], at: isize| {
            let summed = &mut ring[offset(at)..][..row];
            match self.edge.map(at, height) {
                Some(inside) => {
                    let source = &source[inside * row..][..row];
                    sum_row(&self.x, source, padded, summed, self.rounding[0]);
                }
                None => summed.copy_from_slice(&self.fill),
            }
        };
        sums.fill(0);
        for at in top - radius..top - radius + before_last {
            enter(ring, at);
            let entered = &ring[offset(at)..][..row];
            sums.iter_mut().zip(entered).for_each(|(sum, value)| *sum = sum.wrapping_add(*value));
        }
        for (at, target) in (top..).zip(target.chunks_exact_mut(row)) {
            let last = at - radius + before_last;
            enter(ring, last);
            let line = |at: isize| &ring[offset(at)..][..row];
            let (entering, leaving) = (line(last), line(at - radius));
            Window { entering, leaving, sums: &mut sums[..] }.advance(self.rounding[1], target);
        }
    }
}
