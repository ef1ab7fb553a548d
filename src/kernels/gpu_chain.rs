//! Runs consecutive steps on a GPU without transfers between them. The input is samples or the coefficients of a JPEG
//! image. The result is either of the two as well.
//!
//! From JPEG to JPEG, only nonzero coefficients cross the bus. For a photograph, they take 23 % of the bytes of the
//! pixels on the way to the device, and 12 % on the way back.

use super::{
    filter::Filter,
    gpu_step::{GpuLayout, GpuStep},
    jpeg::{Decoder, Encoder},
};
use crate::{
    data::{
        dtype::Dtype,
        grid::{GridType, Shape},
        samples::Samples,
    },
    device::{Device, Kernel},
    gpu::Context,
    jpeg::{Frame, PixelEncoding, SparseCoefficients},
    util::error::Result,
};

/// Input of steps on a GPU.
#[derive(Clone, Copy, Debug)]
pub enum GpuInput<'a> {
    /// The samples of a grid of this size.
    Samples(Shape, &'a Samples),
    /// The coefficients of a JPEG image.
    Jpeg(&'a SparseCoefficients),
}

/// Result of steps on a GPU.
#[derive(Debug, PartialEq)]
pub enum GpuOutput {
    /// The samples of the result.
    Samples(Samples),
    /// The coefficients of the result as a JPEG image.
    Jpeg(SparseCoefficients),
}

/// Consecutive steps. The leading ones that have a GPU version run on a GPU together.
#[derive(Clone, Debug)]
pub struct GpuChain<'a> {
    /// The steps.
    pub steps: Vec<&'a dyn Filter>,
    /// Number of steps of the whole chain that run before these; `None` for a filter that is not part of a chain.
    pub before: Option<usize>,
    /// How the result of the last step is encoded as JPEG, if its type allows that; `None` to return samples.
    pub encoding: Option<PixelEncoding>,
}

impl GpuInput<'_> {
    /// Size and type of the samples.
    pub fn grid_type(&self) -> GridType {
        match *self {
            Self::Samples(shape, samples) => GridType { shape, dtype: samples.dtype() },
            Self::Jpeg(SparseCoefficients { frame, .. }) => {
                let ([width, height], channels) = (frame.size, frame.colour.channels());
                GridType { shape: Shape { dims: [width, height, 1], channels }, dtype: Dtype::U8 }
            }
        }
    }
}

/// The JPEG frame of a result; `None` if its type has to be converted first.
fn frame(encoding: PixelEncoding, GridType { shape, dtype }: GridType) -> Option<Frame> {
    let Shape { dims: [width, height, depth], channels } = shape;
    let is_jpeg = dtype == Dtype::U8 && depth == 1 && matches!(channels, 1 | 3);
    let PixelEncoding { quality, half_chroma } = encoding;
    is_jpeg.then(|| Frame::for_pixels([width, height], channels, quality, half_chroma))
}

/// Whether running `count` steps on `input` together saves a transfer of samples. If `is_encoded`, the GPU also encodes
/// the result.
fn saves_transfers(count: usize, input: &GpuInput<'_>, is_encoded: bool) -> bool {
    let is_decoded = matches!(input, GpuInput::Jpeg(_));
    count > 0 && count + usize::from(is_decoded) + usize::from(is_encoded) > 1
}

impl GpuChain<'_> {
    /// The type of the input, and the types of the results of the leading steps that have a GPU version.
    pub fn types(&self, input: GridType) -> Vec<GridType> {
        let mut types = vec![input];
        for step in &self.steps {
            let own = types[types.len() - 1];
            match step.on_gpu(own).map(|_| step.output(own)) {
                Some(Ok(result)) => types.push(result),
                _ => break,
            }
        }
        types
    }

    /// Runs the leading steps on the GPU of `device` in one batch, if that saves a transfer of samples. Returns how many
    /// ran, and the result of the last one.
    ///
    /// # Errors
    /// When the device fails.
    pub fn run(&self, device: &Device, input: GpuInput<'_>) -> Result<Option<(usize, GpuOutput)>> {
        let types = self.types(input.grid_type());
        let count = types.len() - 1;
        let is_encoded = count == self.steps.len()
            && self.encoding.is_some_and(|encoding| frame(encoding, types[count]).is_some());
        let is_possible = device.may_be_gpu() && types[0].bytes() > 0;
        if !is_possible || !saves_transfers(count, &input, is_encoded) {
            return Ok(None);
        }
        let steps = self.steps[..count].to_vec();
        let encoding = self.encoding.filter(|_| is_encoded);
        device.run(&GpuChain { steps, encoding, ..*self }, &input)
    }

    /// The name of the first `count` steps in timings; `None` for a filter that is not part of a chain.
    pub fn title(&self, count: usize) -> Option<String> {
        let first = self.before? + 1;
        Some(match count {
            1 => format!("step {first}: {}", self.steps[0].name()),
            _ => format!("steps {first} to {}", first + count - 1),
        })
    }
}

impl<'a> Kernel for GpuChain<'a> {
    type In = GpuInput<'a>;
    /// How many steps ran, and the result of the last one; `None` if the device cannot run them.
    type Out = Option<(usize, GpuOutput)>;
    const NAME: &'static str = "chain";

    fn name(&self) -> &'static str {
        if let [step] = self.steps[..] { step.name() } else { Self::NAME }
    }

    /// Returns `None`: on a CPU, the caller runs the steps one by one.
    fn cpu(&self, _: &GpuInput<'a>) -> Result<Self::Out> {
        Ok(None)
    }

    fn gpu(&self, context: &Context, input: &GpuInput<'a>) -> Result<Self::Out> {
        let decoder = match input {
            GpuInput::Samples(..) => None,
            GpuInput::Jpeg(coefficients) => match Decoder::new(context, &coefficients.frame)? {
                None => return Ok(None),
                decoder => decoder,
            },
        };
        let first = GpuLayout::padded(input.grid_type());
        let (mut layout, mut steps) = (first, Vec::<GpuStep<'_>>::new());
        for filter in &self.steps {
            let Some(filter) = filter.on_gpu(layout.grid) else { break };
            let Some(step) = filter.prepare(context, layout)? else { break };
            layout = step.result;
            steps.push(step);
        }
        let is_complete = steps.len() == self.steps.len();
        let encoding = self.encoding.filter(|_| is_complete);
        let encoder = match encoding.and_then(|encoding| frame(encoding, layout.grid)) {
            Some(frame) => Encoder::new(context, &frame)?,
            None => None,
        };
        let encoder = encoder.filter(|encoder| encoder.pixels() == layout);
        if !saves_transfers(steps.len(), input, encoder.is_some()) {
            return Ok(None);
        }
        let run = || {
            let mut batch = context.batch();
            let mut buffer = match (*input, &decoder) {
                (GpuInput::Samples(_, samples), _) => first.upload(context, samples.as_bytes())?,
                (GpuInput::Jpeg(coefficients), Some(decoder)) => {
                    decoder.record(&mut batch, &decoder.upload(coefficients)?)?
                }
                _ => unreachable!("there is a decoder for JPEG"),
            };
            for step in &steps {
                buffer = (step.record)(&mut batch, buffer)?;
            }
            let encode = |encoder: &Encoder<'_>| encoder.record(&mut batch, &buffer);
            let encoded = encoder.as_ref().map(encode).transpose()?;
            batch.run()?;
            let output = match (&encoder, encoded) {
                (Some(encoder), Some(encoded)) => GpuOutput::Jpeg(encoder.read(&encoded)?),
                _ => {
                    let GridType { shape, dtype } = layout.grid;
                    let mut samples = Samples::zeros(dtype, shape.samples())?;
                    layout.read(context, &buffer, samples.as_bytes_mut())?;
                    GpuOutput::Samples(samples)
                }
            };
            steps.iter().flat_map(|step| &step.read_facts).try_for_each(|read| read())?;
            Ok(output)
        };
        let output = match self.title(steps.len()) {
            Some(title) => context.timings().time(&title, run),
            None => run(),
        };
        Ok(Some((steps.len(), output?)))
    }
}
