//! Reads the blocks of one scan in their order, and puts their coefficients where they belong.

use std::{iter::Peekable, vec};

use super::{
    block::{BlockMut, BlockRow},
    container::{File, Interval, Scan, unstuffed},
    damage::Damage,
    entropy::{self, State},
    huffman::BitReader,
};
use crate::{
    data::jpeg::{Entry, SparseCoefficients, ZIGZAG},
    memory::{self, raise},
};

/// Reads the DC coefficients of a progressive scan into `dc`, one vector a component.
pub fn read_dc(file: &File<'_>, scan: &Scan, dc: &mut [Vec<i16>], damage: &Damage) {
    for member in &scan.members {
        let component = &file.components[member.component];
        let blocks = file.columns(component) * file.rows(component);
        // Later scans refine what the first one has.
        if dc[member.component].is_empty() {
            dc[member.component] = memory::zeros(blocks).unwrap_or_else(raise);
        }
    }
    walk(file, scan, &mut DcReader { file, scan, dc }, damage);
}

/// Takes rows of blocks as soon as a file's last scan of them is read.
pub trait Finished {
    /// The next row of a component, from the top.
    fn row(&mut self, component: usize, row: BlockRow);

    /// A row of a component whose memory can be used again.
    fn used(&mut self, _component: usize) -> Option<BlockRow> {
        None
    }

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
    damage: &Damage,
) {
    match (file.progressive, scan.refines) {
        (false, _) => {
            walk(file, scan, &mut AcReader::<SEQUENTIAL> { scan, rows, finished }, damage);
        }
        (_, false) => walk(file, scan, &mut AcReader::<FIRST> { scan, rows, finished }, damage),
        (_, true) => walk(file, scan, &mut AcReader::<REFINEMENT> { scan, rows, finished }, damage),
    }
}

/// Reads all coefficients of a scan of a sequential file into `sparse`.
pub fn read_sparse(file: &File<'_>, scan: &Scan, sparse: &mut SparseCoefficients, damage: &Damage) {
    let places = scan.members.iter().map(|member| {
        let (frame, c) = (&sparse.frame, member.component);
        (frame.first_block(c), frame.blocks(c)[0])
    });
    let places = places.collect();
    walk(file, scan, &mut SparseReader { scan, places, sparse }, damage);
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

/// Bytes behind an interval's last block that are no damage: some encoders fill up.
const FILLED: usize = 16;

/// The intervals of a scan, one after the other.
struct Intervals<'a> {
    data: &'a [u8],
    /// Those that are still to come.
    found: Peekable<vec::IntoIter<Interval>>,
    /// The restart before the next one.
    restart: Option<u8>,
}

impl<'a> Intervals<'a> {
    /// The next interval; nothing where it is missing. Restarts are numbered from 0 to 7 again and again (B.2.1), so
    /// that up to three missing ones in a row are known, and the place of those behind them.
    fn next(&mut self) -> Option<BitReader<'a>> {
        let expected = self.restart;
        self.restart = Some(expected.map_or(0, |number| (number + 1) % 8));
        let ahead = |interval: &Interval| match (interval.restart, expected) {
            (Some(found), Some(expected)) => (8 + found - expected) % 8,
            (None, None) => 0,
            _ => 4,
        };
        // One that was expected before is out of place.
        while self.found.next_if(|interval| ahead(interval) >= 4).is_some() {}
        let next = self.found.next_if(|interval| ahead(interval) == 0)?;
        Some(BitReader::new(&self.data[next.data]))
    }
}

/// Reads the blocks of a scan in their order (A.2.2 and A.2.3). Where one cannot be read, those up to the next restart
/// are left as they are, and noted as `damage`.
fn walk(file: &File<'_>, scan: &Scan, reader: &mut impl Reader, damage: &Damage) {
    let (data, found) = unstuffed(&file.bytes[scan.data.clone()]);
    let mut intervals =
        Intervals { data: &data, found: found.into_iter().peekable(), restart: None };
    let alone = scan.members.len() == 1;
    let [across, down] = match alone {
        true => file.components[scan.members[0].component].blocks,
        false => file.mcus,
    };
    // Rows of a single component's blocks in a row of MCUs.
    let rows = if alone { file.components[scan.members[0].component].sampling[1] } else { 1 };
    let interval = scan.restart_interval;
    // The blocks up to the next restart are known to be missing without one.
    let (mut bits, mut state, mut left) = (intervals.next(), State::default(), interval);
    for y in 0..down {
        reader.begin(y, file);
        for x in 0..across {
            if left == 0 && interval > 0 {
                end_interval(bits, y / rows, damage);
                (bits, state, left) = (intervals.next(), State::default(), interval);
            }
            left = left.saturating_sub(1);
            let read = match &mut bits {
                None => None,
                Some(bits) if alone => reader.block(bits, &mut state, 0, [x, y]),
                Some(bits) => mcu(file, scan, reader, bits, &mut state, [x, y]),
            };
            if read.is_none() {
                bits = None;
                damage.row(y / rows);
            }
        }
        if bits.as_ref().is_some_and(BitReader::is_past_end) {
            bits = None;
            damage.row(y / rows);
        }
        reader.end(y, file);
    }
    end_interval(bits, (down - 1) / rows, damage);
    if intervals.found.next().is_some_and(|interval| interval.data.len() > FILLED) {
        damage.leftover();
    }
}

/// Notes what is wrong at the end of an interval in a row of MCUs: its last blocks have no data, or data no blocks.
fn end_interval(bits: Option<BitReader<'_>>, mcu_row: usize, damage: &Damage) {
    let Some(bits) = bits else { return };
    if bits.is_past_end() {
        damage.row(mcu_row);
    } else if bits.bytes_left() > FILLED {
        damage.leftover();
    }
}

/// Reads the blocks of an MCU of several components.
#[inline(always)]
fn mcu(
    file: &File<'_>,
    scan: &Scan,
    reader: &mut impl Reader,
    bits: &mut BitReader<'_>,
    state: &mut State,
    [x, y]: [usize; 2],
) -> Option<()> {
    for (slot, member) in scan.members.iter().enumerate() {
        let [h, v] = file.components[member.component].sampling;
        for i in 0..h * v {
            reader.block(bits, state, slot, [x * h + i % h, y * v + i / h])?;
        }
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

/// All coefficients of sequential files, without zeros.
struct SparseReader<'a> {
    scan: &'a Scan,
    /// The number of each member's first block, and its blocks across.
    places: Vec<(usize, usize)>,
    sparse: &'a mut SparseCoefficients,
}

impl Reader for SparseReader<'_> {
    #[inline(always)]
    fn block(
        &mut self,
        bits: &mut BitReader<'_>,
        state: &mut State,
        slot: usize,
        [x, y]: [usize; 2],
    ) -> Option<()> {
        let (member, (first, across)) = (&self.scan.members[slot], self.places[slot]);
        let (dc, ac) = (member.dc.as_ref()?, member.ac.as_ref()?);
        let dc = entropy::dc(bits, dc, &mut state.dc[slot])? as i16;
        let read = self.sparse.read(first + y * across + x, dc, |entries| {
            entropy::ac_sequential(bits, ac, |place, value| entries.push(Entry::new(place, value)))
        });
        read.unwrap_or_else(raise)
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
    /// Component and blocks of the rows that row `y` of the scan has.
    fn rows_of(
        &mut self,
        y: usize,
        file: &File<'_>,
    ) -> impl Iterator<Item = (usize, &mut BlockRow)> {
        let alone = self.scan.members.len() == 1;
        self.scan.members.iter().zip(&mut self.rows).flat_map(move |(member, rows)| {
            let down = if alone { 1 } else { file.components[member.component].sampling[1] };
            let rows = rows.iter_mut().skip(y * down).take(down);
            rows.map(move |row| (member.component, row))
        })
    }
}

impl<const KIND: u8> Reader for AcReader<'_, KIND> {
    fn begin(&mut self, y: usize, file: &File<'_>) {
        let mut finished = self.finished.take();
        for (component, row) in self.rows_of(y, file) {
            if row.nonzero.is_empty() {
                let used = finished.as_mut().and_then(|finished| finished.used(component));
                let blocks = file.columns(&file.components[component]);
                *row = used.unwrap_or_default().cleared(blocks);
            }
        }
        self.finished = finished;
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
        if KIND == REFINEMENT {
            let block = BlockMut { values, nonzero };
            return entropy::ac_refinement(bits, table, selection, &mut state.eob_run, block);
        }
        let set = |place: u32, value: i16| {
            values[usize::from(ZIGZAG[place as usize])] = value;
            *nonzero |= 1 << place;
        };
        match KIND {
            SEQUENTIAL => entropy::ac_sequential(bits, table, set),
            _ => entropy::ac_first(bits, table, selection, &mut state.eob_run, set),
        }
    }

    fn end(&mut self, y: usize, file: &File<'_>) {
        if self.finished.is_none() {
            return;
        }
        let mut finished = self.finished.take();
        for (component, row) in self.rows_of(y, file) {
            finished.iter_mut().for_each(|finished| finished.row(component, std::mem::take(row)));
        }
        self.finished = finished;
        let finished = self.finished.as_mut().expect("checked above");
        let first = &file.components[self.scan.members[0].component];
        let (down, all) = match self.scan.members.len() {
            1 => (first.sampling[1], first.blocks[1]),
            _ => (1, file.mcus[1]),
        };
        finished.mcu_rows(if y + 1 == all { usize::MAX } else { (y + 1) / down });
    }
}
