//! Reading of the rows of a page, with stored samples, from strips or tiles that all threads decode.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use super::{
    chunk::{DecodedChunk, StripStream, decode},
    page::Page,
    storage::Compression,
};
use crate::{
    io::{
        Limits,
        image::{codec::ReadAt, error::BoxError},
    },
    util::{memory, parallel::Parallel},
};

/// Decompressed bytes above which a strip is decompressed as a stream, if an image is read by rows.
pub const STREAM_THRESHOLD: u64 = 4 << 20;

/// Decoder of the wanted samples of chunks.
struct ChunkReader<'a> {
    page: Page,
    bytes: Arc<dyn ReadAt + 'a>,
    /// Indices of the wanted samples of a pixel.
    wanted: Vec<usize>,
    limits: Limits,
    damaged: AtomicUsize,
}

/// Reader of rows, from the first to the last.
pub struct RowReader<'a> {
    chunks: ChunkReader<'a>,
    /// Whether strips are decompressed as streams.
    is_streamed: bool,
    /// If so, a stream per plane of the current strip.
    streams: Vec<StripStream<'a>>,
    /// Number and samples of the last row of chunks that was used only in part.
    held: Option<(usize, Vec<u8>)>,
}

impl<'a> RowReader<'a> {
    /// Reader of the `wanted` samples of each pixel. Strips of more than `stream_threshold` decompressed bytes are
    /// decompressed as streams, which requires that rows are read in order.
    pub fn new(
        page: Page,
        bytes: Arc<dyn ReadAt + 'a>,
        wanted: Vec<usize>,
        limits: Limits,
        stream_threshold: u64,
    ) -> Self {
        let is_streamed = !page.is_tiled
            && !page.is_subsampled()
            && !page.compression.is_jpeg()
            && !matches!(page.compression, Compression::Fax(_))
            && page.chunk_bytes(page.chunk[1]) > stream_threshold;
        let chunks = ChunkReader { page, bytes, wanted, limits, damaged: AtomicUsize::new(0) };
        Self { chunks, is_streamed, streams: Vec::new(), held: None }
    }

    pub fn page(&self) -> &Page {
        &self.chunks.page
    }

    pub fn row_bytes(&self) -> usize {
        self.chunks.row_bytes()
    }

    /// Bytes of memory in addition to the rows, if these are read in several steps.
    pub fn held_bytes(&self) -> u64 {
        let (row, page) = (self.row_bytes() as u64, self.page());
        let held = match self.is_streamed {
            true => STREAM_THRESHOLD,
            false => row.saturating_mul(2 * page.chunk[1].min(page.size[1]) as u64),
        };
        held.saturating_add(page.table.bytes())
    }

    /// Warning about damaged chunks.
    pub fn damage(&self) -> Option<String> {
        let (damaged, all) = (self.chunks.damaged.load(Relaxed), self.page().chunk_count());
        (damaged > 0).then(|| format!("{damaged} of its {all} strips or tiles are damaged"))
    }

    /// Reads `rows` into `samples`. The rows must follow the previous ones, unless strips are decompressed as a whole.
    pub fn read(&mut self, rows: Range<usize>, mut samples: &mut [u8]) -> Result<(), BoxError> {
        let row_bytes = self.row_bytes();
        let mut at = rows.start;
        while at < rows.end {
            let chunk_row = at / self.page().chunk[1];
            let span = self.page().rows_in(chunk_row);
            let to;
            if self.is_streamed {
                let end = span.end.min(rows.end);
                (to, samples) = samples.split_at_mut((end - at) * row_bytes);
                self.stream(chunk_row, at - span.start..end - span.start, to)?;
                at = end;
            } else if span.start == at && span.end <= rows.end {
                let mut last = chunk_row + 1;
                while last < self.page().grid()[1] && self.page().rows_in(last).end <= rows.end {
                    last += 1;
                }
                let end = self.page().rows_in(last - 1).end;
                (to, samples) = samples.split_at_mut((end - at) * row_bytes);
                self.chunks.decode(chunk_row..last, to)?;
                at = end;
            } else {
                if self.held.as_ref().is_none_or(|(held, _)| *held != chunk_row) {
                    let (_, mut held) = self.held.take().unwrap_or_default();
                    if held.len() != span.len() * row_bytes {
                        held = memory::zeros(span.len() * row_bytes)?;
                    }
                    self.chunks.decode(chunk_row..chunk_row + 1, &mut held)?;
                    self.held = Some((chunk_row, held));
                }
                let end = span.end.min(rows.end);
                (to, samples) = samples.split_at_mut((end - at) * row_bytes);
                if let Some((_, held)) = &self.held {
                    to.copy_from_slice(&held[(at - span.start) * row_bytes..][..to.len()]);
                }
                at = end;
            }
        }
        Ok(())
    }

    /// Reads `rows` of the strips of one row of chunks as streams.
    fn stream(
        &mut self,
        chunk_row: usize,
        rows: Range<usize>,
        samples: &mut [u8],
    ) -> Result<(), BoxError> {
        let Self { chunks, streams, .. } = self;
        let planes = chunks.planes();
        if rows.start == 0 {
            let open = |plane: &(usize, usize, Vec<usize>)| {
                let number = plane.0 * chunks.page.grid()[1] + chunk_row;
                StripStream::open(&chunks.page, Arc::clone(&chunks.bytes), number)
            };
            *streams = planes.iter().map(open).collect::<Result<_, _>>()?;
        }
        for (stream, (_, to, wanted)) in streams.iter_mut().zip(&planes) {
            debug_assert_eq!(stream.next(), rows.start, "rows are read one after the other");
            let block = stream.read(&chunks.page, rows.len(), wanted);
            let block = block.map_err(|error| format!("strip {chunk_row}: {error}"))?;
            chunks.copy_chunk(&block, 0, *to, samples);
        }
        Ok(())
    }
}

impl ChunkReader<'_> {
    fn row_bytes(&self) -> usize {
        self.page.size[0] * self.wanted.len() * self.page.dtype.size()
    }

    /// Planes to read: number, index of their samples in a pixel, and indices of the wanted samples in their chunks.
    fn planes(&self) -> Vec<(usize, usize, Vec<usize>)> {
        match self.page.is_planar {
            false => vec![(0, 0, self.wanted.clone())],
            true => {
                self.wanted.iter().enumerate().map(|(to, &plane)| (plane, to, vec![0])).collect()
            }
        }
    }

    /// Decodes whole rows of chunks into `samples`.
    fn decode(&self, chunk_rows: Range<usize>, samples: &mut [u8]) -> Result<(), BoxError> {
        let [across, down] = self.page.grid();
        let planes = self.planes();
        let parts: Vec<_> = (0..across)
            .flat_map(|column| planes.iter().map(move |plane| (column, plane)))
            .collect();
        let block = |chunk_row: usize, column: usize, plane: &(usize, usize, Vec<usize>)| {
            let number = (plane.0 * down + chunk_row) * across + column;
            decode(&self.page, &*self.bytes, number, &plane.2, self.limits)
        };
        let row_bytes = self.page.chunk[1].min(self.page.size[1]) * self.row_bytes();
        let threads = rayon::current_num_threads();
        if chunk_rows.len() >= threads || parts.len() == 1 {
            // There may be many strips of one row, so a thread takes several at a time.
            let together = (chunk_rows.len() / (64 * threads)).max(1);
            let tasks = samples.chunks_mut(row_bytes * together).zip(chunk_rows.step_by(together));
            return tasks.par_try_each(|(samples, first)| {
                for (samples, chunk_row) in samples.chunks_mut(row_bytes).zip(first..) {
                    for &(column, plane) in &parts {
                        self.copy_chunk(
                            &block(chunk_row, column, plane)?,
                            column,
                            plane.1,
                            samples,
                        );
                    }
                }
                Ok(())
            });
        }
        for (samples, chunk_row) in samples.chunks_mut(row_bytes).zip(chunk_rows) {
            let blocks = parts.iter().par_map(|&(column, plane)| block(chunk_row, column, plane));
            for (block, (column, plane)) in blocks.into_iter().zip(&parts) {
                self.copy_chunk(&block?, *column, plane.1, samples);
            }
        }
        Ok(())
    }

    /// Copies the samples of a chunk into rows; samples of a plane go to index `to` of each pixel.
    fn copy_chunk(&self, block: &DecodedChunk, column: usize, to: usize, samples: &mut [u8]) {
        if block.is_damaged {
            self.damaged.fetch_add(1, Relaxed);
        }
        let [columns, rows] = block.size;
        let (size, count) = (self.page.dtype.size(), self.wanted.len());
        let pixel = size * count;
        let row_bytes = self.row_bytes();
        if columns == 0 || rows == 0 || pixel == 0 {
            return;
        }
        let from = block.samples.chunks_exact(block.samples.len() / rows);
        for (from, row) in from.zip(samples.chunks_exact_mut(row_bytes)) {
            let row = &mut row[column * self.page.chunk[0] * pixel..][..columns * pixel];
            if self.page.is_planar && count > 1 {
                let pixels = row.chunks_exact_mut(pixel).zip(from.chunks_exact(size));
                pixels.for_each(|(pixel, from)| {
                    pixel[to * size..][..size].copy_from_slice(from);
                });
            } else {
                row.copy_from_slice(from);
            }
        }
    }
}
