//! The data set of a DICOM file (PS3.5, PS3.10) up to its pixels, in little- or big-endian byte order, with explicit or
//! implicit value representations (VR), deflated or not. Only the few attributes that a volume needs are read; all
//! others are skipped.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use flate2::read::DeflateDecoder;

use super::{
    attributes::{
        Attributes, CSA, DETECTORS, F32_PIXELS, F64_PIXELS, GRID_FRAMES, GRID_TILES, ITEM,
        ITEM_END, LUT, PER_FRAME, PIXELS, SEGMENTS, SEQUENCE_END, SHARED, SYNTAX, Tag, Value,
        parse_value, representation,
    },
    csa,
    syntax::Syntax,
};
use crate::io::{
    Source,
    parallel_file::ParallelFile,
    volume::header::{BoxError, Endian},
};

/// Maximum size in bytes of a value that is read.
const MAX_VALUE: u32 = 1 << 16;
/// Maximum size in bytes of a value that is read as bytes: the header of Siemens, a table of a palette.
const MAX_BYTES: u32 = 1 << 20;
/// Maximum size in bytes of the attributes of a file in memory.
const MAX_ATTRIBUTES: usize = 64 << 20;
/// Maximum number of bytes before the pixels of a deflated data set. They must be inflated, and one byte of the file
/// may become about a thousand. Parsing an attribute takes as long as inflating [`PER_ATTRIBUTE`] bytes.
const MAX_INFLATED: u64 = 64 << 20;
const PER_ATTRIBUTE: u64 = 100;
const MAX_DEPTH: usize = 32;
/// Maximum number of frames, more than any series has. Each takes about 250 bytes of memory.
pub const MAX_FRAMES: usize = 1 << 18;

/// Position and declaration of the pixels of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pixels {
    /// Offset of the value from the beginning of the file, or of the inflated data set if it is deflated.
    pub at: u64,
    /// Length in bytes; `None` if the pixels are in fragments (undefined length).
    pub len: Option<u64>,
    /// The attribute that holds them: [`PIXELS`] (integers), [`F32_PIXELS`] or [`F64_PIXELS`].
    pub tag: Tag,
    /// Whether they are declared as 16-bit words (VR OW, as in all files of implicit VR).
    pub are_words: bool,
}

/// The attributes of a file, and the position of its pixels.
#[derive(Clone, Debug)]
pub struct Dataset {
    pub syntax: Syntax,
    pub top: Attributes,
    /// Shared functional groups of an enhanced multi-frame file.
    pub shared: Attributes,
    /// Functional groups of each frame, or attributes of each tile of a grid.
    pub frames: Vec<Attributes>,
    /// Numbers and names of the segments of a segmentation.
    pub segments: Vec<Attributes>,
    /// `None` in a file without pixels, such as a report.
    pub pixels: Option<Pixels>,
}

/// The bytes of a data set, inflated.
#[derive(Debug)]
pub enum Input {
    File(BufReader<ParallelFile>),
    Inflated(Box<BufReader<DeflateDecoder<BufReader<ParallelFile>>>>),
}

impl Read for Input {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(bytes),
            Self::Inflated(data) => data.read(bytes),
        }
    }
}

impl Input {
    /// Opens `source` at offset `at` of the file, or of the inflated data set if it is `deflated`.
    pub fn open(source: &Source, deflated: bool, at: u64) -> io::Result<Self> {
        let mut file = BufReader::new(source.reader(0)?);
        let mut input = match deflated {
            false => Self::File(file),
            true => {
                let mut input = Parser::new(Self::File(file), Syntax::PLAIN, 0);
                let begin = input.meta().map(|meta| meta.0).map_err(io::Error::other)?;
                file = BufReader::new(source.reader(begin)?);
                Self::Inflated(Box::new(BufReader::new(DeflateDecoder::new(file))))
            }
        };
        input.skip(at)?;
        Ok(input)
    }

    /// Skips `bytes` bytes. Skipping past the end of a file that is not deflated succeeds; the next read then fails.
    pub fn skip(&mut self, bytes: u64) -> io::Result<()> {
        match self {
            Self::File(file) => {
                let bytes = i64::try_from(bytes).map_err(|_| io::ErrorKind::UnexpectedEof)?;
                file.seek_relative(bytes)
            }
            Self::Inflated(data) => {
                let passed = io::copy(&mut data.take(bytes), &mut io::sink())?;
                if passed < bytes { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
            }
        }
    }
}

/// Whether a file that begins with `bytes` is DICOM: a preamble of 128 bytes of any content, then `DICM`.
pub fn has_signature(bytes: &[u8]) -> bool {
    bytes.get(128..132) == Some(b"DICM")
}

/// The header of an attribute, which precedes its value.
struct ElementHeader {
    tag: Tag,
    /// Value representation, if the file states it.
    kind: Option<[u8; 2]>,
    /// Length of the value in bytes; `None` if a delimitation item ends it (undefined length).
    len: Option<u32>,
}

struct Parser {
    input: Input,
    syntax: Syntax,
    /// Offset of the next byte in the file, or in the inflated data set.
    at: u64,
    /// Number of attributes parsed so far.
    count: u64,
    /// Bytes of memory that the attributes read so far take.
    memory: usize,
}

/// The part of the data set that nested attributes belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Top,
    Shared,
    Frame(usize),
    Segment(usize),
    /// A sequence whose attributes are skipped.
    Skipped,
}

impl Parser {
    fn new(input: Input, syntax: Syntax, at: u64) -> Self {
        Self { input, syntax, at, count: 0, memory: 0 }
    }

    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.advance(N as u64)?;
        self.input.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        self.advance(bytes)?;
        self.input.skip(bytes)
    }

    /// Counts `bytes` that are to be read.
    fn advance(&mut self, bytes: u64) -> io::Result<()> {
        self.at = self.at.saturating_add(bytes);
        let work = self.at.saturating_add(PER_ATTRIBUTE * self.count);
        match self.syntax.deflated && work > MAX_INFLATED {
            true => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "too many attributes before the pixels: {} of {} bytes",
                    self.count, self.at
                ),
            )),
            false => Ok(()),
        }
    }

    fn u16(&mut self) -> io::Result<u16> {
        Ok(match self.syntax.endian {
            Endian::Little => u16::from_le_bytes(self.bytes()?),
            Endian::Big => u16::from_be_bytes(self.bytes()?),
        })
    }

    fn u32(&mut self) -> io::Result<u32> {
        Ok(match self.syntax.endian {
            Endian::Little => u32::from_le_bytes(self.bytes()?),
            Endian::Big => u32::from_be_bytes(self.bytes()?),
        })
    }

    fn header(&mut self) -> io::Result<ElementHeader> {
        self.count += 1;
        let tag = u32::from(self.u16()?) << 16 | u32::from(self.u16()?);
        if tag >> 16 == 0xfffe || !self.syntax.explicit {
            let len = self.u32()?;
            return Ok(ElementHeader { tag, kind: None, len: (len != u32::MAX).then_some(len) });
        }
        let kind: [u8; 2] = self.bytes()?;
        let len = match &kind {
            b"OB" | b"OD" | b"OF" | b"OL" | b"OV" | b"OW" | b"SQ" | b"UC" | b"UN" | b"UR"
            | b"UT" | b"SV" | b"UV" => {
                self.skip(2)?;
                self.u32()?
            }
            _ => u32::from(self.u16()?),
        };
        Ok(ElementHeader { tag, kind: Some(kind), len: (len != u32::MAX).then_some(len) })
    }

    /// Reads the file meta information (PS3.10, 7.1): the offset of the data set that follows it, and the UID of the
    /// transfer syntax.
    fn meta(&mut self) -> Result<(u64, Option<String>), BoxError> {
        // Files older than PS3.10 begin with the first attribute.
        let has_preamble = self.bytes::<132>().is_ok_and(|bytes| has_signature(&bytes));
        self.at = if has_preamble { 132 } else { 0 };
        self.seek(self.at)?;
        let mut uid = None;
        loop {
            let before = self.at;
            // The file may end after its meta information.
            let Ok(ElementHeader { tag, kind, len }) = self.header() else {
                return Ok((before, uid));
            };
            if tag >> 16 != 2 {
                return Ok((before, uid));
            }
            let len = len.ok_or("meta information has no end")?;
            match self.value(tag, kind, len)? {
                Some(Value::Text(text)) if tag == SYNTAX => uid = Some(text),
                _ => {}
            }
        }
    }

    fn seek(&mut self, at: u64) -> Result<(), BoxError> {
        let Input::File(file) = &mut self.input else {
            return Err("meta information is deflated".into());
        };
        file.seek(SeekFrom::Start(at))?;
        Ok(())
    }

    /// Counts `bytes` of memory for an attribute.
    fn count_memory(&mut self, bytes: usize) -> Result<(), BoxError> {
        self.memory += 64 + bytes;
        match self.memory <= MAX_ATTRIBUTES {
            true => Ok(()),
            false => Err("attributes take more than the maximum of 64 MiB".into()),
        }
    }

    /// Reads the value of an attribute that has a known representation; skips others.
    fn value(
        &mut self,
        tag: Tag,
        kind: Option<[u8; 2]>,
        len: u32,
    ) -> Result<Option<Value>, BoxError> {
        let max = |kind: &[u8; 2]| if kind[0] == b'O' { MAX_BYTES } else { MAX_VALUE };
        let Some(known) = representation(tag).filter(|known| len <= max(known)) else {
            self.skip(len.into())?;
            return Ok(None);
        };
        let mut bytes = Vec::new();
        self.advance(len.into())?;
        (&mut self.input).take(len.into()).read_to_end(&mut bytes)?;
        if bytes.len() < len as usize {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        self.count_memory(if known[0] == b'O' { len as usize } else { 8 * len as usize })?;
        // Programs write UN if they do not know the attribute.
        let kind = kind.filter(|kind| kind != b"UN" && known[0] != b'O').unwrap_or(known);
        Ok(Some(match tag {
            CSA => Value::Numbers(csa::parse(&bytes)),
            _ => parse_value(&bytes, kind, self.syntax.endian),
        }))
    }

    /// Reads attributes up to offset `end`, to a delimitation item, or to the pixels, whose position it returns.
    fn attributes(
        &mut self,
        data: &mut Dataset,
        level: Level,
        end: Option<u64>,
        depth: usize,
    ) -> Result<Option<Pixels>, BoxError> {
        if depth > MAX_DEPTH {
            return Err(
                format!("sequences are nested deeper than the maximum of {MAX_DEPTH}").into()
            );
        }
        while end.is_none_or(|end| self.at < end) {
            let ElementHeader { tag, kind, len } = match self.header() {
                Ok(header) => header,
                // The end of the file.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && depth == 0 => break,
                Err(error) => return Err(error.into()),
            };
            let is_sequence = kind.is_none_or(|kind| [*b"SQ", *b"UN"].contains(&kind));
            let is_known = tag != GRID_FRAMES || data.top.has(GRID_TILES);
            let items = item_level(tag, level).filter(|_| is_sequence && is_known);
            match (tag, level) {
                (ITEM_END | SEQUENCE_END, _) => return Ok(None),
                (PIXELS | F32_PIXELS | F64_PIXELS, Level::Top) => {
                    let (at, len) = (self.at, len.map(u64::from));
                    let are_words = kind.is_none_or(|kind| &kind == b"OW");
                    return Ok(Some(Pixels { at, len, tag, are_words }));
                }
                _ if kind == Some(*b"SQ") || len.is_none() || items.is_some() => {
                    if tag == LUT && level == Level::Top {
                        data.top.0.insert(tag, Value::Text(String::new()));
                    }
                    // A sequence of VR UN has implicit VR within (PS3.5, 6.2.2).
                    let explicit = self.syntax.explicit;
                    self.syntax.explicit &= kind != Some(*b"UN");
                    match (len, items) {
                        (Some(len), None) => self.skip(len.into())?,
                        _ => {
                            let items = items.unwrap_or(|_, _| Level::Skipped);
                            self.sequence(data, (items, level), len, depth)?;
                        }
                    }
                    self.syntax.explicit = explicit;
                }
                _ => {
                    let Some(value) = self.value(tag, kind, len.unwrap_or(0))? else { continue };
                    let all = match level {
                        Level::Top => &mut data.top,
                        Level::Shared => &mut data.shared,
                        Level::Frame(frame) => &mut data.frames[frame],
                        Level::Segment(segment) => &mut data.segments[segment],
                        Level::Skipped => continue,
                    };
                    all.0.insert(tag, value);
                }
            }
        }
        Ok(None)
    }

    /// Reads the items of a sequence in `outer`, item i as `level(outer, i)`.
    fn sequence(
        &mut self,
        data: &mut Dataset,
        (level, outer): (ItemLevel, Level),
        len: Option<u32>,
        depth: usize,
    ) -> Result<(), BoxError> {
        let end = len.map(|len| self.at + u64::from(len));
        let mut number = 0;
        while end.is_none_or(|end| self.at < end) {
            let ElementHeader { tag, len, .. } = self.header()?;
            match tag {
                SEQUENCE_END => return Ok(()),
                ITEM => {}
                _ => return Err("invalid item in a sequence".into()),
            }
            let level = level(outer, number);
            let list = match level {
                Level::Frame(frame) if data.frames.len() <= frame => Some(&mut data.frames),
                Level::Segment(segment) if data.segments.len() <= segment => {
                    Some(&mut data.segments)
                }
                _ => None,
            };
            if let Some(list) = list {
                list.push(Attributes::default());
                self.count_memory(size_of::<Attributes>())?;
            }
            number += 1;
            if number > MAX_FRAMES {
                return Err(
                    format!("a sequence has more items than the maximum of {MAX_FRAMES}").into()
                );
            }
            let end = len.map(|len| self.at + u64::from(len));
            match (level, end, len) {
                (Level::Skipped, _, Some(len)) => self.skip(len.into())?,
                _ => drop(self.attributes(data, level, end, depth + 1)?),
            }
        }
        Ok(())
    }
}

/// Returns the level of item i, given the level around its sequence and i.
type ItemLevel = fn(Level, usize) -> Level;

/// The level of the items of the sequence `tag`; `None` if it is skipped. Files of implicit VR do not mark sequences.
fn item_level(tag: Tag, level: Level) -> Option<ItemLevel> {
    let level: ItemLevel = match (level, tag) {
        (Level::Top, SHARED) => |_, _| Level::Shared,
        (Level::Top, PER_FRAME | GRID_FRAMES) => |_, frame| Level::Frame(frame),
        (Level::Top, SEGMENTS) => |_, segment| Level::Segment(segment),
        // The first detector of a gamma camera.
        (Level::Top, DETECTORS) => |_, i| if i == 0 { Level::Shared } else { Level::Skipped },
        // Position and orientation of a volume: Enhanced Ultrasound.
        (Level::Top, 0x0020_930e | 0x0020_930f) => |_, _| Level::Shared,
        // Plane position, plane orientation, frame content, pixel measures, pixel value transformation, segment, and
        // position and orientation of an ultrasound plane.
        (
            Level::Shared | Level::Frame(_),
            0x0020_9113 | 0x0020_9116 | 0x0020_9111 | 0x0028_9110 | 0x0028_9145 | 0x0062_000a
            | 0x0020_930e | 0x0020_930f,
        ) => |level, _| level,
        _ => return None,
    };
    Some(level)
}

/// Reads the attributes of `source` up to its pixels.
pub fn read(source: &Source) -> Result<Dataset, BoxError> {
    let file = BufReader::new(source.reader(0)?);
    let mut parser = Parser::new(Input::File(file), Syntax::PLAIN, 0);
    let (begin, uid) = parser.meta()?;
    let mut syntax = match &uid {
        Some(uid) => Syntax::from_uid(uid)?,
        None => guess_syntax(&mut parser, begin)?,
    };
    if syntax.explicit
        && !syntax.deflated
        && syntax.endian == Endian::Little
        && let Ok(found) = guess_syntax(&mut parser, begin)
    {
        // Some writers name explicit VR as the transfer syntax and write implicit VR.
        syntax.explicit = found.explicit;
    }
    let input = match syntax.deflated {
        true => Input::open(source, true, 0)?,
        false => Input::open(source, false, begin)?,
    };
    let mut parser = Parser::new(input, syntax, if syntax.deflated { 0 } else { begin });
    let mut data = Dataset {
        syntax,
        top: Attributes::default(),
        shared: Attributes::default(),
        frames: Vec::new(),
        segments: Vec::new(),
        pixels: None,
    };
    data.pixels = parser.attributes(&mut data, Level::Top, None, 0)?;
    Ok(data)
}

/// The transfer syntax of a file that names none: little-endian, of explicit VR if two letters follow the first tag.
fn guess_syntax(parser: &mut Parser, begin: u64) -> Result<Syntax, BoxError> {
    parser.seek(begin)?;
    let [group, high, _, _, first, second, _, _] = parser.bytes::<8>()?;
    if high != 0 || group != 8 {
        return Err("no DICM signature, and no attribute of group 0008".into());
    }
    let explicit = first.is_ascii_uppercase() && second.is_ascii_uppercase();
    Ok(Syntax { explicit, ..Syntax::PLAIN })
}
