//! Order in which the jobs of a batch run.

use std::{
    collections::BTreeSet,
    mem::replace,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use crate::util::error::Result;

/// Decides which job is next, whether it fits into memory, and which worker runs it.
pub struct Schedule<J> {
    jobs: usize,
    threads: usize,
    memory: u64,
    max_ahead: usize,
    state: Mutex<State<J>>,
    changed: Condvar,
}

struct State<J> {
    /// Index of the first job that has not been assigned. Jobs are assigned in order, so that small jobs cannot delay a
    /// large job forever.
    next: usize,
    next_job: NextJob<J>,
    /// Workers without a job. The worker with the lowest number takes the next job: the allocator keeps the memory that
    /// a thread has freed for the same thread, so few threads should allocate.
    idle: BTreeSet<usize>,
    /// Number of jobs that are running.
    active: usize,
    /// Memory of the running jobs, in bytes.
    used: u64,
    /// Number of jobs whose results have been reported.
    reported: usize,
    stopped: bool,
}

/// The job that is assigned next.
enum NextJob<J> {
    NotCreated,
    /// A worker is creating it.
    InCreation,
    /// The job, and the bytes of memory that it needs.
    Ready(Result<J>, u64),
}

/// A job that is assigned to a worker, with its memory and threads.
pub struct Assignment {
    /// Index of the job.
    pub index: usize,
    memory: u64,
    /// Whether the job shares all threads with other jobs. Otherwise, it has one thread.
    pub all_threads: bool,
}

impl<J> Schedule<J> {
    /// A schedule of `jobs` jobs for `threads` workers, which may use `memory` bytes together. At most `max_ahead` jobs may
    /// finish before the first job that is not reported.
    pub fn new([jobs, threads, max_ahead]: [usize; 3], memory: u64) -> Self {
        let state = State {
            next: 0,
            next_job: NextJob::NotCreated,
            idle: BTreeSet::new(),
            active: 0,
            used: 0,
            reported: 0,
            stopped: false,
        };
        Self { jobs, threads, memory, max_ahead, state: state.into(), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the assignment `ended` of `worker` and waits for the next one; `None` when no job is left. `create` returns
    /// the job with an index, and the bytes of memory that the job needs.
    pub fn next(
        &self,
        worker: usize,
        ended: Option<Assignment>,
        create: impl Fn(usize) -> (Result<J>, u64),
    ) -> Option<(Result<J>, Assignment)> {
        let mut state = self.state();
        if let Some(ended) = ended {
            (state.active, state.used) = (state.active - 1, state.used - ended.memory);
        }
        state.idle.insert(worker);
        self.changed.notify_all();
        loop {
            if state.stopped || state.next == self.jobs {
                return None;
            }
            match replace(&mut state.next_job, NextJob::InCreation) {
                next_job if state.idle.first() != Some(&worker) => state.next_job = next_job,
                NextJob::NotCreated => {
                    let index = state.next;
                    drop(state);
                    let (job, bytes) = create(index);
                    state = self.state();
                    state.next_job = NextJob::Ready(job, bytes);
                    self.changed.notify_all();
                    continue;
                }
                NextJob::Ready(job, bytes) if self.admits(&state, bytes) => {
                    self.changed.notify_all();
                    return Some((job, self.assign(&mut state, worker, bytes)));
                }
                next_job => state.next_job = next_job,
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether a job of `bytes` may start now. A job that is larger than the memory limit runs alone.
    fn admits(&self, state: &State<J>, bytes: u64) -> bool {
        let fits = state.used.saturating_add(bytes) <= self.memory || state.active == 0;
        fits && state.next < state.reported + self.max_ahead
    }

    /// Whether fewer than four jobs of this size fit into the memory limit.
    pub fn is_tight(&self, job: &Assignment) -> bool {
        job.memory > self.memory / 4
    }

    fn assign(&self, state: &mut State<J>, worker: usize, bytes: u64) -> Assignment {
        let (index, memory) = (state.next, bytes.min(self.memory));
        (state.next, state.next_job) = (index + 1, NextJob::NotCreated);
        (state.active, state.used) = (state.active + 1, state.used + memory);
        state.idle.remove(&worker);
        // If few files are left, or few fit into memory, one thread per file would leave some threads idle.
        let all_threads = self.jobs < self.threads
            || self.jobs - index <= self.threads / 2
            || bytes > self.memory / self.threads as u64;
        Assignment { index, memory, all_threads }
    }

    /// Number of jobs whose results have been reported.
    pub fn reported(&self) -> usize {
        self.state().reported
    }

    /// Counts a result as reported.
    pub fn report(&self) {
        self.state().reported += 1;
        self.changed.notify_all();
    }

    /// Ends the schedule: no further job is assigned.
    pub fn stop(&self) {
        self.state().stopped = true;
        self.changed.notify_all();
    }
}
