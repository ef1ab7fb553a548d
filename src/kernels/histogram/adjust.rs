//! Histogram equalisation and automatic levels, by lookup tables.

use super::{
    bins::Bins,
    counts::{Component, Counts, Pixels},
    cpu, gpu,
    kernel::Histogram,
    luma::Luma,
};
use crate::{
    data::{dtype::Dtype, samples::Samples},
    device::Kernel,
    gpu::Context,
    util::error::{Error, Result},
};

/// A lookup table for 8-bit or 16-bit images. Alpha is not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupTable {
    /// Each sample is replaced by its entry in the table.
    Samples(Vec<i32>),
    /// The entry for the luminance of a pixel, rounded to a sample value, is added to all its colours, so that their
    /// differences do not change. Then the colours are clamped.
    Shifts(Vec<i32>),
}

/// The histogram that [`LookupTable::equalize`] and [`LookupTable::levels`] need: that of the luminance, rounded to
/// sample values, or of grey values. Samples must be u8 or u16.
pub fn luminance_histogram(dtype: Dtype, channels: usize) -> Result<Histogram> {
    let max = max_sample(dtype)?;
    let bins = Bins::new(max as usize + 1, -0.5, f64::from(max) + 0.5, dtype)?;
    let component = if channels < 3 { Component::Channel(0) } else { Component::Luma(Luma::Bt709) };
    Ok(Histogram { components: vec![component], bins, weighted: false })
}

fn max_sample(dtype: Dtype) -> Result<i32> {
    match dtype {
        Dtype::U8 => Ok(255),
        Dtype::U16 => Ok(65535),
        other => Err(Error::bad_input(format_args!(
            "cannot adjust samples of type {other}: expected u8 or u16"
        ))),
    }
}

impl LookupTable {
    /// Histogram equalisation (Gonzalez and Woods, Digital Image Processing, 3.3.1): maps each luminance to its share
    /// in the cumulative counts, so that all become about equally frequent. The minimum is mapped to 0, the maximum to
    /// full intensity. An image with a single luminance is not changed.
    pub fn equalize(levels: &Counts) -> Self {
        let counts = &levels.bins;
        let max = counts.len() as i64 - 1;
        let total: u64 = counts.iter().sum();
        let min = counts.iter().copied().find(|&n| n > 0).unwrap_or(0);
        let spread = total - min;
        let mut seen = 0;
        let shift = |(level, &n): (usize, &u64)| {
            seen += n;
            if spread == 0 {
                return 0;
            }
            let above = u128::from(seen.saturating_sub(min));
            let to = (above * max as u128 * 2 + u128::from(spread)) / (2 * u128::from(spread));
            (to as i64 - level as i64) as i32
        };
        Self::Shifts(counts.iter().enumerate().map(shift).collect())
    }

    /// Automatic levels: one linear function for all colours. It maps to 0 the luminance below which a share `clip` of
    /// the pixels lies, from 0 to less than 1/2, and to full intensity the luminance above which the same share lies.
    pub fn levels(levels: &Counts, clip: f64) -> Self {
        let counts = &levels.bins;
        let max = counts.len() as i64 - 1;
        let total: u64 = counts.iter().sum();
        let spare = (clip * total as f64) as u64;
        let is_past = || {
            let mut seen = 0;
            move |n: &u64| {
                seen += n;
                seen > spare
            }
        };
        let low = counts.iter().position(is_past()).unwrap_or(0) as i64;
        let high = max - counts.iter().rev().position(is_past()).unwrap_or(0) as i64;
        let width = high - low;
        let line = |level: i64| match width > 0 {
            true => ((2 * (level - low) * max + width).div_euclid(2 * width)).clamp(0, max),
            false => level,
        };
        Self::Samples((0..=max).map(|level| line(level) as i32).collect())
    }

    /// The table, and whether its entries are shifts.
    fn table(&self) -> (&[i32], bool) {
        match self {
            Self::Samples(table) => (table, false),
            Self::Shifts(table) => (table, true),
        }
    }

    /// Checks that the table fits the pixels, and returns the largest sample value.
    fn check(&self, pixels: &Pixels) -> Result<i32> {
        let max = max_sample(pixels.samples.dtype())?;
        match self.table().0.len() == max as usize + 1 && (1..=4).contains(&pixels.channels) {
            true => Ok(max),
            false => Err(Error::usage("the adjustment and the image have different sample types")),
        }
    }
}

impl Kernel for LookupTable {
    type In = Pixels;
    type Out = Samples;
    const NAME: &'static str = "adjust";

    fn cpu(&self, pixels: &Pixels) -> Result<Samples> {
        let max = self.check(pixels)?;
        let (table, shifts) = self.table();
        Ok(match &pixels.samples {
            Samples::U8(samples) => {
                Samples::U8(cpu::adjust::apply(samples, pixels.channels, max, table, shifts))
            }
            Samples::U16(samples) => {
                Samples::U16(cpu::adjust::apply(samples, pixels.channels, max, table, shifts))
            }
            other => unreachable!("{} passed the check", other.dtype()),
        })
    }

    fn gpu(&self, context: &Context, pixels: &Pixels) -> Result<Samples> {
        self.check(pixels)?;
        let (table, shifts) = self.table();
        gpu::adjust::apply(context, pixels, table, shifts)
    }
}
