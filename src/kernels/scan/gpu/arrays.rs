//! The buffers of a scan, and the ranges of them that are bound at a time.

use std::ops::Range;

use super::spec::ScanSpec;
use crate::{
    gpu::{Buffer, Context},
    kernels::scan::params::TILE,
};

/// The buffers of a scan.
#[derive(Clone, Copy, Debug)]
pub struct ScanBuffers<'a> {
    /// The numbers. The length of the buffer is a multiple of four numbers.
    pub source: &'a Buffer,
    /// The results: another buffer of the same length.
    pub result: &'a Buffer,
    /// Number of numbers to scan.
    pub len: usize,
    /// [`ScanSpec::carry_len`] numbers: the first is the carry before `source`, the last the carry after it.
    pub carry: &'a Buffer,
}

impl ScanSpec {
    /// Divides `len` numbers into ranges of whole tiles that fit one binding each, with at most 2^31 numbers.
    pub(super) fn bound_ranges(&self, context: &Context, len: usize) -> Vec<BoundRange> {
        self.split(context, len, TILE)
    }

    /// Divides `len` numbers into the largest ranges that fit one binding. Their lengths are multiples of `multiple`,
    /// except for the last.
    pub(super) fn split(&self, context: &Context, len: usize, multiple: usize) -> Vec<BoundRange> {
        let size = self.dtype.size();
        let max = (context.max_binding() as usize / size).min(1 << 31) / multiple * multiple;
        let range = |first: usize| {
            let len = max.min(len - first);
            let end = first + len.next_multiple_of(4);
            BoundRange { first, len, bytes: (first * size) as u64..(end * size) as u64 }
        };
        (0..len).step_by(max).map(range).collect()
    }
}

/// A range of the arrays that is bound at a time.
pub(super) struct BoundRange {
    /// Index of the first number.
    pub(super) first: usize,
    /// Number of numbers.
    pub(super) len: usize,
    /// Range of bytes in the buffers.
    pub(super) bytes: Range<u64>,
}

impl BoundRange {
    /// This range of `buffer`, which has one number for each.
    pub(super) fn slice(&self, buffer: &Buffer) -> Buffer {
        buffer.slice(self.bytes.clone())
    }

    /// This range of `buffer`, which has one bit for each number.
    pub(super) fn slice_bits(&self, buffer: &Buffer) -> Buffer {
        let first = self.first as u64 / 8;
        buffer.slice(first..first + self.len.div_ceil(32) as u64 * 4)
    }
}
