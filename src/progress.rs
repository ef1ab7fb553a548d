//! Messages on stderr and progress bars: the only user of indicatif.

use std::{
    fmt::Display,
    io::{self, IsTerminal, Write},
    sync::OnceLock,
    time::{Duration, Instant},
};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The bars on the terminal, below each other; there once the first one has appeared.
static BARS: OnceLock<MultiProgress> = OnceLock::new();

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
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} % {eta}")
            .expect("a fixed template");
        let bar = ProgressBar::with_draw_target(Some(len), ProgressDrawTarget::hidden())
            .with_style(style)
            .with_message(what.to_owned());
        Bar { bar, waits: self.shown, started: Instant::now() }
    }
}

/// A running progress bar.
#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
    /// Whether it is still to appear.
    waits: bool,
    started: Instant,
}

/// Work shorter than this shows no bar.
const DELAY: Duration = Duration::from_millis(500);

impl Bar {
    /// Moves on by `steps`.
    pub fn advance(&mut self, steps: u64) {
        if self.waits && self.started.elapsed() > DELAY {
            self.waits = false;
            let target = || ProgressDrawTarget::stderr_with_hz(10);
            let bars = BARS.get_or_init(|| MultiProgress::with_draw_target(target()));
            bars.add(self.bar.clone());
        }
        self.bar.inc(steps);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Takes all bars away for good, for a process about to be stopped.
pub fn hide_bars() {
    if let Some(bars) = BARS.get() {
        let _ = bars.clear();
        bars.set_draw_target(ProgressDrawTarget::hidden());
    }
}

/// Writes one line to stderr, above all bars. Where that is closed or full there is nobody to tell.
pub fn tell(line: impl Display) {
    let text = format!("{}\n", line.to_string().trim_end().replace(['\n', '\r'], " "));
    let write = || {
        let _ = io::stderr().write_all(text.as_bytes());
    };
    match BARS.get() {
        Some(bars) => bars.suspend(write),
        None => write(),
    }
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
