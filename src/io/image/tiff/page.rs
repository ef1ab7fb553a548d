//! A page of a TIFF file: what its directory states about samples and their storage.

use std::ops::Range;

use super::{
    chunk_table::ChunkTable,
    directory::{Directory, File},
    tag,
};
use crate::{data::dtype::Dtype, io::image::codec::BoxError};

/// The kind of number that a sample is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Unsigned,
    Signed,
    Float,
}

/// The compression of strips or tiles.
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
    /// The compression with this number in the tag.
    ///
    /// # Errors
    /// If the compression is not supported.
    fn of(number: u64) -> Result<Self, BoxError> {
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
            "" => format!("its compression, number {number}, is not known").into(),
            name => format!(
                "its compression, {name}, is not supported; `tiffcp -c zip` or `magick` write it anew"
            )
            .into(),
        })
    }

    /// The name of the compression.
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

/// Numbers of photometric interpretations.
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

/// A page.
#[derive(Clone, Debug)]
pub struct Page {
    /// Pixels across and down.
    pub size: [usize; 2],
    /// Bits of a sample.
    pub bits: u32,
    /// The kind of number that samples are.
    pub format: Format,
    /// The type of samples in memory.
    pub dtype: Dtype,
    /// Samples a pixel.
    pub samples: usize,
    /// The photometric interpretation: one of [`photometric`].
    pub photometric: u64,
    /// Meanings of the samples behind the colours: 1 associated alpha, 2 unassociated alpha, 0 unspecified.
    pub extra: Vec<u64>,
    /// Whether each channel is stored in chunks of its own.
    pub is_planar: bool,
    /// The compression of chunks.
    pub compression: Compression,
    /// Predictor: 1 none, 2 differences of neighbours, 3 differences of the bytes of floats.
    pub predictor: u64,
    /// Whether the directory names a predictor that has no meaning with the compression.
    pub has_idle_predictor: bool,
    /// Whether the least significant bit of each byte is first (fill order 2).
    pub is_reversed: bool,
    /// Whether numbers are little-endian.
    pub is_little: bool,
    /// Whether chunks are tiles; otherwise strips.
    pub is_tiled: bool,
    /// Pixels across and down of a chunk: a strip or a tile.
    pub chunk: [usize; 2],
    /// Offsets and lengths of the chunks in the file.
    pub table: ChunkTable,
    /// JPEG tables that all chunks share.
    pub tables: Vec<u8>,
    /// Number of pixels, across and down, that share a sample of Cb and Cr.
    pub subsampling: [usize; 2],
}

impl Page {
    /// Reads the page of a directory.
    ///
    /// # Errors
    /// If the directory is broken, or the page is not supported.
    pub fn read(file: &File<'_>, directory: &Directory) -> Result<Self, BoxError> {
        if directory.find(tag::DNG_VERSION).is_some() {
            return Err(
                "it is a camera's raw picture (DNG): develop it to a TIFF, by darktable-cli or \
                        dcraw -T"
                    .into(),
            );
        }
        let number = |tag| file.number_of(directory, tag);
        let or = |tag, otherwise| Ok::<u64, BoxError>(number(tag)?.unwrap_or(otherwise));
        let side = |tag| -> Result<usize, BoxError> {
            let side = number(tag)?.ok_or("it does not tell its width or height")?;
            Ok(u32::try_from(side)? as usize)
        };
        let size = [side(tag::WIDTH)?, side(tag::HEIGHT)?];
        let samples = or(tag::SAMPLES_PER_PIXEL, 1)?;
        // The tag is a u16.
        let samples = usize::from(u16::try_from(samples)?).max(1);
        let bits = Self::same(file, directory, tag::BITS, 1, samples)?;
        let format = Self::same(file, directory, tag::SAMPLE_FORMAT, 1, samples)?;
        let (format, dtype) = sample_type(bits, format)?;
        let compression = Compression::of(or(tag::COMPRESSION, 1)?)?;
        let photometric = match number(tag::PHOTOMETRIC)? {
            Some(photometric) => photometric,
            // Some writers omit the tag.
            None if samples >= 3 => photometric::RGB,
            None => photometric::MIN_IS_BLACK,
        };
        let mut page = Self {
            size,
            bits: bits as u32,
            format,
            dtype,
            samples,
            photometric,
            extra: file.numbers(directory, tag::EXTRA_SAMPLES, samples)?.unwrap_or_default(),
            is_planar: samples > 1 && or(tag::PLANAR, 1)? == 2,
            compression,
            predictor: or(tag::PREDICTOR, 1)?,
            has_idle_predictor: false,
            is_reversed: or(tag::FILL_ORDER, 1)? == 2 && compression != Compression::Jpeg,
            is_little: file.is_little,
            is_tiled: directory.find(tag::TILE_WIDTH).is_some(),
            chunk: size,
            table: ChunkTable::default(),
            tables: Vec::new(),
            subsampling: [1, 1],
        };
        if photometric == photometric::YCBCR {
            page.subsampling = subsampling(file, directory)?;
        }
        if compression == Compression::Jpeg {
            page.read_jpeg_tables(file, directory)?;
        }
        page.check_predictor()?;
        page.find_chunks(file, directory)?;
        Ok(page)
    }

    fn read_jpeg_tables(&mut self, file: &File<'_>, directory: &Directory) -> Result<(), BoxError> {
        if let Some(entry) = directory.find(tag::JPEG_TABLES) {
            self.tables = file.value(entry)?;
        }
        match self.bits == 8 && self.format == Format::Unsigned {
            true => Ok(()),
            false => Err(format!("JPEG of {} bits in TIFF is not supported", self.bits).into()),
        }
    }

    /// The value of a tag with one value for each sample, which must be equal; `otherwise` if there is no tag.
    fn same(
        file: &File<'_>,
        directory: &Directory,
        tag: u16,
        otherwise: u64,
        samples: usize,
    ) -> Result<u64, BoxError> {
        let found = file.numbers(directory, tag, samples)?.unwrap_or_default();
        let Some(&first) = found.first() else { return Ok(otherwise) };
        match found.iter().all(|&number| number == first) {
            true => Ok(first),
            false => Err("its channels are of different types, which is not supported".into()),
        }
    }

    fn check_predictor(&mut self) -> Result<(), BoxError> {
        // As in libtiff, other compressions have none.
        if !matches!(self.compression, Compression::Lzw | Compression::Deflate | Compression::Zstd)
        {
            self.has_idle_predictor = self.predictor != 1;
            self.predictor = 1;
        }
        let whole = matches!(self.bits, 8 | 16 | 32 | 64);
        match self.predictor {
            1 => Ok(()),
            2 if whole => Ok(()),
            3 if self.format == Format::Float => Ok(()),
            other => Err(format!(
                "its predictor, number {other}, is not known for samples of {} bits",
                self.bits
            )
            .into()),
        }
    }

    /// A message about the part of the directory that is ignored.
    pub fn loss(&self) -> Option<String> {
        let name = self.compression.name();
        self.has_idle_predictor.then(|| match self.compression {
            Compression::None => "its predictor is ignored: it is not compressed".to_owned(),
            _ => format!("its predictor is ignored: {name} compression has none"),
        })
    }

    /// Samples of a pixel in one chunk.
    pub fn chunk_samples(&self) -> usize {
        if self.is_planar { 1 } else { self.samples }
    }

    /// Number of planes of chunks.
    pub fn planes(&self) -> usize {
        if self.is_planar { self.samples } else { 1 }
    }

    /// Number of chunks across and down.
    pub fn grid(&self) -> [usize; 2] {
        [0, 1].map(|axis| self.size[axis].div_ceil(self.chunk[axis]))
    }

    /// Number of chunks of all planes.
    pub fn chunk_count(&self) -> usize {
        let [across, down] = self.grid();
        across.saturating_mul(down).saturating_mul(self.planes())
    }

    /// Whether several pixels share samples of Cb and Cr, outside of JPEG data, which have subsampling of their own.
    pub fn is_subsampled(&self) -> bool {
        self.photometric == photometric::YCBCR
            && self.compression != Compression::Jpeg
            && !self.is_planar
            && self.samples == 3
            && self.subsampling != [1, 1]
    }

    /// Bytes of a decompressed row of a chunk; with subsampling, of the rows that share samples of Cb and Cr.
    pub fn chunk_row_bytes(&self) -> u64 {
        let [across, down] = self.subsampling;
        let samples = match self.is_subsampled() {
            true => self.chunk[0].div_ceil(across) as u64 * (across * down + 2) as u64,
            false => self.chunk[0] as u64 * self.chunk_samples() as u64,
        };
        samples.saturating_mul(self.bits.into()).div_ceil(8)
    }

    /// Bytes of `rows` decompressed rows of a chunk.
    pub fn chunk_bytes(&self, rows: usize) -> u64 {
        let rows = if self.is_subsampled() { rows.div_ceil(self.subsampling[1]) } else { rows };
        self.chunk_row_bytes().saturating_mul(rows as u64)
    }

    /// The rows of the picture in row `chunk_row` of the chunks.
    pub fn rows_of(&self, chunk_row: usize) -> Range<usize> {
        let first = chunk_row * self.chunk[1];
        first..(first + self.chunk[1]).min(self.size[1])
    }

    /// Number of colour samples of a pixel, without extra samples.
    ///
    /// # Errors
    /// If the photometric interpretation is not supported, or there are too few samples for it.
    pub fn colours(&self) -> Result<usize, BoxError> {
        use photometric as p;
        let colours = match self.photometric {
            p::MIN_IS_WHITE | p::MIN_IS_BLACK | p::PALETTE | p::MASK => 1,
            p::RGB | p::YCBCR | p::CIELAB => 3,
            p::CMYK => 4,
            other => {
                let name = match other {
                    9 | 10 => "ICC or ITU L*a*b*",
                    32803 => "a camera's colour filter array",
                    32844 | 32845 => "LogLuv",
                    34892 => "a camera's linear raw data",
                    _ => "",
                };
                return Err(match name {
                    "" => format!("its photometric interpretation, {other}, is not known").into(),
                    name => format!("its colours, {name}, are not supported").into(),
                });
            }
        };
        match self.samples < colours {
            // Some writers state RGB for grey pictures.
            true if self.photometric == p::RGB && self.samples < 3 => Ok(1),
            true => Err(format!("it has {} of {colours} colours", self.samples).into()),
            false => Ok(colours),
        }
    }
}

/// The number of pixels, across and down, that share a sample of Cb and Cr; without the tag, 2 and 2.
fn subsampling(file: &File<'_>, directory: &Directory) -> Result<[usize; 2], BoxError> {
    let found = file.numbers(directory, tag::YCBCR_SUBSAMPLING, 2)?.unwrap_or(vec![2, 2]);
    match found[..] {
        [across @ (1 | 2 | 4), down @ (1 | 2 | 4)] => Ok([across as usize, down as usize]),
        _ => Err("its subsampling of colours is not known".into()),
    }
}

/// The kind of number and the type in memory of samples with `bits` bits and the number `format` in the tag.
fn sample_type(bits: u64, format: u64) -> Result<(Format, Dtype), BoxError> {
    let format = match format {
        // 4 is undefined.
        1 | 4 => Format::Unsigned,
        2 => Format::Signed,
        3 => Format::Float,
        5 | 6 => return Err("complex numbers are not supported".into()),
        other => return Err(format!("its sample format, number {other}, is not known").into()),
    };
    let dtype = match (format, bits) {
        (Format::Unsigned, 1..=8) => Dtype::U8,
        (Format::Unsigned, 9..=16) => Dtype::U16,
        (Format::Unsigned, 17..=32) => Dtype::U32,
        (Format::Signed, 2..=8) => Dtype::I8,
        (Format::Signed, 9..=16) => Dtype::I16,
        (Format::Signed, 17..=32) => Dtype::I32,
        (Format::Float, 16 | 24 | 32) => Dtype::F32,
        (Format::Float, 64) => Dtype::F64,
        (Format::Unsigned, 64) => return Err("u64 samples are not supported".into()),
        (Format::Signed, 64) => return Err("i64 samples are not supported".into()),
        _ => return Err(format!("samples of {bits} bits are not supported").into()),
    };
    Ok((format, dtype))
}

impl Page {
    /// The name of the sample type as stored.
    pub fn type_name(&self) -> String {
        let letter = match self.format {
            Format::Unsigned => 'u',
            Format::Signed => 'i',
            Format::Float => 'f',
        };
        format!("{letter}{}", self.bits)
    }
}
