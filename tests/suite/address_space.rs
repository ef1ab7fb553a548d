//! Runs in little address space: false sizes are refused before memory is allocated, and failed allocations are errors.

use std::{fs, path::Path};

use predicates::{prelude::*, str::contains};

use crate::{
    asserts::assert_absent,
    bad_input::{assert_rejected, file_names, folder},
    common::{Noise, gpuproc, program},
    hostile::deflated,
    inputs::{fixture, png_chunk, zlib},
};

#[test]
fn rejects_png_with_huge_claimed_size_before_allocating() {
    let folder = folder();
    let folder = folder.path();
    let mut bomb = fs::read(folder.join("good.png")).unwrap();
    bomb[16..24].copy_from_slice(&[0, 1, 0x86, 0xa0, 0, 1, 0x86, 0xa0]);
    let checksum = crc32fast::hash(&bomb[12..29]).to_be_bytes();
    bomb[29..33].copy_from_slice(&checksum);
    fs::write(folder.join("bomb.png"), bomb).unwrap();
    for command in ["blur bomb.png out.png", "histogram bomb.png", "scan bomb.png out.npy"] {
        let limited = |limit: &str| format!("{limit} {command}");
        // Blur works in blocks, so the size alone is possible, but the data is missing.
        let expected_texts: &[&str] = match command.starts_with("blur") {
            true => &["bomb.png", "not have enough data"],
            false => {
                &["100000 x 100000", "GiB of memory, more than the limit of 1 GiB", "--max-memory"]
            }
        };
        assert_rejected(folder, &limited("--max-memory 1G"), 4, expected_texts);
        assert_rejected(
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
        "blur w.pgm o.jpg --sigma 2",
        "blur f_128x128x128_float64.raw o.raw --sigma 1",
        "histogram p.ppm --equalize o.png",
        "mesh v_96x96x96_uint8.raw o.glb --iso 128 --normals --smooth 1 --largest --stats",
        "mesh v_96x96x96_uint8.raw o.obj --iso 128 --simplify 0.5",
        "mesh v_96x96x96_uint8.raw o.stl --iso 128 --preview o.png",
    ] {
        let mut failures = 0;
        for mib in (180..=340).step_by(20) {
            let output =
                run_in_address_space(mib, folder, &format!("--max-memory 9G --quiet {command}"));
            let stderr = String::from_utf8_lossy(&output.stderr);
            let (code, context) =
                (output.status.code(), format!("{command} in {mib} MiB: {stderr}"));
            assert!(matches!(code, Some(0 | 1 | 4)), "{code:?}: {context}");
            // If a small allocation fails, the message comes from the Rust runtime or from glibc.
            let aborted = [
                "memory allocation of ",
                "Fatal glibc error: ",
                "fatal runtime error: failed to initiate panic",
            ]
            .iter()
            .any(|start| stderr.starts_with(start));
            if code != Some(0) && !aborted {
                // Threads need address space for their stacks.
                let reasons = ["out of memory", "no memory", "grants no further thread"];
                let has_reason = reasons.iter().any(|reason| stderr.contains(reason));
                assert!(stderr.starts_with("error: ") && has_reason, "{context}");
                assert_eq!(stderr.lines().count(), 1, "{context}");
                assert_eq!(file_names(folder), before, "{context}");
                failures += 1;
            }
            for name in file_names(folder).iter().filter(|name| !before.contains(name)) {
                fs::remove_file(folder.join(name)).unwrap();
            }
        }
        assert!(failures > 0, "{command}: no run reported a failed allocation");
    }
}

/// Runs `command` with [`run_in_1_gib`]. It must refuse its input with one line that contains all of `expected_texts`.
fn assert_rejected_in_1_gib(folder: &Path, command: &str, expected_texts: &[&str]) {
    assert_rejection(&run_in_1_gib(folder, command), command, expected_texts);
}

/// `command` must have refused its input with one line that contains all of `expected_texts`.
fn assert_rejection(output: &std::process::Output, command: &str, expected_texts: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{command}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{command}: {stderr}");
    for text in expected_texts {
        assert!(stderr.contains(text), "{command}: no `{text}` in: {stderr}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn does_not_pass_on_png_metadata_bombs() {
    let folder = folder();
    let folder = folder.path();
    let good = fs::read(folder.join("good.png")).unwrap();
    // 400 MB of zeros in 0.4 MB or less.
    let bomb = deflated(0, 400 << 20);
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
fn rejects_huge_claimed_sizes_in_other_image_formats() {
    let folder = folder();
    let folder = folder.path();
    // A JPEG whose frame header claims 65,500 x 65,500 pixels.
    let mut jpeg = fs::read(fixture("images/comment.jpg")).unwrap();
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
        assert_rejected_in_1_gib(folder, &blur, &[name, expected_texts[0], expected_texts[1]]);
        assert_rejected_in_1_gib(
            folder,
            &format!("--max-pixels 1M histogram {name}"),
            &[name, side, "--max-pixels"],
        );
    }
    assert_absent(folder.join("out.png"));
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
    assert_rejected_in_1_gib(folder, "scan long.npy out.npy", &["long.npy", "999999999996"]);
    assert_rejected_in_1_gib(folder, "sort long.npy out.npy", &["long.npy", "--max-memory"]);
    assert_rejected_in_1_gib(folder, "scan deep.npy out.npy", &["deep.npy", "too large"]);
    // 256 MB of zeros in 0.25 MB. They and a result of the same size do not fit into 640 MiB together with the program.
    let run = |command: &str| run_in_address_space(640, folder, command);
    let assert_rejected =
        |command: &str, texts: &[&str]| assert_rejection(&run(command), command, texts);
    let file = fs::File::create(folder.join("zeros_800x800x400_uint8.raw.gz")).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    (0..400).for_each(|_| std::io::Write::write_all(&mut encoder, &[0; 800 * 800]).unwrap());
    encoder.finish().unwrap();
    let zeros = "zeros_800x800x400_uint8.raw.gz";
    assert_rejected(
        &format!("--max-memory 8M blur {zeros} out.raw"),
        &["a slice with the 12 around it", "--max-memory"],
    );
    // Histograms read the volume in parts.
    let output = run(&format!("--max-memory 64M histogram {zeros} --bins 2"));
    assert!(String::from_utf8_lossy(&output.stdout).contains("256000000"), "{output:?}");
    assert_rejected(
        &format!("--max-pixels 9M mesh {zeros} --iso 1"),
        &["256000000", "--max-pixels"],
    );
    assert_rejected(&format!("--max-memory 64M mesh {zeros} --iso 1 --dims 9x9x9"), &["more data"]);
    // Meshes read the volume in slabs.
    let output = run(&format!("--max-memory 64M mesh {zeros} --iso 1 out.ply"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_absent(folder.join("out.npy"));
    assert_absent(folder.join("out.raw"));
    let output = run(&format!("--max-memory 128M blur {zeros} out.raw"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::metadata(folder.join("out.raw")).unwrap().len(), 256_000_000);
}

#[cfg(target_os = "linux")]
#[test]
fn drops_oversized_metadata_with_a_warning() {
    let folder = folder();
    let folder = folder.path();
    let good = fs::read(folder.join("good.png")).unwrap();
    let mut noise = crate::common::Noise(1);
    let long = noise.bytes(5 << 20);
    let icc = png_chunk(b"iCCP", &[b"x\0\0", &zlib(&long)[..]].concat());
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
