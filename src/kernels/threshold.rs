//! Segmentation by thresholds: the class of a sample is the number of thresholds that it exceeds.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;

use super::{
    filter::{Block, Cost, Filter, Preparation, Ready},
    gpu_step::{GpuFilter, GpuLayout, GpuStep, GpuStepResult},
    histogram::{Luma, type_range},
    otsu::{Otsu, extremes},
    pointwise::{map_words, specialisations, specialised},
};
use crate::{
    data::{
        description::{Description, Kind},
        dtype::Dtype,
        float_key::{f32_to_key, key_to_f32},
        grid::{Grid, GridType, Shape},
        number::Number,
        samples::Samples,
    },
    device::{Device, Kernel},
    for_samples,
    gpu::{Context, Shader},
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

shader_struct! {
    struct ExtremesParams {
        pixels: u32,
        width: u32,
        pitch: u32,
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

/// The shaders for grey samples of all types, and for u8 and u16 colours.
pub fn variants() -> Vec<Shader> {
    let colours = [Dtype::U8, Dtype::U16].into_iter().flat_map(|dtype| [3, 4].map(|n| (dtype, n)));
    let colours = colours.map(|(dtype, channels)| shader(dtype, channels));
    let grey = [1u32, 2].map(|channels| SHADER.with(&[("CHANNELS", channels)]));
    let grey = grey.iter().flat_map(specialisations);
    grey.chain(colours).collect()
}

/// The shader for pixels of `channels` samples of type `dtype`.
fn shader(dtype: Dtype, channels: usize) -> Shader {
    let shader = specialised(&SHADER, dtype).with(&[("CHANNELS", channels)]);
    if channels < 3 { shader } else { Luma::Bt709.weighted(&shader) }
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
        let (bounds, scale) = self.bounds(dtype)?;
        let (shader, keys) = (shader(dtype, 1), context.upload("bounds", &padded(&bounds))?);
        let mut classes = memory::zeros(samples.len())?;
        let (data, sizes) = ((samples.as_bytes(), &mut classes[..]), ([dtype.size(), 1], 1));
        let (entry, table) = ((&shader, "threshold"), ("bounds", &keys));
        let bounds = bounds.len() as u32;
        let params = |words| ThresholdParams { words, bounds, scale: scale.into() };
        map_words(context, entry, data, sizes, table, params)?;
        Ok(Samples::U8(classes))
    }
}

/// Appends a 0 to `bounds`, since a binding must not be empty.
fn padded(bounds: &[u32]) -> Vec<u32> {
    [bounds, &[0]].concat()
}

impl Threshold {
    /// The smallest key that exceeds each threshold, and the factor from the number of exceeded thresholds to the value
    /// in the result. Thresholds that no sample exceeds are left out.
    fn bounds(&self, dtype: Dtype) -> Result<(Vec<u32>, u8)> {
        let (values, scale) = self.values()?;
        Ok((values.iter().flat_map(|&value| bound(dtype, value).try_into()).collect(), scale))
    }

    /// The thresholds, and the factor from the number of exceeded thresholds to the value in the result.
    fn values(&self) -> Result<(&[f64], u8)> {
        match self {
            Self::Values(values) => Ok((values, if values.len() == 1 { 255 } else { 1 })),
            Self::Otsu(_) => {
                Err(Error::usage("Otsu thresholds have to be computed before the filter runs"))
            }
        }
    }
}

/// The class of all samples (`None` before the first one), and the smallest and the largest finite sample.
type Uniform = (Option<u8>, [f64; 2]);

/// Classifies the samples of a grid.
#[derive(Debug)]
pub struct Classify {
    threshold: Threshold,
    /// The class and the range of all samples so far; `None` if their classes differ.
    uniform: Mutex<Option<Uniform>>,
}

impl Classify {
    /// Locks the class and the range of all samples so far.
    fn uniform(&self) -> MutexGuard<'_, Option<Uniform>> {
        self.uniform.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds samples of the range `range`. All of them have the class `class`; `None` if their classes differ.
    fn add(&self, class: Option<u8>, range: impl FnOnce() -> [f64; 2]) {
        let mut uniform = self.uniform();
        if let Some((known, [low, high])) = *uniform {
            let is_uniform = class.is_some_and(|class| known.is_none_or(|known| known == class));
            *uniform = is_uniform.then(|| {
                let [min, max] = range();
                (class, [low.min(min), high.max(max)])
            });
        }
    }
}

/// Number of values in the buffer of extremes; see the shader.
const EXTREMES: usize = 5;

/// The value of a sample of type `dtype`.
fn value_of_key(dtype: Dtype, key: u32) -> f64 {
    match type_range(dtype) {
        Some((min, _)) => min + f64::from(key),
        None => key_to_f32(key).into(),
    }
}

impl Classify {
    /// Adds samples of type `dtype`, whose extremes the shader has found.
    fn add_extremes(&self, found: &[u32], dtype: Dtype, bounds: &[u32], scale: u8) {
        let class = |key: u32| scale * bounds.iter().filter(|&&bound| key >= bound).count() as u8;
        // Classes ascend with the keys. NaN exceeds no threshold.
        let (low, high) = (!found[0], found[1]);
        let numbers = (low <= high).then(|| [class(low), class(high)]);
        let nan = (found[4] > 0).then_some([0, 0]);
        let mut classes = numbers.into_iter().chain(nan).flatten();
        let first = classes.next();
        self.add(first.filter(|&first| classes.all(|other| other == first)), || {
            let (low, high) = (!found[2], found[3]);
            let value = |key| value_of_key(dtype, key);
            if low <= high { [value(low), value(high)] } else { [f64::MAX, f64::MIN] }
        });
    }
}

impl GpuFilter for Classify {
    fn prepare<'c>(&'c self, context: &'c Context, input: GpuLayout) -> GpuStepResult<'c> {
        let GridType { shape, dtype } = input.grid;
        if input.bytes() > context.max_binding() {
            return Ok(None);
        }
        let grid = GridType { shape: Shape { channels: 1, ..shape }, dtype: Dtype::U8 };
        let result = GpuLayout { grid, pitch: input.pitch };
        let (bounds, scale) = self.threshold.bounds(dtype)?;
        let keys = context.upload("bounds", &padded(&bounds))?;
        let shader = shader(dtype, shape.channels);
        let bytes = result.bytes();
        let words = bytes.div_ceil(4) as u32;
        let params = ThresholdParams { words, bounds: bounds.len() as u32, scale: scale.into() };
        // After samples of two classes have been found, there is nothing to warn about.
        let needs_extremes = self.uniform().is_some();
        let extremes = context.allocate("extremes", 4 * EXTREMES as u64)?;
        let found = extremes.clone();
        let mut step = GpuStep::new(result, move |batch, grid| {
            let classes = context.allocate("classes", bytes)?;
            let buffers = [("data", &grid), ("result", &classes), ("bounds", &keys)];
            let entry = "threshold";
            batch.dispatch_over(entry, &shader, entry, &params, &buffers, words as usize)?;
            if needs_extremes {
                batch.clear(&extremes);
                let [pixels, width, pitch] =
                    [bytes as usize, shape.dims[0], input.pitch].map(|count| count as u32);
                let params = ExtremesParams { pixels, width, pitch };
                let buffers = [("data", &grid), ("extremes", &extremes)];
                let words = words as usize;
                batch.dispatch_over("extremes", &shader, "find", &params, &buffers, words)?;
            }
            Ok(classes)
        });
        if needs_extremes {
            step.read_facts = Some(Box::new(move || {
                let found: Vec<u32> = context.read(&found, EXTREMES)?;
                self.add_extremes(&found, dtype, &bounds, scale);
                Ok(())
            }));
        }
        Ok(Some(step))
    }
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

    fn cost(&self, input: GridType) -> Cost {
        // The pixels, their luminance, and the mask.
        let channels = input.shape.channels.max(1);
        let working = (channels * input.dtype.size() + 2).div_ceil(channels) as u64;
        Cost { working, ..Cost::of(input) }
    }

    fn prepare(&self, Preparation { pass, .. }: Preparation<'_>) -> Result<Ready> {
        let Threshold::Otsu(count) = self.threshold else { return Ok(Ready::default()) };
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
        Ok(Self::from(values).into())
    }

    fn run(&self, device: &Device, input: &Grid, _block: &Block) -> Result<Samples> {
        let grey = Luma::Bt709.grey(&input.samples, input.channels)?;
        let classes = device.run(&self.threshold, &*grey)?;
        if self.uniform().is_some() && !classes.is_empty() {
            let first = classes.as_bytes().first().copied();
            let is_uniform = classes.as_bytes().iter().all(|&other| Some(other) == first);
            self.add(first.filter(|_| is_uniform), || extremes(&grey));
        }
        Ok(classes)
    }

    fn on_gpu(&self, input: GridType) -> Option<&dyn GpuFilter> {
        // The luminance of other types does not fit into 32 bits.
        let is_grey = input.shape.channels < 3 && input.dtype != Dtype::F64;
        let is_supported = is_grey || matches!(input.dtype, Dtype::U8 | Dtype::U16);
        (is_supported && matches!(self.threshold, Threshold::Values(_))).then_some(self)
    }

    /// The class and the range (as the bits of two f64) of all samples; null if their classes differ.
    fn finding(&self) -> Value {
        let uniform = *self.uniform();
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
        // -0 is 0: which of them is found first depends on the device.
        let (low, high) = (low + 0.0, high + 0.0);
        Some(format!(
            "all samples of the mask are {class}: the threshold is {values}, and the samples are {low} to {high}"
        ))
    }
}
