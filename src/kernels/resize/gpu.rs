//! Resampling on a GPU: a pass of the shader for each axis, in tiles that fit the device.

use std::ops::Range;

use super::plan::{Format, Pass};
use crate::{
    data::{dtype::Dtype, grid::Shape, samples::Samples},
    gpu::{Batch, Buffer, Context, MultiplyAdd, Shader},
    kernels::{blur::DeviceSpace, filter::Block},
    shader, shader_struct,
    util::{error::Result, memory, parallel},
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
        first: u32,
        skipped: u32,
        shift: u32,
        min: i32,
        max: i32,
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
    let shader = shader.with(&[("ARITHMETIC", arithmetic), ("SIGNED", from.is_signed().into())]);
    shader.with(&multiply_add.constants())
}

/// The shaders for all types.
pub fn variants() -> Vec<Shader> {
    use Dtype::{F32, I16, I32, U8, U16, U32};
    let narrow = [[U8, U8], [U8, I16], [I16, I16], [I16, U8]];
    let wide = [[U16, U16], [U16, I32], [I32, I32], [I32, U16], [U32, U32], [U32, I32], [I32, U32]];
    let integers = narrow.map(|types| (types, true)).into_iter();
    let integers = integers.chain(wide.map(|types| (types, false)));
    let integers =
        integers.map(|(types, is_narrow)| specialised(types, is_narrow, MultiplyAdd::Fused));
    let floats = [MultiplyAdd::Fused, MultiplyAdd::InF64];
    integers.chain(floats.map(|variant| specialised([F32, F32], false, variant))).collect()
}

/// A part of a block: positions of input and output along its axis, counted from the start of the block.
struct Part {
    input: Range<usize>,
    output: Range<usize>,
}

impl Part {
    /// The size of the part before and after a pass of the block.
    fn shapes(&self, pass: &Pass, axis: usize) -> [Shape; 2] {
        let [mut before, mut after] = [pass.shape, pass.result()];
        let len = |is_input: bool| if is_input { self.input.len() } else { self.output.len() };
        (before.dims[axis], after.dims[axis]) = (len(pass.axis <= axis), len(pass.axis < axis));
        [before, after]
    }
}

/// Runs the passes of a block on `samples`, converted to `space` before the passes and back after them if it is given.
/// `None` if the device cannot compute the result.
pub fn run(
    context: &Context,
    passes: &[Pass],
    block: &Block,
    samples: &Samples,
    space: Option<&DeviceSpace>,
) -> Result<Option<Samples>> {
    let [Some(first), Some(last)] = [passes.first(), passes.last()] else { return Ok(None) };
    let is_possible = samples.dtype() != Dtype::F64
        && passes.iter().all(|pass| pass.filter.taps() <= MAX_TAPS)
        && (!samples.dtype().is_float() || context.multiply_add()? != MultiplyAdd::RoundsTwice);
    let Some(parts) = parts(context, passes, block).filter(|_| is_possible) else {
        return Ok(None);
    };
    let prepared = passes.iter().map(|pass| Prepared::new(context, pass, block.axis));
    let prepared = prepared.collect::<Result<Vec<_>>>()?;
    let convert = |batch: &mut Batch<'_>, buffer, samples, to_stored| match space {
        Some(space) => space.convert(context, batch, (&buffer, samples), to_stored),
        None => Ok(buffer),
    };
    let mut result = Samples::zeros(samples.dtype(), last.result().samples())?;
    let slice =
        |shape: Shape| shape.samples() / shape.dims[block.axis].max(1) * samples.dtype().size();
    let (from, to) = (slice(first.shape), slice(last.result()));
    let mut rest = result.as_bytes_mut();
    for part in parts {
        let source = &samples.as_bytes()[part.input.start * from..part.input.end * from];
        let target = rest.split_off_mut(..part.output.len() * to).expect("parts fill the result");
        let mut batch = context.batch();
        let uploaded = context.upload("samples", source)?;
        let mut buffer = convert(&mut batch, uploaded, source.len(), false)?;
        for pass in &prepared {
            buffer = pass.record(context, &mut batch, &part, &buffer)?;
        }
        let stored = convert(&mut batch, buffer, target.len(), true)?;
        batch.run()?;
        context.read_into(&stored, target)?;
    }
    Ok(Some(result))
}

/// Divides a block into parts that fit the device; `None` if even a single position does not fit.
fn parts(context: &Context, passes: &[Pass], block: &Block) -> Option<Vec<Part>> {
    let max = context.max_binding().min(BLOCK);
    let divided = passes.iter().find(|pass| pass.axis == block.axis);
    let fits = |part: &Part| {
        passes.iter().all(|pass| {
            let sizes = part.shapes(pass, block.axis).into_iter().zip(pass.formats);
            let table = (pass.output.len() * (pass.filter.taps() + 2) * 4) as u64;
            let bytes = |(shape, format): (Shape, Format)| {
                (shape.samples() * format.dtype.size() + 4) as u64
            };
            table <= max && sizes.map(bytes).all(|bytes| bytes <= max)
        })
    };
    let (len, mut count) = (block.output.len(), 1);
    loop {
        let part = |number: usize| {
            let output = len * number / count..len * (number + 1) / count;
            let input = divided.map_or_else(|| output.clone(), |pass| pass.window(&output));
            Part { input, output }
        };
        let parts: Vec<Part> = (0..count).map(part).collect();
        if parts.iter().all(fits) {
            return Some(parts);
        }
        if count >= len {
            return None;
        }
        count = (2 * count).min(len);
    }
}

/// A pass with its shader and weights.
struct Prepared<'a> {
    pass: &'a Pass,
    axis: usize,
    shader: Shader,
    table: Buffer,
}

impl<'a> Prepared<'a> {
    fn new(context: &Context, pass: &'a Pass, axis: usize) -> Result<Self> {
        let types = pass.formats.map(|format| format.dtype);
        let multiply_add = match types[0] {
            Dtype::F32 => context.multiply_add()?,
            _ => MultiplyAdd::Fused,
        };
        let shader = specialised(types, pass.is_narrow, multiply_add);
        let table = context.upload("weights", &table(pass, types[0] == Dtype::F32)?)?;
        Ok(Self { pass, axis, shader, table })
    }

    /// Records the pass over a part of the block, and returns its result.
    fn record(
        &self,
        context: &Context,
        batch: &mut Batch<'_>,
        part: &Part,
        source: &Buffer,
    ) -> Result<Buffer> {
        let Self { pass, axis, .. } = *self;
        let [before, after] = part.shapes(pass, axis);
        let [_, length, inner] = before.along(pass.axis);
        let words = (after.samples() * pass.formats[1].dtype.size()).div_ceil(4);
        let result = context.allocate("resampled", 4 * words as u64)?;
        let is_divided = pass.axis == axis;
        let params = ResizeParams {
            words: words as u32,
            samples: after.samples() as u32,
            length: length as u32,
            count: after.dims[pass.axis] as u32,
            inner: inner as u32,
            taps: pass.filter.taps() as u32,
            first: if is_divided { part.output.start as u32 } else { 0 },
            skipped: if is_divided { part.input.start as u32 } else { 0 },
            shift: pass.shift(),
            min: pass.range[0],
            max: pass.range[1],
        };
        let buffers = [("data", source), ("table", &self.table), ("result", &result)];
        batch.dispatch_over("resize", &self.shader, "resize", &params, &buffers, words)?;
        Ok(result)
    }
}

/// For each result, the first sample that it depends on, their number, and the weights.
fn table(pass: &Pass, is_float: bool) -> Result<Vec<u32>> {
    let weights = pass.weights(0..pass.output.len(), false)?;
    let words: Vec<u32> = if is_float {
        parallel::mapped(&weights.weights, |&weight| (weight as f32).to_bits())?
    } else {
        parallel::mapped(&weights.integers(pass.weight_fraction)?, |&v| v as u32)?
    };
    let mut table = memory::room(words.len() + 2 * weights.windows.len())?;
    for (window, row) in weights.windows.iter().zip(words.chunks_exact(weights.stride)) {
        table.extend([window.start as u32, window.len() as u32]);
        table.extend_from_slice(row);
    }
    Ok(table)
}
