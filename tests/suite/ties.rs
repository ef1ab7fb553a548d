//! Samples that equal the isovalue: degenerate triangles, and surfaces without them.

use std::{
    collections::{HashMap, HashSet},
    fs,
};

use gpuproc::{
    data::{samples::Samples, surface::Surface, volume::Volume},
    device::Kernel,
    kernels::mesh::{
        MarchingCubes, Slab,
        post::{Stats, clean},
    },
};

use crate::common::{Noise, run, works};

/// The surface at `iso` of random samples, many of which equal `iso`.
fn tied(side: usize, values: u64, iso: f64, seed: u64) -> Surface {
    let mut noise = Noise(seed);
    let samples = (0..side.pow(3)).map(|_| (noise.next() % values) as u8).collect();
    let kernel =
        MarchingCubes { close: true, normals: seed.is_multiple_of(2), ..MarchingCubes::new(iso) };
    let volume = Volume { dims: [side; 3], samples: Samples::U8(samples) };
    kernel.cpu(&Slab::whole(volume, &kernel)).unwrap()
}

/// The number of triangles with two corners at the same position.
fn flat(surface: &Surface) -> usize {
    let place = |corner: u32| surface.positions[corner as usize];
    let is_flat = |&&[a, b, c]: &&[u32; 3]| {
        place(a) == place(b) || place(b) == place(c) || place(c) == place(a)
    };
    surface.triangles.iter().filter(is_flat).count()
}

/// For each side, as a pair of names of corners, how often triangles run along it in this direction. Corners with the
/// same `name` count as one.
fn sides<K: Copy + Eq + std::hash::Hash>(
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

/// Six times the enclosed volume, which is exact for corners at multiples of a power of two.
fn volume(surface: &Surface) -> f64 {
    let six_times = |&triangle: &[u32; 3]| {
        let [a, b, c] = surface.corners::<f64>(triangle);
        let cross =
            [b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0]];
        (0..3).map(|i| a[i] * cross[i]).sum::<f64>()
    };
    surface.triangles.iter().map(six_times).sum()
}

/// The number of holes whose rim is a single point.
fn point_holes(surface: &Surface) -> usize {
    let sides = sides(&surface.triangles, |corner| corner);
    let place = |corner: u32| surface.positions[corner as usize];
    let next: HashMap<u32, u32> = sides
        .keys()
        .filter(|[from, to]| !sides.contains_key(&[*to, *from]) && place(*from) == place(*to))
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

/// Asserts that the surface of 8 samples along each axis ends at the box.
fn is_on_box(surface: &Surface) {
    let sides = sides(&surface.triangles, |corner| corner);
    let place = |corner: u32| surface.positions[corner as usize];
    for &[from, to] in sides.keys().filter(|[from, to]| !sides.contains_key(&[*to, *from])) {
        let [from, to] = [place(from), place(to)];
        let is_side = |i: usize| from[i] == to[i] && [0.5, 7.5].contains(&from[i]);
        assert!((0..3).any(is_side), "{from:?} to {to:?}");
    }
}

/// Surfaces that end at the box, on which samples also equal the isovalue.
#[test]
fn clean_surfaces_have_no_holes_of_no_size() {
    let [mut before, mut flat_before, mut left] = [0; 3];
    for seed in 0..12 {
        let mut noise = Noise(seed);
        let samples = (0..8 * 8 * 8).map(|_| (noise.next() % 5) as u8).collect();
        let kernel = MarchingCubes::new(2.0);
        let volume = Volume { dims: [8; 3], samples: Samples::U8(samples) };
        let mut surface = kernel.cpu(&Slab::whole(volume, &kernel)).unwrap();
        let holes = point_holes(&surface);
        before += holes;
        flat_before += flat(&surface);
        clean(&mut surface).unwrap();
        assert_eq!(point_holes(&surface), 0, "{seed}");
        // The remaining ones are strips of the surface whose two ends are at one point, on an edge of the box.
        left += flat(&surface);
        is_on_box(&surface);
    }
    assert!(before > 20 && left * 200 < flat_before, "{before} {left} of {flat_before}");
}

#[test]
fn clean_surfaces_are_closed_manifolds_of_the_same_volume() {
    for (side, values, iso, seed) in
        [(9, 3, 1.0, 1), (12, 4, 1.0, 2), (12, 4, 2.0, 3), (10, 5, 0.0, 4), (14, 9, 7.0, 5)]
    {
        let name = format!("{side} {values} {iso}");
        let whole = tied(side, values, iso, seed);
        let before = Stats::measure(&whole).unwrap();
        assert!(flat(&whole) > 20 && before.flat == flat(&whole) as u64, "{name}");
        let mut cleaned = whole.clone();
        let told = clean(&mut cleaned).unwrap();
        let after = Stats::measure(&cleaned).unwrap();
        assert_eq!((flat(&cleaned), after.flat, after.closed), (0, 0, true), "{name}");
        assert_eq!(told.triangles, whole.triangles.len() - cleaned.triangles.len(), "{name}");
        // Handles and parts are kept, except parts at a single point.
        assert_eq!(after.genus, before.genus, "{name}");
        assert_eq!(after.components + told.flat_parts, before.components, "{name}");
        assert!(sides(&cleaned.triangles, |corner| corner).values().all(|&count| count == 1));
        let places: HashSet<[u32; 3]> =
            cleaned.positions.iter().map(|place| place.map(|v| (v + 0.0).to_bits())).collect();
        assert_eq!(places.len(), cleaned.positions.len(), "{name}: vertices that touch");
        // A tube that was pinched to a point is opened a little.
        let [one, other] = [&whole, &cleaned].map(volume);
        assert!((one - other).abs() <= 0.01 * one.abs(), "{name}: {one} {other}");
        assert_eq!(cleaned.normals.is_empty(), whole.normals.is_empty(), "{name}");
        assert!(cleaned.normals.is_empty() || cleaned.normals.len() == cleaned.positions.len());
    }
}

#[test]
fn surfaces_without_ties_stay_as_they_are() {
    let whole = tied(9, 5, 1.5, 6);
    let mut cleaned = whole.clone();
    assert_eq!(clean(&mut cleaned).unwrap().triangles, 0);
    assert!(flat(&whole) == 0 && cleaned == whole);
}

#[test]
fn stl_is_closed_without_triangles_of_no_area() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut noise = Noise(8);
    let samples: Vec<u8> = (0..10 * 11 * 12).map(|_| (noise.next() % 4) as u8).collect();
    fs::write(folder.join("v_10x11x12_uint8.raw"), &samples).unwrap();
    let mesh = |rest: &str| works(folder, &format!("mesh v_10x11x12_uint8.raw --close {rest}"));
    let told = mesh("--iso 1 m.stl");
    assert!(told.contains("degenerate triangles left out"), "{told}");
    let bytes = fs::read(folder.join("m.stl")).unwrap();
    let float = |at: usize| f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    // Corners are identified by position, as readers of STL join them.
    let places: Vec<[u32; 3]> = (84..bytes.len())
        .step_by(50)
        .flat_map(|at| {
            [1, 2, 3].map(|i| [0, 4, 8].map(|c| (float(at + 12 * i + c) + 0.0).to_bits()))
        })
        .collect();
    let triangles: Vec<[u32; 3]> =
        (0..places.len() as u32 / 3).map(|i| [3 * i, 3 * i + 1, 3 * i + 2]).collect();
    assert_eq!(bytes[80..84], (triangles.len() as u32).to_le_bytes());
    let place = |corner: u32| places[corner as usize];
    assert!(triangles.iter().all(|&[a, b, c]| {
        place(a) != place(b) && place(b) != place(c) && place(c) != place(a)
    }));
    assert!(sides(&triangles, place).values().all(|&count| count == 1), "edges of four faces");
    let told = mesh("--iso 1.5 n.stl");
    assert!(!told.contains("without an area") && !told.contains("not closed"), "{told}");
    for (name, is_told) in [("o.stl", true), ("o.3mf", true), ("o.ply", false)] {
        let told = works(folder, &format!("mesh v_10x11x12_uint8.raw --iso 1.5 {name}"));
        assert_eq!(told.contains("not closed: it ends at the border"), is_told, "{told}");
    }
    mesh("--iso 1 t.stl --ascii");
    let text = fs::read_to_string(folder.join("t.stl")).unwrap();
    assert_eq!(text.matches("endfacet").count(), triangles.len());

    let told = mesh("--iso 1 m.ply --stats");
    assert!(told.contains("degenerate triangles (--clean leaves them out)"), "{told}");
    let told = mesh("--iso 1 m.ply --stats --clean");
    assert!(told.contains("degenerate triangles left out"), "{told}");
    assert!(told.contains(", closed") && !told.contains("--clean leaves"), "{told}");
    let (code, told) = run(folder, "mesh v_10x11x12_uint8.raw --iso 1 --clean --shard 0/2 a.part");
    assert!(code == 2 && told.contains("cannot be combined with --clean"), "{told}");
}
