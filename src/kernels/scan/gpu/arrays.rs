//! The buffers of a scan, and the parts of them that are bound at a time.

use std::ops::Range;

use super::spec::Spec;
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
    /// [`Spec::carry_len`] numbers: the first is the carry before `source`, the last the carry after it.
    pub carry: &'a Buffer,
}

impl Spec {
    /// Parts of whole tiles that fit one binding each, with at most 2^31 numbers.
    pub(super) fn parts(&self, context: &Context, len: usize) -> Vec<Part> {
        self.parts_of(context, len, TILE)
    }

    /// The largest parts that fit one binding, each a multiple of `granularity` numbers, which have to fit.
    pub(super) fn parts_of(&self, context: &Context, len: usize, granularity: usize) -> Vec<Part> {
        let size = self.dtype.size();
        let max = (context.max_binding() as usize / size).min(1 << 31) / granularity * granularity;
        let part = |first: usize| {
            let len = max.min(len - first);
            let end = first + len.next_multiple_of(4);
            Part { first, len, bytes: (first * size) as u64..(end * size) as u64 }
        };
        (0..len).step_by(max).map(part).collect()
    }
}

/// A part of the arrays that is bound at a time.
pub(super) struct Part {
    /// Index of the first number.
    pub(super) first: usize,
    /// Number of numbers.
    pub(super) len: usize,
    /// Range of bytes in the buffers.
    pub(super) bytes: Range<u64>,
}

impl Part {
    /// The part of `buffer`.
    pub(super) fn of(&self, buffer: &Buffer) -> Buffer {
        buffer.slice(self.bytes.clone())
    }

    /// The part of `buffer`, which has a bit for each number.
    pub(super) fn bits_of(&self, buffer: &Buffer) -> Buffer {
        let first = self.first as u64 / 8;
        buffer.slice(first..first + self.len.div_ceil(32) as u64 * 4)
    }
}
