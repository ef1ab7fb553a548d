//! The one error type of the library: a kind, which decides the exit code, and a chain of causes.

use std::{error, fmt, io, iter, ops::RangeInclusive, path::Path};

/// A `Result` whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error, on which a shell script can act. The numbers are exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Any other failure.
    Failure = 1,
    /// Flags or parameters are wrong.
    Usage = 2,
    /// Some of several files failed, and the others are done.
    Partial = 3,
    /// An input is invalid, unsupported, or larger than a limit.
    BadInput = 4,
    /// The selected device does not exist on this machine.
    NoDevice = 5,
    /// The GPU failed while working.
    Gpu = 6,
    /// A file could not be opened, read, created or written.
    Io = 7,
    /// The caller's progress callback cancelled the call.
    Cancelled = 130,
}

impl Kind {
    /// Whether the same job may succeed if it is tried again, perhaps on another machine.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::Failure | Self::Partial | Self::Gpu | Self::Io | Self::Cancelled => true,
            Self::Usage | Self::BadInput | Self::NoDevice => false,
        }
    }

    /// The exit code of the process for this kind.
    pub fn exit_code(self) -> u8 {
        self as u8
    }
}

/// A setting that the user can change so that the job succeeds. The library names the setting; `hints` names the flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// Allow more bytes of memory.
    Memory,
    /// Allow more bytes of memory, or write a mesh part by part.
    WholeMesh,
    /// Allow more pixels or samples.
    Pixels,
    /// Give the dimensions and the sample type of a raw volume.
    VolumeShape,
    /// Choose one of the volumes of a file.
    VolumeNumber,
    /// Choose one of the volumes of a file, or take its pages as images.
    VolumeOrPages,
    /// Read the pages of an image as the slices of a volume.
    Stack,
    /// Take the slices of a volume as the pages of an image.
    Pages,
    /// Choose one of the channels, times, or times and channels of a Zarr image.
    ZarrVolume(&'static str),
    /// Give the format of an array: its extension is unknown.
    ArrayFormat,
    /// Read the numbers as this type.
    NumberType(&'static str),
    /// Choose another isovalue.
    Isovalue,
    /// Install a driver, or use the CPU.
    NoGpu,
    /// Choose one of the devices that exist.
    Devices,
}

/// An error with its kind, one line of text, perhaps a hint, and the errors that caused it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: Kind,
    message: String,
    hint: Option<Hint>,
    source: Option<Box<dyn error::Error + Send + Sync>>,
}

impl Error {
    /// An error of `kind` that says `message`.
    pub fn new(kind: Kind, message: impl fmt::Display) -> Self {
        Self { kind, message: message.to_string(), hint: None, source: None }
    }

    /// Wrong flags or parameters: `message` names the flag and the remedy.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// Fails if `failed` of `total` inputs have failed; `noun` is their plural, such as `files`.
    pub fn if_any_failed(failed: usize, total: usize, noun: &str) -> Result<()> {
        match failed {
            0 => Ok(()),
            _ => Err(Self::new(Kind::Partial, format_args!("{failed} of {total} {noun} failed"))),
        }
    }

    /// An unusable input: `message` names the file and what is wrong with it.
    pub fn bad_input(message: impl fmt::Display) -> Self {
        Self::new(Kind::BadInput, message)
    }

    /// A failure of the GPU.
    pub fn gpu(message: impl fmt::Display) -> Self {
        Self::new(Kind::Gpu, message)
    }

    /// A failed `action` ("read", "create" ...) on `path`.
    pub fn io(action: &str, path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::new(Kind::Io, format_args!("cannot {action} {}", path.as_ref().display()))
            .caused_by(source)
    }

    /// The same error with `hint` as its remedy.
    pub fn with_hint(self, hint: Hint) -> Self {
        Self { hint: Some(hint), ..self }
    }

    /// The same error with `source` as its cause.
    pub fn caused_by(
        mut self,
        source: impl Into<Box<dyn error::Error + Send + Sync + 'static>>,
    ) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same kind under a new message, with this error as the cause.
    pub fn context(self, message: impl fmt::Display) -> Self {
        Self::new(self.kind, message).caused_by(self)
    }

    /// The kind of the error, which decides the exit code.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The remedy of this error, or of the first of its causes that has one.
    pub fn hint(&self) -> Option<Hint> {
        self.chain().find_map(|error| error.downcast_ref::<Self>()?.hint)
    }

    /// Whether the cause is a closed pipe: the reader of an output, such as `head`, has ended.
    pub fn is_broken_pipe(&self) -> bool {
        let mut causes = self.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
        causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
    }

    /// This error and its causes, from the outermost to the root cause.
    pub fn chain(&self) -> impl Iterator<Item = &(dyn error::Error + 'static)> {
        let first: &(dyn error::Error + 'static) = self;
        iter::successors(Some(first), |error| error.source())
    }

    /// The message and its causes on one line: `message: cause: cause`. A cause that the message already ends with is
    /// left out: some decoders repeat their causes.
    pub fn one_line(&self) -> String {
        let mut messages: Vec<String> = self.chain().map(ToString::to_string).collect();
        messages.dedup_by(|cause, message| message.ends_with(&**cause));
        messages.join(": ").replace('\n', " ")
    }
}

/// Checks that the parameter `name` is within `range`.
pub fn check_range(name: &str, value: f64, range: RangeInclusive<f64>) -> Result<()> {
    let (min, max) = (range.start(), range.end());
    if range.contains(&value) {
        return Ok(());
    }
    let expected = match *max {
        f64::MAX if *min == f64::MIN => "a finite number".to_owned(),
        f64::MAX => format!("{min} or more"),
        _ => format!("{min} to {max}"),
    };
    // The shortest text of a float may be another integer.
    let is_whole = value.fract() == 0.0 && value.abs() < 1e19;
    let value = if is_whole { format!("{value:.0}") } else { value.to_string() };
    Err(Error::usage(format_args!("{name} is {value}, expected {expected}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_reads_as_one_line_and_keeps_its_kind() {
        let cause = io::Error::new(io::ErrorKind::NotFound, "no such\nfile");
        let error = Error::io("read", "a.png", cause).context("input 3");
        assert_eq!(error.one_line(), "input 3: cannot read a.png: no such file");
        assert_eq!(error.kind().exit_code(), 7);
        assert_eq!(error.hint(), None);
    }

    #[test]
    fn repeated_causes_are_left_out() {
        let cause = io::Error::other("bad checksum");
        let error = Error::bad_input("broken: bad checksum").caused_by(cause);
        assert_eq!(error.context("a.png").one_line(), "a.png: broken: bad checksum");
    }

    #[test]
    fn a_hint_is_found_in_the_causes() {
        let error = Error::bad_input("8 bytes are more than 4").with_hint(Hint::Memory);
        let error = error.context("cannot decode a.png").context("input 3");
        assert_eq!(error.hint(), Some(Hint::Memory));
    }
}
