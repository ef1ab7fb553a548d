//! Old-style JPEG in TIFF (compression 6; TIFF 6.0, section 22): a whole stream, or tables in tags and coded data in
//! strips, with chroma of every resolution.

use std::fs;

use gpuproc::data::{image::Image, samples::Samples};

use crate::{
    common::{Noise, decode_jpeg, works},
    inputs::load_image,
};

/// Steps of quantization, 8 for luma and 16 for chroma.
fn steps(component: usize) -> Vec<u8> {
    vec![if component == 0 { 8 } else { 16 }; 64]
}

/// Numbers of codes of each length, and their values: categories 0 to 11 of DC in 4 bits, or the end of a block in 1 bit.
fn codes(is_dc: bool) -> Vec<u8> {
    let (length, values) = if is_dc { (4, (0..12).collect()) } else { (1, vec![0u8]) };
    let mut table = vec![0; 16];
    table[length - 1] = values.len() as u8;
    [table, values].concat()
}

/// Coded data of blocks of one value each, in MCUs that have `sampling` blocks of the first component.
fn coded(size: [usize; 2], channels: usize, [across, down]: [usize; 2], seed: u64) -> Vec<u8> {
    let mut noise = Noise(seed);
    let mut bits = String::new();
    let mut before = vec![0i32; channels];
    let mcus = size[0].div_ceil(8 * across) * size[1].div_ceil(8 * down);
    for _ in 0..mcus {
        for (component, before) in before.iter_mut().enumerate() {
            for _ in 0..if component == 0 { across * down } else { 1 } {
                // Means of -100 to 99, times 8, divided by the step.
                let value =
                    ((noise.unit() * 200.0) as i32 - 100) / if component == 0 { 1 } else { 2 };
                let difference = value - *before;
                *before = value;
                let length = (32 - difference.unsigned_abs().leading_zeros()) as usize;
                let number =
                    if difference < 0 { difference - 1 } else { difference } & ((1 << length) - 1);
                bits += &format!("{length:04b}");
                if length > 0 {
                    bits += &format!("{number:0length$b}");
                }
                bits += "0";
            }
        }
    }
    bits += &"1".repeat(bits.len().next_multiple_of(8) - bits.len());
    let bytes = bits.as_bytes().chunks(8);
    bytes
        .map(|byte| byte.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit == b'1')))
        .flat_map(|byte| if byte == 0xff { vec![0xff, 0] } else { vec![byte] })
        .collect()
}

/// A stream of coded data.
fn stream(
    [width, height]: [usize; 2],
    channels: usize,
    [across, down]: [usize; 2],
    data: &[u8],
) -> Vec<u8> {
    let segment = |marker: u8, body: &[u8]| {
        [&[0xff, marker], &(body.len() as u16 + 2).to_be_bytes()[..], body].concat()
    };
    let mut frame = vec![8];
    frame.extend([height as u16, width as u16].map(u16::to_be_bytes).concat());
    frame.push(channels as u8);
    let mut scan = vec![channels as u8];
    for component in 0..channels {
        let sampling = if component == 0 { across << 4 | down } else { 0x11 };
        frame.extend([component as u8 + 1, sampling as u8, u8::from(component > 0)]);
        scan.extend([component as u8 + 1, 0]);
    }
    scan.extend([0, 63, 0]);
    [
        vec![0xff, 0xd8],
        segment(0xdb, &[&[0], &steps(0)[..]].concat()),
        segment(0xdb, &[&[1], &steps(1)[..]].concat()),
        segment(0xc4, &[&[0], &codes(true)[..]].concat()),
        segment(0xc4, &[&[0x10], &codes(false)[..]].concat()),
        segment(0xc0, &frame),
        segment(0xda, &scan),
        data.to_vec(),
        vec![0xff, 0xd9],
    ]
    .concat()
}

/// A file of one page with these tags, all of LONG, whose values at the offsets `blocks` are known.
fn tiff(tags: &[(u16, Vec<u32>)], blocks: &[u8]) -> Vec<u8> {
    let mut file = b"II*\0\0\0\0\0".to_vec();
    file.extend(blocks);
    file.resize(file.len().next_multiple_of(2), 0);
    let mut entries = (tags.len() as u16).to_le_bytes().to_vec();
    for (tag, values) in tags {
        entries.extend([tag.to_le_bytes(), 4u16.to_le_bytes()].concat());
        entries.extend((values.len() as u32).to_le_bytes());
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        if bytes.len() > 4 {
            entries.extend((file.len() as u32).to_le_bytes());
            file.extend(bytes);
        } else {
            entries.extend(bytes);
        }
    }
    entries.extend([0; 4]);
    let directory = (file.len() as u32).to_le_bytes();
    file[4..8].copy_from_slice(&directory);
    [file, entries].concat()
}

fn samples(stream: &[u8]) -> Vec<u8> {
    let (Image { samples: Samples::U8(samples), .. }, None) = decode_jpeg(stream).unwrap() else {
        panic!("not a sound picture");
    };
    samples
}

#[test]
fn chroma_of_every_resolution_is_decoded_from_strips_and_streams() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.tif");
    let (width, rows, strips) = (45usize, 16usize, 2usize);
    for (channels, sampling) in
        [(1, [1, 1]), (3, [1, 1]), (3, [2, 1]), (3, [1, 2]), (3, [2, 2]), (3, [4, 1])]
    {
        let case = format!("{channels} channels, {sampling:?}");
        let data: Vec<Vec<u8>> = (1..=strips)
            .map(|seed| coded([width, rows], channels, sampling, seed as u64))
            .collect();
        let streams = data.iter().map(|data| stream([width, rows], channels, sampling, data));
        let streams: Vec<Vec<u8>> = streams.collect();
        // Tables of each component, then the strips.
        let mut blocks = Vec::new();
        let mut place = |bytes: &[u8]| {
            let at = 8 + blocks.len() as u32;
            blocks.extend(bytes);
            at
        };
        let [mut q_tables, mut dc_tables, mut ac_tables] = [const { Vec::new() }; 3];
        for component in 0..channels {
            q_tables.push(place(&steps(component)));
            dc_tables.push(place(&codes(true)));
            ac_tables.push(place(&codes(false)));
        }
        let offsets: Vec<u32> = data.iter().map(|data| place(data)).collect();
        let lengths: Vec<u32> = data.iter().map(|data| data.len() as u32).collect();
        let subsampling = (530, sampling.map(|side| side as u32).to_vec());
        let basic = |height: usize| {
            vec![
                (256, vec![width as u32]),
                (257, vec![height as u32]),
                (258, vec![8; channels]),
                (259, vec![6]),
                (262, vec![if channels == 1 { 1 } else { 6 }]),
            ]
        };
        let mut tags = basic(strips * rows);
        tags.extend([
            (273, offsets),
            (277, vec![channels as u32]),
            (278, vec![rows as u32]),
            (279, lengths),
            (512, vec![1]),
            (519, q_tables),
            (520, dc_tables),
            (521, ac_tables),
            subsampling.clone(),
        ]);
        fs::write(&path, tiff(&tags, &blocks)).unwrap();
        let image = load_image(&path);
        let size = [image.width, image.height];
        assert_eq!((size, image.channels), ([width, strips * rows], channels), "{case}");
        let expected: Vec<u8> = streams.iter().flat_map(|stream| samples(stream)).collect();
        assert!(image.samples == Samples::U8(expected), "{case}: tables in tags");
        assert_eq!(works(folder.path(), "blur in.tif o.png --sigma 0 --strict"), "", "{case}");
        // A whole stream, also where its stated length is that of a part, or missing.
        let whole = &streams[0];
        for length in [Some(whole.len()), Some(40), None] {
            let mut tags = basic(rows);
            tags.extend([(277, vec![channels as u32]), (278, vec![rows as u32]), (512, vec![1])]);
            tags.push((513, vec![8]));
            tags.extend(length.map(|length| (514, vec![length as u32])));
            tags.push(subsampling.clone());
            // Other bytes follow the stream.
            fs::write(&path, tiff(&tags, whole)).unwrap();
            let found = load_image(&path).samples;
            assert!(found == Samples::U8(samples(whole)), "{case}: stream of {length:?} bytes");
        }
    }
}
