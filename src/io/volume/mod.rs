//! Raw volumes: bare samples, x fastest, then y, then z, whose shape the file's name or flags tell.

use std::{
    fmt,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::Path,
    str::FromStr,
};

use super::{Limits, Source};
use crate::{
    data::{dtype::Dtype, samples::Samples, volume::Volume},
    error::{Error, Hint, Result},
    timings::Timings,
};

/// Samples along x, y and z.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dims(pub [usize; 3]);

impl FromStr for Dims {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not of the form 256x256x128");
        let mut dims = [0; 3];
        let mut parts = text.split(['x', 'X']);
        for dim in &mut dims {
            *dim = parts.next().and_then(|part| part.parse().ok()).ok_or_else(wrong)?;
        }
        if parts.next().is_some() || dims.contains(&0) {
            return Err(wrong());
        }
        Ok(Self(dims))
    }
}

impl fmt::Display for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.0;
        write!(f, "{x}x{y}x{z}")
    }
}

/// The order of a sample's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endian {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

/// What is known of a raw volume besides its file's name and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawLayout {
    /// Samples along x, y and z.
    pub dims: Option<Dims>,
    /// The samples' type.
    pub dtype: Option<Dtype>,
    /// The order of a sample's bytes.
    pub endian: Endian,
    /// Bytes before the first sample.
    pub header_bytes: u64,
}

/// A raw volume whose shape is known and whose samples are still to be read.
#[derive(Clone, Debug)]
pub struct VolumeFile {
    source: Source,
    /// Samples along x, y and z.
    pub dims: [usize; 3],
    /// The samples' type.
    pub dtype: Dtype,
    endian: Endian,
    header_bytes: u64,
}

impl VolumeFile {
    /// Finds the shape of `source` from `layout`, from its name, or from its size, in that order.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::error::Kind::Io) when it cannot be read; [`Kind::BadInput`](crate::error::Kind::BadInput) when the shape is not told, or the
    /// file's length is not what the shape makes it.
    pub fn describe(source: &Source, layout: &RawLayout) -> Result<Self> {
        let size = source.size()?;
        let (named_dims, named_dtype) = source.path().map_or((None, None), from_name);
        let dtype = layout.dtype.or(named_dtype).unwrap_or(Dtype::U8);
        let body = size.map(|size| size.saturating_sub(layout.header_bytes));
        let cube = || {
            let side = (body? as f64).cbrt().round() as u64;
            let is_cube = dtype == Dtype::U8 && side > 0 && side.checked_pow(3) == body;
            is_cube.then_some(Dims([side as usize; 3]))
        };
        let compressed = source.extension() == "gz";
        let dims = layout.dims.or(named_dims).or_else(|| cube().filter(|_| !compressed));
        let Some(Dims(dims)) = dims else {
            return Err(Error::bad_input(format_args!(
                "{source}: neither name nor size tells the shape of the volume"
            ))
            .with_hint(Hint::VolumeShape));
        };
        let file = Self {
            source: source.clone(),
            dims,
            dtype,
            endian: layout.endian,
            header_bytes: layout.header_bytes,
        };
        let expected = file.bytes().and_then(|bytes| bytes.checked_add(layout.header_bytes));
        let Some(expected) = expected else {
            return Err(Error::bad_input(format_args!("{source}: {} is too large", Dims(dims))));
        };
        match size {
            Some(size) if size != expected && !compressed => Err(Error::bad_input(format_args!(
                "{source}: {} of {dtype} make {expected} bytes, but the file has {size}",
                Dims(dims)
            ))),
            _ => Ok(file),
        }
    }

    /// Whether it can be read more than once.
    pub fn can_reopen(&self) -> bool {
        matches!(self.source.size(), Ok(Some(_)))
    }

    /// Bytes of all samples; nothing when that does not fit 64 bits.
    pub fn bytes(&self) -> Option<u64> {
        let count = self.dims.iter().try_fold(1u64, |n, &dim| n.checked_mul(dim as u64))?;
        count.checked_mul(self.dtype.size() as u64)
    }

    /// Refuses a volume of more samples than allowed.
    ///
    /// # Errors
    /// [`Kind::BadInput`](crate::error::Kind::BadInput) then.
    pub fn check(&self, limits: Limits) -> Result<()> {
        limits.check(&self.dims).map_err(|error| error.context(&self.source))
    }

    /// Reads all of it, at most `limits`.
    ///
    /// # Errors
    /// [`Kind::BadInput`](crate::error::Kind::BadInput) when it is larger than `limit` or ends early, [`Kind::Io`](crate::error::Kind::Io) when reading fails.
    pub fn read(&self, limits: impl Into<Limits>, timings: &Timings) -> Result<Volume> {
        let limits = limits.into();
        self.check(limits)?;
        let limit = limits.bytes;
        let bytes = self.bytes().unwrap_or(u64::MAX);
        if bytes > limit {
            return Err(Error::bad_input(format_args!(
                "{}: {bytes} bytes are more than the {limit} allowed",
                self.source
            ))
            .with_hint(Hint::Memory));
        }
        timings.time("read", || {
            let mut reader = self.reader()?;
            let samples = reader.read(self.dims[2])?;
            reader.expect_end()?;
            Ok(Volume { dims: self.dims, samples })
        })
    }

    /// Opens it at the first slice.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::error::Kind::Io) when that fails.
    pub fn reader(&self) -> Result<VolumeReader> {
        let failed = |error| Error::io("read", self.source.to_string(), error);
        let input: Box<dyn Read + Send> = match &self.source {
            Source::File(path) if self.source.extension() != "gz" => {
                let mut file = File::open(path).map_err(failed)?;
                // A pipe cannot seek; its header is read away below.
                if file.seek(SeekFrom::Start(self.header_bytes)).is_err() {
                    skip(&mut file, self.header_bytes).map_err(failed)?;
                }
                Box::new(file)
            }
            source => {
                let mut input = source.open()?;
                if source.extension() == "gz" {
                    input = Box::new(flate2::read::MultiGzDecoder::new(input));
                }
                skip(&mut input, self.header_bytes).map_err(failed)?;
                input
            }
        };
        Ok(VolumeReader { file: self.clone(), input })
    }
}

fn skip(input: &mut impl Read, bytes: u64) -> std::io::Result<()> {
    std::io::copy(&mut input.take(bytes), &mut std::io::sink()).map(drop)
}

/// A volume being read from its first slice to its last.
pub struct VolumeReader {
    file: VolumeFile,
    input: Box<dyn Read + Send>,
}

impl fmt::Debug for VolumeReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VolumeReader").field("file", &self.file).finish_non_exhaustive()
    }
}

impl VolumeReader {
    /// The samples of the next `slices` z-slices.
    ///
    /// # Errors
    /// [`Kind::BadInput`](crate::error::Kind::BadInput) when the data end early, [`Kind::Io`](crate::error::Kind::Io) when reading fails.
    pub fn read(&mut self, slices: usize) -> Result<Samples> {
        self.read_after(None, slices)
    }

    /// The samples `before`, and behind them those of the next `slices` z-slices.
    ///
    /// # Errors
    /// As [`VolumeReader::read`].
    pub fn read_after(&mut self, before: Option<&Samples>, slices: usize) -> Result<Samples> {
        let VolumeFile { source, dims, dtype, endian, .. } = &self.file;
        let len = dims[0] * dims[1] * slices + before.map_or(0, Samples::len);
        let mut samples = Samples::zeros(*dtype, len)
            .map_err(|error| error.context(format_args!("cannot read {source}")))?;
        let mut new = samples.as_bytes_mut();
        if let Some(before) = before {
            let held = new.split_off_mut(..before.as_bytes().len()).expect("counted above");
            held.copy_from_slice(before.as_bytes());
        }
        self.input.read_exact(new).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                Error::bad_input(format_args!("{source}: the data end before {} do", Dims(*dims)))
            }
            _ => Error::io("read", source.to_string(), error),
        })?;
        if (*endian == Endian::Big) != cfg!(target_endian = "big") {
            new.chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
        }
        Ok(samples)
    }

    /// Checks that nothing follows the last slice.
    ///
    /// # Errors
    /// [`Kind::BadInput`](crate::error::Kind::BadInput) when something does.
    pub fn expect_end(&mut self) -> Result<()> {
        match self.input.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(Error::bad_input(format_args!(
                "{}: there are more data than {} of {} take",
                self.file.source,
                Dims(self.file.dims),
                self.file.dtype
            ))),
            Err(error) => Err(Error::io("read", self.file.source.to_string(), error)),
        }
    }
}

/// Dims and type from a name such as `skull_256x256x256_uint8.raw`: parts between underscores, dots
/// or spaces, in any place.
fn from_name(path: &Path) -> (Option<Dims>, Option<Dtype>) {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // The last of each: a name may begin with a word such as `short`.
    let mut parts = name.split(['_', '.', ' ']).rev();
    let dims = parts.clone().find_map(|part| part.parse().ok());
    (dims, parts.find_map(|part| Dtype::one_of(&Dtype::SAMPLES, part).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_shape_and_type() {
        let read = |name: &str| from_name(Path::new(name));
        let dims = Some(Dims([70, 123, 66]));
        assert_eq!(read("bolt_70x123x66_uint8.raw"), (dims, Some(Dtype::U8)));
        assert_eq!(read("a/b_c_70x123x66_float32.raw.gz"), (dims, Some(Dtype::F32)));
        assert_eq!(read("short_1x2x3_uint8.raw").1, Some(Dtype::U8));
        assert_eq!(read("plain.raw"), (None, None));
        assert!("0x1x1".parse::<Dims>().is_err());
        assert!("1x1x1x1".parse::<Dims>().is_err());
    }
}
