//! Fuzz targets. Each is a function that takes any bytes and panics if gpuproc does something wrong.
//! libFuzzer runs them (`fuzz_targets/`), and so does the test suite (`tests/suite/fuzz.rs`).
//!
//! Commands run in this process, on the CPU and with small limits, in a folder that contains only their inputs.
//! Whatever the bytes, a command must end with a result or with an error of one line and a documented kind, and must
//! not leave incomplete files.

use std::{
    ffi::OsString,
    fs,
    io::Cursor,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use gpuproc::{
    cli,
    data::{
        dtype::Dtype,
        image::{Metadata, Orientation},
        number::Number,
        placement::Placement,
        samples::Samples,
    },
    device::Kernel,
    io::{
        Limits, Source,
        array::{ArrayFormat, ArrayReader, npy},
        identity::Identity,
        image::{open_rows, png::Png, probe, read_image},
        volume::{Layout, VolumeFile},
    },
    jpeg::{Container, Frame, JpegFile, Picture, Quality, encode},
    kernels::jpeg::Decode,
    util::{error::Kind, timings::Timings},
};
use image::ImageFormat;
use tempfile::TempDir;

/// A fuzz target.
pub struct Target {
    pub name: &'static str,
    pub body: fn(&[u8]),
    /// Creates the inputs to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

pub const TARGETS: [Target; 14] = [
    Target { name: "arguments", body: arguments, seeds: argument_seeds },
    Target { name: "text", body: text, seeds: text_seeds },
    Target { name: "npy", body: npy, seeds: npy_seeds },
    Target { name: "png", body: png, seeds: png_seeds },
    Target { name: "jpeg", body: jpeg, seeds: jpeg_seeds },
    Target { name: "exr", body: exr, seeds: exr_seeds },
    Target { name: "tiff", body: tiff, seeds: tiff_seeds },
    Target { name: "blur", body: blur, seeds: image_seeds },
    Target { name: "histogram", body: histogram, seeds: image_seeds },
    Target { name: "scan", body: scan, seeds: scan_seeds },
    Target { name: "mesh", body: mesh, seeds: mesh_seeds },
    Target { name: "volume", body: volume, seeds: volume_seeds },
    Target { name: "zarr", body: zarr, seeds: zarr_seeds },
    Target { name: "part", body: part, seeds: part_seeds },
];

/// Prints only the panics of this file. Decoders panic on broken files, and gpuproc catches that.
#[allow(dead_code)] // The suite has its own hook.
pub fn print_own_panics() {
    std::panic::set_hook(Box::new(|panic| {
        if panic.location().is_some_and(|location| location.file().ends_with(file!())) {
            eprintln!("{panic}");
        }
    }));
}

/// Creates a temporary folder, in memory if /dev/shm exists.
fn folder() -> TempDir {
    let shm = Path::new("/dev/shm");
    match shm.is_dir() {
        true => tempfile::tempdir_in(shm),
        false => tempfile::tempdir(),
    }
    .expect("cannot create a temporary folder")
}

/// Runs a command with `arguments`, in which `@` stands for `folder`. If it succeeds, it may create `outputs`; if it
/// fails, no files. Returns whether it succeeded.
fn run(folder: &Path, arguments: &[&str], outputs: &[&str]) -> bool {
    run_then(folder, arguments, outputs, || ())
}

/// Like [`run`], but calls `then` before the outputs are removed.
fn run_then(folder: &Path, arguments: &[&str], outputs: &[&str], then: impl FnOnce()) -> bool {
    let names = || {
        let entries = fs::read_dir(folder).expect("cannot read the folder");
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    let fixed = ["gpuproc", "--device=cpu", "--quiet", "--max-memory=16M", "--max-pixels=1M"];
    let own = arguments.iter().map(|argument| {
        let (flag, name) = argument.split_once('@').unwrap_or((argument, ""));
        match flag {
            "" => folder.join(name).into_os_string(),
            "--mask=" | "--equalize=" | "--auto-levels=" | "--preview=" => {
                let mut flag = OsString::from(flag);
                flag.push(folder.join(name));
                flag
            }
            _ => (*argument).into(),
        }
    });
    let line: Vec<_> = fixed.map(OsString::from).into_iter().chain(own).collect();
    let result = catch_unwind(AssertUnwindSafe(|| cli::run_from(line)));
    let result = result.unwrap_or_else(|_| panic!("{arguments:?} panics"));
    let mut left = names();
    left.retain(|name| !before.contains(name));
    match &result {
        Ok(()) => left.retain(|name| !outputs.iter().any(|output| name == output)),
        Err(error) => {
            let line = error.one_line();
            let kinds = [Kind::Failure, Kind::Usage, Kind::BadInput, Kind::Io];
            assert!(kinds.contains(&error.kind()), "{arguments:?}: {line}");
            // Usage errors of clap have several lines.
            assert!(error.kind() == Kind::Usage || !line.contains('\n'), "{arguments:?}: {line}");
        }
    }
    assert!(left.is_empty(), "{arguments:?} leaves {left:?}, success: {:?}", result.is_ok());
    if result.is_ok() {
        then();
    }
    for output in outputs {
        let _ = fs::remove_file(folder.join(output));
    }
    result.is_ok()
}

/// Runs commands on valid inputs with any value for a flag whose values gpuproc parses itself.
pub fn arguments(bytes: &[u8]) {
    const COMMANDS: &[&str] = &[
        "blur @a.png @o.png --sigma={}",
        "blur @a.png @o.png --radius={}",
        "blur @a.png @o.png --truncate={} --edge=wrap",
        "blur @a.png @o.png --edge={}",
        "blur @a.png @o.png --channels={}",
        "blur @v_4x4x4_uint8.raw @o.raw --sigma={}",
        "blur @v_4x4x4_uint8.raw @o.raw --dims={}",
        "histogram @a.png -o @o.csv --bins={}",
        "histogram @a.png -o @o.csv --range={}",
        "histogram @a.png -o @o.json --percentiles={}",
        "histogram @a.png -o @o.csv --roi={}",
        "histogram @a.png --auto-levels=@o.png --clip={}",
        "histogram @a.png -o @o.csv --channels={}",
        "scan @n.txt @o.txt --init={} --type=i64",
        "scan @n.txt @o.txt --init={} --type=f32",
        "scan @n.txt @o.txt --type={}",
        "sort @n.txt @o.txt --type={}",
        "mesh @v_4x4x4_uint8.raw @o.ply --iso={}",
        "mesh @v_4x4x4_uint8.raw @o.ply --iso=9 --spacing={}",
        "mesh @v_4x4x4_uint8.raw @o.ply --iso=9 --origin={}",
        "mesh @v_4x4x4_uint8.raw @o.glb --iso=9 --simplify={}",
        "mesh @v_4x4x4_uint8.raw @o.ply --iso=9 --dims={}",
        "mesh @v_4x4x4_uint8.raw @o.ply --iso=9 --dtype={} --dims=2x2x2",
        "mesh @v_4x4x4_uint8.raw @o.ply --iso=9 --header-bytes={}",
        "mesh @v_4x4x4_uint8.raw @o.ply --iso=9 --preview=@o.png --size={}",
        "mesh @v_4x4x4_uint8.raw @o.ply --iso=9 --preview=@o.png --view={}",
        "mesh @v_4x4x4_uint8.raw @o.ply --iso=9 --preview=@o.png --background={}",
    ];
    let Some((&choice, value)) = bytes.split_first() else { return };
    let value: String =
        String::from_utf8_lossy(value).chars().filter(|&c| c != '\0').take(200).collect();
    let line = COMMANDS[usize::from(choice) % COMMANDS.len()];
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("a.png"), &image_seeds()[0][1..]).unwrap();
    fs::write(path("v_4x4x4_uint8.raw"), (0..64).map(|i| i * 3).collect::<Vec<u8>>()).unwrap();
    fs::write(path("n.txt"), "3 1 2\n").unwrap();
    let words: Vec<String> = line.split(' ').map(|word| word.replace("{}", &value)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    // With several isovalues, the names of the outputs are not known here.
    if !(line.ends_with("--iso={}") && value.contains(',')) {
        run(
            folder.path(),
            &words,
            &["o.png", "o.raw", "o.csv", "o.json", "o.txt", "o.ply", "o.glb"],
        );
    }
}

fn argument_seeds() -> Vec<Vec<u8>> {
    let values: [&[&str]; 27] = [
        &["2", "1.5,0", "500", "1e-30"],
        &["3", "0,10000"],
        &["4.5"],
        &["clamp", "-7.5", "reflect101"],
        &["r,g", "b"],
        &["1,1,2"],
        &["4x4x4", "18446744073709551615x2x2", "64x1X1"],
        &["65536"],
        &["0,255", "data", "-1e308,1e308"],
        &["1,50,99.9"],
        &["1,2,3,4", "18446744073709551615,1,1,1"],
        &["1%", "49.999"],
        &["r,luma"],
        &["-9223372036854775808"],
        &["nan", "1e39"],
        &["u64", "float32"],
        &["f32"],
        &["80", "auto", "-0"],
        &["1,1,2.5", "1e-300,1,1"],
        &["-90,0,1e300"],
        &["0.25", "1e-9"],
        &["4x4x4"],
        &["f64", "uint8"],
        &["0", "18446744073709551615"],
        &["40x30", "99999x99999"],
        &["215,12", "1e308,-1e308"],
        &["#ff8000", "black"],
    ];
    let lines = values.iter().enumerate();
    lines
        .flat_map(|(line, values)| {
            values.iter().map(move |value| [&[line as u8][..], value.as_bytes()].concat())
        })
        .collect()
}

/// Reads numbers of any type from a text, in blocks of any length. They must be the numbers that Rust parses between
/// blanks and commas.
pub fn text(bytes: &[u8]) {
    fn check<T: Number>(source: &Source, bytes: &[u8], block_len: usize) {
        let open =
            || ArrayReader::open(source, ArrayFormat::Text, Some(T::DTYPE), u64::MAX).unwrap();
        let read = |block_len: usize| {
            let (mut reader, mut all, mut some) = (open(), Vec::<T>::new(), Vec::new());
            loop {
                reader.read(&mut some, block_len).map_err(|error| assert_bad_input(&error))?;
                let layout = reader.take_layout().expect("text has no layout");
                assert_eq!(layout.after.len(), some.len());
                if some.is_empty() {
                    return Ok(all);
                }
                all.extend_from_slice(&some);
            }
        };
        let parts: Result<Vec<T>, ()> = read(block_len);
        let whole = read(usize::MAX);
        let same = match (&parts, &whole) {
            // NaN is not equal to itself.
            (Ok(a), Ok(b)) => has_equal_bits(a, b),
            (a, b) => a.is_err() && b.is_err(),
        };
        assert!(same, "blocks of {block_len} numbers differ");
        let separators = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',';
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let tokens = text.split(separators).filter(|token| !token.is_empty());
        let naive: Option<Vec<T>> =
            tokens.map(|token| std::str::from_utf8(token).ok()?.parse().ok()).collect();
        match (whole, naive) {
            (Ok(numbers), Some(naive)) => assert!(has_equal_bits(&numbers, &naive)),
            (Ok(_), None) => panic!("gpuproc accepts a text with invalid numbers"),
            (Err(()), None) => {}
            // gpuproc also refuses a comma without a number before it, and numbers that are far too long.
            (Err(()), Some(_)) => assert!(bytes.contains(&b',') || bytes.len() > 1 << 16),
        }
    }
    let Some((&choice, text)) = bytes.split_first() else { return };
    let folder = folder();
    let path = folder.path().join("n.txt");
    fs::write(&path, text).unwrap();
    let source = Source::from(path);
    let block_len = 1 + usize::from(choice / 6);
    let dtype = Dtype::NUMBERS[usize::from(choice % 6)];
    gpuproc::for_number!(dtype, T => check::<T>(&source, text, block_len));
}

fn assert_bad_input(error: &gpuproc::util::error::Error) {
    assert_eq!(error.kind(), Kind::BadInput, "{}", error.one_line());
    assert!(error.one_line().len() < 500, "{}", error.one_line());
}

fn has_equal_bits<T: Number>(a: &[T], b: &[T]) -> bool {
    let bits = |value: &T| format!("{value:?}");
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b || bits(a) == bits(b))
}

fn text_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "",
        "1 2 3\n4,5\n",
        "-1\t+7",
        "1e30 nan -inf",
        ",1",
        "1,,2",
        "4294967296",
        "0x10",
        "1\n\n2",
        "\u{feff}1,\u{c}2",
    ];
    texts
        .iter()
        .enumerate()
        .map(|(i, text)| [&[i as u8 * 7][..], text.as_bytes()].concat())
        .collect()
}

/// Checks that the length in a `.npy` header is the product of its shape, and that written headers can be read again.
/// Then scans and sorts the array.
pub fn npy(bytes: &[u8]) {
    if let Ok(header) = npy::Header::read(&mut &bytes[..]) {
        let product = header.shape.iter().try_fold(1u64, |n, &axis| n.checked_mul(axis as u64));
        assert_eq!(product, Some(header.len));
        let number = header.element.dtype();
        let again = npy::Header::read(&mut &npy::header(number, &header.shape)[..]);
        if header.shape.len() < 1000 {
            let again = again.expect("cannot read a written header");
            assert_eq!((again.shape, again.element.dtype()), (header.shape, number));
        }
    }
    let folder = folder();
    fs::write(folder.path().join("a.npy"), bytes).unwrap();
    run(folder.path(), &["scan", "@a.npy", "@o.npy"], &["o.npy"]);
    run(folder.path(), &["sort", "@a.npy", "@o.raw"], &["o.raw"]);
}

fn npy_seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = Dtype::NUMBERS
        .iter()
        .map(|&number| {
            let mut file = npy::header(number, &[2, 3]);
            file.extend((0..6 * number.size() as u8).collect::<Vec<u8>>());
            file
        })
        .collect();
    for header in [
        "{'descr': '>i2', 'fortran_order': True, 'shape': (3,), }",
        "{'descr': '|b1', 'fortran_order': False, 'shape': (), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967295, 4294967295), }",
        "{'descr': '<u8', 'fortran_order': False, 'shape': (2305843009213693951,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 99999999999), }",
    ] {
        let mut file = b"\x93NUMPY\x02\0".to_vec();
        file.extend((header.len() as u32).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend([1, 2, 3, 4, 5, 6]);
        seeds.push(file);
    }
    seeds
}

/// Checks that files of gpuproc's PNG encoder decode to the original pixels.
pub fn png(bytes: &[u8]) {
    let [width, kind, compression, icc, pixels @ ..] = bytes else { return };
    let (channels, sample_bytes) = (1 + kind % 4, 1 + kind / 4 % 2);
    let width = 1 + u32::from(*width);
    let row = width as usize * usize::from(channels * sample_bytes);
    let height = (pixels.len() / row) as u32;
    if height == 0 {
        return;
    }
    let pixels = &pixels[..row * height as usize];
    let icc = &pixels[..pixels.len().min((*icc).into())];
    let icc = (!icc.is_empty()).then(|| icc.to_vec());
    let metadata = &Metadata { exif: icc.clone(), icc, ..Metadata::default() };
    let compression = compression % 10;
    let png = Png { width, height, channels, sample_bytes, metadata, compression };
    let mut file = Vec::new();
    png.write(pixels, &mut file).unwrap();
    let decoded = image::load_from_memory_with_format(&file, ImageFormat::Png).unwrap();
    assert_eq!((decoded.width(), decoded.height()), (width, height));
    assert_eq!(decoded.color().channel_count(), channels);
    let found = match sample_bytes {
        1 => decoded.as_bytes().to_vec(),
        // PNG is big-endian.
        _ => decoded
            .as_bytes()
            .chunks_exact(2)
            .flat_map(|b| if cfg!(target_endian = "little") { [b[1], b[0]] } else { [b[0], b[1]] })
            .collect(),
    };
    assert!(found == pixels);
}

fn png_seeds() -> Vec<Vec<u8>> {
    (0..8u8)
        .map(|kind| [&[5, kind, kind, kind * 9][..], &[7; 200], &[kind; 100]].concat())
        .collect()
}

/// Decodes any bytes as JPEG: always to the same result, within the limit, and to the size that the image crate finds.
/// Or encodes pixels, and compares the results of both decoders. The pixels of other files are not compared, because
/// decoders differ for invalid coefficients and in how they interpolate chroma. The suite (`image.rs`) tests that valid
/// files decode bit-exactly like libjpeg.
pub fn jpeg(bytes: &[u8]) {
    const LIMIT: usize = 4 << 20;
    let Some((&kind, rest)) = bytes.split_first() else { return };
    if kind % 4 == 3 {
        return jpeg_pixels(kind, rest);
    }
    let Ok(file) = JpegFile::parse(rest, &Container::default()) else { return };
    let (len, channels) = (file.frame.pixel_bytes(), file.frame.colour.channels());
    assert!(len > 0 && matches!(channels, 1 | 3));
    if len + file.scratch_bytes() > LIMIT {
        return;
    }
    let Ok(decoded) = file.decode(1) else { return };
    assert_eq!(decoded.0.len(), len);
    let again = file.decode(1).expect("the second decoding failed");
    assert!(again == decoded, "the second decoding differs");
    let (coefficients, _) = file.coefficients().expect("cannot decode the coefficients");
    let pixels = Decode.cpu(&coefficients).expect("the kernel failed");
    assert!(pixels == decoded.0, "the kernel gives other pixels");
    if let Ok(other) = image::load_from_memory_with_format(rest, ImageFormat::Jpeg) {
        assert_eq!(file.frame.size, [other.width(), other.height()].map(|side| side as usize));
        assert_eq!(channels, usize::from(other.color().channel_count()));
    }
}

/// Decodes any bytes as EXR: always to the same pixels, and to those that the exr crate decodes.
pub fn exr(bytes: &[u8]) {
    use exr::prelude::*;
    let folder = folder();
    let path = folder.path().join("a.exr");
    fs::write(&path, bytes).unwrap();
    let source = Source::from(path);
    let decode = || read_image(&source, 4 << 20, &Timings::new(false));
    let Ok(image) = decode() else { return };
    let Samples::F32(ours) = &image.samples else { panic!("the samples are not f32") };
    assert_eq!(ours.len(), image.width * image.height * image.channels);
    let again = decode().expect("the second decoding failed");
    assert!(again.samples.as_bytes() == image.samples.as_bytes(), "the second decoding differs");
    let headers = MetaData::read_from_buffered(Cursor::new(bytes), false).unwrap().headers;
    let [header] = &headers[..] else { return };
    let shown = header.shared_attributes.display_window;
    if (shown.size, shown.position) != (header.layer_size, header.own_attributes.layer_position) {
        return;
    }
    let theirs = read().no_deep_data().largest_resolution_level().all_channels();
    let theirs = theirs.first_valid_layer().all_attributes().non_parallel();
    let Ok(theirs) = theirs.from_buffered(Cursor::new(bytes)) else { return };
    let names = if image.channels > 2 { &["R", "G", "B", "A"][..] } else { &["Y", "A"] };
    for channel in &theirs.layer_data.channel_data.list {
        let Some(index) = names.iter().position(|name| channel.name == **name) else {
            continue;
        };
        let ours = ours.iter().skip(index).step_by(image.channels);
        let same = |(ours, theirs): (&f32, f32)| ours.to_bits() == theirs.to_bits();
        assert!(
            ours.zip(channel.sample_data.values_as_f32()).all(same),
            "the exr crate gives other pixels"
        );
    }
}

/// An image in every compression that the exr crate writes, in scan lines and in tiles, and one with a DWA header.
fn exr_seeds() -> Vec<Vec<u8>> {
    use exr::prelude::*;
    let pixel = |Vec2(x, y): Vec2<usize>| (x as f32 / 3.0, f16::from_f32(y as f32), (x * y) as u32);
    let lines = Blocks::ScanLines;
    let tiles = Blocks::Tiles(Vec2(8, 8));
    let mut seeds = Vec::new();
    for compression in [
        Compression::Uncompressed,
        Compression::RLE,
        Compression::ZIP1,
        Compression::ZIP16,
        Compression::PIZ,
        Compression::PXR24,
        Compression::B44,
        Compression::B44A,
    ] {
        for blocks in [lines, tiles] {
            let encoding = Encoding { compression, blocks, line_order: LineOrder::Increasing };
            let channels = SpecificChannels::rgb(pixel);
            let layer = Layer::new((21, 13), LayerAttributes::named("a"), encoding, channels);
            let mut file = Vec::new();
            let picture = Image::from_layer(layer);
            picture.write().non_parallel().to_buffered(Cursor::new(&mut file)).unwrap();
            // The exr crate cannot write DWA, so the blocks of this seed are those of ZIP.
            if compression == Compression::ZIP16 {
                let mut dwa = file.clone();
                let name = b"compression\0compression\0";
                let at = dwa.windows(name.len()).position(|found| found == name).unwrap();
                dwa[at + name.len() + 4] = 8;
                seeds.push(dwa);
            }
            seeds.push(file);
        }
    }
    seeds
}

/// Encodes pixels without chroma subsampling, and decodes them with both decoders.
fn jpeg_pixels(kind: u8, bytes: &[u8]) {
    let [width, quality, pixels @ ..] = bytes else { return };
    let channels = if kind & 4 == 0 { 1 } else { 3 };
    // gpuproc's own decoder does not take narrower images.
    let width = 6 + usize::from(*width);
    let height = (pixels.len() / (width * channels)).min(500);
    if height == 0 {
        return;
    }
    let frame = Frame::for_pixels([width, height], channels, Quality(1 + quality % 100), false);
    let pixels = &pixels[..width * height * channels];
    let file = encode(&frame, Picture::Pixels(pixels), &[], false).unwrap();
    let parsed =
        JpegFile::parse(&file, &Container::default()).expect("cannot parse an encoded file");
    let (ours, damage) = parsed.decode(1).expect("cannot decode an encoded file");
    assert_eq!(damage, None);
    assert_eq!((parsed.frame.size, parsed.frame.colour.channels()), ([width, height], channels));
    let other = image::load_from_memory_with_format(&file, ImageFormat::Jpeg).unwrap();
    // Each component may be rounded differently, and blue contains Cb with a factor of 1.772.
    let tolerance = if channels == 1 { 1 } else { 4 };
    let largest = ours.iter().zip(other.as_bytes()).map(|(a, b)| a.abs_diff(*b)).max();
    assert!(largest.is_some_and(|largest| largest <= tolerance), "{largest:?}");
}

fn jpeg_seeds() -> Vec<Vec<u8>> {
    macro_rules! fixtures {
        ($($name:literal),+) => {
            [$(&include_bytes!(concat!("../../../fixtures/jpeg/", $name, ".jpg"))[..]),+]
        };
    }
    let files = fixtures![
        "sequential_420",
        "sequential_422",
        "sequential_420_restarts",
        "sequential_444_optimised",
        "progressive_420",
        "progressive_444",
        "progressive_422_restarts",
        "progressive_grey"
    ];
    let pixels: Vec<u8> = (0..40 * 17 * 3u32).map(|i| ((i * i * 7) >> 5) as u8).collect();
    let file = |file: &&[u8]| [&[0][..], file].concat();
    let mut seeds: Vec<Vec<u8>> = files.iter().map(file).collect();
    for kind in [3, 7] {
        for quality in [0, 49, 89, 99] {
            seeds.push([&[kind, 39, quality][..], &pixels].concat());
        }
    }
    seeds
}

/// Small images of every supported format, after a byte that selects how they are processed.
fn image_seeds() -> Vec<Vec<u8>> {
    let noise: Vec<u8> = (0..9 * 7 * 8u32).map(|i| ((i * i * 7) >> 3) as u8).collect();
    let mut seeds = Vec::new();
    for (colour, bytes) in [
        (image::ExtendedColorType::Rgb8, 3),
        (image::ExtendedColorType::L8, 1),
        (image::ExtendedColorType::Rgba8, 4),
        (image::ExtendedColorType::Rgb16, 6),
        (image::ExtendedColorType::L16, 2),
    ] {
        for format in [
            ImageFormat::Png,
            ImageFormat::Jpeg,
            ImageFormat::Tiff,
            ImageFormat::WebP,
            ImageFormat::Bmp,
            ImageFormat::Pnm,
        ] {
            let mut file = Cursor::new(vec![seeds.len() as u8]);
            file.set_position(1);
            let pixels = &noise[..9 * 7 * bytes];
            // Not every format supports every sample type.
            if image::write_buffer_with_format(
                &mut OffsetWriter(&mut file),
                pixels,
                9,
                7,
                colour,
                format,
            )
            .is_ok()
            {
                seeds.push(file.into_inner());
            }
        }
    }
    macro_rules! fixtures {
        ($($name:literal),+) => {
            [$(&include_bytes!(concat!("../../../fixtures/images/", $name))[..]),+]
        };
    }
    for file in fixtures![
        "animation.png",
        "animation.webp",
        "clear.gif",
        "four-bits.bmp",
        "grey.gif",
        "lossy.jxl",
        "magick.pfm",
        "magick.png",
        "metadata.jpg",
        "mixed.gif",
        "rgba.jxl",
        "still.png"
    ] {
        seeds.push([&[seeds.len() as u8], file].concat());
    }
    // Floats: grey and RGBA TIFF, RGB EXR.
    let floats: Vec<f32> = noise.iter().map(|&v| f32::from(v) / 128.0).collect();
    use tiff::encoder::{TiffEncoder, colortype};
    let mut file = Cursor::new(Vec::new());
    let mut encoder = TiffEncoder::new(&mut file).unwrap();
    encoder.write_image::<colortype::Gray32Float>(9, 7, &floats[..9 * 7]).unwrap();
    seeds.push([&[0], &file.into_inner()[..]].concat());
    let mut file = Cursor::new(Vec::new());
    let mut encoder = TiffEncoder::new(&mut file).unwrap();
    encoder.write_image::<colortype::RGBA32Float>(9, 7, &floats[..9 * 7 * 4]).unwrap();
    seeds.push([&[3], &file.into_inner()[..]].concat());
    let mut file = Vec::new();
    let pixel = |at: exr::math::Vec2<usize>| (floats[at.0], floats[at.1], 0.5f32);
    let picture = exr::prelude::SpecificChannels::rgb(pixel);
    let picture = exr::prelude::Image::from_channels((9, 7), picture);
    let writer = exr::prelude::WritableImage::write(&picture).non_parallel();
    writer.to_buffered(Cursor::new(&mut file)).unwrap();
    seeds.push([&[1], &file[..]].concat());
    seeds
}

/// Writer whose position 0 is the second byte of the buffer, for encoders that seek back to the start.
struct OffsetWriter<'a>(&'a mut Cursor<Vec<u8>>);

impl std::io::Write for OffsetWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl std::io::Seek for OffsetWriter<'_> {
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        let to = match to {
            std::io::SeekFrom::Start(at) => std::io::SeekFrom::Start(at + 1),
            other => other,
        };
        self.0.seek(to).map(|at| at - 1)
    }
}

/// Blurs any bytes as an image.
pub fn blur(bytes: &[u8]) {
    let Some((&choice, picture)) = bytes.split_first() else { return };
    let folder = folder();
    fs::write(folder.path().join("a"), picture).unwrap();
    if let Err(error) = probe(&Source::from(folder.path().join("a")), 1 << 30) {
        assert_bad_input(&error);
    }
    const OUTPUTS: [&str; 8] =
        ["@o.png", "@o.jpg", "@o.tif", "@o.webp", "@o.exr", "@o.pnm", "@o.gif", "@o.pfm"];
    let output = OUTPUTS[usize::from(choice % 8)];
    let options: &[&str] = match choice / 8 % 4 {
        0 => &["--sigma=1.5"],
        1 => &["--method=box", "--radius=2", "--edge=wrap"],
        2 => &["--linear", "--sigma=0.7,0"],
        _ => &["--strict", "--edge=mirror", "--radius=4"],
    };
    let line = [&["blur", "@a", output], options].concat();
    run(folder.path(), &line, &[&output[1..]]);
}

/// Computes the histogram of any bytes as an image, with the image itself as the mask, or adjusts the image.
pub fn histogram(bytes: &[u8]) {
    let Some((&choice, picture)) = bytes.split_first() else { return };
    let folder = folder();
    fs::write(folder.path().join("a"), picture).unwrap();
    let options: &[&str] = match choice % 6 {
        0 => &["-o", "@o.csv"],
        1 => &["-o", "@o.json", "--mask=@a", "--range=data"],
        2 => &["--equalize=@o.png"],
        3 => &["--auto-levels=@o.png", "--alpha=skip-transparent"],
        4 => &["-o", "@o.svg", "--bins=7", "--alpha=weight", "--log"],
        _ => &["-o", "@o.csv", "--stats", "--roi=1,1,3,3", "--luma=linear", "--channels=luma"],
    };
    let line = [&["histogram", "@a"], options].concat();
    run(folder.path(), &line, &["o.csv", "o.json", "o.png", "o.svg"]);
}

/// Reads any bytes as a TIFF file: as an image, by rows, and as a volume.
pub fn tiff(bytes: &[u8]) {
    let folder = folder();
    let path = folder.path().join("a.tif");
    fs::write(&path, bytes).unwrap();
    let source = Source::from(path);
    let limits = Limits { pixels: 1 << 20, ..Limits::from(4 << 20) };
    let timings = Timings::new(false);
    let whole = read_image(&source, limits, &timings);
    if let Err(error) = &whole {
        assert_bad_input(error);
    }
    let rows = open_rows(&source, limits).expect("cannot open the file");
    if let (Ok(whole), Some(mut rows)) = (&whole, rows)
        && rows.header().first.orientation == Orientation::default()
    {
        let header = rows.header().clone();
        let image = &header.first.image;
        assert_eq!((image.width, image.height), (whole.width, whole.height));
        let mut band = vec![0; 3 * header.row_bytes()];
        for (number, part) in whole.samples.as_bytes().chunks(band.len()).enumerate() {
            let band = &mut band[..part.len()];
            rows.read(band).expect("cannot read rows of a valid file");
            assert!(band == part, "band {number} differs from the image");
        }
    }
    let layout = Layout::default();
    match VolumeFile::describe(&source, &layout).and_then(|file| file.read(limits, &timings)) {
        Ok(volume) => assert_eq!(volume.dims.iter().product::<usize>(), volume.samples.len()),
        Err(error) => assert_bad_input(&error),
    }
}

/// Files of `fixtures/tiff`.
fn tiff_seeds() -> Vec<Vec<u8>> {
    macro_rules! files {
        ($($name:literal)+) => {
            vec![$(include_bytes!(concat!("../../../fixtures/tiff/", $name)).to_vec()),+]
        };
    }
    files! {
        "i8_packbits.tif" "i16_be_lzw_predictor.tif" "u16_tile_lzw_predictor_planar.tif" "u16_big.tif" "u32.tif"
        "i32_zstd.tif" "f16_predictor.tif" "f32_zstd_predictor_tile.tif" "f64_predictor_be.tif" "bits12.tif"
        "five.tif" "associated.tif" "jpeg_strip.tif" "vips_jpeg_tile.tif" "palette16.tif" "cmyk.tif" "ycbcr.tif"
        "vips_white.tif" "magick_lsb.tif" "stack_imagej.tif" "stack_imagej_one_directory.tif" "stack.ome.tif"
        "stack_hyper.tif"
    }
}

/// Scans and sorts any bytes as an array, or computes a summed-area table of them as an image.
pub fn scan(bytes: &[u8]) {
    let Some((&choice, data)) = bytes.split_first() else { return };
    let folder = folder();
    let input = ["@a.txt", "@a.raw", "@a.npy", "@a.png"][usize::from(choice % 4)];
    fs::write(folder.path().join(&input[1..]), data).unwrap();
    let command: &[&str] = match choice / 4 % 8 {
        0 => &["scan", input, "@o.npy"],
        1 => &["scan", input, "@o.txt", "--inclusive"],
        2 => &["scan", input, "@o.raw", "--op=max", "--type=f32"],
        3 => &["scan", input, "@o.txt", "--checked", "--type=i64"],
        4 => &["scan", input, "@o.raw", "--op=product", "--type=f64", "--init=2"],
        5 => &["scan", input, "@o.npy", "--by-key", input],
        6 => &["sort", input, "@o.npy", "--descending", "--type=f32"],
        _ => &["sort", input, "@o.txt", "--argsort", "--format=raw"],
    };
    run(folder.path(), command, &["o.npy", "o.txt", "o.raw"]);
}

fn scan_seeds() -> Vec<Vec<u8>> {
    let numbers: Vec<u8> = (0..64u8).map(|i| i.wrapping_mul(37)).collect();
    let mut npy = npy_seeds().swap_remove(2);
    let picture = image_seeds().swap_remove(0).split_off(1);
    let mut seeds = Vec::new();
    for way in 0..8 {
        for (format, data) in
            [&b"3 1 4,1\n5 -9 2.5"[..], &numbers, &npy, &picture].iter().enumerate()
        {
            seeds.push([&[way * 4 + format as u8][..], data].concat());
        }
    }
    npy.truncate(70);
    seeds.push([&[2][..], &npy].concat());
    seeds
}

/// Meshes raw volumes with any name and any data. A newline separates them.
pub fn mesh(bytes: &[u8]) {
    let Some((&choice, rest)) = bytes.split_first() else { return };
    let Some(end) = rest.iter().position(|&byte| byte == b'\n') else { return };
    let name: String = String::from_utf8_lossy(&rest[..end])
        .chars()
        .map(|c| if matches!(c, '/' | '\0') { '_' } else { c })
        .take(60)
        .collect();
    let folder = folder();
    let name = format!("v{name}");
    fs::write(folder.path().join(&name), &rest[end + 1..]).unwrap();
    let input = format!("@{name}");
    let options: &[&str] = match choice % 8 {
        0 => &["@o.ply", "--iso=80"],
        1 => &["@o.ply", "--iso=auto", "--normals", "--close"],
        2 => &["@o.stl", "--iso=0.5", "--dtype=f32"],
        3 => &["@o.obj", "--iso=-3", "--close", "--largest", "--smooth=2"],
        4 => &["@o.glb", "--iso=100", "--simplify=0.5", "--stats"],
        5 => &["@o.ply", "--iso=7", "--ascii", "--endian=big", "--spacing=1,2,3"],
        6 => &["@o.ply", "--iso=7", "--header-bytes=3", "--preview=@o.png", "--size=20x20"],
        _ => &["@o.ply", "--iso=7", "--dims=3x3x3"],
    };
    let line = [&["mesh", &input], options].concat();
    run(folder.path(), &line, &["o.ply", "o.stl", "o.obj", "o.glb", "o.png"]);
}

fn mesh_seeds() -> Vec<Vec<u8>> {
    let data: Vec<u8> = (0..64u8).map(|i| i.wrapping_mul(37)).collect();
    let names =
        ["_4x4x4_uint8.raw", "_2x2x4_float32.raw", "_4x4x2_int16.raw", ".raw", "_1x1x64_i8.bin"];
    let mut seeds = Vec::new();
    for choice in 0..8 {
        for name in names {
            seeds.push([&[choice][..], name.as_bytes(), b"\n", &data].concat());
        }
    }
    seeds.push([&b"\0_9999999x9999999x999999_f64.raw\n"[..], &data].concat());
    seeds.push([&b"\0_4x4x4_uint8.raw.gz\n"[..], b"\x1f\x8b\x08\0\0\0\0\0\0\0"].concat());
    seeds
}

/// Reads any bytes as a volume: a byte that selects name and processing, then the file. Files for `.gz` names are
/// compressed here, so that mutations reach the header.
pub fn volume(bytes: &[u8]) {
    let Some((&choice, data)) = bytes.split_first() else { return };
    let folder = folder();
    let names = ["v", "v.nii", "v.hdr", "v.nhdr", "v.mhd", "v.mrc", "v.npy", "v.dcm", "s"];
    let name = names[usize::from(choice / 8) % names.len()];
    let packed = choice & 0x80 != 0;
    let name = if packed { format!("{name}.gz") } else { name.to_owned() };
    let mut path = folder.path().join(&name);
    // A folder of two slices, one of which is always valid.
    if name == "s" {
        fs::create_dir(&path).unwrap();
        let png = data.starts_with(b"\x89PNG");
        let (own, other) = if png { ("1.png", "0.png") } else { ("1", "0") };
        let other = path.join(other);
        fs::write(other, if png { PNG_SLICE } else { DICOM_SLICE }).unwrap();
        path.push(own);
    }
    if packed {
        let file = fs::File::create(&path).unwrap();
        let mut gz = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        std::io::Write::write_all(&mut gz, data).unwrap();
        gz.finish().unwrap();
    } else {
        fs::write(&path, data).unwrap();
    }
    // Data files that headers may name.
    fs::write(folder.path().join("v.img"), [7; 200]).unwrap();
    fs::write(folder.path().join("v.raw"), [3; 200]).unwrap();
    let source = Source::from(folder.path().join(&name));
    let layout = Layout { volume: (choice & 1 != 0).then_some(1), ..Layout::default() };
    if let Ok(file) = VolumeFile::describe(&source, &layout) {
        let samples = file.dims.iter().map(|&n| n as u64).try_fold(1u64, u64::checked_mul);
        assert_eq!(samples.map(|n| n * file.dtype.size() as u64), file.bytes());
        assert!(file.placement.as_ref().is_none_or(Placement::is_regular));
        if let Ok(whole) = file.read(1 << 20, &Timings::new(false)) {
            assert_slices_equal(&file, &whole.samples);
        }
    }
    let input = format!("@{name}");
    let command: &[&str] = match choice % 8 {
        0 => &["mesh", &input, "@o.ply", "--iso=80", "--normals"],
        1 => &["mesh", &input, "@o.ply", "--iso=auto", "--volume=2"],
        2 => &["mesh", &input, "@o.stl", "--iso=0", "--close", "--space=lps"],
        3 => &["mesh", &input, "@o.ply", "--iso=0", "--spacing=1,2,3", "--volume=1"],
        4 => &["mesh", &input, "@o.glb", "--iso=0", "--origin=1,2,3", "--stats"],
        5 => &["histogram", &input, "-o", "@o.csv", "--volume=1"],
        6 => &["histogram", &input, "-o", "@o.json", "--bins=7"],
        _ => &["mesh", &input, "@o.ply", "--iso=3", "--space=voxel"],
    };
    run(folder.path(), command, &["o.ply", "o.stl", "o.glb", "o.csv", "o.json"]);
    // `run` does not remove files in subfolders.
    fs::create_dir(folder.path().join("out")).unwrap();
    let outputs = ["o.nii.gz", "o.nrrd", "o.mha", "o.mrc", "o.npy", "o.raw"];
    let output = format!("@out/{}", outputs[usize::from(choice % 6)]);
    if run(folder.path(), &["blur", &input, &output, "--sigma=0", "--volume=1"], &[]) {
        let written = Source::from(folder.path().join(&output[1..]));
        // The name of a raw volume does not state the shape.
        if choice % 6 < 5 {
            let file = VolumeFile::describe(&written, &Layout::default());
            let file = file.unwrap_or_else(|error| panic!("{output}: {}", error.one_line()));
            file.read(1 << 22, &Timings::new(false)).expect("cannot read a written file");
        }
    }
}

/// Checks that `file`, read slice by slice, contains `samples`.
fn assert_slices_equal(file: &VolumeFile, samples: &Samples) {
    let mut reader = file.reader().expect("cannot open a valid volume");
    let mut slices = Vec::new();
    for _ in 0..file.dims[2] {
        let slice = reader.read(1).expect("cannot read a slice of a valid volume");
        slices.extend_from_slice(slice.as_bytes());
    }
    assert!(slices == samples.as_bytes(), "slices differ from the volume");
}

const DICOM_SLICE: &[u8] = include_bytes!("../../../fixtures/dicom/ct/06.dcm");
const PNG_SLICE: &[u8] = include_bytes!("../../../fixtures/dicom/slice.png");

fn volume_seeds() -> Vec<Vec<u8>> {
    macro_rules! fixtures {
        ($($name:literal),+) => {
            [$(&include_bytes!(concat!("../../../fixtures/volumes/", $name))[..]),+]
        };
    }
    let files = fixtures![
        "i16_scaled.nii",
        "u8_qform.nii.gz",
        "f32_big.nii",
        "i32_time_nifti2.nii.gz",
        "u16_pair.hdr",
        "i16_itk.mha",
        "f32_itk_zlib.mha",
        "u8_itk.mhd",
        "i16_ras_gzip.nrrd",
        "u8_text.nrrd",
        "f32_detached.nhdr",
        "i16_time.nrrd",
        "i8.mrc",
        "f16.mrc",
        "f32_big.mrc",
        "f32_fortran.npy",
        "f64_time.npy"
    ];
    macro_rules! slices {
        ($($name:literal),+) => {
            [$(&include_bytes!(concat!("../../../fixtures/dicom/", $name))[..]),+]
        };
    }
    let slices = slices![
        "slice.png",
        "ct/03.dcm",
        "ct/10.dcm",
        "signed/03.dcm",
        "big/03.dcm",
        "rle/03.dcm",
        "lossless/03.dcm",
        "jpeg/03.dcm",
        "deflated/03.dcm",
        "enhanced.dcm",
        "enhanced_implicit.dcm",
        "dose.dcm",
        "colour.dcm",
        "frames_jpeg.dcm",
        "frames_rle.dcm",
        "bits.dcm"
    ];
    let mut seeds = Vec::new();
    for (i, slice) in slices.into_iter().enumerate() {
        for name in [0u8, 7, 8] {
            seeds.push([&[(i as u8 % 8) | (name << 3)][..], slice].concat());
        }
    }
    for (i, file) in files.into_iter().enumerate() {
        let mut data = Vec::new();
        let is_packed = file.starts_with(&[0x1f, 0x8b]);
        match is_packed {
            true => {
                let read =
                    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(file), &mut data);
                read.expect("cannot decompress a fixture");
            }
            false => data.extend_from_slice(file),
        }
        // Detached data files have the name that the target writes.
        for (from, to) in [("f32_detached.raw", "v.raw"), ("u8_itk.raw", "v.raw")] {
            if let Some(at) = data.windows(from.len()).position(|part| part == from.as_bytes()) {
                data.splice(at..at + from.len(), to.bytes());
            }
        }
        for way in [i as u8 % 8, (i as u8 * 3 + 1) % 8] {
            for name in [0, 1, 2, 3, 4, 5, 6].into_iter().skip(i % 7).take(2) {
                seeds.push([&[way | name << 3 | u8::from(is_packed) << 7][..], &data].concat());
            }
        }
    }
    seeds
}

/// Separator between the files of a store in the bytes of a seed. Each file begins with its name and a newline.
const FILE_SEPARATOR: &[u8] = b"\xff\xfe\0/";

/// Numbers that metadata may claim.
const CLAIMED_NUMBERS: [&str; 14] = [
    "0",
    "1",
    "2",
    "3",
    "7",
    "16",
    "255",
    "65536",
    "16777216",
    "2147483647",
    "4294967296",
    "1099511627776",
    "18446744073709551615",
    "-1",
];

/// Reads any bytes as a Zarr store: a byte that selects the processing, two bytes that select a number in the metadata
/// and the value that replaces it, then the files.
pub fn zarr(bytes: &[u8]) {
    let [choice, number, claim, rest @ ..] = bytes else { return };
    let folder = folder();
    let root = folder.path().join("in.zarr");
    fs::create_dir(&root).unwrap();
    let mut rest = Some(rest);
    while let Some(bytes) = rest {
        let end = bytes.windows(FILE_SEPARATOR.len()).position(|part| part == FILE_SEPARATOR);
        let file = &bytes[..end.unwrap_or(bytes.len())];
        rest = end.map(|end| &bytes[end + FILE_SEPARATOR.len()..]);
        let Some(line) = file.iter().position(|&byte| byte == b'\n') else { continue };
        let name = String::from_utf8_lossy(&file[..line]);
        let is_plain = |part: &str| {
            let known = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
            !["", ".", ".."].contains(&part) && part.len() < 50 && part.chars().all(known)
        };
        if !name.split('/').all(is_plain) {
            continue;
        }
        let mut content = file[line + 1..].to_vec();
        if matches!(name.rsplit('/').next(), Some("zarr.json" | ".zarray")) {
            replace_number(
                &mut content,
                usize::from(*number),
                CLAIMED_NUMBERS[usize::from(*claim) % 14],
            );
        }
        let path = root.join(&*name);
        // Writing fails if an earlier file has the name of a folder.
        let _ = fs::create_dir_all(path.parent().unwrap()).and_then(|()| fs::write(path, content));
    }
    let source = Source::from(root);
    let layout = Layout {
        volume: (choice & 1 == 0).then_some(0),
        level: (choice & 64 != 0).then_some(1),
        ..Layout::default()
    };
    if let Ok(file) = VolumeFile::describe(&source, &layout) {
        let samples = file.dims.iter().map(|&n| n as u64).try_fold(1u64, u64::checked_mul);
        assert_eq!(samples.map(|n| n * file.dtype.size() as u64), file.bytes());
        assert!(file.placement.as_ref().is_none_or(Placement::is_regular));
        if let Ok(whole) = file.read(1 << 20, &Timings::new(false)) {
            assert_slices_equal(&file, &whole.samples);
        }
    }
    let command: &[&str] = match choice / 2 % 4 {
        0 => &["mesh", "@in.zarr", "@o.ply", "--iso=80", "--volume=1"],
        1 => &["mesh", "@in.zarr", "@o.ply", "--iso=auto", "--channel=1", "--time=1", "--close"],
        2 => &["histogram", "@in.zarr", "-o", "@o.csv", "--volume=1"],
        _ => &["histogram", "@in.zarr", "-o", "@o.csv", "--level=1", "--volume=1"],
    };
    run(folder.path(), command, &["o.ply", "o.csv"]);
    fs::create_dir(folder.path().join("out")).unwrap();
    let version = if choice & 8 == 0 { "--zarr-version=2" } else { "--zarr-version=3" };
    let mut line = vec!["blur", "@in.zarr", "@out/o.zarr", "--sigma=0", version, "--levels=2"];
    line.extend((choice & 16 == 0).then_some("--volume=1"));
    line.extend((choice & 32 == 0).then_some("--chunks=3x4x2"));
    // Blur writes all volumes, so their number is limited here.
    let few = |file: &VolumeFile| file.volumes <= 8 && file.bytes() <= Some(1 << 20);
    let one = Layout { volume: Some(0), ..Layout::default() };
    let is_small = VolumeFile::describe(&source, &one).is_ok_and(|file| few(&file));
    if is_small && run(folder.path(), &line, &[]) {
        let written = Source::from(folder.path().join("out/o.zarr"));
        let file = VolumeFile::describe(&written, &one);
        let file = file.unwrap_or_else(|error| panic!("{}", error.one_line()));
        file.read(1 << 22, &Timings::new(false)).expect("cannot read a written store");
    }
}

/// Replaces the number with index `at`, counted from 0, in a text, if there are so many numbers.
fn replace_number(text: &mut Vec<u8>, at: usize, with: &str) {
    let is_digit = |i: usize| text.get(i).is_some_and(u8::is_ascii_digit);
    let start = (0..text.len()).filter(|&i| is_digit(i) && (i == 0 || !is_digit(i - 1))).nth(at);
    if let Some(start) = start {
        let end = (start..).find(|&i| !is_digit(i)).unwrap_or(text.len());
        text.splice(start..end, with.bytes());
    }
}

fn zarr_seeds() -> Vec<Vec<u8>> {
    let text = include_str!("../../../fixtures/zarr/stores.json");
    let stores: serde_json::Value = serde_json::from_str(text).expect("invalid fixture");
    let mut seeds = Vec::new();
    for (i, store) in stores.as_array().expect("a list").iter().enumerate() {
        let mut bytes = Vec::new();
        for (name, digits) in store["files"].as_object().expect("files") {
            if !bytes.is_empty() {
                bytes.extend(FILE_SEPARATOR);
            }
            bytes.extend(name.as_bytes());
            bytes.push(b'\n');
            let digits = digits.as_str().expect("digits").as_bytes();
            let digit = |byte: u8| (byte as char).to_digit(16).expect("a digit") as u8;
            bytes.extend(digits.chunks(2).map(|pair| 16 * digit(pair[0]) + digit(pair[1])));
        }
        // The store without changes, then with single numbers replaced.
        for way in 0..4 {
            seeds.push([&[(i as u8).wrapping_mul(29) ^ way, 255, 0], &bytes[..]].concat());
        }
        for number in (i as u8 % 2..24).step_by(2) {
            let claim = number.wrapping_mul(5).wrapping_add(i as u8);
            seeds.push([&[i as u8 ^ number, number, claim], &bytes[..]].concat());
        }
    }
    seeds
}

/// The first bytes of part files.
const PART_MAGIC: &[u8] = b"gpuproc part 3\n";

/// Summary of a part file, as `gpuproc::io::partial` writes it.
#[derive(serde::Serialize, serde::Deserialize)]
struct Summary {
    identity: Identity,
    /// Kind, length and checksum of each record.
    entries: Vec<(u8, u64, u32)>,
    totals: Vec<u8>,
}

/// Merges any bytes as a part file. Checksums are corrected first, so that they do not hide mutations of the records.
pub fn part(bytes: &[u8]) {
    let folder = folder();
    let file = with_correct_checksums(bytes).unwrap_or_else(|| bytes.to_vec());
    fs::write(folder.path().join("a.part"), &file).unwrap();
    for output in ["o.json", "o.csv", "o.png", "o.ply", "o.part"] {
        run(folder.path(), &["merge", "@a.part", "-o", &format!("@{output}")], &[output]);
    }
}

/// Corrects the checksums and lengths of a part file. The last record takes all remaining bytes. `None` if the bytes do
/// not begin and end like a part file.
fn with_correct_checksums(bytes: &[u8]) -> Option<Vec<u8>> {
    let (body, tail) = bytes.strip_prefix(PART_MAGIC)?.split_last_chunk::<12>()?;
    let of_summary = u64::from_le_bytes(*tail.first_chunk()?);
    let (mut records, summary) =
        body.split_at_checked(body.len().checked_sub(usize::try_from(of_summary).ok()?)?)?;
    let mut file = [PART_MAGIC, records].concat();
    let summary = match postcard::from_bytes::<Summary>(summary) {
        Err(_) => summary.to_vec(),
        Ok(mut summary) => {
            let last = summary.entries.len().saturating_sub(1);
            for (number, (_, length, checksum)) in summary.entries.iter_mut().enumerate() {
                let all = records.len();
                let len = if number == last { all } else { all.min(*length as usize) };
                let (record, rest) = records.split_at(len);
                (*length, *checksum, records) = (len as u64, crc32c::crc32c(record), rest);
            }
            postcard::to_allocvec(&summary).ok()?
        }
    };
    file.extend(&summary);
    file.extend((summary.len() as u64).to_le_bytes());
    file.extend(crc32c::crc32c(&summary).to_le_bytes());
    Some(file)
}

fn part_seeds() -> Vec<Vec<u8>> {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("v_4x4x4_uint8.raw"), (0..64).map(|i| i * 3).collect::<Vec<u8>>()).unwrap();
    fs::write(path("v_4x4x4_float32.raw"), [0x40; 256]).unwrap();
    fs::write(path("a.npy"), &npy_seeds()[1]).unwrap();
    fs::write(path("f.npy"), &npy_seeds()[5]).unwrap();
    let lines = [
        "histogram @v_4x4x4_uint8.raw -o @p.part",
        "histogram @v_4x4x4_float32.raw -o @p.part --bins=7 --range=0,9",
        "mesh @v_4x4x4_uint8.raw @p.part --iso=80",
        "mesh @v_4x4x4_uint8.raw @p.part --iso=90 --normals",
        "scan @a.npy @p.part",
        "scan @f.npy @p.part --op=max",
    ];
    let mut seeds = Vec::new();
    for shard in ["--shard=0/1", "--shard=1/2"] {
        for line in lines {
            let words: Vec<&str> = line.split(' ').chain([shard]).collect();
            let copy = || seeds.push(fs::read(path("p.part")).expect("the part file is missing"));
            assert!(run_then(folder.path(), &words, &["p.part"], copy), "{line} {shard}");
        }
    }
    seeds
}
