//! The same job again on the CPU, in place of a process that a GPU's driver holds up for ever.
//!
//! A thread that a driver does not return from cannot be ended, so no other thread can take what it works on. A new
//! program in the place of this one can: it has the same arguments, standard streams and process id. That is possible
//! as long as nothing is used up and nothing was written.

#![cfg_attr(not(unix), allow(dead_code))]

use std::{
    env,
    ffi::OsString,
    io::{self, Seek, SeekFrom},
    process::Command,
};

use crate::io::standard;

/// Begins this process's job again on the CPU. Returns only where that cannot be done.
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

/// Whether the job can begin again; if so, standard input stands where it stood.
///
/// # Errors
/// When something was written, or a pipe was read from.
fn command() -> io::Result<Command> {
    if let Some(offset) = standard::used()? {
        standard::input()?.seek(SeekFrom::Start(offset))?;
    }
    let mut command = Command::new(env::current_exe()?);
    command.args(without_device(env::args_os().skip(1))).env("GPUPROC_DEVICE", "cpu");
    Ok(command)
}

/// The arguments without `--device`, in whose place the environment names one.
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
