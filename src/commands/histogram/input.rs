//! Input of a histogram: an image, or a volume that is read in parts.

use std::ops::Range;

use super::job::{self, Settings};
use crate::{
    commands::flags::{check_image_flags, with_pages_hint},
    data::{
        dtype::Dtype,
        grid::{GridType, Shape},
        image::Image,
        samples::Samples,
        shard::Shard,
    },
    engine::{DescribeOnce, reduce::for_each_block, session::Session},
    io::{
        Limits, Source,
        image::{ImageFile, Picture, read_image, sample_bytes},
        volume::{VolumeFile, can_reopen, is_volume},
    },
    jpeg::SparseCoefficients,
    kernels::{
        histogram::{Pixels, VALUE_COUNTS_BYTES},
        jpeg::Decode,
    },
    util::error::{Error, Result},
};

/// An input to count.
pub struct CountJob {
    pub source: Source,
    /// The volume in it, if it is one.
    pub described: DescribeOnce,
}

/// An opened input.
pub enum Input<'a> {
    /// Selected pixels of an image, and the whole image if it is to be adjusted.
    Image(Pixels, Option<Box<Image>>),
    /// Coefficients of a JPEG whose pixels are all counted.
    Jpeg(SparseCoefficients),
    /// A JPEG file whose pixels are counted while they are decoded, and its number of channels.
    JpegFile(ImageFile<'a>, usize),
    /// Several pages of an image file, which each pass decodes one by one.
    Pages(Box<PageStack<'a>>),
    /// A volume in memory.
    InMemory(Pixels),
    /// A volume that each pass reads in parts.
    Streamed(Box<VolumeFile>),
}

/// Pages of an image file that are counted together.
pub struct PageStack<'a> {
    source: &'a Source,
    file: ImageFile<'a>,
    pages: Range<usize>,
    settings: &'a Settings,
    mask: Option<Image>,
    /// Sample type of every page.
    dtype: Dtype,
    /// Channels of every page.
    channels: usize,
}

/// Smaller parts are joined up to this number of pixels, since each count clears and adds many counters.
pub const MIN_PIXELS: usize = 1 << 20;

impl PageStack<'_> {
    /// Passes the selected pixels of all pages to `consume`, those of several small pages together.
    fn for_each_part(
        &self,
        session: &Session,
        mut consume: impl FnMut(&Pixels) -> Result<()>,
    ) -> Result<()> {
        let mut pages = self.file.pages(&session.timings)?;
        let mut bar = session.progress.bar("pages", self.pages.len() as u64);
        let mut joined: Option<Pixels> = None;
        let pixel_bytes = self.channels * self.dtype.size();
        let min_pixels = MIN_PIXELS.min((session.max_memory / 8) as usize / pixel_bytes);
        for page in self.pages.clone() {
            let image = pages.decode(page, &session.timings)?;
            let image = self.settings.steps.image(self.source, image, session)?;
            let (dtype, channels) = (image.samples.dtype(), image.channels);
            if (dtype, channels) != (self.dtype, self.channels) {
                return Err(Error::bad_input(format_args!(
                    "{}: page {} has {channels} channels of {dtype}, but page {} has {} of {}; \
                     select pages with --page",
                    self.source,
                    page + 1,
                    self.pages.start + 1,
                    self.channels,
                    self.dtype
                )));
            }
            let select = || self.settings.selection.apply(self.source, image, self.mask.as_ref());
            let pixels = session.timings.time("select", select)?;
            let pixels = match joined.take() {
                Some(mut all) => {
                    all.samples.append(&pixels.samples)?;
                    all
                }
                None => pixels,
            };
            match pixels.len() < min_pixels {
                true => joined = Some(pixels),
                false => consume(&pixels)?,
            }
            bar.advance(1);
        }
        joined.iter().try_for_each(consume)
    }
}

/// Number of copies of an input in memory while it is counted, selected or adjusted.
fn copies(settings: &Settings) -> u64 {
    let adjusting = if settings.adjustments.is_empty() { 0 } else { 3 };
    let filtering = if settings.steps.is_empty() { 0 } else { 6 };
    3 + adjusting + filtering + if settings.selection.mask.is_some() { 2 } else { 0 }
}

impl<'a> Input<'a> {
    /// Opens `source` as a volume if its extension or the flags say so, else as an image. The whole image is kept if it
    /// is to be adjusted.
    pub fn read(job: &'a CountJob, settings: &'a Settings, session: &Session) -> Result<Self> {
        let limit = session.limits(copies(settings));
        if is_volume(&job.source, &settings.layout) {
            Self::read_volume(job, settings, limit, session)
        } else {
            Self::read_image(&job.source, settings, limit, session)
        }
    }

    /// Memory of [`Input::read`] and the steps after it, in bytes; `None` if the size is not known in advance.
    pub fn memory(job: &CountJob, settings: &Settings) -> Option<u64> {
        let source = &job.source;
        let is_volume = is_volume(source, &settings.layout);
        // A pipe can be read only once.
        if is_volume && !can_reopen(source) {
            return None;
        }
        let bytes = match is_volume {
            true => job.described.get(source, &settings.layout).ok()?.bytes()?,
            false => sample_bytes(source)?,
        };
        // The values, and a copy while they are sorted.
        let values = if settings.statistics {
            bytes.saturating_mul(32).min(2 * VALUE_COUNTS_BYTES)
        } else {
            0
        };
        Some(bytes.saturating_mul(copies(settings)).saturating_add(values))
    }

    fn read_volume(
        job: &CountJob,
        settings: &Settings,
        limit: Limits,
        session: &Session,
    ) -> Result<Self> {
        let source = &job.source;
        if settings.selection.roi.is_some() || settings.selection.mask.is_some() {
            let error = Error::usage(format_args!(
                "{source}: --roi and --mask are for images; this is a volume"
            ));
            return Err(with_pages_hint(error, source, true));
        }
        if settings.pages.is_some() {
            return Err(Error::usage(format_args!(
                "{source}: --page is for images; this is a volume"
            )));
        }
        let file = job.described.get(source, &settings.layout)?;
        let file = settings.steps.volume(file, session)?;
        file.check(limit)?;
        // The first pass finds the range, the second pass counts.
        let reads_twice = settings.range(file.dtype, false) == job::Range::Data;
        if reads_twice && !file.can_reopen() {
            let samples = file.read(limit, &session.timings)?.samples;
            return Ok(Self::InMemory(Pixels { samples, channels: 1 }));
        }
        Ok(Self::Streamed(Box::new(file)))
    }

    fn read_image(
        source: &'a Source,
        settings: &'a Settings,
        limit: Limits,
        session: &Session,
    ) -> Result<Self> {
        check_image_flags(source, &settings.layout)?;
        let (selection, timings) = (&settings.selection, &session.timings);
        let file = ImageFile::read(source, limit, timings)?;
        // A GPU gets the coefficients, which are smaller than the pixels. The CPU counts pixels right after they are
        // decoded, while they are in its cache.
        if session.device.may_be_gpu()
            && settings.needs_only_counts()
            && let Some(Picture { coefficients: Some(coefficients), .. }) = file.jpeg(timings)?
        {
            return Ok(Self::Jpeg(coefficients));
        }
        if !session.device.may_be_gpu()
            && settings.counts_all_pixels()
            && let Some(GridType { shape: Shape { channels, .. }, .. }) = file.jpeg_type()
        {
            return Ok(Self::JpegFile(file, channels));
        }
        let mut pages = file.pages(timings)?;
        let selected = match settings.pages {
            Some(range) => range.resolve(source, pages.count())?,
            None if settings.layout.pages => 0..pages.count(),
            None => {
                pages.check_no_slices()?;
                0..pages.count()
            }
        };
        pages.check_all(selected.clone())?;
        // Each page is filtered on its own, and would replace the table of the one before.
        if selected.len() > 1 && !settings.steps.side_files(source, 2)?.writes.is_empty() {
            return Err(Error::usage(
                "--table holds one page or volume: choose it with --page or --volume",
            ));
        }
        let image = pages.decode(selected.start, timings)?;
        let image = settings.steps.image(source, image, session)?;
        drop(pages);
        let mask = match &selection.mask {
            Some(mask) => Some(read_image(mask, limit, timings)?),
            None => None,
        };
        if selected.len() > 1 {
            let (dtype, channels) = (image.samples.dtype(), image.channels);
            let stack =
                PageStack { source, file, pages: selected, settings, mask, dtype, channels };
            return Ok(Self::Pages(Box::new(stack)));
        }
        drop(file);
        let adjusts = !settings.adjustments.is_empty();
        let whole = adjusts.then(|| image.copy().map(Box::new)).transpose()?;
        let pixels = timings.time("select", || selection.apply(source, image, mask.as_ref()))?;
        Ok(Self::Image(pixels, whole))
    }

    pub fn is_image(&self) -> bool {
        !matches!(self, Self::InMemory(_) | Self::Streamed(_))
    }

    pub fn dtype(&self) -> Dtype {
        match self {
            Self::Image(pixels, _) | Self::InMemory(pixels) => pixels.samples.dtype(),
            Self::Jpeg(_) | Self::JpegFile(..) => Dtype::U8,
            Self::Pages(stack) => stack.dtype,
            Self::Streamed(file) => file.dtype,
        }
    }

    pub fn channels(&self) -> usize {
        match self {
            Self::Image(pixels, _) | Self::InMemory(pixels) => pixels.channels,
            Self::Jpeg(picture) => picture.frame.colour.channels(),
            Self::JpegFile(_, channels) => *channels,
            Self::Pages(stack) => stack.channels,
            Self::Streamed(_) => 1,
        }
    }

    /// Moves the whole image out of the input, and returns the selected pixels with it.
    pub fn take_whole(&mut self) -> Option<(&Pixels, Image)> {
        match self {
            Self::Image(pixels, whole) => whole.take().map(|image| (&*pixels, *image)),
            _ => None,
        }
    }

    /// Calls `consume` with the samples, part by part, and with the number of times that the part occurs in the input.
    /// The next part is read meanwhile. Of a volume, only the slices of `shard` are read.
    pub fn for_each_part(
        &self,
        session: &Session,
        shard: Shard,
        mut consume: impl FnMut(&Pixels, u64) -> Result<()>,
    ) -> Result<()> {
        let file = match self {
            Self::Image(pixels, _) | Self::InMemory(pixels) => return consume(pixels, 1),
            Self::Jpeg(picture) => {
                let samples = Samples::U8(session.device.run(&Decode, picture)?);
                return consume(&Pixels { samples, channels: self.channels() }, 1);
            }
            Self::JpegFile(file, _) => {
                let Image { samples, channels, .. } = file.decode(&session.timings)?;
                return consume(&Pixels { samples, channels }, 1);
            }
            Self::Pages(stack) => return stack.for_each_part(session, |pixels| consume(pixels, 1)),
            Self::Streamed(file) => file,
        };
        let own = shard.range(file.dims[2]);
        for_each_block(file, own, "histogram", session, |samples, times| {
            let pixels = Pixels { samples, channels: 1 };
            consume(&pixels, times)?;
            Ok(pixels.samples)
        })
    }
}
