//! Unusable inputs give one `error:` line that names the file and the cause, the documented exit code, and no output.

use std::{fs, path::Path};

use predicates::{prelude::*, str::contains};
use tempfile::TempDir;

use crate::common::{gpuproc, program};

/// A folder with one usable file of each kind.
pub fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let picture: Vec<u8> = (0..48 * 32 * 3).map(|i| (i * 7 % 256) as u8).collect();
    let path = folder.path().join("good.png");
    image::save_buffer(path, &picture, 48, 32, image::ColorType::Rgb8).unwrap();
    let volume: Vec<u8> = (0..8 * 8 * 8).map(|i| (i * 31 % 256) as u8).collect();
    fs::write(folder.path().join("good_8x8x8_uint8.raw"), volume).unwrap();
    fs::write(folder.path().join("good.txt"), "1 2 3\n4").unwrap();
    folder
}

pub fn file_names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut file_names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    file_names.sort();
    file_names
}

/// Runs `command` in `folder` and checks the exit code and that stderr contains all of `expected_texts`. Stderr must be
/// a single `error:` line (usage errors may have more), and no file may appear or disappear.
pub fn assert_rejected(folder: &Path, command: &str, code: i32, expected_texts: &[&str]) {
    let before = file_names(folder);
    let mut run = gpuproc();
    run.current_dir(folder).args(["--device", "cpu"]).args(command.split(' '));
    let assert = run.assert().code(code);
    let stderr = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(stderr.starts_with("error: "), "{command}: {stderr}");
    if code != 2 {
        assert_eq!(stderr.lines().count(), 1, "{command}: {stderr}");
    }
    for text in expected_texts {
        assert!(stderr.contains(text), "{command}: no `{text}` in: {stderr}");
    }
    assert_eq!(file_names(folder), before, "{command} changed the folder");
}

#[test]
fn rejects_missing_files_and_folders_without_slices() {
    let folder = folder();
    let folder = folder.path();
    fs::create_dir(folder.join("folder.png")).unwrap();
    for command in [
        "blur missing.png out.png",
        "histogram missing.png",
        "scan missing.txt",
        "mesh missing.raw --iso 80",
    ] {
        assert_rejected(folder, command, 7, &["missing", "No such file"]);
    }
    // A folder is read as the slices of a volume.
    assert_rejected(folder, "blur folder.png out.png", 2, &["cannot write a volume as .png"]);
    assert_rejected(folder, "histogram folder.png", 4, &["folder.png", "no image slices"]);
    assert_rejected(folder, "mesh folder.png --iso 80", 4, &["folder.png", "no image slices"]);
    assert_rejected(folder, "scan folder.png --axis x o.npy", 7, &["folder.png", "directory"]);
}

#[test]
fn rejects_broken_png_files() {
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
        assert_rejected(folder, &format!("blur {name} out.png"), 4, &[name]);
        assert_rejected(folder, &format!("histogram {name} -o out.csv"), 4, &[name]);
    }
}

#[test]
fn rejects_images_without_pixels() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("wide.ppm"), "P6\n3 0\n255\n").unwrap();
    fs::write(folder.join("high.ppm"), "P6\n0 20\n255\nxxxxx").unwrap();
    for name in ["wide.ppm", "high.ppm"] {
        assert_rejected(folder, &format!("blur {name} out.png"), 4, &[name]);
        assert_rejected(folder, &format!("histogram {name}"), 4, &[name]);
        assert_rejected(folder, &format!("scan {name} out.npy"), 4, &[name]);
    }
}

#[test]
fn rejects_raw_volumes_with_wrong_shape() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("short_8x8x8_uint8.raw"), [0; 500]).unwrap();
    fs::write(folder.join("odd.raw"), [0; 500]).unwrap();
    fs::write(folder.join("empty.raw"), b"").unwrap();
    assert_rejected(folder, "mesh short_8x8x8_uint8.raw --iso 80", 4, &["512", "500"]);
    assert_rejected(folder, "mesh odd.raw --iso 80", 4, &["--dims"]);
    assert_rejected(folder, "mesh empty.raw --iso 80", 4, &["empty.raw"]);
    assert_rejected(folder, "mesh good_8x8x8_uint8.raw --iso 80 --dims 0x8x8", 2, &["0x8x8"]);
    assert_rejected(folder, "mesh good_8x8x8_uint8.raw --iso 80 --dims 8x8", 2, &["8x8"]);
    let huge = "18446744073709551615x2x2";
    assert_rejected(folder, &format!("mesh odd.raw --iso 80 --dims {huge}"), 4, &["too large"]);
}

#[test]
fn rejects_text_with_invalid_numbers() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("bad.txt"), "1 2\n3 four 5\n").unwrap();
    fs::write(folder.join("large.txt"), "1 4294967296\n").unwrap();
    assert_rejected(folder, "scan bad.txt", 4, &["line 2", "four"]);
    assert_rejected(folder, "scan large.txt", 4, &["line 1", "4294967296"]);
}

#[test]
fn rejects_impossible_outputs() {
    let folder = folder();
    let folder = folder.path();
    let volume = "good_8x8x8_uint8.raw";
    assert_rejected(folder, "blur good.png out.doc", 2, &["out.doc"]);
    assert_rejected(folder, "histogram good.png -o out.doc", 2, &["out.doc"]);
    assert_rejected(folder, &format!("mesh {volume} out.doc --iso 80"), 2, &["out.doc"]);
    assert_rejected(folder, "blur good.png nowhere/out.png", 7, &["nowhere"]);
    assert_rejected(folder, "histogram good.png -o nowhere/out.csv", 7, &["nowhere"]);
    assert_rejected(folder, "scan good.txt nowhere/out.txt", 7, &["nowhere"]);
    assert_rejected(folder, &format!("mesh {volume} nowhere/out.ply --iso 80"), 7, &["nowhere"]);
    fs::write(folder.join("existing.png"), b"precious").unwrap();
    assert_rejected(
        folder,
        "--no-clobber blur good.png existing.png",
        7,
        &["existing.png", "exists"],
    );
    assert_eq!(fs::read(folder.join("existing.png")).unwrap(), b"precious");
}

#[cfg(target_os = "linux")]
#[test]
fn reports_full_disk() {
    let folder = folder();
    let volume = "good_8x8x8_uint8.raw";
    // Symbolic links give /dev/full a name with an extension.
    for name in ["full.png", "full.csv", "full.ply", "full.txt"] {
        std::os::unix::fs::symlink("/dev/full", folder.path().join(name)).unwrap();
    }
    assert_rejected(folder.path(), "blur good.png full.png", 7, &["full.png"]);
    assert_rejected(folder.path(), "histogram good.png -o full.csv", 7, &["full.csv"]);
    assert_rejected(folder.path(), "scan good.txt full.txt", 7, &["full.txt"]);
    assert_rejected(folder.path(), &format!("mesh {volume} full.ply --iso 80"), 7, &["full.ply"]);
}

#[test]
fn empty_mesh_is_a_warning_or_an_error_with_strict() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("low_4x4x4_uint8.raw"), [7; 64]).unwrap();
    gpuproc()
        .current_dir(folder)
        .args(["mesh", "low_4x4x4_uint8.raw", "out.ply", "--iso", "80", "--device", "cpu"])
        .assert()
        .success()
        .stderr(contains("0 triangles").and(contains("warning: out.ply: the surface is empty")));
    let ply = fs::read(folder.join("out.ply")).unwrap();
    assert!(ply.starts_with(b"ply\n"));
    for output in ["a.ply", "a.stl", "a.glb", "a.html"] {
        let line = format!("mesh low_4x4x4_uint8.raw {output} --iso 80 --strict");
        assert_rejected(
            folder,
            &line,
            4,
            &[output, "the surface is empty", "the samples range from 7 to 7"],
        );
    }
}

#[test]
fn warns_about_nan_voxels() {
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

/// Tests `--files-from` lists and configuration files that are endless or too large for memory.
#[test]
#[cfg(target_os = "linux")]
fn rejects_endless_and_oversized_file_lists() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("lines"), "a\n".repeat(8 << 20)).unwrap();
    for command in ["histogram", "info", "blur -o out/", "mesh --iso 9 -o out/", "merge -o o.csv"] {
        for (list, expected_text) in [
            ("/dev/zero", "/dev/zero: name 1 is empty"),
            ("/dev/urandom", "/dev/urandom: name"),
            ("lines", "lines: a list of input names needs at least"),
        ] {
            let command = format!("--max-memory 64M {command} --files-from {list}");
            let run = crate::common::measured(folder, command.split(' '));
            let lines = run.stderr.lines().count();
            assert_eq!((run.code, lines), (Some(4), 1), "{command}: {run:?}");
            assert!(run.stderr.contains(expected_text) && run.peak < 128, "{command}: {run:?}");
        }
    }
    gpuproc()
        .env("GPUPROC_CONFIG_PATH", "/dev/zero")
        .arg("devices")
        .assert()
        .code(2)
        .stderr("error: $GPUPROC_CONFIG_PATH: /dev/zero is not a regular file\n");
}

/// If the system refuses to create threads, the program prints one error line.
#[test]
#[cfg(target_os = "linux")]
fn reports_thread_creation_failure() {
    let folder = folder();
    let folder = folder.path();
    for command in [
        "devices",
        "info good.png",
        "blur good.png o.png",
        "histogram good.png",
        "mesh good_8x8x8_uint8.raw o.ply --iso 99",
        "scan good.txt o.txt",
        "sort good.txt o.txt",
        "merge good.txt -o o.csv",
        "bench scan",
        "serve --jobs good.txt",
    ] {
        let script = format!("ulimit -d 8192; exec \"$0\" {command}");
        let mut run = std::process::Command::new("sh");
        run.current_dir(folder).arg("-c").arg(script).arg(program());
        let output = run.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            stderr.starts_with("error: the system grants no further thread"),
            "{command}: {stderr}"
        );
        assert_eq!(
            (output.status.code(), stderr.lines().count()),
            (Some(1), 1),
            "{command}: {stderr}"
        );
    }
}
