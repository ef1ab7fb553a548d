//! Error quadrics: sums of squared distances to planes (Garland and Heckbert, "Surface simplification using quadric
//! error metrics", 1997).

use std::slice;

use crate::{
    data::vec3::{cross, dot, sub},
    util::cache,
};

/// A sum of weighted squared distances to planes, as a function of the offset d from its vertex:
/// `E(d) = d A d + 2 b d + c`.
///
/// With the vertex as the origin, b and c are as small as the errors, so f32 is precise enough.
#[derive(Clone, Copy, Debug, Default, bytemuck::Zeroable)]
pub(super) struct Quadric {
    /// A: xx, xy, xz, yy, yz, zz.
    a: [f32; 6],
    b: [f32; 3],
    c: f32,
    pub(super) weight: f32,
}

impl Quadric {
    /// Weighted mean of the squared distances of the vertex to the planes.
    pub(super) fn mean(&self) -> f64 {
        if self.weight > 0.0 { f64::from(self.c) / f64::from(self.weight) } else { 0.0 }
    }

    /// Prefetches both cache lines that the quadric may lie in.
    #[inline]
    pub(super) fn prefetch(&self) {
        cache::prefetch(&self.a[..1]);
        cache::prefetch(slice::from_ref(&self.weight));
    }

    /// Adds the planes of another quadric of the same vertex.
    pub(super) fn add(&mut self, other: &Self) {
        (0..6).for_each(|i| self.a[i] += other.a[i]);
        (0..3).for_each(|i| self.b[i] += other.b[i]);
        self.c += other.c;
        self.weight += other.weight;
    }
}

/// A sum of [`Quadric`]s in f64, relative to an origin that the caller chooses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    a: [f64; 6],
    b: [f64; 3],
    c: f64,
    pub(super) weight: f64,
}

/// Pull of the best position towards the middle of the edge, as a share of the trace of A that is added to the diagonal
/// of A. The second share is used if the position is too far away with the first. If A is singular, as on a plane or
/// along a straight crease, only the pull determines the position.
const PULLS: [f64; 2] = [2e-4, 2e-2];

impl Sum {
    /// Adds the plane through the origin with this unit normal.
    #[inline]
    fn add_plane(&mut self, normal: [f64; 3], weight: f64) {
        let [x, y, z] = normal;
        let products = [x * x, x * y, x * z, y * y, y * z, z * z];
        (0..6).for_each(|i| self.a[i] += weight * products[i]);
    }

    /// Adds the plane of a triangle with a corner at the origin, weighted by a third of its area plus `more`. The
    /// length of `normal` is twice the area.
    pub(super) fn add_triangle(&mut self, normal: [f64; 3], more: f64) {
        let length = dot(normal, normal).sqrt();
        if length > 0.0 {
            let weight = length / 6.0 + more;
            self.add_plane(normal.map(|v| v / length), weight);
            self.weight += weight;
        }
    }

    /// Adds the plane through a boundary edge from the origin, perpendicular to its triangle, whose normal is `normal`.
    pub(super) fn add_boundary(&mut self, edge: [f64; 3], normal: [f64; 3]) {
        let across = cross(edge, normal);
        let length = dot(across, across).sqrt();
        if length > 0.0 {
            self.add_plane(across.map(|v| v / length), dot(edge, edge));
        }
    }

    /// Adds a quadric whose vertex is at `from`. The origin of this sum is `to`.
    #[inline]
    pub(super) fn add(&mut self, quadric: &Quadric, from: [f32; 3], to: [f64; 3]) {
        let d = sub(to, from.map(f64::from));
        let a = quadric.a.map(f64::from);
        let b = quadric.b.map(f64::from);
        let ad = product(a, d);
        self.a.iter_mut().zip(a).for_each(|(sum, more)| *sum += more);
        for i in 0..3 {
            self.b[i] += b[i] + ad[i];
        }
        self.c += f64::from(quadric.c) + 2.0 * dot(b, d) + dot(d, ad);
        self.weight += f64::from(quadric.weight);
    }

    /// The error at the offset `d` from the origin.
    #[inline]
    pub(super) fn error(&self, d: [f64; 3]) -> f64 {
        self.c + 2.0 * dot(self.b, d) + dot(d, product(self.a, d))
    }

    /// The offset of the minimum error with one of the [`PULLS`] towards the origin, which grow with the trace of A up
    /// to `steady`. It is at most `max` long.
    #[inline]
    pub(super) fn best(&self, max: f64, steady: f64) -> [f64; 3] {
        let mut position = [0.0; 3];
        for pull in PULLS {
            let Some(best) = self.best_pulled(pull, steady) else { return [0.0; 3] };
            position = best;
            if dot(best, best) <= max * max {
                return position;
            }
        }
        let fraction = max / dot(position, position).sqrt();
        position.map(|v| fraction * v)
    }

    #[inline]
    fn best_pulled(&self, pull: f64, steady: f64) -> Option<[f64; 3]> {
        let (adjugate, determinant) = self.adjugate(pull, steady);
        let position = product(adjugate, self.b).map(|v| -v / determinant);
        position.iter().all(|v| v.is_finite()).then_some(position)
    }

    /// The step `s` with `dot(s, normal) == distance` that raises the error least, with the stronger of the [`PULLS`].
    /// It is at most `max` long. Zero if `normal` is zero.
    #[inline]
    pub(super) fn step_along(
        &self,
        normal: [f64; 3],
        distance: f64,
        max: f64,
        steady: f64,
    ) -> [f64; 3] {
        let (adjugate, _) = self.adjugate(PULLS[1], steady);
        let step = product(adjugate, normal);
        let factor = distance / dot(step, normal);
        let longest = max / dot(step, step).sqrt();
        match factor.is_finite() && longest.is_finite() {
            true => step.map(|v| factor.clamp(-longest, longest) * v),
            false => [0.0; 3],
        }
    }

    /// Adjugate and determinant of A with a [pull](PULLS).
    #[inline]
    fn adjugate(&self, pull: f64, steady: f64) -> ([f64; 6], f64) {
        let [xx, xy, xz, yy, yz, zz] = self.a;
        let pull = pull * (xx + yy + zz).min(steady);
        let (xx, yy, zz) = (xx + pull, yy + pull, zz + pull);
        let [cxx, cxy, cxz] = [yy * zz - yz * yz, xz * yz - xy * zz, xy * yz - xz * yy];
        let [cyy, cyz, czz] = [xx * zz - xz * xz, xy * xz - xx * yz, xx * yy - xy * xy];
        ([cxx, cxy, cxz, cyy, cyz, czz], xx * cxx + xy * cxy + xz * cxz)
    }

    /// The t from 0 to 1 with the minimum error at the offset `t * direction`.
    #[inline]
    pub(super) fn best_along(&self, direction: [f64; 3]) -> f64 {
        let fraction = -dot(self.b, direction) / dot(direction, product(self.a, direction));
        if fraction.is_finite() { fraction.clamp(0.0, 1.0) } else { 0.5 }
    }

    /// The quadric of a vertex at the offset `d` from the origin.
    #[inline]
    pub(super) fn moved(&self, d: [f64; 3]) -> Quadric {
        let ad = product(self.a, d);
        Quadric {
            a: self.a.map(|v| v as f32),
            b: std::array::from_fn(|i| (self.b[i] + ad[i]) as f32),
            c: self.error(d).max(0.0) as f32,
            weight: self.weight as f32,
        }
    }
}

/// The product of a symmetric matrix and a vector.
#[inline]
fn product([xx, xy, xz, yy, yz, zz]: [f64; 6], [x, y, z]: [f64; 3]) -> [f64; 3] {
    [xx * x + xy * y + xz * z, xy * x + yy * y + yz * z, xz * x + yz * y + zz * z]
}
