//! Where jobs run.

use std::sync::Arc;

use crate::{
    device::{self, DeviceChoice, Kernel},
    error::Result,
    timings::Timings,
};

/// Where jobs run: a GPU, or the CPU with the same results. Threads may share one; open it once and keep it.
#[derive(Debug)]
pub struct Device(device::Device);

impl Device {
    /// A hardware GPU where there is one, else the CPU. The GPU is opened in the background, and what it
    /// fails at is done again by the CPU, with a line to the log.
    pub fn best() -> Self {
        let device = device::Device::new(&DeviceChoice::Auto, Arc::new(Timings::new(false)));
        device.start();
        Self(device)
    }

    /// The CPU, all of its cores.
    pub fn cpu() -> Self {
        Self(device::Device::new(&DeviceChoice::Cpu, Arc::new(Timings::new(false))))
    }

    /// The first GPU, be it software.
    ///
    /// # Errors
    /// [`ErrorKind::NoDevice`](crate::ErrorKind::NoDevice) when there is none,
    /// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu) when it cannot be opened.
    pub fn gpu() -> Result<Self> {
        Self::open(&DeviceChoice::Gpu)
    }

    /// The first GPU whose name contains `name`, in upper or lower case.
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

    /// Its name, such as `NVIDIA H200` or `CPU`. Waits until the device is open.
    pub fn name(&self) -> &str {
        // Only a device that was asked for by name or as a GPU may fail to open, and was opened at once.
        self.0.context().ok().flatten().map_or("CPU", |context| &context.info.name)
    }

    /// What kernels run on.
    pub(super) fn inner(&self) -> &device::Device {
        &self.0
    }

    pub(super) fn run<K: Kernel>(&self, kernel: &K, input: &K::In) -> Result<K::Out> {
        self.0.run(kernel, input)
    }
}
