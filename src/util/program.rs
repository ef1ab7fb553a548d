//! The command line of this process, and how the program is started again for a part of its work.

use std::{env, ffi::OsString, io, path::PathBuf, process::Command, sync::OnceLock};

/// A command line that another program, such as Python, runs in its process.
#[derive(Debug)]
struct Hosted {
    /// The host, and its arguments that make it run this program.
    host: PathBuf,
    first: Vec<OsString>,
    /// The name of the program and its arguments.
    words: Vec<OsString>,
}

static HOSTED: OnceLock<Hosted> = OnceLock::new();

/// Runs this program in the process of `host`, which runs it again if its first arguments are `first`. `words` are the
/// name of the program and its arguments. A second call has no effect.
#[cfg(feature = "python")]
pub fn set_host(host: PathBuf, first: Vec<OsString>, words: Vec<OsString>) {
    HOSTED.set(Hosted { host, first, words }).ok();
}

/// The name of the program and its arguments.
pub fn words() -> Vec<OsString> {
    HOSTED.get().map_or_else(|| env::args_os().collect(), |hosted| hosted.words.clone())
}

/// A command that starts this program, without arguments.
pub fn command() -> io::Result<Command> {
    let Some(Hosted { host, first, .. }) = HOSTED.get() else {
        return Ok(Command::new(env::current_exe()?));
    };
    let mut command = Command::new(host);
    command.args(first);
    Ok(command)
}
