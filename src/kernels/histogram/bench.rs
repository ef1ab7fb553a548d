//! What `gpuproc bench histogram` measures: the fast kernels, and four published ways to count.

use std::sync::Arc;

use super::{
    Bins, BytesRows, Counts, Histogram, Luma, LumaDivision, Pixels, Plan, Row, cpu,
    gpu::{BASELINES, BytesPass, SlotsPass},
    moments, type_range,
};
use crate::{
    data::noise::Noise,
    data::samples::{Dtype, Samples},
    error::{Error, Result},
    for_samples,
    gpu::{Batch, Buffer, Context},
    kernels::case::{Case, Prepared},
    shader_struct,
};

shader_struct! {
    struct BaselineJob {
        width: u32,
        height: u32,
        start: u32,
        pixels: u32,
        chunks: u32,
        stride: u32,
    }
}

/// A picture to count.
#[derive(Clone, Debug)]
struct Picture {
    width: u32,
    height: u32,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Noise,
    OneColour,
    /// All its words and its name.
    Given(Arc<[u32]>, String),
}

impl Picture {
    fn pixels(&self) -> u32 {
        self.width * self.height
    }

    /// So many words of it, each a pixel of four bytes or two samples of 16 bits.
    fn words(&self, words: u32) -> Result<Vec<u32>> {
        Ok(match &self.content {
            Content::Given(all, _) => all[..words as usize].to_vec(),
            Content::OneColour => vec![0x8040_c0a0; words as usize],
            Content::Noise => Noise(0).u32s(words as usize)?,
        })
    }

    fn name(&self, what: &str) -> String {
        let content = match &self.content {
            Content::Noise => "noise",
            Content::OneColour => "one colour",
            Content::Given(_, name) => name,
        };
        format!("{}x{} {what}, {content}", self.width, self.height)
    }
}

/// The published ways to count.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Baseline {
    /// B2: one invocation counts everything.
    Single,
    /// B4: an invocation a pixel, counters in device memory.
    Each,
    /// B5: a workgroup counts 256 pixels in its own memory; one workgroup sums these chunks.
    ChunksSum,
    /// B6: the same chunks, added pair by pair in ceil(log2 n) passes.
    ChunksReduce,
}

impl Baseline {
    const ALL: [Self; 4] = [Self::Single, Self::Each, Self::ChunksSum, Self::ChunksReduce];

    fn name(self) -> &'static str {
        match self {
            Self::Single => "one invocation",
            Self::Each => "a pixel each",
            Self::ChunksSum => "chunks + sum",
            Self::ChunksReduce => "chunks + reduce",
        }
    }
}

/// Pixels that one pass of B2 counts: some devices end loops silently after 65,535 rounds, which
/// are two a pixel of four rows.
const SINGLE_PIXELS: u32 = 13_000;

/// The cases: with `full`, the published picture size and a large one; else sizes that a software
/// device counts in a second or two.
pub fn cases(full: bool) -> Vec<Case> {
    let small = match full {
        true => Picture { width: 2448, height: 1505, content: Content::Noise },
        false => Picture { width: 613, height: 377, content: Content::Noise },
    };
    let side = if full { 8192 } else { 1024 };
    let large = Picture { width: side, height: side, content: Content::Noise };
    let flat = Picture { content: Content::OneColour, ..large };
    let mut cases = Vec::new();
    for rows in [1, 4] {
        cases.extend(Baseline::ALL.map(|baseline| baseline_case(baseline, &small, rows)));
        cases.extend([&small, &large, &flat].map(|picture| bytes_case(picture, rows)));
    }
    cases.extend([&large, &flat].map(halves_case));
    cases
}

/// All ways to count given samples, `dims` pixels of `channels` each: pictures of bytes by the
/// published ways, too, as RGBA.
///
/// # Errors
/// When the samples have no rows to count.
pub fn cases_of(
    name: &str,
    [width, height]: [usize; 2],
    samples: Samples,
    channels: usize,
) -> Result<Vec<Case>> {
    let dtype = samples.dtype();
    let mut cases = Vec::new();
    if let (Samples::U8(bytes), 3 | 4) = (&samples, channels) {
        let words: Arc<[u32]> = bytes
            .chunks_exact(channels)
            .map(|pixel| {
                u32::from_le_bytes([pixel[0], pixel[1], pixel[2], *pixel.get(3).unwrap_or(&255)])
            })
            .collect();
        let [width, height] = [width, height].map(|n| n as u32);
        let picture = Picture { width, height, content: Content::Given(words, name.to_owned()) };
        for rows in [1, 4] {
            cases.extend(Baseline::ALL.map(|baseline| baseline_case(baseline, &picture, rows)));
        }
    }
    let range = type_range(dtype).unwrap_or_else(|| {
        let all = moments(
            &Pixels { samples: samples.clone(), channels },
            Row::Channel(0),
            f64::NEG_INFINITY,
            f64::INFINITY,
            false,
        );
        if all.count > 0 { (all.min, all.max) } else { (0.0, 1.0) }
    });
    let bytes = samples.as_bytes().len() as u64;
    let pixels = Arc::new(Pixels { samples, channels });
    let mut rows: Vec<Row> = (0..channels.min(3)).map(Row::Channel).collect();
    let mut add = |rows: Vec<Row>, count: usize, called: &str| -> Result<()> {
        let bins = Bins::new(count, range.0, range.1, dtype)?;
        let kernel = Histogram { rows, bins, weighted: false };
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
                add(vec![Row::Luma(Luma::Bt709)], count, "luminance")?;
                rows.truncate(3);
                rows.push(Row::Luma(Luma::Bt709));
                add(rows.clone(), count, "r, g, b, luminance")?;
            }
            _ => add(vec![Row::Channel(0)], count, "grey")?,
        }
    }
    Ok(cases)
}

/// Counts sample by sample, with nothing but edges.
fn check_counts(kernel: &Histogram, pixels: &Pixels, found: &Vec<Counts>) -> Result<()> {
    for (&row, found) in kernel.rows.iter().zip(found) {
        let Row::Channel(channel) = row else { continue };
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
        compare(&expected, found.bins.iter().copied())?;
    }
    let all = pixels.len() as u64;
    match found.iter().all(|counts| counts.total() == all) {
        true => Ok(()),
        false => Err(Error::gpu("not every pixel is counted once")),
    }
}

fn bytes_rows(rows: u32) -> BytesRows {
    let luma = Some(LumaDivision::new(Luma::Bt709, 256));
    BytesRows { channels: [rows == 4, rows == 4, rows == 4, false], luma }
}

/// Counts rows of 256 without the kernels' ways: exact luminance by 64-bit division.
fn expected_bytes(words: &[u32], rows: u32) -> Vec<u64> {
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

fn compare(expected: &[u64], found: impl IntoIterator<Item = u64>) -> Result<()> {
    let wrong = expected.iter().zip(found).position(|(&expected, found)| expected != found);
    match wrong {
        None => Ok(()),
        Some(slot) => Err(Error::gpu(format_args!("slot {slot} of the histogram is wrong"))),
    }
}

fn channels_name(rows: u32) -> &'static str {
    if rows == 4 { "RGBA8, 4 rows" } else { "RGBA8, luminance" }
}

/// A batch to run and the counters that it fills, compared in the end with `expected`.
fn prepared<'c>(
    context: &'c Context,
    batch: Batch<'c>,
    counts: Buffer,
    expected: impl FnOnce() -> Vec<u64> + 'c,
) -> Prepared<'c> {
    Prepared {
        run: Box::new(move || batch.run()),
        check: Box::new(move || {
            let expected = expected();
            let found: Vec<u32> = context.read(&counts, expected.len())?;
            compare(&expected, found.into_iter().map(u64::from))
        }),
    }
}

fn bytes_case(picture: &Picture, rows: u32) -> Case {
    let picture = picture.clone();
    let bytes = u64::from(picture.pixels()) * 4;
    Case {
        family: "histogram",
        algorithm: "replicated workgroup bins",
        problem: picture.name(channels_name(rows)),
        baseline: false,
        bytes,
        on_cpu: true,
        prepare: Box::new(move |context| {
            let words = picture.words(picture.pixels())?;
            let Some(context) = context else {
                let samples = Samples::U8(bytemuck::pod_collect_to_vec(&words));
                let pixels = Pixels { samples, channels: 4 };
                let counted = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
                let last = counted.clone();
                return Ok(Prepared {
                    run: Box::new(move || {
                        *counted.borrow_mut() = cpu::count_bytes(&pixels, &bytes_rows(rows));
                        Ok(())
                    }),
                    check: Box::new(move || {
                        let found = last.borrow().concat();
                        compare(&expected_bytes(&words, rows), found)
                    }),
                });
            };
            let pass = BytesPass::new(context, &bytes_rows(rows), 4)?;
            let data = context.allocate("pixels", bytes.next_multiple_of(16))?;
            context.write(&data, 0, &words)?;
            let counts = context.allocate("counts", pass.counters as u64 * 4)?;
            let mut batch = context.batch();
            batch.clear(&counts);
            pass.record(&mut batch, &data, picture.pixels(), &counts);
            Ok(Prepared {
                run: Box::new(move || batch.run()),
                check: Box::new(move || {
                    let found: Vec<u32> = context.read(&counts, pass.counters)?;
                    let found = pass.rows(&found, &bytes_rows(rows)).concat();
                    compare(&expected_bytes(&words, rows), found.into_iter().map(u64::from))
                }),
            })
        }),
    }
}

/// All 65,536 levels of a 16-bit grey picture.
fn halves_case(picture: &Picture) -> Case {
    let picture = picture.clone();
    let bytes = u64::from(picture.pixels()) * 2;
    let expected = |words: &[u32]| {
        let mut counts = vec![0u64; 1 << 16];
        for word in words {
            counts[*word as usize & 65535] += 1;
            counts[*word as usize >> 16] += 1;
        }
        counts
    };
    Case {
        family: "histogram",
        algorithm: "spans of slots",
        problem: picture.name("grey 16-bit, 65,536 bins"),
        baseline: false,
        bytes,
        on_cpu: true,
        prepare: Box::new(move |context| {
            let words = picture.words(picture.pixels() / 2)?;
            let bins = Bins::new(1 << 16, 0.0, 65535.0, Dtype::U16)?;
            let plan = Plan::Halves(0);
            let Some(context) = context else {
                let samples = Samples::U16(bytemuck::pod_collect_to_vec(&words));
                let pixels = Pixels { samples, channels: 1 };
                let counted = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
                let last = counted.clone();
                return Ok(Prepared {
                    run: Box::new(move || {
                        *counted.borrow_mut() = cpu::count_row(&pixels, &bins, &plan);
                        Ok(())
                    }),
                    check: Box::new(move || {
                        compare(&expected(&words), last.borrow().iter().copied())
                    }),
                });
            };
            let pass = SlotsPass::new(context, Dtype::U16, 1, &bins, &plan)?;
            let data = context.allocate("pixels", bytes.next_multiple_of(16))?;
            context.write(&data, 0, &words)?;
            let counts = context.allocate("counts", pass.counters as u64 * 4)?;
            let mut batch = context.batch();
            batch.clear(&counts);
            pass.record(&mut batch, &data, picture.pixels(), &counts);
            Ok(prepared(context, batch, counts, move || expected(&words)))
        }),
    }
}

fn baseline_case(baseline: Baseline, picture: &Picture, rows: u32) -> Case {
    let picture = picture.clone();
    Case {
        family: "histogram",
        algorithm: baseline.name(),
        problem: picture.name(channels_name(rows)),
        baseline: true,
        bytes: u64::from(picture.pixels()) * 4,
        on_cpu: false,
        prepare: Box::new(move |context| {
            let context = context.ok_or_else(|| Error::usage("baselines need a GPU"))?;
            let words = picture.words(picture.pixels())?;
            let data = context.upload("pixels", &words)?;
            let counts = context.allocate("counts", u64::from(rows) * 1024)?;
            let mut batch = context.batch();
            record(baseline, context, &mut batch, &picture, rows, [&data, &counts])?;
            Ok(prepared(context, batch, counts, move || expected_bytes(&words, rows)))
        }),
    }
}

fn record(
    baseline: Baseline,
    context: &Context,
    batch: &mut Batch<'_>,
    picture: &Picture,
    rows: u32,
    [data, counts]: [&Buffer; 2],
) -> Result<()> {
    let shader = BASELINES.with(&[("ROWS", &format!("{rows}u"))]);
    let Picture { width, height, .. } = *picture;
    let pixels = picture.pixels();
    let job = BaselineJob { width, height, pixels, ..BaselineJob::default() };
    batch.clear(counts);
    match baseline {
        Baseline::Single => {
            let pipeline = context.pipeline(&shader, "single")?;
            for start in (0..pixels).step_by(SINGLE_PIXELS as usize) {
                let pixels = SINGLE_PIXELS.min(pixels - start);
                batch
                    .pass("histogram one invocation", &pipeline)
                    .buffer("data", data)
                    .buffer("counts", counts)
                    .uniform("job", &BaselineJob { start, pixels, ..job })
                    .dispatch([1, 1, 1]);
            }
            return Ok(());
        }
        Baseline::Each => {
            let pipeline = context.pipeline(&shader, "each")?;
            batch
                .pass("histogram a pixel each", &pipeline)
                .buffer("data", data)
                .buffer("counts", counts)
                .uniform("job", &job)
                .dispatch(context.fold(u64::from(pixels).div_ceil(256))?);
            return Ok(());
        }
        Baseline::ChunksSum | Baseline::ChunksReduce => {}
    }
    let columns = width.div_ceil(256);
    let job = BaselineJob { chunks: columns * height, ..job };
    let bytes = u64::from(job.chunks) * u64::from(rows) * 1024;
    let chunks = context.allocate("chunks", bytes)?;
    let pipeline = context.pipeline(&shader, "count_chunk")?;
    batch
        .pass("histogram chunks", &pipeline)
        .buffer("data", data)
        .buffer("chunks", &chunks)
        .uniform("job", &job)
        .dispatch([columns, height, 1]);
    if baseline == Baseline::ChunksSum {
        let pipeline = context.pipeline(&shader, "sum_chunks")?;
        batch
            .pass("histogram sum of chunks", &pipeline)
            .buffer("chunks", &chunks)
            .buffer("counts", counts)
            .uniform("job", &job)
            .dispatch([1, 1, 1]);
        return Ok(());
    }
    let pipeline = context.pipeline(&shader, "reduce")?;
    let (mut left, mut stride) = (job.chunks, 1);
    while left > 1 {
        batch
            .pass("histogram reduction", &pipeline)
            .buffer("chunks", &chunks)
            .uniform("job", &BaselineJob { stride, ..job })
            .dispatch(context.fold(u64::from(left / 2))?);
        // An odd chunk is left for a later pass.
        (left, stride) = (left.div_ceil(2), stride * 2);
    }
    batch.copy(&chunks.slice(0..counts.bytes()), counts);
    Ok(())
}
