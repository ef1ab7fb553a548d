//! CPU kernels and decoders give the same bytes at every SIMD level.

use std::{fs, path::Path, process::Command};

use gpuproc::util::simd::levels;
use image::{ImageBuffer, Luma, Rgb, Rgba};

use crate::{
    common::{Noise, program},
    harness,
};

/// Commands with arithmetic. Each writes one file to the folder `out`.
const COMMANDS: &[&str] = &[
    "blur u8.png out/a.png --sigma 2",
    "blur u8.png out/a.png --sigma 30",
    "blur u8.png out/a.png --method box --radius 3",
    "blur rgba.png out/a.png --sigma 2",
    "blur rgba.png out/a.png --method box --radius 40",
    "blur rgba.png out/a.png --method box --radius 200",
    "blur f32.tif out/a.tif --method box --radius 40",
    "blur u16.png out/a.png --method box --radius 3",
    "blur u16.png out/a.png --method box --radius 300 --iterations 3",
    "blur u16.png out/a.png --sigma 0.5",
    "blur u16.png out/a.png --sigma 2",
    "blur u16.png out/a.png --sigma 90 --iterations 2",
    "blur volume_37x41x29_uint16.raw out/a.nrrd --sigma 2",
    "blur volume_37x41x29_uint16.raw out/a.nrrd --sigma 20,0,3",
    "blur volume_37x41x29_uint16.raw out/a.nrrd --method box --radius 2 --iterations 3",
    "blur u16a.png out/a.png --sigma 2",
    "blur u16a.png out/a.png --method box --radius 40",
    "blur f32.tif out/a.tif --sigma 2",
    "blur f32.tif out/a.tif --sigma 12",
    "blur f32.tif out/a.tif --method box --radius 3",
    "blur u8.png out/a.jpg --sigma 0",
    "blur u8.png out/a.jpg --sigma 0 --quality 100",
    "blur u8.jpg out/a.png --sigma 0",
    "histogram u8.png -o out/a.csv",
    "histogram u16.png -o out/a.csv --bins 1000 --stats",
    "histogram f32.tif -o out/a.csv --stats",
    "mesh volume_37x41x29_uint8.raw out/a.ply --iso 100 --normals",
    "mesh volume_37x41x29_uint16.raw out/a.ply --iso 30000 --close",
    "scan numbers.txt out/a.txt",
    "scan u8.png out/a.npy",
    "sort numbers.txt out/a.txt",
];

/// Writes input files of noise.
fn write_inputs(folder: &Path) {
    // Wider than the widest vectors, and not a multiple of their width.
    const SIZE: [u32; 2] = [259, 61];
    let [width, height] = SIZE;
    let pixels = (width * height) as usize;
    let u8s = Noise(1).bytes(4 * pixels);
    let u16s: Vec<u16> =
        Noise(2).bytes(2 * pixels).chunks(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect();
    let floats: Vec<f32> = u8s[..3 * pixels].iter().map(|&v| f32::from(v) / 255.0).collect();
    let rgb = ImageBuffer::<Rgb<u8>, _>::from_raw(width, height, u8s[..3 * pixels].to_vec());
    let rgb = rgb.unwrap();
    rgb.save(folder.join("u8.png")).unwrap();
    rgb.save(folder.join("u8.jpg")).unwrap();
    let rgba = ImageBuffer::<Rgba<u8>, _>::from_raw(width, height, u8s.clone());
    rgba.unwrap().save(folder.join("rgba.png")).unwrap();
    let grey = ImageBuffer::<Luma<u16>, _>::from_raw(width, height, u16s);
    grey.unwrap().save(folder.join("u16.png")).unwrap();
    let with_alpha: Vec<u16> = u8s.iter().map(|&v| u16::from(v) * 257).collect();
    let with_alpha = ImageBuffer::<Rgba<u16>, _>::from_raw(width, height, with_alpha);
    with_alpha.unwrap().save(folder.join("u16a.png")).unwrap();
    let linear = ImageBuffer::<Rgb<f32>, _>::from_raw(width, height, floats);
    linear.unwrap().save(folder.join("f32.tif")).unwrap();
    let volume = Noise(3).bytes(2 * 37 * 41 * 29);
    fs::write(folder.join("volume_37x41x29_uint8.raw"), &volume[..37 * 41 * 29]).unwrap();
    fs::write(folder.join("volume_37x41x29_uint16.raw"), &volume).unwrap();
    let numbers = Noise(4)
        .bytes(40_000)
        .chunks(4)
        .map(|b| format!("{}\n", u32::from_le_bytes([b[0], b[1], b[2], b[3]])))
        .collect::<String>();
    fs::write(folder.join("numbers.txt"), numbers).unwrap();
}

/// The file that `command` writes at the SIMD level `level`.
fn output(folder: &Path, command: &str, level: &str) -> Vec<u8> {
    let out = folder.join("out");
    fs::create_dir(&out).unwrap();
    let run = Command::new(program())
        .args(command.split(' '))
        .args(["--device", "cpu"])
        .env("GPUPROC_SIMD", level)
        .current_dir(folder)
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && !messages.contains("GPUPROC_SIMD"), "{command}: {messages}");
    let files: Vec<_> = fs::read_dir(&out).unwrap().collect();
    assert_eq!(files.len(), 1, "{command}");
    let bytes = fs::read(files[0].as_ref().unwrap().path()).unwrap();
    fs::remove_dir_all(out).unwrap();
    bytes
}

/// Checks that all commands write the same bytes at `level` and at `reference`.
fn assert_same_bytes(level: &str, reference: &str, missing: &'static str) {
    if !levels().contains(&level) {
        return harness::ignore(missing);
    }
    let folder = tempfile::tempdir().unwrap();
    write_inputs(folder.path());
    let outputs = |command| [level, reference].map(|level| output(folder.path(), command, level));
    for command in COMMANDS {
        let [found, expected] = outputs(command);
        assert!(
            found == expected,
            "`{command}` writes different bytes with {level} and {reference}"
        );
    }
}

#[test]
fn avx2_writes_the_same_bytes_as_scalar_code() {
    assert_same_bytes("avx2", "scalar", "no AVX2");
}

#[test]
fn avx512_writes_the_same_bytes_as_avx2_and_scalar_code() {
    assert_same_bytes("avx512", "scalar", "no AVX-512");
    assert_same_bytes("avx512", "avx2", "no AVX-512");
}

#[test]
fn neon_writes_the_same_bytes_as_scalar_code() {
    assert_same_bytes("neon", "scalar", "no NEON");
}
