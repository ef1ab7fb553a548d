//! `--preview`: a shaded picture of one or several surfaces.

use super::{
    budget::allow,
    names::{ISO_FIELD, fill_field},
};
use crate::{
    data::{
        image::{Image, Metadata},
        samples::Samples,
        surface::Surface,
    },
    engine::session::Session,
    io::{
        Sink, allow_broken_pipe,
        image::{Encoding, ImageFormat},
        plot::ColorBar,
    },
    kernels::render::{Frame, Render},
    util::error::Result,
};

/// Settings of the pictures.
#[derive(Clone, Debug)]
pub(super) struct Preview {
    /// The output. `{iso}` in its name stands for the isovalue.
    pub(super) sink: Sink,
    pub(super) render: Render,
    /// Whether one picture shows the surfaces of all isovalues.
    pub(super) is_together: bool,
}

/// The appearance of one of several surfaces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layer {
    pub(super) iso: f64,
    /// Colour of all vertices, in sRGB, unless the vertices have colours.
    pub(super) color: [u8; 3],
    pub(super) alpha: f32,
    pub(super) bar: Option<ColorBar>,
}

impl Preview {
    /// Estimated seconds to draw the picture on one core.
    pub(super) fn core_seconds(&self) -> f64 {
        const PER_PIXEL: f64 = 1e-6;
        let [width, height] = self.render.size.map(f64::from);
        PER_PIXEL * width * height
    }

    /// The output for the picture of isovalue `iso`.
    pub(super) fn name(&self, iso: f64) -> Sink {
        fill_field(&self.sink, ISO_FIELD, iso)
    }

    /// Fails before the work begins if the picture cannot be written.
    pub(super) fn check(&self, session: &Session) -> Result<()> {
        self.allow(&Surface::default(), session)?;
        let format = ImageFormat::for_output(&self.sink)?;
        if session.strict {
            // Only the background may be transparent: one such pixel shows whether the format can store the picture.
            let pixel = Image {
                width: 1,
                height: 1,
                channels: 4,
                samples: Samples::U8(vec![0, 0, 0, self.background()[3]]),
                is_linear: false,
                metadata: Metadata::default(),
            };
            session.image_target(&self.sink, format, Encoding::default()).check(&pixel)?;
        }
        self.sink.create(session.no_clobber).map(drop)
    }

    /// Background colour of the picture: red, green, blue and alpha.
    fn background(&self) -> [u8; 4] {
        self.render.background.map(|v| (255.0 * v).round() as u8)
    }

    /// Fails if a picture of `surface` takes too much memory.
    fn allow(&self, surface: &Surface, session: &Session) -> Result<()> {
        let [width, height] = self.render.size;
        // Per pixel, 4 bytes of the picture and 4 of the encoded file. To compose a picture of several surfaces, three
        // further pictures are needed.
        let layers = if self.is_together { 12 } else { 0 };
        let file = (8 + layers) * u64::from(width) * u64::from(height);
        let bytes = self.render.bytes(surface).saturating_add(file);
        allow(&format!("a picture of {width}x{height} pixels"), surface, bytes, session)
    }

    /// Draws a surface to `sink`.
    pub(super) fn draw(
        &self,
        sink: &Sink,
        surface: &Surface,
        bar: Option<ColorBar>,
        session: &Session,
    ) -> Result<()> {
        self.allow(surface, session)?;
        self.write(sink, session.device.run(&self.render_without_bar(bar), surface)?, bar, session)
    }

    /// Settings for drawing the surface, without the strip of the picture that the colour bar takes.
    fn render_without_bar(&self, bar: Option<ColorBar>) -> Render {
        let mut render = self.render;
        render.size[0] -= bar.map_or(0, |bar| bar.width(render.size));
        render
    }

    /// Draws several surfaces, each in its colour: one picture of each or one of all. In one picture, the surface of
    /// the maximum isovalue lies inside the others, which are translucent. It has a colour bar if all have the same.
    pub(super) fn draw_layers(
        &self,
        layers: &mut [(Layer, &mut Surface)],
        session: &Session,
    ) -> Result<()> {
        let first = layers.first().and_then(|(layer, _)| layer.bar);
        let shared = first.filter(|bar| layers.iter().all(|(layer, _)| layer.bar == Some(*bar)));
        let is_full = |surface: &Surface| !surface.triangles.is_empty();
        let frames = layers.iter().filter(|(_, surface)| is_full(surface));
        let frames = frames.map(|(_, surface)| self.render.frame_of(surface));
        let frame = frames.reduce(Frame::union).filter(|_| self.is_together);
        // From the innermost surface, that of the maximum isovalue, to the outermost.
        layers.sort_by(|one, other| other.0.iso.total_cmp(&one.0.iso));
        let mut all: Option<Vec<u8>> = None;
        for (layer, surface) in layers {
            self.allow(surface, session)?;
            let is_plain = surface.colors.is_empty();
            if is_plain {
                surface.colors = vec![layer.color; surface.positions.len()];
            }
            let background = if self.is_together { [0.0; 4] } else { self.render.background };
            let bar = if self.is_together { shared } else { layer.bar };
            let render = Render { frame, background, ..self.render_without_bar(bar) };
            let picture = session.device.run(&render, surface);
            if is_plain {
                surface.colors = Vec::new();
            }
            let picture = picture?;
            if self.is_together {
                all = Some(match all.take() {
                    Some(behind) => over(&picture, layer.alpha, &behind),
                    None => picture,
                });
            } else {
                self.write(&self.name(layer.iso), picture, bar, session)?;
            }
        }
        let Some(picture) = all else { return Ok(()) };
        let picture = over(&picture, 1.0, &self.background().repeat(picture.len() / 4));
        self.write(&self.sink, picture, shared, session)
    }

    fn write(
        &self,
        sink: &Sink,
        mut picture: Vec<u8>,
        bar: Option<ColorBar>,
        session: &Session,
    ) -> Result<()> {
        if let Some(bar) = bar {
            picture = bar.append(picture, self.render.size, self.background())?;
        }
        let samples = Samples::U8(picture);
        let [width, height] = self.render.size.map(|side| side as usize);
        let metadata = Metadata::default();
        let image = Image { width, height, channels: 4, samples, is_linear: false, metadata };
        let target =
            session.image_target(sink, ImageFormat::for_output(sink)?, Encoding::default());
        allow_broken_pipe(target.write(image))?;
        log::info!("picture: {sink}");
        Ok(())
    }
}

/// Blends the RGBA picture `front`, with its alpha multiplied by `opacity`, over `behind`. Colours are blended in sRGB;
/// alpha is not premultiplied.
fn over(front: &[u8], opacity: f32, behind: &[u8]) -> Vec<u8> {
    let mut picture = Vec::with_capacity(front.len());
    for (front, behind) in front.as_chunks::<4>().0.iter().zip(behind.as_chunks::<4>().0) {
        let [near, far] = [front, behind].map(|pixel| pixel.map(|v| f32::from(v) / 255.0));
        let near_alpha = near[3] * opacity;
        let far_alpha = far[3] * (1.0 - near_alpha);
        let alpha = near_alpha + far_alpha;
        let mixed = |i: usize| (near[i] * near_alpha + far[i] * far_alpha) / alpha.max(1e-6);
        let pixel = [mixed(0), mixed(1), mixed(2), alpha];
        picture.extend(pixel.map(|v| (255.0 * v).round() as u8));
    }
    picture
}
