//! Concurrent requests to a remote store.

use std::{
    ops::Range,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use crate::util::{error::Result, threads};

/// Number of concurrent requests.
const AT_ONCE: usize = 32;

/// Calls `get` for each number, on `AT_ONCE` threads, since requests to a remote store mostly wait. Results are in
/// order. After a failure no more requests start.
///
/// # Errors
/// Those of a request, if a failure kept other requests from starting.
pub fn waiting<T: Send>(
    numbers: Range<usize>,
    get: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<Result<T>>> {
    let next = AtomicUsize::new(numbers.start);
    let got: Vec<Mutex<Option<Result<T>>>> = numbers.clone().map(|_| Mutex::new(None)).collect();
    let failed = AtomicBool::new(false);
    let work = || {
        while !failed.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= numbers.end {
                return;
            }
            let result = get(number);
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            let mut got =
                got[number - numbers.start].lock().unwrap_or_else(PoisonError::into_inner);
            *got = Some(result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..AT_ONCE.min(numbers.len()) {
            // If a thread cannot be started, fewer do the same work.
            if threads::spawn_in(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    let results: Vec<Option<Result<T>>> = got
        .into_iter()
        .map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect();
    // A number has no result only if a request has failed.
    match results.iter().all(Option::is_some) {
        true => Ok(results.into_iter().flatten().collect()),
        false => Err(results.into_iter().flatten().find_map(Result::err).expect("one has failed")),
    }
}
