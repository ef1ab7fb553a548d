//! Failures of drivers and devices as errors: error scopes, panics, lost devices, endless waits.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{Context, Fault};
use crate::error::{Error, Result};

/// How long one wait for a device may last before it counts as hung.
pub const PATIENCE: Duration = Duration::from_secs(60);

static HUNG: AtomicBool = AtomicBool::new(false);

/// Whether some device has not answered in time. To close it, or to end the process in an orderly way,
/// could then take for ever.
pub fn any_hung() -> bool {
    HUNG.load(Ordering::Relaxed)
}

/// The first failure that no call returned: wgpu reports it to a callback, at any time and on any
/// thread. A device with such a failure is not used any more.
#[derive(Clone, Debug, Default)]
pub struct LastWords(Arc<Mutex<Option<String>>>);

impl LastWords {
    /// Receives the failures of `device`.
    pub fn of(device: &wgpu::Device) -> Self {
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

impl Context {
    /// Runs `work`, which calls wgpu, and returns whatever goes wrong there as an error: a broken rule, too
    /// little memory, a panic.
    pub(super) fn guarded<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        let validation = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let memory = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let internal = self.device.push_error_scope(wgpu::ErrorFilter::Internal);
        let result = catch_unwind(AssertUnwindSafe(work));
        let scopes = [internal, memory, validation].map(|scope| pollster::block_on(scope.pop()));
        let value = result.map_err(|panic| Error::gpu(panic_text(panic)))?;
        let failure = scopes.into_iter().flatten().next();
        if failure.is_some() {
            // A lost device says so at the end of a wait. What is returned is the failure itself.
            let _ = self.wait();
        }
        match failure {
            Some(wgpu::Error::OutOfMemory { .. }) => {
                Err(Error::gpu(format_args!("{} is out of memory", self.info.name)))
            }
            Some(error) => Err(Error::gpu(error)),
            None => Ok(value),
        }
    }

    /// Whether the device was lost, hangs, or failed in a way that leaves its state unknown.
    pub fn is_lost(&self) -> bool {
        self.check().is_err()
    }

    /// An error when the device is lost.
    pub(super) fn check(&self) -> Result<()> {
        self.last_words.get().map_or(Ok(()), |words| Err(Error::gpu(words)))
    }

    /// Waits until everything submitted so far is done.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device is lost or does not answer in a minute.
    pub fn wait(&self) -> Result<()> {
        self.wait_for(None)
    }

    /// Calls the callbacks of what is done.
    pub(super) fn poll(&self) -> Result<()> {
        // wgpu panics when the device is lost.
        catch_unwind(AssertUnwindSafe(|| self.device.poll(wgpu::PollType::Poll)))
            .map_err(|panic| Error::gpu(panic_text(panic)))?
            .map_err(Error::gpu)?;
        self.check()
    }

    /// Waits until `submission` is done, or everything when there is none.
    pub(super) fn wait_for(&self, submission_index: Option<wgpu::SubmissionIndex>) -> Result<()> {
        let poll = wgpu::PollType::Wait { submission_index, timeout: Some(self.patience) };
        // wgpu panics when the device is lost during the wait.
        let polled = catch_unwind(AssertUnwindSafe(|| self.device.poll(poll)))
            .map_err(|panic| Error::gpu(panic_text(panic)))?
            .map_err(|error| error.to_string());
        let planted = self.can_fail(Fault::Hang).map_err(|error| error.to_string());
        if polled.is_err() {
            HUNG.store(true, Ordering::Relaxed);
        }
        if let Err(cause) = planted.and(polled.map(drop)) {
            let what = format!("{} does not answer", self.info.name);
            self.last_words.set(&what);
            return Err(Error::gpu(format_args!("{what}: {cause}")));
        }
        self.check()
    }
}

/// The message of a caught panic.
pub fn panic_text(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("driver panic").to_owned()
}
