//! Huffman tables of the encoder (ITU-T T.81, annex C), and the writer of bits. Tables are those of annex K.3, or those
//! that code the symbols of a picture in the fewest bits (K.2).

/// A Huffman table: the number of codes of each length from 1 to 16, and their symbols (T.81, B.2.4.2).
#[derive(Clone, Debug)]
pub struct HuffmanTable {
    pub counts: [u8; 16],
    pub symbols: Vec<u8>,
}

/// Code and length of each symbol.
pub type HuffmanCodes = [(u32, u32); 256];

/// Maximum length of a code in bits.
const MAX_LEN: usize = 16;

impl HuffmanTable {
    /// The tables of annex K.3: DC and AC coefficients of luma, DC and AC coefficients of chroma.
    pub fn standard() -> [Self; 4] {
        let dc = |counts| Self { counts, symbols: (0..12).collect() };
        [
            dc([0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0]),
            Self::with_others(
                [0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125],
                &[
                    0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13,
                    0x51, 0x61, 0x07, 0x22, 0x71, 0x14, 0x32, 0x81, 0x91, 0xa1, 0x08, 0x23, 0x42,
                    0xb1, 0xc1, 0x15, 0x52, 0xd1, 0xf0, 0x24, 0x33, 0x62, 0x72, 0x82,
                ],
            ),
            dc([0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0]),
            Self::with_others(
                [0, 2, 1, 2, 4, 4, 3, 4, 7, 5, 4, 4, 0, 1, 2, 119],
                &[
                    0x00, 0x01, 0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51,
                    0x07, 0x61, 0x71, 0x13, 0x22, 0x32, 0x81, 0x08, 0x14, 0x42, 0x91, 0xa1, 0xb1,
                    0xc1, 0x09, 0x23, 0x33, 0x52, 0xf0, 0x15, 0x62, 0x72, 0xd1, 0x0a, 0x16, 0x24,
                    0x34, 0xe1, 0x25, 0xf1,
                ],
            ),
        ]
    }

    /// A table of all symbols of AC coefficients of 8-bit pictures: first `symbols`, then the rest in ascending order.
    fn with_others(counts: [u8; 16], symbols: &[u8]) -> Self {
        let mut symbols = symbols.to_vec();
        let is_used = |symbol: &u8| matches!(symbol & 15, 1..=10) || matches!(symbol, 0 | 0xf0);
        for symbol in (0..=255).filter(is_used) {
            if !symbols.contains(&symbol) {
                symbols.push(symbol);
            }
        }
        Self { counts, symbols }
    }

    /// The canonical codes (T.81, annex C).
    pub fn codes(&self) -> HuffmanCodes {
        let mut codes = [(0, 0); 256];
        let (mut code, mut symbols) = (0, self.symbols.iter());
        for (len, &count) in (1..).zip(&self.counts) {
            for &symbol in symbols.by_ref().take(count.into()) {
                codes[usize::from(symbol)] = (code, len);
                code += 1;
            }
            code <<= 1;
        }
        codes
    }

    /// A table that codes symbols with these counts in few bits. Codes have at most 16 bits, and the code of all ones
    /// is not used (T.81, K.2). Of symbols with equal counts, larger ones get longer codes.
    pub fn for_counts(counts: &[u64; 256]) -> Self {
        /// A symbol for the unused code of all ones.
        const RESERVED: usize = 256;
        let mut frequencies: Vec<u64> = counts.iter().copied().chain([1]).collect();
        let mut lens = [0usize; RESERVED + 1];
        let mut groups: Vec<Vec<usize>> = (0..=RESERVED).map(|symbol| vec![symbol]).collect();
        let rarest = |frequencies: &[u64], but: Option<usize>| {
            let found = (0..frequencies.len()).filter(|&i| frequencies[i] > 0 && Some(i) != but);
            found.rev().min_by_key(|&i| frequencies[i])
        };
        while let Some(first) = rarest(&frequencies, None)
            && let Some(second) = rarest(&frequencies, Some(first))
        {
            frequencies[first] += std::mem::take(&mut frequencies[second]);
            let joined = std::mem::take(&mut groups[second]);
            groups[first].extend(joined);
            groups[first].iter().for_each(|&symbol| lens[symbol] += 1);
        }
        let mut len_counts = [0usize; RESERVED + 2];
        lens.iter().filter(|&&len| len > 0).for_each(|&len| len_counts[len] += 1);
        // Figure K.3: two of the longest codes are replaced by one code that is shorter by a bit, and one shorter code
        // by two codes that are longer by a bit.
        for len in (MAX_LEN + 1..len_counts.len()).rev() {
            while len_counts[len] > 0 {
                let shorter = (1..len - 1).rev().find(|&shorter| len_counts[shorter] > 0);
                let shorter = shorter.expect("256 symbols fit codes of 16 bits");
                len_counts[len] -= 2;
                len_counts[len - 1] += 1;
                len_counts[shorter] -= 1;
                len_counts[shorter + 1] += 2;
            }
        }
        if let Some(longest) = len_counts.iter_mut().rev().find(|count| **count > 0) {
            *longest -= 1;
        }
        let mut symbols: Vec<usize> = (0..RESERVED).filter(|&symbol| lens[symbol] > 0).collect();
        symbols.sort_by_key(|&symbol| lens[symbol]);
        Self {
            counts: std::array::from_fn(|i| len_counts[i + 1] as u8),
            symbols: symbols.into_iter().map(|symbol| symbol as u8).collect(),
        }
    }
}

/// A writer of bits, the highest bit of each byte first, with a zero byte stuffed after each 0xff (T.81, B.1.1.5).
#[derive(Debug, Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    /// Bits that are not yet in `bytes`. The last one written is the lowest bit.
    held: u64,
    /// Number of bits in `held`, at most 63.
    count: u32,
}

impl BitWriter {
    /// Appends the low `count` bits of `bits`, at most 32; the other bits must be 0.
    #[inline(always)]
    pub fn put(&mut self, bits: u32, count: u32) {
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

#[cfg(test)]
mod tests {
    use std::{cmp::Reverse, collections::BinaryHeap};

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

    /// The fewest bits of a code without a limit of its lengths (Huffman), with one more symbol that occurs once.
    fn fewest_bits(counts: &[u64; 256]) -> u64 {
        let used = counts.iter().filter(|&&count| count > 0).chain(&[1]);
        let (mut heap, mut bits): (BinaryHeap<_>, _) = (used.map(|&n| Reverse(n)).collect(), 0);
        while let (Some(Reverse(a)), Some(Reverse(b))) = (heap.pop(), heap.pop()) {
            bits += a + b;
            heap.push(Reverse(a + b));
        }
        bits
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
            if round == 59 {
                // Fibonacci numbers give the longest codes.
                counts = [0; 256];
                (counts[0], counts[1]) = (1, 1);
                (2..80).for_each(|i| counts[i] = counts[i - 1] + counts[i - 2]);
            }
            let table = HuffmanTable::for_counts(&counts);
            let codes = table.codes();
            assert!((0..256).all(|i| (counts[i] > 0) == (1..=16).contains(&codes[i].1)));
            // The code of all ones is not used.
            let lens = (1..).zip(&table.counts);
            let used: u32 = lens.map(|(len, &count)| u32::from(count) << (16 - len)).sum();
            assert!(used < 1 << 16, "{table:?}");
            let found: u64 = (0..256).map(|i| counts[i] * u64::from(codes[i].1)).sum();
            let fewest = fewest_bits(&counts);
            // Codes of more than 16 bits are shortened.
            let slack = if table.counts[15] == 0 { 0 } else { fewest / 20 };
            assert!(found + 16 >= fewest && found <= fewest + slack, "{found} {fewest}");
        }
    }
}
