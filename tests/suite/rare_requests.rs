//! Requests that few users make, and what is refused: exit codes, selections and settings from the environment.

use std::{fs, path::Path};

use crate::{
    common::{Noise, gpuproc, output_of, run, works},
    mesh_readers::read_ply,
};

/// The exit code of the command `line`, on `device`.
fn code_on(folder: &Path, device: &str, line: &str) -> i32 {
    let mut command = gpuproc();
    command.current_dir(folder).args(["--device", device]).args(line.split_whitespace());
    command.output().unwrap().status.code().unwrap()
}

/// Runs of several files that fail, wholly, in part, or only as planned by `--dry-run`.
#[test]
fn exit_codes_of_several_files() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("a.pgm"), b"P5 1 1 255\n7").unwrap();
    fs::write(folder.join("b.pgm"), b"P5 1 1 255\n7").unwrap();
    for (files, code) in [("a.pgm b.pgm", 0), ("a.pgm none.pgm", 3), ("no.pgm none.pgm", 3)] {
        for flags in ["", "--dry-run"] {
            let line = format!("blur {files} -o out/ --sigma 0 {flags}");
            assert_eq!(run(folder, &line).0, code, "{line}");
        }
    }
    // A device that does not exist concerns all files.
    for files in ["a.pgm o.pgm", "a.pgm b.pgm -o out/"] {
        for command in ["blur --sigma 1", "threshold -T 3", "label"] {
            let line = format!("{command} {files}");
            assert_eq!(code_on(folder, "no-such-device", &line), 5, "{line}");
        }
    }
}

/// A change of either end of the range is new work.
#[test]
fn hysteresis_resumes_only_with_both_thresholds() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let image = [&b"P5 16 16 255\n"[..], &Noise(3).bytes(256)].concat();
    fs::write(folder.join("in.pgm"), image).unwrap();
    for range in ["90,240", "150,240", "90,250", "150,250", "90,240"] {
        let line = format!("threshold in.pgm --hysteresis {range}");
        works(folder, &format!("{line} new.pgm"));
        works(folder, &format!("{line} kept.pgm --resume"));
        let [new, kept] = ["new.pgm", "kept.pgm"].map(|name| fs::read(folder.join(name)).unwrap());
        assert!(new == kept, "{range}");
    }
}

/// Colours can only be compared for equality if they have 8 bits.
#[test]
fn labels_of_equal_values_need_one_channel_or_8_bits() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (name, header, bytes, may_be_equal) in [
        ("grey8.pgm", "P5 2 1 255\n", 2, true),
        ("grey16.pgm", "P5 2 1 65535\n", 4, true),
        ("grey32.pfm", "Pf\n2 1\n-1\n", 8, true),
        ("rgb8.ppm", "P6 2 1 255\n", 6, true),
        ("rgb16.ppm", "P6 2 1 65535\n", 12, false),
        ("rgb32.pfm", "PF\n2 1\n-1\n", 24, false),
    ] {
        fs::write(folder.join(name), [header.as_bytes(), &vec![1; bytes]].concat()).unwrap();
        let (code, stderr) = run(folder, &format!("label {name} o.png --equal"));
        assert_eq!(code, if may_be_equal { 0 } else { 4 }, "{name}: {stderr}");
        works(folder, &format!("label {name} o.png"));
    }
}

/// Lines below the name of a command are for this command only.
#[test]
fn sections_of_a_file_of_flags_are_for_their_commands() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // A warning, which is an error with --strict.
    fs::write(folder.join("in.pfm"), b"Pf\n1 1\n-1\n\0\0\0\0more").unwrap();
    let path = folder.join("flags");
    for (text, of_blur, of_threshold) in [
        ("--strict", 4, 4),
        ("[blur]\n--strict", 4, 0),
        ("[threshold]\n--strict", 0, 4),
        ("[blur threshold]\n--strict", 4, 4),
        ("[mesh]\n--strict", 0, 0),
        ("--strict\n[mesh]\n--quiet", 4, 4),
        ("[threshold]\n--strict\n[blur]\n--quiet", 0, 4),
    ] {
        fs::write(&path, text).unwrap();
        for (line, code) in [("blur --sigma 0", of_blur), ("threshold -T 1", of_threshold)] {
            let mut command = gpuproc();
            command.current_dir(folder).env("GPUPROC_CONFIG_PATH", &path).args(["--device", "cpu"]);
            command.args(line.split(' ')).args(["in.pfm", "o.pfm"]);
            let output = command.output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{text:?}, {line}: {stderr}");
        }
    }
}

/// A pixel of a mask counts if it is neither black nor transparent.
#[test]
fn transparent_pixels_of_a_mask_do_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("in.pgm"), b"P5 4 1 255\nabcd").unwrap();
    for (depth, kind, pixels, expected) in [
        (1, "GRAYSCALE", &[0, 1, 255, 0][..], "bc"),
        (2, "GRAYSCALE_ALPHA", &[9, 0, 9, 1, 0, 255, 9, 255], "bd"),
        (3, "RGB", &[0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1], "bcd"),
        (4, "RGB_ALPHA", &[9, 9, 9, 0, 1, 0, 0, 1, 0, 0, 0, 9, 0, 0, 1, 255], "bd"),
    ] {
        let header =
            format!("P7\nWIDTH 4\nHEIGHT 1\nDEPTH {depth}\nMAXVAL 255\nTUPLTYPE {kind}\nENDHDR\n");
        fs::write(folder.join("mask.pam"), [header.as_bytes(), pixels].concat()).unwrap();
        let json = output_of(folder, "histogram in.pgm --mask mask.pam --format json");
        let found: serde_json::Value = serde_json::from_str(&json).unwrap();
        let counts = found[0]["channels"][0]["values"].as_array().unwrap();
        let found: Vec<u8> = (0..=255).filter(|&value| counts[usize::from(value)] != 0).collect();
        assert_eq!(String::from_utf8_lossy(&found), expected, "{kind}");
    }
}

/// Ranges of labels that touch, overlap, or lie within another are one.
#[test]
fn lists_of_labels_are_joined() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let labels: Vec<u8> = (0..4 * 8).map(|i| i % 8).collect();
    fs::write(folder.join("v_8x2x2_uint8.raw"), labels).unwrap();
    let mesh = |list: &str| {
        works(folder, &format!("mesh v_8x2x2_uint8.raw o.ply --labels={list} --smooth 0"));
        fs::read(folder.join("o.ply")).unwrap()
    };
    let expected = mesh("1..6");
    for list in ["1..6,3..4", "5..6,2..5,1..2,3"] {
        assert!(mesh(list) == expected, "{list}");
    }
}

/// Where a mask ends, the surface is closed, even if all samples of the volume are inside.
#[test]
fn masked_surfaces_are_closed_at_every_isovalue() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let inside = |i: usize| [i % 6, i / 6 % 6, i / 36].iter().all(|at| (2..4).contains(at));
    let mask: Vec<u8> = (0..216).map(|i| u8::from(inside(i))).collect();
    fs::write(folder.join("mask_6x6x6_uint8.raw"), mask).unwrap();
    fs::write(folder.join("v_6x6x6_uint8.raw"), vec![9; 216]).unwrap();
    for (iso, is_empty) in [(0.5, false), (3.0, false), (8.5, false), (9.5, true)] {
        let line = format!("mesh v_6x6x6_uint8.raw o.ply --iso {iso} --mask mask_6x6x6_uint8.raw");
        works(folder, &line);
        let surface = read_ply(&fs::read(folder.join("o.ply")).unwrap());
        // A cube of 2 x 2 x 2 samples.
        assert_eq!(surface.triangles.len(), if is_empty { 0 } else { 44 }, "{iso}");
    }
}

/// A hollow counts as a part by the volume that it encloses.
#[test]
fn hollows_are_kept_by_their_volume() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let within = |i: usize, low: usize, high: usize| {
        [i % 12, i / 12 % 12, i / 144].iter().all(|at| (low..high).contains(at))
    };
    let solid = |i: usize| within(i, 1, 11) && !within(i, 4, 8);
    let samples: Vec<u8> = (0..1728).map(|i| 200 * u8::from(solid(i))).collect();
    fs::write(folder.join("v_12x12x12_uint8.raw"), samples).unwrap();
    let triangles = |flags: &str| {
        works(folder, &format!("mesh v_12x12x12_uint8.raw o.ply --iso 100 {flags}"));
        read_ply(&fs::read(folder.join("o.ply")).unwrap()).triangles.len()
    };
    let all = triangles("");
    // The hollow has about 64 cubic units, the whole about 1000.
    for (volume, share) in [(1, 2), (30, 2), (100, 1), (2000, 0)] {
        let found = triangles(&format!("--min-volume {volume}"));
        assert_eq!(found == all, share == 2, "{volume}: {found} of {all}");
        assert_eq!(found == 0, share == 0, "{volume}: {found} of {all}");
    }
}

/// Normals are those of the smoothed surface.
#[test]
fn normals_follow_smoothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let solid = |i: usize| [i % 12, i / 12 % 12, i / 144].iter().all(|at| (3..9).contains(at));
    let samples: Vec<u8> = (0..1728).map(|i| 200 * u8::from(solid(i))).collect();
    fs::write(folder.join("v_12x12x12_uint8.raw"), samples).unwrap();
    for steps in [1, 5, 30] {
        let line = format!("mesh v_12x12x12_uint8.raw o.ply --iso 100 --normals --smooth {steps}");
        works(folder, &line);
        let surface = read_ply(&fs::read(folder.join("o.ply")).unwrap());
        let mut sums = vec![[0.0f32; 3]; surface.positions.len()];
        for triangle in &surface.triangles {
            let [a, b, c] = triangle.map(|corner| surface.positions[corner as usize]);
            let [u, v] = [b, c].map(|end| [0, 1, 2].map(|axis| end[axis] - a[axis]));
            let next = |axis: usize| [(axis + 1) % 3, (axis + 2) % 3];
            for corner in triangle {
                for (axis, sum) in sums[*corner as usize].iter_mut().enumerate() {
                    let [j, k] = next(axis);
                    *sum += u[j] * v[k] - u[k] * v[j];
                }
            }
        }
        for (sum, normal) in sums.iter().zip(&surface.normals) {
            let dot: f32 = (0..3).map(|axis| sum[axis] * normal[axis]).sum();
            let len = sum.iter().map(|v| v * v).sum::<f32>().sqrt();
            assert!(dot > 0.999 * len, "{steps}: {sum:?}, {normal:?}");
        }
    }
}
