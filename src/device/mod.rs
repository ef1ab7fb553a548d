//! The device that kernels run on: the CPU or GPUs, the choice between them, and the fallback to the CPU.

mod choice;
mod estimate;
mod gpu_queue;
mod open;
mod sharing;

use std::{
    borrow::Cow,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, Once, OnceLock},
};

pub use self::{
    choice::DeviceChoice,
    estimate::{Estimate, sum_of_all},
    open::automatic,
};
use self::{
    estimate::START_UP,
    gpu_queue::GpuQueue,
    open::{Opening, may_have_hardware, takes_software},
    sharing::{Sharing, forced_pattern},
};
use crate::{
    gpu::{Context, has_device_hung, panic_text, watched_kernel},
    util::{
        error::{Error, Hint, Kind, Result},
        memory,
        timings::Timings,
    },
};

/// A computation with a CPU and a GPU implementation, which give the same result.
pub trait Kernel {
    /// Input.
    type In: ?Sized;
    /// Output.
    type Out;
    /// Name in timings.
    const NAME: &'static str;

    /// Name in messages.
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// Computes on the CPU.
    fn cpu(&self, input: &Self::In) -> Result<Self::Out>;

    /// Computes on a GPU.
    fn gpu(&self, context: &Context, input: &Self::In) -> Result<Self::Out>;
}

/// The device of a job: the CPU, a GPU, or several GPUs that take kernels from one queue. GPUs are opened on another
/// thread, while inputs are read.
#[derive(Debug)]
pub struct Device {
    choice: DeviceChoice,
    timings: Arc<Timings>,
    start: Once,
    opening: Mutex<Option<Opening>>,
    /// The GPUs, none for the CPU; or the error of opening them, which every kernel returns.
    opened: OnceLock<Result<Vec<Context>, OpenFailure>>,
    queue: GpuQueue,
    /// The CPU, for a job that it [shares](Device::device_for_part) with the GPU.
    sharing: OnceLock<(Arc<Self>, Sharing)>,
}

/// Kind, text and hint of an error that is returned more than once.
type OpenFailure = (Kind, String, Option<Hint>);

impl Device {
    /// Creates the device selected by `choice`. It is opened on first use.
    pub fn new(choice: &DeviceChoice, timings: Arc<Timings>) -> Self {
        let (opening, opened, queue, sharing) = Default::default();
        let (choice, start) = (choice.clone(), Once::new());
        Self { choice, timings, start, opening, opened, queue, sharing }
    }

    /// Creates a device from an open context, as if `choice` had selected it. For tests.
    pub fn from_context(context: Context, choice: DeviceChoice, timings: Arc<Timings>) -> Self {
        let device = Self::new(&choice, timings);
        device.start.call_once(|| device.set_opened(Ok(vec![context])));
        device
    }

    /// Starts to open the device. If the choice is [`DeviceChoice::Auto`] and `estimate` [prefers the
    /// CPU](Estimate::prefers_cpu), the device is the CPU.
    pub fn set_estimate(&self, estimate: impl FnOnce() -> Estimate) {
        if self.choice == DeviceChoice::Auto && may_have_hardware() {
            let estimate = estimate();
            let is_forced = estimate.parts > 0 && forced_pattern().is_some();
            self.share_with_cpu(&estimate, is_forced);
            if estimate.prefers_cpu() && !is_forced && !takes_software() {
                self.start.call_once(|| {
                    log::debug!(
                        "estimates: CPU {} ms; GPU {} ms, {} of them to start",
                        estimate.cpu.as_millis(),
                        (START_UP + estimate.gpu).as_millis(),
                        START_UP.as_millis()
                    );
                    self.set_opened(Ok(Vec::new()));
                });
            }
        }
        self.start();
    }

    /// Lets the CPU share a job if the GPU cannot finish all parts in the time that one core needs for one part.
    fn share_with_cpu(&self, estimate: &Estimate, is_forced: bool) {
        let parts = estimate.parts;
        let reserved = estimate.parts_per_core(rayon::current_num_threads());
        if parts > reserved || is_forced {
            let cpu = || Arc::new(Self::new(&DeviceChoice::Cpu, self.timings.clone()));
            self.sharing.get_or_init(|| (cpu(), Sharing::default())).1.begin(parts, reserved);
        }
    }

    /// Starts to open the device. Further calls have no effect.
    pub fn start(&self) {
        self.start.call_once(|| {
            let needs_gpu = match self.choice {
                DeviceChoice::Cpu => false,
                DeviceChoice::Auto => may_have_hardware(),
                _ => true,
            };
            if !needs_gpu {
                return self.set_opened(Ok(Vec::new()));
            }
            let opening = Opening::start(&self.choice, &self.timings);
            *self.opening.lock().expect("no holder of this lock panics") = Some(opening);
        });
    }

    /// Whether the CPU may take parts of the job.
    pub fn is_shared(&self) -> bool {
        self.sharing.get().is_some()
    }

    /// The device for the next part of a job in [parts](Estimate::parts): the CPU while the GPU is still starting or
    /// too busy to begin the part now, else this device. Only for parts whose results are the same on both.
    pub fn device_for_part(self: &Arc<Self>) -> Arc<Self> {
        let Some((cpu, sharing)) = self.sharing.get() else { return self.clone() };
        let would_wait = || !self.is_open() || self.queue.is_crowded();
        if sharing.next_goes_to_cpu(would_wait) { cpu } else { self }.clone()
    }

    /// Whether opening has ended. Does not wait.
    fn is_open(&self) -> bool {
        // Another thread holds the lock while it waits for the driver.
        let Ok(mut opening) = self.opening.try_lock() else { return false };
        if let Some(opened) = opening.as_ref().and_then(Opening::result) {
            *opening = None;
            self.set_opened(opened);
        }
        self.opened.get().is_some()
    }

    /// Stores the GPUs that were opened. With [`DeviceChoice::Auto`], an error is a warning, and the device is the CPU.
    fn set_opened(&self, opened: Result<Vec<Context>>) {
        let opened = match opened {
            Err(error) if self.choice == DeviceChoice::Auto => {
                log::warn!("{}; using the CPU instead", error.one_line());
                Ok(Vec::new())
            }
            other => other.map_err(|error| (error.kind(), error.one_line(), error.hint())),
        };
        let is_ok = opened.is_ok();
        self.opened.set(opened).expect("set once: by `start`, or by the holder of `opening`");
        if let (true, Some(name)) = (is_ok, self.name()) {
            log::debug!("device: {name}");
        }
    }

    /// The GPUs of this job, none for the CPU. Waits until they are open.
    fn contexts(&self) -> Result<&[Context]> {
        self.start();
        let mut opening = self.opening.lock().expect("no holder of this lock panics");
        if let Some(opening) = opening.take() {
            self.set_opened(opening.wait());
        }
        match self.opened.get().expect("opened above, or before") {
            Ok(contexts) => Ok(contexts),
            Err((kind, line, None)) => Err(Error::new(*kind, line)),
            Err((kind, line, Some(hint))) => Err(Error::new(*kind, line).with_hint(*hint)),
        }
    }

    /// The GPU of this job, the first of several, or `None` for the CPU. Waits until it is open. With
    /// [`DeviceChoice::Auto`], a device that is missing or cannot be opened is a warning, and the job runs on the CPU.
    pub fn context(&self) -> Result<Option<&Context>> {
        Ok(self.contexts()?.first())
    }

    /// Runs `kernel`. With [`DeviceChoice::Auto`], a kernel that fails on a GPU runs again on the CPU, with a warning;
    /// a lost GPU is not used again.
    pub fn run<K: Kernel>(&self, kernel: &K, input: &K::In) -> Result<K::Out> {
        let mut output = None;
        self.run_on_any(kernel.name(), &mut |context| {
            output = Some(match context {
                Some(context) => kernel.gpu(context, input)?,
                None => kernel.cpu(input)?,
            });
            Ok(())
        })?;
        Ok(output.expect("set by the last call"))
    }

    /// Runs `work` and records how long it took, as the stage `stage`.
    pub fn time<T>(&self, stage: &str, work: impl FnOnce() -> T) -> T {
        self.timings.time(stage, work)
    }

    /// Calls `run` with the context of a GPU, or with `None` for the CPU. If a GPU fails under [`DeviceChoice::Auto`],
    /// calls it again with `None`.
    fn run_on_any(
        &self,
        name: &'static str,
        run: &mut dyn FnMut(Option<&Context>) -> Result<()>,
    ) -> Result<()> {
        let auto = self.choice == DeviceChoice::Auto;
        let contexts = self.contexts()?;
        // A lost device stays lost, and its first failure was a warning.
        let is_usable = |gpu: usize| !(auto && contexts[gpu].is_lost());
        if let Some(permit) = self.queue.wait(contexts.len(), is_usable) {
            let context = &contexts[permit.gpu];
            let on_gpu = AssertUnwindSafe(|| watched_kernel(name, || run(Some(context))));
            let result = catch_unwind(on_gpu).unwrap_or_else(|panic| {
                Err(memory::raised(panic).unwrap_or_else(|panic| Error::gpu(panic_text(panic))))
            });
            match result {
                Err(error) if error.kind() == Kind::Gpu && auto => {
                    log::warn!("{}; running {name} again on the CPU", error.one_line());
                }
                result => return result,
            }
        }
        self.timings.time(name, || memory::catch(|| run(None)))
    }

    /// Whether kernels may run on a GPU. True while the device is being opened.
    pub fn may_be_gpu(&self) -> bool {
        self.start();
        !matches!(self.opened.get(), Some(Ok(contexts)) if contexts.is_empty())
    }

    /// Never closes the device, for a process that is about to end. The system frees everything anyway, whereas a
    /// driver may crash or hang while it cleans up.
    pub fn leak(self: Arc<Self>) {
        mem::forget(self);
    }

    /// The name of the device that runs the job, once it is known; that of the GPU if both share the job.
    pub fn name(&self) -> Option<Cow<'_, str>> {
        Some(match self.opened.get() {
            Some(Ok(gpus)) => match &gpus[..] {
                [] => "CPU".into(),
                [gpu] => gpu.info.name.as_str().into(),
                [gpu, ..] => format!("{} x {}", gpus.len(), gpu.info.name).into(),
            },
            // The CPU finished the job before the GPU had started.
            _ if self.is_shared() => "CPU".into(),
            _ => return None,
        })
    }
}

impl Drop for Device {
    /// Waits for a driver that is still starting, since some crash when the process ends meanwhile.
    fn drop(&mut self) {
        let opening = self.opening.get_mut().ok().and_then(Option::take);
        // Nobody needs the result any more.
        let _ = opening.as_ref().map(Opening::wait);
        // To close a hanging device may never return.
        if has_device_hung() {
            mem::forget(self.opened.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    struct FailsOnGpu;

    impl Kernel for FailsOnGpu {
        type In = ();
        type Out = &'static str;
        const NAME: &'static str = "fails on GPU";

        fn cpu(&self, (): &()) -> Result<&'static str> {
            Ok("cpu")
        }

        fn gpu(&self, _: &Context, (): &()) -> Result<&'static str> {
            Err(Error::gpu("injected"))
        }
    }

    /// Only the last parts wait for a GPU that is still starting.
    #[test]
    fn shared_jobs_begin_on_the_cpu() {
        let timings = || Arc::new(Timings::new(false));
        let cpu = Arc::new(Device::new(&DeviceChoice::Cpu, timings()));
        assert!(Arc::ptr_eq(&cpu.device_for_part(), &cpu) && !cpu.is_shared());
        let device = |left: usize| {
            let device = Device::new(&DeviceChoice::Auto, timings());
            let (sender, opening) = mpsc::channel();
            device.start.call_once(|| *device.opening.lock().unwrap() = Some(Opening(opening)));
            let sharing = Sharing::default();
            sharing.begin(left, 3);
            device.sharing.set((cpu.clone(), sharing)).unwrap();
            (Arc::new(device), sender)
        };
        let (few, _start) = device(5);
        let on_cpu = || Arc::ptr_eq(&few.device_for_part(), &cpu);
        assert_eq!([(); 5].map(|()| on_cpu()), [true, true, false, false, false]);
        let (failing, start) = device(100);
        assert!(Arc::ptr_eq(&failing.device_for_part(), &cpu));
        start.send(Err(Error::gpu("injected"))).unwrap();
        assert!(Arc::ptr_eq(&failing.device_for_part(), &failing));
        assert_eq!(failing.name().as_deref(), Some("CPU"));
    }

    #[test]
    fn an_estimate_moves_only_auto_to_the_cpu() {
        let timings = || Arc::new(Timings::new(false));
        let device = Device::new(&DeviceChoice::Auto, timings());
        assert_eq!(device.name(), None);
        device.set_estimate(|| Estimate::from_seconds(0.01, 0.0));
        assert_eq!(device.name().as_deref(), Some("CPU"));
        assert_eq!(device.run(&FailsOnGpu, &()).unwrap(), "cpu");
        // A device selected by name is opened all the same.
        let device = Device::new(&DeviceChoice::Name("no such device".into()), timings());
        device.set_estimate(|| Estimate::from_seconds(0.0, 0.0));
        assert_eq!(device.context().unwrap_err().kind(), Kind::NoDevice);
        assert_eq!(device.context().unwrap_err().kind(), Kind::NoDevice);
    }
}
