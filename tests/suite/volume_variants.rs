//! Headers of NRRD, MetaImage and NumPy in all their variants: types, byte orders, encodings, axes, offsets.

use std::{fs, io::Write, path::Path};

use flate2::{Compression, write::GzEncoder};
use gpuproc::{
    data::reader::Reader,
    io::volume::{Layout, VolumeFile},
    util::timings::Timings,
};

use crate::{
    common::{run, works},
    inputs::{as_f64, describe_as, zlib},
};

/// The values of the volume number `volume` of the file `path`, and its description.
fn read(path: &Path, volume: usize) -> (VolumeFile, Vec<f64>) {
    let layout = Layout { volume: Some(volume), ..Layout::default() };
    let file = describe_as(path, &layout).unwrap_or_else(|error| panic!("{}", error.one_line()));
    let whole = file.read(1 << 20, &Timings::new(false));
    let whole = whole.unwrap_or_else(|error| panic!("{}", error.one_line()));
    (file, as_f64(&whole.samples))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The bytes of a number of the type with this name in NumPy, such as `i2`; with a fraction if it is a float.
fn number(value: i64, code: &str, is_big: bool) -> Vec<u8> {
    let mut bytes = match code {
        "f2" => half::f16::from_f64(value as f64 + 0.5).to_le_bytes().to_vec(),
        "f4" => (value as f32 + 0.5).to_le_bytes().to_vec(),
        "f8" => (value as f64 + 0.5).to_le_bytes().to_vec(),
        _ => value.to_le_bytes()[..code[1..].parse().unwrap()].to_vec(),
    };
    if is_big {
        bytes.reverse();
    }
    bytes
}

fn expected(value: i64, code: &str) -> f64 {
    value as f64 + if code.starts_with('f') { 0.5 } else { 0.0 }
}

/// Some values of a type.
fn values(code: &str, count: i64) -> Vec<i64> {
    let first = if code.starts_with('u') { 0 } else { -20 };
    (first..first + count).collect()
}

const NRRD_TYPES: [(&str, &str); 10] = [
    ("uchar", "u1"),
    ("signed char", "i1"),
    ("unsigned short", "u2"),
    ("INT16", "i2"),
    ("uint", "u4"),
    ("int", "i4"),
    ("unsigned long long", "u8"),
    ("longlong", "i8"),
    ("float", "f4"),
    ("double", "f8"),
];

#[test]
fn nrrd_is_read_in_every_type_order_and_encoding() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (name, code) in NRRD_TYPES {
        for is_big in [false, true] {
            for encoding in ["raw", "GZ", "gzip", "bz2", "bzip2", "hex", "ascii", "Text", "txt"] {
                for is_detached in [false, true] {
                    let all = values(code, 24);
                    let binary =
                        || all.iter().flat_map(|&v| number(v, code, is_big)).collect::<Vec<u8>>();
                    let text = || {
                        all.iter().map(|&v| format!("{} ", expected(v, code))).collect::<String>()
                    };
                    let body = match encoding {
                        "raw" => binary(),
                        "GZ" | "gzip" => gzip(&binary()),
                        "bz2" | "bzip2" => bzip2(&binary()),
                        "hex" => {
                            let digits = binary().into_iter().enumerate().map(|(i, byte)| {
                                format!("{byte:02x}{}", if i % 5 == 4 { "\n" } else { "" })
                            });
                            digits.collect::<String>().into_bytes()
                        }
                        _ => text().into_bytes(),
                    };
                    // The byte order is needed only where it matters.
                    let endian = match (
                        is_big,
                        code.ends_with('1') || body.starts_with(text().as_bytes()),
                    ) {
                        (_, true) => "",
                        (true, _) => "endian: Big\n",
                        (false, _) => "endian: little\n",
                    };
                    let file = if is_detached { "data file: ./body\n" } else { "" };
                    let header = format!(
                        "NRRD0004\n# comment\ntype: {name}\ndimension: 3\nsizes: 2 3 4\nencoding: {encoding}\n{endian}{file}\n"
                    );
                    let path = folder.join(if is_detached { "a.nhdr" } else { "a.nrrd" });
                    fs::write(folder.join("body"), &body).unwrap();
                    let rest = if is_detached { Vec::new() } else { body };
                    fs::write(&path, [header.clone().into_bytes(), rest].concat()).unwrap();
                    let (file, found) = read(&path, 0);
                    let values: Vec<f64> = all.iter().map(|&v| expected(v, code)).collect();
                    assert_eq!((file.dims, found), ([2, 3, 4], values), "{header}");
                }
            }
        }
    }
}

/// Kind, direction and size of an axis, and whether it belongs to space.
type Axis<'a> = (&'a str, &'a str, usize, bool);

/// An axis that does not belong to space, at each position among those that do: each of its indices is a volume.
#[test]
fn nrrd_lists_and_vectors_may_be_at_any_axis() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.seg.nrrd");
    let space = [("domain", "(1,0,0)", 4), ("space", "(0,2,0)", 3), ("domain", "(0,0,3)", 5)];
    // The kinds of further axes, and their sizes.
    for others in
        [&[("list", 2)][..], &[("vector", 3)], &[("list", 2), ("3-color", 3)], &[("???", 2)]]
    {
        for first in 0..4 {
            for second in 0..=if others.len() > 1 { 4 } else { 0 } {
                let mut axes = space.map(|(kind, way, size)| (kind, way, size, true)).to_vec();
                for (&(kind, size), at) in others.iter().zip([first, second]) {
                    axes.insert(at, (kind, "none", size, false));
                }
                let list = |text: &dyn Fn(&Axis<'_>) -> String| {
                    axes.iter().map(text).collect::<Vec<_>>().join(" ")
                };
                let (sizes, kinds) =
                    (list(&|axis| axis.2.to_string()), list(&|axis| axis.0.into()));
                let directions = list(&|axis| axis.1.into());
                for (encoding, with_directions) in
                    [("raw", true), ("gzip", true), ("ascii", true), ("raw", false)]
                {
                    // Without directions, an unknown kind belongs to space.
                    if !with_directions && kinds.contains("???") {
                        continue;
                    }
                    let directions = match with_directions {
                        true => format!("space dimension: 3\nspace directions: {directions}\n"),
                        false => String::new(),
                    };
                    let count: usize = axes.iter().map(|axis| axis.2).product();
                    let binary: Vec<u8> = (0..count as u16).flat_map(u16::to_be_bytes).collect();
                    let body = match encoding {
                        "raw" => binary,
                        "gzip" => gzip(&binary),
                        _ => (0..count).map(|i| format!("{i}\n")).collect::<String>().into_bytes(),
                    };
                    let header = format!(
                        "NRRD0005\ntype: ushort\ndimension: {}\nsizes: {sizes}\nkinds: {kinds}\n{directions}endian: big\nencoding: {encoding}\n\n",
                        axes.len()
                    );
                    fs::write(&path, [header.clone().into_bytes(), body].concat()).unwrap();
                    // The positions of the volumes' samples, the slowest axis first.
                    let volumes: usize = others.iter().map(|&(_, size)| size).product();
                    let mut samples = vec![Vec::new(); volumes];
                    for at in 0..count {
                        let (mut rest, mut volume, mut step) = (at, 0, 1);
                        for &(_, _, size, is_space) in &axes {
                            if !is_space {
                                volume += rest % size * step;
                                step *= size;
                            }
                            rest /= size;
                        }
                        samples[volume].push(at as f64);
                    }
                    for (volume, samples) in samples.iter().enumerate() {
                        let (file, found) = read(&path, volume);
                        assert_eq!((file.volumes, file.dims), (volumes, [4, 3, 5]), "{header}");
                        assert_eq!(&found, samples, "{header}");
                        // Slices from the middle on.
                        let mut reader = file.reader_at(2).unwrap();
                        let rest = as_f64(&reader.read(3).unwrap());
                        assert_eq!(rest, samples[24..], "{header}");
                        reader.expect_end().unwrap();
                        if with_directions {
                            assert_eq!(file.placement.as_ref().unwrap().spacing(), [1.0, 2.0, 3.0]);
                        }
                    }
                }
            }
        }
    }
}

/// A segmentation of 3D Slicer with two layers, in commands.
#[test]
fn layers_of_segmentations_are_volumes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let header = "NRRD0004\ntype: uchar\ndimension: 4\nspace: left-posterior-superior\nsizes: 2 4 4 4\nspace directions: none (1,0,0) (0,2,0) (0,0,3)\nkinds: list domain domain domain\nencoding: gzip\nspace origin: (1,2,3)\n\n";
    let layers: Vec<u8> = (0..64u8).flat_map(|at| [u8::from(at % 4 < 2), at / 32 * 7]).collect();
    fs::write(folder.join("v.seg.nrrd"), [header.as_bytes().to_vec(), gzip(&layers)].concat())
        .unwrap();
    let (code, stderr) = run(folder, "mesh v.seg.nrrd --labels -o v.ply");
    assert!(code == 4 && stderr.contains("2 volumes") && stderr.contains("--volume N"), "{stderr}");
    works(folder, "blur v.seg.nrrd o_4x4x4_u8.raw --sigma 0 --volume 2");
    let second: Vec<u8> = layers.iter().skip(1).step_by(2).copied().collect();
    assert_eq!(fs::read(folder.join("o_4x4x4_u8.raw")).unwrap(), second);
    for volume in 1..=2 {
        works(folder, &format!("mesh v.seg.nrrd --labels --volume {volume} -o v{volume}.ply"));
    }
    // Shards read the same layer.
    for shard in 0..3 {
        works(folder, &format!("median v.seg.nrrd s.nrrd --radius 1 --volume 2 --shard {shard}/3"));
    }
    works(folder, "median v.seg.nrrd m.nrrd --radius 1 --volume 2");
    assert!(fs::read(folder.join("s.nrrd")).unwrap() == fs::read(folder.join("m.nrrd")).unwrap());
}

/// Offsets from the start and from the end, in lines and bytes, of each encoding, in one file and in several.
#[test]
fn nrrd_offsets_are_those_of_teem() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let samples: Vec<u8> = (0..24u16).flat_map(u16::to_be_bytes).collect();
    let expected: Vec<f64> = (0..24).map(f64::from).collect();
    for encoding in ["raw", "gzip", "bzip2"] {
        let pack = |bytes: Vec<u8>| match encoding {
            "raw" => bytes,
            "gzip" => gzip(&bytes),
            _ => bzip2(&bytes),
        };
        // Bytes before and after the samples, and the lines and the number that skip them.
        for (before, after, lines, skip) in
            [(0, 0, 0, 0), (5, 0, 0, 5), (7, 0, 2, 7), (9, 0, 0, -1), (9, 3, 0, -4), (0, 2, 2, -3)]
        {
            for files in [1, 2, 3] {
                for names in ["one", "list", "pattern"] {
                    if (files == 1) != (names == "one") {
                        continue;
                    }
                    for (i, part) in samples.chunks(48 / files).enumerate() {
                        let whole = [vec![1; before], part.to_vec(), vec![2; after]].concat();
                        // Lines are skipped before the data are decompressed.
                        let lines = b"# a line\n".repeat(lines);
                        fs::write(folder.join(format!("b{i:03}")), [lines, pack(whole)].concat())
                            .unwrap();
                    }
                    let field = match names {
                        "one" => "data file: b000\n\n".to_owned(),
                        "list" => {
                            let list = (0..files).map(|i| format!("b{i:03}\n"));
                            format!("data file: LIST\n{}", list.collect::<String>())
                        }
                        _ => format!("datafile: b%03d 0 {} 1\n\n", files - 1),
                    };
                    let lines = format!("line skip: {lines}\nbyteskip: {skip}\n");
                    let header = format!(
                        "NRRD0004\ntype: uint16\ndimension: 3\nsizes: 4 3 2\nencoding: {encoding}\nendian: big\n{lines}{field}"
                    );
                    let path = folder.join("a.nhdr");
                    fs::write(&path, &header).unwrap();
                    assert_eq!(read(&path, 0).1, expected, "{header}");
                    let (file, _) = read(&path, 0);
                    let second = as_f64(&file.reader_at(1).unwrap().read(1).unwrap());
                    assert_eq!(second, expected[12..], "{header}");
                }
            }
        }
    }
    // Attached samples at the end; and what cannot be counted from there.
    let attached = |skip: &str, encoding: &str, body: &[u8]| {
        let header = format!(
            "NRRD0004\ntype: uint16\ndimension: 3\nsizes: 4 3 2\nencoding: {encoding}\nendian: big\nbyte skip: {skip}\n\n"
        );
        fs::write(folder.join("a.nrrd"), [header.into_bytes(), body.to_vec()].concat()).unwrap();
    };
    for encoding in ["raw", "gzip"] {
        let body = [vec![9; 11], samples.clone()].concat();
        attached("-1", encoding, &if encoding == "raw" { body } else { gzip(&body) });
        assert_eq!(read(&folder.join("a.nrrd"), 0).1, expected);
    }
    attached("-1", "ascii", b"1 2 3");
    let (code, stderr) = run(folder, "blur a.nrrd o.nrrd");
    assert!(code == 4 && stderr.contains("cannot be counted from the end"), "{stderr}");
    attached("-1", "gzip", &gzip(&samples[..40]));
    let (code, stderr) = run(folder, "blur a.nrrd o.nrrd");
    assert!(code == 4 && stderr.contains("a.nrrd"), "{stderr}");
}

/// The values that ITK takes for true and false.
#[test]
fn meta_image_flags_are_those_of_itk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mha");
    let check = |fields: &str, body: &[u8]| {
        let text = format!(
            "ObjectType = Image\nNDims = 3\nDimSize = 3 2 1\n{fields}ElementType = MET_SHORT\nElementDataFile = LOCAL\n"
        );
        fs::write(&path, [text.clone().into_bytes(), body.to_vec()].concat()).unwrap();
        assert_eq!(read(&path, 0).1, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "{text}");
    };
    let little: Vec<u8> = (1..7i16).flat_map(i16::to_le_bytes).collect();
    let big: Vec<u8> = (1..7i16).flat_map(i16::to_be_bytes).collect();
    let text = b"1 2 3 4 5 6\n";
    check("", &little);
    for (value, is_true) in [
        ("1", true),
        ("0", false),
        ("True", true),
        ("TRUE", true),
        ("t", true),
        ("T", true),
        ("yes", false),
        ("False", false),
        ("F", false),
        ("2", false),
    ] {
        check(&format!("BinaryData = {value}\n"), if is_true { &little } else { &text[..] });
        for name in ["BinaryDataByteOrderMSB", "ElementByteOrderMSB"] {
            check(&format!("{name} = {value}\n"), if is_true { &big } else { &little });
        }
        let packed = zlib(&little);
        check(&format!("CompressedData = {value}\n"), if is_true { &packed } else { &little });
    }
}

#[test]
fn meta_image_channels_are_volumes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mha");
    for (is_packed, kind) in
        [(false, "MET_USHORT"), (true, "MET_USHORT"), (false, "MET_USHORT_ARRAY")]
    {
        let header = format!(
            "NDims = 4\nDimSize = 2 3 2 2\nCompressedData = {is_packed}\nElementNumberOfChannels = 3\nElementType = {kind}\nElementDataFile = LOCAL\n"
        );
        let body: Vec<u8> = (0..72u16).flat_map(u16::to_le_bytes).collect();
        let body = if is_packed { zlib(&body) } else { body };
        fs::write(&path, [header.into_bytes(), body].concat()).unwrap();
        for volume in 0..6 {
            let expected: Vec<f64> =
                (0..12).map(|i| f64::from(36 * (volume / 3) + 3 * i + volume % 3)).collect();
            let (file, found) = read(&path, volume as usize);
            assert_eq!((file.volumes, found), (6, expected));
        }
    }
}

#[test]
fn numpy_is_read_in_every_type_and_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    for code in ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"] {
        for is_big in [false, true] {
            for is_fortran in [false, true] {
                let order = if is_big { '>' } else { '<' };
                let fortran = if is_fortran { "True" } else { "False" };
                let mut text = format!(
                    "{{'descr': '{order}{code}', 'fortran_order': {fortran}, 'shape': (2, 3, 4), }}"
                );
                text += &" ".repeat(117 - text.len());
                text.push('\n');
                let all = values(code, 24);
                let mut bytes = b"\x93NUMPY\x01\0\x76\0".to_vec();
                bytes.extend(text.as_bytes());
                bytes.extend(all.iter().flat_map(|&v| number(v, code, is_big)));
                fs::write(&path, bytes).unwrap();
                let at = |z: usize, y: usize, x: usize| match is_fortran {
                    true => z + 2 * (y + 3 * x),
                    false => x + 4 * (y + 3 * z),
                };
                let mut found = Vec::new();
                for z in 0..2 {
                    for y in 0..3 {
                        found.extend((0..4).map(|x| expected(all[at(z, y, x)], code)));
                    }
                }
                let (file, samples) = read(&path, 0);
                assert_eq!((file.dims, samples), ([4, 3, 2], found), "{text}");
            }
        }
    }
    // Raw volumes and arrays of 16-bit floats, too.
    let raw: Vec<u8> = values("f2", 24).iter().flat_map(|&v| number(v, "f2", false)).collect();
    fs::write(folder.path().join("v_4x3x2_float16.raw"), raw).unwrap();
    works(folder.path(), "blur v_4x3x2_float16.raw o_4x3x2_f32.raw --sigma 0");
    let (file, samples) = read(&folder.path().join("o_4x3x2_f32.raw"), 0);
    assert_eq!(file.dims, [4, 3, 2]);
    assert_eq!(samples, values("f2", 24).iter().map(|&v| expected(v, "f2")).collect::<Vec<f64>>());
    let (code, stderr) = run(folder.path(), "blur v_4x3x2_float16.raw o_4x3x2_f16.raw --sigma 0");
    assert!(code == 2 && stderr.contains("cannot be written"), "{stderr}");
    let halves: Vec<u8> =
        [2.5, -1.0, 0.25].iter().flat_map(|&v| half::f16::from_f64(v).to_le_bytes()).collect();
    let mut bytes =
        b"\x93NUMPY\x01\0\x76\0{'descr': '<f2', 'fortran_order': False, 'shape': (3,), }".to_vec();
    bytes.resize(127, b' ');
    bytes.push(b'\n');
    fs::write(&path, [bytes, halves].concat()).unwrap();
    works(folder.path(), "sort a.npy o.txt");
    let sorted = fs::read_to_string(folder.path().join("o.txt")).unwrap();
    assert_eq!(sorted.split_whitespace().collect::<Vec<_>>(), ["-1", "0.25", "2.5"]);
}

/// Colours are filtered channel by channel, and written where a format holds them.
#[test]
fn volumes_of_colours_stay_volumes_of_colours() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let dims = [6usize, 5, 4];
    let count = dims.iter().product::<usize>();
    for (colors, kind, code, bits) in [(3, "RGB-color", 128i16, 24i16), (4, "RGBA-color", 2304, 32)]
    {
        let samples: Vec<u8> = (0..count * colors).map(|i| (i * i % 251) as u8).collect();
        let header = format!(
            "NRRD0004\ntype: uchar\ndimension: 4\nsizes: {colors} 6 5 4\nkinds: {kind} domain domain domain\nencoding: raw\nspacings: nan 1 2 3\n\n"
        );
        fs::write(folder.join("c.nrrd"), [header.into_bytes(), samples.clone()].concat()).unwrap();
        works(folder, "blur c.nrrd c.nii --sigma 0");
        let nifti = fs::read(folder.join("c.nii")).unwrap();
        assert_eq!([&nifti[70..72], &nifti[72..74]], [code.to_le_bytes(), bits.to_le_bytes()]);
        assert!(nifti.ends_with(&samples), "{kind}");
        for line in [
            "blur -s 1",
            "median -r 1",
            "morph --op dilate",
            "resize --size 4x7x4",
            "project --axis z",
        ] {
            let (command, flags) = line.split_once(' ').unwrap();
            works(folder, &format!("{command} c.nii {flags} -o o.nrrd"));
            let whole = fs::read(folder.join("o.nrrd")).unwrap();
            for color in 0..colors {
                let one: Vec<u8> = samples.iter().skip(color).step_by(colors).copied().collect();
                fs::write(folder.join("one_6x5x4_u8.raw"), &one).unwrap();
                works(folder, &format!("{command} one_6x5x4_u8.raw {flags} -o one.raw"));
                let one = fs::read(folder.join("one.raw")).unwrap();
                let own = &whole[whole.len() - colors * one.len()..];
                let found: Vec<u8> = own.iter().skip(color).step_by(colors).copied().collect();
                assert_eq!(found, one, "{line}: colour {color} of {kind}");
            }
        }
        // Shards and small blocks.
        works(folder, "blur c.nii -s 1 -o whole.nii");
        works(folder, "blur c.nii -s 1 -o slow.nii --max-memory 16K");
        (0..3)
            .for_each(|i| drop(works(folder, &format!("blur c.nii -s 1 -o s.nii --shard {i}/3"))));
        let whole = fs::read(folder.join("whole.nii")).unwrap();
        for name in ["slow.nii", "s.nii"] {
            assert!(fs::read(folder.join(name)).unwrap() == whole, "{name}");
        }
        fs::remove_file(folder.join("s.nii")).unwrap();
        // One value for each sample.
        works(folder, "threshold c.nii -o t.nii --value 100");
        assert_eq!(fs::read(folder.join("t.nii")).unwrap().len(), 352 + count);
        for output in ["o.mha", "o.mrc", "o.npy", "o.tif", "o.raw"] {
            let (code, stderr) = run(folder, &format!("blur c.nii -s 1 -o {output}"));
            assert!(code == 2 && stderr.contains("use .nrrd"), "{output}: {stderr}");
        }
        // Meshes take the mean.
        let stderr = works(folder, "mesh c.nii --iso 100 -o c.ply");
        assert!(stderr.contains("colours become grey"), "{stderr}");
        let (file, found) = read(&folder.join("c.nii"), 0);
        let mean = |rgb: &[u8]| (rgb[..3].iter().map(|&v| f64::from(v)).sum::<f64>() / 3.0).round();
        assert_eq!(found, samples.chunks(colors).map(mean).collect::<Vec<f64>>());
        assert_eq!(file.warnings().count(), 1);
    }
}
