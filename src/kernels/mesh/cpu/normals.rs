//! Normals from the gradient of the field.

use super::{super::voxel::Voxel, mesher::Mesher};
use crate::data::vec3::dot;

const TWO_24: f32 = (1 << 24) as f32;

/// The value, or 0 if it is below 2^-40.
#[inline(always)]
fn flush_tiny(value: f32) -> f32 {
    const MIN: f32 = 1.0 / (1u64 << 40) as f32;
    if value.abs() < MIN { 0.0 } else { value }
}

/// Power of two that scales the largest component of both vectors to between 1 and 2. `None` for vectors so small or
/// large that devices would differ, and for infinite ones.
#[inline(always)]
fn scale(a: [f32; 3], b: [f32; 3]) -> Option<f32> {
    let mut max = 0;
    for axis in 0..3 {
        max = max.max(a[axis].to_bits() << 1).max(b[axis].to_bits() << 1);
    }
    let exponent = max >> 24;
    (47..=207).contains(&exponent).then(|| f32::from_bits((254 - exponent) << 23))
}

/// Reciprocal square root to about 2 units in the last place, by Newton's method as in the shader: the built-in square
/// roots and divisions of devices round differently.
#[inline(always)]
fn inverse_sqrt(value: f32) -> f32 {
    let half = 0.5 * value;
    let mut result = f32::from_bits(0x5f37_5a86 - (value.to_bits() >> 1));
    for _ in 0..3 {
        result *= 1.5 - half * result * result;
    }
    result
}

impl<T: Voxel> Mesher<'_, T> {
    /// Unit vector opposite to the gradient at position `t` of the edge along `axis` from a point: central differences
    /// at both ends, interpolated.
    pub(super) fn normal(&self, from: [isize; 3], axis: usize, t: f32) -> [f32; 3] {
        let mut to = from;
        to[axis] += 1;
        let (mut a, mut b) = (self.gradient(from), self.gradient(to));
        if let Some(scale) = scale(a, b) {
            // Rounded down to a multiple of 2^-24, as in the shader, which may compute smaller crossings differently.
            let t = (t * TWO_24) as u32 as f32 / TWO_24;
            let mut down = [0.0; 3];
            for axis in 0..3 {
                (a[axis], b[axis]) = (flush_tiny(a[axis] * scale), flush_tiny(b[axis] * scale));
                down[axis] = -(a[axis] + (b[axis] - a[axis]) * t);
            }
            let squared = dot(down, down);
            // Where the gradients of both ends cancel out, only rounding errors are left.
            if squared > 1e-10 * (dot(a, a) + dot(b, b)) {
                let factor = inverse_sqrt(squared);
                down.iter_mut().for_each(|v| *v = flush_tiny(*v * factor));
                return down;
            }
        }
        // The gradient is zero or infinite: the normal runs along the edge, towards its outer end.
        let mut normal = [0.0; 3];
        let inside = self.nearest(from) > self.iso.threshold;
        normal[axis] = if inside { 1.0 } else { -1.0 };
        normal
    }

    #[inline(always)]
    fn gradient(&self, point: [isize; 3]) -> [f32; 3] {
        let mut gradient = [0.0; 3];
        for axis in 0..3 {
            let (mut low, mut high) = (point, point);
            low[axis] = self.grid.clamp(point[axis] - 1, axis);
            high[axis] = self.grid.clamp(point[axis] + 1, axis);
            // The samples are one step apart at the volume's border, two elsewhere.
            let is_border = low[axis] != point[axis] - 1 || high[axis] != point[axis] + 1;
            let steps = if is_border { 1.0 } else { 0.5 };
            let per_step = 1.0 / self.kernel.spacing[axis] as f32;
            gradient[axis] = (self.nearest(high) - self.nearest(low)) * (per_step * steps);
        }
        gradient
    }

    /// The field at the sample nearest to `point`.
    #[inline(always)]
    fn nearest(&self, point: [isize; 3]) -> f32 {
        let [x, y, z] = point;
        let (x, y, z) = (self.grid.clamp(x, 0), self.grid.clamp(y, 1), self.grid.clamp(z, 2));
        let row = self.grid.sample_row(y, z).expect("clamped");
        self.samples[row + (x - self.grid.pad as isize) as usize].field(&self.iso)
    }
}
