//! The staging buffers of uploads, which threads take, write to and hand to the device in turn.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

/// Staging buffers for uploads, at most: enough for the cores to copy while the device does.
const COUNT: usize = 8;

/// The staging buffers of one device.
#[derive(Clone, Debug, Default)]
pub(super) struct UploadStaging(Arc<(Mutex<Stagings>, Condvar)>);

#[derive(Debug, Default)]
struct Stagings {
    /// Those that are mapped and can be written.
    mapped: Vec<wgpu::Buffer>,
    /// How many there are: mapped, being written, being copied.
    count: usize,
    /// The latest copies, the oldest first: a buffer is mapped again after one of them.
    copies: VecDeque<wgpu::SubmissionIndex>,
}

/// What a thread that needs a staging buffer does.
pub(super) enum Turn {
    /// Writes to this one.
    Write(wgpu::Buffer),
    /// Makes a new one.
    Make,
    /// Waits for this copy, after which one is mapped, and asks again.
    Await(wgpu::SubmissionIndex),
}

impl UploadStaging {
    fn lock(&self) -> MutexGuard<'_, Stagings> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A staging buffer for this thread, or how to get one.
    pub fn turn(&self) -> Turn {
        let mut stagings = self.lock();
        loop {
            if let Some(staging) = stagings.mapped.pop() {
                return Turn::Write(staging);
            }
            if stagings.count < COUNT {
                stagings.count += 1;
                return Turn::Make;
            }
            if let Some(copy) = stagings.copies.pop_front() {
                return Turn::Await(copy);
            }
            // Other threads write to all of them.
            stagings = self.0.1.wait(stagings).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn change(&self, change: impl FnOnce(&mut Stagings)) {
        change(&mut self.lock());
        self.0.1.notify_all();
    }

    /// Forgets a buffer that nobody will use again.
    pub fn lose(&self) {
        self.change(|stagings| stagings.count = stagings.count.saturating_sub(1));
    }

    /// Takes back a buffer that can be written again.
    pub fn mapped(&self, staging: wgpu::Buffer) {
        self.change(|stagings| stagings.mapped.push(staging));
    }

    /// Notes a copy out of one of the buffers.
    pub fn copying(&self, copy: wgpu::SubmissionIndex) {
        self.change(|stagings| {
            stagings.copies.push_back(copy);
            if stagings.copies.len() > COUNT {
                stagings.copies.pop_front();
            }
        });
    }
}
