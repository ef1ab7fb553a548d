//! Pixels from coefficients, in bands of rows, side by side. A band is rendered as soon as the last scan of the file
//! has given the coefficients that it needs, while later ones are still being decoded. Their memory is used again then,
//! so that it stays in the caches.

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

/// What all bands of a picture have in common.
pub struct Bands<'a> {
    renderer: Renderer<'a>,
    frame: &'a Frame,
    /// DC coefficients of each component in a progressive file, which has them in scans of their own; else empty.
    dc: &'a [Vec<i16>],
    /// Stands for rows whose AC coefficients are all 0.
    zeros: BlockRow,
    /// Rows of each component whose pixels are made.
    used: Vec<Mutex<Vec<BlockRow>>>,
    /// Memory of bands that are consumed.
    consumed: Mutex<Vec<Vec<u8>>>,
    /// Bands that wait for a thread.
    waiting: AtomicUsize,
}

/// Where the pixels of bands go.
pub enum Target<'s> {
    /// To their places in a picture.
    Picture(ChunksMut<'s, u8>),
    /// To a consumer; with the bytes of the bands that are left.
    Consumer(&'s Consume<'s>, usize),
}

/// Takes whole rows of pixels, in any order, and gives their memory back.
pub type Consume<'a> = dyn Fn(Vec<u8>) -> Vec<u8> + Sync + 'a;

/// Where the pixels of one band go.
enum BandTarget<'s> {
    Picture(&'s mut [u8]),
    Consumer(&'s Consume<'s>, usize),
}

impl<'s> Target<'s> {
    /// That of the next band of at most `bytes`; nothing behind the last one.
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
    /// The bands of a picture; nothing where a component's resolution is no whole fraction of the picture's.
    pub fn new(frame: &'a Frame, dc: &'a [Vec<i16>]) -> Option<Self> {
        let widest = (0..dc.len()).map(|c| frame.blocks(c)[0]).max().unwrap_or(0);
        let zeros = BlockRow::new(if dc.iter().all(Vec::is_empty) { 0 } else { widest });
        let used = dc.iter().map(|_| Mutex::default()).collect();
        let (consumed, waiting) = (Mutex::default(), AtomicUsize::new(0));
        let renderer = Renderer::new(frame)?;
        Some(Self { renderer, frame, dc, zeros, used, consumed, waiting })
    }

    /// The target of a picture's pixels.
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
            // A row at the border of two bands is used when both are made.
            let rows = rows.rows.into_iter().filter_map(Arc::into_inner);
            used.lock().unwrap_or_else(PoisonError::into_inner).extend(rows);
        }
    }
}

/// Rows of a component's blocks, one below the other.
#[derive(Default)]
struct Rows {
    /// The number of the first one.
    first: usize,
    rows: VecDeque<Arc<BlockRow>>,
}

/// A band, and the coefficients that it is rendered from.
struct Band<'a> {
    bands: &'a Bands<'a>,
    /// Of each component.
    rows: Vec<Rows>,
}

impl Source for Band<'_> {
    fn row(&self, c: usize, y: usize) -> Option<BlockView<'_>> {
        let Bands { frame, dc, zeros, .. } = self.bands;
        let [across, _] = frame.blocks(c);
        let first = dc[c].get(y * across..(y + 1) * across);
        // The AC coefficients of a row that is not there, or holds no blocks, are in no scan: they are all 0.
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
    /// That of the bands whose rendering has not started.
    target: Target<'s>,
    /// How many have started.
    started: usize,
    /// Of each component, the rows that those bands need, as far as they are decoded.
    rows: Vec<Rows>,
}

impl<'a, 's> Stream<'a, 's> {
    /// Renders to `target` in tasks of `scope`, with the `rows` of each component that are decoded already.
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

    /// The rows that band `number` needs, of which those are kept that the next one needs, too.
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
            // A task that waits for a thread holds its rows, of which few fit into the caches; with one thread only, it
            // would wait until the whole file is decoded.
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
