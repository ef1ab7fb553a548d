//! Samples that equal the isovalue: degenerate triangles, and surfaces from which `--clean` removed them.

use std::{
    collections::{HashMap, HashSet},
    fs,
};

use gpuproc::{
    data::{grid::Grid, samples::Samples, surface::Surface},
    device::Kernel,
    kernels::mesh::{
        MarchingCubes, Slab,
        post::{Stats, clean},
    },
};

use crate::{
    common::{Noise, run, works},
    surface_geometry::enclosed_volume,
};

/// The surface at `iso` of random samples, many of which equal `iso`.
fn tied_surface(side: usize, values: u64, iso: f64, seed: u64) -> Surface {
    let mut noise = Noise(seed);
    let samples = (0..side.pow(3)).map(|_| (noise.next() % values) as u8).collect();
    let kernel =
        MarchingCubes { close: true, normals: seed.is_multiple_of(2), ..MarchingCubes::new(iso) };
    let volume = Grid::volume([side; 3], Samples::U8(samples));
    kernel.cpu(&Slab::whole(volume, &kernel)).unwrap()
}

/// The number of triangles with two corners at the same position.
fn count_degenerate(surface: &Surface) -> usize {
    let position = |corner: u32| surface.positions[corner as usize];
    let is_flat = |&&[a, b, c]: &&[u32; 3]| {
        position(a) == position(b) || position(b) == position(c) || position(c) == position(a)
    };
    surface.triangles.iter().filter(is_flat).count()
}

/// For each directed side, the number of triangles that have it. Corners with the same `name` count as one.
fn count_sides<K: Copy + Eq + std::hash::Hash>(
    triangles: &[[u32; 3]],
    name: impl Fn(u32) -> K,
) -> HashMap<[K; 2], i64> {
    let mut sides = HashMap::new();
    for triangle in triangles {
        for i in 0..3 {
            let [from, to] = [triangle[i], triangle[(i + 1) % 3]].map(&name);
            *sides.entry([from, to]).or_default() += 1;
        }
    }
    sides
}

/// The number of holes whose boundary vertices all share one position.
fn point_holes(surface: &Surface) -> usize {
    let sides = count_sides(&surface.triangles, |corner| corner);
    let position = |corner: u32| surface.positions[corner as usize];
    let next: HashMap<u32, u32> = sides
        .keys()
        .filter(|[from, to]| !sides.contains_key(&[*to, *from]) && position(*from) == position(*to))
        .map(|&[from, to]| (from, to))
        .collect();
    let comes_back = |&first: &u32| {
        let mut at = first;
        (0..next.len()).any(|_| {
            at = next.get(&at).copied().unwrap_or(at);
            at == first && next.contains_key(&first)
        })
    };
    next.keys().filter(|&first| comes_back(first)).count()
}

/// Checks that the open boundary lies on the border of a volume with 8 samples along each axis.
fn assert_ends_on_volume_border(surface: &Surface) {
    let sides = count_sides(&surface.triangles, |corner| corner);
    let position = |corner: u32| surface.positions[corner as usize];
    for &[from, to] in sides.keys().filter(|[from, to]| !sides.contains_key(&[*to, *from])) {
        let [from, to] = [position(from), position(to)];
        let is_side = |i: usize| from[i] == to[i] && [0.5, 7.5].contains(&from[i]);
        assert!((0..3).any(is_side), "{from:?} to {to:?}");
    }
}

/// Open surfaces, with samples equal to the isovalue also on the volume border.
#[test]
fn clean_removes_point_holes() {
    let [mut before, mut degenerate_before, mut left] = [0; 3];
    for seed in 0..12 {
        let mut noise = Noise(seed);
        let samples = (0..8 * 8 * 8).map(|_| (noise.next() % 5) as u8).collect();
        let kernel = MarchingCubes::new(2.0);
        let volume = Grid::volume([8; 3], Samples::U8(samples));
        let mut surface = kernel.cpu(&Slab::whole(volume, &kernel)).unwrap();
        let holes = point_holes(&surface);
        before += holes;
        degenerate_before += count_degenerate(&surface);
        clean(&mut surface).unwrap();
        assert_eq!(point_holes(&surface), 0, "{seed}");
        // The remaining degenerate triangles are strips whose two ends share one position, on an edge of the volume.
        left += count_degenerate(&surface);
        assert_ends_on_volume_border(&surface);
    }
    assert!(
        before > 20 && left * 200 < degenerate_before,
        "{before} {left} of {degenerate_before}"
    );
}

#[test]
fn cleaned_surfaces_are_closed_manifolds_of_the_same_volume() {
    for (side, values, iso, seed) in
        [(9, 3, 1.0, 1), (12, 4, 1.0, 2), (12, 4, 2.0, 3), (10, 5, 0.0, 4), (14, 9, 7.0, 5)]
    {
        let name = format!("{side} {values} {iso}");
        let whole = tied_surface(side, values, iso, seed);
        let before = Stats::measure(&whole).unwrap();
        assert!(
            count_degenerate(&whole) > 20 && before.flat == count_degenerate(&whole) as u64,
            "{name}"
        );
        let mut cleaned = whole.clone();
        let report = clean(&mut cleaned).unwrap();
        let after = Stats::measure(&cleaned).unwrap();
        assert_eq!((count_degenerate(&cleaned), after.flat, after.closed), (0, 0, true), "{name}");
        assert_eq!(report.triangles, whole.triangles.len() - cleaned.triangles.len(), "{name}");
        // Handles and parts are kept, except parts that consist of a single point.
        assert_eq!(after.genus, before.genus, "{name}");
        assert_eq!(after.components + report.flat_parts, before.components, "{name}");
        assert!(count_sides(&cleaned.triangles, |corner| corner).values().all(|&count| count == 1));
        let distinct: HashSet<[u32; 3]> = cleaned
            .positions
            .iter()
            .map(|position| position.map(|v| (v + 0.0).to_bits()))
            .collect();
        assert_eq!(
            distinct.len(),
            cleaned.positions.len(),
            "{name}: two vertices share a position"
        );
        // A tube that is pinched to a point is opened slightly.
        let [one, other] = [&whole, &cleaned].map(enclosed_volume);
        assert!((one - other).abs() <= 0.01 * one.abs(), "{name}: {one} {other}");
        assert_eq!(cleaned.normals.is_empty(), whole.normals.is_empty(), "{name}");
        assert!(cleaned.normals.is_empty() || cleaned.normals.len() == cleaned.positions.len());
    }
}

#[test]
fn clean_leaves_surfaces_without_ties_unchanged() {
    let whole = tied_surface(9, 5, 1.5, 6);
    let mut cleaned = whole.clone();
    assert_eq!(clean(&mut cleaned).unwrap().triangles, 0);
    assert!(count_degenerate(&whole) == 0 && cleaned == whole);
}

#[test]
fn stl_is_closed_and_has_no_degenerate_triangles() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut noise = Noise(8);
    let samples: Vec<u8> = (0..10 * 11 * 12).map(|_| (noise.next() % 4) as u8).collect();
    fs::write(folder.join("v_10x11x12_uint8.raw"), &samples).unwrap();
    let mesh = |rest: &str| works(folder, &format!("mesh v_10x11x12_uint8.raw --close {rest}"));
    let stderr = mesh("--iso 1 m.stl");
    assert!(stderr.contains("degenerate triangles left out"), "{stderr}");
    let bytes = fs::read(folder.join("m.stl")).unwrap();
    let float = |at: usize| f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    // Corners are identified by position, as STL readers do.
    let corners: Vec<[u32; 3]> = (84..bytes.len())
        .step_by(50)
        .flat_map(|at| {
            [1, 2, 3].map(|i| [0, 4, 8].map(|c| (float(at + 12 * i + c) + 0.0).to_bits()))
        })
        .collect();
    let triangles: Vec<[u32; 3]> =
        (0..corners.len() as u32 / 3).map(|i| [3 * i, 3 * i + 1, 3 * i + 2]).collect();
    assert_eq!(bytes[80..84], (triangles.len() as u32).to_le_bytes());
    let position = |corner: u32| corners[corner as usize];
    assert!(triangles.iter().all(|&[a, b, c]| {
        position(a) != position(b) && position(b) != position(c) && position(c) != position(a)
    }));
    assert!(
        count_sides(&triangles, position).values().all(|&count| count == 1),
        "an edge has four triangles"
    );
    let stderr = mesh("--iso 1.5 n.stl");
    assert!(!stderr.contains("degenerate") && !stderr.contains("not closed"), "{stderr}");
    for (name, is_reported) in [("o.stl", true), ("o.3mf", true), ("o.ply", false)] {
        let stderr = works(folder, &format!("mesh v_10x11x12_uint8.raw --iso 1.5 {name}"));
        assert_eq!(stderr.contains("not closed: it ends at the border"), is_reported, "{stderr}");
    }
    mesh("--iso 1 t.stl --ascii");
    let text = fs::read_to_string(folder.join("t.stl")).unwrap();
    assert_eq!(text.matches("endfacet").count(), triangles.len());

    let stderr = mesh("--iso 1 m.ply --stats");
    assert!(stderr.contains("degenerate triangles (--clean leaves them out)"), "{stderr}");
    let stderr = mesh("--iso 1 m.ply --stats --clean");
    assert!(stderr.contains("degenerate triangles left out"), "{stderr}");
    assert!(stderr.contains(", closed") && !stderr.contains("--clean leaves"), "{stderr}");
    let (code, stderr) =
        run(folder, "mesh v_10x11x12_uint8.raw --iso 1 --clean --shard 0/2 a.part");
    assert!(code == 2 && stderr.contains("cannot be combined with --clean"), "{stderr}");
}
