//! Headers that claim more data than their files contain: memory and CPU time stay bounded, and each error is one line
//! that states what is wrong in the file.
#![cfg(target_os = "linux")]

use std::{fs, process::Command};

use crate::{common::program, hostile, memory_inputs::run_within_memory};

/// The limit is `--max-memory` plus 64 MB.
#[test]
fn memory_is_bounded_for_claimed_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    hostile::write_claims(folder);
    for (command, expected_text) in [
        ("info strip.tif", ""),
        ("info slices", ""),
        ("info slices.nrrd", ""),
        ("histogram strip.tif", "60000 x 2000000000"),
        ("blur strip.tif o.tif", "ends early"),
        ("blur strips.tif o.tif", "a row with the 12 around it needs at least 357.4 GiB"),
        ("histogram strips.tif", "4294967295 x 4294967295"),
        ("blur sparse.tif o.tif", "1 of its 1 strips or tiles are missing"),
        ("blur zero.tif o.tif", "no pixels (0 x 9)"),
        ("histogram zero.tif", "no pixels (0 x 9)"),
        ("blur tall.png o.tif", "not have enough data"),
        ("blur slices.nrrd o.tif", "at most 131072 samples along z"),
        ("blur slices.nrrd o.mrc", "file ends before"),
        ("blur fewer.nrrd o.tif", "file ends before"),
        ("blur slices o.nii", "--max-memory"),
        ("mesh names.nhdr --iso 3 o.ply", "invalid pattern of file names"),
        ("mesh lines.nrrd --iso 3 o.ply", "file ends before"),
        ("mesh axes.npy --iso 3 o.ply", "400001 axes"),
        ("blur many.gif o.gif --page 1..2", ""),
        ("histogram empty.zarr", ""),
    ] {
        let measured = run_within_memory(folder, 64, command);
        assert_eq!(measured.code == Some(0), expected_text.is_empty(), "{command}: {measured:?}");
        assert!(measured.stderr.contains(expected_text), "{command}: {measured:?}");
    }
}

/// Runs have 1 GiB of address space, of which the program takes about half, so that claimed lengths cannot be
/// allocated.
#[test]
fn errors_state_what_is_wrong_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    hostile::write_claims(folder);
    for (name, expected_text) in [
        ("xmp.webp", "XMP claims 4026531840 bytes, but the file ends after 0"),
        ("exi.webp", "EXIF claims 4026531840 bytes, but the file ends after 0"),
        ("icc.webp", "cannot decode"),
        ("sizes.webp", "its image has 1 x 1 pixels, but its header states 12 x 12"),
        ("frame.webp", "the size of a frame differs from its header"),
        ("palette.png", "its palette has 64 bytes, not 3 for each colour"),
        ("private.dcm", "too many attributes before the pixels"),
        ("empty.dcm", "too many attributes before the pixels"),
    ] {
        for command in ["info", "histogram", "blur -o o.png"] {
            // `info` does not read pixels, so it refuses only these files.
            if command == "info" && !["xmp.webp", "exi.webp", "private.dcm"].contains(&name) {
                continue;
            }
            let command = match name.ends_with(".dcm") && command == "blur -o o.png" {
                true => "mesh --iso 3 -o o.ply",
                false => command,
            };
            let script = format!(
                "ulimit -v {}; exec \"$0\" --device cpu --threads 2 {command} {name}",
                1 << 20
            );
            let mut run = Command::new("sh");
            run.current_dir(folder).arg("-c").arg(script).arg(program());
            let output = run.env_remove("RUST_BACKTRACE").output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(4), "{command} {name}: {stderr}");
            assert_eq!(stderr.lines().count(), 1, "{command} {name}: {stderr}");
            assert!(
                stderr.contains(name) && stderr.contains(expected_text),
                "{command} {name}: {stderr}"
            );
        }
    }
}

/// Each run takes less than a second of CPU time in an optimised build. Without checks of the claims, it would take
/// minutes or never end.
#[test]
fn cpu_time_is_bounded_for_claimed_sizes() {
    const CPU_SECONDS: u32 = 8;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    hostile::write_claims(folder);
    fs::write(folder.join("deep_1x1x1000000_uint16.raw"), vec![7; 2_000_000]).unwrap();
    for (command, code) in [
        ("histogram overlap.tif", 0),
        ("histogram many.gif", 4),
        ("blur many.png o.webp", 4),
        ("blur many.webp o.gif", 4),
        ("info many.gif many.png many.webp texts.apng", 0),
        ("info private.dcm", 4),
        ("info empty.dcm", 4),
        ("info empty.zarr nan.zarr --range", 0),
        ("histogram empty.zarr --stats --bins 256 -o o.csv", 0),
        ("histogram nan.zarr --range data -o o.csv", 0),
        ("mesh empty.zarr --iso 80 o.ply", 0),
        ("mesh nan.zarr --iso 80 --close o.ply", 0),
        ("mesh empty.zarr --iso auto o.ply", 4),
        ("--max-memory 64K histogram deep_1x1x1000000_uint16.raw -o o.csv", 0),
    ] {
        let script =
            format!("ulimit -t {CPU_SECONDS}; exec \"$0\" --device cpu --threads 2 {command}");
        let mut run = Command::new("sh");
        let run = run.current_dir(folder).arg("-c").arg(script).arg(program());
        let output = run.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{command}: {} {stderr}", output.status);
    }
}
