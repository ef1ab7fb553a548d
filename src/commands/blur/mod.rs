//! `gpuproc blur`: Gaussian and box blur of images and volumes.

mod bands;
mod compare;
mod estimate;
mod flags;
mod image;
mod slabs;
mod zarr;

use crate::{
    batch::Work,
    commands::{each_file::each_file, flags::Share},
    error::{Error, Result},
    io::{
        Sink, Source,
        image::{is_jpeg, sample_bytes},
        losses,
        marker::Marker,
        standard,
        volume::{Endian, Layout, VolumeFile, VolumeTarget, are_many, can_reopen, is_zarr_output},
    },
    kernels::blur::{Method, Taps, blur_volume},
    progress::printable,
    session::Session,
};

pub use flags::Args;
use flags::{Job, Jobs, Plan, Settings};

/// Blurs one file or several.
///
/// # Errors
/// When reading, blurring or writing fails; [`Kind::Partial`](crate::error::Kind::Partial) when this concerns
/// some of several files.
pub fn run(args: Args, session: &Session) -> Result<()> {
    let Plan { mut sources, jobs, settings, share, dry_run } = args.plan()?;
    if dry_run {
        return sources.iter().try_for_each(|source| describe(&jobs.of(source)?));
    }
    if let (Some(shard), 1, false) = (share.shard, sources.len(), settings.makes_many()) {
        let job = &jobs.of(sources.get(0))?;
        let Some(layout) = &job.volume else {
            return Err(Error::usage(format_args!(
                "{}: shards are slices of a volume, or files with -o DIR/; one picture has none",
                job.source
            )));
        };
        session.device.expect(|| estimate::of_files(&sources, &jobs));
        let blur = || match is_zarr_output(&job.sink) {
            true => zarr::run(job, layout, Some(shard), session),
            false => slabs::run(job, layout, shard, session),
        };
        return session.logged(&job.source, Some(&job.sink), blur);
    }
    let work = Files { jobs, settings, share, session };
    if share.resumes {
        let is_left =
            |source: &Source| !work.job(source.clone()).is_ok_and(|job| work.is_done(&job));
        sources = sources.iter().filter(is_left).collect();
    }
    session.device.expect(|| estimate::of_files(&sources, &work.jobs));
    if sources.len() == 1 {
        let job = work.job(sources.get(0))?;
        return session.logged(&job.source, Some(&job.sink), || work.run(&job));
    }
    each_file("blur", &work, &sources, session)
}

/// Prints a line that says what would be done with a file (`--dry-run`).
fn describe(job: &Job) -> Result<()> {
    if !are_many(&job.source) {
        job.source.size()?;
    }
    let how = job.how();
    let line = format!("{} -> {}: {how}", job.source, job.sink);
    standard::print(&format!("{}\n", printable(&line)))
}

impl Job {
    /// The blur in words.
    pub(super) fn how(&self) -> String {
        let axes = if self.volume.is_some() { 3 } else { 2 };
        let each = |text: &dyn Fn(&Taps) -> String| {
            let texts: Vec<String> = self.blur.axes[..axes].iter().map(text).collect();
            texts.join(",")
        };
        let radius = each(&|axis| axis.radius.to_string());
        match self.blur.method {
            Method::Gaussian => {
                format!("sigma {}, radius {radius}", each(&|axis| axis.sigma.to_string()))
            }
            Method::Box => format!("box of radius {radius}"),
        }
    }
}

/// Reads, blurs and writes one file.
fn process(job: &Job, settings: &Settings, session: &Session) -> Result<()> {
    job.make_folder()?;
    match &job.volume {
        _ if job.compares => compare::process(job, settings, session)?,
        Some(layout) if is_zarr_output(&job.sink) => zarr::run(job, layout, None, session)?,
        Some(layout) => process_volume(job, layout, session)?,
        None if bands::run(job, settings, session)? => {}
        None => image::process(job, settings, session)?,
    }
    session.timings.add_result(|| {
        let axes = &job.blur.axes[..if job.volume.is_some() { 3 } else { 2 }];
        serde_json::json!({
            "input": job.source.to_string(),
            "file": job.sink.to_string(),
            "sigma": axes.iter().map(|axis| axis.sigma).collect::<Vec<_>>(),
            "radius": axes.iter().map(|axis| axis.radius).collect::<Vec<_>>(),
        })
    });
    Ok(())
}

fn process_volume(job: &Job, layout: &Layout, session: &Session) -> Result<()> {
    let file = VolumeFile::describe(&job.source, layout)?;
    let endian = layout.endian.unwrap_or(Endian::Little);
    let target = VolumeTarget::new(&job.sink, &file, endian)?;
    if let Some(lost) = target.losses() {
        losses::tell(&job.sink, lost, session.strict)?;
    }
    if let Some(slab) = slabs::streamed(job, &file, session)? {
        return slabs::stream(job, &file, &target, slab, session);
    }
    let volume = file.read(session.limits(job.copies()), &session.timings)?;
    let blurred = blur_volume(&session.device, &job.blur, volume)
        .map_err(|error| error.context(format_args!("cannot blur {}", job.source)))?;
    target.write(blurred, session.no_clobber, &session.timings)
}

struct Files<'a> {
    jobs: Jobs,
    settings: Settings,
    share: Share,
    session: &'a Session,
}

impl Files<'_> {
    /// The marker file that records a finished job, for `--resume`.
    fn marker(&self, job: &Job) -> Result<Option<Marker>> {
        let parameters = (&job.blur, &job.volume, job.format, &job.pyramid, &self.settings);
        // The result does not depend on which shard does the file.
        let share = Share { shard: None, ..self.share };
        share.marker(self.session, ("blur", &parameters), [&job.source], [&job.sink])
    }

    /// Whether a job is finished already; if so, an event says that it is skipped.
    fn is_done(&self, job: &Job) -> bool {
        let is_done = matches!(self.marker(job), Ok(Some(marker)) if marker.is_done());
        if is_done {
            self.session.events.skipped(&job.source, Some(&job.sink));
        }
        is_done
    }
}

impl Work for Files<'_> {
    type Job = Job;
    type Out = ();

    fn job(&self, source: Source) -> Result<Job> {
        self.jobs.of(source)
    }

    fn sink<'j>(&self, job: &'j Job) -> Option<&'j Sink> {
        Some(&job.sink)
    }

    fn memory(&self, job: &Job) -> Option<u64> {
        let samples = match &job.volume {
            // A pipe can be read only once.
            Some(_) if !can_reopen(&job.source) => return None,
            Some(layout) => VolumeFile::describe(&job.source, layout).ok()?.bytes()?,
            None => sample_bytes(&job.source)?,
        };
        Some(samples.saturating_mul(job.copies()))
    }

    fn run(&self, job: &Job) -> Result<()> {
        let marker = self.marker(job)?;
        let is_exact = || !job.blur.linear && job.volume.is_none() && is_jpeg(&job.source);
        process(job, &self.settings, &self.session.for_file(is_exact))?;
        marker.map_or(Ok(()), |marker| marker.write())
    }
}
