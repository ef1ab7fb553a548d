//! Pictures of meshes: a rasterizer with smooth shading, ambient occlusion and anti-aliasing.
//!
//! The view is orthographic. Each pixel has `SAMPLES` x `SAMPLES` subpixels. CPU and GPU take the same steps:
//! 1. find the nearest depth of each subpixel and its triangle;
//! 2. interpolate the normals and colours of that triangle;
//! 3. compute light, with occlusion from the depths around a subpixel (Mittring, "Finding Next Gen: CryEngine 2", 2007)
//!    relative to its tangent plane.

mod cpu;
mod gpu;
mod view;

use std::borrow::Cow;

use crate::{data::surface::Surface, device::Kernel, gpu::Context, util::error::Result};

pub use gpu::variants;
pub use view::{Frame, Render};

/// The normals of the surface, or if it has none, the sums of the normals of its triangles. They are not normalised.
fn normals(surface: &Surface) -> Result<Cow<'_, [[f32; 3]]>> {
    Ok(match surface.normals.is_empty() {
        true => Cow::Owned(surface.area_normals()?),
        false => Cow::Borrowed(&surface.normals),
    })
}

impl Kernel for Render {
    type In = Surface;
    type Out = Vec<u8>;
    const NAME: &'static str = "render";

    fn cpu(&self, surface: &Surface) -> Result<Vec<u8>> {
        self.check(surface)?;
        cpu::draw(self.params(surface), surface, &normals(surface)?)
    }

    fn gpu(&self, context: &Context, surface: &Surface) -> Result<Vec<u8>> {
        self.check(surface)?;
        gpu::draw(context, self.params(surface), surface, &normals(surface)?)
    }
}
