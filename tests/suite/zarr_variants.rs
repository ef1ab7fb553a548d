//! Metadata of Zarr in all their variants: fill values, indices of shards, transformations, versions, plates.

use std::{fs, path::Path};

use gpuproc::{io::volume::VolumeFile, util::timings::Timings};
use serde_json::{Value, json};

use crate::{
    common::{info_json, run, works},
    inputs::{as_f64, describe, json_numbers},
};

/// Writes the metadata of an array of 2x2x2 samples without chunks.
fn write_array(folder: &Path, version: u8, dtype: &str, fill: &str) {
    drop(fs::remove_dir_all(folder));
    fs::create_dir_all(folder).unwrap();
    let (name, text) = match version {
        2 => (
            ".zarray",
            format!(
                r#"{{"zarr_format": 2, "shape": [2, 2, 2], "chunks": [2, 2, 2], "dtype": "{dtype}",
                   "compressor": null, "fill_value": {fill}, "order": "C", "filters": null}}"#
            ),
        ),
        _ => (
            "zarr.json",
            format!(
                r#"{{"zarr_format": 3, "node_type": "array", "shape": [2, 2, 2], "data_type": "{dtype}",
                   "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [2, 2, 2]}}}},
                   "chunk_key_encoding": {{"name": "default"}}, "fill_value": {fill},
                   "codecs": [{{"name": "bytes", "configuration": {{"endian": "little"}}}}]}}"#
            ),
        ),
    };
    fs::write(folder.join(name), text).unwrap();
}

fn values(file: &VolumeFile) -> Vec<f64> {
    as_f64(&file.read(1 << 20, &Timings::new(false)).unwrap().samples)
}

/// Fill values of every type, as numbers and as texts.
#[test]
fn missing_chunks_have_the_fill_value_of_every_type() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("a.zarr");
    let (nan, infinity) = (f64::NAN, f64::INFINITY);
    /// Fill values as written in metadata, and their numbers.
    type FillValues<'a> = &'a [(&'a str, f64)];
    let types: [(&str, &str, FillValues<'_>); 12] = [
        ("bool", "|b1", &[("true", 1.0), ("false", 0.0)]),
        ("uint8", "|u1", &[("255", 255.0), ("0", 0.0)]),
        ("int8", "|i1", &[("-128", -128.0), ("127", 127.0), ("-1", -1.0)]),
        ("uint16", "<u2", &[("65535", 65535.0)]),
        ("int16", ">i2", &[("-32768", -32768.0), ("-2", -2.0), ("300", 300.0)]),
        ("uint32", ">u4", &[("4294967295", 4_294_967_295.0)]),
        ("int32", "<i4", &[("-5", -5.0), ("-2147483648", -2_147_483_648.0), ("70000", 70000.0)]),
        ("uint64", "<u8", &[("9007199254740991", 9_007_199_254_740_991.0)]),
        ("int64", ">i8", &[("-9007199254740991", -9_007_199_254_740_991.0), ("-1", -1.0)]),
        ("float16", "<f2", &[("-1.5", -1.5), ("NaN", nan), (r#""-Infinity""#, -infinity)]),
        (
            "float32",
            ">f4",
            &[
                ("-0.25", -0.25),
                ("3", 3.0),
                ("NaN", nan),
                (r#""NaN""#, nan),
                ("Infinity", infinity),
                (r#""Infinity""#, infinity),
                ("-Infinity", -infinity),
            ],
        ),
        ("float64", "<f8", &[("1e300", 1e300), ("NaN", nan), (r#""-Infinity""#, -infinity)]),
    ];
    let check = |version: u8, dtype: &str, fill: &str, expected: f64| {
        write_array(&store, version, dtype, fill);
        let file = describe(&store).unwrap_or_else(|error| panic!("{fill}: {}", error.one_line()));
        let found = values(&file);
        let is_same = |value: &f64| {
            value.to_bits() == expected.to_bits() || value.is_nan() && expected.is_nan()
        };
        assert!(found.len() == 8 && found.iter().all(is_same), "{dtype} {fill}: {found:?}");
    };
    for (v3, v2, fills) in types {
        for &(fill, expected) in fills {
            check(2, v2, fill, expected);
            check(3, v3, fill, expected);
        }
        check(2, v2, "null", 0.0);
    }
    // Bits in hexadecimal.
    for (dtype, fill, expected) in [
        ("float32", "0xc0200000", -2.5),
        ("float32", "0x7fc00000", nan),
        ("float32", "0x7f800000", infinity),
        ("float64", "0xbff8000000000000", -1.5),
        ("float16", "0xc100", -2.5),
    ] {
        check(3, dtype, &format!("\"{fill}\""), expected);
    }
    for (dtype, fill) in [
        ("uint8", "-1"),
        ("uint8", "256"),
        ("int32", "2147483648"),
        ("int16", "0.5"),
        ("int32", "NaN"),
    ] {
        write_array(&store, 3, dtype, fill);
        let error = describe(&store).unwrap_err().one_line();
        assert!(error.contains("invalid fill value"), "{dtype} {fill}: {error}");
    }
    write_array(&store, 2, "<f4", "Nan");
    assert!(describe(&store).is_err());
}

/// Indices at both ends of a shard, in both byte orders, with and without a checksum; samples in both byte orders.
#[test]
fn indices_of_shards_are_read_in_both_byte_orders() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("a.zarr");
    for bits in 0..16 {
        let [is_at_end, is_big, has_sum, has_big_samples] =
            [0, 1, 2, 3].map(|bit| bits >> bit & 1 == 1);
        let endian = |is_big| if is_big { "big" } else { "little" };
        let bytes = |is_big| json!({"name": "bytes", "configuration": {"endian": endian(is_big)}});
        let sum = [json!({"name": "crc32c"})];
        let index_codecs = [&[bytes(is_big)][..], &sum[..usize::from(has_sum)]].concat();
        let array = json!({
            "zarr_format": 3, "node_type": "array", "shape": [2, 2, 3], "data_type": "int16", "fill_value": -7,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2, 3]}},
            "chunk_key_encoding": {"name": "default"},
            "codecs": [{"name": "sharding_indexed", "configuration": {
                "chunk_shape": [1, 1, 3], "codecs": [bytes(has_big_samples)], "index_codecs": index_codecs,
                "index_location": if is_at_end { "end" } else { "start" }}}],
        });
        fs::create_dir_all(store.join("c/0/0")).unwrap();
        fs::write(store.join("zarr.json"), array.to_string()).unwrap();
        // Of four chunks, the third is missing. They are in another order than in the index.
        let head = if is_at_end { 0 } else { 64 + 4 * u64::from(has_sum) };
        let places = [Some(2u64), Some(0), None, Some(1)];
        let mut index: Vec<u8> = Vec::new();
        let mut body = vec![0; 18];
        for (chunk, place) in places.iter().enumerate() {
            let entry = place.map_or([u64::MAX; 2], |place| [head + 6 * place, 6]);
            index.extend(
                entry.map(|n| if is_big { n.to_be_bytes() } else { n.to_le_bytes() }).concat(),
            );
            let Some(place) = place else { continue };
            for x in 0..3 {
                let value = (100 * chunk + x) as i16;
                let own = if has_big_samples { value.to_be_bytes() } else { value.to_le_bytes() };
                body[6 * *place as usize + 2 * x..][..2].copy_from_slice(&own);
            }
        }
        if has_sum {
            index.extend(crc32c::crc32c(&index).to_le_bytes());
        }
        let shard = if is_at_end { [body, index].concat() } else { [index, body].concat() };
        fs::write(store.join("c/0/0/0"), shard).unwrap();
        let found = values(&describe(&store).unwrap());
        let expected = [0, 1, 2, 100, 101, 102, -7, -7, -7, 300, 301, 302].map(f64::from);
        assert_eq!(found, expected, "{array}");
    }
}

/// Writes an image of one level in NGFF 0.5 with these transformations of the level and of the image.
fn write_image(store: &Path, version: &str, level: &Value, image: &Value) {
    write_array(&store.join("0"), 3, "uint8", "1");
    let axes =
        ["z", "y", "x"].map(|name| json!({"name": name, "type": "space", "unit": "micrometer"}));
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {"ome": {
        "version": version, "multiscales": [{"axes": axes, "coordinateTransformations": image,
            "datasets": [{"path": "0", "coordinateTransformations": level}]}]}}});
    fs::write(store.join("zarr.json"), group.to_string()).unwrap();
}

#[test]
fn transformations_place_the_samples() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("a.zarr");
    let scale = json!({"type": "scale", "scale": [4.0, 2.0, 0.5]});
    let translation = json!({"type": "translation", "translation": [30, 20, 10]});
    for (level, image, expected) in [
        (json!([translation]), json!(null), Some(([1.0; 3], [10.0, 20.0, 30.0]))),
        (json!([scale]), json!(null), Some(([0.5, 2.0, 4.0], [0.0; 3]))),
        (json!([scale, translation]), json!(null), Some(([0.5, 2.0, 4.0], [10.0, 20.0, 30.0]))),
        (json!([scale]), json!([translation]), Some(([0.5, 2.0, 4.0], [10.0, 20.0, 30.0]))),
        (json!([translation]), json!([scale]), Some(([0.5, 2.0, 4.0], [5.0, 40.0, 120.0]))),
        (json!([{"type": "identity"}]), json!([translation]), Some(([1.0; 3], [10.0, 20.0, 30.0]))),
        (json!([]), json!(null), None),
    ] {
        for version in ["0.4", "0.5", "0.5-dev1", "0.5.1"] {
            write_image(&store, version, &level, &image);
            let file = describe(&store).unwrap();
            let placement = file.placement.as_ref();
            let found = placement.map(|placement| (placement.spacing(), placement.first));
            assert_eq!(found, expected, "{level} {image}");
            assert_eq!(placement.and_then(|own| own.unit.as_deref()), expected.map(|_| "um"));
        }
    }
    for version in ["0.6", "0.6.dev1", "1.0", "latest"] {
        write_image(&store, version, &json!([scale]), &json!(null));
        let (code, stderr) = run(folder.path(), "blur a.zarr b.nrrd");
        assert!(
            code == 4 && stderr.contains(&format!("version {version} of OME-NGFF")),
            "{stderr}"
        );
    }
}

/// The first sample of a coarser level is the mean of the samples that it covers.
#[test]
fn coarser_levels_are_shifted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // z is coarser than 1.5 times x and y at first.
    let header = "NRRD0004\ntype: uchar\ndimension: 3\nspace dimension: 3\nsizes: 16 8 8\nencoding: raw\nspace directions: (0.5,0,0) (0,0.5,0) (0,0,1.5)\nspace origin: (10,20,30)\n\n";
    let samples: Vec<u8> = (0..1024u32).map(|i| ((i * i) >> 5) as u8).collect();
    fs::write(folder.join("a.nrrd"), [header.as_bytes(), &samples].concat()).unwrap();
    let factors = [[1, 1, 1], [2, 2, 1], [4, 4, 2]];
    for version in [2, 3] {
        works(folder, &format!("blur a.nrrd a.zarr --sigma 0 --levels 3 --zarr-version {version}"));
        let name = if version == 2 { ".zattrs" } else { "zarr.json" };
        let text = fs::read_to_string(folder.join("a.zarr").join(name)).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        let ngff = if version == 2 { &value } else { &value["attributes"]["ome"] };
        for (level, factors) in factors.iter().enumerate() {
            let steps = &ngff["multiscales"][0]["datasets"][level]["coordinateTransformations"];
            let factor = |axis: usize| factors[2 - axis] as f64;
            let own = [1.5, 0.5, 0.5];
            let scale = [0, 1, 2].map(|axis| own[axis] * factor(axis));
            let first = [0, 1, 2]
                .map(|axis| [30.0, 20.0, 10.0][axis] + own[axis] * (factor(axis) - 1.0) / 2.0);
            assert_eq!(json_numbers(&steps[0]["scale"]), scale, "level {level}");
            assert_eq!(json_numbers(&steps[1]["translation"]), first, "level {level}");
            let info = info_json(folder, &format!("a.zarr --level {level}"));
            let mut first = first;
            first.reverse();
            assert_eq!(json_numbers(&info[0]["first"]), first, "{info:?}");
        }
    }
}

/// A plate and a well say what can be read.
#[test]
fn plates_name_their_wells() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let put = |name: &str, ome: Value| {
        let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {"ome": ome}});
        fs::create_dir_all(folder.join(name)).unwrap();
        fs::write(folder.join(name).join("zarr.json"), group.to_string()).unwrap();
    };
    let wells = |count: usize| -> Vec<Value> {
        (1..=count).map(|i| json!({"path": format!("A/{i}"), "rowIndex": 0})).collect()
    };
    put(
        "p.zarr/A/1",
        json!({"version": "0.5", "well": {"images": [{"path": "0"}, {"path": "1"}]}}),
    );
    for (count, list) in [(2, "A/1, A/2"), (96, "A/8 ... (96 in all)")] {
        put("p.zarr", json!({"version": "0.5", "plate": {"wells": wells(count)}}));
        for command in ["info p.zarr", "blur p.zarr o.nrrd"] {
            let (code, stderr) = run(folder, command);
            assert_eq!(code, 4, "{stderr}");
            assert!(stderr.contains("plate of wells") && stderr.contains(list), "{stderr}");
            assert!(stderr.contains("A/1/0"), "{stderr}");
        }
    }
    let (code, stderr) = run(folder, "info p.zarr/A/1");
    assert!(code == 4 && stderr.contains("select one of its images: 0, 1"), "{stderr}");
    write_image(&folder.join("p.zarr/A/1/0"), "0.5", &json!([]), &json!(null));
    works(folder, "blur p.zarr/A/1/0 o.nrrd --sigma 0");
}
