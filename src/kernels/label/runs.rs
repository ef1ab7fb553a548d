//! Runs: neighbouring samples of a row in the same component.
//!
//! Rows are bits. Of two rows, bitwise operations find the positions where a run of one begins to touch a run of the
//! other, and the number of starts before a position is the number of the run there.

use std::{cmp::Ordering, ops::Range};

use super::forest::Forest;
use crate::{
    data::samples::Samples,
    for_samples,
    util::{error::Result, memory},
};

/// Which samples are neighbours: those whose positions differ by at most 1, along at most this number of axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach(pub usize);

/// How a grid is divided into slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slices {
    /// Samples in a row.
    pub width: usize,
    /// Rows in a slice.
    pub height: usize,
    /// Whether slices are rows of an image. Otherwise they are planes of a volume.
    pub are_rows: bool,
}

/// For each sample, whether a run there is known to be joined with the run above, with the run before that, or the run
/// before it with the one above.
#[derive(Default)]
struct Joined {
    straight: u64,
    falling: u64,
    rising: u64,
}

/// The runs of some rows.
#[derive(Debug, Default)]
pub struct Runs {
    /// Samples in a row.
    width: usize,
    /// Words of 64 bits in a row.
    words: usize,
    /// For each sample, whether it is in a run.
    set: Vec<u64>,
    /// For each sample, whether a run starts there; empty if this follows from `set`.
    starts: Vec<u64>,
    /// The sample of each run, if only equal samples make a component.
    values: Vec<u64>,
    /// For each sample, if only equal samples make a component, whether the one in the row before is equal, and the one
    /// in the plane before.
    equal: [Vec<u64>; 2],
    /// Rows at the start for which the plane before is not known.
    first_rows: usize,
    /// Number of runs before each row, and in all rows.
    rows: Vec<usize>,
    /// The provisional number of each run.
    numbers: Vec<u32>,
}

/// Bit i is that of byte i, which is 0 or 1.
fn bits(bytes: &[u8; 64]) -> u64 {
    // The product has the lowest bits of all bytes in its highest byte.
    let byte = |at: usize| {
        let bytes = bytes[8 * at..][..8].try_into().expect("eight bytes");
        u64::from_le_bytes(bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56
    };
    (0..8).fold(0, |bits, at| bits | byte(at) << (8 * at))
}

/// Bits of the word `at`, each moved to the next sample.
fn later(row: &[u64], at: usize) -> u64 {
    row[at] << 1 | at.checked_sub(1).map_or(0, |before| row[before] >> 63)
}

/// Bits of the word `at` and of the samples before and after.
fn near(row: &[u64], at: usize) -> u64 {
    let after = row.get(at + 1).map_or(0, |after| after << 63);
    row[at] | later(row, at) | row[at] >> 1 | after
}

/// Calls `each` with the position of each bit that is set.
fn for_each_bit(mut bits: u64, mut each: impl FnMut(u32)) {
    while bits != 0 {
        each(bits.trailing_zeros());
        bits &= bits - 1;
    }
}

/// Memory of rows of `width` samples with `runs` runs, and of the provisional numbers of these, in bytes.
pub fn bytes(rows: u64, width: usize, runs: u64, is_equal: bool, has_weights: bool) -> u64 {
    let words = 8 * width.div_ceil(64) as u64;
    let row = size_of::<usize>() as u64 + if is_equal { 4 * words } else { words };
    // A provisional number takes 4 bytes each in runs, slab forest, band forest and last pass, and two weights.
    let run = 16 + if is_equal { 8 } else { 0 } + if has_weights { 16 } else { 0 };
    rows.saturating_mul(row).saturating_add(runs.saturating_mul(run))
}

/// The number of runs in `samples` of `keys`, rows of `width`, or a little more.
pub fn max_count(keys: &Samples, samples: Range<usize>, width: usize, is_equal: bool) -> u64 {
    fn starts<T: Copy + PartialEq + Default>(keys: &[T], is_equal: bool) -> usize {
        let zero = T::default();
        let is_start = |[a, b]: [T; 2]| b != zero && (a == zero || is_equal && a != b);
        keys.windows(2).filter(|pair| is_start([pair[0], pair[1]])).count()
    }
    // The first run of each row may continue the row before.
    let rows = samples.len() / width;
    for_samples!(keys, keys => (rows + starts(&keys[samples], is_equal)) as u64)
}

impl Runs {
    /// The runs of `samples` of `keys`, rows of `width`: of samples that are not zero, and if `is_equal` is set, equal.
    pub fn of(
        keys: &Samples,
        samples: Range<usize>,
        slices: Slices,
        is_equal: bool,
    ) -> Result<Self> {
        fn all<T: bytemuck::Pod + PartialEq + Into<u64>>(
            keys: &Samples,
            samples: Range<usize>,
            slices: Slices,
            is_equal: bool,
            is_set: impl Fn(T) -> bool,
        ) -> Result<Runs> {
            let Slices { width, height, are_rows } = slices;
            let keys: &[T] = bytemuck::cast_slice(keys.as_bytes());
            let (first, rows, words) =
                (samples.start / width, samples.len() / width, width.div_ceil(64));
            let mut runs = Runs { width, words, rows: memory::room(rows + 1)?, ..Runs::default() };
            runs.rows.push(0);
            runs.set = memory::room(rows * words)?;
            if is_equal {
                runs.starts = memory::room(rows * words)?;
                runs.equal = [memory::room(rows * words)?, memory::room(rows * words)?];
                runs.first_rows = if are_rows { rows } else { height.saturating_sub(first) };
            }
            let row = |row: usize| &keys[row * width..][..width];
            for number in first..first + rows {
                let is_inner = is_equal && (number - first) % height > 0;
                let before = is_inner.then(|| row(number - 1));
                let has_plane = is_equal && number - first >= runs.first_rows;
                let plane = has_plane.then(|| row(number - height));
                runs.add_row(row(number), [before, plane], &is_set, is_equal)?;
            }
            Ok(runs)
        }
        // Zeros of floats may have a sign.
        match keys {
            Samples::U8(_) | Samples::I8(_) => {
                all(keys, samples, slices, is_equal, |key: u8| key != 0)
            }
            Samples::U16(_) | Samples::I16(_) => {
                all(keys, samples, slices, is_equal, |key: u16| key != 0)
            }
            Samples::U32(_) | Samples::I32(_) => {
                all(keys, samples, slices, is_equal, |key: u32| key != 0)
            }
            Samples::F32(_) => all(keys, samples, slices, is_equal, |key: u32| key << 1 != 0),
            Samples::F64(_) => all(keys, samples, slices, is_equal, |key: u64| key << 1 != 0),
        }
    }

    fn add_row<T: Copy + PartialEq + Into<u64>>(
        &mut self,
        row: &[T],
        others: [Option<&[T]>; 2],
        is_set: impl Fn(T) -> bool,
        is_equal: bool,
    ) -> Result<()> {
        let (mut last, mut count) = (0, self.rows[self.rows.len() - 1]);
        for (number, chunk) in row.chunks(64).enumerate() {
            let mut flags = [0; 64];
            flags.iter_mut().zip(chunk).for_each(|(flag, &key)| *flag = u8::from(is_set(key)));
            let set = bits(&flags);
            let mut starts = set & !(set << 1 | last);
            last = set >> 63;
            if is_equal {
                let pairs = chunk.iter().skip(1).zip(chunk);
                flags[0] = u8::from(number > 0 && row[64 * number] != row[64 * number - 1]);
                flags[1..]
                    .iter_mut()
                    .zip(pairs)
                    .for_each(|(flag, (a, b))| *flag = u8::from(a != b));
                starts |= set & bits(&flags);
                self.starts.push(starts);
                for (equal, other) in self.equal.iter_mut().zip(others) {
                    let other = other.map_or(&[][..], |other| &other[64 * number..]);
                    let mut flags = [0; 64];
                    let pairs = chunk.iter().zip(other);
                    flags.iter_mut().zip(pairs).for_each(|(flag, (a, b))| *flag = u8::from(a == b));
                    equal.push(set & bits(&flags));
                }
                memory::reserve(&mut self.values, 64)?;
                for_each_bit(starts, |bit| self.values.push(chunk[bit as usize].into()));
            }
            self.set.push(set);
            count += starts.count_ones() as usize;
        }
        self.rows.push(count);
        Ok(())
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> u64 {
        let [above, before] = &self.equal;
        let words = [&self.set, &self.starts, &self.values, above, before];
        let words: usize = words.iter().map(|words| words.len()).sum();
        (8 * (words + self.rows.len()) + 4 * self.numbers.len()) as u64
    }

    /// The last `count` rows, to be compared with rows that follow.
    pub fn last_rows(&self, count: usize) -> Result<Self> {
        let first = self.rows() - count;
        let (run, word) = (self.rows[first], first * self.words);
        let numbers = memory::copied(&self.numbers[run..])?;
        let mut rows = memory::copied(&self.rows[first..])?;
        rows.iter_mut().for_each(|own| *own -= run);
        Ok(Self {
            width: self.width,
            words: self.words,
            set: memory::copied(&self.set[word..])?,
            starts: memory::copied(self.starts.get(word..).unwrap_or_default())?,
            values: memory::copied(self.values.get(run..).unwrap_or_default())?,
            rows,
            numbers,
            ..Self::default()
        })
    }

    /// The provisional numbers of all runs.
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// Replaces each provisional number by what `number` returns for it.
    pub fn renumber(&mut self, number: impl Fn(u32) -> u32) {
        self.numbers.iter_mut().for_each(|own| *own = number(*own));
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows.len() - 1
    }

    fn row(&self, row: usize) -> &[u64] {
        &self.set[row * self.words..][..self.words]
    }

    /// Where samples equal those in the row before (0) or the plane before (1); `None` if that is not known.
    fn equal(&self, which: usize, row: usize) -> Option<&[u64]> {
        let is_known = which == 0 || row >= self.first_rows;
        is_known.then(|| self.equal[which].get(row * self.words..)?.get(..self.words)).flatten()
    }

    /// Where runs of a row start.
    fn starts(&self, row: usize, word: usize) -> u64 {
        match self.starts.get(row * self.words + word) {
            Some(&starts) => starts,
            None => self.row(row)[word] & !later(self.row(row), word),
        }
    }

    /// Calls `each` with first sample, end and provisional number of each run of a row.
    pub fn for_each_in_row(&self, row: usize, mut each: impl FnMut(usize, usize, u32)) {
        let (set, mut open, mut run) = (self.row(row), None, self.rows[row]);
        let mut end = |at: usize, start: usize| {
            each(start, at, self.numbers[run]);
            run += 1;
        };
        for word in 0..self.words {
            let starts = self.starts(row, word);
            let ends = later(set, word) & !(set[word] & !starts);
            for_each_bit(starts | ends, |bit| {
                let at = 64 * word + bit as usize;
                if let Some(start) = open.take() {
                    end(at, start);
                }
                open = (starts >> bit & 1 != 0).then_some(at);
            });
        }
        if let Some(start) = open {
            end(self.width, start);
        }
    }

    /// Calls `each` with touching runs: one of the row `above` of `own`, and one of `row` of `other`. If `is_diagonal` is
    /// set, runs also touch where the one ends before the other starts. `equal` tells where samples of both are equal.
    /// `joined` returns for a word the positions where touching runs are known to be joined.
    fn touching(
        [own, other]: [&Self; 2],
        [above, row]: [usize; 2],
        is_diagonal: bool,
        equal: Option<&[u64]>,
        joined: impl Fn(usize) -> Joined,
        mut each: impl FnMut(usize, usize),
    ) {
        let (a, b) = (own.row(above), other.row(row));
        // Number of runs that start before a word.
        let (mut before_a, mut before_b) = (own.rows[above], other.rows[row]);
        for word in 0..own.words {
            let [starts_a, starts_b] = [own.starts(above, word), other.starts(row, word)];
            let joined = joined(word);
            let (both, both_before) = match equal {
                Some(equal) => (equal[word], later(equal, word)),
                None => (a[word] & b[word], later(a, word) & later(b, word)),
            };
            let all = both & (!both_before | starts_a | starts_b) & !joined.straight;
            let [mut falling, mut rising] = [0; 2];
            if is_diagonal {
                // Runs start here and end before, in one row and in the other one.
                falling = starts_b & later(a, word) & !(a[word] & !starts_a) & !joined.falling;
                rising = starts_a & later(b, word) & !(b[word] & !starts_b) & !joined.rising;
            }
            let mut call = |bits: u64, [back_a, back_b]: [u64; 2], is_same: bool| {
                for_each_bit(bits, |bit| {
                    let until = u64::MAX >> (63 - bit);
                    let count = |starts: u64, back: u64| {
                        (starts & until).count_ones() as usize - (back >> bit & 1) as usize
                    };
                    let run_a = (before_a + count(starts_a, back_a)).wrapping_sub(1);
                    let run_b = (before_b + count(starts_b, back_b)).wrapping_sub(1);
                    if is_same || own.values[run_a] == other.values[run_b] {
                        each(run_a, run_b);
                    }
                });
            };
            if all | falling | rising == 0 {
            } else if own.values.is_empty() {
                // The runs that end are the last ones that started.
                call(all | falling | rising, [0, 0], true);
            } else {
                call(all, [0, 0], equal.is_some());
                call(falling, [starts_a, 0], false);
                call(rising, [0, starts_b], false);
            }
            before_a += starts_a.count_ones() as usize;
            before_b += starts_b.count_ones() as usize;
        }
    }

    /// Adds provisional numbers for the runs of `slice`, the next rows, to `forest`. They depend on this slice only.
    pub fn number(&mut self, slice: Range<usize>, reach: Reach, forest: &mut Forest) -> Result<()> {
        const NONE: u32 = u32::MAX;
        let mut numbers = std::mem::take(&mut self.numbers);
        for row in slice.clone() {
            let own = self.rows[row]..self.rows[row + 1];
            forest.reserve(own.len())?;
            memory::reserve(&mut numbers, own.len())?;
            numbers.resize(own.end, NONE);
            if row > slice.start {
                let joined = |_| Joined::default();
                let (rows, equal) = ([row - 1, row], self.equal(0, row));
                let each = |above, run| match numbers[run] {
                    NONE => numbers[run] = forest.root(numbers[above]),
                    number => forest.join(number, numbers[above]),
                };
                Self::touching([self; 2], rows, reach.0 > 1, equal, joined, each);
            }
            for number in numbers[own].iter_mut().filter(|number| **number == NONE) {
                *number = forest.add();
            }
        }
        self.numbers = numbers;
        Ok(())
    }

    /// Calls `join` with the provisional numbers of touching runs in two slices: one from the row `above` of `own` on,
    /// and one from `row` of `other` on.
    pub fn touching_slices(
        [own, other]: [&Self; 2],
        [above, row]: [usize; 2],
        slices: Slices,
        Reach(reach): Reach,
        mut join: impl FnMut(u32, u32),
    ) {
        let mut each = |a: usize, b: usize| join(own.numbers[a], other.numbers[b]);
        if slices.are_rows {
            let rows = [above + slices.height - 1, row];
            let joined = |_| Joined::default();
            return Self::touching([own, other], rows, reach > 1, None, joined, each);
        }
        let is_equal = !own.values.is_empty();
        for y in 0..slices.height {
            // Where a third run touches both runs, and so has joined them already: in the row before, or in the slice
            // before at the same y. Equal samples must also have the same x as that of `other`.
            let known = |y: usize| {
                if is_equal {
                    [other.equal(0, row + y), other.equal(1, row + y)]
                } else {
                    [Some(other.row(row + y - usize::from(y > 0))), Some(own.row(above + y))]
                }
            };
            let [before, middle] = known(y);
            let before = before.filter(|_| y > 0);
            let corner = y.checked_sub(1).and_then(|y| known(y)[1]);
            for next in y.saturating_sub(1)..(y + 2).min(slices.height) {
                let axes = 1 + usize::from(next != y);
                if axes > reach {
                    continue;
                }
                let between = match next.cmp(&y) {
                    Ordering::Less => [middle, before],
                    Ordering::Equal => [None, before],
                    Ordering::Greater => [middle, None],
                };
                let joined = |word: usize| -> Joined {
                    let any = |bits: fn(&[u64], usize) -> u64| {
                        between.iter().flatten().fold(0, |all, row| all | bits(row, word))
                    };
                    let at = any(|row, word| row[word]);
                    let [straight, falling, rising] = match (reach, axes) {
                        (1, _) => [at & corner.map_or(0, |corner| corner[word]), 0, 0],
                        (2, 1) if is_equal => [at, 0, 0],
                        (2, 1) => [at, any(later), at],
                        _ if is_equal => [at, at, any(later)],
                        _ => [any(near), at | any(later), at | any(later)],
                    };
                    Joined { straight, falling, rising }
                };
                let equal = other.equal(1, row + y).filter(|_| axes == 1);
                let rows = [above + next, row + y];
                Self::touching([own, other], rows, axes < reach, equal, joined, &mut each);
            }
        }
    }
}
