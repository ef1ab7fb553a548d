//! Percentiles of small windows by compare-exchange steps on whole rows, in SIMD lanes.
//!
//! Columns of the window are sorted first, once for all windows that contain them. Then rows are sorted, which leaves the
//! columns sorted. In such a matrix, many samples are known to lie before or after the result. Of the others, the minimum
//! and the maximum are discarded until one is left.

use super::window::Window;
use crate::{
    data::grid::Shape,
    kernels::ordered_keys::Value,
    util::{error::Result, memory, parallel::Parallel, simd::vectorize},
};

/// Lanes of a step.
const LANES: usize = 256;
/// Samples that a thread computes at a time.
const PIECE: usize = 1 << 16;

/// A step on two slots of lanes: smaller values go to the first one, larger ones to the second.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Both results are used.
    Sort(usize, usize),
    /// Only the minima are used.
    Min(usize, usize),
    /// Only the maxima are used.
    Max(usize, usize),
}

/// Steps that sort `slots` (Batcher's odd-even merge sort, 1968).
fn sort(slots: &[usize], steps: &mut Vec<Step>) {
    let len = slots.len();
    let mut p = 1;
    while p < len {
        let mut k = p;
        while k > 0 {
            for j in (k % p..len.saturating_sub(k)).step_by(2 * k) {
                for i in j..(j + k).min(len - k) {
                    if i / (2 * p) == (i + k) / (2 * p) {
                        steps.push(Step::Sort(slots[i], slots[i + k]));
                    }
                }
            }
            k /= 2;
        }
        p *= 2;
    }
}

/// Steps that move the sample number `rank` of `slots` to the slot that is returned.
fn select(mut slots: Vec<usize>, mut rank: usize, steps: &mut Vec<Step>) -> usize {
    let mut total = slots.len();
    let mut live: Vec<usize> = Vec::new();
    while total > 1 {
        // The minimum of this many samples is before the result; the maximum of that many is after it.
        let (for_min, for_max) = (total - rank + 1, rank + 2);
        while live.len() < for_min.min(for_max) {
            live.push(slots.pop().expect("there are as many slots"));
        }
        let is_min = live.len() >= for_min;
        // The extremum goes to the last slot.
        let last = *live.last().expect("there are two");
        for &slot in &live[..live.len() - 1] {
            steps.push(if is_min { Step::Sort(last, slot) } else { Step::Sort(slot, last) });
        }
        live.pop();
        total -= 1;
        rank -= usize::from(is_min);
    }
    live.pop().or(slots.pop()).expect("one is left")
}

/// Removes steps and results that do not reach the slot `result`.
fn prune(steps: Vec<Step>, slots: usize, result: usize) -> Vec<Step> {
    let mut is_used = vec![false; slots];
    is_used[result] = true;
    let mut kept = Vec::new();
    for step in steps.into_iter().rev() {
        let Step::Sort(a, b) = step else { continue };
        kept.extend(match (is_used[a], is_used[b]) {
            (true, true) => Some(step),
            (true, false) => Some(Step::Min(a, b)),
            (false, true) => Some(Step::Max(a, b)),
            (false, false) => continue,
        });
        (is_used[a], is_used[b]) = (true, true);
    }
    kept.reverse();
    kept
}

/// The steps for a window.
struct Network {
    window: Window,
    /// Steps that sort the columns of the window.
    columns: Vec<Step>,
    /// Steps on the samples of all rows, `2 * radius + 1` each.
    rest: Vec<Step>,
    result: usize,
}

impl Network {
    fn new(window: Window) -> Self {
        let (rows, columns) = (window.rows(), 2 * window.radius[0] + 1);
        let (mut column_steps, mut rest) = (Vec::new(), Vec::new());
        sort(&(0..rows).collect::<Vec<_>>(), &mut column_steps);
        for row in 0..rows {
            sort(&(row * columns..(row + 1) * columns).collect::<Vec<_>>(), &mut rest);
        }
        let mut rank = window.rank;
        let mut candidates = Vec::new();
        for slot in 0..window.len() {
            let (row, column) = (slot / columns, slot % columns);
            // Numbers of samples that are not greater, and not less, with this one.
            let (low, high) = ((row + 1) * (column + 1), (rows - row) * (columns - column));
            match (high > window.len() - window.rank, low > window.rank + 1) {
                (true, _) => rank -= 1,
                (_, true) => {}
                _ => candidates.push(slot),
            }
        }
        let result = select(candidates, rank, &mut rest);
        Self { window, columns: column_steps, rest: prune(rest, window.len(), result), result }
    }
}

#[inline(always)]
fn exchange<T: Value>(step: Step, slots: &mut [[T; LANES]]) {
    let (Step::Sort(a, b) | Step::Min(a, b) | Step::Max(a, b)) = step;
    let [a, b] = slots.get_disjoint_mut([a, b]).expect("a step takes two slots");
    // Loops without closures: a closure that is not inlined is not compiled for the level of the processor.
    match step {
        Step::Sort(..) => {
            for (a, b) in a.iter_mut().zip(b) {
                (*a, *b) = ((*a).min(*b), (*a).max(*b));
            }
        }
        Step::Min(..) => {
            for (a, b) in a.iter_mut().zip(b) {
                *a = (*a).min(*b);
            }
        }
        Step::Max(..) => {
            for (a, b) in a.iter_mut().zip(b) {
                *b = (*a).max(*b);
            }
        }
    }
}

/// The percentiles of a grid.
///
/// # Errors
/// When memory is exhausted.
pub fn run<T: Value>(source: &[T], shape: Shape, window: &Window) -> Result<Vec<T>> {
    let network = Network::new(*window);
    let width = shape.dims[0] * shape.channels;
    let band = (PIECE / width).max(1);
    let mut target = memory::zeros(source.len())?;
    target.chunks_mut(band * width).enumerate().par_each(|(number, target)| {
        let mut state = State::new(&network, source, shape);
        vectorize(
            #[inline(always)]
            || {
                for (row, target) in (number * band..).zip(target.chunks_exact_mut(width)) {
                    state.row(row, target);
                }
            },
        );
    });
    Ok(target)
}

/// Buffers of a thread.
struct State<'a, T> {
    network: &'a Network,
    source: &'a [T],
    shape: Shape,
    /// Sorted columns: rows with the samples beyond their ends, a multiple of the lanes and some more.
    sorted: Vec<Vec<T>>,
    slots: Vec<[T; LANES]>,
}

impl<'a, T: Value> State<'a, T> {
    fn new(network: &'a Network, source: &'a [T], shape: Shape) -> Self {
        let halo = 2 * network.window.radius[0] * shape.channels;
        let len = (shape.dims[0] * shape.channels).next_multiple_of(LANES) + halo;
        let len = len.next_multiple_of(LANES);
        let zeros = |len| memory::zeros(len).unwrap_or_else(memory::raise);
        let sorted = (0..network.window.rows()).map(|_| zeros(len)).collect();
        Self { network, source, shape, sorted, slots: vec![[T::MIN; LANES]; network.window.len()] }
    }

    #[inline(always)]
    fn row(&mut self, row: usize, target: &mut [T]) {
        let Network { window, columns, rest, result } = self.network;
        let (width, channels, ny) = (target.len(), self.shape.channels, self.shape.dims[1]);
        let halo = window.radius[0] * channels;
        let rows = window.rows_around(self.shape, row % ny, row / ny);
        for (number, line) in rows.zip(&mut self.sorted) {
            let source = &self.source[number * width..][..width];
            line[halo..halo + width].copy_from_slice(source);
            for at in 0..halo {
                line[at] = source[at % channels];
                line[halo + width + at] = source[width - channels + at % channels];
            }
        }
        // The end of the lines is never part of a result.
        for from in (0..width + 2 * halo).step_by(LANES) {
            for (slot, line) in self.slots.iter_mut().zip(&self.sorted) {
                slot.copy_from_slice(&line[from..][..LANES]);
            }
            for &step in columns {
                exchange(step, &mut self.slots);
            }
            for (slot, line) in self.slots.iter().zip(&mut self.sorted) {
                line[from..][..LANES].copy_from_slice(slot);
            }
        }
        for (number, target) in target.chunks_mut(LANES).enumerate() {
            let across = 2 * window.radius[0] + 1;
            for (index, slot) in self.slots.iter_mut().enumerate() {
                let from = number * LANES + index % across * channels;
                slot.copy_from_slice(&self.sorted[index / across][from..][..LANES]);
            }
            for &step in rest {
                exchange(step, &mut self.slots);
            }
            target.copy_from_slice(&self.slots[*result][..target.len()]);
        }
    }
}
