//! Arrays of every type, byte order, order of axes and version of `.npy`, sorted and summed up by the commands. Texts with
//! every separator.

use std::{fs, path::Path};

use crate::common::{output_of, run, works};

const SHAPE: [usize; 2] = [3, 4];
const VALUES: [i64; 12] = [7, 3, 3, 0, 9, 1, 100, 2, 5, 5, 4, 8];

/// The bytes of a number of the type with this name in NumPy.
fn number(value: i64, code: &str, is_big: bool) -> Vec<u8> {
    let mut bytes = match code {
        "f2" => half::f16::from_f64(value as f64).to_le_bytes().to_vec(),
        "f4" => (value as f32).to_le_bytes().to_vec(),
        "f8" => (value as f64).to_le_bytes().to_vec(),
        "b1" => vec![u8::from(value != 0)],
        code => value.to_le_bytes()[..code[1..].parse().unwrap()].to_vec(),
    };
    if is_big {
        bytes.reverse();
    }
    bytes
}

/// A file of an array of axes `shape` in this version.
fn npy(version: u8, descr: &str, is_fortran: bool, shape: &str, body: &[u8]) -> Vec<u8> {
    let order = if is_fortran { "True" } else { "False" };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    text += &" ".repeat(115 - text.len() % 16);
    text.push('\n');
    let len = match version {
        1 => (text.len() as u16).to_le_bytes().to_vec(),
        _ => (text.len() as u32).to_le_bytes().to_vec(),
    };
    [&b"\x93NUMPY"[..], &[version, 0], &len, text.as_bytes(), body].concat()
}

/// The element type, the shape and the bytes of a written array.
fn read(path: &Path) -> (String, String, Vec<u8>) {
    let file = fs::read(path).unwrap();
    assert!(file.starts_with(b"\x93NUMPY\x01\0"), "{file:?}");
    let len = usize::from(u16::from_le_bytes([file[8], file[9]]));
    assert_eq!((10 + len) % 64, 0);
    let text = String::from_utf8(file[10..10 + len].to_vec()).unwrap();
    let part = |before: &str, after: char| {
        let start = text.find(before).unwrap_or_else(|| panic!("{text}")) + before.len();
        text[start..].split(after).next().unwrap().to_owned()
    };
    assert!(text.contains("'fortran_order': False"), "{text}");
    (part("'descr': '", '\''), part("'shape': (", ')'), file[10 + len..].to_vec())
}

/// The type in which sums of a type are stored, where they fit, and where they may not along an axis.
fn sums(code: &str) -> [&str; 2] {
    match code {
        "b1" | "u1" | "u2" => ["u4", "u4"],
        "u4" => ["u4", "u8"],
        "i1" | "i2" => ["i4", "i4"],
        "i4" => ["i4", "i8"],
        "f2" => ["f4", "f4"],
        other => [other; 2],
    }
}

#[test]
fn arrays_of_every_kind_are_sorted_and_summed_up() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [rows, columns] = SHAPE;
    let codes = ["b1", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"];
    for (i, code) in codes.into_iter().enumerate() {
        for is_fortran in [false, true] {
            // Both orders of bytes and all versions occur with both orders of axes.
            let is_big = (i + usize::from(is_fortran)) % 2 == 0;
            let version = 1 + (i + usize::from(is_fortran)) as u8 % 3;
            let value = |i: usize| if code == "b1" { i64::from(VALUES[i] > 3) } else { VALUES[i] };
            // In Fortran order, the rows are the fastest.
            let places = (0..rows * columns).map(|i| match is_fortran {
                true => i % rows * columns + i / rows,
                false => i,
            });
            let body: Vec<u8> = places.flat_map(|i| number(value(i), code, is_big)).collect();
            let descr = format!("{}{code}", if is_big { ">" } else { "<" });
            fs::write(folder.join("a.npy"), npy(version, &descr, is_fortran, "(3, 4)", &body))
                .unwrap();
            let all: Vec<i64> = (0..12).map(value).collect();
            let case = format!("{descr} {is_fortran} {version}");
            let check = |line: &str, code: &str, shape: &str, expected: &[i64]| {
                works(folder, &format!("{line} a.npy o.npy"));
                let (descr, found_shape, bytes) = read(&folder.join("o.npy"));
                let expected_descr =
                    if code == "b1" { "|b1".to_owned() } else { format!("<{code}") };
                assert_eq!(
                    (descr, found_shape),
                    (expected_descr, shape.to_owned()),
                    "{line}: {case}"
                );
                let expected: Vec<u8> =
                    expected.iter().flat_map(|&v| number(v, code, false)).collect();
                assert_eq!(bytes, expected, "{line}: {case}");
            };
            let stored = if code == "f2" { "f4" } else { code };
            let by_row: Vec<i64> = all
                .chunks(columns)
                .flat_map(|row| {
                    let mut row = row.to_vec();
                    row.sort_unstable_by(|a, b| b.cmp(a));
                    row
                })
                .collect();
            check("sort --axis x --descending", stored, "3, 4", &by_row);
            let [own, wide] = sums(code);
            let down: Vec<i64> = (0..12)
                .map(|i| (0..=i / columns).map(|row| all[row * columns + i % columns]).sum())
                .collect();
            check("scan --axis y --inclusive", wide, "3, 4", &down);
            if is_fortran {
                continue;
            }
            let mut sorted = all.clone();
            sorted.sort_unstable();
            check("sort", stored, "12,", &sorted);
            // Sums of all numbers before, and of those up to each number.
            let before: Vec<i64> = (0..12).map(|i| all[..i].iter().sum()).collect();
            check("scan", own, "3, 4", &before);
            let up_to: Vec<i64> = (0..12).map(|i| all[..=i].iter().sum()).collect();
            check("scan --inclusive", own, "3, 4", &up_to);
        }
    }
}

/// Sums of images have 32 bits if the last sum along an axis fits for the largest samples.
#[test]
fn sums_of_images_have_as_many_bits_as_they_may_need() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // 65,537 samples of 65,535 sum up to 2^32 - 1.
    for (width, height, axis, code) in [
        (65_537, 1, "x", "<u4"),
        (65_538, 1, "x", "<u8"),
        (65_538, 1, "y", "<u4"),
        (1, 65_537, "y", "<u4"),
        (1, 65_538, "y", "<u8"),
        (1, 65_538, "x", "<u4"),
        (257, 255, "both", "<u4"),
        (257, 256, "both", "<u8"),
    ] {
        let header = format!("P5 {width} {height} 65535\n");
        fs::write(
            folder.join("a.pgm"),
            [header.as_bytes(), &vec![0xff; 2 * width * height]].concat(),
        )
        .unwrap();
        works(folder, &format!("scan a.pgm o.npy --axis {axis} --inclusive"));
        let (descr, _, bytes) = read(&folder.join("o.npy"));
        assert_eq!(descr, code, "{width} x {height} along {axis}");
        let mut last = bytes[bytes.len() - if code == "<u8" { 8 } else { 4 }..].to_vec();
        last.resize(8, 0);
        let terms = match axis {
            "x" => width,
            "y" => height,
            _ => width * height,
        };
        assert_eq!(u64::from_le_bytes(last.try_into().unwrap()), 65_535 * terms as u64);
    }
}

/// Numbers may be separated by any white space and by single commas, after a byte order mark.
#[test]
fn texts_have_any_separators() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (text, expected) in [
        ("3 1 2", "3 4 6"),
        ("3,1,2\n", "3,4,6\n"),
        ("\u{feff}3, 1,\t2\r\n", "\u{feff}3, 4,\t6\r\n"),
        ("  3\n\n1 ,2  ", "  3\n\n4 ,6  "),
        ("+3 -1 007", "3 2 9"),
        ("3,\n1,\n2,\n", "3,\n4,\n6,\n"),
    ] {
        fs::write(folder.join("a.txt"), text).unwrap();
        let line = "scan a.txt - --inclusive --type i32";
        assert_eq!(output_of(folder, line), expected, "{text:?}");
    }
    for (text, kind, reason) in [
        ("1,,2", "i32", "line 1: expected a number before the comma"),
        ("1\n2\n,3", "i32", ""),
        (",1", "i32", "line 1: expected a number before the comma"),
        ("1\n2 x", "i32", "line 2: `x` is not a valid i32"),
        ("1\n\n3000000000", "i32", "line 3: `3000000000` is not a valid i32"),
        ("-1", "u32", "line 1: `-1` is not a valid u32"),
        ("1.5", "i64", "line 1: `1.5` is not a valid i64"),
        ("0x10", "i32", "line 1: `0x10` is not a valid i32"),
    ] {
        fs::write(folder.join("a.txt"), text).unwrap();
        let (code, stderr) = run(folder, &format!("sort a.txt o.txt --type {kind}"));
        match reason {
            "" => assert_eq!(code, 0, "{text:?}: {stderr}"),
            reason => assert!(code == 4 && stderr.contains(reason), "{text:?}: {stderr}"),
        }
    }
    fs::write(folder.join("a.txt"), "1e3 -0.5 inf -inf 0.25").unwrap();
    assert_eq!(output_of(folder, "sort a.txt - --type f64"), "-inf\n-0.5\n0.25\n1000\ninf\n");
}
