//! The CPU twin: runs a plan over values in memory, on all cores.
//!
//! Loops run over arrays in lanes that the compiler turns into SIMD instructions, once a level (see
//! [`simd`](crate::simd)).

mod box_columns;
mod box_floats;
mod box_rows;
mod box_u16;
mod box_u8;
mod columns;
mod gaussian_tiles;
mod gaussian_u8;
mod gaussian_volume;
mod lanes;
mod lines;
mod number;
mod rows;
mod tiled;
mod weighted;

pub use number::nearest_u16;

use lines::Lines;
use number::{Keep, Number, Round, Sample, ScaleF64, ShiftU32};
use tiled::{Exact, Float, Tiled};

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
    // Both axes of a u8 image at once, so that sums between the passes stay in the cache.
    if let Values::U8(source) = &values {
        for route in [gaussian_u8::blur, box_u8::blur] {
            if let Some(blurred) = route(plan, edge, shape, source)? {
                return Ok(blurred.into());
            }
        }
    }
    let mut plan = plan;
    while let [pass, rest @ ..] = plan {
        if let Values::F32(source) = &values
            && box_floats::fits(pass)
        {
            values = box_floats::blur(&Lines::new(pass, edge, shape), source)?.into();
            plan = rest;
            continue;
        }
        if let [x, y, rest @ ..] = plan
            && box_u16::fits([x, y], shape)
        {
            (values, plan) = (wide_box([x, y], edge, shape, &values)?, rest);
            continue;
        }
        let taken = match &values {
            Values::U8(_) => 0,
            Values::U16(_) | Values::U24(_) => tiled_passes::<Exact>(plan, shape),
            Values::F32(_) => tiled_passes::<Float>(plan, shape),
        };
        let (passes, rest) = plan.split_at(taken.max(1));
        values = match (&values, passes[passes.len() - 1].to) {
            _ if taken == 0 => run_pass(&Lines::new(pass, edge, shape), &values)?,
            (Values::U16(v), Format::U16) => tiles::<Exact, _, u16>(passes, edge, shape, v)?,
            (Values::U16(v), _) => tiles::<Exact, _, u32>(passes, edge, shape, v)?,
            (Values::U24(v), Format::U16) => tiles::<Exact, _, u16>(passes, edge, shape, v)?,
            (Values::U24(v), _) => tiles::<Exact, _, u32>(passes, edge, shape, v)?,
            (Values::F32(v), _) => tiles::<Float, _, f32>(passes, edge, shape, v)?,
            (Values::U8(_), _) => unreachable!("u8 is not of either arithmetic"),
        };
        plan = rest;
    }
    Ok(values)
}

/// Two passes of a box filter, row by row, over samples of 16 or 24 bits.
fn wide_box(
    passes: [&Pass; 2],
    edge: Edge,
    shape: Shape,
    values: &Values<'_>,
) -> Result<Values<'static>> {
    Ok(match (values, passes[1].to) {
        (Values::U16(v), Format::U16) => box_u16::blur::<_, u16>(passes, edge, shape, v)?.into(),
        (Values::U16(v), _) => box_u16::blur::<_, u32>(passes, edge, shape, v)?.into(),
        (Values::U24(v), Format::U16) => box_u16::blur::<_, u16>(passes, edge, shape, v)?.into(),
        (Values::U24(v), _) => box_u16::blur::<_, u32>(passes, edge, shape, v)?.into(),
        (Values::U8(_) | Values::F32(_), _) => unreachable!("only 16 bits have fraction bits"),
    })
}

/// How many of the first passes of `plan` go tile by tile in arithmetic `A`: 2 of an image, 3 of a volume; else 0.
fn tiled_passes<A: Tiled>(plan: &[Pass], shape: Shape) -> usize {
    match plan {
        [x, y, z, ..] if gaussian_volume::fits::<A>([x, y, z], shape) => 3,
        [x, y, ..] if gaussian_tiles::fits::<A>([x, y]) => 2,
        _ => 0,
    }
}

/// Runs two or three passes tile by tile.
fn tiles<A: Tiled, T: Sample<A::Wide>, D: bytemuck::Zeroable + Copy + Send>(
    passes: &[Pass],
    edge: Edge,
    shape: Shape,
    source: &[T],
) -> Result<Values<'static>>
where
    A::Round: Round<A::Wide, D>,
    Values<'static>: From<Vec<D>>,
{
    Ok(match passes {
        [x, y, z] => gaussian_volume::blur::<A, T, D>([x, y, z], edge, shape, source)?.into(),
        [x, y] => gaussian_tiles::blur::<A, T, D>([x, y], edge, shape, source)?.into(),
        _ => unreachable!("tiles have two or three axes"),
    })
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
        let lines = Lines::new(pass, edge, shape);
        values = if box_floats::fits(pass) {
            box_floats::blur(&lines, &values)?
        } else {
            weighted(&lines, &values, &pass.taps.half_weights(method), Keep)?
        };
    }
    Ok(values)
}

/// One pass by itself: any formats, along any axis.
fn run_pass(lines: &Lines<'_>, values: &Values<'_>) -> Result<Values<'static>> {
    let Pass { arithmetic, rounding, integer_weights, float_weights, .. } = lines.pass;
    match (values, arithmetic, *rounding) {
        (Values::U8(v), _, _) if integer_weights.is_empty() => run_box(lines, v),
        (Values::U16(v), _, _) if integer_weights.is_empty() => run_box(lines, v),
        (Values::U24(v), Arithmetic::U39, Rounding::Divide { up, divisor }) => {
            Ok(sliding::<_, f64, u32>(lines, v, RoundedF64::new(up, divisor))?.into())
        }
        (Values::U24(v), _, _) if integer_weights.is_empty() => run_box(lines, v),
        (Values::U8(v), Arithmetic::ExactF32, Rounding::Shift(shift)) => {
            let weights: Vec<f32> = integer_weights.iter().map(|&weight| weight as f32).collect();
            run_weighted(lines, v, &weights, ShiftU32(shift))
        }
        (Values::U8(v), _, Rounding::Shift(shift)) => {
            run_weighted(lines, v, integer_weights, ShiftU32(shift))
        }
        (Values::U16(v), Arithmetic::U32, Rounding::Shift(shift)) => {
            run_weighted(lines, v, integer_weights, ShiftU32(shift))
        }
        (Values::U16(v), _, Rounding::Shift(shift)) => run_exact(lines, v, shift),
        (Values::U24(v), _, Rounding::Shift(shift)) => run_exact(lines, v, shift),
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

/// Weighted sums of whole numbers below 2^52, to u16 or u24.
fn run_exact<T: Sample<f64>>(
    lines: &Lines<'_>,
    source: &[T],
    shift: u32,
) -> Result<Values<'static>> {
    let weights: Vec<f64> = lines.pass.integer_weights.iter().map(|&w| w.into()).collect();
    let round = ScaleF64::shift(shift);
    Ok(match lines.pass.to {
        Format::U16 => weighted::<_, _, u16>(lines, source, &weights, round)?.into(),
        _ => weighted::<_, _, u32>(lines, source, &weights, round)?.into(),
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

/// Sums of a box filter, to u8, u16 or u24.
fn run_box<T: Sample<u32>>(lines: &Lines<'_>, source: &[T]) -> Result<Values<'static>> {
    Ok(match (lines.pass.rounding, lines.pass.to) {
        (Rounding::Divide { up, divisor }, Format::U8) => {
            sliding::<_, u32, u8>(lines, source, RoundedF64::new(up, divisor))?.into()
        }
        (Rounding::Divide { up, divisor }, Format::U16) => {
            sliding::<_, u32, u16>(lines, source, RoundedF64::new(up, divisor))?.into()
        }
        (Rounding::Divide { up, divisor }, _) => {
            sliding::<_, u32, u32>(lines, source, RoundedF64::new(up, divisor))?.into()
        }
        (Rounding::Shift(shift), _) => {
            sliding::<_, u32, u16>(lines, source, ShiftU32(shift))?.into()
        }
        (Rounding::None, _) => unreachable!("no plan has a pass like {:?}", lines.pass),
    })
}

fn sliding<T: Sample<N>, N: Number, D: bytemuck::Zeroable + Copy + Send>(
    lines: &Lines<'_>,
    source: &[T],
    round: impl Round<N, D>,
) -> Result<Vec<D>> {
    match lines.pass.axis {
        0 => box_rows::blur(lines, source, round),
        _ => box_columns::blur(lines, source, round),
    }
}
