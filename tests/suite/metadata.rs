//! Metadata agree with the pixels that are written: profiles, EXIF, XMP and densities.

use std::{fs, path::Path};

use gpuproc::data::image::DensityUnit;

use crate::{
    asserts::assert_contains,
    common::{info_json, works},
    inputs::{load_image, png_chunk, zlib},
};

/// A PNG file of `size` pixels of 8 bits with additional chunks. `colour` is 0 for grey, 2 for RGB.
fn png([width, height]: [u32; 2], colour: u8, chunks: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
    let channels = if colour == 0 { 1 } else { 3 };
    let row = |y: u32| {
        let samples = (0..width * channels).map(move |x| (40 * y + 7 * x) as u8);
        std::iter::once(0).chain(samples)
    };
    let rows: Vec<u8> = (0..height).flat_map(row).collect();
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, colour, 0, 0, 0]].concat();
    file.extend(png_chunk(b"IHDR", &header));
    chunks.iter().for_each(|(name, data)| file.extend(png_chunk(name, data)));
    file.extend(png_chunk(b"IDAT", &zlib(&rows)));
    file.extend(png_chunk(b"IEND", &[]));
    file
}

/// The header of an ICC profile of a colour space.
fn profile(space: &[u8; 4]) -> Vec<u8> {
    let mut profile = vec![0; 132];
    profile[16..20].copy_from_slice(space);
    profile[36..40].copy_from_slice(b"acsp");
    profile
}

fn iccp(space: &[u8; 4]) -> (&'static [u8; 4], Vec<u8>) {
    (b"iCCP", [b"icc\0\0".to_vec(), zlib(&profile(space))].concat())
}

fn icc(path: impl AsRef<Path>) -> Option<Vec<u8>> {
    load_image(path).metadata.icc
}

#[test]
fn profiles_of_other_colours_are_dropped_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (colour, stored) in [(0, b"GRAY"), (2, b"RGB ")] {
        for space in [b"GRAY", b"RGB ", b"CMYK", b"Lab "] {
            fs::write(folder.join("in.png"), png([6, 4], colour, &[iccp(space)])).unwrap();
            for output in ["o.png", "o.jpg", "o.tif", "o.webp"] {
                // WebP stores RGB only.
                let stored = if output == "o.webp" { b"RGB " } else { stored };
                let stderr = works(folder, &format!("blur in.png {output} --sigma 0"));
                let expected = (space == stored).then(|| profile(space));
                assert_eq!(icc(folder.join(output)), expected, "{output} {colour} {space:?}");
                let is_lost = space != stored && (stored == b"RGB " || space != b"RGB ");
                let message = "the colour profile is dropped: it is for";
                assert_eq!(stderr.contains(message), is_lost, "{output} {colour}: {stderr}");
            }
        }
    }
}

/// The same holds for results of every command that makes other channels, and for images in blocks.
#[test]
fn masks_and_labels_have_no_profile_of_colours() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("rgb.png"), png([6, 4], 2, &[iccp(b"RGB ")])).unwrap();
    fs::write(folder.join("grey.png"), png([6, 4], 0, &[iccp(b"GRAY")])).unwrap();
    for (line, keeps) in [
        ("threshold rgb.png o.png -T 90", false),
        ("threshold rgb.png o.tif -T 90", false),
        ("label rgb.png o.png", false),
        ("threshold grey.png o.png -T 90", true),
        ("histogram rgb.png --auto-levels o.png -o h.csv", true),
        ("resize rgb.png o.png --size 3x2", true),
        ("gradient rgb.png o.tif", true),
    ] {
        let stderr = works(folder, line);
        assert!(!stderr.contains("profile"), "{line}: {stderr}");
        let output = if line.contains("o.tif") { "o.tif" } else { "o.png" };
        assert_eq!(icc(folder.join(output)).is_some(), keeps, "{line}");
    }
    // An image of 2 MB with 1 MB of memory is filtered in blocks.
    fs::write(folder.join("large.png"), png([1000, 700], 2, &[iccp(b"RGB ")])).unwrap();
    works(folder, "threshold large.png o.png -T 90 --max-memory 1M");
    assert_eq!(icc(folder.join("o.png")), None);
}

/// Types of numbers in EXIF: kind, bytes of a unit, and number of units.
const KINDS: [(u16, usize); 11] =
    [(1, 1), (3, 2), (4, 4), (5, 8), (6, 1), (8, 2), (9, 4), (10, 8), (11, 4), (12, 8), (13, 4)];

/// An integer as a value of `kind`, in the byte order of the block.
fn value(kind: u16, number: u32, little: bool) -> Vec<u8> {
    let unit = |bytes: Vec<u8>| match little {
        true => bytes.into_iter().rev().collect(),
        false => bytes,
    };
    match kind {
        1 | 6 => vec![number as u8],
        3 | 8 => unit((number as u16).to_be_bytes().to_vec()),
        5 | 10 => [unit(number.to_be_bytes().to_vec()), unit(1u32.to_be_bytes().to_vec())].concat(),
        11 => unit((number as f32).to_be_bytes().to_vec()),
        12 => unit(f64::from(number).to_be_bytes().to_vec()),
        _ => unit(number.to_be_bytes().to_vec()),
    }
}

type Tag = (u16, u16, Vec<u8>);

/// A block of EXIF with these tags in the first directory and in that of EXIF, and a thumbnail of these bytes.
fn exif(little: bool, first: &[Tag], below: &[Tag], thumbnail: &[u8]) -> Vec<u8> {
    let half = |v: u16| if little { v.to_le_bytes() } else { v.to_be_bytes() };
    let word = |v: u32| if little { v.to_le_bytes() } else { v.to_be_bytes() };
    let len = |tags: &[Tag]| {
        let far = tags.iter().filter(|tag| tag.2.len() > 4).map(|tag| tag.2.len()).sum::<usize>();
        2 + 12 * tags.len() + 4 + far
    };
    let directory = |at: usize, tags: &[Tag], next: u32| {
        let mut bytes = half(tags.len() as u16).to_vec();
        let mut far = Vec::new();
        let far_at = at + 2 + 12 * tags.len() + 4;
        for (tag, kind, value) in tags {
            let size = match kind {
                2 | 7 => 1,
                _ => KINDS.iter().find(|known| known.0 == *kind).unwrap().1,
            };
            bytes.extend([half(*tag), half(*kind)].concat());
            bytes.extend(word((value.len() / size) as u32));
            let mut inline = value.clone();
            if value.len() > 4 {
                inline = word((far_at + far.len()) as u32).to_vec();
                far.extend(value);
            }
            inline.resize(4, 0);
            bytes.extend(inline);
        }
        bytes.extend(word(next));
        [bytes, far].concat()
    };
    let mut first = first.to_vec();
    first.push((34665, 4, word(0).to_vec()));
    let below_at = 8 + len(&first);
    first.last_mut().unwrap().2 = word(below_at as u32).to_vec();
    let second_at = below_at + len(below);
    let thumbnail_at = (second_at + 2 + 24 + 4) as u32;
    let second =
        [(513, 4, word(thumbnail_at).to_vec()), (514, 4, word(thumbnail.len() as u32).to_vec())];
    let start = if little { b"II*\0" } else { b"MM\0*" };
    [
        [&start[..], &word(8)].concat(),
        directory(8, &first, second_at as u32),
        directory(below_at, below, 0),
        directory(second_at, &second, 0),
        thumbnail.to_vec(),
    ]
    .concat()
}

fn words(bytes: &[u8], little: bool, at: usize) -> u32 {
    let word = bytes[at..at + 4].try_into().unwrap();
    if little { u32::from_le_bytes(word) } else { u32::from_be_bytes(word) }
}

fn half(bytes: &[u8], little: bool, at: usize) -> usize {
    let half = bytes[at..at + 2].try_into().unwrap();
    usize::from(if little { u16::from_le_bytes(half) } else { u16::from_be_bytes(half) })
}

/// Kind, and number of the first value, of a tag in the directory at `at` of a block.
fn tag_in(block: &[u8], little: bool, at: usize, tag: u16) -> Option<(u16, f64)> {
    let half = |at: usize| half(block, little, at) as u16;
    let entry = (0..usize::from(half(at))).map(|i| at + 2 + 12 * i).find(|&e| half(e) == tag)?;
    let kind = half(entry + 2);
    let far = words(block, little, entry + 8) as usize;
    Some((
        kind,
        match kind {
            3 => half(entry + 8).into(),
            5 | 10 => {
                f64::from(words(block, little, far)) / f64::from(words(block, little, far + 4))
            }
            12 if little => f64::from_le_bytes(block[far..far + 8].try_into().unwrap()),
            12 => f64::from_be_bytes(block[far..far + 8].try_into().unwrap()),
            _ => words(block, little, entry + 8).into(),
        },
    ))
}

const THUMBNAIL: &[u8] = b"\xff\xd8THUMBNAIL";

/// A thumbnail that is stated to be all of the block is not removed with all of it.
#[test]
fn wrong_offsets_of_thumbnails_erase_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut block = exif(true, &[(271, 2, b"a maker\0".to_vec())], &[], THUMBNAIL);
    // The second directory, of two entries, precedes the thumbnail.
    let (len, second) = (block.len() as u32, block.len() - THUMBNAIL.len() - 30);
    block[second + 10..second + 14].copy_from_slice(&8u32.to_le_bytes());
    block[second + 22..second + 26].copy_from_slice(&(len - 8).to_le_bytes());
    fs::write(folder.join("in.png"), png([6, 4], 2, &[(b"eXIf", block)])).unwrap();
    works(folder, "blur in.png o.png --sigma 0");
    let exif = load_image(folder.join("o.png")).metadata.exif.unwrap();
    assert!(exif.windows(7).any(|text| text == b"a maker"), "{exif:?}");
}

#[test]
fn numbers_in_exif_may_have_every_numeric_type() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (kind, _) in KINDS {
        for little in [true, false] {
            let tag = |tag: u16, number: u32| (tag, kind, value(kind, number, little));
            let first = [
                tag(256, 60),
                tag(257, 40),
                tag(274, 6),
                tag(282, 100),
                tag(283, 50),
                (296, 3, value(3, 3, little)),
            ];
            let block = exif(little, &first, &[tag(40962, 60), tag(40963, 40)], THUMBNAIL);
            fs::write(folder.join("in.png"), png([60, 40], 2, &[(b"eXIf", block)])).unwrap();
            for output in ["o.png", "o.jpg", "o.webp", "o.tif"] {
                let case = format!("{kind} {little} {output}");
                works(folder, &format!("blur in.png {output} --sigma 0 --strict"));
                let image = load_image(folder.join(output));
                assert_eq!([image.width, image.height], [40, 60], "{case}");
                // The axes are turned with the pixels.
                let density = image.metadata.density.or_else(|| {
                    // WebP has no density but that of EXIF.
                    works(folder, &format!("blur {output} again.tif --sigma 0"));
                    load_image(folder.join("again.tif")).metadata.density
                });
                let pixels = density.unwrap().per(DensityUnit::Centimetre).unwrap();
                assert!(
                    (pixels[0] - 50.0).abs() < 0.1 && (pixels[1] - 100.0).abs() < 0.1,
                    "{case}"
                );
                let bytes = fs::read(folder.join(output)).unwrap();
                assert!(!bytes.windows(9).any(|found| found == b"THUMBNAIL"), "{case}");
                let exif = image.metadata.exif.unwrap();
                // A block that is rebuilt from tags is little-endian.
                let little = exif.starts_with(b"II");
                let below = tag_in(&exif, little, 8, 34665).unwrap().1 as usize;
                let number = |at: usize, tag: u16| tag_in(&exif, little, at, tag).map(|v| v.1);
                assert_eq!(number(below, 40962), Some(40.0), "{case}");
                assert_eq!(number(below, 40963), Some(60.0), "{case}");
                if output != "o.tif" {
                    // No directory with a thumbnail follows.
                    let count = half(&exif, little, 8);
                    assert_eq!(words(&exif, little, 10 + 12 * count), 0, "{case}");
                    let sides = [256, 257, 274].map(|tag| number(8, tag));
                    assert_eq!(sides, [Some(40.0), Some(60.0), Some(1.0)], "{case}");
                }
            }
        }
    }
}

/// Sizes above 65,535 replace numbers of 16 bits, which cannot hold them.
#[test]
fn sizes_in_exif_are_those_of_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let short = |tag: u16, number: u32| (tag, 3, value(3, number, false));
    let block = exif(false, &[], &[short(40962, 7), short(40963, 7)], b"");
    fs::write(folder.join("in.png"), png([40, 3], 0, &[(b"eXIf", block)])).unwrap();
    for (size, expected) in [("20x5", [20.0, 5.0]), ("70000x2", [70_000.0, 2.0])] {
        works(folder, &format!("resize in.png o.png --size {size}"));
        let exif = load_image(folder.join("o.png")).metadata.exif.unwrap();
        let below = tag_in(&exif, false, 8, 34665).unwrap().1 as usize;
        let sides = [40962, 40963].map(|tag| tag_in(&exif, false, below, tag).unwrap().1);
        assert_eq!(sides, expected, "{size}");
    }
}

/// Tags with types that TIFF does not allow are converted or dropped, so that every reader opens the file.
#[test]
fn tags_of_wrong_types_do_not_reach_tiff() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = |tag: u16, kind: u16, text: &str| (tag, kind, text.as_bytes().to_vec());
    let first = [
        // A description as bytes, a maker as numbers, a model as text, resolutions as texts, a white point as bytes.
        text(270, 7, "a long description"),
        (271, 4, value(4, 7, false)),
        text(272, 2, "model\0"),
        text(282, 2, "three hundred\0"),
        text(283, 2, "three hundred\0"),
        text(296, 2, "x\0"),
        text(318, 1, "white point"),
    ];
    let block = exif(false, &first, &[], b"");
    fs::write(folder.join("in.png"), png([6, 4], 2, &[(b"eXIf", block)])).unwrap();
    let stderr = works(folder, "blur in.png o.tif --sigma 0");
    assert_contains(&stderr, "EXIF that cannot be read, or has types that TIFF does not allow");
    let file = fs::read(folder.join("o.tif")).unwrap();
    let first = words(&file, true, 4) as usize;
    let kind = |tag: u16| tag_in(&file, true, first, tag).map(|found| found.0);
    assert_eq!([270, 272].map(kind), [Some(2); 2]);
    assert_eq!([271, 282, 283, 296, 318].map(kind), [None; 5]);
    let mut decoder = tiff::decoder::Decoder::new(std::io::Cursor::new(&file)).unwrap();
    let text = decoder.get_tag_ascii_string(tiff::tags::Tag::ImageDescription).unwrap();
    assert_eq!(text, "a long description");
}

fn xmp_packet(properties: &str) -> Vec<u8> {
    format!(
        "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\">\
         <rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">\
         <rdf:Description rdf:about=\"\" {properties}/></rdf:RDF></x:xmpmeta>"
    )
    .into_bytes()
}

fn itxt(xmp: &[u8]) -> (&'static [u8; 4], Vec<u8>) {
    (b"iTXt", [b"XML:com.adobe.xmp\0\0\0\0\0", xmp].concat())
}

#[test]
fn xmp_states_the_orientation_and_size_of_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let packet = |orientation: u8, size: [u32; 2]| {
        let [width, height] = size;
        xmp_packet(&format!(
            "xmlns:tiff=\"http://ns.adobe.com/tiff/1.0/\" \
             xmlns:exif=\"http://ns.adobe.com/exif/1.0/\" tiff:Orientation=\"{orientation}\" \
             exif:PixelXDimension=\"{width}\" exif:PixelYDimension=\"{height}\""
        ))
    };
    let block = |orientation: u32| {
        (b"eXIf", exif(true, &[(274, 3, value(3, orientation, true))], &[], b""))
    };
    for output in ["o.png", "o.jpg", "o.webp", "o.tif"] {
        for (orientation, turned) in [(6, [4, 6]), (3, [6, 4])] {
            let chunks = [block(orientation), itxt(&packet(orientation as u8, [6, 4]))];
            fs::write(folder.join("in.png"), png([6, 4], 2, &chunks)).unwrap();
            works(folder, &format!("blur in.png {output} --sigma 0"));
            let xmp = load_image(folder.join(output)).metadata.xmp.unwrap();
            assert_eq!(String::from_utf8(xmp), String::from_utf8(packet(1, turned)), "{output}");
        }
        // Without EXIF, pixels are not turned, so XMP stays true.
        fs::write(folder.join("in.png"), png([6, 4], 2, &[itxt(&packet(6, [6, 4]))])).unwrap();
        works(folder, &format!("resize in.png {output} --size 3x2"));
        let xmp = load_image(folder.join(output)).metadata.xmp.unwrap();
        assert_eq!(String::from_utf8(xmp), String::from_utf8(packet(6, [3, 2])), "{output}");
    }
}

/// XMP of an UltraHDR photo or a motion photo does not announce what is not written.
#[test]
fn xmp_announces_no_gain_map_that_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (name, gone) in [
        (
            "hdr-gain-map",
            "xmlns:hdrgm=\"http://ns.adobe.com/hdr-gain-map/1.0/\" hdrgm:Version=\"1.0\" ",
        ),
        ("camera", "xmlns:Cam=\"http://ns.google.com/photos/1.0/camera/\" Cam:MotionPhoto=\"1\" "),
    ] {
        let kept = "xmlns:tiff=\"http://ns.adobe.com/tiff/1.0/\" tiff:Make=\"M\"";
        let packet = xmp_packet(&format!("{gone}{kept}"));
        fs::write(folder.join("in.png"), png([6, 4], 2, &[itxt(&packet)])).unwrap();
        for output in ["o.jpg", "o.png"] {
            let stderr = works(folder, &format!("blur in.png {output} --sigma 0"));
            assert_contains(
                &stderr,
                "the gain map, depth map or video that XMP announces is dropped",
            );
            let bytes = fs::read(folder.join(output)).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            assert!(text.contains("tiff:Make=\"M\"") && !text.contains("MotionPhoto"), "{text}");
            assert!(!text.contains("hdrgm"), "{name}: {text}");
            // The result announces nothing.
            assert_eq!(works(folder, &format!("blur {output} again.png --sigma 0")), "");
        }
    }
}

/// The two axes of a density change places where the pixels do, in every format that has one.
#[test]
fn densities_are_turned_with_the_pixels() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let physical = [&2000u32.to_be_bytes()[..], &1000u32.to_be_bytes(), &[1]].concat();
    for (orientation, expected) in [(1, [20.0, 10.0]), (6, [10.0, 20.0]), (3, [20.0, 10.0])] {
        let block = exif(false, &[(274, 3, value(3, orientation, false))], &[], b"");
        let chunks = [(b"eXIf", block), (b"pHYs", physical.clone())];
        fs::write(folder.join("in.png"), png([6, 4], 2, &chunks)).unwrap();
        for output in ["o.png", "o.jpg", "o.tif", "o.bmp"] {
            works(folder, &format!("blur in.png {output} --sigma 0"));
            let density = load_image(folder.join(output)).metadata.density.unwrap();
            let pixels = density.per(DensityUnit::Centimetre).unwrap();
            let is_near = (0..2).all(|axis| (pixels[axis] - expected[axis]).abs() < 0.3);
            assert!(is_near, "{output} {orientation}: {pixels:?}");
            let shown = info_json(folder, output);
            assert_eq!(shown.len(), 1);
        }
    }
}

/// Each property as an attribute and as an element, and what becomes of it: `None` if it is gone.
#[test]
fn every_property_of_xmp_is_kept_changed_or_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [tiff, exif] = ["http://ns.adobe.com/tiff/1.0/", "http://ns.adobe.com/exif/1.0/"];
    let camera = "http://ns.google.com/photos/1.0/camera/";
    let mut all = vec![
        (tiff, "Make", Some("7")),
        (tiff, "Orientation", Some("7")),
        (tiff, "ImageWidth", Some("3")),
        (tiff, "ImageLength", Some("2")),
        (exif, "PixelXDimension", Some("3")),
        (exif, "PixelYDimension", Some("2")),
        (exif, "ImageWidth", Some("7")),
        (exif, "FNumber", Some("7")),
        (camera, "MotionPhoto", None),
        (camera, "MotionPhotoVersion", None),
        (camera, "MicroVideoOffset", None),
        (camera, "Make", Some("7")),
        ("http://ns.adobe.com/xap/1.0/", "Thumbnails", None),
        ("http://ns.adobe.com/xap/1.0/", "Rating", Some("7")),
        ("http://ns.adobe.com/xmp/note/", "HasExtendedXMP", None),
        ("http://ns.adobe.com/hdr-gain-map/1.0/", "Version", None),
        ("http://ns.apple.com/HDRGainMap/1.0/", "HDRGainMapVersion", None),
        ("http://ns.google.com/photos/1.0/container/", "Directory", None),
        ("http://ns.google.com/photos/1.0/container/item/", "Mime", None),
        ("http://ns.google.com/photos/1.0/depthmap/", "Near", None),
        ("http://ns.google.com/photos/1.0/image/", "Mime", None),
        ("http://ns.google.com/photos/dd/1.0/container/", "Directory", None),
        ("http://example.org/", "BitsPerSample", Some("7")),
    ];
    for name in ["BitsPerSample", "Compression", "PhotometricInterpretation", "PlanarConfiguration"]
    {
        all.push((tiff, name, None));
    }
    for name in ["SamplesPerPixel", "YCbCrCoefficients", "YCbCrPositioning", "YCbCrSubSampling"] {
        all.push((tiff, name, None));
    }
    for is_element in [false, true] {
        // A prefix for each property.
        let property = |(i, (_, name, _)): (usize, &(&str, &str, Option<&str>))| match is_element {
            true => format!("<p{i}:{name}>7</p{i}:{name}>"),
            false => format!("p{i}:{name}=\"7\""),
        };
        let declared =
            all.iter().enumerate().map(|(i, (space, ..))| format!("xmlns:p{i}=\"{space}\" "));
        let (declared, properties) = (
            declared.collect::<String>(),
            all.iter().enumerate().map(property).collect::<Vec<_>>().join(" "),
        );
        let packet = match is_element {
            true => format!("<rdf:Description {declared}>{properties}</rdf:Description>"),
            false => format!("<rdf:Description {declared}{properties}/>"),
        };
        let packet = format!(
            "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">\
             {packet}</rdf:RDF></x:xmpmeta>"
        );
        fs::write(folder.join("in.png"), png([6, 4], 2, &[itxt(packet.as_bytes())])).unwrap();
        works(folder, "resize in.png o.png --size 3x2");
        let xmp =
            String::from_utf8(load_image(folder.join("o.png")).metadata.xmp.unwrap()).unwrap();
        for (i, (space, name, expected)) in all.iter().enumerate() {
            let end = if is_element { ">" } else { "=\"" };
            let found = xmp.split(&format!("p{i}:{name}{end}")).nth(1);
            let value = found.and_then(|rest| rest.split(['<', '"']).next());
            assert_eq!(value, *expected, "{space} {name}, {is_element}: {xmp}");
        }
    }
}
