//! Reads the blocks of one scan in their order, and puts their coefficients where they belong.

use super::{
    block::{BlockMut, BlockRow},
    container::{File, Scan, unstuffed},
    entropy::{self, State},
    huffman::BitReader,
};
use crate::memory::{self, raise};

/// Reads the DC coefficients of a progressive scan into `dc`, one vector a component.
pub fn read_dc(file: &File<'_>, scan: &Scan, dc: &mut [Vec<i16>]) -> Option<()> {
    for member in &scan.members {
        let component = &file.components[member.component];
        let blocks = file.columns(component) * file.rows(component);
        // Later scans refine what the first one has.
        if dc[member.component].is_empty() {
            dc[member.component] = memory::zeros(blocks).unwrap_or_else(raise);
        }
    }
    walk(file, scan, &mut DcReader { file, scan, dc })
}

/// Takes rows of blocks as soon as a file's last scan of them is read.
pub trait Finished {
    /// Row `y` of a component.
    fn row(&mut self, component: usize, y: usize, row: BlockRow);

    /// So many rows of MCUs are complete; `usize::MAX` is all.
    fn mcu_rows(&mut self, _count: usize) {}
}

/// Reads AC coefficients, and those of DC, too, in a sequential file, into `rows`, one vector for each
/// component of the scan, or moves them on to `finished`.
pub fn read_ac<'a>(
    file: &File<'_>,
    scan: &'a Scan,
    rows: Vec<&'a mut Vec<BlockRow>>,
    finished: Option<&'a mut (dyn Finished + 'a)>,
) -> Option<()> {
    match (file.progressive, scan.refines) {
        (false, _) => walk(file, scan, &mut AcReader::<SEQUENTIAL> { scan, rows, finished }),
        (_, false) => walk(file, scan, &mut AcReader::<FIRST> { scan, rows, finished }),
        (_, true) => walk(file, scan, &mut AcReader::<REFINEMENT> { scan, rows, finished }),
    }
}

/// What is done with the blocks of a scan.
trait Reader {
    /// Before a row of blocks (one component) or MCUs (several; T.81, A.2).
    fn begin(&mut self, _y: usize, _file: &File<'_>) {}

    /// Reads the block at `at`, in blocks of the component, of the scan's member `slot`.
    fn block(
        &mut self,
        bits: &mut BitReader<'_>,
        state: &mut State,
        slot: usize,
        at: [usize; 2],
    ) -> Option<()>;

    /// After a row of blocks or MCUs.
    fn end(&mut self, _y: usize, _file: &File<'_>) {}
}

/// Reads the blocks of a scan in their order (A.2.2 and A.2.3).
fn walk(file: &File<'_>, scan: &Scan, reader: &mut impl Reader) -> Option<()> {
    let (data, intervals) = unstuffed(&file.bytes[scan.data.clone()]);
    let alone = scan.members.len() == 1;
    let [across, down] = match alone {
        true => file.components[scan.members[0].component].blocks,
        false => file.mcus,
    };
    let mcus = across * down;
    let interval = scan.restart_interval;
    let expected = mcus.checked_div(interval).map_or(1, |_| mcus.div_ceil(interval));
    let mut intervals = intervals.into_iter().map(|data_range| BitReader::new(&data[data_range]));
    if intervals.len() != expected {
        return None;
    }
    let (mut bits, mut state, mut left) = (intervals.next()?, State::default(), interval);
    for y in 0..down {
        reader.begin(y, file);
        for x in 0..across {
            if left == 0 && interval > 0 {
                if bits.is_past_end() {
                    return None;
                }
                (bits, state, left) = (intervals.next()?, State::default(), interval);
            }
            left = left.saturating_sub(1);
            if alone {
                reader.block(&mut bits, &mut state, 0, [x, y])?;
                continue;
            }
            for (slot, member) in scan.members.iter().enumerate() {
                let [h, v] = file.components[member.component].sampling;
                for i in 0..h * v {
                    let at = [x * h + i % h, y * v + i / h];
                    reader.block(&mut bits, &mut state, slot, at)?;
                }
            }
        }
        if bits.is_past_end() {
            return None;
        }
        reader.end(y, file);
    }
    Some(())
}

/// DC coefficients of progressive files.
struct DcReader<'a> {
    file: &'a File<'a>,
    scan: &'a Scan,
    dc: &'a mut [Vec<i16>],
}

impl Reader for DcReader<'_> {
    #[inline(always)]
    fn block(
        &mut self,
        bits: &mut BitReader<'_>,
        state: &mut State,
        slot: usize,
        [x, y]: [usize; 2],
    ) -> Option<()> {
        let member = &self.scan.members[slot];
        let stride = self.file.columns(&self.file.components[member.component]);
        let value = &mut self.dc[member.component][y * stride + x];
        let low_bit = self.scan.selection.low_bit;
        if self.scan.refines {
            *value |= (entropy::dc_refinement(bits) << low_bit) as i16;
        } else {
            let table = member.dc.as_ref()?;
            *value = (entropy::dc(bits, table, &mut state.dc[slot])? << low_bit) as i16;
        }
        Some(())
    }
}

/// All coefficients of sequential files.
const SEQUENTIAL: u8 = 0;
/// The first scan of AC coefficients of progressive files.
const FIRST: u8 = 1;
/// A later one.
const REFINEMENT: u8 = 2;

struct AcReader<'a, const KIND: u8> {
    scan: &'a Scan,
    /// The rows of each member.
    rows: Vec<&'a mut Vec<BlockRow>>,
    finished: Option<&'a mut (dyn Finished + 'a)>,
}

impl<const KIND: u8> AcReader<'_, KIND> {
    /// Component, number and blocks of the rows that row `y` of the scan has.
    fn rows_of(
        &mut self,
        y: usize,
        file: &File<'_>,
    ) -> impl Iterator<Item = (usize, usize, &mut BlockRow)> {
        let alone = self.scan.members.len() == 1;
        self.scan.members.iter().zip(&mut self.rows).flat_map(move |(member, rows)| {
            let down = if alone { 1 } else { file.components[member.component].sampling[1] };
            let rows = rows.iter_mut().enumerate().skip(y * down).take(down);
            rows.map(move |(y, row)| (member.component, y, row))
        })
    }
}

impl<const KIND: u8> Reader for AcReader<'_, KIND> {
    fn begin(&mut self, y: usize, file: &File<'_>) {
        for (component, _, row) in self.rows_of(y, file) {
            if row.nonzero.is_empty() {
                *row = BlockRow::new(file.columns(&file.components[component]));
            }
        }
    }

    #[inline(always)]
    fn block(
        &mut self,
        bits: &mut BitReader<'_>,
        state: &mut State,
        slot: usize,
        [x, y]: [usize; 2],
    ) -> Option<()> {
        let (member, selection) = (&self.scan.members[slot], self.scan.selection);
        let table = member.ac.as_ref()?;
        let row = &mut self.rows[slot][y];
        let values = &mut row.values.as_chunks_mut::<64>().0[x];
        let nonzero = &mut row.nonzero[x];
        if KIND == SEQUENTIAL {
            let dc = member.dc.as_ref()?;
            values[0] = entropy::dc(bits, dc, &mut state.dc[slot])? as i16;
        }
        let block = BlockMut { values, nonzero };
        match KIND {
            SEQUENTIAL => entropy::ac_sequential(bits, table, block),
            FIRST => entropy::ac_first(bits, table, selection, &mut state.eob_run, block),
            _ => entropy::ac_refinement(bits, table, selection, &mut state.eob_run, block),
        }
    }

    fn end(&mut self, y: usize, file: &File<'_>) {
        if self.finished.is_none() {
            return;
        }
        let rows: Vec<(usize, usize, BlockRow)> =
            self.rows_of(y, file).map(|(c, y, row)| (c, y, std::mem::take(row))).collect();
        let finished = self.finished.as_mut().expect("checked above");
        rows.into_iter().for_each(|(component, y, row)| finished.row(component, y, row));
        let first = &file.components[self.scan.members[0].component];
        let (down, all) = match self.scan.members.len() {
            1 => (first.sampling[1], first.blocks[1]),
            _ => (1, file.mcus[1]),
        };
        finished.mcu_rows(if y + 1 == all { usize::MAX } else { (y + 1) / down });
    }
}
