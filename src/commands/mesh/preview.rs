//! `--preview`: a shaded picture of the surface.

use std::str::FromStr;

use clap::Args;

use super::named;
use crate::{
    data::{
        image::{Image, Metadata},
        samples::Samples,
        surface::Surface,
    },
    error::{Error, Result},
    io::{
        Sink,
        image::{Encoding, ImageFormat, write_image},
    },
    kernels::render::Render,
    session::Session,
};

/// Whether and how to draw the surface.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Picture of the surface")]
pub struct PreviewArgs {
    /// Also draw the surface to this image, smoothly shaded and framed to fit; {iso} becomes the
    /// isovalue
    #[arg(long, value_name = "FILE")]
    preview: Option<Sink>,

    /// Degrees: how far the camera is turned around z, from looking along +y, and raised
    #[arg(
        long,
        value_name = "AZIMUTH,ELEVATION",
        default_value = "30,15",
        allow_hyphen_values = true
    )]
    view: ViewAngles,

    /// Pixels of the picture
    #[arg(long, value_name = "WxH", default_value = "1024x1024")]
    size: Size,

    /// Colour behind the surface: none (transparent) or #RRGGBB
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
        if text == "none" {
            return Ok(Self([0.0; 4]));
        }
        let hex = text.strip_prefix('#').filter(|hex| hex.len() == 6);
        let number = hex.and_then(|hex| u32::from_str_radix(hex, 16).ok());
        let [_, red, green, blue] = number
            .ok_or_else(|| format!("`{text}` is neither none nor of the form #336699"))?
            .to_be_bytes();
        let [red, green, blue] = [red, green, blue].map(|channel| f32::from(channel) / 255.0);
        Ok(Self([red, green, blue, 1.0]))
    }
}

impl PreviewArgs {
    /// Whether the surface is to be drawn.
    pub fn is_wanted(&self) -> bool {
        self.preview.is_some()
    }

    /// About how many seconds the CPU twin takes, on so many cores.
    pub fn cpu_time(&self, cores: f64) -> f64 {
        const PER_PIXEL: f64 = 1e-6;
        let [width, height] = self.size.0.map(f64::from);
        if self.is_wanted() { PER_PIXEL * width * height / cores } else { 0.0 }
    }

    /// Fails now, before the work, where the picture cannot be written.
    ///
    /// # Errors
    /// [`Kind::Usage`](crate::error::Kind::Usage) for an unknown format, or one name for several
    /// pictures; [`Kind::Io`](crate::error::Kind::Io) where no file can be.
    pub fn check(&self, several: bool, session: &Session) -> Result<()> {
        let Some(sink) = &self.preview else { return Ok(()) };
        ImageFormat::of_output(sink)?;
        if several && !sink.to_string().contains("{iso}") {
            return Err(Error::usage(
                "--preview needs {iso} in its name where there are several --iso",
            ));
        }
        sink.create(session.no_clobber).map(drop)
    }

    /// Draws `surface`, if a picture is wanted.
    ///
    /// # Errors
    /// Those of the device and of writing the image.
    pub fn draw(&self, iso: f64, surface: &Surface, session: &Session) -> Result<()> {
        let Some(sink) = &self.preview else { return Ok(()) };
        let sink = named(sink, iso);
        let [azimuth, elevation] = self.view.0;
        let (size, background) = (self.size.0, self.background.0);
        let render = Render { size, azimuth, elevation, background };
        let picture = session.device.run(&render, surface)?;
        let [width, height] = size.map(|side| side as usize);
        let samples = Samples::U8(picture);
        let metadata = Metadata::default();
        let image = Image { width, height, channels: 4, samples, is_linear: false, metadata };
        let encoding = Encoding::default();
        write_image(&image, &sink, &encoding, session.no_clobber, &session.timings)?;
        log::info!("picture: {sink}");
        Ok(())
    }
}
