//! Reading of the blocks of one scan in their order, and storing of their coefficients.

use std::{iter::Peekable, ops::Range, vec};

use super::{
    block::{BlockMut, BlockRow},
    container::{File, Interval, Member, Scan, unstuffed},
    damage::Damage,
    entropy::{self, State},
    huffman::BitReader,
};
use crate::{
    data::jpeg::{Entry, SparseCoefficients, ZIGZAG},
    memory::{self, raise},
    parallel::Parallel,
};

/// Reads the DC coefficients of a progressive scan into `dc`, one vector for each component.
pub fn read_dc(file: &File<'_>, scan: &Scan, dc: &mut [Vec<i16>], damage: &Damage) {
    for member in &scan.members {
        let component = &file.components[member.component];
        let blocks = file.columns(component) * file.rows(component);
        // Later scans refine the coefficients of the first one.
        if dc[member.component].is_empty() {
            dc[member.component] = memory::zeros(blocks).unwrap_or_else(raise);
        }
    }
    walk(file, scan, &mut DcReader { file, scan, dc }, damage);
}

/// A consumer of rows of blocks, called as soon as the last scan of a row is read.
pub trait Finished {
    /// Takes the next row of a component, from the top down.
    fn row(&mut self, component: usize, row: BlockRow);

    /// Gives back a row of a component whose memory can be reused.
    fn used(&mut self, _component: usize) -> Option<BlockRow> {
        None
    }

    /// Called when `count` rows of MCUs are complete; `usize::MAX` means all.
    fn mcu_rows(&mut self, _count: usize) {}
}

/// Reads AC coefficients, in sequential files with DC coefficients, into `rows`, one vector for each component of the
/// scan, or passes them to `finished`.
pub fn read_ac<'a>(
    file: &File<'_>,
    scan: &'a Scan,
    rows: Vec<&'a mut Vec<BlockRow>>,
    finished: Option<&'a mut (dyn Finished + 'a)>,
    damage: &Damage,
) {
    match (file.progressive, scan.refines, finished) {
        (false, _, Some(finished)) => read_sequential(file, scan, rows, finished, damage),
        (false, _, None) => {
            walk(file, scan, &mut AcReader::<SEQUENTIAL>::new(scan, rows, None), damage);
        }
        (_, false, finished) => {
            walk(file, scan, &mut AcReader::<FIRST>::new(scan, rows, finished), damage);
        }
        (_, true, finished) => {
            walk(file, scan, &mut AcReader::<REFINEMENT>::new(scan, rows, finished), damage);
        }
    }
}

/// Reads all coefficients of a scan of a sequential file; in parallel if all restart intervals are there.
fn read_sequential<'a>(
    file: &File<'_>,
    scan: &'a Scan,
    rows: Vec<&'a mut Vec<BlockRow>>,
    finished: &'a mut (dyn Finished + 'a),
    damage: &Damage,
) {
    let data = Unstuffed::of(file, scan);
    let threads = rayon::current_num_threads();
    let parts = if threads > 1 { data.parts(file, scan) } else { Vec::new() };
    if parts.len() < 2 {
        let reader = &mut AcReader::<SEQUENTIAL>::new(scan, rows, Some(finished));
        return data.walk(file, scan, reader, damage);
    }
    let alone = scan.members.len() == 1;
    let [_, down] = scan.size(file);
    // As many parts at a time as there are threads, so that not the whole picture is in memory.
    for parts in parts.chunks(threads) {
        let read = |part: &Part| {
            let empty = |member: &Member| {
                let rows = if alone { 1 } else { file.components[member.component].sampling[1] };
                (0..part.rows.len() * rows).map(|_| BlockRow::default()).collect()
            };
            let mut rows: Vec<Vec<BlockRow>> = scan.members.iter().map(empty).collect();
            let reader = AcReader::<SEQUENTIAL>::new(scan, rows.iter_mut().collect(), None);
            let mut reader = reader.starting_at(part.rows.start, file);
            let mut intervals = data.intervals(part.intervals.clone());
            walk_rows(file, scan, part.rows.clone(), &mut intervals, &mut reader, damage);
            rows
        };
        for (part, rows) in parts.iter().zip(parts.iter().par_map(read)) {
            for (member, rows) in scan.members.iter().zip(rows) {
                rows.into_iter().for_each(|row| finished.row(member.component, row));
            }
            finished.mcu_rows(scan.mcu_rows(file, part.rows.end, down));
        }
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

/// The position of a block in a scan.
#[derive(Clone, Copy)]
struct Place {
    /// Index of the scan's member.
    slot: usize,
    /// Position across and down, in blocks of the member's component.
    x: usize,
    y: usize,
}

/// A consumer of the blocks of a scan.
trait Reader {
    /// Called before each row of blocks (scans of one component) or MCUs (of several; T.81, A.2).
    fn begin(&mut self, _y: usize, _file: &File<'_>) {}

    /// Reads the block at `place`.
    fn block(&mut self, bits: &mut BitReader<'_>, state: &mut State, place: Place);

    /// Called after each row of blocks or MCUs.
    fn end(&mut self, _y: usize, _file: &File<'_>) {}
}

/// Number of bytes behind the last block of an interval that are not taken for damage, since some encoders add padding.
const FILLED: usize = 16;

/// Rows of a scan that begin with a restart, and their restart intervals.
struct Part {
    rows: Range<usize>,
    intervals: Range<usize>,
}

/// Approximate number of rows of MCUs in a part.
const PART: usize = 8;

/// The unstuffed data of a scan, and its restart intervals.
struct Unstuffed {
    data: Vec<u8>,
    intervals: Vec<Interval>,
}

impl Unstuffed {
    fn of(file: &File<'_>, scan: &Scan) -> Self {
        let (data, intervals) = unstuffed(&file.bytes[scan.data.clone()]);
        Self { data, intervals }
    }

    /// The restart intervals in `range`. The first one is expected first, whatever its number.
    fn intervals(&self, range: Range<usize>) -> Intervals<'_> {
        let restart = self.intervals.get(range.start).and_then(|interval| interval.restart);
        let found: Vec<Interval> = self.intervals[range].to_vec();
        Intervals { data: &self.data, found: found.into_iter().peekable(), restart }
    }

    /// Splits the scan into parts; none if a restart interval is missing or out of place.
    fn parts(&self, file: &File<'_>, scan: &Scan) -> Vec<Part> {
        let ([across, down], interval) = (scan.size(file), scan.restart_interval);
        let is_next = |(k, found): (usize, &Interval)| {
            found.restart.map(usize::from) == k.checked_sub(1).map(|before| before % 8)
        };
        let expected = (across * down).div_ceil(interval.max(1));
        let are_all =
            self.intervals.len() == expected && self.intervals.iter().enumerate().all(is_next);
        // The smallest number of rows that ends with a restart: across * rows is a multiple of the interval.
        let rows = (1..=down).find(|rows| interval > 0 && (across * rows).is_multiple_of(interval));
        let Some(rows) = rows.filter(|_| are_all) else { return Vec::new() };
        let rows = rows * (PART / rows).max(1);
        let part = |start: usize| {
            let rows = start..down.min(start + rows);
            let [first, last] = [rows.start, rows.end].map(|row| (across * row).div_ceil(interval));
            Part { rows, intervals: first..last }
        };
        (0..down).step_by(rows).map(part).collect()
    }

    /// Reads the blocks of the scan in their order (A.2.2 and A.2.3).
    fn walk(&self, file: &File<'_>, scan: &Scan, reader: &mut impl Reader, damage: &Damage) {
        let mut intervals = self.intervals(0..self.intervals.len());
        let [_, down] = scan.size(file);
        walk_rows(file, scan, 0..down, &mut intervals, reader, damage);
        if intervals.found.next().is_some_and(|interval| interval.data.len() > FILLED) {
            damage.leftover();
        }
    }
}

impl Scan {
    /// Number of blocks (scans of one component) or MCUs (of several), across and down.
    fn size(&self, file: &File<'_>) -> [usize; 2] {
        match &self.members[..] {
            [member] => file.components[member.component].blocks,
            _ => file.mcus,
        }
    }

    /// Number of rows of MCUs that are complete after `rows` of the `down` rows of the scan; `usize::MAX` means all.
    fn mcu_rows(&self, file: &File<'_>, rows: usize, down: usize) -> usize {
        match &self.members[..] {
            _ if rows == down => usize::MAX,
            [member] => rows / file.components[member.component].sampling[1],
            _ => rows,
        }
    }
}

/// An iterator over the restart intervals of a scan.
struct Intervals<'a> {
    data: &'a [u8],
    /// The intervals to come.
    found: Peekable<vec::IntoIter<Interval>>,
    /// The number of the restart marker expected before the next interval.
    restart: Option<u8>,
}

impl<'a> Intervals<'a> {
    /// The next interval; `None` if it is missing. Restart markers are numbered from 0 to 7 in turns (B.2.1), so up to
    /// two missing ones in a row are noticed, and the intervals after them find their places. As in libjpeg, a number
    /// that is neither near is taken for the expected one.
    fn next(&mut self) -> Option<BitReader<'a>> {
        let expected = self.restart;
        self.restart = Some(expected.map_or(0, |number| (number + 1) % 8));
        let ahead = |interval: &Interval| match (interval.restart, expected) {
            (Some(found), Some(expected)) => (8 + found - expected) % 8,
            _ => 0,
        };
        // An interval that was expected earlier is out of place.
        while self.found.next_if(|interval| ahead(interval) >= 6).is_some() {}
        let next = self.found.next_if(|interval| !(1..=2).contains(&ahead(interval)))?;
        Some(BitReader::new(&self.data[next.data]))
    }
}

/// Reads all blocks of a scan.
fn walk(file: &File<'_>, scan: &Scan, reader: &mut impl Reader, damage: &Damage) {
    Unstuffed::of(file, scan).walk(file, scan, reader, damage);
}

/// Reads the blocks of the rows `range` of a scan, which begin with the first of `intervals`. Once the data of an
/// interval end, the blocks up to the next restart are left unchanged and recorded as `damage`. After an invalid code,
/// blocks are still read, but the rows up to the next restart are recorded as `damage`, too.
fn walk_rows(
    file: &File<'_>,
    scan: &Scan,
    range: Range<usize>,
    intervals: &mut Intervals<'_>,
    reader: &mut impl Reader,
    damage: &Damage,
) {
    let alone = scan.members.len() == 1;
    let [across, _] = scan.size(file);
    // Number of rows of blocks in a row of MCUs, for scans of a single component.
    let rows = if alone { file.components[scan.members[0].component].sampling[1] } else { 1 };
    let interval = scan.restart_interval;
    let (mut bits, mut state, mut left) = (intervals.next(), State::default(), interval);
    for y in range.clone() {
        reader.begin(y, file);
        for x in 0..across {
            if left == 0 && interval > 0 {
                // As in libjpeg, the first MCU of a missing interval is read from zero bits, unless the data had ended
                // before.
                let was_read = bits.is_some();
                end_interval(bits, damage);
                let next = intervals.next().or(was_read.then(|| BitReader::new(&[])));
                (bits, state, left) = (next, State::default(), interval);
            }
            left = left.saturating_sub(1);
            let Some(some) = &mut bits else {
                damage.row(y / rows);
                continue;
            };
            match alone {
                true => reader.block(some, &mut state, Place { slot: 0, x, y }),
                false => mcu(file, scan, reader, some, &mut state, [x, y]),
            }
            let is_past_end = some.is_past_end();
            if is_past_end || some.is_invalid() {
                damage.row(y / rows);
            }
            if is_past_end {
                bits = None;
            }
        }
        reader.end(y, file);
    }
    end_interval(bits, damage);
}

/// Records data after the last block of an interval, unless invalid codes are recorded already.
fn end_interval(bits: Option<BitReader<'_>>, damage: &Damage) {
    if bits.is_some_and(|bits| !bits.is_invalid() && bits.bytes_left() > FILLED) {
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
) {
    for (slot, member) in scan.members.iter().enumerate() {
        let [h, v] = file.components[member.component].sampling;
        for i in 0..h * v {
            let place = Place { slot, x: x * h + i % h, y: y * v + i / h };
            reader.block(bits, state, place);
        }
    }
}

/// Stores the DC coefficients of progressive files.
struct DcReader<'a> {
    file: &'a File<'a>,
    scan: &'a Scan,
    dc: &'a mut [Vec<i16>],
}

impl Reader for DcReader<'_> {
    #[inline(always)]
    fn block(&mut self, bits: &mut BitReader<'_>, state: &mut State, place: Place) {
        let Place { slot, x, y } = place;
        let member = &self.scan.members[slot];
        let stride = self.file.columns(&self.file.components[member.component]);
        let value = &mut self.dc[member.component][y * stride + x];
        let low_bit = self.scan.selection.low_bit;
        if self.scan.refines {
            *value |= (entropy::dc_refinement(bits) << low_bit) as i16;
        } else {
            let table = member.dc_table();
            *value = (entropy::dc(bits, table, &mut state.dc[slot]) << low_bit) as i16;
        }
    }
}

/// Stores the nonzero coefficients of sequential files.
struct SparseReader<'a> {
    scan: &'a Scan,
    /// For each member, the number of its first block, and its blocks across.
    places: Vec<(usize, usize)>,
    sparse: &'a mut SparseCoefficients,
}

impl Reader for SparseReader<'_> {
    #[inline(always)]
    fn block(&mut self, bits: &mut BitReader<'_>, state: &mut State, place: Place) {
        let Place { slot, x, y } = place;
        let (member, (first, across)) = (&self.scan.members[slot], self.places[slot]);
        let (dc, ac) = (member.dc_table(), member.ac_table());
        let dc = entropy::dc(bits, dc, &mut state.dc[slot]) as i16;
        let read = self.sparse.read(first + y * across + x, dc, |entries| {
            entropy::ac_sequential(bits, ac, |place, value| entries.push(Entry::new(place, value)));
        });
        read.unwrap_or_else(raise);
    }
}

/// [`AcReader`] of all coefficients of sequential files.
const SEQUENTIAL: u8 = 0;
/// [`AcReader`] of the first scan of AC coefficients in progressive files.
const FIRST: u8 = 1;
/// [`AcReader`] of a later scan of AC coefficients in progressive files.
const REFINEMENT: u8 = 2;

struct AcReader<'a, const KIND: u8> {
    scan: &'a Scan,
    /// Rows of blocks of each member.
    rows: Vec<&'a mut Vec<BlockRow>>,
    /// Number of the scan's row with which `rows` begin; and that as a row of blocks, for each member.
    first: usize,
    tops: Vec<usize>,
    finished: Option<&'a mut (dyn Finished + 'a)>,
}

impl<'a, const KIND: u8> AcReader<'a, KIND> {
    fn new(
        scan: &'a Scan,
        rows: Vec<&'a mut Vec<BlockRow>>,
        finished: Option<&'a mut (dyn Finished + 'a)>,
    ) -> Self {
        Self { scan, rows, first: 0, tops: vec![0; scan.members.len()], finished }
    }

    /// The same reader, whose rows begin with row `first` of the scan.
    fn starting_at(mut self, first: usize, file: &File<'_>) -> Self {
        self.first = first;
        if let [_, _, ..] = self.scan.members[..] {
            let down = |member: &Member| file.components[member.component].sampling[1];
            self.tops = self.scan.members.iter().map(|member| first * down(member)).collect();
        } else {
            self.tops = vec![first];
        }
        self
    }

    /// The rows of blocks in row `y` of the scan, with their components.
    fn rows_of(
        &mut self,
        y: usize,
        file: &File<'_>,
    ) -> impl Iterator<Item = (usize, &mut BlockRow)> {
        let (alone, y) = (self.scan.members.len() == 1, y - self.first);
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
                let used = used.unwrap_or_default();
                *row = if KIND == SEQUENTIAL { used.unread(blocks) } else { used.cleared(blocks) };
            }
        }
        self.finished = finished;
    }

    #[inline(always)]
    fn block(&mut self, bits: &mut BitReader<'_>, state: &mut State, place: Place) {
        let Place { slot, x, y } = place;
        let (member, selection) = (&self.scan.members[slot], self.scan.selection);
        let table = member.ac_table();
        let row = &mut self.rows[slot][y - self.tops[slot]];
        let values = &mut row.values.as_chunks_mut::<64>().0[x];
        let nonzero = &mut row.nonzero[x];
        if KIND == SEQUENTIAL {
            BlockMut { values: &mut *values, nonzero: &mut *nonzero }.clear();
            values[0] = entropy::dc(bits, member.dc_table(), &mut state.dc[slot]) as i16;
        }
        if KIND == REFINEMENT {
            let block = BlockMut { values, nonzero };
            return entropy::ac_refinement(bits, table, selection, &mut state.eob_run, block);
        }
        let set = |place: u32, value: i16| {
            values[usize::from(ZIGZAG[place as usize])] = value;
            // In damaged files, a value may be cut off to 0.
            *nonzero = *nonzero & !(1 << place) | u64::from(value != 0) << place;
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
            if KIND == SEQUENTIAL {
                row.clear_unread();
            }
            finished.iter_mut().for_each(|finished| finished.row(component, std::mem::take(row)));
        }
        self.finished = finished;
        let finished = self.finished.as_mut().expect("checked above");
        finished.mcu_rows(self.scan.mcu_rows(file, y + 1, self.scan.size(file)[1]));
    }
}
