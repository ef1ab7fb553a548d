//! Operations that turn a grid into a grid. The engine applies a [`Filter`] to whole images, to blocks of large images
//! and volumes, and to batches and shards.

use std::{fmt, ops::Range, sync::Arc};

use serde_json::Value;

use super::gpu_step::GpuFilter;
use crate::{
    data::{
        description::{Description, Kind},
        grid::{Alpha, Grid, GridType, Shape},
        samples::Samples,
    },
    device::Device,
    util::{error::Result, spill::Workspace},
};

/// Calls its argument with each block of the input in turn, perhaps on another thread: one pass over all samples.
pub type Pass<'a> = &'a mut dyn FnMut(Consumer<'_>) -> Result<()>;

/// Gets the blocks of an input.
pub type Consumer<'a> = &'a mut (dyn FnMut(&Grid) -> Result<()> + Send);

/// A block of the result of a filter that changes the number of positions, and the part of the input it depends on.
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

impl dyn Filter + '_ {
    /// Type, channels and size of the result ([`Filter::describe`]).
    ///
    /// # Errors
    /// When the filter does not support such an input.
    pub fn output(&self, input: GridType) -> Result<GridType> {
        self.describe(input.into()).map(|result| result.grid)
    }

    /// Whether the result is labels, which formats must store unchanged.
    pub fn results_in_labels(&self, input: GridType) -> bool {
        self.describe(input.into()).is_ok_and(|result| result.kind == Kind::Labels)
    }
}

impl<F: Filter + 'static> From<F> for Box<dyn Filter> {
    fn from(filter: F) -> Self {
        Box::new(filter)
    }
}

/// The result of `filter` for a whole grid in memory.
///
/// # Errors
/// Those of the filter.
pub fn apply(filter: &dyn Filter, device: &Device, input: &Grid) -> Result<Grid> {
    let description = input.grid_type().into();
    let prepared = filter.prepared(device, &description, &mut |consume| consume(input))?;
    let filter = prepared.as_deref().unwrap_or(filter);
    let Shape { dims, channels } = filter.output(input.grid_type())?.shape;
    let samples = match filter.is_identity() {
        true => input.samples.copy()?,
        false => filter.run(device, input)?,
    };
    let alpha = if channels == input.channels { input.alpha } else { Alpha::None };
    Ok(Grid { dims, channels, alpha, samples })
}

/// An operation from a grid to a grid that can run block by block: on a halo, on an input range, or as a reduction.
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

    /// Number of positions before and after a position along `axis` (0 for x) that the result there depends on.
    fn halo(&self, _axis: usize) -> usize {
        0
    }

    /// Whether samples at one end of `axis` depend on those at the other end.
    fn wraps(&self, _axis: usize) -> bool {
        false
    }

    /// Whether the result equals the input.
    fn is_identity(&self) -> bool {
        false
    }

    /// Whether images with premultiplied alpha have to be converted to straight alpha.
    fn needs_straight_alpha(&self) -> bool {
        false
    }

    /// The result, for such an input: size, type, kind and placement. A filter that changes the size along an axis that blocks
    /// divide implements [`Filter::input_range`] or [`Filter::reduced`].
    ///
    /// # Errors
    /// When the filter does not support such an input.
    fn describe(&self, input: Description) -> Result<Description> {
        Ok(input)
    }

    /// The axis along which the result of a volume has one sample, so that image formats can hold it.
    fn flat_axis(&self) -> Option<usize> {
        None
    }

    /// Positions along `axis` of an input of size `shape` that the results at the positions `output` depend on, if the
    /// filter changes the number of positions. `None`: the same positions, and the [halo](Filter::halo) around them.
    fn input_range(
        &self,
        _axis: usize,
        _output: &Range<usize>,
        _shape: Shape,
    ) -> Option<Range<usize>> {
        None
    }

    /// Bytes in memory throughout, in addition to [`Filter::working_bytes`].
    fn held_bytes(&self, _input: GridType) -> u64 {
        0
    }

    /// Bytes in memory for each sample of the input while the filter runs and the result is written: input, result and
    /// intermediate values, or input, result and encoded result.
    fn working_bytes(&self, input: GridType) -> u64 {
        3 * input.dtype.size() as u64
    }

    /// Number of copies of an image in memory while it is read: its file, its samples and the tables of its decoder.
    fn copies(&self) -> u64 {
        3
    }

    /// Bytes in memory while a whole input is filtered and the result is written.
    fn whole_bytes(&self, input: GridType) -> u64 {
        let samples = input.bytes() / input.dtype.size() as u64;
        let working = samples.saturating_mul(self.working_bytes(input));
        working.saturating_add(self.held_bytes(input))
    }

    /// Whether the filter or a step of it makes labels, whose type is known only when it is [prepared](Filter::prepared).
    fn makes_labels(&self) -> bool {
        false
    }

    /// The same filter with tables limited to `workspace`; `None` unless their size depends on the samples.
    /// [`Filter::working_bytes`] and [`Filter::copies`] do not count these tables.
    fn within(&self, _workspace: Workspace) -> Option<Box<dyn Filter>> {
        None
    }

    /// The filter prepared for `input`, if it depends on all samples of the input, which `pass` reads.
    ///
    /// # Errors
    /// Those of `pass` and of the device.
    fn prepared(
        &self,
        _device: &Device,
        _input: &Description,
        _pass: Pass<'_>,
    ) -> Result<Option<Box<dyn Filter>>> {
        Ok(None)
    }

    /// The whole result, if it is known, or has one position along `axis` that depends on all positions of the input;
    /// `pass` reads these in order, divided along `axis`.
    ///
    /// # Errors
    /// Those of `pass` and of the device.
    fn reduced(&self, _device: &Device, _axis: usize, _pass: Pass<'_>) -> Result<Option<Samples>> {
        Ok(None)
    }

    /// The filtered samples of `input`.
    ///
    /// # Errors
    /// Those of the device.
    fn run(&self, device: &Device, input: &Grid) -> Result<Samples>;

    /// The GPU version of the filter for whole grids of type `input`, whose last channel may be alpha; `None` if there is
    /// none, or if results depend on alpha. Consecutive steps that have one run on a GPU without transfers between them.
    fn on_gpu(&self, _input: GridType) -> Option<&dyn GpuFilter> {
        None
    }

    /// Completes the side outputs of the filter, after the result is complete.
    ///
    /// # Errors
    /// Those of writing.
    fn finish(&self) -> Result<()> {
        Ok(())
    }

    /// Finding of all runs so far about their results, for [`Filter::warning`]. Shards store it with their marks.
    fn finding(&self) -> Value {
        Value::Null
    }

    /// A warning about the results of several processes, or of one; each has a [finding](Filter::finding).
    fn warning(&self, _findings: &[Value]) -> Option<String> {
        None
    }

    /// The results of `block`, if the filter implements [`Filter::input_range`].
    ///
    /// # Errors
    /// Those of the device.
    fn run_block(&self, device: &Device, input: &Grid, _block: &Block) -> Result<Samples> {
        self.run(device, input)
    }

    /// `smaller` are the sizes at which an image of `size` can also be decoded, smallest first. Returns the index of the
    /// first one that suffices, and the filter for it.
    fn shrunken(
        &self,
        _size: [usize; 2],
        _smaller: &[[usize; 2]],
    ) -> Option<(usize, Box<dyn Filter>)> {
        None
    }

    /// Whether results for u8 samples are the same on every device.
    fn is_exact_for_u8(&self) -> bool {
        true
    }

    /// Estimated seconds of one CPU core per byte of samples, including reading and writing.
    fn core_seconds_per_byte(&self) -> f64 {
        3.4e-9
    }
}
