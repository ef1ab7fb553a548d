//! Huffman-coded data of sequential and progressive scans (ITU-T T.81, annexes F and G).

/// The place in a block, row by row, of each coefficient in coded order.
pub const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// Bits that are looked up at once.
const FAST: u32 = 10;

/// A Huffman table.
#[derive(Clone, Debug)]
pub struct Huffman {
    /// For the next bits: the symbol above the code's length; 0 for longer codes.
    fast: Vec<u16>,
    /// For each length: past the last code, at the top of 16 bits.
    past: [u32; 17],
    /// For each length: what to add to a code to get the symbol's place.
    delta: [i32; 17],
    symbols: Vec<u8>,
}

impl Huffman {
    /// From the number of codes of each length from 1, and their symbols; nothing where those make no
    /// code.
    pub fn new(counts: &[u8; 16], symbols: &[u8]) -> Option<Self> {
        let mut table = Self {
            fast: vec![0; 1 << FAST],
            past: [0; 17],
            delta: [0; 17],
            symbols: symbols.to_vec(),
        };
        let (mut code, mut place) = (0u32, 0usize);
        for len in 1..=16u32 {
            let count = usize::from(counts[len as usize - 1]);
            table.delta[len as usize] = place as i32 - code as i32;
            for _ in 0..count {
                let symbol = *symbols.get(place)?;
                if code >> len != 0 {
                    return None;
                }
                if len <= FAST {
                    let first = (code << (FAST - len)) as usize;
                    let entry = u16::from(symbol) << 8 | len as u16;
                    table.fast[first..first + (1 << (FAST - len))].fill(entry);
                }
                (code, place) = (code + 1, place + 1);
            }
            table.past[len as usize] = code << (16 - len);
            code <<= 1;
        }
        Some(table)
    }
}

/// Reads bits, the highest of each byte first. Past the end there are zeros.
pub struct Bits<'a> {
    data: &'a [u8],
    at: usize,
    /// The next bits, at the top.
    ahead: u64,
    /// How many those are.
    count: u32,
}

impl<'a> Bits<'a> {
    pub fn new(data: &'a [u8]) -> Self {
        Self { data, at: 0, ahead: 0, count: 0 }
    }

    /// Makes at least 56 bits ready.
    #[inline(always)]
    fn fill(&mut self) {
        match self.data.get(self.at..).and_then(<[u8]>::first_chunk) {
            Some(next) => {
                self.ahead |= u64::from_be_bytes(*next) >> self.count;
                let bytes = (63 - self.count) / 8;
                self.at += bytes as usize;
                self.count += 8 * bytes;
            }
            None => {
                while self.count <= 56 {
                    let byte = self.data.get(self.at).copied().unwrap_or(0);
                    self.ahead |= u64::from(byte) << (56 - self.count);
                    self.at += 1;
                    self.count += 8;
                }
            }
        }
    }

    /// Whether more was read than there is.
    pub fn is_past_end(&self) -> bool {
        8 * self.at - self.count as usize > 8 * self.data.len()
    }

    /// The next `count` bits, at most 32 that are ready.
    #[inline(always)]
    fn take(&mut self, count: u32) -> u32 {
        let bits = (self.ahead >> 1 >> (63 - count)) as u32;
        self.ahead <<= count;
        self.count -= count;
        bits
    }

    /// The next symbol. Leaves at least 16 bits ready; nothing where there is no such code.
    #[inline(always)]
    fn symbol(&mut self, table: &Huffman) -> Option<u32> {
        if self.count < 32 {
            self.fill();
        }
        let entry = table.fast[(self.ahead >> (64 - FAST)) as usize];
        if entry != 0 {
            self.take(u32::from(entry & 0xff));
            return Some(u32::from(entry >> 8));
        }
        let code = (self.ahead >> 48) as u32;
        let len = (FAST + 1..=16).find(|&len| code < table.past[len as usize])?;
        self.take(len);
        let place = (code >> (16 - len)) as i32 + table.delta[len as usize];
        table.symbols.get(place as usize).map(|&symbol| symbol.into())
    }

    /// A number of `size` bits, of which the lower half are negative (F.2.2.1).
    #[inline(always)]
    fn number(&mut self, size: u32) -> i32 {
        let bits = self.take(size) as i32;
        let negative = bits < (1 << size >> 1);
        bits - if negative { (1 << size) - 1 } else { 0 }
    }
}

/// A block's coefficients, row by row, and which of them, in coded order, are not 0; but for the first.
pub struct Block<'a> {
    pub values: &'a mut [i16; 64],
    pub nonzero: &'a mut u64,
}

/// What goes from block to block of a scan.
#[derive(Clone, Copy, Default)]
pub struct State {
    /// The last first coefficient of each component.
    pub last: [i32; 4],
    /// Blocks to come that have no more coefficients.
    pub ended: u32,
}

/// The difference to the block before (F.2.2.1).
#[inline(always)]
pub fn first_coefficient(bits: &mut Bits<'_>, table: &Huffman, last: &mut i32) -> Option<i32> {
    let size = bits.symbol(table).filter(|&size| size <= 15)?;
    *last = last.wrapping_add(bits.number(size));
    Some(*last)
}

/// One more bit of a first coefficient (G.1.2.1).
#[inline(always)]
pub fn bit(bits: &mut Bits<'_>) -> i32 {
    if bits.count == 0 {
        bits.fill();
    }
    bits.take(1) as i32
}

/// All other coefficients of a sequential block (F.2.2.2).
#[inline(always)]
pub fn sequential(bits: &mut Bits<'_>, table: &Huffman, block: Block<'_>) -> Option<()> {
    let mut place = 1;
    while place < 64 {
        let symbol = bits.symbol(table)?;
        let (run, size) = (symbol >> 4, symbol & 15);
        if size == 0 {
            if run != 15 {
                break;
            }
            place += 16;
            continue;
        }
        place += run;
        if place > 63 {
            return None;
        }
        block.values[usize::from(ZIGZAG[place as usize])] = bits.number(size) as i16;
        *block.nonzero |= 1 << place;
        place += 1;
    }
    Some(())
}

/// Which coefficients a progressive scan is about, and which bit of them.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub first: u32,
    pub last: u32,
    /// Bits that are still missing behind those of this scan.
    pub low: u32,
}

/// The upper bits of some coefficients (G.1.2.2).
#[inline(always)]
pub fn upper_bits(
    bits: &mut Bits<'_>,
    table: &Huffman,
    part: Part,
    ended: &mut u32,
    block: Block<'_>,
) -> Option<()> {
    if *ended > 0 {
        *ended -= 1;
        return Some(());
    }
    let mut place = part.first;
    while place <= part.last {
        let symbol = bits.symbol(table)?;
        let (run, size) = (symbol >> 4, symbol & 15);
        if size == 0 {
            if run != 15 {
                *ended = (1 << run) - 1 + bits.take(run);
                break;
            }
            place += 16;
            continue;
        }
        place += run;
        if place > part.last {
            return None;
        }
        let value = bits.number(size) << part.low;
        block.values[usize::from(ZIGZAG[place as usize])] = value as i16;
        *block.nonzero |= 1 << place;
        place += 1;
    }
    Some(())
}

/// One more bit of some coefficients (G.1.2.3).
#[inline(always)]
pub fn next_bit(
    bits: &mut Bits<'_>,
    table: &Huffman,
    part: Part,
    ended: &mut u32,
    block: Block<'_>,
) -> Option<()> {
    let within = !0u64 >> (63 - part.last);
    let mut place = part.first;
    if *ended == 0 {
        while place <= part.last {
            let symbol = bits.symbol(table)?;
            let (run, size) = (symbol >> 4, symbol & 15);
            let mut fresh = 0;
            match (size, run) {
                (0, 15) => {}
                (0, _) => {
                    *ended = (1 << run) + bits.take(run);
                    break;
                }
                (1, _) => fresh = (2 * bits.take(1) as i16 - 1) << part.low,
                _ => return None,
            }
            // Behind `run` zeros; those that are not 0 in between get a bit each.
            let mut zeros = !*block.nonzero & within & (!0 << place);
            for _ in 0..run {
                zeros &= zeros.wrapping_sub(1);
            }
            let target = zeros.trailing_zeros();
            let before = 1u64.checked_shl(target).unwrap_or(0).wrapping_sub(1);
            correct(bits, *block.nonzero & within & (!0 << place) & before, part.low, block.values);
            if target > 63 {
                // The zeros were too few: allowed only for a run without a coefficient behind it.
                if fresh != 0 {
                    return None;
                }
                return Some(());
            }
            if fresh != 0 {
                block.values[usize::from(ZIGZAG[target as usize])] = fresh;
                *block.nonzero |= 1 << target;
            }
            place = target + 1;
        }
    }
    if *ended > 0 {
        if place <= part.last {
            correct(bits, *block.nonzero & within & (!0 << place), part.low, block.values);
        }
        *ended -= 1;
    }
    Some(())
}

/// Reads a bit for each of `places` in coded order, and adds it to the coefficient's magnitude.
#[inline(always)]
fn correct(bits: &mut Bits<'_>, mut places: u64, low: u32, values: &mut [i16; 64]) {
    while places != 0 {
        if bits.count < 32 {
            bits.fill();
        }
        let count = places.count_ones().min(32);
        let mut corrections = bits.take(count) << (32 - count);
        for _ in 0..count {
            let value = &mut values[usize::from(ZIGZAG[places.trailing_zeros() as usize & 63])];
            let step = (*value >> 15 | 1) << low;
            *value = value.wrapping_add(step & -((corrections >> 31) as i16));
            corrections <<= 1;
            places &= places - 1;
        }
    }
}
