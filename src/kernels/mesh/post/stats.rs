//! Measures of a surface.

use super::{
    components::components,
    half_edges::{edges, half_edges},
};
use crate::{
    data::{
        surface::Surface,
        vec3::{dot, triangle_normal},
    },
    util::{error::Result, memory, parallel::Parallel},
};

/// Measures of a surface.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Stats {
    /// Area of all triangles, in square units.
    pub area: f64,
    /// Enclosed volume, in cubic units. For a surface that is not closed, the flux of x / 3 through it.
    pub volume: f64,
    /// Number of connected parts.
    pub components: u64,
    /// Euler number: vertices - edges + triangles.
    pub euler: i64,
    /// Sum of the genera of all parts; `None` if the surface is not closed.
    pub genus: Option<u64>,
    /// Whether every edge belongs to two triangles, in opposite directions.
    pub closed: bool,
    /// Number of degenerate triangles: those with two corners at the same position.
    pub flat: u64,
}

impl Stats {
    /// Measures `surface`.
    pub fn measure(surface: &Surface) -> Result<Self> {
        let [area, volume] = area_and_volume(surface);
        let [components, vertices] = count_components(surface)?;
        let half_edges = half_edges(surface)?;
        let (mut count, mut closed) = (0, true);
        for edge in edges(&half_edges) {
            count += 1;
            closed &= match &half_edges[edge] {
                [one, other] => one.backwards != other.backwards,
                _ => false,
            };
        }
        let euler = vertices as i64 - count + surface.triangles.len() as i64;
        // Parts that touch at a vertex count as one component, which can make the difference negative.
        let genus = u64::try_from(2 * components as i64 - euler).ok().filter(|_| closed);
        let (genus, flat) = (genus.map(|twice| twice / 2), surface.flat_triangles() as u64);
        Ok(Self { area, volume, components, euler, genus, closed, flat })
    }
}

/// Whether the surface has a boundary: an edge with more triangles in one direction than in the other. Takes no memory:
/// it sums the hashes of all edges, with a sign by direction. The probability of a wrong answer is 2^-64.
pub fn has_boundary(surface: &Surface) -> bool {
    let hash = |from: u32, to: u32| {
        // SplitMix64's mixing function.
        let mut hash = u64::from(from.min(to)) << 32 | u64::from(from.max(to));
        hash = hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^= hash >> 31;
        if from < to { hash } else { hash.wrapping_neg() }
    };
    let hash_triangle =
        |&[a, b, c]: &[u32; 3]| hash(a, b).wrapping_add(hash(b, c)).wrapping_add(hash(c, a));
    let sums = surface
        .triangles
        .chunks(1 << 14)
        .par_map(|triangles| triangles.iter().map(hash_triangle).fold(0, u64::wrapping_add));
    sums.into_iter().fold(0, u64::wrapping_add) != 0
}

/// Area, and volume by the divergence theorem: the sum of tetrahedra from the origin over all triangles.
fn area_and_volume(surface: &Surface) -> [f64; 2] {
    let add = |[area, volume]: [f64; 2], &triangle: &[u32; 3]| {
        let corners = surface.corners::<f64>(triangle);
        let normal = triangle_normal(corners);
        [area + dot(normal, normal).sqrt() / 2.0, volume + dot(corners[0], normal) / 6.0]
    };
    let chunks = surface.triangles.chunks(1 << 12);
    // Chunks of a fixed size are summed in order, so the sums do not depend on the number of threads.
    let sums = chunks.par_map(|chunk| chunk.iter().fold([0.0; 2], add));
    sums.iter().fold([0.0; 2], |sum, part| [sum[0] + part[0], sum[1] + part[1]])
}

/// Number of connected parts, and of used vertices.
fn count_components(surface: &Surface) -> Result<[u64; 2]> {
    let parts = components(surface)?;
    let mut seen = memory::zeros::<[bool; 2]>(surface.positions.len())?;
    for &corner in surface.triangles.as_flattened() {
        seen[corner as usize][0] = true;
        seen[parts[corner as usize] as usize][1] = true;
    }
    let count = |which: usize| seen.iter().filter(|seen| seen[which]).count() as u64;
    Ok([count(1), count(0)])
}
