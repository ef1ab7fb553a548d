//! A box filter of f32 along x, eight pixels per invocation, at a cost that hardly depends on the radius.

use super::{
    FLOAT_BOX_RADIUS, IN_RANGE, Recording, Route, Task, params::literal, row_pass::RowPass,
};
use crate::{
    error::Result,
    gpu::{Context, Shader},
    shader,
};

static SHADER: Shader = shader!("blur/box_rows_f32").unchecked(IN_RANGE);

#[derive(Debug)]
pub struct BoxRowsF32 {
    pass: RowPass,
    tile: usize,
}

impl Route for BoxRowsF32 {
    fn fits(task: &Task<'_>) -> bool {
        let pass = &task.passes[0];
        pass.axis == 0 && pass.is_float_box() && pass.taps.radius >= FLOAT_BOX_RADIUS
    }

    fn shaders(task: &Task<'_>) -> Vec<Shader> {
        let run = SHADER.constant("RUN") as usize;
        // An invocation: nine elements and two times two sums of 16 bytes.
        let most = task.limits.workgroup_bytes / (16 * (run + 5));
        let width = 1 << most.min(task.limits.invocations).min(128).ilog2();
        let block = 1 << (task.passes[0].taps.count() / run).min(width).ilog2();
        let [channels, width, block] = [task.shape.channels, width, block].map(literal);
        vec![SHADER.with(&[("CHANNELS", &channels), ("WIDTH", &width), ("BLOCK", &block)])]
    }

    fn new(context: &Context, task: &Task<'_>) -> Result<Self> {
        let (shader, radius) = (&Self::shaders(task)[0], task.passes[0].taps.radius);
        let pass = RowPass::new(context, shader, task, radius, None)?;
        Ok(Self { pass, tile: shader.constant("TILE") as usize })
    }

    fn record(&self, to: &mut Recording<'_, '_>) -> Result<()> {
        self.pass.record(to, self.tile)
    }
}
