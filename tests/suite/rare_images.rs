//! Images in legal forms that few programs write: pixels, channels and metadata are those that the format defines.

use std::{fs, path::Path};

use gpuproc::{
    data::samples::Samples,
    jpeg::{self, ColourModel, Component, Frame, Picture, SparseCoefficients},
};

use crate::{
    common::{run, works},
    inputs::{load_image, png_chunk, zlib},
    tiff_files::{TiffPage, tiff},
};

/// Copies `input` to `output` by the program. Returns the messages.
fn copy(folder: &Path, input: &str, output: &str) -> String {
    works(folder, &format!("blur {input} {output} --sigma 0"))
}

/// A PNG file of one 8-bit pixel, grey or RGB, with these chunks before it.
fn png(channels: usize, chunks: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
    let colour = if channels == 1 { 0 } else { 2 };
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    file.extend(png_chunk(b"IHDR", &[0, 0, 0, 1, 0, 0, 0, 1, 8, colour, 0, 0, 0]));
    chunks.iter().for_each(|(name, data)| file.extend(png_chunk(name, data)));
    file.extend(png_chunk(b"IDAT", &zlib(&[0, 7, 8, 9][..=channels])));
    file.extend(png_chunk(b"IEND", &[]));
    file
}

/// A JPEG file of one grey pixel with a metadata segment.
fn jpeg_with(segment: (u8, Vec<u8>)) -> Vec<u8> {
    let steps = [1; 64];
    let components = vec![Component { sampling: [1, 1], steps }];
    let frame = Frame { size: [1, 1], colour: ColourModel::Grey, components };
    jpeg::encode(&frame, Picture::Pixels(&[7]), &[segment], false).unwrap()
}

/// A palette is grey only if all three parts of every colour are equal.
#[test]
fn palettes_of_bmp_are_grey_or_coloured() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (bits, is_core) in [1u16, 4, 8].into_iter().flat_map(|bits| [(bits, false), (bits, true)]) {
        for unlike in [None, Some(0), Some(1), Some(2)] {
            // Entries are blue, green, red.
            let colour = |entry: usize| {
                let mut colour = [(entry * 255 / ((1 << bits) - 1)) as u8; 3];
                if let Some(part) = unlike {
                    colour[part] = !colour[part];
                }
                colour
            };
            let end = if is_core { &[][..] } else { &[0] };
            let entries: Vec<u8> =
                (0..1 << bits).flat_map(|entry| [&colour(entry), end].concat()).collect();
            let header = if is_core {
                [&12u32.to_le_bytes()[..], &[2, 1, 1, bits].map(u16::to_le_bytes).concat()].concat()
            } else {
                let numbers = [40, 2, 1, 1 | u32::from(bits) << 16];
                [numbers.map(u32::to_le_bytes).concat(), vec![0; 24]].concat()
            };
            // The first pixel is entry 1, the second 0.
            let row = [1 << (8 - bits), 0, 0, 0];
            let start = 14 + header.len() + entries.len();
            let first = [(start + 4) as u32, 0, start as u32].map(u32::to_le_bytes).concat();
            let file = [&b"BM"[..], &first, &header, &entries, &row].concat();
            fs::write(folder.join("in.bmp"), file).unwrap();
            copy(folder, "in.bmp", "o.png");
            let image = load_image(folder.join("o.png"));
            let expected: Vec<u8> = match unlike {
                None => [colour(1)[0], colour(0)[0]].to_vec(),
                Some(_) => [colour(1), colour(0)].iter().flat_map(|c| [c[2], c[1], c[0]]).collect(),
            };
            assert_eq!(image.samples, Samples::U8(expected), "{bits} bits, {unlike:?}");
        }
    }
}

#[test]
fn bytes_after_the_pixels_of_pfm_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (start, len) in [("Pf\n2 1\n-1\n", 8), ("Pf\n2 1\n1\n", 8), ("PF\n1 3\n-1\n", 36)] {
        for surplus in [0, 1, 4, 5] {
            let file = [start.as_bytes(), &vec![0; len + surplus]].concat();
            fs::write(folder.join("in.pfm"), file).unwrap();
            let stderr = copy(folder, "in.pfm", "o.pfm");
            let message = format!("{surplus} bytes after the pixels are left out");
            assert_eq!(stderr.contains(&message), surplus > 0, "{start:?}: {stderr}");
            assert_eq!(stderr.is_empty(), surplus == 0, "{start:?}: {stderr}");
            let (code, _) = run(folder, "blur in.pfm o.pfm --sigma 0 --strict");
            assert_eq!(code, if surplus > 0 { 4 } else { 0 }, "{start:?}, {surplus}");
        }
    }
}

/// Comments of several lines, whatever ends the lines, do not reach into the pixels.
#[test]
fn pnm_comments_have_lines_of_every_kind() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (channels, output) in [(1, "o.pgm"), (3, "o.ppm")] {
        for end in ["\n", "\r", "\r\n", "\r\r"] {
            let chunk = format!("Comment\0one{end}9 9{end}").into_bytes();
            fs::write(folder.join("in.png"), png(channels, &[(b"tEXt", chunk)])).unwrap();
            copy(folder, "in.png", output);
            let image = load_image(folder.join(output));
            let expected = Samples::U8([7, 8, 9][..channels].to_vec());
            assert_eq!((image.width, image.height), (1, 1), "{end:?}, {output}");
            assert_eq!(image.samples, expected, "{end:?}, {output}");
        }
    }
}

/// Comments before, between and after frames with palettes of every length.
#[test]
fn gif_comments_are_found_behind_every_palette() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let palette = |flags: u8| vec![50; if flags & 128 == 0 { 0 } else { 6 << (flags & 7) }];
    for global in [0x80, 0x87] {
        for local in [0, 0x80, 0x84, 0x87, 0x47] {
            let comment = |number: u8| [0x21, 0xfe, 2, b'c', b'0' + number, 0];
            let mut file = [&b"GIF89a\x01\0\x01\0"[..], &[global, 0, 0], &palette(global)].concat();
            for number in 0..2 {
                file.extend(comment(number));
                file.extend([0x2c, 0, 0, 0, 0, 1, 0, 1, 0, local]);
                file.extend(palette(local));
                // Codes of 3 bits: clear, entry 0, end.
                file.extend([2, 2, 0x44, 1, 0]);
            }
            file.extend(comment(2));
            file.push(0x3b);
            fs::write(folder.join("in.gif"), file).unwrap();
            works(folder, "blur in.gif o.png --sigma 0 --page 1");
            let texts = load_image(folder.join("o.png")).metadata.texts;
            let texts: Vec<&str> = texts.iter().map(|text| &text.text[..]).collect();
            assert_eq!(texts, ["c0", "c1", "c2"], "{global:x} {local:x}");
        }
    }
}

/// A colour profile replaces the chunks gAMA and cHRM, but not cICP, which precedes it (PNG, third edition, 4.3).
#[test]
fn lost_colour_chunks_of_png_are_reported_unless_a_profile_replaces_them() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut icc = vec![0; 132];
    icc[16..20].copy_from_slice(b"RGB ");
    icc[36..40].copy_from_slice(b"acsp");
    let profile = [&b"p\0\0"[..], &zlib(&icc)].concat();
    let numbers = |values: &[u32]| values.iter().flat_map(|v| v.to_be_bytes()).collect::<Vec<u8>>();
    for (name, data, counts_alone, counts_beside) in [
        (b"cICP", vec![9, 16, 0, 1], true, true),
        (b"cICP", vec![1, 13, 0, 1], false, false),
        (b"gAMA", numbers(&[100_000]), true, false),
        (b"gAMA", numbers(&[45_455]), false, false),
        (
            b"cHRM",
            numbers(&[31_270, 32_900, 70_800, 29_200, 17_000, 79_700, 13_100, 4600]),
            true,
            false,
        ),
        (b"sRGB", vec![0], false, false),
    ] {
        for has_profile in [false, true] {
            let mut chunks = vec![(name, data.clone())];
            if has_profile {
                chunks.push((b"iCCP", profile.clone()));
            }
            fs::write(folder.join("in.png"), png(3, &chunks)).unwrap();
            assert_eq!(copy(folder, "in.png", "o.png"), "");
            for output in ["o.jpg", "o.tif"] {
                let stderr = copy(folder, "in.png", output);
                let is_reported = stderr.contains("colour chunks of PNG");
                let counts = if has_profile { counts_beside } else { counts_alone };
                let name = String::from_utf8_lossy(name);
                assert_eq!(is_reported, counts, "{name} {has_profile} {output}: {stderr}");
            }
        }
    }
}

/// IPTC is found behind other resources, whose names and data are padded to even lengths.
#[test]
fn iptc_is_found_behind_resources_of_every_length() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let resource = |number: [u8; 2], name: usize, data: &[u8]| {
        let name = [&[name as u8][..], &vec![b'n'; name], &vec![0; (name + 1) % 2]].concat();
        let len = (data.len() as u32).to_be_bytes();
        [b"8BIM", &number[..], &name, &len, data, &vec![0; data.len() % 2]].concat()
    };
    for (name, len) in (0..4).flat_map(|name| (0..4).map(move |len| (name, len))) {
        let iptc = [&b"\x1c\x02\x78\0"[..], &[len as u8], &vec![b'x'; len]].concat();
        let others = resource([3, 237], name, &vec![9; len]);
        let all = [b"Photoshop 3.0\0", &others[..], &resource([4, 4], name, &iptc)].concat();
        fs::write(folder.join("in.jpg"), jpeg_with((0xed, all))).unwrap();
        let output = if len % 2 == 0 { "o.jpg" } else { "o.tif" };
        copy(folder, "in.jpg", output);
        let found = load_image(folder.join(output)).metadata.iptc;
        assert_eq!(found.as_ref(), Some(&iptc), "{output}: name {name}, data {len}");
    }
}

/// The directory of interoperability, two levels below the first, is kept by every format that has EXIF.
#[test]
fn exif_is_kept_with_the_directories_below() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let directory = |tag: u16, kind: u16, count: u32, value: [u8; 4]| {
        let start = [1, tag, kind].map(u16::to_le_bytes).concat();
        [&start[..], &count.to_le_bytes(), &value, &[0; 4]].concat()
    };
    // The directory of EXIF at `at`, followed by that of interoperability.
    let below = |at: u32| {
        let pointer = directory(40965, 4, 1, (at + 18).to_le_bytes());
        [pointer, directory(1, 2, 4, *b"R98\0")].concat()
    };
    let block = [b"II*\0\x08\0\0\0", &directory(34665, 4, 1, 26u32.to_le_bytes())[..]].concat();
    let block = [block, below(26)].concat();
    let page = |at: u32| tiff(&[TiffPage::flat([1, 1], 7).longs(34665, [at])]);
    let at = page(0).len() as u32;
    let tiff = [page(at), below(at)].concat();
    for (input, file) in [
        ("in.png", png(1, &[(b"eXIf", block.clone())])),
        ("in.jpg", jpeg_with((0xe1, [b"Exif\0\0", &block[..]].concat()))),
        ("in.tif", tiff),
    ] {
        fs::write(folder.join(input), file).unwrap();
        for output in ["o.png", "o.jpg", "o.tif", "o.webp"] {
            assert_eq!(copy(folder, input, output), "", "{input} {output}");
            let file = fs::read(folder.join(output)).unwrap();
            assert!(file.windows(3).any(|text| text == b"R98"), "{input} {output}");
        }
    }
}

/// Chroma of at most two samples across is repeated, that of more is interpolated, as libjpeg does.
#[test]
fn chroma_of_narrow_jpeg_pictures_is_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (down, width) in [1, 2].into_iter().flat_map(|down| (1..=8).map(move |w| (down, w))) {
        let component = |sampling| Component { sampling, steps: [1; 64] };
        let components = vec![component([2, down]), component([1, 1]), component([1, 1])];
        let frame = Frame { size: [width, 1], colour: ColourModel::YCbCr, components };
        // Luma is 0; chroma, in the last two blocks, falls from left to right.
        let mut picture = SparseCoefficients::zeros(&frame, 0).unwrap();
        let mut blocks = vec![[0i16; 64]; picture.blocks.len()];
        blocks.iter_mut().rev().take(2).for_each(|block| block[1] = 400);
        picture.set(0, &blocks).unwrap();
        let file = jpeg::encode(&frame, Picture::Coefficients(&picture), &[], false).unwrap();
        fs::write(folder.join("in.jpg"), file).unwrap();
        copy(folder, "in.jpg", "o.ppm");
        let file = fs::read(folder.join("o.ppm")).unwrap();
        let pixels = file[file.len() - 3 * width..].as_chunks::<3>().0;
        let is_repeated = pixels.chunks(2).all(|pair| pair.iter().all(|pixel| *pixel == pair[0]));
        assert_eq!(is_repeated, width <= 4, "{width} {down}: {pixels:?}");
    }
}

/// Restart markers count from 0 to 7, again and again.
#[test]
fn large_jpeg_pictures_restart_their_markers() {
    let component = Component { sampling: [1, 1], steps: [1; 64] };
    let size = [88, 65_000];
    let frame = Frame { size, colour: ColourModel::Grey, components: vec![component] };
    let picture = SparseCoefficients::zeros(&frame, 0).unwrap();
    let file = jpeg::encode(&frame, Picture::Coefficients(&picture), &[], false).unwrap();
    let is_restart = |two: &&[u8]| two[0] == 0xff && matches!(two[1], 0xd0..=0xd8);
    let markers: Vec<u8> =
        file[2..].windows(2).filter(is_restart).map(|two| two[1] - 0xd0).collect();
    let expected: Vec<u8> = (0..8).cycle().take(markers.len()).collect();
    assert!(markers.len() > 8 && markers == expected, "{markers:?}");
}
