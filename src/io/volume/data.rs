//! The samples of a volume as a stream of decompressed bytes, from one file or several.

use std::{
    fmt::Display,
    fs::File,
    io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom},
    path::{Component, Path, PathBuf},
    sync::Arc,
    vec,
};

use bzip2::read::MultiBzDecoder;
use flate2::read::{MultiGzDecoder, ZlibDecoder};

use super::{
    format::{BoxError, Endian, Packing, Skip, Stored},
    slices::stack::Slices,
};
use crate::{
    data::dtype::Dtype,
    for_dtype,
    io::{
        Source,
        array::{npy::read_in_c_order, text::TextParser},
        source::read_full,
    },
    util::error::{Error, Result},
};

/// A stream of bytes.
pub type Input = Box<dyn Read + Send>;

/// A stream that cannot be opened again (a pipe), after its header has been read.
pub struct Held {
    pub input: Input,
    /// Number of decompressed bytes read so far.
    pub position: u64,
}

/// A file opened to find out its format.
pub struct Opened {
    /// The file from its first byte on, decompressed.
    pub input: Box<dyn BufRead + Send>,
    /// Its first bytes, decompressed.
    pub first: Vec<u8>,
    pub gzip: bool,
    pub can_reopen: bool,
}

impl Opened {
    pub fn new(source: &Source) -> Result<Self> {
        /// Bytes that hold the signatures of all formats.
        const FIRST: usize = 512;
        let failed = |error| Error::io("read", source.to_string(), error);
        let peek = |input: &mut dyn Read| {
            let mut first = vec![0; FIRST];
            let read = read_full(&mut { input }, &mut first)?;
            first.truncate(read);
            Ok(first)
        };
        let can_reopen = source.size()?.is_some();
        let mut input = source.open()?;
        let mut first = peek(&mut input).map_err(failed)?;
        let mut whole: Box<dyn Read + Send> = Box::new(Cursor::new(first.clone()).chain(input));
        let gzip = first.starts_with(&[0x1f, 0x8b]);
        if gzip {
            whole = Box::new(MultiGzDecoder::new(whole));
            // Broken gzip data are reported when the header or the samples are read.
            first = peek(&mut whole).unwrap_or_default();
            whole = Box::new(Cursor::new(first.clone()).chain(whole));
        }
        Ok(Self { input: Box::new(BufReader::new(whole)), first, gzip, can_reopen })
    }
}

/// In which files samples are.
#[derive(Clone, Debug)]
pub enum Place {
    /// In the file of the header; `gzip`: the whole file is compressed.
    Own { source: Source, gzip: bool },
    /// In other files, one behind the other.
    Others(Vec<PathBuf>),
    /// In slices that are read one at a time.
    Slices(Arc<dyn Slices>),
}

impl Place {
    /// The files that a header names, which must be in its folder or below.
    pub fn others(source: &Source, names: &[String]) -> Result<Self> {
        let Some(path) = source.path() else {
            return Err(Error::bad_input(format_args!("{source}: its samples are in other files")));
        };
        if names.is_empty() {
            return Err(Error::bad_input(format_args!("{source}: its list of files is empty")));
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let beside = |name: &String| {
            // An untrusted header must not reach other files of the user.
            let below = |part| matches!(part, Component::Normal(_) | Component::CurDir);
            if name.is_empty() || !Path::new(name).components().all(below) {
                return Err(Error::bad_input(format_args!(
                    "{source}: its samples are said to be in `{}`, which is not in its folder",
                    name.escape_debug()
                )));
            }
            let path = folder.join(name);
            match Source::File(path.clone()).size() {
                Ok(Some(_)) => Ok(path),
                Ok(None) => {
                    Err(Error::bad_input(format_args!("{} is no regular file", path.display())))
                }
                Err(error) => {
                    Err(error.context(format_args!("{source}: its samples are in another file")))
                }
            }
        };
        names.iter().map(beside).collect::<Result<_>>().map(Self::Others)
    }
}

/// Sizes of the volumes of a file.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Bytes of the volumes before the one to read.
    pub before: u64,
    /// Bytes of all volumes.
    pub all: u64,
}

/// Opens the samples at `place`, `extent.before` bytes behind the first sample.
pub fn open(
    place: &Place,
    held: Option<Held>,
    skip: Skip,
    (packing, stored): (Packing, Stored),
    extent: Extent,
) -> Result<Input> {
    let (source, mut input) = match place {
        Place::Own { source, gzip } => {
            (source.clone(), own(source, *gzip, held, skip, packing, extent)?)
        }
        Place::Others(paths) => {
            let source = Source::File(paths[0].clone());
            let skip = match skip.bytes {
                None => at_end(&source, extent)?,
                Some(_) => skip,
            };
            let parts = Parts { paths: paths.clone().into_iter(), skip, packing, current: None };
            (source, Box::new(parts) as Input)
        }
        Place::Slices(_) => unreachable!("slices are no stream"),
    };
    if packing == Packing::Text {
        input = Box::new(Numbers::new(input, source.clone(), stored)?);
    }
    // An uncompressed file has been opened at that offset.
    let opened = matches!(place, Place::Own { gzip: false, .. }) && is_plain(skip, packing);
    let before = if opened { 0 } else { extent.before };
    skip_bytes(&mut input, before).map_err(|error| failed(&source, error))?;
    Ok(input)
}

/// Whether the offset of a sample in the file can be computed.
pub fn is_plain(skip: Skip, packing: Packing) -> bool {
    packing == Packing::None && skip.lines == 0
}

/// Opens the samples in the file of the header: at `skip`, and where that is uncompressed at `extent.before` from
/// there.
fn own(
    source: &Source,
    gzip: bool,
    held: Option<Held>,
    skip: Skip,
    packing: Packing,
    extent: Extent,
) -> Result<Input> {
    let failed = |error| failed(source, error);
    let skip = match skip.bytes {
        None => at_end(source, extent)?,
        Some(_) => skip,
    };
    let plain = !gzip && is_plain(skip, packing);
    let mut all = skip;
    if plain {
        let more = [skip.bytes.unwrap_or(0), extent.before];
        all = Skip::to(more.iter().fold(skip.from, |sum, &bytes| sum.saturating_add(bytes)));
    }
    if let Some(Held { mut input, position }) = held {
        skip_bytes(&mut input, all.from.saturating_sub(position)).map_err(failed)?;
        return unpacked(input, all, packing).map_err(failed);
    }
    if !gzip {
        return unpacked(source.open_at(all.from)?, all, packing).map_err(failed);
    }
    let mut input: Input = Box::new(MultiGzDecoder::new(source.open()?));
    skip_bytes(&mut input, all.from).map_err(failed)?;
    unpacked(input, all, packing).map_err(failed)
}

/// The error of reading `name`: of broken content, or of the system.
pub fn failed(name: &dyn Display, error: io::Error) -> Error {
    match is_content(&error) {
        true => Error::bad_input(format_args!("{name}: its samples are broken")).caused_by(error),
        false => Error::io("read", name.to_string(), error),
    }
}

/// The error `message`, caused by `error`; where the system failed, the error of reading `name`.
pub fn unreadable(name: &dyn Display, message: impl Display, error: BoxError) -> Error {
    match error.downcast::<io::Error>() {
        Ok(error) if !is_content(&error) => Error::io("read", name.to_string(), *error),
        Ok(error) => Error::bad_input(message).caused_by(error),
        Err(error) => Error::bad_input(message).caused_by(error),
    }
}

/// Whether reading failed because of the file's content, not of the system.
pub fn is_content(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | InvalidData | InvalidInput)
}

/// Where samples begin that are the last bytes of a file.
fn at_end(source: &Source, extent: Extent) -> Result<Skip> {
    let size = source.size()?.and_then(|size| size.checked_sub(extent.all));
    size.map(Skip::to).ok_or_else(|| {
        Error::bad_input(format_args!(
            "{source}: its samples are said to be its last {} bytes, which it has not",
            extent.all
        ))
    })
}

/// Skips lines, decompresses, then skips bytes.
fn unpacked(input: Input, skip: Skip, packing: Packing) -> io::Result<Input> {
    let mut input = input;
    if skip.lines > 0 {
        let mut lines = BufReader::new(input);
        for _ in 0..skip.lines {
            if !skip_line(&mut lines)? {
                break;
            }
        }
        input = Box::new(lines);
    }
    let mut input: Input = match packing {
        Packing::None | Packing::Text => input,
        Packing::Gzip => Box::new(MultiGzDecoder::new(input)),
        Packing::Zlib => Box::new(ZlibDecoder::new(input)),
        Packing::Bzip2 => Box::new(MultiBzDecoder::new(input)),
    };
    skip_bytes(&mut input, skip.bytes.unwrap_or(0))?;
    Ok(input)
}

/// Skips one line of any length. Returns whether it ended.
fn skip_line(input: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = input.fill_buf()?;
        if bytes.is_empty() {
            return Ok(false);
        }
        match bytes.iter().position(|&byte| byte == b'\n') {
            Some(end) => {
                input.consume(end + 1);
                return Ok(true);
            }
            None => {
                let len = bytes.len();
                input.consume(len);
            }
        }
    }
}

/// Skips `bytes`, or fewer at the end of the input.
pub fn skip_bytes(input: &mut impl Read, bytes: u64) -> io::Result<()> {
    io::copy(&mut input.take(bytes), &mut io::sink()).map(drop)
}

/// Concatenated files, each opened when the one before has ended.
struct Parts {
    paths: vec::IntoIter<PathBuf>,
    skip: Skip,
    packing: Packing,
    current: Option<Input>,
}

impl Read for Parts {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(current) = &mut self.current {
                match current.read(bytes)? {
                    0 if !bytes.is_empty() => self.current = None,
                    read => return Ok(read),
                }
            }
            let Some(path) = self.paths.next() else { return Ok(0) };
            let Skip { from, .. } = self.skip;
            let opened = File::open(&path).and_then(|mut file| {
                file.seek(SeekFrom::Start(from))?;
                unpacked(Box::new(file), self.skip, self.packing)
            });
            self.current = Some(opened.map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            })?);
        }
    }
}

/// Decimal numbers between blanks or commas, as the little-endian bytes of samples.
struct Numbers {
    input: Input,
    source: Source,
    dtype: Dtype,
    tokens: TextParser,
    /// Samples that are parsed and not returned yet.
    bytes: Cursor<Vec<u8>>,
}

impl Numbers {
    fn new(input: Input, source: Source, stored: Stored) -> Result<Self> {
        let Stored::As(dtype) = stored else {
            return Err(Error::bad_input("numbers as text are not of 16-bit floats"));
        };
        Ok(Self { input, source, dtype, tokens: TextParser::default(), bytes: Cursor::default() })
    }

    /// Parses the next numbers.
    fn fill(&mut self) -> Result<()> {
        const STEP: usize = 1 << 14;
        let Self { input, source, dtype, tokens, bytes } = self;
        let mut samples = for_dtype!(*dtype, T in [u8 i8 u16 i16 u32 i32 u64 i64 f32 f64] => {
            let mut numbers = Vec::<T>::new();
            tokens.read(input, source, &mut numbers, STEP)?;
            bytemuck::cast_slice::<T, u8>(&numbers).to_vec()
        });
        Endian::Little.make_native(&mut samples, dtype.size());
        *bytes = Cursor::new(samples);
        Ok(())
    }
}

impl Read for Numbers {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.bytes.position() == self.bytes.get_ref().len() as u64 {
            let filled = self.fill();
            filled.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
        self.bytes.read(bytes)
    }
}

/// Reorders a volume that is stored with z fastest and x slowest: reads all samples, and returns them with x fastest.
pub fn transposed(mut input: Input, [x, y, z]: [usize; 3], size: usize) -> Result<Input> {
    let ordered = read_in_c_order(&mut input, &[z, y, x], size);
    let ordered =
        ordered.map_err(|error| Error::bad_input("cannot read the samples").caused_by(error))?;
    match ordered.len() == x * y * z * size {
        true => Ok(Box::new(Cursor::new(ordered).chain(input))),
        false => Ok(Box::new(io::empty())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &'static str, dtype: Dtype) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let input = Box::new(text.as_bytes());
        let numbers = Numbers::new(input, Source::Stdin, Stored::As(dtype));
        numbers.unwrap().read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    #[test]
    fn texts_become_samples() {
        assert_eq!(numbers("1 -2\n3,4\t", Dtype::I16).unwrap(), [1, 0, 254, 255, 3, 0, 4, 0]);
        assert!(numbers("", Dtype::U8).unwrap().is_empty());
        assert_eq!(numbers(" 7", Dtype::U8).unwrap(), [7]);
        assert_eq!(numbers("0.5", Dtype::F32).unwrap(), 0.5f32.to_le_bytes());
        assert!(numbers("256", Dtype::U8).is_err() && numbers("1 x", Dtype::U8).is_err());
        // Longer than one read.
        let long: &'static str = Box::leak("12 ".repeat(50_000).into_boxed_str());
        assert_eq!(numbers(long, Dtype::U8).unwrap(), vec![12; 50_000]);
        let blob: &'static str = Box::leak("1".repeat(200_000).into_boxed_str());
        assert!(numbers(blob, Dtype::F64).is_err());
    }

    #[test]
    fn lines_and_bytes_are_skipped() {
        let input = Box::new(&b"one\ntwo\n__data"[..]);
        let mut rest = String::new();
        let skip = Skip { from: 0, lines: 2, bytes: Some(2) };
        unpacked(input, skip, Packing::None).unwrap().read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "data");
    }
}
