//! Writes volumes: a header in the output's format, then the samples, all compressed if the name ends with `.gz`.

use std::io::{self, Write};

use super::{
    file::VolumeFile,
    format::{Format, HeaderContent, PlacementSupport, UnitSupport, WriteSupport},
    formats::{DEFAULT_OUTPUT, writers},
    gz::ParallelGzWriter,
    header::{Endian, NiftiHeader, StoredType},
    raw,
};
use crate::{
    data::{dtype::Dtype, placement::Placement, samples::Samples, volume::Dims},
    io::{
        Output, Sink,
        packing::{Packing, packed_extension},
    },
    util::error::{Error, Result},
};

/// The format of a volume file to be written.
#[derive(Clone, Copy, Debug)]
pub struct VolumeFormat {
    format: &'static Format,
    gzip: bool,
}

impl VolumeFormat {
    fn support(self) -> &'static WriteSupport {
        self.format.write.as_ref().expect("only formats that are written are chosen")
    }

    /// The format that the extension of `sink` names; `None` without an extension.
    pub fn for_output(sink: &Sink) -> Result<Option<Self>> {
        let Sink::File(path) = sink else { return Ok(None) };
        let (extension, packing) = packed_extension(Some(path));
        if extension.is_empty() && packing.is_none() {
            return Ok(None);
        }
        let gzip = packing == Some(Packing::Gzip);
        let found = writers().find(|(_, support)| {
            support.extensions.contains(&extension.as_str())
                && (packing.is_none() || gzip && support.can_gzip)
        });
        match found {
            Some((format, _)) => Ok(Some(Self { format, gzip })),
            None => {
                let packing = match packing {
                    Some(Packing::Gzip) => ".gz",
                    Some(Packing::Bzip2) => ".bz2",
                    None => "",
                };
                Err(Error::usage(format_args!(
                    "{sink}: cannot write a volume as .{extension}{packing}; use .nii, .nii.gz, .nrrd, .mha, .mrc, \
                     .npy, .tif, .raw or .raw.gz"
                )))
            }
        }
    }
}

/// Refuses to write labels of type `dtype` to `sink` if the format, or a raw name such as `labels_uint8.raw`, would clamp
/// them. Results of floats are not labels.
pub fn check_labels(sink: &Sink, dtype: Dtype) -> Result<()> {
    let Some(VolumeFormat { format, .. }) = VolumeFormat::for_output(sink)? else { return Ok(()) };
    let named = match sink.path().filter(|_| format.is_raw).and_then(|path| raw::from_name(path).1)
    {
        Some(StoredType::As(dtype)) => Some(dtype),
        // Refused when it is written.
        Some(StoredType::F16) | None => None,
    };
    let dtypes = format.write.as_ref().map_or(&Dtype::SAMPLES[..], |support| support.dtypes);
    check_stored_labels(sink, named.unwrap_or_else(|| nearest(dtypes, dtype)), dtype)
}

/// Refuses to store labels of type `dtype` as `stored` if that clamps them.
fn check_stored_labels(sink: &Sink, stored: Dtype, dtype: Dtype) -> Result<()> {
    if dtype.is_float() || holds(stored, dtype) {
        return Ok(());
    }
    Err(Error::usage(format_args!(
        "{sink}: {stored} cannot hold labels of type {dtype}; change the name, or write .nii or .nrrd"
    )))
}

/// A volume file to be written.
#[derive(Debug)]
pub struct VolumeTarget<'a> {
    sink: &'a Sink,
    format: VolumeFormat,
    dtype: Dtype,
    endian: Endian,
    placement: Option<Placement>,
    metadata: Vec<(String, String)>,
    nifti: Option<NiftiHeader>,
    channels: usize,
    /// Whether the file is raw and its name does not state shape and type.
    has_unknown_layout: bool,
    /// Messages about content that the file cannot hold.
    losses: Vec<String>,
}

impl<'a> VolumeTarget<'a> {
    /// Plans the output of a volume of `dtype` made from `file`, with its size. The format is that of `sink`'s
    /// extension; without one, that of `file`, or NRRD if that is only read. `endian` is the byte order of raw samples.
    /// A raw name that states another size, or a type that is not written, is refused.
    pub fn new(sink: &'a Sink, file: &VolumeFile, dtype: Dtype, endian: Endian) -> Result<Self> {
        let format = match VolumeFormat::for_output(sink)? {
            Some(format) => format,
            None => {
                let format = if file.format.write.is_some() { file.format } else { DEFAULT_OUTPUT };
                VolumeFormat { format, gzip: false }
            }
        };
        let mut target = Self {
            sink,
            format,
            dtype,
            endian: Endian::Little,
            placement: None,
            metadata: Vec::new(),
            nifti: file.nifti.clone(),
            channels: file.channels(),
            has_unknown_layout: false,
            losses: Vec::new(),
        };
        target.fit(format.support(), file)?;
        if format.format.is_raw {
            target.fit_raw(file, endian)?;
        }
        let (own, new) = (dtype, target.dtype);
        if !holds(new, own) {
            target.losses.push(format!("{own} samples become {new}"));
        }
        Ok(target)
    }

    /// Fits type, placement and metadata to a format.
    fn fit(&mut self, support: &'static WriteSupport, file: &VolumeFile) -> Result<()> {
        if let Some(axis) = (0..3).find(|&axis| file.dims[axis] > support.max_dims[axis]) {
            return Err(Error::usage(format_args!(
                "{}: a .{} file has at most {} samples along {}, but the volume has {}; use .nrrd",
                self.sink,
                support.extensions[0],
                support.max_dims[axis],
                ["x", "y", "z"][axis],
                file.dims[axis]
            )));
        }
        self.dtype = nearest(support.dtypes, self.dtype);
        if self.channels > 1 && !(support.holds_colors)(self.dtype, self.channels) {
            return Err(Error::usage(format_args!(
                "{}: a .{} file cannot hold a volume of {} {} per sample; use .nrrd",
                self.sink, support.extensions[0], self.channels, self.dtype
            )));
        }
        self.metadata.clone_from(&file.metadata);
        let placement = file.placement.as_ref();
        self.placement = match support.placement {
            PlacementSupport::Affine(None) => placement.cloned(),
            // Coordinates of an unknown space are kept.
            PlacementSupport::Affine(Some(space)) => {
                placement.map(|placement| placement.to(space).unwrap_or_else(|| placement.clone()))
            }
            PlacementSupport::Anatomical(space) => placement.map(|placement| {
                placement.to(space).unwrap_or_else(|| placement.straightened([0.0; 3]))
            }),
            PlacementSupport::Straight => {
                placement.map(|placement| match placement.is_axis_aligned() {
                    true => placement.clone(),
                    false => placement.straightened(placement.first),
                })
            }
            PlacementSupport::None => None,
        };
        match support.placement {
            PlacementSupport::None if placement.is_some() => {
                self.losses.push("spacing and orientation are dropped".into());
            }
            PlacementSupport::Straight if placement.is_some_and(Placement::has_orientation) => {
                self.losses.push("the orientation is dropped".into());
            }
            // A first sample that contains the origin may well result from a filter of a volume without coordinates.
            PlacementSupport::Anatomical(_)
                if placement.is_some_and(|own| {
                    own.space.is_none()
                        && (!own.is_axis_aligned()
                            || own.index_at([0.0; 3]).iter().any(|at| at.abs() > 0.5))
                }) =>
            {
                self.losses.push("coordinates in an unknown anatomical space are dropped".into());
            }
            _ => {}
        }
        self.fit_unit(support.units);
        self.losses.extend(file.dropped_metadata(support.keeps_metadata));
        Ok(())
    }

    /// Converts lengths to one of `units`. If the length of a unit is unknown, the numbers are kept.
    fn fit_unit(&mut self, units: UnitSupport) {
        let Some(placement) = &mut self.placement else { return };
        let (held, always) = match &units {
            UnitSupport::Any => return,
            UnitSupport::OneOf(units) => (*units, None),
            UnitSupport::Always(unit) => (std::slice::from_ref(unit), Some(unit)),
        };
        let (own, converted) = (placement.unit.clone(), placement.in_nearest_unit(held));
        let loss = match (own, converted, always) {
            (None, _, Some(unit)) => {
                format!("unit of the spacing is unknown; assuming {unit}")
            }
            (_, Some(converted), _) => {
                *placement = converted;
                return;
            }
            (own, None, always) => {
                let own = own.unwrap_or_default();
                placement.unit = None;
                match always {
                    Some(unit) => format!("spacing in {own} is written as {unit}"),
                    None => format!("the unit of length ({own}) is dropped"),
                }
            }
        };
        self.losses.push(loss);
    }

    /// Fits type and byte order to the name of a raw volume.
    fn fit_raw(&mut self, file: &VolumeFile, endian: Endian) -> Result<()> {
        let sink = self.sink;
        let (dims, dtype) = match sink {
            Sink::File(path) => raw::from_name(path),
            Sink::Stdout => (None, None),
        };
        if let Some(dims) = dims.filter(|dims| dims.0 != file.dims) {
            let own = Dims(file.dims);
            return Err(Error::usage(format_args!(
                "{sink}: the file name states {dims}, but the volume is {own}; change the name"
            )));
        }
        match dtype {
            Some(StoredType::As(dtype)) if Dtype::SAMPLES.contains(&dtype) => self.dtype = dtype,
            None => {}
            Some(other) => {
                return Err(Error::usage(format_args!(
                    "{sink}: the file name states {}, but volumes of that type cannot be written",
                    other.name()
                )));
            }
        }
        self.endian = endian;
        self.has_unknown_layout = dims.is_none() || dtype.is_none();
        Ok(())
    }

    /// A message about content of the volume that the file cannot hold; `None` if it holds everything.
    pub fn losses(&self) -> Option<String> {
        (!self.losses.is_empty()).then(|| self.losses.join(" and "))
    }

    /// Refuses to write labels of type `dtype` if the file would clamp them.
    pub fn check_labels(&self, dtype: Dtype) -> Result<()> {
        check_stored_labels(self.sink, self.dtype, dtype)
    }

    /// Number of stored numbers of a sample.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// The type of stored samples.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The header of a volume of `dims`; `None` if the file is compressed, so that samples have no fixed offsets.
    pub fn header(&self, dims: [usize; 3]) -> Option<Vec<u8>> {
        (!self.format.gzip).then(|| self.header_bytes(dims))
    }

    fn header_bytes(&self, dims: [usize; 3]) -> Vec<u8> {
        let WriteSupport { keeps_metadata, header, .. } = self.format.support();
        let metadata =
            self.metadata.iter().filter(|entry| keeps_metadata(entry)).cloned().collect();
        let placement = self.placement.as_ref();
        let (dtype, channels, nifti) = (self.dtype, self.channels, self.nifti.as_ref());
        header(&HeaderContent { dims, channels, dtype, placement, metadata, nifti })
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::io("write", self.sink.to_string(), error)
    }

    /// Converts samples to the type and byte order of the file.
    pub fn stored(&self, mut samples: Samples) -> Result<Samples> {
        if samples.dtype() != self.dtype {
            samples = samples.converted(self.dtype)?;
        }
        if self.endian == Endian::Big {
            samples.swap_bytes();
        }
        Ok(samples)
    }

    /// Creates the file of a volume of `dims`. Its samples follow in any number of calls of [`VolumeWriter::write`].
    pub fn create(&self, dims: [usize; 3], no_clobber: bool) -> Result<VolumeWriter<'_>> {
        let output = self.sink.create(no_clobber)?;
        let output = match self.format.gzip {
            true => EncodedOutput::Gzip(ParallelGzWriter::new(output)),
            false => EncodedOutput::Plain(output),
        };
        Ok(VolumeWriter { target: self, output, pending_header: Some(dims) })
    }

    /// Reports the layout of a headerless file if its name does not state it.
    fn report_layout(&self, dims: [usize; 3]) {
        if self.has_unknown_layout {
            let order = match self.endian {
                _ if self.dtype.size() == 1 => "",
                Endian::Little => ", little-endian",
                Endian::Big => ", big-endian",
            };
            log::info!("{}: {} of {}{order}", self.sink, Dims(dims), self.dtype);
        }
    }
}

/// A volume file being written. Unless finished, no trace of it remains.
#[derive(Debug)]
pub struct VolumeWriter<'a> {
    target: &'a VolumeTarget<'a>,
    output: EncodedOutput,
    /// The size of the volume, until its header is written before the first samples. An input that falsely claims that
    /// size should fail before that.
    pending_header: Option<[usize; 3]>,
}

#[derive(Debug)]
enum EncodedOutput {
    Plain(Output),
    Gzip(ParallelGzWriter<Output>),
}

impl VolumeWriter<'_> {
    /// Writes the next samples.
    pub fn write(&mut self, samples: Samples) -> Result<()> {
        let samples = self.target.stored(samples)?;
        if let Some(dims) = self.pending_header.take() {
            self.write_bytes(&self.target.header_bytes(dims))?;
            self.target.report_layout(dims);
        }
        self.write_bytes(samples.as_bytes())
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let written = match &mut self.output {
            EncodedOutput::Plain(output) => output.write_all(bytes),
            EncodedOutput::Gzip(output) => output.write_all(bytes),
        };
        written.map_err(|error| self.target.failed(error))
    }

    /// Completes the file but for its name, which it gets when it is committed.
    pub fn finish(self) -> Result<Output> {
        match self.output {
            EncodedOutput::Plain(output) => Ok(output),
            EncodedOutput::Gzip(output) => {
                output.finish().map_err(|error| self.target.failed(error))
            }
        }
    }
}

/// Whether `to` can hold every value of `from`.
fn holds(to: Dtype, from: Dtype) -> bool {
    match (to.is_float(), from.is_float()) {
        (false, true) => false,
        (true, true) => to.size() >= from.size(),
        (true, false) => to.size() > from.size(),
        (false, false) if to.is_signed() == from.is_signed() => to.size() >= from.size(),
        (false, false) => to.is_signed() && to.size() > from.size(),
    }
}

/// The type to write `dtype` as: itself if it is `supported`, else the first that holds all its values, else the last.
fn nearest(supported: &[Dtype], dtype: Dtype) -> Dtype {
    let exact = supported.iter().copied().find(|&to| holds(to, dtype));
    if supported.contains(&dtype) { dtype } else { exact.unwrap_or(supported[supported.len() - 1]) }
}
