//! Decodes what nearly all JPEG files are: 8-bit, sequential or progressive, Huffman-coded, grey or
//! YCbCr. Scans that do not depend on each other are read side by side, and pixels are made on the
//! other cores while the last scan is still being read.

use std::{
    mem,
    ops::Range,
    slice::ChunksMut,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use rayon::{Scope, prelude::*};

use super::{
    entropy::{self, Bits, Block, Huffman, Part, State, ZIGZAG},
    render::{BlockRow, Colours, Transform, Upsample, Upsampling},
};
use crate::{
    memory::{self, raise},
    simd,
};

/// A decoded picture.
#[derive(Debug)]
pub struct Picture {
    /// Pixels a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// 1 grey, 3 RGB.
    pub channels: usize,
    /// `width * height * channels` samples.
    pub pixels: Vec<u8>,
}

/// Decodes a file, with at most `limit` bytes allocated, about; nothing where it is of another kind,
/// damaged, or too large.
pub fn decode(bytes: &[u8], limit: u64) -> Option<Picture> {
    let file = File::parse(bytes)?;
    (file.bytes_needed() <= limit).then(|| file.decode())?
}

/// Brightness, or one of the two differences.
#[derive(Debug)]
struct Component {
    id: u8,
    /// How many blocks of it a unit has, across and down.
    sampling: [usize; 2],
    table: usize,
    /// Blocks that hold its samples, across and down.
    blocks: [usize; 2],
    quantum: [i32; 64],
}

/// A component in a scan, and its tables for the first coefficients and for the others.
#[derive(Debug)]
struct Member {
    component: usize,
    first: Option<Huffman>,
    others: Option<Huffman>,
}

/// Some coefficients of some components.
#[derive(Debug)]
struct Scan {
    members: Vec<Member>,
    part: Part,
    /// Whether it adds a bit to what an earlier scan told.
    refines: bool,
    /// Units between restarts; 0 for none.
    interval: usize,
    data: Range<usize>,
}

#[derive(Debug)]
struct File<'a> {
    bytes: &'a [u8],
    progressive: bool,
    size: [usize; 2],
    components: Vec<Component>,
    /// Units across and down; their size is that of the largest component's blocks.
    units: [usize; 2],
    scans: Vec<Scan>,
}

/// A file of fewer bytes than pixels by more than this is left to a decoder that needs no room for it.
const MOST_PIXELS_A_BYTE: usize = 512;
/// Rows of units that become pixels at a time.
const BAND: usize = 8;

impl<'a> File<'a> {
    /// Reads everything but the coefficients.
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut file = Self {
            bytes,
            progressive: false,
            size: [0; 2],
            components: Vec::new(),
            units: [0; 2],
            scans: Vec::new(),
        };
        let mut quanta = [None; 4];
        let mut tables: [[Option<Huffman>; 4]; 2] = Default::default();
        let (mut interval, mut jfif, mut adobe) = (0, false, None);
        // How many bits each coefficient of each component still lacks; all, or this many.
        let mut lacking = [[None; 64]; 3];
        let mut at = bytes.starts_with(&[0xff, 0xd8]).then_some(2)?;
        loop {
            let &[0xff, marker] = bytes.get(at..at + 2)? else { return None };
            if marker == 0xff {
                at += 1;
                continue;
            }
            if marker == 0xd9 {
                break;
            }
            let len = usize::from(u16::from_be_bytes(*bytes.get(at + 2..)?.first_chunk()?));
            let body = bytes.get(at + 4..at + 2 + len)?;
            at += 2 + len;
            match marker {
                0xc0..=0xc2 if file.components.is_empty() => {
                    file.progressive = marker == 0xc2;
                    file.read_frame(body)?;
                }
                0xc4 => read_tables(body, &mut tables)?,
                0xda => {
                    let end = at + data_len(&bytes[at..])?;
                    let scan = file.read_scan(body, &tables, interval, at..end)?;
                    let Part { first, last, low } = scan.part;
                    for member in &scan.members {
                        let component = &mut file.components[member.component];
                        let lacking = &mut lacking[member.component];
                        if lacking.iter().all(Option::is_none) {
                            component.quantum = quanta[component.table]?;
                        }
                        for lacks in &mut lacking[first as usize..=last as usize] {
                            let expected = scan.refines.then_some(low + 1);
                            (*lacks == expected).then_some(())?;
                            *lacks = Some(low);
                        }
                    }
                    file.scans.push(scan);
                    at = end;
                }
                0xdb => read_quanta(body, &mut quanta)?,
                0xdd => interval = usize::from(u16::from_be_bytes(*body.first_chunk()?)),
                0xe0 if body.starts_with(b"JFIF\0") => jfif = true,
                0xee if body.starts_with(b"Adobe") => adobe = body.get(11).copied(),
                0xe0..=0xef | 0xfe => {}
                _ => return None,
            }
        }
        let ids: Vec<u8> = file.components.iter().map(|component| component.id).collect();
        let known = match (ids.len(), adobe) {
            (1, _) | (3, Some(1)) => true,
            (3, None) => jfif || ids == [1, 2, 3],
            _ => false,
        };
        let complete = lacking[..ids.len()].iter().all(|lacking| lacking[0].is_some());
        (known && complete).then_some(file)
    }

    fn read_frame(&mut self, body: &[u8]) -> Option<()> {
        let (&[8, h1, h0, w1, w0, count], components) = body.split_first_chunk()? else {
            return None;
        };
        let [width, height] = [[w1, w0], [h1, h0]].map(|v| usize::from(u16::from_be_bytes(v)));
        let (components, rest) = components.as_chunks::<3>();
        if components.len() != usize::from(count) || !rest.is_empty() {
            return None;
        }
        let samplings: Vec<[usize; 2]> = components
            .iter()
            .map(|&[_, s, _]| [usize::from(s >> 4), usize::from(s & 15)])
            .collect();
        let most = match samplings[..] {
            [_] => [1, 1],
            [most @ ([1, 1] | [2, 1] | [2, 2]), [1, 1], [1, 1]] => most,
            _ => return None,
        };
        let pixels = width * height;
        // Of narrow pictures colour is brought to full resolution in another way.
        if pixels == 0 || width < 6 || pixels / MOST_PIXELS_A_BYTE > self.bytes.len() {
            return None;
        }
        self.size = [width, height];
        self.units = [0, 1].map(|axis| self.size[axis].div_ceil(8 * most[axis]));
        for (i, &[id, _, table]) in components.iter().enumerate() {
            let sampling = if components.len() == 1 { [1, 1] } else { samplings[i] };
            let blocks = [0, 1].map(|a| (self.size[a] * sampling[a]).div_ceil(most[a]).div_ceil(8));
            let table = usize::from(table);
            let component = Component { id, sampling, table, blocks, quantum: [0; 64] };
            self.components.push((table < 4).then_some(component)?);
        }
        Some(())
    }

    fn read_scan(
        &self,
        body: &[u8],
        tables: &[[Option<Huffman>; 4]; 2],
        interval: usize,
        data: Range<usize>,
    ) -> Option<Scan> {
        let (&count, rest) = body.split_first()?;
        let (members, tail) = rest.split_at_checked(2 * usize::from(count))?;
        let &[first, last, bits] = tail else { return None };
        let (high, low) = (u32::from(bits >> 4), u32::from(bits & 15));
        let part = match self.progressive {
            true => Part { first: first.into(), last: last.into(), low },
            false => Part { first: 0, last: 63, low: 0 },
        };
        let refines = self.progressive && high > 0;
        if self.progressive {
            let one_kind = if first == 0 { last == 0 } else { last < 64 && count == 1 };
            let one_bit = high == 0 || high == low + 1;
            (one_kind && one_bit && first <= last && low < 14).then_some(())?;
        }
        let members = members.as_chunks::<2>().0.iter().map(|&[id, numbers]| {
            let component = self.components.iter().position(|component| component.id == id)?;
            let table = |class: usize, number: u8| tables[class].get(usize::from(number))?.clone();
            let (first, others) = (table(0, numbers >> 4), table(1, numbers & 15));
            let missing = part.first == 0 && !refines && first.is_none();
            (!missing && (part.last == 0 || others.is_some())).then_some(())?;
            Some(Member { component, first, others })
        });
        let members: Vec<Member> = members.collect::<Option<_>>()?;
        // In the order of the frame, so that none is there twice.
        let ordered = members.is_sorted_by(|a, b| a.component < b.component);
        (ordered && !members.is_empty()).then_some(())?;
        Some(Scan { members, part, refines, interval, data })
    }

    /// About what decoding allocates.
    fn bytes_needed(&self) -> u64 {
        let samples: usize = self.size.iter().product::<usize>() * self.components.len();
        // Coefficients take two bytes each, and what tells which are zero an eighth of one.
        let blocks: usize = self.components.iter().map(|c| self.row_blocks(c) * self.rows(c)).sum();
        (samples + blocks * 140 + self.bytes.len()) as u64
    }

    /// Blocks of a component in a row, those that fill up the last unit included.
    fn row_blocks(&self, component: &Component) -> usize {
        self.units[0] * component.sampling[0]
    }

    /// Rows of a component's blocks, those that fill up the last unit included.
    fn rows(&self, component: &Component) -> usize {
        self.units[1] * component.sampling[1]
    }

    fn decode(&self) -> Option<Picture> {
        let channels = self.components.len();
        let [width, height] = self.size;
        let mut planes: Vec<Vec<BlockRow>> = self
            .components
            .iter()
            .map(|c| (0..self.rows(c)).map(|_| BlockRow::default()).collect())
            .collect();
        let mut firsts: Vec<Vec<i16>> = vec![Vec::new(); channels];
        // The last scan goes side by side with making pixels.
        let (last, earlier) = match self.scans.split_last() {
            Some((last, earlier)) if last.part.last > 0 => (Some(last), earlier),
            _ => (None, &self.scans[..]),
        };
        self.read_side_by_side(earlier, &mut planes, &mut firsts)?;
        let streamed = |c: usize| last.is_some_and(|s| s.members.iter().any(|m| m.component == c));
        let mut pixels = memory::zeros(width * height * channels).unwrap_or_else(raise);
        let mut rest = Vec::new();
        let mut done: Vec<Vec<OnceLock<BlockRow>>> = Vec::new();
        for (c, rows) in planes.into_iter().enumerate() {
            if streamed(c) {
                done.push(rows.iter().map(|_| OnceLock::new()).collect());
                rest.push(rows);
            } else {
                done.push(rows.into_iter().map(OnceLock::from).collect());
            }
        }
        let stage = Stage { file: self, firsts: &firsts, done };
        let bytes = width * channels * 8 * BAND * self.components[0].sampling[1];
        let bands = pixels.chunks_mut(bytes);
        match last {
            None => bands.enumerate().par_bridge().for_each(|(i, band)| stage.render(i, band)),
            Some(scan) => rayon::scope(|scope| {
                let rest: Vec<&mut Vec<BlockRow>> = rest.iter_mut().collect();
                let stream = Stream { stage: &stage, scope, bands, started: 0 };
                self.read_others(scan, rest, Some(stream))
            })?,
        }
        Some(Picture { width, height, channels, pixels })
    }

    /// Reads `scans`: first coefficients and each component's others are independent of each other.
    fn read_side_by_side(
        &self,
        scans: &[Scan],
        planes: &mut [Vec<BlockRow>],
        firsts: &mut [Vec<i16>],
    ) -> Option<()> {
        let failed = &AtomicBool::new(false);
        let read = |ok: Option<()>| {
            if ok.is_none() {
                failed.store(true, Ordering::Relaxed);
            }
        };
        let mut planes: Vec<Option<&mut Vec<BlockRow>>> = planes.iter_mut().map(Some).collect();
        rayon::scope(|scope| {
            for c in 0..planes.len() {
                let chain: Vec<&Scan> = scans
                    .iter()
                    .filter(|scan| scan.part.last > 0 && scan.members[0].component == c)
                    .collect();
                let Some(scan) = chain.first() else { continue };
                let members = scan.members.iter();
                let mut rows: Vec<&mut Vec<BlockRow>> =
                    members.filter_map(|member| planes[member.component].take()).collect();
                scope.spawn(move |_| {
                    for scan in chain {
                        let rows = rows.iter_mut().map(|rows| &mut **rows).collect();
                        read(self.read_others(scan, rows, None));
                    }
                });
            }
            for scan in scans.iter().filter(|scan| scan.part.last == 0) {
                read(self.read_firsts(scan, firsts));
            }
        });
        (!failed.load(Ordering::Relaxed)).then_some(())
    }

    fn read_firsts(&self, scan: &Scan, firsts: &mut [Vec<i16>]) -> Option<()> {
        for member in &scan.members {
            let component = &self.components[member.component];
            let blocks = self.row_blocks(component) * self.rows(component);
            // A later scan refines what the first one told.
            if firsts[member.component].is_empty() {
                firsts[member.component] = memory::zeros(blocks).unwrap_or_else(raise);
            }
        }
        self.walk(scan, &mut Firsts { file: self, scan, firsts })
    }

    fn read_others(
        &self,
        scan: &Scan,
        rows: Vec<&mut Vec<BlockRow>>,
        stream: Option<Stream<'_, '_>>,
    ) -> Option<()> {
        match (self.progressive, scan.refines) {
            (false, _) => self.walk(scan, &mut Others::<SEQUENTIAL> { scan, rows, stream }),
            (_, false) => self.walk(scan, &mut Others::<UPPER_BITS> { scan, rows, stream }),
            (_, true) => self.walk(scan, &mut Others::<NEXT_BIT> { scan, rows, stream }),
        }
    }

    /// Reads the blocks of a scan in their order.
    fn walk(&self, scan: &Scan, reader: &mut impl Reader) -> Option<()> {
        let (data, pieces) = unstuffed(&self.bytes[scan.data.clone()]);
        let alone = scan.members.len() == 1;
        let [across, down] = match alone {
            true => self.components[scan.members[0].component].blocks,
            false => self.units,
        };
        let units = across * down;
        let expected =
            units.checked_div(scan.interval).map_or(1, |_| units.div_ceil(scan.interval));
        let mut pieces = pieces.into_iter().map(|piece| Bits::new(&data[piece]));
        if pieces.len() != expected {
            return None;
        }
        let (mut bits, mut state, mut left) = (pieces.next()?, State::default(), scan.interval);
        for y in 0..down {
            reader.begin(y, self);
            for x in 0..across {
                if left == 0 && scan.interval > 0 {
                    if bits.is_past_end() {
                        return None;
                    }
                    (bits, state, left) = (pieces.next()?, State::default(), scan.interval);
                }
                left = left.saturating_sub(1);
                if alone {
                    reader.block(&mut bits, &mut state, 0, [x, y])?;
                    continue;
                }
                for (slot, member) in scan.members.iter().enumerate() {
                    let [h, v] = self.components[member.component].sampling;
                    for i in 0..h * v {
                        let at = [x * h + i % h, y * v + i / h];
                        reader.block(&mut bits, &mut state, slot, at)?;
                    }
                }
            }
            if bits.is_past_end() {
                return None;
            }
            reader.end(y, self);
        }
        Some(())
    }
}

/// What reads a scan, block by block.
trait Reader {
    /// A row of blocks or units is to be read.
    fn begin(&mut self, _y: usize, _file: &File<'_>) {}

    /// Reads the block at `at` of the scan's member `slot`.
    fn block(
        &mut self,
        bits: &mut Bits<'_>,
        state: &mut State,
        slot: usize,
        at: [usize; 2],
    ) -> Option<()>;

    /// A row of blocks or units has been read.
    fn end(&mut self, _y: usize, _file: &File<'_>) {}
}

/// First coefficients of progressive files.
struct Firsts<'a> {
    file: &'a File<'a>,
    scan: &'a Scan,
    firsts: &'a mut [Vec<i16>],
}

impl Reader for Firsts<'_> {
    #[inline(always)]
    fn block(
        &mut self,
        bits: &mut Bits<'_>,
        state: &mut State,
        slot: usize,
        [x, y]: [usize; 2],
    ) -> Option<()> {
        let member = &self.scan.members[slot];
        let stride = self.file.row_blocks(&self.file.components[member.component]);
        let first = &mut self.firsts[member.component][y * stride + x];
        let low = self.scan.part.low;
        if self.scan.refines {
            *first |= (entropy::bit(bits) << low) as i16;
        } else {
            let table = member.first.as_ref()?;
            *first =
                (entropy::first_coefficient(bits, table, &mut state.last[slot])? << low) as i16;
        }
        Some(())
    }
}

const SEQUENTIAL: u8 = 0;
const UPPER_BITS: u8 = 1;
const NEXT_BIT: u8 = 2;

/// The other coefficients; all, where the file is sequential.
struct Others<'a, 's, const KIND: u8> {
    scan: &'a Scan,
    /// The rows of each member.
    rows: Vec<&'a mut Vec<BlockRow>>,
    stream: Option<Stream<'a, 's>>,
}

impl<const KIND: u8> Others<'_, '_, KIND> {
    /// The members with their rows that belong to row `y` of the scan.
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

impl<const KIND: u8> Reader for Others<'_, '_, KIND> {
    fn begin(&mut self, y: usize, file: &File<'_>) {
        for (component, _, row) in self.rows_of(y, file) {
            if row.nonzero.is_empty() {
                *row = BlockRow::new(file.row_blocks(&file.components[component]));
            }
        }
    }

    #[inline(always)]
    fn block(
        &mut self,
        bits: &mut Bits<'_>,
        state: &mut State,
        slot: usize,
        [x, y]: [usize; 2],
    ) -> Option<()> {
        let (member, part) = (&self.scan.members[slot], self.scan.part);
        let table = member.others.as_ref()?;
        let row = &mut self.rows[slot][y];
        let values = &mut row.values.as_chunks_mut::<64>().0[x];
        let nonzero = &mut row.nonzero[x];
        if KIND == SEQUENTIAL {
            let first = member.first.as_ref()?;
            values[0] = entropy::first_coefficient(bits, first, &mut state.last[slot])? as i16;
        }
        let block = Block { values, nonzero };
        match KIND {
            SEQUENTIAL => entropy::sequential(bits, table, block),
            UPPER_BITS => entropy::upper_bits(bits, table, part, &mut state.ended, block),
            _ => entropy::next_bit(bits, table, part, &mut state.ended, block),
        }
    }

    fn end(&mut self, y: usize, file: &File<'_>) {
        if self.stream.is_none() {
            return;
        }
        let finished: Vec<(usize, usize, BlockRow)> =
            self.rows_of(y, file).map(|(c, y, row)| (c, y, mem::take(row))).collect();
        let stream = self.stream.as_mut().expect("checked above");
        for (component, y, row) in finished {
            stream.stage.done[component][y].set(row).expect("each row ends once");
        }
        let first = &self.scan.members[0];
        let (down, all) = match self.scan.members.len() {
            1 => (
                file.components[first.component].sampling[1],
                file.components[first.component].blocks[1],
            ),
            _ => (1, file.units[1]),
        };
        stream.start(if y + 1 == all { usize::MAX } else { (y + 1) / down });
    }
}

/// Makes pixels of what has been read.
struct Stream<'a, 's> {
    stage: &'s Stage<'s>,
    scope: &'a Scope<'s>,
    bands: ChunksMut<'s, u8>,
    started: usize,
}

impl Stream<'_, '_> {
    /// Starts those bands for which `units` rows of units suffice; all with `usize::MAX`.
    fn start(&mut self, units: usize) {
        // One row more, which colour at the lower end is made from.
        while units > (self.started + 1) * BAND {
            let Some(band) = self.bands.next() else { return };
            let (stage, number) = (self.stage, self.started);
            self.scope.spawn(move |_| stage.render(number, band));
            self.started += 1;
        }
    }
}

/// Coefficients on their way to pixels.
struct Stage<'a> {
    file: &'a File<'a>,
    /// First coefficients of progressive files.
    firsts: &'a [Vec<i16>],
    /// Rows of blocks of each component that are complete.
    done: Vec<Vec<OnceLock<BlockRow>>>,
}

/// Some rows of a component's samples.
struct Samples {
    values: Vec<u8>,
    stride: usize,
    /// The first row, and the last that belongs to the picture.
    first: usize,
    last: usize,
    /// How many samples of a row belong to the picture.
    width: usize,
}

impl Samples {
    /// Row `y`, or the nearest there is in the picture.
    fn row(&self, y: isize) -> &[u8] {
        let y = y.clamp(0, self.last as isize) as usize - self.first;
        &self.values[y * self.stride..][..self.width]
    }
}

impl Stage<'_> {
    /// Makes the pixels of band `number`.
    fn render(&self, number: usize, pixels: &mut [u8]) {
        let components = &self.file.components;
        let [width, _] = self.file.size;
        let [across, down] = components[0].sampling;
        let samples: Vec<Samples> =
            (0..components.len()).map(|c| self.samples(c, number, down == 2 && c > 0)).collect();
        let top = number * BAND * down * 8;
        if samples.len() == 1 {
            for (y, row) in pixels.chunks_exact_mut(width).enumerate() {
                row.copy_from_slice(samples[0].row((top + y) as isize));
            }
            return;
        }
        let (mut blue, mut red) = (vec![0; 2 * samples[1].width], vec![0; 2 * samples[1].width]);
        let mut sums = vec![0; samples[1].width];
        for (y, rgb) in pixels.chunks_exact_mut(3 * width).enumerate() {
            let y = (top + y) as isize;
            let mut full = |samples: &Samples, out: &mut Vec<u8>| {
                let near = samples.row(y / down as isize);
                let rows = match [across, down] {
                    [1, _] => return out[..near.len()].copy_from_slice(near),
                    [_, 1] => Upsample::Across { near },
                    _ => {
                        let far = samples.row(y / 2 + if y % 2 == 0 { -1 } else { 1 });
                        Upsample::Both { near, far, sums: &mut sums }
                    }
                };
                simd::dispatch(Upsampling { rows, out });
            };
            full(&samples[1], &mut blue);
            full(&samples[2], &mut red);
            let y = samples[0].row(y);
            simd::dispatch(Colours { y, blue: &blue, red: &red, rgb });
        }
    }

    /// The samples of a component that band `number` needs, with `more` those above and below.
    fn samples(&self, component: usize, number: usize, more: bool) -> Samples {
        let file = self.file;
        let (c, rows) = (&file.components[component], &self.done[component]);
        let down = c.sampling[1];
        let (first, end) = (number * BAND * down, (number + 1) * BAND * down);
        let range = first.saturating_sub(more.into())..(end + usize::from(more)).min(rows.len());
        let most = file.components[0].sampling;
        let [width, height] =
            [0, 1].map(|axis| (file.size[axis] * c.sampling[axis]).div_ceil(most[axis]));
        let stride = 8 * file.row_blocks(c);
        let mut values = vec![0; range.len() * 8 * stride];
        let empty = BlockRow::new(0);
        for (y, samples) in range.clone().zip(values.chunks_exact_mut(8 * stride)) {
            let blocks = file.row_blocks(c);
            let mut row = rows[y].get().unwrap_or(&empty);
            let blank;
            if row.nonzero.is_empty() {
                blank = BlockRow::new(blocks);
                row = &blank;
            }
            let first = self.firsts[component].get(y * blocks..(y + 1) * blocks);
            let transform = Transform { row, first, quantum: &c.quantum, samples, stride };
            simd::dispatch(transform);
        }
        Samples { values, stride, first: 8 * range.start, last: height - 1, width }
    }
}

fn read_quanta(mut body: &[u8], quanta: &mut [Option<[i32; 64]>; 4]) -> Option<()> {
    while let Some((&kind, rest)) = body.split_first() {
        let wide = kind >> 4 == 1;
        let (values, rest) = rest.split_at_checked(if wide { 128 } else { 64 })?;
        let mut quantum = [0; 64];
        for (i, &place) in ZIGZAG.iter().enumerate() {
            quantum[usize::from(place)] = match wide {
                true => i32::from(u16::from_be_bytes([values[2 * i], values[2 * i + 1]])),
                false => values[i].into(),
            };
        }
        *quanta.get_mut(usize::from(kind & 15))? = Some(quantum);
        body = rest;
    }
    Some(())
}

fn read_tables(mut body: &[u8], tables: &mut [[Option<Huffman>; 4]; 2]) -> Option<()> {
    while let Some((&kind, rest)) = body.split_first() {
        let (counts, rest) = rest.split_first_chunk::<16>()?;
        let symbols = counts.iter().map(|&count| usize::from(count)).sum();
        let (symbols, rest) = rest.split_at_checked(symbols)?;
        let table = tables.get_mut(usize::from(kind >> 4))?.get_mut(usize::from(kind & 15))?;
        *table = Some(Huffman::new(counts, symbols)?);
        body = rest;
    }
    Some(())
}

/// The length of a scan's data: up to a marker that is no restart.
fn data_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += bytes[at..].iter().position(|&byte| byte == 0xff)?;
        match bytes.get(at + 1)? {
            0 | 0xd0..=0xd7 => at += 2,
            0xff => at += 1,
            _ => return Some(at),
        }
    }
}

/// A scan's data without the zeros behind bytes of ones, and its pieces between restarts.
fn unstuffed(raw: &[u8]) -> (Vec<u8>, Vec<Range<usize>>) {
    let mut data = memory::room(raw.len()).unwrap_or_else(raise);
    let mut pieces = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(len) = raw[at..].iter().position(|&byte| byte == 0xff) {
        data.extend_from_slice(&raw[at..at + len]);
        at += len;
        match raw.get(at + 1) {
            Some(0) => data.push(0xff),
            Some(0xd0..=0xd7) => {
                pieces.push(start..data.len());
                start = data.len();
            }
            // Ones that fill up.
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
    }
    data.extend_from_slice(&raw[at..]);
    pieces.push(start..data.len());
    (data, pieces)
}
