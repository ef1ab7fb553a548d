//! Connected parts of a surface, found by union-find.

use serde::Serialize;

use super::vertices::drop_unused;
use crate::{
    data::{
        surface::Surface,
        vec3::{dot, sub, triangle_normal},
    },
    util::{error::Result, memory, parallel},
};

/// For each vertex, the lowest vertex that it is connected to.
pub(super) fn components(surface: &Surface) -> Result<Vec<u32>> {
    let mut parents = parallel::generated(surface.positions.len(), |i| i as u32)?;
    for &[a, b, c] in &surface.triangles {
        for (a, b) in [(a, b), (b, c)] {
            let (a, b) = (root(&mut parents, a), root(&mut parents, b));
            parents[a.max(b) as usize] = a.min(b);
        }
    }
    for vertex in 0..parents.len() as u32 {
        parents[vertex as usize] = root(&mut parents, vertex);
    }
    Ok(parents)
}

/// The root of the tree of a vertex. Vertices on the path are attached to their grandparents (path halving).
fn root(parents: &mut [u32], mut vertex: u32) -> u32 {
    while parents[vertex as usize] != vertex {
        let grandparent = parents[parents[vertex as usize] as usize];
        parents[vertex as usize] = grandparent;
        vertex = grandparent;
    }
    vertex
}

/// Conditions that connected parts must meet to be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PartFilter {
    /// Maximum number of parts. Those with the most triangles are kept; of equal ones, the first.
    pub largest: Option<usize>,
    /// Minimum number of triangles.
    pub min_triangles: u32,
    /// Minimum enclosed volume, in cubic units. The volume of a hollow counts as positive.
    pub min_volume: f64,
    /// Drops closed parts whose normals point inwards: the surfaces of hollows.
    pub fill_holes: bool,
}

impl PartFilter {
    /// Whether there are no conditions.
    pub fn keeps_all(&self) -> bool {
        *self == Self::default()
    }
}

/// Drops the connected parts that do not meet the conditions of `kept`.
pub fn keep_parts(surface: &mut Surface, kept: &PartFilter) -> Result<()> {
    let parts = components(surface)?;
    let part = |triangle: &[u32; 3]| parts[triangle[0] as usize] as usize;
    let mut sizes = memory::zeros::<u32>(surface.positions.len())?;
    surface.triangles.iter().for_each(|triangle| sizes[part(triangle)] += 1);
    if kept.min_volume > 0.0 || kept.fill_holes {
        let mut volumes = memory::zeros::<f64>(surface.positions.len())?;
        // Sums of the normals and of their lengths. The normals of a closed part add up to zero.
        let mut normals = memory::zeros::<[f64; 4]>(surface.positions.len())?;
        for triangle in &surface.triangles {
            let corners = surface.corners::<f64>(*triangle);
            // Tetrahedra from a vertex of the part, since sums from a distant origin would lose digits.
            let apex = surface.positions[part(triangle)].map(f64::from);
            let normal = triangle_normal(corners);
            volumes[part(triangle)] += dot(sub(corners[0], apex), normal) / 6.0;
            let sums = &mut normals[part(triangle)];
            let length = dot(normal, normal).sqrt();
            *sums =
                [sums[0] + normal[0], sums[1] + normal[1], sums[2] + normal[2], sums[3] + length];
        }
        for ((size, volume), [x, y, z, area]) in sizes.iter_mut().zip(volumes).zip(normals) {
            let is_closed = [x, y, z].iter().all(|sum| sum.abs() <= 1e-6 * area);
            let is_hole = kept.fill_holes && volume < 0.0 && is_closed;
            *size *= u32::from(volume.abs() >= kept.min_volume && !is_hole);
        }
    }
    sizes.iter_mut().for_each(|size| *size *= u32::from(*size >= kept.min_triangles));
    if let Some(largest) = kept.largest {
        let mut found = memory::collected((0..sizes.len()).filter(|&part| sizes[part] > 0));
        found.sort_by_key(|&part| std::cmp::Reverse(sizes[part]));
        found.iter().skip(largest).for_each(|&part| sizes[part] = 0);
    }
    surface.triangles.retain(|triangle| sizes[part(triangle)] > 0);
    drop_unused(surface)
}
