//! A filter that changes only some channels of an image.

use std::{fmt, ops::Range};

use serde_json::{Value, json};

use super::filter::{Block, Cost, Filter, Properties, Reach};
use crate::{
    data::{
        description::Description,
        grid::{Grid, GridType, Shape},
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
    ///
    /// # Errors
    /// When there is no such channel.
    pub fn position(self, channels: usize) -> Result<usize> {
        match (self, channels) {
            (Self::Grey, 1 | 2) | (Self::Red, 3 | 4) => Ok(0),
            (Self::Green, 3 | 4) => Ok(1),
            (Self::Blue, 3 | 4) => Ok(2),
            (Self::Alpha, 2 | 4) => Ok(channels - 1),
            _ => {
                let own = ["grey", "grey and a", "r, g and b", "r, g, b and a"][channels - 1];
                let text = format_args!("there is no channel {self}: the image has only {own}");
                Err(Error::usage(text))
            }
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
            changed[channel.position(channels)?] = true;
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

    fn reach(&self, axis: usize, output: &Range<usize>, shape: Shape) -> Reach {
        self.filter.reach(axis, output, shape)
    }

    fn properties(&self) -> Properties {
        self.filter.properties()
    }

    fn describe(&self, input: Description) -> Result<Description> {
        self.unchanged(input.grid.shape.channels)?;
        self.filter.describe(input)
    }

    fn cost(&self, input: GridType) -> Cost {
        self.filter.cost(input)
    }

    fn run(&self, device: &Device, input: &Grid, block: &Block) -> Result<Samples> {
        let mut filtered = self.filter.run(device, input, block)?;
        for channel in self.unchanged(input.channels)? {
            copy_channel(&input.samples, &mut filtered, channel, input.channels);
        }
        Ok(filtered)
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
