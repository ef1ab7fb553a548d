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

/// Writes each item to the next slot of one of several places. Each place has exactly as many slots as items come for
/// it.
///
/// Items are collected and written as whole cache lines past the caches (non-temporal stores): an ordinary store first
/// reads the line that it writes, and evicts lines that are still needed.
pub struct Scatter<'a, T> {
    places: Vec<Place<'a, T>>,
    lines: Vec<Line>,
    /// How many items each line has. One byte each, to leave the first-level cache to the lines.
    filled: Vec<u8>,
    _fence: Fence,
}

impl<'a, T: Pod> Scatter<'a, T> {
    /// Writes to `places`.
    pub fn new(places: Vec<&'a mut [T]>) -> Self {
        let places: Vec<Place<'_, T>> = places.into_iter().map(Place::new).collect();
        let lines = vec![Line::zeroed(); places.len()];
        let filled = places.iter().map(|place| place.skipped() as u8).collect();
        Self { places, lines, filled, _fence: Fence }
    }

    /// Writes `item` to the place of this number.
    ///
    /// # Panics
    /// When more items come for a place than it has slots.
    #[inline(always)]
    pub fn push(&mut self, place: usize, item: T) {
        let (line, filled) = (&mut self.lines[place], &mut self.filled[place]);
        line.items()[usize::from(*filled)] = item;
        *filled += 1;
        if usize::from(*filled) == Line::len::<T>() {
            self.places[place].write(line);
            *filled = 0;
        }
    }

    /// Writes the last items of each place.
    pub fn finish(self) {
        for (place, mut line) in self.places.into_iter().zip(self.lines) {
            place.finish(&mut line);
        }
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
            // the line before the `Scatter` that writes it is dropped, and with it the fence.
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
                let mut scatter = Scatter::new(places);
                second.chain(first).for_each(|(place, item)| scatter.push(place, item));
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
