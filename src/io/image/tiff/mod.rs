//! TIFF and BigTIFF. The directories of a file (`directory`) describe its pages (`page`) and locate their strips and
//! tiles (`chunk`). These are decoded to rows of samples (`rows`), which are converted to an image (`color_conversion`,
//! `pages`) or to planes of a volume (`planes`). `encode` writes files.

pub(super) mod bytes;
mod chunk;
mod color_conversion;
pub(super) mod density;
mod description;
pub(super) mod directory;
mod encode;
pub(super) mod exif;
mod fax;
mod map;
mod old_jpeg;
mod ome;
mod page;
mod page_kind;
mod pages;
mod plane_order;
mod planes;
mod probe;
mod pyramid;
mod rows;
mod stack;
mod storage;
mod tag;
mod tree;
mod unpack;

pub use self::page_kind::PageKind;
pub(in crate::io) use self::{
    encode::stack_header, page_kind::has_slices, pages::smaller_sizes, planes::Planes,
};
use super::codec::{Capabilities, Codec, Decode, MetadataSupport, RowCodec, TextSupport};
use crate::data::dtype::Dtype;

pub(super) const CODEC: Codec = Codec {
    capabilities: Capabilities {
        dtypes: &Dtype::SAMPLES,
        metadata: MetadataSupport {
            texts: TextSupport::Keywords(&encode::TEXTS),
            has_exif_tags: true,
            has_stack_text: true,
            ..MetadataSupport::ALL
        },
        ..Capabilities::PLAIN
    },
    encode_pages: Some(encode::encode_pages),
    probe: Some(probe::probe),
    rows: Some(RowCodec { open: pages::open_rows, create: encode::create_rows }),
    has_stacks: true,
    ..Codec::new(
        "TIFF",
        &["tif", "tiff"],
        |bytes| {
            [b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"]
                .iter()
                .any(|signature| bytes.starts_with(*signature))
        },
        Decode::Seeking(pages::open),
        |image, _| encode::encode(image),
    )
};
