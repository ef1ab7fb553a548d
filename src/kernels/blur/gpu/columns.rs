//! A pass along y or z, of any format: four rows per invocation.

use super::{IN_RANGE, Recording, Route, Task, column_pass::ColumnPass};
use crate::{
    error::Result,
    gpu::{Context, Shader},
    shader,
};

static SHADER: Shader = shader!("blur/columns").unchecked(IN_RANGE);

#[derive(Debug)]
pub struct Columns(ColumnPass);

impl Route for Columns {
    fn fits(task: &Task<'_>) -> bool {
        task.passes[0].axis > 0
    }

    fn shaders(task: &Task<'_>) -> Vec<Shader> {
        let pass = &task.passes[0];
        let formats = [("FROM", pass.from.name()), ("TO", pass.to.name())];
        let shader = SHADER.with(&formats).with(&pass.arithmetic.constants());
        vec![shader.with(&pass.divides())]
    }

    fn new(context: &Context, task: &Task<'_>) -> Result<Self> {
        let weights = task.passes[0].window(4, 3);
        Ok(Self(ColumnPass::new(context, &Self::shaders(task)[0], task, Some(&weights))?))
    }

    fn record(&self, to: &mut Recording<'_, '_>) -> Result<()> {
        self.0.record(to, |_| SHADER.constant("ROWS") as usize)
    }
}
