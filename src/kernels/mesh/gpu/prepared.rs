//! A volume that stays on the device, to be meshed again and again: what bench measures.

use super::{
    super::params::{MarchingCubes, Slab},
    cubes::SlabPasses,
    emission::{Emission, SurfaceBuffers},
    pieces::for_pieces,
};
use crate::{data::surface::Surface, error::Result, gpu::Context};

/// All pieces of a slab on the device, and room for their results.
pub struct PreparedSlab<'a> {
    pieces: Vec<(SlabPasses<'a>, Vec<(Emission, SurfaceBuffers)>)>,
}

impl<'a> PreparedSlab<'a> {
    /// Uploads `slab`, and counts its vertices and triangles for the room that they take.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device fails.
    pub fn new(kernel: &MarchingCubes, context: &'a Context, slab: &Slab) -> Result<Self> {
        let mut pieces = Vec::new();
        for_pieces(kernel, context, slab, |passes| {
            let emissions = passes.emissions(&passes.count()?)?.into_iter();
            let outputs = emissions.map(|range| Ok((range.clone(), passes.buffers(&range)?)));
            let outputs = outputs.collect::<Result<_>>()?;
            pieces.push((passes, outputs));
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
        for (passes, outputs) in &self.pieces {
            let totals = passes.count()?;
            let mut batch = passes.context.batch();
            for (range, buffers) in outputs {
                passes.emit(&mut batch, range, buffers, first_vertex)?;
            }
            batch.run()?;
            first_vertex += u64::from(totals.vertices);
        }
        Ok(())
    }

    /// What the last run made.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device fails.
    pub fn surface(&self) -> Result<Surface> {
        let mut surface = Surface::default();
        for (passes, outputs) in &self.pieces {
            for (range, buffers) in outputs {
                surface.append(passes.read(range, buffers)?)?;
            }
        }
        Ok(surface)
    }
}
