//! What every volume format provides ([`Format`]), and the header that its parser returns ([`Header`]).

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

/// A volume format with a header: one constant in one file.
pub struct Format {
    /// The name in messages.
    pub name: &'static str,
    /// File name extensions, in lower case, without `.gz`.
    pub extensions: &'static [&'static str],
    /// Whether a file of this format may begin with these (decompressed) bytes.
    pub has_signature: fn(&[u8]) -> bool,
    /// The file with the header, where that may not be the given file.
    pub header_file: Option<fn(&Path) -> Option<PathBuf>>,
    /// Reads the header.
    pub read: fn(&mut Start<'_>) -> Result<Header, BoxError>,
    /// How files are written, for formats that are.
    pub write: Option<Writing>,
}

#[cfg(test)]
impl Format {
    /// The header of a file that begins with `bytes`.
    pub fn parse(&self, mut bytes: &[u8]) -> Result<Header, BoxError> {
        (self.read)(&mut Start::new(&mut bytes, None))
    }

    /// Makes the header of a new file and parses it again: sizes, type and offset of samples must be equal.
    pub fn write_and_parse(&self, outgoing: &Outgoing<'_>) -> (Vec<u8>, Header) {
        let bytes = (self.write.as_ref().expect("it is written").header)(outgoing);
        assert!((self.has_signature)(&bytes));
        let header = self.parse(&bytes).unwrap();
        let Outgoing { dims, dtype, .. } = *outgoing;
        assert_eq!((header.dims, header.stored), (dims, Stored::As(dtype)));
        assert_eq!(header.skip, Skip::to(bytes.len() as u64));
        (bytes, header)
    }
}

/// How files of a format are written: a header, then the samples, little-endian, x fastest.
#[derive(Debug)]
pub struct Writing {
    /// Names of the format in messages.
    pub names: &'static [&'static str],
    /// Extensions of the files that are written, in lower case.
    pub extensions: &'static [&'static str],
    /// Whether the extension may be followed by `.gz`.
    pub may_be_packed: bool,
    /// Sample types that can be written.
    pub dtypes: &'static [Dtype],
    /// Maximum number of samples along x, y and z.
    pub longest: [usize; 3],
    /// Which placements can be written.
    pub placing: Placing,
    /// The unit of lengths.
    pub units: Units,
    /// Whether an entry of metadata can be written.
    pub keeps: fn(&(String, String)) -> bool,
    /// Makes the header.
    pub header: fn(&Outgoing<'_>) -> Vec<u8>,
}

/// The units in which a format can hold lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// Any, or none.
    Any,
    /// One of these, or none.
    OneOf(&'static [&'static str]),
    /// Always this one: readers take all numbers for lengths in it.
    Always(&'static str),
}

/// The unit of formats in which ITK, and so 3D Slicer, takes all lengths for millimetres, whatever unit a file states.
pub const UNITS_OF_ITK: Units = Units::OneOf(&["mm"]);

/// Which placements a format can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placing {
    /// None.
    Nothing,
    /// Spacing and origin, along the world's axes.
    Straight,
    /// Any affine map, to the coordinates of this space, or with `None` of the placement's own space.
    Affine(Option<Space>),
}

/// The content of a header to be written.
#[derive(Debug)]
pub struct Outgoing<'a> {
    /// Samples along x, y and z.
    pub dims: [usize; 3],
    /// One of [`Writing::dtypes`].
    pub dtype: Dtype,
    /// Where samples lie, as far as [`Writing::placing`] allows.
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
    /// Reverses the bytes of each number of `size` bytes, unless they are in the machine's order.
    pub fn make_native(self, bytes: &mut [u8], size: usize) {
        match size {
            1 => {}
            _ if (self == Self::Big) == cfg!(target_endian = "big") => {}
            // Twice as fast as below.
            2 => bytes.as_chunks_mut::<2>().0.iter_mut().for_each(|pair| pair.reverse()),
            size => bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse),
        }
    }
}

/// How a sample is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Stored {
    /// As a sample or number of this type.
    As(Dtype),
    /// As a 16-bit IEEE 754 float.
    F16,
}

impl Stored {
    /// Size in bytes.
    pub fn size(self) -> usize {
        match self {
            Self::As(dtype) => dtype.size(),
            Self::F16 => 2,
        }
    }

    /// The name in messages.
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
    /// What they are called in messages: `volumes`, `channels`, ...
    pub each: &'static str,
    /// How each sample is stored.
    pub stored: Stored,
    /// Byte order of samples.
    pub endian: Endian,
    /// Slope and intercept from stored numbers to values; `None` where they are the same.
    pub scale: Option<Scale>,
    /// Where samples lie in the world, if the header says so.
    pub placement: Option<Placement>,
    /// The files that hold the samples, one behind the other; `None` where the file of the header does.
    pub files: Option<Vec<String>>,
    /// Where the samples begin in that file, or in each of those files.
    pub skip: Skip,
    /// How the samples are compressed.
    pub packing: Packing,
    /// Whether z is the fastest axis (Fortran order), so that all samples must be reordered.
    pub transposed: bool,
    /// Other entries: names and texts.
    pub metadata: Vec<(String, String)>,
    /// What was assumed or not understood, in words.
    pub warnings: Vec<String>,
    /// What the volume leaves out of the file or changes.
    pub losses: Vec<Loss>,
}

/// What a volume leaves out of its file or changes.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// 64-bit integers of this type become f64.
    Integers(Dtype),
    /// This many bytes follow the samples.
    Trailing(u64),
    /// Any other, in words.
    Other(String),
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integers(dtype) => {
                write!(f, "{dtype} samples are read as f64, exact up to 2^53")
            }
            Self::Trailing(bytes) => write!(f, "{bytes} bytes behind its samples are left out"),
            Self::Other(words) => f.write_str(words),
        }
    }
}

impl<T: Into<String>> From<T> for Loss {
    fn from(words: T) -> Self {
        Self::Other(words.into())
    }
}

/// Where samples begin. The three steps are taken in order.
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
    /// Samples begin at offset `from`.
    pub fn to(from: u64) -> Self {
        Self { from, lines: 0, bytes: Some(0) }
    }
}

/// How samples are encoded, apart from a `.gz` around the whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Uncompressed.
    None,
    /// By gzip.
    Gzip,
    /// By zlib.
    Zlib,
    /// By bzip2.
    Bzip2,
    /// As decimal numbers between blanks.
    Text,
}

impl Header {
    /// The header of one volume of little-endian samples from offset `from` on.
    pub fn new(dims: [usize; 3], stored: Stored, from: u64) -> Self {
        Self {
            dims,
            volumes: 1,
            each: "volumes",
            stored,
            endian: Endian::Little,
            scale: None,
            placement: None,
            files: None,
            skip: Skip::to(from),
            packing: Packing::None,
            transposed: false,
            metadata: Vec::new(),
            warnings: Vec::new(),
            losses: Vec::new(),
        }
    }

    /// Sets the placement, in lengths of the units that the file names for the axes x, y and z, or adds a warning where
    /// that makes no sense.
    pub fn place_in(&mut self, mut placement: Placement, units: [Option<&str>; 3]) {
        self.warnings.extend(placement.set_units(units));
        self.place(placement);
    }

    /// Sets the placement, or adds a warning where it makes no sense.
    pub fn place(&mut self, placement: Placement) {
        match placement.is_regular() {
            true => self.placement = Some(placement),
            false => self
                .warnings
                .push("its spacing or orientation makes no sense and is left out".into()),
        }
    }
}

/// Most bytes of a header of text lines.
const MOST_TEXT: usize = 1 << 20;

/// The decompressed beginning of a file, from which a format parses its header.
pub struct Start<'a> {
    input: &'a mut (dyn BufRead + Send),
    /// Bytes read so far.
    pub position: u64,
    /// Bytes read as lines.
    text: usize,
    /// The file's name.
    pub path: Option<&'a Path>,
}

impl<'a> Start<'a> {
    /// Before the first byte of `input`.
    pub fn new(input: &'a mut (dyn BufRead + Send), path: Option<&'a Path>) -> Self {
        Self { input, position: 0, text: 0, path }
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// What reading fails with.
    pub fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes)?;
        self.position += N as u64;
        Ok(bytes)
    }

    /// The next line, without its end; `None` at the end of the file.
    ///
    /// # Errors
    /// What reading fails with; also when a line holds a NUL, or when all lines together are longer than 1 MiB.
    pub fn line(&mut self) -> Result<Option<String>, BoxError> {
        let mut line = Vec::new();
        let left = MOST_TEXT - self.text;
        let mut input = (&mut *self.input).take(left as u64 + 1);
        let read = input.read_until(b'\n', &mut line)?;
        self.position += read as u64;
        self.text += read;
        match read {
            0 => return Ok(None),
            _ if line.contains(&0) => return Err("the header holds what is no text".into()),
            _ if read > left => return Err("the header does not end".into()),
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

impl Read for Start<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(bytes)?;
        self.position += read as u64;
        Ok(read)
    }
}

/// Converts the sizes of a header to numbers of samples.
///
/// # Errors
/// When one is 0, negative or too large.
pub fn dims_of<T: TryInto<usize> + Copy + std::fmt::Display>(
    sizes: [T; 3],
) -> Result<[usize; 3], BoxError> {
    let mut dims = [0; 3];
    for (dim, size) in dims.iter_mut().zip(sizes) {
        *dim = size
            .try_into()
            .ok()
            .filter(|&size| size > 0)
            .ok_or_else(|| format!("it says that there are {size} samples along an axis"))?;
    }
    Ok(dims)
}

/// The beginning of an untrusted text, without control characters, for a message.
pub fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(60).collect()
}

/// An error of parsing a file, before its name is added.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
