//! Parallel loops, for items that take microseconds or more: rows, slices, blocks.
//!
//! Items come from a plain iterator and go to any thread that is free, neighbours to the same thread. Only the body of
//! a loop is compiled for its types, not the scheduler: rayon's own iterators are compiled as a whole for each loop,
//! which was a third of this crate.

use std::{
    cell::Cell,
    mem::MaybeUninit,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use rayon::prelude::*;

use crate::util::{error::Result, memory};

/// Number of values that a thread takes at a time, if each takes nanoseconds.
const PIECE: usize = 1 << 15;

/// Maximum number of items that wait for a thread. Without it, rows of a few samples would take more memory than their
/// samples.
const BATCH: usize = 1 << 14;

/// Terminal operations of an iterator that run on all threads.
pub trait Parallel: ExactSizeIterator<Item: Send> + Sized {
    /// Calls `work` with each item.
    fn par_each(mut self, work: impl Fn(Self::Item) + Sync) {
        while self.len() > 0 {
            // One lock per item, for which no thread ever waits: a lock for all items would be contended if items take
            // microseconds.
            let items: Vec<_> =
                self.by_ref().take(BATCH).map(|item| Mutex::new(Some(item))).collect();
            on_all_threads(items.len(), &|at| {
                if let Some(item) = lock(&items[at]).take() {
                    work(item);
                }
            });
        }
    }

    /// Calls `work` with each item; may skip items after one that failed. The error is that of the first item in order
    /// that fails.
    fn par_try_each<E: Send>(
        self,
        work: impl Fn(Self::Item) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        let failure: Mutex<Option<(usize, E)>> = Mutex::new(None);
        let is_before = |at, failure: &Option<(usize, E)>| {
            failure.as_ref().is_none_or(|(first, _)| at < *first)
        };
        self.enumerate().par_each(|(at, item)| {
            if is_before(at, &lock(&failure))
                && let Err(error) = work(item)
            {
                let mut failure = lock(&failure);
                if is_before(at, &failure) {
                    *failure = Some((at, error));
                }
            }
        });
        into_inner(failure).map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Results of `work` for all items, in order.
    fn par_map<T: Send>(self, work: impl Fn(Self::Item) -> T + Sync) -> Vec<T> {
        let mut results: Vec<Option<T>> =
            std::iter::repeat_with(|| None).take(self.len()).collect();
        self.zip(&mut results).par_each(|(item, result)| *result = Some(work(item)));
        results.into_iter().map(|result| result.expect("every item is processed")).collect()
    }

    /// Calls `work` with each item and a state that no other call uses at the same time. Returns the states, created by
    /// `start`, one for each call that ran at the same time. The assignment of items to states depends on timing.
    fn par_fold<S: Send>(
        self,
        start: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, Self::Item) + Sync,
    ) -> Vec<S> {
        // Idle states of each thread: a thread that waits for a loop inside `work` may start another item meanwhile.
        let threads = rayon::current_num_threads();
        let idle: Vec<_> = (0..threads).map(|_| Mutex::new(Vec::new())).collect();
        self.par_each(|item| {
            let idle = &idle[rayon::current_thread_index().unwrap_or(0) % threads];
            let found = lock(idle).pop();
            let mut state = found.unwrap_or_else(&start);
            work(&mut state, item);
            lock(idle).push(state);
        });
        idle.into_iter().flat_map(into_inner).collect()
    }

    /// Whether `predicate` is true for any item. Once it is, further items are skipped.
    fn par_any(self, predicate: impl Fn(Self::Item) -> bool + Sync) -> bool {
        let found = AtomicBool::new(false);
        self.par_each(|item| {
            if !found.load(Relaxed) && predicate(item) {
                found.store(true, Relaxed);
            }
        });
        found.into_inner()
    }
}

impl<I: ExactSizeIterator<Item: Send>> Parallel for I {}

/// Results of `value` for each of `values`, in order.
pub fn mapped<T: Sync, U: Send>(values: &[T], value: impl Fn(&T) -> U + Sync) -> Result<Vec<U>> {
    filled(values.len(), PIECE, |from, piece| {
        for (slot, from) in piece.iter_mut().zip(&values[from..]) {
            slot.write(value(from));
        }
    })
}

/// Results of `value` for 0 to `len` - 1.
pub fn generated<T: Send>(len: usize, value: impl Fn(usize) -> T + Sync) -> Result<Vec<T>> {
    filled(len, PIECE, |from, piece| {
        for (slot, at) in piece.iter_mut().zip(from..) {
            slot.write(value(at));
        }
    })
}

/// `len` values. `fill` gets the index of the first one of a piece, and the piece: zeros in the cache of this core, where
/// those that the allocator clears are no longer.
pub fn in_pieces<T: bytemuck::Zeroable + Send>(
    len: usize,
    piece: usize,
    fill: impl Fn(usize, &mut [T]) + Sync,
) -> Result<Vec<T>> {
    filled(len, piece, |from, slots| {
        for slot in &mut *slots {
            slot.write(T::zeroed());
        }
        // SAFETY: all slots were written.
        #[allow(unsafe_code)]
        fill(from, unsafe { slots.assume_init_mut() });
    })
}

/// `len` values. `fill` gets the index of the first slot of a piece, and the piece, whose slots it writes all.
fn filled<T: Send>(
    len: usize,
    piece: usize,
    fill: impl Fn(usize, &mut [MaybeUninit<T>]) + Sync,
) -> Result<Vec<T>> {
    let mut values = memory::room(len)?;
    let pieces = values.spare_capacity_mut()[..len].chunks_mut(piece).enumerate();
    pieces.par_each(|(number, values)| fill(number * piece, values));
    // SAFETY: the capacity is at least `len`. The pieces cover the slots 0 to `len - 1`, and `fill` has written each
    // piece completely: `mapped` zips it with as many values, `generated` with an endless range, and `in_pieces` writes
    // zeros. If `fill` panics, the length stays 0.
    #[allow(unsafe_code)]
    unsafe {
        values.set_len(len);
    }
    Ok(values)
}

/// Calls `change` with each of `values`.
pub fn update<T: Send>(values: &mut [T], change: impl Fn(&mut T) + Sync) {
    values.chunks_mut(PIECE).par_each(|piece| piece.iter_mut().for_each(&change));
}

/// Whether `predicate` is true for any of `values`.
pub fn any<T: Sync>(values: &[T], predicate: impl Fn(&T) -> bool + Sync) -> bool {
    // One instruction combines many bits; an early exit would be a branch for each value.
    let in_piece = |piece: &[T]| piece.iter().fold(false, |any, value| any | predicate(value));
    values.chunks(PIECE).par_any(in_piece)
}

thread_local! {
    /// Whether the loops of this thread use no other thread.
    static IS_ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Calls `work`, whose loops run on this thread alone. For small inputs: waking the other threads takes 10 µs.
pub fn on_this_thread<T>(work: impl FnOnce() -> T) -> T {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            IS_ALONE.set(self.0);
        }
    }
    let _restore = Restore(IS_ALONE.replace(true));
    work()
}

/// The only loop that is compiled with the scheduler.
fn on_all_threads(count: usize, step: &(dyn Fn(usize) + Sync)) {
    // A single item runs on this thread: on busy cores, waiting for another thread takes longer than small work.
    match count > 1 && !IS_ALONE.get() {
        true => (0..count).into_par_iter().for_each(step),
        false => (0..count).for_each(step),
    }
}

/// Locks `mutex`, even if it is poisoned: values in these locks are replaced as a whole, and rayon resumes a panic once
/// the loop has ended.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::util::error::Error;

    #[test]
    fn every_item_is_processed() {
        let mut squares = vec![0; 1000];
        squares.chunks_mut(7).enumerate().par_each(|(number, chunk)| {
            chunk.iter_mut().zip(number * 7..).for_each(|(square, n)| *square = n * n);
        });
        assert!(squares.iter().enumerate().all(|(n, &square)| square == n * n));
        assert_eq!((0..1000).par_map(|n| n * n), squares);
        let sums = (0..1000).par_fold(|| 0, |sum, n| *sum += n);
        assert_eq!(sums.iter().sum::<usize>(), 499_500);
        assert!((0..0usize).par_map(|n| n).is_empty());
    }

    #[test]
    fn loops_stay_on_this_thread() {
        let own = std::thread::current().id();
        let is_other = |_| std::thread::current().id() != own;
        assert!(on_this_thread(|| !(0..1000).par_any(is_other)));
        // A panic ends the mode, too.
        let panic = || on_this_thread(|| (0..9).par_each(|_| panic!("planned")));
        assert!(std::panic::catch_unwind(panic).is_err());
        assert!(!IS_ALONE.get());
    }

    #[test]
    fn values_are_mapped_over_the_ends_of_pieces() {
        let len = 3 * PIECE + 5;
        let mut values = generated(len, |n| n as u64).unwrap();
        assert!(values.iter().enumerate().all(|(n, &value)| value == n as u64));
        update(&mut values, |value| *value += 1);
        let halves = mapped(&values, |&value| value as f64 / 2.0).unwrap();
        assert!(halves.iter().enumerate().all(|(n, &half)| half == (n + 1) as f64 / 2.0));
        let sums = in_pieces(len, 7, |from, piece: &mut [u64]| {
            piece.iter_mut().zip(&values[from..]).for_each(|(sum, value)| *sum += value);
        });
        assert_eq!(sums.unwrap(), values);
        assert!(any(&values, |&value| value == len as u64));
        assert!(!any(&values, |&value| value > len as u64));
        assert_eq!((halves.len(), generated(0, |n| n).unwrap().len()), (len, 0));
    }

    #[test]
    fn errors_are_raised_through_loops() {
        let missing = || memory::room::<u64>(usize::MAX / 16).unwrap_or_else(memory::raise);
        let raising = || {
            (0..9).par_each(|_| drop(missing()));
            Ok(())
        };
        let error = memory::catch(raising).unwrap_err();
        assert!(error.one_line().starts_with("out of memory: "), "{error}");
    }

    #[test]
    fn a_failure_ends_the_loop() {
        let done = AtomicUsize::new(0);
        let work = |n: usize| {
            done.fetch_add(1, Relaxed);
            if n == 3 { Err(Error::usage("three")) } else { Ok(()) }
        };
        let error = (0..1 << 20).par_try_each(work).unwrap_err();
        assert_eq!(error.one_line(), "three");
        assert!(done.into_inner() < 1 << 20);
    }

    #[test]
    fn the_failure_is_that_of_the_first_item() {
        let work = |n: usize| {
            // Later items fail sooner.
            std::thread::sleep(std::time::Duration::from_millis(20usize.saturating_sub(n) as u64));
            if n < 5 { Ok(()) } else { Err(n) }
        };
        assert_eq!((0..40).par_try_each(work), Err(5));
    }
}
