//! From coefficients to pixels on a GPU.

use super::layout::{Blocks, IN_RANGE, Offsets};
use crate::{
    gpu::{Batch, Buffer, Context, Shader},
    jpeg::{ColourModel, Frame, SparseCoefficients, Upsampling},
    kernels::gpu_step::GpuLayout,
    shader, shader_struct,
    util::{error::Result, memory},
};

static INVERSE: Shader = shader!("jpeg/inverse").unchecked(IN_RANGE);

/// The colour models. The index of each is `MODEL` in the shader.
pub(super) const MODELS: [ColourModel; 5] =
    [ColourModel::Grey, ColourModel::YCbCr, ColourModel::Rgb, ColourModel::Cmyk, ColourModel::Ycck];

/// The shader that converts samples of the colour model `model` to pixels.
pub(super) fn inverse(model: ColourModel) -> Shader {
    let number = MODELS.iter().position(|&known| known == model).expect("all are listed");
    INVERSE.with(&[("MODEL", number)])
}

shader_struct! {
    struct PixelParams {
        width: u32, quads: u32, total: u32, pitch: u32, plane: [u32; 4], stride: [u32; 4], last_x: [u32; 4],
        last_y: [u32; 4], upsampling: [u32; 4],
    }
}

/// Decodes pictures of one frame on a device.
#[derive(Debug)]
pub struct Decoder<'a> {
    context: &'a Context,
    layout: Offsets,
    pixel_params: PixelParams,
    inverse: Shader,
}

impl<'a> Decoder<'a> {
    /// A decoder of pictures of `frame`; `None` if a picture does not fit the device in one piece.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when the device fails,
    /// [`Kind::BadInput`](crate::util::error::Kind::BadInput) for components of fractional resolution.
    pub fn new(context: &'a Context, frame: &Frame) -> Result<Option<Self>> {
        let layout = Offsets::new(frame);
        if !layout.fits(context) {
            return Ok(None);
        }
        let frame = &layout.frame;
        let [width, height] = frame.size;
        let quads = width.div_ceil(4);
        let mut params = PixelParams {
            width: width as u32,
            quads: quads as u32,
            total: (quads * height) as u32,
            pitch: layout.pitch_words(),
            ..PixelParams::default()
        };
        for c in 0..frame.components.len() {
            let [columns, rows] = frame.samples(c);
            params.plane[c] = 64 * layout.blocks[c] as u32;
            params.stride[c] = 8 * frame.blocks(c)[0] as u32;
            (params.last_x[c], params.last_y[c]) = (columns as u32 - 1, rows as u32 - 1);
            params.upsampling[c] = match frame.upsampling(c)? {
                Upsampling::Full => 0,
                Upsampling::Across => 1,
                Upsampling::Down => 2,
                Upsampling::Both => 3,
                Upsampling::Repeat([across, down]) => 4 + (across + 16 * down) as u32,
            };
        }
        // One shader for both entry points saves parsing another one, though `samples` does not depend on MODEL.
        let inverse = inverse(frame.colour);
        Ok(Some(Self { context, inverse, pixel_params: params, layout }))
    }

    /// Decodes a picture.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::util::error::Kind::Gpu) if the device fails.
    pub fn decode(&self, coefficients: &SparseCoefficients) -> Result<Vec<u8>> {
        let input = self.upload(coefficients)?;
        let mut batch = self.context.batch();
        let output = self.record(&mut batch, &input)?;
        batch.run()?;
        let mut pixels = memory::zeros(self.layout.frame.pixel_bytes())?;
        self.pixels().read(self.context, &output, &mut pixels)?;
        Ok(pixels)
    }

    /// The layout of the pixels.
    pub fn pixels(&self) -> GpuLayout {
        self.layout.pixels()
    }

    /// Copies `coefficients` to the device.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::util::error::Kind::Gpu) if the device fails.
    pub fn upload(&self, coefficients: &SparseCoefficients) -> Result<Blocks> {
        Ok(Blocks {
            blocks: self.context.upload("jpeg blocks", &coefficients.blocks)?,
            entries: self.context.upload("jpeg entries", &coefficients.entries)?,
        })
    }

    /// Records the passes from `coefficients` to [pixels](Decoder::pixels).
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::util::error::Kind::Gpu) if the device has no memory left.
    pub fn record(&self, batch: &mut Batch<'_>, coefficients: &Blocks) -> Result<Buffer> {
        let Self { context, layout, inverse, .. } = self;
        let planes = context.allocate("jpeg planes", layout.plane_bytes())?;
        let pixels = context.allocate("pixels", layout.pixels().bytes())?;
        for c in 0..layout.frame.components.len() {
            let params = layout.block_params(c);
            let groups = context.fold(u64::from(params.blocks).div_ceil(8))?;
            let Blocks { blocks, entries } = coefficients;
            let buffers = [("blocks", blocks), ("entries", entries), ("planes", &planes)];
            batch.dispatch("jpeg inverse DCT", inverse, "samples", &params, &buffers, groups)?;
        }
        let groups = context.fold(u64::from(self.pixel_params.total).div_ceil(64))?;
        let buffers = [("made", &planes), ("target_", &pixels)];
        batch.dispatch("jpeg pixels", inverse, "pixels", &self.pixel_params, &buffers, groups)?;
        Ok(pixels)
    }
}
