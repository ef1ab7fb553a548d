//! All variants of the ambiguous cases, where the signs of the corners do not determine the topology of the trilinear
//! field. A variant states which inside corners are joined on the faces whose corners alternate, and whether a tunnel
//! joins two loops inside the cell.
//!
//! The variants are Chernyaev's (1995) and are computed like the classic cases: loops are traced over the faces for
//! each combination of joined corners, and filled. With a tunnel, two loops bound one band instead of two discs. All
//! vertices are those of the classic cases, on the edges of the cell.
//!
//! A tunnel needs two loops that no face joins (Chernyaev's cases 4, 6.1, 7.4, 10.1 and 12.1), or the three loops of
//! case 13.5: one around an inside corner, one around the opposite outside corner, and one between them, which may be
//! joined to either.

use std::sync::LazyLock;

use super::table::{
    CORNERS, Cost, EDGES, FACES, SHARED_SIDE, alternates, fill, loops, side_cost, triangulate,
};

/// The surface in a cell of a variant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// Triangles as in a [`CubeCase`](super::table::CubeCase); at most [`MAX_TRIANGLES`].
    pub triangles: Vec<[u8; 3]>,
    /// Number of loops that are filled by a disc, not joined by a tunnel: `triangles = crossed edges - 2 * discs`.
    pub discs: u8,
    /// Number of possible tunnels: 0, 1 or 2. Of two, the first is at an inside corner, the second at an outside
    /// corner.
    pub tunnels: u8,
    /// Index of the variant with the first tunnel, counted from the first variant of the case.
    pub tunnel: u8,
}

/// Maximum number of triangles of a variant.
pub const MAX_TRIANGLES: usize = 10;

/// All variants of all cases.
#[derive(Debug)]
pub struct Variants {
    /// For each case, one bit per face whose corners alternate.
    pub faces: [u8; 256],
    /// Index of the first variant of each case, followed by the number of all variants. Unambiguous cases have none.
    pub first: [u16; 257],
    /// Each case has its variants without tunnels first. The bits of their index are the alternating faces in ascending
    /// order, set where inside corners are joined.
    pub all: Vec<Variant>,
}

pub static VARIANTS: LazyLock<Variants> = LazyLock::new(|| {
    let mut variants = Variants { faces: [0; 256], first: [0; 257], all: Vec::new() };
    for case in 0..=255u8 {
        let alternating = (0..6).filter(|&face| alternates(case, &FACES[face]));
        let faces: Vec<usize> = alternating.collect();
        variants.faces[usize::from(case)] = faces.iter().fold(0, |mask, face| mask | 1 << face);
        if !faces.is_empty() || loops(case, 0).len() > 1 {
            variants.all.extend(variants_of(case, &faces));
        }
        variants.first[usize::from(case) + 1] = variants.all.len() as u16;
    }
    variants
});

fn variants_of(case: u8, faces: &[usize]) -> Vec<Variant> {
    let mut all = Vec::new();
    let mut tunnels = Vec::new();
    let choices = 1 << faces.len();
    for choice in 0..choices {
        let joined = (0..faces.len()).fold(0, |joined, i| joined | (choice >> i & 1) << faces[i]);
        let loops = loops(case, joined as u8);
        let bands = bands(case, joined as u8, &loops);
        all.push(Variant {
            triangles: loops.iter().flat_map(|polygon| fill(polygon)).collect(),
            discs: loops.len() as u8,
            tunnels: bands.len() as u8,
            tunnel: (choices + tunnels.len()) as u8,
        });
        for [a, b] in bands {
            let others = (0..loops.len()).filter(|&i| i != a && i != b);
            let filled = others.clone().flat_map(|i| fill(&loops[i]));
            let triangles = band(&loops[a], &loops[b]).into_iter().chain(filled).collect();
            let discs = others.count() as u8;
            tunnels.push(Variant { triangles, discs, ..Variant::default() });
        }
    }
    all.append(&mut tunnels);
    all
}

/// Pairs of loops that a tunnel may join.
fn bands(case: u8, joined: u8, loops: &[Vec<u8>]) -> Vec<[usize; 2]> {
    let regions = regions(case, joined);
    let is_inside = |corner: usize| case >> corner & 1 == 1;
    match loops.len() {
        // Two regions on the same side of the isovalue, in opposite corners of the cell.
        2 => {
            let is_apart = |corner: usize| {
                let opposite = opposite(corner);
                is_inside(corner) == is_inside(opposite) && regions[corner] != regions[opposite]
            };
            if (0..8).any(is_apart) { vec![[0, 1]] } else { Vec::new() }
        }
        // An isolated inside corner opposite to an isolated outside corner.
        3 => {
            let is_lone = |&corner: &usize| {
                regions.iter().filter(|&&region| region == regions[corner]).count() == 1
            };
            let lone = |inside| (0..8).filter(is_lone).find(|&corner| is_inside(corner) == inside);
            let (Some(inside), Some(outside)) = (lone(true), lone(false)) else {
                return Vec::new();
            };
            let around = |corner: usize| {
                let touches = |edge: &u8| EDGES[usize::from(*edge)].contains(&(corner as u8));
                loops
                    .iter()
                    .position(|polygon| polygon.iter().all(touches))
                    .expect("a lone corner's")
            };
            let (inside, outside) = (around(inside), around(outside));
            let between = 3 - inside - outside;
            vec![[inside, between], [outside, between]]
        }
        _ => Vec::new(),
    }
}

fn opposite(corner: usize) -> usize {
    let offsets = CORNERS[corner].map(|offset| 1 - offset);
    CORNERS.iter().position(|other| *other == offsets).expect("a corner")
}

/// Region of each corner on the surface of the cube, named by its lowest corner.
fn regions(case: u8, joined: u8) -> [usize; 8] {
    let is_inside = |corner: u8| case >> corner & 1 == 1;
    let mut joints: Vec<[u8; 2]> = EDGES.to_vec();
    for (number, face) in FACES.iter().enumerate() {
        let [a, b, c, d] = *face;
        if alternates(case, face) {
            let joins_first = is_inside(a) == (joined >> number & 1 == 1);
            joints.push(if joins_first { [a, c] } else { [b, d] });
        }
    }
    joints.retain(|&[a, b]| is_inside(a) == is_inside(b));
    let mut regions = std::array::from_fn(|corner| corner);
    // Each pass propagates the minimum by at least one joint.
    for _ in 0..8 {
        for joint in &joints {
            let [a, b] = joint.map(usize::from);
            let min = regions[a].min(regions[b]);
            (regions[a], regions[b]) = (min, min);
        }
    }
    regions
}

/// Triangulates the band between two loops: a polygon along both, cut open at a side between them, at minimum cost.
fn band(a: &[u8], b: &[u8]) -> Vec<[u8; 3]> {
    // If all sides lead from loop to loop, each vertex has one, so every band is found by cutting at the last side of
    // one vertex. If sides within a loop are allowed, too, cuts at all vertices are tried.
    let searches = [(1, true, true), (a.len(), false, true), (a.len(), false, false)];
    let found = searches.into_iter().find_map(|(vertices, only_across, is_last)| {
        let cuts = (0..vertices).flat_map(|i| (0..b.len()).map(move |j| [i, j]));
        let bands = cuts.map(|cut| cut_band([a, b], cut, only_across, is_last));
        let usable = bands.filter(|(cost, band)| *cost < SHARED_SIDE && is_simple(band));
        usable.min_by_key(|(cost, _)| *cost)
    });
    found.expect("two loops have a band between them").1
}

/// Triangulates the band, cut open at the side between vertices `i` of `a` and `j` of `b`. With `is_last`, this is the
/// last side from that vertex of `a` to the other loop.
fn cut_band(
    [a, b]: [&[u8]; 2],
    [i, j]: [usize; 2],
    only_across: bool,
    is_last: bool,
) -> (Cost, Vec<[u8; 3]>) {
    let around = |polygon: &[u8], start: usize| {
        let len = polygon.len();
        (0..=len).map(|i| polygon[(start + i) % len]).collect::<Vec<_>>()
    };
    let polygon = [around(a, i), around(b, j)].concat();
    let side = |from: u8, to: u8| {
        let is_across = a.contains(&from) != a.contains(&to);
        let is_cut = [from, to] == [a[i], b[j]] || [to, from] == [a[i], b[j]];
        match from == to || is_cut || (only_across && !is_across) {
            true => SHARED_SIDE,
            false => side_cost(from, to),
        }
    };
    let [first, next, .., last] = polygon[..] else { unreachable!("eight at least") };
    let (cost, triangles) = match is_last {
        true => {
            let (cost, mut triangles) = triangulate(&polygon[1..], side);
            triangles.push([first, next, last]);
            (cost + side(next, last), triangles)
        }
        false => triangulate(&polygon, side),
    };
    (cost + side_cost(first, last), triangles)
}

/// Whether no side occurs twice in the same direction.
fn is_simple(triangles: &[[u8; 3]]) -> bool {
    let sides = triangles.iter().flat_map(|&[a, b, c]| [[a, b], [b, c], [c, a]]);
    let mut seen = Vec::new();
    sides.into_iter().all(|side| {
        let is_new = !seen.contains(&side);
        seen.push(side);
        is_new
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Every variant with the loops that it fills.
    fn all() -> impl Iterator<Item = (u8, &'static Variant, Vec<Vec<u8>>)> {
        (0..=255u8).flat_map(|case| {
            let number = usize::from(case);
            let (first, end) = (VARIANTS.first[number].into(), VARIANTS.first[number + 1].into());
            let variants = &VARIANTS.all[first..end];
            let faces: Vec<u8> =
                (0..6).filter(|face| VARIANTS.faces[number] >> face & 1 == 1).collect();
            let choices = if variants.is_empty() { 0 } else { 1 << faces.len() };
            (0..choices).flat_map(move |choice: usize| {
                let joined =
                    (0..faces.len()).fold(0, |all, i| all | (choice as u8 >> i & 1) << faces[i]);
                let plain = &variants[choice];
                let tunnels = (0..plain.tunnels).map(|i| &variants[usize::from(plain.tunnel + i)]);
                let all: Vec<_> = [plain].into_iter().chain(tunnels).collect();
                all.into_iter().map(move |variant| (case, variant, loops(case, joined)))
            })
        })
    }

    #[test]
    fn there_are_as_many_tunnels_as_chernyaev_has() {
        // Case 4: 8, 6.1: 48, 7.4: 16, 10.1: 12, 12.1: 48, 13.5: 8 with two each.
        let tunnels: usize = VARIANTS.all.iter().map(|variant| usize::from(variant.tunnels)).sum();
        assert_eq!(tunnels, 8 + 48 + 16 + 12 + 48 + 16);
        assert_eq!(VARIANTS.all.len() - tunnels, 656 - 128);
        let max = VARIANTS.first.windows(2).map(|pair| pair[1] - pair[0]).max();
        assert_eq!(max, Some(72));
    }

    #[test]
    fn all_joined_is_the_classic_case() {
        for case in 0..=255u8 {
            let number = usize::from(case);
            let first = usize::from(VARIANTS.first[number]);
            if first < usize::from(VARIANTS.first[number + 1]) {
                let choice = (1 << VARIANTS.faces[number].count_ones()) - 1;
                let classic = &super::super::table::CASES[number];
                assert_eq!(VARIANTS.all[first + choice].triangles, classic.triangles);
            }
        }
    }

    #[test]
    fn every_variant_fills_its_loops() {
        for (case, variant, loops) in all() {
            assert!(variant.triangles.len() <= MAX_TRIANGLES);
            let crossed: usize = loops.iter().map(Vec::len).sum();
            assert_eq!(variant.triangles.len(), crossed - 2 * usize::from(variant.discs));
            let mut sides: HashMap<[u8; 2], i32> = HashMap::new();
            for &[a, b, c] in &variant.triangles {
                for side in [[a, b], [b, c], [c, a]] {
                    *sides.entry(side).or_default() += 1;
                }
            }
            for polygon in &loops {
                for (i, &from) in polygon.iter().enumerate() {
                    let to = polygon[(i + 1) % polygon.len()];
                    let outer = [sides.remove(&[from, to]), sides.remove(&[to, from])];
                    assert_eq!(outer, [Some(1), None], "case {case}");
                }
            }
            for (&[a, b], &count) in &sides {
                assert_eq!((count, sides.get(&[b, a])), (1, Some(&1)), "case {case}");
                // Only one of the two cells at a face may have such a side.
                assert!(side_cost(a, b) < SHARED_SIDE, "case {case}");
            }
        }
    }
}
