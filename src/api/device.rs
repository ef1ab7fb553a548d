//! The device that runs jobs.

use std::{fmt, ops::ControlFlow, sync::Arc};

use crate::{
    device::{self, DeviceChoice, Kernel},
    flow::host::{Advance, Host},
    gpu::{Adapter, AdapterInfo, AdapterKind, adapters},
    util::{
        error::{Error, Kind, Result},
        spill::Workspace,
        timings::Timings,
    },
};

/// The device that runs jobs: a GPU, or the CPU with the same results. Open one and keep it; threads may share it.
///
/// ```
/// let device = gpuproc::Device::cpu();
/// assert_eq!(device.name(), "CPU");
/// ```
pub struct Device {
    inner: device::Device,
    callback: Option<Callback>,
}

type Callback = Box<dyn Fn(f64) -> ControlFlow<()> + Send + Sync>;

/// Properties of a GPU, known before it is opened.
///
/// ```
/// for gpu in gpuproc::Device::list() {
///     println!("{} ({})", gpu.name, gpu.backend);
/// }
/// ```
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
        device.into()
    }

    /// The CPU, with all of its cores.
    pub fn cpu() -> Self {
        device::Device::new(&DeviceChoice::Cpu, Arc::new(Timings::new(false))).into()
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
        Ok(device.into())
    }

    /// The name of the device, such as `NVIDIA H200` or `CPU`. Waits until the device is open.
    pub fn name(&self) -> &str {
        // This cannot fail: `gpu` and `named` have opened their devices, and other devices fall back to the CPU.
        self.inner.context().ok().flatten().map_or("CPU", |context| &context.info.name)
    }

    /// Sets a callback for progress. Operations on this device call it with the fraction of their work that is done, 0 to
    /// 1. If it returns [`ControlFlow::Break`], they stop with [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled).
    ///
    /// [Filters](crate::Filter) and projections then run in up to 32 blocks of rows or slices, with the same results. They
    /// call it before the first block and after each. An analysis of the whole input (Otsu's thresholds, connected
    /// components) and a projection along the slowest axis call it with 0 after each block that they read. Other operations
    /// call it with 0 before each of their kernels, but not while a kernel runs.
    ///
    /// ```
    /// use gpuproc::{Channels, Device, ErrorKind, Image, Median};
    /// use std::ops::ControlFlow;
    ///
    /// # fn main() -> gpuproc::Result<()> {
    /// let device = Device::cpu().on_progress(|share| match share < 0.5 {
    ///     true => ControlFlow::Continue(()),
    ///     false => ControlFlow::Break(()),
    /// });
    /// let image = Image::new(64, 64, Channels::Gray, vec![0u8; 4096])?;
    /// let cancelled = Median::new([1; 3]).run(&device, &image).unwrap_err();
    /// assert_eq!(cancelled.kind(), ErrorKind::Cancelled);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn on_progress(
        self,
        callback: impl Fn(f64) -> ControlFlow<()> + Send + Sync + 'static,
    ) -> Self {
        Self { callback: Some(Box::new(callback)), ..self }
    }

    /// Reports that `share` of a call is done.
    ///
    /// # Errors
    /// [`Kind::Cancelled`] when the callback cancels the call.
    pub(super) fn report(&self, share: f64) -> Result<()> {
        match self.callback.as_ref().map(|callback| callback(share)) {
            Some(ControlFlow::Break(())) => Err(Error::new(Kind::Cancelled, "cancelled")),
            _ => Ok(()),
        }
    }

    pub(super) fn run<K: Kernel>(&self, kernel: &K, input: &K::In) -> Result<K::Out> {
        self.report(0.0)?;
        self.inner.run(kernel, input)
    }
}

impl From<device::Device> for Device {
    fn from(inner: device::Device) -> Self {
        Self { inner, callback: None }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// The progress of a part of a call.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    device: &'a Device,
    start: f64,
    end: f64,
}

impl<'a> Progress<'a> {
    /// The progress of a whole call.
    pub(super) fn new(device: &'a Device) -> Self {
        Self { device, start: 0.0, end: 1.0 }
    }

    /// The progress of the part from `start` to `end`.
    pub(super) fn part(&self, start: f64, end: f64) -> Self {
        let at = |share: f64| self.start + share * (self.end - self.start);
        Self { start: at(start), end: at(end), ..*self }
    }

    /// Reports that `share` of the part is done.
    pub(super) fn report(&self, share: f64) -> Result<()> {
        self.device.report(self.part(share, 1.0).start)
    }

    /// Whether the device has a callback.
    pub(super) fn has_callback(&self) -> bool {
        self.device.callback.is_some()
    }

    /// The device that kernels take.
    pub(super) fn device(&self) -> &'a device::Device {
        &self.device.inner
    }
}

impl Host for Progress<'_> {
    fn device(&self) -> &device::Device {
        &self.device.inner
    }

    fn workspace(&self, _spare: u64) -> Workspace {
        Workspace::UNLIMITED
    }

    fn start<'a>(&'a self, _title: &str, bytes: u64) -> Box<dyn Advance + 'a> {
        Box::new(Share { progress: self, done: 0, of: bytes })
    }
}

/// Reports the share of the bytes that are done.
struct Share<'a> {
    progress: &'a Progress<'a>,
    done: u64,
    of: u64,
}

impl Advance for Share<'_> {
    fn advance(&mut self, bytes: u64) -> Result<()> {
        self.done += bytes;
        self.progress.report(self.done as f64 / self.of.max(1) as f64)
    }
}
