//! One image that fits into memory: read, blurred, written.

use super::flags::{Job, Settings};
use crate::{
    data::{dtype::Dtype, image::Image, raster::Raster, samples::Samples},
    device::Device,
    error::Result,
    io::image::{ImageFormat, losses, read_image, write_image},
    kernels::blur::Edge,
    session::Session,
};

/// Reads, blurs and writes the image of `job`.
///
/// # Errors
/// Those of the three steps.
pub fn process(job: &Job, settings: &Settings, session: &Session) -> Result<()> {
    let image = read_image(&job.source, session.limits(job.copies()), &session.timings)?;
    if let Some(losses) = losses(&image, ImageFormat::of_output(&job.sink)?) {
        settings.tell_losses(&format!("{}: {losses} in this format", job.sink))?;
    }
    let blurred = blur(job, settings, image, &session.device)
        .map_err(|error| error.context(format_args!("cannot blur {}", job.source)))?;
    let Settings { encoding, .. } = settings;
    write_image(&blurred, &job.sink, encoding, session.no_clobber, &session.timings)
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
