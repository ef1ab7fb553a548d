//! Rare variants of JPEG, BMP, OpenEXR and WebP.

use std::{fs, io::Cursor, path::Path};

use exr::{
    image::{AnyChannel, AnyChannels, FlatSamples, Image as ExrImage, Layer},
    prelude::{Encoding, LayerAttributes, Text, WritableImage},
};
use gpuproc::{
    data::{dtype::Dtype, image::Image, samples::Samples},
    jpeg::{Frame, Quality},
};

use crate::{
    asserts::{assert_contains, assert_near},
    common::{Noise, encode_jpeg, info_json, run, works},
    inputs::load_image,
};

fn noise(count: usize, seed: u64) -> Vec<u8> {
    let mut noise = Noise(seed);
    (0..count).map(|_| (noise.next() >> 8) as u8).collect()
}

/// The file without its segments of marker 0xff `marker`.
fn without_segments(file: &[u8], marker: u8) -> Vec<u8> {
    let (mut kept, mut at) = (file[..2].to_vec(), 2);
    while file[at + 1] != 0xda {
        let end = at + 2 + usize::from(u16::from_be_bytes([file[at + 2], file[at + 3]]));
        if file[at + 1] != marker {
            kept.extend(&file[at..end]);
        }
        at = end;
    }
    kept.extend(&file[at..]);
    kept
}

/// Frames of Motion JPEG lack the tables of the standard.
#[test]
fn jpeg_without_huffman_tables_has_those_of_the_standard() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for channels in [1, 3] {
        let frame = Frame::for_pixels([40, 24], channels, Quality(70), true);
        let whole = encode_jpeg(&frame, &noise(40 * 24 * channels, 5), false);
        let bare = without_segments(&whole, 0xc4);
        assert!(bare.len() + 30 < whole.len());
        fs::write(path("whole.jpg"), &whole).unwrap();
        fs::write(path("bare.jpg"), &bare).unwrap();
        assert!(load_image(path("bare.jpg")) == load_image(path("whole.jpg")), "{channels}");
        assert_eq!(works(folder.path(), "blur bare.jpg o.png --strict"), "");
        // Other tables are needed.
        let optimal = encode_jpeg(&frame, &noise(40 * 24 * channels, 5), true);
        let mut progressive = without_segments(&optimal, 0xc4);
        let frame_header = progressive.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
        progressive[frame_header + 1] = 0xc2;
        fs::write(path("bad.jpg"), &progressive).unwrap();
        assert_eq!(run(folder.path(), "blur bad.jpg o.png").0, 4);
    }
}

#[test]
fn stray_bytes_after_the_first_marker_of_jpeg_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let frame = Frame::for_pixels([20, 10], 3, Quality(90), false);
    let whole = encode_jpeg(&frame, &noise(600, 6), false);
    fs::write(path("whole.jpg"), &whole).unwrap();
    let junk = [&whole[..2], &[0, 1, 2], &whole[2..]].concat();
    fs::write(path("junk.jpg"), junk).unwrap();
    let stderr = works(folder.path(), "blur junk.jpg o.png --sigma 0");
    assert_contains(&stderr, "junk.jpg: 3 stray bytes before markers are skipped");
    assert_eq!(load_image(path("o.png")).samples, load_image(path("whole.jpg")).samples);
    assert_eq!(run(folder.path(), "blur junk.jpg o.png --strict").0, 4);
    // Coding that is not supported is named.
    let mut arithmetic = whole;
    let header = arithmetic.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    arithmetic[header + 1] = 0xc9;
    fs::write(path("arithmetic.jpg"), arithmetic).unwrap();
    let (code, stderr) = run(folder.path(), "blur arithmetic.jpg o.png");
    assert!(code == 4 && stderr.contains("arithmetic-coded JPEG is not supported"), "{stderr}");
}

/// Writer of entropy-coded bits: the highest bit first, with a 0 after each 0xff.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    byte: u32,
    count: u32,
}

impl Bits {
    fn push(&mut self, bits: u32, count: u32) {
        for i in (0..count).rev() {
            self.byte = self.byte << 1 | bits >> i & 1;
            self.count += 1;
            if self.count == 8 {
                self.bytes.push(self.byte as u8);
                if self.byte == 0xff {
                    self.bytes.push(0);
                }
                (self.byte, self.count) = (0, 0);
            }
        }
    }

    /// Appends a difference: its category in 5 bits, and its magnitude.
    fn push_difference(&mut self, difference: i32) {
        let size = 32 - difference.unsigned_abs().leading_zeros();
        self.push(size, 5);
        let bits = if difference < 0 { difference - 1 } else { difference };
        if size < 16 {
            self.push(bits as u32 & ((1 << size) - 1), size);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.push(0x7f, (8 - self.count) % 8);
        self.bytes
    }
}

/// A JPEG file with one scan. DC table 0 codes categories 0 to 16 in 5 bits, AC table 0 the end of a block in 1 bit.
fn jpeg_file(
    sof: u8,
    precision: u8,
    [width, height]: [u16; 2],
    channels: u8,
    [start, end]: [u8; 2],
    data: &[u8],
) -> Vec<u8> {
    let segment = |marker: u8, body: &[u8]| {
        [&[0xff, marker], &(body.len() as u16 + 2).to_be_bytes()[..], body].concat()
    };
    let mut dc = vec![0; 17];
    dc[5] = 17;
    dc.extend(0..17);
    let mut ac = vec![0x10, 1];
    ac.resize(17, 0);
    ac.push(0);
    let mut frame = vec![precision];
    frame.extend([height, width].map(u16::to_be_bytes).concat());
    frame.push(channels);
    let mut scan = vec![channels];
    for id in 1..=channels {
        frame.extend([id, 0x11, 0]);
        scan.extend([id, 0]);
    }
    scan.extend([start, end, 0]);
    let mut steps = vec![0];
    steps.resize(65, 8);
    [
        vec![0xff, 0xd8],
        segment(0xdb, &steps),
        segment(0xc4, &dc),
        segment(0xc4, &ac),
        segment(sof, &frame),
        segment(0xda, &scan),
        data.to_vec(),
        vec![0xff, 0xd9],
    ]
    .concat()
}

/// Every predictor and precision, grey and RGB. The largest value of the precision becomes full intensity.
#[test]
fn lossless_jpeg_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.jpg");
    let size @ [width, height] = [9usize, 7];
    for (precision, predictor, channels) in
        (2..=16u8).flat_map(|p| [(p, 1 + p % 7, 1), (p, 1 + (p + 3) % 7, 3usize)])
    {
        let max = (1i32 << precision) - 1;
        let mut random = Noise(u64::from(precision) + 1);
        let values: Vec<i32> =
            (0..width * height * channels).map(|_| (random.next() >> 8) as i32 & max).collect();
        let mut bits = Bits::default();
        for (i, &value) in values.iter().enumerate() {
            let (x, y) = (i / channels % width, i / channels / width);
            let left = || values[i - channels];
            let above = || values[i - channels * width];
            let corner = || values[i - channels * width - channels];
            let predicted = match (x, y, predictor) {
                (0, 0, _) => 1 << (precision - 1),
                (_, 0, _) => left(),
                (0, ..) => above(),
                (.., 1) => left(),
                (.., 2) => above(),
                (.., 3) => corner(),
                (.., 4) => left() + above() - corner(),
                (.., 5) => left() + ((above() - corner()) >> 1),
                (.., 6) => above() + ((left() - corner()) >> 1),
                _ => (left() + above()) >> 1,
            };
            let difference = (value - predicted) as i16;
            // 32768 is coded without further bits, and stands for both signs.
            bits.push_difference(i32::from(difference));
        }
        let file = jpeg_file(
            0xc3,
            precision,
            size.map(|side| side as u16),
            channels as u8,
            [predictor, 0],
            &bits.finish(),
        );
        fs::write(&path, file).unwrap();
        let full = if precision > 8 { 65_535 } else { 255 };
        let scaled =
            |v: &i32| ((i64::from(*v) * full + i64::from(max / 2)) / i64::from(max)) as u16;
        let expected: Vec<u16> = values.iter().map(scaled).collect();
        let image = load_image(&path);
        assert_eq!(image.channels, channels);
        let found = match image.samples {
            Samples::U8(found) if precision <= 8 => found.into_iter().map(u16::from).collect(),
            Samples::U16(found) if precision > 8 => found,
            other => panic!("{:?}", other.dtype()),
        };
        assert!(found == expected, "{precision} bits, predictor {predictor}, {channels} channels");
    }
    // The last file has 16 bits.
    let shown = info_json(folder.path(), "in.jpg").to_vec();
    assert_eq!(shown[0]["type"], "u16", "{shown:?}");
    let folder = folder.path();
    for line in [
        "histogram in.jpg -o h.csv",
        "blur in.jpg o.png --sigma 1",
        "threshold in.jpg m.png -T 30000",
    ] {
        assert_eq!(works(folder, line), "", "{line}");
    }
    // A file that is cut off is an error.
    let file = fs::read(&path).unwrap();
    fs::write(&path, &file[..file.len() - 40]).unwrap();
    assert_eq!(run(folder, "blur in.jpg o.png").0, 4);
}

#[test]
fn grey_jpeg_of_12_bits_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.jpg");
    let mut bits = Bits::default();
    // Two blocks of one value each: the mean times 8, divided by the step 8.
    let values = [100, 4000];
    let mut before = 2048;
    for value in values {
        bits.push_difference(value - before);
        bits.push(0, 1);
        before = value;
    }
    fs::write(&path, jpeg_file(0xc1, 12, [16, 8], 1, [0, 63], &bits.finish())).unwrap();
    let image = load_image(&path);
    let Samples::U16(samples) = &image.samples else { panic!("{:?}", image.samples.dtype()) };
    let expected = values.map(|v| ((v * 65_535 + 2047) / 4095) as u16);
    assert_eq!([samples[0], samples[15]], expected);
    // Inks of 12 bits are refused by name.
    fs::write(&path, jpeg_file(0xc1, 12, [16, 8], 4, [0, 63], &[0; 9])).unwrap();
    let (code, stderr) = run(folder.path(), "blur in.jpg o.png");
    assert!(code == 4 && stderr.contains("12-bit JPEG of Cmyk components"), "{stderr}");
}

/// A BMP file of 5 x 3 pixels with an information header of `len` bytes. Rows are stored from the bottom.
fn bmp(len: usize, bits: u16, grey: bool) -> (Vec<u8>, Vec<u8>) {
    let (width, height) = (5usize, 3usize);
    let entry = if len == 12 { 3 } else { 4 };
    let colours = if bits > 8 { 0 } else { 1usize << bits };
    let colour = |i: usize| match grey {
        true => [(i * 255 / colours.max(2)) as u8; 3],
        false => [(i * 31) as u8, (i * 7 + 3) as u8, 255 - i as u8],
    };
    let index = |x: usize, y: usize| (x * 3 + y * 5 + 1) % colours.max(1);
    let pixels_at = 14 + len + colours * entry;
    let mut file = b"BM".to_vec();
    file.extend([[0; 4], [0; 4], (pixels_at as u32).to_le_bytes()].concat());
    let mut header = (len as u32).to_le_bytes().to_vec();
    if len == 12 {
        header.extend([width as u16, height as u16, 1, bits].map(u16::to_le_bytes).concat());
    } else {
        header.extend([width as u32, height as u32].map(u32::to_le_bytes).concat());
        header.extend([1, bits].map(u16::to_le_bytes).concat());
        // No compression, 4000 pixels per metre; the fields of OS/2 that follow are not 0.
        header.extend([0, 0, 4000, 4000, 0, 0].map(u32::to_le_bytes).concat());
        header.resize(len.max(40), 7);
        header.truncate(len);
    }
    file.extend(header);
    for i in 0..colours {
        let [r, g, b] = colour(i);
        file.extend(&[b, g, r, 0][..entry]);
    }
    for y in (0..height).rev() {
        let mut row = Vec::new();
        let (mut byte, mut used) = (0u32, 0);
        for x in 0..width {
            if bits == 24 {
                row.extend([(x * 40) as u8, (y * 60) as u8, (x * y) as u8]);
                continue;
            }
            byte = byte << bits | index(x, y) as u32;
            used += bits;
            if used == 8 {
                row.push(byte as u8);
                (byte, used) = (0, 0);
            }
        }
        if used > 0 {
            row.push((byte << (8 - used)) as u8);
        }
        row.resize(row.len().next_multiple_of(4), 0);
        file.extend(row);
    }
    let mut expected = Vec::new();
    for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
        match (bits, grey) {
            (24, _) => expected.extend([(x * y) as u8, (y * 60) as u8, (x * 40) as u8]),
            (_, true) => expected.push(colour(index(x, y))[0]),
            _ => expected.extend(colour(index(x, y))),
        }
    }
    (file, expected)
}

/// Headers of Windows and of OS/2 1.x (12 bytes) and 2.x (16 to 64 bytes).
#[test]
fn bmp_with_every_header_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.bmp");
    for len in [12, 16, 24, 36, 40, 48, 64] {
        for (bits, grey) in
            [(1, false), (4, false), (8, false), (1, true), (4, true), (8, true), (24, false)]
        {
            let (file, expected) = bmp(len, bits, grey);
            fs::write(&path, file).unwrap();
            let image = load_image(&path);
            assert_eq!([image.width, image.height], [5, 3]);
            assert_eq!(image.samples, Samples::U8(expected), "{len} bytes, {bits} bits, {grey}");
            assert_eq!(image.metadata.density.is_some(), len >= 36, "{len}");
            assert_eq!(info_json(folder.path(), "in.bmp").len(), 1, "{len}");
        }
    }
    // Compression that only OS/2 knows is named.
    let (mut file, _) = bmp(64, 24, false);
    file[30] = 4;
    fs::write(&path, file).unwrap();
    let (code, stderr) = run(folder.path(), "blur in.bmp o.png");
    assert!(code == 4 && stderr.contains("RLE of 24 bits is not supported"), "{stderr}");
}

/// An OpenEXR file of 2 x 1 pixels with these channels; channel `i` has the values `i` and `i + 0.5`.
fn write_exr(path: &Path, names: &[&str]) {
    let channel = |(i, name): (usize, &&str)| {
        let values = vec![i as f32, i as f32 + 0.5];
        AnyChannel::new(*name, FlatSamples::F32(values))
    };
    let channels = AnyChannels::sort(names.iter().enumerate().map(channel).collect());
    let layer = Layer::new(
        (2, 1),
        LayerAttributes::named(Text::from("part")),
        Encoding::UNCOMPRESSED,
        channels,
    );
    let mut bytes = Cursor::new(Vec::new());
    ExrImage::from_layer(layer).write().to_buffered(&mut bytes).unwrap();
    fs::write(path, bytes.into_inner()).unwrap();
}

#[test]
fn exr_of_one_channel_or_of_named_layers_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.exr");
    for (names, expected, is_partial) in [
        (&["R"][..], &[0.0, 0.5][..], false),
        (&["Z"], &[0.0, 0.5], false),
        (&["diffuse.R", "diffuse.G", "diffuse.B"], &[0.0, 1.0, 2.0, 0.5, 1.5, 2.5], false),
        (
            &["Layer 1.A", "Layer 1.B", "Layer 1.G", "Layer 1.R"],
            &[3.0, 2.0, 1.0, 0.0, 3.5, 2.5, 1.5, 0.5],
            false,
        ),
        (&["a.Y", "a.A"], &[0.0, 1.0, 0.5, 1.5], false),
        (&["a.Y", "b.B", "b.G", "b.R"], &[3.0, 2.0, 1.0, 3.5, 2.5, 1.5], true),
        // Channels without a layer come first.
        (&["a.R", "a.G", "a.B", "Y"], &[3.0, 3.5], true),
    ] {
        write_exr(&path, names);
        let image = load_image(&path);
        assert_eq!(image.samples, Samples::F32(expected.to_vec()), "{names:?}");
        let stderr = works(folder.path(), "histogram in.exr -o h.csv");
        let loss = "other layers or channels are left out";
        assert_eq!(stderr.contains(loss), is_partial, "{names:?}: {stderr}");
        assert_eq!(info_json(folder.path(), "in.exr").len(), 1);
    }
    write_exr(&path, &["U", "V"]);
    let (code, stderr) = run(folder.path(), "blur in.exr o.png");
    assert!(code == 4 && stderr.contains("nor one named Y, but U, V"), "{stderr}");
    // The flag of deep data.
    let mut file = fs::read(&path).unwrap();
    file[5] |= 8;
    fs::write(&path, file).unwrap();
    let (code, stderr) = run(folder.path(), "blur in.exr o.png");
    assert!(code == 4 && stderr.contains("deep images (several samples per pixel)"), "{stderr}");
}

/// Every layout of channels, with and without loss, is read back.
#[test]
fn webp_of_every_layout_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (name, channels) in [("1", 1), ("2", 2), ("3", 3), ("4", 4)] {
        let (width, height) = (23, 17);
        let pixel = |x: usize, y: usize| {
            let colour = [(x * 9) as u8, (y * 13) as u8, (x * 4 + y * 5) as u8];
            let alpha = (255 - x * 8) as u8;
            match channels {
                1 => vec![colour[2]],
                2 => vec![colour[2], alpha],
                3 => colour.to_vec(),
                _ => [&colour[..], &[alpha]].concat(),
            }
        };
        let samples: Vec<u8> =
            (0..height).flat_map(|y| (0..width).flat_map(move |x| pixel(x, y))).collect();
        let kind = [
            ::image::ExtendedColorType::L8,
            ::image::ExtendedColorType::La8,
            ::image::ExtendedColorType::Rgb8,
            ::image::ExtendedColorType::Rgba8,
        ][channels - 1];
        let path = folder.join(format!("{name}.png"));
        ::image::save_buffer(path, &samples, width as u32, height as u32, kind).unwrap();
        for quality in ["", "--quality 60", "--quality 100"] {
            works(folder, &format!("blur {name}.png o.webp --sigma 0 --strict {quality}"));
            let Image { samples: found, channels: stored, .. } = load_image(folder.join("o.webp"));
            assert_eq!((found.dtype(), stored), (Dtype::U8, if channels % 2 == 0 { 4 } else { 3 }));
            let pairs = found.as_bytes().chunks_exact(stored).zip(samples.chunks_exact(channels));
            for (found, given) in pairs {
                let colours =
                    if channels < 3 { [given[0]; 3] } else { [given[0], given[1], given[2]] };
                let allowed = if quality.is_empty() { 0.5 } else { 60.0 };
                for (&found, given) in found.iter().zip(colours) {
                    assert_near(f64::from(found), f64::from(given), allowed);
                }
                if stored == 4 {
                    assert_eq!(found[3], given[channels - 1], "{name} {quality}");
                }
            }
        }
    }
}
