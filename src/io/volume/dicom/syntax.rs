//! Transfer syntaxes: how a file is encoded (PS3.5, annex A).

use crate::io::volume::header::{BoxError, Endian, excerpt};

/// The encoding of a file (transfer syntax).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syntax {
    pub endian: Endian,
    /// Whether each attribute states its value representation.
    pub explicit: bool,
    pub deflated: bool,
    pub compression: Compression,
}

/// Compression of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    None,
    Rle,
    /// 8-bit sequential JPEG.
    Jpeg,
    /// JPEG of 8 or 12 bits.
    JpegOf12Bits,
    /// Lossless JPEG (T.81, process 14).
    JpegLossless,
    #[cfg(feature = "jpeg2000")]
    Jpeg2000,
    JpegLs,
    /// Deflate, a stream for each frame.
    Deflate,
    /// This one is not supported.
    Refused(&'static str),
}

impl Syntax {
    pub const PLAIN: Self = Self {
        endian: Endian::Little,
        explicit: true,
        deflated: false,
        compression: Compression::None,
    };

    /// The transfer syntax with the identifier `uid` (PS3.6, annex A).
    pub fn from_uid(uid: &str) -> Result<Self, BoxError> {
        let compressed = |compression| Ok(Self { compression, ..Self::PLAIN });
        let refused = match uid.trim_end().strip_prefix("1.2.840.10008.1.2").unwrap_or("?") {
            "" => return Ok(Self { explicit: false, ..Self::PLAIN }),
            ".1" => return Ok(Self::PLAIN),
            ".2" => return Ok(Self { endian: Endian::Big, ..Self::PLAIN }),
            ".1.99" => return Ok(Self { deflated: true, ..Self::PLAIN }),
            ".5" => return compressed(Compression::Rle),
            ".4.50" => return compressed(Compression::Jpeg),
            // Progressive JPEG is retired.
            ".4.51" | ".4.53" | ".4.55" => return compressed(Compression::JpegOf12Bits),
            ".4.57" | ".4.70" => return compressed(Compression::JpegLossless),
            #[cfg(feature = "jpeg2000")]
            ".4.90" | ".4.91" => return compressed(Compression::Jpeg2000),
            ".4.80" | ".4.81" => return compressed(Compression::JpegLs),
            ".8.1" => return compressed(Compression::Deflate),
            #[cfg(not(feature = "jpeg2000"))]
            ".4.90" | ".4.91" => "JPEG 2000",
            ".4.92" | ".4.93" => "JPEG 2000 Part 2",
            ".4.201" | ".4.202" | ".4.203" => "HTJ2K",
            ".4.110" | ".4.111" | ".4.112" => "JPEG XL",
            rest if [".4.100", ".4.101", ".4.102", ".4.103", ".4.104", ".4.105", ".4.106"]
                .iter()
                .any(|video| rest.starts_with(video)) =>
            {
                "video"
            }
            _ => {
                return Err(format!("unknown transfer syntax `{}`", excerpt(uid)).into());
            }
        };
        compressed(Compression::Refused(refused))
    }
}
