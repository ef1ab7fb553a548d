//! WebP with loss, decoded by the image-webp crate.
#![cfg(feature = "webp-lossy")]

use std::{fs, path::Path};

use gpuproc::{
    data::{
        image::{Image, Metadata},
        samples::Samples,
    },
    io::Source,
};
use image::RgbaImage;

use crate::{
    common::{Noise, gpuproc},
    pages,
};

fn blur(folder: &Path, line: &str) -> assert_cmd::assert::Assert {
    let mut command = gpuproc();
    command.env("GPUPROC_DEVICE", "cpu").current_dir(folder).arg("blur");
    command.args(line.split(' ')).assert()
}

/// A smooth picture with an edge and some noise; alpha falls to the right.
fn picture(width: u32, height: u32) -> RgbaImage {
    let mut noise = Noise(5);
    RgbaImage::from_fn(width, height, |x, y| {
        let wave = |phase: f32| 120.0 + 60.0 * (x as f32 / 11.0 + phase).sin();
        let edge = if x > 2 * y { 40.0 } else { 0.0 };
        let noise = (4.0 * noise.unit()) as f32;
        let [r, g, b] = [0.0, 1.0, 2.0].map(|phase| (wave(phase) + edge + noise) as u8);
        image::Rgba([r, g, b, (255 - 200 * x / width) as u8])
    })
}

/// Peak signal-to-noise ratio in dB.
fn psnr<'a>(a: impl IntoIterator<Item = &'a u8>, b: impl IntoIterator<Item = &'a u8>) -> f64 {
    let squares = a.into_iter().zip(b).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2));
    let (count, sum) = squares.fold((0.0, 0.0), |(n, sum), square| (n + 1.0, sum + square));
    10.0 * (255.0 * 255.0 * count / f64::max(sum, 1e-9)).log10()
}

#[test]
fn quality_makes_webp_smaller_and_keeps_alpha() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Odd sizes, and sizes below, at and above a macroblock.
    for (width, height) in [(1, 1), (1, 40), (33, 2), (16, 16), (17, 15), (129, 97)] {
        let rgba = picture(width, height);
        let rgb = image::DynamicImage::from(rgba.clone()).into_rgb8();
        rgba.save(folder.join("rgba.png")).unwrap();
        rgb.save(folder.join("rgb.png")).unwrap();
        let mut sizes = Vec::new();
        for (quality, expected) in [(1, 18.0), (50, 30.0), (80, 34.0), (100, 38.0)] {
            let context = format!("{width} x {height}, quality {quality}");
            blur(folder, &format!("rgb.png o.webp --sigma 0 --quality {quality}")).success();
            let file = fs::read(folder.join("o.webp")).unwrap();
            assert_eq!(&file[8..16], b"WEBPVP8 ", "{context}");
            assert_eq!(file.len() % 2, 0, "{context}");
            sizes.push(file.len());
            let decoded = image::open(folder.join("o.webp")).unwrap();
            assert_eq!(decoded.color(), image::ColorType::Rgb8);
            let found = psnr(decoded.into_rgb8().iter(), rgb.iter());
            assert!(found >= expected, "{context}: {found} dB");
            blur(folder, &format!("rgba.png o.webp --sigma 0 --quality {quality}")).success();
            let decoded = image::open(folder.join("o.webp")).unwrap().into_rgba8();
            let alphas = |image: &RgbaImage| image.pixels().map(|p| p.0[3]).collect::<Vec<_>>();
            assert_eq!(alphas(&decoded), alphas(&rgba), "{context}");
        }
        assert!(sizes.is_sorted(), "{width} x {height}: {sizes:?}");
        // Lossless without `--quality`.
        blur(folder, "rgba.png o.webp --sigma 0").success();
        assert!(image::open(folder.join("o.webp")).unwrap().into_rgba8() == rgba);
        if width > 100 {
            let lossless = fs::metadata(folder.join("o.webp")).unwrap().len();
            assert!(sizes[2] as u64 * 4 < lossless, "{sizes:?} {lossless}");
        }
    }
}

/// Colours of transparent pixels do not tint visible ones.
#[test]
fn invisible_colours_do_not_bleed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let red = |x| if x % 2 == 0 { [200, 30, 30, 255] } else { [0, 0, 255, 0] };
    RgbaImage::from_fn(32, 32, |x, _| image::Rgba(red(x))).save(folder.join("in.png")).unwrap();
    blur(folder, "in.png o.webp --sigma 0 --quality 100").success();
    let decoded = image::open(folder.join("o.webp")).unwrap().into_rgba8();
    for pixel in decoded.pixels().filter(|pixel| pixel.0[3] == 255) {
        let close = pixel.0.iter().zip(&red(0)).all(|(found, wanted)| found.abs_diff(*wanted) < 24);
        assert!(close, "{pixel:?}");
    }
}

#[test]
fn lossy_webp_keeps_the_metadata_of_lossless_webp() {
    let folder = pages::folder(&["metadata.jpg", "metadata.webp", "pillow.png"]);
    let folder = folder.path();
    for name in ["metadata.jpg", "metadata.webp", "pillow.png"] {
        let metadata = |line: &str| -> Metadata {
            let stderr = blur(folder, line).success().get_output().stderr.clone();
            let image = crate::inputs::load_image(folder.join("o.webp"));
            assert_eq!(image.width, 23, "{name}: {}", String::from_utf8_lossy(&stderr));
            image.metadata
        };
        let lossless = metadata(&format!("{name} o.webp"));
        let lossy = metadata(&format!("{name} o.webp --quality 75"));
        assert!(lossless.xmp.is_some(), "{name}");
        assert_eq!(format!("{lossless:?}"), format!("{lossy:?}"), "{name}");
    }
}

#[test]
fn animations_become_lossy() {
    let folder = pages::folder(&["animation.webp"]);
    let folder = folder.path();
    blur(folder, "animation.webp o.webp --sigma 0 --quality 90").success();
    let read = |name: &str| pages::pages(&Source::from(folder.join(name)));
    let ((before, timing), (after, found)) = (read("animation.webp"), read("o.webp"));
    assert_eq!(timing, found);
    assert_eq!(before.len(), after.len());
    let file = fs::read(folder.join("o.webp")).unwrap();
    let count = |name: &[u8]| file.windows(4).filter(|window| *window == name).count();
    assert_eq!((count(b"VP8 "), count(b"VP8L")), (before.len(), 0));
    let rgba = |image: &Image| match &image.samples {
        Samples::U8(samples) if image.channels == 4 => samples.clone(),
        other => panic!("{} channels of {}", image.channels, other.dtype()),
    };
    for (before, after) in before.iter().zip(&after) {
        let (before, after) = (rgba(before), rgba(after));
        let alpha = |samples: &[u8]| samples.iter().skip(3).step_by(4).copied().collect::<Vec<_>>();
        assert_eq!(alpha(&before), alpha(&after));
        let seen = |samples: &[u8]| -> Vec<u8> {
            let pixels = samples.chunks(4);
            pixels
                .flat_map(|p| [0, 1, 2].map(|c| (u16::from(p[c]) * u16::from(p[3]) / 255) as u8))
                .collect()
        };
        let found = psnr(&seen(&before), &seen(&after));
        assert!(found > 25.0, "{found} dB");
    }
}

/// A batch gives the same bytes on every run, also as single files.
#[test]
fn batches_of_lossy_webp_are_reproducible() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for n in 0..6 {
        picture(60 + 5 * n, 50).save(folder.join(format!("{n}.png"))).unwrap();
    }
    let all = "0.png 1.png 2.png 3.png 4.png 5.png";
    blur(folder, &format!("{all} -o a/ --to webp --quality 80 --sigma 1")).success();
    blur(folder, &format!("{all} -o b/ --to webp --quality 80 --sigma 1")).success();
    for n in 0..6 {
        blur(folder, &format!("{n}.png o.webp --quality 80 --sigma 1")).success();
        let read = |name: String| fs::read(folder.join(name)).unwrap();
        let single = read("o.webp".into());
        assert!(single == read(format!("a/{n}.webp")), "{n}");
        assert!(single == read(format!("b/{n}.webp")), "{n}");
    }
}

#[test]
fn rejects_what_lossy_webp_cannot_store() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("wide.pgm"), [&b"P5 16384 1 255\n"[..], &[7; 16384]].concat()).unwrap();
    let output = blur(folder, "wide.pgm o.webp --sigma 0 --quality 80").code(4);
    let stderr = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(stderr.contains("WebP images have at most 16,383 pixels per side"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(!folder.join("o.webp").exists());
    for quality in ["0", "101", "x"] {
        blur(folder, &format!("wide.pgm o.webp --quality {quality}")).code(2);
    }
}
