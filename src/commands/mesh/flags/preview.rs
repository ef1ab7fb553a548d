//! The flags of `--preview`.

use std::str::FromStr;

use super::super::{
    names::{ISO_FIELD, has_field},
    preview::Preview,
};
use crate::{
    io::{Sink, image::ImageFormat},
    kernels::render::Render,
    util::error::{Error, Result},
};

/// Whether and how to draw the surface.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Picture of the surface")]
pub(super) struct PreviewArgs {
    /// Also draw the surface to this image, smoothly shaded and framed to fit; {iso} becomes the isovalue. Without
    /// {iso}, one picture shows all surfaces of a GLB, translucent around that of the greatest isovalue
    #[arg(long, value_name = "FILE")]
    preview: Option<Sink>,

    /// Direction of the camera in degrees: how far it is turned around z, from looking along +y, and raised; also the
    /// first view of a page [default: 30,15, or 210,15 where +y is the front of a patient]
    #[arg(long, value_name = "AZIMUTH,ELEVATION", allow_hyphen_values = true)]
    view: Option<ViewAngles>,

    /// Pixels of the picture
    #[arg(long, value_name = "WxH", default_value = "1024x1024")]
    size: Size,

    /// Colour behind the surface: none (transparent), a CSS colour such as white or #336699
    #[arg(long, value_name = "COLOUR", default_value = "none")]
    background: Background,
}

/// Two angles in degrees.
#[derive(Clone, Copy, Debug)]
struct ViewAngles([f32; 2]);

impl FromStr for ViewAngles {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let angles = text.split_once(',').and_then(|(azimuth, elevation)| {
            Some([azimuth.trim().parse::<f32>().ok()?, elevation.trim().parse::<f32>().ok()?])
        });
        angles
            .filter(|angles| angles.iter().all(|angle| angle.is_finite()))
            .map(Self)
            .ok_or_else(|| format!("`{text}` is not of the form 30,15"))
    }
}

/// Width and height in pixels.
#[derive(Clone, Copy, Debug)]
struct Size([u32; 2]);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sides = text.split_once(['x', 'X']).and_then(|(width, height)| {
            Some([width.parse::<u32>().ok()?, height.parse::<u32>().ok()?])
        });
        sides
            .filter(|sides| sides.iter().all(|side| (1..=Render::MAX_SIDE).contains(side)))
            .map(Self)
            .ok_or_else(|| {
                format!(
                    "`{text}` is not of the form 1024x768, with sides of at most {}",
                    Render::MAX_SIDE
                )
            })
    }
}

/// Red, green, blue and alpha, 0 to 1.
#[derive(Clone, Copy, Debug)]
struct Background([f32; 4]);

impl FromStr for Background {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("none") {
            return Ok(Self([0.0; 4]));
        }
        let colour = csscolorparser::parse(text).map_err(|_| {
            format!("`{text}` is not a colour such as none, white, steelblue, #fff or #336699")
        })?;
        match colour.a {
            // A fully transparent colour is the same as none.
            0.0 => Ok(Self([0.0; 4])),
            _ => Ok(Self([colour.r, colour.g, colour.b, 1.0])),
        }
    }
}

impl PreviewArgs {
    /// Azimuth and elevation, in degrees; `None` for the default.
    pub(super) fn view(&self) -> Option<[f32; 2]> {
        self.view.map(|angles| angles.0)
    }

    /// The requested picture, if any. If there are `several` isovalues, each needs its own picture, unless their surfaces are
    /// `together` in one file.
    ///
    /// # Errors
    /// [`Kind::Usage`](crate::util::error::Kind::Usage) for an unknown format, or one name for several pictures.
    pub(super) fn job(&self, several: bool, together: bool) -> Result<Option<Preview>> {
        let Some(sink) = &self.preview else { return Ok(None) };
        ImageFormat::of_output(sink)?;
        let has_place = has_field(sink, ISO_FIELD);
        if several && !has_place && !together {
            return Err(Error::usage(
                "--preview needs {iso} in its name where several --iso are not in one GLB",
            ));
        }
        let (size, background) = (self.size.0, self.background.0);
        let render = Render { size, azimuth: 0.0, elevation: 0.0, background, frame: None };
        let is_together = several && !has_place;
        Ok(Some(Preview { sink: sink.clone(), render, is_together }))
    }
}
