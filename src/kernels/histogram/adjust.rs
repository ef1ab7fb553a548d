//! Adjustments that a histogram drives: equalisation and automatic levels, as tables of samples, and
//! the kernel that applies them.

use rayon::prelude::*;

use super::{Bins, Counts, Histogram, Luma, Pixels, Row};
use crate::{
    data::samples::{Dtype, Samples},
    device::Kernel,
    error::{Error, Result},
    gpu::{Context, Shader},
    memory::{self, raise},
    shader, shader_struct,
};

pub(super) static ADJUST: Shader = shader!("histogram/adjust");

shader_struct! {
    struct AdjustJob {
        words: u32,
    }
}

/// A table for 8-bit or 16-bit images. Alpha stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Adjust {
    /// Every sample becomes what the table holds for it.
    Samples(Vec<i32>),
    /// What the table holds for a pixel's luminance, rounded to a sample value, is added to all its
    /// colours, which keeps their differences; then they are clamped.
    Shifts(Vec<i32>),
}

/// What counts the luminance of pixels, rounded to sample values, as [`Adjust::equalize`] and
/// [`Adjust::levels`] need it: of grey pixels their grey value.
///
/// # Errors
/// [`Kind::BadInput`](crate::error::Kind::BadInput) when the samples are of neither 8 nor 16 unsigned bits.
pub fn luminance_levels(dtype: Dtype, channels: usize) -> Result<Histogram> {
    let most = most(dtype)?;
    let bins = Bins::new(most as usize + 1, -0.5, f64::from(most) + 0.5, dtype)?;
    let row = if channels < 3 { Row::Channel(0) } else { Row::Luma(Luma::Bt709) };
    Ok(Histogram { rows: vec![row], bins, weighted: false })
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

    /// Automatic levels: one straight line for all colours, which takes the luminance that `clip`
    /// (a share from 0 to below a half) of the pixels lie below to 0, and the one that as many lie
    /// above to full.
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

    fn table(&self) -> &[i32] {
        match self {
            Self::Samples(table) | Self::Shifts(table) => table,
        }
    }

    /// Checks that the table fits the pixels.
    fn check(&self, pixels: &Pixels) -> Result<i32> {
        let most = most(pixels.samples.dtype())?;
        match self.table().len() == most as usize + 1 && (1..=4).contains(&pixels.channels) {
            true => Ok(most),
            false => Err(Error::usage("the table of the adjustment does not fit the image")),
        }
    }

    fn apply<T: Copy + Send + Sync + Into<i32> + TryFrom<i32>>(
        &self,
        samples: &[T],
        channels: usize,
        most: i32,
    ) -> Vec<T> {
        let colours = channels - usize::from(matches!(channels, 2 | 4));
        let clamped = |value: i32| T::try_from(value.clamp(0, most)).ok().expect("clamped");
        let mut result = memory::copied(samples).unwrap_or_else(raise);
        result.par_chunks_mut(channels << 12).for_each(|chunk| {
            for pixel in chunk.chunks_exact_mut(channels) {
                match self {
                    Self::Samples(table) => {
                        for sample in &mut pixel[..colours] {
                            *sample = clamped(table[(*sample).into() as usize]);
                        }
                    }
                    Self::Shifts(table) => {
                        let level = match *pixel {
                            [r, g, b, ..] => {
                                (1063 * r.into() + 3576 * g.into() + 361 * b.into() + 2500) / 5000
                            }
                            _ => pixel[0].into(),
                        };
                        let shift = table[level as usize];
                        for sample in &mut pixel[..colours] {
                            *sample = clamped((*sample).into() + shift);
                        }
                    }
                }
            }
        });
        result
    }
}

impl Kernel for Adjust {
    type In = Pixels;
    type Out = Samples;
    const NAME: &'static str = "adjust";

    fn cpu(&self, pixels: &Pixels) -> Result<Samples> {
        let most = self.check(pixels)?;
        Ok(match &pixels.samples {
            Samples::U8(bytes) => Samples::U8(self.apply(bytes, pixels.channels, most)),
            Samples::U16(halves) => Samples::U16(self.apply(halves, pixels.channels, most)),
            other => unreachable!("{} passed the check", other.dtype()),
        })
    }

    fn gpu(&self, context: &Context, pixels: &Pixels) -> Result<Samples> {
        self.check(pixels)?;
        let (channels, size) = (pixels.channels, pixels.samples.dtype().size());
        let flag = |flag: bool| if flag { "true" } else { "false" };
        let shader = ADJUST.with(&[
            ("BITS", &format!("{}u", size * 8)),
            ("CHANNELS", &format!("{channels}u")),
            ("ALPHA", flag(matches!(channels, 2 | 4))),
            ("SHIFTS", flag(matches!(self, Self::Shifts(_)))),
        ]);
        let pipeline = context.pipeline(&shader, "adjust")?;
        let table = context.upload("table", self.table())?;
        let mut result = pixels.samples.copy()?;
        // Bands of whole pixels and whole words.
        let step = 4 * channels * size;
        let band = (context.max_binding().min(super::gpu::BAND) as usize / step).max(1) * step;
        let band = band.min(result.as_bytes().len().next_multiple_of(4));
        let data = context.allocate("pixels", band as u64)?;
        let adjusted = context.allocate("adjusted pixels", band as u64)?;
        for bytes in result.as_bytes_mut().chunks_mut(band.max(1)) {
            context.write(&data, 0, bytes)?;
            let words = bytes.len().div_ceil(4) as u32;
            let mut batch = context.batch();
            batch
                .pass("adjust", &pipeline)
                .buffer("data", &data)
                .buffer("table", &table)
                .buffer("result", &adjusted)
                .uniform("job", &AdjustJob { words })
                .dispatch(context.fold(u64::from(words).div_ceil(256))?);
            batch.run()?;
            let mut at = 0;
            context.read_with(&adjusted, 0..bytes.len() as u64, |chunk| {
                bytes[at..at + chunk.len()].copy_from_slice(chunk);
                at += chunk.len();
                Ok(())
            })?;
        }
        Ok(result)
    }
}
