//! Filters one file or a batch. Handles `--resume`, `--shard` and the choice of the device.

use super::{
    compare, image,
    job::{Job, Settings, Side},
    volume,
};
use crate::{
    data::shard::Shard,
    device::{Estimate, sum_of_all},
    engine::{
        batch::{Work, run_batch, run_marked},
        hints,
        progress::printable,
        session::Session,
    },
    flow::FilterCost,
    io::{
        Finished, Sink, Source, Sources, allow_broken_pipe,
        identity::Identity,
        image::{ImageFormat, has_jpeg_name, is_jpeg, jpeg, planned_size, sample_bytes},
        marker::Marker,
        standard,
        volume::{can_reopen, is_multi_file},
    },
    util::error::{Error, Result},
};

/// Creates the job of an input. Jobs are created only when they run, since a job takes many times the memory of a file
/// name.
pub type CreateJob<'a> = &'a (dyn Fn(Source) -> Result<Job> + Sync);

/// Filters one file or several.
///
/// # Errors
/// When reading, filtering or writing fails; [`Kind::Partial`](crate::util::error::Kind::Partial) when this concerns
/// some of several files.
pub fn run(
    sources: Sources,
    create_job: CreateJob<'_>,
    settings: Settings,
    session: &Session,
) -> Result<()> {
    if settings.dry_run {
        let mut failed = 0;
        for source in sources.iter() {
            match create_job(source).and_then(|job| describe(&job)) {
                Err(error) if sources.len() > 1 => {
                    log::error!("{}", hints::line(&error));
                    failed += 1;
                }
                described => described?,
            }
        }
        return Error::if_any_failed(failed, sources.len(), "files");
    }
    if let (Some(shard), 1, false) = (settings.shard, sources.len(), settings.is_batch) {
        let job = &create_job(sources.get(0))?;
        let Some(layout) = job.volume.as_ref().filter(|_| job.format.is_none()) else {
            return Err(Error::usage(format_args!(
                "{}: a single image cannot be sharded; --shard needs a volume, or several files with -o DIR/",
                job.source
            )));
        };
        session.device.set_estimate(|| estimate(&sources, create_job));
        let process = || {
            let encoding = settings.encoding;
            volume::process(job, layout, encoding, Some(shard), session)?;
            job.finish_side()
        };
        return session.run_logged(&job.source, Some(&job.sink), process);
    }
    let title = match sources.is_empty() {
        true => "files",
        false => create_job(sources.get(0)).map_or("files", |job| job.filter.name()),
    };
    let work = Files { create_job, settings, session };
    let set_estimate = |left: &Sources| session.device.set_estimate(|| estimate(left, create_job));
    run_each((title, settings.resumes), &work, sources, session, set_estimate)
}

/// Does `work` for all `sources`, several at a time. `title` names the work in the progress bar. If `resumes` is set,
/// finished files are skipped. `set_estimate` chooses the device for the files that are left. A file that fails is
/// reported and skipped, unless it is the only file.
///
/// # Errors
/// [`Kind::Partial`](crate::util::error::Kind::Partial) when some files fail, and those of [`run_batch`].
pub fn run_each<W: Work>(
    (title, resumes): (&'static str, bool),
    work: &W,
    mut sources: Sources,
    session: &Session,
    set_estimate: impl FnOnce(&Sources),
) -> Result<()> {
    if resumes {
        let is_unfinished = |source: &Source| {
            let job = work.job(source.clone());
            !job.is_ok_and(|job| is_done(work, source, &job, session))
        };
        sources = sources.iter().filter(is_unfinished).collect();
    }
    set_estimate(&sources);
    if sources.len() == 1 {
        let source = sources.get(0);
        let job = work.job(source.clone())?;
        return session.run_logged(&source, work.sink(&job), || run_marked(work, &job)).map(drop);
    }
    let mut failed = 0;
    run_batch(work, title, &sources, session, |_, result| {
        if let Err(error) = result {
            log::error!("{}", hints::line(&error));
            failed += 1;
        }
        Ok(())
    })?;
    Error::if_any_failed(failed, sources.len(), "files")
}

/// Whether a job has been finished by an earlier run; if so, logs that it is skipped.
fn is_done<W: Work>(work: &W, source: &Source, job: &W::Job, session: &Session) -> bool {
    let is_done = matches!(work.marker(job), Ok(Some(marker)) if marker.is_done());
    if is_done {
        session.events.skipped(source, work.sink(job));
    }
    is_done
}

/// Prints the input, output and parameters of a job (`--dry-run`).
fn describe(job: &Job) -> Result<()> {
    if !is_multi_file(&job.source) {
        job.source.size()?;
    }
    let line = format!("{} -> {}: {}", job.source, job.sink, job.filter.summary(job.axes()));
    standard::print(&format!("{}\n", printable(&line)))
}

/// Estimates the time for `sources` on the CPU and with a GPU, all with the filter of the first source. The constants
/// were measured on a host with 16 cores and an NVIDIA H200, from JPEG to JPEG.
fn estimate(sources: &Sources, create_job: CreateJob<'_>) -> Estimate {
    /// Seconds of one core for each byte of samples, to read, decode, encode and write it.
    const FIXED: f64 = 3.4e-9;
    /// With a GPU, seconds of one core for each byte of samples.
    const GPU: f64 = 1.3e-9;
    /// With a GPU, seconds for each file: transfers and passes of several files do not overlap.
    const GPU_FILE: f64 = 0.65e-3;
    let job = |source| create_job(source).ok();
    let Some(Job { filter, .. }) = sources.iter().next().and_then(job) else {
        return Estimate::from_seconds(0.0, 0.0);
    };
    let bytes = |job: Job| match job.volume {
        Some(_) => job.source.size().ok().flatten(),
        None => sample_bytes(&job.source),
    };
    let [bytes] = sum_of_all(sources.iter(), |source| Some([bytes(job(source)?)? as f64]));
    let (files, cores) = (sources.len() as f64, rayon::current_num_threads() as f64);
    // Resizing alone opens no GPU.
    let seconds = filter.core_seconds().map_or(0.0, |kernel| FIXED + kernel);
    let cpu = bytes * seconds / cores;
    let estimate = Estimate::from_seconds(cpu, files * GPU_FILE + bytes * GPU / cores);
    let is_shared =
        !filter.properties().varies_for_u8 && sources.iter().all(|source| has_jpeg_name(&source));
    estimate.in_parts(if is_shared { sources.len() } else { 0 })
}

/// Minimum of the memory limit for the tables of one file of a batch, in bytes.
const MIN_TABLES: u64 = 4 << 20;

struct Files<'a> {
    create_job: CreateJob<'a>,
    settings: Settings,
    session: &'a Session,
}

impl Files<'_> {
    /// Reads, filters and writes one file.
    fn process(&self, job: &Job, session: &Session) -> Result<()> {
        if job.makes_folder {
            job.sink.want_folder();
        }
        let finished = match &job.volume {
            _ if job.compares => Some(compare::process(job, &self.settings, session)?),
            Some(layout) => volume::process(job, layout, self.settings.encoding, None, session)?,
            None => Some(image::process(job, &self.settings, session)?),
        };
        // The output gets its name only after nothing else can fail.
        job.report_warning(session)?;
        let commit = || finished.map_or(Ok(()), Finished::commit);
        allow_broken_pipe(session.timings.time("write", commit))?;
        job.finish_side()?;
        session.timings.add_result(|| {
            let mut result = job.filter.parameters();
            result["input"] = job.source.to_string().into();
            result["file"] = job.sink.to_string().into();
            result
        });
        Ok(())
    }
}

impl Work for Files<'_> {
    type Job = Job;
    type Out = ();

    fn job(&self, source: Source) -> Result<Job> {
        (self.create_job)(source)
    }

    fn sink<'j>(&self, job: &'j Job) -> Option<&'j Sink> {
        Some(&job.sink)
    }

    fn marker(&self, job: &Job) -> Result<Option<Marker>> {
        if !self.settings.resumes || job.source.path().is_none() {
            return Ok(None);
        }
        let Settings { encoding, pages, .. } = self.settings;
        let format = job.format.map(ImageFormat::extension);
        let parameters = (job.filter.parameters(), &job.volume, format, &job.pyramid);
        let parameters = (parameters, encoding, pages, self.session.strict);
        // The result does not depend on which shard processes the file.
        let name = job.filter.name();
        let Side { reads, writes, .. } = &job.side;
        let inputs = std::iter::once(&job.source).chain(reads);
        let identity = Identity::new(name, &parameters, inputs, Shard::WHOLE)?;
        Ok(Marker::new(identity, std::iter::once(&job.sink).chain(writes)))
    }

    fn memory(&self, job: &Job) -> Option<u64> {
        let (bytes, input, is_jpeg) = match &job.volume {
            // A pipe can be read only once.
            Some(_) if !can_reopen(&job.source) => return None,
            Some(layout) => {
                let mut file = job.describe(layout).ok()?;
                file.keep_colors();
                (file.bytes()?, Some(file.grid_type()), false)
            }
            None => {
                let planned = planned_size(&job.source)?;
                (planned.bytes, planned.grid_type, planned.is_jpeg())
            }
        };
        let copies = job.copies(&self.settings.encoding);
        let Some(mut input) = input else { return Some(bytes.saturating_mul(copies)) };
        let [x, y, _] = input.shape.dims;
        let smaller = if is_jpeg { jpeg::smaller_sizes([x, y]) } else { Vec::new() };
        let (factors, sizes): (Vec<_>, Vec<_>) = smaller.into_iter().unzip();
        let shrunken = job.filter.shrunken([x, y], &sizes);
        let filter = shrunken.as_ref().map_or(&*job.filter, |(_, filter)| &**filter);
        let shrink = shrunken.as_ref().map_or(1, |&(chosen, _)| factors[chosen]);
        input.shape.dims = [x.div_ceil(shrink), y.div_ceil(shrink), input.shape.dims[2]];
        // A filter that refuses the input takes no memory.
        let output = filter.output(input).unwrap_or(input);
        let cost = FilterCost::new(filter, [input, output], 1, (0, 1));
        let stored = cost.bytes().max(bytes / (shrink * shrink) as u64);
        Some(stored.saturating_mul(copies).max(cost.whole()))
    }

    fn run(&self, job: &Job) -> Result<()> {
        let properties = job.filter.properties();
        let is_exact = || !properties.varies_for_u8 && job.volume.is_none() && is_jpeg(&job.source);
        let mut session = self.session.for_file(is_exact);
        if self.settings.is_batch && properties.has_tables {
            // Other files have the rest of the memory.
            let estimate = self.memory(job).unwrap_or(u64::MAX);
            session.max_tables = (estimate / 4).max(MIN_TABLES);
        }
        self.process(job, &session)
    }
}
