//! Filters as steps that run on a GPU without transfers between them, and the layout of grids in GPU buffers.

use crate::{
    data::{
        dtype::Dtype,
        grid::{GridType, Shape},
    },
    gpu::{Batch, Buffer, Context},
    util::{error::Result, memory, parallel::Parallel},
};

/// The layout of a grid in a buffer. Rows may be padded, so that shaders read and write whole words of any type.
/// Padding holds arbitrary values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuLayout {
    /// Size and type of the samples.
    pub grid: GridType,
    /// Positions from the start of one row to the next, with padding.
    pub pitch: usize,
}

impl GpuLayout {
    /// The layout without padding.
    pub fn packed(grid: GridType) -> Self {
        Self { grid, pitch: grid.shape.dims[0] }
    }

    /// The layout with rows padded to a multiple of 16 positions, and so to whole units of 16 bytes.
    pub fn padded(grid: GridType) -> Self {
        Self { grid, pitch: grid.shape.dims[0].next_multiple_of(16) }
    }

    /// The same layout for samples of type `dtype`.
    pub fn of(self, dtype: Dtype) -> Self {
        Self { grid: GridType { dtype, ..self.grid }, ..self }
    }

    /// Size and type of the grid with its padding.
    pub fn buffer(&self) -> GridType {
        let [_, y, z] = self.grid.shape.dims;
        let shape = Shape { dims: [self.pitch, y, z], ..self.grid.shape };
        GridType { shape, ..self.grid }
    }

    /// Bytes of the grid with its padding.
    pub fn bytes(&self) -> u64 {
        self.buffer().bytes()
    }

    /// Bytes of a row, without and with padding.
    fn row_bytes(&self) -> [usize; 2] {
        let position = self.grid.shape.channels * self.grid.dtype.size();
        [self.grid.shape.dims[0], self.pitch].map(|positions| positions * position)
    }

    /// Uploads `samples`, which have no padding, and pads their rows.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when the device fails.
    pub fn upload(&self, context: &Context, samples: &[u8]) -> Result<Buffer> {
        // Shaders may read units of 16 bytes.
        let input = context.allocate("samples", self.bytes().next_multiple_of(16))?;
        let [row, pitch] = self.row_bytes();
        if row == pitch {
            context.write(&input, 0, samples)?;
            return Ok(input);
        }
        let mut padded = memory::zeros::<u8>(samples.len() / row * pitch)?;
        padded.chunks_exact_mut(pitch).zip(samples.chunks_exact(row)).par_each(|(to, from)| {
            to[..row].copy_from_slice(from);
        });
        context.write(&input, 0, &padded)?;
        Ok(input)
    }

    /// Reads the samples of `buffer` back, without the padding of their rows.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when the device fails.
    pub fn read(&self, context: &Context, buffer: &Buffer, samples: &mut [u8]) -> Result<()> {
        let [row, pitch] = self.row_bytes();
        if row == pitch {
            return context.read_into(buffer, samples);
        }
        let padded: Vec<u8> = context.read(buffer, samples.len() / row * pitch)?;
        samples.chunks_exact_mut(row).zip(padded.chunks_exact(pitch)).par_each(|(to, from)| {
            to.copy_from_slice(&from[..row]);
        });
        Ok(())
    }
}

/// Records a filter of the grid in a buffer, which it may overwrite. Returns the buffer of the result.
type Record<'c> = Box<dyn Fn(&mut Batch<'c>, Buffer) -> Result<Buffer> + 'c>;

/// A filter with its shaders and tables on a GPU, prepared for grids of one layout.
#[expect(missing_debug_implementations, reason = "it holds functions")]
pub struct GpuStep<'c> {
    /// The layout of the result.
    pub result: GpuLayout,
    /// Records the passes that filter the grid in a buffer, which they may overwrite. Returns the buffer of the result.
    pub record: Record<'c>,
    /// Reads back facts about the samples, after the batch has run. The filter needs them for its warning.
    pub read_facts: Option<Box<dyn Fn() -> Result<()> + 'c>>,
}

impl<'c> GpuStep<'c> {
    /// A step that reads back no facts about the samples.
    pub fn new(
        result: GpuLayout,
        record: impl Fn(&mut Batch<'c>, Buffer) -> Result<Buffer> + 'c,
    ) -> Self {
        Self { result, record: Box::new(record), read_facts: None }
    }
}

/// The [`GpuStep`] of a filter; `None` if the GPU cannot filter grids of that layout.
pub type GpuStepResult<'c> = Result<Option<GpuStep<'c>>>;

/// A filter that can be a step on a GPU.
pub trait GpuFilter {
    /// Prepares the filter for grids of layout `input`.
    ///
    /// # Errors
    /// When the device fails.
    fn prepare<'c>(&'c self, context: &'c Context, input: GpuLayout) -> GpuStepResult<'c>;
}
