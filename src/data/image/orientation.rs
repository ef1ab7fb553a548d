//! The eight EXIF orientations and their inverses.

use crate::util::{error::Result, memory, parallel::Parallel};

/// Orientation in which an image is stored. With `transposed`, stored rows are columns of the upright image; with
/// `reversed_x` and `reversed_y`, stored columns and stored rows are in reverse order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orientation {
    pub(super) transposed: bool,
    reversed_x: bool,
    reversed_y: bool,
}

impl Orientation {
    /// Orientation with this value in tag 274 (EXIF 2.32, 4.6.4).
    pub fn from_exif(value: u8) -> Option<Self> {
        let [transposed, reversed_x, reversed_y] = match value {
            1 => [false, false, false],
            2 => [false, true, false],
            3 => [false, true, true],
            4 => [false, false, true],
            5 => [true, false, false],
            6 => [true, false, true],
            7 => [true, true, true],
            8 => [true, true, false],
            _ => return None,
        };
        Some(Self { transposed, reversed_x, reversed_y })
    }

    /// Whether stored rows are columns of the upright image.
    pub fn is_transposed(self) -> bool {
        self.transposed
    }

    /// Width and height of the upright image, given those of the stored one.
    pub fn size(self, [width, height]: [usize; 2]) -> [usize; 2] {
        if self.transposed { [height, width] } else { [width, height] }
    }

    /// Reorders samples, `N` per pixel, to the upright image.
    pub(super) fn apply<T, const N: usize>(self, stored: &[T], size: [usize; 2]) -> Result<Vec<T>>
    where
        T: bytemuck::Pod + Send + Sync,
    {
        let [width, height] = size;
        let [columns, _] = self.size(size);
        let stored = stored.as_chunks::<N>().0;
        let mut upright = memory::zeros(stored.len() * N)?;
        upright.chunks_exact_mut(columns * N).enumerate().par_each(|(row, pixels)| {
            for (column, pixel) in pixels.as_chunks_mut::<N>().0.iter_mut().enumerate() {
                let [x, y] = if self.transposed { [row, column] } else { [column, row] };
                let x = if self.reversed_x { width - 1 - x } else { x };
                let y = if self.reversed_y { height - 1 - y } else { y };
                *pixel = stored[y * width + x];
            }
        });
        Ok(upright)
    }
}
