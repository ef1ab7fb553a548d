//! The flags of every command that reads volumes.

use std::num::NonZeroUsize;

use clap::Args;

use super::choice::{Choice, choice_parser};
use crate::{
    data::volume::Dims,
    io::{
        Source, Sources,
        image::{PageKind, page_kind},
        volume::{Endian, Layout, SeriesId, StoredType, is_volume},
    },
    util::error::{Error, Hint, Result},
};

/// How to read a volume.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Volumes")]
pub struct VolumeArgs {
    /// Size of raw samples along x, y and z, such as 256x256x128
    ///
    /// 256,256,128 also works [default: from a name like skull_256x256x256_uint8.raw, else a cube by the size of
    /// the file]
    #[arg(long, value_name = "XxYxZ")]
    dims: Option<Dims>,

    /// Type of raw samples: u8 i8 u16 i16 u32 i32 u64 i64 f16 f32 f64 [default: from the name, else u8]
    #[arg(long, alias = "raw-dtype", value_name = "TYPE", value_parser = StoredType::parse)]
    dtype: Option<StoredType>,

    /// Byte order of raw samples [default: little]
    #[arg(long, value_name = "ENDIAN", value_parser = choice_parser(&ENDIANS))]
    endian: Option<Endian>,

    /// Bytes to skip before the first raw sample
    #[arg(long, value_name = "N", default_value_t = 0)]
    header_bytes: u64,

    /// Volume of a file with several, such as time points, counted from 1
    #[arg(long = "volume", value_name = "N")]
    volume_number: Option<NonZeroUsize>,

    /// Read a TIFF of several pages, or a folder of images, as one volume
    ///
    /// A TIFF whose pages are said to be slices, such as a z-stack of ImageJ or OME-TIFF, is one in any case.
    #[arg(long)]
    stack: bool,

    /// Take the pages of a TIFF as images, even if they are slices of a volume
    #[arg(long = "pages", conflicts_with_all = ["stack", "volume_number"])]
    as_pages: bool,

    /// Series of a DICOM folder: number or UID [default: the largest]
    #[arg(long, value_name = "N|UID")]
    series: Option<SeriesId>,

    /// Channel of a Zarr image, counted from 1
    #[arg(long, value_name = "N")]
    channel: Option<NonZeroUsize>,

    /// Time point of a Zarr image, counted from 1
    #[arg(long, value_name = "N")]
    time: Option<NonZeroUsize>,

    /// Resolution level of a Zarr image; 0 is the finest [default: 0]
    #[arg(long, value_name = "N")]
    level: Option<usize>,
}

impl VolumeArgs {
    /// The layout of the volume that the flags describe.
    pub fn layout(&self) -> Layout {
        let &Self { dims, dtype, endian, header_bytes, stack, as_pages, level, .. } = self;
        let from_0 = |number: Option<NonZeroUsize>| number.map(|number| number.get() - 1);
        Layout {
            dims,
            dtype,
            endian,
            header_bytes,
            volume: from_0(self.volume_number),
            stack,
            pages: as_pages,
            series: self.series.clone(),
            channel: from_0(self.channel),
            time: from_0(self.time),
            level,
        }
    }
}

/// Refuses flags for volumes in `layout` if `source` is an image.
///
/// # Errors
/// `Kind::Usage`.
pub fn check_image_flags(source: &Source, layout: &Layout) -> Result<()> {
    let Layout { series, channel, time, level, .. } = layout;
    if series.is_none() && [channel, time, level].iter().all(|chosen| chosen.is_none()) {
        return Ok(());
    }
    let error = Error::usage(format_args!(
        "{source}: --series, --channel, --time and --level are for volumes; images have --page and --channels"
    ));
    Err(with_pages_hint(error, source, false))
}

/// Notes that each page is an image, where a volume was probably meant: the first such file of `sources`.
pub fn note_pages(sources: &Sources, layout: &Layout) {
    let are_pages = |source: &Source| {
        !is_volume(source, layout) && page_kind(source) == Some(PageKind::Several)
    };
    if !layout.pages
        && let Some(source) = sources.iter().find(are_pages)
    {
        log::info!("{source}: each page is an image; --stack makes the pages a volume");
    }
}

/// Names the other way to read the pages of `source` in an error about volumes, or about images.
pub fn with_pages_hint(error: Error, source: &Source, is_volume: bool) -> Error {
    match (page_kind(source), is_volume) {
        (Some(PageKind::Slices), true) => error.with_hint(Hint::Pages),
        (Some(PageKind::Several), false) => error.with_hint(Hint::Stack),
        _ => error,
    }
}

const ENDIANS: [Choice<Endian>; 2] = [
    ("little", Endian::Little, "Least significant byte first"),
    ("big", Endian::Big, "Most significant byte first"),
];
