//! Begins the job again on the CPU when the driver of a GPU hangs.
//!
//! A thread that is stuck in a driver cannot be ended, and the data it holds cannot be taken over by another thread.
//! Therefore the process replaces itself by a new run of the program (exec), which has the same arguments, standard
//! streams and process id. That is possible as long as no input has been used up and no output has been written.

use std::{
    env,
    io::{self, Seek, SeekFrom},
    process::Command,
};

use crate::io::standard;

/// Set in the environment of the new run.
const RESTARTED: &str = "GPUPROC_RESTARTED";

/// Whether this run repeats, on the CPU, a job that another run has begun, whichever device its arguments name.
pub fn has_restarted() -> bool {
    env::var_os(RESTARTED).is_some()
}

/// Repeats the job of this process on the CPU. Returns only if this fails: if output has been written, a pipe has been
/// read, or the system has no exec.
pub fn on_the_cpu() -> io::Error {
    let command = || {
        // Standard input is set back to its position at the start of this process.
        if let Some(offset) = standard::restart_offset()? {
            standard::input()?.seek(SeekFrom::Start(offset))?;
        }
        let mut command = Command::new(env::current_exe()?);
        command.args(env::args_os().skip(1)).env(RESTARTED, "1");
        Ok(command)
    };
    match command() {
        Err(error) => error,
        #[cfg(unix)]
        Ok(mut command) => std::os::unix::process::CommandExt::exec(&mut command),
        #[cfg(not(unix))]
        Ok(_) => io::ErrorKind::Unsupported.into(),
    }
}
