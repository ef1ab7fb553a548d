//! Files that declare sizes far beyond their content, and runs whose memory is measured.
#![cfg(target_os = "linux")]

use std::{
    fs::{self, File},
    path::Path,
};

use gpuproc::jpeg::{Frame, Quality};
use tempfile::TempDir;

use crate::{
    common::{Measured, Noise, encode_jpeg, measured, tiff_of_jpeg},
    hostile::{self, deflated},
};

/// An EXR file of three f16 channels with the block height of `compression`, all of whose blocks are `block`.
pub fn exr(size: [u32; 2], compression: u8, tile: Option<u32>, block: &[u8]) -> Vec<u8> {
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
pub fn dwa_block(claimed: u64, coefficients: u64, deflated: &[u8]) -> Vec<u8> {
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
pub fn input_folder() -> TempDir {
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
        &exr([1024, 512], 9, None, &dwa_block(400 << 20, 0, &deflated(0, 400 << 20))),
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
