//! What is known of an image before it is decoded: by its name, and by its header.

use std::{
    fs::File,
    io::{BufReader, Read},
    panic::catch_unwind,
    path::Path,
};

use exr::{
    math::Vec2,
    meta::{MetaData, header::Header},
};
use image::{
    ImageDecoder, ImageFormat, ImageReader,
    codecs::{png::PngDecoder, webp::WebPDecoder},
};

use super::{codec::BoxError, metadata::without_prefix, tiff};
use crate::{
    error::{Error, Result},
    io::Source,
};

/// Whether the extension of `source` is that of an image, of a format that is supported or not.
pub fn has_image_name(source: &Source) -> bool {
    let format = ImageFormat::from_extension(source.extension());
    format.is_some_and(|format| format.can_read() || format == ImageFormat::Tiff)
}

/// Bytes of the decoded samples of the image file `source`; nothing when that cannot be found out
/// without consuming or decoding it. The header is trusted for planning only: decoders check it again.
pub fn sample_bytes(source: &Source) -> Option<u64> {
    let path = source.path()?;
    // A pipe can be read only once.
    source.size().ok()??;
    // Decoders panic on some broken files.
    let decoded = catch_unwind(|| {
        if is_tiff(path) {
            return Some(tiff::probe(path).ok()?.bytes);
        }
        let reader = ImageReader::open(path).ok()?.with_guessed_format().ok()?;
        Some(reader.into_decoder().ok()?.total_bytes())
    });
    decoded.ok().flatten().or_else(|| openexr(path))
}

/// Whether the file begins as TIFF files do.
fn is_tiff(path: &Path) -> bool {
    let mut first = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut first));
    read.is_ok() && (tiff::CODEC.has_signature)(&first)
}

/// At most RGBA as f32, in the largest layer or the largest picture that is made of one.
fn openexr(path: &Path) -> Option<u64> {
    let file = MetaData::read_from_file(path, false).ok()?;
    let windows = |layer: &Header| [layer.layer_size, layer.shared_attributes.display_window.size];
    file.headers.iter().flat_map(windows).map(|size| product(size, 16)).max()
}

fn product(Vec2(width, height): Vec2<usize>, bytes: u64) -> u64 {
    (width as u64).saturating_mul(height as u64).saturating_mul(bytes)
}

/// What the header of an image file says.
#[derive(Debug)]
pub struct Probe {
    /// The format's name.
    pub format: String,
    /// Width and height as stored.
    pub size: [usize; 2],
    /// The type of a sample.
    pub dtype: String,
    /// The names of the channels, or how many there are.
    pub channels: String,
    /// How many pictures the file holds, where it may hold several.
    pub pages: Option<usize>,
    /// What else it holds, each with its size or value.
    pub metadata: Vec<(String, String)>,
    /// Bytes of the samples of a page.
    pub bytes: u64,
}

/// Reads the header of `source`, a file.
///
/// # Errors
/// [`Kind::Io`](crate::error::Kind::Io) when it cannot be read, [`Kind::BadInput`](crate::error::Kind::BadInput) when
/// it is no image that is known, or a broken one.
pub fn probe(source: &Source) -> Result<Probe> {
    let Some(path) = source.path() else {
        return Err(Error::usage("an image is looked at in a file, not in standard input"));
    };
    if source.size()?.is_none() {
        return Err(Error::bad_input(format_args!("{source} is no regular file")));
    }
    let probed = catch_unwind(|| match openexr_header(path) {
        Some(probe) => Ok(probe),
        None if is_tiff(path) => tiff::probe(path),
        None => other_header(path),
    });
    let probed = probed.unwrap_or_else(|_| Err("the decoder crashed on it".into()));
    probed
        .map_err(|error| Error::bad_input(format_args!("cannot decode {source}")).caused_by(error))
}

fn openexr_header(path: &Path) -> Option<Probe> {
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
    Some(Probe {
        format: "OpenEXR".into(),
        size: [first.layer_size.width(), first.layer_size.height()],
        dtype: types.first().cloned().unwrap_or_default(),
        channels: names.join(", "),
        pages: (file.headers.len() > 1).then_some(file.headers.len()),
        metadata: vec![("compression".into(), first.compression.to_string())],
        bytes: product(first.layer_size, 4 * names.len() as u64),
    })
}

fn other_header(path: &Path) -> Result<Probe, BoxError> {
    let reader = ImageReader::open(path)?.with_guessed_format()?;
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
    let mut metadata = Vec::new();
    if let Ok(Some(profile)) = decoder.icc_profile() {
        metadata.push(("colour profile".into(), format!("{} bytes", profile.len())));
    }
    let mut found = None;
    if let Ok(Some(exif)) = decoder.exif_metadata() {
        let exif = without_prefix(exif);
        metadata.push(("EXIF".into(), format!("{} bytes", exif.len())));
        found = image::metadata::Orientation::from_exif_chunk(&exif);
    }
    if let Some(orientation) = found.or_else(|| decoder.orientation().ok())
        && orientation != image::metadata::Orientation::NoTransforms
    {
        metadata.push(("orientation".into(), format!("{orientation:?}, in EXIF")));
    }
    let bytes = decoder.total_bytes();
    drop(decoder);
    if is_animated(path, format) {
        metadata.push(("animation".into(), "of which the first picture is read".into()));
    }
    Ok(Probe {
        format: format!("{format:?}").to_uppercase(),
        size: [width as usize, height as usize],
        dtype: format!("{kind}{bits}"),
        channels,
        pages: None,
        metadata,
        bytes,
    })
}

fn is_animated(path: &Path, format: ImageFormat) -> bool {
    let Ok(file) = File::open(path).map(BufReader::new) else { return false };
    match format {
        ImageFormat::Png => PngDecoder::new(file).is_ok_and(|png| png.is_apng().unwrap_or(false)),
        ImageFormat::WebP => WebPDecoder::new(file).is_ok_and(|webp| webp.has_animation()),
        _ => false,
    }
}
