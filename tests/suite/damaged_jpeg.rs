//! Truncated and damaged JPEG files: the rest is decoded, and missing parts are reported.

use std::fs;

use gpuproc::{
    data::image::Image,
    device::Kernel,
    io::image::jpeg,
    jpeg::{Frame, Quality},
    kernels::jpeg::Decode,
};
use predicates::str::contains;

use crate::{
    asserts::assert_contains,
    common::{Noise, decode_jpeg, encode_jpeg, outcome},
    damage::{MEMORY_LIMIT, jpeg_fixture},
    inputs::fixture,
};

/// Offsets of the SOS markers.
pub fn scan_offsets(file: &[u8]) -> Vec<usize> {
    (0..file.len() - 1).filter(|&at| file[at..at + 2] == [0xff, 0xda]).collect()
}

/// Offset of the entropy-coded data of the scan whose SOS marker is at `scan`.
pub fn entropy_data_offset(file: &[u8], scan: usize) -> usize {
    scan + 2 + usize::from(u16::from_be_bytes([file[scan + 2], file[scan + 3]]))
}

/// Rows in which two images differ.
fn differing_rows(one: &Image, other: &Image) -> Vec<usize> {
    let row = |image: &Image, y: usize| {
        let bytes = image.width * image.channels;
        image.samples.as_bytes()[y * bytes..(y + 1) * bytes].to_vec()
    };
    (0..one.height).filter(|&y| row(one, y) != row(other, y)).collect()
}

/// The number at the start of `text`.
fn leading_number(text: &str) -> usize {
    text.split(' ').next().unwrap().parse().unwrap_or_else(|_| panic!("{text}"))
}

/// Missing blocks are zero, even where memory held other blocks before.
#[test]
fn damaged_jpeg_decodes_like_its_coefficients() {
    let mut noise = Noise(41);
    let size = [40, 1200];
    let pixels: Vec<u8> = (0..size[0] * size[1] * 3).map(|_| noise.next() as u8).collect();
    let frame = Frame::for_pixels(size, 3, Quality(60), true);
    let whole = encode_jpeg(&frame, &pixels, false);
    let start = entropy_data_offset(&whole, scan_offsets(&whole)[0]);
    let mut damaged = 0;
    for _ in 0..40 {
        let mut file = whole.clone();
        let at = start + noise.next() as usize % (file.len() - start);
        // Either a marker, after which no data is read, or different codes.
        file[at] = 0xff;
        file[(at + 1).min(whole.len() - 1)] = noise.next() as u8;
        let Some((image, damage)) = decode_jpeg(&file) else { continue };
        let read = jpeg::read_coefficients(&file, MEMORY_LIMIT.into());
        let Some((coefficients, _)) = read else {
            assert_eq!(damage.as_deref(), Some("no complete row of image data after the header"));
            continue;
        };
        let expected = Decode.cpu(&coefficients).unwrap();
        assert!(image.samples.as_bytes() == expected, "{at}");
        damaged += usize::from(damage.is_some());
    }
    assert!(damaged > 10, "{damaged}");
}

/// A truncated sequential file lacks whole rows of MCUs. Interpolation of subsampled chroma may change one row more.
#[test]
fn reports_missing_rows_of_truncated_jpeg() {
    for name in
        ["sequential_420", "sequential_422", "sequential_444_optimised", "sequential_420_restarts"]
    {
        let file = jpeg_fixture(name);
        let (whole, damage) = decode_jpeg(&file).unwrap();
        assert_eq!(damage, None, "{name}");
        let start = entropy_data_offset(&file, scan_offsets(&file)[0]);
        let mut last = usize::MAX;
        for share in [0, 1, 10, 25, 50, 75, 90, 97] {
            let cut = &file[..start + (file.len() - start) * share / 100];
            let (found, damage) = decode_jpeg(cut).unwrap();
            let damage = damage
                .unwrap_or_else(|| panic!("{name}: {share} % of the data: no damage reported"));
            if damage == "no complete row of image data after the header" {
                assert!(share < 50, "{name} {share}");
                continue;
            }
            assert_contains(&damage, &format!("of its {} rows are missing", whole.height));
            let (rows, lost) = (leading_number(&damage), differing_rows(&whole, &found));
            assert!(lost.len() <= rows + 1, "{name} {share}: {} rows differ: {damage}", lost.len());
            assert!(rows <= lost.len() + 16, "{name} {share}: {} differ: {damage}", lost.len());
            assert!(rows <= last, "{name}: a longer file has fewer rows");
            last = rows;
        }
        // A missing EOI marker is not damage.
        let (found, damage) = decode_jpeg(&file[..file.len() - 2]).unwrap();
        assert!(damage.is_none() && found == whole, "{name}");
    }
}

/// Offsets of the marker segments of a file, up to the header of its first scan.
fn segment_offsets(file: &[u8]) -> Vec<usize> {
    let (mut at, mut found, end) = (2, Vec::new(), scan_offsets(file)[0]);
    while at <= end {
        found.push(at);
        at += 2 + usize::from(u16::from_be_bytes([file[at + 2], file[at + 3]]));
    }
    found
}

/// Stray bytes between segments change neither the image nor the metadata after them.
#[test]
fn skips_stray_bytes_before_jpeg_markers() {
    for name in ["sequential_420", "sequential_420_restarts", "progressive_444", "rgb", "ycck"] {
        let file = jpeg_fixture(name);
        let whole = decode_jpeg(&file).unwrap();
        assert_eq!(whole.1, None, "{name}");
        for at in segment_offsets(&file) {
            for (stray, expected_text) in [
                (&[0xfe, 1, 0xff, 0, 0xff][..], "4 stray bytes before markers are skipped"),
                (&[7], "1 stray byte before a marker is skipped"),
            ] {
                let junk = [&file[..at], stray, &file[at..]].concat();
                let (image, damage) = decode_jpeg(&junk).unwrap();
                assert!(image.samples == whole.0.samples, "{name} {at}");
                assert_eq!(damage.as_deref(), Some(expected_text), "{name} {at}");
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let file = fs::read(fixture("images/metadata.jpg")).unwrap();
    let read = |bytes: &[u8]| {
        fs::write(folder.join("in.jpg"), bytes).unwrap();
        let source = gpuproc::io::Source::from(folder.join("in.jpg"));
        let timings = gpuproc::util::timings::Timings::new(false);
        gpuproc::io::image::read_image(&source, MEMORY_LIMIT, &timings).unwrap()
    };
    let whole = read(&file);
    assert!(whole.metadata.xmp.is_some() && whole.metadata.iptc.is_some());
    // Files that do not start with a marker are not recognised as JPEG.
    for at in segment_offsets(&file).into_iter().skip(1) {
        assert!(read(&[&file[..at], b"junk", &file[at..]].concat()) == whole, "{at}");
        let command = "blur in.jpg o.png --sigma 0";
        outcome(folder, command)
            .success()
            .stderr(contains("4 stray bytes before markers are skipped"));
        outcome(folder, &format!("{command} --strict")).code(4).stderr(contains("4 stray bytes"));
    }
}

/// Metadata segments that are too short are skipped, as in libjpeg.
#[test]
fn skips_jpeg_metadata_segments_that_are_too_short() {
    let file = jpeg_fixture("sequential_420");
    let whole = decode_jpeg(&file).unwrap().0;
    for body in
        [&b""[..], b"\0\0", b"\0\x01", b"\0\x07JFIF\0", b"\0\x09Adobe\0\0", b"\0\x0aExif\0\0MM"]
    {
        for marker in [0xe0, 0xe1, 0xee, 0xfe] {
            let segment =
                if body.is_empty() { vec![0xff, 1] } else { [&[0xff, marker], body].concat() };
            let more = [&file[..2], &segment, &file[2..]].concat();
            let (image, damage) = decode_jpeg(&more).unwrap();
            assert!(image.samples == whole.samples && damage.is_none(), "{marker} {body:?}");
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("in.jpg"), more).unwrap();
            outcome(folder.path(), "info in.jpg").success().stdout(contains("67x45 of u8"));
        }
    }
}

/// The fixtures contain the pixels that libjpeg decodes.
#[test]
fn damaged_jpeg_data_decodes_like_libjpeg() {
    for (name, rows) in [
        ("invalid_codes", 16),
        ("invalid_codes_restarts", 8),
        ("hole", 8),
        ("reserved_marker", 8),
        ("lost_restarts", 8),
        ("wrong_restart", 16),
        ("progressive", 16),
    ] {
        let path = fixture("jpeg/damaged").join(name);
        let file = fs::read(path.with_extension("jpg")).unwrap();
        let (found, damage) = decode_jpeg(&file).unwrap();
        let damage = damage.unwrap_or_else(|| panic!("{name}: no damage reported"));
        assert!(damage.contains("rows are missing or damaged"), "{name}: {damage}");
        assert_eq!(leading_number(&damage), rows, "{name}: {damage}");
        let expected = image::open(path.with_extension("png")).unwrap();
        assert!(found.samples.as_bytes() == expected.as_bytes(), "{name}");
        let (coefficients, picture) = jpeg::read_coefficients(&file, MEMORY_LIMIT.into()).unwrap();
        assert_eq!(picture.damage, Some(damage), "{name}");
        assert!(Decode.cpu(&coefficients).unwrap() == expected.as_bytes(), "{name}");
    }
}

/// Damage does not spread past the next restart marker, even if some restart markers are lost.
#[test]
fn restart_markers_confine_damage() {
    let (width, height) = (1024, 3072);
    let pixels = Noise(4).bytes(width * height);
    let frame = Frame::for_pixels([width, height], 1, Quality(50), false);
    let file = encode_jpeg(&frame, &pixels, false);
    let (whole, damage) = decode_jpeg(&file).unwrap();
    assert_eq!(damage, None);
    let start = entropy_data_offset(&file, scan_offsets(&file)[0]);
    let restarts: Vec<usize> = (start..file.len() - 1)
        .filter(|&at| file[at] == 0xff && (0xd0..0xd8).contains(&file[at + 1]))
        .collect();
    assert!(restarts.len() >= 4, "the encoder writes too few restart markers");
    let bands = restarts.len() + 1;
    let max_rows = 2 * height / bands + 16;
    let check = |bytes: &[u8], context: &str, max_rows: usize| {
        let (found, damage) = decode_jpeg(bytes).unwrap();
        let damage = damage.unwrap_or_else(|| panic!("{context}: no damage reported"));
        let lost = differing_rows(&whole, &found);
        assert!(
            !lost.is_empty() && lost.len() <= max_rows,
            "{context}: {} rows: {damage}",
            lost.len()
        );
        assert!(leading_number(&damage) <= max_rows, "{context}: {damage}");
        // The last rows are unchanged.
        assert!(lost.last() < Some(&(height - 8)), "{context}");
    };
    let (first, second) = (restarts[0], restarts[1]);
    let without =
        |range: std::ops::Range<usize>| [&file[..range.start], &file[range.end..]].concat();
    check(&without(first + 40..second - 40), "a hole in a band", max_rows);
    check(&without(first..second), "a lost band", max_rows);
    check(&without(first..first + 2), "a lost restart marker", 2 * max_rows);
    check(&without(first..restarts[2]), "two lost bands", 2 * max_rows);
}

/// A progressive file is complete if its scans contain every bit of every coefficient.
#[test]
fn reports_missing_scans_of_progressive_jpeg() {
    for name in
        ["progressive_420", "progressive_444", "progressive_grey", "progressive_422_restarts"]
    {
        let file = jpeg_fixture(name);
        assert_eq!(decode_jpeg(&file).unwrap().1, None, "{name}");
        let scans = scan_offsets(&file);
        assert!(scans.len() > 3, "{}", scans.len());
        // A cut after the tables in front of a scan header also gives a file that ends with a scan.
        for &scan in &scans[2..] {
            let cut = [&file[..scan], &[0xff, 0xd9]].concat();
            let Some((_, damage)) = decode_jpeg(&cut) else { continue };
            let damage =
                damage.unwrap_or_else(|| panic!("{name}: {scan} bytes: no damage reported"));
            assert!(damage.contains("coefficients"), "{damage}");
            let within = entropy_data_offset(&file, scan) + 20;
            let (_, damage) = decode_jpeg(&file[..within]).unwrap();
            assert!(damage.unwrap().contains("missing"), "{name}");
        }
    }
}

/// Data after a second frame header is ignored, and the scans before it are decoded as usual.
#[test]
fn second_frame_header_ends_a_jpeg_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let file = jpeg_fixture("progressive_420");
    let marker_offsets = |marker: u8| -> Vec<usize> {
        (0..file.len() - 1).filter(|&at| file[at..at + 2] == [0xff, marker]).collect()
    };
    let (frame, scans) = (marker_offsets(0xc2)[0], marker_offsets(0xda));
    let header = [&[0xff, 0xc0], &file[frame + 2..frame + 4 + usize::from(file[frame + 3]) - 2]];
    for at in [scans[1], scans[3]] {
        let two = [&file[..at], &header.concat(), &file[at..]].concat();
        fs::write(folder.join("two.jpg"), two).unwrap();
        fs::write(folder.join("cut.jpg"), &file[..at]).unwrap();
        outcome(folder, "blur two.jpg two.png --sigma 0")
            .success()
            .stderr(contains("scans are missing"));
        outcome(folder, "blur cut.jpg cut.png --sigma 0").success();
        let [two, cut] = ["two.png", "cut.png"].map(|name| fs::read(folder.join(name)).unwrap());
        assert!(two == cut, "{at}");
    }
}
