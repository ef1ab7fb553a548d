//! The GPU twin of a box blur of bytes along y and x at once: running sums down the columns, and sums of these
//! from the left, whatever the radius.

use std::sync::Arc;

use super::{
    Edge, Shape,
    gpu::{IN_RANGE, Layout},
    plan::{Arithmetic, Format, Pass, Rounding, reciprocal},
};
use crate::{
    error::Result,
    gpu::{Batch, Buffer, Context, Feature, Pipeline, Shader},
    shader, shader_struct,
};

pub(super) static SHADER: Shader = shader!("blur/box").unchecked(IN_RANGE);

shader_struct! {
    struct BoxParams {
        width: u32, height: u32, pitch: u32, tile: u32, across: u32, down: u32, rows: u32, groups: u32,
        radius: [u32; 2], margin: u32, half: u32, shift: u32, factor: u32, after: u32, slices: u32,
        addend: [u32; 2], blocks: u32, first: u32, fill: [u32; 4],
    }
}

/// From this radius along y on, sums of blocks of rows are made before all else, so that workgroups
/// do not begin by adding up their window row by row.
const BLOCKS: usize = 40;

/// Multiprocessors of a large device; wgpu does not tell how many there are.
const MULTIPROCESSORS: usize = 132;
/// The most invocations of a workgroup with which another one fits a multiprocessor.
const SHARING: usize = 288;

/// Pixels that an invocation has.
const PIXELS: usize = 8;

/// Both passes made ready for a device.
#[derive(Debug)]
pub(super) struct Means {
    /// Words that the shader reads at a time.
    chunk: usize,
    params: BoxParams,
    margin: Arc<Pipeline>,
    /// What sums up blocks of rows, and rows a block and a layer of them.
    layers: Option<Arc<Pipeline>>,
    block: [usize; 2],
    blur: Arc<Pipeline>,
}

impl Means {
    /// The passes along y and then x over a raster of at most `shape`; nothing where they are no such
    /// passes or the device cannot do them at once.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device fails.
    pub(super) fn new(
        context: &Context,
        [along_y, along_x]: [&Pass; 2],
        shape: Shape,
        edge: Edge,
    ) -> Result<Option<Self>> {
        let [x, y] = [along_x.taps.radius, along_y.taps.radius];
        let (Rounding::Shift(shift), Rounding::Divide { up, divisor }) =
            (along_y.rounding, along_x.rounding)
        else {
            return Ok(None);
        };
        let limits = &context.limits;
        if [along_y.axis, along_x.axis] != [1, 0]
            || [along_y.from, along_x.to] != [Format::U8; 2]
            || along_y.arithmetic != Arithmetic::U32
            || !along_y.integer_weights.is_empty()
            || !context.has(Feature::Subgroups)
            || !context.has(Feature::Int64)
        {
            return Ok(None);
        }
        let Some([factor, after, low, high]) = quotient(up, divisor) else { return Ok(None) };
        let channels = shape.channels;
        // Pixels of a span but for the tile: its windows begin at a multiple of an invocation's.
        let lead = x.next_multiple_of(PIXELS) - x;
        let around = lead + 2 * x + 1;
        // Eight bytes of workgroup memory a pixel, and sums of 12 an invocation. Small workgroups wait
        // less for each other; large ones have less around their tile.
        let bytes = limits.workgroup_bytes as usize;
        let lanes = context.info.subgroup_sizes[0].clamp(4, 32) as usize;
        let most = (bytes.saturating_sub(16 * 640 / lanes) / (8 * PIXELS + 12))
            .min(limits.workgroup_size as usize)
            .min(640);
        let invocations = match (6 * around / PIXELS).max(128).next_multiple_of(32) {
            few @ ..=SHARING => few.min(most),
            _ => most,
        };
        let Some(tile) = (PIXELS * invocations).checked_sub(around).filter(|&tile| tile >= 128)
        else {
            return Ok(None);
        };
        // Tiles of the same size, and no invocations that make none of it; but pictures of a single
        // tile share a pipeline.
        let width = shape.dims[0];
        let across = width.div_ceil(tile / PIXELS * PIXELS);
        let tile = width.div_ceil(across).next_multiple_of(PIXELS);
        let invocations = match across {
            1 => invocations,
            _ => (tile + around).div_ceil(PIXELS),
        };
        let chunk = if channels.is_multiple_of(2) { 4 } else { 2 };
        let segments = invocations.div_ceil(lanes);
        let steps = context.info.subgroup_sizes[1].clamp(1, 32).ilog2() as usize;
        let edge = edge.code() as usize;
        let values = [channels, chunk, invocations, lead, 2 * x + 1, segments, steps, edge]
            .map(|value| format!("{value}u"));
        let flag = |set: bool| if set { "true" } else { "false" };
        let blocks = y >= BLOCKS;
        let shader = SHADER.with(&[
            ("CHANNELS", &values[0]),
            ("CHUNK", &values[1]),
            ("Chunk", ["vec2<u32>", "vec4<u32>"][chunk / 4]),
            ("WIDTH", &values[2]),
            ("LEAD", &values[3]),
            ("TAPS", &values[4]),
            ("SEGMENTS", &values[5]),
            ("STEPS", &values[6]),
            ("EDGE", &values[7]),
            ("WIDE", flag(shift > 0)),
            ("BLOCKS", flag(blocks)),
        ]);
        let params = BoxParams {
            width: width as u32,
            tile: tile as u32,
            rows: match invocations {
                ..=SHARING => short_run(y),
                // So long that all workgroups are under way at once.
                _ => shape.dims[1]
                    .div_ceil((MULTIPROCESSORS / (across * shape.dims[2])).max(1))
                    .clamp(64, 256),
            } as u32,
            radius: [x as u32, y as u32],
            // As far as windows reach, and a group of eight pixels more on either side.
            margin: (x + 16).next_multiple_of(8) as u32,
            half: (1 << shift) >> 1,
            shift,
            factor,
            after,
            addend: [low, high],
            fill: along_y.fill_words(channels),
            ..BoxParams::default()
        };
        let [block, layer] = ["BLOCK", "LAYER"].map(|name| shader.constant(name) as usize);
        // Beside a narrow picture the margins may be what is large.
        let [_, height, slices] = shape.dims;
        let [inside, outside] = [Layout::new(shape).pitch, 2 * params.margin as usize];
        let margins = outside * height * channels * slices;
        let sums = match blocks {
            true => {
                2 * (inside + outside)
                    * (height.div_ceil(layer) * layer / block)
                    * channels
                    * slices
            }
            false => 0,
        };
        if margins.max(sums) as u64 > context.max_binding() {
            return Ok(None);
        }
        Ok(Some(Self {
            chunk,
            params,
            margin: context.pipeline(&shader, "margin")?,
            layers: blocks.then(|| context.pipeline(&shader, "layers")).transpose()?,
            block: [block, layer],
            blur: context.pipeline(&shader, "blur")?,
        }))
    }

    /// Records both over a whole block of samples.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device has no memory left.
    pub(super) fn record(
        &self,
        batch: &mut Batch<'_>,
        context: &Context,
        layout: &Layout,
        [source, target]: [&Buffer; 2],
    ) -> Result<()> {
        let [width, height, slices] = layout.shape.dims;
        let [rows, layer] = self.block;
        let layers = height.div_ceil(layer);
        let blocks = layers * (layer / rows);
        let across = width.div_ceil(self.params.tile as usize);
        let down = height.div_ceil(self.params.rows as usize);
        // Chunks of a row, and of what lies left and right of it.
        let chunks = |pixels: usize| pixels * layout.shape.channels / 4 / self.chunk;
        let inner = chunks(layout.pitch);
        let outer = chunks(2 * self.params.margin as usize);
        let bytes = |chunks: usize| (4 * self.chunk * chunks) as u64;
        let params = BoxParams {
            width: width as u32,
            height: height as u32,
            pitch: layout.pitch as u32,
            across: across as u32,
            down: down as u32,
            groups: (across * down * slices) as u32,
            blocks: blocks as u32,
            first: (2 * inner * blocks * slices) as u32,
            slices: slices as u32,
            ..self.params
        };
        let mut dispatch = |label, pipeline, buffers: &[(&str, &Buffer)], total: usize| {
            let mut pass = batch.pass(label, pipeline);
            for (name, buffer) in buffers {
                pass = pass.buffer(name, buffer);
            }
            let params = BoxParams { groups: total as u32, ..params };
            pass.uniform("params", &params).dispatch(context.fold(total.div_ceil(64) as u64)?);
            Result::Ok(())
        };
        let total = outer * height * slices;
        let margins = context.allocate("blur margins", bytes(total))?;
        let buffers = [("source", source), ("made", &margins)];
        dispatch("blur margins", &self.margin, &buffers, total)?;
        let mut sums = None;
        if let Some(pipeline) = &self.layers {
            let made =
                context.allocate("blur blocks", bytes(2 * (inner + outer) * blocks * slices))?;
            let buffers = [("source", source), ("margins", &margins), ("made", &made)];
            dispatch("blur blocks", pipeline, &buffers, (inner + outer) * layers * slices)?;
            sums = Some(made);
        }
        let pass = batch.pass("blur yx", &self.blur);
        let pass = pass.buffer("source", source).buffer("margins", &margins);
        let pass = pass.buffer("target_", target).buffer("blocks", sums.as_ref().unwrap_or(source));
        pass.uniform("params", &params).dispatch(context.fold(params.groups.into())?);
        Ok(())
    }
}

/// How many rows a workgroup goes down where several share a multiprocessor.
fn short_run(radius: usize) -> usize {
    match radius {
        0..8 => 32,
        // As long as windows: rows that leave are still in the cache to which the run above brought them.
        24..BLOCKS => 2 * radius,
        _ => 64,
    }
}

/// floor((sum * 2^up + divisor / 2) / divisor) for results below 256, as
/// floor((sum * factor + addend) / 2^(32 + after)): factor, after, and both words of the addend;
/// nothing where the factor would not fit a word.
fn quotient(up: u32, divisor: u32) -> Option<[u32; 4]> {
    let divisor = u64::from(divisor);
    // The product does not leave 64 bits with powers below 56.
    let (times, power) = reciprocal(divisor, 256 * divisor, u64::from(u32::MAX >> up), 32..56)?;
    let addend = times * (divisor / 2);
    Some([(times << up) as u32, power - 32, addend as u32, (addend >> 32) as u32])
}

#[cfg(test)]
mod tests {
    use super::quotient;

    #[test]
    fn multiplying_divides_exactly_at_every_step() {
        for (up, divisor) in [(0, 9), (0, 25), (2, 1001 * 1001), (0, 3 * 257), (1, 129 * 515)] {
            let [factor, after, low, high] = quotient(up, divisor).expect("it fits");
            let addend = u64::from(high) << 32 | u64::from(low);
            let exact = |sum: u64| ((sum << up) + u64::from(divisor) / 2) / u64::from(divisor);
            // Where the quotient changes, and just before.
            for result in 1..=255 {
                let first =
                    (result * u64::from(divisor) - u64::from(divisor) / 2).div_ceil(1 << up);
                for sum in [first - 1, first, first + 1] {
                    let found = (sum * u64::from(factor) + addend) >> (32 + after);
                    assert_eq!(found, exact(sum), "{sum} * 2^{up} / {divisor}");
                }
                assert_eq!((exact(first - 1), exact(first)), (result - 1, result));
            }
        }
    }
}
