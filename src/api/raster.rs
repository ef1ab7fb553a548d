//! Images and volumes as the inputs and results of filters.

use super::sample::Sample;
use crate::util::{
    error::{Error, Result},
    memory,
};

/// Input of a filter: an [`Image`](crate::Image) or a [`Volume`](crate::Volume).
///
/// ```
/// use gpuproc::{Device, Raster, Resize, Size, Volume};
///
/// fn half<R: Raster>(device: &Device, input: &R) -> gpuproc::Result<R> {
///     Resize::new(Size::Scale([0.5; 3])).run(device, input)
/// }
/// # let volume = Volume::new([2, 2, 2], vec![7u8; 8]).unwrap();
/// # assert_eq!(half(&Device::cpu(), &volume).unwrap().samples(), [7]);
/// ```
pub trait Raster: sealed::Stored {
    /// The type of the samples.
    type Sample: Sample;
    /// An image or a volume with samples of another type.
    type Of<U: Sample>: Raster<Sample = U>;
}

pub(super) mod sealed {
    use crate::data::grid::Grid;

    /// Conversion to and from a [`Grid`], which holds samples of any type.
    pub trait Stored: Sized {
        /// Number of axes.
        const AXES: usize;

        fn grid(&self) -> &Grid;

        fn from_grid(grid: Grid) -> Self;
    }
}

/// The samples of a box of `sizes` positions, the first axis fastest. Neighbours along each axis lie `strides` apart.
pub(super) fn gathered<T: Sample>(
    samples: &[T],
    sizes: [usize; 3],
    strides: [isize; 3],
) -> Result<Vec<T>> {
    let count = sizes.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
    if count == Some(0) {
        return Ok(Vec::new());
    }
    let reaches = [0, 1, 2].map(|axis| (sizes[axis] - 1) as i128 * strides[axis] as i128);
    let last = reaches.iter().fold(1, |sum: i128, reach| sum.saturating_add(reach.abs()));
    let (Some(count), true) = (count, last <= samples.len() as i128) else {
        return Err(Error::bad_input(format_args!(
            "the strides reach {last} samples, found {}",
            samples.len()
        )));
    };
    let first: i128 = reaches.iter().filter(|&&reach| reach < 0).map(|reach| -reach).sum();
    let mut gathered = memory::room(count)?;
    let [n, rows, slices] = sizes;
    for (z, y) in (0..slices).flat_map(|z| (0..rows).map(move |y| (z, y))) {
        let row = first as isize + z as isize * strides[2] + y as isize * strides[1];
        match strides[0] {
            1 => gathered.extend_from_slice(&samples[row as usize..][..n]),
            step => gathered.extend((0..n as isize).map(|x| samples[(row + x * step) as usize])),
        }
    }
    Ok(gathered)
}
