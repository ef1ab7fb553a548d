//! Prefetching, and stores that bypass the processor's caches.

use std::{mem, slice};

use bytemuck::{Pod, Zeroable};

/// Starts to fetch `items` into the caches, if the processor has such an instruction.
#[inline(always)]
pub fn prefetch<T: Pod>(items: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytemuck::cast_slice::<T, u8>(items).chunks(size_of::<Line>()) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

        // SAFETY: a prefetch is a hint. It reads and writes nothing that the program sees, and no address faults.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = items;
}

/// Appends items to several buckets. Each bucket is exactly as long as the number of its items.
///
/// Items are collected and written as whole cache lines by non-temporal stores, which bypass the caches: an ordinary
/// store first reads the line that it writes, and evicts lines that are still needed.
pub struct Scatter<'a, T> {
    buckets: Vec<Bucket<'a, T>>,
    lines: Vec<Line>,
    /// Number of items in each line. One byte each, to leave the first-level cache to the lines.
    filled: Vec<u8>,
    _fence: Fence,
}

impl<'a, T: Pod> Scatter<'a, T> {
    /// Writes to `buckets`.
    pub fn new(buckets: Vec<&'a mut [T]>) -> Self {
        let buckets: Vec<Bucket<'_, T>> = buckets.into_iter().map(Bucket::new).collect();
        let lines = vec![Line::zeroed(); buckets.len()];
        let filled = buckets.iter().map(|bucket| bucket.skipped() as u8).collect();
        Self { buckets, lines, filled, _fence: Fence }
    }

    /// Appends `item` to the bucket with this index.
    ///
    /// # Panics
    /// When a bucket gets more items than it has room for.
    #[inline(always)]
    pub fn push(&mut self, bucket: usize, item: T) {
        let (line, filled) = (&mut self.lines[bucket], &mut self.filled[bucket]);
        line.items()[usize::from(*filled)] = item;
        *filled += 1;
        if usize::from(*filled) == Line::len::<T>() {
            self.buckets[bucket].write(line);
            *filled = 0;
        }
    }

    /// Writes the last items of each bucket.
    pub fn finish(self) {
        for (bucket, mut line) in self.buckets.into_iter().zip(self.lines) {
            bucket.finish(&mut line);
        }
    }
}

/// A cache line.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u64; 8]);

impl Line {
    /// Number of items in a line.
    const fn len<T>() -> usize {
        size_of::<Self>() / size_of::<T>()
    }

    #[inline(always)]
    fn items<T: Pod>(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(slice::from_mut(self))
    }
}

/// The part of a bucket that is not written yet: whole lines, and the items before and after them.
struct Bucket<'a, T> {
    head: &'a mut [T],
    lines: slice::IterMut<'a, Line>,
    tail: &'a mut [T],
}

impl<'a, T: Pod> Bucket<'a, T> {
    fn new(room: &'a mut [T]) -> Self {
        let (head, lines, tail) = bytemuck::pod_align_to_mut(room);
        Self { head, lines: lines.iter_mut(), tail }
    }

    /// Number of items of the first line that precede this bucket.
    fn skipped(&self) -> usize {
        match self.head.len() {
            0 => 0,
            len => Line::len::<T>() - len,
        }
    }

    /// Writes the next line; of the first line, only the items that are not [skipped](Self::skipped).
    #[inline(always)]
    fn write(&mut self, line: &mut Line) {
        if self.head.is_empty() {
            stream(self.lines.next().expect("room for all items"), line);
        } else {
            let skipped = self.skipped();
            mem::take(&mut self.head).copy_from_slice(&line.items()[skipped..]);
        }
    }

    /// Writes the start of the last line.
    fn finish(self, line: &mut Line) {
        self.tail.copy_from_slice(&line.items()[..self.tail.len()]);
    }
}

/// Writes a line by non-temporal stores if the processor has them. A [`Fence`] must be dropped before other code uses
/// `to`.
#[inline(always)]
fn stream(to: &mut Line, line: &Line) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__m128i, _mm_stream_si128};

        let parts: &[__m128i; 4] = bytemuck::cast_ref(line);
        let to: &mut [__m128i; 4] = bytemuck::cast_mut(to);
        for (to, &part) in to.iter_mut().zip(parts) {
            // SAFETY: `to` comes from a `&mut Line`, which is valid for 64 bytes and aligned to 64. No other code
            // reaches the line before the `Scatter` that writes it, and with it the fence, is dropped.
            #[allow(unsafe_code)]
            unsafe {
                _mm_stream_si128(to, part);
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        *to = *line;
    }
}

/// On drop, orders the non-temporal stores before everything that this thread does next.
struct Fence;

impl Drop for Fence {
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 processor has the instruction.
        #[allow(unsafe_code)]
        unsafe {
            std::arch::x86_64::_mm_sfence();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Buckets of all lengths and alignments get their items, and the memory around them does not change.
    #[test]
    fn buckets_get_their_items() {
        let mut memory = [Line::zeroed(); 4];
        let items: &mut [u32] = bytemuck::cast_slice_mut(&mut memory);
        for start in 0..20 {
            for len in 0..44 - start {
                items.fill(7);
                let (first, second) = items[start..].split_at_mut(len);
                let buckets = vec![&mut first[..], &mut second[..5]];
                let first = (0..len as u32).map(|item| (0, 100 + item));
                let second = (0..5).map(|item| (1, 200 + item));
                let mut scatter = Scatter::new(buckets);
                second.chain(first).for_each(|(bucket, item)| scatter.push(bucket, item));
                scatter.finish();
                let expected = |at: usize| match at.checked_sub(start) {
                    Some(at) if at < len => 100 + at as u32,
                    Some(at) if at < len + 5 => 200 + (at - len) as u32,
                    _ => 7,
                };
                assert!(items.iter().enumerate().all(|(at, &item)| item == expected(at)));
            }
        }
    }
}
