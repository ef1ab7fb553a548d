//! Volumes of slices: folders and patterns of images.

use std::{fs, path::Path};

use gpuproc::{
    data::{reader::Reader, samples::Samples},
    io::Limits,
    util::{error::Kind, timings::Timings},
};
use image::{GrayImage, ImageBuffer, Luma, Rgb, RgbImage};

use crate::{
    asserts::{assert_absent, assert_same_file},
    common::{Noise, run, works},
    inputs::{as_f64, describe},
    tiff_files::{TiffPage, tiff},
};

fn read(path: &Path) -> Samples {
    let file = describe(path).unwrap_or_else(|error| panic!("{}", error.one_line()));
    file.read(1 << 20, &Timings::new(false)).unwrap().samples
}

/// Twelve slices of 9 x 7 in a folder `s`, numbered without leading zeros, and all their samples.
fn grey_slices(folder: &Path) -> Vec<u8> {
    fs::create_dir_all(folder.join("s")).unwrap();
    let samples = Noise(11).bytes(9 * 7 * 12);
    for (z, slice) in samples.chunks(63).enumerate() {
        let image = GrayImage::from_raw(9, 7, slice.to_vec()).unwrap();
        image.save(folder.join(format!("s/slice{z}.png"))).unwrap();
    }
    samples
}

#[test]
fn folder_of_images_equals_the_raw_volume() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let samples = grey_slices(folder);
    fs::write(folder.join("v_9x7x12_uint8.raw"), &samples).unwrap();
    assert_eq!(read(&folder.join("s")), Samples::U8(samples.clone()));
    // Reading some slices at a time, with an overlap.
    let file = describe(folder.join("s")).unwrap();
    assert_eq!((file.dims, file.format(), file.can_reopen()), ([9, 7, 12], "PNG slices", true));
    let mut reader = file.reader().unwrap();
    let first = reader.read(5).unwrap();
    let more = reader.read_after(Some(&first), 7).unwrap();
    reader.expect_end().unwrap();
    assert_eq!(more, Samples::U8(samples));
    for input in ["s", "s/", "s/*.png", "s/slice?*.png"] {
        for (command, output) in [("mesh --iso 128", "o.ply"), ("blur --sigma 1", "o.nrrd")] {
            let (command, flags) = command.split_once(' ').unwrap();
            works(folder, &format!("{command} {flags} {input} {output}"));
            let whole = output.replace('o', "whole");
            works(folder, &format!("{command} {flags} v_9x7x12_uint8.raw {whole}"));
            let [a, b] = [output, &whole].map(|name| fs::read(folder.join(name)).unwrap());
            assert!(a == b, "{command} {input}");
        }
        works(folder, &format!("mesh {input} o.ply --iso 128 --max-memory 400"));
        works(folder, "mesh v_9x7x12_uint8.raw whole.ply --iso 128");
        assert_same_file(folder.join("o.ply"), folder.join("whole.ply"));
        works(folder, &format!("histogram {input} --stack -o o.csv"));
        works(folder, "histogram v_9x7x12_uint8.raw -o whole.csv");
        let [a, b] =
            ["o.csv", "whole.csv"].map(|name| fs::read_to_string(folder.join(name)).unwrap());
        assert_eq!(a, b);
    }
    works(folder, "blur s v_9x7x12_uint8.raw --stack --out-dir many --sigma 0");
    assert_eq!(read(&folder.join("many/s.nrrd")), read(&folder.join("v_9x7x12_uint8.raw")));
}

#[test]
fn reads_16_bit_slices_of_several_formats() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut all = Vec::new();
    for z in 0..3u16 {
        let image = ImageBuffer::from_fn(5, 4, |x, y| Luma([1000 * z + 10 * y as u16 + x as u16]));
        all.extend(image.as_raw().iter().copied());
        image.save(folder.join(format!("a{z}.tif"))).unwrap();
        image.save(folder.join(format!("b{z}.png"))).unwrap();
    }
    // Slices of two formats in one folder are ambiguous.
    let error = describe(folder).unwrap_err().one_line();
    assert!(
        error.contains("a0.tif is TIFF 5x4 of u16") && error.contains("b0.png is PNG"),
        "{error}"
    );
    for pattern in ["a*.tif", "b*.png", "*.png"] {
        assert_eq!(read(&folder.join(pattern)), Samples::U16(all.clone()), "{pattern}");
    }
    // A single image is a volume of one slice.
    assert_eq!(describe(folder.join("a1.tif")).unwrap().dims, [5, 4, 1]);
}

#[test]
fn colour_slices_become_grey_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("s")).unwrap();
    for z in 0..2 {
        RgbImage::from_pixel(3, 2, Rgb([10 * z, 20, 33]))
            .save(folder.join(format!("s/{z}.bmp")))
            .unwrap();
    }
    fs::write(folder.join("s/notes.txt"), "left out").unwrap();
    fs::write(folder.join("s/.DS_Store"), "hidden").unwrap();
    let mut expected = vec![18; 6];
    expected.extend([21; 6]);
    assert_eq!(read(&folder.join("s")), Samples::U8(expected));
    let stderr = works(folder, "histogram s --stack -o o.csv");
    assert!(stderr.contains("2 colour images converted to grey, (r + g + b) / 3"), "{stderr}");
    assert!(stderr.contains("skipped notes.txt") && !stderr.contains("DS_Store"), "{stderr}");
    let strict = Limits { strict: true, ..Limits::from(1 << 20) };
    let error = describe(folder.join("s")).unwrap().check(strict).unwrap_err();
    assert_eq!(error.kind(), Kind::BadInput);
    let (code, stderr) = run(folder, "histogram s --stack -o o.csv --strict");
    assert_eq!(code, 4, "{stderr}");
}

#[test]
fn names_files_that_do_not_fit_the_volume() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    grey_slices(folder);
    GrayImage::new(9, 8).save(folder.join("s/slice12.png")).unwrap();
    let (code, stderr) = run(folder, "mesh s o.ply --iso 1");
    assert_eq!(code, 4);
    assert!(
        stderr.contains("slice12.png is PNG 9x8 of u8, but slice0.png is PNG 9x7 of u8"),
        "{stderr}"
    );
    works(folder, "mesh s/slice?.png o.ply --iso 1");
    fs::write(folder.join("s/slice12.png"), "no image").unwrap();
    let (code, stderr) = run(folder, "histogram s --stack -o o.csv");
    assert!(code == 4 && stderr.contains("slice12.png"), "{stderr}");
    // A slice that is broken after its header is found when it is read, and no output is left.
    let bytes = fs::read(folder.join("s/slice3.png")).unwrap();
    fs::write(folder.join("s/slice12.png"), &bytes[..bytes.len() - 30]).unwrap();
    let (code, stderr) = run(folder, "mesh s new.ply --iso 1");
    assert!(code == 4 && stderr.contains("slice12.png"), "{stderr}");
    assert_absent(folder.join("new.ply"));
    fs::create_dir(folder.join("empty")).unwrap();
    let (code, stderr) = run(folder, "mesh empty o.ply --iso 1");
    assert!(code == 4 && stderr.contains("no image slices"), "{stderr}");
    fs::create_dir(folder.join("empty/IM1")).unwrap();
    let (code, stderr) = run(folder, "mesh empty o.ply --iso 1");
    assert!(code == 4 && stderr.contains("only folders such as IM1"), "{stderr}");
    assert_eq!(run(folder, "mesh s o.ply --iso 1 --series 1").0, 2);
    assert_eq!(run(folder, "mesh none*.png o.ply --iso 1").0, 7);
    assert_eq!(run(folder, "mesh s o.ply --iso 1 --dtype u8").0, 2);
}

/// Slices come in the order of their names, in which numbers count by their value, however many digits they have.
#[test]
fn slices_are_in_natural_order() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let names = [
        "a.pgm",
        "a1.pgm",
        "a02.pgm",
        "a3.pgm",
        "a010.pgm",
        "a10b2.pgm",
        "a10b11.pgm",
        "a99.pgm",
        "a100.pgm",
        "a00123456789012345678901234567890.pgm",
        "b1.pgm",
        "b1_2.pgm",
        "b1_10.pgm",
        "c-2.pgm",
        "c-10.pgm",
    ];
    fs::create_dir_all(folder.join("s/below")).unwrap();
    // They are written in another order. Hidden files and folders do not count.
    for i in (0..names.len()).map(|i| i * 7 % names.len()) {
        fs::write(folder.join("s").join(names[i]), [b"P5 1 1 255\n", &[i as u8][..]].concat())
            .unwrap();
    }
    for name in ["s/.hidden.pgm", "s/below/z.pgm"] {
        fs::write(folder.join(name), b"P5 1 1 255\n\xff").unwrap();
    }
    let all: Vec<u8> = (0..names.len() as u8).collect();
    for (input, range) in
        [("s", 0..15), ("s/*.pgm", 0..15), ("s/a?*.pgm", 1..10), ("s/[bc]*.pgm", 10..15)]
    {
        assert_eq!(read(&folder.join(input)), Samples::U8(all[range].to_vec()), "{input}");
    }
}

/// Colours become the mean of red, green and blue, rounded; alpha does not count.
#[test]
fn colours_of_slices_become_their_mean() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for bits in [8u16, 16] {
        let pixels: [[u16; 4]; 4] =
            [[1, 1, 2, 9], [1, 2, 2, 0], [200, 100, 0, 255], [255, 254, 255, 7]];
        for count in [2usize, 3, 4] {
            fs::create_dir_all(folder.join("s")).unwrap();
            for slice in 0..2 {
                let samples = pixels.iter().flat_map(|pixel| {
                    let pixel =
                        pixel.iter().take(if count == 2 { 1 } else { 3 }).chain(&pixel[3..]);
                    pixel
                        .take(count)
                        .map(|&v| v * if bits == 16 { 250 } else { 1 })
                        .collect::<Vec<u16>>()
                });
                let bytes = samples.flat_map(|v| v.to_le_bytes()[..usize::from(bits / 8)].to_vec());
                let page =
                    TiffPage::grey([2, 2], bits, bytes.collect()).shorts(258, vec![bits; count]);
                let page = page.shorts(277, [count as u16]);
                let page = if count > 2 { page.shorts(262, [2]) } else { page };
                let page = if count % 2 == 0 { page.shorts(338, [2]) } else { page };
                fs::write(folder.join(format!("s/{slice}.tif")), tiff(&[page])).unwrap();
            }
            let scale = if bits == 16 { 250.0 } else { 1.0 };
            let mean = |pixel: &[u16; 4]| {
                let colours = &pixel[..if count == 2 { 1 } else { 3 }];
                let sum: f64 = colours.iter().map(|&v| f64::from(v) * scale).sum();
                (sum / colours.len() as f64).round()
            };
            let expected: Vec<f64> = pixels.iter().map(mean).collect();
            let found = as_f64(&read(&folder.join("s")));
            assert_eq!(found, [expected.clone(), expected].concat(), "{bits} bits, {count}");
        }
    }
}
