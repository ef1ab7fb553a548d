//! Conversion of the samples of a page to the channels of an image.
//!
//! Unsigned samples of fewer than 8 or 16 bits are scaled to the full range, as in PNG and libvips; all others keep
//! their type and value.

use super::{
    directory::{Directory, TiffFile},
    page::Page,
    storage::Photometric,
    tag,
};
use crate::{
    data::{dtype::Dtype, samples::Samples, srgb::from_linear},
    io::image::error::BoxError,
    util::{error::Result, memory, parallel::Parallel},
};

/// Conversion of the samples of a page to the channels of an image.
#[derive(Clone, Debug)]
pub struct ColorConversion {
    /// Indices of the used samples of a pixel: colours, then alpha.
    pub wanted: Vec<usize>,
    /// Number of channels of the image.
    pub channels: usize,
    /// Sample type of the image.
    pub dtype: Dtype,
    /// Warnings about content of the page that is lost.
    pub losses: Vec<String>,
    colours: StoredColors,
    /// Bits of a stored sample.
    bits: u32,
    /// Whether colours are premultiplied with alpha.
    is_associated: bool,
}

#[derive(Clone, Debug)]
enum StoredColors {
    /// Samples are the channels of the image.
    Plain,
    /// Grey samples, where 0 is white.
    MinIsWhite,
    /// Indices into a palette of these colours.
    Palette {
        colours: Vec<[u16; 3]>,
        is_grey: bool,
    },
    Cmyk,
    /// Coefficients of red, green and blue in Y, and codes of black and white of Y, Cb and Cr.
    YCbCr([f64; 3], [f64; 6]),
    CieLab,
}

impl StoredColors {
    fn read(file: &TiffFile<'_>, directory: &Directory, page: &Page) -> Result<Self, BoxError> {
        Ok(match page.photometric {
            // The JPEG decoder converts to RGB.
            Photometric::YCbCr if page.compression.is_jpeg() => Self::Plain,
            Photometric::MinIsWhite => Self::MinIsWhite,
            Photometric::Cmyk => Self::Cmyk,
            Photometric::CieLab => Self::CieLab,
            Photometric::YCbCr => Self::ycbcr(file, directory)?,
            Photometric::Palette => Self::palette(file, directory, page)?,
            _ => Self::Plain,
        })
    }

    /// Reads the coefficients and the range of YCbCr; the defaults are those of TIFF 6.0, section 21.
    fn ycbcr(file: &TiffFile<'_>, directory: &Directory) -> Result<Self, BoxError> {
        let numbers = |tag, count| file.floats(directory, tag, count).unwrap_or_default();
        let factors = numbers(tag::YCBCR_COEFFICIENTS, 3).try_into();
        let range = numbers(tag::REFERENCE_BLACK_WHITE, 6).try_into();
        let sane = |numbers: &[f64]| numbers.iter().all(|number| number.is_finite());
        let factors: [f64; 3] = factors.unwrap_or([0.299, 0.587, 0.114]);
        let range: [f64; 6] = range.unwrap_or([0.0, 255.0, 128.0, 255.0, 128.0, 255.0]);
        let spans = [0, 2, 4].map(|i| range[i + 1] - range[i]);
        if !sane(&factors) || !sane(&range) || factors[1] == 0.0 || spans.contains(&0.0) {
            return Err("invalid YCbCr coefficients or reference black and white".into());
        }
        Ok(Self::YCbCr(factors, range))
    }

    /// Reads the palette: all levels of red, then of green, then of blue.
    fn palette(file: &TiffFile<'_>, directory: &Directory, page: &Page) -> Result<Self, BoxError> {
        let count = 1 << page.bits.min(16);
        let map = file.numbers(directory, tag::COLOUR_MAP, 3 * count)?.unwrap_or_default();
        if map.len() < 3 * count {
            return Err("its palette is too short".into());
        }
        // Levels have 16 bits (TIFF 6.0), but some writers write 8 bits.
        let wide = map.iter().any(|&value| value > 255);
        let level = |at: usize| {
            let value = map[at].min(65535) as u16;
            if wide { value } else { value * 257 }
        };
        let colour = |i| [level(i), level(count + i), level(2 * count + i)];
        let colours: Vec<[u16; 3]> = (0..count).map(colour).collect();
        let is_grey = colours.iter().all(|&[r, g, b]| r == g && g == b);
        Ok(Self::Palette { colours, is_grey })
    }

    /// Whether images with samples of type `stored` can have alpha. Signed and 32-bit integers have no full intensity,
    /// which alpha needs.
    fn can_have_alpha(&self, stored: Dtype) -> bool {
        let has_full = matches!(stored, Dtype::U8 | Dtype::U16 | Dtype::F32 | Dtype::F64);
        has_full && matches!(self, Self::Plain | Self::MinIsWhite)
    }

    /// Whether samples of type `stored` can be converted.
    fn is_supported_as(&self, stored: Dtype) -> bool {
        match self {
            Self::Plain | Self::MinIsWhite => true,
            Self::YCbCr(..) => stored == Dtype::U8,
            Self::Palette { .. } | Self::Cmyk | Self::CieLab => {
                matches!(stored, Dtype::U8 | Dtype::U16)
            }
        }
    }
}

// Values of the tag ExtraSamples for alpha, with colours premultiplied by it or not (TIFF 6.0, section 18).
const ASSOCIATED: u64 = 1;
const UNASSOCIATED: u64 = 2;

impl ColorConversion {
    /// The conversion of the samples of `page`.
    pub fn read(file: &TiffFile<'_>, directory: &Directory, page: &Page) -> Result<Self, BoxError> {
        let mut losses = Vec::new();
        let (count, first_extra) = (page.samples, page.colours()?);
        // The meaning of extra samples without a value of the tag is unknown.
        let extra = |i: usize| page.extra.get(i - first_extra).copied();
        let is_alpha = |&i: &usize| matches!(extra(i), Some(ASSOCIATED | UNASSOCIATED));
        let stated = (first_extra..count).find(is_alpha);
        let is_only = count == first_extra + 1 && matches!(first_extra, 1 | 3);
        let alpha = stated.or(is_only.then_some(first_extra));
        let colours = match page.photometric {
            // The channels are not colours; the first three are kept as red, green and blue.
            Photometric::MinIsBlack | Photometric::Rgb
                if first_extra == 1 && alpha.is_none() && count >= 3 =>
            {
                3
            }
            _ => first_extra,
        };
        let model = StoredColors::read(file, directory, page)?;
        let alpha = alpha.filter(|_| model.can_have_alpha(page.dtype));
        if let Some(alpha) = alpha
            && stated.is_none()
            && extra(alpha).is_some()
        {
            losses.push(format!(
                "channel {count} is taken for alpha although the file does not declare it"
            ));
        }
        let is_associated = alpha.is_some_and(|alpha| extra(alpha) == Some(ASSOCIATED));
        let wanted: Vec<usize> = (0..colours).chain(alpha).collect();
        if wanted.len() < count {
            let left = count - wanted.len();
            losses.push(format!(
                "{left} of its {count} channels are left out: only grey or RGB, and alpha, are read"
            ));
        }
        if page.has_long_integers() {
            let name = page.type_name();
            losses.push(format!("{name} samples are read as f64, exact up to 2^53"));
        }
        if matches!(model, StoredColors::Cmyk) {
            losses.push("CMYK becomes RGB, without its colour profile".to_owned());
        }
        if !model.is_supported_as(page.dtype) {
            return Err(format!(
                "its kind of colours is not supported with samples of type {}",
                page.type_name()
            )
            .into());
        }
        let (channels, dtype) = match &model {
            StoredColors::Palette { colours, is_grey } => {
                let dtype = if is_narrow(colours) { Dtype::U8 } else { Dtype::U16 };
                (if *is_grey { 1 } else { 3 }, dtype)
            }
            StoredColors::Cmyk => (3, page.dtype),
            _ => (wanted.len(), page.dtype),
        };
        Ok(Self { wanted, channels, dtype, losses, colours: model, bits: page.bits, is_associated })
    }

    /// Bytes of the samples of the image of `page`.
    pub fn bytes(&self, page: &Page) -> u64 {
        let pixels = (page.size[0] as u64).saturating_mul(page.size[1] as u64);
        pixels.saturating_mul((self.channels * self.dtype.size()) as u64)
    }

    /// Names of the stored channels.
    pub fn channel_names(&self, page: &Page) -> String {
        let has_alpha =
            matches!(self.wanted.len(), 2 | 4) && !matches!(self.colours, StoredColors::Cmyk);
        let colours = match (&self.colours, self.wanted.len()) {
            (StoredColors::Palette { .. }, _) => "palette",
            (StoredColors::Cmyk, _) => "cyan, magenta, yellow, black",
            (StoredColors::CieLab, _) => "L*, a*, b*",
            (_, 1 | 2) => "grey",
            _ if page.photometric == Photometric::YCbCr => "Y, Cb, Cr",
            _ if page.photometric == Photometric::MinIsBlack => "3 channels",
            _ => "red, green, blue",
        };
        let alpha = if has_alpha { ", alpha" } else { "" };
        let more = match page.samples - self.wanted.len() {
            0 => String::new(),
            more => format!(", {more} more"),
        };
        format!("{colours}{alpha}{more}")
    }

    /// Whether stored samples need no conversion.
    fn is_as_stored(&self, stored: Dtype) -> bool {
        stored == self.dtype
            && matches!(self.colours, StoredColors::Plain)
            && !self.is_associated
            && (self.bits as usize == 8 * stored.size()
                || !matches!(stored, Dtype::U8 | Dtype::U16))
    }

    /// Converts the `wanted` stored samples to samples of the image.
    pub fn apply(&self, stored: Samples) -> Result<Samples> {
        if self.is_as_stored(stored.dtype()) {
            return Ok(stored);
        }
        let mut converted = match (&self.colours, stored) {
            (StoredColors::Palette { colours, is_grey }, stored) => {
                return palette(&stored, colours, *is_grey, self.dtype);
            }
            (StoredColors::Cmyk, Samples::U8(inks)) => {
                Samples::U8(to_rgb(&inks, |ink: [u8; 4]| {
                    let [c, m, y, k] = ink.map(|v| 255 - u32::from(v));
                    [c, m, y].map(|v| ((v * k + 127) / 255) as u8)
                })?)
            }
            (StoredColors::Cmyk, Samples::U16(inks)) => {
                Samples::U16(to_rgb(&inks, |ink: [u16; 4]| {
                    let [c, m, y, k] = ink.map(|v| u64::from(65535 - v));
                    [c, m, y].map(|v| ((v * k + 32767) / 65535) as u16)
                })?)
            }
            (StoredColors::YCbCr(factors, range), Samples::U8(values)) => {
                Samples::U8(to_rgb(&values, |values: [u8; 3]| {
                    ycbcr_to_rgb(values, factors, range)
                })?)
            }
            (StoredColors::CieLab, Samples::U8(values)) => {
                Samples::U8(to_rgb(&values, |[l, a, b]: [u8; 3]| {
                    let lab = [f64::from(l) / 2.55, f64::from(a as i8), f64::from(b as i8)];
                    lab_to_rgb(lab).map(|v| (v * 255.0).round() as u8)
                })?)
            }
            (StoredColors::CieLab, Samples::U16(values)) => {
                Samples::U16(to_rgb(&values, |[l, a, b]: [u16; 3]| {
                    let ab = |v: u16| f64::from(v as i16) / 256.0;
                    let lab = [f64::from(l) / 655.35, ab(a), ab(b)];
                    lab_to_rgb(lab).map(|v| (v * 65535.0).round() as u16)
                })?)
            }
            (colours, mut stored) => {
                self.scale(&mut stored);
                if matches!(colours, StoredColors::MinIsWhite) {
                    self.invert(&mut stored);
                }
                stored
            }
        };
        if self.is_associated {
            straighten(&mut converted, self.wanted.len());
        }
        Ok(converted)
    }

    /// Scales integers of 8 and 16 bits to the full range.
    fn scale(&self, samples: &mut Samples) {
        let max = (1u64 << self.bits.min(32)) - 1;
        match samples {
            Samples::U8(values) if self.bits < 8 => {
                let scale = |v: u64| ((v.min(max) * 255 + max / 2) / max) as u8;
                let table: Vec<u8> = (0..256).map(scale).collect();
                each_pixel(values, 1, |value| value[0] = table[usize::from(value[0])]);
            }
            Samples::U16(values) if self.bits < 16 => {
                let scale = |v: u16| ((u64::from(v).min(max) * 65535 + max / 2) / max) as u16;
                each_pixel(values, 1, |value| value[0] = scale(value[0]));
            }
            _ => {}
        }
    }

    /// Inverts the first sample of each pixel. Among signed integers, this swaps the minimum and the maximum.
    fn invert(&self, samples: &mut Samples) {
        let channels = self.wanted.len();
        let max = ((1u64 << self.bits.min(32)) - 1) as u32;
        match samples {
            Samples::U8(values) => each_pixel(values, channels, |pixel| pixel[0] = !pixel[0]),
            Samples::U16(values) => each_pixel(values, channels, |pixel| pixel[0] = !pixel[0]),
            Samples::U32(values) => {
                each_pixel(values, channels, |pixel| pixel[0] = max.saturating_sub(pixel[0]));
            }
            Samples::I8(values) => each_pixel(values, channels, |pixel| pixel[0] = !pixel[0]),
            Samples::I16(values) => each_pixel(values, channels, |pixel| pixel[0] = !pixel[0]),
            Samples::I32(values) => each_pixel(values, channels, |pixel| pixel[0] = !pixel[0]),
            Samples::F32(values) => each_pixel(values, channels, |pixel| pixel[0] = 1.0 - pixel[0]),
            Samples::F64(values) => each_pixel(values, channels, |pixel| pixel[0] = 1.0 - pixel[0]),
        }
    }
}

/// Calls `change` with each pixel of `channels` samples.
fn each_pixel<T: Send>(values: &mut [T], channels: usize, change: impl Fn(&mut [T]) + Sync) {
    const PIXELS: usize = 1 << 15;
    let channels = channels.max(1);
    values
        .chunks_mut(PIXELS * channels)
        .par_each(|values| values.chunks_exact_mut(channels).for_each(&change));
}

/// Whether all levels are 8-bit levels `v`, stored as `v * 257` or as `v * 256`.
fn is_narrow(colours: &[[u16; 3]]) -> bool {
    let all = |step: u16| {
        colours.iter().flatten().all(|&level| level >> 8 == level / step && level % step == 0)
    };
    all(257) || all(256)
}

/// Looks up palette colours; indices beyond the palette are black.
fn palette(stored: &Samples, colours: &[[u16; 3]], is_grey: bool, dtype: Dtype) -> Result<Samples> {
    fn pick<N: Copy + Into<usize>, T: Copy + Default>(
        numbers: &[N],
        levels: &[[T; 3]],
        is_grey: bool,
    ) -> Result<Vec<T>> {
        let channels = if is_grey { 1 } else { 3 };
        let mut picked = memory::room(numbers.len() * channels)?;
        for &number in numbers {
            let colour = levels.get(number.into()).copied().unwrap_or_default();
            picked.extend_from_slice(&colour[..channels]);
        }
        Ok(picked)
    }
    let narrow: Vec<_> = colours.iter().map(|colour| colour.map(|v| (v >> 8) as u8)).collect();
    Ok(match (stored, dtype) {
        (Samples::U8(numbers), Dtype::U8) => pick(numbers, &narrow, is_grey)?.into(),
        (Samples::U8(numbers), _) => pick(numbers, colours, is_grey)?.into(),
        (Samples::U16(numbers), Dtype::U8) => pick(numbers, &narrow, is_grey)?.into(),
        (Samples::U16(numbers), _) => pick(numbers, colours, is_grey)?.into(),
        (other, _) => unreachable!("palettes have no {}", other.dtype()),
    })
}

/// Converts each pixel of `N` samples to RGB by `rgb`.
fn to_rgb<T: bytemuck::Pod + Send + Sync, const N: usize>(
    values: &[T],
    rgb: impl Fn([T; N]) -> [T; 3] + Sync,
) -> Result<Vec<T>> {
    let pixels = values.as_chunks::<N>().0;
    let mut converted = memory::zeros(3 * pixels.len())?;
    const PIXELS: usize = 1 << 14;
    converted.chunks_mut(3 * PIXELS).zip(pixels.chunks(PIXELS)).par_each(|(converted, pixels)| {
        for (rgb_pixel, &pixel) in converted.as_chunks_mut::<3>().0.iter_mut().zip(pixels) {
            *rgb_pixel = rgb(pixel);
        }
    });
    Ok(converted)
}

/// Converts YCbCr to RGB (TIFF 6.0, sections 20 and 21). `factors` are the coefficients of red, green and blue in Y,
/// `range` the codes of black and white of each component.
fn ycbcr_to_rgb(values: [u8; 3], factors: &[f64; 3], range: &[f64; 6]) -> [u8; 3] {
    let full = |i: usize, max: f64| {
        let [black, white] = [range[2 * i], range[2 * i + 1]];
        (f64::from(values[i]) - black) * max / (white - black)
    };
    let [y, cb, cr] = [full(0, 255.0), full(1, 127.0), full(2, 127.0)];
    let [red_factor, green_factor, blue_factor] = *factors;
    let red = cr * (2.0 - 2.0 * red_factor) + y;
    let blue = cb * (2.0 - 2.0 * blue_factor) + y;
    let green = (y - blue_factor * blue - red_factor * red) / green_factor;
    [red, green, blue].map(|v| v.round() as u8)
}

/// Converts CIE 1976 L*a*b* under D50 to sRGB from 0 to 1 (IEC 61966-2-1; the matrix includes Bradford's adaptation, as
/// in the sRGB profile).
fn lab_to_rgb([l, a, b]: [f64; 3]) -> [f64; 3] {
    const WHITE: [f64; 3] = [0.96422, 1.0, 0.82521];
    const XYZ_TO_RGB: [[f64; 3]; 3] = [
        [3.133_856_1, -1.616_866_7, -0.490_614_6],
        [-0.978_768_4, 1.916_141_5, 0.033_454_0],
        [0.071_945_3, -0.228_991_4, 1.405_242_7],
    ];
    let y = (l + 16.0) / 116.0;
    let cube = |t: f64| {
        if t > 6.0 / 29.0 { t * t * t } else { 3.0 * (6.0f64 / 29.0).powi(2) * (t - 4.0 / 29.0) }
    };
    let [x, y, z] = [cube(y + a / 500.0), cube(y), cube(y - b / 200.0)];
    let xyz = [x * WHITE[0], y * WHITE[1], z * WHITE[2]];
    XYZ_TO_RGB.map(|row| {
        let light: f64 = row.iter().zip(xyz).map(|(factor, v)| factor * v).sum();
        from_linear(light.clamp(0.0, 1.0))
    })
}

/// Converts to straight alpha: divides colours by alpha. Other types have no alpha.
fn straighten(samples: &mut Samples, channels: usize) {
    fn divide<T: Copy>(pixel: &mut [T], quotient: impl Fn(T, T) -> T) {
        let Some((&mut alpha, colours)) = pixel.split_last_mut() else { return };
        colours.iter_mut().for_each(|colour| *colour = quotient(*colour, alpha));
    }
    let whole = |colour: u32, alpha: u32, max: u32| match alpha {
        0 => colour,
        alpha => ((colour * max + alpha / 2) / alpha).min(max),
    };
    match samples {
        Samples::U8(values) => each_pixel(values, channels, |pixel| {
            divide(pixel, |colour, alpha| whole(colour.into(), alpha.into(), 255) as u8);
        }),
        Samples::U16(values) => each_pixel(values, channels, |pixel| {
            divide(pixel, |colour, alpha| whole(colour.into(), alpha.into(), 65535) as u16);
        }),
        Samples::F32(values) => each_pixel(values, channels, |pixel| {
            divide(pixel, |colour, alpha| if alpha > 0.0 { colour / alpha } else { colour });
        }),
        Samples::F64(values) => each_pixel(values, channels, |pixel| {
            divide(pixel, |colour, alpha| if alpha > 0.0 { colour / alpha } else { colour });
        }),
        _ => {}
    }
}
