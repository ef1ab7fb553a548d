//! The queue in which kernels wait for a GPU.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Maximum number of kernels on a GPU at once. One is computed while the data of others are transferred.
const MAX_KERNELS: usize = 4;

/// If this many kernels wait, which is enough to keep the GPU busy, parts of a shared job go to the CPU.
const CROWDED: usize = 4;

/// At most [`MAX_KERNELS`] kernels have a [`Permit`] for each GPU; the others wait.
#[derive(Debug, Default)]
pub(super) struct GpuQueue {
    kernels: Mutex<Kernels>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct Kernels {
    /// Number of permits for each GPU.
    on_gpu: Vec<usize>,
    /// Number of kernels that wait for a permit.
    waiting: usize,
}

impl Kernels {
    /// The GPU with the fewest permits, among those that are usable and have one left.
    fn least_busy(&self, is_usable: impl Fn(usize) -> bool) -> Option<usize> {
        let free = |gpu: &usize| self.on_gpu[*gpu] < MAX_KERNELS && is_usable(*gpu);
        (0..self.on_gpu.len()).filter(free).min_by_key(|&gpu| self.on_gpu[gpu])
    }
}

/// The right of a kernel to run on a GPU, until it is dropped.
pub(super) struct Permit<'a> {
    queue: &'a GpuQueue,
    /// Number of the GPU.
    pub gpu: usize,
}

impl GpuQueue {
    fn kernels(&self) -> MutexGuard<'_, Kernels> {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a permit for one of the GPUs 0 to `gpus - 1`; `None` if none of them is usable any more.
    pub fn wait(&self, gpus: usize, is_usable: impl Fn(usize) -> bool) -> Option<Permit<'_>> {
        let mut kernels = self.kernels();
        kernels.on_gpu.resize(gpus, 0);
        kernels.waiting += 1;
        let gpu = loop {
            if !(0..gpus).any(&is_usable) {
                break None;
            }
            if let Some(gpu) = kernels.least_busy(&is_usable) {
                kernels.on_gpu[gpu] += 1;
                break Some(gpu);
            }
            kernels = self.returned.wait(kernels).unwrap_or_else(PoisonError::into_inner);
        };
        kernels.waiting -= 1;
        gpu.map(|gpu| Permit { queue: self, gpu })
    }

    /// Whether [`CROWDED`] kernels wait.
    pub fn is_crowded(&self) -> bool {
        self.kernels().waiting >= CROWDED
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.queue.kernels().on_gpu[self.gpu] -= 1;
        // All waiting kernels have to check whether a GPU was lost meanwhile.
        self.queue.returned.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn the_cpu_helps_where_kernels_wait_for_the_gpu() {
        let queue = GpuQueue::default();
        assert!(!queue.is_crowded());
        let wait = || queue.wait(2, |_| true).unwrap();
        let held: Vec<Permit<'_>> = (0..2 * MAX_KERNELS).map(|_| wait()).collect();
        // To each GPU in turn, as long as they have equally many.
        let gpus: Vec<usize> = held.iter().map(|permit| permit.gpu).collect();
        assert_eq!(gpus, [0, 1].repeat(MAX_KERNELS));
        thread::scope(|scope| {
            for _ in 0..CROWDED {
                assert!(!queue.is_crowded());
                let waiting = queue.kernels().waiting;
                scope.spawn(|| drop(wait()));
                while queue.kernels().waiting == waiting {
                    thread::yield_now();
                }
            }
            assert!(queue.is_crowded());
            drop(held);
        });
        assert!(!queue.is_crowded());
    }

    #[test]
    fn kernels_go_to_the_least_busy_gpu_that_is_not_lost() {
        let queue = GpuQueue::default();
        let wait =
            |lost: usize| queue.wait(3, |gpu| gpu != lost).map(|permit| (permit.gpu, permit));
        let (first, second) = (wait(0).unwrap(), wait(0).unwrap());
        assert_eq!((first.0, second.0), (1, 2));
        drop(second);
        assert_eq!(wait(0).unwrap().0, 2);
        assert!(queue.wait(3, |_| false).is_none());
        assert!(GpuQueue::default().wait(0, |_| true).is_none());
        assert_eq!(queue.kernels().waiting, 0);
    }
}
