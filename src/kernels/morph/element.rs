//! Structuring elements: the neighbours over which an erosion takes the minimum.

use std::collections::BTreeMap;

use serde::Serialize;

/// Shape of a structuring element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ElementShape {
    /// All neighbours within the radius along each axis.
    Box,
    /// The neighbours along the axes.
    Cross,
    /// All neighbours within the radius of x, as a Euclidean distance. In images this is a disk.
    Ball,
}

/// A structuring element with a radius along x, y and z; 0 for z in images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// Its shape.
    pub shape: ElementShape,
    /// The radius along each axis.
    pub radius: [usize; 3],
}

/// The rows of an element that have the same length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Number of neighbours along x, before and after the centre.
    pub radius: usize,
    /// Offsets of the centres along y and z.
    pub offsets: Vec<[isize; 2]>,
}

impl Element {
    /// The element without what lies outside of a grid with these dimensions, wherever its centre is.
    pub fn within(self, dims: [usize; 3]) -> Self {
        let clipped = |axis: usize| self.radius[axis].min(dims[axis].saturating_sub(1));
        match self.shape {
            ElementShape::Ball => self,
            _ => Self { radius: std::array::from_fn(clipped), ..self },
        }
    }

    /// The element as rows, those of the longest first.
    pub fn rows(&self) -> Vec<Rows> {
        let [rx, ry, rz] = self.radius.map(|radius| radius as isize);
        let mut rows = BTreeMap::<usize, Vec<[isize; 2]>>::new();
        for (z, y) in (-rz..=rz).flat_map(|z| (-ry..=ry).map(move |y| (z, y))) {
            let radius = match self.shape {
                ElementShape::Box => Some(rx),
                ElementShape::Cross if (y, z) == (0, 0) => Some(rx),
                ElementShape::Cross => (y == 0 || z == 0).then_some(0),
                ElementShape::Ball => (rx * rx - y * y - z * z).checked_isqrt(),
            };
            if let Some(radius) = radius {
                rows.entry(radius as usize).or_default().push([y, z]);
            }
        }
        rows.into_iter().rev().map(|(radius, offsets)| Rows { radius, offsets }).collect()
    }
}
