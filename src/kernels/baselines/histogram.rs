//! Published algorithms that count 256 levels or bins of RGBA8 pixels ("WebGPU Compute Shaders - Image Histogram",
//! webgpufundamentals.org).

use crate::{
    data::dtype::Dtype,
    device::Kernel,
    gpu::{Context, Shader},
    kernels::histogram::{Bins, Component, Counts, Histogram, Luma, Pixels},
    shader, shader_struct,
    util::error::Result,
};

static SHADER: Shader = shader!("baselines/histogram");

shader_struct! {
    struct CountParams {
        width: u32,
        start: u32,
        pixels: u32,
        chunks: u32,
        stride: u32,
    }
}

/// A published algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountAlgorithm {
    /// One invocation counts everything.
    OneInvocation,
    /// One invocation per pixel adds to counters in device memory.
    PixelEach,
    /// Workgroups count chunks of 256 pixels in workgroup memory; one workgroup sums the chunks.
    ChunksSum,
    /// The same chunks, added in pairs in ceil(log2 n) passes.
    ChunksReduce,
}

impl CountAlgorithm {
    /// Every algorithm.
    pub const ALL: [Self; 4] =
        [Self::OneInvocation, Self::PixelEach, Self::ChunksSum, Self::ChunksReduce];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::OneInvocation => "one invocation",
            Self::PixelEach => "a pixel each",
            Self::ChunksSum => "chunks + sum",
            Self::ChunksReduce => "chunks + reduce",
        }
    }
}

/// Pixels that a pass of [`CountAlgorithm::OneInvocation`] counts. Some devices silently end loops after 65,535 iterations,
/// and a pixel takes up to five.
const SINGLE_PIXELS: u32 = 13_000;

/// Counts of RGBA8 pixels: of the luminance if `rows` is 1; of red, green, blue and the luminance if it is 4.
#[derive(Clone, Copy, Debug)]
pub struct CountRgba {
    /// How pixels are counted.
    pub algorithm: CountAlgorithm,
    /// How many histograms are counted: 1 or 4.
    pub rows: usize,
    /// Pixels in a row of the image.
    pub width: usize,
}

/// The shader that counts `rows` histograms.
pub(super) fn shader(rows: usize) -> Shader {
    Luma::Bt709.weighted(&SHADER).with(&[("ROWS", rows)])
}

impl CountRgba {
    /// The kernel of `gpuproc histogram` for the same components.
    ///
    /// # Panics
    /// Never: 8-bit samples have 256 bins.
    pub fn histogram(rows: usize) -> Histogram {
        let mut components = vec![Component::Luma(Luma::Bt709)];
        if rows == 4 {
            components.splice(0..0, [0, 1, 2].map(Component::Channel));
        }
        let bins = Bins::new(256, 0.0, 255.0, Dtype::U8).expect("a bin for each level");
        Histogram { components, bins, weighted: false }
    }
}

impl Kernel for CountRgba {
    type In = Pixels;
    type Out = Vec<Vec<u64>>;
    const NAME: &'static str = "published histogram";

    fn cpu(&self, pixels: &Pixels) -> Result<Vec<Vec<u64>>> {
        let counts = Self::histogram(self.rows).cpu(pixels)?;
        Ok(counts.into_iter().map(|Counts { bins, .. }| bins).collect())
    }

    fn gpu(&self, context: &Context, pixels: &Pixels) -> Result<Vec<Vec<u64>>> {
        let shader = shader(self.rows);
        let [width, count] = [self.width, pixels.len()].map(|number| number as u32);
        let group = SHADER.constant("GROUP");
        let (columns, height) = (width.div_ceil(group), count / width);
        let chunked =
            matches!(self.algorithm, CountAlgorithm::ChunksSum | CountAlgorithm::ChunksReduce);
        let chunks = if chunked { columns * height } else { 0 };
        let bytes = 1024 * self.rows as u64;
        let data = context.upload("pixels", pixels.samples.as_bytes())?;
        let counts = context.allocate("counts", bytes)?;
        let chunk_counts = context.allocate("chunks", bytes * u64::from(chunks))?;
        let params = CountParams { width, pixels: count, chunks, ..CountParams::default() };
        let mut batch = context.batch();
        batch.clear(&counts);
        let mut record = |entry, params: &CountParams, groups| {
            let buffers = [("data", &data), ("counts", &counts), ("chunks", &chunk_counts)];
            batch.dispatch(&format!("histogram {entry}"), &shader, entry, params, &buffers, groups)
        };
        if chunked {
            record("count_chunk", &params, [columns, height, 1])?;
        }
        match self.algorithm {
            CountAlgorithm::OneInvocation => {
                for start in (0..count).step_by(SINGLE_PIXELS as usize) {
                    let pixels = SINGLE_PIXELS.min(count - start);
                    record("single", &CountParams { start, pixels, ..params }, [1; 3])?;
                }
            }
            CountAlgorithm::PixelEach => {
                record("each", &params, context.fold(count.div_ceil(group).into())?)?;
            }
            CountAlgorithm::ChunksSum => record("sum_chunks", &params, [1; 3])?,
            CountAlgorithm::ChunksReduce => {
                let (mut left, mut stride) = (chunks, 1);
                while left > 1 {
                    let groups = context.fold(u64::from(left / 2))?;
                    record("reduce", &CountParams { stride, ..params }, groups)?;
                    // An odd chunk is left for a later pass.
                    (left, stride) = (left.div_ceil(2), stride * 2);
                }
                batch.copy(&chunk_counts.slice(0..bytes), &counts);
            }
        }
        batch.run()?;
        let counts: Vec<u32> = context.read(&counts, 256 * self.rows)?;
        Ok(counts.chunks(256).map(|row| row.iter().copied().map(u64::from).collect()).collect())
    }
}
