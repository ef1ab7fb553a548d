//! Size, components and colour model of a JPEG picture.

use std::ops::Range;

use super::tables::Quality;
use crate::util::error::{Error, Result};

/// The colour space of the components of a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColourModel {
    /// One component.
    #[default]
    Grey,
    /// Luma and two chroma components (T.871, 7).
    YCbCr,
    /// Red, green and blue.
    Rgb,
    /// Cyan, magenta, yellow and black, all inverted, as Adobe's programs store them.
    Cmyk,
    /// As [`ColourModel::Cmyk`], with the first three components converted to YCbCr.
    Ycck,
    /// Four components that are not converted.
    Raw,
}

impl ColourModel {
    /// Number of components in the file.
    pub fn components(self) -> usize {
        match self {
            Self::Grey => 1,
            Self::YCbCr | Self::Rgb => 3,
            Self::Cmyk | Self::Ycck | Self::Raw => 4,
        }
    }

    /// Channels of the decoded picture: 1 for grey, 3 for RGB, 4 for components that are not converted.
    pub fn channels(self) -> usize {
        match self {
            Self::Cmyk | Self::Ycck => 3,
            _ => self.components(),
        }
    }
}

/// How a component is enlarged to the size of the picture, as libjpeg does by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upsampling {
    /// The component has full resolution.
    Full,
    /// Twice the width, by a triangle filter.
    Across,
    /// Twice the height, by a triangle filter.
    Down,
    /// Twice the width and height, by triangle filters.
    Both,
    /// These multiples of width and height, by repetition.
    Repeat([usize; 2]),
}

impl Upsampling {
    /// Whether a row also depends on the rows above and below.
    pub fn needs_neighbours(self) -> bool {
        matches!(self, Self::Down | Self::Both)
    }
}

/// Resolution and quantization of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// Blocks across and down in each MCU: the sampling factors (T.81, A.1.1).
    pub sampling: [usize; 2],
    /// Quantization steps, row by row.
    pub steps: [u16; 64],
}

/// Size, colours and components of a picture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Pixels across and down.
    pub size: [usize; 2],
    /// The colour space of the components.
    pub colour: ColourModel,
    /// The components, as many as `colour` has.
    pub components: Vec<Component>,
}

impl Frame {
    /// The frame of a picture to be encoded: `size` pixels with 1 or 3 channels. With `half_chroma`, chroma has half
    /// the resolution along both axes.
    pub fn for_pixels(
        size: [usize; 2],
        channels: usize,
        quality: Quality,
        half_chroma: bool,
    ) -> Self {
        let luma = |sampling| Component { sampling, steps: quality.luma() };
        let chroma = Component { sampling: [1, 1], steps: quality.chroma() };
        let (colour, components) = match (channels, half_chroma) {
            (1, _) => (ColourModel::Grey, vec![luma([1, 1])]),
            (_, false) => (ColourModel::YCbCr, vec![luma([1, 1]), chroma.clone(), chroma]),
            (_, true) => (ColourModel::YCbCr, vec![luma([2, 2]), chroma.clone(), chroma]),
        };
        Self { size, colour, components }
    }

    /// The frame of the same picture, `shrink` times smaller. Components of low resolution keep it as far as possible.
    pub fn shrunken(&self, shrink: usize) -> Self {
        let (max, size) = (self.max_sampling(), self.size.map(|side| side.div_ceil(shrink)));
        let mut frame = Self { size, ..self.clone() };
        for component in &mut frame.components {
            let times = [0, 1].map(|axis| (max[axis] / component.sampling[axis]).min(shrink));
            component.sampling = [0, 1].map(|axis| component.sampling[axis] * times[axis]);
        }
        frame
    }

    /// The largest sampling factors.
    pub fn max_sampling(&self) -> [usize; 2] {
        [0, 1].map(|axis| self.components.iter().map(|c| c.sampling[axis]).max().unwrap_or(1))
    }

    /// Number of MCUs across and down (T.81, A.2).
    pub fn mcus(&self) -> [usize; 2] {
        let max = self.max_sampling();
        [0, 1].map(|axis| self.size[axis].div_ceil(8 * max[axis]))
    }

    /// Number of blocks of component `c` across and down, including those that only fill up the last MCUs.
    pub fn blocks(&self, c: usize) -> [usize; 2] {
        let mcus = self.mcus();
        [0, 1].map(|axis| mcus[axis] * self.components[c].sampling[axis])
    }

    /// Number of blocks of all components before component `c`. If `c` is the number of components, this counts all
    /// blocks.
    pub fn first_block(&self, c: usize) -> usize {
        (0..c).map(|c| self.blocks(c).iter().product::<usize>()).sum()
    }

    /// Bytes of the pixels.
    pub fn pixel_bytes(&self) -> usize {
        self.size[0] * self.size[1] * self.colour.channels()
    }

    /// The frame of the MCU rows `rows` alone.
    pub fn band(&self, rows: Range<usize>) -> Self {
        let row = 8 * self.max_sampling()[1];
        let [width, height] = self.size;
        let size = [width, height.min(rows.end * row) - rows.start * row];
        Self { size, ..self.clone() }
    }

    /// Number of samples of component `c` in the picture, across and down (T.81, A.1.1).
    pub fn samples(&self, c: usize) -> [usize; 2] {
        let max = self.max_sampling();
        [0, 1].map(|axis| (self.size[axis] * self.components[c].sampling[axis]).div_ceil(max[axis]))
    }

    /// How component `c` is enlarged to the size of the picture. Its resolution must be an integer fraction of the
    /// picture's.
    pub fn upsampling(&self, c: usize) -> Result<Upsampling> {
        let (max, own) = (self.max_sampling(), self.components[c].sampling);
        if (0..2).any(|axis| !max[axis].is_multiple_of(own[axis])) {
            return Err(Error::bad_input(
                "JPEG with components of fractional resolution is not supported",
            ));
        }
        // The triangle filter along x needs at least three samples.
        let wide = self.samples(c)[0] > 2;
        Ok(match [0, 1].map(|axis| max[axis] / own[axis]) {
            [1, 1] => Upsampling::Full,
            [2, 1] if wide => Upsampling::Across,
            [1, 2] => Upsampling::Down,
            [2, 2] if wide => Upsampling::Both,
            times => Upsampling::Repeat(times),
        })
    }
}
