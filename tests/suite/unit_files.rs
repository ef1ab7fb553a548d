//! Volume files in all units of length. They are written here and read back according to the specifications, without
//! gpuproc's own readers.

use std::{collections::HashMap, fs, path::Path};

use serde_json::Value;

use crate::asserts::assert_contains;

/// Number of samples along x, y and z.
const DIMS: [usize; 3] = [6, 5, 4];

pub const SPACING: [f64; 3] = [0.5, 0.75, 2.0];

pub fn samples() -> Vec<u8> {
    (0..120u32).map(|i| (i * 53 % 251) as u8).collect()
}

/// The length of a unit in nanometres.
pub fn nanometres(unit: &str) -> f64 {
    match unit {
        "m" => 1e9,
        "cm" => 1e7,
        "mm" => 1e6,
        "um" => 1e3,
        "nm" => 1.0,
        "angstrom" => 0.1,
        "in" => 2.54e7,
        other => panic!("{other}"),
    }
}

/// The spacing and the name of its unit; `None` if the file states none.
pub type SpacingAndUnit = (Option<[f64; 3]>, Option<String>);

/// Writes files in all units of each format to `folder`. Returns their names and the units that `info` should print;
/// `None` if the file states no unit.
pub fn write_sources(folder: &Path) -> Vec<(String, Option<&'static str>)> {
    let mut all = Vec::new();
    let mut add = |name: String, bytes: Vec<u8>, unit: Option<&'static str>| {
        fs::write(folder.join(&name), bytes).unwrap();
        all.push((name, unit));
    };
    for (code, unit) in [(0, None), (1, Some("m")), (2, Some("mm")), (3, Some("um"))] {
        add(format!("nifti{code}.nii"), nifti(code), unit);
    }
    for (number, (name, unit)) in [
        ("", None),
        ("m", Some("m")),
        ("mm", Some("mm")),
        ("microns", Some("um")),
        ("nm", Some("nm")),
        ("???", None),
    ]
    .into_iter()
    .enumerate()
    {
        let list = format!("\"{name}\" \"{name}\" \"{name}\"");
        add(
            format!("nrrd{number}.nrrd"),
            nrrd_with_directions(&format!("space units: {list}")),
            unit,
        );
        let spacings = format!("spacings: 0.5 0.75 2\nunits: {list}");
        add(format!("nrrd_spacings{number}.nrrd"), nrrd_with_lines(&spacings), unit);
    }
    for (number, (line, unit)) in [
        ("", Some("mm")),
        ("DistanceUnits = mm\n", Some("mm")),
        ("DistanceUnits = um\n", Some("um")),
        ("DistanceUnits = cm\n", Some("cm")),
        ("DistanceUnits = ?\n", None),
    ]
    .into_iter()
    .enumerate()
    {
        add(format!("meta{number}.mha"), meta_image(line, "0.5 0.75 2"), unit);
    }
    add("mrc.mrc".into(), mrc(), Some("angstrom"));
    for (number, (lines, unit)) in [
        ("", None),
        ("unit=pixel\n", None),
        ("unit=micron\n", Some("um")),
        ("unit=\\u00B5m\n", Some("um")),
        ("unit=mm\n", Some("mm")),
        ("unit=cm\n", Some("cm")),
        ("unit=nm\n", Some("nm")),
        ("unit=inch\n", Some("in")),
    ]
    .into_iter()
    .enumerate()
    {
        let text = format!("ImageJ=1.54f\nimages=4\nslices=4\n{lines}spacing=2\n");
        add(format!("imagej{number}.tif"), tiff_with_description(&text), unit);
    }
    for (number, (name, unit)) in [
        ("", Some("um")),
        ("m", Some("m")),
        ("mm", Some("mm")),
        ("\u{b5}m", Some("um")),
        ("nm", Some("nm")),
        ("\u{c5}", Some("angstrom")),
        ("pixel", None),
    ]
    .into_iter()
    .enumerate()
    {
        add(
            format!("ome{number}.ome.tif"),
            tiff_with_description(&ome_xml(SPACING, [name; 3])),
            unit,
        );
    }
    for (number, (name, unit)) in [
        (None, None),
        (Some("meter"), Some("m")),
        (Some("millimeter"), Some("mm")),
        (Some("micrometer"), Some("um")),
        (Some("nanometer"), Some("nm")),
        (Some("angstrom"), Some("angstrom")),
    ]
    .into_iter()
    .enumerate()
    {
        let file = format!("zarr{number}.zarr");
        write_zarr(&folder.join(&file), SPACING, [name; 3]);
        all.push((file, unit));
    }
    all
}

fn nifti(unit: u8) -> Vec<u8> {
    let mut bytes = vec![0; 352];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &348u32.to_le_bytes());
    for (i, size) in [3, 6, 5, 4, 1, 1, 1, 1].into_iter().enumerate() {
        put(40 + 2 * i, &i16::to_le_bytes(size));
    }
    put(70, &[2, 0, 8, 0]);
    for (i, size) in [1.0, 0.5, 0.75, 2.0].into_iter().enumerate() {
        put(76 + 4 * i, &f32::to_le_bytes(size));
    }
    put(108, &352f32.to_le_bytes());
    put(123, &[unit]);
    put(344, b"n+1\0");
    [bytes, samples()].concat()
}

fn nrrd_with_directions(line: &str) -> Vec<u8> {
    let space = "space dimension: 3\nspace directions: (0.5,0,0) (0,0.75,0) (0,0,2)\n";
    nrrd_with_lines(&format!("{space}{line}"))
}

pub fn nrrd_with_lines(lines: &str) -> Vec<u8> {
    let head = "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 6 5 4\nencoding: raw\n";
    [format!("{head}{lines}\n\n").as_bytes(), &samples()].concat()
}

pub fn meta_image(line: &str, spacing: &str) -> Vec<u8> {
    let head = format!(
        "ObjectType = Image\nNDims = 3\nBinaryData = True\n{line}ElementSpacing = {spacing}\nDimSize = 6 5 4\n\
         ElementType = MET_UCHAR\nElementDataFile = LOCAL\n"
    );
    [head.as_bytes(), &samples()].concat()
}

fn mrc() -> Vec<u8> {
    let mut bytes = vec![0; 1024];
    let mut put = |word: usize, value: [u8; 4]| bytes[4 * word..][..4].copy_from_slice(&value);
    for axis in 0..3 {
        let dim = DIMS[axis] as i32;
        put(axis, dim.to_le_bytes());
        put(7 + axis, dim.to_le_bytes());
        put(10 + axis, ((SPACING[axis] * f64::from(dim)) as f32).to_le_bytes());
        put(13 + axis, 90f32.to_le_bytes());
        put(16 + axis, (axis as i32 + 1).to_le_bytes());
    }
    put(52, *b"MAP ");
    put(53, [0x44, 0x44, 0, 0]);
    [bytes, samples()].concat()
}

pub fn ome_xml(size: [f64; 3], units: [&str; 3]) -> String {
    let sizes =
        ["X", "Y", "Z"].iter().zip(size).zip(units).map(|((axis, size), unit)| match unit {
            "" => format!(" PhysicalSize{axis}=\"{size}\""),
            unit => format!(" PhysicalSize{axis}=\"{size}\" PhysicalSize{axis}Unit=\"{unit}\""),
        });
    let sizes: String = sizes.collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><OME><Image><Pixels DimensionOrder=\"XYZCT\" SizeX=\"6\" \
         SizeY=\"5\" SizeZ=\"4\" SizeC=\"1\" SizeT=\"1\" Type=\"uint8\"{sizes}><TiffData/></Pixels></Image></OME>"
    )
}

/// Four pages with the description `text`. The resolution is 2 and 4/3 pixels per unit.
pub fn tiff_with_description(text: &str) -> Vec<u8> {
    const ENTRIES: u32 = 12;
    let directory = 2 + 12 * ENTRIES + 4;
    let mut file = b"II*\0\x08\0\0\0".to_vec();
    let text = [text.as_bytes(), b"\0"].concat();
    let (fractions, words) = (8 + 4 * directory, 8 + 4 * directory + 16);
    let data = words + text.len() as u32;
    for page in 0..4 {
        file.extend((ENTRIES as u16).to_le_bytes());
        for (tag, kind, count, value) in [
            (256u16, 4u16, 1, 6u32),
            (257, 4, 1, 5),
            (258, 3, 1, 8),
            (259, 3, 1, 1),
            (262, 3, 1, 1),
            (270, 2, text.len() as u32, words),
            (273, 4, 1, data + 30 * page),
            (277, 3, 1, 1),
            (279, 4, 1, 30),
            (282, 5, 1, fractions),
            (283, 5, 1, fractions + 8),
            (296, 3, 1, 1),
        ] {
            file.extend([tag.to_le_bytes(), kind.to_le_bytes()].concat());
            file.extend([count, value].map(u32::to_le_bytes).concat());
        }
        let next = 8 + directory * (page + 1);
        file.extend(if page < 3 { next } else { 0 }.to_le_bytes());
    }
    file.extend([2u32, 1, 4, 3].map(u32::to_le_bytes).concat());
    [file, text, samples()].concat()
}

pub fn write_zarr(folder: &Path, scale: [f64; 3], units: [Option<&str>; 3]) {
    fs::create_dir_all(folder.join("0/c/0/0")).unwrap();
    let axes = ["z", "y", "x"].iter().zip(units.iter().rev()).map(|(name, unit)| match unit {
        None => serde_json::json!({"name": name, "type": "space"}),
        Some(unit) => serde_json::json!({"name": name, "type": "space", "unit": unit}),
    });
    let scale: Vec<f64> = scale.into_iter().rev().collect();
    let group = serde_json::json!({"zarr_format": 3, "node_type": "group", "attributes": {"ome": {
        "version": "0.5", "multiscales": [{"axes": axes.collect::<Vec<_>>(), "datasets": [
            {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": scale}]}]}]}}});
    let array = serde_json::json!({"zarr_format": 3, "node_type": "array", "shape": [4, 5, 6], "data_type": "uint8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 5, 6]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0, "codecs": [{"name": "bytes"}]});
    fs::write(folder.join("zarr.json"), group.to_string()).unwrap();
    fs::write(folder.join("0/zarr.json"), array.to_string()).unwrap();
    fs::write(folder.join("0/c/0/0/0"), samples()).unwrap();
}

/// The spacing and unit of a written file, read according to the specification of its format.
pub fn read_spacing_and_unit(path: &Path) -> SpacingAndUnit {
    let extension = path.extension().unwrap().to_str().unwrap();
    if extension == "zarr" {
        let text = fs::read(path.join("zarr.json")).unwrap();
        let json: Value = serde_json::from_slice(&text).unwrap();
        let image = &json["attributes"]["ome"]["multiscales"][0];
        let scale = &image["datasets"][0]["coordinateTransformations"][0]["scale"];
        let spacing = [2, 1, 0].map(|axis| scale[axis].as_f64().unwrap());
        let units: Vec<Option<&str>> = (0..3).map(|i| image["axes"][i]["unit"].as_str()).collect();
        assert!(units.iter().all(|unit| *unit == units[0]));
        let unit = units[0].map(|unit| match unit {
            "meter" => "m",
            "centimeter" => "cm",
            "millimeter" => "mm",
            "micrometer" => "um",
            "nanometer" => "nm",
            "inch" => "in",
            other => other,
        });
        return (Some(spacing), unit.map(str::to_owned));
    }
    let bytes = fs::read(path).unwrap();
    let float = |at: usize| f64::from(f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()));
    let text = String::from_utf8_lossy(&bytes);
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.map(|rest| rest.trim_start_matches([' ', ':', '=']).trim().to_owned())
    };
    match extension {
        "nii" => {
            let unit = [None, Some("m"), Some("mm"), Some("um")][usize::from(bytes[123] & 7)];
            (Some([80, 84, 88].map(float)), unit.map(str::to_owned))
        }
        "nrrd" => {
            let spacing = field("space directions").map(|text| {
                let vectors: Vec<&str> = text.split_whitespace().collect();
                [0, 1, 2].map(|axis| {
                    let vector = vectors[axis].trim_matches(['(', ')']);
                    vector.split(',').nth(axis).unwrap().parse().unwrap()
                })
            });
            (spacing, field("space units").map(|list| list.split('"').nth(1).unwrap().to_owned()))
        }
        "mha" => {
            let spacing = field("ElementSpacing").map(|list| {
                let numbers: Vec<f64> = list.split(' ').map(|word| word.parse().unwrap()).collect();
                numbers.try_into().unwrap()
            });
            (spacing, field("DistanceUnits").filter(|unit| unit != "?"))
        }
        "mrc" => {
            let cell = [0, 1, 2].map(|axis| float(40 + 4 * axis) / DIMS[axis] as f64);
            (Some(cell).filter(|cell| *cell != [0.0; 3]), Some("angstrom".into()))
        }
        _ => {
            let tags = first_directory(&bytes);
            let fraction = |tag: u16| {
                let at = *tags.get(&tag)? as usize;
                let part = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
                Some(f64::from(part(at + 4)) / f64::from(part(at)))
            };
            let depth = field("spacing").map(|depth| depth.parse().unwrap());
            let spacing = fraction(282).map(|x| [x, fraction(283).unwrap(), depth.unwrap()]);
            let unit = field("unit").map(|unit| if unit == "micron" { "um".into() } else { unit });
            (spacing, unit)
        }
    }
}

/// The values of the entries of a little-endian TIFF file's first directory.
fn first_directory(bytes: &[u8]) -> HashMap<u16, u32> {
    let short = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let long = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let first = long(4) as usize;
    let entries = (0..usize::from(short(first))).map(|i| first + 2 + 12 * i);
    entries.map(|at| (short(at), long(at + 8))).collect()
}

/// The vertices of a 3MF file.
pub fn vertices_of_3mf(path: &Path) -> Vec<[f32; 3]> {
    let bytes = fs::read(path).unwrap();
    let name = b"3D/3dmodel.model";
    let at = bytes.windows(name.len()).position(|found| found == name).unwrap() + name.len();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::DeflateDecoder::new(&bytes[at..]), &mut text)
        .unwrap();
    assert_contains(&text, "unit=\"millimeter\"");
    let number = |line: &str, axis: &str| -> f32 {
        let rest = line.split(&format!(" {axis}=\"")).nth(1).unwrap();
        rest.split('"').next().unwrap().parse().unwrap()
    };
    let lines = text.lines().filter(|line| line.starts_with("<vertex "));
    lines.map(|line| ["x", "y", "z"].map(|axis| number(line, axis))).collect()
}
