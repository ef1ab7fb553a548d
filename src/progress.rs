//! Messages on stderr and progress bars: the only user of indicatif.

use std::{
    fmt::Display,
    io::{self, IsTerminal, Write},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What a job may show on stderr.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    shown: bool,
}

impl Progress {
    /// Bars on a terminal that can move its cursor, unless `hidden`.
    pub fn new(hidden: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { shown: !hidden && !dumb && std::io::stderr().is_terminal() }
    }

    /// A bar over `len` steps of `what`. It appears only once the work has taken half a second, and
    /// goes when dropped.
    pub fn bar(&self, what: &str, len: u64) -> Bar {
        let target = match self.shown {
            true => ProgressDrawTarget::stderr_with_hz(10),
            false => ProgressDrawTarget::hidden(),
        };
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} % {eta}")
            .expect("a fixed template");
        let bar = ProgressBar::with_draw_target(Some(len), ProgressDrawTarget::hidden())
            .with_style(style)
            .with_message(what.to_owned());
        Bar { bar, target: Some(target), started: std::time::Instant::now() }
    }
}

/// A running progress bar.
#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
    target: Option<ProgressDrawTarget>,
    started: std::time::Instant,
}

/// Work shorter than this shows no bar.
const DELAY: Duration = Duration::from_millis(500);

impl Bar {
    /// Moves on by `steps`.
    pub fn advance(&mut self, steps: u64) {
        if self.started.elapsed() > DELAY
            && let Some(target) = self.target.take()
        {
            self.bar.set_draw_target(target);
        }
        self.bar.inc(steps);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Writes one line to stderr. Where that is closed or full there is nobody to tell.
pub fn tell(line: impl Display) {
    let text = format!("{}\n", line.to_string().trim_end().replace(['\n', '\r'], " "));
    let _ = io::stderr().write_all(text.as_bytes());
}

struct Stderr;

impl log::Log for Stderr {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        // Drivers and libraries speak only when everything is wanted.
        metadata.target().starts_with("gpuproc") || log::max_level() == log::LevelFilter::Trace
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            match record.level() {
                log::Level::Warn => tell(format_args!("warning: {}", record.args())),
                _ => tell(record.args()),
            }
        }
    }

    fn flush(&self) {}
}

/// Sends `log` records to stderr: summaries by default, only errors when `quiet`, details once
/// `verbose`, and what the drivers say when `verbose` twice.
pub fn start_messages(quiet: bool, verbose: u8) {
    let level = match (quiet, verbose) {
        (true, _) => log::LevelFilter::Error,
        (false, 0) => log::LevelFilter::Info,
        (false, 1) => log::LevelFilter::Debug,
        (false, _) => log::LevelFilter::Trace,
    };
    // A second call, in tests, keeps the first logger.
    let _ = log::set_logger(&Stderr);
    log::set_max_level(level);
}
