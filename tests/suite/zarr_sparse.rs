//! Zarr stores with few chunks: missing chunks are counted or skipped, with the same results as for a volume with all
//! samples. Also partial stores of killed processes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use gpuproc::data::dtype::Dtype;
use serde_json::json;

use crate::common::{Noise, program, works};

/// Number of samples along z, y and x; none is a multiple of the chunk size.
const SHAPE: [usize; 3] = [150, 45, 37];
const CHUNK: [usize; 3] = [8, 16, 10];
/// Positions of the stored chunks along z, y and x.
const STORED: [[usize; 3]; 5] = [[3, 1, 2], [3, 1, 3], [4, 1, 2], [15, 0, 0], [18, 2, 3]];

/// Layout of a store: chunks in one folder, chunks in nested folders, or shards.
#[derive(Clone, Copy, Debug)]
enum StoreLayout {
    Flat,
    Folders,
    Shards,
}

/// Writes the same volume as a sparse store and as a raw file with all samples. Returns both paths.
fn write_volume(folder: &Path, layout: StoreLayout, dtype: Dtype, fill: u8) -> (PathBuf, PathBuf) {
    let size = dtype.size();
    let mut noise = Noise(4);
    let mut whole: Vec<u8> =
        [vec![fill], vec![0; size - 1]].concat().repeat(SHAPE.iter().product());
    let root = folder.join(format!("{layout:?}-{dtype}-{fill}.zarr"));
    let put = |name: String, bytes: &[u8]| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    for at in STORED {
        let mut chunk = Vec::new();
        for [z, y, x] in positions(CHUNK) {
            let sample = [vec![noise.bytes(1)[0]], vec![0; size - 1]].concat();
            chunk.extend(&sample);
            let place = [z + at[0] * CHUNK[0], y + at[1] * CHUNK[1], x + at[2] * CHUNK[2]];
            if (0..3).all(|axis| place[axis] < SHAPE[axis]) {
                let number = (place[0] * SHAPE[1] + place[1]) * SHAPE[2] + place[2];
                whole[number * size..][..size].copy_from_slice(&sample);
            }
        }
        let [z, y, x] = at;
        match layout {
            StoreLayout::Flat => put(format!("{z}.{y}.{x}"), &chunk),
            StoreLayout::Folders => put(format!("{z}/{y}/{x}"), &chunk),
            // A shard of two chunks along z, of which one or both are stored, followed by the index.
            StoreLayout::Shards => {
                let name = format!("c/{}/{y}/{x}", z / 2);
                let missing = [u64::MAX; 2].map(u64::to_le_bytes).concat();
                let mut shard = fs::read(root.join(&name)).unwrap_or_default();
                let mut index = shard.split_off(shard.len().saturating_sub(32));
                index.resize(32, 0xff);
                let entry = [shard.len() as u64, chunk.len() as u64].map(u64::to_le_bytes).concat();
                index[16 * (z % 2)..][..16].copy_from_slice(&entry);
                assert_eq!(missing.len(), entry.len());
                put(name, &[shard, chunk, index].concat());
            }
        }
    }
    let name = dtype.name();
    let metadata = match layout {
        StoreLayout::Shards => {
            let bytes = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
            let shard = [2 * CHUNK[0], CHUNK[1], CHUNK[2]];
            json!({
                "zarr_format": 3, "node_type": "array", "shape": SHAPE, "data_type": name,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shard}},
                "chunk_key_encoding": {"name": "default"}, "fill_value": fill,
                "codecs": [{"name": "sharding_indexed", "configuration": {
                    "chunk_shape": CHUNK, "codecs": bytes, "index_codecs": bytes}}],
            })
        }
        _ => json!({
            "zarr_format": 2, "shape": SHAPE, "chunks": CHUNK, "fill_value": fill, "order": "C",
            "dtype": format!("<u{size}"), "compressor": null, "filters": null,
            "dimension_separator": if matches!(layout, StoreLayout::Flat) { "." } else { "/" },
        }),
    };
    let file = if matches!(layout, StoreLayout::Shards) { "zarr.json" } else { ".zarray" };
    put(file.into(), metadata.to_string().as_bytes());
    let [z, y, x] = SHAPE;
    let raw = folder.join(format!("v-{layout:?}-{fill}_{x}x{y}x{z}_{name}.raw"));
    fs::write(&raw, whole).unwrap();
    (root, raw)
}

/// All positions in a box, the last axis fastest.
fn positions([a, b, c]: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (0..a).flat_map(move |z| (0..b).flat_map(move |y| (0..c).map(move |x| [z, y, x])))
}

/// The output of a command as a file with this extension. Text has the input path replaced by `input`.
fn output(folder: &Path, command: &str, input: &Path, extension: &str) -> Vec<u8> {
    let name = format!("o.{extension}");
    works(folder, &format!("{command} {} -o {name}", input.display()));
    let bytes = fs::read(folder.join(&name)).unwrap();
    let own = input.display().to_string();
    match String::from_utf8(bytes) {
        Ok(text) => text.replace(&own, "input").into_bytes(),
        Err(error) => error.into_bytes(),
    }
}

#[test]
fn missing_chunks_count_as_fill_values() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (layout, dtype, fill) in [
        (StoreLayout::Flat, Dtype::U8, 0),
        (StoreLayout::Folders, Dtype::U16, 3),
        (StoreLayout::Shards, Dtype::U8, 200),
        (StoreLayout::Shards, Dtype::U32, 0),
    ] {
        let (sparse, whole) = write_volume(folder, layout, dtype, fill);
        for (command, extension) in [
            ("histogram --bins 256 --range 0,255", "csv"),
            ("histogram --stats --bins 256 --percentiles 1,33,99", "json"),
            ("--max-memory 400K histogram --bins 7 --range data", "csv"),
            ("--max-memory 400K mesh --iso 100", "ply"),
            ("--max-memory 400K mesh --iso 100.5 --close --normals", "ply"),
            ("--max-memory 400K mesh --iso auto", "ply"),
        ] {
            let [sparse, whole] =
                [&sparse, &whole].map(|input| output(folder, command, input, extension));
            assert!(sparse == whole, "{layout:?} {dtype} {fill}: {command}");
        }
        // Most labels are 0, and smoothing needs a halo of many slices.
        let [sparse, whole] =
            [&sparse, &whole].map(|input| output(folder, "mesh --labels 1..9", input, "ply"));
        assert!(sparse == whole, "{layout:?} {dtype} {fill}");
    }
}

/// Each shard counts only the missing samples in its own slices.
#[test]
fn shards_count_missing_chunks_once() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (sparse, whole) = write_volume(folder, StoreLayout::Flat, Dtype::U8, 9);
    for command in ["histogram --stats --bins 256", "mesh --iso 100"] {
        let extension = if command.starts_with("mesh") { "ply" } else { "csv" };
        let expected = output(folder, command, &whole, extension);
        let parts = (0..7).map(|index| {
            let (name, input) = (format!("{index}.part"), sparse.display());
            works(
                folder,
                &format!("--max-memory 400K {command} {input} -o {name} --shard {index}/7"),
            );
            name
        });
        let parts = parts.collect::<Vec<_>>().join(" ");
        works(folder, &format!("merge {parts} -o m.{extension}"));
        let merged = fs::read_to_string(folder.join(format!("m.{extension}")));
        let merged = merged.map(|text| text.replace(&sparse.display().to_string(), "input"));
        let merged = match merged {
            Ok(text) => text.into_bytes(),
            Err(_) => fs::read(folder.join(format!("m.{extension}"))).unwrap(),
        };
        assert!(merged == expected, "{command}");
    }
}

/// A killed process leaves a partial store. The next process that writes the same store removes it.
#[test]
#[cfg(target_os = "linux")]
fn removes_the_partial_store_of_a_killed_process() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("v_200x200x200_uint8.raw"), vec![7; 8_000_000]).unwrap();
    fs::write(folder.join("small_2x2x2_uint8.raw"), [7; 8]).unwrap();
    let left = || {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        entries.filter(|name| name.to_string_lossy().ends_with(".part")).count()
    };
    let slow = |output: &str| {
        let mut command = Command::new(program());
        command.current_dir(folder).args(["--device", "cpu", "--threads", "1"]);
        command.args(["blur", "v_200x200x200_uint8.raw", output, "--sigma", "60"]);
        let process = command.spawn().unwrap();
        while left() == 0 {
            thread::sleep(Duration::from_millis(2));
        }
        process
    };
    let mut killed = slow("out.zarr");
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(left(), 1);
    works(folder, "blur small_2x2x2_uint8.raw other.zarr");
    assert_eq!(left(), 1, "the partial store of another output was removed");
    works(folder, "blur small_2x2x2_uint8.raw out.zarr");
    assert_eq!(left(), 0);
    // A store that another process is still writing is kept.
    let mut running = slow("out.zarr");
    works(folder, "blur small_2x2x2_uint8.raw out.zarr");
    assert_eq!((left(), running.try_wait().unwrap()), (1, None));
    running.kill().unwrap();
    running.wait().unwrap();
}
