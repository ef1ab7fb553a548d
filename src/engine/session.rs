//! Context of a command.

use std::{
    env,
    fmt::Display,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use crate::{
    data::grid::Shape,
    device::Device,
    engine::{
        events::Events,
        progress::{Bar, Progress},
    },
    flow::host::{Advance, Host},
    io::{
        Limits, Sink, Source,
        file_roles::FileRoles,
        folders::forget_folders,
        image::{Encoding, ImageFormat, ImageTarget},
        temporary_file, temporary_folder,
    },
    kernels::filter::Filter,
    util::{
        error::{Error, Result},
        memory,
        spill::Workspace,
        timings::Timings,
    },
};

/// Context of a command: device, timings, log, progress bars, and the limits and policies of the user.
#[derive(Debug)]
pub struct Session {
    /// Runs kernels.
    pub device: Arc<Device>,
    /// Records how long stages take.
    pub timings: Arc<Timings>,
    /// The log of `--log-json`.
    pub events: Arc<Events>,
    /// Creates progress bars.
    pub progress: Progress,
    /// Bytes that inputs and results may take.
    pub max_memory: u64,
    /// Maximum bytes of a filter's tables. In a batch, each file has a share of the memory.
    pub max_tables: u64,
    /// Pixels or samples that an input may have.
    pub max_pixels: u64,
    /// Whether losses are errors rather than warnings: a missing part of an input, or data that an output cannot hold.
    pub strict: bool,
    /// Whether an existing output is an error.
    pub no_clobber: bool,
    /// Whether a note about a changed aspect ratio has been printed.
    pub has_noted_distortion: Arc<AtomicBool>,
    /// Long names of the flags that come from the environment. They are defaults for many runs: a run that cannot use
    /// one of them ignores it.
    pub defaults: Vec<String>,
}

impl Session {
    /// Runs `work`, which makes `output` from `input`, and logs its success. Errors are logged at the end of the run.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn run_logged<T>(
        &self,
        input: &Source,
        output: Option<&Sink>,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let started = Instant::now();
        // A progress bar would overwrite what the user types, or what the run prints, on the terminal.
        let is_silent = matches!((input, output), (Source::File(_), Some(Sink::File(_))));
        let stage_line = is_silent.then(|| self.progress.stage_line(&self.timings));
        let skipped = self.events.skipped_files();
        let done = work()?;
        drop(stage_line);
        // The work may find that an earlier run has done it.
        if self.events.skipped_files() == skipped {
            self.events.done(input, output, started.elapsed());
        }
        Ok(done)
    }

    /// Checks that the run does not use one file for two purposes, even under two names, then opens the log. `declare`
    /// states the files and how the run uses them. A command calls this before it reads or writes any of them.
    ///
    /// # Errors
    /// `Kind::Usage` for a file with two uses, and when the log cannot be opened.
    pub fn check_files(&self, declare: impl FnOnce(&mut FileRoles) -> Result<()>) -> Result<()> {
        forget_folders();
        let mut roles = self.file_roles();
        let config = env::var_os("GPUPROC_CONFIG_PATH").filter(|path| !path.is_empty());
        let config = config.map(|path| Source::from(PathBuf::from(path)));
        let read = |config: &Source| roles.reads("GPUPROC_CONFIG_PATH", config);
        let declared = config.as_ref().map_or(Ok(()), read).and_then(|()| declare(&mut roles));
        if roles.has_log_conflict {
            self.events.give_up();
        }
        declared.and_then(|()| self.events.open())
    }

    /// The files of a run. At first, this is only the log.
    pub fn file_roles(&self) -> FileRoles {
        FileRoles::with_log("--log-json", self.events.log())
    }

    /// The session for one file of a batch. If the result is the same on every device (`is_exact`), the CPU may process
    /// the file (see [`Device::device_for_part`]).
    pub fn for_file(&self, is_exact: impl FnOnce() -> bool) -> Self {
        let shares = self.device.is_shared() && is_exact();
        Self {
            device: if shares { self.device.device_for_part() } else { self.device.clone() },
            timings: self.timings.clone(),
            events: self.events.clone(),
            has_noted_distortion: self.has_noted_distortion.clone(),
            defaults: Vec::new(),
            ..*self
        }
    }

    /// The target for writing an image to `sink`.
    pub fn image_target<'a>(
        &'a self,
        sink: &'a Sink,
        format: ImageFormat,
        encoding: Encoding,
    ) -> ImageTarget<'a> {
        let mut target = ImageTarget::new(sink, format, encoding, &self.timings);
        (target.no_clobber, target.strict) = (self.no_clobber, self.strict);
        target
    }

    /// Notes once in a run that `filter` changes the aspect ratio of `source`, an image of size `shape`.
    pub fn note_distortion(&self, source: &Source, filter: &dyn Filter, shape: Shape) {
        if filter.distorts(shape) && !self.has_noted_distortion.swap(true, Ordering::Relaxed) {
            log::info!(
                "{source}: the aspect ratio changes; --fit keeps it, and --fill cuts off what does not fit"
            );
        }
    }

    /// Error for `what`, which takes `needed` bytes, more than the memory limit.
    pub fn exceeds_memory(&self, what: impl Display, needed: u64) -> Error {
        memory::exceeds_limit(what, needed, self.max_memory)
    }

    /// Limits of an input that is held in memory `copies` times.
    pub fn limits(&self, copies: u64) -> Limits {
        let &Self { max_memory: memory, max_pixels: pixels, strict, .. } = self;
        Limits { memory, copies, pixels, strict }
    }
}

impl Host for Session {
    fn device(&self) -> &Device {
        &self.device
    }

    fn workspace(&self, spare: u64) -> Workspace {
        let create_file = || temporary_file(&temporary_folder());
        Workspace { bytes: spare.min(self.max_tables), create_file }
    }

    fn start(&self, title: &str, bytes: u64) -> Box<dyn Advance> {
        Box::new(self.progress.bytes(title, bytes))
    }
}

impl Advance for Bar {
    fn advance(&mut self, bytes: u64) -> Result<()> {
        Self::advance(self, bytes);
        Ok(())
    }
}
