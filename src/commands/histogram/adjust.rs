//! Writes images that are adjusted by their histograms (`--equalize`, `--auto-levels`).

use super::{
    input::Input,
    job::{Adjustment, Settings},
};
use crate::{
    data::image::Image,
    engine::session::Session,
    io::{
        Source, allow_broken_pipe,
        image::{Encoding, ImageFormat},
    },
    kernels::histogram::{LookupTable, Pixels, luminance_histogram},
    util::error::{Error, Result},
};

/// Writes the adjusted images of `input`, if any. Takes the whole image out of `input`. Only images of one page with
/// samples of 8 or 16 bits can be adjusted.
pub fn write(
    source: &Source,
    input: &mut Input<'_>,
    settings: &Settings,
    session: &Session,
) -> Result<()> {
    if settings.adjustments.is_empty() {
        return Ok(());
    }
    let Some((selected, image)) = input.take_whole() else {
        return Err(Error::bad_input(format_args!(
            "{source}: --equalize and --auto-levels adjust one image; choose a page with --page"
        )));
    };
    let levels = luminance_histogram(image.samples.dtype(), image.channels)?;
    let counts = session.device.run(&levels, selected)?;
    let pixels = Pixels { samples: image.samples, channels: image.channels };
    for (output, adjustment) in &settings.adjustments {
        let adjust = match *adjustment {
            Adjustment::Equalize => LookupTable::equalize(&counts[0]),
            Adjustment::AutoLevels(clip) => LookupTable::levels(&counts[0], clip),
        };
        let samples = session.device.run(&adjust, &pixels)?;
        let format = ImageFormat::for_output(output)?;
        let target = session.image_target(output, format, Encoding::default());
        allow_broken_pipe(target.write(Image {
            samples,
            metadata: image.metadata.clone(),
            ..image
        }))?;
    }
    Ok(())
}
