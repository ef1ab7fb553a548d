//! The parameters and the result of a scan.

use super::op::{Op, Scannable};

/// Numbers in a tile: 256 lanes of 16 numbers.
pub(super) const TILE: usize = 4096;

/// Numbers in a block: a tile of tiles. Callers that scan an input in several calls pass whole blocks, except in the last.
pub const BLOCK: usize = TILE * TILE;

/// The algorithm on a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// The fastest one on the device; see [`ScanSpec::choose`](super::ScanSpec::choose).
    #[default]
    Auto,
    /// Reduce-then-scan.
    Reduce,
    /// Chained scan with decoupled look-back.
    Lookback,
    /// Blelloch's scan, for comparison.
    Blelloch,
}

/// The parameters of a scan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scan<T> {
    /// The operation that joins numbers.
    pub op: Op,
    /// Whether each result includes the number at its index.
    pub inclusive: bool,
    /// The carry, which is joined before the first number: the identity of the operation, the user's start, or
    /// [`Scanned::carry_out`] of the previous call.
    pub carry_in: T,
    /// The algorithm on a GPU.
    pub algorithm: Algorithm,
}

/// The result of a scan.
#[derive(Clone, Debug, PartialEq)]
pub struct Scanned<T> {
    /// As many numbers as the input has.
    pub values: Vec<T>,
    /// The carry and all numbers joined: the carry of the next call.
    pub carry_out: T,
}

impl<T: Scannable> Scan<T> {
    /// A scan that starts with the identity of `op`.
    pub fn new(op: Op, inclusive: bool) -> Self {
        Self { op, inclusive, carry_in: T::identity(op), algorithm: Algorithm::Auto }
    }
}
