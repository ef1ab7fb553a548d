//! Portable images (Netpbm: PBM, PGM, PPM, PAM; PFM) of every kind and maximum, and the bytes that are written.

use std::{fs, path::Path};

use gpuproc::data::samples::Samples;

use crate::{
    common::works,
    inputs::{as_f64, load_image},
    tiff_files::{TiffPage, tiff},
};

const SIZE: [usize; 2] = [11, 3];

/// Sample `i` of an image whose largest sample is `max`.
fn sample(i: usize, max: usize) -> usize {
    if i == 1 { max } else { i * 7919 % (max + 1) }
}

fn check(path: &Path, file: &[u8], channels: usize, expected: &[f64], case: &str) {
    fs::write(path, file).unwrap();
    let image = load_image(path);
    assert_eq!(([image.width, image.height], image.channels), (SIZE, channels), "{case}");
    assert_eq!(as_f64(&image.samples), expected, "{case}");
}

/// Samples as text and in binary, with one or two bytes each, are scaled from their maximum to the full range.
#[test]
fn samples_of_every_maximum_are_scaled() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.pnm");
    let [width, height] = SIZE;
    for max in [1usize, 2, 3, 100, 254, 255, 256, 1000, 65_534, 65_535] {
        let full = if max > 255 { 65_535 } else { 255 };
        for (channels, kind, text, binary) in [
            (1, "GRAYSCALE", Some("P2"), Some("P5")),
            (3, "RGB", Some("P3"), Some("P6")),
            (2, "GRAYSCALE_ALPHA", None, None),
            (4, "RGB_ALPHA", None, None),
        ] {
            let count = width * height * channels;
            let stored: Vec<usize> = (0..count).map(|i| sample(i, max)).collect();
            let expected: Vec<f64> =
                stored.iter().map(|v| ((v * full + max / 2) / max) as f64).collect();
            let bytes: Vec<u8> = stored
                .iter()
                .flat_map(|&v| (v as u16).to_be_bytes()[usize::from(max <= 255)..].to_vec())
                .collect();
            let pam = format!(
                "P7\nWIDTH {width}\n# a comment\nHEIGHT {height}\nDEPTH {channels}\nMAXVAL {max}\nTUPLTYPE {kind}\nENDHDR\n"
            );
            check(&path, &[pam.as_bytes(), &bytes].concat(), channels, &expected, &pam);
            if let Some(magic) = binary {
                for header in [
                    format!("{magic}\n{width} {height}\n{max}\n"),
                    format!("{magic} {width}\t{height} {max} "),
                    format!("{magic}\n# a comment\n{width}\n# another\n{height} {max}\n"),
                ] {
                    check(
                        &path,
                        &[header.as_bytes(), &bytes].concat(),
                        channels,
                        &expected,
                        &header,
                    );
                }
            }
            if let Some(magic) = text {
                let words: String = stored.iter().map(|v| format!("{v}\n ")).collect();
                let file = format!("{magic} {width} {height}\n{max}\n{words}");
                check(&path, file.as_bytes(), channels, &expected, &file[..20]);
            }
        }
    }
}

/// Bits are padded at the end of each row, and 1 is black; in PAM, 1 is white.
#[test]
fn bitmaps_are_black_and_white() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.pbm");
    let [width, height] = SIZE;
    let bits: Vec<usize> = (0..width * height).map(|i| i * i / 3 % 2).collect();
    let black: Vec<f64> = bits.iter().map(|bit| 255.0 * (1 - bit) as f64).collect();
    let packed: Vec<u8> = bits
        .chunks(width)
        .flat_map(|row| row.chunks(8))
        .map(|bits| bits.iter().enumerate().fold(0, |byte, (i, bit)| byte | (bit << (7 - i)) as u8))
        .collect();
    let header = format!("P4\n{width} {height}\n");
    check(&path, &[header.as_bytes(), &packed].concat(), 1, &black, "P4");
    for separator in ["", " ", "\n"] {
        let text: String = bits.iter().map(|bit| format!("{bit}{separator}")).collect();
        let file = format!("P1\n# bits\n{width} {height}\n{text}\n");
        check(&path, file.as_bytes(), 1, &black, &file);
    }
    let header = format!(
        "P7\nWIDTH {width}\nHEIGHT {height}\nDEPTH 1\nMAXVAL 1\nTUPLTYPE BLACKANDWHITE\nENDHDR\n"
    );
    let bytes: Vec<u8> = bits.iter().map(|&bit| bit as u8).collect();
    let white: Vec<f64> = bits.iter().map(|&bit| 255.0 * bit as f64).collect();
    check(&path, &[header.as_bytes(), &bytes].concat(), 1, &white, "P7");
}

/// Rows are stored from the bottom. The sign of the scale is the byte order; its size is not applied.
#[test]
fn pfm_is_read_in_both_byte_orders() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.pfm");
    let [width, height] = SIZE;
    for (magic, channels) in [("Pf", 1usize), ("PF", 3)] {
        let value = |i: usize| (i as f32 - 20.0) * 0.37;
        let row = width * channels;
        let expected: Vec<f64> = (0..height * row).map(|i| f64::from(value(i))).collect();
        for (scale, is_little) in [("-1.0", true), ("1.0", false), ("-2.5", true), ("0.5", false)] {
            let rows = (0..height).rev().flat_map(|y| y * row..(y + 1) * row);
            let bytes = rows.flat_map(|i| {
                if is_little { value(i).to_le_bytes() } else { value(i).to_be_bytes() }
            });
            for header in [
                format!("{magic}\n{width} {height}\n{scale}\n"),
                format!("{magic} {width} {height} {scale} "),
                format!("{magic}\n# a comment\n{width}\n{height}\n{scale}\n"),
            ] {
                let body: Vec<u8> = bytes.clone().collect();
                check(&path, &[header.as_bytes(), &body].concat(), channels, &expected, &header);
            }
            let stderr = works(folder.path(), "blur in.pfm o.tif --sigma 0");
            let is_lost = !scale.contains("1.0");
            assert_eq!(stderr.contains("is not applied to the samples"), is_lost, "{stderr}");
        }
    }
}

/// The files that are written, byte for byte.
#[test]
fn written_files_have_the_simplest_header() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [width, height] = SIZE;
    for bits in [8u16, 16] {
        for channels in 1..=4usize {
            let max = (1usize << bits) - 1;
            let values: Vec<usize> =
                (0..width * height * channels).map(|i| sample(i, max)).collect();
            let strip =
                values.iter().flat_map(|v| v.to_le_bytes()[..usize::from(bits / 8)].to_vec());
            let page =
                TiffPage::grey(SIZE, bits, strip.collect()).shorts(258, vec![bits; channels]);
            let page = page.shorts(277, [channels as u16]);
            let page = if channels > 2 { page.shorts(262, [2]) } else { page };
            let page = if channels % 2 == 0 { page.shorts(338, [2]) } else { page };
            fs::write(folder.join("in.tif"), tiff(&[page])).unwrap();
            assert_eq!(works(folder, "blur in.tif o.pnm --sigma 0"), "");
            let header = match channels {
                1 => format!("P5\n{width} {height}\n{max}\n"),
                3 => format!("P6\n{width} {height}\n{max}\n"),
                _ => format!(
                    "P7\nWIDTH {width}\nHEIGHT {height}\nDEPTH {channels}\nMAXVAL {max}\nTUPLTYPE {}\nENDHDR\n",
                    if channels == 2 { "GRAYSCALE_ALPHA" } else { "RGB_ALPHA" }
                ),
            };
            let body = values
                .iter()
                .flat_map(|&v| (v as u16).to_be_bytes()[usize::from(bits == 8)..].to_vec());
            let expected = [header.into_bytes(), body.collect()].concat();
            assert!(fs::read(folder.join("o.pnm")).unwrap() == expected, "{bits} bits, {channels}");
            // Floats from the bottom, where 1 is full intensity.
            if channels % 2 == 1 {
                works(folder, "blur in.tif o.pfm --sigma 0");
                let name = if channels == 3 { "PF" } else { "Pf" };
                let rows = values.chunks(width * channels).rev().flatten();
                let body = rows.flat_map(|&v| (v as f32 / max as f32).to_le_bytes());
                let header = format!("{name}\n{width} {height}\n-1.0\n");
                let expected = [header.into_bytes(), body.collect()].concat();
                assert!(
                    fs::read(folder.join("o.pfm")).unwrap() == expected,
                    "{bits} bits, {channels}"
                );
            }
        }
    }
    assert!(matches!(load_image(folder.join("o.pnm")).samples, Samples::U16(_)));
}
