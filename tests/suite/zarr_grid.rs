//! Arrays of Zarr 2 and 3 in every order, byte order, naming of chunks and chain of codecs, written chunk by chunk.

use std::{fs, io::Write, path::Path};

use flate2::{Compression, write::GzEncoder};
use gpuproc::util::timings::Timings;
use serde_json::{Value, json};

use crate::inputs::{as_f64, describe, zlib};

/// Samples along z, y and x of the array and of a chunk. Chunks at the ends are filled up.
const SHAPE: [usize; 3] = [3, 4, 5];
const CHUNK: [usize; 3] = [2, 3, 2];
/// The chunk that is missing, and the value of its samples.
const MISSING: [usize; 3] = [1, 0, 2];
const FILL: i64 = -7;

fn value([z, y, x]: [usize; 3]) -> i64 {
    (z * 20 + y * 5 + x) as i64 * 3 - 60
}

/// The value at a position of the array; that of missing and of additional samples.
fn stored([z, y, x]: [usize; 3]) -> i64 {
    let is_inside = z < SHAPE[0] && y < SHAPE[1] && x < SHAPE[2];
    if is_inside { value([z, y, x]) } else { 99 }
}

/// The type with this name in NumPy, without its byte order.
fn number(value: i64, code: &str, is_big: bool) -> Vec<u8> {
    let mut bytes = match code {
        "f2" => half::f16::from_f64(value as f64).to_le_bytes().to_vec(),
        "f4" => (value as f32).to_le_bytes().to_vec(),
        "f8" => (value as f64).to_le_bytes().to_vec(),
        code => value.to_le_bytes()[..code[1..].parse().unwrap()].to_vec(),
    };
    if is_big {
        bytes.reverse();
    }
    bytes
}

/// The bytes of the chunk at `at` in the grid of chunks, the axis `order[0]` of which is the slowest.
fn chunk(at: [usize; 3], order: [usize; 3], code: &str, is_big: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    for i in 0..CHUNK[order[0]] {
        for j in 0..CHUNK[order[1]] {
            for k in 0..CHUNK[order[2]] {
                let mut inside = [0; 3];
                (inside[order[0]], inside[order[1]], inside[order[2]]) = (i, j, k);
                let place = [0, 1, 2].map(|axis| at[axis] * CHUNK[axis] + inside[axis]);
                bytes.extend(number(stored(place), code, is_big));
            }
        }
    }
    bytes
}

/// Encodes by a codec in the simplest way that its format allows.
fn encode(codec: &str, bytes: &[u8], size: usize) -> Vec<u8> {
    let len = bytes.len() as u32;
    match codec {
        "gzip" => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        "zlib" => zlib(bytes),
        "bz2" => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        // A frame of one segment of known size, and one raw block, the last.
        "zstd" => {
            let head = [&[0x28, 0xb5, 0x2f, 0xfd, 0xa0][..], &len.to_le_bytes()].concat();
            [&head[..], &(len << 3 | 1).to_le_bytes()[..3], bytes].concat()
        }
        // A block of literals.
        "lz4" => {
            let mut block = len.to_le_bytes().to_vec();
            let mut rest = bytes.len();
            block.push((rest.min(15) << 4) as u8);
            if rest >= 15 {
                rest -= 15;
                while rest >= 255 {
                    block.push(255);
                    rest -= 255;
                }
                block.push(rest as u8);
            }
            [block, bytes.to_vec()].concat()
        }
        // Bytes that are not compressed (flag 2).
        "blosc" => {
            let head = [2, 1, 2, size as u8];
            let sizes = [len, len, len + 16].map(u32::to_le_bytes).concat();
            [&head[..], &sizes, bytes].concat()
        }
        "crc32c" => [bytes, &crc32c::crc32c(bytes).to_le_bytes()].concat(),
        // All first bytes of the numbers, then all second ones.
        _ => (0..size).flat_map(|byte| bytes.iter().skip(byte).step_by(size).copied()).collect(),
    }
}

fn write(
    store: &Path,
    metadata: (&str, &Value),
    key: impl Fn([usize; 3]) -> String,
    bytes: impl Fn([usize; 3]) -> Vec<u8>,
) {
    drop(fs::remove_dir_all(store));
    fs::create_dir_all(store).unwrap();
    fs::write(store.join(metadata.0), metadata.1.to_string()).unwrap();
    for i in 0..2 * 2 * 3 {
        let at = [i / 6, i / 3 % 2, i % 3];
        if at != MISSING {
            let path = store.join(key(at));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes(at)).unwrap();
        }
    }
}

fn check(store: &Path, case: &str) {
    let file = describe(store).unwrap_or_else(|error| panic!("{case}: {}", error.one_line()));
    let [depth, height, width] = SHAPE;
    assert_eq!(file.dims, [width, height, depth], "{case}");
    let mut expected = Vec::new();
    for (z, y, x) in
        (0..depth).flat_map(|z| (0..height).flat_map(move |y| (0..width).map(move |x| (z, y, x))))
    {
        let at = [z / CHUNK[0], y / CHUNK[1], x / CHUNK[2]];
        expected.push(if at == MISSING { FILL } else { value([z, y, x]) } as f64);
    }
    let whole = file.read(1 << 20, &Timings::new(false));
    let whole = whole.unwrap_or_else(|error| panic!("{case}: {}", error.one_line()));
    assert_eq!(as_f64(&whole.samples), expected, "{case}");
    // Slices from the middle of a chunk on.
    let rest = as_f64(&file.reader_at(1).unwrap().read(2).unwrap());
    assert_eq!(rest, expected[width * height..], "{case}");
}

fn parts(at: [usize; 3], separator: &str) -> String {
    at.map(|number| number.to_string()).join(separator)
}

const TYPES: [(&str, &str); 7] = [
    ("i1", "int8"),
    ("i2", "int16"),
    ("i4", "int32"),
    ("i8", "int64"),
    ("f2", "float16"),
    ("f4", "float32"),
    ("f8", "float64"),
];

#[test]
fn version_2_has_every_order_type_and_compressor() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("a.zarr");
    let compressors = ["", "gzip", "zlib", "bz2", "zstd", "lz4", "blosc"];
    // Separators with and without a field that states them.
    let separators = [(".", None), (".", Some(".")), ("/", Some("/"))];
    for number in 0..7 * 8 {
        let (code, _) = TYPES[number % 7];
        let size: usize = code[1..].parse().unwrap();
        let [is_big, is_fortran, is_shuffled] = [0, 1, 2].map(|bit| ((number / 7) >> bit) & 1 == 1);
        let compressor = compressors[(number / 7 + 3 * number) % 7];
        let (separator, stated) = separators[number % 3];
        let (order, axes) = if is_fortran { ("F", [2, 1, 0]) } else { ("C", [0, 1, 2]) };
        let mut array = json!({
            "zarr_format": 2, "shape": SHAPE, "chunks": CHUNK, "order": order, "fill_value": FILL,
            "dtype": format!("{}{code}", if is_big { ">" } else { "<" }), "filters": null, "compressor": null
        });
        if !compressor.is_empty() {
            array["compressor"] = json!({"id": compressor});
        }
        if let Some(stated) = stated {
            array["dimension_separator"] = stated.into();
        }
        if is_shuffled {
            array["filters"] = json!([{"id": "shuffle", "elementsize": size}]);
        }
        let bytes = |at| {
            let mut bytes = chunk(at, axes, code, is_big);
            if is_shuffled {
                bytes = encode("shuffle", &bytes, size);
            }
            if compressor.is_empty() { bytes } else { encode(compressor, &bytes, size) }
        };
        write(&store, (".zarray", &array), |at| parts(at, separator), bytes);
        check(&store, &array.to_string());
    }
}

#[test]
fn version_3_has_every_transposition_key_and_chain() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("a.zarr");
    let all = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let orders = all.map(|order| (json!(order), order));
    let named = [(Value::Null, [0, 1, 2]), (json!("C"), [0, 1, 2]), (json!("F"), [2, 1, 0])];
    let chains: [&[&str]; 8] = [
        &[],
        &["gzip"],
        &["zstd"],
        &["blosc"],
        &["crc32c"],
        &["gzip", "crc32c"],
        &["shuffle", "zstd"],
        &["lz4"],
    ];
    let keys =
        [("default", "/", false), ("default", ".", true), ("v2", ".", false), ("v2", "/", true)];
    for (number, (order, axes)) in named.into_iter().chain(orders).enumerate() {
        for (i, (code, name)) in TYPES.into_iter().enumerate() {
            let size: usize = code[1..].parse().unwrap();
            let is_big = (number + i) % 2 == 0;
            let chain = chains[(7 * number + i) % 8];
            let (encoding, separator, has_separator) = keys[(number / 2 + i) % 4];
            let mut codecs = Vec::new();
            if !order.is_null() {
                codecs.push(json!({"name": "transpose", "configuration": {"order": order}}));
            }
            let endian = if is_big { "big" } else { "little" };
            codecs.push(json!({"name": "bytes", "configuration": {"endian": endian}}));
            for codec in chain {
                let is_own = ["gzip", "zstd", "blosc", "crc32c"].contains(codec);
                let name = if is_own { (*codec).to_owned() } else { format!("numcodecs.{codec}") };
                codecs.push(json!({"name": name, "configuration": {"elementsize": size}}));
            }
            let mut keys = json!({"name": encoding});
            if has_separator {
                keys["configuration"] = json!({"separator": separator});
            }
            let array = json!({
                "zarr_format": 3, "node_type": "array", "shape": SHAPE, "data_type": name, "fill_value": FILL,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": CHUNK}},
                "chunk_key_encoding": keys, "codecs": codecs,
            });
            let start = if encoding == "default" { format!("c{separator}") } else { String::new() };
            let key = |at| start.clone() + &parts(at, separator);
            let bytes = |at| {
                let whole = chunk(at, axes, code, is_big);
                chain.iter().fold(whole, |bytes, codec| encode(codec, &bytes, size))
            };
            write(&store, ("zarr.json", &array), key, bytes);
            check(&store, &array.to_string());
        }
    }
}

/// Damage is found where a codec has a checksum, and where a chunk has another size.
#[test]
fn damaged_chunks_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("a.zarr");
    for codec in ["gzip", "crc32c", "bz2", "zlib"] {
        for change in ["shorter", "longer", "bit"] {
            let name = if ["bz2", "zlib"].contains(&codec) {
                format!("numcodecs.{codec}")
            } else {
                codec.into()
            };
            let array = json!({
                "zarr_format": 3, "node_type": "array", "shape": SHAPE, "data_type": "int16", "fill_value": FILL,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": CHUNK}},
                "chunk_key_encoding": {"name": "default"},
                "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": name}],
            });
            let bytes = |at| {
                let mut bytes = chunk(at, [0, 1, 2], "i2", false);
                if at != [1, 1, 1] {
                    return encode(codec, &bytes, 2);
                }
                match change {
                    "shorter" => bytes.truncate(bytes.len() - 2),
                    "longer" => bytes.extend([0, 0]),
                    _ => {}
                }
                let mut packed = encode(codec, &bytes, 2);
                if change == "bit" {
                    // Within the checksum at the end.
                    let at = packed.len() - if codec == "gzip" { 6 } else { 2 };
                    packed[at] ^= 4;
                }
                packed
            };
            write(&store, ("zarr.json", &array), |at| format!("c/{}", parts(at, "/")), bytes);
            let file = describe(&store).unwrap();
            let error = file.read(1 << 20, &Timings::new(false)).expect_err(change).one_line();
            assert!(error.contains("a.zarr"), "{codec} {change}: {error}");
        }
    }
}
