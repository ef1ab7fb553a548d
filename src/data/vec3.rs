//! Vectors of three components, in either precision.

use std::ops::{Add, Mul, Sub};

/// A component: f32 or f64.
pub trait Real:
    Copy + From<f32> + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + bytemuck::Zeroable
{
}

impl Real for f32 {}
impl Real for f64 {}

/// `a - b`.
#[inline]
pub fn sub<T: Real>(a: [T; 3], b: [T; 3]) -> [T; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

/// The scalar product.
#[inline]
pub fn dot<T: Real>(a: [T; 3], b: [T; 3]) -> T {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// The vector product.
#[inline]
pub fn cross<T: Real>(a: [T; 3], b: [T; 3]) -> [T; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// Normal of a triangle that is counter-clockwise as seen from its tip. Its length is twice the area.
#[inline]
pub fn triangle_normal<T: Real>([a, b, c]: [[T; 3]; 3]) -> [T; 3] {
    cross(sub(b, a), sub(c, a))
}

/// The smallest box that contains both boxes.
pub fn union([low, high]: [[f32; 3]; 2], [other_low, other_high]: [[f32; 3]; 2]) -> [[f32; 3]; 2] {
    [
        std::array::from_fn(|i| low[i].min(other_low[i])),
        std::array::from_fn(|i| high[i].max(other_high[i])),
    ]
}
