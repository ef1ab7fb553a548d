//! A Gaussian along y or z from u16, in packed lanes: twelve rows per invocation.

use std::sync::Arc;

use super::{
    IN_RANGE, Recording, Route, Task,
    column_pass::{ColumnParams, label},
    params::{flag, literal},
};
use crate::{
    error::Result,
    gpu::{Buffer, Context, Pipeline, Shader},
    kernels::blur::{Arithmetic, Format, Pass},
    shader, shader_struct,
};

static SHADER: Shader = shader!("blur/columns_u16").unchecked(IN_RANGE);

shader_struct! {
    struct Gap { start: u32, runs: u32 }
}

#[derive(Debug)]
pub struct ColumnsU16 {
    /// `inner` computes runs whose windows lie inside, `border` the others.
    inner: Arc<Pipeline>,
    border: Arc<Pipeline>,
    weights: Buffer,
    params: ColumnParams,
    axis: usize,
    /// Rows a run.
    run: usize,
}

/// The centre's weight and three zeros, then those of distances 1 to the radius.
fn weights(pass: &Pass) -> Vec<u32> {
    let mut weights = vec![pass.weight(0), 0, 0, 0];
    weights.extend((1..=pass.taps.radius.next_multiple_of(4)).map(|i| pass.weight(i)));
    weights
}

impl Route for ColumnsU16 {
    fn fits(task: &Task<'_>) -> bool {
        let pass = &task.passes[0];
        pass.axis > 0
            && (pass.from, pass.arithmetic) == (Format::U16, Arithmetic::U32)
            && !pass.is_box()
    }

    fn shaders(task: &Task<'_>) -> Vec<Shader> {
        let pass = &task.passes[0];
        let rest = literal(pass.taps.radius % SHADER.constant("ROWS") as usize);
        let shader = SHADER.with(&pass.to.packed()).with(&[("REST", &rest)]);
        let inner = shader.with(&[("INNER", flag(true))]);
        let border = shader.with(&[("INNER", flag(false)), ("EDGE", task.edge.name())]);
        vec![inner, border]
    }

    fn new(context: &Context, task: &Task<'_>) -> Result<Self> {
        let shaders = Self::shaders(task);
        Ok(Self {
            inner: context.pipeline(&shaders[0], "blur_columns")?,
            border: context.pipeline(&shaders[1], "blur_columns")?,
            weights: context.upload("blur weights", &weights(&task.passes[0]))?,
            params: ColumnParams::new(task),
            axis: task.passes[0].axis,
            run: SHADER.constant("ROWS") as usize,
        })
    }

    fn record(&self, to: &mut Recording<'_, '_>) -> Result<()> {
        let params = self.params.over(&to.layout, self.axis, self.run);
        let run = self.run as u32;
        // The runs before the first whose windows lie inside, and how many of these there are.
        let before = params.radius.div_ceil(run).min(params.runs);
        let inner = (params.len.saturating_sub(params.radius) / run).saturating_sub(before);
        let border = Gap { start: before, runs: inner };
        let inside = Gap { start: 0, runs: before };
        for (pipeline, runs, gap) in
            [(&self.border, params.runs - inner, border), (&self.inner, inner, inside)]
        {
            let across = params.quads.div_ceil(pipeline.workgroup_size[0]);
            let groups = u64::from(across) * u64::from(runs) * u64::from(params.outer);
            if groups > 0 {
                let params = ColumnParams { runs, ..params };
                let groups = to.context.fold(groups)?;
                let pass = to.pass(label(self.axis), pipeline).uniform("params", &params);
                pass.uniform("gap", &gap).buffer("weights", &self.weights).dispatch(groups);
            }
        }
        Ok(())
    }
}
