//! Rotations and their quaternions.

use crate::data::{placement::Placement, vec3::dot};

/// The rows of the rotation by the unit quaternion (a, b, c, d), where `a >= 0` follows from b, c and d.
pub fn rotation([b, c, d]: [f64; 3]) -> [[f64; 3]; 3] {
    let rest = 1.0 - (b * b + c * c + d * d);
    let (a, b, c, d) = match rest < 1e-7 {
        // Half a turn, up to rounding.
        true => {
            let length = (b * b + c * c + d * d).sqrt();
            (0.0, b / length, c / length, d / length)
        }
        false => (rest.sqrt(), b, c, d),
    };
    [
        [a * a + b * b - c * c - d * d, 2.0 * (b * c - a * d), 2.0 * (b * d + a * c)],
        [2.0 * (b * c + a * d), a * a + c * c - b * b - d * d, 2.0 * (c * d - a * b)],
        [2.0 * (b * d - a * c), 2.0 * (c * d + a * b), a * a + d * d - c * c - b * b],
    ]
}

/// The inverse of [`rotation`], for a proper rotation.
pub fn quaternion(rows: [[f64; 3]; 3]) -> [f64; 3] {
    let [[xx, xy, xz], [yx, yy, yz], [zx, zy, zz]] = rows;
    // Four times the squares of the components. Dividing by the largest component is the most precise.
    let squares = [1.0 + xx + yy + zz, 1.0 + xx - yy - zz, 1.0 + yy - xx - zz, 1.0 + zz - xx - yy];
    let largest = (0..4).max_by(|&i, &j| squares[i].total_cmp(&squares[j])).unwrap_or(0);
    let s = 2.0 * squares[largest].max(0.0).sqrt();
    let [a, b, c, d] = match largest {
        0 => [s / 4.0, (zy - yz) / s, (xz - zx) / s, (yx - xy) / s],
        1 => [(zy - yz) / s, s / 4.0, (xy + yx) / s, (xz + zx) / s],
        2 => [(xz - zx) / s, (xy + yx) / s, s / 4.0, (yz + zy) / s],
        _ => [(yx - xy) / s, (xz + zx) / s, (yz + zy) / s, s / 4.0],
    };
    if a < 0.0 { [-b, -c, -d] } else { [b, c, d] }
}

/// The rows of the rotation of a placement, and -1 if its third axis is mirrored, else 1; `None` if its axes are not at
/// right angles.
pub fn placement_rotation(placement: &Placement) -> Option<(f64, [[f64; 3]; 3])> {
    let mut axes = placement.directions();
    for (i, j) in [(0, 1), (0, 2), (1, 2)] {
        if dot(axes[i], axes[j]).abs() > 1e-5 {
            return None;
        }
    }
    let handedness = placement.determinant().signum();
    axes[2] = axes[2].map(|v| v * handedness);
    Some((handedness, std::array::from_fn(|row| axes.map(|axis| axis[row]))))
}
