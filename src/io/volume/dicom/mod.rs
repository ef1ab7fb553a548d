//! DICOM (dicomstandard.org): one file, one multi-frame file, or a folder of files, of which one series becomes a
//! volume.
//!
//! Slices are sorted by their positions along the normal of their planes, whatever the names of the files: the volume's
//! z axis is `row direction x column direction`. World coordinates are LPS, as in DICOM and ITK. Stored numbers are
//! rescaled (`RescaleSlope`, `RescaleIntercept`), in a CT to Hounsfield units.
//!
//! The parser is our own: the crate dicom-object, without any decoding of pixels, adds 50 CPU seconds to the build.

mod arrange;
mod attributes;
mod csa;
mod dataset;
mod decode;
mod frames;
mod image;
#[cfg(feature = "jpeg2000")]
mod jpeg2000;
mod mosaic;
mod palette;
mod pixel_format;
mod pixels;
mod plane;
mod series;
mod syntax;
mod times;

use std::{
    mem::take,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use self::{
    arrange::{Series, slice_count},
    image::{Image, Refusal, Slice, unreadable},
    pixels::MosaicCache,
};
use super::{
    format::{Format, OpenedVolume, RecognizedInput},
    header::Description,
    slices::{names::skipped, stack::Slices},
};
use crate::{
    data::dtype::Dtype,
    io::{Limits, Source, image::has_image_name, losses},
    util::{
        error::{Error, Result},
        parallel::Parallel,
    },
};

/// The format.
pub const FORMAT: Format = Format {
    is_file: Some(is_dicom),
    has_folders: true,
    has_series: true,
    ..Format::new("DICOM", EXTENSIONS, open)
};

/// Many files have numbers as names, and no extension.
const EXTENSIONS: &[&str] = &["dcm", "dicom", "ima"];

/// Whether `source` is a DICOM file: by its extension, or by `DICM` after a preamble of 128 bytes. Files with names of
/// images are not opened to find out.
pub fn is_dicom(source: &Source) -> bool {
    if has_image_name(source) || !matches!(source.size(), Ok(Some(_))) {
        return false;
    }
    EXTENSIONS.contains(&&*source.extension())
        || matches!(source.regular(), Ok(Some(file)) if dataset::has_signature(&file.first))
}

/// The slices of a series, in the order of z, volume by volume.
struct SeriesSlices {
    images: Vec<Image>,
    slices: Vec<Slice>,
    dtype: Dtype,
    cache: MosaicCache,
    clipping_reported: AtomicBool,
    /// Whether clipped values are an error.
    is_strict: AtomicBool,
}

impl Slices for SeriesSlices {
    fn read(&self, z: usize, samples: &mut [u8]) -> Result<()> {
        let Slice { image: index, number, scale } = self.slices[z];
        let image = &self.images[index];
        let source = &image.source;
        let Some(number) = number else {
            samples.fill(0);
            return Ok(());
        };
        let fits = pixels::read((image, index), number, (scale, self.dtype), &self.cache, samples)
            .map_err(|error| unreadable(source, error))?;
        if !fits && !self.clipping_reported.swap(true, Ordering::Relaxed) {
            let lost = format_args!(
                "values outside of the range that the file states are clipped to {}",
                self.dtype
            );
            losses::report(source, lost, self.is_strict.load(Ordering::Relaxed))?;
        }
        Ok(())
    }

    fn scratch(&self) -> u64 {
        self.images.iter().map(pixels::scratch).max().unwrap_or(0)
    }

    fn allow(&self, limits: Limits) -> Result<()> {
        self.is_strict.fetch_or(limits.strict, Ordering::Relaxed);
        Ok(())
    }
}

/// Makes a volume of the chosen series, by default of the series with the most slices.
fn open(input: RecognizedInput<'_>) -> Result<OpenedVolume> {
    let RecognizedInput { ref source, layout, mut warnings, .. } = input;
    let (images, refused, without_pixels) = open_images(&input.files);
    warnings.extend(skipped(&without_pixels));
    if images.is_empty() && refused.is_empty() {
        return Err(Error::bad_input(format_args!("{source}: contains no DICOM file with pixels")));
    }
    if slice_count(&images) > dataset::MAX_FRAMES {
        return Err(Error::bad_input(format_args!(
            "{source}: more frames than the maximum of {}",
            dataset::MAX_FRAMES
        )));
    }
    let series = series::choose(source, images, refused, layout.series.as_ref(), warnings)?;
    let Series { images, slices, mut description } = series;
    describe_first(&mut description, &images[0]);
    description.scale = slices[0].scale.filter(|_| have_same_scale(&slices));
    let dtype = value_type(&images, &slices);
    description.dtype = dtype;
    let file_size = |image: &Image| image.source.size().ok().flatten().unwrap_or(0);
    description.file_bytes = Some(images.iter().map(file_size).sum());
    let (cache, clipping_reported, is_strict) = Default::default();
    let slices = SeriesSlices { images, slices, dtype, cache, clipping_reported, is_strict };
    Ok(OpenedVolume::from_slices(description, Arc::new(slices)))
}

/// Opens all `files`. Returns those with pixels, those that cannot be read, and the names of those without pixels.
fn open_images(files: &[Source]) -> (Vec<Image>, Vec<Refusal>, Vec<Source>) {
    let opened = files.iter().par_map(Image::open);
    let (mut images, mut refused, mut without_pixels) = Default::default();
    for (file, image) in files.iter().zip(opened) {
        match image {
            Ok(Some(image)) => Vec::push(&mut images, image),
            Ok(None) => Vec::push(&mut without_pixels, file.clone()),
            Err(refusal) => Vec::push(&mut refused, refusal),
        }
    }
    (images, refused, without_pixels)
}

/// Describes a series as far as its first image does.
fn describe_first(description: &mut Description, first: &Image) {
    description.endian = first.data.syntax.endian;
    if first.stored.samples == 3 || first.stored.palette.is_some() {
        description.losses.push("colours converted to grey, (r + g + b) / 3 as in ImageJ".into());
    }
    if first.data.top.has(attributes::LUT) {
        description.losses.push("table of values (Modality LUT) is not applied".into());
    }
    if first.format.inverted {
        let warning = "MONOCHROME1 (the minimum is white): values are inverted, as by ITK";
        description.warnings.push(warning.into());
    }
    if let Some(mosaic) = first.mosaic.filter(|mosaic| mosaic.is_assumed) {
        let count = mosaic.count;
        let warning = format!(
            "number of tiles of a mosaic is missing; assuming {count}, the last of which may be empty"
        );
        description.warnings.push(warning);
    }
    let segments = take(&mut description.metadata);
    description.metadata = [metadata(first), segments].concat();
}

/// Whether all slices have the same slope and intercept.
fn have_same_scale(slices: &[Slice]) -> bool {
    slices.iter().all(|slice| slice.scale == slices[0].scale)
}

fn value_type(images: &[Image], slices: &[Slice]) -> Dtype {
    let stated = stated_range(images);
    let slice_dtype = |slice: &Slice| images[slice.image].format.value_dtype(slice.scale, stated);
    match have_same_scale(slices) {
        true => slices.iter().map(slice_dtype).reduce(common_type).expect("a series has a slice"),
        // Slices have different slopes, as in PET.
        false if images[0].format.stored > 24 => Dtype::F64,
        false => Dtype::F32,
    }
}

/// The minimum and maximum stored number of all `images`, if each file states its own.
fn stated_range(images: &[Image]) -> Option<(f64, f64)> {
    let each = images.iter().map(|image| image.format.stated_range(&image.data.top));
    each.reduce(|a, b| {
        let ((a, b), (c, d)) = (a?, b?);
        Some((a.min(c), b.max(d)))
    })?
}

/// The type of a volume that has slices of types `a` and `b`.
fn common_type(a: Dtype, b: Dtype) -> Dtype {
    match (a == b, a.is_float() || b.is_float(), a.size().max(b.size())) {
        (true, ..) => a,
        (_, true, ..5) => Dtype::F32,
        (_, false, ..3) => Dtype::I32,
        _ => Dtype::F64,
    }
}

/// Metadata of a series. Names of patients are omitted on purpose.
fn metadata(image: &Image) -> Vec<(String, String)> {
    let top = &image.data.top;
    let text = |tag| top.text(tag).map(str::to_owned);
    let number = |tag| top.number(tag).map(|number| number.to_string());
    let entries = [
        ("modality", text(attributes::MODALITY)),
        ("series", text(attributes::DESCRIPTION)),
        ("series number", number(attributes::SERIES_NUMBER)),
        ("series uid", text(attributes::SERIES_UID)),
        ("padding value", number(attributes::PADDING)),
        ("photometric interpretation", image.format.inverted.then(|| "MONOCHROME1".to_owned())),
    ];
    entries.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?))).collect()
}
