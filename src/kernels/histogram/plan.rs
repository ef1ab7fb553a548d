//! Which route counts which component.

use super::{
    bins::Bins,
    counts::{Component, Pixels},
    luma::{Luma, LumaBins},
};
use crate::{
    data::dtype::Dtype,
    util::error::{Error, Result},
};

/// How one component is counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Plan {
    /// The levels of this 8-bit channel.
    U8Levels(usize),
    /// Luminance of u8 pixels, binned by one integer division.
    U8Luma(LumaBins),
    /// The levels of this 16-bit channel.
    U16Levels(usize),
    /// Luminance of u8 or u16 pixels, binned by comparison with the edges.
    Luma(Luma),
    /// 32-bit and 64-bit values, binned by comparison with the edges.
    Values(Component),
}

impl Plan {
    /// How `component` is counted: the first route of this list that fits.
    ///
    /// 1. Levels, where a type has few: they give any bins, and exact statistics.
    /// 2. Luminance together with 8-bit channels, in the same pass over the pixels. One pass has one
    ///    luminance, in at most 256 bins over the type's range.
    /// 3. Other luminance of integers, in integers.
    /// 4. All other components as values. The luminance of floats and of types without a full intensity is computed
    ///    on the host in f64, so that no device's rounding moves a value into another bin.
    fn new(component: Component, dtype: Dtype, bins: &Bins) -> Self {
        let over_u8 = bins.count <= MOST_U8_BINS && (bins.low, bins.high) == (0.0, 255.0);
        match (component, dtype) {
            (Component::Channel(channel), Dtype::U8 | Dtype::I8) => Self::U8Levels(channel),
            (Component::Channel(channel), Dtype::U16 | Dtype::I16) => Self::U16Levels(channel),
            (Component::Luma(luma), Dtype::U8) if luma != Luma::Linear && over_u8 => {
                Self::U8Luma(LumaBins::new(luma, bins.count))
            }
            (Component::Luma(luma), Dtype::U8 | Dtype::U16) => Self::Luma(luma),
            _ => Self::Values(component),
        }
    }

    /// How all `components` are counted.
    ///
    /// # Errors
    /// [`Kind::Usage`](crate::util::error::Kind::Usage) when the pixels have no such component.
    pub fn of_all(components: &[Component], pixels: &Pixels, bins: &Bins) -> Result<Vec<Self>> {
        let mut shared = None;
        let plan = |&component: &Component| {
            check(component, pixels)?;
            let plan = Self::new(component, pixels.samples.dtype(), bins);
            Ok(match (plan, component) {
                (Self::U8Luma(binning), Component::Luma(luma))
                    if binning != *shared.get_or_insert(binning) =>
                {
                    Self::Luma(luma)
                }
                _ => plan,
            })
        };
        components.iter().map(plan).collect()
    }
}

/// Fails unless `pixels` have the component.
fn check(component: Component, pixels: &Pixels) -> Result<()> {
    let (needed, name) = match component {
        Component::Channel(channel) => (channel + 1, format!("channel {}", channel + 1)),
        Component::Luma(_) => (3, "luminance".into()),
    };
    match needed <= pixels.channels && pixels.channels <= 4 {
        true => Ok(()),
        false => {
            Err(Error::usage(format_args!("pixels of {} channels have no {name}", pixels.channels)))
        }
    }
}

/// The most bins of luminance that are counted together with 8-bit channels.
const MOST_U8_BINS: usize = 256;

/// The components that one pass over 8-bit pixels counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct U8Components {
    /// Which channels.
    pub channels: [bool; 4],
    /// The luminance of the first three channels.
    pub luma: Option<LumaBins>,
}

impl U8Components {
    /// The components whose `plans` are this pass.
    pub fn of(plans: &[Plan]) -> Self {
        let mut components = Self::default();
        for plan in plans {
            match *plan {
                Plan::U8Levels(channel) => components.channels[channel] = true,
                Plan::U8Luma(binning) => components.luma = Some(binning),
                _ => {}
            }
        }
        components
    }

    /// Whether there are no more than the four that a pass counts on a GPU.
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
    /// Of each channel, samples of each of 256 bit patterns.
    pub channels: [Vec<u64>; 4],
    /// Pixels in each bin of luminance.
    pub luma: Vec<u64>,
}
