//! DICOM: values, slice order and positions are those that other programs read. Slices that are missing, duplicated or
//! of another series are reported.

use std::{fs, io::Write, path::Path};

use gpuproc::{
    data::placement::Space,
    io::volume::{Layout, SeriesId, VolumeFile},
    util::{error::Kind, timings::Timings},
};
use serde_json::Value;

use crate::{
    common::{run, works},
    inputs::{as_f64, describe, describe_as, fixture, json_numbers},
    mesh_readers::read_ply,
};

fn open(path: &Path) -> VolumeFile {
    let file = describe(path);
    file.unwrap_or_else(|error| panic!("{}: {}", path.display(), error.one_line()))
}

fn values(file: &VolumeFile) -> Vec<f64> {
    let volume = file.read(1 << 20, &Timings::new(false));
    as_f64(&volume.unwrap_or_else(|error| panic!("{}", error.one_line())).samples)
}

/// Copies the files of a fixture into a folder, except those in `except`.
fn copy_fixture(name: &str, to: &Path, except: &[&str]) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(fixture("dicom").join(name)).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap();
        if !except.iter().any(|name| file == *name) {
            fs::copy(&path, to.join(format!("{name}-{}", file.to_str().unwrap()))).unwrap();
        }
    }
}

const TEST_POINTS: [[f64; 3]; 5] =
    [[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [4.0, 3.0, 2.0]];

#[test]
fn series_match_reference_values_and_positions() {
    let text = fs::read_to_string(fixture("dicom/series.json")).unwrap();
    let Value::Array(all) = serde_json::from_str(&text).unwrap() else { panic!("a list") };
    assert!(all.len() > 17, "{}", all.len());
    for entry in all {
        let name = entry["path"].as_str().unwrap();
        if name == "jpeg2000" && !cfg!(feature = "jpeg2000") {
            continue;
        }
        let file = open(&fixture("dicom").join(name));
        let dims: Vec<f64> = file.dims.iter().map(|&n| n as f64).collect();
        assert_eq!((dims, file.format()), (json_numbers(&entry["dims"]), "DICOM"), "{name}");
        let (found, expected) = (values(&file), json_numbers(&entry["values"]));
        assert_eq!(found.len(), expected.len(), "{name}");
        for (i, (a, b)) in found.iter().zip(&expected).enumerate() {
            // Fractions are f32 in gpuproc and f64 in the reference.
            let off = 1e-6 * b.abs();
            assert!((a - b).abs() <= off, "{name}: {a} at {i}, expected {b}");
        }
        let is_fraction = expected.iter().any(|value| value.fract() != 0.0);
        assert_eq!(file.dtype.is_float(), is_fraction, "{name}: {}", file.dtype);
        let Some(placement) = file.placement.as_ref() else {
            assert!(["colour.dcm", "plain.dcm"].contains(&name), "{name} has no placement");
            continue;
        };
        // Frames with a slice spacing, but without positions.
        if entry["lps"].is_null() {
            assert_eq!((placement.space, placement.spacing()), (None, [0.8, 1.25, 2.0]), "{name}");
            assert!(
                file.warnings().any(|warning| warning.contains("positions are missing")),
                "{name}"
            );
            continue;
        }
        assert_eq!((placement.space, placement.unit.as_deref()), (Some(Space::Lps), Some("mm")));
        for (at, point) in TEST_POINTS.into_iter().zip(entry["lps"].as_array().unwrap()) {
            for (found, expected) in placement.at(at).into_iter().zip(json_numbers(point)) {
                assert!(
                    (found - expected).abs() < 1e-6,
                    "{name} at {at:?}: {found}, expected {expected}"
                );
            }
        }
    }
}

#[test]
fn sample_type_is_no_wider_than_needed() {
    for (name, dtype, stored) in [
        ("ct", "i16", "u16"),
        ("signed", "i16", "i16"),
        ("big", "u16", "u16"),
        ("bytes_big", "u8", "u8"),
        ("wide", "u32", "u32"),
        ("fraction", "f32", "u16"),
        ("pet", "f32", "i16"),
        ("dose.dcm", "f64", "u32"),
        ("narrow", "i16", "i16"),
        ("jpeg_12_bits", "i16", "u16"),
    ] {
        let file = open(&fixture("dicom").join(name));
        assert_eq!((file.dtype.name(), file.stored.name()), (dtype, stored), "{name}");
    }
}

/// The files declare explicit VR, but their attributes have none. Other programs read them, too.
#[test]
fn reads_implicit_vr_labelled_as_explicit() {
    let folder = tempfile::tempdir().unwrap();
    copy_fixture("signed", &folder.path().join("s"), &[]);
    let expected = values(&open(&folder.path().join("s")));
    for file in fs::read_dir(folder.path().join("s")).unwrap() {
        let path = file.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        // Change the transfer syntax to explicit little-endian, whose UID is two bytes longer.
        let uid = b"UI\x12\x001.2.840.10008.1.2\0";
        let at = bytes.windows(uid.len()).position(|found| found == uid).unwrap();
        bytes.splice(at..at + uid.len(), *b"UI\x14\x001.2.840.10008.1.2.1\0");
        bytes[140] += 2;
        fs::write(&path, bytes).unwrap();
    }
    assert_eq!(values(&open(&folder.path().join("s"))), expected);
}

/// Rescaled values are stored in 16 bits if the stated range fits. Values beyond the stated range are clipped.
#[test]
fn clips_values_beyond_the_stated_range_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    copy_fixture("narrow", &folder.path().join("s"), &[]);
    let stderr = works(folder.path(), "histogram s -o h.csv");
    assert!(!stderr.contains("clipped"), "{stderr}");
    let expected = values(&open(&folder.path().join("s")));
    // Set the last pixel of one file far below the range.
    let path = fs::read_dir(folder.path().join("s")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&path).unwrap();
    let end = bytes.len();
    bytes[end - 2..].copy_from_slice(&(-32_000i16).to_le_bytes());
    fs::write(&path, &bytes).unwrap();
    let found = values(&open(&folder.path().join("s")));
    let differ: Vec<f64> =
        found.iter().zip(&expected).filter(|(a, b)| a != b).map(|(a, _)| *a).collect();
    assert_eq!(differ, [-32_768.0]);
    let stderr = works(folder.path(), "histogram s -o h.csv");
    assert!(stderr.contains("are clipped to i16"), "{stderr}");
    for line in ["histogram s -o strict.csv", "blur s strict.nrrd", "mesh s --iso 3 strict.ply"] {
        let (code, stderr) = run(folder.path(), &format!("{line} --strict"));
        assert!(code == 4 && stderr.contains("are clipped to i16"), "{line}: {stderr}");
    }
    // Without a stated range, the type has room for all possible values.
    for file in fs::read_dir(folder.path().join("s")).unwrap() {
        let path = file.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        let tag = [0x28, 0, 0x07, 0x01];
        let at = bytes.windows(4).position(|found| found == tag).unwrap();
        bytes[at + 2] = 0x09;
        fs::write(&path, bytes).unwrap();
    }
    let file = open(&folder.path().join("s"));
    assert_eq!(file.dtype.name(), "i32");
    assert!(values(&file).contains(&(-33_024.0)));
}

#[test]
fn warns_about_missing_and_duplicate_slices() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let whole = open(&fixture("dicom/ct"));
    assert_eq!(whole.warnings().count(), 0);
    // Slice 2 of the slices 0 to 5 is missing.
    copy_fixture("ct", &folder.join("gap"), &["06.dcm"]);
    let gap = open(&folder.join("gap"));
    let warnings: Vec<String> = gap.warnings().collect();
    assert!(
        warnings.len() == 1
            && warnings[0].contains("5 mm from ct-10.dcm to ct-02.dcm; assuming 2.5 mm"),
        "{warnings:?}"
    );
    assert!(warnings[0].contains("ct-10.dcm to ct-02.dcm"), "{warnings:?}");
    assert_eq!(gap.dims, [5, 4, 5]);
    let spacing = gap.placement.as_ref().unwrap().spacing();
    assert!((spacing[2] - 2.5).abs() < 1e-6, "{spacing:?}");
    copy_fixture("ct", &folder.join("double"), &[]);
    fs::copy(folder.join("double/ct-06.dcm"), folder.join("double/zz.dcm")).unwrap();
    let double = open(&folder.join("double"));
    let warnings: Vec<String> = double.warnings().collect();
    assert!(
        warnings.len() == 1 && warnings[0].contains("zz.dcm, which is at that of ct-06.dcm"),
        "{warnings:?}"
    );
    assert_eq!(values(&double), values(&whole));
    for name in ["gap", "double"] {
        assert_eq!(run(folder, &format!("mesh {name} o.ply --iso 0 --strict")).0, 4);
        works(folder, &format!("mesh {name} o.ply --iso 0"));
    }
}

#[test]
fn selects_one_of_several_series() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for name in ["ct", "big", "deflated"] {
        copy_fixture(name, &folder.join("mixed"), &[]);
    }
    fs::write(folder.join("mixed/readme.txt"), "a report").unwrap();
    let stderr = works(folder, "mesh mixed o.ply --iso 0");
    assert!(stderr.contains("using the largest of 3 series, series 1 (6 slices"), "{stderr}");
    assert!(stderr.contains("skipped readme.txt"), "{stderr}");
    let of = |series: &str| {
        let series: SeriesId = series.parse().unwrap();
        describe_as(folder.join("mixed"), &Layout { series: Some(series), ..Layout::default() })
    };
    assert_eq!(values(&of("1").unwrap()), values(&open(&fixture("dicom/ct"))));
    assert_eq!(values(&of("3").unwrap()), values(&open(&fixture("dicom/big"))));
    assert_eq!(values(&of("1.2.3.5").unwrap()), values(&open(&fixture("dicom/deflated"))));
    let error = of("4").unwrap_err();
    assert_eq!(error.kind(), Kind::Usage);
    assert!(error.one_line().contains("series 3 (3 slices, 1.2.3.3)"), "{}", error.one_line());
    works(folder, "mesh mixed o.ply --iso 0 --series 1.2.3.5");
    assert_eq!(run(folder, "mesh mixed o.ply --iso 0 --series x").0, 2);
    works(folder, "mesh mixed/big* o.ply --iso 0");
}

#[test]
fn slices_at_equal_positions_are_time_steps() {
    let folder = tempfile::tempdir().unwrap();
    let path = fixture("dicom/time");
    let error = describe(&path).unwrap_err().one_line();
    assert!(error.contains("contains 2 volumes"), "{error}");
    let all: Vec<f64> = (0..2)
        .flat_map(|volume| {
            let layout = Layout { volume: Some(volume), ..Layout::default() };
            let file = describe_as(&path, &layout).unwrap();
            assert_eq!((file.dims, file.volumes), ([5, 4, 3], 2));
            values(&file)
        })
        .collect();
    // The single files, in the order of time and position.
    let each: Vec<f64> = ["00", "01", "02", "10", "11", "12"]
        .iter()
        .flat_map(|name| values(&open(&path.join(format!("{name}.dcm")))))
        .collect();
    assert_eq!(all, each);
    let input = path.display();
    works(folder.path(), &format!("histogram {input} -o h.csv --volume 2"));
    // Rounding of positions does not mix time steps. Here the second slice of the first time step lies after that of
    // the second one.
    let rounded = folder.path().join("rounded");
    copy_fixture("time", &rounded, &[]);
    replace_bytes(&rounded.join("time-01.dcm"), b"109.3303161", b"109.3303162");
    let first = Layout { volume: Some(0), ..Layout::default() };
    assert_eq!(values(&describe_as(&rounded, &first).unwrap()), all[..all.len() / 2]);
}

/// Replaces the only occurrence of `from` in a file by `to`, which has the same length.
fn replace_bytes(path: &Path, from: &[u8], to: &[u8]) {
    let mut bytes = fs::read(path).unwrap();
    let offsets: Vec<usize> = (0..bytes.len()).filter(|&i| bytes[i..].starts_with(from)).collect();
    assert_eq!((offsets.len(), from.len()), (1, to.len()), "{}", path.display());
    bytes[offsets[0]..][..to.len()].copy_from_slice(to);
    fs::write(path, bytes).unwrap();
}

#[test]
fn ignores_invalid_pixel_spacing_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    copy_fixture("ct", &folder.path().join("s"), &[]);
    for file in fs::read_dir(folder.path().join("s")).unwrap() {
        replace_bytes(&file.unwrap().path(), b"DS\x08\x001.25\\0.8", b"DS\x08\x001e200\\1 ");
    }
    let file = open(&folder.path().join("s"));
    assert!(file.placement.is_none());
    assert!(file.warnings().any(|warning| warning.contains("is invalid")));
}

#[test]
fn meshes_and_outputs_keep_world_coordinates() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let ct = fixture("dicom/ct");
    let own = open(&ct);
    let input = ct.display();
    for output in ["o.nii.gz", "o.nrrd", "o.mha"] {
        works(folder, &format!("blur {input} {output} --sigma 0"));
        let file = open(&folder.join(output));
        assert_eq!(values(&file), values(&own), "{output}");
        let placement_in_lps = file.placement.as_ref().unwrap().to(Space::Lps).unwrap();
        for at in TEST_POINTS {
            let (found, expected) =
                (placement_in_lps.at(at), own.placement.as_ref().unwrap().at(at));
            for i in 0..3 {
                assert!((found[i] - expected[i]).abs() < 1e-4, "{output} at {at:?}");
            }
        }
        // Input and output give the same surface in the same coordinates.
        works(folder, &format!("mesh {output} a.ply --iso 300 --space lps"));
        works(folder, &format!("mesh {input} b.ply --iso 300"));
        works(folder, &format!("mesh {input} c.ply --iso 300 --max-memory 400"));
        let [a, b, c] = ["a.ply", "b.ply", "c.ply"]
            .map(|name| read_ply(&fs::read(folder.join(name)).unwrap()).positions);
        assert!(!a.is_empty() && a.len() == b.len() && b == c, "{output}");
        for (a, b) in a.iter().flatten().zip(b.iter().flatten()) {
            assert!((a - b).abs() < 1e-3, "{output}: {a}, expected {b}");
        }
    }
    let stderr = run(folder, &format!("blur {input} o.dcm")).1;
    assert!(stderr.contains(".nrrd"), "{stderr}");
    // The input is a folder, so its name has no extension.
    works(folder, &format!("blur {input} --out-dir many --sigma 0"));
}

#[test]
fn rejects_unsupported_transfer_syntaxes_and_truncated_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dcm");
    // The UID of lossless JPEG ends with .70, that of JPEG 2000 Part 2 with .92.
    let mut other = fs::read(fixture("dicom/lossless/03.dcm")).unwrap();
    let uid = b"1.2.840.10008.1.2.4.70";
    let at = other.windows(uid.len()).position(|part| part == uid).unwrap();
    other[at..at + uid.len()].copy_from_slice(b"1.2.840.10008.1.2.4.92");
    fs::write(&path, &other).unwrap();
    let error = describe(&path).unwrap_err().one_line();
    assert!(error.contains("JPEG 2000 Part 2 is not supported"), "{error}");
    assert!(error.contains("a.dcm"), "{error}");
    if !cfg!(feature = "jpeg2000") {
        let file = fixture("dicom/jpeg2000/03.dcm");
        let error = describe(&file).unwrap_err().one_line();
        assert!(error.contains("JPEG 2000"), "{error}");
    }
    let whole = fs::read(fixture("dicom/ct/03.dcm")).unwrap();
    fs::write(&path, &whole[..whole.len() - 20]).unwrap();
    let error = describe(&path).unwrap_err().one_line();
    assert!(error.contains("take 40 bytes, but the file has only 20"), "{error}");
    for len in [0, 100, 132, 140, 300, 500] {
        fs::write(&path, &whole[..len]).unwrap();
        let error = describe(&path).unwrap_err();
        assert_eq!(error.kind(), Kind::BadInput, "{len}: {}", error.one_line());
    }
    // DICOM is recognised by its content, not by its name.
    for name in ["IM0001", "1.2.840.113619.2"] {
        let path = folder.path().join(name);
        fs::write(&path, &whole).unwrap();
        assert_eq!(open(&path).dims, [5, 4, 1]);
        works(folder.path(), &format!("histogram {name} -o h.csv"));
        works(folder.path(), &format!("info {name}"));
    }
}

/// A data element with explicit VR.
fn dicom_element(tag: [u16; 2], kind: &[u8; 2], value: &[u8]) -> Vec<u8> {
    let length = (value.len() as u16).to_le_bytes();
    [&tag.map(u16::to_le_bytes).concat()[..], kind, &length, value].concat()
}

fn us_element(tag: [u16; 2], value: u16) -> Vec<u8> {
    dicom_element(tag, b"US", &value.to_le_bytes())
}

/// The elements of five frames of 2 x 2 pixels of 8 bits.
fn frame_elements() -> Vec<u8> {
    [
        us_element([0x28, 2], 1),
        dicom_element([0x28, 4], b"CS", b"MONOCHROME2 "),
        dicom_element([0x28, 8], b"IS", b"5 "),
        us_element([0x28, 0x10], 2),
        us_element([0x28, 0x11], 2),
        us_element([0x28, 0x100], 8),
    ]
    .concat()
}

/// The pixel data of the frames of [`frame_elements`].
fn pixel_data(frames: &[u8; 20]) -> Vec<u8> {
    [&[0xe0, 0x7f, 0x10, 0][..], b"OB\0\0", &20u32.to_le_bytes(), frames].concat()
}

/// Writes a DICOM file with the transfer syntax `uid` to the folder, and opens it.
fn open_written(folder: &Path, uid: &[u8], data: &[u8]) -> VolumeFile {
    let syntax = dicom_element([2, 0x10], b"UI", uid);
    let length = dicom_element([2, 0], b"UL", &(syntax.len() as u32).to_le_bytes());
    let path = folder.join("a.dcm");
    fs::write(&path, [&[0; 128][..], b"DICM", &length, &syntax, data].concat()).unwrap();
    open(&path)
}

/// If frames state only their pixel spacing, a slice spacing of 1 mm is assumed with a warning.
#[test]
fn warns_about_missing_slice_spacing() {
    let spacing = dicom_element([0x18, 0x1164], b"DS", b"0.5\\0.25");
    let data = [spacing, frame_elements(), pixel_data(&[7; 20])].concat();
    let folder = tempfile::tempdir().unwrap();
    let file = open_written(folder.path(), b"1.2.840.10008.1.2.1\0", &data);
    assert_eq!(file.placement.as_ref().unwrap().spacing(), [0.25, 0.5, 1.0]);
    assert!(file.warnings().any(|warning| warning == "slice spacing is missing; assuming 1 mm"));
}

/// The frames of this deflated file are stored from top to bottom, so they have to be reversed.
#[test]
fn reads_deflated_frames_in_reverse_order() {
    let frames: [u8; 20] = std::array::from_fn(|i| 10 * (i / 4) as u8);
    let data = [
        dicom_element([0x20, 0x32], b"DS", b"0\\0\\0 "),
        dicom_element([0x20, 0x37], b"DS", b"1\\0\\0\\0\\1\\0 "),
        frame_elements(),
        // Offsets of the frames along z.
        dicom_element([0x3004, 12], b"DS", b"8\\6\\4\\2\\0 "),
        pixel_data(&frames),
    ];
    let mut deflated = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    deflated.write_all(&data.concat()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let uid = b"1.2.840.10008.1.2.1.99";
    let file = open_written(folder.path(), uid, &deflated.finish().unwrap());
    let expected: Vec<f64> = (0..5u8).rev().flat_map(|frame| [f64::from(10 * frame); 4]).collect();
    assert_eq!(values(&file), expected);
}

#[test]
fn fixtures_are_small() {
    let mut folders = vec![fixture("dicom")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => assert!(entry.metadata().unwrap().len() < 40_000, "{entry:?}"),
            }
        }
    }
}
