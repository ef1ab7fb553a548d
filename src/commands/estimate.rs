//! Helpers for the estimates of time by which commands choose between CPU and GPU before a run begins.

use crate::device::Estimate;

/// Seconds to copy one byte of numbers to a GPU and one byte of results back, where the host memory is newly allocated.
/// On a host with an NVIDIA H200: 27 GB/s to the GPU, 13 GB/s back.
const BUS: f64 = 0.12e-9;

/// The estimate for a job of `numbers` values of type `T` and as many results. A CPU core takes `cpu` seconds for each
/// byte of input; the time of a GPU is that of the two copies, since computing takes it next to none.
pub fn of_numbers<T>(numbers: u64, cpu: f64) -> Estimate {
    let bytes = numbers as f64 * size_of::<T>() as f64;
    Estimate::of_seconds(bytes * cpu / rayon::current_num_threads() as f64, bytes * BUS)
}

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
    fn inputs_of_unknown_size_are_as_large_as_the_others() {
        assert_eq!(sum_of_all([(); 3].into_iter(), |()| None), [0.0]);
        let sizes = [Some([10.0, 1.0]), None, Some([20.0, 1.0])].repeat(5);
        assert_eq!(sum_of_all(sizes.into_iter(), |size| size), [15.0 * 15.0, 15.0]);
    }
}
