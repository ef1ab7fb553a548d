//! Scans of lossy JPEG of 12 bits (ITU-T T.81, process 4: extended sequential, Huffman coded), written by old scanners
//! and angiographs: as 8-bit JPEG, but for the range of samples. Pictures have one component.

use super::{
    jpeg::{Picture, segments},
    pixels::Kind,
};
use crate::{
    data::jpeg::ZIGZAG,
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
    let basis = basis();
    let most = (1 << picture.precision) - 1;
    for first in (0..across * down).step_by(each) {
        let segment = segments.next().ok_or("its data end early")?;
        let mut bits = BitReader::new(&segment);
        let mut last = 0i32;
        for number in first..(first + each).min(across * down) {
            let coefficients = block(&mut bits, [&dc, &ac], &mut last, &quantization)
                .ok_or("it holds a code that is none")?;
            let samples = transformed(&coefficients, &basis);
            let [left, top] = [number % across * 8, number / across * 8];
            for (y, row) in samples.chunks(8).enumerate().take(kind.rows - top) {
                let start = 2 * ((top + y) * kind.columns + left);
                let out = stored[start..].chunks_exact_mut(2);
                for (out, &sample) in out.zip(row).take(kind.columns - left) {
                    let value = (sample.round() as i32 + (most + 1) / 2).clamp(0, most);
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
) -> Option<[f32; 64]> {
    let mut coefficients = [0.0; 64];
    let size = bits.symbol(dc).filter(|&size| size <= 15)?;
    *last = last.wrapping_add(bits.signed(size));
    coefficients[0] = *last as f32 * f32::from(steps[0]);
    let mut at = 1;
    while at < 64 {
        let symbol = bits.symbol(ac)?;
        let (zeros, size) = (symbol as usize >> 4, symbol & 15);
        if size == 0 && zeros < 15 {
            break;
        }
        at += zeros;
        let place = usize::from(*ZIGZAG.get(at)?);
        coefficients[place] = bits.signed(size) as f32 * f32::from(steps[place]);
        at += 1;
    }
    Some(coefficients)
}

/// `c(u) cos((2 x + 1) u pi / 16) / 2`, by frequency u and sample x, where c(0) is `sqrt(1/2)` and c(u) is 1 (A.3.3).
fn basis() -> [[f32; 8]; 8] {
    std::array::from_fn(|u| {
        std::array::from_fn(|x| {
            let angle = (2 * x + 1) as f64 * u as f64 * std::f64::consts::PI / 16.0;
            let scale = if u == 0 { 0.5f64.sqrt() } else { 1.0 };
            (angle.cos() * scale / 2.0) as f32
        })
    })
}

/// The inverse discrete cosine transform of 8x8 coefficients (A.3.3), along rows, then along columns.
fn transformed(coefficients: &[f32; 64], basis: &[[f32; 8]; 8]) -> [f32; 64] {
    let mut rows = [0.0; 64];
    for (row, out) in coefficients.as_chunks::<8>().0.iter().zip(rows.as_chunks_mut::<8>().0) {
        for (&coefficient, wave) in row.iter().zip(basis).filter(|(c, _)| **c != 0.0) {
            out.iter_mut().zip(wave).for_each(|(out, wave)| *out += coefficient * wave);
        }
    }
    let mut samples = [0.0; 64];
    for (row, wave) in rows.as_chunks::<8>().0.iter().zip(basis) {
        for (out, &factor) in samples.as_chunks_mut::<8>().0.iter_mut().zip(wave) {
            out.iter_mut().zip(row).for_each(|(out, value)| *out += factor * value);
        }
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transforms_are_those_of_the_standard() {
        let coefficients: [f32; 64] = std::array::from_fn(|i| ((i * 37) % 19) as f32 - 9.0);
        let found = transformed(&coefficients, &basis());
        for y in 0..8 {
            for x in 0..8 {
                // A.3.3, written out.
                let mut sum = 0.0;
                for v in 0..8 {
                    for u in 0..8 {
                        let c = |n: usize| if n == 0 { 0.5f64.sqrt() } else { 1.0 };
                        let wave = |n: usize, at: usize| {
                            ((2 * at + 1) as f64 * n as f64 * std::f64::consts::PI / 16.0).cos()
                        };
                        let s = f64::from(coefficients[8 * v + u]);
                        sum += c(u) * c(v) * s * wave(u, x) * wave(v, y) / 4.0;
                    }
                }
                assert!((f64::from(found[8 * y + x]) - sum).abs() < 1e-4, "{x} {y}");
            }
        }
    }
}
