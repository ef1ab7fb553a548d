//! The GPU twin: a plan's passes, each computed by the first route that fits.

mod box_tile;
mod columns;
mod fused;
mod job;
mod layout;
mod params;
mod rows;
mod variants;

pub use job::{Resident, fits, run, takes};
pub use variants::variants;

use std::fmt::Debug;

use layout::Layout;

use super::{Edge, Pass, Shape};
use crate::{
    gpu::{Batch, Buffer, Context, Features, MultiplyAdd, Shader, ShaderStruct},
    util::error::Result,
};

/// Why these shaders need no bounds checks.
const IN_RANGE: &str = "the host sizes buffers and dispatches by the same layout; rows, columns, tiles and runs end \
    at its width, height and pitch, positions outside are mapped inside or replaced before they are \
    read, and weights are padded to whole steps";

/// The routes in the order in which they are tried on what is left of a plan: the first that fits
/// takes its passes.
const ROUTES: [Route; 9] = [
    // Both axes at once: nothing goes to memory between the passes.
    fused::ROUTE,
    box_tile::ROUTE,
    // Box filters at a cost that does not depend on the radius.
    rows::BOX,
    columns::BOX,
    // Gaussians of u8, by format and radius: several times faster than those that take all formats.
    rows::U8,
    rows::U8_LONG,
    columns::U16,
    // Everything.
    rows::ANY,
    columns::ANY,
];

/// A way to compute one or two passes on the device.
struct Route {
    /// How many passes it computes at once.
    passes: usize,
    /// Whether the route can compute the task's first passes. The task has at least `passes` of them.
    fits: fn(&Task<'_>) -> bool,
    /// The specialisations of its shader that it runs for the task.
    shaders: fn(&Task<'_>) -> Vec<Shader>,
    /// Makes its pipelines and weights for a task that fits.
    new: fn(&Context, &Task<'_>) -> Result<Box<dyn Record>>,
}

/// A route with its pipelines and weights.
trait Record: Debug {
    /// Records it over a block no larger than the task's.
    fn record(&self, to: &mut Recording<'_, '_>) -> Result<()>;
}

/// Where a route is recorded: the block, and the buffers that it reads and writes.
struct Recording<'r, 'a> {
    context: &'a Context,
    batch: &'r mut Batch<'a>,
    layout: Layout,
    source: Buffer,
    target: Buffer,
}

impl Recording<'_, '_> {
    /// Records a pass of `groups` workgroups that uses `source`, `target_` and `more` buffers.
    fn dispatch<T: ShaderStruct>(
        &mut self,
        label: &str,
        entry: (&Shader, &str),
        params: &T,
        more: &[(&str, &Buffer)],
        groups: u64,
    ) -> Result<()> {
        let groups = self.context.fold(groups)?;
        let buffers = [&[("source", &self.source), ("target_", &self.target)], more].concat();
        self.batch.dispatch(label, entry, params, &buffers, groups)
    }
}

/// The passes that a route is chosen and specialised for.
#[derive(Clone, Copy, Debug)]
struct Task<'a> {
    /// What is left of the plan: at least one pass.
    passes: &'a [Pass],
    /// The largest block.
    shape: Shape,
    edge: Edge,
    limits: Limits,
}

/// The properties of a device that routes depend on.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Bytes of workgroup memory.
    workgroup_bytes: usize,
    /// Invocations a workgroup.
    invocations: usize,
    /// The least and the most invocations of a subgroup, where there are any.
    subgroup: Option<[u32; 2]>,
    /// Whether shaders have 64-bit integers.
    int64: bool,
    /// Bytes of a storage binding.
    binding: u64,
    /// How the device multiplies and adds f32, if passes are of floats.
    multiply_add: MultiplyAdd,
}

impl Limits {
    /// The limits of `context`. `are_floats`: whether some of the passes are of floats.
    fn of(context: &Context, are_floats: bool) -> Result<Self> {
        let (limits, info) = (&context.limits, &context.info);
        let subgroup = [info.subgroup_sizes[0], info.subgroup_sizes[1]];
        Ok(Self {
            workgroup_bytes: limits.workgroup_bytes as usize,
            invocations: limits.workgroup_size as usize,
            subgroup: context.has(Features::SUBGROUP).then_some(subgroup),
            int64: context.has(Features::SHADER_INT64),
            binding: context.max_binding(),
            multiply_add: match are_floats {
                true => context.multiply_add()?,
                false => MultiplyAdd::Fused,
            },
        })
    }
}

/// The label of a pass along `axis`.
fn label(axis: usize) -> &'static str {
    ["blur x", "blur y", "blur z"][axis]
}

/// The first route that fits.
fn route(task: &Task<'_>) -> &'static Route {
    let fits = |route: &&Route| route.passes <= task.passes.len() && (route.fits)(task);
    ROUTES.iter().find(fits).expect("the last two take every pass")
}
