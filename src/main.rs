//! The `gpuproc` program: parse, run, report, exit.

use std::{panic, process::ExitCode};

use gpuproc::{
    cli,
    error::{Error, Kind},
};

fn main() -> ExitCode {
    // SAFETY: no other thread runs yet. Mesa's device-selection layer would connect to a display and
    // complain on stderr where there is none; adapters are sorted here anyway.
    unsafe { std::env::set_var("NODEVICE_SELECT", "1") };
    // Decoders and drivers may panic; that is caught where they are called, and told with -v only.
    panic::set_hook(Box::new(|panic| log::debug!("{panic}")));
    let cli = cli::parse();
    let result = panic::catch_unwind(|| cli::run(cli)).unwrap_or_else(|_| Err(internal_error()));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // The reader has what it wanted, as in `gpuproc scan - | head`.
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", error.one_line());
            ExitCode::from(error.kind().exit_code())
        }
    }
}

fn internal_error() -> Error {
    Error::new(Kind::Failure, "this is a mistake in gpuproc itself; -v tells where it happened")
}
