//! Surface nets on a GPU. A slab is meshed in pieces that fit the device, one after another.

mod passes;

use std::ops::Range;

pub(in super::super) use self::passes::variants;
use self::passes::{NetPasses, PiecePlan};
use super::{
    super::params::Slab,
    params::{NetGrid, SurfaceNets, check_count},
};
use crate::{
    data::label_mesh::LabelMesh,
    gpu::Context,
    util::error::{Error, Result},
};

/// Meshes the slab piece by piece. Pieces are halved until they fit the device.
pub(super) fn mesh(kernel: &SurfaceNets, context: &Context, slab: &Slab) -> Result<LabelMesh> {
    let mut mesh = LabelMesh::default();
    if NetGrid::new(kernel, slab)?.is_none() {
        return Ok(mesh);
    }
    let mut left = vec![slab.layers.clone()];
    while let Some(layers) = left.pop() {
        let Some((passes, totals)) = piece(kernel, context, slab, &layers)? else {
            if layers.len() == 1 {
                return Err(Error::gpu(format_args!(
                    "{} cannot hold a layer of labels with the layers that it depends on in bindings of {} bytes",
                    context.info.name,
                    context.max_binding()
                )));
            }
            let middle = layers.start + layers.len() / 2;
            left.extend([middle..layers.end, layers.start..middle]);
            continue;
        };
        let first_vertex = slab.first_vertex + mesh.vertices.len() as u64;
        check_count(first_vertex, totals.core_vertices().into())?;
        let found = [totals.core_vertices().into(), totals.quads.into()];
        kernel.check_bytes(slab, found, totals.vertices.into())?;
        mesh.append(passes.mesh(&totals, first_vertex)?)?;
    }
    Ok(mesh)
}

/// The passes and totals of a piece; `None` if it does not fit the device.
fn piece<'a>(
    kernel: &SurfaceNets,
    context: &'a Context,
    slab: &Slab,
    layers: &Range<usize>,
) -> Result<Option<(NetPasses<'a>, passes::Totals)>> {
    let slab = Slab { layers: layers.clone(), ..slab.clone() };
    let Some(grid) = NetGrid::new(kernel, &slab)? else { return Ok(None) };
    let Some(plan) = PiecePlan::new(context, &grid, &slab.volume.samples) else {
        return Ok(None);
    };
    let passes = NetPasses::upload(kernel, context, &grid, &slab.volume.samples, &plan)?;
    let totals = passes.count()?;
    Ok(passes.fits(&totals).then_some((passes, totals)))
}
