//! A pass along y or z: parameters and dispatch, for all routes along y or z.

use std::sync::Arc;

use super::{Layout, Recording, Task};
use crate::{
    error::Result,
    gpu::{Buffer, Context, Pipeline, Shader},
    shader_struct,
};

shader_struct! {
    /// `wgsl/blur/column_params.wgsl`.
    pub struct ColumnParams {
        quads: u32, len: u32, outer: u32, run: u32, runs: u32, radius: u32, edge: u32, channels: u32,
        rounding: [u32; 4], fill: [u32; 4],
    }
}

impl ColumnParams {
    /// The first pass of `task`, without what depends on the block.
    pub fn new(task: &Task<'_>) -> Self {
        let pass = &task.passes[0];
        Self {
            radius: pass.taps.radius as u32,
            edge: task.edge.code(),
            channels: task.shape.channels as u32,
            rounding: pass.rounding_params(),
            fill: pass.fill_channels(),
            ..Self::default()
        }
    }

    /// The same over a block along `axis`, where an invocation computes `run` rows.
    pub fn over(self, layout: &Layout, axis: usize, run: usize) -> Self {
        let [outer, len, row] = layout.padded().along(axis);
        Self {
            quads: (row / 4) as u32,
            len: len as u32,
            outer: outer as u32,
            run: run as u32,
            runs: len.div_ceil(run) as u32,
            ..self
        }
    }
}

/// A pass along y or z with its pipeline.
#[derive(Debug)]
pub struct ColumnPass {
    pipeline: Arc<Pipeline>,
    weights: Option<Buffer>,
    params: ColumnParams,
    axis: usize,
}

impl ColumnPass {
    /// The task's first pass by `shader`.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the driver refuses the shader or there is no memory.
    pub fn new(
        context: &Context,
        shader: &Shader,
        task: &Task<'_>,
        weights: Option<&[u32]>,
    ) -> Result<Self> {
        Ok(Self {
            pipeline: context.pipeline(shader, "blur_columns")?,
            weights: weights.map(|weights| context.upload("blur weights", weights)).transpose()?,
            params: ColumnParams::new(task),
            axis: task.passes[0].axis,
        })
    }

    /// Records it over a block, where an invocation computes `run(len)` of `len` rows along the axis.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the block needs more workgroups than a dispatch may have.
    pub fn record(&self, to: &mut Recording<'_, '_>, run: impl Fn(usize) -> usize) -> Result<()> {
        let run = run(to.layout.shape.dims[self.axis]);
        let params = self.params.over(&to.layout, self.axis, run);
        let invocations = params.quads as u64 * params.runs as u64 * params.outer as u64;
        let size = self.pipeline.workgroup_size[0];
        let groups = to.context.fold(invocations.div_ceil(size.into()))?;
        let mut pass = to.pass(label(self.axis), &self.pipeline).uniform("params", &params);
        if let Some(weights) = &self.weights {
            pass = pass.buffer("weights", weights);
        }
        pass.dispatch(groups);
        Ok(())
    }
}

/// The label of a pass along `axis`.
pub fn label(axis: usize) -> &'static str {
    ["blur x", "blur y", "blur z"][axis]
}
