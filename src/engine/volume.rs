//! Filters volumes in blocks of slices: from file to file, or the slices of a shard into an output that several
//! processes write.

use std::path::Path;

use serde_json::Value;

use super::job::Job;
use crate::{
    data::{
        description::Kind,
        image::{Density, DensityUnit, Image, Metadata},
        reader::Reader,
        samples::Samples,
        shard::Shard,
    },
    engine::session::Session,
    flow::{BlockSource, Division, FilterCost, filter_blocks},
    io::{
        file_roles::replaces,
        identity::Identity,
        image::{Encoding, ImageFormat},
        losses,
        shared_output::SharedFile,
        volume::{Endian, Layout, VolumeFile, VolumeTarget},
    },
    util::error::{Error, Result},
};

/// Reads, filters and writes a volume, or the slices of `shard`.
///
/// # Errors
/// When reading, filtering or writing fails.
pub fn process(job: &Job, layout: &Layout, shard: Option<Shard>, session: &Session) -> Result<()> {
    let mut file = VolumeFile::describe(&job.source, layout)?;
    file.keep_colors();
    let labelled = labelled(job, &file, 0, session)?;
    let (job, division) = labelled.as_ref().map_or((job, None), |(job, own)| (job, Some(own)));
    let result = job.filter.describe(file.description())?;
    let output = result.grid;
    let endian = layout.endian.unwrap_or(Endian::Little);
    let described = file.with_result(|input| job.filter.describe(input))?;
    let target = VolumeTarget::new(&job.sink, &described, output.dtype, endian)?;
    if result.kind == Kind::Labels {
        target.check_labels(output.dtype)?;
    }
    if let Some(lost) = target.losses() {
        losses::report(&job.sink, lost, session.strict)?;
    }
    match shard {
        None => process_file(job, &file, (&target, output.shape.dims), division, session),
        Some(shard) => {
            let target = (&target, output.shape.dims);
            process_shard(job, layout, &file, target, shard, division, session)
        }
    }
}

/// `job` with a filter that knows the type of its labels, if it makes labels of `file`, and the division for which it is
/// prepared. The writer takes `held` bytes.
///
/// # Errors
/// Those of reading and of the filter.
pub fn labelled(
    job: &Job,
    file: &VolumeFile,
    held: u64,
    session: &Session,
) -> Result<Option<(Job, Division)>> {
    if !job.filter.makes_labels() {
        return Ok(None);
    }
    let open = |first: usize| -> Result<Box<dyn Reader>> { Ok(Box::new(file.reader_at(first)?)) };
    let source = BlockSource::slices(file, &open);
    let division = whole(job, file, source.length(), held, session)?;
    Ok(job.labelled(&source, &division, session)?.map(|job| (job, division)))
}

/// Filters a volume from file to file. The result has the size `dims`.
fn process_file(
    job: &Job,
    file: &VolumeFile,
    (target, dims): (&VolumeTarget<'_>, [usize; 3]),
    division: Option<&Division>,
    session: &Session,
) -> Result<()> {
    let division = match division {
        Some(division) => division.for_own(0..dims[2]),
        None => whole(job, file, dims[2], 0, session)?,
    };
    let mut writer = target.create(dims, session.no_clobber)?;
    filter_slices(job, file, division, session, |_, samples| {
        session.timings.time("write", || writer.write(samples))
    })?;
    job.report_warning(session)?;
    session.timings.time("write", || writer.finish())
}

/// Filters a volume whose result is a plane, and writes that as an image.
///
/// # Errors
/// When reading, filtering or writing fails.
pub fn process_plane(
    job: &Job,
    (layout, axis): (&Layout, usize),
    (format, encoding): (ImageFormat, Encoding),
    session: &Session,
) -> Result<()> {
    let mut file = VolumeFile::describe(&job.source, layout)?;
    file.keep_colors();
    let dims = job.filter.output(file.grid_type())?.shape.dims;
    if dims[axis] != 1 {
        return Err(Error::usage(format_args!(
            "{}: the result is a volume: name one, such as a .nii or .nrrd",
            job.sink
        )));
    }
    let target = session.image_target(&job.sink, format, encoding);
    let labelled = labelled(job, &file, 0, session)?;
    let (job, division) = labelled.as_ref().map_or((job, None), |(job, own)| (job, Some(own)));
    let result = job.filter.describe(file.description())?;
    let output = result.grid;
    if result.kind == Kind::Labels {
        target.check_labels(output.dtype)?;
    }
    let division = match division {
        Some(division) => division.for_own(0..dims[2]),
        None => whole(job, &file, dims[2], 0, session)?,
    };
    let mut samples = Samples::zeros(output.dtype, 0)?;
    filter_slices(job, &file, division, session, |_, more| samples.append(&more))?;
    let [across, down] = [[1, 2], [0, 2], [0, 1]][axis];
    let placement = result.placement.as_ref().filter(|own| own.unit.is_some());
    let spacing = placement.and_then(|own| own.in_nearest_unit(&["cm"])).map(|own| own.spacing());
    let density = spacing.and_then(|spacing| {
        Density::new([across, down].map(|axis| 1.0 / spacing[axis]), DensityUnit::Centimetre)
    });
    let metadata = Metadata { density, ..Metadata::default() };
    let (width, height) = (dims[across], dims[down]);
    let channels = output.shape.channels;
    let image = Image { width, height, channels, samples, is_linear: false, metadata };
    job.report_warning(session)?;
    target.write(target.with_numbers(image, result.numbers)?)
}

/// The division of the whole result, of `length` slices, into blocks. The writer takes `held` bytes. Checks the limits of
/// the input.
fn whole(
    job: &Job,
    file: &VolumeFile,
    length: usize,
    held: u64,
    session: &Session,
) -> Result<Division> {
    let cost = cost(job, file, held)?;
    let fits = cost.whole() <= session.max_memory;
    // The first slices are needed again after the last one, and this input can be read only once.
    let is_cyclic = job.filter.wraps(2) && !file.can_reopen();
    let (block, spare) = match is_cyclic || fits && !cost.is_faster_in_blocks() {
        true => {
            let copies = cost.whole().div_ceil(file.grid_type().bytes().max(1)).max(1);
            file.check_bytes(session.limits(copies))?;
            log::debug!("{}: as a whole, in about {} bytes", job.source, cost.whole());
            (file.dims[2], session.max_memory.saturating_sub(cost.whole()))
        }
        false => block(job, &cost, length, session)?,
    };
    file.check(session.limits(1))?;
    Ok(Division { own: 0..length, block, spare })
}

/// Filters the slices of `shard` and writes them to their place in the output.
fn process_shard(
    job: &Job,
    layout: &Layout,
    file: &VolumeFile,
    (target, dims): (&VolumeTarget<'_>, [usize; 3]),
    shard: Shard,
    division: Option<&Division>,
    session: &Session,
) -> Result<()> {
    let identity = identity(job, layout, shard, session)?;
    let header = target.header(dims).ok_or_else(|| {
        Error::usage(format_args!("{}: --shard needs an uncompressed output", job.sink))
    })?;
    file.check(session.limits(1))?;
    let [width, height, depth] = dims;
    let own = shard.range(depth);
    let division = match division {
        Some(division) => division.for_own(own),
        None => {
            let (block, spare) = block(job, &cost(job, file, 0)?, own.len(), session)?;
            Division { own, block, spare }
        }
    };
    let stored = (width * height * target.channels() * target.dtype().size()) as u64;
    let length = header.len() as u64 + stored * depth as u64;
    let complete = |_: &Path, findings: &[Value]| job.report_warning_of(findings, session);
    let output = SharedFile::open(&job.sink, &identity, length, session.no_clobber, &complete)?;
    let Some(output) = output else {
        session.events.skipped(&job.source, Some(&job.sink));
        return Ok(());
    };
    if shard.index() == 0 {
        output.write_at(&header, 0)?;
    }
    filter_slices(job, file, division, session, |first, samples| {
        let samples = target.stored(samples)?;
        let offset = header.len() as u64 + stored * first as u64;
        session.timings.time("write", || output.write_at(samples.as_bytes(), offset))
    })?;
    output.finish(&job.filter.finding(), &complete)
}

/// Identity of the part `shard` of `job`.
///
/// # Errors
/// When the input cannot be identified, and when the output would replace the input.
pub fn identity(job: &Job, layout: &Layout, shard: Shard, session: &Session) -> Result<Identity> {
    if replaces(&job.sink, &job.source) {
        return Err(Error::usage(format_args!(
            "{}: --shard cannot replace its input, which other shards still read",
            job.sink
        )));
    }
    let parameters = (job.filter.parameters(), layout, &job.pyramid, session.strict);
    Identity::new(job.filter.name(), &parameters, [&job.source], shard)
}

/// Memory for the blocks of a volume, whose writer takes `held` bytes.
///
/// # Errors
/// When the filter does not support the volume.
pub fn cost(job: &Job, file: &VolumeFile, held: u64) -> Result<FilterCost> {
    let input = file.grid_type();
    let output = job.filter.output(input)?;
    let held = held.saturating_add(file.reader_bytes());
    Ok(FilterCost::new(&*job.filter, [input, output], 2, (held, file.layer())))
}

/// Number of slices of the input in a block, for `own` slices of the result, and the bytes of memory that are left.
///
/// # Errors
/// When a slice with the slices that it depends on takes more than the memory limit.
pub fn block(job: &Job, cost: &FilterCost, own: usize, session: &Session) -> Result<(usize, u64)> {
    let (block, spare) = cost.block(own, session.max_memory).map_err(|needed| {
        let what = format_args!("{}: {}", job.source, cost.least("slice"));
        session.exceeds_memory(what, needed)
    })?;
    let bytes = cost.bytes_in_blocks(block as u64);
    log::debug!("{}: in blocks of {block} slices, in about {bytes} bytes", job.source);
    Ok((block, spare))
}

/// Filters blocks of slices, and passes each result to `write` with the index of its first slice.
///
/// # Errors
/// Those of reading, of the filter and of `write`.
pub fn filter_slices(
    job: &Job,
    file: &VolumeFile,
    division: Division,
    session: &Session,
    write: impl FnMut(usize, Samples) -> Result<()> + Send,
) -> Result<()> {
    let open = |first: usize| -> Result<Box<dyn Reader>> { Ok(Box::new(file.reader_at(first)?)) };
    let source = BlockSource::slices(file, &open);
    if division.own.is_empty() {
        return Ok(());
    }
    let prepared = job.prepared(&source, &division, session)?;
    filter_blocks(&source, &prepared, &division, session, write)
}
