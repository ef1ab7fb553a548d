//! The planes in which slices lie (PS3.3, C.7.6.2), and the distances of their samples.

use super::{
    attributes::{
        Attributes, BETWEEN, FRAME_TIMES, IMAGER_SPACING, INCREMENT, OFFSETS, ORIENTATION,
        POSITION, SLICE_VECTOR, SPACING, THICKNESS, VOLUME_ORIENTATION, VOLUME_POSITION,
    },
    image::Image,
    mosaic::Mosaic,
};
use crate::data::vec3::{cross, dot};

/// The plane of a slice, in LPS coordinates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plane {
    /// Centre of the first sample, in mm.
    pub first: [f64; 3],
    /// Directions in which rows and columns run, of length 1.
    pub row: [f64; 3],
    pub column: [f64; 3],
}

impl Plane {
    /// The planes of the slices of an image; `None` for slices whose position or orientation is missing.
    pub fn of_slices(image: &Image) -> Vec<Option<Self>> {
        let offsets = frame_offsets(image);
        (0..image.count)
            .map(|slice| {
                let stated = Self::stated(image, slice)?;
                let frame = image.location(slice).0;
                let plane = match &offsets {
                    Some(offsets) => stated.moved(offsets[frame]),
                    None => stated,
                };
                Some(plane.of_tile(image, slice))
            })
            .collect()
    }

    /// The plane that the attributes of a slice state.
    fn stated(image: &Image, slice: usize) -> Option<Self> {
        let first = image
            .find(slice, |all| all.vector(POSITION).or_else(|| all.vector(VOLUME_POSITION)))?;
        let turn: [f64; 6] = image.find(slice, |all| {
            all.vector(ORIENTATION).or_else(|| all.vector(VOLUME_ORIENTATION))
        })?;
        let (row, column) = ([turn[0], turn[1], turn[2]], [turn[3], turn[4], turn[5]]);
        let normal = cross(row, column);
        (dot(normal, normal) > 1e-6).then_some(Self { first, row, column })
    }

    /// Direction `row x column`, of length 1.
    pub fn normal(&self) -> [f64; 3] {
        let normal = cross(self.row, self.column);
        let length = dot(normal, normal).sqrt();
        normal.map(|v| v / length)
    }

    pub fn is_parallel(&self, other: &Self) -> bool {
        let near = |a: [f64; 3], b: [f64; 3]| (0..3).all(|i| (a[i] - b[i]).abs() < 1e-3);
        near(self.row, other.row) && near(self.column, other.column)
    }

    /// The plane `distance` mm along the normal.
    fn moved(&self, distance: f64) -> Self {
        let normal = self.normal();
        let first = std::array::from_fn(|i| self.first[i] + distance * normal[i]);
        Self { first, ..*self }
    }

    /// The plane of a tile, if `self` is that of the mosaic around it. Its position is the corner of a frame of its
    /// size that is centred on a slice: the slice's own corner lies half the size difference inside.
    fn of_tile(&self, image: &Image, slice: usize) -> Self {
        let Some(Mosaic { has_positions: false, side, normal, .. }) = image.mosaic else {
            return *self;
        };
        let Spacing { pixels, slices, .. } = Spacing::new(image, slice);
        let [x, y] =
            [image.format.columns, image.format.rows].map(|n| (n * (side - 1)) as f64 / 2.0);
        let corner =
            |i: usize| self.first[i] + x * pixels[0] * self.row[i] + y * pixels[1] * self.column[i];
        let is_backwards = normal.is_some_and(|normal| dot(normal, self.normal()) < 0.0);
        let step = slices.unwrap_or(1.0) * if is_backwards { -1.0 } else { 1.0 };
        let tile = image.location(slice).1;
        Self { first: std::array::from_fn(corner), ..*self }.moved(tile as f64 * step)
    }
}

/// Offsets along the normal of the frames of a file from its only position: those of RT Dose (Grid Frame Offset Vector,
/// PS3.3, C.8.8.3.2), or equal steps if Spacing Between Slices is stated, which may be negative. Frames of nuclear
/// medicine may name their slices. `None` if each frame has its own position, or frames are times.
fn frame_offsets(image: &Image) -> Option<Vec<f64>> {
    let (top, count) = (&image.data.top, image.frame_count());
    if let Some(offsets) = top.numbers(OFFSETS).filter(|offsets| offsets.len() == count) {
        return Some(offsets.iter().map(|offset| offset - offsets[0]).collect());
    }
    let has_own = |frame: &Attributes| frame.has(POSITION) || frame.has(VOLUME_POSITION);
    let axes = top.numbers(INCREMENT).unwrap_or_default();
    let are_times = axes.iter().any(|axis| FRAME_TIMES.map(f64::from).contains(axis));
    if count < 2 || image.data.frames.iter().any(has_own) || are_times {
        return None;
    }
    let step = image.find(0, |all| all.number(BETWEEN)).filter(|step| step.is_finite());
    let step = step.filter(|&step| step != 0.0)?;
    let slices = top.numbers(SLICE_VECTOR).filter(|slices| slices.len() == count);
    let slice = |frame: usize| slices.map_or(frame as f64, |slices| slices[frame] - slices[0]);
    Some((0..count).map(|frame| slice(frame) * step).collect())
}

/// Distances in mm.
pub struct Spacing {
    /// Between columns and between rows; 1 if they are missing.
    pub pixels: [f64; 2],
    /// Whether these are stated.
    pub is_stated: bool,
    /// Between slices, without sign.
    pub slices: Option<f64>,
}

impl Spacing {
    /// The distances of a slice.
    pub fn new(image: &Image, slice: usize) -> Self {
        let pair = |tag| {
            let found = image.find(slice, |all| all.vector::<2>(tag));
            found.filter(|v| v.iter().all(|&v| v > 0.0))
        };
        let between = |tag| {
            let found = image.find(slice, |all| all.number(tag)).map(f64::abs);
            found.filter(|&v| v.is_finite() && v > 0.0)
        };
        let found = pair(SPACING).or_else(|| pair(IMAGER_SPACING));
        let [rows, columns] = found.unwrap_or([1.0; 2]);
        Self {
            pixels: [columns, rows],
            is_stated: found.is_some(),
            slices: between(BETWEEN).or_else(|| between(THICKNESS)),
        }
    }

    /// Whether the distances of pixels are those of `other`, within 1 %.
    pub fn is_close(&self, other: &Self) -> bool {
        let is_close = |i: usize| {
            let (a, b) = (self.pixels[i], other.pixels[i]);
            (a - b).abs() <= 0.01 * a.max(b)
        };
        is_close(0) && is_close(1)
    }
}
