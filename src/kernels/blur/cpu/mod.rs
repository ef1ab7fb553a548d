//! The CPU twin: runs a plan over values in memory, on all cores.
//!
//! Loops run over arrays in lanes that the compiler turns into SIMD instructions, once a level (see
//! [`simd`](crate::simd)).

mod box_columns;
mod box_rows;
mod box_u8;
mod columns;
mod gaussian_f32;
mod gaussian_u8;
mod gaussian_volume;
mod lanes;
mod lines;
mod number;
mod rows;
mod weighted;

use std::borrow::Cow;

pub use number::nearest_u16;

use lines::Lines;
use number::{Keep, Nearest, Number, Round, Sample, ScaleF64, ShiftU32};

use super::{
    Edge, Method, Shape, Values,
    plan::{Arithmetic, Format, Pass, Rounding},
};
use crate::{data::division::RoundedF64, error::Result};

/// Runs every pass of `plan` over `values`, a raster of `shape`.
///
/// # Errors
/// When there is no memory for the result of a pass.
pub fn run<'d>(
    plan: &[Pass],
    edge: Edge,
    shape: Shape,
    mut values: Values<'d>,
) -> Result<Values<'d>> {
    // Both axes of a u8 image at once: what lies between stays in the cache.
    if let Values::U8(source) = &values {
        for route in [gaussian_u8::blur, box_u8::blur] {
            if let Some(blurred) = route(plan, edge, shape, source)? {
                return Ok(blurred.into());
            }
        }
    }
    let mut plan = plan;
    while let [pass, rest @ ..] = plan {
        plan = match (&values, rest) {
            (Values::F32(source), [y, z, rest @ ..])
                if gaussian_volume::fits([pass, y, z], shape) =>
            {
                let blurred = gaussian_volume::blur([pass, y, z], edge, shape, source, Keep)?;
                values = Values::F32(Cow::Owned(blurred));
                rest
            }
            (Values::F32(source), [next, rest @ ..]) if gaussian_f32::fits([pass, next]) => {
                let blurred = gaussian_f32::blur([pass, next], edge, shape, source, Keep)?;
                values = Values::F32(Cow::Owned(blurred));
                rest
            }
            _ => {
                values = run_pass(&Lines::new(pass, edge, shape), &values)?;
                rest
            }
        };
    }
    Ok(values)
}

/// Runs a Gaussian of two or three passes in f32 over samples of u16, without a copy of them as f32; nothing where the plan
/// is another.
///
/// # Errors
/// When there is no memory for the result.
pub fn run_u16(
    plan: &[Pass],
    edge: Edge,
    shape: Shape,
    source: &[u16],
) -> Result<Option<Vec<u16>>> {
    match plan {
        [x, y] if gaussian_f32::fits([x, y]) => {
            gaussian_f32::blur([x, y], edge, shape, source, Nearest).map(Some)
        }
        [x, y, z] if gaussian_volume::fits([x, y, z], shape) => {
            gaussian_volume::blur([x, y, z], edge, shape, source, Nearest).map(Some)
        }
        _ => Ok(None),
    }
}

/// Runs every pass of `plan` over `values`, a raster of `shape`, with weights and sums of f64 in place of f32.
///
/// # Errors
/// When there is no memory for the result of a pass.
pub fn run_f64(
    plan: &[Pass],
    method: Method,
    edge: Edge,
    shape: Shape,
    mut values: Vec<f64>,
) -> Result<Vec<f64>> {
    for pass in plan {
        let weights = pass.taps.half_weights(method);
        values = weighted(&Lines::new(pass, edge, shape), &values, &weights, Keep)?;
    }
    Ok(values)
}

/// One pass by itself: any formats, along any axis.
fn run_pass(lines: &Lines<'_>, values: &Values<'_>) -> Result<Values<'static>> {
    let Pass { arithmetic, rounding, integer_weights, float_weights, .. } = lines.pass;
    match (values, arithmetic, *rounding) {
        (Values::U8(v), _, _) if integer_weights.is_empty() => run_box(lines, v),
        (Values::U16(v), _, _) if integer_weights.is_empty() => run_box(lines, v),
        (Values::U8(v), Arithmetic::ExactF32, Rounding::Shift(shift)) => {
            let weights: Vec<f32> = integer_weights.iter().map(|&weight| weight as f32).collect();
            run_weighted(lines, v, &weights, ShiftU32(shift))
        }
        (Values::U8(v), _, Rounding::Shift(shift)) => {
            run_weighted(lines, v, integer_weights, ShiftU32(shift))
        }
        (Values::U16(v), _, Rounding::Shift(shift)) => {
            run_weighted(lines, v, integer_weights, ShiftU32(shift))
        }
        (Values::U24(v), _, Rounding::Shift(shift)) => {
            let weights: Vec<f64> = integer_weights.iter().map(|&weight| weight.into()).collect();
            Ok(weighted(lines, v, &weights, ScaleF64::shift(shift))?.into())
        }
        (Values::F32(v), ..) => Ok(weighted(lines, v, float_weights, Keep)?.into()),
        _ => unreachable!("no plan has a pass like {:?}", lines.pass),
    }
}

/// Weighted sums of integers, to u8 or u16.
fn run_weighted<T: Sample<N>, N: Number, R: Round<N, u8> + Round<N, u16>>(
    lines: &Lines<'_>,
    source: &[T],
    weights: &[N],
    round: R,
) -> Result<Values<'static>> {
    Ok(match lines.pass.to {
        Format::U8 => weighted::<_, _, u8>(lines, source, weights, round)?.into(),
        _ => weighted::<_, _, u16>(lines, source, weights, round)?.into(),
    })
}

fn weighted<T: Sample<N>, N: Number, D: bytemuck::Zeroable + Copy + Send>(
    lines: &Lines<'_>,
    source: &[T],
    weights: &[N],
    round: impl Round<N, D>,
) -> Result<Vec<D>> {
    match lines.pass.axis {
        0 => rows::blur(lines, source, weights, round),
        _ => columns::blur(lines, source, weights, round),
    }
}

/// Sums of a box filter, to u8 or u16.
fn run_box<T: Sample<u32>>(lines: &Lines<'_>, source: &[T]) -> Result<Values<'static>> {
    Ok(match (lines.pass.rounding, lines.pass.to) {
        (Rounding::Divide { up, divisor }, Format::U8) => {
            sliding::<_, u8>(lines, source, RoundedF64::new(up, divisor))?.into()
        }
        (Rounding::Divide { up, divisor }, _) => {
            sliding::<_, u16>(lines, source, RoundedF64::new(up, divisor))?.into()
        }
        (Rounding::Shift(shift), _) => sliding::<_, u16>(lines, source, ShiftU32(shift))?.into(),
        (Rounding::None, _) => unreachable!("no plan has a pass like {:?}", lines.pass),
    })
}

fn sliding<T: Sample<u32>, D: bytemuck::Zeroable + Copy + Send>(
    lines: &Lines<'_>,
    source: &[T],
    round: impl Round<u32, D>,
) -> Result<Vec<D>> {
    match lines.pass.axis {
        0 => box_rows::blur(lines, source, round),
        _ => box_columns::blur(lines, source, round),
    }
}
