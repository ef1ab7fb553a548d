//! The weights of one axis, made once on the host for both twins.

/// How the samples around a pixel are weighed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// exp(-i² / (2 sigma²)) for i in -radius..=radius, divided by the sum.
    Gaussian,
    /// All alike.
    Box,
}

/// The blur along one axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    /// Standard deviation in samples; a box has none.
    pub sigma: f64,
    /// Samples on either side of the centre: 2 radius + 1 taps. 0 leaves the axis alone.
    pub radius: usize,
}

impl Axis {
    /// An axis that stays as it is.
    pub const NONE: Self = Self { sigma: 0.0, radius: 0 };

    /// A Gaussian of standard deviation `sigma`, cut at `radius`. With either 0 the axis stays as it
    /// is.
    pub fn gaussian(sigma: f64, radius: usize) -> Self {
        if sigma > 0.0 && radius > 0 { Self { sigma, radius } } else { Self::NONE }
    }

    /// The mean of 2 `radius` + 1 samples.
    pub fn mean(radius: usize) -> Self {
        Self { sigma: 0.0, radius }
    }

    /// How many samples count.
    pub fn taps(&self) -> usize {
        2 * self.radius + 1
    }

    /// The exact weights of taps 0 (the centre) to `radius`; both sides together sum to 1.
    pub fn half_weights(&self, method: Method) -> Vec<f64> {
        match method {
            Method::Box => vec![1.0 / self.taps() as f64; self.radius + 1],
            Method::Gaussian => {
                let value = |i: usize| (-0.5 * (i as f64 / self.sigma).powi(2)).exp();
                let mut half: Vec<f64> = (0..=self.radius).map(value).collect();
                let sum = half[0] + 2.0 * half[1..].iter().rev().sum::<f64>();
                half.iter_mut().for_each(|w| *w /= sum);
                half
            }
        }
    }

    /// The weights of taps 0 to `radius` as whole numbers; both sides together sum to exactly
    /// 2^`bits`.
    ///
    /// Each is a difference of rounded cumulative sums, so that no run of them is off by more than
    /// 1/2^`bits` however many there are: an edge keeps its place and height.
    pub fn whole_half_weights(&self, method: Method, bits: u32) -> Vec<u32> {
        let scale = 2f64.powi(bits as i32);
        let exact = self.half_weights(method);
        let mut whole = vec![0; exact.len()];
        let (mut tail, mut before) = (0.0, 0u32);
        for i in (1..exact.len()).rev() {
            tail += exact[i];
            let rounded = (tail * scale).round() as u32;
            whole[i] = rounded - before;
            before = rounded;
        }
        whole[0] = (1 << bits) - 2 * before;
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_weights_sum_exactly_and_stay_close() {
        for sigma in [0.1, 0.3, 1.0, 2.5, 8.0, 32.0, 100.0, 500.0] {
            let axis = Axis::gaussian(sigma, (3.0 * sigma).ceil() as usize);
            let exact = axis.half_weights(Method::Gaussian);
            for bits in [16, 18, 24] {
                let whole = axis.whole_half_weights(Method::Gaussian, bits);
                let sum =
                    u64::from(whole[0]) + 2 * whole[1..].iter().map(|&w| u64::from(w)).sum::<u64>();
                assert_eq!(sum, 1 << bits);
                for (&w, e) in whole[1..].iter().zip(&exact[1..]) {
                    assert!((f64::from(w) - e * 2f64.powi(bits as i32)).abs() <= 1.0);
                }
            }
        }
    }
}
