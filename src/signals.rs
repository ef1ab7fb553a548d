//! Ends of the process before its work is done: signals, `--timeout`, aborts in libraries and drivers.
//! No part of an output stays behind.

use std::{sync::Arc, thread, time::Duration};

use crate::{
    error::Kind,
    io::abandon_outputs,
    progress::{hide_bars, tell},
};

/// The exit code of a job that took too long: that of timeout(1).
const TIMED_OUT: i32 = 124;

/// Removes unfinished outputs on SIGINT, SIGTERM and SIGHUP, then lets the signal end the process as it
/// would have done without this. May be called more than once.
#[cfg(unix)]
pub fn exit_on_signals() {
    use std::sync::OnceLock;

    use signal_hook::{
        consts::{SIGHUP, SIGINT, SIGTERM},
        iterator::Signals,
        low_level::emulate_default_handler,
    };
    static HANDLED: OnceLock<()> = OnceLock::new();
    HANDLED.get_or_init(|| {
        // Without this handler a signal still ends the process.
        let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGHUP]) else { return };
        thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                abandon_outputs();
                hide_bars();
                let _ = emulate_default_handler(signal);
                exit(128 + signal);
            }
        });
    });
}

/// Removes unfinished outputs on Ctrl-C, then ends the process.
#[cfg(not(unix))]
pub fn exit_on_signals() {
    let _ = ctrlc::set_handler(|| {
        abandon_outputs();
        exit(130);
    });
}

/// Makes an abort in a system library or a driver end the process with a documented exit code; the
/// library has printed its reason by then. Large allocations that fail are errors of [`crate::memory`];
/// small ones abort, too.
pub fn exit_on_abort() {
    #[cfg(unix)]
    {
        use signal_hook::{consts::SIGABRT, flag::register_conditional_shutdown};
        let always = Arc::new(true.into());
        let _ = register_conditional_shutdown(SIGABRT, Kind::Failure.exit_code().into(), always);
    }
}

/// Ends the process after `limit`, without an output.
pub fn exit_after(limit: Duration) {
    thread::spawn(move || {
        thread::sleep(limit);
        abandon_outputs();
        hide_bars();
        tell(format_args!("error: not done after {} s (--timeout)", limit.as_secs_f64()));
        exit(TIMED_OUT);
    });
}

/// Ends the process without exit handlers: a driver at work on another thread may crash in them, and
/// one that hangs would never finish.
pub fn exit(code: i32) -> ! {
    #[cfg(unix)]
    signal_hook::low_level::exit(code);
    #[cfg(not(unix))]
    std::process::exit(code);
}
