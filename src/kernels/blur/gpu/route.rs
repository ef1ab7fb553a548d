//! Routes and their tasks.

use std::fmt::Debug;

use crate::{
    data::grid::Shape,
    gpu::{Batch, Buffer, Context, Features, MultiplyAdd, Shader, ShaderStruct},
    kernels::{
        blur::{params::Edge, plan::Pass},
        gpu_step::GpuLayout,
    },
    util::error::Result,
};

/// Argument for shaders without bounds checks.
pub const IN_RANGE: &str = "the host sizes buffers and dispatches by the same layout; rows, columns, tiles and runs end \
    at its width, height and pitch, positions outside are mapped inside or replaced before they are \
    read, and weights are padded to whole steps";

/// A way to compute one or two passes on the device.
pub struct Route {
    /// Number of passes that the route computes at once.
    pub passes: usize,
    /// Whether the route can compute the task's first passes. The task has at least `passes` of them.
    pub fits: fn(&RoutePasses<'_>) -> bool,
    /// Returns the shader variants that the route runs for a task.
    pub shaders: fn(&RoutePasses<'_>) -> Vec<Shader>,
    /// Creates the pipelines and weights for a task that the route fits.
    pub new: fn(&Context, &RoutePasses<'_>) -> Result<Box<dyn PreparedRoute>>,
}

/// A route with its pipelines and weights.
pub trait PreparedRoute: Debug {
    /// Records the route's passes over one block, which is at most as large as the task's.
    fn record(&self, to: &mut Recording<'_, '_>) -> Result<()>;
}

/// A block over which a route is recorded, with its buffers.
pub struct Recording<'r, 'a> {
    pub context: &'a Context,
    pub batch: &'r mut Batch<'a>,
    pub layout: GpuLayout,
    pub source: Buffer,
    pub target: Buffer,
}

impl Recording<'_, '_> {
    /// Records a pass of `groups` workgroups that uses `source`, `target_` and `more` buffers.
    pub fn dispatch<T: ShaderStruct>(
        &mut self,
        label: &str,
        shader: &Shader,
        entry: &str,
        params: &T,
        more: &[(&str, &Buffer)],
        groups: u64,
    ) -> Result<()> {
        let groups = self.context.fold(groups)?;
        let buffers = [&[("source", &self.source), ("target_", &self.target)], more].concat();
        self.batch.dispatch(label, shader, entry, params, &buffers, groups)
    }
}

/// The passes that a route is chosen and specialised for.
#[derive(Clone, Copy, Debug)]
pub struct RoutePasses<'a> {
    /// The remaining passes of the plan, at least one.
    pub passes: &'a [Pass],
    /// The largest block.
    pub shape: Shape,
    pub edge: Edge,
    pub limits: Limits,
}

/// The properties of a device that routes depend on.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of workgroup memory.
    pub workgroup_bytes: usize,
    /// Invocations per workgroup.
    pub invocations: usize,
    /// Minimum and maximum number of invocations of a subgroup, if there are subgroups.
    pub subgroup: Option<[u32; 2]>,
    /// Whether shaders have 64-bit integers.
    pub int64: bool,
    /// Bytes of a storage binding.
    pub binding: u64,
    /// How the device multiplies and adds f32, if passes are of floats.
    pub multiply_add: MultiplyAdd,
}

impl Limits {
    /// The limits of `context`. `are_floats`: whether some of the passes are of floats.
    pub fn new(context: &Context, are_floats: bool) -> Result<Self> {
        let (limits, info) = (&context.limits, &context.info);
        let subgroup = [info.subgroup_sizes[0], info.subgroup_sizes[1]];
        Ok(Self {
            workgroup_bytes: limits.workgroup_bytes as usize,
            invocations: limits.workgroup_size as usize,
            subgroup: context.has(Features::SUBGROUP).then_some(subgroup),
            int64: context.has(Features::SHADER_INT64),
            binding: context.max_binding(),
            multiply_add: if are_floats { context.multiply_add()? } else { MultiplyAdd::Fused },
        })
    }
}

/// The label of a pass along `axis`.
pub fn label(axis: usize) -> &'static str {
    ["blur x", "blur y", "blur z"][axis]
}
