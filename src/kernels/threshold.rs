//! Segmentation by thresholds: the class of a sample is the number of thresholds that it exceeds.

use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use serde_json::Value;

use super::{
    filter::{Filter, GpuStep, GpuStepResult, Pass},
    histogram::{Luma, type_range},
    otsu::{Otsu, extremes},
    pointwise::{map_words, specialisations, specialised},
};
use crate::{
    data::{
        description::{Description, Kind},
        dtype::Dtype,
        float_key::f32_to_key,
        grid::{Grid, GridType, Shape},
        number::Number,
        samples::Samples,
    },
    device::{Device, Kernel},
    for_samples,
    gpu::{Batch, Buffer, Context, Shader},
    shader, shader_struct,
    util::{
        error::{Error, Result},
        memory, parallel, simd,
    },
};

static SHADER: Shader = shader!("threshold/threshold");

shader_struct! {
    struct ThresholdParams {
        words: u32,
        bounds: u32,
        scale: u32,
    }
}

/// How samples are divided into classes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Threshold {
    /// 1 to 255 ascending thresholds. The class of a sample is the number of thresholds that it exceeds; with one
    /// threshold, classes are stored as 0 and 255. The result has one channel of u8. Colour images are divided by their
    /// BT.709 luminance, which for integers is rounded to a sample.
    Values(Vec<f64>),
    /// This number of thresholds, computed from the input by Otsu's method (A Threshold Selection Method from
    /// Gray-Level Histograms, 1979).
    Otsu(usize),
}

/// The shaders for all types of samples.
pub fn variants() -> Vec<Shader> {
    specialisations(&SHADER)
}

/// The largest value of f32 that is at most `value`.
fn rounded_down(value: f64) -> f32 {
    let rounded = value as f32;
    if f64::from(rounded) > value { rounded.next_down() } else { rounded }
}

/// The smallest key of a sample that exceeds `value`: 0 if all samples do, 2^32 if none does. Keys are unsigned
/// integers in the order of the samples of `dtype`.
fn bound(dtype: Dtype, value: f64) -> u64 {
    match type_range(dtype) {
        Some((min, max)) => (value.clamp(min - 1.0, max).floor() - min + 1.0) as u64,
        // No zero exceeds -0, so it counts as +0, whose key is larger.
        None => u64::from(f32_to_key(rounded_down(value) + 0.0)) + 1,
    }
}

/// The number of thresholds that each sample exceeds, times `scale`.
fn classified<T: Number>(samples: &[T], thresholds: &[f64], scale: u8) -> Result<Vec<u8>> {
    /// Samples that a thread takes at a time, which stay in its cache.
    const PIECE: usize = 1 << 14;
    let (min, max) = type_range(T::DTYPE).unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
    let first = scale * thresholds.iter().filter(|&&threshold| threshold < min).count() as u8;
    let inside = thresholds.iter().filter(|&&threshold| (min..max).contains(&threshold));
    let thresholds: Vec<T> = inside
        .map(|&threshold| match T::DTYPE {
            Dtype::F64 => T::from_f64(threshold),
            Dtype::F32 => T::from_f64(rounded_down(threshold).into()),
            _ => T::from_f64(threshold.floor()),
        })
        .collect();
    parallel::in_pieces(samples.len(), PIECE, |start, classes| {
        simd::vectorize(
            #[inline(always)]
            || {
                classes.fill(first);
                for &threshold in &thresholds {
                    for (class, &sample) in classes.iter_mut().zip(&samples[start..]) {
                        *class += scale * u8::from(sample > threshold);
                    }
                }
            },
        );
    })
}

impl Kernel for Threshold {
    type In = Samples;
    type Out = Samples;
    const NAME: &'static str = "threshold";

    fn cpu(&self, samples: &Samples) -> Result<Samples> {
        let (values, scale) = self.values()?;
        for_samples!(samples, samples => classified(samples, values, scale)).map(Samples::U8)
    }

    fn gpu(&self, context: &Context, samples: &Samples) -> Result<Samples> {
        let dtype = samples.dtype();
        if dtype == Dtype::F64 {
            return self.cpu(samples);
        }
        let Bounds { shader, keys, bounds, scale, .. } = self.bounds(context, dtype)?;
        let mut classes = memory::zeros(samples.len())?;
        let (data, sizes) = ((samples.as_bytes(), &mut classes[..]), ([dtype.size(), 1], 1));
        let (entry, table) = ((&shader, "threshold"), ("bounds", &keys));
        let params = |words| ThresholdParams { words, bounds, scale };
        map_words(context, entry, data, sizes, table, params)?;
        Ok(Samples::U8(classes))
    }
}

/// Thresholds on a GPU.
struct Bounds<'c> {
    context: &'c Context,
    shader: Shader,
    keys: Buffer,
    bounds: u32,
    scale: u32,
}

impl<'c> GpuStep<'c> for Bounds<'c> {
    fn record(&self, batch: &mut Batch<'c>, shape: Shape, input: Buffer) -> Result<Buffer> {
        let &Self { context, ref shader, ref keys, bounds, scale } = self;
        let entry = (shader, "threshold");
        let words = (shape.samples() / 4) as u32;
        let result = context.allocate("classes", shape.samples() as u64)?;
        let params = ThresholdParams { words, bounds, scale };
        let buffers = [("data", &input), ("result", &result), ("bounds", keys)];
        batch.dispatch_over(entry.1, entry, &params, &buffers, words as usize)?;
        Ok(result)
    }
}

impl Threshold {
    /// The thresholds on the device.
    fn bounds<'c>(&self, context: &'c Context, dtype: Dtype) -> Result<Bounds<'c>> {
        let (values, scale) = self.values()?;
        let mut keys: Vec<u32> =
            values.iter().flat_map(|&value| bound(dtype, value).try_into()).collect();
        let bounds = keys.len() as u32;
        // A binding is never empty.
        keys.push(0);
        let (shader, keys) = (specialised(&SHADER, dtype), context.upload("bounds", &keys)?);
        Ok(Bounds { context, shader, keys, bounds, scale: scale.into() })
    }

    /// The thresholds, and the difference of neighbouring classes in the result.
    fn values(&self) -> Result<(&[f64], u8)> {
        match self {
            Self::Values(values) => Ok((values, if values.len() == 1 { 255 } else { 1 })),
            Self::Otsu(_) => {
                Err(Error::usage("Otsu thresholds have to be computed before the filter runs"))
            }
        }
    }
}

/// Classifies the samples of a grid.
#[derive(Debug)]
pub struct Classify {
    threshold: Threshold,
    /// The class that all samples so far have, and their range; `None` if their classes differ.
    uniform: Mutex<Option<(Option<u8>, [f64; 2])>>,
}

impl From<Threshold> for Classify {
    fn from(threshold: Threshold) -> Self {
        Self { threshold, uniform: Mutex::new(Some((None, [f64::MAX, f64::MIN]))) }
    }
}

impl Filter for Classify {
    fn name(&self) -> &'static str {
        Threshold::NAME
    }

    fn parameters(&self) -> Value {
        serde_json::json!(self.threshold)
    }

    fn describe(&self, input: Description) -> Result<Description> {
        let count = match &self.threshold {
            Threshold::Values(values) => values.len(),
            Threshold::Otsu(count) => *count,
        };
        let kind = if count > 1 { Kind::Classes } else { Kind::Mask };
        Ok(input.of_one_channel(kind, Dtype::U8))
    }

    fn working_bytes(&self, input: GridType) -> u64 {
        // The pixels, their luminance, and the mask.
        let channels = input.shape.channels.max(1);
        (channels * input.dtype.size() + 2).div_ceil(channels) as u64
    }

    fn prepared(
        &self,
        _device: &Device,
        _input: &Description,
        pass: Pass<'_>,
    ) -> Result<Option<Box<dyn Filter>>> {
        let Threshold::Otsu(count) = self.threshold else { return Ok(None) };
        let mut found: Option<Otsu> = None;
        for is_first in [true, false] {
            if !is_first && !found.as_ref().is_some_and(Otsu::needs_range) {
                break;
            }
            pass(&mut |grid| {
                let grey = Luma::Bt709.grey(&grid.samples, grid.channels)?;
                let otsu = found.get_or_insert_with(|| Otsu::new(grey.dtype()));
                match is_first && otsu.needs_range() {
                    true => otsu.widen_range(&grey),
                    false => otsu.count(&grey, 1),
                }
                Ok(())
            })?;
        }
        let thresholds = found.and_then(|otsu| otsu.thresholds(count));
        let few =
            || Error::bad_input(format_args!("too few different samples for {count} thresholds"));
        let values = Threshold::Values(thresholds.ok_or_else(few)?);
        Ok(Some(Box::new(Self::from(values))))
    }

    fn run(&self, device: &Device, input: &Grid) -> Result<Samples> {
        let grey = Luma::Bt709.grey(&input.samples, input.channels)?;
        let classes = device.run(&self.threshold, &*grey)?;
        let mut uniform = self.uniform.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((class, [low, high])) = *uniform {
            let class = class.or(classes.as_bytes().first().copied());
            let is_uniform = classes.as_bytes().iter().all(|&other| Some(other) == class);
            *uniform = is_uniform.then(|| {
                let [min, max] = extremes(&grey);
                (class, [low.min(min), high.max(max)])
            });
        }
        Ok(classes)
    }

    fn on_gpu<'c>(&self, context: &'c Context, input: GridType) -> GpuStepResult<'c> {
        let GridType { shape, dtype } = input;
        // Until two classes have been found, samples are read back for the warning about a mask of one value.
        let differs = self.uniform.lock().unwrap_or_else(PoisonError::into_inner).is_none();
        let is_whole = shape.channels == 1 && shape.samples().is_multiple_of(4);
        if dtype == Dtype::F64 || !differs || !is_whole || input.bytes() > context.max_binding() {
            return Ok(None);
        }
        Ok(Some(Box::new(self.threshold.bounds(context, dtype)?)))
    }

    /// The class and the smallest and largest sample while all samples have one class, as the bits of these numbers.
    fn finding(&self) -> Value {
        let uniform = *self.uniform.lock().unwrap_or_else(PoisonError::into_inner);
        serde_json::json!(uniform.map(|(class, range)| (class, range.map(f64::to_bits))))
    }

    fn warning(&self, findings: &[Value]) -> Option<String> {
        let Threshold::Values(values) = &self.threshold else { return None };
        let (mut class, mut low, mut high) = (None, f64::MAX, f64::MIN);
        for finding in findings {
            let found = serde_json::from_value::<Option<(Option<u8>, [u64; 2])>>(finding.clone());
            let (own, range) = found.ok()??;
            if class.is_some() && own.is_some() && own != class {
                return None;
            }
            let [min, max] = range.map(f64::from_bits);
            (class, low, high) = (class.or(own), low.min(min), high.max(max));
        }
        let values = values.iter().map(f64::to_string).collect::<Vec<_>>().join(",");
        let class = class.filter(|_| low <= high)?;
        Some(format!(
            "all samples of the mask are {class}: the threshold is {values}, and the samples are {low} to {high}"
        ))
    }
}
