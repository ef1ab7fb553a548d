//! Marching cubes on the CPU. One bit per point is computed, vertices and triangles are counted per slice, and then all
//! slices write their parts of the result in parallel.
//!
//! | module | does |
//! |---|---|
//! | `mesher` | input and output of all steps |
//! | `planes` | converts samples to bits |
//! | `cells` | corners, crossed edges and cases of 64 cells at a time |
//! | `count` | counts vertices and triangles per slice |
//! | `vertices`, `normals` | vertices on crossed edges, and their normals |
//! | `faces` | triangles |
//! | `exact` | variants of ambiguous cells |
//! | `simd_ops`, `avx2` | operations that AVX2 has instructions for |

#[cfg(target_arch = "x86_64")]
mod avx2;
mod cells;
mod count;
mod exact;
mod faces;
mod mesher;
mod normals;
mod planes;
pub(super) mod simd_ops;
mod vertices;

use std::mem;

use self::{
    count::{SliceCounts, slice_counts},
    exact::VariantLookup,
    faces::{EmitFaces, VertexStart},
    mesher::{Mesher, SlicePart, split_front},
    simd_ops::SimdOps,
    vertices::EmitVertices,
};
use super::{
    grid::CellGrid,
    params::{MarchingCubes, Slab, Topology, check_count},
    voxel::{Isovalue, Voxel},
};
use crate::{
    data::surface::Surface,
    for_samples,
    util::{error::Result, memory, parallel::Parallel, simd},
};
use pulp::{Arch, Scalar};

pub(super) fn mesh(kernel: &MarchingCubes, slab: &Slab) -> Result<Surface> {
    let Some(grid) = CellGrid::new(kernel, slab) else { return Ok(Surface::default()) };
    let iso = Isovalue::new(kernel.iso, &slab.volume.samples);
    for_samples!(&slab.volume.samples, samples => {
        let mesher = Mesher { kernel, slab, grid, iso, samples };
        match simd::arch() {
            // AVX-512 would be 3 % faster than AVX2: too little for another copy of all code.
            #[cfg(target_arch = "x86_64")]
            Arch::V4(simd) => mesher.run(*simd),
            #[cfg(target_arch = "x86_64")]
            Arch::V3(simd) => mesher.run(simd),
            _ => mesher.run(Scalar::new()),
        }
    })
}

/// Consecutive slices of a task. Triangles need the vertex numbers of two slices, so a task numbers one slice more than
/// it emits.
const TASK: usize = 4;

impl<T: Voxel> Mesher<'_, T> {
    fn run<S: SimdOps>(&self, simd: S) -> Result<Surface> {
        let planes = self.planes(simd)?;
        let variant = |point, case| self.variant(point, case);
        let exact = VariantLookup(&variant);
        let exact = (self.kernel.topology == Topology::Exact).then_some(&exact);
        let counts = slice_counts(&planes, exact, simd);
        check_count(self.slab.first_vertex, counts.iter().map(|c| c.vertices).sum())?;
        let owned = &counts[..self.grid.owned()];
        let total = |count: fn(&SliceCounts) -> u64| owned.iter().map(count).sum();
        let totals = [total(|slice| slice.vertices), total(|slice| slice.triangles)];
        self.kernel.check_bytes(&self.slab.layers, totals)?;
        let mut surface = self.allocate(owned)?;
        let mut parts = self.parts(&mut surface, owned);
        parts.chunks_mut(TASK).par_try_each(|parts| {
            for part in &mut *parts {
                let SlicePart { z, .. } = *part;
                let positions = mem::take(&mut part.positions);
                let normals = mem::take(&mut part.normals);
                let emit = EmitVertices { mesher: self, planes: &planes, z, positions, normals };
                simd.vectorize(emit);
            }
            let numbers = || memory::zeros::<VertexStart>(2 * planes.slice_words());
            let starts = [numbers()?, numbers()?];
            simd.vectorize(EmitFaces { planes: &planes, exact, simd, parts, starts });
            Ok(())
        })?;
        Ok(surface)
    }

    /// Allocates the surface of the slices `owned`.
    fn allocate(&self, owned: &[SliceCounts]) -> Result<Surface> {
        let total = |count: fn(&SliceCounts) -> u64| owned.iter().map(count).sum::<u64>() as usize;
        let vertices = total(|c| c.vertices);
        Ok(Surface {
            positions: memory::zeros(vertices)?,
            normals: memory::zeros(if self.kernel.normals { vertices } else { 0 })?,
            triangles: memory::zeros(total(|c| c.triangles))?,
            nan_cells: total(|c| c.nan_cells) as u64,
            ..Surface::default()
        })
    }

    /// Divides the surface among the slices.
    fn parts<'a>(&self, surface: &'a mut Surface, owned: &[SliceCounts]) -> Vec<SlicePart<'a>> {
        let Surface { positions, normals, triangles, .. } = surface;
        let (mut positions, mut normals) = (&mut positions[..], &mut normals[..]);
        let mut triangles = &mut triangles[..];
        let mut first = self.slab.first_vertex;
        let mut part = |(z, counts): (usize, &SliceCounts)| {
            let vertices = counts.vertices as usize;
            let part = SlicePart {
                z,
                first,
                end: first + counts.vertices,
                positions: split_front(&mut positions, vertices),
                normals: split_front(&mut normals, if self.kernel.normals { vertices } else { 0 }),
                triangles: split_front(&mut triangles, counts.triangles as usize),
            };
            first = part.end;
            part
        };
        owned.iter().enumerate().map(&mut part).collect()
    }
}
