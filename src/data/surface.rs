//! A triangle mesh.

use super::{
    placement::Placement,
    vec3::{Real, dot, triangle_normal},
};
use crate::util::{
    error::Result,
    memory,
    parallel::{self, Parallel},
};

/// A surface, or the part of one that a slab contributes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surface {
    /// One per vertex.
    pub positions: Vec<[f32; 3]>,
    /// Unit vectors from inside to outside, one per vertex, or none at all.
    pub normals: Vec<[f32; 3]>,
    /// Red, green and blue in sRGB, one per vertex, or none at all.
    pub colors: Vec<[u8; 3]>,
    /// Three vertex numbers each, counter-clockwise as seen from outside.
    pub triangles: Vec<[u32; 3]>,
    /// Cells that were left out because a corner is not a number.
    pub nan_cells: u64,
}

impl Surface {
    /// Bytes of its vectors.
    pub fn bytes(&self) -> u64 {
        let Self { positions, normals, colors, triangles, .. } = self;
        12 * (positions.len() + normals.len() + triangles.len()) as u64 + 3 * colors.len() as u64
    }

    /// Multiplies all positions by `factor`.
    pub fn scale(&mut self, factor: f64) {
        let scaled = |v: f32| (f64::from(v) * factor) as f32;
        parallel::update(&mut self.positions, |position| *position = position.map(scaled));
    }

    /// Adds the next part of the same surface, whose triangles already number the vertices of the whole.
    ///
    /// # Errors
    /// [`Kind::Failure`](crate::util::error::Kind::Failure) when there is no memory for it.
    pub fn append(&mut self, mut next: Self) -> Result<()> {
        if self.positions.is_empty() && self.triangles.is_empty() {
            next.nan_cells += self.nan_cells;
            *self = next;
            return Ok(());
        }
        memory::append(&mut self.positions, &mut next.positions)?;
        memory::append(&mut self.normals, &mut next.normals)?;
        memory::append(&mut self.colors, &mut next.colors)?;
        memory::append(&mut self.triangles, &mut next.triangles)?;
        self.nan_cells += next.nan_cells;
        Ok(())
    }

    /// Moves the surface from the grid, where the box of sample i is from i to i + 1, to where `placement` puts its
    /// samples.
    pub fn place(&mut self, placement: &Placement) {
        parallel::update(&mut self.positions, |p| {
            *p = placement.at(p.map(|v| f64::from(v) - 0.5)).map(|v| v as f32);
        });
        let axes = placement.normal_axes();
        parallel::update(&mut self.normals, |normal| {
            let turned: [f64; 3] = std::array::from_fn(|i| {
                (0..3).map(|axis| f64::from(normal[axis]) * axes[axis][i]).sum()
            });
            let length = dot(turned, turned).sqrt();
            if length > 0.0 {
                *normal = turned.map(|v| (v / length) as f32);
            }
        });
        if placement.determinant() < 0.0 {
            // A mirror turns the corners' order around.
            parallel::update(&mut self.triangles, |[_, b, c]| std::mem::swap(b, c));
        }
    }

    /// The least and the greatest coordinates, unless there is no vertex.
    pub fn bounds(&self) -> Option<[[f32; 3]; 2]> {
        let first = *self.positions.first()?;
        Some(self.positions.iter().fold([first; 2], |[low, high], p| {
            [std::array::from_fn(|i| low[i].min(p[i])), std::array::from_fn(|i| high[i].max(p[i]))]
        }))
    }

    /// Whether two corners of a triangle are at one place.
    pub fn is_flat(&self, triangle: [u32; 3]) -> bool {
        let [a, b, c] = self.corners::<f32>(triangle);
        a == b || b == c || c == a
    }

    /// How many triangles have two corners at one place, as samples that equal the isovalue make them.
    pub fn flat_triangles(&self) -> usize {
        let count = |triangles: &[[u32; 3]]| {
            triangles.iter().filter(|triangle| self.is_flat(**triangle)).count()
        };
        self.triangles.chunks(1 << 14).par_map(count).iter().sum()
    }

    /// The positions of a triangle's corners.
    pub fn corners<T: Real>(&self, triangle: [u32; 3]) -> [[T; 3]; 3] {
        triangle.map(|i| self.positions[i as usize].map(T::from))
    }

    /// For each vertex, the sum of the normals of its triangles, each as long as twice the triangle's
    /// area: a vertex normal that is still to be normalized.
    ///
    /// # Errors
    /// [`Kind::Failure`](crate::util::error::Kind::Failure) when there is no memory for them.
    pub fn area_normals<T: Real>(&self) -> Result<Vec<[T; 3]>> {
        let mut sums = memory::zeros::<[T; 3]>(self.positions.len())?;
        for &triangle in &self.triangles {
            let normal = triangle_normal(self.corners::<T>(triangle));
            for corner in triangle {
                let sum = &mut sums[corner as usize];
                *sum = [sum[0] + normal[0], sum[1] + normal[1], sum[2] + normal[2]];
            }
        }
        Ok(sums)
    }
}
