//! The routes for passes along y or z.

use super::route::{IN_RANGE, PreparedRoute, Recording, Route, RoutePasses, label};
use crate::{
    gpu::{Buffer, Context, Shader},
    kernels::{
        blur::{Arithmetic, Pass, PassFormat},
        gpu_step::GpuLayout,
    },
    shader, shader_struct,
    util::error::Result,
};

static BOX_COLUMNS: Shader = shader!("blur/box_columns").unchecked(IN_RANGE);
static COLUMNS_U16: Shader = shader!("blur/columns_u16").unchecked(IN_RANGE);
static COLUMNS: Shader = shader!("blur/columns").unchecked(IN_RANGE);

shader_struct! {
    /// `wgsl/blur/column_params.wgsl`.
    struct ColumnParams {
        quads: u32, len: u32, outer: u32, run: u32, runs: u32, radius: u32, edge: u32, channels: u32,
        rounding: [u32; 4], fill: [u32; 4], gap_start: u32, gap_runs: u32, unused: [u32; 2],
    }
}

/// A box filter by sliding sums: a run of rows per invocation.
pub const BOX: Route = Route {
    passes: 1,
    fits: |task| task.passes[0].axis > 0 && task.passes[0].is_box(),
    shaders: |task| {
        let pass = &task.passes[0];
        let shader = BOX_COLUMNS.with(&pass.to.packed()).with(&pass.box_sums());
        vec![shader.with(&[("FROM", pass.from.name())])]
    },
    new: |context, task| {
        // In a longer run, more rows share the sum of the first window. In a shorter one, the rows in flight are closer
        // together in memory.
        let run = (task.passes[0].taps.radius / 2).clamp(16, 256);
        Ok(Box::new(ColumnPass::new(context, &BOX, task, run, None)?))
    },
};

/// A Gaussian from u16, in packed lanes: twelve rows per invocation.
pub const U16: Route = Route {
    passes: 1,
    fits: |task| {
        let pass = &task.passes[0];
        let kind = (pass.from, pass.arithmetic);
        pass.axis > 0 && kind == (PassFormat::U16, Arithmetic::U32) && !pass.is_box()
    },
    shaders: |task| {
        let pass = &task.passes[0];
        let rest = pass.taps.radius % run_rows(&COLUMNS_U16);
        let shader = COLUMNS_U16.with(&pass.to.packed()).with(&[("REST", rest)]);
        let inner = shader.with(&[("INNER", true)]);
        let border = shader.with(&[("INNER", false)]).with(&[("EDGE", task.edge.name())]);
        vec![inner, border]
    },
    new: |context, task| {
        let weights = distances(&task.passes[0]);
        let run = run_rows(&COLUMNS_U16);
        let inner = ColumnPass::new(context, &U16, task, run, Some(&weights))?;
        let border = (U16.shaders)(task).remove(1);
        Ok(Box::new(InnerAndBorder { inner, border }))
    },
};

/// Any pass: four rows per invocation.
pub const ANY: Route = Route {
    passes: 1,
    fits: |task| task.passes[0].axis > 0,
    shaders: |task| {
        let pass = &task.passes[0];
        let shader = COLUMNS.with(&pass.formats()).with(&pass.sums(task.limits.multiply_add));
        vec![shader.with(&pass.divides())]
    },
    new: |context, task| {
        let weights = task.passes[0].window(4, 3);
        Ok(Box::new(ColumnPass::new(context, &ANY, task, run_rows(&COLUMNS), Some(&weights))?))
    },
};

/// Number of rows that an invocation computes.
fn run_rows(shader: &Shader) -> usize {
    shader.constant("ROWS") as usize
}

/// The weight of the centre, three zeros, and the weights at distances from 1 to the radius.
fn distances(pass: &Pass) -> Vec<u32> {
    let mut weights = vec![pass.weight(0), 0, 0, 0];
    weights.extend((1..=pass.taps.radius.next_multiple_of(4)).map(|i| pass.weight(i)));
    weights
}

/// A pass along y or z.
#[derive(Debug)]
struct ColumnPass {
    shader: Shader,
    weights: Option<Buffer>,
    /// All parameters that do not depend on the block.
    params: ColumnParams,
    axis: usize,
    /// Maximum number of rows that an invocation computes.
    run: usize,
}

impl ColumnPass {
    /// The task's first pass, computed by `route`.
    fn new(
        context: &Context,
        route: &Route,
        task: &RoutePasses<'_>,
        run: usize,
        weights: Option<&[u32]>,
    ) -> Result<Self> {
        let (shader, pass) = ((route.shaders)(task).remove(0), &task.passes[0]);
        Ok(Self {
            shader,
            weights: weights.map(|weights| context.upload("blur weights", weights)).transpose()?,
            params: ColumnParams {
                radius: pass.taps.radius as u32,
                edge: task.edge.code(),
                channels: task.shape.channels as u32,
                rounding: pass.rounding_params(),
                fill: pass.fill_channels(),
                ..ColumnParams::default()
            },
            axis: pass.axis,
            run,
        })
    }

    /// The parameters for a block.
    fn params(&self, layout: &GpuLayout) -> ColumnParams {
        let [outer, len, row] = layout.buffer().shape.along(self.axis);
        let run = self.run.min(len);
        ColumnParams {
            quads: (row / 4) as u32,
            len: len as u32,
            outer: outer as u32,
            run: run as u32,
            runs: len.div_ceil(run) as u32,
            ..self.params
        }
    }
}

impl PreparedRoute for ColumnPass {
    fn record(&self, to: &mut Recording<'_, '_>) -> Result<()> {
        let params = self.params(&to.layout);
        let invocations =
            u64::from(params.quads) * u64::from(params.runs) * u64::from(params.outer);
        let size = to.context.pipeline(&self.shader, "blur_columns")?.workgroup_size[0];
        let weights: Vec<_> = self.weights.iter().map(|weights| ("weights", weights)).collect();
        let (shader, groups) = (&self.shader, invocations.div_ceil(size.into()));
        to.dispatch(label(self.axis), shader, "blur_columns", &params, &weights, groups)
    }
}

/// One pass with two shaders: for runs whose windows lie inside of the image, and for the others.
#[derive(Debug)]
struct InnerAndBorder {
    inner: ColumnPass,
    border: Shader,
}

impl PreparedRoute for InnerAndBorder {
    fn record(&self, to: &mut Recording<'_, '_>) -> Result<()> {
        let ColumnPass { shader, weights, axis, run, .. } = &self.inner;
        let params = self.inner.params(&to.layout);
        let run = *run as u32;
        // The number of runs before the first whose window lies inside, and the number of such runs.
        let before = params.radius.div_ceil(run).min(params.runs);
        let inner = (params.len.saturating_sub(params.radius) / run).saturating_sub(before);
        let weights: Vec<_> = weights.iter().map(|weights| ("weights", weights)).collect();
        for (shader, runs, gap_start, gap_runs) in
            [(&self.border, params.runs - inner, before, inner), (shader, inner, 0, before)]
        {
            let size = to.context.pipeline(shader, "blur_columns")?.workgroup_size[0];
            let across = params.quads.div_ceil(size);
            let groups = u64::from(across) * u64::from(runs) * u64::from(params.outer);
            if groups > 0 {
                let params = ColumnParams { runs, gap_start, gap_runs, ..params };
                to.dispatch(label(*axis), shader, "blur_columns", &params, &weights, groups)?;
            }
        }
        Ok(())
    }
}
