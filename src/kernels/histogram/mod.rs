//! Histograms of images and volumes: exact counts of levels and bins, the same on every device.
//!
//! 8-bit and 16-bit channels are counted level by level, and the host sorts the levels into bins:
//! so any bins cost the same, and statistics are exact. Luminance and 32-bit values are binned
//! where they are counted, by comparison with a table of edges made on the host.

mod adjust;
mod bench;
mod bins;
mod cpu;
mod gpu;
mod statistics;

pub use adjust::{Adjust, luminance_levels};
pub use bench::{cases, cases_of};
pub use bins::{Bins, MAX_BINS, type_range};
pub use gpu::SHADERS;
pub use statistics::{Moments, Statistics, moments};

use crate::{
    data::samples::{Dtype, Samples},
    device::Kernel,
    error::{Error, Result},
    gpu::Context,
};

/// How red, green and blue make luminance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Luma {
    /// 0.2126 R + 0.7152 G + 0.0722 B of the stored values (ITU-R BT.709)
    #[default]
    Bt709,
    /// 0.299 R + 0.587 G + 0.114 B of the stored values (ITU-R BT.601)
    Bt601,
    /// The BT.709 sum in linear light: stored values are decoded by the sRGB curve (IEC 61966-2-1)
    Linear,
}

impl Luma {
    /// Integer weights of red, green and blue, and their sum.
    pub fn weights(self) -> ([u32; 3], u32) {
        match self {
            Self::Bt709 | Self::Linear => ([1063, 3576, 361], 5000),
            Self::Bt601 => ([299, 587, 114], 1000),
        }
    }

    /// The same as fractions.
    pub fn fractions(self) -> [f64; 3] {
        let (weights, sum) = self.weights();
        weights.map(|weight| f64::from(weight) / f64::from(sum))
    }

    /// What each sample value from 0 to `max` weighs in, and how many times the full value is `max`:
    /// the value itself, or for linear light an integer fine enough for its darkest steps.
    fn light(self, max: u32) -> (Vec<u32>, u32) {
        match self {
            Self::Bt709 | Self::Bt601 => ((0..=max).collect(), 1),
            Self::Linear => {
                // 5000 times the largest value stays below 2^30.
                let fine = 200_000 / max;
                let full = f64::from(max * fine);
                let decode = |value: u32| {
                    let v = f64::from(value) / f64::from(max);
                    let linear = match v <= 0.04045 {
                        true => v / 12.92,
                        false => ((v + 0.055) / 1.055).powf(2.4),
                    };
                    (linear * full).round() as u32
                };
                ((0..=max).map(decode).collect(), fine)
            }
        }
    }
}

/// What one row of a histogram counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
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

/// Counts `rows` in `bins`.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// What is counted.
    pub rows: Vec<Row>,
    /// Into which bins, the same for every row, in units of the stored samples.
    pub bins: Bins,
    /// Whether a pixel counts as much as its alpha says, in steps of 1 / [`alpha_unit`], where its
    /// image has alpha. Such sums are made on the CPU on every device.
    pub weighted: bool,
}

/// What a pixel of full alpha counts in a weighted histogram: the greatest 8-bit or 16-bit sample;
/// float alpha is rounded to 16 bits.
pub fn alpha_unit(dtype: Dtype) -> u32 {
    if dtype == Dtype::U8 { 255 } else { 65535 }
}

/// The counts of one row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// Samples counted, wherever they fell.
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
    fn from_slots(slots: &[u64]) -> Self {
        let [below, bins @ .., above, nan] = slots else { panic!("{} slots", slots.len()) };
        Self { bins: bins.to_vec(), below: *below, above: *above, nan: *nan, levels: None }
    }

    /// From counters of the bit patterns of an 8-bit or 16-bit type.
    fn from_patterns(mut patterns: Vec<u64>, dtype: Dtype, bins: &Bins) -> Self {
        let (least, _) = type_range(dtype).expect("patterns are counted of integers");
        if least < 0.0 {
            // Two's complement: negative values are the upper half of the patterns.
            let middle = patterns.len() / 2;
            patterns.rotate_left(middle);
        }
        let find = bins.finder(1.0);
        let mut slots = vec![0; bins.slots()];
        for (level, &count) in patterns.iter().enumerate() {
            slots[find.slot(least + level as f64)] += count;
        }
        Self { levels: Some(patterns), ..Self::from_slots(&slots) }
    }
}

/// How one row is counted.
#[derive(Debug)]
enum Plan {
    /// Every level of an 8-bit channel.
    Bytes(usize),
    /// Luminance of 8-bit pixels in at most 256 bins over the type's range.
    BytesLuma(Luma, LumaDivision),
    /// Every level of a 16-bit channel.
    Halves(usize),
    /// Luminance of integer pixels, by edges.
    Luma(Luma),
    /// 32-bit or 64-bit values, by edges. Luminance of floats is made on the host, where no device's
    /// way of rounding can move it into another bin.
    Values(Row),
}

/// Bin of a luminance = (weights . (r, g, b)) * times / divisor in integers, below 2^32 throughout,
/// weights below 2^16. Full white alone makes `bins`, one too many: it belongs to the last bin.
#[derive(Clone, Copy, Debug, PartialEq)]
struct LumaDivision {
    weights: [u32; 3],
    times: u32,
    divisor: u32,
    bins: usize,
}

/// Most luminance bins that share a pass with the channels.
const SHARED_BINS: usize = 256;

impl LumaDivision {
    fn new(luma: Luma, bins: usize) -> Self {
        let (weights, sum) = luma.weights();
        let (mut times, mut divisor) = (bins as u32, sum * 255);
        for prime in [2, 3, 5, 17] {
            while times.is_multiple_of(prime) && divisor.is_multiple_of(prime) {
                (times, divisor) = (times / prime, divisor / prime);
            }
        }
        Self { weights, times, divisor, bins }
    }
}

impl Histogram {
    fn plan(&self, pixels: &Pixels, row: Row) -> Result<Plan> {
        let dtype = pixels.samples.dtype();
        let channels = match row {
            Row::Channel(channel) => channel + 1,
            Row::Luma(_) => 3,
        };
        if channels > pixels.channels || pixels.channels > 4 {
            return Err(Error::usage(format_args!(
                "pixels of {} channels have no {}",
                pixels.channels,
                if channels == 3 { "luminance".into() } else { format!("channel {channels}") }
            )));
        }
        Ok(match (row, dtype) {
            (Row::Channel(channel), Dtype::U8 | Dtype::I8) => Plan::Bytes(channel),
            (Row::Channel(channel), Dtype::U16 | Dtype::I16) => Plan::Halves(channel),
            (Row::Luma(luma @ (Luma::Bt709 | Luma::Bt601)), Dtype::U8)
                if self.bins.count <= SHARED_BINS
                    && (self.bins.low, self.bins.high) == (0.0, 255.0) =>
            {
                Plan::BytesLuma(luma, LumaDivision::new(luma, self.bins.count))
            }
            (Row::Luma(luma), Dtype::U8 | Dtype::U16) => Plan::Luma(luma),
            (Row::Luma(_), Dtype::F32) | (Row::Channel(_), _) => Plan::Values(row),
            (Row::Luma(_), _) => {
                return Err(Error::usage(format_args!("{dtype} samples have no luminance")));
            }
        })
    }

    /// The counts of every row, given what counts: all rows of bytes at once, and any other row.
    fn count(
        &self,
        pixels: &Pixels,
        bytes: impl FnOnce(&BytesRows) -> Result<Vec<Vec<u64>>>,
        mut other: impl FnMut(&Plan) -> Result<Vec<u64>>,
    ) -> Result<Vec<Counts>> {
        let dtype = pixels.samples.dtype();
        if self.weighted && matches!(pixels.channels, 2 | 4) {
            let count = |&row: &Row| {
                self.plan(pixels, row)?;
                Ok(cpu::count_weighted(pixels, &self.bins, row))
            };
            return self.rows.iter().map(count).collect();
        }
        let plans: Vec<Plan> =
            self.rows.iter().map(|&row| self.plan(pixels, row)).collect::<Result<_>>()?;
        let mut shared = BytesRows::default();
        for plan in &plans {
            match plan {
                Plan::Bytes(channel) => shared.channels[*channel] = true,
                Plan::BytesLuma(_, division) if shared.luma.is_none() => {
                    shared.luma = Some(*division);
                }
                _ => {}
            }
        }
        let counted = match shared.is_empty() {
            true => Vec::new(),
            false => bytes(&shared)?,
        };
        let channels_before = |channel: usize| shared.channels[..channel].iter().filter(|&&c| c);
        plans
            .iter()
            .map(|plan| {
                Ok(match plan {
                    Plan::Bytes(channel) => {
                        let patterns = counted[channels_before(*channel).count()].clone();
                        Counts::from_patterns(patterns, dtype, &self.bins)
                    }
                    // A second kind of luminance does not fit the shared pass.
                    Plan::BytesLuma(luma, division) if shared.luma != Some(*division) => {
                        Counts::from_slots(&other(&Plan::Luma(*luma))?)
                    }
                    Plan::BytesLuma(_, division) => {
                        let bins = counted.last().expect("it was counted").clone();
                        debug_assert_eq!(bins.len(), division.bins);
                        Counts { bins, ..Counts::default() }
                    }
                    Plan::Halves(_) => Counts::from_patterns(other(plan)?, dtype, &self.bins),
                    Plan::Luma(_) | Plan::Values(_) => Counts::from_slots(&other(plan)?),
                })
            })
            .collect()
    }
}

/// What one pass over 8-bit pixels counts: 256 levels of each channel asked for, in order, then
/// bins of luminance.
#[derive(Clone, Copy, Debug, Default)]
struct BytesRows {
    channels: [bool; 4],
    luma: Option<LumaDivision>,
}

impl BytesRows {
    fn is_empty(&self) -> bool {
        !self.channels.contains(&true) && self.luma.is_none()
    }

    /// How many slots each row has.
    fn slots(&self) -> Vec<usize> {
        let channels = self.channels.iter().filter(|&&counted| counted).map(|_| 256);
        channels.chain(self.luma.map(|luma| luma.bins)).collect()
    }
}

impl Kernel for Histogram {
    type In = Pixels;
    type Out = Vec<Counts>;
    const NAME: &'static str = "histogram";

    fn cpu(&self, pixels: &Pixels) -> Result<Vec<Counts>> {
        let bytes = |rows: &BytesRows| Ok(cpu::count_bytes(pixels, rows));
        let channels = self.rows.iter().filter(|row| matches!(row, Row::Channel(_))).count();
        let mut halves = Vec::new();
        self.count(pixels, bytes, |plan| match plan {
            // All at once at the first of them.
            Plan::Halves(channel) if channels > 1 => {
                if halves.is_empty() {
                    halves = cpu::count_halves(pixels);
                }
                Ok(halves[*channel].clone())
            }
            _ => Ok(cpu::count_row(pixels, &self.bins, plan)),
        })
    }

    fn gpu(&self, context: &Context, pixels: &Pixels) -> Result<Vec<Counts>> {
        if self.weighted && matches!(pixels.channels, 2 | 4) {
            log::debug!("weights of alpha are summed on the CPU");
        }
        let bytes = |rows: &BytesRows| gpu::count_bytes(context, pixels, rows);
        self.count(pixels, bytes, |plan| gpu::count_row(context, pixels, &self.bins, plan))
    }
}
