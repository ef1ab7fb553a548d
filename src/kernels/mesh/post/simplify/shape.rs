//! Limits on the change of a triangle by a collapse.

use crate::data::vec3::{dot, sub, triangle_normal};

/// Minimum cosine of the angle by which a triangle may turn.
const MIN_COSINE: f64 = 0.3;
/// Minimum cosine of the angle between a triangle and the original triangles that its corners represent.
const MIN_EXPECTED: f64 = 0.3;
/// Minimum cosine of the angle between a triangle and its neighbour, at the sharpest fold.
const MIN_FOLD: f64 = -0.7;
/// Minimum ratio of twice a triangle's area to its longest side squared.
const MIN_QUALITY: f64 = 1e-3;

/// A triangle with one corner that moves.
pub(super) struct Shape {
    /// The moving corner before and after.
    pub(super) before: [f64; 3],
    pub(super) after: [f64; 3],
    /// The other two corners.
    pub(super) side: [[f64; 3]; 2],
    /// The sum of the original normals that its corners represent. Many small rotations cannot reverse it. Zero if it
    /// does not matter.
    pub(super) expected: [f64; 3],
}

impl Shape {
    /// Whether the triangle keeps its orientation and its area and does not fold onto the neighbour at its fixed side,
    /// whose third corner is `beyond`. A triangle that already violates a limit may do so if it does not get worse.
    #[inline]
    pub(super) fn is_kept(&self, beyond: impl FnOnce() -> Option<[f64; 3]>) -> bool {
        let [b, c] = self.side;
        let old = Normal::new([self.before, b, c]);
        let new = Normal::new([self.after, b, c]);
        if dot(old.normal, new.normal) < MIN_COSINE * old.length * new.length {
            return false;
        }
        let agrees = |normal: &Normal| dot(self.expected, normal.normal);
        let expected = dot(self.expected, self.expected).sqrt();
        if agrees(&new) < MIN_EXPECTED * expected * new.length
            && agrees(&new) * old.length < agrees(&old) * new.length
        {
            return false;
        }
        let longest = |tip: [f64; 3]| {
            [sub(c, b), sub(b, tip), sub(c, tip)]
                .map(|side| dot(side, side))
                .into_iter()
                .fold(0.0, f64::max)
        };
        let after = longest(self.after);
        if new.length <= MIN_QUALITY * after
            && new.length * longest(self.before) < old.length * after
        {
            return false;
        }
        let Some(tip) = beyond() else { return true };
        let other = Normal::new([c, b, tip]);
        let is_folded = |normal: &Normal| {
            dot(normal.normal, other.normal) < MIN_FOLD * normal.length * other.length
        };
        !is_folded(&new) || is_folded(&old)
    }
}

/// The normal of a triangle, twice as long as its area.
struct Normal {
    normal: [f64; 3],
    length: f64,
}

impl Normal {
    #[inline]
    fn new(corners: [[f64; 3]; 3]) -> Self {
        let normal = triangle_normal(corners);
        Self { normal, length: dot(normal, normal).sqrt() }
    }
}
