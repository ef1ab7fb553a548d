//! Division of the parts of a job between a GPU and the CPU.

use std::{
    env,
    ffi::OsString,
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Counts the remaining parts of a shared job.
#[derive(Debug, Default)]
pub(super) struct Sharing {
    remaining: AtomicUsize,
    /// Number of final parts reserved for the GPU, which finishes all of them before a core would finish one.
    reserved: AtomicUsize,
}

impl Sharing {
    /// Begins a job of `parts` parts, the last `reserved` of which only the GPU takes.
    pub fn begin(&self, parts: usize, reserved: usize) {
        self.reserved.store(reserved, Ordering::Relaxed);
        self.remaining.store(parts, Ordering::Relaxed);
    }

    /// Takes the next part and returns whether it goes to the CPU. `would_wait` returns whether the GPU is not free
    /// now.
    pub fn next_goes_to_cpu(&self, would_wait: impl FnOnce() -> bool) -> bool {
        let take = |left: usize| left.checked_sub(1);
        let taken = self.remaining.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        let left = taken.unwrap_or(0);
        match forced_pattern() {
            Some(pattern) => pattern[left % pattern.len()] == b'1',
            None => left > self.reserved.load(Ordering::Relaxed) && would_wait(),
        }
    }
}

/// The value of `GPUPROC_TEST_SHARE`, with which tests send parts to the CPU regardless of time. Each character is a
/// part, repeatedly; `1` goes to the CPU.
pub(super) fn forced_pattern() -> Option<&'static [u8]> {
    static PATTERN: LazyLock<Option<OsString>> =
        LazyLock::new(|| env::var_os("GPUPROC_TEST_SHARE").filter(|pattern| !pattern.is_empty()));
    PATTERN.as_ref().map(|pattern| pattern.as_encoded_bytes())
}
