//! Pixels and positions of DICOM files in every variant, with naive references made from the standard (PS3.3, PS3.5).

use std::{fs, path::Path};

use gpuproc::{
    data::{dtype::Dtype, samples::Samples},
    io::volume::{Layout, VolumeFile},
    jpeg::{Frame, Quality},
    util::timings::Timings,
};

use crate::{
    common::{Noise, decode_jpeg, encode_jpeg},
    dicom_files::{Attributes, PLAIN},
    inputs::{as_f64, describe_as},
};

const RLE: &str = "1.2.840.10008.1.2.5";
const JPEG: &str = "1.2.840.10008.1.2.4.50";
const BIG_ENDIAN: &str = "1.2.840.10008.1.2.2";

fn open(path: &Path, volume: usize) -> VolumeFile {
    let layout = Layout { volume: Some(volume), ..Layout::default() };
    describe_as(path, &layout).unwrap_or_else(|error| panic!("{}", error.one_line()))
}

fn values(file: &VolumeFile) -> Vec<f64> {
    let volume = file.read(1 << 20, &Timings::new(false));
    as_f64(&volume.unwrap_or_else(|error| panic!("{}", error.one_line())).samples)
}

fn read(path: &Path) -> Vec<f64> {
    values(&open(path, 0))
}

/// Bytes of samples of `bits` bits, little-endian.
fn stored(samples: &[u32], bits: u16) -> Vec<u8> {
    samples
        .iter()
        .flat_map(|sample| sample.to_le_bytes()[..usize::from(bits / 8)].to_vec())
        .collect()
}

/// The mean of the colours of a pixel, from Y, Cb and Cr if `is_ybr` (PS3.3, C.7.6.3.1.2).
fn grey([a, b, c]: [u32; 3], is_ybr: bool, bits: u16) -> f64 {
    let max = 2f64.powi(bits.into()) - 1.0;
    let half = 2f64.powi(i32::from(bits) - 1);
    let [y, blue, red] = [f64::from(a), f64::from(b) - half, f64::from(c) - half];
    let rgb = if is_ybr {
        [y + 1.402 * red, y - 0.3441 * blue - 0.7141 * red, y + 1.772 * blue]
            .map(|v| v.round().clamp(0.0, max))
    } else {
        [a, b, c].map(f64::from)
    };
    (rgb.iter().sum::<f64>() / 3.0).round()
}

/// RGB and YCbCr, by pixel and by plane, with chroma for each pixel and for pairs of pixels, in two frames.
#[test]
fn colours_are_read_in_every_layout() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dcm");
    let (columns, rows, frames) = (6usize, 3usize, 2usize);
    let pixels = columns * rows;
    for bits in [8u16, 16] {
        let mut noise = Noise(u64::from(bits));
        let pixel: Vec<[u32; 3]> = (0..pixels * frames)
            .map(|_| [0; 3].map(|_| (noise.next() >> 20) as u32 & ((1 << bits) - 1)))
            .collect();
        let by_pixel: Vec<u32> = pixel.concat();
        let by_plane: Vec<u32> = pixel
            .chunks(pixels)
            .flat_map(|frame| (0..3).flat_map(move |c| frame.iter().map(move |pixel| pixel[c])))
            .collect();
        // Cb and Cr of a pair are those of its first pixel.
        let pairs: Vec<u32> = pixel
            .chunks(2)
            .flat_map(|pair| [pair[0][0], pair[1][0], pair[0][1], pair[0][2]])
            .collect();
        for kind in ["RGB", "YBR_FULL", "YBR_FULL_422"] {
            for (name, samples, planar) in [
                ("pixels", &by_pixel, 0),
                ("planes", &by_plane, 1),
                ("pairs", &pairs, 0),
                ("pairs", &pairs, 1),
            ] {
                if name == "pairs" && kind != "YBR_FULL_422" {
                    continue;
                }
                Attributes::picture([columns as u16, rows as u16], bits)
                    .numbers(0x0028_0002, &[3])
                    .text(0x0028_0004, b"CS", kind)
                    .numbers(0x0028_0006, &[planar])
                    .text(0x0028_0008, b"IS", &frames.to_string())
                    .pixels(&stored(samples, bits))
                    .write(&path, PLAIN);
                let expected: Vec<f64> = pixel
                    .iter()
                    .enumerate()
                    .map(|(i, own)| {
                        let chroma = if name == "pairs" { pixel[i / 2 * 2] } else { *own };
                        grey([own[0], chroma[1], chroma[2]], kind != "RGB", bits)
                    })
                    .collect();
                assert_eq!(read(&path), expected, "{kind} of {bits} bits by {name}, {planar}");
            }
        }
    }
    // An odd number of columns has no pairs, but chroma for each pixel.
    let odd = |bytes: &[u8]| {
        Attributes::picture([3, 1], 8)
            .numbers(0x0028_0002, &[3])
            .text(0x0028_0004, b"CS", "YBR_FULL_422")
            .pixels(bytes)
            .write(&path, PLAIN);
    };
    odd(&[10, 128, 128, 20, 128, 128, 30, 128, 128]);
    assert_eq!(read(&path), [10.0, 20.0, 30.0]);
    odd(&[10, 20, 128, 128, 30, 128]);
    let error = describe_as(&path, &Layout::default()).unwrap_err().one_line();
    assert!(error.contains("even number of columns"), "{error}");
}

/// The decoder of JPEG makes RGB of Y, Cb and Cr, which must not be done again.
#[test]
fn colours_in_jpeg_are_converted_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dcm");
    let (columns, rows) = (21usize, 13usize);
    for channels in [1usize, 3] {
        for half_chroma in [false, true] {
            let frames: Vec<Vec<u8>> = (0..2)
                .map(|seed| {
                    // Smooth colours, far from grey.
                    let pixels: Vec<u8> = (0..columns * rows)
                        .flat_map(|i| [i % columns * 12, i / columns * 19, 40 * seed + 90])
                        .map(|v| v as u8)
                        .collect();
                    let pixels: Vec<u8> =
                        pixels.chunks(3).flat_map(|p| p[..channels].to_vec()).collect();
                    let frame =
                        Frame::for_pixels([columns, rows], channels, Quality(90), half_chroma);
                    encode_jpeg(&frame, &pixels, false)
                })
                .collect();
            let expected: Vec<f64> = frames
                .iter()
                .flat_map(|frame| {
                    let Samples::U8(rgb) = decode_jpeg(frame).unwrap().0.samples else {
                        unreachable!()
                    };
                    let mean = |pixel: &[u8]| {
                        let sum: f64 = pixel.iter().map(|&v| f64::from(v)).sum();
                        (sum / channels as f64).round()
                    };
                    rgb.chunks(channels).map(mean).collect::<Vec<f64>>()
                })
                .collect();
            let kinds: &[&str] =
                if channels == 1 { &["MONOCHROME2"] } else { &["YBR_FULL_422", "YBR_FULL"] };
            for kind in kinds {
                for planar in [0, 1] {
                    Attributes::picture([columns as u16, rows as u16], 8)
                        .numbers(0x0028_0002, &[channels as u16])
                        .text(0x0028_0004, b"CS", kind)
                        .numbers(0x0028_0006, &[planar])
                        .text(0x0028_0008, b"IS", "2")
                        .fragments(&[], &[&frames[0], &frames[1]])
                        .write(&path, JPEG);
                    assert_eq!(read(&path), expected, "{kind} {half_chroma} {planar}");
                }
            }
        }
    }
}

/// Samples of any number of bits at any position in their bytes: other bits do not count, the highest is the sign, and
/// MONOCHROME1 is inverted within the range.
#[test]
fn only_significant_bits_count() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dcm");
    let mut noise = Noise(7);
    for allocated in [8u16, 16, 32] {
        let words: Vec<u32> =
            (0..12).map(|_| (noise.next() >> 9) as u32 & (u32::MAX >> (32 - allocated))).collect();
        for bits in [1, 5, 7, 8, 12, 15, 16, 20, 31, 32] {
            for high in [bits - 1, bits + 1, allocated - 1] {
                if bits > allocated || high >= allocated || high + 1 < bits {
                    continue;
                }
                for (signed, kind) in
                    [(0, "MONOCHROME2"), (1, "MONOCHROME2"), (0, "MONOCHROME1"), (1, "MONOCHROME1")]
                {
                    Attributes::picture([4, 3], allocated)
                        .text(0x0028_0004, b"CS", kind)
                        .numbers(0x0028_0101, &[bits])
                        .numbers(0x0028_0102, &[high])
                        .numbers(0x0028_0103, &[signed])
                        .pixels(&stored(&words, allocated))
                        .write(&path, PLAIN);
                    let all = 1i64 << bits;
                    let low = if signed == 1 { -all / 2 } else { 0 };
                    let number = |&word: &u32| {
                        let number = i64::from(word) >> (high + 1 - bits) & (all - 1);
                        let number = if number >= all + low { number - all } else { number };
                        (if kind == "MONOCHROME1" { low + low + all - 1 - number } else { number })
                            as f64
                    };
                    let expected: Vec<f64> = words.iter().map(number).collect();
                    let file = open(&path, 0);
                    assert_eq!(
                        values(&file),
                        expected,
                        "{bits} of {allocated} bits up to {high}, {signed}, {kind}"
                    );
                    let bytes = usize::from(allocated / 8);
                    assert_eq!((file.dtype.size(), file.dtype.is_signed()), (bytes, signed == 1));
                }
            }
        }
    }
}

/// Values are `slope * stored + intercept`, in the smallest of the types that hold them all.
#[test]
fn values_have_the_smallest_type_that_holds_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dcm");
    for (allocated, bits, signed, slope, intercept, dtype) in [
        (16, 12, 0, 1.0, 0.0, Dtype::U16),
        (16, 12, 0, 1.0, -1024.0, Dtype::I16),
        (16, 12, 1, 1.0, -1024.0, Dtype::I16),
        (16, 12, 0, 1.0, 61_440.0, Dtype::U16),
        (16, 12, 0, 1.0, 61_441.0, Dtype::I32),
        (16, 16, 0, 1.0, -32_768.0, Dtype::I16),
        (16, 16, 0, 1.0, -32_769.0, Dtype::I32),
        (16, 16, 0, 65_537.0, 0.0, Dtype::U32),
        (16, 16, 0, 65_538.0, 0.0, Dtype::F64),
        (16, 16, 0, -1.0, 65_535.0, Dtype::U16),
        (16, 16, 1, 1.0, 32_768.0, Dtype::U16),
        (8, 8, 0, 1.0, 1.0, Dtype::I16),
        (8, 8, 0, 128.0, 0.0, Dtype::I16),
        (8, 8, 0, 129.0, 0.0, Dtype::U16),
        (8, 8, 1, 1.0, 0.0, Dtype::I8),
        (8, 8, 1, 1.0, -1.0, Dtype::I16),
        (16, 12, 0, 0.5, 0.0, Dtype::F32),
        (16, 12, 0, 1.0, 0.25, Dtype::F32),
        (32, 24, 0, 0.5, 0.0, Dtype::F32),
        (32, 25, 0, 0.5, 0.0, Dtype::F64),
        (32, 32, 0, 1.0, 1.0, Dtype::F64),
    ] {
        let case = format!("{bits} of {allocated} bits, {signed}: {slope} {intercept}");
        let all = 1i64 << bits;
        let low = if signed == 1 { -all / 2 } else { 0 };
        let ends = [low, low + all - 1, 3];
        Attributes::picture([3, 1], allocated)
            .numbers(0x0028_0101, &[bits])
            .numbers(0x0028_0102, &[bits - 1])
            .numbers(0x0028_0103, &[signed])
            .decimals(0x0028_1052, &[intercept])
            .decimals(0x0028_1053, &[slope])
            .pixels(&stored(&ends.map(|end| end as u32), allocated))
            .write(&path, PLAIN);
        let file = open(&path, 0);
        assert_eq!(values(&file), ends.map(|end| end as f64 * slope + intercept), "{case}");
        assert_eq!(file.dtype, dtype, "{case}");
    }
    // A scale that is invalid changes nothing.
    for (slope, intercept) in [("0", "5"), ("nan", "5"), ("inf", "5"), ("1", "nan")] {
        Attributes::picture([2, 1], 8)
            .text(0x0028_1052, b"DS", intercept)
            .text(0x0028_1053, b"DS", slope)
            .pixels(&[3, 9])
            .write(&path, PLAIN);
        assert_eq!(read(&path), [3.0, 9.0], "{slope} {intercept}");
    }
    // Doses have their own factor.
    Attributes::picture([2, 1], 16)
        .decimals(0x0028_1052, &[7.0])
        .decimals(0x3004_000e, &[0.25])
        .words(&[4, 6])
        .write(&path, PLAIN);
    assert_eq!(read(&path), [1.0, 1.5]);
}

/// The first entry of a palette may be that of a negative sample. Its number is then stored as SS, or wrapped in US.
#[test]
fn palettes_begin_at_any_sample() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dcm");
    let tables: [&[u8]; 3] = [&[0, 10, 20, 30], &[0, 20, 40, 60], &[0, 60, 90, 120]];
    let entries = [0.0, 30.0, 50.0, 70.0];
    for bits in [8u16, 16] {
        for signed in [0u16, 1] {
            for first in [-300i32, -2, -1, 0, 1, 5, 200, 32_767, 32_768, 40_000, 65_534] {
                if (signed == 0) == (first < 0) && first != 0 || signed == 1 && first > 32_767 {
                    continue;
                }
                let range = match (bits, signed) {
                    (8, 0) => 0..=255,
                    (8, _) => -128..=127,
                    (_, 0) => 0..=65_535,
                    _ => -32_768..=32_767,
                };
                let samples: Vec<i32> =
                    (first - 2..first + 6).filter(|sample| range.contains(sample)).collect();
                if samples.is_empty() {
                    continue;
                }
                let bytes = stored(&samples.iter().map(|&v| v as u32).collect::<Vec<_>>(), bits);
                let mut picture = Attributes::picture([samples.len() as u16, 1], bits)
                    .text(0x0028_0004, b"CS", "PALETTE COLOR")
                    .numbers(0x0028_0103, &[signed])
                    .pixels(&bytes);
                for (i, table) in (0..).zip(tables) {
                    picture = picture.numbers(0x0028_1101 + i, &[4, first as u16, 8]).bytes(
                        0x0028_1201 + i,
                        b"OW",
                        table,
                    );
                }
                let expected: Vec<f64> =
                    samples.iter().map(|&v| entries[(v - first).clamp(0, 3) as usize]).collect();
                let case = format!("{bits} bits, {signed}, from {first} on");
                picture.clone().write(&path, PLAIN);
                assert_eq!(read(&path), expected, "US: {case}");
                if first < 32_768 {
                    let descriptor = [4i16, first as i16, 8].map(i16::to_le_bytes).concat();
                    for tag in 0x0028_1101..=0x0028_1103 {
                        picture = picture.bytes(tag, b"SS", &descriptor);
                    }
                    picture.write(&path, PLAIN);
                    assert_eq!(read(&path), expected, "SS: {case}");
                }
            }
        }
    }
}

/// Packs bytes as PackBits, with runs, literals, and bytes that do nothing.
fn pack(bytes: &[u8]) -> Vec<u8> {
    let (mut packed, mut at) = (vec![128], 0);
    while at < bytes.len() {
        let run = bytes[at..].iter().take(128).take_while(|&&byte| byte == bytes[at]).count();
        if run > 1 {
            packed.extend([(257 - run) as u8, bytes[at]]);
            at += run;
        } else {
            let rest = &bytes[at..bytes.len().min(at + 128)];
            let count = rest.windows(2).position(|pair| pair[0] == pair[1]).unwrap_or(rest.len());
            packed.push((count - 1) as u8);
            packed.extend(&rest[..count]);
            at += count;
        }
    }
    packed.resize(packed.len().next_multiple_of(2), 0);
    packed
}

#[test]
fn rle_holds_a_segment_for_each_byte_of_a_pixel() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dcm");
    let (columns, rows) = (31usize, 9usize);
    for (bits, samples) in [(8u16, 1usize), (16, 1), (32, 1), (8, 3), (16, 3), (32, 3)] {
        let mut noise = Noise(u64::from(bits) + samples as u64);
        let frames: Vec<Vec<u32>> = (0..2)
            .map(|_| {
                // A few runs, and noise.
                let word =
                    |i: usize| if i % 90 < 40 { 0x0102_0304 } else { (noise.next() >> 8) as u32 };
                let words: Vec<u32> = (0..columns * rows * samples).map(word).collect();
                words.into_iter().map(|word| word & (u32::MAX >> (32 - bits))).collect()
            })
            .collect();
        let packed: Vec<Vec<u8>> = frames
            .iter()
            .map(|frame| {
                let size = usize::from(bits / 8);
                // The bytes of the first sample, the highest first, then those of the second.
                let segments: Vec<Vec<u8>> = (0..samples * size)
                    .map(|segment| {
                        let (sample, byte) = (segment / size, size - 1 - segment % size);
                        let pixels = frame.chunks(samples);
                        pack(
                            &pixels
                                .map(|pixel| pixel[sample].to_le_bytes()[byte])
                                .collect::<Vec<u8>>(),
                        )
                    })
                    .collect();
                let mut header = (segments.len() as u32).to_le_bytes().to_vec();
                let mut at = 64;
                for segment in &segments {
                    header.extend((at as u32).to_le_bytes());
                    at += segment.len();
                }
                header.resize(64, 0);
                [header, segments.concat()].concat()
            })
            .collect();
        for planar in [0, 1] {
            Attributes::picture([columns as u16, rows as u16], bits)
                .numbers(0x0028_0002, &[samples as u16])
                .text(0x0028_0004, b"CS", if samples == 3 { "RGB" } else { "MONOCHROME2" })
                .numbers(0x0028_0006, &[planar])
                .text(0x0028_0008, b"IS", "2")
                .fragments(&[], &[&packed[0], &packed[1]])
                .write(&path, RLE);
            let expected: Vec<f64> = frames
                .concat()
                .chunks(samples)
                .map(|pixel| {
                    (pixel.iter().map(|&v| f64::from(v)).sum::<f64>() / samples as f64).round()
                })
                .collect();
            assert_eq!(read(&path), expected, "{bits} bits, {samples} samples, {planar}");
        }
    }
}

/// A big-endian data set: pixels of 8 bits that are words have swapped bytes (PS3.5, A.3 and 8.1.1).
#[test]
fn big_endian_pixels_are_swapped_by_their_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dcm");
    let element = |tag: u32, kind: &[u8; 2], value: &[u8], is_big: bool| {
        let half = |v: u16| if is_big { v.to_be_bytes() } else { v.to_le_bytes() };
        let head = [half((tag >> 16) as u16), half(tag as u16), *kind].concat();
        let len = match kind {
            b"OB" | b"OW" => {
                let len = value.len() as u32;
                [
                    [0, 0].to_vec(),
                    if is_big { len.to_be_bytes() } else { len.to_le_bytes() }.to_vec(),
                ]
                .concat()
            }
            _ => half(value.len() as u16).to_vec(),
        };
        [head, len, value.to_vec()].concat()
    };
    for (bits, kind) in [(8u16, b"OB"), (8, b"OW"), (16, b"OW"), (32, b"OW")] {
        // Frames of three samples: the second begins within a word.
        let samples: Vec<u32> =
            (1..=6).map(|i| (i * 0x1234_5671) & (u32::MAX >> (32 - bits))).collect();
        let mut pixels: Vec<u8> = samples
            .iter()
            .flat_map(|v| v.to_be_bytes()[4 - usize::from(bits / 8)..].to_vec())
            .collect();
        if (bits, kind) == (8, b"OW") {
            pixels.chunks_mut(2).for_each(<[u8]>::reverse);
        }
        let short = |tag: u32, value: u16| element(tag, b"US", &value.to_be_bytes(), true);
        let syntax = element(0x0002_0010, b"UI", &[BIG_ENDIAN.as_bytes(), &[0]].concat(), false);
        let file = [
            [&[0; 128][..], b"DICM"].concat(),
            element(0x0002_0000, b"UL", &(syntax.len() as u32).to_le_bytes(), false),
            syntax,
            element(0x0020_000e, b"UI", b"1.2.3.4\0", true),
            short(0x0028_0002, 1),
            element(0x0028_0004, b"CS", b"MONOCHROME2 ", true),
            element(0x0028_0008, b"IS", b"2 ", true),
            short(0x0028_0010, 1),
            short(0x0028_0011, 3),
            short(0x0028_0100, bits),
            short(0x0028_0101, bits),
            short(0x0028_0102, bits - 1),
            short(0x0028_0103, 0),
            element(0x7fe0_0010, kind, &pixels, true),
        ];
        fs::write(&path, file.concat()).unwrap();
        let expected: Vec<f64> = samples.iter().map(|&v| f64::from(v)).collect();
        assert_eq!(read(&path), expected, "{bits} bits as {kind:?}");
    }
}
