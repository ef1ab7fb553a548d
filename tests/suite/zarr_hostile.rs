//! Zarr stores that declare more data than they contain: memory stays within `--max-memory`, and the stores are
//! rejected in one line.
#![cfg(target_os = "linux")]

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
};

use serde_json::{Value, json};

use crate::{hostile::deflated, memory_inputs::run_within_memory};

/// Size of a decompressed bomb in bytes.
const BOMB: usize = 128 << 20;

/// Metadata of a Zarr 3 array of u8 with a bytes-to-bytes codec.
fn array(shape: &Value, chunk: &Value, codec: &Value) -> Value {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 3, "codecs": [{"name": "bytes"}, codec],
    })
}

/// Metadata of a sharded array with chunks of 4 x 4 x 4, with or without a checksum of the index.
fn sharded(shape: &Value, shard: &Value, has_checksum: bool) -> Value {
    let mut value = array(shape, shard, &json!("crc32c"));
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let index = if has_checksum { json!([bytes, "crc32c"]) } else { json!([bytes]) };
    value["codecs"] = json!([{"name": "sharding_indexed", "configuration": {
        "chunk_shape": [4, 4, 4], "codecs": [bytes], "index_codecs": index}}]);
    value
}

struct Folder<'a>(&'a Path);

impl Folder<'_> {
    /// Writes a store with one chunk.
    fn put(&self, name: &str, metadata: &Value, chunk: &[u8]) {
        let root = self.0.join(name);
        fs::create_dir_all(root.join("c/0/0")).unwrap();
        fs::write(root.join("zarr.json"), metadata.to_string()).unwrap();
        fs::write(root.join("c/0/0/0"), chunk).unwrap();
    }

    /// Writes a store of 64 x 128 x 128 samples in one chunk.
    fn packed(&self, codec: &str, chunk: &[u8]) {
        let cube = json!([64, 128, 128]);
        let metadata = array(&cube, &cube, &json!(codec));
        self.put(codec, &metadata, chunk);
    }
}

fn gzip(bytes: usize) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..bytes >> 20 {
        encoder.write_all(&vec![0; 1 << 20]).unwrap();
    }
    encoder.finish().unwrap()
}

/// A zstd frame with the window size 2^(10 + `window`), in blocks that repeat one byte to 128 KiB.
fn zstd(window: u8, bytes: usize) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, window << 3];
    let blocks = bytes >> 17;
    for block in 0..blocks {
        let header = u32::from(block + 1 == blocks) | 1 << 1 | 1 << (17 + 3);
        frame.extend(&header.to_le_bytes()[..3]);
        frame.push(7);
    }
    frame
}

/// A Blosc chunk with one block, which is a single stream of `codec`.
fn blosc(codec: u8, [len, block]: [u32; 2], stream: &[u8]) -> Vec<u8> {
    let mut chunk = vec![2, 1, codec << 5 | 0x10, 1];
    for number in [len, block, 24 + stream.len() as u32, 20, stream.len() as u32] {
        chunk.extend(number.to_le_bytes());
    }
    chunk.extend(stream);
    chunk
}

#[test]
fn stores_with_false_sizes_stay_within_the_memory_limit() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let stores = Folder(folder);
    let cube = json!([64, 128, 128]);
    let len = 1 << 20;
    stores.packed("gzip", &gzip(BOMB));
    stores.packed("zlib", &deflated(0, BOMB));
    stores.packed("zstd", &zstd(10, BOMB));
    stores.packed("lz4", &[&u32::MAX.to_le_bytes()[..], &[0xff; 1 << 10]].concat());
    // Half a megabyte that decompresses to 128 MB.
    let long = [&[0x1f, 0, 1, 0][..], &[0xff; BOMB / 255], &[0, 0x50, 1, 2, 3, 4, 5]].concat();
    stores.packed("blosc", &blosc(1, [len, len], &long));
    let metadata = array(&cube, &cube, &json!("blosc"));
    stores.put("blosc-zlib", &metadata, &blosc(3, [len, len], &deflated(0, BOMB)));
    stores.put("blosc-zstd", &metadata, &blosc(4, [len, len], &zstd(10, BOMB)));
    stores.put("blosc-block", &metadata, &blosc(1, [len, u32::MAX], &[0; 9]));
    stores.put("blosc-long", &metadata, &blosc(1, [u32::MAX - 9, len], &[0; 9]));
    // Windows of zstd: 2 GiB, and 64 MiB.
    let metadata = array(&cube, &cube, &json!("zstd"));
    stores.put("window", &metadata, &zstd(21, len as usize));
    stores.put("half-window", &metadata, &zstd(16, len as usize));
    // Several codecs: the result of each step may be at most a quarter longer than the chunk.
    let mut metadata = array(&cube, &cube, &json!("gzip"));
    metadata["codecs"] = json!(["bytes", "gzip", "gzip", "gzip"]);
    stores.put("again", &metadata, &gzip(BOMB));
    metadata["codecs"] = [vec![json!("bytes")], vec![json!("gzip"); 100_000]].concat().into();
    stores.put("chain", &metadata, &gzip(1 << 20));
    // An empty chunk, and metadata that is deeply nested, has many lists, or consists of 90 MiB of blanks.
    stores.put("empty", &array(&cube, &cube, &json!("gzip")), &[]);
    let metadata = array(&cube, &cube, &json!("gzip")).to_string();
    let deep = metadata.replacen('{', &format!("{{\"a\":{}", "[".repeat(1 << 20)), 1);
    let lists = format!("{{\"a\":[{}0],", "[],".repeat(1_200_000));
    let attributes = metadata.replacen('{', &lists, 1);
    for (name, text) in [("deep", &deep), ("lists", &attributes), ("text", &" ".repeat(90 << 20))] {
        stores.put(name, &json!(0), &[]);
        fs::write(folder.join(name).join("zarr.json"), text).unwrap();
    }
    // Shapes.
    for (name, shape, chunk) in [
        ("huge", json!([1u64 << 40, 1u64 << 40, 1u64 << 40]), json!([1, 1, 1])),
        ("edge", json!([u64::MAX, u64::MAX, 1]), json!([1, 1, 1])),
        ("axes", vec![json!(1); 100_000].into(), vec![json!(1); 100_000].into()),
        ("chunk", json!([4, 40_000, 40_000]), json!([4, 20_000, 20_000])),
        ("wide", json!([4, 40_000, 40_000]), json!([4, 40, 40])),
        ("points", json!([4, 1500, 1500]), json!([1, 1, 1])),
    ] {
        stores.put(name, &array(&shape, &chunk, &json!("gzip")), &gzip(1 << 20));
    }
    let times = array(&json!([1u64 << 50, 1, 1, 1]), &json!([1, 1, 1, 1]), &json!("gzip"));
    stores.put("times", &times, &[]);
    // Shards: a file whose index takes 67 MB, and files whose chunks lie outside the file.
    let many = json!([256, 1024, 1024]);
    stores.put("index", &sharded(&many, &many, false), &[]);
    let file = File::options().write(true).open(folder.join("index/c/0/0/0")).unwrap();
    file.set_len(300 << 20).unwrap();
    let small = json!([8, 8, 8]);
    for (name, entry) in [
        ("beyond", [1u64 << 40, 64]),
        ("around", [u64::MAX - 9, 64]),
        ("long", [0, 1 << 40]),
        ("whole", [0, 192]),
    ] {
        let index = entry.map(u64::to_le_bytes).concat().repeat(8);
        stores.put(name, &sharded(&small, &small, false), &[vec![0; 64], index].concat());
    }
    stores.put("sum", &sharded(&small, &small, true), &[0; 300]);
    stores.put("short", &sharded(&small, &small, true), &[0; 30]);

    let rejects = |command: &str, message: &str| {
        let run = run_within_memory(folder, 64, command);
        assert!(run.code != Some(0) && run.stderr.contains(message), "{command}: {run:?}");
    };
    for (name, message) in [
        ("gzip", "longer than the chunk"),
        ("zlib", "longer than the chunk"),
        ("zstd", "longer than the chunk"),
        ("lz4", "longer than the chunk"),
        ("blosc", "c/0/0/0"),
        ("blosc-zlib", "longer than the chunk"),
        ("blosc-zstd", "longer than the chunk"),
        ("blosc-block", "invalid block size"),
        ("blosc-long", "longer than the chunk"),
        ("window", "c/0/0/0 is damaged"),
        ("half-window", "c/0/0/0 is damaged"),
        ("again", "c/0/0/0 is damaged"),
        ("chain", "100000 codecs"),
        ("empty", "unexpected end of file"),
        ("deep", "recursion limit"),
        ("text", "too long"),
        ("huge", "too large"),
        ("axes", "100000 dimensions"),
        ("index", "the index of a shard needs at least 1.2 GiB"),
        ("beyond", "invalid offset or length"),
        ("around", "invalid offset or length"),
        ("long", "invalid offset or length"),
        ("whole", "chunk has 192 bytes; expected 64"),
        ("sum", "checksum"),
        ("short", "shorter than its index"),
        ("chunk", "a chunk needs at least"),
    ] {
        rejects(&format!("histogram {name}"), message);
    }
    for command in [
        "info edge --range",
        "info lists --range",
        "info index",
        "histogram times --time 1",
        "blur huge o.zarr",
        "blur wide o.zarr --sigma 1",
        "mesh wide o.ply --iso 1",
        "histogram points",
        "mesh gzip o.ply --iso 1",
        "blur zstd o.zarr --sigma 0",
        "blur index o.raw --sigma 1",
        "mesh times o.ply --iso 1",
    ] {
        run_within_memory(folder, 64, command);
    }
    // The limit also holds with more memory.
    for name in ["gzip", "zstd", "blosc", "index", "chunk", "half-window"] {
        run_within_memory(folder, 256, &format!("histogram {name}"));
    }
    let left: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.iter().all(|path| path.extension().is_none()), "{left:?}");
}
