//! Restarts the job on the CPU when the driver of a GPU hangs.
//!
//! A thread that is stuck in a driver cannot be ended, and another thread cannot take over its data. Therefore the
//! process replaces itself by a new run of the program (exec) with the same arguments, standard streams and process id.
//! That is possible until input from a pipe has been read or output has been written.

use std::{
    env,
    io::{self, Seek, SeekFrom},
};

use crate::{io::standard, util::program};

/// Set in the environment of the new run.
const RESTARTED: &str = "GPUPROC_RESTARTED";

/// Whether this run repeats a job on the CPU, whichever device its arguments name.
pub fn has_restarted() -> bool {
    env::var_os(RESTARTED).is_some()
}

/// Repeats the job of this process on the CPU. Returns only on failure: if output has been written, a pipe has been
/// read, or the system has no exec.
pub fn restart_on_cpu() -> io::Error {
    let command = || {
        // The new run reads standard input from the position at the start of this process.
        if let Some(offset) = standard::restart_offset()? {
            standard::input()?.seek(SeekFrom::Start(offset))?;
        }
        let mut command = program::command()?;
        command.args(program::words().into_iter().skip(1)).env(RESTARTED, "1");
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
