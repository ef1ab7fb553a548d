//! Limits of formats and flags: the largest value is accepted, and the next one is refused with a reason.

use std::{fs, path::Path};

use serde_json::json;

use crate::{
    common::{run, works},
    inputs::{describe, load_image},
    tiff_files::{TiffPage, tiff},
};

fn write_pgm(folder: &Path, [width, height]: [usize; 2]) {
    let samples = (0..width * height).map(|i| (i % 251) as u8).collect::<Vec<u8>>();
    let header = format!("P5 {width} {height} 255\n");
    fs::write(folder.join("in.pgm"), [header.as_bytes(), &samples].concat()).unwrap();
}

/// JPEG and GIF have sides of 16 bits, WebP of 14 bits. An animation has those of its frames. Others hold more.
#[test]
fn images_have_the_largest_sides_of_their_format() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (output, flags, max) in [
        ("o.jpg", "", 65_535),
        ("o.gif", "", 65_535),
        ("o.webp", "", 16_383),
        ("o.webp", "--quality 50", 16_383),
    ] {
        for (side, is_wide) in [(max, true), (max, false), (max + 1, true), (max + 1, false)] {
            if flags.is_empty() || cfg!(feature = "webp-lossy") {
                let size = if is_wide { [side, 1] } else { [1, side] };
                write_pgm(folder, size);
                let (code, stderr) =
                    run(folder, &format!("blur in.pgm {output} --sigma 0 {flags}"));
                let case = format!("{output} {flags} {size:?}: {stderr}");
                if side > max {
                    assert!(code != 0 && stderr.contains(output), "{case}");
                    assert!(stderr.contains("write .png or .tif"), "{case}");
                    continue;
                }
                assert_eq!(code, 0, "{case}");
                let image = load_image(folder.join(output));
                assert_eq!([image.width, image.height], size, "{case}");
                fs::remove_file(folder.join(output)).unwrap();
            }
        }
    }
    let wide = |width: usize| TiffPage::flat([width, 1], 7);
    for (side, code) in [(16_383, 0), (16_384, 4)] {
        fs::write(folder.join("two.tif"), tiff(&[wide(side), wide(side)])).unwrap();
        assert_eq!(run(folder, "blur two.tif o.webp --sigma 0").0, code, "{side}");
    }
    write_pgm(folder, [70_000, 1]);
    for output in ["o.png", "o.tif", "o.pgm", "o.pfm", "o.exr"] {
        works(folder, &format!("blur in.pgm {output} --sigma 0"));
        assert_eq!(load_image(folder.join(output)).width, 70_000, "{output}");
    }
}

#[test]
fn flags_are_accepted_up_to_their_largest_value() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_pgm(folder, [4, 3]);
    for (line, most, next) in [
        ("blur in.pgm o.pgm --sigma", "500", "500.5"),
        ("blur in.pgm o.pgm --method box --radius", "10000", "10001"),
        ("median in.pgm o.pgm --radius", "50", "51"),
        ("morph in.pgm o.pgm --op dilate --radius", "10000", "10001"),
        ("gradient in.pgm o.tif --sigma", "500", "501"),
        ("histogram in.pgm -o h.csv --bins", "65536", "65537"),
        ("threshold in.pgm o.pgm --local mean --window", "20001", "20003"),
        ("blur in.pgm o.pgm --sigma 0 --max-pixels", "12", "11"),
        ("blur in.pgm o.jpg --sigma 0 --quality", "100", "101"),
        ("blur in.pgm o.jpg --sigma 0 --quality", "1", "0"),
        ("blur in.pgm o.pgm --sigma 0 --threads", "1024", "-1"),
        ("resize in.pgm o.pgm --size", "1x1", "0x1"),
        ("resize in.pgm o.pgm --max", "1", "0"),
        ("label in.pgm o.png --min-size", "4294967295", "-1"),
    ] {
        works(folder, &format!("{line}={most}"));
        let (code, stderr) = run(folder, &format!("{line}={next}"));
        assert!([2, 4].contains(&code), "{line} {next}: {code} {stderr}");
    }
}

/// Numbers of axes and of codecs in headers.
#[test]
fn headers_have_at_most_so_many_axes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let nrrd = |axes: usize| {
        let sizes = vec!["1"; axes].join(" ");
        let text =
            format!("NRRD0004\ntype: uchar\ndimension: {axes}\nsizes: {sizes}\nencoding: raw\n\nA");
        fs::write(folder.join("a.nrrd"), text).unwrap();
        describe(folder.join("a.nrrd")).is_ok()
    };
    assert_eq!([0, 1, 16, 17].map(nrrd), [false, true, true, false]);
    let meta = |axes: usize| {
        let sizes = vec!["1"; axes].join(" ");
        let text = format!(
            "NDims = {axes}\nDimSize = {sizes}\nElementType = MET_UCHAR\nElementDataFile = LOCAL\nA"
        );
        fs::write(folder.join("a.mha"), text).unwrap();
        describe(folder.join("a.mha")).is_ok()
    };
    assert_eq!([0, 1, 10, 11].map(meta), [false, true, true, false]);
    let nifti = |axes: i16| {
        let mut bytes = vec![0u8; 352];
        bytes[..4].copy_from_slice(&348i32.to_le_bytes());
        bytes[344..348].copy_from_slice(b"n+1\0");
        bytes[40..56].copy_from_slice(&[axes, 1, 1, 1, 1, 1, 1, 1].map(i16::to_le_bytes).concat());
        bytes[70..74].copy_from_slice(&[2i16, 8].map(i16::to_le_bytes).concat());
        bytes[108..112].copy_from_slice(&352f32.to_le_bytes());
        bytes.push(7);
        fs::write(folder.join("a.nii"), bytes).unwrap();
        describe(folder.join("a.nii")).is_ok()
    };
    assert_eq!([0, 1, 7, 8].map(nifti), [false, true, true, false]);
    let codecs = |count: usize| {
        let store = folder.join("a.zarr");
        fs::create_dir_all(&store).unwrap();
        let mut codecs = vec![json!({"name": "bytes"})];
        codecs.extend(vec![json!({"name": "crc32c"}); count]);
        let array = json!({
            "zarr_format": 3, "node_type": "array", "shape": [1, 1, 1], "data_type": "uint8", "fill_value": 0,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 1, 1]}},
            "chunk_key_encoding": {"name": "default"}, "codecs": codecs,
        });
        fs::write(store.join("zarr.json"), array.to_string()).unwrap();
        describe(&store).is_ok()
    };
    assert_eq!([0, 16, 17].map(codecs), [true, true, false]);
}
