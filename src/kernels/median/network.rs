//! Medians of small windows by minima and maxima of whole rows, in SIMD lanes. Each column of samples is sorted once, for
//! all windows that contain it.
//!
//! Loops have constant lengths and no checks of bounds, so that they are vectorised without a remainder.

#![allow(clippy::needless_range_loop, reason = "iterators of several arrays are not vectorised")]

use super::window::{Part, Window};
use crate::{
    data::grid::Shape,
    kernels::ordered_keys::{Key, Value},
    util::error::Result,
};

/// Results of a row that are computed at a time.
const RESULTS: usize = 512;
/// Sorted columns for them: windows of five pixels with four channels reach 8 samples to both sides.
const SORTED: usize = RESULTS + 32;
/// Pairs of columns for them.
const PAIRS: usize = RESULTS + 64;
/// Room before them for copies of the first one.
const PAD: usize = 32;
/// Room after them for copies of the last one, and for pairs that no result depends on.
const TAIL: usize = 64;

/// Sorted columns, and those beyond the ends of rows.
type Lines<T, const ROWS: usize> = Aligned<[[T; PAD + SORTED + TAIL]; ROWS]>;

/// Values at the start of a cache line, so that fewer vectors are in two lines.
#[repr(align(64))]
struct Aligned<T>(T);

/// Sorts pairs of values.
macro_rules! exchange {
    ($values:ident: $($a:literal $b:literal),+) => {
        $(($values[$a], $values[$b]) =
            ($values[$a].min($values[$b]), $values[$a].max($values[$b]));)+
    };
}

/// Whether [`run`] computes the result of this window.
pub fn has(window: &Window) -> bool {
    let [x, y, z] = window.dims();
    matches!([x, y * z], [3, 3 | 9] | [5, 5]) && window.rank == window.size() / 2
}

/// The medians of a grid.
pub fn run<T: Value>(source: &[T], shape: Shape, window: &Window) -> Result<Vec<T>> {
    let width = shape.dims[0] * shape.channels;
    let dims = [shape.dims[0], ((1 << 16) / width).max(1), 1];
    window.in_parts(
        source,
        shape,
        dims,
        #[inline(always)]
        |part, target| match window.size() {
            9 => compute::<T, 3, Nine>(part, target),
            25 => compute::<T, 5, TwentyFive>(part, target),
            _ => compute::<T, 9, TwentySeven>(part, target),
        },
    )
}

/// A window of columns of `ROWS` samples.
trait Columns<const ROWS: usize> {
    /// Computes medians from sorted columns: the first of these places is the start, the second one the distance of
    /// neighbours.
    fn medians<T: Value>(
        lines: &Lines<T::Key, ROWS>,
        places: [usize; 2],
        results: &mut [T; RESULTS],
    );
}

#[inline(always)]
fn compute<T: Value, const ROWS: usize, C: Columns<ROWS>>(part: &Part<'_, T>, target: &mut [T]) {
    let (width, channels) = (part.width(), part.shape.channels);
    let halo = part.window.radius[0] * channels;
    let mut lines: Lines<T::Key, ROWS> = Aligned([[T::Key::MIN; PAD + SORTED + TAIL]; ROWS]);
    let mut spare = [T::zeroed(); RESULTS];
    let mut narrow = [[T::zeroed(); SORTED]; ROWS];
    for z in part.spans[2].clone() {
        for y in part.spans[1].clone() {
            let mut rows = [&[][..]; ROWS];
            for ((to, narrow), row) in rows.iter_mut().zip(&mut narrow).zip(part.rows(y, z)) {
                *to = row;
                if width < SORTED {
                    narrow[..width].copy_from_slice(row);
                    for at in width..(width + halo).min(SORTED) {
                        narrow[at] = narrow[at - channels];
                    }
                    *to = narrow;
                }
            }
            let target = part.target(target, y, z);
            for from in (0..width).step_by(RESULTS) {
                // The last results are computed together with some before them again.
                let from = from.min(width.saturating_sub(RESULTS));
                let first = from.saturating_sub(halo).min(rows[0].len() - SORTED);
                sort_columns(&rows, first, [channels, halo], &mut lines);
                let start = PAD + from - halo - first;
                match target[from..].first_chunk_mut() {
                    Some(results) => C::medians(&lines, [start, channels], results),
                    None => {
                        C::medians(&lines, [start, channels], &mut spare);
                        target.copy_from_slice(&spare[..width]);
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn sort_columns<T: Value, const ROWS: usize>(
    rows: &[&[T]; ROWS],
    first: usize,
    [channels, halo]: [usize; 2],
    lines: &mut Lines<T::Key, ROWS>,
) {
    let mut samples = [chunk::<T, SORTED>(rows[0], first); ROWS];
    for k in 1..ROWS {
        samples[k] = chunk(rows[k], first);
    }
    for i in 0..SORTED {
        let mut column = [T::Key::MIN; ROWS];
        for k in 0..ROWS {
            column[k] = samples[k][i].key();
        }
        sort(&mut column);
        for k in 0..ROWS {
            lines.0[k][PAD + i] = column[k];
        }
    }
    for line in &mut lines.0 {
        for at in (PAD - if first == 0 { halo } else { 0 }..PAD).rev() {
            line[at] = line[at + channels];
        }
        let is_end = first + SORTED == rows[0].len();
        for at in PAD + SORTED..PAD + SORTED + if is_end { halo } else { 0 } {
            line[at] = line[at - channels];
        }
    }
}

#[inline(always)]
fn chunk<T, const N: usize>(line: &[T], start: usize) -> &[T; N] {
    line[start..].first_chunk().expect("lines are long enough")
}

/// The samples of each line from `start` on.
#[inline(always)]
fn from<T: Key, const LEN: usize, const ROWS: usize, const N: usize>(
    lines: &[[T; LEN]; ROWS],
    start: usize,
) -> [&[T; N]; ROWS] {
    let mut all = [chunk(&lines[0], start); ROWS];
    for k in 1..ROWS {
        all[k] = chunk(&lines[k], start);
    }
    all
}

/// Windows of as many samples.
struct Nine;
struct TwentyFive;
struct TwentySeven;

/// Sorts three, five or nine samples.
#[inline(always)]
fn sort<T: Key, const LEN: usize>(v: &mut [T; LEN]) {
    match LEN {
        3 => {
            exchange!(v: 0 2, 0 1, 1 2);
        }
        5 => {
            exchange!(v: 0 3, 1 4, 0 2, 1 3, 0 1, 2 4, 1 2, 3 4, 2 3);
        }
        _ => {
            exchange!(v: 0 3, 1 7, 2 5, 4 8, 0 7, 2 4, 3 8, 5 6, 0 2, 1 3, 4 5, 7 8, 1 4, 3 6, 5 7);
            exchange!(v: 0 1, 2 4, 3 5, 6 8, 2 3, 4 5, 6 7, 1 2, 3 4, 5 6);
        }
    }
}

/// Rows of three neighbouring columns, sorted: the columns remain sorted.
#[inline(always)]
fn sorted_rows<T: Key, const ROWS: usize>(
    lines: &[[&[T; RESULTS]; ROWS]; 3],
    i: usize,
) -> [[T; ROWS]; 3] {
    let mut sorted = [[T::MIN; ROWS]; 3];
    for k in 0..ROWS {
        let mut row = [lines[0][k][i], lines[1][k][i], lines[2][k][i]];
        sort(&mut row);
        [sorted[0][k], sorted[1][k], sorted[2][k]] = row;
    }
    sorted
}

impl Columns<3> for Nine {
    #[inline(always)]
    fn medians<T: Value>(
        lines: &Lines<T::Key, 3>,
        [start, step]: [usize; 2],
        results: &mut [T; RESULTS],
    ) {
        let lines =
            [from(&lines.0, start), from(&lines.0, start + step), from(&lines.0, start + 2 * step)];
        for i in 0..RESULTS {
            let [low, middle, high] = sorted_rows(&lines, i);
            let mut rest = [low[2], middle[1], high[0]];
            sort(&mut rest);
            results[i] = T::from_key(rest[1]);
        }
    }
}

impl Columns<9> for TwentySeven {
    #[inline(always)]
    fn medians<T: Value>(
        lines: &Lines<T::Key, 9>,
        [start, step]: [usize; 2],
        results: &mut [T; RESULTS],
    ) {
        let lines =
            [from(&lines.0, start), from(&lines.0, start + step), from(&lines.0, start + 2 * step)];
        for i in 0..RESULTS {
            let [low, middle, high] = sorted_rows(&lines, i);
            // At least 14 samples are not greater, or not less, than each of the others.
            let mut v = [high[0], high[1], high[2], high[3], low[5], low[6], low[7], low[8]];
            exchange!(v: 0 4, 2 6, 2 4, 1 5, 3 7, 3 5, 1 2, 3 4, 5 6);
            let middle = [middle[2], middle[3], middle[4], middle[5], middle[6]];
            let middle_of_rest = [v[1], v[2], v[3], v[4], v[5], v[6]];
            results[i] = T::from_key(median_of_11(middle_of_rest, middle));
        }
    }
}

impl Columns<5> for TwentyFive {
    #[inline(always)]
    fn medians<T: Value>(
        lines: &Lines<T::Key, 5>,
        [start, step]: [usize; 2],
        results: &mut [T; RESULTS],
    ) {
        // The samples of two neighbouring columns, sorted.
        let mut pairs = Aligned([[T::Key::MIN; PAIRS]; 10]);
        let columns: [[&[T::Key; PAIRS]; 5]; 2] =
            [from(&lines.0, start), from(&lines.0, start + step)];
        for i in 0..PAIRS {
            let mut v = [T::Key::MIN; 10];
            for k in 0..5 {
                [v[k], v[k + 5]] = [columns[0][k][i], columns[1][k][i]];
            }
            exchange!(v: 0 5, 4 9, 4 5, 2 7, 2 4, 7 5, 1 6, 3 8, 3 6, 1 2, 3 4, 6 7, 8 5);
            let sorted = [v[0], v[1], v[2], v[3], v[4], v[6], v[7], v[8], v[5], v[9]];
            for k in 0..10 {
                pairs.0[k][i] = sorted[k];
            }
        }
        let [a, b]: [[&[T::Key; RESULTS]; 10]; 2] = [from(&pairs.0, 0), from(&pairs.0, 2 * step)];
        let last: [&[T::Key; RESULTS]; 5] = from(&lines.0, start + 4 * step);
        for i in 0..RESULTS {
            // Of the 20 samples of two pairs, the five largest of the smaller half, and the five smallest of the others.
            let (mut low, mut high) = ([T::Key::MIN; 5], [T::Key::MIN; 5]);
            for k in 0..5 {
                let (a, b, c, d) = (a[k][i], b[9 - k][i], a[k + 5][i], b[4 - k][i]);
                low[k] = a.min(b).max(c.min(d));
                high[k] = a.max(b).min(c.max(d));
            }
            // The three largest, and the three smallest, of these bitonic sequences.
            exchange!(low: 0 1, 0 2, 0 3, 1 3, 2 4, 1 2, 3 4);
            exchange!(high: 1 0, 2 0, 3 0, 3 1, 4 2, 2 1, 4 3);
            let middle = [low[2], low[3], low[4], high[4], high[3], high[2]];
            let last = [last[0][i], last[1][i], last[2][i], last[3][i], last[4][i]];
            results[i] = T::from_key(median_of_11(middle, last));
        }
    }
}

/// The median of six sorted samples and five sorted samples.
#[inline(always)]
fn median_of_11<T: Key>(a: [T; 6], b: [T; 5]) -> T {
    let mut median = a[5];
    for k in 0..5 {
        median = median.min(a[k].max(b[4 - k]));
    }
    median
}
