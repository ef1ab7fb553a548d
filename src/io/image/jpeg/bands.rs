//! Rendering of pixels from coefficients, in bands of rows, in parallel. A band is rendered as soon as the last scan of
//! the file has given its coefficients, while other threads decode later ones. Then the memory of its coefficients is
//! used again, so that it stays in the caches.

use std::{
    collections::VecDeque,
    slice::ChunksMut,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use rayon::Scope;

use super::{block::BlockRow, scan::Finished};
use crate::{
    data::jpeg::{
        Frame,
        inverse::{BlockView, Renderer, Source},
    },
    memory::{self, raise},
};

/// What all bands of a picture share.
pub struct Bands<'a> {
    renderer: Renderer<'a>,
    frame: &'a Frame,
    /// DC coefficients of each component of a progressive file, which stores them in scans of their own; empty for
    /// sequential files.
    dc: &'a [Vec<i16>],
    /// Stands for rows of blocks whose AC coefficients are all 0.
    zeros: BlockRow,
    /// For each component, rows of blocks that are rendered, for reuse.
    used: Vec<Mutex<Vec<BlockRow>>>,
    /// Pixel buffers of consumed bands, for reuse.
    consumed: Mutex<Vec<Vec<u8>>>,
    /// Number of bands that wait for a thread.
    waiting: AtomicUsize,
}

/// The destination of all pixels.
pub enum Target<'s> {
    /// Into their places in a picture; one chunk for each band.
    Picture(ChunksMut<'s, u8>),
    /// To a consumer; with the number of bytes of all bands to come.
    Consumer(&'s Consume<'s>, usize),
}

/// Takes whole rows of pixels, in any order, and returns the buffer for reuse.
pub type Consume<'a> = dyn Fn(Vec<u8>) -> Vec<u8> + Sync + 'a;

/// The destination of the pixels of one band.
enum BandTarget<'s> {
    Picture(&'s mut [u8]),
    Consumer(&'s Consume<'s>, usize),
}

impl<'s> Target<'s> {
    /// The destination of the next band, which has at most `bytes` bytes; `None` behind the last band.
    fn next(&mut self, bytes: usize) -> Option<BandTarget<'s>> {
        match self {
            Self::Picture(bands) => bands.next().map(BandTarget::Picture),
            Self::Consumer(_, 0) => None,
            Self::Consumer(consume, left) => {
                let bytes = bytes.min(*left);
                *left -= bytes;
                Some(BandTarget::Consumer(*consume, bytes))
            }
        }
    }
}

impl<'a> Bands<'a> {
    /// The bands of a picture; `None` if the resolution of a component is no integer fraction of the picture's.
    pub fn new(frame: &'a Frame, dc: &'a [Vec<i16>]) -> Option<Self> {
        let widest = (0..dc.len()).map(|c| frame.blocks(c)[0]).max().unwrap_or(0);
        let zeros = BlockRow::new(if dc.iter().all(Vec::is_empty) { 0 } else { widest });
        let used = dc.iter().map(|_| Mutex::default()).collect();
        let (consumed, waiting) = (Mutex::default(), AtomicUsize::new(0));
        let renderer = Renderer::new(frame)?;
        Some(Self { renderer, frame, dc, zeros, used, consumed, waiting })
    }

    /// The target for the pixels of a whole picture.
    pub fn picture<'s>(&self, pixels: &'s mut [u8]) -> Target<'s> {
        Target::Picture(pixels.chunks_mut(self.renderer.band_bytes()))
    }

    fn render(&self, number: usize, rows: Vec<Rows>, target: BandTarget<'_>) {
        let band = Band { bands: self, rows };
        match target {
            BandTarget::Picture(pixels) => self.renderer.render(&band, number, pixels),
            BandTarget::Consumer(consume, bytes) => {
                let consumed = || self.consumed.lock().unwrap_or_else(PoisonError::into_inner);
                let mut pixels = consumed().pop().unwrap_or_default();
                if pixels.len() < bytes {
                    pixels = memory::zeros(bytes).unwrap_or_else(raise);
                }
                pixels.truncate(bytes);
                self.renderer.render(&band, number, &mut pixels);
                let pixels = consume(pixels);
                consumed().push(pixels);
            }
        }
        for (used, rows) in self.used.iter().zip(band.rows) {
            // A row of blocks that two bands share is free once both are rendered: then this is the last reference.
            let rows = rows.rows.into_iter().filter_map(Arc::into_inner);
            used.lock().unwrap_or_else(PoisonError::into_inner).extend(rows);
        }
    }
}

/// Consecutive rows of blocks of a component.
#[derive(Default)]
struct Rows {
    /// The number of the first row.
    first: usize,
    rows: VecDeque<Arc<BlockRow>>,
}

/// A band with the coefficients from which it is rendered.
struct Band<'a> {
    bands: &'a Bands<'a>,
    /// The rows of each component.
    rows: Vec<Rows>,
}

impl Source for Band<'_> {
    fn row(&self, c: usize, y: usize) -> Option<BlockView<'_>> {
        let Bands { frame, dc, zeros, .. } = self.bands;
        let [across, _] = frame.blocks(c);
        let first = dc[c].get(y * across..(y + 1) * across);
        // A missing or empty row has AC coefficients in no scan: they are all 0.
        let row = self.rows[c].rows.get(y - self.rows[c].first);
        let row = row.map(|row| &**row).filter(|row| !row.nonzero.is_empty());
        let row = row.or(first.map(|_| zeros))?;
        let blocks = &row.values.as_chunks::<64>().0[..across];
        Some(BlockView { blocks, first, more: &row.nonzero[..across] })
    }
}

/// Renders bands while the last scan is being decoded.
pub struct Stream<'a, 's> {
    bands: &'s Bands<'s>,
    scope: &'a Scope<'s>,
    /// The destination of the bands that are not started yet.
    target: Target<'s>,
    /// Number of bands that have been started.
    started: usize,
    /// For each component, the decoded rows that later bands need.
    rows: Vec<Rows>,
}

impl<'a, 's> Stream<'a, 's> {
    /// Renders to `target` in tasks of `scope`. `rows` are the rows of each component that are decoded already.
    pub fn new(
        bands: &'s Bands<'s>,
        scope: &'a Scope<'s>,
        rows: Vec<Vec<BlockRow>>,
        target: Target<'s>,
    ) -> Self {
        let rows = rows
            .into_iter()
            .map(|rows| Rows { first: 0, rows: rows.into_iter().map(Arc::new).collect() });
        Self { bands, scope, target, started: 0, rows: rows.collect() }
    }

    /// Takes the rows that band `number` needs. Rows that the next band needs, too, are kept as well.
    fn take(&mut self, number: usize) -> Vec<Rows> {
        let renderer = &self.bands.renderer;
        let take = |(c, held): (usize, &mut Rows)| {
            let (range, next) = (renderer.rows(c, number), renderer.rows(c, number + 1).start);
            let rows = held.rows.iter().take(range.end - held.first).cloned().collect();
            let first = std::mem::replace(&mut held.first, next);
            held.rows.drain(..(next - first).min(held.rows.len()));
            Rows { first, rows }
        };
        self.rows.iter_mut().enumerate().map(take).collect()
    }
}

impl Finished for Stream<'_, '_> {
    fn row(&mut self, component: usize, row: BlockRow) {
        self.rows[component].rows.push_back(Arc::new(row));
    }

    fn used(&mut self, component: usize) -> Option<BlockRow> {
        self.bands.used[component].lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn mcu_rows(&mut self, count: usize) {
        while count > self.bands.renderer.last_row(self.started) {
            let bytes = self.bands.renderer.band_bytes();
            let Some(target) = self.target.next(bytes) else { return };
            let (bands, number) = (self.bands, self.started);
            let rows = self.take(number);
            self.started += 1;
            // A waiting task holds its rows, of which only a few fit into the caches, so with all threads busy this
            // thread renders the band itself. With one thread, tasks would even wait until the whole file is decoded.
            let threads = rayon::current_num_threads();
            if threads == 1 || bands.waiting.load(Ordering::Relaxed) >= threads {
                bands.render(number, rows, target);
                continue;
            }
            bands.waiting.fetch_add(1, Ordering::Relaxed);
            self.scope.spawn(move |_| {
                bands.waiting.fetch_sub(1, Ordering::Relaxed);
                bands.render(number, rows, target);
            });
        }
    }
}
