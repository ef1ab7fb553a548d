//! What `gpuproc bench histogram` measures: the routes in use, and published ways to count.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use super::{
    bins::{Bins, type_range},
    counts::{Component, Counts, Pixels},
    cpu,
    gpu::{
        baselines::{self, Baseline, Counting},
        slots::SlotsPass,
        u8_levels::U8Pass,
    },
    kernel::Histogram,
    luma::{Luma, LumaBins},
    moments::moments,
    plan::{Plan, U8Components, U8Counts},
};
use crate::{
    data::{dtype::Dtype, noise::Noise, samples::Samples},
    error::{Error, Result},
    for_samples,
    gpu::{Batch, Buffer, Context},
    kernels::case::{Case, Prepared},
};

/// An image to count.
#[derive(Clone, Debug)]
struct Problem {
    width: u32,
    height: u32,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Noise,
    /// Equal words, and what they are called.
    Repeated(u32, &'static str),
    /// RGBA8 pixels and their name.
    Given(Arc<[u32]>, String),
}

impl Problem {
    fn pixels(&self) -> u32 {
        self.width * self.height
    }

    /// The first `words` 32-bit words: RGBA8 pixels, or pairs of u16 samples.
    fn words(&self, words: u32) -> Result<Vec<u32>> {
        Ok(match &self.content {
            Content::Given(all, _) => all[..words as usize].to_vec(),
            Content::Repeated(word, _) => vec![*word; words as usize],
            Content::Noise => Noise(0).u32s(words as usize)?,
        })
    }

    fn name(&self, what: &str) -> String {
        let content = match &self.content {
            Content::Noise => "noise",
            Content::Repeated(_, name) => name,
            Content::Given(_, name) => name,
        };
        format!("{}x{} {what}, {content}", self.width, self.height)
    }
}

/// The cases: with `full`, an image of the published size and a large one; else sizes that a software
/// device counts in a second or two.
pub fn cases(full: bool) -> Vec<Case> {
    let (width, height) = if full { (2448, 1505) } else { (613, 377) };
    let small = Problem { width, height, content: Content::Noise };
    let side = if full { 8192 } else { 1024 };
    let large = Problem { width: side, height: side, content: Content::Noise };
    let repeated = |word, name| Problem { content: Content::Repeated(word, name), ..large };
    let flat = repeated(0x8040_c0a0, "one colour");
    let mut cases = Vec::new();
    for rows in baselines::ROWS {
        cases.extend(Baseline::ALL.map(|baseline| baseline_case(baseline, &small, rows)));
        cases.extend([&small, &large, &flat].map(|problem| u8_case(problem, rows)));
    }
    let level = repeated(0xc0a0_c0a0, "one level");
    let levels = repeated(0x8040_c0a0, "two levels in turn");
    cases.extend([&large, &level, &levels].map(u16_case));
    cases
}

/// All ways to count given samples, `dims` pixels of `channels` each.
///
/// # Errors
/// When there are no bins over the range of the samples.
pub fn cases_of(
    name: &str,
    dims: [usize; 2],
    samples: Samples,
    channels: usize,
) -> Result<Vec<Case>> {
    let mut cases = published_ways(name, dims, &samples, channels);
    cases.extend(own_ways(name, samples, channels)?);
    Ok(cases)
}

/// The published ways to count 8-bit colours, as RGBA. None for other samples, and for more pixels than the counters
/// of these ways, u32, can count.
fn published_ways(name: &str, dims: [usize; 2], samples: &Samples, channels: usize) -> Vec<Case> {
    let (Samples::U8(bytes), 3 | 4) = (samples, channels) else { return Vec::new() };
    if u32::try_from(bytes.len() / channels).is_err() {
        return Vec::new();
    }
    let words: Arc<[u32]> = bytes
        .chunks_exact(channels)
        .map(|pixel| {
            u32::from_le_bytes([pixel[0], pixel[1], pixel[2], *pixel.get(3).unwrap_or(&255)])
        })
        .collect();
    let [width, height] = dims.map(|n| n as u32);
    let problem = Problem { width, height, content: Content::Given(words, name.to_owned()) };
    let ways = |rows| Baseline::ALL.map(|baseline| baseline_case(baseline, &problem, rows));
    baselines::ROWS.into_iter().flat_map(ways).collect()
}

/// This program's ways to count samples of any type: luminance and colours, or one channel.
fn own_ways(name: &str, samples: Samples, channels: usize) -> Result<Vec<Case>> {
    let dtype = samples.dtype();
    let bytes = samples.as_bytes().len() as u64;
    let pixels = Arc::new(Pixels { samples, channels });
    let range = type_range(dtype).unwrap_or_else(|| {
        let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
        let found = moments(&pixels, Component::Channel(0), low, high, false);
        if found.count > 0 { (found.min, found.max) } else { (0.0, 1.0) }
    });
    let mut cases = Vec::new();
    let mut add = |components: Vec<Component>, count: usize, called: &str| -> Result<()> {
        let bins = Bins::new(count, range.0, range.1, dtype)?;
        let kernel = Histogram { components, bins, weighted: false };
        let problem = format!("{count} bins of {called}, {name}");
        cases.push(Case::of_kernel(
            ["histogram", "gpuproc"],
            problem,
            bytes,
            kernel,
            &pixels,
            check_counts,
        ));
        Ok(())
    };
    let counts: &[usize] = if dtype.size() == 1 { &[256] } else { &[256, 1 << 16] };
    for &count in counts {
        match channels {
            3.. => {
                let luma = Component::Luma(Luma::Bt709);
                add(vec![luma], count, "luminance")?;
                let [r, g, b] = [0, 1, 2].map(Component::Channel);
                add(vec![r, g, b, luma], count, "r, g, b, luminance")?;
            }
            _ => add(vec![Component::Channel(0)], count, "grey")?,
        }
    }
    Ok(cases)
}

/// Counts sample by sample, with the bins' edges alone, and compares.
fn check_counts(kernel: &Histogram, pixels: &Pixels, found: &Vec<Counts>) -> Result<()> {
    for (&component, found) in kernel.components.iter().zip(found) {
        let Component::Channel(channel) = component else { continue };
        let bins = &kernel.bins;
        let edges: Vec<f64> = (0..=bins.count).map(|k| bins.edge(k)).collect();
        let mut expected = vec![0u64; bins.count];
        for_samples!(&pixels.samples, values => {
            for value in values.iter().skip(channel).step_by(pixels.channels) {
                #[allow(clippy::cast_lossless, clippy::unnecessary_cast)]
                let value = *value as f64;
                if value >= bins.low && value <= bins.high {
                    let bin = edges.partition_point(|&edge| edge <= value) - 1;
                    expected[bin.min(bins.count - 1)] += 1;
                }
            }
        });
        compare(&expected, &found.bins)?;
    }
    let all = pixels.len() as u64;
    match found.iter().all(|counts| counts.total() == all) {
        true => Ok(()),
        false => Err(Error::gpu("not every pixel is counted once")),
    }
}

/// Luminance when `rows` is 1, else red, green, blue and luminance.
fn u8_components(rows: u32) -> U8Components {
    let luma = Some(LumaBins::new(Luma::Bt709, 256));
    U8Components { channels: [rows == 4, rows == 4, rows == 4, false], luma }
}

/// The counts of [`u8_components`] in one vector.
fn joined(counts: U8Counts, rows: u32) -> Vec<u64> {
    let colours = if rows == 4 { counts.channels[..3].concat() } else { Vec::new() };
    [colours, counts.luma].concat()
}

/// What [`joined`] is to be, by none of the kernels' means: exact luminance by 64-bit division.
fn expected_u8(words: &[u32], rows: u32) -> Vec<u64> {
    let mut counts = vec![0u64; rows as usize * 256];
    for word in words {
        let [r, g, b, _] = word.to_le_bytes().map(u64::from);
        let luma = ((2126 * r + 7152 * g + 722 * b) * 256 / 2_550_000).min(255);
        let levels = if rows == 4 { vec![r, g, b, luma] } else { vec![luma] };
        for (row, level) in levels.into_iter().enumerate() {
            counts[row * 256 + level as usize] += 1;
        }
    }
    counts
}

fn compare(expected: &[u64], found: &[u64]) -> Result<()> {
    match expected.iter().zip(found).position(|(expected, found)| expected != found) {
        None if found.len() < expected.len() => Err(Error::gpu("the histogram is too short")),
        None => Ok(()),
        Some(slot) => Err(Error::gpu(format_args!("slot {slot} of the histogram is wrong"))),
    }
}

fn channels_name(rows: u32) -> &'static str {
    if rows == 4 { "RGBA8, 4 rows" } else { "RGBA8, luminance" }
}

/// Counts on the CPU, compared with `expected` in the end.
fn prepared_cpu(
    count: impl Fn() -> Vec<u64> + 'static,
    expected: impl FnOnce() -> Vec<u64> + 'static,
) -> Prepared<'static> {
    let counted = Rc::new(RefCell::new(Vec::new()));
    let last = counted.clone();
    Prepared {
        run: Box::new(move || {
            *counted.borrow_mut() = count();
            Ok(())
        }),
        check: Box::new(move || compare(&expected(), &last.borrow())),
    }
}

/// A batch to run and the counters that it fills. In the end `counts` of them is compared with `expected`.
fn prepared_gpu<'c>(
    context: &'c Context,
    batch: Batch<'c>,
    (buffer, counters): (Buffer, usize),
    counts: impl FnOnce(Vec<u64>) -> Vec<u64> + 'c,
    expected: impl FnOnce() -> Vec<u64> + 'c,
) -> Prepared<'c> {
    Prepared {
        run: Box::new(move || batch.run()),
        check: Box::new(move || {
            let found: Vec<u32> = context.read(&buffer, counters)?;
            compare(&expected(), &counts(found.into_iter().map(u64::from).collect()))
        }),
    }
}

fn u8_case(problem: &Problem, rows: u32) -> Case {
    let problem = problem.clone();
    Case {
        family: "histogram",
        algorithm: "replicated workgroup bins",
        problem: problem.name(channels_name(rows)),
        baseline: false,
        bytes: u64::from(problem.pixels()) * 4,
        on_cpu: true,
        prepare: Box::new(move |context| {
            let words = problem.words(problem.pixels())?;
            let components = u8_components(rows);
            let Some(context) = context else {
                let samples = Samples::U8(bytemuck::pod_collect_to_vec(&words));
                let pixels = Pixels { samples, channels: 4 };
                let count = move || joined(cpu::u8_levels::count(&pixels, &components), rows);
                return Ok(prepared_cpu(count, move || expected_u8(&words, rows)));
            };
            let pass = U8Pass::new(context, &components, 4)?;
            let data = context.allocate("pixels", (4 * words.len() as u64).next_multiple_of(16))?;
            context.write(&data, 0, &words)?;
            let counts = context.allocate("counts", pass.counters as u64 * 4)?;
            let mut batch = context.batch();
            batch.clear(&counts);
            pass.record(&mut batch, &data, problem.pixels(), &counts);
            let counters = pass.counters;
            let rows_of = move |counters: Vec<u64>| joined(pass.counts(&counters), rows);
            let expected = move || expected_u8(&words, rows);
            Ok(prepared_gpu(context, batch, (counts, counters), rows_of, expected))
        }),
    }
}

/// All 65,536 levels of a 16-bit grey image.
fn u16_case(problem: &Problem) -> Case {
    let problem = problem.clone();
    Case {
        family: "histogram",
        algorithm: "spans of slots",
        problem: problem.name("grey 16-bit, 65,536 bins"),
        baseline: false,
        bytes: u64::from(problem.pixels()) * 2,
        on_cpu: true,
        prepare: Box::new(move |context| {
            let words = problem.words(problem.pixels() / 2)?;
            let bins = Bins::new(1 << 16, 0.0, 65535.0, Dtype::U16)?;
            let plan = Plan::U16Levels(0);
            let Some(context) = context else {
                let samples = Samples::U16(bytemuck::pod_collect_to_vec(&words));
                let pixels = Pixels { samples, channels: 1 };
                let count = move || cpu::slots::count(&pixels, &bins, &plan);
                return Ok(prepared_cpu(count, move || expected_u16(&words)));
            };
            let pass = SlotsPass::new(context, Dtype::U16, 1, &bins, &plan)?;
            let data = context.allocate("pixels", (4 * words.len() as u64).next_multiple_of(16))?;
            context.write(&data, 0, &words)?;
            let counts = context.allocate("counts", pass.counters as u64 * 4)?;
            let mut batch = context.batch();
            batch.clear(&counts);
            pass.record(&mut batch, &data, problem.pixels(), &counts);
            let counters = (counts, pass.counters);
            Ok(prepared_gpu(context, batch, counters, |all| all, move || expected_u16(&words)))
        }),
    }
}

fn expected_u16(words: &[u32]) -> Vec<u64> {
    let mut counts = vec![0u64; 1 << 16];
    for word in words {
        counts[*word as usize & 65535] += 1;
        counts[*word as usize >> 16] += 1;
    }
    counts
}

fn baseline_case(baseline: Baseline, problem: &Problem, rows: u32) -> Case {
    let problem = problem.clone();
    Case {
        family: "histogram",
        algorithm: baseline.name(),
        problem: problem.name(channels_name(rows)),
        baseline: true,
        bytes: u64::from(problem.pixels()) * 4,
        on_cpu: false,
        prepare: Box::new(move |context| {
            let context = context.ok_or_else(|| Error::usage("baselines need a GPU"))?;
            let words = problem.words(problem.pixels())?;
            let data = context.upload("pixels", &words)?;
            let counts = context.allocate("counts", u64::from(rows) * 1024)?;
            let size = [problem.width, problem.height];
            let mut batch = context.batch();
            let counting = Counting { context, size, rows, data: &data, counts: &counts };
            counting.record(baseline, &mut batch)?;
            let counters = (counts, 256 * rows as usize);
            let expected = move || expected_u8(&words, rows);
            Ok(prepared_gpu(context, batch, counters, |all| all, expected))
        }),
    }
}
