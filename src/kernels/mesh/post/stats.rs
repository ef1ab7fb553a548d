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
    /// Area of all triangles, in squared units of the spacing.
    pub area: f64,
    /// Volume enclosed, in cubed units; of a surface that is not closed, the flux through it.
    pub volume: f64,
    /// Parts that share no vertex.
    pub components: u64,
    /// Vertices less edges plus triangles: 2 less twice the handles of each closed part.
    pub euler: i64,
    /// Handles of all parts together, of a closed surface.
    pub genus: Option<u64>,
    /// Whether every edge belongs to two triangles, which run along it in opposite directions.
    pub closed: bool,
    /// Triangles of which two corners are at one place.
    pub flat: u64,
}

impl Stats {
    /// Measures `surface`.
    ///
    /// # Errors
    /// [`Kind::Failure`](crate::util::error::Kind::Failure) when there is no memory for the tables.
    pub fn of(surface: &Surface) -> Result<Self> {
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
        // Parts that touch at a vertex count as one component. Where that makes the difference negative, there is no
        // genus.
        let genus = u64::try_from(2 * components as i64 - euler).ok().filter(|_| closed);
        let (genus, flat) = (genus.map(|twice| twice / 2), surface.flat_triangles() as u64);
        Ok(Self { area, volume, components, euler, genus, closed, flat })
    }
}

/// Whether the surface has a boundary: an edge with more triangles along one direction than along the other. Takes no
/// memory: it adds up hashes of all edges, whose signs depend on the direction. The probability of a wrong answer is
/// 2^-64.
pub fn has_boundary(surface: &Surface) -> bool {
    let hash = |from: u32, to: u32| {
        // The mixing function of SplitMix64.
        let mut hash = u64::from(from.min(to)) << 32 | u64::from(from.max(to));
        hash = hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^= hash >> 31;
        if from < to { hash } else { hash.wrapping_neg() }
    };
    let of_triangle =
        |&[a, b, c]: &[u32; 3]| hash(a, b).wrapping_add(hash(b, c)).wrapping_add(hash(c, a));
    let sums = surface
        .triangles
        .chunks(1 << 14)
        .par_map(|triangles| triangles.iter().map(of_triangle).fold(0, u64::wrapping_add));
    sums.into_iter().fold(0, u64::wrapping_add) != 0
}

/// Area, and volume by the divergence theorem: a tetrahedron from the origin over each triangle.
fn area_and_volume(surface: &Surface) -> [f64; 2] {
    let add = |[area, volume]: [f64; 2], &triangle: &[u32; 3]| {
        let corners = surface.corners::<f64>(triangle);
        let normal = triangle_normal(corners);
        [area + dot(normal, normal).sqrt() / 2.0, volume + dot(corners[0], normal) / 6.0]
    };
    let chunks = surface.triangles.chunks(1 << 12);
    // Chunks of one size, summed in order: the sums do not depend on the number of threads.
    let sums = chunks.par_map(|chunk| chunk.iter().fold([0.0; 2], add));
    sums.iter().fold([0.0; 2], |sum, part| [sum[0] + part[0], sum[1] + part[1]])
}

/// Parts, and vertices that a triangle uses.
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
