//! Copies between host memory and storage buffers through staging buffers, which are kept for the next copy.
//!
//! ```text
//! upload     host memory --cores--> chunk mapped for writing --device--> storage buffer
//! readback   storage buffer --device--> buffer mapped for reading --cores--> host memory
//! ```
//! While the device copies one chunk, the cores copy the others.

use std::{collections::VecDeque, ops::Range, sync::mpsc};

use super::{Buffer, Context, Fault, pool::Pool, staging::NextStep, watch::watched};
use crate::util::{
    error::{Error, Result},
    memory,
    parallel::Parallel,
};

/// Bytes of a staging buffer for uploads, and maximum bytes of one for readbacks.
const CHUNK: u64 = 16 << 20;
/// Number of chunks of a readback that are copied at once.
const CHUNKS_AHEAD: usize = 3;
/// Uploads of up to this many bytes are left to wgpu.
const SMALL_UPLOAD: usize = 64 << 10;

impl Context {
    /// Allocates a buffer that holds `data`, padded to a multiple of 4 bytes.
    pub fn upload<T: bytemuck::NoUninit>(&self, label: &str, data: &[T]) -> Result<Buffer> {
        let buffer = self.allocate(label, size_of_val(data) as u64)?;
        self.write(&buffer, 0, data)?;
        Ok(buffer)
    }

    /// Copies `data` into `buffer` from byte `offset` on, a multiple of 4.
    pub fn write<T: bytemuck::NoUninit>(
        &self,
        buffer: &Buffer,
        offset: u64,
        data: &[T],
    ) -> Result<()> {
        let data: &[u8] = bytemuck::cast_slice(data);
        assert!(offset + data.len() as u64 <= buffer.bytes, "write past the end of a buffer");
        let start = buffer.offset + offset;
        let put = |at, bytes: &[u8]| {
            self.driver.guarded(|| self.driver.queue.write_buffer(&buffer.inner, at, bytes))
        };
        self.timings.time("upload", || {
            // Copies are multiples of 4 bytes: the last 1 to 3 bytes are padded.
            let (whole, rest) = data.split_at(data.len() & !3);
            match whole.len() > SMALL_UPLOAD {
                true => self.write_chunks(&buffer.inner, start, whole)?,
                false => put(start, whole)?,
            }
            if !rest.is_empty() {
                let mut word = [0; 4];
                word[..rest.len()].copy_from_slice(rest);
                put(start + whole.len() as u64, &word)?;
            }
            self.driver.check()
        })?;
        self.record_write(buffer, offset, data.len())
    }

    /// Copies `data` to `buffer` from byte `offset` on, chunk by chunk.
    fn write_chunks(&self, buffer: &wgpu::Buffer, offset: u64, data: &[u8]) -> Result<()> {
        for (chunk, at) in data.chunks(CHUNK as usize).zip((offset..).step_by(CHUNK as usize)) {
            let staging = self.upload_staging()?;
            self.write_chunk(&staging, chunk, buffer, at)
                // The buffer is in an unknown state.
                .inspect_err(|_| self.uploads.forget())?;
        }
        Ok(())
    }

    /// Copies `chunk` to `buffer` through `staging`, which is then mapped for the next upload.
    fn write_chunk(
        &self,
        staging: &wgpu::Buffer,
        chunk: &[u8],
        buffer: &wgpu::Buffer,
        at: u64,
    ) -> Result<()> {
        self.driver.inject(Fault::Map)?;
        let (uploads, mapped) = (self.uploads.clone(), staging.clone());
        self.driver.guarded(|| {
            let mut view = staging.slice(..).get_mapped_range_mut().map_err(unmappable)?;
            par_copy(view.slice(..chunk.len()), chunk);
            drop(view);
            staging.unmap();
            let mut encoder = self.driver.device.create_command_encoder(&Default::default());
            encoder.copy_buffer_to_buffer(staging, 0, buffer, at, chunk.len() as u64);
            let copy = self.driver.queue.submit([encoder.finish()]);
            staging.slice(..).map_async(wgpu::MapMode::Write, move |result| {
                match result {
                    Ok(()) => uploads.put(mapped),
                    // The device is lost.
                    Err(_) => uploads.forget(),
                }
            });
            self.uploads.record_copy(copy);
            Ok(())
        })?
    }

    /// A mapped staging buffer: a free one, a new one, or the next one whose copy is done.
    fn upload_staging(&self) -> Result<wgpu::Buffer> {
        self.driver.poll()?;
        loop {
            match self.uploads.next() {
                NextStep::Write(staging) => return Ok(staging),
                NextStep::Create => {
                    let usage = wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC;
                    let staging = self.create_buffer("upload staging", usage, CHUNK);
                    return staging.inspect_err(|_| self.uploads.forget());
                }
                // A callback then returns a buffer, which another thread may take first.
                NextStep::Wait(copy) => self.driver.wait_for(Some(copy))?,
            }
        }
    }

    /// Reads the first `len` values of `buffer`, once everything submitted so far is done.
    pub fn read<T: bytemuck::Pod>(&self, buffer: &Buffer, len: usize) -> Result<Vec<T>> {
        // The system maps a page at its first write, and all cores write here together.
        let mut values = memory::zeros::<T>(len)?;
        self.read_into(buffer, &mut values)?;
        Ok(values)
    }

    /// Reads the first values of `buffer` into `values`, once everything submitted so far is done.
    pub fn read_into<T: bytemuck::Pod>(&self, buffer: &Buffer, values: &mut [T]) -> Result<()> {
        let mut rest: &mut [u8] = bytemuck::cast_slice_mut(values);
        let bytes = rest.len() as u64;
        self.read_with(buffer, 0..bytes, |chunk| {
            let (head, tail) = std::mem::take(&mut rest).split_at_mut(chunk.len());
            par_copy(wgpu::WriteOnly::from_mut(head), chunk);
            rest = tail;
            Ok(())
        })
    }

    /// Calls `consume` with the bytes `range` of `buffer`, in order, in chunks of mapped memory whose
    /// lengths are multiples of 64, except the last. The start of the range is a multiple of 4.
    pub fn read_with(
        &self,
        buffer: &Buffer,
        range: Range<u64>,
        mut consume: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let chunks = range.clone().step_by(CHUNK as usize);
        let mut chunks = chunks.map(|start| start..(start + CHUNK).min(range.end));
        self.timings.time("readback", || {
            let mut fetched = VecDeque::new();
            loop {
                while fetched.len() < CHUNKS_AHEAD
                    && let Some(chunk) = chunks.next()
                {
                    fetched.push_back(self.fetch(buffer, chunk)?);
                }
                let Some(next) = fetched.pop_front() else { return Ok(()) };
                self.finish_fetch(next, &mut consume)?;
            }
        })
    }

    /// Starts to copy the bytes `range` of `buffer` into a staging buffer.
    fn fetch(&self, buffer: &Buffer, range: Range<u64>) -> Result<Fetched> {
        assert!(range.start.is_multiple_of(4) && range.end <= buffer.bytes, "{range:?}");
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let len = range.end - range.start;
        let copied = len.next_multiple_of(4).max(4);
        let size = Pool::round_up(copied.next_multiple_of(8), u64::MAX);
        let staging = match self.readbacks.take(size) {
            Some(staging) => staging,
            None => self.create_buffer("readback staging", usage, size)?,
        };
        let submission = self.driver.guarded(|| {
            let mut encoder = self.driver.device.create_command_encoder(&Default::default());
            let from = buffer.offset + range.start;
            encoder.copy_buffer_to_buffer(&buffer.inner, from, &staging, 0, copied);
            self.driver.queue.submit([encoder.finish()])
        })?;
        let mapping = self.map(&staging, wgpu::MapMode::Read, Some(submission))?;
        Ok(Fetched { staging, mapping, len: len as usize })
    }

    /// Waits for fetched bytes, calls `consume` with them, and keeps their staging buffer for another readback.
    fn finish_fetch(
        &self,
        Fetched { staging, mapping, len }: Fetched,
        consume: &mut impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.await_map(mapping)?;
        let view = staging.slice(..).get_mapped_range().map_err(unmappable)?;
        let consumed = consume(&view[..len]);
        watched("an unmap", || {
            drop(view);
            staging.unmap();
        });
        self.readbacks.put(staging);
        consumed
    }

    /// Asks for `buffer` to be mapped once the work up to `after` is done.
    pub(super) fn map(
        &self,
        buffer: &wgpu::Buffer,
        mode: wgpu::MapMode,
        after: Option<wgpu::SubmissionIndex>,
    ) -> Result<Mapping> {
        self.driver.inject(Fault::Map)?;
        let (sender, result) = mpsc::channel();
        self.driver.guarded(|| {
            buffer.slice(..).map_async(mode, move |mapped| {
                // The receiver is gone only after a failed wait, which returned its own error.
                let _ = sender.send(mapped);
            });
        })?;
        Ok(Mapping { after, result })
    }

    /// Waits until the buffer is mapped.
    pub(super) fn await_map(&self, mapping: Mapping) -> Result<()> {
        self.driver.wait_for(mapping.after)?;
        // A wait on another thread may have taken the callback and not called it yet.
        mapping.result.recv_timeout(self.driver.timeout).map_err(unmappable)?.map_err(unmappable)
    }
}

/// A chunk that is being copied to the host.
struct Fetched {
    staging: wgpu::Buffer,
    mapping: Mapping,
    len: usize,
}

/// A buffer that is about to be mapped.
#[derive(Debug)]
pub(super) struct Mapping {
    after: Option<wgpu::SubmissionIndex>,
    result: mpsc::Receiver<Result<(), wgpu::BufferAsyncError>>,
}

pub(super) fn unmappable(cause: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::gpu("cannot map a buffer").caused_by(cause)
}

/// Copies with all cores: one core cannot use the memory's bandwidth, least of all for new pages.
fn par_copy(to: wgpu::WriteOnly<'_, [u8]>, from: &[u8]) {
    const PIECE: usize = 1 << 20;
    let (pieces, mut rest) = to.into_chunks::<PIECE>();
    let pieces: Vec<_> = pieces.into_iter().collect();
    let (from, from_rest) = from.split_at(pieces.len() * PIECE);
    pieces.into_iter().zip(from.chunks_exact(PIECE)).par_each(|(piece, from)| {
        wgpu::WriteOnly::<[u8]>::from(piece).copy_from_slice(from);
    });
    rest.copy_from_slice(from_rest);
}
