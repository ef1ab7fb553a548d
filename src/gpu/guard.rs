//! wgpu's device and queue. All of their failures become errors: broken rules, panics, lost devices, endless waits.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{
    Fault,
    fault::InjectedFault,
    watch::{wait_in_steps, watched},
};
use crate::util::error::{Error, Result};

static DEVICE_HUNG: AtomicBool = AtomicBool::new(false);
static DRIVER_LOADED: AtomicBool = AtomicBool::new(false);

/// Records that this process loads a driver.
pub fn set_driver_loaded() {
    DRIVER_LOADED.store(true, Ordering::Relaxed);
}

/// Records that a device does not answer.
pub fn set_device_hung() {
    DEVICE_HUNG.store(true, Ordering::Relaxed);
}

/// Whether this process has loaded a driver, whose crash would end it.
pub fn is_driver_loaded() -> bool {
    DRIVER_LOADED.load(Ordering::Relaxed)
}

/// Whether a device did not answer in time. Closing it, or an orderly end of the process, may then never return.
pub fn has_device_hung() -> bool {
    DEVICE_HUNG.load(Ordering::Relaxed)
}

/// The first failure of a device that wgpu did not return from a call, but reported to a callback, at any time and on
/// any thread. A device with such a failure is not used any more.
#[derive(Clone, Debug, Default)]
struct FirstFailure(Arc<Mutex<Option<String>>>);

impl FirstFailure {
    /// Registers callbacks for the failures of `device`.
    fn watch(device: &wgpu::Device) -> Self {
        let failure = Self::default();
        let (uncaptured, lost) = (failure.clone(), failure.clone());
        device.on_uncaptured_error(Arc::new(move |error| uncaptured.set(&error.to_string())));
        device.set_device_lost_callback(move |reason, text| {
            lost.set(&format!("device lost ({reason:?}): {text}"));
        });
        failure
    }

    fn set(&self, text: &str) {
        let mut failure = self.0.lock().expect("no holder of this lock panics");
        failure.get_or_insert_with(|| text.to_owned());
    }

    fn get(&self) -> Option<String> {
        self.0.lock().expect("no holder of this lock panics").clone()
    }
}

/// Start of wgpu's panic message when a wait times out while another thread's wait empties the queue. The next wait
/// succeeds.
const QUEUE_EMPTIED: &str = "If the queue is empty, the current submission index";

/// wgpu's device and queue.
#[derive(Debug)]
pub(super) struct Driver {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    /// The device's name, for messages.
    name: String,
    /// Longest duration of a wait.
    pub timeout: Duration,
    injected: InjectedFault,
    failure: FirstFailure,
}

impl Driver {
    pub fn new(
        name: String,
        (device, queue): (wgpu::Device, wgpu::Queue),
        timeout: Duration,
        injected: InjectedFault,
    ) -> Self {
        let failure = FirstFailure::watch(&device);
        Self { device, queue, name, timeout, injected, failure }
    }

    /// Runs `work`, which calls wgpu. A broken rule, a lack of memory or a panic becomes an error.
    pub fn guarded<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        let validation = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let memory = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let internal = self.device.push_error_scope(wgpu::ErrorFilter::Internal);
        let result = catch_unwind(AssertUnwindSafe(|| watched("a call", work)));
        let scopes = [internal, memory, validation].map(|scope| pollster::block_on(scope.pop()));
        let value = result.map_err(|panic| Error::gpu(panic_text(panic)))?;
        let failure = scopes.into_iter().flatten().next();
        if failure.is_some() {
            // The end of a wait reports whether the device is lost. The caller gets the failure itself.
            let _ = self.wait_for(None);
        }
        match failure {
            Some(wgpu::Error::OutOfMemory { .. }) => {
                Err(Error::gpu(format_args!("{} is out of memory", self.name)))
            }
            Some(error) => Err(Error::gpu(error)),
            None => Ok(value),
        }
    }

    /// Returns an error if the device was lost, hangs, or failed in a way that leaves its state unknown.
    pub fn check(&self) -> Result<()> {
        self.failure.get().map_or(Ok(()), |failure| Err(Error::gpu(failure)))
    }

    /// Calls the callbacks of all work that is done.
    pub fn poll(&self) -> Result<()> {
        self.watched_poll("a poll", wgpu::PollType::Poll)
            .map_err(Error::gpu)?
            .map_err(Error::gpu)?;
        self.check()
    }

    /// Polls the device. wgpu panics when the device is lost meanwhile: returns the message of the panic as the outer
    /// error.
    fn watched_poll(
        &self,
        call: &'static str,
        poll: wgpu::PollType,
    ) -> Result<Result<wgpu::PollStatus, wgpu::PollError>, String> {
        let poll = AssertUnwindSafe(|| watched(call, || self.device.poll(poll)));
        catch_unwind(poll).map_err(panic_text)
    }

    /// Waits until the submission is done, or everything submitted so far if none is given.
    pub fn wait_for(&self, submission_index: Option<wgpu::SubmissionIndex>) -> Result<()> {
        let poll = |timeout| {
            let submission_index = submission_index.clone();
            let poll = wgpu::PollType::Wait { submission_index, timeout: Some(timeout) };
            match self.watched_poll("a wait", poll) {
                Ok(Err(wgpu::PollError::Timeout)) => None,
                Err(text) if text.starts_with(QUEUE_EMPTIED) => None,
                polled => Some(polled),
            }
        };
        let polled = wait_in_steps(self.timeout, poll);
        let polled = polled.unwrap_or(Ok(Err(wgpu::PollError::Timeout)));
        let polled = polled.map_err(Error::gpu)?;
        let injected = self.inject(Fault::Hang).map_err(|error| error.to_string());
        if matches!(polled, Err(wgpu::PollError::Timeout)) {
            set_device_hung();
        }
        let what = match polled {
            // There is nothing to wait for.
            Err(wgpu::PollError::WrongSubmissionIndex(..)) => "refused its work",
            _ => "does not answer",
        };
        if let Err(cause) = injected.and(polled.map(drop).map_err(|error| error.to_string())) {
            let what = format!("{} {what}", self.name);
            self.failure.set(&what);
            return Err(Error::gpu(format_args!("{what}: {cause}")));
        }
        self.check()
    }

    /// An occasion for `fault`, which occurs if [`Restrictions::fault`](super::Restrictions::fault) asks for it.
    /// Returns its error if it shows at once.
    pub fn inject(&self, fault: Fault) -> Result<()> {
        if !self.injected.occurs(fault) {
            return Ok(());
        }
        match fault {
            Fault::Lose => self.device.destroy(),
            Fault::Invalid => self.guarded(|| self.make_invalid_call())?,
            Fault::Uncaught => self.make_invalid_call(),
            Fault::Panic => self.guarded(|| panic!("injected fault: Panic"))?,
            _ => return Err(Error::gpu(format_args!("injected fault: {fault:?}"))),
        }
        Ok(())
    }

    /// Creates a buffer whose usages no API allows together.
    fn make_invalid_call(&self) {
        let _ = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("injected"),
            size: 4,
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::MAP_WRITE,
            mapped_at_creation: false,
        });
    }
}

/// The message of a caught panic.
pub fn panic_text(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("driver panic").to_owned()
}
