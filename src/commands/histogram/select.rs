//! Selects the pixels of an image to count (`--roi`, `--mask`, `--alpha`).

use std::str::FromStr;

use serde::Serialize;

use crate::{
    data::{image::Image, samples::Samples},
    for_samples,
    io::Source,
    kernels::histogram::Pixels,
    util::{
        error::{Error, Result},
        memory, parallel,
    },
};
use clap::ValueEnum;

/// Pixels to count.
#[derive(Debug, Serialize, clap::Args)]
pub struct Selection {
    /// Effect of alpha on the counts
    ///
    /// ignore counts every pixel as 1, weight counts a pixel by its opacity, skip-transparent does not count pixels
    /// of alpha 0.
    #[arg(long, value_enum, default_value = "ignore", value_name = "RULE")]
    #[arg(help_heading = "Selection of pixels")]
    pub alpha: Alpha,

    /// Count only this box; x,y is its upper left corner, in pixels
    #[arg(long, value_name = "X,Y,WIDTH,HEIGHT", help_heading = "Selection of pixels")]
    pub roi: Option<Roi>,

    /// Count only pixels where this image is not black
    ///
    /// The image has the same size. If it has alpha, transparent pixels do not count, either.
    #[arg(long, value_name = "IMAGE", help_heading = "Selection of pixels")]
    #[serde(skip)]
    pub mask: Option<Source>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
pub enum Alpha {
    Ignore,
    Weight,
    SkipTransparent,
}

/// A box in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Roi {
    x: usize,
    y: usize,
    width: usize,
    height: usize,
}

impl FromStr for Roi {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Option<Vec<usize>> =
            text.split(',').map(|part| part.trim().parse().ok()).collect();
        match numbers.as_deref() {
            Some(&[x, y, width, height]) if width > 0 && height > 0 => {
                Ok(Self { x, y, width, height })
            }
            _ => Err("expected x, y, width and height in pixels, such as 100,50,640,480".into()),
        }
    }
}

impl Selection {
    /// Selects pixels of `image`, which was read from `source`.
    pub fn apply(&self, source: &Source, image: Image, mask: Option<&Image>) -> Result<Pixels> {
        let Image { width, height, channels, .. } = image;
        let skips = self.alpha == Alpha::SkipTransparent && image.has_alpha();
        if !skips && self.roi.is_none() && mask.is_none() {
            return Ok(Pixels { samples: image.samples, channels });
        }
        let whole = Roi { x: 0, y: 0, width, height };
        let roi = self.roi.unwrap_or(whole);
        let fits = |start: usize, len: usize, all: usize| {
            start.checked_add(len).is_some_and(|end| end <= all)
        };
        if !fits(roi.x, roi.width, width) || !fits(roi.y, roi.height, height) {
            return Err(Error::bad_input(format_args!(
                "{source}: --roi {},{},{},{} is not within the image of {width} x {height} pixels",
                roi.x, roi.y, roi.width, roi.height
            )));
        }
        if let Some(mask) = mask
            && (mask.width, mask.height) != (width, height)
        {
            return Err(Error::bad_input(format_args!(
                "{source}: expected a mask of {width} x {height} pixels, found {} x {}",
                mask.width, mask.height
            )));
        }
        let masked: Option<Vec<bool>> = mask.map(in_mask).transpose()?;
        let is_selected = |at: usize| masked.as_ref().is_none_or(|masked| masked[at]);
        let rows = roi.y..roi.y + roi.height;
        let positions = rows.flat_map(|y| (y * width + roi.x)..(y * width + roi.x + roi.width));
        let positions = positions.filter(|&at| is_selected(at));
        let samples = for_samples!(&image.samples, values => {
            let mut selected = memory::room(roi.width * roi.height * channels)?;
            for at in positions {
                let pixel = &values[at * channels..(at + 1) * channels];
                if !skips || pixel[channels - 1] > Default::default() {
                    selected.extend_from_slice(pixel);
                }
            }
            Samples::from(selected)
        });
        Ok(Pixels { samples, channels })
    }
}

/// Returns for each pixel of a mask whether it is neither black nor transparent.
fn in_mask(mask: &Image) -> Result<Vec<bool>> {
    let colours = mask.channels - usize::from(mask.has_alpha());
    for_samples!(&mask.samples, values => {
        parallel::generated(values.len() / mask.channels, |at| {
            #[allow(clippy::cast_lossless, clippy::unnecessary_cast)]
            let is_positive = |v: &_| (*v as f64) > 0.0;
            let pixel = &values[at * mask.channels..][..mask.channels];
            pixel[..colours].iter().any(is_positive) && pixel[colours..].iter().all(is_positive)
        })
    })
}
