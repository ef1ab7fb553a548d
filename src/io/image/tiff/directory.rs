//! Directories of a TIFF file: tags with values, in classic TIFF (TIFF 6.0, section 2) and in BigTIFF, which has
//! offsets of 64 bits.

use std::{
    borrow::Cow,
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::bytes::FileBytes;
use crate::{
    io::{
        RegularFile,
        image::{codec::ReadAt, error::BoxError},
    },
    util::memory,
};

/// Maximum number of entries of a directory: the limit of classic TIFF.
const MAX_ENTRIES: u64 = 65_535;
/// Maximum size in bytes of the values of a tag: the offsets of a million strips of a BigTIFF.
const MAX_VALUE_BYTES: u64 = 8 << 20;
/// Maximum number of values of a tag that are read as numbers, of 8 bytes each in memory.
const MAX_NUMBERS: u64 = 1 << 20;
/// Maximum size of all values that are read, as a multiple of the file length. The tags of many pages may share one
/// long value.
const MAX_READ_RATIO: u64 = 16;
/// Maximum number of directories in the chain.
const MAX_PAGES: usize = 1 << 20;

/// Types of values, by their numbers in a file.
pub mod kind {
    pub const BYTE: u16 = 1;
    pub const ASCII: u16 = 2;
    pub const SHORT: u16 = 3;
    pub const LONG: u16 = 4;
    pub const RATIONAL: u16 = 5;
    pub const SBYTE: u16 = 6;
    pub const UNDEFINED: u16 = 7;
    pub const SSHORT: u16 = 8;
    pub const SLONG: u16 = 9;
    pub const SRATIONAL: u16 = 10;
    pub const FLOAT: u16 = 11;
    pub const DOUBLE: u16 = 12;
    pub const IFD: u16 = 13;
    pub const LONG8: u16 = 16;
    pub const SLONG8: u16 = 17;
    pub const IFD8: u16 = 18;
}

/// Bytes of a value of type `kind`, and of the units that have a byte order; `None` for unknown types.
pub fn sizes(kind: u16) -> Option<[usize; 2]> {
    Some(match kind {
        kind::BYTE | kind::ASCII | kind::SBYTE | kind::UNDEFINED => [1, 1],
        kind::SHORT | kind::SSHORT => [2, 2],
        kind::LONG | kind::SLONG | kind::FLOAT | kind::IFD => [4, 4],
        kind::RATIONAL | kind::SRATIONAL => [8, 4],
        kind::DOUBLE | kind::LONG8 | kind::SLONG8 | kind::IFD8 => [8, 8],
        _ => return None,
    })
}

/// A TIFF file whose header has been read.
#[derive(Clone)]
pub struct TiffFile<'a> {
    pub bytes: Arc<dyn ReadAt + 'a>,
    pub is_little_endian: bool,
    is_big_tiff: bool,
    /// Offset of the first directory.
    pub first_directory: u64,
    /// Bytes of values that may still be read.
    left: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
pub struct Directory {
    entries: Vec<Entry>,
    /// Offset of the next directory; 0 at the end.
    pub next: u64,
    /// Length of the directory in bytes, up to the offset of the next directory.
    pub len: u64,
}

#[derive(Debug)]
pub struct PageList {
    /// The offsets of their directories; at least one.
    pub offsets: Vec<u64>,
    /// The offsets of the directories of smaller copies of pages, masks and other images in the chain.
    pub others: Vec<u64>,
    /// Warning about missing pages.
    pub loss: Option<String>,
}

#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub tag: u16,
    pub kind: u16,
    pub count: u64,
    /// Offset of the values.
    pub at: u64,
}

impl Entry {
    pub fn bytes(&self) -> u64 {
        let [size, _] = sizes(self.kind).unwrap_or([1, 1]);
        self.count.saturating_mul(size as u64)
    }

    /// The entry with its first `max` values.
    fn first(&self, max: usize) -> Self {
        Self { count: self.count.min(max as u64), ..*self }
    }
}

impl Directory {
    pub fn find(&self, tag: u16) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.tag == tag)
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

impl<'a> TiffFile<'a> {
    /// Reads the header of a file.
    pub fn open(bytes: Arc<dyn ReadAt + 'a>) -> Result<Self, BoxError> {
        let head = bytes.read(0, 16)?.into_owned();
        let is_little_endian = match head.get(..2) {
            Some(b"II") => true,
            Some(b"MM") => false,
            _ => return Err("not a TIFF file: invalid signature".into()),
        };
        let left = bytes.len().saturating_mul(MAX_READ_RATIO).saturating_add(1 << 16);
        let left = Arc::new(AtomicU64::new(left));
        let mut file =
            Self { bytes, is_little_endian, is_big_tiff: false, first_directory: 0, left };
        let number = |at: usize, len: usize| head.get(at..at + len).map(|bytes| file.number(bytes));
        let ends = "the file ends within its header";
        (file.is_big_tiff, file.first_directory) = match number(2, 2).ok_or(ends)? {
            42 => (false, number(4, 4).ok_or(ends)?),
            43 if number(4, 2).ok_or(ends)? == 8 => (true, number(8, 8).ok_or(ends)?),
            _ => return Err("not a TIFF file: invalid signature".into()),
        };
        Ok(file)
    }

    /// Opens a file and reads its header.
    pub fn open_file(file: &RegularFile) -> Result<TiffFile<'static>, BoxError> {
        TiffFile::open(Arc::new(FileBytes::new(file)?))
    }

    /// Reads the header of a block in memory with the structure of a TIFF file.
    pub fn open_block(block: &'a [u8]) -> Result<Self, BoxError> {
        Self::open(Arc::new(block))
    }

    fn number(&self, bytes: &[u8]) -> u64 {
        let add = |number: u64, &byte: &u8| number << 8 | u64::from(byte);
        match self.is_little_endian {
            true => bytes.iter().rev().fold(0, add),
            false => bytes.iter().fold(0, add),
        }
    }

    pub fn is_big_tiff(&self) -> bool {
        self.is_big_tiff
    }

    pub fn directory(&self, at: u64) -> Result<Directory, BoxError> {
        let (count_len, entry_len, offset_len) =
            if self.is_big_tiff { (8, 20, 8) } else { (2, 12, 4) };
        let outside = || format!("a directory at byte {at} is outside of the file");
        let count = self.bytes.read(at, count_len)?;
        if at == 0 || (count.len() as u64) < count_len {
            return Err(outside().into());
        }
        let count = self.number(&count);
        if count == 0 || count > MAX_ENTRIES {
            return Err(format!(
                "a directory at byte {at} has {count} entries, expected 1 to {MAX_ENTRIES}"
            )
            .into());
        }
        let first = at + count_len;
        let bytes = self.bytes.read(first, count * entry_len + offset_len)?;
        // The offset of the next directory may be missing at the end of the file.
        let whole = count * entry_len;
        if (bytes.len() as u64) < whole {
            return Err(outside().into());
        }
        let (entries, next) = bytes.split_at(whole as usize);
        let next = if next.len() as u64 == offset_len { self.number(next) } else { 0 };
        let entry_len = entry_len as usize;
        let inline = offset_len as usize;
        let entries = entries.chunks_exact(entry_len).enumerate().filter_map(|(i, bytes)| {
            let (head, value) = bytes.split_at(entry_len - inline);
            let (tag, kind) = (self.number(&head[..2]) as u16, self.number(&head[2..4]) as u16);
            let count = self.number(&head[4..]);
            let len = count.checked_mul(sizes(kind)?[0] as u64)?;
            let here = first + (i * entry_len + entry_len - inline) as u64;
            let at = if len <= offset_len { here } else { self.number(value) };
            Some(Entry { tag, kind, count, at })
        });
        Ok(Directory { entries: entries.collect(), next, len: count_len + whole })
    }

    /// Calls `visit` with the offset and content of each directory of the main chain. The chain ends at a cycle, at the
    /// end of the file, or when the total length of its directories exceeds the file, because they overlap. Returns
    /// whether it ends without a broken directory.
    pub fn for_each_directory(
        &self,
        mut visit: impl FnMut(u64, &Directory),
    ) -> Result<bool, BoxError> {
        let mut seen = HashSet::new();
        let (mut at, mut left) = (self.first_directory, self.bytes.len());
        let mut is_whole = true;
        while at != 0 && seen.len() < MAX_PAGES && seen.insert(at) {
            match self.directory(at) {
                Ok(directory) => {
                    visit(at, &directory);
                    at = directory.next;
                    let Some(rest) = left.checked_sub(directory.len) else { break };
                    left = rest;
                }
                Err(error) if seen.len() == 1 => return Err(error),
                Err(_) => {
                    is_whole = false;
                    break;
                }
            }
        }
        if seen.is_empty() { Err("the file contains no image".into()) } else { Ok(is_whole) }
    }

    /// Reads the values of an entry as bytes, with numbers in native byte order.
    pub fn value(&self, entry: &Entry) -> Result<Vec<u8>, BoxError> {
        let [_, unit] = sizes(entry.kind).unwrap_or([1, 1]);
        let len = entry.bytes();
        if len > MAX_VALUE_BYTES {
            return Err(format!(
                "tag {} has {len} bytes; the maximum is {MAX_VALUE_BYTES}",
                entry.tag
            )
            .into());
        }
        let outside = || format!("the values of tag {} are outside of the file", entry.tag);
        if entry.at.saturating_add(len) > self.bytes.len() {
            return Err(outside().into());
        }
        let spend = |left: u64| left.checked_sub(len);
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).is_err() {
            return Err("the values of its tags overlap".into());
        }
        let mut bytes = self.bytes.read(entry.at, len).map(Cow::into_owned)?;
        if (bytes.len() as u64) < len {
            return Err(outside().into());
        }
        if unit > 1 && !self.is_little_endian {
            bytes.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
        }
        Ok(bytes)
    }

    /// The first `max` values of a tag, or all if there are fewer, as unsigned numbers; `None` without the tag.
    pub fn numbers(
        &self,
        directory: &Directory,
        tag: u16,
        max: usize,
    ) -> Result<Option<Vec<u64>>, BoxError> {
        directory.find(tag).map(|entry| self.entry_numbers(&entry.first(max))).transpose()
    }

    fn entry_numbers(&self, entry: &Entry) -> Result<Vec<u64>, BoxError> {
        if entry.count > MAX_NUMBERS {
            return Err(format!(
                "tag {} has {} values; the maximum is {MAX_NUMBERS}",
                entry.tag, entry.count
            )
            .into());
        }
        let bytes = self.value(entry)?;
        let mut numbers = memory::room(entry.count as usize)?;
        match entry.kind {
            kind::BYTE | kind::UNDEFINED => numbers.extend(bytes.into_iter().map(u64::from)),
            kind::SHORT => numbers.extend(units(&bytes, u16::from_ne_bytes).map(u64::from)),
            kind::LONG | kind::IFD => {
                numbers.extend(units(&bytes, u32::from_ne_bytes).map(u64::from));
            }
            kind::LONG8 | kind::IFD8 => numbers.extend(units(&bytes, u64::from_ne_bytes)),
            kind::SBYTE => numbers.extend(units(&bytes, i8::from_ne_bytes).filter_map(unsigned)),
            kind::SSHORT => numbers.extend(units(&bytes, i16::from_ne_bytes).filter_map(unsigned)),
            kind::SLONG => numbers.extend(units(&bytes, i32::from_ne_bytes).filter_map(unsigned)),
            kind::SLONG8 => numbers.extend(units(&bytes, i64::from_ne_bytes).filter_map(unsigned)),
            _ => return Err(format!("tag {} is not a number", entry.tag).into()),
        }
        match numbers.len() as u64 == entry.count {
            true => Ok(numbers),
            false => Err(format!("tag {} has a negative value", entry.tag).into()),
        }
    }

    /// The first value of a tag as an unsigned number.
    pub fn first_number(&self, directory: &Directory, tag: u16) -> Result<Option<u64>, BoxError> {
        Ok(self.numbers(directory, tag, 1)?.and_then(|numbers| numbers.first().copied()))
    }

    /// The first `max` values of a tag as floats, from fractions, floats and integers.
    pub fn floats(&self, directory: &Directory, tag: u16, max: usize) -> Option<Vec<f64>> {
        let entry = directory.find(tag)?.first(max);
        let bytes = self.value(&entry).ok()?;
        Some(match entry.kind {
            kind::RATIONAL => {
                let numbers: Vec<u32> = units(&bytes, u32::from_ne_bytes).collect();
                let quotient = |&[n, d]: &[u32; 2]| f64::from(n) / f64::from(d);
                numbers.as_chunks().0.iter().map(quotient).collect()
            }
            kind::SRATIONAL => {
                let numbers: Vec<i32> = units(&bytes, i32::from_ne_bytes).collect();
                let quotient = |&[n, d]: &[i32; 2]| f64::from(n) / f64::from(d);
                numbers.as_chunks().0.iter().map(quotient).collect()
            }
            kind::SBYTE => units(&bytes, i8::from_ne_bytes).map(f64::from).collect(),
            kind::SSHORT => units(&bytes, i16::from_ne_bytes).map(f64::from).collect(),
            kind::SLONG => units(&bytes, i32::from_ne_bytes).map(f64::from).collect(),
            kind::FLOAT => units(&bytes, f32::from_ne_bytes).map(f64::from).collect(),
            kind::DOUBLE => units(&bytes, f64::from_ne_bytes).collect(),
            _ => {
                let numbers = self.entry_numbers(&entry).ok()?;
                numbers.into_iter().map(|number| number as f64).collect()
            }
        })
    }

    /// The value of a tag as text, up to its first NUL.
    pub fn text(&self, directory: &Directory, tag: u16) -> Option<String> {
        let entry = directory.find(tag)?;
        let is_text = matches!(entry.kind, kind::ASCII | kind::BYTE | kind::UNDEFINED);
        let bytes = is_text.then(|| self.value(entry).ok()).flatten()?;
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        let bytes = &bytes[..end];
        // Text that is not UTF-8 is Latin-1: ImageJ writes `unit=µm` in the encoding of the system.
        let latin_1 = || bytes.iter().map(|&byte| char::from(byte)).collect();
        Some(std::str::from_utf8(bytes).map_or_else(|_| latin_1(), str::to_owned))
    }
}

/// A signed number as an unsigned one; `None` if it is negative.
fn unsigned(number: impl TryInto<u64>) -> Option<u64> {
    number.try_into().ok()
}

/// Splits `bytes` into numbers of `N` bytes.
fn units<T, const N: usize>(bytes: &[u8], parse: fn([u8; N]) -> T) -> impl Iterator<Item = T> {
    bytes.as_chunks().0.iter().map(move |&bytes| parse(bytes))
}

/// Value of a tag in the first directory of a block with the structure of a TIFF file.
pub fn number_in(block: &[u8], tag: u16) -> Option<u64> {
    let file = TiffFile::open_block(block).ok()?;
    file.first_number(&file.directory(file.first_directory).ok()?, tag).ok().flatten()
}
