//! Markers of done work: a hidden file beside an output that says what the output was made of, and what it was like when
//! it was whole. Work is done where both are still so.

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
use crate::error::{Error, Result};

/// The mark of outputs that are made together.
#[derive(Debug)]
pub struct Marker {
    identity: Identity,
    outputs: Vec<PathBuf>,
    /// What an output is known by, beside its size.
    known_by: KnownBy,
}

#[derive(Clone, Copy, Debug)]
enum KnownBy {
    /// When it was last modified.
    Time,
    /// Its number in the file system: another process may still write what is in it already.
    Number,
}

/// What a marker holds.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    identity: Identity,
    outputs: Vec<InputId>,
}

impl Marker {
    /// That of `outputs`, made as `identity` says; nothing where one of them is no file. To be made before the inputs are
    /// read: of those that change meanwhile, nothing is done.
    pub fn new<'a>(
        identity: Identity,
        outputs: impl IntoIterator<Item = &'a Sink>,
    ) -> Option<Self> {
        let file = |sink: &Sink| match sink {
            Sink::File(path) => Some(path.clone()),
            Sink::Stdout => None,
        };
        let outputs: Vec<PathBuf> = outputs.into_iter().map(file).collect::<Option<_>>()?;
        (!outputs.is_empty()).then_some(Self { identity, outputs, known_by: KnownBy::Time })
    }

    /// That of an output that several processes fill.
    pub fn of_shared(identity: Identity, output: PathBuf) -> Self {
        Self { identity, outputs: vec![output], known_by: KnownBy::Number }
    }

    /// Whether the outputs are there, as they were when they were made.
    pub fn is_done(&self) -> bool {
        let Ok(text) = fs::read(self.path()) else { return false };
        let Some(content) = self.content(&self.outputs) else { return false };
        serde_json::from_slice::<Content>(&text).is_ok_and(|found| found == content)
    }

    /// Notes that the outputs are whole.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::error::Kind::Io) when one is gone, or the marker cannot be written.
    pub fn write(&self) -> Result<()> {
        self.write_of(&self.outputs)
    }

    /// The same of files that will be renamed to be the outputs.
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

    /// What the marker holds when the outputs are like `files`.
    fn content(&self, files: &[PathBuf]) -> Option<Content> {
        let like = |(output, file): (&PathBuf, &PathBuf)| {
            let found = state(file)?;
            let modified = match self.known_by {
                KnownBy::Time => found.modified,
                KnownBy::Number => number(file)?,
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

/// What a file keeps when it is renamed or written.
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

/// Where the marker of `output` is.
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
            let identity = Identity::new("copy", parameters.into(), [&source], Shard::WHOLE);
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
