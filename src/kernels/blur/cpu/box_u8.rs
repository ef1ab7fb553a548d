//! A box filter of u8 along y and then x, row by row, so that values between the passes stay in the cache. Chosen for a
//! single iteration over an image.
//!
//! Sums slide along y. Along x, up to [`FEW_TAPS`] taps are added one by one in 16-bit lanes; for more taps, the sum of
//! a window is the difference of two prefix sums.

use super::{
    CpuPasses, PassFormat, Rounding,
    lines::Lines,
    number::{NoRounding, Round, ShiftU32},
    sliding::{FEW_TAPS, LANES, Window, add_taps, slide},
};
use crate::{
    data::{
        division::{RoundedF64, RoundedU16, RoundedU32},
        samples::Samples,
    },
    util::{error::Result, memory, simd},
};

/// Computes two passes; returns `None` if this route cannot compute them.
pub fn blur(task: &CpuPasses<'_>) -> Result<Option<Samples>> {
    let CpuPasses { passes: [y, x], edge, shape, values: Samples::U8(source) } = *task else {
        return Ok(None);
    };
    let (Rounding::Shift(shift), Rounding::Divide { up, divisor }) = (y.rounding, x.rounding)
    else {
        return Ok(None);
    };
    if [y.axis, x.axis] != [1, 0] || x.to != PassFormat::U8 {
        return Ok(None);
    }
    let passes = TwoPasses { y: Lines::new(y, edge, shape), x: Lines::new(x, edge, shape), source };
    let shift = ShiftU32(shift);
    // If sums along x fit 16 bits, sums along y do as well, and are not shifted.
    let narrow = RoundedU16::new(divisor).filter(|_| up == 0 && x.taps.count() <= FEW_TAPS);
    let blurred = match (narrow, RoundedU32::new(up, divisor)) {
        (Some(divide), _) => passes.few_taps(divide),
        (None, Some(divide)) => passes.prefix_sums(shift, divide),
        (None, None) => passes.prefix_sums(shift, RoundedF64::new(up, divisor)),
    };
    Ok(Some(blurred?.into()))
}

struct TwoPasses<'a> {
    y: Lines<'a>,
    x: Lines<'a>,
    source: &'a [u8],
}

impl TwoPasses<'_> {
    fn few_taps(&self, round: RoundedU16) -> Result<Vec<u8>> {
        let x = self.x;
        let (row, step) = (x.block(), x.inner);
        let mut target = memory::zeros(self.source.len())?;
        slide(&self.y, self.source, &mut target, || {
            let mut padded = memory::filled(0u16, row + 2 * x.radius() * step + LANES);
            move |window: Window<'_, u8, u16>, target: &mut [u8]| {
                window.advance(NoRounding, &mut padded[x.radius() * step..][..row]);
                x.pad_ends(&mut padded, |value| value as u16);
                simd::vectorize(
                    #[inline(always)]
                    || add_taps(&padded, [x.pass.taps.count(), step], round, target),
                );
            }
        });
        Ok(target)
    }

    fn prefix_sums(&self, shift: ShiftU32, round: impl Round<u32, u8>) -> Result<Vec<u8>> {
        let x = self.x;
        let (row, step) = (x.block(), x.inner);
        let window_len = x.pass.taps.count() * step;
        let mut target = memory::zeros(self.source.len())?;
        slide(&self.y, self.source, &mut target, || {
            let mut sums = memory::filled(0u16, row);
            let mut padded = memory::filled(0u32, row + 2 * x.radius() * step);
            let mut prefix = memory::filled(0u32, padded.len() + step);
            move |window: Window<'_, u8, u32>, target: &mut [u8]| {
                window.advance(shift, &mut sums);
                x.pad(&sums, &mut padded);
                match step {
                    1 => scan::<1>(&padded, &mut prefix),
                    2 => scan::<2>(&padded, &mut prefix),
                    3 => scan::<3>(&padded, &mut prefix),
                    _ => scan::<4>(&padded, &mut prefix),
                }
                simd::vectorize(
                    #[inline(always)]
                    || subtract(&prefix, &prefix[window_len..], round, target),
                );
            }
        });
        Ok(target)
    }
}

/// Exclusive prefix sums of each channel, modulo 2^32. `prefix` is one position longer than `values` and starts with
/// zeros.
fn scan<const CHANNELS: usize>(values: &[u32], prefix: &mut [u32]) {
    let mut sums = [0u32; CHANNELS];
    let (values, _) = values.as_chunks::<CHANNELS>();
    let (prefix, _) = prefix[CHANNELS..].as_chunks_mut::<CHANNELS>();
    for (prefix, values) in prefix.iter_mut().zip(values) {
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum = sum.wrapping_add(*value);
        }
        *prefix = sums;
    }
}

/// Stores the rounded differences of prefix sums at the ends of windows.
#[inline(always)]
fn subtract(starts: &[u32], ends: &[u32], round: impl Round<u32, u8>, target: &mut [u8]) {
    for (to, (start, end)) in target.iter_mut().zip(starts.iter().zip(ends)) {
        *to = round.round(end.wrapping_sub(*start));
    }
}
