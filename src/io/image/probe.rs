//! What the name and the header of an image file tell, without decoding it.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    panic::catch_unwind,
    path::Path,
};

use exr::{
    math::Vec2,
    meta::{MetaData, header::Header},
};
use image::{ImageDecoder, ImageReader, metadata::Orientation};

use super::{
    Animation, ImageFile, ImageFormat, bmp,
    codec::{BoxError, CRASHED},
    exr as exr_format,
    image_crate::MOST_BESIDE,
    jpeg,
    metadata::{shown, without_prefix},
    png, pnm, riff, tiff,
};
use crate::{
    data::{
        dtype::Dtype,
        image::{Density, DensityUnit, Image, Metadata, Text},
    },
    io::{
        Limits, Source,
        jpeg::{Summary, has_signature},
    },
    util::{
        error::{Error, Result},
        timings::Timings,
    },
};

/// Whether the extension of `source` is that of an image format, supported or not.
pub fn has_image_name(source: &Source) -> bool {
    let extension = source.extension();
    let known = image::ImageFormat::from_extension(&extension);
    known.is_some_and(|format| format.can_read())
        || ImageFormat::ALL.iter().any(|own| own.codec().extensions.contains(&extension.as_str()))
}

/// Bytes of the decoded samples of the image file `source`; `None` if that cannot be found out without consuming or
/// decoding the file. The value is for planning only; decoders check the header again.
pub fn sample_bytes(source: &Source) -> Option<u64> {
    let path = source.path()?;
    // A pipe can be read only once.
    source.size().ok()??;
    // Decoders panic on some broken files.
    let decoded = catch_unwind(|| {
        if is_tiff(path) {
            return Some(tiff::probe(path).ok()?.bytes);
        }
        if is_jpeg(source) {
            return Some(jpeg_header(&jpeg_start(path).ok()?).ok()?.bytes);
        }
        Some(reader(path).ok()?.into_decoder().ok()?.total_bytes())
    });
    decoded.ok().flatten().or_else(|| gif(path)).or_else(|| openexr(path))
}

/// A reader of the header of the file at `path`; the format is recognized by the first bytes.
fn reader(path: &Path) -> io::Result<ImageReader<BufReader<File>>> {
    let mut reader = ImageReader::open(path)?.with_guessed_format()?;
    let mut limits = image::Limits::default();
    limits.max_alloc = Some(MOST_BESIDE);
    reader.limits(limits);
    Ok(reader)
}

/// Bytes of a GIF file's canvas as RGBA.
fn gif(path: &Path) -> Option<u64> {
    let mut header = [0; 10];
    File::open(path).ok()?.read_exact(&mut header).ok()?;
    let [b'G', b'I', b'F', b'8', _, _, w0, w1, h0, h1] = header else {
        return None;
    };
    Some(4 * u64::from(u16::from_le_bytes([w0, w1])) * u64::from(u16::from_le_bytes([h0, h1])))
}

/// Whether the file has the signature of TIFF.
pub fn is_tiff(path: &Path) -> bool {
    let mut first = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut first));
    read.is_ok() && (tiff::CODEC.has_signature)(&first)
}

/// Whether `source` is a regular file with the signature of JPEG. Its samples are then u8.
pub fn is_jpeg(source: &Source) -> bool {
    let (Some(path), Ok(Some(_))) = (source.path(), source.size()) else { return false };
    let mut first = [0; 3];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut first));
    read.is_ok() && has_signature(&first)
}

/// An upper bound of the decoded bytes of an OpenEXR file: RGBA as f32, in the largest layer or display window.
fn openexr(path: &Path) -> Option<u64> {
    let file = MetaData::read_from_file(path, false).ok()?;
    let windows = |layer: &Header| [layer.layer_size, layer.shared_attributes.display_window.size];
    file.headers.iter().flat_map(windows).map(|size| product(size, 16)).max()
}

fn product(Vec2(width, height): Vec2<usize>, bytes: u64) -> u64 {
    (width as u64).saturating_mul(height as u64).saturating_mul(bytes)
}

/// What the header of an image file tells.
#[derive(Debug)]
pub struct Probe {
    /// The name of the format.
    pub format: String,
    /// Width and height as stored.
    pub size: [usize; 2],
    /// The type of a sample.
    pub dtype: String,
    /// The names of the channels, or how many there are.
    pub channels: String,
    /// Number of pages, if the format may hold several.
    pub pages: Option<usize>,
    /// Further contents of the file: name, and size or value.
    pub metadata: Vec<(String, String)>,
    /// Bytes of the decoded samples of a page.
    pub bytes: u64,
    /// Whether EXIF says that rows are columns.
    pub is_turned: bool,
}

impl Probe {
    /// The size of the decoded picture, and the type of its samples, of formats other than TIFF: fewer bits than 8 or 16
    /// are widened, and OpenEXR becomes f32.
    pub fn decoded(&self) -> ([usize; 2], Dtype) {
        let [width, height] = self.size;
        let size = if self.is_turned { [height, width] } else { [width, height] };
        let bits = self.dtype.strip_prefix('u').and_then(|bits| bits.parse().ok());
        let dtype = match bits {
            Some(1..=8) => Dtype::U8,
            Some(9..=16) => Dtype::U16,
            _ => Dtype::F32,
        };
        (size, dtype)
    }
}

/// Reads the header of the file `source`. What stands behind the pixels, such as the number of frames, is only read if
/// the file has at most `longest` bytes, or its format is read with seeks.
///
/// # Errors
/// [`Kind::Io`](crate::util::error::Kind::Io) if the file cannot be read, [`Kind::BadInput`](crate::util::error::Kind::BadInput) if
/// it is no image of a known format, or broken.
pub fn probe(source: &Source, longest: u64) -> Result<Probe> {
    let Some(path) = source.path() else {
        return Err(Error::usage("an image is looked at in a file, not in standard input"));
    };
    if source.size()?.is_none() {
        return Err(Error::bad_input(format_args!("{source} is no regular file")));
    }
    let probed = catch_unwind(|| match openexr_header(path) {
        Some(probe) => Ok(probe),
        None if is_tiff(path) => tiff::probe(path),
        None if is_jpeg(source) => jpeg_header(&jpeg_start(path)?),
        None => pages_header(source, path, longest),
    });
    let probed = probed.unwrap_or_else(|_| Err(CRASHED.into()));
    probed
        .map_err(|error| Error::bad_input(format_args!("cannot decode {source}")).caused_by(error))
}

/// Probes a source that can be read only once, such as a pipe: decodes its first page. Returns the header's contents,
/// as far as that page tells them, and the page.
///
/// # Errors
/// As [`probe`], and when it breaks the limits.
pub fn probe_piped(source: &Source, limits: Limits) -> Result<(Probe, Image)> {
    let timings = Timings::new(false);
    let file = ImageFile::read(source, limits, &timings)?;
    let format = file.format()?;
    let mut pages = file.pages(&timings)?;
    let image = pages.decode(0, &timings)?;
    let mut probe = of_image(format, &image);
    probe.pages = (pages.count() > 1).then_some(pages.count());
    Ok((probe, image))
}

fn openexr_header(path: &Path) -> Option<Probe> {
    /// Maximum size in bytes of a header in which attributes are searched.
    const LONGEST_HEADER: u64 = 2 << 20;
    let file = MetaData::read_from_file(path, false).ok()?;
    let first = file.headers.first()?;
    let names: Vec<String> =
        first.channels.list.iter().map(|channel| channel.name.to_string()).collect();
    let types: Vec<String> = first
        .channels
        .list
        .iter()
        .map(|channel| format!("{:?}", channel.sample_type).to_lowercase())
        .collect();
    let mut probe = Probe {
        format: "OpenEXR".into(),
        size: [first.layer_size.width(), first.layer_size.height()],
        dtype: types.first().cloned().unwrap_or_default(),
        channels: names.join(", "),
        pages: (file.headers.len() > 1).then_some(file.headers.len()),
        metadata: vec![("compression".into(), first.compression.to_string())],
        bytes: product(first.layer_size, 4 * names.len() as u64),
        is_turned: false,
    };
    let (mut beside, mut losses) = (Metadata::default(), Vec::new());
    let mut start = Vec::new();
    File::open(path).ok()?.take(LONGEST_HEADER).read_to_end(&mut start).ok()?;
    exr_format::read_beside(&start, 0, &mut beside, &mut losses);
    probe.tell_beside(&beside);
    Some(probe)
}

/// Probes a file through the pages that its decoder finds, and reads its metadata.
fn pages_header(source: &Source, path: &Path, longest: u64) -> Result<Probe, BoxError> {
    let timings = Timings::new(false);
    let file = match ImageFile::read(source, Limits::from(longest), &timings) {
        Ok(file) => file,
        Err(_) if source.size()? > Some(longest) => return other_header(path),
        Err(error) => return Err(error.into()),
    };
    let format = file.format()?;
    let mut pages = file.pages(&timings)?;
    let mut probe = match format {
        // `other_header` does not support these formats; decoding a page takes no longer than searching the file.
        ImageFormat::Gif | ImageFormat::Pfm => of_image(format, &pages.decode(0, &timings)?),
        _ => other_header(path)?,
    };
    probe.pages = (pages.count() > 1).then_some(pages.count());
    if let Some(Animation { plays, delays }) = pages.animation() {
        let seconds: f64 = delays
            .iter()
            .map(|delay| f64::from(delay.seconds[0]) / f64::from(delay.seconds[1]))
            .sum();
        let times = match plays {
            0 => "for ever".to_owned(),
            1 => "once".to_owned(),
            plays => format!("{plays} times"),
        };
        // A sum of tenths is not exact in binary.
        let seconds = (seconds * 1e6).round() / 1e6;
        let frames = if delays.len() == 1 { "frame" } else { "frames" };
        let text = format!("{} {frames} in {seconds} s, {times}", delays.len());
        probe.metadata.push(("animation".into(), text));
    }
    let (mut beside, mut losses) = (Metadata::default(), Vec::new());
    if let Some(bytes) = file.bytes() {
        match format {
            ImageFormat::Png => drop(png::read_beside(bytes, &mut beside, &mut losses)),
            ImageFormat::Bmp => beside.density = bmp::density(bytes),
            ImageFormat::Pnm => pnm::read_comments(bytes, &mut beside, &mut losses),
            _ => {}
        }
    }
    for (name, found) in [("XMP", &beside.xmp), ("EXIF", &beside.exif), ("IPTC", &beside.iptc)] {
        // The image crate misses some metadata of PNG files.
        if let Some(found) = found
            && probe.metadata.iter().all(|(known, _)| known != name)
        {
            probe.metadata.push((name.into(), format!("{} bytes", found.len())));
        }
    }
    probe.tell_beside(&beside);
    Ok(probe)
}

impl Probe {
    /// Adds texts, the density, and parts that only this format holds.
    fn tell_beside(&mut self, beside: &Metadata) {
        /// Number of characters of a text that are shown.
        const SHOWN: usize = 200;
        if let Some(density) = beside.density {
            self.metadata.push(("pixels".into(), in_words(density)));
        }
        for Text { keyword, text } in &beside.texts {
            let mut start: String = text.chars().take(SHOWN).collect();
            if start.len() < text.len() {
                start += &format!("... ({} bytes)", text.len());
            }
            self.metadata.push((shown(keyword), start));
        }
        let held = beside.parts.iter().filter(|part| !part.bytes.is_empty());
        let parts = held.map(|part| (shown(&part.name), part.bytes.len()));
        self.metadata.extend(parts.map(|(name, len)| (name, format!("{len} bytes"))));
    }
}

/// A density in words.
pub fn in_words(density: Density) -> String {
    let [across, down] = density.pixels.map(|pixels| (pixels * 1e4).round() / 1e4);
    match density.unit {
        DensityUnit::Inch => format!("{across} x {down} per inch"),
        DensityUnit::Centimetre => format!("{across} x {down} per cm"),
        DensityUnit::Aspect => format!("{across} across are as long as {down} down"),
    }
}

/// The names of 1 to 4 channels.
const CHANNELS: [&str; 4] = ["grey", "grey, alpha", "red, green, blue", "red, green, blue, alpha"];

/// The properties of a decoded image.
fn of_image(format: ImageFormat, image: &Image) -> Probe {
    let Metadata { icc, xmp, .. } = &image.metadata;
    let named = [("colour profile", icc), ("XMP", xmp)];
    let metadata = named.into_iter().filter_map(|(name, data)| {
        data.as_ref().map(|data| (name.to_owned(), format!("{} bytes", data.len())))
    });
    let mut probe = Probe {
        format: format!("{format:?}").to_uppercase(),
        size: [image.width, image.height],
        dtype: image.samples.dtype().to_string(),
        channels: CHANNELS[image.channels - 1].to_owned(),
        pages: None,
        metadata: metadata.collect(),
        bytes: image.samples.as_bytes().len() as u64,
        is_turned: false,
    };
    probe.tell_beside(&image.metadata);
    probe
}

/// The bytes of a JPEG file in which its header is searched.
fn jpeg_start(path: &Path) -> io::Result<Vec<u8>> {
    const MAX_HEADER: u64 = 8 << 20;
    let mut start = Vec::new();
    File::open(path)?.take(MAX_HEADER).read_to_end(&mut start)?;
    Ok(start)
}

/// Probes a JPEG file that begins with `bytes`.
fn jpeg_header(bytes: &[u8]) -> Result<Probe, BoxError> {
    let Summary { segments, size, channels } =
        Summary::new(bytes).ok_or("the JPEG file has no frame header")?;
    let (metadata, ..) = jpeg::metadata(&segments);
    let exif = jpeg::exif(&segments);
    let (lines, orientation) =
        metadata_lines(metadata.xmp.as_deref(), metadata.icc.as_deref(), exif);
    let mut probe = Probe {
        format: "JPEG".into(),
        size,
        dtype: Dtype::U8.to_string(),
        channels: CHANNELS[channels - 1].to_owned(),
        pages: None,
        metadata: lines,
        bytes: (size[0] * size[1] * channels) as u64,
        is_turned: orientation.to_exif() > 4,
    };
    if let Some(iptc) = &metadata.iptc {
        probe.metadata.push(("IPTC".into(), format!("{} bytes", iptc.len())));
    }
    probe.tell_beside(&metadata);
    Ok(probe)
}

fn other_header(path: &Path) -> Result<Probe, BoxError> {
    let reader = reader(path)?;
    let format = reader.format().ok_or("this is no image format that is known here")?;
    let mut decoder = reader.into_decoder()?;
    let (width, height) = decoder.dimensions();
    let (stored, read) = (decoder.original_color_type(), decoder.color_type());
    let bits = stored.bits_per_pixel() / u16::from(stored.channel_count()).max(1);
    let kind = if format!("{stored:?}").ends_with("32F") { 'f' } else { 'u' };
    let channels = match (stored.channel_count(), read.channel_count()) {
        (1, 3 | 4) => "palette".to_owned(),
        (1, _) => "grey".to_owned(),
        (2, _) => "grey, alpha".to_owned(),
        (3, _) => "red, green, blue".to_owned(),
        (4, _) if read.has_alpha() => "red, green, blue, alpha".to_owned(),
        (count, _) => count.to_string(),
    };
    let [icc, exif, xmp] = match format {
        // The decoder of WebP trusts the declared lengths of these chunks.
        image::ImageFormat::WebP => {
            riff::metadata(BufReader::new(File::open(path)?), &mut Vec::new())?
        }
        _ => [decoder.icc_profile(), decoder.exif_metadata(), decoder.xmp_metadata()]
            .map(|found| found.ok().flatten()),
    };
    let (metadata, orientation) = metadata_lines(xmp.as_deref(), icc.as_deref(), exif);
    let bytes = decoder.total_bytes();
    Ok(Probe {
        format: format!("{format:?}").to_uppercase(),
        size: [width as usize, height as usize],
        dtype: format!("{kind}{bits}"),
        channels,
        pages: None,
        metadata,
        bytes,
        is_turned: orientation.to_exif() > 4,
    })
}

/// Names and sizes of metadata with the texts in EXIF, and the orientation that EXIF states.
fn metadata_lines(
    xmp: Option<&[u8]>,
    icc: Option<&[u8]>,
    exif: Option<Vec<u8>>,
) -> (Vec<(String, String)>, Orientation) {
    let exif = exif.map(without_prefix);
    let named = [("XMP", xmp), ("colour profile", icc), ("EXIF", exif.as_deref())];
    let sizes = named.into_iter().filter_map(|(name, data)| Some((name, data?.len())));
    let mut lines: Vec<_> =
        sizes.map(|(name, len)| (name.to_owned(), format!("{len} bytes"))).collect();
    if let Some(exif) = &exif {
        let texts = tiff::exif_texts(exif).into_iter();
        lines.extend(texts.map(|(name, text)| (name.to_owned(), text)));
    }
    let found = exif.as_deref().and_then(Orientation::from_exif_chunk);
    let orientation = found.unwrap_or(Orientation::NoTransforms);
    if orientation != Orientation::NoTransforms {
        lines.push(("orientation".into(), format!("{orientation:?}, in EXIF")));
    }
    (lines, orientation)
}
