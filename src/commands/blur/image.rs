//! Blurs images that fit into memory, page by page.

use std::ops::Range;

use bytemuck::{cast_slice, cast_slice_mut};

use super::flags::{Job, Settings};
use crate::{
    data::{dtype::Dtype, image::Image, jpeg::Quality, raster::Raster, samples::Samples},
    device::Device,
    error::{Error, Result},
    io::{
        image::{
            Animation, Encoding, ImageFile, ImageFormat, ImagePages, ImageTarget, Series,
            jpeg::{Picture, has_half_chroma},
        },
        losses,
    },
    kernels::{
        blur::{Edge, blur_raster},
        jpeg::Encode,
        jpeg_blur::{Blurred, JpegBlur},
    },
    session::Session,
};

/// Reads, blurs and writes the image of `job`, or its pages.
///
/// # Errors
/// When reading, blurring or writing fails.
pub fn process(job: &Job, settings: &Settings, session: &Session) -> Result<()> {
    let Session { device, timings, .. } = session;
    let file = ImageFile::read(&job.source, session.limits(job.copies()), timings)?;
    let format = job.format.map_or_else(|| file.format(), Ok)?;
    let target = session.image_target(&job.sink, format, settings.encoding);
    // A GPU takes the coefficients of a JPEG, which have fewer bytes than its pixels, and decodes them itself. The CPU
    // blurs pixels, which are decoded while the file is read.
    if device.may_be_gpu()
        && settings.blurs_all_channels()
        && settings.pages.is_none()
        && let Some(picture) = file.jpeg(timings)?
    {
        return process_jpeg(job, settings, picture, &target, session);
    }
    let mut pages = file.pages(timings)?;
    let chosen = match settings.pages {
        Some(range) => range.of(&job.source, pages.count())?,
        None => 0..pages.count(),
    };
    if chosen.len() > 1 && target.holds_pages() {
        return process_pages(job, settings, &mut pages, chosen, &target, session);
    }
    if chosen.len() > 1 {
        let lost = format_args!("of {} pages only the first goes into this format", chosen.len());
        losses::tell(&job.sink, lost, session.strict)?;
    }
    let image = pages.decode(chosen.start, timings)?;
    drop(pages);
    drop(file);
    target.check(&image)?;
    let blurred = blur(job, settings, image, device).map_err(|error| cannot_blur(job, error))?;
    target.write(&blurred)
}

/// Blurs the pages `chosen` one after the other.
fn process_pages(
    job: &Job,
    settings: &Settings,
    pages: &mut ImagePages<'_>,
    chosen: Range<usize>,
    target: &ImageTarget<'_>,
    session: &Session,
) -> Result<()> {
    let Session { device, timings, .. } = session;
    let animation = pages.animation().map(|animation| Animation {
        plays: animation.plays,
        delays: animation.delays[chosen.clone()].to_vec(),
    });
    let sizes = chosen.clone().map(|page| pages.sample_bytes(page).unwrap_or(0));
    let sample_bytes = sizes.fold(0u64, u64::saturating_add);
    let series = Series { count: chosen.len(), sample_bytes, animation };
    let mut bar = session.progress.bar("pages", chosen.len() as u64);
    target.write_pages(series, |writer| {
        for page in chosen {
            let image = pages.decode(page, timings)?;
            let blurred = blur(job, settings, image, device);
            writer.page(&blurred.map_err(|error| cannot_blur(job, error))?)?;
            bar.advance(1);
        }
        Ok(())
    })
}

fn cannot_blur(job: &Job, error: Error) -> Error {
    error.context(format_args!("cannot blur {}", job.source))
}

/// Blurs and writes a JPEG from its coefficients.
fn process_jpeg(
    job: &Job,
    settings: &Settings,
    picture: Picture,
    target: &ImageTarget<'_>,
    session: &Session,
) -> Result<()> {
    let Picture { coefficients, metadata, .. } = picture;
    let (size, channels) = (coefficients.frame.size, coefficients.frame.colour.channels());
    let ([width, height], samples) = (size, Samples::U8(Vec::new()));
    let image = Image { width, height, channels, samples, is_linear: false, metadata };
    target.check(&image)?;
    let Encoding { quality, .. } = settings.encoding;
    let encode = match target.format() {
        ImageFormat::Jpeg => {
            let half_chroma = has_half_chroma(quality);
            Some(Encode::new(size, channels, Quality(quality), half_chroma)?)
        }
        _ => None,
    };
    let kernel = JpegBlur { blur: job.blur.clone(), encode };
    let blurred =
        session.device.run(&kernel, &coefficients).map_err(|error| cannot_blur(job, error))?;
    match blurred {
        Blurred::Coefficients(blurred) => target.write_jpeg(&blurred, &image.metadata),
        Blurred::Pixels(pixels) => target.write(&Image { samples: Samples::U8(pixels), ..image }),
    }
}

/// Blurs an image in memory with the blur of `job`.
pub fn blur(job: &Job, settings: &Settings, image: Image, device: &Device) -> Result<Image> {
    let surroundings_are_opaque = matches!(job.blur.edge, Edge::Constant(value) if value != 0.0);
    if image.is_linear && image.has_alpha() && surroundings_are_opaque {
        // The kernel takes opaque surroundings (a constant edge) only for straight alpha.
        let straight = image.to_straight(Dtype::F32)?;
        return blur(job, settings, straight, device)?.to_linear();
    }
    let Image { width, height, channels, samples, is_linear, metadata } = image;
    let kept = settings.kept_channels(channels)?;
    // Images in linear light hold premultiplied alpha.
    let alpha = matches!(channels, 2 | 4) && !is_linear;
    let raster = Raster { dims: [width, height, 1], channels, alpha, samples };
    let mut samples = blur_raster(device, &job.blur, &raster)?;
    for channel in kept {
        copy_channel(&raster.samples, &mut samples, channel, channels);
    }
    Ok(Image { width, height, channels, samples, is_linear, metadata })
}

/// Copies the channel `channel` of `channels` interleaved ones.
pub fn copy_channel(from: &Samples, to: &mut Samples, channel: usize, channels: usize) {
    fn copy<T: Copy>(from: &[T], to: &mut [T], channel: usize, channels: usize) {
        let to = to.iter_mut().skip(channel).step_by(channels);
        to.zip(from.iter().skip(channel).step_by(channels)).for_each(|(to, &from)| *to = from);
    }
    let size = from.dtype().size();
    let (from, to) = (from.as_bytes(), to.as_bytes_mut());
    match size {
        1 => copy(from, to, channel, channels),
        2 => copy::<u16>(cast_slice(from), cast_slice_mut(to), channel, channels),
        4 => copy::<u32>(cast_slice(from), cast_slice_mut(to), channel, channels),
        _ => copy::<u64>(cast_slice(from), cast_slice_mut(to), channel, channels),
    }
}
