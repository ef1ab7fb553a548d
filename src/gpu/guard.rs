//! wgpu's device and queue, with each of their failures as an error: broken rules, panics, lost devices, endless
//! waits.

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

static HUNG: AtomicBool = AtomicBool::new(false);
/// Whether some driver is loaded, or about to be.
static DRIVER: AtomicBool = AtomicBool::new(false);

/// Notes that a driver becomes part of this process.
pub fn set_driver_loaded() {
    DRIVER.store(true, Ordering::Relaxed);
}

/// Notes that a device does not answer.
pub fn set_device_hung() {
    HUNG.store(true, Ordering::Relaxed);
}

/// Whether a driver is part of this process, which then goes down with it.
pub fn is_driver_loaded() -> bool {
    DRIVER.load(Ordering::Relaxed)
}

/// Whether some device has not answered in time. To close it, or to end the process in an orderly way,
/// could then take for ever.
pub fn has_device_hung() -> bool {
    HUNG.load(Ordering::Relaxed)
}

/// The first failure that no call returned: wgpu reports it to a callback, at any time and on any
/// thread. A device with such a failure is not used any more.
#[derive(Clone, Debug, Default)]
struct LastWords(Arc<Mutex<Option<String>>>);

impl LastWords {
    /// Receives the failures of `device`.
    fn of(device: &wgpu::Device) -> Self {
        let words = Self::default();
        let (uncaught, lost) = (words.clone(), words.clone());
        device.on_uncaptured_error(Arc::new(move |error| uncaught.set(&error.to_string())));
        device.set_device_lost_callback(move |reason, text| {
            lost.set(&format!("device lost ({reason:?}): {text}"));
        });
        words
    }

    fn set(&self, text: &str) {
        let mut words = self.0.lock().expect("no holder of this lock panics");
        words.get_or_insert_with(|| text.to_owned());
    }

    fn get(&self) -> Option<String> {
        self.0.lock().expect("no holder of this lock panics").clone()
    }
}

/// The start of wgpu's panic message when a wait times out and another thread's wait empties the queue before this one
/// looks at it. The next wait succeeds.
const EMPTIED: &str = "If the queue is empty, the current submission index";

/// wgpu's device and queue.
#[derive(Debug)]
pub(super) struct Driver {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    /// The device's name, for messages.
    name: String,
    timeout: Duration,
    injected: InjectedFault,
    last_words: LastWords,
}

impl Driver {
    /// The device called `name`. A wait lasts `timeout` at most.
    pub fn new(
        name: String,
        (device, queue): (wgpu::Device, wgpu::Queue),
        timeout: Duration,
        injected: InjectedFault,
    ) -> Self {
        let last_words = LastWords::of(&device);
        Self { device, queue, name, timeout, injected, last_words }
    }

    /// How long one wait may last.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Runs `work`, which calls wgpu.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::util::error::Kind::Gpu) for what goes wrong in `work`: a broken rule, too little memory, a panic.
    pub fn guarded<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        let validation = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let memory = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let internal = self.device.push_error_scope(wgpu::ErrorFilter::Internal);
        let result = catch_unwind(AssertUnwindSafe(|| watched("a call", work)));
        let scopes = [internal, memory, validation].map(|scope| pollster::block_on(scope.pop()));
        let value = result.map_err(|panic| Error::gpu(panic_text(panic)))?;
        let failure = scopes.into_iter().flatten().next();
        if failure.is_some() {
            // A lost device says so at the end of a wait. What is returned is the failure itself.
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

    /// Whether the device can still be used.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when it was lost, hangs, or failed in a way that leaves its state
    /// unknown.
    pub fn check(&self) -> Result<()> {
        self.last_words.get().map_or(Ok(()), |words| Err(Error::gpu(words)))
    }

    /// Calls the callbacks of what is done.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn poll(&self) -> Result<()> {
        // wgpu panics when the device is lost.
        catch_unwind(AssertUnwindSafe(|| {
            watched("a poll", || self.device.poll(wgpu::PollType::Poll))
        }))
        .map_err(|panic| Error::gpu(panic_text(panic)))?
        .map_err(Error::gpu)?;
        self.check()
    }

    /// Waits until the submission is done, or everything submitted so far when none is given.
    ///
    /// # Errors
    /// As [`Self::check`], and when the device refuses its work or does not answer within [`Self::timeout`].
    pub fn wait_for(&self, submission_index: Option<wgpu::SubmissionIndex>) -> Result<()> {
        // wgpu panics when the device is lost during the wait.
        let poll = |timeout| {
            let submission_index = submission_index.clone();
            let poll = wgpu::PollType::Wait { submission_index, timeout: Some(timeout) };
            let wait = AssertUnwindSafe(|| watched("a wait", || self.device.poll(poll)));
            match catch_unwind(wait).map_err(panic_text) {
                Ok(Err(wgpu::PollError::Timeout)) => None,
                Err(text) if text.starts_with(EMPTIED) => None,
                polled => Some(polled),
            }
        };
        let polled = wait_in_steps(self.timeout, poll).unwrap_or(Ok(Err(wgpu::PollError::Timeout)));
        let polled = polled.map_err(Error::gpu)?;
        let injected = self.can_fail(Fault::Hang).map_err(|error| error.to_string());
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
            self.last_words.set(&what);
            return Err(Error::gpu(format_args!("{what}: {cause}")));
        }
        self.check()
    }

    /// A place where `fault` can occur: it does when [`Restrictions::fault`](super::Restrictions::fault) asks for it here.
    ///
    /// # Errors
    /// That of the fault, where the fault shows at once.
    pub fn can_fail(&self, fault: Fault) -> Result<()> {
        if !self.injected.occurs(fault) {
            return Ok(());
        }
        match fault {
            Fault::Lose => self.device.destroy(),
            Fault::Invalid => self.guarded(|| self.break_a_rule())?,
            Fault::Uncaught => self.break_a_rule(),
            Fault::Panic => self.guarded(|| panic!("injected fault: Panic"))?,
            _ => return Err(Error::gpu(format_args!("injected fault: {fault:?}"))),
        }
        Ok(())
    }

    /// Asks for a buffer that no API allows.
    fn break_a_rule(&self) {
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
