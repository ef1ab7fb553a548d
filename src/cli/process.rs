//! The process of the program: parses, runs, reports, exits.

use std::panic::{self, AssertUnwindSafe};

use anyhow::{Result, anyhow};

use crate::{
    engine::{
        hints,
        progress::{print_line, stop_collecting},
        signals,
    },
    gpu::is_driver_loaded,
    io::image::sandbox,
    util::{
        error::{Error, Kind},
        memory,
    },
};

/// Runs the command line of this process, reports its error, and returns the exit code. Ends the process itself if a
/// driver is loaded.
pub fn main() -> u8 {
    if sandbox::serve_if_requested() {
        return 0;
    }
    sandbox::enable();
    #[expect(unsafe_code)]
    // SAFETY: no other thread runs yet. The variable turns off Mesa's device-selection layer, which would
    // connect to a display and complain on stderr if it is missing. gpuproc sorts adapters itself.
    unsafe {
        std::env::set_var("NODEVICE_SELECT", "1");
    };
    // Decoders and drivers may panic. Their callers catch the panic, and -v shows its message.
    panic::set_hook(Box::new(|panic| log::debug!("{panic}")));
    #[cfg(unix)]
    report_crashes();
    let code = match run() {
        Ok(()) => 0,
        // The reader has closed the pipe, as in `gpuproc scan - | head`: not an error.
        Err(error) if error.downcast_ref().is_some_and(Error::is_broken_pipe) => 0,
        Err(error) => {
            let (line, kind) = match error.downcast_ref::<Error>() {
                Some(error) => (hints::line(error), error.kind()),
                None => (format!("{error:#}"), Kind::Failure),
            };
            // With --timings=json, the report may already hold the error; otherwise it is printed here.
            stop_collecting();
            print_line(format_args!("error: {line}"));
            kind.exit_code()
        }
    };
    if is_driver_loaded() {
        signals::exit(code.into());
    }
    code
}

/// Makes crashes of libraries and drivers end the process with one line and a documented exit code. An incomplete
/// output is not left behind on Linux, where it has no name yet; elsewhere it stays as `.part`.
#[cfg(unix)]
fn report_crashes() {
    extern "C" fn crashed(signal: i32) {
        let line = signals::CRASH_SIGNALS.iter().find(|(crash, _)| *crash == signal);
        signals::exit_crashed(line.map_or("", |(_, line)| line));
    }
    for (signal, _) in signals::CRASH_SIGNALS {
        #[expect(unsafe_code)]
        // SAFETY: all zeros is a valid `sigaction`, whose fields are then set as sigaction(2) says. The handler neither
        // allocates nor locks: it writes a constant to a file descriptor, loads an atomic flag and ends the process
        // without exit handlers. It runs on the stack that Rust gives each thread for this, as the overflow of a stack
        // is a crash, too.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = crashed as extern "C" fn(i32) as usize;
            action.sa_flags = libc::SA_ONSTACK;
            // If this fails, the signal ends the process, and the shell reports it.
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

fn run() -> Result<()> {
    super::complete()?;
    let cli = super::parse()?;
    match panic::catch_unwind(AssertUnwindSafe(|| memory::catch(|| super::run(cli)))) {
        Ok(result) => Ok(result?),
        Err(_) => Err(anyhow!("internal error, a bug in gpuproc; -v shows where it happened")),
    }
}
