//! Levels of all 8-bit channels, and bins of their luminance, in one pass over the pixels.

use super::blocks::{count_blocks, has_little_memory, max_workgroups, workgroup_size};
use crate::{
    data::division::Ratio,
    gpu::{Batch, Buffer, Context, DeviceLimits, Shader},
    kernels::histogram::{
        counts::Pixels,
        luma::{Luma, LumaBins},
        route::{U8Components, U8Counts},
    },
    shader, shader_struct,
    util::error::Result,
};

static SHADER: Shader = shader!("histogram/u8_levels").unchecked(
    "the host binds whole vectors that hold `pixels` pixels; levels are bytes, luminance bins less \
         than 256, rows and copies taken modulo their numbers",
);

shader_struct! {
    struct U8Params {
        pixels: u32,
    }
}

/// Invocations per workgroup: many, because each workgroup clears its counters and adds them to the result.
const WORKGROUP: u32 = 1024;

/// Maximum number of invocations. One workgroup per core of an NVIDIA H200 was fastest there.
const INVOCATIONS: u32 = 132 * WORKGROUP;

/// Counts `components` of 8-bit pixels.
pub fn count(context: &Context, pixels: &Pixels, components: &U8Components) -> Result<U8Counts> {
    if !components.fits_one_pass() {
        let alone = |components| count(context, pixels, &components);
        let channels = alone(U8Components { luma: None, ..*components })?.channels;
        let luma = alone(U8Components { channels: [false; 4], ..*components })?.luma;
        return Ok(U8Counts { channels, luma });
    }
    let pass = U8Pass::new(context, components, pixels.channels);
    let bytes = &pixels.samples.as_bytes()[..pixels.len() * pixels.channels];
    let counters = count_blocks(
        context,
        bytes,
        pixels.channels,
        pass.counters,
        |batch, data, pixels, counts| pass.record(batch, data, pixels, counts),
    )?;
    Ok(pass.counts(&counters))
}

/// Counts `components`, which fit one pass, of `pixels` pixels of `channels` bytes that a device computes. `make`
/// records the passes that write the pixels, and returns their buffer, a whole number of 16-byte vectors.
pub fn count_on_device(
    context: &Context,
    components: &U8Components,
    channels: usize,
    pixels: u32,
    make: impl FnOnce(&mut Batch<'_>) -> Result<Buffer>,
) -> Result<U8Counts> {
    let pass = U8Pass::new(context, components, channels);
    let counts = context.allocate("counts", pass.counters as u64 * 4)?;
    let mut batch = context.batch();
    batch.clear(&counts);
    let data = make(&mut batch)?;
    pass.record(&mut batch, &data, pixels, &counts)?;
    batch.run()?;
    let counters: Vec<u32> = context.read(&counts, pass.counters)?;
    let counters: Vec<u64> = counters.into_iter().map(u64::from).collect();
    Ok(pass.counts(&counters))
}

/// Assignment of components to rows of the shader's counters.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rows {
    count: usize,
    /// The row of each channel that is counted.
    channels: [Option<usize>; 4],
    /// The row of the luminance, and its bins.
    luma: Option<(usize, usize)>,
    /// The lowest bit, in a pixel's word, of the byte that the luminance replaces; without luminance and with one row,
    /// of the byte that is counted.
    shift: usize,
}

impl Rows {
    /// Rows for pixels of `channels` bytes. Luminance takes the row of a channel that is not counted.
    fn new(components: &U8Components, channels: usize) -> Self {
        let bins = components.luma.map(|luma| luma.count);
        let counted = |channel: &usize| components.channels[*channel];
        let all: Vec<usize> = (0..4).filter(counted).collect();
        let free = (0..4).rev().find(|channel| !counted(channel)).unwrap_or(0);
        let mut rows = Self { count: 1, channels: [None; 4], luma: None, shift: 0 };
        match (&all[..], bins) {
            ([], bins) => rows.luma = bins.map(|bins| (0, bins)),
            (&[only], None) => {
                rows.channels[only] = Some(0);
                rows.shift = 8 * only;
            }
            (all, bins) => {
                rows.count = channels.next_power_of_two();
                all.iter().for_each(|&channel| rows.channels[channel] = Some(channel));
                rows.luma = bins.map(|bins| (free, bins));
                rows.shift = 8 * free;
            }
        }
        rows
    }
}

/// The shader that counts `components`, at most four, of pixels of `channels` bytes, and its rows.
fn specialised(
    components: &U8Components,
    channels: usize,
    limits: &DeviceLimits,
) -> (Rows, Shader) {
    let rows = Rows::new(components, channels);
    let none = LumaBins { weights: [0; 3], ratio: Ratio { times: 1, divisor: 1 }, count: 1 };
    let LumaBins { weights, ratio, count } = components.luma.unwrap_or(none);
    let bytes = |shift: u32| {
        let [red, green, blue] = weights.map(|weight| (weight >> shift & 255) as u8);
        u32::from_le_bytes([red, green, blue, 0])
    };
    let lanes = if has_little_memory(limits) { 16 } else { 32 };
    let shader = SHADER.with(&[("LUMINANCE", components.luma.is_some())]);
    let shader = shader.with(&[
        ("CHANNELS", channels as u32),
        ("ROWS", rows.count as u32),
        ("SHIFT", rows.shift as u32),
        ("LANES", lanes),
        ("GROUP", workgroup_size(limits, WORKGROUP)),
        ("HIGH", bytes(8)),
        ("LOW", bytes(0)),
        ("TIMES", ratio.times),
        ("DIVISOR", ratio.divisor),
        ("BINS", count as u32),
    ]);
    (rows, shader)
}

/// The shaders for all sets of components that a pass counts, with some numbers of bins.
pub fn variants(limits: &DeviceLimits) -> Vec<Shader> {
    let bins = [None, Some((Luma::Bt709, 256)), Some((Luma::Bt709, 1)), Some((Luma::Bt601, 100))];
    let mut shaders = Vec::new();
    for (channels, luma) in (1..=4).flat_map(|channels| bins.map(|luma| (channels, luma))) {
        let luma = luma.map(|(luma, count)| LumaBins::new(luma, count));
        for set in 0..1 << channels {
            let components = U8Components {
                channels: [0, 1, 2, 3].map(|channel| set >> channel & 1 == 1),
                luma,
            };
            let has_luma = luma.is_some();
            let is_possible = !(components.is_empty() || has_luma && channels < 3);
            if is_possible && components.fits_one_pass() {
                shaders.push(specialised(&components, channels, limits).1);
            }
        }
    }
    shaders
}

/// A pass that counts components of 8-bit pixels.
#[derive(Debug)]
pub struct U8Pass {
    shader: Shader,
    /// Invocations of a workgroup.
    group: u32,
    rows: Rows,
    /// Pixels that an invocation counts at a time.
    unit: u32,
    max_workgroups: u64,
    /// Counters needed, 256 per row.
    pub counters: usize,
}

impl U8Pass {
    /// The pass for at most four components of pixels of `channels` bytes.
    pub fn new(context: &Context, components: &U8Components, channels: usize) -> Self {
        let (rows, shader) = specialised(components, channels, &context.limits);
        let group = workgroup_size(&context.limits, WORKGROUP);
        Self {
            unit: shader.constant("UNIT_PIXELS"),
            shader,
            group,
            max_workgroups: max_workgroups(context).min(u64::from(INVOCATIONS / group)),
            counters: rows.count * 256,
            rows,
        }
    }

    /// The pass that counts the four bytes of words: 256 counters of the lowest byte, then 256 of the next, and so on.
    pub fn for_words(context: &Context) -> Self {
        Self::new(context, &U8Components { channels: [true; 4], luma: None }, 4)
    }

    /// The counts of each component, from all counters.
    pub fn counts(&self, counters: &[u64]) -> U8Counts {
        let row = |row: usize, bins: usize| counters[row * 256..][..bins].to_vec();
        U8Counts {
            channels: self.rows.channels.map(|at| at.map_or(Vec::new(), |at| row(at, 256))),
            luma: self.rows.luma.map_or(Vec::new(), |(at, bins)| row(at, bins)),
        }
    }

    /// Adds the counts of `pixels` pixels in `data`, a whole number of 16-byte vectors, to `counts`.
    pub fn record(
        &self,
        batch: &mut Batch<'_>,
        data: &Buffer,
        pixels: u32,
        counts: &Buffer,
    ) -> Result<()> {
        let units = u64::from(pixels / self.unit);
        let groups = units.div_ceil(self.group.into()).clamp(1, self.max_workgroups) as u32;
        let (params, buffers) = (U8Params { pixels }, [("data", data), ("counts", counts)]);
        batch.dispatch("histogram", &self.shader, "count", &params, &buffers, [groups, 1, 1])
    }
}
