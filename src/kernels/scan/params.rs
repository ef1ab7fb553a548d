//! The parameters and the result of a scan.

use super::op::{Op, Scannable};

/// Numbers of a tile: 256 lanes, 16 numbers each.
pub(super) const TILE: usize = 4096;

/// Numbers of a block: a tile of tiles. Inputs that come in stretches come in whole blocks.
pub const BLOCK: usize = TILE * TILE;

/// How a GPU scans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// The fastest on the device, see [`Spec::choose`](super::Spec::choose).
    #[default]
    Auto,
    /// Reduce-then-scan.
    Reduce,
    /// Chained scan with decoupled look-back.
    Lookback,
    /// Blelloch's scan, for comparison.
    Blelloch,
}

/// A scan, and the carry before its first number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scan<T> {
    /// The operation that joins numbers.
    pub op: Op,
    /// Whether a result includes the number at its own place.
    pub inclusive: bool,
    /// The carry, joined before the first number: the operation's identity, the user's start, or [`Scanned::after`] of
    /// the stretch before.
    pub before: T,
    /// The algorithm on a GPU.
    pub algorithm: Algorithm,
}

/// The result of a scan.
#[derive(Clone, Debug, PartialEq)]
pub struct Scanned<T> {
    /// As many numbers as there were.
    pub values: Vec<T>,
    /// The carry and all numbers joined: the carry before the next stretch.
    pub after: T,
}

impl<T: Scannable> Scan<T> {
    /// A scan that starts with the identity of `op`.
    pub fn new(op: Op, inclusive: bool) -> Self {
        Self { op, inclusive, before: T::identity(op), algorithm: Algorithm::Auto }
    }
}
