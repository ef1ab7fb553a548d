//! Bounds on the memory (`--max-memory`) and the CPU time of commands, with untrusted inputs.
#![cfg(target_os = "linux")]

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
};

use flate2::{Compression, write::ZlibEncoder};
use gpuproc::jpeg::{Frame, Quality};
use tempfile::TempDir;

use crate::{
    common::{Measured, Noise, encode_jpeg, measured, tiff_of_jpeg},
    hostile,
};

/// `count` zero bytes, compressed with zlib.
pub fn deflated_zeros(count: u64) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    let block = vec![0; 1 << 20];
    let mut left = count;
    while left > 0 {
        let len = left.min(block.len() as u64);
        encoder.write_all(&block[..len as usize]).unwrap();
        left -= len;
    }
    encoder.finish().unwrap()
}

/// An EXR file of three f16 channels with the block height of `compression`, all of whose blocks are `block`.
fn exr(size: [u32; 2], compression: u8, tile: Option<u32>, block: &[u8]) -> Vec<u8> {
    let [width, height] = size;
    let mut file = vec![0x76, 0x2f, 0x31, 0x01, 2, if tile.is_some() { 2 } else { 0 }, 0, 0];
    let mut attribute = |name: &str, kind: &str, value: &[u8]| {
        file.extend([name.as_bytes(), b"\0", kind.as_bytes(), b"\0"].concat());
        file.extend((value.len() as u32).to_le_bytes());
        file.extend(value);
    };
    let channel = |name: &str| {
        let sampling = [1u32, 0, 1, 1].map(u32::to_le_bytes).concat();
        [name.as_bytes(), b"\0", &sampling[..]].concat()
    };
    let channels = [channel("B"), channel("G"), channel("R"), vec![0]].concat();
    let window = [0, 0, width - 1, height - 1].map(u32::to_le_bytes).concat();
    attribute("channels", "chlist", &channels);
    attribute("compression", "compression", &[compression]);
    attribute("dataWindow", "box2i", &window);
    attribute("displayWindow", "box2i", &window);
    attribute("lineOrder", "lineOrder", &[0]);
    attribute("pixelAspectRatio", "float", &1f32.to_le_bytes());
    attribute("screenWindowCenter", "v2f", &[0; 8]);
    attribute("screenWindowWidth", "float", &1f32.to_le_bytes());
    if let Some(side) = tile {
        let sides = [side, side].map(u32::to_le_bytes).concat();
        attribute("tiles", "tiledesc", &[&sides[..], &[0]].concat());
    }
    file.push(0);
    let rows = if compression == 9 { 256 } else { 32 };
    let blocks = if tile.is_some() { 1 } else { height.div_ceil(rows) };
    let head = if tile.is_some() { 20 } else { 8 };
    let first = file.len() as u64 + 8 * u64::from(blocks);
    for i in 0..u64::from(blocks) {
        file.extend((first + i * (head + block.len() as u64)).to_le_bytes());
    }
    for i in 0..blocks {
        match tile {
            Some(_) => file.extend([0; 16]),
            None => file.extend((i * rows).to_le_bytes()),
        }
        file.extend((block.len() as u32).to_le_bytes());
        file.extend(block);
    }
    file
}

/// A DWA block with the bytes `deflated` in its first section. Its header declares `claimed` decompressed bytes and
/// `coefficients` coefficients.
fn dwa_block(claimed: u64, coefficients: u64, deflated: &[u8]) -> Vec<u8> {
    let packed = deflated.len() as u64;
    let counters = [1, claimed, packed, 0, 0, 0, 0, 0, coefficients, coefficients, 0];
    [counters.map(u64::to_le_bytes).concat(), deflated.to_vec()].concat()
}

/// Bit writer, the lowest bit of each byte first.
#[derive(Default)]
struct BitWriter {
    bytes: Vec<u8>,
    count: usize,
}

impl BitWriter {
    fn put(&mut self, value: u32, count: usize) {
        for bit in 0..count {
            if self.count.is_multiple_of(8) {
                self.bytes.push(0);
            }
            *self.bytes.last_mut().unwrap() |= ((value >> bit & 1) as u8) << (self.count % 8);
            self.count += 1;
        }
    }

    /// A prefix code of one symbol of 8 bits.
    fn one_symbol(&mut self, symbol: u32) {
        self.put(0b101, 3);
        self.put(symbol, 8);
    }
}

/// A lossless WebP file of 8 x 8 pixels with `groups` groups of five prefix codes of 1 to 10 bits.
fn webp(groups: u32) -> Vec<u8> {
    let mut bits = BitWriter::default();
    bits.put(0x2f, 8);
    for side in [8, 8] {
        bits.put(side - 1, 14);
    }
    // No alpha, version 0, no transform, no colour cache; groups for blocks of 512 x 512 pixels.
    bits.put(0, 1 + 3 + 1 + 1);
    bits.put(1, 1);
    bits.put(7, 3);
    // The group of the only block: the red and green of a one-pixel image, whose codes have one symbol each.
    bits.put(0, 1);
    for symbol in [(groups - 1) & 255, (groups - 1) >> 8, 0, 0, 0] {
        bits.one_symbol(symbol);
    }
    for _ in 0..5 * groups {
        // The code lengths of the length codes, in the order of the format: 3 bits for the lengths 1 to 6, 4 for 7 to
        // 10.
        bits.put(0, 1);
        bits.put(14 - 4, 4);
        for length in [0, 0, 0, 3, 3, 3, 3, 3, 0, 3, 4, 4, 4, 4] {
            bits.put(length, 3);
        }
        // Eleven lengths follow: 1 to 10, and 10 again. The highest bit of a code comes first.
        bits.put(1, 1);
        bits.put(1, 3);
        bits.put(11 - 2, 4);
        for length in [1u32, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10] {
            match length {
                ..=6 => bits.put((length - 1).reverse_bits() >> 29, 3),
                _ => bits.put((12 + length - 7).reverse_bits() >> 28, 4),
            }
        }
    }
    let data = bits.bytes;
    let chunk = [b"VP8L", &(data.len() as u32).to_le_bytes()[..], &data].concat();
    let length = (4 + chunk.len() as u32).to_le_bytes();
    let padding = vec![0; chunk.len() % 2];
    [b"RIFF", &length[..], b"WEBP", &chunk, &padding].concat()
}

/// A folder with files that declare sizes far beyond their content, and with ordinary inputs.
fn input_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    hostile::write(folder.path());
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    let sparse = |name: &str, bytes: u64| {
        File::create(folder.path().join(name)).unwrap().set_len(bytes).unwrap();
    };
    let mut noise = Noise(2);
    // Blocks that declare 3 MB and decompress to 400 MB, and a block without data that declares 2^49 bytes.
    write(
        "bomb.exr",
        &exr([1024, 512], 9, None, &dwa_block(400 << 20, 0, &deflated_zeros(400 << 20))),
    );
    write("claim.exr", &exr([64, 64], 8, None, &dwa_block(1 << 49, 0, &[1])));
    write("count.exr", &exr([64, 64], 8, None, &dwa_block(0, 1 << 40, &[1])));
    write("tile.exr", &exr([64, 64], 3, Some(30_000), &[1; 64]));
    // A strip of 64 x 64 pixels whose JPEG header declares 16,000 x 16,000.
    let frame = Frame::for_pixels([64, 64], 1, Quality(90), false);
    let mut jpeg = encode_jpeg(&frame, &[9; 64 * 64], false);
    let size = jpeg.windows(2).position(|marker| marker == [0xff, 0xc0]).unwrap() + 5;
    jpeg[size..size + 4].copy_from_slice(&[62, 128, 62, 128]);
    write("strip.tif", &tiff_of_jpeg([64, 64], &jpeg));
    // Each group takes 20 KiB.
    write("groups.webp", &webp(65_536));
    write("some.webp", &webp(10_000));
    write("p.ppm", &[b"P6 700 500 255\n", &noise.bytes(700 * 500 * 3)[..]].concat());
    write("w.pgm", &[b"P5 1500 1200 65535\n", &noise.bytes(1500 * 1200 * 2)[..]].concat());
    write("n.raw", &noise.bytes(6 << 20));
    write("noise_80x80x80_uint8.raw", &noise.bytes(80 * 80 * 80));
    write("layer_800x800x2_uint8.raw", &noise.bytes(800 * 800 * 2));
    write("row_1x200000x1_uint8.raw", &noise.bytes(200_000));
    write("noise_60x60x60_uint8.raw", &noise.bytes(60 * 60 * 60));
    write("noise_30x30x30_uint8.raw", &noise.bytes(27_000));
    sparse("thin_40000x40000x4_uint8.raw", 6_400_000_000);
    sparse("wide_5000x4000x4_uint8.raw", 80_000_000);
    sparse("floats_1500x1500x6_float32.raw", 54_000_000);
    folder
}

/// Runs `command` with `--max-memory` and checks that its peak memory exceeds the limit by at most 64 MiB.
pub fn run_within_memory(folder: &Path, mib: u64, command: &str) -> Measured {
    let limit = format!("{mib}M");
    let arguments = ["--max-memory", &limit].into_iter().chain(command.split(' '));
    let run = measured(folder, arguments);
    assert!(
        run.peak <= mib + 64,
        "{command} took {} MiB; the limit is {mib}: {}",
        run.peak,
        run.stderr
    );
    if run.code != Some(0) {
        assert!(matches!(run.code, Some(2..=4)), "{command} in {mib} MiB: {run:?}");
        assert_eq!(run.stderr.lines().count(), 1, "{command} in {mib} MiB: {run:?}");
    }
    run
}

/// A volume that does not fit into memory is blurred slab by slab; the output has the same bytes.
#[test]
fn blurs_volumes_larger_than_memory() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("v_120x110x350_uint16.raw"), Noise(8).bytes(2 * 120 * 110 * 350))
        .unwrap();
    for (edge, name) in [
        ("reflect", "o.nii"),
        ("wrap", "o.nii"),
        ("zero", "o.nii.gz"),
        ("clamp", "o_120x110x350_uint16.raw"),
    ] {
        let line = |name: &str| {
            format!("blur v_120x110x350_uint16.raw {name} --sigma 1.5 --edge {edge} --device cpu")
        };
        run_within_memory(folder, 1024, &line(name));
        let whole = fs::read(folder.join(name)).unwrap();
        let run = run_within_memory(folder, 16, &line(name));
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(whole.len() > 1_000_000 && whole == fs::read(folder.join(name)).unwrap(), "{edge}");
    }
    // The output must not replace the volume while it is being read.
    let line = "blur v_120x110x350_uint16.raw v_120x110x350_uint16.raw --sigma 1.5 --edge clamp";
    assert_eq!(run_within_memory(folder, 16, &format!("{line} --device cpu")).code, Some(0));
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    assert!(read("v_120x110x350_uint16.raw") == read("o_120x110x350_uint16.raw"));
}

/// If blurring succeeds with little memory, it succeeds with more, with the same output.
#[test]
fn more_memory_never_causes_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let pixels = Noise(9).bytes(900 * 700 * 3);
    for name in ["a.tif", "a.png"] {
        let picture = folder.path().join(name);
        image::save_buffer(&picture, &pixels, 900, 700, image::ColorType::Rgb8).unwrap();
    }
    fs::write(folder.path().join("a_150x150x150_uint8.raw"), Noise(8).bytes(150 * 150 * 150))
        .unwrap();
    let volume = "a_150x150x150_uint8.raw o.raw";
    for (files, output, sigma) in [
        ("a.tif o.tif", "o.tif", "3"),
        ("a.png o.png", "o.png", "3"),
        (volume, "o.raw", "1"),
        (volume, "o.raw", "12"),
    ] {
        let command = format!("blur {files} --sigma {sigma} --device cpu");
        let mut before = None;
        for mib in (1..=25).step_by(2).chain([32, 40]) {
            let run = run_within_memory(folder.path(), mib, &command);
            let blurred =
                (run.code == Some(0)).then(|| fs::read(folder.path().join(output)).unwrap());
            assert!(before.is_none() || blurred == before, "{command}, {mib} MiB: {run:?}");
            before = blurred;
        }
        assert!(before.is_some(), "{command}");
    }
}

/// Surfaces that are simplified concurrently stay within the memory limit together.
#[test]
fn concurrent_volumes_share_the_memory_limit() {
    let folder = tempfile::tempdir().unwrap();
    let mut noise = Noise(3);
    let names = ["a", "b", "c", "d"].map(|name| format!("{name}_60x60x60_uint8.raw"));
    for name in &names {
        fs::write(folder.path().join(name), noise.bytes(60 * 60 * 60)).unwrap();
    }
    let command = format!(
        "mesh {} --iso 128 --simplify 0.8 --out-dir o --device cpu --threads 4",
        names.join(" ")
    );
    let run = run_within_memory(folder.path(), 240, &command);
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn every_command_respects_its_memory_limit() {
    let folder = input_folder();
    let folder = folder.path();
    for mib in [64, 256, 1024] {
        for command in [
            "blur bomb.exr o.png --sigma 0",
            "histogram claim.exr",
            "scan count.exr o.npy",
            "blur tile.exr o.png",
            "blur groups.webp o.png",
            "blur strip.tif o.png",
            "histogram some.webp",
            "mesh thin_40000x40000x4_uint8.raw --iso 3 o.ply",
            "mesh row_1x200000x1_uint8.raw --close --iso 99 o.ply",
            "mesh noise_80x80x80_uint8.raw --iso 250 o.ply --preview o.png --size 8192x8192",
            "mesh noise_30x30x30_uint8.raw --iso 128 o.ply --simplify 0.5",
            "info bomb.exr tile.exr thin_40000x40000x4_uint8.raw",
            "info profile.png texts.png",
            "blur profile.png o.tif",
            "histogram profile.png",
            "histogram segments.jpg",
            "blur metadata.tif o.png",
            "blur deflate.tif o.png",
            "mesh shared.tif --iso 3 o.ply",
            "mesh planes.ome.tif --iso 3 --close o.ply",
            "blur canvas.gif o.png",
            "blur restore.gif o.webp",
            "histogram canvas.png",
            "blur canvas.webp o.png",
            "mesh frames.dcm --iso 3 o.ply",
        ] {
            run_within_memory(folder, mib, command);
        }
    }
    for command in [
        "blur p.ppm o.png --sigma 1",
        "blur w.pgm o.tif --method box --radius 2",
        "blur noise_80x80x80_uint8.raw o.raw --sigma 1",
        "histogram w.pgm --equalize o.png",
        "histogram wide_5000x4000x4_uint8.raw -o o.csv",
        "scan p.ppm o.npy",
        "scan n.raw o.raw",
        "scan n.raw o.raw --by-key n.raw",
        "sort n.raw o.raw",
        "sort n.raw o.raw --argsort",
        "mesh wide_5000x4000x4_uint8.raw --iso 3 o.ply",
        "mesh floats_1500x1500x6_float32.raw --iso 3 --normals o.ply",
        "mesh noise_80x80x80_uint8.raw --iso 128 --normals --ascii o.ply",
        "mesh noise_80x80x80_uint8.raw --iso 128 --largest --stats o.stl",
        "mesh noise_80x80x80_uint8.raw --iso 128 --smooth 2 o.obj",
        "mesh noise_80x80x80_uint8.raw --iso 128 o.glb",
        "bench scan",
        "devices",
    ] {
        run_within_memory(folder, 64, command);
    }
}

/// The error names the step that exceeds the limit. With enough memory the job succeeds.
#[test]
fn mesh_error_states_the_memory_that_it_needs() {
    let folder = input_folder();
    let folder = folder.path();
    for (mib, command, message) in [
        (64, "mesh wide_5000x4000x4_uint8.raw --iso 3 o.ply", "a layer with the slices around it"),
        (64, "mesh layer_800x800x2_uint8.raw --iso 99 o.ply", "the surface of layers 0 to 0"),
        (64, "mesh noise_60x60x60_uint8.raw --iso 128 o.ply --simplify 0.5", "simplifying"),
        (64, "mesh noise_60x60x60_uint8.raw --iso 128 o.ply --smooth 1", "smoothing"),
        (32, "mesh noise_60x60x60_uint8.raw --iso 128 o.ply --stats", "measuring"),
        (
            64,
            "mesh noise_80x80x80_uint8.raw --iso 250 o.ply --preview o.png --size 4096x4096",
            "4096x4096",
        ),
    ] {
        let run = run_within_memory(folder, mib, command);
        assert_eq!(run.code, Some(4), "{command}: {run:?}");
        assert!(run.stderr.contains(message) && run.stderr.contains("--max-memory"), "{run:?}");
    }
    // A little more than ten slices of 20 MB.
    let run = run_within_memory(folder, 256, "mesh wide_5000x4000x4_uint8.raw --iso 3 o.ply");
    assert_eq!(run.code, Some(0), "{run:?}");
}

/// Histograms of 65,536 bins take 512 KiB per image, together more than the limit.
#[test]
fn histograms_of_many_images_fit_in_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let picture = [b"P5 20 10 65535\n", &Noise(9).bytes(400)[..]].concat();
    fs::write(folder.path().join("w.pgm"), picture).unwrap();
    let inputs = "w.pgm ".repeat(400);
    let run = run_within_memory(
        folder.path(),
        64,
        &format!("histogram {inputs}--bins 65536 --stats -o o.csv"),
    );
    assert_eq!(run.code, Some(0), "{run:?}");
    let rows = fs::read_to_string(folder.path().join("o.csv")).unwrap().lines().count();
    assert_eq!(rows, 1 + 400);
}

/// The file is the same whether the volume is meshed at once, in halves, or slab by slab.
#[test]
fn mesh_is_independent_of_the_memory_limit() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("v_60x50x40_uint8.raw"), Noise(8).bytes(60 * 50 * 40)).unwrap();
    for more in ["", " --normals --close"] {
        let mesh = |limit: &str| {
            let command =
                format!("--max-memory {limit} mesh v_60x50x40_uint8.raw --iso 128 o.ply{more}");
            let run = measured(folder, command.split(' '));
            assert_eq!(run.code, Some(0), "{run:?}");
            fs::read(folder.join("o.ply")).unwrap()
        };
        let whole = mesh("1G");
        for limit in ["16M", "8M", "4M", "2M"] {
            assert!(mesh(limit) == whole, "{limit}{more}");
        }
    }
}

/// Files whose decoder would need unbounded memory fail with one line each; the other files of the batch are done.
#[test]
fn bad_files_do_not_stop_the_rest_of_a_batch() {
    let folder = input_folder();
    let folder = folder.path();
    let files = "p.ppm claim.exr count.exr bomb.exr tile.exr groups.webp w.pgm";
    let command = format!("--max-memory 256M blur --out-dir out --sigma 0 {files}");
    let run = measured(folder, command.split(' '));
    assert_eq!(run.code, Some(3), "{run:?}");
    assert_eq!(run.stderr.matches("error: cannot decode").count(), 5, "{run:?}");
    for (name, is_done) in [("p.ppm", true), ("w.pgm", true), ("claim.exr", false)] {
        assert_eq!(folder.join("out").join(name).exists(), is_done, "{name}");
    }
}

/// A decoder whose memory is not known in advance runs in a child process, with the same result.
#[test]
fn lossless_webp_is_decoded_in_a_child_process_if_memory_is_low() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let picture = image::RgbaImage::from_raw(300, 200, Noise(7).bytes(300 * 200 * 4)).unwrap();
    picture.save(folder.join("in.webp")).unwrap();
    for (limit, uses_child) in [("2G", false), ("32M", true)] {
        let command = format!("-v --max-memory {limit} blur in.webp o.png --sigma 0");
        let run = measured(folder, command.split(' '));
        assert_eq!(run.code, Some(0), "{run:?}");
        assert_eq!(run.stderr.contains("in a child process"), uses_child, "{run:?}");
        assert!(image::open(folder.join("o.png")).unwrap().into_rgba8() == picture, "{limit}");
    }
    // The child process reports damage in the same words.
    let file = fs::read(folder.join("in.webp")).unwrap();
    fs::write(folder.join("cut.webp"), &file[..file.len() / 2]).unwrap();
    let cut = |limit: &str| {
        let command = format!("--max-memory {limit} blur cut.webp o.png --sigma 0");
        measured(folder, command.split(' ')).stderr
    };
    for limit in ["2G", "32M"] {
        let stderr = cut(limit);
        assert!(
            stderr.contains("cannot decode cut.webp") && stderr.contains("Corrupt"),
            "{stderr}"
        );
    }
}

/// The CPU time of a computation, divided by its time in an optimised build on an idle machine, where sorting this
/// noise takes 60 ms; at least 1.
fn slowness() -> f64 {
    use nix::sys::{
        resource::{UsageWho, getrusage},
        time::TimeValLike,
    };
    let used = || getrusage(UsageWho::RUSAGE_THREAD).unwrap().user_time().num_microseconds();
    let start = used();
    let mut noise = Noise(1);
    let mut numbers: Vec<u64> = (0..1 << 20).map(|_| noise.next()).collect();
    numbers.sort_by(|a, b| b.cmp(a));
    assert!(numbers.is_sorted_by(|a, b| a >= b));
    ((used() - start) as f64 / 60e3).max(1.0)
}

/// Small files on which a command once was slow, or might be. Options may still increase the work, such as the radius
/// of a Gaussian.
#[test]
fn small_inputs_finish_quickly() {
    /// Maximum CPU time of both threads in seconds, in an optimised build on an idle machine.
    const MAX_CPU_SECONDS: f64 = 6.0;
    let slowness = slowness();
    if slowness > 8.0 {
        return crate::harness::ignore(
            "built without optimisation: filters take 200 times as long",
        );
    }
    let limit = MAX_CPU_SECONDS * slowness;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    let mut noise = Noise(3);
    write("deep_1x1x100000_uint8.raw", &noise.bytes(100_000));
    write("deep_1x1x20000_float32.raw", &noise.bytes(80_000));
    write("high_1x100000x1_uint8.raw", &noise.bytes(100_000));
    write("row_1x20000x1_uint8.raw", &noise.bytes(20_000));
    write("high.pgm", &[b"P5 1 65535 255\n", &noise.bytes(65_535)[..]].concat());
    write("wide.pgm", &[b"P5 65535 1 255\n", &noise.bytes(65_535)[..]].concat());
    // Many samples equal the isovalue 1, which creates sheets back to back.
    let tied: Vec<u8> = noise.bytes(48 * 48 * 48).iter().map(|v| v % 4).collect();
    write("tied_48x48x48_uint8.raw", &tied);
    write("digits.txt", &vec![b'1'; 100_000]);
    write("blanks.txt", &vec![b' '; 100_000]);
    write("claim.exr", &exr([64, 64], 8, None, &dwa_block(1 << 49, 0, &[1])));
    hostile::write(folder);
    let rows = format!("{{'descr': '<u4', 'fortran_order': False, 'shape': ({}, 0), }}", u32::MAX);
    let length = (rows.len() as u16).to_le_bytes();
    write("empty.npy", &[b"\x93NUMPY\x01\0", &length[..], rows.as_bytes()].concat());
    for command in [
        "--max-memory 1M mesh deep_1x1x100000_uint8.raw --iso auto --close o.ply",
        "--max-memory 1M mesh deep_1x1x20000_float32.raw --iso auto --close o.ply",
        "--max-memory 1M mesh deep_1x1x100000_uint8.raw --iso 99 --close o.ply",
        "--max-memory 1M histogram deep_1x1x100000_uint8.raw",
        "--max-memory 1M histogram deep_1x1x20000_float32.raw --range data",
        "mesh high_1x100000x1_uint8.raw --iso auto --close --stats o.ply",
        "mesh row_1x20000x1_uint8.raw --iso 99 --close --simplify 0.1 --smooth 5 o.ply",
        "mesh tied_48x48x48_uint8.raw --iso 1 --simplify 0.03 o.ply",
        "blur deep_1x1x20000_float32.raw o.raw",
        "blur high.pgm o.png",
        "blur high.pgm o.png --method box --radius 50 --edge wrap",
        "blur wide.pgm o.png --sigma 50 --edge mirror",
        "blur wide.pgm o.png --sigma 50 --linear",
        "blur claim.exr o.png",
        "histogram high.pgm --equalize o.png --bins 65536 -o o.csv",
        "scan high.pgm o.npy",
        "scan empty.npy o.npy --axis both",
        "scan empty.npy o.npy",
        "scan digits.txt o.txt",
        "scan blanks.txt o.txt",
        "sort digits.txt o.txt",
        "sort empty.npy o.npy",
        "info deep_1x1x100000_uint8.raw claim.exr empty.npy digits.txt",
        "info shared.tif chain.tif planes.ome.tif frames.dcm",
        "histogram shared.tif",
        "histogram chain.tif",
        "mesh chain.tif --iso 3 o.ply",
        "mesh planes.ome.tif --iso 3 --close o.ply",
        "blur frames.gif o.webp --sigma 0",
        "mesh frames.dcm --iso 3 o.ply",
    ] {
        let run = measured(folder, format!("--timeout 300 {command}").split(' '));
        assert_ne!(run.code, Some(124), "{command} timed out");
        assert!(
            run.cpu_seconds < limit,
            "{command} took {} s; the limit is {limit} s",
            run.cpu_seconds
        );
    }
}
