//! The GPU host code: bands that fit a binding, and passes that add to one set of counters.

use std::sync::Arc;

use super::{Bins, BytesRows, LumaDivision, Pixels, Plan, Row, cpu};
use crate::{
    data::samples::Dtype,
    error::Result,
    gpu::{Batch, Buffer, Context, Pipeline, Shader},
    shader, shader_struct,
};

static BYTES: Shader = shader!("histogram/bytes").unchecked(
    "the host binds whole vectors that hold `pixels` pixels; levels are bytes, luminance bins less \
         than 256, slots and copies taken modulo their numbers",
);
static SLOTS: Shader = shader!("histogram/slots").unchecked(
    "the host binds whole vectors that hold `pixels` pixels and bins + 1 keys; guesses are \
         clamped to the bins, slots compared with SPAN, and the counters cover whole spans",
);

pub(super) static BASELINES: Shader = shader!("histogram/baselines");

/// The shaders of this family.
pub const SHADERS: [&Shader; 4] = [&BYTES, &SLOTS, &BASELINES, &super::adjust::ADJUST];

shader_struct! {
    struct BytesJob {
        pixels: u32,
    }
}

shader_struct! {
    struct SlotsJob {
        pixels: u32,
        bins: u32,
        low: u32,
        scale: f32,
        offset: f32,
    }
}

/// Workgroups that stride over the pixels, enough to fill large GPUs; more only add their counters
/// more often.
const WORKGROUPS: u64 = 528;

/// Invocations that count bytes, and how many of them form a workgroup where the device has so large
/// ones: few and large, because every workgroup has to clear its counters and to add them up. Measured
/// on an NVIDIA H200, which has 132 cores.
const INVOCATIONS: u32 = 132 * GROUP;
const GROUP: u32 = 1024;

/// Bytes of input on the device at a time.
pub(super) const BAND: u64 = 256 << 20;

/// Invocations a workgroup: more of them share one set of counters, so that more fit a core. Devices
/// of little workgroup memory get what every device has.
fn invocations(context: &Context, wanted: u32) -> u32 {
    let limits = &context.limits;
    let most =
        limits.max_compute_invocations_per_workgroup.min(limits.max_compute_workgroup_size_x);
    let small = limits.max_compute_workgroup_storage_size < 32 << 10;
    if small || most < wanted { 256 } else { wanted }
}

/// Counts every row of `rows` in one pass over 8-bit pixels.
pub(super) fn count_bytes(
    context: &Context,
    pixels: &Pixels,
    rows: &BytesRows,
) -> Result<Vec<Vec<u64>>> {
    if rows.luma.is_some() && !rows.channels.contains(&false) {
        // One row too many for a pass.
        let alone = |rows| count_bytes(context, pixels, &rows);
        let mut counts = alone(BytesRows { luma: None, ..*rows })?;
        counts.extend(alone(BytesRows { channels: [false; 4], ..*rows })?);
        return Ok(counts);
    }
    let pass = BytesPass::new(context, rows, pixels.channels)?;
    let bytes = &pixels.samples.as_bytes()[..pixels.len() * pixels.channels];
    let counters =
        count_bands(context, bytes, pixels.channels, pass.counters, |batch, band, counts| {
            pass.record(batch, band.data, band.pixels, counts);
        })?;
    Ok(pass.rows(&counters, rows))
}

/// Counts one row of any other kind.
pub(super) fn count_row(
    context: &Context,
    pixels: &Pixels,
    bins: &Bins,
    plan: &Plan,
) -> Result<Vec<u64>> {
    let dtype = pixels.samples.dtype();
    let plane: Vec<u8>;
    let (bytes, channels) = match plan {
        // No device here computes in double precision for certain.
        Plan::Values(_) if dtype == Dtype::F64 => {
            log::debug!("{dtype} samples are counted on the CPU");
            return Ok(cpu::count_row(pixels, bins, plan));
        }
        Plan::Values(Row::Luma(luma)) => {
            let values = cpu::luminance(&pixels.samples, pixels.channels, *luma);
            plane = bytemuck::pod_collect_to_vec(&values);
            (plane.as_slice(), 1)
        }
        Plan::Values(Row::Channel(channel)) if pixels.channels > 1 => {
            plane = channel_of(pixels, *channel);
            (plane.as_slice(), 1)
        }
        _ => (pixels.samples.as_bytes(), pixels.channels),
    };
    let pass = SlotsPass::new(context, dtype, channels, bins, plan)?;
    let size = channels * dtype.size();
    let bytes = &bytes[..bytes.len() / size * size];
    let mut slots = count_bands(context, bytes, size, pass.counters, |batch, band, counts| {
        pass.record(batch, band.data, band.pixels, counts);
    })?;
    slots.truncate(pass.slots);
    Ok(slots)
}

/// One channel of 32-bit pixels.
fn channel_of(pixels: &Pixels, channel: usize) -> Vec<u8> {
    let words = pixels.samples.as_bytes().chunks_exact(4).skip(channel);
    words.step_by(pixels.channels).flatten().copied().collect()
}

struct Band<'a> {
    data: &'a Buffer,
    pixels: u32,
}

/// Uploads `bytes` band by band, lets `record` add passes that count each band, and sums the
/// counters in 64 bits.
fn count_bands(
    context: &Context,
    bytes: &[u8],
    pixel_bytes: usize,
    counters: usize,
    record: impl Fn(&mut Batch<'_>, &Band<'_>, &Buffer),
) -> Result<Vec<u64>> {
    let mut sums = vec![0u64; counters];
    if bytes.is_empty() {
        return Ok(sums);
    }
    let most = context.max_binding().min(BAND) / 16 * 16 / pixel_bytes as u64 * pixel_bytes as u64;
    let band_bytes = (bytes.len() as u64).min(most);
    // Shaders read whole vectors of 16 bytes.
    let data = context.allocate("pixels", band_bytes.next_multiple_of(16))?;
    let counts = context.allocate("counts", counters as u64 * 4)?;
    for band in bytes.chunks(band_bytes as usize) {
        context.write(&data, 0, band)?;
        let mut batch = context.batch();
        batch.clear(&counts);
        let pixels = (band.len() / pixel_bytes) as u32;
        record(&mut batch, &Band { data: &data, pixels }, &counts);
        batch.run()?;
        let counted: Vec<u32> = context.read(&counts, counters)?;
        sums.iter_mut().zip(counted).for_each(|(sum, more)| *sum += u64::from(more));
    }
    Ok(sums)
}

fn most_groups(context: &Context) -> u64 {
    u64::from(context.limits.max_compute_workgroups_per_dimension).min(WORKGROUPS)
}

/// The largest power of two up to 32 of which `slots` fit in `words`.
fn replicas(slots: usize, words: usize) -> usize {
    1 << (words / slots).clamp(1, 32).ilog2()
}

/// A pipeline that counts rows of 8-bit pixels.
pub(super) struct BytesPass {
    pipeline: Arc<Pipeline>,
    channels: usize,
    most_groups: u64,
    /// Where the counters of each row begin: 256 of them.
    starts: Vec<usize>,
    /// Counters needed.
    pub counters: usize,
}

impl BytesPass {
    /// For at most four rows of pixels of `channels` bytes.
    pub fn new(context: &Context, rows: &BytesRows, channels: usize) -> Result<Self> {
        let counted: Vec<usize> = (0..4).filter(|&channel| rows.channels[channel]).collect();
        // Luminance takes the place of a channel that is not counted.
        let free = (0..4).rev().find(|&channel| !rows.channels[channel]).unwrap_or(0);
        let (slots, shift, starts) = match (&counted[..], rows.luma) {
            ([], _) => (1, 0, vec![0]),
            ([only], None) => (1, 8 * only, vec![0]),
            (_, luma) => {
                let places = counted.iter().copied().chain(luma.map(|_| free));
                (channels.next_power_of_two(), 8 * free, places.map(|slot| slot * 256).collect())
            }
        };
        let luma =
            rows.luma.unwrap_or(LumaDivision { weights: [0; 3], times: 1, divisor: 1, bins: 1 });
        let packed = |shift: u32| {
            let bytes = luma.weights.map(|weight| (weight >> shift & 255) as u8);
            u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]) as usize
        };
        let room = context.limits.max_compute_workgroup_storage_size >= 32 << 10;
        let group = invocations(context, GROUP);
        let number = |value: usize| format!("{value}u");
        let shader = BYTES.with(&[
            ("CHANNELS", &number(channels)),
            ("SLOTS", &number(slots)),
            ("LUMINANCE", if rows.luma.is_some() { "true" } else { "false" }),
            ("SHIFT", &number(shift)),
            ("LANES", if room { "32u" } else { "16u" }),
            ("GROUP", &number(group as usize)),
            ("HIGH", &number(packed(8))),
            ("LOW", &number(packed(0))),
            ("TIMES", &number(luma.times as usize)),
            ("DIVISOR", &number(luma.divisor as usize)),
            ("BINS", &number(luma.bins)),
        ]);
        Ok(Self {
            pipeline: context.pipeline(&shader, "count")?,
            channels,
            most_groups: most_groups(context).min(u64::from(INVOCATIONS / group)),
            starts,
            counters: slots * 256,
        })
    }

    /// The counts of each row out of all counters.
    pub fn rows<T: Copy>(&self, counters: &[T], rows: &BytesRows) -> Vec<Vec<T>> {
        let slots = self.starts.iter().zip(rows.slots());
        slots.map(|(&start, slots)| counters[start..start + slots].to_vec()).collect()
    }

    /// Adds the counts of `pixels` pixels in `data`, a whole number of 16-byte vectors, to `counts`.
    pub fn record(&self, batch: &mut Batch<'_>, data: &Buffer, pixels: u32, counts: &Buffer) {
        let unit_pixels = if self.channels == 3 { 16 } else { 16 / self.channels as u64 };
        let units = u64::from(pixels) / unit_pixels;
        let group = u64::from(self.pipeline.workgroup_size[0]);
        let groups = units.div_ceil(group).clamp(1, self.most_groups) as u32;
        batch
            .pass("histogram", &self.pipeline)
            .buffer("data", data)
            .buffer("counts", counts)
            .uniform("job", &BytesJob { pixels })
            .dispatch([groups, 1, 1]);
    }
}

/// A pipeline and tables that count one row in slots.
pub(super) struct SlotsPass {
    pipeline: Arc<Pipeline>,
    keys: Buffer,
    light: Buffer,
    job: SlotsJob,
    /// Pixels that one unit of work has.
    unit: u32,
    most_groups: u64,
    spans: u32,
    /// Slots counted.
    pub slots: usize,
    /// Counters needed, whole spans of them.
    pub counters: usize,
}

impl SlotsPass {
    pub fn new(
        context: &Context,
        dtype: Dtype,
        channels: usize,
        bins: &Bins,
        plan: &Plan,
    ) -> Result<Self> {
        let mut channel = 0;
        let mut weights = [0; 3];
        let mut light = vec![0];
        let mut linear = false;
        let (mode, keys) = match (plan, dtype) {
            (Plan::Halves(which), _) => {
                channel = *which;
                (0, None)
            }
            (Plan::Luma(luma), Dtype::U8 | Dtype::U16) => {
                let eight = dtype == Dtype::U8;
                let (table, fine) = luma.light(if eight { 255 } else { 65535 });
                let (factors, sum) = luma.weights();
                (weights, light, linear) = (factors, table, fine > 1);
                let unit = f64::from(sum) * f64::from(fine);
                (if eight { 1 } else { 2 }, Some(bins.finder(unit).integer_keys(0.0)))
            }
            (_, Dtype::U32) => (3, Some(bins.finder(1.0).integer_keys(0.0))),
            (_, Dtype::I32) => (4, Some(bins.finder(1.0).integer_keys(f64::from(1u32 << 31)))),
            (_, Dtype::F32) => (5, Some(bins.finder(1.0).float_keys())),
            (plan, dtype) => unreachable!("{plan:?} of {dtype}"),
        };
        let slots = keys.as_ref().map_or(1 << 16, |_| bins.slots());
        let words = context.limits.max_compute_workgroup_storage_size.min(48 << 10) as usize / 4;
        // Few slots: several counters for each. More: one for each, in up to six spans of slots that
        // workgroups count side by side. Many: spans of twice as many counters of 16 bits.
        let packed = slots > 6 * words;
        let (words, replicas) = match slots > words {
            true => (words, 1),
            false => {
                let replicas = replicas(slots, words.min(4 << 10));
                (slots * replicas, replicas)
            }
        };
        let span = if packed { words * 2 } else { words / replicas };
        let spans = slots.div_ceil(span) as u32;
        // Spans read the same input: many invocations to a span leave fewer of them waiting for it.
        let group = invocations(context, if spans > 1 { 1024 } else { 512 });
        // And fewer workgroups have to add their many counters in the end.
        let most_groups = if spans > 1 { most_groups(context) / 8 } else { most_groups(context) };
        let number = |value: usize| format!("{value}u");
        let shader = SLOTS.with(&[
            ("MODE", &number(mode)),
            ("CHANNELS", &number(channels)),
            ("CHANNEL", &number(channel)),
            ("RED", &number(weights[0] as usize)),
            ("GREEN", &number(weights[1] as usize)),
            ("BLUE", &number(weights[2] as usize)),
            ("LINEAR", if linear { "true" } else { "false" }),
            ("WORDS", &number(words)),
            ("PACKED", if packed { "true" } else { "false" }),
            ("REPLICAS", &number(replicas)),
            ("GROUP", &number(group as usize)),
        ]);
        let unit = match mode {
            0 if channels == 1 => 8,
            3.. => 4,
            _ => 1,
        };
        let keys =
            keys.unwrap_or(super::bins::Keys { keys: vec![0], low: 0, scale: 0.0, offset: 0.0 });
        Ok(Self {
            pipeline: context.pipeline(&shader, "count")?,
            job: SlotsJob {
                pixels: 0,
                bins: bins.count as u32,
                low: keys.low,
                scale: keys.scale,
                offset: keys.offset,
            },
            keys: context.upload("bin edges", &keys.keys)?,
            light: context.upload("linear light", &light)?,
            unit,
            most_groups,
            spans,
            slots,
            counters: spans as usize * span,
        })
    }

    /// Adds the counts of `pixels` pixels in `data`, a whole number of 16-byte vectors, to `counts`.
    pub fn record(&self, batch: &mut Batch<'_>, data: &Buffer, pixels: u32, counts: &Buffer) {
        let group = u64::from(self.pipeline.workgroup_size[0]);
        let units = u64::from(pixels / self.unit);
        let groups = units.div_ceil(group).clamp(1, self.most_groups) as u32;
        batch
            .pass("histogram", &self.pipeline)
            .buffer("data", data)
            .buffer("keys", &self.keys)
            .buffer("light", &self.light)
            .buffer("counts", counts)
            .uniform("job", &SlotsJob { pixels, ..self.job })
            .dispatch([groups, self.spans, 1]);
    }
}
