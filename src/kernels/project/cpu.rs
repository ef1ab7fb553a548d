//! Projection on the CPU: a loop over the samples of each line, in their order.

use super::lines::{LineValues, Lines, Method, Order, Step};
use crate::{
    data::{grid::Grid, samples::Samples},
    for_samples,
    util::{error::Result, parallel::Parallel},
};

/// Number of lines that a thread reduces at a time, so that what is known of them stays in the cache.
const PIECE: usize = 1 << 12;

/// The lines of `step` with the samples of `grid`.
#[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "one of the types is f64")]
pub fn add(step: &Step<'_>, grid: &Grid) -> Result<Lines> {
    let layout @ [outer, length, inner] = grid.shape().along(step.projection.axis);
    let method = step.projection.method;
    let mut lines = match step.before {
        Some(before) => before.clone(),
        None => Lines::empty(method, grid.samples.dtype(), outer * inner)?,
    };
    let is_first = lines.count == 0;
    lines.count += length;
    let samples = &grid.samples;
    match &mut lines.values {
        LineValues::Extremes(extremes) => {
            add_extremes(samples, layout, extremes, (method, is_first));
        }
        LineValues::Sums(sums) => for_samples!(samples, values => {
            reduce(values, layout, sums, |sum, value, _| *sum += value as i64);
        }),
        LineValues::Moments(moments) => for_samples!(samples, values => {
            reduce(values, layout, moments, |(sum, squares), value, _| {
                let magnitude = (value as i64).unsigned_abs();
                *sum += value as i64;
                *squares += u128::from(magnitude * magnitude);
            });
        }),
        LineValues::FloatSums(sums) => for_samples!(samples, values => {
            reduce(values, layout, sums, |sum, value, _| *sum += value as f64);
        }),
        LineValues::FloatMoments(moments) => for_samples!(samples, values => {
            reduce(values, layout, moments, |[first, sum, squares], value, position| {
                if is_first && position == 0 {
                    *first = value as f64;
                }
                let difference = value as f64 - *first;
                *sum += difference;
                *squares += difference * difference;
            });
        }),
    }
    Ok(lines)
}

/// Replaces the extremes of lines, which begin if `is_first`, by those that include `samples`.
fn add_extremes(
    samples: &Samples,
    layout: [usize; 3],
    extremes: &mut Samples,
    (method, is_first): (Method, bool),
) {
    macro_rules! reduce_as {
        ($($Type:ident)+) => {
            match (samples, extremes) {
                $((Samples::$Type(values), Samples::$Type(extremes)) => match method {
                    Method::Max => reduce(values, layout, extremes, |best, value, position| {
                        *best = if is_first && position == 0 { value } else { best.larger(value) };
                    }),
                    _ => reduce(values, layout, extremes, |best, value, position| {
                        *best = if is_first && position == 0 { value } else { best.smaller(value) };
                    }),
                },)+
                _ => unreachable!("extremes have the type of the samples"),
            }
        };
    }
    reduce_as!(U8 I8 U16 I16 U32 I32 F32 F64);
}

/// Calls `add` for each sample in the order of its line, with its position in the line. `values` is an array [outer,
/// length, inner], whose lines are those along the middle axis.
fn reduce<T: Copy + Sync, L: Send>(
    values: &[T],
    [_, length, inner]: [usize; 3],
    lines: &mut [L],
    add: impl Fn(&mut L, T, usize) + Sync,
) {
    // Pieces of a row of lines, or of several short rows.
    let row = inner.max(1) * (PIECE / inner.max(1)).max(1);
    let pieces = lines.chunks_mut(row).enumerate().flat_map(|(number, rows)| {
        let piece = if inner > PIECE { PIECE } else { row };
        rows.chunks_mut(piece)
            .enumerate()
            .map(move |(at, lines)| (number * row + at * piece, lines))
    });
    pieces.collect::<Vec<_>>().into_iter().par_each(|(first, lines)| {
        for (number, lines) in lines.chunks_mut(inner.max(1)).enumerate() {
            let line = first + number * inner;
            let start = line / inner * length * inner + line % inner;
            match lines {
                [line] if inner == 1 => {
                    let values = values[start..start + length].iter().enumerate();
                    values.for_each(|(position, &value)| add(line, value, position));
                }
                lines => {
                    for position in 0..length {
                        let values = &values[start + position * inner..][..lines.len()];
                        for (line, &value) in lines.iter_mut().zip(values) {
                            add(line, value, position);
                        }
                    }
                }
            }
        }
    });
}
