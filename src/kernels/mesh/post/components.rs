//! Connected parts of a surface, by union-find.

use super::vertices::drop_unused;
use crate::{data::surface::Surface, error::Result, memory, parallel};

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

/// Keeps only the connected part with the most triangles, the first of equals.
///
/// # Errors
/// [`Kind::Failure`](crate::error::Kind::Failure) when there is no memory for the tables.
pub fn keep_largest(surface: &mut Surface) -> Result<()> {
    let parts = components(surface)?;
    let part = |triangle: &[u32; 3]| parts[triangle[0] as usize] as usize;
    let mut sizes = memory::zeros::<u32>(surface.positions.len())?;
    surface.triangles.iter().for_each(|triangle| sizes[part(triangle)] += 1);
    let most = sizes.iter().copied().max().unwrap_or(0);
    let Some(largest) = sizes.iter().position(|&size| size == most) else { return Ok(()) };
    surface.triangles.retain(|triangle| part(triangle) == largest);
    drop_unused(surface)
}
