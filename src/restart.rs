//! Begins the job again on the CPU when the driver of a GPU hangs.
//!
//! A thread that is stuck in a driver cannot be ended, and the data it holds cannot be taken over by another thread.
//! Therefore the process replaces itself by a new run of the program (exec), which has the same arguments, standard
//! streams and process id. That is possible as long as no input has been used up and no output has been written.

#![cfg_attr(not(unix), allow(dead_code))]

use std::{
    env,
    ffi::OsString,
    io::{self, Seek, SeekFrom},
    process::Command,
};

use crate::io::standard;

/// Begins the job of this process again on the CPU. Returns only if that fails.
pub fn on_the_cpu() -> io::Error {
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        match command() {
            Ok(mut command) => command.exec(),
            Err(error) => error,
        }
    }
    #[cfg(not(unix))]
    io::ErrorKind::Unsupported.into()
}

/// The command that begins the job again. Standard input is set back to where this process found it.
///
/// # Errors
/// When output has been written or a pipe has been read.
fn command() -> io::Result<Command> {
    if let Some(offset) = standard::used()? {
        standard::input()?.seek(SeekFrom::Start(offset))?;
    }
    let mut command = Command::new(env::current_exe()?);
    command.args(without_device(env::args_os().skip(1))).env("GPUPROC_DEVICE", "cpu");
    Ok(command)
}

/// The arguments without `--device`, since the environment names the device of the new run.
fn without_device(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let (mut kept, mut is_value, mut are_names) = (Vec::new(), false, false);
    for argument in arguments {
        are_names |= argument == "--";
        let is_flag = !are_names && argument == "--device";
        let is_both = !are_names && argument.as_encoded_bytes().starts_with(b"--device=");
        if !is_flag && !is_both && !is_value {
            kept.push(argument);
        }
        is_value = is_flag;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_is_left_to_the_environment() {
        let left = |line: &str| {
            let words = without_device(line.split(' ').map(OsString::from));
            words.join(" ".as_ref()).into_string().unwrap()
        };
        assert_eq!(left("blur a b --device auto -s 2"), "blur a b -s 2");
        assert_eq!(left("--device=auto blur a b"), "blur a b");
        assert_eq!(left("blur --devices -- --device b"), "blur --devices -- --device b");
    }
}
