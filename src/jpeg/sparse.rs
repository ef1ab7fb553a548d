//! Quantized coefficients without zeros, in the order of Huffman coding. They are transferred to and from a device in
//! this form. For a photograph it takes 23 % of the bytes of the pixels, and 12 % after a blur.
//!
//! ```text
//! block   | index of the first entry | count of entries << 16 | DC coefficient |
//! entry   | zig-zag index, 1 to 63 << 16 | AC coefficient, not 0 |
//! ```

use bytemuck::{Pod, Zeroable};
use pulp::Arch;

#[cfg(target_arch = "x86_64")]
use super::x86;
use super::{Frame, ZIGZAG};
use crate::util::{
    error::{Error, Result},
    memory, simd,
};

/// The DC coefficient of a block, and the range of its entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct SparseBlock {
    /// Index of its first entry.
    pub first: u32,
    count_and_dc: u32,
}

impl SparseBlock {
    /// A block of `count` entries.
    pub fn new(first: u32, count: u32, dc: i16) -> Self {
        Self { first, count_and_dc: count << 16 | u32::from(dc as u16) }
    }

    /// Number of entries.
    pub fn count(self) -> usize {
        (self.count_and_dc >> 16) as usize
    }

    /// The DC coefficient.
    pub fn dc(self) -> i16 {
        self.count_and_dc as i16
    }
}

/// An AC coefficient that is not 0, with its zig-zag index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Entry(u32);

impl Entry {
    /// The coefficient `value` with the zig-zag index `index`.
    pub fn new(index: u32, value: i16) -> Self {
        Self(index << 16 | u32::from(value as u16))
    }

    /// The zig-zag index.
    pub fn index(self) -> u32 {
        self.0 >> 16
    }

    /// The coefficient.
    pub fn value(self) -> i16 {
        self.0 as i16
    }
}

/// Quantized coefficients of a whole picture.
#[derive(Clone, Debug)]
pub struct SparseCoefficients {
    /// Size, colours and components.
    pub frame: Frame,
    /// The [`Frame::blocks`] of each component, row by row from the top; one component after the other.
    pub blocks: Vec<SparseBlock>,
    /// The entries of all blocks; those of a block are in zig-zag order.
    pub entries: Vec<Entry>,
}

impl SparseCoefficients {
    /// A picture of zeros, with memory reserved for `entries` entries.
    pub fn zeros(frame: &Frame, entries: usize) -> Result<Self> {
        let blocks = memory::zeros(frame.first_block(frame.components.len()))?;
        Ok(Self { frame: frame.clone(), blocks, entries: memory::room(entries)? })
    }

    /// Sets the blocks from number `first` on to `blocks`, whose coefficients are row by row.
    pub fn set(&mut self, first: usize, blocks: &[[i16; 64]]) -> Result<()> {
        let arch = simd::arch();
        (first..)
            .zip(blocks)
            .try_for_each(|(at, block)| self.set_block(at, block, nonzero(arch, block)))
    }

    #[inline(always)]
    fn set_block(&mut self, at: usize, values: &[i16; 64], nonzero: u64) -> Result<()> {
        // Most coefficients are 0, so it is faster to sort the indices of the others than to look at all of them in
        // zig-zag order.
        let others = set_bits(nonzero & !1);
        let indices = others.fold(0, |indices, i| indices | 1u64 << ZIGZAG_INDEX[i & 63]);
        let (mut entries, mut count) = ([Entry(0); 64], 0);
        for index in set_bits(indices) {
            entries[count & 63] = Entry::new(index as u32, values[usize::from(ZIGZAG[index & 63])]);
            count += 1;
        }
        let first = first_entry(self.entries.len(), count)?;
        memory::reserve(&mut self.entries, count)?;
        self.entries.extend_from_slice(&entries[..count]);
        self.blocks[at] = SparseBlock::new(first, count as u32, values[0]);
        Ok(())
    }

    /// Copies all blocks of `band`, which begins at the MCU row `start` of this picture.
    pub fn set_band(&mut self, start: usize, band: &mut Self) -> Result<()> {
        let moved = first_entry(self.entries.len(), band.entries.len())?;
        for c in 0..self.frame.components.len() {
            let row = self.frame.blocks(c)[0] * self.frame.components[c].sampling[1];
            let to = &mut self.blocks[self.frame.first_block(c) + start * row..];
            let from = band.frame.first_block(c)..band.frame.first_block(c + 1);
            for (to, block) in to.iter_mut().zip(&band.blocks[from]) {
                *to = SparseBlock { first: block.first + moved, ..*block };
            }
        }
        memory::append(&mut self.entries, &mut band.entries)
    }

    /// Row `y` of the blocks of component `c` with their zeros, each block in row-major order.
    pub fn row(&self, c: usize, y: usize) -> Result<Vec<[i16; 64]>> {
        let [across, _] = self.frame.blocks(c);
        let mut row = memory::zeros::<[i16; 64]>(across)?;
        let blocks = &self.blocks[self.frame.first_block(c) + y * across..][..across];
        for (values, block) in row.iter_mut().zip(blocks) {
            values[0] = block.dc();
            for entry in self.entries_of(*block) {
                values[usize::from(ZIGZAG[entry.index() as usize])] = entry.value();
            }
        }
        Ok(row)
    }

    /// The entries of `block`.
    pub fn entries_of(&self, block: SparseBlock) -> &[Entry] {
        &self.entries[block.first as usize..][..block.count()]
    }
}

/// The zig-zag index of each coefficient, row by row: the inverse of [`ZIGZAG`].
const ZIGZAG_INDEX: [u8; 64] = {
    let (mut indices, mut index) = ([0; 64], 0);
    while index < 64 {
        indices[ZIGZAG[index] as usize] = index as u8;
        index += 1;
    }
    indices
};

/// Positions of the one bits of `bits`, from the lowest up.
#[inline(always)]
fn set_bits(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(lowest)
    })
}

/// A mask of the nonzero values: bit k stands for value k.
#[inline(always)]
fn nonzero(arch: Arch, values: &[i16; 64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = x86::avx2(arch) {
        return x86::nonzero(simd, values);
    }
    let _ = arch;
    (0..64).fold(0, |mask, k| mask | u64::from(values[k] != 0) << k)
}

/// The index of the first of `more` entries after `len` others.
pub fn first_entry(len: usize, more: usize) -> Result<u32> {
    match u32::try_from(len + more) {
        Ok(_) => Ok(len as u32),
        Err(_) => Err(Error::bad_input("the JPEG picture has more than 2^32 nonzero coefficients")),
    }
}

/// Compares coefficients, not the positions of their entries.
impl PartialEq for SparseCoefficients {
    fn eq(&self, other: &Self) -> bool {
        let equal = |(&a, &b): (&SparseBlock, &SparseBlock)| {
            a.dc() == b.dc() && self.entries_of(a) == other.entries_of(b)
        };
        self.frame == other.frame
            && self.blocks.len() == other.blocks.len()
            && self.blocks.iter().zip(&other.blocks).all(equal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_beyond_32_bits_are_refused() {
        const MAX: usize = u32::MAX as usize;
        assert_eq!(first_entry(MAX - 63, 63).unwrap(), u32::MAX - 63);
        for (len, more) in [(MAX - 62, 63), (MAX, 1), (MAX + 1, 0), (1 << 33, 5)] {
            assert!(first_entry(len, more).is_err(), "{len} + {more}");
        }
    }
}
