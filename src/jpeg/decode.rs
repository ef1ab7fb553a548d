//! The decoder, which runs on all cores. Scans that do not depend on each other are read in parallel, and pixels are
//! rendered while the last scan is still being read.

use std::sync::{Mutex, PoisonError};

use super::{
    SparseCoefficients,
    damage::{Damage, DamageMap},
    header::{JpegFile, Process, Scan},
    render::Renderer,
    scan::{BlockRow, RowSink, ScanOutput, read_ac, read_dc},
    stream::{Bands, Consume, Stream},
};
use crate::util::{
    error::{Error, Result},
    memory::{self, raise},
};

impl JpegFile<'_> {
    /// Decodes the pixels: rows from the top, u8 samples. Also returns the damage of the file. The picture is `shrink`
    /// times smaller (1, 2, 4 or 8): means of samples are converted to colours.
    pub fn decode(&self, shrink: usize) -> Result<(Vec<u8>, Option<Damage>)> {
        let renderer = self.renderer(shrink)?;
        let mut pixels = memory::zeros::<u8>(renderer.output.pixel_bytes())?;
        let bands: Vec<_> = pixels.chunks_mut(renderer.band_bytes()).map(Mutex::new).collect();
        let damage = self.render(renderer, &|number, write| {
            write(&mut bands[number].lock().unwrap_or_else(PoisonError::into_inner));
        });
        drop(bands);
        Ok((pixels, damage))
    }

    /// Decodes the pixels and passes them to `consume`, whole rows at a time, from several threads and in any order.
    /// Returns the damage of the file.
    pub fn decode_to(&self, consume: &(dyn Fn(&mut Vec<u8>) + Sync)) -> Result<Option<Damage>> {
        let renderer = self.renderer(1)?;
        let (all, band) = (self.frame.pixel_bytes(), renderer.band_bytes());
        let buffers = Mutex::new(Vec::new());
        let lock = || buffers.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(self.render(renderer, &|number, write| {
            let mut pixels: Vec<u8> = lock().pop().unwrap_or_default();
            memory::resize(&mut pixels, band.min(all - number * band)).unwrap_or_else(raise);
            write(&mut pixels);
            consume(&mut pixels);
            lock().push(pixels);
        }))
    }

    /// Reads the coefficients, which are not dequantized. Also returns the damage of the file.
    pub fn coefficients(&self) -> Result<(SparseCoefficients, Option<Damage>)> {
        /// Minimum number of bits of a coefficient in most files, to estimate the number of coefficients.
        const BITS: usize = 4;
        self.renderer(1)?;
        let entries = 8 * self.scans.iter().map(|scan| scan.data.len()).sum::<usize>() / BITS;
        let sparse = SparseCoefficients::zeros(&self.frame, entries)?;
        let mut sink = SparseSink { sparse, rows: Default::default() };
        let damage = DamageMap::new(&self.frame);
        self.read_scans(&mut sink, &damage);
        Ok((sink.sparse, self.damage(&damage)))
    }

    fn renderer(&self, shrink: usize) -> Result<Renderer<'_>> {
        match (self.process, self.precision) {
            (Process::Lossless, _) => Err(Error::bad_input("lossless JPEG is not supported")),
            (_, 8) => Renderer::new(&self.frame, shrink),
            (_, precision) => Err(Error::bad_input(format_args!(
                "JPEG of {precision} bits per sample is not supported"
            ))),
        }
    }

    fn render(&self, renderer: Renderer<'_>, consume: &Consume<'_>) -> Option<Damage> {
        let damage = DamageMap::new(&self.frame);
        let bands = Bands::new(renderer, consume);
        rayon::scope(|scope| self.read_scans(&mut Stream::new(&bands, scope), &damage));
        self.damage(&damage)
    }

    /// Reads all scans and passes the rows of blocks to `output`: those of the last scan as soon as each is complete.
    pub(super) fn read_scans(&self, output: &mut dyn RowSink, damage: &DamageMap) {
        let components = 0..self.frame.components.len();
        let empty = |c| (0..self.frame.blocks(c)[1]).map(|_| BlockRow::default()).collect();
        let mut planes: Vec<Vec<BlockRow>> = components.clone().map(empty).collect();
        let mut dc = vec![Vec::new(); components.len()];
        let (last, earlier) = match self.scans.split_last() {
            Some((last, earlier)) if last.selection.end > 0 => (Some(last), earlier),
            _ => (None, &self.scans[..]),
        };
        self.read_in_parallel(earlier, &mut planes, &mut dc, damage);
        let is_last = |c| last.is_some_and(|scan| scan.members.iter().any(|m| m.component == c));
        for c in components.filter(|&c| !is_last(c)) {
            let [across, _] = self.frame.blocks(c);
            for (y, mut row) in std::mem::take(&mut planes[c]).into_iter().enumerate() {
                row.complete(y, across, dc.get(c));
                output.push_row(c, row);
            }
        }
        let Some(last) = last else { return output.finish_mcu_rows(usize::MAX) };
        // The members of a scan are in the order of the components.
        let rows = planes.iter_mut().enumerate().filter(|(c, _)| is_last(*c));
        let rows = rows.map(|(_, rows)| rows.as_mut_slice()).collect();
        read_ac(self, last, ScanOutput { rows, dc: &dc, output: Some(output) }, damage);
    }

    /// Reads `scans` in parallel. Scans of DC coefficients do not depend on scans of AC coefficients, and these do not
    /// depend on other components.
    fn read_in_parallel(
        &self,
        scans: &[Scan],
        planes: &mut [Vec<BlockRow>],
        dc: &mut [Vec<i16>],
        damage: &DamageMap,
    ) {
        let mut planes: Vec<Option<&mut Vec<BlockRow>>> = planes.iter_mut().map(Some).collect();
        rayon::scope(|scope| {
            for c in 0..planes.len() {
                let is_in_chain =
                    |scan: &&Scan| scan.selection.end > 0 && scan.members[0].component == c;
                let chain: Vec<&Scan> = scans.iter().filter(is_in_chain).collect();
                let Some(first) = chain.first() else { continue };
                let members = first.members.iter();
                let mut rows: Vec<&mut Vec<BlockRow>> =
                    members.filter_map(|member| planes[member.component].take()).collect();
                scope.spawn(move |_| {
                    for scan in chain {
                        let rows = rows.iter_mut().map(|rows| rows.as_mut_slice()).collect();
                        read_ac(self, scan, ScanOutput { rows, dc: &[], output: None }, damage);
                    }
                });
            }
            for scan in scans.iter().filter(|scan| scan.selection.end == 0) {
                read_dc(self, scan, dc, damage);
            }
        });
    }
}

/// Collects the nonzero coefficients.
struct SparseSink {
    sparse: SparseCoefficients,
    /// For each component, the number of rows that were added, and a row for reuse.
    rows: [(usize, BlockRow); 4],
}

impl RowSink for SparseSink {
    fn push_row(&mut self, c: usize, row: BlockRow) {
        let (number, spare) = &mut self.rows[c];
        let first = self.sparse.frame.first_block(c) + *number * row.values.len();
        self.sparse.set(first, &row.values).unwrap_or_else(raise);
        *number += 1;
        *spare = row;
    }

    fn take_spare(&mut self, c: usize) -> BlockRow {
        std::mem::take(&mut self.rows[c].1)
    }
}
