//! The top-level parser, the flags that all commands share, and the session that is made from these flags.

mod chain;
mod config;
mod help;
mod process;
mod usage;
mod values;

use std::{
    env,
    ffi::OsString,
    mem::take,
    process::exit,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use clap::{
    ArgAction, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, ValueEnum,
    error::ErrorKind, parser::ValueSource,
};
use clap_complete::env::{CompleteEnv, Shells};

pub use self::process::main;
pub(crate) use self::values::{free_memory, parse_size};
use self::values::{parse_count, parse_seconds};
use crate::{
    commands::{Command, completions, man, serve, table::window},
    device::{Device, DeviceChoice},
    engine::{
        events::Events,
        hints,
        progress::{Progress, collect_messages, print_line, print_report, start_messages},
        restart::has_restarted,
        session::Session,
        signals,
    },
    guide::CHAPTERS,
    io::{Sink, folders, standard},
    util::{
        error::{Error, Kind, Result},
        program, simd,
        thread_pool::start_pool,
        timings::Timings,
    },
};

/// Blur, measure, sum and mesh images and volumes on the GPU, or on the CPU with the same results.
#[derive(Debug, Parser)]
#[command(name = "gpuproc", version, after_help = MORE, after_long_help = EXIT_CODES, disable_help_subcommand = true)]
#[command(args_override_self = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    /// The commands before it in a chain.
    #[arg(skip)]
    steps: Vec<Command>,
    #[command(flatten)]
    shared: Shared,
    /// Messages about flags from the environment, for `--verbose`.
    #[arg(skip)]
    notes: Vec<String>,
    /// The names of the flags that come from the environment.
    #[arg(skip)]
    defaults: Vec<String>,
}

/// The end of the output of `gpuproc -h`.
const MORE: &str = "\
gpuproc COMMAND -h      shows the options used most
gpuproc COMMAND --help  shows all options of a command
gpuproc help SUBJECT    shows a chapter of the guide: a command, chains, volumes,
                        zarr, pages, python, shell, scripts, scaling or speed
gpuproc --help          shows the exit codes and the shared options";

const EXIT_CODES: &str = "\
Exit codes:
    0  done
    1  failure
    2  wrong usage
    3  some files of several failed
    4  an input cannot be used
    5  no such device
    6  the GPU failed
    7  a file cannot be read or written
  124  --timeout has passed
Trying again cannot help after 2, 4 and 5; it may help after 1, 3 (with
--resume), 6, 7, 124, and after a signal.

A file named - is standard input or standard output. Data goes to standard
output, all else to standard error. NO_COLOR and TERM=dumb are respected.

Flags may also be given in GPUPROC_FLAGS, and in the file that
GPUPROC_CONFIG_PATH names: one argument per line, # begins a comment, and lines
below [blur mesh] are for these commands only. The command line has precedence,
then GPUPROC_DEVICE, then GPUPROC_FLAGS, then the file.

gpuproc help SUBJECT shows a chapter of the guide: a command, chains, volumes,
zarr, pages, python, shell, scripts, scaling or speed.";

/// Flags of every command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Shared options")]
pub struct Shared {
    /// Device: auto, cpu, gpu, all, or a number or name from `gpuproc devices`
    ///
    /// auto takes a hardware GPU where it is estimated to be faster, else the CPU. gpu also takes a software driver.
    /// all takes every GPU like the first. A part of a name is enough.
    #[arg(long, global = true, env = "GPUPROC_DEVICE", default_value = "auto")]
    #[arg(value_name = "DEVICE", hide_env_values = true, add = completions::devices())]
    pub device: DeviceChoice,

    /// Report on stderr how long each stage and each GPU pass took
    #[arg(long, global = true, value_name = "FORMAT", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "table")]
    pub timings: Option<TimingsFormat>,

    /// Number of CPU threads, at most four per core [default: one per core]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,

    /// Limit of the memory of inputs and results, such as 512M or 4G [default: half of the free memory]
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_size)]
    pub max_memory: Option<u64>,

    /// Limit of the pixels of an input, such as 100M [default: what memory allows]
    ///
    /// Pixels of an image, or samples of a volume.
    #[arg(long, global = true, value_name = "N", value_parser = parse_count)]
    pub max_pixels: Option<u64>,

    /// Stop after this many seconds, with exit code 124 and no output
    #[arg(long, global = true, value_name = "SECONDS", value_parser = parse_seconds)]
    pub timeout: Option<Duration>,

    /// Append a line of JSON to FILE for each event
    ///
    /// Events are start, file, error and end, with times and bytes.
    #[arg(long, global = true, value_name = "FILE")]
    pub log_json: Option<Sink>,

    /// Print errors only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Print details; given twice, also messages of drivers
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,

    /// Fail instead of warning about damage and losses
    ///
    /// Damage: a part of an input is missing or damaged. Loss: the format of an output cannot store the depth,
    /// alpha, colour profile, EXIF, spacing or orientation of the input.
    #[arg(long, global = true)]
    pub strict: bool,

    /// Fail instead of replacing an existing file
    #[arg(long, global = true)]
    pub no_clobber: bool,

    /// Show no progress bar
    #[arg(long, global = true)]
    pub no_progress: bool,
}

/// How `--timings` are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TimingsFormat {
    /// A table.
    Table,
    /// One line of JSON.
    Json,
}

/// Width of the help in columns if there is no terminal, and its maximum width.
const COLUMNS: [usize; 2] = [80, 100];

/// The parser of all commands. Its help fits the width of the terminal.
pub fn command() -> clap::Command {
    let width = terminal_size::terminal_size().map_or(COLUMNS[0], |(width, _)| width.0.into());
    let parser = Cli::command().term_width(width.min(COLUMNS[1])).long_version(&*version().leak());
    let names: Vec<String> =
        parser.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    names.into_iter().fold(parser, |parser, name| {
        parser.mut_subcommand(name, |command| command.mut_args(with_negative_numbers))
    })
}

/// Lets a flag take a negative number as its value, so that the parser of the value reports an invalid one. Otherwise
/// clap would report an unknown flag.
fn with_negative_numbers(arg: clap::Arg) -> clap::Arg {
    let takes =
        arg.get_long().is_some() && matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    if takes { arg.allow_negative_numbers(true) } else { arg }
}

/// The text of `--version`: version, commit, features and SIMD level.
fn version() -> String {
    let commit = match option_env!("GPUPROC_COMMIT") {
        Some(commit) if !commit.is_empty() => format!(" ({commit})"),
        _ => String::new(),
    };
    let features = [
        ("cli", true),
        ("http", cfg!(feature = "http")),
        ("jpeg2000", cfg!(feature = "jpeg2000")),
        ("jxl", cfg!(feature = "jxl")),
        ("webp-lossy", cfg!(feature = "webp-lossy")),
        ("zstd-c", cfg!(feature = "zstd-c")),
    ];
    let features: Vec<&str> =
        features.into_iter().filter(|feature| feature.1).map(|feature| feature.0).collect();
    let features = features.join(", ");
    let (level, levels) = (simd::level(), simd::levels().join(", "));
    let version = env!("CARGO_PKG_VERSION");
    format!("{version}{commit}\nfeatures: {features}\nSIMD: {level}, of {levels}")
}

/// Prints completions and ends the process if a shell has asked for them.
pub fn complete() -> Result<()> {
    let parser = || completions::with_hints(command());
    let shells =
        CompleteEnv::with_factory(parser).var(completions::VARIABLE).shells(Shells::builtins());
    let completed = shells
        .bin("gpuproc")
        .completer("gpuproc")
        .try_complete(chain::hide_steps(program::words()), env::current_dir().ok().as_deref());
    match completed {
        Ok(false) => Ok(()),
        Ok(true) => exit(0),
        Err(error) => Err(Error::usage(error.to_string())),
    }
}

/// Parses the command line with the flags from the environment. Help, version and usage errors are printed here, and
/// the process ends.
pub fn parse() -> Result<Cli> {
    let mut parser = help::arrange(command());
    parser.build();
    let words = without_help(program::words());
    if let [_, word, subject] = &*program::words()
        && word == "help"
        && let Some(chapter) = CHAPTERS.iter().find(|chapter| *subject == chapter.name)
    {
        let chapter = man::text(chapter.text, window().0.min(COLUMNS[1]));
        standard::print(&chapter)?;
        if parser.find_subcommand(subject).is_some() {
            standard::print(&format!("\nAll options: gpuproc {} --help\n", subject.display()))?;
        }
        exit(0);
    }
    if words.len() < 2 {
        parser.render_help().to_string().lines().for_each(print_line);
        exit(Kind::Usage.exit_code().into());
    }
    let lines = chain::divide(&words);
    if lines.len() > 1 {
        let mut last = config::Line::default();
        let matches = chain::parse(command, lines, &mut |command, words| {
            last = config::with_flags(&parser, words)?;
            let matches = help::arrange(command).try_get_matches_from(&last.words);
            let names = last.origins.iter().map(|(name, _)| name.clone()).collect();
            Ok((matches.or_else(|error| usage::exit(&parser, &error, &last))?, names))
        })?;
        let cli = Cli::from_steps(&matches).or_else(|error| usage::exit(&parser, &error, &last))?;
        return Ok(cli.with_flags_of(last));
    }
    let mut line = config::with_flags(&parser, words)?;
    // The parser takes the words, of which there may be many.
    match help::arrange(command())
        .try_get_matches_from(take(&mut line.words))
        .and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches))
    {
        Ok(cli) => Ok(cli.with_flags_of(line)),
        Err(error) => {
            let words = without_help(program::words());
            usage::exit(&parser, &error, &config::with_flags(&parser, words)?)
        }
    }
}

impl Cli {
    /// The command line with the flags of its steps, of which the last has the files.
    fn from_steps(matches: &[ArgMatches]) -> Result<Self, clap::Error> {
        let mut all: Vec<Self> =
            matches.iter().map(Self::from_arg_matches).collect::<Result<_, _>>()?;
        let last = all.pop().expect("a command line has a command");
        Ok(Self { steps: all.into_iter().map(|step| step.command).collect(), ..last })
    }

    /// The same with notes about the flags from the environment in `line`.
    fn with_flags_of(self, line: config::Line) -> Self {
        let defaults = line.origins.into_iter().map(|(name, _)| name).collect();
        Self { notes: line.notes, defaults, ..self }
    }
}

/// Rewrites `gpuproc help blur` to `gpuproc blur --help`.
fn without_help(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        words.truncate(2);
        words.push("--help".into());
    }
    words
}

/// Parses `arguments`, the first of which is the name of the program, and runs the command in this
/// process. For tests and fuzzing.
pub fn run_from<T: Into<OsString> + Clone>(arguments: impl IntoIterator<Item = T>) -> Result<()> {
    let words = arguments.into_iter().map(Into::into).collect();
    run_with(Cli::from_steps(&job_matches(words)?).map_err(Error::usage)?)?.1
}

/// Runs the command and reports its timings. The device stays open, since the process is about to end.
pub fn run(cli: Cli) -> Result<()> {
    // Signals are handled only here: where commands run inside another program, they belong to that program.
    signals::exit_on_signals();
    if let Command::Serve(args) = &cli.command
        && !serve::is_worker()
    {
        return serve::supervise(args);
    }
    let (device, result) = run_with(cli)?;
    device.leak();
    result
}

/// Flags that apply to the whole process, so that a job of `serve` cannot set them.
const PROCESS_FLAGS: [(&str, &str); 7] = [
    ("device", "--device"),
    ("threads", "--threads"),
    ("timeout", "--timeout"),
    ("timings", "--timings"),
    ("log_json", "--log-json"),
    ("quiet", "--quiet"),
    ("verbose", "--verbose"),
];

/// The parser for the jobs of `serve`. It is made once, because making it takes longer than a small job.
fn cached_parser() -> MutexGuard<'static, clap::Command> {
    static PARSER: LazyLock<Mutex<clap::Command>> = LazyLock::new(|| {
        let mut parser = command();
        parser.build();
        Mutex::new(parser)
    });
    PARSER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the command line `words`, without the name of the program, on the device of `session`: a job of `serve`.
fn run_line(session: &Session, words: Vec<OsString>) -> Result<()> {
    let all = job_matches(std::iter::once("gpuproc".into()).chain(words).collect())?;
    let matches = all.last().expect("a command line has a command");
    let given = |matches: &ArgMatches, id| {
        matches.try_contains_id(id).is_ok_and(|is_present| is_present)
            && matches.value_source(id) == Some(ValueSource::CommandLine)
    };
    let inner = matches.subcommand().map(|(_, inner)| inner);
    let flag = PROCESS_FLAGS
        .into_iter()
        .find(|(id, _)| given(matches, id) || inner.is_some_and(|inner| given(inner, id)));
    if let Some((_, flag)) = flag {
        return Err(Error::usage(format_args!(
            "{flag} cannot be set per job; pass it to gpuproc serve"
        )));
    }
    let Cli { command: job, steps, shared, .. } = Cli::from_steps(&all).map_err(Error::usage)?;
    if matches!(job, Command::Serve(_)) {
        return Err(Error::usage("a job cannot be gpuproc serve"));
    }
    let session = Session {
        device: session.device.clone(),
        timings: session.timings.clone(),
        events: session.events.clone(),
        progress: Progress::new(true),
        max_memory: shared.max_memory.unwrap_or(session.max_memory),
        max_tables: u64::MAX,
        has_noted_distortion: Arc::default(),
        max_pixels: shared.max_pixels.unwrap_or(session.max_pixels),
        strict: shared.strict || session.strict,
        no_clobber: shared.no_clobber || session.no_clobber,
        defaults: Vec::new(),
    };
    run_steps(job, steps, &session)
}

/// Parses `words`, which begin with the name of the program, without flags from the environment. Returns the flags of
/// each step of a chain.
fn job_matches(words: Vec<OsString>) -> Result<Vec<ArgMatches>> {
    let parse = |parser: &mut clap::Command, words| {
        let line = config::Line { words, ..config::Line::default() };
        parser.try_get_matches_from_mut(&line.words).map_err(|error| {
            Error::usage(match error.kind() {
                ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                    "a command is missing".into()
                }
                _ if usage::is_answer(&error) => "a job cannot be --help or --version".into(),
                _ => usage::one_line(&error, &line),
            })
        })
    };
    let lines = chain::divide(&words);
    if lines.len() == 1 {
        return Ok(vec![parse(&mut cached_parser(), words)?]);
    }
    chain::parse(command, lines, &mut |mut parser, words| {
        Ok((parse(&mut parser, words)?, Vec::new()))
    })
}

/// Runs `job` on the results of `steps`, if there are any.
fn run_steps(job: Command, steps: Vec<Command>, session: &Session) -> Result<()> {
    let result = if steps.is_empty() {
        job.run(session, command, run_line)
    } else {
        job.run_after(steps, session)
    };
    result.inspect_err(|_| drop(folders::remove_empty()))
}

/// Runs the command and reports its timings. Returns the device and the result of the command.
fn run_with(cli: Cli) -> Result<(Arc<Device>, Result<()>)> {
    let Cli { command: job, steps, mut shared, notes, defaults } = cli;
    if has_restarted() {
        shared.device = DeviceChoice::Cpu;
    }
    start_messages(shared.quiet, shared.verbose);
    notes.iter().for_each(|note| log::debug!("{note}"));
    if shared.timings == Some(TimingsFormat::Json) {
        collect_messages();
    }
    if let Some(limit) = shared.timeout {
        signals::exit_after(limit)?;
    }
    let computes = job.needs_device();
    if job.needs_threads() || shared.threads.is_some() {
        start_pool(shared.threads.map(usize::from))?;
    }
    if !computes || shared.device != DeviceChoice::Cpu {
        signals::exit_on_hang(computes && shared.device == DeviceChoice::Auto);
    }
    let timings = Arc::new(Timings::new(shared.timings.is_some()));
    let choice = if computes { &shared.device } else { &DeviceChoice::Cpu };
    let device = Device::new(choice, timings.clone());
    if computes && job.opens_device() {
        device.start();
    }
    let device = Arc::new(device);
    let session = Session {
        device,
        timings: timings.clone(),
        events: Arc::new(Events::new(shared.log_json)),
        progress: Progress::new(shared.no_progress || shared.quiet),
        max_memory: shared.max_memory.unwrap_or_else(free_memory),
        max_tables: u64::MAX,
        has_noted_distortion: Arc::default(),
        max_pixels: shared.max_pixels.unwrap_or(u64::MAX),
        strict: shared.strict,
        no_clobber: shared.no_clobber,
        defaults,
    };
    session.events.start(job.name());
    let opened = if job.names_files() { Ok(()) } else { session.events.open() };
    let result = opened.and_then(|()| run_steps(job, steps, &session));
    session.events.end(&result);
    match shared.timings {
        Some(TimingsFormat::Table) => timings.table().lines().for_each(print_line),
        Some(TimingsFormat::Json) => {
            let mut json = timings.json(session.device.name().as_deref());
            if let Err(error) = &result {
                json["error"] = hints::line(error).into();
            }
            print_report(|messages| {
                json["messages"] = messages.into();
                json.to_string()
            });
        }
        None => {}
    }
    Ok((session.device, result))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
