//! Blurs large PNG and TIFF files from file to file in bands of rows. The result equals that of the whole image and
//! takes a fraction of its memory. While a band is blurred, the next one is decoded and the previous one is encoded.

use std::{
    io,
    ops::Range,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

use super::{
    flags::{Job, Settings},
    image::copy_channel,
};
use crate::{
    commands::flags::PageRange,
    data::{dtype::Dtype, image::Image, samples::Samples},
    error::{Error, Result},
    io::{
        Output, Sink, Source,
        image::{
            ImageFormat, ReadRows, RowsInfo, WriteRows, can_write_rows, create_rows, open_rows,
        },
        losses,
    },
    kernels::blur::{Bands, blur_raster},
    memory,
    session::Session,
    threads::spawn_in,
};

/// Size of a band with a small halo, in bytes. The memory of such bands is used again and stays in cache.
const BAND: u64 = 16 << 20;
/// Largest size of a band with a large halo, in bytes.
const LARGEST: u64 = 64 << 20;
/// Bands in memory beside the one that is blurred: two read ahead, one that waits to be written, one that is
/// compressed.
const IN_FLIGHT: u64 = 4;

/// Images of more bytes are blurred in bands even where they fit into memory. On two cores, RGB images of 48 MB took as
/// long either way; in bands, images of 120 MB took 0.6 (TIFF) and 0.8 (PNG) times as long, and images of 284 MB half
/// as long.
const LARGE: u64 = 96 << 20;

/// Blurs a file in bands if it is large or does not fit into memory as a whole. Returns whether it has blurred the
/// file.
///
/// # Errors
/// When reading, blurring or writing fails, and when the image is too large and cannot be blurred in bands.
pub fn run(job: &Job, settings: &Settings, session: &Session) -> Result<bool> {
    let (Source::File(_), Sink::File(_)) = (&job.source, &job.sink) else { return Ok(false) };
    let Some(rows) = open_rows(&job.source, session.limits(1))? else { return Ok(false) };
    let info = rows.info().clone();
    let size = [info.width, info.height];
    session.limits(1).check(&size).map_err(|error| error.context(&job.source))?;
    let bands = Bands {
        blur: job.blur.clone(),
        dims: size,
        channels: info.channels,
        alpha: matches!(info.channels, 2 | 4),
        transparent: false,
    };
    let need = Need::of(job, &info, &bands)?;
    let obstacle = obstacle(job, settings, &info, &bands);
    let fits = need.whole.max(need.stored * job.copies()) <= session.max_memory;
    if fits && (obstacle.is_some() || !need.gains_by_bands()) {
        return Ok(false);
    }
    let height = match obstacle {
        // The estimate is cautious, so the whole image may still fit.
        Some(_) if need.stored <= session.max_memory => return Ok(false),
        Some(obstacle) => return Err(too_large(job, &info, &need, session, obstacle)),
        None => need.height(session.max_memory).map_err(|least| {
            let obstacle =
                format!("one row with those it depends on takes {least}: raise it to that");
            too_large(job, &info, &need, session, &obstacle)
        })?,
    };
    log::debug!("{}: in bands of {height} rows", job.source);
    process(job, settings, session, rows, bands, height)?;
    Ok(true)
}

/// The memory that an image takes.
struct Need {
    /// Bytes of file, samples and results at the peak, where the whole image is blurred at once.
    whole: u64,
    /// Bytes of the file or of the samples, whichever are more.
    stored: u64,
    /// Bytes of each row of a band: while it is blurred, and as samples.
    row: [u64; 2],
    /// Rows that a band depends on, above and below together.
    halo: u64,
    /// Bytes that the reader holds beside rows.
    held: u64,
}

impl Need {
    fn of(job: &Job, rows: &RowsInfo, bands: &Bands) -> Result<Self> {
        let (samples, height) = ((rows.width * rows.channels) as u64, rows.height as u64);
        let size = rows.dtype.size() as u64;
        let blurred = match rows.dtype {
            Dtype::U8 if !bands.alpha && !job.blur.linear => 4,
            // f64 before and after each pass.
            Dtype::U32 | Dtype::I32 | Dtype::F64 => 2 * size + 24,
            // u32 or f32 before and after each pass: 16-bit samples with fraction bits, premultiplied samples, linear
            // light.
            _ => 2 * size + 12,
        };
        let file = match rows.is_held_whole {
            true => job.source.size()?.unwrap_or(0),
            false => 0,
        };
        Ok(Self {
            whole: file + samples * height * (blurred + size),
            stored: file.max(samples * height * size),
            row: [samples * blurred, samples * size],
            halo: (2 * job.blur.halo(1)).min(rows.height) as u64,
            held: rows.held_bytes,
        })
    }

    /// Whether bands take less time than the whole image. They do not on one thread, nor where the halo is most of a
    /// band.
    fn gains_by_bands(&self) -> bool {
        let is_mostly_halo = self.most_rows() < 8 * self.halo;
        self.stored >= LARGE && !is_mostly_halo && rayon::current_num_threads() > 1
    }

    /// Most rows in a band.
    fn most_rows(&self) -> u64 {
        let [band, largest] = [BAND, LARGEST].map(|bytes| bytes / self.row[1]);
        band.max(8 * self.halo).min(largest).max(self.halo).max(1)
    }

    /// The rows of a band that fit into `memory`; as an error, the least memory for a band of one row.
    fn height(&self, memory: u64) -> Result<usize, u64> {
        let [blurred, stored] = self.row;
        let (fixed, row) = (self.halo * blurred + self.held, blurred + IN_FLIGHT * stored);
        // A quarter is left for the allocator and for buffers of fixed size.
        match (memory / 4 * 3).saturating_sub(fixed) / row {
            0 => Err((fixed + row) / 3 * 4),
            height => Ok(height.min(self.most_rows()) as usize),
        }
    }
}

/// The reason why an image cannot be blurred in bands, if there is one.
fn obstacle(
    job: &Job,
    settings: &Settings,
    rows: &RowsInfo,
    bands: &Bands,
) -> Option<&'static str> {
    let format = job.format.unwrap_or(ImageFormat::Png);
    let takes_first = settings.pages.map_or(rows.pages == 1, PageRange::is_first);
    if !takes_first {
        Some("of several pages only the first goes in bands: take --page 1, or raise --max-memory")
    } else if !can_write_rows(format, rows.dtype) {
        Some("only PNG and TIFF are written in bands: write a .tif, or raise --max-memory")
    } else if !bands.is_possible() {
        Some("--edge wrap needs both ends at once: use another, or raise --max-memory")
    } else if !rows.is_upright {
        Some("the picture is stored turned: turn it first, or raise --max-memory")
    } else {
        None
    }
}

fn too_large(job: &Job, rows: &RowsInfo, need: &Need, session: &Session, obstacle: &str) -> Error {
    Error::bad_input(format_args!(
        "{}: {} x {} pixels take {} bytes in all, more than the {} of --max-memory, and {obstacle}",
        job.source, rows.width, rows.height, need.whole, session.max_memory
    ))
}

/// Reads, blurs and writes an image in bands of `height` rows.
fn process(
    job: &Job,
    settings: &Settings,
    session: &Session,
    mut rows: Box<dyn ReadRows>,
    mut bands: Bands,
    height: usize,
) -> Result<()> {
    let info = rows.info().clone();
    for loss in &info.losses {
        losses::tell(&job.source, loss, session.strict)?;
    }
    if bands.alpha {
        bands.transparent = session.timings.time("look for alpha", || rows.any_transparent())?;
        let again = open_rows(&job.source, session.limits(1))?;
        rows = again.ok_or_else(|| Error::bad_input(format_args!("{} has changed", job.source)))?;
    }
    let format = job.format.unwrap_or(ImageFormat::Png);
    let head = Image {
        width: info.width,
        height: info.height,
        channels: info.channels,
        samples: Samples::zeros(info.dtype, 0)?,
        is_linear: false,
        metadata: info.metadata.clone(),
    };
    session.image_target(&job.sink, format, settings.encoding).check(&head)?;
    let kept = settings.kept_channels(info.channels)?;
    let output = job.sink.create(session.no_clobber)?;
    let failed = |error: io::Error| Error::io("write", job.sink.to_string(), error);
    let writer = create_rows(format, &info, &settings.encoding, output).map_err(failed)?;
    Pipeline { session, bands: &bands, kept: &kept, dtype: info.dtype, height }
        .run(rows, writer, &failed)?
        .commit()
}

/// A pipeline of three threads: one reads, one blurs, one writes.
struct Pipeline<'a> {
    session: &'a Session,
    bands: &'a Bands,
    /// Channels that are not blurred.
    kept: &'a [usize],
    dtype: Dtype,
    /// Rows of a band.
    height: usize,
}

impl Pipeline<'_> {
    fn run(
        &self,
        rows: Box<dyn ReadRows>,
        writer: Box<dyn WriteRows>,
        failed: &(impl Fn(io::Error) -> Error + Sync),
    ) -> Result<Output> {
        let (to_blur, read) = sync_channel(1);
        let (to_write, blurred) = sync_channel(1);
        thread::scope(|scope| {
            spawn_in(scope, || self.read(rows, to_blur))?;
            let written = spawn_in(scope, || self.write(blurred, writer).map_err(failed))?;
            self.blur(read, to_write)?;
            written.join().expect("writing does not panic")
        })
    }

    /// The range of rows of each band.
    fn bands(&self) -> impl Iterator<Item = Range<usize>> {
        let (height, last) = (self.height, self.bands.dims[1]);
        (0..last).step_by(height).map(move |first| first..(first + height).min(last))
    }

    fn read(&self, mut rows: Box<dyn ReadRows>, to_blur: SyncSender<Result<Vec<u8>>>) {
        let row = rows.info().row_bytes();
        for band in self.bands() {
            let read = self.session.timings.time("decode", || {
                let mut bytes = memory::zeros(row * band.len())?;
                rows.read(&mut bytes)?;
                Ok(bytes)
            });
            let failed = read.is_err();
            if to_blur.send(read).is_err() || failed {
                return;
            }
        }
    }

    fn blur(&self, read: Receiver<Result<Vec<u8>>>, to_write: SyncSender<Samples>) -> Result<()> {
        let Self { session, bands, .. } = *self;
        let (dtype, row) = (self.dtype, bands.dims[0] * bands.channels * self.dtype.size());
        let mut bar = session.progress.bytes("blur", (row * bands.dims[1]) as u64);
        // Rows that have been read and are still needed, from row `start` on.
        let (mut ahead, mut start) = (Vec::new(), 0);
        for band in self.bands() {
            let window = bands.window(band.clone());
            ahead.drain(..(window.start - start) * row);
            start = window.start;
            while ahead.len() < window.len() * row {
                let more = read.recv().map_err(|_| Error::bad_input("too few rows"))??;
                ahead.extend_from_slice(&more);
            }
            let samples = &ahead[..window.len() * row];
            let mut blurred = bands.blur(band.clone(), samples, dtype, |blur, raster| {
                blur_raster(&session.device, blur, raster)
            })?;
            if !self.kept.is_empty() {
                let mut before = Samples::zeros(dtype, blurred.len())?;
                let (to, from) = (before.as_bytes_mut(), (band.start - start) * row);
                to.copy_from_slice(&samples[from..from + to.len()]);
                for &channel in self.kept {
                    copy_channel(&before, &mut blurred, channel, bands.channels);
                }
            }
            if to_write.send(blurred).is_err() {
                break;
            }
            bar.advance((row * band.len()) as u64);
        }
        Ok(())
    }

    fn write(
        &self,
        blurred: Receiver<Samples>,
        mut writer: Box<dyn WriteRows>,
    ) -> io::Result<Output> {
        for samples in blurred {
            self.session.timings.time("encode", || writer.write(samples))?;
        }
        writer.finish()
    }
}
