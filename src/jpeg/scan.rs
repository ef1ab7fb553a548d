//! Reads the blocks of one scan in their order (ITU-T T.81, A.2), and stores their coefficients.

use std::{iter::Peekable, ops::Range, slice};

use super::{
    Frame, ZIGZAG,
    damage::DamageMap,
    entropy::{self, Selection, State},
    header::{JpegFile, Process, Scan, ScanComponent},
    huffman_decoder::BitReader,
    marker::{Interval, unstuffed},
};
use crate::util::{
    memory::{self, raise},
    parallel::Parallel,
};

/// A row of blocks of one component.
#[derive(Debug, Default)]
pub struct BlockRow {
    /// The coefficients of each block, row by row; not dequantized.
    pub values: Vec<[i16; 64]>,
    /// In progressive files, for each block a mask whose bit `k` is set if AC coefficient `k` in zig-zag order is not
    /// 0.
    nonzero: Vec<u64>,
}

impl BlockRow {
    /// Resizes the row to `blocks` blocks. In progressive files they are cleared here, in others when they are read.
    fn prepare(&mut self, blocks: usize, is_progressive: bool) {
        if self.values.len() != blocks {
            self.values = memory::zeros(blocks).unwrap_or_else(raise);
        } else if is_progressive {
            self.values.fill([0; 64]);
        }
        self.nonzero.clear();
        self.nonzero.resize(if is_progressive { blocks } else { 0 }, 0);
    }

    /// Completes row `y` of `blocks` blocks. `dc` holds the DC coefficients of the component in a progressive file.
    pub fn complete(&mut self, y: usize, blocks: usize, dc: Option<&Vec<i16>>) {
        // No scan has the AC coefficients of this component.
        if self.values.is_empty() {
            self.prepare(blocks, true);
        }
        if let Some(dc) = dc.and_then(|dc| dc.get(y * blocks..)) {
            self.values.iter_mut().zip(dc).for_each(|(block, &dc)| block[0] = dc);
        }
    }
}

/// A consumer of rows of blocks. It gets each row as soon as the last scan of the row is read.
pub trait RowSink {
    /// Takes the next row of a component, from the top down.
    fn push_row(&mut self, component: usize, row: BlockRow);

    /// Returns a row of a component whose memory can be reused, or an empty one.
    fn take_spare(&mut self, _component: usize) -> BlockRow {
        BlockRow::default()
    }

    /// Called when the first `count` rows of MCUs are complete; `usize::MAX` means all.
    fn finish_mcu_rows(&mut self, _count: usize) {}
}

/// The destination of the AC coefficients of a scan. In sequential files, it also takes the DC coefficients.
pub struct ScanOutput<'a> {
    /// All rows of each component of the scan. Rows that no scan has reached are empty.
    pub rows: Vec<&'a mut [BlockRow]>,
    /// DC coefficients of each component of a progressive file.
    pub dc: &'a [Vec<i16>],
    /// Gets the rows that are complete after this scan.
    pub output: Option<&'a mut (dyn RowSink + 'a)>,
}

/// Reads the DC coefficients of a progressive scan into `dc`, one vector for each component.
pub fn read_dc(file: &JpegFile<'_>, scan: &Scan, dc: &mut [Vec<i16>], damage: &DamageMap) {
    for member in &scan.members {
        let [across, down] = file.frame.blocks(member.component);
        // Later scans refine the coefficients of the first one.
        if dc[member.component].is_empty() {
            dc[member.component] = memory::zeros(across * down).unwrap_or_else(raise);
        }
    }
    let across = scan.members.iter().map(|member| file.frame.blocks(member.component)[0]);
    let across = across.collect();
    ScanData::new(file, scan).read(&mut DcReader { scan, across, dc }, damage);
}

/// Reads AC coefficients, and in sequential files also DC coefficients.
pub fn read_ac(file: &JpegFile<'_>, scan: &Scan, target: ScanOutput<'_>, damage: &DamageMap) {
    let data = ScanData::new(file, scan);
    match (file.process, scan.refines, target) {
        (Process::Progressive, false, target) => {
            data.read(&mut AcReader::<FIRST>::new(&data, target, 0), damage);
        }
        (Process::Progressive, true, target) => {
            data.read(&mut AcReader::<REFINEMENT>::new(&data, target, 0), damage);
        }
        (_, _, ScanOutput { output: Some(output), .. }) if data.has_row_groups() => {
            read_row_groups(&data, output, damage);
        }
        (.., target) => data.read(&mut AcReader::<SEQUENTIAL>::new(&data, target, 0), damage),
    }
}

/// Reads the row groups of a sequential scan in parallel.
fn read_row_groups(data: &ScanData<'_>, output: &mut dyn RowSink, damage: &DamageMap) {
    let BlockOrder { steps, .. } = &data.order;
    let read = |group: &RowGroup| {
        let empty = |[_, down]: &[usize; 2]| {
            (0..group.rows.len() * down).map(|_| BlockRow::default()).collect()
        };
        let mut rows: Vec<Vec<BlockRow>> = steps.iter().map(empty).collect();
        let slices = rows.iter_mut().map(Vec::as_mut_slice).collect();
        let target = ScanOutput { rows: slices, dc: &[], output: None };
        let mut reader = AcReader::<SEQUENTIAL>::new(data, target, group.rows.start);
        let mut intervals = data.intervals(group.intervals.clone());
        data.read_rows(group.rows.clone(), &mut intervals, &mut reader, damage);
        rows
    };
    // There are as many groups at a time as threads, so that the whole picture is never in memory.
    for groups in data.groups.chunks(rayon::current_num_threads()) {
        for (group, rows) in groups.iter().zip(groups.iter().par_map(read)) {
            for (member, rows) in data.scan.members.iter().zip(rows) {
                rows.into_iter().for_each(|row| output.push_row(member.component, row));
            }
            output.finish_mcu_rows(data.order.mcu_rows(group.rows.end));
        }
    }
}

/// The position of a block in a scan.
#[derive(Clone, Copy)]
struct BlockPosition {
    /// Index of the scan's member.
    slot: usize,
    /// Position across and down, in blocks of the member's component.
    x: usize,
    y: usize,
}

/// A consumer of the blocks of a scan.
trait BlockReader {
    /// Called before each row of the scan.
    fn begin(&mut self, _y: usize) {}

    /// Reads the block at `position`.
    fn block(&mut self, bits: &mut BitReader<'_>, state: &mut State, position: BlockPosition);

    /// Called for a block without data.
    fn missing(&mut self, _position: BlockPosition) {}

    /// Called after each row of the scan.
    fn end(&mut self, _y: usize) {}
}

/// The order of the blocks in a scan: row by row of blocks (scans of one component) or of MCUs (of several; A.2).
struct BlockOrder {
    /// Number of blocks or MCUs across and down.
    size: [usize; 2],
    /// For each member, the number of its blocks in an MCU across and down.
    steps: Vec<[usize; 2]>,
    /// The blocks of an MCU.
    blocks: Vec<BlockPosition>,
    /// Number of rows of the scan in a row of MCUs of the picture.
    rows_per_mcu: usize,
}

impl BlockOrder {
    fn new(frame: &Frame, members: &[ScanComponent]) -> Self {
        let sampling = |member: &ScanComponent| frame.components[member.component].sampling;
        let (size, steps, rows_per_mcu) = match members {
            [member] => {
                let size = frame.samples(member.component).map(|samples| samples.div_ceil(8));
                (size, vec![[1, 1]], sampling(member)[1])
            }
            _ => (frame.mcus(), members.iter().map(sampling).collect(), 1),
        };
        let blocks = steps.iter().enumerate().flat_map(|(slot, &[across, down])| {
            (0..across * down).map(move |i| BlockPosition { slot, x: i % across, y: i / across })
        });
        Self { size, blocks: blocks.collect(), steps, rows_per_mcu }
    }

    /// Number of rows of MCUs that are complete after `rows` rows of the scan; `usize::MAX` means all.
    fn mcu_rows(&self, rows: usize) -> usize {
        if rows == self.size[1] { usize::MAX } else { rows / self.rows_per_mcu }
    }
}

/// Rows of a scan that begin with a restart, and their restart intervals.
struct RowGroup {
    rows: Range<usize>,
    intervals: Range<usize>,
}

/// Approximate number of rows in a group.
const GROUP_ROWS: usize = 8;
/// Number of bytes after the last block of an interval that do not count as damage, since some encoders add padding.
const PADDING: usize = 16;

/// A scan with its unstuffed data.
struct ScanData<'a> {
    frame: &'a Frame,
    scan: &'a Scan,
    order: BlockOrder,
    data: Vec<u8>,
    intervals: Vec<Interval>,
    /// Groups of rows that can be read in parallel; none if a restart interval is missing or out of place.
    groups: Vec<RowGroup>,
}

impl<'a> ScanData<'a> {
    fn new(file: &'a JpegFile<'_>, scan: &'a Scan) -> Self {
        let (data, intervals) = unstuffed(&file.bytes[scan.data.clone()]);
        let order = BlockOrder::new(&file.frame, &scan.members);
        let groups = split_into_groups(&order, scan.restart_interval, &intervals);
        Self { frame: &file.frame, scan, order, data, intervals, groups }
    }

    /// Whether there are row groups for several threads.
    fn has_row_groups(&self) -> bool {
        self.groups.len() > 1 && rayon::current_num_threads() > 1
    }

    /// The restart intervals in `range`. The first of them counts as expected, whatever its number.
    fn intervals(&self, range: Range<usize>) -> Intervals<'_> {
        let restart = self.intervals.get(range.start).and_then(|interval| interval.restart);
        Intervals { data: &self.data, found: self.intervals[range].iter().peekable(), restart }
    }

    /// Reads all blocks of the scan in their order.
    fn read(&self, reader: &mut impl BlockReader, damage: &DamageMap) {
        let mut intervals = self.intervals(0..self.intervals.len());
        self.read_rows(0..self.order.size[1], &mut intervals, reader, damage);
        if intervals.found.next().is_some_and(|interval| interval.data.len() > PADDING) {
            damage.add_leftover();
        }
    }

    /// Reads the blocks of the rows `rows`, which begin with the first of `intervals`. Once the data of an interval
    /// end, the blocks up to the next restart are left unchanged and recorded as damage. After an invalid code, blocks
    /// are still read, but the rows up to the next restart are recorded as damage, too.
    fn read_rows(
        &self,
        rows: Range<usize>,
        intervals: &mut Intervals<'_>,
        reader: &mut impl BlockReader,
        damage: &DamageMap,
    ) {
        let BlockOrder { size: [across, _], steps, blocks, rows_per_mcu } = &self.order;
        let interval = self.scan.restart_interval;
        let (mut bits, mut state, mut left) = (intervals.next(), State::default(), interval);
        let mut has_rows = false;
        for y in rows {
            reader.begin(y);
            let mut is_complete = true;
            for x in 0..*across {
                if left == 0 && interval > 0 {
                    // As in libjpeg, the first MCU of a missing interval is read from zero bits, unless the data had
                    // ended before.
                    let was_read = bits.is_some();
                    end_interval(bits, damage);
                    let next = intervals.next().or(was_read.then(|| BitReader::new(&[])));
                    (bits, state, left) = (next, State::default(), interval);
                }
                left = left.saturating_sub(1);
                let positions = blocks.iter().map(|block| {
                    let [h, v] = steps[block.slot];
                    BlockPosition { slot: block.slot, x: x * h + block.x, y: y * v + block.y }
                });
                let Some(some) = &mut bits else {
                    positions.for_each(|position| reader.missing(position));
                    damage.add_row(y / rows_per_mcu);
                    is_complete = false;
                    continue;
                };
                positions.for_each(|position| reader.block(some, &mut state, position));
                let is_past_end = some.is_past_end();
                is_complete &= !is_past_end;
                if is_past_end || some.is_invalid() {
                    damage.add_row(y / rows_per_mcu);
                }
                if is_past_end {
                    bits = None;
                }
            }
            reader.end(y);
            has_rows |= is_complete;
        }
        if has_rows {
            damage.add_complete_rows();
        }
        end_interval(bits, damage);
    }
}

/// Splits a scan into row groups that start with a restart; none if a restart interval is missing or out of place.
fn split_into_groups(order: &BlockOrder, interval: usize, intervals: &[Interval]) -> Vec<RowGroup> {
    let [across, down] = order.size;
    let is_next = |(k, found): (usize, &Interval)| {
        found.restart.map(usize::from) == k.checked_sub(1).map(|before| before % 8)
    };
    let expected = (across * down).div_ceil(interval.max(1));
    let are_all = intervals.len() == expected && intervals.iter().enumerate().all(is_next);
    // The smallest number of rows that ends with a restart: across * rows is a multiple of the interval.
    let rows = (1..=down).find(|rows| interval > 0 && (across * rows).is_multiple_of(interval));
    let Some(rows) = rows.filter(|_| are_all) else { return Vec::new() };
    let rows = rows * (GROUP_ROWS / rows).max(1);
    let group = |start: usize| {
        let rows = start..down.min(start + rows);
        let [first, last] = [rows.start, rows.end].map(|row| (across * row).div_ceil(interval));
        RowGroup { rows, intervals: first..last }
    };
    (0..down).step_by(rows).map(group).collect()
}

/// Records data after the last block of an interval, unless invalid codes are recorded already.
fn end_interval(bits: Option<BitReader<'_>>, damage: &DamageMap) {
    if bits.is_some_and(|bits| !bits.is_invalid() && bits.bytes_left() > PADDING) {
        damage.add_leftover();
    }
}

/// The restart intervals of a scan in their order.
struct Intervals<'a> {
    data: &'a [u8],
    /// The intervals to come.
    found: Peekable<slice::Iter<'a, Interval>>,
    /// The number of the restart marker expected before the next interval.
    restart: Option<u8>,
}

impl<'a> Intervals<'a> {
    /// The next interval; `None` if it is missing. Restart markers are numbered from 0 to 7 cyclically (B.2.1).
    /// Therefore up to two missing markers in a row are detected, and the intervals after them are placed correctly. As
    /// in libjpeg, a number that is not within two of the expected one counts as the expected one.
    fn next(&mut self) -> Option<BitReader<'a>> {
        let expected = self.restart;
        self.restart = Some(expected.map_or(0, |number| (number + 1) % 8));
        let ahead = |interval: &Interval| match (interval.restart, expected) {
            (Some(found), Some(expected)) => (8 + found - expected) % 8,
            _ => 0,
        };
        // An interval that was expected earlier is out of place, and is skipped.
        while self.found.next_if(|interval| ahead(interval) >= 6).is_some() {}
        let next = self.found.next_if(|interval| !(1..=2).contains(&ahead(interval)))?;
        Some(BitReader::new(&self.data[next.data.clone()]))
    }
}

/// Stores the DC coefficients of progressive files.
struct DcReader<'a> {
    scan: &'a Scan,
    /// Blocks of each member across.
    across: Vec<usize>,
    dc: &'a mut [Vec<i16>],
}

impl BlockReader for DcReader<'_> {
    #[inline(always)]
    fn block(&mut self, bits: &mut BitReader<'_>, state: &mut State, position: BlockPosition) {
        let BlockPosition { slot, x, y } = position;
        let member = &self.scan.members[slot];
        let value = &mut self.dc[member.component][y * self.across[slot] + x];
        let low_bit = self.scan.selection.low_bit;
        if self.scan.refines {
            *value |= (entropy::read_dc_refinement(bits) << low_bit) as i16;
        } else {
            let dc = entropy::read_dc(bits, &member.dc, &mut state.dc[slot]);
            *value = (dc << low_bit) as i16;
        }
    }
}

/// [`AcReader`] of all coefficients of sequential files.
const SEQUENTIAL: u8 = 0;
/// [`AcReader`] of the first scan of AC coefficients in progressive files.
const FIRST: u8 = 1;
/// [`AcReader`] of a later scan of AC coefficients in progressive files.
const REFINEMENT: u8 = 2;

/// Stores all coefficients of sequential files, or the AC coefficients of progressive ones.
struct AcReader<'a, 't, const KIND: u8> {
    frame: &'a Frame,
    scan: &'a Scan,
    order: &'a BlockOrder,
    target: ScanOutput<'t>,
    /// Number of the scan's row with which the rows of the target begin.
    first: usize,
}

impl<'a, 't, const KIND: u8> AcReader<'a, 't, KIND> {
    fn new(data: &'a ScanData<'_>, target: ScanOutput<'t>, first: usize) -> Self {
        Self { frame: data.frame, scan: data.scan, order: &data.order, target, first }
    }

    /// The rows of blocks in row `y` of the scan, with their components and numbers.
    fn rows_of(&mut self, y: usize) -> impl Iterator<Item = (usize, usize, &mut BlockRow)> {
        let members = self.scan.members.iter().zip(&self.order.steps).zip(&mut self.target.rows);
        let first = self.first;
        members.flat_map(move |((member, &[_, down]), rows)| {
            let rows = rows[(y - first) * down..][..down].iter_mut();
            (y * down..).zip(rows).map(move |(y, row)| (member.component, y, row))
        })
    }
}

impl<const KIND: u8> BlockReader for AcReader<'_, '_, KIND> {
    fn begin(&mut self, y: usize) {
        let (frame, mut output) = (self.frame, self.target.output.take());
        for (component, _, row) in self.rows_of(y).filter(|(.., row)| row.values.is_empty()) {
            *row = output
                .as_mut()
                .map_or_else(BlockRow::default, |output| output.take_spare(component));
            row.prepare(frame.blocks(component)[0], KIND != SEQUENTIAL);
        }
        self.target.output = output;
    }

    #[inline(always)]
    fn block(&mut self, bits: &mut BitReader<'_>, state: &mut State, position: BlockPosition) {
        let BlockPosition { slot, x, y } = position;
        let (member, selection) = (&self.scan.members[slot], self.scan.selection);
        let table = &member.ac;
        let row = &mut self.target.rows[slot][y - self.first * self.order.steps[slot][1]];
        let values = &mut row.values[x];
        if KIND == SEQUENTIAL {
            const ALL: Selection = Selection { start: 1, end: 63, low_bit: 0 };
            *values = [0; 64];
            values[0] = entropy::read_dc(bits, &member.dc, &mut state.dc[slot]) as i16;
            let set = |k, value| values[usize::from(ZIGZAG[k as usize])] = value;
            return entropy::read_ac::<false>(bits, table, ALL, &mut 0, set);
        }
        let nonzero = &mut row.nonzero[x];
        if KIND == REFINEMENT {
            let run = &mut state.eob_run;
            return entropy::read_ac_refinement(bits, table, selection, run, values, nonzero);
        }
        entropy::read_ac::<true>(bits, table, selection, &mut state.eob_run, |k: u32, value| {
            values[usize::from(ZIGZAG[k as usize])] = value;
            // In damaged files, a value may be cut off to 0.
            *nonzero = *nonzero & !(1 << k) | u64::from(value != 0) << k;
        });
    }

    fn missing(&mut self, position: BlockPosition) {
        if KIND == SEQUENTIAL {
            let y = position.y - self.first * self.order.steps[position.slot][1];
            self.target.rows[position.slot][y].values[position.x] = [0; 64];
        }
    }

    fn end(&mut self, y: usize) {
        let Some(output) = self.target.output.take() else { return };
        let dc = self.target.dc;
        for (component, y, row) in self.rows_of(y) {
            let mut row = std::mem::take(row);
            row.complete(y, row.values.len(), dc.get(component));
            output.push_row(component, row);
        }
        output.finish_mcu_rows(self.order.mcu_rows(y + 1));
        self.target.output = Some(output);
    }
}
