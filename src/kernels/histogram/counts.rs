//! The input of a histogram, pixels and a component of them, and its output, counts.

use serde::{Deserialize, Serialize};

use super::bins::{Bins, type_range};
use super::luma::Luma;
use crate::data::{dtype::Dtype, samples::Samples};

/// The values that one histogram counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// The samples of this channel.
    Channel(usize),
    /// The luminance of the first three channels.
    Luma(Luma),
}

/// Interleaved pixels, or a volume with one channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Pixels {
    /// All samples, `channels` a pixel.
    pub samples: Samples,
    /// Samples a pixel, 1 to 4.
    pub channels: usize,
}

impl Pixels {
    /// How many pixels there are.
    pub fn len(&self) -> usize {
        self.samples.len() / self.channels
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The weight of a pixel of full alpha in a weighted histogram: the greatest 8-bit or 16-bit sample. Float alpha is
/// rounded to 16 bits.
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
    /// For channels of 8 or 16 bits, samples of each level, from the type's least value up.
    pub levels: Option<Vec<u64>>,
}

impl Counts {
    /// All samples counted, in bins or not.
    pub fn total(&self) -> u64 {
        self.in_range() + self.below + self.above + self.nan
    }

    /// Samples in some bin.
    pub fn in_range(&self) -> u64 {
        self.bins.iter().sum()
    }

    /// Adds the counts of another input.
    ///
    /// # Panics
    /// When the bins differ in number.
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

    /// From counters laid out as slots: below, bins, above, not a number.
    pub(super) fn from_slots(slots: &[u64]) -> Self {
        let [below, bins @ .., above, nan] = slots else { panic!("{} slots", slots.len()) };
        Self { bins: bins.to_vec(), below: *below, above: *above, nan: *nan, levels: None }
    }

    /// From counters of the bit patterns of an 8-bit or 16-bit type.
    pub(super) fn from_patterns(mut patterns: Vec<u64>, dtype: Dtype, bins: &Bins) -> Self {
        let (least, _) = type_range(dtype).expect("patterns are counted of integers");
        if least < 0.0 {
            // Two's complement: negative values are the upper half of the patterns.
            let middle = patterns.len() / 2;
            patterns.rotate_left(middle);
        }
        let find = bins.finder(1.0);
        let mut slots = vec![0; bins.slots()];
        for (level, &count) in patterns.iter().enumerate().filter(|&(_, &count)| count > 0) {
            slots[find.slot(least + level as f64)] += count;
        }
        Self { levels: Some(patterns), ..Self::from_slots(&slots) }
    }
}
