//! Inputs that cannot be used give one `error:` line with the file and the cause, the documented exit
//! code, and no output.

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

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Runs `command` (words; file names are relative to `folder`) and checks exit code and message. No file may appear
/// or disappear, and stderr has exactly one line, the error.
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
    // A folder holds the slices of a volume.
    refuses(folder, "blur folder.png out.png", 2, &["no volume is written as .png"]);
    refuses(folder, "histogram folder.png", 4, &["folder.png", "no slices"]);
    refuses(folder, "mesh folder.png --iso 80", 4, &["folder.png", "no slices"]);
    refuses(folder, "scan folder.png --axis x o.npy", 7, &["folder.png", "directory"]);
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
    for command in ["blur bomb.png out.png", "histogram bomb.png", "scan bomb.png out.npy"] {
        let limited = |limit: &str| format!("{limit} {command}");
        // Blurred in bands, it would not need more memory, but it has no data.
        let says: &[&str] = match command.starts_with("blur") {
            true => &["bomb.png", "not have enough data"],
            false => &["100000", "memory", "30000000000"],
        };
        refuses(folder, &limited("--max-memory 1G"), 4, says);
        refuses(
            folder,
            &limited("--max-pixels 100M"),
            4,
            &["10000000000", "100000000", "--max-pixels"],
        );
    }
}

/// Runs `command` with 1 GiB of address space, of which the program itself takes about half. If memory were
/// allocated before it is checked against the limit, the process would abort.
fn cramped(folder: &Path, command: &str) -> std::process::Output {
    within(1024, folder, command)
}

/// Runs `command` with `mib` MiB of address space.
fn within(mib: u32, folder: &Path, command: &str) -> std::process::Output {
    let limit = mib * 1024;
    let script = format!("ulimit -v {limit}; exec \"$0\" --threads 2 --device cpu {command}");
    let mut run = std::process::Command::new("sh");
    run.current_dir(folder).arg("-c").arg(script).arg(program()).env_remove("RUST_BACKTRACE");
    run.output().unwrap()
}

/// With less and less memory, so that every allocation fails once.
#[test]
#[cfg(target_os = "linux")]
fn no_memory_is_an_error() {
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
    let before = names(folder);
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
            let output = within(mib, folder, &format!("--max-memory 9G --quiet {command}"));
            let stderr = String::from_utf8_lossy(&output.stderr);
            let (code, told) = (output.status.code(), format!("{command} in {mib} MiB: {stderr}"));
            assert!(matches!(code, Some(0 | 1 | 4)), "{code:?}: {told}");
            // Small allocations may fail, too, and then the message is that of the system's library.
            let broke_off = ["memory allocation of ", "Fatal glibc error: "]
                .iter()
                .any(|last_word| stderr.starts_with(last_word));
            if code != Some(0) && !broke_off {
                // A thread needs address space for its stack.
                let refusals = ["no memory", "grants no further thread"];
                let says_why = refusals.iter().any(|refusal| stderr.contains(refusal));
                assert!(stderr.starts_with("error: ") && says_why, "{told}");
                assert_eq!(stderr.lines().count(), 1, "{told}");
                assert_eq!(names(folder), before, "{told}");
                refused += 1;
            }
            for name in names(folder).iter().filter(|name| !before.contains(name)) {
                fs::remove_file(folder.join(name)).unwrap();
            }
        }
        assert!(refused > 0, "{command} always has enough memory, or breaks off");
    }
}

/// Runs [`cramped`], which must refuse the input with one line that contains all of `says`.
fn refuses_cramped(folder: &Path, command: &str, says: &[&str]) {
    let output = cramped(folder, command);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{command}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{command}: {stderr}");
    for text in says {
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
fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let body = [name, data].concat();
    [&(data.len() as u32).to_be_bytes()[..], &body, &crc32(&body).to_be_bytes()].concat()
}

#[cfg(target_os = "linux")]
#[test]
fn metadata_that_swells_is_left_alone() {
    let folder = folder();
    let folder = folder.path();
    let good = fs::read(folder.join("good.png")).unwrap();
    // 400 MB of zeros in 0.4 MB or less.
    let bomb = zlib(std::iter::repeat_n(0, 400 << 20));
    let profile = chunk(b"iCCP", &[b"x\0\0", &bomb[..]].concat());
    let text = chunk(b"zTXt", &[b"x\0\0", &bomb[..]].concat());
    for (name, bad) in [("icc.png", profile), ("text.png", text)] {
        // Insert after the signature and IHDR.
        let file = [&good[..33], &bad, &good[33..]].concat();
        fs::write(folder.join(name), file).unwrap();
        let output = cramped(folder, &format!("--max-memory 64M blur {name} out.png"));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            matches!(output.status.code(), Some(0 | 4)),
            "{name}: {:?} {stderr}",
            output.status
        );
        let out = fs::read(folder.join("out.png"));
        assert!(out.is_err() || out.unwrap().len() < 20_000, "the bomb is passed on");
        fs::remove_file(folder.join("out.png")).ok();
    }
}

#[test]
fn other_formats_that_claim_to_be_huge_are_refused() {
    let folder = folder();
    let folder = folder.path();
    // A JPEG whose frame header claims 65,500 x 65,500 pixels.
    let mut jpeg =
        fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/images/comment.jpg")).unwrap();
    let frame = jpeg.windows(2).position(|marker| marker == [0xff, 0xc0]).unwrap();
    jpeg[frame + 5..frame + 9].copy_from_slice(&[0xff, 0xdc, 0xff, 0xdc]);
    fs::write(folder.join("huge.jpg"), jpeg).unwrap();
    // A BMP of 24 bits.
    let mut bmp = b"BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0".to_vec();
    bmp.extend(60_000u32.to_le_bytes());
    bmp.extend(60_000u32.to_le_bytes());
    bmp.extend([1, 0, 24, 0]);
    bmp.extend([0; 24]);
    fs::write(folder.join("huge.bmp"), bmp).unwrap();
    // TIFFs of bytes and of floats whose only strip is missing. Entries: tag, type, count, value.
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
        // They are followed by the length, then left, top, right and bottom.
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
        // TIFF is blurred in bands, up to the missing data.
        let says = if name == "huge.tif" { ["strip 0", "early"] } else { [side, "memory"] };
        refuses_cramped(folder, &blur, &[name, says[0], says[1]]);
        refuses_cramped(
            folder,
            &format!("--max-pixels 1M histogram {name}"),
            &[name, side, "--max-pixels"],
        );
    }
    assert!(!folder.join("out.png").exists());
}

#[test]
fn a_picture_of_no_pixels_is_refused_by_every_command() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("wide.ppm"), "P6\n3 0\n255\n").unwrap();
    fs::write(folder.join("high.ppm"), "P6\n0 20\n255\nxxxxx").unwrap();
    for name in ["wide.ppm", "high.ppm"] {
        refuses(folder, &format!("blur {name} out.png"), 4, &[name]);
        refuses(folder, &format!("histogram {name}"), 4, &[name]);
        refuses(folder, &format!("scan {name} out.npy"), 4, &[name]);
    }
}

#[test]
fn arrays_and_volumes_that_lie_are_refused() {
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
    refuses_cramped(folder, "scan long.npy out.npy", &["long.npy", "999999999996"]);
    refuses_cramped(folder, "sort long.npy out.npy", &["long.npy", "--max-memory"]);
    refuses_cramped(folder, "scan deep.npy out.npy", &["deep.npy", "too large"]);
    // 512 MB of zeros in 0.5 MB.
    let file = fs::File::create(folder.join("zeros_800x800x800_uint8.raw.gz")).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    (0..800).for_each(|_| std::io::Write::write_all(&mut encoder, &[0; 800 * 800]).unwrap());
    encoder.finish().unwrap();
    let zeros = "zeros_800x800x800_uint8.raw.gz";
    refuses_cramped(
        folder,
        &format!("--max-memory 8M blur {zeros} out.raw"),
        &["a slice with the 12 around it", "--max-memory"],
    );
    // It is counted in parts.
    let output = cramped(folder, &format!("--max-memory 64M histogram {zeros} --bins 2"));
    assert!(String::from_utf8_lossy(&output.stdout).contains("512000000"), "{output:?}");
    refuses_cramped(
        folder,
        &format!("--max-pixels 9M mesh {zeros} --iso 1"),
        &["512000000", "--max-pixels"],
    );
    refuses_cramped(
        folder,
        &format!("--max-memory 64M mesh {zeros} --iso 1 --dims 9x9x9"),
        &["more data"],
    );
    // A volume larger than memory is meshed in slabs.
    let output = cramped(folder, &format!("--max-memory 64M mesh {zeros} --iso 1 out.ply"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!folder.join("out.npy").exists() && !folder.join("out.raw").exists());
    let output = cramped(folder, &format!("--max-memory 256M blur {zeros} out.raw"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::metadata(folder.join("out.raw")).unwrap().len(), 512_000_000);
}

#[cfg(target_os = "linux")]
#[test]
fn metadata_beyond_reason_is_left_out_with_a_warning() {
    let folder = folder();
    let folder = folder.path();
    let good = fs::read(folder.join("good.png")).unwrap();
    let mut noise = crate::common::Noise(1);
    let long = noise.bytes(5 << 20);
    let icc = chunk(b"iCCP", &[b"x\0\0", &zlib(long.iter().copied())[..]].concat());
    let exif = chunk(b"eXIf", &[b"MM\0*", &long[..100_000]].concat());
    let comment = chunk(b"tEXt", &[b"Comment\0".to_vec(), b"secret".repeat(20_000)].concat());
    let other = chunk(b"prVt", b"secret");
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
    // Symbolic links give the device a name with an extension.
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
        .stderr(contains("0 triangles").and(contains("warning: out.ply: the surface is empty")));
    let ply = fs::read(folder.join("out.ply")).unwrap();
    assert!(ply.starts_with(b"ply\n"));
    for output in ["a.ply", "a.stl", "a.glb", "a.html"] {
        let line = format!("mesh low_4x4x4_uint8.raw {output} --iso 80 --strict");
        refuses(folder, &line, 4, &[output, "the surface is empty", "the samples are 7 to 7"]);
    }
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

/// Lists and files of flags that are endless, or whose names take too much memory.
#[test]
#[cfg(target_os = "linux")]
fn lists_without_an_end_are_refused() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("lines"), "a\n".repeat(8 << 20)).unwrap();
    for command in ["histogram", "info", "blur -o out/", "mesh --iso 9 -o out/", "merge -o o.csv"] {
        for (list, says) in [
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
            assert!(run.stderr.contains(says) && run.peak < 128, "{command}: {run:?}");
        }
    }
    gpuproc()
        .env("GPUPROC_CONFIG_PATH", "/dev/zero")
        .arg("devices")
        .assert()
        .code(2)
        .stderr("error: $GPUPROC_CONFIG_PATH: /dev/zero has more than 65536 bytes\n");
}

/// If the system grants no thread, the program prints one line, as for every other error.
#[test]
#[cfg(target_os = "linux")]
fn no_threads_are_an_error() {
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
