//! Use of the processor's caches: fetching lines before they are needed, and writing lines past the caches.

use std::{mem, slice};

use bytemuck::{Pod, Zeroable};

/// Begins to fetch `items` into the caches, where the processor can be told to.
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

/// Writes each item to the next slot of one of `places`, whose number it comes with. Each place has exactly as many
/// slots as items come for it.
///
/// Items are collected and written as whole cache lines past the caches (non-temporal stores): an ordinary store first
/// reads the line that it writes, and evicts lines that are still needed.
///
/// # Panics
/// When more items come for a place than it has slots.
#[inline]
pub fn scatter<T: Pod>(places: Vec<&mut [T]>, items: impl Iterator<Item = (usize, T)>) {
    let _fence = Fence;
    let mut places: Vec<Place<'_, T>> = places.into_iter().map(Place::new).collect();
    let mut lines = vec![Line::zeroed(); places.len()];
    let mut filled: Vec<usize> = places.iter().map(Place::skipped).collect();
    for (place, item) in items {
        let (line, filled) = (&mut lines[place], &mut filled[place]);
        line.items()[*filled] = item;
        *filled += 1;
        if *filled == Line::len::<T>() {
            places[place].write(line);
            *filled = 0;
        }
    }
    for (place, line) in places.into_iter().zip(&mut lines) {
        place.finish(line);
    }
}

/// A cache line.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u64; 8]);

impl Line {
    /// How many items it has.
    const fn len<T>() -> usize {
        size_of::<Self>() / size_of::<T>()
    }

    /// Its items.
    #[inline(always)]
    fn items<T: Pod>(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(slice::from_mut(self))
    }
}

/// Room for items: whole lines, and what is before and behind those.
struct Place<'a, T> {
    head: &'a mut [T],
    lines: slice::IterMut<'a, Line>,
    tail: &'a mut [T],
}

impl<'a, T: Pod> Place<'a, T> {
    fn new(room: &'a mut [T]) -> Self {
        let (head, lines, tail) = bytemuck::pod_align_to_mut(room);
        Self { head, lines: lines.iter_mut(), tail }
    }

    /// How many items of the first line are before this place.
    fn skipped(&self) -> usize {
        match self.head.len() {
            0 => 0,
            len => Line::len::<T>() - len,
        }
    }

    /// Writes the next line; of the first one, the items that are not [skipped](Self::skipped).
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

/// Writes a line past the caches where the processor can. A [`Fence`] must be dropped before anyone else uses `to`.
#[inline(always)]
fn stream(to: &mut Line, line: &Line) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__m128i, _mm_stream_si128};

        let parts: &[__m128i; 4] = bytemuck::cast_ref(line);
        let to: &mut [__m128i; 4] = bytemuck::cast_mut(to);
        for (to, &part) in to.iter_mut().zip(parts) {
            // SAFETY: `to` comes from a `&mut Line`, which is valid for 64 bytes and aligned to 64. Nobody else reaches
            // the line before `scatter` returns it, and `scatter` drops its fence first.
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

/// On drop, orders the writes past the caches before everything that this thread does next.
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

    /// Places of all lengths from all alignments take their items, and what is around them stays.
    #[test]
    fn places_take_their_items() {
        let mut memory = [Line::zeroed(); 4];
        let items: &mut [u32] = bytemuck::cast_slice_mut(&mut memory);
        for start in 0..20 {
            for len in 0..44 - start {
                items.fill(7);
                let (first, second) = items[start..].split_at_mut(len);
                let places = vec![&mut first[..], &mut second[..5]];
                let first = (0..len as u32).map(|item| (0, 100 + item));
                let second = (0..5).map(|item| (1, 200 + item));
                scatter(places, second.chain(first));
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
