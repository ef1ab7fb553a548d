//! PNG files too large for memory, from file to file in bands of rows.

use std::{io, sync::mpsc::sync_channel, thread};

use super::{Args, Job, copy_channel, kept_channels};
use crate::{
    data::samples::{Dtype, Samples},
    error::{Error, Result},
    io::{
        Output, Sink, Source,
        image::{
            ImageFormat,
            png::{Png, PngRows, PngWriter},
        },
    },
    kernels::blur::{Bands, Blur},
    memory,
    session::Session,
};

/// Bands need not be larger than this many bytes.
const ENOUGH: u64 = 64 << 20;
/// For each sample of a band: read ahead twice, waiting to be written, and being compressed.
const IN_FLIGHT: u64 = 4;

/// Blurs a PNG file in bands where it does not fit into memory as a whole; returns whether it did.
///
/// # Errors
/// Those of reading, blurring and writing, and when the image is too large and cannot go in bands.
pub fn run(args: &Args, session: &Session, job: &Job, blur: &Blur) -> Result<bool> {
    let (Source::File(_), Sink::File(_)) = (&job.source, &job.sink) else { return Ok(false) };
    let Some(mut rows) = PngRows::open(&job.source)? else { return Ok(false) };
    let size = [rows.width, rows.height];
    session.limits(1).check(&size).map_err(|error| error.context(&job.source))?;
    let alpha = matches!(rows.channels, 2 | 4);
    let row = (rows.width * rows.channels) as u64;
    let size = rows.dtype.size() as u64;
    // Samples, results, and what lies between: colours times alpha or in linear light take four bytes.
    let a_sample = match rows.dtype {
        Dtype::U8 if !alpha && !blur.linear => 4,
        _ => 2 * size + 12,
    };
    let file = job.source.size()?.unwrap_or(0);
    let whole = file + row * rows.height as u64 * (a_sample + size);
    if whole <= session.max_memory {
        return Ok(false);
    }
    // What cannot go in bands is tried as a whole as long as the pixels alone fit.
    let is_png = ImageFormat::of_output(&job.sink)? == ImageFormat::Png;
    let fits = file.max(row * rows.height as u64 * size) <= session.max_memory;
    let mut bands = Bands {
        blur: blur.clone(),
        dims: [rows.width, rows.height],
        channels: rows.channels,
        alpha,
        transparent: false,
    };
    if fits && (!is_png || !bands.is_possible() || !rows.is_upright) {
        return Ok(false);
    }
    let halo = (2 * blur.halo(1)).min(rows.height) as u64;
    // A quarter is left to the allocator and to buffers of fixed size.
    let budget = session.max_memory / 4 * 3;
    let height = (budget / row).saturating_sub(halo * a_sample) / (a_sample + IN_FLIGHT * size);
    let told = |why: &str| {
        Error::bad_input(format_args!(
            "{}: {} x {} pixels take {whole} bytes in all, more than the {} of --max-memory, and {why}",
            job.source, rows.width, rows.height, session.max_memory
        ))
    };
    if !is_png {
        return Err(told("only PNG is written in bands: write a .png, or raise --max-memory"));
    }
    if !bands.is_possible() {
        return Err(told(
            "--edge wrap needs both ends at once: use another, or raise --max-memory",
        ));
    }
    if !rows.is_upright {
        return Err(told("the picture is stored turned: turn it first, or raise --max-memory"));
    }
    if height == 0 {
        let least = (halo * a_sample + a_sample + IN_FLIGHT * size) * row / 3 * 4;
        return Err(told(&format!(
            "one row with those it depends on takes {least}: raise it to that"
        )));
    }
    let height = height.min((ENOUGH / (row * size)).max(halo).max(1)) as usize;
    if alpha {
        bands.transparent = session.timings.time("look for alpha", || rows.any_transparent())?;
        let again = PngRows::open(&job.source)?;
        rows = again.ok_or_else(|| Error::bad_input(format_args!("{} has changed", job.source)))?;
    }
    log::debug!("{}: in bands of {height} rows", job.source);
    let kept = kept_channels(&args.channels, rows.channels)?;
    let output = job.sink.create(session.no_clobber)?;
    let png = Png {
        width: rows.width as u32,
        height: rows.height as u32,
        channels: rows.channels as u8,
        sample_bytes: size as u8,
        metadata: &rows.metadata.clone(),
        compression: args.compression,
    }
    .start(output);
    let failed = |error: io::Error| Error::io("write", job.sink.to_string(), error);
    Pipeline { session, bands: &bands, kept: &kept, height }
        .run(rows, png.map_err(failed)?, &failed)?
        .commit()?;
    Ok(true)
}

struct Pipeline<'a> {
    session: &'a Session,
    bands: &'a Bands,
    /// Channels that stay as they are.
    kept: &'a [usize],
    /// Rows of a band.
    height: usize,
}

impl Pipeline<'_> {
    /// Reads, blurs and writes side by side.
    fn run(
        &self,
        mut rows: PngRows,
        mut writer: PngWriter<Output>,
        failed: &(impl Fn(io::Error) -> Error + Sync),
    ) -> Result<Output> {
        let Self { session, bands, height, .. } = *self;
        let timings = &session.timings;
        let (dtype, row, last) = (rows.dtype, rows.row_bytes(), bands.dims[1]);
        let (to_blur, read) = sync_channel::<Result<Vec<u8>>>(1);
        let (to_write, blurred) = sync_channel::<Samples>(1);
        thread::scope(|scope| {
            scope.spawn(move || {
                for first in (0..last).step_by(height) {
                    let room = memory::zeros(row * height.min(last - first));
                    let read = |mut bytes: Vec<u8>| rows.read(&mut bytes).map(|()| bytes);
                    let done = timings.time("decode", || room.and_then(read));
                    let stop = done.is_err();
                    if to_blur.send(done).is_err() || stop {
                        return;
                    }
                }
            });
            let written = scope.spawn(move || {
                for mut samples in blurred {
                    timings.time("encode", || {
                        if cfg!(target_endian = "little") {
                            samples.swap_bytes();
                        }
                        writer.rows(samples.as_bytes()).map_err(failed)
                    })?;
                }
                writer.finish().map_err(failed)
            });
            let mut bar = session.progress.bar("blur", last as u64);
            let (mut ahead, mut start) = (Vec::new(), 0);
            for first in (0..last).step_by(height) {
                let band = first..(first + height).min(last);
                let window = bands.window(band.clone());
                ahead.drain(..(window.start - start) * row);
                start = window.start;
                while ahead.len() < window.len() * row {
                    let more = read.recv().map_err(|_| Error::bad_input("too few rows"))??;
                    ahead.extend_from_slice(&more);
                }
                let samples = &ahead[..window.len() * row];
                let mut blurred = bands.blur(band.clone(), samples, dtype, |blur, raster| {
                    session.device.run(blur, raster)
                })?;
                if !self.kept.is_empty() {
                    let mut before = Samples::zeros(dtype, blurred.len())?;
                    let from = (band.start - start) * row;
                    let to = before.as_bytes_mut();
                    to.copy_from_slice(&samples[from..from + to.len()]);
                    for &channel in self.kept {
                        copy_channel(&before, &mut blurred, channel, bands.channels);
                    }
                }
                if to_write.send(blurred).is_err() {
                    break;
                }
                bar.advance(band.len() as u64);
            }
            drop(to_write);
            written.join().expect("writing does not panic")
        })
    }
}
