//! Smoothing that keeps the size: Taubin, "A signal processing approach to fair surface design", 1995.
//!
//! Each vertex p with neighbours q_i moves by `factor * mean(q_i - p)`; a shrinking step (0.5) and a
//! growing one (-0.53) take turns. Vertices on an open boundary have their neighbours along it only.

use rayon::slice::ParallelSliceMut;

use super::half_edges::{HalfEdge, edges, half_edges};
use crate::{
    data::{surface::Surface, vec3::dot},
    error::Result,
    memory, parallel,
};

/// The factors of a pair of steps.
const PAIR: [f32; 2] = [0.5, -0.53];

/// Smooths a surface by `pairs` of steps. Normals are then those of the triangles.
///
/// # Errors
/// [`Kind::Failure`](crate::error::Kind::Failure) when there is no memory for the tables.
pub fn smooth(surface: &mut Surface, pairs: u32) -> Result<()> {
    if pairs == 0 || surface.triangles.is_empty() {
        return Ok(());
    }
    let neighbours = Neighbours::of(surface)?;
    for factor in (0..pairs).flat_map(|_| PAIR) {
        let before = &surface.positions;
        surface.positions = parallel::generated(before.len(), |vertex| {
            let (position, neighbours) = (before[vertex], neighbours.of_vertex(vertex));
            if neighbours.is_empty() {
                return position;
            }
            let sum = neighbours.iter().fold([0.0f32; 3], |sum, &other| {
                let other = before[other as usize];
                std::array::from_fn(|i| sum[i] + (other[i] - position[i]))
            });
            std::array::from_fn(|i| position[i] + factor * (sum[i] / neighbours.len() as f32))
        })?;
    }
    if !surface.normals.is_empty() {
        surface.normals = unit_normals(surface)?;
    }
    Ok(())
}

/// Each vertex's neighbours, in compressed rows.
struct Neighbours {
    /// Where each vertex's row begins in `all`; the total behind the last.
    starts: Vec<u32>,
    all: Vec<u32>,
}

impl Neighbours {
    fn of(surface: &Surface) -> Result<Self> {
        let half_edges = half_edges(surface)?;
        // From, to, and whether the edge has one triangle only.
        let mut pairs: Vec<(u32, u32, bool)> = memory::room(2 * half_edges.len())?;
        for edge in edges(&half_edges) {
            let HalfEdge { low, high, .. } = half_edges[edge.start];
            let is_boundary = edge.len() == 1;
            pairs.extend([(low, high, is_boundary), (high, low, is_boundary)]);
        }
        let mut on_boundary = memory::zeros::<bool>(surface.positions.len())?;
        pairs.iter().filter(|pair| pair.2).for_each(|pair| on_boundary[pair.0 as usize] = true);
        pairs.retain(|&(from, _, is_boundary)| is_boundary || !on_boundary[from as usize]);
        pairs.par_sort_unstable();
        let mut starts = memory::zeros::<u32>(surface.positions.len() + 1)?;
        pairs.iter().for_each(|pair| starts[pair.0 as usize + 1] += 1);
        for vertex in 1..starts.len() {
            starts[vertex] += starts[vertex - 1];
        }
        let all = parallel::mapped(&pairs, |pair| pair.1)?;
        Ok(Self { starts, all })
    }

    fn of_vertex(&self, vertex: usize) -> &[u32] {
        &self.all[self.starts[vertex] as usize..self.starts[vertex + 1] as usize]
    }
}

/// A unit vector a vertex: the sum of its triangles' normals, weighted by area.
fn unit_normals(surface: &Surface) -> Result<Vec<[f32; 3]>> {
    let unit = |&sum: &[f64; 3]| {
        let length = dot(sum, sum).sqrt();
        if length > 0.0 { sum.map(|v| (v / length) as f32) } else { [0.0, 0.0, 1.0] }
    };
    parallel::mapped(&surface.area_normals::<f64>()?, unit)
}
