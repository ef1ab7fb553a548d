//! Threads where there may be few to be had: a limit on processes (RLIMIT_NPROC), on a container's tasks, on memory.
//!
//! The standard library's `spawn` panics where there is no thread. These return an error, and the pool of the parallel
//! loops starts with as many threads as there are.

use std::{
    io,
    num::NonZero,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread::{self, Builder, JoinHandle, Scope, ScopedJoinHandle},
    time::Duration,
};

use rayon::{ThreadBuilder, ThreadPoolBuilder};

use crate::error::{Error, Kind, Result};

/// The error of a system that grants no thread.
fn refused(cause: io::Error) -> Error {
    Error::new(Kind::Failure, "the system grants no further thread").caused_by(cause)
}

/// Starts a thread.
///
/// # Errors
/// [`Kind::Failure`] where there is none to be had.
pub fn spawn<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    Builder::new().spawn(work).map_err(refused)
}

/// Starts a thread in `scope`.
///
/// # Errors
/// [`Kind::Failure`] where there is none to be had.
pub fn spawn_in<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    Builder::new().spawn_scoped(scope, work).map_err(refused)
}

/// Threads a core, at most: more only take turns, and thousands take seconds to start.
const MOST_A_CORE: usize = 4;

/// Threads that are left for reading, writing and waiting beside the parallel loops where there are few.
const SPARE: usize = 4;

/// A thread of the pool. One that waits for a loop within a loop begins other work on top of its stack, so there is more
/// of it than the usual 2 MiB; what is not used takes no memory.
fn worker() -> Builder {
    Builder::new().stack_size(8 << 20)
}

/// Starts the pool of the parallel loops: `wanted` threads, or one a core; fewer where there are fewer to be had. A
/// second call changes nothing.
///
/// # Errors
/// [`Kind::Failure`] where there is not even one.
pub fn start_pool(wanted: Option<usize>) -> Result<()> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let wanted = wanted.unwrap_or(cores).min(MOST_A_CORE * cores.max(2));
    let (jobs, receiver) = mpsc::channel::<ThreadBuilder>();
    let receiver = Arc::new(Mutex::new(receiver));
    let wait = || {
        let receiver = receiver.clone();
        move || {
            let job = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
            drop(receiver);
            if let Ok(job) = job {
                job.run();
            }
        }
    };
    // The threads come first, each waiting for its part in the pool: a pool whose threads fail to start cannot be built
    // again. Those to spare come before them, and go.
    let (spare, gone) = mpsc::channel::<()>();
    let gone = Arc::new(Mutex::new(gone));
    let spares = (0..SPARE).map_while(|_| {
        let gone = gone.clone();
        let wait = move || gone.lock().unwrap_or_else(PoisonError::into_inner).recv().is_ok();
        Builder::new().spawn(wait).ok()
    });
    let spares: Vec<_> = spares.collect();
    let mut started = (0..wanted).take_while(|_| worker().spawn(wait()).is_ok()).count();
    drop(spare);
    if started < wanted {
        spares.into_iter().for_each(|spare| drop(spare.join()));
        // The system counts a thread for a moment after its end.
        thread::sleep(Duration::from_millis(5));
        if started == 0 {
            worker().spawn(wait()).map_err(refused)?;
            started = 1;
        }
        log::debug!("{started} threads instead of {wanted}");
    }
    let hand_over = |job| jobs.send(job).map_err(|_| io::ErrorKind::Other.into());
    // Those without a part end when `jobs` goes. In tests there is a pool already.
    let _ = ThreadPoolBuilder::new().num_threads(started).spawn_handler(hand_over).build_global();
    Ok(())
}
