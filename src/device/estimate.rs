//! Estimated durations of a job on the CPU and on a GPU.

use std::time::Duration;

/// Estimated durations of a job.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// Time on the CPU.
    pub cpu: Duration,
    /// Time on a GPU that has started.
    pub gpu: Duration,
    /// Number of parts of a job that CPU and GPU may share, each computed by one core or by the GPU; 0 for other jobs.
    pub parts: usize,
}

impl Estimate {
    /// An estimate of `cpu` and `gpu` seconds.
    pub fn from_seconds(cpu: f64, gpu: f64) -> Self {
        let [cpu, gpu] =
            [cpu, gpu].map(|s| Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX / 2));
        Self { cpu, gpu, parts: 0 }
    }

    /// The same estimate for a job of `parts` parts that CPU and GPU may share.
    pub fn in_parts(self, parts: usize) -> Self {
        Self { parts, ..self }
    }

    /// Whether the CPU finishes the job before a GPU has started and finished it.
    pub fn prefers_cpu(&self) -> bool {
        self.cpu < START_UP + self.gpu
    }

    /// Twice the number of parts that the GPU computes while one of `cores` cores computes one. Estimates are rough,
    /// hence the factor.
    pub(super) fn parts_per_core(&self, cores: usize) -> usize {
        let ratio = self.cpu.as_secs_f64() / self.gpu.as_secs_f64();
        (2.0 * ratio * cores as f64) as usize
    }
}

/// Minimum time to start a GPU: instance, adapter and device took 0.145 s on an NVIDIA H200.
pub(super) const START_UP: Duration = Duration::from_millis(145);

/// Number of inputs whose sizes are looked up. The others are assumed to be similar.
const SAMPLED_INPUTS: usize = 16;

/// The sum of `amounts`, such as bytes, over all `inputs`, extrapolated from the mean of the first few. Inputs of
/// unknown amounts, such as pipes, count as average ones; if no amounts are known, the sum is 0.
pub fn sum_of_all<T, const N: usize>(
    inputs: impl ExactSizeIterator<Item = T>,
    amounts: impl Fn(T) -> Option<[f64; N]>,
) -> [f64; N] {
    let count = inputs.len();
    let known: Vec<[f64; N]> = inputs.take(SAMPLED_INPUTS).filter_map(amounts).collect();
    let factor = count as f64 / known.len().max(1) as f64;
    std::array::from_fn(|i| known.iter().map(|amounts| amounts[i]).sum::<f64>() * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_has_to_win_more_than_its_start() {
        let start = START_UP.as_secs_f64();
        for (cpu, gpu, prefers_cpu) in [
            (0.0, 0.0, true),
            (start * 0.99, 0.0, true),
            (start * 1.01, 0.0, false),
            (1.0, 1.0 - start * 0.99, true),
            (1.0, 1.0 - start * 1.01, false),
            (1.0, 10.0, true),
            (f64::INFINITY, 10.0, false),
        ] {
            let estimate = Estimate::from_seconds(cpu, gpu);
            assert_eq!(estimate.prefers_cpu(), prefers_cpu, "{cpu} {gpu}");
        }
    }

    #[test]
    fn inputs_of_unknown_size_are_as_large_as_the_others() {
        assert_eq!(sum_of_all([(); 3].into_iter(), |()| None), [0.0]);
        let sizes = [Some([10.0, 1.0]), None, Some([20.0, 1.0])].repeat(5);
        assert_eq!(sum_of_all(sizes.into_iter(), |size| size), [15.0 * 15.0, 15.0]);
    }
}
