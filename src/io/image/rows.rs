//! Reading and writing of pictures by rows, for pictures that do not fit into memory.

use crate::{
    data::{dtype::Dtype, image::Metadata, samples::Samples},
    io::{Output, reader::Reader},
    util::{error::Result, memory},
};
use std::io;

/// The header of a picture that is read or written by rows.
#[derive(Clone, Debug)]
pub struct RowsInfo {
    /// Pixels a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Samples a pixel: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA.
    pub channels: usize,
    /// The type of samples.
    pub dtype: Dtype,
    /// Metadata of the file.
    pub metadata: Metadata,
    /// Whether the first row of the file is the top row of the picture. Otherwise an orientation in the file says how
    /// to rotate or mirror the picture.
    pub is_upright: bool,
    /// Number of pages of the file. The picture is the first one.
    pub pages: usize,
    /// Bytes of memory that the reader takes beside the rows.
    pub held_bytes: u64,
    /// Whether the file itself lies in memory, too, when the picture is decoded as a whole instead.
    pub is_held_whole: bool,
    /// What of the file the rows lack, in words.
    pub losses: Vec<String>,
}

impl RowsInfo {
    /// Bytes of a row.
    pub fn row_bytes(&self) -> usize {
        self.width * self.channels * self.dtype.size()
    }
}

/// A picture that is read row by row, from the first to the last.
pub trait ReadRows: Send {
    /// The header of the picture.
    fn info(&self) -> &RowsInfo;

    /// Reads the next rows into `rows`, which holds a whole number of them. Samples are in native byte order.
    fn read(&mut self, rows: &mut [u8]) -> Result<()>;

    /// Whether any pixel of the rows that are not read yet is not opaque. Reads them.
    fn any_transparent(&mut self) -> Result<bool> {
        let RowsInfo { channels, dtype, height, .. } = *self.info();
        let opaque: &[u8] = match dtype {
            Dtype::F32 => &1f32.to_ne_bytes(),
            Dtype::F64 => &1f64.to_ne_bytes(),
            dtype => &[255; 8][..dtype.size()],
        };
        let pixel = channels * dtype.size();
        let rows = (BAND / self.info().row_bytes().max(1)).clamp(1, height.max(1));
        let mut band = memory::zeros(rows * self.info().row_bytes())?;
        for first in (0..height).step_by(rows) {
            let band = &mut band[..rows.min(height - first) * self.info().row_bytes()];
            self.read(band)?;
            if band.chunks_exact(pixel).any(|pixel| !pixel.ends_with(opaque)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Reads the rows of a picture as a [`Reader`].
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
        let RowsInfo { width, channels, dtype, .. } = *self.rows.info();
        let held = before.map_or(0, Samples::len);
        let len = held + width * channels * count;
        let mut samples = match self.spare.take() {
            Some(mut spare) => spare.resize(len).map(|()| spare),
            None => Samples::zeros(dtype, len),
        }?;
        let (head, rows) = samples.as_bytes_mut().split_at_mut(held * dtype.size());
        if let Some(before) = before {
            head.copy_from_slice(before.as_bytes());
        }
        self.rows.read(rows)?;
        Ok(samples)
    }

    fn reuse(&mut self, done: Samples) {
        self.spare = Some(done);
    }
}

/// Bytes of the band of rows in which transparent pixels are searched.
const BAND: usize = 1 << 20;

/// A picture that is written row by row, from the first to the last.
pub trait WriteRows: Send {
    /// Writes the samples of the next rows.
    fn write(&mut self, samples: Samples) -> io::Result<()>;

    /// Writes the end of the file.
    fn finish(self: Box<Self>) -> io::Result<Output>;
}
