//! The GPU twin: a plan's passes, each computed by the first route that fits.

mod box_columns;
mod box_columns_f32;
mod box_rows;
mod box_rows_f32;
mod box_tile;
mod column_pass;
mod columns;
mod columns_u16;
mod fused;
mod job;
mod layout;
mod params;
mod row_pass;
mod rows;
mod rows_u8;
mod rows_u8_long;
mod variants;

pub use job::{Resident, fits, run};
pub use variants::variants;

use std::{fmt::Debug, sync::Arc};

use layout::Layout;

use super::{Edge, Pass, Shape};
use crate::{
    error::Result,
    gpu::{self, Batch, Buffer, Context, Feature, Pipeline, Shader},
};

/// Why these shaders need no bounds checks.
const IN_RANGE: &str = "the host sizes buffers and dispatches by the same layout; rows, columns, tiles and runs end \
    at its width, height and pitch, positions outside are mapped inside or replaced before they are \
    read, and weights are padded to whole steps";

/// The routes in the order in which they are tried on what is left of a plan: the first that fits
/// takes its passes.
const ROUTES: [Candidate; 11] = [
    // Both axes at once: nothing goes to memory between the passes.
    candidate::<fused::Fused>(),
    candidate::<box_tile::BoxTile>(),
    // Box filters at a cost that does not depend on the radius: of whole numbers, and of floats.
    candidate::<box_rows::BoxRows>(),
    candidate::<box_columns::BoxColumns>(),
    candidate::<box_rows_f32::BoxRowsF32>(),
    candidate::<box_columns_f32::BoxColumnsF32>(),
    // Gaussians of u8, by format and radius: several times faster than those that take all formats.
    candidate::<rows_u8::RowsU8>(),
    candidate::<rows_u8_long::RowsU8Long>(),
    candidate::<columns_u16::ColumnsU16>(),
    // Everything.
    candidate::<rows::Rows>(),
    candidate::<columns::Columns>(),
];

/// From this radius on, box filters of f32 take routes of their own, whose time does not depend on the radius. On an
/// H200 they are faster from about 40 on at 16 megapixels; at 1 megapixel the others still are at 40.
const FLOAT_BOX_RADIUS: usize = 64;

/// A way to compute one or two passes on the device. The file of each type has its shader's name.
trait Route: Debug {
    /// How many passes it computes at once.
    fn passes() -> usize
    where
        Self: Sized,
    {
        1
    }

    /// Whether it can compute the task's first [`Route::passes`] passes.
    fn fits(task: &Task<'_>) -> bool
    where
        Self: Sized;

    /// The specialisations of its shader that it runs for the task.
    fn shaders(task: &Task<'_>) -> Vec<Shader>
    where
        Self: Sized;

    /// Makes its pipelines and weights for a task that fits.
    fn new(context: &Context, task: &Task<'_>) -> Result<Self>
    where
        Self: Sized;

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

impl<'a> Recording<'_, 'a> {
    /// Starts a pass from `source` to `target_`.
    fn pass(&mut self, label: &str, pipeline: &Arc<Pipeline>) -> gpu::Pass<'_, 'a> {
        let pass = self.batch.pass(label, pipeline);
        pass.buffer("source", &self.source).buffer("target_", &self.target)
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
}

impl Limits {
    fn of(context: &Context) -> Self {
        let (limits, info) = (&context.limits, &context.info);
        let subgroup = [info.subgroup_sizes[0], info.subgroup_sizes[1]];
        Self {
            workgroup_bytes: limits.workgroup_bytes as usize,
            invocations: limits.workgroup_size as usize,
            subgroup: context.has(Feature::Subgroups).then_some(subgroup),
            int64: context.has(Feature::Int64),
            binding: context.max_binding(),
        }
    }
}

/// A [`Route`] that may be taken.
struct Candidate {
    passes: fn() -> usize,
    fits: fn(&Task<'_>) -> bool,
    shaders: fn(&Task<'_>) -> Vec<Shader>,
    new: fn(&Context, &Task<'_>) -> Result<Box<dyn Route>>,
}

const fn candidate<R: Route + 'static>() -> Candidate {
    Candidate {
        passes: R::passes,
        fits: R::fits,
        shaders: R::shaders,
        new: |context, task| Ok(Box::new(R::new(context, task)?)),
    }
}

/// The first route that fits, and how many passes it takes.
fn route(task: &Task<'_>) -> (&'static Candidate, usize) {
    let mut routes = ROUTES.iter().map(|route| (route, (route.passes)()));
    let fitting = routes.find(|(route, n)| *n <= task.passes.len() && (route.fits)(task));
    fitting.expect("the last two take every pass")
}
