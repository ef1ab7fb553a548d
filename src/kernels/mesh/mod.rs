//! Marching cubes: the isosurface of a volume, as shared vertices and triangles.
//!
//! The CPU and the GPU work on one bit per sample, "inside", packed 32 or 64 to a word along x. The XOR of the words of
//! neighbouring rows gives the crossed edges of the grid; their popcounts number the vertices. Every device and every
//! slab height produces the same order:
//! - vertices: by z, y, word of 32 points along x, axis of the edge (x, y, z), x;
//! - triangles: by z, y, x of their cell, then as in [`table`].
//!
//! Conventions: a sample i sits at `origin + (i + 0.5) * spacing`; it is inside when its value is
//! greater than the isovalue; normals point from inside to outside; x varies fastest.
//!
//! | module | holds |
//! |---|---|
//! | [`table`] | the 256 cases |
//! | [`variants`], `deciders` | the variants of ambiguous cases, and how a cell's variant is decided |
//! | `params` | parameters and slabs |
//! | `grid`, `voxel` | grid of points and samples as f32, for CPU and GPU |
//! | `cpu`, `gpu` | the two implementations |
//! | [`labels`] | surface nets of label volumes |
//! | [`post`] | operations on the whole surface: simplification, smoothing, measures |

mod cpu;
mod deciders;
pub(super) mod gpu;
mod grid;
pub mod labels;
mod params;
pub mod post;
pub mod table;
pub mod variants;
mod voxel;

pub use gpu::PipelineManifest;
pub use params::{MarchingCubes, Slab, Topology};

use crate::{data::surface::Surface, device::Kernel, gpu::Context, util::error::Result};

impl Kernel for MarchingCubes {
    type In = Slab;
    type Out = Surface;
    const NAME: &'static str = "marching cubes";

    fn cpu(&self, slab: &Slab) -> Result<Surface> {
        cpu::mesh(self, slab)
    }

    fn gpu(&self, context: &Context, slab: &Slab) -> Result<Surface> {
        gpu::mesh(self, context, slab)
    }
}
