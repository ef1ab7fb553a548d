//! Erosion and dilation on the CPU: extrema of whole rows, in SIMD lanes.

use super::element::{Element, ElementShape, Rows};
use crate::{
    data::{grid::Shape, samples::Samples},
    for_samples,
    kernels::ordered_keys::{Key, Value},
    util::{error::Result, memory, parallel, simd::vectorize},
};

/// Boxes with more rows, in images and in volumes, are computed in passes along each axis, which take the same time for
/// every radius.
const MAX_BOX_ROWS: [usize; 2] = [5, 9];
/// Samples that a thread computes at a time.
const PIECE: usize = 1 << 18;
/// Maximum number of rows that are computed together.
const GROUP: usize = 32;
/// Bytes of intermediate values that stay in the innermost cache.
const SCRATCH: usize = 1 << 15;

/// Applies an erosion (`false`) or a dilation (`true`) by `element` for each entry of `are_max`, one after the other.
pub fn extrema(
    samples: &Samples,
    shape: Shape,
    element: &Element,
    are_max: &[bool],
) -> Result<Samples> {
    let (&first, rest) = are_max.split_first().expect("there is an operation");
    let first = extremum(samples, shape, element, first)?;
    rest.iter().try_fold(first, |samples, &is_max| extremum(&samples, shape, element, is_max))
}

fn extremum(samples: &Samples, shape: Shape, element: &Element, is_max: bool) -> Result<Samples> {
    let element = element.within(shape.dims);
    for_samples!(samples, values => Ok(match is_max {
        true => run::<_, true>(values, shape, element)?.into(),
        false => run::<_, false>(values, shape, element)?.into(),
    }))
}

fn run<T: Value, const MAX: bool>(
    source: &[T],
    shape: Shape,
    mut element: Element,
) -> Result<Vec<T>> {
    let is_large = |element: &Element| {
        let [_, ry, rz] = element.radius;
        let count = (2 * ry + 1).saturating_mul(2 * rz + 1);
        element.shape == ElementShape::Box && count > MAX_BOX_ROWS[usize::from(rz > 0)]
    };
    let mut along_z = None;
    if is_large(&element) && element.radius[2] > 0 {
        let axes = shape.along(2);
        let new = || Columns::<T, MAX>::new(source, axes, element.radius[2]);
        along_z = Some(in_groups(
            source.len(),
            axes,
            new().group,
            new,
            #[inline(always)]
            |columns, at, target| {
                let mut rows: Vec<_> = target.chunks_exact_mut(axes[2]).collect();
                columns.compute(at, &mut rows, T::from_key);
            },
        )?);
        element.radius[2] = 0;
    }
    let (source, axes) = (along_z.as_deref().unwrap_or(source), shape.along(1));
    let rows = element.rows();
    let line = || Line::<T, MAX>::new(shape, rows[0].radius);
    if !is_large(&element) {
        return in_groups(
            source.len(),
            axes,
            1,
            line,
            #[inline(always)]
            |line, at, target| {
                line.compute(source, &rows, at, target);
            },
        );
    }
    let new = || Columns::<T, MAX>::new(source, axes, element.radius[1]);
    let group = new().group;
    let start = || (new(), line(), memory::filled(line().values, group));
    in_groups(
        source.len(),
        axes,
        group,
        start,
        #[inline(always)]
        |(columns, line, extrema), at, target| {
            let targets = target.chunks_exact_mut(axes[2]);
            let extrema_inside = extrema.iter_mut().take(targets.len());
            let mut rows: Vec<_> =
                extrema_inside.map(|row| &mut row[line.reach..][..axes[2]]).collect();
            columns.compute(at, &mut rows, |key| key);
            for (target, extrema) in targets.zip(extrema) {
                std::mem::swap(&mut line.values, extrema);
                line.start();
                line.widen(element.radius[0], Some(target));
            }
        },
    )
}

#[inline(always)]
fn pick<K: Ord, const MAX: bool>(a: K, b: K) -> K {
    if MAX { a.max(b) } else { a.min(b) }
}

/// The value that is never picked if there is another one.
fn neutral<K: Key, const MAX: bool>() -> K {
    if MAX { K::MIN } else { K::MAX }
}

/// Writes the extrema of the first five of `rows` to `to`.
#[inline(always)]
fn pick_first<'a, T: Value, O, const MAX: bool>(
    to: &mut [O],
    rows: &mut impl Iterator<Item = &'a [T]>,
    result: impl Fn(T::Key) -> O,
) {
    let pick = pick::<T::Key, MAX>;
    let a = rows.next().expect("there is a row");
    let b = rows.next().unwrap_or(a);
    let c = rows.next().unwrap_or(b);
    if let Some(d) = rows.next() {
        let e = rows.next().unwrap_or(d);
        for (((((to, &a), &b), &c), &d), &e) in to.iter_mut().zip(a).zip(b).zip(c).zip(d).zip(e) {
            let first = pick(pick(a.key(), b.key()), c.key());
            *to = result(pick(first, pick(d.key(), e.key())));
        }
    } else {
        for (((to, &a), &b), &c) in to.iter_mut().zip(a).zip(b).zip(c) {
            *to = result(pick(pick(a.key(), b.key()), c.key()));
        }
    }
}

/// Adds the extrema of `rows` to those in `to`.
#[inline(always)]
fn pick_more<'a, T: Value, const MAX: bool>(
    to: &mut [T::Key],
    mut rows: impl Iterator<Item = &'a [T]>,
) {
    let pick = pick::<T::Key, MAX>;
    while let Some(a) = rows.next() {
        let b = rows.next().unwrap_or(a);
        for ((to, &a), &b) in to.iter_mut().zip(a).zip(b) {
            *to = pick(*to, pick(a.key(), b.key()));
        }
    }
}

/// A new grid of `len` samples, divided along the middle one of three axes into groups of rows. `work` gets a state, the
/// number of the first row, the outer index, and the rows.
fn in_groups<T: Value, S>(
    len: usize,
    [_, height, width]: [usize; 3],
    group: usize,
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, [usize; 2], &mut [T]) + Sync,
) -> Result<Vec<T>> {
    let pieces = 4 * rayon::current_num_threads();
    let rows = (PIECE / width).min(len / width / pieces).max(1).next_multiple_of(group);
    parallel::in_pieces(len, rows * width, |first, mut rest| {
        let mut state = start();
        vectorize(
            #[inline(always)]
            || {
                let mut row = first / width;
                while !rest.is_empty() {
                    let y = row % height;
                    let count = group.min(height - y).min(rest.len() / width);
                    let rows = rest.split_off_mut(..count * width).expect("there are rows left");
                    work(&mut state, [y, row / height], rows);
                    row += count;
                }
            },
        );
    })
}

/// Extrema within `radius` along the middle one of three axes.
struct Columns<'a, T: Value, const MAX: bool> {
    source: &'a [T],
    axes: [usize; 3],
    radius: usize,
    /// Maximum number of rows that are computed together.
    group: usize,
    /// Number of columns that are computed together.
    strip: usize,
    /// Extrema from each row to the one that all windows have in common.
    before: Vec<T::Key>,
    /// Extrema of the rows after that one.
    after: Vec<T::Key>,
}

impl<'a, T: Value, const MAX: bool> Columns<'a, T, MAX> {
    fn new(source: &'a [T], axes: [usize; 3], radius: usize) -> Self {
        let threads = rayon::current_num_threads();
        let group = (2 * radius + 1).min(GROUP).min(axes[1].div_ceil(threads));
        let strip = (SCRATCH / size_of::<T>() / (group + 1)).min(axes[2]);
        let new = |rows| memory::zeros(rows * strip).unwrap_or_else(memory::raise);
        Self { source, axes, radius, group, strip, before: new(group), after: new(1) }
    }

    /// The extrema around the rows from `first` on (van Herk, A Fast Algorithm for Local Minimum and Maximum Filters on
    /// Rectangular and Octagonal Kernels, 1992): all windows have a row in common. What a window has before that row
    /// takes one comparison more than the next window, and what it has after that row, one more than the window before.
    #[inline(always)]
    fn compute<O>(
        &mut self,
        [first, plane]: [usize; 2],
        targets: &mut [&mut [O]],
        result: impl Fn(T::Key) -> O,
    ) {
        let pick = pick::<T::Key, MAX>;
        let ([_, height, width], window) = (self.axes, 2 * self.radius + 1);
        let count = targets.len();
        for from in (0..width).step_by(self.strip) {
            let strip = self.strip.min(width - from);
            // Rows outside count as the nearest row inside, which is in the window, too.
            let row = |row: usize| {
                let row = (first + row).saturating_sub(self.radius).min(height - 1);
                &self.source[(plane * height + row) * width + from..][..strip]
            };
            let mut before = self.before.chunks_exact_mut(strip).take(count).rev();
            let mut last = before.next().expect("there is a row");
            let mut common = (count - 1..window).map(row);
            pick_first::<T, _, MAX>(last, &mut common, |key| key);
            pick_more::<T, MAX>(last, common);
            for (number, before) in (0..count - 1).rev().zip(before) {
                for ((to, &last), &value) in before.iter_mut().zip(&*last).zip(row(number)) {
                    *to = pick(last, value.key());
                }
                last = before;
            }
            let after = &mut self.after[..strip];
            after.fill(neutral::<T::Key, MAX>());
            let before = self.before.chunks_exact(strip);
            for ((number, target), before) in (window - 1..).zip(&mut *targets).zip(before) {
                let target = target[from..][..strip].iter_mut();
                for (((to, &before), after), &value) in
                    target.zip(before).zip(&mut *after).zip(row(number))
                {
                    *after = pick(*after, value.key());
                    *to = result(pick(before, *after));
                }
            }
        }
    }
}

/// A row of extrema, and before and after it those of windows whose centres are outside.
struct Line<T: Value, const MAX: bool> {
    shape: Shape,
    /// Largest number of values on each side.
    reach: usize,
    /// Number of values on each side.
    pad: usize,
    values: Vec<T::Key>,
    spare: Vec<T::Key>,
}

impl<T: Value, const MAX: bool> Line<T, MAX> {
    /// For elements that reach `radius` samples to both sides.
    fn new(shape: Shape, radius: usize) -> Self {
        let reach = radius.min(shape.dims[0] - 1) * shape.channels;
        let len = shape.dims[0] * shape.channels + 2 * reach;
        let new = || memory::zeros(len).unwrap_or_else(memory::raise);
        Self { shape, reach, pad: reach, values: new(), spare: new() }
    }

    /// Starts a row, whose values inside are written before or after.
    #[inline(always)]
    fn start(&mut self) {
        self.pad = self.reach;
        let end = self.values.len() - self.pad;
        self.values[..self.pad].fill(neutral::<T::Key, MAX>());
        self.values[end..].fill(neutral::<T::Key, MAX>());
    }

    /// Computes row `[y, z]` of the extrema under an element that consists of `rows`. Rows of the input under the longest
    /// rows of the element are combined first, then widened along x by the difference to the next length, and so on.
    #[inline(always)]
    fn compute(&mut self, source: &[T], rows: &[Rows], [y, z]: [usize; 2], target: &mut [T]) {
        let (width, [nx, ny, nz]) = (target.len(), self.shape.dims);
        // Rows outside count as the nearest row inside, which is under the element, too.
        let source_row = |&[dy, dz]: &[isize; 2]| {
            let y = y.saturating_add_signed(dy).min(ny - 1);
            let z = z.saturating_add_signed(dz).min(nz - 1);
            &source[(z * ny + y) * width..][..width]
        };
        let radius = |index: usize| rows.get(index).map_or(0, |rows| rows.radius.min(nx - 1));
        self.start();
        for (index, Rows { offsets, .. }) in rows.iter().enumerate() {
            let values = &mut self.values[self.pad..][..width];
            let mut offsets = offsets.iter().map(source_row);
            if index == 0 {
                pick_first::<T, _, MAX>(values, &mut offsets, |key| key);
            }
            pick_more::<T, MAX>(values, offsets);
            let is_last = index + 1 == rows.len();
            self.widen(radius(index) - radius(index + 1), is_last.then_some(&mut *target));
        }
    }

    /// Replaces each value by the extremum of the values within `radius` along x, of which `radius` on each side are gone
    /// then. The results go to `target` if there is one.
    #[inline(always)]
    fn widen(&mut self, radius: usize, mut target: Option<&mut [T]>) {
        let width = self.shape.dims[0] * self.shape.channels;
        let mut reach = 0;
        while reach < radius || target.is_some() {
            let window = 2 * reach + 1;
            // Up to five windows of the pass before.
            let step = (2 * window).min(radius - reach);
            reach += step;
            self.pad -= step * self.shape.channels;
            let len = width + 2 * self.pad;
            let mut windows = (0..(2 * step).div_ceil(window) + 1).map(|number| {
                &self.values[(number * window).min(2 * step) * self.shape.channels..][..len]
            });
            if reach == radius
                && let Some(target) = target.take()
            {
                return pick_first::<T::Key, _, MAX>(target, &mut windows, T::from_key);
            }
            pick_first::<T::Key, _, MAX>(&mut self.spare[..len], &mut windows, |key| key);
            std::mem::swap(&mut self.values, &mut self.spare);
        }
    }
}
