//! A shaded picture of the surface.

use super::{memory::allow, names::named};
use crate::{
    data::{
        image::{Image, Metadata},
        samples::Samples,
        surface::Surface,
    },
    error::Result,
    io::{
        Sink, allow_broken_pipe,
        image::{Encoding, ImageFormat},
    },
    kernels::render::Render,
    session::Session,
};

/// A picture to be drawn of each surface.
#[derive(Clone, Debug)]
pub(super) struct Preview {
    /// Its name; `{iso}` stands for the isovalue.
    pub(super) sink: Sink,
    pub(super) render: Render,
}

impl Preview {
    /// Seconds that the CPU twin takes, about, on so many cores.
    pub(super) fn cpu_time(&self, cores: f64) -> f64 {
        const PER_PIXEL: f64 = 1e-6;
        let [width, height] = self.render.size.map(f64::from);
        PER_PIXEL * width * height / cores
    }

    /// Where the picture of isovalue `iso` goes.
    pub(super) fn name(&self, iso: f64) -> Sink {
        named(&self.sink, iso)
    }

    /// Fails now, before the work, where the picture cannot be written.
    pub(super) fn check(&self, session: &Session) -> Result<()> {
        self.allow(&Surface::default(), session)?;
        let format = ImageFormat::of_output(&self.sink)?;
        if session.strict {
            // The background is what is seen through, if anything is.
            let alpha = (self.render.background[3] * 255.0).round() as u8;
            let pixel = Image {
                width: 1,
                height: 1,
                channels: 4,
                samples: Samples::U8(vec![0, 0, 0, alpha]),
                is_linear: false,
                metadata: Metadata::default(),
            };
            session.image_target(&self.sink, format, Encoding::default()).check(&pixel)?;
        }
        self.sink.create(session.no_clobber).map(drop)
    }

    /// Refuses a picture that takes more than the memory.
    fn allow(&self, surface: &Surface, session: &Session) -> Result<()> {
        let [width, height] = self.render.size;
        // The picture, and what it is packed to.
        let file = 8 * u64::from(width) * u64::from(height);
        let bytes = self.render.bytes(surface).saturating_add(file);
        allow(&format!("a picture of {width}x{height} pixels"), surface, bytes, session)
    }

    /// Draws the surface at isovalue `iso`.
    pub(super) fn draw(&self, iso: f64, surface: &Surface, session: &Session) -> Result<()> {
        self.allow(surface, session)?;
        let sink = self.name(iso);
        let samples = Samples::U8(session.device.run(&self.render, surface)?);
        let [width, height] = self.render.size.map(|side| side as usize);
        let metadata = Metadata::default();
        let image = Image { width, height, channels: 4, samples, is_linear: false, metadata };
        let target =
            session.image_target(&sink, ImageFormat::of_output(&sink)?, Encoding::default());
        allow_broken_pipe(target.write(&image))?;
        log::info!("picture: {sink}");
        Ok(())
    }
}
