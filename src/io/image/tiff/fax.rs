//! CCITT fax compression of bilevel rows (TIFF 6.0, sections 10 and 11; ITU-T T.4 and T.6).

use fax::{
    BitReader, Color,
    maps::{Mode, black, mode, white},
};

use super::storage::Fax;
use crate::util::{error::Result, memory};

/// Maximum number of changes of the colour in a row: each has at least one bit.
fn max_changes(width: usize, packed: &[u8]) -> usize {
    width.min(packed.len().saturating_mul(8))
}

/// Bytes of memory that [`decode`] takes in addition to the rows.
pub fn scratch(width: usize, packed: &[u8]) -> u64 {
    (2 * size_of::<u32>() * max_changes(width, packed)) as u64
}

/// Decodes `rows` rows of `width` pixels, 8 in a byte, black as 1. Also returns whether a part is damaged, which is white.
pub fn decode(fax: Fax, packed: &[u8], width: usize, rows: &mut [u8]) -> Result<bool> {
    let mut bits = Bits { bytes: packed, at: 0 };
    let max = max_changes(width, packed);
    let (mut reference, mut current) = (memory::room(max)?, memory::room(max)?);
    let mut is_damaged = false;
    for row in rows.chunks_exact_mut(width.div_ceil(8)) {
        current.clear();
        let is_2d = match fax {
            Fax::Rows | Fax::Words => false,
            Fax::Group4 => true,
            Fax::Group3 { is_2d } => {
                bits.skip_eol();
                // A bit after each end-of-line code says how the next row is coded.
                is_2d && bits.take(1) == 0
            }
        };
        let decoded = match is_2d {
            true => row_2d(&mut bits, &reference, &mut current, width),
            false => row_1d(&mut bits, &mut current, width),
        };
        if decoded.is_none() && current.len() % 2 == 1 {
            current.pop();
        }
        paint(&current, width, row);
        match (decoded, fax) {
            (Some(()), _) => {}
            // Decoding can resume at the next line.
            (None, Fax::Group3 { .. }) if bits.find_eol() => is_damaged = true,
            (None, _) => return Ok(true),
        }
        match fax {
            Fax::Rows => bits.at = bits.at.next_multiple_of(8),
            Fax::Words => bits.at = bits.at.next_multiple_of(16),
            Fax::Group3 { .. } | Fax::Group4 => {}
        }
        std::mem::swap(&mut reference, &mut current);
    }
    Ok(is_damaged)
}

/// Bits of a strip, the highest of a byte first. Zeros follow the last byte.
struct Bits<'a> {
    bytes: &'a [u8],
    /// Number of the next bit.
    at: usize,
}

impl BitReader for Bits<'_> {
    type Error = ();

    fn peek(&self, bits: u8) -> Option<u16> {
        let byte = |i: usize| u32::from(self.bytes.get(self.at / 8 + i).copied().unwrap_or(0));
        let window = byte(0) << 16 | byte(1) << 8 | byte(2);
        let low = window >> (24 - self.at % 8 - usize::from(bits));
        Some((low & ((1 << bits) - 1)) as u16)
    }

    fn consume(&mut self, bits: u8) -> Result<(), ()> {
        self.at += usize::from(bits);
        if self.at <= 8 * self.bytes.len() { Ok(()) } else { Err(()) }
    }

    fn bits_to_byte_boundary(&self) -> u8 {
        (self.at.wrapping_neg() % 8) as u8
    }
}

impl Bits<'_> {
    /// Leading zeros of an end-of-line code; no other code has as many.
    const EOL_ZEROS: u8 = 11;

    fn is_at_end(&self) -> bool {
        self.at >= 8 * self.bytes.len()
    }

    fn take(&mut self, bits: u8) -> u16 {
        let taken = self.peek(bits).unwrap_or(0);
        self.at += usize::from(bits);
        taken
    }

    /// Skips an end-of-line code, with all zeros before its 1, if one is next.
    fn skip_eol(&mut self) {
        if self.peek(Self::EOL_ZEROS) == Some(0) {
            while !self.is_at_end() && self.take(1) == 0 {}
        }
    }

    /// Moves to the next end of line; `false` if there is no other.
    fn find_eol(&mut self) -> bool {
        while !self.is_at_end() && self.peek(Self::EOL_ZEROS) != Some(0) {
            self.at += 1;
        }
        !self.is_at_end()
    }

    /// Length of a run of pixels: the sum of codes up to the first below 64.
    fn run(&mut self, color: Color) -> Option<usize> {
        let mut sum = 0;
        loop {
            let code = match color {
                Color::White => white::decode(self)?,
                Color::Black => black::decode(self)?,
            };
            sum += usize::from(code);
            if code < 64 {
                return Some(sum);
            }
        }
    }
}

/// Adds a change of the colour at column `at`. Two changes at one column cancel out.
fn change(changes: &mut Vec<u32>, at: usize, width: usize) {
    if changes.last().is_some_and(|&last| last as usize == at) {
        changes.pop();
    } else if at < width {
        changes.push(at as u32);
    }
}

/// Decodes a row of runs, white first, to the columns at which the colour changes; `None` if a code is invalid.
fn row_1d(bits: &mut Bits<'_>, changes: &mut Vec<u32>, width: usize) -> Option<()> {
    let (mut at, mut color) = (0, Color::White);
    while at < width {
        at += bits.run(color)?;
        change(changes, at, width);
        color = !color;
    }
    Some(())
}

/// Decodes a row by its differences from the row before, of which `reference` are the changes (T.4, section 4.2).
fn row_2d(
    bits: &mut Bits<'_>,
    reference: &[u32],
    changes: &mut Vec<u32>,
    width: usize,
) -> Option<()> {
    let (mut at, mut color, mut is_start) = (0, Color::White, true);
    let mut next = 0;
    while at < width {
        // b1 is the first change of the reference after this column, to the other colour.
        let column = |number: usize| reference.get(number).map_or(width, |&column| column as usize);
        let is_before = |number| column(number) < at || column(number) == at && !is_start;
        while next > 0 && !is_before(next - 1) {
            next -= 1;
        }
        let wanted = usize::from(color == Color::Black);
        while next < reference.len() && (is_before(next) || next % 2 != wanted) {
            next += 1;
        }
        match mode::decode(bits)? {
            Mode::Pass => at = column(next + 1),
            Mode::Vertical(delta) => {
                at = column(next).checked_add_signed(isize::from(delta)).filter(|&to| to >= at)?;
                change(changes, at, width);
                color = !color;
            }
            Mode::Horizontal => {
                for _ in 0..2 {
                    at += bits.run(color)?;
                    change(changes, at, width);
                    color = !color;
                }
            }
            Mode::Extension | Mode::EOF => return None,
        }
        is_start = false;
    }
    Some(())
}

/// Sets the bits of the black pixels of a row.
fn paint(changes: &[u32], width: usize, row: &mut [u8]) {
    for black in changes.chunks(2) {
        let end = black.get(1).map_or(width, |&end| end as usize);
        for x in black[0] as usize..end {
            row[x / 8] |= 0x80 >> (x % 8);
        }
    }
}
