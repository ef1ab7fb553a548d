//! Part files: the results of one shard of a job. `merge` joins the parts of a job. All commands use one format:
//!
//! ```text
//! gpuproc part 3\n
//! records
//! summary: identity, list of the records, totals
//! length of the summary (u64), checksum of the summary (u32)
//! ```
//! Records and the summary are encoded by [`postcard`]. The list has the kind, the length and the checksum of each record,
//! so that records can be skipped, and none can be lost, moved, or taken from another part. Records of one kind are in
//! the order of the job. Other numbers are little-endian; checksums are CRC32C.

use std::{
    collections::BTreeSet,
    fs::{File, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use crc32c::crc32c;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    Output, Sink, Sources, identity::Identity, input_file::InputFile, unfinished::parent_folder,
};
use crate::util::{
    error::{Error, Result},
    memory,
};

/// The first bytes of a part file.
const MAGIC: &[u8] = b"gpuproc part 3\n";
/// Number of bytes after the summary.
const TAIL: u64 = 12;

/// Kind, length and checksum of a record.
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

fn encode(value: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(value).expect("plain data")
}

/// A part file being written.
#[derive(Debug)]
pub struct PartWriter {
    sink: Sink,
    output: Output,
    summary: Summary,
}

impl PartWriter {
    /// Creates the part file `sink`. Refuses the name of another format, and of the part of another shard.
    pub fn create(sink: &Sink, no_clobber: bool, identity: &Identity) -> Result<Self> {
        let extension = sink.extension();
        if extension != "part" && !extension.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Error::usage(format_args!(
                "{sink}: a shard writes a part file for `gpuproc merge`: name it .part, such as 3.part"
            )));
        }
        refuse_other_shard(sink, identity)?;
        let output = sink.create(no_clobber)?;
        let summary =
            Summary { identity: identity.clone(), entries: Vec::new(), totals: Vec::new() };
        let mut writer = Self { sink: sink.clone(), output, summary };
        writer.write(MAGIC)?;
        Ok(writer)
    }

    /// Appends a record of `kind`.
    pub fn record(&mut self, kind: u8, record: &impl Serialize) -> Result<()> {
        let bytes = encode(record);
        let entry = Entry { kind, length: bytes.len() as u64, checksum: crc32c(&bytes) };
        self.summary.entries.push(entry);
        self.write(&bytes)
    }

    /// Completes the part file with its totals. After an error, there is no part file.
    pub fn finish(mut self, totals: &impl Serialize) -> Result<()> {
        self.summary.totals = encode(totals);
        let mut bytes = encode(&self.summary);
        let (length, checksum) = (bytes.len() as u64, crc32c(&bytes));
        bytes.extend(length.to_le_bytes());
        bytes.extend(checksum.to_le_bytes());
        self.write(&bytes)?;
        // Another shard may have written the part since this one began.
        let _lock = self.sink.path().and_then(|path| lock(parent_folder(path)));
        refuse_other_shard(&self.sink, &self.summary.identity)?;
        self.output.commit()
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.output
            .write_all(bytes)
            .map_err(|error| Error::io("write", self.sink.to_string(), error))
    }
}

/// Fails if `sink` is the part of another shard of the same job: the shards would replace each other's parts.
fn refuse_other_shard(sink: &Sink, identity: &Identity) -> Result<()> {
    /// A larger summary is that of another job.
    const MAX_SUMMARY: u64 = 1 << 30;
    let Some(path) = sink.path().filter(|path| path.is_file()) else { return Ok(()) };
    let Ok(part) = PartReader::open(path, MAX_SUMMARY) else { return Ok(()) };
    let is_other = part.identity.shard != identity.shard && part.identity.hash() == identity.hash();
    if is_other {
        return Err(Error::usage(format_args!(
            "{sink} is the part of shard {}: each shard needs a different name",
            part.identity.shard
        )));
    }
    Ok(())
}

/// A lock on `folder`, with which parts get their names one after the other; `None` if the file system has none or
/// somebody else holds it for long.
fn lock(folder: &Path) -> Option<File> {
    let file = File::open(folder).ok()?;
    for _ in 0..50 {
        match file.try_lock() {
            Ok(()) => return Some(file),
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(20)),
            Err(TryLockError::Error(_)) => return None,
        }
    }
    None
}

/// A part file being read. It is open only while a record is read: a job may have more parts than a process may have open
/// files.
#[derive(Debug)]
pub struct PartReader {
    path: PathBuf,
    /// Maximum number of bytes of a record in memory.
    max_memory: u64,
    /// The identity of the job and its shard.
    pub identity: Identity,
    entries: Vec<Entry>,
    totals: Vec<u8>,
}

/// Whether `file` begins like a part file of any version.
pub fn is_part(file: &InputFile) -> bool {
    let opened = file.open().ok().flatten();
    opened.is_some_and(|opened| opened.first.starts_with(&MAGIC[..MAGIC.len() - 2]))
}

impl PartReader {
    /// Reads identity and totals of the part file `path`. A record may take `max_memory` bytes.
    pub fn open(path: &Path, max_memory: u64) -> Result<Self> {
        let length = path.metadata().map_err(|error| Error::io("read", path, error))?.len();
        let head = read(path, 0, length.min(MAGIC.len() as u64), max_memory)?;
        if head != MAGIC {
            return Err(match head.starts_with(&MAGIC[..MAGIC.len() - 2]) {
                true => error(path, "part file of another version of gpuproc; make it again"),
                false => error(path, "not a part file"),
            });
        }
        let max_records =
            length.checked_sub(MAGIC.len() as u64 + TAIL).ok_or_else(|| damaged(path))?;
        let tail = read(path, length - TAIL, TAIL, max_memory)?;
        let (summary_length, checksum) = tail.split_at(8);
        let summary_length = u64::from_le_bytes(summary_length.try_into().expect("8 bytes"));
        let records = max_records.checked_sub(summary_length).ok_or_else(|| damaged(path))?;
        let summary = read(path, MAGIC.len() as u64 + records, summary_length, max_memory)?;
        if crc32c(&summary).to_le_bytes() != *checksum {
            return Err(damaged(path));
        }
        let Summary { identity, entries, totals } = decode(path, &summary)?;
        let listed = entries.iter().try_fold(0u64, |sum, entry| sum.checked_add(entry.length));
        match listed == Some(records) {
            true => Ok(Self { path: path.to_owned(), max_memory, identity, entries, totals }),
            false => Err(damaged(path)),
        }
    }

    /// The totals of the part.
    pub fn totals<T: DeserializeOwned>(&self) -> Result<T> {
        decode(&self.path, &self.totals)
    }

    /// The records of `kind`, in order, each read on demand.
    pub fn records<T: DeserializeOwned>(&self, kind: u8) -> impl Iterator<Item = Result<T>> {
        let bytes = self.bytes(move |entry| entry.kind == kind);
        bytes.map(|bytes| decode(&self.path, &bytes?))
    }

    /// Checks the bytes of all records.
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
                if crc32c(&bytes) == entry.checksum { Ok(bytes) } else { Err(self.damaged()) }
            })
        })
    }

    /// An error about this part; the message names the file.
    pub fn error(&self, what: impl std::fmt::Display) -> Error {
        error(&self.path, what)
    }

    /// The error for a part whose records are not those that its command writes.
    pub fn damaged(&self) -> Error {
        damaged(&self.path)
    }
}

fn error(path: &Path, what: impl std::fmt::Display) -> Error {
    Error::bad_input(format_args!("{}: {what}", path.display()))
}

fn damaged(path: &Path) -> Error {
    error(path, "part file is damaged or truncated")
}

fn decode<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok(_) => Err(damaged(path)),
        Err(error) => Err(damaged(path).caused_by(error)),
    }
}

/// Reads `length` bytes of the file `path` from offset `at` on.
fn read(path: &Path, at: u64, length: u64, max_memory: u64) -> Result<Vec<u8>> {
    if length > max_memory {
        let what = format_args!("{}: a record", path.display());
        return Err(memory::exceeds_limit(what, length, max_memory));
    }
    let mut bytes = memory::zeros(length as usize)?;
    let mut open = || {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut bytes)
    };
    open().map_err(|error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => damaged(path),
        _ => Error::io("read", path, error),
    })?;
    Ok(bytes)
}

/// Whether `sink` is a complete and undamaged part with this identity.
pub fn is_done(sink: &Sink, identity: &Identity, max_memory: u64) -> bool {
    let Sink::File(path) = sink else { return false };
    let part = PartReader::open(path, max_memory);
    part.is_ok_and(|part| part.identity == *identity && part.check().is_ok())
}

/// Opens all parts of a job and sorts them by shard. None may be missing, present twice, or of another job. If
/// `any_time`, the modification times of the inputs may differ.
pub fn open_all(sources: &Sources, any_time: bool, max_memory: u64) -> Result<Vec<PartReader>> {
    let mut parts: Vec<PartReader> = Vec::new();
    for source in sources.iter() {
        let path =
            source.path().ok_or_else(|| Error::usage("standard input cannot be a part file"));
        let mut part = PartReader::open(path?, max_memory)?;
        if let Some(first) = parts.first() {
            if let Some(difference) = first.identity.difference(&part.identity, any_time) {
                return Err(part.error(format_args!(
                    "not of the same job as {}: {difference}",
                    first.path.display()
                )));
            }
            // All parts have the inputs of the first part, and a copy for each would take much memory.
            part.identity.inputs = Vec::new();
        }
        parts.push(part);
    }
    let Some(first) = parts.first_mut() else { return Ok(parts) };
    let (count, inputs) =
        (first.identity.shard.count(), std::mem::take(&mut first.identity.inputs));
    parts.sort_by_key(|part| part.identity.shard.index());
    let twice = parts.windows(2).find(|pair| pair[0].identity.shard == pair[1].identity.shard);
    if let Some([one, other]) = twice {
        return Err(other.error(format_args!(
            "same shard ({}) as {}: leave one out",
            other.identity.shard,
            one.path.display()
        )));
    }
    parts[0].identity.inputs = inputs;
    let present: BTreeSet<usize> = parts.iter().map(|part| part.identity.shard.index()).collect();
    let missing = count - present.len();
    if missing == 0 {
        return Ok(parts);
    }
    let first = (0..count).filter(|index| !present.contains(index)).take(10);
    let first: Vec<String> = first.map(|index| index.to_string()).collect();
    Err(Error::bad_input(format_args!(
        "{missing} of {count} shards {} missing: {}{}",
        if missing == 1 { "is" } else { "are" },
        first.join(", "),
        match missing - first.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        }
    )))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{io::Source, util::error::Hint};

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
            (error.hint(), error.one_line().contains("more than the limit of 20 bytes")),
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
    fn the_list_of_missing_shards_is_short() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..2).map(|i| folder.path().join(i.to_string())).collect();
        let sources = paths.iter().map(|path| Source::from(&**path)).collect();
        for (i, shard) in ["3/4294967294", "0/4294967294"].iter().enumerate() {
            write(&paths[i], shard, "");
        }
        let error = open_all(&sources, false, 1 << 20).unwrap_err().one_line();
        let listed = "4294967292 of 4294967294 shards are missing: 1, 2, 4, 5, 6, 7, 8, 9, 10, 11 and 4294967282 more";
        assert_eq!(error, listed);
    }
}
