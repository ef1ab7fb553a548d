//! Storage buffers: allocation, upload and readback.

use std::ops::Range;

use super::{Context, context::PATIENCE};
use crate::error::{Error, Result};

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
const CHUNK: u64 = 64 << 20;

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
            let noise: Vec<u32> =
                (0..bytes as u32 / 4).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
            self.write(&buffer, 0, &noise)?;
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
        self.timings.time("upload", || {
            let mut at = buffer.offset + offset;
            for chunk in data.chunks(CHUNK as usize) {
                let whole = chunk.len() & !3;
                self.guarded(|| {
                    self.queue.write_buffer(&buffer.inner, at, &chunk[..whole]);
                    if whole < chunk.len() {
                        let mut word = [0; 4];
                        word[..chunk.len() - whole].copy_from_slice(&chunk[whole..]);
                        self.queue.write_buffer(&buffer.inner, at + whole as u64, &word);
                    }
                })?;
                at += chunk.len() as u64;
                if data.len() > chunk.len() {
                    // Let the staging memory of this chunk go before the next one is filled.
                    self.queue.submit([]);
                    self.wait()?;
                }
            }
            self.check()
        })
    }

    /// The first `len` values of `buffer`, once everything submitted so far is done.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device fails.
    pub fn read<T: bytemuck::Pod>(&self, buffer: &Buffer, len: usize) -> Result<Vec<T>> {
        let mut values = Vec::new();
        values
            .try_reserve_exact(len)
            .map_err(|error| Error::gpu("no memory for a result").caused_by(error))?;
        values.resize(len, T::zeroed());
        // Chunks need not end where values do.
        let mut rest: &mut [u8] = bytemuck::cast_slice_mut(&mut values);
        self.read_with(buffer, 0..rest.len() as u64, |chunk| {
            rest.split_off_mut(..chunk.len()).expect("as long").copy_from_slice(chunk);
            Ok(())
        })?;
        Ok(values)
    }

    /// Hands the bytes `range` of `buffer` to `consume`, in order, in chunks whose lengths are
    /// multiples of 64 but for the last, straight from the mapped memory. The start is a multiple of 4.
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
            let size = (range.end - range.start).min(CHUNK).next_multiple_of(4);
            let staging = self.guarded(|| {
                self.device.create_buffer(&wgpu::BufferDescriptor {
                    label: Some("readback"),
                    size,
                    usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
                    mapped_at_creation: false,
                })
            })?;
            let mut at = range.start;
            while at < range.end {
                let len = (range.end - at).min(CHUNK);
                self.guarded(|| {
                    let mut encoder = self.device.create_command_encoder(&Default::default());
                    let from = buffer.offset + at;
                    encoder.copy_buffer_to_buffer(
                        &buffer.inner,
                        from,
                        &staging,
                        0,
                        len.next_multiple_of(4),
                    );
                    self.queue.submit([encoder.finish()]);
                })?;
                self.with_mapped(&staging, len, &mut consume)?;
                at += len;
            }
            Ok(())
        })
    }

    /// Maps the first `len` bytes of `staging`, hands them to `consume`, unmaps.
    pub(super) fn with_mapped<T>(
        &self,
        staging: &wgpu::Buffer,
        len: u64,
        consume: &mut impl FnMut(&[u8]) -> Result<T>,
    ) -> Result<T> {
        let slice = staging.slice(..len.next_multiple_of(8).min(staging.size()));
        let (sender, mapped) = std::sync::mpsc::channel();
        self.guarded(|| {
            slice.map_async(wgpu::MapMode::Read, move |result| {
                // The receiver is gone only when the wait failed, which is reported itself.
                let _ = sender.send(result);
            });
        })?;
        self.wait()?;
        let failed = |cause: String| Error::gpu(format_args!("cannot map a buffer: {cause}"));
        mapped
            // The wait of another thread may have taken the callback and still be about to call it.
            .recv_timeout(PATIENCE)
            .map_err(|error| failed(error.to_string()))?
            .map_err(|error| failed(error.to_string()))?;
        let result = {
            let view = slice.get_mapped_range().map_err(|error| failed(error.to_string()))?;
            consume(&view[..len as usize])
        };
        staging.unmap();
        result
    }
}
