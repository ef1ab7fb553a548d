//! Colour tables (Palette Color Lookup Table; PS3.3, C.7.6.3.1.5 and C.7.9), as grey: (r + g + b) / 3.

use super::attributes::{Attributes, PALETTE, PALETTE_DATA, PALETTE_SEGMENTS, SIGNED};
use crate::io::volume::header::{BoxError, Endian};

const MISSING: &str = "the tables of a palette are missing or invalid";

/// Number of entries, and the sample of the first one.
fn descriptor(top: &Attributes) -> Result<(usize, i64), BoxError> {
    let [entries, first, _] = top.vector(PALETTE).ok_or(MISSING)?;
    let is_wrapped = top.number(SIGNED) == Some(1.0) && first > 32767.0;
    let first = if is_wrapped { first - 65536.0 } else { first };
    // Stored as SS, counts above 32,767 are negative.
    let entries = entries.trunc().rem_euclid(65536.0) as usize;
    Ok((if entries == 0 { 1 << 16 } else { entries }, first as i64))
}

/// Bits of the colours: 8 or 16.
pub fn bits(top: &Attributes) -> Result<u32, BoxError> {
    let (entries, _) = descriptor(top)?;
    let is_wide = match top.bytes(PALETTE_DATA[0]) {
        // Eight bits may be stored as words.
        Some(red) => red.len() >= 2 * entries,
        None => top.numbers(PALETTE).and_then(|numbers| numbers.get(2)) == Some(&16.0),
    };
    Ok(if is_wide { 16 } else { 8 })
}

/// The grey values of the entries, and the sample of the first one.
pub fn grey(top: &Attributes, endian: Endian) -> Result<(Vec<u16>, i64), BoxError> {
    let (entries, first) = descriptor(top)?;
    let is_wide = bits(top)? == 16;
    let table = |color: usize| -> Result<Vec<u16>, BoxError> {
        let words = |bytes: &[u8]| match (is_wide, endian) {
            (false, _) => bytes.iter().map(|&byte| byte.into()).collect(),
            (_, Endian::Little) => as_words(bytes, u16::from_le_bytes),
            (_, Endian::Big) => as_words(bytes, u16::from_be_bytes),
        };
        let table = match (top.bytes(PALETTE_DATA[color]), top.bytes(PALETTE_SEGMENTS[color])) {
            (Some(bytes), _) => words(bytes),
            (None, Some(bytes)) => {
                let (data, mut out) = (words(bytes), Vec::new());
                expand(&data, 0, usize::MAX, entries, is_wide, &mut out).ok_or(MISSING)?;
                out
            }
            (None, None) => Vec::new(),
        };
        if table.len() < entries { Err(MISSING.into()) } else { Ok(table) }
    };
    let [red, green, blue] = [table(0)?, table(1)?, table(2)?];
    let mean = |i: usize| {
        let sum = u32::from(red[i]) + u32::from(green[i]) + u32::from(blue[i]);
        ((sum + 1) / 3) as u16
    };
    Ok(((0..entries).map(mean).collect(), first))
}

fn as_words(bytes: &[u8], word: fn([u8; 2]) -> u16) -> Vec<u16> {
    bytes.as_chunks().0.iter().map(|bytes| word(*bytes)).collect()
}

/// Expands up to `segments` segments of `data` from `at` on to at most `entries` entries (PS3.3, C.7.9.2).
fn expand(
    data: &[u16],
    mut at: usize,
    segments: usize,
    entries: usize,
    is_wide: bool,
    out: &mut Vec<u16>,
) -> Option<()> {
    for _ in 0..segments {
        if out.len() >= entries || at + 1 >= data.len() {
            break;
        }
        let (kind, count) = (data[at], usize::from(data[at + 1]));
        at += 2;
        if count == 0 {
            return None;
        }
        match kind {
            0 => {
                out.extend(data.get(at..at + count)?);
                at += count;
            }
            // A line from the last value to the next one.
            1 => {
                let (from, to) = (f64::from(*out.last()?), f64::from(*data.get(at)?));
                let step = (to - from) / count as f64;
                out.extend((1..=count).map(|i| (from + step * i as f64).round_ties_even() as u16));
                at += 1;
            }
            // Segments that are stored at an offset in bytes.
            2 if segments == usize::MAX => {
                let unit = if is_wide { 2 } else { 4 };
                let digits = data.get(at..at + unit)?;
                let base = if is_wide { 1 << 16 } else { 1 << 8 };
                let offset =
                    digits.iter().rev().fold(0, |sum, &digit| sum * base + usize::from(digit));
                let from = if is_wide { offset / 2 } else { offset };
                expand(data, from, count, entries, is_wide, out)?;
                at += unit;
            }
            _ => return None,
        }
    }
    Some(())
}
