//! `gpuproc serve`: runs job after job in one process, which keeps its device, threads and memory between jobs.
//!
//! Jobs run in a child process, the worker, to which this process sends one line at a time. If a driver or a library
//! ends the worker, this process answers that the job has failed, and a new worker runs the next job.

use std::{
    env,
    ffi::OsString,
    io::{self, BufRead, BufReader, Read, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio},
    time::Instant,
};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    engine::{hints, progress, session::Session, signals},
    io::{Source, standard},
    util::{
        error::{Error, Kind, Result},
        memory, program,
    },
};

/// A function that runs a command line (without the program's name) in a new session on the same device.
pub type RunLine = fn(&Session, Vec<OsString>) -> Result<()>;

/// Run jobs in one process, with jobs and answers as lines of JSON.
///
/// For engines with long-lived workers: device, shaders, threads and memory stay ready between jobs, and each job
/// may use all of them. A job is {"arguments": [...]} with the words after `gpuproc`, and may have an "id". The
/// answer has the same "id", "code" (an exit code), "seconds" and "messages". If the job has failed, it also has
/// "error" and "retry" (whether trying again may help). Jobs cannot use standard input and output. A line may be up
/// to 1 MiB long.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  echo '{\"arguments\": [\"blur\", \"photo.jpg\", \"soft.jpg\"]}' | gpuproc serve")]
pub struct Args {
    /// File of jobs, one per line; - is standard input
    ///
    /// gpuproc exits at its end.
    #[arg(long, value_name = "FILE", default_value = "-")]
    jobs: Source,
}

#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    id: Value,
    arguments: Vec<String>,
}

/// Longest line of a job, in bytes.
const MAX_LINE: usize = 1 << 20;

/// Set in the environment of the worker.
const WORKER: &str = "GPUPROC_SERVE_WORKER";

/// Whether this process is the worker of another one.
pub fn is_worker() -> bool {
    env::var_os(WORKER).is_some()
}

/// Runs jobs in this process and writes an answer to each. A job that fails is an answer, not an error.
pub fn run(args: Args, session: &Session, run_line: RunLine) -> Result<()> {
    session.check_files(|roles| roles.reads("--jobs", &args.jobs))?;
    let mut answers = standard::output().map_err(cannot_answer)?;
    let jobs = if is_worker() { Source::Stdin } else { args.jobs };
    let input = jobs.open()?;
    standard::reserve();
    if is_worker() {
        end_with_parent();
        // The parent waits for this line.
        answers.write_all(b"\n").map_err(cannot_answer)?;
    }
    for_each_line(input, &jobs, |line| {
        let answer = match line {
            Ok(line) => run_job(line, session, run_line),
            Err(error) => answer(Value::Null, Instant::now(), Vec::new(), &Err(error)),
        };
        answers.write_all(answer.as_bytes()).map_err(cannot_answer)
    })
}

/// Sends jobs to a worker and writes an answer to each, also if the worker ends before it has answered. If a worker
/// fails at its start or at its end and has reported the reason, this process ends with the exit code of the worker.
pub fn supervise(args: &Args) -> Result<()> {
    let mut answers = standard::output().map_err(cannot_answer)?;
    let input = args.jobs.open()?;
    let mut worker = Some(Worker::start()?);
    for_each_line(input, &args.jobs, |line| {
        let started = Instant::now();
        let failed = |id, error| answer(id, started, Vec::new(), &Err(error));
        let (answer, status) = match line {
            Ok(line) => match worker.take().map_or_else(Worker::start, Ok)?.answer(line) {
                Ok((same, answer)) => {
                    worker = Some(same);
                    (answer, None)
                }
                Err(status) => {
                    let id =
                        serde_json::from_slice::<Request>(line).map_or(Value::Null, |job| job.id);
                    (failed(id, ended(status)), Some(status))
                }
            },
            Err(error) => (failed(Value::Null, error), None),
        };
        answers.write_all(answer.as_bytes()).map_err(cannot_answer)?;
        match status.and_then(|status| status.code()) {
            Some(signals::TIMED_OUT) => signals::exit(signals::TIMED_OUT),
            _ => Ok(()),
        }
    })?;
    worker.map_or(Ok(()), Worker::end)
}

fn cannot_answer(error: io::Error) -> Error {
    Error::io("write", standard::OUTPUT, error)
}

/// Error of a job whose worker has ended.
fn ended(status: ExitStatus) -> Error {
    let is_gpu = status.code() == Some(Kind::Gpu.exit_code().into());
    let kind = if is_gpu { Kind::Gpu } else { Kind::Failure };
    Error::new(kind, format_args!("the process that ran the job has ended: {status}"))
}

/// Calls `each` with every line that is not blank. For a line that is too long, calls it with an error and skips the
/// rest of the line.
fn for_each_line(
    input: impl Read,
    name: &Source,
    mut each: impl FnMut(Result<&[u8]>) -> Result<()>,
) -> Result<()> {
    let (mut input, mut line) = (BufReader::new(input), Vec::new());
    for number in 1.. {
        line.clear();
        let read = (&mut input).take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line);
        let is_too_long = line.len() > MAX_LINE && !line.ends_with(b"\n");
        let skipped = if is_too_long { input.skip_until(b'\n') } else { Ok(0) };
        read.and(skipped).map_err(|error| Error::io("read", name.to_string(), error))?;
        match &line[..] {
            [] => break,
            _ if is_too_long => {
                let error =
                    format_args!("line {number} is longer than {MAX_LINE} bytes, the maximum");
                each(Err(Error::usage(error)))?;
            }
            line if line.trim_ascii().is_empty() => {}
            line => each(Ok(line))?,
        }
    }
    Ok(())
}

/// Runs the job that a line describes and returns the answer.
fn run_job(line: &[u8], session: &Session, run_line: RunLine) -> String {
    let (started, job) = (Instant::now(), serde_json::from_slice::<Request>(line));
    let (id, messages, result) = match job {
        Err(error) => (Value::Null, Vec::new(), Err(Error::usage("invalid job").caused_by(error))),
        Ok(Request { id, arguments }) => {
            let words = arguments.into_iter().map(OsString::from).collect();
            let work = || memory::catch(|| run_line(session, words));
            let (messages, result) = progress::collect(|| catch_unwind(AssertUnwindSafe(work)));
            let mistake = "this is a bug in gpuproc; -v shows where it happened";
            (id, messages, result.unwrap_or_else(|_| Err(Error::new(Kind::Failure, mistake))))
        }
    };
    session.timings.forget_results();
    answer(id, started, messages, &result)
}

/// The line that answers a job.
fn answer(id: Value, started: Instant, messages: Vec<String>, result: &Result<()>) -> String {
    let mut answer = json!({
        "id": id,
        "code": result.as_ref().err().map_or(0, |error| error.kind().exit_code()),
        "seconds": started.elapsed().as_secs_f64(),
        "messages": messages,
    });
    if let Err(error) = result {
        answer["error"] = hints::line(error).into();
        answer["retry"] = error.kind().is_retryable().into();
    }
    format!("{answer}\n")
}

/// The process that runs jobs.
#[derive(Debug)]
struct Worker {
    process: Child,
    jobs: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts a worker with the arguments of this process and waits until it is ready.
    fn start() -> Result<Self> {
        let failed = |error| Error::new(Kind::Failure, "cannot start a worker").caused_by(error);
        let mut command = program::command().map_err(failed)?;
        command.args(program::words().into_iter().skip(1)).env(WORKER, "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(failed)?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (jobs, answers) = pipes.expect("both are piped");
        let mut worker = Self { process, jobs, answers: BufReader::new(answers) };
        match worker.answers.skip_until(b'\n') {
            Ok(1) => Ok(worker),
            // The worker has reported the reason.
            _ => worker.end().and_then(|()| Err(failed(io::ErrorKind::UnexpectedEof.into()))),
        }
    }

    /// Sends `line` to the worker, and returns the worker and its answer. If the worker has ended, the error is its
    /// exit status.
    fn answer(mut self, line: &[u8]) -> Result<(Self, String), ExitStatus> {
        let mut answer = String::new();
        let line = [line.trim_ascii_end(), b"\n"].concat();
        let written = self.jobs.write_all(&line);
        let read = written.and_then(|()| self.answers.read_line(&mut answer));
        match read {
            Ok(_) if answer.ends_with('\n') => Ok((self, answer)),
            _ => Err(self.wait()),
        }
    }

    /// Waits for the end of the worker. If it has failed, ends this process with the same exit code.
    fn end(self) -> Result<()> {
        match self.wait() {
            status if status.success() => Ok(()),
            status => signals::exit(status.code().unwrap_or(Kind::Failure.exit_code().into())),
        }
    }

    /// Closes the pipes, which makes the worker end, and waits for it.
    fn wait(self) -> ExitStatus {
        let Self { mut process, jobs, answers } = self;
        drop((jobs, answers));
        process.wait().unwrap_or_default()
    }
}

/// Makes this process end when its parent ends, even while it runs a job.
fn end_with_parent() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, set_parent_process_death_signal};
        let _ = set_parent_process_death_signal(Some(Signal::TERM));
    }
}
