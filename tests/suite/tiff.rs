//! TIFF files of other programs: `fixtures/tiff`, with expected values as tifffile, Pillow, vips and ImageMagick read
//! them.

use std::{collections::BTreeMap, fs};

use gpuproc::{
    data::image::{Density, DensityUnit, Image},
    io::{
        Source,
        image::{Encoding, ImageFile, ImageFormat, ImageTarget, Series},
    },
    util::timings::Timings,
};
use predicates::str::contains;
use serde_json::Value;

use crate::{
    common::{Noise, gpuproc, outcome, run},
    inputs::{as_f64, fixture, load_image},
};

fn expected_values() -> BTreeMap<String, Value> {
    serde_json::from_slice(&fs::read(fixture("tiff/values.json")).unwrap()).unwrap()
}

#[test]
fn reads_files_of_other_programs() {
    let expected = expected_values();
    assert!(expected.len() > 25, "{}", expected.len());
    for (name, expected) in expected {
        let image = load_image(fixture("tiff").join(&name));
        assert_eq!(image.samples.dtype().name(), expected["type"], "{name}");
        let size: Vec<usize> = serde_json::from_value(expected["size"].clone()).unwrap();
        assert_eq!(
            ([image.width, image.height], image.channels as u64),
            ([size[0], size[1]], expected["channels"].as_u64().unwrap()),
            "{name}"
        );
        let tolerance = expected["tolerance"].as_f64().unwrap();
        let wanted: Vec<f64> = serde_json::from_value(expected["values"].clone()).unwrap();
        let found = as_f64(&image.samples);
        assert_eq!(found.len(), wanted.len(), "{name}");
        for (i, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
            assert!(
                (found - wanted).abs() <= tolerance,
                "{name}: sample {i}: found {found}, expected {wanted}"
            );
        }
    }
}

/// Both with classic and with BigTIFF headers.
#[test]
fn written_pages_are_read_back_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages.tif");
    let mut noise = Noise(3);
    let mut images: Vec<Image> = Vec::new();
    for (name, _) in expected_values() {
        let mut image = load_image(fixture("tiff").join(name));
        image.metadata.xmp = Some(noise.bytes(3));
        image.metadata.iptc = Some(noise.bytes(9));
        // A profile of other colours would be left out.
        let colours = if image.channels < 3 { b"GRAY" } else { b"RGB " };
        image.metadata.icc = Some([&noise.bytes(16)[..], colours, &noise.bytes(70)].concat());
        image.metadata.density = Density::new([300.0, 299.5], DensityUnit::Inch);
        images.push(image);
    }
    let timings = Timings::new(false);
    for sample_bytes in [0, 5 << 30] {
        let series = Series { count: images.len(), sample_bytes, animation: None };
        let sink = gpuproc::io::Sink::File(path.clone());
        let encoding = Encoding::default();
        let target = ImageTarget::new(&sink, ImageFormat::Tiff, encoding, &timings);
        target
            .encode_pages(series, |writer| {
                images.iter().try_for_each(|image| writer.page(image.clone()))
            })
            .and_then(gpuproc::io::Finished::commit)
            .unwrap();
        let start = fs::read(&path).unwrap()[..4].to_vec();
        assert_eq!(start, if sample_bytes > 0 { b"II+\0" } else { b"II*\0" });
        let source = Source::from(path.clone());
        let file = ImageFile::read(&source, u64::MAX, &timings).unwrap();
        let mut pages = file.pages(&timings).unwrap();
        assert_eq!(pages.count(), images.len());
        // Pages can be decoded in any order.
        for at in [images.len() - 1, 0].into_iter().chain(0..images.len()) {
            assert_eq!(pages.decode(at, &timings).unwrap(), images[at], "page {at}");
            let bytes = images[at].samples.as_bytes().len() as u64;
            assert_eq!(pages.sample_bytes(at), Some(bytes));
        }
    }
}

/// Unsupported compressions and sample formats are named in the error, and data that the image cannot represent is
/// reported.
#[test]
fn names_unsupported_kinds_and_reports_losses() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let grey = fs::read(fixture("tiff/min_is_white.tif")).unwrap();
    // Sets the value of a SHORT entry in the first directory of a little-endian file.
    let set_entry = |file: &[u8], tag: u16, value: u16| {
        let mut file = file.to_vec();
        let first = u32::from_le_bytes(file[4..8].try_into().unwrap()) as usize;
        let count = usize::from(u16::from_le_bytes(file[first..first + 2].try_into().unwrap()));
        let find = |tag: u16| {
            let mut entries = (0..count).map(|i| first + 2 + 12 * i);
            entries.find(|&at| file[at..at + 2] == tag.to_le_bytes())
        };
        // If there is no such entry, it replaces the resolution unit.
        let at = find(tag).or(find(296)).unwrap();
        file[at..at + 2].copy_from_slice(&tag.to_le_bytes());
        file[at + 8..at + 10].copy_from_slice(&value.to_le_bytes());
        file
    };
    let with_entry = |tag: u16, value: u16| set_entry(&grey, tag, value);
    for (tag, value, message) in [
        (259, 4, "CCITT fax"),
        (259, 50001, "WebP"),
        (259, 34887, "LERC"),
        (259, 34933, "PNG"),
        (259, 34934, "JPEG XR"),
        (259, 6, "old-style JPEG"),
        (259, 12345, "12345"),
        (258, 48, "48 bits"),
        (262, 32803, "colour filter array"),
        (339, 5, "complex"),
    ] {
        fs::write(folder.join("in.tif"), with_entry(tag, value)).unwrap();
        for line in ["blur in.tif o.png --sigma 0", "info in.tif"] {
            outcome(folder, line).code(4).stderr(contains(message));
        }
    }
    // Only LZW, deflate and zstd support predictors.
    for (name, message) in [
        ("i8_packbits.tif", "its predictor is ignored: PackBits compression has none"),
        ("min_is_white.tif", "its predictor is ignored: it is not compressed"),
    ] {
        let path = fixture("tiff").join(name);
        fs::write(folder.join("in.tif"), set_entry(&fs::read(&path).unwrap(), 317, 2)).unwrap();
        let found = load_image(folder.join("in.tif"));
        assert!(found.samples == load_image(&path).samples, "{name}");
        for line in ["blur in.tif o.tif --sigma 0", "blur in.tif o.tif --sigma 0 --stack"] {
            let (code, stderr) = run(folder, line);
            assert!(code == 0 && stderr.contains(message), "{name}: {stderr}");
            let (code, stderr) = run(folder, &format!("{line} --strict"));
            assert!(code == 4 && stderr.contains(message), "{name}: {stderr}");
        }
        outcome(folder, "info in.tif").success().stdout(contains(message));
    }
    for (name, message) in [
        ("five.tif", "2 of its 5 channels are left out"),
        ("cmyk.tif", "CMYK becomes RGB"),
        ("f64_predictor_be.tif", ""),
    ] {
        let input = fixture("tiff").join(name);
        let line = format!("blur {} o.tif --sigma 0", input.display());
        outcome(folder, &line).success().stderr(contains(message));
        let strict = outcome(folder, &format!("{line} --strict"));
        match message {
            "" => strict.success(),
            message => strict.code(4).stderr(contains(message)),
        };
    }
}

/// A little-endian TIFF file of u8 or u16 samples in uncompressed tiles.
fn tiled_tiff(
    size: [usize; 2],
    channels: usize,
    bits: usize,
    tile: [usize; 2],
    samples: &[u8],
) -> Vec<u8> {
    let pixel = channels * bits / 8;
    let [across, down] = [0, 1].map(|axis| size[axis].div_ceil(tile[axis]));
    let tile_bytes = tile[0] * tile[1] * pixel;
    let mut file = b"II*\0\0\0\0\0".to_vec();
    for at in 0..across * down {
        let [left, top] = [at % across * tile[0], at / across * tile[1]];
        for y in top..top + tile[1] {
            for x in left..left + tile[0] {
                let is_inside = x < size[0] && y < size[1];
                let from = (y * size[0] + x) * pixel;
                match is_inside {
                    true => file.extend(&samples[from..from + pixel]),
                    false => file.extend(vec![0xee; pixel]),
                }
            }
        }
    }
    let offsets: Vec<u32> = (0..across * down).map(|i| (8 + i * tile_bytes) as u32).collect();
    let lists = file.len();
    file.extend(offsets.iter().flat_map(|offset| offset.to_le_bytes()));
    file.extend(offsets.iter().flat_map(|_| (tile_bytes as u32).to_le_bytes()));
    file.extend([bits as u16; 4].iter().flat_map(|bits| bits.to_le_bytes()));
    let directory = file.len() as u32;
    let count = offsets.len() as u32;
    let entries = [
        (256, 4, 1, size[0] as u32),
        (257, 4, 1, size[1] as u32),
        (258, 3, channels as u32, lists as u32 + 8 * count),
        (259, 3, 1, 1),
        (262, 3, 1, if channels < 3 { 1 } else { 2 }),
        (277, 3, 1, channels as u32),
        (322, 4, 1, tile[0] as u32),
        (323, 4, 1, tile[1] as u32),
        (324, 4, count, lists as u32),
        (325, 4, count, lists as u32 + 4 * count),
        (338, 3, 1, 2),
    ];
    let entries = &entries[..if channels == 4 { 11 } else { 10 }];
    file.extend((entries.len() as u16).to_le_bytes());
    for &(tag, kind, count, value) in entries {
        file.extend([u16::to_le_bytes(tag), u16::to_le_bytes(kind)].concat());
        file.extend([count, value].map(u32::to_le_bytes).concat());
    }
    file.extend([0; 4]);
    file[4..8].copy_from_slice(&directory.to_le_bytes());
    file
}

/// Images in strips and tiles give the same output whether they are blurred in blocks or as a whole.
#[test]
fn blur_in_blocks_writes_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut noise = Noise(8);
    let size = [150, 210];
    let samples = noise.bytes(size[0] * size[1] * 8);
    let write = |name: &str, bytes: Vec<u8>| fs::write(folder.join(name), bytes).unwrap();
    write("tiles3.tif", tiled_tiff(size, 3, 8, [32, 16], &samples));
    write("tiles4.tif", tiled_tiff(size, 4, 16, [16, 16], &samples));
    write("wide.tif", tiled_tiff(size, 4, 8, [256, 48], &samples));
    let mut strips = std::io::Cursor::new(Vec::new());
    {
        use ::tiff::encoder::{Compression, TiffEncoder, colortype};
        let mut encoder = TiffEncoder::new(&mut strips).unwrap().with_compression(Compression::Lzw);
        let mut image = encoder.new_image::<colortype::RGB8>(150, 210).unwrap();
        image.rows_per_strip(7).unwrap();
        image.write_data(&samples[..150 * 210 * 3]).unwrap();
    }
    write("strips.tif", strips.into_inner());
    for name in ["tiles3.tif", "tiles4.tif", "wide.tif", "strips.tif"] {
        let image = load_image(folder.join(name));
        let bytes = image.samples.as_bytes();
        assert!(bytes == &samples[..bytes.len()], "{name}");
        let run = |output: &str, memory: usize| {
            let mut command = gpuproc();
            let line = ["blur", name, output, "--sigma", "0.7", "--device", "cpu", "-vv"];
            let memory = ["--max-memory".to_owned(), memory.to_string()];
            let assert = command.current_dir(folder).args(line).args(memory).assert().success();
            String::from_utf8_lossy(&assert.get_output().stderr).contains("in blocks of")
        };
        for [whole, blocks] in [["whole.tif", "bands.tif"], ["whole.png", "bands.png"]] {
            assert!(!run(whole, 1 << 30), "{name}");
            assert!(run(blocks, 3 * bytes.len()), "{name} {blocks}");
            let [whole, blocks] = [whole, blocks].map(|name| load_image(folder.join(name)));
            assert!(whole == blocks, "{name}");
        }
    }
}
