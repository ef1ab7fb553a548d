//! A Gaussian along x from u8 to u16, in f32: eight pixels per invocation.

use super::{IN_RANGE, Recording, Route, Task, params::literal, row_pass::RowPass};
use crate::{
    error::Result,
    gpu::{Context, Shader},
    kernels::blur::{Arithmetic, Format},
    shader,
};

static SHADER: Shader = shader!("blur/rows_u8").unchecked(IN_RANGE);

#[derive(Debug)]
pub struct RowsU8(RowPass);

/// The radius and the same with zeros before the weights: a span begins at a multiple of four pixels.
fn radii(task: &Task<'_>) -> [usize; 2] {
    let radius = task.passes[0].taps.radius;
    [radius, radius.next_multiple_of(4)]
}

impl Route for RowsU8 {
    fn fits(task: &Task<'_>) -> bool {
        let pass = &task.passes[0];
        pass.axis == 0
            && [pass.from, pass.to] == [Format::U8, Format::U16]
            && pass.arithmetic == Arithmetic::ExactF32
    }

    fn shaders(task: &Task<'_>) -> Vec<Shader> {
        let [radius, padded] = radii(task);
        let [channels, taps] = [task.shape.channels, padded + 1 + radius].map(literal);
        vec![SHADER.with(&[("CHANNELS", &channels), ("TAPS", &taps)])]
    }

    fn new(context: &Context, task: &Task<'_>) -> Result<Self> {
        let [radius, padded] = radii(task);
        let weights = task.passes[0].window(padded - radius, 0);
        let shader = &Self::shaders(task)[0];
        Ok(Self(RowPass::new(context, shader, task, padded, Some(&weights))?))
    }

    fn record(&self, to: &mut Recording<'_, '_>) -> Result<()> {
        self.0.record(to, SHADER.constant("TILE") as usize)
    }
}
