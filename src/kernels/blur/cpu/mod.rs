//! The blur on the CPU: runs a plan over samples in memory, on all cores.
//!
//! Loops over arrays of lanes are compiled to SIMD instructions for each level (see [`simd`](crate::util::simd)).

mod box_floats;
mod box_u16;
mod box_u8;
mod gaussian_tiles;
mod gaussian_u8;
mod gaussian_volume;
mod lanes;
mod lines;
mod number;
mod sliding;
mod sums;
mod task;
mod weighted;

pub use number::{Sample, nearest_u16};

use std::borrow::Cow;

use bytemuck::Pod;
use gaussian_u8::U8Sums;
use lanes::Lanes;
use lines::Lines;
use number::{NoRounding, Number, Round, ShiftU32};
use sums::{ExactSums, FloatSums, PairedSums, Tiled};

use task::CpuPasses;

use super::{
    params::{Edge, Values},
    plan::{Arithmetic, Pass, PassFormat, Rounding},
};
use crate::{
    data::{division::RoundedF64, grid::Shape, samples::Samples},
    util::{error::Result, simd},
};
use pulp::Arch;

/// The routes in the order in which they are tried on the remaining passes of a plan. The first that fits takes its
/// passes.
const ROUTES: [Route; 5] = [
    // Passes along two axes of an image, or all three of a volume: values between the passes stay in the cache.
    Route { passes: 2, run: gaussian_u8 },
    Route { passes: 2, run: box_u8::blur },
    Route { passes: 2, run: box_wide },
    Route { passes: 3, run: tiles },
    Route { passes: 2, run: tiles },
];

/// A way to compute two or three passes.
struct Route {
    passes: usize,
    /// The result of the task's first passes; `None` if the route cannot compute them.
    run: fn(&CpuPasses<'_>) -> Result<Option<Samples>>,
}

/// Runs all passes of `plan` over `values`, a grid of `shape`.
pub fn run<'d>(
    plan: &[Pass],
    edge: Edge,
    shape: Shape,
    mut values: Values<'d>,
) -> Result<Values<'d>> {
    let mut passes = plan;
    'passes: while let [pass, rest @ ..] = passes {
        for route in ROUTES.iter().filter(|route| route.passes <= passes.len()) {
            let task = CpuPasses { passes: &passes[..route.passes], edge, shape, values: &values };
            if let Some(blurred) = (route.run)(&task)? {
                (values, passes) = (Cow::Owned(blurred), &passes[route.passes..]);
                continue 'passes;
            }
        }
        let blurred = run_pass(&Lines::new(pass, edge, shape), &values)?;
        (values, passes) = (Cow::Owned(blurred), rest);
    }
    Ok(values)
}

/// Evaluates an expression for samples of 16 or 24 bits, with the type of its results.
macro_rules! for_wide {
    ($values:expr, $to:expr, |$source:ident, $target:ident| $blurred:expr) => {
        match ($values, $to) {
            (Samples::U16($source), PassFormat::U16) => {
                type $target = u16;
                Samples::from($blurred?)
            }
            (Samples::U16($source), _) => {
                type $target = u32;
                Samples::from($blurred?)
            }
            (Samples::U32($source), PassFormat::U16) => {
                type $target = u16;
                Samples::from($blurred?)
            }
            (Samples::U32($source), _) => {
                type $target = u32;
                Samples::from($blurred?)
            }
            _ => unreachable!("only 16 bits have fraction bits"),
        }
    };
}

/// Two passes of a Gaussian over u8 in 16-bit lanes, tile by tile.
fn gaussian_u8(task: &CpuPasses<'_>) -> Result<Option<Samples>> {
    match simd::arch() {
        #[cfg(target_arch = "x86_64")]
        Arch::V4(_) => gaussian_u8_lanes::<pulp::x86::V4>(task),
        #[cfg(target_arch = "x86_64")]
        Arch::V3(_) => gaussian_u8_lanes::<pulp::x86::V3>(task),
        _ => Ok(None),
    }
}

fn gaussian_u8_lanes<L: Lanes>(task: &CpuPasses<'_>) -> Result<Option<Samples>> {
    let CpuPasses { passes, edge, shape, values: Samples::U8(source) } = *task else {
        return Ok(None);
    };
    Ok(match tiles_fit::<U8Sums<L>>(passes, shape) {
        true => Some(blur_tiles::<U8Sums<L>, _, u8>(passes, edge, shape, source)?.into()),
        false => None,
    })
}

/// Two passes of a box filter over samples of 16 or 24 bits, row by row.
fn box_wide(task: &CpuPasses<'_>) -> Result<Option<Samples>> {
    let CpuPasses { passes: [x, y], edge, shape, values } = *task else { return Ok(None) };
    if !box_u16::fits([x, y], shape) {
        return Ok(None);
    }
    let blurred = for_wide!(values, y.to, |v, D| box_u16::blur::<_, D>([x, y], edge, shape, v));
    Ok(Some(blurred))
}

/// Two passes of a Gaussian over an image or three over a volume, tile by tile.
fn tiles(task: &CpuPasses<'_>) -> Result<Option<Samples>> {
    let CpuPasses { passes, edge, shape, values } = *task;
    Ok(Some(match values {
        Samples::F32(v) if tiles_fit::<FloatSums<f32>>(passes, shape) => {
            blur_tiles::<FloatSums<f32>, _, f32>(passes, edge, shape, v)?.into()
        }
        Samples::U16(_) | Samples::U32(_) if tiles_fit::<ExactSums>(passes, shape) => {
            let to = passes[passes.len() - 1].to;
            for_wide!(values, to, |v, D| blur_tiles::<ExactSums, _, D>(passes, edge, shape, v))
        }
        _ => return Ok(None),
    }))
}

fn tiles_fit<A: Tiled>(passes: &[Pass], shape: Shape) -> bool {
    match passes {
        [x, y, z] => gaussian_volume::fits::<A>([x, y, z], shape),
        [x, y] => gaussian_tiles::fits::<A>([x, y]),
        _ => false,
    }
}

fn blur_tiles<A: Tiled, T: Sample<A::Number>, D: Pod + Send>(
    passes: &[Pass],
    edge: Edge,
    shape: Shape,
    source: &[T],
) -> Result<Vec<D>>
where
    A::Round: Round<A::Number, D>,
{
    match passes {
        [x, y, z] => gaussian_volume::blur::<A, T, D>([x, y, z], edge, shape, source),
        [x, y] => gaussian_tiles::blur::<A, T, D>([x, y], edge, shape, source),
        _ => unreachable!("they do not fit"),
    }
}

/// A single pass of any formats, along any axis.
fn run_pass(lines: &Lines<'_>, values: &Samples) -> Result<Samples> {
    let Pass { arithmetic, rounding, integer_weights, .. } = lines.pass;
    let paired = |shift| PairedSums { weights: integer_weights.clone(), round: ShiftU32(shift) };
    match (values, arithmetic, *rounding) {
        (Samples::U8(v), _, _) if integer_weights.is_empty() => run_box(lines, v),
        (Samples::U16(v), _, _) if integer_weights.is_empty() => run_box(lines, v),
        (Samples::U32(v), Arithmetic::U39, Rounding::Divide { up, divisor }) => {
            Ok(sliding::blur::<_, f64, u32>(lines, v, RoundedF64::new(up, divisor))?.into())
        }
        (Samples::U32(v), _, _) if integer_weights.is_empty() => run_box(lines, v),
        (Samples::U8(v), Arithmetic::ExactF32, Rounding::Shift(shift)) => {
            let weights: Vec<f32> = integer_weights.iter().map(|&weight| weight as f32).collect();
            run_paired(lines, v, &PairedSums { weights, round: ShiftU32(shift) })
        }
        (Samples::U8(v), _, Rounding::Shift(shift)) => run_paired(lines, v, &paired(shift)),
        (Samples::U16(v), Arithmetic::U32, Rounding::Shift(shift)) => {
            run_paired(lines, v, &paired(shift))
        }
        (Samples::U16(_) | Samples::U32(_), ..) => {
            let sums = ExactSums::for_pass(lines.pass);
            Ok(for_wide!(values, lines.pass.to, |v, D| weighted::blur::<_, _, D>(lines, v, &sums)))
        }
        (Samples::F32(v), ..) => run_floats(lines, v),
        (Samples::F64(v), ..) => run_floats(lines, v),
        _ => unreachable!("no plan has a pass like {:?}", lines.pass),
    }
}

fn run_floats<T: Number + Sample<f64>>(lines: &Lines<'_>, source: &[T]) -> Result<Samples>
where
    NoRounding: Round<T, T> + Round<f64, T>,
    Samples: From<Vec<T>>,
{
    Ok(match lines.pass.is_long_float_box() {
        true => box_floats::blur(lines, source)?.into(),
        false => weighted::blur::<_, _, T>(lines, source, &FloatSums::<T>::new(lines.pass))?.into(),
    })
}

/// Weighted sums of integers below 2^32, to u8 or u16.
fn run_paired<T: Sample<N>, N: Number>(
    lines: &Lines<'_>,
    source: &[T],
    sums: &PairedSums<N>,
) -> Result<Samples>
where
    ShiftU32: Round<N, u8> + Round<N, u16>,
{
    Ok(match lines.pass.to {
        PassFormat::U8 => weighted::blur::<_, _, u8>(lines, source, sums)?.into(),
        _ => weighted::blur::<_, _, u16>(lines, source, sums)?.into(),
    })
}

/// Sums of a box filter of integers, to u8, u16 or u24.
fn run_box<T: Sample<u32>>(lines: &Lines<'_>, source: &[T]) -> Result<Samples> {
    Ok(match (lines.pass.rounding, lines.pass.to) {
        (Rounding::Divide { up, divisor }, PassFormat::U8) => {
            sliding::blur::<_, u32, u8>(lines, source, RoundedF64::new(up, divisor))?.into()
        }
        (Rounding::Divide { up, divisor }, PassFormat::U16) => {
            sliding::blur::<_, u32, u16>(lines, source, RoundedF64::new(up, divisor))?.into()
        }
        (Rounding::Divide { up, divisor }, _) => {
            sliding::blur::<_, u32, u32>(lines, source, RoundedF64::new(up, divisor))?.into()
        }
        (Rounding::Shift(0), PassFormat::U24) => {
            sliding::blur::<_, u32, u32>(lines, source, NoRounding)?.into()
        }
        (Rounding::Shift(shift), _) => {
            sliding::blur::<_, u32, u16>(lines, source, ShiftU32(shift))?.into()
        }
        (Rounding::None, _) => unreachable!("no plan has a pass like {:?}", lines.pass),
    })
}
