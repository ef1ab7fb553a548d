//! A pass along x, of any format: four pixels per invocation.

use super::{IN_RANGE, Recording, Route, Task, params::literal, row_pass::RowPass};
use crate::{
    error::Result,
    gpu::{Context, Shader},
    shader,
};

static SHADER: Shader = shader!("blur/rows").unchecked(IN_RANGE);

#[derive(Debug)]
pub struct Rows(RowPass);

impl Route for Rows {
    fn fits(task: &Task<'_>) -> bool {
        task.passes[0].axis == 0
    }

    fn shaders(task: &Task<'_>) -> Vec<Shader> {
        let pass = &task.passes[0];
        let formats = [("FROM", pass.from.name()), ("TO", pass.to.name())];
        let shader = SHADER.with(&formats).with(&pass.arithmetic.constants());
        let channels = literal(task.shape.channels);
        vec![shader.with(&pass.divides()).with(&[("CHANNELS", &channels)])]
    }

    fn new(context: &Context, task: &Task<'_>) -> Result<Self> {
        let pass = &task.passes[0];
        let weights = pass.window(4, 3);
        let shader = &Self::shaders(task)[0];
        Ok(Self(RowPass::new(context, shader, task, pass.taps.radius, Some(&weights))?))
    }

    fn record(&self, to: &mut Recording<'_, '_>) -> Result<()> {
        self.0.record(to, SHADER.constant("TILE") as usize)
    }
}
