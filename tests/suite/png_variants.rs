//! PNG of every bit depth, colour type and interlacing, still and animated, written by an encoder in this file.

use std::fs;

use gpuproc::{
    data::{image::Image, samples::Samples},
    io::Source,
};

use crate::{
    asserts::assert_contains,
    common::{run, works},
    inputs::{load_image, png_chunk, rows_of, zlib},
    pages::pages,
};

/// The passes of Adam7 (PNG, third edition, 8.1): first column and row, and steps.
const ADAM7: [[usize; 4]; 7] = [
    [0, 0, 8, 8],
    [4, 0, 8, 8],
    [0, 4, 4, 8],
    [2, 0, 4, 4],
    [0, 2, 2, 4],
    [1, 0, 2, 2],
    [0, 1, 1, 2],
];

/// A kind of PNG: colour type, bits per sample, interlacing, and whether a tRNS chunk makes a colour transparent.
#[derive(Clone, Copy, Debug)]
struct Variant {
    colour: u8,
    bits: u8,
    interlaced: bool,
    has_key: bool,
}

impl Variant {
    fn channels(self) -> usize {
        [1, 0, 3, 1, 2, 0, 4][usize::from(self.colour)]
    }

    /// The stored sample of channel `c` at a pixel.
    fn sample(self, frame: usize, x: usize, y: usize, c: usize) -> u16 {
        let noise = (x * 7919 + y * 104_729 + c * 31 + frame * 977) as u32;
        let noise = noise.wrapping_mul(2_654_435_761) >> 8;
        (noise & ((1 << self.bits) - 1)) as u16
    }

    /// The colour of a pixel, scaled to 16 bits.
    fn rgba(self, frame: usize, x: usize, y: usize) -> [u16; 4] {
        let max = (1u32 << self.bits) - 1;
        let stored: Vec<u16> = (0..self.channels()).map(|c| self.sample(frame, x, y, c)).collect();
        let full = |v: u16| (u32::from(v) * 65_535 / max) as u16;
        let alpha = if self.has_key && self.is_key(&stored) { 0 } else { 65_535 };
        match self.colour {
            0 => [full(stored[0]), full(stored[0]), full(stored[0]), alpha],
            2 => [full(stored[0]), full(stored[1]), full(stored[2]), alpha],
            3 => {
                let [r, g, b] = palette(stored[0] as u8).map(|v| u16::from(v) * 257);
                [r, g, b, alpha]
            }
            4 => [full(stored[0]), full(stored[0]), full(stored[0]), full(stored[1])],
            _ => [full(stored[0]), full(stored[1]), full(stored[2]), full(stored[3])],
        }
    }

    /// Whether a pixel is transparent by tRNS: the colour of the first pixel, or entry 1 of a palette.
    fn is_key(self, stored: &[u16]) -> bool {
        match self.colour {
            3 => stored[0] == 1,
            _ => (0..stored.len()).all(|c| stored[c] == self.sample(0, 0, 0, c)),
        }
    }

    fn transparency(self) -> Vec<u8> {
        match self.colour {
            3 => vec![255, 0],
            _ => (0..self.channels()).flat_map(|c| self.sample(0, 0, 0, c).to_be_bytes()).collect(),
        }
    }

    /// The zlib stream of a frame.
    fn data(self, frame: usize, [width, height]: [usize; 2]) -> Vec<u8> {
        let passes: &[[usize; 4]] = if self.interlaced { &ADAM7 } else { &[[0, 0, 1, 1]] };
        let mut bytes = Vec::new();
        for &[x0, y0, dx, dy] in passes {
            if x0 >= width {
                continue;
            }
            for y in (y0..height).step_by(dy) {
                // No filter.
                bytes.push(0);
                let (mut byte, mut used) = (0u32, 0);
                for x in (x0..width).step_by(dx) {
                    for c in 0..self.channels() {
                        let sample = self.sample(frame, x, y, c);
                        if self.bits == 16 {
                            bytes.extend(sample.to_be_bytes());
                            continue;
                        }
                        byte = byte << self.bits | u32::from(sample);
                        used += self.bits;
                        if used == 8 {
                            bytes.push(byte as u8);
                            (byte, used) = (0, 0);
                        }
                    }
                }
                if used > 0 {
                    bytes.push((byte << (8 - used)) as u8);
                }
            }
        }
        zlib(&bytes)
    }

    /// A file of a frame of size `size`, and of further frames at an origin.
    fn file(self, size: [usize; 2], others: &[([usize; 2], [usize; 2])]) -> Vec<u8> {
        let word = |v: usize| (v as u32).to_be_bytes();
        let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
        let mut add = |name: &[u8; 4], parts: &[&[u8]]| {
            file.extend(png_chunk(name, &parts.concat()));
        };
        let end = [self.bits, self.colour, 0, 0, self.interlaced.into()];
        add(b"IHDR", &[&word(size[0]), &word(size[1]), &end]);
        let control = |number: usize, size: [usize; 2], origin: [usize; 2]| {
            let words = [number, size[0], size[1], origin[0], origin[1]].map(word).concat();
            // A second; the frame stays, and replaces the pixels below.
            [words, vec![0, 1, 0, 1, 0, 0]].concat()
        };
        if !others.is_empty() {
            add(b"acTL", &[&word(1 + others.len()), &word(0)]);
        }
        if self.colour == 3 {
            let entries: Vec<u8> =
                (0..1u16 << self.bits).flat_map(|entry| palette(entry as u8)).collect();
            add(b"PLTE", &[&entries]);
        }
        if self.has_key {
            add(b"tRNS", &[&self.transparency()]);
        }
        if !others.is_empty() {
            add(b"fcTL", &[&control(0, size, [0, 0])]);
        }
        add(b"IDAT", &[&self.data(0, size)]);
        for (i, &(size, origin)) in others.iter().enumerate() {
            add(b"fcTL", &[&control(2 * i + 1, size, origin)]);
            add(b"fdAT", &[&word(2 * i + 2), &self.data(i + 1, size)]);
        }
        add(b"IEND", &[]);
        file
    }
}

fn palette(entry: u8) -> [u8; 3] {
    [entry.wrapping_mul(37), entry ^ 0x5a, 255 - entry]
}

/// The pixels of an image as RGBA of 16 bits.
fn rgba(image: &Image) -> Vec<[u16; 4]> {
    let samples: Vec<u16> = match &image.samples {
        Samples::U8(samples) => samples.iter().map(|&v| u16::from(v) * 257).collect(),
        Samples::U16(samples) => samples.clone(),
        other => panic!("{:?}", other.dtype()),
    };
    let pixel = |pixel: &[u16]| match *pixel {
        [g] => [g, g, g, 65_535],
        [g, a] => [g, g, g, a],
        [r, g, b] => [r, g, b, 65_535],
        [r, g, b, a] => [r, g, b, a],
        _ => panic!("{pixel:?}"),
    };
    samples.chunks_exact(image.channels).map(pixel).collect()
}

fn variants() -> impl Iterator<Item = Variant> {
    let kinds: [(u8, &[u8]); 5] =
        [(0, &[1, 2, 4, 8, 16]), (2, &[8, 16]), (3, &[1, 2, 4, 8]), (4, &[8, 16]), (6, &[8, 16])];
    kinds.into_iter().flat_map(|(colour, depths)| {
        depths.iter().flat_map(move |&bits| {
            [(false, false), (true, false), (false, true), (true, true)]
                .into_iter()
                .filter(move |(_, has_key)| !has_key || colour < 4)
                .map(move |(interlaced, has_key)| Variant { colour, bits, interlaced, has_key })
        })
    })
}

#[test]
fn every_still_variant_has_the_right_pixels_even_without_its_last_chunk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.png");
    let size @ [width, height] = [13, 9];
    for variant in variants() {
        let file = variant.file(size, &[]);
        let pixels = (0..height).flat_map(|y| (0..width).map(move |x| variant.rgba(0, x, y)));
        let expected: Vec<_> = pixels.collect();
        // The last chunk is cut off, and cut through.
        for end in [0, 12, 5] {
            fs::write(&path, &file[..file.len() - end]).unwrap();
            let image = load_image(&path);
            assert!(rgba(&image) == expected, "{variant:?} {end}");
            let rows = rows_of(&path);
            assert!(rows.is_some() || variant.interlaced || end > 0, "{variant:?}");
            assert!(rows.is_none_or(|rows| rows == image.samples.as_bytes()), "{variant:?} {end}");
        }
    }
}

#[test]
fn every_animated_variant_has_the_right_pixels() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.png");
    let size @ [width, height] = [13, 9];
    // Frames smaller than the canvas, without some passes of the interlacing.
    let others = [([7, 5], [3, 2]), ([1, 3], [12, 6]), ([3, 1], [0, 8])];
    for variant in variants() {
        fs::write(&path, variant.file(size, &others)).unwrap();
        let (images, animation) = pages(&Source::from(path.clone()));
        assert_eq!((images.len(), animation.unwrap().delays.len()), (4, 4));
        let mut expected: Vec<_> =
            (0..height).flat_map(|y| (0..width).map(move |x| variant.rgba(0, x, y))).collect();
        assert!(rgba(&images[0]) == expected, "{variant:?}");
        for (number, &([w, h], [left, top])) in (1..).zip(&others) {
            for (y, x) in (0..h).flat_map(|y| (0..w).map(move |x| (y, x))) {
                expected[(top + y) * width + left + x] = variant.rgba(number, x, y);
            }
            assert!(rgba(&images[number]) == expected, "{variant:?}, frame {number}");
        }
    }
}

/// Missing chunks are reported, also where the image is read by rows.
#[test]
fn a_missing_last_chunk_is_a_warning_and_an_error_with_strict() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let variant = Variant { colour: 2, bits: 8, interlaced: false, has_key: false };
    let file = variant.file([1100, 700], &[]);
    fs::write(folder.join("whole.png"), &file).unwrap();
    fs::write(folder.join("cut.png"), &file[..file.len() - 12]).unwrap();
    for memory in ["1G", "1M"] {
        let line =
            |name: &str| format!("blur {name}.png {name}.tif --sigma 1 --max-memory {memory}");
        let stderr = works(folder, &line("cut"));
        assert_contains(&stderr, "cut.png: the file is truncated");
        assert_eq!(works(folder, &line("whole")), "");
        assert!(load_image(folder.join("cut.tif")) == load_image(folder.join("whole.tif")));
        let (code, stderr) = run(folder, &format!("{} --strict", line("cut")));
        assert_eq!(code, 4, "{stderr}");
    }
    // Without all pixels, there is no image. The message has the name of the chunk.
    fs::write(folder.join("half.png"), &file[..file.len() / 2]).unwrap();
    assert_eq!(run(folder, "blur half.png o.png").0, 4);
    let mut broken = file.clone();
    let middle = broken.len() / 2;
    broken[middle] ^= 1;
    fs::write(folder.join("broken.png"), broken).unwrap();
    let (code, stderr) = run(folder, "blur broken.png o.png");
    assert!(code == 4 && !stderr.contains("ChunkType"), "{stderr}");
    let mut unknown = b"\x89PNG\r\n\x1a\n".to_vec();
    unknown.extend(&file[8..33]);
    unknown.extend(png_chunk(b"ABCD", &[]));
    fs::write(folder.join("unknown.png"), unknown).unwrap();
    let (code, stderr) = run(folder, "blur unknown.png o.png");
    assert!(code == 4 && stderr.contains("ABCD") && !stderr.contains("{"), "{stderr}");
}
