//! Connected parts of a surface, by union-find.

use super::vertices::drop_unused;
use crate::{
    data::{
        surface::Surface,
        vec3::{dot, sub, triangle_normal},
    },
    error::Result,
    memory, parallel,
};

/// For each vertex, the least vertex that it is connected with.
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

/// The root of a vertex's tree; each vertex on the way moves up to its grandparent (path halving).
fn root(parents: &mut [u32], mut vertex: u32) -> u32 {
    while parents[vertex as usize] != vertex {
        let grandparent = parents[parents[vertex as usize] as usize];
        parents[vertex as usize] = grandparent;
        vertex = grandparent;
    }
    vertex
}

/// Which connected parts are kept: those that all conditions hold for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parts {
    /// At most so many, those with the most triangles, the first of equals.
    pub largest: Option<usize>,
    /// Those of so many triangles at least.
    pub least_triangles: u32,
    /// Those that enclose so much at least, in cubed units; a hollow counts by its size.
    pub least_volume: f64,
}

impl Parts {
    /// Only the largest part.
    pub fn largest() -> Self {
        Self { largest: Some(1), ..Self::default() }
    }

    /// Whether each part is kept.
    pub fn are_all(&self) -> bool {
        *self == Self::default()
    }
}

/// Keeps some of the connected parts.
///
/// # Errors
/// [`Kind::Failure`](crate::error::Kind::Failure) when there is no memory for the tables.
pub fn keep_parts(surface: &mut Surface, kept: &Parts) -> Result<()> {
    let parts = components(surface)?;
    let part = |triangle: &[u32; 3]| parts[triangle[0] as usize] as usize;
    let mut sizes = memory::zeros::<u32>(surface.positions.len())?;
    surface.triangles.iter().for_each(|triangle| sizes[part(triangle)] += 1);
    if kept.least_volume > 0.0 {
        let mut volumes = memory::zeros::<f64>(surface.positions.len())?;
        for triangle in &surface.triangles {
            let corners = surface.corners::<f64>(*triangle);
            // From a corner of the part: far from the origin, the sum would lose digits.
            let apex = surface.positions[part(triangle)].map(f64::from);
            let height = dot(sub(corners[0], apex), triangle_normal(corners));
            volumes[part(triangle)] += height / 6.0;
        }
        for (size, volume) in sizes.iter_mut().zip(volumes) {
            *size *= u32::from(volume.abs() >= kept.least_volume);
        }
    }
    sizes.iter_mut().for_each(|size| *size *= u32::from(*size >= kept.least_triangles));
    if let Some(largest) = kept.largest {
        let mut found: Vec<usize> = (0..sizes.len()).filter(|&part| sizes[part] > 0).collect();
        found.sort_by_key(|&part| std::cmp::Reverse(sizes[part]));
        found.iter().skip(largest).for_each(|&part| sizes[part] = 0);
    }
    surface.triangles.retain(|triangle| sizes[part(triangle)] > 0);
    drop_unused(surface)
}
