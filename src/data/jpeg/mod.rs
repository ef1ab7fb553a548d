//! JPEG pictures between their file and their pixels: quantised DCT coefficients, and the arithmetic of ITU-T T.81 and
//! T.871 on the CPU.
//!
//! All of it is integer arithmetic that gives the same results as libjpeg's default ("islow") path.

pub mod forward;
pub mod inverse;
mod lanes;
mod sparse;
mod tables;

pub use sparse::{Entries, Entry, SparseBlock, SparseCoefficients, first_entry};
pub use tables::{Quality, ZIGZAG};

/// What the components of a picture stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColourModel {
    /// One component.
    Grey,
    /// Luma and two chroma components (T.871, 7).
    YCbCr,
    /// Red, green and blue as they are.
    Rgb,
    /// Cyan, magenta, yellow and black, all inverted, as Adobe's programs store them.
    Cmyk,
    /// The same with the first three as YCbCr.
    Ycck,
}

impl ColourModel {
    /// Components in the file.
    pub fn components(self) -> usize {
        match self {
            Self::Grey => 1,
            Self::YCbCr | Self::Rgb => 3,
            Self::Cmyk | Self::Ycck => 4,
        }
    }

    /// Samples a decoded pixel: 1 grey, 3 RGB.
    pub fn channels(self) -> usize {
        self.components().min(3)
    }
}

/// How a component becomes as large as the picture, as libjpeg chooses by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upsampling {
    /// It is.
    Full,
    /// Twice the width, by a triangle filter.
    Across,
    /// Twice the height, by a triangle filter.
    Down,
    /// Twice both, by a triangle filter.
    Both,
    /// So many times the width and the height, by repetition.
    Repeat([usize; 2]),
}

impl Upsampling {
    /// Whether a row is made from the rows above and below, too.
    pub fn needs_neighbours(self) -> bool {
        matches!(self, Self::Down | Self::Both)
    }
}

/// A component: its resolution and its quantisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// Blocks across and down in each MCU: the sampling factors (T.81, A.1.1).
    pub sampling: [usize; 2],
    /// Quantisation steps, row by row.
    pub steps: [u16; 64],
}

/// The geometry of a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Pixels across and down.
    pub size: [usize; 2],
    /// What the components stand for.
    pub colour: ColourModel,
    /// As many as `colour` has.
    pub components: Vec<Component>,
}

impl Frame {
    /// That of a picture to be encoded: `size` pixels with 1 channel or 3. With `half_chroma`, chroma has half the
    /// resolution along both axes.
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

    /// The largest sampling factors.
    pub fn most(&self) -> [usize; 2] {
        [0, 1].map(|axis| self.components.iter().map(|c| c.sampling[axis]).max().unwrap_or(1))
    }

    /// MCUs across and down (T.81, A.2).
    pub fn mcus(&self) -> [usize; 2] {
        let most = self.most();
        [0, 1].map(|axis| self.size[axis].div_ceil(8 * most[axis]))
    }

    /// Blocks of component `c` across and down, those that fill up the last MCUs included.
    pub fn blocks(&self, c: usize) -> [usize; 2] {
        let mcus = self.mcus();
        [0, 1].map(|axis| mcus[axis] * self.components[c].sampling[axis])
    }

    /// Blocks of all components before component `c`; with the number of components, of all.
    pub fn first_block(&self, c: usize) -> usize {
        (0..c).map(|c| self.blocks(c).iter().product::<usize>()).sum()
    }

    /// Samples of component `c` across and down that belong to the picture (T.81, A.1.1).
    pub fn samples(&self, c: usize) -> [usize; 2] {
        let most = self.most();
        [0, 1]
            .map(|axis| (self.size[axis] * self.components[c].sampling[axis]).div_ceil(most[axis]))
    }

    /// How component `c` becomes as large as the picture; nothing where the ratio of its resolution to the
    /// picture's is no whole number.
    pub fn upsampling(&self, c: usize) -> Option<Upsampling> {
        let (most, own) = (self.most(), self.components[c].sampling);
        let whole = (0..2).all(|axis| most[axis].is_multiple_of(own[axis]));
        // The triangle filter along x takes three samples at least.
        let wide = self.samples(c)[0] > 2;
        whole.then(|| match [0, 1].map(|axis| most[axis] / own[axis]) {
            [1, 1] => Upsampling::Full,
            [2, 1] if wide => Upsampling::Across,
            [1, 2] => Upsampling::Down,
            [2, 2] if wide => Upsampling::Both,
            times => Upsampling::Repeat(times),
        })
    }
}

/// Quantised coefficients of a whole picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coefficients {
    /// The geometry.
    pub frame: Frame,
    /// For each component the [`Frame::blocks`] from the left, then from the top; coefficients row by row.
    pub blocks: Vec<Vec<[i16; 64]>>,
}
