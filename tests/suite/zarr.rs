//! Zarr and OME-Zarr: stores by zarr-python and ome-zarr-py have the values that zarr-python reads; written stores are
//! checked with a naive reader; broken stores are rejected in one line.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use gpuproc::{io::volume::Layout, util::timings::Timings};
use serde_json::{Value, json};

use crate::{
    asserts::assert_contains,
    common::{device_names, output_of, run, works},
    inputs::{as_f64, describe_as},
    mesh_readers::read_ply,
    shard_runs::{run_shards, write_volume},
    zarr_reader::{Store, files, fnv, read_level, values},
};

#[test]
fn reads_stores_of_zarr_python() {
    let folder = tempfile::tempdir().unwrap();
    for store in Store::all() {
        let path = store.write(folder.path());
        for slices in [1, 3, 100] {
            let found = values(&path, 0, slices);
            assert_eq!(found.len(), store.shape().iter().product::<usize>(), "{}", store.name());
            assert_eq!(fnv(&found), store.0["fnv"], "{} by {slices}: {found:?}", store.name());
        }
        if let Some(second) = store.0["second"].as_str() {
            assert_eq!(fnv(&values(&path, 1, 2)), second, "{}", store.name());
        }
    }
}

#[test]
fn axes_determine_spacing_origin_and_volumes() {
    let folder = tempfile::tempdir().unwrap();
    let path = Store::named("ngff-0.4-tczyx").write(folder.path());
    let of = |layout: &Layout| describe_as(&path, layout).map_err(|error| error.one_line());
    let file = of(&Layout { volume: Some(0), ..Layout::default() }).unwrap();
    assert_eq!((file.dims, file.volumes, file.volume_noun), ([7, 6, 3], 4, "times and channels"));
    assert_eq!(file.format(), "OME-Zarr 0.4");
    let placement = file.placement.as_ref().unwrap();
    assert_eq!(placement.spacing(), [0.25, 0.25, 2.0]);
    assert_eq!(placement.first, [4.5, -3.0, 10.0]);
    assert_eq!(placement.unit.as_deref(), Some("um"));
    let coarse = Layout { volume: Some(0), level: Some(1), ..Layout::default() };
    assert_eq!(of(&coarse).unwrap().placement.as_ref().unwrap().spacing(), [0.5, 0.5, 2.0]);
    // A channel and a time together select one volume.
    let one = |layout: &Layout| {
        as_f64(&of(layout).unwrap().read(1 << 20, &Timings::new(false)).unwrap().samples)
    };
    for (channel, time, volume) in [(0, 0, 0), (1, 0, 1), (0, 1, 2), (1, 1, 3)] {
        let chosen = Layout { channel: Some(channel), time: Some(time), ..Layout::default() };
        let numbered = Layout { volume: Some(volume), ..Layout::default() };
        assert_eq!(one(&chosen), one(&numbered));
    }
    let channel = of(&Layout { channel: Some(1), volume: Some(0), ..Layout::default() }).unwrap();
    assert_eq!((channel.volumes, channel.volume_noun), (2, "times"));
    for (layout, message) in [
        (Layout::default(), "contains 4 times and channels"),
        (
            Layout { channel: Some(2), ..Layout::default() },
            "channel 3 does not exist; expected 1 to 2",
        ),
        (Layout { time: Some(7), ..Layout::default() }, "time 8 does not exist; expected 1 to 2"),
        (Layout { level: Some(2), ..Layout::default() }, "level 2 does not exist; expected 0 to 1"),
    ] {
        let error = of(&layout).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
    let plane = Store::named("ngff-0.5-cyx").write(folder.path());
    let file = describe_as(&plane, &Layout { channel: Some(1), ..Layout::default() }).unwrap();
    assert_eq!((file.dims, file.volumes), ([7, 6, 1], 1));
}

#[test]
fn commands_accept_stores() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let path = Store::named("ngff-0.5-zyx").write(folder);
    fs::rename(path, folder.join("in.zarr")).unwrap();
    let info = output_of(folder, "info in.zarr --range");
    for part in ["OME-Zarr 0.5 volume, 7x6x5 of u16", "spacing", "0.25 0.25 2", "um"] {
        assert!(info.contains(part), "{info}");
    }
    works(folder, "blur --sigma 0 in.zarr in.nrrd");
    let counts =
        |name: &str| output_of(folder, &format!("histogram {name} --bins 16 --range 15000,25000"));
    assert_eq!(counts("in.zarr"), counts("in.nrrd"));
    // The NRRD file is in mm, the store in µm.
    let surface = |line: &str, name: &str| {
        works(folder, line);
        read_ply(&fs::read(folder.join(name)).unwrap())
    };
    let [here, there] = [("in.zarr", "a.ply"), ("in.nrrd", "b.ply")]
        .map(|(from, to)| surface(&format!("mesh {from} {to} --iso 20000"), to));
    assert_eq!(here.triangles, there.triangles);
    for (here, there) in here.positions.iter().flatten().zip(there.positions.iter().flatten()) {
        assert!((here - 1e3 * there).abs() <= 1e-6 * here.abs(), "{here} {there}");
    }
    // Shards give the same result.
    for i in 0..3 {
        works(folder, &format!("mesh in.zarr part-{i} --iso 20000 --shard {i}/3"));
        works(
            folder,
            &format!("histogram in.zarr -o count-{i} --bins 16 --range 15000,25000 --shard {i}/3"),
        );
    }
    works(folder, "merge part-0 part-1 part-2 -o c.ply");
    assert_eq!(fs::read(folder.join("a.ply")).unwrap(), fs::read(folder.join("c.ply")).unwrap());
}

#[test]
fn pyramid_levels_are_means_of_the_blurred_volume() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (dtype, size) in [("uint8", 1), ("uint16", 2)] {
        let raw = format!("v_37x29x21_{dtype}.raw");
        write_volume(&folder.join(&raw), [37, 29, 21], dtype);
        works(folder, &format!("blur {raw} b_37x29x21_{dtype}.raw --sigma 1.5"));
        let blurred = fs::read(folder.join(format!("b_37x29x21_{dtype}.raw"))).unwrap();
        let line = format!("blur {raw} out.zarr --sigma 1.5 --levels 4 --chunks 16x8x4");
        works(folder, &line);
        let store = folder.join("out.zarr");
        let (shape, mut values) = read_level(&store, 0, size);
        assert_eq!(shape, [37, 29, 21]);
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b));
        assert!(blurred.chunks(size).map(number).eq(values.iter().copied()));
        let mut dims = shape;
        for level in 1..4 {
            let (shape, found) = read_level(&store, level, size);
            assert_eq!(shape, dims.map(|len: usize| len.div_ceil(2)));
            for (i, &value) in found.iter().enumerate() {
                let place = [i % shape[0], i / shape[0] % shape[1], i / shape[0] / shape[1]];
                let range = |axis: usize| 2 * place[axis]..(2 * place[axis] + 2).min(dims[axis]);
                let (mut sum, mut count) = (0, 0);
                for z in range(2) {
                    for y in range(1) {
                        for x in range(0) {
                            sum += values[(z * dims[1] + y) * dims[0] + x];
                            count += 1;
                        }
                    }
                }
                assert_eq!(value, (2 * sum + count) / (2 * count), "level {level}, {place:?}");
            }
            (values, dims) = (found, shape);
        }
        // The store can be read as a volume and is independent of the memory limit.
        works(folder, "blur out.zarr back.raw --sigma 0");
        assert!(fs::read(folder.join("back.raw")).unwrap() == blurred);
        let whole = files(&store);
        let small = line.replace("out.zarr", "small.zarr") + " --max-memory 600k --threads 2";
        works(folder, &small);
        assert!(files(&folder.join("small.zarr")) == whole);
    }
}

#[test]
fn shards_write_one_store() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_volume(&folder.join("v_23x19x37_uint8.raw"), [23, 19, 37], "uint8");
    works(folder, "blur v_23x19x37_uint8.raw in.zarr --sigma 0 --chunks 8x8x2 --levels 2");
    let line = "blur in.zarr out.zarr --sigma 1 --levels 4";
    works(folder, line);
    let whole = files(&folder.join("out.zarr"));
    assert!(whole.len() > 100, "{}", whole.len());
    for device in device_names() {
        fs::remove_dir_all(folder.join("out.zarr")).unwrap();
        works(folder, &format!("{line} --device {device}"));
        assert!(files(&folder.join("out.zarr")) == whole, "{device}");
    }
    let before = fs::read_dir(folder).unwrap().count();
    for (count, device) in [(1, "cpu"), (2, "mixed"), (7, "cpu"), (30, "mixed")] {
        // An existing store of another job is replaced.
        works(folder, "blur in.zarr out.zarr --sigma 3 --levels 1 --chunks 64x64x64");
        run_shards(folder, &format!("{line} --shard {{}}"), count, device, count == 7);
        let found = files(&folder.join("out.zarr"));
        let (names, expected): (Vec<_>, Vec<_>) = (found.keys().collect(), whole.keys().collect());
        assert_eq!(names, expected, "{count} shards");
        assert!(found == whole, "{count} shards on {device}");
        let marker = fs::read_dir(folder).unwrap().count();
        assert!(marker <= before + 1, "{count} shards leave {marker} names");
    }
    let (code, stderr) = run(folder, "blur in.zarr in.zarr --sigma 1 --shard 0/2");
    assert!(code == 2 && stderr.contains("cannot replace its input"), "{stderr}");
}

/// With several chunks per file, neighbouring chunks of a layer share a file: the same samples in fewer files, and the
/// same bytes if the job runs in shards.
#[test]
fn file_chunks_option_stores_several_chunks_per_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_volume(&folder.join("v_37x29x21_uint16.raw"), [37, 29, 21], "uint16");
    let line = "blur v_37x29x21_uint16.raw OUT --sigma 1 --levels 3 --chunks 8x8x4";
    let to = |out: &str, more: &str| works(folder, &format!("{}{more}", line.replace("OUT", out)));
    to("one.zarr", "");
    to("out.zarr", " --file-chunks 3");
    let (one, whole) = (files(&folder.join("one.zarr")), files(&folder.join("out.zarr")));
    // 5 x 4 chunks are in 2 x 2 files, 3 x 2 chunks in one. Each level also has a metadata file.
    let names = |store: &BTreeMap<PathBuf, Vec<u8>>, level: &str| {
        store.keys().filter(|name| name.starts_with(level)).count()
    };
    for (level, chunks, shard_files) in
        [("0", 5 * 4 * 6, 2 * 2 * 6), ("1", 3 * 2 * 3, 3), ("2", 2 * 2, 2)]
    {
        assert_eq!(
            (names(&one, level), names(&whole, level)),
            (chunks + 1, shard_files + 1),
            "{level}"
        );
    }
    for level in 0..3 {
        let of = |name: &str| values(&folder.join(name), level, 5);
        assert_eq!(of("one.zarr"), of("out.zarr"), "{level}");
    }
    // A shard file contains the chunks of the other store, one after the other, and an index.
    let file = &whole[Path::new("0/c/0/0/0")];
    let chunks: Vec<&Vec<u8>> =
        (0..9).map(|i| &one[Path::new(&format!("0/c/0/{}/{}", i / 3, i % 3))]).collect();
    let (mut expected, mut from) =
        (chunks.iter().copied().flatten().copied().collect::<Vec<u8>>(), 0);
    for chunk in chunks {
        expected.extend([from, chunk.len() as u64].map(u64::to_le_bytes).concat());
        from += chunk.len() as u64;
    }
    assert!(file[..file.len() - 4] == expected);
    fs::remove_dir_all(folder.join("out.zarr")).unwrap();
    for count in [2, 7] {
        let line = line.replace("OUT", "out.zarr") + " --file-chunks 3 --shard {}";
        run_shards(folder, &line, count, "cpu", true);
        assert!(files(&folder.join("out.zarr")) == whole, "{count}");
        fs::remove_dir_all(folder.join("out.zarr")).unwrap();
    }
    // Empty chunks take no space, and a file without chunks is not written.
    let mut bytes = vec![0; 2 * 37 * 29 * 21];
    bytes[0] = 1;
    fs::write(folder.join("z_37x29x21_uint16.raw"), bytes).unwrap();
    works(
        folder,
        "blur z_37x29x21_uint16.raw z.zarr --sigma 0 --levels 1 --chunks 8x8x4 --file-chunks 3",
    );
    assert_eq!(names(&files(&folder.join("z.zarr")), "0"), 2);
    let back = values(&folder.join("z.zarr"), 0, 5);
    assert!(back[0] == 1.0 && back[1..].iter().all(|&value| value == 0.0));
    let (code, stderr) =
        run(folder, &format!("{} --file-chunks 3 --zarr-version 2", line.replace("OUT", "b.zarr")));
    assert!(code == 2 && stderr.contains("cannot store several chunks in a file"), "{stderr}");
}

/// With more than 65,536 chunks, each file contains 8 x 8 chunks by default. Chunks of one byte reach that number with
/// a small image.
#[test]
fn many_chunks_are_grouped_into_shards_by_default() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_volume(&at.join("v_257x256x1_uint8.raw"), [257, 256, 1], "uint8");
    let make = |more: &str, out: &str| {
        let line = "blur v_257x256x1_uint8.raw OUT --sigma 0 --levels 1 --chunks";
        works(at, &format!("{} {more}", line.replace("OUT", out)));
        files(&at.join(out))
    };
    let (many, fewer) = (make("1x1x1", "many.zarr"), make("16x16x1", "fewer.zarr"));
    let count = |store: &BTreeMap<PathBuf, Vec<u8>>| {
        store.keys().filter(|name| name.starts_with("0/c")).count()
    };
    // 257 x 256 chunks are in 33 x 32 files; 17 x 16 chunks have one file each.
    assert_eq!((count(&many), count(&fewer)), (33 * 32, 17 * 16));
    let meta: Value = serde_json::from_slice(&many[Path::new("0/zarr.json")]).unwrap();
    assert_eq!(meta["chunk_grid"]["configuration"]["chunk_shape"], json!([1, 8, 8]));
    assert_eq!(meta["codecs"][0]["name"], "sharding_indexed");
    assert_eq!(values(&at.join("many.zarr"), 0, 1), values(&at.join("fewer.zarr"), 0, 1));
    // Each file of the last column has one chunk per row; the other seven do not exist.
    let last = &many[Path::new("0/c/0/0/32")];
    let index = &last[last.len() - 4 - 16 * 64..];
    let is_there = |at: usize| index[16 * at..16 * at + 16] != [0xff; 16];
    for at in 0..64 {
        assert!(at % 8 == 0 || !is_there(at), "{at}");
    }
    let sixteen = make("1x1x1 --file-chunks 16", "sixteen.zarr");
    assert_eq!(count(&sixteen), 17 * 16);
}

#[test]
fn overwrites_only_zarr_stores() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_volume(&folder.join("v_9x8x7_uint8.raw"), [9, 8, 7], "uint8");
    works(folder, "blur v_9x8x7_uint8.raw a.zarr --sigma 1");
    let first = files(&folder.join("a.zarr"));
    works(folder, "blur a.zarr a.zarr --sigma 2 --zarr-version 2");
    let second = files(&folder.join("a.zarr"));
    assert!(
        !second.contains_key(Path::new("zarr.json")) && second.contains_key(Path::new(".zgroup"))
    );
    assert!(first != second && fs::read_dir(folder).unwrap().count() == 2);
    assert_eq!(values(&folder.join("a.zarr"), 0, 9).len(), 9 * 8 * 7);
    let rejects = |line: &str, what: &str| {
        let (code, stderr) = run(folder, line);
        assert!(code != 0 && stderr.contains(what), "{stderr}");
        assert_eq!(files(&folder.join("a.zarr")), second);
    };
    rejects("blur v_9x8x7_uint8.raw a.zarr --no-clobber", "a.zarr");
    fs::create_dir(folder.join("b.zarr")).unwrap();
    fs::write(folder.join("b.zarr/thesis.txt"), "mine").unwrap();
    rejects("blur v_9x8x7_uint8.raw b.zarr", "it exists and is not a Zarr store");
    rejects("blur v_9x8x7_uint8.raw a.zarr --max-memory 1k", "--max-memory");
    rejects("blur v_9x8x7_uint8.raw c.nrrd --levels 2", "whose name ends with .zarr");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 3, "temporary files remain");
    assert_eq!(fs::read_to_string(folder.join("b.zarr/thesis.txt")).unwrap(), "mine");
}

/// All channels and times are blurred and keep their metadata, or only the selected one.
#[test]
fn blur_keeps_all_five_axes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let path = Store::named("ngff-0.4-tczyx").write(folder);
    fs::rename(&path, folder.join("in.zarr")).unwrap();
    works(folder, "blur in.zarr out.zarr --sigma 0 --levels 2 --chunks 4x4x2");
    assert_eq!(values(&folder.join("out.zarr"), 0, 2), values(&folder.join("in.zarr"), 0, 2));
    let axes = |name: &str| {
        let text = fs::read(folder.join(name).join(".zattrs")).unwrap();
        let value: Value = serde_json::from_slice(&text).unwrap();
        let image = &value["multiscales"][0];
        let first = &image["datasets"][0]["coordinateTransformations"];
        (image["axes"].clone(), first.clone())
    };
    assert_eq!(axes("in.zarr"), axes("out.zarr"));
    works(folder, "blur in.zarr one.zarr --sigma 0 --channel 2 --time 1");
    let one = values(&folder.join("one.zarr"), 0, 2);
    let all = values(&folder.join("in.zarr"), 0, 2);
    assert_eq!(one, all[all.len() / 4..all.len() / 2]);
    assert_eq!(axes("one.zarr").0.as_array().unwrap().len(), 3);
    // Labels are subsampled, not averaged.
    let labels = Store::named("ngff-0.5-zyx-labels").write(folder);
    fs::rename(&labels, folder.join("labels.zarr")).unwrap();
    works(folder, "blur labels.zarr thin.zarr --sigma 0 --levels 2");
    let (thin, labels) =
        (values(&folder.join("thin.zarr"), 1, 9), values(&folder.join("labels.zarr"), 0, 9));
    assert!(thin.len() == 4 * 3 * 5 && thin[1] == labels[2] && thin[4] == labels[14]);
}

#[test]
fn rejects_broken_stores_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let path = Store::named("v3-zstd-int16").write(folder);
    fs::rename(path, folder.join("a.zarr")).unwrap();
    let fails = |what: &str| {
        let (code, stderr) = run(folder, "info a.zarr --range --max-memory 100M");
        assert!((2..6).contains(&code) && stderr.trim().lines().count() == 1, "{code} {stderr}");
        assert!(stderr.contains(what), "{what}: {stderr}");
    };
    let metadata = folder.join("a.zarr/zarr.json");
    let good: Value = serde_json::from_slice(&fs::read(&metadata).unwrap()).unwrap();
    let put = |value: &Value| fs::write(&metadata, value.to_string()).unwrap();
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut value = good.clone();
        change(&mut value);
        put(&value);
    };
    changed(&|value| value["shape"] = json!([1u64 << 40, 1u64 << 40, 1u64 << 40]));
    fails("too large");
    changed(&|value| {
        value["chunk_grid"]["configuration"]["chunk_shape"] = json!([1 << 10, 1 << 10, 1 << 8]);
    });
    fails("a chunk needs at least 1 GiB of memory");
    changed(&|value| value["codecs"][1]["name"] = json!("zfp"));
    fails("codec `zfp` is not supported");
    changed(&|value| value["data_type"] = json!("complex64"));
    fails("samples of type `complex64` are not supported");
    changed(&|value| value["data_type"] = json!("int32"));
    fails("chunk has 1024 bytes; expected 2048");
    fs::write(&metadata, "{").unwrap();
    fails("zarr.json");
    put(&good);
    works(folder, "info a.zarr --range");
    let chunk = folder.join("a.zarr/c/0/0/0");
    let bytes = fs::read(&chunk).unwrap();
    fs::write(&chunk, &bytes[..bytes.len() / 2]).unwrap();
    fails("c/0/0/0");
    fs::write(&chunk, vec![0; 1 << 20]).unwrap();
    fails("file is too long");
    fs::remove_file(&chunk).unwrap();
    fs::create_dir(&chunk).unwrap();
    fails("not a regular file");
    fs::write(&metadata, json!({"zarr_format": 3, "node_type": "group"}).to_string()).unwrap();
    fails("group without an image");
    let elsewhere = json!({"zarr_format": 3, "node_type": "group", "attributes": {"ome": {
        "version": "0.5", "multiscales": [{"axes": [], "datasets": [{"path": "../b"}]}]}}});
    put(&elsewhere);
    fails("`../b` of a level is not in its folder");
}

#[test]
fn warns_about_dropped_attributes_and_labels() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("in_4x3x2_uint8.raw"), [7; 24]).unwrap();
    for (version, attributes) in [("2", ".zattrs"), ("3", "zarr.json")] {
        works(
            folder,
            &format!("blur in_4x3x2_uint8.raw in.zarr --sigma 0 --zarr-version {version}"),
        );
        let file = folder.join("in.zarr").join(attributes);
        let mut json: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        match version {
            "2" => json["microscope"] = "mine".into(),
            _ => json["attributes"]["microscope"] = "mine".into(),
        }
        fs::write(&file, json.to_string()).unwrap();
        assert_contains(&works(folder, "blur in.zarr o.zarr --sigma 0"), "is dropped (microscope)");
        let labels = folder.join("in.zarr/labels/nuclei");
        fs::create_dir_all(&labels).unwrap();
        fs::write(labels.join(".zgroup"), "{\"zarr_format\": 2}").unwrap();
        let stderr = works(folder, "blur in.zarr o.zarr --sigma 0");
        assert!(stderr.contains("metadata is dropped (microscope, labels)"), "{stderr}");
        fs::remove_dir_all(folder.join("in.zarr")).unwrap();
    }
}
