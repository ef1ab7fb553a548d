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
    Jpeg,
}

impl Compression {
    /// Compression with this number in the tag.
    pub fn from_tag(number: u64) -> Result<Self, BoxError> {
        let name = match number {
            1 => return Ok(Self::None),
            5 => return Ok(Self::Lzw),
            8 | 32946 => return Ok(Self::Deflate),
            32773 => return Ok(Self::PackBits),
            50000 | 34926 => return Ok(Self::Zstd),
            7 => return Ok(Self::Jpeg),
            2..=4 | 32771 => "CCITT fax",
            6 => "old-style JPEG",
            9 | 10 | 34661 => "JBIG",
            32766 => "NeXT",
            32809 => "ThunderScan",
            32908 | 32909 => "PixarLog",
            33003..=33005 | 34712 => "JPEG 2000",
            34676 | 34677 => "LogLuv",
            34887 => "LERC",
            34892 => "lossy DNG",
            34925 => "LZMA",
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
            Self::Jpeg => "JPEG",
        }
    }
}

pub mod photometric {
    pub const MIN_IS_WHITE: u64 = 0;
    pub const MIN_IS_BLACK: u64 = 1;
    pub const RGB: u64 = 2;
    pub const PALETTE: u64 = 3;
    pub const MASK: u64 = 4;
    pub const CMYK: u64 = 5;
    pub const YCBCR: u64 = 6;
    pub const CIELAB: u64 = 8;
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
        (SampleFormat::Unsigned, 64) => return Err("u64 samples are not supported".into()),
        (SampleFormat::Signed, 64) => return Err("i64 samples are not supported".into()),
        _ => return Err(format!("samples of {bits} bits are not supported").into()),
    };
    Ok((format, dtype))
}
