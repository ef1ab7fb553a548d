//! Restrictions of an opened device, so that tests can make any device a small, a plain or a failing one.

use std::time::Duration;

use wgpu::Features;

use super::Fault;

/// Restrictions of a device that is opened.
#[derive(Clone, Debug, Default)]
pub struct Restrictions {
    /// Limits no better than these.
    pub baseline: Option<Baseline>,
    /// At most this many bytes a storage binding.
    pub binding_bytes: Option<u64>,
    /// At most this many workgroups a dimension.
    pub workgroups: Option<u32>,
    /// At most this many bytes of workgroup memory.
    pub workgroup_bytes: Option<u32>,
    /// Features to be left unused.
    pub without: Features,
    /// Whether all shaders run with bounds and loop checks, also those with an argument against them.
    pub checked: bool,
    /// Whether the device is treated as hardware whose workgroups make progress, so that the routes for such hardware
    /// are tested on software devices. These end loops that wait for long, so inputs must be small.
    pub as_hardware: bool,
    /// Whether new storage buffers are filled with noise, so that nothing can rely on zeros.
    pub poison: bool,
    /// Longest wait for the device, instead of [`driver_timeout`](super::driver_timeout).
    pub timeout: Option<Duration>,
    /// What fails, and at which of its occurrences, counted from 0.
    pub fault: Option<(Fault, u64)>,
}

/// Limits that a standard guarantees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// Every WebGPU device.
    WebGpu,
    /// Devices below WebGPU: four storage buffers a shader, less than 16 KiB of workgroup memory, 256
    /// invocations a workgroup, bindings of 128 MiB.
    Downlevel,
}

impl Restrictions {
    /// `limits`, restricted.
    pub(super) fn restrict(&self, mut limits: wgpu::Limits) -> wgpu::Limits {
        match self.baseline {
            None => {}
            Some(Baseline::WebGpu) => {
                limits = limits.or_worse_values_from(&wgpu::Limits::defaults());
            }
            Some(Baseline::Downlevel) => {
                limits = limits.or_worse_values_from(&wgpu::Limits::downlevel_defaults());
            }
        }
        if let Some(bytes) = self.binding_bytes {
            limits.max_storage_buffer_binding_size = bytes;
        }
        if let Some(count) = self.workgroups {
            limits.max_compute_workgroups_per_dimension = count;
        }
        if let Some(bytes) = self.workgroup_bytes {
            limits.max_compute_workgroup_storage_size = bytes;
        }
        limits
    }

    /// What shaders and timings use beyond WebGPU's core, but for the features to be left unused.
    pub(super) fn features(&self) -> Features {
        let subgroups = Features::SUBGROUP | Features::SUBGROUP_BARRIER;
        let numbers = Features::SHADER_F64 | Features::SHADER_INT64;
        (subgroups | numbers | Features::TIMESTAMP_QUERY) - self.without
    }
}
