//! Detection of calls into drivers that never return.
//!
//! Such a call cannot be ended, so the caller of [`tick`] has to end the process. Ticks are counted instead of seconds:
//! a process that was stopped for a while, as by Ctrl-Z, does not hang.

use std::{
    env,
    sync::{Mutex, MutexGuard, PoisonError},
    thread::{self, ThreadId},
    time::Duration,
};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Time after which a call into a driver, or work of a device, counts as hung: 30 s, or `GPUPROC_PATIENCE` in seconds.
pub fn driver_timeout() -> Duration {
    let seconds = env::var("GPUPROC_PATIENCE").ok().and_then(|text| text.parse().ok());
    let chosen = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    chosen.filter(|seconds| !seconds.is_zero()).unwrap_or(DEFAULT_TIMEOUT)
}

/// A call in progress.
struct Call {
    thread: ThreadId,
    name: &'static str,
    /// The call hangs after `factor` times the timeout.
    factor: u32,
    /// Ticks since the call began, or since a call inside of it returned.
    ticks: u32,
}

/// Calls in the order in which they began.
static CALLS: Mutex<Vec<Call>> = Mutex::new(Vec::new());

fn calls() -> MutexGuard<'static, Vec<Call>> {
    CALLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work`, which is one call into a driver or a few.
pub(crate) fn watched<T>(name: &'static str, work: impl FnOnce() -> T) -> T {
    watch(name, 1, work)
}

/// Runs a kernel, which computes between its calls into the driver, most of which are [watched] themselves.
pub(crate) fn watched_kernel<T>(name: &'static str, work: impl FnOnce() -> T) -> T {
    watch(name, 4, work)
}

fn watch<T>(name: &'static str, factor: u32, work: impl FnOnce() -> T) -> T {
    /// Ends the call, even if it panics.
    struct Guard(ThreadId);
    impl Drop for Guard {
        fn drop(&mut self) {
            let mut calls = calls();
            let Some(own) = calls.iter().rposition(|call| call.thread == self.0) else { return };
            calls.remove(own);
            // The call around this one has made progress.
            if let Some(outer) = calls.iter_mut().rfind(|call| call.thread == self.0) {
                outer.ticks = 0;
            }
        }
    }
    let thread = thread::current().id();
    calls().push(Call { thread, name, factor, ticks: 0 });
    let _guard = Guard(thread);
    work()
}

/// Counts a tick for each unfinished call. Returns the name of a call that has lasted for `max_ticks`.
pub fn tick(max_ticks: u32) -> Option<&'static str> {
    let mut calls = calls();
    for i in 0..calls.len() {
        let thread = calls[i].thread;
        // Only the innermost of nested calls can hang.
        if !calls[i + 1..].iter().any(|call| call.thread == thread) {
            calls[i].ticks += 1;
        }
    }
    calls
        .iter()
        .find(|call| call.ticks >= max_ticks.saturating_mul(call.factor))
        .map(|call| call.name)
}

/// Calls `attempt` with short waits that add up to `timeout`, until one returns a result. If the process is stopped
/// meanwhile, only one short wait is lost.
pub(crate) fn wait_in_steps<T>(
    timeout: Duration,
    mut attempt: impl FnMut(Duration) -> Option<T>,
) -> Option<T> {
    let wait = timeout.min(Duration::from_secs(1));
    let attempts = timeout.as_secs_f64() / wait.as_secs_f64();
    (0..attempts.ceil() as u64).find_map(|_| attempt(wait))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_hanging_call_is_detected() {
        // Calls of other tests in this process come and go; none lasts for this many ticks at once.
        const MAX_TICKS: u32 = 1_000_000;
        let ticks = |count: u32| (0..count).find_map(|_| tick(MAX_TICKS));
        let (begun, begins) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let hanging = thread::spawn(move || {
            watched_kernel("outer", || {
                watched("short", || {});
                watched("endless", || {
                    begun.send(()).unwrap();
                    let _ = ends.recv();
                });
                begun.send(()).unwrap();
                let _ = ends.recv();
            });
        });
        begins.recv().unwrap();
        assert_eq!(ticks(MAX_TICKS - 1), None);
        assert_eq!(ticks(1), Some("endless"));
        end.send(()).unwrap();
        begins.recv().unwrap();
        // The inner call was progress, and the outer one may last for longer.
        assert_eq!(ticks(4 * MAX_TICKS - 1), None);
        assert_eq!(ticks(1), Some("outer"));
        drop(end);
        hanging.join().unwrap();
        assert_eq!(ticks(1), None);
    }

    #[test]
    fn the_timeout_is_counted_in_attempts() {
        let mut attempts = 0;
        let mut count = |wait| {
            attempts += 1;
            assert_eq!(wait, Duration::from_secs(1));
            None::<()>
        };
        assert_eq!(wait_in_steps(Duration::from_millis(2500), &mut count), None);
        assert_eq!(attempts, 3);
        assert_eq!(wait_in_steps(Duration::from_millis(10), Some), Some(Duration::from_millis(10)));
    }
}
