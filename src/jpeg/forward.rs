//! From pixels to quantized coefficients on the CPU, with libjpeg's results: conversion to YCbCr in 16-bit fixed point
//! (T.871, 7), chroma averaged over the pixels that share a sample, the forward DCT, and division with rounding (T.81,
//! A.3.4).

use std::ops::Range;

use pulp::Arch;

#[cfg(target_arch = "x86_64")]
use super::x86;
use super::{
    Frame, SparseCoefficients,
    dct::{self, fixed_16},
};
use crate::util::{error::Result, parallel::Parallel, simd};

/// Computes the coefficients of a picture on all cores. `pixels` are grey or RGB, rows from the top.
pub fn coefficients(frame: &Frame, pixels: &[u8]) -> Result<SparseCoefficients> {
    /// MCU rows that a thread takes at a time.
    const BAND: usize = 8;
    let mcus = frame.mcus()[1];
    let bands = (0..mcus).step_by(BAND).map(|start| start..mcus.min(start + BAND));
    let parts = bands.clone().par_map(|rows| band(frame, pixels, rows));
    let mut all = SparseCoefficients::zeros(frame, 0)?;
    for (rows, part) in bands.zip(parts) {
        all.set_band(rows.start, &mut part?)?;
    }
    Ok(all)
}

/// Computes the coefficients of the MCU rows `rows`. `pixels` are those of the whole picture, grey or RGB, rows from
/// the top.
///
/// To the right of the picture, samples repeat its last column. Below the picture, chroma rows repeat the last one that
/// has a pixel, and luma rows the last row of the picture.
pub fn band(frame: &Frame, pixels: &[u8], rows: Range<usize>) -> Result<SparseCoefficients> {
    let mut sparse = SparseCoefficients::zeros(&frame.band(rows.clone()), 0)?;
    let quantizers: Vec<Quantizer> =
        frame.components.iter().map(|component| Quantizer::new(&component.steps)).collect();
    let firsts: Vec<usize> = (0..quantizers.len()).map(|c| sparse.frame.first_block(c)).collect();
    let mut mcu_row = McuRow::new(frame);
    let arch = simd::arch();
    let mut blocks = vec![[0; 64]; mcu_row.strides.iter().max().map_or(0, |stride| stride / 8)];
    for (number, row) in rows.enumerate() {
        mcu_row.fill(frame, pixels, row);
        for (c, quantizer) in quantizers.iter().enumerate() {
            let ([across, _], [_, down]) = (frame.blocks(c), frame.components[c].sampling);
            let stride = mcu_row.strides[c];
            for (y, samples) in mcu_row.planes[c].chunks_exact(8 * stride).enumerate() {
                quantizer.transform(arch, samples, stride, &mut blocks[..stride / 8]);
                let first = firsts[c] + (number * down + y) * across;
                sparse.set(first, &blocks[..across])?;
            }
        }
    }
    Ok(sparse)
}

/// The samples of one row of MCUs.
struct McuRow {
    /// Eight rows of samples for each row of blocks of each component.
    planes: Vec<Vec<u8>>,
    /// Distance between rows in each plane, in samples: the width of an even number of blocks.
    strides: Vec<usize>,
    /// Chroma at full resolution, of the pixel rows that share one row of samples.
    chroma: [Vec<u8>; 2],
}

impl McuRow {
    fn new(frame: &Frame) -> Self {
        let components = 0..frame.components.len();
        let stride = |c: usize| 8 * frame.blocks(c)[0].next_multiple_of(2);
        let strides: Vec<usize> = components.clone().map(stride).collect();
        let plane = |c: usize| vec![0; 8 * frame.components[c].sampling[1] * strides[c]];
        // Chroma is averaged from rows that are as long as those of luma.
        let chroma = || vec![0; frame.max_sampling()[1] * strides.iter().max().unwrap_or(&0)];
        Self { planes: components.map(plane).collect(), chroma: [chroma(), chroma()], strides }
    }

    /// Computes the samples of row `number` of MCUs.
    fn fill(&mut self, frame: &Frame, pixels: &[u8], number: usize) {
        let ([width, height], [across, down]) = (frame.size, frame.max_sampling());
        let row_bytes = width * frame.colour.channels();
        let row = |y: usize| &pixels[y.min(height - 1) * row_bytes..][..row_bytes];
        let Self { planes, strides, chroma } = self;
        let [luma, others @ ..] = &mut planes[..] else { return };
        let (stride, first) = (strides[0], 8 * down * number);
        for (group, luma) in luma.chunks_exact_mut(down * stride).enumerate() {
            for (k, luma) in luma.chunks_exact_mut(stride).enumerate() {
                let pixels = row(first + down * group + k);
                match others {
                    [] => luma[..width].copy_from_slice(pixels),
                    _ => {
                        let [cb, cr] = chroma.each_mut().map(|c| &mut c[k * stride..][..stride]);
                        convert(
                            pixels,
                            [&mut *luma, &mut *cb, &mut *cr].map(|row| &mut row[..width]),
                        );
                        repeat_last(cb, width);
                        repeat_last(cr, width);
                    }
                }
                repeat_last(luma, width);
            }
            for (plane, (chroma, &to)) in others.iter_mut().zip(chroma.iter().zip(&strides[1..])) {
                let (done, rest) = plane.split_at_mut(group * to);
                // Below the picture there are no pixels to average.
                if first + down * group >= height && group > 0 {
                    rest[..to].copy_from_slice(&done[done.len() - to..]);
                    continue;
                }
                match [across, down] {
                    [1, 1] => rest[..to].copy_from_slice(&chroma[..to]),
                    _ => average(&chroma[..stride], &chroma[stride..][..stride], &mut rest[..to]),
                }
            }
        }
    }
}

fn repeat_last(row: &mut [u8], width: usize) {
    let last = row[width - 1];
    row[width..].fill(last);
}

/// Converts RGB pixels to Y, Cb and Cr (T.871, 7), with libjpeg's constants and rounding.
fn convert(rgb: &[u8], [y, cb, cr]: [&mut [u8]; 3]) {
    const HALF: i32 = 1 << 15;
    const CENTRE: i32 = (128 << 16) + HALF - 1;
    simd::vectorize(
        #[inline(always)]
        || {
            let planes = y.iter_mut().zip(&mut *cb).zip(&mut *cr);
            for (&[r, g, b], ((y, cb), cr)) in rgb.as_chunks::<3>().0.iter().zip(planes) {
                let [r, g, b] = [i32::from(r), i32::from(g), i32::from(b)];
                let luma = fixed_16(0.299) * r + fixed_16(0.587) * g + fixed_16(0.114) * b;
                let blue = (b << 15) - fixed_16(0.16874) * r - fixed_16(0.33126) * g;
                let red = (r << 15) - fixed_16(0.41869) * g - fixed_16(0.08131) * b;
                *y = ((luma + HALF) >> 16) as u8;
                *cb = ((blue + CENTRE) >> 16) as u8;
                *cr = ((red + CENTRE) >> 16) as u8;
            }
        },
    );
}

/// Averages 2 x 2 samples. As in libjpeg, 1 and 2 are added in turn before the division by 4.
fn average(above: &[u8], below: &[u8], to: &mut [u8]) {
    simd::vectorize(
        #[inline(always)]
        || {
            let (above, below) = (above.as_chunks::<4>().0, below.as_chunks::<4>().0);
            let to = to.as_chunks_mut::<2>().0;
            for (to, (a, b)) in to.iter_mut().zip(above.iter().zip(below)) {
                let [a0, a1, a2, a3] = a.map(u16::from);
                let [b0, b1, b2, b3] = b.map(u16::from);
                *to = [((a0 + a1 + b0 + b1 + 1) >> 2) as u8, ((a2 + a3 + b2 + b3 + 2) >> 2) as u8];
            }
        },
    );
}

/// The DCT and the division by the quantization steps of one table.
struct Quantizer {
    steps: [u16; 64],
    #[cfg(target_arch = "x86_64")]
    reciprocals: x86::Reciprocals,
}

impl Quantizer {
    /// For steps from 1 to 255, row by row.
    fn new(steps: &[u16; 64]) -> Self {
        Self {
            steps: *steps,
            #[cfg(target_arch = "x86_64")]
            reciprocals: x86::Reciprocals::new(steps),
        }
    }

    /// Computes a row of an even number of blocks from eight rows of samples, `stride` apart.
    fn transform(&self, arch: Arch, samples: &[u8], stride: usize, blocks: &mut [[i16; 64]]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = x86::avx2(arch) {
            return pulp::Simd::vectorize(
                simd,
                #[inline(always)]
                || {
                    for (i, pair) in blocks.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                        x86::forward(simd, &samples[16 * i..], stride, &self.reciprocals, pair);
                    }
                },
            );
        }
        let _ = arch;
        for (i, block) in blocks.iter_mut().enumerate() {
            let mut values = [[0; 8]; 8];
            for (value, y) in values.iter_mut().zip(0..) {
                let samples: &[u8; 8] =
                    samples[y * stride + 8 * i..].first_chunk().expect("a block");
                *value = samples.map(|sample| i32::from(sample) - 128);
            }
            let results = dct::forward(values);
            for (value, (&result, &step)) in
                block.iter_mut().zip(results.as_flattened().iter().zip(&self.steps))
            {
                let divisor = 8 * i32::from(step);
                *value = (result.signum() * ((result.abs() + divisor / 2) / divisor)) as i16;
            }
        }
    }
}
