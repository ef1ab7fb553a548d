//! Display of counts: cumulative or not, as shares or not, and scale.

use serde::{Deserialize, Serialize};

use std::borrow::Cow;

use super::{
    style::{AxisEnd, PlotStyle},
    tally::{ComponentOutcome, Outcome},
};
use crate::{data::dtype::Dtype, kernels::histogram::Bins};

/// How counts and statistics are shown.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args)]
pub struct View {
    /// Count in each bin all values below its upper edge
    #[arg(long)]
    pub cumulative: bool,

    /// Give shares of the values in the range instead of counts
    #[arg(long)]
    pub normalize: bool,

    /// Draw the counts on a logarithmic axis
    #[arg(long)]
    pub log: bool,

    /// Print statistics per channel instead of counts per bin
    ///
    /// The luminance of 8-bit and 16-bit images is rounded to whole samples before its entropy is computed.
    #[arg(long = "stats")]
    pub by_component: bool,

    /// Percentiles among the statistics, 0 to 100
    #[arg(
        long = "percentiles",
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "1,25,75,99"
    )]
    #[arg(value_parser = percentage, hide_short_help = true)]
    pub percentages: Vec<f64>,

    /// Draw on standard output, even if it is not a terminal
    #[arg(long, hide_short_help = true)]
    pub picture: bool,

    #[command(flatten)]
    pub style: PlotStyle,

    /// Whether plots of 16-bit samples show only the range that holds samples.
    #[arg(skip)]
    pub shows_data_range: bool,
}

fn percentage(text: &str) -> Result<f64, String> {
    let value = text.trim().parse().ok().filter(|value| (0.0..=100.0).contains(value));
    value.ok_or_else(|| "expected a percentage from 0 to 100".into())
}

impl View {
    /// Divisor of the counts of `component`: the count of one pixel, or with `normalize` of all pixels in the range.
    pub fn unit(&self, outcome: &Outcome, component: &ComponentOutcome) -> f64 {
        if self.normalize { component.counts.in_range().max(1) as f64 } else { outcome.unit }
    }

    /// The part of `outcome` that a plot shows. 16-bit samples seldom fill the range of their type, so their plot
    /// begins and ends with a bin that is not empty.
    pub fn cropped<'a>(&self, outcome: &'a Outcome) -> Cow<'a, Outcome> {
        let bins = &outcome.bins;
        let holds = |k: &usize| outcome.components.iter().any(|c| c.counts.bins[*k] > 0);
        let is_wide = matches!(outcome.dtype, Dtype::U16 | Dtype::I16);
        let ends = (0..bins.count).find(holds).zip((0..bins.count).rev().find(holds));
        let Some((first, last)) = ends.filter(|_| self.shows_data_range && is_wide) else {
            return Cow::Borrowed(outcome);
        };
        let mut shown = outcome.clone();
        let (low, high) = (bins.edge(first), bins.edge(last + 1));
        // With a bin for each level, bins are slightly narrower than 1: the edge 3099.95 belongs to the level 3100.
        let (low, high) = match bins.high - bins.low < bins.count as f64 {
            true => (low.ceil(), high.ceil()),
            false => (low, high),
        };
        shown.bins = Bins { count: last + 1 - first, low, high };
        for component in &mut shown.components {
            component.counts.bins = component.counts.bins[first..=last].to_vec();
        }
        Cow::Owned(shown)
    }

    /// Displayed value of each bin of `component`.
    pub fn values(&self, outcome: &Outcome, component: &ComponentOutcome) -> Vec<f64> {
        let unit = self.unit(outcome, component);
        let mut below = 0;
        let value = |&count: &u64| {
            below += count;
            (if self.cumulative { below } else { count }) as f64 / unit
        };
        component.counts.bins.iter().map(value).collect()
    }

    /// Value at the top of a plot of series with these values: that of the tallest bar, except that bars that dwarf the
    /// others are cut off. These are at most one bar in 32, and at least three times as tall as the next bar.
    pub fn top(&self, series: &[Vec<f64>]) -> f64 {
        if let Some(AxisEnd::Value(end)) = self.style.y_max {
            return end;
        }
        let tallest = |k| series.iter().map(|values| values[k]).fold(0.0, f64::max);
        let mut bars: Vec<f64> = (0..series.first().map_or(0, Vec::len)).map(tallest).collect();
        bars.retain(|&bar| bar > 0.0);
        bars.sort_by(|one, other| other.total_cmp(one));
        let is_full = self.cumulative || self.log || self.style.y_max == Some(AxisEnd::Max);
        let max_cut = if is_full { 0 } else { bars.len() / 32 };
        let cut = (1..=max_cut).rev().find(|&cut| bars[cut - 1] >= 3.0 * bars[cut]).unwrap_or(0);
        bars.get(cut).copied().unwrap_or(1.0)
    }

    /// Lower end of a logarithmic axis: six decades below the top for shares, one half for counts, so that a single
    /// sample is visible.
    pub fn log_start(&self, top: f64) -> f64 {
        if self.normalize { (top * 1e-6).min(0.5) } else { (top / 2.0).min(0.5) }
    }

    /// Height of a value on an axis that ends at `top`, from 0 to 1.
    pub fn height(&self, value: f64, top: f64) -> f64 {
        if !self.log {
            return (value / top).min(1.0);
        }
        let start = self.log_start(top);
        ((value / start).max(1.0).ln() / (top / start).ln()).clamp(0.0, 1.0)
    }
}

/// Joins neighbouring bins to at most `columns` columns. A column is the maximum of its bins, so that no peak is lost.
pub fn merged(values: &[f64], columns: usize) -> Vec<f64> {
    if values.len() <= columns {
        return values.to_vec();
    }
    let start = |column: usize| column * values.len() / columns;
    (0..columns)
        .map(|column| values[start(column)..start(column + 1)].iter().copied().fold(0.0, f64::max))
        .collect()
}
