//! Filters volumes into Zarr stores, block by block. Each level is computed from the next finer level while that is in
//! memory.
//!
//! With shards, each process writes the chunks of its slices, on all levels where every shard has whole layers of
//! chunks. The process that ends last writes the remaining, small levels.

use std::{
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{
    job::Job,
    volume::{block, cost, filter_slices, identity, labelled},
};
use crate::{
    data::{
        description::{Kind, Origin},
        dtype::Dtype,
        grid::GridType,
        shard::Shard,
    },
    engine::session::Session,
    flow::Division,
    io::{
        Sink, Source, UnfinishedFolder, already_exists, link_target, losses,
        shared_output::SharedOutput,
        volume::{
            Layout, Pyramid, PyramidWriter, VolumeFile, can_reopen, check_store_path, is_zarr,
        },
    },
    util::error::{Error, Result},
};

/// Filters all slices, or those of `shard`, and writes them to the Zarr store of `job`.
///
/// # Errors
/// When reading, filtering or writing fails.
pub fn process(job: &Job, layout: &Layout, shard: Option<Shard>, session: &Session) -> Result<()> {
    let Sink::File(path) = &job.sink else {
        return Err(Error::usage("Zarr needs a folder as output, not standard output"));
    };
    check_store_path(path)?;
    let file = volume(job, layout, 0)?;
    file.check(session.limits(1))?;
    let pyramid = |output: GridType| {
        let described = file.with_result(|input| job.filter.describe(input))?;
        Pyramid::new(&described, output.dtype, job.source.path(), layout, job.pyramid)
    };
    let mut output = job.filter.output(file.grid_type())?;
    let mut labelled = None;
    if job.filter.makes_labels() {
        // Labels may have 32 bits.
        let held = pyramid(GridType { dtype: Dtype::U32, ..output })?.bytes(0);
        labelled = self::labelled(job, &file, held, session)?;
    }
    if let Some((first, _)) = &labelled {
        output = first.filter.output(file.grid_type())?;
    }
    let mut pyramid = pyramid(output)?;
    let result = job.filter.describe(file.description())?;
    // Means of labels are not labels.
    pyramid.are_labels &= result.origin == Origin::Selected;
    pyramid.are_labels |= result.kind == Kind::Labels;
    if let Some(lost) = pyramid.losses() {
        losses::report(&job.sink, lost, session.strict)?;
    }
    let task = Task { job, first: labelled.as_ref(), layout, session, pyramid: &pyramid };
    match shard {
        None => task.process_all(path),
        Some(shard) => task.process_shard(shard),
    }
}

/// The volume number `number` of a Zarr store or of a file with channels and times, or the volume that `layout` chooses.
fn volume(job: &Job, layout: &Layout, number: usize) -> Result<VolumeFile> {
    let describe = |volume| {
        let volume = layout.volume.or(volume);
        VolumeFile::describe(&job.source, &Layout { volume, ..layout.clone() })
    };
    // A pipe can be read only once.
    if layout.volume.is_some() || !can_reopen(&job.source) {
        return describe(None);
    }
    let file = describe(Some(number))?;
    let has_axes = job.source.path().is_some_and(is_zarr) || file.channels_and_times.is_some();
    if has_axes || file.volumes == 1 { Ok(file) } else { describe(None) }
}

struct Task<'a> {
    job: &'a Job,
    /// The same job with its division, prepared for the first volume, if it makes labels.
    first: Option<&'a (Job, Division)>,
    layout: &'a Layout,
    session: &'a Session,
    pyramid: &'a Pyramid,
}

impl Task<'_> {
    fn process_all(&self, path: &Path) -> Result<()> {
        let failed = |error| Error::io("write", path, error);
        // Replace the folder to which a symbolic link points, not the link.
        let place = link_target(path);
        if self.session.no_clobber && place.exists() {
            return Err(failed(already_exists()));
        }
        let part = UnfinishedFolder::create(&place).map_err(failed)?;
        self.pyramid.create(part.path())?;
        self.fill(part.path(), 0..self.depth(), self.pyramid.levels.len(), false)?;
        self.job.report_warning(self.session)?;
        part.rename(&place, self.session.no_clobber).map_err(failed)
    }

    fn depth(&self) -> usize {
        self.pyramid.levels[0].dims[2]
    }

    fn process_shard(&self, shard: Shard) -> Result<()> {
        let Self { job, layout, session, pyramid, .. } = *self;
        let identity = identity(job, layout, shard, session)?;
        // The coarsest level of which every shard has at least one layer of chunks, else the finest level.
        let layers = |level: usize| self.depth().div_ceil(pyramid.unit(level));
        let last = (0..pyramid.levels.len()).rev().find(|&level| layers(level) >= shard.count());
        let last = last.unwrap_or(0);
        let create = |data: &Path| {
            fs::create_dir(data).map_err(|error| Error::io("write", data, error))?;
            pyramid.create(data)
        };
        let complete = |data: &Path, findings: &[Value]| {
            job.report_warning_of(findings, session)?;
            self.complete(data, last)
        };
        let place =
            SharedOutput::open(&job.sink, &identity, session.no_clobber, &create, &complete)?;
        let Some(place) = place else {
            session.events.skipped(&job.source, Some(&job.sink));
            return Ok(());
        };
        let own = shard.range(layers(last));
        let slice = |layer: usize| (layer * pyramid.unit(last)).min(self.depth());
        match self.fill(&place.data(), slice(own.start)..slice(own.end), last + 1, true) {
            // Another process has finished the store and renamed its folder.
            Err(_) if place.is_complete() => Ok(()),
            filled => filled.and_then(|()| place.finish(&job.filter.finding(), &complete)),
        }
    }

    /// Filters the slices `own` of all volumes and writes them to the first `levels` levels.
    fn fill(&self, folder: &Path, own: Range<usize>, levels: usize, is_shared: bool) -> Result<()> {
        let Self { job, first, layout, session, pyramid } = *self;
        if own.is_empty() {
            return Ok(());
        }
        for number in 0..pyramid.volumes() {
            let file = &volume(job, layout, number)?;
            file.check(session.limits(1))?;
            let other = match number {
                0 => None,
                _ => labelled(job, file, pyramid.bytes(0), session)?,
            };
            let labelled = if number == 0 { first } else { other.as_ref() };
            let job = labelled.map_or(job, |(job, _)| job);
            let dtype = job.filter.output(file.grid_type())?.dtype;
            if dtype.size() > pyramid.dtype.size() {
                return Err(Error::bad_input(format_args!(
                    "{}: volume {number} has more than 65,535 labels, and the first one has fewer; use --volume to label one at a time",
                    job.source
                )));
            }
            let division = match labelled {
                Some((_, division)) => division.for_own(own.clone()),
                None => {
                    let cost = cost(job, file, pyramid.bytes(0))?;
                    let (block, spare) = block(job, &cost, own.len(), session)?;
                    Division { own: own.clone(), block, spare }
                }
            };
            let mut writer =
                PyramidWriter::new(pyramid, folder, number, (0..levels, own.start), is_shared);
            filter_slices(job, file, division, session, |_, samples| {
                let wider = (dtype != pyramid.dtype).then(|| samples.converted(pyramid.dtype));
                let samples = wider.transpose()?.unwrap_or(samples);
                session.timings.time("write", || writer.push(&samples))
            })?;
            session.timings.time("write", || writer.finish())?;
        }
        Ok(())
    }

    /// Writes the levels after `last`, which is complete.
    fn complete(&self, data: &Path, last: usize) -> Result<()> {
        let Self { session, pyramid, .. } = *self;
        let levels = pyramid.levels.len();
        if last + 1 >= levels {
            return Ok(());
        }
        for volume in 0..pyramid.volumes() {
            let layout = Layout { volume: Some(volume), level: Some(last), ..Layout::default() };
            let source = Source::File(PathBuf::from(data));
            let file = VolumeFile::describe(&source, &layout)?;
            file.check(session.limits(1))?;
            let mut writer = PyramidWriter::new(pyramid, data, volume, (last..levels, 0), true);
            writer.skip_first_level();
            let (mut reader, depth) = (file.reader()?, file.dims[2]);
            let step = pyramid.unit(last) / pyramid.levels[last].factors[2];
            for first in (0..depth).step_by(step.max(1)) {
                writer.push(&reader.read(step.min(depth - first))?)?;
            }
            writer.finish()?;
        }
        Ok(())
    }
}
