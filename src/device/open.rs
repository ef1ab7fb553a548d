//! Finds the adapters that a choice selects, and opens them on another thread.

use std::{
    env, fmt, io, iter,
    path::Path,
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread::{self, ScopedJoinHandle},
};

use super::DeviceChoice;
use crate::{
    gpu::{
        Adapter, Context, Restrictions, adapters, driver_timeout, panic_text, set_device_hung,
        set_driver_loaded, wait_in_steps, watched,
    },
    util::{
        error::{Error, Hint, Kind, Result},
        timings::Timings,
    },
};

/// The receiver of the GPUs that another thread opens. The channel is closed if that thread panics.
#[derive(Debug)]
pub struct Opening(pub(super) Receiver<Result<Vec<Context>>>);

impl Opening {
    /// Starts to open the devices that `choice` selects.
    pub fn start(choice: &DeviceChoice, timings: &Arc<Timings>) -> Self {
        set_driver_loaded();
        let (sender, opening) = mpsc::channel();
        let task = || {
            let (choice, timings, sender) = (choice.clone(), timings.clone(), sender.clone());
            move || {
                let opened = timings.time("device start-up", || open(&choice, &timings));
                // Without a receiver the opened devices are closed again.
                let _ = sender.send(opened);
            }
        };
        // If the system grants no further thread, this one opens them.
        if thread::Builder::new().spawn(task()).is_err() {
            watched("a start", task());
        }
        Self(opening)
    }

    /// The result of the thread, if it has one already.
    pub fn result(&self) -> Option<Result<Vec<Context>>> {
        self.0.try_recv().ok()
    }

    /// Waits for the result of the thread, up to [`driver_timeout`].
    pub fn wait(&self) -> Result<Vec<Context>> {
        let attempt = |wait| match self.0.recv_timeout(wait) {
            Err(RecvTimeoutError::Timeout) => None,
            opened => Some(opened),
        };
        match wait_in_steps(driver_timeout(), attempt) {
            Some(Ok(opened)) => opened,
            Some(Err(_)) => Err(Error::gpu("the driver crashed while it started")),
            None => {
                set_device_hung();
                Err(Error::gpu("the driver does not answer while it starts"))
            }
        }
    }
}

/// Index of the adapter that [`DeviceChoice::Auto`] selects.
pub fn automatic(adapters: &[Adapter]) -> Option<usize> {
    adapters.iter().position(|adapter| adapter.info.is_hardware() || takes_software())
}

/// Whether [`DeviceChoice::Auto`] treats software Vulkan as hardware, for tests on machines without a GPU.
pub(super) fn takes_software() -> bool {
    env::var_os("GPUPROC_TEST_AUTO").is_some_and(|value| value == "software")
}

/// Whether this machine may have a hardware GPU. On Linux, device files show this without the start of a graphics
/// driver, which takes a third of a second even if it finds only software Vulkan.
pub(super) fn may_have_hardware() -> bool {
    if !cfg!(target_os = "linux") || takes_software() {
        return true;
    }
    ["/dev/dri", "/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg", "/dev/kgsl-3d0", "/dev/mali0"]
        .iter()
        .any(|path| Path::new(path).exists())
}

/// Opens the devices that `choice` selects: none for the CPU, or if [`DeviceChoice::Auto`] finds no hardware.
fn open(choice: &DeviceChoice, timings: &Arc<Timings>) -> Result<Vec<Context>> {
    let adapters = adapters();
    let first = |index: Option<usize>| index.into_iter().collect();
    let found: Vec<usize> = match choice {
        DeviceChoice::Cpu => Vec::new(),
        DeviceChoice::Auto => first(automatic(&adapters)),
        DeviceChoice::Gpu => first((!adapters.is_empty()).then_some(0)),
        DeviceChoice::All => equal_adapters(&adapters),
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

/// Opens `adapters` in parallel, the first one on this thread.
fn open_all<'a>(
    mut adapters: impl Iterator<Item = &'a Adapter>,
    timings: &Arc<Timings>,
) -> Result<Vec<Context>> {
    let Some(first) = adapters.next() else { return Ok(Vec::new()) };
    // Tests run the routes for hardware on software Vulkan.
    let as_hardware = env::var_os("GPUPROC_TEST_HARDWARE").is_some_and(|value| value == "1");
    let restrictions = Restrictions { as_hardware, ..Restrictions::default() };
    thread::scope(|scope| {
        let open = |adapter| Context::open(adapter, &restrictions, timings.clone());
        let start = |adapter| thread::Builder::new().spawn_scoped(scope, move || open(adapter));
        let others: Vec<_> = adapters.map(start).collect::<io::Result<_>>().map_err(Error::gpu)?;
        let wait = |thread: ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| Err(Error::gpu(panic_text(panic))))
        };
        iter::once(open(first)).chain(others.into_iter().map(wait)).collect()
    })
}

/// Indices of the adapters that [`DeviceChoice::All`] selects: the first, and hardware of the same model and driver. In
/// tests, the first adapter `GPUPROC_TEST_GPUS` times, even if it is software.
fn equal_adapters(adapters: &[Adapter]) -> Vec<usize> {
    let Some(first) = adapters.first() else { return Vec::new() };
    let times = env::var("GPUPROC_TEST_GPUS").ok().and_then(|times| times.parse().ok());
    if let Some(times) = times {
        return vec![0; times];
    }
    let is_equal = |adapter: &Adapter| adapter.info.is_hardware() && adapter.info == first.info;
    iter::once(0).chain((1..adapters.len()).filter(|&at| is_equal(&adapters[at]))).collect()
}

fn missing(message: impl fmt::Display, hint: Hint) -> Error {
    Error::new(Kind::NoDevice, message).with_hint(hint)
}
