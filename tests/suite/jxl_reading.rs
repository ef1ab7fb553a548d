//! Reading of JPEG XL, by the feature `jxl`.
#![cfg(feature = "jxl")]

use std::fs;

use gpuproc::data::{image::Image, samples::Samples};

use crate::{
    common::Noise,
    inputs::{fixture, load_image},
    jxl::failure,
    pages::{folder, run},
};

const SIZE: [usize; 2] = [23, 17];

fn load(name: &str, channels: usize) -> Image {
    let image = load_image(fixture("images").join(name));
    assert_eq!(([image.width, image.height], image.channels), (SIZE, channels), "{name}");
    image
}

/// The values that were encoded: a ramp along each axis.
fn ramps() -> impl Iterator<Item = [usize; 3]> {
    let pixels = (0..SIZE[1]).flat_map(|y| (0..SIZE[0]).map(move |x| [x, y]));
    pixels.map(|[x, y]| [x * 11, y * 15, (x + y) * 6])
}

#[test]
fn lossless_jpeg_xl_has_its_exact_values() {
    let rgba = ramps().zip((0..SIZE[0]).cycle());
    let rgba: Vec<u8> =
        rgba.flat_map(|([r, g, b], x)| [r, g, b, 255 - 9 * x].map(|v| v as u8)).collect();
    let image = load("rgba.jxl", 4);
    assert!(matches!(&image.samples, Samples::U8(found) if *found == rgba));
    assert_eq!(image.metadata.icc, None);

    let positions = (0..SIZE[1]).flat_map(|y| (0..SIZE[0]).map(move |x| [x, y]));
    let grey: Vec<u16> = positions.map(|[x, y]| (x * 2849 + y * 77) as u16).collect();
    let image = load("grey16.jxl", 1);
    assert!(matches!(&image.samples, Samples::U16(found) if *found == grey));
    // It is linear light, which only a profile states.
    assert!(image.metadata.icc.is_some());

    let image = load("float.jxl", 3);
    let Samples::F32(found) = &image.samples else { panic!("{}", image.samples.dtype()) };
    assert!(image.is_linear && image.metadata.icc.is_none());
    for (found, expected) in found.iter().zip(ramps().flatten()) {
        assert!((found - expected as f32 / 300.0).abs() < 1e-6, "{found} {expected}");
    }
}

/// libjxl decodes its samples to a sum of 138,825; the first pixel is 6, 2, 0, the last 239, 237, 228.
#[test]
fn lossy_jpeg_xl_is_close_to_libjxl() {
    let image = load("lossy.jxl", 3);
    let Samples::U8(samples) = &image.samples else { panic!("{}", image.samples.dtype()) };
    let sum: i64 = samples.iter().map(|&sample| i64::from(sample)).sum();
    assert!((sum - 138_825).abs() <= 400, "{sum}");
    let ends = [&samples[..3], &samples[samples.len() - 3..]].concat();
    let close = ends.iter().zip([6, 2, 0, 239, 237, 228]).all(|(a, b)| a.abs_diff(b) <= 1);
    assert!(close, "{ends:?}");
}

fn boxed(kind: &[u8; 4], parts: &[&[u8]]) -> Vec<u8> {
    let data = parts.concat();
    [&(data.len() as u32 + 8).to_be_bytes()[..], kind, &data].concat()
}

#[test]
fn containers_hold_metadata_and_parts_of_the_image() {
    let folder = folder(&["rgba.jxl"]);
    let folder = folder.path();
    let codestream = fs::read(folder.join("rgba.jxl")).unwrap();
    let start = [
        boxed(b"JXL ", &[b"\r\n\x87\n"]),
        boxed(b"ftyp", &[b"jxl \0\0\0\0jxl "]),
        boxed(b"jxlp", &[&[0; 4], &codestream[..50]]),
    ]
    .concat();
    // A description, and an orientation that the header of the image overrides.
    let mut exif = b"MM\0*\0\0\0\x08\0\x02\x01\x0e\0\x02\0\0\0\x04abc\0".to_vec();
    exif.extend(b"\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0");
    let end = [
        boxed(b"Exif", &[&[0; 4], &exif]),
        boxed(b"xml ", &[b"<x:xmpmeta/>"]),
        boxed(b"jxlp", &[&[0x80, 0, 0, 1], &codestream[50..]]),
    ]
    .concat();
    fs::write(folder.join("boxes.jxl"), [&start[..], &end].concat()).unwrap();
    let image = load_image(folder.join("boxes.jxl"));
    let plain = load("rgba.jxl", 4);
    assert_eq!([image.width, image.height], SIZE);
    assert!(image.samples.as_bytes() == plain.samples.as_bytes());
    assert_eq!(image.metadata.xmp.as_deref(), Some(&b"<x:xmpmeta/>"[..]));
    let exif = image.metadata.exif.unwrap();
    assert!(exif.windows(3).any(|window| window == b"abc"));

    let packed = boxed(b"brob", &[b"Exif", &[7; 20]]);
    fs::write(folder.join("packed.jxl"), [&start[..], &packed, &end].concat()).unwrap();
    let warning = "packed.jxl: its compressed metadata is left out";
    let output = run(folder, &["blur", "packed.jxl", "o.png"]).success().get_output().clone();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains(warning), "{stderr}");
    failure(folder, &["blur", "packed.jxl", "o.png", "--strict"]);
}

#[test]
fn truncated_jpeg_xl_is_an_error() {
    let folder = folder(&["rgba.jxl", "grey16.jxl", "lossy.jxl", "float.jxl"]);
    let folder = folder.path();
    for name in ["rgba.jxl", "grey16.jxl", "lossy.jxl", "float.jxl"] {
        let file = fs::read(folder.join(name)).unwrap();
        for len in [2, 3, 5, 12, 20, file.len() / 2, file.len() - 1] {
            fs::write(folder.join("cut.jxl"), &file[..len]).unwrap();
            let stderr = failure(folder, &["blur", "cut.jxl", "o.png"]);
            assert!(stderr.starts_with("error: cannot decode cut.jxl"), "{name} {len}: {stderr}");
            assert!(!folder.join("o.png").exists());
        }
    }
}

#[test]
fn damaged_jpeg_xl_gives_a_result_or_an_error() {
    let folder = folder(&["rgba.jxl", "lossy.jxl"]);
    let folder = folder.path();
    let mut noise = Noise(4);
    for name in ["rgba.jxl", "lossy.jxl"] {
        let file = fs::read(folder.join(name)).unwrap();
        for _ in 0..40 {
            let mut damaged = file.clone();
            let at = 2 + noise.next() as usize % (file.len() - 2);
            damaged[at] ^= 1 << (noise.next() % 8);
            fs::write(folder.join("damaged.jxl"), damaged).unwrap();
            let line = ["--max-memory", "64M", "blur", "damaged.jxl", "o.png", "--sigma", "0"];
            let output = run(folder, &line).get_output().clone();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert!(matches!(output.status.code(), Some(0 | 4)), "{name} {at}: {stderr}");
            assert!(!stderr.contains("panicked"), "{name} {at}: {stderr}");
        }
    }
}

#[test]
fn sizes_are_checked_before_memory_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // SizeHeader of the codestream: no ratio, both sides with 30 bits: 2^30 x 2^30 pixels.
    let mut bits = vec![false];
    for _ in 0..2 {
        bits.extend([true, true]);
        bits.extend([true; 30]);
        if bits.len() < 40 {
            bits.extend([false; 3]);
        }
    }
    // All defaults: 8 bits, sRGB.
    bits.push(true);
    let bytes = bits
        .chunks(8)
        .map(|byte| byte.iter().enumerate().fold(0, |all, (n, &bit)| all | u8::from(bit) << n));
    let file: Vec<u8> = [0xff, 0x0a].into_iter().chain(bytes).chain([0; 64]).collect();
    fs::write(folder.join("huge.jxl"), file).unwrap();
    failure(folder, &["--max-memory", "64M", "blur", "huge.jxl", "o.png"]);
    fs::copy(fixture("images").join("rgba.jxl"), folder.join("rgba.jxl")).unwrap();
    let stderr = failure(folder, &["--max-pixels", "390", "blur", "rgba.jxl", "o.png"]);
    assert!(stderr.contains("23 x 17 = 391 pixels, more than the limit of 390"), "{stderr}");
}

/// Lossless animations of one to three frames of 4 x 5 pixels by libjxl: sample i of frame n is `4 (60 n + i)`.
const ANIMATIONS: [&str; 3] = [
    "ff0a20000680480804010090004b2825d6818282a498a81105e205820258922449922449120000000080fdf7df7ffffd07",
    "ff0a200006089a00404c0804010090004b2825d6818282a498a81105e205820258922449922449120000000080fdf7df7f\
     fffd0708040500d8004b18938e838324b1061507a31c1805591178e42f1014c04d44447cf0774544444444c40be07fff10\
     00000700785cd79eccce6db6d906",
    "ff0a200006089a00404c0804010090004b2825d6818282a498a81105e205820258922449922449120000000080fdf7df7f\
     fffd0708040100d8004b18938e838324b1061507a31c1805591178e42f1014c04d44447cf0774544444444c40be07fff10\
     00000700785cd79eccce6db6d90608040500cc004b18938e838324b10615177b170c80f541005d20280011111111111111\
     111fbe0f00000e0000fffd432ef7dcdc9cb1cd36db00",
];

#[test]
fn the_first_of_several_frames_is_read_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let digit = |c: u8| (c as char).to_digit(16).unwrap() as u8;
    for (hex, count) in ANIMATIONS.iter().zip(1..) {
        let pairs = hex.as_bytes().chunks(2);
        let file: Vec<u8> = pairs.map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect();
        fs::write(folder.join("in.jxl"), file).unwrap();
        let image = load_image(folder.join("in.jxl"));
        assert_eq!(([image.width, image.height], image.channels), ([4, 5], 3));
        assert_eq!(image.samples, Samples::U8((0..60).map(|i| 4 * i).collect()), "{count}");
        let output = run(folder, &["blur", "in.jxl", "o.png"]).success().get_output().clone();
        let stderr = String::from_utf8(output.stderr).unwrap();
        let warning = format!("only the first of its {count} frames is read");
        assert_eq!(stderr.contains(&warning), count > 1, "{stderr}");
        if count > 1 {
            failure(folder, &["blur", "in.jxl", "o.png", "--strict"]);
        } else {
            assert_eq!(stderr, "");
        }
    }
}
