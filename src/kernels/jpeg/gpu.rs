//! The GPU twins: coefficients and pixels in storage buffers, and bands of MCU rows where a picture does not fit.

use std::sync::Arc;

use crate::{
    data::jpeg::{Coefficients, ColourModel, Frame, Upsampling},
    error::{Error, Result},
    gpu::{Batch, Buffer, Context, Pipeline, Shader},
    memory, shader, shader_struct,
};

const IN_RANGE: &str = "blocks, planes and rows are indexed below the numbers that the host sizes the buffers by; \
    columns and rows are limited to the last of a plane";

static INVERSE: Shader = shader!("jpeg/inverse").unchecked(IN_RANGE);
static FORWARD: Shader = shader!("jpeg/forward").unchecked(IN_RANGE);

/// Every text of this family that can run.
pub fn variants() -> Vec<Shader> {
    let models = ["0u", "1u", "2u", "3u", "4u"].map(|model| INVERSE.with(&[("MODEL", model)]));
    let planes = [("1u", "1u"), ("3u", "1u"), ("3u", "2u")]
        .map(|(channels, shared)| FORWARD.with(&[("CHANNELS", channels), ("SHARED", shared)]));
    models.into_iter().chain(planes).collect()
}

shader_struct! {
    struct BlockParams { blocks: u32, across: u32, first: u32, plane: u32, steps: [[u32; 4]; 16] }
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

/// Pixels of a row are padded to a multiple of this, as the blurs' rows are.
const PITCH: usize = 16;

/// Where the components of a picture lie in one buffer of blocks and in one of samples.
#[derive(Clone, Debug)]
struct Layout {
    frame: Frame,
    /// Blocks before each component, and in all.
    blocks: Vec<usize>,
}

impl Layout {
    fn new(frame: &Frame) -> Self {
        let mut blocks = vec![0];
        for c in 0..frame.components.len() {
            blocks.push(blocks[c] + frame.blocks(c).iter().product::<usize>());
        }
        Self { frame: frame.clone(), blocks }
    }

    fn all(&self) -> usize {
        self.blocks[self.frame.components.len()]
    }

    /// Bytes of all coefficients.
    fn coefficient_bytes(&self) -> u64 {
        self.all() as u64 * 128
    }

    /// Bytes of all planes.
    fn plane_bytes(&self) -> u64 {
        self.all() as u64 * 64
    }

    /// Pixels from row to row.
    fn pitch(&self) -> usize {
        self.frame.size[0].next_multiple_of(PITCH)
    }

    /// Bytes of the pixels.
    fn pixel_bytes(&self) -> u64 {
        (self.pitch() * self.frame.colour.channels() * self.frame.size[1]) as u64
    }

    fn block_params(&self, c: usize) -> BlockParams {
        let steps = self.frame.components[c].steps.map(u32::from);
        BlockParams {
            blocks: (self.blocks[c + 1] - self.blocks[c]) as u32,
            across: self.frame.blocks(c)[0] as u32,
            first: 8 * self.blocks[c] as u32,
            plane: 16 * self.blocks[c] as u32,
            steps: *steps.as_chunks::<4>().0.first_chunk().expect("64 steps"),
        }
    }

    /// Whether `context` has room for the picture in one piece.
    fn fits(&self, context: &Context) -> bool {
        let largest = self.coefficient_bytes().max(self.pixel_bytes());
        let groups = self.all().div_ceil(8).max(self.pixel_bytes() as usize / 4 / 64 + 1) as u64;
        largest <= context.max_binding() && context.fold(groups).is_ok()
    }

    /// The picture of `rows` MCU rows of this one from row `first` on.
    fn band(&self, first: usize, rows: usize) -> Self {
        let row = 8 * self.frame.most()[1];
        let [width, height] = self.frame.size;
        let size = [width, (rows * row).min(height - first * row)];
        Self::new(&Frame { size, ..self.frame.clone() })
    }

    /// The most MCU rows of a band that fits; an error where not even `least` do.
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

/// Decodes pictures of one geometry on a device.
#[derive(Debug)]
pub struct Decoder<'a> {
    context: &'a Context,
    layout: Layout,
    pixel_params: PixelParams,
    samples: Arc<Pipeline>,
    pixels: Arc<Pipeline>,
}

impl<'a> Decoder<'a> {
    /// For pictures of `frame`; nothing where the device has no room for one in one piece.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device fails, [`Kind::BadInput`](crate::error::Kind::BadInput) for
    /// components of fractional resolution.
    pub fn new(context: &'a Context, frame: &Frame) -> Result<Option<Self>> {
        let layout = Layout::new(frame);
        match layout.fits(context) {
            true => Self::with_layout(context, layout).map(Some),
            false => Ok(None),
        }
    }

    fn with_layout(context: &'a Context, layout: Layout) -> Result<Self> {
        let frame = &layout.frame;
        let model = match frame.colour {
            ColourModel::Grey => "0u",
            ColourModel::YCbCr => "1u",
            ColourModel::Rgb => "2u",
            ColourModel::Cmyk => "3u",
            ColourModel::Ycck => "4u",
        };
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
            pixels: context.pipeline(&INVERSE.with(&[("MODEL", model)]), "pixels")?,
            context,
            pixel_params: params,
            layout,
        })
    }

    /// A buffer with `coefficients`.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device fails.
    pub fn upload(&self, coefficients: &Coefficients) -> Result<Buffer> {
        let buffer = self.context.allocate("coefficients", self.layout.coefficient_bytes())?;
        for (blocks, &before) in coefficients.blocks.iter().zip(&self.layout.blocks) {
            self.context.write(&buffer, 128 * before as u64, blocks)?;
        }
        Ok(buffer)
    }

    /// Records the passes from `coefficients`; the pixels' rows are padded to a multiple of sixteen pixels.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device has no memory left.
    pub fn record(&self, batch: &mut Batch<'_>, coefficients: &Buffer) -> Result<Buffer> {
        let Self { context, layout, .. } = self;
        let planes = context.allocate("jpeg planes", layout.plane_bytes())?;
        let pixels = context.allocate("pixels", layout.pixel_bytes())?;
        for c in 0..layout.frame.components.len() {
            let params = layout.block_params(c);
            let groups = context.fold(u64::from(params.blocks).div_ceil(8))?;
            let pass = batch.pass("jpeg inverse DCT", &self.samples);
            let pass = pass.buffer("coefficients", coefficients).buffer("planes", &planes);
            pass.uniform("block_params", &params).dispatch(groups);
        }
        let groups = context.fold(u64::from(self.pixel_params.total).div_ceil(64))?;
        let pass = batch.pass("jpeg pixels", &self.pixels);
        let pass = pass.buffer("made", &planes).buffer("target_", &pixels);
        pass.uniform("params", &self.pixel_params).dispatch(groups);
        Ok(pixels)
    }
}

/// Encodes pictures of one geometry on a device.
#[derive(Debug)]
pub struct Encoder<'a> {
    context: &'a Context,
    layout: Layout,
    /// One a component.
    planes: Vec<Arc<Pipeline>>,
    coefficients: Arc<Pipeline>,
}

impl<'a> Encoder<'a> {
    /// For pictures of `frame`; nothing where the device has no room for one in one piece.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device fails.
    pub fn new(context: &'a Context, frame: &Frame) -> Result<Option<Self>> {
        let layout = Layout::new(frame);
        match layout.fits(context) {
            true => Self::with_layout(context, layout).map(Some),
            false => Ok(None),
        }
    }

    fn with_layout(context: &'a Context, layout: Layout) -> Result<Self> {
        let frame = &layout.frame;
        let channels = format!("{}u", frame.colour.channels());
        let plane = |c: usize| {
            let shared = frame.most()[0] / frame.components[c].sampling[0];
            let values = [("CHANNELS", channels.as_str()), ("SHARED", &format!("{shared}u"))];
            context.pipeline(&FORWARD.with(&values), "plane")
        };
        Ok(Self {
            planes: (0..frame.components.len()).map(plane).collect::<Result<_>>()?,
            coefficients: context.pipeline(&FORWARD, "coefficients")?,
            context,
            layout,
        })
    }

    /// Records the passes from `pixels`, whose rows are padded to a multiple of sixteen pixels.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device has no memory left.
    pub fn record(&self, batch: &mut Batch<'_>, pixels: &Buffer) -> Result<Buffer> {
        let Self { context, layout, .. } = self;
        let frame = &layout.frame;
        let planes = context.allocate("jpeg planes", layout.plane_bytes())?;
        let blocks = context.allocate("coefficients", layout.coefficient_bytes())?;
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
            let pass = pass.buffer("made", &planes).buffer("blocks", &blocks);
            pass.uniform("block_params", &params).dispatch(groups);
        }
        Ok(blocks)
    }

    /// The coefficients in a buffer that [`Encoder::record`] filled.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device fails.
    pub fn read(&self, blocks: &Buffer) -> Result<Vec<Vec<[i16; 64]>>> {
        let part = |pair: &[usize]| {
            let bytes = 128 * pair[0] as u64..128 * pair[1] as u64;
            let mut values: Vec<[i16; 64]> = memory::room(pair[1] - pair[0])?;
            self.context.read_with(blocks, bytes, |chunk| {
                values.extend_from_slice(bytemuck::cast_slice(chunk));
                Ok(())
            })?;
            Ok(values)
        };
        self.layout.blocks.windows(2).map(part).collect()
    }
}

/// MCU rows that a band's last and first rows of pixels depend on beyond it.
const HALO: usize = 1;

/// Decodes a picture, in bands where the device needs that.
pub(super) fn decode(context: &Context, coefficients: &Coefficients) -> Result<Vec<u8>> {
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
        let blocks = (0..frame.components.len()).map(|c| {
            let (across, down) = (frame.blocks(c)[0], frame.components[c].sampling[1]);
            coefficients.blocks[c][start * down * across..end * down * across].to_vec()
        });
        let part = Coefficients { frame: band.frame.clone(), blocks: blocks.collect() };
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

/// Encodes a picture, in bands where the device needs that.
pub(super) fn encode(context: &Context, frame: &Frame, pixels: &[u8]) -> Result<Coefficients> {
    let layout = Layout::new(frame);
    let row = frame.size[0] * frame.colour.channels();
    let [_, mcus] = frame.mcus();
    let most = layout.rows(context, 1)?;
    let mut blocks = vec![Vec::new(); frame.components.len()];
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
        for (all, part) in blocks.iter_mut().zip(encoder.read(&output)?) {
            all.extend(part);
        }
    }
    Ok(Coefficients { frame: frame.clone(), blocks })
}
