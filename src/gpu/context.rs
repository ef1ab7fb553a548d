//! Adapters, and the open device that kernels run on.

use std::{
    any::Any,
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{Pipeline, Shader};
use crate::{
    error::{Error, Result},
    timings::Timings,
};

/// A GPU, or a software stand-in for one, that could be opened.
#[derive(Clone, Debug)]
pub struct Adapter {
    inner: wgpu::Adapter,
    /// Name, kind, backend and driver, as the driver states them.
    pub info: wgpu::AdapterInfo,
}

impl Adapter {
    /// Whether this is hardware, not a program that plays a GPU.
    pub fn is_hardware(&self) -> bool {
        self.info.device_type != wgpu::DeviceType::Cpu
    }

    /// What kind of device it is, in one word.
    pub fn kind(&self) -> &'static str {
        match self.info.device_type {
            wgpu::DeviceType::DiscreteGpu => "discrete",
            wgpu::DeviceType::IntegratedGpu => "integrated",
            wgpu::DeviceType::VirtualGpu => "virtual",
            wgpu::DeviceType::Cpu => "software",
            wgpu::DeviceType::Other => "other",
        }
    }

    /// What the adapter can do at most.
    pub fn limits(&self) -> wgpu::Limits {
        self.inner.limits()
    }

    /// Whether passes can be timed on the device's own clock.
    pub fn has_timestamps(&self) -> bool {
        self.inner.features().contains(wgpu::Features::TIMESTAMP_QUERY)
    }
}

/// All adapters of this machine, discrete GPUs first, software last, otherwise as the drivers list
/// them. Empty where there is no driver at all.
pub fn adapters() -> Vec<Adapter> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
    descriptor.flags = wgpu::InstanceFlags::empty();
    // A broken driver must cost the GPU, not the process.
    let found = catch_unwind(AssertUnwindSafe(|| {
        let instance = wgpu::Instance::new(descriptor);
        pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()))
    }));
    let mut adapters: Vec<_> = found
        .unwrap_or_default()
        .into_iter()
        .map(|inner| Adapter { info: inner.get_info(), inner })
        .collect();
    adapters.sort_by_key(|adapter| match adapter.info.device_type {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    });
    adapters
}

/// Caps below an adapter's own limits, so that tests can make any device a small one.
#[derive(Clone, Debug, Default)]
pub struct Caps {
    /// Nothing better than these.
    pub limits: Option<wgpu::Limits>,
    /// At most this many bytes a storage binding.
    pub binding_bytes: Option<u64>,
    /// At most this many workgroups a dimension.
    pub workgroups: Option<u32>,
    /// At most this many bytes of workgroup memory.
    pub workgroup_bytes: Option<u32>,
    /// Do as if the device had no optional feature (subgroups, timestamps, 64-bit integers).
    pub no_features: bool,
    /// Do as if the device had no subgroups.
    pub no_subgroups: bool,
    /// Do as if the device had no timestamps.
    pub no_timestamps: bool,
    /// Run every shader with bounds and loop checks, also those that have an argument against them.
    pub checked: bool,
    /// Fill fresh storage buffers with noise, so that nothing can rely on zeros.
    pub poison: bool,
    /// How long one wait may last, instead of a minute.
    pub patience: Option<Duration>,
    /// Go wrong at this step, for the n-th time that it is taken, counted from 0.
    pub fault: Option<(Fault, u64)>,
}

/// What can be made to go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An allocation finds no memory.
    Allocate,
    /// A submission is refused.
    Submit,
    /// A buffer cannot be mapped.
    Map,
    /// The device is lost just after a submission.
    Lose,
    /// A submission breaks a rule of the API inside an error scope.
    Invalid,
    /// A submission breaks a rule where no scope sees it.
    Uncaught,
    /// The device never ends its work.
    Hang,
    /// The driver panics at a submission.
    Panic,
}

/// An open device with its queue, its limits, and the pipelines made so far.
#[derive(Debug)]
pub struct Context {
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    /// What the device allows; every kernel splits its work to fit.
    pub limits: wgpu::Limits,
    /// The optional features that were switched on.
    pub features: wgpu::Features,
    /// Which adapter this is.
    pub info: wgpu::AdapterInfo,
    pub(super) timings: Arc<Timings>,
    pub(super) poison: bool,
    pub(super) checked: bool,
    pub(super) patience: Duration,
    fault: Option<(Fault, u64)>,
    steps: AtomicU64,
    pub(super) faults: Arc<Mutex<Option<String>>>,
    pipelines: Mutex<HashMap<String, Arc<Pipeline>>>,
}

/// How long one wait for the GPU may last before the device counts as hung.
const PATIENCE: Duration = Duration::from_secs(60);

static HUNG: AtomicBool = AtomicBool::new(false);

/// Whether some device has not answered in time. To close it, or to end the process in an orderly way,
/// could last for ever, too.
pub fn any_hung() -> bool {
    HUNG.load(Ordering::Relaxed)
}

impl Context {
    /// Opens `adapter` with its full limits, less `caps`.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the driver refuses.
    pub fn open(adapter: &Adapter, caps: &Caps, timings: Arc<Timings>) -> Result<Self> {
        let mut limits = adapter.limits();
        if let Some(caps) = &caps.limits {
            limits = limits.or_worse_values_from(caps);
        }
        if let Some(bytes) = caps.binding_bytes {
            limits.max_storage_buffer_binding_size = bytes;
        }
        if let Some(count) = caps.workgroups {
            limits.max_compute_workgroups_per_dimension = count;
        }
        if let Some(bytes) = caps.workgroup_bytes {
            limits.max_compute_workgroup_storage_size = bytes;
        }
        let mut unwanted = wgpu::Features::empty();
        unwanted.set(wgpu::Features::SUBGROUP, caps.no_subgroups);
        unwanted.set(wgpu::Features::TIMESTAMP_QUERY, caps.no_timestamps);
        let wanted = wgpu::Features::TIMESTAMP_QUERY
            | wgpu::Features::SUBGROUP
            | wgpu::Features::SHADER_F64
            | wgpu::Features::SHADER_INT64
            | wgpu::Features::SHADER_INT64_ATOMIC_ALL_OPS;
        let features = match caps.no_features {
            true => wgpu::Features::empty(),
            false => adapter.inner.features() & (wanted - unwanted),
        };
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("gpuproc"),
            required_features: features,
            required_limits: limits.clone(),
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            ..Default::default()
        };
        let refused =
            |cause: String| Error::gpu(format_args!("cannot open {}: {cause}", adapter.info.name));
        let (device, queue) = catch_unwind(AssertUnwindSafe(|| {
            pollster::block_on(adapter.inner.request_device(&descriptor))
        }))
        .map_err(|panic| refused(panic_text(panic)))?
        .map_err(|error| refused(error.to_string()))?;
        let faults = Arc::new(Mutex::new(None));
        let note = |faults: &Arc<Mutex<Option<String>>>, text: String| {
            faults.lock().expect("no holder of this lock panics").get_or_insert(text);
        };
        let seen = faults.clone();
        device.on_uncaptured_error(Arc::new(move |error| note(&seen, error.to_string())));
        let seen = faults.clone();
        device.set_device_lost_callback(move |reason, text| {
            note(&seen, format!("device lost ({reason:?}): {text}"));
        });
        Ok(Self {
            device,
            queue,
            limits,
            features,
            info: adapter.info.clone(),
            timings,
            poison: caps.poison,
            checked: caps.checked,
            patience: caps.patience.unwrap_or(PATIENCE),
            fault: caps.fault,
            steps: AtomicU64::new(0),
            faults,
            pipelines: Mutex::default(),
        })
    }

    /// Whether shaders may use subgroup operations.
    pub fn has_subgroups(&self) -> bool {
        self.features.contains(wgpu::Features::SUBGROUP)
    }

    /// Whether this is hardware, not a program that plays a GPU.
    pub fn is_hardware(&self) -> bool {
        self.info.device_type != wgpu::DeviceType::Cpu
    }

    /// The recorder of upload, pass and readback times.
    pub fn timings(&self) -> &Timings {
        &self.timings
    }

    /// The largest storage binding in bytes, a multiple of 4.
    pub fn max_binding(&self) -> u64 {
        self.limits.max_storage_buffer_binding_size.min(self.limits.max_buffer_size) & !3
    }

    /// The pipeline for entry point `entry` of `shader`, made at the first call and kept.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the driver refuses the shader, or it needs more buffers
    /// than the device grants.
    pub fn pipeline(&self, shader: &Shader, entry: &str) -> Result<Arc<Pipeline>> {
        let key = format!("{}:{entry}", shader.key());
        if let Some(pipeline) = self.pipelines().get(&key) {
            return Ok(pipeline.clone());
        }
        let granted = self.limits.max_storage_buffers_per_shader_stage;
        let needed = shader.storage_buffers(entry);
        if needed > granted {
            return Err(Error::gpu(format_args!(
                "{} grants {granted} storage buffers a shader, but {}.{entry} takes {needed}",
                self.info.name,
                shader.name()
            )));
        }
        let pipeline =
            Arc::new(self.guarded(|| {
                self.timings.time("pipelines", || Pipeline::new(self, shader, entry))
            })?);
        self.pipelines().insert(key, pipeline.clone());
        Ok(pipeline)
    }

    fn pipelines(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Pipeline>>> {
        self.pipelines.lock().expect("no holder of this lock panics")
    }

    /// Runs `work`, which calls wgpu, and turns whatever goes wrong there into an error: validation
    /// and memory errors, a lost device, a panic.
    pub(super) fn guarded<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        let validation = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let memory = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let internal = self.device.push_error_scope(wgpu::ErrorFilter::Internal);
        let result = catch_unwind(AssertUnwindSafe(work));
        let scopes = [internal, memory, validation].map(|scope| pollster::block_on(scope.pop()));
        let value = result.map_err(|panic| Error::gpu(panic_text(panic)))?;
        match scopes.into_iter().flatten().next() {
            Some(wgpu::Error::OutOfMemory { .. }) => {
                Err(Error::gpu(format_args!("{} is out of memory", self.info.name)))
            }
            Some(error) => Err(Error::gpu(error)),
            None => Ok(value),
        }
    }

    /// Goes wrong here when [`Caps::fault`] says so.
    pub(super) fn step(&self, step: Fault) -> Result<()> {
        let due = self.fault.is_some_and(|(fault, at)| {
            fault == step && self.steps.fetch_add(1, Ordering::Relaxed) == at
        });
        if !due {
            return Ok(());
        }
        match step {
            Fault::Lose => self.device.destroy(),
            Fault::Invalid => self.guarded(|| self.break_a_rule())?,
            Fault::Uncaught => self.break_a_rule(),
            Fault::Panic => self.guarded(|| panic!("planted fault: Panic"))?,
            _ => return Err(Error::gpu(format_args!("planted fault: {step:?}"))),
        }
        Ok(())
    }

    /// Asks for a buffer that no API allows.
    fn break_a_rule(&self) {
        let _ = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("planted"),
            size: 4,
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::MAP_WRITE,
            mapped_at_creation: false,
        });
    }

    /// Whether the device was lost, hangs, or is in a state that nothing is known of.
    pub fn is_lost(&self) -> bool {
        self.check().is_err()
    }

    /// An error when the device was lost or an error reached no scope.
    pub(super) fn check(&self) -> Result<()> {
        match &*self.faults.lock().expect("no holder of this lock panics") {
            Some(fault) => Err(Error::gpu(fault)),
            None => Ok(()),
        }
    }

    /// Waits until everything submitted so far is done.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device is lost or does not answer in a minute.
    pub fn wait(&self) -> Result<()> {
        self.wait_for(None)
    }

    /// Waits until `submission` is done, or everything when there is none.
    pub(super) fn wait_for(&self, submission_index: Option<wgpu::SubmissionIndex>) -> Result<()> {
        let poll = wgpu::PollType::Wait { submission_index, timeout: Some(self.patience) };
        // wgpu panics when the device is lost during the wait.
        let polled = catch_unwind(AssertUnwindSafe(|| self.device.poll(poll)))
            .map_err(|panic| Error::gpu(panic_text(panic)))?
            .map_err(|error| error.to_string());
        let planted = self.step(Fault::Hang).map_err(|error| error.to_string());
        if polled.is_err() {
            HUNG.store(true, Ordering::Relaxed);
        }
        if let Err(cause) = planted.and(polled.map(drop)) {
            let what = format!("{} does not answer", self.info.name);
            // Whatever comes from it now, nobody waits for it any more.
            self.faults.lock().expect("no holder of this lock panics").get_or_insert(what.clone());
            return Err(Error::gpu(format_args!("{what}: {cause}")));
        }
        self.check()
    }
}

/// What a caught panic said.
pub(crate) fn panic_text(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("driver panic").to_owned()
}
