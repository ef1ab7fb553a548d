//! A box filter of u8 along y and x at once.

use super::route::{IN_RANGE, PreparedRoute, Recording, Route, RoutePasses};
use crate::{
    data::{division::RoundedU32, dtype::Dtype, grid::GridType},
    gpu::{Buffer, Shader},
    kernels::{
        blur::{PassFormat, Rounding},
        gpu_step::GpuLayout,
    },
    shader, shader_struct,
    util::error::Result,
};

static SHADER: Shader = shader!("blur/box_tile").unchecked(IN_RANGE);

shader_struct! {
    struct BoxTileParams {
        width: u32, height: u32, pitch: u32, tile: u32, across: u32, down: u32, run: u32, total: u32,
        radius: [u32; 2], margin: u32, half: u32, shift: u32, factor: u32, shift_x: u32, slices: u32,
        addend: [u32; 2], blocks: u32, margin_blocks: u32, fill: [u32; 4],
    }
}

/// Columns per invocation.
const PIXELS: usize = 8;
/// From this radius along y on, sums of blocks of rows are computed first. Otherwise each workgroup would sum its first
/// window row by row.
const BLOCKS_RADIUS: usize = 40;
/// Multiprocessors of a large device. No API reports their number.
const MULTIPROCESSORS: usize = 132;
/// Maximum number of invocations of a workgroup that shares a multiprocessor with another one.
const MAX_SHARING: usize = 288;
/// Maximum number of invocations of a workgroup.
const MAX_INVOCATIONS: usize = 640;

#[derive(Debug)]
struct BoxTile {
    shader: Shader,
    /// Whether blocks of rows are summed first, for long windows along y.
    sums_blocks: bool,
    sizes: Sizes,
    /// All parameters that do not depend on the block.
    params: BoxTileParams,
}

/// The sizes of a workgroup's work.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    invocations: usize,
    /// Pixels of a row.
    tile: usize,
    /// Rows.
    run: usize,
    /// Pixels before an invocation's first window: the span begins at a multiple of [`PIXELS`].
    lead: usize,
    /// Words of a load.
    chunk: usize,
    /// Pixels on either side of the image in the margins: those of windows, and [`PIXELS`] more.
    margin: usize,
}

impl Sizes {
    /// The sizes for a task; `None` if workgroup memory is too small for a tile that is longer than its halo, or a
    /// binding for the margins.
    fn new(task: &RoutePasses<'_>) -> Option<Self> {
        let ([x, y], limits) = (radii(task), &task.limits);
        let [width, height, slices] = task.shape.dims;
        let lead = x.next_multiple_of(PIXELS) - x;
        let halo = lead + 2 * x + 1;
        // 8 bytes per pixel, 12 per invocation, 16 per segment. Small workgroups wait less at barriers, large ones have
        // less halo.
        let segments = MAX_INVOCATIONS / min_segment(task)?;
        let bytes = limits.workgroup_bytes.saturating_sub(16 * segments);
        let max = (bytes / (8 * PIXELS + 12)).min(limits.invocations).min(MAX_INVOCATIONS);
        let mut invocations = match (6 * halo / PIXELS).max(128).next_multiple_of(32) {
            few @ ..=MAX_SHARING => few.min(max),
            _ => max,
        };
        let tile = (PIXELS * invocations).checked_sub(halo).filter(|&tile| tile >= 128)?;
        // Tiles of equal size have no idle invocations. Images of a single tile share a pipeline.
        let across = width.div_ceil(tile / PIXELS * PIXELS);
        let tile = width.div_ceil(across).next_multiple_of(PIXELS);
        if across > 1 {
            invocations = (tile + halo).div_ceil(PIXELS);
        }
        let run = match invocations {
            ..=MAX_SHARING => short_run(y),
            // All workgroups run at once.
            _ => height.div_ceil((MULTIPROCESSORS / (across * slices)).max(1)).clamp(64, 256),
        };
        let chunk = if task.shape.channels.is_multiple_of(2) { 4 } else { 2 };
        let margin = (x + 2 * PIXELS).next_multiple_of(PIXELS);
        let sizes = Self { invocations, tile, run, lead, chunk, margin };
        // Margins of a narrow image may be larger than the image.
        let grid = GridType { shape: task.shape, dtype: Dtype::U8 };
        let buffers = Buffers::new(&sizes, &GpuLayout::padded(grid));
        let blocks = if y >= BLOCKS_RADIUS { buffers.blocks_bytes } else { 0 };
        (buffers.margins_bytes.max(blocks) <= limits.binding).then_some(sizes)
    }
}

/// Number of rows of a workgroup that shares a multiprocessor.
fn short_run(radius: usize) -> usize {
    match radius {
        0..8 => 32,
        // As long as windows: the workgroup of the run above has read the leaving rows, which are still in the cache.
        24..BLOCKS_RADIUS => 2 * radius,
        _ => 64,
    }
}

/// The radii along x and y.
fn radii(task: &RoutePasses<'_>) -> [usize; 2] {
    [1, 0].map(|pass| task.passes[pass].taps.radius)
}

/// Minimum number of invocations of a segment: a subgroup, or 32 invocations of it.
fn min_segment(task: &RoutePasses<'_>) -> Option<usize> {
    task.limits.subgroup.map(|[min, _]| min.clamp(4, 32) as usize)
}

/// The shift of sums along y, and the division of sums along x.
fn roundings(task: &RoutePasses<'_>) -> Option<(u32, RoundedU32)> {
    let Rounding::Shift(shift) = task.passes[0].rounding else { return None };
    let Rounding::Divide { up, divisor } = task.passes[1].rounding else { return None };
    Some((shift, RoundedU32::new(up, divisor)?))
}

/// The sizes of the additional buffers for a block.
struct Buffers {
    /// Chunks of a row, and of its margins.
    inner: usize,
    outer: usize,
    /// Layers and blocks of rows in a slice.
    layers: usize,
    blocks: usize,
    margins_bytes: u64,
    blocks_bytes: u64,
}

impl Buffers {
    fn new(sizes: &Sizes, layout: &GpuLayout) -> Self {
        let [_, height, slices] = layout.grid.shape.dims;
        let [block, layer] = ["BLOCK", "LAYER"].map(|name| SHADER.constant(name) as usize);
        let chunks = |pixels: usize| pixels * layout.grid.shape.channels / 4 / sizes.chunk;
        let (inner, outer) = (chunks(layout.pitch), chunks(2 * sizes.margin));
        let layers = height.div_ceil(layer);
        let blocks = layers * (layer / block);
        let bytes = |chunks: usize| (4 * sizes.chunk * chunks) as u64;
        Self {
            inner,
            outer,
            layers,
            blocks,
            margins_bytes: bytes(outer * height * slices),
            blocks_bytes: bytes(2 * (inner + outer) * blocks * slices),
        }
    }
}

/// A box filter of u8 along y and x.
pub const ROUTE: Route = Route {
    passes: 2,
    fits: |task| {
        let [y, x] = [0, 1].map(|i| &task.passes[i]);
        [y.axis, x.axis] == [1, 0]
            && [y.from, x.to] == [PassFormat::U8; 2]
            && y.is_box()
            && task.limits.int64
            && roundings(task).is_some()
            && Sizes::new(task).is_some()
    },
    shaders: |task| {
        let sizes = Sizes::new(task).expect("it fits");
        let (shift, _) = roundings(task).expect("it fits");
        let ([x, y], channels) = (radii(task), task.shape.channels);
        let [_, largest] = task.limits.subgroup.expect("it fits");
        let segments = sizes.invocations.div_ceil(min_segment(task).expect("it fits"));
        let steps = largest.clamp(1, 32).ilog2() as usize;
        let chunk = ["vec2<u32>", "vec4<u32>"][sizes.chunk / 4];
        let shader = SHADER.with(&[("Chunk", chunk), ("EDGE", task.edge.name())]);
        let shader = shader.with(&[("WIDE", shift > 0), ("BLOCKS", y >= BLOCKS_RADIUS)]);
        vec![shader.with(&[
            ("CHANNELS", channels),
            ("CHUNK", sizes.chunk),
            ("WIDTH", sizes.invocations),
            ("LEAD", sizes.lead),
            ("TAPS", 2 * x + 1),
            ("SEGMENTS", segments),
            ("STEPS", steps),
        ])]
    },
    new: |_, task| {
        let sizes = Sizes::new(task).expect("it fits");
        let (shift, quotient) = roundings(task).expect("it fits");
        let [x, y] = radii(task);
        Ok(Box::new(BoxTile {
            shader: (ROUTE.shaders)(task).remove(0),
            sums_blocks: y >= BLOCKS_RADIUS,
            sizes,
            params: BoxTileParams {
                tile: sizes.tile as u32,
                run: sizes.run as u32,
                radius: [x as u32, y as u32],
                margin: sizes.margin as u32,
                half: (1 << shift) >> 1,
                shift,
                factor: quotient.factor,
                shift_x: quotient.shift - 32,
                addend: [quotient.addend as u32, (quotient.addend >> 32) as u32],
                fill: task.passes[0].fill_words(task.shape.channels),
                ..BoxTileParams::default()
            },
        }))
    },
};

impl PreparedRoute for BoxTile {
    fn record(&self, to: &mut Recording<'_, '_>) -> Result<()> {
        let (context, layout) = (to.context, to.layout);
        let [width, height, slices] = layout.grid.shape.dims;
        let buffers = Buffers::new(&self.sizes, &layout);
        let Buffers { inner, outer, layers, blocks, .. } = buffers;
        let across = width.div_ceil(self.sizes.tile);
        let down = height.div_ceil(self.sizes.run);
        let params = BoxTileParams {
            width: width as u32,
            height: height as u32,
            pitch: layout.pitch as u32,
            across: across as u32,
            down: down as u32,
            total: (across * down * slices) as u32,
            slices: slices as u32,
            blocks: blocks as u32,
            margin_blocks: (2 * inner * blocks * slices) as u32,
            ..self.params
        };
        let shader = &self.shader;
        let mut make = |label, entry, total: usize, bytes, margins: Option<&Buffer>| {
            let made = context.allocate(label, bytes)?;
            let params = BoxTileParams { total: total as u32, ..params };
            let size = context.pipeline(shader, entry)?.workgroup_size[0];
            let buffers = [("made", &made), ("margins", margins.unwrap_or(&made))];
            let groups = (total as u64).div_ceil(size.into());
            to.dispatch(label, shader, entry, &params, &buffers, groups)?;
            Result::Ok(made)
        };
        let total = outer * height * slices;
        let margins = make("blur margins", "fill_margins", total, buffers.margins_bytes, None)?;
        let mut sums = None;
        if self.sums_blocks {
            let (total, bytes) = ((inner + outer) * layers * slices, buffers.blocks_bytes);
            sums = Some(make("blur blocks", "sum_blocks", total, bytes, Some(&margins))?);
        }
        // Bound but never read if no blocks are summed.
        let sums = sums.unwrap_or_else(|| to.source.clone());
        let more = [("margins", &margins), ("blocks", &sums)];
        to.dispatch("blur yx", shader, "blur", &params, &more, params.total.into())
    }
}
