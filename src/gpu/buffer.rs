//! Storage buffers: allocation, upload and readback.

use std::{ops::Range, sync::mpsc};

use rayon::prelude::*;

use super::{Context, Fault};
use crate::data::noise::Noise;
use crate::error::{Error, Result};
use crate::memory;

/// A range of a storage buffer on the device. Cloning it shares the memory.
#[derive(Clone, Debug)]
pub struct Buffer {
    pub(super) inner: wgpu::Buffer,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

impl Buffer {
    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A part of it, to be bound alone. The start must be a multiple of the device's
    /// `min_storage_buffer_offset_alignment`.
    ///
    /// # Panics
    /// When the range leaves the buffer.
    pub fn slice(&self, range: Range<u64>) -> Self {
        assert!(range.start <= range.end && range.end <= self.bytes, "{range:?} of {}", self.bytes);
        Self {
            inner: self.inner.clone(),
            offset: self.offset + range.start,
            bytes: range.end - range.start,
        }
    }
}

/// Host memory that one transfer may hold at a time.
const CHUNK: u64 = 32 << 20;

impl Context {
    /// A buffer of at least `bytes` bytes whose content is unspecified: write before you read.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when it is larger than the device allows or there is no memory for it.
    pub fn allocate(&self, label: &str, bytes: u64) -> Result<Buffer> {
        // Bindings and copies come in words of 4 bytes, and an empty binding is not allowed.
        let bytes = bytes.max(4).next_multiple_of(4);
        if bytes > self.limits.max_buffer_size {
            let limit = self.limits.max_buffer_size;
            return Err(Error::gpu(format_args!(
                "{label}: {bytes} bytes are more than the {limit} that a buffer may have"
            )));
        }
        self.step(Fault::Allocate)?;
        let inner = self.guarded(|| {
            self.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some(label),
                size: bytes,
                usage: wgpu::BufferUsages::STORAGE
                    | wgpu::BufferUsages::COPY_SRC
                    | wgpu::BufferUsages::COPY_DST
                    | wgpu::BufferUsages::INDIRECT,
                mapped_at_creation: false,
            })
        })?;
        let buffer = Buffer { inner, offset: 0, bytes };
        if self.poison {
            // Another seed than that of any input, lest a pass that writes nothing seem to copy.
            self.write(&buffer, 0, &Noise(0x0bad_5eed).u32s(bytes as usize / 4)?)?;
        }
        Ok(buffer)
    }

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
        let at = buffer.offset + offset;
        self.timings.time("upload", || {
            // Copies come in words of 4 bytes: a last part of a word goes by itself.
            let (whole, rest) = data.split_at(data.len() & !3);
            match whole.len() as u64 > CHUNK {
                true => self.write_chunks(&buffer.inner, at, whole)?,
                false => {
                    self.guarded(|| self.queue.write_buffer(&buffer.inner, at, whole))?;
                }
            }
            if !rest.is_empty() {
                let mut word = [0; 4];
                word[..rest.len()].copy_from_slice(rest);
                let at = at + whole.len() as u64;
                self.guarded(|| self.queue.write_buffer(&buffer.inner, at, &word))?;
            }
            self.check()
        })
    }

    /// Writes through two staging buffers in turn: the cores fill one while the device empties the other.
    fn write_chunks(&self, buffer: &wgpu::Buffer, offset: u64, data: &[u8]) -> Result<()> {
        let usage = wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC;
        let stagings = [self.staging(usage, CHUNK)?, self.staging(usage, CHUNK)?];
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
        // Fresh zeros cost nothing until they are overwritten, by all cores at once.
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

    /// Hands the bytes `range` of `buffer` to `consume`, in order, in chunks whose lengths are
    /// multiples of 64 but for the last, straight from the mapped memory. The start is a multiple of 4.
    /// The device copies the next chunk meanwhile.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device fails, and whatever `consume` returns.
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
            let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
            let size = (range.end - range.start).min(CHUNK).next_multiple_of(8);
            let chunks = (range.end - range.start).div_ceil(CHUNK);
            let stagings: Vec<_> =
                (0..chunks.min(2)).map(|_| self.staging(usage, size)).collect::<Result<_>>()?;
            let bounds = |i: u64| {
                let start = range.start + i * CHUNK;
                (start, (range.end - start).min(CHUNK))
            };
            let fetch = |i: u64| {
                let (start, len) = bounds(i);
                let staging = &stagings[i as usize % 2];
                let submission = self.guarded(|| {
                    let mut encoder = self.device.create_command_encoder(&Default::default());
                    let (from, len) = (buffer.offset + start, len.next_multiple_of(4));
                    encoder.copy_buffer_to_buffer(&buffer.inner, from, staging, 0, len);
                    self.queue.submit([encoder.finish()])
                })?;
                self.map(staging, wgpu::MapMode::Read, Some(submission))
            };
            let mut next = Some(fetch(0)?);
            for i in 0..chunks {
                self.await_map(next.take().expect("fetched one chunk ahead"))?;
                if i + 1 < chunks {
                    next = Some(fetch(i + 1)?);
                }
                let staging = &stagings[i as usize % 2];
                let view = staging.slice(..).get_mapped_range().map_err(unmappable)?;
                consume(&view[..bounds(i).1 as usize])?;
                drop(view);
                staging.unmap();
            }
            Ok(())
        })
    }

    fn staging(&self, usage: wgpu::BufferUsages, size: u64) -> Result<wgpu::Buffer> {
        self.step(Fault::Allocate)?;
        self.guarded(|| {
            self.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("staging"),
                size,
                usage,
                mapped_at_creation: false,
            })
        })
    }

    /// Asks for `buffer` to be mapped once the work up to `after` is done.
    pub(super) fn map(
        &self,
        buffer: &wgpu::Buffer,
        mode: wgpu::MapMode,
        after: Option<wgpu::SubmissionIndex>,
    ) -> Result<Mapping> {
        self.step(Fault::Map)?;
        let (sender, result) = mpsc::channel();
        self.guarded(|| {
            buffer.slice(..).map_async(mode, move |mapped| {
                // The receiver is gone only when a wait failed, which is reported itself.
                let _ = sender.send(mapped);
            });
        })?;
        Ok(Mapping { after, result })
    }

    /// Waits until the buffer is mapped.
    pub(super) fn await_map(&self, mapping: Mapping) -> Result<()> {
        self.wait_for(mapping.after)?;
        // The wait of another thread may have taken the callback and still be about to call it.
        mapping.result.recv_timeout(self.patience).map_err(unmappable)?.map_err(unmappable)
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

/// Copies with all cores: one alone cannot use the memory's bandwidth, and fresh pages cost it dearly.
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
