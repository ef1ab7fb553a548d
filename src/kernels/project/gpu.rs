//! Projection on a GPU: an invocation for each line, in tiles that fit the device.

use std::{borrow::Cow, ops::Range};

use super::lines::{LineValues, Lines, Method, Order, Step};
use crate::{
    data::{dtype::Dtype, grid::Grid},
    for_samples,
    gpu::{Buffer, Context, Shader},
    kernels::{histogram::type_range, pointwise::specialised as keyed},
    shader, shader_struct,
    util::{error::Result, memory},
};

static SHADER: Shader = shader!("project/project");

shader_struct! {
    struct ProjectParams {
        lines: u32,
        length: u32,
        inner: u32,
        is_first: u32,
    }
}

/// Bytes of samples on the device at a time.
const BLOCK: u64 = 64 << 20;
/// Samples of a line in a dispatch: the software driver llvmpipe ends an invocation's loops after 65,535 rounds.
const MAX_LENGTH: usize = 1 << 15;

/// The shader for samples of type `dtype`.
fn specialised(method: Method, dtype: Dtype) -> Shader {
    let operation: u32 = match method {
        Method::Max => 0,
        Method::Min => 1,
        Method::Mean | Method::Sum => 2,
        Method::Std => 3,
    };
    keyed(&SHADER, dtype).with(&[("OPERATION", operation)])
}

/// The shaders for all methods and types of samples.
pub fn variants() -> Vec<Shader> {
    let methods = [Method::Max, Method::Min, Method::Sum, Method::Std];
    let all = methods.into_iter().flat_map(|method| {
        let is_held = move |dtype: &Dtype| match method {
            Method::Max | Method::Min => *dtype != Dtype::F64,
            _ => !dtype.is_float(),
        };
        Dtype::SAMPLES.into_iter().filter(is_held).map(move |dtype| specialised(method, dtype))
    });
    all.collect()
}

/// A part of an array [outer, length, inner] whose lines are reduced by one dispatch.
struct Tile {
    outer: Range<usize>,
    positions: Range<usize>,
    inner: Range<usize>,
}

/// The lines of `step` with the samples of `grid`.
pub fn add(step: &Step<'_>, context: &Context, grid: &Grid) -> Result<Lines> {
    let (method, dtype) = (step.projection.method, grid.samples.dtype());
    let layout @ [outer, length, inner] = grid.shape().along(step.projection.axis);
    let shader = specialised(method, dtype);
    let words = match method {
        Method::Max | Method::Min => 1,
        Method::Mean | Method::Sum => 2,
        Method::Std => 5,
    };
    // Samples and states in a tile, in whole words.
    let max = context.max_binding().min(BLOCK) as usize;
    let (samples, states) = (max / dtype.size(), max / (4 * words));
    let columns = inner.min(samples).min(states);
    let positions = length.min(samples / columns).min(MAX_LENGTH);
    let rows = match (columns, positions) == (inner, length) {
        true => outer.min(samples / (inner * length)).min(states / inner).max(1),
        false => 1,
    };
    let bytes = rows * positions * columns * dtype.size();
    let source = context.allocate("samples", bytes.next_multiple_of(4) as u64)?;
    let state = context.allocate("lines", (rows * columns * words * 4) as u64)?;
    let mut lines = match step.before {
        Some(before) => before.clone(),
        None => Lines::empty(method, dtype, outer * inner)?,
    };
    let mut states: Vec<u32> = Vec::new();
    for first in (0..outer).step_by(rows) {
        let outer = first..outer.min(first + rows);
        for column in (0..inner).step_by(columns) {
            let columns = column..inner.min(column + columns);
            for position in (0..length).step_by(positions) {
                let positions = position..length.min(position + positions);
                let tile = Tile { outer: outer.clone(), positions, inner: columns.clone() };
                dispatch(context, &shader, (grid, layout), &tile, (&source, &state))?;
            }
            memory::resize(&mut states, outer.len() * columns.len() * words)?;
            context.read_into(&state, &mut states)?;
            let at = outer.start * inner + columns.start;
            merge(&mut lines, &states, at, (method, dtype, length));
        }
    }
    lines.count += length;
    Ok(lines)
}

/// Reduces the samples of `tile` into the states of its lines.
fn dispatch(
    context: &Context,
    shader: &Shader,
    (grid, [_, length, inner]): (&Grid, [usize; 3]),
    tile: &Tile,
    (source, state): (&Buffer, &Buffer),
) -> Result<()> {
    let Tile { outer, positions, inner: columns } = tile;
    let size = grid.samples.dtype().size();
    let bytes = grid.samples.as_bytes();
    let row = |row: usize| &bytes[(row * inner + columns.start) * size..][..columns.len() * size];
    let first = outer.start * length + positions.start;
    let count = outer.len() * positions.len();
    let data: Cow<'_, [u8]> = match columns.len() == inner {
        true => bytes[first * inner * size..][..count * inner * size].into(),
        false => memory::collected((first..first + count).flat_map(row).copied()).into(),
    };
    context.write(source, 0, &data)?;
    let params = ProjectParams {
        lines: outer.len() as u32,
        length: positions.len() as u32,
        inner: columns.len() as u32,
        is_first: u32::from(positions.start == 0),
    };
    let lines = outer.len() * columns.len();
    let mut batch = context.batch();
    let buffers = [("data", source), ("state", state)];
    batch.dispatch_over("project", shader, "project", &params, &buffers, lines)?;
    batch.run().map(drop)
}

/// Adds states of the lines from `at` on, each of `length` samples, to `lines`.
fn merge(
    lines: &mut Lines,
    states: &[u32],
    at: usize,
    (method, dtype, length): (Method, Dtype, usize),
) {
    let is_first = lines.count == 0;
    let low = |words: &[u32]| i128::from(words[1]) << 32 | i128::from(words[0]);
    // A key is the distance of a sample from the minimum of its type.
    let min = type_range(dtype).map_or(0, |(min, _)| min as i128);
    let length = length as i128;
    match &mut lines.values {
        LineValues::Extremes(extremes) => for_samples!(extremes, extremes => {
            merge_extremes(&mut extremes[at..], states, (method, is_first));
        }),
        LineValues::Sums(sums) => {
            for (sum, state) in sums[at..].iter_mut().zip(states.chunks_exact(2)) {
                *sum += (low(state) + min * length) as i64;
            }
        }
        LineValues::Moments(moments) => {
            for ((sum, squares), state) in moments[at..].iter_mut().zip(states.chunks_exact(5)) {
                let keys = low(state);
                let key_squares = i128::from(state[4]) << 64 | low(&state[2..]);
                *sum += (keys + min * length) as i64;
                *squares += (key_squares + 2 * min * keys + min * min * length) as u128;
            }
        }
        LineValues::FloatSums(_) | LineValues::FloatMoments(_) => {
            unreachable!("sums of floats are computed by the CPU")
        }
    }
}

fn merge_extremes<T: Order>(extremes: &mut [T], keys: &[u32], (method, is_first): (Method, bool)) {
    for (best, &key) in extremes.iter_mut().zip(keys) {
        let value = T::of_key(key);
        *best = match method {
            _ if is_first => value,
            Method::Max => best.larger(value),
            _ => best.smaller(value),
        };
    }
}
