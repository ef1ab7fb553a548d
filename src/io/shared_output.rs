//! An output that several processes fill, each its own stretch of bytes. It gets its name when it is whole: nobody has to
//! wait for the others or join anything.
//!
//! ```text
//! out.raw.shards-1f3c9a5b77e02d64/data     the output, as long as it will be; the number is a hash of the job
//!                                 3        shard 3 is in it
//! ```
//! The process that finds the marks of all shards renames `data` and removes the folder. A shard may be done twice, also at
//! the same time: both write the same bytes to the same place. One that is late writes to a file that has its name by then,
//! what is in it already.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use super::{Sink, identity::Identity, marker::Marker, part::temporary_name};
use crate::{
    data::shard::Shard,
    error::{Error, Result},
};

/// The output, as far as this process's shard goes.
#[derive(Debug)]
pub struct SharedOutput {
    sink: Sink,
    path: PathBuf,
    folder: PathBuf,
    file: File,
    shard: Shard,
    whole: Marker,
}

impl SharedOutput {
    /// Opens the output at `sink` of `length` bytes for the shard of `identity`; nothing where that is done.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::error::Kind::Io) when that fails, or when the output exists, is none of this job, and
    /// `no_clobber` is set; [`Kind::Usage`](crate::error::Kind::Usage) for standard output.
    pub fn open(
        sink: &Sink,
        identity: &Identity,
        length: u64,
        no_clobber: bool,
    ) -> Result<Option<Self>> {
        let Sink::File(path) = sink else {
            return Err(Error::usage(
                "standard output cannot be filled by several processes: name a file",
            ));
        };
        let failed = |error: io::Error| Error::io("write", path, error);
        let shard = identity.shard;
        let of_all = Identity { shard: Shard::WHOLE, ..identity.clone() };
        let whole = Marker::of_shared(of_all, path.clone());
        let mut name = path.clone().into_os_string();
        name.push(format!(".shards-{:016x}", identity.hash()));
        let folder = PathBuf::from(name);
        // As long as another process may take from renaming the output to removing the folder.
        for _ in 0..200 {
            if whole.is_done() {
                let _ = remove(&folder);
                return Ok(None);
            }
            match OpenOptions::new().read(true).write(true).open(folder.join("data")) {
                Ok(_) if mark(&folder, shard).exists() => {
                    // The process that did it may have ended before it gave the output its name.
                    return complete(sink, path, &folder, shard, &whole).map(|()| None);
                }
                Ok(file) => {
                    let (sink, path) = (sink.clone(), path.clone());
                    return Ok(Some(Self { sink, path, folder, file, shard, whole }));
                }
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                Err(_) if folder.exists() => thread::sleep(Duration::from_millis(20)),
                Err(_) if no_clobber && path.exists() => {
                    return Err(failed(io::ErrorKind::AlreadyExists.into()));
                }
                Err(_) => create(&folder, length).map_err(failed)?,
            }
        }
        let folder = folder.display();
        Err(Error::io("write", path, io::Error::other(format!("{folder} is broken: remove it"))))
    }

    /// Writes `bytes` at the offset `at`.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::error::Kind::Io).
    pub fn write_at(&self, bytes: &[u8], at: u64) -> Result<()> {
        write_all_at(&self.file, bytes, at).map_err(|error| Error::io("write", &self.path, error))
    }

    /// Notes that the shard is in the output, and gives that its name if it is the last one. The bytes are on the disk
    /// before the note is: also on a file system that several machines share.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::error::Kind::Io).
    pub fn finish(self) -> Result<()> {
        let Self { sink, path, folder, file, shard, whole } = self;
        file.sync_data().map_err(|error| Error::io("write", &path, error))?;
        drop(file);
        let marked = File::create(mark(&folder, shard));
        match marked {
            Ok(_) => complete(&sink, &path, &folder, shard, &whole),
            // The same shard of another process was the last one.
            Err(_) if whole.is_done() => Ok(()),
            Err(error) => Err(Error::io("write", mark(&folder, shard), error)),
        }
    }
}

fn mark(folder: &Path, shard: Shard) -> PathBuf {
    folder.join(shard.index().to_string())
}

/// Makes the folder with an output of `length` zeros in it, at once; nothing where another process has.
fn create(folder: &Path, length: u64) -> io::Result<()> {
    let beside = folder.parent().filter(|folder| !folder.as_os_str().is_empty());
    let new = beside.unwrap_or(Path::new(".")).join(temporary_name());
    fs::create_dir(&new)?;
    let file = File::create_new(new.join("data")).and_then(|file| file.set_len(length));
    match file.and_then(|()| fs::rename(&new, folder)) {
        Err(_) if folder.exists() => remove(&new),
        Err(error) => {
            let _ = remove(&new);
            Err(error)
        }
        Ok(()) => Ok(()),
    }
}

/// Gives the output its name if all shards are in it.
fn complete(sink: &Sink, path: &Path, folder: &Path, shard: Shard, whole: &Marker) -> Result<()> {
    let count = shard.count();
    // The folder is gone where another process completes the output.
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    let is_mark = |entry: &fs::DirEntry| {
        entry.file_name().to_str().and_then(|name| name.parse::<usize>().ok()).is_some()
    };
    if entries.flatten().filter(is_mark).count() < count {
        return Ok(());
    }
    let data = folder.join("data");
    // Before the rename: a folder whose marks are there without `data` belongs to an output that is done.
    match whole.write_of(std::slice::from_ref(&data)).and_then(|()| {
        fs::rename(&data, path).map_err(|error| Error::io("write", sink.to_string(), error))
    }) {
        Err(_) if whole.is_done() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => {
            let _ = remove(folder);
            Ok(())
        }
    }
}

/// Removes a folder. It loses its name first, so that no process takes what is left of it for a job's.
fn remove(folder: &Path) -> io::Result<()> {
    let beside = folder.parent().filter(|folder| !folder.as_os_str().is_empty());
    let trash = beside.unwrap_or(Path::new(".")).join(temporary_name());
    fs::rename(folder, &trash)?;
    fs::remove_dir_all(trash)
}

#[cfg(unix)]
fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(not(unix))]
fn write_all_at(mut file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    use std::io::{Seek, SeekFrom, Write};
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(shard: &str, parameters: &str) -> Identity {
        Identity {
            version: "1".into(),
            command: "fill".into(),
            parameters: parameters.into(),
            inputs: Vec::new(),
            shard: shard.parse().unwrap(),
        }
    }

    fn open(path: &Path, shard: &str, parameters: &str) -> Option<SharedOutput> {
        let sink = Sink::File(path.into());
        SharedOutput::open(&sink, &identity(shard, parameters), 6, false).unwrap()
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
                // The same shard, started at the same time.
                late.write_at(text.repeat(2).as_bytes(), at).unwrap();
                late.finish().unwrap();
            }
            assert_eq!(fs::read(&path).unwrap(), b"aaccee");
            assert_eq!(count(), 2, "the output and its marker");
            assert!(open(&path, "1/3", parameters).is_none());
            // Another number of shards is the same job, done.
            assert!(open(&path, "1/5", parameters).is_none());
            assert_eq!(count(), 2);
        }
    }

    #[test]
    fn a_process_may_end_between_any_two_steps() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let all = || {
            for shard in ["0/2", "1/2"] {
                if let Some(output) = open(&path, shard, "") {
                    let at = 3 * output.shard.index() as u64;
                    output.write_at(b"abc", at).unwrap();
                    output.finish().unwrap();
                }
            }
        };
        // After the last mark.
        let output = open(&path, "0/2", "").unwrap();
        output.write_at(b"abc", 0).unwrap();
        output.file.sync_data().unwrap();
        File::create(mark(&output.folder, output.shard)).unwrap();
        let output = open(&path, "1/2", "").unwrap();
        output.write_at(b"abc", 3).unwrap();
        File::create(mark(&output.folder, output.shard)).unwrap();
        assert!(!path.exists());
        all();
        assert_eq!(fs::read(&path).unwrap(), b"abcabc");
        // After the rename: the folder is still there, with its marks.
        fs::create_dir(&output.folder).unwrap();
        (0..2).for_each(|i| drop(File::create(output.folder.join(i.to_string())).unwrap()));
        all();
        assert_eq!((fs::read(&path).unwrap(), output.folder.exists()), (b"abcabc".to_vec(), false));
        // Somebody has removed the output.
        fs::remove_file(&path).unwrap();
        all();
        assert_eq!(fs::read(&path).unwrap(), b"abcabc");
    }
}
