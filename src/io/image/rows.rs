//! Reading and writing of images by rows, for images that do not fit into memory.

use super::pages::DecodedPage;
use crate::{
    data::{dtype::Dtype, image::Image, reader::Reader, samples::Samples},
    io::Output,
    util::{error::Result, memory},
};
use std::io;

/// Header of an image that is read by rows.
#[derive(Clone, Debug)]
pub struct RowsHeader {
    /// The image without samples: the first page of the file.
    pub first: DecodedPage,
    /// Number of pages of the file.
    pub page_count: usize,
    /// Bytes of memory that the reader takes in addition to the rows.
    pub reader_bytes: u64,
    /// Whether decoding the image as a whole takes the bytes of the file in memory, too.
    pub reads_whole_file: bool,
}

impl RowsHeader {
    /// Bytes of a row.
    pub fn row_bytes(&self) -> usize {
        let Image { width, channels, samples, .. } = &self.first.image;
        width * channels * samples.dtype().size()
    }
}

/// An image that is read by rows, from the first to the last.
pub trait ReadRows: Send {
    /// Header of the image.
    fn header(&self) -> &RowsHeader;

    /// Reads the next rows into `rows`, which holds a whole number of rows. Samples are in native byte order.
    fn read(&mut self, rows: &mut [u8]) -> Result<()>;

    /// Reads the remaining rows; returns whether any of their pixels is not fully opaque.
    fn any_transparent(&mut self) -> Result<bool> {
        let Image { height, channels, ref samples, .. } = self.header().first.image;
        let (dtype, row_bytes) = (samples.dtype(), self.header().row_bytes());
        let opaque: &[u8] = match dtype {
            Dtype::F32 => &1f32.to_ne_bytes(),
            Dtype::F64 => &1f64.to_ne_bytes(),
            dtype => &[255; 8][..dtype.size()],
        };
        let pixel = channels * dtype.size();
        let rows = (BAND / row_bytes.max(1)).clamp(1, height.max(1));
        let mut band = memory::zeros(rows * row_bytes)?;
        for first in (0..height).step_by(rows) {
            let band = &mut band[..rows.min(height - first) * row_bytes];
            self.read(band)?;
            if band.chunks_exact(pixel).any(|pixel| !pixel.ends_with(opaque)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Reads the rows of an image as a [`Reader`].
#[expect(missing_debug_implementations, reason = "decoders have none")]
pub struct RowsReader {
    rows: Box<dyn ReadRows>,
    spare: Option<Samples>,
}

impl RowsReader {
    /// Reads `rows` from row `first` on.
    pub fn new(rows: Box<dyn ReadRows>, first: usize) -> Result<Self> {
        let mut reader = Self { rows, spare: None };
        if first > 0 {
            reader.read_after(None, first)?;
        }
        Ok(reader)
    }
}

impl Reader for RowsReader {
    fn read_after(&mut self, before: Option<&Samples>, count: usize) -> Result<Samples> {
        let Image { width, channels, samples, .. } = &self.rows.header().first.image;
        let (len, dtype) = (width * channels * count, samples.dtype());
        let mut samples = Samples::extended(before, len, dtype, self.spare.take())?;
        self.rows
            .read(&mut samples.as_bytes_mut()[before.map_or(0, |held| held.as_bytes().len())..])?;
        Ok(samples)
    }

    fn reuse(&mut self, done: Samples) {
        self.spare = Some(done);
    }
}

/// Bytes of rows that are searched for transparent pixels at a time.
const BAND: usize = 1 << 20;

/// An image that is written by rows, from the first to the last.
pub trait WriteRows: Send {
    /// Writes the samples of the next rows.
    fn write(&mut self, samples: Samples) -> io::Result<()>;

    /// Writes the end of the file.
    fn finish(self: Box<Self>) -> io::Result<Output>;
}
