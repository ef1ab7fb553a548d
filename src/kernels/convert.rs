//! Conversion of samples to another type, range or set of channels.

use std::{
    borrow::Cow,
    sync::{Mutex, PoisonError},
};

use serde::Serialize;
use serde_json::{Value, json};

use super::{
    channel_mask::{ChannelName, copy_channel},
    filter::{Block, Cost, Filter, Preparation, Properties, Ready},
    histogram::{Luma, type_range},
    otsu::extremes,
    pointwise::combined,
    quantile::Quantile,
};
use crate::{
    data::{
        description::{Description, Kind},
        dtype::{Dtype, Scalar},
        grid::{Grid, GridType, Shape},
        samples::Samples,
    },
    device::Device,
    for_samples,
    util::{
        error::{Error, Result},
        parallel,
    },
};

/// The samples that become the whole range of the result: 0 to 1 in floats. Samples outside of them are clamped.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// From the smallest to the largest finite sample.
    MinMax,
    /// From the 0.5th to the 99.5th percentile of the finite samples, by the nearest-rank method.
    Percentile,
    /// The range of the type of the samples: 0 to 1 in floats.
    Full,
    /// From the first to the second number.
    Range([f64; 2]),
}

/// Percentiles of [`Scale::Percentile`].
const PERCENTILES: [f64; 2] = [0.5, 99.5];

/// The channels of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChannelSet {
    /// BT.709 luminance.
    Grey,
    /// Luminance and alpha, which is opaque if the input has none.
    GreyAlpha,
    /// Red, green and blue, which are equal if the input is grey.
    Rgb,
    /// Red, green, blue and alpha.
    Rgba,
    /// Red alone.
    Red,
    /// Green alone.
    Green,
    /// Blue alone.
    Blue,
    /// Alpha alone.
    Alpha,
}

/// Origin of a sample of the result.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Origin {
    /// The sample of the pixel with this index.
    Sample(usize),
    /// The luminance of the pixel.
    Luminance,
    /// Full intensity.
    Opaque,
}

impl ChannelSet {
    /// The origins of the samples of a pixel, for an input of `channels` channels.
    fn origins(self, channels: usize) -> Result<Vec<Origin>> {
        let is_coloured = channels >= 3;
        let grey = if is_coloured { Origin::Luminance } else { Origin::Sample(0) };
        let rgb = [0, 1, 2].map(|at| Origin::Sample(if is_coloured { at } else { 0 }));
        let has_alpha = matches!(channels, 2 | 4);
        let alpha = if has_alpha { Origin::Sample(channels - 1) } else { Origin::Opaque };
        let only = |name: ChannelName| name.position(channels).map(|at| vec![Origin::Sample(at)]);
        match self {
            Self::Grey => Ok(vec![grey]),
            Self::GreyAlpha => Ok(vec![grey, alpha]),
            Self::Rgb => Ok(rgb.to_vec()),
            Self::Rgba => Ok([&rgb[..], &[alpha]].concat()),
            Self::Red => only(ChannelName::Red),
            Self::Green => only(ChannelName::Green),
            Self::Blue => only(ChannelName::Blue),
            Self::Alpha => only(ChannelName::Alpha),
        }
    }

    /// Whether the last channel of the result is alpha.
    fn has_alpha(self) -> bool {
        matches!(self, Self::GreyAlpha | Self::Rgba)
    }
}

/// Full intensity of samples of type `dtype`, of which alpha is a share.
fn full_intensity(dtype: Dtype) -> Result<f64> {
    match dtype {
        Dtype::U8 | Dtype::U16 => Ok(value_range(dtype)[1]),
        Dtype::F32 | Dtype::F64 => Ok(1.0),
        _ => Err(Error::bad_input(format_args!(
            "{dtype} samples have no alpha: expected u8, u16, f32 or f64"
        ))),
    }
}

/// The values of samples of type `dtype`: 0 to 1 for floats.
fn value_range(dtype: Dtype) -> [f64; 2] {
    type_range(dtype).map_or([0.0, 1.0], |(low, high)| [low, high])
}

/// The samples of `origins` for each pixel of `channels` samples.
fn gathered(samples: &Samples, channels: usize, origins: &[Origin]) -> Result<Samples> {
    fn gather<T: Scalar>(
        samples: &[T],
        channels: usize,
        origins: &[Origin],
        luminance: &Samples,
        full: &Samples,
    ) -> Result<Vec<T>> {
        let luminance: &[T] = bytemuck::cast_slice(luminance.as_bytes());
        let full: &[T] = bytemuck::cast_slice(full.as_bytes());
        parallel::generated(samples.len() / channels * origins.len(), |at| {
            let pixel = at / origins.len();
            match origins[at % origins.len()] {
                Origin::Sample(channel) => samples[pixel * channels + channel],
                Origin::Luminance => luminance[pixel],
                Origin::Opaque => full[0],
            }
        })
    }
    let dtype = samples.dtype();
    let luminance = if origins.contains(&Origin::Luminance) {
        Luma::Bt709.grey(samples, channels)?
    } else {
        Cow::Owned(Samples::zeros(dtype, 0)?)
    };
    let full = if origins.contains(&Origin::Opaque) { full_intensity(dtype)? } else { 0.0 };
    let full = Samples::F64(vec![full]).converted(dtype)?;
    Ok(for_samples!(samples, samples => {
        gather(samples, channels, origins, &luminance, &full)?.into()
    }))
}

/// A conversion of samples. Without a parameter, it changes nothing.
///
/// Channels are chosen first, then samples are scaled and get their type. Integers are rounded, halves away from 0, and
/// clamped to the range of their type; NaN becomes 0. Alpha remains the same share of full intensity.
#[derive(Debug)]
pub struct Convert {
    /// Type of the result; `None` for that of the input.
    pub dtype: Option<Dtype>,
    /// Change of the range; `None` to keep the values.
    pub scale: Option<Scale>,
    /// Channels of the result; `None` for those of the input.
    pub channels: Option<ChannelSet>,
    /// Smallest and largest sample so far of those that may have been clamped.
    range: Mutex<[f64; 2]>,
}

/// The range of no samples.
const NONE: [f64; 2] = [f64::MAX, f64::MIN];

/// The smallest range that contains both.
fn joined(own: [f64; 2], other: [f64; 2]) -> [f64; 2] {
    [own[0].min(other[0]), own[1].max(other[1])]
}

impl Convert {
    /// A conversion to these types, values and channels; `None` keeps those of the input.
    pub fn new(dtype: Option<Dtype>, scale: Option<Scale>, channels: Option<ChannelSet>) -> Self {
        Self { dtype, scale, channels, range: Mutex::new(NONE) }
    }

    /// The samples of the channels of the result, their number, and whether the last one is alpha.
    fn selected<'a>(&self, grid: &'a Grid) -> Result<(Cow<'a, Samples>, usize, bool)> {
        let unchanged = (Cow::Borrowed(&grid.samples), grid.channels, grid.has_alpha());
        let Some(set) = self.channels else { return Ok(unchanged) };
        let origins = set.origins(grid.channels)?;
        if origins.iter().copied().eq((0..grid.channels).map(Origin::Sample)) {
            return Ok((unchanged.0, grid.channels, set.has_alpha()));
        }
        let samples = gathered(&grid.samples, grid.channels, &origins)?;
        Ok((Cow::Owned(samples), origins.len(), set.has_alpha()))
    }

    /// The samples of the result's channels but alpha, before they are converted.
    fn intensities<'a>(&self, grid: &'a Grid) -> Result<Cow<'a, Samples>> {
        let (samples, channels, has_alpha) = self.selected(grid)?;
        without_alpha(samples, channels, has_alpha)
    }

    /// The smallest and the largest value of the range that is scaled; `None` to keep the values.
    fn scaled_range(&self, dtype: Dtype) -> Result<Option<[f64; 2]>> {
        match self.scale {
            None => Ok(None),
            Some(Scale::Range(range)) => Ok(Some(range)),
            Some(Scale::Full) => Ok(Some(value_range(dtype))),
            Some(Scale::MinMax | Scale::Percentile) => {
                Err(Error::usage("the range of the samples has to be found before the filter runs"))
            }
        }
    }

    /// Adds samples to the range of those that may be clamped to `dtype`.
    fn observe(&self, samples: &Samples, dtype: Dtype) {
        let [low, high] = value_range(dtype);
        let own = value_range(samples.dtype());
        if !dtype.is_float() && (samples.dtype().is_float() || own[0] < low || own[1] > high) {
            let found = extremes(samples);
            let mut range = self.range.lock().unwrap_or_else(PoisonError::into_inner);
            *range = joined(*range, found);
        }
    }

    /// Whether values are kept where the type of the result can hold them.
    fn keeps_values(&self) -> bool {
        self.scale.is_none() && self.dtype.is_some()
    }
}

/// The samples without the last of `channels` channels, if that is alpha.
fn without_alpha(
    samples: Cow<'_, Samples>,
    channels: usize,
    has_alpha: bool,
) -> Result<Cow<'_, Samples>> {
    if !has_alpha {
        return Ok(samples);
    }
    let origins: Vec<_> = (0..channels - 1).map(Origin::Sample).collect();
    gathered(&samples, channels, &origins).map(Cow::Owned)
}

impl Filter for Convert {
    fn name(&self) -> &'static str {
        "convert"
    }

    fn parameters(&self) -> Value {
        json!({ "dtype": self.dtype, "scale": self.scale, "channels": self.channels })
    }

    fn summary(&self, _axes: usize) -> String {
        let name = |value: Value| value.as_str().unwrap_or_default().to_owned();
        let scale = self.scale.map(|scale| match scale {
            Scale::Range([low, high]) => format!("scale {low}..{high}"),
            named => format!("scale {}", name(json!(named))),
        });
        let channels = self.channels.map(|set| format!("channels {}", name(json!(set))));
        let dtype = self.dtype.map(|dtype| format!("type {dtype}"));
        let all: Vec<String> = [channels, scale, dtype].into_iter().flatten().collect();
        if all.is_empty() { "samples unchanged".into() } else { all.join(", ") }
    }

    fn properties(&self) -> Properties {
        let keeps_type = self.dtype.is_none_or(|dtype| dtype == Dtype::F32);
        let keeps_pixels = self.scale.is_none() && self.channels.is_none();
        Properties {
            is_identity: keeps_pixels && self.dtype.is_none(),
            needs_straight_alpha: !(keeps_pixels && keeps_type),
            ..Properties::default()
        }
    }

    fn describe(&self, input: Description) -> Result<Description> {
        let mut result = input;
        if let Some(set) = self.channels {
            let origins = set.origins(result.grid.shape.channels)?;
            if origins.contains(&Origin::Luminance) {
                result = result.averaged();
            }
            let shape = Shape { channels: origins.len(), ..result.grid.shape };
            result.grid = GridType { shape, ..result.grid };
        }
        let dtype = self.dtype.unwrap_or(result.grid.dtype);
        Ok(if self.scale.is_some() {
            let grid = GridType { dtype, ..result.grid };
            Description { grid, numbers: None, ..result.of(Kind::Samples) }
        } else if self.dtype.is_some() {
            result.computed_as(dtype)
        } else {
            result
        })
    }

    fn cost(&self, input: GridType) -> Cost {
        let cost = Cost { core_seconds: None, ..Cost::of(input) };
        if self.properties().is_identity {
            return cost;
        }
        let result = self.describe(input.into()).map_or(input, |result| result.grid);
        let bytes = |channels: usize, dtype: Dtype| (channels * dtype.size()) as u64;
        let (from, channels) = (input.shape.channels, result.shape.channels);
        let converted = bytes(channels, result.dtype);
        // Colours without alpha, and alpha as a pixel of the result.
        let has_alpha = matches!(channels, 2 | 4);
        let alpha = if has_alpha { bytes(channels, input.dtype).max(converted) } else { 0 };
        let selected = if self.channels.is_some() { bytes(channels, input.dtype) } else { 0 };
        let working = bytes(from, input.dtype) + (selected + converted + alpha).max(2 * converted);
        Cost { working: working.div_ceil(from.max(1) as u64), ..cost }
    }

    fn prepare(&self, Preparation { input, pass, .. }: Preparation<'_>) -> Result<Ready> {
        let range = match self.scale {
            Some(Scale::MinMax) => {
                let mut range = NONE;
                pass(&mut |grid| {
                    range = joined(range, extremes(&*self.intensities(grid)?));
                    Ok(())
                })?;
                range
            }
            Some(Scale::Percentile) => {
                let mut ends = PERCENTILES.map(|percent| Quantile::new(input.grid.dtype, percent));
                loop {
                    pass(&mut |grid| {
                        let samples = self.intensities(grid)?;
                        ends.iter_mut().for_each(|end| end.count(&samples, 1));
                        Ok(())
                    })?;
                    // Both need the same number of passes.
                    let [low, high] = &mut ends;
                    if !(low.advance() | high.advance()) {
                        break;
                    }
                }
                ends.map(|end| end.sample().unwrap_or(0.0))
            }
            _ => return Ok(Ready::default()),
        };
        Ok(Self::new(self.dtype, Some(Scale::Range(range)), self.channels).into())
    }

    fn run(&self, _device: &Device, input: &Grid, _block: &Block) -> Result<Samples> {
        let (samples, channels, has_alpha) = self.selected(input)?;
        let from = samples.dtype();
        let to = self.dtype.unwrap_or(from);
        let scale = self.scaled_range(from)?;
        if scale.is_none() && to == from {
            return Ok(samples.into_owned());
        }
        let mut result = if let Some([low, high]) = scale {
            let [bottom, top] = value_range(to);
            let span = top - bottom;
            // The largest numbers are made smaller by a power of two, so that products do not overflow.
            let unit = if high - low < 1e290 { 1.0 } else { 2f64.powi(-64) };
            let width = high * unit - low * unit;
            combined(to, [&samples], |[value]| {
                // NaN stays NaN.
                let value = if value < low {
                    low
                } else if value > high {
                    high
                } else {
                    value
                };
                if width > 0.0 {
                    bottom + (value * unit - low * unit) * span / width
                } else {
                    bottom
                }
            })?
        } else {
            combined(to, [&samples], |[value]| value)?
        };
        if has_alpha {
            let (full, own) = (full_intensity(to)?, full_intensity(from)?);
            let alpha = combined(to, [&samples], |[value]| value * full / own)?;
            copy_channel(&alpha, &mut result, channels - 1, channels);
        }
        if self.keeps_values() {
            self.observe(&*without_alpha(samples, channels, has_alpha)?, to);
        }
        Ok(result)
    }

    /// The bits of the smallest and the largest sample that may have been clamped; null if none can be.
    fn finding(&self) -> Value {
        let range = *self.range.lock().unwrap_or_else(PoisonError::into_inner);
        if self.keeps_values() { json!(range.map(f64::to_bits)) } else { Value::Null }
    }

    fn warning(&self, findings: &[Value]) -> Option<String> {
        let dtype = self.dtype.filter(|dtype| !dtype.is_float())?;
        let range = findings.iter().try_fold(NONE, |range, finding| {
            let bits = serde_json::from_value::<[u64; 2]>(finding.clone()).ok()?;
            Some(joined(range, bits.map(f64::from_bits)))
        });
        let ([min, max], [low, high]) = (range?, value_range(dtype));
        let is_clamped = min <= max && (min <= low - 0.5 || max >= high + 0.5);
        is_clamped.then(|| {
            format!(
                "samples are {min} to {max}: those outside of {dtype} ({low} to {high}) are clamped"
            )
        })
    }
}
