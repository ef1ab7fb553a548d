//! The space in which samples are blurred: colours premultiplied by alpha, and in linear light if the user asks for it.
//!
//! A blur averages light, so the weight of a pixel is its coverage, alpha (Porter and Duff, Compositing Digital Images,
//! 1984). The colours of transparent pixels have no effect.
//!
//! ```text
//! stored -> working   decode sRGB to linear light, then multiply by alpha
//! working -> stored   divide by alpha, then encode to sRGB
//! ```

use std::{
    borrow::Cow,
    ops::{Div, Mul},
    sync::OnceLock,
};

use bytemuck::Zeroable;

use super::{
    cpu::{Sample, nearest_u16},
    gpu::DeviceSpace,
    params::{Blur, Edge, Values},
    plan::PassFormat,
    taps::{Method, Taps},
};
use crate::{
    data::{
        dtype::Dtype,
        grid::{Alpha, Grid},
        samples::Samples,
        srgb::{from_linear, to_linear},
    },
    gpu::Context,
    util::{
        error::Result,
        memory::{self, raise},
        parallel::{self, Parallel},
    },
};

/// The space in which a grid is blurred.
#[derive(Clone, Copy, Debug)]
pub struct WorkingSpace {
    format: PassFormat,
    /// Whether colours are multiplied by alpha.
    premultiply: bool,
    /// Whether colours are in linear light, decoded from sRGB.
    linear: bool,
    /// Full intensity in units of the samples.
    full: f64,
}

/// Full intensity of [`PassFormat::U24`]: 255 times 255, for colour and alpha of 8 bits, with 8 fraction bits.
const FULL_U24: u32 = (255 * 255) << 8;
/// Number of pixels that a thread takes at a time.
const CHUNK: usize = 1 << 16;

impl WorkingSpace {
    /// The space in which `blur` blurs `grid`.
    pub fn new(blur: &Blur, grid: &Grid) -> Self {
        let clear = matches!(blur.edge, Edge::Constant(value) if value == 0.0);
        let last = grid.channels - 1;
        // Opaque pixels need no multiplication, and stay opaque.
        let premultiply = grid.has_alpha()
            && (clear
                || grid.alpha == Alpha::Translucent
                || match &grid.samples {
                    Samples::U8(v) => any_pixel(v, grid.channels, |p| p[last] != u8::MAX),
                    Samples::U16(v) => any_pixel(v, grid.channels, |p| p[last] != u16::MAX),
                    _ => true,
                });
        let (format, full) = match &grid.samples {
            Samples::U8(_) if premultiply || blur.linear => (PassFormat::U24, 255.0),
            Samples::U8(_) => (PassFormat::U8, 255.0),
            Samples::U16(_) if premultiply || blur.linear => (PassFormat::F32, 65535.0),
            Samples::U16(_) => (PassFormat::U16, 65535.0),
            Samples::U32(_) => (PassFormat::F64, u32::MAX.into()),
            Samples::I32(_) => (PassFormat::F64, i32::MAX.into()),
            Samples::F64(_) => (PassFormat::F64, 1.0),
            _ => (PassFormat::F32, 1.0),
        };
        // Samples of other types are in linear light already, or are not colours.
        let linear = blur.linear && matches!(grid.samples, Samples::U8(_) | Samples::U16(_));
        Self { format, premultiply, linear, full }
    }

    /// The space for weighted averages (resizing, unsharp mask), in linear light if `linear`.
    pub fn for_averaging(linear: bool, grid: &Grid) -> Self {
        let (method, edge, axes) = (Method::Gaussian, Edge::Clamp, [Taps::NONE; 3]);
        Self::new(&Blur { method, axes, iterations: 1, edge, linear }, grid)
    }

    /// The format of samples in this space.
    pub fn format(&self) -> PassFormat {
        self.format
    }

    /// The constant outside of the grid for each channel, in this space.
    pub fn fill(&self, edge: Edge, grid: &Grid) -> [f64; 4] {
        let Edge::Constant(value) = edge else { return [0.0; 4] };
        let unit = match self.format {
            PassFormat::U24 => f64::from(FULL_U24) / 255.0,
            _ => 1.0,
        };
        let colour = if self.linear { self.full * to_linear(value / self.full) } else { value };
        let mut fill = [colour * unit; 4];
        if grid.has_alpha() {
            fill[grid.channels - 1] = if value == 0.0 { 0.0 } else { self.full * unit };
        }
        if !matches!(self.format, PassFormat::F32 | PassFormat::F64) {
            fill = fill.map(|value| value.round().clamp(0.0, self.full * unit));
        }
        fill
    }

    /// Converts the samples of a grid to this space.
    pub fn to_working<'a>(self, grid: &'a Grid) -> Values<'a> {
        Cow::Owned(match (&grid.samples, self.format) {
            (Samples::U8(_), PassFormat::U8) | (Samples::U16(_), PassFormat::U16) => {
                return Cow::Borrowed(&grid.samples);
            }
            (Samples::F32(_) | Samples::F64(_), _) if !self.premultiply => {
                return Cow::Borrowed(&grid.samples);
            }
            (Samples::U8(values), _) => self.u24_of_u8(grid, values).into(),
            (Samples::U16(values), _) if self.linear => {
                let table = linear_of_u16();
                self.floats(grid, values, |v| table[usize::from(v)]).into()
            }
            (Samples::U16(values), _) => self.floats(grid, values, f32::from).into(),
            (Samples::F32(values), _) => self.floats(grid, values, |v| v).into(),
            (Samples::U32(values), _) => self.floats(grid, values, f64::from).into(),
            (Samples::I32(values), _) => self.floats(grid, values, f64::from).into(),
            (Samples::F64(values), _) => self.floats(grid, values, |v| v).into(),
            (Samples::I8(_) | Samples::I16(_), _) => unreachable!("blurred as unsigned"),
        })
    }

    /// Converts samples to floats: colours by `colour`, then multiplied by alpha if they are premultiplied.
    fn floats<T: Copy + Sync + Into<F>, F: Float>(
        self,
        grid: &Grid,
        values: &[T],
        colour: impl Fn(T) -> F + Sync,
    ) -> Vec<F> {
        if !grid.has_alpha() {
            return parallel::mapped(values, |&v| colour(v)).unwrap_or_else(raise);
        }
        let (colours, full) = (colours(grid), F::from_f64(self.full));
        let mut floats = memory::zeros(values.len()).unwrap_or_else(raise);
        convert_pixels(values, &mut floats, grid.channels, |pixel, out| {
            let alpha = pixel[colours].into();
            let weight = if self.premultiply { alpha / full } else { F::from_f64(1.0) };
            for (&v, out) in pixel[..colours].iter().zip(&mut *out) {
                *out = colour(v) * weight;
            }
            out[colours] = alpha;
        });
        floats
    }

    /// Lookup table from u8 colours of opaque pixels to [`PassFormat::U24`].
    fn opaque_u24(&self) -> [u32; 256] {
        std::array::from_fn(|v| match self.linear {
            true => (f64::from(FULL_U24) * to_linear(v as f64 / 255.0)).round() as u32,
            false => FULL_U24 / 255 * v as u32,
        })
    }

    /// The conversion on a device; `None` if samples need no conversion, or if only the CPU can convert them.
    pub fn on_device(&self, context: &Context, grid: &Grid) -> Result<Option<DeviceSpace>> {
        if (grid.samples.dtype(), self.format) != (Dtype::U8, PassFormat::U24) {
            return Ok(None);
        }
        let bytes = if self.linear { u8_of_linear() } else { &[] };
        let kind = [grid.has_alpha(), self.premultiply, self.linear];
        DeviceSpace::new(context, grid.channels, kind, &self.opaque_u24(), bytes).map(Some)
    }

    fn u24_of_u8(&self, grid: &Grid, values: &[u8]) -> Vec<u32> {
        let colours = colours(grid);
        let table = self.opaque_u24();
        let mut words = memory::zeros(values.len()).unwrap_or_else(raise);
        convert_pixels(values, &mut words, grid.channels, |pixel, out| {
            let alpha = if self.premultiply { u64::from(pixel[colours]) } else { 255 };
            for (&v, out) in pixel[..colours].iter().zip(&mut *out) {
                *out = ((u64::from(table[usize::from(v)]) * alpha + 127) / 255) as u32;
            }
            if grid.has_alpha() {
                out[colours] = u32::from(pixel[colours]) * (255 << 8);
            }
        });
        words
    }

    /// Converts blurred samples in this space to samples of the grid's type.
    pub fn to_stored(self, grid: &Grid, blurred: Values<'_>) -> Samples {
        match (&*blurred, &grid.samples) {
            (Samples::U32(words), _) => self.u8_of_u24(grid, words).into(),
            (Samples::F32(floats), Samples::U16(_)) if self.linear => {
                let colour = |v| (65535.0 * from_linear(f64::from(v) / 65535.0)).round() as u16;
                self.stored(grid, floats, nearest_u16, colour).into()
            }
            (Samples::F32(floats), Samples::U16(_)) => {
                self.stored(grid, floats, nearest_u16, nearest_u16).into()
            }
            (Samples::F64(floats), Samples::U32(_)) => {
                let round = |v: f64| v.round() as u32;
                self.stored(grid, floats, round, round).into()
            }
            (Samples::F64(floats), Samples::I32(_)) => {
                let round = |v: f64| v.round() as i32;
                self.stored(grid, floats, round, round).into()
            }
            (Samples::F32(floats), _) if self.premultiply => {
                self.stored(grid, floats, |v| v, |v| v).into()
            }
            (Samples::F64(floats), _) if self.premultiply => {
                self.stored(grid, floats, |v| v, |v| v).into()
            }
            _ => match blurred {
                Cow::Borrowed(samples) => samples.copy().unwrap_or_else(raise),
                Cow::Owned(samples) => samples,
            },
        }
    }

    /// Converts floats to samples: alpha by `store`, and colours, divided by alpha if they are premultiplied, by
    /// `colour`. If alpha is 0, colours are 0. Alpha of integers is clamped before colours are divided by it: negative
    /// weights may make it larger than full intensity.
    fn stored<F: Float, T: Copy + Send + PartialEq + Zeroable>(
        self,
        grid: &Grid,
        floats: &[F],
        store: impl Fn(F) -> T + Sync,
        colour: impl Fn(F) -> T + Sync,
    ) -> Vec<T> {
        if !grid.has_alpha() {
            return parallel::mapped(floats, |&v| colour(v)).unwrap_or_else(raise);
        }
        let (colours, full) = (colours(grid), F::from_f64(self.full));
        let is_integer = !grid.samples.dtype().is_float();
        let mut samples = memory::zeros(floats.len()).unwrap_or_else(raise);
        convert_pixels(floats, &mut samples, grid.channels, |pixel, out: &mut [T]| {
            out[colours] = store(pixel[colours]);
            if out[colours] == T::zeroed() {
                return out.fill(T::zeroed());
            }
            let is_divided = self.premultiply && !(is_integer && pixel[colours] > full);
            let weight = if is_divided { pixel[colours] / full } else { F::from_f64(1.0) };
            for (&v, out) in pixel[..colours].iter().zip(out) {
                *out = colour(v / weight);
            }
        });
        samples
    }

    fn u8_of_u24(&self, grid: &Grid, words: &[u32]) -> Vec<u8> {
        let colours = colours(grid);
        let table = self.linear.then(u8_of_linear);
        let mut bytes = memory::zeros(words.len()).unwrap_or_else(raise);
        convert_pixels(words, &mut bytes, grid.channels, |pixel, out| {
            let full = if self.premultiply { pixel[colours] } else { FULL_U24 };
            if grid.has_alpha() {
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
        bytes
    }
}

/// A float type of samples in this space.
trait Float: Sample<Self> + Mul<Output = Self> + Div<Output = Self> + PartialOrd {}

impl Float for f32 {}
impl Float for f64 {}

/// Number of channels before alpha.
fn colours(grid: &Grid) -> usize {
    grid.channels - usize::from(grid.has_alpha())
}

/// Whether `condition` is true for any pixel.
fn any_pixel<T: Sync>(
    samples: &[T],
    channels: usize,
    condition: impl Fn(&[T]) -> bool + Sync,
) -> bool {
    let chunks = samples.chunks(CHUNK * channels);
    chunks.par_any(|chunk| chunk.chunks_exact(channels).any(&condition))
}

/// Calls `convert` with each pixel of `from` and of `to`.
fn convert_pixels<A: Sync, B: Send>(
    from: &[A],
    to: &mut [B],
    channels: usize,
    convert: impl Fn(&[A], &mut [B]) + Sync,
) {
    let chunk = CHUNK * channels;
    to.chunks_mut(chunk).zip(from.chunks(chunk)).par_each(|(to, from)| {
        for (to, from) in to.chunks_exact_mut(channels).zip(from.chunks_exact(channels)) {
            convert(from, to);
        }
    });
}

/// Linear light, 0 to 65535, of each u16 in sRGB.
fn linear_of_u16() -> &'static [f32] {
    static TABLE: OnceLock<Vec<f32>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let light = |v: usize| (65535.0 * to_linear(v as f64 / 65535.0)) as f32;
        parallel::generated(65536, light).unwrap_or_else(raise)
    })
}

/// The u8 in sRGB of linear light, 0 to 65535.
fn u8_of_linear() -> &'static [u8] {
    static TABLE: OnceLock<Vec<u8>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let byte = |v: usize| (255.0 * from_linear(v as f64 / 65535.0)).round() as u8;
        parallel::generated(65536, byte).unwrap_or_else(raise)
    })
}
