//! Headers of image files of any format, without decoding.

use std::panic::catch_unwind;

use super::{
    codec::Decode,
    error::{BoxError, catch_panic},
    formats::ImageFormat,
    metadata::MetadataBlock,
    pages::Animation,
    probe::Probe,
    read::ImageFile,
    tiff::{self, PageKind},
};
use crate::{
    data::{
        dtype::Dtype,
        grid::{GridType, Shape},
        image::{Image, Metadata},
    },
    io::{Limits, RegularFile, Source},
    util::{
        error::{Error, Result},
        timings::Timings,
    },
};

/// Size of an image file by its header. It is for planning only; decoders check the header again.
#[derive(Clone, Copy, Debug)]
pub struct PlannedSize {
    /// Format of the file.
    pub format: ImageFormat,
    /// Bytes of the decoded samples.
    pub bytes: u64,
    /// Size of the image and type of its samples, if the format has a header that states them.
    pub grid_type: Option<GridType>,
}

impl PlannedSize {
    /// Whether the file is a JPEG with samples of 8 bits.
    pub fn is_jpeg(&self) -> bool {
        self.format == ImageFormat::Jpeg && self.grid_type.is_none_or(|own| own.dtype == Dtype::U8)
    }
}

/// Bytes of the decoded samples of the image file `source`, as in [`planned_size`].
pub fn sample_bytes(source: &Source) -> Option<u64> {
    planned_size(source).map(|planned| planned.bytes)
}

/// The size of the image file `source`; `None` if it is unknown until the file is consumed or decoded.
pub fn planned_size(source: &Source) -> Option<PlannedSize> {
    let file = source.regular().ok()??;
    let format = ImageFormat::of(source)?;
    let codec = format.codec();
    // Some decoders panic on broken files.
    let probe = catch_unwind(|| (codec.probe?)(&file, None).ok()).ok().flatten();
    let bytes = match codec.max_decoded_bytes {
        Some(max_decoded_bytes) => max_decoded_bytes(&file)?,
        None => probe.as_ref()?.bytes,
    };
    let grid_type = |probe: Probe| {
        let ([width, height], dtype) = (probe.decoded_size(), probe.decoded);
        let shape = Shape { dims: [width, height, 1], channels: 1 };
        let channels = probe.bytes / GridType { shape, dtype }.bytes().max(1);
        let shape = Shape { channels: channels.clamp(1, 4) as usize, ..shape };
        GridType { shape, dtype }
    };
    Some(PlannedSize { format, bytes, grid_type: probe.map(grid_type) })
}

/// Whether the pages of the file may be the slices of a volume, read as `Planes`.
pub fn has_planes(source: &Source) -> bool {
    ImageFormat::of(source).is_some_and(|format| format.codec().has_stacks)
}

/// What `read` finds in a file [with planes](has_planes); `None` for others, and if the file cannot be read.
fn with_planes<T>(
    source: &Source,
    read: impl FnOnce(&RegularFile) -> Result<T, BoxError>,
) -> Option<T> {
    let file = source.regular().ok()?.filter(|_| has_planes(source))?;
    catch_panic(|| read(&file)).ok()
}

/// Meaning of the pages of the file; `None` if they cannot be the slices of a volume, or cannot be read.
pub fn page_kind(source: &Source) -> Option<PageKind> {
    with_planes(source, PageKind::read)
}

/// Whether the file states that its pages are slices of volumes.
pub fn has_slices(source: &Source) -> bool {
    with_planes(source, tiff::has_slices).unwrap_or(false)
}

/// Size of the image, and the sizes of its smaller copies, the smallest first; `None` without such copies.
pub fn smaller_sizes(source: &Source) -> Option<([usize; 2], Vec<[usize; 2]>)> {
    with_planes(source, tiff::smaller_sizes)?
}

/// Whether `source` is a regular file with the signature of JPEG, and samples of 8 bits.
pub fn is_jpeg(source: &Source) -> bool {
    planned_size(source).is_some_and(|planned| planned.is_jpeg())
}

/// Reads the header of the file `source`. Content after the pixels, such as the number of frames, is only read if the
/// file has at most `max_len` bytes, or its decoder seeks.
pub fn probe(source: &Source, max_len: u64) -> Result<Probe> {
    if *source == Source::Stdin {
        return Err(Error::usage("cannot probe standard input"));
    }
    let Some(input) = source.regular()? else {
        return Err(Error::bad_input(format_args!("{source} is not a regular file")));
    };
    catch_panic(|| probe_header(source, &input, max_len))
        .map_err(|error| Error::bad_input(format_args!("cannot decode {source}")).caused_by(error))
}

/// Decodes the first page of a source that can be read only once, such as a pipe. Returns the properties that follow
/// from that page, and the page.
pub fn probe_piped(source: &Source, limits: Limits) -> Result<(Probe, Image)> {
    let timings = Timings::new(false);
    let file = ImageFile::read(source, limits, &timings)?;
    let format = file.format()?;
    let mut pages = file.pages(&timings)?;
    let image = pages.decode(0, &timings)?;
    let mut probe = probe_image(format, &image);
    probe.pages = (pages.count() > 1).then_some(pages.count());
    Ok((probe, image))
}

/// Probes a file by its header, and if it may have several pages, by the pages that its decoder finds.
fn probe_header(source: &Source, input: &RegularFile, max_len: u64) -> Result<Probe, BoxError> {
    let found = ImageFormat::of(source).map(ImageFormat::codec);
    let probe = found.and_then(|codec| codec.probe);
    if let (Some(probe), Some(Decode::One(_) | Decode::Seeking(_))) =
        (probe, found.map(|codec| codec.decode))
    {
        return probe(input, None);
    }
    let timings = Timings::new(false);
    let file = match (ImageFile::read(source, Limits::from(max_len), &timings), probe) {
        (Ok(file), _) => file,
        (Err(_), Some(probe)) if source.size()? > Some(max_len) => return probe(input, None),
        (Err(error), _) => return Err(error.into()),
    };
    let format = file.format()?;
    let mut pages = file.pages(&timings)?;
    let mut probe = match probe {
        Some(probe) => probe(input, file.bytes())?,
        None => probe_image(format, &pages.decode(0, &timings)?),
    };
    probe.pages = (pages.count() > 1).then_some(pages.count());
    if let Some(Animation { plays, delays }) = pages.animation() {
        let seconds: f64 = delays
            .iter()
            .map(|delay| f64::from(delay.seconds[0]) / f64::from(delay.seconds[1]))
            .sum();
        let times = match plays {
            0 => "forever".to_owned(),
            1 => "once".to_owned(),
            plays => format!("{plays} times"),
        };
        // A sum of tenths is not exact in binary.
        let seconds = (seconds * 1e6).round() / 1e6;
        let frames = if delays.len() == 1 { "frame" } else { "frames" };
        let text = format!("{} {frames} in {seconds} s, {times}", delays.len());
        probe.metadata.push(("animation".into(), text));
    }
    Ok(probe)
}

/// Properties of a decoded image.
fn probe_image(format: ImageFormat, image: &Image) -> Probe {
    let Metadata { icc, xmp, .. } = &image.metadata;
    let size = [image.width, image.height];
    let mut probe = Probe::new(format.codec().name, size, image.channels, image.samples.dtype());
    probe.add_block(MetadataBlock::Icc, icc.as_deref());
    probe.add_block(MetadataBlock::Xmp, xmp.as_deref());
    probe.add_metadata(&image.metadata);
    probe
}
