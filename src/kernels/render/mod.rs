//! Pictures of meshes: a rasterizer with smooth shading, ambient occlusion and anti-aliasing.
//!
//! The view is orthographic. Each pixel has `SAMPLES` x `SAMPLES` subpixels, and both twins take the same
//! steps:
//! 1. the nearest depth of each subpixel, and the triangle it belongs to;
//! 2. that triangle's normals and colours, interpolated;
//! 3. light, with occlusion from the depths around a subpixel (Mittring, "Finding Next Gen: CryEngine 2",
//!    2007), measured against its tangent plane.

mod cpu;
mod gpu;
mod view;

use std::borrow::Cow;

use crate::{data::surface::Surface, device::Kernel, gpu::Context, util::error::Result};

pub use gpu::variants;
pub use view::{Frame, Render};

/// The surface's normals, or sums of its triangles' normals if it has none; of any length.
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
