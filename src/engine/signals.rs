//! Early ends of the process: signals, `--timeout`, crashes and hangs of libraries and drivers. No incomplete
//! output is left behind.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

#[cfg(unix)]
use crate::gpu::is_driver_loaded;
use crate::{
    engine::{
        progress::{hide_bars, print_line},
        restart,
    },
    gpu::{driver_timeout, tick},
    io::remove_unfinished_outputs,
    util::{
        error::{Kind, Result},
        threads::spawn,
    },
};

/// Exit code after `--timeout`, the same as that of timeout(1).
pub const TIMED_OUT: i32 = 124;

/// On every signal that ends a process and can be handled, removes unfinished outputs and then lets the signal end the
/// process as if there were no handler. Signals that were ignored when the process started, as by nohup(1), stay
/// ignored. SIGXFSZ, for a file that grows too long, is caught, so that the write fails instead. May be called more
/// than once.
#[cfg(unix)]
pub fn exit_on_signals() {
    use std::sync::{Arc, OnceLock, mpsc};

    use signal_hook::{
        consts::{
            SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGSYS, SIGTERM, SIGTRAP, SIGUSR1,
            SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
        },
        flag,
        iterator::Signals,
        low_level::emulate_default_handler,
    };
    const ENDING: [i32; 13] = [
        SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGSYS, SIGTERM, SIGTRAP, SIGUSR1,
        SIGUSR2, SIGVTALRM, SIGXCPU,
    ];
    static HANDLED: OnceLock<()> = OnceLock::new();
    HANDLED.get_or_init(|| {
        let ignored = ignored_signals();
        let (sender, signals) = mpsc::sync_channel::<Signals>(1);
        // The thread starts before the handlers: without the thread, a handled signal would have no effect.
        let waiting = spawn(move || {
            let Ok(mut signals) = signals.recv() else { return };
            if let Some(signal) = signals.forever().next() {
                remove_unfinished_outputs();
                hide_bars();
                let _ = emulate_default_handler(signal);
                exit(128 + signal);
            }
        });
        let caught = ENDING.into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
        // If the thread or the handlers fail to start, a signal still ends the process by itself.
        if waiting.is_ok()
            && let Ok(signals) = Signals::new(caught)
        {
            let _ = sender.send(signals);
        }
        // A handler that only sets a flag makes the write fail with EFBIG. Python ignores SIGXFSZ for the same reason.
        let _ = flag::register(SIGXFSZ, Arc::default());
    });
}

/// Mask of the signals that were ignored when this process started, signal n as bit n - 1; 0 if unknown.
#[cfg(unix)]
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Removes unfinished outputs on Ctrl-C, then ends the process.
#[cfg(not(unix))]
pub fn exit_on_signals() {
    let _ = ctrlc::set_handler(|| {
        remove_unfinished_outputs();
        exit(130);
    });
}

/// Signals of a crash, and the message for each. Before an abort, a library has often printed the reason itself. Failed
/// large allocations are errors (see [`memory`](crate::util::memory)); small ones abort.
#[cfg(unix)]
pub const CRASH_SIGNALS: [(i32, &str); 5] = [
    (signal_hook::consts::SIGABRT, "error: a library or a driver aborted (SIGABRT)\n"),
    (signal_hook::consts::SIGBUS, "error: a library or a driver crashed (SIGBUS)\n"),
    (signal_hook::consts::SIGFPE, "error: a library or a driver crashed (SIGFPE)\n"),
    (signal_hook::consts::SIGILL, "error: a library or a driver crashed (SIGILL)\n"),
    (signal_hook::consts::SIGSEGV, "error: a library or a driver crashed (SIGSEGV)\n"),
];

/// Ends a process that has crashed: writes `line`, and exits with the code of a GPU failure if a driver is loaded.
/// Calls only functions that are allowed in a signal handler.
#[cfg(unix)]
pub fn exit_crashed(line: &str) -> ! {
    // Errors of stderr are ignored.
    let _ = rustix::io::write(rustix::stdio::stderr(), line.as_bytes());
    exit(if is_driver_loaded() { Kind::Gpu } else { Kind::Failure }.exit_code().into());
}

/// Ends the process after the time `limit`, without an output.
///
/// # Errors
/// [`Kind::Failure`] when the system grants no thread.
pub fn exit_after(limit: Duration) -> Result<()> {
    spawn(move || {
        thread::sleep(limit);
        remove_unfinished_outputs();
        hide_bars();
        print_line(format_args!("error: stopped after {} s (--timeout)", limit.as_secs_f64()));
        exit(TIMED_OUT);
    })
    .map(drop)
}

/// Ends the process when a driver does not return from a call. If `on_cpu` is set and nothing has been written yet, the
/// job restarts on the CPU; otherwise there is no output. If the system grants no thread, hangs are not detected.
pub fn exit_on_hang(on_cpu: bool) {
    const TICK: Duration = Duration::from_millis(250);
    /// Whether a thread watches. Several threads would count each tick several times.
    static IS_WATCHED: AtomicBool = AtomicBool::new(false);
    if IS_WATCHED.swap(true, Ordering::Relaxed) {
        return;
    }
    let max_ticks = (driver_timeout().as_secs_f64() / TICK.as_secs_f64()).ceil() as u32;
    let _ = spawn(move || {
        let what = loop {
            thread::sleep(TICK);
            if let Some(what) = tick(max_ticks) {
                break what;
            }
        };
        hide_bars();
        let line = format!("the GPU driver does not return from {what}");
        if on_cpu {
            log::warn!("{line}; restarting the whole job on the CPU");
            remove_unfinished_outputs();
            let error = restart::restart_on_cpu();
            print_line(format_args!(
                "error: {line}, and the job cannot be restarted on the CPU: {error}"
            ));
        } else {
            remove_unfinished_outputs();
            print_line(format_args!("error: {line}; use --device cpu"));
        }
        exit(Kind::Gpu.exit_code().into());
    });
}

/// Ends the process without running exit handlers, in which a driver that works on another thread may crash
/// and a driver that hangs would never finish.
pub fn exit(code: i32) -> ! {
    #[cfg(unix)]
    signal_hook::low_level::exit(code);
    #[cfg(not(unix))]
    std::process::exit(code);
}
