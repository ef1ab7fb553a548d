//! Input that cannot be used: one `error:` line that names the file and the cause, the documented exit
//! code, and no output.

use std::{fs, path::Path};

use predicates::{prelude::*, str::contains};
use tempfile::TempDir;

use crate::common::gpuproc;

/// A folder with one usable file of each kind.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let picture: Vec<u8> = (0..48 * 32 * 3).map(|i| (i * 7 % 256) as u8).collect();
    let path = folder.path().join("good.png");
    image::save_buffer(path, &picture, 48, 32, image::ColorType::Rgb8).unwrap();
    let volume: Vec<u8> = (0..8 * 8 * 8).map(|i| (i * 31 % 256) as u8).collect();
    fs::write(folder.path().join("good_8x8x8_uint8.raw"), volume).unwrap();
    fs::write(folder.path().join("good.txt"), "1 2 3\n4").unwrap();
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Runs `command` (words, file names relative to `folder`) and checks code and message; no file may appear
/// or go, and there is exactly one line on stderr, the error.
fn refuses(folder: &Path, command: &str, code: i32, says: &[&str]) {
    let before = names(folder);
    let mut run = gpuproc();
    run.current_dir(folder).args(["--device", "cpu"]).args(command.split(' '));
    let assert = run.assert().code(code);
    let stderr = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(stderr.starts_with("error: "), "{command}: {stderr}");
    if code != 2 {
        assert_eq!(stderr.lines().count(), 1, "{command}: {stderr}");
    }
    for text in says {
        assert!(stderr.contains(text), "{command}: no `{text}` in: {stderr}");
    }
    assert_eq!(names(folder), before, "{command} changed the folder");
}

#[test]
fn files_that_are_not_there() {
    let folder = folder();
    let folder = folder.path();
    fs::create_dir(folder.join("folder.png")).unwrap();
    for command in [
        "blur missing.png out.png",
        "histogram missing.png",
        "scan missing.txt",
        "mesh missing.raw --iso 80",
    ] {
        refuses(folder, command, 7, &["missing", "No such file"]);
    }
    for command in [
        "blur folder.png out.png",
        "histogram folder.png",
        "scan folder.png --axis x o.npy",
        "mesh folder.png --iso 80",
    ] {
        refuses(folder, command, 7, &["folder.png", "directory"]);
    }
}

#[test]
fn pictures_that_are_broken() {
    let folder = folder();
    let folder = folder.path();
    let good = fs::read(folder.join("good.png")).unwrap();
    fs::write(folder.join("empty.png"), b"").unwrap();
    fs::write(folder.join("text.png"), b"this is no picture").unwrap();
    fs::write(folder.join("cut.png"), &good[..good.len() / 2]).unwrap();
    // A palette whose length is not a multiple of three makes some decoders panic.
    let mut palette = good.clone();
    palette[25] = 3;
    fs::write(folder.join("palette.png"), palette).unwrap();
    for name in ["empty.png", "text.png", "cut.png", "palette.png"] {
        refuses(folder, &format!("blur {name} out.png"), 4, &[name]);
        refuses(folder, &format!("histogram {name} -o out.csv"), 4, &[name]);
    }
}

#[test]
fn a_small_file_that_claims_to_be_huge_is_refused_before_memory_is_taken() {
    let folder = folder();
    let folder = folder.path();
    let mut bomb = fs::read(folder.join("good.png")).unwrap();
    bomb[16..24].copy_from_slice(&[0, 1, 0x86, 0xa0, 0, 1, 0x86, 0xa0]);
    let checksum = crc32(&bomb[12..29]).to_be_bytes();
    bomb[29..33].copy_from_slice(&checksum);
    fs::write(folder.join("bomb.png"), bomb).unwrap();
    refuses(folder, "--max-memory 1G blur bomb.png out.png", 4, &["100000", "memory"]);
}

/// The CRC of PNG chunks (ISO 3309).
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

#[test]
fn volumes_whose_shape_is_wrong() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("short_8x8x8_uint8.raw"), [0; 500]).unwrap();
    fs::write(folder.join("odd.raw"), [0; 500]).unwrap();
    fs::write(folder.join("empty.raw"), b"").unwrap();
    refuses(folder, "mesh short_8x8x8_uint8.raw --iso 80", 4, &["512", "500"]);
    refuses(folder, "mesh odd.raw --iso 80", 4, &["--dims"]);
    refuses(folder, "mesh empty.raw --iso 80", 4, &["empty.raw"]);
    refuses(folder, "mesh good_8x8x8_uint8.raw --iso 80 --dims 0x8x8", 2, &["0x8x8"]);
    refuses(folder, "mesh good_8x8x8_uint8.raw --iso 80 --dims 8x8", 2, &["8x8"]);
    let huge = "18446744073709551615x2x2";
    refuses(folder, &format!("mesh odd.raw --iso 80 --dims {huge}"), 4, &["too large"]);
}

#[test]
fn numbers_that_are_none() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("bad.txt"), "1 2\n3 four 5\n").unwrap();
    fs::write(folder.join("large.txt"), "1 4294967296\n").unwrap();
    refuses(folder, "scan bad.txt", 4, &["line 2", "four"]);
    refuses(folder, "scan large.txt", 4, &["line 1", "4294967296"]);
}

#[test]
fn outputs_that_cannot_be() {
    let folder = folder();
    let folder = folder.path();
    let volume = "good_8x8x8_uint8.raw";
    refuses(folder, "blur good.png out.doc", 2, &["out.doc"]);
    refuses(folder, "histogram good.png -o out.doc", 2, &["out.doc"]);
    refuses(folder, &format!("mesh {volume} out.doc --iso 80"), 2, &["out.doc"]);
    refuses(folder, "blur good.png nowhere/out.png", 7, &["nowhere"]);
    refuses(folder, "histogram good.png -o nowhere/out.csv", 7, &["nowhere"]);
    refuses(folder, "scan good.txt nowhere/out.txt", 7, &["nowhere"]);
    refuses(folder, &format!("mesh {volume} nowhere/out.ply --iso 80"), 7, &["nowhere"]);
    fs::write(folder.join("there.png"), b"precious").unwrap();
    refuses(folder, "--no-clobber blur good.png there.png", 7, &["there.png", "exists"]);
    assert_eq!(fs::read(folder.join("there.png")).unwrap(), b"precious");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let folder = folder();
    let volume = "good_8x8x8_uint8.raw";
    // Links give the device an extension.
    for name in ["full.png", "full.csv", "full.ply", "full.txt"] {
        std::os::unix::fs::symlink("/dev/full", folder.path().join(name)).unwrap();
    }
    refuses(folder.path(), "blur good.png full.png", 7, &["full.png"]);
    refuses(folder.path(), "histogram good.png -o full.csv", 7, &["full.csv"]);
    refuses(folder.path(), "scan good.txt full.txt", 7, &["full.txt"]);
    refuses(folder.path(), &format!("mesh {volume} full.ply --iso 80"), 7, &["full.ply"]);
}

#[test]
fn an_isovalue_outside_the_data_makes_an_empty_mesh_and_says_so() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("low_4x4x4_uint8.raw"), [7; 64]).unwrap();
    gpuproc()
        .current_dir(folder)
        .args(["mesh", "low_4x4x4_uint8.raw", "out.ply", "--iso", "80", "--device", "cpu"])
        .assert()
        .success()
        .stderr(contains("0 triangles").or(contains("empty")));
    let ply = fs::read(folder.join("out.ply")).unwrap();
    assert!(ply.starts_with(b"ply\n"));
}

#[test]
fn voxels_that_are_no_numbers_are_counted() {
    let folder = folder();
    let folder = folder.path();
    let mut values: Vec<f32> = (0..64).map(|i| i as f32).collect();
    values[21] = f32::NAN;
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    fs::write(folder.join("holey_4x4x4_float32.raw"), bytes).unwrap();
    gpuproc()
        .current_dir(folder)
        .args(["mesh", "holey_4x4x4_float32.raw", "out.ply", "--iso", "30", "--device", "cpu"])
        .assert()
        .success()
        .stderr(contains("NaN"));
}
