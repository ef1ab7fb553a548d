//! Pixels from coefficients, in bands of rows, side by side. A band is rendered as soon as the last scan of the file
//! has given the coefficients that it needs, while later ones are still being decoded.

use std::{slice::ChunksMut, sync::OnceLock};

use rayon::Scope;

use super::{block::BlockRow, scan::Finished};
use crate::{
    data::jpeg::{
        Frame,
        inverse::{BlockView, Renderer, Source},
    },
    parallel::Parallel,
};

/// The bands of a picture, and what they are rendered from.
pub struct Bands<'a> {
    renderer: Renderer<'a>,
    rows: Rows<'a>,
}

/// The coefficients decoded so far.
struct Rows<'a> {
    frame: &'a Frame,
    /// DC coefficients of each component in a progressive file, which has them in scans of their own; else empty.
    dc: &'a [Vec<i16>],
    /// Of each component, the rows of blocks; those that are complete are set.
    rows: Vec<Vec<OnceLock<BlockRow>>>,
    /// Stands for rows whose AC coefficients are all 0.
    zeros: BlockRow,
}

impl Source for Rows<'_> {
    fn row(&self, c: usize, y: usize) -> Option<BlockView<'_>> {
        let [across, _] = self.frame.blocks(c);
        let first = self.dc[c].get(y * across..(y + 1) * across);
        // The AC coefficients of a row that is not set, or holds no blocks, are in no scan: they are all 0.
        let row = self.rows[c][y].get().filter(|row| !row.nonzero.is_empty());
        let row = row.or(first.map(|_| &self.zeros))?;
        let blocks = &row.values.as_chunks::<64>().0[..across];
        Some(BlockView { blocks, first, more: &row.nonzero[..across] })
    }
}

impl<'a> Bands<'a> {
    /// The bands of a picture with `rows` of blocks for each component; nothing where a component's resolution is no
    /// whole fraction of the picture's.
    pub fn new(
        frame: &'a Frame,
        dc: &'a [Vec<i16>],
        rows: Vec<Vec<OnceLock<BlockRow>>>,
    ) -> Option<Self> {
        let widest = (0..rows.len()).map(|c| frame.blocks(c)[0]).max().unwrap_or(0);
        let zeros = BlockRow::new(if dc.iter().all(Vec::is_empty) { 0 } else { widest });
        Some(Self { renderer: Renderer::new(frame)?, rows: Rows { frame, dc, rows, zeros } })
    }

    /// The bands' parts of the picture's `pixels`.
    fn split<'p>(&self, pixels: &'p mut [u8]) -> ChunksMut<'p, u8> {
        pixels.chunks_mut(self.renderer.band_bytes())
    }

    /// Renders all bands, once all rows are complete.
    pub fn render_all(&self, pixels: &mut [u8]) {
        self.split(pixels).enumerate().par_each(|(number, band)| self.render(number, band));
    }

    fn render(&self, number: usize, band: &mut [u8]) {
        self.renderer.render(&self.rows, number, band);
    }
}

/// Renders bands while the last scan is being decoded.
pub struct Stream<'a, 's> {
    bands: &'s Bands<'s>,
    scope: &'a Scope<'s>,
    /// Pixels of the bands whose rendering has not started.
    pixels: ChunksMut<'s, u8>,
    /// How many have started.
    started: usize,
}

impl<'a, 's> Stream<'a, 's> {
    /// Renders to `pixels` in tasks of `scope`.
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
