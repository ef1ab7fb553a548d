//! Estimates the time for histograms on the CPU and with a GPU. The constants were measured on a host with 16 cores and
//! an NVIDIA H200, with photographs of 16 MP.

use super::job::Settings;
use crate::{
    device::{Estimate, sum_of_all},
    io::{
        Sources,
        image::{has_jpeg_name, sample_bytes},
    },
};

/// Seconds of one core per byte of samples to read, decode and count them on the CPU.
const CPU: f64 = 2.7e-9;
/// Seconds of one core per byte of samples of a JPEG, if a GPU converts coefficients to pixels and counts them.
const GPU: f64 = 0.9e-9;

/// The estimate for `inputs`.
pub fn for_inputs(inputs: &Sources, settings: &Settings) -> Estimate {
    let bytes = |input| sample_bytes(&input).map(|bytes| [bytes as f64]);
    let [bytes] = sum_of_all(inputs.iter(), bytes);
    let from_coefficients =
        settings.needs_only_counts() && inputs.iter().all(|input| has_jpeg_name(&input));
    let estimate = estimate(bytes, from_coefficients, rayon::current_num_threads());
    estimate.in_parts(if from_coefficients { inputs.len() } else { 0 })
}

/// The estimate for `bytes` of samples. A GPU is faster only if it decodes the pixels from JPEG coefficients: the host
/// can count pixels in the time in which it copies them to a GPU.
fn estimate(bytes: f64, from_coefficients: bool, cores: usize) -> Estimate {
    let [cpu, gpu] = [CPU, if from_coefficients { GPU } else { CPU }];
    Estimate::from_seconds(bytes * cpu / cores as f64, bytes * gpu / cores as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The comments state the measured seconds of whole runs on the host above: CPU, GPU.
    #[test]
    fn the_faster_device_is_chosen_for_measured_jobs() {
        let photo = 5312.0 * 2988.0 * 3.0;
        for (files, from_coefficients, prefers_cpu) in [
            // 0.05, 0.24.
            (1.0, true, true),
            // 0.09, 0.27.
            (8.0, true, true),
            // 0.49, 0.41; with statistics 1.21, 1.15.
            (64.0, true, false),
            (64.0, false, true),
            // 2.20, 0.90.
            (256.0, true, false),
        ] {
            let estimate = estimate(files * photo, from_coefficients, 16);
            assert_eq!(estimate.prefers_cpu(), prefers_cpu, "{files} {from_coefficients}");
        }
    }
}
