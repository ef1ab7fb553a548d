//! Decodes lossless WebP files in a child process with limited memory. The memory that their decoder takes is not known
//! in advance: up to 65,536 groups of five tables of prefix codes, 20 KiB per group, and a table may take as little as
//! eleven bytes of the file. If memory runs short, the child process ends, and this process reports an error.
//!
//! The child process runs this program. It reads the file from standard input, and writes one byte and then either the
//! samples or the text of an error to standard output. Only Linux can limit the memory of a process. On other systems,
//! and in a library, which cannot start itself, files are decoded in this process.

use std::{
    io::{self, Read, Write},
    panic::catch_unwind,
    process::Stdio,
    sync::atomic::{AtomicBool, Ordering},
};

use image::ImageFormat;

use super::{
    error::{BoxError, DECODER_PANICKED},
    image_crate::open,
};
use crate::{
    io::Limits,
    util::{memory, program},
};

/// First argument of the child process. The second is the maximum number of bytes that it may take.
const ARGUMENT: &str = "decode-webp-within";
/// Byte before samples, and byte before the text of an error.
const SAMPLES: u8 = 0;
const FAILURE: u8 = 1;

static ENABLED: AtomicBool = AtomicBool::new(false);

/// Enables decoding in child processes. For programs only, which serve them.
pub fn enable() {
    ENABLED.store(cfg!(target_os = "linux") && program::command().is_ok(), Ordering::Relaxed);
}

/// Decodes a file if this process was started for that. Returns whether it was.
pub fn serve_if_requested() -> bool {
    let mut arguments = program::words().into_iter().skip(1);
    if arguments.next().is_none_or(|first| first != ARGUMENT) {
        return false;
    }
    let max_bytes = arguments.next().and_then(|bytes| bytes.to_str()?.parse().ok());
    // The parent process detects an error here, because it gets fewer bytes than it expects.
    max_bytes.map(answer).transpose().ok();
    true
}

fn answer(max_bytes: u64) -> io::Result<()> {
    let mut file = Vec::new();
    io::stdin().lock().read_to_end(&mut file)?;
    limit_memory(max_bytes)?;
    let decoded = catch_unwind(|| {
        let decoded = open(ImageFormat::WebP, &file, Limits::from(u64::MAX))?.decode();
        decoded.map(|decoded| decoded.image.samples)
    });
    let mut output = io::stdout().lock();
    match decoded {
        Ok(Ok(samples)) => {
            output.write_all(&[SAMPLES])?;
            output.write_all(samples.as_bytes())?;
        }
        Ok(Err(error)) => {
            output.write_all(&[FAILURE])?;
            output.write_all(error.to_string().as_bytes())?;
        }
        Err(_) => {
            output.write_all(&[FAILURE])?;
            output.write_all(DECODER_PANICKED.as_bytes())?;
        }
    }
    output.flush()
}

/// Limits the address space of this process to its current size plus `more` bytes.
#[cfg(target_os = "linux")]
fn limit_memory(more: u64) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = pages.split(' ').next().and_then(|pages| pages.parse().ok()).unwrap_or(0);
    let max = more.saturating_add(pages * rustix::param::page_size() as u64);
    let Rlimit { current, maximum } = getrlimit(Resource::As);
    let lower = |limit: Option<u64>| Some(limit.map_or(max, |limit| limit.min(max)));
    Ok(setrlimit(Resource::As, Rlimit { current: lower(current), maximum: lower(maximum) })?)
}

#[cfg(not(target_os = "linux"))]
fn limit_memory(_more: u64) -> io::Result<()> {
    Ok(())
}

/// Whether child processes can be started.
pub fn is_available() -> bool {
    ENABLED.load(Ordering::Relaxed)
}

/// Decodes the WebP file `file` into `samples`, in a child process that may take `max_bytes` bytes.
pub fn decode(file: &[u8], max_bytes: u64, samples: &mut [u8]) -> Result<(), BoxError> {
    let mut process = program::command()?
        .args([ARGUMENT, &max_bytes.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (input, output) = (process.stdin.take(), process.stdout.take());
    let written = input.map_or(Ok(()), |mut input| input.write_all(file));
    let read =
        output.map_or(Ok(Err(String::new())), |mut output| read_answer(&mut output, samples));
    process.wait()?;
    match (written, read) {
        (Ok(()), Ok(Ok(()))) => Ok(()),
        (_, Ok(Err(message))) => Err(message.into()),
        _ => Err(memory::exceeds_rest("decoding", max_bytes).into()),
    }
}

/// Reads the answer of the child process: samples, or the text of an error.
fn read_answer(output: &mut impl Read, samples: &mut [u8]) -> io::Result<Result<(), String>> {
    let mut kind = [0];
    output.read_exact(&mut kind)?;
    if kind == [SAMPLES] {
        return output.read_exact(samples).map(Ok);
    }
    let mut message = String::new();
    output.read_to_string(&mut message).map(|_| Err(message))
}
