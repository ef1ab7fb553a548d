//! Units of length: a conversion between any two formats keeps the physical spacing of the samples. The files are
//! written here and read back according to the specifications, without gpuproc's own readers.

use std::{collections::HashMap, fs, path::Path};

use serde_json::Value;

use crate::{
    common::{gpuproc, works},
    mesh::read_ply,
};

/// Number of samples along x, y and z.
const DIMS: [usize; 3] = [6, 5, 4];
const SPACING: [f64; 3] = [0.5, 0.75, 2.0];

fn samples() -> Vec<u8> {
    (0..120u32).map(|i| (i * 53 % 251) as u8).collect()
}

/// The length of a unit in nanometres.
fn nanometres(unit: &str) -> f64 {
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
type SpacingAndUnit = (Option<[f64; 3]>, Option<String>);

/// Writes files in all units of each format to `folder`. Returns their names and the units that `info` should print;
/// `None` if the file states no unit.
fn write_sources(folder: &Path) -> Vec<(String, Option<&'static str>)> {
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

fn nrrd_with_lines(lines: &str) -> Vec<u8> {
    let head = "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 6 5 4\nencoding: raw\n";
    [format!("{head}{lines}\n\n").as_bytes(), &samples()].concat()
}

fn meta_image(line: &str, spacing: &str) -> Vec<u8> {
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

fn ome_xml(size: [f64; 3], units: [&str; 3]) -> String {
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
fn tiff_with_description(text: &str) -> Vec<u8> {
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

fn write_zarr(folder: &Path, scale: [f64; 3], units: [Option<&str>; 3]) {
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
fn read_spacing_and_unit(path: &Path) -> SpacingAndUnit {
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

/// The spacing and unit that `info` prints for each file.
fn info_spacing_and_unit(folder: &Path, names: &[String]) -> Vec<SpacingAndUnit> {
    let mut command = gpuproc();
    let output =
        command.current_dir(folder).args(["info", "--json", "--stack"]).args(names).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let size = |file: &Value| {
        let spacing = file["spacing"].as_array();
        let spacing = spacing.map(|spacing| [0, 1, 2].map(|axis| spacing[axis].as_f64().unwrap()));
        (spacing, file["unit"].as_str().map(str::to_owned))
    };
    found.as_array().unwrap().iter().map(size).collect()
}

#[track_caller]
fn assert_near(found: [f64; 3], expected: [f64; 3], context: &str) {
    let near = |(a, b): (f64, f64)| (a / b - 1.0).abs() < 1e-6;
    assert!(
        found.into_iter().zip(expected).all(near),
        "{context}: found {found:?}, expected {expected:?}"
    );
}

#[test]
fn converting_between_any_two_formats_keeps_the_spacing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let sources = write_sources(folder);
    let names: Vec<String> = sources.iter().map(|(name, _)| name.clone()).collect();
    for ((name, unit), (spacing, shown)) in
        sources.iter().zip(info_spacing_and_unit(folder, &names))
    {
        assert_eq!((spacing, shown.as_deref()), (Some(SPACING), *unit), "{name}");
    }
    for (extension, units) in [
        ("nii", &["m", "mm", "um"][..]),
        ("nrrd", &["mm"]),
        ("mha", &["mm"]),
        ("mrc", &["angstrom"]),
        ("tif", &["m", "cm", "mm", "um", "nm", "in", "angstrom"]),
        ("zarr", &["m", "cm", "mm", "um", "nm", "in", "angstrom"]),
    ] {
        let line = format!("blur {} -o {extension}/{{stem}}.{extension}", names.join(" "));
        let stderr = works(folder, &format!("{line} --sigma 0 --stack"));
        let outputs: Vec<String> = names
            .iter()
            .map(|name| format!("{extension}/{}.{extension}", name.rsplit_once('.').unwrap().0))
            .collect();
        for ((output, (name, own)), shown) in
            outputs.iter().zip(&sources).zip(info_spacing_and_unit(folder, &outputs))
        {
            let context = format!("{name} to {output}");
            let (spacing, unit) = read_spacing_and_unit(&folder.join(output));
            let spacing = spacing.unwrap_or_else(|| panic!("{context} states no spacing"));
            assert_near(shown.0.unwrap(), spacing, &context);
            assert_eq!(shown.1, unit, "{context}");
            let message = "unit of the spacing is unknown; assuming angstrom";
            let mut lines = stderr.lines().filter(|line| line.contains(&format!("{output}: ")));
            let is_assumed = own.is_none() && extension == "mrc";
            assert_eq!(lines.any(|line| line.contains(message)), is_assumed, "{context}: {stderr}");
            match (own, unit) {
                (Some(own), Some(unit)) => {
                    assert!(units.contains(&unit.as_str()), "{context}: {unit}");
                    let scale = nanometres(own) / nanometres(&unit);
                    assert_near(spacing, SPACING.map(|step| step * scale), &context);
                }
                (None, None) => assert_near(spacing, SPACING, &context),
                (None, Some(_)) if is_assumed => assert_near(spacing, SPACING, &context),
                (_, unit) => panic!("{context}: {unit:?}"),
            }
        }
    }
}

/// The resolution of an ImageJ file may be per centimetre, and its description may be in Latin-1.
#[test]
fn reads_imagej_units_from_the_resolution_tag_and_latin_1_text() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = |unit: &str| format!("ImageJ=1.54f\nimages=4\nslices=4\n{unit}spacing=2\n");
    let unit_tag = [&296u16.to_le_bytes()[..], &[3, 0, 1, 0, 0, 0, 1]].concat();
    let per_centimetre = |unit: &str| {
        let mut file = tiff_with_description(&text(unit));
        for at in 0..file.len() - unit_tag.len() {
            if file[at..].starts_with(&unit_tag) {
                file[at + 8] = 3;
            }
        }
        file
    };
    let mut latin_1 = tiff_with_description(&text("unit=??m\n"));
    let at = latin_1.windows(3).position(|bytes| bytes == b"??m").unwrap();
    latin_1[at..at + 3].copy_from_slice(b"\xb5m\n");
    let [x, y, z] = SPACING;
    for (name, file, spacing, unit) in [
        ("none.tif", per_centimetre(""), SPACING, "cm"),
        ("cm.tif", per_centimetre("unit=cm\n"), SPACING, "cm"),
        ("mm.tif", per_centimetre("unit=mm\n"), SPACING, "mm"),
        ("um.tif", per_centimetre("unit=um\n"), [1e4 * x, 1e4 * y, z], "um"),
        ("latin.tif", latin_1, SPACING, "um"),
    ] {
        fs::write(folder.join(name), file).unwrap();
        assert_eq!(
            info_spacing_and_unit(folder, &[name.to_owned()]),
            [(Some(spacing), Some(unit.into()))],
            "{name}"
        );
    }
}

/// A spacing that is missing along one axis is reported. Without any spacing, none is invented.
#[test]
fn reports_missing_spacings() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let z_only = ome_xml(SPACING, ["mm"; 3])
        .replace(" PhysicalSizeX=\"0.5\" PhysicalSizeXUnit=\"mm\"", "")
        .replace(" PhysicalSizeY=\"0.75\" PhysicalSizeYUnit=\"mm\"", "");
    let nan = |spacings: &str| nrrd_with_lines(&format!("spacings: {spacings}\nunits: mm mm mm"));
    for (name, file, spacing, message) in [
        (
            "z.ome.tif",
            tiff_with_description(&z_only),
            Some([2.0; 3]),
            "PhysicalSizeX is missing; assuming 2",
        ),
        (
            "nan.nrrd",
            nan("0.5 0.75 nan"),
            Some([0.5, 0.75, 1.0]),
            "spacing along z is missing; assuming 1",
        ),
        ("no.nrrd", nan("nan nan nan"), None, ""),
    ] {
        fs::write(folder.join(name), file).unwrap();
        let stderr = works(folder, &format!("blur {name} o.mrc --sigma 0 --stack"));
        assert!(stderr.contains(message), "{name}: {stderr}");
        assert_eq!(stderr.contains("warning"), !message.is_empty(), "{name}: {stderr}");
        assert_eq!(info_spacing_and_unit(folder, &[name.to_owned()])[0].0, spacing, "{name}");
    }
}

#[test]
fn reads_rare_ome_ngff_units() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (name, unit, metres) in
        [("femtometer", "fm", 1e-15), ("hectometer", "hm", 1e2), ("megameter", "Mm", 1e6)]
    {
        write_zarr(&folder.join("v.zarr"), SPACING, [Some(name); 3]);
        assert_eq!(
            info_spacing_and_unit(folder, &["v.zarr".into()]),
            [(Some(SPACING), Some(unit.into()))]
        );
        works(folder, "blur v.zarr o.nrrd --sigma 0 --strict");
        let (spacing, _) = read_spacing_and_unit(&folder.join("o.nrrd"));
        assert_near(spacing.unwrap(), SPACING.map(|step| step * metres * 1e3), name);
    }
}

/// A volume without spacing gets none if the output format allows that.
#[test]
fn volumes_without_spacing_get_none() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("v_6x5x4_uint8.raw"), samples()).unwrap();
    for (output, spacing, unit) in [
        ("o.mrc", None, Some("angstrom")),
        ("o.mha", None, None),
        ("o.nrrd", None, None),
        ("o.tif", None, None),
        ("o.nii", Some([1.0; 3]), None),
        ("o.zarr", Some([1.0; 3]), None),
    ] {
        works(folder, &format!("blur v_6x5x4_uint8.raw {output} --sigma 0"));
        let (found, found_unit) = read_spacing_and_unit(&folder.join(output));
        assert_eq!((found, found_unit.as_deref()), (spacing, unit), "{output}");
    }
}

/// Axes may have different units. All are converted to the unit of x.
#[test]
fn axes_with_different_units_are_converted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let steps = [0.5, 0.75, 2000.0];
    fs::write(
        folder.join("a.ome.tif"),
        tiff_with_description(&ome_xml(steps, ["mm", "mm", "\u{b5}m"])),
    )
    .unwrap();
    let text = "ImageJ=1.54f\nimages=4\nslices=4\nunit=mm\nzunit=micron\nspacing=2000\n";
    fs::write(folder.join("b.tif"), tiff_with_description(text)).unwrap();
    write_zarr(
        &folder.join("c.zarr"),
        steps,
        [Some("millimeter"), Some("millimeter"), Some("micrometer")],
    );
    let list = "spacings: 0.5 0.75 2000\nunits: \"mm\" \"mm\" \"um\"";
    fs::write(folder.join("d.nrrd"), nrrd_with_lines(list)).unwrap();
    let names = ["a.ome.tif", "b.tif", "c.zarr", "d.nrrd"].map(str::to_owned);
    for (name, found) in names.iter().zip(info_spacing_and_unit(folder, &names)) {
        assert_eq!(found, (Some(SPACING), Some("mm".into())), "{name}");
    }
    write_zarr(&folder.join("e.zarr"), SPACING, [Some("millimeter"), Some("millimeter"), None]);
    let stderr = works(folder, "blur e.zarr o.nrrd --sigma 0");
    assert!(stderr.contains("e.zarr: unit of the z axis is missing; assuming mm"), "{stderr}");
}

#[test]
fn ome_xml_may_have_prefixes_and_character_references() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (number, unit) in ["&#181;m", "&#xb5;m", "\u{b5}m"].into_iter().enumerate() {
        let text = ome_xml(SPACING, [unit; 3]);
        let text = ["OME", "Image", "Pixels", "TiffData"].iter().fold(text, |text, name| {
            text.replace(&format!("<{name}"), &format!("<ome:{name}"))
                .replace(&format!("</{name}"), &format!("</ome:{name}"))
        });
        let name = format!("{number}.ome.tif");
        fs::write(folder.join(&name), tiff_with_description(&text)).unwrap();
        assert_eq!(
            info_spacing_and_unit(folder, &[name]),
            [(Some(SPACING), Some("um".into()))],
            "{unit}"
        );
    }
}

#[test]
fn spacings_of_any_magnitude_keep_their_digits() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (factor, text) in [
        (1e-12, "0.0000000000005 0.00000000000075 0.000000000002"),
        (1e-9, "0.0000000005 0.00000000075 0.000000002"),
        (1e-6, "0.0000005 0.00000075 0.000002"),
        (1.0, "0.5 0.75 2"),
        (1e10, "5000000000 7500000000 20000000000"),
    ] {
        let steps = SPACING.map(|step| step * factor);
        let [x, y, z] = steps;
        let header = format!("spacings: {x} {y} {z}\nunits: \"mm\" \"mm\" \"mm\"");
        fs::write(folder.join("v.nrrd"), nrrd_with_lines(&header)).unwrap();
        let output = gpuproc().current_dir(folder).args(["info", "v.nrrd"]).output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert!(stdout.contains(&format!("spacing       {text}\n")), "{stdout}");
        works(folder, "blur v.nrrd o.tif --sigma 0 --strict");
        let (found, unit) = info_spacing_and_unit(folder, &["o.tif".to_owned()]).remove(0);
        let scale = nanometres("mm") / nanometres(&unit.unwrap());
        assert_near(found.unwrap(), steps.map(|step| step * scale), "o.tif");
    }
}

/// A mesh has the unit of its volume, except in formats with a fixed unit.
#[test]
fn meshes_use_the_unit_of_the_volume() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("mm.ome.tif"), tiff_with_description(&ome_xml(SPACING, ["mm"; 3])))
        .unwrap();
    fs::write(folder.join("um.ome.tif"), tiff_with_description(&ome_xml(SPACING, [""; 3])))
        .unwrap();
    fs::write(
        folder.join("no.tif"),
        tiff_with_description("ImageJ=1.54f\nimages=4\nslices=4\nspacing=2\n"),
    )
    .unwrap();
    let positions = |name: &str| read_ply(&fs::read(folder.join(name)).unwrap()).positions;
    let mut plain = Vec::new();
    for (name, factor) in [("mm.ome.tif", 1.0), ("um.ome.tif", 1e-3), ("no.tif", 1.0)] {
        let stderr = works(folder, &format!("mesh {name} m.ply --iso 100"));
        assert!(!stderr.contains("warning"), "{name}: {stderr}");
        let vertices = positions("m.ply");
        let corner = |at: usize| vertices.iter().map(|p| p[at]).fold(0.0, f32::max);
        assert!(corner(2) > 5.0 && corner(2) < 7.0, "{name}: {}", corner(2));
        if plain.is_empty() {
            plain = vertices.iter().map(|p| [p[0], p[1], p[2]]).collect();
        }
        let stderr = works(folder, &format!("mesh {name} m.3mf --iso 100"));
        let stderr = stderr.replace("warning: m.3mf: the surface is not closed", "");
        assert!(!stderr.contains("warning"), "{name}: {stderr}");
        let found = vertices_of_3mf(&folder.join("m.3mf"));
        assert_eq!(found.len(), plain.len(), "{name}");
        for (found, expected) in found.iter().flatten().zip(plain.iter().flatten()) {
            let expected = (f64::from(*expected) * factor) as f32;
            assert!(
                (found - expected).abs() <= 1e-6 * expected.abs(),
                "{name}: {found} {expected}"
            );
        }
    }
}

/// The vertices of a 3MF file.
fn vertices_of_3mf(path: &Path) -> Vec<[f32; 3]> {
    let bytes = fs::read(path).unwrap();
    let name = b"3D/3dmodel.model";
    let at = bytes.windows(name.len()).position(|found| found == name).unwrap() + name.len();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::DeflateDecoder::new(&bytes[at..]), &mut text)
        .unwrap();
    assert!(text.contains("unit=\"millimeter\""));
    let number = |line: &str, axis: &str| -> f32 {
        let rest = line.split(&format!(" {axis}=\"")).nth(1).unwrap();
        rest.split('"').next().unwrap().parse().unwrap()
    };
    let lines = text.lines().filter(|line| line.starts_with("<vertex "));
    lines.map(|line| ["x", "y", "z"].map(|axis| number(line, axis))).collect()
}

/// `--color-by` samples a volume with another unit at the right positions.
#[test]
fn color_by_converts_units() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("mm.mha"), meta_image("DistanceUnits = mm\n", "0.5 0.75 2")).unwrap();
    fs::write(folder.join("um.mha"), meta_image("DistanceUnits = um\n", "500 750 2000")).unwrap();
    let colours = |by: &str| {
        works(folder, &format!("mesh mm.mha m.ply --iso 100 --color-by {by} --color-range 0,251"));
        fs::read(folder.join("m.ply")).unwrap()
    };
    let own = colours("mm.mha");
    assert!(own == colours("um.mha"));
}
