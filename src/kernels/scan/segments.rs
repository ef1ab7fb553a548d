//! Segmented scan.

use super::{
    cpu,
    gpu::{self, ScanSpec},
    op::{Scannable, for_op},
    params::{Scan, Scanned},
};
use crate::{device::Kernel, gpu::Context, util::error::Result};

/// A scan that starts again at the first number of each segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SegmentedScan<T> {
    /// The scan. Its carry is not used if a segment starts at the first number.
    pub scan: Scan<T>,
    /// The carry before the first number of each segment.
    pub start: T,
}

/// Numbers in segments.
#[derive(Clone, Debug, PartialEq)]
pub struct Segments<T> {
    /// All numbers.
    pub numbers: Vec<T>,
    /// For each number, whether a segment starts there.
    pub starts: Vec<bool>,
}

impl<T: Scannable> Kernel for SegmentedScan<T> {
    type In = Segments<T>;
    type Out = Scanned<T>;
    const NAME: &'static str = "scan";

    fn cpu(&self, Segments { numbers, starts }: &Segments<T>) -> Result<Scanned<T>> {
        let Scan { op, inclusive, carry_in, .. } = self.scan;
        let start = self.start;
        let (values, carry_out) =
            for_op!(op, T, cpu::scan_segments(numbers, starts, inclusive, start, carry_in))?;
        Ok(Scanned { values, carry_out })
    }

    fn gpu(&self, context: &Context, input: &Segments<T>) -> Result<Scanned<T>> {
        let spec = ScanSpec::new(&self.scan);
        if !spec.is_supported(context) || !gpu::segments::fits(&spec, context) {
            log::debug!(
                "{} does not support segments of {}: scanning on the CPU",
                context.info.name,
                T::DTYPE
            );
            return context.timings().time(Self::NAME, || self.cpu(input));
        }
        gpu::scan_segments(&self.scan, context, &input.numbers, &input.starts, self.start)
    }
}
