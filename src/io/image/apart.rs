//! Decoding in a process of its own that may take so much memory and no more, for a decoder whose memory cannot be known
//! before: that of lossless WebP keeps up to 65,536 groups of five tables of prefix codes, 20 KiB each, and a table
//! takes eleven bytes of the file. Where memory is short, that process breaks off, and not this one.
//!
//! The process is this program again. It reads the file from standard input and writes the samples to standard output,
//! behind a byte that tells whether the rest are samples or an error's text. Only Linux limits memory so; elsewhere, and
//! in a library, which is no program to start, files are decoded here.

use std::{
    env,
    io::{self, Read, Write},
    panic::catch_unwind,
    path::PathBuf,
    process::{Command, Stdio},
    sync::OnceLock,
};

use image::ImageFormat;

use super::{codec::BoxError, image_crate::open};
use crate::{
    error::{Error, Hint},
    io::Limits,
};

/// The first argument of the process that decodes; the second is how many bytes it may take.
const ARGUMENT: &str = "decode-webp-within";
/// What comes before samples, and before an error.
const SAMPLES: u8 = 0;
const FAILURE: u8 = 1;

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Tells where this program is, so that it can be started again.
pub fn allow() {
    if cfg!(target_os = "linux")
        && let Ok(program) = env::current_exe()
    {
        PROGRAM.set(program).ok();
    }
}

/// In a process started to decode a file, does that; returns whether this is one.
pub fn serve() -> bool {
    let mut arguments = env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != ARGUMENT) {
        return false;
    }
    let within = arguments.next().and_then(|bytes| bytes.to_str()?.parse().ok());
    // An error here is seen by the other process, which gets less than it wants.
    within.map(answer).transpose().ok();
    true
}

fn answer(within: u64) -> io::Result<()> {
    let mut file = Vec::new();
    io::stdin().lock().read_to_end(&mut file)?;
    limit_memory(within)?;
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
            output.write_all(b"the decoder crashed on it")?;
        }
    }
    output.flush()
}

/// Lets this process map so many bytes more.
#[cfg(target_os = "linux")]
fn limit_memory(more: u64) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = pages.split(' ').next().and_then(|pages| pages.parse().ok()).unwrap_or(0);
    let most = more.saturating_add(pages * rustix::param::page_size() as u64);
    let Rlimit { current, maximum } = getrlimit(Resource::As);
    let lower = |limit: Option<u64>| Some(limit.map_or(most, |limit| limit.min(most)));
    Ok(setrlimit(Resource::As, Rlimit { current: lower(current), maximum: lower(maximum) })?)
}

#[cfg(not(target_os = "linux"))]
fn limit_memory(_more: u64) -> io::Result<()> {
    Ok(())
}

/// Whether a process of its own can be started.
pub fn is_possible() -> bool {
    PROGRAM.get().is_some()
}

/// Decodes `file` to `samples` in a process that may take `within` bytes.
///
/// # Errors
/// When the file is broken, when it takes more, or when the process cannot be started.
pub fn decode(file: &[u8], within: u64, samples: &mut [u8]) -> Result<(), BoxError> {
    let program = PROGRAM.get().ok_or("there is no program to decode it")?;
    let mut process = Command::new(program)
        .args([ARGUMENT, &within.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (input, output) = (process.stdin.take(), process.stdout.take());
    let written = input.map_or(Ok(()), |mut input| input.write_all(file));
    let read = output.map_or(Ok(Err(String::new())), |mut output| answered(&mut output, samples));
    process.wait()?;
    match (written, read) {
        (Ok(()), Ok(Ok(()))) => Ok(()),
        (_, Ok(Err(message))) => Err(message.into()),
        _ => {
            let message = format!("decoding it takes more than the {within} bytes that there are");
            Err(Error::bad_input(message).with_hint(Hint::Memory).into())
        }
    }
}

/// What the process has answered: samples, or the text of an error.
fn answered(output: &mut impl Read, samples: &mut [u8]) -> io::Result<Result<(), String>> {
    let mut kind = [0];
    output.read_exact(&mut kind)?;
    if kind == [SAMPLES] {
        return output.read_exact(samples).map(Ok);
    }
    let mut message = String::new();
    output.read_to_string(&mut message).map(|_| Err(message))
}
