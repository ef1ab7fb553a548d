//! Normals from the field's gradient.

use super::{super::voxel::Voxel, mesher::Mesher};
use crate::data::vec3::dot;

impl<T: Voxel> Mesher<'_, T> {
    /// The unit vector down the gradient on the edge along `axis` from a point: central differences at
    /// both ends, interpolated.
    pub(super) fn normal(&self, from: [isize; 3], axis: usize, t: f32) -> [f32; 3] {
        let mut to = from;
        to[axis] += 1;
        let (a, b) = (self.gradient(from), self.gradient(to));
        let down: [f32; 3] = std::array::from_fn(|i| -(a[i] + (b[i] - a[i]) * t));
        let length = dot(down, down);
        // Where both ends' gradients cancel out, only rounding is left, which differs between devices.
        let is_normal = length >= f32::MIN_POSITIVE && length.is_finite();
        if is_normal && length > 1e-10 * (dot(a, a) + dot(b, b)) {
            let length = length.sqrt();
            return down.map(|v| v / length);
        }
        // A flat or infinite gradient: along the edge, towards its outer end.
        let mut normal = [0.0; 3];
        let inside = self.nearest(from) > self.iso.threshold;
        normal[axis] = if inside { 1.0 } else { -1.0 };
        normal
    }

    fn gradient(&self, point: [isize; 3]) -> [f32; 3] {
        std::array::from_fn(|axis| {
            let (mut low, mut high) = (point, point);
            low[axis] -= 1;
            high[axis] += 1;
            let (low, moved_up) = self.grid.clamp(low, axis);
            let (high, moved_down) = self.grid.clamp(high, axis);
            // One step at the volume's border, two elsewhere.
            let steps = (2 - moved_up - moved_down).max(1) as f32;
            (self.nearest(high) - self.nearest(low)) / (steps * self.kernel.spacing[axis] as f32)
        })
    }

    /// The field at the sample nearest to `point`.
    fn nearest(&self, point: [isize; 3]) -> f32 {
        let [x, y, z] = [0, 1, 2].map(|axis| self.grid.clamp(point, axis).0[axis]);
        let row = self.grid.sample_row(y, z).expect("clamped");
        self.samples[row + (x - self.grid.pad as isize) as usize].field(&self.iso)
    }
}
