//! Where a kernel runs: the CPU twin or a GPU, the choice between them, and the fallback.

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

/// One computation with two implementations that give the same result.
pub trait Kernel {
    /// What it reads.
    type In: ?Sized;
    /// What it makes.
    type Out;
    /// Its name in timings.
    const NAME: &'static str;

    /// The native twin.
    ///
    /// # Errors
    /// When the input breaks the kernel's rules.
    fn cpu(&self, input: &Self::In) -> Result<Self::Out>;

    /// The same on a GPU.
    ///
    /// # Errors
    /// As [`Kernel::cpu`], and [`Kind::Gpu`] when the device fails.
    fn gpu(&self, context: &Context, input: &Self::In) -> Result<Self::Out>;
}

/// The device of a job: the CPU, a GPU, or several GPUs that take kernels from one queue. GPUs are opened on a thread
/// of their own, while inputs are read.
#[derive(Debug)]
pub struct Device {
    choice: DeviceChoice,
    timings: Arc<Timings>,
    start: Once,
    opening: Mutex<Option<Opening>>,
    /// Its GPUs; none for the CPU.
    opened: OnceLock<Vec<Context>>,
    /// The error of opening them, which every kernel returns.
    failure: OnceLock<Failure>,
    queue: GpuQueue,
    /// Set once a job is [shared](Device::device_for_part).
    sharing: OnceLock<(Arc<Self>, Sharing)>,
}

/// An error that can be returned more than once.
type Failure = (Kind, String, Option<Hint>);

impl Device {
    /// What `choice` names, not opened yet.
    pub fn new(choice: &DeviceChoice, timings: Arc<Timings>) -> Self {
        let (opening, opened, failure, queue, sharing) = Default::default();
        let (choice, start) = (choice.clone(), Once::new());
        Self { choice, timings, start, opening, opened, failure, queue, sharing }
    }

    /// A device that is this open context, as if `choice` had found it; for tests.
    pub fn from_context(context: Context, choice: DeviceChoice, timings: Arc<Timings>) -> Self {
        let device = Self::new(&choice, timings);
        device.start.call_once(|| device.opened.set(vec![context]).expect("set only once"));
        device
    }

    /// Starts to open the device. Where the choice is [`DeviceChoice::Auto`] and `estimate` [prefers the
    /// CPU](Estimate::prefers_cpu), the device is the CPU.
    pub fn set_estimate(&self, estimate: impl FnOnce() -> Estimate) {
        if self.choice == DeviceChoice::Auto && may_have_hardware() {
            let estimate = estimate();
            let is_forced = estimate.parts > 0 && forced_pattern().is_some();
            self.share(&estimate, is_forced);
            if estimate.prefers_cpu() && !is_forced && !takes_software() {
                self.start.call_once(|| {
                    log::debug!(
                        "device: CPU, which takes about {} ms; a GPU takes {} ms, {} of them to start",
                        estimate.cpu.as_millis(),
                        (START_UP + estimate.gpu).as_millis(),
                        START_UP.as_millis()
                    );
                    self.opened.set(Vec::new()).expect("set only once");
                });
            }
        }
        self.start();
    }

    /// Notes that the CPU may take parts of a job, where there are more than the GPU does in the time of one on a core.
    fn share(&self, estimate: &Estimate, is_forced: bool) {
        let parts = estimate.parts;
        let last = estimate.parts_a_core(rayon::current_num_threads());
        if parts > last || is_forced {
            let cpu = || Arc::new(Self::new(&DeviceChoice::Cpu, self.timings.clone()));
            self.sharing.get_or_init(|| (cpu(), Sharing::default())).1.begin(parts, last);
        }
    }

    /// Starts to open the device, once.
    pub fn start(&self) {
        self.start.call_once(|| {
            let needs_gpu = match self.choice {
                DeviceChoice::Cpu => false,
                DeviceChoice::Auto => may_have_hardware(),
                _ => true,
            };
            if !needs_gpu {
                log::debug!("device: CPU");
                self.opened.set(Vec::new()).expect("set only once");
                return;
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
    /// has so much to do that the part would have to wait, else this one. Only for parts whose results are the same on
    /// both.
    pub fn device_for_part(self: &Arc<Self>) -> Arc<Self> {
        let Some((cpu, sharing)) = self.sharing.get() else { return self.clone() };
        let would_wait = || !self.is_open() || self.queue.is_crowded();
        if sharing.next_goes_to_cpu(would_wait) { cpu } else { self }.clone()
    }

    /// Whether opening has ended, with GPUs or without. Does not wait.
    fn is_open(&self) -> bool {
        // Another thread holds the lock while it waits for the driver.
        let Ok(mut opening) = self.opening.try_lock() else { return false };
        if let Some(opened) = opening.as_ref().and_then(Opening::result) {
            *opening = None;
            // Jobs are shared only under `DeviceChoice::Auto`, which turns errors into the CPU.
            return self.open_as(opened).is_ok();
        }
        self.opened.get().is_some()
    }

    /// Keeps the GPUs that were opened. With [`DeviceChoice::Auto`] an error is a warning, and the device is the CPU.
    fn open_as(&self, opened: Result<Vec<Context>>) -> Result<()> {
        let contexts = match opened {
            Err(error) if self.choice == DeviceChoice::Auto => {
                log::warn!("{}; going on with the CPU", error.one_line());
                Vec::new()
            }
            other => other?,
        };
        self.opened.set(contexts).expect("set only once, under the lock of `opening`");
        log::debug!("device: {}", self.name().expect("set above"));
        Ok(())
    }

    /// The GPUs of this job, none for the CPU. Waits until they are open.
    fn contexts(&self) -> Result<&[Context]> {
        self.start();
        let mut opening = self.opening.lock().expect("no holder of this lock panics");
        if let Some(opening) = opening.take()
            && let Err(error) = self.open_as(opening.wait())
        {
            let failure = (error.kind(), error.one_line(), error.hint());
            self.failure.set(failure).expect("set only once, under the lock of `opening`");
        }
        match self.failure.get() {
            Some((kind, line, None)) => Err(Error::new(*kind, line)),
            Some((kind, line, Some(hint))) => Err(Error::new(*kind, line).with_hint(*hint)),
            None => Ok(self.opened.get().expect("opened above, or before")),
        }
    }

    /// The GPU of this job, the first of several, or `None` for the CPU. Waits until it is open.
    ///
    /// # Errors
    /// [`Kind::NoDevice`] when what was asked for is not there, [`Kind::Gpu`] when it cannot be opened. With
    /// [`DeviceChoice::Auto`] both are warnings, and the job goes to the CPU.
    pub fn context(&self) -> Result<Option<&Context>> {
        Ok(self.contexts()?.first())
    }

    /// Runs `kernel` here. With [`DeviceChoice::Auto`], what a GPU fails at is done again by the CPU, with a
    /// warning; a device that is lost is not asked again.
    ///
    /// # Errors
    /// Those of the kernel and of [`Device::context`].
    pub fn run<K: Kernel>(&self, kernel: &K, input: &K::In) -> Result<K::Out> {
        let mut output = None;
        self.run_twin(K::NAME, &mut |context| {
            output = Some(match context {
                Some(context) => kernel.gpu(context, input)?,
                None => kernel.cpu(input)?,
            });
            Ok(())
        })?;
        Ok(output.expect("one of the twins ran"))
    }

    /// Calls `twin` with the context of a GPU, or with `None` for the CPU. A GPU that fails under
    /// [`DeviceChoice::Auto`] is followed by a second call with `None`.
    fn run_twin(
        &self,
        name: &'static str,
        twin: &mut dyn FnMut(Option<&Context>) -> Result<()>,
    ) -> Result<()> {
        let auto = self.choice == DeviceChoice::Auto;
        let contexts = self.contexts()?;
        // A lost device stays lost, and its first failure was a warning.
        let is_usable = |gpu: usize| !(auto && contexts[gpu].is_lost());
        if let Some(permit) = self.queue.wait(contexts.len(), is_usable) {
            let context = &contexts[permit.gpu];
            let run = AssertUnwindSafe(|| watched_kernel(name, || twin(Some(context))));
            let result = catch_unwind(run).unwrap_or_else(|panic| {
                Err(memory::raised(panic).unwrap_or_else(|panic| Error::gpu(panic_text(panic))))
            });
            match result {
                Err(error) if error.kind() == Kind::Gpu && auto => {
                    log::warn!("{}; doing it again on the CPU", error.one_line());
                }
                result => return result,
            }
        }
        self.timings.time(name, || memory::catch(|| twin(None)))
    }

    /// Whether kernels may run on a GPU, as far as that is known now.
    pub fn may_be_gpu(&self) -> bool {
        self.start();
        !self.opened.get().is_some_and(Vec::is_empty)
    }

    /// Keeps the device from being closed, for a process that ends without exit handlers. The system frees everything
    /// anyway, whereas a driver may crash or hang while it cleans up.
    pub fn leak(self: Arc<Self>) {
        mem::forget(self);
    }

    /// The name of the device that runs the job, once that is known; the GPU's where both share the job.
    pub fn name(&self) -> Option<Cow<'_, str>> {
        Some(match self.opened.get().map(Vec::as_slice) {
            Some([gpu]) => gpu.info.name.as_str().into(),
            Some(gpus @ [gpu, ..]) => format!("{} x {}", gpus.len(), gpu.info.name).into(),
            Some([]) => "CPU".into(),
            // The CPU finished the job before the GPU had started.
            None if self.is_shared() => "CPU".into(),
            None => return None,
        })
    }
}

impl Drop for Device {
    /// Waits for a driver that is still starting: some crash when the process ends meanwhile.
    fn drop(&mut self) {
        let opening = self.opening.get_mut().ok().and_then(Option::take);
        // Nobody needs the result any more.
        let _ = opening.as_ref().map(Opening::wait);
        // Closing a device that hangs may never return.
        if has_device_hung() {
            mem::forget(self.opened.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    struct Unsteady;

    impl Kernel for Unsteady {
        type In = ();
        type Out = &'static str;
        const NAME: &'static str = "unsteady";

        fn cpu(&self, (): &()) -> Result<&'static str> {
            Ok("cpu")
        }

        fn gpu(&self, _: &Context, (): &()) -> Result<&'static str> {
            Err(Error::gpu("planted"))
        }
    }

    /// A GPU that is not there yet keeps nobody waiting, except for the last parts.
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
        start.send(Err(Error::gpu("planted"))).unwrap();
        assert!(Arc::ptr_eq(&failing.device_for_part(), &failing));
        assert_eq!(failing.name().as_deref(), Some("CPU"));
    }

    #[test]
    fn an_estimate_moves_only_auto_to_the_cpu() {
        let timings = || Arc::new(Timings::new(false));
        let device = Device::new(&DeviceChoice::Auto, timings());
        assert_eq!(device.name(), None);
        device.set_estimate(|| Estimate::of_seconds(0.01, 0.0));
        assert_eq!(device.name().as_deref(), Some("CPU"));
        assert_eq!(device.run(&Unsteady, &()).unwrap(), "cpu");
        // What was asked for by name is opened all the same.
        let device = Device::new(&DeviceChoice::Name("no such device".into()), timings());
        device.set_estimate(|| Estimate::of_seconds(0.0, 0.0));
        assert_eq!(device.context().unwrap_err().kind(), Kind::NoDevice);
        assert_eq!(device.context().unwrap_err().kind(), Kind::NoDevice);
    }

    #[test]
    fn the_cpu_needs_no_driver() {
        let device = Device::new(&DeviceChoice::Cpu, Arc::new(Timings::new(false)));
        device.start();
        assert_eq!(device.name().as_deref(), Some("CPU"));
        assert_eq!(device.run(&Unsteady, &()).unwrap(), "cpu");
        assert_eq!(device.name().as_deref(), Some("CPU"));
    }
}
