//! One component in any number of slots: levels of a 16-bit channel, binned luminance, binned values.

use super::blocks::{count_blocks, max_workgroups, workgroup_size};
use crate::{
    data::dtype::Dtype,
    gpu::{Batch, Buffer, Context, DeviceLimits, Shader},
    kernels::histogram::{
        bins::{Bins, MAX_BINS, SlotKeys, type_range},
        counts::{Component, Pixels},
        cpu,
        luma::Luma,
        route::Route,
    },
    shader, shader_struct,
    util::{error::Result, memory},
};

static SHADER: Shader = shader!("histogram/slots").unchecked(
    "the host binds whole vectors that hold `pixels` pixels and bins + 1 keys; guesses are \
         clamped to the bins, slots compared with SPAN, and the counters cover whole spans",
);

shader_struct! {
    struct SlotsParams {
        pixels: u32,
        bins: u32,
        low: u32,
        scale: f32,
        offset: f32,
    }
}

/// Counts the levels or slots of one component, as `route` states.
pub fn count(context: &Context, pixels: &Pixels, bins: &Bins, route: &Route) -> Result<Vec<u64>> {
    let dtype = pixels.samples.dtype();
    let plane: Vec<u8>;
    let (bytes, channels, dtype) = match route {
        // f64 and 64-bit integers, in which the luminance of 32-bit integers is summed, are optional on devices.
        Route::Values(_) if dtype == Dtype::F64 => {
            log::debug!("{dtype} samples are counted on the CPU");
            return Ok(cpu::slots::count(pixels, bins, route));
        }
        Route::Luma(_) if dtype.size() == 4 => {
            log::debug!("luminance of {dtype} samples is counted on the CPU");
            return Ok(cpu::slots::count(pixels, bins, route));
        }
        Route::Values(Component::Luma(luma)) => {
            let values = luma.grey(&pixels.samples, pixels.channels)?;
            plane = memory::copied(values.as_bytes())?;
            (plane.as_slice(), 1, dtype)
        }
        Route::Values(Component::Channel(channel)) if pixels.channels > 1 => {
            plane = extract_channel(pixels, *channel);
            (plane.as_slice(), 1, dtype)
        }
        _ => (pixels.samples.as_bytes(), pixels.channels, dtype),
    };
    let limits = &context.limits;
    let SlotShader { shader, rule, slots, layout } =
        SlotShader::new(limits, dtype, channels, bins, route);
    let group = context.pipeline(&shader, "count")?.workgroup_size[0];
    let (unit, spans) = (shader.constant("UNIT"), slots.div_ceil(layout.span));
    // With digits, each workgroup adds many counters to the result, so fewer workgroups are faster.
    let fewer = if layout.digits { 2 * spans as u64 } else { 1 };
    let max = (max_workgroups(context) / fewer).max(1);
    let keys = rule.keys.unwrap_or(SlotKeys { keys: vec![0], low: 0, scale: 0.0, offset: 0.0 });
    let SlotKeys { low, scale, offset, .. } = keys;
    let keys = context.upload("bin edges", &keys.keys)?;
    let light = context.upload("linear light", &rule.light.unwrap_or(vec![0]))?;
    let size = channels * dtype.size();
    let bytes = &bytes[..bytes.len() / size * size];
    let record = |batch: &mut Batch<'_>, data: &Buffer, pixels: u32, counts: &Buffer| {
        let groups = u64::from(pixels / unit).div_ceil(group.into()).clamp(1, max);
        let params = SlotsParams { pixels, bins: bins.count as u32, low, scale, offset };
        let buffers = [("data", data), ("keys", &keys), ("light", &light), ("counts", counts)];
        let groups = [spans as u32, groups as u32, 1];
        batch.dispatch("histogram", &shader, "count", &params, &buffers, groups)
    };
    let mut counted = count_blocks(context, bytes, size, spans * layout.span, record)?;
    counted.truncate(slots);
    Ok(counted)
}

/// One channel of 32-bit pixels.
fn extract_channel(pixels: &Pixels, channel: usize) -> Vec<u8> {
    let samples = pixels.samples.as_bytes().chunks_exact(4).skip(channel);
    memory::collected(samples.step_by(pixels.channels).flatten().copied())
}

/// The rule by which the shader finds the slot of a pixel, and its tables.
struct SlotRule {
    /// Name of the rule in the shader.
    mode: &'static str,
    /// The channel whose levels are counted.
    channel: usize,
    luma: Option<Luma>,
    /// The number that makes samples unsigned, for luminance.
    bias: usize,
    /// The edges of the bins; `None` for levels.
    keys: Option<SlotKeys>,
    /// The light of each sample value in linear light.
    light: Option<Vec<u32>>,
}

impl SlotRule {
    fn levels(mode: &'static str, channel: usize) -> Self {
        Self { mode, channel, luma: None, bias: 0, keys: None, light: None }
    }

    fn new(dtype: Dtype, bins: &Bins, route: &Route) -> Self {
        let values = |mode, keys| Self { keys: Some(keys), ..Self::levels(mode, 0) };
        let luma = |mode, luma: Luma| {
            let (light, fine) = luma.light(dtype).unzip();
            let unit = f64::from(luma.weights().1) * f64::from(fine.unwrap_or(1));
            // The shader adds this to samples, which makes them unsigned.
            let bias = type_range(dtype).map_or(0.0, |(min, _)| -min);
            let keys = bins.slot_finder(unit).integer_keys(bias * unit);
            Self { luma: Some(luma), light, bias: bias as usize, ..values(mode, keys) }
        };
        let slot_finder = || bins.slot_finder(1.0);
        match (*route, dtype) {
            (Route::U16Levels(channel), _) => Self::levels("U16_LEVELS", channel),
            (Route::Luma(kind), Dtype::U8 | Dtype::I8) => luma("U8_LUMA", kind),
            (Route::Luma(kind), Dtype::U16 | Dtype::I16) => luma("U16_LUMA", kind),
            (_, Dtype::U32) => values("U32_VALUES", slot_finder().integer_keys(0.0)),
            (_, Dtype::I32) => {
                values("I32_VALUES", slot_finder().integer_keys(f64::from(1u32 << 31)))
            }
            (_, Dtype::F32) => values("F32_VALUES", slot_finder().float_keys()),
            (route, dtype) => unreachable!("{route:?} of {dtype}"),
        }
    }
}

/// CounterLayout of the counters in workgroup memory.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CounterLayout {
    /// Number of slots that a workgroup counts. Other workgroups count the following slots.
    span: usize,
    /// Counters per slot, which reduce contention.
    replicas: usize,
    /// Whether a slot has only 8 bits, which overflow into the wider counters of the result.
    digits: bool,
}

impl CounterLayout {
    /// A few slots have several counters each, more slots have one. If there is no room for these, slots have a digit
    /// each, in as few spans as possible, since each span reads all pixels.
    fn new(limits: &DeviceLimits, slots: usize) -> Self {
        let bytes = limits.workgroup_bytes.min(48 << 10) as usize;
        let words = bytes / 4;
        if slots <= words {
            // The largest power of two up to 32 that fits.
            let replicas = 1 << (words.min(4 << 10) / slots).clamp(1, 32).ilog2();
            return Self { span: slots, replicas, digits: false };
        }
        let spans = slots.div_ceil(bytes / PLACES * PLACES);
        let span = slots.div_ceil(spans).next_multiple_of(PLACES);
        Self { span, replicas: 1, digits: true }
    }
}

/// Number of slots whose digits the shader permutes: four for each bank of workgroup memory.
const PLACES: usize = 128;

/// The shader for a component, and the layout of its counters.
struct SlotShader {
    shader: Shader,
    rule: SlotRule,
    /// Slots counted.
    slots: usize,
    layout: CounterLayout,
}

impl SlotShader {
    fn new(
        limits: &DeviceLimits,
        dtype: Dtype,
        channels: usize,
        bins: &Bins,
        route: &Route,
    ) -> Self {
        let rule = SlotRule::new(dtype, bins, route);
        let slots = if rule.keys.is_some() { bins.slots() } else { 1 << 16 };
        let layout = CounterLayout::new(limits, slots);
        // Digits take much memory, which many invocations then share.
        let group = if layout.digits { 1024 } else { 512 };
        let shader = shader(&rule, layout, channels, workgroup_size(limits, group));
        Self { shader, rule, slots, layout }
    }
}

/// The shaders for all components that are counted in slots, with some numbers of bins.
pub fn variants(limits: &DeviceLimits) -> Vec<Shader> {
    let mut inputs = Vec::new();
    for channels in 1..=4 {
        let levels = (0..channels).map(|channel| (Dtype::U16, channels, Route::U16Levels(channel)));
        inputs.extend(levels);
    }
    for luma in [Luma::Bt709, Luma::Bt601, Luma::Linear] {
        for dtype in [Dtype::U8, Dtype::I8, Dtype::U16, Dtype::I16] {
            inputs.extend([3, 4].map(|channels| (dtype, channels, Route::Luma(luma))));
        }
    }
    let values = Route::Values(Component::Channel(0));
    inputs.extend([Dtype::U32, Dtype::I32, Dtype::F32].map(|dtype| (dtype, 1, values)));
    let mut shaders = Vec::new();
    for (dtype, channels, route) in inputs {
        for count in [1, 100, 256, 1000, 10_000, MAX_BINS] {
            let bins = Bins::new(count, 0.0, 255.0, dtype).expect("a valid range");
            shaders.push(SlotShader::new(limits, dtype, channels, &bins, &route).shader);
        }
    }
    shaders
}

fn shader(rule: &SlotRule, layout: CounterLayout, channels: usize, group: u32) -> Shader {
    let CounterLayout { span, replicas, digits } = layout;
    let shader = rule.luma.unwrap_or_default().weighted(&SHADER);
    let shader = shader.with(&[("MODE", rule.mode)]);
    let shader = shader.with(&[("LINEAR", rule.light.is_some()), ("DIGITS", digits)]);
    shader.with(&[
        ("CHANNELS", channels),
        ("CHANNEL", rule.channel),
        ("BIAS", rule.bias),
        ("SPAN", span),
        ("REPLICAS", replicas),
        ("GROUP", group as usize),
    ])
}
