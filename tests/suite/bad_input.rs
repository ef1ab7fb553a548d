//! Unusable inputs give one `error:` line that names the file and the cause, the documented exit code, and no output.

use std::{fs, path::Path};

use predicates::{prelude::*, str::contains};
use tempfile::TempDir;

use crate::common::{Noise, gpuproc, program};

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

fn file_names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut file_names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    file_names.sort();
    file_names
}

/// Runs `command` in `folder` and checks the exit code and that stderr contains all of `expected_texts`. Stderr must be
/// a single `error:` line (usage errors may have more), and no file may appear or disappear.
fn assert_refused(folder: &Path, command: &str, code: i32, expected_texts: &[&str]) {
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
fn refuses_missing_files_and_folders_without_slices() {
    let folder = folder();
    let folder = folder.path();
    fs::create_dir(folder.join("folder.png")).unwrap();
    for command in [
        "blur missing.png out.png",
        "histogram missing.png",
        "scan missing.txt",
        "mesh missing.raw --iso 80",
    ] {
        assert_refused(folder, command, 7, &["missing", "No such file"]);
    }
    // A folder is read as the slices of a volume.
    assert_refused(folder, "blur folder.png out.png", 2, &["cannot write a volume as .png"]);
    assert_refused(folder, "histogram folder.png", 4, &["folder.png", "no image slices"]);
    assert_refused(folder, "mesh folder.png --iso 80", 4, &["folder.png", "no image slices"]);
    assert_refused(folder, "scan folder.png --axis x o.npy", 7, &["folder.png", "directory"]);
}

#[test]
fn refuses_broken_png_files() {
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
        assert_refused(folder, &format!("blur {name} out.png"), 4, &[name]);
        assert_refused(folder, &format!("histogram {name} -o out.csv"), 4, &[name]);
    }
}

#[test]
fn refuses_png_with_huge_claimed_size_before_allocating() {
    let folder = folder();
    let folder = folder.path();
    let mut bomb = fs::read(folder.join("good.png")).unwrap();
    bomb[16..24].copy_from_slice(&[0, 1, 0x86, 0xa0, 0, 1, 0x86, 0xa0]);
    let checksum = crc32(&bomb[12..29]).to_be_bytes();
    bomb[29..33].copy_from_slice(&checksum);
    fs::write(folder.join("bomb.png"), bomb).unwrap();
    for command in ["blur bomb.png out.png", "histogram bomb.png", "scan bomb.png out.npy"] {
        let limited = |limit: &str| format!("{limit} {command}");
        // Blur works in bands, so the size alone is no problem, but the data is missing.
        let expected_texts: &[&str] = match command.starts_with("blur") {
            true => &["bomb.png", "not have enough data"],
            false => &["100000", "memory", "30000000000"],
        };
        assert_refused(folder, &limited("--max-memory 1G"), 4, expected_texts);
        assert_refused(
            folder,
            &limited("--max-pixels 100M"),
            4,
            &["10000000000", "100000000", "--max-pixels"],
        );
    }
}

/// Runs `command` with 1 GiB of address space, of which the program itself takes about half. A program that allocates
/// memory before it checks the size against its limit would abort.
fn run_in_1_gib(folder: &Path, command: &str) -> std::process::Output {
    run_in_address_space(1024, folder, command)
}

/// Runs `command` with `mib` MiB of address space.
fn run_in_address_space(mib: u32, folder: &Path, command: &str) -> std::process::Output {
    let limit = mib * 1024;
    let script = format!("ulimit -v {limit}; exec \"$0\" --threads 2 --device cpu {command}");
    let mut run = std::process::Command::new("sh");
    run.current_dir(folder).arg("-c").arg(script).arg(program()).env_remove("RUST_BACKTRACE");
    run.output().unwrap()
}

/// Each command runs with several amounts of memory, so that different allocations fail.
#[test]
#[cfg(target_os = "linux")]
fn reports_failed_allocations() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let noise = Noise(9).bytes(24 << 20);
    fs::write(folder.join("a.raw"), &noise).unwrap();
    fs::write(folder.join("v_96x96x96_uint8.raw"), &noise[..96 * 96 * 96]).unwrap();
    fs::write(folder.join("f_128x128x128_float64.raw"), &noise[..128 * 128 * 128 * 8]).unwrap();
    let picture = [b"P6 4096 2048 255\n", &noise[..]].concat();
    fs::write(folder.join("p.ppm"), picture).unwrap();
    let picture = [b"P5 4096 3072 65535\n", &noise[..]].concat();
    fs::write(folder.join("w.pgm"), picture).unwrap();
    let before = file_names(folder);
    for command in [
        "scan a.raw o.raw",
        "scan a.raw o.raw --by-key a.raw",
        "sort a.raw o.raw",
        "sort a.raw o.raw --argsort",
        "blur p.ppm o.bmp --sigma 2 --linear",
        "blur w.pgm o.jpg --sigma 9",
        "blur f_128x128x128_float64.raw o.raw --sigma 1",
        "histogram p.ppm --equalize o.png",
        "mesh v_96x96x96_uint8.raw o.glb --iso 128 --normals --smooth 1 --largest --stats",
        "mesh v_96x96x96_uint8.raw o.obj --iso 128 --simplify 0.5",
        "mesh v_96x96x96_uint8.raw o.stl --iso 128 --preview o.png",
    ] {
        let mut refused = 0;
        for mib in (180..=340).step_by(20) {
            let output =
                run_in_address_space(mib, folder, &format!("--max-memory 9G --quiet {command}"));
            let stderr = String::from_utf8_lossy(&output.stderr);
            let (code, context) =
                (output.status.code(), format!("{command} in {mib} MiB: {stderr}"));
            assert!(matches!(code, Some(0 | 1 | 4)), "{code:?}: {context}");
            // If a small allocation fails, the message comes from the Rust runtime or from glibc.
            let aborted = ["memory allocation of ", "Fatal glibc error: "]
                .iter()
                .any(|start| stderr.starts_with(start));
            if code != Some(0) && !aborted {
                // Threads need address space for their stacks.
                let reasons = ["out of memory", "no memory", "grants no further thread"];
                let has_reason = reasons.iter().any(|reason| stderr.contains(reason));
                assert!(stderr.starts_with("error: ") && has_reason, "{context}");
                assert_eq!(stderr.lines().count(), 1, "{context}");
                assert_eq!(file_names(folder), before, "{context}");
                refused += 1;
            }
            for name in file_names(folder).iter().filter(|name| !before.contains(name)) {
                fs::remove_file(folder.join(name)).unwrap();
            }
        }
        assert!(refused > 0, "{command}: no run reported a failed allocation");
    }
}

/// Runs `command` with [`run_in_1_gib`]. It must refuse its input with one line that contains all of `expected_texts`.
fn assert_refused_in_1_gib(folder: &Path, command: &str, expected_texts: &[&str]) {
    let output = run_in_1_gib(folder, command);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{command}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{command}: {stderr}");
    for text in expected_texts {
        assert!(stderr.contains(text), "{command}: no `{text}` in: {stderr}");
    }
}

fn zlib(bytes: impl Iterator<Item = u8>) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    let bytes: Vec<u8> = bytes.collect();
    std::io::Write::write_all(&mut encoder, &bytes).unwrap();
    encoder.finish().unwrap()
}

/// A PNG chunk.
fn png_chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let body = [name, data].concat();
    [&(data.len() as u32).to_be_bytes()[..], &body, &crc32(&body).to_be_bytes()].concat()
}

#[cfg(target_os = "linux")]
#[test]
fn does_not_pass_on_png_metadata_bombs() {
    let folder = folder();
    let folder = folder.path();
    let good = fs::read(folder.join("good.png")).unwrap();
    // 400 MB of zeros in 0.4 MB or less.
    let bomb = zlib(std::iter::repeat_n(0, 400 << 20));
    let profile = png_chunk(b"iCCP", &[b"x\0\0", &bomb[..]].concat());
    let text = png_chunk(b"zTXt", &[b"x\0\0", &bomb[..]].concat());
    for (name, bad) in [("icc.png", profile), ("text.png", text)] {
        // Insert after the signature and IHDR.
        let file = [&good[..33], &bad, &good[33..]].concat();
        fs::write(folder.join(name), file).unwrap();
        let output = run_in_1_gib(folder, &format!("--max-memory 64M blur {name} out.png"));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            matches!(output.status.code(), Some(0 | 4)),
            "{name}: {:?} {stderr}",
            output.status
        );
        let out = fs::read(folder.join("out.png"));
        assert!(out.is_err() || out.unwrap().len() < 20_000, "the output contains the bomb");
        fs::remove_file(folder.join("out.png")).ok();
    }
}

#[test]
fn refuses_huge_claimed_sizes_in_other_image_formats() {
    let folder = folder();
    let folder = folder.path();
    // A JPEG whose frame header claims 65,500 x 65,500 pixels.
    let mut jpeg =
        fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/images/comment.jpg")).unwrap();
    let frame = jpeg.windows(2).position(|marker| marker == [0xff, 0xc0]).unwrap();
    jpeg[frame + 5..frame + 9].copy_from_slice(&[0xff, 0xdc, 0xff, 0xdc]);
    fs::write(folder.join("huge.jpg"), jpeg).unwrap();
    // A 24-bit BMP of 60,000 x 60,000 pixels.
    let mut bmp = b"BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0".to_vec();
    bmp.extend(60_000u32.to_le_bytes());
    bmp.extend(60_000u32.to_le_bytes());
    bmp.extend([1, 0, 24, 0]);
    bmp.extend([0; 24]);
    fs::write(folder.join("huge.bmp"), bmp).unwrap();
    // TIFFs of u8 and f32 samples whose only strip is missing. Entries: tag, type, value; the count is 1.
    for (name, bits, format) in [("huge.tif", 8, 1), ("float.tif", 32, 3)] {
        let mut tiff = b"II*\0\x08\0\0\0\x0a\0".to_vec();
        for (tag, kind, value) in [
            (256u16, 4u16, 60_000u32),
            (257, 4, 60_000),
            (258, 3, bits),
            (259, 3, 1),
            (262, 3, 1),
            (273, 4, 8),
            (277, 3, 1),
            (278, 4, 60_000),
            (279, 4, 3_600_000_000),
            (339, 3, format),
        ] {
            tiff.extend(tag.to_le_bytes());
            tiff.extend(kind.to_le_bytes());
            tiff.extend(1u32.to_le_bytes());
            tiff.extend(value.to_le_bytes());
        }
        tiff.extend([0; 4]);
        fs::write(folder.join(name), tiff).unwrap();
    }
    // An EXR with a window of 60,000 x 60,000: once the display window, once the data window.
    let pixel = |_| (0.5f32, 0.5f32, 0.5f32);
    for (name, window) in [("shown.exr", "displayWindow"), ("stored.exr", "dataWindow")] {
        let mut exr = Vec::new();
        exr::prelude::WritableImage::write(&exr::prelude::Image::from_channels(
            (8, 8),
            exr::prelude::SpecificChannels::rgb(pixel),
        ))
        .non_parallel()
        .to_buffered(std::io::Cursor::new(&mut exr))
        .unwrap();
        let name_and_type = format!("{window}\0box2i\0");
        let found = exr.windows(name_and_type.len()).position(|at| at == name_and_type.as_bytes());
        // Name and type are followed by the length, then left, top, right and bottom.
        let right = found.unwrap() + name_and_type.len() + 4 + 8;
        exr[right..right + 4].copy_from_slice(&59_999u32.to_le_bytes());
        exr[right + 4..right + 8].copy_from_slice(&59_999u32.to_le_bytes());
        fs::write(folder.join(name), exr).unwrap();
    }
    // A lossless WebP of 16,383 x 16,383; width and height take 14 bits each.
    let size = 16_382u32 | 16_382 << 14;
    let webp = [b"RIFF\x16\0\0\0WEBPVP8L\x0a\0\0\0\x2f", &size.to_le_bytes()[..], &[0; 5]].concat();
    fs::write(folder.join("huge.webp"), webp).unwrap();
    fs::write(folder.join("huge.ppm"), "P6 60000 60000 255\n123").unwrap();
    for (name, side) in [
        ("huge.jpg", "65500"),
        ("huge.bmp", "60000"),
        ("huge.tif", "60000"),
        ("float.tif", "60000"),
        ("shown.exr", "60000"),
        ("stored.exr", "60000"),
        ("huge.webp", "16383"),
        ("huge.ppm", "60000"),
    ] {
        let blur = format!("--max-memory 256M blur {name} out.png");
        // Blur reads the u8 TIFF in bands, until it reaches the missing data.
        let expected_texts =
            if name == "huge.tif" { ["strip 0", "early"] } else { [side, "memory"] };
        assert_refused_in_1_gib(folder, &blur, &[name, expected_texts[0], expected_texts[1]]);
        assert_refused_in_1_gib(
            folder,
            &format!("--max-pixels 1M histogram {name}"),
            &[name, side, "--max-pixels"],
        );
    }
    assert!(!folder.join("out.png").exists());
}

#[test]
fn refuses_images_without_pixels() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("wide.ppm"), "P6\n3 0\n255\n").unwrap();
    fs::write(folder.join("high.ppm"), "P6\n0 20\n255\nxxxxx").unwrap();
    for name in ["wide.ppm", "high.ppm"] {
        assert_refused(folder, &format!("blur {name} out.png"), 4, &[name]);
        assert_refused(folder, &format!("histogram {name}"), 4, &[name]);
        assert_refused(folder, &format!("scan {name} out.npy"), 4, &[name]);
    }
}

#[test]
fn applies_limits_to_claimed_array_and_volume_sizes() {
    let folder = folder();
    let folder = folder.path();
    for (name, shape) in
        [("long.npy", "(1000000000000,)"), ("deep.npy", "(4294967296, 4294967296)")]
    {
        let header = format!("{{'descr': '<u4', 'fortran_order': False, 'shape': {shape}, }}");
        let mut file = b"\x93NUMPY\x01\0".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend([0; 16]);
        fs::write(folder.join(name), file).unwrap();
    }
    assert_refused_in_1_gib(folder, "scan long.npy out.npy", &["long.npy", "999999999996"]);
    assert_refused_in_1_gib(folder, "sort long.npy out.npy", &["long.npy", "--max-memory"]);
    assert_refused_in_1_gib(folder, "scan deep.npy out.npy", &["deep.npy", "too large"]);
    // 512 MB of zeros in 0.5 MB.
    let file = fs::File::create(folder.join("zeros_800x800x800_uint8.raw.gz")).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    (0..800).for_each(|_| std::io::Write::write_all(&mut encoder, &[0; 800 * 800]).unwrap());
    encoder.finish().unwrap();
    let zeros = "zeros_800x800x800_uint8.raw.gz";
    assert_refused_in_1_gib(
        folder,
        &format!("--max-memory 8M blur {zeros} out.raw"),
        &["a slice with the 12 around it", "--max-memory"],
    );
    // Histograms read the volume in parts.
    let output = run_in_1_gib(folder, &format!("--max-memory 64M histogram {zeros} --bins 2"));
    assert!(String::from_utf8_lossy(&output.stdout).contains("512000000"), "{output:?}");
    assert_refused_in_1_gib(
        folder,
        &format!("--max-pixels 9M mesh {zeros} --iso 1"),
        &["512000000", "--max-pixels"],
    );
    assert_refused_in_1_gib(
        folder,
        &format!("--max-memory 64M mesh {zeros} --iso 1 --dims 9x9x9"),
        &["more data"],
    );
    // Meshes read the volume in slabs.
    let output = run_in_1_gib(folder, &format!("--max-memory 64M mesh {zeros} --iso 1 out.ply"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!folder.join("out.npy").exists() && !folder.join("out.raw").exists());
    let output = run_in_1_gib(folder, &format!("--max-memory 256M blur {zeros} out.raw"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::metadata(folder.join("out.raw")).unwrap().len(), 512_000_000);
}

#[cfg(target_os = "linux")]
#[test]
fn drops_oversized_metadata_with_a_warning() {
    let folder = folder();
    let folder = folder.path();
    let good = fs::read(folder.join("good.png")).unwrap();
    let mut noise = crate::common::Noise(1);
    let long = noise.bytes(5 << 20);
    let icc = png_chunk(b"iCCP", &[b"x\0\0", &zlib(long.iter().copied())[..]].concat());
    let exif = png_chunk(b"eXIf", &[b"MM\0*", &long[..100_000]].concat());
    let comment = png_chunk(b"tEXt", &[b"Comment\0".to_vec(), b"secret".repeat(20_000)].concat());
    let other = png_chunk(b"prVt", b"secret");
    let file = [&good[..33], &icc, &exif, &comment, &other, &good[33..]].concat();
    fs::write(folder.join("fat.png"), file).unwrap();
    gpuproc()
        .current_dir(folder)
        .args(["blur", "fat.png", "out.png", "--device", "cpu"])
        .assert()
        .success()
        .stderr(contains("colour profile of 5242880 bytes").and(contains("EXIF of 100004 bytes")))
        .stderr(contains("the text Comment that cannot be read, or is too long, is left out"));
    let out = fs::read(folder.join("out.png")).unwrap();
    for name in [&b"iCCP"[..], b"eXIf", b"tEXt", b"prVt", b"secret"] {
        assert!(!out.windows(name.len()).any(|window| window == name), "{}", name.escape_ascii());
    }
}

/// CRC-32 of PNG chunks (ISO 3309).
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

#[test]
fn refuses_raw_volumes_with_wrong_shape() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("short_8x8x8_uint8.raw"), [0; 500]).unwrap();
    fs::write(folder.join("odd.raw"), [0; 500]).unwrap();
    fs::write(folder.join("empty.raw"), b"").unwrap();
    assert_refused(folder, "mesh short_8x8x8_uint8.raw --iso 80", 4, &["512", "500"]);
    assert_refused(folder, "mesh odd.raw --iso 80", 4, &["--dims"]);
    assert_refused(folder, "mesh empty.raw --iso 80", 4, &["empty.raw"]);
    assert_refused(folder, "mesh good_8x8x8_uint8.raw --iso 80 --dims 0x8x8", 2, &["0x8x8"]);
    assert_refused(folder, "mesh good_8x8x8_uint8.raw --iso 80 --dims 8x8", 2, &["8x8"]);
    let huge = "18446744073709551615x2x2";
    assert_refused(folder, &format!("mesh odd.raw --iso 80 --dims {huge}"), 4, &["too large"]);
}

#[test]
fn refuses_text_with_invalid_numbers() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("bad.txt"), "1 2\n3 four 5\n").unwrap();
    fs::write(folder.join("large.txt"), "1 4294967296\n").unwrap();
    assert_refused(folder, "scan bad.txt", 4, &["line 2", "four"]);
    assert_refused(folder, "scan large.txt", 4, &["line 1", "4294967296"]);
}

#[test]
fn refuses_impossible_outputs() {
    let folder = folder();
    let folder = folder.path();
    let volume = "good_8x8x8_uint8.raw";
    assert_refused(folder, "blur good.png out.doc", 2, &["out.doc"]);
    assert_refused(folder, "histogram good.png -o out.doc", 2, &["out.doc"]);
    assert_refused(folder, &format!("mesh {volume} out.doc --iso 80"), 2, &["out.doc"]);
    assert_refused(folder, "blur good.png nowhere/out.png", 7, &["nowhere"]);
    assert_refused(folder, "histogram good.png -o nowhere/out.csv", 7, &["nowhere"]);
    assert_refused(folder, "scan good.txt nowhere/out.txt", 7, &["nowhere"]);
    assert_refused(folder, &format!("mesh {volume} nowhere/out.ply --iso 80"), 7, &["nowhere"]);
    fs::write(folder.join("there.png"), b"precious").unwrap();
    assert_refused(folder, "--no-clobber blur good.png there.png", 7, &["there.png", "exists"]);
    assert_eq!(fs::read(folder.join("there.png")).unwrap(), b"precious");
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
    assert_refused(folder.path(), "blur good.png full.png", 7, &["full.png"]);
    assert_refused(folder.path(), "histogram good.png -o full.csv", 7, &["full.csv"]);
    assert_refused(folder.path(), "scan good.txt full.txt", 7, &["full.txt"]);
    assert_refused(folder.path(), &format!("mesh {volume} full.ply --iso 80"), 7, &["full.ply"]);
}

#[test]
fn empty_mesh_is_a_warning_or_with_strict_an_error() {
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
        assert_refused(
            folder,
            &line,
            4,
            &[output, "the surface is empty", "the samples are 7 to 7"],
        );
    }
}

#[test]
fn warns_of_nan_voxels() {
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
fn refuses_endless_and_oversized_file_lists() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("lines"), "a\n".repeat(8 << 20)).unwrap();
    for command in ["histogram", "info", "blur -o out/", "mesh --iso 9 -o out/", "merge -o o.csv"] {
        for (list, expected_text) in [
            ("/dev/zero", "/dev/zero: name 1 is empty"),
            ("/dev/urandom", "/dev/urandom: name"),
            (
                "lines",
                "lines: the names take more than the 8388608 bytes allowed; raise --max-memory",
            ),
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
        .stderr("error: $GPUPROC_CONFIG_PATH: /dev/zero has more than 65536 bytes\n");
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
