//! Streams of the decompressed bytes of a volume, from one file or several.

use std::{
    fmt::Display,
    fs::File,
    io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom},
    path::{Component, Path, PathBuf},
    sync::Arc,
    vec,
};

use flate2::read::ZlibDecoder;

use super::{
    header::{BoxError, Encoding, Skip, StoredType},
    slices::stack::Slices,
};
use crate::{
    data::dtype::Dtype,
    for_dtype,
    io::{
        Source,
        array::{npy::read_in_c_order, text::TextParser},
        packing::Packing,
        source::read_full,
    },
    util::error::{Error, Result},
};

/// A stream of bytes.
pub type ByteStream = Box<dyn Read + Send>;

/// The rest of a stream that cannot be opened again (a pipe), after its header has been read.
pub struct PipeRest {
    pub input: ByteStream,
    /// Number of decompressed bytes read so far.
    pub position: u64,
}

/// A file opened to find out its format.
pub struct OpenFile {
    /// The file from its first byte on, decompressed.
    pub input: Box<dyn BufRead + Send>,
    /// The first bytes, decompressed.
    pub first: Vec<u8>,
    pub packing: Option<Packing>,
    pub can_reopen: bool,
}

impl OpenFile {
    pub fn new(source: &Source) -> Result<Self> {
        /// Number of bytes that contain the signatures of all formats.
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
        let packing = Packing::from_signature(&first);
        if let Some(packing) = packing {
            whole = packing.unpack(whole);
            // Broken compressed data are reported when the header or the samples are read.
            first = peek(&mut whole).unwrap_or_default();
            whole = Box::new(Cursor::new(first.clone()).chain(whole));
        }
        Ok(Self { input: Box::new(BufReader::new(whole)), first, packing, can_reopen })
    }
}

/// Maximum number of bytes before the samples of a compressed file, which must be decompressed to be skipped.
pub const MAX_SKIPPED: u64 = 1 << 30;

/// The files that hold the samples.
#[derive(Clone)]
pub enum SampleLocation {
    /// The file of the header, which may be compressed as a whole.
    HeaderFile { source: Source, packing: Option<Packing> },
    /// The concatenation of other files.
    DataFiles(Vec<PathBuf>),
    /// Slices that are read one at a time.
    Slices(Arc<dyn Slices>),
}

impl SampleLocation {
    /// The files that a header names, which must be in its folder or below.
    pub fn data_files(source: &Source, names: &[String]) -> Result<Self> {
        let Some(path) = source.path() else {
            return Err(Error::bad_input(format_args!(
                "{source}: the header refers to data files, which cannot be found when it is read from a pipe"
            )));
        };
        if names.is_empty() {
            return Err(Error::bad_input(format_args!(
                "{source}: the list of data files is empty"
            )));
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let data_file = |name: &String| {
            // An untrusted header must not reach other files of the user.
            let below = |part| matches!(part, Component::Normal(_) | Component::CurDir);
            if name.is_empty() || !Path::new(name).components().all(below) {
                return Err(Error::bad_input(format_args!(
                    "{source}: the header refers to `{}`, a data file outside of its folder",
                    name.escape_debug()
                )));
            }
            let path = folder.join(name);
            match Source::from(&*path).size() {
                Ok(Some(_)) => Ok(path),
                Ok(None) => {
                    Err(Error::bad_input(format_args!("{}: not a regular file", path.display())))
                }
                Err(error) => {
                    Err(error.context(format_args!("{source}: cannot open its data file")))
                }
            }
        };
        names.iter().map(data_file).collect::<Result<_>>().map(Self::DataFiles)
    }
}

/// Sizes of the volumes of a file.
#[derive(Clone, Copy, Debug)]
pub struct ByteExtent {
    /// Bytes of the volumes before the one to read.
    pub before: u64,
    /// Bytes of all volumes.
    pub all: u64,
}

/// Opens the samples at `location`, `extent.before` bytes after the first sample.
pub fn open(
    location: &SampleLocation,
    pipe: Option<PipeRest>,
    skip: Skip,
    (encoding, stored): (Encoding, StoredType),
    extent: ByteExtent,
) -> Result<ByteStream> {
    let source = match location {
        SampleLocation::HeaderFile { source, .. } => source.clone(),
        SampleLocation::DataFiles(paths) => Source::from(&*paths[0]),
        SampleLocation::Slices(_) => unreachable!("slices are not a stream"),
    };
    let failed = |error| failed(&source, error);
    let mut before = extent.before;
    let mut input = match location {
        SampleLocation::DataFiles(paths) => {
            let bytes = extent.all / paths.len() as u64;
            let paths = paths.clone().into_iter();
            Box::new(DataFiles { paths, skip, encoding, bytes, current: None })
        }
        _ => {
            let packing = match location {
                SampleLocation::HeaderFile { packing, .. } => *packing,
                _ => None,
            };
            if skip.bytes.is_none() && (pipe.is_some() || packing.is_some()) {
                return Err(Error::bad_input(format_args!(
                    "{source}: samples that are counted from the end need an uncompressed regular file"
                )));
            }
            let mut skip =
                skip.counted_from_start(&source, encoding, extent.all).map_err(failed)?;
            if packing.is_none() && is_plain(skip, encoding) {
                // The file is opened at the offset of the volume.
                let more = [skip.bytes.unwrap_or(0), std::mem::take(&mut before)];
                skip = Skip::to(more.iter().fold(skip.from, |sum, &n| sum.saturating_add(n)));
            }
            let input: ByteStream = match pipe {
                Some(PipeRest { mut input, position }) => {
                    skip_bytes(&mut input, skip.from.saturating_sub(position)).map_err(failed)?;
                    input
                }
                None => match packing {
                    Some(packing) => {
                        let mut input = packing.unpack(source.open()?);
                        skip_bytes(&mut input, skip.from).map_err(failed)?;
                        input
                    }
                    None => source.open_at(skip.from)?,
                },
            };
            decoder(input, skip, encoding).map_err(failed)?
        }
    };
    if encoding == Encoding::Text {
        input = Box::new(TextNumbers::new(input, source.clone(), stored)?);
    }
    skip_bytes(&mut input, before).map_err(failed)?;
    Ok(input)
}

/// Whether the offset of a sample in the file can be computed.
pub fn is_plain(skip: Skip, encoding: Encoding) -> bool {
    encoding == Encoding::Raw && skip.lines == 0
}

/// The error of reading `name`: of broken content, or of the system.
pub fn failed(name: &dyn Display, error: io::Error) -> Error {
    match is_content(&error) {
        true => Error::bad_input(format_args!("{name}: samples are damaged")).caused_by(error),
        false => Error::io("read", name.to_string(), error),
    }
}

/// The error `message`, caused by `error`; if the system failed, the error of reading `name`.
pub fn unreadable(name: &dyn Display, message: impl Display, error: BoxError) -> Error {
    match error.downcast::<io::Error>() {
        Ok(error) if !is_content(&error) => Error::io("read", name.to_string(), *error),
        Ok(error) => Error::bad_input(message).caused_by(error),
        Err(error) => Error::bad_input(message).caused_by(error),
    }
}

/// Whether reading failed because of the file's content, not of the system.
fn is_content(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | InvalidData | InvalidInput)
}

impl Skip {
    /// The same offset, counted from the start of `source`, which holds `bytes` bytes of samples.
    fn counted_from_start(
        self,
        source: &Source,
        encoding: Encoding,
        bytes: u64,
    ) -> io::Result<Self> {
        if self.bytes.is_some() {
            return Ok(self);
        }
        let shorter = || {
            let text = format!(
                "file is shorter than the {bytes} bytes of samples that its header declares"
            );
            io::Error::new(io::ErrorKind::InvalidData, text)
        };
        let samples = bytes.saturating_add(self.after);
        let open = |from| source.open_at(from).map_err(io::Error::other);
        if encoding == Encoding::Raw {
            let size = source.size().map_err(io::Error::other)?.unwrap_or(0);
            let start = size.checked_sub(samples).filter(|&start| start >= self.from);
            return start.map(Self::to).ok_or_else(shorter);
        }
        // The decompressed size is known only at the end.
        let start = Self { bytes: Some(0), ..self };
        let limit = samples.saturating_add(MAX_SKIPPED);
        let decoded = decoder(open(self.from)?, start, encoding)?;
        let size = io::copy(&mut decoded.take(limit), &mut io::sink())?;
        let bytes = size.checked_sub(samples).filter(|_| size < limit).ok_or_else(shorter)?;
        Ok(Self { bytes: Some(bytes), ..self })
    }
}

/// Skips lines, decompresses, then skips bytes.
fn decoder(input: ByteStream, skip: Skip, encoding: Encoding) -> io::Result<ByteStream> {
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
    let mut input: ByteStream = match encoding {
        Encoding::Raw | Encoding::Text => input,
        Encoding::Hex => {
            // As in teem, the bytes to skip are those of the text.
            skip_bytes(&mut input, skip.bytes.unwrap_or(0))?;
            return Ok(Box::new(HexBytes { input: BufReader::new(input), high: None }));
        }
        Encoding::Gzip => Packing::Gzip.unpack(input),
        Encoding::Zlib => Box::new(ZlibDecoder::new(input)),
        Encoding::Bzip2 => Packing::Bzip2.unpack(input),
    };
    skip_bytes(&mut input, skip.bytes.unwrap_or(0))?;
    Ok(input)
}

/// Skips one line of any length. Returns false at the end of the input.
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
struct DataFiles {
    paths: vec::IntoIter<PathBuf>,
    skip: Skip,
    encoding: Encoding,
    /// Bytes of the samples of a file.
    bytes: u64,
    current: Option<ByteStream>,
}

impl Read for DataFiles {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(current) = &mut self.current {
                match current.read(bytes)? {
                    0 if !bytes.is_empty() => self.current = None,
                    read => return Ok(read),
                }
            }
            let Some(path) = self.paths.next() else { return Ok(0) };
            let skip =
                self.skip.counted_from_start(&Source::from(&*path), self.encoding, self.bytes);
            let opened = skip.and_then(|skip| {
                let mut file = File::open(&path)?;
                file.seek(SeekFrom::Start(skip.from))?;
                let input = decoder(Box::new(file), skip, self.encoding)?;
                // Bytes that follow the samples of a file are not those of the next one.
                Ok::<ByteStream, io::Error>(match self.skip.bytes {
                    None => Box::new(input.take(self.bytes)),
                    Some(_) => input,
                })
            });
            self.current = Some(opened.map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            })?);
        }
    }
}

/// The bytes of a text of hexadecimal digits and blanks.
struct HexBytes {
    input: BufReader<ByteStream>,
    /// The first digit of a byte.
    high: Option<u8>,
}

impl Read for HexBytes {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < bytes.len() {
            let (mut used, held) = (0, self.input.fill_buf()?);
            if held.is_empty() {
                break;
            }
            for &byte in held {
                used += 1;
                if byte.is_ascii_whitespace() {
                    continue;
                }
                let digit = char::from(byte).to_digit(16).ok_or(io::ErrorKind::InvalidData)? as u8;
                match self.high.take() {
                    None => self.high = Some(digit),
                    Some(high) => {
                        bytes[done] = high << 4 | digit;
                        done += 1;
                    }
                }
                if done == bytes.len() {
                    break;
                }
            }
            self.input.consume(used);
        }
        Ok(done)
    }
}

/// Decimal numbers separated by blanks or commas, as the little-endian bytes of samples.
struct TextNumbers {
    input: ByteStream,
    source: Source,
    dtype: Dtype,
    parser: TextParser,
    /// Parsed samples that have not been returned.
    bytes: Cursor<Vec<u8>>,
}

impl TextNumbers {
    fn new(input: ByteStream, source: Source, stored: StoredType) -> Result<Self> {
        let StoredType::As(dtype) = stored else {
            return Err(Error::bad_input("16-bit floats as text are not supported"));
        };
        Ok(Self { input, source, dtype, parser: TextParser::default(), bytes: Cursor::default() })
    }

    /// Parses the next numbers.
    fn fill(&mut self) -> Result<()> {
        const STEP: usize = 1 << 14;
        let Self { input, source, dtype, parser, bytes } = self;
        let samples = for_dtype!(*dtype, T in [u8 i8 u16 i16 u32 i32 u64 i64 f32 f64] => {
            let mut numbers = Vec::<T>::new();
            parser.read(input, source, &mut numbers, STEP)?;
            bytemuck::cast_slice::<T, u8>(&numbers).to_vec()
        });
        *bytes = Cursor::new(samples);
        Ok(())
    }
}

impl Read for TextNumbers {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.bytes.position() == self.bytes.get_ref().len() as u64 {
            let filled = self.fill();
            filled.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
        self.bytes.read(bytes)
    }
}

/// Reads all samples of a volume that is stored with z fastest, and returns them with x fastest.
pub fn transposed(mut input: ByteStream, [x, y, z]: [usize; 3], size: usize) -> Result<ByteStream> {
    let ordered = read_in_c_order(&mut input, &[z, y, x], size);
    let ordered =
        ordered.map_err(|error| Error::bad_input("cannot read the samples").caused_by(error))?;
    match ordered.len() == x * y * z * size {
        true => Ok(Box::new(Cursor::new(ordered).chain(input))),
        false => Ok(Box::new(io::empty())),
    }
}
