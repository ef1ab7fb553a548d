//! The route that counts a component.

use super::{
    bins::Bins,
    counts::{Component, Pixels},
    luma::{Luma, LumaBins},
};
use crate::{data::dtype::Dtype, util::error::Result};

/// A route, and the component that it counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Route {
    /// The levels of this 8-bit channel.
    U8Levels(usize),
    /// Luminance of u8 pixels, binned by one integer division.
    U8Luma(LumaBins),
    /// The levels of this 16-bit channel.
    U16Levels(usize),
    /// Luminance of integer pixels, binned by comparison with the edges.
    Luma(Luma),
    /// 32-bit and 64-bit samples, or luminance of floats, binned by comparison with the edges.
    Values(Component),
}

impl Route {
    /// The first route of this list that fits `component`.
    ///
    /// 1. Levels, where a type has few: they give any bins, and exact statistics.
    /// 2. Luminance together with 8-bit channels, in the same pass over the pixels. One pass has one
    ///    luminance, in at most 256 bins over the range of the type.
    /// 3. Other luminance of integers, in integers.
    /// 4. All other components as values. The luminance of floats is computed on the host in f64, so that no device's
    ///    rounding moves a value into another bin.
    fn choose(component: Component, dtype: Dtype, bins: &Bins) -> Self {
        let over_u8 = bins.count <= MAX_U8_BINS && (bins.low, bins.high) == (0.0, 255.0);
        match (component, dtype) {
            (Component::Channel(channel), Dtype::U8 | Dtype::I8) => Self::U8Levels(channel),
            (Component::Channel(channel), Dtype::U16 | Dtype::I16) => Self::U16Levels(channel),
            (Component::Luma(luma), Dtype::U8) if luma != Luma::Linear && over_u8 => {
                Self::U8Luma(LumaBins::new(luma, bins.count))
            }
            (Component::Luma(luma), dtype) if !dtype.is_float() => Self::Luma(luma),
            _ => Self::Values(component),
        }
    }

    /// The routes of all `components`.
    pub fn choose_all(components: &[Component], pixels: &Pixels, bins: &Bins) -> Result<Vec<Self>> {
        let mut shared = None;
        let route = |&component: &Component| {
            component.check(pixels)?;
            let route = Self::choose(component, pixels.samples.dtype(), bins);
            Ok(match (route, component) {
                (Self::U8Luma(binning), Component::Luma(luma))
                    if binning != *shared.get_or_insert(binning) =>
                {
                    Self::Luma(luma)
                }
                _ => route,
            })
        };
        components.iter().map(route).collect()
    }
}

/// Maximum number of bins of luminance that are counted together with 8-bit channels.
const MAX_U8_BINS: usize = 256;

/// The components that one pass over 8-bit pixels counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct U8Components {
    /// The channels to count.
    pub channels: [bool; 4],
    /// The luminance of the first three channels.
    pub luma: Option<LumaBins>,
}

impl U8Components {
    /// The components that `routes` count in this pass.
    pub fn from_routes(routes: &[Route]) -> Self {
        let mut components = Self::default();
        for route in routes {
            match *route {
                Route::U8Levels(channel) => components.channels[channel] = true,
                Route::U8Luma(binning) => components.luma = Some(binning),
                _ => {}
            }
        }
        components
    }

    /// Whether there are at most four components, as many as one pass counts on a GPU.
    pub fn fits_one_pass(&self) -> bool {
        self.luma.is_none() || self.channels.contains(&false)
    }

    pub fn is_empty(&self) -> bool {
        !self.channels.contains(&true) && self.luma.is_none()
    }
}

/// The counts of [`U8Components`]; those of other components are unspecified.
#[derive(Clone, Debug, Default)]
pub struct U8Counts {
    /// For each channel, the number of samples of each of 256 bit patterns.
    pub channels: [Vec<u64>; 4],
    /// Pixels in each bin of luminance.
    pub luma: Vec<u64>,
}
