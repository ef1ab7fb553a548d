//! Adjustments that a histogram drives: equalisation and automatic levels, as tables of samples.

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

/// A table for 8-bit or 16-bit images. Alpha stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Adjust {
    /// Every sample becomes the table's entry for it.
    Samples(Vec<i32>),
    /// The table's entry for a pixel's luminance, rounded to a sample value, is added to all its colours, which keeps
    /// their differences; then the colours are clamped.
    Shifts(Vec<i32>),
}

/// The histogram that [`Adjust::equalize`] and [`Adjust::levels`] need: of the luminance of pixels, rounded to sample
/// values, or of the grey value of grey pixels.
///
/// # Errors
/// [`Kind::BadInput`](crate::util::error::Kind::BadInput) when the samples are of neither 8 nor 16 unsigned bits.
pub fn luminance_levels(dtype: Dtype, channels: usize) -> Result<Histogram> {
    let most = most(dtype)?;
    let bins = Bins::new(most as usize + 1, -0.5, f64::from(most) + 0.5, dtype)?;
    let component = if channels < 3 { Component::Channel(0) } else { Component::Luma(Luma::Bt709) };
    Ok(Histogram { components: vec![component], bins, weighted: false })
}

fn most(dtype: Dtype) -> Result<i32> {
    match dtype {
        Dtype::U8 => Ok(255),
        Dtype::U16 => Ok(65535),
        other => Err(Error::bad_input(format_args!(
            "only images of 8 or 16 bits are adjusted, not samples of type {other}"
        ))),
    }
}

impl Adjust {
    /// Histogram equalisation (Gonzalez and Woods, Digital Image Processing, 3.3.1): a luminance moves
    /// to its share in the cumulative counts, so that all become about equally frequent. The least
    /// one moves to 0 and the greatest to full; an image of one luminance stays.
    pub fn equalize(levels: &Counts) -> Self {
        let counts = &levels.bins;
        let most = counts.len() as i64 - 1;
        let total: u64 = counts.iter().sum();
        let least = counts.iter().copied().find(|&n| n > 0).unwrap_or(0);
        let spread = total - least;
        let mut seen = 0;
        let shift = |(level, &n): (usize, &u64)| {
            seen += n;
            if spread == 0 {
                return 0;
            }
            let above = u128::from(seen.saturating_sub(least));
            let to = (above * most as u128 * 2 + u128::from(spread)) / (2 * u128::from(spread));
            (to as i64 - level as i64) as i32
        };
        Self::Shifts(counts.iter().enumerate().map(shift).collect())
    }

    /// Automatic levels: one straight line for all colours. It takes the luminance below which a share `clip` of the
    /// pixels lies, from 0 to less than 1/2, to 0, and the luminance above which the same share lies to the greatest
    /// value.
    pub fn levels(levels: &Counts, clip: f64) -> Self {
        let counts = &levels.bins;
        let most = counts.len() as i64 - 1;
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
        let high = most - counts.iter().rev().position(is_past()).unwrap_or(0) as i64;
        let width = high - low;
        let line = |level: i64| match width > 0 {
            true => ((2 * (level - low) * most + width).div_euclid(2 * width)).clamp(0, most),
            false => level,
        };
        Self::Samples((0..=most).map(|level| line(level) as i32).collect())
    }

    /// The table, and whether it holds shifts.
    fn table(&self) -> (&[i32], bool) {
        match self {
            Self::Samples(table) => (table, false),
            Self::Shifts(table) => (table, true),
        }
    }

    /// Checks that the table fits the pixels.
    fn check(&self, pixels: &Pixels) -> Result<i32> {
        let most = most(pixels.samples.dtype())?;
        match self.table().0.len() == most as usize + 1 && (1..=4).contains(&pixels.channels) {
            true => Ok(most),
            false => Err(Error::usage("the table of the adjustment does not fit the image")),
        }
    }
}

impl Kernel for Adjust {
    type In = Pixels;
    type Out = Samples;
    const NAME: &'static str = "adjust";

    fn cpu(&self, pixels: &Pixels) -> Result<Samples> {
        let most = self.check(pixels)?;
        let (table, shifts) = self.table();
        Ok(match &pixels.samples {
            Samples::U8(samples) => {
                Samples::U8(cpu::adjust::apply(samples, pixels.channels, most, table, shifts))
            }
            Samples::U16(samples) => {
                Samples::U16(cpu::adjust::apply(samples, pixels.channels, most, table, shifts))
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
