//! Opening of PNG files: their header and metadata.

use std::io::{BufRead, Read, Seek};

use png::{Decoder, Limits, Reader, Transformations};

use super::{ancillary, chunk::readable};
use crate::{
    data::{dtype::Dtype, image::Metadata},
    io::image::{
        error::BoxError, limits::MAX_METADATA_BYTES, metadata::MetadataBlock, pages::DecodedPage,
        tiff::exif::read_exif,
    },
};

/// Opens a file, which `input` and `second_input` read independently. Returns its header and a reader of its pixels,
/// which have samples of 8 bits, or of 16 bits in big-endian order. Profile and EXIF may take at most
/// [`MAX_METADATA_BYTES`] bytes.
pub fn open<R: BufRead + Seek>(
    input: R,
    second_input: impl Read + Seek,
) -> Result<(Reader<R>, DecodedPage), BoxError> {
    let mut decoder =
        Decoder::new_with_limits(input, Limits { bytes: MAX_METADATA_BYTES as usize });
    decoder.set_transformations(Transformations::EXPAND);
    decoder.set_ignore_text_chunk(true);
    let reader = decoder.read_info().map_err(readable)?;
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
    let late_orientation = ancillary::read(second_input, &mut metadata, &mut losses)?;
    metadata.icc = MetadataBlock::Icc.capped(metadata.icc.take(), &mut losses);
    let dtype = if depth == png::BitDepth::Sixteen { Dtype::U16 } else { Dtype::U8 };
    let size = [info.width as usize, info.height as usize];
    let orientation = orientation.or(late_orientation).unwrap_or_default();
    let page = DecodedPage::header(size, colour.samples(), dtype, metadata, orientation, losses)?;
    Ok((reader, page))
}
