//! Headers of NIfTI outputs keep what the input states, as far as it stays true.

use std::{fs, path::Path};

use crate::common::{info_json, run, works};

/// How a field is stored, in version 1 and in version 2.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    /// 2 and 4 bytes.
    Int,
    /// 1 and 4 bytes.
    Code,
    /// 2 and 8 bytes.
    Size,
    /// Floats of 4 and 8 bytes.
    Real,
    /// A byte in both.
    Byte,
}
use Kind::{Byte, Code, Int, Real, Size};

/// Names, offsets in version 1 and 2, kinds, and values of all fields that `blur --sigma 0` keeps.
const FIELDS: [(&str, [usize; 2], Kind, &[f64]); 16] = [
    ("dim_info", [39, 524], Byte, &[57.0]),
    ("intent_p", [56, 80], Real, &[12.5, -3.0, 0.1]),
    ("intent_code", [68, 504], Int, &[3.0]),
    ("slice_start", [74, 224], Size, &[1.0]),
    ("slice_end", [120, 232], Size, &[4.0]),
    ("slice_code", [122, 496], Code, &[3.0]),
    ("xyzt_units", [123, 500], Code, &[11.0]),
    ("cal_max", [124, 192], Real, &[900.5]),
    ("cal_min", [128, 200], Real, &[-20.0]),
    ("slice_duration", [132, 208], Real, &[0.07]),
    ("toffset", [136, 216], Real, &[4.5]),
    ("qform_code", [252, 344], Int, &[2.0]),
    ("sform_code", [254, 348], Int, &[4.0]),
    ("quatern", [256, 352], Real, &[0.1, -0.5, 0.7, 11.0, -22.0, 33.3]),
    (
        "srow",
        [280, 400],
        Real,
        &[-1.5, 0.1, 0.0, 90.0, 0.2, 2.0, 0.3, -126.0, 0.0, 0.1, 2.5, -72.0],
    ),
    ("pixdim", [76, 104], Real, &[-1.0, 1.5, 2.0, 2.5, 0.8, 1.0, 1.0, 1.0]),
];
const TEXTS: [(&str, [usize; 2], usize, &[u8]); 3] = [
    ("descrip", [148, 240], 80, b"FSL5.0 \xb5m "),
    ("aux_file", [228, 320], 24, b"atlas.txt"),
    ("intent_name", [328, 508], 16, b"t-values"),
];

/// Version and byte order of a header.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub is_version_2: bool,
    pub is_big: bool,
}

/// Little-endian, as outputs are.
pub const ONE: Style = Style { is_version_2: false, is_big: false };

impl Style {
    pub fn put(self, bytes: &mut [u8], at: usize, own: &[u8]) {
        let field = &mut bytes[at..at + own.len()];
        field.copy_from_slice(own);
        if self.is_big {
            field.reverse();
        }
    }

    fn width(self, kind: Kind) -> usize {
        match (kind, self.is_version_2) {
            (Byte, _) | (Code, false) => 1,
            (Int | Size, false) => 2,
            (Int | Code, true) | (Real, false) => 4,
            (Size | Real, true) => 8,
        }
    }

    pub fn set(self, bytes: &mut [u8], offsets: [usize; 2], kind: Kind, values: &[f64]) {
        let (width, at) = (self.width(kind), offsets[usize::from(self.is_version_2)]);
        for (i, &value) in values.iter().enumerate() {
            let own = match (kind, width) {
                (Real, 4) => (value as f32).to_le_bytes().to_vec(),
                (Real, _) => value.to_le_bytes().to_vec(),
                _ => (value as i64).to_le_bytes()[..width].to_vec(),
            };
            self.put(bytes, at + i * width, &own);
        }
    }

    fn get(self, bytes: &[u8], offsets: [usize; 2], kind: Kind, count: usize) -> Vec<f64> {
        let (width, at) = (self.width(kind), offsets[usize::from(self.is_version_2)]);
        let number = |i: usize| {
            let mut own = bytes[at + i * width..][..width].to_vec();
            if self.is_big {
                own.reverse();
            }
            match (kind, width) {
                (Real, 4) => f64::from(f32::from_le_bytes(own.try_into().unwrap())),
                (Real, _) => f64::from_le_bytes(own.try_into().unwrap()),
                (_, 1) => own[0].into(),
                (_, 2) => i16::from_le_bytes(own.try_into().unwrap()).into(),
                (_, 4) => i32::from_le_bytes(own.try_into().unwrap()).into(),
                _ => i64::from_le_bytes(own.try_into().unwrap()) as f64,
            }
        };
        (0..count).map(number).collect()
    }

    /// A header of `dims` with all of [`FIELDS`] and [`TEXTS`], up to the samples.
    pub fn header(self, dims: &[usize], [datatype, bits]: [i16; 2], is_pair: bool) -> Vec<u8> {
        let size = if self.is_version_2 { 540 } else { 348 };
        let mut bytes = vec![0; size + if is_pair { 0 } else { 4 }];
        self.put(&mut bytes, 0, &(size as i32).to_le_bytes());
        let magic: &[u8] = match (self.is_version_2, is_pair) {
            (false, false) => b"n+1\0",
            (false, true) => b"ni1\0",
            (true, false) => b"n+2\0\r\n\x1a\n",
            (true, true) => b"ni2\0\r\n\x1a\n",
        };
        let at = if self.is_version_2 { 4 } else { 344 };
        bytes[at..at + magic.len()].copy_from_slice(magic);
        let mut axes = vec![dims.len() as f64];
        axes.extend(dims.iter().map(|&dim| dim as f64));
        axes.resize(8, 1.0);
        self.set(&mut bytes, [40, 16], Size, &axes);
        for (offsets, value) in [([70, 12], datatype), ([72, 14], bits)] {
            let at = offsets[usize::from(self.is_version_2)];
            self.put(&mut bytes, at, &value.to_le_bytes());
        }
        let offset = if is_pair { 0.0 } else { bytes.len() as f64 };
        let kind = if self.is_version_2 { Size } else { Real };
        self.set(&mut bytes, [108, 168], kind, &[offset]);
        for (_, offsets, kind, values) in FIELDS {
            self.set(&mut bytes, offsets, kind, values);
        }
        for (_, offsets, _, text) in TEXTS {
            let at = offsets[usize::from(self.is_version_2)];
            bytes[at..at + text.len()].copy_from_slice(text);
        }
        bytes
    }

    fn field(self, bytes: &[u8], name: &str) -> Vec<f64> {
        let (_, offsets, kind, values) = FIELDS.iter().find(|field| field.0 == name).unwrap();
        self.get(bytes, *offsets, *kind, values.len())
    }

    fn text(self, bytes: &[u8], name: &str) -> Vec<u8> {
        let (_, offsets, len, _) = TEXTS.iter().find(|field| field.0 == name).unwrap();
        bytes[offsets[usize::from(self.is_version_2)]..][..*len].to_vec()
    }

    /// The matrix of the quaternion, as in the definition of the format: for each world axis, the steps and the offset.
    fn qform(self, bytes: &[u8]) -> [[f64; 4]; 3] {
        let p = self.field(bytes, "pixdim");
        let [b, c, d, x, y, z] = self.field(bytes, "quatern").try_into().unwrap();
        let a = f64::sqrt(1.0 - b * b - c * c - d * d);
        let rows = [
            [a * a + b * b - c * c - d * d, 2.0 * (b * c - a * d), 2.0 * (b * d + a * c), x],
            [2.0 * (b * c + a * d), a * a + c * c - b * b - d * d, 2.0 * (c * d - a * b), y],
            [2.0 * (b * d - a * c), 2.0 * (c * d + a * b), a * a + d * d - b * b - c * c, z],
        ];
        rows.map(|[r, s, t, first]| [r * p[1], s * p[2], t * p[3] * p[0].signum(), first])
    }

    fn sform(self, bytes: &[u8]) -> [[f64; 4]; 3] {
        let rows = self.field(bytes, "srow");
        std::array::from_fn(|row| std::array::from_fn(|i| rows[4 * row + i]))
    }
}

/// Writes a volume of 7x6x5 u16 samples whose header has all fields.
fn write_input(path: &Path) {
    let samples: Vec<u8> = (0..7 * 6 * 5u16).flat_map(u16::to_le_bytes).collect();
    fs::write(path, [ONE.header(&[7, 6, 5], [512, 16], false), samples].concat()).unwrap();
}

fn assert_close(found: [[f64; 4]; 3], expected: [[f64; 4]; 3], context: &str) {
    let pairs = found.as_flattened().iter().zip(expected.as_flattened());
    for (a, b) in pairs {
        assert!((a - b).abs() < 2e-5 * (1.0 + b.abs()), "{context}: {found:?}, {expected:?}");
    }
}

/// Checks that the fields `changed` are 0, or empty, and all others are those of the input.
fn assert_kept(bytes: &[u8], style: Style, changed: &[&str], context: &str) {
    for (name, _, kind, values) in FIELDS {
        let round = |&value: &f64| match (kind, style.is_version_2) {
            (Real, false) => f64::from(value as f32),
            _ => value,
        };
        let kept: Vec<f64> = match changed.contains(&name) {
            true => vec![0.0; values.len()],
            false => values.iter().map(round).collect(),
        };
        assert_eq!(style.field(bytes, name), kept, "{context}: {name}");
    }
    for (name, _, len, text) in TEXTS {
        let mut kept = if changed.contains(&name) { Vec::new() } else { text.to_vec() };
        kept.resize(len, 0);
        assert_eq!(style.text(bytes, name), kept, "{context}: {name}");
    }
}

const INTENT: [&str; 3] = ["intent_p", "intent_code", "intent_name"];
const DISPLAY: [&str; 2] = ["cal_max", "cal_min"];
const SLICES: [&str; 4] = ["slice_start", "slice_end", "slice_code", "slice_duration"];

#[test]
fn all_fields_come_back_from_every_kind_of_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for is_version_2 in [false, true] {
        for is_big in [false, true] {
            for is_pair in [false, true] {
                let style = Style { is_version_2, is_big };
                let header = style.header(&[3, 2, 6], [4, 16], is_pair);
                let mut samples: Vec<u8> = (0..36i16).flat_map(i16::to_le_bytes).collect();
                if is_big {
                    samples.chunks_exact_mut(2).for_each(<[u8]>::reverse);
                }
                match is_pair {
                    true => {
                        fs::write(folder.join("p.hdr"), header).unwrap();
                        fs::write(folder.join("p.img"), samples).unwrap();
                    }
                    false => fs::write(folder.join("a.nii"), [header, samples].concat()).unwrap(),
                }
                let input = if is_pair { "p.hdr" } else { "a.nii" };
                works(folder, &format!("blur {input} o.nii --sigma 0 --strict"));
                let output = fs::read(folder.join("o.nii")).unwrap();
                let context = format!("{style:?}, pair {is_pair}");
                assert_kept(&output, Style { is_big: false, ..style }, &[], &context);
                let expected: Vec<u8> = (0..36i16).flat_map(i16::to_le_bytes).collect();
                assert!(output.ends_with(&expected), "{context}");
            }
        }
    }
}

#[test]
fn filters_keep_what_stays_true() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_input(&folder.join("a.nii"));
    let meaning = [&INTENT[..], &DISPLAY].concat();
    let cases: [(&str, &[&str]); 12] = [
        ("blur --sigma 1", &[]),
        ("median --radius 1", &[]),
        ("morph --op dilate", &[]),
        ("unsharp", &[]),
        ("blur --sigma 1 --then median --radius 1", &[]),
        ("morph --op gradient", &meaning),
        ("gradient", &meaning),
        ("threshold --value 50", &meaning),
        ("threshold --otsu", &meaning),
        ("label", &meaning),
        ("blur --sigma 1 --then threshold --value 50 --then median --radius 1", &meaning),
        ("threshold --value 50 --then label", &meaning),
    ];
    for (line, changed) in cases {
        let (command, flags) = line.split_once(' ').unwrap_or((line, ""));
        works(folder, &format!("{command} a.nii {flags} -o o.nii"));
        let output = fs::read(folder.join("o.nii")).unwrap();
        assert_kept(&output, ONE, changed, line);
        if !line.starts_with("blur") {
            continue;
        }
        // Shards write the same header.
        for shard in 0..2 {
            works(folder, &format!("{command} a.nii {flags} -o s.nii --shard {shard}/2"));
        }
        assert!(fs::read(folder.join("s.nii")).unwrap() == output, "{line}");
        fs::remove_file(folder.join("s.nii")).unwrap();
    }
}

/// Means of labels are not labels; their medians are.
#[test]
fn labels_stay_labels_only_if_they_are_selected() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_input(&folder.join("a.nii"));
    let mut bytes = fs::read(folder.join("a.nii")).unwrap();
    ONE.set(&mut bytes, [68, 504], Int, &[1002.0]);
    fs::write(folder.join("a.nii"), bytes).unwrap();
    for (line, code) in [
        ("blur --sigma 1", 0.0),
        ("blur --sigma 0", 1002.0),
        ("median --radius 1", 1002.0),
        ("resize --scale 2 --filter nearest", 1002.0),
        ("resize --scale 2 --filter linear", 0.0),
        ("project --method max", 1002.0),
        ("project --method mean", 0.0),
    ] {
        let (command, flags) = line.split_once(' ').unwrap();
        works(folder, &format!("{command} a.nii {flags} -o o.nii"));
        let output = fs::read(folder.join("o.nii")).unwrap();
        assert_eq!(ONE.field(&output, "intent_code"), [code], "{line}");
    }
    // Other formats hold it as text, and give it back.
    works(folder, "blur a.nii a.nrrd --sigma 0");
    works(folder, "blur a.nrrd b.nii --sigma 0");
    let back = fs::read(folder.join("b.nii")).unwrap();
    assert_eq!(ONE.field(&back, "intent_code"), [1002.0]);
    assert_eq!(
        ONE.field(&back, "intent_p"),
        ONE.field(&fs::read(folder.join("a.nii")).unwrap(), "intent_p")
    );
}

#[test]
fn both_maps_follow_the_samples() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_input(&folder.join("a.nii"));
    let input = fs::read(folder.join("a.nii")).unwrap();
    // The factor of each axis.
    for (line, scale) in [
        ("resize --size 14x3x5", [0.5, 2.0, 1.0]),
        ("resize --scale 1,1,2", [1.0, 1.0, 0.5]),
        ("project --axis z", [1.0, 1.0, 5.0]),
        ("project --axis x --method mean", [7.0, 1.0, 1.0]),
        ("blur --sigma 1 --then resize --size 14x6x10", [0.5, 1.0, 0.5]),
    ] {
        let (command, flags) = line.split_once(' ').unwrap();
        works(folder, &format!("{command} a.nii {flags} -o o.nii"));
        let output = fs::read(folder.join("o.nii")).unwrap();
        let moved = |map: [[f64; 4]; 3]| {
            map.map(|row| {
                let way = |i: usize| row[i] * (scale[i] - 1.0) / 2.0;
                [
                    row[0] * scale[0],
                    row[1] * scale[1],
                    row[2] * scale[2],
                    row[3] + way(0) + way(1) + way(2),
                ]
            })
        };
        assert_close(ONE.sform(&output), moved(ONE.sform(&input)), line);
        assert_close(ONE.qform(&output), moved(ONE.qform(&input)), line);
        for (name, kept) in [("qform_code", 2.0), ("sform_code", 4.0), ("xyzt_units", 11.0)] {
            assert_eq!(ONE.field(&output, name), [kept], "{line}: {name}");
        }
        assert_eq!(ONE.field(&output, "pixdim")[4..], ONE.field(&input, "pixdim")[4..], "{line}");
        for name in SLICES {
            assert_eq!(ONE.field(&output, name), [0.0], "{line}: {name}");
        }
    }
}

#[test]
fn each_code_and_unit_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_input(&folder.join("a.nii"));
    let input = fs::read(folder.join("a.nii")).unwrap();
    // Metres, millimetres, micrometres, none; also with units of time.
    let units = [0, 1, 2, 3, 2 + 16, 3 + 24];
    for ((q, s), unit) in [(0, 0), (0, 5), (5, 0), (3, 1), (1, 2), (4, 4)].into_iter().zip(units) {
        let mut bytes = input.clone();
        ONE.set(&mut bytes, [252, 344], Int, &[q.into()]);
        ONE.set(&mut bytes, [254, 348], Int, &[s.into()]);
        ONE.set(&mut bytes, [123, 500], Code, &[unit.into()]);
        fs::write(folder.join("b.nii"), &bytes).unwrap();
        works(folder, "blur b.nii o.nii --sigma 0 --strict");
        let output = fs::read(folder.join("o.nii")).unwrap();
        // The slope, and a field that old programs expect.
        ONE.set(&mut bytes, [112, 176], Real, &[1.0]);
        bytes[38] = b'r';
        assert_eq!(output[..348], bytes[..348], "{q} {s} {unit}");
    }
}

/// The time of a volume is that of the first one and a number of steps.
#[test]
fn one_volume_of_several_keeps_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut bytes = ONE.header(&[2, 2, 2, 3], [2, 8], false);
    bytes.extend(0..24);
    fs::write(folder.join("a.nii"), &bytes).unwrap();
    works(folder, "blur a.nii o.nii --sigma 0 --volume 3");
    let output = fs::read(folder.join("o.nii")).unwrap();
    assert!(output.ends_with(&(16..24).collect::<Vec<u8>>()));
    let step = f64::from(0.8f32);
    assert_eq!(ONE.field(&output, "toffset"), [f64::from((4.5 + 2.0 * step) as f32)]);
    assert_eq!(ONE.field(&output, "pixdim")[4], step);
    // A component of a vector is not a vector.
    let mut bytes = ONE.header(&[2, 2, 2, 1, 3], [2, 8], false);
    bytes.extend(0..24);
    ONE.set(&mut bytes, [68, 504], Int, &[1007.0]);
    fs::write(folder.join("v.nii"), &bytes).unwrap();
    works(folder, "blur v.nii o.nii --sigma 0 --volume 2");
    let output = fs::read(folder.join("o.nii")).unwrap();
    assert_eq!(ONE.field(&output, "intent_code"), [0.0]);
    assert_eq!(ONE.field(&output, "toffset"), [4.5]);
    let (code, stderr) = run(folder, "blur v.nii o.nii");
    assert!(code == 4 && stderr.contains("3 components of its vectors"), "{stderr}");
    assert!(stderr.contains("--volume N"), "{stderr}");
}

/// Without an anatomical space, no map is claimed. What is lost is reported.
#[test]
fn no_map_without_an_anatomical_space() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let header = |space: &str, directions: &str, origin: &str| {
        format!(
            "NRRD0005\ntype: uchar\ndimension: 3\nsizes: 2 2 2\nencoding: raw\n{space}\nspace directions: {directions}\nspace origin: {origin}\n\n01234567"
        )
    };
    let (straight, turned) = ("(1,0,0) (0,2,0) (0,0,3)", "(0,2,0) (1,0,0) (0,0,3)");
    for (space, directions, origin, codes, is_lost) in [
        ("space dimension: 3", straight, "(1,2,3)", [0.0; 2], true),
        ("space dimension: 3", straight, "(0.5,0,0)", [0.0; 2], false),
        ("space dimension: 3", turned, "(0,0,0)", [0.0; 2], true),
        ("space: left-posterior-superior", straight, "(1,2,3)", [1.0; 2], false),
        ("space: RAST", straight, "(1,2,3)", [1.0; 2], false),
    ] {
        fs::write(folder.join("a.nrrd"), header(space, directions, origin)).unwrap();
        let stderr = works(folder, "blur a.nrrd o.nii --sigma 0");
        assert_eq!(stderr.contains("unknown anatomical space are dropped"), is_lost, "{stderr}");
        let (code, _) = run(folder, "blur a.nrrd s.nii --sigma 0 --strict");
        assert_eq!(code, if is_lost { 4 } else { 0 });
        let output = fs::read(folder.join("o.nii")).unwrap();
        let found = ["qform_code", "sform_code"].map(|name| ONE.field(&output, name)[0]);
        assert_eq!(found, codes, "{space} {directions} {origin}");
        let spacing = if directions == straight { [1.0, 2.0, 3.0] } else { [2.0, 1.0, 3.0] };
        assert_eq!(ONE.field(&output, "pixdim")[1..4], spacing);
    }
}

/// A qform that differs from the sform is named, and other formats report that they lose it.
#[test]
fn another_qform_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_input(&folder.join("a.nii"));
    let info = info_json(folder, "a.nii");
    assert!(info[0]["metadata"].to_string().contains("differs from the sform"), "{info:?}");
    for output in ["o.nrrd", "o.mha"] {
        let stderr = works(folder, &format!("blur a.nii {output} --sigma 0"));
        assert!(stderr.contains("qform"), "{stderr}");
    }
}
