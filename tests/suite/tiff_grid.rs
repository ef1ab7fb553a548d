//! TIFF pages of every kind of samples and storage, written sample by sample after TIFF 6.0.

use std::{fs, path::Path};

use gpuproc::data::{image::Image, samples::Samples};

use crate::{
    common::{Noise, works},
    inputs::{as_f64, load_image, rows_of, zlib},
    tiff_files::{TiffPage, tiff},
};

const SIZE: [usize; 2] = [21, 11];

/// How samples are stored.
#[derive(Clone, Copy, Debug)]
struct Storage {
    bits: usize,
    /// Samples per pixel.
    count: usize,
    is_planar: bool,
    /// Columns and rows of tiles; `None` for strips of four rows.
    tile: Option<[usize; 2]>,
    is_big: bool,
    /// 1 none, 8 deflate, 32773 PackBits.
    compression: u16,
    has_predictor: bool,
    is_reversed: bool,
}

const PLAIN: Storage = Storage {
    bits: 8,
    count: 1,
    is_planar: false,
    tile: None,
    is_big: false,
    compression: 1,
    has_predictor: false,
    is_reversed: false,
};

/// Packs a row of samples, from the highest bit on; whole bytes in the byte order of the file.
fn pack_row(storage: Storage, row: &[u64]) -> Vec<u8> {
    let Storage { bits, is_big, .. } = storage;
    if bits.is_multiple_of(8) {
        let bytes = |sample: &u64| {
            let mut bytes = sample.to_le_bytes()[..bits / 8].to_vec();
            if is_big {
                bytes.reverse();
            }
            bytes
        };
        return row.iter().flat_map(bytes).collect();
    }
    let mut packed = vec![0u8; (row.len() * bits).div_ceil(8)];
    for (i, sample) in row.iter().enumerate() {
        for bit in (0..bits).filter(|bit| sample >> (bits - 1 - bit) & 1 == 1) {
            let at = i * bits + bit;
            packed[at / 8] |= 0x80 >> (at % 8);
        }
    }
    packed
}

/// The bytes of a strip or tile, from its rows of samples; `count` samples belong to a pixel of the chunk.
fn pack(storage: Storage, rows: &[Vec<u64>], count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for row in rows {
        let mut row = row.clone();
        if storage.has_predictor {
            let mask = u64::MAX >> (64 - storage.bits);
            for i in (count..row.len()).rev() {
                row[i] = row[i].wrapping_sub(row[i - count]) & mask;
            }
        }
        bytes.extend(pack_row(storage, &row));
    }
    let mut packed = match storage.compression {
        8 => zlib(&bytes),
        // Literals of up to 128 bytes.
        32773 => {
            bytes.chunks(128).flat_map(|part| [&[(part.len() - 1) as u8], part].concat()).collect()
        }
        _ => bytes,
    };
    if storage.is_reversed {
        packed.iter_mut().for_each(|byte| *byte = byte.reverse_bits());
    }
    packed
}

/// A page of samples `sample(x, y, index)`.
fn page(storage: Storage, sample: impl Fn(usize, usize, usize) -> u64) -> TiffPage {
    let Storage { bits, count, is_planar, tile, compression, .. } = storage;
    let [width, height] = SIZE;
    let [columns, rows] = tile.unwrap_or([width, 4]);
    let planes: Vec<Vec<usize>> = if is_planar {
        (0..count).map(|plane| vec![plane]).collect()
    } else {
        vec![(0..count).collect()]
    };
    let mut chunks = Vec::new();
    for plane in &planes {
        for top in (0..height).step_by(rows) {
            for left in (0..width).step_by(columns) {
                // Tiles are filled up; the last strip is shorter.
                let end = if tile.is_some() { top + rows } else { height.min(top + rows) };
                let row = |y: usize| {
                    let pixels =
                        (left..left + columns).flat_map(|x| plane.iter().map(move |&i| (x, i)));
                    pixels
                        .map(|(x, i)| if x < width && y < height { sample(x, y, i) } else { 1 })
                        .collect()
                };
                let rows: Vec<Vec<u64>> = (top..end).map(row).collect();
                chunks.push(pack(storage, &rows, plane.len()));
            }
        }
    }
    let page = TiffPage::grey(SIZE, bits as u16, Vec::new()).with_strips(rows as u32, chunks);
    let page = page.shorts(258, vec![bits as u16; count]).shorts(277, [count as u16]);
    let page = page.shorts(259, [compression]).shorts(284, [1 + u16::from(is_planar)]);
    let page = page.shorts(317, [1 + u16::from(storage.has_predictor)]);
    let page = page.shorts(266, [1 + u16::from(storage.is_reversed)]);
    match tile {
        Some([columns, rows]) => page.longs(322, [columns as u32]).longs(323, [rows as u32]),
        None => page,
    }
}

/// The same file with all numbers of its headers in the other byte order.
fn big_endian(mut file: Vec<u8>) -> Vec<u8> {
    let half = |file: &[u8], at: usize| usize::from(u16::from_le_bytes([file[at], file[at + 1]]));
    let word =
        |file: &[u8], at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let mut at = word(&file, 4);
    file[..4].copy_from_slice(b"MM\0*");
    file[4..8].reverse();
    while at != 0 {
        let count = half(&file, at);
        file[at..at + 2].reverse();
        for entry in (0..count).map(|i| at + 2 + 12 * i) {
            let (kind, values) = (half(&file, entry + 2), word(&file, entry + 4));
            let size = [0, 1, 1, 2, 4, 4, 1, 1, 2, 4, 4, 4, 8][kind];
            let number = if kind == 5 || kind == 10 { 2 * values } else { values };
            let first = if size * number > 4 { word(&file, entry + 8) } else { entry + 8 };
            file[first..first + size * number].chunks_mut(size).for_each(<[u8]>::reverse);
            if size * number > 4 {
                file[entry + 8..entry + 12].reverse();
            }
            file[entry..entry + 2].reverse();
            file[entry + 2..entry + 4].reverse();
            file[entry + 4..entry + 8].reverse();
        }
        let next = at + 2 + 12 * count;
        at = word(&file, next);
        file[next..next + 4].reverse();
    }
    file
}

fn load(path: &Path, storage: Storage, page: TiffPage) -> Image {
    let file = tiff(&[page]);
    fs::write(path, if storage.is_big { big_endian(file) } else { file }).unwrap();
    let image = load_image(path);
    // Rows are not turned.
    if !path.ends_with("turned.tif") {
        assert!(rows_of(path).unwrap() == image.samples.as_bytes(), "by rows: {storage:?}");
    }
    image
}

/// The combinations of layout, byte order and compression for samples of `bits` bits.
fn storages(bits: usize, count: usize) -> Vec<Storage> {
    let basic = Storage { bits, count, ..PLAIN };
    let mut all = Vec::new();
    for tile in [None, Some([16, 16])] {
        for is_planar in [false, true] {
            for is_big in [false, true] {
                let own = Storage { tile, is_planar, is_big, ..basic };
                all.extend([own, Storage { compression: 32773, ..own }]);
                let has_predictor = bits.is_multiple_of(8) && bits != 24;
                all.push(Storage { compression: 8, has_predictor, ..own });
                if bits <= 16 && !bits.is_multiple_of(8) {
                    all.push(Storage { is_reversed: true, ..own });
                }
            }
        }
    }
    all.retain(|storage| count > 1 || !storage.is_planar);
    all
}

/// Unsigned samples of less than 8 and 16 bits are scaled to the full range; all others keep their value.
#[test]
fn samples_of_every_depth_and_storage_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.tif");
    for (format, bits, bytes) in [
        (1u16, 1usize, 1usize),
        (1, 2, 1),
        (1, 3, 1),
        (1, 4, 1),
        (1, 7, 1),
        (1, 8, 1),
        (1, 10, 2),
        (1, 12, 2),
        (1, 14, 2),
        (1, 16, 2),
        (1, 24, 4),
        (1, 32, 4),
        (2, 4, 1),
        (2, 8, 1),
        (2, 12, 2),
        (2, 16, 2),
        (2, 24, 4),
        (2, 32, 4),
    ] {
        for count in [1, 3] {
            let mask = u64::MAX >> (64 - bits);
            let noise = Noise(bits as u64);
            let sample = |x: usize, y: usize, i: usize| {
                let at = ((y * SIZE[0] + x) * count + i) as u64;
                // The ends of the range, and any other value.
                match at {
                    0 => 0,
                    1 => mask,
                    2 => mask >> 1,
                    3 => (mask >> 1) + 1,
                    _ => noise.at(at) >> 13 & mask,
                }
            };
            let expected: Vec<f64> = (0..SIZE[0] * SIZE[1] * count)
                .map(|i| {
                    let value = sample(i / count % SIZE[0], i / count / SIZE[0], i % count);
                    let signed = value as i64 - if value > mask >> 1 { mask as i64 + 1 } else { 0 };
                    let full = if bytes == 1 { 255.0 } else { 65_535.0 };
                    match (format, bytes) {
                        (2, _) => signed as f64,
                        (_, 4) => value as f64,
                        _ => (value as f64 * full / mask as f64 + 0.5).floor(),
                    }
                })
                .collect();
            for storage in storages(bits, count) {
                let page = page(storage, sample).shorts(339, vec![format; count]);
                let page = if count == 3 { page.shorts(262, [2]) } else { page };
                let image = load(&path, storage, page);
                let case = format!("format {format}, {storage:?}");
                assert_eq!(([image.width, image.height], image.channels), (SIZE, count), "{case}");
                assert_eq!(image.samples.dtype().size(), bytes, "{case}");
                assert_eq!(image.samples.dtype().is_signed(), format == 2, "{case}");
                assert!(as_f64(&image.samples) == expected, "{case}");
            }
        }
    }
}

/// Floats of 16, 24, 32 and 64 bits. The predictor of floats stores the highest bytes of a row first, as differences.
#[test]
fn floats_of_every_size_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.tif");
    for bits in [16usize, 24, 32, 64] {
        for count in [1usize, 3] {
            let value = |x: usize, y: usize, i: usize| ((x * 3 + y * 5 + i) as f64 - 20.0) * 0.25;
            let sample = |x: usize, y: usize, i: usize| match bits {
                16 => half::f16::from_f64(value(x, y, i)).to_bits().into(),
                // The highest 7 of 8 bits of the exponent that a float of 24 bits has (bias 63), and 16 bits of fraction.
                24 => {
                    let value = value(x, y, i);
                    let bits = (value as f32).to_bits();
                    let exponent = (i64::from(bits >> 23 & 0xff) - 127 + 63) as u64;
                    let exponent = if value == 0.0 { 0 } else { exponent };
                    u64::from(bits >> 31) << 23 | exponent << 16 | u64::from(bits >> 7 & 0xffff)
                }
                32 => (value(x, y, i) as f32).to_bits().into(),
                _ => value(x, y, i).to_bits(),
            };
            let all = (0..SIZE[0] * SIZE[1] * count)
                .map(|i| value(i / count % SIZE[0], i / count / SIZE[0], i % count));
            let expected: Vec<f64> = all.collect();
            for storage in storages(bits, count).into_iter().filter(|own| !own.has_predictor) {
                let page = page(storage, sample).shorts(339, vec![3; count]);
                let page = if count == 3 { page.shorts(262, [2]) } else { page };
                let image = load(&path, storage, page);
                let case = format!("{storage:?}");
                assert_eq!(image.samples.dtype().size(), if bits == 64 { 8 } else { 4 }, "{case}");
                assert!(as_f64(&image.samples) == expected, "{case}");
            }
            // The predictor, whose bytes have the same order in both kinds of files.
            for is_big in [false, true] {
                let storage = Storage { bits, count, is_big, compression: 8, ..PLAIN };
                let strip: Vec<u8> = (0..SIZE[1])
                    .flat_map(|y| {
                        let row: Vec<u64> = (0..SIZE[0])
                            .flat_map(|x| (0..count).map(move |i| sample(x, y, i)))
                            .collect();
                        let mut bytes: Vec<u8> = (0..bits / 8)
                            .rev()
                            .flat_map(|byte| {
                                row.iter().map(move |sample| sample.to_le_bytes()[byte])
                            })
                            .collect();
                        for i in (count..bytes.len()).rev() {
                            bytes[i] = bytes[i].wrapping_sub(bytes[i - count]);
                        }
                        bytes
                    })
                    .collect();
                let page = page(storage, sample).with_strips(SIZE[1] as u32, vec![zlib(&strip)]);
                let page = page.shorts(317, [3]).shorts(339, vec![3; count]);
                let page = if count == 3 { page.shorts(262, [2]) } else { page };
                let image = load(&path, storage, page);
                assert!(
                    as_f64(&image.samples) == expected,
                    "{bits} bits, {count}, predictor, {is_big}"
                );
            }
        }
    }
}

/// Grey where 0 is white, inks, palettes, and alpha of both kinds (TIFF 6.0, sections 4, 5, 16 and 18).
#[test]
fn colours_of_every_model_are_converted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.tif");
    for bits in [8usize, 16] {
        let max = (1u64 << bits) - 1;
        let noise = Noise(3);
        for (name, photometric, count, extra) in [
            ("white", 0u16, 1usize, None),
            ("white and alpha", 0, 2, Some(2u16)),
            ("grey and alpha", 1, 2, Some(2)),
            ("grey times alpha", 1, 2, Some(1)),
            ("grey and more", 1, 2, Some(0)),
            ("RGB and alpha", 2, 4, Some(2)),
            ("RGB times alpha", 2, 4, Some(1)),
            ("inks", 5, 4, None),
        ] {
            let sample = |x: usize, y: usize, i: usize| {
                let at = ((y * SIZE[0] + x) * count + i) as u64;
                let alpha = [0, 1, max / 3, max][x % 4];
                match i + 1 {
                    last if last == count && photometric != 5 && count > 1 => alpha,
                    // Colours times alpha are not above it.
                    _ if extra == Some(1) => (noise.at(at) >> 9 & max) * alpha / max,
                    _ => noise.at(at) >> 9 & max,
                }
            };
            for storage in storages(bits, count).into_iter().step_by(3) {
                let page = page(storage, sample).shorts(262, [photometric]);
                let page = extra.map_or(page.clone(), |extra| page.shorts(338, [extra]));
                let image = load(&path, storage, page);
                let case = format!("{name} {storage:?}");
                let channels = if photometric == 5 { 3 } else { count };
                assert_eq!(image.channels, channels, "{case}");
                let found = as_f64(&image.samples);
                for (at, found) in found.chunks(channels).enumerate() {
                    let own: Vec<u64> =
                        (0..count).map(|i| sample(at % SIZE[0], at / SIZE[0], i)).collect();
                    let rounded = |top: u64, bottom: u64| ((top + bottom / 2) / bottom).min(max);
                    let expected: Vec<u64> = match (photometric, extra) {
                        (5, _) => own[..3]
                            .iter()
                            .map(|&ink| rounded((max - ink) * (max - own[3]), max))
                            .collect(),
                        (0, _) => own
                            .iter()
                            .enumerate()
                            .map(|(i, &v)| if i == 0 { max - v } else { v })
                            .collect(),
                        (_, Some(1)) => {
                            let alpha = own[count - 1];
                            let colour =
                                |&v: &u64| if alpha == 0 { v } else { rounded(v * max, alpha) };
                            own[..count - 1].iter().map(colour).chain([alpha]).collect()
                        }
                        _ => own,
                    };
                    let expected: Vec<f64> = expected.into_iter().map(|v| v as f64).collect();
                    assert_eq!(found, expected, "{case}, pixel {at}");
                }
            }
        }
    }
    // Palettes of each depth, whose levels have 16 bits, or are bytes times 256 or 257.
    for bits in [1usize, 2, 4, 8] {
        for (step, is_wide) in [(256u32, false), (257, false), (1, true)] {
            for is_grey in [false, true] {
                let colours = 1usize << bits;
                let level = |colour: usize, i: usize| {
                    let level = (colour * 37 + if is_grey { 0 } else { i * 11 }) % 256;
                    if is_wide { level as u32 * 200 + 300 } else { level as u32 * step }
                };
                let map: Vec<u16> = (0..3)
                    .flat_map(|i| (0..colours).map(move |colour| level(colour, i) as u16))
                    .collect();
                let sample = |x: usize, y: usize, _: usize| ((x * 7 + y * 3) % colours) as u64;
                for storage in storages(bits, 1) {
                    let page = page(storage, sample).shorts(262, [3]).shorts(320, &map);
                    let image = load(&path, storage, page);
                    let channels = if is_grey { 1 } else { 3 };
                    let expected: Vec<u16> = (0..SIZE[0] * SIZE[1])
                        .flat_map(|at| {
                            let colour = sample(at % SIZE[0], at / SIZE[0], 0) as usize;
                            (0..channels).map(move |i| level(colour, i) as u16)
                        })
                        .collect();
                    let expected = match is_wide {
                        true => Samples::U16(expected),
                        false => {
                            Samples::U8(expected.iter().map(|level| (level >> 8) as u8).collect())
                        }
                    };
                    assert_eq!(image.channels, channels);
                    assert!(image.samples == expected, "{step} {is_grey} {storage:?}");
                }
            }
        }
    }
}

/// Each orientation (274) puts the stored rows and columns where TIFF 6.0, section 8, says.
#[test]
fn pages_are_turned_by_their_orientation() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("turned.tif");
    let [width, height] = SIZE;
    for count in [1usize, 2, 3, 4] {
        let storage = Storage { count, ..PLAIN };
        let sample = |x: usize, y: usize, i: usize| (x + width * y + 7 * i) as u64 % 256;
        for orientation in 1..=8u16 {
            let page = page(storage, sample).shorts(274, [orientation]);
            let page = if count > 2 { page.shorts(262, [2]) } else { page };
            let page = if count % 2 == 0 { page.shorts(338, [2]) } else { page };
            let image = load(&path, storage, page);
            let size = if orientation > 4 { [height, width] } else { SIZE };
            assert_eq!([image.width, image.height], size, "{orientation}");
            let mut expected = Vec::new();
            for (y, x) in (0..size[1]).flat_map(|y| (0..size[0]).map(move |x| (y, x))) {
                // The stored column and row at the upright position.
                let [column, row] = match orientation {
                    1 => [x, y],
                    2 => [width - 1 - x, y],
                    3 => [width - 1 - x, height - 1 - y],
                    4 => [x, height - 1 - y],
                    5 => [y, x],
                    6 => [y, height - 1 - x],
                    7 => [width - 1 - y, height - 1 - x],
                    _ => [width - 1 - y, x],
                };
                expected.extend((0..count).map(|i| sample(column, row, i) as u8));
            }
            assert!(image.samples == Samples::U8(expected), "{orientation} of {count} channels");
        }
    }
    assert_eq!(works(folder.path(), "blur turned.tif o.tif --sigma 0"), "");
    assert_eq!(load_image(folder.path().join("o.tif")).samples, load_image(&path).samples);
}
