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

/// An open device with its queue, its limits, and the pipelines made so far.
#[derive(Debug)]
pub struct Context {
    pub(super) driver: Driver,
    /// What the device allows; every kernel splits its work to fit.
    pub limits: DeviceLimits,
    /// Which adapter this is.
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

/// The most bytes of unused storage buffers that a device keeps. A discrete GPU has memory of its own; elsewhere
/// storage buffers are host memory, whose use commands promise to limit.
fn kept_storage(kind: AdapterKind) -> u64 {
    match kind {
        AdapterKind::Discrete => 4 << 30,
        _ => 256 << 20,
    }
}

impl Context {
    /// Opens `adapter` with its full limits, less `caps`.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when the driver refuses.
    pub fn open(adapter: &Adapter, caps: &Restrictions, timings: Arc<Timings>) -> Result<Self> {
        let limits = caps.restrict(adapter.inner.limits());
        let features = adapter.inner.features() & caps.features();
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
                caps.timeout.unwrap_or(match adapter.info.is_hardware() {
                    true => driver_timeout(),
                    // Software takes longer, and its threads may have to share their cores.
                    false => 2 * driver_timeout(),
                }),
                InjectedFault::new(caps.fault),
            ),
            limits: DeviceLimits::from(&limits),
            info: adapter.info.clone(),
            uniform_alignment: limits.min_uniform_buffer_offset_alignment as usize,
            features,
            timings,
            poison: caps.poison,
            checked: caps.checked,
            as_hardware: caps.as_hardware,
            modules: OnceCache::default(),
            pipelines: OnceCache::default(),
            multiply_add: OnceLock::new(),
            storage: Pool::keeping(kept_storage(adapter.info.kind)),
            readbacks: Pool::keeping(256 << 20),
            uploads: UploadStaging::default(),
        })
    }

    /// Whether the device has a feature and may use it.
    pub fn has(&self, feature: Features) -> bool {
        self.features.contains(feature)
    }

    /// Whether this is hardware, not software on the CPU.
    pub fn is_hardware(&self) -> bool {
        self.as_hardware || self.info.is_hardware()
    }

    /// Whether workgroups begin about in order, and one that waits lets others run: forward progress, which no API
    /// promises. NVIDIA hardware is known to have it.
    pub fn makes_progress(&self) -> bool {
        const NVIDIA: u32 = 0x10de;
        self.as_hardware || self.is_hardware() && self.info.vendor == NVIDIA
    }

    /// Whether the device was lost, hangs, or failed in a way that leaves its state unknown.
    pub fn is_lost(&self) -> bool {
        self.driver.check().is_err()
    }

    /// Waits until everything submitted so far is done.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when the device is lost or does not answer in a minute.
    pub fn wait(&self) -> Result<()> {
        self.driver.wait_for(None)
    }

    /// The recorder of upload, pass and readback times.
    pub fn timings(&self) -> &Timings {
        &self.timings
    }

    /// The largest storage binding in bytes, a multiple of 4.
    pub fn max_binding(&self) -> u64 {
        self.limits.binding_bytes.min(self.limits.buffer_bytes) & !3
    }

    /// The pipeline of entry point `entry` of `shader`, made at the first call and kept. The driver compiles it at the
    /// first submission.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when it uses more storage buffers than the device allows.
    pub fn pipeline(&self, shader: &Shader, entry: &str) -> Result<Arc<Pipeline>> {
        let key = format!("{}:{entry}", shader.key());
        self.pipelines.get_or_make(key, || {
            let parse = || shader.storage_buffers(entry);
            let needed = self.timings.time("shaders", parse);
            let granted = self.limits.storage_buffers;
            if needed > granted {
                return Err(Error::gpu(format_args!(
                    "{} grants {granted} storage buffers a shader, but {}.{entry} takes {needed}",
                    self.info.name,
                    shader.name()
                )));
            }
            Ok(Arc::new(Pipeline::new(shader, entry)))
        })
    }

    /// Compiles those of `pipelines` that are new, side by side.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when the driver refuses one.
    pub(super) fn compile<'p>(&self, pipelines: impl Iterator<Item = &'p Pipeline>) -> Result<()> {
        let new: Vec<_> = pipelines.filter(|pipeline| pipeline.compiled().is_none()).collect();
        if new.is_empty() {
            return Ok(());
        }
        let Driver { device, .. } = &self.driver;
        let compile = |pipeline: &Pipeline| {
            let shader = &pipeline.shader;
            let module = || self.driver.guarded(|| module(device, shader, self.checked));
            let module = self.modules.get_or_make(shader.key(), module)?;
            self.driver.guarded(|| pipeline.compile(device, &module))
        };
        self.timings.time("pipelines", || {
            new.iter().par_try_each(|pipeline| pipeline.compile_once(|| compile(pipeline)))
        })
    }

    /// `count` workgroups, folded into two dimensions where one is not enough. The shader finds its
    /// number as `id.y * num_workgroups.x + id.x` and must ignore numbers from `count` on.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when two dimensions are not enough.
    pub fn fold(&self, count: u64) -> Result<[u32; 3]> {
        let max = u64::from(self.limits.workgroups);
        let rows = count.div_ceil(max).max(1);
        if rows > max {
            return Err(Error::gpu(format_args!("{count} workgroups are more than {max} x {max}")));
        }
        Ok([count.div_ceil(rows) as u32, rows as u32, 1])
    }
}
