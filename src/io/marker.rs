//! Markers of done work. A marker is a hidden file next to an output; it holds the identity of the output and the state
//! of the output when it was complete. Work is done if both are unchanged.

use std::{
    ffi::OsString,
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    Sink, Source,
    identity::{FileState, Identity},
};
use crate::util::error::{Error, Result};

/// The marker of outputs that one job writes together.
#[derive(Debug)]
pub struct Marker {
    identity: Identity,
    outputs: Vec<PathBuf>,
    fingerprint: Fingerprint,
}

/// The value that shows, together with the size, whether an output is unchanged.
#[derive(Clone, Copy, Debug)]
enum Fingerprint {
    ModificationTime,
    /// The inode number, for an output to which another process may still write the same bytes again.
    FileNumber,
}

/// The content of a marker, stored as JSON.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    identity: Identity,
    outputs: Vec<FileState>,
}

impl Marker {
    /// The marker of `outputs` with the identity `identity`; `None` if one of them is standard output. Create it before
    /// the inputs are read: work on inputs that change after that does not count as done.
    pub fn new<'a>(
        identity: Identity,
        outputs: impl IntoIterator<Item = &'a Sink>,
    ) -> Option<Self> {
        let outputs: Vec<PathBuf> = outputs
            .into_iter()
            .map(|sink| sink.path().map(PathBuf::from))
            .collect::<Option<_>>()?;
        let fingerprint = Fingerprint::ModificationTime;
        (!outputs.is_empty()).then_some(Self { identity, outputs, fingerprint })
    }

    /// The marker of an output that several processes write.
    pub fn for_shared(identity: Identity, output: PathBuf) -> Self {
        Self { identity, outputs: vec![output], fingerprint: Fingerprint::FileNumber }
    }

    /// Whether the marker exists and the outputs are unchanged since it was written.
    pub fn is_done(&self) -> bool {
        let Ok(text) = fs::read(self.path()) else { return false };
        let Some(content) = self.content(&self.outputs) else { return false };
        serde_json::from_slice::<Content>(&text).is_ok_and(|found| found == content)
    }

    /// Writes the marker, once the outputs are complete.
    pub fn write(&self) -> Result<()> {
        self.write_for(&self.outputs)
    }

    /// As [`Marker::write`], from the states of `files`, which are to be renamed to the outputs.
    pub fn write_for(&self, files: &[PathBuf]) -> Result<()> {
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
        let state = |(output, file): (&PathBuf, &PathBuf)| {
            let state = FileState::new(&Source::from(&**file)).ok()?;
            let modified = match self.fingerprint {
                Fingerprint::ModificationTime => state.modified,
                Fingerprint::FileNumber => file_number(file)?,
            };
            Some(FileState { name: output.display().to_string(), modified, ..state })
        };
        let outputs = self.outputs.iter().zip(files).map(state).collect::<Option<_>>()?;
        Some(Content { identity: self.identity.clone(), outputs })
    }

    /// The path of the marker: that of the first output, with another name.
    fn path(&self) -> PathBuf {
        let output = &self.outputs[0];
        let mut name = OsString::from(".");
        name.push(output.file_name().unwrap_or_default());
        name.push(".gpuproc-done");
        output.with_file_name(name)
    }
}

/// A number that a file keeps when it is renamed or written: its inode, or on Windows its creation time.
fn file_number(path: &Path) -> Option<u64> {
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
            let source = Source::from(&*input);
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
        let mut other_build = marker("a");
        let version = &mut other_build.identity.version;
        // The build is a commit or a hash of the sources.
        assert!(version.split_once(' ').is_some_and(|(_, build)| build.len() >= 7), "{version}");
        version.pop();
        other_build.write().unwrap();
        assert!(other_build.is_done() && !marker("a").is_done());
        fs::write(marker("a").path(), "{").unwrap();
        assert!(!marker("a").is_done());
        fs::remove_file(&output).unwrap();
        assert!(!marker("a").is_done());
    }
}
