//! Between stored samples and what is blurred: colours times alpha, and linear light.

use std::{borrow::Cow, sync::OnceLock};

use rayon::prelude::*;

use super::{Blur, Edge, Format, Method, Values};
use crate::{
    data::{
        raster::Raster,
        samples::Samples,
        srgb::{from_linear, to_linear},
    },
    error::{Error, Result},
    memory::{self, raise},
};

/// What has to be done to samples before and after the passes.
#[derive(Clone, Copy, Debug)]
pub struct Tone {
    format: Format,
    /// Colours are multiplied with alpha.
    premultiply: bool,
    /// Colours are decoded from sRGB.
    linear: bool,
    /// Full intensity in units of the samples.
    full: f64,
}

/// 8-bit colour times 8-bit alpha: full intensity before the eight bits behind the point.
const FULL: u32 = 255 * 255;
/// Samples that a thread takes at a time.
const CHUNK: usize = 1 << 16;

impl Tone {
    pub fn of(blur: &Blur, raster: &Raster) -> Result<Self> {
        let clear = matches!(blur.edge, Edge::Constant(value) if value == 0.0);
        let last = raster.channels - 1;
        // An alpha that is full everywhere stays full: then nothing has to be multiplied.
        let premultiply = raster.alpha
            && (clear
                || match &raster.samples {
                    Samples::U8(v) => {
                        v.par_chunks_exact(raster.channels).any(|p| p[last] != u8::MAX)
                    }
                    Samples::U16(v) => {
                        v.par_chunks_exact(raster.channels).any(|p| p[last] != u16::MAX)
                    }
                    _ => true,
                });
        let (format, full) = match &raster.samples {
            Samples::U8(_) if premultiply || blur.linear => (Format::U24, 255.0),
            Samples::U8(_) => (Format::U8, 255.0),
            Samples::U16(_) if premultiply || blur.linear => (Format::F32, 65535.0),
            Samples::U16(_) if blur.method == Method::Box => (Format::U16, 65535.0),
            Samples::U16(_) => (Format::F32, 65535.0),
            Samples::F32(_) => (Format::F32, 1.0),
            other => {
                let dtype = other.dtype();
                return Err(Error::bad_input(format_args!("{dtype} samples cannot be blurred")));
            }
        };
        // Floats are linear light already.
        let linear = blur.linear && !matches!(raster.samples, Samples::F32(_));
        Ok(Self { format, premultiply, linear, full })
    }

    pub fn format(&self) -> Format {
        self.format
    }

    /// What lies outside with a constant edge, a channel, in units of what is blurred.
    pub fn fill(&self, edge: Edge, raster: &Raster) -> [f64; 4] {
        let Edge::Constant(value) = edge else { return [0.0; 4] };
        let unit = match self.format {
            Format::U24 => f64::from(FULL << 8) / 255.0,
            _ => 1.0,
        };
        let colour = if self.linear { self.full * to_linear(value / self.full) } else { value };
        let mut fill = [colour * unit; 4];
        if raster.alpha {
            fill[raster.channels - 1] = if value == 0.0 { 0.0 } else { self.full * unit };
        }
        if self.format != Format::F32 {
            fill = fill.map(f64::round);
        }
        fill
    }

    /// The samples as the passes want them.
    pub fn expose<'a>(&self, raster: &'a Raster) -> Values<'a> {
        let (channels, colours) = (raster.channels, raster.channels - usize::from(raster.alpha));
        match (&raster.samples, self.format) {
            (Samples::U8(values), Format::U8) => Values::U8(Cow::Borrowed(values)),
            (Samples::U16(values), Format::U16) => Values::U16(Cow::Borrowed(values)),
            (Samples::U8(values), _) => {
                // Eight bits behind the point.
                let full = u64::from(FULL << 8);
                let table: Vec<u64> = (0..=255u32)
                    .map(|v| match self.linear {
                        true => (full as f64 * to_linear(f64::from(v) / 255.0)).round() as u64,
                        false => full / 255 * u64::from(v),
                    })
                    .collect();
                let mut words = memory::zeros(values.len()).unwrap_or_else(raise);
                pixels(values, &mut words, channels, |pixel, out| {
                    let alpha = if self.premultiply { u64::from(pixel[colours]) } else { 255 };
                    for (&v, out) in pixel[..colours].iter().zip(&mut *out) {
                        *out = ((table[usize::from(v)] * alpha + 127) / 255) as u32;
                    }
                    if raster.alpha {
                        out[colours] = u32::from(pixel[colours]) * (255 << 8);
                    }
                });
                Values::U24(Cow::Owned(words))
            }
            (Samples::U16(values), _) => {
                let table = self.linear.then(linear_halves);
                let mut floats = memory::zeros(values.len()).unwrap_or_else(raise);
                pixels(values, &mut floats, channels, |pixel, out| {
                    let alpha = if self.premultiply { f32::from(pixel[colours]) } else { 65535.0 };
                    for (&v, out) in pixel[..colours].iter().zip(&mut *out) {
                        let value = table.map_or_else(|| f32::from(v), |t| t[usize::from(v)]);
                        *out = value * (alpha / 65535.0);
                    }
                    if raster.alpha {
                        out[colours] = f32::from(pixel[colours]);
                    }
                });
                Values::F32(Cow::Owned(floats))
            }
            (Samples::F32(values), _) if !self.premultiply => Values::F32(Cow::Borrowed(values)),
            (Samples::F32(values), _) => {
                let mut floats = memory::zeros(values.len()).unwrap_or_else(raise);
                pixels(values, &mut floats, channels, |pixel, out| {
                    for (v, out) in pixel[..colours].iter().zip(&mut *out) {
                        *out = v * pixel[colours];
                    }
                    out[colours] = pixel[colours];
                });
                Values::F32(Cow::Owned(floats))
            }
            (other, _) => unreachable!("`of` refuses {}", other.dtype()),
        }
    }

    /// Samples of the raster's type from what the passes made.
    pub fn develop(&self, raster: &Raster, data: Values<'_>) -> Samples {
        let (channels, colours) = (raster.channels, raster.channels - usize::from(raster.alpha));
        match (data, &raster.samples) {
            (Values::U8(values), _) => Samples::U8(owned(values)),
            (Values::U16(values), _) => Samples::U16(owned(values)),
            (Values::U24(words), _) => {
                let table = self.linear.then(encoded_bytes);
                let mut bytes = memory::zeros(words.len()).unwrap_or_else(raise);
                pixels(&words, &mut bytes, channels, |pixel, out| {
                    let full = if self.premultiply { pixel[colours] } else { FULL << 8 };
                    if raster.alpha {
                        out[colours] = ((pixel[colours] + (255 << 7)) / (255 << 8)) as u8;
                        if out[colours] == 0 {
                            return out.fill(0);
                        }
                    }
                    let full = u64::from(full);
                    for (&v, out) in pixel[..colours].iter().zip(out) {
                        let ratio = |scale| (u64::from(v) * scale + full / 2) / full;
                        *out = match table {
                            Some(table) => table[ratio(65535).min(65535) as usize],
                            None => ratio(255).min(255) as u8,
                        };
                    }
                });
                Samples::U8(bytes)
            }
            (Values::F32(floats), Samples::U16(_)) => {
                let mut halves = memory::zeros(floats.len()).unwrap_or_else(raise);
                pixels(&floats, &mut halves, channels, |pixel, out| {
                    let full = if self.premultiply { pixel[colours] / 65535.0 } else { 1.0 };
                    if raster.alpha {
                        out[colours] = pixel[colours].round() as u16;
                        if out[colours] == 0 {
                            return out.fill(0);
                        }
                    }
                    for (v, out) in pixel[..colours].iter().zip(out) {
                        let value = v / full;
                        *out = match self.linear {
                            true => {
                                (65535.0 * from_linear(f64::from(value) / 65535.0)).round() as u16
                            }
                            // Casts saturate.
                            false => value.round() as u16,
                        };
                    }
                });
                Samples::U16(halves)
            }
            (Values::F32(floats), _) if !self.premultiply => Samples::F32(owned(floats)),
            (Values::F32(floats), _) => {
                let mut floats = owned(floats);
                floats.par_chunks_exact_mut(channels).for_each(|pixel| {
                    let alpha = pixel[colours];
                    let colours = &mut pixel[..colours];
                    match alpha == 0.0 {
                        true => colours.fill(0.0),
                        false => colours.iter_mut().for_each(|v| *v /= alpha),
                    }
                });
                Samples::F32(floats)
            }
        }
    }
}

fn owned<T: Clone>(values: Cow<'_, [T]>) -> Vec<T> {
    match values {
        Cow::Borrowed(values) => memory::copied(values).unwrap_or_else(raise),
        Cow::Owned(values) => values,
    }
}

/// Calls `make` with every pixel of `from` and its place in `to`.
fn pixels<A: Sync, B: Send>(
    from: &[A],
    to: &mut [B],
    channels: usize,
    make: impl Fn(&[A], &mut [B]) + Sync,
) {
    let chunk = CHUNK * channels;
    to.par_chunks_mut(chunk).zip(from.par_chunks(chunk)).for_each(|(to, from)| {
        for (to, from) in to.chunks_exact_mut(channels).zip(from.chunks_exact(channels)) {
            make(from, to);
        }
    });
}

/// Linear light, 0..65535, of every 16-bit value.
fn linear_halves() -> &'static [f32] {
    static TABLE: OnceLock<Vec<f32>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let light = |v: u32| (65535.0 * to_linear(f64::from(v) / 65535.0)) as f32;
        (0..=65535).into_par_iter().map(light).collect()
    })
}

/// The sRGB byte of linear light in 0..65535.
fn encoded_bytes() -> &'static [u8] {
    static TABLE: OnceLock<Vec<u8>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let byte = |v: u32| (255.0 * from_linear(f64::from(v) / 65535.0)).round() as u8;
        (0..=65535).into_par_iter().map(byte).collect()
    })
}
