//! Placement of a volume: the affine map from sample indices to world coordinates.
//!
//! Indices count from 0 and stand for the centres of samples:
//! `world = first + x * steps[0] + y * steps[1] + z * steps[2]`.

use serde::Serialize;

use super::{
    length,
    vec3::{cross, dot, sub},
};

/// Directions of the axes of world coordinates, as in medical formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Space {
    /// x to the patient's right, y to the front (anterior), z up (superior): NIfTI.
    Ras,
    /// x to the left, y to the back (posterior), z up: DICOM, ITK.
    Lps,
    /// x to the left, y to the front, z up.
    Las,
}

impl Space {
    /// Every space.
    pub const ALL: [Self; 3] = [Self::Ras, Self::Lps, Self::Las];

    /// The three letters of the space.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ras => "RAS",
            Self::Lps => "LPS",
            Self::Las => "LAS",
        }
    }

    /// The factor of each axis from this space to RAS, and back.
    fn signs(self) -> [f64; 3] {
        match self {
            Self::Ras => [1.0, 1.0, 1.0],
            Self::Lps => [-1.0, -1.0, 1.0],
            Self::Las => [-1.0, 1.0, 1.0],
        }
    }
}

/// An affine map from sample indices to world coordinates.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// For each axis of the grid, the vector from a sample to the next one.
    pub steps: [[f64; 3]; 3],
    /// The centre of the first sample.
    pub first: [f64; 3],
    /// The directions of the world's axes, if known.
    pub space: Option<Space>,
    /// The symbol of the unit of length, if the file states one: `mm`.
    pub unit: Option<String>,
}

fn norm(v: [f64; 3]) -> f64 {
    dot(v, v).sqrt()
}

impl Placement {
    /// A grid along the world's axes, with the distances `spacing` between samples and the first sample at `first`.
    pub fn axis_aligned(spacing: [f64; 3], first: [f64; 3]) -> Self {
        let mut steps = [[0.0; 3]; 3];
        (0..3).for_each(|axis| steps[axis][axis] = spacing[axis]);
        Self { steps, first, space: None, unit: None }
    }

    /// The spacing alone, along the world's axes in an unknown space, with the first sample at `first`.
    pub fn straightened(&self, first: [f64; 3]) -> Self {
        Self { unit: self.unit.clone(), ..Self::axis_aligned(self.spacing(), first) }
    }

    /// Whether `other` places each corner of a grid of size `dims` within a thousandth of the smallest spacing.
    pub fn is_close(&self, other: &Self, dims: [usize; 3]) -> bool {
        let max = self.spacing().into_iter().fold(f64::INFINITY, f64::min) * 1e-3;
        (0..8).all(|corner| {
            let at = std::array::from_fn(|axis| ((dims[axis] - 1) * (corner >> axis & 1)) as f64);
            norm(sub(self.at(at), other.at(at))) <= max
        })
    }

    /// The same in the space and the unit of `other`, as far as they are known.
    pub fn in_system_of(&self, other: &Self) -> Self {
        let turned = other.space.and_then(|space| self.to(space)).unwrap_or_else(|| self.clone());
        let unit = other.unit.as_deref();
        unit.and_then(|unit| turned.in_nearest_unit(&[unit])).unwrap_or(turned)
    }

    /// Whether every number is finite and the axes span space.
    pub fn is_regular(&self) -> bool {
        let sizes = self.spacing();
        let box_volume = sizes[0] * sizes[1] * sizes[2];
        let finite = self.steps.iter().flatten().chain(&self.first).all(|v| v.is_finite());
        finite && box_volume.is_finite() && self.determinant().abs() > 1e-6 * box_volume
    }

    /// World coordinates of the sample position `at`.
    pub fn at(&self, at: [f64; 3]) -> [f64; 3] {
        let [x, y, z] = self.steps;
        let place = |i: usize| self.first[i] + (at[0] * x[i] + at[1] * y[i] + at[2] * z[i]);
        std::array::from_fn(place)
    }

    /// The inverse of [`at`](Self::at): the sample position of the world coordinates `point`.
    pub fn index_at(&self, point: [f64; 3]) -> [f64; 3] {
        let [x, y, z] = self.steps;
        let (offset, volume) = (sub(point, self.first), self.determinant());
        [cross(y, z), cross(z, x), cross(x, y)].map(|axis| dot(offset, axis) / volume)
    }

    /// The distance between samples along each axis of the grid.
    pub fn spacing(&self) -> [f64; 3] {
        self.steps.map(norm)
    }

    /// A unit vector for each axis of the grid.
    pub fn directions(&self) -> [[f64; 3]; 3] {
        self.steps.map(|step| step.map(|v| v / norm(step)))
    }

    /// The corner of the grid's box at the first sample, half a step along each axis before it.
    pub fn corner(&self) -> [f64; 3] {
        self.at([-0.5; 3])
    }

    /// The volume of a sample's box; negative when the grid is mirrored.
    pub fn determinant(&self) -> f64 {
        let [x, y, z] = self.steps;
        dot(x, cross(y, z))
    }

    /// For each axis of the grid, a vector perpendicular to the two others: the transposed inverse of the map, up to a
    /// positive factor. Normals are transformed by it.
    pub fn normal_axes(&self) -> [[f64; 3]; 3] {
        let [x, y, z] = self.steps;
        let sign = self.determinant().signum();
        [cross(y, z), cross(z, x), cross(x, y)].map(|axis| axis.map(|v| v * sign))
    }

    /// Whether the grid's axes point along the world's, in the same order.
    pub fn is_axis_aligned(&self) -> bool {
        let straight = |axis: usize| {
            (0..3).all(|i| {
                if i == axis { self.steps[axis][i] > 0.0 } else { self.steps[axis][i] == 0.0 }
            })
        };
        (0..3).all(straight)
    }

    /// Whether the placement is more than a spacing and a first sample: the grid is turned, or the world's axes have
    /// anatomical names.
    pub fn has_orientation(&self) -> bool {
        self.space.is_some() || !self.is_axis_aligned()
    }

    /// The same placement in the coordinates of `space`; `None` if its own space is unknown.
    pub fn to(&self, space: Space) -> Option<Self> {
        let (from, to) = (self.space?.signs(), space.signs());
        // A zero keeps its sign.
        let turn =
            |v: [f64; 3]| std::array::from_fn(|i| if from[i] == to[i] { v[i] } else { 0.0 - v[i] });
        Some(Self {
            steps: self.steps.map(turn),
            first: turn(self.first),
            space: Some(space),
            unit: self.unit.clone(),
        })
    }

    /// The same placement with lengths in one of `units`, the [`nearest`](length::nearest) to its own. A placement
    /// without a unit keeps its numbers. `None` if the length of its unit is unknown.
    pub fn in_nearest_unit(&self, units: &[&str]) -> Option<Self> {
        let Some(own) = self.unit.as_deref() else { return Some(self.clone()) };
        let goal = length::nearest(own, units)?;
        let converted = self.converted(|_, v| length::convert(v, own, goal).unwrap_or(v));
        Some(Self { unit: Some(goal.to_owned()), ..converted })
    }

    /// Applies `convert` to each coordinate, with the number of its world axis.
    fn converted(&self, convert: impl Fn(usize, f64) -> f64) -> Self {
        let all = |v: [f64; 3]| std::array::from_fn(|axis| convert(axis, v[axis]));
        Self { steps: self.steps.map(all), first: all(self.first), ..self.clone() }
    }

    /// Sets the unit from the names in the file of the units of the world's axes; `None` for an axis without a unit.
    /// Lengths in several units are converted to that of the first axis that has one. Returns a warning if this is an
    /// assumption.
    pub fn set_units(&mut self, names: [Option<&str>; 3]) -> Option<String> {
        let symbols = names.map(|name| name.and_then(length::symbol));
        let first = symbols.iter().flatten().next()?.clone();
        let others = || symbols.iter().flatten().filter(|symbol| **symbol != first);
        self.unit = Some(first.clone());
        if others().chain([&first]).any(|symbol| !length::is_known(symbol)) && others().count() > 0
        {
            self.unit = None;
            let units: Vec<&str> = symbols.iter().flatten().map(String::as_str).collect();
            return Some(format!(
                "axes have different units ({}) that cannot be converted; ignoring them",
                units.join(", ")
            ));
        }
        *self = self.converted(|axis, v| {
            let own = symbols[axis].as_ref();
            own.and_then(|own| length::convert(v, own, &first)).unwrap_or(v)
        });
        let missing = symbols.iter().position(Option::is_none)?;
        let axis = ["x", "y", "z"][missing];
        Some(format!("unit of the {axis} axis is missing; assuming {first}, as for another axis"))
    }

    /// Direction of each axis of the grid, in letters: `LPS` is towards left, back and up. `None` if the world's axes are
    /// unknown.
    pub fn orientation(&self) -> Option<String> {
        let ras = self.to(Space::Ras)?;
        let letters = [['R', 'L'], ['A', 'P'], ['S', 'I']];
        let mut left = [true; 3];
        let mut name = ['?'; 3];
        // The clearest axis chooses first.
        let mut pairs: Vec<(usize, usize)> = (0..9).map(|i| (i / 3, i % 3)).collect();
        let directions = ras.directions();
        let share = |&(axis, world): &(usize, usize)| directions[axis][world].abs();
        pairs.sort_by(|a, b| share(b).total_cmp(&share(a)));
        for (axis, world) in pairs {
            if left[world] && name[axis] == '?' {
                left[world] = false;
                name[axis] = letters[world][usize::from(directions[axis][world] < 0.0)];
            }
        }
        Some(name.iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turned() -> Placement {
        // x leads up, y to the left, z to the back, in RAS.
        let steps = [[0.0, 0.0, 2.0], [-1.0, 0.0, 0.0], [0.0, -3.0, 0.0]];
        Placement { steps, first: [10.0, 20.0, 30.0], space: Some(Space::Ras), unit: None }
    }

    #[test]
    fn places_and_boxes() {
        let place = turned();
        assert_eq!(place.at([1.0, 2.0, 3.0]), [8.0, 11.0, 32.0]);
        assert_eq!(place.spacing(), [2.0, 1.0, 3.0]);
        assert_eq!(place.corner(), [10.5, 21.5, 29.0]);
        assert_eq!(place.orientation().unwrap(), "SLP");
        assert!(!place.is_axis_aligned() && place.is_regular());
        let straight = Placement::axis_aligned([1.0, 2.0, 3.0], [0.0; 3]);
        assert!(straight.is_axis_aligned() && straight.determinant() == 6.0);
        assert!(!Placement::axis_aligned([1.0, 0.0, 1.0], [0.0; 3]).is_regular());
        assert!(!Placement::axis_aligned([1.0, f64::NAN, 1.0], [0.0; 3]).is_regular());
        assert_eq!(straight.orientation(), None);
    }

    #[test]
    fn spaces_differ_by_signs() {
        let ras = turned();
        let lps = ras.to(Space::Lps).unwrap();
        assert_eq!(lps.at([1.0, 2.0, 3.0]), [-8.0, -11.0, 32.0]);
        assert_eq!(lps.to(Space::Ras).unwrap(), ras);
        assert_eq!(lps.orientation(), ras.orientation());
        assert_eq!(ras.to(Space::Las).unwrap().at([1.0, 2.0, 3.0]), [-8.0, 11.0, 32.0]);
    }

    #[test]
    fn normals_stay_perpendicular() {
        // Sheared and mirrored.
        let steps = [[1.0, 0.5, 0.0], [0.0, -2.0, 0.0], [0.25, 0.0, 3.0]];
        let place = Placement { steps, ..turned() };
        let axes = place.normal_axes();
        for (i, axis) in axes.into_iter().enumerate() {
            for (j, step) in steps.into_iter().enumerate() {
                let product = dot(axis, step);
                assert!(if i == j { product > 0.0 } else { product == 0.0 }, "{i} {j} {product}");
            }
        }
    }
}
