//! Runs a plan on the device: division into blocks, upload, passes, readback.

use std::borrow::Cow;

use super::{
    route::{Limits, PreparedRoute, Recording, RoutePasses},
    routes::choose_route,
};
use crate::{
    data::{
        blocks::Blocks,
        dtype::Dtype,
        grid::{GridType, Shape},
        samples::Samples,
    },
    gpu::{Batch, Buffer, Context, MultiplyAdd, Shader},
    kernels::{
        blur::{
            params::{Edge, Values},
            plan::{Pass, PassFormat},
        },
        gpu_step::GpuLayout,
    },
    util::error::{Error, Result},
};

/// Whether the device gives the same results as the CPU. It does not for f64, for long box filters of f32, which the
/// CPU sums in f64, and on some devices for all f32.
pub fn agrees_with_cpu(context: &Context, plan: &[Pass]) -> Result<bool> {
    let are_floats = plan.iter().any(Pass::is_float);
    let is_for_cpu =
        |pass: &Pass| pass.from == PassFormat::F64 || pass.is_long_float_box() || pass.taps.is_even;
    Ok(!plan.iter().any(is_for_cpu)
        && (!are_floats || context.multiply_add()? != MultiplyAdd::RoundsTwice))
}

/// Runs all passes of `plan` on a device that [agrees with the CPU](agrees_with_cpu).
pub fn run<'d>(
    context: &Context,
    plan: &[Pass],
    edge: Edge,
    shape: Shape,
    mut values: Values<'d>,
) -> Result<Values<'d>> {
    // All passes for each block, unless blocks would be mostly halo. In that case pass by pass, each of which has a
    // halo along its own axis only.
    let blocks = blocks(context, sample_bytes(plan), shape, edge, halo(plan));
    if let Some(blocks) = blocks.filter(|blocks| !blocks.are_mostly_halo()) {
        return run_blocks(context, plan, shape, edge, blocks, &values).map(Cow::Owned);
    }
    for pass in plan {
        let radius = pass.taps.radius;
        let halo = std::array::from_fn(|axis| if axis == pass.axis { radius } else { 0 });
        let plan = std::slice::from_ref(pass);
        let blocks =
            self::blocks(context, sample_bytes(plan), shape, edge, halo).ok_or_else(|| {
                Error::gpu(format_args!(
                    "{}: a blur of radius {radius} needs larger buffers than the device has",
                    context.info.name
                ))
            })?;
        values = Cow::Owned(run_blocks(context, plan, shape, edge, blocks, &values)?);
    }
    Ok(values)
}

/// Number of samples before and after a position along each axis that the result of all passes there depends on.
pub fn halo(plan: &[Pass]) -> [usize; 3] {
    let mut halo = [0; 3];
    plan.iter().for_each(|pass| halo[pass.axis] += pass.taps.radius);
    halo
}

/// Whether the device can run all passes over the whole grid at once.
pub fn fits(context: &Context, plan: &[Pass], edge: Edge, shape: Shape) -> bool {
    let blocks = blocks(context, sample_bytes(plan), shape, edge, halo(plan));
    blocks.is_some_and(|blocks| blocks.is_whole())
}

/// Bytes of the largest sample type that the passes read or write.
fn sample_bytes(plan: &[Pass]) -> usize {
    plan.iter().map(|pass| pass.from.size().max(pass.to.size())).max().unwrap_or(1)
}

/// Blocks that fit on the device with samples of `sample_bytes` bytes; `None` if not even one position with its halo fits.
pub fn blocks(
    context: &Context,
    sample_bytes: usize,
    shape: Shape,
    edge: Edge,
    halo: [usize; 3],
) -> Option<Blocks> {
    let max = u64::from(context.limits.workgroups);
    Blocks::fitting(shape.dims, halo, edge == Edge::Wrap, |dims| {
        let grid = GridType { shape: Shape { dims, ..shape }, dtype: Dtype::U8 };
        let samples = GpuLayout::padded(grid).bytes();
        let row_groups = dims[0].div_ceil(512) as u64 * (dims[1] * dims[2]) as u64;
        // Along y and z each of a workgroup's 64 invocations computes at least four samples.
        let groups = row_groups.max(samples.div_ceil(64 * 4));
        samples * sample_bytes as u64 <= context.max_binding()
            && samples < 1 << 31
            && groups <= max * max / 2
    })
}

/// Runs `plan` block by block.
fn run_blocks(
    context: &Context,
    plan: &[Pass],
    shape: Shape,
    edge: Edge,
    blocks: Blocks,
    values: &Samples,
) -> Result<Samples> {
    let largest = Shape { dims: blocks.longest(), ..shape };
    let resident = Resident::new(context, plan, largest, edge)?;
    let mut result = Samples::zeros(resident.to().dtype(), values.len())?;
    // Bytes of a position.
    let sizes = [resident.from, resident.to()].map(|format| shape.channels * format.size());
    // The device applies the edge mode at the ends of a block as if they were those of the grid. That makes results wrong
    // only in the halo, which is dropped.
    blocks.run_each(values.as_bytes(), result.as_bytes_mut(), sizes, |dims, from, to| {
        resident.run(Shape { dims, ..shape }, from, to)
    })?;
    Ok(result)
}

/// The routes of a plan, ready for grids up to a size. The samples stay on the device.
#[derive(Debug)]
pub struct Resident<'a> {
    context: &'a Context,
    /// Input of the first route.
    from: PassFormat,
    /// Each route, with the format of its results.
    routes: Vec<(Box<dyn PreparedRoute>, PassFormat)>,
}

impl<'a> Resident<'a> {
    /// Prepares the pipelines and weights of `plan` for a grid of `shape`, which has to fit on the device.
    pub fn new(context: &'a Context, plan: &[Pass], shape: Shape, edge: Edge) -> Result<Self> {
        let limits = Limits::new(context, plan.iter().any(Pass::is_float))?;
        let (mut chosen, mut passes) = (Vec::new(), plan);
        while !passes.is_empty() {
            let task = RoutePasses { passes, shape, edge, limits };
            let route = choose_route(&task);
            chosen.push((route, task, passes[route.passes - 1].to));
            passes = &passes[route.passes..];
        }
        let shaders: Vec<_> =
            chosen.iter().flat_map(|(route, task, _)| (route.shaders)(task)).collect();
        Shader::parse(&shaders, context.timings());
        let routes = chosen
            .iter()
            .map(|(route, task, to)| Ok(((route.new)(context, task)?, *to)))
            .collect::<Result<_>>()?;
        Ok(Self { context, from: plan[0].from, routes })
    }

    /// The format of the results.
    fn to(&self) -> PassFormat {
        self.routes.last().expect("a plan has passes").1
    }

    /// Records all passes over a block in `input`, which they may overwrite. Its rows are padded. Returns the buffer of the
    /// result, which has the same layout.
    pub fn record_block(
        &self,
        batch: &mut Batch<'a>,
        layout: GpuLayout,
        input: Buffer,
    ) -> Result<Buffer> {
        // Buffers that have been read are reused for later results of their format.
        let mut spare: Vec<(PassFormat, Buffer)> = Vec::new();
        let (mut source, mut source_format) = (input, self.from);
        for (route, format) in &self.routes {
            let target = match spare.iter().position(|(spare, _)| spare == format) {
                Some(index) => spare.swap_remove(index).1,
                None => self.context.allocate("blur", layout.of(format.dtype()).bytes())?,
            };
            let mut to = Recording { context: self.context, batch, layout, source, target };
            route.record(&mut to)?;
            spare.push((source_format, to.source));
            (source, source_format) = (to.target, *format);
        }
        Ok(source)
    }

    /// Blurs the samples of a block from memory to memory.
    fn run(&self, shape: Shape, source: &[u8], target: &mut [u8]) -> Result<()> {
        let layout = GpuLayout::padded(GridType { shape, dtype: self.from.dtype() });
        let (context, input) = (self.context, layout.upload(self.context, source)?);
        let mut batch = context.batch();
        let output = self.record_block(&mut batch, layout, input)?;
        batch.run()?;
        layout.of(self.to().dtype()).read(context, &output, target)
    }
}
