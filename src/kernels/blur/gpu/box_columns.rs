//! A box filter along y or z by sliding sums: a run of rows per invocation.

use super::{IN_RANGE, Recording, Route, Task, column_pass::ColumnPass};
use crate::{
    error::Result,
    gpu::{Context, Shader},
    shader,
};

static SHADER: Shader = shader!("blur/box_columns").unchecked(IN_RANGE);

#[derive(Debug)]
pub struct BoxColumns {
    pass: ColumnPass,
    radius: usize,
}

impl Route for BoxColumns {
    fn fits(task: &Task<'_>) -> bool {
        task.passes[0].axis > 0 && task.passes[0].is_box()
    }

    fn shaders(task: &Task<'_>) -> Vec<Shader> {
        let pass = &task.passes[0];
        let shader = SHADER.with(&pass.to.packed());
        vec![shader.with(&pass.box_sums()).with(&[("FROM", pass.from.name())])]
    }

    fn new(context: &Context, task: &Task<'_>) -> Result<Self> {
        let pass = ColumnPass::new(context, &Self::shaders(task)[0], task, None)?;
        Ok(Self { pass, radius: task.passes[0].taps.radius })
    }

    fn record(&self, to: &mut Recording<'_, '_>) -> Result<()> {
        // A longer run shares the sums of its first window among more rows; a shorter one keeps the rows
        // that are in flight closer together in memory.
        let run = |len: usize| (self.radius / 2).clamp(16, 256).min(len);
        self.pass.record(to, run)
    }
}
