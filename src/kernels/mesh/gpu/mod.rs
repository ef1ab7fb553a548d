//! Marching cubes on a GPU: pieces of the slab that fit the device, one after another.

mod cubes;
mod layout;
mod pieces;
mod recipe;
mod tables;
mod upload;

pub use self::recipe::Recipe;

use self::pieces::for_pieces;
use super::params::{MarchingCubes, Slab};
use crate::{
    data::surface::Surface,
    gpu::{Context, Shader},
    util::error::Result,
};

/// Every text of this family that can run.
pub fn variants() -> Vec<Shader> {
    let mut shaders = layout::variants();
    shaders.extend(super::labels::gpu::variants());
    shaders
}

pub(super) fn mesh(kernel: &MarchingCubes, context: &Context, slab: &Slab) -> Result<Surface> {
    let mut surface = Surface::default();
    for_pieces(kernel, context, slab, |passes| {
        let first_vertex = slab.first_vertex + surface.positions.len() as u64;
        surface.append(passes.mesh(first_vertex)?)
    })?;
    Ok(surface)
}
