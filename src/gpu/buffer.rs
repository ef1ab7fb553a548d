//! Storage buffers.

use std::{ops::Range, sync::Arc};

use super::{
    Context, Fault,
    guard::Driver,
    pool::{Lent, Pool},
};
use crate::util::error::{Error, Result};

/// A range of a storage buffer on the device. Clones share the memory; after the last of them it is kept for another
/// buffer.
#[derive(Clone, Debug)]
pub struct Buffer {
    pub(super) inner: Arc<Lent>,
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

impl Context {
    /// A buffer of at least `bytes` bytes whose content is unspecified: write before you read.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when it is larger than the device allows or there is no
    /// memory for it.
    pub fn allocate(&self, label: &str, bytes: u64) -> Result<Buffer> {
        // Bindings and copies are multiples of 4 bytes, and no binding is empty.
        let bytes = bytes.max(4).next_multiple_of(4);
        if bytes > self.limits.buffer_bytes {
            let limit = self.limits.buffer_bytes;
            return Err(Error::gpu(format_args!(
                "{label}: {bytes} bytes are more than the {limit} that a buffer may have"
            )));
        }
        let usage = wgpu::BufferUsages::STORAGE
            | wgpu::BufferUsages::COPY_SRC
            | wgpu::BufferUsages::COPY_DST;
        let size = Pool::size(bytes, self.limits.buffer_bytes);
        let inner = match self.storage.take(size) {
            Some(buffer) => buffer,
            None => self.create_buffer(label, usage, size)?,
        };
        let buffer = Buffer { inner: Arc::new(self.storage.lend(inner)), offset: 0, bytes };
        if self.poison {
            let words = (0..bytes / 4).map(|i| (i as u32).wrapping_mul(0x9e37_79b9));
            let noise: Vec<u8> = words.flat_map(u32::to_ne_bytes).collect();
            let Driver { queue, .. } = &self.driver;
            self.driver.guarded(|| queue.write_buffer(&buffer.inner, 0, &noise))?;
        }
        Ok(buffer)
    }

    /// A buffer of wgpu's. Where memory is short, the buffers that the pools keep are freed first.
    pub(super) fn create_buffer(
        &self,
        label: &str,
        usage: wgpu::BufferUsages,
        size: u64,
    ) -> Result<wgpu::Buffer> {
        self.driver.can_fail(Fault::Allocate)?;
        let label = Some(label);
        let mapped_at_creation = false;
        let descriptor = wgpu::BufferDescriptor { label, size, usage, mapped_at_creation };
        let create = || self.driver.guarded(|| self.driver.device.create_buffer(&descriptor));
        create().or_else(|error| match self.storage.clear() | self.readbacks.clear() {
            true => self.wait().and_then(|()| create()),
            false => Err(error),
        })
    }
}
