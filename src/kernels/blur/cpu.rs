//! The native twin: loops over plain arrays that the compiler turns into SIMD, compiled once for each
//! level of the instruction set and chosen at run time; rayon over lines and blocks of rows.

use std::borrow::Cow;

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::{
    Edge, Shape, Values,
    plan::{Arithmetic, Format, Pass, Rounding, reciprocal},
};
use crate::{
    error::Result,
    memory::{self, raise},
    simd,
};

/// Outputs that are computed side by side, in registers.
const LANES: usize = 64;
/// Taps along x that are added up one by one.
const FEW: usize = 15;
/// Taps on either side that are summed up before they go to the total.
const FLUSH: usize = 32;

/// What samples are summed as.
trait Number: Copy + Default + Send + Sync + 'static {
    fn add(self, other: Self) -> Self;
    /// `self * weight + sum`; `FMA` says that the processor does it at once.
    fn weigh<const FMA: bool>(self, weight: Self, sum: Self) -> Self;
}

impl Number for f32 {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self + other
    }

    #[inline(always)]
    fn weigh<const FMA: bool>(self, weight: Self, sum: Self) -> Self {
        if FMA { self.mul_add(weight, sum) } else { self * weight + sum }
    }
}

impl Number for f64 {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self + other
    }

    #[inline(always)]
    fn weigh<const FMA: bool>(self, weight: Self, sum: Self) -> Self {
        if FMA { self.mul_add(weight, sum) } else { self * weight + sum }
    }
}

impl Number for u32 {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    #[inline(always)]
    fn weigh<const FMA: bool>(self, weight: Self, sum: Self) -> Self {
        self.wrapping_mul(weight).wrapping_add(sum)
    }
}

/// What running sums are kept in; they may overflow as long as what is told of them does not.
trait Running: Copy + Default + Send + Sync + 'static {
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
}

macro_rules! running {
    ($($type:ty),+) => {
        $(impl Running for $type {
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
        })+
    };
}
running!(u16, u32);

/// A stored sample that is read as an `N`.
trait Load<N>: Copy + Send + Sync {
    fn load(self) -> N;
}

macro_rules! load {
    ($($from:ty => $to:ty),+) => {
        $(impl Load<$to> for $from {
            #[inline(always)]
            fn load(self) -> $to {
                self as $to
            }
        })+
    };
}
load!(u8 => f32, u8 => u16, u8 => u32, u16 => u32, u32 => f64, f32 => f32);

/// A rule that makes a stored sample `D` of a sum `N`.
trait Store<N, D>: Copy + Send + Sync {
    fn store(self, sum: N) -> D;
}

/// [`Rounding::Shift`] of a sum below 2^32.
#[derive(Clone, Copy)]
struct ShiftOut(u32);

/// [`Rounding::Divide`].
#[derive(Clone, Copy)]
struct DivideOut {
    scale: f64,
    half: f64,
    inverse: f64,
}

/// [`Rounding::Divide`] of sums of 16 bits, with results of 8 bits.
#[derive(Clone, Copy, Debug)]
struct ShortOut {
    half: u16,
    factor: u16,
    after: u32,
}

/// [`Rounding::Divide`] by few taps, with results of 8 bits.
#[derive(Clone, Copy)]
struct NearOut {
    half: f32,
    inverse: f32,
}

/// [`Rounding::Shift`] of a sum of 48 bits.
#[derive(Clone, Copy)]
struct WideOut(f64);

/// [`Rounding::None`].
#[derive(Clone, Copy)]
struct KeepOut;

impl ShiftOut {
    #[inline(always)]
    fn shift(self, sum: u32) -> u32 {
        sum.wrapping_add(1 << self.0 >> 1) >> self.0
    }
}

impl DivideOut {
    fn new(up: u32, divisor: u32) -> Self {
        let half = f64::from(divisor / 2) + 0.5;
        Self { scale: f64::from(1 << up), half, inverse: 1.0 / f64::from(divisor) }
    }

    /// floor(x / divisor) is the integer nearest to (x + 1/2) / divisor - 1/2, which is never half
    /// way between two; adding 2^52 rounds to it and leaves it in the lowest bits.
    #[inline(always)]
    fn divide(self, sum: u32) -> u32 {
        let x = f64::from(sum) * self.scale + self.half;
        let magic = 4_503_599_627_370_496.0;
        (x * self.inverse - 0.5 + magic).to_bits() as u32
    }
}

impl ShortOut {
    /// Nothing where sums or the factor may leave 16 bits.
    fn new(up: u32, divisor: u32) -> Option<Self> {
        let half = u16::try_from(divisor / 2).ok()?;
        let most = u16::try_from(255 * divisor + u32::from(half)).ok()?;
        let largest = u64::from(u16::MAX);
        let (factor, power) = reciprocal(divisor.into(), most.into(), largest, 16..32)?;
        (up == 0).then_some(Self { half, factor: factor as u16, after: power - 16 })
    }

    #[inline(always)]
    fn divide(self, sum: u16) -> u16 {
        let product = u32::from(sum.wrapping_add(self.half)) * u32::from(self.factor);
        ((product >> 16) as u16) >> self.after
    }
}

impl NearOut {
    fn new(up: u32, divisor: u32) -> Option<Self> {
        let half = (divisor / 2) as f32 + 0.5;
        (up == 0 && divisor <= 4096).then_some(Self { half, inverse: 1.0 / divisor as f32 })
    }

    /// As [`DivideOut::divide`]. Quotients below 2^8 are off by less than 2^-14, and at least 2^-13 away
    /// from half way between two integers.
    #[inline(always)]
    fn divide(self, sum: u32) -> u32 {
        let x = sum as i32 as f32 + self.half;
        (x * self.inverse - 0.5 + 8_388_608.0).to_bits()
    }
}

/// A whole number below 2^31 out of an f32; by way of i32, which every SIMD level converts to.
#[inline(always)]
fn exact(sum: f32) -> u32 {
    sum as i32 as u32
}

macro_rules! store {
    ($($from:ty => $to:ty: $rule:ty, |$self:ident, $sum:ident| $body:expr;)+) => {
        $(impl Store<$from, $to> for $rule {
            #[inline(always)]
            fn store(self, $sum: $from) -> $to {
                let $self = self;
                $body
            }
        })+
    };
}
store! {
    f32 => u8: ShiftOut, |s, sum| s.shift(exact(sum)) as u8;
    f32 => u16: ShiftOut, |s, sum| s.shift(exact(sum)) as u16;
    u32 => u8: ShiftOut, |s, sum| s.shift(sum) as u8;
    u32 => u16: ShiftOut, |s, sum| s.shift(sum) as u16;
    u32 => u8: DivideOut, |s, sum| s.divide(sum) as u8;
    u32 => u8: NearOut, |s, sum| s.divide(sum) as u8;
    u16 => u8: ShortOut, |s, sum| s.divide(sum) as u8;
    u16 => u16: KeepOut, |_s, sum| sum;
    u32 => u16: DivideOut, |s, sum| s.divide(sum) as u16;
    f64 => u32: WideOut, |s, sum| ((sum + 0.5 / s.0) * s.0) as u32;
    f32 => f32: KeepOut, |_s, sum| sum;
}

/// Runs every pass of `plan`.
pub fn run<'d>(
    plan: &[Pass],
    edge: Edge,
    shape: Shape,
    mut data: Values<'d>,
) -> Result<Values<'d>> {
    if let Values::U8(source) = &data
        && let Some(blurred) = super::bytes::blur(plan, edge, shape, source)
    {
        return Ok(bytes(blurred));
    }
    if let (Values::U8(source), [y, x]) = (&data, plan)
        && let (Rounding::Shift(shift), Rounding::Divide { up, divisor }) = (y.rounding, x.rounding)
        && ([y.axis, x.axis], y.arithmetic, x.to) == ([1, 0], Arithmetic::U32, Format::U8)
        && y.integer_weights.is_empty()
    {
        let [y, x] = [y, x].map(|pass| Walk {
            pass,
            edge,
            lines: shape.along(pass.axis),
            channels: shape.channels,
        });
        let shift = ShiftOut(shift);
        return Ok(bytes(match (ShortOut::new(up, divisor), NearOut::new(up, divisor)) {
            (Some(divide), _) if x.pass.taps.count() <= FEW => few_taps(&y, &x, source, divide),
            (_, Some(divide)) => means(&y, &x, source, shift, divide),
            (_, None) => means(&y, &x, source, shift, DivideOut::new(up, divisor)),
        }));
    }
    for pass in plan {
        let walk = Walk { pass, edge, lines: shape.along(pass.axis), channels: shape.channels };
        let whole = &pass.integer_weights;
        data = match (&data, pass.arithmetic, pass.rounding, pass.to) {
            (Values::U8(v), Arithmetic::ExactF32, Rounding::Shift(n), to) => {
                let weights: Vec<f32> = whole.iter().map(|&w| w as f32).collect();
                match to {
                    Format::U8 => bytes(walk.weigh(v, &weights, ShiftOut(n))),
                    _ => halves(walk.weigh(v, &weights, ShiftOut(n))),
                }
            }
            (Values::U8(v), _, Rounding::Shift(n), _) if whole.is_empty() => {
                halves(walk.mean(v, ShiftOut(n)))
            }
            (Values::U16(v), _, Rounding::Shift(n), _) if whole.is_empty() => {
                halves(walk.mean(v, ShiftOut(n)))
            }
            (Values::U8(v), _, Rounding::Shift(n), Format::U8) => {
                bytes(walk.weigh(v, whole, ShiftOut(n)))
            }
            (Values::U8(v), _, Rounding::Shift(n), _) => halves(walk.weigh(v, whole, ShiftOut(n))),
            (Values::U16(v), _, Rounding::Shift(n), Format::U8) => {
                bytes(walk.weigh(v, whole, ShiftOut(n)))
            }
            (Values::U16(v), _, Rounding::Shift(n), _) => halves(walk.weigh(v, whole, ShiftOut(n))),
            (Values::U8(v), _, Rounding::Divide { up, divisor }, Format::U8) => {
                bytes(walk.mean(v, DivideOut::new(up, divisor)))
            }
            (Values::U8(v), _, Rounding::Divide { up, divisor }, _) => {
                halves(walk.mean(v, DivideOut::new(up, divisor)))
            }
            (Values::U16(v), _, Rounding::Divide { up, divisor }, Format::U8) => {
                bytes(walk.mean(v, DivideOut::new(up, divisor)))
            }
            (Values::U16(v), _, Rounding::Divide { up, divisor }, _) => {
                halves(walk.mean(v, DivideOut::new(up, divisor)))
            }
            (Values::U24(v), _, Rounding::Shift(n), _) => {
                let weights: Vec<f64> = whole.iter().map(|&w| f64::from(w)).collect();
                let out = WideOut(0.5f64.powi(n as i32));
                Values::U24(Cow::Owned(walk.weigh(v, &weights, out)))
            }
            (Values::F32(v), ..) => {
                Values::F32(Cow::Owned(walk.weigh(v, &pass.float_weights, KeepOut)))
            }
            (Values::U24(_), ..) | (Values::U8(_) | Values::U16(_), _, Rounding::None, _) => {
                unreachable!("no plan has such a pass")
            }
        };
    }
    Ok(data)
}

fn bytes(values: Vec<u8>) -> Values<'static> {
    Values::U8(Cow::Owned(values))
}

fn halves(values: Vec<u16>) -> Values<'static> {
    Values::U16(Cow::Owned(values))
}

/// A pass and the lines that it goes along.
#[derive(Clone, Copy)]
struct Walk<'a> {
    pass: &'a Pass,
    edge: Edge,
    /// Lines outside, positions a line, samples side by side at a position.
    lines: [usize; 3],
    channels: usize,
}

/// A stored sample that the constant edge's value can be made.
trait Fill: Copy {
    fn fill(value: f64) -> Self;
}

macro_rules! fill {
    ($($type:ty),+) => {
        $(impl Fill for $type {
            fn fill(value: f64) -> Self {
                value as Self
            }
        })+
    };
}
fill!(u8, u16, u32, f32);

impl Walk<'_> {
    /// The sums of neighbours times `weights`, taps 0 to radius.
    fn weigh<S, N, D, R>(&self, source: &[S], weights: &[N], rule: R) -> Vec<D>
    where
        S: Load<N> + Fill,
        N: Number,
        D: Copy + bytemuck::Zeroable + Send + Sync,
        R: Store<N, D>,
    {
        let [_, n, inner] = self.lines;
        let radius = self.pass.taps.radius;
        let mut target = memory::zeros::<D>(source.len()).unwrap_or_else(raise);
        if self.pass.axis == 0 {
            // A few lines at a time, so that small images cost little to share out.
            let lines = (4096 / (n * inner)).max(1);
            let block = lines * n * inner;
            target.par_chunks_mut(block).zip(source.par_chunks(block)).for_each_init(
                || vec![N::default(); (n + 2 * radius) * inner + LANES],
                |pad, (target, source)| {
                    let lines =
                        target.chunks_exact_mut(n * inner).zip(source.chunks_exact(n * inner));
                    for (target, source) in lines {
                        self.pad(source, pad);
                        simd::dispatch(Line { pad, weights, rule, stride: inner, target });
                    }
                },
            );
            return target;
        }
        let outside: Vec<S> = self.outside(inner);
        // Blocks of rows that do not cross from one outer line to the next.
        let rows = n.div_ceil(4 * rayon::current_num_threads()).clamp(1, 64);
        target.par_chunks_mut(n * inner).enumerate().for_each(|(outer, target)| {
            let source = &source[outer * n * inner..][..n * inner];
            target.par_chunks_mut(rows * inner).enumerate().for_each(|(block, target)| {
                let first = (block * rows) as isize - radius as isize;
                let count = target.len() / inner + 2 * radius;
                let lines: Vec<&[S]> = (first..first + count as isize)
                    .map(|at| match self.edge.map(at, n) {
                        Some(row) => &source[row * inner..][..inner],
                        None => &outside,
                    })
                    .collect();
                simd::dispatch(Rows { lines: &lines, weights, rule, target });
            });
        });
        target
    }

    /// The sums of neighbours.
    fn mean<S, D, R>(&self, source: &[S], rule: R) -> Vec<D>
    where
        S: Load<u32> + Fill,
        D: Copy + bytemuck::Zeroable + Send + Sync,
        R: Store<u32, D>,
    {
        let [_, n, inner] = self.lines;
        let radius = self.pass.taps.radius;
        let mut target = memory::zeros::<D>(source.len()).unwrap_or_else(raise);
        if self.pass.axis == 0 {
            let block = n * inner;
            target.par_chunks_mut(block).zip(source.par_chunks(block)).for_each_init(
                || vec![0; (n + 2 * radius) * inner + LANES],
                |pad, (target, source)| {
                    self.pad(source, pad);
                    for channel in 0..inner {
                        let mut sum: u32 =
                            pad.iter().skip(channel).step_by(inner).take(2 * radius).sum();
                        for i in (channel..n * inner).step_by(inner) {
                            sum = sum.wrapping_add(pad[i + 2 * radius * inner]);
                            target[i] = rule.store(sum);
                            sum = sum.wrapping_sub(pad[i]);
                        }
                    }
                },
            );
            return target;
        }
        self.slide(source, &mut target, rule, || |slide, target| slide.to(target));
        target
    }

    /// Running sums along y or z: `begin` starts a block of lines, and what it returns is given each
    /// line's move of the sums and its part of `target`.
    fn slide<S, N, T, R, F>(
        &self,
        source: &[S],
        target: &mut [T],
        rule: R,
        begin: impl Fn() -> F + Sync,
    ) where
        S: Load<N> + Fill,
        N: Running,
        T: Send,
        R: Copy + Sync,
        F: FnMut(Slide<'_, S, N, R>, &mut [T]),
    {
        let [_, n, inner] = self.lines;
        let radius = self.pass.taps.radius;
        let outside: Vec<S> = self.outside(inner);
        // Each block adds up its first window anew; long blocks make that cheap.
        let rows = n.div_ceil(2 * rayon::current_num_threads()).max(16);
        target.par_chunks_mut(n * inner).enumerate().for_each(|(outer, target)| {
            let source = &source[outer * n * inner..][..n * inner];
            let line = |at: isize| match self.edge.map(at, n) {
                Some(row) => &source[row * inner..][..inner],
                None => &outside[..],
            };
            target.par_chunks_mut(rows * inner).enumerate().for_each(|(block, target)| {
                let mut each = begin();
                let mut sums = vec![N::default(); inner];
                let first = (block * rows) as isize - radius as isize;
                for at in first..first + 2 * radius as isize {
                    simd::dispatch(AddLine { line: line(at), sums: &mut sums });
                }
                for (i, target) in target.chunks_exact_mut(inner).enumerate() {
                    let leave = line(first + i as isize);
                    let enter = line(first + (i + 2 * radius) as isize);
                    each(Slide { leave, enter, sums: &mut sums, rule }, target);
                }
            });
        });
    }

    /// A line of the constant edge's value.
    fn outside<S: Fill>(&self, len: usize) -> Vec<S> {
        (0..len).map(|i| S::fill(self.pass.fill[i % self.channels])).collect()
    }

    /// `line` with what lies outside on both sides, `radius` positions each.
    fn pad<S: Load<N> + Fill, N: Copy>(&self, line: &[S], pad: &mut [N]) {
        let [_, n, inner] = self.lines;
        let radius = self.pass.taps.radius;
        simd::dispatch(Widen { line, to: &mut pad[radius * inner..][..n * inner] });
        self.surround(pad, |value| S::fill(value).load());
    }

    /// Fills both sides of a line that lies between them, `radius` positions each; `fill` makes samples
    /// of the constant edge's value.
    fn surround<N: Copy>(&self, pad: &mut [N], fill: impl Fn(f64) -> N) {
        let [_, n, inner] = self.lines;
        let radius = self.pass.taps.radius;
        let (left, rest) = pad.split_at_mut(radius * inner);
        let (middle, rest) = rest.split_at_mut(n * inner);
        let outside = |to: &mut [N], at: isize| match self.edge.map(at, n) {
            Some(inside) => to.copy_from_slice(&middle[inside * inner..][..inner]),
            None => to.iter_mut().zip(self.pass.fill).for_each(|(to, value)| *to = fill(value)),
        };
        for i in 0..radius {
            outside(&mut left[i * inner..][..inner], i as isize - radius as isize);
            outside(&mut rest[i * inner..][..inner], (n + i) as isize);
        }
    }
}

/// Running sums of bytes along y and then x, row by row, so that what lies between them stays in the
/// cache.
fn means<R: Store<u32, u8>>(
    y: &Walk<'_>,
    x: &Walk<'_>,
    source: &[u8],
    shift: ShiftOut,
    divide: R,
) -> Vec<u8> {
    let [_, width, channels] = x.lines;
    let reach = 2 * x.pass.taps.radius;
    let mut target = memory::zeros::<u8>(source.len()).unwrap_or_else(raise);
    y.slide(source, &mut target, shift, || {
        let mut row = vec![0u16; width * channels];
        let mut pad = vec![0u32; (width + reach) * channels];
        let mut before = vec![0u32; (width + reach + 1) * channels];
        move |slide: Slide<'_, u8, u32, _>, target| {
            slide.to(&mut row);
            x.pad(&row, &mut pad);
            match channels {
                1 => add_up::<1>(&pad, &mut before),
                2 => add_up::<2>(&pad, &mut before),
                3 => add_up::<3>(&pad, &mut before),
                _ => add_up::<4>(&pad, &mut before),
            }
            let ends = &before[(reach + 1) * channels..];
            simd::dispatch(Windows { starts: &before, ends, rule: divide, target });
        }
    });
    target
}

/// The same for windows whose sums fit 16 bits: so few taps that adding them all along x is faster than
/// what comes before each.
fn few_taps(y: &Walk<'_>, x: &Walk<'_>, source: &[u8], divide: ShortOut) -> Vec<u8> {
    let [_, width, channels] = x.lines;
    let reach = 2 * x.pass.taps.radius;
    let mut target = memory::zeros::<u8>(source.len()).unwrap_or_else(raise);
    y.slide(source, &mut target, KeepOut, || {
        let mut pad = vec![0u16; (width + reach) * channels + LANES];
        move |slide: Slide<'_, u8, u16, _>, target| {
            slide.to(&mut pad[reach / 2 * channels..][..width * channels]);
            x.surround(&mut pad, |value| value as u16);
            simd::dispatch(Taps { pad: &pad, count: reach + 1, channels, rule: divide, target });
        }
    });
    target
}

/// Stores the sums of `count` samples each that lie `channels` apart.
struct Taps<'a> {
    pad: &'a [u16],
    count: usize,
    channels: usize,
    rule: ShortOut,
    target: &'a mut [u8],
}

impl WithSimd for Taps<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        simd.vectorize(
            #[inline(always)]
            || {
                for (chunk, target) in self.target.chunks_mut(LANES).enumerate() {
                    let mut sums = [0u16; LANES];
                    for tap in 0..self.count {
                        let samples = &self.pad[chunk * LANES + tap * self.channels..][..LANES];
                        for lane in 0..LANES {
                            sums[lane] = sums[lane].wrapping_add(samples[lane]);
                        }
                    }
                    store_all(&sums, target, self.rule);
                }
            },
        );
    }
}

/// The sum of all `values` of the same channel before each position, modulo 2^32; the first are zero.
fn add_up<const CHANNELS: usize>(values: &[u32], before: &mut [u32]) {
    let mut sums = [0u32; CHANNELS];
    let (values, _) = values.as_chunks::<CHANNELS>();
    let (before, _) = before[CHANNELS..].as_chunks_mut::<CHANNELS>();
    for (before, values) in before.iter_mut().zip(values) {
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum = sum.wrapping_add(*value);
        }
        *before = sums;
    }
}

/// Stores the sums between two places each.
struct Windows<'a, R> {
    starts: &'a [u32],
    ends: &'a [u32],
    rule: R,
    target: &'a mut [u8],
}

impl<R: Store<u32, u8>> WithSimd for Windows<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        simd.vectorize(
            #[inline(always)]
            || {
                let pairs = self.starts.iter().zip(self.ends);
                for (to, (start, end)) in self.target.iter_mut().zip(pairs) {
                    *to = self.rule.store(end.wrapping_sub(*start));
                }
            },
        );
    }
}

/// Whether a fused multiply-add is one instruction at SIMD level `S`.
const fn has_fma<S: Simd>() -> bool {
    cfg!(target_arch = "aarch64") || size_of::<S::f32s>() >= 32
}

/// Stores as many sums as `target` takes; of a fixed number where it takes all.
#[inline(always)]
fn store_all<N: Copy, D, R: Store<N, D>>(sums: &[N; LANES], target: &mut [D], rule: R) {
    match <&mut [D; LANES]>::try_from(&mut *target) {
        Ok(target) => {
            for lane in 0..LANES {
                target[lane] = rule.store(sums[lane]);
            }
        }
        Err(_) => target.iter_mut().zip(sums).for_each(|(to, &sum)| *to = rule.store(sum)),
    }
}

/// Reads a line of samples as numbers.
struct Widen<'a, S, N> {
    line: &'a [S],
    to: &'a mut [N],
}

impl<T: Load<N>, N> WithSimd for Widen<'_, T, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        simd.vectorize(
            #[inline(always)]
            || self.to.iter_mut().zip(self.line).for_each(|(to, from)| *to = from.load()),
        );
    }
}

/// One line, padded, to one line of sums.
struct Line<'a, N, D, R> {
    pad: &'a [N],
    weights: &'a [N],
    rule: R,
    stride: usize,
    target: &'a mut [D],
}

impl<N: Number, D: Copy, R: Store<N, D>> WithSimd for Line<'_, N, D, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        simd.vectorize(
            #[inline(always)]
            || match const { has_fma::<S>() } {
                true => self.run::<true>(),
                false => self.run::<false>(),
            },
        );
    }
}

impl<N: Number, D: Copy, R: Store<N, D>> Line<'_, N, D, R> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { pad, weights, rule, stride, target } = self;
        let radius = weights.len() - 1;
        for (chunk, target) in target.chunks_mut(LANES).enumerate() {
            let centre = chunk * LANES + radius * stride;
            let mut sums = [N::default(); LANES];
            // The smallest weights first, and few at a time, which loses least of floats.
            for end in (1..=radius).rev().step_by(FLUSH) {
                let mut part = [N::default(); LANES];
                for i in (end.saturating_sub(FLUSH) + 1..=end).rev() {
                    let before = &pad[centre - i * stride..][..LANES];
                    let after = &pad[centre + i * stride..][..LANES];
                    let weight = weights[i];
                    for lane in 0..LANES {
                        part[lane] = before[lane].add(after[lane]).weigh::<FMA>(weight, part[lane]);
                    }
                }
                sums.iter_mut().zip(part).for_each(|(sum, part)| *sum = sum.add(part));
            }
            let middle = &pad[centre..][..LANES];
            for lane in 0..LANES {
                sums[lane] = middle[lane].weigh::<FMA>(weights[0], sums[lane]);
            }
            store_all(&sums, target, rule);
        }
    }
}

/// Lines to the rows of sums in the middle of them.
struct Rows<'a, S, N, D, R> {
    lines: &'a [&'a [S]],
    weights: &'a [N],
    rule: R,
    target: &'a mut [D],
}

impl<T: Load<N>, N: Number, D: Copy, R: Store<N, D>> WithSimd for Rows<'_, T, N, D, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        simd.vectorize(
            #[inline(always)]
            || match const { has_fma::<S>() } {
                true => self.run::<true>(),
                false => self.run::<false>(),
            },
        );
    }
}

impl<T: Load<N>, N: Number, D: Copy, R: Store<N, D>> Rows<'_, T, N, D, R> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { lines, weights, rule, target } = self;
        let radius = weights.len() - 1;
        let inner = lines[0].len();
        let count = lines.len() - 2 * radius;
        if inner < LANES {
            for row in 0..count {
                for x in 0..inner {
                    let mut sum = N::default();
                    for end in (1..=radius).rev().step_by(FLUSH) {
                        let mut part = N::default();
                        for i in (end.saturating_sub(FLUSH) + 1..=end).rev() {
                            let before: N = lines[row + radius - i][x].load();
                            let after = lines[row + radius + i][x].load();
                            part = before.add(after).weigh::<FMA>(weights[i], part);
                        }
                        sum = sum.add(part);
                    }
                    sum = lines[row + radius][x].load().weigh::<FMA>(weights[0], sum);
                    target[row * inner + x] = rule.store(sum);
                }
            }
            return;
        }
        for chunk in 0..inner.div_ceil(LANES) {
            // The last chunk ends with the line; what it shares with the one before comes out alike.
            let x = (chunk * LANES).min(inner - LANES);
            for row in 0..count {
                let mut sums = [N::default(); LANES];
                for end in (1..=radius).rev().step_by(FLUSH) {
                    let mut part = [N::default(); LANES];
                    for i in (end.saturating_sub(FLUSH) + 1..=end).rev() {
                        let before = &lines[row + radius - i][x..][..LANES];
                        let after = &lines[row + radius + i][x..][..LANES];
                        let weight = weights[i];
                        for lane in 0..LANES {
                            let pair = before[lane].load().add(after[lane].load());
                            part[lane] = pair.weigh::<FMA>(weight, part[lane]);
                        }
                    }
                    sums.iter_mut().zip(part).for_each(|(sum, part)| *sum = sum.add(part));
                }
                let middle = &lines[row + radius][x..][..LANES];
                for lane in 0..LANES {
                    sums[lane] = middle[lane].load().weigh::<FMA>(weights[0], sums[lane]);
                }
                let target = &mut target[row * inner + x..][..LANES];
                store_all(&sums, target, rule);
            }
        }
    }
}

/// Adds a line to the running sums.
struct AddLine<'a, S, N> {
    line: &'a [S],
    sums: &'a mut [N],
}

impl<T: Load<N>, N: Running> WithSimd for AddLine<'_, T, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        simd.vectorize(
            #[inline(always)]
            || {
                let pairs = self.sums.iter_mut().zip(self.line);
                pairs.for_each(|(sum, value)| *sum = sum.plus(value.load()));
            },
        );
    }
}

/// The move of running sums by a line.
struct Slide<'a, S, N, R> {
    leave: &'a [S],
    enter: &'a [S],
    sums: &'a mut [N],
    rule: R,
}

impl<T: Load<N>, N: Running, R> Slide<'_, T, N, R> {
    /// Does it, and stores the sums in `target` when both ends are in.
    fn to<D>(self, target: &mut [D])
    where
        R: Store<N, D>,
    {
        simd::dispatch(SlideTo { slide: self, target });
    }
}

struct SlideTo<'a, 'b, S, N, D, R> {
    slide: Slide<'a, S, N, R>,
    target: &'b mut [D],
}

impl<T: Load<N>, N: Running, D, R: Store<N, D>> WithSimd for SlideTo<'_, '_, T, N, D, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        simd.vectorize(
            #[inline(always)]
            || {
                let Slide { leave, enter, sums, rule } = self.slide;
                let ends = leave.iter().zip(enter);
                for ((sum, to), (leave, enter)) in sums.iter_mut().zip(self.target).zip(ends) {
                    let full = sum.plus(enter.load());
                    *to = rule.store(full);
                    *sum = full.minus(leave.load());
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::{NearOut, ShortOut};

    /// Holds `divide` against the quotient where it changes, and just before.
    fn check(divisor: u32, divide: impl Fn(u32) -> u32) {
        let exact = |sum: u32| (sum + divisor / 2) / divisor;
        for result in 1..=255 {
            let first = result * divisor - divisor / 2;
            for sum in [first - 1, first] {
                assert_eq!(divide(sum), exact(sum), "{sum} / {divisor}");
            }
            assert_eq!((exact(first - 1), exact(first)), (result - 1, result));
        }
        assert_eq!(divide(255 * divisor), 255);
    }

    #[test]
    fn dividing_otherwise_is_exact_at_every_step() {
        for divisor in 1..=4096 {
            let near = NearOut::new(0, divisor).expect("it is small enough");
            check(divisor, |sum| near.divide(sum) & 0xff);
            if let Some(short) = ShortOut::new(0, divisor) {
                check(divisor, |sum| short.divide(sum as u16).into());
            }
        }
        assert!(NearOut::new(1, 9).is_none() && NearOut::new(0, 4097).is_none());
        assert!((1..8).all(|radius: u32| ShortOut::new(0, (2 * radius + 1).pow(2)).is_some()));
        assert!(ShortOut::new(1, 9).is_none() && ShortOut::new(0, 257).is_none());
    }
}
