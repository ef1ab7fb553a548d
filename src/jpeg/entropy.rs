//! Decoder of coefficients in sequential and progressive scans (ITU-T T.81, annexes F and G).
//!
//! Damaged data are decoded as by libjpeg, so that pictures are the same in all programs: an invalid code stands for
//! the symbol 0, and a coefficient after the last one of a block replaces the last one. In both cases the reader of the
//! bits is marked as invalid.

use super::{
    ZIGZAG,
    huffman_decoder::{BitReader, HuffmanDecoder},
};

/// The part of each block that a scan contains: of coefficients `start` to `end` in zig-zag order, the bits from
/// `low_bit` up (spectral selection Ss and Se, and successive approximation Al; B.2.3).
#[derive(Clone, Copy, Debug)]
pub struct Selection {
    pub start: u32,
    pub end: u32,
    pub low_bit: u32,
}

/// State that a block takes over from the blocks before it. It is reset at each restart.
#[derive(Clone, Copy, Default)]
pub struct State {
    /// The DC coefficient of the last block of each component of the scan (PRED, F.2.1.3.1).
    pub dc: [i32; 4],
    /// Number of following blocks that have no more coefficients in this scan (EOBRUN, G.1.2.2).
    pub eob_run: u32,
}

/// The run of a symbol of size 0 that stands for 16 zeros (ZRL).
const ZERO_RUN: u32 = 15;

/// Splits the symbol `run << 4 | size` of an AC coefficient: the number of zeros before it, and its magnitude category
/// (F.1.2.2.1).
#[inline(always)]
fn run_and_size(symbol: u32) -> (u32, u32) {
    (symbol >> 4, symbol & 15)
}

/// Reads a DC coefficient, coded as the difference from the one before (F.2.2.1).
#[inline(always)]
pub fn read_dc(bits: &mut BitReader<'_>, table: &HuffmanDecoder, last: &mut i32) -> i32 {
    let mut size = bits.symbol_or_0(table);
    if size > 15 {
        bits.set_invalid();
        size = 0;
    }
    *last = last.wrapping_add(bits.signed(size));
    *last
}

/// Reads the next lower bit of a DC coefficient (G.1.2.1).
#[inline(always)]
pub fn read_dc_refinement(bits: &mut BitReader<'_>) -> i32 {
    bits.ensure(1);
    bits.take(1) as i32
}

/// Limits the zig-zag index of a coefficient to 63. An index above `end` makes the data invalid.
#[inline(always)]
fn checked(bits: &mut BitReader<'_>, k: u32, end: u32) -> u32 {
    if k > end {
        bits.set_invalid();
    }
    k.min(63)
}

/// Reads all AC coefficients of a block of a sequential scan (F.2.2.2), or their upper bits in the first scan of a
/// progressive file that contains them (G.1.2.2). `set` takes zig-zag index and value of each coefficient that is not
/// 0.
#[inline(always)]
pub fn read_ac<const PROGRESSIVE: bool>(
    bits: &mut BitReader<'_>,
    table: &HuffmanDecoder,
    selection: Selection,
    eob_run: &mut u32,
    mut set: impl FnMut(u32, i16),
) {
    if *eob_run > 0 {
        *eob_run -= 1;
        return;
    }
    let mut k = selection.start;
    while k <= selection.end {
        let (run, value) = match bits.short_coefficient(table) {
            Some(coefficient) => coefficient,
            None => match run_and_size(bits.symbol_or_0(table)) {
                (ZERO_RUN, 0) => {
                    k += 16;
                    continue;
                }
                (run, 0) => {
                    if PROGRESSIVE {
                        *eob_run = (1 << run) - 1 + bits.take(run);
                    }
                    return;
                }
                (run, size) => (run, bits.signed(size)),
            },
        };
        k += run;
        set(checked(bits, k, selection.end), (value << selection.low_bit) as i16);
        k += 1;
    }
}

/// Reads the next lower bit of AC coefficients (G.1.2.3): a correction bit for each coefficient that is not 0 yet, and
/// coefficients that become 1 or -1 in this bit. `nonzero` is a mask of the coefficients that are not 0, in
/// zig-zag order.
#[inline(always)]
pub fn read_ac_refinement(
    bits: &mut BitReader<'_>,
    table: &HuffmanDecoder,
    selection: Selection,
    eob_run: &mut u32,
    values: &mut [i16; 64],
    nonzero: &mut u64,
) {
    let Selection { start, end, low_bit } = selection;
    let selected = !0u64 >> (63 - end);
    let mut k = start;
    if *eob_run == 0 {
        while k <= end {
            let (run, size) = run_and_size(bits.symbol_or_0(table));
            let mut fresh = 0;
            match (size, run) {
                (0, ZERO_RUN) => {}
                (0, _) => {
                    *eob_run = (1 << run) + bits.take(run);
                    break;
                }
                _ => fresh = (2 * bits.take(1) as i16 - 1) << low_bit,
            }
            if size > 1 {
                bits.set_invalid();
            }
            // The new coefficient follows `run` zeros; coefficients between these that are not 0 are corrected.
            let rest = selected & (!0 << k);
            let mut zeros = !*nonzero & rest;
            for _ in 0..run {
                zeros &= zeros.wrapping_sub(1);
            }
            let target = zeros.trailing_zeros();
            let before = 1u64.checked_shl(target).unwrap_or(0).wrapping_sub(1);
            correct(bits, *nonzero & rest & before, low_bit, values);
            // If the block has fewer zeros, only a run without a coefficient after it is valid.
            let target = target.min(end + 1);
            if fresh != 0 {
                let k = checked(bits, target, end);
                values[usize::from(ZIGZAG[k as usize])] = fresh;
                *nonzero |= 1 << k;
            }
            k = target + 1;
        }
    }
    if *eob_run > 0 {
        if k <= end {
            correct(bits, *nonzero & selected & (!0 << k), low_bit, values);
        }
        *eob_run -= 1;
    }
}

/// Reads a correction bit for each coefficient in `mask` (zig-zag order), and adds it to the magnitude.
#[inline(always)]
fn correct(bits: &mut BitReader<'_>, mut mask: u64, low_bit: u32, values: &mut [i16; 64]) {
    while mask != 0 {
        bits.ensure(32);
        let count = mask.count_ones().min(32);
        let mut corrections = bits.take(count) << (32 - count);
        for _ in 0..count {
            let value = &mut values[usize::from(ZIGZAG[mask.trailing_zeros() as usize & 63])];
            let step = (*value >> 15 | 1) << low_bit;
            // Damaged files correct a bit twice, the second time without an effect.
            let is_unset = !(*value >> low_bit) & 1;
            *value = value.wrapping_add(step & -((corrections >> 31) as i16 & is_unset));
            corrections <<= 1;
            mask &= mask - 1;
        }
    }
}
