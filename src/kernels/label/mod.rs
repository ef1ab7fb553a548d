//! Connected components: neighbouring samples get the same number.
//!
//! | module | holds |
//! |---|---|
//! | `forest` | union-find of provisional numbers |
//! | `runs` | runs of samples in rows, and which of them touch |
//! | `components` | the two passes over a grid that is read block by block |
//! | `tables` | the trees of provisional numbers, on disk if they do not fit into memory |
//! | `gpu` | union-find of samples |
//! | `regions` | measurements of components |

mod components;
mod forest;
mod gpu;
mod regions;
mod runs;
mod tables;

use std::{
    borrow::Cow,
    fmt,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::{Value, json};

pub use self::{
    components::{Components, Labels, Rule, Weigh},
    gpu::variants,
    regions::{Region, Regions},
    runs::{Reach, Slices},
};
use super::filter::{Block, Cost, Filter, Preparation, Properties, Ready};
use crate::{
    data::{
        description::{Description, Kind},
        dtype::Dtype,
        grid::{Grid, GridType},
        samples::Samples,
    },
    device::{Device, Kernel},
    for_samples,
    gpu::Context,
    util::{
        error::{Error, Result},
        parallel,
        spill::Workspace,
    },
};

/// Labels connected components. Samples that are 0 are background, whose label is 0. Components are numbered from 1 in
/// the order of their first samples: by z, y, x. The result is u16, or u32 if there are more than 65,535.
#[derive(Clone, Debug)]
pub struct Label {
    connectivity: usize,
    rule: Rule,
    observer: Option<Arc<dyn Observer>>,
    workspace: Workspace,
    /// The components, if the filter is prepared for an input.
    found: Option<Arc<Found>>,
}

/// What the first pass over an input has found.
#[derive(Debug)]
enum Found {
    /// The result, until it is taken, and its type.
    Samples(Mutex<Option<Samples>>, Dtype),
    /// The numbers of components, from which the result of each block is made.
    Numbers(Labels),
}

/// Gets the labels of an input before they are written.
pub trait Observer: fmt::Debug + Send + Sync {
    /// Gets a prepared filter, and what it was prepared from. The observer may take the memory of the workspace. Any
    /// error ends the job.
    fn observe(&self, labels: &Label, own: Preparation<'_>) -> Result<()>;

    /// Is called once the labels have been written.
    fn finish(&self) -> Result<()>;

    /// Bytes of memory for each sample of a block, in addition to those of the filter.
    fn working_bytes(&self) -> u64;
}

impl Label {
    /// Components of neighbours, of which a sample has `connectivity`: 4 or 8 along two `axes`, 6, 18 or 26 along three;
    /// the most by default. Their samples are equal if `is_equal` is set. Components of fewer than `min_size` samples become
    /// background.
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
        let workspace = Workspace::UNLIMITED;
        Ok(Self { connectivity, rule, observer: None, workspace, found: None })
    }

    /// The same filter, whose labels `observer` gets.
    #[must_use]
    pub fn observed(self, observer: Arc<dyn Observer>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// The result of the whole input, if the first pass had it in memory and it has not been taken.
    fn whole(&self) -> Option<MutexGuard<'_, Option<Samples>>> {
        match self.found.as_deref() {
            Some(Found::Samples(samples, _)) => {
                Some(samples.lock().unwrap_or_else(PoisonError::into_inner))
            }
            _ => None,
        }
    }

    /// Takes the result of the whole input, if it is in memory.
    fn taken(&self) -> Option<Samples> {
        self.whole().and_then(|mut samples| samples.take())
    }

    /// Calls `work` with the result of the whole input, if it is in memory.
    pub fn with_whole<T>(&self, work: impl FnOnce(&Samples) -> T) -> Option<T> {
        self.whole()?.as_ref().map(work)
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
        let mut components;
        if self.rule.fits(&keys, grid.dims[0], self.workspace.bytes) {
            let slices = Slices::of_whole(grid.dims);
            components = Components::new(self.rule, slices, Workspace::UNLIMITED);
        } else {
            let half = self.workspace.of(self.workspace.bytes / 2);
            components = Components::new(self.rule, Slices::of(grid.dims), half);
            components.limit_bands(half.bytes);
        }
        components.add(&keys, &|samples| samples.len() as u64)?;
        components.finish()?.fill(&keys, 0)
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

    fn describe(&self, input: Description) -> Result<Description> {
        let dtype = match self.found.as_deref() {
            Some(&Found::Samples(_, dtype)) => dtype,
            Some(Found::Numbers(labels)) => labels.dtype(),
            None => Dtype::U16,
        };
        Ok(input.of_one_channel(Kind::Labels, dtype))
    }

    fn properties(&self) -> Properties {
        Properties { makes_labels: true, has_tables: true, ..Properties::default() }
    }

    fn cost(&self, input: GridType) -> Cost {
        let width = input.shape.dims[0].max(1);
        let runs = self.rule.max_row_bytes(width).div_ceil(width as u64);
        let observed = self.observer.as_ref().map_or(0, |observer| observer.working_bytes());
        let (channels, size) = (input.shape.channels.max(1) as u64, input.dtype.size() as u64);
        let keys = if channels > 1 && input.dtype == Dtype::U8 { 4 } else { channels * size };
        // Pixels, keys, runs with what their vectors reserve, and labels.
        let working = (channels * size + keys + runs + runs / 4 + 4 + observed).div_ceil(channels);
        let held = match self.found.as_deref() {
            Some(Found::Numbers(labels)) => labels.bytes(),
            _ => self.with_whole(|samples| samples.as_bytes().len() as u64).unwrap_or(0),
        };
        Cost { held, working, copies: 8, ..Cost::of(input) }
    }

    /// The result of an input that the first pass has in memory takes no other pass.
    fn prepare(&self, own: Preparation<'_>) -> Result<Ready> {
        let Preparation { device, input, axis, workspace: own, pass } = own;
        if self.found.is_some() {
            return Ok(Ready { filter: None, result: self.taken() });
        }
        let shape = input.grid.shape;
        // The observer gets half.
        let parts = if self.observer.is_some() { 2 } else { 1 };
        let mut workspace = own.of(own.bytes / parts);
        let (mut whole, slices) = (None, Slices::of(shape.dims));
        let mut components = Components::new(self.rule, slices, workspace);
        pass(&mut |grid| {
            if grid.shape() == shape {
                let more = table_bytes(self, grid.grid_type());
                let all = own.of(own.bytes.saturating_add(more));
                workspace = all.of(all.bytes / parts);
                whole = Some(device.run(&Self { workspace: all, ..self.clone() }, grid)?);
                return Ok(());
            }
            components.add(&*self.keys(grid)?, &|samples| samples.len() as u64)
        })?;
        let found = match whole {
            Some(samples) => {
                let dtype = samples.dtype();
                Found::Samples(Mutex::new(Some(samples)), dtype)
            }
            None => Found::Numbers(components.finish()?),
        };
        let label = Self { workspace: own, found: Some(found.into()), ..self.clone() };
        if let Some(observer) = &self.observer {
            observer.observe(&label, Preparation { device, input, axis, workspace, pass })?;
        }
        let result = label.taken();
        Ok(Ready { filter: Some(label.into()), result })
    }

    fn run(&self, device: &Device, input: &Grid, block: &Block) -> Result<Samples> {
        let Range { start, end } = block.input;
        if let Some(Found::Numbers(labels)) = self.found.as_deref() {
            return labels.fill(&*self.keys(input)?, start);
        }
        let part = self.with_whole(|samples| {
            let slice = samples.len() / block.shape.dims[block.axis];
            samples.part(start * slice..end * slice)
        });
        part.map_or_else(|| device.run(self, input), Ok)
    }
}

/// Memory for the tables of a filter whose input, a whole grid of type `input`, is in memory: what the other estimates
/// leave for intermediate values.
pub fn table_bytes(filter: &dyn Filter, input: GridType) -> u64 {
    let bytes = input.bytes();
    let labels = 4 * bytes / (input.dtype.size() * input.shape.channels) as u64;
    let keys = if input.shape.channels > 1 { labels } else { 0 };
    let Cost { working, copies, .. } = filter.cost(input);
    let all = copies.min(working / input.dtype.size() as u64);
    all.saturating_sub(2).saturating_mul(bytes).saturating_sub(labels + keys)
}
