//! The skull of `fixtures`, made of a few smooth shapes.

use std::fs;

use crate::inputs::fixture;

// ---- the fixture ----

/// A skull built from a few smooth shapes, with x to its left, y backwards and z up. It has 64 samples along each axis,
/// the value 80 on its surface, and larger values inside.
fn skull() -> Vec<u8> {
    let mut values = Vec::with_capacity(1 << 18);
    for i in 0..1usize << 18 {
        let [x, y, z] = [i & 63, i >> 6 & 63, i >> 12].map(|v| (v as f64 - 31.5) / 32.0);
        // The value changes by 24 per sample step.
        let value = 80.0 - skull_distance([x.abs(), y, z]) * 32.0 * 24.0;
        values.push(value.round().clamp(0.0, 255.0) as u8);
    }
    values
}

/// Approximate signed distance from the skull's surface, negative inside.
fn skull_distance(p: [f64; 3]) -> f64 {
    let [x, y, z] = p;
    let ellipsoid = |centre: [f64; 3], radii: [f64; 3]| {
        let scaled: [f64; 3] = std::array::from_fn(|i| (p[i] - centre[i]) / radii[i]);
        let length = scaled.iter().map(|v| v * v).sum::<f64>().sqrt();
        (length - 1.0) * radii.iter().copied().fold(f64::MAX, f64::min)
    };
    let join = |a: f64, b: f64, width: f64| {
        let h = (0.5 + 0.5 * (b - a) / width).clamp(0.0, 1.0);
        b + (a - b) * h - width * h * (1.0 - h)
    };
    let cut = |a: f64, b: f64, width: f64| -join(-a, b, width);
    let cranium = ellipsoid([0.0, 0.12, 0.28], [0.60, 0.72, 0.58]);
    let brow = ellipsoid([0.21, -0.50, 0.13], [0.25, 0.12, 0.08]);
    let cheek = ellipsoid([0.37, -0.44, -0.17], [0.15, 0.16, 0.11]);
    let arch = ellipsoid([0.49, -0.14, -0.15], [0.06, 0.36, 0.06]);
    let face = ellipsoid([0.0, -0.35, -0.20], [0.37, 0.31, 0.38]);
    let bone = [brow, cheek, face].into_iter().fold(cranium, |bone, part| join(bone, part, 0.12));
    let palate = ellipsoid([0.0, -0.40, -0.47], [0.27, 0.25, 0.10]);
    let bone = join(join(bone, arch, 0.05), palate, 0.10);
    // The distance outwards from a horseshoe that is open at the back.
    let across = x * 1.12;
    let along = y + 0.38;
    let horseshoe = |radius: f64| (along.min(0.0).powi(2) + across * across).sqrt() - radius;
    let teeth = |centre: f64| {
        let gap = 0.045 * (1.0 - (across.atan2(-along.min(0.0)) * 11.0).cos().abs().sqrt());
        let thick = horseshoe(0.265).abs() - 0.055 + gap;
        let high = (z - centre).abs() - 0.07 + gap;
        thick.max(high).max(along - 0.10)
    };
    let jaw = {
        let body = (horseshoe(0.29) / 0.075).hypot((z + 0.85) / 0.105) - 1.0;
        let body = (body * 0.075).max(along - 0.34);
        let t = ((z + 0.84) / 0.62).clamp(0.0, 1.0);
        let behind = (y + 0.10 - 0.10 * t) / 0.10;
        let beside = (x - 0.30 - 0.13 * t) / 0.055;
        let beyond = (z + 0.84 - 0.62 * t) / 0.08;
        let ramus = ((beside * beside + behind * behind + beyond * beyond).sqrt() - 1.0) * 0.055;
        let chin = ellipsoid([0.0, -0.66, -0.87], [0.16, 0.08, 0.09]);
        join(join(body, ramus, 0.08), chin, 0.08)
    };
    let eye = ellipsoid([0.215, -0.66, -0.03], [0.165, 0.30, 0.145]);
    let nose_width = 0.045 + 0.40 * (-0.15 - z).clamp(0.0, 0.19);
    let nose = (x - nose_width).max(y + 0.40).max((z + 0.25).abs() - 0.13);
    let temple = ellipsoid([0.66, -0.34, 0.06], [0.14, 0.26, 0.24]);
    let inside = ellipsoid([0.0, 0.16, 0.30], [0.50, 0.60, 0.46]);
    let mouth = ellipsoid([0.0, -0.20, -0.64], [0.18, 0.28, 0.14]);
    let holes = [(eye, 0.05), (nose, 0.04), (temple, 0.08), (inside, 0.02), (mouth, 0.04)];
    let skull = holes.into_iter().fold(bone, |bone, (hole, width)| cut(bone, hole, width));
    skull.min(teeth(-0.575)).min(teeth(-0.735)).min(jaw)
}

#[test]
fn skull_fixture_is_up_to_date() {
    let path = fixture("skull_64x64x64_uint8.raw");
    let values = skull();
    if std::env::var_os("GPUPROC_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &values).unwrap();
    }
    assert!(fs::read(&path).unwrap() == values, "outdated: run this test with GPUPROC_BLESS=1");
}
