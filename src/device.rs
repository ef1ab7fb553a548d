//! Where a kernel runs: the CPU twin or a GPU, the choice between them, and the fallback.

use std::{
    borrow::Cow,
    convert::Infallible,
    env,
    ffi::OsString,
    fmt, io, iter,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    str::FromStr,
    sync::{
        Arc, Condvar, LazyLock, Mutex, MutexGuard, Once, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread::{self, ScopedJoinHandle},
    time::Duration,
};

use crate::{
    error::{Error, Hint, Kind, Result},
    gpu::{
        Adapter, Caps, Context, adapters, any_hung, device_hangs, driver_starts, panic_text,
        patience, patiently, watched, watched_loosely,
    },
    memory,
    timings::Timings,
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

/// What the user asked for with `--device`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A hardware GPU where there is one, else the CPU.
    Auto,
    /// The CPU twins.
    Cpu,
    /// The first adapter, software ones included.
    Gpu,
    /// Every hardware GPU of the first one's model and driver, which round floats alike.
    All,
    /// The adapter with this number in `gpuproc devices`.
    Index(usize),
    /// The first adapter whose name contains this text, whatever its case.
    Name(String),
}

impl FromStr for DeviceChoice {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.to_ascii_lowercase().as_str() {
            // A variable that is empty says as much as one that is not set.
            "" | "auto" => Self::Auto,
            "cpu" => Self::Cpu,
            "gpu" => Self::Gpu,
            "all" => Self::All,
            other => other.parse().map_or_else(|_| Self::Name(other.to_owned()), Self::Index),
        })
    }
}

/// The device of a job: the CPU, a GPU, or several that take kernels from one queue. They are opened on a thread of their
/// own, so that inputs are read meanwhile.
#[derive(Debug)]
pub struct Device {
    choice: DeviceChoice,
    timings: Arc<Timings>,
    start: Once,
    opening: Mutex<Option<Opening>>,
    /// Its GPUs; none for the CPU.
    opened: OnceLock<Vec<Context>>,
    turns: Turns,
    /// There where a job is [shared](Device::or_cpu).
    beside: OnceLock<Beside>,
}

/// The CPU beside a GPU.
#[derive(Debug)]
struct Beside {
    cpu: Arc<Device>,
    /// Parts of the job that have not begun.
    left: AtomicUsize,
    /// The last so many parts are left to the GPU, which has done them before a core has done one.
    last: AtomicUsize,
}

/// The GPUs that a thread opens, or the end of that thread in a panic.
type Opening = Receiver<Result<Vec<Context>>>;

/// Waits for the thread, if the driver answers.
fn wait_for(opening: &Opening) -> Result<Vec<Context>> {
    let attempt = |wait| match opening.recv_timeout(wait) {
        Err(RecvTimeoutError::Timeout) => None,
        opened => Some(opened),
    };
    match patiently(patience(), attempt) {
        Some(Ok(opened)) => opened,
        Some(Err(_)) => Err(Error::gpu("the driver crashed while it started")),
        None => {
            device_hangs();
            Err(Error::gpu("the driver does not answer while it starts"))
        }
    }
}

/// Kernels that are on a GPU at once, at most: one is computed while others are transferred or described.
const IN_FLIGHT: usize = 4;

/// Kernels that wait for others on a GPU, at most, when the CPU may do them as well: so many keep the GPU busy.
const WAITING: usize = 4;

/// The queue of kernels, of which it lets [`IN_FLIGHT`] onto each GPU.
#[derive(Debug, Default)]
struct Turns {
    kernels: Mutex<Kernels>,
    given_back: Condvar,
}

#[derive(Debug, Default)]
struct Kernels {
    on_gpu: Vec<usize>,
    waiting: usize,
}

impl Kernels {
    /// The GPU with the fewest kernels among those that `can` take one more.
    fn least_busy(&self, can: impl Fn(usize) -> bool) -> Option<usize> {
        let free = |gpu: &usize| self.on_gpu[*gpu] < IN_FLIGHT && can(*gpu);
        (0..self.on_gpu.len()).filter(free).min_by_key(|&gpu| self.on_gpu[gpu])
    }
}

/// The right of a kernel to run on a GPU.
struct Turn<'a> {
    turns: &'a Turns,
    gpu: usize,
}

impl Turns {
    fn kernels(&self) -> MutexGuard<'_, Kernels> {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn on one of so many `gpus`; nothing when none of them `is_usable` any more.
    fn wait(&self, gpus: usize, is_usable: impl Fn(usize) -> bool) -> Option<Turn<'_>> {
        let mut kernels = self.kernels();
        kernels.on_gpu.resize(gpus, 0);
        kernels.waiting += 1;
        let gpu = loop {
            if !(0..gpus).any(&is_usable) {
                break None;
            }
            if let Some(gpu) = kernels.least_busy(&is_usable) {
                kernels.on_gpu[gpu] += 1;
                break Some(gpu);
            }
            kernels = self.given_back.wait(kernels).unwrap_or_else(PoisonError::into_inner);
        };
        kernels.waiting -= 1;
        gpu.map(|gpu| Turn { turns: self, gpu })
    }

    /// Whether one more kernel would have to wait for many.
    fn are_crowded(&self) -> bool {
        self.kernels().waiting >= WAITING
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.kernels().on_gpu[self.gpu] -= 1;
        // All, since each looks for itself whether its GPU is lost.
        self.turns.given_back.notify_all();
    }
}

/// About how long a job will take.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// On the CPU.
    pub cpu: Duration,
    /// On a GPU that has started.
    pub gpu: Duration,
    /// Parts of the job that one core does, or the GPU, where both devices may work on it together; else 0.
    pub parts: usize,
}

impl Estimate {
    /// Of so many seconds each.
    pub fn of_seconds(cpu: f64, gpu: f64) -> Self {
        let [cpu, gpu] =
            [cpu, gpu].map(|s| Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX / 2));
        Self { cpu, gpu, parts: 0 }
    }

    /// The same for a job of so many `parts` that both devices may share.
    pub fn in_parts(self, parts: usize) -> Self {
        Self { parts, ..self }
    }

    /// Whether the CPU twins will have done all of the job before a GPU has started and done it.
    pub fn prefers_cpu(&self) -> bool {
        self.cpu < START_UP + self.gpu
    }

    /// Parts that the GPU does while one of so many `cores` does one, and as many again for what is not known that well.
    fn parts_a_core(&self, cores: usize) -> usize {
        let ratio = self.cpu.as_secs_f64() / self.gpu.as_secs_f64();
        (2.0 * ratio * cores as f64) as usize
    }
}

/// What starting a GPU takes at least: instance, adapter and device took 0.145 s on an NVIDIA H200.
const START_UP: Duration = Duration::from_millis(145);

impl Device {
    /// What `choice` names, not opened yet.
    pub fn new(choice: &DeviceChoice, timings: Arc<Timings>) -> Self {
        let (opening, opened, turns, beside) = Default::default();
        Self { choice: choice.clone(), timings, start: Once::new(), opening, opened, turns, beside }
    }

    /// A device that is this open context, as if `choice` had found it; for tests.
    pub fn from_context(context: Context, choice: DeviceChoice, timings: Arc<Timings>) -> Self {
        let device = Self::new(&choice, timings);
        device.start.call_once(|| device.opened.set(vec![context]).expect("set only once"));
        device
    }

    /// Starts to open the device. Where the choice is [`DeviceChoice::Auto`] and `estimate`
    /// [prefers the CPU](Estimate::prefers_cpu), the device is the CPU.
    pub fn expect(&self, estimate: impl FnOnce() -> Estimate) {
        if self.choice == DeviceChoice::Auto && may_have_hardware() {
            let estimate = estimate();
            let Estimate { cpu, gpu, parts } = estimate;
            let last = estimate.parts_a_core(rayon::current_num_threads());
            let is_forced = parts > 0 && share_pattern().is_some();
            if parts > last || is_forced {
                let beside = self.beside.get_or_init(|| Beside {
                    cpu: Arc::new(Self::new(&DeviceChoice::Cpu, self.timings.clone())),
                    left: AtomicUsize::default(),
                    last: AtomicUsize::default(),
                });
                beside.last.store(last, Ordering::Relaxed);
                beside.left.store(parts, Ordering::Relaxed);
            }
            if estimate.prefers_cpu() && !is_forced && !takes_software() {
                self.start.call_once(|| {
                    log::debug!(
                        "device: CPU, which takes about {} ms; a GPU takes {} ms, {} of them to start",
                        cpu.as_millis(),
                        (START_UP + gpu).as_millis(),
                        START_UP.as_millis()
                    );
                    self.opened.set(Vec::new()).expect("set only once");
                });
            }
        }
        self.start();
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
            driver_starts();
            let (sender, opening) = mpsc::channel();
            let open = || {
                let (choice, timings, sender) =
                    (self.choice.clone(), self.timings.clone(), sender.clone());
                move || {
                    let opened = timings.clone();
                    let opened = timings.time("device start-up", || open(&choice, &opened));
                    // Where nobody waits for it any more, it is closed.
                    let _ = sender.send(opened);
                }
            };
            // Where there is no further thread, this one opens it.
            if thread::Builder::new().spawn(open()).is_err() {
                watched("a start", open());
            }
            *self.opening.lock().expect("no holder of this lock panics") = Some(opening);
        });
    }

    /// Whether the CPU may take parts of the job.
    pub fn is_shared(&self) -> bool {
        self.beside.get().is_some()
    }

    /// Where the next part of a job in [parts](Estimate::parts) is to begin, whose result is the same everywhere: here, or
    /// on the CPU while a GPU is still starting, or has so much to do that the part would have to wait.
    pub fn or_cpu(self: &Arc<Self>) -> Arc<Self> {
        let Some(Beside { cpu, left, last }) = self.beside.get() else { return self.clone() };
        let take = |left: usize| left.checked_sub(1);
        let number = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).unwrap_or(0);
        let on_cpu = match share_pattern() {
            Some(pattern) => pattern[number % pattern.len()] == b'1',
            None => {
                number > last.load(Ordering::Relaxed)
                    && (!self.is_open() || self.turns.are_crowded())
            }
        };
        if on_cpu { cpu } else { self }.clone()
    }

    /// Whether it is known where kernels run.
    fn is_open(&self) -> bool {
        // A thread that holds the lock waits for the start.
        let Ok(mut opening) = self.opening.try_lock() else { return false };
        if let Some(opened) = opening.as_ref().and_then(|opening| opening.try_recv().ok()) {
            *opening = None;
            // Devices that are shared are chosen automatically, so that no error is left.
            return self.open_as(opened).is_ok();
        }
        self.opened.get().is_some()
    }

    /// Notes how opening it ended.
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
        if let Some(opening) = opening.take() {
            self.open_as(wait_for(&opening))?;
        }
        let opened = self.opened.get().map(Vec::as_slice);
        opened.ok_or_else(|| Error::new(Kind::NoDevice, "the device could not be opened"))
    }

    /// The GPU of this job, the first of several, or `None` for the CPU. Waits until it is open.
    ///
    /// # Errors
    /// [`Kind::NoDevice`] when what was asked for is not there, [`Kind::Gpu`] when it cannot be
    /// opened. With [`DeviceChoice::Auto`] both are warnings, and the job goes to the CPU.
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

    /// Calls `twin` with the context to run on, or with none for the CPU; again with none where it may.
    fn run_twin(
        &self,
        name: &'static str,
        twin: &mut dyn FnMut(Option<&Context>) -> Result<()>,
    ) -> Result<()> {
        let auto = self.choice == DeviceChoice::Auto;
        let contexts = self.contexts()?;
        // A lost device stays lost, and its first failure was a warning.
        let is_usable = |gpu: usize| !(auto && contexts[gpu].is_lost());
        if let Some(turn) = self.turns.wait(contexts.len(), is_usable) {
            let context = &contexts[turn.gpu];
            let run = AssertUnwindSafe(|| watched_loosely(name, || twin(Some(context))));
            let run = catch_unwind(run);
            let result = run.unwrap_or_else(|panic| {
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

    /// Leaves the device as it is, for a process that ends without exit handlers: the system takes all of it back,
    /// where a driver could fail once more at cleaning up, or never get done with it.
    pub fn leave(self: Arc<Self>) {
        std::mem::forget(self);
    }

    /// The name of what runs the job, once that is known: of the GPU where both devices share it.
    pub fn name(&self) -> Option<Cow<'_, str>> {
        Some(match self.opened.get().map(Vec::as_slice) {
            Some([gpu]) => gpu.info.name.as_str().into(),
            Some(gpus @ [gpu, ..]) => format!("{} x {}", gpus.len(), gpu.info.name).into(),
            Some([]) => "CPU".into(),
            // The CPU has done all of it before the GPU had started.
            None if self.is_shared() => "CPU".into(),
            None => return None,
        })
    }
}

impl Drop for Device {
    /// Lets a driver that is still starting come to its end: some crash when the process ends meanwhile.
    fn drop(&mut self) {
        let opening = self.opening.get_mut().ok().and_then(Option::take);
        // Its result is of no more use.
        let _ = opening.as_ref().map(wait_for);
        // To close a device that hangs could last for ever.
        if any_hung() {
            std::mem::forget(self.opened.take());
        }
    }
}

/// The adapter that [`DeviceChoice::Auto`] takes out of `adapters`.
pub fn automatic(adapters: &[Adapter]) -> Option<usize> {
    adapters.iter().position(|adapter| adapter.info.is_hardware() || takes_software())
}

/// Whether [`DeviceChoice::Auto`] takes software Vulkan, too, be it the slower device: for tests of what it does with a GPU,
/// on machines without one.
fn takes_software() -> bool {
    env::var_os("GPUPROC_TEST_AUTO").is_some_and(|value| value == "software")
}

/// For tests: which parts of a shared job go to the CPU, however long that takes. Each character of the variable stands for
/// a part, again and again, `1` for the CPU.
fn share_pattern() -> Option<&'static [u8]> {
    static PATTERN: LazyLock<Option<OsString>> =
        LazyLock::new(|| env::var_os("GPUPROC_TEST_SHARE").filter(|pattern| !pattern.is_empty()));
    PATTERN.as_ref().map(|pattern| pattern.as_encoded_bytes())
}

/// Whether it is worth starting a graphics driver to look for hardware: on Linux that costs a third
/// of a second even where only software Vulkan is found, and device files tell sooner.
fn may_have_hardware() -> bool {
    if !cfg!(target_os = "linux") || takes_software() {
        return true;
    }
    ["/dev/dri", "/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg", "/dev/kgsl-3d0", "/dev/mali0"]
        .iter()
        .any(|path| Path::new(path).exists())
}

fn open(choice: &DeviceChoice, timings: &Arc<Timings>) -> Result<Vec<Context>> {
    let adapters = adapters();
    let first = |index: Option<usize>| index.into_iter().collect();
    let found: Vec<usize> = match choice {
        DeviceChoice::Cpu => Vec::new(),
        DeviceChoice::Auto => first(automatic(&adapters)),
        DeviceChoice::Gpu => first((!adapters.is_empty()).then_some(0)),
        DeviceChoice::All => alike(&adapters),
        DeviceChoice::Index(index) => first((*index < adapters.len()).then_some(*index)),
        DeviceChoice::Name(name) => {
            first(adapters.iter().position(|a| a.info.name.to_ascii_lowercase().contains(name)))
        }
    };
    match choice {
        _ if !found.is_empty() => open_all(found.iter().map(|&index| &adapters[index]), timings),
        DeviceChoice::Cpu | DeviceChoice::Auto => Ok(Vec::new()),
        DeviceChoice::Gpu | DeviceChoice::All => Err(missing("no GPU found", Hint::NoGpu)),
        DeviceChoice::Index(index) => {
            Err(missing(format_args!("no device {index}"), Hint::Devices))
        }
        DeviceChoice::Name(name) => {
            Err(missing(format_args!("no device is called `{name}`"), Hint::Devices))
        }
    }
}

/// Opens `adapters` side by side, the first on this thread.
fn open_all<'a>(
    mut adapters: impl Iterator<Item = &'a Adapter>,
    timings: &Arc<Timings>,
) -> Result<Vec<Context>> {
    let Some(first) = adapters.next() else { return Ok(Vec::new()) };
    thread::scope(|scope| {
        let open = |adapter| Context::open(adapter, &Caps::default(), timings.clone());
        let start = |adapter| thread::Builder::new().spawn_scoped(scope, move || open(adapter));
        let others: Vec<_> = adapters.map(start).collect::<io::Result<_>>().map_err(Error::gpu)?;
        let wait = |thread: ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| Err(Error::gpu(panic_text(panic))))
        };
        iter::once(open(first)).chain(others.into_iter().map(wait)).collect()
    })
}

/// The adapters that [`DeviceChoice::All`] takes: those of hardware that are the same as the first. For tests, a variable
/// opens the first adapter so many times, be it software.
fn alike(adapters: &[Adapter]) -> Vec<usize> {
    let Some(first) = adapters.first() else { return Vec::new() };
    let times = env::var("GPUPROC_TEST_GPUS").ok().and_then(|times| times.parse().ok());
    if let Some(times) = times {
        return vec![0; times];
    }
    let is_alike = |adapter: &Adapter| adapter.info.is_hardware() && adapter.info == first.info;
    (0..adapters.len()).filter(|&index| is_alike(&adapters[index])).collect()
}

fn missing(message: impl fmt::Display, hint: Hint) -> Error {
    Error::new(Kind::NoDevice, message).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_as_documented() {
        let read = |text: &str| text.parse::<DeviceChoice>().unwrap();
        assert_eq!(read("AUTO"), DeviceChoice::Auto);
        assert_eq!(read(""), DeviceChoice::Auto);
        assert_eq!(read("cpu"), DeviceChoice::Cpu);
        assert_eq!(read("1"), DeviceChoice::Index(1));
        assert_eq!(read("GeForce"), DeviceChoice::Name("geforce".into()));
    }

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

    #[test]
    fn a_gpu_has_to_win_more_than_its_start() {
        let start = START_UP.as_secs_f64();
        for (cpu, gpu, prefers_cpu) in [
            (0.0, 0.0, true),
            (start * 0.99, 0.0, true),
            (start * 1.01, 0.0, false),
            (1.0, 1.0 - start * 0.99, true),
            (1.0, 1.0 - start * 1.01, false),
            (1.0, 10.0, true),
            (f64::INFINITY, 10.0, false),
        ] {
            let estimate = Estimate::of_seconds(cpu, gpu);
            assert_eq!(estimate.prefers_cpu(), prefers_cpu, "{cpu} {gpu}");
        }
    }

    /// A GPU that is not there yet keeps nobody waiting, except for the last parts.
    #[test]
    fn shared_jobs_begin_on_the_cpu() {
        let timings = || Arc::new(Timings::new(false));
        let cpu = Arc::new(Device::new(&DeviceChoice::Cpu, timings()));
        assert!(Arc::ptr_eq(&cpu.or_cpu(), &cpu) && !cpu.is_shared());
        let device = |left: usize| {
            let device = Device::new(&DeviceChoice::Auto, timings());
            let (sender, opening) = mpsc::channel();
            device.start.call_once(|| *device.opening.lock().unwrap() = Some(opening));
            let beside = Beside { cpu: cpu.clone(), left: left.into(), last: 3.into() };
            device.beside.set(beside).unwrap();
            (Arc::new(device), sender)
        };
        let (few, _start) = device(5);
        let on_cpu = || Arc::ptr_eq(&few.or_cpu(), &cpu);
        assert_eq!([(); 5].map(|()| on_cpu()), [true, true, false, false, false]);
        let (failing, start) = device(100);
        assert!(Arc::ptr_eq(&failing.or_cpu(), &cpu));
        start.send(Err(Error::gpu("planted"))).unwrap();
        assert!(Arc::ptr_eq(&failing.or_cpu(), &failing));
        assert_eq!(failing.name().as_deref(), Some("CPU"));
    }

    #[test]
    fn few_parts_are_not_shared() {
        // A core takes 16 times as long for one as the GPU, doubled to be safe.
        let estimate = Estimate::of_seconds(2.0, 0.5);
        assert_eq!(estimate.parts_a_core(4), 32);
        assert_eq!(Estimate::of_seconds(1.0, 0.0).parts_a_core(4), usize::MAX);
    }

    #[test]
    fn the_cpu_helps_where_kernels_wait_for_the_gpu() {
        let turns = Turns::default();
        assert!(!turns.are_crowded());
        let wait = || turns.wait(2, |_| true).unwrap();
        let held: Vec<Turn<'_>> = (0..2 * IN_FLIGHT).map(|_| wait()).collect();
        // To each GPU in turn, as long as they have equally many.
        let gpus: Vec<usize> = held.iter().map(|turn| turn.gpu).collect();
        assert_eq!(gpus, [0, 1].repeat(IN_FLIGHT));
        thread::scope(|scope| {
            for _ in 0..WAITING {
                assert!(!turns.are_crowded());
                let waiting = turns.kernels().waiting;
                scope.spawn(|| drop(wait()));
                while turns.kernels().waiting == waiting {
                    thread::yield_now();
                }
            }
            assert!(turns.are_crowded());
            drop(held);
        });
        assert!(!turns.are_crowded());
    }

    #[test]
    fn kernels_go_to_the_least_busy_gpu_that_is_not_lost() {
        let turns = Turns::default();
        let wait = |lost: usize| turns.wait(3, |gpu| gpu != lost).map(|turn| (turn.gpu, turn));
        let (first, second) = (wait(0).unwrap(), wait(0).unwrap());
        assert_eq!((first.0, second.0), (1, 2));
        drop(second);
        assert_eq!(wait(0).unwrap().0, 2);
        assert!(turns.wait(3, |_| false).is_none());
        assert!(Turns::default().wait(0, |_| true).is_none());
        assert_eq!(turns.kernels().waiting, 0);
    }

    #[test]
    fn an_estimate_moves_only_auto_to_the_cpu() {
        let timings = || Arc::new(Timings::new(false));
        let device = Device::new(&DeviceChoice::Auto, timings());
        assert_eq!(device.name(), None);
        device.expect(|| Estimate::of_seconds(0.01, 0.0));
        assert_eq!(device.name().as_deref(), Some("CPU"));
        assert_eq!(device.run(&Unsteady, &()).unwrap(), "cpu");
        // What was asked for by name is opened all the same.
        let device = Device::new(&DeviceChoice::Name("no such device".into()), timings());
        device.expect(|| Estimate::of_seconds(0.0, 0.0));
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
