//! The weights along one axis. The CPU and all GPUs use the same ones.

use crate::util::memory;

/// The weights of the samples around a pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// exp(-i² / (2 sigma²)) for i in -radius..=radius, divided by the sum.
    Gaussian,
    /// Equal weights.
    Box,
}

/// The taps along one axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Taps {
    /// Standard deviation of a Gaussian in samples; 0 for a box.
    pub sigma: f64,
    /// Number of samples before the centre, and after it unless `is_even`. 0 means no blur along the axis.
    pub radius: usize,
    /// Whether there is one sample less after the centre than before it. Only the CPU computes such boxes.
    pub is_even: bool,
}

impl Taps {
    /// The taps of an axis without a blur.
    pub const NONE: Self = Self { sigma: 0.0, radius: 0, is_even: false };

    /// A Gaussian with standard deviation `sigma`, cut off at `radius`. If either is 0, there is no blur along the
    /// axis.
    pub fn gaussian(sigma: f64, radius: usize) -> Self {
        if sigma > 0.0 && radius > 0 { Self { sigma, radius, ..Self::NONE } } else { Self::NONE }
    }

    /// A Gaussian that is cut off where scipy and scikit-image cut it off.
    pub fn scipy_gaussian(sigma: f64) -> Self {
        Self::gaussian(sigma, (4.0 * sigma + 0.5) as usize)
    }

    /// A box of 2 `radius` + 1 equal taps.
    pub fn box_filter(radius: usize) -> Self {
        Self { radius, ..Self::NONE }
    }

    /// A box of `size` equal taps. As in SciPy, a box of even size begins `size` / 2 samples before the centre.
    pub fn box_of_size(size: usize) -> Self {
        Self { radius: size / 2, is_even: size.is_multiple_of(2), ..Self::NONE }
    }

    /// Number of taps: 2 `radius` + 1, or 2 `radius` if that is even.
    pub fn count(&self) -> usize {
        2 * self.radius + usize::from(!self.is_even)
    }

    /// The exact weights of taps 0 (the centre) to `radius`; both sides together sum to 1.
    pub fn half_weights(&self, method: Method) -> Vec<f64> {
        match method {
            Method::Box => memory::filled(1.0 / self.count() as f64, self.radius + 1),
            Method::Gaussian => {
                let value = |i: usize| (-0.5 * (i as f64 / self.sigma).powi(2)).exp();
                let mut half: Vec<f64> = (0..=self.radius).map(value).collect();
                let sum = half[0] + 2.0 * half[1..].iter().rev().sum::<f64>();
                half.iter_mut().for_each(|w| *w /= sum);
                half
            }
        }
    }

    /// Bits of integer weights of a Gaussian for 16-bit samples: the maximum of 22 to 28 with which no 16 neighbours
    /// sum to more than 2^22. So the rounding of weights has no larger effect in long windows than in short ones.
    pub fn fine_bits(&self) -> u32 {
        let half = self.half_weights(Method::Gaussian);
        let weight = |distance: isize| half.get(distance.unsigned_abs()).copied().unwrap_or(0.0);
        let max: f64 = (-7..=8).map(weight).sum();
        (23..=28).rev().find(|&bits| max * f64::from(1 << bits) <= f64::from(1 << 22)).unwrap_or(22)
    }

    /// The weights of taps 0 to `radius` as integers; both sides together sum to exactly 2^`bits`.
    ///
    /// Each is a difference of rounded cumulative sums, so that the sum of any run of weights has an error of at most
    /// 1/2^`bits`, whatever the radius. Edges keep their position and height.
    pub fn integer_half_weights(&self, method: Method, bits: u32) -> Vec<u32> {
        let scale = 2f64.powi(bits as i32);
        let exact = self.half_weights(method);
        let mut integer = memory::filled(0, exact.len());
        let (mut tail, mut before) = (0.0, 0u32);
        for i in (1..exact.len()).rev() {
            tail += exact[i];
            let rounded = (tail * scale).round() as u32;
            integer[i] = rounded - before;
            before = rounded;
        }
        integer[0] = (1 << bits) - 2 * before;
        integer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_weights_sum_exactly_and_stay_close() {
        for sigma in [0.1, 0.3, 1.0, 2.5, 8.0, 32.0, 100.0, 500.0] {
            let axis = Taps::gaussian(sigma, (3.0 * sigma).ceil() as usize);
            let exact = axis.half_weights(Method::Gaussian);
            for bits in [16, 18, 24, axis.fine_bits()] {
                let integer = axis.integer_half_weights(Method::Gaussian, bits);
                let sum = u64::from(integer[0])
                    + 2 * integer[1..].iter().map(|&w| u64::from(w)).sum::<u64>();
                assert_eq!(sum, 1 << bits);
                for (&w, e) in integer[1..].iter().zip(&exact[1..]) {
                    assert!((f64::from(w) - e * 2f64.powi(bits as i32)).abs() <= 1.0);
                }
            }
        }
    }
}
