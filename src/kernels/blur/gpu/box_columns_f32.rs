//! A box filter of f32 along y or z, sixteen rows per invocation, at a cost that hardly depends on the radius.

use std::sync::Arc;

use super::{
    FLOAT_BOX_RADIUS, IN_RANGE, Layout, Recording, Route, Task,
    column_pass::{ColumnParams, label},
    params::flag,
};
use crate::{
    error::Result,
    gpu::{Context, Pipeline, Shader},
    kernels::blur::Format,
    shader, shader_struct,
};

static SHADER: Shader = shader!("blur/box_columns_f32").unchecked(IN_RANGE);

shader_struct! {
    struct BlockParams { small: u32, large: u32, first: u32 }
}

#[derive(Debug)]
pub struct BoxColumnsF32 {
    /// Sums blocks first, if a binding can hold the sums.
    sum_blocks: Option<Arc<Pipeline>>,
    blur: Arc<Pipeline>,
    params: ColumnParams,
    axis: usize,
    radius: usize,
}

/// Rows of a run and of a small block, and small blocks in a large one.
fn rows() -> [usize; 2] {
    ["ROWS", "LARGE"].map(|name| SHADER.constant(name) as usize)
}

/// Blocks of rows along the axis, and the bytes of their sums.
struct Blocks {
    small: usize,
    large: usize,
    bytes: u64,
}

impl Blocks {
    fn new(layout: &Layout, axis: usize, radius: usize) -> Self {
        let ([rows, in_large], [outer, len, row]) = (rows(), layout.padded().along(axis));
        let small = (len.next_multiple_of(rows) + 2 * radius).div_ceil(rows);
        let large = small.div_ceil(in_large);
        let bytes = (outer * (small + large) * row * Format::F32.size()) as u64;
        Self { small, large, bytes }
    }
}

/// Whether sums of blocks are made first: where a binding holds them.
fn has_blocks(task: &Task<'_>) -> bool {
    let pass = &task.passes[0];
    let blocks = Blocks::new(&Layout::new(task.shape), pass.axis, pass.taps.radius);
    blocks.bytes <= task.limits.binding
}

impl Route for BoxColumnsF32 {
    fn fits(task: &Task<'_>) -> bool {
        let pass = &task.passes[0];
        pass.axis > 0 && pass.is_float_box() && pass.taps.radius >= FLOAT_BOX_RADIUS
    }

    fn shaders(task: &Task<'_>) -> Vec<Shader> {
        vec![SHADER.with(&[("BLOCKS", flag(has_blocks(task)))])]
    }

    fn new(context: &Context, task: &Task<'_>) -> Result<Self> {
        let (shader, pass) = (&Self::shaders(task)[0], &task.passes[0]);
        let sum_blocks = || context.pipeline(shader, "sum_blocks");
        Ok(Self {
            sum_blocks: has_blocks(task).then(sum_blocks).transpose()?,
            blur: context.pipeline(shader, "blur_columns")?,
            params: ColumnParams::new(task),
            axis: pass.axis,
            radius: pass.taps.radius,
        })
    }

    fn record(&self, to: &mut Recording<'_, '_>) -> Result<()> {
        let params = self.params.over(&to.layout, self.axis, rows()[0]);
        let samples = u64::from(params.quads) * u64::from(params.outer);
        let context = to.context;
        let groups = |pipeline: &Pipeline, runs: u32| {
            let invocations = samples * u64::from(runs);
            context.fold(invocations.div_ceil(pipeline.workgroup_size[0].into()))
        };
        let blocks = Blocks::new(&to.layout, self.axis, self.radius);
        let block_params = BlockParams {
            small: blocks.small as u32,
            large: blocks.large as u32,
            first: (samples * blocks.small as u64) as u32,
        };
        // Bound, though never read, where no blocks are summed.
        let mut sums = to.source.clone();
        if let Some(pipeline) = &self.sum_blocks {
            sums = context.allocate("blur blocks", blocks.bytes)?;
            let pass = to.batch.pass("blur blocks", pipeline).uniform("params", &params);
            let pass = pass.uniform("block_params", &block_params);
            let pass = pass.buffer("source", &to.source).buffer("made", &sums);
            pass.dispatch(groups(pipeline, block_params.large)?);
        }
        let groups = groups(&self.blur, params.runs)?;
        let pass = to.pass(label(self.axis), &self.blur).uniform("params", &params);
        pass.uniform("block_params", &block_params).buffer("blocks", &sums).dispatch(groups);
        Ok(())
    }
}
