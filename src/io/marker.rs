//! Markers of done work. A marker is a hidden file beside an output; it holds the identity of the output and the state
//! of the output when it was complete. Work is done if both are unchanged.

use std::{
    ffi::OsString,
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    Sink,
    identity::{Identity, InputId, state},
};
use crate::util::error::{Error, Result};

/// The marker of outputs that one job writes together.
#[derive(Debug)]
pub struct Marker {
    identity: Identity,
    outputs: Vec<PathBuf>,
    /// What identifies an output, beside its size.
    known_by: Fingerprint,
}

#[derive(Clone, Copy, Debug)]
enum Fingerprint {
    /// Its modification time.
    Time,
    /// Its inode number. The modification time is of no use, since another process may still write the same bytes
    /// again.
    Number,
}

/// The content of a marker, stored as JSON.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    identity: Identity,
    outputs: Vec<InputId>,
}

impl Marker {
    /// The marker of `outputs`, which are made as `identity` says; `None` if one of them is standard output. Create it
    /// before the inputs are read: work on inputs that change after that does not count as done.
    pub fn new<'a>(
        identity: Identity,
        outputs: impl IntoIterator<Item = &'a Sink>,
    ) -> Option<Self> {
        let file = |sink: &Sink| match sink {
            Sink::File(path) => Some(path.clone()),
            Sink::Stdout => None,
        };
        let outputs: Vec<PathBuf> = outputs.into_iter().map(file).collect::<Option<_>>()?;
        (!outputs.is_empty()).then_some(Self { identity, outputs, known_by: Fingerprint::Time })
    }

    /// The marker of an output that several processes fill.
    pub fn of_shared(identity: Identity, output: PathBuf) -> Self {
        Self { identity, outputs: vec![output], known_by: Fingerprint::Number }
    }

    /// Whether the marker exists and the outputs are as they were when it was written.
    pub fn is_done(&self) -> bool {
        let Ok(text) = fs::read(self.path()) else { return false };
        let Some(content) = self.content(&self.outputs) else { return false };
        serde_json::from_slice::<Content>(&text).is_ok_and(|found| found == content)
    }

    /// Writes the marker, once the outputs are complete.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::util::error::Kind::Io) if an output is gone, or the marker cannot be written.
    pub fn write(&self) -> Result<()> {
        self.write_of(&self.outputs)
    }

    /// As [`Marker::write`], from the states of `files`, which are to be renamed to the outputs.
    ///
    /// # Errors
    /// As [`Marker::write`].
    pub fn write_of(&self, files: &[PathBuf]) -> Result<()> {
        let Some(content) = self.content(files) else {
            let gone = io::Error::from(io::ErrorKind::NotFound);
            return Err(Error::io("read again", &self.outputs[0], gone));
        };
        let mut text = serde_json::to_vec(&content).expect("plain data");
        text.push(b'\n');
        Sink::File(self.path()).write_with(false, |output| output.write_all(&text))
    }

    /// The content of the marker for outputs in the states of `files`; `None` if one of the files cannot be read.
    fn content(&self, files: &[PathBuf]) -> Option<Content> {
        let like = |(output, file): (&PathBuf, &PathBuf)| {
            let found = state(file)?;
            let modified = match self.known_by {
                Fingerprint::Time => found.modified,
                Fingerprint::Number => number(file)?,
            };
            Some(InputId { name: output.display().to_string(), modified, ..found })
        };
        let outputs = self.outputs.iter().zip(files).map(like).collect::<Option<_>>()?;
        Some(Content { identity: self.identity.clone(), outputs })
    }

    fn path(&self) -> PathBuf {
        path(&self.outputs[0])
    }
}

/// A number that a file keeps when it is renamed or written: its inode, or on Windows its creation time.
fn number(path: &Path) -> Option<u64> {
    let found = fs::metadata(path).ok()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Some(found.ino())
    }
    #[cfg(not(unix))]
    {
        let created = found.created().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        Some(created.as_nanos() as u64)
    }
}

/// The path of the marker of `output`.
pub fn path(output: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(output.file_name().unwrap_or_default());
    name.push(".gpuproc-done");
    output.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{data::shard::Shard, io::Source};

    #[test]
    fn whatever_changes_is_not_done() {
        let folder = tempfile::tempdir().unwrap();
        let (input, output) = (folder.path().join("in"), folder.path().join("out"));
        fs::write(&input, "one").unwrap();
        let marker = |parameters: &str| {
            let source = Source::File(input.clone());
            let identity = Identity::new("copy", &parameters, [&source], Shard::WHOLE);
            Marker::new(identity.unwrap(), [&Sink::File(output.clone())]).unwrap()
        };
        assert!(!marker("a").is_done() && marker("a").write().is_err());
        fs::write(&output, "one").unwrap();
        assert!(!marker("a").is_done());
        marker("a").write().unwrap();
        assert!(marker("a").is_done() && !marker("b").is_done());
        fs::write(&input, "three").unwrap();
        assert!(!marker("a").is_done());
        marker("a").write().unwrap();
        fs::write(&output, "three").unwrap();
        assert!(!marker("a").is_done());
        marker("a").write().unwrap();
        fs::write(path(&output), "{").unwrap();
        assert!(!marker("a").is_done());
        fs::remove_file(&output).unwrap();
        assert!(!marker("a").is_done());
    }
}
