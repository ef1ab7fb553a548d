//! The description of a volume format ([`Format`]) and the content of a file's header ([`Header`]).

use std::{
    fmt,
    io::{self, BufRead, Read},
    path::{Path, PathBuf},
};

use serde::Serialize;

use crate::data::{
    dtype::Dtype,
    placement::{Placement, Space},
};

/// A volume format: one constant in the file of the format.
pub struct Format {
    /// Name in messages.
    pub name: &'static str,
    /// Extensions of files that are read as this format, in lower case, without `.gz`.
    pub extensions: &'static [&'static str],
    /// Whether a file that begins with these (decompressed) bytes is of this format.
    pub has_signature: fn(&[u8]) -> bool,
    /// Finds the file with the header, if that may not be the given file.
    pub header_file: Option<fn(&Path) -> Option<PathBuf>>,
    /// Parses the header; `None` for raw volumes, and for formats that are read slice by slice (see
    /// [`slices::find`](super::slices::find)).
    pub parse: Option<HeaderParser>,
    /// How files are written, if they are. Zarr is written by a [`PyramidWriter`](super::PyramidWriter) instead.
    pub write: Option<WriteSupport>,
}

/// Parses the header at the beginning of a file.
pub type HeaderParser = fn(&mut HeaderReader<'_>) -> Result<Header, BoxError>;

impl Format {
    /// A format without signature, header and writer, for struct updates.
    pub const BASE: Self = Self {
        name: "",
        extensions: &[],
        has_signature: |_| false,
        header_file: None,
        parse: None,
        write: None,
    };
}

#[cfg(test)]
impl Format {
    /// Parses the header of a file that begins with `bytes`.
    pub fn parse_bytes(&self, mut bytes: &[u8]) -> Result<Header, BoxError> {
        (self.parse.expect("it has a header"))(&mut HeaderReader::new(&mut bytes, None))
    }

    /// Makes the header of a new file and parses it again: sizes, type and offset of samples must be equal.
    pub fn write_and_parse(&self, content: &HeaderContent<'_>) -> (Vec<u8>, Header) {
        let bytes = (self.write.as_ref().expect("it is written").header)(content);
        assert!((self.has_signature)(&bytes));
        let header = self.parse_bytes(&bytes).unwrap();
        assert_eq!((header.dims, header.stored), (content.dims, StoredType::As(content.dtype)));
        assert_eq!(header.skip, Skip::to(bytes.len() as u64));
        (bytes, header)
    }
}

/// How files of a format are written: a header, then the samples, little-endian, x fastest.
#[derive(Debug)]
pub struct WriteSupport {
    /// Formats of inputs that are written as this format by default, by their names in messages.
    pub default_for: &'static [&'static str],
    /// Extensions of the files that are written, in lower case.
    pub extensions: &'static [&'static str],
    /// Whether the extension may be followed by `.gz`.
    pub can_gzip: bool,
    /// Sample types that can be written.
    pub dtypes: &'static [Dtype],
    /// Maximum number of samples along x, y and z.
    pub max_dims: [usize; 3],
    /// Placements that can be written.
    pub placement: PlacementSupport,
    /// Units of length that can be written.
    pub units: UnitSupport,
    /// Whether an entry of metadata can be written.
    pub keeps_metadata: fn(&(String, String)) -> bool,
    /// Makes the header.
    pub header: fn(&HeaderContent<'_>) -> Vec<u8>,
}

impl WriteSupport {
    /// Samples of any type and number alone, for struct updates.
    pub const BASE: Self = Self {
        default_for: &[],
        extensions: &[],
        can_gzip: false,
        dtypes: &Dtype::SAMPLES,
        max_dims: [usize::MAX; 3],
        placement: PlacementSupport::None,
        units: UnitSupport::Any,
        keeps_metadata: |_| false,
        header: |_| Vec::new(),
    };
}

/// The units in which a format can hold lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitSupport {
    /// Any, or none.
    Any,
    /// One of these, or none.
    OneOf(&'static [&'static str]),
    /// Always this one: readers take all lengths to be in it.
    Always(&'static str),
}

/// The unit of formats in which ITK, and so 3D Slicer, takes all lengths for millimetres, whatever unit a file states.
pub const UNITS_OF_ITK: UnitSupport = UnitSupport::OneOf(&["mm"]);

/// The placements that a format can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementSupport {
    None,
    /// Spacing and origin, along the world's axes.
    Straight,
    /// Any affine map, to the coordinates of this space, or with `None` of the placement's own space.
    Affine(Option<Space>),
}

/// The content of a header to be written.
#[derive(Debug)]
pub struct HeaderContent<'a> {
    /// Samples along x, y and z.
    pub dims: [usize; 3],
    /// One of [`WriteSupport::dtypes`].
    pub dtype: Dtype,
    /// Position and orientation, as far as [`WriteSupport::placement`] allows.
    pub placement: Option<&'a Placement>,
    /// Metadata that the format keeps.
    pub metadata: Vec<(String, String)>,
}

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
    /// Size in bytes.
    pub fn size(self) -> usize {
        match self {
            Self::As(dtype) => dtype.size(),
            Self::F16 => 2,
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

/// The content of a header.
#[derive(Clone, Debug)]
pub struct Header {
    /// Samples along x, y and z.
    pub dims: [usize; 3],
    /// Number of volumes of this size that follow each other.
    pub volumes: usize,
    /// What a volume is called in messages: `volumes`, `channels`, ...
    pub volume_noun: &'static str,
    /// Type of a stored sample.
    pub stored: StoredType,
    /// Byte order of samples.
    pub endian: Endian,
    /// Slope and intercept from stored numbers to values; `None` if they are the same.
    pub scale: Option<Scale>,
    /// Position and orientation in the world, if the header states them.
    pub placement: Option<Placement>,
    /// Names of the files whose concatenation holds the samples; `None` if the file of the header does.
    pub files: Option<Vec<String>>,
    /// Offset of the samples in that file, or in each of those files.
    pub skip: Skip,
    /// Encoding of the samples.
    pub encoding: Encoding,
    /// Whether z is the fastest axis (Fortran order), so that all samples must be reordered.
    pub transposed: bool,
    /// Other entries: names and texts.
    pub metadata: Vec<(String, String)>,
    /// Messages about assumptions and about fields that are not understood.
    pub warnings: Vec<String>,
    /// Content of the file that the volume does not have.
    pub losses: Vec<Loss>,
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
    /// Number of decompressed bytes to skip then. `None`: the samples are the last bytes of the file.
    pub bytes: Option<u64>,
}

impl Skip {
    /// Skips the `from` first bytes of the file.
    pub fn to(from: u64) -> Self {
        Self { from, lines: 0, bytes: Some(0) }
    }
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
}

impl Header {
    /// The header of one volume of little-endian samples from offset `from` on.
    pub fn new(dims: [usize; 3], stored: StoredType, from: u64) -> Self {
        Self {
            dims,
            volumes: 1,
            volume_noun: "volumes",
            stored,
            endian: Endian::Little,
            scale: None,
            placement: None,
            files: None,
            skip: Skip::to(from),
            encoding: Encoding::Raw,
            transposed: false,
            metadata: Vec::new(),
            warnings: Vec::new(),
            losses: Vec::new(),
        }
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
    ///
    /// # Errors
    /// When reading fails or the file ends.
    pub fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads the next line, without its end; `None` at the end of the file.
    ///
    /// # Errors
    /// When reading fails, when a line contains a NUL, or when all lines together are longer than 1 MiB.
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

/// Converts the sizes in a header to numbers of samples.
///
/// # Errors
/// When one is 0, negative or too large.
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
