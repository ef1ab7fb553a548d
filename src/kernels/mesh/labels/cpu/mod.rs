//! Surface nets on the CPU. One bit per edge of the grid is computed, 64 to a word; cells, vertices and quads follow
//! from these bits.
//!
//! | module | does |
//! |---|---|
//! | `edges` | finds the crossed edges |
//! | `cells` | vertices, links and sheets of 64 cells at a time |
//! | `net` | numbers vertices and finds their neighbours |
//! | `smooth` | moves the vertices |
//! | `quads` | emits faces with their labels and sheets |

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
        Samples::U8(samples) => dispatch(kernel, slab, grid, samples),
        Samples::U16(samples) => dispatch(kernel, slab, grid, samples),
        Samples::U32(samples) => dispatch(kernel, slab, grid, samples),
        _ => unreachable!("NetGrid::new accepts labels only"),
    }
}

fn dispatch<T: Label>(
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
    let offsets = smooth::smoothed(simd, &planes, &net, kernel.steps)?;
    let vertices = net.vertices(&planes, &offsets)?;
    drop(offsets);
    let quads = quads::emit(simd, &planes, &net, samples, slab.first_vertex)?;
    Ok(LabelMesh { vertices, quads })
}
