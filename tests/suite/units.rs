//! Units of length: a conversion between any two formats keeps the physical spacing of the samples.

use std::{fs, path::Path};

use serde_json::Value;

use crate::{
    common::{info_json, output_of, works},
    mesh_readers::read_ply,
    unit_files::{
        SPACING, SpacingAndUnit, meta_image, nanometres, nrrd_with_lines, ome_xml,
        read_spacing_and_unit, samples, tiff_with_description, vertices_of_3mf, write_sources,
        write_zarr,
    },
};

/// The spacing and unit that `info` prints for each file.
fn info_spacing_and_unit(folder: &Path, names: &[String]) -> Vec<SpacingAndUnit> {
    let found = info_json(folder, &format!("--stack {}", names.join(" ")));
    let size = |file: &Value| {
        let spacing = file["spacing"].as_array();
        let spacing = spacing.map(|spacing| [0, 1, 2].map(|axis| spacing[axis].as_f64().unwrap()));
        (spacing, file["unit"].as_str().map(str::to_owned))
    };
    found.iter().map(size).collect()
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
        let stdout = output_of(folder, "info v.nrrd");
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
