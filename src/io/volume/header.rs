//! All facts about a volume before a sample is read ([`Description`]), and the beginning of a file from which it is
//! parsed.

use std::{
    borrow::Cow,
    fmt,
    io::{self, BufRead, Read},
    path::Path,
};

use serde::Serialize;

use crate::data::{dtype::Dtype, placement::Placement};

/// Byte order of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Endian {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl Endian {
    /// Reverses the bytes of each number of `size` bytes, unless they are little-endian, as on all supported machines.
    pub fn to_native(self, bytes: &mut [u8], size: usize) {
        match (self, size) {
            (Self::Little, _) | (_, 1) => {}
            // Twice as fast as below.
            (_, 2) => bytes.as_chunks_mut::<2>().0.iter_mut().for_each(|pair| pair.reverse()),
            (_, size) => bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse),
        }
    }
}

/// The type of a stored sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum StoredType {
    /// A type of samples or numbers.
    As(Dtype),
    /// 16-bit IEEE 754 float.
    F16,
}

impl StoredType {
    /// Parses the name of a type, in upper or lower case.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "f16" | "float16" => Ok(Self::F16),
            _ => match Dtype::parse_one_of(&Dtype::ALL, text) {
                Ok(dtype) => Ok(Self::As(dtype)),
                Err(message) => Err(format!("{message} f16")),
            },
        }
    }

    /// Size in bytes.
    pub fn size(self) -> usize {
        match self {
            Self::As(dtype) => dtype.size(),
            Self::F16 => 2,
        }
    }

    /// The sample type of values that are stored as this: the stored type, but a float type if they are rescaled, or
    /// stored as 64-bit integers or 16-bit floats.
    pub fn read_as(self, scale: Option<Scale>) -> Dtype {
        match (self, scale) {
            (Self::F16, _) => Dtype::F32,
            (Self::As(Dtype::U64 | Dtype::I64), _) => Dtype::F64,
            (Self::As(own), None) => own,
            (Self::As(Dtype::U32 | Dtype::I32 | Dtype::F64), Some(_)) => Dtype::F64,
            (Self::As(_), Some(_)) => Dtype::F32,
        }
    }

    /// Name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::As(dtype) => dtype.name(),
            Self::F16 => "f16",
        }
    }
}

/// The value of a stored number n is `slope * n + intercept`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The factor.
    pub slope: f64,
    /// The value of 0.
    pub intercept: f64,
}

/// The name in messages of volumes that are components of vectors.
pub const VECTORS: &str = "components of its vectors";

/// Everything known about a volume before a sample is read.
#[derive(Clone, Debug)]
pub struct Description {
    /// Name of the format, if it is more specific than that of its [`Format`](super::format::Format).
    pub variant: Option<Cow<'static, str>>,
    /// Samples along x, y and z.
    pub dims: [usize; 3],
    /// Number of volumes of this size that follow each other.
    pub volumes: usize,
    /// The name of the volumes of a file in messages: `volumes`, `channels`, ...
    pub volume_noun: &'static str,
    /// Numbers of channels and times, if the volumes are all channels of the first time, then of the next.
    pub channels_and_times: Option<[usize; 2]>,
    /// Number of stored numbers of a sample: 1, or 3 or 4 for colours.
    pub colors: usize,
    /// Type of a stored number.
    pub stored: StoredType,
    /// Byte order of samples.
    pub endian: Endian,
    /// Slope and intercept from stored numbers to values; `None` if they are the same.
    pub scale: Option<Scale>,
    /// The type of the samples once read: values are scaled, and 64-bit integers become f64.
    pub dtype: Dtype,
    /// Bytes of all files of a volume of slices.
    pub file_bytes: Option<u64>,
    /// Position and orientation in the world, if the header states them.
    pub placement: Option<Placement>,
    /// Names of the files whose concatenation holds the samples; `None` if the file of the header does.
    pub files: Option<Vec<String>>,
    /// Offset of the samples in that file, or in each of those files.
    pub skip: Skip,
    /// Encoding of the samples.
    pub encoding: Encoding,
    /// Non-spatial axes that are faster than the slowest spatial axis, the fastest first.
    pub inner_axes: Vec<InnerAxis>,
    /// Whether z is the fastest axis (Fortran order), so that all samples must be reordered.
    pub transposed: bool,
    /// Other entries: names and texts.
    pub metadata: Vec<(String, String)>,
    /// Messages about assumptions and about fields that are not understood.
    pub warnings: Vec<String>,
    /// Content of the file that the volume does not have.
    pub losses: Vec<Loss>,
    /// The header of a NIfTI file.
    pub nifti: Option<NiftiHeader>,
}

/// The header of the NIfTI file that a volume was read from. A NIfTI output keeps the fields that stay true.
#[derive(Clone, Debug)]
pub struct NiftiHeader {
    /// Its 348 or 540 bytes.
    pub bytes: Vec<u8>,
    /// The map of its quaternion, moved as the samples were; `None` if it is invalid.
    pub qform: Option<Placement>,
    /// Index of the volume in the file.
    pub volume: usize,
    /// Whether the slices are those of the file.
    pub has_same_slices: bool,
    /// Whether samples are the same quantity as in the file, in the same unit.
    pub has_same_quantity: bool,
}

/// A difference between a file and the volume read from it.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// 64-bit integers of this type become f64.
    Integers(Dtype),
    /// This many bytes follow the samples.
    Trailing(u64),
    /// Any other, as a message.
    Other(String),
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integers(dtype) => {
                write!(f, "{dtype} samples are read as f64, exact up to 2^53")
            }
            Self::Trailing(bytes) => write!(f, "{bytes} bytes after the samples are ignored"),
            Self::Other(message) => f.write_str(message),
        }
    }
}

impl<T: Into<String>> From<T> for Loss {
    fn from(message: T) -> Self {
        Self::Other(message.into())
    }
}

/// Offset of the first sample: a number of bytes, then of lines, then of decompressed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skip {
    /// Offset in the file.
    pub from: u64,
    /// Number of lines of text to skip from there.
    pub lines: u32,
    /// Number of decompressed bytes to skip then. `None`: the samples are counted from the end of the file.
    pub bytes: Option<u64>,
    /// Number of bytes after samples that are counted from the end.
    pub after: u64,
}

impl Skip {
    /// Skips the `from` first bytes of the file.
    pub fn to(from: u64) -> Self {
        Self { from, lines: 0, bytes: Some(0), after: 0 }
    }
}

/// A non-spatial axis of a file that is faster than the slowest spatial axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InnerAxis {
    /// Number of samples of all faster axes.
    pub run: usize,
    /// Number of positions along the axis.
    pub size: usize,
}

/// The encoding of samples, apart from a `.gz` around the whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Uncompressed.
    Raw,
    Gzip,
    Zlib,
    Bzip2,
    /// Decimal numbers separated by blanks.
    Text,
    /// Two hexadecimal digits for each byte, and blanks.
    Hex,
}

impl Description {
    /// One volume of little-endian samples from offset `from` on.
    pub fn new(dims: [usize; 3], stored: StoredType, from: u64) -> Self {
        Self {
            variant: None,
            dims,
            volumes: 1,
            volume_noun: "volumes",
            channels_and_times: None,
            colors: 1,
            stored,
            endian: Endian::Little,
            scale: None,
            dtype: stored.read_as(None),
            file_bytes: None,
            placement: None,
            files: None,
            skip: Skip::to(from),
            encoding: Encoding::Raw,
            inner_axes: Vec::new(),
            transposed: false,
            metadata: Vec::new(),
            warnings: Vec::new(),
            losses: Vec::new(),
            nifti: None,
        }
    }

    /// Sets slope and intercept, and the type of the samples once read.
    pub fn set_scale(&mut self, scale: Option<Scale>) {
        self.scale = scale;
        self.dtype = self.stored.read_as(scale);
    }

    /// Sets the placement, in lengths of the units that the file names for the axes x, y and z, or adds a warning if it
    /// is invalid.
    pub fn set_placement_in(&mut self, mut placement: Placement, units: [Option<&str>; 3]) {
        self.warnings.extend(placement.set_units(units));
        self.set_placement(placement);
    }

    /// Sets the placement, or adds a warning if it is invalid.
    pub fn set_placement(&mut self, placement: Placement) {
        match placement.is_regular() {
            true => self.placement = Some(placement),
            false => self.warnings.push("spacing or orientation is invalid; ignoring it".into()),
        }
    }
}

/// Maximum size in bytes of a header of text lines.
const MAX_TEXT: usize = 1 << 20;

/// The decompressed beginning of a file, from which a format parses its header.
pub struct HeaderReader<'a> {
    input: &'a mut (dyn BufRead + Send),
    /// Number of bytes read so far.
    pub position: u64,
    /// Number of bytes read as lines.
    text: usize,
    /// The file's name.
    pub path: Option<&'a Path>,
}

impl<'a> HeaderReader<'a> {
    /// Reads from the first byte of `input`.
    pub fn new(input: &'a mut (dyn BufRead + Send), path: Option<&'a Path>) -> Self {
        Self { input, position: 0, text: 0, path }
    }

    /// Reads the next `N` bytes.
    pub fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads the next line, without its end; `None` at the end of the file. A line may contain no NUL, and all lines
    /// together may have 1 MiB.
    pub fn line(&mut self) -> Result<Option<String>, BoxError> {
        let mut line = Vec::new();
        let left = MAX_TEXT - self.text;
        let mut input = (&mut *self.input).take(left as u64 + 1);
        let read = input.read_until(b'\n', &mut line)?;
        self.position += read as u64;
        self.text += read;
        match read {
            0 => return Ok(None),
            _ if line.contains(&0) => return Err("header contains a NUL byte".into()),
            _ if read > left => return Err("header is longer than 1 MiB".into()),
            _ => {}
        }
        for end in [b'\n', b'\r'] {
            if line.last() == Some(&end) {
                line.pop();
            }
        }
        Ok(Some(String::from_utf8_lossy(&line).into_owned()))
    }
}

impl Read for HeaderReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(bytes)?;
        self.position += read as u64;
        Ok(read)
    }
}

/// Parses the header of a file that begins with `bytes`.
#[cfg(test)]
pub fn parse_bytes(
    parse: fn(&mut HeaderReader<'_>) -> Result<Description, BoxError>,
    mut bytes: &[u8],
) -> Result<Description, BoxError> {
    parse(&mut HeaderReader::new(&mut bytes, None))
}

/// Converts the sizes in a header to numbers of samples.
pub fn checked_dims<T: TryInto<usize> + Copy + fmt::Display>(
    sizes: [T; 3],
) -> Result<[usize; 3], BoxError> {
    let mut dims = [0; 3];
    for (dim, size) in dims.iter_mut().zip(sizes) {
        let checked = size.try_into().ok().filter(|&size| size > 0);
        *dim = checked.ok_or_else(|| format!("invalid size of an axis: {size}"))?;
    }
    Ok(dims)
}

/// The beginning of an untrusted text, without control characters, for a message.
pub fn excerpt(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(60).collect()
}

/// An error of parsing a file, before its name is added.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
