//! The device that runs jobs.

use std::sync::Arc;

use crate::{
    device::{self, DeviceChoice, Kernel},
    gpu::{Adapter, AdapterInfo, AdapterKind, adapters},
    util::{error::Result, timings::Timings},
};

/// The device that runs jobs: a GPU, or the CPU with the same results. Open one and keep it; threads may share it.
#[derive(Debug)]
pub struct Device(device::Device);

/// Properties of a GPU, known before it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The name, such as `NVIDIA H200`.
    pub name: String,
    /// The interface: `vulkan`, `metal` or `dx12`.
    pub backend: String,
    /// Whether the device is a driver that computes on the CPU.
    pub is_software: bool,
}

impl Device {
    /// The GPUs of this machine, hardware first.
    pub fn list() -> Vec<DeviceInfo> {
        let info = |adapter: Adapter| {
            let AdapterInfo { name, backend, kind, .. } = adapter.info;
            DeviceInfo { name, backend, is_software: kind == AdapterKind::Software }
        };
        adapters().into_iter().map(info).collect()
    }

    /// A hardware GPU if there is one, else the CPU. The GPU is opened in the background. A job that fails on the GPU
    /// runs again on the CPU, with a warning to the log.
    pub fn best() -> Self {
        let device = device::Device::new(&DeviceChoice::Auto, Arc::new(Timings::new(false)));
        device.start();
        Self(device)
    }

    /// The CPU, with all of its cores.
    pub fn cpu() -> Self {
        Self(device::Device::new(&DeviceChoice::Cpu, Arc::new(Timings::new(false))))
    }

    /// The first GPU, even if it is software.
    ///
    /// # Errors
    /// [`ErrorKind::NoDevice`](crate::ErrorKind::NoDevice) when there is no such device,
    /// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu) when it cannot be opened.
    pub fn gpu() -> Result<Self> {
        Self::open(&DeviceChoice::Gpu)
    }

    /// The first GPU whose name contains `name`, ignoring case.
    ///
    /// # Errors
    /// As [`Device::gpu`].
    pub fn named(name: &str) -> Result<Self> {
        Self::open(&DeviceChoice::Name(name.to_ascii_lowercase()))
    }

    fn open(choice: &DeviceChoice) -> Result<Self> {
        let device = device::Device::new(choice, Arc::new(Timings::new(false)));
        device.context()?;
        Ok(Self(device))
    }

    /// The name of the device, such as `NVIDIA H200` or `CPU`. Waits until the device is open.
    pub fn name(&self) -> &str {
        // This cannot fail: `gpu` and `named` have opened their devices, and other devices fall back to the CPU.
        self.0.context().ok().flatten().map_or("CPU", |context| &context.info.name)
    }

    /// The device that kernels take.
    pub(super) fn inner(&self) -> &device::Device {
        &self.0
    }

    pub(super) fn run<K: Kernel>(&self, kernel: &K, input: &K::In) -> Result<K::Out> {
        self.0.run(kernel, input)
    }
}
