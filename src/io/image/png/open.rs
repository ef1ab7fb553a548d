//! Opening of PNG files: their header and metadata.

use std::{
    fs::File,
    io::{BufRead, BufReader, Cursor, Seek},
    path::Path,
};

use png::{Decoder, Limits, Reader, Transformations};

use super::beside;
use crate::{
    data::{
        dtype::Dtype,
        image::{Metadata, Orientation},
    },
    io::image::{
        codec::BoxError,
        image_crate::MOST_BESIDE,
        metadata::{capped_icc, read_exif},
    },
};

/// A file that is read up to its pixels. These come as samples of 8 bits, or of 16 bits in big-endian order.
pub struct Opened<R: BufRead + Seek> {
    pub reader: Reader<R>,
    pub size: [usize; 2],
    pub channels: usize,
    pub dtype: Dtype,
    pub metadata: Metadata,
    pub orientation: Orientation,
    /// What is left out of the metadata, in words.
    pub losses: Vec<String>,
}

/// Opens the file at `path`.
///
/// # Errors
/// If the file is broken, or its profile and EXIF take more than [`MOST_BESIDE`] bytes.
pub fn open_file(path: &Path) -> Result<Opened<BufReader<File>>, BoxError> {
    let input = BufReader::with_capacity(1 << 16, File::open(path)?);
    open(input, |metadata, losses| beside::read_path(path, metadata, losses))
}

/// Opens a file whose bytes are in memory.
///
/// # Errors
/// As [`open_file`].
pub fn open_bytes(bytes: &[u8]) -> Result<Opened<Cursor<&[u8]>>, BoxError> {
    open(Cursor::new(bytes), |metadata, losses| beside::read_file(bytes, metadata, losses))
}

fn open<R: BufRead + Seek>(
    input: R,
    read_others: impl FnOnce(&mut Metadata, &mut Vec<String>) -> Result<Option<Orientation>, BoxError>,
) -> Result<Opened<R>, BoxError> {
    let mut decoder = Decoder::new_with_limits(input, Limits { bytes: MOST_BESIDE as usize });
    decoder.set_transformations(Transformations::EXPAND);
    decoder.set_ignore_text_chunk(true);
    let reader = decoder.read_info()?;
    let info = reader.info();
    if let Some(palette) = &info.palette
        && !palette.len().is_multiple_of(3)
    {
        return Err(
            format!("its palette has {} bytes, not 3 for each colour", palette.len()).into()
        );
    }
    let (colour, depth) = reader.output_color_type();
    let mut losses = Vec::new();
    let exif = info.exif_metadata.as_deref().map(<[u8]>::to_vec);
    let (exif, orientation) = read_exif(exif, &mut losses);
    let icc = info.icc_profile.as_deref().map(<[u8]>::to_vec);
    let mut metadata = Metadata { icc, exif, ..Metadata::default() };
    let behind = read_others(&mut metadata, &mut losses)?;
    metadata.icc = capped_icc(metadata.icc.take(), &mut losses);
    Ok(Opened {
        size: [info.width as usize, info.height as usize],
        channels: colour.samples(),
        dtype: if depth == png::BitDepth::Sixteen { Dtype::U16 } else { Dtype::U8 },
        metadata,
        orientation: orientation.or(behind).unwrap_or_default(),
        losses,
        reader,
    })
}
