//! Decides the variant of an ambiguous cell by the signs of polynomials of its corners, in exact integers.
//!
//! ```text
//!   D --- C     d      a corner's distance from the isovalue, positive inside
//!   |     |     on a face whose corners alternate, the bilinear field joins A and C, where these are inside, when
//!   A --- B     A C > B D   (the asymptotic decider, Nielson and Hamann 1991)
//! ```
//! For two opposite faces, let q0 = A C - B D, q1 = A' C' - B' D' and m = A C' + A' C - B D' - B' D. The slice at
//! height w between them, from 0 to 1, has
//!
//! ```text
//! q(w) = q0 (1 - w)^2 + m w (1 - w) + q1 w^2
//! ```
//! which is 0 where its hyperbola degenerates: at the saddles of the height function w on the surface. Both saddles lie
//! in the cell if q0 and q1 have the same sign, m has the other sign, and m^2 > 4 q0 q1. If this holds along all three
//! axes, a tunnel joins the regions in opposite corners of the cell. (By Morse theory, each saddle lowers the surface's
//! Euler number by one. The six slices are those of Grosso's inner hexagon, 2016. m^2 - 4 q0 q1 is the hyperdeterminant
//! of the corners, the same along each axis. Chernyaev 1995 and Lewiner 2003 tested a single slice, which Custodio 2013
//! found wrong.)
//!
//! **Ties.** A sample equal to the isovalue is outside, so the surface lies slightly above the isovalue: every d is
//! reduced by an infinitesimal e. Each number is then a polynomial in e; its sign is that of its first nonzero
//! coefficient.
//!
//! **Exactness.** Distances are f32. They are converted to 24-bit integers, in units of the 24th bit of the largest
//! distance of the face, or of the cell for tunnels. This is exact for 8-bit and 16-bit samples and integer isovalues.
//! Otherwise, distances much smaller than the largest one are rounded, in the same way in both cells of a face.

use super::{
    table::FACES,
    variants::{VARIANTS, Variant},
};

/// The variant of a cell, or `None` if the case is unambiguous. Corner i is inside if `case` has bit i. `distances` are
/// the bits of the f32 distances of the corners from the isovalue.
pub(super) fn variant(case: u8, distances: &[u32; 8]) -> Option<&'static Variant> {
    let number = usize::from(case);
    let (first, end) = (VARIANTS.first[number].into(), VARIANTS.first[number + 1].into());
    let variants: &[Variant] = &VARIANTS.all[first..end];
    let (mut choice, mut bit) = (0, 1);
    for (face, corners) in FACES.iter().enumerate() {
        if VARIANTS.faces[number] >> face & 1 == 1 {
            choice += if joins_inside(case, corners, distances) { bit } else { 0 };
            bit *= 2;
        }
    }
    let plain = variants.get(choice)?;
    let tunnel = match plain.tunnels {
        0 => None,
        several => Tunnel::find(case, distances).map(|tunnel| match (several, tunnel) {
            (2, Tunnel { is_inside: false }) => 1,
            _ => 0,
        }),
    };
    Some(tunnel.map_or(plain, |tunnel| &variants[usize::from(plain.tunnel) + tunnel]))
}

/// Signed distances of corners as integers, in units of the 24th bit of the largest.
fn integers<const N: usize>(case: u8, corners: [u8; N], distances: &[u32; 8]) -> [i64; N] {
    let exponent = |corner: u8| distances[usize::from(corner)] >> 23;
    let largest = corners.map(exponent).into_iter().max().unwrap_or(0);
    corners.map(|corner| {
        let (bits, exponent) = (distances[usize::from(corner)], exponent(corner));
        let whole = if exponent == 0 { 0 } else { bits & 0x7f_ffff | 0x80_0000 };
        let units = i64::from(whole.checked_shr(largest - exponent).unwrap_or(0));
        // An inside corner lies above the isovalue, so it has at least one unit.
        if case >> corner & 1 == 1 { units.max(1) } else { -units }
    })
}

/// Whether the inside corners of an alternating face are joined on it. In a tie they are not: the surface lies slightly
/// above the isovalue.
fn joins_inside(case: u8, face: &[u8; 4], distances: &[u32; 8]) -> bool {
    let [a, b, c, d] = integers(case, *face, distances);
    let more = a * c - b * d;
    if a > 0 { more > 0 } else { more < 0 }
}

/// A tunnel through a cell. It joins inside corners or outside corners.
struct Tunnel {
    is_inside: bool,
}

/// Corners of the two opposite faces along each axis. Corners at the same index share an edge.
const SLICES: [[[u8; 4]; 2]; 3] =
    [[[0, 1, 2, 3], [4, 5, 6, 7]], [[0, 4, 5, 1], [3, 7, 6, 2]], [[0, 3, 7, 4], [1, 2, 6, 5]]];

impl Tunnel {
    fn find(case: u8, distances: &[u32; 8]) -> Option<Self> {
        let corners = integers(case, [0, 1, 2, 3, 4, 5, 6, 7], distances).map(i128::from);
        let slices = SLICES.map(|slice| Slices::new(&corners, slice));
        let [slice, ..] = &slices;
        let is_here = slices.iter().all(Slices::has_turn) && slice.discriminant() > 0;
        is_here.then(|| Self { is_inside: slice.joined() > 0 })
    }
}

/// Coefficients of the slices between two faces. Each number comes with its coefficient of -e.
struct Slices {
    /// First corner of both faces.
    a: [i128; 2],
    q: [[i128; 2]; 2],
    m: [i128; 2],
}

impl Slices {
    fn new(corners: &[i128; 8], slice: [[u8; 4]; 2]) -> Self {
        let [[a, b, c, d], [a1, b1, c1, d1]] =
            slice.map(|face| face.map(|corner| corners[usize::from(corner)]));
        let sums = [a + c - b - d, a1 + c1 - b1 - d1];
        Self {
            a: [a, a1],
            q: [[a * c - b * d, sums[0]], [a1 * c1 - b1 * d1, sums[1]]],
            m: [a * c1 + a1 * c - b * d1 - b1 * d, sums[0] + sums[1]],
        }
    }

    /// Whether q has the same sign at both ends and m the other, so that q may change its sign in between.
    fn has_turn(&self) -> bool {
        let sign = |[value, slope]: [i128; 2]| if value == 0 { -slope } else { value }.signum();
        let signs = self.q.map(sign);
        signs[0] == signs[1] && signs[0] != 0 && sign(self.m) == -signs[0]
    }

    /// The sign of m^2 - 4 q0 q1.
    fn discriminant(&self) -> i128 {
        let Self { q: [[q0, s0], [q1, s1]], m: [m, s], .. } = *self;
        match (m * m - 4 * q0 * q1, 4 * (q0 * s1 + q1 * s0) - 2 * m * s) {
            (0, 0) => (s0 - s1) * (s0 - s1),
            (0, slope) => slope,
            (value, _) => value,
        }
    }

    /// Positive if the slices between the saddles join inside corners: the sign of A and C there if q joins these, else
    /// that of B and D. The extremum of q is at w = (m - 2 q0) / (2 m - 2 q0 - 2 q1), where A is
    ///
    /// ```text
    /// A(w) = (A (m - 2 q1) + A' (m - 2 q0)) / (2 m - 2 q0 - 2 q1)
    /// ```
    /// The sign of the divisor, which is that of m, does not change which corners are joined, so only the dividend
    /// counts.
    fn joined(&self) -> i128 {
        let Self { a: [a, a1], q: [[q0, s0], [q1, s1]], m: [m, _] } = *self;
        match a * (m - 2 * q1) + a1 * (m - 2 * q0) {
            0 => (a - a1) * (s1 - s0) - 2 * (m - q0 - q1),
            value => value,
        }
    }
}
