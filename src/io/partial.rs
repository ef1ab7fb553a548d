//! Part files: the results of one shard of a job, written by one process. `merge` joins the parts of a job. All
//! commands use one format:
//!
//! ```text
//! gpuproc part 1\n
//! {"version": ..., "command": ..., "inputs": ..., "shard": [3, 64], ...}\n       the identity of the part
//! blocks: kind (1 byte), length in bytes (u64, little-endian), bytes
//! end:    a block of kind 0, whose bytes are JSON with the totals of the part
//! ```
//! Blocks of one kind are in the order of the job. A part file appears whole or not at all, as all outputs do.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use serde::{Serialize, de::DeserializeOwned};

use super::{Output, Sink, identity::Identity};
use crate::error::{Error, Result};

/// The first bytes of a part file.
const MAGIC: &[u8] = b"gpuproc part 1\n";
/// The kind of the last block.
const END: u8 = 0;
/// Maximal length of a header in bytes.
const MOST_HEADER: u64 = 1 << 30;

/// A part being written.
#[derive(Debug)]
pub struct PartWriter {
    name: String,
    output: Output,
}

impl PartWriter {
    /// Creates the part file `sink` and writes its header.
    ///
    /// # Errors
    /// As [`Sink::create`].
    pub fn create(sink: &Sink, no_clobber: bool, identity: &Identity) -> Result<Self> {
        let mut writer = Self { name: sink.to_string(), output: sink.create(no_clobber)? };
        let mut header = serde_json::to_vec(identity).expect("plain data");
        header.push(b'\n');
        writer.write(&[MAGIC, &header].concat())?;
        Ok(writer)
    }

    /// Appends a block of `kind`, which must not be 0.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::error::Kind::Io).
    pub fn block(&mut self, kind: u8, bytes: &[u8]) -> Result<()> {
        self.write(&[kind])?;
        self.write(&(bytes.len() as u64).to_le_bytes())?;
        self.write(bytes)
    }

    /// Completes the part file with an end block that holds `end`.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::error::Kind::Io); then there is no part file.
    pub fn finish(mut self, end: &impl Serialize) -> Result<()> {
        self.block(END, &serde_json::to_vec(end).expect("plain data"))?;
        self.output.commit()
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.output.write_all(bytes).map_err(|error| Error::io("write", &self.name, error))
    }
}

/// A part being read. Its file is open only from [`PartReader::rewind`] to [`PartReader::close`] or the last block,
/// since a job may have more parts than a process may have open files.
#[derive(Debug)]
pub struct PartReader {
    path: PathBuf,
    name: String,
    file: Option<BufReader<File>>,
    length: u64,
    /// Offset of the first block in bytes.
    blocks: u64,
    /// The job, and which part of it this is.
    pub identity: Identity,
    end: Vec<u8>,
}

impl PartReader {
    /// Reads header and end of the part file `path`, and closes it.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::error::Kind::Io) if the file cannot be read,
    /// [`Kind::BadInput`](crate::error::Kind::BadInput) if it is no part file, broken or cut off.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |error: io::Error| Error::io("read", path, error);
        let name = path.display().to_string();
        let wrong = |what: &str| Error::bad_input(format_args!("{name}: {what}"));
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let mut file = BufReader::new(file);
        let mut magic = vec![0; MAGIC.len()];
        match file.read_exact(&mut magic) {
            Ok(()) if magic == MAGIC => {}
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                return Err(failed(error));
            }
            _ => return Err(wrong("this is no part of a job")),
        }
        let mut header = Vec::new();
        let limited = &mut (&mut file).take(MOST_HEADER);
        io::BufRead::read_until(limited, b'\n', &mut header).map_err(failed)?;
        let identity = serde_json::from_slice(&header)
            .map_err(|error| wrong("its header is broken").caused_by(error))?;
        let blocks = (MAGIC.len() + header.len()) as u64;
        let (path, file) = (path.to_owned(), Some(file));
        let mut part = Self { path, name, file, length, blocks, identity, end: Vec::new() };
        part.end = part.find_end()?;
        part.close();
        Ok(part)
    }

    fn find_end(&mut self) -> Result<Vec<u8>> {
        loop {
            match self.next_block()? {
                Some((END, length)) => return self.bytes(length),
                Some((_, length)) => self.skip(length)?,
                None => return Err(self.broken()),
            }
        }
    }

    /// The value in the end block.
    ///
    /// # Errors
    /// [`Kind::BadInput`](crate::error::Kind::BadInput) if the value is not a `T`.
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

    pub fn close(&mut self) {
        self.file = None;
    }

    /// Opens the file again, at the first block.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::error::Kind::Io).
    pub fn rewind(&mut self) -> Result<()> {
        let opened = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.blocks))?;
            Ok(BufReader::new(file))
        });
        self.file = Some(opened.map_err(|error| self.failed(error))?);
        Ok(())
    }

    /// The bytes of the next block of `kind`; `None` after the last one, when the file is closed.
    ///
    /// # Errors
    /// Those of reading.
    pub fn next_of(&mut self, kind: u8) -> Result<Option<Vec<u8>>> {
        loop {
            match self.next_block()? {
                Some((found, length)) if found == kind => return self.bytes(length).map(Some),
                Some((END, _)) | None => {
                    self.close();
                    return Ok(None);
                }
                Some((_, length)) => self.skip(length)?,
            }
        }
    }

    /// An error about this part; the message names it.
    pub fn wrong(&self, what: impl std::fmt::Display) -> Error {
        Error::bad_input(format_args!("{}: {what}", self.name))
    }

    /// The error for a part whose blocks are not as its format demands.
    pub fn broken(&self) -> Error {
        self.wrong("the part is broken or cut off")
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::io("read", &self.name, error)
    }

    fn next_block(&mut self) -> Result<Option<(u8, u64)>> {
        let Some(file) = &mut self.file else { return Ok(None) };
        let mut head = [0; 9];
        let at = file.read_exact(&mut head).and_then(|()| file.stream_position());
        let at = match at {
            Ok(at) => at,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(self.failed(error)),
        };
        let length = u64::from_le_bytes(head[1..].try_into().expect("eight bytes"));
        match length <= self.length.saturating_sub(at) {
            true => Ok(Some((head[0], length))),
            false => Err(self.broken()),
        }
    }

    fn skip(&mut self, length: u64) -> Result<()> {
        // `next_block` has checked that the block ends within the file, so the length fits an i64.
        let skipped = self.file.as_mut().map_or(Ok(()), |file| file.seek_relative(length as i64));
        skipped.map_err(|error| self.failed(error))
    }

    fn bytes(&mut self, length: u64) -> Result<Vec<u8>> {
        let mut bytes = crate::memory::zeros(length as usize)?;
        let read = self.file.as_mut().map_or(Ok(()), |file| file.read_exact(&mut bytes));
        read.map_err(|error| self.failed(error))?;
        Ok(bytes)
    }
}

/// Whether `sink` is a whole part with this identity, which need not be made again.
pub fn is_done(sink: &Sink, identity: &Identity) -> bool {
    let Sink::File(path) = sink else { return false };
    PartReader::open(path).is_ok_and(|part| part.identity == *identity)
}

/// Opens all parts of a job and sorts them by shard.
///
/// # Errors
/// [`Kind::BadInput`](crate::error::Kind::BadInput) if a part is missing, present twice, or of another job. Differences
/// of the inputs' modification times are ignored if `any_time`.
pub fn open_all(paths: &[PathBuf], any_time: bool) -> Result<Vec<PartReader>> {
    let mut parts = paths.iter().map(|path| PartReader::open(path)).collect::<Result<Vec<_>>>()?;
    let Some(first) = parts.first() else { return Ok(parts) };
    for part in &parts[1..] {
        if let Some(difference) = first.identity.difference(&part.identity, any_time) {
            return Err(part.wrong(format_args!(
                "this part is of another job than {}: {difference}",
                first.name
            )));
        }
    }
    let count = first.identity.shard.count();
    parts.sort_by_key(|part| part.identity.shard.index());
    let twice = parts.windows(2).find(|pair| pair[0].identity.shard == pair[1].identity.shard);
    if let Some([one, other]) = twice {
        return Err(other.wrong(format_args!(
            "this is shard {}, and so is {}: leave one out",
            other.identity.shard, one.name
        )));
    }
    if parts.len() < count {
        let there = |index: &usize| parts.iter().any(|part| part.identity.shard.index() == *index);
        let missing: Vec<String> =
            (0..count).filter(|index| !there(index)).map(|index| index.to_string()).collect();
        let more = missing.len().saturating_sub(10);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        return Err(Error::bad_input(format_args!(
            "of {count} shards {} {} missing: {}{more}",
            missing.len(),
            if missing.len() == 1 { "is" } else { "are" },
            missing[..missing.len().min(10)].join(", ")
        )));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(path: &Path, shard: &str, parameters: &str) {
        let identity = Identity {
            version: "1".into(),
            command: "count".into(),
            parameters: parameters.into(),
            inputs: Vec::new(),
            shard: shard.parse().unwrap(),
        };
        let mut part = PartWriter::create(&Sink::File(path.into()), false, &identity).unwrap();
        part.block(1, b"one").unwrap();
        part.block(2, b"").unwrap();
        part.block(1, b"three").unwrap();
        part.finish(&[7]).unwrap();
    }

    #[test]
    fn blocks_come_back_by_kind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("part");
        write(&path, "0/1", "");
        let mut part = PartReader::open(&path).unwrap();
        for (kind, expected) in [(1, vec!["one", "three"]), (2, vec![""]), (3, vec![])] {
            let mut found = Vec::new();
            let push = |bytes| {
                found.push(String::from_utf8(bytes).unwrap());
                Ok(())
            };
            part.each(kind, push).unwrap();
            assert_eq!(found, expected);
        }
        assert_eq!(part.end::<Vec<u8>>().unwrap(), [7]);
        assert!(part.end::<String>().is_err());
        // A part that is cut off anywhere is refused.
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(PartReader::open(&path).is_err(), "{length}");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x80;
            fs::write(&path, damaged).unwrap();
            let _ = PartReader::open(&path).map(|mut part| part.each(1, |_| Ok(())));
        }
    }

    #[test]
    fn missing_doubled_and_foreign_parts_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..3).map(|i| folder.path().join(i.to_string())).collect();
        for (i, path) in paths.iter().enumerate() {
            write(path, &format!("{}/3", 2 - i), "");
        }
        let order = |parts: Vec<PartReader>| -> Vec<usize> {
            parts.iter().map(|part| part.identity.shard.index()).collect()
        };
        assert_eq!(order(open_all(&paths, false).unwrap()), [0, 1, 2]);
        let error = |paths: &[PathBuf]| open_all(paths, false).unwrap_err().one_line();
        assert!(error(&paths[..2]).ends_with("of 3 shards 1 is missing: 0"));
        let twice = [&paths[..], &paths[..1]].concat();
        assert!(error(&twice).contains("this is shard 2/3, and so is"), "{}", error(&twice));
        write(&paths[1], "1/3", "other");
        assert!(error(&paths).contains("of another job"), "{}", error(&paths));
        write(&paths[1], "1/4", "");
        assert!(error(&paths).contains("has 4 shards, not 3"), "{}", error(&paths));
    }
}
