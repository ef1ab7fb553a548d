//! The loop over the blocks of an input. While one block is processed, another thread reads the next block with its
//! halo and, for filters, a third thread writes the previous result.

use std::{
    iter,
    ops::Range,
    sync::mpsc::{Receiver, SyncSender, channel, sync_channel},
    thread,
};

use super::host::{Advance, Host};
use crate::{
    data::{
        blocks::Span,
        description::Description,
        grid::{Alpha, Grid, Shape},
        reader::Reader,
        samples::Samples,
    },
    kernels::filter::Filter,
    util::{
        error::{Error, Kind, Result},
        memory,
        threads::{spawn, spawn_in},
    },
};

/// An input that is read in blocks along its outermost axis: the rows of an image, or the slices of a volume.
#[expect(missing_debug_implementations, reason = "it holds a function")]
pub struct BlockSource<'a> {
    /// Name of the input, for messages; empty if it has none.
    pub name: String,
    /// Size, type, kind and placement of the samples.
    pub description: Description,
    /// Outermost axis: 1 for the rows of an image, 2 for the slices of a volume.
    pub axis: usize,
    /// Alpha channel of the input.
    pub alpha: Alpha,
    /// Opens the input at a row or slice.
    pub open: &'a (dyn Fn(usize) -> Result<Box<dyn Reader + 'a>> + Sync),
}

#[cfg(feature = "files")]
impl<'a> BlockSource<'a> {
    /// The slices of the volume `file`. `open` opens it at a slice.
    pub fn slices(
        file: &crate::io::volume::VolumeFile,
        open: &'a (dyn Fn(usize) -> Result<Box<dyn Reader + 'a>> + Sync),
    ) -> Self {
        let (name, description) = (file.source().to_string(), file.description());
        Self { name, description, axis: 2, alpha: Alpha::None, open }
    }
}

impl BlockSource<'_> {
    /// Positions and channels.
    pub fn shape(&self) -> Shape {
        self.description.grid.shape
    }

    /// Number of rows or slices.
    pub fn length(&self) -> usize {
        self.shape().dims[self.axis]
    }

    /// Adds the names of `filter` and of the input to `error`, unless the input has no name.
    pub fn failed(&self, filter: &dyn Filter, error: Error) -> Error {
        if self.name.is_empty() {
            return error;
        }
        error.context(format_args!("cannot {} {}", filter.name(), self.name))
    }

    /// Samples in a row or slice.
    fn stride(&self) -> usize {
        self.shape().samples() / self.length().max(1)
    }
}

/// Division of a range of positions into blocks, each with a halo.
#[expect(missing_debug_implementations, reason = "it holds a function")]
pub struct Blocks<'a> {
    /// Positions to divide: rows, slices, or layers of cells between them.
    pub own: Range<usize>,
    /// Maximum number of positions in a block.
    pub block: usize,
    /// Adds the halo to a block.
    pub padded: &'a (dyn Fn(Range<usize>) -> Span + Sync),
    /// Whether halos wrap around the ends of the axis.
    pub wraps: bool,
    /// Whether the next block is read while a block is processed. Otherwise, one block is in memory at a time.
    pub overlaps: bool,
    /// Returns the number of positions to skip from this one on, such as those whose samples are not stored.
    pub skipped: &'a (dyn Fn(usize) -> usize + Sync),
}

impl Blocks<'_> {
    fn spans(&self) -> impl Iterator<Item = Span> {
        let Range { start: mut next, end } = self.own;
        iter::from_fn(move || {
            while next < end {
                let first = next;
                next = (first + (self.skipped)(first)).min(end);
                if next == first {
                    let limit = (first + self.block.max(1)).min(end);
                    let is_skipped = |&position: &usize| (self.skipped)(position) > 0;
                    next = (first + 1..limit).find(is_skipped).unwrap_or(limit);
                    return Some((self.padded)(first..next));
                }
            }
            None
        })
    }
}

/// Calls `work` with each block of `source` and the samples of the block and its halo, while the next block is read.
/// `work` returns the samples for reuse. `title` names the work in the progress bar.
///
/// # Errors
/// When reading or `work` fails.
pub fn read_blocks(
    source: &BlockSource<'_>,
    blocks: &Blocks<'_>,
    title: &'static str,
    host: &dyn Host,
    mut work: impl FnMut(Span, Grid) -> Result<Option<Samples>>,
) -> Result<()> {
    let (to_work, padded) = sync_channel::<(Span, Samples)>(0);
    let (recycle, done) = channel();
    let mut progress: Option<Box<dyn Advance>> = None;
    let work_on = move |(span, samples): (Span, Samples)| {
        let row = (source.stride() * samples.dtype().size()) as u64;
        let start = || host.start(title, row * blocks.own.len() as u64);
        let progress = progress.get_or_insert_with(start);
        let (mut dims, advance) = (source.shape().dims, row * span.core.len() as u64);
        dims[source.axis] = span.padded.len();
        let channels = source.shape().channels;
        let grid = Grid { dims, channels, alpha: source.alpha, samples };
        // If the receiver is gone, all blocks have been read.
        let _ = recycle.send(work(span, grid)?);
        progress.advance(advance)
    };
    thread::scope(|scope| {
        let read = move || memory::catch(|| read_padded(source, blocks, host, to_work, &done));
        let read = spawn_in(scope, read)?;
        let worked = padded.into_iter().try_for_each(work_on);
        // If reading failed, the loop above has ended early without an error.
        read.join().expect("reading does not panic")?;
        worked
    })
}

/// Reads each block with its halo. Positions that two blocks share are read only once, unless halos wrap around.
fn read_padded(
    source: &BlockSource<'_>,
    blocks: &Blocks<'_>,
    host: &dyn Host,
    to_work: SyncSender<(Span, Samples)>,
    done: &Receiver<Option<Samples>>,
) -> Result<()> {
    let stride = source.stride();
    let mut reader: Option<Box<dyn Reader + '_>> = None;
    let mut shared: Option<Samples> = None;
    let mut spans = blocks.spans().peekable();
    while let Some(span) = spans.next() {
        let padded = span.padded.clone();
        let samples = host.device().time("read", || {
            if blocks.wraps {
                return read_around(source, &padded);
            }
            let reader = match &mut reader {
                Some(reader) => reader,
                none => none.insert((source.open)(padded.start)?),
            };
            done.try_iter().flatten().for_each(|samples| reader.reuse(samples));
            let shared = shared.take();
            let has = shared.as_ref().map_or(0, |shared| shared.len() / stride);
            reader.read_after(shared.as_ref(), padded.len() - has)
        })?;
        let next = spans.peek().filter(|_| !blocks.wraps).map(|next| next.padded.start);
        match next {
            Some(next) if (padded.start..=padded.end).contains(&next) => {
                let from = next - padded.start;
                shared = Some(samples.part(from * stride..samples.len()));
            }
            Some(_) => reader = None,
            None => {}
        }
        let is_last = next.is_none() && padded.end == source.length();
        // If the receiver is gone, the work has failed.
        if to_work.send((span, samples)).is_err() {
            return Ok(());
        }
        if let Some(reader) = reader.as_mut().filter(|_| is_last) {
            reader.expect_end()?;
        }
        if !blocks.overlaps {
            let used = done.recv().ok().flatten();
            used.into_iter().zip(&mut reader).for_each(|(used, reader)| reader.reuse(used));
        }
    }
    Ok(())
}

/// Reads positions that wrap around the ends of the axis.
fn read_around(source: &BlockSource<'_>, positions: &Range<usize>) -> Result<Samples> {
    let len = source.length();
    let mut all: Option<Samples> = None;
    let mut at = positions.start;
    while at < positions.end {
        let first = at % len;
        let count = (len - first).min(positions.end - at);
        let mut reader = (source.open)(first)?;
        all = Some(reader.read_after(all.as_ref(), count)?);
        if first + count == len {
            reader.expect_end()?;
        }
        at += count;
    }
    all.ok_or_else(|| Error::bad_input(format_args!("{}: no samples", source.name)))
}

/// Calls `work`, and passes each result that it produces to `write` on another thread.
///
/// # Errors
/// When `write` or `work` fails.
pub fn write_behind<T: Send>(
    write: impl FnMut(T) -> Result<()> + Send,
    work: impl FnOnce(&mut dyn FnMut(T) -> Result<()>) -> Result<()>,
) -> Result<()> {
    let (to_write, results) = sync_channel(1);
    thread::scope(|scope| {
        let write_all = || results.into_iter().try_for_each(write);
        let written = spawn_in(scope, || memory::catch(write_all))?;
        let stopped = |_| Error::new(Kind::Failure, "the thread that writes has stopped");
        let worked = work(&mut |result| to_write.send(result).map_err(stopped));
        drop(to_write);
        // If writing failed, its error is the reason why the work stopped.
        written.join().expect("writing does not panic")?;
        worked
    })
}

/// Calls `read` on another thread, up to two blocks ahead, until it returns `None` or an error. The thread is never
/// joined: when another step fails, it may still wait for input.
///
/// # Errors
/// When no thread can be started.
pub fn read_ahead<T: Send + 'static>(
    mut read: impl FnMut() -> Result<Option<T>> + Send + 'static,
) -> Result<impl Iterator<Item = Result<T>>> {
    let (sender, blocks) = sync_channel(1);
    spawn(move || {
        loop {
            let block = read();
            let is_last = !matches!(block, Ok(Some(_)));
            if sender.send(block).is_err() || is_last {
                return;
            }
        }
    })?;
    let crashed = |_| Error::new(Kind::Failure, "the thread that reads crashed");
    Ok(iter::from_fn(move || blocks.recv().map_err(crashed).flatten().transpose()))
}
