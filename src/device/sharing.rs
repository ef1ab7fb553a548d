//! A job whose parts go to a GPU and to the CPU at once.

use std::{
    env,
    ffi::OsString,
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The parts of a job of a GPU and the CPU that have not begun.
#[derive(Debug, Default)]
pub(super) struct Sharing {
    left: AtomicUsize,
    /// So many parts at the end are the GPU's: it finishes all of them before a core finishes one.
    last: AtomicUsize,
}

impl Sharing {
    /// Begins a job of `parts` parts, the last `last` of which are the GPU's.
    pub fn begin(&self, parts: usize, last: usize) {
        self.last.store(last, Ordering::Relaxed);
        self.left.store(parts, Ordering::Relaxed);
    }

    /// Takes the next part; returns whether it goes to the CPU. `would_wait` tells whether the GPU cannot begin it now.
    pub fn next_goes_to_cpu(&self, would_wait: impl FnOnce() -> bool) -> bool {
        let take = |left: usize| left.checked_sub(1);
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        let left = taken.unwrap_or(0);
        match forced_pattern() {
            Some(pattern) => pattern[left % pattern.len()] == b'1',
            None => left > self.last.load(Ordering::Relaxed) && would_wait(),
        }
    }
}

/// For tests: `GPUPROC_TEST_SHARE` tells which parts go to the CPU, however long that takes. Each character stands for
/// a part, over and over, `1` for the CPU.
pub(super) fn forced_pattern() -> Option<&'static [u8]> {
    static PATTERN: LazyLock<Option<OsString>> =
        LazyLock::new(|| env::var_os("GPUPROC_TEST_SHARE").filter(|pattern| !pattern.is_empty()));
    PATTERN.as_ref().map(|pattern| pattern.as_encoded_bytes())
}
