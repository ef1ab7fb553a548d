//! Surface nets on the CPU: one bit per edge of the grid, 64 to a word; what a cell has follows from these bits.
//!
//! | module | does |
//! |---|---|
//! | `edges` | samples to bits: which edges are crossed |
//! | `cells` | 64 cells at a time: which have vertices, which faces link them, which may have several sheets |
//! | `net` | numbers vertices and finds their neighbours |
//! | `smooth` | moves the vertices |
//! | `quads` | faces, with their labels and sheets |

mod cells;
mod edges;
mod net;
mod quads;
mod smooth;

use pulp::{Arch, Scalar};

use self::{edges::EdgePlanes, net::Net};
use super::{
    super::{cpu::simd_ops::SimdOps, params::Slab},
    params::{Label, NetGrid, SurfaceNets, check_count},
};
use crate::{
    data::{label_mesh::LabelMesh, samples::Samples},
    util::{error::Result, simd},
};

pub(super) fn mesh(kernel: &SurfaceNets, slab: &Slab) -> Result<LabelMesh> {
    let Some(grid) = NetGrid::new(kernel, slab)? else { return Ok(LabelMesh::default()) };
    match &slab.volume.samples {
        Samples::U8(samples) => at_level(kernel, slab, grid, samples),
        Samples::U16(samples) => at_level(kernel, slab, grid, samples),
        Samples::U32(samples) => at_level(kernel, slab, grid, samples),
        _ => unreachable!("refused with the grid"),
    }
}

fn at_level<T: Label>(
    kernel: &SurfaceNets,
    slab: &Slab,
    grid: NetGrid,
    samples: &[T],
) -> Result<LabelMesh> {
    match simd::arch() {
        #[cfg(target_arch = "x86_64")]
        Arch::V4(simd) => run(*simd, kernel, slab, grid, samples),
        #[cfg(target_arch = "x86_64")]
        Arch::V3(simd) => run(simd, kernel, slab, grid, samples),
        _ => run(Scalar::new(), kernel, slab, grid, samples),
    }
}

fn run<T: Label, S: SimdOps>(
    simd: S,
    kernel: &SurfaceNets,
    slab: &Slab,
    grid: NetGrid,
    samples: &[T],
) -> Result<LabelMesh> {
    let planes = EdgePlanes::new(simd, grid, samples)?;
    let net = Net::new(simd, &planes)?;
    check_count(slab.first_vertex, net.core.len() as u64)?;
    kernel.check_bytes(slab, [net.core.len() as u64, net.quads()], net.count() as u64)?;
    let places = smooth::smoothed(simd, &planes, &net, kernel.steps)?;
    let vertices = net.vertices(&planes, &places)?;
    drop(places);
    let quads = quads::emit(simd, &planes, &net, samples, slab.first_vertex)?;
    Ok(LabelMesh { vertices, quads })
}
