//! Connected components: the CPU and GPU implementations against a naive flood fill, and the command on every kind of
//! input.

use std::{fs, path::Path};

use gpuproc::{
    data::{
        dtype::Dtype,
        grid::{Alpha, Grid},
        noise::Noise,
        samples::Samples,
    },
    for_samples,
    kernels::label::Label,
};

use crate::common::{assert_same_samples, gpuproc, run, works};

/// Largest number of axes along which neighbours differ.
fn rank(connectivity: usize) -> usize {
    match connectivity {
        4 | 6 => 1,
        8 | 18 => 2,
        _ => 3,
    }
}

/// Labels by flood fill from each sample in raster order. `values` holds a number for each position.
fn flood(
    values: &[f64],
    dims: [usize; 3],
    (connectivity, equal, min): (usize, bool, usize),
) -> Vec<u32> {
    let [nx, ny, nz] = dims.map(|dim| dim as isize);
    let index = |[x, y, z]: [isize; 3]| ((z * ny + y) * nx + x) as usize;
    let mut labels = vec![0; values.len()];
    let mut is_seen: Vec<bool> = values.iter().map(|&value| value == 0.0).collect();
    let mut count = 0;
    for first in 0..values.len() {
        if is_seen[first] {
            continue;
        }
        is_seen[first] = true;
        let mut found = vec![first];
        let mut next = 0;
        while next < found.len() {
            let at = found[next] as isize;
            next += 1;
            let [x, y, z] = [at % nx, at / nx % ny, at / nx / ny];
            for offset in 0..27 {
                let step = [offset % 3 - 1, offset / 3 % 3 - 1, offset / 9 - 1];
                let to = [x + step[0], y + step[1], z + step[2]];
                let is_inside =
                    to.iter().zip([nx, ny, nz]).all(|(&to, len)| (0..len).contains(&to));
                let axes = step.iter().filter(|&&step| step != 0).count();
                if !is_inside || axes > rank(connectivity) {
                    continue;
                }
                let to = index(to);
                if !is_seen[to] && (!equal || values[to] == values[first]) {
                    is_seen[to] = true;
                    found.push(to);
                }
            }
        }
        if found.len() >= min {
            count += 1;
            found.iter().for_each(|&at| labels[at] = count);
        }
    }
    labels
}

#[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "one of the types is f64")]
fn numbers(samples: &Samples) -> Vec<f64> {
    for_samples!(samples, samples => samples.iter().map(|&value| value as f64).collect())
}

/// Noise of few values, of which `share` of 16 are not 0. In floats, half of the zeros are negative.
fn noisy(dtype: Dtype, len: usize, share: u64) -> Samples {
    let mut noise = Noise(len as u64 + share);
    let values = (0..len).map(|at| {
        let word = noise.next() >> 20;
        match word % 16 < share {
            true => (1 + word / 16 % 3) as f64,
            false if at % 2 == 0 => -0.0,
            false => 0.0,
        }
    });
    Samples::F64(values.collect()).converted(dtype).unwrap()
}

fn grid(dims: [usize; 3], channels: usize, samples: Samples) -> Grid {
    Grid { dims, channels, alpha: Alpha::None, samples }
}

fn assert_is_flood(grid: &Grid, values: &[f64], rule: (usize, bool, usize)) {
    let axes = if rule.0 == 4 || rule.0 == 8 { 2 } else { 3 };
    let label = Label::new(Some(rule.0), axes, rule.1, rule.2 as u64).unwrap();
    let found = assert_same_samples(&label, grid);
    let expected = flood(values, grid.dims, rule);
    let is_large = expected.iter().any(|&label| label > 65_535);
    assert_eq!(found.dtype(), if is_large { Dtype::U32 } else { Dtype::U16 });
    let wrong = numbers(&found).iter().zip(&expected).position(|(a, b)| *a != f64::from(*b));
    assert_eq!(wrong, None, "{rule:?} {:?} {}", grid.dims, grid.samples.dtype());
}

#[test]
fn all_sizes_and_types_equal_a_flood_fill() {
    let sizes = [
        [1, 1, 1],
        [130, 1, 1],
        [1, 70, 1],
        [64, 9, 1],
        [67, 33, 1],
        [1, 5, 9],
        [5, 1, 9],
        [9, 8, 7],
        [66, 5, 6],
    ];
    let mut dtypes = Dtype::SAMPLES.into_iter().cycle();
    for dims in sizes {
        let connectivities = if dims[2] == 1 { &[4, 8][..] } else { &[6, 18, 26] };
        for &connectivity in connectivities {
            for share in [1, 8, 16] {
                let samples = noisy(dtypes.next().unwrap(), dims.iter().product(), share);
                let grid = grid(dims, 1, samples);
                let values = numbers(&grid.samples);
                for rule in [(false, 1), (true, 1), (false, 4), (true, 3)] {
                    assert_is_flood(&grid, &values, (connectivity, rule.0, rule.1));
                }
            }
        }
    }
}

/// Spirals join at their ends only, after many provisional numbers.
#[test]
fn winding_components_are_one() {
    for size in [31_usize, 127, 300] {
        let ring = |x: usize, y: usize| x.min(y).min(size - 1 - x).min(size - 1 - y);
        let is_set = |at: usize| {
            let (x, y) = (at % size, at / size);
            let is_gap = y == ring(x, y) + 1 && x == ring(x, y);
            let is_bridge = x > 0 && y > 0 && x + 1 == y && x < size / 2 && x % 2 == 1;
            (ring(x, y) % 2 == 0 && !is_gap) || is_bridge
        };
        let samples: Vec<u8> = (0..size * size).map(|at| u8::from(is_set(at))).collect();
        let turned: Vec<u8> = samples.iter().rev().copied().collect();
        for samples in [samples, turned] {
            let grid = grid([size, size, 1], 1, samples.into());
            let values = numbers(&grid.samples);
            assert_is_flood(&grid, &values, (4, false, 1));
            assert_is_flood(&grid, &values, (8, false, 1));
        }
    }
}

#[test]
fn many_components_have_32_bits() {
    for (dims, connectivity) in [([600, 300, 1], 4), ([70, 60, 50], 6)] {
        let [width, height, _] = dims;
        let len = dims.iter().product();
        let parity = |at: usize| at % width + at / width % height + at / (width * height);
        let samples: Vec<u8> = (0..len).map(|at| (parity(at) % 2) as u8).collect();
        let grid = grid(dims, 1, samples.into());
        let values = numbers(&grid.samples);
        assert_is_flood(&grid, &values, (connectivity, false, 1));
        assert_is_flood(&grid, &values, (connectivity + 2, false, 1));
    }
}

/// The last number that fits into 16 bits, and the first one that does not.
#[test]
fn labels_have_16_bits_as_long_as_these_suffice() {
    for (count, dtype) in [(65_535, Dtype::U16), (65_536, Dtype::U32)] {
        let mut samples = vec![0u8; 512 * 512];
        let dots = (0..count).map(|at| at / 256 * 1024 + at % 256 * 2);
        dots.for_each(|at: usize| samples[at] = 1);
        let grid = grid([512, 512, 1], 1, samples.into());
        let label = Label::new(Some(8), 2, false, 1).unwrap();
        let found = assert_same_samples(&label, &grid);
        assert_eq!(found.dtype(), dtype);
        let largest = numbers(&found).into_iter().fold(0.0, f64::max);
        assert_eq!(largest, f64::from(count as u32));
        let folder = tempfile::tempdir().unwrap();
        let file = [b"P5 512 512 255\n", grid.samples.as_bytes()].concat();
        fs::write(folder.path().join("a.pgm"), file).unwrap();
        works(folder.path(), "blur a.pgm a.tif --sigma 0");
        // In memory, and in blocks of rows.
        for line in ["label a.pgm o.pgm", "label a.tif o.png --max-memory 1M"] {
            let (code, message) = run(folder.path(), line);
            let expected = if dtype == Dtype::U16 { 0 } else { 2 };
            assert_eq!(code, expected, "{count}, {line}: {message}");
        }
    }
}

#[test]
fn colours_belong_together() {
    let dims = [40, 30, 1];
    for channels in [2, 3, 4] {
        let colours = if channels == 2 { 1 } else { 3 };
        let samples: Vec<u8> =
            Noise(7).bytes(1200 * channels).iter().map(|byte| byte % 5 / 4).collect();
        // Alpha does not count.
        let key =
            |pixel: &[u8]| pixel[..colours].iter().fold(0.0, |key, &v| key * 256.0 + f64::from(v));
        let keys: Vec<f64> = samples.chunks(channels).map(key).collect();
        let wide: Vec<u16> = samples.iter().map(|&value| u16::from(value) * 999).collect();
        let bytes = grid(dims, channels, samples.into());
        assert_is_flood(&bytes, &keys, (8, false, 1));
        assert_is_flood(&bytes, &keys, (4, true, 1));
        assert_is_flood(&grid(dims, channels, wide.into()), &keys, (8, false, 2));
    }
}

/// Writes a noisy mask of 12x10x9 u8 samples and returns its labels.
fn write_volume(folder: &Path, flags: (usize, bool, usize)) -> Vec<u8> {
    let Samples::U8(samples) = noisy(Dtype::U8, 12 * 10 * 9, 5) else { unreachable!() };
    fs::write(folder.join("v_12x10x9_uint8.raw"), &samples).unwrap();
    let labels = flood(&numbers(&samples.into()), [12, 10, 9], flags);
    labels.iter().flat_map(|&label| (label as u16).to_le_bytes()).collect()
}

#[test]
fn labels_volumes_stores_and_shards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let volume = "v_12x10x9_uint8.raw";
    for (rule, flags) in [
        ((26, false, 1), ""),
        ((6, false, 2), "--connectivity 6 --min-size 2"),
        ((18, true, 1), "--connectivity 18 --equal"),
    ] {
        let expected = write_volume(path, rule);
        works(path, &format!("label {volume} whole.raw {flags}"));
        assert_eq!(fs::read(path.join("whole.raw")).unwrap(), expected);
        // The memory limit allows only a few slices of 120 bytes at a time.
        works(path, &format!("label {volume} slow.raw {flags} --max-memory 10K"));
        assert_eq!(fs::read(path.join("slow.raw")).unwrap(), expected);
        // A pipe can be read only once, so its samples stay in memory.
        let line = format!("label - pipe.raw {flags} --dims 12x10x9 --dtype u8 --max-memory 14K");
        let mut command = gpuproc();
        command.current_dir(path).args(line.split_whitespace());
        command.write_stdin(fs::read(path.join(volume)).unwrap()).assert().success();
        assert_eq!(fs::read(path.join("pipe.raw")).unwrap(), expected);
        for memory in ["1G", "10K"] {
            let name = format!("parts{memory}{}.raw", rule.0);
            for shard in 0..3 {
                let shard = format!("--shard {shard}/3 --max-memory {memory} --resume");
                works(path, &format!("label {volume} {name} {flags} {shard}"));
            }
            assert_eq!(fs::read(path.join(name)).unwrap(), expected);
        }
        works(path, &format!("label {volume} out.zarr {flags} --levels 2"));
        works(path, "blur out.zarr back.raw --sigma 0");
        assert_eq!(fs::read(path.join("back.raw")).unwrap(), expected);
        works(path, "blur out.zarr half.raw --sigma 0 --level 1");
        assert_eq!(fs::read(path.join("half.raw")).unwrap()[..2], expected[..2]);
    }
    let half = fs::read(path.join("half.raw")).unwrap();
    let whole = fs::read(path.join("back.raw")).unwrap();
    // Coarser levels hold labels, not means.
    assert_eq!(half[2..4], whole[4..6]);
}

#[test]
fn labels_images_in_blocks_and_batches() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let Samples::U8(samples) = noisy(Dtype::U8, 120 * 900, 8) else { unreachable!() };
    for name in ["a.pgm", "b.pgm"] {
        fs::write(path.join(name), [b"P5 120 900 255\n".to_vec(), samples.clone()].concat())
            .unwrap();
    }
    let labels = flood(&numbers(&samples.into()), [120, 900, 1], (4, false, 1));
    let expected: Vec<u8> = labels.iter().flat_map(|&label| (label as u16).to_be_bytes()).collect();
    for _ in 0..2 {
        works(path, "label a.pgm b.pgm -o out/ --connectivity 4 --resume");
    }
    for name in ["out/a.pgm", "out/b.pgm"] {
        assert!(fs::read(path.join(name)).unwrap().ends_with(&expected), "{name}");
    }
    works(path, "blur a.pgm a.tif --sigma 0");
    works(path, "label a.tif rows.png --connectivity 4 --max-memory 400K");
    works(path, "blur rows.png rows.pgm --sigma 0");
    assert!(fs::read(path.join("rows.pgm")).unwrap().ends_with(&expected));
}

#[test]
fn refuses_formats_that_cannot_hold_the_labels() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let checks: Vec<u8> = (0..600 * 300).map(|at| ((at % 600 + at / 600) % 2) as u8).collect();
    fs::write(path.join("many.pgm"), [b"P5 600 300 255\n".to_vec(), checks].concat()).unwrap();
    works(path, "blur many.pgm many.tif --sigma 0");
    for (line, part) in [
        ("label many.pgm out.png -n 4", "65,535 labels"),
        ("label many.tif out.png -n 4 --max-memory 1M", "65,535 labels"),
        ("label many.pgm out.jpg", "write .png or .tif"),
        ("label many.pgm out.bmp", "write .png or .tif"),
        ("label many.pgm out.png -n 6", "needs 4 or 8"),
        ("label many.pgm out.png -n 5", "needs 4 or 8"),
    ] {
        let (code, message) = run(path, line);
        assert_eq!((code, message.contains(part)), (2, true), "{line}: {message}");
        assert!(!message.contains("clamped"), "{line}: {message}");
        assert_eq!(fs::read_dir(path).unwrap().count(), 2, "{line}");
    }
    works(path, "label many.pgm out.tif -n 4");
}

/// The rows of a table: label, size, start, end, centroid, mean, minimum and maximum, from sample by sample.
fn measured(labels: &[u32], dims: [usize; 3], intensities: &[f64]) -> Vec<Vec<f64>> {
    let count = labels.iter().max().copied().unwrap_or(0);
    let region = |label: u32| {
        let own: Vec<usize> = (0..labels.len()).filter(|&at| labels[at] == label).collect();
        let size = own.len() as f64;
        let place = |at: usize| [at % dims[0], at / dims[0] % dims[1], at / (dims[0] * dims[1])];
        let along = |axis: usize| own.iter().map(move |&at| place(at)[axis]);
        let mut row = vec![f64::from(label), size];
        row.extend((0..3).map(|axis| along(axis).min().unwrap() as f64));
        row.extend((0..3).map(|axis| along(axis).max().unwrap() as f64 + 1.0));
        row.extend((0..3).map(|axis| along(axis).sum::<usize>() as f64 / size));
        let values = || own.iter().map(|&at| intensities[at]);
        row.push(values().sum::<f64>() / size);
        row.push(values().fold(f64::INFINITY, f64::min));
        row.push(values().fold(f64::NEG_INFINITY, f64::max));
        row
    };
    (1..=count).map(region).collect()
}

#[test]
fn tables_measure_the_components() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let rule = (6, false, 2);
    write_volume(path, rule);
    let Samples::U8(samples) = noisy(Dtype::U8, 12 * 10 * 9, 5) else { unreachable!() };
    let labels = flood(&numbers(&samples.into()), [12, 10, 9], rule);
    let light: Vec<u16> = Noise(8).bytes(1080).iter().map(|&byte| u16::from(byte) * 100).collect();
    fs::write(path.join("i_12x10x9_uint16.raw"), bytemuck::cast_slice(&light)).unwrap();
    let expected = measured(&labels, [12, 10, 9], &numbers(&light.into()));
    let header = "ObjectType = Image\nNDims = 3\nDimSize = 12 10 9\nElementSpacing = 0.5 0.5 2\nElementType = MET_UCHAR\nElementDataFile = v_12x10x9_uint8.raw\n";
    fs::write(path.join("v.mhd"), header).unwrap();
    let line = "out.raw -n 6 --min-size 2 --intensity i_12x10x9_uint16.raw --table";
    for (input, memory) in
        [("v_12x10x9_uint8.raw", "1G"), ("v_12x10x9_uint8.raw", "10K"), ("v.mhd", "1G")]
    {
        works(path, &format!("label {input} {line} t.csv --max-memory {memory}"));
        let text = fs::read_to_string(path.join("t.csv")).unwrap();
        let heads: Vec<&str> = text.lines().next().unwrap().split(',').collect();
        let has_volume = input == "v.mhd";
        let start = if has_volume { 3 } else { 2 };
        assert_eq!(heads[..2], ["label", "voxels"]);
        assert_eq!(heads[start..][..4], ["start_x", "start_y", "start_z", "end_x"]);
        assert_eq!(
            heads[start + 6..],
            ["centroid_x", "centroid_y", "centroid_z", "mean", "min", "max"]
        );
        let rows =
            text.lines().skip(1).map(|row| row.split(',').map(|v| v.parse().unwrap()).collect());
        let mut rows: Vec<Vec<f64>> = rows.collect();
        if has_volume {
            assert!(heads[2].starts_with("volume"), "{}", heads[2]);
            for row in &mut rows {
                assert_eq!(row.remove(2), row[1] * 0.5);
            }
        }
        assert_eq!(rows, expected, "{input} {memory}");
    }
    works(path, &format!("label v_12x10x9_uint8.raw {line} t.json"));
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(path.join("t.json")).unwrap()).unwrap();
    assert_eq!(json.as_array().unwrap().len(), expected.len());
    assert_eq!(json[1]["mean"].as_f64(), Some(expected[1][11]));
    assert_eq!(json[1]["end_z"].as_f64(), Some(expected[1][7]));
    // Only the first shard writes the table.
    fs::remove_file(path.join("t.csv")).unwrap();
    for shard in [1, 0] {
        let line = "parts.raw -n 6 --min-size 2 --table t.csv";
        works(path, &format!("label v_12x10x9_uint8.raw {line} --shard {shard}/2"));
        assert_eq!(path.join("t.csv").exists(), shard == 0);
    }
}

#[test]
fn tables_of_images_and_of_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("a.pgm"), [b"P5 3 2 255\n".to_vec(), vec![7, 7, 0, 0, 0, 1]].concat())
        .unwrap();
    fs::write(path.join("b.pgm"), [b"P5 3 2 255\n".to_vec(), vec![0; 6]].concat()).unwrap();
    works(path, "label a.pgm b.pgm -o out/ -n 4 --table tables/{stem}.csv --intensity a.pgm");
    let table = |name: &str| fs::read_to_string(path.join("tables").join(name)).unwrap();
    let heads = "label,pixels,start_x,start_y,end_x,end_y,centroid_x,centroid_y,mean,min,max\n";
    assert_eq!(table("a.csv"), format!("{heads}1,2,0,0,2,1,0.5,0,7,7,7\n2,1,2,1,3,2,2,1,1,1,1\n"));
    assert_eq!(table("b.csv"), heads);
    works(path, "label b.pgm out.pgm --table b.json");
    assert_eq!(fs::read_to_string(path.join("b.json")).unwrap(), "[]\n");
    fs::write(path.join("c.pgm"), b"P5 1 1 255\n7").unwrap();
    for (line, part) in [
        ("label a.pgm o.pgm --table t.txt", ".csv or .json"),
        ("label a.pgm o.pgm --intensity b.pgm", "--table"),
        ("label a.pgm b.pgm -o out/ --table t.csv", "--table tables/"),
        ("label a.pgm o.pgm --table '{foo}.csv'", "{foo}"),
        ("label a.pgm o.pgm --table t.csv --intensity c.pgm", "expected 3 x 2"),
    ] {
        let (code, message) = run(path, line);
        assert_eq!((code != 0, message.contains(part)), (true, true), "{line}: {message}");
        assert!(!path.join("t.csv").exists() && !path.join("o.pgm").exists(), "{line}");
    }
}
