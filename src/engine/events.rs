//! Log of a run (`--log-json`): one line of JSON per event, with times and bytes.
//!
//! | event | fields |
//! |---|---|
//! | `start` | command, arguments, version, process |
//! | `file` | `input`, `output`, `seconds`, `bytes_in`, `bytes_out`; `status` is `done`, or `skipped` if an earlier run has done it |
//! | `error` | `input` if one of several failed, `message`, `code` (an exit code), `retry` (whether trying again may help) |
//! | `end` | `seconds`, `code`, numbers of `files` and of those `skipped` and `failed`, `bytes_in`, `bytes_out` |
//!
//! A log without an `end` belongs to a process that was stopped.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use crate::{
    io::{Sink, Source, standard},
    util::{
        error::{Error, Result},
        program,
    },
};

/// Log of a run. Its file is opened after a check for other uses of it in the run. Without a file, nothing is
/// logged.
#[derive(Debug)]
pub struct Events {
    log: Option<Sink>,
    state: Mutex<State>,
    started: Instant,
    totals: Mutex<Totals>,
}

#[derive(Debug)]
enum State {
    /// The file is not open yet; these lines wait.
    Waiting(String),
    Open(File),
    /// Nothing is logged.
    Closed,
}

#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    files: u64,
    skipped: u64,
    failed: u64,
    bytes_in: u64,
    bytes_out: u64,
}

impl Events {
    /// A log that is appended to the file `log`. Other processes may append to the same file.
    pub fn new(log: Option<Sink>) -> Self {
        let state = if log.is_some() { State::Waiting(String::new()) } else { State::Closed };
        Self { log, state: state.into(), started: Instant::now(), totals: Mutex::default() }
    }

    /// The name of the log.
    pub fn log(&self) -> Option<&Sink> {
        self.log.as_ref()
    }

    /// Opens the log if it is not open, and writes the waiting lines.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::util::error::Kind::Io) when the file cannot be opened. Nothing is logged then.
    pub fn open(&self) -> Result<()> {
        let mut state = self.state();
        let (State::Waiting(lines), Some(log)) = (&*state, &self.log) else { return Ok(()) };
        let file = match log {
            Sink::Stdout => standard::output(),
            Sink::File(path) => OpenOptions::new().append(true).create(true).open(path),
        };
        match file {
            Ok(mut file) => {
                append(&mut file, lines);
                *state = State::Open(file);
                Ok(())
            }
            Err(error) => {
                *state = State::Closed;
                // `-` stands for standard output.
                let name = log.path().unwrap_or(Path::new("-"));
                Err(Error::io("write", name, error))
            }
        }
    }

    /// Discards an unopened log, because its file has another use.
    pub fn give_up(&self) {
        let mut state = self.state();
        if matches!(*state, State::Waiting(_)) {
            *state = State::Closed;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs the start of the run.
    pub fn start(&self, command: &str) {
        let arguments = || -> Vec<String> {
            let words = program::words().into_iter().skip(1);
            words.map(|word| word.to_string_lossy().into_owned()).collect()
        };
        self.write("start", || {
            json!({
                "command": command,
                "arguments": arguments(),
                "version": env!("CARGO_PKG_VERSION"),
                "process": std::process::id(),
            })
        });
    }

    /// Logs that an input is done; `output` is `None` if several inputs share an output.
    pub fn done(&self, input: &Source, output: Option<&Sink>, time: Duration) {
        self.record("done", input, output, Some(time));
    }

    /// Number of inputs that earlier runs have done.
    pub fn skipped_files(&self) -> u64 {
        self.totals().skipped
    }

    /// Logs that an input was done by an earlier run.
    pub fn skipped(&self, input: &Source, output: Option<&Sink>) {
        self.record("skipped", input, output, None);
    }

    fn record(&self, status: &str, input: &Source, output: Option<&Sink>, time: Option<Duration>) {
        if self.log.is_none() {
            self.totals().skipped += u64::from(time.is_none());
            return;
        }
        let size = |source: &Source| source.size().ok().flatten();
        let bytes_in = size(input);
        let bytes_out = output.and_then(|output| match output {
            Sink::File(path) => size(&Source::from(&**path)),
            Sink::Stdout => None,
        });
        let mut totals = self.totals();
        totals.files += 1;
        match time {
            Some(_) => {
                totals.bytes_in += bytes_in.unwrap_or(0);
                totals.bytes_out += bytes_out.unwrap_or(0);
            }
            None => totals.skipped += 1,
        }
        drop(totals);
        self.write("file", || {
            json!({
                "status": status,
                "input": input.to_string(),
                "output": output.map(ToString::to_string),
                "seconds": time.map(|time| time.as_secs_f64()),
                "bytes_in": bytes_in,
                "bytes_out": bytes_out,
            })
        });
    }

    /// Logs that one of several inputs has failed.
    pub fn failed(&self, input: &Source, error: &Error) {
        let mut totals = self.totals();
        totals.files += 1;
        totals.failed += 1;
        drop(totals);
        self.error(Some(input), error);
    }

    fn error(&self, input: Option<&Source>, error: &Error) {
        self.write("error", || {
            json!({
                "input": input.map(ToString::to_string),
                "message": error.one_line(),
                "code": error.kind().exit_code(),
                "retry": error.kind().is_retryable(),
            })
        });
    }

    /// Logs the end of the run.
    pub fn end(&self, result: &Result<()>) {
        if self.log.as_ref().and_then(Sink::path).is_some_and(|path| !is_log(path)) {
            self.give_up();
        }
        // The run has ended, with its own error if there is one.
        let _ = self.open();
        if let Err(error) = result {
            self.error(None, error);
        }
        let Totals { files, skipped, failed, bytes_in, bytes_out } = *self.totals();
        self.write("end", || {
            json!({
                "seconds": self.started.elapsed().as_secs_f64(),
                "code": result.as_ref().err().map_or(0, |error| error.kind().exit_code()),
                "files": files,
                "skipped": skipped,
                "failed": failed,
                "bytes_in": bytes_in,
                "bytes_out": bytes_out,
            })
        });
    }

    fn totals(&self) -> MutexGuard<'_, Totals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a line with one call, so that lines of several processes do not mix. A failure is a warning, not an
    /// error.
    fn write(&self, event: &str, fields: impl FnOnce() -> Value) {
        let mut state = self.state();
        if matches!(*state, State::Closed) {
            return;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut line = json!({ "event": event, "time": now.as_millis() as f64 / 1000.0 });
        if let (Value::Object(line), Value::Object(fields)) = (&mut line, fields()) {
            line.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
        }
        match &mut *state {
            State::Waiting(lines) => *lines += &format!("{line}\n"),
            State::Open(file) => append(file, &format!("{line}\n")),
            State::Closed => {}
        }
    }
}

/// Appends `lines` to a log.
fn append(file: &mut File, lines: &str) {
    if let Err(error) = file.write_all(lines.as_bytes()) {
        log::warn!("cannot write to the log: {error}");
    }
}

/// Whether `path` is a log, or no file yet. A run that fails before its files are known may have named any other file
/// as an input or an output.
fn is_log(path: &Path) -> bool {
    /// The log of a run begins with the event `start`.
    const START: &[u8] = b"{\"arguments\":";
    let mut first = Vec::new();
    let read = |file: File| file.take(START.len() as u64).read_to_end(&mut first);
    !path.is_file() || File::open(path).and_then(read).is_ok() && first == START
}
