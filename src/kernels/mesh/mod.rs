//! Marching cubes: the surface where a volume's samples pass an isovalue, as shared vertices and
//! triangles.
//!
//! Both twins work on one bit per sample, "inside", packed 32 or 64 to a word along x. Where the words of
//! neighbouring rows differ, an edge of the grid is crossed: XOR finds the vertices, popcount numbers
//! them. The canonical order, which every device and every slab height reproduces, is
//! - vertices: by z, y, word of 32 points along x, axis of the edge (x, y, z), x;
//! - triangles: by z, y, x of their cell, then as in [`table`].
//!
//! Conventions: a sample i sits at `origin + (i + 0.5) * spacing`; it is inside when its value is
//! greater than the isovalue; normals point from inside to outside; x varies fastest.
//!
//! | module | holds |
//! |---|---|
//! | [`table`] | the 256 cases |
//! | [`variants`], `deciders` | the variants of ambiguous cases, and which one a cell is |
//! | `params` | parameters and slabs |
//! | `grid`, `voxel` | for both twins: the grid of points, samples as f32 |
//! | `cpu`, `gpu` | the twins |
//! | [`post`] | steps that need the whole surface |

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

pub use gpu::Recipe;
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
