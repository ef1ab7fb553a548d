//! Buffers for the next job. A fresh one costs more than the work that it is made for: the driver maps and clears its
//! memory at about 5 GB/s, where a copy runs at 30.

use std::{
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Buffers that nobody uses now, the ones given back last at the end.
#[derive(Clone, Debug)]
pub(super) struct Pool(Arc<Mutex<Vec<wgpu::Buffer>>>, u64);

impl Pool {
    /// A pool that keeps at most `most` bytes.
    pub fn keeping(most: u64) -> Self {
        Self(Arc::default(), most)
    }

    fn free(&self) -> MutexGuard<'_, Vec<wgpu::Buffer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The size that a buffer for `bytes` bytes is made with, so that it serves for similar jobs, too: at most an
    /// eighth more, and no more than `largest`.
    pub fn size(bytes: u64, largest: u64) -> u64 {
        let step = (bytes.next_power_of_two() / 16).max(256);
        bytes.next_multiple_of(step).min(largest).max(bytes)
    }

    /// A buffer of just `size` bytes, if there is one.
    pub fn take(&self, size: u64) -> Option<wgpu::Buffer> {
        let mut free = self.free();
        let found = free.iter().rposition(|buffer| buffer.size() == size)?;
        Some(free.remove(found))
    }

    /// Keeps `buffer` for later; drops those that were not used for longest where there are too many.
    pub fn put(&self, buffer: wgpu::Buffer) {
        let mut free = self.free();
        free.push(buffer);
        let surplus = surplus(free.iter().map(wgpu::Buffer::size), self.1);
        free.drain(..surplus);
    }

    /// Drops all buffers; returns whether there were any.
    pub fn clear(&self) -> bool {
        !std::mem::take(&mut *self.free()).is_empty()
    }

    /// `buffer`, which comes back when it is dropped.
    pub fn lend(&self, buffer: wgpu::Buffer) -> Lent {
        Lent { buffer, pool: self.clone() }
    }
}

/// How many buffers, oldest first, must be dropped so that the others take `most` bytes or less. `sizes` has the oldest
/// first.
fn surplus(sizes: impl DoubleEndedIterator<Item = u64> + ExactSizeIterator, most: u64) -> usize {
    let count = sizes.len();
    let mut kept = 0;
    let fits = |size: &u64| {
        kept += size;
        kept <= most
    };
    count - sizes.rev().take_while(fits).count()
}

/// A buffer that goes back to its pool when it is dropped. What was submitted before that may still use it: the queue
/// does its work in order.
#[derive(Debug)]
pub(super) struct Lent {
    buffer: wgpu::Buffer,
    pool: Pool,
}

impl Deref for Lent {
    type Target = wgpu::Buffer;

    fn deref(&self) -> &wgpu::Buffer {
        &self.buffer
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.pool.put(self.buffer.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::{Pool, surplus};

    #[test]
    fn the_oldest_buffers_go_first() {
        let surplus = |sizes: &[u64], most| surplus(sizes.iter().copied(), most);
        assert_eq!(surplus(&[], 0), 0);
        assert_eq!(surplus(&[5, 3, 2], 10), 0);
        assert_eq!(surplus(&[6, 3, 2], 10), 1);
        // All that is older than the first that does not fit goes, even if there is room for some of it.
        assert_eq!(surplus(&[1, 9, 3, 2], 10), 2);
        // Even the newest, where it alone is too large.
        assert_eq!(surplus(&[1, 11], 10), 2);
        assert_eq!(surplus(&[1, 10], 10), 1);
    }

    #[test]
    fn sizes_are_few_and_close() {
        for bytes in [1, 4, 255, 256, 257, 5000, 1 << 20, (1 << 20) + 4, 47_617_536, u64::MAX >> 8]
        {
            let size = Pool::size(bytes, u64::MAX);
            assert!(size >= bytes && size - bytes <= (bytes / 8).max(256), "{bytes} {size}");
        }
        assert_eq!(Pool::size(1 << 20, 1 << 20), 1 << 20);
        assert_eq!(Pool::size((1 << 20) + 4, (1 << 20) + 8), (1 << 20) + 8);
    }
}
