//! Content of an image that each format keeps or reports as lost: densities, blocks of metadata, linear light,
//! grey palettes and pages. The expected values are those of the specifications of the formats.

use std::{fs, io::Cursor, path::Path};

use exr::{
    image::{AnyChannel, AnyChannels, FlatSamples, Image as ExrImage, Layer},
    prelude::{Encoding, LayerAttributes, Text, WritableImage},
};
use gif::{Encoder, Frame};
use gpuproc::{
    ReadOptions,
    data::{
        image::{DensityUnit, Metadata},
        samples::Samples,
    },
};

use crate::{
    asserts::assert_contains,
    common::{run, works},
    inputs::{as_f64, load_image, png_chunk, zlib},
    tiff_files::{TiffPage, tiff},
};

/// A page of 4 x 3 RGB pixels.
fn rgb_page() -> TiffPage {
    let samples = (0..36).map(|i| i * 7).collect();
    let page = TiffPage::grey([4, 3], 8, samples).shorts(258, [8; 3]);
    page.shorts(262, [2]).shorts(277, [3])
}

/// Sets the resolution across and down to fractions.
fn resolution(page: TiffPage, [across, down]: [[u32; 2]; 2], unit: u16) -> TiffPage {
    let fraction = |value: [u32; 2]| value.map(u32::to_le_bytes).concat();
    page.set(282, 5, 1, fraction(across)).set(283, 5, 1, fraction(down)).shorts(296, [unit])
}

fn metadata(path: impl AsRef<Path>) -> Metadata {
    load_image(path).metadata
}

/// The body of a chunk of a PNG file.
fn chunk(path: &Path, name: &[u8; 4]) -> Option<Vec<u8>> {
    let file = fs::read(path).unwrap();
    let at = file.windows(4).position(|window| window == name)?;
    let len = u32::from_be_bytes(file[at - 4..at].try_into().unwrap()) as usize;
    Some(file[at + 4..at + 4 + len].to_vec())
}

/// Pixels per metre in PNG and BMP are rounded to the nearest integer; JPEG has whole pixels per inch or centimetre;
/// TIFF and OpenEXR have fractions. Other formats drop the density with a warning.
#[test]
fn densities_are_kept_or_reported_by_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (across, down, unit, per_metre, jfif) in [
        ([72, 1], [72, 1], 2, [2835, 2835], [1, 72, 72]),
        ([96, 1], [96, 1], 2, [3780, 3780], [1, 96, 96]),
        ([150, 1], [300, 1], 2, [5906, 11_811], [1, 150, 300]),
        ([301, 1], [97, 1], 2, [11_850, 3819], [1, 301, 97]),
        ([118, 1], [39, 1], 3, [11_800, 3900], [2, 118, 39]),
        ([2835, 100], [2835, 100], 3, [2835, 2835], [1, 72, 72]),
        // Less than a pixel per metre is one.
        ([1, 1000], [1, 1000], 3, [1, 1], [1, 1, 1]),
    ] {
        let page = resolution(rgb_page(), [across, down], unit);
        fs::write(folder.join("in.tif"), tiff(&[page])).unwrap();
        let case = format!("{across:?} {down:?} {unit}");
        for output in ["o.png", "o.bmp", "o.jpg", "o.tif", "o.exr"] {
            assert_eq!(
                works(folder, &format!("blur in.tif {output} --sigma 0")),
                "",
                "{case} {output}"
            );
        }
        let words = per_metre.map(u32::to_be_bytes).concat();
        assert_eq!(
            chunk(&folder.join("o.png"), b"pHYs").unwrap(),
            [&words[..], &[1]].concat(),
            "{case}"
        );
        let bmp = fs::read(folder.join("o.bmp")).unwrap();
        // BMP rounds to no pixel.
        if across[1] < 1000 {
            assert_eq!(bmp[38..46], per_metre.map(u32::to_le_bytes).concat(), "{case}");
        }
        let jpeg = fs::read(folder.join("o.jpg")).unwrap();
        let [kind, x, y] = jfif.map(|v: u16| v.to_be_bytes());
        assert_eq!(jpeg[6..18], [b"JFIF\0\x01\x01", &kind[1..], &x, &y].concat(), "{case}");
        let exact = [across, down].map(|[count, of]| f64::from(count) / f64::from(of));
        let own = if unit == 2 { DensityUnit::Inch } else { DensityUnit::Centimetre };
        for output in ["o.tif", "o.exr"] {
            let found = metadata(folder.join(output)).density.unwrap().per(own).unwrap();
            let is_near = (0..2).all(|i| (found[i] / exact[i] - 1.0).abs() < 1e-6);
            assert!(is_near, "{case} {output}: {found:?}");
        }
    }
    for output in ["o.webp", "o.gif", "o.ppm", "o.pam", "o.pfm"] {
        let line = format!("blur in.tif {output} --sigma 0");
        assert_contains(&works(folder, &line), "the pixel density is dropped");
        assert_eq!(run(folder, &format!("{line} --strict")).0, 4, "{output}");
    }
    // Pixels that are not square, without a length.
    let page = resolution(rgb_page(), [[2, 1], [1, 1]], 1);
    fs::write(folder.join("in.tif"), tiff(&[page])).unwrap();
    for output in ["o.png", "o.jpg", "o.tif", "o.exr"] {
        assert_eq!(works(folder, &format!("blur in.tif {output} --sigma 0")), "");
        let density = metadata(folder.join(output)).density.unwrap();
        assert_eq!(
            (density.unit, density.pixels[0] / density.pixels[1]),
            (DensityUnit::Aspect, 2.0),
            "{output}"
        );
    }
    assert_eq!(chunk(&folder.join("o.png"), b"pHYs").unwrap(), [0, 0, 0, 2, 0, 0, 0, 1, 0]);
    // Square pixels without a length are what every file has.
    let page = resolution(rgb_page(), [[5, 1], [5, 1]], 1);
    fs::write(folder.join("in.tif"), tiff(&[page])).unwrap();
    for output in ["o.png", "o.gif", "o.webp"] {
        assert_eq!(works(folder, &format!("blur in.tif {output} --sigma 0")), "");
    }
    assert_eq!(chunk(&folder.join("o.png"), b"pHYs"), None);
}

/// Every density that a PNG, JPEG or BMP file can state is read.
#[test]
fn densities_are_read_in_every_unit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in");
    let png = |unit: u8| {
        let body = [&2000u32.to_be_bytes()[..], &500u32.to_be_bytes(), &[unit]].concat();
        let header = [&1u32.to_be_bytes()[..], &1u32.to_be_bytes(), &[8, 0, 0, 0, 0]].concat();
        let chunks =
            [(b"IHDR", header), (b"pHYs", body), (b"IDAT", zlib(&[0, 9])), (b"IEND", Vec::new())];
        let chunks = chunks.map(|(name, body)| png_chunk(name, &body));
        [&b"\x89PNG\r\n\x1a\n"[..], &chunks.concat()].concat()
    };
    for (unit, expected) in [
        (1, Some((DensityUnit::Centimetre, [20.0, 5.0]))),
        (0, Some((DensityUnit::Aspect, [2000.0, 500.0]))),
    ] {
        fs::write(&path, png(unit)).unwrap();
        let found = metadata(&path).density.map(|density| (density.unit, density.pixels));
        assert_eq!(found, expected, "PNG, unit {unit}");
    }
    fs::write(folder.path().join("in.tif"), tiff(&[rgb_page()])).unwrap();
    works(folder.path(), "blur in.tif in.jpg --sigma 0");
    let jpeg = fs::read(folder.path().join("in.jpg")).unwrap();
    for (unit, pixels, expected) in [
        (0, [4, 3], Some((DensityUnit::Aspect, [4.0, 3.0]))),
        (0, [3, 3], None),
        (1, [300, 72], Some((DensityUnit::Inch, [300.0, 72.0]))),
        (2, [118, 300], Some((DensityUnit::Centimetre, [118.0, 300.0]))),
        (1, [0, 72], None),
    ] {
        let mut file = jpeg.clone();
        file[13] = unit;
        file[14..18].copy_from_slice(&pixels.map(u16::to_be_bytes).concat());
        fs::write(&path, file).unwrap();
        let found = metadata(&path).density.map(|density| (density.unit, density.pixels));
        assert_eq!(found, expected, "JPEG, unit {unit}, {pixels:?}");
    }
}

/// Profiles, EXIF, XMP and IPTC: kept to the byte, or named in one warning.
#[test]
fn blocks_of_metadata_are_kept_or_reported_by_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut icc = vec![0; 132];
    icc[16..20].copy_from_slice(b"RGB ");
    icc[36..40].copy_from_slice(b"acsp");
    let xmp = b"<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"></x:xmpmeta>".to_vec();
    let iptc = b"\x1c\x02\x78\0\x05hello".to_vec();
    // An author is EXIF, the software is about the file.
    let with = |kinds: [bool; 4]| {
        let page = rgb_page().set(305, 2, 4, b"abc\0".to_vec());
        let page = if kinds[0] { page.set(34675, 7, icc.len(), icc.clone()) } else { page };
        let page = if kinds[1] { page.set(315, 2, 4, b"Ann\0".to_vec()) } else { page };
        let page = if kinds[2] { page.set(700, 1, xmp.len(), xmp.clone()) } else { page };
        if kinds[3] { page.set(33723, 7, iptc.len(), iptc.clone()) } else { page }
    };
    let names =
        ["the colour profile is dropped", "EXIF is dropped", "XMP is dropped", "IPTC is dropped"];
    for (output, keeps) in [
        ("o.png", [true, true, true, false]),
        ("o.jpg", [true; 4]),
        ("o.tif", [true; 4]),
        ("o.webp", [true, true, true, false]),
        ("o.gif", [false; 4]),
        ("o.bmp", [false; 4]),
        ("o.ppm", [false; 4]),
        ("o.pfm", [false; 4]),
        ("o.exr", [false; 4]),
    ] {
        let numbers: &[u32] = if output == "o.webp" { &[0, 1, 2, 4, 8, 15] } else { &[6, 15] };
        for number in numbers {
            let kinds = [0, 1, 2, 3].map(|i| number >> i & 1 == 1);
            fs::write(folder.join("in.tif"), tiff(&[with(kinds)])).unwrap();
            let stderr = works(folder, &format!("blur in.tif {output} --sigma 0"));
            let found = metadata(folder.join(output));
            let blocks = [
                found.icc.map(|found| found == icc),
                found
                    .exif
                    .map(|exif| exif.windows(3).any(|text| text == b"Ann"))
                    .filter(|is_own| *is_own),
                found.xmp.map(|found| found == xmp),
                found.iptc.map(|found| found == iptc),
            ];
            for i in 0..4 {
                let is_kept = (kinds[i] && keeps[i]).then_some(true);
                assert_eq!(blocks[i], is_kept, "{output} {kinds:?}: {}", names[i]);
                assert_eq!(stderr.contains(names[i]), kinds[i] && !keeps[i], "{output}: {stderr}");
            }
            let is_complete = (0..4).all(|i| !kinds[i] || keeps[i]);
            assert_eq!(stderr.is_empty(), is_complete, "{output} {kinds:?}: {stderr}");
        }
    }
}

/// The transfer function of sRGB (IEC 61966-2-1).
fn srgb(light: f64) -> f64 {
    if light <= 0.003_130_8 { 12.92 * light } else { 1.055 * light.powf(1.0 / 2.4) - 0.055 }
}

/// OpenEXR has linear light times alpha. Integers are encoded by sRGB, floats stay linear; both have straight alpha.
#[test]
fn linear_light_becomes_what_the_format_holds() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let values = [0.0f32, 0.0005, 0.0031, 0.01, 0.18, 0.25, 0.5, 0.75, 1.0, 1.5];
    for names in [&["Y"][..], &["R", "G", "B"], &["Y", "A"], &["R", "G", "B", "A"]] {
        let has_alpha = names.contains(&"A");
        let alphas = |i: usize| if has_alpha { [1.0, 0.5, 0.25][i % 3] } else { 1.0f32 };
        let straight = |i: usize, c: usize| values[(i + 3 * c) % values.len()];
        let channel = |(c, name): (usize, &&str)| {
            let value = |i: usize| match *name {
                "A" => alphas(i),
                _ => straight(i, c) * alphas(i),
            };
            AnyChannel::new(*name, FlatSamples::F32((0..12).map(value).collect()))
        };
        let channels = AnyChannels::sort(names.iter().enumerate().map(channel).collect());
        let attributes = LayerAttributes::named(Text::from("part"));
        let layer = Layer::new((4, 3), attributes, Encoding::UNCOMPRESSED, channels);
        let mut bytes = Cursor::new(Vec::new());
        ExrImage::from_layer(layer).write().to_buffered(&mut bytes).unwrap();
        fs::write(folder.join("in.exr"), bytes.into_inner()).unwrap();
        for (output, max) in [
            ("o.png", 65_535.0),
            ("o.pam", 65_535.0),
            ("o.bmp", 255.0),
            ("o.webp", 255.0),
            ("o.tif", 1.0),
            ("o.pfm", 1.0),
        ] {
            let line = format!("resize in.exr {output} --size 4x3 --filter nearest");
            works(folder, &line);
            let image = load_image(folder.join(output));
            let colours = names.len() - usize::from(has_alpha);
            for (i, pixel) in as_f64(&image.samples).chunks(image.channels).enumerate() {
                let case = format!("{names:?} to {output}, pixel {i}: {pixel:?}");
                for (c, &found) in pixel[..colours].iter().enumerate() {
                    let light = f64::from(straight(i, c));
                    let exact =
                        if max == 1.0 { light } else { (srgb(light.min(1.0)) * max).round() };
                    // Light is f32.
                    let allowed = if max == 1.0 {
                        1e-6
                    } else if max > 255.0 {
                        1.0
                    } else {
                        0.0
                    };
                    assert!((found - exact).abs() <= allowed, "{case}, expected {exact}");
                }
                if has_alpha && image.channels.is_multiple_of(2) {
                    let alpha = (f64::from(alphas(i)) * max).round();
                    let alpha = if max == 1.0 { f64::from(alphas(i)) } else { alpha };
                    assert_eq!(pixel[image.channels - 1], alpha, "{case}");
                }
            }
            assert_eq!(matches!(image.samples, Samples::F32(_)), max == 1.0, "{output}");
        }
    }
}

/// A palette is grey only if red, green and blue of all its entries are equal, in all frames.
#[test]
fn gif_is_grey_if_all_its_palettes_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.gif");
    let grey = [[9, 9, 9], [200, 200, 200]];
    for odd in [None, Some([9, 9, 10]), Some([10, 9, 9]), Some([9, 10, 9]), Some([1, 2, 3])] {
        // The entry is in the global palette, or in the local one of the first or the second frame.
        for place in 0..3 {
            for at in 0..2 {
                let palette = |own: usize| {
                    let mut palette = grey;
                    if let Some(colour) = odd.filter(|_| own == place) {
                        palette[at] = colour;
                    }
                    palette.concat()
                };
                let mut bytes = Vec::new();
                let mut encoder = Encoder::new(&mut bytes, 2, 1, &palette(0)).unwrap();
                for own in 1..3 {
                    let mut frame = Frame {
                        width: 2,
                        height: 1,
                        buffer: vec![0, 1].into(),
                        ..Frame::default()
                    };
                    // The first frame has the global palette if that one is odd.
                    frame.palette = (place != 0 || own == 2).then(|| palette(own));
                    encoder.write_frame(&frame).unwrap();
                }
                drop(encoder);
                fs::write(&path, bytes).unwrap();
                let image = load_image(&path);
                let case = format!("{odd:?} in palette {place}, entry {at}");
                assert_eq!(image.channels, if odd.is_none() { 1 } else { 3 }, "{case}");
                let mut first = if place == 2 { grey } else { [[0; 3]; 2] };
                if place < 2 {
                    first = grey;
                    first[at] = odd.unwrap_or(first[at]);
                }
                let expected: Vec<u8> = match image.channels {
                    1 => first.iter().map(|colour| colour[0]).collect(),
                    _ => first.concat(),
                };
                assert_eq!(image.samples, Samples::U8(expected), "{case}");
            }
        }
    }
}

/// Pages are counted from 0 in the library, from 1 on the command line; those after the last are an error that says so.
#[test]
fn pages_beyond_the_last_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for count in [1usize, 3] {
        let pages: Vec<TiffPage> =
            (0..count).map(|i| TiffPage::flat([3, 2], 10 * i as u8)).collect();
        fs::write(folder.join("in.tif"), tiff(&pages)).unwrap();
        works(folder, "blur in.tif in.gif --sigma 0");
        works(folder, "blur in.tif in.png --sigma 0");
        for name in ["in.tif", "in.gif", "in.png"] {
            let read = |page: usize| ReadOptions::new().page(page).read(folder.join(name));
            for page in 0..count {
                let image = read(page).unwrap().into_image::<u8>().unwrap();
                assert_eq!(image.samples()[0], 10 * page as u8, "{name}");
                works(folder, &format!("blur {name} o.png --sigma 0 --page {}", page + 1));
                assert_eq!(
                    load_image(folder.join("o.png")).samples,
                    Samples::U8(vec![10 * page as u8; 6])
                );
            }
            for page in [count, count + 1] {
                let expected = format!("there is no page {}, only", page + 1);
                assert_contains(&read(page).unwrap_err().to_string(), &expected);
                let (code, stderr) =
                    run(folder, &format!("blur {name} o.png --sigma 0 --page {}", page + 1));
                assert!(code == 4 && stderr.contains(&expected), "{name} {page}: {stderr}");
            }
        }
    }
}
