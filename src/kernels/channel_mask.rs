//! A filter that changes only some channels of an image.

use std::fmt;

use serde_json::{Value, json};

use super::filter::Filter;
use crate::{
    data::{
        description::Description,
        grid::{Grid, GridType},
        samples::Samples,
    },
    device::Device,
    util::{
        error::{Error, Result},
        memory,
    },
};

/// A channel of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelName {
    /// Red.
    Red,
    /// Green.
    Green,
    /// Blue.
    Blue,
    /// Grey.
    Grey,
    /// Alpha.
    Alpha,
}

impl fmt::Display for ChannelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Red => "r",
            Self::Green => "g",
            Self::Blue => "b",
            Self::Grey => "grey",
            Self::Alpha => "a",
        })
    }
}

impl ChannelName {
    /// Index of the channel in a pixel of `channels` samples.
    fn index(self, channels: usize) -> Option<usize> {
        match (self, channels) {
            (Self::Grey, 1 | 2) | (Self::Red, 3 | 4) => Some(0),
            (Self::Green, 3 | 4) => Some(1),
            (Self::Blue, 3 | 4) => Some(2),
            (Self::Alpha, 2 | 4) => Some(channels - 1),
            _ => None,
        }
    }
}

/// A filter whose result replaces only some channels.
#[derive(Debug)]
pub struct ChannelMask {
    /// The filter.
    pub filter: Box<dyn Filter>,
    /// The channels that it changes.
    pub channels: Vec<ChannelName>,
}

impl ChannelMask {
    /// Indices of the channels, out of `channels`, that stay unchanged.
    fn unchanged(&self, channels: usize) -> Result<Vec<usize>> {
        let mut changed = memory::filled(false, channels);
        for channel in &self.channels {
            let index = channel.index(channels).ok_or_else(|| {
                let own = ["grey", "grey and a", "r, g and b", "r, g, b and a"][channels - 1];
                Error::usage(format_args!(
                    "there is no channel {channel}: the image has only {own}"
                ))
            })?;
            changed[index] = true;
        }
        Ok((0..channels).filter(|&channel| !changed[channel]).collect())
    }
}

impl Filter for ChannelMask {
    fn name(&self) -> &'static str {
        self.filter.name()
    }

    fn parameters(&self) -> Value {
        let channels: Vec<String> = self.channels.iter().map(ToString::to_string).collect();
        json!({"filter": self.filter.parameters(), "channels": channels})
    }

    fn summary(&self, axes: usize) -> String {
        self.filter.summary(axes)
    }

    fn halo(&self, axis: usize) -> usize {
        self.filter.halo(axis)
    }

    fn wraps(&self, axis: usize) -> bool {
        self.filter.wraps(axis)
    }

    fn is_identity(&self) -> bool {
        self.filter.is_identity()
    }

    fn needs_straight_alpha(&self) -> bool {
        self.filter.needs_straight_alpha()
    }

    fn describe(&self, input: Description) -> Result<Description> {
        self.unchanged(input.grid.shape.channels)?;
        self.filter.describe(input)
    }

    fn working_bytes(&self, input: GridType) -> u64 {
        self.filter.working_bytes(input)
    }

    fn copies(&self) -> u64 {
        self.filter.copies()
    }

    fn run(&self, device: &Device, input: &Grid) -> Result<Samples> {
        let mut filtered = self.filter.run(device, input)?;
        for channel in self.unchanged(input.channels)? {
            copy_channel(&input.samples, &mut filtered, channel, input.channels);
        }
        Ok(filtered)
    }

    fn is_exact_for_u8(&self) -> bool {
        self.filter.is_exact_for_u8()
    }

    fn core_seconds_per_byte(&self) -> f64 {
        self.filter.core_seconds_per_byte()
    }
}

/// Copies one of `channels` interleaved channels.
pub(super) fn copy_channel(from: &Samples, to: &mut Samples, channel: usize, channels: usize) {
    let size = from.dtype().size();
    let sample = channel * size..(channel + 1) * size;
    let pixels = to.as_bytes_mut().chunks_exact_mut(size * channels);
    for (to, from) in pixels.zip(from.as_bytes().chunks_exact(size * channels)) {
        to[sample.clone()].copy_from_slice(&from[sample.clone()]);
    }
}
