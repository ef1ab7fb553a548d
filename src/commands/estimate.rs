//! What commands share of their estimates, for the choice between CPU and GPU before a run begins.

use crate::device::Estimate;

/// Seconds for a byte of numbers to a GPU and of results back, in memory that is new to the system. On a host with an
/// NVIDIA H200: 27 GB/s there, 13 GB/s back.
const BUS: f64 = 0.12e-9;

/// The estimate for so many `numbers` and as many results, on a GPU that takes next to no time for them; a core takes `cpu`
/// seconds for a byte of the numbers.
pub fn of_numbers<T>(numbers: u64, cpu: f64) -> Estimate {
    let bytes = numbers as f64 * size_of::<T>() as f64;
    Estimate::of_seconds(bytes * cpu / rayon::current_num_threads() as f64, bytes * BUS)
}

/// Inputs that are looked at.
const LOOKED_AT: usize = 16;

/// The `amounts` of all `inputs` together, such as bytes: the others have as much as the first few on average. Where they
/// are not known, as of pipes, an input is not counted; where they are known of none, all count as empty.
pub fn sum_of_all<T, const N: usize>(
    inputs: &[T],
    amounts: impl Fn(&T) -> Option<[f64; N]>,
) -> [f64; N] {
    let known: Vec<[f64; N]> = inputs.iter().take(LOOKED_AT).filter_map(amounts).collect();
    let share = inputs.len() as f64 / known.len().max(1) as f64;
    std::array::from_fn(|i| known.iter().map(|amounts| amounts[i]).sum::<f64>() * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_of_unknown_size_are_as_large_as_the_others() {
        assert_eq!(sum_of_all(&[(); 3], |()| None), [0.0]);
        let sizes = [Some([10.0, 1.0]), None, Some([20.0, 1.0])].repeat(5);
        assert_eq!(sum_of_all(&sizes, |size| *size), [15.0 * 15.0, 15.0]);
    }
}
