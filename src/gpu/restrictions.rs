//! Restrictions of an opened device, with which tests turn any device into a small, a plain or a failing one.

use std::time::Duration;

use wgpu::Features;

use super::Fault;

/// Restrictions of a device that is opened.
#[derive(Clone, Debug, Default)]
pub struct Restrictions {
    /// Limits no better than these.
    pub baseline: Option<Baseline>,
    /// Maximum number of bytes of a storage binding.
    pub binding_bytes: Option<u64>,
    /// Maximum number of workgroups along a dimension.
    pub workgroups: Option<u32>,
    /// Maximum number of bytes of workgroup memory.
    pub workgroup_bytes: Option<u32>,
    /// Features that are not used.
    pub without: Features,
    /// Whether all shaders run with bounds and loop checks, including [unchecked](super::Shader::unchecked) ones.
    pub checked: bool,
    /// Whether the device is treated as hardware with forward progress, so that the routes for such hardware are tested
    /// on software devices. These abort long waiting loops, so inputs must be small.
    pub as_hardware: bool,
    /// Whether new storage buffers are filled with noise, so that no shader can rely on zeros.
    pub poison: bool,
    /// Longest wait for the device, instead of [`driver_timeout`](super::driver_timeout).
    pub timeout: Option<Duration>,
    /// A fault, and the number of the occasion at which it occurs, counted from 0.
    pub fault: Option<(Fault, u64)>,
}

/// Limits that a standard guarantees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// The limits of every WebGPU device.
    WebGpu,
    /// Limits below WebGPU: four storage buffers per shader, less than 16 KiB of workgroup memory, 256 invocations per
    /// workgroup, bindings of 128 MiB.
    Downlevel,
}

impl Restrictions {
    /// Restricts `limits`.
    pub(super) fn apply_to(&self, mut limits: wgpu::Limits) -> wgpu::Limits {
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

    /// The optional features that shaders and timings use.
    pub(super) fn features(&self) -> Features {
        let subgroups = Features::SUBGROUP | Features::SUBGROUP_BARRIER;
        let numbers = Features::SHADER_F64 | Features::SHADER_INT64;
        (subgroups | numbers | Features::TIMESTAMP_QUERY) - self.without
    }
}
