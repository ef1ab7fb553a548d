//! Concurrent requests to a remote store.

use std::{iter::repeat_with, ops::Range};

use rayon::ThreadPoolBuilder;

use crate::util::{error::Result, parallel::Parallel};

/// Number of concurrent requests.
const CONCURRENCY: usize = 32;

/// Calls `get` for each number, on `CONCURRENCY` threads, since requests to a remote store mostly wait. Results are in
/// order. After a failure no more requests start. The error is that of the first failed request in order.
pub fn fetch_all<T: Send>(
    numbers: Range<usize>,
    get: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let Ok(pool) = ThreadPoolBuilder::new().num_threads(CONCURRENCY.min(numbers.len())).build()
    else {
        // The system grants no threads.
        return numbers.map(get).collect();
    };
    let mut results: Vec<Option<T>> = repeat_with(|| None).take(numbers.len()).collect();
    let request = |(number, result): (usize, &mut Option<T>)| -> Result<()> {
        *result = Some(get(number)?);
        Ok(())
    };
    pool.install(|| numbers.zip(&mut results).par_try_each(request))?;
    Ok(results.into_iter().flatten().collect())
}
