//! Drawings of plots, as SVG and as pixels, which look the same.

mod axis;
mod color_bar;
mod drawing;
mod font;
mod pixels;
mod svg;

pub use axis::{decades, grouped, short_number, ticks};
pub use color_bar::ColorBar;
pub use drawing::{Anchor, Colour, Drawing, LETTERS, Mark, Paint, TITLE, Theme, text_width};

use std::io::Write as _;

use super::{
    Sink,
    image::{Encoding, ImageFormat, ImageTarget},
};
use crate::{
    data::{
        image::{Image, Metadata},
        samples::Samples,
    },
    util::{
        error::{Error, Kind, Result},
        timings::Timings,
    },
};

impl Drawing {
    /// The drawing as an SVG document.
    pub fn to_svg(&self) -> String {
        svg::document(self)
    }

    /// The drawing as 8-bit RGB pixels.
    pub fn to_image(&self) -> Result<Image> {
        let (width, height) = (self.width, self.height);
        let rgb = pixels::rgb(self).ok_or_else(|| {
            Error::new(
                Kind::Failure,
                format_args!("cannot draw a plot of {width} x {height} pixels"),
            )
        })?;
        let (samples, metadata) = (Samples::U8(rgb), Metadata::default());
        Ok(Image { width, height, channels: 3, samples, is_linear: false, metadata })
    }

    /// Writes the drawing as SVG.
    pub fn write_svg(&self, sink: &Sink, no_clobber: bool, timings: &Timings) -> Result<()> {
        let svg = self.to_svg();
        let write = || sink.write_with(no_clobber, |file| file.write_all(svg.as_bytes()));
        timings.time("write", write)
    }

    /// Writes the drawing as PNG.
    pub fn write_png(&self, sink: &Sink, no_clobber: bool, timings: &Timings) -> Result<()> {
        let image = timings.time("plot", || self.to_image())?;
        let mut target = ImageTarget::new(sink, ImageFormat::Png, Encoding::default(), timings);
        target.no_clobber = no_clobber;
        target.write(image)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_colours_mix() {
        let mut drawing = Drawing::new(2, 1, Theme::DARK);
        drawing.rectangle(0.0, 0.0, 2.0, 1.0, Paint::Over([0; 3], 1.0));
        drawing.rectangle(0.0, 0.0, 2.0, 1.0, Paint::Screen([255, 0, 0]));
        drawing.rectangle(1.0, 0.0, 1.0, 1.0, Paint::Screen([0, 255, 0]));
        let image = drawing.to_image().unwrap();
        assert_eq!(image.samples, Samples::U8(vec![255, 0, 0, 255, 255, 0]));
    }

    #[test]
    fn names_may_hold_anything() {
        let mut drawing = Drawing::new(200, 20, Theme::DARK);
        drawing.text(0.0, 10.0, Anchor::Start, "<a> & \"b\" \u{1} \u{1f600}", Theme::DARK.strong);
        drawing.legend(190.0, 10.0, &[("x<y", Mark::Line, Theme::DARK.strong)]);
        let Samples::U8(bytes) = drawing.to_image().unwrap().samples else { unreachable!() };
        assert!(bytes.iter().any(|&byte| byte > 200), "the text is drawn");
    }
}
