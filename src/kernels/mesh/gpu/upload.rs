//! Converts samples to a type that the shader reads, and uploads them.

use std::{borrow::Cow, ops::Range};

use super::super::{
    grid::CellGrid,
    voxel::{Isovalue, Voxel},
};
use crate::{
    data::{
        blocks::{Span, Split},
        samples::Samples,
    },
    for_samples,
    gpu::{Buffer, Context},
    util::{
        error::{Error, Result},
        memory, parallel,
    },
};

/// Sample type that the shader reads. The discriminant is the shader's `KIND`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VoxelKind {
    U8 = 0,
    I8 = 1,
    U16 = 2,
    I16 = 3,
    /// The only kind that may have NaN.
    F32 = 4,
}

impl VoxelKind {
    pub(super) const ALL: [Self; 5] = [Self::U8, Self::I8, Self::U16, Self::I16, Self::F32];
}

/// Samples of a type that the shader reads.
pub(super) struct Voxels<'a> {
    samples: Cow<'a, Samples>,
    /// Bytes per sample.
    pub(super) size: usize,
    pub(super) kind: VoxelKind,
    pub(super) has_nan: bool,
}

impl<'a> Voxels<'a> {
    /// Whether the samples were converted because the shader does not read their type.
    pub(super) fn is_converted(&self) -> bool {
        matches!(self.samples, Cow::Owned(_))
    }

    /// Borrows `samples`, or converts them to f32 distances from the isovalue if f32 does not represent their type
    /// exactly.
    pub(super) fn new(samples: &'a Samples, iso: &Isovalue) -> Result<Self> {
        let (kind, size) = match samples {
            Samples::U8(_) => (VoxelKind::U8, 1),
            Samples::I8(_) => (VoxelKind::I8, 1),
            Samples::U16(_) => (VoxelKind::U16, 2),
            Samples::I16(_) => (VoxelKind::I16, 2),
            _ => (VoxelKind::F32, 4),
        };
        let has_nan = match samples {
            Samples::F32(values) => parallel::any(values, |value| value.is_nan()),
            Samples::F64(values) => parallel::any(values, |value| value.is_nan()),
            _ => false,
        };
        let samples = match samples {
            Samples::U32(_) | Samples::I32(_) | Samples::F64(_) => {
                let fields = for_samples!(samples, values => {
                    parallel::mapped(values, |value| value.field(iso))?
                });
                Cow::Owned(Samples::F32(fields))
            }
            _ => Cow::Borrowed(samples),
        };
        Ok(Self { samples, size, kind, has_nan })
    }
}

/// A range of rows of all slices of a piece, whose samples fit one binding.
#[derive(Debug)]
pub(super) struct RowBand {
    pub(super) samples: Buffer,
    /// Rows of samples, including the halo.
    pub(super) sample_rows: Range<usize>,
    /// Rows of points that a dispatch over the band processes.
    pub(super) rows: Range<usize>,
}

/// Rows of samples needed before and after a row of points: one before it for the gradient, one after it where its
/// edges end, and another one for the gradient there.
const HALO: [usize; 2] = [1, 2];

impl RowBand {
    /// Uploads `slices` of `voxels`, in one band or in several.
    pub(super) fn upload(
        context: &Context,
        grid: &CellGrid,
        slices: Range<usize>,
        voxels: &Voxels<'_>,
    ) -> Result<Vec<Self>> {
        let row = grid.width * voxels.size;
        let slice = row * grid.height;
        let bytes = &voxels.samples.as_bytes()[slices.start * slice..slices.end * slice];
        let max_rows = (context.max_binding() / (row * slices.len()) as u64) as usize;
        if max_rows >= grid.height {
            let (sample_rows, rows) = (0..grid.height, 0..grid.points[1]);
            return Ok(vec![Self { samples: context.upload("volume", bytes)?, sample_rows, rows }]);
        }
        let halo: usize = HALO.iter().sum();
        let height = max_rows.checked_sub(halo).filter(|&height| height > 0).ok_or_else(|| {
            Error::gpu(format_args!(
                "{} cannot hold four rows of {} slices of {} samples in one binding",
                context.info.name,
                slices.len(),
                grid.width
            ))
        })?;
        let split = Split { len: grid.points[1], block: height, halo: HALO, wraps: false };
        let band = |Span { core, padded, .. }: Span| {
            let sample = |y: usize| y.saturating_sub(grid.pad).min(grid.height);
            let sample_rows = sample(padded.start)..sample(padded.end);
            let mut part = memory::room(sample_rows.len() * row * slices.len())?;
            for slice in bytes.chunks_exact(slice) {
                part.extend_from_slice(&slice[sample_rows.start * row..sample_rows.end * row]);
            }
            Ok(Self { samples: context.upload("volume", &part)?, sample_rows, rows: core })
        };
        split.spans().map(band).collect()
    }
}
