//! Image files as slices: one slice per file, all of one size and type. Colours become grey as in ImageJ,
//! `(r + g + b) / 3`; alpha is ignored.

use std::sync::Arc;

use super::{
    grey::grey,
    names::{is_image_file, source_name},
    stack::Slices,
    tiff::{open_planes, slice},
};
use crate::{
    data::{dtype::Dtype, image::Image},
    io::{
        Limits, Source,
        image::{Probe, has_planes, probe, read_image, tiff::Planes},
        volume::{
            format::{Format, OpenedVolume, RecognizedInput},
            header::{Description, StoredType},
        },
    },
    util::{
        error::{Error, Result},
        parallel::Parallel,
        timings::Timings,
    },
};

/// The format.
pub const FORMAT: Format = Format {
    is_file: Some(is_image_file),
    has_folders: true,
    ..Format::new("image slices", &[], open)
};

struct ImageFiles {
    files: Vec<Source>,
    has_planes: bool,
    size: [usize; 2],
    dtype: Dtype,
    limits: Limits,
    /// Bytes of memory that reading a slice takes: the largest file, and twice its samples.
    scratch: u64,
}

/// The properties of an image that must be equal in all slices.
fn required_properties(probe: &Probe) -> (&str, [usize; 2], &str) {
    (probe.format, probe.size, &probe.dtype)
}

fn summary(probe: &Probe) -> String {
    let [width, height] = probe.size;
    format!("{} {width}x{height} of {}", probe.format, probe.dtype)
}

/// Opens the stack of `files`, one slice each.
fn open(input: RecognizedInput<'_>) -> Result<OpenedVolume> {
    /// Maximum size in bytes of a file that is searched for several pages.
    const MAX_PAGE_SEARCH: u64 = 16 << 20;
    /// Maximum size in bytes of a slice that is decoded to find out its size and type.
    const MAX_PROBE: u64 = 16 << 20;
    let RecognizedInput { ref source, files, warnings, .. } = input;
    let probes: Vec<Probe> = files
        .iter()
        .par_map(|file| probe(file, MAX_PAGE_SEARCH))
        .into_iter()
        .collect::<Result<_>>()?;
    let first =
        probes.first().ok_or_else(|| Error::bad_input(format_args!("{source}: no slices")))?;
    check_uniform(source, &files, &probes)?;
    // Memory for a decoded image, its file and the decoder.
    let bytes = probes.iter().map(|probe| probe.bytes).max().unwrap_or(0);
    let limits = Limits { strict: false, ..Limits::from(bytes.saturating_mul(4).max(64 << 20)) };
    let tiff = match has_planes(&files[0]) {
        true => Some(open_planes(&files[0], files.len()).map_err(|error| {
            Error::bad_input(format_args!("cannot decode {}", files[0])).caused_by(error)
        })?),
        false => None,
    };
    let (size, dtype) = match &tiff {
        Some(Planes { description, .. }) => {
            ([description.dims[0], description.dims[1]], description.dtype)
        }
        // A large slice may not fit in memory.
        None if first.bytes > MAX_PROBE => (first.decoded_size(), first.decoded),
        None => {
            let Image { width, height, samples, .. } = read(&files[0], false, limits)?;
            ([width, height], samples.dtype())
        }
    };
    let mut description =
        Description::new([size[0], size[1], files.len()], StoredType::As(dtype), 0);
    description.warnings = warnings;
    let coloured = match &tiff {
        None => probes.iter().filter(|probe| probe.has_colour).count(),
        // As for one TIFF with all slices: stored values and the spacing of pixels are kept.
        Some(planes) => {
            let Description { losses, warnings, placement, .. } = &planes.description;
            description.losses.clone_from(losses);
            description.warnings.extend(warnings.iter().cloned());
            description.placement = placement.clone();
            if planes.channels > 1 { files.len() } else { 0 }
        }
    };
    if coloured > 0 {
        let noun = match (coloured, files.len()) {
            (1, 1) => "colours".to_owned(),
            (_, all) if coloured < all => format!("{coloured} of {all} colour images"),
            (_, all) => format!("{all} colour images"),
        };
        description
            .losses
            .push(format!("{noun} converted to grey, (r + g + b) / 3 as in ImageJ").into());
    }
    if tiff.is_none() && probes.iter().any(|probe| probe.has_alpha) {
        description.losses.push("alpha is ignored".into());
    }
    let file_size = |file: &Source| file.size().ok().flatten().unwrap_or(0);
    let largest = files.iter().map(&file_size).max().unwrap_or(0);
    let scratch = largest.saturating_add(bytes.saturating_mul(2));
    description.variant = Some(format!("{} slices", first.format).into());
    description.file_bytes = Some(files.iter().map(file_size).sum());
    let has_planes = tiff.is_some();
    let slices = ImageFiles { files, has_planes, size, dtype, limits, scratch };
    Ok(OpenedVolume::from_slices(description, Arc::new(slices)))
}

/// Checks that images have the same properties, and each one page.
fn check_uniform(source: &Source, files: &[Source], probes: &[Probe]) -> Result<()> {
    let first = &probes[0];
    if let Some(other) =
        probes.iter().position(|probe| required_properties(probe) != required_properties(first))
    {
        return Err(Error::bad_input(format_args!(
            "{source}: {} is {}, but {} is {}; select files of one kind by a pattern such as '*.png'",
            source_name(&files[other]),
            summary(&probes[other]),
            source_name(&files[0]),
            summary(first),
        )));
    }
    match probes.iter().position(|probe| probe.pages > Some(1)) {
        Some(many) if files.len() > 1 => Err(Error::bad_input(format_args!(
            "{source}: {} has several pages; expected one per slice",
            source_name(&files[many]),
        ))),
        _ => Ok(()),
    }
}

fn read(file: &Source, has_planes: bool, limits: Limits) -> Result<Image> {
    if has_planes {
        return slice(file);
    }
    read_image(file, limits, &Timings::new(false))
}

impl Slices for ImageFiles {
    fn read(&self, z: usize, bytes: &mut [u8]) -> Result<()> {
        let file = &self.files[z];
        let Image { width, height, channels, samples, .. } =
            read(file, self.has_planes, self.limits)?;
        if ([width, height], samples.dtype()) != (self.size, self.dtype) {
            let [x, y] = self.size;
            return Err(Error::bad_input(format_args!(
                "{file} is {width}x{height} of {}, but the slices are {x}x{y} of {}",
                samples.dtype(),
                self.dtype
            )));
        }
        match channels {
            1 => bytes.copy_from_slice(samples.as_bytes()),
            _ => bytes.copy_from_slice(grey(&samples, channels)?.as_bytes()),
        }
        Ok(())
    }

    fn scratch(&self) -> u64 {
        self.scratch
    }
}
