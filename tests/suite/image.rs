//! Reading and writing of images by the `blur` command: bit depth, alpha, metadata, formats, bad input.

use std::{fs, iter, path::Path};

use assert_cmd::Command;
use gpuproc::{
    data::{image::Image, samples::Samples},
    device::Kernel,
    io::{
        Limits, Source,
        image::{jpeg, read_image},
    },
    kernels::jpeg::Decode,
    util::{error::Kind, timings::Timings},
};
use image::{
    DynamicImage, ImageBuffer, ImageDecoder, ImageEncoder, codecs::png::PngEncoder,
    imageops::FilterType,
};
use predicates::prelude::*;

use crate::{
    asserts::assert_absent,
    common::{Noise, assert_twins, blur},
    inputs::fixture,
};

fn gpuproc() -> Command {
    let mut command = crate::common::gpuproc();
    command.env("GPUPROC_DEVICE", "cpu");
    command
}

fn test_image(channels: u8, bits: u8) -> DynamicImage {
    let at = |i: u32| (i * 37 % 256) as u8;
    let wide = |i: u32| (i * 9973 % 65536) as u16;
    let (w, h) = (23, 17);
    let bytes = || (0..w * h * u32::from(channels)).map(at).collect::<Vec<u8>>();
    let words = || (0..w * h * u32::from(channels)).map(wide).collect::<Vec<u16>>();
    match (channels, bits) {
        (1, 8) => DynamicImage::ImageLuma8(ImageBuffer::from_raw(w, h, bytes()).unwrap()),
        (2, 8) => DynamicImage::ImageLumaA8(ImageBuffer::from_raw(w, h, bytes()).unwrap()),
        (3, 8) => DynamicImage::ImageRgb8(ImageBuffer::from_raw(w, h, bytes()).unwrap()),
        (4, 8) => DynamicImage::ImageRgba8(ImageBuffer::from_raw(w, h, bytes()).unwrap()),
        (1, _) => DynamicImage::ImageLuma16(ImageBuffer::from_raw(w, h, words()).unwrap()),
        (2, _) => DynamicImage::ImageLumaA16(ImageBuffer::from_raw(w, h, words()).unwrap()),
        (3, _) => DynamicImage::ImageRgb16(ImageBuffer::from_raw(w, h, words()).unwrap()),
        (_, _) => DynamicImage::ImageRgba16(ImageBuffer::from_raw(w, h, words()).unwrap()),
    }
}

#[test]
fn keeps_depth_and_channels() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (channels, bits) in [(1, 8), (2, 8), (3, 8), (4, 8), (1, 16), (2, 16), (3, 16), (4, 16)] {
        let input = test_image(channels, bits);
        input.save(path("in.png")).unwrap();
        // A sigma of 0 leaves the samples unchanged.
        blur(folder.path(), &["in.png", "same.png", "--sigma", "0"]).success().stderr("");
        assert_eq!(image::open(path("same.png")).unwrap(), input);
        blur(folder.path(), &["in.png", "out.png", "--sigma", "2"]).success().stderr("");
        let output = image::open(path("out.png")).unwrap();
        assert_eq!((output.color(), output.width(), output.height()), (input.color(), 23, 17));
        assert_ne!(output, input);
        if channels != 2 {
            blur(folder.path(), &["in.png", "out.tif"]).success().stderr("");
            assert_eq!(image::open(path("out.tif")).unwrap(), output);
        }
    }
    for name in ["out.webp", "out.bmp", "out.pnm"] {
        test_image(3, 8).save(path("in.png")).unwrap();
        blur(folder.path(), &["in.png", name]).success().stderr("");
        blur(folder.path(), &["in.png", "out.png"]).success();
        assert_eq!(image::open(path(name)).unwrap(), image::open(path("out.png")).unwrap());
    }
}

/// The fixtures contain the pixels that libjpeg decodes.
#[test]
fn jpeg_decodes_bit_exactly_like_libjpeg() {
    let timings = Timings::new(false);
    let read = |path: &Path| read_image(&Source::from(path), 1 << 30, &timings);
    let (mut files, mut by_coefficients) = (0, 0);
    for entry in fs::read_dir(fixture("jpeg")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jpg") {
            let (found, expected) =
                (read(&path).unwrap(), read(&path.with_extension("png")).unwrap());
            assert!(found.samples == expected.samples, "{}", path.display());
            // The decoder that starts from coefficients and runs on a device gives the same pixels.
            let bytes = fs::read(&path).unwrap();
            if let Some((coefficients, _)) = jpeg::read_coefficients(&bytes, Limits::from(1 << 30))
            {
                let pixels = assert_twins(&Decode, &coefficients, |cpu, gpu, name| {
                    assert!(cpu == gpu, "{name}");
                });
                assert!(Samples::U8(pixels) == expected.samples, "{}", path.display());
                by_coefficients += 1;
            }
            files += 1;
        }
    }
    assert_eq!((files, by_coefficients), (24, 24));
}

/// Fill bytes (ITU-T T.81, B.1.1.2) before each 0xff of the data do not change the image.
#[test]
fn skips_fill_bytes_in_jpeg_scans() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("filled.jpg");
    for name in ["sequential_444_optimised", "sequential_420_restarts", "progressive_grey"] {
        let file = fixture("jpeg").join(name);
        let whole = fs::read(file.with_extension("jpg")).unwrap();
        let scan = whole.windows(2).position(|at| at == [0xff, 0xda]).unwrap();
        let (head, scans) = whole.split_at(scan);
        let filled =
            scans.iter().flat_map(|&byte| iter::repeat_n(byte, 1 + usize::from(byte == 0xff) * 2));
        let filled = filled.collect::<Vec<u8>>();
        assert!(filled.len() > scans.len() + 6, "{name}");
        fs::write(&path, [head, &filled].concat()).unwrap();
        let read = |path: &Path| {
            let image = read_image(&Source::from(path), 1 << 26, &Timings::new(false));
            image.unwrap().samples
        };
        assert!(read(&path) == read(&file.with_extension("png")), "{name}");
    }
}

/// Both decoders give an error or an image of the right size.
#[test]
fn damaged_jpeg_gives_an_error_or_an_image_of_full_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.jpg");
    let timings = Timings::new(false);
    let mut noise = Noise(31);
    for name in ["progressive_420", "sequential_420_restarts", "progressive_grey"] {
        let whole = fs::read(fixture(&format!("jpeg/{name}.jpg"))).unwrap();
        for round in 0..60 {
            let mut bytes = whole.clone();
            match round % 3 {
                0 => bytes.truncate(noise.next() as usize % whole.len()),
                1 => bytes[noise.next() as usize % whole.len()] = noise.next() as u8,
                _ => {
                    let at = noise.next() as usize % whole.len();
                    drop(bytes.drain(at..whole.len().min(at + 7)));
                }
            }
            if let Some((coefficients, _)) = jpeg::read_coefficients(&bytes, Limits::from(1 << 26))
            {
                let frame = &coefficients.frame;
                let len = frame.size.iter().product::<usize>() * frame.colour.channels();
                assert_eq!(Decode.cpu(&coefficients).unwrap().len(), len);
            }
            fs::write(&path, bytes).unwrap();
            match read_image(&Source::from(path.clone()), 1 << 26, &timings) {
                Ok(Image { width, height, channels, samples, .. }) => {
                    assert_eq!(samples.len(), width * height * channels);
                }
                Err(error) => assert_eq!(error.kind(), Kind::BadInput),
            }
        }
    }
}

/// Large JPEG files are encoded in bands that are joined by restart markers.
#[test]
fn large_jpeg_output_round_trips() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let at = |x: u32, y: u32| image::Rgb([(x / 5) as u8, (y / 7) as u8, ((x + y) / 9) as u8]);
    let input = image::RgbImage::from_fn(1203, 997, at);
    input.save(path("in.png")).unwrap();
    for (quality, tolerance) in [("90", 12), ("98", 5)] {
        let arguments = ["in.png", "out.jpg", "--sigma", "0", "--quality", quality];
        blur(folder.path(), &arguments).success().stderr("");
        // Decoded by the image crate, and by the program itself.
        blur(folder.path(), &["out.jpg", "back.png", "--sigma", "0"]).success();
        for name in ["out.jpg", "back.png"] {
            let output = image::open(path(name)).unwrap().into_rgb8();
            let pairs = output.as_raw().iter().zip(input.as_raw());
            let worst = pairs.map(|(a, b)| a.abs_diff(*b)).max();
            assert!(worst <= Some(tolerance), "{name} {quality}: {worst:?}");
        }
    }
}

/// A PNG file that does not fit into memory is blurred in bands, with the same result. If that is impossible, the error
/// states why.
#[test]
fn blurs_files_larger_than_memory_in_bands() {
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str| image::open(folder.path().join(name)).unwrap();
    for (channels, bits) in [(1, 8), (3, 8), (4, 8), (2, 16), (3, 16)] {
        let small = test_image(channels, bits);
        small
            .resize_exact(300, 400, FilterType::Nearest)
            .save(folder.path().join("in.png"))
            .unwrap();
        for edge in ["clamp", "mirror", "reflect", "zero", "50"] {
            let arguments = |out| ["in.png", out, "--sigma", "1.5", "--edge", edge, "--channels"];
            let channel = if channels < 3 { "grey" } else { "r,b" };
            blur(folder.path(), &[&arguments("whole.png")[..], &[channel]].concat()).success();
            for memory in ["300k", "500k"] {
                let more = [channel, "--max-memory", memory, "-v"];
                blur(folder.path(), &[&arguments("bands.png")[..], &more].concat())
                    .success()
                    .stderr(predicate::str::contains("in blocks of"));
                assert!(
                    open("bands.png") == open("whole.png"),
                    "{channels} {bits} {edge} {memory}"
                );
            }
        }
    }
    for (arguments, expected) in [
        (&["in.png", "x.png", "--edge", "wrap"][..], "wrap needs both ends at once"),
        (&["in.png", "x.jpg"], "write a .png or .tif, which are written in blocks"),
        (&["in.png", "x.png", "--sigma", "40"], "a row with the 240 around it"),
    ] {
        blur(folder.path(), &[arguments, &["--max-memory", "100k"]].concat())
            .code(4)
            .stderr(predicate::str::contains("more than the limit of 100 KiB"))
            .stderr(predicate::str::contains(expected));
    }
}

#[test]
fn format_losses_are_warnings_or_errors_with_strict() {
    let folder = tempfile::tempdir().unwrap();
    test_image(4, 16).save(folder.path().join("in.png")).unwrap();
    blur(folder.path(), &["in.png", "out.jpg"])
        .success()
        .stderr("warning: out.jpg: u16 samples become u8 and alpha is dropped in this format\n");
    fs::remove_file(folder.path().join("out.jpg")).unwrap();
    blur(folder.path(), &["in.png", "out.jpg", "--strict"]).code(4);
    assert_absent(folder.path().join("out.jpg"));
}

/// A big-endian EXIF block with one entry, orientation `value`.
fn exif(value: u8) -> Vec<u8> {
    let mut exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    exif.extend([value, 0, 0, 0, 0, 0, 0]);
    exif
}

#[test]
fn applies_orientation_once() {
    let folder = tempfile::tempdir().unwrap();
    let DynamicImage::ImageRgb8(picture) = test_image(3, 8) else { unreachable!() };
    let mut file = Vec::new();
    let mut encoder = PngEncoder::new(&mut file);
    encoder.set_icc_profile(b"a profile".to_vec()).unwrap();
    encoder.set_exif_metadata(exif(6)).unwrap();
    let (w, h) = picture.dimensions();
    encoder.write_image(&picture, w, h, image::ExtendedColorType::Rgb8).unwrap();
    fs::write(folder.path().join("in.png"), file).unwrap();
    for name in ["out.png", "out.jpg", "out.webp"] {
        blur(folder.path(), &["in.png", name, "--sigma", "0"]).success();
        let reader = image::ImageReader::open(folder.path().join(name)).unwrap();
        let mut decoder = reader.into_decoder().unwrap();
        assert_eq!(decoder.dimensions(), (17, 23), "{name}");
        assert_eq!(decoder.icc_profile().unwrap().as_deref(), Some(&b"a profile"[..]), "{name}");
        let kept = decoder.exif_metadata().unwrap().expect(name);
        assert_eq!(kept, exif(1), "{name}");
        assert_eq!(decoder.orientation().unwrap(), image::metadata::Orientation::NoTransforms);
    }
    let upright = image::imageops::rotate90(&picture);
    assert_eq!(image::open(folder.path().join("out.png")).unwrap().into_rgb8(), upright);
}

#[test]
fn reads_standard_input_and_rejects_invalid_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    test_image(3, 8).save(path("in.png")).unwrap();
    let bytes = fs::read(path("in.png")).unwrap();
    gpuproc()
        .current_dir(folder.path())
        .args(["blur", "-", "out.png"])
        .write_stdin(bytes.clone())
        .assert()
        .success();
    fs::write(path("cut.png"), &bytes[..bytes.len() / 2]).unwrap();
    fs::write(path("text.png"), "no picture at all").unwrap();
    fs::write(path("empty.png"), "").unwrap();
    fs::create_dir(path("folder")).unwrap();
    for (arguments, code) in [
        (&["missing.png", "x.png"][..], 7),
        (&["folder", "x.png"], 2),
        (&["folder", "x.nrrd"], 4),
        (&["cut.png", "x.png"], 4),
        (&["text.png", "x.png"], 4),
        (&["empty.png", "x.png"], 4),
        (&["in.png", "x.unknown"], 2),
        (&["in.png"], 2),
        (&["in.png", "x.png", "--sigma", "501"], 2),
        (&["in.png", "x.png", "--sigma", "1,2,3"], 2),
        (&["in.png", "x.png", "--edge", "sideways"], 2),
        (&["in.png", "x.png", "--channels", "grey"], 2),
        (&["in.png", "nowhere/x.png"], 7),
    ] {
        blur(folder.path(), arguments)
            .code(code)
            .stderr(predicate::str::starts_with("error: "))
            .stdout("");
        assert!(!path("x.png").exists(), "{arguments:?}");
    }
    blur(folder.path(), &["in.png", "out.png", "--no-clobber"]).code(7);
    if path("/dev/full").exists() {
        blur(folder.path(), &["in.png", "/dev/full"]).code(2);
        std::os::unix::fs::symlink("/dev/full", path("full.png")).unwrap();
        blur(folder.path(), &["in.png", "full.png"]).code(7);
    }
}

#[test]
fn batch_continues_after_failures() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("sub")).unwrap();
    for name in ["a.png", "sub/a.png", "c.png"] {
        test_image(3, 8).save(path(name)).unwrap();
    }
    fs::write(path("b.png"), "broken").unwrap();
    let all = ["a.png", "sub/a.png", "b.png", "c.png", "--out-dir", "out"];
    blur(folder.path(), &[&all[..], &["--dry-run"]].concat())
        .success()
        .stdout(predicate::str::contains("sub/a.png -> out/sub/a.png: sigma 2,2, radius 6,6"));
    assert_absent(path("out"));
    blur(folder.path(), &all)
        .code(3)
        .stderr(predicate::str::contains("error: cannot decode b.png"))
        .stderr(predicate::str::contains("error: 1 of 4 files failed"));
    blur(folder.path(), &["a.png", "one.png"]).success();
    let one = fs::read(path("one.png")).unwrap();
    for name in ["out/a.png", "out/sub/a.png", "out/c.png"] {
        assert_eq!(fs::read(path(name)).unwrap(), one, "{name}");
    }
    assert_absent(path("out/b.png"));
    blur(folder.path(), &["a.png", "./a.png", "--out-dir", "out"]).code(2);
}

#[test]
fn blurs_only_selected_channels() {
    let folder = tempfile::tempdir().unwrap();
    let input = test_image(3, 8).into_rgb8();
    input.save(folder.path().join("in.png")).unwrap();
    blur(folder.path(), &["in.png", "all.png"]).success();
    blur(folder.path(), &["in.png", "some.png", "--channels", "r,b"]).success();
    let open = |name: &str| image::open(folder.path().join(name)).unwrap().into_rgb8();
    for ((some, all), before) in
        open("some.png").pixels().zip(open("all.png").pixels()).zip(input.pixels())
    {
        assert_eq!(some.0, [all[0], before[1], all[2]]);
    }
}

#[test]
fn volumes_keep_their_sample_type() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let bytes: Vec<u8> = (0..4 * 3 * 5u32).map(|i| (i * 41) as u8).collect();
    fs::write(path("v_4x3x5_uint8.raw"), &bytes).unwrap();
    blur(folder.path(), &["v_4x3x5_uint8.raw", "same.raw", "--sigma", "0"]).success();
    assert_eq!(fs::read(path("same.raw")).unwrap(), bytes);
    blur(folder.path(), &["v_4x3x5_uint8.raw", "u.raw", "--sigma", "1,1,0.5"]).success();
    assert_eq!(fs::read(path("u.raw")).unwrap().len(), bytes.len());
    // The same volume, shifted by 128, as i8.
    let moved = |bytes: &[u8]| bytes.iter().map(|b| b ^ 0x80).collect::<Vec<u8>>();
    fs::write(path("v_4x3x5_int8.raw"), moved(&bytes)).unwrap();
    blur(folder.path(), &["v_4x3x5_int8.raw", "i.raw", "--sigma", "1,1,0.5"]).success();
    assert_eq!(moved(&fs::read(path("i.raw")).unwrap()), fs::read(path("u.raw")).unwrap());
    blur(folder.path(), &["v_4x3x5_uint8.raw", "x.raw", "--dims", "4x3x6"]).code(4);
    blur(folder.path(), &["v_4x3x5_uint8.raw", "x.raw", "--sigma", "1,2"]).code(2);
    assert_absent(path("x.raw"));
}
