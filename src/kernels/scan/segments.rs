//! Scan in segments.

use super::{
    cpu,
    gpu::{self, Spec},
    op::{Scannable, for_op},
    params::{Scan, Scanned},
};
use crate::{device::Kernel, gpu::Context, util::error::Result};

/// A scan in segments: it starts again at certain numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SegmentedScan<T> {
    /// The scan. Its carry comes before the first number, unless a segment begins there.
    pub scan: Scan<T>,
    /// The carry before the first number of each segment.
    pub start: T,
}

/// Numbers in segments.
#[derive(Clone, Debug, PartialEq)]
pub struct Segments<T> {
    /// All numbers.
    pub numbers: Vec<T>,
    /// As many marks: whether a segment begins with the number.
    pub starts: Vec<bool>,
}

impl<T: Scannable> Kernel for SegmentedScan<T> {
    type In = Segments<T>;
    type Out = Scanned<T>;
    const NAME: &'static str = "scan";

    fn cpu(&self, Segments { numbers, starts }: &Segments<T>) -> Result<Scanned<T>> {
        let Scan { op, inclusive, before, .. } = self.scan;
        let start = self.start;
        let (values, after) =
            for_op!(op, T, cpu::scan_segments(numbers, starts, inclusive, start, before))?;
        Ok(Scanned { values, after })
    }

    fn gpu(&self, context: &Context, input: &Segments<T>) -> Result<Scanned<T>> {
        let spec = Spec::of(&self.scan);
        if !spec.runs_on(context) || !gpu::segments::fits(&spec, context) {
            log::debug!("{} cannot scan segments of {}", context.info.name, T::DTYPE);
            return context.timings().time(Self::NAME, || self.cpu(input));
        }
        gpu::scan_segments(&self.scan, context, &input.numbers, &input.starts, self.start)
    }
}
