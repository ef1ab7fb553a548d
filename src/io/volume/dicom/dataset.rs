//! The data set of a DICOM file (PS3.5, PS3.10) up to its pixels, in little- or big-endian byte order, with explicit or
//! implicit value representations (VR), deflated or not. Only the few attributes that a volume needs are read; all
//! others are skipped.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use flate2::read::DeflateDecoder;

use super::attributes::{
    Attributes, F32_PIXELS, F64_PIXELS, ITEM, ITEM_END, LUT, PER_FRAME, PIXELS, SEQUENCE_END,
    SHARED, SYNTAX, Tag, Value, parsed, representation,
};
use crate::io::volume::format::{BoxError, Endian, shown};

/// Longest value that is read, in bytes.
const MOST_VALUE: u32 = 1 << 16;
/// Most memory for the attributes of a file, in bytes.
const MOST_KEPT: usize = 64 << 20;
/// Maximum number of bytes before the pixels of a deflated data set. They must be inflated, and one byte of the file
/// may become about a thousand. Parsing an attribute takes as long as inflating [`PER_ATTRIBUTE`] bytes.
const MOST_INFLATED: u64 = 64 << 20;
const PER_ATTRIBUTE: u64 = 100;
/// Deepest nesting of sequences.
const MOST_DEPTH: usize = 32;
/// Maximum number of frames, more than any series has. Each takes about 250 bytes of memory.
pub const MOST_FRAMES: usize = 1 << 18;

/// How a file is encoded: its transfer syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syntax {
    pub endian: Endian,
    /// Whether each attribute states its value representation.
    pub explicit: bool,
    pub deflated: bool,
    pub packing: Packing,
}

/// How pixels are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    None,
    Rle,
    /// 8-bit sequential JPEG.
    Jpeg,
    /// Sequential JPEG of 8 or 12 bits.
    JpegOf12Bits,
    /// Lossless JPEG (T.81, process 14).
    JpegLossless,
    #[cfg(feature = "jpeg2000")]
    Jpeg2000,
}

impl Syntax {
    const PLAIN: Self =
        Self { endian: Endian::Little, explicit: true, deflated: false, packing: Packing::None };

    /// The transfer syntax with the identifier `uid` (PS3.6, annex A).
    fn named(uid: &str) -> Result<Self, BoxError> {
        let packed = |packing| Ok(Self { packing, ..Self::PLAIN });
        let refused = match uid.strip_prefix("1.2.840.10008.1.2").unwrap_or("?") {
            "" => return Ok(Self { explicit: false, ..Self::PLAIN }),
            ".1" => return Ok(Self::PLAIN),
            ".2" => return Ok(Self { endian: Endian::Big, ..Self::PLAIN }),
            ".1.99" => return Ok(Self { deflated: true, ..Self::PLAIN }),
            ".5" => return packed(Packing::Rle),
            ".4.50" => return packed(Packing::Jpeg),
            ".4.51" => return packed(Packing::JpegOf12Bits),
            ".4.57" | ".4.70" => return packed(Packing::JpegLossless),
            #[cfg(feature = "jpeg2000")]
            ".4.90" | ".4.91" => return packed(Packing::Jpeg2000),
            ".4.80" | ".4.81" => "JPEG-LS",
            ".4.90" | ".4.91" | ".4.92" | ".4.93" => "JPEG 2000",
            ".4.201" | ".4.202" | ".4.203" => "HTJ2K",
            ".4.110" | ".4.111" | ".4.112" => "JPEG XL",
            rest if [".4.100", ".4.101", ".4.102", ".4.103", ".4.104", ".4.105", ".4.106"]
                .iter()
                .any(|video| rest.starts_with(video)) =>
            {
                "video"
            }
            _ => {
                return Err(format!("the unknown transfer syntax `{}`", shown(uid)).into());
            }
        };
        Err(format!(
            "its pixels are packed as {refused} (transfer syntax {uid}), which is not read; gdcmconv, for instance, \
             unpacks them"
        )
        .into())
    }
}

/// Where the pixels of a file are, and how they are declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pixels {
    /// Offset of the value: from the beginning of the file, or of the inflated data set where it is deflated.
    pub at: u64,
    /// Length in bytes; `None` where the pixels are in fragments (undefined length).
    pub len: Option<u64>,
    /// The attribute that holds them: [`PIXELS`] (integers), [`F32_PIXELS`] or [`F64_PIXELS`].
    pub tag: Tag,
    /// Whether they are declared as 16-bit words (VR OW, as in all files of implicit VR).
    pub words: bool,
}

/// The attributes of a file, and the place of its pixels.
#[derive(Clone, Debug)]
pub struct Dataset {
    pub syntax: Syntax,
    pub top: Attributes,
    /// Shared functional groups of an enhanced multi-frame file.
    pub shared: Attributes,
    /// Functional groups of each frame.
    pub frames: Vec<Attributes>,
    /// None in a file without pixels, such as a report.
    pub pixels: Option<Pixels>,
}

/// The bytes of a data set, inflated.
#[derive(Debug)]
pub enum Input {
    File(BufReader<File>),
    Inflated(Box<BufReader<DeflateDecoder<BufReader<File>>>>),
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
    /// Opens `path` at offset `at`: of the file, or of the inflated data set where that is `deflated`.
    pub fn open(path: &Path, deflated: bool, at: u64) -> io::Result<Self> {
        let mut file = BufReader::new(File::open(path)?);
        let mut input = match deflated {
            false => Self::File(file),
            true => {
                let mut input = Walk::new(Self::File(file), Syntax::PLAIN, 0);
                let begin = input.meta().map(|meta| meta.0).map_err(io::Error::other)?;
                file = BufReader::new(File::open(path)?);
                file.seek(SeekFrom::Start(begin))?;
                Self::Inflated(Box::new(BufReader::new(DeflateDecoder::new(file))))
            }
        };
        input.skip(at)?;
        Ok(input)
    }

    /// Skips `bytes`. Skipping past the end of a file that is not deflated succeeds; the next read then fails.
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

/// The header of an attribute: what stands before its value.
struct Head {
    tag: Tag,
    /// Value representation, where the file states it.
    kind: Option<[u8; 2]>,
    /// Length of the value in bytes; `None` where a delimitation item ends it (undefined length).
    len: Option<u32>,
}

/// The parser: a position in the data set.
struct Walk {
    input: Input,
    syntax: Syntax,
    /// Offset of the next byte in the file, or in the inflated data set.
    at: u64,
    /// Number of attributes so far.
    count: u64,
    /// Bytes of memory that the attributes kept so far take.
    kept: usize,
}

/// The part of the data set that nested attributes belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Top,
    Shared,
    Frame(usize),
    /// A sequence of which no attribute is kept.
    Elsewhere,
}

impl Walk {
    fn new(input: Input, syntax: Syntax, at: u64) -> Self {
        Self { input, syntax, at, count: 0, kept: 0 }
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
        match self.syntax.deflated && work > MOST_INFLATED {
            true => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "{} attributes of {} bytes before its pixels are too many",
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

    fn head(&mut self) -> io::Result<Head> {
        self.count += 1;
        let tag = u32::from(self.u16()?) << 16 | u32::from(self.u16()?);
        if tag >> 16 == 0xfffe || !self.syntax.explicit {
            let len = self.u32()?;
            return Ok(Head { tag, kind: None, len: (len != u32::MAX).then_some(len) });
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
        Ok(Head { tag, kind: Some(kind), len: (len != u32::MAX).then_some(len) })
    }

    /// Reads the file meta information (PS3.10, 7.1): the offset of the data set behind it, and the transfer syntax's
    /// identifier.
    fn meta(&mut self) -> Result<(u64, Option<String>), BoxError> {
        let first = self.bytes::<132>();
        let (mut begin, mut uid) = (0, None);
        match first {
            Ok(bytes) if has_signature(&bytes) => begin = 132,
            // Files older than PS3.10 begin with the first attribute.
            _ => {}
        }
        let Input::File(file) = &mut self.input else { return Err("it is deflated".into()) };
        file.seek(SeekFrom::Start(begin))?;
        self.at = begin;
        loop {
            let before = self.at;
            // The file may end behind its meta information.
            let Ok(head) = self.head() else { return Ok((before, uid)) };
            if head.tag >> 16 != 2 {
                return Ok((before, uid));
            }
            let len = head.len.ok_or("its meta information has no end")?;
            match self.value(head.tag, head.kind, len)? {
                Some(Value::Text(text)) if head.tag == SYNTAX => uid = Some(text),
                _ => {}
            }
        }
    }

    /// Counts `bytes` of memory for an attribute that is kept.
    fn keep(&mut self, bytes: usize) -> Result<(), BoxError> {
        self.kept += 64 + bytes;
        match self.kept <= MOST_KEPT {
            true => Ok(()),
            false => Err("it says too much of its frames".into()),
        }
    }

    /// Reads the value of an attribute that is wanted; skips others.
    fn value(
        &mut self,
        tag: Tag,
        kind: Option<[u8; 2]>,
        len: u32,
    ) -> Result<Option<Value>, BoxError> {
        let Some(known) = representation(tag).filter(|_| len <= MOST_VALUE) else {
            self.skip(len.into())?;
            return Ok(None);
        };
        let mut bytes = Vec::new();
        self.advance(len.into())?;
        (&mut self.input).take(len.into()).read_to_end(&mut bytes)?;
        if bytes.len() < len as usize {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        self.keep(8 * len as usize)?;
        // UN is what a program writes that did not know the attribute.
        let kind = kind.filter(|kind| kind != b"UN").unwrap_or(known);
        Ok(Some(parsed(&bytes, kind, self.syntax.endian)))
    }

    /// Reads attributes up to offset `end`, to a delimitation item, or to the pixels, whose place it returns.
    fn attributes(
        &mut self,
        data: &mut Dataset,
        level: Level,
        end: Option<u64>,
        depth: usize,
    ) -> Result<Option<Pixels>, BoxError> {
        if depth > MOST_DEPTH {
            return Err("its sequences are too deep".into());
        }
        while end.is_none_or(|end| self.at < end) {
            let head = match self.head() {
                Ok(head) => head,
                // The end of the file.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && depth == 0 => break,
                Err(error) => return Err(error.into()),
            };
            let Head { tag, kind, len } = head;
            match (tag, level) {
                (ITEM_END | SEQUENCE_END, _) => return Ok(None),
                (PIXELS | F32_PIXELS | F64_PIXELS, Level::Top) => {
                    let words = kind.is_none_or(|kind| &kind == b"OW");
                    return Ok(Some(Pixels { at: self.at, len: len.map(u64::from), tag, words }));
                }
                (SHARED, Level::Top) => self.sequence(data, |_| Level::Shared, len, depth)?,
                (PER_FRAME, Level::Top) => self.sequence(data, Level::Frame, len, depth)?,
                _ if kind == Some(*b"SQ") || len.is_none() || is_functional(tag, level) => {
                    if tag == LUT && level == Level::Top {
                        data.top.0.insert(tag, Value::Text(String::new()));
                    }
                    let inner = if is_functional(tag, level) { level } else { Level::Elsewhere };
                    // A sequence of VR UN has implicit VR within (PS3.5, 6.2.2).
                    let explicit = self.syntax.explicit;
                    self.syntax.explicit &= kind != Some(*b"UN");
                    match (len, inner) {
                        (Some(len), Level::Elsewhere) => self.skip(len.into())?,
                        _ => self.sequence(data, |_| inner, len, depth)?,
                    }
                    self.syntax.explicit = explicit;
                }
                _ => {
                    let Some(value) = self.value(tag, kind, len.unwrap_or(0))? else { continue };
                    let all = match level {
                        Level::Top => &mut data.top,
                        Level::Shared => &mut data.shared,
                        Level::Frame(frame) => &mut data.frames[frame],
                        Level::Elsewhere => continue,
                    };
                    all.0.insert(tag, value);
                }
            }
        }
        Ok(None)
    }

    /// Reads the items of a sequence, item i as `level(i)`.
    fn sequence(
        &mut self,
        data: &mut Dataset,
        level: impl Fn(usize) -> Level,
        len: Option<u32>,
        depth: usize,
    ) -> Result<(), BoxError> {
        let end = len.map(|len| self.at + u64::from(len));
        let mut number = 0;
        while end.is_none_or(|end| self.at < end) {
            let Head { tag, len, .. } = self.head()?;
            match tag {
                SEQUENCE_END => return Ok(()),
                ITEM => {}
                _ => return Err("a sequence holds what is no item".into()),
            }
            let level = level(number);
            if let Level::Frame(frame) = level
                && data.frames.len() <= frame
            {
                self.keep(size_of::<Attributes>())?;
                data.frames.push(Attributes::default());
            }
            number += 1;
            if number > MOST_FRAMES {
                return Err("it has too many frames".into());
            }
            let end = len.map(|len| self.at + u64::from(len));
            match (level, end, len) {
                (Level::Elsewhere, _, Some(len)) => self.skip(len.into())?,
                _ => drop(self.attributes(data, level, end, depth + 1)?),
            }
        }
        Ok(())
    }
}

/// Whether `tag` is a sequence of the functional groups that holds attributes that are read: plane position, plane
/// orientation, frame content, pixel measures, pixel value transformation. Files of implicit VR do not say that these
/// are sequences.
fn is_functional(tag: Tag, level: Level) -> bool {
    matches!(level, Level::Shared | Level::Frame(_))
        && matches!(tag, 0x0020_9113 | 0x0020_9116 | 0x0020_9111 | 0x0028_9110 | 0x0028_9145)
}

/// Reads the attributes of `path` up to its pixels.
///
/// # Errors
/// When the file cannot be read or is broken.
pub fn read(path: &Path) -> Result<Dataset, BoxError> {
    let file = BufReader::new(File::open(path)?);
    let mut walk = Walk::new(Input::File(file), Syntax::PLAIN, 0);
    let (begin, uid) = walk.meta()?;
    let mut syntax = match &uid {
        Some(uid) => Syntax::named(uid)?,
        None => guessed(&mut walk, begin)?,
    };
    if syntax.explicit
        && !syntax.deflated
        && syntax.endian == Endian::Little
        && let Ok(found) = guessed(&mut walk, begin)
    {
        // Some writers name explicit VR as the transfer syntax and write implicit VR.
        syntax.explicit = found.explicit;
    }
    let input = match syntax.deflated {
        true => Input::open(path, true, 0)?,
        false => Input::open(path, false, begin)?,
    };
    let mut walk = Walk::new(input, syntax, if syntax.deflated { 0 } else { begin });
    let mut data = Dataset {
        syntax,
        top: Attributes::default(),
        shared: Attributes::default(),
        frames: Vec::new(),
        pixels: None,
    };
    data.pixels = walk.attributes(&mut data, Level::Top, None, 0)?;
    Ok(data)
}

/// The transfer syntax of a file that names none: little-endian, of explicit VR if two letters follow the first tag.
fn guessed(walk: &mut Walk, begin: u64) -> Result<Syntax, BoxError> {
    let Input::File(file) = &mut walk.input else { return Err("it is deflated".into()) };
    file.seek(SeekFrom::Start(begin))?;
    let [group, high, _, _, first, second, _, _] = walk.bytes::<8>()?;
    if high != 0 || group != 8 {
        return Err("it does not begin as one".into());
    }
    let explicit = first.is_ascii_uppercase() && second.is_ascii_uppercase();
    Ok(Syntax { explicit, ..Syntax::PLAIN })
}
