//! Surface nets on a GPU: pieces of the slab that fit the device, one after another.

mod passes;

use std::ops::Range;

use self::passes::{NetPasses, Prepared};
use super::{
    super::params::Slab,
    params::{NetGrid, SurfaceNets, check_count},
};
use crate::{
    data::label_mesh::LabelMesh,
    gpu::{Context, Shader},
    util::error::{Error, Result},
};

/// Every text of this family that can run.
pub fn variants() -> Vec<Shader> {
    passes::variants()
}

pub(super) fn mesh(kernel: &SurfaceNets, context: &Context, slab: &Slab) -> Result<LabelMesh> {
    let mut mesh = LabelMesh::default();
    for_pieces(kernel, context, slab, |passes, totals| {
        let first_vertex = slab.first_vertex + mesh.vertices.len() as u64;
        check_count(first_vertex, totals.core_vertices().into())?;
        let found = [totals.core_vertices().into(), totals.quads.into()];
        kernel.check_bytes(slab, found, totals.vertices.into())?;
        mesh.append(passes.mesh(&totals, first_vertex)?)
    })?;
    Ok(mesh)
}

/// Uploads the slab piece by piece, counts the results of each, and calls `mesh`.
fn for_pieces<'a>(
    kernel: &SurfaceNets,
    context: &'a Context,
    slab: &Slab,
    mut mesh: impl FnMut(NetPasses<'a>, passes::Totals) -> Result<()>,
) -> Result<()> {
    if NetGrid::new(kernel, slab)?.is_none() {
        return Ok(());
    }
    let mut left = vec![slab.layers.clone()];
    while let Some(layers) = left.pop() {
        match piece(kernel, context, slab, &layers)? {
            Some((passes, totals)) => mesh(passes, totals)?,
            None if layers.len() > 1 => {
                let middle = layers.start + layers.len() / 2;
                left.extend([middle..layers.end, layers.start..middle]);
            }
            None => {
                return Err(Error::gpu(format_args!(
                    "{} cannot hold a layer of labels with the layers that it depends on in bindings of {} bytes",
                    context.info.name,
                    context.max_binding()
                )));
            }
        }
    }
    Ok(())
}

/// A piece and its totals; `None` where it does not fit.
fn piece<'a>(
    kernel: &SurfaceNets,
    context: &'a Context,
    slab: &Slab,
    layers: &Range<usize>,
) -> Result<Option<(NetPasses<'a>, passes::Totals)>> {
    let slab = Slab { layers: layers.clone(), ..slab.clone() };
    let Some(grid) = NetGrid::new(kernel, &slab)? else { return Ok(None) };
    let Some(prepared) = Prepared::new(context, &grid, &slab.volume.samples) else {
        return Ok(None);
    };
    let passes = NetPasses::upload(kernel, context, &grid, &slab.volume.samples, &prepared)?;
    let totals = passes.count()?;
    Ok(passes.fits(&totals).then_some((passes, totals)))
}
