//! Connected components: neighbouring samples get the same number.
//!
//! | module | holds |
//! |---|---|
//! | `forest` | union-find of provisional numbers |
//! | `runs` | runs of samples in rows, and which of them touch |
//! | `components` | the two passes over a grid that is read block by block |
//! | `gpu` | union-find of samples |
//! | `regions` | measurements of components |

mod components;
mod forest;
mod gpu;
mod regions;
mod runs;

use std::{borrow::Cow, fmt, ops::Range, sync::Arc};

use serde_json::{Value, json};

pub use self::{
    components::{Components, Labels, Rule, Weigh},
    gpu::variants,
    regions::{Region, add_labels},
    runs::{Reach, Slices},
};
use super::filter::{Block, Filter, Pass};
use crate::{
    data::{
        dtype::Dtype,
        grid::{Grid, GridType, Shape},
        samples::Samples,
    },
    device::{Device, Kernel},
    for_samples,
    gpu::Context,
    util::{
        error::{Error, Result},
        parallel,
    },
};

/// Labels connected components. Samples that are 0 are background, whose label is 0. Components are numbered from 1 in
/// the order of their first samples: by z, y, x. The result is u16, or u32 if there are more than 65,535.
#[derive(Clone, Debug)]
pub struct Label {
    connectivity: usize,
    rule: Rule,
    observer: Option<Arc<dyn Observer>>,
    /// The components, if the filter is prepared for an input.
    found: Option<Arc<Found>>,
}

/// What the first pass over an input has found.
#[derive(Debug)]
enum Found {
    /// The result.
    Samples(Samples),
    /// The numbers of components, from which the result of each block is made.
    Numbers(Labels),
}

/// Gets the labels of an input before they are written.
pub trait Observer: fmt::Debug + Send + Sync {
    /// Gets a prepared filter, which labels an input of size `shape` that `pass` reads.
    ///
    /// # Errors
    /// Any error, which ends the job.
    fn observe(&self, labels: &Label, device: &Device, shape: Shape, pass: Pass<'_>) -> Result<()>;

    /// Is called once the labels have been written.
    ///
    /// # Errors
    /// Any error.
    fn finish(&self) -> Result<()>;
}

impl Label {
    /// Components of neighbours, of which a sample has `connectivity`: 4 or 8 along two `axes`, 6, 18 or 26 along three;
    /// the most by default. Their samples are equal if `is_equal` is set. Components of fewer than `min_size` samples become
    /// background.
    ///
    /// # Errors
    /// For another `connectivity`.
    pub fn new(
        connectivity: Option<usize>,
        axes: usize,
        is_equal: bool,
        min_size: u64,
    ) -> Result<Self> {
        let (known, text) = match axes {
            2 => (&[4, 8][..], "an image, which needs 4 or 8"),
            _ => (&[6, 18, 26][..], "a volume, which needs 6, 18 or 26"),
        };
        let connectivity = connectivity.unwrap_or(known[known.len() - 1]);
        let Some(reach) = known.iter().position(|&number| number == connectivity) else {
            return Err(Error::usage(format_args!("connectivity {connectivity}: this is {text}")));
        };
        let min_weight = if min_size > 1 { min_size } else { 0 };
        let rule = Rule { reach: Reach(reach + 1), is_equal, min_weight };
        Ok(Self { connectivity, rule, observer: None, found: None })
    }

    /// The same filter, whose labels `observer` gets.
    #[must_use]
    pub fn observed(self, observer: Arc<dyn Observer>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// One sample for each position of `grid`: 0 for background, and of equal value where they belong together. Alpha
    /// does not count.
    fn keys<'a>(&self, grid: &'a Grid) -> Result<Cow<'a, Samples>> {
        let (samples, channels) = (&grid.samples, grid.channels);
        let colours = channels - usize::from(matches!(channels, 2 | 4));
        let len = samples.len() / channels;
        Ok(match samples {
            samples if channels == 1 => Cow::Borrowed(samples),
            Samples::U8(bytes) => Cow::Owned(Samples::U32(parallel::generated(len, |at| {
                let pixel = &bytes[at * channels..][..colours];
                pixel.iter().fold(0, |key, &byte| key << 8 | u32::from(byte))
            })?)),
            samples if colours == 1 => Cow::Owned(for_samples!(samples, samples => {
                parallel::generated(len, |at| samples[at * channels])?.into()
            })),
            _ if self.rule.is_equal => {
                return Err(Error::bad_input(format_args!(
                    "equal values need one channel, or colours of 8 bits: found {channels} channels of {}",
                    samples.dtype()
                )));
            }
            #[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "one type is f64")]
            samples => Cow::Owned(Samples::U8(for_samples!(samples, samples => {
                parallel::generated(len, |at| {
                    let pixel = &samples[at * channels..][..colours];
                    u8::from(pixel.iter().any(|&value| value as f64 != 0.0))
                })?
            }))),
        })
    }
}

impl Kernel for Label {
    type In = Grid;
    type Out = Samples;
    const NAME: &'static str = "label";

    fn cpu(&self, grid: &Grid) -> Result<Samples> {
        let keys = self.keys(grid)?;
        let mut components = Components::new(self.rule, Slices::of_whole(grid.dims));
        components.add(&keys, &|samples| samples.len() as u64)?;
        components.finish().fill(&keys, 0)
    }

    fn gpu(&self, context: &Context, grid: &Grid) -> Result<Samples> {
        match gpu::label(context, &*self.keys(grid)?, grid.dims, self.rule)? {
            Some(labels) => Ok(labels),
            None => self.cpu(grid),
        }
    }
}

impl Filter for Label {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn parameters(&self) -> Value {
        let Rule { is_equal, min_weight, .. } = self.rule;
        json!({ "connectivity": self.connectivity, "equal": is_equal, "min_size": min_weight.max(1) })
    }

    fn output(&self, input: GridType) -> Result<GridType> {
        let dtype = match self.found.as_deref() {
            Some(Found::Samples(samples)) => samples.dtype(),
            Some(Found::Numbers(labels)) => labels.dtype(),
            None => Dtype::U16,
        };
        Ok(GridType { shape: Shape { channels: 1, ..input.shape }, dtype })
    }

    fn makes_labels(&self) -> bool {
        true
    }

    fn held_bytes(&self, _input: GridType) -> u64 {
        match self.found.as_deref() {
            Some(Found::Samples(samples)) => samples.as_bytes().len() as u64,
            Some(Found::Numbers(labels)) => labels.bytes(),
            None => 0,
        }
    }

    fn working_bytes(&self, input: GridType) -> u64 {
        // Keys, and half a run and half a provisional number for each sample at most.
        2 * input.dtype.size() as u64 + 24
    }

    fn copies(&self) -> u64 {
        8
    }

    fn prepared(
        &self,
        device: &Device,
        shape: Shape,
        pass: Pass<'_>,
    ) -> Result<Option<Box<dyn Filter>>> {
        if self.found.is_some() {
            return Ok(None);
        }
        let mut whole = None;
        let mut components = Components::new(self.rule, Slices::of(shape.dims));
        pass(&mut |grid| {
            if grid.shape() == shape {
                whole = Some(device.run(self, grid)?);
                return Ok(());
            }
            components.add(&*self.keys(grid)?, &|samples| samples.len() as u64)
        })?;
        let found = whole.map_or_else(|| Found::Numbers(components.finish()), Found::Samples);
        let label = Self { found: Some(found.into()), ..self.clone() };
        if let Some(observer) = &self.observer {
            observer.observe(&label, device, shape, pass)?;
        }
        Ok(Some(Box::new(label)))
    }

    /// The result of the first pass, without another one.
    fn reduced(&self, _: &Device, _axis: usize, _pass: Pass<'_>) -> Result<Option<Samples>> {
        match self.found.as_deref() {
            Some(Found::Samples(samples)) => samples.copy().map(Some),
            _ => Ok(None),
        }
    }

    fn finish(&self) -> Result<()> {
        self.observer.as_ref().map_or(Ok(()), |observer| observer.finish())
    }

    fn run(&self, device: &Device, input: &Grid) -> Result<Samples> {
        match self.found.as_deref() {
            Some(Found::Samples(samples)) => samples.copy(),
            _ => device.run(self, input),
        }
    }

    fn run_block(&self, device: &Device, input: &Grid, block: &Block) -> Result<Samples> {
        let Range { start, end } = block.input;
        match self.found.as_deref() {
            Some(Found::Samples(samples)) => {
                let slice = samples.len() / block.shape.dims[block.axis];
                Ok(samples.part(start * slice..end * slice))
            }
            Some(Found::Numbers(labels)) => labels.fill(&*self.keys(input)?, start),
            None => self.run(device, input),
        }
    }
}
