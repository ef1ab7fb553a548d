//! Counts the vertices and triangles of each slice, 64 cells at a time by popcounts of words.

use pulp::NullaryFnOnce;

use super::{
    cells::{CASE_TABLE, CaseTable},
    exact::VariantLookup,
    planes::BitPlanes,
    simd_ops::SimdOps,
};
use crate::util::parallel::Parallel;

/// Counts of a slice and of the layer above it.
#[derive(Clone, Copy, Default)]
pub(super) struct SliceCounts {
    pub(super) vertices: u64,
    pub(super) triangles: u64,
    pub(super) nan_cells: u64,
}

/// Counts all slices. There is one more slice than layers; its vertices belong to the next slab.
pub(super) fn slice_counts<S: SimdOps>(
    planes: &BitPlanes,
    exact: Option<&VariantLookup<'_>>,
    simd: S,
) -> Vec<SliceCounts> {
    let slices = 0..planes.grid.layers + 1;
    slices.par_map(|z| simd.vectorize(CountSlice { planes, exact, table: &CASE_TABLE, z }))
}

struct CountSlice<'a> {
    planes: &'a BitPlanes,
    exact: Option<&'a VariantLookup<'a>>,
    table: &'a CaseTable,
    z: usize,
}

// A type, since a closure would be compiled without the instructions that `vectorize` enables.
impl NullaryFnOnce for CountSlice<'_> {
    type Output = SliceCounts;

    #[inline(always)]
    fn call(self) -> SliceCounts {
        let Self { planes, exact, table, z } = self;
        let has_nan = !planes.valid.is_empty();
        let mut counts = SliceCounts::default();
        for y in 0..planes.grid.points[1] {
            let rows = planes.rows(y, z);
            if !has_nan && planes.are_uniform(&rows) {
                continue;
            }
            for word in 0..planes.words {
                let mut cells = if rows.has_cells { planes.edge_mask(word) } else { 0 };
                if has_nan {
                    let valid = planes.valid_at(y as isize, z + 1, word as isize);
                    counts.nan_cells += u64::from((cells & !valid).count_ones());
                    cells &= valid;
                }
                let corners = planes.corners(&rows, word);
                if corners.mixed() == 0 {
                    continue;
                }
                for crossed in planes.crossed(&rows, word) {
                    counts.vertices += u64::from(crossed.count_ones());
                }
                let triangles = corners.triangles(cells, |ambiguous| match exact {
                    None => corners.more_loops(ambiguous, table),
                    Some(exact) => exact.more_loops(&corners, ambiguous, [64 * word, y, z]),
                });
                counts.triangles += u64::from(triangles);
            }
        }
        counts
    }
}
