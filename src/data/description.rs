//! Description of a grid's samples, known before any is read.

use super::{
    dtype::Dtype,
    grid::{GridType, Shape},
    placement::Placement,
};

/// Size, type and meaning of samples, and where they are in the world. Each step of a run turns the description of its input
/// into that of its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// The size and the type of the samples.
    pub grid: GridType,
    /// Meaning of the samples.
    pub kind: Kind,
    /// Relation of the samples to those of the source.
    pub origin: Origin,
    /// Of floats that were computed from integers: the type of these, in whose unit they count.
    pub numbers: Option<Dtype>,
    /// Positions in the world; `None` if they are unknown.
    pub placement: Option<Placement>,
    /// Whether x runs along y of the source, and y along x.
    pub is_transposed: bool,
}

/// Meaning of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Intensities, or numbers whose meaning is unknown.
    Samples,
    /// Each sample belongs to a class or not: 0, and 1 or 255.
    Mask,
    /// Numbers of classes.
    Classes,
    /// Numbers of objects, which outputs must store unchanged.
    Labels,
    /// Another quantity than that of the source, such as slopes.
    Quantity,
}

/// Relation of the samples of a result to those of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Nothing: labels, classes, a gradient.
    Other,
    /// The quantity and its unit, such as means of samples.
    SameQuantity,
    /// Each is a sample of the source, so that labels remain labels.
    Selected,
}

impl From<GridType> for Description {
    fn from(grid: GridType) -> Self {
        let (kind, origin) = (Kind::Samples, Origin::Selected);
        Self { grid, kind, origin, numbers: None, placement: None, is_transposed: false }
    }
}

impl Description {
    /// The description of means of the samples. Means of labels or classes are numbers.
    pub fn averaged(self) -> Self {
        let kind = if self.kind == Kind::Quantity { Kind::Quantity } else { Kind::Samples };
        Self { kind, origin: self.origin.min(Origin::SameQuantity), ..self }
    }

    /// The description of other samples of kind `kind` at the same positions.
    pub fn of(self, kind: Kind) -> Self {
        Self { kind, origin: Origin::Other, ..self }
    }

    /// The description of results of type `dtype` that are computed from the samples.
    pub fn computed_as(self, dtype: Dtype) -> Self {
        let before = self.grid.dtype;
        let numbers = if before.is_float() { self.numbers } else { Some(before) };
        let grid = GridType { dtype, ..self.grid };
        Self { grid, numbers: numbers.filter(|_| dtype.is_float()), ..self }
    }

    /// The description of one sample of type `dtype` and kind `kind` for each pixel or voxel.
    pub fn of_one_channel(self, kind: Kind, dtype: Dtype) -> Self {
        let grid = GridType { shape: Shape { channels: 1, ..self.grid.shape }, dtype };
        Self { grid, numbers: None, ..self.of(kind) }
    }
}
