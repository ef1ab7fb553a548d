//! The queue in which kernels wait for a GPU.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The most kernels on one GPU at once: one is computed while others are transferred or described.
const IN_FLIGHT: usize = 4;

/// From this many waiting kernels on, parts of a shared job go to the CPU: they are enough to keep the GPU busy.
const WAITING: usize = 4;

/// The queue: at most [`IN_FLIGHT`] kernels have a [`Permit`] on each GPU, the others wait.
#[derive(Debug, Default)]
pub(super) struct GpuQueue {
    kernels: Mutex<Kernels>,
    given_back: Condvar,
}

#[derive(Debug, Default)]
struct Kernels {
    /// How many have a permit on each GPU.
    on_gpu: Vec<usize>,
    /// How many wait for one.
    waiting: usize,
}

impl Kernels {
    /// The GPU with the fewest kernels among those that `can` take one more.
    fn least_busy(&self, can: impl Fn(usize) -> bool) -> Option<usize> {
        let free = |gpu: &usize| self.on_gpu[*gpu] < IN_FLIGHT && can(*gpu);
        (0..self.on_gpu.len()).filter(free).min_by_key(|&gpu| self.on_gpu[gpu])
    }
}

/// The right of a kernel to run on a GPU, given back on drop.
pub(super) struct Permit<'a> {
    queue: &'a GpuQueue,
    /// The number of the GPU.
    pub gpu: usize,
}

impl GpuQueue {
    fn kernels(&self) -> MutexGuard<'_, Kernels> {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a permit on one of the GPUs 0 to `gpus - 1`; `None` when none of them `is_usable` any more.
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
            kernels = self.given_back.wait(kernels).unwrap_or_else(PoisonError::into_inner);
        };
        kernels.waiting -= 1;
        gpu.map(|gpu| Permit { queue: self, gpu })
    }

    /// Whether [`WAITING`] kernels wait already.
    pub fn is_crowded(&self) -> bool {
        self.kernels().waiting >= WAITING
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.queue.kernels().on_gpu[self.gpu] -= 1;
        // Every waiting kernel wakes up: a GPU may have been lost meanwhile, and each checks `is_usable` itself.
        self.queue.given_back.notify_all();
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
        let held: Vec<Permit<'_>> = (0..2 * IN_FLIGHT).map(|_| wait()).collect();
        // To each GPU in turn, as long as they have equally many.
        let gpus: Vec<usize> = held.iter().map(|permit| permit.gpu).collect();
        assert_eq!(gpus, [0, 1].repeat(IN_FLIGHT));
        thread::scope(|scope| {
            for _ in 0..WAITING {
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
