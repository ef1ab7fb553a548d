//! From samples in memory to samples in memory: blocks, uploads, passes from buffer to buffer, readback.

use std::borrow::Cow;

use super::{
    layout::Layout,
    route::{Limits, Record, Recording, Task},
    routes::route,
};
use crate::{
    data::{blocks::Blocks, grid::Shape, samples::Samples},
    gpu::{Batch, Buffer, Context, MultiplyAdd, Shader},
    kernels::blur::{
        params::{Blur, Edge, Values},
        plan::{Format, Pass},
    },
    util::{
        error::{Error, Result},
        memory,
    },
};

/// Whether the device gives the same results as the CPU. This excludes f64 and long boxes of f32, which the CPU adds up
/// in f64, and on some devices all f32.
///
/// # Errors
/// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when the device fails.
pub fn takes(context: &Context, plan: &[Pass]) -> Result<bool> {
    let are_floats = plan.iter().any(Pass::is_float);
    Ok(!plan.iter().any(|pass| pass.from == Format::F64 || pass.is_long_float_box())
        && (!are_floats || context.multiply_add()? != MultiplyAdd::RoundsTwice))
}

/// Runs every pass of `plan`, which the device [takes].
///
/// # Errors
/// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when the device fails.
pub fn run<'d>(
    context: &Context,
    blur: &Blur,
    plan: &[Pass],
    shape: Shape,
    mut values: Values<'d>,
) -> Result<Values<'d>> {
    // All passes block by block, unless blocks would be mostly halo; then one pass after the other,
    // each of which has a halo along its own axis only.
    let blocks = blocks(context, plan, shape, blur.edge, halo(blur));
    let worthwhile = |blocks: &Blocks| {
        blocks.0.iter().all(|axis| axis.block == axis.len || axis.block >= axis.halo[0])
    };
    if let Some(blocks) = blocks.filter(worthwhile) {
        return Job::new(context, plan, shape, blur.edge, blocks)?.run(&values).map(Cow::Owned);
    }
    for pass in plan {
        let radius = pass.taps.radius;
        let halo = std::array::from_fn(|axis| if axis == pass.axis { radius } else { 0 });
        let plan = std::slice::from_ref(pass);
        let blocks = self::blocks(context, plan, shape, blur.edge, halo).ok_or_else(|| {
            Error::gpu(format_args!(
                "radius {radius} takes larger buffers than {} has",
                context.info.name
            ))
        })?;
        values = Cow::Owned(Job::new(context, plan, shape, blur.edge, blocks)?.run(&values)?);
    }
    Ok(values)
}

/// Positions along each axis that a result depends on beyond it.
fn halo(blur: &Blur) -> [usize; 3] {
    std::array::from_fn(|axis| blur.halo(axis))
}

/// Whether the device takes all of a raster at once.
pub fn fits(context: &Context, blur: &Blur, plan: &[Pass], shape: Shape) -> bool {
    let blocks = blocks(context, plan, shape, blur.edge, halo(blur));
    blocks.is_some_and(|blocks| blocks.is_whole())
}

/// Blocks that the device can hold; `None` where it cannot hold even one position with its halo.
fn blocks(
    context: &Context,
    plan: &[Pass],
    shape: Shape,
    edge: Edge,
    halo: [usize; 3],
) -> Option<Blocks> {
    let widest = plan.iter().map(|pass| pass.from.size().max(pass.to.size())).max().unwrap_or(1);
    let max = u64::from(context.limits.workgroups);
    Blocks::fitting(shape.dims, halo, edge == Edge::Wrap, |dims| {
        let samples = Layout::new(Shape { dims, ..shape }).padded().samples() as u64;
        let row_groups = dims[0].div_ceil(512) as u64 * (dims[1] * dims[2]) as u64;
        // Along y and z each of a workgroup's 64 invocations computes at least four samples.
        let groups = row_groups.max(samples.div_ceil(64 * 4));
        samples * widest as u64 <= context.max_binding()
            && samples < 1 << 31
            && groups <= max * max / 2
    })
}

/// A plan over a raster in blocks.
struct Job<'a> {
    steps: Resident<'a>,
    channels: usize,
    blocks: Blocks,
}

impl<'a> Job<'a> {
    fn new(
        context: &'a Context,
        plan: &[Pass],
        shape: Shape,
        edge: Edge,
        blocks: Blocks,
    ) -> Result<Self> {
        let largest = Shape { dims: blocks.longest(), ..shape };
        let steps = Resident::new(context, plan, largest, edge)?;
        Ok(Self { steps, channels: shape.channels, blocks })
    }

    fn run(&self, values: &Samples) -> Result<Samples> {
        match values {
            Samples::U8(values) => self.integers(values),
            Samples::U16(values) => self.integers(values),
            Samples::U32(values) => self.integers(values),
            Samples::F32(values) => Ok(self.raster::<_, f32>(values)?.into()),
            other => unreachable!("{} stays on the CPU", other.dtype()),
        }
    }

    /// Integers from integers.
    fn integers<S: bytemuck::Pod>(&self, source: &[S]) -> Result<Samples> {
        Ok(match self.steps.to() {
            Format::U8 => self.raster::<_, u8>(source)?.into(),
            Format::U16 => self.raster::<_, u16>(source)?.into(),
            _ => self.raster::<_, u32>(source)?.into(),
        })
    }

    fn raster<S: bytemuck::Pod, D: bytemuck::Pod>(&self, source: &[S]) -> Result<Vec<D>> {
        let Self { channels, blocks, .. } = *self;
        if blocks.is_whole() {
            return self.block(blocks.dims(), source);
        }
        let mut target = memory::zeros::<D>(source.len())?;
        for block in blocks.iter() {
            // The device applies the edge mode at the block's ends as if they were the raster's. That makes results
            // wrong only in the halo, which is dropped.
            let samples = blocks.gather(&block, channels, source)?;
            let blurred: Vec<D> = self.block(block.padded(), &samples)?;
            blocks.scatter(&block, channels, &blurred, &mut target);
        }
        Ok(target)
    }

    /// Blurs samples that the device takes at once.
    fn block<S: bytemuck::Pod, D: bytemuck::Pod>(
        &self,
        dims: [usize; 3],
        source: &[S],
    ) -> Result<Vec<D>> {
        let context = self.steps.context;
        let layout = Layout::new(Shape { dims, channels: self.channels });
        let [row, pitch] = layout.rows();
        let samples = layout.padded().samples();
        let input = context.allocate("blur input", layout.bytes(self.steps.from))?;
        if row == pitch {
            context.write(&input, 0, source)?;
        } else {
            let mut padded = memory::zeros::<S>(samples)?;
            for (to, from) in padded.chunks_exact_mut(pitch).zip(source.chunks_exact(row)) {
                to[..row].copy_from_slice(from);
            }
            context.write(&input, 0, &padded)?;
        }
        let mut batch = context.batch();
        let output = self.steps.record_block(&mut batch, layout, input)?;
        batch.run()?;
        read(context, layout, &output)
    }
}

/// Samples without the padding of their rows.
fn read<T: bytemuck::Pod>(context: &Context, layout: Layout, buffer: &Buffer) -> Result<Vec<T>> {
    let samples = layout.padded().samples();
    let padded: Vec<T> = context.read(buffer, samples)?;
    let [row, pitch] = layout.rows();
    if row == pitch {
        return Ok(padded);
    }
    let mut rows = memory::room(samples / pitch * row)?;
    padded.chunks_exact(pitch).for_each(|padded| rows.extend_from_slice(&padded[..row]));
    Ok(rows)
}

/// A plan's routes over a raster that stays on the device, ready for blocks up to its size.
#[derive(Debug)]
pub struct Resident<'a> {
    context: &'a Context,
    layout: Layout,
    /// What the first route reads.
    from: Format,
    /// Each route with what it writes.
    routes: Vec<(Box<dyn Record>, Format)>,
}

impl<'a> Resident<'a> {
    /// Makes the pipelines and weights of `plan` over a raster of `shape`, which has to fit the device.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when the device fails.
    pub fn new(context: &'a Context, plan: &[Pass], shape: Shape, edge: Edge) -> Result<Self> {
        let limits = Limits::of(context, plan.iter().any(Pass::is_float))?;
        let (mut chosen, mut passes) = (Vec::new(), plan);
        while !passes.is_empty() {
            let task = Task { passes, shape, edge, limits };
            let route = route(&task);
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
        Ok(Self { context, layout: Layout::new(shape), from: plan[0].from, routes })
    }

    /// The format of the results.
    fn to(&self) -> Format {
        self.routes.last().expect("a plan has passes").1
    }

    /// Records all passes from `input`, whose rows are padded to a multiple of sixteen positions, and
    /// returns the buffer that will hold the result in the same layout. The passes may write to `input`.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when the device has no memory left.
    pub fn record(&self, batch: &mut Batch<'a>, input: Buffer) -> Result<Buffer> {
        self.record_block(batch, self.layout, input)
    }

    /// The same for a block.
    fn record_block(&self, batch: &mut Batch<'a>, layout: Layout, input: Buffer) -> Result<Buffer> {
        // Buffers that were read take later results of their format.
        let mut spare: Vec<(Format, Buffer)> = Vec::new();
        let (mut source, mut source_format) = (input, self.from);
        for (route, format) in &self.routes {
            let target = match spare.iter().position(|(spare, _)| spare == format) {
                Some(index) => spare.swap_remove(index).1,
                None => self.context.allocate("blur", layout.bytes(*format))?,
            };
            let mut to = Recording { context: self.context, batch, layout, source, target };
            route.record(&mut to)?;
            spare.push((source_format, to.source));
            (source, source_format) = (to.target, *format);
        }
        Ok(source)
    }

    /// The samples in a buffer that [`Resident::record`] returned, without padding.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when the device fails.
    pub fn read(&self, blurred: &Buffer) -> Result<Vec<u8>> {
        read(self.context, self.layout, blurred)
    }
}
