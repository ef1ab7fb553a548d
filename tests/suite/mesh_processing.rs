//! Measuring, filtering, smoothing and simplifying surfaces.

use std::collections::HashMap;

use gpuproc::{
    data::{grid::Grid, samples::Samples, surface::Surface},
    device::Kernel,
    kernels::mesh::{
        MarchingCubes, Slab,
        post::{Goal, PartFilter, Stats, keep_parts, simplify, smooth},
    },
};

use crate::{
    asserts::assert_near,
    common::Noise,
    mesh::closing_kernel,
    mesh_reference::{is_closed, volume},
    surface_geometry::enclosed_volume,
};

/// Keeps only the part with the most triangles.
const LARGEST: PartFilter =
    PartFilter { largest: Some(1), min_triangles: 0, min_volume: 0.0, fill_holes: false };

/// Balls in a box with `n` samples along each side. The value falls by 10 per step, and is 100 on the surface.
pub fn balls(n: usize, balls: &[([f64; 3], f64)]) -> Grid {
    let value = |i: usize| {
        let p = [i % n, i / n % n, i / n / n].map(|v| v as f64 + 0.5);
        let inside = balls.iter().map(|(centre, radius)| {
            let squares = (0..3).map(|axis| (p[axis] - centre[axis]).powi(2));
            radius - squares.sum::<f64>().sqrt()
        });
        (100.0 + 10.0 * inside.fold(f64::MIN, f64::max)) as f32
    };
    volume([n; 3], Samples::F32((0..n * n * n).map(value).collect()))
}

fn ball_surface(n: usize, centres_and_radii: &[([f64; 3], f64)]) -> Surface {
    let kernel = MarchingCubes::new(100.0);
    kernel.cpu(&Slab::whole(balls(n, centres_and_radii), &kernel)).unwrap()
}

/// A ball with a radius of 13 voxels.
fn one_ball() -> Surface {
    ball_surface(48, &[([17.0; 3], 13.0)])
}

/// The ball of [`one_ball`], and one with a radius of 5 voxels.
fn two_balls() -> Surface {
    ball_surface(48, &[([17.0; 3], 13.0), ([39.0; 3], 5.0)])
}

#[test]
fn measures_area_volume_and_parts() {
    let two = two_balls();
    let stats = Stats::measure(&two).unwrap();
    let sphere =
        |r: f64| [4.0 * std::f64::consts::PI * r * r, 4.0 / 3.0 * std::f64::consts::PI * r.powi(3)];
    let [area, volume] = [0, 1].map(|i| sphere(13.0)[i] + sphere(5.0)[i]);
    assert!((stats.area / area - 1.0).abs() < 0.01, "{stats:?}");
    assert!((stats.volume / volume - 1.0).abs() < 0.02, "{stats:?}");
    assert_near(stats.volume, enclosed_volume(&two), 1e-3);
    assert_eq!((stats.components, stats.closed), (2, true));

    let mut open = one_ball();
    open.triangles.pop();
    assert!(!Stats::measure(&open).unwrap().closed);
}

#[test]
fn keeps_parts_by_rank_triangles_and_volume() {
    let (one, two) = (one_ball(), two_balls());
    let mut largest = two.clone();
    keep_parts(&mut largest, &LARGEST).unwrap();
    assert_eq!(
        (largest.positions.len(), largest.triangles.len()),
        (one.positions.len(), one.triangles.len())
    );
    assert_eq!(Stats::measure(&largest).unwrap().components, 1);

    // Each filter keeps both balls, the larger one, or none.
    let count = |parts: PartFilter| {
        let mut kept = two.clone();
        keep_parts(&mut kept, &parts).unwrap();
        Stats::measure(&kept).unwrap().components
    };
    let all = PartFilter::default();
    let triangles = largest.triangles.len() as u32;
    for (parts, expected) in [
        (all, 2),
        (PartFilter { largest: Some(2), ..all }, 2),
        (PartFilter { min_triangles: triangles, ..all }, 1),
        (PartFilter { min_triangles: triangles + 1, ..all }, 0),
        (PartFilter { min_volume: 500.0, ..all }, 2),
        (PartFilter { min_volume: 550.0, ..all }, 1),
        (PartFilter { min_volume: 9300.0, largest: Some(2), ..all }, 0),
    ] {
        assert_eq!(count(parts), expected, "{parts:?}");
    }
}

#[test]
fn smoothing_keeps_volume_and_area() {
    let one = one_ball();
    let before = Stats::measure(&one).unwrap();
    let smoothed = |pairs: u32| {
        let mut smoothed = one.clone();
        smooth(&mut smoothed, pairs).unwrap();
        Stats::measure(&smoothed).unwrap()
    };
    let after = smoothed(20);
    assert!((after.volume / before.volume - 1.0).abs() < 0.01, "no shrinking: {after:?}");
    assert!(after.closed && (after.area / before.area - 1.0).abs() < 0.02, "{after:?}");
    let after = smoothed(100);
    assert!(
        (after.volume / before.volume - 1.0).abs() < 1e-4,
        "neither shrinks nor grows: {after:?}"
    );
}

/// Small and thin parts also keep their volumes: balls, a shell, and a part of one voxel.
#[test]
fn smoothing_keeps_the_volume_of_small_parts() {
    let kernel = MarchingCubes::new(100.0);
    let mut small = balls(40, &[([8.3; 3], 2.0), ([20.2; 3], 1.2), ([30.1; 3], 3.0)]);
    if let Samples::F32(values) = &mut small.samples {
        let shell = |i: usize| {
            let p = [i % 40, i / 40 % 40, i / 1600].map(|v| v as f64 - 19.5);
            (100.0 + 10.0 * (1.1 - (p.iter().map(|v| v * v).sum::<f64>().sqrt() - 18.0).abs()))
                as f32
        };
        values.iter_mut().enumerate().for_each(|(i, value)| *value = value.max(shell(i)));
    }
    let small = kernel.cpu(&Slab::whole(small, &kernel)).unwrap();
    let volumes = |surface: &Surface| {
        (1..=4)
            .map(|largest| {
                let parts = PartFilter { largest: Some(largest), ..PartFilter::default() };
                let mut kept = surface.clone();
                keep_parts(&mut kept, &parts).unwrap();
                enclosed_volume(&kept)
            })
            .collect::<Vec<f64>>()
    };
    for pairs in [1, 10, 33] {
        let mut smoothed = small.clone();
        smooth(&mut smoothed, pairs).unwrap();
        for (before, after) in volumes(&small).into_iter().zip(volumes(&smoothed)) {
            assert!((after / before - 1.0).abs() < 1e-3, "{pairs}: {before} {after}");
        }
        assert!(Stats::measure(&smoothed).unwrap().closed, "{pairs}");
    }
    let mut speck = balls(12, &[([6.5; 3], 0.8)]);
    if let Samples::F32(values) = &mut speck.samples {
        values.iter_mut().for_each(|value| *value = value.max(0.0));
    }
    let mut speck = kernel.cpu(&Slab::whole(speck, &kernel)).unwrap();
    let before = Stats::measure(&speck).unwrap();
    smooth(&mut speck, 200).unwrap();
    let ratio = Stats::measure(&speck).unwrap().volume / before.volume;
    assert!((ratio - 1.0).abs() < 1e-3 && before.closed, "{ratio}");
}

#[test]
fn simplifying_reaches_the_size_and_keeps_the_volume() {
    let two = two_balls();
    let mut simple = two.clone();
    simplify(&mut simple, &Goal::share(0.25)).unwrap();
    let ratio = simple.triangles.len() as f64 / two.triangles.len() as f64;
    assert!((0.2..=0.27).contains(&ratio), "{ratio}");
    let [before, after] = [&two, &simple].map(|surface| Stats::measure(surface).unwrap().volume);
    assert_near(after / before, 1.0, 0.02);
    assert!(simple.triangles.iter().flatten().all(|&i| (i as usize) < simple.positions.len()));
}

#[test]
fn empty_surfaces_stay_empty() {
    let mut empty = Surface::default();
    keep_parts(&mut empty, &LARGEST).unwrap();
    smooth(&mut empty, 3).unwrap();
    simplify(&mut empty, &Goal::share(0.5)).unwrap();
    assert_eq!(
        Stats::measure(&empty).unwrap(),
        Stats { closed: true, genus: Some(0), ..Default::default() }
    );
}

/// Whether each edge has exactly two triangles, in opposite directions.
fn is_closed_manifold(surface: &Surface) -> bool {
    let mut sides: HashMap<[u32; 2], [u32; 2]> = HashMap::new();
    for &[a, b, c] in &surface.triangles {
        for (a, b) in [(a, b), (b, c), (c, a)] {
            sides.entry([a.min(b), a.max(b)]).or_default()[usize::from(a < b)] += 1;
        }
    }
    sides.values().all(|&counts| counts == [1, 1])
}

/// On noise, edge collapses could leave triangles back to back and edges with four triangles.
#[test]
fn simplified_noise_is_a_closed_manifold() {
    let mut noise = Noise(5);
    for (n, iso, ratio) in [(8, 127.5, 0.5), (12, 180.5, 0.2), (12, 127.5, 0.5)] {
        let kernel = closing_kernel(iso);
        let samples = Samples::U8(noise.bytes(n * n * n));
        let whole = kernel.cpu(&Slab::whole(volume([n; 3], samples), &kernel)).unwrap();
        let mut simple = whole.clone();
        simplify(&mut simple, &Goal::share(ratio)).unwrap();
        assert!(
            is_closed_manifold(&simple) && Stats::measure(&simple).unwrap().closed,
            "{n} {iso} {ratio}"
        );
        assert!(simple.triangles.len() > whole.triangles.len() / 20, "{n} {iso} {ratio}");
        assert!(simple.triangles.iter().flatten().all(|&i| (i as usize) < simple.positions.len()));
        let mut again = whole;
        simplify(&mut again, &Goal::share(ratio)).unwrap();
        assert!(again.triangles == simple.triangles, "simplifying twice gives different triangles");
    }
    // Two tetrahedra that share an edge are closed but not a manifold.
    let corners = [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]];
    let touching = Surface {
        positions: (0..6u8).map(|i| [i, i * i, i * i * i].map(f32::from)).collect(),
        triangles: [[0, 1, 2, 3], [0, 1, 4, 5]]
            .iter()
            .flat_map(|own: &[u32; 4]| corners.map(|corner| corner.map(|i: usize| own[i])))
            .collect(),
        ..Surface::default()
    };
    assert!(!Stats::measure(&touching).unwrap().closed && is_closed(&touching));
}
