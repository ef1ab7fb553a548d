//! Identity of a result: program version, command, parameters, inputs and shard. Markers of done work and part files store
//! it, so that results of another job are neither skipped as done nor merged.

use std::{
    fs,
    hash::Hasher,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
    time::UNIX_EPOCH,
};

use crc32c::crc32c_append;
use fnv::FnvHasher;
use serde::{Deserialize, Serialize};

use super::{Source, parallel_file::ParallelFile, volume};
use crate::{
    data::shard::Shard,
    util::error::{Error, Result},
};

/// Everything that a result depends on. Equal identities give equal bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The version and the build of the program.
    pub version: String,
    /// The command.
    pub command: String,
    /// All parameters that the bytes of the result depend on, as JSON.
    pub parameters: String,
    /// The inputs, in order.
    pub inputs: Vec<FileState>,
    /// The shard of the job.
    pub shard: Shard,
}

/// State of a file or folder at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// The name as given on the command line.
    pub name: String,
    /// Size in bytes of the file, or of all files of the folder.
    pub bytes: u64,
    /// Time of the last modification, in nanoseconds since 1970; for several files, a hash of their names,
    /// sizes and times.
    pub modified: u64,
    /// Checksum of the content, in part files. For large inputs it covers evenly spaced pieces.
    pub content: Option<u32>,
}

/// The version of the program, and the commit that it is built from or a hash of its sources.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("GPUPROC_BUILD"));

/// Maximum number of input bytes of a job that checksums cover, so that computing them takes a fraction of a second.
const MAX_CHECKED: u64 = 64 << 20;
/// Size in bytes of each piece of a file that a checksum covers.
const PIECE: u64 = 4 << 10;

impl Identity {
    /// The identity of the result of `command` on `inputs` with `parameters`. Standard input has no state to compare
    /// and is refused.
    pub fn new<'a>(
        command: &str,
        parameters: &impl Serialize,
        inputs: impl IntoIterator<Item = &'a Source>,
        shard: Shard,
    ) -> Result<Self> {
        Ok(Self {
            version: VERSION.into(),
            command: command.into(),
            parameters: serde_json::to_string(parameters).expect("plain data"),
            inputs: inputs.into_iter().map(FileState::new).collect::<Result<_>>()?,
            shard,
        })
    }

    /// As [`Identity::new`], with checksums of the inputs, for a part file.
    pub fn for_part<'a>(
        command: &str,
        parameters: &impl Serialize,
        inputs: impl IntoIterator<Item = &'a Source> + Clone,
        shard: Shard,
    ) -> Result<Self> {
        let mut identity = Self::new(command, parameters, inputs.clone(), shard)?;
        let max_bytes = MAX_CHECKED / identity.inputs.len().max(1) as u64;
        for (id, source) in identity.inputs.iter_mut().zip(inputs) {
            id.content = Some(id.checksum(source, max_bytes)?);
        }
        Ok(identity)
    }

    /// The first difference that shows that a part with the identity `other` is of another job; `None` if it is of the
    /// same job. If `any_time`, the checksums of the inputs are compared instead of their modification times.
    pub fn difference(&self, other: &Self, any_time: bool) -> Option<String> {
        if self.command != other.command {
            return Some(format!("made by `{}`, expected `{}`", other.command, self.command));
        }
        if self.version != other.version {
            return Some(format!("made by version {}, expected {}", other.version, self.version));
        }
        let counts = |identity: &Self| [identity.shard.count(), identity.inputs.len()];
        for ((found, expected), noun) in
            counts(other).into_iter().zip(counts(self)).zip(["shards", "inputs"])
        {
            if found != expected {
                return Some(format!("its job has {found} {noun}, expected {expected}"));
            }
        }
        let mut inputs = self.inputs.iter().zip(&other.inputs);
        let difference = inputs.find_map(|(own, other)| own.difference(other, any_time));
        let parameters =
            || (self.parameters != other.parameters).then(|| "its parameters differ".to_owned());
        difference.or_else(parameters)
    }

    /// A hash of all fields but the shard, used in file names.
    pub fn hash(&self) -> u64 {
        let whole = Self { shard: Shard::WHOLE, ..self.clone() };
        let text = serde_json::to_vec(&(whole, self.shard.count())).expect("plain data");
        let mut hasher = FnvHasher::default();
        hasher.write(&text);
        hasher.finish()
    }
}

impl FileState {
    /// The state of `source` now. Standard input has no state to compare and is refused.
    pub fn new(source: &Source) -> Result<Self> {
        let Some(path) = source.path() else {
            return Err(Error::usage(
                "standard input has no name and no modification time, which shards and resumed jobs need: use a file",
            ));
        };
        let state = |path: &Path| {
            let found = fs::metadata(path).map_err(|error| Error::io("read", path, error))?;
            let modified =
                found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            Ok((found.len(), modified.map_or(0, |time| time.as_nanos() as u64)))
        };
        let name = source.to_string();
        if let Some(modified) = volume::address_state(source)? {
            return Ok(Self { name, bytes: 0, modified, content: None });
        }
        let Some(files) = volume::source_files(source)? else {
            let (bytes, modified) = state(path)?;
            return Ok(Self { name, bytes, modified, content: None });
        };
        let (mut all, mut hasher) = (0, FnvHasher::default());
        for file in files {
            let Source::File(file) = file else { continue };
            let (bytes, modified) = state(&file)?;
            all += bytes;
            hasher.write(file.as_os_str().as_encoded_bytes());
            hasher.write(&[bytes.to_le_bytes(), modified.to_le_bytes()].concat());
        }
        Ok(Self { name, bytes: all, modified: hasher.finish(), content: None })
    }

    fn difference(&self, other: &Self, any_time: bool) -> Option<String> {
        let Self { name, bytes, modified, content } = other;
        if self.name != *name {
            Some(format!("input is {name}, expected {}", self.name))
        } else if self.bytes != *bytes {
            Some(format!("{name} had {bytes} bytes, expected {}", self.bytes))
        } else if any_time {
            (self.content != *content).then(|| format!("the content of {name} differs"))
        } else {
            (self.modified != *modified).then(|| format!("{name} was modified in between"))
        }
    }

    /// Checksum of about `max_bytes` of `source`, or of all bytes if there are fewer. For a store at a web address, it is
    /// the hash of its metadata.
    fn checksum(&self, source: &Source, max_bytes: u64) -> Result<u32> {
        if let Some(hash) = volume::address_state(source)? {
            return Ok(hash as u32);
        }
        let files = volume::source_files(source)?.unwrap_or_else(|| vec![source.clone()]);
        let max_bytes = max_bytes / files.len().max(1) as u64;
        files.iter().try_fold(0, |sum, file| {
            // A pipe or a device can be read only once.
            let Some(file) = file.regular()? else { return Ok(sum) };
            checksum(file.reader(0), max_bytes, sum)
                .map_err(|error| Error::io("read", source.to_string(), error))
        })
    }
}

/// Continues the CRC32C `sum` over evenly spaced pieces of `file`, about `max_bytes` in total.
fn checksum(mut file: ParallelFile, max_bytes: u64, mut sum: u32) -> io::Result<u32> {
    let (length, mut piece) = (file.seek(SeekFrom::End(0))?, Vec::new());
    let step = length.div_ceil((max_bytes / PIECE).max(1)).max(PIECE);
    for at in (0..length).step_by(step as usize) {
        piece.clear();
        file.seek(SeekFrom::Start(at))?;
        (&mut file).take(PIECE).read_to_end(&mut piece)?;
        sum = crc32c_append(sum, &piece);
    }
    Ok(sum)
}
