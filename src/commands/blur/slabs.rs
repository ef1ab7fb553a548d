//! Blurs volumes slab by slab. Each slab is read with its halo, the slices around it that it depends on, so the result
//! has the bytes of a volume blurred at once. Used from file to file, and for the slices of a shard, where several
//! processes fill one output.

use std::{ops::Range, sync::mpsc::sync_channel, thread};

use super::flags::Job;
use crate::{
    data::{raster::Raster, samples::Samples, shard::Shard},
    error::{Error, Kind, Result},
    io::{
        Sink,
        identity::Identity,
        losses,
        shared_output::SharedOutput,
        volume::{Endian, Layout, VolumeFile, VolumeReader, VolumeTarget, VolumeWriter},
    },
    kernels::blur::{Edge, blur_raster},
    memory,
    session::Session,
    threads::spawn_in,
};

/// Most bytes in a slab, unless its halo is large.
const LARGEST: u64 = 64 << 20;
/// Slabs in memory that wait to be written or are being written.
const IN_FLIGHT: u64 = 2;

/// Blurs the slices of `shard` and writes them to their range of the output.
pub fn run(job: &Job, layout: &Layout, shard: Shard, session: &Session) -> Result<()> {
    let input = job.source.path().map(|path| Sink::File(path.to_owned()));
    if input.is_some_and(|input| input.is_same(&job.sink)) {
        return Err(Error::usage(format_args!(
            "{}: shards cannot replace the volume that the others still read",
            job.sink
        )));
    }
    let parameters = format!("{:?} {layout:?} strict: {}", job.blur, session.strict);
    let identity = Identity::new("blur", parameters, [&job.source], shard)?;
    let file = VolumeFile::describe(&job.source, layout)?;
    let endian = layout.endian.unwrap_or(Endian::Little);
    let target = VolumeTarget::new(&job.sink, &file, endian)?;
    let header = target.header(file.dims).ok_or_else(|| {
        let sink = &job.sink;
        Error::usage(format_args!(
            "{sink}: shards write to places in a file, which a packed one has not"
        ))
    })?;
    if let Some(lost) = target.losses() {
        losses::tell(&job.sink, lost, session.strict)?;
    }
    file.check(session.limits(1))?;
    let [width, height, depth] = file.dims;
    let own = shard.range(depth);
    let slab = slab(job, &file, own.len(), [job.copies(), 0], session)?;
    let written = (width * height * target.dtype().size()) as u64;
    let length = header.len() as u64 + written * depth as u64;
    let output = SharedOutput::open(&job.sink, &identity, length, session.no_clobber)?;
    let Some(output) = output else {
        session.events.skipped(&job.source, Some(&job.sink));
        return Ok(());
    };
    if shard.index() == 0 {
        output.write_at(&header, 0)?;
    }
    let mut bar = session.progress.bar("blur", own.len() as u64);
    blurred(job, &file, own, slab, session, |first, samples| {
        let samples = target.stored(samples)?;
        let at = header.len() as u64 + written * first as u64;
        session.timings.time("write", || output.write_at(samples.as_bytes(), at))?;
        bar.advance((samples.len() / (width * height)) as u64);
        Ok(())
    })?;
    output.finish()
}

/// The slices in a slab if the volume should be [streamed](stream); `None` if it is as well blurred at once.
pub fn streamed(job: &Job, file: &VolumeFile, session: &Session) -> Result<Option<usize>> {
    let fits = file.bytes().is_some_and(|bytes| bytes <= session.max_memory / job.copies());
    let is_small = file.bytes() <= Some(2 * LARGEST) || rayon::current_num_threads() == 1;
    // The slices after the last one are the first ones, which an input that can be read only once does not give again.
    let is_cyclic = job.blur.edge == Edge::Wrap && !file.can_reopen();
    if is_cyclic || fits && is_small {
        return Ok(None);
    }
    let slab = slab(job, file, file.dims[2], [job.copies() + IN_FLIGHT, 0], session);
    match fits {
        true => Ok(slab.ok().filter(|slab| 2 * slab <= file.dims[2])),
        false => slab.map(Some),
    }
}

/// Blurs a volume from file to file, `slab` slices at a time. One slab is written while the next one is blurred.
pub fn stream(
    job: &Job,
    file: &VolumeFile,
    target: &VolumeTarget<'_>,
    slab: usize,
    session: &Session,
) -> Result<()> {
    file.check(session.limits(1))?;
    let [width, height, depth] = file.dims;
    let slice = (width * height * file.dtype.size()) as u64;
    let mut bar = session.progress.bytes("blur", slice * depth as u64);
    let mut writer = target.create(file.dims, session.no_clobber)?;
    thread::scope(|scope| {
        let (to_write, slabs) = sync_channel::<Samples>(1);
        let written = spawn_in(scope, move || {
            for samples in slabs {
                session.timings.time("write", || memory::catch(|| writer.write(samples)))?;
            }
            Ok(writer)
        })?;
        let blurred = blurred(job, file, 0..depth, slab, session, |_, samples| {
            let slices = samples.len() / (width * height);
            bar.advance(slices as u64 * slice);
            let stopped = |_| Error::new(Kind::Failure, "the thread that writes has stopped");
            to_write.send(samples).map_err(stopped)
        });
        drop(to_write);
        // The error of the writing thread comes first: it tells why writing stopped.
        let writer: VolumeWriter<'_> = written.join().expect("writing does not panic")?;
        blurred?;
        session.timings.time("write", || writer.finish())
    })
}

/// Blurs the slices `own`, `slab` at a time, and hands each slab to `consume` with the number of its first slice.
pub fn blurred(
    job: &Job,
    file: &VolumeFile,
    own: Range<usize>,
    slab: usize,
    session: &Session,
    mut consume: impl FnMut(usize, Samples) -> Result<()>,
) -> Result<()> {
    let [width, height, depth] = file.dims;
    let slice = width * height;
    let wraps = job.blur.edge == Edge::Wrap;
    let mut ahead = Ahead::default();
    for first in own.clone().step_by(slab.max(1)) {
        let core = first..(first + slab).min(own.end);
        let of = |core: &Range<usize>| window(core, job.blur.halo(2), depth, wraps);
        let window = of(&core);
        let next = (core.end < own.end).then(|| of(&(core.end..(core.end + slab).min(own.end))));
        let samples = session.timings.time("read", || match wraps {
            true => read(file, &window),
            false => ahead.read(file, &window, next.as_ref()),
        })?;
        let dims = [width, height, window.slices.len()];
        let raster = Raster { dims, channels: 1, alpha: false, samples };
        let mut blurred = match job.blur.is_idle() {
            true => raster.samples,
            false => {
                let blurred = session
                    .timings
                    .time("blur", || blur_raster(&session.device, &job.blur, &raster))
                    .map_err(|error| error.context(format_args!("cannot blur {}", job.source)))?;
                ahead.reuse(raster.samples);
                blurred
            }
        };
        let from = window.before * slice;
        blurred.keep(from..from + core.len() * slice);
        consume(core.start, blurred)?;
    }
    match own == (0..depth) {
        true => ahead.expect_end(),
        false => Ok(()),
    }
}

/// A reader of overlapping windows, which keeps the slices that the next window needs, too.
#[derive(Default)]
struct Ahead {
    reader: Option<VolumeReader>,
    held: Option<Samples>,
}

impl Ahead {
    /// Reads the samples of `window`, and keeps those that `next` shares with it.
    fn read(
        &mut self,
        file: &VolumeFile,
        window: &Window,
        next: Option<&Window>,
    ) -> Result<Samples> {
        let slice = file.dims[0] * file.dims[1];
        let held = self.held.take();
        let has = held.as_ref().map_or(0, |held| held.len() / slice);
        let mut reader = match self.reader.take() {
            Some(reader) => reader,
            None => file.reader_at(window.slices.start)?,
        };
        let samples = reader.read_after(held.as_ref(), window.slices.len() - has)?;
        if let Some(next) = next {
            let from = next.slices.start - window.slices.start;
            self.held = Some(samples.part(from * slice..samples.len()));
        }
        self.reader = Some(reader);
        Ok(samples)
    }

    /// Checks that nothing follows the last slice.
    fn expect_end(self) -> Result<()> {
        self.reader.map_or(Ok(()), |mut reader| reader.expect_end())
    }

    /// Takes back the samples of a window that is no longer needed, to reuse their memory.
    fn reuse(&mut self, done: Samples) {
        if let Some(reader) = &mut self.reader {
            reader.reuse(done);
        }
    }
}

/// The number of slices in a slab, out of `own` slices. `copies` of the slab and `beside` further bytes are in memory.
pub fn slab(
    job: &Job,
    file: &VolumeFile,
    own: usize,
    [copies, beside]: [u64; 2],
    session: &Session,
) -> Result<usize> {
    let [width, height, depth] = file.dims;
    let slice = (width * height * file.dtype.size()) as u64;
    let beside = beside.saturating_add(file.held_bytes());
    let memory = session.max_memory.saturating_sub(beside);
    let around = (2 * job.blur.halo(2)).min(depth) as u64;
    let fitting = (memory / copies / slice.max(1)).saturating_sub(around);
    match fitting {
        0 if own > 0 => {
            let needed = (around + 1) * slice * copies + beside;
            Err(Error::bad_input(format_args!(
                "{}: a slice with the {around} around it takes {needed} bytes, more than the {} of --max-memory",
                job.source, session.max_memory
            )))
        }
        // Where memory allows, a slab is eight times as high as its halo, which is blurred along two axes for nothing.
        fitting => {
            let most = (LARGEST / slice.max(1)).max(8 * around).max(1);
            // With slabs lower than a layer of chunks, the reader and the writer would each hold the layer for several
            // slabs.
            let layer = file.layer() as u64;
            let most = if (most + 1..=fitting).contains(&layer) { layer } else { most };
            let slab = fitting.min(most).min(own as u64) as usize;
            // Round down to whole layers of chunks where that is not much less.
            let rest = slab % file.layer().max(1);
            Ok(if rest <= slab / 2 && slab < own { slab - rest } else { slab })
        }
    }
}

/// The slices that a slab depends on: its own and its halo.
struct Window {
    /// Numbers of the slices; for the edge mode wrap, modulo the depth.
    slices: Range<usize>,
    /// Number of slices before the slab.
    before: usize,
}

/// The slices that those in `core` depend on: `halo` more on either side. A slab that is the whole volume has no halo.
fn window(core: &Range<usize>, halo: usize, depth: usize, wraps: bool) -> Window {
    if core.len() == depth || !wraps {
        let before = halo.min(core.start);
        return Window { slices: core.start - before..(core.end + halo).min(depth), before };
    }
    let turns = halo.saturating_sub(core.start).div_ceil(depth);
    let first = core.start + turns * depth - halo;
    Window { slices: first..first + core.len() + 2 * halo, before: halo }
}

/// Reads the samples of a window that wraps: after the last slice of the volume comes the first one.
fn read(file: &VolumeFile, window: &Window) -> Result<Samples> {
    let depth = file.dims[2];
    let mut all: Option<Samples> = None;
    let mut at = window.slices.start;
    while at < window.slices.end {
        let first = at % depth;
        let count = (depth - first).min(window.slices.end - at);
        let mut reader = file.reader_at(first)?;
        all = Some(reader.read_after(all.as_ref(), count)?);
        at += count;
    }
    Ok(all.expect("a slab has slices"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_end_with_the_volume_or_go_on_at_its_other_end() {
        let of = |core: Range<usize>, halo, wraps| {
            let window = window(&core, halo, 10, wraps);
            (window.slices, window.before)
        };
        assert_eq!(of(3..5, 2, false), (1..7, 2));
        assert_eq!(of(0..5, 3, false), (0..8, 0));
        assert_eq!(of(8..10, 30, false), (0..10, 8));
        assert_eq!(of(0..10, 3, true), (0..10, 0));
        assert_eq!(of(0..4, 3, true), (7..17, 3));
        assert_eq!(of(8..10, 3, true), (5..13, 3));
        assert_eq!(of(1..2, 25, true), (6..57, 25));
    }
}
