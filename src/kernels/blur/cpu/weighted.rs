//! Weighted sums of taps for several positions side by side, along any axis.

use pulp::Simd;

use super::number::{Number, Round, Sample};

/// Positions that are summed side by side, in registers.
pub const LANES: usize = 64;
/// Taps on either side that are summed before they join the total, so that f32 rounds less.
const PARTIAL: usize = 32;

/// `weights[0] tap(0) + sum over i > 0 of weights[i] (tap(-i) + tap(i))` in each of `W` lanes.
#[inline(always)]
pub fn sums<'t, S: Simd, T: Sample<N> + 't, N: Number, const W: usize>(
    weights: &[N],
    tap: impl Fn(isize) -> &'t [T],
) -> [N; W] {
    let mut sums = sums_by::<S, _, _, W, false>(weights, &tap);
    // The sum of two large floats may be infinite although their weighted sum is not.
    if sums.iter().fold(false, |any, sum| any | !sum.is_finite()) {
        let careful = sums_by::<S, _, _, W, true>(weights, &tap);
        for (sum, careful) in sums.iter_mut().zip(careful) {
            if !sum.is_finite() {
                *sum = careful;
            }
        }
    }
    sums
}

/// The sums. The two taps at a distance are added before they are weighted, or weighted `APART`.
///
/// The outermost taps, whose weights are smallest, come first: that loses least of floats.
#[inline(always)]
fn sums_by<'t, S: Simd, T: Sample<N> + 't, N: Number, const W: usize, const APART: bool>(
    weights: &[N],
    tap: impl Fn(isize) -> &'t [T],
) -> [N; W] {
    let mut sums = [N::default(); W];
    for end in (1..weights.len()).rev().step_by(PARTIAL) {
        let mut partial = [N::default(); W];
        for i in (end.saturating_sub(PARTIAL) + 1..=end).rev() {
            let (before, after) = (&tap(-(i as isize))[..W], &tap(i as isize)[..W]);
            let weight = weights[i];
            for lane in 0..W {
                let (before, after) = (before[lane].widen(), after[lane].widen());
                partial[lane] = match APART {
                    false => before.add(after).multiply_add::<S>(weight, partial[lane]),
                    true => after
                        .multiply_add::<S>(weight, before.multiply_add::<S>(weight, partial[lane])),
                };
            }
        }
        sums.iter_mut().zip(partial).for_each(|(sum, partial)| *sum = sum.add(partial));
    }
    let centre = &tap(0)[..W];
    for lane in 0..W {
        sums[lane] = centre[lane].widen().multiply_add::<S>(weights[0], sums[lane]);
    }
    sums
}

/// Rounds as many sums as `target` has room for.
#[inline(always)]
pub fn store<N: Copy, D, R: Round<N, D>, const W: usize>(
    sums: &[N; W],
    target: &mut [D],
    round: R,
) {
    // A fixed number of lanes where there is room for all.
    match <&mut [D; W]>::try_from(&mut *target) {
        Ok(target) => {
            for lane in 0..W {
                target[lane] = round.round(sums[lane]);
            }
        }
        Err(_) => target.iter_mut().zip(sums).for_each(|(to, &sum)| *to = round.round(sum)),
    }
}
