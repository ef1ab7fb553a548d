//! Headers of MRC and MetaImage in all their variants, built field by field, and files of samples that they name.

use std::{fs, path::Path};

use gpuproc::{
    io::volume::{Layout, VolumeFile},
    util::timings::Timings,
};

use crate::inputs::{as_f64, describe, describe_as};

fn values(file: &VolumeFile) -> Vec<f64> {
    let whole = file.read(1 << 20, &Timings::new(false));
    as_f64(&whole.unwrap_or_else(|error| panic!("{}", error.one_line())).samples)
}

fn open(path: &Path) -> VolumeFile {
    describe(path).unwrap_or_else(|error| panic!("{}", error.one_line()))
}

fn assert_at(file: &VolumeFile, at: [f64; 3], expected: [f64; 3], case: &str) {
    let found = file.placement.as_ref().unwrap_or_else(|| panic!("{case}: no placement")).at(at);
    let is_near = (0..3).all(|i| (found[i] - expected[i]).abs() < 1e-4);
    assert!(is_near, "{case}: {found:?} at {at:?}, expected {expected:?}");
}

/// The words of an MRC header, counted from 0, and the byte order.
#[derive(Clone)]
struct Mrc {
    words: Vec<[u8; 4]>,
    is_big: bool,
}

impl Mrc {
    /// 4 columns, 3 rows and 2 sections of samples of a mode.
    fn new(mode: i32, is_big: bool) -> Self {
        let mrc = Self { words: vec![[0; 4]; 256], is_big };
        let stamp = if is_big { [0x11, 0x11, 0, 0] } else { [0x44, 0x44, 0, 0] };
        let mut mrc = mrc.ints(0, &[4, 3, 2, mode]).ints(7, &[4, 3, 2]).ints(16, &[1, 2, 3]);
        mrc.words[52..54].copy_from_slice(&[*b"MAP ", stamp]);
        mrc.ints(22, &[1]).reals(13, &[90.0; 3])
    }

    fn ints(mut self, first: usize, values: &[i32]) -> Self {
        for (i, value) in values.iter().enumerate() {
            self.words[first + i] =
                if self.is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        }
        self
    }

    fn reals(self, first: usize, values: &[f32]) -> Self {
        let bits: Vec<i32> = values.iter().map(|value| value.to_bits() as i32).collect();
        self.ints(first, &bits)
    }

    fn write(&self, path: &Path, samples: &[u8]) {
        fs::write(path, [self.words.as_flattened(), samples].concat()).unwrap();
    }
}

#[test]
fn mrc_is_read_in_every_mode_and_byte_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mrc");
    for is_big in [false, true] {
        for (mode, size) in [(0, 1usize), (1, 2), (2, 4), (6, 2), (12, 2)] {
            let value = |i: i64| if mode == 6 { 40_000 + i } else { i - 12 };
            let bytes = |i: i64| {
                let mut bytes = match mode {
                    2 => (value(i) as f32).to_le_bytes().to_vec(),
                    12 => half::f16::from_f64(value(i) as f64).to_le_bytes().to_vec(),
                    _ => value(i).to_le_bytes()[..size].to_vec(),
                };
                if is_big {
                    bytes.reverse();
                }
                bytes
            };
            let body: Vec<u8> = (0..24).flat_map(bytes).collect();
            let expected: Vec<f64> = (0..24).map(|i| value(i) as f64).collect();
            // The stamp of some writers; old files have none.
            for stamp in [[0x44, 0x44], [0x44, 0x41], [0x11, 0x11], [0, 0]] {
                if stamp != [0, 0] && (stamp[0] == 0x11) != is_big || mode == 0 && stamp == [0, 0] {
                    continue;
                }
                let mut mrc = Mrc::new(mode, is_big);
                mrc.words[53] = [stamp[0], stamp[1], 0, 0];
                // The samples follow the extended header.
                for extended in [0, 160] {
                    let mrc = mrc.clone().ints(23, &[extended]);
                    mrc.write(&path, &[vec![9; extended as usize], body.clone()].concat());
                    let file = open(&path);
                    let case = format!("mode {mode}, {is_big}, {stamp:?}, {extended}");
                    assert_eq!(
                        (file.format(), file.dims, file.volumes),
                        ("MRC", [4, 3, 2], 1),
                        "{case}"
                    );
                    assert_eq!(values(&file), expected, "{case}");
                    assert!(file.placement.is_none(), "{case}");
                }
            }
        }
        // IMOD states in its flags whether bytes are signed.
        for (stamp, flags, is_signed) in [
            (1_146_047_817, 1, true),
            (1_146_047_817, 0, false),
            (1_146_047_817, 2, false),
            (7, 0, true),
        ] {
            Mrc::new(0, is_big).ints(38, &[stamp, flags]).write(&path, &[200; 24]);
            let expected = if is_signed { -56.0 } else { 200.0 };
            assert_eq!(values(&open(&path)), [expected; 24], "{stamp} {flags}");
        }
        // Space groups 401 to 630 are stacks of volumes of mz sections.
        for (group, mz, volumes) in
            [(1, 1, 1), (400, 1, 1), (401, 1, 2), (630, 1, 2), (631, 1, 1), (401, 2, 1)]
        {
            let body: Vec<u8> = (0..24).collect();
            Mrc::new(0, is_big).ints(22, &[group]).ints(9, &[mz]).write(&path, &body);
            let layout = |volume| Layout { volume: Some(volume), ..Layout::default() };
            for volume in 0..volumes {
                let file = describe_as(&path, &layout(volume)).unwrap();
                let sections = 2 / volumes;
                assert_eq!((file.volumes, file.dims), (volumes, [4, 3, sections]), "{group} {mz}");
                assert_eq!(values(&file)[0], (12 * sections * volume) as f64);
            }
        }
        for (mode, reason) in [(3, "complex"), (4, "complex"), (101, "4 bits"), (5, "unknown mode")]
        {
            Mrc::new(mode, is_big).write(&path, &[0; 99]);
            let error = describe(&path).unwrap_err().one_line();
            assert!(error.contains(reason), "{error}");
        }
    }
}

/// Columns, rows and sections lie along the stated axes of the world. The origin counts if it is stated, else the numbers
/// of the first samples.
#[test]
fn mrc_is_placed_by_its_axes_cell_and_origin() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mrc");
    for is_big in [false, true] {
        for axes in [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1], [0, 0, 0]] {
            for origin in [[0.0f32; 3], [5.0, -6.0, 7.5], [0.0, 0.0, 1.0]] {
                let (cell, intervals, starts) = ([8.0f32, 9.0, 10.0], [4, 3, 5], [2, -3, 4]);
                Mrc::new(0, is_big)
                    .reals(10, &cell)
                    .ints(7, &intervals)
                    .ints(4, &starts)
                    .ints(16, &axes)
                    .reals(49, &origin)
                    .write(&path, &[0; 24]);
                let file = open(&path);
                let worlds: [usize; 3] =
                    std::array::from_fn(|i| if axes[i] == 0 { i } else { axes[i] as usize - 1 });
                let spacing: [f64; 3] = std::array::from_fn(|world| {
                    f64::from(cell[world]) / f64::from(intervals[world])
                });
                let mut first = origin.map(f64::from);
                if origin == [0.0; 3] {
                    for (axis, &world) in worlds.iter().enumerate() {
                        first[world] = f64::from(starts[axis]) * spacing[world];
                    }
                }
                let case = format!("{axes:?} {origin:?}");
                for at in [[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]] {
                    let mut expected = first;
                    for (axis, &world) in worlds.iter().enumerate() {
                        expected[world] += at[axis] * spacing[world];
                    }
                    assert_at(&file, at, expected, &case);
                }
                assert_eq!(file.placement.as_ref().unwrap().unit.as_deref(), Some("angstrom"));
                assert_eq!(file.warnings().count(), 0, "{case}");
            }
        }
        let warning = |mrc: Mrc| {
            mrc.reals(10, &[8.0, 9.0, 10.0]).write(&path, &[0; 24]);
            open(&path).warnings().collect::<Vec<String>>()
        };
        let found = warning(Mrc::new(0, is_big).ints(16, &[1, 1, 3]));
        assert_eq!(found, ["invalid axes [1, 1, 3]; assuming [1, 2, 3]"]);
        let found = warning(Mrc::new(0, is_big).reals(13, &[90.0, 90.0, 120.0]));
        assert_eq!(found, ["cell angles are [90.0, 90.0, 120.0]; assuming a rectangular cell"]);
        assert_eq!(warning(Mrc::new(0, is_big).reals(13, &[0.0; 3])), [""; 0]);
    }
}

/// A MetaImage file with these lines before that of the samples.
fn meta(path: &Path, lines: &str, place: &str, body: &[u8]) {
    let text = format!("ObjectType = Image\n{lines}ElementDataFile = {place}\n");
    fs::write(path, [text.into_bytes(), body.to_vec()].concat()).unwrap();
}

#[test]
fn meta_image_is_read_in_every_type_and_number_of_axes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mha");
    for (kind, size, is_signed, is_float) in [
        ("MET_UCHAR", 1usize, false, false),
        ("MET_CHAR", 1, true, false),
        ("MET_USHORT", 2, false, false),
        ("MET_SHORT", 2, true, false),
        ("MET_UINT", 4, false, false),
        ("MET_INT", 4, true, false),
        ("MET_ULONG", 4, false, false),
        ("MET_LONG", 4, true, false),
        ("MET_ULONG_LONG", 8, false, false),
        ("MET_LONG_LONG", 8, true, false),
        ("MET_FLOAT", 4, true, true),
        ("MET_DOUBLE", 8, true, true),
    ] {
        for is_big in [false, true] {
            for (sizes, dims) in [("24", [24, 1, 1]), ("6 4", [6, 4, 1]), ("4 3 2", [4, 3, 2])] {
                // Negative numbers, or those above the signed ones.
                let value = |i: i64| match (is_signed, size) {
                    (true, _) => i - 12,
                    (_, 8) => i,
                    _ => (1 << (8 * size - 1)) + i,
                };
                let bytes = |i: i64| {
                    let mut bytes = match (is_float, size) {
                        (true, 4) => (value(i) as f32).to_le_bytes().to_vec(),
                        (true, _) => (value(i) as f64).to_le_bytes().to_vec(),
                        _ => value(i).to_le_bytes()[..size].to_vec(),
                    };
                    if is_big {
                        bytes.reverse();
                    }
                    bytes
                };
                let body: Vec<u8> = (0..24).flat_map(bytes).collect();
                let axes = sizes.split(' ').count();
                let order = if is_big { "BinaryDataByteOrderMSB = True\n" } else { "" };
                let lines =
                    format!("NDims = {axes}\nDimSize = {sizes}\n{order}ElementType = {kind}\n");
                let expected: Vec<f64> = (0..24).map(|i| value(i) as f64).collect();
                // A header within the data, of known size or before the end of the file.
                for (skip, more) in [(0, ""), (7, "HeaderSize = 7\n"), (5, "HeaderSize = -1\n")] {
                    let body = [vec![1; skip], body.clone()].concat();
                    meta(&path, &format!("{more}{lines}"), "LOCAL", &body);
                    let file = open(&path);
                    assert_eq!((file.format(), file.dims), ("MetaImage", dims), "{lines}");
                    assert_eq!(values(&file), expected, "{more}{lines}");
                    assert!(file.placement.is_none());
                }
            }
        }
    }
}

/// Rows of the matrix are the directions of the axes; lengths are millimetres unless another unit is stated.
#[test]
fn meta_image_is_placed_by_its_matrix_spacing_and_offset() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mha");
    let basic = "NDims = 3\nDimSize = 2 2 2\nElementType = MET_UCHAR\n";
    let turned = [[0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [-1.0, 0.0, 0.0]];
    let straight = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    for (matrix, has_matrix) in [(straight, false), (straight, true), (turned, true)] {
        for spacing_name in ["ElementSpacing", "ElementSize", ""] {
            for offset_name in ["Offset", "Position", "Origin", ""] {
                for matrix_name in ["TransformMatrix", "Rotation", "Orientation"] {
                    let mut lines = basic.to_owned();
                    let mut add = |name: &str, value: &str| {
                        if !name.is_empty() {
                            lines += &format!("{name} = {value}\n");
                        }
                    };
                    add(spacing_name, "0.5 2 3");
                    add(offset_name, "10 -20 30");
                    if has_matrix {
                        let numbers: Vec<String> =
                            matrix.as_flattened().iter().map(f64::to_string).collect();
                        add(matrix_name, &numbers.join(" "));
                    }
                    meta(&path, &lines, "LOCAL", &[0; 8]);
                    let file = open(&path);
                    if spacing_name.is_empty() && offset_name.is_empty() && !has_matrix {
                        assert!(file.placement.is_none());
                        continue;
                    }
                    let spacing = if spacing_name.is_empty() { [1.0; 3] } else { [0.5, 2.0, 3.0] };
                    let offset =
                        if offset_name.is_empty() { [0.0; 3] } else { [10.0, -20.0, 30.0] };
                    assert_at(&file, [0.0; 3], offset, &lines);
                    for axis in 0..3 {
                        let mut at = [0.0; 3];
                        at[axis] = 1.0;
                        let step: [f64; 3] =
                            std::array::from_fn(|i| offset[i] + matrix[axis][i] * spacing[axis]);
                        assert_at(&file, at, step, &lines);
                    }
                    assert_eq!(file.placement.as_ref().unwrap().unit.as_deref(), Some("mm"));
                }
            }
        }
    }
    for (unit, expected) in [("mm", Some("mm")), ("um", Some("um")), ("?", None)] {
        let lines = format!("{basic}ElementSpacing = 1 2 3\nDistanceUnits = {unit}\n");
        meta(&path, &lines, "LOCAL", &[0; 8]);
        assert_eq!(open(&path).placement.as_ref().unwrap().unit.as_deref(), expected, "{unit}");
    }
    // Two axes, and a fourth one that counts volumes.
    let lines = "NDims = 2\nDimSize = 2 4\nElementType = MET_UCHAR\nElementSpacing = 0.5 2\nOffset = 10 20\n\
                 TransformMatrix = 0 1 -1 0\n";
    meta(&path, lines, "LOCAL", &[0; 8]);
    let file = open(&path);
    assert_at(&file, [0.0; 3], [10.0, 20.0, 0.0], lines);
    assert_at(&file, [1.0, 0.0, 0.0], [10.0, 20.5, 0.0], lines);
    assert_at(&file, [0.0, 1.0, 0.0], [8.0, 20.0, 0.0], lines);
    assert_at(&file, [0.0, 0.0, 1.0], [10.0, 20.0, 1.0], lines);
    let lines = "NDims = 4\nDimSize = 2 2 1 2\nElementType = MET_UCHAR\nElementSpacing = 0.5 2 3 9\nOffset = 1 2 3 4\n";
    meta(&path, lines, "LOCAL", &[0, 1, 2, 3, 4, 5, 6, 7]);
    let file = describe_as(&path, &Layout { volume: Some(1), ..Layout::default() }).unwrap();
    assert_eq!((file.volumes, values(&file)), (2, vec![4.0, 5.0, 6.0, 7.0]));
    assert_at(&file, [1.0; 3], [1.5, 4.0, 6.0], lines);
}

/// Samples may lie in one file, in those of a list, or in those of a pattern with first number, last number and step.
#[test]
fn samples_may_be_in_several_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mhd");
    let basic = "NDims = 3\nDimSize = 2 2 3\nElementType = MET_UCHAR\n";
    let body: Vec<u8> = (0..12).collect();
    let expected: Vec<f64> = body.iter().map(|&v| f64::from(v)).collect();
    fs::write(folder.path().join("all.raw"), &body).unwrap();
    for (i, part) in body.chunks(4).enumerate() {
        for name in [format!("s{:03}.raw", 8 + i), format!("t{}", 6 - 2 * i), format!("u{i}")] {
            fs::write(folder.path().join(name), part).unwrap();
        }
    }
    for place in [
        "all.raw",
        "LIST\ns008.raw\ns009.raw\ns010.raw",
        "LIST 2D\nu0\nu1\nu2",
        "s%03d.raw 8 10 1",
        "t%d 6 2 -2",
        "u%d 0 2 1",
    ] {
        meta(&path, basic, place, b"");
        let file = open(&path);
        assert_eq!(values(&file), expected, "{place}");
        // The last slice alone.
        let last = as_f64(&file.reader_at(2).unwrap().read(1).unwrap());
        assert_eq!(last, expected[8..], "{place}");
    }
    for (place, reason) in [
        ("gone.raw", "gone.raw"),
        ("LIST\nu0\nu1", "a.mhd"),
        ("u%d 0 2 0", "invalid pattern of file names"),
        ("u%d 2 0 1", "invalid pattern of file names"),
        ("u%s 0 2 1", "invalid pattern of file names"),
        ("../all.raw", "a.mhd"),
    ] {
        meta(&path, basic, place, b"");
        let error = match describe(&path) {
            Ok(file) => file.read(1 << 20, &Timings::new(false)).expect_err(place),
            Err(error) => error,
        };
        assert!(error.one_line().contains(reason), "{place}: {}", error.one_line());
    }
}
