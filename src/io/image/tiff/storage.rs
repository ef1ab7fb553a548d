//! Storage of samples: types, compressions and photometric interpretations.

use crate::{data::dtype::Dtype, io::image::error::BoxError};

/// Kind of number of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleFormat {
    Unsigned,
    Signed,
    Float,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    None,
    Lzw,
    Deflate,
    PackBits,
    Zstd,
    Lzma,
    Jpeg,
    /// JPEG of TIFF 6.0, which later writers do not use.
    OldJpeg,
    Fax(Fax),
}

/// Kind of CCITT fax compression, of bilevel rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fax {
    /// Runs, with rows that begin at a byte.
    Rows,
    /// Runs, with rows that begin at 16 bits.
    Words,
    /// T.4, with an end of line before each row, which may be coded by its differences from the row before.
    Group3 { is_2d: bool },
    /// T.6: differences from the row before.
    Group4,
}

impl Compression {
    /// Whether strips and tiles are decoded by the JPEG decoder.
    pub fn is_jpeg(self) -> bool {
        matches!(self, Self::Jpeg | Self::OldJpeg)
    }

    /// Compression with this number in the tag.
    pub fn from_tag(number: u64) -> Result<Self, BoxError> {
        let name = match number {
            1 => return Ok(Self::None),
            5 => return Ok(Self::Lzw),
            8 | 32946 => return Ok(Self::Deflate),
            32773 => return Ok(Self::PackBits),
            50000 | 34926 => return Ok(Self::Zstd),
            7 => return Ok(Self::Jpeg),
            2 => return Ok(Self::Fax(Fax::Rows)),
            3 => return Ok(Self::Fax(Fax::Group3 { is_2d: false })),
            4 => return Ok(Self::Fax(Fax::Group4)),
            32771 => return Ok(Self::Fax(Fax::Words)),
            6 => return Ok(Self::OldJpeg),
            34925 => return Ok(Self::Lzma),
            9 | 10 | 34661 => "JBIG",
            32766 => "NeXT",
            32809 => "ThunderScan",
            32908 | 32909 => "PixarLog",
            33003..=33005 | 34712 => "JPEG 2000",
            34676 | 34677 => "LogLuv",
            34887 => "LERC",
            34892 => "lossy DNG",
            34927 | 50001 => "WebP",
            34715 => "JBIG2",
            34933 => "PNG",
            22610 | 34934 => "JPEG XR",
            50002 | 52546 => "JPEG XL",
            _ => "",
        };
        Err(match name {
            "" => format!("unknown compression {number}").into(),
            name => format!(
                "{name} compression is not supported; convert the file by `tiffcp -c zip` or `magick`"
            )
            .into(),
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lzw => "LZW",
            Self::Deflate => "deflate",
            Self::PackBits => "PackBits",
            Self::Zstd => "zstd",
            Self::Lzma => "LZMA",
            Self::Jpeg => "JPEG",
            Self::OldJpeg => "old-style JPEG",
            Self::Fax(Fax::Rows | Fax::Words) => "CCITT RLE",
            Self::Fax(Fax::Group3 { .. }) => "CCITT Group 3",
            Self::Fax(Fax::Group4) => "CCITT Group 4",
        }
    }
}

/// Photometric interpretation: the colour model of samples, with its number in the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Photometric {
    MinIsWhite = 0,
    MinIsBlack = 1,
    Rgb = 2,
    Palette = 3,
    Mask = 4,
    Cmyk = 5,
    YCbCr = 6,
    CieLab = 8,
}

impl Photometric {
    pub fn from_tag(number: u64) -> Result<Self, BoxError> {
        let name = match number {
            0 => return Ok(Self::MinIsWhite),
            1 => return Ok(Self::MinIsBlack),
            2 => return Ok(Self::Rgb),
            3 => return Ok(Self::Palette),
            4 => return Ok(Self::Mask),
            5 => return Ok(Self::Cmyk),
            6 => return Ok(Self::YCbCr),
            8 => return Ok(Self::CieLab),
            9 | 10 => "ICC or ITU L*a*b*",
            32803 => "a camera's colour filter array",
            32844 | 32845 => "LogLuv",
            34892 => "a camera's linear raw data",
            _ => return Err(format!("unknown photometric interpretation {number}").into()),
        };
        Err(format!("{name} is not supported").into())
    }

    /// Number of colour samples per pixel, without extra samples.
    pub fn colours(self) -> usize {
        match self {
            Self::MinIsWhite | Self::MinIsBlack | Self::Palette | Self::Mask => 1,
            Self::Rgb | Self::YCbCr | Self::CieLab => 3,
            Self::Cmyk => 4,
        }
    }
}

/// Transformation of samples before compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predictor {
    None,
    /// Differences of neighbours.
    Horizontal,
    /// Differences of the bytes of floats.
    FloatingPoint,
}

/// Kind of number and type in memory of samples with `bits` bits and the number `format` in the tag.
pub fn sample_type(bits: u64, format: u64) -> Result<(SampleFormat, Dtype), BoxError> {
    let format = match format {
        // 4 is undefined.
        1 | 4 => SampleFormat::Unsigned,
        2 => SampleFormat::Signed,
        3 => SampleFormat::Float,
        5 | 6 => return Err("complex numbers are not supported".into()),
        other => return Err(format!("unknown sample format {other}").into()),
    };
    let dtype = match (format, bits) {
        (SampleFormat::Unsigned, 1..=8) => Dtype::U8,
        (SampleFormat::Unsigned, 9..=16) => Dtype::U16,
        (SampleFormat::Unsigned, 17..=32) => Dtype::U32,
        (SampleFormat::Signed, 2..=8) => Dtype::I8,
        (SampleFormat::Signed, 9..=16) => Dtype::I16,
        (SampleFormat::Signed, 17..=32) => Dtype::I32,
        (SampleFormat::Float, 16 | 24 | 32) => Dtype::F32,
        (SampleFormat::Float, 64) => Dtype::F64,
        (SampleFormat::Unsigned | SampleFormat::Signed, 64) => Dtype::F64,
        _ => return Err(format!("samples of {bits} bits are not supported").into()),
    };
    Ok((format, dtype))
}
