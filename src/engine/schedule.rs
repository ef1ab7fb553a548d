//! The order in which the jobs of a batch run.

use std::{
    collections::BTreeSet,
    mem::replace,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use crate::util::error::Result;

/// Decides which job is next, whether there is memory for it, and which worker takes it.
pub struct Schedule<J> {
    jobs: usize,
    threads: usize,
    memory: u64,
    ahead: usize,
    state: Mutex<State<J>>,
    changed: Condvar,
}

struct State<J> {
    /// The first job that no worker has taken. Jobs are taken in order, so that small jobs cannot delay a
    /// large one for ever.
    next: usize,
    waiting: Waiting<J>,
    /// Workers without a job. The one with the least number takes the next job: the allocator keeps memory that a
    /// thread has freed for the same thread, so as few threads as possible should allocate.
    idle: BTreeSet<usize>,
    /// Number of jobs that workers are doing.
    active: usize,
    /// Memory of these jobs, in bytes.
    used: u64,
    /// Number of jobs whose results have been reported.
    reported: usize,
    stopped: bool,
}

/// The next job.
enum Waiting<J> {
    Unmade,
    /// A worker is making it.
    InWork,
    /// The job, and the bytes of memory that it needs.
    Made(Result<J>, u64),
}

/// The turn of a worker: a job, its memory and its threads.
pub struct Turn {
    /// The number of the job.
    pub index: usize,
    memory: u64,
    /// Whether the job uses all threads, together with other jobs, rather than one thread of its own.
    pub all_threads: bool,
}

impl<J> Schedule<J> {
    /// A schedule of `jobs` jobs for `threads` workers, which may take `memory` bytes together. At most `ahead` jobs may
    /// be ahead of the first one that is not reported.
    pub fn new([jobs, threads, ahead]: [usize; 3], memory: u64) -> Self {
        let state = State {
            next: 0,
            waiting: Waiting::Unmade,
            idle: BTreeSet::new(),
            active: 0,
            used: 0,
            reported: 0,
            stopped: false,
        };
        Self { jobs, threads, memory, ahead, state: state.into(), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the turn of `worker` and waits for the next one and its job; `None` when no job is left. `make` returns the
    /// job of a number, and the bytes of memory that the job needs.
    pub fn next(
        &self,
        worker: usize,
        ended: Option<Turn>,
        make: impl Fn(usize) -> (Result<J>, u64),
    ) -> Option<(Result<J>, Turn)> {
        let mut state = self.state();
        if let Some(turn) = ended {
            (state.active, state.used) = (state.active - 1, state.used - turn.memory);
        }
        state.idle.insert(worker);
        self.changed.notify_all();
        loop {
            if state.stopped || state.next == self.jobs {
                return None;
            }
            match replace(&mut state.waiting, Waiting::InWork) {
                waiting if state.idle.first() != Some(&worker) => state.waiting = waiting,
                Waiting::Unmade => {
                    let index = state.next;
                    drop(state);
                    let (job, bytes) = make(index);
                    state = self.state();
                    state.waiting = Waiting::Made(job, bytes);
                    self.changed.notify_all();
                    continue;
                }
                Waiting::Made(job, bytes) if self.admits(&state, bytes) => {
                    self.changed.notify_all();
                    return Some((job, self.turn(&mut state, worker, bytes)));
                }
                waiting => state.waiting = waiting,
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether a job that takes `bytes` may begin now. A job that is too large for the memory runs alone.
    fn admits(&self, state: &State<J>, bytes: u64) -> bool {
        let fits = state.used.saturating_add(bytes) <= self.memory || state.active == 0;
        fits && state.next < state.reported + self.ahead
    }

    fn turn(&self, state: &mut State<J>, worker: usize, bytes: u64) -> Turn {
        let (index, memory) = (state.next, bytes.min(self.memory));
        (state.next, state.waiting) = (index + 1, Waiting::Unmade);
        (state.active, state.used) = (state.active + 1, state.used + memory);
        state.idle.remove(&worker);
        // Few files are left, or memory allows few at a time: with one thread per file, some threads would be idle.
        let all_threads = self.jobs < self.threads
            || self.jobs - index <= self.threads / 2
            || bytes > self.memory / self.threads as u64;
        Turn { index, memory, all_threads }
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

    /// Ends the schedule: no further job is handed out.
    pub fn stop(&self) {
        self.state().stopped = true;
        self.changed.notify_all();
    }
}
