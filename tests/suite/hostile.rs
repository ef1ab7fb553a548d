//! Files that claim more data than they contain, or that take much work to read: images, volumes and DICOM.

use std::{
    fs::{self, File},
    io::{Cursor, Write},
    path::Path,
};

use flate2::{
    Compression,
    write::{DeflateEncoder, GzEncoder, ZlibEncoder},
};
use image::{ImageFormat, RgbImage};

use crate::inputs::png_chunk;

/// Entries of a TIFF directory: tag, type, count, and value or offset.
type Entries = Vec<[u32; 4]>;

const SHORT: u32 = 3;
const LONG: u32 = 4;

/// `count` bytes of one value, compressed with zlib.
pub fn deflated(value: u8, count: usize) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    let block = vec![value; count.min(1 << 20)];
    for start in (0..count).step_by(block.len().max(1)) {
        encoder.write_all(&block[..block.len().min(count - start)]).unwrap();
    }
    encoder.finish().unwrap()
}

/// A TIFF directory whose successor is at `next`.
fn tiff_directory(entries: &Entries, next: u32) -> Vec<u8> {
    let mut bytes = (entries.len() as u16).to_le_bytes().to_vec();
    for &[tag, kind, count, value] in entries {
        bytes.extend([tag as u16, kind as u16].map(u16::to_le_bytes).concat());
        bytes.extend([count, value].map(u32::to_le_bytes).concat());
    }
    bytes.extend(next.to_le_bytes());
    bytes
}

/// Directory entries of a grey image of one strip.
fn grey_entries([width, height]: [u32; 2], compression: u32, [at, len]: [u32; 2]) -> Entries {
    vec![
        [256, LONG, 1, width],
        [257, LONG, 1, height],
        [258, SHORT, 1, 8],
        [259, SHORT, 1, compression],
        [262, SHORT, 1, 1],
        [273, LONG, 1, at],
        [277, SHORT, 1, 1],
        [278, LONG, 1, height],
        [279, LONG, 1, len],
    ]
}

/// A grey image of a claimed size in one uncompressed strip, of which the file contains 100 bytes.
fn tiff_strip(size: [u32; 2]) -> Vec<u8> {
    let at = TIFF.len() + tiff_directory(&grey_entries(size, 1, [0; 2]), 0).len();
    let len = u64::from(size[0]) * u64::from(size[1]);
    let len = u32::try_from(len).unwrap_or(u32::MAX);
    [TIFF, &tiff_directory(&grey_entries(size, 1, [at as u32, len]), 0), &[0; 100]].concat()
}

/// A TIFF whose one-pixel strips all claim the same 2 MiB.
fn tiff_with_overlapping_strips(strips: u32) -> Vec<u8> {
    let mut entries = grey_entries([1, strips], 1, [0, 0]);
    let table = (TIFF.len() + tiff_directory(&entries, 0).len()) as u32;
    entries[5] = [273, LONG, strips, table];
    entries[7] = [278, LONG, 1, 1];
    entries[8] = [279, LONG, strips, table + 4 * strips];
    let words = |word: u32| word.to_le_bytes().repeat(strips as usize);
    let tables = [words(table + 8 * strips), words(2 << 20)].concat();
    [TIFF, &tiff_directory(&entries, 0), &tables, &vec![7; 2 << 20]].concat()
}

const TIFF: &[u8] = b"II*\0\x08\0\0\0";

/// Pages that share one table of 20,000 strips.
fn tiff_with_shared_tables(pages: u32) -> Vec<u8> {
    const STRIPS: u32 = 20_000;
    let mut file = TIFF.to_vec();
    let len = tiff_directory(&grey_entries([1, 1], 1, [0, 0]), 0).len() as u32;
    let table = 8 + pages * len;
    for page in 0..pages {
        let mut entries = grey_entries([1, STRIPS], 1, [0, 0]);
        entries[5] = [273, LONG, STRIPS, table];
        entries[7] = [278, LONG, 1, 1];
        entries[8] = [279, LONG, STRIPS, table];
        let next = if page + 1 < pages { 8 + (page + 1) * len } else { 0 };
        file.extend(tiff_directory(&entries, next));
    }
    file.extend([8, 0, 0, 0].repeat(STRIPS as usize));
    file
}

/// Overlapping directories of tens of thousands of entries each. Their entry counts are adjacent, and the offset of the
/// next directory lies among the entries of others.
fn tiff_directory_chain(directories: u32) -> Vec<u8> {
    const ENTRIES: u32 = 30_000;
    let mut file = TIFF.to_vec();
    let picture = tiff_directory(&grey_entries([2, 2], 1, [0, 4]), 0);
    file.extend(&picture);
    let first = file.len() as u32;
    file[8 + picture.len() - 4..].copy_from_slice(&first.to_le_bytes());
    let next = |k: u32| (first + 2 * k + 2 + 12 * (ENTRIES + k)) as usize;
    file.resize(next(directories) + 4, 0);
    for k in 0..directories {
        let at = (first + 2 * k) as usize;
        file[at..at + 2].copy_from_slice(&((ENTRIES + k) as u16).to_le_bytes());
        let successor = first + 2 * (k + 1);
        file[next(k)..next(k) + 4].copy_from_slice(&successor.to_le_bytes());
    }
    file
}

/// A page whose OME-XML claims 16 million planes.
fn tiff_with_claimed_planes() -> Vec<u8> {
    let text = "<?xml version=\"1.0\"?><OME><Image><Pixels SizeX=\"1\" SizeY=\"1\" SizeZ=\"16000000\" SizeC=\"1\" \
                SizeT=\"1\" DimensionOrder=\"XYZCT\" Type=\"uint8\"><TiffData/></Pixels></Image></OME>\0";
    let mut entries = grey_entries([1, 1], 1, [8, 1]);
    let at = TIFF.len() + tiff_directory(&entries, 0).len() + 12;
    entries.insert(5, [270, 2, text.len() as u32, at as u32]);
    [TIFF, &tiff_directory(&entries, 0), text.as_bytes()].concat()
}

/// An RGB image with `chunks` before its pixels.
fn png([width, height]: [u32; 2], chunks: &[u8]) -> Vec<u8> {
    let size = [width, height].map(u32::to_be_bytes).concat();
    let rows = deflated(0, ((3 * width + 1) * height) as usize);
    [
        b"\x89PNG\r\n\x1a\n",
        &png_chunk(b"IHDR", &[&size[..], &[8, 2, 0, 0, 0]].concat())[..],
        chunks,
        &png_chunk(b"IDAT", &rows),
        &png_chunk(b"IEND", &[]),
    ]
    .concat()
}

/// A grey PNG of a claimed size that contains 100 bytes of pixels.
fn claimed_png(size: [u32; 2]) -> Vec<u8> {
    let header = [&size.map(u32::to_be_bytes).concat()[..], &[8, 0, 0, 0, 0]].concat();
    let chunks = [(b"IHDR", header), (b"IDAT", deflated(0, 100)), (b"IEND", Vec::new())];
    let chunks = chunks.map(|(name, data)| png_chunk(name, &data)).concat();
    [b"\x89PNG\r\n\x1a\n", &chunks[..]].concat()
}

/// An animation whose first frame fills the canvas and whose other frames have one pixel.
fn animated_png([width, height]: [u32; 2], frames: u32) -> Vec<u8> {
    let control = |number: u32, [width, height]: [u32; 2]| {
        let words = [number, width, height, 0, 0].map(u32::to_be_bytes).concat();
        png_chunk(b"fcTL", &[&words[..], &[0, 1, 0, 10, 0, 0]].concat())
    };
    let animation = [frames, 0].map(u32::to_be_bytes).concat();
    let head = [png_chunk(b"acTL", &animation), control(0, [width, height])].concat();
    let mut file = png([width, height], &head);
    file.truncate(file.len() - 12);
    for frame in 1..frames {
        file.extend(control(2 * frame - 1, [1, 1]));
        let pixel = [&(2 * frame).to_be_bytes()[..], &deflated(0, 4)].concat();
        file.extend(png_chunk(b"fdAT", &pixel));
    }
    file.extend(png_chunk(b"IEND", &[]));
    file
}

/// A GIF of two colours with `count` frames of `size`, each with one pixel of data and disposal method `disposal`.
fn animated_gif(canvas: [u16; 2], size: [u16; 2], disposal: u8, count: usize) -> Vec<u8> {
    let bytes = |[width, height]: [u16; 2]| [width, height].map(u16::to_le_bytes).concat();
    let control = [0x21, 0xf9, 4, disposal << 2, 0, 0, 0, 0];
    let data = [2, 2, 0x44, 1, 0];
    let frame = [&control[..], &[0x2c, 0, 0, 0, 0], &bytes(size)[..], &[0], &data[..]].concat();
    let head = [&b"GIF89a"[..], &bytes(canvas), &[0x80, 0, 0, 0, 0, 0, 255, 255, 255]].concat();
    [head, frame.repeat(count), vec![0x3b]].concat()
}

/// A RIFF chunk.
fn webp_chunk(name: &[u8], data: &[u8]) -> Vec<u8> {
    let len = (data.len() as u32).to_le_bytes();
    [name, &len, data, &[0][..data.len() % 2]].concat()
}

fn webp_file(chunks: &[u8]) -> Vec<u8> {
    [&b"RIFF"[..], &(4 + chunks.len() as u32).to_le_bytes(), b"WEBP", chunks].concat()
}

/// The chunk of a lossless WebP image of one pixel.
fn webp_pixel() -> Vec<u8> {
    let mut picture = Cursor::new(Vec::new());
    RgbImage::new(1, 1).write_to(&mut picture, ImageFormat::WebP).unwrap();
    picture.get_ref()[12..].to_vec()
}

/// The VP8X chunk with flags and the side of a square canvas.
fn webp_header(flags: u8, side: u32) -> Vec<u8> {
    let side = (side - 1).to_le_bytes();
    webp_chunk(b"VP8X", &[&[flags, 0, 0, 0], &side[..3], &side[..3]].concat())
}

/// An animation of one-pixel frames.
fn animated_webp(side: u32, frames: usize) -> Vec<u8> {
    let frame = webp_chunk(b"ANMF", &[&[0; 12][..], &[10, 0, 0, 2], &webp_pixel()].concat());
    let chunks =
        [webp_header(2, side), webp_chunk(b"ANIM", &[0; 6]), frame.repeat(frames)].concat();
    webp_file(&chunks)
}

/// A WebP image of one pixel with a metadata chunk of a claimed length.
fn webp_metadata(flags: u8, name: &[u8]) -> Vec<u8> {
    let claimed = 0xf000_0000u32.to_le_bytes();
    let metadata = [name, &claimed].concat();
    let pixel = webp_pixel();
    let parts = if name == b"ICCP" { [metadata, pixel] } else { [pixel, metadata] };
    webp_file(&[webp_header(flags, 1), parts.concat()].concat())
}

/// Writes a Zarr array of 10^12 samples without any chunk.
fn write_zarr(folder: &Path, dtype: &str, fill: &str) {
    fs::create_dir(folder).unwrap();
    let metadata = format!(
        r#"{{"shape":[1000000,1000,1000],"chunks":[64,64,64],"dtype":"{dtype}","fill_value":{fill},
            "order":"C","filters":null,"compressor":null,"zarr_format":2}}"#
    );
    fs::write(folder.join(".zarray"), metadata).unwrap();
}

/// A deflated DICOM file with the bytes `attribute`, followed by `zeros` zero bytes, before its pixels.
fn deflated_dicom(attribute: &[u8], zeros: usize) -> Vec<u8> {
    let syntax = [&[2, 0, 0x10, 0][..], b"UI", &[22, 0], b"1.2.840.10008.1.2.1.99"].concat();
    let length = [&[2, 0, 0, 0][..], b"UL", &[4, 0, syntax.len() as u8, 0, 0, 0]].concat();
    let mut data = DeflateEncoder::new(Vec::new(), Compression::fast());
    data.write_all(attribute).unwrap();
    for _ in 0..zeros >> 20 {
        data.write_all(&vec![0; 1 << 20]).unwrap();
    }
    [&[0; 128][..], b"DICM", &length, &syntax, &data.finish().unwrap()].concat()
}

/// A DICOM file that claims two billion frames of 65,535 x 65,535 pixels and contains 16 bytes.
fn dicom_with_claimed_frames() -> Vec<u8> {
    let short = |tag: [u16; 2], kind: &[u8; 2], data: &[u8]| {
        let tag = tag.map(u16::to_le_bytes).concat();
        [&tag[..], kind, &(data.len() as u16).to_le_bytes(), data].concat()
    };
    let number = |tag, value: u16| short(tag, b"US", &value.to_le_bytes());
    let syntax = short([2, 0x10], b"UI", b"1.2.840.10008.1.2.1\0");
    let length = short([2, 0], b"UL", &(syntax.len() as u32).to_le_bytes());
    let pixels = [&[0xe0, 0x7f, 0x10, 0][..], b"OW\0\0", &[16, 0, 0, 0], &[1; 16]].concat();
    [
        vec![0; 128],
        b"DICM".to_vec(),
        length,
        syntax,
        number([0x28, 2], 1),
        short([0x28, 4], b"CS", b"MONOCHROME2 "),
        short([0x28, 8], b"IS", b"2000000000"),
        number([0x28, 0x10], 65_535),
        number([0x28, 0x11], 65_535),
        number([0x28, 0x100], 16),
        number([0x28, 0x101], 16),
        number([0x28, 0x102], 15),
        number([0x28, 0x103], 0),
        pixels,
    ]
    .concat()
}

/// Writes files into `folder` that would take much memory to read without limits.
pub fn write(folder: &Path) {
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    let bomb = deflated(b'a', 400 << 20);
    let mut profile = b"p\0\0".to_vec();
    profile.extend(&bomb);
    write("profile.png", &png([64, 64], &png_chunk(b"iCCP", &profile)));
    let text = |keyword: &[u8], more: &[u8]| [keyword, more, &bomb].concat();
    let comment = png_chunk(b"zTXt", &text(b"Comment", &[0, 0]));
    let xmp = png_chunk(b"iTXt", &text(b"XML:com.adobe.xmp", &[0, 1, 0, 0, 0]));
    write("texts.png", &png([64, 64], &[comment, xmp].concat()));
    write("canvas.png", &animated_png([5000, 5000], 3));

    let mut jpeg = Cursor::new(Vec::new());
    RgbImage::new(64, 64).write_to(&mut jpeg, ImageFormat::Jpeg).unwrap();
    let (start, rest) = jpeg.get_ref().split_at(2);
    let profile = [&[0xff, 0xe2, 0xff, 0xff][..], b"ICC_PROFILE\0\x01\xff", &[7; 65_519]].concat();
    write("segments.jpg", &[start, &profile.repeat(1500), rest].concat());

    let at = (TIFF.len() + tiff_directory(&grey_entries([1, 1], 1, [0, 0]), 0).len()) as u32;
    let strip = grey_entries([64, 64], 8, [at, bomb.len() as u32]);
    write("deflate.tif", &[TIFF, &tiff_directory(&strip, 0), &bomb].concat());
    let mut entries = grey_entries([4, 4], 1, [200, 16]);
    entries.push([700, 1, 3_000_000_000, 256]);
    write("metadata.tif", &[TIFF, &tiff_directory(&entries, 0)].concat());
    let file = File::options().write(true).open(folder.join("metadata.tif")).unwrap();
    file.set_len(3_100_000_000).unwrap();
    write("shared.tif", &tiff_with_shared_tables(2000));
    write("chain.tif", &tiff_directory_chain(30_000));
    write("planes.ome.tif", &tiff_with_claimed_planes());

    write("canvas.gif", &animated_gif([60_000; 2], [1; 2], 1, 3));
    write("restore.gif", &animated_gif([2000; 2], [2000; 2], 3, 20));
    write("frames.gif", &animated_gif([1; 2], [1; 2], 1, 4000));
    write("canvas.webp", &animated_webp(16_001, 3));
    write("frames.dcm", &dicom_with_claimed_frames());
}

/// Writes files into `folder` that claim large sizes but contain little data, or that take much work per byte.
pub fn write_claims(folder: &Path) {
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    write("strip.tif", &tiff_strip([60_000, 2_000_000_000]));
    write("strips.tif", &tiff_strip([u32::MAX, u32::MAX]));
    write(
        "sparse.tif",
        &[TIFF, &tiff_directory(&grey_entries([60_000, 2_000_000_000], 8, [0; 2]), 0)].concat(),
    );
    write("overlap.tif", &tiff_with_overlapping_strips(60_000));
    write("tall.png", &claimed_png([3000, 2_000_000_000]));
    let nrrd = "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 4 4 60000000\nencoding: gzip\n\n";
    let mut gzip = GzEncoder::new(nrrd.as_bytes().to_vec(), Compression::fast());
    gzip.write_all(&[0; 1000]).unwrap();
    write("slices.nrrd", &gzip.finish().unwrap());
    let nrrd = "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 4 4 100000\nencoding: gzip\n\n";
    let mut gzip = GzEncoder::new(nrrd.as_bytes().to_vec(), Compression::fast());
    gzip.write_all(&[0; 1000]).unwrap();
    write("fewer.nrrd", &gzip.finish().unwrap());
    for (flags, name) in [(4, b"XMP "), (8, b"EXIF"), (32, b"ICCP")] {
        let file = String::from_utf8_lossy(&name[..3]).to_lowercase() + ".webp";
        write(&file, &webp_metadata(flags, name));
    }
    write("sizes.webp", &webp_file(&[webp_header(0, 12), webp_pixel()].concat()));
    // A frame stores its position, and its width and height minus one.
    let area = [0, 0, 0, 0, 0, 0, 11, 0, 0, 8, 0, 0, 10, 0, 0, 2];
    let frame = webp_chunk(b"ANMF", &[&area[..], &webp_pixel()].concat());
    write(
        "frame.webp",
        &webp_file(&[webp_header(2, 12), webp_chunk(b"ANIM", &[0; 6]), frame].concat()),
    );
    write("zero.tif", &tiff_strip([0, 9]));
    fs::create_dir(folder.join("slices")).unwrap();
    write("slices/a.png", &png([7000, 7000], &[]));
    write("palette.png", &{
        let header = [0, 0, 0, 4, 0, 0, 0, 4, 8, 3, 0, 0, 0];
        let chunks = [(b"IHDR", &header[..]), (b"PLTE", &[1; 64]), (b"IDAT", &deflated(63, 20))];
        let chunks = chunks.map(|(name, data)| png_chunk(name, data)).concat();
        [b"\x89PNG\r\n\x1a\n", &chunks[..], &png_chunk(b"IEND", &[])].concat()
    });

    // Files that take much work per byte.
    write("many.gif", &animated_gif([1000; 2], [1; 2], 1, 20_000));
    write("many.png", &animated_png([1000, 1000], 5000));
    write("many.webp", &animated_webp(1000, 20_000));
    write("texts.apng", &png([4, 4], &png_chunk(b"tEXt", b"a\0b").repeat(140_000)));
    let private = [&[9, 0, 0x10, 0][..], b"OB\0\0", &(100u32 << 20).to_le_bytes()].concat();
    write("private.dcm", &deflated_dicom(&private, 100 << 20));
    let empty = [&[9, 0, 0x10, 0][..], b"CS\0\0"].concat();
    write("empty.dcm", &deflated_dicom(&empty.repeat(4 << 20), 0));
    let nrrd = "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 2 2 2\nencoding: raw\n";
    write("lines.nrrd", format!("{nrrd}line skip: 4000000000\n\n12345678").as_bytes());
    let name = "a".repeat(900_000);
    write("names.nhdr", format!("{nrrd}data file: {name}%d 1 1000000 1\n\n").as_bytes());
    let axes = "1,".repeat(400_000);
    let axes = format!("{{'descr': '|u1', 'fortran_order': True, 'shape': (1000000,{axes})}}");
    let length = (axes.len() as u32).to_le_bytes();
    write("axes.npy", &[&b"\x93NUMPY\x02\0"[..], &length, axes.as_bytes(), &[0; 1000000]].concat());
    write_zarr(&folder.join("empty.zarr"), "|u1", "3");
    write_zarr(&folder.join("nan.zarr"), "<f4", "\"NaN\"");
}
