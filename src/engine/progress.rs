//! Messages on stderr, and progress bars below them.

use std::{
    borrow::Cow,
    cell::RefCell,
    fmt::Display,
    io::{self, IsTerminal, Write},
    mem::replace,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::util::timings::Timings;

/// Bars on the terminal, one below the other. Set when the first bar appears.
static BARS: OnceLock<MultiProgress> = OnceLock::new();

/// Number of visible bars.
static VISIBLE_BARS: AtomicUsize = AtomicUsize::new(0);

fn bars() -> &'static MultiProgress {
    let target = || ProgressDrawTarget::stderr_with_hz(10);
    BARS.get_or_init(|| MultiProgress::with_draw_target(target()))
}

/// Creates progress bars, which are shown or hidden.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    is_shown: bool,
}

impl Progress {
    /// Bars are shown on a terminal that can move its cursor, unless `hidden`.
    pub fn new(hidden: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { is_shown: !hidden && !dumb && io::stderr().is_terminal() }
    }

    /// A bar over `len` steps of `title`: `45 %, 12 s left`.
    pub fn bar(&self, title: &str, len: u64) -> Bar {
        Bar::new(self.is_shown, title, len, Unit::Step)
    }

    /// A bar over `len` bytes: `45 %, 2.1 GB/s, 12 s left`.
    pub fn bytes(&self, title: &str, len: u64) -> Bar {
        Bar::new(self.is_shown, title, len, Unit::Byte)
    }

    /// A bar over `files` files of `bytes` bytes together: `37/200, 2.1 GB/s, 12 s left`.
    pub fn files(&self, title: &str, files: usize, bytes: u64) -> Bar {
        Bar::new(self.is_shown, title, bytes, Unit::File { done: 0, of: files })
    }

    /// Shows the current stage of a run and its duration while there is no bar: `encode, 12 s`.
    pub fn stage_line(&self, timings: &Arc<Timings>) -> Option<StageLine> {
        let (stop, stopped) = mpsc::channel();
        let timings = self.is_shown.then(|| timings.clone())?;
        let thread = thread::Builder::new().spawn(move || show_stages(&timings, &stopped)).ok()?;
        Some(StageLine { stop: Some(stop), thread: Some(thread) })
    }
}

/// A line that shows the current stage of a run. It disappears when this value is dropped.
#[derive(Debug)]
pub struct StageLine {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for StageLine {
    fn drop(&mut self) {
        self.stop.take();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Shows the stages of `timings` until `stopped` is closed.
fn show_stages(timings: &Timings, stopped: &Receiver<()>) {
    let (started, mut line) = (Instant::now(), None::<ProgressBar>);
    while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
        let is_shown = started.elapsed() > DELAY && VISIBLE_BARS.load(Relaxed) == 0;
        match timings.current_stage().filter(|_| is_shown) {
            Some((stage, time)) => {
                let new = || ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
                let style = || ProgressStyle::with_template("{msg}").expect("a fixed template");
                let line = line.get_or_insert_with(|| bars().add(new().with_style(style())));
                line.set_message(format!("{stage}, {:.0} s", time.as_secs_f64().ceil()));
            }
            None => line.take().iter().for_each(ProgressBar::finish_and_clear),
        }
    }
    line.iter().for_each(ProgressBar::finish_and_clear);
}

/// Unit in which a bar counts.
#[derive(Clone, Copy, Debug)]
enum Unit {
    Step,
    Byte,
    /// Bytes, with the numbers of finished files and of all files.
    File {
        done: usize,
        of: usize,
    },
}

/// A progress bar, which disappears when it is dropped.
#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
    unit: Unit,
    /// Whether the bar is still to appear.
    is_pending: bool,
    is_visible: bool,
    started: Instant,
}

/// Time before a bar appears, so that short work shows no bar.
const DELAY: Duration = Duration::from_millis(500);

/// Interval at which the current stage is updated.
const TICK: Duration = Duration::from_millis(100);

impl Bar {
    fn new(is_shown: bool, title: &str, len: u64, unit: Unit) -> Self {
        let style =
            ProgressStyle::with_template("{prefix} {wide_bar} {msg}").expect("a fixed template");
        let bar = ProgressBar::with_draw_target(Some(len), ProgressDrawTarget::hidden())
            .with_style(style)
            .with_prefix(title.to_owned());
        // A bar over one file would stay at 0 until the end.
        let is_pending = is_shown && !matches!(unit, Unit::File { of: 1, .. });
        Self { bar, unit, is_pending, is_visible: false, started: Instant::now() }
    }

    /// Advances the bar by `len` steps or bytes.
    pub fn advance(&mut self, len: u64) {
        let elapsed = self.started.elapsed();
        if self.is_pending && elapsed > DELAY {
            self.is_pending = false;
            self.is_visible = true;
            VISIBLE_BARS.fetch_add(1, Relaxed);
            bars().add(self.bar.clone());
        }
        self.bar.inc(len);
        if !self.bar.is_hidden() {
            let (done, len) = (self.bar.position(), self.bar.length().unwrap_or(0));
            self.bar.set_message(status(self.unit, done, len, elapsed));
        }
    }

    /// Advances the bar by one file of `bytes` bytes.
    pub fn file_done(&mut self, bytes: u64) {
        if let Unit::File { done, .. } = &mut self.unit {
            *done += 1;
        }
        self.advance(bytes);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        if self.is_visible {
            VISIBLE_BARS.fetch_sub(1, Relaxed);
        }
    }
}

/// Text next to a bar, such as `45 %, 2.1 GB/s, 12 s left`, after `done` of `len` units in the time `elapsed`.
fn status(unit: Unit, done: u64, len: u64, elapsed: Duration) -> String {
    let share = match unit {
        // All files are empty, or their lengths are unknown.
        Unit::File { done, of } if len == 0 => done as f64 / of.max(1) as f64,
        _ => done as f64 / len.max(1) as f64,
    };
    let position = match unit {
        Unit::File { done, of } => format!("{done}/{of}"),
        _ => format!("{:.0} %", 100.0 * share),
    };
    let mut parts = vec![position];
    let seconds = elapsed.as_secs_f64();
    if !matches!(unit, Unit::Step) && done > 0 {
        parts.push(rate(done as f64 / seconds));
    }
    if share > 0.0 {
        parts.push(time_left(seconds * (1.0 - share) / share));
    }
    parts.join(", ")
}

fn rate(bytes_per_second: f64) -> String {
    match bytes_per_second {
        rate if rate >= 1e9 => format!("{:.1} GB/s", rate / 1e9),
        rate if rate >= 1e6 => format!("{:.0} MB/s", rate / 1e6),
        rate => format!("{:.0} kB/s", rate / 1e3),
    }
}

fn time_left(seconds: f64) -> String {
    match seconds.ceil() {
        seconds if seconds < 120.0 => format!("{seconds:.0} s left"),
        seconds if seconds < 7200.0 => format!("{:.0} min left", seconds / 60.0),
        seconds => format!("{:.0} h left", seconds / 3600.0),
    }
}

/// Removes all bars and prints the collected messages. Called before the process ends.
pub fn hide_bars() {
    stop_collecting();
    if let Some(bars) = BARS.get() {
        let _ = bars.clear();
        bars.set_draw_target(ProgressDrawTarget::hidden());
    }
}

thread_local! {
    /// Lines that [`hold`] keeps back on this thread.
    static HELD: RefCell<Option<HeldMessages>> = const { RefCell::new(None) };
}

/// Messages to be printed later.
#[derive(Debug, Default)]
#[must_use = "messages are lost unless printed"]
pub struct HeldMessages(Vec<String>);

impl HeldMessages {
    /// Prints the messages in order.
    pub fn print(self) {
        self.0.into_iter().for_each(print_line);
    }
}

/// Runs `work`, and returns the messages of this thread instead of printing them.
pub fn hold<T>(work: impl FnOnce() -> T) -> (HeldMessages, T) {
    /// Stops holding messages, also when `work` panics.
    struct Guard;
    impl Drop for Guard {
        fn drop(&mut self) {
            HELD.take();
        }
    }
    let _guard = Guard;
    HELD.set(Some(HeldMessages::default()));
    let result = work();
    (HELD.take().unwrap_or_default(), result)
}

/// Handling of messages.
enum Messages {
    /// Messages are printed at once.
    Printed,
    /// Messages are collected for [`print_report`].
    Collected(Vec<String>),
    /// The report has been printed, and further messages are dropped.
    Reported,
}

static MESSAGES: Mutex<Messages> = Mutex::new(Messages::Printed);

/// Sets the handling of messages. Returns the previous one.
fn handle_messages(new: Messages) -> Messages {
    replace(&mut *MESSAGES.lock().unwrap_or_else(PoisonError::into_inner), new)
}

/// Collects all messages from now on, for [`print_report`].
pub fn collect_messages() {
    handle_messages(Messages::Collected(Vec::new()));
}

/// Runs `work` and returns the messages that all threads print meanwhile. `work` must not panic.
pub fn collect<T>(work: impl FnOnce() -> T) -> (Vec<String>, T) {
    let before = handle_messages(Messages::Collected(Vec::new()));
    let result = work();
    match handle_messages(before) {
        Messages::Collected(messages) => (messages, result),
        Messages::Printed | Messages::Reported => (Vec::new(), result),
    }
}

/// Prints the report that `write` makes of the collected messages. Later messages are dropped.
pub fn print_report(write: impl FnOnce(Vec<String>) -> String) {
    let messages = match handle_messages(Messages::Reported) {
        Messages::Collected(messages) => messages,
        _ => Vec::new(),
    };
    let _ = io::stderr().write_all(format!("{}\n", write(messages)).as_bytes());
}

/// Prints the collected messages instead of a report.
pub fn stop_collecting() {
    let mut state = MESSAGES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Messages::Collected(messages) = &mut *state {
        let messages = std::mem::take(messages);
        *state = Messages::Printed;
        drop(state);
        messages.into_iter().for_each(print_line);
    }
}

/// Escapes control characters in `text`, such as `\u{1b}`, which starts a command to the terminal, and marks that
/// change the direction of text. Names and contents of files may hold them.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unprintable) {
        return text.into();
    }
    let mut shown = String::new();
    for char in text.chars() {
        match is_unprintable(char) {
            true => shown.extend(char.escape_default()),
            false => shown.push(char),
        }
    }
    shown.into()
}

fn is_unprintable(char: char) -> bool {
    let changes_direction =
        matches!(char, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    char.is_control() || changes_direction || matches!(char, '\u{2028}' | '\u{2029}')
}

/// Writes one line to stderr, above all bars, unless [`hold`] or [`collect_messages`] keeps it back. Errors of stderr
/// are ignored.
pub fn print_line(line: impl Display) {
    let line = line.to_string().trim_end().replace(['\n', '\r', '\t'], " ");
    let line = printable(&line).into_owned();
    let held = HELD.with_borrow_mut(|held| match held {
        Some(HeldMessages(lines)) => {
            lines.push(line.clone());
            true
        }
        None => false,
    });
    if held {
        return;
    }
    match &mut *MESSAGES.lock().unwrap_or_else(PoisonError::into_inner) {
        Messages::Printed => {}
        Messages::Collected(messages) => return messages.push(line),
        Messages::Reported => return,
    }
    let write = || {
        let _ = io::stderr().write_all(format!("{}\n", colored(&line)).as_bytes());
    };
    match BARS.get() {
        Some(bars) => bars.suspend(write),
        None => write(),
    }
}

/// Colours the kind of a message at the start of its line, such as `error:`.
fn colored(line: &str) -> Cow<'_, str> {
    let kinds = [("error:", "31"), ("warning:", "33"), ("hint:", "36")];
    let kind =
        kinds.into_iter().find_map(|(kind, colour)| Some((kind, colour, line.strip_prefix(kind)?)));
    match kind.filter(|_| has_colours(&io::stderr())) {
        Some((kind, colour, rest)) => format!("\x1b[1;{colour}m{kind}\x1b[0m{rest}").into(),
        None => line.into(),
    }
}

/// Whether `stream` is a terminal that shows colours, and `NO_COLOR` is not set.
pub fn has_colours(stream: &impl IsTerminal) -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    stream.is_terminal() && !set("NO_COLOR") && !dumb
}

struct Stderr;

impl log::Log for Stderr {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        // Records of drivers and libraries are shown only with -vv.
        metadata.target().starts_with("gpuproc") || log::max_level() == log::LevelFilter::Trace
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            match record.level() {
                log::Level::Error => print_line(format_args!("error: {}", record.args())),
                log::Level::Warn => print_line(format_args!("warning: {}", record.args())),
                _ => print_line(record.args()),
            }
        }
    }

    fn flush(&self) {}
}

/// Sends `log` records to stderr: summaries by default, only errors if `quiet`, details if `verbose` is 1, and also
/// records of drivers and libraries if it is 2 or more.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_shows_progress_speed_and_time_left() {
        let half_a_second = Duration::from_millis(500);
        let files = |done, bytes, of_bytes| {
            status(Unit::File { done, of: 200 }, bytes, of_bytes, half_a_second)
        };
        assert_eq!(files(37, 1 << 30, 25 << 30), "37/200, 2.1 GB/s, 12 s left");
        assert_eq!(files(50, 0, 0), "50/200, 2 s left");
        assert_eq!(files(0, 0, 0), "0/200");
        assert_eq!(
            status(Unit::Byte, 5_000_000, 10_000_000, half_a_second),
            "50 %, 10 MB/s, 1 s left"
        );
        assert_eq!(status(Unit::Step, 1, 1000, half_a_second), "0 %, 8 min left");
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("a\u{1b}[2J\u{9b}b\n"), "a\\u{1b}[2J\\u{9b}b\\n");
        assert_eq!(printable("gnp.\u{202e}exe"), "gnp.\\u{202e}exe");
        assert!(matches!(printable("größe 5 µm.png"), Cow::Borrowed(_)));
    }

    #[test]
    fn held_messages_are_those_of_the_work() {
        let (held, result) = hold(|| {
            print_line("one");
            print_line(format_args!("two\n{}", 3));
            4
        });
        assert_eq!((held.0, result), (vec!["one".to_owned(), "two 3".to_owned()], 4));
        assert!(std::panic::catch_unwind(|| hold(|| panic!("in the work"))).is_err());
        assert!(HELD.with_borrow(Option::is_none));
    }
}
