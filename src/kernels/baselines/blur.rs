//! Direct blurs of RGBA8 images, which read every tap of every pixel.

use crate::{
    data::{grid::Grid, samples::Samples},
    device::Kernel,
    gpu::{Buffer, Context, Shader},
    kernels::blur::{Blur, Method},
    shader, shader_struct,
    util::error::Result,
};

pub(super) static SHADER: Shader = shader!("baselines/blur");

shader_struct! {
    struct DirectBlurParams { width: u32, height: u32, radius: u32, vertical: u32 }
}

/// A blur by direct sums: Gaussians in two dimensions at once, boxes along x and then along y. The edge mode is clamp.
#[derive(Clone, Debug)]
pub struct DirectBlur(pub Blur);

impl Kernel for DirectBlur {
    type In = Grid;
    type Out = Samples;
    const NAME: &'static str = "direct blur";

    fn cpu(&self, image: &Grid) -> Result<Samples> {
        self.0.cpu(image)
    }

    fn gpu(&self, context: &Context, image: &Grid) -> Result<Samples> {
        let Blur { method, axes: [taps, ..], .. } = self.0;
        let [width, height, _] = image.dims.map(|len| len as u32);
        let input = context.upload("image", image.samples.as_bytes())?;
        let output = context.allocate("blurred image", input.bytes())?;
        let mut batch = context.batch();
        let entry = match method {
            Method::Gaussian => "gaussian",
            Method::Box => "box_filter",
        };
        let pixels = width as usize * height as usize;
        let weights = taps.half_weights(method).into_iter().map(|weight| weight as f32);
        let weights = context.upload("weights", &weights.collect::<Vec<_>>())?;
        let mut record = |vertical: u32, from: &Buffer, to: &Buffer| {
            let radius = taps.radius as u32;
            let params = DirectBlurParams { width, height, radius, vertical };
            let buffers = [("source", from), ("target_", to), ("weights", &weights)];
            batch.dispatch_over("blur direct", &SHADER, entry, &params, &buffers, pixels)
        };
        match method {
            Method::Gaussian => record(0, &input, &output)?,
            Method::Box => {
                let between = context.allocate("half blurred image", input.bytes())?;
                record(0, &input, &between)?;
                record(1, &between, &output)?;
            }
        }
        batch.run()?;
        Ok(Samples::U8(context.read(&output, image.samples.len())?))
    }
}
