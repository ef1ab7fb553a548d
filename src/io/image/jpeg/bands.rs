//! Pixels from coefficients, in bands of rows that are made in parallel, also while later rows are still
//! being read.

use std::{slice::ChunksMut, sync::OnceLock};

use rayon::{Scope, prelude::*};

use super::{
    block::BlockRow,
    colour::YcbcrToRgb,
    container::File,
    idct::Idct,
    upsample::{Rows, Upsample},
};
use crate::simd;

/// Rows of MCUs in a band.
const BAND: usize = 8;

/// Coefficients on their way to pixels.
pub struct Bands<'a> {
    pub file: &'a File<'a>,
    /// DC coefficients of progressive files, one vector a component.
    pub dc: &'a [Vec<i16>],
    /// Rows of blocks of each component that are complete.
    pub rows: Vec<Vec<OnceLock<BlockRow>>>,
}

impl Bands<'_> {
    /// The pixels of each band.
    pub fn split<'p>(&self, pixels: &'p mut [u8]) -> ChunksMut<'p, u8> {
        let components = &self.file.components;
        pixels
            .chunks_mut(self.file.size[0] * components.len() * 8 * BAND * components[0].sampling[1])
    }

    /// Makes all pixels, when all rows are complete.
    pub fn render_all(&self, pixels: &mut [u8]) {
        let bands = self.split(pixels).enumerate();
        bands.par_bridge().for_each(|(number, band)| self.render(number, band));
    }

    /// Makes the pixels of band `number`.
    fn render(&self, number: usize, pixels: &mut [u8]) {
        let components = &self.file.components;
        let [width, _] = self.file.size;
        let [_, down] = components[0].sampling;
        let planes: Vec<Plane> =
            (0..components.len()).map(|c| self.plane(c, number, down == 2 && c > 0)).collect();
        let top = number * BAND * down * 8;
        let [y, cb, cr] = &planes[..] else {
            for (row, grey) in pixels.chunks_exact_mut(width).enumerate() {
                grey.copy_from_slice(planes[0].row((top + row) as isize));
            }
            return;
        };
        let (mut full_cb, mut full_cr) = (vec![0; 2 * cb.width], vec![0; 2 * cr.width]);
        let mut sums = vec![0; cb.width];
        for (row, rgb) in pixels.chunks_exact_mut(3 * width).enumerate() {
            let row = (top + row) as isize;
            self.upsample(cb, row, &mut sums, &mut full_cb);
            self.upsample(cr, row, &mut sums, &mut full_cr);
            simd::dispatch(YcbcrToRgb { y: y.row(row), cb: &full_cb, cr: &full_cr, rgb });
        }
    }

    /// Row `y` of a chroma plane at full resolution, into `out`.
    fn upsample(&self, plane: &Plane, y: isize, sums: &mut [i32], out: &mut [u8]) {
        let [across, down] = self.file.components[0].sampling;
        let near = plane.row(y / down as isize);
        let rows = match [across, down] {
            [1, _] => return out[..near.len()].copy_from_slice(near),
            [_, 1] => Rows::Horizontal { near },
            _ => {
                let far = plane.row(y / 2 + if y % 2 == 0 { -1 } else { 1 });
                Rows::Both { near, far, sums }
            }
        };
        simd::dispatch(Upsample { rows, out });
    }

    /// The samples of a component that band `number` needs, with `halo` those of the rows of blocks
    /// above and below, too.
    fn plane(&self, component: usize, number: usize, halo: bool) -> Plane {
        let file = self.file;
        let (c, rows) = (&file.components[component], &self.rows[component]);
        let down = c.sampling[1];
        let (first, end) = (number * BAND * down, (number + 1) * BAND * down);
        let range = first.saturating_sub(halo.into())..(end + usize::from(halo)).min(rows.len());
        let most = file.components[0].sampling;
        let [width, height] =
            [0, 1].map(|axis| (file.size[axis] * c.sampling[axis]).div_ceil(most[axis]));
        let blocks = file.columns(c);
        let stride = 8 * blocks;
        let mut values = vec![0; range.len() * 8 * stride];
        let mut zeros = None;
        for (y, samples) in range.clone().zip(values.chunks_exact_mut(8 * stride)) {
            // No scan has AC coefficients of a row that is missing or empty.
            let row = rows[y].get().filter(|row| !row.nonzero.is_empty());
            let row = row.unwrap_or_else(|| zeros.get_or_insert_with(|| BlockRow::new(blocks)));
            let dc = self.dc[component].get(y * blocks..(y + 1) * blocks);
            simd::dispatch(Idct { row, dc, quantization: &c.quantization, samples, stride });
        }
        Plane { values, stride, first: 8 * range.start, last: height - 1, width }
    }
}

/// Some rows of a component's samples.
struct Plane {
    values: Vec<u8>,
    stride: usize,
    /// The row of the picture that `values` begin with, and the picture's last row.
    first: usize,
    last: usize,
    /// Samples of a row that belong to the picture.
    width: usize,
}

impl Plane {
    /// Row `y`, or the nearest one in the picture.
    fn row(&self, y: isize) -> &[u8] {
        let y = y.clamp(0, self.last as isize) as usize - self.first;
        &self.values[y * self.stride..][..self.width]
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

    /// Takes a complete row of blocks.
    pub fn finish(&self, component: usize, y: usize, row: BlockRow) {
        self.bands.rows[component][y].set(row).expect("each row ends once");
    }

    /// Starts the bands for which `mcu_rows` complete rows of MCUs suffice; all with `usize::MAX`.
    pub fn start(&mut self, mcu_rows: usize) {
        // One row more: chroma at the lower end is upsampled from it.
        while mcu_rows > (self.started + 1) * BAND {
            let Some(band) = self.pixels.next() else { return };
            let (bands, number) = (self.bands, self.started);
            self.scope.spawn(move |_| bands.render(number, band));
            self.started += 1;
        }
    }
}
