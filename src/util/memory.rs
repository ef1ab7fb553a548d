//! Allocation of vectors as long as an input. A failed allocation is an error; with `Vec`'s own methods it would abort
//! the process.
//!
//! Functions without a `Result` [`raise`] the error: it unwinds to [`catch`], in
//! [`Device::run`](crate::device::Device::run) or at the start of a job, which returns it.

use std::{
    any::Any,
    fmt::Display,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

#[cfg(target_os = "linux")]
use rustix::mm::Advice;

use crate::util::error::{Error, Hint, Kind, Result};

/// Error for a failed allocation of `len` values.
fn allocation_error<T>(len: usize) -> Error {
    let bytes = format_size((len as u64).saturating_mul(size_of::<T>() as u64), f64::ceil);
    Error::new(Kind::Failure, format_args!("out of memory: cannot allocate {bytes}"))
}

/// Formats `bytes` in a suitable unit with one decimal, rounded by `round`: `12.5 MiB`.
fn format_size(bytes: u64, round: fn(f64) -> f64) -> String {
    let unit = bytes.max(1).ilog2() / 10;
    if unit == 0 {
        return format!("{bytes} bytes");
    }
    let tenths = round(bytes as f64 * 10.0 / (1u64 << (10 * unit)) as f64);
    format!("{} {}iB", tenths / 10.0, ["K", "M", "G", "T", "P", "E"][unit as usize - 1])
}

/// Message that `what` needs `needed` bytes, more than `limit`. Both are rounded so that the first looks larger.
pub fn excess(what: impl Display, needed: u64, limit: u64) -> String {
    let (needed, limit) = (format_size(needed, f64::ceil), format_size(limit, f64::floor));
    format!("{what} needs at least {needed} of memory, more than the limit of {limit}")
}

/// Error for `what`, which needs `needed` bytes, more than the memory limit `limit`.
pub fn exceeds_limit(what: impl Display, needed: u64, limit: u64) -> Error {
    Error::bad_input(excess(what, needed, limit)).with_hint(Hint::Memory)
}

/// Error for `what`, which needs more than the `rest` that the memory limit leaves for it.
pub fn exceeds_rest(what: impl Display, rest: u64) -> Error {
    let rest = format_size(rest, f64::floor);
    let message =
        format_args!("{what} needs more than the {rest} of memory that the limit leaves for it");
    Error::bad_input(message).with_hint(Hint::Memory)
}

/// An empty vector with room for `len` values.
pub fn room<T>(len: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(len).map_err(|_| allocation_error::<T>(len))?;
    ask_for_huge_pages(values.spare_capacity_mut());
    Ok(values)
}

/// `len` zeros. Their pages are mapped when first written, by the thread that writes.
pub fn zeros<T: bytemuck::Zeroable>(len: usize) -> Result<Vec<T>> {
    let mut values =
        bytemuck::allocation::try_zeroed_vec(len).map_err(|()| allocation_error::<T>(len))?;
    ask_for_huge_pages(&mut values[..]);
    Ok(values)
}

/// Asks the system to map these values in pages of 2 MiB: new memory is cleared when a page is first written, and with
/// pages of 4 KiB that takes longer than most kernels.
fn ask_for_huge_pages<T>(values: &mut [T]) {
    #[cfg(target_os = "linux")]
    {
        const MIN_BYTES: usize = 4 << 20;
        let page = rustix::param::page_size();
        let range = values.as_mut_ptr_range();
        let [start, end] = [range.start, range.end].map(<*mut T>::addr);
        if end - start < MIN_BYTES {
            return;
        }
        let whole = start.next_multiple_of(page)..end / page * page;
        let first = range.start.with_addr(whole.start).cast();
        // SAFETY: the range consists of whole pages inside `values`, and the advice does not change their content. If
        // the system refuses it, nothing happens.
        #[allow(unsafe_code)]
        let _ = unsafe { rustix::mm::madvise(first, whole.len(), Advice::LinuxHugepage) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = values;
}

/// Returns freed memory to the system. Command lines of many files leave holes, which the allocator would keep for this
/// thread while other threads allocate.
#[cfg(feature = "cli")]
pub fn trim_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the call has no requirements. It takes the locks of the allocator and does not touch allocated memory.
    #[allow(unsafe_code)]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Makes the allocator return blocks of 4 MiB and more to the system when they are freed. By default, it keeps blocks of up to
/// 32 MiB once it has seen one, in a heap for each thread.
#[cfg(feature = "cli")]
pub fn return_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the call has no requirements. It takes the lock of the allocator and sets a number.
    #[allow(unsafe_code)]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 4 << 20);
    }
}

/// A copy of `values`.
pub fn copied<T: Clone>(values: &[T]) -> Result<Vec<T>> {
    let mut copy = room(values.len())?;
    copy.extend_from_slice(values);
    Ok(copy)
}

/// `len` copies of `value`. [Raises](raise) an error if there is not enough memory.
pub fn filled<T: Clone>(value: T, len: usize) -> Vec<T> {
    let mut values = room(len).unwrap_or_else(raise);
    values.resize(len, value);
    values
}

/// The items of `values`. [Raises](raise) an error if there is not enough memory.
pub fn collected<T>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let values = values.into_iter();
    let mut all = room(values.size_hint().0).unwrap_or_else(raise);
    for value in values {
        if all.len() == all.capacity() {
            reserve(&mut all, 1).unwrap_or_else(raise);
        }
        all.push(value);
    }
    all
}

/// Makes room for `more` values. An allocation at least doubles the capacity, so that repeated growth takes linear
/// time.
pub fn reserve<T>(values: &mut Vec<T>, more: usize) -> Result<()> {
    values.try_reserve(more).map_err(|_| allocation_error::<T>(values.len() + more))
}

/// Changes the length of `values` to `len`, in the same memory if that is large enough. The content is then
/// unspecified.
pub fn resize<T: bytemuck::Zeroable + Clone>(values: &mut Vec<T>, len: usize) -> Result<()> {
    if values.capacity() < len {
        *values = zeros(len)?;
    } else {
        values.resize(len, T::zeroed());
    }
    Ok(())
}

/// Moves `more` to the end of `values`.
pub fn append<T>(values: &mut Vec<T>, more: &mut Vec<T>) -> Result<()> {
    reserve(values, more.len())?;
    values.append(more);
    Ok(())
}

/// Unwinds with `error`.
pub fn raise<T>(error: Error) -> T {
    resume_unwind(Box::new(error))
}

/// Runs `work` and turns an error that it [raises](raise) into one that it returns.
pub fn catch<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| match raised(panic) {
        Ok(error) => Err(error),
        Err(panic) => resume_unwind(panic),
    })
}

/// The error that `panic` carries if it was [raised](raise). Any other panic is returned unchanged.
pub fn raised(panic: Box<dyn Any + Send>) -> Result<Error, Box<dyn Any + Send>> {
    panic.downcast().map(|error| *error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_allocations_are_errors() {
        const TOO_MANY: usize = isize::MAX as usize / 8;
        let is_allocation_error = |error: Error| {
            assert_eq!(error.kind(), Kind::Failure);
            assert!(
                error.one_line().starts_with("out of memory: cannot allocate 8 EiB"),
                "{error}"
            );
        };
        is_allocation_error(room::<u64>(TOO_MANY).unwrap_err());
        is_allocation_error(zeros::<u64>(TOO_MANY).unwrap_err());
        is_allocation_error(catch(|| Ok(filled(0u64, TOO_MANY))).unwrap_err());
        is_allocation_error(catch(|| Ok(collected(0..TOO_MANY as u64))).unwrap_err());
    }

    #[test]
    fn an_excess_looks_larger_than_its_limit() {
        let texts = |needed, limit| excess("it", needed, limit);
        let tail = |needed, limit| {
            format!("it needs at least {needed} of memory, more than the limit of {limit}")
        };
        assert_eq!(texts(1001, 1000), tail("1001 bytes", "1000 bytes"));
        assert_eq!(texts((4 << 20) + 1, 4 << 20), tail("4.1 MiB", "4 MiB"));
        assert_eq!(texts(u64::MAX, (3 << 30) - 1), tail("16 EiB", "2.9 GiB"));
    }

    /// The advice about huge pages does not change values.
    #[test]
    fn large_vectors_keep_their_values() {
        const LEN: usize = (9 << 20) + 5;
        let mut values = zeros::<u8>(LEN).unwrap();
        assert!(values.iter().all(|&value| value == 0));
        values.iter_mut().zip(0u32..).for_each(|(value, n)| *value = n as u8);
        reserve(&mut values, LEN).unwrap();
        let copy = copied(&values).unwrap();
        assert!(copy.iter().zip(0u32..).all(|(&value, n)| value == n as u8) && copy.len() == LEN);
    }

    #[test]
    fn vectors_have_the_right_values() {
        assert_eq!(zeros::<u16>(3).unwrap(), [0, 0, 0]);
        assert_eq!(copied(&[1, 2]).unwrap(), [1, 2]);
        assert_eq!(filled('a', 2), ['a'; 2]);
        assert!((0..100).eq(collected((0..200).filter(|n| n % 2 == 0)).iter().map(|n| n / 2)));
        let mut values = vec![1, 2, 3];
        for len in [2, 3, 700] {
            resize(&mut values, len).unwrap();
            assert!(values.len() == len && values[2..].iter().all(|&value| value == 0));
        }
    }
}
