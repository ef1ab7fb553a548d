//! Normals from the field's gradient.

use std::array::from_fn;

use super::{super::voxel::Voxel, mesher::Mesher};

/// The value, or 0 in place of one below 2^-100: near the least normal number, devices round differently.
fn rounded(value: f32) -> f32 {
    const LEAST: f32 = 1.0 / (1u128 << 100) as f32;
    if value.abs() < LEAST { 0.0 } else { value }
}

const TWO_24: f32 = (1 << 24) as f32;

fn squared_length(v: [f32; 3]) -> f32 {
    let [x, y, z] = v.map(|v| rounded(v * v));
    x + y + z
}

/// The reciprocal of the square root, to about 2 units in the last place, by the operations of the shader: devices round
/// their own square roots and quotients differently.
fn inverse_sqrt(value: f32) -> f32 {
    let half = 0.5 * value;
    let mut result = f32::from_bits(0x5f37_5a86 - (value.to_bits() >> 1));
    for _ in 0..3 {
        result *= 1.5 - half * result * result;
    }
    result
}

impl<T: Voxel> Mesher<'_, T> {
    /// The unit vector down the gradient on the edge along `axis` from a point: central differences at
    /// both ends, interpolated.
    pub(super) fn normal(&self, from: [isize; 3], axis: usize, t: f32) -> [f32; 3] {
        let mut to = from;
        to[axis] += 1;
        let (a, b) = (self.gradient(from), self.gradient(to));
        // To 24 bits after the point: below, shaders may find another one.
        let t = (t * TWO_24) as u32 as f32 / TWO_24;
        let down: [f32; 3] = from_fn(|i| -rounded(a[i] + rounded(rounded(b[i] - a[i]) * t)));
        let squared = squared_length(down);
        // Where both ends' gradients cancel out, only rounding is left.
        let least = rounded(1e-10 * rounded(squared_length(a) + squared_length(b)));
        if squared > least && squared.is_finite() {
            let factor = inverse_sqrt(squared);
            return down.map(|v| rounded(v * factor));
        }
        // A flat or infinite gradient: along the edge, towards its outer end.
        let mut normal = [0.0; 3];
        let inside = self.nearest(from) > self.iso.threshold;
        normal[axis] = if inside { 1.0 } else { -1.0 };
        normal
    }

    fn gradient(&self, point: [isize; 3]) -> [f32; 3] {
        from_fn(|axis| {
            let (mut low, mut high) = (point, point);
            low[axis] -= 1;
            high[axis] += 1;
            let (low, moved_up) = self.grid.clamp(low, axis);
            let (high, moved_down) = self.grid.clamp(high, axis);
            // One step at the volume's border, two elsewhere.
            let part = if moved_up + moved_down > 0 { 1.0 } else { 0.5 };
            let per_step = 1.0 / self.kernel.spacing[axis] as f32;
            rounded(rounded(self.nearest(high) - self.nearest(low)) * (per_step * part))
        })
    }

    /// The field at the sample nearest to `point`.
    fn nearest(&self, point: [isize; 3]) -> f32 {
        let [x, y, z] = [0, 1, 2].map(|axis| self.grid.clamp(point, axis).0[axis]);
        let row = self.grid.sample_row(y, z).expect("clamped");
        self.samples[row + (x - self.grid.pad as isize) as usize].field(&self.iso)
    }
}
