//! An output that several processes fill: each writes its own range of bytes. The output gets its final name when it is
//! whole, so no process has to wait for others or join anything.
//!
//! ```text
//! out.raw.shards-1f3c9a5b77e02d64/data     the output, in its full length; the number is a hash of the job
//!                                 3        the mark of shard 3: an empty file, created once the shard is in `data`
//! ```
//! If the output is a folder of chunks, `data` is that folder, and each shard writes its own chunks.
//!
//! The process that finds the marks of all shards renames `data` and removes the folder. Two processes may do the same
//! shard, even at the same time: both write the same bytes to the same place. The later one may write to a file that
//! has its final name already; it writes the bytes that are there.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use super::{
    Sink,
    identity::Identity,
    marker::Marker,
    unfinished::{exists_already, temporary_name},
};
use crate::{
    data::shard::Shard,
    util::error::{Error, Result},
};

/// A shared output file, as seen by the process of one shard.
#[derive(Debug)]
pub struct SharedFile {
    place: SharedOutput,
    file: File,
}

impl SharedFile {
    /// Opens the output `sink` of `length` bytes for the shard of `identity`; `None` if that shard is done.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::util::error::Kind::Io) if the output cannot be opened, or if it exists, is not of this job, and
    /// `no_clobber` is set; [`Kind::Usage`](crate::util::error::Kind::Usage) for standard output.
    pub fn open(
        sink: &Sink,
        identity: &Identity,
        length: u64,
        no_clobber: bool,
    ) -> Result<Option<Self>> {
        let file = |data: &Path| {
            let file = File::create_new(data).and_then(|file| file.set_len(length));
            file.map_err(|error| Error::io("write", data, error))
        };
        let Some(place) = SharedOutput::open(sink, identity, no_clobber, &file, &|_| Ok(()))?
        else {
            return Ok(None);
        };
        let file = OpenOptions::new().read(true).write(true).open(place.data());
        let file = file.map_err(|error| Error::io("write", &place.path, error))?;
        Ok(Some(Self { place, file }))
    }

    /// Writes `bytes` at the offset `at`.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::util::error::Kind::Io).
    pub fn write_at(&self, bytes: &[u8], at: u64) -> Result<()> {
        write_all_at(&self.file, bytes, at)
            .map_err(|error| Error::io("write", &self.place.path, error))
    }

    /// Marks the shard as done, and gives the output its final name if this was the last shard. The bytes are synced to
    /// the disk before the mark is created, so that the order holds on a file system that several machines share, too.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::util::error::Kind::Io).
    pub fn finish(self) -> Result<()> {
        let Self { place, file } = self;
        file.sync_data().map_err(|error| Error::io("write", &place.path, error))?;
        drop(file);
        place.finish(&|_| Ok(()))
    }
}

/// The folder in which processes fill an output, which is a file or a folder itself.
#[derive(Debug)]
pub struct SharedOutput {
    sink: Sink,
    path: PathBuf,
    folder: PathBuf,
    shard: Shard,
    whole: Marker,
}

/// An action on the data, given their path.
pub type OnData<'a> = &'a dyn Fn(&Path) -> Result<()>;

impl SharedOutput {
    /// Opens the output `sink` for the shard of `identity`; `None` if that shard is done. The first process calls
    /// `create` to make the data; the process that finds all shards done calls `complete`, as in
    /// [`SharedOutput::finish`].
    ///
    /// # Errors
    /// As [`SharedFile::open`], and those of `create` and `complete`.
    pub fn open(
        sink: &Sink,
        identity: &Identity,
        no_clobber: bool,
        create: OnData<'_>,
        complete: OnData<'_>,
    ) -> Result<Option<Self>> {
        let Sink::File(path) = sink else {
            return Err(Error::usage(
                "standard output cannot be filled by several processes: name a file",
            ));
        };
        let shard = identity.shard;
        let of_all = Identity { shard: Shard::WHOLE, ..identity.clone() };
        let whole = Marker::of_shared(of_all, path.clone());
        let mut name = path.clone().into_os_string();
        name.push(format!(".shards-{:016x}", identity.hash()));
        let place =
            Self { sink: sink.clone(), path: path.clone(), folder: name.into(), shard, whole };
        // Waits as long as another process may take from renaming the output to removing the folder.
        for turn in 0..200 {
            if place.whole.is_done() {
                let _ = remove(&place.folder);
                return Ok(None);
            }
            if place.data().exists() {
                return match mark(&place.folder, shard).exists() {
                    // The process that did this shard may have ended before it gave the output its name.
                    true => place.complete(complete).map(|()| None),
                    false => Ok(Some(place)),
                };
            }
            if place.folder.exists() {
                thread::sleep(MOMENT);
                if turn == 100 {
                    place.take_back();
                }
            } else if no_clobber && path.exists() {
                return Err(Error::io("write", path, exists_already()));
            } else {
                make(&place.folder, create)?;
            }
        }
        let folder = place.folder.display();
        Err(Error::io("write", path, io::Error::other(format!("{folder} is broken: remove it"))))
    }

    /// The path of the file or folder that processes fill.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Whether the output is whole and has its final name: another process has done the same shard meanwhile.
    pub fn is_done(&self) -> bool {
        self.waits_for_another(&self.data())
    }

    /// Marks the shard as done. If it was the last shard, `complete` finishes the data, perhaps in several processes at
    /// the same time, and the output gets its final name.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::util::error::Kind::Io), and those of `complete`.
    pub fn finish(self, complete: OnData<'_>) -> Result<()> {
        let mark = mark(&self.folder, self.shard);
        match File::create(&mark) {
            Ok(_) => self.complete(complete),
            // Another process did the same shard, which was the last one, and removed the folder.
            Err(_) if self.whole.is_done() => Ok(()),
            Err(error) => Err(Error::io("write", mark, error)),
        }
    }

    /// Gives the output its final name if all shards are done.
    fn complete(&self, complete: OnData<'_>) -> Result<()> {
        let Self { sink, folder, shard, whole, .. } = self;
        // Without a folder, another process has completed the output.
        let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
        let is_mark = |entry: &fs::DirEntry| {
            entry.file_name().to_str().and_then(|name| name.parse::<usize>().ok()).is_some()
        };
        if entries.flatten().filter(is_mark).count() < shard.count() {
            return Ok(());
        }
        let data = self.data();
        let completed = complete(&data);
        // The marker is written before the rename: a folder with marks but without `data` belongs to a done output.
        let completed = completed.and_then(|()| whole.write_of(std::slice::from_ref(&data)));
        let named = completed.and_then(|()| {
            self.rename(&data).map_err(|error| Error::io("write", sink.to_string(), error))
        });
        match named {
            Ok(()) => {
                let _ = remove(folder);
                Ok(())
            }
            // Another process is completing the output, or has completed it.
            Err(_) if self.waits_for_another(&data) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Renames the data to the output. Two processes must not both replace an output folder: the second one would
    /// replace the new folder by the old one. So a process first claims a folder by renaming it to a name of its own.
    fn rename(&self, data: &Path) -> io::Result<()> {
        if !data.is_dir() {
            return fs::rename(data, &self.path);
        }
        let claim = self.folder.join(format!("{CLAIM}{}", temporary_name()));
        fs::rename(data, &claim)?;
        let old = beside(&self.path).join(temporary_name());
        let has_old = self.path.exists() && fs::rename(&self.path, &old).is_ok();
        fs::rename(&claim, &self.path)?;
        if has_old {
            let _ = fs::remove_dir_all(old);
        }
        Ok(())
    }

    /// Waits while another process has claimed the data; whether that process has completed the output.
    fn waits_for_another(&self, data: &Path) -> bool {
        for _ in 0..100 {
            if self.whole.is_done() {
                return true;
            }
            if data.exists() {
                return false;
            }
            thread::sleep(MOMENT);
        }
        false
    }

    /// Takes back data whose claiming process ended before it renamed them to the output.
    fn take_back(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let claims = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(CLAIM));
        for claim in claims {
            if !self.whole.is_done() {
                let _ = fs::rename(claim.path(), self.data());
            }
        }
    }
}

/// Prefix of the names of claimed data.
const CLAIM: &str = "claim";
/// Time between two looks at what another process is doing; there are a hundred such looks at most.
const MOMENT: Duration = Duration::from_millis(20);

/// The folder that contains `path`.
fn beside(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn mark(folder: &Path, shard: Shard) -> PathBuf {
    folder.join(shard.index().to_string())
}

/// Creates `folder` atomically, with data made by `create` in it; does nothing if another process has created it.
fn make(folder: &Path, create: OnData<'_>) -> Result<()> {
    let failed = |error: io::Error| Error::io("write", folder, error);
    let new = beside(folder).join(temporary_name());
    fs::create_dir(&new).map_err(failed)?;
    let made = create(&new.join("data"));
    match made.and_then(|()| fs::rename(&new, folder).map_err(failed)) {
        Err(_) if folder.exists() => remove(&new).map_err(failed),
        Err(error) => {
            let _ = remove(&new);
            Err(error)
        }
        Ok(()) => Ok(()),
    }
}

/// Removes a folder. It is renamed first, so that no process takes a half removed folder for that of a job.
fn remove(folder: &Path) -> io::Result<()> {
    let trash = beside(folder).join(temporary_name());
    fs::rename(folder, &trash)?;
    fs::remove_dir_all(trash)
}

#[cfg(unix)]
fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(windows)]
fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    let mut written = 0;
    while written < bytes.len() {
        // A write at an explicit offset, since other threads move the position of the file.
        match std::os::windows::fs::FileExt::seek_write(
            file,
            &bytes[written..],
            at + written as u64,
        ) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(shard: &str, parameters: &str) -> Identity {
        Identity::new("fill", &parameters, [], shard.parse().unwrap()).unwrap()
    }

    fn open(path: &Path, shard: &str, parameters: &str) -> Option<SharedFile> {
        let sink = Sink::File(path.into());
        SharedFile::open(&sink, &identity(shard, parameters), 6, false).unwrap()
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
                output.finish().unwrap();
                // Another process that started the same shard at the same time.
                late.write_at(text.repeat(2).as_bytes(), at).unwrap();
                late.finish().unwrap();
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
        let create =
            |data: &Path| fs::create_dir(data).map_err(|error| Error::io("write", data, error));
        let open = |shard: &str| {
            SharedOutput::open(&sink, &identity(shard, "folder"), false, &create, &|_| Ok(()))
        };
        let fill = |place: &SharedOutput| fs::write(place.data().join("new"), "new").unwrap();
        let is_new = || path.join("new").exists() && !path.join("old").exists();
        for claims in [false, true] {
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("old"), "old").unwrap();
            let (first, late) = (open("0/1").unwrap().unwrap(), open("0/1").unwrap().unwrap());
            fill(&first);
            if claims {
                File::create(mark(&first.folder, first.shard)).unwrap();
                fs::rename(first.data(), first.folder.join("claim-of-one-that-ended")).unwrap();
                assert!(open("0/1").unwrap().is_none());
            } else {
                first.finish(&|_| Ok(())).unwrap();
                late.finish(&|_| Ok(())).unwrap();
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
                    let at = 3 * output.place.shard.index() as u64;
                    output.write_at(b"abc", at).unwrap();
                    output.finish().unwrap();
                }
            }
        };
        // A process ends after it created the last mark.
        let output = open(&path, "0/2", "").unwrap();
        output.write_at(b"abc", 0).unwrap();
        output.file.sync_data().unwrap();
        File::create(mark(&output.place.folder, output.place.shard)).unwrap();
        let output = open(&path, "1/2", "").unwrap();
        output.write_at(b"abc", 3).unwrap();
        File::create(mark(&output.place.folder, output.place.shard)).unwrap();
        assert!(!path.exists());
        all();
        assert_eq!(fs::read(&path).unwrap(), b"abcabc");
        // A process ends after the rename: the folder is still there, with its marks.
        fs::create_dir(&output.place.folder).unwrap();
        (0..2).for_each(|i| drop(File::create(output.place.folder.join(i.to_string())).unwrap()));
        all();
        assert_eq!(
            (fs::read(&path).unwrap(), output.place.folder.exists()),
            (b"abcabc".to_vec(), false)
        );
        // Somebody has removed the output.
        fs::remove_file(&path).unwrap();
        all();
        assert_eq!(fs::read(&path).unwrap(), b"abcabc");
    }
}
