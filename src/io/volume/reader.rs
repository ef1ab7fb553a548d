//! Reads the samples of a volume slice by slice, whatever its format.

use std::{
    fmt,
    io::{self, Read},
    sync::{Arc, PoisonError},
};

use super::{
    convert,
    file::VolumeFile,
    header::{Description, Loss, StoredType},
    interleaved,
    slices::{grey::grey, stack::Slices},
    stream::{self, ByteStream, SampleLocation},
};
use crate::{
    data::{grid::Grid, reader::Reader, samples::Samples, volume::Dims},
    io::Limits,
    util::{
        error::{Error, Hint, Result},
        memory,
        timings::Timings,
    },
};

/// A volume being read from its first slice to its last.
pub struct VolumeReader {
    file: VolumeFile,
    input: SampleSource,
    /// Samples that the caller has given back. Their memory is reused.
    spare: Option<Samples>,
}

/// The source of samples.
enum SampleSource {
    /// A stream of all samples.
    Stream(ByteStream),
    /// Slices, and the number of the next one.
    Slices(Arc<dyn Slices>, usize),
}

impl fmt::Debug for VolumeReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VolumeReader").field("file", &self.file).finish_non_exhaustive()
    }
}

impl VolumeFile {
    /// Reads the whole volume, within `limits`.
    pub fn read(&self, limits: impl Into<Limits>, timings: &Timings) -> Result<Grid> {
        let limits = limits.into();
        self.check(limits)?;
        self.check_bytes(limits)?;
        timings.time("read", || {
            let mut reader = self.reader()?;
            let samples = reader.read(self.dims[2])?;
            reader.expect_end()?;
            Ok(Grid::volume(self.dims, samples))
        })
    }

    /// Opens the volume at its first slice.
    pub fn reader(&self) -> Result<VolumeReader> {
        self.reader_at(0)
    }

    /// Opens the volume at the z-slice `first`. Slices before it are read and dropped if their size in the file is
    /// unknown.
    pub fn reader_at(&self, first: usize) -> Result<VolumeReader> {
        if let SampleLocation::Slices(slices) = &self.location {
            let first = self.volume * self.dims[2] + first;
            let input = SampleSource::Slices(slices.clone(), first);
            return Ok(VolumeReader { file: self.clone(), input, spare: None });
        }
        let Description { skip, encoding, stored, ref inner_axes, .. } = **self;
        let pipe = self.pipe.as_ref().map(|pipe| {
            let pipe = pipe.lock().unwrap_or_else(PoisonError::into_inner).take();
            pipe.ok_or_else(|| {
                let source = &self.source;
                let fact = format_args!("{source}: a pipe can be read only once");
                Error::bad_input(fact).with_hint(Hint::Memory)
            })
        });
        let mut extent = self.extent().expect("checked before");
        let numbers = self.dims[0] * self.dims[1] * self.colors;
        let before = (numbers * first * stored.size()) as u64;
        if !self.transposed {
            extent.before += before * interleaved::count(inner_axes) as u64;
        }
        let mut input =
            stream::open(&self.location, pipe.transpose()?, skip, (encoding, stored), extent)?;
        let index = self.volume % interleaved::count(inner_axes);
        input = interleaved::select(input, inner_axes, index, stored.size());
        if self.transposed {
            input = stream::transposed(input, self.dims, stored.size())
                .map_err(|error| error.context(format_args!("cannot read {}", self.source)))?;
            stream::skip_bytes(&mut input, before)
                .map_err(|error| stream::failed(&self.source, error))?;
        }
        Ok(VolumeReader { file: self.clone(), input: SampleSource::Stream(input), spare: None })
    }
}

impl VolumeReader {
    /// Reads the samples of the next `slices` z-slices.
    pub fn read(&mut self, slices: usize) -> Result<Samples> {
        self.read_after(None, slices)
    }

    /// Skips the next `slices` z-slices if slices are read one by one.
    pub(super) fn skip(&mut self, slices: usize) {
        if let SampleSource::Slices(_, next) = &mut self.input {
            *next += slices;
        }
    }

    /// Reads the bits of the next `count` z-slices of 64-bit integers, after [`VolumeFile::keep_integers`].
    pub fn read_integers(&mut self, count: usize) -> Result<Vec<u64>> {
        let (source, Description { dims, endian, .. }) = (&self.file.source, &*self.file);
        let mut integers = memory::zeros::<u64>(dims[0] * dims[1] * count)
            .map_err(|error| error.context(format_args!("cannot read {source}")))?;
        let SampleSource::Stream(input) = &mut self.input else {
            return Err(Error::bad_input(format_args!(
                "{source}: 64-bit integers in slices are not supported"
            )));
        };
        let read = input.read_exact(bytemuck::cast_slice_mut(&mut integers));
        read.map_err(|error| self.failed(error))?;
        endian.to_native(bytemuck::cast_slice_mut(&mut integers), size_of::<u64>());
        Ok(integers)
    }

    fn failed(&self, error: io::Error) -> Error {
        let (source, dims) = (&self.file.source, self.file.dims);
        match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                Error::bad_input(format_args!("{source}: file ends before {} samples", Dims(dims)))
            }
            _ => stream::failed(source, error),
        }
    }
}

impl Reader for VolumeReader {
    fn read_after(&mut self, before: Option<&Samples>, count: usize) -> Result<Samples> {
        let source = &self.file.source;
        let Description { dims, dtype, stored, endian, scale, .. } = *self.file;
        let spare = self.spare.take().filter(|spare| spare.dtype() == dtype);
        let channels = self.file.channels();
        let slice = dims[0] * dims[1] * channels;
        let mut samples = Samples::extended(before, slice * count, dtype, spare)
            .map_err(|error| error.context(format_args!("cannot read {source}")))?;
        let new = &mut samples.as_bytes_mut()[before.map_or(0, |held| held.as_bytes().len())..];
        let input = match &mut self.input {
            SampleSource::Stream(input) => input,
            SampleSource::Slices(all, next) => {
                let bytes = dims[0] * dims[1] * dtype.size();
                all.read_range(*next, bytes, new)
                    .map_err(|error| error.context(format_args!("cannot read {source}")))?;
                *next += count;
                return Ok(samples);
            }
        };
        let fill = |input: &mut ByteStream, bytes: &mut [u8]| match scale.is_none()
            && stored == StoredType::As(dtype)
        {
            true => input.read_exact(bytes).map(|()| endian.to_native(bytes, dtype.size())),
            false => convert::read(input, (stored, endian), scale, dtype, bytes),
        };
        let read = match self.file.colors {
            colors if colors > channels => {
                let mut numbers = Samples::zeros(dtype, slice * colors)?;
                let mut slices = new.chunks_exact_mut(slice * dtype.size());
                slices.try_for_each(|to| -> io::Result<()> {
                    fill(input, numbers.as_bytes_mut())?;
                    to.copy_from_slice(
                        grey(&numbers, colors).map_err(io::Error::other)?.as_bytes(),
                    );
                    Ok(())
                })
            }
            _ => fill(input, new),
        };
        read.map_err(|error| self.failed(error))?;
        Ok(samples)
    }

    /// Fails if data follow the samples of a raw volume, whose shape must then be wrong. For other formats, a warning
    /// reports them.
    fn expect_end(&mut self) -> Result<()> {
        let VolumeFile { source, volume, .. } = &self.file;
        let Description { dims, dtype, volumes, losses, .. } = &*self.file;
        if volume + 1 < *volumes {
            return Ok(());
        }
        let SampleSource::Stream(input) = &mut self.input else { return Ok(()) };
        let more = loop {
            match input.read(&mut [0]) {
                Ok(read) => break read > 0,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(stream::failed(source, error)),
            }
        };
        match more {
            false => Ok(()),
            true if self.file.format.is_raw => Err(Error::bad_input(format_args!(
                "{source}: file has more data than {} samples of {dtype}",
                Dims(*dims)
            ))),
            true => {
                // Has been reported before if the length of the file is known.
                if !losses.iter().any(|loss| matches!(loss, Loss::Trailing(_))) {
                    log::warn!("{source}: data after the samples are ignored");
                }
                Ok(())
            }
        }
    }

    /// Reading into used memory takes half the time of reading into fresh memory, which the system clears first.
    fn reuse(&mut self, done: Samples) {
        self.spare = Some(done);
    }
}
