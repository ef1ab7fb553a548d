//! From quantised coefficients to pixels on the CPU, with libjpeg's results.
//!
//! ```text
//! coefficients -- transform --> samples of a component -- upsample --> full resolution -- colour --> pixels
//! ```

mod colour;
mod transform;
mod upsample;

use std::ops::Range;

use pulp::Arch;

pub use self::transform::{BlockView, Steps, dct, dct_12_bits};
use self::{
    colour::{YccToRgb, darken, interleave},
    transform::Transform,
    upsample::{Filter, Filtering},
};
use super::{ColourModel, Frame, Upsampling};
use crate::{
    memory::{self, raise},
    simd,
};

/// The coefficients of a picture, row by row.
pub trait Source: Sync {
    /// Row `y` of the blocks of component `c`; `None` where none of them was coded, so that all are 0.
    fn row(&self, c: usize, y: usize) -> Option<BlockView<'_>>;
}

impl Source for super::Coefficients {
    fn row(&self, c: usize, y: usize) -> Option<BlockView<'_>> {
        let [across, _] = self.frame.blocks(c);
        let blocks = self.blocks[c].get(y * across..(y + 1) * across)?;
        Some(BlockView { blocks, first: None, more: &[] })
    }
}

/// Turns bands of MCU rows into rows of pixels.
#[derive(Debug)]
pub struct Renderer<'a> {
    frame: &'a Frame,
    steps: Vec<Steps>,
    upsampling: Vec<Upsampling>,
}

/// Rows of MCUs in a band.
pub const BAND: usize = 8;

impl<'a> Renderer<'a> {
    /// A renderer of pictures of `frame`; `None` where the ratio of the picture's resolution to a component's is no
    /// whole number.
    pub fn new(frame: &'a Frame) -> Option<Self> {
        let steps = frame.components.iter().map(Steps::new).collect();
        let upsampling = (0..frame.components.len()).map(|c| frame.upsampling(c));
        Some(Self { frame, steps, upsampling: upsampling.collect::<Option<_>>()? })
    }

    /// Bytes of the pixels of a band; the last band may have fewer.
    pub fn band_bytes(&self) -> usize {
        self.frame.size[0] * self.frame.colour.channels() * 8 * BAND * self.frame.most()[1]
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

    /// Computes the pixels of band `number`.
    pub fn render(&self, source: &impl Source, number: usize, pixels: &mut [u8]) {
        let arch = simd::arch();
        let Self { frame, upsampling, .. } = self;
        let [width, _] = frame.size;
        let [_, down] = frame.most();
        let planes: Vec<Plane> =
            (0..upsampling.len()).map(|c| self.plane(arch, source, c, number)).collect();
        let mut rows: Vec<Vec<u8>> =
            planes.iter().map(|plane| vec![0; plane.full_width()]).collect();
        let mut sums = vec![0; width];
        let top = number * BAND * down * 8;
        let channels = frame.colour.channels();
        for (y, pixels) in pixels.chunks_exact_mut(width * channels).enumerate() {
            let y = top + y;
            for (plane, row) in planes.iter().zip(&mut rows) {
                plane.upsample(arch, y, &mut sums, row);
            }
            let of = |c: usize| match upsampling[c] {
                Upsampling::Full => planes[c].row(y as isize),
                _ => &rows[c][..width],
            };
            match frame.colour {
                ColourModel::Grey => pixels.copy_from_slice(of(0)),
                ColourModel::Rgb => interleave(pixels, [of(0), of(1), of(2)]),
                ColourModel::YCbCr => {
                    arch.dispatch(YccToRgb { y: of(0), cb: of(1), cr: of(2), rgb: pixels });
                }
                ColourModel::Cmyk => {
                    interleave(pixels, [of(0), of(1), of(2)]);
                    darken(pixels, of(3));
                }
                ColourModel::Ycck => {
                    arch.dispatch(YccToRgb { y: of(0), cb: of(1), cr: of(2), rgb: pixels });
                    // T.871's sums give inverted cyan, magenta and yellow.
                    pixels.iter_mut().for_each(|value| *value = 255 - *value);
                    darken(pixels, of(3));
                }
            }
        }
    }

    /// Computes the samples of component `c` on which band `number` depends.
    fn plane(&self, arch: Arch, source: &impl Source, c: usize, number: usize) -> Plane {
        let (frame, upsampling) = (self.frame, self.upsampling[c]);
        let ([across, _], range) = (frame.blocks(c), self.rows(c, number));
        let stride = 8 * across;
        let mut values = memory::zeros(range.len() * 8 * stride).unwrap_or_else(raise);
        for (y, samples) in range.clone().zip(values.chunks_exact_mut(8 * stride)) {
            match source.row(c, y) {
                Some(row) => {
                    Transform { row, steps: &self.steps[c], samples, stride }.run(arch);
                }
                None => samples.fill(128),
            }
        }
        let [width, height] = frame.samples(c);
        Plane { values, stride, first: 8 * range.start, last: height - 1, width, upsampling }
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

    /// The length of a row that [`upsample`](Self::upsample) writes: at least the picture's width.
    fn full_width(&self) -> usize {
        self.width
            * match self.upsampling {
                Upsampling::Full => 0,
                Upsampling::Down => 1,
                Upsampling::Across | Upsampling::Both => 2,
                Upsampling::Repeat([across, _]) => across,
            }
    }

    /// Writes row `y` of the picture at full resolution to `out`, except for a component that has it already.
    fn upsample(&self, arch: Arch, y: usize, sums: &mut [i32], out: &mut [u8]) {
        // The nearest row of samples, and the next nearest one, on the other side of the pixel row.
        let near = || self.row((y / 2) as isize);
        let far = || self.row((y / 2) as isize + if y.is_multiple_of(2) { -1 } else { 1 });
        let filter = match self.upsampling {
            Upsampling::Full => return,
            Upsampling::Across => Filter::Across { row: self.row(y as isize) },
            Upsampling::Down => Filter::Down { near: near(), far: far(), bias: 1 + (y % 2) as u16 },
            Upsampling::Both => Filter::Both { near: near(), far: far(), sums },
            Upsampling::Repeat([across, down]) => {
                let row = self.row((y / down) as isize);
                for (out, &value) in out.chunks_exact_mut(across).zip(row) {
                    out.fill(value);
                }
                return;
            }
        };
        arch.dispatch(Filtering { filter, out });
    }
}
