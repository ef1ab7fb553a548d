//! Writing of image files, with the samples and channels that the format supports. Content that the format cannot
//! store is reported.

use std::{collections::HashSet, io};

use super::{
    codec::{Capabilities, TextSupport},
    consistency::{adapt, foreign_colours},
    error::BoxError,
    formats::ImageFormat,
    jpeg::{self, MULTI_PICTURE},
    metadata::{MetadataBlock, display_name, is_about_file},
    pages::{Encoding, PageWriter, Picture, Series},
    tiff::exif::{self, Exif},
    xmp::announces_other_data,
};
use crate::{
    data::{
        dtype::Dtype,
        image::{AncillaryData, Image, Metadata},
        samples::Samples,
    },
    io::{Finished, Sink, losses::LossLog},
    jpeg::PixelEncoding,
    util::{
        error::{Error, Result},
        memory,
        timings::Timings,
    },
};

/// An image file to be written, with one or several pages.
#[derive(Debug)]
pub struct ImageTarget<'a> {
    sink: &'a Sink,
    format: ImageFormat,
    encoding: Encoding,
    timings: &'a Timings,
    /// Whether an existing file is an error.
    pub no_clobber: bool,
    /// Whether losses are errors.
    pub strict: bool,
    /// Losses that have been reported.
    reported: LossLog,
}

impl ImageFormat {
    /// Refuses to write labels of type `dtype` to `sink` if the format would scale or clamp them. Results of floats are no
    /// labels.
    pub fn check_labels(self, sink: &Sink, dtype: Dtype) -> Result<()> {
        let holds = |dtype| self.codec().capabilities.dtypes.contains(&dtype);
        let (fact, remedy) = match holds(Dtype::U16) {
            _ if holds(dtype) || dtype.is_float() => return Ok(()),
            true => ("there are more than 65,535 labels, the maximum of this format", "write .tif"),
            false => ("this format cannot hold labels of 16 bits", "write .png or .tif"),
        };
        Err(Error::usage(format_args!("{sink}: {fact}; {remedy}")))
    }
}

impl<'a> ImageTarget<'a> {
    /// A file of `format` at `sink`. By default it may replace an existing file, and losses are warnings.
    pub fn new(
        sink: &'a Sink,
        format: ImageFormat,
        encoding: Encoding,
        timings: &'a Timings,
    ) -> Self {
        let reported = LossLog::default();
        Self { sink, format, encoding, timings, no_clobber: false, strict: false, reported }
    }

    /// The format of the file.
    pub fn format(&self) -> ImageFormat {
        self.format
    }

    /// Whether the format supports several pages.
    pub fn can_hold_pages(&self) -> bool {
        self.format.codec().encode_pages.is_some()
    }

    /// As [`ImageFormat::check_labels`].
    pub fn check_labels(&self, dtype: Dtype) -> Result<()> {
        self.format.check_labels(self.sink, dtype)
    }

    /// The type in which the format stores samples of type `dtype`.
    pub fn stored_dtype(&self, dtype: Dtype) -> Dtype {
        self.format.codec().capabilities.nearest_dtype(dtype)
    }

    /// Reports content of `image` that the format cannot store, without writing anything.
    pub fn check(&self, image: &Image) -> Result<()> {
        self.check_page(image, 1)
    }

    /// As [`ImageTarget::check`], for one page of `count`.
    fn check_page(&self, image: &Image, count: usize) -> Result<()> {
        let capabilities = &self.format.codec().capabilities;
        for loss in foreign_metadata(image, capabilities) {
            self.reported.report_once(self.sink, &loss, self.strict)?;
        }
        match loss_message(image, capabilities, count) {
            Some(lost) => self.report(&lost),
            None => Ok(()),
        }
    }

    /// Rounds floats that count in units of the integers `numbers`, if the format holds no floats. They are not shares of
    /// full intensity.
    pub fn with_numbers(&self, image: Image, numbers: Option<Dtype>) -> Result<Image> {
        let capabilities = &self.format.codec().capabilities;
        let own = image.samples.dtype();
        let to = numbers.map(|dtype| capabilities.nearest_dtype(dtype));
        let Some(to) = to.filter(|to| !to.is_float() && !capabilities.dtypes.contains(&own)) else {
            return Ok(image);
        };
        self.report(&format!("{own} samples become {to}, rounded and clamped to its range"))?;
        Ok(Image { samples: image.samples.converted(to)?, ..image })
    }

    fn report(&self, lost: &str) -> Result<()> {
        self.reported.report_once(self.sink, &format!("{lost} in this format"), self.strict)
    }

    /// Writes an image.
    pub fn write(&self, image: Image) -> Result<()> {
        let finished = self.encode(image)?;
        self.timings.time("write", || finished.commit())
    }

    /// Encodes an image, which is written when it is committed.
    pub fn encode(&self, picture: impl Into<Picture>) -> Result<Finished> {
        let bytes = self.encoded(picture)?;
        Ok(Finished::Bytes { bytes, sink: self.sink.clone(), no_clobber: self.no_clobber })
    }

    /// The bytes of the file of an image.
    pub fn encoded(&self, picture: impl Into<Picture>) -> Result<Vec<u8>> {
        let Picture { mut image, coefficients } = picture.into();
        self.check(&image)?;
        let encode = move || -> Result<Vec<u8>, BoxError> {
            if let Some(coefficients) = coefficients {
                let frame = &coefficients.frame;
                adapt(&mut image.metadata, frame.size, frame.colour.channels());
                let optimized = self.encoding.optimized;
                return jpeg::encode_coefficients(&coefficients, &image.metadata, optimized);
            }
            let codec = self.format.codec();
            let fitted = fitted(image, &codec.capabilities)?;
            // Encoders abort the process if an allocation fails. Their output may be as long as the samples, and some
            // hold it twice.
            drop(memory::room::<u8>(2 * fitted.samples.as_bytes().len())?);
            (codec.encode)(&fitted, &self.encoding)
        };
        let encoded = self.timings.time("encode", encode);
        encoded.map_err(|cause| cannot_encode(self.sink, cause))
    }

    /// How pixels are encoded, if the file is JPEG.
    pub fn pixel_encoding(&self) -> Option<PixelEncoding> {
        (self.format == ImageFormat::Jpeg).then(|| jpeg::pixel_encoding(&self.encoding))
    }

    /// Writes a file of `series.count` pages, which `fill` passes to the writer.
    pub fn encode_pages(
        &self,
        series: Series,
        fill: impl FnOnce(&mut PagesWriter<'_>) -> Result<()>,
    ) -> Result<Finished> {
        let (sink, codec) = (self.sink, self.format.codec());
        let Some(encode_pages) = codec.encode_pages else {
            return Err(Error::usage(format_args!(
                "{sink}: this format stores only one page; write .tif, .gif, .png or .webp"
            )));
        };
        if series.animation.is_some() && !codec.capabilities.has_durations {
            self.report("frame durations are dropped")?;
        }
        let failed = |cause| cannot_write(sink, cause);
        let mut output = sink.create(self.no_clobber)?;
        {
            let count = series.count;
            let pages = encode_pages(&mut output, series, &self.encoding).map_err(failed)?;
            let mut writer = PagesWriter { pages, target: self, count };
            fill(&mut writer)?;
            writer.pages.finish().map_err(failed)?;
        }
        Ok(Finished::File(output))
    }
}

/// A file of several pages being written.
#[expect(missing_debug_implementations, reason = "encoders have none")]
pub struct PagesWriter<'a> {
    pages: Box<dyn PageWriter + 'a>,
    target: &'a ImageTarget<'a>,
    count: usize,
}

impl PagesWriter<'_> {
    /// Writes the next page.
    pub fn page(&mut self, image: Image) -> Result<()> {
        let Self { pages, target, count } = self;
        let target = *target;
        target.check_page(&image, *count)?;
        let write = move || -> Result<(), BoxError> {
            let fitted = fitted(image, &target.format.codec().capabilities)?;
            drop(memory::room::<u8>(2 * fitted.samples.as_bytes().len())?);
            pages.page(&fitted)
        };
        target.timings.time("encode", write).map_err(|cause| cannot_write(target.sink, cause))
    }
}

fn cannot_encode(sink: &Sink, cause: BoxError) -> Error {
    let message = format_args!("cannot encode {sink}");
    match cause.downcast::<Error>() {
        // An error of another kind, such as too little memory.
        Ok(cause) => cause.context(message),
        // The format does not support such an image, so another try would fail as well.
        Err(cause) => Error::bad_input(message).caused_by(cause),
    }
}

/// Error of an encoder that writes to `sink` itself.
fn cannot_write(sink: &Sink, cause: BoxError) -> Error {
    match cause.downcast::<io::Error>() {
        Ok(cause) => Error::io("write", sink.to_string(), *cause),
        Err(cause) => cannot_encode(sink, cause),
    }
}

/// Converts `image` to samples, channels and metadata that the format supports.
fn fitted(image: Image, capabilities: &Capabilities) -> Result<Image> {
    let dtype = capabilities.nearest_dtype(image.samples.dtype());
    let mut fitted = match (image.is_linear, capabilities.is_linear) {
        (false, true) => image.to_linear()?,
        (true, false) => image.to_straight(dtype)?,
        _ if dtype == Dtype::F32 && dtype != image.samples.dtype() => image.to_floats()?,
        _ if dtype != image.samples.dtype() => image.narrowed(dtype)?,
        _ => image,
    };
    if fitted.has_alpha() && !capabilities.has_alpha {
        fitted = fitted.without_alpha()?;
    }
    let stored_channels = capabilities.stored_channels(fitted.channels);
    adapt(&mut fitted.metadata, [fitted.width, fitted.height], stored_channels);
    Ok(fitted)
}

/// Warning about content of `image`, one page of `count`, that the format cannot store; `None` if it stores everything.
/// An alpha channel that is opaque everywhere is not a loss.
fn loss_message(image: &Image, capabilities: &Capabilities, count: usize) -> Option<String> {
    let own = image.samples.dtype();
    let dtype = capabilities.nearest_dtype(own);
    let mut losses = Vec::new();
    match own {
        _ if own == dtype => {}
        // These types have no full intensity, so they keep their values as floats: f32 is exact for 24 bits.
        Dtype::I8 | Dtype::I16 if dtype.is_float() => {}
        Dtype::I8 | Dtype::I16 | Dtype::U32 | Dtype::I32 if !dtype.is_float() => {
            losses.push(format!("{own} samples become {dtype}, clamped to its range"));
        }
        Dtype::U32 | Dtype::I32 => losses.push(format!("{own} samples become {dtype}")),
        _ if dtype.size() < own.size() => losses.push(format!("{own} samples become {dtype}")),
        _ => {}
    }
    let lacks_alpha = !capabilities.has_alpha || !capabilities.has_true_color;
    if lacks_alpha && image.has_alpha() && !image.is_opaque() {
        losses.push(match capabilities.has_alpha {
            true => "alpha becomes opaque or transparent".to_owned(),
            false => "alpha is dropped".to_owned(),
        });
    }
    if image.channels >= 3 && !capabilities.has_true_color && !has_few_colours(image) {
        losses.push("colours are reduced to 256 per page".to_owned());
    }
    let (metadata, kept) = (&image.metadata, capabilities.metadata);
    let lost = |block: &MetadataBlock| match (block, block.get(metadata)) {
        (MetadataBlock::Exif, Some(block)) => exif::describes_image(block),
        (_, block) => block.is_some(),
    };
    let dropped =
        MetadataBlock::ALL.iter().filter(|block| !kept.blocks.contains(block) && lost(block));
    losses.extend(dropped.map(|block| match block {
        MetadataBlock::Icc => "the colour profile is dropped".to_owned(),
        block => format!("{} is dropped", block.name()),
    }));
    if metadata.density.is_some() && !kept.has_density {
        losses.push("the pixel density is dropped".to_owned());
    }
    losses.extend(lost_texts(metadata, kept.texts));
    if let Some(pages) = &metadata.pages {
        let is_held = kept.has_stack_text && pages.fits(count, dtype);
        // With only one page, distances between pages do not matter.
        let counts = !pages.is_divisible || count > 1;
        losses.extend(pages.loss.filter(|_| !is_held && counts).map(str::to_owned));
    }
    for part in metadata.ancillary.iter().filter(|part| part.format != kept.ancillary) {
        if let Some(loss) = part.loss.filter(|loss| losses.iter().all(|known| known != loss)) {
            losses.push(loss.to_owned());
        }
    }
    (!losses.is_empty()).then(|| losses.join(" and "))
}

/// Warnings about metadata of `image` that do not describe what is written, in any format.
fn foreign_metadata(image: &Image, capabilities: &Capabilities) -> Vec<String> {
    let (metadata, kept) = (&image.metadata, capabilities.metadata);
    let mut losses = Vec::new();
    if kept.blocks.contains(&MetadataBlock::Icc) {
        let stored = capabilities.stored_channels(image.channels);
        let colours = metadata.icc.as_deref().and_then(|icc| foreign_colours(icc, stored));
        // Grey images that a filter made of colours are masks or labels, which need no profile.
        if let Some(colours) = colours.filter(|colours| stored >= 3 || *colours != "RGB") {
            losses.push(format!("the colour profile is dropped: it is for {colours} colours"));
        }
    }
    if kept.has_exif_tags
        && let Some(Exif { is_partial: true, .. }) =
            metadata.exif.as_deref().and_then(Exif::from_block)
    {
        losses.push(
            "EXIF that cannot be read, or has types that TIFF does not allow, is dropped"
                .to_owned(),
        );
    }
    let has_other_data = |part: &AncillaryData| part.format == MULTI_PICTURE;
    if !metadata.ancillary.iter().any(has_other_data)
        && metadata.xmp.as_deref().is_some_and(announces_other_data)
    {
        losses.push("the gain map, depth map or video that XMP announces is dropped".to_owned());
    }
    losses
}

/// Whether an image has at most 256 colours, counting those of transparent pixels, too.
fn has_few_colours(image: &Image) -> bool {
    const MAX: usize = 256;
    let Samples::U8(samples) = &image.samples else { return false };
    let mut colours = HashSet::new();
    samples.chunks_exact(image.channels).all(|pixel| {
        colours.insert([pixel[0], pixel[1], pixel[2], pixel.get(3).map_or(255, |a| a / 128 * 255)]);
        colours.len() <= MAX
    })
}

/// Warning about texts that the format cannot store. Texts that only describe the file are not mentioned.
fn lost_texts(metadata: &Metadata, held: TextSupport) -> Option<String> {
    let keywords = metadata.texts.iter().map(|text| text.keyword.as_str());
    let mut lost: Vec<String> = keywords
        .filter(|keyword| !held.supports(keyword) && !is_about_file(keyword))
        .map(display_name)
        .collect();
    lost.dedup();
    match &lost[..] {
        [] => None,
        [one] => Some(format!("the text {one} is dropped")),
        [first, second] => Some(format!("the texts {first} and {second} are dropped")),
        [first, second, more @ ..] => {
            Some(format!("the texts {first}, {second} and {} more are dropped", more.len()))
        }
    }
}
