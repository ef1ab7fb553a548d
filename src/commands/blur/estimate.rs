//! Estimates of the time that blurs take on the CPU and with a GPU, for the choice between them. The constants were
//! measured on a host with 16 cores and an NVIDIA H200, from JPEG files to JPEG files.

use super::flags::{Job, Jobs};
use crate::{
    commands::estimate::sum_of_all,
    device::Estimate,
    io::{Source, Sources, image::sample_bytes},
    kernels::blur::Method,
};

/// On the CPU, seconds of one core per byte of samples, at any radius: reading, decoding, encoding, writing.
const CPU: f64 = 3.4e-9;
/// On the CPU, seconds of one core per byte of samples and pixel of the radius.
const CPU_RADIUS: f64 = 0.08e-9;
/// On the CPU, how many times as long a blur in linear light takes.
const LINEAR: f64 = 4.0;
/// With a GPU, seconds of one core per byte of samples.
const GPU: f64 = 1.3e-9;
/// With a GPU, seconds per file: transfers and passes of several files do not overlap.
const GPU_FILE: f64 = 0.65e-3;

/// The quantities on which the time of blurs depends.
#[derive(Clone, Copy, Debug)]
struct Amount {
    files: usize,
    /// Bytes of the samples of all files.
    bytes: f64,
    /// The largest radius of a Gaussian; 0 for boxes, whose time does not depend on the radius.
    radius: usize,
    linear: bool,
}

/// The estimate for `sources`, all of which get the blur of the first one.
pub fn of_files(sources: &Sources, jobs: &Jobs) -> Estimate {
    let job = |source| jobs.of(source).ok();
    let Some(Job { blur, .. }) = sources.iter().next().and_then(job) else {
        return Estimate::of_seconds(0.0, 0.0);
    };
    let bytes = |job: Job| match job.volume {
        Some(_) => job.source.size().ok().flatten(),
        None => sample_bytes(&job.source),
    };
    let radius = match blur.method {
        Method::Gaussian => blur.axes.iter().map(|axis| axis.radius).max().unwrap_or(0),
        Method::Box => 0,
    };
    let [bytes] = sum_of_all(sources.iter(), |source| Some([bytes(job(source)?)? as f64]));
    let amount = Amount { files: sources.len(), bytes, radius, linear: blur.linear };
    let is_jpeg = |source: Source| matches!(source.extension().as_str(), "jpg" | "jpeg");
    let estimate = amount.estimate(rayon::current_num_threads());
    let is_shared = !blur.linear && sources.iter().all(is_jpeg);
    estimate.in_parts(if is_shared { sources.len() } else { 0 })
}

impl Amount {
    fn estimate(self, cores: usize) -> Estimate {
        let Self { files, bytes, radius, linear } = self;
        let (files, cores) = (files as f64, cores as f64);
        let cpu = (CPU + CPU_RADIUS * radius as f64) * if linear { LINEAR } else { 1.0 };
        Estimate::of_seconds(bytes * cpu / cores, files * GPU_FILE + bytes * GPU / cores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The comments state the measured seconds of whole runs on the host above: CPU, GPU.
    #[test]
    fn the_faster_device_is_chosen_for_measured_jobs() {
        let photo = 5312 * 2988 * 3;
        for (files, bytes, radius, prefers_cpu) in [
            // 16 MP at sigma 8. 1.03, 0.58.
            (64, photo, 24, false),
            // 0.17, 0.38.
            (8, photo, 24, true),
            // 683 x 384 at sigma 2. 0.34, 0.88.
            (1280, 683 * 384 * 3, 6, true),
            // One of 16 MP at sigma 8 and 60. 0.10, 0.34; 0.18, 0.33.
            (1, photo, 24, true),
            (1, photo, 180, true),
            // A volume. 0.15, 0.35.
            (1, 256 * 256 * 1024, 6, true),
        ] {
            let bytes = (bytes * files) as f64;
            let amount = Amount { files, bytes, radius, linear: false };
            assert_eq!(amount.estimate(16).prefers_cpu(), prefers_cpu, "{amount:?}");
        }
    }

    #[test]
    fn inputs_of_unknown_size_count_as_small() {
        let amount = Amount { files: 1, bytes: 0.0, radius: 500, linear: true };
        assert!(amount.estimate(1).prefers_cpu());
    }
}
