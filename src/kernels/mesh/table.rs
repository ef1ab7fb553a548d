//! The 256 cases of marching cubes, derived by code: the surface's loops are traced over the faces of a cube and then
//! triangulated.
//!
//! On a face whose corners alternate, each of the two outside corners is cut off alone. That choice
//! depends on the face only, so both cells that share it agree and the mesh has no holes; it also
//! gives the triangle counts of the classic table (Lorensen and Cline 1987, as published by Bourke).

use std::sync::LazyLock;

/// Corner number to x, y, z.
pub const CORNERS: [[u8; 3]; 8] =
    [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]];

/// Edge number to its two corners, the lower-indexed grid point first. Four edges along x, four along y, four along z;
/// among each four, the offset along the first other axis counts 1, along the second 2.
pub const EDGES: [[u8; 2]; 12] = [
    [0, 1],
    [3, 2],
    [4, 5],
    [7, 6],
    [0, 3],
    [1, 2],
    [4, 7],
    [5, 6],
    [0, 4],
    [1, 5],
    [3, 7],
    [2, 6],
];

/// The corners of each face, counter-clockwise as seen from outside the cube.
pub(super) const FACES: [[u8; 4]; 6] =
    [[0, 3, 2, 1], [4, 5, 6, 7], [0, 1, 5, 4], [3, 7, 6, 2], [0, 4, 7, 3], [1, 2, 6, 5]];

/// The surface in a cell whose inside corners are the set bits of the case's number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CubeCase {
    /// Triangles as edge numbers, wound so that normals point from inside to outside.
    pub triangles: Vec<[u8; 3]>,
    /// Closed loops that the triangles fill.
    pub loops: u8,
}

/// All cases; the number's bit i is set when corner i is inside.
pub static CASES: LazyLock<Vec<CubeCase>> = LazyLock::new(|| (0..=255).map(case).collect());

fn edge_between(a: u8, b: u8) -> u8 {
    let found = EDGES.iter().position(|edge| *edge == [a, b] || *edge == [b, a]);
    found.expect("neighbours on a face share an edge") as u8
}

fn case(inside: u8) -> CubeCase {
    let mut case = CubeCase::default();
    for polygon in loops(inside, u8::MAX) {
        case.loops += 1;
        case.triangles.extend(fill(&polygon));
    }
    case
}

/// Whether the corners of a face are inside and outside in turn.
pub(super) fn alternates(inside: u8, face: &[u8; 4]) -> bool {
    let [a, b, c, d] = face.map(|corner| inside >> corner & 1);
    a == c && b == d && a != b
}

/// The closed loops of crossed edges. On an alternating face the inside corners are joined where `joined` has the
/// face's bit, so that each outside corner is cut off alone; else each inside corner is.
pub(super) fn loops(inside: u8, joined: u8) -> Vec<Vec<u8>> {
    // On each face, one segment of the surface passes around each run of outside corners: from the
    // crossed edge behind the run to the crossed edge before it. A crossed edge has two faces; the
    // segment on one begins there, that on the other ends there, so segments make closed loops.
    let mut next = [None; 12];
    for (number, face) in FACES.iter().enumerate() {
        let is_inside = |i: usize| inside >> face[i % 4] & 1 == 1;
        let edge = |i: usize| edge_between(face[i % 4], face[(i + 1) % 4]);
        for start in (0..4).filter(|&i| is_inside(i) && !is_inside(i + 1)) {
            let end = (start + 1..).find(|&i| is_inside(i + 1)).expect("the start is inside");
            // From the same edge, but around the next inside corner in place of the outside corner.
            let is_separated = alternates(inside, face) && joined >> number & 1 == 0;
            next[usize::from(edge(end))] = Some(edge(if is_separated { end + 1 } else { start }));
        }
    }
    let mut loops = Vec::new();
    for first in 0..12 {
        let mut polygon = Vec::new();
        let mut at = first;
        while let Some(to) = next[at as usize].take() {
            polygon.push(at);
            at = to;
        }
        if !polygon.is_empty() {
            loops.push(polygon);
        }
    }
    loops
}

/// The cost of a triangulation: 10^6 for each side that both cells at a face may have, 10^3 for each other side in a
/// face, and the sum of the squared lengths of all sides.
pub(super) type Cost = u64;

/// The least cost of a triangulation with a side that both cells may take.
pub(super) const SHARED_SIDE: Cost = 1_000_000;

/// The cost of a side between the vertices on two edges.
///
/// A side in a face is one of the face's two crossing diagonals, or cuts off a corner. The cell beyond the face may
/// have the former and the cell before it the latter, as seen along the axis: so that no side belongs to both cells,
/// and thus to four triangles.
pub(super) fn side_cost(a: u8, b: u8) -> Cost {
    static COSTS: LazyLock<[[Cost; 12]; 12]> = LazyLock::new(|| {
        std::array::from_fn(|a| std::array::from_fn(|b| cost(middle(a as u8), middle(b as u8))))
    });
    fn cost(from: [i32; 3], to: [i32; 3]) -> Cost {
        let mut cost = (0..3).map(|axis| (from[axis] - to[axis]).pow(2) as Cost).sum();
        for axis in 0..3 {
            if from[axis] == to[axis] && from[axis] != 1 {
                let is_crossing = (0..3).any(|other| other != axis && from[other] == to[other]);
                let is_beyond = from[axis] == 0;
                cost += if is_crossing == is_beyond { 1000 } else { SHARED_SIDE };
            }
        }
        cost
    }
    COSTS[usize::from(a)][usize::from(b)]
}

/// The middle of an edge, in halves of a cell's side.
fn middle(edge: u8) -> [i32; 3] {
    let [a, b] = EDGES[usize::from(edge)].map(|corner| CORNERS[usize::from(corner)]);
    std::array::from_fn(|axis| i32::from(a[axis] + b[axis]))
}

/// The most vertices of a polygon: those on all edges of a cell, and two of them twice, where a band is cut open.
const MOST_VERTICES: usize = 14;

/// The triangulation of a polygon at the least cost.
pub(super) fn fill(polygon: &[u8]) -> Vec<[u8; 3]> {
    triangulate(polygon, side_cost).1
}

/// The triangulation of a polygon whose sides cost the least, the first of equals, by dynamic programming over its runs
/// of vertices (Klincsek 1980).
pub(super) fn triangulate(
    polygon: &[u8],
    side_cost: impl Fn(u8, u8) -> Cost,
) -> (Cost, Vec<[u8; 3]>) {
    let len = polygon.len();
    // The cost of the run from vertex i to j, and the apex of the triangle at its side.
    let mut best = [[(0, 0); MOST_VERTICES]; MOST_VERTICES];
    for (span, i) in (2..len).flat_map(|span| (0..len - span).map(move |i| (span, i))) {
        let j = i + span;
        let side = |from: usize, to: usize| match to - from {
            1 => 0,
            _ => side_cost(polygon[from], polygon[to]),
        };
        let cost = |apex: usize| best[i][apex].0 + best[apex][j].0 + side(i, apex) + side(apex, j);
        best[i][j] = (i + 1..j).map(|apex| (cost(apex), apex)).min().expect("two sides at least");
    }
    let mut triangles = Vec::new();
    let mut add =
        |i: usize, j: usize| triangles.push([polygon[i], polygon[best[i][j].1], polygon[j]]);
    // The runs in order: those left of an apex, its own, those right of it.
    let (mut open, mut at) = (Vec::new(), (0, len - 1));
    loop {
        while at.1 - at.0 >= 2 {
            open.push(at);
            at = (at.0, best[at.0][at.1].1);
        }
        let Some((i, j)) = open.pop() else { break };
        add(i, j);
        at = (best[i][j].1, j);
    }
    (best[0][len - 1].0, triangles)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Whether `edge` lies on `face`.
    fn on_face(edge: u8, face: &[u8; 4]) -> bool {
        EDGES[edge as usize].iter().all(|corner| face.contains(corner))
    }

    fn middle(edge: u8) -> [f64; 3] {
        let [a, b] = EDGES[edge as usize].map(|corner| CORNERS[corner as usize]);
        std::array::from_fn(|axis| f64::from(a[axis] + b[axis]) / 2.0)
    }

    #[test]
    fn edges_run_from_the_lower_grid_point_along_one_axis() {
        for (number, [a, b]) in EDGES.iter().enumerate() {
            let (a, b) = (CORNERS[*a as usize], CORNERS[*b as usize]);
            let axis = number / 4;
            assert_eq!((a[axis], b[axis]), (0, 1));
            let others: Vec<usize> = (0..3).filter(|&other| other != axis).collect();
            for corner in [a, b] {
                let offset = corner[others[0]] + 2 * corner[others[1]];
                assert_eq!(usize::from(offset), number % 4);
            }
        }
    }

    #[test]
    fn triangle_counts_are_the_classic_ones() {
        // 820 in all; a diagonal pair of inside corners is joined, a pair of outside ones is not.
        let count = |case: usize| CASES[case].triangles.len();
        assert_eq!((0..256).map(count).sum::<usize>(), 820);
        assert_eq!((count(0), count(1), count(3), count(255), count(254)), (0, 1, 2, 0, 1));
        assert_eq!((count(0b101), count(!0b101 & 255)), (4, 2));
        assert!((0..256).all(|case| count(case) <= 5));
    }

    #[test]
    fn every_case_uses_exactly_the_crossed_edges() {
        for (number, case) in CASES.iter().enumerate() {
            for (edge, [a, b]) in EDGES.iter().enumerate() {
                let crossed = (number >> a ^ number >> b) & 1 == 1;
                let used = case.triangles.iter().flatten().any(|&e| usize::from(e) == edge);
                assert_eq!(crossed, used, "case {number}, edge {edge}");
            }
            let crossings = EDGES.iter().filter(|[a, b]| (number >> a ^ number >> b) & 1 == 1);
            let expected = crossings.count() - 2 * usize::from(case.loops);
            assert_eq!(case.triangles.len(), expected, "case {number}");
        }
    }

    #[test]
    fn every_case_is_closed_but_for_sides_on_the_faces() {
        for (number, case) in CASES.iter().enumerate() {
            let mut sides: HashMap<(u8, u8), i32> = HashMap::new();
            for triangle in &case.triangles {
                for i in 0..3 {
                    let (a, b) = (triangle[i], triangle[(i + 1) % 3]);
                    *sides.entry((a, b)).or_default() += 1;
                    *sides.entry((b, a)).or_default() -= 1;
                }
            }
            for ((a, b), balance) in sides {
                let in_face = FACES.iter().any(|face| on_face(a, face) && on_face(b, face));
                assert!(balance == 0 || (in_face && balance.abs() == 1), "case {number}");
            }
        }
    }

    #[test]
    fn no_diagonal_lies_in_a_face() {
        for case in CASES.iter() {
            let sides =
                case.triangles.iter().flat_map(|t| [(t[0], t[1]), (t[1], t[2]), (t[2], t[0])]);
            let sides: Vec<_> = sides.collect();
            for &(a, b) in &sides {
                let is_diagonal = sides.contains(&(b, a));
                let in_face = FACES.iter().any(|face| on_face(a, face) && on_face(b, face));
                assert!(!(is_diagonal && in_face), "{case:?}");
            }
        }
    }

    #[test]
    fn normals_point_from_inside_to_outside() {
        for (corner, place) in CORNERS.iter().enumerate() {
            for (inside, sign) in [(1usize << corner, 1.0), (255 & !(1 << corner), -1.0)] {
                let [a, b, c] = CASES[inside].triangles[0].map(middle);
                let (u, v): ([f64; 3], [f64; 3]) =
                    (std::array::from_fn(|i| b[i] - a[i]), std::array::from_fn(|i| c[i] - a[i]));
                let normal = [
                    u[1] * v[2] - u[2] * v[1],
                    u[2] * v[0] - u[0] * v[2],
                    u[0] * v[1] - u[1] * v[0],
                ];
                let outwards: f64 = (0..3).map(|i| normal[i] * (a[i] - f64::from(place[i]))).sum();
                assert!(outwards * sign > 0.0, "corner {corner}");
            }
        }
    }
}
