//! Adapters: the GPUs of this machine, with their properties and limits.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use wgpu::Features;

use super::guard::set_driver_loaded;

/// A GPU, or software in place of one, that can be opened.
#[derive(Clone, Debug)]
pub struct Adapter {
    pub(super) inner: wgpu::Adapter,
    /// Properties that the driver reports.
    pub info: AdapterInfo,
}

/// Properties of a device that its driver reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterInfo {
    /// Name of the device.
    pub name: String,
    /// Kind of hardware, or software.
    pub kind: AdapterKind,
    /// API: `vulkan`, `metal` or `dx12`.
    pub backend: String,
    /// Name and version of the driver.
    pub driver: String,
    /// PCI number of the manufacturer.
    pub vendor: u32,
    /// Minimum and maximum number of invocations of a subgroup.
    pub subgroup_sizes: [u32; 2],
}

/// Kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdapterKind {
    /// A GPU with its own memory.
    Discrete,
    /// A GPU that shares the CPU's memory.
    Integrated,
    /// A part of a GPU, or a remote one.
    Virtual,
    /// Unknown to the driver.
    Other,
    /// The CPU.
    Software,
}

impl fmt::Display for AdapterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Discrete => "discrete",
            Self::Integrated => "integrated",
            Self::Virtual => "virtual",
            Self::Other => "other",
            Self::Software => "software",
        })
    }
}

impl From<wgpu::AdapterInfo> for AdapterInfo {
    fn from(info: wgpu::AdapterInfo) -> Self {
        Self {
            kind: match info.device_type {
                wgpu::DeviceType::DiscreteGpu => AdapterKind::Discrete,
                wgpu::DeviceType::IntegratedGpu => AdapterKind::Integrated,
                wgpu::DeviceType::VirtualGpu => AdapterKind::Virtual,
                wgpu::DeviceType::Other => AdapterKind::Other,
                wgpu::DeviceType::Cpu => AdapterKind::Software,
            },
            backend: info.backend.to_string(),
            driver: format!("{} {}", info.driver, info.driver_info).trim().to_owned(),
            vendor: info.vendor,
            subgroup_sizes: [info.subgroup_min_size, info.subgroup_max_size],
            name: info.name,
        }
    }
}

impl AdapterInfo {
    /// Whether the device is hardware, not software on the CPU.
    pub fn is_hardware(&self) -> bool {
        self.kind != AdapterKind::Software
    }
}

/// Limits of a device. Kernels split their work to fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceLimits {
    /// Bytes of a storage binding.
    pub binding_bytes: u64,
    /// Bytes of a buffer.
    pub buffer_bytes: u64,
    /// Storage buffers of an entry point.
    pub storage_buffers: u32,
    /// Workgroups of a dispatch along each dimension.
    pub workgroups: u32,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
    /// Invocations of a workgroup, all along x.
    pub workgroup_size: u32,
}

impl DeviceLimits {
    /// Workgroups of a dispatch along x and y together.
    pub fn folded_workgroups(&self) -> u64 {
        u64::from(self.workgroups).pow(2)
    }
}

impl From<&wgpu::Limits> for DeviceLimits {
    fn from(limits: &wgpu::Limits) -> Self {
        let invocations = limits.max_compute_invocations_per_workgroup;
        Self {
            binding_bytes: limits.max_storage_buffer_binding_size,
            buffer_bytes: limits.max_buffer_size,
            storage_buffers: limits.max_storage_buffers_per_shader_stage,
            workgroups: limits.max_compute_workgroups_per_dimension,
            workgroup_bytes: limits.max_compute_workgroup_storage_size,
            workgroup_size: invocations.min(limits.max_compute_workgroup_size_x),
        }
    }
}

impl Adapter {
    /// Limits of the adapter.
    pub fn limits(&self) -> DeviceLimits {
        DeviceLimits::from(&self.inner.limits())
    }

    /// Whether the adapter has a feature.
    pub fn has(&self, feature: Features) -> bool {
        self.inner.features().contains(feature)
    }
}

/// All adapters of this machine: discrete GPUs first, software last, otherwise in the order of the drivers. Empty if
/// there is no driver.
pub fn adapters() -> Vec<Adapter> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
    descriptor.flags = wgpu::InstanceFlags::empty();
    set_driver_loaded();
    // A driver that panics counts as no driver.
    let found = catch_unwind(AssertUnwindSafe(|| {
        let instance = wgpu::Instance::new(descriptor);
        pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()))
    }));
    let adapter = |inner: wgpu::Adapter| Adapter { info: inner.get_info().into(), inner };
    let mut adapters: Vec<_> = found.unwrap_or_default().into_iter().map(adapter).collect();
    adapters.sort_by_key(|adapter| adapter.info.kind);
    adapters
}
