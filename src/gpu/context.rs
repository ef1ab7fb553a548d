//! The open device that kernels run on.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, OnceLock},
};

use wgpu::Features;

use super::{
    Adapter, AdapterInfo, DeviceLimits, MultiplyAdd, Pipeline, Restrictions, Shader,
    adapter::AdapterKind,
    fault::InjectedFault,
    guard::{Driver, panic_text},
    once_cache::OnceCache,
    pipeline::module,
    pool::Pool,
    staging::UploadStaging,
    watch::driver_timeout,
};
use crate::util::{
    error::{Error, Result},
    parallel::Parallel,
    timings::Timings,
};

/// An open device with its queue, its limits, and the pipelines created so far.
#[derive(Debug)]
pub struct Context {
    pub(super) driver: Driver,
    /// The limits of the device. Every kernel splits its work to fit.
    pub limits: DeviceLimits,
    /// The adapter.
    pub info: AdapterInfo,
    pub(super) uniform_alignment: usize,
    features: Features,
    pub(super) timings: Arc<Timings>,
    pub(super) poison: bool,
    checked: bool,
    as_hardware: bool,
    modules: OnceCache<wgpu::ShaderModule>,
    pipelines: OnceCache<Arc<Pipeline>>,
    pub(super) multiply_add: OnceLock<MultiplyAdd>,
    /// Storage buffers that no [`Buffer`](super::Buffer) uses now.
    pub(super) storage: Pool,
    /// Staging buffers that no readback uses now.
    pub(super) readbacks: Pool,
    pub(super) uploads: UploadStaging,
}

/// Maximum number of bytes of unused storage buffers that a device keeps. Only a discrete GPU has its own memory;
/// storage buffers of other devices are host memory, whose use `--max-memory` limits.
fn max_unused_storage(kind: AdapterKind) -> u64 {
    match kind {
        AdapterKind::Discrete => 4 << 30,
        _ => 256 << 20,
    }
}

impl Context {
    /// Opens `adapter` with its full limits, less the restrictions.
    pub fn open(
        adapter: &Adapter,
        restrictions: &Restrictions,
        timings: Arc<Timings>,
    ) -> Result<Self> {
        let limits = restrictions.apply_to(adapter.inner.limits());
        let features = adapter.inner.features() & restrictions.features();
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("gpuproc"),
            required_features: features,
            required_limits: limits.clone(),
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            ..Default::default()
        };
        let refused =
            |cause: String| Error::gpu(format_args!("cannot open {}: {cause}", adapter.info.name));
        let opened = catch_unwind(AssertUnwindSafe(|| {
            pollster::block_on(adapter.inner.request_device(&descriptor))
        }))
        .map_err(|panic| refused(panic_text(panic)))?
        .map_err(|error| refused(error.to_string()))?;
        Ok(Self {
            driver: Driver::new(
                adapter.info.name.clone(),
                opened,
                restrictions.timeout.unwrap_or(match adapter.info.is_hardware() {
                    true => driver_timeout(),
                    // Software takes longer, and its threads may have to share their cores.
                    false => 2 * driver_timeout(),
                }),
                InjectedFault::new(restrictions.fault),
            ),
            limits: DeviceLimits::from(&limits),
            info: adapter.info.clone(),
            uniform_alignment: limits.min_uniform_buffer_offset_alignment as usize,
            features,
            timings,
            poison: restrictions.poison,
            checked: restrictions.checked,
            as_hardware: restrictions.as_hardware,
            modules: OnceCache::default(),
            pipelines: OnceCache::default(),
            multiply_add: OnceLock::new(),
            storage: Pool::new(max_unused_storage(adapter.info.kind)),
            readbacks: Pool::new(256 << 20),
            uploads: UploadStaging::default(),
        })
    }

    /// Whether the device has a feature that it may use.
    pub fn has(&self, feature: Features) -> bool {
        self.features.contains(feature)
    }

    /// Whether this is hardware, not software on the CPU.
    pub fn is_hardware(&self) -> bool {
        self.as_hardware || self.info.is_hardware()
    }

    /// Whether workgroups start approximately in order, and a waiting one lets others run (forward progress). No API
    /// guarantees this; NVIDIA hardware is known to do it.
    pub fn has_forward_progress(&self) -> bool {
        const NVIDIA: u32 = 0x10de;
        self.as_hardware || self.is_hardware() && self.info.vendor == NVIDIA
    }

    /// Whether the device was lost, hangs, or failed in a way that leaves its state unknown.
    pub fn is_lost(&self) -> bool {
        self.driver.check().is_err()
    }

    /// Waits until everything submitted so far is done. It is an error if the device does not answer in time.
    pub fn wait(&self) -> Result<()> {
        self.driver.wait_for(None)
    }

    /// The times of uploads, passes and readbacks.
    pub fn timings(&self) -> &Timings {
        &self.timings
    }

    /// Size of the largest storage binding in bytes, a multiple of 4.
    pub fn max_binding(&self) -> u64 {
        self.limits.binding_bytes.min(self.limits.buffer_bytes) & !3
    }

    /// The pipeline of entry point `entry` of `shader`, created at the first call. The driver compiles it at the first
    /// submission.
    pub fn pipeline(&self, shader: &Shader, entry: &str) -> Result<Arc<Pipeline>> {
        let key = format!("{}:{entry}", shader.key());
        self.pipelines.get_or_create(key, || {
            let parse = || shader.storage_buffers(entry);
            let needed = self.timings.time("shaders", parse);
            let granted = self.limits.storage_buffers;
            if needed > granted {
                return Err(Error::gpu(format_args!(
                    "{}: {}.{entry} needs {needed} storage buffers, expected at most {granted}",
                    self.info.name,
                    shader.name()
                )));
            }
            Ok(Arc::new(Pipeline::new(shader, entry)))
        })
    }

    /// Compiles the new ones among `pipelines`, in parallel.
    pub(super) fn compile<'p>(&self, pipelines: impl Iterator<Item = &'p Pipeline>) -> Result<()> {
        let new: Vec<_> = pipelines.filter(|pipeline| pipeline.compiled().is_none()).collect();
        if new.is_empty() {
            return Ok(());
        }
        let Driver { device, .. } = &self.driver;
        let compile = |pipeline: &Pipeline| {
            let shader = &pipeline.shader;
            let module = || self.driver.guarded(|| module(device, shader, self.checked));
            let module = self.modules.get_or_create(shader.key(), module)?;
            self.driver.guarded(|| pipeline.compile(device, &module))
        };
        self.timings.time("pipelines", || {
            new.iter().par_try_each(|pipeline| pipeline.compile_once(|| compile(pipeline)))
        })
    }

    /// The dimensions of a dispatch of `count` workgroups, in two dimensions if one is not enough. The number of a
    /// workgroup is `id.y * num_workgroups.x + id.x`; the shader must ignore numbers from `count` on.
    pub fn fold(&self, count: u64) -> Result<[u32; 3]> {
        let max = u64::from(self.limits.workgroups);
        let rows = count.div_ceil(max).max(1);
        if rows > max {
            return Err(Error::gpu(format_args!(
                "{count} workgroups exceed the device's limit of {max} x {max}"
            )));
        }
        Ok([count.div_ceil(rows) as u32, rows as u32, 1])
    }
}
