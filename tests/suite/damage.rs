//! Truncated and damaged images: missing parts are reported, or the file is refused.

use std::{fs, path::Path};

use gpuproc::{
    data::image::Image,
    device::Kernel,
    io::image::jpeg,
    jpeg::{Frame, Quality},
    kernels::jpeg::Decode,
};
use image::ImageEncoder;
use predicates::{prelude::*, str::contains};

use crate::common::{Noise, decode_jpeg, encode_jpeg, gpuproc, tiff_of_jpeg};

const MEMORY_LIMIT: u64 = 1 << 26;

fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/fixtures/jpeg/{name}.jpg", env!("CARGO_MANIFEST_DIR"));
    fs::read(path).unwrap()
}

/// Offsets of the SOS markers.
fn scan_offsets(file: &[u8]) -> Vec<usize> {
    (0..file.len() - 1).filter(|&at| file[at..at + 2] == [0xff, 0xda]).collect()
}

/// Offset of the entropy-coded data of the scan whose SOS marker is at `scan`.
fn entropy_data_offset(file: &[u8], scan: usize) -> usize {
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
        let (coefficients, _) = jpeg::read_coefficients(&file, MEMORY_LIMIT.into()).unwrap();
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
        let file = fixture(name);
        let (whole, damage) = decode_jpeg(&file).unwrap();
        assert_eq!(damage, None, "{name}");
        let start = entropy_data_offset(&file, scan_offsets(&file)[0]);
        let mut last = usize::MAX;
        for share in [0, 1, 10, 25, 50, 75, 90, 97] {
            let cut = &file[..start + (file.len() - start) * share / 100];
            let (found, damage) = decode_jpeg(cut).unwrap();
            let damage = damage
                .unwrap_or_else(|| panic!("{name}: {share} % of the data: no damage reported"));
            assert!(damage.contains(&format!("of its {} rows are missing", whole.height)));
            let (rows, lost) = (leading_number(&damage), differing_rows(&whole, &found));
            assert!(lost.len() <= rows + 1, "{name} {share}: {} rows differ: {damage}", lost.len());
            assert!(rows <= lost.len() + 16, "{name} {share}: {} differ: {damage}", lost.len());
            assert!(rows <= last, "{name}: a longer file has fewer rows");
            last = rows;
            if share == 0 {
                assert_eq!(rows, whole.height, "{name}");
            }
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
        let file = fixture(name);
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
    let file = fs::read(images_folder().join("metadata.jpg")).unwrap();
    let read = |bytes: &[u8]| {
        fs::write(folder.join("in.jpg"), bytes).unwrap();
        let source = gpuproc::io::Source::File(folder.join("in.jpg"));
        let timings = gpuproc::util::timings::Timings::new(false);
        gpuproc::io::image::read_image(&source, MEMORY_LIMIT, &timings).unwrap()
    };
    let whole = read(&file);
    assert!(whole.metadata.xmp.is_some() && whole.metadata.iptc.is_some());
    // Files that do not start with a marker are not recognised as JPEG.
    for at in segment_offsets(&file).into_iter().skip(1) {
        assert!(read(&[&file[..at], b"junk", &file[at..]].concat()) == whole, "{at}");
        let command = "blur in.jpg o.png --sigma 0";
        run(folder, command).success().stderr(contains("4 stray bytes before markers are skipped"));
        run(folder, &format!("{command} --strict")).code(4).stderr(contains("4 stray bytes"));
    }
}

/// Metadata segments that are too short are skipped, as in libjpeg.
#[test]
fn skips_jpeg_metadata_segments_that_are_too_short() {
    let file = fixture("sequential_420");
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
            run(folder.path(), "info in.jpg").success().stdout(contains("67x45 of u8"));
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
        let path = format!("{}/fixtures/jpeg/damaged/{name}", env!("CARGO_MANIFEST_DIR"));
        let file = fs::read(format!("{path}.jpg")).unwrap();
        let (found, damage) = decode_jpeg(&file).unwrap();
        let damage = damage.unwrap_or_else(|| panic!("{name}: no damage reported"));
        assert!(damage.contains("rows are missing or damaged"), "{name}: {damage}");
        assert_eq!(leading_number(&damage), rows, "{name}: {damage}");
        let expected = image::open(format!("{path}.png")).unwrap();
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
    let most = 2 * height / bands + 16;
    let check = |bytes: &[u8], what: &str, most: usize| {
        let (found, damage) = decode_jpeg(bytes).unwrap();
        let damage = damage.unwrap_or_else(|| panic!("{what}: no damage reported"));
        let lost = differing_rows(&whole, &found);
        assert!(!lost.is_empty() && lost.len() <= most, "{what}: {} rows: {damage}", lost.len());
        assert!(leading_number(&damage) <= most, "{what}: {damage}");
        // The last rows are unchanged.
        assert!(lost.last() < Some(&(height - 8)), "{what}");
    };
    let (first, second) = (restarts[0], restarts[1]);
    let without =
        |range: std::ops::Range<usize>| [&file[..range.start], &file[range.end..]].concat();
    check(&without(first + 40..second - 40), "a hole in a band", most);
    check(&without(first..second), "a lost band", most);
    check(&without(first..first + 2), "a lost restart marker", 2 * most);
    check(&without(first..restarts[2]), "two lost bands", 2 * most);
}

/// A progressive file is complete if its scans contain every bit of every coefficient.
#[test]
fn reports_missing_scans_of_progressive_jpeg() {
    for name in
        ["progressive_420", "progressive_444", "progressive_grey", "progressive_422_restarts"]
    {
        let file = fixture(name);
        assert_eq!(decode_jpeg(&file).unwrap().1, None, "{name}");
        let scans = scan_offsets(&file);
        assert!(scans.len() > 3);
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

fn run(folder: &Path, arguments: &str) -> assert_cmd::assert::Assert {
    let mut command = gpuproc();
    command.current_dir(folder).args(["--device", "cpu"]).args(arguments.split(' ')).assert()
}

#[test]
fn damage_is_a_warning_or_with_strict_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    let file = fixture("sequential_420");
    let start = entropy_data_offset(&file, scan_offsets(&file)[0]);
    write("cut.jpg", &file[..start + 60]);
    // Destroy the SOS marker.
    let mut grey = file.clone();
    grey[scan_offsets(&file)[0]] = 0xfe;
    write("grey.jpg", &grey);
    let progressive = fixture("progressive_420");
    let last = *scan_offsets(&progressive).last().unwrap();
    write("coarse.jpg", &[&progressive[..last], &[0xff, 0xd9]].concat());
    // A large image of which only 1/500 of the bytes is left.
    let pixels = Noise(4).bytes(2000 * 1500);
    let frame = Frame::for_pixels([2000, 1500], 1, Quality(90), false);
    let large = encode_jpeg(&frame, &pixels, false);
    write("thin.jpg", &large[..large.len() / 500]);
    for (name, expected_text) in [
        ("cut.jpg", "rows are missing or damaged"),
        ("coarse.jpg", "last scans are missing"),
        ("thin.jpg", "of its 1500 rows are missing or damaged"),
    ] {
        let commands = ["blur NAME o.png --sigma 0", "scan NAME o.npy", "histogram NAME -o o.csv"];
        for command in &commands[..if name == "thin.jpg" { 2 } else { 3 }] {
            let command = command.replace("NAME", name);
            let is_warning = contains("warning: ").and(contains(name)).and(contains(expected_text));
            run(folder, &command).success().stderr(is_warning);
            for output in ["o.png", "o.csv", "o.npy"] {
                fs::remove_file(folder.join(output)).ok();
            }
            let is_error = contains("error: cannot decode").and(contains(expected_text));
            run(folder, &format!("{command} --strict")).code(4).stderr(is_error);
            assert!(["o.png", "o.csv", "o.npy"].iter().all(|name| !folder.join(name).exists()));
        }
    }
    run(folder, "blur grey.jpg o.png").code(4).stderr(contains("no scan"));
    for name in ["sequential_420", "progressive_422_restarts"] {
        write("whole.jpg", &fixture(name));
        run(folder, "blur whole.jpg o.png --sigma 0 --strict").success().stderr("");
    }
}

#[test]
fn refuses_truncated_files_of_other_formats() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let picture = image::RgbImage::from_raw(200, 150, Noise(5).bytes(200 * 150 * 3)).unwrap();
    picture.save(folder.join("a.png")).unwrap();
    for name in ["a.png", "a.bmp", "a.ppm", "a.tif", "a.webp", "a.exr"] {
        if name != "a.png" {
            run(folder, &format!("blur a.png {name} --sigma 0")).success();
        }
        let file = fs::read(folder.join(name)).unwrap();
        for share in [20, 50, 80, 97] {
            let cut = format!("cut.{}", &name[2..]);
            fs::write(folder.join(&cut), &file[..file.len() * share / 100]).unwrap();
            run(folder, &format!("blur {cut} o.png")).code(4).stderr(contains(&cut));
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
    run(folder, "blur twice.exr o.png").code(4).stderr(contains("blocks are missing"));
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
    run(folder, "blur in.png o.png --sigma 0 --strict").success().stderr("");
    for (name, body) in png_chunks(&file) {
        if body.is_empty() {
            continue;
        }
        let mut damaged = file.clone();
        damaged[body.start + body.len() / 2] ^= 1;
        fs::write(folder.join("in.png"), damaged).unwrap();
        let done = run(folder, "blur in.png o.png --sigma 0");
        match &name[..] {
            "IHDR" | "IDAT" | "tRNS" => drop(done.code(4).stderr(contains("in.png"))),
            _ => drop(done.success().stderr(contains(format!("its chunk {name} is damaged")))),
        }
        run(folder, "blur in.png o.png --sigma 0 --strict").code(4);
    }
    // Change the name of a chunk.
    let at = png_chunks(&file).iter().find(|(name, _)| name == "pHYs").unwrap().1.start;
    let mut damaged = file.clone();
    damaged[at - 3] ^= 4;
    fs::write(folder.join("in.png"), damaged).unwrap();
    run(folder, "blur in.png o.png --sigma 0")
        .success()
        .stderr(contains("its chunk pLYs is damaged"));
    // Without IEND, other chunks may be missing, too.
    let cut = [&file[..file.len() - 12], &chunk(b"tEXt", b"Author\0me")].concat();
    fs::write(folder.join("in.png"), cut).unwrap();
    run(folder, "blur in.png o.png --sigma 0").success().stderr(contains("the file is truncated"));
    // A profile that cannot be decompressed, in a chunk with a correct checksum.
    fs::write(
        folder.join("in.png"),
        add(&fs::read(folder.join("grey.png")).unwrap(), b"iCCP", b"x\0\0?"),
    )
    .unwrap();
    run(folder, "blur in.png o.png")
        .success()
        .stderr(contains("a colour profile that cannot be read"));

    let file = fs::read(images_folder().join("animation.png")).unwrap();
    let found = png_chunks(&file);
    for (name, body) in
        found.iter().filter(|(name, _)| ["acTL", "fcTL", "fdAT"].contains(&&name[..]))
    {
        let mut damaged = file.clone();
        damaged[body.end - 1] ^= 1;
        fs::write(folder.join("in.png"), damaged).unwrap();
        run(folder, "blur in.png o.png --sigma 0")
            .code(4)
            .stderr(contains(format!("its chunk {name} is damaged")));
    }
    let last = found.iter().rfind(|(name, _)| name == "fcTL").unwrap().1.start - 8;
    fs::write(folder.join("in.png"), &file[..last]).unwrap();
    run(folder, "blur in.png o.png --sigma 0")
        .code(4)
        .stderr(contains("the file has 4 of its 5 frames"));
}

fn images_folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/images"))
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn reports_missing_tiff_pages() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // gpuproc writes each directory before the data of its page.
    let stack = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/tiff/stack_imagej.tif");
    run(folder, &format!("blur {stack} a.tif --sigma 0")).success();
    let file = fs::read(folder.join("a.tif")).unwrap();
    // The cut is within the directory of the last page.
    fs::write(folder.join("cut.tif"), &file[..file.len() * 3 / 4]).unwrap();
    let expected_text = contains("pages after the first 2 are missing or damaged");
    run(folder, "blur cut.tif o.tif --sigma 0").success().stderr(expected_text.clone());
    run(folder, "blur cut.tif o.tif --sigma 0 --strict").code(4).stderr(expected_text.clone());
    run(folder, "blur cut.tif o.tif --sigma 0 --stack").success().stderr(expected_text);
}

/// A strip whose offset lies beyond the end of the file is an error. A strip that a sparse file omits is not.
#[test]
fn refuses_tiff_strips_beyond_the_end_of_the_file() {
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
        run(folder, "blur in.tif o.png --sigma 0").code(4).stderr(expected_text.clone());
        run(folder, "blur in.tif o.tif --sigma 0 --max-memory 8M")
            .code(4)
            .stderr(expected_text.clone());
        run(folder, "mesh in.tif o.ply --stack --iso 3 --close")
            .code(4)
            .stderr(expected_text.clone());
    }
}

/// Data after a second frame header is ignored, and the scans before it are decoded as usual.
#[test]
fn second_frame_header_ends_a_jpeg_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/jpeg/progressive_420.jpg");
    let file = fs::read(path).unwrap();
    let marker_offsets = |marker: u8| -> Vec<usize> {
        (0..file.len() - 1).filter(|&at| file[at..at + 2] == [0xff, marker]).collect()
    };
    let (frame, scans) = (marker_offsets(0xc2)[0], marker_offsets(0xda));
    let header = [&[0xff, 0xc0], &file[frame + 2..frame + 4 + usize::from(file[frame + 3]) - 2]];
    for at in [scans[1], scans[3]] {
        let two = [&file[..at], &header.concat(), &file[at..]].concat();
        fs::write(folder.join("two.jpg"), two).unwrap();
        fs::write(folder.join("cut.jpg"), &file[..at]).unwrap();
        run(folder, "blur two.jpg two.png --sigma 0")
            .success()
            .stderr(contains("scans are missing"));
        run(folder, "blur cut.jpg cut.png --sigma 0").success();
        let [two, cut] = ["two.png", "cut.png"].map(|name| fs::read(folder.join(name)).unwrap());
        assert!(two == cut, "{at}");
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
    run(folder, "blur whole.tif o.png --sigma 0 --strict").success().stderr("");
    let middle = strip.len() / 2;
    drop(strip.drain(middle..middle + 900));
    fs::write(folder.join("hole.tif"), tiff_of_jpeg([200, 160], &strip)).unwrap();
    let expected_text = contains("1 of its 1 strips or tiles are damaged");
    run(folder, "blur hole.tif o.png --sigma 0").success().stderr(expected_text.clone());
    run(folder, "blur hole.tif o.png --sigma 0 --strict").code(4).stderr(expected_text);
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
            run(folder, &format!("blur {name} o.png --sigma 0")).success();
            assert!(image::open(folder.join("o.png")).unwrap().into_rgb8() == rotated, "{name}");
        }
    }
}
