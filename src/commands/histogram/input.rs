//! Reads an image or a volume and selects the pixels that count.

use std::{str::FromStr, sync::mpsc, thread};

use clap::ValueEnum;

use super::{Args, Range};
use rayon::prelude::*;

use crate::{
    data::image::Image,
    data::samples::{Dtype, Samples},
    error::{Error, Result},
    for_samples,
    io::{Source, image::read_image, volume::VolumeFile},
    kernels::histogram::Pixels,
    memory,
    session::Session,
};

/// Which pixels count.
#[derive(Debug, clap::Args)]
pub struct Selection {
    /// What alpha does: `ignore` counts every pixel alike, `weight` counts a pixel as much as it is
    /// opaque (half, say), `skip-transparent` leaves out pixels of alpha 0
    #[arg(long, value_enum, default_value = "ignore", value_name = "RULE")]
    alpha: Alpha,

    /// Count only the box whose upper left corner is at x,y, in pixels
    #[arg(long, value_name = "X,Y,WIDTH,HEIGHT")]
    roi: Option<Roi>,

    /// Count only pixels where this image of the same size is not black (or, with alpha, not
    /// transparent)
    #[arg(long, value_name = "IMAGE")]
    mask: Option<Source>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Alpha {
    Ignore,
    Weight,
    SkipTransparent,
}

/// A box in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Roi {
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
            _ => Err("four whole numbers such as 100,50,640,480 are needed".into()),
        }
    }
}

/// What is counted.
pub enum Input {
    /// The selected pixels of an image, and the image with all its pixels, where that was asked for.
    Image(Pixels, Option<Image>),
    /// A volume in memory.
    Held(Pixels),
    /// A volume that is read part by part, whenever it is needed.
    File(VolumeFile),
}

/// Bytes of a volume's part; three of them are in memory at a time.
const PART: u64 = 32 << 20;

impl Input {
    /// Opens `source`: a volume when its extension or the flags say so, else an image, whose pixels
    /// are kept as a whole, too, when `keep` is set.
    pub fn read(source: &Source, args: &Args, keep: bool, session: &Session) -> Result<Self> {
        let (selection, layout) = (&args.selection, args.volume.layout());
        // So many times an input is in memory while it is counted, selected or adjusted.
        let times = 3 + if keep { 3 } else { 0 } + if selection.mask.is_some() { 2 } else { 0 };
        let (limit, timings) = (session.limits(times), &session.timings);
        let raw = ["raw", "bin", "vol", "dat", "gz"].contains(&source.extension().as_str());
        if raw || layout.dims.is_some() || layout.dtype.is_some() {
            if selection.roi.is_some() || selection.mask.is_some() {
                return Err(Error::usage(format_args!(
                    "{source}: --roi and --mask select pixels of images, not of volumes"
                )));
            }
            let file = VolumeFile::describe(source, &layout)?;
            file.check(limit)?;
            // Its range first, then its counts.
            let twice = args.range(file.dtype, false) == Range::Data;
            if twice && !file.can_reopen() {
                let samples = file.read(limit, timings)?.samples;
                return Ok(Self::Held(Pixels { samples, channels: 1 }));
            }
            return Ok(Self::File(file));
        }
        let image = read_image(source, limit, timings)?;
        let mask = match &selection.mask {
            Some(mask) => Some(read_image(mask, limit, timings)?),
            None => None,
        };
        let whole = keep.then(|| image.copy()).transpose()?;
        let pixels = timings.time("select", || selection.apply(source, image, mask.as_ref()))?;
        Ok(Self::Image(pixels, whole))
    }

    pub fn is_image(&self) -> bool {
        matches!(self, Self::Image(..))
    }

    pub fn dtype(&self) -> Dtype {
        match self {
            Self::Image(pixels, _) | Self::Held(pixels) => pixels.samples.dtype(),
            Self::File(file) => file.dtype,
        }
    }

    pub fn channels(&self) -> usize {
        match self {
            Self::Image(pixels, _) | Self::Held(pixels) => pixels.channels,
            Self::File(_) => 1,
        }
    }

    /// The selected pixels and the whole image, which is there no more afterwards.
    pub fn whole(&mut self) -> Option<(&Pixels, Image)> {
        match self {
            Self::Image(pixels, whole) => whole.take().map(|image| (&*pixels, image)),
            _ => None,
        }
    }

    /// Hands all samples to `consume`, part by part; the next part is read meanwhile.
    pub fn parts(
        &self,
        session: &Session,
        mut consume: impl FnMut(&Pixels) -> Result<()>,
    ) -> Result<()> {
        let file = match self {
            Self::Image(pixels, _) | Self::Held(pixels) => return consume(pixels),
            Self::File(file) => file,
        };
        let depth = file.dims[2];
        let slice = file.bytes().unwrap_or(u64::MAX) / depth as u64;
        if slice.saturating_mul(3) > session.max_memory {
            return Err(Error::bad_input(format_args!(
                "three slices of {slice} bytes are more than the {} that --max-memory allows",
                session.max_memory
            )));
        }
        let slices = (PART.min(session.max_memory / 3) / slice).clamp(1, depth as u64) as usize;
        let mut reader = file.reader()?;
        thread::scope(|scope| {
            let (send, parts) = mpsc::sync_channel(0);
            let reading = scope.spawn(move || -> Result<()> {
                for start in (0..depth).step_by(slices) {
                    let read = || reader.read(slices.min(depth - start));
                    // Nobody listens when counting has failed.
                    if send.send(session.timings.time("read", read)?).is_err() {
                        return Ok(());
                    }
                }
                reader.expect_end()
            });
            for samples in parts {
                consume(&Pixels { samples, channels: 1 })?;
            }
            reading.join().expect("the reader does not panic")
        })
    }
}

impl Selection {
    /// Whether pixels count as much as their alpha says.
    pub fn is_weighted(&self) -> bool {
        self.alpha == Alpha::Weight
    }

    fn apply(&self, source: &Source, image: Image, mask: Option<&Image>) -> Result<Pixels> {
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
                "{source}: --roi {},{},{},{} leaves the image of {width} x {height} pixels",
                roi.x, roi.y, roi.width, roi.height
            )));
        }
        if let Some(mask) = mask
            && (mask.width, mask.height) != (width, height)
        {
            return Err(Error::bad_input(format_args!(
                "the mask of {} x {} pixels does not fit {source} of {width} x {height}",
                mask.width, mask.height
            )));
        }
        let masked: Option<Vec<bool>> = mask.map(in_mask).transpose()?;
        let counts = |at: usize| masked.as_ref().is_none_or(|masked| masked[at]);
        let rows = roi.y..roi.y + roi.height;
        let places = rows.flat_map(|y| (y * width + roi.x)..(y * width + roi.x + roi.width));
        let places = places.filter(|&at| counts(at));
        macro_rules! select {
            ($variant:ident, $values:expr, $zero:expr) => {{
                let mut chosen = memory::room(roi.width * roi.height * channels)?;
                for at in places {
                    let pixel = &$values[at * channels..(at + 1) * channels];
                    if !skips || pixel[channels - 1] > $zero {
                        chosen.extend_from_slice(pixel);
                    }
                }
                Samples::$variant(chosen)
            }};
        }
        let samples = match &image.samples {
            Samples::U8(values) => select!(U8, values, 0),
            Samples::U16(values) => select!(U16, values, 0),
            Samples::F32(values) => select!(F32, values, 0.0),
            other => unreachable!("images hold no {}", other.dtype()),
        };
        Ok(Pixels { samples, channels })
    }
}

/// Whether each pixel of a mask is neither black nor transparent.
fn in_mask(mask: &Image) -> Result<Vec<bool>> {
    let colours = mask.channels - usize::from(mask.has_alpha());
    for_samples!(&mask.samples, values => {
        memory::collect(values.par_chunks_exact(mask.channels).map(|pixel| {
            #[allow(clippy::cast_lossless, clippy::unnecessary_cast)]
            let shows = |v: &_| (*v as f64) > 0.0;
            pixel[..colours].iter().any(shows) && pixel[colours..].iter().all(shows)
        }))
    })
}
