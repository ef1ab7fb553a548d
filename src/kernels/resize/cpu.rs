//! Resampling on the CPU.

use std::ops::Range;

use super::{
    plan::{Pass, TABLE},
    weights::Weights,
};
use crate::{
    data::{dtype::Scalar, samples::Samples},
    util::{
        error::Result,
        parallel::{self, Parallel},
        simd::vectorize,
    },
};

/// Neighbouring results whose sums are in registers or the first-level cache.
const LANES: usize = 128;

/// Pixels of a row that a thread computes at a time.
const PIECE: usize = 1 << 13;

/// A type in which weighted samples are summed up, and its weights.
trait Arithmetic<From, To>: Copy + Send + Sync {
    type Weight: Copy + Send + Sync;
    const ZERO: Self;
    fn add(self, weight: Self::Weight, sample: From) -> Self;
    fn finish(self, rounding: Rounding) -> To;
}

/// How a sum of integers becomes a result: divided by 2^`shift`, and clamped to `range`.
#[derive(Clone, Copy)]
struct Rounding {
    shift: u32,
    range: [i32; 2],
}

macro_rules! integers {
    ($($Sum:ident: $From:ident $To:ident;)+) => {
        $(impl Arithmetic<$From, $To> for $Sum {
            type Weight = i32;
            const ZERO: Self = 0;
            #[inline(always)]
            fn add(self, weight: i32, sample: $From) -> Self {
                self + weight as $Sum * sample as $Sum
            }
            #[inline(always)]
            fn finish(self, Rounding { shift, range: [min, max] }: Rounding) -> $To {
                ((self + (1 << (shift - 1))) >> shift).clamp(min as $Sum, max as $Sum) as $To
            }
        })+
    };
}

integers! {
    i32: u8 u8; i32: u8 i16; i32: i16 i16; i32: i16 u8;
    i64: u16 u16; i64: u16 i32; i64: i32 i32; i64: i32 u16;
    i64: u32 u32; i64: u32 i32; i64: i32 u32;
}

macro_rules! floats {
    ($($Float:ident)+) => {
        $(impl Arithmetic<$Float, $Float> for $Float {
            type Weight = $Float;
            const ZERO: Self = 0.0;
            #[inline(always)]
            fn add(self, weight: $Float, sample: $Float) -> Self {
                weight.mul_add(sample, self)
            }
            #[inline(always)]
            fn finish(self, _: Rounding) -> $Float {
                self
            }
        })+
    };
}

floats!(f32 f64);

/// The result of `passes`, one after another.
pub fn run(passes: &[Pass], samples: &Samples) -> Result<Samples> {
    let Some(last) = passes.last() else { return samples.copy() };
    // A result that is too large for the memory fails here, before any work.
    let mut result = Samples::zeros(last.formats[1].dtype, last.result().samples())?;
    let mut current: Option<Samples> = None;
    for pass in &passes[..passes.len() - 1] {
        let mut next = Samples::zeros(pass.formats[1].dtype, pass.result().samples())?;
        run_pass(pass, current.as_ref().unwrap_or(samples), &mut next)?;
        current = Some(next);
    }
    run_pass(last, current.as_ref().unwrap_or(samples), &mut result)?;
    Ok(result)
}

fn run_pass(pass: &Pass, samples: &Samples, result: &mut Samples) -> Result<()> {
    let [_, _, inner] = pass.shape.along(pass.axis);
    // Infinite floats times 0 are not 0.
    let is_padded = inner <= 4 && !samples.dtype().is_float();
    let block = (TABLE / pass.filter.taps()).max(1);
    for start in (0..pass.output.len()).step_by(block) {
        let part = start..(start + block).min(pass.output.len());
        let weights = &pass.weights(part.clone(), is_padded)?;
        match (samples, &mut *result) {
            (Samples::F32(from), Samples::F32(to)) => {
                let singles = parallel::mapped(&weights.weights, |&weight| weight as f32)?;
                weigh::<f32, _, _>(pass, (weights, &singles), part, (from, to));
                continue;
            }
            (Samples::F64(from), Samples::F64(to)) => {
                weigh::<f64, _, _>(pass, (weights, &weights.weights), part, (from, to));
                continue;
            }
            _ => {}
        }
        let integers = weights.integers(pass.weight_fraction)?;
        let table = (weights, &integers[..]);
        macro_rules! weigh {
            ($($Sum:ident: $From:ident $To:ident;)+) => {
                match (samples, &mut *result) {
                    $((Samples::$From(from), Samples::$To(to)) => {
                        weigh::<$Sum, _, _>(pass, table, part, (from, to));
                    })+
                    _ => unreachable!("passes keep the kind of samples"),
                }
            };
        }
        weigh! {
            i32: U8 U8; i32: U8 I16; i32: I16 I16; i32: I16 U8;
            i64: U16 U16; i64: U16 I32; i64: I32 I32; i64: I32 U16;
            i64: U32 U32; i64: U32 I32; i64: I32 U32;
        }
    }
    Ok(())
}

/// Fills the results `part` of `to` with weighted sums of `from`.
fn weigh<S: Arithmetic<F, T>, F: Scalar, T: Scalar>(
    pass: &Pass,
    (table, weights): (&Weights, &[S::Weight]),
    part: Range<usize>,
    (from, to): (&[F], &mut [T]),
) {
    let [_, length, inner] = pass.shape.along(pass.axis);
    let (windows, stride, count) = (&table.windows, table.stride, pass.output.len());
    let rounding = Rounding { shift: pass.shift(), range: pass.range };
    to.chunks_mut((count * inner).max(1)).enumerate().par_each(|(outer, to)| {
        let from = &from[outer * length * inner..][..length * inner];
        let to = &mut to[part.start * inner..part.end * inner];
        if inner > 4 {
            return to.chunks_mut(inner).enumerate().par_each(|(position, to)| {
                let window = &windows[position];
                let from = &from[window.start * inner..];
                let weights = &weights[position * stride..][..window.len()];
                vectorize(
                    #[inline(always)]
                    || weigh_rows::<S, F, T>(weights, from, to, rounding),
                );
            });
        }
        let weigh = match inner {
            1 => weigh_pixels::<S, F, T, 1>,
            2 => weigh_pixels::<S, F, T, 2>,
            3 => weigh_pixels::<S, F, T, 3>,
            _ => weigh_pixels::<S, F, T, 4>,
        };
        to.chunks_mut(PIECE * inner).enumerate().par_each(|(piece, to)| {
            let (windows, weights) =
                (&windows[piece * PIECE..], &weights[piece * PIECE * stride..]);
            weigh((windows, weights, stride), from, to, rounding);
        });
    });
}

/// Weighs whole rows, of which `from` begins with the first.
#[inline(always)]
fn weigh_rows<S: Arithmetic<F, T>, F: Scalar, T: Scalar>(
    weights: &[S::Weight],
    from: &[F],
    to: &mut [T],
    rounding: Rounding,
) {
    let inner = to.len();
    for (number, to) in to.chunks_mut(LANES).enumerate() {
        let mut sums = [S::ZERO; LANES];
        for (tap, &weight) in weights.iter().enumerate() {
            let from = &from[tap * inner + number * LANES..][..to.len()];
            for (sum, &sample) in sums.iter_mut().zip(from) {
                *sum = sum.add(weight, sample);
            }
        }
        for (to, sum) in to.iter_mut().zip(sums) {
            *to = sum.finish(rounding);
        }
    }
}

/// Weighs the pixels of a row, of `C` samples each.
fn weigh_pixels<S: Arithmetic<F, T>, F: Scalar, T: Scalar, const C: usize>(
    (windows, weights, stride): (&[Range<usize>], &[S::Weight], usize),
    from: &[F],
    to: &mut [T],
    rounding: Rounding,
) {
    vectorize(
        #[inline(always)]
        || {
            let (to, from) = (to.as_chunks_mut::<C>().0, from.as_chunks::<C>().0);
            let rows = weights.chunks_exact(stride);
            for ((to, weights), window) in to.iter_mut().zip(rows).zip(windows) {
                let mut sums = [S::ZERO; C];
                for (&weight, pixel) in weights.iter().zip(&from[window.clone()]) {
                    for (sum, &sample) in sums.iter_mut().zip(pixel) {
                        *sum = sum.add(weight, sample);
                    }
                }
                *to = sums.map(
                    #[inline(always)]
                    |sum| sum.finish(rounding),
                );
            }
        },
    );
}
