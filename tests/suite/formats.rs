//! Float images and metadata across formats: TIFF, EXR, WebP, JPEG, PNG.

use std::{fs, io::Cursor, path::Path};

use ::image::{ExtendedColorType, ImageDecoder, ImageEncoder, ImageReader, metadata::Orientation};
use ::tiff::{
    encoder::{TiffEncoder, colortype},
    tags::{ExtraSamples, Tag},
};
use gpuproc::{
    data::{dtype::Dtype, image::Image, samples::Samples},
    io::image::{Encoding, ImageFormat, ImageTarget},
    util::timings::Timings,
};
use predicates::prelude::*;

use crate::{
    asserts::assert_absent,
    common::{Noise, blur, outcome},
    inputs::load_image,
};

fn floats(image: &Image) -> &[f32] {
    match &image.samples {
        Samples::F32(values) => values,
        other => panic!("expected f32 samples, found {}", other.dtype()),
    }
}

const WIDTH: usize = 37;
const HEIGHT: usize = 29;

/// Positive noise, partly above 1.
fn noise(channels: usize, seed: u64) -> Vec<f32> {
    let mut noise = Noise(seed);
    (0..WIDTH * HEIGHT * channels).map(|_| (3.0 * noise.unit()) as f32 + 0.01).collect()
}

/// Writes a TIFF of f32 samples with the tiff crate.
fn write_tiff(path: &Path, channels: usize, values: &[f32]) {
    let mut bytes = Cursor::new(Vec::new());
    let mut encoder = TiffEncoder::new(&mut bytes).unwrap();
    let (width, height) = (WIDTH as u32, HEIGHT as u32);
    macro_rules! write {
        ($colour:ident) => {{
            let mut image = encoder.new_image::<colortype::$colour>(width, height).unwrap();
            if channels % 2 == 0 {
                image.extra_samples(&[ExtraSamples::UnassociatedAlpha]).unwrap();
            }
            image.write_data(values).unwrap();
        }};
    }
    if channels < 3 {
        write!(Gray32Float);
    } else {
        write!(RGB32Float);
    }
    fs::write(path, bytes.into_inner()).unwrap();
}

/// Writes an EXR with the exr crate.
fn write_exr(path: &Path, channels: usize, values: &[f32]) {
    use exr::prelude::*;
    let names: &[&str] =
        [&["Y"][..], &["Y", "A"], &["R", "G", "B"], &["R", "G", "B", "A"]][channels - 1];
    let channel = |(i, name): (usize, &&str)| {
        let samples = values.iter().skip(i).step_by(channels).copied().collect();
        AnyChannel::new(*name, FlatSamples::F32(samples))
    };
    let channels = AnyChannels::sort(names.iter().enumerate().map(channel).collect());
    let layer =
        Layer::new((WIDTH, HEIGHT), LayerAttributes::named(""), Encoding::SMALL_LOSSLESS, channels);
    exr::prelude::Image::from_layer(layer).write().non_parallel().to_file(path).unwrap();
}

/// Reads an EXR with the exr crate.
fn read_exr(path: &Path, channels: usize) -> Vec<f32> {
    let image = exr::prelude::read_first_flat_layer_from_file(path).unwrap();
    let list = &image.layer_data.channel_data.list;
    let names: &[&str] =
        [&["Y"][..], &["Y", "A"], &["R", "G", "B"], &["R", "G", "B", "A"]][channels - 1];
    assert_eq!(list.len(), names.len());
    let planes: Vec<Vec<f32>> = names
        .iter()
        .map(|name| {
            let channel = list.iter().find(|channel| channel.name.eq(name)).expect(name);
            channel.sample_data.values_as_f32().collect()
        })
        .collect();
    (0..planes[0].len()).flat_map(|i| planes.iter().map(move |plane| plane[i])).collect()
}

/// Gaussian blur along both axes with edge mode clamp, in f64. With `alpha`, colours are premultiplied.
fn reference(values: &[f32], channels: usize, sigma: f64, alpha: bool) -> Vec<f64> {
    let radius = (3.0 * sigma).ceil() as isize;
    let weight = |d: isize| (-(d * d) as f64 / (2.0 * sigma * sigma)).exp();
    let total: f64 = (-radius..=radius).map(weight).sum();
    let alpha = alpha.then_some(channels - 1);
    let at = |x: isize, y: isize, c: usize| {
        let x = x.clamp(0, WIDTH as isize - 1) as usize;
        let y = y.clamp(0, HEIGHT as isize - 1) as usize;
        let pixel = &values[(y * WIDTH + x) * channels..][..channels];
        let own = f64::from(pixel[c]);
        alpha.filter(|&alpha| alpha != c).map_or(own, |alpha| own * f64::from(pixel[alpha]))
    };
    let mut sums = Vec::new();
    for (y, x) in (0..HEIGHT as isize).flat_map(|y| (0..WIDTH as isize).map(move |x| (y, x))) {
        for c in 0..channels {
            let row = |dy: isize| -> f64 {
                (-radius..=radius).map(|dx| weight(dx) * at(x + dx, y + dy, c)).sum()
            };
            let sum: f64 = (-radius..=radius).map(|dy| weight(dy) * row(dy)).sum();
            sums.push(sum / total / total);
        }
    }
    if let Some(alpha) = alpha {
        for pixel in sums.chunks_exact_mut(channels) {
            let alpha = pixel[alpha];
            pixel[..channels - 1].iter_mut().for_each(|v| *v /= alpha);
        }
    }
    sums
}

#[test]
fn reads_blurs_and_writes_f32_tiff_and_exr() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for channels in 1..=4 {
        let values = noise(channels, channels as u64);
        write_tiff(&folder.join("in.tif"), channels, &values);
        write_exr(&folder.join("in.exr"), channels, &values);
        for input in ["in.tif", "in.exr"] {
            assert_eq!(floats(&load_image(folder.join(input))), values, "{input} {channels}");
        }
        let has_alpha = channels % 2 == 0;
        // In EXR files, colours are already premultiplied.
        for (name, alpha) in [("in.tif", has_alpha), ("in.exr", false)] {
            let extension = &name[2..];
            let out = |kind: &str| format!("{kind}{extension}");
            blur(folder, &[name, &out("same"), "--sigma", "0"]).success().stderr("");
            blur(folder, &[name, &out("soft"), "--sigma", "1.5"]).success().stderr("");
            let (same, soft) =
                (load_image(folder.join(out("same"))), load_image(folder.join(out("soft"))));
            assert_eq!(floats(&same), values, "{name} {channels}");
            assert_eq!((soft.width, soft.height, soft.channels), (WIDTH, HEIGHT, channels));
            let expected = reference(&values, channels, 1.5, alpha);
            for (found, expected) in floats(&soft).iter().zip(&expected) {
                assert!(
                    (f64::from(*found) - expected).abs() <= 3.0 * 2e-6,
                    "{name} {channels}: {found} {expected}"
                );
            }
        }
        assert_eq!(read_exr(&folder.join("same.exr"), channels), values);
        // TIFF and EXR differ only in premultiplication.
        blur(folder, &["in.tif", "light.exr", "--sigma", "0"]).success().stderr("");
        let light = read_exr(&folder.join("light.exr"), channels);
        for (light, stored) in light.chunks(channels).zip(values.chunks(channels)) {
            let alpha = if has_alpha { stored[channels - 1] } else { 1.0 };
            for c in 0..channels {
                let is_alpha = has_alpha && c == channels - 1;
                assert_eq!(light[c], if is_alpha { alpha } else { stored[c] * alpha });
            }
        }
        blur(folder, &["light.exr", "back.tif", "--sigma", "0"]).success().stderr("");
        let back = load_image(folder.join("back.tif"));
        for (a, b) in floats(&back).iter().zip(&values) {
            assert!((a - b).abs() <= 1e-6 * b, "{a} {b}");
        }
    }
    // The image crate can read this output, too.
    blur(folder, &["in.exr", "soft.tif"]).success();
    assert_eq!(
        ::image::open(folder.join("soft.tif")).unwrap().color(),
        ::image::ColorType::Rgba32F
    );
}

/// EXR stores linear light, so sRGB images are decoded on the way to EXR and encoded on the way back.
#[test]
fn converts_between_srgb_and_linear_exr() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let ramp: Vec<u8> = (0..=255u8).flat_map(|v| [v, 255 - v, v / 2, 255]).collect();
    let picture = ::image::RgbaImage::from_raw(16, 16, ramp.clone()).unwrap();
    picture.save(folder.join("in.png")).unwrap();
    blur(folder, &["in.png", "light.exr", "--sigma", "0"]).success().stderr("");
    let light = read_exr(&folder.join("light.exr"), 4);
    for (light, &stored) in light.iter().zip(&ramp).filter(|pair| *pair.1 < 255) {
        let v = f64::from(stored) / 255.0;
        let expected = if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) };
        assert!((f64::from(*light) - expected).abs() < 1e-6, "{stored}: {light} {expected}");
    }
    blur(folder, &["light.exr", "back.webp", "--sigma", "0", "--strict"]).code(4);
    blur(folder, &["light.exr", "back.webp", "--sigma", "0"])
        .success()
        .stderr("warning: back.webp: f32 samples become u8 in this format\n");
    assert_eq!(::image::open(folder.join("back.webp")).unwrap().into_rgba8(), picture);
    // In linear light, an opaque white image with edge value 1 stays constant, and so does a transparent one with edge
    // value 0.
    for (edge, value) in [("1", 1.0), ("0", 0.0)] {
        write_exr(&folder.join("flat.exr"), 4, &vec![value; WIDTH * HEIGHT * 4]);
        blur(folder, &["flat.exr", "flat2.exr", "--sigma", "4", "--edge", edge]).success();
        let flat = read_exr(&folder.join("flat2.exr"), 4);
        assert!(flat.iter().all(|v| (v - value).abs() < 1e-5), "{edge}");
    }
}

#[test]
fn nan_and_infinity_are_accepted_and_stay_local() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for channels in 1..=4 {
        let mut values = noise(channels, 9);
        let middle = (HEIGHT / 2 * WIDTH + WIDTH / 2) * channels;
        values[middle] = f32::NAN;
        values[middle + 2 * channels] = f32::INFINITY;
        values[middle + 4 * channels] = f32::NEG_INFINITY;
        write_tiff(&folder.join("in.tif"), channels, &values);
        write_exr(&folder.join("in.exr"), channels, &values);
        for input in ["in.tif", "in.exr"] {
            for method in ["gaussian", "box"] {
                for out in ["out.tif", "out.exr", "out.png", "out.jpg"] {
                    blur(folder, &[input, out, "--sigma", "1", "-m", method]).success();
                }
                // Pixels beyond the radius stay finite.
                let out = load_image(folder.join("out.tif"));
                assert!(floats(&out)[..channels].iter().all(|v| v.is_finite()), "{input} {method}");
            }
            outcome(folder, &format!("histogram {input} -o out.csv")).success();
            outcome(folder, &format!("scan {input} out.npy")).success();
        }
    }
}

#[test]
fn histogram_and_scan_use_linear_exr_values() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_exr(&folder.join("in.exr"), 1, &vec![0.25; WIDTH * HEIGHT]);
    outcome(folder, "histogram in.exr --bins 4 -o out.csv").success();
    let table = fs::read_to_string(folder.join("out.csv")).unwrap();
    assert!(table.lines().any(|line| line == format!("1,0.25,0.5,{}", WIDTH * HEIGHT)), "{table}");
    outcome(folder, "scan --inclusive in.exr out.csv").success();
    let sums = fs::read_to_string(folder.join("out.csv")).unwrap();
    let last = sums.split_whitespace().last().and_then(|row| row.rsplit(',').next());
    assert_eq!(last, Some(&*format!("{}", WIDTH as f64 * HEIGHT as f64 / 4.0)));
}

/// Images of both sample types come out upright for every EXIF orientation, and are rotated only once.
#[test]
fn applies_tiff_orientation_with_all_channels() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let values = noise(3, 4);
    let bytes: Vec<u8> = values.iter().map(|v| (v * 80.0) as u8).collect();
    for value in 1..=8u16 {
        let mut files = [Cursor::new(Vec::new()), Cursor::new(Vec::new())];
        let (width, height) = (WIDTH as u32, HEIGHT as u32);
        let mut encoder = TiffEncoder::new(&mut files[0]).unwrap();
        let mut image = encoder.new_image::<colortype::RGB32Float>(width, height).unwrap();
        image.encoder().write_tag(Tag::Orientation, value).unwrap();
        image.write_data(&values).unwrap();
        let mut encoder = TiffEncoder::new(&mut files[1]).unwrap();
        let mut image = encoder.new_image::<colortype::Gray8>(width, height).unwrap();
        image.extra_samples(&[ExtraSamples::UnassociatedAlpha]).unwrap();
        image.encoder().write_tag(Tag::Orientation, value).unwrap();
        image.write_data(&bytes[..2 * WIDTH * HEIGHT]).unwrap();
        let [colour, grey] = files.map(Cursor::into_inner);
        fs::write(folder.join("colour.tif"), colour).unwrap();
        fs::write(folder.join("grey.tif"), grey).unwrap();
        let orientation = Orientation::from_exif(value as u8).unwrap();
        let stored = ::image::Rgb32FImage::from_raw(width, height, values.clone()).unwrap();
        let mut upright = ::image::DynamicImage::ImageRgb32F(stored);
        upright.apply_orientation(orientation);
        let grey = bytes[..2 * WIDTH * HEIGHT].to_vec();
        let stored = ::image::GrayAlphaImage::from_raw(width, height, grey).unwrap();
        let mut upright_grey = ::image::DynamicImage::ImageLumaA8(stored);
        upright_grey.apply_orientation(orientation);
        blur(folder, &["colour.tif", "colour2.tif", "--sigma", "0"]).success().stderr("");
        assert!(::image::open(folder.join("colour2.tif")).unwrap() == upright, "{value}");
        for out in ["grey2.tif", "grey2.png"] {
            blur(folder, &["grey.tif", out, "--sigma", "0"]).success().stderr("");
            let found = load_image(folder.join(out));
            let expected = Samples::U8(upright_grey.as_bytes().to_vec());
            assert!(found.samples == expected && found.channels == 2, "{out} {value}");
            assert_eq!(found.width, upright_grey.width() as usize);
        }
    }
}

#[test]
fn reads_f16_and_planar_tiff() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Entries: tag, type, count, value. The directory of 11 entries ends at 146. Its tables and 2 x 1 RGB pixels follow
    // it.
    let file = |bits: u16, planar: bool, pixels: &[u8]| {
        let mut file = b"II*\0\x08\0\0\0\x0b\0".to_vec();
        let third = pixels.len() as u32 / 3;
        for (tag, kind, count, value) in [
            (256u16, 3u16, 1u32, 2u32),
            (257, 3, 1, 1),
            (258, 3, 1, bits.into()),
            (259, 3, 1, 1),
            (262, 3, 1, 2),
            (273, 4, if planar { 3 } else { 1 }, if planar { 146 } else { 170 }),
            (277, 3, 1, 3),
            (278, 3, 1, 1),
            (279, 4, if planar { 3 } else { 1 }, if planar { 158 } else { 3 * third }),
            (284, 3, 1, if planar { 2 } else { 1 }),
            (339, 3, 1, 3),
        ] {
            file.extend([tag.to_le_bytes(), kind.to_le_bytes()].concat());
            file.extend([count.to_le_bytes(), value.to_le_bytes()].concat());
        }
        file.extend([0; 4]);
        let words = [170, 170 + third, 170 + 2 * third, third, third, third];
        file.extend(words.map(u32::to_le_bytes).as_flattened());
        assert_eq!(file.len(), 170);
        file.extend(pixels);
        fs::write(folder.join("in.tif"), file).unwrap();
        let image = load_image(folder.join("in.tif"));
        assert_eq!((image.width, image.height, image.channels), (2, 1, 3));
        floats(&image).to_vec()
    };
    // 1, 1/2, 2, -2, infinity, and the smallest positive number.
    let halves = [0x3c00u16, 0x3800, 0x4000, 0xc000, 0x7c00, 0x0001].map(u16::to_le_bytes);
    let expected = [1.0, 0.5, 2.0, -2.0, f32::INFINITY, 2f32.powi(-24)];
    assert_eq!(file(16, false, halves.as_flattened()), expected);
    let [a, b, c, d, e, f] = expected;
    assert_eq!(file(16, true, halves.as_flattened()), [a, c, e, b, d, f]);
    let floats = expected.map(f32::to_le_bytes);
    assert_eq!(file(32, false, floats.as_flattened()), expected);
    assert_eq!(file(32, true, floats.as_flattened()), [a, c, e, b, d, f]);
}

/// An EXIF block with camera, exposure (in the EXIF IFD), GPS reference and orientation, in either byte order.
fn exif(little: bool) -> Vec<u8> {
    let half = |v: u16| if little { v.to_le_bytes() } else { v.to_be_bytes() };
    let word = |v: u32| if little { v.to_le_bytes() } else { v.to_be_bytes() };
    let mut block = if little { b"II*\0".to_vec() } else { b"MM\0*".to_vec() };
    block.extend(word(8));
    let entry = |tag: u16, kind: u16, count: u32, value: [u8; 4]| {
        [&half(tag)[..], &half(kind), &word(count), &value].concat()
    };
    let short = |v: u16| [half(v), [0; 2]].concat().try_into().unwrap();
    // Offsets: IFD of four entries at 8, EXIF IFD at 62, GPS IFD at 92, exposure 1/250 at 110, camera name at 118.
    block.extend(half(4));
    block.extend(entry(271, 2, 8, word(118)));
    block.extend(entry(274, 3, 1, short(6)));
    block.extend(entry(34665, 4, 1, word(62)));
    block.extend(entry(34853, 4, 1, word(92)));
    block.extend(word(0));
    block.extend(half(2));
    block.extend(entry(33434, 5, 1, word(110)));
    block.extend(entry(36864, 7, 4, *b"0232"));
    block.extend(word(0));
    block.extend(half(1));
    block.extend(entry(1, 2, 2, *b"N\0\0\0"));
    block.extend(word(0));
    block.extend([word(1), word(250)].concat());
    block.extend(b"Pinhole\0");
    assert_eq!(block.len(), 126);
    block
}

/// Reads camera, exposure and GPS reference of an EXIF block or TIFF file, and whether its orientation is not upright.
fn read_exif_fields(file: &[u8]) -> (Option<String>, Option<[u32; 2]>, Option<String>, bool) {
    let little = file.starts_with(b"II");
    let half = |at: usize| {
        let bytes = file[at..at + 2].try_into().unwrap();
        usize::from(if little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    };
    let word = |at: usize| {
        let bytes = file[at..at + 4].try_into().unwrap();
        if little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) }
    };
    let find = |directory: u32, tag: usize| {
        let start = directory as usize + 2;
        (0..half(start - 2)).map(|i| start + 12 * i).find(|&at| half(at) == tag)
    };
    let text = |at: usize| {
        let len = word(at + 4) as usize;
        let start = if len > 4 { word(at + 8) as usize } else { at + 8 };
        String::from_utf8(file[start..start + len - 1].to_vec()).unwrap()
    };
    let first = word(4);
    let below = |tag: usize| find(first, tag).map(|at| word(at + 8));
    let exposure = below(34665).and_then(|exif| find(exif, 33434)).map(|at| word(at + 8) as usize);
    (
        find(first, 271).map(text),
        exposure.map(|at| [word(at), word(at + 4)]),
        below(34853).and_then(|gps| find(gps, 1)).map(text),
        find(first, 274).is_some_and(|at| half(at + 8) != 1),
    )
}

/// EXIF and ICC profile are kept between all formats that support both, and dropped with a warning in the others.
#[test]
fn keeps_exif_and_icc_profile_across_formats() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let expected = (Some("Pinhole".into()), Some([1, 250]), Some("N".into()), false);
    let profile = b"a profile".to_vec();
    let pixels = vec![100u8; 20 * 10 * 3];
    for little in [true, false] {
        let mut png = Vec::new();
        let mut encoder = ::image::codecs::png::PngEncoder::new(&mut png);
        encoder.set_icc_profile(profile.clone()).unwrap();
        encoder.set_exif_metadata(exif(little)).unwrap();
        encoder.write_image(&pixels, 20, 10, ExtendedColorType::Rgb8).unwrap();
        fs::write(folder.join("first.png"), png).unwrap();
        for input in ["a.png", "a.jpg", "a.webp", "a.tif"] {
            // The orientation is applied when the first file is read.
            blur(folder, &["first.png", input, "--sigma", "0"]).success().stderr("");
            for output in ["b.png", "b.jpg", "b.webp", "b.tif"] {
                blur(folder, &[input, output, "--strict"]).success().stderr("");
                let path = folder.join(output);
                let mut decoder = ImageReader::open(&path).unwrap().into_decoder().unwrap();
                assert_eq!(decoder.dimensions(), (10, 20), "{input} {output}");
                assert_eq!(
                    decoder.icc_profile().unwrap().as_ref(),
                    Some(&profile),
                    "{input} {output}"
                );
                assert_eq!(decoder.orientation().unwrap(), Orientation::NoTransforms);
                let file = match output {
                    "b.tif" => fs::read(&path).unwrap(),
                    _ => decoder.exif_metadata().unwrap().expect(output),
                };
                assert_eq!(read_exif_fields(&file), expected, "{input} {output}");
            }
            for output in ["b.bmp", "b.pnm", "b.exr"] {
                let loss = "the colour profile is dropped and EXIF is dropped in this format";
                blur(folder, &[input, output]).success().stderr(predicate::str::contains(loss));
                fs::remove_file(folder.join(output)).unwrap();
                blur(folder, &[input, output, "--strict"]).code(4);
                assert_absent(folder.join(output));
            }
        }
    }
    // A file without metadata gets no EXIF.
    write_tiff(&folder.join("plain.tif"), 3, &noise(3, 1));
    assert_eq!(load_image(folder.join("plain.tif")).metadata.exif, None);
}

/// If EXIF has cyclic directories, or entries that are out of bounds or too long, only the EXIF is lost.
#[test]
fn broken_exif_does_not_lose_the_image() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let pixels = vec![100u8; 20 * 10 * 3];
    let mut noise = Noise(3);
    for round in 0..60 {
        let mut block = exif(round % 2 == 0);
        match round {
            // The EXIF IFD contains itself.
            0 => block[42..46].copy_from_slice(&8u32.to_le_bytes()),
            _ => {
                for _ in 0..3 {
                    let at = 4 + noise.next() as usize % (block.len() - 4);
                    block[at] = noise.next() as u8;
                }
            }
        }
        let mut png = Vec::new();
        let mut encoder = ::image::codecs::png::PngEncoder::new(&mut png);
        encoder.set_exif_metadata(block).unwrap();
        encoder.write_image(&pixels, 20, 10, ExtendedColorType::Rgb8).unwrap();
        fs::write(folder.join("in.png"), png).unwrap();
        let image = load_image(folder.join("in.png"));
        let sink = gpuproc::io::Sink::File(folder.join("out.tif"));
        let timings = Timings::new(false);
        let target = ImageTarget::new(&sink, ImageFormat::Tiff, Encoding::default(), &timings);
        target.write(image.clone()).unwrap();
        let again = load_image(folder.join("out.tif"));
        assert!(again.samples == image.samples && again.samples.dtype() == Dtype::U8);
    }
}
