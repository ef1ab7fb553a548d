//! Erosion and dilation on the CPU: extrema of whole rows, in SIMD lanes.

use super::element::{Element, ElementShape, Rows};
use crate::{
    data::{grid::Shape, samples::Samples},
    kernels::ordered_keys::{OrderFilter, Value, run_ordered},
    util::{error::Result, memory, parallel::Parallel, simd::vectorize},
};

/// Boxes with more rows are divided into passes along each axis, which read and write all samples, but take the same
/// time for every radius.
const MAX_BOX_ROWS: usize = 25;
/// Samples that a thread computes at a time.
const PIECE: usize = 1 << 16;
/// Bytes of scratch memory that stay in the cache of a core.
const SCRATCH: usize = 1 << 17;

/// The minimum, or the maximum, of the samples under `element` around each sample.
///
/// # Errors
/// When memory is exhausted.
pub fn extremum(
    samples: &Samples,
    shape: Shape,
    element: &Element,
    is_max: bool,
) -> Result<Samples> {
    let element = element.within(shape.dims);
    match is_max {
        true => run_ordered(&Extremum::<true> { element, shape }, samples),
        false => run_ordered(&Extremum::<false> { element, shape }, samples),
    }
}

struct Extremum<const MAX: bool> {
    element: Element,
    shape: Shape,
}

impl<const MAX: bool> OrderFilter for Extremum<MAX> {
    fn run<T: Value>(&self, values: &[T]) -> Result<Vec<T>> {
        let mut element = self.element;
        let mut done: Option<Vec<T>> = None;
        for axis in [2, 1] {
            let [_, ry, rz] = element.radius;
            let count = (2 * ry + 1).saturating_mul(2 * rz + 1);
            if element.shape == ElementShape::Box && count > MAX_BOX_ROWS {
                let source = done.as_deref().unwrap_or(values);
                done =
                    Some(columns::<T, MAX>(source, self.shape.along(axis), element.radius[axis])?);
                element.radius[axis] = 0;
            }
        }
        rows::<T, MAX>(done.as_deref().unwrap_or(values), self.shape, &element.rows())
    }
}

#[inline(always)]
fn pick<T: Value, const MAX: bool>(a: T, b: T) -> T {
    if MAX { a.max(b) } else { a.min(b) }
}

/// The value that is never picked if there is another one.
fn neutral<T: Value, const MAX: bool>() -> T {
    if MAX { T::MIN } else { T::MAX }
}

/// A vector of neutral values.
fn neutral_values<T: Value, const MAX: bool>(len: usize) -> Vec<T> {
    let mut values = memory::zeros(len).unwrap_or_else(memory::raise);
    values.fill(neutral::<T, MAX>());
    values
}

#[inline(always)]
fn pick_two<T: Value, const MAX: bool>(to: &mut [T], a: &[T], b: &[T]) {
    for ((to, &a), &b) in to.iter_mut().zip(a).zip(b) {
        *to = pick::<T, MAX>(a, b);
    }
}

#[inline(always)]
fn pick_three<T: Value, const MAX: bool>(to: &mut [T], a: &[T], b: &[T], c: &[T]) {
    for (((to, &a), &b), &c) in to.iter_mut().zip(a).zip(b).zip(c) {
        *to = pick::<T, MAX>(pick::<T, MAX>(a, b), c);
    }
}

/// Adds two further rows to the extrema in `to`.
#[inline(always)]
fn pick_more<T: Value, const MAX: bool>(to: &mut [T], a: &[T], b: &[T]) {
    for ((to, &a), &b) in to.iter_mut().zip(a).zip(b) {
        *to = pick::<T, MAX>(pick::<T, MAX>(*to, a), b);
    }
}

/// The extrema under an element that consists of `rows`, row by row. Rows of the input under the longest rows of the
/// element are combined first, then widened along x by the difference to the next length, and so on.
fn rows<T: Value, const MAX: bool>(source: &[T], shape: Shape, rows: &[Rows]) -> Result<Vec<T>> {
    let width = shape.dims[0] * shape.channels;
    let mut target = memory::zeros(source.len())?;
    let band = (PIECE / width).max(1);
    target.chunks_mut(band * width).enumerate().par_each(|(number, target)| {
        let mut line = Line::<T, MAX>::new(shape, rows);
        vectorize(
            #[inline(always)]
            || {
                let numbers = number * band..;
                for (row, target) in numbers.zip(target.chunks_exact_mut(width)) {
                    line.compute(source, row, target);
                }
            },
        );
    });
    Ok(target)
}

/// A row of extrema, and before and after it those of windows whose centres are outside.
struct Line<'a, T, const MAX: bool> {
    rows: &'a [Rows],
    shape: Shape,
    /// Number of values on each side.
    pad: usize,
    values: Vec<T>,
    spare: Vec<T>,
}

impl<'a, T: Value, const MAX: bool> Line<'a, T, MAX> {
    fn new(shape: Shape, rows: &'a [Rows]) -> Self {
        let radius = rows.first().map_or(0, |rows| rows.radius).min(shape.dims[0] - 1);
        let pad = radius * shape.channels;
        let new = || neutral_values::<T, MAX>(shape.dims[0] * shape.channels + 2 * pad);
        Self { rows, shape, pad, values: new(), spare: new() }
    }

    /// The number of samples along x that the rows numbered `index` of the element reach to both sides.
    fn radius(&self, index: usize) -> usize {
        self.rows.get(index).map_or(0, |rows| rows.radius.min(self.shape.dims[0] - 1))
    }

    #[inline(always)]
    fn compute(&mut self, source: &[T], row: usize, target: &mut [T]) {
        let (width, [_, ny, nz]) = (target.len(), self.shape.dims);
        let (y, z) = (row % ny, row / ny);
        // Rows outside count as the nearest row inside, which is under the element, too.
        let source_row = |&[dy, dz]: &[isize; 2]| {
            let y = y.saturating_add_signed(dy).min(ny - 1);
            let z = z.saturating_add_signed(dz).min(nz - 1);
            &source[(z * ny + y) * width..][..width]
        };
        self.values[..self.pad].fill(neutral::<T, MAX>());
        self.values[self.pad + width..].fill(neutral::<T, MAX>());
        for (index, rows) in self.rows.iter().enumerate() {
            let values = &mut self.values[self.pad..][..width];
            let mut offsets = rows.offsets.iter().map(source_row);
            if index == 0 {
                let first = offsets.next().expect("an element has a row");
                let second = offsets.next().unwrap_or(first);
                let third = offsets.next().unwrap_or(second);
                pick_three::<T, MAX>(values, first, second, third);
            }
            while let Some(first) = offsets.next() {
                pick_more::<T, MAX>(values, first, offsets.next().unwrap_or(first));
            }
            self.widen(
                self.radius(index) - self.radius(index + 1),
                index + 1 == self.rows.len(),
                target,
            );
        }
    }

    /// Replaces each value by the extremum of the values within `radius` along x. If this `is_last`, the values inside go to
    /// `target` instead.
    #[inline(always)]
    fn widen(&mut self, radius: usize, is_last: bool, target: &mut [T]) {
        let (len, pad) = (self.values.len(), self.pad);
        let mut reach = 0;
        while reach < radius {
            // Three windows that touch or overlap.
            let step = (2 * reach + 1).min(radius - reach);
            let shift = step * self.shape.channels;
            if is_last && reach + step == radius {
                let width = target.len();
                let at = |start: usize| &self.values[start..][..width];
                return pick_three::<T, MAX>(target, at(pad - shift), at(pad), at(pad + shift));
            }
            let at = |start: usize| &self.values[start..][..len - 2 * shift];
            let (before, rest) = self.spare.split_at_mut(shift);
            let (target, after) = rest.split_at_mut(len - 2 * shift);
            pick_three::<T, MAX>(target, at(0), at(shift), at(2 * shift));
            // So far outside that no window inside reaches there.
            before.fill(neutral::<T, MAX>());
            after.fill(neutral::<T, MAX>());
            std::mem::swap(&mut self.values, &mut self.spare);
            reach += step;
        }
        if is_last {
            target.copy_from_slice(&self.values[pad..][..target.len()]);
        }
    }
}

/// The extrema within `radius` along the middle one of three axes of these lengths (van Herk, A Fast Algorithm for
/// Local Minimum and Maximum Filters on Rectangular and Octagonal Kernels, 1992): three comparisons a sample for every
/// radius, each of which takes a row of neighbours.
fn columns<T: Value, const MAX: bool>(
    source: &[T],
    [_, len, inner]: [usize; 3],
    radius: usize,
) -> Result<Vec<T>> {
    let mut target = memory::zeros(source.len())?;
    // The rows around a band are read for the next one again.
    let band =
        (PIECE / inner).max(2 * radius).min(len.div_ceil(rayon::current_num_threads())).max(1);
    let planes = target.chunks_exact_mut(len * inner).zip(source.chunks_exact(len * inner));
    let bands: Vec<_> = planes
        .flat_map(|(target, source)| {
            let bands = target.chunks_mut(band * inner).enumerate();
            bands.map(move |(number, target)| (number * band, source, target))
        })
        .collect();
    bands.into_iter().par_each(|(first, source, target)| {
        let start = first.saturating_sub(radius);
        let end = (first + target.len() / inner + radius).min(len);
        let source = &source[start * inner..end * inner];
        let window = (2 * radius + 1).min(end - start);
        let strip = (SCRATCH / (window * size_of::<T>())).clamp(64, 1 << 16).min(inner);
        for from in (0..inner).step_by(strip) {
            let strip = strip.min(inner - from);
            let mut columns = Columns::<T, MAX>::new(source, (inner, from, strip), radius);
            vectorize(
                #[inline(always)]
                || columns.compute(target, first - start),
            );
        }
    });
    Ok(target)
}

/// A strip of neighbouring columns. Columns are divided into blocks as long as a window, so that a window is the end of
/// a block and the start of the next one.
struct Columns<'a, T, const MAX: bool> {
    source: &'a [T],
    /// Samples of a row.
    inner: usize,
    /// The first column, and the number of columns.
    from: usize,
    strip: usize,
    radius: usize,
    /// Extrema from each row of the current block, or the block before, to the end of that block.
    suffixes: Vec<T>,
    /// Extrema from the start of the current block.
    prefix: Vec<T>,
}

impl<'a, T: Value, const MAX: bool> Columns<'a, T, MAX> {
    fn new(source: &'a [T], (inner, from, strip): (usize, usize, usize), radius: usize) -> Self {
        let window = (2 * radius + 1).min(source.len() / inner);
        let suffixes = neutral_values::<T, MAX>(window * strip);
        let prefix = neutral_values::<T, MAX>(strip);
        Self { source, inner, from, strip, radius, suffixes, prefix }
    }

    /// Computes the rows of `target`, the first of which has the number `first` in the source.
    #[inline(always)]
    fn compute(&mut self, target: &mut [T], first: usize) {
        let Self { inner, from, strip, radius, .. } = *self;
        let len = self.source.len() / inner;
        let mut targets = (first..)
            .zip(target.chunks_exact_mut(inner))
            .map(|(row, target)| (row, &mut target[from..][..strip]));
        let mut next = targets.next();
        for start in (0..len).step_by(2 * radius + 1) {
            let end = (start + 2 * radius + 1).min(len);
            self.prefix.fill(neutral::<T, MAX>());
            for row in start..end {
                let values = &self.source[row * inner + from..][..strip];
                pick_more::<T, MAX>(&mut self.prefix, values, values);
                // The window of this result ends here.
                let ends_here = |(center, _): &mut (usize, _)| *center + radius == row;
                if let Some((center, target)) = next.take_if(ends_here) {
                    self.combine(target, center, start);
                    next = targets.next();
                }
            }
            let mut is_current = false;
            if end == len {
                // The remaining windows end with the columns.
                while let Some((center, target)) = next {
                    if center.saturating_sub(radius) > start {
                        if !is_current {
                            self.end_block(start, end);
                            is_current = true;
                        }
                        let at = (center - radius - start) * strip;
                        target.copy_from_slice(&self.suffixes[at..][..strip]);
                    } else {
                        self.combine(target, center, start);
                    }
                    next = targets.next();
                }
            } else {
                self.end_block(start, end);
            }
        }
    }

    /// The result for row `center`, whose window ends with the prefix of the block from `start` on.
    #[inline(always)]
    fn combine(&self, target: &mut [T], center: usize, start: usize) {
        let low = center.saturating_sub(self.radius);
        if low < start {
            let at = (low + 2 * self.radius + 1 - start) * self.strip;
            pick_two::<T, MAX>(target, &self.suffixes[at..][..self.strip], &self.prefix);
        } else {
            target.copy_from_slice(&self.prefix);
        }
    }

    /// Computes the suffixes of the block of rows `start` to `end`.
    #[inline(always)]
    fn end_block(&mut self, start: usize, end: usize) {
        let Self { inner, from, strip, .. } = *self;
        let mut last: Option<&mut [T]> = None;
        let suffixes = self.suffixes.chunks_exact_mut(strip).take(end - start);
        for (row, suffix) in (start..end).zip(suffixes).rev() {
            let values = &self.source[row * inner + from..][..strip];
            match last {
                Some(last) => pick_two::<T, MAX>(suffix, values, last),
                None => suffix.copy_from_slice(values),
            }
            last = Some(suffix);
        }
    }
}
