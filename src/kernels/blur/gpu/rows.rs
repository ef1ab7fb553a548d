//! The routes for passes along x.

use super::route::{IN_RANGE, PreparedRoute, Recording, Route, RoutePasses, label};
use crate::{
    gpu::{Buffer, Context, Shader},
    kernels::blur::{Arithmetic, Pass, PassFormat},
    shader, shader_struct,
    util::error::Result,
};

static BOX_ROWS: Shader = shader!("blur/box_rows").unchecked(IN_RANGE);
static ROWS_U8: Shader = shader!("blur/rows_u8").unchecked(IN_RANGE);
static ROWS_U8_LONG: Shader = shader!("blur/rows_u8_long").unchecked(IN_RANGE);
static ROWS: Shader = shader!("blur/rows").unchecked(IN_RANGE);

shader_struct! {
    /// `wgsl/blur/row_params.wgsl`.
    struct RowParams {
        width: u32, height: u32, pitch: u32, tile: u32, tiles: u32, groups: u32, radius: u32, edge: u32,
        rounding: [u32; 4], fill: [u32; 4],
    }
}

/// A box filter by prefix sums in workgroup memory. An invocation computes eight pixels at a time.
pub const BOX: Route = Route {
    passes: 1,
    fits: |task| task.passes[0].axis == 0 && task.passes[0].is_box() && Sizes::new(task).is_some(),
    shaders: |task| {
        let pass = &task.passes[0];
        let Sizes { invocations, groups, .. } = Sizes::new(task).expect("it fits");
        let shader = BOX_ROWS.with(&pass.formats()).with(&pass.box_sums());
        vec![with_channels(&shader, task).with(&[("WIDTH", invocations), ("GROUPS", groups)])]
    },
    new: |context, task| {
        let Sizes { groups, halo, .. } = Sizes::new(task).expect("it fits");
        let own = Tile::UpTo(GROUP * (groups - halo));
        RowPass::boxed(context, &BOX, task, task.passes[0].taps.radius, own, None)
    },
};

/// A Gaussian from u8 to u16, in f32: eight pixels per invocation.
pub const U8: Route = Route {
    passes: 1,
    fits: |task| is_u8_gaussian(task, Arithmetic::ExactF32),
    shaders: |task| {
        let radius = task.passes[0].taps.radius;
        let taps = radius.next_multiple_of(4) + 1 + radius;
        vec![with_channels(&ROWS_U8, task).with(&[("TAPS", taps)])]
    },
    new: |context, task| {
        // There are zeros before the weights, because a span begins at a multiple of four pixels.
        let (pass, radius) = (&task.passes[0], task.passes[0].taps.radius);
        let padded = radius.next_multiple_of(4);
        let weights = pass.window(padded - radius, 0);
        RowPass::boxed(context, &U8, task, padded, Tile::from_shader(&ROWS_U8), Some(&weights))
    },
};

/// A long Gaussian from u8 to u16, in bytes of 24-bit weights: eight pixels per invocation.
pub const U8_LONG: Route = Route {
    passes: 1,
    // The weight of a single tap is 2^24, which does not fit 24 bits.
    fits: |task| {
        is_u8_gaussian(task, Arithmetic::U32) && task.passes[0].weight(0) >> (8 * planes()) == 0
    },
    shaders: |task| {
        // Only as much workgroup memory as needed, so that more workgroups share a multiprocessor.
        let max = ROWS_U8_LONG.constant("TAPS") as usize;
        let taps = (2 * padded_radius(&task.passes[0]) + 4).min(max);
        vec![with_channels(&ROWS_U8_LONG, task).with(&[("TAPS", taps)])]
    },
    new: |context, task| {
        let pass = &task.passes[0];
        let weights = weights_by_byte(pass);
        let tile = Tile::from_shader(&ROWS_U8_LONG);
        RowPass::boxed(context, &U8_LONG, task, padded_radius(pass), tile, Some(&weights))
    },
};

/// Any pass: four pixels per invocation.
pub const ANY: Route = Route {
    passes: 1,
    fits: |task| task.passes[0].axis == 0,
    shaders: |task| {
        let pass = &task.passes[0];
        let shader = ROWS.with(&pass.formats()).with(&pass.sums(task.limits.multiply_add));
        vec![with_channels(&shader, task).with(&pass.divides())]
    },
    new: |context, task| {
        let pass = &task.passes[0];
        let weights = pass.window(4, 3);
        let tile = Tile::from_shader(&ROWS);
        RowPass::boxed(context, &ANY, task, pass.taps.radius, tile, Some(&weights))
    },
};

fn with_channels(shader: &Shader, task: &RoutePasses<'_>) -> Shader {
    shader.with(&[("CHANNELS", task.shape.channels)])
}

fn is_u8_gaussian(task: &RoutePasses<'_>, arithmetic: Arithmetic) -> bool {
    let pass = &task.passes[0];
    pass.axis == 0
        && [pass.from, pass.to] == [PassFormat::U8, PassFormat::U16]
        && pass.arithmetic == arithmetic
        && !pass.integer_weights.is_empty()
}

/// Number of bytes of a weight in [`U8_LONG`].
fn planes() -> u32 {
    ROWS_U8_LONG.constant("PLANES")
}

/// The radius in [`U8_LONG`], padded with zeros, because a span begins at a multiple of four pixels.
fn padded_radius(pass: &Pass) -> usize {
    pass.taps.radius.next_multiple_of(4)
}

/// For each step of four positions, each plane and each of four results, byte `plane` of the weights of these positions
/// in that result.
fn weights_by_byte(pass: &Pass) -> Vec<u32> {
    let radius = padded_radius(pass);
    let mut weights = Vec::new();
    for step in 0..=radius / 2 {
        for plane in 0..planes() {
            for to in 0..4 {
                let byte = |i: usize| {
                    let weight = pass.weight((4 * step + i).abs_diff(radius + to));
                    (weight >> (8 * plane) & 0xff) << (8 * i)
                };
                weights.push((0..4).map(byte).sum());
            }
        }
    }
    weights
}

/// Number of positions in a group of [`BOX`].
const GROUP: usize = 8;

/// The sizes of a workgroup of [`BOX`].
struct Sizes {
    invocations: usize,
    /// Groups of positions in workgroup memory, including the halo.
    groups: usize,
    halo: usize,
}

impl Sizes {
    /// The sizes for a task, with a small tile if workgroup memory requires it; `None` if not even the smallest tile
    /// fits.
    fn new(task: &RoutePasses<'_>) -> Option<Self> {
        let pass = &task.passes[0];
        let halo = (2 * pass.taps.radius).div_ceil(GROUP) + 1;
        // With small tiles, many workgroups share a multiprocessor. With a long halo, larger tiles load fewer samples.
        let tile = if halo <= 16 { 64 } else { 128 };
        let span = |tile: usize| {
            let groups = tile + halo;
            Self { invocations: groups.next_multiple_of(32).min(256), groups, halo }
        };
        // A group takes nine elements of four samples, and one or two sums of 16 bytes. An invocation takes two or four
        // sums.
        let element = if pass.from == PassFormat::U24 { 16 } else { 8 };
        let sum = if pass.arithmetic == Arithmetic::U39 { 32 } else { 16 };
        let bytes =
            |span: &Self| 40 + span.groups * (9 * element + sum) + span.invocations * 2 * sum;
        [tile, 64, 32].map(span).into_iter().find(|span| bytes(span) <= task.limits.workgroup_bytes)
    }
}

/// Number of pixels of a row that a workgroup computes.
#[derive(Debug)]
enum Tile {
    /// This number.
    Pixels(usize),
    /// At most this number, in tiles of equal size.
    UpTo(usize),
}

impl Tile {
    fn from_shader(shader: &Shader) -> Self {
        Self::Pixels(shader.constant("TILE") as usize)
    }
}

/// A pass along x.
#[derive(Debug)]
struct RowPass {
    shader: Shader,
    weights: Option<Buffer>,
    /// All parameters that do not depend on the block.
    params: RowParams,
    tile: Tile,
    /// Rows that a workgroup computes at once.
    rows: usize,
}

impl RowPass {
    /// The task's first pass, computed by `route`. `weights`, if there are any, are those of a window of `radius`.
    fn boxed(
        context: &Context,
        route: &Route,
        task: &RoutePasses<'_>,
        radius: usize,
        tile: Tile,
        weights: Option<&[u32]>,
    ) -> Result<Box<dyn PreparedRoute>> {
        let (shader, pass) = ((route.shaders)(task).remove(0), &task.passes[0]);
        Ok(Box::new(Self {
            weights: weights.map(|weights| context.upload("blur weights", weights)).transpose()?,
            params: RowParams {
                radius: radius as u32,
                edge: task.edge.code(),
                rounding: pass.rounding_params(),
                fill: pass.fill_channels(),
                ..RowParams::default()
            },
            tile,
            rows: shader.constant("ROWS") as usize,
            shader,
        }))
    }
}

impl PreparedRoute for RowPass {
    fn record(&self, to: &mut Recording<'_, '_>) -> Result<()> {
        let [width, y, z] = to.layout.grid.shape.dims;
        let tile = match self.tile {
            Tile::Pixels(pixels) => pixels,
            Tile::UpTo(max) => {
                let groups = width.div_ceil(GROUP);
                GROUP * groups.div_ceil(groups.div_ceil(max / GROUP))
            }
        };
        let tiles = width.div_ceil(tile);
        let groups = (y * z).div_ceil(self.rows) * tiles;
        let params = RowParams {
            width: width as u32,
            height: (y * z) as u32,
            pitch: to.layout.pitch as u32,
            tile: tile as u32,
            tiles: tiles as u32,
            groups: groups as u32,
            ..self.params
        };
        let weights: Vec<_> = self.weights.iter().map(|weights| ("weights", weights)).collect();
        to.dispatch(label(0), &self.shader, "blur_rows", &params, &weights, groups as u64)
    }
}
