//! From pixels to coefficients on a GPU.

use super::layout::{Blocks, IN_RANGE, MAX_ENTRY_BYTES, Offsets};
use crate::{
    gpu::{Batch, Buffer, Context, Shader},
    jpeg::{Component, Frame, SparseCoefficients},
    kernels::gpu_step::GpuLayout,
    shader, shader_struct,
    util::error::Result,
};

static FORWARD: Shader = shader!("jpeg/forward").unchecked(IN_RANGE);

/// All pairs of the number of channels and the number of pixels along x that share a sample of a component, as
/// [`Frame::for_pixels`] makes them.
pub(super) const PLANES: [(usize, usize); 3] = [(1, 1), (3, 1), (3, 2)];

/// The shader that computes planes from pixels of `channels` samples. `shared` pixels along x share a sample.
pub(super) fn forward(channels: usize, shared: usize) -> Shader {
    assert!(PLANES.contains(&(channels, shared)), "{channels} channels, {shared} shared");
    FORWARD.with(&[("CHANNELS", channels), ("SHARED", shared)])
}

shader_struct! {
    struct PlaneParams {
        width: u32, height: u32, pitch: u32, words: u32, total: u32, rows: u32, plane: u32, component: u32,
    }
}

/// Encodes pictures of one frame on a device.
#[derive(Debug)]
pub struct Encoder<'a> {
    context: &'a Context,
    layout: Offsets,
    /// One per component.
    planes: Vec<Shader>,
}

impl<'a> Encoder<'a> {
    /// An encoder of pictures of `frame`; `None` if a picture does not fit the device in one piece.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when the device fails.
    pub fn new(context: &'a Context, frame: &Frame) -> Result<Option<Self>> {
        let layout = Offsets::new(frame);
        if !layout.fits(context) {
            return Ok(None);
        }
        let frame = &layout.frame;
        let plane = |component: &Component| {
            let shared = frame.max_sampling()[0] / component.sampling[0];
            forward(frame.colour.channels(), shared)
        };
        let planes: Vec<_> = frame.components.iter().map(plane).collect();
        Shader::parse(&planes, context.timings());
        Ok(Some(Self { context, layout, planes }))
    }

    /// The layout of the pixels.
    pub fn pixels(&self) -> GpuLayout {
        self.layout.pixels()
    }

    /// Records the passes from [pixels](Encoder::pixels) to coefficients.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when the device has no memory left.
    pub fn record(&self, batch: &mut Batch<'_>, pixels: &Buffer) -> Result<Encoded> {
        let Self { context, layout, .. } = self;
        let frame = &layout.frame;
        let planes = context.allocate("jpeg planes", layout.plane_bytes())?;
        let blocks = context.allocate("jpeg blocks", layout.block_bytes())?;
        let entries =
            context.allocate("jpeg entries", MAX_ENTRY_BYTES * layout.block_count() as u64)?;
        let cursor = context.allocate("jpeg cursor", 4)?;
        batch.clear(&cursor);
        let [width, height] = frame.size;
        for (c, shader) in self.planes.iter().enumerate() {
            let [across, down] = frame.blocks(c);
            let params = PlaneParams {
                width: width as u32,
                height: height as u32,
                pitch: layout.pitch_words(),
                words: 2 * across as u32,
                total: (16 * across * down) as u32,
                rows: frame.samples(c)[1] as u32,
                plane: 16 * layout.blocks[c] as u32,
                component: c as u32,
            };
            let groups = context.fold(u64::from(params.total).div_ceil(64))?;
            let buffers = [("source", pixels), ("planes", &planes)];
            batch.dispatch("jpeg planes", shader, "plane", &params, &buffers, groups)?;
        }
        for c in 0..frame.components.len() {
            let params = layout.block_params(c);
            let groups = context.fold(u64::from(params.blocks).div_ceil(8))?;
            let buffers = [("made", &planes), ("blocks", &blocks), ("entries", &entries)];
            let buffers = [&buffers[..], &[("cursor", &cursor)]].concat();
            // This entry point is the same in all shaders.
            let (shader, entry) = (&self.planes[0], "coefficients");
            batch.dispatch("jpeg forward DCT", shader, entry, &params, &buffers, groups)?;
        }
        Ok(Encoded { coefficients: Blocks { blocks, entries }, cursor })
    }

    /// Reads the coefficients that [`Encoder::record`] computes.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when the device fails.
    pub fn read(&self, encoded: &Encoded) -> Result<SparseCoefficients> {
        let (context, Blocks { blocks, entries }) = (self.context, &encoded.coefficients);
        let blocks = context.read(blocks, self.layout.block_count())?;
        let count: Vec<u32> = context.read(&encoded.cursor, 1)?;
        let entries = context.read(entries, count[0] as usize)?;
        Ok(SparseCoefficients { frame: self.layout.frame.clone(), blocks, entries })
    }
}

/// Coefficients that were made on a device; `cursor` holds the number of their entries.
#[derive(Debug)]
pub struct Encoded {
    coefficients: Blocks,
    cursor: Buffer,
}
