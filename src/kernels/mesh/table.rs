//! The 256 cases of marching cubes. The table is computed: the loops of the surface are traced over the faces of a cube
//! and then triangulated.
//!
//! On a face whose corners alternate, each of the two outside corners is cut off by itself. This depends on the face
//! only, so the two cells of a face agree and the mesh has no holes. The triangle counts are those of the classic table
//! (Lorensen and Cline 1987, as published by Bourke), 820 in all.

use std::sync::LazyLock;

/// x, y and z of each corner.
pub const CORNERS: [[u8; 3]; 8] =
    [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]];

/// The two corners of each edge, the lower grid point first. Four edges run along x, four along y, four along z. Within
/// each four, the number is the offset along the first other axis plus twice the offset along the second.
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

/// Corners of each face, counter-clockwise as seen from outside the cube.
pub(super) const FACES: [[u8; 4]; 6] =
    [[0, 3, 2, 1], [4, 5, 6, 7], [0, 1, 5, 4], [3, 7, 6, 2], [0, 4, 7, 3], [1, 2, 6, 5]];

/// The surface in a cell. The set bits of the case number are the inside corners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CubeCase {
    /// Triangles as edge numbers, wound so that normals point from inside to outside.
    pub triangles: Vec<[u8; 3]>,
    /// Number of closed loops that the triangles fill.
    pub loops: u8,
}

/// All cases. Bit i of the case number is set if corner i is inside.
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

/// Whether the corners of a face are alternately inside and outside.
pub(super) fn alternates(inside: u8, face: &[u8; 4]) -> bool {
    let [a, b, c, d] = face.map(|corner| inside >> corner & 1);
    a == c && b == d && a != b
}

/// Traces the closed loops of crossed edges. On an alternating face, the inside corners are joined if `joined` has the
/// bit of the face, and each outside corner is cut off; otherwise each inside corner is cut off.
pub(super) fn loops(inside: u8, joined: u8) -> Vec<Vec<u8>> {
    // On each face, one segment of the surface passes around each run of outside corners: from the crossed edge after
    // the run to the crossed edge before it. A crossed edge has two faces. The segment on one face begins at the edge
    // and the segment on the other ends there, so segments form closed loops.
    let mut next = [None; 12];
    for (number, face) in FACES.iter().enumerate() {
        let is_inside = |i: usize| inside >> face[i % 4] & 1 == 1;
        let edge = |i: usize| edge_between(face[i % 4], face[(i + 1) % 4]);
        for start in (0..4).filter(|&i| is_inside(i) && !is_inside(i + 1)) {
            let end = (start + 1..).find(|&i| is_inside(i + 1)).expect("the start is inside");
            // The segment begins at the same edge but passes around the next inside corner instead.
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

/// Cost of a triangulation: the sum of the squared lengths of all sides, plus 10^6 for each side that both cells of a
/// face might use, plus 10^3 for each other side that lies in a face.
pub(super) type Cost = u64;

/// Minimum cost of a triangulation with a side that both cells of a face might use.
pub(super) const SHARED_SIDE: Cost = 1_000_000;

/// Cost of a side between the vertices on two edges.
///
/// A side that lies in a face either joins opposite edges or cuts off a corner. The upper cell of the face may use the
/// former and the lower cell the latter, so no side belongs to both cells and thus to four triangles.
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

/// Midpoint of an edge, in halves of a cell.
fn middle(edge: u8) -> [i32; 3] {
    let [a, b] = EDGES[usize::from(edge)].map(|corner| CORNERS[usize::from(corner)]);
    std::array::from_fn(|axis| i32::from(a[axis] + b[axis]))
}

/// Maximum number of vertices of a polygon: those on all edges of a cell, two of them twice where a band is cut open.
const MAX_VERTICES: usize = 14;

/// Triangulates a polygon at minimum cost.
pub(super) fn fill(polygon: &[u8]) -> Vec<[u8; 3]> {
    triangulate(polygon, side_cost).1
}

/// Triangulates a polygon at minimum cost of its sides, by dynamic programming over runs of vertices (Klincsek 1980).
/// Of equal costs, the first is taken.
pub(super) fn triangulate(
    polygon: &[u8],
    side_cost: impl Fn(u8, u8) -> Cost,
) -> (Cost, Vec<[u8; 3]>) {
    let len = polygon.len();
    // Cost of the run from vertex i to j, and the apex of the triangle at the side from i to j.
    let mut best = [[(0, 0); MAX_VERTICES]; MAX_VERTICES];
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
    // In-order traversal: the runs left of an apex, its triangle, the runs right of it.
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
