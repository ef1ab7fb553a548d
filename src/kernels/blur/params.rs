//! The parameters of a blur.

use std::borrow::Cow;

use super::taps::{Method, Taps};
use crate::data::samples::Samples;

/// The greatest standard deviation, in pixels.
pub const MAX_SIGMA: f64 = 500.0;
/// The greatest radius, in pixels.
pub const MAX_RADIUS: usize = 10_000;

/// What lies outside of an image or volume, as scipy names it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Edge {
    /// The nearest sample: a a a | a b c d | d d d.
    Clamp,
    /// The samples again, backwards: c b a | a b c d | d c b.
    Reflect,
    /// As reflect, with the outermost sample only once: d c b | a b c d | c b a.
    Mirror,
    /// The other end: b c d | a b c d | a b c.
    Wrap,
    /// This value, in units of the samples. With an alpha channel the outside is opaque, except that value 0 makes it
    /// transparent.
    Constant(f64),
}

impl Edge {
    /// The sample that stands for position `at` on an axis of `len` samples; `None` for the constant.
    pub fn map(self, at: isize, len: usize) -> Option<usize> {
        let n = len as isize;
        if (0..n).contains(&at) {
            return Some(at as usize);
        }
        let inside = match self {
            Self::Clamp => at.clamp(0, n - 1),
            Self::Reflect => {
                let at = at.rem_euclid(2 * n);
                at.min(2 * n - 1 - at)
            }
            Self::Mirror => {
                let period = (2 * n - 2).max(1);
                let at = at.rem_euclid(period);
                at.min(period - at)
            }
            Self::Wrap => at.rem_euclid(n),
            Self::Constant(_) => return None,
        };
        Some(inside.clamp(0, n - 1) as usize)
    }
}

/// A blur of an image or a volume.
#[derive(Clone, Debug, PartialEq)]
pub struct Blur {
    /// How samples are weighed.
    pub method: Method,
    /// The blur along x, y and z.
    pub axes: [Taps; 3],
    /// How many times the passes along all axes are repeated.
    pub iterations: usize,
    /// What lies outside.
    pub edge: Edge,
    /// Whether to blur light, not the stored sRGB values.
    pub linear: bool,
}

/// Samples before or after a pass. Those of [`Format::U24`](super::Format::U24) are u32.
pub(super) type Values<'a> = Cow<'a, Samples>;

impl Blur {
    /// Whether it leaves everything as it is.
    pub fn is_identity(&self) -> bool {
        self.iterations == 0 || self.axes.iter().all(|axis| axis.radius == 0)
    }
}
