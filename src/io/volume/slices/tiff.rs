//! The pages of a TIFF file as slices, and volumes written as TIFF, as ImageJ writes them.

use std::sync::Arc;

use super::{grey::grey, stack::Slices};
use crate::{
    data::{
        image::{Image, Metadata},
        samples::Samples,
    },
    io::{
        Source,
        image::{
            catch_panic, has_planes,
            tiff::{Planes, stack_header},
        },
        volume::{
            format::{
                Format, HeaderContent, OpenedVolume, PlacementSupport, RecognizedInput,
                WriteSupport,
            },
            header::{BoxError, Description},
        },
    },
    util::error::{Error, Result},
};

/// The format.
pub const FORMAT: Format = Format {
    is_file: Some(has_planes),
    write: Some(WriteSupport {
        extensions: &["tif", "tiff"],
        // Each slice has a directory, all of which precede the samples.
        max_dims: [u32::MAX as usize, u32::MAX as usize, 1 << 17],
        placement: PlacementSupport::Straight,
        header: header_bytes,
        ..WriteSupport::BASE
    }),
    ..Format::new("TIFF stack", &[], open)
};

/// The pages of a file as slices.
struct TiffPages(Planes);

/// Opens the pages of a file as slices.
fn open(input: RecognizedInput<'_>) -> Result<OpenedVolume> {
    let source = &input.source;
    let planes = open_planes(&input.files[0], 1).map_err(|error| {
        Error::bad_input(format_args!("cannot read {source} as a volume")).caused_by(error)
    })?;
    let mut description = planes.description.clone();
    let [width, height, slices] = description.dims;
    if width == 0 || height == 0 {
        return Err(Error::bad_input(format_args!(
            "{source}: the image has no pixels ({width} x {height})"
        )));
    }
    if planes.channels > 1 {
        let noun = match slices * description.volumes {
            1 => "colour page".to_owned(),
            pages => format!("{pages} colour pages"),
        };
        let loss = format!("{noun} converted to grey, (r + g + b) / 3 as in ImageJ");
        description.losses.push(loss.into());
    }
    Ok(OpenedVolume::from_slices(description, Arc::new(TiffPages(planes))))
}

/// Opens the pages of `source`, which is the first of `files` files with slices.
pub fn open_planes(source: &Source, files: usize) -> Result<Planes, BoxError> {
    let file = source.regular()?.ok_or("not a regular file")?;
    Planes::open(&file, files)
}

/// Reads the only page of `source`: its stored samples, or its colours decoded to RGB.
pub fn slice(source: &Source) -> Result<Image> {
    let read = || -> Result<Image, BoxError> {
        let planes = open_planes(source, 1)?;
        if planes.channels > 1 {
            return planes.picture(0);
        }
        let Description { dims: [width, height, _], dtype, .. } = planes.description;
        let pixels = (width as u64).saturating_mul(height as u64);
        let len = usize::try_from(pixels).map_err(|_| "the page is too large")?;
        let mut samples = Samples::zeros(dtype, len)?;
        planes.read(0, samples.as_bytes_mut())?;
        let metadata = Metadata::default();
        Ok(Image { width, height, channels: 1, samples, is_linear: false, metadata })
    };
    catch_panic(read)
        .map_err(|error| Error::bad_input(format_args!("cannot decode {source}")).caused_by(error))
}

impl TiffPages {
    fn try_read(&self, z: usize, samples: &mut [u8]) -> Result<(), BoxError> {
        let channels = self.0.channels;
        if channels == 1 {
            return self.0.read(z, samples);
        }
        let image = self.0.picture(z)?;
        let grey = grey(&image.samples, image.channels)?;
        if image.channels != channels || grey.as_bytes().len() != samples.len() {
            return Err("channels differ from those of the first page".into());
        }
        samples.copy_from_slice(grey.as_bytes());
        Ok(())
    }
}

impl Slices for TiffPages {
    fn read(&self, z: usize, samples: &mut [u8]) -> Result<()> {
        // Decoders panic on some broken files.
        let read = catch_panic(|| self.try_read(z, samples));
        read.map_err(|error| Error::bad_input(format_args!("page {}", z + 1)).caused_by(error))
    }

    fn scratch(&self) -> u64 {
        self.0.scratch()
    }
}

fn header_bytes(content: &HeaderContent<'_>) -> Vec<u8> {
    let HeaderContent { dims, dtype, placement, .. } = *content;
    let Some(placement) = placement else {
        return stack_header(dims, dtype, None, None, [0.0; 3]);
    };
    let spacing = placement.spacing();
    let first = [0, 1, 2].map(|axis| placement.first[axis] / spacing[axis]);
    stack_header(dims, dtype, Some(spacing), placement.unit.as_deref(), first)
}
