//! Published ways to count 256 levels or bins of RGBA8 pixels ("WebGPU Compute Shaders - Image Histogram",
//! webgpufundamentals.org), measured beside the routes in use.

use crate::{
    error::Result,
    gpu::{Batch, Buffer, Context, Shader},
    shader, shader_struct,
};

static SHADER: Shader = shader!("histogram/baselines");

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

/// A published way to count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Baseline {
    /// One invocation counts everything.
    Single,
    /// One invocation per pixel adds to counters in device memory.
    Each,
    /// Workgroups count 256 pixels each, chunks, in workgroup memory; one workgroup sums the chunks.
    ChunksSum,
    /// The same chunks, added pair by pair in ceil(log2 n) passes.
    ChunksReduce,
}

impl Baseline {
    pub const ALL: [Self; 4] = [Self::Single, Self::Each, Self::ChunksSum, Self::ChunksReduce];

    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "one invocation",
            Self::Each => "a pixel each",
            Self::ChunksSum => "chunks + sum",
            Self::ChunksReduce => "chunks + reduce",
        }
    }
}

/// Pixels that one pass of [`Baseline::Single`] counts. Some devices end loops silently after 65,535 rounds; a pixel
/// takes up to five, one of the outer loop and one for each of at most four rows.
const SINGLE_PIXELS: u32 = 13_000;

/// What the passes read and write.
#[derive(Clone, Copy)]
pub struct Counting<'a> {
    pub context: &'a Context,
    /// Width and height of the image.
    pub size: [u32; 2],
    /// Histograms, a number out of [`ROWS`].
    pub rows: u32,
    /// RGBA8 pixels.
    pub data: &'a Buffer,
    /// 256 counters per row.
    pub counts: &'a Buffer,
}

/// Histograms that are counted: of luminance alone, or of red, green, blue and luminance.
pub const ROWS: [u32; 2] = [1, 4];

/// The shader that counts `rows` histograms.
fn specialised(rows: u32) -> Shader {
    SHADER.with(&[("ROWS", &format!("{rows}u"))])
}

/// All shaders.
pub fn variants() -> [Shader; 2] {
    ROWS.map(specialised)
}

impl Counting<'_> {
    fn shader(&self) -> Shader {
        specialised(self.rows)
    }

    fn job(&self) -> BaselineJob {
        let [width, height] = self.size;
        BaselineJob { width, height, pixels: width * height, ..BaselineJob::default() }
    }

    /// Adds the passes of `baseline` to `batch`.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the driver refuses the shader or there is no memory.
    pub fn record(&self, baseline: Baseline, batch: &mut Batch<'_>) -> Result<()> {
        batch.clear(self.counts);
        match baseline {
            Baseline::Single => self.record_single(batch),
            Baseline::Each => self.record_each(batch),
            Baseline::ChunksSum => {
                let chunks = self.record_chunks(batch)?;
                self.record_sum(batch, &chunks)
            }
            Baseline::ChunksReduce => {
                let chunks = self.record_chunks(batch)?;
                self.record_reduction(batch, &chunks)
            }
        }
    }

    fn record_single(&self, batch: &mut Batch<'_>) -> Result<()> {
        let (pipeline, job) = (self.context.pipeline(&self.shader(), "single")?, self.job());
        for start in (0..job.pixels).step_by(SINGLE_PIXELS as usize) {
            let pixels = SINGLE_PIXELS.min(job.pixels - start);
            batch
                .pass("histogram one invocation", &pipeline)
                .buffer("data", self.data)
                .buffer("counts", self.counts)
                .uniform("job", &BaselineJob { start, pixels, ..job })
                .dispatch([1, 1, 1]);
        }
        Ok(())
    }

    fn record_each(&self, batch: &mut Batch<'_>) -> Result<()> {
        let (pipeline, job) = (self.context.pipeline(&self.shader(), "each")?, self.job());
        let groups = job.pixels.div_ceil(pipeline.workgroup_size[0]);
        batch
            .pass("histogram a pixel each", &pipeline)
            .buffer("data", self.data)
            .buffer("counts", self.counts)
            .uniform("job", &job)
            .dispatch(self.context.fold(groups.into())?);
        Ok(())
    }

    /// Counts chunks, in a buffer of their own, whose number is in the job.
    fn record_chunks(&self, batch: &mut Batch<'_>) -> Result<(Buffer, BaselineJob)> {
        let (pipeline, job) = (self.context.pipeline(&self.shader(), "count_chunk")?, self.job());
        let columns = job.width.div_ceil(pipeline.workgroup_size[0]);
        let job = BaselineJob { chunks: columns * job.height, ..job };
        let chunks =
            self.context.allocate("chunks", u64::from(job.chunks) * self.counts.bytes())?;
        batch
            .pass("histogram chunks", &pipeline)
            .buffer("data", self.data)
            .buffer("chunks", &chunks)
            .uniform("job", &job)
            .dispatch([columns, job.height, 1]);
        Ok((chunks, job))
    }

    fn record_sum(
        &self,
        batch: &mut Batch<'_>,
        (chunks, job): &(Buffer, BaselineJob),
    ) -> Result<()> {
        let pipeline = self.context.pipeline(&self.shader(), "sum_chunks")?;
        batch
            .pass("histogram sum of chunks", &pipeline)
            .buffer("chunks", chunks)
            .buffer("counts", self.counts)
            .uniform("job", job)
            .dispatch([1, 1, 1]);
        Ok(())
    }

    fn record_reduction(
        &self,
        batch: &mut Batch<'_>,
        (chunks, job): &(Buffer, BaselineJob),
    ) -> Result<()> {
        let pipeline = self.context.pipeline(&self.shader(), "reduce")?;
        let (mut left, mut stride) = (job.chunks, 1);
        while left > 1 {
            batch
                .pass("histogram reduction", &pipeline)
                .buffer("chunks", chunks)
                .uniform("job", &BaselineJob { stride, ..*job })
                .dispatch(self.context.fold(u64::from(left / 2))?);
            // An odd chunk is left for a later pass.
            (left, stride) = (left.div_ceil(2), stride * 2);
        }
        batch.copy(&chunks.slice(0..self.counts.bytes()), self.counts);
        Ok(())
    }
}
