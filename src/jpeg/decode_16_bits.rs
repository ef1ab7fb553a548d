//! Decoder of the processes of JPEG (ITU-T T.81) with samples of up to 16 bits, which are common in DICOM.
//!
//! Lossless JPEG (process 14, annex H), the common compression of scanners, predicts samples from their neighbours.
//! Lossy JPEG of 12 bits (process 4) is decoded by libjpeg's transform for 12 bits, as in DCMTK, GDCM and ITK.

use super::{
    Frame,
    damage::DamageMap,
    dct,
    header::{JpegFile, Process},
    huffman_decoder::BitReader,
    marker::unstuffed,
    scan::{BlockRow, RowSink},
};
use crate::util::{
    error::{Error, Result},
    memory,
};

impl JpegFile<'_> {
    /// Decodes the samples of all components, interleaved and without conversion. Damage is an error.
    ///
    /// # Errors
    /// If the file is damaged, or is lossy and has several components.
    pub fn decode_16_bits(&self) -> Result<Vec<u16>> {
        let [width, height] = self.frame.size;
        let samples = memory::zeros(width * height * self.frame.components.len())?;
        match (self.process, self.frame.components.len()) {
            (Process::Lossless, _) => self.decode_lossless(samples),
            (_, 1) => {
                let (frame, precision) = (&self.frame, self.precision);
                let mut output = SampleSink { frame, precision, samples, y: 0 };
                let damage = DamageMap::new(frame);
                self.read_scans(&mut output, &damage);
                self.damage(&damage)
                    .map_or(Ok(output.samples), |damage| Err(Error::bad_input(damage)))
            }
            _ => Err(Error::bad_input(
                "lossy JPEG of more than 8 bits and several components is not supported",
            )),
        }
    }

    fn decode_lossless(&self, mut samples: Vec<u16>) -> Result<Vec<u16>> {
        let error = |what: &str| Err(Error::bad_input(what));
        let ([width, height], count) = (self.frame.size, self.frame.components.len());
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

/// Transforms rows of blocks of the only component to samples.
struct SampleSink<'a> {
    frame: &'a Frame,
    precision: u32,
    samples: Vec<u16>,
    /// Number of the next row of samples.
    y: usize,
}

impl RowSink for SampleSink<'_> {
    fn push_row(&mut self, _: usize, row: BlockRow) {
        let transform = if self.precision > 8 { dct::inverse_12_bits } else { dct::inverse };
        let (width, steps) = (self.frame.size[0], &self.frame.components[0].steps);
        let max = (1 << self.precision) - 1;
        let lines = &mut self.samples[self.y * width..];
        for (i, block) in row.values.iter().enumerate() {
            let values = transform(dct::dequantized(block, steps));
            for (line, values) in lines.chunks_exact_mut(width).zip(values) {
                for (sample, value) in line[8 * i..].iter_mut().zip(values) {
                    *sample = value.saturating_add((max + 1) / 2).clamp(0, max) as u16;
                }
            }
        }
        self.y = (self.y + 8).min(self.frame.size[1]);
    }
}

#[cfg(test)]
mod tests {
    use super::predict;

    #[test]
    fn samples_are_predicted_as_the_standard_says() {
        // Left 10, above 14, corner 11.
        for (predictor, value) in [(1, 10), (2, 14), (3, 11), (4, 13), (5, 11), (6, 13), (7, 12)] {
            assert_eq!(predict(predictor, 10, 14, 11), value, "{predictor}");
        }
    }
}
