//! Blurs volumes into Zarr pyramids, slab by slab. Each level is made from the next finer one while that is in memory.
//!
//! Of several processes, each writes the chunks of its slices, on all levels where every shard has whole layers of
//! chunks. The process that ends last makes the remaining, small levels.

use std::path::Path;

use super::{
    flags::Job,
    slabs::{blurred, slab},
};
use crate::{
    data::shard::Shard,
    error::{Error, Result},
    io::{
        PartFolder, Sink, exists_already,
        identity::Identity,
        losses,
        shared_output::SharedPlace,
        volume::{Layout, Pyramid, PyramidWriter, VolumeFile, is_zarr},
    },
    session::Session,
};

/// Blurs the slices of `shard`, or all slices, and writes them to the Zarr store that the job names.
pub fn run(job: &Job, layout: &Layout, shard: Option<Shard>, session: &Session) -> Result<()> {
    let Sink::File(path) = &job.sink else {
        return Err(Error::usage("standard output is no folder, which Zarr needs"));
    };
    check_place(path)?;
    let is_store = job.source.path().is_some_and(is_zarr);
    let of_volume = |volume: usize| -> Result<VolumeFile> {
        let number = layout.volume.or(is_store.then_some(volume));
        VolumeFile::describe(&job.source, &Layout { volume: number, ..layout.clone() })
    };
    let file = of_volume(0)?;
    file.check(session.limits(1))?;
    let pyramid = Pyramid::new(&file, job.source.path(), layout, job.pyramid)?;
    if let Some(lost) = pyramid.losses() {
        losses::tell(&job.sink, lost, session.strict)?;
    }
    let task = Task { job, session, pyramid: &pyramid, of_volume: &of_volume };
    match shard {
        None => task.all(path),
        Some(shard) => task.shard(layout, shard, path),
    }
}

/// Refuses to replace a file or folder that is not a Zarr store.
fn check_place(path: &Path) -> Result<()> {
    let is_empty = || std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    match std::fs::symlink_metadata(path) {
        Ok(_) if !is_zarr(path) && !is_empty() => Err(Error::usage(format_args!(
            "{}: this is there and no Zarr, so it is not replaced",
            path.display()
        ))),
        _ => Ok(()),
    }
}

struct Task<'a> {
    job: &'a Job,
    session: &'a Session,
    pyramid: &'a Pyramid,
    /// Opens the volume with this number.
    of_volume: &'a dyn Fn(usize) -> Result<VolumeFile>,
}

impl Task<'_> {
    fn all(&self, path: &Path) -> Result<()> {
        let failed = |error| Error::io("write", path, error);
        // Replace the folder to which a symbolic link points, not the link.
        let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if self.session.no_clobber && place.exists() {
            return Err(failed(exists_already()));
        }
        let parent = place.parent().filter(|folder| !folder.as_os_str().is_empty());
        let part = PartFolder::create(parent.unwrap_or(Path::new("."))).map_err(failed)?;
        self.pyramid.create(part.path())?;
        let levels = self.pyramid.levels.len();
        self.fill(part.path(), 0..self.depth(), levels, false)?;
        part.rename(&place, self.session.no_clobber).map_err(failed)
    }

    fn depth(&self) -> usize {
        self.pyramid.levels[0].dims[2]
    }

    fn shard(&self, layout: &Layout, shard: Shard, path: &Path) -> Result<()> {
        let Self { job, session, pyramid, .. } = *self;
        let same = |input: &Path| input.canonicalize().ok() == path.canonicalize().ok();
        if path.exists() && job.source.path().is_some_and(same) {
            return Err(Error::usage(format_args!(
                "{}: shards cannot replace the volume that the others still read",
                job.sink
            )));
        }
        let parameters =
            format!("{:?} {layout:?} {:?} strict: {}", job.blur, job.pyramid, session.strict);
        let identity = Identity::new("blur", parameters, [&job.source], shard)?;
        // The last level of which every shard has at least one layer of chunks, or the first level if there is none.
        let layers = |level: usize| self.depth().div_ceil(pyramid.unit(level));
        let last = (0..pyramid.levels.len()).rev().find(|&level| layers(level) >= shard.count());
        let last = last.unwrap_or(0);
        let create = |data: &Path| {
            std::fs::create_dir(data).map_err(|error| Error::io("write", data, error))?;
            pyramid.create(data)
        };
        let complete = |data: &Path| self.complete(data, last);
        let place =
            SharedPlace::open(&job.sink, &identity, session.no_clobber, &create, &complete)?;
        let Some(place) = place else {
            session.events.skipped(&job.source, Some(&job.sink));
            return Ok(());
        };
        let own = shard.range(layers(last));
        let slices = |layer: usize| (layer * pyramid.unit(last)).min(self.depth());
        let own = slices(own.start)..slices(own.end);
        match self.fill(&place.data(), own, last + 1, true) {
            // Another process has finished the store and renamed its folder.
            Err(_) if place.is_done() => Ok(()),
            filled => filled.and_then(|()| place.finish(&complete)),
        }
    }

    /// Blurs the slices `own` of all volumes and writes them to the first `levels` levels.
    fn fill(
        &self,
        folder: &Path,
        own: std::ops::Range<usize>,
        levels: usize,
        is_shared: bool,
    ) -> Result<()> {
        let Self { job, session, pyramid, of_volume } = *self;
        if own.is_empty() {
            return Ok(());
        }
        let slices = (own.len() as u64).saturating_mul(pyramid.volumes() as u64);
        let mut bar = session.progress.bar("blur", slices);
        for number in 0..pyramid.volumes() {
            let file = &of_volume(number)?;
            file.check(session.limits(1))?;
            let slab = slab(job, file, own.len(), [job.copies(), pyramid.bytes(0)], session)?;
            let mut writer =
                PyramidWriter::new(pyramid, folder, number, (0..levels, own.start), is_shared);
            blurred(job, file, own.clone(), slab, session, |_, samples| {
                session.timings.time("write", || writer.push(&samples))?;
                bar.advance((samples.len() / (file.dims[0] * file.dims[1])) as u64);
                Ok(())
            })?;
            session.timings.time("write", || writer.finish())?;
        }
        Ok(())
    }

    /// Makes the levels after `last`, which is complete, of a store.
    fn complete(&self, data: &Path, last: usize) -> Result<()> {
        let Self { session, pyramid, .. } = *self;
        let levels = pyramid.levels.len();
        if last + 1 >= levels {
            return Ok(());
        }
        for volume in 0..pyramid.volumes() {
            let layout = Layout { volume: Some(volume), level: Some(last), ..Layout::default() };
            let source = crate::io::Source::File(data.to_owned());
            let file = VolumeFile::describe(&source, &layout)?;
            file.check(session.limits(1))?;
            let mut writer = PyramidWriter::new(pyramid, data, volume, (last..levels, 0), true);
            writer.leave_out_first();
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
