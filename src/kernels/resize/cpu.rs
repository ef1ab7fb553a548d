//! Resampling on the CPU.

use std::ops::Range;

use super::plan::Pass;
use crate::{
    data::{dtype::Scalar, samples::Samples},
    util::{error::Result, parallel::Parallel, simd::vectorize},
};

/// Neighbouring results whose sums are in registers or the first-level cache.
const LANES: usize = 128;

/// A type in which weighted samples are summed up, and its weights.
trait Arithmetic<From, To>: Copy + Send + Sync {
    type Weight: Copy + Send + Sync;
    const ZERO: Self;
    fn add(self, weight: Self::Weight, sample: From) -> Self;
    fn finish(self, shift: u32, max: u32) -> To;
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
            fn finish(self, shift: u32, max: u32) -> $To {
                ((self + (1 << (shift - 1))) >> shift).clamp(0, max as $Sum) as $To
            }
        })+
    };
}

// Samples of 12 bits times weights fit i32.
integers! {
    i32: u8 u8; i32: u8 u16; i32: u16 u16; i32: u16 u8;
    i64: u16 u16; i64: u16 u32; i64: u32 u32; i64: u32 u16;
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
            fn finish(self, _: u32, _: u32) -> $Float {
                self
            }
        })+
    };
}

floats!(f32 f64);

/// The result of `passes`, one after another.
pub fn run(passes: &[Pass], samples: &Samples) -> Result<Samples> {
    let mut current: Option<Samples> = None;
    for pass in passes {
        current = Some(run_pass(pass, current.as_ref().unwrap_or(samples))?);
    }
    current.map_or_else(|| samples.copy(), Ok)
}

fn run_pass(pass: &Pass, samples: &Samples) -> Result<Samples> {
    // Samples of 16 bits with a fraction are those of 8 bits.
    let is_narrow = pass.max <= 255 << 4;
    let mut result = Samples::zeros(pass.formats[1].dtype, pass.output().samples())?;
    let [_, length, inner] = pass.shape.along(pass.axis);
    // Infinite floats times 0 are not 0.
    let padded = || Pass { weights: pass.weights.clone().padded(length), ..*pass };
    let padded = (inner <= 4 && !samples.dtype().is_float()).then(padded);
    let pass = padded.as_ref().unwrap_or(pass);
    let floats = &pass.weights.weights;
    let integers = if samples.dtype().is_float() { Vec::new() } else { pass.weights.integers() };
    match (samples, &mut result) {
        (Samples::U8(from), Samples::U8(to)) => weigh::<i32, _, _>(pass, &integers, from, to),
        (Samples::U8(from), Samples::U16(to)) => weigh::<i32, _, _>(pass, &integers, from, to),
        (Samples::U16(from), Samples::U8(to)) => weigh::<i32, _, _>(pass, &integers, from, to),
        (Samples::U16(from), Samples::U16(to)) => match is_narrow {
            true => weigh::<i32, _, _>(pass, &integers, from, to),
            false => weigh::<i64, _, _>(pass, &integers, from, to),
        },
        (Samples::U16(from), Samples::U32(to)) => weigh::<i64, _, _>(pass, &integers, from, to),
        (Samples::U32(from), Samples::U16(to)) => weigh::<i64, _, _>(pass, &integers, from, to),
        (Samples::U32(from), Samples::U32(to)) => weigh::<i64, _, _>(pass, &integers, from, to),
        (Samples::F32(from), Samples::F32(to)) => {
            let single = |weights: &Vec<f64>| weights.iter().map(|&weight| weight as f32).collect();
            let singles: Vec<Vec<f32>> = floats.iter().map(single).collect();
            weigh::<f32, _, _>(pass, &singles, from, to);
        }
        (Samples::F64(from), Samples::F64(to)) => weigh::<f64, _, _>(pass, floats, from, to),
        _ => unreachable!("passes keep the kind of samples"),
    }
    Ok(result)
}

/// Fills `to` with weighted sums of `from`.
fn weigh<S: Arithmetic<F, T>, F: Scalar, T: Scalar>(
    pass: &Pass,
    weights: &[Vec<S::Weight>],
    from: &[F],
    to: &mut [T],
) {
    let [_, length, inner] = pass.shape.along(pass.axis);
    let (count, windows) = (weights.len(), &pass.weights.windows);
    let rounding = (pass.shift(), pass.max);
    if inner > 4 {
        to.chunks_mut(inner).enumerate().par_each(|(row, to)| {
            let (outer, position) = (row / count, row % count);
            let from = &from[(outer * length + windows[position].start) * inner..];
            let weights = &weights[position];
            vectorize(
                #[inline(always)]
                || weigh_rows::<S, F, T>(weights, from, to, rounding),
            );
        });
        return;
    }
    to.chunks_mut(count * inner).enumerate().par_each(|(outer, to)| {
        let from = &from[outer * length * inner..][..length * inner];
        let weigh = match inner {
            1 => weigh_pixels::<S, F, T, 1>,
            2 => weigh_pixels::<S, F, T, 2>,
            3 => weigh_pixels::<S, F, T, 3>,
            _ => weigh_pixels::<S, F, T, 4>,
        };
        weigh((windows, weights), from, to, rounding);
    });
}

/// Weighs whole rows, of which `from` begins with the first.
#[inline(always)]
fn weigh_rows<S: Arithmetic<F, T>, F: Scalar, T: Scalar>(
    weights: &[S::Weight],
    from: &[F],
    to: &mut [T],
    (shift, max): (u32, u32),
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
            *to = sum.finish(shift, max);
        }
    }
}

/// Weighs the pixels of a row, of `C` samples each.
fn weigh_pixels<S: Arithmetic<F, T>, F: Scalar, T: Scalar, const C: usize>(
    (windows, weights): (&[Range<usize>], &[Vec<S::Weight>]),
    from: &[F],
    to: &mut [T],
    (shift, max): (u32, u32),
) {
    vectorize(
        #[inline(always)]
        || {
            let (to, from) = (to.as_chunks_mut::<C>().0, from.as_chunks::<C>().0);
            for ((to, weights), window) in to.iter_mut().zip(weights).zip(windows) {
                let mut sums = [S::ZERO; C];
                for (&weight, pixel) in weights.iter().zip(&from[window.clone()]) {
                    for (sum, &sample) in sums.iter_mut().zip(pixel) {
                        *sum = sum.add(weight, sample);
                    }
                }
                *to = sums.map(
                    #[inline(always)]
                    |sum| sum.finish(shift, max),
                );
            }
        },
    );
}
