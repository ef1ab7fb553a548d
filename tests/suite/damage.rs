//! Truncated and damaged files of all image formats: missing parts are reported, or the file is refused.

use std::fs;

use gpuproc::jpeg::{Frame, Quality};
use image::ImageEncoder;
use predicates::{prelude::*, str::contains};

use crate::{
    common::{Noise, encode_jpeg, outcome, tiff_of_jpeg},
    damaged_jpeg::{entropy_data_offset, scan_offsets},
    inputs::{fixture, zlib},
};

pub const MEMORY_LIMIT: u64 = 1 << 26;

pub fn jpeg_fixture(name: &str) -> Vec<u8> {
    fs::read(fixture(&format!("jpeg/{name}.jpg"))).unwrap()
}

#[test]
fn damage_is_a_warning_or_an_error_with_strict() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    let file = jpeg_fixture("sequential_420");
    let start = entropy_data_offset(&file, scan_offsets(&file)[0]);
    write("cut.jpg", &file[..(start + file.len()) / 2]);
    // Destroy the SOS marker.
    let mut grey = file.clone();
    grey[scan_offsets(&file)[0]] = 0xfe;
    write("grey.jpg", &grey);
    let progressive = jpeg_fixture("progressive_420");
    let last = *scan_offsets(&progressive).last().unwrap();
    write("coarse.jpg", &[&progressive[..last], &[0xff, 0xd9]].concat());
    // A large image of which only 1/100 of the bytes is left, and one without a complete row.
    let pixels = Noise(4).bytes(2000 * 1500);
    let frame = Frame::for_pixels([2000, 1500], 1, Quality(90), false);
    let large = encode_jpeg(&frame, &pixels, false);
    write("thin.jpg", &large[..large.len() / 100]);
    write("none.jpg", &large[..large.len() / 500]);
    for (name, expected_text) in [
        ("cut.jpg", "rows are missing or damaged"),
        ("coarse.jpg", "last scans are missing"),
        ("thin.jpg", "of its 1500 rows are missing or damaged"),
    ] {
        let commands = ["blur NAME o.png --sigma 0", "scan NAME o.npy", "histogram NAME -o o.csv"];
        for command in &commands[..if name == "thin.jpg" { 2 } else { 3 }] {
            let command = command.replace("NAME", name);
            let is_warning = contains("warning: ").and(contains(name)).and(contains(expected_text));
            outcome(folder, &command).success().stderr(is_warning);
            for output in ["o.png", "o.csv", "o.npy"] {
                fs::remove_file(folder.join(output)).ok();
            }
            let is_error = contains("error: cannot decode").and(contains(expected_text));
            outcome(folder, &format!("{command} --strict")).code(4).stderr(is_error);
            assert!(["o.png", "o.csv", "o.npy"].iter().all(|name| !folder.join(name).exists()));
        }
    }
    outcome(folder, "blur grey.jpg o.png").code(4).stderr(contains("no scan"));
    outcome(folder, "blur none.jpg o.png").code(4).stderr(contains("no complete row"));
    for rest in [&[][..], &[0xff, 0xd9], &[0x80]] {
        write("empty.jpg", &[&file[..start], rest].concat());
        for command in
            ["blur empty.jpg o.png", "scan empty.jpg o.npy", "histogram empty.jpg -o o.csv"]
        {
            let is_error = contains("empty.jpg: no complete row of image data after the header");
            outcome(folder, command).code(4).stderr(is_error);
        }
        assert!(["o.png", "o.csv", "o.npy"].iter().all(|name| !folder.join(name).exists()));
    }
    for name in ["sequential_420", "progressive_422_restarts"] {
        write("whole.jpg", &jpeg_fixture(name));
        outcome(folder, "blur whole.jpg o.png --sigma 0 --strict").success().stderr("");
    }
}

#[test]
fn rejects_truncated_files_of_other_formats() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let picture = image::RgbImage::from_raw(200, 150, Noise(5).bytes(200 * 150 * 3)).unwrap();
    picture.save(folder.join("a.png")).unwrap();
    for name in ["a.png", "a.bmp", "a.ppm", "a.tif", "a.webp", "a.exr"] {
        if name != "a.png" {
            outcome(folder, &format!("blur a.png {name} --sigma 0")).success();
        }
        let file = fs::read(folder.join(name)).unwrap();
        for share in [20, 50, 80, 97] {
            let cut = format!("cut.{}", &name[2..]);
            fs::write(folder.join(&cut), &file[..file.len() * share / 100]).unwrap();
            outcome(folder, &format!("blur {cut} o.png")).code(4).stderr(contains(&cut));
            assert!(!folder.join("o.png").exists(), "{share} % of {name}");
        }
    }
    // An EXR whose table names its first block twice.
    let mut file = fs::read(folder.join("a.exr")).unwrap();
    let mut offsets = (0..file.len() - 16).filter(|&at| {
        let word = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
        let (first, second) = (word(at), word(at + 8));
        first > at as u64
            && first < second
            && second < file.len() as u64
            && first - (at as u64) < 1000
    });
    let table = offsets.next().expect("there are several blocks");
    file.copy_within(table..table + 8, table + 8);
    fs::write(folder.join("twice.exr"), file).unwrap();
    outcome(folder, "blur twice.exr o.png").code(4).stderr(contains("blocks are missing"));
}

/// Names of the chunks of a PNG file and the ranges of their data.
fn png_chunks(file: &[u8]) -> Vec<(String, std::ops::Range<usize>)> {
    let (mut at, mut found) = (8, Vec::new());
    while at < file.len() {
        let len = u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        let name = String::from_utf8(file[at + 4..at + 8].to_vec()).unwrap();
        found.push((name, at + 8..at + 8 + len));
        at += 12 + len;
    }
    found
}

/// PNG has a checksum for each chunk. Damaged metadata is dropped with a warning. Damaged pixels and damaged or missing
/// frames of an animation are errors.
#[test]
fn detects_damage_in_every_png_chunk() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let chunk = |name: &[u8; 4], body: &[u8]| {
        let mut crc = flate2::Crc::new();
        crc.update(name);
        crc.update(body);
        let len = (body.len() as u32).to_be_bytes();
        [&len, &name[..], body, &crc.sum().to_be_bytes()].concat()
    };
    // Inserts a chunk after IHDR.
    let add = |file: &[u8], name: &[u8; 4], body: &[u8]| {
        [&file[..33], &chunk(name, body), &file[33..]].concat()
    };
    let grey = image::GrayImage::from_raw(20, 10, Noise(5).bytes(200)).unwrap();
    grey.save(folder.join("grey.png")).unwrap();
    let mut file = fs::read(folder.join("grey.png")).unwrap();
    let profile = [&b"mine\0\0"[..], &zlib(&[7; 200])].concat();
    for (name, body) in [
        (b"gAMA", &[0, 0, 0x80, 0][..]),
        (b"iCCP", &profile),
        (b"pHYs", &[0, 0, 9, 0, 0, 0, 9, 0, 1]),
        (b"tEXt", b"Title\0a title"),
        (b"tRNS", &[0, 9]),
        (b"prVt", b"private"),
    ] {
        file = add(&file, name, body);
    }
    fs::write(folder.join("in.png"), &file).unwrap();
    outcome(folder, "blur in.png o.png --sigma 0 --strict").success().stderr("");
    for (name, body) in png_chunks(&file) {
        if body.is_empty() {
            continue;
        }
        let mut damaged = file.clone();
        damaged[body.start + body.len() / 2] ^= 1;
        fs::write(folder.join("in.png"), damaged).unwrap();
        let done = outcome(folder, "blur in.png o.png --sigma 0");
        match &name[..] {
            "IHDR" | "IDAT" | "tRNS" => drop(done.code(4).stderr(contains("in.png"))),
            _ => drop(done.success().stderr(contains(format!("its chunk {name} is damaged")))),
        }
        outcome(folder, "blur in.png o.png --sigma 0 --strict").code(4);
    }
    // Change the name of a chunk.
    let at = png_chunks(&file).iter().find(|(name, _)| name == "pHYs").unwrap().1.start;
    let mut damaged = file.clone();
    damaged[at - 3] ^= 4;
    fs::write(folder.join("in.png"), damaged).unwrap();
    outcome(folder, "blur in.png o.png --sigma 0")
        .success()
        .stderr(contains("its chunk pLYs is damaged"));
    // Without IEND, other chunks may be missing, too.
    let cut = [&file[..file.len() - 12], &chunk(b"tEXt", b"Author\0me")].concat();
    fs::write(folder.join("in.png"), cut).unwrap();
    outcome(folder, "blur in.png o.png --sigma 0")
        .success()
        .stderr(contains("the file is truncated"));
    // A profile that cannot be decompressed, in a chunk with a correct checksum.
    fs::write(
        folder.join("in.png"),
        add(&fs::read(folder.join("grey.png")).unwrap(), b"iCCP", b"x\0\0?"),
    )
    .unwrap();
    outcome(folder, "blur in.png o.png")
        .success()
        .stderr(contains("a colour profile that cannot be read"));

    let file = fs::read(fixture("images/animation.png")).unwrap();
    let found = png_chunks(&file);
    for (name, body) in
        found.iter().filter(|(name, _)| ["acTL", "fcTL", "fdAT"].contains(&&name[..]))
    {
        let mut damaged = file.clone();
        damaged[body.end - 1] ^= 1;
        fs::write(folder.join("in.png"), damaged).unwrap();
        outcome(folder, "blur in.png o.png --sigma 0")
            .code(4)
            .stderr(contains(format!("its chunk {name} is damaged")));
    }
    let last = found.iter().rfind(|(name, _)| name == "fcTL").unwrap().1.start - 8;
    fs::write(folder.join("in.png"), &file[..last]).unwrap();
    outcome(folder, "blur in.png o.png --sigma 0")
        .code(4)
        .stderr(contains("the file has 4 of its 5 frames"));
}

#[test]
fn reports_missing_tiff_pages() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // gpuproc writes each directory before the data of its page.
    let stack = fixture("tiff/stack_imagej.tif");
    outcome(folder, &format!("blur {} a.tif --sigma 0 --pages", stack.display())).success();
    let file = fs::read(folder.join("a.tif")).unwrap();
    // The cut is within the directory of the last page.
    fs::write(folder.join("cut.tif"), &file[..file.len() * 3 / 4]).unwrap();
    let expected_text = contains("pages after the first 2 are missing or damaged");
    outcome(folder, "blur cut.tif o.tif --sigma 0 --pages").success().stderr(expected_text.clone());
    outcome(folder, "blur cut.tif o.tif --sigma 0 --pages --strict")
        .code(4)
        .stderr(expected_text.clone());
    outcome(folder, "blur cut.tif o.tif --sigma 0 --stack").success().stderr(expected_text);
}

/// A strip whose offset lies beyond the end of the file is an error. A strip that a sparse file omits is not.
#[test]
fn rejects_tiff_strips_beyond_the_end_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let expected_text = contains("strip 0: it ends early");
    // Strips of more than 4 MiB are read as streams.
    for height in [9u32, 90_000] {
        let mut file = b"II*\0\x08\0\0\0\x07\0".to_vec();
        for (tag, value) in
            [(256u16, 77), (257, height), (258, 8), (259, 8), (262, 1), (273, 9999), (278, height)]
        {
            file.extend([tag.to_le_bytes(), 4u16.to_le_bytes()].concat());
            file.extend([1, value].map(u32::to_le_bytes).concat());
        }
        file.extend([0; 4]);
        fs::write(folder.join("in.tif"), file).unwrap();
        outcome(folder, "blur in.tif o.png --sigma 0").code(4).stderr(expected_text.clone());
        outcome(folder, "blur in.tif o.tif --sigma 0 --max-memory 8M")
            .code(4)
            .stderr(expected_text.clone());
        outcome(folder, "mesh in.tif o.ply --stack --iso 3 --close")
            .code(4)
            .stderr(expected_text.clone());
    }
}

#[test]
fn reports_damage_in_jpeg_strips_of_tiff() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let frame = Frame::for_pixels([200, 160], 1, Quality(90), false);
    let pixels = Noise(7).bytes(200 * 160);
    let mut strip = encode_jpeg(&frame, &pixels, false);
    fs::write(folder.join("whole.tif"), tiff_of_jpeg([200, 160], &strip)).unwrap();
    outcome(folder, "blur whole.tif o.png --sigma 0 --strict").success().stderr("");
    let middle = strip.len() / 2;
    drop(strip.drain(middle..middle + 900));
    fs::write(folder.join("hole.tif"), tiff_of_jpeg([200, 160], &strip)).unwrap();
    let expected_text = contains("1 of its 1 strips or tiles are damaged");
    outcome(folder, "blur hole.tif o.png --sigma 0").success().stderr(expected_text.clone());
    outcome(folder, "blur hole.tif o.png --sigma 0 --strict").code(4).stderr(expected_text);
}

/// In PNG and WebP, EXIF may begin with the prefix `Exif\0\0` that it has in JPEG.
#[test]
fn applies_exif_orientation_of_png_and_webp() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let pixels = Noise(6).bytes(30 * 20 * 3);
    let block = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0".to_vec();
    for prefix in [&b""[..], b"Exif\0\0"] {
        let exif = [prefix, &block].concat();
        let mut webp = Vec::new();
        let mut encoder = image::codecs::webp::WebPEncoder::new_lossless(&mut webp);
        encoder.set_exif_metadata(exif.clone()).unwrap();
        encoder.write_image(&pixels, 30, 20, image::ExtendedColorType::Rgb8).unwrap();
        fs::write(folder.join("in.webp"), webp).unwrap();
        let mut png = Vec::new();
        let mut encoder = image::codecs::png::PngEncoder::new(&mut png);
        encoder.set_exif_metadata(exif).unwrap();
        encoder.write_image(&pixels, 30, 20, image::ExtendedColorType::Rgb8).unwrap();
        fs::write(folder.join("in.png"), png).unwrap();
        let rotated =
            image::imageops::rotate90(&image::RgbImage::from_raw(30, 20, pixels.clone()).unwrap());
        for name in ["in.webp", "in.png"] {
            outcome(folder, &format!("blur {name} o.png --sigma 0")).success();
            assert!(image::open(folder.join("o.png")).unwrap().into_rgb8() == rotated, "{name}");
        }
    }
}
