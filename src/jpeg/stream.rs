//! Renders bands of pixels in parallel. A band is rendered as soon as the last scan of the file has completed its
//! coefficients, while other threads decode later ones. The memory of the coefficients is then reused, so that it stays
//! in the caches.

use std::{
    borrow::Cow,
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use rayon::Scope;

use super::{
    render::Renderer,
    scan::{BlockRow, RowSink},
};

/// Takes the number of a band and a function that writes its pixels, in any order of the bands.
pub type Consume<'a> = dyn Fn(usize, &dyn Fn(&mut [u8])) + Sync + 'a;

/// State that the tasks of a picture share.
pub struct Bands<'a> {
    pub renderer: Renderer<'a>,
    pub consume: &'a Consume<'a>,
    /// For each component, rows of blocks for reuse.
    spare: [Mutex<Vec<BlockRow>>; 4],
    /// Number of bands that wait for a thread.
    waiting: AtomicUsize,
}

impl<'a> Bands<'a> {
    pub fn new(renderer: Renderer<'a>, consume: &'a Consume<'a>) -> Self {
        Self { renderer, consume, spare: Default::default(), waiting: AtomicUsize::new(0) }
    }

    fn spare(&self, component: usize) -> MutexGuard<'_, Vec<BlockRow>> {
        self.spare[component].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn render(&self, number: usize, rows: Vec<Rows>) {
        // Padding rows of the last MCUs are missing in single-component scans; no pixel depends on them.
        let row = |c: usize, y: usize| {
            let row = rows[c].rows.get(y - rows[c].first);
            Cow::Borrowed(row.map_or(&[][..], |row| &row.values))
        };
        (self.consume)(number, &|pixels| self.renderer.render(row, number, pixels));
        for (c, rows) in rows.into_iter().enumerate() {
            // A row of blocks that two bands share is free once both are rendered: then this is the last reference.
            let rows = rows.rows.into_iter().filter_map(Arc::into_inner);
            self.spare(c).extend(rows);
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

/// Renders bands while the last scan is being decoded.
pub struct Stream<'a, 's> {
    bands: &'s Bands<'s>,
    /// Runs the tasks that render bands.
    scope: &'a Scope<'s>,
    /// Number of bands that have been started.
    started: usize,
    /// For each component, the decoded rows that later bands need.
    rows: [Rows; 4],
}

impl<'a, 's> Stream<'a, 's> {
    pub fn new(bands: &'s Bands<'s>, scope: &'a Scope<'s>) -> Self {
        Self { bands, scope, started: 0, rows: Default::default() }
    }

    /// Returns the rows that band `number` needs, and drops those that the next band does not need.
    fn take_rows(&mut self, number: usize) -> Vec<Rows> {
        let renderer = &self.bands.renderer;
        let take = |(c, held): (usize, &mut Rows)| {
            let (range, next) = (renderer.rows(c, number), renderer.rows(c, number + 1).start);
            let rows = held.rows.iter().take(range.end - held.first).cloned().collect();
            let first = std::mem::replace(&mut held.first, next);
            held.rows.drain(..(next - first).min(held.rows.len()));
            Rows { first, rows }
        };
        self.rows[..renderer.components()].iter_mut().enumerate().map(take).collect()
    }
}

impl RowSink for Stream<'_, '_> {
    fn push_row(&mut self, component: usize, row: BlockRow) {
        self.rows[component].rows.push_back(Arc::new(row));
    }

    fn take_spare(&mut self, component: usize) -> BlockRow {
        self.bands.spare(component).pop().unwrap_or_default()
    }

    fn finish_mcu_rows(&mut self, count: usize) {
        let bands = self.bands;
        while self.started < bands.renderer.bands() && count > bands.renderer.last_row(self.started)
        {
            let number = self.started;
            let rows = self.take_rows(number);
            self.started += 1;
            // A waiting task holds its rows, of which only a few fit into the caches, so with all threads busy this
            // thread renders the band itself. With one thread, tasks would even wait until the whole file is decoded.
            let threads = rayon::current_num_threads();
            if threads == 1 || bands.waiting.load(Ordering::Relaxed) >= threads {
                bands.render(number, rows);
                continue;
            }
            bands.waiting.fetch_add(1, Ordering::Relaxed);
            self.scope.spawn(move |_| {
                bands.waiting.fetch_sub(1, Ordering::Relaxed);
                bands.render(number, rows);
            });
        }
    }
}
