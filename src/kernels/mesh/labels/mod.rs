//! Surface nets of labels: the faces between all labels of a volume, in one pass (Frisken, "SurfaceNets for Multi-Label
//! Segmentations with Preservation of Sharp Boundaries", 2022).
//!
//! ```text
//! samples (x, y, z)     0 .. n          one label each; 0 is the background
//! points  (x, y, z)     0 .. n + 2      the samples, shifted by one, surrounded by zeros
//! cells   (x, y, z)     0 .. n + 1      between the points x and x + 1, y and y + 1, z and z + 1
//! ```
//! A cell whose corners differ has a vertex. An edge of the grid whose ends differ is crossed by a quad between the
//! four cells around it. Vertices start at the middle of their cells, which are corners of the samples' boxes, so the
//! faces enclose the volume of the samples. Each smoothing step then moves all vertices three quarters of the way to
//! the mean of their neighbours, but not out of their cells:
//! - the neighbours of a vertex are the vertices of the adjacent cells across faces with a crossed side. Where three or
//!   four sides of a face are crossed, more than two labels meet; a vertex on such a line has only neighbours on it;
//! - a vertex on the volume's box stays on the box.
//!
//! Neighbouring labels share vertices and quads, but each label has its own sheets in a cell: where a label touches
//! itself at an edge or a corner, the crossed edges around the cell form several loops (`sheets`). Such a vertex counts
//! once for each loop, so that the surface of every label is a closed manifold.
//!
//! Coordinates are integers, [`UNIT`](crate::data::label_mesh::UNIT) steps per sample, so all devices and slabs give
//! the same result. The canonical order is
//! - vertices: by z, y, x of their cell;
//! - quads: by z, y, x of the lower end of their edge, then by the axis of the edge.
//!
//! | module | holds |
//! |---|---|
//! | `params` | parameters, and the slices and layers that a slab needs |
//! | `sheets` | the loops of the 256 cases |
//! | `cpu`, `gpu` | the two implementations |
//! | `surfaces` | the surface of a single label |

mod cpu;
pub(super) mod gpu;
mod params;
mod sheets;
mod surfaces;

pub use params::{DEFAULT_STEPS, MAX_STEPS, SurfaceNets};
pub use surfaces::{LabelSurfaces, Scratch, world_positions};

use super::params::Slab;
use crate::{data::label_mesh::LabelMesh, device::Kernel, gpu::Context, util::error::Result};

impl Kernel for SurfaceNets {
    type In = Slab;
    type Out = LabelMesh;
    const NAME: &'static str = "surface nets";

    fn cpu(&self, slab: &Slab) -> Result<LabelMesh> {
        cpu::mesh(self, slab)
    }

    fn gpu(&self, context: &Context, slab: &Slab) -> Result<LabelMesh> {
        gpu::mesh(self, context, slab)
    }
}
