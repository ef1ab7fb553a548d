//! Scans of lossy JPEG of 12 bits (ITU-T T.81, process 4: extended sequential, Huffman coded), written by old scanners
//! and angiographs: as 8-bit JPEG, but for the range of samples. Pictures have one component. Samples are those of
//! libjpeg's transform for 12 bits, which DCMTK, GDCM and with it ITK use.

use super::{
    jpeg::{Picture, segments},
    pixels::Kind,
};
use crate::{
    data::jpeg::{
        ZIGZAG,
        inverse::{dct, dct_12_bits},
    },
    io::{
        image::jpeg::{BitReader, Huffman},
        volume::format::BoxError,
    },
};

/// Decodes the scan behind `header` into samples of `kind`, in the machine's byte order.
///
/// # Errors
/// When the scan is broken, or has several components.
pub fn scan(
    picture: &Picture,
    header: &[u8],
    data: &[u8],
    kind: &Kind,
    stored: &mut [u8],
) -> Result<(), BoxError> {
    if kind.samples != 1 || kind.allocated != 16 {
        return Err("JPEG with loss of 12 bits is read in grey, in 16 bits, alone".into());
    }
    let &[1, _, tables, ..] = header else { return Err("it ends within a header".into()) };
    let table = |all: &[Option<Huffman>; 4], number: u8| {
        all.get(usize::from(number)).cloned().flatten().ok_or("a Huffman table is missing")
    };
    let (dc, ac) = (table(&picture.tables, tables >> 4)?, table(&picture.ac_tables, tables & 15)?);
    let quantization = picture.quantization.get(usize::from(picture.components[0]));
    let quantization = quantization.copied().flatten().ok_or("a quantization table is missing")?;
    let [across, down] = [kind.columns, kind.rows].map(|side| side.div_ceil(8));
    let each = if picture.restart == 0 { across * down } else { picture.restart };
    let mut segments = segments(data).into_iter();
    let transform = if picture.precision > 8 { dct_12_bits } else { dct };
    let most = (1 << picture.precision) - 1;
    for first in (0..across * down).step_by(each) {
        let segment = segments.next().ok_or("its data end early")?;
        let mut bits = BitReader::new(&segment);
        let mut last = 0i32;
        for number in first..(first + each).min(across * down) {
            let coefficients = block(&mut bits, [&dc, &ac], &mut last, &quantization)
                .ok_or("it holds a code that is none")?;
            let samples = transform(coefficients);
            let [left, top] = [number % across * 8, number / across * 8];
            for (y, row) in samples.iter().enumerate().take(kind.rows - top) {
                let start = 2 * ((top + y) * kind.columns + left);
                let out = stored[start..].chunks_exact_mut(2);
                for (out, &sample) in out.zip(row).take(kind.columns - left) {
                    let value = sample.saturating_add((most + 1) / 2).clamp(0, most);
                    out.copy_from_slice(&(value as u16).to_ne_bytes());
                }
            }
        }
        if bits.is_past_end() {
            return Err("its data end early".into());
        }
    }
    Ok(())
}

/// Decodes the coefficients of a block (F.2.2): in row order, times the entries of the quantization table `steps`.
/// `None` for an invalid code. `last` is the DC coefficient of the block before, not yet multiplied.
fn block(
    bits: &mut BitReader<'_>,
    [dc, ac]: [&Huffman; 2],
    last: &mut i32,
    steps: &[u16; 64],
) -> Option<[[i32; 8]; 8]> {
    let mut coefficients = [0; 64];
    let size = bits.symbol(dc).filter(|&size| size <= 15)?;
    *last = last.wrapping_add(bits.signed(size));
    coefficients[0] = last.wrapping_mul(steps[0].into());
    let mut at = 1;
    while at < 64 {
        let symbol = bits.symbol(ac)?;
        let (zeros, size) = (symbol as usize >> 4, symbol & 15);
        if size == 0 && zeros < 15 {
            break;
        }
        at += zeros;
        let place = usize::from(*ZIGZAG.get(at)?);
        coefficients[place] = bits.signed(size).wrapping_mul(steps[place].into());
        at += 1;
    }
    let (rows, _) = coefficients.as_chunks::<8>();
    Some(std::array::from_fn(|y| rows[y]))
}
