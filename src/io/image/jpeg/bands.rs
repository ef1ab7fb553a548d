//! Pixels from coefficients, in bands of rows that are made in parallel, also while later rows are still
//! being read.

use std::{slice::ChunksMut, sync::OnceLock};

use rayon::{Scope, prelude::*};

use super::{block::BlockRow, scan::Finished};
use crate::data::jpeg::{
    Frame,
    inverse::{BlockView, Renderer, Source},
};

/// Coefficients on their way to pixels.
pub struct Bands<'a> {
    renderer: Renderer<'a>,
    rows: Rows<'a>,
}

/// The coefficients that are read so far.
struct Rows<'a> {
    frame: &'a Frame,
    /// DC coefficients of progressive files, one vector a component.
    dc: &'a [Vec<i16>],
    /// Rows of blocks of each component that are complete.
    rows: Vec<Vec<OnceLock<BlockRow>>>,
    /// The blocks of rows whose AC coefficients are all 0.
    zeros: BlockRow,
}

impl Source for Rows<'_> {
    fn row(&self, c: usize, y: usize) -> Option<BlockView<'_>> {
        let [across, _] = self.frame.blocks(c);
        let first = self.dc[c].get(y * across..(y + 1) * across);
        // No scan has AC coefficients of a row that is missing or empty.
        let row = self.rows[c][y].get().filter(|row| !row.nonzero.is_empty());
        let row = row.or(first.map(|_| &self.zeros))?;
        let blocks = &row.values.as_chunks::<64>().0[..across];
        Some(BlockView { blocks, first, more: &row.nonzero[..across] })
    }
}

impl<'a> Bands<'a> {
    /// Of `rows` of blocks a component; nothing where a component's resolution is no whole fraction of the picture's.
    pub fn new(
        frame: &'a Frame,
        dc: &'a [Vec<i16>],
        rows: Vec<Vec<OnceLock<BlockRow>>>,
    ) -> Option<Self> {
        let widest = (0..rows.len()).map(|c| frame.blocks(c)[0]).max().unwrap_or(0);
        let zeros = BlockRow::new(if dc.iter().all(Vec::is_empty) { 0 } else { widest });
        Some(Self { renderer: Renderer::new(frame)?, rows: Rows { frame, dc, rows, zeros } })
    }

    /// The pixels of each band.
    fn split<'p>(&self, pixels: &'p mut [u8]) -> ChunksMut<'p, u8> {
        pixels.chunks_mut(self.renderer.band_bytes())
    }

    /// Makes all pixels, when all rows are complete.
    pub fn render_all(&self, pixels: &mut [u8]) {
        let bands = self.split(pixels).enumerate();
        bands.par_bridge().for_each(|(number, band)| self.render(number, band));
    }

    fn render(&self, number: usize, band: &mut [u8]) {
        self.renderer.render(&self.rows, number, band);
    }
}

/// Renders bands while the last scan is being read.
pub struct Stream<'a, 's> {
    bands: &'s Bands<'s>,
    scope: &'a Scope<'s>,
    /// Pixels of the bands that are not started.
    pixels: ChunksMut<'s, u8>,
    started: usize,
}

impl<'a, 's> Stream<'a, 's> {
    /// Renders to `pixels` in threads of `scope`.
    pub fn new(bands: &'s Bands<'s>, scope: &'a Scope<'s>, pixels: &'s mut [u8]) -> Self {
        Self { bands, scope, pixels: bands.split(pixels), started: 0 }
    }
}

impl Finished for Stream<'_, '_> {
    fn row(&mut self, component: usize, y: usize, row: BlockRow) {
        self.bands.rows.rows[component][y].set(row).expect("each row ends once");
    }

    fn mcu_rows(&mut self, count: usize) {
        while count > self.bands.renderer.last_row(self.started) {
            let Some(band) = self.pixels.next() else { return };
            let (bands, number) = (self.bands, self.started);
            self.scope.spawn(move |_| bands.render(number, band));
            self.started += 1;
        }
    }
}
