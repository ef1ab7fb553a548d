//! The input of a histogram, pixels and a component of them, and its output, counts.

use serde::{Deserialize, Serialize};

use super::{
    bins::{Bins, type_range},
    luma::Luma,
};
use crate::{
    data::{dtype::Dtype, samples::Samples},
    util::{
        error::{Error, Result},
        memory,
    },
};

/// A channel, or the luminance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// The samples of this channel.
    Channel(usize),
    /// The luminance of the first three channels.
    Luma(Luma),
}

impl Component {
    /// Checks that `pixels` have this component.
    pub(super) fn check(self, pixels: &Pixels) -> Result<()> {
        let (needed, name) = match self {
            Self::Channel(channel) => (channel + 1, format!("channel {}", channel + 1)),
            Self::Luma(_) => (3, "luminance".into()),
        };
        match needed <= pixels.channels && pixels.channels <= 4 {
            true => Ok(()),
            false => Err(Error::usage(format_args!(
                "pixels of {} channels have no {name}",
                pixels.channels
            ))),
        }
    }
}

/// Interleaved pixels, or a volume with one channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Pixels {
    /// All samples, `channels` per pixel.
    pub samples: Samples,
    /// Samples per pixel, 1 to 4.
    pub channels: usize,
}

impl Pixels {
    /// Number of pixels.
    pub fn len(&self) -> usize {
        self.samples.len() / self.channels
    }

    /// Whether there are no pixels.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The weight of an opaque pixel in a weighted histogram: the largest 8-bit or 16-bit sample. Float alpha is rounded to
/// 16 bits.
pub fn alpha_unit(dtype: Dtype) -> u32 {
    if dtype == Dtype::U8 { 255 } else { 65535 }
}

/// The counts of one component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Samples in each bin.
    pub bins: Vec<u64>,
    /// Samples below the first bin.
    pub below: u64,
    /// Samples above the last bin.
    pub above: u64,
    /// Samples that are not a number.
    pub nan: u64,
    /// For channels of 8 or 16 bits, samples of each level, from the smallest value of the type.
    pub levels: Option<Vec<u64>>,
}

impl Counts {
    /// Number of samples in bins and outside.
    pub fn total(&self) -> u64 {
        self.in_range() + self.below + self.above + self.nan
    }

    /// Number of samples in bins.
    pub fn in_range(&self) -> u64 {
        self.bins.iter().sum()
    }

    /// Adds the counts of another input.
    ///
    /// # Panics
    /// If the numbers of bins differ.
    pub fn add(&mut self, other: &Self) {
        fn add(sum: &mut [u64], more: &[u64]) {
            assert_eq!(sum.len(), more.len(), "only equal bins add up");
            sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
        add(&mut self.bins, &other.bins);
        self.below += other.below;
        self.above += other.above;
        self.nan += other.nan;
        self.levels = match (self.levels.take(), &other.levels) {
            (Some(mut levels), Some(more)) if levels.len() == more.len() => {
                add(&mut levels, more);
                Some(levels)
            }
            _ => None,
        };
    }

    /// Counts from slots: below, bins, above, not a number.
    pub(super) fn from_slots(slots: &[u64]) -> Self {
        let [below, bins @ .., above, nan] = slots else { panic!("{} slots", slots.len()) };
        Self { bins: bins.to_vec(), below: *below, above: *above, nan: *nan, levels: None }
    }

    /// Counts from counters of the bit patterns of an 8-bit or 16-bit type.
    pub(super) fn from_patterns(mut patterns: Vec<u64>, dtype: Dtype, bins: &Bins) -> Self {
        let (min, _) = type_range(dtype).expect("patterns are counted of integers");
        if min < 0.0 {
            // Two's complement: negative values are the upper half of the patterns.
            let middle = patterns.len() / 2;
            patterns.rotate_left(middle);
        }
        Self::from_levels(patterns, min, bins)
    }

    fn from_levels(levels: Vec<u64>, min: f64, bins: &Bins) -> Self {
        let find = bins.slot_finder(1.0);
        let mut slots = memory::filled(0, bins.slots());
        for (level, &count) in levels.iter().enumerate().filter(|&(_, &count)| count > 0) {
            slots[find.slot(min + level as f64)] += count;
        }
        Self { levels: Some(levels), ..Self::from_slots(&slots) }
    }

    /// The same samples, of type `dtype`, in other bins; `None` without levels.
    pub fn in_bins(self, dtype: Dtype, bins: &Bins) -> Option<Self> {
        let (min, _) = type_range(dtype)?;
        Some(Self::from_levels(self.levels?, min, bins))
    }

    /// Minimum and maximum of the samples, of type `dtype`, by their levels; `None` without levels or samples.
    pub fn level_range(&self, dtype: Dtype) -> Option<[f64; 2]> {
        let ((min, _), levels) = (type_range(dtype)?, self.levels.as_ref()?);
        let is_filled = |&count: &u64| count > 0;
        let ends = [levels.iter().position(is_filled)?, levels.iter().rposition(is_filled)?];
        Some(ends.map(|level| min + level as f64))
    }
}
