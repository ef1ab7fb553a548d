//! Filters volumes in blocks of slices: whole volumes, or the slices of a shard.

use std::ops::Range;

use super::{
    job::Job,
    volume_output::{VolumeOutput, VolumeWriter},
};
use crate::{
    data::{dtype::Dtype, reader::Reader, shard::Shard},
    engine::session::Session,
    flow::{BlockSource, Division, FilterCost, filter_blocks},
    io::{
        Finished,
        image::Encoding,
        volume::{Layout, VolumeFile, can_reopen, is_zarr, is_zarr_path},
    },
    kernels::filter::Filter,
    util::error::Result,
};

/// Reads, filters and writes the volumes of `job`, or the slices of `shard`. Returns the output, ready to be committed;
/// `None` if several shards write it, since the last of them commits it.
///
/// # Errors
/// When reading, filtering or writing fails.
pub fn process(
    job: &Job,
    layout: &Layout,
    encoding: Encoding,
    shard: Option<Shard>,
    session: &Session,
) -> Result<Option<Finished>> {
    let file = volume(job, layout)?;
    let placed = job.placed(&file.description()).map_err(|error| error.context(&job.source))?;
    let job = placed.as_ref().unwrap_or(job);
    let plan = |filter: &dyn Filter, dtype: Option<Dtype>| {
        let described = file.with_result(|input| filter.describe(input))?;
        let mut result = filter.describe(file.description())?;
        result.grid.dtype = dtype.unwrap_or(result.grid.dtype);
        VolumeOutput::new(job, &described, result, (layout, encoding), session)
    };
    // Until the labels are counted, they are assumed to need 32 bits.
    let mut output =
        plan(&*job.filter, job.filter.properties().makes_labels.then_some(Dtype::U32))?;
    let labelled = labelled(job, &file, output.held(), session)?;
    if let Some(labelled) = &labelled {
        output = plan(&*labelled.job.filter, None)?;
    }
    output.check(session)?;
    // Shards that fail leave what they share: nothing is created for an input that is refused.
    if shard.is_some() && labelled.is_none() {
        let depth = 0..output.depth();
        division(job, &file, depth, (output.held(), true), session)?;
    }
    let writer = match shard {
        None => Some(output.create(session)?),
        Some(shard) => output.open_shared(job, (layout, shard), session)?,
    };
    let Some(mut writer) = writer else { return Ok(None) };
    let all = file.clone();
    let mut first = Some((file, labelled));
    let filled = (0..output.volumes()).try_for_each(|number| {
        if writer.own().is_empty() {
            return Ok(());
        }
        let (file, labelled) = match first.take() {
            Some(first) => first,
            None => {
                let file = all.with_volume(number);
                let labelled = self::labelled(job, &file, output.held(), session)?;
                (file, labelled)
            }
        };
        fill(job, (&file, labelled.as_ref()), number, (&output, &mut *writer), session)
    });
    match filled {
        // Another process has finished the output.
        Err(_) if writer.is_complete() => Ok(None),
        filled => filled.and_then(|()| writer.finish(&job.filter.finding())),
    }
}

/// A job with a filter that knows the type of its labels.
struct Labelled {
    job: Job,
    /// The division for which the filter is prepared.
    division: Division,
}

/// Filters the slices of the volume `file` that `writer` writes.
fn fill(
    job: &Job,
    (file, labelled): (&VolumeFile, Option<&Labelled>),
    number: usize,
    (output, writer): (&VolumeOutput<'_>, &mut dyn VolumeWriter),
    session: &Session,
) -> Result<()> {
    let own = writer.own();
    let division = match labelled {
        Some(labelled) => labelled.division.for_own(own),
        None => division(job, file, own, (output.held(), writer.takes_blocks()), session)?,
    };
    let job = labelled.map_or(job, |labelled| &labelled.job);
    let begun = writer.begin(number, job.filter.output(file.grid_type())?.dtype);
    begun.map_err(|error| error.context(&job.source))?;
    let open = |first: usize| -> Result<Box<dyn Reader>> { Ok(Box::new(file.reader_at(first)?)) };
    let source = BlockSource::slices(file, &open);
    let prepared = job.prepared(&source, &division, session)?;
    filter_blocks(&source, &prepared, &division, session, |first, samples| {
        session.timings.time("write", || writer.write(first, samples))
    })?;
    session.timings.time("write", || writer.end())
}

/// The volume of the input that `layout` selects, or the first one if the output can hold several.
fn volume(job: &Job, layout: &Layout) -> Result<VolumeFile> {
    if !is_zarr_path(&job.sink) {
        let mut file = job.describe(layout)?;
        file.keep_colors();
        return Ok(file);
    }
    // A pipe can be read only once.
    if layout.volume.is_some() || !can_reopen(&job.source) {
        return job.describe(layout);
    }
    let first = Layout { volume: Some(0), ..layout.clone() };
    let file = VolumeFile::describe(&job.source, &first)?;
    let has_axes = job.source.path().is_some_and(is_zarr) || file.channels_and_times.is_some();
    if has_axes || file.volumes == 1 { Ok(file) } else { job.describe(layout) }
}

/// Prepares the filter of `job` for `file` if it makes labels, whose type is known only then. The writer takes `held`
/// bytes of memory.
fn labelled(
    job: &Job,
    file: &VolumeFile,
    held: u64,
    session: &Session,
) -> Result<Option<Labelled>> {
    if !job.filter.properties().makes_labels {
        return Ok(None);
    }
    let open = |first: usize| -> Result<Box<dyn Reader>> { Ok(Box::new(file.reader_at(first)?)) };
    let source = BlockSource::slices(file, &open);
    let division = division(job, file, 0..source.length(), (held, false), session)?;
    let job = job.labelled(&source, &division, session)?;
    Ok(job.map(|job| Labelled { job, division }))
}

/// Divides the slices `own` of the result into blocks, and checks the limits of the input. The writer takes `held`
/// bytes of memory. If `takes_blocks` is set, the result is written in blocks even if it fits into memory.
fn division(
    job: &Job,
    file: &VolumeFile,
    own: Range<usize>,
    (held, takes_blocks): (u64, bool),
    session: &Session,
) -> Result<Division> {
    let input = file.grid_type();
    let output = job.filter.output(input)?;
    let held = held.saturating_add(file.reader_bytes());
    let cost = FilterCost::new(&*job.filter, [input, output], 2, (held, file.layer()));
    let fits = cost.whole() <= session.max_memory;
    // Slices are needed after later ones, and this input can be read only once.
    let is_cyclic = !file.can_reopen()
        && (job.filter.whole_reach(2, input.shape).wraps() || job.filter.reads_backwards(2, input));
    let (block, spare) = if !takes_blocks && (is_cyclic || fits && !cost.is_faster_in_blocks()) {
        let copies = cost.whole().div_ceil(input.bytes().max(1)).max(1);
        file.check_bytes(session.limits(copies))?;
        log::debug!("{}: as a whole, in about {} bytes", job.source, cost.whole());
        (file.dims[2], session.max_memory.saturating_sub(cost.whole()))
    } else {
        let block = cost.block(own.len(), session.max_memory).map_err(|needed| {
            let what = format_args!("{}: {}", job.source, cost.least("slice"));
            session.exceeds_memory(what, needed)
        })?;
        let bytes = cost.bytes_in_blocks(block.0 as u64);
        log::debug!("{}: in blocks of {} slices, in about {bytes} bytes", job.source, block.0);
        block
    };
    file.check(session.limits(1))?;
    Ok(Division { own, block, spare })
}
