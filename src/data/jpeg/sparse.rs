//! Quantized coefficients without zeros, in the order of Huffman coding. In this form coefficients are transferred to
//! and from a device: for a photograph that took 23 % of the bytes of its pixels, and 12 % after a blur.
//!
//! ```text
//! block   | index of the first entry | count of entries << 16 | DC coefficient |
//! entry   | zig-zag index, 1 to 63 << 16 | AC coefficient, not 0 |
//! ```

use bytemuck::{Pod, Zeroable};

use super::{Coefficients, Frame, ZIGZAG};
use crate::{
    error::{Error, Result},
    memory,
};

/// A block: its DC coefficient, and the range of its entries.
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

    /// The same block with its entries moved up by `by`; the sum of indices must be below 2^32.
    pub fn moved(self, by: u32) -> Self {
        Self { first: self.first + by, ..self }
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
    /// The coefficient `value` with the zig-zag index `place`.
    pub fn new(place: u32, value: i16) -> Self {
        Self(place << 16 | u32::from(value as u16))
    }

    /// The zig-zag index.
    pub fn place(self) -> u32 {
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
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn zeros(frame: &Frame, entries: usize) -> Result<Self> {
        let blocks = memory::zeros(frame.first_block(frame.components.len()))?;
        Ok(Self { frame: frame.clone(), blocks, entries: memory::room(entries)? })
    }

    /// Sets block `at` from its coefficients `values`, row by row, and its DC coefficient `dc`. Bit i of `nonzero` says
    /// whether the coefficient with the zig-zag index i becomes an entry.
    ///
    /// # Errors
    /// If there is no memory for more entries, or their indices would exceed 32 bits.
    pub fn set(&mut self, at: usize, values: &[i16; 64], dc: i16, mut nonzero: u64) -> Result<()> {
        nonzero &= !1;
        let count = nonzero.count_ones();
        let first = first_entry(self.entries.len(), count as usize)?;
        self.blocks[at] = SparseBlock::new(first, count, dc);
        memory::reserve(&mut self.entries, count as usize)?;
        while nonzero != 0 {
            let place = nonzero.trailing_zeros();
            nonzero &= nonzero - 1;
            self.entries.push(Entry::new(place, values[usize::from(ZIGZAG[place as usize])]));
        }
        Ok(())
    }

    /// Sets block `at` to the DC coefficient `dc` and the entries that `read` pushes, at most 63. Returns the result of
    /// `read`.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    #[inline(always)]
    pub fn read<T>(
        &mut self,
        at: usize,
        dc: i16,
        read: impl FnOnce(&mut Entries<'_>) -> T,
    ) -> Result<T> {
        let first = first_entry(self.entries.len(), 63)?;
        memory::reserve(&mut self.entries, 63)?;
        let result = read(&mut Entries(&mut self.entries));
        let count = self.entries.len() as u32 - first;
        self.blocks[at] = SparseBlock::new(first, count, dc);
        Ok(result)
    }

    /// Converts coefficients with zeros.
    ///
    /// # Errors
    /// If there is no memory for the entries.
    pub fn of(dense: &Coefficients) -> Result<Self> {
        let mut sparse = Self::zeros(&dense.frame, 0)?;
        for (at, block) in dense.blocks.iter().flatten().enumerate() {
            let bit = |(place, &at): (usize, &u8)| u64::from(block[usize::from(at)] != 0) << place;
            let nonzero = ZIGZAG.iter().enumerate().map(bit).sum();
            sparse.set(at, block, block[0], nonzero)?;
        }
        Ok(sparse)
    }

    /// Converts to coefficients with zeros.
    ///
    /// # Errors
    /// If there is no memory for the coefficients.
    pub fn to_dense(&self) -> Result<Coefficients> {
        let component = |c: usize| {
            let range = self.frame.first_block(c)..self.frame.first_block(c + 1);
            let mut dense = memory::zeros::<[i16; 64]>(range.len())?;
            for (block, values) in self.blocks[range].iter().zip(&mut dense) {
                values[0] = block.dc();
                for entry in self.entries_of(*block) {
                    values[usize::from(ZIGZAG[entry.place() as usize])] = entry.value();
                }
            }
            Ok(dense)
        };
        let blocks = (0..self.frame.components.len()).map(component).collect::<Result<_>>()?;
        Ok(Coefficients { frame: self.frame.clone(), blocks })
    }

    /// The entries of `block`.
    pub fn entries_of(&self, block: SparseBlock) -> &[Entry] {
        &self.entries[block.first as usize..][..block.count()]
    }
}

/// Receives the entries of a block.
#[derive(Debug)]
pub struct Entries<'a>(&'a mut Vec<Entry>);

impl Entries<'_> {
    /// Appends the next entry.
    #[inline(always)]
    pub fn push(&mut self, entry: Entry) {
        self.0.push(entry);
    }
}

/// The index of the first of `more` entries behind `len` others.
///
/// # Errors
/// [`Kind::BadInput`](crate::error::Kind::BadInput) if indices exceed 32 bits.
pub fn first_entry(len: usize, more: usize) -> Result<u32> {
    match u32::try_from(len + more) {
        Ok(_) => Ok(len as u32),
        Err(_) => Err(Error::bad_input("a JPEG picture has 2^32 coefficients that are not 0")),
    }
}

/// Compares coefficients, wherever their entries are.
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
    use crate::data::jpeg::Quality;

    #[test]
    fn places_beyond_32_bits_are_refused() {
        const MOST: usize = u32::MAX as usize;
        assert_eq!(first_entry(MOST - 63, 63).unwrap(), u32::MAX - 63);
        for (len, more) in [(MOST - 62, 63), (MOST, 1), (MOST + 1, 0), (1 << 33, 5)] {
            assert!(first_entry(len, more).is_err(), "{len} + {more}");
        }
    }

    #[test]
    fn sparse_and_dense_hold_the_same() {
        let frame = Frame::for_pixels([40, 24], 3, Quality(50), true);
        let mut state = 0u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            match state >> 28 {
                0 => (state >> 8) as i16,
                _ => 0,
            }
        };
        let mut blocks = |c: usize| {
            let count = frame.blocks(c).iter().product();
            (0..count).map(|_| std::array::from_fn(|_| next())).collect()
        };
        let dense =
            Coefficients { frame: frame.clone(), blocks: (0..3).map(&mut blocks).collect() };
        let sparse = SparseCoefficients::of(&dense).unwrap();
        assert!(sparse.entries.iter().all(|entry| entry.value() != 0 && entry.place() < 64));
        assert_eq!(sparse.to_dense().unwrap(), dense);
        let mut other = sparse.clone();
        assert!(other == sparse);
        other.entries[3] = Entry::new(other.entries[3].place(), 12_345);
        assert!(other != sparse);
    }
}
