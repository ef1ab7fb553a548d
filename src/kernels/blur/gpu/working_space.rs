//! Conversion of 8-bit samples to the working space and back on a GPU.

use crate::{
    gpu::{Batch, Buffer, Context, Shader},
    shader, shader_struct,
    util::error::Result,
};

static SHADER: Shader = shader!("blur/working_space");

shader_struct! {
    struct WorkingSpaceParams {
        samples: u32,
    }
}

/// The shader for pixels of `channels` channels. `has_alpha`: the last one is alpha. `premultiply`: colours are multiplied
/// by it. `linear`: colours are in linear light.
fn specialised(channels: usize, [has_alpha, premultiply, linear]: [bool; 3]) -> Shader {
    let kinds = [("ALPHA", has_alpha), ("PREMULTIPLY", premultiply), ("LINEAR", linear)];
    SHADER.with(&[("CHANNELS", channels)]).with(&kinds)
}

/// The shaders for all kinds of pixels.
pub fn variants() -> Vec<Shader> {
    let opaque = [1, 3].map(|channels| specialised(channels, [false, false, true]));
    let kinds = [[true, true, false], [true, true, true], [true, false, true]];
    let alpha =
        [2, 4].into_iter().flat_map(|channels| kinds.map(|kind| specialised(channels, kind)));
    opaque.into_iter().chain(alpha).collect()
}

/// The working space of 8-bit samples on a device.
#[derive(Debug)]
pub struct DeviceSpace {
    shader: Shader,
    /// Lookup tables: from opaque 8-bit colours to working values, and from linear light (0 to 65535) to 8-bit sRGB.
    tables: [Buffer; 2],
}

impl DeviceSpace {
    /// Uploads the lookup tables. `kind` is `[has_alpha, premultiply, linear]`: the last of `channels` channels is alpha,
    /// colours are multiplied by it, and they are in linear light.
    pub(in super::super) fn new(
        context: &Context,
        channels: usize,
        kind: [bool; 3],
        opaque: &[u32],
        bytes: &[u8],
    ) -> Result<Self> {
        let tables = [context.upload("working", opaque)?, context.upload("stored", bytes)?];
        Ok(Self { shader: specialised(channels, kind), tables })
    }

    /// Records the conversion of stored samples, or of working samples back to stored ones, and returns the result.
    pub fn convert(
        &self,
        context: &Context,
        batch: &mut Batch<'_>,
        (source, samples): (&Buffer, usize),
        to_stored: bool,
    ) -> Result<Buffer> {
        let (entry, size) = if to_stored { ("to_stored", 1) } else { ("to_working", 4) };
        let target = context.allocate(entry, (samples * size) as u64)?;
        let buffers = [
            ("source", source),
            ("table", &self.tables[usize::from(to_stored)]),
            ("target_", &target),
        ];
        let words = (samples * size).div_ceil(4);
        let params = WorkingSpaceParams { samples: samples as u32 };
        batch.dispatch_over(entry, &self.shader, entry, &params, &buffers, words)?;
        Ok(target)
    }
}
