//! Vectors as long as an input: where there is no memory for one, that is an error of ours, not the end of
//! the process.
//!
//! Functions that cannot fail otherwise [`raise`] it: it unwinds to [`Device::run`](crate::device::Device)
//! or to [`catch`], which turn it back into an error.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use rayon::prelude::*;

use crate::error::{Error, Kind, Result};

fn none<T>(len: usize) -> Error {
    let bytes = len as u128 * size_of::<T>() as u128;
    Error::new(Kind::Failure, format_args!("no memory for {bytes} bytes"))
}

/// An empty vector with room for `len` values.
///
/// # Errors
/// [`Kind::Failure`] when the memory is not there.
pub fn room<T>(len: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(len).map_err(|_| none::<T>(len))?;
    Ok(values)
}

/// `len` zeros, which the system makes as they are first touched, by whichever thread does.
///
/// # Errors
/// As [`room`].
pub fn zeros<T: bytemuck::Zeroable>(len: usize) -> Result<Vec<T>> {
    bytemuck::allocation::try_zeroed_vec(len).map_err(|()| none::<T>(len))
}

/// A copy of `values`.
///
/// # Errors
/// As [`room`].
pub fn copied<T: Clone>(values: &[T]) -> Result<Vec<T>> {
    let mut copy = room(values.len())?;
    copy.extend_from_slice(values);
    Ok(copy)
}

/// Moves `more` to the end of `values`.
///
/// # Errors
/// As [`room`].
pub fn append<T>(values: &mut Vec<T>, more: &mut Vec<T>) -> Result<()> {
    values.try_reserve(more.len()).map_err(|_| none::<T>(values.len() + more.len()))?;
    values.append(more);
    Ok(())
}

/// What `values` yields, computed by all cores.
///
/// # Errors
/// As [`room`].
pub fn collect<I: IndexedParallelIterator>(values: I) -> Result<Vec<I::Item>> {
    let mut collected = room(values.len())?;
    values.collect_into_vec(&mut collected);
    Ok(collected)
}

/// Unwinds with `error`.
pub fn raise<T>(error: Error) -> T {
    resume_unwind(Box::new(error))
}

/// Runs `work`, whose errors may have been [raised](raise).
///
/// # Errors
/// Those of `work`, raised or returned.
pub fn catch<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| match raised(panic) {
        Ok(error) => Err(error),
        Err(panic) => resume_unwind(panic),
    })
}

/// The error that was [raised](raise), or the panic that something else was.
///
/// # Errors
/// That panic.
pub fn raised(panic: Box<dyn Any + Send>) -> Result<Error, Box<dyn Any + Send>> {
    panic.downcast().map(|error| *error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_had_is_an_error() {
        const TOO_MANY: usize = isize::MAX as usize / 8;
        let is_refused = |error: Error| {
            assert_eq!(error.kind(), Kind::Failure);
            assert!(error.one_line().starts_with("no memory for 9223372036854775"), "{error}");
        };
        is_refused(room::<u64>(TOO_MANY).unwrap_err());
        is_refused(zeros::<u64>(TOO_MANY).unwrap_err());
        // Raised on whatever thread.
        let raising = || {
            (0..9).into_par_iter().for_each(|_| drop(room::<u64>(TOO_MANY).unwrap_or_else(raise)));
            Ok(())
        };
        is_refused(catch(raising).unwrap_err());
    }

    #[test]
    fn the_vectors_hold_what_they_should() {
        assert_eq!(zeros::<u16>(3).unwrap(), [0, 0, 0]);
        assert_eq!(copied(&[1, 2]).unwrap(), [1, 2]);
        assert_eq!(collect((0..5usize).into_par_iter().map(|i| i * i)).unwrap(), [0, 1, 4, 9, 16]);
    }
}
