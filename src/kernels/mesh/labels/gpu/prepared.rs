//! Labels that stay on the device, to be meshed again and again: what bench measures.

use super::{
    super::{super::params::Slab, params::SurfaceNets},
    for_pieces,
    passes::{NetBuffers, NetPasses, Totals},
};
use crate::{data::label_mesh::LabelMesh, error::Result, gpu::Context};

/// All pieces of a slab on the device, and room for their results.
pub struct PreparedNets<'a> {
    pieces: Vec<(NetPasses<'a>, Totals, NetBuffers)>,
}

impl<'a> PreparedNets<'a> {
    /// Uploads `slab`, and counts its vertices and quads for the room that they take.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device fails.
    pub fn new(kernel: &SurfaceNets, context: &'a Context, slab: &Slab) -> Result<Self> {
        let mut pieces = Vec::new();
        for_pieces(kernel, context, slab, |passes, totals| {
            let buffers = passes.buffers(&totals)?;
            pieces.push((passes, totals, buffers));
            Ok(())
        })?;
        Ok(Self { pieces })
    }

    /// All passes, with the readback of the totals between them, but not of the results.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device fails.
    pub fn run(&self) -> Result<()> {
        let mut first_vertex = 0;
        for (passes, _, buffers) in &self.pieces {
            let totals = passes.count()?;
            let mut batch = passes.context.batch();
            passes.record_mesh(&mut batch, &totals, buffers, first_vertex)?;
            batch.run()?;
            first_vertex += u64::from(totals.core_vertices());
        }
        Ok(())
    }

    /// What the last run made.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device fails.
    pub fn mesh(&self) -> Result<LabelMesh> {
        let mut mesh = LabelMesh::default();
        for (passes, totals, buffers) in &self.pieces {
            mesh.append(passes.read(totals, buffers)?)?;
        }
        Ok(mesh)
    }
}
