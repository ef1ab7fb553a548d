//! The flags of `--preview`.

use super::super::{
    names::{ISO_FIELD, has_field},
    preview::Preview,
};
use crate::{
    commands::flags::check_fields,
    io::{Sink, image::ImageFormat},
    kernels::render::Render,
    util::error::{Error, Result},
};

/// Whether and how to draw the surface.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Picture of the surface")]
pub(super) struct PreviewArgs {
    /// Also draw the surface to this image file
    ///
    /// The picture is smoothly shaded and framed to fit. {iso} in its name becomes the isovalue. Without {iso}, one
    /// picture shows all surfaces of a GLB, translucent around that of the maximum isovalue.
    #[arg(long, value_name = "FILE", help_heading = None)]
    preview: Option<Sink>,

    /// Direction of the camera: azimuth and elevation in degrees
    ///
    /// The azimuth turns the camera around z, from looking along +y. The elevation raises it. Also the first view
    /// of a page [default: 30,15, or 210,15 where +y is the front of a patient]
    #[arg(long, value_name = "AZIMUTH,ELEVATION", value_parser = angles, allow_hyphen_values = true)]
    view: Option<[f32; 2]>,

    /// Width and height of the picture in pixels
    #[arg(long, value_name = "WxH", value_parser = size, default_value = "1024x1024", requires = "preview")]
    size: [u32; 2],

    /// Background of the picture: none (transparent) or a CSS colour
    ///
    /// Such as white or #336699.
    #[arg(long, value_name = "COLOUR", value_parser = background, default_value = "none", requires = "preview")]
    background: [f32; 4],
}

impl PreviewArgs {
    /// Draws no picture.
    pub(super) fn remove(&mut self) {
        self.preview = None;
    }

    /// Azimuth and elevation, in degrees; `None` for the default.
    pub(super) fn view(&self) -> Option<[f32; 2]> {
        self.view
    }

    /// The requested picture, if any. If there are `several` isovalues, each needs its own picture, unless their
    /// surfaces are `together` in one file.
    pub(super) fn job(&self, several: bool, together: bool) -> Result<Option<Preview>> {
        let Some(sink) = &self.preview else { return Ok(None) };
        ImageFormat::for_output(sink)?;
        check_fields(sink.to_string().as_ref(), &[ISO_FIELD])?;
        let has_place = has_field(sink, ISO_FIELD);
        if several && !has_place && !together {
            return Err(Error::usage(
                "--preview needs {iso} in its name where several --iso are not in one GLB",
            ));
        }
        let &Self { size, background, .. } = self;
        let render = Render { size, azimuth: 0.0, elevation: 0.0, background, frame: None };
        let is_together = several && !has_place;
        Ok(Some(Preview { sink: sink.clone(), render, is_together }))
    }
}

/// Parses two angles in degrees, as 30,15.
fn angles(text: &str) -> Result<[f32; 2], String> {
    let angle = |text: &str| text.trim().parse().ok().filter(|angle: &f32| angle.is_finite());
    text.split_once(',')
        .and_then(|(azimuth, elevation)| Some([angle(azimuth)?, angle(elevation)?]))
        .ok_or_else(|| "expected two angles in degrees such as 30,15".into())
}

/// Parses width and height in pixels, as 1024x768.
fn size(text: &str) -> Result<[u32; 2], String> {
    let side = |text: &str| text.parse().ok().filter(|side| (1..=Render::MAX_SIDE).contains(side));
    let size =
        text.split_once(['x', 'X']).and_then(|(width, height)| Some([side(width)?, side(height)?]));
    size.ok_or_else(|| {
        format!("expected a size such as 1024x768, at most {0}x{0}", Render::MAX_SIDE)
    })
}

/// Parses a colour to red, green, blue and alpha from 0 to 1. A fully transparent colour is the same as none.
fn background(text: &str) -> Result<[f32; 4], String> {
    if text.eq_ignore_ascii_case("none") {
        return Ok([0.0; 4]);
    }
    let colour = csscolorparser::parse(text)
        .map_err(|_| "expected none, or a colour such as white, steelblue, #fff or #336699")?;
    Ok(if colour.a == 0.0 { [0.0; 4] } else { [colour.r, colour.g, colour.b, 1.0] })
}
