//! Reader of bits and Huffman codes (ITU-T T.81, annex C and F.2.2).

/// Number of bits that index the lookup tables.
const FAST: u32 = 10;

/// A Huffman table.
#[derive(Debug, Default)]
pub struct HuffmanDecoder {
    /// For each value of the next `FAST` bits: `symbol << 8 | length of its code`; 0 if the code is longer.
    fast: Vec<u16>,
    /// For each value of the next `FAST` bits that holds the code of an AC coefficient and its whole magnitude, both at
    /// once: `coefficient << 16 | zeros before it << 8 | bits`; 0 for other values.
    coefficients: Vec<i32>,
    /// For each length: one more than the last code of this length, shifted to the top of 16 bits (MAXCODE, F.2.2.3).
    end: [u32; 17],
    /// For each length: index of a symbol minus its code (VALPTR - MINCODE).
    delta: [i32; 17],
    symbols: Vec<u8>,
}

impl HuffmanDecoder {
    /// A table from the number of codes of each length from 1 to 16, and their symbols (BITS and HUFFVAL, C.2); `None`
    /// if these make no prefix code.
    pub fn new(counts: &[u8; 16], symbols: &[u8]) -> Option<Self> {
        let mut table = Self {
            fast: vec![0; 1 << FAST],
            coefficients: Vec::new(),
            end: [0; 17],
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
            table.end[len as usize] = code << (16 - len);
            code <<= 1;
        }
        let entry = |(next, &entry): (u32, &u16)| {
            let (run, size, len) =
                (entry >> 12, u32::from(entry >> 8 & 15), u32::from(entry & 0xff));
            if size == 0 || len + size > FAST {
                return 0;
            }
            let magnitude = next >> (FAST - len - size) & ((1 << size) - 1);
            extend(magnitude, size) << 16 | i32::from(run) << 8 | (len + size) as i32
        };
        table.coefficients = (0..).zip(&table.fast).map(entry).collect();
        Some(table)
    }
}

/// The signed value of magnitude category `size` with the magnitude bits `bits` (EXTEND, F.2.2.1). Values below
/// `1 << (size - 1)` stand for negative numbers.
#[inline(always)]
fn extend(bits: u32, size: u32) -> i32 {
    let negative = bits < (1 << size >> 1);
    bits as i32 - if negative { (1 << size) - 1 } else { 0 }
}

/// A reader of bits, the highest bit of each byte first. Past the end, all bits are 0.
#[derive(Clone, Debug)]
pub struct BitReader<'a> {
    data: &'a [u8],
    /// Index of the next byte to load into `ahead`.
    at: usize,
    /// The next bits, from the highest bit down.
    ahead: u64,
    /// Number of bits in `ahead`.
    count: u32,
    is_invalid: bool,
}

impl<'a> BitReader<'a> {
    /// A reader of `data`, without stuffed bytes.
    pub fn new(data: &'a [u8]) -> Self {
        Self { data, at: 0, ahead: 0, count: 0, is_invalid: false }
    }

    /// Loads bytes until at least 56 bits are loaded.
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

    /// Loads bytes until at least `count` bits are loaded, which is at most 56.
    #[inline(always)]
    pub fn ensure(&mut self, count: u32) {
        if self.count < count {
            self.fill();
        }
    }

    /// Whether more bits were taken than the data have.
    pub fn is_past_end(&self) -> bool {
        8 * self.at - self.count as usize > 8 * self.data.len()
    }

    /// Whether an invalid code was read.
    pub fn is_invalid(&self) -> bool {
        self.is_invalid
    }

    /// Records an invalid code.
    #[cold]
    pub fn set_invalid(&mut self) {
        self.is_invalid = true;
    }

    /// Number of whole bytes that are not read yet.
    pub fn bytes_left(&self) -> usize {
        (8 * self.data.len()).saturating_sub(8 * self.at - self.count as usize) / 8
    }

    /// Takes the next `count` bits, at most 32, which have to be loaded.
    #[inline(always)]
    pub fn take(&mut self, count: u32) -> u32 {
        let bits = (self.ahead >> 1 >> (63 - count)) as u32;
        self.ahead <<= count;
        self.count -= count;
        bits
    }

    /// Takes the next symbol (DECODE, F.2.2.3), after which at least 16 bits are loaded; `None` if no code matches.
    #[inline(always)]
    pub fn symbol(&mut self, table: &HuffmanDecoder) -> Option<u32> {
        self.ensure(32);
        let entry = table.fast[(self.ahead >> (64 - FAST)) as usize];
        if entry != 0 {
            self.take(u32::from(entry & 0xff));
            return Some(u32::from(entry >> 8));
        }
        let code = (self.ahead >> 48) as u32;
        let len = (FAST + 1..=16).find(|&len| code < table.end[len as usize])?;
        self.take(len);
        let place = (code >> (16 - len)) as i32 + table.delta[len as usize];
        table.symbols.get(place as usize).map(|&symbol| symbol.into())
    }

    /// [`symbol`](Self::symbol), or 0 if no code matches; then 17 bits are taken, as in libjpeg.
    #[inline(always)]
    pub fn symbol_or_0(&mut self, table: &HuffmanDecoder) -> u32 {
        match self.symbol(table) {
            Some(symbol) => symbol,
            None => {
                self.set_invalid();
                self.take(17);
                0
            }
        }
    }

    /// Takes a coefficient whose code and magnitude have at most `FAST` bits together: the number of zeros before it,
    /// and its value; `None` for all other symbols. Afterwards at least 22 bits are loaded, or 32 if nothing was taken.
    #[inline(always)]
    pub fn short_coefficient(&mut self, table: &HuffmanDecoder) -> Option<(u32, i32)> {
        self.ensure(32);
        let entry = table.coefficients[(self.ahead >> (64 - FAST)) as usize];
        if entry == 0 {
            return None;
        }
        self.take(entry as u32 & 0xff);
        Some((entry as u32 >> 8 & 0xff, entry >> 16))
    }

    /// Takes a signed value of magnitude category `size` (RECEIVE and EXTEND, F.2.2.1).
    #[inline(always)]
    pub fn signed(&mut self, size: u32) -> i32 {
        extend(self.take(size), size)
    }
}
