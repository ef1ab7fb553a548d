//! Outputs that several processes write, each the bytes or chunks of its shard. The output gets its final name when it is
//! complete, so no process waits for others, and nothing has to be merged.
//!
//! ```text
//! out.raw.shards-1f3c9a5b77e02d64/data     the output: a file in its full length, or a folder of chunks
//!                                 3        the mark of shard 3, created once the shard is in `data`
//! ```
//! The number is a hash of the job. A mark holds what its shard found out about the result. The process that finds the
//! marks of all shards decides from them whether `data` is good, renames it and removes the folder. Two processes may
//! do the same shard, even at the same time: both write the same bytes at the same offsets. The later one may write to
//! a file that has its final name already; the bytes do not change.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use serde_json::Value;

use super::{
    Sink,
    identity::Identity,
    marker::Marker,
    parallel_file::write_all_at,
    unfinished::{
        UnfinishedFolder, already_exists, clean_up, link_target, remove_folder, rename_new, swap,
        temporary_name,
    },
};
use crate::{
    data::shard::Shard,
    util::error::{Error, Result},
};

/// A shared output file, opened for one shard.
#[derive(Debug)]
pub struct SharedFile {
    output: SharedOutput,
    file: File,
}

impl SharedFile {
    /// Opens the output `sink` of `length` bytes for the shard of `identity`; `None` if that shard is done. Refuses an
    /// existing file that is not of this job if `no_clobber` is set.
    pub fn open(
        sink: &Sink,
        identity: &Identity,
        length: u64,
        no_clobber: bool,
        complete: CompleteFn<'_>,
    ) -> Result<Option<Self>> {
        let file = |data: &Path| {
            let file = File::create_new(data).and_then(|file| file.set_len(length));
            file.map_err(|error| Error::io("write", data, error))
        };
        let Some(output) = SharedOutput::open(sink, identity, no_clobber, &file, complete)? else {
            return Ok(None);
        };
        let file = OpenOptions::new().read(true).write(true).open(output.data());
        let file = file.map_err(|error| Error::io("write", &output.path, error))?;
        Ok(Some(Self { output, file }))
    }

    /// Writes `bytes` at the offset `at`.
    pub fn write_at(&self, bytes: &[u8], at: u64) -> Result<()> {
        write_all_at(&self.file, bytes, at)
            .map_err(|error| Error::io("write", &self.output.path, error))
    }

    /// As [`SharedOutput::finish`]. The bytes are synced to the disk before the mark is created, so that the order also holds
    /// on a file system that several machines share.
    pub fn finish(self, finding: &Value, complete: CompleteFn<'_>) -> Result<()> {
        let Self { output, file } = self;
        file.sync_data().map_err(|error| Error::io("write", &output.path, error))?;
        drop(file);
        output.finish(finding, complete)
    }
}

/// A shared output, which is a file or a folder, opened for one shard.
#[derive(Debug)]
pub struct SharedOutput {
    path: PathBuf,
    /// The folder of `data` and the marks.
    folder: PathBuf,
    shard: Shard,
    /// The marker of the complete output.
    marker: Marker,
    no_clobber: bool,
}

/// Function that completes the data at a path, given the findings of all shards. If it fails, the output gets no name.
pub type CompleteFn<'a> = &'a dyn Fn(&Path, &[Value]) -> Result<()>;

impl SharedOutput {
    /// Opens the output `sink` for the shard of `identity`; `None` if that shard is done. The first process calls
    /// `create` to make the data; the process that finds all shards done calls `complete`, see
    /// [`SharedOutput::finish`].
    pub fn open(
        sink: &Sink,
        identity: &Identity,
        no_clobber: bool,
        create: &dyn Fn(&Path) -> Result<()>,
        complete: CompleteFn<'_>,
    ) -> Result<Option<Self>> {
        let Sink::File(path) = sink else {
            return Err(Error::usage("shards cannot share standard output: name a file"));
        };
        // For a symbolic link, the output that it points to is replaced or created, not the link.
        let path = link_target(path);
        let shard = identity.shard;
        let whole = Identity { shard: Shard::WHOLE, ..identity.clone() };
        let marker = Marker::for_shared(whole, path.clone());
        let mut name = path.clone().into_os_string();
        name.push(format!(".shards-{:016x}", identity.hash()));
        let output = Self { path, folder: name.into(), shard, marker, no_clobber };
        // Waits as long as another process may take from renaming the output to removing the folder.
        for attempt in 0..2 * ATTEMPTS {
            if output.marker.is_done() {
                output.clean_up();
                return Ok(None);
            }
            if output.data().exists() {
                return match output.mark().exists() {
                    // The process that did this shard may have ended before it gave the output its name.
                    true => output.complete(complete).map(|()| None),
                    false => Ok(Some(output)),
                };
            }
            if output.folder.exists() {
                thread::sleep(PAUSE);
                if attempt == ATTEMPTS {
                    output.restore_claimed();
                }
            } else if no_clobber && output.path.exists() {
                return Err(Error::io("write", &output.path, already_exists()));
            } else {
                output.create(create)?;
            }
        }
        let message = format!("{} is incomplete: remove it", output.folder.display());
        Err(Error::io("write", &output.path, io::Error::other(message)))
    }

    /// Creates the folder atomically, with data made by `create`; does nothing if another process has created it.
    fn create(&self, create: &dyn Fn(&Path) -> Result<()>) -> Result<()> {
        let failed = |error: io::Error| Error::io("write", &self.folder, error);
        let new = UnfinishedFolder::create(&self.folder).map_err(failed)?;
        let created = create(&new.path().join("data"));
        match created.and_then(|()| new.rename(&self.folder, true).map_err(failed)) {
            Err(_) if self.folder.exists() => Ok(()),
            created => created,
        }
    }

    fn mark(&self) -> PathBuf {
        self.folder.join(self.shard.index().to_string())
    }

    /// The path of the file or folder that the processes write.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Marks the shard as done; `finding` is what it found out about the result. If it was the last shard, `complete` finishes
    /// the data, possibly in several processes at the same time, and the output gets its final name.
    pub fn finish(self, finding: &Value, complete: CompleteFn<'_>) -> Result<()> {
        let mark = self.mark();
        // A mark is complete when it gets its name.
        let unnamed = self.folder.join(temporary_name());
        let created = fs::write(&unnamed, finding.to_string());
        match created.and_then(|()| fs::rename(&unnamed, &mark)) {
            Ok(()) => self.complete(complete),
            // Another process did the same shard, which was the last one, and removed the folder.
            Err(_) if self.marker.is_done() => Ok(()),
            Err(error) => Err(Error::io("write", mark, error)),
        }
    }

    /// Gives the output its final name if all shards are done.
    fn complete(&self, complete: CompleteFn<'_>) -> Result<()> {
        let Self { path, folder, shard, marker, .. } = self;
        // Without a folder, another process has completed the output.
        let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
        let is_mark = |entry: &fs::DirEntry| {
            entry.file_name().to_str().and_then(|name| name.parse::<usize>().ok()).is_some()
        };
        let marks = entries.flatten().filter(is_mark).map(|mark| fs::read(mark.path()));
        // Another process that completes the output removes them.
        let Ok(marks) = marks.collect::<io::Result<Vec<_>>>() else { return Ok(()) };
        if marks.len() < shard.count() {
            return Ok(());
        }
        let findings = marks.iter().map(|mark| serde_json::from_slice(mark).unwrap_or_default());
        let data = self.data();
        let completed = complete(&data, &findings.collect::<Vec<_>>());
        // The marker is written before the rename: a folder with marks but without `data` belongs to a done output.
        let completed = completed.and_then(|()| marker.write_for(std::slice::from_ref(&data)));
        let named = completed
            .and_then(|()| self.rename(&data).map_err(|error| Error::io("write", path, error)));
        match named {
            Ok(()) => {
                self.clean_up();
                Ok(())
            }
            // Another process is completing the output, or has completed it.
            Err(_) if self.is_complete() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Renames the data to the output. Two processes must not both replace an output folder: the second one would
    /// replace the new folder by the old one. So a process first claims the new folder by renaming it.
    fn rename(&self, data: &Path) -> io::Result<()> {
        if !data.is_dir() {
            return if self.no_clobber {
                rename_new(data, &self.path)
            } else {
                fs::rename(data, &self.path)
            };
        }
        let claim = self.folder.join(format!("{CLAIM}{}", temporary_name()));
        fs::rename(data, &claim)?;
        let renamed = if self.no_clobber {
            rename_new(&claim, &self.path)
        } else if self.path.exists() {
            // The replaced folder is removed with `folder`.
            swap(&claim, &self.path)
        } else {
            fs::rename(&claim, &self.path)
        };
        if renamed.is_err() {
            // Another try can claim the data again.
            let _ = fs::rename(&claim, data);
        }
        renamed
    }

    /// Removes the folder of data and marks, and the remains that killed processes left of such folders.
    fn clean_up(&self) {
        let _ = remove_folder(&self.folder);
        clean_up(&self.folder);
    }

    /// Waits while another process has claimed the data. Returns whether that process has completed the output.
    pub fn is_complete(&self) -> bool {
        for _ in 0..ATTEMPTS {
            if self.marker.is_done() {
                return true;
            }
            if self.data().exists() {
                return false;
            }
            thread::sleep(PAUSE);
        }
        false
    }

    /// Restores data whose claiming process ended before it renamed them to the output.
    fn restore_claimed(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let claims = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(CLAIM));
        for claim in claims {
            if !self.marker.is_done() {
                let _ = fs::rename(claim.path(), self.data());
            }
        }
    }
}

/// Prefix of the names of claimed data.
const CLAIM: &str = "claim";
/// Maximum number of times that a process checks whether another one has completed the output, and the time between.
const ATTEMPTS: usize = 100;
const PAUSE: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use super::*;
    use crate::io::unfinished::swap_in_steps;

    fn identity(shard: &str, parameters: &str) -> Identity {
        Identity::new("fill", &parameters, [], shard.parse().unwrap()).unwrap()
    }

    fn create(data: &Path) -> Result<()> {
        fs::create_dir(data).map_err(|error| Error::io("write", data, error))
    }

    fn accept(_: &Path, _: &[Value]) -> Result<()> {
        Ok(())
    }

    fn open(path: &Path, shard: &str, parameters: &str) -> Option<SharedFile> {
        let sink = Sink::File(path.into());
        SharedFile::open(&sink, &identity(shard, parameters), 6, false, &accept).unwrap()
    }

    #[test]
    fn the_output_has_its_name_when_all_shards_are_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let count = || fs::read_dir(&folder).unwrap().count();
        for parameters in ["a", "b"] {
            for (shard, text) in [("2/3", "e"), ("0/3", "a"), ("2/3", "e"), ("1/3", "c")] {
                let before = fs::read(&path).ok();
                let Some(output) = open(&path, shard, parameters) else {
                    assert_eq!(shard, "2/3");
                    continue;
                };
                let late = open(&path, shard, parameters).unwrap();
                let at = 2 * u64::from(text.as_bytes()[0] - b'a') / 2;
                output.write_at(text.repeat(2).as_bytes(), at).unwrap();
                assert_eq!(fs::read(&path).ok(), before);
                output.finish(&Value::Null, &accept).unwrap();
                // Another process that started the same shard at the same time.
                late.write_at(text.repeat(2).as_bytes(), at).unwrap();
                late.finish(&Value::Null, &accept).unwrap();
            }
            assert_eq!(fs::read(&path).unwrap(), b"aaccee");
            assert_eq!(count(), 2, "the output and its marker");
            assert!(open(&path, "1/3", parameters).is_none());
            // The same job in another number of shards is done, too.
            assert!(open(&path, "1/5", parameters).is_none());
            assert_eq!(count(), 2);
        }
    }

    /// Output folders: first completed by two processes, one of them late; then claimed by a process that ends.
    #[test]
    fn a_folder_replaces_another_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let sink = Sink::File(path.clone());
        let open = |shard: &str| {
            SharedOutput::open(&sink, &identity(shard, "folder"), false, &create, &accept)
        };
        let fill = |output: &SharedOutput| fs::write(output.data().join("new"), "new").unwrap();
        let is_new = || path.join("new").exists() && !path.join("old").exists();
        for claims in [false, true] {
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("old"), "old").unwrap();
            let (first, late) = (open("0/1").unwrap().unwrap(), open("0/1").unwrap().unwrap());
            fill(&first);
            if claims {
                File::create(first.mark()).unwrap();
                fs::rename(first.data(), first.folder.join("claim-of-one-that-ended")).unwrap();
                assert!(open("0/1").unwrap().is_none());
            } else {
                first.finish(&Value::Null, &accept).unwrap();
                late.finish(&Value::Null, &accept).unwrap();
            }
            assert!(is_new());
            assert!(open("0/1").unwrap().is_none() && is_new());
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "the output and its marker");
        }
    }

    #[test]
    fn a_process_may_end_between_any_two_steps() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let all = || {
            for shard in ["0/2", "1/2"] {
                if let Some(output) = open(&path, shard, "") {
                    let at = 3 * output.output.shard.index() as u64;
                    output.write_at(b"abc", at).unwrap();
                    output.finish(&Value::Null, &accept).unwrap();
                }
            }
        };
        // A process ends after it created the last mark.
        let output = open(&path, "0/2", "").unwrap();
        output.write_at(b"abc", 0).unwrap();
        output.file.sync_data().unwrap();
        File::create(output.output.mark()).unwrap();
        let output = open(&path, "1/2", "").unwrap();
        output.write_at(b"abc", 3).unwrap();
        File::create(output.output.mark()).unwrap();
        assert!(!path.exists());
        all();
        assert_eq!(fs::read(&path).unwrap(), b"abcabc");
        // A process ends after the rename: the folder is still there, with its marks.
        fs::create_dir(&output.output.folder).unwrap();
        (0..2).for_each(|i| drop(File::create(output.output.folder.join(i.to_string())).unwrap()));
        all();
        assert_eq!(
            (fs::read(&path).unwrap(), output.output.folder.exists()),
            (b"abcabc".to_vec(), false)
        );
        // Somebody has removed the output.
        fs::remove_file(&path).unwrap();
        all();
        assert_eq!(fs::read(&path).unwrap(), b"abcabc");
    }

    /// A process is killed while it creates the folder, or while it removes it.
    #[test]
    fn nothing_of_a_killed_process_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let count = || fs::read_dir(&folder).unwrap().count();
        let output = open(&path, "0/1", "").unwrap();
        let own = output.output.folder.clone();
        output.write_at(b"abcdef", 0).unwrap();
        output.finish(&Value::Null, &accept).unwrap();
        assert_eq!(count(), 2, "the output and its marker");
        for kind in ["creates", "removes"] {
            let left = match kind {
                "creates" => UnfinishedFolder::create(&own).unwrap().leave(),
                _ => {
                    fs::create_dir(&own).unwrap();
                    own.with_file_name(crate::io::unfinished::trash_name(&own))
                }
            };
            if own.exists() {
                fs::rename(&own, &left).unwrap();
            }
            fs::write(left.join("0"), "").unwrap();
            assert_eq!(count(), 3, "{kind}");
            assert!(open(&path, "0/1", "").is_none());
            assert_eq!(count(), 2, "{kind}");
        }
    }

    #[test]
    fn an_output_that_appears_meanwhile_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let sink = Sink::File(folder.path().join("out"));
        let path = sink.path().unwrap();
        let open =
            || SharedOutput::open(&sink, &identity("0/1", "kept"), true, &create, &accept).unwrap();
        let output = open().unwrap();
        fs::create_dir(path).unwrap();
        fs::write(path.join("theirs"), "").unwrap();
        let error = output.finish(&Value::Null, &accept).unwrap_err().one_line();
        assert!(error.contains("exists already") && path.join("theirs").exists(), "{error}");
        fs::remove_dir_all(path).unwrap();
        assert!(open().is_none() && path.is_dir() && !path.join("theirs").exists());
    }

    /// Without an atomic exchange, the old folder has a temporary name for a moment.
    #[cfg(unix)]
    #[test]
    fn a_replaced_folder_is_not_cleaned_up() {
        let folder = tempfile::tempdir().unwrap();
        let [old, missing] = ["old", "missing"].map(|name| folder.path().join(name));
        fs::create_dir(&old).unwrap();
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Relaxed) {
                    clean_up(&old);
                }
            });
            let swaps = (0..2000).map(|_| swap_in_steps(&missing, &old).unwrap_err().kind());
            let kept = swaps.take_while(|_| old.exists()).count();
            is_done.store(true, Relaxed);
            assert_eq!(kept, 2000);
        });
    }

    /// The process that finds all marks decides, with what all shards found out. Any of them may decide again.
    #[test]
    fn the_last_shard_decides() {
        let folder = tempfile::tempdir().unwrap();
        let sink = Sink::File(folder.path().join("out"));
        let refuse = |_: &Path, found: &[Value]| Err(Error::bad_input(Value::from(found)));
        let open = |shard: &str, complete: CompleteFn<'_>| {
            SharedFile::open(&sink, &identity(shard, ""), 6, false, complete).unwrap()
        };
        open("1/2", &refuse).unwrap().finish(&7.into(), &refuse).unwrap();
        let error = open("0/2", &refuse).unwrap().finish(&4.into(), &refuse).unwrap_err();
        assert!(["[4,7]", "[7,4]"].contains(&&*error.one_line()), "{error:?}");
        assert!(!sink.path().unwrap().exists());
        assert!(open("1/2", &accept).is_none() && sink.path().unwrap().exists());
    }
}
