//! The buffers of a scan, and their parts.

use std::ops::Range;

use super::spec::Spec;
use crate::{
    gpu::{Buffer, Context},
    kernels::scan::params::TILE,
};

/// The buffers of a scan.
#[derive(Clone, Copy, Debug)]
pub struct Arrays<'a> {
    /// The numbers: whole quads, a length that is a multiple of four numbers.
    pub source: &'a Buffer,
    /// The results: another buffer of the same length.
    pub result: &'a Buffer,
    /// How many numbers are scanned.
    pub len: usize,
    /// [`Spec::carry_places`] numbers: the first is the carry before `source`, the last becomes the carry after it.
    pub carry: &'a Buffer,
}

impl Spec {
    /// Parts of whole tiles that fit one binding each, and whose numbers are counted in 31 bits.
    pub(super) fn parts(&self, context: &Context, len: usize) -> Vec<Part> {
        self.parts_of(context, len, TILE)
    }

    /// Parts of whole pieces of `piece` numbers, as large as fit one binding; one piece is expected to fit.
    pub(super) fn parts_of(&self, context: &Context, len: usize, piece: usize) -> Vec<Part> {
        let size = self.dtype.size();
        let most = (context.max_binding() as usize / size).min(1 << 31) / piece * piece;
        let part = |first: usize| {
            let len = most.min(len - first);
            let end = first + len.next_multiple_of(4);
            Part { first, len, bytes: (first * size) as u64..(end * size) as u64 }
        };
        (0..len).step_by(most).map(part).collect()
    }
}

/// A part of the arrays that is bound at a time.
pub(super) struct Part {
    /// The place of its first number.
    pub(super) first: usize,
    /// Numbers.
    pub(super) len: usize,
    /// Where it lies in the buffers.
    pub(super) bytes: Range<u64>,
}

impl Part {
    /// Its numbers in `buffer`.
    pub(super) fn of(&self, buffer: &Buffer) -> Buffer {
        buffer.slice(self.bytes.clone())
    }

    /// Its bits in a buffer with a bit for each number.
    pub(super) fn bits_of(&self, buffer: &Buffer) -> Buffer {
        let first = self.first as u64 / 8;
        buffer.slice(first..first + self.len.div_ceil(32) as u64 * 4)
    }
}
