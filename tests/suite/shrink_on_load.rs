//! JPEG images that are decoded smaller: the decoder against means of all samples, and `resize` with and without it.

use std::{fs, path::Path};

use gpuproc::{
    data::noise::Noise,
    jpeg::{
        self, ColourModel, ColourSource, Component, Container, Frame, JpegFile, Picture, Quality,
        SparseCoefficients,
    },
};

use crate::{
    common::{decode_jpeg, encode_jpeg, run, works},
    jpeg::random_coefficients,
};

/// Smooth colours with some noise.
fn pixels([width, height]: [usize; 2], channels: usize) -> Vec<u8> {
    let mut noise = Noise(width as u64);
    let value = |at: usize, noise: u64| {
        let (pixel, channel) = (at / channels, at % channels);
        let [x, y] = [pixel % width, pixel / width].map(|v| v as f64);
        let wave = (x / (9.0 + channel as f64)).sin() * (y / (7.0 + channel as f64)).cos();
        (128.0 + 90.0 * wave + (noise % 32) as f64) as u8
    };
    (0..width * height * channels).map(|at| value(at, noise.next() >> 40)).collect()
}

/// A frame of three components, of which the first has the sampling factors `sampling` and the others 1.
fn frame(size: [usize; 2], sampling: [usize; 2]) -> Frame {
    let component = |sampling| Component { sampling, steps: [3; 64] };
    let components = [sampling, [1, 1], [1, 1]].map(component).to_vec();
    Frame { size, colour: ColourModel::YCbCr, components }
}

fn encode_coefficients(coefficients: &SparseCoefficients) -> Vec<u8> {
    jpeg::encode(&coefficients.frame, Picture::Coefficients(coefficients), &[], false).unwrap()
}

/// The samples of component `c`, without upsampling.
fn plane(coefficients: &SparseCoefficients, c: usize) -> Vec<u8> {
    let frame = &coefficients.frame;
    let components = vec![Component { sampling: [1, 1], ..frame.components[c].clone() }];
    let grey = Frame { size: frame.samples(c), colour: ColourModel::Grey, components };
    let mut plane = SparseCoefficients::zeros(&grey, 0).unwrap();
    let rows = (0..frame.blocks(c)[1]).flat_map(|y| coefficients.row(c, y).unwrap());
    plane.set(0, &rows.collect::<Vec<_>>()).unwrap();
    decode_jpeg(&encode_coefficients(&plane)).unwrap().0.samples.as_bytes().to_vec()
}

/// Means of `across` x `down` samples of rows of `width`. Ties are rounded up in even columns and down in odd ones.
fn means(samples: &[u8], width: usize, [across, down]: [usize; 2]) -> Vec<u8> {
    if across * down == 1 {
        return samples.to_vec();
    }
    let mean = |x: usize, y: usize| {
        let place = |at: usize| (y * down + at / across) * width + x * across + at % across;
        let sum: usize = (0..across * down).map(|at| usize::from(samples[place(at)])).sum();
        ((sum + across * down / 2 - x % 2) / (across * down)) as u8
    };
    let rows = samples.len() / width / down;
    (0..rows)
        .flat_map(|y| (0..width / across).map(move |x| (x, y)))
        .map(|(x, y)| mean(x, y))
        .collect()
}

/// Without a conversion of colours, pixels are means of samples. Components of low resolution are not enlarged first.
#[test]
fn decodes_means_of_samples() {
    let context =
        Container { colour: ColourSource::Forced(ColourModel::Rgb), ..Container::default() };
    let mut noise = Noise(5);
    for size in [[64, 64], [128, 192], [416, 640]] {
        for sampling in [[1, 1], [2, 1], [1, 2], [2, 2], [4, 1], [1, 4], [4, 2]] {
            let coefficients = random_coefficients(&frame(size, sampling), &mut noise, false);
            let bytes = encode_coefficients(&coefficients);
            let file = JpegFile::parse(&bytes, &context).unwrap();
            for shrink in
                [1, 2, 4, 8].into_iter().filter(|shrink| sampling.iter().all(|n| n <= shrink))
            {
                let planes = [sampling, [1, 1], [1, 1]].into_iter().enumerate().map(|(c, own)| {
                    let times = [0, 1].map(|axis| shrink * own[axis] / sampling[axis]);
                    means(&plane(&coefficients, c), coefficients.frame.samples(c)[0], times)
                });
                let planes: Vec<Vec<u8>> = planes.collect();
                let expected: Vec<u8> =
                    (0..planes[0].len()).flat_map(|at| [0, 1, 2].map(|c| planes[c][at])).collect();
                let (found, damage) = file.decode(shrink).unwrap();
                assert!(found == expected && damage.is_none(), "{size:?} {sampling:?} {shrink}");
            }
        }
    }
    // Any other size and sampling has a result.
    for size in [[1, 1], [3, 5], [129, 77], [17, 250]] {
        for sampling in [[1, 1], [2, 1], [2, 2], [4, 1], [4, 4]] {
            let coefficients = random_coefficients(&frame(size, sampling), &mut noise, true);
            let bytes = encode_coefficients(&coefficients);
            for shrink in [2, 4, 8] {
                let (found, _) = JpegFile::parse(&bytes, &context).unwrap().decode(shrink).unwrap();
                assert_eq!(
                    found.len(),
                    size.map(|side: usize| side.div_ceil(shrink)).iter().product::<usize>() * 3
                );
            }
        }
    }
}

/// The JPEG file with this EXIF orientation.
fn oriented(jpeg: &[u8], orientation: u8) -> Vec<u8> {
    let head = b"\xff\xe1\0\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0";
    [&jpeg[..2], head, &[orientation, 0, 0, 0, 0, 0, 0, 0], &jpeg[2..]].concat()
}

/// The samples of a PGM or PPM file.
fn samples(path: &Path) -> (Vec<u8>, Vec<u8>) {
    let bytes = fs::read(path).unwrap();
    let end = bytes.windows(5).position(|window| window == b"\n255\n").unwrap() + 5;
    (bytes[..end].to_vec(), bytes[end..].to_vec())
}

/// Root mean square of the differences between two files of equal size.
fn difference(folder: &Path, [a, b]: [&str; 2]) -> f64 {
    let [(head, a), (other_head, b)] = [a, b].map(|name| samples(&folder.join(name)));
    assert_eq!(String::from_utf8_lossy(&head), String::from_utf8_lossy(&other_head));
    let squares = a.iter().zip(&b).map(|(&a, &b)| f64::from(a.abs_diff(b)).powi(2));
    (squares.sum::<f64>() / a.len() as f64).sqrt()
}

/// A result covers the same area in every orientation.
#[test]
fn orientations_are_applied_to_the_smaller_image() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let [width, height] = [144, 192];
    let ramp: Vec<u8> = (0..width * height)
        .map(|at| (at % width * 127 / width + at / width * 127 / height) as u8)
        .collect();
    let frame = Frame::for_pixels([width, height], 1, Quality(100), false);
    let jpeg = encode_jpeg(&frame, &ramp, false);
    for orientation in 1..=8 {
        fs::write(path.join("a.jpg"), oriented(&jpeg, orientation)).unwrap();
        for size in ["12x", "x24", "--max 48"] {
            let flags = if size.contains('-') { size.into() } else { format!("--size {size}") };
            works(path, &format!("resize a.jpg small.pgm {flags}"));
            works(path, &format!("resize a.jpg full.pgm {flags} --no-shrink-on-load"));
            let error = difference(path, ["small.pgm", "full.pgm"]);
            assert!(error < 0.7, "orientation {orientation}, {size}: {error}");
        }
    }
}

#[test]
fn large_reductions_of_jpeg_decode_less() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let size = [1000, 752];
    for (name, channels) in [("grey.jpg", 1), ("colour.jpg", 3)] {
        let frame = Frame::for_pixels(size, channels, Quality(90), true);
        fs::write(path.join(name), encode_jpeg(&frame, &pixels(size, channels), false)).unwrap();
        works(path, &format!("blur {name} same.tif --sigma 0"));
        for (flags, is_smaller) in [
            ("--max 250", true),
            ("--size 100x", true),
            ("--size x30", true),
            ("--scale 5% --filter cubic", true),
            ("--scale 0.25 --filter linear", true),
            ("--max 251", false),
            ("--size 50x752", false),
            ("--max 100 --filter area", false),
            ("--max 100 --filter nearest", false),
            ("--max 100 --linear", false),
            ("--max 100 --no-shrink-on-load", false),
        ] {
            works(path, &format!("resize {name} small.ppm {flags}"));
            works(
                path,
                &format!("resize same.tif full.ppm {}", flags.replace("--no-shrink-on-load", "")),
            );
            let error = difference(path, ["small.ppm", "full.ppm"]);
            assert_eq!(error > 0.0, is_smaller, "{name} {flags}: {error}");
            // 40 dB.
            assert!(error < 2.5, "{name} {flags}: {error}");
        }
    }
    // Sides that are no multiples of 2, and three samples of luma for two of chroma.
    let mut noise = Noise(2);
    for (name, size, sampling) in
        [("odd.jpg", [501, 376], [1, 1]), ("thirds.jpg", [504, 376], [3, 1])]
    {
        let coefficients = random_coefficients(&frame(size, sampling), &mut noise, false);
        fs::write(path.join(name), encode_coefficients(&coefficients)).unwrap();
        works(path, &format!("resize {name} small.ppm --max 60"));
        works(path, &format!("resize {name} full.ppm --max 60 --no-shrink-on-load"));
        assert_eq!(difference(path, ["small.ppm", "full.ppm"]), 0.0, "{name}");
    }
    // The result is the same with --page, from a pipe, and in a batch; with another option, it is not done yet.
    works(path, "resize colour.jpg one.ppm --max 100");
    works(path, "resize colour.jpg page.ppm --max 100 --page 1");
    assert_eq!(difference(path, ["one.ppm", "page.ppm"]), 0.0);
    works(path, "resize colour.jpg grey.jpg -o o/ --format ppm --max 100 --resume");
    assert_eq!(difference(path, ["one.ppm", "o/colour.pnm"]), 0.0);
    works(
        path,
        "resize colour.jpg grey.jpg -o o/ --format ppm --max 100 --resume --no-shrink-on-load",
    );
    assert!(difference(path, ["one.ppm", "o/colour.pnm"]) > 0.0);
}

/// A damaged file is reported as without shrinking.
#[test]
fn damage_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let frame = Frame::for_pixels([400, 300], 3, Quality(90), true);
    let jpeg = encode_jpeg(&frame, &pixels([400, 300], 3), false);
    fs::write(path.join("cut.jpg"), &jpeg[..jpeg.len() / 2]).unwrap();
    fs::write(path.join("none.jpg"), &jpeg[..10]).unwrap();
    for flags in ["", " --no-shrink-on-load"] {
        let message = works(path, &format!("resize cut.jpg o.ppm --max 50{flags}"));
        assert!(message.contains("of its 300 rows are missing"), "{message}");
        let (code, message) = run(path, &format!("resize cut.jpg o.ppm --max 50 --strict{flags}"));
        assert!(code != 0 && message.contains("of its 300 rows are missing"), "{message}");
        let (code, message) = run(path, &format!("resize none.jpg o.ppm --max 50{flags}"));
        assert!(code != 0 && message.contains("cannot decode none.jpg"), "{message}");
        let limit = format!("resize cut.jpg o.ppm --max 50 --max-pixels 1000{flags}");
        let (code, message) = run(path, &limit);
        assert!(code != 0 && message.contains("400 x 300"), "{message}");
    }
}
