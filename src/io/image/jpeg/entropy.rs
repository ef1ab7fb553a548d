//! Coefficients from Huffman-coded data of sequential and progressive scans (ITU-T T.81, annexes F and
//! G).

use super::{
    block::BlockMut,
    huffman::{BitReader, Huffman},
};
use crate::data::jpeg::ZIGZAG;

/// What a scan has of each block's coefficients: bits from `low_bit` up of those from `start` to `end`
/// in zig-zag order (spectral selection Ss and Se, and successive approximation Al; B.2.3).
#[derive(Clone, Copy, Debug)]
pub struct Selection {
    pub start: u32,
    pub end: u32,
    pub low_bit: u32,
}

/// What decoding a block takes from the blocks before it; reset at every restart.
#[derive(Clone, Copy, Default)]
pub struct State {
    /// The last DC coefficient of each component in the scan (PRED, F.2.1.3.1).
    pub dc: [i32; 4],
    /// Blocks to come that have no more coefficients in this scan (EOBRUN, G.1.2.2).
    pub eob_run: u32,
}

/// Symbol `run << 4 | size` of an AC coefficient: `run` zeros before it, and its magnitude category
/// (F.1.2.2.1).
#[inline(always)]
fn run_and_size(symbol: u32) -> (u32, u32) {
    (symbol >> 4, symbol & 15)
}

/// A run of 16 zeros without a coefficient behind it (ZRL).
const ZERO_RUN: u32 = 15;

/// A DC coefficient from its difference to the one before (F.2.2.1).
#[inline(always)]
pub fn dc(bits: &mut BitReader<'_>, table: &Huffman, last: &mut i32) -> Option<i32> {
    let size = bits.symbol(table).filter(|&size| size <= 15)?;
    *last = last.wrapping_add(bits.signed(size));
    Some(*last)
}

/// The next lower bit of a DC coefficient (G.1.2.1).
#[inline(always)]
pub fn dc_refinement(bits: &mut BitReader<'_>) -> i32 {
    bits.ensure(1);
    bits.take(1) as i32
}

/// A coefficient that is not 0, and the zeros before it; or the symbol of a code that stands for zeros alone.
enum Coded {
    Coefficient { run: u32, value: i32 },
    Zeros { run: u32 },
}

/// The next code of AC coefficients, with its magnitude (F.2.2.2).
#[inline(always)]
fn coded(bits: &mut BitReader<'_>, table: &Huffman) -> Option<Coded> {
    if let Some((run, value)) = bits.short_coefficient(table) {
        return Some(Coded::Coefficient { run, value });
    }
    Some(match run_and_size(bits.symbol(table)?) {
        (run, 0) => Coded::Zeros { run },
        (run, size) => Coded::Coefficient { run, value: bits.signed(size) },
    })
}

/// All AC coefficients of a block in a sequential scan (F.2.2.2): `set` takes the place in coded order and the value of
/// those that are not 0.
#[inline(always)]
pub fn ac_sequential(
    bits: &mut BitReader<'_>,
    table: &Huffman,
    mut set: impl FnMut(u32, i16),
) -> Option<()> {
    let mut place = 1;
    while place < 64 {
        match coded(bits, table)? {
            Coded::Coefficient { run, value } => {
                place += run;
                if place > 63 {
                    return None;
                }
                set(place, value as i16);
                place += 1;
            }
            Coded::Zeros { run: ZERO_RUN } => place += 16,
            Coded::Zeros { .. } => break,
        }
    }
    Some(())
}

/// The upper bits of some AC coefficients: the first scan that has them (G.1.2.2). `set` as in [`ac_sequential`].
#[inline(always)]
pub fn ac_first(
    bits: &mut BitReader<'_>,
    table: &Huffman,
    selection: Selection,
    eob_run: &mut u32,
    mut set: impl FnMut(u32, i16),
) -> Option<()> {
    if *eob_run > 0 {
        *eob_run -= 1;
        return Some(());
    }
    let mut place = selection.start;
    while place <= selection.end {
        match coded(bits, table)? {
            Coded::Coefficient { run, value } => {
                place += run;
                if place > selection.end {
                    return None;
                }
                set(place, (value << selection.low_bit) as i16);
                place += 1;
            }
            Coded::Zeros { run: ZERO_RUN } => place += 16,
            Coded::Zeros { run } => {
                *eob_run = (1 << run) - 1 + bits.take(run);
                break;
            }
        }
    }
    Some(())
}

/// The next lower bit of some AC coefficients (G.1.2.3): a correction bit for each that is not 0 yet,
/// and those that become 1 or -1 in this bit.
#[inline(always)]
pub fn ac_refinement(
    bits: &mut BitReader<'_>,
    table: &Huffman,
    selection: Selection,
    eob_run: &mut u32,
    block: BlockMut<'_>,
) -> Option<()> {
    let selected = !0u64 >> (63 - selection.end);
    let mut place = selection.start;
    if *eob_run == 0 {
        while place <= selection.end {
            let (run, size) = run_and_size(bits.symbol(table)?);
            let mut fresh = 0;
            match (size, run) {
                (0, ZERO_RUN) => {}
                (0, _) => {
                    *eob_run = (1 << run) + bits.take(run);
                    break;
                }
                (1, _) => fresh = (2 * bits.take(1) as i16 - 1) << selection.low_bit,
                _ => return None,
            }
            // The fresh coefficient stands behind `run` zeros; what is not 0 in between is corrected.
            let mut zeros = !*block.nonzero & selected & (!0 << place);
            for _ in 0..run {
                zeros &= zeros.wrapping_sub(1);
            }
            let target = zeros.trailing_zeros();
            let before = 1u64.checked_shl(target).unwrap_or(0).wrapping_sub(1);
            correct(
                bits,
                *block.nonzero & selected & (!0 << place) & before,
                selection.low_bit,
                block.values,
            );
            if target > 63 {
                // Too few zeros: legal only for a run without a coefficient behind it.
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
    if *eob_run > 0 {
        if place <= selection.end {
            correct(
                bits,
                *block.nonzero & selected & (!0 << place),
                selection.low_bit,
                block.values,
            );
        }
        *eob_run -= 1;
    }
    Some(())
}

/// Reads a correction bit for each of `places` in zig-zag order, and adds it to the coefficient's
/// magnitude.
#[inline(always)]
fn correct(bits: &mut BitReader<'_>, mut places: u64, low_bit: u32, values: &mut [i16; 64]) {
    while places != 0 {
        bits.ensure(32);
        let count = places.count_ones().min(32);
        let mut corrections = bits.take(count) << (32 - count);
        for _ in 0..count {
            let value = &mut values[usize::from(ZIGZAG[places.trailing_zeros() as usize & 63])];
            let step = (*value >> 15 | 1) << low_bit;
            *value = value.wrapping_add(step & -((corrections >> 31) as i16));
            corrections <<= 1;
            places &= places - 1;
        }
    }
}
