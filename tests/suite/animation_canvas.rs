//! Frames of GIF and APNG on their canvas: every way of blending and of disposal, in areas of any place, against a
//! canvas that is painted pixel by pixel.

use std::fs;

use gif::{DisposalMethod, Encoder, Frame as GifFrame};
use gpuproc::{data::image::Image, io::Source};

use crate::{
    common::Noise,
    inputs::{png_chunk, zlib},
    pages::pages,
};

const SIZE: [usize; 2] = [5, 4];

type Pixel = [u8; 4];

/// Disposal of a frame before the next one.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Disposal {
    Keep,
    Clear,
    Restore,
}
use Disposal::{Clear, Keep, Restore};

#[derive(Clone, Debug)]
struct Frame {
    origin: [usize; 2],
    size: [usize; 2],
    disposal: Disposal,
    /// Whether transparent pixels show what is below.
    blends: bool,
    pixels: Vec<Pixel>,
}

/// The canvas after each frame. Before the first frame, it is transparent.
fn painted(frames: &[Frame]) -> Vec<Vec<Pixel>> {
    let mut canvas = vec![[0; 4]; SIZE[0] * SIZE[1]];
    let mut shown = Vec::new();
    for frame in frames {
        let before = canvas.clone();
        let places = (0..frame.pixels.len()).map(|i| {
            let [x, y] = [i % frame.size[0] + frame.origin[0], i / frame.size[0] + frame.origin[1]];
            (i, y * SIZE[0] + x)
        });
        for (i, at) in places.clone() {
            let pixel = frame.pixels[i];
            if !frame.blends || pixel[3] == 255 {
                canvas[at] = pixel;
            }
        }
        shown.push(canvas.clone());
        for (_, at) in places {
            match frame.disposal {
                Keep => {}
                Clear => canvas[at] = [0; 4],
                Restore => canvas[at] = before[at],
            }
        }
    }
    shown
}

/// The pixels of an image as RGBA; colours of transparent pixels do not matter.
fn rgba(image: &Image) -> Vec<Pixel> {
    let pixel = |pixel: &[u8]| {
        let rgba = match *pixel {
            [grey] => [grey, grey, grey, 255],
            [grey, alpha] => [grey, grey, grey, alpha],
            [r, g, b] => [r, g, b, 255],
            [r, g, b, alpha] => [r, g, b, alpha],
            _ => unreachable!("one to four channels"),
        };
        if rgba[3] == 0 { [0; 4] } else { rgba }
    };
    image.samples.as_bytes().chunks(image.channels).map(pixel).collect()
}

/// Three frames with these disposals, in areas and with pixels by chance. The first covers the canvas if `covers` is set.
fn frames(noise: &mut Noise, disposals: [Disposal; 3], blends: bool, covers: bool) -> Vec<Frame> {
    let mut below = |max: usize| (noise.unit() * max as f64) as usize;
    let mut all = Vec::new();
    for (number, disposal) in disposals.into_iter().enumerate() {
        let mut size = [1 + below(SIZE[0]), 1 + below(SIZE[1])];
        if number == 0 && covers {
            size = SIZE;
        }
        let origin = [below(SIZE[0] - size[0] + 1), below(SIZE[1] - size[1] + 1)];
        let pixel = |_| match below(4) {
            0 => [0; 4],
            colour => [60 * colour as u8, 20 * number as u8, 9, 255],
        };
        let pixels = (0..size[0] * size[1]).map(pixel).collect();
        all.push(Frame { origin, size, disposal, blends, pixels });
    }
    all
}

fn all_disposals() -> impl Iterator<Item = [Disposal; 3]> {
    let kinds = [Keep, Clear, Restore];
    (0..27).map(move |i| [kinds[i % 3], kinds[i / 3 % 3], kinds[i / 9]])
}

/// A PNG of 8-bit RGBA. Operations of disposal: 0 none, 1 background, 2 previous; of blending: 0 source, 1 over.
fn apng(frames: &[Frame]) -> Vec<u8> {
    let word = |value: usize| (value as u32).to_be_bytes();
    let header = [&word(SIZE[0])[..], &word(SIZE[1]), &[8, 6, 0, 0, 0]].concat();
    let mut file = [&b"\x89PNG\r\n\x1a\n"[..], &png_chunk(b"IHDR", &header)].concat();
    file.extend(png_chunk(b"acTL", &[word(frames.len()), word(0)].concat()));
    let mut sequence = 0;
    let mut next = || {
        sequence += 1;
        word(sequence - 1)
    };
    for (number, frame) in frames.iter().enumerate() {
        let area =
            [frame.size, frame.origin].concat().into_iter().flat_map(word).collect::<Vec<u8>>();
        let operations = [frame.disposal as u8, u8::from(frame.blends)];
        let control = [&next()[..], &area, &[0, 1, 0, 10], &operations].concat();
        file.extend(png_chunk(b"fcTL", &control));
        let rows = frame.pixels.chunks(frame.size[0]);
        let data =
            zlib(&rows.flat_map(|row| [&[0], row.as_flattened()].concat()).collect::<Vec<u8>>());
        match number {
            0 => file.extend(png_chunk(b"IDAT", &data)),
            _ => file.extend(png_chunk(b"fdAT", &[&next()[..], &data].concat())),
        }
    }
    file.extend(png_chunk(b"IEND", &[]));
    file
}

fn gif(frames: &[Frame]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, SIZE[0] as u16, SIZE[1] as u16, &[]).unwrap();
    for frame in frames {
        // The palette has the colours in the order of their appearance; the first entry is transparent.
        let mut colours = vec![[0; 4]];
        let mut index = |pixel: &Pixel| {
            let known = colours.iter().position(|colour| colour == pixel);
            known.unwrap_or_else(|| {
                colours.push(*pixel);
                colours.len() - 1
            }) as u8
        };
        let buffer: Vec<u8> = frame.pixels.iter().map(&mut index).collect();
        let palette = colours.iter().flat_map(|colour| colour[..3].to_vec()).collect();
        let gif = GifFrame {
            left: frame.origin[0] as u16,
            top: frame.origin[1] as u16,
            width: frame.size[0] as u16,
            height: frame.size[1] as u16,
            dispose: match frame.disposal {
                Keep => DisposalMethod::Keep,
                Clear => DisposalMethod::Background,
                Restore => DisposalMethod::Previous,
            },
            transparent: Some(0),
            palette: Some(palette),
            buffer: buffer.into(),
            ..GifFrame::default()
        };
        encoder.write_frame(&gif).unwrap();
    }
    drop(encoder);
    file
}

#[test]
fn frames_are_blended_and_disposed_as_stated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in");
    let mut noise = Noise(12);
    for disposals in all_disposals() {
        for (blends, covers) in [(true, false), (true, true), (false, false), (false, true)] {
            let own = frames(&mut noise, disposals, blends, covers);
            let mut files = Vec::new();
            // The first frame of an APNG has the size of the canvas.
            if covers {
                files.push(("APNG", apng(&own)));
            }
            if blends {
                files.push(("GIF", gif(&own)));
            }
            for (name, file) in files {
                fs::write(&path, file).unwrap();
                let (images, _) = pages(&Source::from(path.clone()));
                let expected = painted(&own);
                assert_eq!(images.len(), 3, "{name}");
                for (number, (image, expected)) in images.iter().zip(&expected).enumerate() {
                    assert_eq!([image.width, image.height], SIZE);
                    assert!(rgba(image) == *expected, "{name}, frame {number} of {own:?}");
                }
            }
        }
    }
}
