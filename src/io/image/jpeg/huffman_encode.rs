//! Huffman coding of sequential scans (ITU-T T.81, annex F.1), with the tables of annex K.3, or with tables that code
//! the symbols of a picture in the fewest bits (K.2).

use std::borrow::Cow;

use crate::data::jpeg::{Entry, ZIGZAG};

/// A Huffman table: the number of codes of each length from 1 to 16, and their symbols (T.81, B.2.4.2).
#[derive(Clone, Debug)]
pub struct Table {
    pub counts: [u8; 16],
    pub symbols: Cow<'static, [u8]>,
}

/// Tables for luma: DC and AC coefficients (T.81, tables K.3 and K.5).
pub const LUMA: [Table; 2] = [
    Table {
        counts: [0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0],
        symbols: Cow::Borrowed(&[
            0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, //
        ]),
    },
    Table {
        counts: [0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125],
        symbols: Cow::Borrowed(&[
            0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51,
            0x61, 0x07, //
            0x22, 0x71, 0x14, 0x32, 0x81, 0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15, 0x52,
            0xd1, 0xf0, //
            0x24, 0x33, 0x62, 0x72, 0x82, 0x09, 0x0a, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x25, 0x26,
            0x27, 0x28, //
            0x29, 0x2a, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47,
            0x48, 0x49, //
            0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64, 0x65, 0x66, 0x67,
            0x68, 0x69, //
            0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x83, 0x84, 0x85, 0x86, 0x87,
            0x88, 0x89, //
            0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5,
            0xa6, 0xa7, //
            0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3,
            0xc4, 0xc5, //
            0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda,
            0xe1, 0xe2, //
            0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6,
            0xf7, 0xf8, //
            0xf9, 0xfa, //
        ]),
    },
];

/// Tables for chroma: DC and AC coefficients (T.81, tables K.4 and K.6).
pub const CHROMA: [Table; 2] = [
    Table {
        counts: [0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0],
        symbols: Cow::Borrowed(&[
            0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, //
        ]),
    },
    Table {
        counts: [0, 2, 1, 2, 4, 4, 3, 4, 7, 5, 4, 4, 0, 1, 2, 119],
        symbols: Cow::Borrowed(&[
            0x00, 0x01, 0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51, 0x07,
            0x61, 0x71, //
            0x13, 0x22, 0x32, 0x81, 0x08, 0x14, 0x42, 0x91, 0xa1, 0xb1, 0xc1, 0x09, 0x23, 0x33,
            0x52, 0xf0, //
            0x15, 0x62, 0x72, 0xd1, 0x0a, 0x16, 0x24, 0x34, 0xe1, 0x25, 0xf1, 0x17, 0x18, 0x19,
            0x1a, 0x26, //
            0x27, 0x28, 0x29, 0x2a, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46,
            0x47, 0x48, //
            0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64, 0x65, 0x66,
            0x67, 0x68, //
            0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x82, 0x83, 0x84, 0x85,
            0x86, 0x87, //
            0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3,
            0xa4, 0xa5, //
            0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba,
            0xc2, 0xc3, //
            0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8,
            0xd9, 0xda, //
            0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6,
            0xf7, 0xf8, //
            0xf9, 0xfa, //
        ]),
    },
];

/// Code and length of each symbol.
#[derive(Clone, Debug)]
pub struct Codes([(u32, u32); 256]);

impl Codes {
    /// The canonical codes of a table (T.81, annex C).
    pub fn new(table: &Table) -> Self {
        let mut codes = [(0, 0); 256];
        let (mut code, mut symbols) = (0, table.symbols.iter());
        for (len, &count) in (1..).zip(&table.counts) {
            for &symbol in symbols.by_ref().take(count.into()) {
                codes[usize::from(symbol)] = (code, len);
                code += 1;
            }
            code <<= 1;
        }
        Self(codes)
    }
}

/// Maximal length of a code in bits.
const LONGEST: usize = 16;

impl Table {
    /// A table that codes symbols with these counts in few bits; codes have at most 16 bits, and none is all ones
    /// (T.81, K.2). Of symbols with equal counts, the greater ones get the longer codes.
    pub fn for_counts(counts: &[u64; 256]) -> Self {
        /// Stands for the code of all ones, which no symbol has.
        const RESERVED: usize = 256;
        let mut often: Vec<u64> = counts.iter().copied().chain([1]).collect();
        let mut lens = [0usize; RESERVED + 1];
        let mut groups: Vec<Vec<usize>> = (0..=RESERVED).map(|symbol| vec![symbol]).collect();
        let rarest = |often: &[u64], but: Option<usize>| {
            let found = (0..often.len()).filter(|&i| often[i] > 0 && Some(i) != but);
            found.rev().min_by_key(|&i| often[i])
        };
        while let Some(first) = rarest(&often, None)
            && let Some(second) = rarest(&often, Some(first))
        {
            often[first] += std::mem::take(&mut often[second]);
            let joined = std::mem::take(&mut groups[second]);
            groups[first].extend(joined);
            groups[first].iter().for_each(|&symbol| lens[symbol] += 1);
        }
        let mut of_len = [0usize; RESERVED + 2];
        lens.iter().filter(|&&len| len > 0).for_each(|&len| of_len[len] += 1);
        // Figure K.3: two of the longest codes become one code that is shorter by a bit, and a shorter code two codes
        // that are longer by a bit.
        for len in (LONGEST + 1..of_len.len()).rev() {
            while of_len[len] > 0 {
                let shorter = (1..len - 1).rev().find(|&shorter| of_len[shorter] > 0);
                let shorter = shorter.expect("so many symbols have codes of 16 bits");
                of_len[len] -= 2;
                of_len[len - 1] += 1;
                of_len[shorter] -= 1;
                of_len[shorter + 1] += 2;
            }
        }
        if let Some(longest) = of_len.iter_mut().rev().find(|count| **count > 0) {
            *longest -= 1;
        }
        let mut symbols: Vec<usize> = (0..RESERVED).filter(|&symbol| lens[symbol] > 0).collect();
        symbols.sort_by_key(|&symbol| lens[symbol]);
        Self {
            counts: std::array::from_fn(|i| of_len[i + 1] as u8),
            symbols: symbols.into_iter().map(|symbol| symbol as u8).collect(),
        }
    }
}

/// A consumer of the symbols of a scan.
pub trait Symbols {
    /// The form of a Huffman table that the consumer needs.
    type Table;

    /// Takes a symbol.
    fn symbol(&mut self, symbol: usize, table: &Self::Table);

    /// Takes the symbol `run | size`, where `size` is the number of bits of `value`, then these bits. Negative values
    /// are coded as `value - 1` (T.81, F.1.2.1).
    fn value(&mut self, run: u32, value: i32, table: &Self::Table);

    /// Takes a block (T.81, F.1.2): the difference of its DC coefficient from `last`, then its AC coefficients in
    /// zig-zag order.
    #[inline(always)]
    fn block(&mut self, block: &[i16; 64], last: &mut i32, [dc, ac]: &[Self::Table; 2]) {
        self.value(0, i32::from(block[0]) - *last, dc);
        *last = block[0].into();
        // Most AC coefficients are 0, so it is faster to sort the indices of the others than to look at all 64 values.
        let others = ones(nonzero(block) & !1);
        let coded = others.fold(0, |coded, at| coded | 1 << CODED[at & 63]);
        let mut before = 0;
        for place in ones(coded) {
            self.other(place as u32, block[usize::from(ZIGZAG[place & 63])], &mut before, ac);
        }
        self.end(before, ac);
    }

    /// As [`Symbols::block`], for a block of its DC coefficient and its nonzero AC coefficients.
    #[inline(always)]
    fn sparse_block(
        &mut self,
        first: i16,
        others: &[Entry],
        last: &mut i32,
        [dc, ac]: &[Self::Table; 2],
    ) {
        self.value(0, i32::from(first) - *last, dc);
        *last = first.into();
        let mut before = 0;
        for entry in others {
            self.other(entry.place(), entry.value(), &mut before, ac);
        }
        self.end(before, ac);
    }

    /// Takes the AC coefficient with the zig-zag index `place`; the one before it has the index `before`.
    #[inline(always)]
    fn other(&mut self, place: u32, value: i16, before: &mut u32, ac: &Self::Table) {
        let mut run = place - *before - 1;
        *before = place;
        while run > 15 {
            self.symbol(ZRL, ac);
            run -= 16;
        }
        self.value(run << 4, value.into(), ac);
    }

    /// Ends a block whose last coefficient has the zig-zag index `last`.
    #[inline(always)]
    fn end(&mut self, last: u32, ac: &Self::Table) {
        if last < 63 {
            self.symbol(EOB, ac);
        }
    }

    /// Takes a block with the DC coefficient of the block before it, whose AC coefficients are 0.
    fn empty_block(&mut self, [dc, ac]: &[Self::Table; 2]) {
        self.symbol(0, dc);
        self.symbol(EOB, ac);
    }
}

/// Counts of each symbol, by the number of the table.
#[derive(Clone, Debug)]
pub struct Counts(pub [[u64; 256]; 4]);

impl Symbols for Counts {
    type Table = usize;

    fn symbol(&mut self, symbol: usize, &table: &usize) {
        self.0[table][symbol] += 1;
    }

    fn value(&mut self, run: u32, value: i32, &table: &usize) {
        self.0[table][(run | size(value)) as usize & 255] += 1;
    }
}

/// Number of bits of the magnitude of a value (its category).
fn size(value: i32) -> u32 {
    32 - value.unsigned_abs().leading_zeros()
}

/// The symbol for sixteen zeros in a row.
const ZRL: usize = 0xf0;
/// The symbol for the end of a block.
const EOB: usize = 0x00;

/// A writer of bits, the highest bit of each byte first, with a zero byte stuffed behind each 0xff (T.81, B.1.1.5).
#[derive(Debug, Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    /// The bits that are not in `bytes` yet; the latest one is the lowest bit.
    held: u64,
    /// Number of bits in `held`, less than 64.
    count: u32,
}

impl Symbols for BitWriter {
    type Table = Codes;

    #[inline(always)]
    fn symbol(&mut self, symbol: usize, codes: &Codes) {
        let (code, len) = codes.0[symbol];
        self.put(code, len);
    }

    #[inline(always)]
    fn value(&mut self, run: u32, value: i32, codes: &Codes) {
        let size = size(value);
        let bits = (value + (value >> 31)) as u32 & ((1 << size) - 1);
        let (code, len) = codes.0[(run | size) as usize & 255];
        self.put(code << size | bits, len + size);
    }
}

impl BitWriter {
    /// Appends the low `count` bits of `bits`, at most 32; the other bits must be 0.
    #[inline(always)]
    fn put(&mut self, bits: u32, count: u32) {
        let free = 64 - self.count;
        if count < free {
            self.held = self.held << count | u64::from(bits);
            self.count += count;
            return;
        }
        let left = count - free;
        self.word((self.held << (free - 1) << 1) | u64::from(bits) >> left);
        (self.held, self.count) = (bits.into(), left);
    }

    /// Appends eight bytes.
    #[inline(always)]
    fn word(&mut self, word: u64) {
        const TOPS: u64 = 0x8080_8080_8080_8080;
        const ONES: u64 = 0x0101_0101_0101_0101;
        // A byte is 0xff if its top bit is set, and adding 1 to its other seven bits carries into the top bit.
        if word & TOPS & (word & !TOPS).wrapping_add(ONES) == 0 {
            self.bytes.extend_from_slice(&word.to_be_bytes());
        } else {
            word.to_be_bytes().into_iter().for_each(|byte| self.byte(byte));
        }
    }

    fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
        if byte == 0xff {
            self.bytes.push(0);
        }
    }

    /// All bytes; the last one is filled up with one bits (T.81, F.1.2.3).
    pub fn finish(mut self) -> Vec<u8> {
        let fill = (8 - self.count % 8) % 8;
        self.put((1 << fill) - 1, fill);
        let bytes = self.held.to_be_bytes();
        bytes[8 - (self.count / 8) as usize..].iter().for_each(|&byte| self.byte(byte));
        self.bytes
    }
}

/// The zig-zag index of each coefficient, row by row: the inverse of [`ZIGZAG`].
const CODED: [u8; 64] = {
    let (mut coded, mut place) = ([0; 64], 0);
    while place < 64 {
        coded[ZIGZAG[place] as usize] = place as u8;
        place += 1;
    }
    coded
};

/// The numbers of the one bits of `bits`, from the lowest up.
#[inline(always)]
fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(lowest)
    })
}

/// A mask of the values that are not 0: bit k stands for value k.
#[inline(always)]
fn nonzero(values: &[i16; 64]) -> u64 {
    let flags = values.map(|value| u8::from(value != 0));
    let mut mask = 0;
    for (i, eight) in flags.as_chunks::<8>().0.iter().enumerate() {
        // The product moves bit 0 of byte k to bit 56 + k, since 8 k + 7 (8 - k) = 56 + k.
        let eight = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask |= eight << (8 * i);
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_packed_with_stuffing_and_filled_with_ones() {
        let mut out = BitWriter::default();
        for _ in 0..3 {
            out.put(0x7ff, 11);
            out.put(0, 1);
        }
        // 0xffe three times, and four one bits as padding.
        assert_eq!(out.finish(), [0xff, 0, 0xef, 0xfe, 0xff, 0, 0xef]);
        assert!(BitWriter::default().finish().is_empty());
        let mut out = BitWriter::default();
        (0..16).for_each(|i| out.put(i, 4));
        assert_eq!(out.finish(), [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]);
    }

    /// Number of bits that code symbols with these counts by `table`.
    fn bits(counts: &[u64; 256], table: &Table) -> u64 {
        let codes = Codes::new(table);
        counts.iter().zip(codes.0).map(|(&count, (_, len))| count * u64::from(len)).sum()
    }

    /// The fewest bits of any prefix code of at most 16 bits with one reserved code: the package-merge algorithm
    /// (Larmore and Hirschberg 1990).
    fn fewest_bits(counts: &[u64; 256]) -> u64 {
        let mut coins: Vec<(u64, Vec<usize>)> =
            (0..256).filter(|&i| counts[i] > 0).map(|i| (counts[i], vec![i])).collect();
        coins.push((0, vec![256]));
        coins.sort();
        let of_one_size = coins.clone();
        for _ in 1..LONGEST {
            let pairs = coins.chunks_exact(2);
            let paired =
                pairs.map(|pair| (pair[0].0 + pair[1].0, [&pair[0].1[..], &pair[1].1].concat()));
            coins = paired.chain(of_one_size.iter().cloned()).collect();
            coins.sort();
        }
        coins[..2 * (of_one_size.len() - 1)].iter().map(|coin| coin.0).sum()
    }

    #[test]
    fn tables_for_counts_take_the_fewest_bits() {
        let mut noise = crate::data::noise::Noise(3);
        for round in 0..60 {
            let mut counts = [0; 256];
            for count in counts.iter_mut().take(1 + 5 * round) {
                *count = noise.next() % (1 << (noise.next() % 20));
            }
            counts[7] = 1;
            let table = Table::for_counts(&counts);
            let total: usize = table.counts.iter().map(|&count| usize::from(count)).sum();
            assert_eq!(total, counts.iter().filter(|&&count| count > 0).count());
            // The code of all ones is not used.
            let used: u32 =
                (1..).zip(&table.counts).map(|(len, &count)| u32::from(count) << (16 - len)).sum();
            assert!(used < 1 << 16, "{table:?}");
            let (found, fewest) = (bits(&counts, &table), fewest_bits(&counts));
            // `for_counts` takes the reserved code as used once, and shortens codes of more than 16 bits by a rule that
            // is not always optimal.
            let slack = 16 + if table.counts[15] == 0 { 0 } else { fewest / 500 };
            assert!(found >= fewest && found <= fewest + slack, "{found} {fewest}");
        }
    }

    /// Fibonacci numbers as counts give the longest codes.
    #[test]
    fn codes_have_16_bits_at_most() {
        let mut counts = [0; 256];
        let (mut a, mut b) = (1, 1);
        for count in &mut counts[..80] {
            *count = a;
            (a, b) = (b, a + b);
        }
        let table = Table::for_counts(&counts);
        assert_eq!(table.symbols.len(), 80);
        assert!(table.counts[15] > 0);
        let codes = Codes::new(&table);
        assert!(codes.0[..80].iter().all(|&(_, len)| (1..=16).contains(&len)));
        let (found, fewest) = (bits(&counts, &table), fewest_bits(&counts));
        assert!(found <= fewest + fewest / 20, "{found} {fewest}");
    }

    #[test]
    fn masks_tell_which_values_are_not_zero() {
        for k in 0..64 {
            let mut values = [0; 64];
            values[k] = -3;
            assert_eq!(nonzero(&values), 1 << k);
        }
        assert_eq!(nonzero(&[1; 64]), u64::MAX);
    }
}
