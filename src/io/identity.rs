//! The identity of a result: program version, command, parameters, inputs and shard. Markers of done work and parts of
//! a job store it, so that results of another job are neither skipped as done nor merged.

use std::{
    fs::{self, File},
    hash::Hasher,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use crc32c::crc32c_append;
use fnv::FnvHasher;
use serde::{Deserialize, Serialize};

use super::{Source, volume};
use crate::{
    data::shard::Shard,
    util::error::{Error, Result},
};

/// Everything that a result depends on. Equal identities give equal bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The version of the program.
    pub version: String,
    /// The command.
    pub command: String,
    /// All parameters that the bytes of the result depend on, as JSON.
    pub parameters: String,
    /// The inputs, in order.
    pub inputs: Vec<InputId>,
    /// The part of the job that made the result.
    pub shard: Shard,
}

/// The state of an input file or folder at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputId {
    /// The name of the input, as given on the command line.
    pub name: String,
    /// Size in bytes of the file, or of all files of the folder.
    pub bytes: u64,
    /// Time of the last modification, in nanoseconds since 1970; for an input of several files, a hash of their names,
    /// sizes and times.
    pub modified: u64,
    /// Checksum of the content, in parts that are merged. For large inputs it covers evenly spaced pieces.
    pub content: Option<u32>,
}

/// Maximum number of input bytes of a job that checksums cover, so that computing them takes a fraction of a second.
const CHECKED: u64 = 64 << 20;
/// Size in bytes of each piece of a file that a checksum covers.
const PIECE: u64 = 4 << 10;

impl Identity {
    /// The identity of what `command` makes of `inputs` with `parameters`.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::util::error::Kind::Io) when an input is missing, [`Kind::Usage`](crate::util::error::Kind::Usage) for
    /// standard input, which has no state that could be compared.
    pub fn new<'a>(
        command: &str,
        parameters: &impl Serialize,
        inputs: impl IntoIterator<Item = &'a Source>,
        shard: Shard,
    ) -> Result<Self> {
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").into(),
            command: command.into(),
            parameters: serde_json::to_string(parameters).expect("plain data"),
            inputs: inputs.into_iter().map(InputId::of).collect::<Result<_>>()?,
            shard,
        })
    }

    /// As [`Identity::new`], with checksums of the inputs, for a part that will be merged.
    ///
    /// # Errors
    /// As [`Identity::new`], and when an input cannot be read.
    pub fn of_part<'a>(
        command: &str,
        parameters: &impl Serialize,
        inputs: impl IntoIterator<Item = &'a Source> + Clone,
        shard: Shard,
    ) -> Result<Self> {
        let mut identity = Self::new(command, parameters, inputs.clone(), shard)?;
        let most = CHECKED / identity.inputs.len().max(1) as u64;
        for (id, source) in identity.inputs.iter_mut().zip(inputs) {
            id.content = Some(id.checksum(source, most)?);
        }
        Ok(identity)
    }

    /// Why a part with this identity and a part with the identity `other` are of different jobs; `None` if they are of
    /// one job. If `any_time`, the checksums of the inputs are compared instead of their modification times.
    pub fn difference(&self, other: &Self, any_time: bool) -> Option<String> {
        let Self { version, command, parameters, inputs, shard } = other;
        if self.command != *command {
            return Some(format!("it is of `{command}`, not of `{}`", self.command));
        }
        if self.version != *version {
            return Some(format!("it was made by version {version}, not by {}", self.version));
        }
        if self.shard.count() != shard.count() {
            return Some(format!(
                "its job has {} shards, not {}",
                shard.count(),
                self.shard.count()
            ));
        }
        if self.inputs.len() != inputs.len() {
            return Some(format!("its job has {} inputs, not {}", inputs.len(), self.inputs.len()));
        }
        for (own, other) in self.inputs.iter().zip(inputs) {
            if own.name != other.name {
                return Some(format!("its job has the input {}, not {}", other.name, own.name));
            }
            if own.bytes != other.bytes {
                return Some(format!(
                    "{} had {} bytes then, not {}",
                    own.name, other.bytes, own.bytes
                ));
            }
            if any_time && own.content != other.content {
                return Some(format!("the content of {} differs", own.name));
            }
            if own.modified != other.modified && !any_time {
                return Some(format!("{} was modified between them", own.name));
            }
        }
        (self.parameters != *parameters).then(|| "its job has other parameters".to_owned())
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

impl InputId {
    fn of(source: &Source) -> Result<Self> {
        let Some(path) = source.path() else {
            return Err(Error::usage(
                "standard input has no name and no time, by which parts of a job and done work are known",
            ));
        };
        let state = |path: &Path| {
            let found = fs::metadata(path).map_err(|error| Error::io("read", path, error))?;
            let modified =
                found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            Ok((found.len(), modified.map_or(0, |time| time.as_nanos() as u64)))
        };
        let name = source.to_string();
        if let Some(modified) = volume::state_of_address(source)? {
            return Ok(Self { name, bytes: 0, modified, content: None });
        }
        let Some(files) = volume::files_of(source)? else {
            let (bytes, modified) = state(path)?;
            return Ok(Self { name, bytes, modified, content: None });
        };
        let (mut all, mut hasher) = (0, FnvHasher::default());
        for file in files {
            let (bytes, modified) = state(&file)?;
            all += bytes;
            hasher.write(file.as_os_str().as_encoded_bytes());
            hasher.write(&[bytes.to_le_bytes(), modified.to_le_bytes()].concat());
        }
        Ok(Self { name, bytes: all, modified: hasher.finish(), content: None })
    }

    /// The checksum of about `most` bytes of `source`, or of all if there are fewer. For a store at a web address, it
    /// is the hash of its metadata.
    fn checksum(&self, source: &Source, most: u64) -> Result<u32> {
        let files = match (volume::state_of_address(source)?, source.path()) {
            (Some(hash), _) => return Ok(hash as u32),
            (None, path) => {
                volume::files_of(source)?.unwrap_or(path.map(Into::into).into_iter().collect())
            }
        };
        let most = most / files.len().max(1) as u64;
        files.iter().try_fold(0, |sum, file| {
            checksum(file, most, sum).map_err(|error| Error::io("read", file, error))
        })
    }
}

/// Continues the CRC32C `sum` over evenly spaced pieces of `file`, about `most` bytes in total.
fn checksum(file: &Path, most: u64, mut sum: u32) -> io::Result<u32> {
    let length = fs::metadata(file)?.len();
    if length == 0 {
        // This may also be a pipe or a device, which can be read only once.
        return Ok(sum);
    }
    let (mut file, mut piece) = (File::open(file)?, Vec::new());
    let step = length.div_ceil((most / PIECE).max(1)).max(PIECE);
    for at in (0..length).step_by(step as usize) {
        piece.clear();
        file.seek(SeekFrom::Start(at))?;
        (&mut file).take(PIECE).read_to_end(&mut piece)?;
        sum = crc32c_append(sum, &piece);
    }
    Ok(sum)
}

/// The state of `path`; `None` if it cannot be read.
pub fn state(path: &Path) -> Option<InputId> {
    InputId::of(&Source::File(PathBuf::from(path))).ok()
}
