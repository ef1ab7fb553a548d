//! From quantized coefficients to pixels on the CPU, with libjpeg's results.
//!
//! ```text
//! coefficients -- inverse DCT --> samples of a component -- upsample --> full resolution -- convert --> pixels
//! ```

use std::{borrow::Cow, ops::Range};

use pulp::Arch;

#[cfg(target_arch = "x86_64")]
use super::x86;
use super::{
    ColourModel, Frame, Upsampling,
    dct::{self, fixed_16},
};
use crate::util::{
    error::Result,
    memory::{self, raise},
    simd,
};

/// Turns bands of MCU rows into rows of pixels.
#[derive(Debug)]
pub struct Renderer<'a> {
    frame: &'a Frame,
    /// The frame of the pixels, which are `shrink` times fewer along each axis.
    pub output: Frame,
    shrink: usize,
    dequantizers: Vec<Dequantizer>,
    upsampling: Vec<Upsampling>,
}

/// Rows of MCUs in a band.
const BAND: usize = 8;

impl<'a> Renderer<'a> {
    /// A renderer of pictures of `frame`, `shrink` times smaller.
    pub fn new(frame: &'a Frame, shrink: usize) -> Result<Self> {
        let dequantizers = frame.components.iter().map(|c| Dequantizer::new(&c.steps)).collect();
        let output = frame.shrunken(shrink);
        let upsampling = (0..frame.components.len()).map(|c| output.upsampling(c));
        let upsampling = upsampling.collect::<Result<_>>()?;
        Ok(Self { frame, output, shrink, dequantizers, upsampling })
    }

    /// Number of components.
    pub fn components(&self) -> usize {
        self.upsampling.len()
    }

    /// Number of bands.
    pub fn bands(&self) -> usize {
        self.frame.mcus()[1].div_ceil(BAND)
    }

    /// Bytes of the pixels of a band; the last band may have fewer.
    pub fn band_bytes(&self) -> usize {
        self.output.size[0] * self.frame.colour.channels() * self.band_rows()
    }

    /// Rows of pixels of a band.
    fn band_rows(&self) -> usize {
        8 * BAND * self.frame.max_sampling()[1] / self.shrink
    }

    /// The last row of MCUs on which band `number` depends, counted from 0 and not limited to the picture.
    pub fn last_row(&self, number: usize) -> usize {
        let beyond = self.upsampling.iter().any(|upsampling| upsampling.needs_neighbours());
        (number + 1) * BAND - usize::from(!beyond)
    }

    /// The rows of blocks of component `c` on which band `number` depends.
    pub fn rows(&self, c: usize, number: usize) -> Range<usize> {
        let beyond = usize::from(self.upsampling[c].needs_neighbours());
        let [_, all] = self.frame.blocks(c);
        let rows = BAND * self.frame.components[c].sampling[1];
        let start = (number * rows).saturating_sub(beyond);
        start.min(all)..((number + 1) * rows + beyond).min(all)
    }

    /// Computes the pixels of band `number`. `blocks(c, y)` returns row `y` of the blocks of component `c`, each in
    /// row-major order.
    pub fn render<'b>(
        &self,
        blocks: impl Fn(usize, usize) -> Cow<'b, [[i16; 64]]>,
        number: usize,
        pixels: &mut [u8],
    ) {
        let Self { output: frame, upsampling, .. } = self;
        let [width, _] = frame.size;
        let planes: Vec<Plane> =
            (0..upsampling.len()).map(|c| self.plane(&blocks, c, number)).collect();
        // A row is written in steps of at most four pixels.
        let mut rows = vec![vec![0; width + 3]; planes.len()];
        let mut sums = vec![0; width + 2];
        let top = number * self.band_rows();
        for (y, pixels) in pixels.chunks_exact_mut(width * frame.colour.channels()).enumerate() {
            let y = top + y;
            for (plane, row) in planes.iter().zip(&mut rows) {
                plane.upsample(y, &mut sums, row);
            }
            let row = |c: usize| match upsampling[c] {
                Upsampling::Full => planes[c].row(y as isize),
                _ => &rows[c][..width],
            };
            match frame.colour {
                ColourModel::Grey => pixels.copy_from_slice(row(0)),
                ColourModel::Rgb => interleave(pixels, [0, 1, 2].map(row)),
                ColourModel::Raw => interleave(pixels, [0, 1, 2, 3].map(row)),
                ColourModel::YCbCr => ycc_to_rgb([0, 1, 2].map(row), pixels),
                ColourModel::Cmyk => {
                    interleave(pixels, [0, 1, 2].map(row));
                    darken(pixels, row(3));
                }
                ColourModel::Ycck => {
                    ycc_to_rgb([0, 1, 2].map(row), pixels);
                    // T.871's sums give inverted cyan, magenta and yellow.
                    pixels.iter_mut().for_each(|value| *value = 255 - *value);
                    darken(pixels, row(3));
                }
            }
        }
    }

    /// Computes the samples of component `c` on which band `number` depends.
    fn plane<'b>(
        &self,
        blocks: impl Fn(usize, usize) -> Cow<'b, [[i16; 64]]>,
        c: usize,
        number: usize,
    ) -> Plane {
        let (frame, upsampling, arch) = (self.frame, self.upsampling[c], simd::arch());
        let ([across, _], range) = (frame.blocks(c), self.rows(c, number));
        // Numbers of samples across and down that become one.
        let [own, reduced] = [frame, &self.output].map(|frame| frame.components[c].sampling);
        let [dx, dy] = [0, 1].map(|axis| self.shrink * own[axis] / reduced[axis]);
        let (stride, rows, full) = (8 * across / dx, 8 / dy, 8 * across);
        let mut values = memory::zeros(range.len() * rows * stride).unwrap_or_else(raise);
        let mut whole = vec![0; if self.shrink > 1 { 8 * full } else { 0 }];
        for (y, samples) in range.clone().zip(values.chunks_exact_mut(rows * stride)) {
            if dx * dy == 1 {
                self.dequantizers[c].samples(arch, &blocks(c, y), samples, stride);
                continue;
            }
            self.dequantizers[c].samples(arch, &blocks(c, y), &mut whole, full);
            match dx {
                1 => average::<1>(&whole, full, dy, samples),
                2 => average::<2>(&whole, full, dy, samples),
                4 => average::<4>(&whole, full, dy, samples),
                _ => average::<8>(&whole, full, dy, samples),
            }
        }
        let [width, height] = self.output.samples(c);
        Plane { values, stride, first: rows * range.start, last: height - 1, width, upsampling }
    }
}

/// Some rows of samples of a component.
struct Plane {
    values: Vec<u8>,
    stride: usize,
    /// Number of the first row, and of the last row in the picture.
    first: usize,
    last: usize,
    /// Samples of a row that are in the picture.
    width: usize,
    upsampling: Upsampling,
}

impl Plane {
    /// Row `y`, or the nearest row in the picture.
    fn row(&self, y: isize) -> &[u8] {
        let y = y.clamp(0, self.last as isize) as usize - self.first;
        &self.values[y * self.stride..][..self.width]
    }

    /// Writes row `y` of the picture at full resolution to `out`. Does nothing for a component that is not subsampled.
    ///
    /// libjpeg's triangle filters: 3/4 of the nearest sample and 1/4 of the next nearest along each axis, rounded up
    /// and down in turn. `sums` is scratch memory.
    fn upsample(&self, y: usize, sums: &mut [u16], out: &mut [u8]) {
        // The nearest row of samples, and the next nearest one, on the other side of the pixel row.
        let near = || self.row((y / 2) as isize);
        let far = || self.row((y / 2) as isize + if y.is_multiple_of(2) { -1 } else { 1 });
        let sums = &mut sums[..self.width + 2];
        match self.upsampling {
            Upsampling::Full => {}
            Upsampling::Across => {
                let sums_and_row = sums[1..].iter_mut().zip(self.row(y as isize));
                sums_and_row.for_each(|(sum, &sample)| *sum = sample.into());
                double_width(sums, [1, 2], 2, out);
            }
            Upsampling::Down => {
                let bias = 1 + (y % 2) as u16;
                blend_rows(
                    near(),
                    far(),
                    out,
                    #[inline(always)]
                    |sum| ((sum + bias) >> 2) as u8,
                );
            }
            Upsampling::Both => {
                blend_rows(
                    near(),
                    far(),
                    &mut sums[1..],
                    #[inline(always)]
                    |sum| sum,
                );
                double_width(sums, [8, 7], 4, out);
            }
            Upsampling::Repeat([across, down]) => {
                let row = self.row((y / down) as isize);
                for (out, &value) in out.chunks_exact_mut(across).zip(row) {
                    out.fill(value);
                }
            }
        }
    }
}

/// Writes the means of `N` samples across and `down` samples down, of rows of `stride` samples. Ties are rounded up and
/// down in turn.
fn average<const N: usize>(rows: &[u8], stride: usize, down: usize, means: &mut [u8]) {
    let half = (N * down / 2) as u16;
    let mut sums = vec![0u16; stride];
    simd::vectorize(
        #[inline(always)]
        || {
            let bands = rows.chunks_exact(down * stride);
            for (rows, means) in bands.zip(means.chunks_exact_mut(stride / N)) {
                sums.fill(0);
                for row in rows.chunks_exact(stride) {
                    sums.iter_mut().zip(row).for_each(|(sum, &sample)| *sum += u16::from(sample));
                }
                for (x, (mean, sums)) in means.iter_mut().zip(sums.as_chunks::<N>().0).enumerate() {
                    let sum = sums.iter().sum::<u16>() + half - (x % 2) as u16;
                    *mean = (sum >> (2 * half).ilog2()) as u8;
                }
            }
        },
    );
}

/// Stores `value` of three times each sample of `near` and one of `far`.
fn blend_rows<T>(near: &[u8], far: &[u8], to: &mut [T], value: impl Fn(u16) -> T) {
    simd::vectorize(
        #[inline(always)]
        || {
            for ((to, &near), &far) in to.iter_mut().zip(near).zip(far) {
                *to = value(3 * u16::from(near) + u16::from(far));
            }
        },
    );
}

/// Doubles the number of samples by the triangle filter. The left and the right sample of each pair have different
/// biases. The first and the last of `sums` are set here: they repeat their neighbours.
fn double_width(sums: &mut [u16], [left, right]: [u16; 2], shift: u32, out: &mut [u8]) {
    let last = sums.len() - 1;
    (sums[0], sums[last]) = (sums[1], sums[last - 1]);
    simd::vectorize(
        #[inline(always)]
        || {
            let neighbours = sums.iter().zip(&sums[1..]).zip(&sums[2..]);
            for (pair, ((before, here), after)) in
                out.as_chunks_mut::<2>().0.iter_mut().zip(neighbours)
            {
                *pair = [
                    ((3 * here + before + left) >> shift) as u8,
                    ((3 * here + after + right) >> shift) as u8,
                ];
            }
        },
    );
}

/// Converts Y, Cb and Cr of at most `max` to RGB (T.871, 7), with libjpeg's constants and rounding.
#[inline(always)]
pub(super) fn to_rgb([y, cb, cr]: [i32; 3], max: i32) -> [i32; 3] {
    let [blue, red] = [cb - (max + 1) / 2, cr - (max + 1) / 2];
    let add = |value: i32| (y + ((value + (1 << 15)) >> 16)).clamp(0, max);
    [
        add(fixed_16(1.402) * red),
        add(-fixed_16(0.34414) * blue - fixed_16(0.71414) * red),
        add(fixed_16(1.772) * blue),
    ]
}

/// Converts rows of Y, Cb and Cr to RGB.
fn ycc_to_rgb([y, cb, cr]: [&[u8]; 3], rgb: &mut [u8]) {
    simd::vectorize(
        #[inline(always)]
        || {
            let pixels = rgb.as_chunks_mut::<3>().0.iter_mut();
            for (pixel, ((&y, &cb), &cr)) in pixels.zip(y.iter().zip(cb).zip(cr)) {
                let [red, green, blue] = to_rgb([y.into(), cb.into(), cr.into()], 255);
                *pixel = [red as u8, green as u8, blue as u8];
            }
        },
    );
}

/// Interleaves rows of samples into a row of pixels.
fn interleave<const N: usize>(pixels: &mut [u8], rows: [&[u8]; N]) {
    for (x, pixel) in pixels.as_chunks_mut::<N>().0.iter_mut().enumerate() {
        *pixel = rows.map(|row| row[x]);
    }
}

/// Converts inverted cyan, magenta and yellow to RGB: multiplies them by inverted black, with rounding.
fn darken(pixels: &mut [u8], black: &[u8]) {
    for (pixel, &black) in pixels.as_chunks_mut::<3>().0.iter_mut().zip(black) {
        *pixel = pixel.map(|value| ((2 * u32::from(value) * u32::from(black) + 255) / 510) as u8);
    }
}

/// The multiplication by the quantization steps of one table, and the inverse DCT.
#[derive(Clone, Debug)]
struct Dequantizer {
    steps: [i32; 64],
    #[cfg(target_arch = "x86_64")]
    rows: [[i16; 8]; 8],
}

impl Dequantizer {
    fn new(steps: &[u16; 64]) -> Self {
        Self {
            // As i16, as in libjpeg; no encoder writes larger ones.
            steps: steps.map(|step| (step as i16).into()),
            #[cfg(target_arch = "x86_64")]
            rows: x86::rows(steps.map(|step| step as i16)),
        }
    }

    /// Computes eight rows of samples, `stride` apart, from a row of blocks.
    fn samples(&self, arch: Arch, blocks: &[[i16; 64]], samples: &mut [u8], stride: usize) {
        let mut done = 0;
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = x86::avx2(arch) {
            pulp::Simd::vectorize(
                simd,
                #[inline(always)]
                || {
                    for pair in blocks.as_chunks::<2>().0 {
                        let samples = &mut samples[8 * done..];
                        if !x86::inverse(simd, pair, &self.rows, samples, stride) {
                            self.block(&pair[0], samples, stride);
                            self.block(&pair[1], &mut samples[8..], stride);
                        }
                        done += 2;
                    }
                },
            );
        }
        let _ = arch;
        for (i, block) in blocks.iter().enumerate().skip(done) {
            self.block(block, &mut samples[8 * i..], stride);
        }
    }

    fn block(&self, block: &[i16; 64], samples: &mut [u8], stride: usize) {
        let values = dct::inverse(dct::dequantized(block, &self.steps));
        for (row, samples) in values.iter().zip(samples.chunks_mut(stride)) {
            let row = row.map(|value| value.saturating_add(128).clamp(0, 255) as u8);
            samples[..8].copy_from_slice(&row);
        }
    }
}
