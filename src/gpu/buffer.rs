//! Storage buffers.

use std::{ops::Range, sync::Arc};

use super::{
    Context, Fault,
    guard::Driver,
    pool::{Pool, PooledBuffer},
};
use crate::util::error::{Error, Result};

/// A range of a storage buffer on the device. Clones share the memory, which is kept for another buffer once the last
/// of them is dropped.
#[derive(Clone, Debug)]
pub struct Buffer {
    pub(super) inner: Arc<PooledBuffer>,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

impl Buffer {
    /// Length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A part of the buffer that can be bound by itself. The start must be a multiple of the device's
    /// `min_storage_buffer_offset_alignment`.
    ///
    /// # Panics
    /// When the range ends after the buffer.
    pub fn slice(&self, range: Range<u64>) -> Self {
        assert!(range.start <= range.end && range.end <= self.bytes, "{range:?} of {}", self.bytes);
        Self {
            inner: self.inner.clone(),
            offset: self.offset + range.start,
            bytes: range.end - range.start,
        }
    }
}

impl Context {
    /// Allocates a buffer of at least `bytes` bytes. Its content is unspecified.
    pub fn allocate(&self, label: &str, bytes: u64) -> Result<Buffer> {
        // Bindings and copies are multiples of 4 bytes, and no binding is empty.
        let bytes = bytes.max(4).next_multiple_of(4);
        if bytes > self.limits.buffer_bytes {
            let limit = self.limits.buffer_bytes;
            return Err(Error::gpu(format_args!(
                "{label}: {bytes} bytes, more than the limit of {limit} bytes for a buffer of this device"
            )));
        }
        let usage = wgpu::BufferUsages::STORAGE
            | wgpu::BufferUsages::COPY_SRC
            | wgpu::BufferUsages::COPY_DST;
        let size = Pool::round_up(bytes, self.limits.buffer_bytes);
        let buffer = match self.storage.take(size) {
            Some(buffer) => buffer,
            None => self.create_buffer(label, usage, size)?,
        };
        let inner = Arc::new(PooledBuffer { buffer, pool: self.storage.clone() });
        let buffer = Buffer { inner, offset: 0, bytes };
        if self.poison {
            let words = (0..bytes / 4).map(|i| (i as u32).wrapping_mul(0x9e37_79b9));
            let noise: Vec<u8> = words.flat_map(u32::to_ne_bytes).collect();
            let Driver { queue, .. } = &self.driver;
            self.driver.guarded(|| queue.write_buffer(&buffer.inner, 0, &noise))?;
        }
        Ok(buffer)
    }

    /// Creates a buffer of wgpu's, mapped if it can be written. If memory is short, frees the unused buffers of the
    /// pools and tries again.
    pub(super) fn create_buffer(
        &self,
        label: &str,
        usage: wgpu::BufferUsages,
        size: u64,
    ) -> Result<wgpu::Buffer> {
        self.driver.inject(Fault::Allocate)?;
        let label = Some(label);
        let mapped_at_creation = usage.contains(wgpu::BufferUsages::MAP_WRITE);
        let descriptor = wgpu::BufferDescriptor { label, size, usage, mapped_at_creation };
        let create = || self.driver.guarded(|| self.driver.device.create_buffer(&descriptor));
        create().or_else(|error| match self.storage.clear() | self.readbacks.clear() {
            true => self.wait().and_then(|()| create()),
            false => Err(error),
        })
    }
}
