//! The pages of a TIFF file as slices, and volumes written as TIFF, as ImageJ writes them.

use std::{path::Path, sync::Arc};

use super::{
    grey::grey,
    stack::{Slices, Stack},
};
use crate::{
    data::{
        dtype::Dtype,
        image::{Image, Metadata},
        placement::Placement,
        samples::Samples,
    },
    io::{
        Source,
        image::{
            caught,
            tiff::{Planes, stack_header},
        },
        volume::format::{
            BoxError, Endian, Header, Loss, Outgoing, Placing, Stored, Units, Writing,
        },
    },
    util::error::{Error, Result},
};

/// How stacks are written.
pub const WRITING: Writing = Writing {
    names: &["TIFF stack", "ImageJ stack", "OME-TIFF"],
    extensions: &["tif", "tiff"],
    may_be_packed: false,
    dtypes: &Dtype::SAMPLES,
    // Each slice has a directory, all of which precede the samples.
    longest: [u32::MAX as usize, u32::MAX as usize, 1 << 17],
    placing: Placing::Straight,
    units: Units::Any,
    keeps: |_| false,
    header: header_bytes,
};

#[derive(Debug)]
struct Pages(Planes);

/// The stack of the pages of the file at `path`.
///
/// # Errors
/// When it is broken, or its pages are not of one size and type.
pub fn stack(source: &Source, path: &Path) -> Result<Stack> {
    let planes = Planes::open(path).map_err(|error| {
        Error::bad_input(format_args!("cannot read {source} as a volume")).caused_by(error)
    })?;
    let [width, height] = planes.size;
    if width == 0 || height == 0 {
        return Err(Error::bad_input(format_args!(
            "{source}: {width} x {height} pixels are no picture"
        )));
    }
    let stored = match planes.is_half() {
        true => Stored::F16,
        false => Stored::As(planes.dtype),
    };
    let mut header = Header::new([width, height, planes.slices], stored, 0);
    header.volumes = planes.volumes;
    header.endian = if planes.is_little() { Endian::Little } else { Endian::Big };
    header.warnings = planes.warnings.clone();
    header.losses.extend(planes.losses.iter().map(Loss::from));
    header.metadata = planes.metadata.clone();
    if planes.channels > 1 {
        let of = match planes.slices * planes.volumes {
            1 => "its page".to_owned(),
            pages => format!("its {pages} pages"),
        };
        header
            .losses
            .push(format!("the colours of {of} become grey, (r + g + b) / 3 as in ImageJ").into());
    }
    place(&mut header, &planes);
    Ok(Stack {
        format: planes.format.into(),
        header,
        dtype: planes.dtype,
        bytes: planes.bytes(),
        slices: Arc::new(Pages(planes)),
    })
}

/// Sets spacing, first position and unit to those of `planes`, if the file states a spacing.
pub fn place(header: &mut Header, planes: &Planes) {
    let Some(spacing) = planes.spacing else { return };
    let first = [0, 1, 2].map(|axis| planes.first[axis] * spacing[axis]);
    let units = planes.units.each_ref().map(Option::as_deref);
    header.place_in(Placement::straight(spacing, first), units);
}

/// The only page of the file at `path`: its samples as they are stored, or its colours decoded to RGB.
///
/// # Errors
/// When it is broken.
pub fn slice(path: &Path) -> Result<Image> {
    let read = || -> Result<Image, BoxError> {
        let planes = Planes::open(path)?;
        if planes.channels > 1 {
            return planes.picture(0);
        }
        let [width, height] = planes.size;
        let pixels = (width as u64).saturating_mul(height as u64);
        let len = usize::try_from(pixels).map_err(|_| "it is too large")?;
        let mut samples = Samples::zeros(planes.dtype, len)?;
        planes.read(0, samples.as_bytes_mut())?;
        let metadata = Metadata::default();
        Ok(Image { width, height, channels: 1, samples, is_linear: false, metadata })
    };
    caught(read).map_err(|error| {
        Error::bad_input(format_args!("cannot decode {}", path.display())).caused_by(error)
    })
}

impl Pages {
    fn try_read(&self, z: usize, samples: &mut [u8]) -> Result<(), BoxError> {
        let channels = self.0.channels;
        if channels == 1 {
            return self.0.read(z, samples);
        }
        let image = self.0.picture(z)?;
        let grey = grey(&image.samples, image.channels)?;
        if image.channels != channels || grey.as_bytes().len() != samples.len() {
            return Err("its channels are not those of the first page".into());
        }
        samples.copy_from_slice(grey.as_bytes());
        Ok(())
    }
}

impl Slices for Pages {
    fn read(&self, z: usize, samples: &mut [u8]) -> Result<()> {
        // Decoders panic on some broken files.
        let read = caught(|| self.try_read(z, samples));
        read.map_err(|error| Error::bad_input(format_args!("page {}", z + 1)).caused_by(error))
    }

    fn scratch(&self) -> u64 {
        self.0.scratch()
    }
}

fn header_bytes(outgoing: &Outgoing<'_>) -> Vec<u8> {
    let spacing = outgoing.placement.map(Placement::spacing);
    let first = match (outgoing.placement, spacing) {
        (Some(placement), Some(spacing)) => {
            [0, 1, 2].map(|axis| placement.first[axis] / spacing[axis])
        }
        _ => [0.0; 3],
    };
    let unit = outgoing.placement.and_then(|placement| placement.unit.as_deref());
    stack_header(outgoing.dims, outgoing.dtype, spacing, unit, first)
}
