//! Numbers that commands print and write as tables: digits of coordinates, ranges, and measures of components.

use std::{fs, path::Path};

use serde_json::Value;

use crate::{
    common::{info_json, output_of, works},
    inputs::json_numbers,
    tiff_files::{TiffPage, tiff},
};

/// An NRRD volume of 2 x 2 x 2 samples of a type with these lines and bytes.
fn nrrd(path: &Path, kind: &str, lines: &str, body: &[u8]) {
    let header = format!(
        "NRRD0004\ntype: {kind}\ndimension: 3\nsizes: 2 2 2\nencoding: raw\nendian: little\n{lines}\n"
    );
    fs::write(path, [header.as_bytes(), body].concat()).unwrap();
}

/// Coordinates have six decimals, or more if the largest of three has fewer than six significant digits then.
#[test]
fn coordinates_are_printed_with_six_digits() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (numbers, expected) in [
        ([1.0, 2.5, -3.0], "1 2.5 -3"),
        ([0.1, 0.2, 0.30000000000000004], "0.1 0.2 0.3"),
        ([123.4567891234, 1e-9, 0.5], "123.456789 0 0.5"),
        ([1e-9, 1e-9, 1.0000004], "0 0 1"),
        ([0.123456789, 0.5, 0.25], "0.123457 0.5 0.25"),
        ([0.0123456789, 0.01, 0.02], "0.0123457 0.01 0.02"),
        ([0.000123456789, 1e-9, 0.0], "0.000123457 0.000000001 0"),
        ([1.23456789e-7, -2e-8, 1e-13], "0.000000123457 -0.00000002 0"),
        ([9.99999999e-8, 0.0, 0.0], "0.0000001 0 0"),
        ([123456.789012345, 0.0000004, 0.0000006], "123456.789012 0 0.000001"),
        ([0.0, 0.0, 0.0], "0 0 0"),
        ([-0.0, 5.0, -0.0], "0 5 0"),
        ([1e15, 2.0, 0.125], "1000000000000000 2 0.125"),
    ] {
        let [x, y, z] = numbers;
        let lines = format!(
            "space dimension: 3\nspace directions: (1,0,0) (0,1,0) (0,0,1)\nspace origin: ({x:e},{y:e},{z:e})\n"
        );
        nrrd(&folder.join("a.nrrd"), "uchar", &lines, &[0; 8]);
        let text = output_of(folder, "info a.nrrd");
        let row = text.lines().find(|line| line.trim().starts_with("first sample")).unwrap();
        assert_eq!(
            row.trim().strip_prefix("first sample").unwrap().trim(),
            expected,
            "{numbers:?}"
        );
        assert_eq!(json_numbers(&info_json(folder, "a.nrrd")[0]["first"]), numbers);
    }
    let lines = "space dimension: 3\nspace directions: (2e-7,0,0) (0,3.00000004e-7,0) (0,0,4e-9)\n";
    nrrd(&folder.join("a.nrrd"), "uchar", lines, &[0; 8]);
    let text = output_of(folder, "info a.nrrd");
    let row = text.lines().find(|line| line.trim().starts_with("spacing")).unwrap();
    assert!(row.ends_with("  0.0000002 0.0000003 0.000000004"), "{row}");
}

/// The range is that of all finite samples of all channels.
#[test]
fn ranges_are_those_of_finite_samples() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let range = |name: &str| {
        let found = &info_json(folder, &format!("{name} --range"))[0];
        let text = output_of(folder, &format!("info {name} --range"));
        if let Value::Array(ends) = &found["range"] {
            let [low, high] = [&ends[0], &ends[1]].map(|end| end.as_f64().unwrap());
            assert!(text.contains(&format!("{low} to {high}")), "{name}: {text}");
            Some([low, high])
        } else {
            assert!(!text.contains("range"), "{name}: {text}");
            None
        }
    };
    let floats = |values: [f32; 8]| values.map(f32::to_le_bytes).concat();
    let [nan, infinity] = [f32::NAN, f32::INFINITY];
    for (values, expected) in [
        ([nan, 3.0, -2.5, infinity, 0.0, -infinity, 1.0, nan], Some([-2.5, 3.0])),
        ([-7.0, -3.0, -2.5, -9.0, nan, -4.0, -8.0, -5.0], Some([-9.0, -2.5])),
        ([nan, infinity, -infinity, nan, nan, nan, nan, nan], None),
    ] {
        nrrd(&folder.join("a.nrrd"), "float", "", &floats(values));
        assert_eq!(range("a.nrrd"), expected, "{values:?}");
        let page = TiffPage::grey([4, 2], 32, floats(values)).shorts(339, [3]);
        fs::write(folder.join("a.tif"), tiff(&[page])).unwrap();
        assert_eq!(range("a.tif"), expected, "{values:?}");
    }
    for (kind, bytes, expected) in [
        ("uchar", vec![200, 7, 9, 255, 30, 40, 50, 60], [7.0, 255.0]),
        ("signed char", vec![200, 7, 9, 255, 30, 40, 50, 60], [-56.0, 60.0]),
        ("ushort", [0xff, 0xff].repeat(8), [65_535.0; 2]),
        ("int", [vec![0, 0, 0, 0x80], [1, 0, 0, 0].repeat(7)].concat(), [-2_147_483_648.0, 1.0]),
        ("uint", [vec![0xff; 4], [1, 0, 0, 0].repeat(7)].concat(), [1.0, 4_294_967_295.0]),
    ] {
        nrrd(&folder.join("a.nrrd"), kind, "", &bytes);
        assert_eq!(range("a.nrrd"), Some(expected), "{kind}");
    }
    // The extremes are in different channels.
    let page = TiffPage::grey([2, 1], 8, vec![9, 8, 200, 50, 3, 60]).shorts(258, [8; 3]);
    fs::write(folder.join("a.tif"), tiff(&[page.shorts(262, [2]).shorts(277, [3])])).unwrap();
    assert_eq!(range("a.tif"), Some([3.0, 200.0]));
}

/// The rows of a table as JSON, and the same as CSV.
fn tables(folder: &Path, line: &str) -> Vec<Vec<(String, Value)>> {
    works(folder, &format!("{line} --table t.json"));
    works(folder, &format!("{line} --table t.csv"));
    let text = fs::read_to_string(folder.join("t.json")).unwrap();
    let Value::Array(rows) = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
    else {
        panic!("{text}");
    };
    let csv = fs::read_to_string(folder.join("t.csv")).unwrap();
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let cells = |line: &str| -> Vec<(String, Value)> {
        let cell = |(name, text): (&&str, &str)| {
            // JSON has no number that is not finite.
            let number = text.parse::<f64>().unwrap();
            ((*name).to_owned(), if number.is_finite() { number.into() } else { Value::Null })
        };
        names.iter().zip(line.split(',')).map(cell).collect()
    };
    let found: Vec<_> = lines.map(cells).collect();
    assert_eq!(found.len(), rows.len(), "{csv}");
    for (own, row) in found.iter().zip(&rows) {
        let row = row.as_object().unwrap();
        assert_eq!(own.len(), row.len(), "{csv}");
        for (name, value) in own {
            assert_eq!(row[name].as_f64(), value.as_f64(), "{name}: {text} {csv}");
        }
    }
    found
}

fn column(rows: &[Vec<(String, Value)>], name: &str) -> Vec<Option<f64>> {
    let value = |row: &Vec<(String, Value)>| {
        let cell = row.iter().find(|(own, _)| own == name);
        cell.unwrap_or_else(|| panic!("no column {name} in {row:?}")).1.as_f64()
    };
    rows.iter().map(value).collect()
}

/// Intensities that are NaN or infinite make measures that JSON writes as null.
#[test]
fn measures_that_are_no_numbers_are_null() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [nan, infinity] = [f32::NAN, f32::INFINITY];
    let mask = [1u8, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0];
    let light = [nan, 1.0, 5.0, 2.0, nan, 5.0, infinity, 1.5, 5.0, -2.5, 4.0, nan]
        .map(f32::to_le_bytes)
        .concat();
    fs::write(folder.join("m.tif"), tiff(&[TiffPage::grey([12, 1], 8, mask.to_vec())])).unwrap();
    let page = TiffPage::grey([12, 1], 32, light.clone()).shorts(339, [3]);
    fs::write(folder.join("i.tif"), tiff(&[page])).unwrap();
    fs::write(folder.join("m_12x1x1_uint8.raw"), mask).unwrap();
    fs::write(folder.join("i_12x1x1_float32.raw"), light).unwrap();
    for line in [
        "label m.tif o.tif --intensity i.tif",
        "label m_12x1x1_uint8.raw o.raw --intensity i_12x1x1_float32.raw",
    ] {
        let rows = tables(folder, line);
        assert_eq!(column(&rows, "label"), [1.0, 2.0, 3.0, 4.0].map(Some), "{line}");
        assert_eq!(column(&rows, "mean"), [None, None, None, Some(0.75)], "{line}");
        assert_eq!(column(&rows, "min"), [None, None, Some(1.5), Some(-2.5)], "{line}");
        assert_eq!(column(&rows, "max"), [None, None, None, Some(4.0)], "{line}");
    }
}

/// Volumes of components are their numbers of samples times the volume of a sample, in the unit of the spacing.
#[test]
fn volumes_of_components_have_the_unit_of_the_input() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (lines, name, voxel) in [
        (
            "space directions: (0.5,0,0) (0,2,0) (0,0,3)\nspace units: \"mm\" \"mm\" \"mm\"\n",
            Some("volume_mm3"),
            3.0,
        ),
        ("space directions: (0.5,0,0) (0,2,0) (0,0,-3)\n", Some("volume"), 3.0),
        // Axes that are not at right angles: the determinant.
        (
            "space directions: (2,0,0) (1,2,0) (0,1,2)\nspace units: \"um\" \"um\" \"um\"\n",
            Some("volume_um3"),
            8.0,
        ),
        ("", None, 0.0),
    ] {
        let space = if lines.is_empty() { "" } else { "space dimension: 3\n" };
        nrrd(
            &folder.join("v.nrrd"),
            "uchar",
            &format!("{space}{lines}"),
            &[1, 1, 0, 0, 0, 0, 0, 1],
        );
        let rows = tables(folder, "label v.nrrd o.nrrd -n 6");
        assert_eq!(column(&rows, "voxels"), [Some(2.0), Some(1.0)]);
        let names: Vec<&str> = rows[0].iter().map(|(name, _)| name.as_str()).collect();
        let own: Vec<&str> = names.into_iter().filter(|name| name.starts_with("volume")).collect();
        assert_eq!(own, Vec::from_iter(name), "{lines}");
        if let Some(name) = name {
            assert_eq!(column(&rows, name), [Some(2.0 * voxel), Some(voxel)], "{lines}");
        }
    }
}
