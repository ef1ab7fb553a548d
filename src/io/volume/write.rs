//! Writes volumes: a header in the output's format, then the samples, all compressed where the name ends with `.gz`.

use std::io::{self, Write};

use super::{
    file::VolumeFile,
    format::{Endian, Outgoing, Placing, Units, Writing},
    formats::writings,
    members::Members,
    nrrd, raw,
};
use crate::{
    data::{dtype::Dtype, placement::Placement, samples::Samples, volume::Dims},
    io::{Output, Sink, source::packed_extension},
    util::error::{Error, Result},
};

/// The format of a volume file to be written.
#[derive(Clone, Copy, Debug)]
pub struct VolumeFormat {
    writing: &'static Writing,
    gzip: bool,
}

impl VolumeFormat {
    /// The format that the extension of `sink` names; `None` without an extension.
    ///
    /// # Errors
    /// [`Kind::Usage`](crate::util::error::Kind::Usage) when the extension is unknown, or that of a format that is only read.
    pub fn of_output(sink: &Sink) -> Result<Option<Self>> {
        let Sink::File(path) = sink else { return Ok(None) };
        let (extension, gzip) = packed_extension(Some(path));
        if extension.is_empty() && !gzip {
            return Ok(None);
        }
        let found = writings().find(|writing| {
            writing.extensions.contains(&extension.as_str()) && (writing.may_be_packed || !gzip)
        });
        match found {
            Some(writing) => Ok(Some(Self { writing, gzip })),
            None => {
                let gz = if gzip { ".gz" } else { "" };
                Err(Error::usage(format_args!(
                    "{sink}: no volume is written as .{extension}{gz}; use .nii, .nii.gz, .nrrd, .mha, \
                     .mrc, .npy, .tif, .raw or .raw.gz"
                )))
            }
        }
    }
}

/// A volume file to be written.
#[derive(Debug)]
pub struct VolumeTarget<'a> {
    sink: &'a Sink,
    format: VolumeFormat,
    dtype: Dtype,
    endian: Endian,
    placement: Option<Placement>,
    metadata: &'a [(String, String)],
    /// Whether the file is raw and its name does not tell shape and type.
    name_is_silent: bool,
    /// What the file cannot hold, in words.
    losses: Vec<String>,
}

impl<'a> VolumeTarget<'a> {
    /// Plans the output of a volume of `dtype` made from `file`, with its size. The format is that of `sink`'s extension;
    /// without one, that of `file`, or NRRD where that is only read. `endian` is the byte order of raw samples.
    ///
    /// # Errors
    /// As [`VolumeFormat::of_output`]; also when the name of a raw volume tells another size, or a type that is not
    /// written.
    pub fn new(sink: &'a Sink, file: &'a VolumeFile, dtype: Dtype, endian: Endian) -> Result<Self> {
        let format = match VolumeFormat::of_output(sink)? {
            Some(format) => format,
            None => {
                let own = writings().find(|writing| writing.names.contains(&file.format()));
                let nrrd = || nrrd::FORMAT.write.as_ref().expect("it is written");
                VolumeFormat { writing: own.unwrap_or_else(nrrd), gzip: false }
            }
        };
        let mut target = Self {
            sink,
            format,
            dtype,
            endian: Endian::Little,
            placement: None,
            metadata: &[],
            name_is_silent: false,
            losses: Vec::new(),
        };
        target.fit(format.writing, file)?;
        if format.writing.names == [raw::NAME] {
            target.fit_raw(file, endian)?;
        }
        let (own, new) = (dtype, target.dtype);
        if !holds(new, own) {
            target.losses.push(format!("{own} samples become {new}"));
        }
        Ok(target)
    }

    /// Fits type, placement and metadata to a format.
    fn fit(&mut self, writing: &'static Writing, file: &'a VolumeFile) -> Result<()> {
        if let Some(axis) = (0..3).find(|&axis| file.dims[axis] > writing.longest[axis]) {
            return Err(Error::usage(format_args!(
                "{}: a .{} file has at most {} samples along {}, and the volume has {}; use .nrrd",
                self.sink,
                writing.extensions[0],
                writing.longest[axis],
                ["x", "y", "z"][axis],
                file.dims[axis]
            )));
        }
        self.dtype = nearest(writing.dtypes, self.dtype);
        self.metadata = file.metadata();
        let placement = file.placement();
        self.placement = match writing.placing {
            Placing::Affine(None) => placement.cloned(),
            // Coordinates of an unknown space are left as they are.
            Placing::Affine(Some(space)) => {
                placement.map(|placement| placement.to(space).unwrap_or_else(|| placement.clone()))
            }
            Placing::Straight => placement.map(|placement| match placement.is_straight() {
                true => placement.clone(),
                false => Placement {
                    unit: placement.unit.clone(),
                    ..Placement::straight(placement.spacing(), placement.first)
                },
            }),
            Placing::Nothing => None,
        };
        match writing.placing {
            Placing::Nothing if placement.is_some() => {
                self.losses.push("spacing and orientation are dropped".into());
            }
            Placing::Straight if placement.is_some_and(Placement::has_orientation) => {
                self.losses.push("the orientation is dropped".into());
            }
            _ => {}
        }
        self.fit_unit(writing.units);
        self.losses.extend(file.dropped_metadata(writing.keeps));
        Ok(())
    }

    /// Converts lengths to one of `units`. Where the length of a unit is not known, the numbers are kept.
    fn fit_unit(&mut self, units: Units) {
        let Some(placement) = &mut self.placement else { return };
        let (held, always) = match &units {
            Units::Any => return,
            Units::OneOf(units) => (*units, None),
            Units::Always(unit) => (std::slice::from_ref(unit), Some(unit)),
        };
        let (own, converted) = (placement.unit.clone(), placement.in_unit_of(held));
        let loss = match (own, converted, always) {
            (None, _, Some(unit)) => {
                format!("the spacing, whose unit is not stated, is taken as {unit}")
            }
            (_, Some(converted), _) => {
                *placement = converted;
                return;
            }
            (own, None, always) => {
                let own = own.unwrap_or_default();
                placement.unit = None;
                match always {
                    Some(unit) => format!("the spacing in {own} is taken as {unit}"),
                    None => format!("the unit of length ({own}) is dropped"),
                }
            }
        };
        self.losses.push(loss);
    }

    /// Fits type and byte order to the name of a raw volume.
    fn fit_raw(&mut self, file: &'a VolumeFile, endian: Endian) -> Result<()> {
        let sink = self.sink;
        let (dims, dtype) = match sink {
            Sink::File(path) => raw::from_name(path),
            Sink::Stdout => (None, None),
        };
        if let Some(dims) = dims.filter(|dims| dims.0 != file.dims) {
            let own = Dims(file.dims);
            return Err(Error::usage(format_args!(
                "{sink}: its name says {dims}, but the volume is {own}"
            )));
        }
        if let Some(dtype) = dtype.filter(|dtype| !Dtype::SAMPLES.contains(dtype)) {
            return Err(Error::usage(format_args!(
                "{sink}: its name says {dtype}, and volumes of that type are not written"
            )));
        }
        self.endian = endian;
        self.dtype = dtype.unwrap_or(self.dtype);
        self.name_is_silent = dims.is_none() || dtype.is_none();
        Ok(())
    }

    /// What the file cannot hold of the volume, in words; `None` when it holds everything.
    pub fn losses(&self) -> Option<String> {
        (!self.losses.is_empty()).then(|| self.losses.join(" and "))
    }

    /// The type of stored samples.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The header of a volume of `dims`; `None` where the file is compressed, so that samples have no fixed offsets.
    pub fn header(&self, dims: [usize; 3]) -> Option<Vec<u8>> {
        (!self.format.gzip).then(|| self.header_bytes(dims))
    }

    fn header_bytes(&self, dims: [usize; 3]) -> Vec<u8> {
        let Writing { keeps, header, .. } = self.format.writing;
        let metadata = self.metadata.iter().filter(|entry| keeps(entry)).cloned().collect();
        let placement = self.placement.as_ref();
        header(&Outgoing { dims, dtype: self.dtype, placement, metadata })
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::io("write", self.sink.to_string(), error)
    }

    /// Converts samples to the type and byte order of the file.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn stored(&self, mut samples: Samples) -> Result<Samples> {
        if samples.dtype() != self.dtype {
            samples = samples.converted(self.dtype)?;
        }
        if (self.endian == Endian::Big) != cfg!(target_endian = "big") {
            samples.swap_bytes();
        }
        Ok(samples)
    }

    /// Creates the file of a volume of `dims`. Its samples follow in any number of calls of [`VolumeWriter::write`].
    ///
    /// # Errors
    /// [`Kind::Io`](crate::util::error::Kind::Io) when it cannot be written.
    pub fn create(&self, dims: [usize; 3], no_clobber: bool) -> Result<VolumeWriter<'_>> {
        let output = self.sink.create(no_clobber)?;
        let output = match self.format.gzip {
            true => Stored::Packed(Members::new(output)),
            false => Stored::Plain(output),
        };
        Ok(VolumeWriter { target: self, output, header_of: Some(dims) })
    }

    /// Reports the layout of a headerless file if its name does not state it.
    fn tell_layout(&self, dims: [usize; 3]) {
        if self.name_is_silent {
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
    output: Stored,
    /// The size of the volume, until its header is written before the first samples. If the input only claims that
    /// size, it should fail before that.
    header_of: Option<[usize; 3]>,
}

#[derive(Debug)]
enum Stored {
    Plain(Output),
    Packed(Members<Output>),
}

impl VolumeWriter<'_> {
    /// Writes the next samples.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::util::error::Kind::Io) when they cannot be written.
    pub fn write(&mut self, samples: Samples) -> Result<()> {
        let samples = self.target.stored(samples)?;
        if let Some(dims) = self.header_of.take() {
            self.put(&self.target.header_bytes(dims))?;
            self.target.tell_layout(dims);
        }
        self.put(samples.as_bytes())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let written = match &mut self.output {
            Stored::Plain(output) => output.write_all(bytes),
            Stored::Packed(members) => members.write_all(bytes),
        };
        written.map_err(|error| self.target.failed(error))
    }

    /// Completes the file.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::util::error::Kind::Io) when that fails; then no file appears.
    pub fn finish(self) -> Result<()> {
        let output = match self.output {
            Stored::Plain(output) => output,
            Stored::Packed(members) => {
                members.finish().map_err(|error| self.target.failed(error))?
            }
        };
        output.commit()
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

/// The type to write `dtype` as: itself if it is among `held`, else the first that holds all its values, else the last.
fn nearest(held: &[Dtype], dtype: Dtype) -> Dtype {
    let whole = held.iter().copied().find(|&to| holds(to, dtype));
    match held.contains(&dtype) {
        true => dtype,
        false => whole.unwrap_or(held[held.len() - 1]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_type_holds_all_values_where_one_does() {
        let mrc = [Dtype::I8, Dtype::I16, Dtype::U16, Dtype::F32];
        for (own, found) in [
            (Dtype::U8, Dtype::I16),
            (Dtype::I8, Dtype::I8),
            (Dtype::U16, Dtype::U16),
            (Dtype::I32, Dtype::F32),
            (Dtype::F64, Dtype::F32),
        ] {
            assert_eq!(nearest(&mrc, own), found, "{own}");
        }
        for own in Dtype::SAMPLES {
            assert!(holds(own, own) && holds(Dtype::F64, own));
        }
        assert!(!holds(Dtype::F32, Dtype::I32) && !holds(Dtype::U16, Dtype::I8));
    }

    #[test]
    fn outputs_are_known_by_their_names() {
        let format = |name: &str| VolumeFormat::of_output(&Sink::File(name.into()));
        for name in
            ["a.nii", "a.nii.gz", "a.NRRD", "a.mha", "a.mrc", "a.npy", "a.raw", "b.raw.gz", "a.tif"]
        {
            assert!(format(name).unwrap().is_some(), "{name}");
        }
        for name in ["a.tif.gz", "a.png", "a.nrrd.gz", "a.mhd", "a.img", "a.gz", "a.dcm"] {
            assert!(format(name).is_err(), "{name}");
        }
        assert!(
            format("a").unwrap().is_none()
                && VolumeFormat::of_output(&Sink::Stdout).unwrap().is_none()
        );
    }
}
