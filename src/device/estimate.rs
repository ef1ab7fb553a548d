//! How long a job takes on either device, and which of them that speaks for.

use std::time::Duration;

/// About how long a job will take.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// On the CPU.
    pub cpu: Duration,
    /// On a GPU that has started.
    pub gpu: Duration,
    /// Into how many parts the job splits where both devices may share it, each done by one core or by the GPU; else 0.
    pub parts: usize,
}

impl Estimate {
    /// An estimate of `cpu` and `gpu` seconds.
    pub fn of_seconds(cpu: f64, gpu: f64) -> Self {
        let [cpu, gpu] =
            [cpu, gpu].map(|s| Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX / 2));
        Self { cpu, gpu, parts: 0 }
    }

    /// The same for a job of `parts` parts that both devices may share.
    pub fn in_parts(self, parts: usize) -> Self {
        Self { parts, ..self }
    }

    /// Whether the CPU twins finish the job before a GPU has started and finished it.
    pub fn prefers_cpu(&self) -> bool {
        self.cpu < START_UP + self.gpu
    }

    /// Parts that the GPU does in the time in which one of `cores` does one part, twice: estimates are rough.
    pub(super) fn parts_a_core(&self, cores: usize) -> usize {
        let ratio = self.cpu.as_secs_f64() / self.gpu.as_secs_f64();
        (2.0 * ratio * cores as f64) as usize
    }
}

/// The least time that starting a GPU takes: instance, adapter and device took 0.145 s on an NVIDIA H200.
pub(super) const START_UP: Duration = Duration::from_millis(145);

/// Inputs whose sizes are looked up; further inputs are assumed to be like these.
const LOOKED_AT: usize = 16;

/// The sum of `amounts`, such as bytes, over all `inputs`, extrapolated from the mean of the first few. Inputs of
/// unknown amounts, such as pipes, do not enter the mean; where no amounts are known, the sum is 0.
pub fn sum_of_all<T, const N: usize>(
    inputs: impl ExactSizeIterator<Item = T>,
    amounts: impl Fn(T) -> Option<[f64; N]>,
) -> [f64; N] {
    let count = inputs.len();
    let known: Vec<[f64; N]> = inputs.take(LOOKED_AT).filter_map(amounts).collect();
    let share = count as f64 / known.len().max(1) as f64;
    std::array::from_fn(|i| known.iter().map(|amounts| amounts[i]).sum::<f64>() * share)
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
            let estimate = Estimate::of_seconds(cpu, gpu);
            assert_eq!(estimate.prefers_cpu(), prefers_cpu, "{cpu} {gpu}");
        }
    }

    #[test]
    fn few_parts_are_not_shared() {
        // A core takes 16 times as long for one as the GPU, doubled to be safe.
        let estimate = Estimate::of_seconds(2.0, 0.5);
        assert_eq!(estimate.parts_a_core(4), 32);
        assert_eq!(Estimate::of_seconds(1.0, 0.0).parts_a_core(4), usize::MAX);
    }

    #[test]
    fn inputs_of_unknown_size_are_as_large_as_the_others() {
        assert_eq!(sum_of_all([(); 3].into_iter(), |()| None), [0.0]);
        let sizes = [Some([10.0, 1.0]), None, Some([20.0, 1.0])].repeat(5);
        assert_eq!(sum_of_all(sizes.into_iter(), |size| size), [15.0 * 15.0, 15.0]);
    }
}
