//! Smoothing that preserves the size (Taubin, "A signal processing approach to fair surface design", 1995).
//!
//! Each vertex p with neighbours q_i moves by `factor * mean(q_i - p)`. Shrinking and growing steps alternate. A pair
//! of steps multiplies a wave with `mean(q_i - p) = -k p` by `(1 - 0.5 k) (1 + 0.5 k) = 1 - k^2 / 4`, so the overall
//! shape, which has small k, is preserved to second order. Taubin's growing step is longer than the shrinking one,
//! which preserves waves around one k but inflates the whole surface. Small and thin parts have large k and would
//! shrink. Therefore, every few pairs, each closed part is moved along its normals towards its original volume.
//! Vertices on an open boundary have only neighbours along the boundary.

use rayon::slice::ParallelSliceMut;

use super::{
    components::components,
    half_edges::{HalfEdge, edges, half_edges},
};
use crate::{
    data::{
        surface::Surface,
        vec3::{dot, sub, triangle_normal},
    },
    util::{error::Result, memory, parallel},
};

/// The factors of a pair of steps.
const PAIR: [f32; 2] = [0.5, -0.5];

/// Number of pairs of steps between restorations of the volumes, few enough that parts of one voxel keep their shape.
const RESTORED: u32 = 5;
/// Maximum relative error of a restored volume.
const PRECISION: f64 = 1e-4;
/// Maximum number of moves towards the original volume.
const MAX_MOVES: usize = 20;

/// Smooths a surface by `pairs` of steps. Each closed part keeps its volume. Normals, if there are any, are recomputed
/// from the smoothed triangles.
pub fn smooth(surface: &mut Surface, pairs: u32) -> Result<()> {
    if pairs == 0 || surface.triangles.is_empty() {
        return Ok(());
    }
    let neighbours = Neighbours::new(surface)?;
    let volumes = Volumes::new(surface, &neighbours.on_boundary)?;
    for pair in 1..=pairs {
        for factor in PAIR {
            surface.positions = neighbours.step(&surface.positions, factor)?;
        }
        if pair == pairs {
            volumes.restore(surface, MAX_MOVES)?;
        } else if pair % RESTORED == 0 {
            volumes.restore(surface, 1)?;
        }
    }
    if !surface.normals.is_empty() {
        surface.normals = unit_normals(surface)?;
    }
    Ok(())
}

/// Neighbours of each vertex, in compressed sparse rows.
struct Neighbours {
    /// Start of each vertex's row in `all`, followed by the total.
    starts: Vec<u32>,
    all: Vec<u32>,
    on_boundary: Vec<bool>,
}

impl Neighbours {
    fn new(surface: &Surface) -> Result<Self> {
        let half_edges = half_edges(surface)?;
        // From, to, and whether the edge is on the boundary.
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
        Ok(Self { starts, all, on_boundary })
    }

    /// The positions after one smoothing step.
    fn step(&self, before: &[[f32; 3]], factor: f32) -> Result<Vec<[f32; 3]>> {
        parallel::generated(before.len(), |vertex| {
            let (position, neighbours) = (before[vertex], self.around(vertex));
            if neighbours.is_empty() {
                return position;
            }
            let sum = neighbours.iter().fold([0.0f32; 3], |sum, &other| {
                let other = before[other as usize];
                std::array::from_fn(|i| sum[i] + (other[i] - position[i]))
            });
            std::array::from_fn(|i| position[i] + factor * (sum[i] / neighbours.len() as f32))
        })
    }

    fn around(&self, vertex: usize) -> &[u32] {
        &self.all[self.starts[vertex] as usize..self.starts[vertex + 1] as usize]
    }
}

/// The volumes of the closed parts of a surface.
struct Volumes {
    /// The part of each vertex.
    parts: Vec<u32>,
    /// Whether each part is closed.
    closed: Vec<bool>,
    volumes: Vec<f64>,
}

impl Volumes {
    fn new(surface: &Surface, on_boundary: &[bool]) -> Result<Self> {
        let parts = components(surface)?;
        let mut closed = memory::zeros::<bool>(parts.len())?;
        closed.fill(true);
        for (&part, &is_open) in parts.iter().zip(on_boundary) {
            closed[part as usize] &= !is_open;
        }
        let (volumes, _) = measures(surface, &parts)?;
        Ok(Self { parts, closed, volumes })
    }

    /// Moves each closed part along its normals, at most `moves` times, until it encloses its original volume.
    fn restore(&self, surface: &mut Surface, moves: usize) -> Result<()> {
        let mut steps = memory::zeros::<f64>(self.volumes.len())?;
        for _ in 0..moves {
            let (volumes, areas) = measures(surface, &self.parts)?;
            for (part, step) in steps.iter_mut().enumerate() {
                let is_closed = self.closed[part];
                *step = if is_closed {
                    step_to(self.volumes[part], volumes[part], areas[part])
                } else {
                    0.0
                };
            }
            if steps.iter().all(|&step| step == 0.0) {
                break;
            }
            let normals = surface.area_normals::<f64>()?;
            surface.positions = parallel::generated(normals.len(), |vertex| {
                let (position, normal) = (surface.positions[vertex], normals[vertex]);
                let step = steps[self.parts[vertex] as usize];
                let length = dot(normal, normal).sqrt();
                match step != 0.0 && length > 0.0 {
                    true => std::array::from_fn(|i| {
                        (f64::from(position[i]) + step / length * normal[i]) as f32
                    }),
                    false => position,
                }
            })?;
        }
        Ok(())
    }
}

/// The distance that a part moves along its normals towards its original volume. It is exact for a ball and too short
/// for a thin sheet. 0 if the volume is restored or has vanished.
fn step_to(original: f64, volume: f64, area: f64) -> f64 {
    let ratio = original / volume;
    let is_restored = (ratio - 1.0).abs() <= PRECISION;
    let step = 3.0 * volume / area * (ratio.cbrt() - 1.0);
    if is_restored || ratio.is_nan() || ratio <= 0.0 || !step.is_finite() { 0.0 } else { step }
}

/// Volume and area of each part.
fn measures(surface: &Surface, parts: &[u32]) -> Result<(Vec<f64>, Vec<f64>)> {
    let mut volumes = memory::zeros::<f64>(parts.len())?;
    let mut areas = memory::zeros::<f64>(parts.len())?;
    // Summed in order, so that the sums do not depend on the number of threads.
    let each = parallel::mapped(&surface.triangles, |&triangle| {
        let corners = surface.corners::<f64>(triangle);
        let normal = triangle_normal(corners);
        // Tetrahedra from a vertex of the part, since sums from a distant origin would lose digits.
        let apex = surface.positions[parts[triangle[0] as usize] as usize].map(f64::from);
        [dot(sub(corners[0], apex), normal) / 6.0, dot(normal, normal).sqrt() / 2.0]
    })?;
    for (triangle, [volume, area]) in surface.triangles.iter().zip(each) {
        let part = parts[triangle[0] as usize] as usize;
        volumes[part] += volume;
        areas[part] += area;
    }
    Ok((volumes, areas))
}

/// Unit normal of each vertex: the sum of the normals of its triangles, weighted by area.
fn unit_normals(surface: &Surface) -> Result<Vec<[f32; 3]>> {
    let unit = |&sum: &[f64; 3]| {
        let length = dot(sum, sum).sqrt();
        if length > 0.0 { sum.map(|v| (v / length) as f32) } else { [0.0, 0.0, 1.0] }
    };
    parallel::mapped(&surface.area_normals::<f64>()?, unit)
}
