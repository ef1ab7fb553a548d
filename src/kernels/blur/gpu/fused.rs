//! A small Gaussian along x and y at once, from u8.

use super::route::{IN_RANGE, PreparedRoute, Recording, Route, RoutePasses};
use crate::{
    gpu::Shader,
    kernels::blur::{Arithmetic, Edge, Pass, PassFormat, Rounding},
    shader, shader_struct,
    util::error::Result,
};

static SHADER: Shader = shader!("blur/fused").unchecked(IN_RANGE);

shader_struct! {
    struct FusedParams {
        samples: u32, pitch: u32, height: u32, across: u32, down: u32, rows: u32, groups: u32,
        edge: u32, fill: [u32; 4], x: [[u32; 4]; 3], y: [[u32; 4]; 3],
    }
}

/// The largest radius whose ring of rows fits in registers, and whose weights fit in the parameters.
const MAX_RADIUS: usize = 5;

#[derive(Debug)]
struct Fused {
    shader: Shader,
    params: FusedParams,
    /// Words and rows of a tile.
    tile: [usize; 2],
}

fn radius(task: &RoutePasses<'_>) -> usize {
    task.passes[0].taps.radius.max(task.passes[1].taps.radius)
}

/// The weights of a pass, scaled so that sums divided by 2^`bits` are its results.
fn weights(pass: &Pass, bits: u32) -> [[u32; 4]; 3] {
    let Rounding::Shift(shift) = pass.rounding else { unreachable!("Gaussians of u8 shift") };
    let weight =
        |i: usize| pass.integer_weights.get(i).map_or(0, |weight| weight << (bits - shift));
    std::array::from_fn(|i| std::array::from_fn(|j| weight(4 * i + j)))
}

/// A Gaussian along x and y.
pub const ROUTE: Route = Route {
    passes: 2,
    fits: |task| {
        let [x, y] = [0, 1].map(|i| &task.passes[i]);
        [x.axis, y.axis] == [0, 1]
            && (x.from, x.arithmetic) == (PassFormat::U8, Arithmetic::ExactF32)
            && radius(task) <= MAX_RADIUS
    },
    shaders: |task| {
        let shader = SHADER.with(&task.passes[1].to.packed());
        let shader = shader.with(&[("HAS_FILL", matches!(task.edge, Edge::Constant(_)))]);
        vec![shader.with(&[("RADIUS", radius(task)), ("CHANNELS", task.shape.channels)])]
    },
    new: |_, task| {
        let shader = (ROUTE.shaders)(task).remove(0);
        let [x, y] = [0, 1].map(|i| &task.passes[i]);
        let upper = if y.to == PassFormat::U8 { 24 } else { 16 };
        Ok(Box::new(Fused {
            params: FusedParams {
                edge: task.edge.code(),
                fill: x.fill_words(task.shape.channels),
                x: weights(x, 16),
                y: weights(y, upper),
                ..FusedParams::default()
            },
            tile: ["TILE_WORDS", "HEIGHT"].map(|name| shader.constant(name) as usize),
            shader,
        }))
    },
};

impl PreparedRoute for Fused {
    fn record(&self, to: &mut Recording<'_, '_>) -> Result<()> {
        let [width, height, slices] = to.layout.grid.shape.dims;
        let samples = width * to.layout.grid.shape.channels;
        let across = samples.div_ceil(4).div_ceil(self.tile[0]);
        let down = height.div_ceil(self.tile[1]);
        let groups = across * down * slices;
        let params = FusedParams {
            samples: samples as u32,
            pitch: (to.layout.pitch * to.layout.grid.shape.channels / 4) as u32,
            height: height as u32,
            across: across as u32,
            down: down as u32,
            rows: (down * slices) as u32,
            groups: groups as u32,
            ..self.params
        };
        to.dispatch("blur xy", &self.shader, "blur", &params, &[], groups as u64)
    }
}
