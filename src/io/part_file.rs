//! Part files: the results of one shard of a job, written by one process. `merge` joins the parts of a job. All
//! commands use one format:
//!
//! ```text
//! gpuproc part 3\n
//! records, one after the other
//! the summary: identity of the part, list of its records, totals
//! length of the summary (u64), its checksum (u32)
//! ```
//! Records and the summary are in the format of [`postcard`]. The list states the kind, the length and the checksum of
//! each record, so that records can be skipped, and none can be lost, moved, or taken from another part. Records of one
//! kind are in the order of the job. Other numbers are little-endian; checksums are CRC32C. A part file appears whole or
//! not at all, as all outputs do.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    mem::{replace, take},
    path::{Path, PathBuf},
};

use crc32c::crc32c;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{Output, Sink, Sources, identity::Identity};
use crate::util::{
    error::{Error, Hint, Result},
    memory,
};

/// The first bytes of a part file.
const MAGIC: &[u8] = b"gpuproc part 3\n";
/// Bytes after the summary.
const TAIL: u64 = 12;

/// Place and checksum of a record.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Entry {
    kind: u8,
    length: u64,
    checksum: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct Summary {
    identity: Identity,
    entries: Vec<Entry>,
    totals: Vec<u8>,
}

fn packed(value: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(value).expect("plain data")
}

/// A part being written.
#[derive(Debug)]
pub struct PartWriter {
    name: String,
    output: Output,
    summary: Summary,
}

impl PartWriter {
    /// Creates the part file `sink`.
    ///
    /// # Errors
    /// As [`Sink::create`].
    pub fn create(sink: &Sink, no_clobber: bool, identity: &Identity) -> Result<Self> {
        let output = sink.create(no_clobber)?;
        let summary =
            Summary { identity: identity.clone(), entries: Vec::new(), totals: Vec::new() };
        let mut writer = Self { name: sink.to_string(), output, summary };
        writer.write(MAGIC)?;
        Ok(writer)
    }

    /// Appends a record of `kind`.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::util::error::Kind::Io).
    pub fn record(&mut self, kind: u8, record: &impl Serialize) -> Result<()> {
        let bytes = packed(record);
        let entry = Entry { kind, length: bytes.len() as u64, checksum: crc32c(&bytes) };
        self.summary.entries.push(entry);
        self.write(&bytes)
    }

    /// Completes the part file with its totals.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::util::error::Kind::Io); then there is no part file.
    pub fn finish(mut self, totals: &impl Serialize) -> Result<()> {
        self.summary.totals = packed(totals);
        let mut bytes = packed(&self.summary);
        let (length, checksum) = (bytes.len() as u64, crc32c(&bytes));
        bytes.extend(length.to_le_bytes());
        bytes.extend(checksum.to_le_bytes());
        self.write(&bytes)?;
        self.output.commit()
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.output.write_all(bytes).map_err(|error| Error::io("write", &self.name, error))
    }
}

/// A part being read. Its file is open only while a record is read, since a job may have more parts than a process may
/// have open files.
#[derive(Debug)]
pub struct PartReader {
    path: PathBuf,
    /// Maximum number of bytes of a record in memory.
    max_memory: u64,
    /// The job, and which part of it this is.
    pub identity: Identity,
    entries: Vec<Entry>,
    totals: Vec<u8>,
}

impl PartReader {
    /// Reads identity and totals of the part file `path`. A record may take `max_memory` bytes.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::util::error::Kind::Io) if the file cannot be read,
    /// [`Kind::BadInput`](crate::util::error::Kind::BadInput) if it is not a part file, damaged or cut off.
    pub fn open(path: &Path, max_memory: u64) -> Result<Self> {
        let length = path.metadata().map_err(|error| Error::io("read", path, error))?.len();
        let head = read(path, 0, length.min(MAGIC.len() as u64), max_memory)?;
        if head != MAGIC {
            return Err(match head.starts_with(&MAGIC[..MAGIC.len() - 2]) {
                true => wrong(path, "this part was made by another version of gpuproc"),
                false => wrong(path, "this is not a part file of gpuproc"),
            });
        }
        let room = length.checked_sub(MAGIC.len() as u64 + TAIL).ok_or_else(|| broken(path))?;
        let tail = read(path, length - TAIL, TAIL, max_memory)?;
        let (of_summary, checksum) = tail.split_at(8);
        let of_summary = u64::from_le_bytes(of_summary.try_into().expect("8 bytes"));
        let records = room.checked_sub(of_summary).ok_or_else(|| broken(path))?;
        let summary = read(path, MAGIC.len() as u64 + records, of_summary, max_memory)?;
        if crc32c(&summary).to_le_bytes() != *checksum {
            return Err(broken(path));
        }
        let Summary { identity, entries, totals } = unpacked(path, &summary)?;
        let listed = entries.iter().try_fold(0u64, |sum, entry| sum.checked_add(entry.length));
        match listed == Some(records) {
            true => Ok(Self { path: path.to_owned(), max_memory, identity, entries, totals }),
            false => Err(broken(path)),
        }
    }

    /// The totals with which the part was completed.
    ///
    /// # Errors
    /// [`Kind::BadInput`](crate::util::error::Kind::BadInput) if they are not a `T`.
    pub fn totals<T: DeserializeOwned>(&self) -> Result<T> {
        unpacked(&self.path, &self.totals)
    }

    /// The records of `kind`, in order. Each is read when it is asked for.
    pub fn records<T: DeserializeOwned>(&self, kind: u8) -> impl Iterator<Item = Result<T>> {
        let bytes = self.bytes(move |entry| entry.kind == kind);
        bytes.map(|bytes| unpacked(&self.path, &bytes?))
    }

    /// Checks the bytes of all records.
    ///
    /// # Errors
    /// Those of reading.
    pub fn check(&self) -> Result<()> {
        self.bytes(|_| true).try_for_each(|bytes| bytes.map(drop))
    }

    fn bytes(&self, is_wanted: impl Fn(&Entry) -> bool) -> impl Iterator<Item = Result<Vec<u8>>> {
        let mut next = MAGIC.len() as u64;
        self.entries.iter().filter_map(move |entry| {
            let at = next;
            next += entry.length;
            is_wanted(entry).then(|| {
                let bytes = read(&self.path, at, entry.length, self.max_memory)?;
                if crc32c(&bytes) == entry.checksum { Ok(bytes) } else { Err(self.broken()) }
            })
        })
    }

    /// An error about this part; the message names it.
    pub fn wrong(&self, what: impl std::fmt::Display) -> Error {
        wrong(&self.path, what)
    }

    /// The error for a part whose records are not as its command demands.
    pub fn broken(&self) -> Error {
        broken(&self.path)
    }
}

fn wrong(path: &Path, what: impl std::fmt::Display) -> Error {
    Error::bad_input(format_args!("{}: {what}", path.display()))
}

fn broken(path: &Path) -> Error {
    wrong(path, "the part is damaged or cut off")
}

fn unpacked<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok(_) => Err(broken(path)),
        Err(error) => Err(broken(path).caused_by(error)),
    }
}

/// Reads `length` bytes of the file `path` from offset `at` on.
fn read(path: &Path, at: u64, length: u64, max_memory: u64) -> Result<Vec<u8>> {
    if length > max_memory {
        let what = format_args!("a block of {length} bytes is more than the {max_memory} allowed");
        return Err(wrong(path, what).with_hint(Hint::Memory));
    }
    let mut bytes = memory::zeros(length as usize)?;
    let mut open = || {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut bytes)
    };
    open().map_err(|error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => broken(path),
        _ => Error::io("read", path, error),
    })?;
    Ok(bytes)
}

/// Whether `sink` is a complete and undamaged part with this identity, so that it need not be made again.
pub fn is_done(sink: &Sink, identity: &Identity, max_memory: u64) -> bool {
    let Sink::File(path) = sink else { return false };
    let part = PartReader::open(path, max_memory);
    part.is_ok_and(|part| part.identity == *identity && part.check().is_ok())
}

/// Opens all parts of a job and sorts them by shard.
///
/// # Errors
/// [`Kind::BadInput`](crate::util::error::Kind::BadInput) if a part is missing, present twice, or of another job. Differences
/// of the inputs' modification times are ignored if `any_time`.
pub fn open_all(sources: &Sources, any_time: bool, max_memory: u64) -> Result<Vec<PartReader>> {
    let mut parts: Vec<PartReader> = Vec::new();
    for source in sources.iter() {
        let path = source.path().ok_or_else(|| Error::usage("parts are files, not standard input"));
        let mut part = PartReader::open(path?, max_memory)?;
        if let Some(first) = parts.first() {
            if let Some(difference) = first.identity.difference(&part.identity, any_time) {
                return Err(part.wrong(format_args!(
                    "this part is of another job than {}: {difference}",
                    first.path.display()
                )));
            }
            // All parts have the inputs of the first part, and a copy for each would take much memory.
            part.identity.inputs = Vec::new();
        }
        parts.push(part);
    }
    let Some(first) = parts.first_mut() else { return Ok(parts) };
    let (count, inputs) = (first.identity.shard.count(), take(&mut first.identity.inputs));
    parts.sort_by_key(|part| part.identity.shard.index());
    let twice = parts.windows(2).find(|pair| pair[0].identity.shard == pair[1].identity.shard);
    if let Some([one, other]) = twice {
        return Err(other.wrong(format_args!(
            "this is shard {}, and so is {}: leave one out",
            other.identity.shard,
            one.path.display()
        )));
    }
    parts[0].identity.inputs = inputs;
    let mut next = 0;
    let ends = parts.iter().map(|part| part.identity.shard.index()).chain([count]);
    let gaps = ends.flat_map(|end| replace(&mut next, end + 1)..end);
    let missing: Vec<String> = gaps.take(10).map(|index| index.to_string()).collect();
    match count - parts.len() {
        0 => Ok(parts),
        number => Err(Error::bad_input(format_args!(
            "of {count} shards {number} {} missing: {}{}",
            if number == 1 { "is" } else { "are" },
            missing.join(", "),
            match number - missing.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            }
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::io::Source;

    fn write(path: &Path, shard: &str, parameters: &str) {
        let identity = Identity::new("count", &parameters, [], shard.parse().unwrap()).unwrap();
        let mut part = PartWriter::create(&Sink::File(path.into()), false, &identity).unwrap();
        part.record(1, &"one").unwrap();
        part.record(2, &"").unwrap();
        part.record(1, &"three").unwrap();
        part.finish(&vec![7_u8]).unwrap();
    }

    fn open(path: &Path) -> Result<PartReader> {
        PartReader::open(path, 1 << 20)
    }

    #[test]
    fn records_come_back_by_kind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("part");
        write(&path, "0/1", "");
        let part = open(&path).unwrap();
        for (kind, expected) in [(1, vec!["one", "three"]), (2, vec![""]), (3, vec![])] {
            let found: Vec<String> = part.records(kind).map(Result::unwrap).collect();
            assert_eq!(found, expected);
        }
        assert_eq!(part.totals::<Vec<u8>>().unwrap(), [7]);
        assert!(part.totals::<u64>().is_err());
        let error = PartReader::open(&path, 20).unwrap_err();
        assert_eq!(
            (error.hint(), error.one_line().contains("the 20 allowed")),
            (Some(Hint::Memory), true)
        );
    }

    #[test]
    fn damage_anywhere_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("part");
        write(&path, "0/1", "");
        let whole = fs::read(&path).unwrap();
        let is_refused = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            open(&path).and_then(|part| part.check()).is_err()
        };
        assert!(!is_refused(&whole));
        for length in 0..whole.len() {
            assert!(is_refused(&whole[..length]), "{length}");
        }
        for bit in 0..8 * whole.len() {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(is_refused(&damaged), "bit {bit}");
        }
        assert!(is_refused(&[&whole[..], b"x"].concat()));
    }

    #[test]
    fn missing_doubled_and_foreign_parts_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..3).map(|i| folder.path().join(i.to_string())).collect();
        for (i, path) in paths.iter().enumerate() {
            write(path, &format!("{}/3", 2 - i), "");
        }
        let open_all = |paths: &[PathBuf]| {
            let sources = paths.iter().map(|path| Source::File(path.clone())).collect();
            super::open_all(&sources, false, 1 << 20)
        };
        let order = |parts: Vec<PartReader>| -> Vec<usize> {
            parts.iter().map(|part| part.identity.shard.index()).collect()
        };
        assert_eq!(order(open_all(&paths).unwrap()), [0, 1, 2]);
        let error = |paths: &[PathBuf]| open_all(paths).unwrap_err().one_line();
        assert!(error(&paths[..2]).ends_with("of 3 shards 1 is missing: 0"));
        let twice = [&paths[..], &paths[..1]].concat();
        assert!(error(&twice).contains("this is shard 2/3, and so is"), "{}", error(&twice));
        write(&paths[1], "1/3", "other");
        assert!(error(&paths).contains("of another job"), "{}", error(&paths));
        write(&paths[1], "1/4", "");
        assert!(error(&paths).contains("has 4 shards, not 3"), "{}", error(&paths));
        // The list of missing shards is short, however many there are.
        for (i, shard) in ["3/4294967294", "0/4294967294"].iter().enumerate() {
            write(&paths[i], shard, "");
        }
        let listed = "of 4294967294 shards 4294967292 are missing: 1, 2, 4, 5, 6, 7, 8, 9, 10, 11 and 4294967282 more";
        assert_eq!(error(&paths[..2]), listed);
    }
}
