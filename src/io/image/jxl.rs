//! JPEG XL (ISO/IEC 18181), by the jxl-oxide crate. It is read only.
//!
//! The container is read here, because the crate unpacks compressed metadata without a limit.

use std::borrow::Cow;

use jxl_oxide::{
    AllocTracker, FrameBufferSample, InitializeResult, JxlImage, Render,
    image::{BitDepth, ExtraChannelType},
};

use super::{
    codec::{Codec, Decode},
    error::BoxError,
    limits::{MIN_SCRATCH, check_size},
    metadata::MetadataBlock,
    pages::DecodedPage,
    tiff::exif::read_exif,
    xmp::upright,
};
use crate::{
    data::{
        dtype::Dtype,
        image::{Metadata, Orientation},
        samples::Samples,
    },
    io::Limits,
    util::memory,
};

const CONTAINER: &[u8] = b"\0\0\0\x0cJXL \r\n\x87\n";
const CODESTREAM: &[u8] = b"\xff\x0a";

pub const CODEC: Codec = Codec {
    can_write: false,
    ..Codec::new(
        "JPEG XL",
        &["jxl"],
        |bytes| bytes.starts_with(CODESTREAM) || bytes.starts_with(CONTAINER),
        Decode::One(decode),
        |_, _| Err("JPEG XL is only read: choose another format for the output".into()),
    )
};

/// Codes of colour spaces (ITU-T H.273): primaries, transfer function, matrix, and whether the range is full.
const SRGB: [u8; 4] = [1, 13, 0, 1];
const LINEAR_SRGB: [u8; 4] = [1, 8, 0, 1];

fn decode(bytes: &[u8], limits: Limits) -> Result<DecodedPage, BoxError> {
    let Contents { codestream, exif, xmp, mut losses } = contents(bytes)?;
    let tracker = AllocTracker::with_limit(max_bytes(limits));
    let image = open(&codestream, tracker.clone())?;
    let header = image.image_header();
    let format = image.pixel_format();
    if format.has_black() {
        return Err("CMYK JPEG XL is not supported".into());
    }
    let is_premultiplied = |kind: &ExtraChannelType| {
        matches!(kind, ExtraChannelType::Alpha { alpha_associated: true })
    };
    let extra = &header.metadata.ec_info;
    if extra.iter().any(|channel| is_premultiplied(&channel.ty)) {
        return Err("JPEG XL with premultiplied alpha is not supported".into());
    }
    if extra.len() > usize::from(format.has_alpha()) {
        losses.push("its extra channels are left out".to_owned());
    }
    let dtype = match header.metadata.bit_depth {
        BitDepth::IntegerSample { bits_per_sample: ..=8 } => Dtype::U8,
        BitDepth::IntegerSample { bits_per_sample: ..=16 } => Dtype::U16,
        _ => Dtype::F32,
    };
    let (size, channels) = ([image.width() as usize, image.height() as usize], format.channels());
    let samples = [size[0], size[1], channels, dtype.size()];
    let bytes = samples.iter().fold(1u64, |bytes, &factor| bytes.saturating_mul(factor as u64));
    check_size(limits, size, bytes)?;
    tracker.shrink_limit(bytes.try_into()?).map_err(|_| limits.exceeded("the image", bytes))?;
    if !image.is_loading_done() {
        return Err("the file is truncated".into());
    }
    let frames = image.num_loaded_keyframes();
    if frames > 1 {
        losses.push(format!("only the first of its {frames} frames is read"));
    }
    let is_linear = dtype == Dtype::F32 && image.rendered_cicp() == Some(LINEAR_SRGB);
    let is_linear = is_linear && !format.has_alpha() && image.original_icc().is_none();
    let is_srgb = image.rendered_cicp() == Some(SRGB) && image.original_icc().is_none();
    let icc = (!is_srgb && !is_linear).then(|| image.rendered_icc());
    let icc = MetadataBlock::Icc.capped(icc, &mut losses);
    // The decoder rotates the image by its header, which takes precedence over EXIF.
    let (exif, _) = read_exif(exif.map(<[u8]>::to_vec), &mut losses);
    let xmp = MetadataBlock::Xmp.capped(xmp.map(upright), &mut losses);
    let metadata = Metadata { icc, exif, xmp, ..Metadata::default() };
    let orientation = Orientation::default();
    let mut page = DecodedPage::header(size, channels, dtype, metadata, orientation, losses)?;
    page.image.is_linear = is_linear;
    let render = image.render_frame(0).map_err(|error| refine(error, limits))?;
    let count = size[0] * size[1] * channels;
    let samples = match dtype {
        Dtype::U8 => samples_of::<u8>(&render, count)?,
        Dtype::U16 => samples_of::<u16>(&render, count)?,
        _ => samples_of::<f32>(&render, count)?,
    };
    Ok(page.with_samples(samples))
}

/// Bytes that the decoder may take.
fn max_bytes(limits: Limits) -> usize {
    usize::try_from(limits.memory.max(MIN_SCRATCH)).unwrap_or(usize::MAX)
}

/// Reads the headers of all frames. The bytes are passed in parts of growing size, since the decoder begins anew with
/// each until the header of the image is complete.
fn open(codestream: &[u8], tracker: AllocTracker) -> Result<JxlImage, BoxError> {
    const FIRST: usize = 4096;
    let mut image = JxlImage::builder().alloc_tracker(tracker).build_uninit();
    let (mut passed, mut end) = (0, 0);
    loop {
        if end == codestream.len() {
            return Err("the file is truncated".into());
        }
        end = codestream.len().min((2 * end).max(FIRST));
        // The decoder may leave bytes for the next part.
        passed += image.feed_bytes(&codestream[passed..end])?;
        image = match image.try_init()? {
            InitializeResult::NeedMoreData(image) => image,
            InitializeResult::Initialized(mut image) => {
                image.feed_bytes(&codestream[passed..])?;
                return Ok(image);
            }
        };
    }
}

fn samples_of<T>(render: &Render, count: usize) -> Result<Samples, BoxError>
where
    T: FrameBufferSample + bytemuck::Zeroable,
    Samples: From<Vec<T>>,
{
    let mut samples = memory::zeros::<T>(count)?;
    if render.stream().write_to_buffer(&mut samples) != count {
        return Err("the image has fewer samples than its header states".into());
    }
    Ok(samples.into())
}

/// Names the limit if the decoder ran out of memory.
fn refine(error: BoxError, limits: Limits) -> BoxError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&*error);
    while let Some(found) = cause {
        if found.to_string().contains("failed to allocate") {
            return limits.exceeded("decoding it", limits.bytes().saturating_add(1)).into();
        }
        cause = found.source();
    }
    error
}

/// Image and metadata of a file.
#[derive(Default)]
struct Contents<'a> {
    codestream: Cow<'a, [u8]>,
    exif: Option<&'a [u8]>,
    xmp: Option<&'a [u8]>,
    losses: Vec<String>,
}

/// Separates the boxes of a container. Each has a length that includes its header, a type and data.
fn contents(bytes: &[u8]) -> Result<Contents<'_>, BoxError> {
    let mut contents = Contents::default();
    if !bytes.starts_with(CONTAINER) {
        contents.codestream = Cow::Borrowed(bytes);
        return Ok(contents);
    }
    let mut rest = bytes;
    while let Some((len, after)) = rest.split_first_chunk::<4>() {
        let (kind, mut data) = after.split_first_chunk::<4>().ok_or("the file is truncated")?;
        let len = match u32::from_be_bytes(*len) {
            0 => rest.len(),
            1 => {
                let (len, after) = data.split_first_chunk::<8>().ok_or("the file is truncated")?;
                data = after;
                usize::try_from(u64::from_be_bytes(*len))?
            }
            len => len as usize,
        };
        let header = rest.len() - data.len();
        let data_len = len.checked_sub(header).ok_or("a box is shorter than its header")?;
        // A truncated box ends with the file.
        let data = &data[..data_len.min(data.len())];
        match kind {
            b"jxlc" => contents.codestream = Cow::Borrowed(data),
            // A part of the codestream, after its number.
            b"jxlp" => {
                contents.codestream.to_mut().extend(data.get(4..).unwrap_or_default());
            }
            // EXIF begins after the offset of its TIFF header.
            b"Exif" => contents.exif = data.get(4..),
            b"xml " => contents.xmp = Some(data),
            b"brob" if matches!(data.get(..4), Some(b"Exif" | b"xml ")) => {
                contents.losses.push("its compressed metadata is left out".to_owned());
            }
            _ => {}
        }
        rest = rest.get(len..).unwrap_or_default();
    }
    contents.losses.dedup();
    Ok(contents)
}
