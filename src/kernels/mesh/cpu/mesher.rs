//! Input of all steps, and the part of the result that each slice writes.

use super::super::{
    grid::CellGrid,
    params::{MarchingCubes, Slab},
    voxel::Isovalue,
};

/// A slab of samples of one type.
pub(super) struct Mesher<'a, T> {
    pub(super) kernel: &'a MarchingCubes,
    pub(super) slab: &'a Slab,
    pub(super) grid: CellGrid,
    pub(super) iso: Isovalue,
    pub(super) samples: &'a [T],
}

/// Part of the surface that one slice writes: the vertices on the edges that begin at its points, and the triangles of
/// the layer above it.
pub(super) struct SlicePart<'a> {
    pub(super) z: usize,
    /// Number of the first vertex, and the number after the last.
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) positions: &'a mut [[f32; 3]],
    pub(super) normals: &'a mut [[f32; 3]],
    pub(super) triangles: &'a mut [[u32; 3]],
}

/// Splits the first `len` items off `rest`.
#[inline(always)]
pub(super) fn split_front<'a, I>(rest: &mut &'a mut [I], len: usize) -> &'a mut [I] {
    rest.split_off_mut(..len).expect("counted before")
}
