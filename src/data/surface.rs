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

/// A surface, or the part of it in one block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surface {
    /// Position of each vertex.
    pub positions: Vec<[f32; 3]>,
    /// Outward unit normal of each vertex, or empty.
    pub normals: Vec<[f32; 3]>,
    /// sRGB colour of each vertex, or empty.
    pub colors: Vec<[u8; 3]>,
    /// Vertex indices of each triangle, counter-clockwise as seen from outside.
    pub triangles: Vec<[u32; 3]>,
    /// Number of cells that were left out because a corner is NaN.
    pub nan_cells: u64,
}

impl Surface {
    /// Size of the vectors in bytes.
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

    /// Transforms the surface from grid coordinates, in which the box of sample i is from i to i + 1, to those of
    /// `placement`.
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
            // A reflection reverses the order of the corners.
            parallel::update(&mut self.triangles, |[_, b, c]| std::mem::swap(b, c));
        }
    }

    /// Minimum and maximum coordinates; `None` if there are no vertices.
    pub fn bounds(&self) -> Option<[[f32; 3]; 2]> {
        let first = *self.positions.first()?;
        Some(self.positions.iter().fold([first; 2], |[low, high], p| {
            [std::array::from_fn(|i| low[i].min(p[i])), std::array::from_fn(|i| high[i].max(p[i]))]
        }))
    }

    /// Whether two corners of a triangle coincide.
    pub fn is_flat(&self, triangle: [u32; 3]) -> bool {
        let [a, b, c] = self.corners::<f32>(triangle);
        a == b || b == c || c == a
    }

    /// Number of triangles of which two corners coincide, which happens at samples that equal the isovalue.
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

    /// Normal of each vertex before normalization: the sum of the normals of its triangles, each of which is as long as
    /// twice the area.
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
