//! Filters images page by page in memory, and large files in blocks of rows.

use std::{cell::OnceCell, io, ops::Range};

use super::job::{Job, Settings};
use crate::{
    data::{
        description::{Description, Kind},
        dtype::Dtype,
        grid::{Alpha, Grid, GridType, Shape},
        image::{Image, Orientation},
        reader::Reader,
        samples::Samples,
    },
    engine::session::Session,
    flow::{BlockSource, Division, FilterCost, Host, filter_blocks},
    io::{
        Finished, Sink, Source,
        image::{
            Animation, ImageFile, ImageFormat, ImagePages, ImageTarget, PageRange, Picture,
            ReadRows, RowsHeader, RowsReader, Series, can_write_rows, create_rows, open_rows,
            smaller_sizes,
        },
        losses,
    },
    jpeg::PixelEncoding,
    kernels::{
        filter::{Filter, apply},
        gpu_chain::{GpuChain, GpuInput, GpuOutput},
        jpeg::Decode,
    },
    util::{
        error::{Error, Result},
        memory,
    },
};

/// Reads, filters and writes the image of `job`, or its pages. Returns the output, ready to be committed.
///
/// # Errors
/// When reading, filtering or writing fails.
pub fn process(job: &Job, settings: &Settings, session: &Session) -> Result<Finished> {
    let Session { device, timings, .. } = session;
    let filter = &*job.filter;
    let mut copies = job.copies(&settings.encoding);
    if !takes_smaller_copy(job, settings) {
        match process_in_blocks(job, settings, session)? {
            Road::Blocks(finished) => return Ok(finished),
            Road::Whole => copies = WHOLE_COPIES,
            Road::Unknown => {}
        }
    }
    let file = ImageFile::read(&job.source, session.limits(copies), timings)?;
    let format = job.format.map_or_else(|| file.format(), Ok)?;
    let target = session.image_target(&job.sink, format, settings.encoding);
    // A GPU gets the coefficients of a JPEG, which take fewer bytes than its pixels. For the CPU, pixels are decoded
    // while the file is read.
    if device.may_be_gpu()
        && settings.pages.is_none()
        && let Some(own) = file.jpeg_type()
        && steps(filter, None).types(own).len() > 1
        && let Some(picture) = file.jpeg(timings)?
    {
        drop(file);
        return encode_result(job, filter, &target, picture, session);
    }
    let smaller = OnceCell::new();
    let shrink = |size, sizes: &[[usize; 2]]| {
        let (chosen, filter) = filter.shrunken(size, sizes)?;
        smaller.set(filter).ok().and(Some(chosen))
    };
    let mut pages = file.shrunken_pages(&shrink, timings)?;
    let selected = match settings.pages {
        Some(range) => range.resolve(&job.source, pages.count())?,
        None => {
            pages.check_no_slices()?;
            0..pages.count()
        }
    };
    let is_animation = target.can_hold_pages() && target.format() != ImageFormat::Tiff;
    let stored = |dtype| target.stored_dtype(dtype);
    let are_unequal = is_animation && !pages.are_equal(selected.clone(), stored);
    if selected.len() > 1 && target.can_hold_pages() && !are_unequal {
        return process_pages(job, &mut pages, selected, &target, session);
    }
    if selected.len() > 1 {
        let why = if are_unequal {
            "they differ in size or type, which frames of an animation must not"
        } else {
            "this format holds one"
        };
        let lost = format!("only the first of {} pages is written: {why}", selected.len());
        losses::report(&job.sink, lost, session.strict)?;
    }
    let picture = pages.decode(selected.start, timings)?.into();
    drop(pages);
    drop(file);
    let filter = smaller.get().map_or(filter, |smaller| &**smaller);
    encode_result(job, filter, &target, picture, session)
}

/// Filters `picture` and encodes the result. `filter` is the filter of the job, or its version for a smaller copy of
/// the image.
fn encode_result(
    job: &Job,
    filter: &dyn Filter,
    target: &ImageTarget<'_>,
    picture: Picture,
    session: &Session,
) -> Result<Finished> {
    // Samples of another type or with other channels are checked when they are encoded.
    let own = grid_type(&picture.image);
    let result_type = filter.output(own).unwrap_or(own);
    if (result_type.dtype, result_type.shape.channels) == (own.dtype, own.shape.channels) {
        target.check(&picture.image)?;
    }
    target.encode(result(job, filter, target, picture, session)?)
}

/// Filters `picture`, and converts the result so that `target` can hold it. `filter` is the filter of the job, or its
/// version for a smaller copy of the image.
///
/// # Errors
/// When the filter fails, or when the format cannot hold the resulting labels.
pub fn result(
    job: &Job,
    filter: &dyn Filter,
    target: &ImageTarget<'_>,
    picture: Picture,
    session: &Session,
) -> Result<Picture> {
    let own = grid_type(&picture.image);
    session.note_distortion(&job.source, &*job.filter, own.shape);
    let described = job.filter.describe(own.into());
    let mut picture =
        run_steps(steps(filter, target.pixel_encoding()), &job.source, picture, session)?;
    let Description { kind, numbers, is_transposed, .. } = described?;
    picture.image.metadata.swap_density(is_transposed);
    if kind == Kind::Labels {
        target.check_labels(picture.image.samples.dtype())?;
    }
    let image = target.with_numbers(picture.image, numbers)?;
    Ok(Picture { image, ..picture })
}

/// Whether a smaller copy of the image suffices for the filter. Then the image is not filtered in blocks.
fn takes_smaller_copy(job: &Job, settings: &Settings) -> bool {
    let takes_first =
        settings.pages.is_none_or(|pages| pages == PageRange::ALL || pages.is_first());
    // Most filters take no smaller copy of any image.
    let large = [1 << 24; 2];
    let is_possible = takes_first && job.filter.shrunken(large, &[large]).is_some();
    let found = if is_possible { smaller_sizes(&job.source) } else { None };
    found.is_some_and(|(size, smaller)| job.filter.shrunken(size, &smaller).is_some())
}

/// Size and sample type of an image.
pub fn grid_type(image: &Image) -> GridType {
    let &Image { width, height, channels, ref samples, .. } = image;
    let shape = Shape { dims: [width, height, 1], channels };
    GridType { shape, dtype: samples.dtype() }
}

/// Filters the pages `selected` one after the other.
fn process_pages(
    job: &Job,
    pages: &mut ImagePages<'_>,
    selected: Range<usize>,
    target: &ImageTarget<'_>,
    session: &Session,
) -> Result<Finished> {
    let timings = &session.timings;
    let animation = pages.animation().map(|animation| Animation {
        plays: animation.plays,
        delays: animation.delays[selected.clone()].to_vec(),
    });
    let sample_bytes = pages.check_all(selected.clone())?;
    let series = Series { count: selected.len(), sample_bytes, animation };
    let mut bar = session.progress.bar("pages", selected.len() as u64);
    target.encode_pages(series, |writer| {
        for page in selected {
            let image = pages.decode(page, timings)?;
            writer.page(result(job, &*job.filter, target, image.into(), session)?.image)?;
            bar.advance(1);
        }
        Ok(())
    })
}

/// Runs `filter`, or its steps if it is a chain, on `image`, which was read from `source`.
///
/// # Errors
/// When the filter fails.
pub fn filtered(
    filter: &dyn Filter,
    source: &Source,
    image: Image,
    session: &Session,
) -> Result<Image> {
    run_steps(steps(filter, None), source, image.into(), session).map(|picture| picture.image)
}

/// The steps of `filter`. With `encoding`, the result may be encoded as JPEG on the GPU.
fn steps(filter: &dyn Filter, encoding: Option<PixelEncoding>) -> GpuChain<'_> {
    let steps: Vec<_> = filter.steps().iter().map(|step| &**step).collect();
    let before = (!steps.is_empty()).then_some(0);
    GpuChain { steps: if steps.is_empty() { vec![filter] } else { steps }, before, encoding }
}

/// Runs the steps `rest` on `picture`, which was read from `source`. Consecutive steps run on the GPU together if they
/// can.
fn run_steps(
    mut rest: GpuChain<'_>,
    source: &Source,
    mut picture: Picture,
    session: &Session,
) -> Result<Picture> {
    while let Some(&step) = rest.steps.first() {
        let on_gpu = run_on_gpu(&rest, &mut picture, session);
        let mut count = on_gpu.map_err(|error| failed(step, source, error))?;
        if count == 0 {
            let Picture { mut image, coefficients } = picture;
            if let Some(coefficients) = coefficients {
                let pixels = session.device.run(&Decode, &coefficients);
                image.samples = pixels.map_err(|error| failed(step, source, error))?.into();
            }
            let run = || filtered_by_one(step, source, image, session);
            let image = match rest.title(1) {
                Some(title) => session.timings.time(&title, run),
                None => run(),
            };
            (picture, count) = (image?.into(), 1);
        }
        rest.steps.drain(..count);
        rest.before = rest.before.map(|before| before + count);
    }
    Ok(picture)
}

/// Runs the leading steps on a GPU, as many as can run together, and replaces `picture` by their result. Returns their
/// number.
fn run_on_gpu(steps: &GpuChain<'_>, picture: &mut Picture, session: &Session) -> Result<usize> {
    let Picture { image, coefficients } = &mut *picture;
    let (own, types) = (grid_type(image), steps.types(grid_type(image)));
    let fits = |(step, own): (&&dyn Filter, &[GridType])| {
        FilterCost::new(*step, [own[0], own[1]], 1, (0, 1)).whole() <= session.max_memory
    };
    // Some filters need colours that are divided by alpha.
    if image.is_linear && image.has_alpha() || !steps.steps.iter().zip(types.windows(2)).all(fits) {
        return Ok(0);
    }
    let samples = GpuInput::Samples(own.shape, &image.samples);
    let input = coefficients.as_ref().map_or(samples, GpuInput::Jpeg);
    let Some((count, output)) = steps.run(&session.device, input)? else { return Ok(0) };
    image.channels = types[count].shape.channels;
    image.is_linear &= types[1..=count].iter().all(|own| own.dtype == Dtype::F32);
    (image.samples, *coefficients) = match output {
        GpuOutput::Samples(samples) => (samples, None),
        GpuOutput::Jpeg(coefficients) => (Samples::zeros(Dtype::U8, 0)?, Some(coefficients)),
    };
    Ok(count)
}

/// Runs `filter`, which is not a chain, on `image`, which was read from `source`.
fn filtered_by_one(
    filter: &dyn Filter,
    source: &Source,
    image: Image,
    session: &Session,
) -> Result<Image> {
    if image.is_linear && image.has_alpha() && filter.properties().needs_straight_alpha {
        let straight = image.to_straight(Dtype::F32)?;
        let result = filtered_by_one(filter, source, straight, session)?;
        return if result.samples.dtype() == Dtype::F32 { result.to_linear() } else { Ok(result) };
    }
    let Image { width, height, channels, samples, is_linear, metadata } = image;
    // Images in linear light hold premultiplied alpha.
    let has_alpha = matches!(channels, 2 | 4) && !is_linear;
    let alpha = if has_alpha { Alpha::Straight } else { Alpha::None };
    let grid = Grid { dims: [width, height, 1], channels, alpha, samples };
    let output = filter.output(grid.grid_type());
    let run = |output: GridType| -> Result<Image> {
        let needed = FilterCost::new(filter, [grid.grid_type(), output], 1, (0, 1)).whole();
        if needed > session.max_memory {
            let what = format_args!("an image of {width} x {height} pixels");
            return Err(session.exceeds_memory(what, needed));
        }
        let workspace = session.workspace(session.max_memory - needed);
        let Grid { dims: [width, height, _], channels, samples, .. } =
            apply(filter, &session.device, workspace, &grid)?;
        let is_linear = is_linear && samples.dtype() == Dtype::F32;
        Ok(Image { width, height, channels, samples, is_linear, metadata })
    };
    output.and_then(run).map_err(|error| failed(filter, source, error))
}

fn failed(filter: &dyn Filter, source: &Source, error: Error) -> Error {
    error.context(format_args!("cannot {} {source}", filter.name()))
}

/// Copies of an image in memory while it is read as a whole, if its size is known beforehand: the samples, and the file
/// or a table of the decoder.
const WHOLE_COPIES: u64 = 2;

/// Whether an image is filtered in blocks.
enum Road {
    /// It was filtered in blocks of rows.
    Blocks(Finished),
    /// It is filtered as a whole, and is known to fit into memory.
    Whole,
    /// It is filtered as a whole. Only decoding it shows whether it fits into memory.
    Unknown,
}

/// Filters a file in blocks of rows if it is large or does not fit into memory.
fn process_in_blocks(job: &Job, settings: &Settings, session: &Session) -> Result<Road> {
    let (Source::File(_), Sink::File(_)) = (&job.source, &job.sink) else {
        return Ok(Road::Unknown);
    };
    let Some(rows) = open_rows(&job.source, session.limits(1))? else { return Ok(Road::Unknown) };
    let header = rows.header().clone();
    let Image { width, height, channels, ref samples, .. } = header.first.image;
    session.limits(1).check(&[width, height]).map_err(|error| error.context(&job.source))?;
    let shape = Shape { dims: [width, height, 1], channels };
    let filter = &*job.filter;
    let input = GridType { shape, dtype: samples.dtype() };
    let output = filter.output(input).map_err(|error| failed(filter, &job.source, error))?;
    let cost = FilterCost::new(filter, [input, output], 1, (header.reader_bytes, 1));
    let file = if header.reads_whole_file { job.source.size()?.unwrap_or(0) } else { 0 };
    let read = file.max(input.bytes()).saturating_mul(WHOLE_COPIES);
    let written = output.bytes().saturating_mul(job.copies(&settings.encoding));
    let needed = read.max(written).max(cost.whole());
    let fits = needed <= session.max_memory;
    let obstacle = obstacle(job, settings, &header, output);
    if fits && (obstacle.is_some() || !cost.is_faster_in_blocks()) {
        log::debug!("{}: as a whole, in about {needed} bytes", job.source);
        return Ok(Road::Whole);
    }
    let block = match obstacle {
        Some(remedy) => {
            let what = format_args!("{}: an image of {width} x {height} pixels", job.source);
            let fact = memory::excess(what, needed, session.max_memory);
            return Err(Error::bad_input(format_args!("{fact}; {remedy}")));
        }
        None => cost.block(height, session.max_memory).map_err(|needed| {
            let what = format_args!("{}: {}", job.source, cost.least("row"));
            session.exceeds_memory(what, needed)
        })?,
    };
    let bytes = cost.bytes_in_blocks(block.0 as u64);
    log::debug!("{}: in blocks of {} rows, in about {bytes} bytes", job.source, block.0);
    let losses = &header.first.losses;
    losses.iter().try_for_each(|loss| losses::report(&job.source, loss, session.strict))?;
    write_blocks(job, settings, session, rows, block).map(Road::Blocks)
}

/// Filters and writes an image in blocks of `block` rows.
fn write_blocks(
    job: &Job,
    settings: &Settings,
    session: &Session,
    mut rows: Box<dyn ReadRows>,
    (block, spare): (usize, u64),
) -> Result<Finished> {
    let image = rows.header().first.image.clone();
    let shape = Shape { dims: [image.width, image.height, 1], channels: image.channels };
    let alpha = if !image.has_alpha() {
        Alpha::None
    } else if session.timings.time("look for alpha", || rows.any_transparent())? {
        Alpha::Translucent
    } else {
        Alpha::Straight
    };
    drop(rows);
    session.note_distortion(&job.source, &*job.filter, shape);
    let open = |first: usize| -> Result<Box<dyn Reader>> {
        let rows = open_rows(&job.source, session.limits(1))?;
        let rows = rows.ok_or_else(|| {
            Error::bad_input(format_args!("{}: the file changed while it was read", job.source))
        })?;
        Ok(Box::new(RowsReader::new(rows, first)?))
    };
    let (name, dtype) = (job.source.to_string(), image.samples.dtype());
    let description = Description::from(GridType { shape, dtype });
    let source = BlockSource { name, description, axis: 1, alpha, open: &open };
    let division = Division { own: 0..image.height, block, spare };
    let labelled = job.labelled(&source, &division, session)?;
    let job = labelled.as_ref().unwrap_or(job);
    let result = job.filter.describe(source.description.clone())?;
    let output = result.grid;
    let format = job.format.unwrap_or(ImageFormat::Png);
    let samples = Samples::zeros(output.dtype, 0)?;
    let Shape { dims: [width, height, _], channels } = output.shape;
    let mut head = Image { width, height, channels, samples, ..image };
    head.metadata.swap_density(result.is_transposed);
    let target = session.image_target(&job.sink, format, settings.encoding);
    if result.kind == Kind::Labels {
        target.check_labels(output.dtype)?;
    }
    target.check(&head)?;
    let failed = |error: io::Error| Error::io("write", job.sink.to_string(), error);
    let file = job.sink.create(session.no_clobber)?;
    let mut writer = create_rows(format, head, &settings.encoding, file).map_err(failed)?;
    let division = Division { own: 0..height, ..division };
    let prepared = job.prepared(&source, &division, session)?;
    filter_blocks(&source, &prepared, &division, session, |_, samples| {
        session.timings.time("encode", || writer.write(samples)).map_err(failed)
    })?;
    writer.finish().map_err(failed).map(Finished::File)
}

/// The remedy to suggest if an image cannot be filtered in blocks; `None` if it can.
fn obstacle(
    job: &Job,
    settings: &Settings,
    rows: &RowsHeader,
    output: GridType,
) -> Option<&'static str> {
    let format = job.format.unwrap_or(ImageFormat::Png);
    let takes_first = settings.pages.map_or(rows.page_count == 1, PageRange::is_first);
    if !takes_first {
        Some("raise --max-memory, or use --page 1, which is filtered in blocks")
    } else if !can_write_rows(format, output.dtype) {
        Some("raise --max-memory, or write a .png or .tif, which are written in blocks")
    } else if rows.first.image.has_alpha() && !job.filter.steps().is_empty() {
        Some("raise --max-memory, or filter it step by step: it has alpha")
    } else if job.filter.whole_reach(1, output.shape).wraps() {
        Some("raise --max-memory, or use another --edge: wrap needs both ends at once")
    } else if rows.first.orientation != Orientation::default() {
        Some("raise --max-memory, or rotate the image first: it is stored rotated")
    } else {
        None
    }
}
