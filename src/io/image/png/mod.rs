//! PNG, as a whole and by rows: decoding by the png crate, and an encoder that uses all cores.

mod ancillary;
mod animation;
mod chunk;
mod encode;
mod open;
mod rows;
mod zlib;

pub use encode::{Png, PngWriter};

use std::io::Cursor;

use super::{
    codec::{Capabilities, Codec, Decode, MetadataSupport, RowCodec, TextSupport},
    error::BoxError,
    image_crate,
    limits::check_size,
    metadata::MetadataBlock,
    pages::{DecodedPage, OnePage, Pages},
    probe::Probe,
};
use crate::{
    data::{dtype::Dtype, image::Metadata},
    io::{Limits, RegularFile},
};

pub(super) const CODEC: Codec = Codec {
    capabilities: Capabilities {
        dtypes: &[Dtype::U8, Dtype::U16],
        has_durations: true,
        metadata: MetadataSupport {
            blocks: &[MetadataBlock::Icc, MetadataBlock::Exif, MetadataBlock::Xmp],
            texts: TextSupport::Matching(ancillary::is_keyword),
            ancillary: "PNG",
            ..MetadataSupport::ALL
        },
        ..Capabilities::PLAIN
    },
    encode_pages: Some(animation::encode_pages),
    probe: Some(probe),
    rows: Some(RowCodec { open: rows::open, create: rows::create }),
    ..Codec::new(
        "PNG",
        &["png", "apng"],
        |bytes| bytes.starts_with(chunk::SIGNATURE),
        Decode::Pages(pages),
        encode::encode,
    )
};

fn probe(file: &RegularFile, bytes: Option<&[u8]>) -> Result<Probe, BoxError> {
    let mut probe = image_crate::probe(image::ImageFormat::Png, CODEC.name, file, None)
        .map_err(chunk::readable)?;
    if let Some(bytes) = bytes {
        let (mut ancillary, mut losses) = (Metadata::default(), Vec::new());
        // Damage is reported when the image is decoded.
        ancillary::read(Cursor::new(bytes), &mut ancillary, &mut losses).ok();
        // The image crate misses some metadata.
        for block in [MetadataBlock::Xmp, MetadataBlock::Exif] {
            probe.add_block(block, block.get(&ancillary));
        }
        probe.add_metadata(&ancillary);
    }
    Ok(probe)
}

fn pages(bytes: &[u8], limits: Limits) -> Result<Box<dyn Pages + '_>, BoxError> {
    Ok(match animation::pages(bytes, limits)? {
        Some(animation) => animation,
        None => Box::new(OnePage(move || decode(bytes, limits))),
    })
}

fn decode(bytes: &[u8], limits: Limits) -> Result<DecodedPage, BoxError> {
    let whole = chunk::with_last_chunk(bytes, limits)?;
    let (mut reader, page) = open::open(Cursor::new(&*whole), Cursor::new(bytes))?;
    let len = reader.output_buffer_size().ok_or("the image is too large for this machine")?;
    check_size(limits, page.size(), len as u64)?;
    let mut samples = page.zeros()?;
    reader.next_frame(samples.as_bytes_mut()).map_err(chunk::readable)?;
    if samples.dtype() == Dtype::U16 {
        samples.swap_bytes();
    }
    Ok(page.with_samples(samples))
}
