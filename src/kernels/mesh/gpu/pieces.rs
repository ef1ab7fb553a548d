//! Splits a slab into pieces that fit the device.

use std::ops::Range;

use super::{
    super::{
        grid::CellGrid,
        params::{MarchingCubes, Slab, Topology},
        variants::MAX_TRIANGLES,
        voxel::Isovalue,
    },
    cubes::SlabPasses,
    layout::{block, blocks_words, plane_words},
    upload::Voxels,
};
use crate::{
    data::surface::Surface,
    gpu::Context,
    util::error::{Error, Result},
};

/// Meshes the slab piece by piece.
pub(in super::super) fn mesh(
    kernel: &MarchingCubes,
    context: &Context,
    slab: &Slab,
) -> Result<Surface> {
    let mut surface = Surface::default();
    let Some(grid) = CellGrid::new(kernel, slab) else { return Ok(surface) };
    let iso = Isovalue::new(kernel.iso, &slab.volume.samples);
    let voxels = Voxels::new(&slab.volume.samples, &iso)?;
    for layers in split(context, slab, &grid, kernel.topology, &voxels)? {
        let passes = SlabPasses::upload(kernel, context, slab, layers, &voxels, iso)?;
        let first_vertex = slab.first_vertex + surface.positions.len() as u64;
        surface.append(passes.mesh(first_vertex)?)?;
    }
    Ok(surface)
}

/// Splits the layers of the slab into pieces that fit the device's bindings. The samples of a single layer may be split
/// further into [bands](super::upload::RowBand).
fn split(
    context: &Context,
    slab: &Slab,
    grid: &CellGrid,
    topology: Topology,
    voxels: &Voxels<'_>,
) -> Result<Vec<Range<usize>>> {
    let limit = context.max_binding();
    let max_triangles = match topology {
        Topology::Classic => 5,
        Topology::Exact => MAX_TRIANGLES as u64,
    };
    let bits_fit = |layers: usize| {
        let words = (grid.slice_words() * (layers + 1)) as u64;
        let bits = plane_words(grid.slice_words(), layers + 2, layers, voxels.has_nan, topology);
        // Vertices, up to three per point, and triangles are counted in 32 bits.
        let points = (grid.points[0] * grid.points[1] * (layers + 1)) as u64;
        4 * bits <= limit
            && 4 * blocks_words(words) <= limit
            && bits.div_ceil(block()) <= context.limits.folded_workgroups()
            && max_triangles * points <= u64::from(u32::MAX)
    };
    let fits = |layers: usize| {
        // The first slab has fewer slices below it; count as many as the others have.
        let slices = (layers + 3).min(slab.depth);
        (grid.width * grid.height * slices * voxels.size) as u64 <= limit && bits_fit(layers)
    };
    let fitting = (1..=slab.layers.len()).rev().find(|&layers| fits(layers));
    let height = fitting.or_else(|| bits_fit(1).then_some(1)).ok_or_else(|| {
        Error::gpu(format_args!(
            "{} cannot hold a bit for each of three slices of {}x{} samples in one binding of \
             {limit} bytes",
            context.info.name, grid.width, grid.height
        ))
    })?;
    let Range { start, end } = slab.layers;
    Ok((start..end).step_by(height).map(|start| start..(start + height).min(end)).collect())
}
