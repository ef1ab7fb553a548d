//! One image that fits into memory: read, blurred, written.

use super::flags::{Job, Settings};
use crate::{
    data::{dtype::Dtype, image::Image, jpeg::Quality, raster::Raster, samples::Samples},
    device::Device,
    error::{Error, Result},
    io::image::{
        Encoding, ImageFile, ImageFormat,
        jpeg::{Picture, has_half_chroma},
        losses, write_image, write_jpeg,
    },
    kernels::{
        blur::Edge,
        jpeg::Encode,
        jpeg_blur::{Blurred, JpegBlur},
    },
    session::Session,
};

/// Reads, blurs and writes the image of `job`.
///
/// # Errors
/// Those of the three steps.
pub fn process(job: &Job, settings: &Settings, session: &Session) -> Result<()> {
    let Session { device, timings, no_clobber, .. } = session;
    let file = ImageFile::read(&job.source, session.limits(job.copies()), timings)?;
    // A GPU is given the coefficients of a JPEG input, which take fewer bytes than its pixels, and decodes them itself.
    // The CPU blurs pixels, which are decoded while the file is read.
    if device.may_be_gpu()
        && settings.blurs_all_channels()
        && let Some(picture) = file.jpeg(timings)?
    {
        return process_jpeg(job, settings, picture, session);
    }
    let image = file.decode(timings)?;
    drop(file);
    check_losses(&image, job, session)?;
    let blurred = blur(job, settings, image, device).map_err(|error| cannot_blur(job, error))?;
    write_image(&blurred, &job.sink, &settings.encoding, *no_clobber, timings)
}

/// Tells what the output's format cannot hold.
fn check_losses(image: &Image, job: &Job, session: &Session) -> Result<()> {
    match losses(image, ImageFormat::of_output(&job.sink)?) {
        Some(losses) => {
            let losses = format!("{}: {losses} in this format", job.sink);
            Settings::tell_losses(&losses, session.strict)
        }
        None => Ok(()),
    }
}

fn cannot_blur(job: &Job, error: Error) -> Error {
    error.context(format_args!("cannot blur {}", job.source))
}

/// Blurs and writes a picture from its coefficients.
fn process_jpeg(job: &Job, settings: &Settings, picture: Picture, session: &Session) -> Result<()> {
    let Session { device, timings, no_clobber, .. } = session;
    let Picture { coefficients, metadata, .. } = picture;
    let (size, channels) = (coefficients.frame.size, coefficients.frame.colour.channels());
    let ([width, height], samples) = (size, Samples::U8(Vec::new()));
    let image = Image { width, height, channels, samples, is_linear: false, metadata };
    check_losses(&image, job, session)?;
    let Encoding { quality, .. } = settings.encoding;
    let encode = match ImageFormat::of_output(&job.sink)? {
        ImageFormat::Jpeg => {
            let half_chroma = has_half_chroma(quality);
            Some(Encode::new(size, channels, Quality(quality), half_chroma)?)
        }
        _ => None,
    };
    let kernel = JpegBlur { blur: job.blur.clone(), encode };
    let blurred = device.run(&kernel, &coefficients).map_err(|error| cannot_blur(job, error))?;
    match blurred {
        Blurred::Coefficients(blurred) => {
            write_jpeg(&blurred, &image.metadata, &job.sink, *no_clobber, timings)
        }
        Blurred::Pixels(pixels) => {
            let image = Image { samples: Samples::U8(pixels), ..image };
            write_image(&image, &job.sink, &settings.encoding, *no_clobber, timings)
        }
    }
}

fn blur(job: &Job, settings: &Settings, image: Image, device: &Device) -> Result<Image> {
    let surroundings_are_opaque = matches!(job.blur.edge, Edge::Constant(value) if value != 0.0);
    if image.is_linear && image.has_alpha() && surroundings_are_opaque {
        // The kernel adds opaque surroundings only to alpha that is not premultiplied.
        let straight = image.to_straight(Dtype::F32)?;
        return blur(job, settings, straight, device)?.to_linear();
    }
    let Image { width, height, channels, samples, is_linear, metadata } = image;
    let kept = settings.kept_channels(channels)?;
    // Linear images are premultiplied already.
    let alpha = matches!(channels, 2 | 4) && !is_linear;
    let raster = Raster { dims: [width, height, 1], channels, alpha, samples };
    let mut samples = device.run(&job.blur, &raster)?;
    for channel in kept {
        copy_channel(&raster.samples, &mut samples, channel, channels);
    }
    Ok(Image { width, height, channels, samples, is_linear, metadata })
}

/// Copies one of `channels` interleaved channels.
pub fn copy_channel(from: &Samples, to: &mut Samples, channel: usize, channels: usize) {
    fn copy<T: Copy>(from: &[T], to: &mut [T], channel: usize, channels: usize) {
        let to = to.iter_mut().skip(channel).step_by(channels);
        to.zip(from.iter().skip(channel).step_by(channels)).for_each(|(to, &from)| *to = from);
    }
    match (from, to) {
        (Samples::U8(from), Samples::U8(to)) => copy(from, to, channel, channels),
        (Samples::U16(from), Samples::U16(to)) => copy(from, to, channel, channels),
        (Samples::F32(from), Samples::F32(to)) => copy(from, to, channel, channels),
        _ => unreachable!("a blur keeps the type"),
    }
}
