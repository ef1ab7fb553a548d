//! Estimates of the time of meshing on the CPU and with a GPU, for the choice between them. The constants were measured
//! on a host with 16 cores and an NVIDIA H100, from files in memory to PLY files in memory.

use super::{job::MeshJob, preview::Preview};
use crate::{device::Estimate, io::volume::VolumeFile};

/// Seconds per sample on one core, for a CT where the surface crosses 2.5 % of the cells.
const PER_SAMPLE: f64 = 3e-9;
/// Seconds to read one byte of a volume while slabs are meshed on either device: 0.59 s for 1 GiB.
const PER_BYTE: f64 = 0.5e-9;

/// The estimate for `job`, whose volume is `file`.
pub(super) fn for_job(job: &MeshJob, file: &VolumeFile) -> Estimate {
    let [cpu, gpu] = seconds(job, file);
    Estimate::from_seconds(cpu, gpu)
}

/// Seconds on the CPU and on a GPU that is already open.
pub(super) fn seconds(job: &MeshJob, file: &VolumeFile) -> [f64; 2] {
    let samples = file.dims.iter().map(|&n| n as f64).product::<f64>();
    let preview = job.preview.as_ref().map_or(0.0, Preview::core_seconds);
    let each = match job.labels {
        Some(_) => label_seconds(job.smooth) * samples,
        None => PER_SAMPLE * samples + preview,
    };
    let work = each * job.isovalues.len().max(1) as f64;
    let bytes = samples * file.dtype.size() as f64;
    device_seconds(work, bytes, rayon::current_num_threads())
}

/// Estimated seconds per sample on one core, with `steps` smoothing steps.
fn label_seconds(steps: u32) -> f64 {
    /// Meshing, per sample.
    const PER_SAMPLE: f64 = 8e-9;
    /// One smoothing step, per sample of the volume. Only vertices, where labels meet, are smoothed.
    const PER_STEP: f64 = 6e-10;
    PER_SAMPLE + PER_STEP * f64::from(steps)
}

/// Seconds on the CPU and on a GPU, for `work` seconds of one core and `bytes` to read. Reading overlaps with the work,
/// which takes a negligible time on a GPU.
fn device_seconds(work: f64, bytes: f64, cores: usize) -> [f64; 2] {
    let read = PER_BYTE * bytes;
    [read.max(work / cores as f64), read]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The comments state the measured seconds of whole runs on the host above: CPU, GPU.
    #[test]
    fn the_faster_device_is_chosen_for_measured_jobs() {
        for (samples, cores, prefers_cpu) in [
            // 0.17, 0.40.
            (512u64.pow(3), 16, true),
            // 0.59, 0.89.
            (1024u64.pow(3), 16, true),
            // 1.89, 2.27.
            (1536u64.pow(3), 16, true),
            // With two threads.
            (1024u64.pow(3), 2, false),
        ] {
            let samples = samples as f64;
            let [cpu, gpu] = device_seconds(samples * PER_SAMPLE, samples, cores);
            let estimate = Estimate::from_seconds(cpu, gpu);
            assert_eq!(estimate.prefers_cpu(), prefers_cpu, "{samples} on {cores}");
        }
    }
}
