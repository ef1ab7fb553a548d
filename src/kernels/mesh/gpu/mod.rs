//! Marching cubes on a GPU: pieces of the slab that fit the device, one after another.

mod cubes;
mod layout;
mod pieces;
mod recipe;
mod tables;
mod upload;

pub(super) use self::pieces::mesh;
pub use self::recipe::Recipe;

use crate::gpu::Shader;

/// Every text of this family that can run.
pub fn variants() -> Vec<Shader> {
    let mut shaders = layout::variants();
    shaders.extend(super::labels::gpu::variants());
    shaders
}
