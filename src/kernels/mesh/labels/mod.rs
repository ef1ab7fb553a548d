//! Surface nets of labels: the faces between all labels of a volume in one pass (Frisken, "SurfaceNets for Multi-Label
//! Segmentations with Preservation of Sharp Boundaries", 2022).
//!
//! ```text
//! samples (x, y, z)     0 .. n          a label each, 0 is outside of all
//! points  (x, y, z)     0 .. n + 2      the samples, moved by one, and zeros around them
//! cells   (x, y, z)     0 .. n + 1      between the points x and x + 1, y and y + 1, z and z + 1
//! ```
//! A cell whose corners differ has a vertex, and an edge of the grid whose ends differ is crossed by a quad between the
//! four cells around it. Vertices begin in the middle of their cells, where they are corners of the samples' boxes, so
//! that the faces enclose as much as the samples. Each step of smoothing then moves all vertices at once three quarters
//! of the way to the mean of their neighbours, but not out of their cells:
//! - neighbours are the vertices of the cells behind faces with a crossed side. Where three or four sides of a face are
//!   crossed, more than two labels meet: a vertex on such a line has only neighbours on the line;
//! - a vertex on the volume's box stays on it.
//!
//! Neighbouring labels share vertices and quads. Only the sheets of its surface in a cell are each label's own: where a
//! label touches itself at an edge or a corner, the crossed edges around the cell make several loops (`sheets`). A
//! vertex there counts once for each loop, so that the surface of every label is a closed manifold.
//!
//! Coordinates are integers, [`UNIT`](crate::data::label_mesh::UNIT) steps a sample, so that both twins and all slabs
//! give the same. The canonical order is
//! - vertices: by z, y, x of their cell;
//! - quads: by z, y, x of the lower end of their edge, then by the axis of the edge.
//!
//! | module | holds |
//! |---|---|
//! | `params` | parameters, and which slices and layers a slab needs |
//! | `sheets` | the loops of the 256 cases |
//! | `cpu`, `gpu` | the twins |
//! | `surfaces` | each label by itself |

mod cpu;
pub(super) mod gpu;
mod params;
mod sheets;
mod surfaces;

pub use params::SurfaceNets;
pub use surfaces::{LabelSurfaces, Scratch, placed};

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
