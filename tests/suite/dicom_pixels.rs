//! Pixels of DICOM files: palettes, colours, JPEG-LS, and the fragments of compressed pixels. The expected values are
//! those of pydicom.

use std::{fs, io::Write, path::Path};

use flate2::{Compression, write::DeflateEncoder};
use gpuproc::{data::dtype::Dtype, jpeg::jpeg_ls::Header, util::timings::Timings};

use crate::{
    dicom_files::{Attributes, JPEG_LS, PLAIN},
    inputs::{as_f64, describe},
};

/// JPEG-LS pictures of 20 x 9 pixels by CharLS: see [`sample`].
const GREY_8: &str = "\
    ffd8fff7000b080009001401011100ffda000801010000000041c00a0160e8dc313788a2f8f2ec672c125e9ac00093902072\
    c0030001020500a8113499ec0034038685fa8000014e6f0031c6d000f09a3000000de01c441c62a80c30e3e00e2403123600\
    37fd64064e7a9f2705a4fbb12fbc77000001b1690001c4c7d2e709250dac000449c0001c000005dd7bdb6000000bb3280000\
    0bb31e2510a60a80000e000002c60694a001ccdbcb08000aa124e6ce72578500000163000006000193c00823b7362ee71a45\
    4634d9d88cc5c3000000b400ffd9";

const GREY_2: &str = "\
    ffd8fff7000b020009001401011100ffda00080101000000005296db6daee4fcf454254b5aa76e75769d7ff3de9a81cec2f0\
    5248e353a99917386063cb9a23237e8bb54d9f59ce88ffd9";

const GREY_16: &str = "\
    ffd8fff7000b100009001401011100fff8000d01ffff0012004301140040ffda000801010000000040081f0a622c5f8fb25e\
    b199f74e078ea6ea8ad6c2b3edcba6f6c1b31218d149ca683441a9157cad85792c30002d1cc49b60dbd6e5375dbc8df10821\
    070c48085c0845335aa1553eab9569abb4e29002cfd6b2b735c6ae9d782bdb103e0d2888008b4c30ff60c288010acc2ef859\
    43c614995600000000000264f00007da02ac405d1015d202da84c846cc84d644dcc6b804eac6aa04f8c69c0506e1450e000a\
    461c860b170e5d090b132e315a3a6c623d0072868e8c9ed3130d3dda64044c900010ae246235047ca2a0678144d8c9fcbe21\
    507e7c2001510a81be535023c0827f84fe0f0344143ea023016042cd400c7d9d6830fef42b3dd006a8753fc601c08f4a7f18\
    f77864092a80ffd9";

const NEAR_8: &str = "\
    ffd8fff7000b080009001401011100ffda00080101000300002330c50a58b164c99220c2c81815203108204601808f890004\
    60017c06a48410e030d0000c7405c302668d48462aff488c5fa08c0a00209ff940338000128106e14862310c021800002400\
    7f01f5e018201060201190a0860601524c38481602020a42232dd7402847602f20240008ffd9";

const RGB_BY_PLANE: &str = "\
    ffd8fff70011080009001403011100021100031100ffda000801010000000041c00a0160e8dc313788a2f8f2ec672c125e9a\
    c00093902072c0030001020500a8113499ec0034038685fa8000014e6f0031c6d000f09a3000000de01c441c62a80c30e3e0\
    0e240312360037fd64064e7a9f2705a4fbb12fbc77000001b1690001c4c7d2e709250dac000449c0001c000005dd7bdb6000\
    000bb32800000bb31e2510a60a80000e000002c60694a001ccdbcb08000aa124e6ce72578500000163000006000193c00823\
    b7362ee71a454634d9d88cc5c3000000b400ffda000801020000000040000153909d8d49e6910c5d1dc6e68000000d0a5be3\
    6af01a08000005c88000103c7025330d0863d15c4932297f50000002f26000400de0e600086249075880000075ea1b220000\
    00ce4383241c000004ccd24800013ffcb923937eeec8a0f89a8621f7bdd46d46da73f99d5a9488d8b3d5cb3800000bb74000\
    0017780000002ef21222d737200000169d0a8000002c8000002c636003e200014a4ccd74000005d8574cdb627fac80e80900\
    0000b78000c5fbea4311b16418c3f14eb9be832030b80500000058ca000002ecffda000801030000000040000018ace4276e\
    a4f34886358eee4682c929edb175390200000394b400081e143f9982e2e8f4b1124dbeec5f298200000c01bb0e4000a9e000\
    0018807904000003ef08f92d685397241c00000534d22800000b0ffd135268003fa05168e13fd886441ed4e00000386dd4d7\
    1b43112911975ea1e8e000002ef24000005f9a4adb5d3fec4a4000002d4000002d2000002ec000002c4000003247fe000007\
    32c64a2334eda23ff1a212cd7c0000058c000005dc00062f2000002097c000005d895070bb71848b09748c000002e862e280\
    0000bb00ffd9";

const RGB_BY_LINE: &str = "\
    ffd8fff70011080009001403011100021100031100ffda000c0301000200030000010041c00a0160e8dc313788a2f8f2ec67\
    2c125e9ac00093902826e3faaee24b329fc591cde4d400289afcdec00682422e6faa7b490cba771add6e46e2f94082e4c6a8\
    8a0396001800081028054089a4cf6001a01c342fd400000a7339a26c46506133363f8fc53146841dfec000002f2812d8b320\
    2d3b9b8805b1f4ce2bd14da3d298278018e3d800000b1004a9000000de01a5001ad3501568d1e00e246801b71f591894cedb\
    8001ac06ea000000339365e9072c21c86e60c8169ca4000000fbc8394f601367ca0e0625bc006ff8000009998fe16ff8030b\
    7d3eff5645b547e4c9ec83fe62430007f5106b06683af65f1bac0000086f0d4a4432b7393d25c80004bda3b9e8868679e57b\
    a65bcd153221b1469e92e2a9ed6dcb883af5ca39e29d101a6a4db6d6727a4b06952f80007000001774324bb3cb9800000bb3\
    8d52b1ab01e0d800000b1b329b99b3800000bb7a0001518750492306d6e038b1600000059044f09d43856000002ef4df5bc2\
    cd6ddfe38348000005a80d000000bb000000b113d4a001ecb9cdbc715214b353999777800000b18000030000d35600016b26\
    5cca00025b68cabf0bccb08fc0f000000b7bc9f818993ad511926d224ff011425b97444000002eee8be004115dfd9bccb788\
    154d972be3098a8600000168adf523c8e10a04a7d69bb1bc9c850d40480000058ca000002edb0000008263792345b2edd632\
    4c65d2139a0a0a000680ffd9";

const RGB_BY_SAMPLE: &str = "\
    ffd8fff70011080009001403011100021100031100ffda000c030100020003000002005b8e00d0ac00a8d0bb72dcc4bcb44e\
    25637d7b79379449e6933994fe7d1ac5514c511ac69723e9f0f66000146b2e16cb44b25125e9e5e000174b42c81ac2520a50\
    0e026057a90968006000412685450e0c0f9e32bea8998d0210a020692096cc3f0f8f6535580068ae2a807aa82a5fab97da37\
    fb7a00000b429c000005e4c6404f1a1600600c40e68ccfe218cc000002c40580a0f98b24a5b0b4000006f01a0321334468c0\
    00d000000fb8fb6a255371c94245318400000671729d11468d19ff2003c84920e3818000004cc01848c16de8682003058fbf\
    eb64f88b162dbfd1d4100003fa97bc20cd6f5fb700667ae7dfefbd1a0d0896a953e9e8a905b7bb5c00000841a05ecf41006c\
    5dae57caa5d27135b69d763ab7a5771589e544e4d4d76755d800127e7d2b4a1f64e00003e7ac000005dc000005d8000005dd\
    1fd5124800000bbbeb8447379000001770b1c61e91c925b1c45eff27be15b741630007524e5a0000016a039580d06c000005\
    90000005d80000058c44000002c4ccf04f529d4a163800700014c6cacd68989de6d5a6fd34470000002ec314e6d8d0a8e997\
    304db30a1cf8402295ee161957774297cff40000058c0f088000018000005bc000005dc000678ea69cbea1a8013e80000104\
    481167fe37f767764fc42f3062cb995de9f5e22b4f9aadc69719366fb8d20192efc141019da9ccc049054000002c650314a0\
    00002d0000002ec00068ffd9";

const RGB_NEAR: &str = "\
    ffd8fff70011080009001403011100021100031100ffda000c030100020003000202007ec031a1ee81ad6f7bcd34b3c48926\
    16e932244b993e6cc9b11113c2624205800011e2c50a3cf38b2cb03e25a6d5211183824210204604080220428c726ca24891\
    810e26dbe84c4556c9803325c350400d17b1f4e00d3c001248b184042110410d2a24000020808314d53e0018000180000838\
    15a95000402847128922885227400032a312f0a2d1d2a9b6040108840c0c0c1008cffa02000084a525bd04e07a492aaaddff\
    7fff7f43046577694000041c80004c8dbf6a6489345368e899b000000616d91012000000663c54a9624e2c4132e2020a6d22\
    841eb5acc2db000d6e867329c0de4002000c0020d100030010006c495001800872b4a8006eb0a9edd5336a4c801518500180\
    158004030060018011400c008004e86ef91e08180d5a1050325485675031e7a89da2d3345eaadba0952e099fe4bcb6600040\
    02200042008084aa2ee04d045ea5bd1220001ac835984aeab07b104f32bc262bd34c00412e3021aa2b03880200104de00000\
    800c1cffd9";

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |c: u8| (c as char).to_digit(16).unwrap() as u8;
    hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// Sample c of pixel (x, y) of the JPEG-LS pictures, before they were compressed.
fn sample(x: i64, y: i64, c: i64, bits: u32) -> i64 {
    let max = (1 << bits) - 1;
    match (x, y) {
        (0, 0) => max,
        (3.., 2..=4) => (40 + 9 * c) % (max + 1),
        _ => {
            let mixed = x * y % 11 * 5 * (max / 255).max(1);
            (x * x * 7 + y * 13 * (c + 1) + mixed + c * 31) % (max + 1)
        }
    }
}

/// The values of all slices of a file, and their type.
fn read(path: &Path) -> (Vec<f64>, Dtype) {
    let file = describe(path).unwrap_or_else(|error| panic!("{}", error.one_line()));
    let volume = file.read(1 << 20, &Timings::new(false));
    (as_f64(&volume.unwrap_or_else(|error| panic!("{}", error.one_line())).samples), file.dtype)
}

/// The error of reading the file.
fn refusal(path: &Path) -> String {
    let file = match describe(path) {
        Ok(file) => file,
        Err(error) => return error.one_line(),
    };
    file.read(1 << 20, &Timings::new(false)).expect_err("it is refused").one_line()
}

fn jpeg_ls(bits: u16, samples: u16) -> Attributes {
    let picture = Attributes::picture([20, 9], if bits > 8 { 16 } else { 8 });
    let picture = picture.numbers(0x0028_0101, &[bits]).numbers(0x0028_0102, &[bits - 1]);
    let color = if samples == 3 { "RGB" } else { "MONOCHROME2" };
    picture.numbers(0x0028_0002, &[samples]).text(0x0028_0004, b"CS", color)
}

#[test]
fn jpeg_ls_pictures_have_the_samples_of_their_source() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dcm");
    for (name, hex, bits, samples, near) in [
        ("GREY_8", GREY_8, 8, 1, 0),
        ("GREY_2", GREY_2, 2, 1, 0),
        ("GREY_16", GREY_16, 16, 1, 0),
        ("NEAR_8", NEAR_8, 8, 1, 3),
        ("RGB_BY_PLANE", RGB_BY_PLANE, 8, 3, 0),
        ("RGB_BY_LINE", RGB_BY_LINE, 8, 3, 0),
        ("RGB_BY_SAMPLE", RGB_BY_SAMPLE, 8, 3, 0),
        ("RGB_NEAR", RGB_NEAR, 8, 3, 2),
    ] {
        let (picture, packed) = (jpeg_ls(bits, samples), bytes(hex));
        picture.clone().fragments(&[], &[&packed]).write(&path, JPEG_LS);
        let found = read(&path).0;
        let mut largest = 0.0f64;
        for (i, &found) in found.iter().enumerate() {
            let (x, y) = (i as i64 % 20, i as i64 / 20);
            let sum: i64 = (0..samples).map(|c| sample(x, y, c.into(), bits.into())).sum();
            // Colours become grey.
            let expected = (sum as f64 / f64::from(samples)).round();
            largest = largest.max((found - expected).abs());
        }
        assert!(largest <= near as f64, "{name}: {largest}");
        assert!(near == 0 || largest > 0.0, "{name} is not exact");
        // So exchanged channels are found, too.
        let decoded = Header::parse(&packed).and_then(|header| header.decode()).unwrap();
        assert_eq!(decoded.len(), found.len() * usize::from(samples), "{name}");
        for (i, &found) in decoded.iter().enumerate() {
            let (pixel, c) = (i as i64 / i64::from(samples), i as i64 % i64::from(samples));
            let expected = sample(pixel % 20, pixel / 20, c, bits.into());
            assert!((i64::from(found) - expected).abs() <= near, "{name}, sample {i}: {found}");
        }
        // Data that end early are an error, never other pixels.
        for len in (4..packed.len() - 4).step_by(97) {
            picture.clone().fragments(&[], &[&packed[..len]]).write(&path, JPEG_LS);
            let error = refusal(&path);
            assert!(error.contains("a.dcm") && error.contains("JPEG-LS"), "{name}, {len}: {error}");
        }
        // Changed bytes may give other pixels, but no panic.
        for at in (hex.len() % 31..packed.len()).step_by(31) {
            let mut changed = packed.clone();
            changed[at] ^= 0x55;
            picture.clone().fragments(&[], &[&changed]).write(&path, JPEG_LS);
            if let Ok(file) = describe(&path) {
                let _ = file.read(1 << 20, &Timings::new(false)).map_err(|error| {
                    assert!(error.one_line().contains("a.dcm"), "{}", error.one_line());
                });
            }
        }
    }
    jpeg_ls(8, 1)
        .numbers(0x0028_0011, &[21])
        .fragments(&[], &[&bytes(GREY_8)])
        .write(&path, JPEG_LS);
    let error = refusal(&path);
    assert!(error.contains("20x9 pixels of 1 samples; expected 21x9 of 1"), "{error}");
}

/// Two frames in five fragments, with and without tables of offsets.
#[test]
fn frames_may_be_split_into_fragments() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dcm");
    let frames = [bytes(GREY_8), bytes(NEAR_8)];
    let single: Vec<f64> = frames
        .iter()
        .flat_map(|frame| {
            jpeg_ls(8, 1).fragments(&[], &[frame]).write(&path, JPEG_LS);
            read(&path).0
        })
        .collect();
    let [a, b] = &frames;
    let (a1, a2) = a.split_at(100);
    let ((b1, b2), b3) = (b.split_at(60), &b[..0]);
    let fragments = [a1, a2, b1, b2, b3];
    let second = (a1.len() + a2.len() + 16) as u32;
    let pictures = jpeg_ls(8, 1).text(0x0028_0008, b"IS", "2");
    let long = |offset: u32| u64::from(offset).to_le_bytes();
    let extended = [long(0), long(second)].concat();
    for (name, all, table) in [
        ("basic table", pictures.clone(), &[0, second][..]),
        ("extended table", pictures.clone().bytes(0x7fe0_0001, b"OV", &extended), &[][..]),
        ("no table", pictures.clone(), &[][..]),
        ("wrong table", pictures.clone(), &[0, 2][..]),
    ] {
        all.fragments(table, &fragments).write(&path, JPEG_LS);
        assert_eq!(read(&path).0, single, "{name}");
    }
    pictures.numbers(0x0028_0008, &[3]).fragments(&[], &fragments).write(&path, JPEG_LS);
    assert!(describe(&path).is_err());
}

#[test]
fn reads_frames_that_are_deflated_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dcm");
    let pack = |bytes: &[u8]| {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let uid = "1.2.840.10008.1.2.8.1";
    let frames = Attributes::picture([2, 1], 16).text(0x0028_0008, b"IS", "2");
    let [a, b] = [[1, 0, 2, 1], [3, 0, 4, 0]].map(|frame| pack(&frame));
    frames.fragments(&[], &[&a, &b]).write(&path, uid);
    assert_eq!(read(&path).0, [1.0, 258.0, 3.0, 4.0]);
    // Each frame of single bits begins with a new byte.
    let bits = Attributes::picture([3, 1], 1).text(0x0028_0008, b"IS", "2");
    let [a, b] = [pack(&[0b101]), pack(&[0b110])];
    bits.fragments(&[], &[&a, &b]).write(&path, uid);
    assert_eq!(read(&path).0, [1.0, 0.0, 1.0, 0.0, 1.0, 1.0]);
}

#[cfg(feature = "jpeg2000")]
#[test]
fn boxes_around_jpeg_2000_are_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dcm");
    let file = fs::read(crate::inputs::fixture("dicom/jpeg2000/03.dcm")).unwrap();
    let begin = file.windows(4).position(|part| part == [0xff, 0x4f, 0xff, 0x51]).unwrap();
    let len = u32::from_le_bytes(file[begin - 4..begin].try_into().unwrap()) as usize;
    let stream = &file[begin..begin + len];
    let read = |packed: &[u8]| {
        let picture = Attributes::picture([32, 32], 16);
        picture.fragments(&[], &[packed]).write(&path, "1.2.840.10008.1.2.4.90");
        read(&path).0
    };
    let own = read(stream);
    assert!(own.len() == 1024 && own[0] != own[1023], "{own:?}");
    // A signature, and a box that is not valid.
    let boxes = b"\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x03junk";
    assert_eq!(read(&[boxes, stream].concat()), own);
}

/// A picture of the indices `indices` with the tables `tables` of red, green and blue from tag `tag` on.
fn palette(indices: &[u8], descriptor: [u16; 3], tag: u32, tables: [&[u8]; 3]) -> Attributes {
    let picture = Attributes::picture([indices.len() as u16, 1], 8)
        .text(0x0028_0004, b"CS", "PALETTE COLOR")
        .pixels(indices);
    tables.iter().enumerate().fold(picture, |picture, (i, table)| {
        let i = i as u32;
        picture.numbers(0x0028_1101 + i, &descriptor).bytes(tag + i, b"OW", table)
    })
}

#[test]
fn palettes_become_grey() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dcm");
    let data = 0x0028_1201;
    let tables: [&[u8]; 3] = [&[0, 30, 60, 255], &[3, 30, 61, 255], &[9, 30, 63, 255]];
    palette(&[0, 1, 2, 3, 9], [4, 0, 8], data, tables).write(&path, PLAIN);
    // (60 + 61 + 63) / 3 is 61.33. Indices after the last one stand for it.
    assert_eq!(read(&path), (vec![4.0, 30.0, 61.0, 255.0, 255.0], Dtype::U8));
    // The first entry is that of index 7, and of all below.
    palette(&[0, 7, 8, 10], [4, 7, 8], data, tables).write(&path, PLAIN);
    assert_eq!(read(&path).0, [4.0, 4.0, 30.0, 255.0]);
    // Colours of 16 bits.
    let words = |values: [u16; 2]| values.map(u16::to_le_bytes).concat();
    let wide = [[0, 60_000], [3, 60_000], [300, 60_001]].map(words);
    palette(&[1, 0], [2, 0, 16], data, [&wide[0], &wide[1], &wide[2]]).write(&path, PLAIN);
    assert_eq!(read(&path), (vec![60_000.0, 101.0], Dtype::U16));
    // Segments: two values, a line of four to 90, and two entries that are stored at offset 0.
    let segments: &[u8] = &[0, 2, 10, 50, 1, 4, 90, 2, 1, 0, 0, 0, 0, 0];
    let indices = [0, 1, 2, 3, 4, 5, 6, 7];
    palette(&indices, [8, 0, 8], 0x0028_1221, [segments; 3]).write(&path, PLAIN);
    assert_eq!(read(&path).0, [10.0, 50.0, 60.0, 70.0, 80.0, 90.0, 10.0, 50.0]);
    for (name, table) in [("too short", &[1, 2][..]), ("missing", &[][..])] {
        palette(&[0], [4, 0, 8], data, [table; 3]).write(&path, PLAIN);
        let error = refusal(&path);
        assert!(error.contains("tables of a palette are missing or invalid"), "{name}: {error}");
    }
    for broken in [&[1, 4, 9, 0][..], &[7, 1, 1, 1], &[0, 0, 0, 0]] {
        palette(&[0], [4, 0, 8], 0x0028_1221, [broken; 3]).write(&path, PLAIN);
        assert!(refusal(&path).contains("palette"), "{broken:?}");
    }
    // 40,000 entries: more than SS holds, so that the number is negative.
    let table: Vec<u8> = (0..40_000u16).map(|entry| (entry / 160) as u8).collect();
    let descriptor = [40_000, 0, 8u16].map(u16::to_le_bytes).concat();
    let mut signed = palette(&[0, 200, 255], [0, 0, 8], data, [&table; 3]);
    for tag in 0x0028_1101..=0x0028_1103 {
        signed = signed.bytes(tag, b"SS", &descriptor);
    }
    signed.write(&path, PLAIN);
    assert_eq!(read(&path).0, [0.0, 1.0, 1.0]);
    // A label map is not coloured.
    palette(&[2, 1], [4, 0, 8], data, tables)
        .text(0x0062_0001, b"CS", "LABELMAP")
        .write(&path, PLAIN);
    assert_eq!(read(&path).0, [2.0, 1.0]);
}

#[test]
fn colours_of_all_sizes_become_grey() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dcm");
    let colours = |kind: &str, bits: u16, planar: u16, bytes: &[u8]| {
        Attributes::picture([2, 1], bits)
            .numbers(0x0028_0002, &[3])
            .text(0x0028_0004, b"CS", kind)
            .numbers(0x0028_0006, &[planar])
            .pixels(bytes)
            .write(&path, PLAIN);
        read(&path)
    };
    let words = |values: [u16; 6]| values.map(u16::to_le_bytes).concat();
    let by_pixel = words([60_000, 600, 6, 1, 2, 5]);
    assert_eq!(colours("RGB", 16, 0, &by_pixel), (vec![20_202.0, 3.0], Dtype::U16));
    let by_plane = words([60_000, 1, 600, 2, 6, 5]);
    assert_eq!(colours("RGB", 16, 1, &by_plane).0, [20_202.0, 3.0]);
    let wide = [3_000_000_000u32, 1, 600, 2, 6, 5].map(u32::to_le_bytes).concat();
    assert_eq!(colours("RGB", 32, 1, &wide), (vec![1_000_000_202.0, 3.0], Dtype::U32));
    // Luminance 100 with neutral chroma is grey of that value.
    let neutral = words([100, 32_768, 32_768, 65_535, 32_768, 32_768]);
    assert_eq!(colours("YBR_FULL", 16, 0, &neutral).0, [100.0, 65_535.0]);
    assert_eq!(colours("YBR_FULL", 8, 0, &[100, 128, 128, 7, 128, 128]).0, [100.0, 7.0]);
    // Two pixels share their chroma.
    assert_eq!(colours("YBR_FULL_422", 8, 0, &[100, 7, 128, 128]).0, [100.0, 7.0]);
    fs::remove_file(&path).unwrap();
    Attributes::picture([2, 1], 8)
        .numbers(0x0028_0002, &[4])
        .text(0x0028_0004, b"CS", "CMYK")
        .pixels(&[0; 8])
        .write(&path, PLAIN);
    assert!(refusal(&path).contains("CMYK with 4 samples per pixel is not supported"));
}

/// Frames follow each other without padding: single bits, and odd numbers of bytes.
#[test]
fn plain_frames_follow_each_other_without_gaps() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dcm");
    for (bits, columns, rows) in
        [(1, 3u16, 3u16), (1, 5, 1), (1, 8, 2), (8, 3, 3), (8, 1, 1), (16, 3, 1)]
    {
        let samples: Vec<u16> = (1..=4 * columns * rows)
            .map(|i| (i * i % 251 * 97) & ((1u32 << bits) - 1) as u16)
            .collect();
        let bytes: Vec<u8> = match bits {
            1 => samples
                .chunks(8)
                .map(|bits| bits.iter().enumerate().map(|(i, bit)| (bit << i) as u8).sum())
                .collect(),
            8 => samples.iter().map(|&sample| sample as u8).collect(),
            _ => samples.iter().flat_map(|sample| sample.to_le_bytes()).collect(),
        };
        Attributes::picture([columns, rows], bits)
            .text(0x0028_0008, b"IS", "4")
            .pixels(&bytes)
            .write(&path, PLAIN);
        let expected: Vec<f64> = samples.into_iter().map(f64::from).collect();
        assert_eq!(read(&path).0, expected, "{bits} bits, {columns} x {rows}");
    }
}
