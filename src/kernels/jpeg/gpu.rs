//! The GPU twins: coefficients and pixels are in storage buffers. A picture that does not fit is processed in bands of
//! MCU rows.

use std::sync::Arc;

use crate::{
    data::jpeg::{
        ColourModel, Component, Entry, Frame, SparseBlock, SparseCoefficients, Upsampling, ZIGZAG,
        first_entry,
    },
    error::{Error, Result},
    gpu::{Batch, Buffer, Context, Pipeline, Shader},
    memory, shader, shader_struct,
};

const IN_RANGE: &str = "blocks, entries, planes and rows are indexed below the numbers that the host sizes the buffers by; \
    columns and rows are limited to the last of a plane";

static INVERSE: Shader = shader!("jpeg/inverse").unchecked(IN_RANGE);
static FORWARD: Shader = shader!("jpeg/forward").unchecked(IN_RANGE);

/// The colour models. The index of each is its number in the shader, `MODEL`.
const MODELS: [ColourModel; 5] =
    [ColourModel::Grey, ColourModel::YCbCr, ColourModel::Rgb, ColourModel::Cmyk, ColourModel::Ycck];

/// Channels of pixels, and number of pixels along x that share a sample of a component, for all [`Frame::for_pixels`].
const PLANES: [(usize, usize); 3] = [(1, 1), (3, 1), (3, 2)];

/// The shader that converts samples of the colour model `model` to pixels.
fn inverse(model: ColourModel) -> Shader {
    let number = MODELS.iter().position(|&known| known == model).expect("all are listed");
    INVERSE.with(&[("MODEL", &format!("{number}u"))])
}

/// The shader that computes planes from pixels of `channels` channels, with each sample shared by `shared` pixels along
/// x.
fn forward((channels, shared): (usize, usize)) -> Shader {
    assert!(PLANES.contains(&(channels, shared)), "{channels} channels, {shared} shared");
    FORWARD.with(&[("CHANNELS", &format!("{channels}u")), ("SHARED", &format!("{shared}u"))])
}

/// All specializations of the shaders that may run.
pub fn variants() -> Vec<Shader> {
    let plain = [INVERSE.clone(), FORWARD.clone()];
    plain.into_iter().chain(MODELS.map(inverse)).chain(PLANES.map(forward)).collect()
}

shader_struct! {
    struct BlockParams { blocks: u32, across: u32, first: u32, plane: u32, order: [[u32; 4]; 16] }
}

shader_struct! {
    struct PixelParams {
        width: u32, quads: u32, total: u32, pitch: u32, plane: [u32; 4], stride: [u32; 4], last_x: [u32; 4],
        last_y: [u32; 4], upsampling: [u32; 4],
    }
}

shader_struct! {
    struct PlaneParams {
        width: u32, height: u32, pitch: u32, words: u32, total: u32, rows: u32, plane: u32, component: u32,
    }
}

/// Rows are padded to a multiple of this number of pixels, as the rows of the blurs are.
const PITCH: usize = 16;

/// The offsets of the components of a picture in one buffer of blocks and one buffer of samples.
#[derive(Clone, Debug)]
struct Layout {
    frame: Frame,
    /// Number of blocks before each component, and of all blocks.
    blocks: Vec<usize>,
}

/// Bytes of the maximal number of entries of a block.
const ENTRIES: u64 = 63 * size_of::<Entry>() as u64;

impl Layout {
    fn new(frame: &Frame) -> Self {
        let blocks = (0..=frame.components.len()).map(|c| frame.first_block(c)).collect();
        Self { frame: frame.clone(), blocks }
    }

    fn all(&self) -> usize {
        self.blocks[self.frame.components.len()]
    }

    /// Bytes of all blocks.
    fn block_bytes(&self) -> u64 {
        (self.all() * size_of::<SparseBlock>()) as u64
    }

    /// Bytes of all planes.
    fn plane_bytes(&self) -> u64 {
        self.all() as u64 * 64
    }

    /// Number of pixels from row to row.
    fn pitch(&self) -> usize {
        self.frame.size[0].next_multiple_of(PITCH)
    }

    /// Bytes of the pixels.
    fn pixel_bytes(&self) -> u64 {
        (self.pitch() * self.frame.colour.channels() * self.frame.size[1]) as u64
    }

    fn block_params(&self, c: usize) -> BlockParams {
        BlockParams {
            blocks: (self.blocks[c + 1] - self.blocks[c]) as u32,
            across: self.frame.blocks(c)[0] as u32,
            first: self.blocks[c] as u32,
            plane: 16 * self.blocks[c] as u32,
            order: order(&self.frame.components[c]),
        }
    }

    /// Whether the picture fits the device in one piece.
    fn fits(&self, context: &Context) -> bool {
        let largest = (ENTRIES * self.all() as u64).max(self.pixel_bytes());
        let groups = self.all().div_ceil(8).max(self.pixel_bytes() as usize / 4 / 64 + 1) as u64;
        largest <= context.max_binding() && context.fold(groups).is_ok()
    }

    /// The layout of `rows` MCU rows of this picture from row `first` on.
    fn band(&self, first: usize, rows: usize) -> Self {
        let row = 8 * self.frame.most()[1];
        let [width, height] = self.frame.size;
        let size = [width, (rows * row).min(height - first * row)];
        Self::new(&Frame { size, ..self.frame.clone() })
    }

    /// The maximal number of MCU rows of a band that fits; an error if not even `least` rows fit.
    fn rows(&self, context: &Context, least: usize) -> Result<usize> {
        let [_, all] = self.frame.mcus();
        let fits = |&rows: &usize| self.band(0, rows).fits(context);
        let mut rows = all;
        while rows > least && !fits(&rows) {
            rows = (rows / 2).max(least);
        }
        Some(rows).filter(fits).ok_or_else(|| {
            let [width, _] = self.frame.size;
            Error::gpu(format_args!("{} has no room for rows of {width} pixels", context.info.name))
        })
    }
}

/// Index row by row << 16 | quantization step, for each coefficient in zig-zag order.
fn order(component: &Component) -> [[u32; 4]; 16] {
    let words = ZIGZAG.map(|at| u32::from(at) << 16 | u32::from(component.steps[usize::from(at)]));
    *words.as_chunks().0.first_chunk().expect("64 words")
}

/// Coefficients on a device.
#[derive(Debug)]
pub struct Blocks {
    blocks: Buffer,
    entries: Buffer,
}

/// Decodes pictures of one frame on a device.
#[derive(Debug)]
pub struct Decoder<'a> {
    context: &'a Context,
    layout: Layout,
    pixel_params: PixelParams,
    samples: Arc<Pipeline>,
    pixels: Arc<Pipeline>,
}

impl<'a> Decoder<'a> {
    /// For pictures of `frame`; `None` if such a picture does not fit the device in one piece.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) if the device fails, [`Kind::BadInput`](crate::error::Kind::BadInput) if
    /// the resolution of a component is no integer fraction of the picture's.
    pub fn new(context: &'a Context, frame: &Frame) -> Result<Option<Self>> {
        let layout = Layout::new(frame);
        match layout.fits(context) {
            true => Self::with_layout(context, layout).map(Some),
            false => Ok(None),
        }
    }

    fn with_layout(context: &'a Context, layout: Layout) -> Result<Self> {
        let frame = &layout.frame;
        let [width, height] = frame.size;
        let quads = width.div_ceil(4);
        let mut params = PixelParams {
            width: width as u32,
            quads: quads as u32,
            total: (quads * height) as u32,
            pitch: (layout.pitch() * frame.colour.channels() / 4) as u32,
            ..PixelParams::default()
        };
        for c in 0..frame.components.len() {
            let [columns, rows] = frame.samples(c);
            params.plane[c] = 64 * layout.blocks[c] as u32;
            params.stride[c] = 8 * frame.blocks(c)[0] as u32;
            (params.last_x[c], params.last_y[c]) = (columns as u32 - 1, rows as u32 - 1);
            params.upsampling[c] = match frame.upsampling(c).ok_or_else(super::fractional)? {
                Upsampling::Full => 0,
                Upsampling::Across => 1,
                Upsampling::Down => 2,
                Upsampling::Both => 3,
                Upsampling::Repeat([across, down]) => 4 + (across + 16 * down) as u32,
            };
        }
        Ok(Self {
            samples: context.pipeline(&INVERSE, "samples")?,
            pixels: context.pipeline(&inverse(frame.colour), "pixels")?,
            context,
            pixel_params: params,
            layout,
        })
    }

    /// Number of pixels from row to row.
    pub fn pitch(&self) -> usize {
        self.layout.pitch()
    }

    /// Copies `coefficients` to the device.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) if the device fails.
    pub fn upload(&self, coefficients: &SparseCoefficients) -> Result<Blocks> {
        Ok(Blocks {
            blocks: self.context.upload("jpeg blocks", &coefficients.blocks)?,
            entries: self.context.upload("jpeg entries", &coefficients.entries)?,
        })
    }

    /// Records the passes from `coefficients` to pixels, whose rows are padded to a multiple of sixteen pixels.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) if the device has no memory left.
    pub fn record(&self, batch: &mut Batch<'_>, coefficients: &Blocks) -> Result<Buffer> {
        let Self { context, layout, .. } = self;
        let planes = context.allocate("jpeg planes", layout.plane_bytes())?;
        let pixels = context.allocate("pixels", layout.pixel_bytes())?;
        for c in 0..layout.frame.components.len() {
            let params = layout.block_params(c);
            let groups = context.fold(u64::from(params.blocks).div_ceil(8))?;
            let pass = batch.pass("jpeg inverse DCT", &self.samples);
            pass.buffer("blocks", &coefficients.blocks)
                .buffer("entries", &coefficients.entries)
                .buffer("planes", &planes)
                .uniform("block_params", &params)
                .dispatch(groups);
        }
        let groups = context.fold(u64::from(self.pixel_params.total).div_ceil(64))?;
        let pass = batch.pass("jpeg pixels", &self.pixels);
        let pass = pass.buffer("made", &planes).buffer("target_", &pixels);
        pass.uniform("params", &self.pixel_params).dispatch(groups);
        Ok(pixels)
    }
}

/// Encodes pictures of one frame on a device.
#[derive(Debug)]
pub struct Encoder<'a> {
    context: &'a Context,
    layout: Layout,
    /// One pipeline for each component.
    planes: Vec<Arc<Pipeline>>,
    coefficients: Arc<Pipeline>,
}

impl<'a> Encoder<'a> {
    /// For pictures of `frame`; `None` if such a picture does not fit the device in one piece.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) if the device fails.
    pub fn new(context: &'a Context, frame: &Frame) -> Result<Option<Self>> {
        let layout = Layout::new(frame);
        match layout.fits(context) {
            true => Self::with_layout(context, layout).map(Some),
            false => Ok(None),
        }
    }

    fn with_layout(context: &'a Context, layout: Layout) -> Result<Self> {
        let frame = &layout.frame;
        let plane = |c: usize| {
            let shared = frame.most()[0] / frame.components[c].sampling[0];
            context.pipeline(&forward((frame.colour.channels(), shared)), "plane")
        };
        Ok(Self {
            planes: (0..frame.components.len()).map(plane).collect::<Result<_>>()?,
            coefficients: context.pipeline(&FORWARD, "coefficients")?,
            context,
            layout,
        })
    }

    /// Records the passes from `pixels` to coefficients. The rows of pixels are padded to a multiple of sixteen pixels.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) if the device has no memory left.
    pub fn record(&self, batch: &mut Batch<'_>, pixels: &Buffer) -> Result<Encoded> {
        let Self { context, layout, .. } = self;
        let frame = &layout.frame;
        let planes = context.allocate("jpeg planes", layout.plane_bytes())?;
        let blocks = context.allocate("jpeg blocks", layout.block_bytes())?;
        let entries = context.allocate("jpeg entries", ENTRIES * layout.all() as u64)?;
        let cursor = context.allocate("jpeg cursor", 4)?;
        batch.clear(&cursor);
        let [width, height] = frame.size;
        for (c, pipeline) in self.planes.iter().enumerate() {
            let [across, down] = frame.blocks(c);
            let params = PlaneParams {
                width: width as u32,
                height: height as u32,
                pitch: (layout.pitch() * frame.colour.channels() / 4) as u32,
                words: 2 * across as u32,
                total: (16 * across * down) as u32,
                rows: frame.samples(c)[1] as u32,
                plane: 16 * layout.blocks[c] as u32,
                component: c as u32,
            };
            let groups = context.fold(u64::from(params.total).div_ceil(64))?;
            let pass = batch.pass("jpeg planes", pipeline);
            let pass = pass.buffer("source", pixels).buffer("planes", &planes);
            pass.uniform("params", &params).dispatch(groups);
        }
        for c in 0..frame.components.len() {
            let params = layout.block_params(c);
            let groups = context.fold(u64::from(params.blocks).div_ceil(8))?;
            let pass = batch.pass("jpeg forward DCT", &self.coefficients);
            pass.buffer("made", &planes)
                .buffer("blocks", &blocks)
                .buffer("entries", &entries)
                .buffer("cursor", &cursor)
                .uniform("block_params", &params)
                .dispatch(groups);
        }
        Ok(Encoded { coefficients: Blocks { blocks, entries }, cursor })
    }

    /// Reads the coefficients that [`Encoder::record`] computes.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) if the device fails.
    pub fn read(&self, encoded: &Encoded) -> Result<SparseCoefficients> {
        let (context, Blocks { blocks, entries }) = (self.context, &encoded.coefficients);
        let blocks = context.read(blocks, self.layout.all())?;
        let count: Vec<u32> = context.read(&encoded.cursor, 1)?;
        let entries = context.read(entries, count[0] as usize)?;
        Ok(SparseCoefficients { frame: self.layout.frame.clone(), blocks, entries })
    }
}

/// Coefficients on a device, and the number of their entries.
#[derive(Debug)]
pub struct Encoded {
    coefficients: Blocks,
    cursor: Buffer,
}

/// MCU rows beyond a band on which its first and last rows of pixels depend.
const HALO: usize = 1;

/// Decodes a picture, in bands if it does not fit the device.
pub(super) fn decode(context: &Context, coefficients: &SparseCoefficients) -> Result<Vec<u8>> {
    let frame = &coefficients.frame;
    let layout = Layout::new(frame);
    let [width, height] = frame.size;
    let [_, mcus] = frame.mcus();
    let row = width * frame.colour.channels();
    let most = layout.rows(context, 2 * HALO + 1)?;
    let own = if most < mcus { most - 2 * HALO } else { mcus };
    let mut pixels = memory::room(row * height)?;
    for first in (0..mcus).step_by(own) {
        let (start, end) = (first.saturating_sub(HALO), (first + own + HALO).min(mcus));
        let band = layout.band(start, end - start);
        let part = band.part(coefficients, start)?;
        let decoder = Decoder::with_layout(context, band)?;
        let input = decoder.upload(&part)?;
        let mut batch = context.batch();
        let output = decoder.record(&mut batch, &input)?;
        batch.run()?;
        let pitch = decoder.layout.pitch() * frame.colour.channels();
        let padded: Vec<u8> = context.read(&output, decoder.layout.pixel_bytes() as usize)?;
        let mcu = 8 * frame.most()[1];
        let rows = ((first + own) * mcu).min(height) - first * mcu;
        let inside = padded.chunks_exact(pitch).skip((first - start) * mcu).take(rows);
        inside.for_each(|line| pixels.extend_from_slice(&line[..row]));
    }
    Ok(pixels)
}

impl Layout {
    /// The coefficients of this band, which begins at MCU row `start` of `all`.
    fn part(&self, all: &SparseCoefficients, start: usize) -> Result<SparseCoefficients> {
        let mut part = SparseCoefficients::zeros(&self.frame, 0)?;
        for c in 0..self.frame.components.len() {
            let row = self.frame.blocks(c)[0] * self.frame.components[c].sampling[1];
            let from = &all.blocks[all.frame.first_block(c) + start * row..];
            let own = self.blocks[c]..self.blocks[c + 1];
            for (to, &block) in part.blocks[own].iter_mut().zip(from) {
                let entries = all.entries_of(block);
                let first = first_entry(part.entries.len(), entries.len())?;
                *to = SparseBlock::new(first, entries.len() as u32, block.dc());
                memory::reserve(&mut part.entries, entries.len())?;
                part.entries.extend_from_slice(entries);
            }
        }
        Ok(part)
    }
}

/// Encodes a picture, in bands if it does not fit the device.
pub(super) fn encode(
    context: &Context,
    frame: &Frame,
    pixels: &[u8],
) -> Result<SparseCoefficients> {
    let layout = Layout::new(frame);
    let row = frame.size[0] * frame.colour.channels();
    let [_, mcus] = frame.mcus();
    let most = layout.rows(context, 1)?;
    let mut all = SparseCoefficients::zeros(frame, 0)?;
    for first in (0..mcus).step_by(most) {
        let band = layout.band(first, most.min(mcus - first));
        let start = first * 8 * frame.most()[1] * row;
        let rows = &pixels[start..][..band.frame.size[1] * row];
        let pitch = band.pitch() * frame.colour.channels();
        let mut padded = memory::zeros::<u8>(band.pixel_bytes() as usize)?;
        for (to, from) in padded.chunks_exact_mut(pitch).zip(rows.chunks_exact(row)) {
            to[..row].copy_from_slice(from);
        }
        let encoder = Encoder::with_layout(context, band)?;
        let input = context.upload("pixels", &padded)?;
        let mut batch = context.batch();
        let output = encoder.record(&mut batch, &input)?;
        batch.run()?;
        let mut part = encoder.read(&output)?;
        let moved = first_entry(all.entries.len(), part.entries.len())?;
        for c in 0..frame.components.len() {
            let row = frame.blocks(c)[0] * frame.components[c].sampling[1];
            let own = encoder.layout.blocks[c]..encoder.layout.blocks[c + 1];
            let to = &mut all.blocks[layout.blocks[c] + first * row..];
            for (to, block) in to.iter_mut().zip(&part.blocks[own]) {
                *to = block.moved(moved);
            }
        }
        memory::append(&mut all.entries, &mut part.entries)?;
    }
    Ok(all)
}
