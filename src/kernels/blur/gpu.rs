//! The GPU twin: uploads, passes from buffer to buffer, and the split into blocks that fit the device.

use std::{borrow::Cow, sync::Arc};

use super::{
    Blur, Data, Edge, Shape,
    plan::{Finish, Format, Math, Pass},
};
use crate::{
    bench::Case,
    error::{Error, Result},
    gpu::{Batch, Buffer, Context, Pipeline, Shader},
    shader_struct,
};

static ROWS: Shader = Shader::new("blur_rows", include_str!("../../../wgsl/blur_rows.wgsl"));
static COLUMNS: Shader =
    Shader::new("blur_columns", include_str!("../../../wgsl/blur_columns.wgsl"));

/// Every shader of this family.
pub const SHADERS: [&Shader; 2] = [&ROWS, &COLUMNS];

shader_struct! {
    struct RowParams {
        width: u32, height: u32, pitch: u32, radius: u32, blocks: u32, tiles: u32, groups: u32,
        edge: u32, up: u32, half: u32, shift: u32, divisor: u32, fill: [u32; 4],
    }
}

shader_struct! {
    struct ColumnParams {
        quads: u32, len: u32, tiles: u32, total: u32, radius: u32, blocks: u32, edge: u32, up: u32,
        half: u32, shift: u32, divisor: u32, channels: u32, fill: [u32; 4],
    }
}

impl Format {
    /// Bytes a sample.
    pub fn size(self) -> usize {
        match self {
            Self::Bytes => 1,
            Self::Halves => 2,
            Self::Words | Self::Floats => 4,
        }
    }

    fn code(self) -> &'static str {
        match self {
            Self::Bytes => "0u",
            Self::Halves => "1u",
            Self::Words | Self::Floats => "2u",
        }
    }
}

/// A pass made ready for a device.
#[derive(Debug)]
struct Ready {
    pipeline: Arc<Pipeline>,
    weights: Buffer,
    blocks: u32,
    /// Multiplied, added, shifted by, divided by.
    finish: [u32; 4],
    fill: [u32; 4],
}

impl Ready {
    fn new(context: &Context, pass: &Pass, channels: usize) -> Result<Self> {
        let (math, number) = match pass.math {
            Math::Exact => ("0u", "f32"),
            Math::Whole => ("1u", "u32"),
            Math::Float => ("2u", "f32"),
            Math::Wide => ("3u", "u32"),
        };
        let divide = matches!(pass.finish, Finish::Divide { .. });
        let channels = format!("{channels}u");
        let mut values = vec![
            ("FROM", pass.from.code()),
            ("TO", pass.to.code()),
            ("MATH", math),
            ("DIVIDE", if divide { "true" } else { "false" }),
            ("Number", number),
        ];
        let (shader, entry) = match pass.axis {
            0 => {
                values.push(("CHANNELS", &channels));
                (&ROWS, "rows")
            }
            _ => (&COLUMNS, "columns"),
        };
        let pipeline = context.pipeline(&shader.with(&values), entry)?;
        // Weight k stands at 4 + k: an invocation that makes four outputs needs some zeros around.
        let taps = pass.shape.taps();
        let blocks = (taps + 3).div_ceil(4);
        let mut weights = vec![0u32; 4 * (blocks + 1)];
        for (k, weight) in weights[4..][..taps].iter_mut().enumerate() {
            let i = k.abs_diff(pass.shape.radius);
            *weight = match pass.math {
                _ if divide => 1,
                Math::Exact => (pass.whole[i] as f32).to_bits(),
                Math::Float => pass.real[i].to_bits(),
                Math::Whole | Math::Wide => pass.whole[i],
            };
        }
        let finish = match pass.finish {
            Finish::Shift(shift) => [0, (1 << shift) >> 1, shift, 1],
            Finish::Divide { up, divisor } => [up, divisor / 2, 0, divisor],
            Finish::Keep => [0, 0, 0, 1],
        };
        let fill = pass.fill.map(|value| match pass.math {
            Math::Float => (value as f32).to_bits(),
            _ => value as u32,
        });
        let weights = context.upload("blur weights", &weights)?;
        Ok(Self { pipeline, weights, blocks: blocks as u32, finish, fill })
    }

    /// Records the pass over a whole block of samples.
    fn record(
        &self,
        batch: &mut Batch<'_>,
        context: &Context,
        pass: &Pass,
        layout: &Layout,
        edge: Edge,
        [source, target]: [&Buffer; 2],
    ) -> Result<()> {
        let [up, half, shift, divisor] = self.finish;
        let radius = pass.shape.radius as u32;
        let edge = match edge {
            Edge::Clamp => 0,
            Edge::Reflect => 1,
            Edge::Mirror => 2,
            Edge::Wrap => 3,
            Edge::Constant(_) => 4,
        };
        let [width, y, z] = layout.shape.dims;
        let channels = layout.shape.channels;
        let label = format!("blur {}", ["x", "y", "z"][pass.axis]);
        let [group, ..] = self.pipeline.workgroup_size;
        let recorded = batch.pass(&label, &self.pipeline);
        let recorded = recorded
            .buffer("source", source)
            .buffer("weights", &self.weights)
            .buffer("target_", target);
        let (blocks, fill) = (self.blocks, self.fill);
        if pass.axis == 0 {
            let tiles = width.div_ceil(4 * group as usize) as u32;
            let lanes = if channels < 3 { 4 / channels } else { 1 };
            let groups = (y * z).div_ceil(lanes) as u64 * u64::from(tiles);
            let params = RowParams {
                width: width as u32,
                height: (y * z) as u32,
                pitch: layout.pitch as u32,
                groups: groups as u32,
                radius,
                blocks,
                tiles,
                edge,
                up,
                half,
                shift,
                divisor,
                fill,
            };
            recorded.uniform("params", &params).dispatch(context.fold(groups)?);
            return Ok(());
        }
        let row = layout.pitch * channels / 4;
        let (lines, len, quads) = if pass.axis == 1 { (z, y, row) } else { (1, z, row * y) };
        let tiles = len.div_ceil(4);
        let total = (lines * tiles) as u64 * quads as u64;
        let params = ColumnParams {
            quads: quads as u32,
            len: len as u32,
            tiles: tiles as u32,
            total: total as u32,
            channels: channels as u32,
            radius,
            blocks,
            edge,
            up,
            half,
            shift,
            divisor,
            fill,
        };
        let groups = total.div_ceil(group.into());
        recorded.uniform("params", &params).dispatch(context.fold(groups)?);
        Ok(())
    }
}

/// How a block lies on the device: rows padded to a multiple of four pixels.
#[derive(Clone, Copy, Debug)]
struct Layout {
    shape: Shape,
    /// Pixels from row to row.
    pitch: usize,
}

impl Layout {
    fn new(shape: Shape) -> Self {
        Self { shape, pitch: shape.dims[0].next_multiple_of(4) }
    }

    fn samples(&self) -> u64 {
        let [_, y, z] = self.shape.dims;
        self.pitch as u64 * y as u64 * z as u64 * self.shape.channels as u64
    }
}

/// Runs every pass of `plan`.
///
/// # Errors
/// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device fails.
pub fn run<'d>(
    context: &Context,
    blur: &Blur,
    plan: &[Pass],
    shape: Shape,
    mut data: Data<'d>,
) -> Result<Data<'d>> {
    let reach = std::array::from_fn(|axis| blur.reach(axis));
    // All passes at once, unless blocks would be mostly surroundings; then each pass by itself, which
    // needs them along its own axis only.
    if let Some(len) = block_len(context, plan, shape, reach)
        && (0..3).all(|axis| len[axis] == shape.dims[axis] || len[axis] >= reach[axis])
    {
        return split(context, blur.edge, plan, shape, reach, len, &data);
    }
    for pass in plan {
        let pass = std::slice::from_ref(pass);
        let mut reach = [0; 3];
        reach[pass[0].axis] = pass[0].shape.radius;
        let len = block_len(context, pass, shape, reach).ok_or_else(|| {
            Error::gpu(format_args!(
                "radius {} takes larger buffers than {} has",
                pass[0].shape.radius, context.info.name
            ))
        })?;
        data = split(context, blur.edge, pass, shape, reach, len, &data)?;
    }
    Ok(data)
}

/// The size of blocks that the device takes at once, or nothing when even one position with what is
/// `reach` around it is too much.
fn block_len(
    context: &Context,
    plan: &[Pass],
    shape: Shape,
    reach: [usize; 3],
) -> Option<[usize; 3]> {
    let widest = plan.iter().map(|pass| pass.from.size().max(pass.to.size())).max().unwrap_or(1);
    let max = u64::from(context.limits.max_compute_workgroups_per_dimension);
    let fits = |len: [usize; 3]| {
        let dims: [usize; 3] = std::array::from_fn(|axis| match len[axis] == shape.dims[axis] {
            true => len[axis],
            false => len[axis] + 2 * reach[axis],
        });
        let samples = Layout::new(Shape { dims, channels: shape.channels }).samples();
        let row_groups = dims[0].div_ceil(512) as u64 * (dims[1] * dims[2]) as u64;
        // Columns have 64 invocations a workgroup and make up to 16 samples each.
        let groups = row_groups.max(samples.div_ceil(64 * 4));
        samples * widest as u64 <= context.max_binding()
            && samples < 1 << 31
            && groups <= max * max / 2
    };
    let mut len = shape.dims;
    while !fits(len) {
        // Cut where it costs least: not along the rows if possible.
        let axis = (0..3)
            .filter(|&axis| len[axis] > 1)
            .max_by_key(|&axis| (len[axis].div_ceil(2) > reach[axis], axis > 0, len[axis]))?;
        len[axis] = len[axis].div_ceil(2);
    }
    Some(len)
}

/// [`blocks`] for whatever samples there are.
fn split(
    context: &Context,
    edge: Edge,
    plan: &[Pass],
    shape: Shape,
    reach: [usize; 3],
    len: [usize; 3],
    data: &Data<'_>,
) -> Result<Data<'static>> {
    let ready: Vec<Ready> =
        plan.iter().map(|pass| Ready::new(context, pass, shape.channels)).collect::<Result<_>>()?;
    let job = Job { context, edge, plan, ready: &ready, shape, reach, len };
    let to = plan.last().expect("a plan has passes").to;
    Ok(match (data, to) {
        (Data::Bytes(v), Format::Bytes) => Data::Bytes(Cow::Owned(job.blocks(v)?)),
        (Data::Bytes(v), _) => Data::Halves(Cow::Owned(job.blocks(v)?)),
        (Data::Halves(v), Format::Bytes) => Data::Bytes(Cow::Owned(job.blocks(v)?)),
        (Data::Halves(v), _) => Data::Halves(Cow::Owned(job.blocks(v)?)),
        (Data::Words(v), _) => Data::Words(Cow::Owned(job.blocks(v)?)),
        (Data::Floats(v), _) => Data::Floats(Cow::Owned(job.blocks(v)?)),
    })
}

/// A block of positions to be blurred, and the block around it that this takes. Positions of the
/// latter may lie outside of the grid; they stand for others inside.
#[derive(Clone, Copy, Debug)]
struct Block {
    start: [usize; 3],
    len: [usize; 3],
    around_start: [isize; 3],
    around_len: [usize; 3],
}

/// Passes over a grid, block by block.
struct Job<'a> {
    context: &'a Context,
    edge: Edge,
    plan: &'a [Pass],
    ready: &'a [Ready],
    shape: Shape,
    /// How far a sample reaches along each axis.
    reach: [usize; 3],
    /// The size of blocks.
    len: [usize; 3],
}

impl Job<'_> {
    /// Blurs every block with as much around it as it takes.
    fn blocks<S: bytemuck::Pod, D: bytemuck::Pod>(&self, source: &[S]) -> Result<Vec<D>> {
        let Self { shape, len, edge, .. } = *self;
        if len == shape.dims {
            return self.one(shape, source);
        }
        let mut target = vec![D::zeroed(); source.len()];
        let [nx, ny, nz] = std::array::from_fn(|axis| shape.dims[axis].div_ceil(len[axis]));
        for number in 0..nx * ny * nz {
            let block = self.block([number % nx, number / nx % ny, number / nx / ny]);
            let around = Shape { dims: block.around_len, channels: shape.channels };
            // What the edge rule gets wrong at a cut stays within the part that is dropped.
            let output: Vec<D> = self.one(around, &gather(shape, edge, &block, source))?;
            scatter(shape, &block, &output, &mut target);
        }
        Ok(target)
    }

    /// The block with number `index`, and what it needs around it.
    fn block(&self, index: [usize; 3]) -> Block {
        let mut block =
            Block { start: [0; 3], len: [0; 3], around_start: [0; 3], around_len: [0; 3] };
        for axis in 0..3 {
            let n = self.shape.dims[axis];
            let start = index[axis] * self.len[axis];
            let end = (start + self.len[axis]).min(n);
            let reach = self.reach[axis] as isize;
            let (mut from, mut to) = (start as isize - reach, end as isize + reach);
            let bounded = matches!(self.edge, Edge::Clamp | Edge::Constant(_));
            if self.len[axis] == n || bounded {
                // The device meets the true edge there, and treats it as such.
                (from, to) = (from.max(0), to.min(n as isize));
            }
            block.start[axis] = start;
            block.len[axis] = end - start;
            block.around_start[axis] = from;
            block.around_len[axis] = (to - from) as usize;
        }
        block
    }

    /// Blurs samples that the device takes at once.
    fn one<S: bytemuck::Pod, D: bytemuck::Pod>(
        &self,
        shape: Shape,
        source: &[S],
    ) -> Result<Vec<D>> {
        let Self { context, plan, .. } = *self;
        let layout = Layout::new(shape);
        let row = shape.dims[0] * shape.channels;
        let pitch = layout.pitch * shape.channels;
        let bytes = layout.samples() * plan[0].from.size() as u64;
        let input = context.allocate("blur input", bytes)?;
        match row == pitch {
            true => context.write(&input, 0, source)?,
            false => {
                let mut padded = vec![S::zeroed(); layout.samples() as usize];
                for (to, from) in padded.chunks_exact_mut(pitch).zip(source.chunks_exact(row)) {
                    to[..row].copy_from_slice(from);
                }
                context.write(&input, 0, &padded)?;
            }
        }
        let mut batch = context.batch();
        let output = record(context, &mut batch, plan, self.ready, layout, self.edge, input)?;
        batch.run()?;
        let padded: Vec<D> = context.read(&output, layout.samples() as usize)?;
        Ok(match row == pitch {
            true => padded,
            false => padded.chunks_exact(pitch).flat_map(|line| &line[..row]).copied().collect(),
        })
    }
}

/// The samples of a block with its surroundings.
fn gather<T: Copy>(shape: Shape, edge: Edge, block: &Block, source: &[T]) -> Vec<T> {
    let [nx, ny, nz] = shape.dims;
    let channels = shape.channels;
    let places = |axis: usize, n: usize| {
        let start = block.around_start[axis];
        (start..start + block.around_len[axis] as isize)
            .map(move |at| edge.map(at, n).expect("a constant edge is never gathered"))
    };
    let columns: Vec<usize> = places(0, nx).collect();
    let straight = columns.windows(2).all(|pair| pair[1] == pair[0] + 1);
    let mut out = Vec::with_capacity(block.around_len.iter().product::<usize>() * channels);
    for z in places(2, nz) {
        for y in places(1, ny) {
            let row = &source[(z * ny + y) * nx * channels..][..nx * channels];
            match straight {
                true => {
                    out.extend_from_slice(&row[columns[0] * channels..][..columns.len() * channels])
                }
                false => columns
                    .iter()
                    .for_each(|&x| out.extend_from_slice(&row[x * channels..][..channels])),
            }
        }
    }
    out
}

/// Puts the middle of a blurred block into its place.
fn scatter<T: Copy>(shape: Shape, block: &Block, from: &[T], target: &mut [T]) {
    let [nx, ny, _] = shape.dims;
    let channels = shape.channels;
    let [ax, ay, _] = block.around_len;
    let offset: [usize; 3] = std::array::from_fn(|axis| {
        (block.start[axis] as isize - block.around_start[axis]) as usize
    });
    let len = block.len[0] * channels;
    for z in 0..block.len[2] {
        for y in 0..block.len[1] {
            let here = ((z + offset[2]) * ay + y + offset[1]) * ax + offset[0];
            let there = ((z + block.start[2]) * ny + y + block.start[1]) * nx + block.start[0];
            target[there * channels..][..len].copy_from_slice(&from[here * channels..][..len]);
        }
    }
}

/// Records all passes and returns the buffer that will hold the result.
fn record(
    context: &Context,
    batch: &mut Batch<'_>,
    plan: &[Pass],
    ready: &[Ready],
    layout: Layout,
    edge: Edge,
    input: Buffer,
) -> Result<Buffer> {
    // Two buffers take turns where formats repeat.
    let mut spare: Vec<(Format, Buffer)> = Vec::new();
    let mut from = (plan[0].from, input);
    for (pass, ready) in plan.iter().zip(ready) {
        let bytes = layout.samples() * pass.to.size() as u64;
        let free = spare.iter().position(|(format, _)| *format == pass.to);
        let to = match free {
            Some(index) => spare.swap_remove(index).1,
            None => context.allocate("blur", bytes)?,
        };
        ready.record(batch, context, pass, &layout, edge, [&from.1, &to])?;
        spare.push(std::mem::replace(&mut from, (pass.to, to)));
    }
    Ok(from.1)
}

/// What `gpuproc bench` measures.
pub fn cases(_full: bool) -> Vec<Case> {
    Vec::new()
}
