//! Decoder of the processes of JPEG (ITU-T T.81) with samples of up to 16 bits, which are common in DICOM.
//!
//! Lossless JPEG (process 14, annex H), the common compression of scanners, predicts samples from their neighbours.
//! Lossy JPEG of 12 bits (process 4) is decoded by libjpeg's transform for 12 bits, as in DCMTK, GDCM and ITK.

use super::{
    ColourModel, Frame, Upsampling,
    damage::DamageMap,
    dct,
    header::{JpegFile, Process},
    huffman_decoder::BitReader,
    marker::unstuffed,
    render,
    scan::{BlockRow, RowSink},
};
use crate::util::{
    error::{Error, Result},
    memory,
    parallel::Parallel,
};

impl JpegFile<'_> {
    /// Decodes the samples of all components, interleaved and without conversion. Damage is an error. A lossy file must
    /// have a single component.
    pub fn decode_16_bits(&self) -> Result<Vec<u16>> {
        match (self.process, self.frame.components.len()) {
            (Process::Lossless, _) => self.decode_lossless(),
            (_, 1) => Ok(self.planes()?.remove(0)),
            _ => Err(Error::bad_input("lossy JPEG of colours in 16 bits is not supported")),
        }
    }

    /// Decodes the pixels of a lossy file of three components, YCbCr or RGB, to RGB. Damage is an error.
    pub fn decode_16_bit_rgb(&self) -> Result<Vec<u16>> {
        let (frame, max) = (&self.frame, (1 << self.precision) - 1);
        let upsampling = (0..3).map(|c| frame.upsampling(c)).collect::<Result<Vec<_>>>()?;
        let (planes, [width, height]) = (self.planes()?, frame.size);
        let mut pixels = memory::zeros(3 * width * height)?;
        pixels.chunks_mut(3 * width).enumerate().par_each(|(y, row)| {
            for (x, pixel) in row.as_chunks_mut::<3>().0.iter_mut().enumerate() {
                let sample =
                    |c: usize| enlarged(&planes[c], frame.samples(c), upsampling[c], [x, y]);
                let mut values = [0, 1, 2].map(sample);
                if frame.colour == ColourModel::YCbCr {
                    values = render::to_rgb(values, max);
                }
                *pixel = values.map(|value| value as u16);
            }
        });
        Ok(pixels)
    }

    /// The samples of each component of a lossy file.
    fn planes(&self) -> Result<Vec<Vec<u16>>> {
        let (frame, precision) = (&self.frame, self.precision);
        let count = frame.components.len();
        let plane = |c| memory::zeros(frame.samples(c).iter().product());
        let planes = (0..count).map(plane).collect::<Result<_>>()?;
        let mut output = SampleSink { frame, precision, planes, rows: vec![0; count] };
        let damage = DamageMap::new(frame);
        self.read_scans(&mut output, &damage);
        self.damage(&damage).map_or(Ok(output.planes), |damage| Err(Error::bad_input(damage)))
    }

    fn decode_lossless(&self) -> Result<Vec<u16>> {
        let error = |what: &str| Err(Error::bad_input(what));
        let ([width, height], count) = (self.frame.size, self.frame.components.len());
        let mut samples = memory::zeros(width * height * count)?;
        let is_full = (0..count).all(|c| self.frame.samples(c) == self.frame.size);
        let scan = match &self.scans[..] {
            [scan] if scan.members.len() == count && is_full => scan,
            _ => return error("lossless JPEG with several scans or resolutions is not supported"),
        };
        if !scan.restart_interval.is_multiple_of(width) {
            return error("lossless JPEG with restarts within rows is not supported");
        }
        let tables: Vec<_> = scan.members.iter().map(|member| &member.dc).collect();
        let (predictor, shift) = (scan.selection.start, scan.selection.low_bit);
        let rows = if scan.restart_interval == 0 { height } else { scan.restart_interval / width };
        let (data, intervals) = unstuffed(&self.bytes[scan.data.clone()]);
        let mut intervals = intervals.into_iter();
        let mut above = memory::zeros::<i32>(width * count)?;
        let mut line = memory::zeros::<i32>(width * count)?;
        for part in samples.chunks_mut(width * count * rows) {
            let Some(interval) = intervals.next() else {
                return error("the data of the scan end early");
            };
            let mut bits = BitReader::new(&data[interval.data]);
            for (y, out) in part.chunks_exact_mut(width * count).enumerate() {
                for i in 0..width * count {
                    let left = i.checked_sub(count).map(|left| line[left]);
                    let predicted = match (left, y) {
                        (None, 0) => 1 << (self.precision - shift - 1),
                        (Some(left), 0) => left,
                        (None, _) => above[i],
                        (Some(left), _) => predict(predictor, left, above[i], above[i - count]),
                    };
                    let difference = match bits.symbol(tables[i % count]) {
                        Some(16) => 1 << 15,
                        Some(size @ ..16) => bits.signed(size),
                        _ => return error("invalid Huffman code"),
                    };
                    line[i] = (predicted + difference) & 0xffff;
                    out[i] = (line[i] << shift) as u16;
                }
                std::mem::swap(&mut above, &mut line);
            }
            if bits.is_past_end() {
                return error("the data of the scan end early");
            }
        }
        Ok(samples)
    }
}

/// The prediction of a sample from those to its left, above it, and above its left (table H.1).
fn predict(predictor: u32, left: i32, above: i32, corner: i32) -> i32 {
    match predictor {
        1 => left,
        2 => above,
        3 => corner,
        4 => left + above - corner,
        5 => left + ((above - corner) >> 1),
        6 => above + ((left - corner) >> 1),
        _ => (left + above) >> 1,
    }
}

/// The sample at `[x, y]` of the picture, of a component of `[w, h]` samples: by libjpeg's filters, as in `render`.
fn enlarged(samples: &[u16], [w, h]: [usize; 2], how: Upsampling, [x, y]: [usize; 2]) -> i32 {
    let at = |x: usize, y: usize| i32::from(samples[y.min(h - 1) * w + x.min(w - 1)]);
    // The position next to the nearest one, on the other side of the pixel.
    let far =
        |at: usize| if at.is_multiple_of(2) { (at / 2).saturating_sub(1) } else { at / 2 + 1 };
    let down = |x: usize| 3 * at(x, y / 2) + at(x, far(y));
    let odd = |at: usize| (at % 2) as i32;
    match how {
        Upsampling::Full => at(x, y),
        Upsampling::Across => (3 * at(x / 2, y) + at(far(x), y) + 1 + odd(x)) >> 2,
        Upsampling::Down => (down(x) + 1 + odd(y)) >> 2,
        Upsampling::Both => (3 * down(x / 2) + down(far(x)) + 8 - odd(x)) >> 4,
        Upsampling::Repeat([across, down]) => at(x / across, y / down),
    }
}

/// Transforms rows of blocks to samples.
struct SampleSink<'a> {
    frame: &'a Frame,
    precision: u32,
    /// The samples of each component.
    planes: Vec<Vec<u16>>,
    /// Number of the next row of samples of each component.
    rows: Vec<usize>,
}

impl RowSink for SampleSink<'_> {
    fn push_row(&mut self, c: usize, row: BlockRow) {
        let transform = if self.precision > 8 { dct::inverse_12_bits } else { dct::inverse };
        let ([width, height], steps) = (self.frame.samples(c), &self.frame.components[c].steps);
        let max = (1 << self.precision) - 1;
        let lines = &mut self.planes[c][self.rows[c] * width..];
        for (x, block) in (0..width).step_by(8).zip(&row.values) {
            let values = transform(dct::dequantized(block, steps));
            for (line, values) in lines.chunks_exact_mut(width).zip(values) {
                for (sample, value) in line[x..].iter_mut().zip(values) {
                    *sample = value.saturating_add((max + 1) / 2).clamp(0, max) as u16;
                }
            }
        }
        self.rows[c] = (self.rows[c] + 8).min(height);
    }
}
