//! The GPU twin: uploads, passes from buffer to buffer, and the split into blocks that fit the device.

use std::{borrow::Cow, sync::Arc};

use super::{
    Blur, Edge, Shape, Values, bench,
    means::{self, Means},
    plan::{Arithmetic, Format, Pass, Rounding},
};
use crate::{
    error::{Error, Result},
    gpu::{Batch, Buffer, Context, Pipeline, Shader},
    memory, shader, shader_struct,
};

/// Why these shaders need no bounds checks.
pub(super) const IN_RANGE: &str = "the host dispatches and sizes buffers by the layout: rows, columns, tiles and \
    spans are cut off at its width, height and pitch, positions outside are mapped inside or replaced \
    before they are read, and weights are padded to the blocks that are gone through";
static ROWS: Shader = shader!("blur/rows").unchecked(IN_RANGE);
static COLUMNS: Shader = shader!("blur/columns").unchecked(IN_RANGE);
static FUSED: Shader = shader!("blur/fused").unchecked(IN_RANGE);
static ROWS_BYTES: Shader = shader!("blur/rows_bytes").unchecked(IN_RANGE);
static ROWS_FLOATS: Shader = shader!("blur/rows_floats").unchecked(IN_RANGE);
static COLUMNS_HALVES: Shader = shader!("blur/columns_halves").unchecked(IN_RANGE);
static BOX_ROWS: Shader = shader!("blur/box_rows").unchecked(IN_RANGE);
static BOX_COLUMNS: Shader = shader!("blur/box_columns").unchecked(IN_RANGE);

/// Every shader of this family.
pub const SHADERS: [&Shader; 10] = [
    &FUSED,
    &ROWS,
    &COLUMNS,
    &ROWS_BYTES,
    &ROWS_FLOATS,
    &COLUMNS_HALVES,
    &means::SHADER,
    &BOX_ROWS,
    &BOX_COLUMNS,
    &bench::BASELINES,
];

shader_struct! {
    struct FusedParams {
        samples: u32, pitch: u32, height: u32, across: u32, down: u32, groups: u32, edge: u32,
        unused: u32, fill: [u32; 4], x: [[u32; 4]; 3], y: [[u32; 4]; 3],
    }
}

shader_struct! {
    struct RowParams {
        width: u32, height: u32, pitch: u32, radius: u32, blocks: u32, tiles: u32, groups: u32,
        edge: u32, up: u32, half: u32, shift: u32, divisor: u32, fill: [u32; 4],
    }
}

shader_struct! {
    struct ColumnParams {
        quads: u32, len: u32, tiles: u32, total: u32, radius: u32, blocks: u32, edge: u32, up: u32,
        half: u32, shift: u32, divisor: u32, channels: u32, split: u32, skip: u32,
        unused: [u32; 2], fill: [u32; 4],
    }
}

impl Pass {
    /// What lies outside as three words of bytes, after which channels repeat.
    pub(super) fn fill_words(&self, channels: usize) -> [u32; 4] {
        let byte = |i: usize| (self.fill[i % channels] as u32) << (8 * (i % 4));
        std::array::from_fn(|word| (4 * word..4 * word + 4).map(byte).sum())
    }
}

impl Format {
    /// Bytes a sample.
    pub fn size(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::U24 | Self::F32 => 4,
        }
    }

    /// The constants of `blur/common.wgsl` with which four samples are stored as this.
    fn stored(self) -> [(&'static str, &'static str); 4] {
        match self {
            Self::U8 => [("HALVES", "false"), ("STORED", "u32"), ("LOW", "1u"), ("HIGH", "0u")],
            _ => [
                ("HALVES", "true"),
                ("STORED", "vec2<u32>"),
                ("LOW", "vec2(1u, 0u)"),
                ("HIGH", "vec2(0u, 1u)"),
            ],
        }
    }

    fn code(self) -> &'static str {
        match self {
            Self::U8 => "0u",
            Self::U16 => "1u",
            Self::U24 | Self::F32 => "2u",
        }
    }
}

/// Which shader does a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// A pass along x and one along y at once.
    Fused,
    /// Any formats, four pixels an invocation.
    Rows,
    /// Any formats, four rows an invocation.
    Columns,
    /// Bytes to halves along x, eight pixels an invocation, with weights of three bytes.
    RowsBytes,
    /// The same with weights of 16 bits, as floats.
    RowsFloats,
    /// Halves along y or z, twelve rows an invocation.
    ColumnsHalves,
    /// Running sums along x.
    BoxRows,
    /// Running sums along y or z.
    BoxColumns,
}

impl Way {
    fn of(pass: &Pass, context: &Context) -> Self {
        let radius = pass.taps.radius;
        let means = pass.arithmetic == Arithmetic::U32 && pass.integer_weights.is_empty();
        match (pass.axis, pass.from, pass.to) {
            (0, ..) if means && box_span(context, radius).is_some() => Self::BoxRows,
            (1.., ..) if means => Self::BoxColumns,
            (0, Format::U8, Format::U16) if pass.arithmetic == Arithmetic::ExactF32 => {
                Self::RowsFloats
            }
            (0, Format::U8, Format::U16)
                if !means && pass.integer_weights[0] >> (8 * PLANES) == 0 =>
            {
                Self::RowsBytes
            }
            (0, ..) => Self::Rows,
            (_, Format::U16, _) => Self::ColumnsHalves,
            _ => Self::Columns,
        }
    }
}

/// Bytes a weight of [`Way::RowsBytes`].
const PLANES: usize = 3;

/// Invocations a workgroup and groups of eight elements in workgroup memory for running sums along
/// x; nothing when the device has not enough.
fn box_span(context: &Context, radius: usize) -> Option<[usize; 2]> {
    let bytes = context.limits.workgroup_bytes as usize;
    let extra = (2 * radius).div_ceil(8) + 1;
    // Small tiles leave room for many; where they would be mostly surroundings, larger ones.
    let tile = if extra <= 16 { 64 } else { 128 };
    [tile, 64, 32].into_iter().find_map(|tile| {
        let groups = tile + extra;
        let width = groups.next_multiple_of(32).min(256);
        // Nine times eight bytes a group of eight elements, and sixteen for its sum; 32 an
        // invocation.
        (groups * 88 + width * 32 <= bytes).then_some([width, groups])
    })
}

/// A pass made ready for a device.
#[derive(Debug)]
struct Ready {
    way: Way,
    axis: usize,
    to: Format,
    /// What the shader says about the sizes that it works with; which they are depends on `way`.
    tile: [usize; 2],
    /// For two passes at once.
    fused: FusedParams,
    pipeline: Arc<Pipeline>,
    /// For rows near the edge, where they need another shader than those inside.
    border: Option<Arc<Pipeline>>,
    weights: Option<Buffer>,
    /// Taps on either side, as the shader goes through them.
    radius: u32,
    /// Multiplied, added, shifted by, divided by.
    finish: [u32; 4],
    fill: [u32; 4],
}

/// What is recorded for one pass of a plan or for two.
#[derive(Debug)]
enum Step {
    Passes(Ready),
    Means(Means),
}

impl Step {
    /// All passes of `plan`.
    fn all(context: &Context, plan: &[Pass], shape: Shape, edge: Edge) -> Result<Vec<Self>> {
        let (mut steps, mut rest) = (Vec::new(), plan);
        while let [pass, after @ ..] = rest {
            rest = after;
            if let [next, after @ ..] = after {
                if Ready::can_fuse(pass, next) {
                    rest = after;
                    steps.push(Self::Passes(Ready::fused(
                        context,
                        pass,
                        next,
                        shape.channels,
                        edge,
                    )?));
                    continue;
                }
                if let Some(means) = Means::new(context, [pass, next], shape, edge)? {
                    rest = after;
                    steps.push(Self::Means(means));
                    continue;
                }
            }
            steps.push(Self::Passes(Ready::new(context, pass, shape.channels)?));
        }
        Ok(steps)
    }

    fn to(&self) -> Format {
        match self {
            Self::Passes(ready) => ready.to,
            Self::Means(_) => Format::U8,
        }
    }

    fn record(
        &self,
        batch: &mut Batch<'_>,
        context: &Context,
        layout: &Layout,
        edge: Edge,
        buffers: [&Buffer; 2],
    ) -> Result<()> {
        match self {
            Self::Passes(ready) => ready.record(batch, context, layout, edge, buffers),
            Self::Means(means) => means.record(batch, context, layout, buffers),
        }
    }
}

/// The largest radius that is blurred along x and y at once.
const FUSED_RADIUS: usize = 5;

impl Ready {
    fn can_fuse(pass: &Pass, next: &Pass) -> bool {
        (pass.axis, next.axis) == (0, 1)
            && (pass.from, pass.arithmetic) == (Format::U8, Arithmetic::ExactF32)
            && pass.taps.radius.max(next.taps.radius) <= FUSED_RADIUS
    }

    fn fused(
        context: &Context,
        pass: &Pass,
        next: &Pass,
        channels: usize,
        edge: Edge,
    ) -> Result<Self> {
        let radius = pass.taps.radius.max(next.taps.radius);
        let values = [radius, channels].map(|value| format!("{value}u"));
        let constant = if matches!(edge, Edge::Constant(_)) { "true" } else { "false" };
        let shader = FUSED
            .with(&[("RADIUS", &values[0]), ("CHANNELS", &values[1]), ("CONSTANT", constant)])
            .with(&next.to.stored());
        // Scaled so that results are the upper bytes or halves of the sums.
        let weights = |pass: &Pass, bits: u32| {
            let Rounding::Shift(shift) = pass.rounding else {
                unreachable!("whole weights are shifted")
            };
            let weight =
                |i: usize| pass.integer_weights.get(i).map_or(0, |weight| weight << (bits - shift));
            std::array::from_fn(|i| std::array::from_fn(|j| weight(4 * i + j)))
        };
        let top = if next.to == Format::U8 { 24 } else { 16 };
        let fused = FusedParams {
            fill: pass.fill_words(channels),
            x: weights(pass, 16),
            y: weights(next, top),
            ..FusedParams::default()
        };
        Ok(Self {
            way: Way::Fused,
            axis: 0,
            to: next.to,
            tile: ["COLUMNS", "HEIGHT"].map(|name| shader.constant(name) as usize),
            fused,
            pipeline: context.pipeline(&shader, "fused")?,
            border: None,
            weights: None,
            radius: radius as u32,
            finish: [0; 4],
            fill: [0; 4],
        })
    }

    fn new(context: &Context, pass: &Pass, channels: usize) -> Result<Self> {
        let way = Way::of(pass, context);
        let (math, number) = match pass.arithmetic {
            Arithmetic::ExactF32 => ("0u", "f32"),
            Arithmetic::U32 => ("1u", "u32"),
            Arithmetic::F32 => ("2u", "f32"),
            Arithmetic::U48 => ("3u", "u32"),
        };
        let divide = matches!(pass.rounding, Rounding::Divide { .. });
        let divide = ("DIVIDE", if divide { "true" } else { "false" });
        let lanes = format!("{channels}u");
        let lanes = ("CHANNELS", lanes.as_str());
        let (from, to) = (("FROM", pass.from.code()), ("TO", pass.to.code()));
        let (math, number) = (("MATH", math), ("Number", number));
        let radius = pass.taps.radius;
        let shader = match way {
            Way::Fused => unreachable!("two passes make it"),
            Way::Rows => ROWS.with(&[from, to, math, divide, number, lanes]),
            Way::Columns => COLUMNS.with(&[from, to, math, divide, number]),
            Way::RowsBytes => {
                // No more workgroup memory than it takes, so that more workgroups are under way.
                let taps = (2 * radius.next_multiple_of(4) + 4).min(512);
                ROWS_BYTES.with(&[lanes, ("TAPS", &format!("{taps}u"))])
            }
            Way::RowsFloats => {
                let taps = radius.next_multiple_of(4) + radius + 1;
                ROWS_FLOATS.with(&[lanes, ("TAPS", &format!("{taps}u"))])
            }
            Way::ColumnsHalves => {
                let rest = radius as u32 % COLUMNS_HALVES.constant("ROWS");
                COLUMNS_HALVES.with(&pass.to.stored()).with(&[("REST", &format!("{rest}u"))])
            }
            Way::BoxRows => {
                let [width, groups] = box_span(context, radius).expect("that is what chose it");
                let (width, groups) = (format!("{width}u"), format!("{groups}u"));
                BOX_ROWS.with(&[from, to, divide, lanes, ("WIDTH", &width), ("GROUPS", &groups)])
            }
            Way::BoxColumns => BOX_COLUMNS.with(&[from, divide]).with(&pass.to.stored()),
        };
        let tile = match way {
            Way::ColumnsHalves => ["ROWS", "WORDS"].map(|name| shader.constant(name) as usize),
            Way::BoxRows => ["WIDTH", "GROUPS"].map(|name| shader.constant(name) as usize),
            _ => [1, 1],
        };
        let entry = if pass.axis == 0 { "rows" } else { "columns" };
        let pipeline = context.pipeline(&shader, entry)?;
        let border = (way == Way::ColumnsHalves)
            .then(|| context.pipeline(&shader.with(&[("INNER", "false")]), entry))
            .transpose()?;
        let weight = |i: usize| match pass.arithmetic {
            _ if i > radius => 0,
            Arithmetic::F32 => pass.float_weights[i].to_bits(),
            _ if pass.integer_weights.is_empty() => 1,
            Arithmetic::ExactF32 => (pass.integer_weights[i] as f32).to_bits(),
            Arithmetic::U32 | Arithmetic::U48 => pass.integer_weights[i],
        };
        let weight_of = |i: usize| pass.integer_weights.get(i).copied().unwrap_or(0);
        // Both sides of the centre, between zeros on either side.
        let both = |zeros: usize, end: usize| -> Vec<u32> {
            let mut weights = vec![0; (zeros + 2 * radius + 1 + end).next_multiple_of(4)];
            (0..=2 * radius).for_each(|k| weights[zeros + k] = weight(k.abs_diff(radius)));
            weights
        };
        let (weights, radius) = match way {
            Way::Rows | Way::Columns => (Some(both(4, 3)), radius),
            Way::RowsFloats => {
                let lead = radius.next_multiple_of(4);
                (Some(both(lead - radius, 0)), lead)
            }
            Way::RowsBytes => {
                let lead = radius.next_multiple_of(4);
                // For each four elements: each plane's bytes of the weights with which they go to
                // each of the four sums.
                let mut weights = Vec::new();
                for quad in 0..=lead / 2 {
                    for plane in 0..PLANES {
                        for to in 0..4 {
                            let byte = |i: usize| {
                                let tap = (4 * quad + i).abs_diff(lead + to);
                                (weight_of(tap) >> (8 * plane) & 0xff) << (8 * i)
                            };
                            weights.push((0..4).map(byte).sum::<u32>());
                        }
                    }
                }
                (Some(weights), lead)
            }
            Way::ColumnsHalves => {
                let mut weights = vec![0; 4 + radius.next_multiple_of(4)];
                weights[0] = weight(0);
                (1..=radius).for_each(|i| weights[3 + i] = weight(i));
                (Some(weights), radius)
            }
            Way::BoxRows | Way::BoxColumns | Way::Fused => (None, radius),
        };
        let finish = match pass.rounding {
            Rounding::Shift(shift) => [0, (1 << shift) >> 1, shift, 1],
            Rounding::Divide { up, divisor } => [up, divisor / 2, 0, divisor],
            Rounding::None => [0, 0, 0, 1],
        };
        let fill = pass.fill.map(|value| match pass.arithmetic {
            Arithmetic::F32 => (value as f32).to_bits(),
            _ => value as u32,
        });
        let weights =
            weights.map(|weights| context.upload("blur weights", &weights)).transpose()?;
        Ok(Self {
            way,
            axis: pass.axis,
            to: pass.to,
            tile,
            fused: FusedParams::default(),
            pipeline,
            border,
            weights,
            radius: radius as u32,
            finish,
            fill,
        })
    }

    /// Records the pass over a whole block of samples.
    fn record(
        &self,
        batch: &mut Batch<'_>,
        context: &Context,
        layout: &Layout,
        edge: Edge,
        [source, target]: [&Buffer; 2],
    ) -> Result<()> {
        let &Self { radius, fill, finish: [up, half, shift, divisor], .. } = self;
        let edge = edge.code();
        let [width, y, z] = layout.shape.dims;
        let channels = layout.shape.channels;
        if self.way == Way::Fused {
            let words = (width * channels).div_ceil(4);
            let [columns, rows] = self.tile;
            let (across, down) = (words.div_ceil(columns), y.div_ceil(rows));
            let groups = (across * down * z) as u64;
            let params = FusedParams {
                samples: (width * channels) as u32,
                pitch: (layout.pitch * channels / 4) as u32,
                height: y as u32,
                across: across as u32,
                down: down as u32,
                groups: groups as u32,
                edge,
                ..self.fused
            };
            let pass = batch.pass("blur xy", &self.pipeline);
            let pass = pass.buffer("source", source).buffer("target_", target);
            pass.uniform("params", &params).dispatch(context.fold(groups)?);
            return Ok(());
        }
        let label = format!("blur {}", ["x", "y", "z"][self.axis]);
        let [size_x, ..] = self.pipeline.workgroup_size;
        let taps = 2 * radius + 1;
        let mut recorded = batch.pass(&label, &self.pipeline);
        recorded = recorded.buffer("source", source).buffer("target_", target);
        if let Some(weights) = &self.weights {
            recorded = recorded.buffer("weights", weights);
        }
        if self.axis == 0 {
            let extra = (2 * radius as usize).div_ceil(8) + 1;
            let most = match self.way {
                Way::Rows => 4 * size_x as usize,
                Way::BoxRows => 8 * (self.tile[1] - extra),
                _ => 8 * size_x as usize,
            };
            let tiles = width.div_ceil(most);
            let lanes = if channels < 3 { 4 / channels } else { 1 };
            let groups = ((y * z).div_ceil(lanes) * tiles) as u64;
            let blocks = match self.way {
                Way::RowsBytes => 2 * radius / 4 + 1,
                // Tiles of the same size.
                Way::BoxRows => (width.div_ceil(8).div_ceil(tiles) + extra) as u32,
                _ => (taps + 3).div_ceil(4),
            };
            let params = RowParams {
                width: width as u32,
                height: (y * z) as u32,
                pitch: layout.pitch as u32,
                groups: groups as u32,
                radius,
                blocks,
                tiles: tiles as u32,
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
        let (lines, len, quads) = if self.axis == 1 { (z, y, row) } else { (1, z, row * y) };
        let (run, blocks) = match self.way {
            Way::ColumnsHalves => {
                let [rows, words] = self.tile;
                (rows, (2 * quads).div_ceil(words * size_x as usize))
            }
            Way::BoxColumns => {
                let run = run_len(len, radius as usize);
                (run, run)
            }
            _ => (4, (taps as usize + 3).div_ceil(4)),
        };
        let tiles = len.div_ceil(run);
        let params = ColumnParams {
            quads: quads as u32,
            len: len as u32,
            tiles: tiles as u32,
            total: (lines * tiles * quads) as u32,
            blocks: blocks as u32,
            channels: channels as u32,
            radius,
            edge,
            up,
            half,
            shift,
            divisor,
            fill,
            ..ColumnParams::default()
        };
        let Some(border) = &self.border else {
            let groups = u64::from(params.total).div_ceil(size_x.into());
            recorded.uniform("params", &params).dispatch(context.fold(groups)?);
            return Ok(());
        };
        // Tiles before the first that reaches nothing outside, and those that do not.
        let first = (radius as usize).div_ceil(run).min(tiles);
        let inner = (len.saturating_sub(radius as usize) / run).saturating_sub(first);
        for (pipeline, tiles, split) in [(border, tiles - inner, first), (&self.pipeline, inner, 0)]
        {
            if tiles > 0 {
                let skip = if split == 0 { first } else { inner };
                let total = lines * tiles * blocks;
                let params = ColumnParams {
                    tiles: tiles as u32,
                    total: total as u32,
                    split: split as u32,
                    skip: skip as u32,
                    ..params
                };
                let pass = batch.pass(&label, pipeline);
                let pass = pass.buffer("source", source).buffer("target_", target);
                let pass = pass.buffer("weights", self.weights.as_ref().expect("it has weights"));
                pass.uniform("params", &params).dispatch(context.fold(total as u64)?);
            }
        }
        Ok(())
    }
}

/// How many rows one invocation slides over. Short runs keep those that are under way close together
/// in memory, which is worth more than first sums that are shared by many rows.
fn run_len(len: usize, radius: usize) -> usize {
    (radius / 2).clamp(16, 256).min(len)
}

impl Edge {
    /// What the shaders call it.
    pub(super) fn code(self) -> u32 {
        match self {
            Self::Clamp => 0,
            Self::Reflect => 1,
            Self::Mirror => 2,
            Self::Wrap => 3,
            Self::Constant(_) => 4,
        }
    }
}

/// How a block lies on the device: rows padded to a multiple of sixteen pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) shape: Shape,
    /// Pixels from row to row.
    pub(super) pitch: usize,
}

impl Layout {
    pub(super) fn new(shape: Shape) -> Self {
        Self { shape, pitch: shape.dims[0].next_multiple_of(16) }
    }

    /// Bytes of a buffer that shaders read in units of 16.
    fn bytes(&self, format: Format) -> u64 {
        (self.samples() * format.size() as u64).next_multiple_of(16)
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
    mut data: Values<'d>,
) -> Result<Values<'d>> {
    let reach = std::array::from_fn(|axis| blur.halo(axis));
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
        reach[pass[0].axis] = pass[0].taps.radius;
        let len = block_len(context, pass, shape, reach).ok_or_else(|| {
            Error::gpu(format_args!(
                "radius {} takes larger buffers than {} has",
                pass[0].taps.radius, context.info.name
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
    let max = u64::from(context.limits.workgroups);
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

/// `blocks` for whatever samples there are.
fn split(
    context: &Context,
    edge: Edge,
    plan: &[Pass],
    shape: Shape,
    reach: [usize; 3],
    len: [usize; 3],
    data: &Values<'_>,
) -> Result<Values<'static>> {
    // A block with its surroundings.
    let dims = std::array::from_fn(|axis| match len[axis] == shape.dims[axis] {
        true => len[axis],
        false => len[axis] + 2 * reach[axis],
    });
    let around = Shape { dims, channels: shape.channels };
    let steps = Step::all(context, plan, around, edge)?;
    let job = Job { context, edge, plan, steps: &steps, shape, reach, len };
    let to = plan.last().expect("a plan has passes").to;
    Ok(match (data, to) {
        (Values::U8(v), Format::U8) => Values::U8(Cow::Owned(job.blocks(v)?)),
        (Values::U8(v), _) => Values::U16(Cow::Owned(job.blocks(v)?)),
        (Values::U16(v), Format::U8) => Values::U8(Cow::Owned(job.blocks(v)?)),
        (Values::U16(v), _) => Values::U16(Cow::Owned(job.blocks(v)?)),
        (Values::U24(v), _) => Values::U24(Cow::Owned(job.blocks(v)?)),
        (Values::F32(v), _) => Values::F32(Cow::Owned(job.blocks(v)?)),
    })
}

/// A block of positions to be blurred, and the block around it that this takes. Positions of the
/// latter may lie outside of the raster; they stand for others inside.
#[derive(Clone, Copy, Debug)]
struct Block {
    start: [usize; 3],
    len: [usize; 3],
    around_start: [isize; 3],
    around_len: [usize; 3],
}

/// Passes over a raster, block by block.
struct Job<'a> {
    context: &'a Context,
    edge: Edge,
    plan: &'a [Pass],
    steps: &'a [Step],
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
        let mut target = memory::zeros::<D>(source.len())?;
        let [nx, ny, nz] = std::array::from_fn(|axis| shape.dims[axis].div_ceil(len[axis]));
        for number in 0..nx * ny * nz {
            let block = self.block([number % nx, number / nx % ny, number / nx / ny]);
            let around = Shape { dims: block.around_len, channels: shape.channels };
            // What the edge rule gets wrong at a cut stays within the part that is dropped.
            let output: Vec<D> = self.one(around, &gather(shape, edge, &block, source)?)?;
            scatter(shape, &block, &output, &mut target);
        }
        Ok(target)
    }

    /// The block with number `index`, and what it needs around it.
    fn block(&self, index: [usize; 3]) -> Block {
        let mut block =
            Block { start: [0; 3], len: [0; 3], around_start: [0; 3], around_len: [0; 3] };
        for (axis, &n) in self.shape.dims.iter().enumerate() {
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
        let bytes = layout.bytes(plan[0].from);
        let input = context.allocate("blur input", bytes)?;
        match row == pitch {
            true => context.write(&input, 0, source)?,
            false => {
                let mut padded = memory::zeros::<S>(layout.samples() as usize)?;
                for (to, from) in padded.chunks_exact_mut(pitch).zip(source.chunks_exact(row)) {
                    to[..row].copy_from_slice(from);
                }
                context.write(&input, 0, &padded)?;
            }
        }
        let mut batch = context.batch();
        let output =
            record(context, &mut batch, plan, self.steps, layout, self.edge, input, false)?;
        batch.run()?;
        let padded: Vec<D> = context.read(&output, layout.samples() as usize)?;
        Ok(match row == pitch {
            true => padded,
            false => {
                let mut lines = memory::room(padded.len() / pitch * row)?;
                padded.chunks_exact(pitch).for_each(|line| lines.extend_from_slice(&line[..row]));
                lines
            }
        })
    }
}

/// The samples of a block with its surroundings.
fn gather<T: Copy>(shape: Shape, edge: Edge, block: &Block, source: &[T]) -> Result<Vec<T>> {
    let [nx, ny, nz] = shape.dims;
    let channels = shape.channels;
    let places = |axis: usize, n: usize| {
        let start = block.around_start[axis];
        (start..start + block.around_len[axis] as isize)
            .map(move |at| edge.map(at, n).expect("a constant edge is never gathered"))
    };
    let columns: Vec<usize> = places(0, nx).collect();
    let straight = columns.windows(2).all(|pair| pair[1] == pair[0] + 1);
    let mut out = memory::room(block.around_len.iter().product::<usize>() * channels)?;
    for z in places(2, nz) {
        for y in places(1, ny) {
            let row = &source[(z * ny + y) * nx * channels..][..nx * channels];
            if straight {
                let first = columns[0] * channels;
                out.extend_from_slice(&row[first..][..columns.len() * channels]);
            } else {
                for &x in &columns {
                    out.extend_from_slice(&row[x * channels..][..channels]);
                }
            }
        }
    }
    Ok(out)
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

/// Records all passes and returns the buffer that will hold the result. With `keep` the input is not
/// written over.
#[allow(clippy::too_many_arguments)]
fn record(
    context: &Context,
    batch: &mut Batch<'_>,
    plan: &[Pass],
    steps: &[Step],
    layout: Layout,
    edge: Edge,
    input: Buffer,
    keep: bool,
) -> Result<Buffer> {
    // Two buffers take turns where formats repeat.
    let mut spare: Vec<(Format, Buffer)> = Vec::new();
    let mut from = (plan[0].from, input);
    for (number, step) in steps.iter().enumerate() {
        let bytes = layout.bytes(step.to());
        let free = spare.iter().position(|(format, _)| *format == step.to());
        let to = match free {
            Some(index) => spare.swap_remove(index).1,
            None => context.allocate("blur", bytes)?,
        };
        step.record(batch, context, &layout, edge, [&from.1, &to])?;
        let done = std::mem::replace(&mut from, (step.to(), to));
        if number > 0 || !keep {
            spare.push(done);
        }
    }
    Ok(from.1)
}

/// Passes over samples that stay on the device, to be recorded into a batch.
#[derive(Debug)]
pub struct Resident<'a> {
    context: &'a Context,
    plan: Vec<Pass>,
    steps: Vec<Step>,
    layout: Layout,
    edge: Edge,
}

impl<'a> Resident<'a> {
    /// Makes the pipelines and weights of `plan` over a raster of `shape`, which has to fit the device.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device fails.
    pub fn new(context: &'a Context, plan: Vec<Pass>, shape: Shape, edge: Edge) -> Result<Self> {
        let steps = Step::all(context, &plan, shape, edge)?;
        Ok(Self { context, plan, steps, layout: Layout::new(shape), edge })
    }

    /// Records all passes from `input`, whose rows are padded to a multiple of sixteen positions, and
    /// returns the buffer that will hold the result in the same form.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device has no memory left.
    pub fn record(&self, batch: &mut Batch<'_>, input: Buffer) -> Result<Buffer> {
        record(self.context, batch, &self.plan, &self.steps, self.layout, self.edge, input, true)
    }
}
