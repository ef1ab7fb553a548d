//! Images written by other programs: several pages, metadata, grey palettes, floats, and unsupported formats.
//! `fixtures/README.md` says which programs wrote the files.

use std::{fs, path::Path};

use gpuproc::{
    data::{
        image::{DensityUnit, Image},
        samples::Samples,
    },
    io::{
        Limits, Source,
        image::{Animation, ImageFile, read_image},
    },
    util::timings::Timings,
};
use predicates::prelude::*;

use crate::{
    animations::{ANIMATIONS, checksum},
    asserts::{assert_absent, assert_same_file},
    common::gpuproc,
    inputs::{fixture, load_image},
};

pub fn image_source(name: &str) -> Source {
    Source::from(fixture("images").join(name))
}

pub fn run(folder: &Path, arguments: &[&str]) -> assert_cmd::assert::Assert {
    let mut command = gpuproc();
    command.env("GPUPROC_DEVICE", "cpu").current_dir(folder).args(arguments).assert()
}

/// A folder with the fixtures `names`.
pub fn folder(names: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        fs::copy(fixture("images").join(name), folder.path().join(name)).unwrap();
    }
    folder
}

/// All pages of a file, and their animation.
pub fn pages(source: &Source) -> (Vec<Image>, Option<Animation>) {
    let timings = Timings::new(false);
    let file = ImageFile::read(source, Limits::from(1 << 30), &timings).unwrap();
    let mut pages = file.pages(&timings).unwrap();
    let images = (0..pages.count()).map(|page| pages.decode(page, &timings).unwrap()).collect();
    (images, pages.animation().cloned())
}

#[test]
fn selects_pages_and_warns_about_dropped_ones() {
    let folder = folder(&["animation.png", "opaque.gif"]);
    let folder = folder.path();
    let all = ANIMATIONS[5].4;
    let checksums = |name: &str| -> Vec<u32> {
        pages(&Source::from(folder.join(name))).0.iter().map(checksum).collect()
    };
    let blur =
        |more: &[&str]| run(folder, &[&["blur", "opaque.gif", "--sigma", "0"], more].concat());
    blur(&["a.webp", "--page", "2..4"]).success().stderr("");
    assert_eq!(checksums("a.webp"), all[1..4]);
    blur(&["b.bmp", "--page", "5", "--strict"]).success().stderr("");
    assert_eq!(checksums("b.bmp"), all[4..]);
    blur(&["c.png", "--page", "4.."]).success().stderr("");
    assert_eq!(checksums("c.png"), all[3..]);
    let message = "warning: d.bmp: only the first of 5 pages is written: this format holds one\n";
    blur(&["d.bmp"]).success().stderr(message);
    assert_eq!(checksums("d.bmp"), all[..1]);
    blur(&["e.bmp", "--strict"]).code(4);
    assert_absent(folder.join("e.bmp"));
    blur(&["e.bmp", "--page", "6"])
        .code(4)
        .stderr("error: opaque.gif: there is no page 6, only 5\n");
    blur(&["e.bmp", "--page", "0"]).code(2);
    // `scan` reads the first page and warns about the others.
    run(folder, &["scan", "opaque.gif", "s.npy"])
        .success()
        .stderr("warning: opaque.gif: only the first of its 5 pages is read\n");
    run(folder, &["scan", "opaque.gif", "t.npy", "--page", "1", "--strict"]).success().stderr("");
    assert_same_file(folder.join("s.npy"), folder.join("t.npy"));
    run(folder, &["scan", "opaque.gif", "t.npy", "--page", "9"]).code(4);
}

#[test]
fn histogram_counts_all_selected_pages() {
    let folder = folder(&["opaque.gif", "animation.png"]);
    let folder = folder.path();
    let counts = |more: &[&str]| -> Vec<u64> {
        let arguments = [&["histogram", "opaque.gif", "--format", "json"], more].concat();
        let output = run(folder, &arguments).success().stderr("").get_output().stdout.clone();
        let json: serde_json::Value = serde_json::from_slice(&output).unwrap();
        let values = json[0]["channels"][2]["values"].as_array().unwrap().clone();
        values.iter().map(|value| value.as_u64().unwrap()).collect()
    };
    // All pixels of frame i have the blue 50 i.
    let expected = |frames: &[usize]| -> Vec<u64> {
        (0..256).map(|v| 23 * 17 * frames.iter().filter(|&&i| 50 * i == v).count() as u64).collect()
    };
    assert_eq!(counts(&[]), expected(&[0, 1, 2, 3, 4]));
    assert_eq!(counts(&["--page", "3"]), expected(&[2]));
    assert_eq!(counts(&["--page", "2..3"]), expected(&[1, 2]));
    // The range covers all frames.
    let ranged = counts(&["--range", "data", "--bins", "2"]);
    assert_eq!(ranged.iter().sum::<u64>(), 23 * 17 * 5);
    let equalize = ["histogram", "opaque.gif", "--equalize", "e.png"];
    run(folder, &equalize).code(4).stderr(predicate::str::contains("--page"));
    run(folder, &[&equalize[..], &["--page", "2", "--strict"]].concat()).success().stderr("");
}

const XMP: &[u8] = b"<?xpacket begin=\"\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>";

const IPTC: &[u8] = b"\x1c\x02\x50\x00\x03Ada\x1c\x02\x69\x00\x05Title";

/// XMP, IPTC and pixel density of files by Pillow, and of the outputs made from them.
#[test]
fn converts_metadata_between_formats() {
    let names = ["metadata.jpg", "pillow.png", "metadata.webp"];
    let folder = folder(&names);
    for (name, has_iptc, per_inch) in [
        ("metadata.jpg", true, Some([300.0, 150.0])),
        ("pillow.png", false, Some([299.9994, 150.0124])),
        ("metadata.webp", false, None),
    ] {
        for output in ["o.jpg", "o.png", "o.webp", "o.bmp"] {
            let lost = match output {
                "o.webp" => [
                    has_iptc.then_some("IPTC is dropped"),
                    per_inch.map(|_| "the pixel density is dropped"),
                ],
                "o.bmp" => [Some("XMP is dropped"), has_iptc.then_some("IPTC is dropped")],
                "o.png" => [has_iptc.then_some("IPTC is dropped"), None],
                _ => [None; 2],
            };
            let lost: Vec<&str> = lost.into_iter().flatten().collect();
            let message = match lost.is_empty() {
                true => String::new(),
                false => format!("warning: {output}: {} in this format\n", lost.join(" and ")),
            };
            run(folder.path(), &["blur", name, output]).success().stderr(message);
            let source = Source::from(folder.path().join(output));
            let image = read_image(&source, 1 << 30, &Timings::new(false)).unwrap();
            let found = image.metadata;
            let context = format!("{name} {output}");
            if output != "o.bmp" {
                assert!(found.xmp.as_ref().expect(&context).starts_with(XMP), "{context}");
            }
            let holds_iptc = has_iptc && output == "o.jpg";
            assert_eq!(found.iptc.as_deref(), holds_iptc.then_some(IPTC), "{context}");
            let per_inch = per_inch.filter(|_| output != "o.webp");
            let found = found.density.map(|density| density.per(DensityUnit::Inch).unwrap());
            assert_eq!(found.is_some(), per_inch.is_some(), "{context}");
            for (found, expected) in found.into_iter().flatten().zip(per_inch.into_iter().flatten())
            {
                assert!((found / expected - 1.0).abs() < 1e-4, "{context} {found}");
            }
        }
    }
    // An EXIF rotation also swaps the two densities.
    let jpeg = fs::read(folder.path().join("metadata.jpg")).unwrap();
    let mut exif =
        b"\xff\xe1\0\x22Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    exif.extend([6, 0, 0, 0, 0, 0, 0]);
    exif[3] = (exif.len() - 2) as u8;
    let rotated = [&jpeg[..2], &exif, &jpeg[2..]].concat();
    fs::write(folder.path().join("turned.jpg"), rotated).unwrap();
    let source = Source::from(folder.path().join("turned.jpg"));
    let image = read_image(&source, 1 << 30, &Timings::new(false)).unwrap();
    assert_eq!((image.width, image.height), (17, 23));
    assert_eq!(image.metadata.density.unwrap().pixels, [150.0, 300.0]);
}

/// ImageMagick stores XMP and IPTC in PNG as texts of hexadecimal digits. They stay texts.
#[test]
fn raw_profiles_are_texts() {
    let folder = folder(&["magick.png"]);
    let texts = |output: &str, warning: &str| {
        run(folder.path(), &["blur", "magick.png", output]).success().stderr(warning.to_owned());
        let source = Source::from(folder.path().join(output));
        let metadata = read_image(&source, 1 << 30, &Timings::new(false)).unwrap().metadata;
        assert_eq!((metadata.xmp, metadata.iptc), (None, None));
        let keywords = metadata.texts.into_iter().map(|text| text.keyword);
        keywords.filter(|keyword| keyword.starts_with("Raw ")).collect::<Vec<_>>()
    };
    let names = ["Raw profile type iptc", "Raw profile type xmp"];
    assert_eq!(texts("o.png", ""), names);
    let [iptc, xmp] = names;
    let warning =
        format!("warning: o.jpg: the texts {iptc} and {xmp} are dropped in this format\n");
    assert_eq!(texts("o.jpg", &warning), [""; 0]);
}

#[test]
fn grey_palettes_decode_to_one_channel() {
    for (name, checksum_of_pillow) in
        [("pillow.bmp", 0x5cb4f82b), ("four-bits.bmp", 0x5f5248a8), ("grey.gif", 0x35016007)]
    {
        let image = load_image(fixture("images").join(name));
        assert_eq!((image.channels, image.width, image.height), (1, 23, 17), "{name}");
        assert_eq!(checksum(&image), checksum_of_pillow, "{name}");
    }
}

/// Values of `magick.pfm` as Pillow reads them; libvips wrote `v / 2 - 1` of `pillow.png`.
#[test]
fn pfm_keeps_values_and_row_order() {
    let timings = Timings::new(false);
    let read = |source: &Source| read_image(source, 1 << 30, &timings).unwrap();
    let floats = |image: &Image| match &image.samples {
        Samples::F32(values) => values.clone(),
        other => panic!("expected f32 samples, found {}", other.dtype()),
    };
    let magick = read(&image_source("magick.pfm"));
    assert_eq!((magick.channels, magick.width, magick.height), (1, 23, 17));
    for (i, value) in floats(&magick).into_iter().enumerate() {
        assert!((value - (i % 256) as f32 / 255.0).abs() < 1e-6, "{i}: {value}");
    }
    let vips = read(&image_source("vips.pfm"));
    let photo = read(&image_source("pillow.png"));
    let Samples::U8(bytes) = &photo.samples else { panic!("expected u8 samples") };
    // ImageMagick writes rows from the top, contrary to the format.
    let rows = bytes.chunks_exact(23 * 3).rev().flatten();
    let expected: Vec<f32> = rows.map(|&v| f32::from(v) / 2.0 - 1.0).collect();
    assert_eq!((vips.channels, vips.width), (3, 23));
    assert!(floats(&vips) == expected);
    // Values and order survive writing and reading again.
    let folder = folder(&["vips.pfm"]);
    run(folder.path(), &["blur", "vips.pfm", "o.pfm", "--sigma", "0", "--strict"]).success();
    assert!(floats(&read(&Source::from(folder.path().join("o.pfm")))) == expected);
}

#[test]
fn names_unsupported_formats() {
    for (name, message) in [
        ("photo.avif", "AVIF is not supported: convert it first, for example by `avifdec"),
        ("photo.jp2", "JPEG 2000 is not supported"),
        ("arithmetic.jpg", "arithmetic-coded JPEG is not supported"),
    ] {
        let folder = folder(&[name]);
        for arguments in [&["blur", name, "o.png"][..], &["histogram", name], &["info", name]] {
            if (arguments[0], name) == ("info", "arithmetic.jpg") {
                continue;
            }
            let stderr = predicate::str::contains(message);
            run(folder.path(), arguments).code(4).stderr(stderr);
        }
    }
}

#[test]
fn standard_output_uses_the_format_of_the_input_or_of_the_option() {
    let folder = folder(&["metadata.jpg", "opaque.gif", "pillow.png"]);
    let folder = folder.path();
    let assert_output_starts_with = |arguments: &[&str], input: Option<&str>, signature: &[u8]| {
        let mut command = gpuproc();
        command.env("GPUPROC_DEVICE", "cpu").current_dir(folder).args(arguments);
        if let Some(input) = input {
            command.write_stdin(fs::read(folder.join(input)).unwrap());
        }
        let output = command.assert().success().get_output().stdout.clone();
        assert!(output.starts_with(signature), "{arguments:?}");
        output
    };
    let png = b"\x89PNG";
    let piped = assert_output_starts_with(&["blur", "-", "-"], Some("pillow.png"), png);
    assert_output_starts_with(&["blur", "metadata.jpg", "-"], None, b"\xff\xd8");
    let gif = assert_output_starts_with(&["blur", "opaque.gif", "-"], None, b"GIF89a");
    assert!(gif.len() > 500, "{}", gif.len());
    assert_output_starts_with(&["blur", "-", "-", "--format", "webp"], Some("opaque.gif"), b"RIFF");
    assert_output_starts_with(&["blur", "pillow.png", "-", "--format", "tiff"], None, b"II*\0");
    run(folder, &["blur", "pillow.png", "o.png"]).success();
    assert!(fs::read(folder.join("o.png")).unwrap() == piped, "the output differs with a pipe");
    // `--format` takes precedence over the extension, and determines the extension of files in a folder.
    run(folder, &["blur", "pillow.png", "o.dat", "--format", "jpeg"]).success();
    assert!(fs::read(folder.join("o.dat")).unwrap().starts_with(b"\xff\xd8"));
    run(folder, &["blur", "pillow.png", "opaque.gif", "--out-dir", "d", "--format", "png"])
        .success();
    for name in ["d/pillow.png", "d/opaque.png"] {
        assert!(fs::read(folder.join(name)).unwrap().starts_with(png), "{name}");
    }
    let svg =
        assert_output_starts_with(&["histogram", "pillow.png", "--format", "svg"], None, b"<svg");
    run(folder, &["histogram", "pillow.png", "-o", "h.svg"]).success();
    assert!(fs::read(folder.join("h.svg")).unwrap() == svg);
    assert_output_starts_with(
        &["histogram", "pillow.png", "--format", "png", "-o", "-"],
        None,
        png,
    );
    assert_output_starts_with(
        &["histogram", "pillow.png", "-o", "-", "-o", "h.csv"],
        None,
        b"bin,low",
    );
    run(folder, &["histogram", "pillow.png", "--format", "json", "-o", "h.csv"]).code(2);
}

#[test]
fn info_lists_pages_and_metadata() {
    let names = ["animation.png", "metadata.jpg", "vips.pfm"];
    let folder = folder(&names);
    let assert_lists = |name: &str, lines: &[&str]| {
        let output = run(folder.path(), &["info", name]).success().get_output().stdout.clone();
        let output = String::from_utf8(output).unwrap();
        let words = output.split_whitespace().collect::<Vec<_>>().join(" ");
        for line in lines {
            assert!(words.contains(line), "{name}: expected `{line}` in {output}");
        }
    };
    assert_lists("animation.png", &["pages 5", "animation 5 frames in 0.75 s, 3 times"]);
    assert_lists("metadata.jpg", &["XMP ", "IPTC 18 bytes", "pixels 300 x 150 per inch"]);
    assert_lists("vips.pfm", &["PFM image, 23x17 of f32", "channels red, green, blue"]);
}

/// Files whose declared sizes exceed their content or the limits fail quickly, with one line.
#[test]
fn rejects_false_sizes_without_allocating_them() {
    let folder = folder(&["animation.png", "animation.webp", "clear.gif"]);
    let folder = folder.path();
    // A canvas of 65,535 x 65,535, and a frame of that size on a small canvas.
    let gif = fs::read(folder.join("clear.gif")).unwrap();
    let mut screen = gif.clone();
    screen[6..10].fill(0xff);
    let mut frame = gif.clone();
    let at = frame.iter().position(|&byte| byte == 0x2c).unwrap();
    frame[at + 5..at + 9].fill(0xff);
    // The canvas size of a WebP animation, and the number of frames of a PNG animation.
    let webp = fs::read(folder.join("animation.webp")).unwrap();
    let mut canvas = webp.clone();
    canvas[24..30].fill(0x3f);
    let mut png = fs::read(folder.join("animation.png")).unwrap();
    let at = png.windows(4).position(|name| name == b"acTL").unwrap();
    png[at + 4..at + 8].fill(0x7f);
    for (name, bytes) in [
        ("screen.gif", screen),
        ("frame.gif", frame),
        ("short.gif", gif[..gif.len() / 8].to_vec()),
        ("canvas.webp", canvas),
        ("frames.png", png),
        ("large.pfm", b"PF\n99999999 99999999\n-1\n".to_vec()),
        ("short.pfm", b"Pf\n9 9\n-1\n0000".to_vec()),
        ("scale.pfm", b"Pf\n1 1\n0\n0000".to_vec()),
        ("comment.pfm", b"Pf\n# no end".to_vec()),
    ] {
        fs::write(folder.join(name), bytes).unwrap();
        for command in ["blur", "histogram"] {
            let output = if command == "blur" { &["o.webp"][..] } else { &[] };
            let arguments = [&[command, name, "--max-memory", "64M"], output].concat();
            let error = run(folder, &arguments).code(4).get_output().stderr.clone();
            let error = String::from_utf8(error).unwrap();
            assert_eq!(
                error.lines().filter(|line| line.starts_with("error")).count(),
                1,
                "{error}"
            );
            assert!(!folder.join("o.webp").exists(), "{name}");
        }
    }
}

#[test]
fn warns_about_data_after_an_array() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let header = b"\x93NUMPY\x01\0\x76\0{'descr': '<u4', 'fortran_order': False, 'shape': (2,), }";
    let mut file = header.to_vec();
    file.resize(127, b' ');
    file.extend(b"\n\x01\0\0\0\x02\0\0\0");
    fs::write(folder.join("a.npy"), &file).unwrap();
    for command in ["scan", "sort"] {
        run(folder, &[command, "a.npy", "o.npy", "--strict"]).success().stderr("");
    }
    file.push(0);
    fs::write(folder.join("b.npy"), &file).unwrap();
    let fortran = String::from_utf8_lossy(&file[10..127]).replace("False", "True ");
    file.splice(10..127, fortran.into_bytes());
    fs::write(folder.join("c.npy"), &file).unwrap();
    for (command, name) in [("scan", "b.npy"), ("sort", "b.npy"), ("scan", "c.npy")] {
        let message = format!("{name}: data after the last number are ignored\n");
        run(folder, &[command, name, "o.npy"]).success().stderr(format!("warning: {message}"));
        run(folder, &[command, name, "p.npy", "--strict"])
            .code(4)
            .stderr(format!("error: {message}"));
        assert_absent(folder.join("p.npy"));
    }
}

#[test]
fn equalized_and_levelled_images_report_lost_metadata() {
    let folder = folder(&["metadata.jpg", "animation.png"]);
    let folder = folder.path();
    let message = "warning: e.bmp: XMP is dropped and IPTC is dropped in this format\n";
    for flag in ["--equalize", "--auto-levels"] {
        let arguments = ["histogram", "metadata.jpg", flag, "e.bmp"];
        run(folder, &arguments).success().stderr(message);
        let lossy = ["histogram", "animation.png", "--page", "2", flag, "s.jpg", "--strict"];
        run(folder, &lossy).code(4).stderr(predicate::str::contains("alpha is dropped"));
        assert_absent(folder.join("s.jpg"));
        let message = "warning: e.png: IPTC is dropped in this format\n";
        run(folder, &["histogram", "metadata.jpg", flag, "e.png"]).success().stderr(message);
    }
}
