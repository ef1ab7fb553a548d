//! `gpuproc serve`: runs job after job in one process, which keeps its device, threads and memory between jobs.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    time::Instant,
};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    error::{Error, Kind, Result},
    hints,
    io::{Source, standard},
    memory, progress,
    session::Session,
};

/// A function that runs a command line (without the program's name) in a session of its own on the same device.
pub type RunLine = fn(&Session, Vec<OsString>) -> Result<()>;

/// Run jobs in one process, with jobs and answers as lines of JSON.
///
/// For engines with long-lived workers: device, shaders, threads and memory stay ready between jobs, and each job may
/// use all of them. A job is {"arguments": [...]} with the words after `gpuproc`; an "id" is returned in the answer,
/// beside "code" (an exit code), "seconds", "messages" and, if the job has failed, "error" and "retry" (whether trying
/// again may help). Jobs cannot use standard input and output.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  echo '{\"arguments\": [\"blur\", \"photo.jpg\", \"soft.jpg\"]}' | gpuproc serve")]
pub struct Args {
    /// Where jobs come from; - is standard input, whose end ends the process
    #[arg(long, value_name = "FILE", default_value = "-")]
    jobs: Source,
}

#[derive(Deserialize)]
struct Job {
    #[serde(default)]
    id: Value,
    arguments: Vec<String>,
}

/// Longest line of a job, in bytes.
const LONGEST: u64 = 64 << 20;

/// Reads jobs, runs them and writes an answer to each.
///
/// # Errors
/// When jobs cannot be read or answers cannot be written. A job that fails is an answer, not an error.
pub fn run(args: Args, session: &Session, run_line: RunLine) -> Result<()> {
    let failed = |error| Error::io("write", standard::OUTPUT, error);
    let mut answers = standard::output().map_err(failed)?;
    let mut jobs = BufReader::new(args.jobs.open()?);
    standard::reserve();
    loop {
        let mut line = Vec::new();
        let read = (&mut jobs).take(LONGEST).read_until(b'\n', &mut line);
        if read.map_err(|error| Error::io("read", args.jobs.to_string(), error))? == 0 {
            return Ok(());
        }
        if !line.trim_ascii().is_empty() {
            answer(&mut answers, &line, session, run_line).map_err(failed)?;
        }
    }
}

/// Runs one job and writes its answer without delay.
fn answer(to: &mut File, line: &[u8], session: &Session, run_line: RunLine) -> io::Result<()> {
    let (started, job) = (Instant::now(), serde_json::from_slice::<Job>(line));
    let (id, messages, result) = match job {
        Err(error) => (Value::Null, Vec::new(), Err(Error::usage("no job").caused_by(error))),
        Ok(Job { id, arguments }) => {
            let words = arguments.into_iter().map(OsString::from).collect();
            let work = || memory::catch(|| run_line(session, words));
            let (held, result) = progress::hold(|| catch_unwind(AssertUnwindSafe(work)));
            let mistake = "this is a mistake in gpuproc itself; -v tells where it happened";
            (id, held.lines(), result.unwrap_or_else(|_| Err(Error::new(Kind::Failure, mistake))))
        }
    };
    session.timings.forget_results();
    let mut answer = json!({
        "id": id,
        "code": result.as_ref().err().map_or(0, |error| error.kind().exit_code()),
        "seconds": started.elapsed().as_secs_f64(),
        "messages": messages,
    });
    if let Err(error) = &result {
        answer["error"] = hints::line(error).into();
        answer["retry"] = error.kind().may_pass().into();
    }
    to.write_all(format!("{answer}\n").as_bytes())
}
