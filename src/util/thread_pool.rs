//! Starts the pool of the parallel loops with as many threads as the system grants.

use std::{
    io,
    num::NonZero,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread::{self, Builder},
    time::Duration,
};

use rayon::{ThreadBuilder, ThreadPoolBuilder};

use super::threads::spawn_error;
use crate::util::error::Result;

/// Maximum number of threads per core: more bring nothing, and thousands would take seconds to start.
const MAX_PER_CORE: usize = 4;

/// Threads that stay available for reading, writing and waiting if the system grants few.
const SPARE: usize = 4;

/// Builder of a thread of the pool. A thread that waits for a nested loop starts other work on top of its stack, so its
/// stack is larger than the usual 2 MiB. Unused pages of a stack take no memory.
fn worker_builder() -> Builder {
    Builder::new().stack_size(8 << 20)
}

/// Starts the pool of the parallel loops with `wanted` threads, by default one per core, or as many as the system
/// grants. A second call has no effect.
pub fn start_pool(wanted: Option<usize>) -> Result<()> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let wanted = wanted.unwrap_or(cores).min(MAX_PER_CORE * cores.max(2));
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
    // The global pool cannot be built again after a thread has failed to start. So the threads start before the pool,
    // and each waits for its job in it. The spare threads start first, and end before the pool is built.
    let (spare, closed) = mpsc::channel::<()>();
    let closed = Arc::new(Mutex::new(closed));
    let spares = (0..SPARE).map_while(|_| {
        let closed = closed.clone();
        let wait = move || closed.lock().unwrap_or_else(PoisonError::into_inner).recv().is_ok();
        Builder::new().spawn(wait).ok()
    });
    let spares: Vec<_> = spares.collect();
    let mut started = (0..wanted).take_while(|_| worker_builder().spawn(wait()).is_ok()).count();
    drop(spare);
    if started < wanted {
        spares.into_iter().for_each(|spare| drop(spare.join()));
        // The system still counts a thread for a moment after it has ended.
        thread::sleep(Duration::from_millis(5));
        if started == 0 {
            worker_builder().spawn(wait()).map_err(spawn_error)?;
            started = 1;
        }
        log::debug!("{started} threads instead of {wanted}");
    }
    let hand_over = |job| jobs.send(job).map_err(|_| io::ErrorKind::Other.into());
    // Threads without a job in the pool end when `jobs` is dropped. In tests, a pool exists already.
    let _ = ThreadPoolBuilder::new().num_threads(started).spawn_handler(hand_over).build_global();
    Ok(())
}
