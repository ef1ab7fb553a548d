//! The parameters of a blur.

use std::borrow::Cow;

use serde::Serialize;

use super::taps::{Method, Taps};
use crate::data::samples::Samples;

/// Maximum standard deviation in pixels.
pub const MAX_SIGMA: f64 = 500.0;
/// Maximum radius in pixels.
pub const MAX_RADIUS: usize = 10_000;

/// The samples outside of an image or volume, with the names of scipy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub enum Edge {
    /// The nearest sample: a a a | a b c d | d d d.
    #[default]
    Clamp,
    /// The samples in reverse order: c b a | a b c d | d c b.
    Reflect,
    /// As reflect, without a repetition of the outermost sample: d c b | a b c d | c b a.
    Mirror,
    /// The samples of the other end: b c d | a b c d | a b c.
    Wrap,
    /// This value, in units of the samples. If there is an alpha channel, the outside is opaque, or transparent if the
    /// value is 0.
    Constant(f64),
}

impl Edge {
    /// The position whose sample is used for position `at`, on an axis of `len` samples; `None` for the constant.
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
    /// Gaussian or box.
    pub method: Method,
    /// The blur along x, y and z.
    pub axes: [Taps; 3],
    /// Number of times that the passes along all axes are repeated.
    pub iterations: usize,
    /// Samples outside.
    pub edge: Edge,
    /// Whether to blur in linear light, not the stored sRGB values.
    pub linear: bool,
}

/// A blur with other samples outside along each axis, which is computed on the CPU.
#[derive(Clone, Debug)]
pub struct BlurByAxis {
    /// The blur. Its edge is the constant if any axis has that.
    pub blur: Blur,
    /// Samples outside along x, y and z.
    pub edges: [Edge; 3],
}

/// Samples before or after a pass. Those of [`PassFormat::U24`](super::PassFormat::U24) are u32.
pub(super) type Values<'a> = Cow<'a, Samples>;

impl Blur {
    /// Whether the result equals the input.
    pub fn is_identity(&self) -> bool {
        self.iterations == 0 || self.axes.iter().all(|axis| axis.radius == 0)
    }
}
