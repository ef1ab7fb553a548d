//! Resampling on a GPU: a pass of the shader for each axis, in tiles that fit the device.

use std::ops::Range;

use super::{
    cpu,
    plan::{Pass, passes},
    weights::{Interpolation, Weights},
};
use crate::{
    data::{dtype::Dtype, grid::Shape, samples::Samples},
    gpu::{Batch, Buffer, Context, MultiplyAdd, Shader},
    kernels::filter::Block,
    shader, shader_struct,
    util::error::Result,
};

static SHADER: Shader = shader!("resize/resize");

shader_struct! {
    struct ResizeParams {
        words: u32,
        samples: u32,
        length: u32,
        count: u32,
        inner: u32,
        taps: u32,
        shift: u32,
        max: u32,
    }
}

/// Weights of a result, of which an invocation adds up four times as many: the software driver llvmpipe ends an
/// invocation's loops after 65,535 rounds.
const MAX_TAPS: usize = 1 << 13;
/// Bytes of a buffer.
const BLOCK: u64 = 64 << 20;

/// The shader for a pass between types.
fn specialised([from, to]: [Dtype; 2], is_narrow: bool, multiply_add: MultiplyAdd) -> Shader {
    let arithmetic: u32 = match from {
        Dtype::F32 => 2,
        _ if is_narrow => 0,
        _ => 1,
    };
    let shader = SHADER.with(&[("FROM", 8 * from.size()), ("TO", 8 * to.size())]);
    shader.with(&[("ARITHMETIC", arithmetic)]).with(&multiply_add.constants())
}

/// The shaders for all types.
pub fn variants() -> Vec<Shader> {
    use Dtype::{F32, U8, U16, U32};
    let narrow = [[U8, U8], [U8, U16], [U16, U16], [U16, U8]];
    let wide = [[U16, U16], [U16, U32], [U32, U32], [U32, U16]];
    let integers =
        narrow.map(|types| (types, true)).into_iter().chain(wide.map(|types| (types, false)));
    let integers =
        integers.map(|(types, is_narrow)| specialised(types, is_narrow, MultiplyAdd::Fused));
    let floats = [MultiplyAdd::Fused, MultiplyAdd::InF64];
    integers.chain(floats.map(|variant| specialised([F32, F32], false, variant))).collect()
}

/// The result of `block`, of a result of size `dims`. Blocks that do not fit the device are divided; the CPU computes
/// what cannot be divided further, and what shaders cannot compute.
pub fn run(
    context: &Context,
    filter: Interpolation,
    (samples, channels, dims): (&Samples, usize, [usize; 3]),
    block: &Block,
) -> Result<Samples> {
    let passes = passes(filter, (samples.dtype(), channels), dims, block);
    let is_float = samples.dtype().is_float();
    let is_possible = samples.dtype() != Dtype::F64
        && passes.iter().all(|pass| pass.weights.taps() <= MAX_TAPS)
        && (!is_float || context.multiply_add()? != MultiplyAdd::RoundsTwice);
    if passes.is_empty() || !is_possible {
        return cpu::run(&passes, samples);
    }
    if fits(context, &passes) {
        return run_passes(context, &passes, samples);
    }
    let Range { start, end } = block.output;
    if end - start < 2 {
        return cpu::run(&passes, samples);
    }
    let middle = start.midpoint(end);
    let mut result = Samples::zeros(samples.dtype(), 0)?;
    let slice = |shape: Shape| shape.samples() / block.shape.dims[block.axis];
    let stride = slice(Shape { channels, ..block.shape });
    let lengths = [block.shape.dims[block.axis], dims[block.axis]];
    for output in [start..middle, middle..end] {
        let input = match lengths[0] == lengths[1] {
            true => output.clone(),
            false => Weights::range(filter, lengths, &output),
        };
        let skipped = input.start - block.input.start;
        let part = samples.part(skipped * stride..(skipped + input.len()) * stride);
        let block = Block { input, output, ..block.clone() };
        result.append(&run(context, filter, (&part, channels, dims), &block)?)?;
    }
    Ok(result)
}

/// Whether each buffer of the passes fits the device.
fn fits(context: &Context, passes: &[Pass]) -> bool {
    let max = context.max_binding().min(BLOCK);
    let bytes = |shape: Shape, dtype: Dtype| (shape.samples() * dtype.size() + 4) as u64;
    passes.iter().all(|pass| {
        let [before, after] = pass.formats;
        let table = (pass.weights.windows.len() * (pass.weights.taps() + 2) * 4) as u64;
        bytes(pass.shape, before.dtype) <= max
            && bytes(pass.output(), after.dtype) <= max
            && table <= max
    })
}

fn run_passes(context: &Context, passes: &[Pass], samples: &Samples) -> Result<Samples> {
    let bytes = samples.as_bytes();
    let mut source = context.allocate("samples", (bytes.len() as u64).next_multiple_of(4))?;
    context.write(&source, 0, bytes)?;
    let mut batch = context.batch();
    for pass in passes {
        source = record(context, &mut batch, pass, &source)?;
    }
    batch.run()?;
    let last = passes.last().expect("there is a pass");
    let mut result = Samples::zeros(last.formats[1].dtype, last.output().samples())?;
    context.read_into(&source, result.as_bytes_mut())?;
    Ok(result)
}

/// Records a pass over `source`, and returns its result.
fn record(
    context: &Context,
    batch: &mut Batch<'_>,
    pass: &Pass,
    source: &Buffer,
) -> Result<Buffer> {
    let types = pass.formats.map(|format| format.dtype);
    let multiply_add = match types[0] {
        Dtype::F32 => context.multiply_add()?,
        _ => MultiplyAdd::Fused,
    };
    let shader = specialised(types, pass.max <= 255 << 4, multiply_add);
    let [_, length, inner] = pass.shape.along(pass.axis);
    let (samples, taps) = (pass.output().samples(), pass.weights.taps());
    let words = (samples * types[1].size()).div_ceil(4);
    let table = context.upload("weights", &table(pass, types[0] == Dtype::F32))?;
    let result = context.allocate("resampled", 4 * words as u64)?;
    let params = ResizeParams {
        words: words as u32,
        samples: samples as u32,
        length: length as u32,
        count: pass.weights.windows.len() as u32,
        inner: inner as u32,
        taps: taps as u32,
        shift: pass.shift(),
        max: pass.max,
    };
    let size = context.pipeline(&shader, "resize")?.workgroup_size[0];
    let groups = context.fold(words.div_ceil(size as usize) as u64)?;
    let buffers = [("data", source), ("table", &table), ("result", &result)];
    batch.dispatch("resize", (&shader, "resize"), &params, &buffers, groups)?;
    Ok(result)
}

/// For each result, the first sample that it depends on, their number, and the weights.
fn table(pass: &Pass, is_float: bool) -> Vec<u32> {
    let integers = pass.weights.integers();
    let taps = pass.weights.taps();
    let mut table = Vec::with_capacity(integers.len() * (taps + 2));
    for (at, window) in pass.weights.windows.iter().enumerate() {
        table.extend([window.start as u32, window.len() as u32]);
        match is_float {
            true => {
                table.extend(
                    pass.weights.weights[at].iter().map(|&weight| (weight as f32).to_bits()),
                );
            }
            false => table.extend(integers[at].iter().map(|&weight| weight as u32)),
        }
        table.resize((at + 1) * (taps + 2), 0);
    }
    table
}
