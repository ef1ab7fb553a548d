//! Meshes the layers of cells of a volume slab by slab.

use std::{ops::Range, sync::Arc};

use crate::{
    data::{blocks::Span, label_mesh::LabelMesh, samples::Samples, surface::Surface},
    device::Kernel,
    engine::session::Session,
    flow::{BlockSource, Blocks, read_blocks},
    io::volume::VolumeFile,
    kernels::mesh::{MarchingCubes, Slab, labels::SurfaceNets},
    util::error::{Hint, Result},
};

/// A kernel that meshes slabs.
pub(super) trait SlabKernel: Kernel<In = Slab> + Sync {
    /// Slices needed to mesh `layers` of a volume of `depth` slices.
    fn slices(&self, layers: &Range<usize>, depth: usize) -> Range<usize>;

    fn vertices(mesh: &Self::Out) -> usize;
}

impl SlabKernel for MarchingCubes {
    fn slices(&self, layers: &Range<usize>, depth: usize) -> Range<usize> {
        self.slices(layers, depth)
    }

    fn vertices(mesh: &Surface) -> usize {
        mesh.positions.len()
    }
}

impl SlabKernel for SurfaceNets {
    fn slices(&self, layers: &Range<usize>, depth: usize) -> Range<usize> {
        self.slices(layers, depth)
    }

    fn vertices(mesh: &LabelMesh) -> usize {
        mesh.vertices.len()
    }
}

/// How a volume is divided into slabs.
pub(super) struct Slabs<'a> {
    /// The layers of cells to mesh.
    pub(super) own: Range<usize>,
    /// Number of layers of a slab.
    pub(super) height: usize,
    /// Whether the next slab is read while a slab is meshed.
    pub(super) overlaps: bool,
    /// Whether layers between missing samples, which all have this value, are skipped since they have no surface.
    pub(super) leaves_out: &'a (dyn Fn(&Samples) -> bool + Sync),
}

/// Meshes the slabs of `file`, whose slices are read from `source`, and passes each mesh to `consume` with the number
/// of its first vertex.
pub(super) fn mesh_slabs<K: SlabKernel>(
    kernel: &K,
    source: &BlockSource<'_>,
    file: &VolumeFile,
    slabs: Slabs<'_>,
    session: &Session,
    consume: &mut dyn FnMut(u64, K::Out) -> Result<()>,
) -> Result<()> {
    let Slabs { own, height, overlaps, leaves_out } = slabs;
    let (depth, last) = (file.dims[2], own.end);
    let slices = |layers: &Range<usize>| kernel.slices(layers, depth);
    let padded = |core: Range<usize>| Span { padded: slices(&core), core, before: 0 };
    let skipped = |layer: usize| match file.missing(slices(&(layer..layer + 1)).start) {
        Some((end, fill)) if leaves_out(&fill) => {
            let is_missing = |&layer: &usize| slices(&(layer..layer + 1)).end <= end;
            (layer..last).take_while(is_missing).count()
        }
        _ => 0,
    };
    let (padded, skipped) = (&padded, &skipped);
    let blocks = Blocks { own, block: height, padded, wraps: false, overlaps, skipped };
    let mut first_vertex = 0;
    read_blocks(source, &blocks, "mesh", session, |span, grid| {
        let volume = Arc::new(grid);
        let (first_slice, layers) = (span.padded.start, span.core);
        let slab = Slab { volume, first_slice, depth, layers, first_vertex };
        first_vertex += mesh_slab(kernel, &slab, session, consume)?;
        Ok(Arc::into_inner(slab.volume).map(|volume| volume.samples))
    })
}

/// Meshes a slab, in halves if its mesh takes too much memory. Returns the number of vertices.
pub(super) fn mesh_slab<K: SlabKernel>(
    kernel: &K,
    slab: &Slab,
    session: &Session,
    consume: &mut dyn FnMut(u64, K::Out) -> Result<()>,
) -> Result<u64> {
    let layers = slab.layers.clone();
    let half =
        |layers, more| Slab { layers, first_vertex: slab.first_vertex + more, ..slab.clone() };
    match session.device.run(kernel, slab) {
        Ok(mesh) => {
            let vertices = K::vertices(&mesh) as u64;
            consume(slab.first_vertex, mesh).map(|()| vertices)
        }
        Err(error) if error.hint() == Some(Hint::Memory) && layers.len() > 1 => {
            let middle = layers.start + layers.len() / 2;
            let lower = mesh_slab(kernel, &half(layers.start..middle, 0), session, consume)?;
            Ok(lower + mesh_slab(kernel, &half(middle..layers.end, lower), session, consume)?)
        }
        Err(error) => Err(error),
    }
}
