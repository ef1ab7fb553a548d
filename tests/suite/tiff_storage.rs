//! How TIFF files store samples: bits, compressions and types of tags that few writers use.

use std::{fs, path::Path};

use gpuproc::{
    data::samples::Samples,
    jpeg::{Frame, Quality},
};
use predicates::str::contains;

use crate::{
    common::{encode_jpeg, outcome, run},
    inputs::{as_f64, load_image},
    tiff_files::{TiffPage, tiff},
};

fn write(folder: &Path, page: TiffPage) {
    fs::write(folder.join("in.tif"), tiff(&[page])).unwrap();
}

/// Numbers of signed types are numbers; a negative one is an error.
#[test]
fn tags_may_have_any_type_of_integer() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let page = || TiffPage::grey([3, 2], 8, (1..7).collect());
    for (kind, size) in [(1, 1), (3, 2), (4, 4), (6, 1), (8, 2), (9, 4)] {
        let value = |number: i32| number.to_le_bytes()[..size].to_vec();
        let all = [(256, 3), (257, 2), (258, 8), (259, 1), (262, 1), (277, 1), (278, 2)]
            .into_iter()
            .fold(page(), |page, (tag, number)| page.set(tag, kind, 1, value(number)));
        write(folder, all);
        let image = load_image(folder.join("in.tif"));
        assert_eq!(image.samples, Samples::U8((1..7).collect()), "{kind}");
        if [6, 8, 9].contains(&kind) {
            write(folder, page().set(257, kind, 1, value(-2)));
            outcome(folder, "info in.tif").code(4).stderr(contains("negative"));
        }
    }
}

/// Values of 12 and 64 bits, with their signs.
#[test]
fn samples_keep_their_sign_and_value() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // -1, -2048, 2047, 5 in 12 bits each, the highest first.
    let packed = vec![0xff, 0xf8, 0x00, 0x7f, 0xf0, 0x05];
    write(folder, TiffPage::grey([4, 1], 12, packed).shorts(339, [2]));
    assert_eq!(load_image(folder.join("in.tif")).samples, Samples::I16(vec![-1, -2048, 2047, 5]));
    outcome(folder, "blur in.tif o.npy --sigma 0 --stack").success();
    assert_eq!(gpuproc::read(folder.join("o.npy")).unwrap().sample_type().name(), "i16");
    let signed = [-1i64, i64::MIN, 1 << 53, 7].map(i64::to_le_bytes).concat();
    let unsigned = [u64::MAX, 0, 1 << 53, 7].map(u64::to_le_bytes).concat();
    for (format, bytes, first) in [(2, signed, -1.0), (1, unsigned, u64::MAX as f64)] {
        write(folder, TiffPage::grey([4, 1], 64, bytes).shorts(339, [format]));
        for flags in ["", " --stack"] {
            let line = format!("blur in.tif o.tif --sigma 0{flags}");
            let warning = "64 samples are read as f64, exact up to 2^53";
            outcome(folder, &line).success().stderr(contains(warning));
            outcome(folder, &format!("{line} --strict")).code(4).stderr(contains(warning));
            let samples = as_f64(&load_image(folder.join("o.tif")).samples);
            assert_eq!([samples[0], samples[2], samples[3]], [first, 2f64.powi(53), 7.0]);
        }
    }
}

/// A frame of zstd may state a window that is larger than a strip needs.
#[test]
fn windows_of_zstd_are_as_large_as_a_strip() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let frame = |exponent: u8| {
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, (exponent - 10) << 3];
        // The last block, raw, of 6 bytes.
        frame.extend([6 << 3 | 1, 0, 0, 1, 2, 3, 4, 5, 6]);
        frame
    };
    for exponent in [10, 23, 25, 31, 41] {
        write(folder, TiffPage::grey([3, 2], 8, frame(exponent)).shorts(259, [50000]));
        let image = load_image(folder.join("in.tif"));
        assert_eq!(image.samples, Samples::U8((1..7).collect()), "{exponent}");
    }
}

#[test]
fn planar_subsampled_colours_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let page = TiffPage::grey([4, 4], 8, vec![9; 24]).shorts(258, [8; 3]).shorts(277, [3]);
    write(folder, page.shorts(262, [6]).shorts(284, [2]).shorts(530, [2, 2]));
    for line in ["info in.tif", "blur in.tif o.png --sigma 0", "mesh in.tif o.ply --iso 1"] {
        outcome(folder, line).code(4).stderr(contains("planar YCbCr with subsampled Cb and Cr"));
    }
    let page = TiffPage::grey([4, 4], 8, Vec::new()).shorts(258, [8; 3]).shorts(277, [3]);
    let page = page.with_strips(4, vec![vec![9; 16]; 3]).shorts(259, [6]);
    write(folder, page.shorts(262, [6]).shorts(284, [2]).shorts(530, [1, 1]));
    let message = "old-style JPEG in planes is not supported";
    outcome(folder, "blur in.tif o.png --sigma 0").code(4).stderr(contains(message));
}

/// Six bytes by liblzma's delta filter and preset 9, whose dictionary has 64 MiB, and the same with one of 128 MiB.
#[test]
fn dictionaries_of_lzma_are_those_of_all_presets() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let strip = |dictionary: &str| -> Vec<u8> {
        let digits = format!(
            "fd377a585a000004e6d6b44602010301002101{dictionary}010005010101010101000000d870e055a7cc36\
             4800011e06c12fa41d1fb6f37d010000000004595a"
        );
        let digits: Vec<char> = digits.chars().filter(char::is_ascii_hexdigit).collect();
        let byte = |pair: &[char]| u8::from_str_radix(&String::from_iter(pair), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    };
    write(folder, TiffPage::grey([3, 2], 8, strip("1c67c9110e")).shorts(259, [34925]));
    assert_eq!(load_image(folder.join("in.tif")).samples, Samples::U8((1..7).collect()));
    write(folder, TiffPage::grey([3, 2], 8, strip("1e4ba81fe0")).shorts(259, [34925]));
    let message = "its LZMA dictionary is larger than 64 MiB";
    outcome(folder, "blur in.tif o.png --sigma 0").code(4).stderr(contains(message));
}

/// A row may have as many changes of the colour as pixels, which take more memory than its bits.
#[test]
fn memory_of_the_fax_decoder_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let page = TiffPage::grey([2_200_000, 1], 1, vec![0xff; 280_000]).shorts(259, [4]);
    write(folder, page);
    let line = "blur in.tif o.tif --sigma 0 --max-memory";
    outcome(folder, &format!("{line} 16M")).code(4).stderr(contains("decoding a strip or tile"));
    outcome(folder, &format!("{line} 1G")).success();
}

/// The corners of a map stay in place, whether its pixels are areas or points.
#[test]
fn positions_of_maps_are_scaled_with_the_image() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let doubles = |page: TiffPage, tag: u16, values: &[f64]| {
        page.set(tag, 12, values.len(), values.iter().flat_map(|v| v.to_le_bytes()).collect())
    };
    for (kind, tie_point, origin) in [(1, [2.0, 8.0], 500.0), (2, [1.75, 8.5], 507.5)] {
        let page = TiffPage::flat([8, 8], 7).shorts(34735, [1, 1, 0, 1, 1025, 0, 1, kind]);
        let page = doubles(page, 33550, &[10.0, 20.0, 0.0]);
        let page = doubles(page, 33922, &[4.0, 4.0, 0.0, 500.0, 900.0, 0.0]);
        let matrix = |x, y, x0| {
            [x, 0.0, 0.0, x0, 0.0, y, 0.0, 900.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]
        };
        write(folder, doubles(page, 34264, &matrix(15.0, 0.0, 500.0)));
        for (size, flags) in [("4x16", ""), ("4x16", "--max-memory 1M"), ("8x8", "")] {
            outcome(folder, &format!("resize in.tif o.tif --size {size} {flags}")).success();
            let file = fs::File::open(folder.join("o.tif")).unwrap();
            let mut file = tiff::decoder::Decoder::new(file).unwrap();
            let mut values = |tag| file.get_tag_f64_vec(tiff::tags::Tag::Unknown(tag)).unwrap();
            if size == "8x8" {
                assert_eq!(values(33550), [10.0, 20.0, 0.0]);
                assert_eq!(values(34264), matrix(15.0, 0.0, 500.0));
                continue;
            }
            assert_eq!(values(33550), [20.0, 10.0, 0.0]);
            assert_eq!(values(33922)[..3], [tie_point[0], tie_point[1], 0.0], "{kind}");
            assert_eq!(values(34264), matrix(30.0, 0.0, origin), "{kind}");
        }
    }
}

/// The same damage has the same consequence, whether an image is read by rows or as a whole: a warning, or an error if
/// strict. For volumes, it is an error.
#[test]
fn damage_is_reported_on_every_road() {
    const ROWS: usize = 100;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let size = [2000, 1500];
    // A white row of Group 4 is a bit that is set, and zeros are not a code.
    let mut fax = vec![vec![0xff; ROWS.div_ceil(8)]; size[1] / ROWS];
    fax[7][5..].fill(0);
    let fax = TiffPage::grey(size, 1, Vec::new()).shorts(259, [4]).with_strips(ROWS as u32, fax);
    let frame = Frame::for_pixels([size[0], ROWS], 1, Quality(90), false);
    let pixels: Vec<u8> = (0..size[0] * ROWS).map(|i| (i % 251) as u8).collect();
    let jpeg = encode_jpeg(&frame, &pixels, false);
    let mut strips = vec![jpeg.clone(); size[1] / ROWS];
    strips[14].truncate(jpeg.len() / 2);
    let jpeg =
        TiffPage::grey(size, 8, Vec::new()).shorts(259, [7]).with_strips(ROWS as u32, strips);
    for page in [fax, jpeg] {
        write(folder, page);
        for output in ["o.tif", "o.png"] {
            for (memory, is_whole) in [("1G", true), ("4M", false)] {
                let line = format!("blur in.tif {output} --sigma 0 --max-memory {memory}");
                let (code, stderr) = run(folder, &format!("{line} -vv"));
                assert_eq!(stderr.contains("in blocks of"), !is_whole, "{line}: {stderr}");
                let warning = "1 of its 15 strips or tiles are damaged";
                assert!(code == 0 && stderr.contains(warning), "{line}: {stderr}");
                fs::remove_file(folder.join(output)).unwrap();
                outcome(folder, &format!("{line} --strict")).code(4).stderr(contains(warning));
                assert!(!folder.join(output).exists(), "{line}");
            }
        }
        for line in ["blur in.tif o.npy --sigma 0 --stack", "histogram in.tif -o h.csv --strict"] {
            outcome(folder, line).code(4).stderr(contains("damaged"));
        }
    }
}
