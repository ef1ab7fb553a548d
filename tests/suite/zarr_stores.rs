//! Zarr stores in ZIP files are read like folders; stores at URLs need the feature `http`.

use std::{fs, io::Write, path::Path};

use flate2::{Compression, write::DeflateEncoder};
use rawzip::{CompressionMethod, ZipArchiveWriter};

use crate::{
    common::{Noise, run, works},
    fuzz::mutate,
    zarr_reader::{Store, files, fnv, values},
};

/// A ZIP file of a folder, with `prefix` before each name.
fn zip_folder(folder: &Path, prefix: &str, method: CompressionMethod) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut archive = ZipArchiveWriter::new(&mut bytes);
    for (name, content) in files(folder) {
        let name = format!("{prefix}{}", name.display());
        let file = archive.new_file(&*name).compression_method(method);
        let (mut entry, config) = file.start().unwrap();
        let descriptor = match method == CompressionMethod::STORE {
            true => {
                let mut writer = config.wrap(&mut entry);
                writer.write_all(&content).unwrap();
                writer.finish().unwrap().1
            }
            false => {
                let mut writer =
                    config.wrap(DeflateEncoder::new(&mut entry, Compression::default()));
                writer.write_all(&content).unwrap();
                let (encoder, descriptor) = writer.finish().unwrap();
                encoder.finish().unwrap();
                descriptor
            }
        };
        entry.finish(descriptor).unwrap();
    }
    archive.finish().unwrap();
    bytes
}

#[test]
fn reads_zip_files_like_folders() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (i, store) in Store::all().into_iter().enumerate() {
        let path = store.write(folder);
        for method in [CompressionMethod::STORE, CompressionMethod::DEFLATE] {
            let (prefix, name) = if i % 2 == 0 { ("", "s.ozx") } else { ("in/", "s.zarr.zip") };
            let file = folder.join(name);
            fs::write(&file, zip_folder(&path, prefix, method)).unwrap();
            if method == CompressionMethod::DEFLATE && store.name().starts_with("v3-shard") {
                let (code, stderr) = run(folder, &format!("histogram {name}"));
                assert!(code == 4 && stderr.contains("deflated shards in ZIP files"), "{stderr}");
                continue;
            }
            assert_eq!(fnv(&values(&file, 0, 2)), store.hash(), "{} in {name}", store.name());
        }
    }
}

/// Folders without metadata next to the store are ignored.
#[test]
fn ignores_unrelated_folders_in_zip_files() {
    let folder = tempfile::tempdir().unwrap();
    let content = folder.path().join("content");
    let store = Store::named("v3-zstd-int16");
    store.write(&content);
    for number in 0..20 {
        let other = content.join(format!("__MACOSX{number}"));
        fs::create_dir(&other).unwrap();
        fs::write(other.join("note.txt"), "no metadata").unwrap();
    }
    let file = folder.path().join("s.zarr.zip");
    fs::write(&file, zip_folder(&content, "", CompressionMethod::STORE)).unwrap();
    assert_eq!(fnv(&values(&file, 0, 2)), store.hash());
}

#[test]
fn commands_accept_zip_files() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let path = Store::named("ngff-0.5-zyx").write(folder);
    fs::rename(path, folder.join("in.zarr")).unwrap();
    let bytes = zip_folder(&folder.join("in.zarr"), "", CompressionMethod::STORE);
    for name in ["in.ozx", "other.zip"] {
        fs::write(folder.join(name), &bytes).unwrap();
    }
    works(folder, "mesh in.zarr a.ply --iso 20000");
    works(folder, "mesh in.ozx b.ply --iso 20000");
    works(folder, "mesh other.zip/s0 c.ply --iso 20000");
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    assert_eq!(read("a.ply"), read("b.ply"));
    // An array without a group does not state world coordinates.
    assert_eq!(read("c.ply").len(), read("a.ply").len());
    works(folder, "blur in.zarr a.zarr --sigma 1");
    works(folder, "blur in.ozx b.zarr --sigma 1");
    assert_eq!(files(&folder.join("a.zarr")), files(&folder.join("b.zarr")));
    for i in 0..3 {
        works(folder, &format!("mesh in.ozx part-{i} --iso 20000 --shard {i}/3 --resume"));
    }
    works(folder, "merge part-0 part-1 part-2 -o d.ply");
    assert_eq!(read("a.ply"), read("d.ply"));
    // A ZIP file whose only folder is the store.
    fs::write(
        folder.join("deep.zip"),
        zip_folder(&folder.join("in.zarr"), "in/", CompressionMethod::STORE),
    )
    .unwrap();
    works(folder, "mesh deep.zip/s0 e.ply --iso 20000");
    assert_eq!(read("c.ply"), read("e.ply"));
    // A file that is not a store is refused.
    fs::write(folder.join("text.ozx"), "no ZIP file").unwrap();
    fs::create_dir(folder.join("texts")).unwrap();
    fs::write(folder.join("texts/a.txt"), "a").unwrap();
    fs::write(
        folder.join("a.ozx"),
        zip_folder(&folder.join("texts"), "", CompressionMethod::STORE),
    )
    .unwrap();
    for (line, what) in [
        ("info text.ozx", "cannot read text.ozx as Zarr"),
        ("info a.ozx", "no Zarr metadata found"),
        ("info in.ozx/none", "no Zarr metadata found"),
    ] {
        let (code, stderr) = run(folder, line);
        assert!(code == 4 && stderr.contains(what) && stderr.lines().count() == 1, "{stderr}");
    }
    let (code, stderr) = run(folder, "blur in.zarr out.ozx --sigma 1");
    assert!(code == 2 && !folder.join("out.ozx").exists(), "{stderr}");
}

/// The checksum of the ZIP file detects a changed byte that no codec would notice.
#[test]
fn verifies_checksums_of_zip_files() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let meta = serde_json::json!({
        "zarr_format": 3, "node_type": "array", "shape": [4, 4, 4], "data_type": "uint8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 4, 4]}},
        "chunk_key_encoding": {"name": "default"}, "fill_value": 0, "codecs": [{"name": "bytes"}],
    });
    let samples: Vec<u8> = (100..164).collect();
    fs::create_dir_all(folder.join("in/c/0/0")).unwrap();
    fs::write(folder.join("in/zarr.json"), meta.to_string()).unwrap();
    fs::write(folder.join("in/c/0/0/0"), &samples).unwrap();
    let mut bytes = zip_folder(&folder.join("in"), "", CompressionMethod::STORE);
    fs::write(folder.join("in.ozx"), &bytes).unwrap();
    works(folder, "histogram in.ozx -o o.csv");
    let from = bytes.windows(64).position(|window| window == samples).unwrap();
    bytes[from + 9] = 0;
    fs::write(folder.join("broken.ozx"), bytes).unwrap();
    let (code, stderr) = run(folder, "histogram broken.ozx -o o.csv");
    assert!(code == 4 && stderr.contains("Invalid checksum"), "{stderr}");
}

#[test]
fn damaged_zip_files_are_read_or_rejected_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let path = Store::named("ngff-0.5-zyx").write(at);
    let good =
        [CompressionMethod::STORE, CompressionMethod::DEFLATE].map(|m| zip_folder(&path, "", m));
    let mut noise = Noise(4);
    let (mut read, mut rejected) = (0, 0);
    for round in 0..60 {
        let mut bytes = good[round % 2].clone();
        match round % 3 {
            // The central directory, at the end.
            0 => {
                let at = bytes.len() - 1 - noise.next() as usize % 1500;
                bytes[at] = noise.next() as u8;
            }
            _ => mutate(&mut noise, &mut bytes),
        }
        fs::write(at.join("in.ozx"), bytes).unwrap();
        let (code, stderr) = run(at, "histogram in.ozx --bins 4 -o o.csv --max-memory 64M");
        match code {
            0 => read += 1,
            code => {
                assert!(
                    [2, 4, 7].contains(&code) && stderr.lines().count() == 1,
                    "{code} {stderr}"
                );
                rejected += 1;
            }
        }
    }
    assert!(read > 0 && rejected > 0, "{read} read, {rejected} rejected");
}

#[cfg(not(feature = "http"))]
#[test]
fn urls_need_the_http_feature() {
    let folder = tempfile::tempdir().unwrap();
    for address in ["http://localhost/a.zarr", "s3://bucket/a.zarr"] {
        let (code, stderr) = run(folder.path(), &format!("info {address}"));
        assert!(code == 4 && stderr.contains("without the feature `http`"), "{stderr}");
    }
}
