//! Simplified surfaces: topology, orientation and distance, each checked by a naive reference.

use std::collections::{BTreeSet, HashMap};

use gpuproc::{
    data::{grid::Grid, samples::Samples, surface::Surface},
    device::Kernel,
    kernels::mesh::{
        MarchingCubes, Slab,
        post::{Goal, Size, distance, simplify},
    },
};

use crate::{
    asserts::assert_contains,
    common::{Noise, run, works},
    inputs::fixture,
    surface_geometry::{
        Topology, Vec3, assert_orientation_kept, centroids, corners, distance_to_surface,
        distance_to_triangle, dot, enclosed_volume, normal, rms_and_max_distance, sample_points,
        sub, topology, vertices,
    },
};

fn field(n: usize, value: impl Fn(Vec3) -> f64) -> Grid {
    let at = |i: usize| [i % n, i / n % n, i / n / n].map(|v| v as f64 + 0.5);
    let values = (0..n * n * n).map(|i| value(at(i)) as f32).collect();
    Grid::volume([n; 3], Samples::F32(values))
}

fn ball(point: Vec3) -> f64 {
    let d = sub(point, [16.1, 15.8, 16.3]);
    12.3 - dot(d, d).sqrt()
}

/// A plate with a hole and sharp edges, thinner than two voxels.
fn plate(point: Vec3) -> f64 {
    let [x, y, z] = sub(point, [12.1, 12.2, 12.0]);
    let plate = (9.0 - x.abs()).min(0.9 - y.abs()).min(9.0 - z.abs());
    plate.min((x * x + z * z).sqrt() - 4.0)
}

fn mesh_volume(volume: Grid, iso: f64, close: bool) -> Surface {
    let kernel = MarchingCubes { close, ..MarchingCubes::new(iso) };
    kernel.cpu(&Slab::whole(volume, &kernel)).unwrap()
}

fn simplified(whole: &Surface, goal: &Goal) -> Surface {
    let mut simple = whole.clone();
    simplify(&mut simple, goal).unwrap();
    simple
}

/// Like [`simplified`], on this number of threads.
fn simplified_with(threads: usize, surface: &Surface, goal: &Goal) -> Surface {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| simplified(surface, goal))
}

/// The number of triangles of each edge.
fn count_triangles_of_edges(surface: &Surface) -> HashMap<[u32; 2], u32> {
    let mut counts: HashMap<[u32; 2], u32> = HashMap::new();
    for &[a, b, c] in &surface.triangles {
        for (a, b) in [(a, b), (b, c), (c, a)] {
            *counts.entry([a.min(b), a.max(b)]).or_default() += 1;
        }
    }
    counts
}

/// The limits are the distances that fast-simplification 0.1.13 reaches for the same ball; in the last case it leaves a
/// dent.
#[test]
fn ball_is_closer_than_by_fast_simplification() {
    let whole = mesh_volume(field(32, ball), 0.0, false);
    assert_eq!(whole.triangles.len(), 5672);
    for (share, rms, max) in
        [(0.5, 0.00929, 0.0352), (0.25, 0.0245, 0.0846), (0.1, 0.0662, 0.185), (0.03, 1.07, 3.45)]
    {
        let simple = simplified(&whole, &Goal::share(share));
        let target = (5672.0 * share).round();
        assert!((target - 1.0..=target).contains(&(simple.triangles.len() as f64)), "{share}");
        let found = rms_and_max_distance(&whole, &simple);
        assert!(found[0] <= rms && found[1] <= max, "{share}: {found:?}");
        assert_eq!(topology(&simple), Topology { parts: 1, euler: 2, loops: 0 });
        assert_orientation_kept(&simple, &whole, "ball");
    }
}

#[test]
fn keeps_topology_and_orientation() {
    let mut noise = Noise(11);
    let mut smooth_noise = |n: usize| {
        let values: Vec<f64> = (0..n * n * n).map(|_| noise.unit()).collect();
        // Means of 3x3x3 samples give surfaces with handles and parts, few of which are single voxels.
        let at = move |p: Vec3| {
            let [x, y, z] = p.map(|v| v as usize);
            let near = |v: usize| v.saturating_sub(1)..=(v + 1).min(n - 1);
            let all = near(z).flat_map(|z| near(y).map(move |y| (z, y)));
            let cells = all.flat_map(|(z, y)| near(x).map(move |x| x + n * (y + n * z)));
            let [sum, count] = cells.fold([0.0; 2], |[s, c], i| [s + values[i], c + 1.0]);
            sum / count
        };
        field(n, at)
    };
    let cases = [
        ("plate", mesh_volume(field(24, plate), 0.0, false)),
        ("open noise", mesh_volume(smooth_noise(20), 0.5, false)),
        ("closed noise", mesh_volume(smooth_noise(20), 0.5, true)),
    ];
    for (name, whole) in &cases {
        let before = topology(whole);
        for share in [0.6, 0.3, 0.1] {
            let simple = simplified(whole, &Goal::share(share));
            assert_eq!(topology(&simple), before, "{name} {share}");
            assert!(simple.triangles.len() < whole.triangles.len(), "{name} {share}");
            if *name == "plate" {
                assert_orientation_kept(&simple, whole, name);
            }
        }
    }
}

/// A bumpy shell whose wall is a fifth as thick as the remaining triangles are long. Unless corners are moved, one side
/// passes through the other, and some twenty of the 388 triangles face away from the nearest original triangle.
#[test]
fn opposite_sides_of_thin_walls_do_not_cross() {
    let shell = |point: Vec3| {
        let d = sub(point, [14.1, 13.8, 14.2]);
        let bumps = (point[0] / 2.0).sin() * (point[2] / 2.5).cos();
        0.5 - (dot(d, d).sqrt() - 10.0 - bumps).abs()
    };
    let whole = mesh_volume(field(28, shell), 0.0, false);
    let simple = simplified(&whole, &Goal::share(0.05));
    let against = centroids(&simple).zip(&simple.triangles).filter(|(point, triangle)| {
        let nearest = whole.triangles[distance_to_surface(*point, &whole).1];
        dot(normal(corners(&simple, **triangle)), normal(corners(&whole, nearest))) < 0.0
    });
    let against = against.count();
    assert!(against <= 4, "{against}");
}

/// Walls and necks of single samples, many of them at block boundaries: a neck that ends at a vertex of several blocks
/// must not be cut.
#[test]
fn simplifying_in_blocks_keeps_parts_and_handles() {
    let mut noise = Noise(12);
    let values = (0..60 * 60 * 60).map(|_| match noise.next() % 15 {
        0 | 1 => 0,
        2 | 3 => 2,
        _ => 1,
    });
    let bytes = Noise(13).bytes(52 * 52 * 52);
    for (side, samples, iso) in [(60, values.collect(), 0.5), (52, bytes, 127.5)] {
        let volume = Grid::volume([side; 3], Samples::U8(samples));
        let whole = mesh_volume(volume, iso, true);
        assert!(whole.triangles.len() > 200_000, "{}", whole.triangles.len());
        let simple = simplified(&whole, &Goal::share(0.1));
        assert_eq!(topology(&simple), topology(&whole), "{iso}");
    }
}

/// Two triangulations of a twisted square, along either diagonal. They share their boundary and are farthest apart at
/// the midpoints of the diagonals.
#[test]
fn distance_is_measured_between_vertices() {
    let positions = vec![[0.0, 0.0, 0.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0], [0.0, 1.0, 1.0]];
    let [one, other] = [vec![[0, 1, 2], [0, 2, 3]], vec![[0, 1, 3], [1, 2, 3]]]
        .map(|triangles| Surface { positions: positions.clone(), triangles, ..Surface::default() });
    let expected = 1.0 / 3f64.sqrt();
    let found = distance(&one, &other).unwrap();
    assert!((expected..=1.01 * expected).contains(&found), "{found} {expected}");
}

/// Volume and bounds are kept even if few triangles remain, and collapses stop before they distort the surface: a noisy
/// ball has walls, bubbles and handles that must stay.
#[test]
fn keeps_volume_and_bounds_at_extreme_reductions() {
    let mut noise = Noise(31);
    let values: Vec<f64> = (0..24 * 24 * 24).map(|_| 4.0 * noise.unit() - 2.0).collect();
    let noisy = |p: Vec3| {
        let [x, y, z] = p.map(|v| v as usize);
        let d = sub(p, [12.1, 11.9, 12.0]);
        8.0 - dot(d, d).sqrt() + values[x + 24 * (y + 24 * z)]
    };
    let cases = [
        ("ball", mesh_volume(field(32, ball), 0.0, true), 0.02, 0.003),
        ("plate", mesh_volume(field(24, plate), 0.0, true), 0.05, 0.01),
        ("noise", mesh_volume(field(24, noisy), 0.0, true), 0.01, 0.02),
    ];
    for (name, whole, share, lost) in &cases {
        let mut simple = whole.clone();
        let done = simplify(&mut simple, &Goal::share(*share)).unwrap();
        let ratio = enclosed_volume(&simple) / enclosed_volume(whole);
        assert!((ratio - 1.0).abs() <= *lost, "{name}: {ratio}");
        let ([low, high], [new_low, new_high]) =
            (whole.bounds().unwrap(), simple.bounds().unwrap());
        let is_inside = (0..3).all(|i| low[i] <= new_low[i] && new_high[i] <= high[i]);
        assert!(is_inside, "{name}: {new_low:?} {new_high:?}");
        if simple.triangles.len() > done.wanted + 1 {
            let naive = vertices(&simple).map(|point| distance_to_surface(point, whole).0);
            let reported = done.distance.unwrap();
            assert!(naive.fold(0.0, f64::max) <= reported && reported < 3.0, "{name}: {reported}");
        }
        assert_eq!(done.distance.is_some(), simple.triangles.len() > done.wanted + 1, "{name}");
    }
}

/// Random bytes: parts that touch, and more handles than the requested number of triangles can form.
#[test]
fn stops_before_the_topology_would_change() {
    let samples = Samples::U8(Noise(5).bytes(14 * 14 * 14));
    let whole = mesh_volume(Grid::volume([14; 3], samples), 127.5, true);
    let mut simple = whole.clone();
    let done = simplify(&mut simple, &Goal::share(0.01)).unwrap();
    assert_eq!(topology(&simple), topology(&whole));
    assert!(simple.triangles.len() > done.wanted, "{}", simple.triangles.len());
    assert!(simple.triangles.len() < whole.triangles.len(), "{}", simple.triangles.len());
}

#[test]
fn open_boundaries_stay_on_the_volume_border() {
    // A ball cut off by three faces of the volume and the edges between them.
    let whole = mesh_volume(
        field(24, |p| {
            let d = sub(p, [3.0, 4.0, 5.0]);
            15.0 - dot(d, d).sqrt()
        }),
        0.0,
        false,
    );
    let boundary = |surface: &Surface| {
        let mut sides = count_triangles_of_edges(surface);
        sides.retain(|_, count| *count == 1);
        sides
            .into_keys()
            .map(|side| side.map(|i| surface.positions[i as usize]))
            .collect::<Vec<_>>()
    };
    assert!(boundary(&whole).len() > 40, "{}", boundary(&whole).len());
    for share in [0.5, 0.1, 0.02] {
        let simple = simplified(&whole, &Goal::share(share));
        let left = boundary(&simple);
        assert!(left.len() < boundary(&whole).len(), "{share}");
        // If both ends lie on one face of the volume, the whole edge does.
        let on_box = |side: &[[f32; 3]; 2]| (0..3).any(|i| side.iter().all(|p| p[i] == 0.5));
        assert!(left.iter().all(on_box), "{share}: {left:?}");
    }
}

/// Where samples equal the isovalue, several vertices share a position. The degenerate triangles between them are
/// removed.
#[test]
fn removes_degenerate_triangles_and_parts() {
    let values = (0..20 * 20 * 20)
        .map(|i| {
            let [x, y, z] = [i % 20, i / 20 % 20, i / 400].map(|v| f64::from(v) - 9.5);
            (130.0 - 5.0 * (x * x + y * y + z * z).sqrt()).round() as u8
        })
        .collect();
    let mut volume = Grid::volume([20; 3], Samples::U8(values));
    // A sample inside the ball that equals the isovalue: a part whose vertices all have the same position.
    if let Samples::U8(values) = &mut volume.samples {
        values[9 + 20 * (9 + 20 * 9)] = 100;
    }
    let whole = mesh_volume(volume, 100.0, false);
    let flat = |surface: &Surface| {
        let area = |&triangle: &[u32; 3]| normal(corners(surface, triangle));
        surface
            .triangles
            .iter()
            .filter(|triangle| dot(area(triangle), area(triangle)) < 1e-12)
            .count()
    };
    assert!(flat(&whole) > 8 && topology(&whole).parts == 2);
    let mut simple = whole.clone();
    let done = simplify(&mut simple, &Goal::share(0.4)).unwrap();
    assert_eq!((done.flat_parts, flat(&simple)), (1, 0));
    assert_eq!(topology(&simple), Topology { parts: 1, euler: 2, loops: 0 });
    // The removed part is far from the others but does not count as an error.
    let mut near = whole.clone();
    let done = simplify(&mut near, &Goal { max_error: Some(0.2), ..Goal::default() }).unwrap();
    assert!(done.distance.unwrap() <= 0.2 && done.flat_parts == 1, "{done:?}");
    assert!(near.triangles.len() < whole.triangles.len() / 3, "{}", near.triangles.len());
}

/// An 8-bit volume at an integer isovalue, where degenerate triangles join parts of the surface.
#[test]
fn max_error_holds_where_samples_equal_the_isovalue() {
    let samples = Samples::U8(std::fs::read(fixture("skull_64x64x64_uint8.raw")).unwrap());
    let whole = mesh_volume(Grid::volume([64; 3], samples), 40.0, false);
    assert!(whole.flat_triangles() > 100);
    let mut simple = whole.clone();
    let done = simplify(&mut simple, &Goal { max_error: Some(0.5), ..Goal::default() }).unwrap();
    assert!(simple.triangles.len() < 2_000, "{} triangles", simple.triangles.len());
    // A naive search finds all vertices of nondegenerate triangles near the simplified surface.
    let mut used = BTreeSet::new();
    for &triangle in whole.triangles.iter().filter(|&&triangle| !whole.is_flat(triangle)) {
        used.extend(triangle);
    }
    let triangles: Vec<_> = simple.triangles.iter().map(|&t| corners(&simple, t)).collect();
    for &vertex in used.iter().step_by(37) {
        let point = whole.positions[vertex as usize].map(f64::from);
        let near =
            triangles.iter().map(|&t| distance_to_triangle(point, t)).fold(f64::INFINITY, f64::min);
        assert!(near <= 0.5 + 1e-6, "{near} at {point:?}");
    }
    assert!(done.distance.unwrap() <= 0.5, "{done:?}");
}

#[test]
fn max_error_holds_between_vertices() {
    let whole = mesh_volume(field(24, plate), 0.0, false);
    // The triangle counts are hardly higher than with limits that hold only at vertices and centroids.
    for (limit, triangles) in [(0.02, 400), (0.1, 290), (0.3, 140)] {
        let mut simple = whole.clone();
        let goal = Goal { max_error: Some(limit), ..Goal::default() };
        let reported = simplify(&mut simple, &goal).unwrap().distance.unwrap();
        let both = [(&whole, &simple), (&simple, &whole)].map(|(from, to)| {
            // The finer surface needs fewer sample points per triangle.
            let steps = if from.triangles.len() > to.triangles.len() { 2 } else { 6 };
            let points = sample_points(from, steps);
            points.map(|point| distance_to_surface(point, to).0).fold(0.0, f64::max)
        });
        let found = both[0].max(both[1]);
        assert!(found <= reported && reported <= limit, "{limit}: {reported} {found}");
        assert!(simple.triangles.len() < triangles, "{limit}: {}", simple.triangles.len());
        let precise = distance(&whole, &simple).unwrap();
        assert!(
            found <= precise && precise <= 1.011 * reported,
            "{limit}: {precise} {reported} {found}"
        );
        assert!(precise <= 1.2 * found, "{limit}: {precise} {found}");
    }
}

#[test]
fn result_is_independent_of_the_number_of_threads() {
    let whole = mesh_volume(field(32, ball), 0.0, false);
    let goal = Goal { size: Size::Triangles(1000), ..Goal::default() };
    let with = |threads: usize| simplified_with(threads, &whole, &goal);
    let one = with(1);
    assert_eq!(one.triangles.len(), 1000);
    assert!([2, 5].into_iter().all(|threads| with(threads) == one));
}

/// A gyroid large enough to be simplified in blocks. The distance of a point to it is the field value divided by the
/// length of the gradient.
#[test]
fn simplifying_in_blocks_leaves_no_seams() {
    let step = std::f64::consts::TAU / 32.0;
    let gyroid = |p: Vec3| {
        let ([sx, sy, sz], [cx, cy, cz]) =
            (p.map(|v| (step * v).sin()), p.map(|v| (step * v).cos()));
        let slope = [cx * cy - sz * sx, cy * cz - sx * sy, cz * cx - sy * sz];
        (sx * cy + sy * cz + sz * cx, slope.map(|v| step * v))
    };
    let whole = mesh_volume(field(80, |p| gyroid(p).0), 0.0, false);
    assert_eq!(whole.triangles.len(), 148_536);
    let before = topology(&whole);
    // The limits are the centroid distances that fast-simplification 0.1.13 reaches for the same gyroid.
    for (share, rms, max) in
        [(0.5, 0.0120, 0.0342), (0.25, 0.0196, 0.102), (0.1, 0.0548, 0.247), (0.03, 0.212, 1.28)]
    {
        let goal = Goal::share(share);
        let with = |threads: usize| simplified_with(threads, &whole, &goal);
        let simple = with(1);
        if share == 0.1 {
            assert!([2, 5, 16].into_iter().all(|threads| with(threads) == simple));
        }
        let target = (148_536.0 * share).round();
        assert!((target - 1.0..=target).contains(&(simple.triangles.len() as f64)), "{share}");
        assert_eq!(topology(&simple), before, "{share}");
        for (point, &triangle) in centroids(&simple).zip(&simple.triangles) {
            let own = normal(corners(&simple, triangle));
            assert!(dot(own, gyroid(point).1) < 0.0, "{share}: triangle flipped at {point:?}");
        }
        let distance = |point: Vec3| {
            let (value, slope) = gyroid(point);
            value.abs() / dot(slope, slope).sqrt()
        };
        let all: Vec<f64> = centroids(&simple).map(distance).collect();
        let squares: f64 = all.iter().map(|d| d * d).sum();
        let found = [(squares / all.len() as f64).sqrt(), all.iter().copied().fold(0.0, f64::max)];
        assert!(found[0] <= rms && found[1] <= 1.05 * max, "{share}: {found:?}");
        // The open boundary stays on the volume border: an edge with one triangle has both ends on one face of the
        // volume.
        let sides = count_triangles_of_edges(&simple);
        let is_on_box = |side: &[u32; 2]| {
            let [a, b] = side.map(|i| simple.positions[i as usize]);
            (0..3).any(|i| a[i] == b[i] && (a[i] == 0.5 || a[i] == 79.5))
        };
        assert!(sides.iter().all(|(side, &count)| count == 2 || is_on_box(side)), "{share}");
    }
}

#[test]
fn tiny_surfaces_are_kept() {
    // A tetrahedron, a triangle, two triangles, nothing.
    let tetrahedron = vec![[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]];
    for triangles in [tetrahedron, vec![[0, 1, 2]], vec![[0, 1, 2], [0, 2, 3]], vec![]] {
        let whole = Surface {
            positions: (0..4u8).map(|i| [i, i * i, i * i * i].map(f32::from)).collect(),
            triangles,
            ..Surface::default()
        };
        let simple = simplified(&whole, &Goal::share(0.1));
        let left = simple.triangles.len();
        // Two triangles may be reduced to one.
        assert!(left == whole.triangles.len() || whole.triangles.len() == 2 && left == 1, "{left}");
    }
}

#[test]
fn simplify_accepts_shares_counts_and_errors() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("b_32x32x32_float32.raw"), field(32, ball).samples.as_bytes())
        .unwrap();
    let mesh = |flags: &str| {
        works(folder, &format!("mesh b_32x32x32_float32.raw o.ply --iso 0 --device cpu {flags}"))
    };
    for (flags, triangles) in [
        ("--simplify 0.25", "1418 triangles"),
        ("--simplify 25%", "1418 triangles"),
        ("--simplify 1000", "1000 triangles"),
        ("--simplify 1", "5672 triangles"),
        ("--simplify 100000", "5672 triangles"),
    ] {
        let reported = mesh(flags);
        assert!(reported.contains(triangles), "{flags}: {reported}");
    }
    assert_contains(&mesh("--max-error 0.1 --stats"), "moved by at most 0.0");
    let reported = mesh("--max-error 0.1 --simplify 101");
    assert!(
        reported.contains("instead of 101: fewer would move the surface farther"),
        "{reported}"
    );
    let reported = mesh("--simplify 0.0001");
    assert!(reported.contains("instead of 1: fewer would move the surface too far"), "{reported}");
    assert!(reported.contains("the surface has moved by at most "), "{reported}");
    for size in [2, 25, 100] {
        let line = format!("mesh b_32x32x32_float32.raw o.ply --iso 0 --simplify {size}");
        let (code, reported) = run(folder, &line);
        assert!(code == 2 && reported.contains(&format!("{size}% keeps that share")), "{reported}");
    }
    let share = "expected a share of the triangles";
    let distance = "expected a number greater than 0";
    for (flags, message) in [
        ("--simplify 0", share),
        ("--simplify 1.5", share),
        ("--simplify 200%", share),
        ("--max-error 0", distance),
        ("--max-error nan", distance),
    ] {
        let (code, reported) =
            run(folder, &format!("mesh b_32x32x32_float32.raw o.ply --iso 0 {flags}"));
        assert!(code == 2 && reported.contains(message), "{flags}: {reported}");
    }
}
