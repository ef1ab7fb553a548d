//! Scan (prefix sum): each number becomes the sum of all before it, or their minimum, maximum or
//! product.
//!
//! Numbers are handled in blocks of 2^24, each 4,096 tiles of 4,096 numbers; a carry leads from
//! block to block. Sums and products of floats join in this one order on every device, so their
//! rounding is the same everywhere and from run to run, however long the input and in whatever
//! stretches it comes.

mod cpu;
mod gpu;
mod op;

pub use gpu::{BLELLOCH, LOOKBACK, OPS, REDUCE, Spec};
pub use op::{Monoid, Op, Scannable};

use clap::ValueEnum;

use crate::{device::Kernel, error::Result, gpu::Context};

/// Numbers of a tile: 256 lanes, 16 numbers each.
const TILE: usize = 4096;

/// Numbers of a block: a tile of tiles. Inputs that come in stretches come in whole blocks.
pub const BLOCK: usize = TILE * TILE;

/// How a GPU scans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ValueEnum)]
pub enum Algorithm {
    /// What is fastest on the device
    #[default]
    Auto,
    /// Reduce, then scan: three passes, reads twice and writes once; on any device
    Reduce,
    /// Chained scan with decoupled look-back: one pass, reads once and writes once; 32-bit numbers,
    /// no sums or products of floats, subgroups needed
    Lookback,
    /// Blelloch's three passes, blocks of 512: reads and writes twice; for comparison. Sums of floats
    /// are rounded differently
    Blelloch,
}

/// A scan and what comes before its first number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scan<T> {
    /// What numbers are joined with.
    pub op: Op,
    /// Whether a result includes the number at its own place.
    pub inclusive: bool,
    /// Joined in before the first number: the operation's identity, the user's start, or what
    /// [`Scanned::after`] the stretch before this one.
    pub before: T,
    /// How a GPU does it.
    pub algorithm: Algorithm,
}

/// The result of a scan.
#[derive(Clone, Debug, PartialEq)]
pub struct Scanned<T> {
    /// As many numbers as there were.
    pub values: Vec<T>,
    /// Everything joined: what comes before the next stretch.
    pub after: T,
}

impl<T: Scannable> Scan<T> {
    /// A scan that starts with the identity of `op`.
    pub fn new(op: Op, inclusive: bool) -> Self {
        Self { op, inclusive, before: T::identity(op), algorithm: Algorithm::Auto }
    }
}

impl<T: Scannable> Kernel for Scan<T> {
    type In = [T];
    type Out = Scanned<T>;
    const NAME: &'static str = "scan";

    fn cpu(&self, input: &[T]) -> Result<Scanned<T>> {
        let mut values = vec![T::default(); input.len()];
        let (inclusive, before) = (self.inclusive, self.before);
        let after = match self.op {
            Op::Sum => cpu::scan::<T::Sum>(input, &mut values, inclusive, before),
            Op::Min => cpu::scan::<T::Min>(input, &mut values, inclusive, before),
            Op::Max => cpu::scan::<T::Max>(input, &mut values, inclusive, before),
            Op::Product => cpu::scan::<T::Product>(input, &mut values, inclusive, before),
        };
        Ok(Scanned { values, after })
    }

    fn gpu(&self, context: &Context, input: &[T]) -> Result<Scanned<T>> {
        let spec = Spec {
            number: T::TYPE,
            op: self.op,
            inclusive: self.inclusive,
            algorithm: self.algorithm,
        };
        if !spec.runs_on(context) {
            log::debug!("{} cannot scan {}: the CPU does", context.info.name, T::TYPE);
            return context.timings().time(Self::NAME, || self.cpu(input));
        }
        gpu::scan(self, context, input)
    }
}
