//! Mosaics: frames in which the slices of a volume lie side by side as tiles, row by row. Siemens and UIH write them.

use super::{
    attributes::{ACQUISITION_MATRIX, CSA, FRAMES, GRID_TILES, IMAGE_TYPE, TILES},
    dataset::Dataset,
    pixel_format::PixelFormat,
};
use crate::io::volume::header::BoxError;

/// The grid of tiles in each frame of a file. The grid is square, and as small as possible for the number of tiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mosaic {
    /// Number of tiles that are slices. The last places of the grid may be empty.
    pub count: usize,
    /// Columns and rows of tiles.
    pub side: usize,
    /// Whether the number of tiles is missing and all places are taken for slices.
    pub is_assumed: bool,
    /// Whether each tile has its own attributes: UIH.
    pub has_positions: bool,
    /// The normal that points in the direction of the order of slices, if it is stated.
    pub normal: Option<[f64; 3]>,
}

impl Mosaic {
    /// Finds the mosaic that the frames of a file are, if they are one.
    pub fn find(data: &Dataset, format: &PixelFormat) -> Result<Option<Self>, BoxError> {
        let top = &data.top;
        let tiles = top.number(GRID_TILES).filter(|_| top.number(FRAMES).unwrap_or(1.0) == 1.0);
        if data.frames.len() > 1 && tiles == Some(data.frames.len() as f64) {
            let mosaic = Self { has_positions: true, ..Self::of(data.frames.len()) };
            return mosaic.checked(format).map(Some);
        }
        let is_stated =
            top.text(IMAGE_TYPE).is_some_and(|kind| kind.split('\\').any(|kind| kind == "MOSAIC"));
        let header = top.numbers(CSA).unwrap_or_default();
        let own = top.number(TILES).filter(|_| is_stated);
        let number = own.or_else(|| header.first().copied()).filter(|&count| count >= 1.0);
        let mosaic = match number {
            Some(count) => Self::of(count.min(f64::from(u32::MAX)) as usize),
            None if !is_stated => return Ok(None),
            None => {
                let matrix = top.numbers(ACQUISITION_MATRIX).unwrap_or_default();
                let side = matrix.iter().fold(0.0, |a: f64, &b| a.max(b)) as usize;
                let side = format.columns.checked_div(side).unwrap_or(0);
                if side < 2 {
                    return Err(
                        "mosaic of slices without the number of its tiles (CSA header)".into()
                    );
                }
                Self { is_assumed: true, ..Self::of(side * side) }
            }
        };
        let normal = header.get(1..).and_then(|normal| normal.try_into().ok());
        let mosaic = Self { normal, ..mosaic };
        match mosaic.checked(format) {
            _ if mosaic.count == 1 => Ok(None),
            Err(_) if !is_stated => Ok(None),
            checked => checked.map(Some),
        }
    }

    fn of(count: usize) -> Self {
        let side = count.isqrt();
        let side = if side * side < count { side + 1 } else { side };
        Self { count, side, is_assumed: false, has_positions: false, normal: None }
    }

    fn checked(self, format: &PixelFormat) -> Result<Self, BoxError> {
        let (PixelFormat { columns, rows, .. }, Self { count, side, .. }) = (*format, self);
        match columns.is_multiple_of(side) && rows.is_multiple_of(side) {
            true => Ok(self),
            false => Err(format!(
                "mosaic of {columns}x{rows} pixels cannot be split into {count} tiles, {side} in each row and column"
            )
            .into()),
        }
    }

    /// Copies a tile out of the samples of a frame of `columns` columns, which take `size` bytes each.
    pub fn copy(&self, tile: usize, columns: usize, size: usize, frame: &[u8], out: &mut [u8]) {
        let width = columns / self.side * size;
        let height = out.len() / width;
        let (row, left) = (tile / self.side * height, tile % self.side * width);
        for (y, out) in out.chunks_exact_mut(width).enumerate() {
            out.copy_from_slice(&frame[(row + y) * columns * size + left..][..width]);
        }
    }
}
