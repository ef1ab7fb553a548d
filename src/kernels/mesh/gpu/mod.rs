//! Marching cubes on a GPU. A slab is meshed in pieces that fit the device, one after another.

mod cubes;
mod layout;
mod manifest;
mod pieces;
mod tables;
mod upload;

pub use self::manifest::PipelineManifest;
pub(super) use self::pieces::mesh;

use crate::gpu::Shader;

/// All shaders of this family, in every specialisation.
pub fn variants() -> Vec<Shader> {
    let mut shaders = layout::variants();
    shaders.extend(super::labels::gpu::variants());
    shaders
}
