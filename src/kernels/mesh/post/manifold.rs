//! Repairs a surface so that no edge belongs to more than two triangles.

use rayon::slice::ParallelSliceMut;

use super::{
    half_edges::{HalfEdge, edges, half_edges},
    vertices::replace,
};
use crate::{data::surface::Surface, error::Result, memory, parallel};

/// Leaves no edge to more than two triangles, as edge collapses do where the surface is thin: triangles
/// back to back go, and where parts still touch along an edge, its two ends become one vertex.
pub(super) fn repair(surface: &mut Surface) -> Result<()> {
    loop {
        drop_flaps(surface);
        let half_edges = half_edges(surface)?;
        let mut becomes = parallel::generated(surface.positions.len(), |i| i as u32)?;
        let mut touched = memory::zeros::<bool>(becomes.len())?;
        for edge in edges(&half_edges).filter(|edge| edge.len() > 2) {
            let HalfEdge { low, high, .. } = half_edges[edge.start];
            // Edges that share an end with one of this round wait for the next round.
            if !touched[low as usize] && !touched[high as usize] {
                becomes[high as usize] = low;
                (touched[low as usize], touched[high as usize]) = (true, true);
            }
        }
        if !touched.contains(&true) {
            return Ok(());
        }
        replace(surface, &becomes);
    }
}

/// Drops pairs of triangles that have the same vertices and face opposite ways; the others keep their
/// order.
fn drop_flaps(surface: &mut Surface) {
    let mut faces: Vec<([u32; 3], bool, u32)> = (0..)
        .zip(&surface.triangles)
        .map(|(number, &[a, b, c])| {
            let mut sorted = [a, b, c];
            sorted.sort_unstable();
            // Even permutations of the sorted vertices face one way, odd ones the other.
            let [first, second, _] = sorted;
            let even = [(a, b), (b, c), (c, a)].contains(&(first, second));
            (sorted, even, number)
        })
        .collect();
    faces.par_sort_unstable();
    let mut keep = vec![true; faces.len()];
    for same in faces.chunk_by(|one, other| one.0 == other.0) {
        let (odd, even) = same.split_at(same.partition_point(|face| !face.1));
        for (one, other) in odd.iter().zip(even) {
            (keep[one.2 as usize], keep[other.2 as usize]) = (false, false);
        }
    }
    let mut keep = keep.into_iter();
    surface.triangles.retain(|_| keep.next().expect("one a triangle"));
}
