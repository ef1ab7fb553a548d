//! One component in any number of slots: levels of a 16-bit channel, binned luminance, binned values.

use super::bands::{count_bands, most_workgroups, workgroup_size};
use crate::{
    data::dtype::Dtype,
    gpu::{Batch, Buffer, Context, DeviceLimits, Shader},
    kernels::histogram::{
        bins::{Bins, Keys, MAX_BINS},
        counts::{Component, Pixels},
        cpu,
        luma::Luma,
        plan::Plan,
    },
    shader, shader_struct,
    util::error::Result,
};

static SHADER: Shader = shader!("histogram/slots").unchecked(
    "the host binds whole vectors that hold `pixels` pixels and bins + 1 keys; guesses are \
         clamped to the bins, slots compared with SPAN, and the counters cover whole spans",
);

shader_struct! {
    struct SlotsJob {
        pixels: u32,
        bins: u32,
        low: u32,
        scale: f32,
        offset: f32,
    }
}

/// Counts one component: levels or slots, as `plan` says.
///
/// # Errors
/// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when the device fails.
pub fn count(context: &Context, pixels: &Pixels, bins: &Bins, plan: &Plan) -> Result<Vec<u64>> {
    let dtype = pixels.samples.dtype();
    let plane: Vec<u8>;
    let (bytes, channels, dtype) = match plan {
        // No device computes in double precision for certain.
        Plan::Values(_) if dtype == Dtype::F64 => {
            log::debug!("{dtype} samples are counted on the CPU");
            return Ok(cpu::slots::count(pixels, bins, plan));
        }
        Plan::Values(Component::Luma(luma)) => {
            let values = luma.float_plane(&pixels.samples, pixels.channels);
            plane = bytemuck::pod_collect_to_vec(&values);
            (plane.as_slice(), 1, Dtype::F32)
        }
        Plan::Values(Component::Channel(channel)) if pixels.channels > 1 => {
            plane = channel_of(pixels, *channel);
            (plane.as_slice(), 1, dtype)
        }
        _ => (pixels.samples.as_bytes(), pixels.channels, dtype),
    };
    let limits = &context.limits;
    let Specialised { shader, rule, slots, layout } =
        Specialised::new(limits, dtype, channels, bins, plan);
    let group = context.pipeline(&shader, "count")?.workgroup_size[0];
    let (unit, spans) = (shader.constant("UNIT"), slots.div_ceil(layout.span));
    // Few workgroups have to add many digits in the end.
    let fewer = if layout.digits { 2 * spans as u64 } else { 1 };
    let most = (most_workgroups(context) / fewer).max(1);
    let keys = rule.keys.unwrap_or(Keys { keys: vec![0], low: 0, scale: 0.0, offset: 0.0 });
    let Keys { low, scale, offset, .. } = keys;
    let keys = context.upload("bin edges", &keys.keys)?;
    let light = context.upload("linear light", &rule.light.unwrap_or(vec![0]))?;
    let size = channels * dtype.size();
    let bytes = &bytes[..bytes.len() / size * size];
    let record = |batch: &mut Batch<'_>, data: &Buffer, pixels: u32, counts: &Buffer| {
        let groups = u64::from(pixels / unit).div_ceil(group.into()).clamp(1, most);
        let job = SlotsJob { pixels, bins: bins.count as u32, low, scale, offset };
        let buffers = [("data", data), ("keys", &keys), ("light", &light), ("counts", counts)];
        let groups = [spans as u32, groups as u32, 1];
        batch.dispatch("histogram", (&shader, "count"), &job, &buffers, groups)
    };
    let mut counted = count_bands(context, bytes, size, spans * layout.span, record)?;
    counted.truncate(slots);
    Ok(counted)
}

/// One channel of 32-bit pixels.
fn channel_of(pixels: &Pixels, channel: usize) -> Vec<u8> {
    let samples = pixels.samples.as_bytes().chunks_exact(4).skip(channel);
    samples.step_by(pixels.channels).flatten().copied().collect()
}

/// How a pixel's slot is found: the shader's rule for it, and the tables of that rule.
struct Rule {
    /// The shader's name for it.
    mode: &'static str,
    /// The channel whose levels are counted.
    channel: usize,
    luma: Option<Luma>,
    /// The edges of the bins; levels need none.
    keys: Option<Keys>,
    /// The light of each sample value in linear light.
    light: Option<Vec<u32>>,
}

impl Rule {
    fn new(dtype: Dtype, bins: &Bins, plan: &Plan) -> Self {
        let values =
            |mode, keys| Self { mode, channel: 0, luma: None, keys: Some(keys), light: None };
        let luma = |mode, luma: Luma, max| {
            let (light, fine) = luma.light(max);
            let unit = f64::from(luma.weights().1) * f64::from(fine);
            let light = (fine > 1).then_some(light);
            let keys = bins.finder(unit).integer_keys(0.0);
            Self { luma: Some(luma), light, ..values(mode, keys) }
        };
        let finder = || bins.finder(1.0);
        match (*plan, dtype) {
            (Plan::U16Levels(channel), _) => {
                Self { mode: "U16_LEVELS", channel, luma: None, keys: None, light: None }
            }
            (Plan::Luma(kind), Dtype::U8) => luma("U8_LUMA", kind, 255),
            (Plan::Luma(kind), Dtype::U16) => luma("U16_LUMA", kind, 65535),
            (_, Dtype::U32) => values("U32_VALUES", finder().integer_keys(0.0)),
            (_, Dtype::I32) => values("I32_VALUES", finder().integer_keys(f64::from(1u32 << 31))),
            (_, Dtype::F32) => values("F32_VALUES", finder().float_keys()),
            (plan, dtype) => unreachable!("{plan:?} of {dtype}"),
        }
    }
}

/// How the counters of `slots` slots lie in workgroup memory.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Layout {
    /// Slots that a workgroup counts; other workgroups count the next span.
    span: usize,
    /// Counters a slot, so that fewer invocations meet at one.
    replicas: usize,
    /// Whether a slot has a digit of 8 bits, which carries into wider counters.
    digits: bool,
}

impl Layout {
    /// Few slots have several counters each, more have one. Even more have a digit each, in as few spans as there is
    /// room for: each span reads all pixels.
    fn new(limits: &DeviceLimits, slots: usize) -> Self {
        let bytes = limits.workgroup_bytes.min(48 << 10) as usize;
        let words = bytes / 4;
        if slots <= words {
            // The largest power of two up to 32 for which there is room.
            let replicas = 1 << (words.min(4 << 10) / slots).clamp(1, 32).ilog2();
            return Self { span: slots, replicas, digits: false };
        }
        let spans = slots.div_ceil(bytes / PLACES * PLACES);
        let span = slots.div_ceil(spans).next_multiple_of(PLACES);
        Self { span, replicas: 1, digits: true }
    }
}

/// Slots whose digits the shader puts in another order among themselves: four for each bank of workgroup memory.
const PLACES: usize = 128;

/// How a device counts in slots.
struct Specialised {
    shader: Shader,
    rule: Rule,
    /// Slots counted.
    slots: usize,
    layout: Layout,
}

impl Specialised {
    fn new(limits: &DeviceLimits, dtype: Dtype, channels: usize, bins: &Bins, plan: &Plan) -> Self {
        let rule = Rule::new(dtype, bins, plan);
        let slots = if rule.keys.is_some() { bins.slots() } else { 1 << 16 };
        let layout = Layout::new(limits, slots);
        // Many invocations share the memory that digits take.
        let group = if layout.digits { 1024 } else { 512 };
        let shader = shader(&rule, layout, channels, workgroup_size(limits, group));
        Self { shader, rule, slots, layout }
    }
}

/// The shaders for all components that are counted in slots, with some numbers of bins.
pub fn variants(limits: &DeviceLimits) -> Vec<Shader> {
    let mut jobs = Vec::new();
    for channels in 1..=4 {
        let levels = (0..channels).map(|channel| (Dtype::U16, channels, Plan::U16Levels(channel)));
        jobs.extend(levels);
    }
    for luma in [Luma::Bt709, Luma::Bt601, Luma::Linear] {
        for dtype in [Dtype::U8, Dtype::U16] {
            jobs.extend([3, 4].map(|channels| (dtype, channels, Plan::Luma(luma))));
        }
    }
    let values = Plan::Values(Component::Channel(0));
    jobs.extend([Dtype::U32, Dtype::I32, Dtype::F32].map(|dtype| (dtype, 1, values)));
    let mut shaders = Vec::new();
    for (dtype, channels, plan) in jobs {
        for count in [1, 100, 256, 1000, 10_000, MAX_BINS] {
            let bins = Bins::new(count, 0.0, 255.0, dtype).expect("any range has so many bins");
            shaders.push(Specialised::new(limits, dtype, channels, &bins, &plan).shader);
        }
    }
    shaders
}

fn shader(rule: &Rule, layout: Layout, channels: usize, group: u32) -> Shader {
    let Layout { span, replicas, digits } = layout;
    let [red, green, blue] = rule.luma.map_or([0; 3], |luma| luma.weights().0);
    let shader = SHADER.with(&[("MODE", rule.mode)]);
    let shader = shader.with(&[("LINEAR", rule.light.is_some()), ("DIGITS", digits)]);
    shader.with(&[
        ("CHANNELS", channels),
        ("CHANNEL", rule.channel),
        ("RED", red as usize),
        ("GREEN", green as usize),
        ("BLUE", blue as usize),
        ("SPAN", span),
        ("REPLICAS", replicas),
        ("GROUP", group as usize),
    ])
}
