//! The staging buffers of uploads. Threads take one that is mapped, write to it, and submit its copy to the device.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

/// Maximum number of staging buffers for uploads: enough for the cores to copy while the device does.
const MAX_BUFFERS: usize = 8;

/// The staging buffers of one device.
#[derive(Clone, Debug, Default)]
pub(super) struct UploadStaging(Arc<(Mutex<State>, Condvar)>);

#[derive(Debug, Default)]
struct State {
    /// Buffers that can be written.
    mapped: Vec<wgpu::Buffer>,
    /// Number of buffers that are mapped, being written, or being copied.
    count: usize,
    /// The latest copies, the oldest first. A buffer is mapped again after its copy.
    copies: VecDeque<wgpu::SubmissionIndex>,
}

/// The next step of a thread that needs a staging buffer.
pub(super) enum NextStep {
    /// Write to this buffer.
    Write(wgpu::Buffer),
    /// Create a buffer.
    Create,
    /// Wait for this copy, after which a buffer is mapped, and ask again.
    Wait(wgpu::SubmissionIndex),
}

impl UploadStaging {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a mapped buffer, or says how to get one.
    pub fn next(&self) -> NextStep {
        let mut state = self.lock();
        loop {
            if let Some(staging) = state.mapped.pop() {
                return NextStep::Write(staging);
            }
            if state.count < MAX_BUFFERS {
                state.count += 1;
                return NextStep::Create;
            }
            if let Some(copy) = state.copies.pop_front() {
                return NextStep::Wait(copy);
            }
            // Other threads write to all of them.
            state = self.0.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.0.1.notify_all();
    }

    /// Forgets a buffer that is not used again, so that another one can be created.
    pub fn forget(&self) {
        self.change(|state| state.count = state.count.saturating_sub(1));
    }

    /// Takes back a buffer that is mapped again.
    pub fn put(&self, staging: wgpu::Buffer) {
        self.change(|state| state.mapped.push(staging));
    }

    /// Records a copy out of one of the buffers.
    pub fn record_copy(&self, copy: wgpu::SubmissionIndex) {
        self.change(|state| {
            state.copies.push_back(copy);
            if state.copies.len() > MAX_BUFFERS {
                state.copies.pop_front();
            }
        });
    }
}
