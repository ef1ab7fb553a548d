//! Part files: the results of one shard of a job, written by one process. `merge` joins the parts of a job. All
//! commands use one format:
//!
//! ```text
//! gpuproc part 2\n
//! blocks: kind (1 byte), length of the bytes (u64), their checksum (u32), checksum of the heads (u32), bytes
//! ```
//! The first block is the identity of the part, the last one holds its totals, both as JSON. Blocks of one kind are in
//! the order of the job. Numbers are little-endian. Checksums are CRC32C. That of the heads covers the head itself and
//! all heads before it, so that no block can be lost, moved, or taken from another part. A part file appears whole or
//! not at all, as all outputs do.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, Write},
    mem::{replace, take},
    path::{Path, PathBuf},
};

use crc32c::{crc32c, crc32c_append};
use serde::{Serialize, de::DeserializeOwned};

use super::{Output, Sink, Sources, identity::Identity};
use crate::{
    data::shard::Shard,
    util::{
        error::{Error, Hint, Result},
        memory,
    },
};

/// The first bytes of a part file.
const MAGIC: &[u8] = b"gpuproc part 2\n";
/// The kind of the last block.
const END: u8 = 0;
/// The kind of the first block.
const IDENTITY: u8 = 255;

/// A part being written.
#[derive(Debug)]
pub struct PartWriter {
    name: String,
    output: Output,
    /// The checksum of the heads so far.
    heads: u32,
}

impl PartWriter {
    /// Creates the part file `sink` and writes its identity.
    ///
    /// # Errors
    /// As [`Sink::create`].
    pub fn create(sink: &Sink, no_clobber: bool, identity: &Identity) -> Result<Self> {
        let output = sink.create(no_clobber)?;
        let mut writer = Self { name: sink.to_string(), output, heads: 0 };
        writer.write(MAGIC)?;
        writer.block(IDENTITY, &serde_json::to_vec(identity).expect("plain data"))?;
        Ok(writer)
    }

    /// Appends a block of `kind`, which must be neither 0 nor 255.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::util::error::Kind::Io).
    pub fn block(&mut self, kind: u8, bytes: &[u8]) -> Result<()> {
        let mut head = vec![kind];
        head.extend((bytes.len() as u64).to_le_bytes());
        head.extend(crc32c(bytes).to_le_bytes());
        self.heads = crc32c_append(self.heads, &head);
        head.extend(self.heads.to_le_bytes());
        self.write(&head)?;
        self.write(bytes)
    }

    /// Completes the part file with an end block that holds `end`.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::util::error::Kind::Io); then there is no part file.
    pub fn finish(mut self, end: &impl Serialize) -> Result<()> {
        self.block(END, &serde_json::to_vec(end).expect("plain data"))?;
        self.output.commit()
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.output.write_all(bytes).map_err(|error| Error::io("write", &self.name, error))
    }
}

/// The head of a block.
#[derive(Clone, Copy, Debug)]
struct Head {
    kind: u8,
    length: u64,
    checksum: u32,
}

/// A part being read. Its file is open only from [`PartReader::rewind`] to [`PartReader::close`] or the last block,
/// since a job may have more parts than a process may have open files.
#[derive(Debug)]
pub struct PartReader {
    path: PathBuf,
    name: String,
    file: Option<BufReader<File>>,
    length: u64,
    /// The checksum of the heads so far.
    heads: u32,
    /// Maximum number of bytes of a block in memory.
    max_memory: u64,
    /// The job, and which part of it this is.
    pub identity: Identity,
    end: Vec<u8>,
}

impl PartReader {
    /// Reads identity and end of the part file `path`, and closes it. A block may take `max_memory` bytes.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::util::error::Kind::Io) if the file cannot be read,
    /// [`Kind::BadInput`](crate::util::error::Kind::BadInput) if it is not a part file, damaged or cut off.
    pub fn open(path: &Path, max_memory: u64) -> Result<Self> {
        let length = path.metadata().map_err(|error| Error::io("read", path, error))?.len();
        let (path, name) = (path.to_owned(), path.display().to_string());
        let identity = Identity::new("", &(), [], Shard::WHOLE)?;
        let (file, heads, end) = (None, 0, Vec::new());
        let mut part = Self { path, name, file, length, heads, max_memory, identity, end };
        let json = part.start()?;
        part.identity =
            serde_json::from_slice(&json).map_err(|error| part.broken().caused_by(error))?;
        part.end = loop {
            match part.next_head()? {
                head if head.kind == END => break part.bytes(head)?,
                head => part.skip(head.length)?,
            }
        };
        part.close();
        Ok(part)
    }

    /// The value in the end block.
    ///
    /// # Errors
    /// [`Kind::BadInput`](crate::util::error::Kind::BadInput) if the value is not a `T`.
    pub fn end<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.end).map_err(|error| self.broken().caused_by(error))
    }

    /// Calls `consume` with the bytes of each block of `kind`, in order.
    ///
    /// # Errors
    /// Those of reading and of `consume`.
    pub fn each(&mut self, kind: u8, mut consume: impl FnMut(Vec<u8>) -> Result<()>) -> Result<()> {
        self.rewind()?;
        while let Some(bytes) = self.next_of(kind)? {
            consume(bytes)?;
        }
        Ok(())
    }

    /// Checks the bytes of all blocks.
    ///
    /// # Errors
    /// Those of reading.
    pub fn check(&mut self) -> Result<()> {
        self.rewind()?;
        loop {
            let head = self.next_head()?;
            self.bytes(head)?;
            if head.kind == END {
                self.close();
                return Ok(());
            }
        }
    }

    /// Closes the file.
    pub fn close(&mut self) {
        self.file = None;
    }

    /// Opens the file again, and moves to the first block after the identity.
    ///
    /// # Errors
    /// Those of reading.
    pub fn rewind(&mut self) -> Result<()> {
        self.start().map(drop)
    }

    /// Opens the file and reads the bytes of the identity.
    fn start(&mut self) -> Result<Vec<u8>> {
        let file = File::open(&self.path).map_err(|error| self.failed(error))?;
        let mut magic = Vec::new();
        let mut file = BufReader::new(file);
        let read = (&mut file).take(MAGIC.len() as u64).read_to_end(&mut magic);
        read.map_err(|error| self.failed(error))?;
        if magic != MAGIC {
            return Err(match magic.starts_with(&MAGIC[..MAGIC.len() - 2]) {
                true => self.wrong("this part was made by another version of gpuproc"),
                false => self.wrong("this is not a part file of gpuproc"),
            });
        }
        (self.file, self.heads) = (Some(file), 0);
        match self.next_head()? {
            head if head.kind == IDENTITY => self.bytes(head),
            _ => Err(self.broken()),
        }
    }

    /// The bytes of the next block of `kind`; `None` after the last one, when the file is closed.
    ///
    /// # Errors
    /// Those of reading.
    pub fn next_of(&mut self, kind: u8) -> Result<Option<Vec<u8>>> {
        loop {
            match self.next_head()? {
                head if head.kind == kind => return self.bytes(head).map(Some),
                head if head.kind == END => {
                    self.close();
                    return Ok(None);
                }
                head => self.skip(head.length)?,
            }
        }
    }

    /// An error about this part; the message names it.
    pub fn wrong(&self, what: impl std::fmt::Display) -> Error {
        Error::bad_input(format_args!("{}: {what}", self.name))
    }

    /// The error for a part whose blocks are not as its format demands.
    pub fn broken(&self) -> Error {
        self.wrong("the part is damaged or cut off")
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::io("read", &self.name, error)
    }

    fn next_head(&mut self) -> Result<Head> {
        let mut head = [0; 17];
        let at = match &mut self.file {
            Some(file) => file.read_exact(&mut head).and_then(|()| file.stream_position()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        };
        let at = match at {
            Ok(at) => at,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(self.broken()),
            Err(error) => return Err(self.failed(error)),
        };
        let number = |at: usize| u32::from_le_bytes(head[at..][..4].try_into().expect("4 bytes"));
        let length = u64::from(number(5)) << 32 | u64::from(number(1));
        self.heads = crc32c_append(self.heads, &head[..13]);
        let left = self.length.saturating_sub(at);
        let fits = if head[0] == END { length == left } else { length <= left };
        match self.heads == number(13) && fits {
            true => Ok(Head { kind: head[0], length, checksum: number(9) }),
            false => Err(self.broken()),
        }
    }

    fn skip(&mut self, length: u64) -> Result<()> {
        // `next_head` has checked that the block ends within the file, so the length fits an i64.
        let skipped = self.file.as_mut().map_or(Ok(()), |file| file.seek_relative(length as i64));
        skipped.map_err(|error| self.failed(error))
    }

    fn bytes(&mut self, Head { length, checksum, .. }: Head) -> Result<Vec<u8>> {
        if length > self.max_memory {
            let what = format_args!(
                "a block of {length} bytes is more than the {} allowed",
                self.max_memory
            );
            return Err(self.wrong(what).with_hint(Hint::Memory));
        }
        let mut bytes = memory::zeros(length as usize)?;
        let read = self.file.as_mut().map_or(Ok(()), |file| file.read_exact(&mut bytes));
        read.map_err(|error| self.failed(error))?;
        if crc32c(&bytes) == checksum { Ok(bytes) } else { Err(self.broken()) }
    }
}

/// Whether `sink` is a complete and undamaged part with this identity, so that it need not be made again.
pub fn is_done(sink: &Sink, identity: &Identity, max_memory: u64) -> bool {
    let Sink::File(path) = sink else { return false };
    let part = PartReader::open(path, max_memory);
    part.is_ok_and(|mut part| part.identity == *identity && part.check().is_ok())
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
                    first.name
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
            other.identity.shard, one.name
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
        part.block(1, b"one").unwrap();
        part.block(2, b"").unwrap();
        part.block(1, b"three").unwrap();
        part.finish(&[7]).unwrap();
    }

    fn open(path: &Path) -> Result<PartReader> {
        PartReader::open(path, 1 << 20)
    }

    #[test]
    fn blocks_come_back_by_kind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("part");
        write(&path, "0/1", "");
        let mut part = open(&path).unwrap();
        for (kind, expected) in [(1, vec!["one", "three"]), (2, vec![""]), (3, vec![])] {
            let mut found = Vec::new();
            part.rewind().unwrap();
            while let Some(bytes) = part.next_of(kind).unwrap() {
                found.push(String::from_utf8(bytes).unwrap());
            }
            assert_eq!(found, expected);
        }
        assert_eq!(part.end::<Vec<u8>>().unwrap(), [7]);
        assert!(part.end::<String>().is_err());
        let error = PartReader::open(&path, 50).unwrap_err();
        assert_eq!(
            (error.hint(), error.one_line().contains("the 50 allowed")),
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
            open(&path).and_then(|mut part| part.check()).is_err()
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
        // A part that lacks one of its blocks. Only checksums that cover all heads before them reveal this.
        let head = |bytes: &[u8]| {
            whole.windows(bytes.len()).position(|found| found == bytes).unwrap() - 17
        };
        let (one, three) = (head(b"one"), head(b"three"));
        assert!(is_refused(&[&whole[..one], &whole[three..]].concat()));
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
