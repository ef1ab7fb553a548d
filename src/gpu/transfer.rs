//! Copies between host memory and storage buffers, in chunks through two staging buffers: while the
//! device copies one chunk, the cores copy the other.

use std::{ops::Range, sync::mpsc};

use rayon::prelude::*;

use super::{Buffer, Context, Fault};
use crate::{
    error::{Error, Result},
    memory,
};

/// Bytes of a staging buffer.
const CHUNK: u64 = 32 << 20;

impl Context {
    /// A buffer that holds `data`, padded to a multiple of 4 bytes.
    ///
    /// # Errors
    /// As [`Context::allocate`].
    pub fn upload<T: bytemuck::NoUninit>(&self, label: &str, data: &[T]) -> Result<Buffer> {
        let buffer = self.allocate(label, size_of_val(data) as u64)?;
        self.write(&buffer, 0, data)?;
        Ok(buffer)
    }

    /// Copies `data` into `buffer` from byte `offset` on, a multiple of 4.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device fails.
    pub fn write<T: bytemuck::NoUninit>(
        &self,
        buffer: &Buffer,
        offset: u64,
        data: &[T],
    ) -> Result<()> {
        let data: &[u8] = bytemuck::cast_slice(data);
        assert!(offset + data.len() as u64 <= buffer.bytes, "write past the end of a buffer");
        let start = buffer.offset + offset;
        let put =
            |at, bytes: &[u8]| self.guarded(|| self.queue.write_buffer(&buffer.inner, at, bytes));
        self.timings.time("upload", || {
            // Copies are multiples of 4 bytes: what is left is padded.
            let (whole, rest) = data.split_at(data.len() & !3);
            match whole.len() as u64 > CHUNK {
                true => self.write_chunks(&buffer.inner, start, whole)?,
                false => put(start, whole)?,
            }
            if !rest.is_empty() {
                let mut word = [0; 4];
                word[..rest.len()].copy_from_slice(rest);
                put(start + whole.len() as u64, &word)?;
            }
            self.check()
        })
    }

    /// Writes `data`, a chunk after the other.
    fn write_chunks(&self, buffer: &wgpu::Buffer, offset: u64, data: &[u8]) -> Result<()> {
        let usage = wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC;
        let staging = || self.create_buffer("staging", usage, CHUNK);
        let stagings = [staging()?, staging()?];
        let mut mappings: [Option<Mapping>; 2] = [None, None];
        let mut at = offset;
        for (chunk, turn) in data.chunks(CHUNK as usize).zip((0..2).cycle()) {
            let staging = &stagings[turn];
            let mapping = match mappings[turn].take() {
                Some(mapping) => mapping,
                None => self.map(staging, wgpu::MapMode::Write, None)?,
            };
            self.await_map(mapping)?;
            let submission = self.guarded(|| {
                let mut view = staging.slice(..).get_mapped_range_mut().map_err(unmappable)?;
                par_copy(view.slice(..chunk.len()), chunk);
                drop(view);
                staging.unmap();
                let mut encoder = self.device.create_command_encoder(&Default::default());
                encoder.copy_buffer_to_buffer(staging, 0, buffer, at, chunk.len() as u64);
                Ok(self.queue.submit([encoder.finish()]))
            })??;
            mappings[turn] = Some(self.map(staging, wgpu::MapMode::Write, Some(submission))?);
            at += chunk.len() as u64;
        }
        self.wait()
    }

    /// The first `len` values of `buffer`, once everything submitted so far is done.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device fails.
    pub fn read<T: bytemuck::Pod>(&self, buffer: &Buffer, len: usize) -> Result<Vec<T>> {
        // The system maps zeros at the first write, which all cores do together.
        let mut values = memory::zeros::<T>(len)?;
        let mut rest: &mut [u8] = bytemuck::cast_slice_mut(&mut values);
        let bytes = rest.len() as u64;
        self.read_with(buffer, 0..bytes, |chunk| {
            let (head, tail) = std::mem::take(&mut rest).split_at_mut(chunk.len());
            par_copy(wgpu::WriteOnly::from_mut(head), chunk);
            rest = tail;
            Ok(())
        })?;
        Ok(values)
    }

    /// Calls `consume` with the bytes `range` of `buffer`, in order, in chunks of mapped memory whose
    /// lengths are multiples of 64 but for the last. The start of the range is a multiple of 4.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device fails, and those of `consume`.
    pub fn read_with(
        &self,
        buffer: &Buffer,
        range: Range<u64>,
        mut consume: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        assert!(range.start.is_multiple_of(4) && range.end <= buffer.bytes, "{range:?}");
        if range.is_empty() {
            return Ok(());
        }
        // What runs before the copy is not the copy's time.
        self.wait()?;
        self.timings.time("readback", || {
            let chunks = self.chunks_of(buffer, range)?;
            let mut fetched = Some(chunks.fetch(0)?);
            for i in 0..chunks.count {
                let mapping = fetched.take().expect("fetched one chunk ahead");
                self.await_map(mapping)?;
                if i + 1 < chunks.count {
                    fetched = Some(chunks.fetch(i + 1)?);
                }
                let (staging, len) = chunks.staging(i);
                let view = staging.slice(..).get_mapped_range().map_err(unmappable)?;
                consume(&view[..len])?;
                drop(view);
                staging.unmap();
            }
            Ok(())
        })
    }

    /// Cuts `range` into chunks and allocates their staging buffers.
    fn chunks_of<'a>(&'a self, buffer: &'a Buffer, range: Range<u64>) -> Result<Chunks<'a>> {
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let bytes = range.end - range.start;
        let size = bytes.min(CHUNK).next_multiple_of(8);
        let count = bytes.div_ceil(CHUNK);
        let stagings = (0..count.min(2)).map(|_| self.create_buffer("staging", usage, size));
        let stagings = stagings.collect::<Result<_>>()?;
        Ok(Chunks { context: self, buffer, range, count, stagings })
    }

    /// Asks for `buffer` to be mapped once the work up to `after` is done.
    pub(super) fn map(
        &self,
        buffer: &wgpu::Buffer,
        mode: wgpu::MapMode,
        after: Option<wgpu::SubmissionIndex>,
    ) -> Result<Mapping> {
        self.can_fail(Fault::Map)?;
        let (sender, result) = mpsc::channel();
        self.guarded(|| {
            buffer.slice(..).map_async(mode, move |mapped| {
                // The receiver is gone only after a failed wait, which returned its own error.
                let _ = sender.send(mapped);
            });
        })?;
        Ok(Mapping { after, result })
    }

    /// Waits until the buffer is mapped.
    pub(super) fn await_map(&self, mapping: Mapping) -> Result<()> {
        self.wait_for(mapping.after)?;
        // A wait on another thread may have taken the callback without having called it yet.
        mapping.result.recv_timeout(self.patience).map_err(unmappable)?.map_err(unmappable)
    }
}

/// A range of a buffer that is read in chunks, each through one of two staging buffers.
struct Chunks<'a> {
    context: &'a Context,
    buffer: &'a Buffer,
    range: Range<u64>,
    count: u64,
    stagings: Vec<wgpu::Buffer>,
}

impl Chunks<'_> {
    /// The staging buffer of chunk `i`, and the chunk's length.
    fn staging(&self, i: u64) -> (&wgpu::Buffer, usize) {
        let len = (self.range.end - self.range.start - i * CHUNK).min(CHUNK);
        (&self.stagings[i as usize % 2], len as usize)
    }

    /// Starts to copy chunk `i` into its staging buffer.
    fn fetch(&self, i: u64) -> Result<Mapping> {
        let Self { context, buffer, .. } = self;
        let (staging, len) = self.staging(i);
        let from = buffer.offset + self.range.start + i * CHUNK;
        let submission = context.guarded(|| {
            let mut encoder = context.device.create_command_encoder(&Default::default());
            let len = (len as u64).next_multiple_of(4);
            encoder.copy_buffer_to_buffer(&buffer.inner, from, staging, 0, len);
            context.queue.submit([encoder.finish()])
        })?;
        context.map(staging, wgpu::MapMode::Read, Some(submission))
    }
}

/// A buffer on its way to being mapped.
#[derive(Debug)]
pub(super) struct Mapping {
    after: Option<wgpu::SubmissionIndex>,
    result: mpsc::Receiver<Result<(), wgpu::BufferAsyncError>>,
}

pub(super) fn unmappable(cause: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::gpu("cannot map a buffer").caused_by(cause)
}

/// Copies with all cores: one alone cannot use the memory's bandwidth, least of all for new pages.
fn par_copy(to: wgpu::WriteOnly<'_, [u8]>, from: &[u8]) {
    const PIECE: usize = 1 << 20;
    let (pieces, mut rest) = to.into_chunks::<PIECE>();
    let pieces: Vec<_> = pieces.into_iter().collect();
    let (from, from_rest) = from.split_at(pieces.len() * PIECE);
    pieces.into_par_iter().zip(from.par_chunks_exact(PIECE)).for_each(|(piece, from)| {
        wgpu::WriteOnly::<[u8]>::from(piece).copy_from_slice(from);
    });
    rest.copy_from_slice(from_rest);
}
