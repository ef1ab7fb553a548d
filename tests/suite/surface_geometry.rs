//! Distances, volumes and topology of surfaces, computed in the simplest way.

use std::collections::{BTreeSet, HashMap};

use gpuproc::data::surface::Surface;

pub type Vec3 = [f64; 3];

pub fn sub(a: Vec3, b: Vec3) -> Vec3 {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

pub fn dot(a: Vec3, b: Vec3) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub fn normal([a, b, c]: [Vec3; 3]) -> Vec3 {
    let (u, v) = (sub(b, a), sub(c, a));
    [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]]
}

pub fn corners(surface: &Surface, triangle: [u32; 3]) -> [Vec3; 3] {
    triangle.map(|i| surface.positions[i as usize].map(f64::from))
}

/// The distance of a point to a triangle: the minimum of the distances to its sides and, above its interior, to its
/// plane.
pub fn distance_to_triangle(point: Vec3, triangle: [Vec3; 3]) -> f64 {
    let mut min = f64::INFINITY;
    for i in 0..3 {
        let (from, to) = (triangle[i], triangle[(i + 1) % 3]);
        let (edge, offset) = (sub(to, from), sub(point, from));
        let part = (dot(offset, edge) / dot(edge, edge).max(1e-300)).clamp(0.0, 1.0);
        let rest = sub(offset, edge.map(|v| part * v));
        min = min.min(dot(rest, rest).sqrt());
    }
    let up = normal(triangle);
    let inside = (0..3).all(|i| {
        let side = [triangle[i], triangle[(i + 1) % 3], point];
        dot(normal(side), up) >= 0.0
    });
    if inside && dot(up, up) > 0.0 {
        min = min.min(dot(sub(point, triangle[0]), up).abs() / dot(up, up).sqrt());
    }
    min
}

/// The distance to a surface, and its nearest triangle.
pub fn distance_to_surface(point: Vec3, surface: &Surface) -> (f64, usize) {
    let to = |(i, &triangle)| (distance_to_triangle(point, corners(surface, triangle)), i);
    let all = surface.triangles.iter().enumerate().map(to);
    all.min_by(|one: &(f64, usize), other| one.0.total_cmp(&other.0)).unwrap()
}

pub fn vertices(surface: &Surface) -> impl Iterator<Item = Vec3> {
    surface.positions.iter().map(|point| point.map(f64::from))
}

pub fn centroids(surface: &Surface) -> impl Iterator<Item = Vec3> {
    surface.triangles.iter().map(|&triangle| {
        let [a, b, c] = corners(surface, triangle);
        std::array::from_fn(|i| (a[i] + b[i] + c[i]) / 3.0)
    })
}

/// Points all over a surface: those of each triangle whose barycentric coordinates are multiples of `1 / steps`.
pub fn sample_points(surface: &Surface, steps: u32) -> impl Iterator<Item = Vec3> {
    surface.triangles.iter().flat_map(move |&triangle| {
        let [a, b, c] = corners(surface, triangle);
        let parts = (0..=steps).flat_map(move |u| (0..=steps - u).map(move |v| (u, v)));
        parts.map(move |(u, v)| {
            let [u, v] = [u, v].map(|part| f64::from(part) / f64::from(steps));
            std::array::from_fn(|i| a[i] + u * (b[i] - a[i]) + v * (c[i] - a[i]))
        })
    })
}

/// The volume inside a closed surface, by the divergence theorem. Positive if the triangles face outwards.
pub fn enclosed_volume(surface: &Surface) -> f64 {
    let tetrahedron = |&triangle: &[u32; 3]| {
        let [a, b, c] = corners(surface, triangle);
        dot(a, [b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0]])
    };
    surface.triangles.iter().map(tetrahedron).sum::<f64>() / 6.0
}

/// The root mean square and the maximum distance of the vertices of `from` to the surface `to`.
pub fn rms_and_max_distance(from: &Surface, to: &Surface) -> [f64; 2] {
    let all: Vec<f64> = vertices(from).map(|point| distance_to_surface(point, to).0).collect();
    let squares: f64 = all.iter().map(|d| d * d).sum();
    [(squares / all.len() as f64).sqrt(), all.iter().copied().fold(0.0, f64::max)]
}

/// Topological invariants, which simplification must keep.
#[derive(Debug, PartialEq)]
pub struct Topology {
    pub parts: usize,
    pub euler: i64,
    /// Number of boundary loops.
    pub loops: usize,
}

/// Computes the topology. Checks that no edge has three triangles, or two in the same direction.
pub fn topology(surface: &Surface) -> Topology {
    let mut sides: HashMap<[u32; 2], [u32; 2]> = HashMap::new();
    let mut joins: Vec<[u32; 2]> = Vec::new();
    for &[a, b, c] in &surface.triangles {
        for (a, b) in [(a, b), (b, c), (c, a)] {
            assert_ne!(a, b);
            sides.entry([a.min(b), a.max(b)]).or_default()[usize::from(a < b)] += 1;
            joins.push([a, b]);
        }
    }
    assert!(
        sides.values().all(|&[one, other]| one <= 1 && other <= 1),
        "an edge has three triangles"
    );
    let used: BTreeSet<u32> = surface.triangles.as_flattened().iter().copied().collect();
    assert_eq!(used.len(), surface.positions.len(), "a vertex is unused");
    let boundary: Vec<[u32; 2]> =
        sides.iter().filter(|side| side.1.contains(&0)).map(|side| *side.0).collect();
    let ends: BTreeSet<u32> = boundary.iter().flatten().copied().collect();
    Topology {
        parts: count_components(&used, &joins),
        euler: used.len() as i64 - sides.len() as i64 + surface.triangles.len() as i64,
        loops: count_components(&ends, &boundary),
    }
}

fn count_components(vertices: &BTreeSet<u32>, joins: &[[u32; 2]]) -> usize {
    fn root(above: &mut HashMap<u32, u32>, vertex: u32) -> u32 {
        let mut at = vertex;
        while above[&at] != at {
            // Halve the path for the next search (union-find).
            let next = above[&above[&at]];
            at = std::mem::replace(above.get_mut(&at).unwrap(), next);
        }
        at
    }
    let mut above: HashMap<u32, u32> = vertices.iter().map(|&vertex| (vertex, vertex)).collect();
    let mut count = vertices.len();
    for &[a, b] in joins {
        let [a, b] = [a, b].map(|vertex| root(&mut above, vertex));
        if a != b {
            above.insert(a.max(b), a.min(b));
            count -= 1;
        }
    }
    count
}

/// Checks that no triangle is degenerate or faces away from the nearest triangle of `whole`.
pub fn assert_orientation_kept(simple: &Surface, whole: &Surface, name: &str) {
    for (point, &triangle) in centroids(simple).zip(&simple.triangles) {
        let own = normal(corners(simple, triangle));
        assert!(dot(own, own) > 1e-14, "{name}: degenerate triangle {triangle:?}");
        let (_, nearest) = distance_to_surface(point, whole);
        let theirs = normal(corners(whole, whole.triangles[nearest]));
        assert!(dot(own, theirs) >= 0.0, "{name}: triangle flipped at {point:?}");
    }
}
