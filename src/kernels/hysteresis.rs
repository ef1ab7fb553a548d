//! Hysteresis thresholding: samples above a low threshold that are connected to a sample above a high threshold.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    filter::{Block, Cost, Filter, InputPass, Preparation, Properties, Ready},
    histogram::Luma,
    label::{Components, Labels, Reach, Rule, Slices, table_bytes},
    pointwise::combined,
};
use crate::{
    data::{
        description::{Description, Kind},
        dtype::Dtype,
        grid::{Grid, GridType, Shape},
        samples::Samples,
    },
    device::Device,
    util::{error::Result, spill::Workspace},
};

/// Makes a mask of the components of samples above `low` that have a sample above `high`, as scikit-image's
/// `apply_hysteresis_threshold` (4-connectivity in images, 6-connectivity in volumes).
#[derive(Clone, Debug)]
pub struct Hysteresis {
    low: f64,
    high: f64,
    workspace: Workspace,
    /// The components, if the filter is prepared for an input.
    labels: Option<Arc<Labels>>,
}

/// The rule for components of the mask. Each sample above the high threshold has the weight 2.
const RULE: Rule = Rule { reach: Reach(1), is_equal: false, min_weight: 2 };

impl Hysteresis {
    /// A mask by these thresholds.
    pub fn new([low, high]: [f64; 2]) -> Self {
        Self { low, high, workspace: Workspace::UNLIMITED, labels: None }
    }

    /// The number of thresholds that each sample exceeds. Colours are compared by their luminance.
    fn classes(&self, grid: &Grid) -> Result<Samples> {
        let class = |[sample]: [f64; 1]| {
            f64::from(u8::from(sample > self.low) + u8::from(sample > self.high))
        };
        combined(Dtype::U8, [&*Luma::Bt709.grey(&grid.samples, grid.channels)?], class)
    }

    /// The components of an input of size `shape`. A component that is too light has no sample above the high threshold.
    fn labels(&self, shape: Shape, pass: InputPass<'_>) -> Result<Labels> {
        let mut components = Components::new(RULE, Slices::of(shape.dims), self.workspace);
        pass(&mut |grid| {
            if grid.shape() == shape {
                let more = table_bytes(self, grid.grid_type());
                components.limit_bands(self.workspace.bytes.saturating_add(more));
            }
            let classes = self.classes(grid)?;
            components.add(&classes, &|samples| {
                let high = classes.as_bytes()[samples].iter().filter(|&&class| class == 2);
                2 * high.count() as u64
            })
        })?;
        components.finish()
    }
}

impl Filter for Hysteresis {
    fn name(&self) -> &'static str {
        "threshold"
    }

    fn parameters(&self) -> Value {
        json!({ "hysteresis": [self.low, self.high] })
    }

    fn describe(&self, input: Description) -> Result<Description> {
        Ok(input.of_one_channel(Kind::Mask, Dtype::U8))
    }

    fn properties(&self) -> Properties {
        Properties { has_tables: true, ..Properties::default() }
    }

    fn cost(&self, input: GridType) -> Cost {
        let width = input.shape.dims[0].max(1);
        let runs = RULE.max_row_bytes(width).div_ceil(width as u64);
        let (channels, size) = (input.shape.channels.max(1) as u64, input.dtype.size() as u64);
        // Pixels, their luminance, classes, runs with what their vectors reserve, and the mask.
        let working = (2 * channels * size + runs + runs / 4 + 2).div_ceil(channels);
        let held = self.labels.as_ref().map_or(0, |labels| labels.bytes());
        Cost { held, working, copies: 10, ..Cost::of(input) }
    }

    fn prepare(&self, own: Preparation<'_>) -> Result<Ready> {
        let filter = Self { workspace: own.workspace, ..self.clone() };
        let labels = Some(Arc::new(filter.labels(own.input.grid.shape, own.pass)?));
        Ok(Self { labels, ..filter }.into())
    }

    fn run(&self, _: &Device, input: &Grid, block: &Block) -> Result<Samples> {
        let whole;
        let labels = match &self.labels {
            Some(labels) => labels,
            None => {
                whole = self.labels(input.shape(), &mut |consume| consume(input))?;
                &whole
            }
        };
        labels.mask(&self.classes(input)?, block.input.start)
    }
}
