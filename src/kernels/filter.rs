//! Operations from a grid to a grid. The engine applies a [`Filter`] to whole images, to blocks of large images
//! and volumes, and to batches and shards.

use std::{fmt, ops::Range, sync::Arc};

use serde_json::Value;

use super::gpu_step::GpuFilter;
use crate::{
    data::{
        description::{Description, Kind},
        dtype::Dtype,
        grid::{Alpha, Grid, GridType, Shape},
        samples::Samples,
    },
    device::Device,
    util::{error::Result, spill::Workspace},
};

/// One pass over all samples of an input: calls its argument with each block in turn, perhaps on another thread.
pub type InputPass<'a> = &'a mut dyn FnMut(Consumer<'_>) -> Result<()>;

/// Function that is called with each block of an input.
pub type Consumer<'a> = &'a mut (dyn FnMut(&Grid) -> Result<()> + Send);

/// A block of the result of a filter, and the part of the input that it depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Axis along which input and result are divided.
    pub axis: usize,
    /// Size of the whole input.
    pub shape: Shape,
    /// Positions of the input that are in memory.
    pub input: Range<usize>,
    /// Positions of the result.
    pub output: Range<usize>,
}

/// The positions of the input along an axis that a range of results depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The positions of the results, and this many before and after them. Positions outside of the input are left out.
    Halo(usize),
    /// As `Halo`, but the positions continue at the other end of the axis.
    Wrapped(usize),
    /// Any range. The result may have more or fewer positions than the input.
    Input(Range<usize>),
}

impl Reach {
    /// Number of positions before and after those of the results.
    pub fn halo(&self) -> usize {
        if let Self::Halo(halo) | Self::Wrapped(halo) = *self { halo } else { 0 }
    }

    /// Whether samples at one end of the axis depend on those at the other end.
    pub fn wraps(&self) -> bool {
        matches!(self, Self::Wrapped(halo) if *halo > 0)
    }

    /// The range of the input; `None` if the results have a halo.
    pub fn input(self) -> Option<Range<usize>> {
        if let Self::Input(range) = self { Some(range) } else { None }
    }
}

/// Properties of a filter that do not depend on the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// The result equals the input.
    pub is_identity: bool,
    /// Images with premultiplied alpha have to be converted to straight alpha.
    pub needs_straight_alpha: bool,
    /// The filter or a step of it makes labels, whose type is known only when it is [prepared](Filter::prepare).
    pub makes_labels: bool,
    /// The filter has tables whose size depends on the samples. They are kept in a [workspace](Preparation::workspace).
    pub has_tables: bool,
    /// Results for u8 samples may differ between devices.
    pub varies_for_u8: bool,
}

/// Memory and time that a filter takes for an input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Bytes in memory throughout, in addition to `working`.
    pub held: u64,
    /// Bytes in memory for each sample of the input while the filter runs and the result is written: input, result and
    /// intermediate values, or input, result and encoded result. Tables of [`Properties::has_tables`] are not counted.
    pub working: u64,
    /// Number of copies of an image in memory while it is read: its file, its samples and the tables of its decoder.
    pub copies: u64,
    /// Estimated seconds of one CPU core per byte of samples; `None` if a GPU never saves time.
    pub core_seconds: Option<f64>,
}

impl Cost {
    /// The cost of a filter whose result and intermediate values have the type of the input.
    pub fn of(input: GridType) -> Self {
        let working = 3 * input.dtype.size() as u64;
        Self { held: 0, working, copies: 3, core_seconds: Some(0.0) }
    }

    /// Bytes in memory while a whole input of type `input` is filtered and the result is written.
    pub fn whole(&self, input: GridType) -> u64 {
        let samples = input.bytes() / input.dtype.size() as u64;
        samples.saturating_mul(self.working).saturating_add(self.held)
    }
}

/// Arguments of [`Filter::prepare`].
#[expect(missing_debug_implementations, reason = "it holds a function")]
pub struct Preparation<'a> {
    /// The device.
    pub device: &'a Device,
    /// The input.
    pub input: &'a Description,
    /// Axis along which `pass` divides the input.
    pub axis: usize,
    /// Memory for tables.
    pub workspace: Workspace,
    /// Reads the input.
    pub pass: InputPass<'a>,
}

/// A filter that is prepared for an input.
#[derive(Debug, Default)]
pub struct Ready {
    /// The prepared filter; `None` if it is the filter itself.
    pub filter: Option<Box<dyn Filter>>,
    /// The whole result, if the preparation has computed it.
    pub result: Option<Samples>,
}

impl<F: Filter + 'static> From<F> for Ready {
    fn from(filter: F) -> Self {
        Self { filter: Some(filter.into()), result: None }
    }
}

/// Type of a grid of one sample, for the parts of a [`Cost`] that do not depend on the input.
const ONE: GridType = GridType { shape: Shape { dims: [1; 3], channels: 1 }, dtype: Dtype::U8 };

impl dyn Filter + '_ {
    /// Type, channels and size of the result ([`Filter::describe`]).
    pub fn output(&self, input: GridType) -> Result<GridType> {
        self.describe(input.into()).map(|result| result.grid)
    }

    /// Whether the result is labels, which formats must store unchanged.
    pub fn results_in_labels(&self, input: GridType) -> bool {
        self.describe(input.into()).is_ok_and(|result| result.kind == Kind::Labels)
    }

    /// Number of copies of an image in memory while it is read ([`Cost::copies`]).
    pub fn copies(&self) -> u64 {
        self.cost(ONE).copies
    }

    /// Estimated seconds of one CPU core per byte of samples ([`Cost::core_seconds`]).
    pub fn core_seconds(&self) -> Option<f64> {
        self.cost(ONE).core_seconds
    }

    /// The axis along which the result of every volume has one sample. Image formats can hold such a result.
    pub fn flat_axis(&self) -> Option<usize> {
        let shape = Shape { dims: [1 << 18; 3], channels: 1 };
        let mut own = GridType { shape, dtype: Dtype::U8 };
        let flat = |own: GridType| own.shape.dims.iter().position(|&dim| dim == 1);
        if self.steps().is_empty() {
            return flat(self.output(own).ok()?);
        }
        // The first step that makes an axis flat decides: the image lies along the other two.
        self.steps().iter().find_map(|step| {
            own = step.output(own).unwrap_or(own);
            flat(own)
        })
    }

    /// The reach of a whole result along `axis`, for an input of size `shape`.
    pub fn whole_reach(&self, axis: usize, shape: Shape) -> Reach {
        self.reach(axis, &(0..shape.dims[axis]), shape)
    }

    /// Whether results along `axis` depend on positions in descending order.
    pub fn reads_backwards(&self, axis: usize, input: GridType) -> bool {
        let len = self.output(input).map_or(0, |output| output.shape.dims[axis]);
        let first = |at: usize| self.reach(axis, &(at..at + 1), input.shape).input();
        let ends = [0, len.saturating_sub(1)].map(|at| first(at).map(|range| range.start));
        ends[0] > ends[1]
    }

    /// The result for the whole of `input`, which is divided along `axis`.
    pub fn run_whole(&self, device: &Device, axis: usize, input: &Grid) -> Result<Samples> {
        let (shape, result) = (input.shape(), self.output(input.grid_type())?.shape);
        let (from, output) = (0..shape.dims[axis], 0..result.dims[axis]);
        self.run(device, input, &Block { axis, shape, input: from, output })
    }
}

impl<F: Filter + 'static> From<F> for Box<dyn Filter> {
    fn from(filter: F) -> Self {
        Box::new(filter)
    }
}

/// The result of `filter`, which is not a chain, for a whole grid in memory.
pub fn apply(
    filter: &dyn Filter,
    device: &Device,
    workspace: Workspace,
    input: &Grid,
) -> Result<Grid> {
    let (description, axis) = (input.grid_type().into(), if input.dims[2] > 1 { 2 } else { 1 });
    let pass = &mut |consume: Consumer<'_>| consume(input);
    let ready =
        filter.prepare(Preparation { device, input: &description, axis, workspace, pass })?;
    let filter = ready.filter.as_deref().unwrap_or(filter);
    let Shape { dims, channels } = filter.output(input.grid_type())?.shape;
    let samples = match ready.result {
        Some(samples) => samples,
        None if filter.properties().is_identity => input.samples.copy()?,
        None => filter.run_whole(device, axis, input)?,
    };
    let alpha = if channels == input.channels { input.alpha } else { Alpha::None };
    Ok(Grid { dims, channels, alpha, samples })
}

/// An operation from a grid to a grid that can run block by block: with a halo, on a range of the input, or as a
/// reduction.
pub trait Filter: fmt::Debug + Send + Sync {
    /// The verb in messages and progress bars, such as `blur`.
    fn name(&self) -> &'static str;

    /// All parameters that the result depends on. Equal parameters and equal inputs give equal bytes.
    fn parameters(&self) -> Value;

    /// The parameters as text, for an input with `axes` axes.
    fn summary(&self, _axes: usize) -> String {
        let Value::Object(parameters) = self.parameters() else { return self.name().into() };
        let texts = parameters.iter().map(|(name, value)| {
            format!("{name} {}", value.to_string().trim_matches(['[', ']', '"']))
        });
        texts.collect::<Vec<_>>().join(", ")
    }

    /// The filters that run one after another, if this is a chain of filters.
    fn steps(&self) -> &[Arc<dyn Filter>] {
        &[]
    }

    /// Properties that do not depend on the input.
    fn properties(&self) -> Properties {
        Properties::default()
    }

    /// The size, type, kind and placement of the result for such an input. If a filter changes the size along the axis
    /// that blocks divide, its reach is a [`Reach::Input`], or its preparation computes the [whole
    /// result](Ready::result).
    ///
    /// # Errors
    /// When the filter does not support such an input.
    fn describe(&self, input: Description) -> Result<Description> {
        Ok(input)
    }

    /// The filter for an input at this place, if what it does depends on the placement; `None` for the filter itself.
    ///
    /// # Errors
    /// When the placement is unknown.
    fn placed(&self, _input: &Description) -> Result<Option<Box<dyn Filter>>> {
        Ok(None)
    }

    /// Positions of an input of size `shape` along `axis` (0 for x) that the results at the positions `output` depend
    /// on.
    fn reach(&self, _axis: usize, _output: &Range<usize>, _shape: Shape) -> Reach {
        Reach::Halo(0)
    }

    /// Memory and time for such an input.
    fn cost(&self, input: GridType) -> Cost {
        Cost::of(input)
    }

    /// Prepares a filter that depends on all samples of the input. This may already compute the whole
    /// [result](Ready::result).
    ///
    /// # Errors
    /// When reading or the device fails.
    fn prepare(&self, _input: Preparation<'_>) -> Result<Ready> {
        Ok(Ready::default())
    }

    /// Computes `block` from `input`, the part of the input that it depends on. If the [reach](Filter::reach) is a
    /// halo, the result includes the halo, and the caller cuts it off.
    ///
    /// # Errors
    /// When the device fails.
    fn run(&self, device: &Device, input: &Grid, block: &Block) -> Result<Samples>;

    /// The GPU version of the filter for whole grids of type `input`, whose last channel may be alpha; `None` if there is
    /// none, or if results depend on alpha. Consecutive steps with a GPU version run without transfers between them.
    fn on_gpu(&self, _input: GridType) -> Option<&dyn GpuFilter> {
        None
    }

    /// Whether the result for an image of size `shape` has another aspect ratio.
    fn distorts(&self, _shape: Shape) -> bool {
        false
    }

    /// Facts about the results of all runs so far, from which [`Filter::warning`] makes a warning. Shards store them
    /// with their marks.
    fn finding(&self) -> Value {
        Value::Null
    }

    /// The warning about a result, if any. `findings` has the [finding](Filter::finding) of each process that computed
    /// a part of it.
    fn warning(&self, _findings: &[Value]) -> Option<String> {
        None
    }

    /// Chooses a smaller size at which to decode an image of size `size`. `smaller` lists the possible sizes, smallest
    /// first. Returns the index of the first one that suffices, and the filter for it.
    fn shrunken(
        &self,
        _size: [usize; 2],
        _smaller: &[[usize; 2]],
    ) -> Option<(usize, Box<dyn Filter>)> {
        None
    }
}
