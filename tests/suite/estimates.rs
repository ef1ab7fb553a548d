//! Estimates of memory against measured peaks: each filter, type and road from input to output.
#![cfg(target_os = "linux")]

use std::{fs, path::Path};

use crate::{
    common::{Measured, Noise, measured},
    memory_inputs::run_within_memory,
    road_facts::with_input,
};

/// Filters, with the memory in MiB that their blocks get. Slow filters get few rows or slices of the small input. The tables of
/// `label` and `threshold --hysteresis` depend on the samples: `label_memory.rs`.
const FILTERS: [(&str, usize); 15] = [
    ("blur", 24),
    ("blur --method box --radius 3", 24),
    ("blur --linear", 24),
    ("math (a+1)*(a-1)", 24),
    ("median", 8),
    ("median --radius 3", 8),
    ("morph --op open --radius 2", 24),
    ("threshold --value 9", 24),
    ("threshold --local sauvola", 24),
    ("project --axis x", 24),
    ("gradient", 24),
    ("unsharp", 24),
    ("convert --dtype f32 --scale minmax", 24),
    ("resize --scale 50%", 24),
    // A slice becomes eight times as large.
    ("resize --scale 200%", 16),
];

const TYPES: [&str; 4] = ["uint8", "uint16", "float32", "float64"];

/// Bytes by which runs of the same command differ: stacks, and heaps of threads.
const NOISE: f64 = 6e6;

/// Width and height of a slice of a volume. An image has the width, and is as high as all slices together.
const SLICE: [usize; 2] = [96, 64];

/// Writes a volume that takes about `bytes` bytes, and returns its name.
fn write_volume(folder: &Path, name: &str, dtype: &str, bytes: usize) -> String {
    let size = match dtype {
        "uint8" => 1,
        "uint16" => 2,
        "float32" => 4,
        _ => 8,
    };
    let depth = (bytes / size / (SLICE[0] * SLICE[1])).max(2);
    let count = depth * SLICE[0] * SLICE[1];
    let mut noise = Noise(depth as u64);
    let samples: Vec<u8> = match dtype {
        "float32" => (0..count).flat_map(|_| ((noise.next() >> 40) as f32).to_le_bytes()).collect(),
        "float64" => (0..count).flat_map(|_| ((noise.next() >> 11) as f64).to_le_bytes()).collect(),
        _ => noise.bytes(count * size),
    };
    let name = format!("{name}_{}x{}x{depth}_{dtype}.raw", SLICE[0], SLICE[1]);
    fs::write(folder.join(&name), samples).unwrap();
    name
}

/// The estimate in the log of a run, in bytes, and whether the input was divided into blocks.
fn estimate(run: &Measured) -> (f64, bool) {
    let text = run.stderr.split(", in about ").nth(1);
    let text = text.unwrap_or_else(|| panic!("no estimate in {run:?}"));
    let bytes = text.split(' ').next().unwrap().parse().unwrap();
    (bytes, run.stderr.contains(": in blocks of "))
}

/// Compares the estimates of `command` with its memory in excess of a run on the tiny input: for the small input as a
/// whole, and for one larger than `mib` MiB in blocks.
fn assert_estimated(folder: &Path, (command, mib): (&str, usize), inputs: &Inputs, output: &str) {
    let run = |input: &str, limit: &str| {
        // Each thread has a heap.
        let line = with_input(command, &format!("{input} {output}"));
        let line = format!("-v --threads 2 --max-memory {limit} {line}");
        let run = measured(folder, line.split_whitespace());
        assert_eq!(run.code, Some(0), "{line}: {run:?}");
        run
    };
    let fixed = run(&inputs.tiny, "1G");
    let large = if mib < LARGE_BLOCKS { &inputs.small } else { &inputs.large };
    let in_blocks = (large, &*format!("{mib}M"));
    let cases = [(&inputs.small, "1G"), in_blocks].into_iter().zip([true, false]);
    for ((input, limit), is_whole) in cases {
        if inputs.only_whole.is_some_and(|only| only != is_whole) {
            continue;
        }
        let run = run(input, limit);
        let taken = (run.peak as f64 - fixed.peak as f64) * f64::from(1 << 20);
        let (estimated, is_divided) = estimate(&run);
        let what = format!("{command} {input} {limit}: about {estimated} bytes, measured {taken}");
        assert_eq!(is_divided, limit != "1G", "{what}");
        assert!(estimated <= 1.5 * (taken + NOISE), "{what}");
        assert!(taken <= 1.5 * estimated + NOISE, "{what}");
    }
}

/// Inputs of one type.
struct Inputs {
    /// Only whole inputs, or only blocks, are measured.
    only_whole: Option<bool>,
    /// Two slices.
    tiny: String,
    /// 8 MB.
    small: String,
    /// 30 MB.
    large: String,
}

/// From this limit on, the memory of blocks is much more than [`NOISE`], and the larger input is divided.
const LARGE_BLOCKS: usize = 24;

/// The input of a road, of about `bytes` bytes.
fn input_of(folder: &Path, is_image: bool, dtype: &str, bytes: usize) -> String {
    let volume = write_volume(folder, "v", dtype, bytes);
    if !is_image {
        return volume;
    }
    let rows = SLICE[1] * volume.split(['x', '_']).nth(3).unwrap().parse::<usize>().unwrap();
    let image = volume.replace(".raw", ".tif");
    write_tiff(&folder.join(&image), rows, dtype, &fs::read(folder.join(volume)).unwrap());
    image
}

/// Writes a TIFF of one channel with [`SLICE`]'s width, in strips of 64 rows.
fn write_tiff(path: &Path, rows: usize, dtype: &str, samples: &[u8]) {
    let size = samples.len() / (SLICE[0] * rows);
    let strip = 64 * SLICE[0] * size;
    let lengths: Vec<u32> = samples.chunks(strip).map(|part| part.len() as u32).collect();
    let count = lengths.len() as u32;
    let format = if dtype.starts_with('f') { 3 } else { 1 };
    // The header, 10 entries and the end of the directory; then offsets and lengths of strips; then samples.
    let tables = 8 + 2 + 10 * 12 + 4;
    let first = tables + 8 * count;
    let entries: [(u16, u16, u32, u32); 10] = [
        (256, 4, 1, SLICE[0] as u32),
        (257, 4, 1, rows as u32),
        (258, 3, 1, 8 * size as u32),
        (259, 3, 1, 1),
        (262, 3, 1, 1),
        (273, 4, count, tables),
        (277, 3, 1, 1),
        (278, 4, 1, 64),
        (279, 4, count, tables + 4 * count),
        (339, 3, 1, format),
    ];
    let mut tiff = [&b"II*\0"[..], &8u32.to_le_bytes(), &10u16.to_le_bytes()].concat();
    for (tag, kind, count, value) in entries {
        tiff.extend([tag.to_le_bytes(), kind.to_le_bytes()].concat());
        tiff.extend([count.to_le_bytes(), value.to_le_bytes()].concat());
    }
    tiff.extend([0; 4]);
    tiff.extend((0..count).flat_map(|at| (first + at * strip as u32).to_le_bytes()));
    tiff.extend(lengths.iter().flat_map(|length| length.to_le_bytes()));
    tiff.extend(samples);
    fs::write(path, tiff).unwrap();
}

/// Runs each filter on each type that it takes.
fn assert_all_estimated(is_image: bool) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let output = if is_image { "o.tif" } else { "o.nrrd" };
    for dtype in TYPES {
        let [tiny, small, large] =
            [1, 8_000_000, 30_000_000].map(|bytes| input_of(folder, is_image, dtype, bytes));
        // Small types have the most samples, and take the most time: images of one are measured as a whole, those of
        // the other in blocks, and volumes the other way round.
        let only_whole = match dtype {
            "uint8" => Some(is_image),
            "uint16" => Some(!is_image),
            _ => None,
        };
        let inputs = Inputs { only_whole, tiny, small, large };
        for filter @ (command, _) in FILTERS {
            // Light is linear in integers alone, and an image has no axis to project along.
            let is_taken = match command.split(' ').next() {
                Some("project") => !is_image,
                _ => !command.contains("linear") || dtype.starts_with('u'),
            };
            if is_taken {
                assert_estimated(folder, filter, &inputs, output);
            }
        }
    }
}

#[test]
fn estimates_of_images_follow_measured_peaks() {
    assert_all_estimated(true);
}

#[test]
fn estimates_of_volumes_follow_measured_peaks() {
    assert_all_estimated(false);
}

/// An image that becomes much smaller needs few of its rows at a time, or few pixels of a JPEG.
#[test]
fn thumbnails_fit_in_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Squares of one colour, so that the files are small.
    let pixels = image::RgbImage::from_fn(3000, 2000, |x, y| {
        let number = (x / 200 + 7 * (y / 200)) as u8;
        image::Rgb([number, 2 * number, 255 - number])
    });
    for name in ["a.png", "a.jpg"] {
        pixels.save(folder.join(name)).unwrap();
    }
    fs::write(folder.join("progressive.jpg"), progressive_jpeg([3000, 2000])).unwrap();
    for (command, mib) in [
        ("resize a.jpg o.png --max 256", 16),
        // Two bytes for each of its coefficients, 36 MB.
        ("resize progressive.jpg o.jpg --max 256", 60),
        ("resize a.png o.png --max 64", 24),
        ("resize a.png o.png --max 64 --filter area", 16),
    ] {
        let run = run_within_memory(folder, mib, command);
        assert_eq!(run.code, Some(0), "{command}: {run:?}");
    }
}

/// A progressive JPEG of three components in full resolution, all of whose coefficients are 0.
fn progressive_jpeg([width, height]: [u16; 2]) -> Vec<u8> {
    let segment = |marker: u8, body: &[u8]| {
        [&[0xff, marker], &(body.len() as u16 + 2).to_be_bytes()[..], body].concat()
    };
    let [height_bytes, width_bytes] = [height, width].map(u16::to_be_bytes);
    let components = [1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0];
    let frame = [&[8], &height_bytes[..], &width_bytes, &[3], &components].concat();
    // One code of one bit, 0: no difference, or the end of a block.
    let huffman = |class: u8| [&[class, 1][..], &[0; 15], &[0]].concat();
    let blocks = usize::from(width).div_ceil(8) * usize::from(height).div_ceil(8);
    let scan = |members: &[u8], spectrum: [u8; 3]| {
        let count = members.len() / 2;
        let header = [&[count as u8], members, &spectrum].concat();
        // The last byte is filled with ones.
        let bits = count * blocks;
        let last: &[u8] = if bits.is_multiple_of(8) { &[] } else { &[0xff >> (bits % 8)] };
        [&segment(0xda, &header), &vec![0; bits / 8][..], last].concat()
    };
    let ac = [1, 2, 3].map(|component| scan(&[component, 0], [1, 63, 0]));
    [
        &[0xff, 0xd8],
        &segment(0xdb, &[&[0][..], &[1; 64]].concat())[..],
        &segment(0xc2, &frame),
        &segment(0xc4, &huffman(0)),
        &segment(0xc4, &huffman(0x10)),
        &scan(&[1, 0, 2, 0, 3, 0], [0, 0, 0]),
        &ac.concat(),
        &[0xff, 0xd9],
    ]
    .concat()
}
