//! Standard input and output as files that report when they are closed or open in the wrong mode.
//!
//! Rust's `io::stdin` reads a stream that is not open for reading as if it were empty, and `io::stdout` drops bytes
//! written to a stream that is not open for writing: both take `EBADF` for success. And a stream that is closed when
//! the process begins is `/dev/null` by the time `main` runs: Rust's runtime opens that, since the next opened file
//! would take the number of the closed stream. So [`record_closed`] has to look before `main`.

#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd};
use std::{
    fs::File,
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

#[cfg(unix)]
use rustix::fs::{OFlags, fcntl_getfl};

use super::unfinished::parent_folder;
use crate::util::error::{Error, Result};

/// Name of standard input in messages.
pub const INPUT: &str = "standard input";
/// Name of standard output in messages.
pub const OUTPUT: &str = "standard output";

#[cfg(unix)]
static INPUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);
#[cfg(unix)]
static OUTPUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether standard input and output are reserved for the server that runs jobs in this process.
static RESERVED: AtomicBool = AtomicBool::new(false);

/// Reserves standard input and output for the caller, which has opened them: from now on they cannot be opened again.
pub fn reserve() {
    RESERVED.store(true, Ordering::Relaxed);
}

/// Refuses the name of a pipe or a device for a job of a server: opening or reading it may block all later jobs, and
/// open files of this process belong to the server. Only a process that has reserved standard input and output refuses
/// them.
pub fn refuse_stream(path: &Path) -> Result<()> {
    let is_file = || match path.metadata() {
        Ok(found) => {
            let is_regular = found.is_file() || found.is_dir() || path == Path::new("/dev/null");
            is_regular && descriptor(path).is_none()
        }
        Err(_) => true,
    };
    if RESERVED.load(Ordering::Relaxed) && !is_file() {
        return Err(Error::usage(format_args!(
            "{}: jobs of gpuproc serve use files only, not pipes, devices and open files",
            path.display()
        )));
    }
    Ok(())
}

/// Whether output was written that cannot be taken back.
static WRITTEN: AtomicBool = AtomicBool::new(false);
/// The offset of standard input when it was first opened, or [`PIPE`] if it is not seekable; `None` if it was not
/// opened.
static INPUT_BEGAN: Mutex<Option<u64>> = Mutex::new(None);
/// Stands for the offset of an input that is not seekable, so cannot be read again.
const PIPE: u64 = u64::MAX;

/// The first bytes of standard input, once [`peek`] has read them.
static FIRST: Mutex<Option<First>> = Mutex::new(None);

struct First {
    bytes: Vec<u8>,
    /// Whether [`take_first`] has returned the bytes.
    is_taken: bool,
}

/// The first bytes of standard input, at most 512, for recognizing its format. [`take_first`] gives these bytes to the
/// reader of the whole stream.
pub fn peek() -> io::Result<Vec<u8>> {
    const LEN: u64 = 512;
    let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
    if first.is_none() {
        let mut bytes = Vec::new();
        input()?.take(LEN).read_to_end(&mut bytes)?;
        *first = Some(First { bytes, is_taken: false });
    }
    Ok(first.as_ref().map(|first| first.bytes.clone()).unwrap_or_default())
}

/// The bytes that [`peek`] has read; empty after the first call.
pub fn take_first() -> Vec<u8> {
    let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
    let first = first.as_mut().filter(|first| !first.is_taken);
    first.map_or_else(Vec::new, |first| {
        first.is_taken = true;
        first.bytes.clone()
    })
}

/// Records that output was written that cannot be taken back.
pub fn record_written() {
    WRITTEN.store(true, Ordering::Relaxed);
}

/// The offset to which standard input must be set before the job can begin again; `None` if it was not opened. Fails if
/// output was written, or standard input cannot be read twice.
pub fn restart_offset() -> io::Result<Option<u64>> {
    let began = *INPUT_BEGAN.lock().unwrap_or_else(PoisonError::into_inner);
    match (WRITTEN.load(Ordering::Relaxed), began) {
        (true, _) => Err(io::Error::other("part of its output is already written")),
        (_, Some(PIPE)) => Err(io::Error::other("standard input can be read only once")),
        (_, offset) => Ok(offset),
    }
}

/// Records which streams are closed. It runs before `main`, so it must not use the heap, locks or threads.
#[cfg(unix)]
pub fn record_closed() {
    INPUT_WAS_CLOSED.store(fcntl_getfl(rustix::stdio::stdin()).is_err(), Ordering::Relaxed);
    OUTPUT_WAS_CLOSED.store(fcntl_getfl(rustix::stdio::stdout()).is_err(), Ordering::Relaxed);
}

/// Standard input.
pub fn input() -> io::Result<File> {
    #[cfg(unix)]
    let mut input = open(io::stdin().as_fd(), &INPUT_WAS_CLOSED, OFlags::WRONLY, "writing")?;
    #[cfg(windows)]
    let mut input: File =
        std::os::windows::io::AsHandle::as_handle(&io::stdin()).try_clone_to_owned()?.into();
    let offset = input.stream_position().unwrap_or(PIPE);
    INPUT_BEGAN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(offset);
    Ok(input)
}

/// Standard output.
pub fn output() -> io::Result<File> {
    #[cfg(unix)]
    return open(io::stdout().as_fd(), &OUTPUT_WAS_CLOSED, OFlags::RDONLY, "reading");
    #[cfg(windows)]
    return Ok(std::os::windows::io::AsHandle::as_handle(&io::stdout())
        .try_clone_to_owned()?
        .into());
}

/// A duplicate of `stream`. It fails if the stream is reserved, was closed, or has the access mode `useless`, called
/// `name`.
#[cfg(unix)]
fn open(
    stream: BorrowedFd<'_>,
    was_closed: &AtomicBool,
    useless: OFlags,
    name: &str,
) -> io::Result<File> {
    if RESERVED.load(Ordering::Relaxed) {
        return Err(io::Error::other("gpuproc serve uses it for jobs: name a file"));
    }
    if was_closed.load(Ordering::Relaxed) {
        return Err(io::Error::other("it is closed"));
    }
    if fcntl_getfl(stream)? & OFlags::RWMODE == useless {
        return Err(io::Error::other(format!("it is open for {name} only")));
    }
    Ok(stream.try_clone_to_owned()?.into())
}

/// Writes `text` to standard output.
pub fn print(text: &str) -> Result<()> {
    print_with(|output| output.write_all(text.as_bytes()))
}

/// Calls `write` with standard output, for text in UTF-8.
pub fn print_with(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    record_written();
    // The console of Windows takes text (UTF-16), not bytes; `io::stdout` converts.
    let written = match cfg!(windows) {
        true => write(&mut io::stdout().lock()),
        false => output().and_then(|mut output| write(&mut output)),
    };
    written.map_err(|error| Error::io("write", OUTPUT, error))
}

/// The file descriptor that `path` names, such as 1 for `/dev/stdout`, `/dev/fd/1`, and links to them. Opening such a
/// path would open a regular file anew, at its beginning.
pub fn descriptor(path: &Path) -> Option<u32> {
    /// Maximum number of symbolic links in a row, as in Linux.
    const LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let folder = parent_folder(&path).canonicalize().ok()?;
        if is_descriptor_folder(&folder) {
            return path.file_name()?.to_str()?.parse().ok();
        }
        path = folder.join(path.read_link().ok()?);
    }
    None
}

/// Whether `folder`, with links resolved, contains the open files of this process.
fn is_descriptor_folder(folder: &Path) -> bool {
    let own = PathBuf::from(format!("/proc/{}", std::process::id()));
    let of_thread = folder.strip_prefix(own.join("task")).is_ok_and(|rest| rest.ends_with("fd"));
    folder == Path::new("/dev/fd") || folder == own.join("fd") || of_thread
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn paths_of_open_files_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/stdout", &link).unwrap();
        let path = link.to_str().unwrap();
        for path in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1", path]
        {
            assert_eq!(descriptor(Path::new(path)), Some(1), "{path}");
        }
        assert_eq!(descriptor(Path::new("/dev/stderr")), Some(2));
        for path in ["/dev/null", "/dev/fd", "/proc/1/fd/1", "fd/1", "1", "/", "", "missing/1"] {
            assert_eq!(descriptor(Path::new(path)), None, "{path}");
        }
    }
}
