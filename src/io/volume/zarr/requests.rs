//! Concurrent requests to a remote store.

use std::ops::Range;

use rayon::{
    ThreadPoolBuilder,
    iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator},
};

use crate::util::error::Result;

/// Number of concurrent requests.
const AT_ONCE: usize = 32;

/// Calls `get` for each number, on `AT_ONCE` threads, since requests to a remote store mostly wait. Results are in
/// order. After a failure no more requests start.
///
/// # Errors
/// That of a request.
pub fn waiting<T: Send>(
    numbers: Range<usize>,
    get: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    match ThreadPoolBuilder::new().num_threads(AT_ONCE.min(numbers.len())).build() {
        Ok(pool) => pool.install(|| numbers.into_par_iter().with_max_len(1).map(&get).collect()),
        // The system grants no threads.
        Err(_) => numbers.map(get).collect(),
    }
}
