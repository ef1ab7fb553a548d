//! A grid as `[outer, len, inner]`, with the axis of a pass in the middle, and the samples outside of the axis.

use super::{
    Edge, Pass, Shape,
    number::{Number, Sample},
};
use crate::util::{memory, simd};

/// A pass and the dimensions of its grid.
#[derive(Clone, Copy)]
pub struct Lines<'a> {
    pub pass: &'a Pass,
    edge: Edge,
    channels: usize,
    /// Number of positions along the axis.
    pub len: usize,
    /// Samples from one position along the axis to the next.
    pub inner: usize,
}

impl<'a> Lines<'a> {
    pub fn new(pass: &'a Pass, edge: Edge, shape: Shape) -> Self {
        let [_, len, inner] = shape.along(pass.axis);
        Self { pass, edge, channels: shape.channels, len, inner }
    }

    pub fn radius(&self) -> usize {
        self.pass.taps.radius
    }

    /// Number of samples of an outer index: `len` lines of `inner`.
    pub fn block(&self) -> usize {
        self.len * self.inner
    }

    /// A line of the constant outside.
    pub fn fill<N, T: Sample<N>>(&self) -> Vec<T> {
        memory::collected((0..self.inner).map(|i| T::from_f64(self.pass.fill[i % self.channels])))
    }

    /// The line at position `at` of `block`, which may be outside; `fill` for the constant.
    pub fn line<'s, T>(&self, block: &'s [T], at: isize, fill: &'s [T]) -> &'s [T] {
        match self.edge.map(at, self.len) {
            Some(inside) => &block[inside * self.inner..][..self.inner],
            None => fill,
        }
    }

    /// Writes a row of a pass along x to the middle of `padded`, and `radius` positions outside on both sides.
    pub fn pad<T: Sample<N>, N: Number>(&self, row: &[T], padded: &mut [N]) {
        let middle = &mut padded[self.radius() * self.inner..][..row.len()];
        simd::vectorize(
            #[inline(always)]
            || middle.iter_mut().zip(row).for_each(|(to, from)| *to = from.widen()),
        );
        self.pad_ends(padded, |value| T::from_f64(value).widen());
    }

    /// Writes `width` samples of `row` from `left` on, and `radius` positions on both sides, to `padded`.
    #[inline(always)]
    pub fn pad_part<T: Sample<N>, N: Number>(
        &self,
        row: &[T],
        left: usize,
        width: usize,
        padded: &mut [N],
    ) {
        let channels = self.inner;
        let margin = self.radius() * channels;
        let start = left as isize - margin as isize;
        let end = left + width + margin;
        let (first, last) = (start.max(0) as usize, end.min(row.len()));
        let inside = &mut padded[(first as isize - start) as usize..][..last - first];
        inside.iter_mut().zip(&row[first..last]).for_each(|(to, from)| *to = from.widen());
        for at in (start..0).chain(row.len() as isize..end as isize) {
            let channel = at.rem_euclid(channels as isize) as usize;
            padded[(at - start) as usize] =
                match self.edge.map(at.div_euclid(channels as isize), self.len) {
                    Some(position) => row[position * channels + channel].widen(),
                    None => N::from_f64(self.pass.fill[channel]),
                };
        }
    }

    /// Writes `radius` positions on both sides of a row that is already in the middle of `padded`. `fill` converts the
    /// constant outside.
    pub fn pad_ends<N: Copy>(&self, padded: &mut [N], fill: impl Fn(f64) -> N) {
        let (inner, radius) = (self.inner, self.radius());
        let (left, rest) = padded.split_at_mut(radius * inner);
        let (middle, right) = rest.split_at_mut(self.block());
        let outside = |to: &mut [N], at: isize| match self.edge.map(at, self.len) {
            Some(inside) => to.copy_from_slice(&middle[inside * inner..][..inner]),
            None => to.iter_mut().zip(self.pass.fill).for_each(|(to, value)| *to = fill(value)),
        };
        for i in 0..radius {
            outside(&mut left[i * inner..][..inner], i as isize - radius as isize);
            outside(&mut right[i * inner..][..inner], (self.len + i) as isize);
        }
    }
}
