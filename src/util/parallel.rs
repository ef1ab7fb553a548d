//! Loops over all threads, for items that take microseconds each and more: rows, bands, blocks.
//!
//! Items come from a plain iterator and go to whichever thread is free, neighbours to the same one. Only the loop's
//! body is compiled for its types, not the scheduler: rayon's own iterators are compiled whole for each loop,
//! which was a third of this crate.

use std::{
    mem::MaybeUninit,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use rayon::prelude::*;

use crate::util::{error::Result, memory};

/// Values that a thread takes at a time where each takes nanoseconds.
const PIECE: usize = 1 << 15;

/// Ends of an iterator chain whose last step runs on all threads.
pub trait Parallel: ExactSizeIterator<Item: Send> + Sized {
    /// Calls `work` with each item.
    fn par_each(self, work: impl Fn(Self::Item) + Sync) {
        // A lock for each item, on which nobody ever waits: one lock for all would be contended where items take
        // microseconds.
        let items: Vec<_> = self.map(|item| Mutex::new(Some(item))).collect();
        on_all_threads(items.len(), &|at| {
            if let Some(item) = lock(&items[at]).take() {
                work(item);
            }
        });
    }

    /// Calls `work` with each item; may skip items behind one that failed.
    ///
    /// # Errors
    /// That of the first item in order that fails, whichever fails first in time.
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

    /// What `work` makes of each item, in their order.
    fn par_map<T: Send>(self, work: impl Fn(Self::Item) -> T + Sync) -> Vec<T> {
        let mut results: Vec<Option<T>> =
            std::iter::repeat_with(|| None).take(self.len()).collect();
        self.zip(&mut results).par_each(|(item, result)| *result = Some(work(item)));
        results.into_iter().map(|result| result.expect("every item had its turn")).collect()
    }

    /// Calls `work` with each item and a state that no other call uses at the time. Returns the states, each made by
    /// `start`: as many as calls ran at once. Which items met which state depends on timing.
    fn par_fold<S: Send>(
        self,
        start: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, Self::Item) + Sync,
    ) -> Vec<S> {
        // Idle states by thread: one that waits for a loop within `work` may begin another item meanwhile.
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

    /// Whether `is_so` of any item. Once one is found, the others are left out.
    fn par_any(self, is_so: impl Fn(Self::Item) -> bool + Sync) -> bool {
        let found = AtomicBool::new(false);
        self.par_each(|item| {
            if !found.load(Relaxed) && is_so(item) {
                found.store(true, Relaxed);
            }
        });
        found.into_inner()
    }
}

impl<I: ExactSizeIterator<Item: Send>> Parallel for I {}

/// `value` of each of `values`.
///
/// # Errors
/// As [`memory::room`].
pub fn mapped<T: Sync, U: Send>(values: &[T], value: impl Fn(&T) -> U + Sync) -> Result<Vec<U>> {
    filled(values.len(), |from, piece| {
        for (slot, from) in piece.iter_mut().zip(&values[from..]) {
            slot.write(value(from));
        }
    })
}

/// `value` of each number below `len`.
///
/// # Errors
/// As [`memory::room`].
pub fn generated<T: Send>(len: usize, value: impl Fn(usize) -> T + Sync) -> Result<Vec<T>> {
    filled(len, |from, piece| {
        for (slot, at) in piece.iter_mut().zip(from..) {
            slot.write(value(at));
        }
    })
}

/// `len` values. `fill` gets the number of the first slot of a chunk and the chunk, all of whose slots it writes.
fn filled<T: Send>(
    len: usize,
    fill: impl Fn(usize, &mut [MaybeUninit<T>]) + Sync,
) -> Result<Vec<T>> {
    let mut values = memory::room(len)?;
    let pieces = values.spare_capacity_mut()[..len].chunks_mut(PIECE).enumerate();
    pieces.par_each(|(number, piece)| fill(number * PIECE, piece));
    // SAFETY: `room` gave a capacity of at least `len`. The chunks cover the slots 0 to `len - 1`, and `fill` wrote all
    // of its chunk: `mapped` zips it with as many values, `generated` with an endless range. A panic in `fill` leaves
    // the length at 0.
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

/// Whether `is_so` of any of `values`.
pub fn any<T: Sync>(values: &[T], is_so: impl Fn(&T) -> bool + Sync) -> bool {
    // A sum of bits is one instruction for many values, where an early end is a branch for each.
    let in_piece = |piece: &[T]| piece.iter().fold(false, |any, value| any | is_so(value));
    values.chunks(PIECE).par_any(in_piece)
}

/// The one loop that the scheduler is compiled for.
fn on_all_threads(count: usize, step: &(dyn Fn(usize) + Sync)) {
    // One item waits for no other thread: on busy cores that takes longer than small work does.
    match count {
        0 | 1 => (0..count).for_each(step),
        _ => (0..count).into_par_iter().for_each(step),
    }
}

/// Locks `mutex`, poisoned or not: a value behind these locks is replaced as a whole, and rayon resumes a panic once
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
    fn every_item_has_its_turn() {
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
    fn values_are_mapped_over_the_ends_of_pieces() {
        let len = 3 * PIECE + 5;
        let mut values = generated(len, |n| n as u64).unwrap();
        assert!(values.iter().enumerate().all(|(n, &value)| value == n as u64));
        update(&mut values, |value| *value += 1);
        let halves = mapped(&values, |&value| value as f64 / 2.0).unwrap();
        assert!(halves.iter().enumerate().all(|(n, &half)| half == (n + 1) as f64 / 2.0));
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
        assert!(error.one_line().starts_with("no memory for "), "{error}");
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
            // Later items are the sooner to fail.
            std::thread::sleep(std::time::Duration::from_millis(20usize.saturating_sub(n) as u64));
            if n < 5 { Ok(()) } else { Err(n) }
        };
        assert_eq!((0..40).par_try_each(work), Err(5));
    }
}
