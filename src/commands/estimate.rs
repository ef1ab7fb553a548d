//! Estimates of time for arrays, to choose between CPU and GPU before a run starts.

use crate::device::Estimate;

/// Seconds to copy one byte of numbers to a GPU and one byte of results back, with newly allocated host memory.
/// Measured on a host with an NVIDIA H200: 27 GB/s to the GPU, 13 GB/s back.
const BUS: f64 = 0.12e-9;

/// Estimate for `numbers` values of type `T` and as many results. A CPU core takes `cpu` seconds for each byte of
/// input. A GPU takes the time of the two copies, since computing is negligible.
pub fn array_estimate<T>(numbers: u64, cpu: f64) -> Estimate {
    let bytes = numbers as f64 * size_of::<T>() as f64;
    Estimate::from_seconds(bytes * cpu / rayon::current_num_threads() as f64, bytes * BUS)
}
