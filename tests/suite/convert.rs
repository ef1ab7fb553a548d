//! Conversion of samples: types, ranges and channels against a naive reference, and the command on every kind of input.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use gpuproc::{
    Channels, Convert as Library, ConvertScale, Device, Image, SampleType, Volume,
    data::{
        dtype::Dtype,
        grid::{Alpha, Grid},
        samples::Samples,
    },
    device::{Device as Worker, DeviceChoice},
    kernels::{
        chain::apply,
        convert::{ChannelSet, Convert, Scale},
        filter::Filter,
    },
    util::timings::Timings,
    write,
};

use crate::{
    asserts::assert_contains,
    common::{
        Noise, all_types, assert_batch_runs, assert_volume_runs, finite_types, numbers, run,
        type_range, works,
    },
    inputs::{fixture, load_image},
};

const SETS: [ChannelSet; 8] = [
    ChannelSet::Grey,
    ChannelSet::GreyAlpha,
    ChannelSet::Rgb,
    ChannelSet::Rgba,
    ChannelSet::Red,
    ChannelSet::Green,
    ChannelSet::Blue,
    ChannelSet::Alpha,
];

fn converted(convert: Convert, grid: &Grid) -> gpuproc::Result<Grid> {
    let device = Worker::new(&DeviceChoice::Cpu, Arc::new(Timings::new(false)));
    apply(&convert, &device, grid)
}

fn grid(channels: usize, samples: Samples) -> Grid {
    let alpha = if matches!(channels, 2 | 4) { Alpha::Straight } else { Alpha::None };
    Grid { dims: [samples.len() / channels, 1, 1], channels, alpha, samples }
}

/// The value as a sample of type `dtype`: rounded, halves away from 0, and clamped.
fn stored(value: f64, dtype: Dtype) -> f64 {
    let (low, high) = type_range(dtype);
    match dtype {
        Dtype::F64 => value,
        Dtype::F32 => f64::from(value as f32),
        _ if value.is_nan() => 0.0,
        _ => ((value.abs() + 0.5).floor() * value.signum()).clamp(low, high),
    }
}

fn assert_equal(found: &[f64], expected: &[f64], case: &str) {
    assert_eq!(found.len(), expected.len(), "{case}");
    let same = |(a, b): (&f64, &f64)| a == b || a.is_nan() && b.is_nan();
    let differs = found.iter().zip(expected).position(|pair| !same(pair));
    assert_eq!(differs.map(|at| (at, found[at], expected[at])), None, "{case}");
}

#[test]
fn every_pair_of_types_is_converted_exactly() {
    let mut inputs = all_types(500).to_vec();
    let near =
        [0.5, 1.5, 127.5, 254.5, 255.5, 32_767.5, 65_535.4, 2_147_483_647.5, 4_294_967_295.5];
    let ends = [f64::MAX, f64::INFINITY, f64::NAN, 1e10, 0.25, 0.0];
    let both: Vec<f64> = near.iter().chain(&ends).flat_map(|&value| [value, -value]).collect();
    inputs.push(Samples::F64(both.clone()));
    inputs.push(Samples::F32(both.iter().map(|&value| value as f32).collect()));
    for samples in inputs {
        for dtype in Dtype::SAMPLES {
            let case = format!("{} to {dtype}", samples.dtype());
            let result =
                converted(Convert::new(Some(dtype), None, None), &grid(1, samples.clone()));
            let result = result.unwrap().samples;
            assert_eq!(result.dtype(), dtype);
            let expected: Vec<f64> =
                numbers(&samples).into_iter().map(|value| stored(value, dtype)).collect();
            assert_equal(&numbers(&result), &expected, &case);
        }
    }
}

/// The smallest finite sample that at least `percent` percent of the finite samples do not exceed.
fn percentile(samples: &[f64], percent: f64) -> f64 {
    let mut finite: Vec<f64> = samples.iter().copied().filter(|value| value.is_finite()).collect();
    finite.sort_by(f64::total_cmp);
    let rank = (percent * finite.len() as f64 / 100.0).ceil() as usize;
    finite[rank.max(1) - 1]
}

/// 0 to 1 for floats.
fn own_range(dtype: Dtype) -> [f64; 2] {
    let (low, high) = type_range(dtype);
    if dtype.is_float() { [0.0, 1.0] } else { [low, high] }
}

#[test]
fn ranges_become_those_of_the_type() {
    for samples in all_types(1000).into_iter().chain(finite_types(999)) {
        let values = numbers(&samples);
        for scale in [Scale::MinMax, Scale::Percentile, Scale::Full, Scale::Range([-20.0, 30.5])] {
            let [low, high] = match scale {
                Scale::MinMax => [percentile(&values, 0.0), percentile(&values, 100.0)],
                Scale::Percentile => [percentile(&values, 0.5), percentile(&values, 99.5)],
                Scale::Full => own_range(samples.dtype()),
                Scale::Range(range) => range,
            };
            for dtype in Dtype::SAMPLES {
                let case = format!("{} to {dtype}, {scale:?}", samples.dtype());
                let convert = Convert::new(Some(dtype), Some(scale), None);
                let result = converted(convert, &grid(1, samples.clone())).unwrap();
                let [bottom, top] = own_range(dtype);
                for (found, &value) in numbers(&result.samples).into_iter().zip(&values) {
                    let share = (value.clamp(low, high) - low) / (high - low);
                    let exact = bottom + share * (top - bottom);
                    let error = (found - exact).abs();
                    let rounding = match dtype {
                        Dtype::F32 => 6e-8,
                        Dtype::F64 => 1e-15,
                        _ => 0.5 + 1e-15 * (top - bottom),
                    };
                    let nan = if dtype.is_float() { found.is_nan() } else { found == 0.0 };
                    let is_right = if value.is_nan() { nan } else { error <= rounding };
                    assert!(is_right, "{case}: {value} became {found}, not {exact}");
                }
            }
        }
    }
    // u16 to u8 is a division by 257, and back a multiplication.
    let all = Samples::U16((0..=u16::MAX).collect());
    let narrow = Convert::new(Some(Dtype::U8), Some(Scale::Full), None);
    let found = converted(narrow, &grid(1, all.clone())).unwrap().samples;
    let exact: Vec<u8> = (0..=u16::MAX).map(|v| ((u32::from(v) + 128) / 257) as u8).collect();
    assert!(found == Samples::U8(exact));
    // Constant samples, none that is finite, and the largest numbers.
    for (samples, expected) in [
        (Samples::I16(vec![7, 7]), vec![0, 0]),
        (Samples::F32(vec![f32::NAN, f32::INFINITY]), vec![0, 0]),
        (
            Samples::F64(vec![-f64::MAX, f64::MAX / 2.0, f64::MAX, f64::INFINITY]),
            vec![0, 191, 255, 255],
        ),
        (Samples::F64(vec![0.0, f64::MAX / 4.0, f64::MAX]), vec![0, 64, 255]),
    ] {
        for scale in [Scale::MinMax, Scale::Percentile] {
            let convert = Convert::new(Some(Dtype::U8), Some(scale), None);
            let found = converted(convert, &grid(1, samples.clone())).unwrap().samples;
            assert_eq!(found, Samples::U8(expected.clone()), "{samples:?} {scale:?}");
        }
    }
}

/// Alpha does not count in the range, and remains the same share of full intensity.
#[test]
fn alpha_is_a_share_of_full_intensity() {
    let full = |dtype| match dtype {
        Dtype::U8 => Some(255.0),
        Dtype::U16 => Some(65_535.0),
        Dtype::F32 | Dtype::F64 => Some(1.0),
        _ => None,
    };
    for (from, channels) in [Dtype::U8, Dtype::U16, Dtype::F32, Dtype::F64]
        .into_iter()
        .flat_map(|dtype| [2, 4].map(|channels| (dtype, channels)))
    {
        let own = full(from).unwrap();
        let values: Vec<f64> =
            (0..channels * 20).map(|at| (at * 3 % 64) as f64 / 255.0 * own).collect();
        let samples = Samples::F64(values).converted(from).unwrap();
        let input = grid(channels, samples.clone());
        for (to, scale) in Dtype::SAMPLES
            .into_iter()
            .flat_map(|dtype| [None, Some(Scale::MinMax), Some(Scale::Full)].map(|s| (dtype, s)))
        {
            let result = converted(Convert::new(Some(to), scale, None), &input);
            let Some(full) = full(to) else {
                assert_contains(&result.unwrap_err().one_line(), "have no alpha");
                continue;
            };
            let found = numbers(&result.unwrap().samples);
            let alpha = |all: Vec<f64>| all.into_iter().skip(channels - 1).step_by(channels);
            for (found, own_alpha) in alpha(found.clone()).zip(alpha(numbers(&samples))) {
                let rounding = if to.is_float() { 6e-8 } else { 0.5 };
                let error = (found - own_alpha / own * full).abs();
                assert!(error <= rounding, "{from} to {to}: {own_alpha} became {found}");
            }
            if scale == Some(Scale::MinMax) {
                let colours = found.chunks(channels).flat_map(|pixel| &pixel[..channels - 1]);
                let most = colours.copied().fold(0.0, f64::max);
                assert_eq!(most, full, "{from} to {to}");
            }
        }
    }
}

#[test]
fn channels_are_chosen() {
    for (channels, samples) in
        (1..=4).flat_map(|channels| finite_types(channels * 50).map(|samples| (channels, samples)))
    {
        let dtype = samples.dtype();
        let full = match dtype {
            Dtype::U8 => Some(255.0),
            Dtype::U16 => Some(65_535.0),
            Dtype::F32 | Dtype::F64 => Some(1.0),
            _ => None,
        };
        let has_alpha = channels % 2 == 0;
        for set in SETS {
            let case = format!("{channels} channels of {dtype}: {set:?}");
            let result =
                converted(Convert::new(None, None, Some(set)), &grid(channels, samples.clone()));
            let adds_alpha = matches!(set, ChannelSet::GreyAlpha | ChannelSet::Rgba) && !has_alpha;
            let is_colour = matches!(set, ChannelSet::Red | ChannelSet::Green | ChannelSet::Blue);
            if is_colour && channels < 3 || set == ChannelSet::Alpha && !has_alpha {
                assert_contains(&result.unwrap_err().one_line(), "there is no channel");
                continue;
            }
            if adds_alpha && full.is_none() {
                assert_contains(&result.unwrap_err().one_line(), "have no alpha");
                continue;
            }
            let result = result.unwrap();
            let mut expected = Vec::new();
            for pixel in numbers(&samples).chunks(channels) {
                let rgb = if channels < 3 { [pixel[0]; 3] } else { [pixel[0], pixel[1], pixel[2]] };
                let alpha = if has_alpha { pixel[channels - 1] } else { full.unwrap_or(0.0) };
                let luminance = (1063.0 * rgb[0] + 3576.0 * rgb[1] + 361.0 * rgb[2]) / 5000.0;
                // Halves are rounded up.
                let grey = if dtype.is_float() { luminance } else { (luminance + 0.5).floor() };
                let grey = if channels < 3 { pixel[0] } else { grey };
                expected.extend(match set {
                    ChannelSet::Grey => vec![grey],
                    ChannelSet::GreyAlpha => vec![grey, alpha],
                    ChannelSet::Rgb => rgb.to_vec(),
                    ChannelSet::Rgba => [&rgb[..], &[alpha]].concat(),
                    ChannelSet::Red => vec![rgb[0]],
                    ChannelSet::Green => vec![rgb[1]],
                    ChannelSet::Blue => vec![rgb[2]],
                    ChannelSet::Alpha => vec![alpha],
                });
            }
            assert_eq!(result.channels, expected.len() / 50, "{case}");
            let found = numbers(&result.samples);
            assert_eq!(found.len(), expected.len(), "{case}");
            for (found, expected) in found.iter().zip(expected) {
                let bound = if dtype == Dtype::F32 { 1e-5 } else { 1e-12 };
                let rounding = if dtype.is_float() { bound } else { 0.0 };
                assert!((found - expected).abs() <= rounding, "{case}: {found}, not {expected}");
            }
        }
    }
}

/// All files in a folder and below, by name.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let inner = files(&path).into_iter();
            all.extend(
                inner.map(|(name, bytes)| (path.file_name().unwrap().into(), name, bytes)).map(
                    |(folder, name, bytes): (PathBuf, PathBuf, Vec<u8>)| (folder.join(name), bytes),
                ),
            );
        } else {
            all.insert(path.file_name().unwrap().into(), fs::read(&path).unwrap());
        }
    }
    all
}

/// Runs `convert` and `blur --sigma 0` to two folders, and compares all files and messages.
fn assert_is_plain(folder: &Path, inputs: &str, output: &str, more: &str) {
    let line = |command: &str, to: &str| format!("{command} {inputs} -o {to}/{output} {more}");
    for name in ["new", "old"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    let found = run(folder, &line("convert", "new"));
    let expected = run(folder, &line("blur --sigma 0", "old"));
    assert_eq!(found.0, expected.0, "{inputs} {output} {more}: {found:?}");
    let mut lines = [found.1.replace("new/", "old/"), expected.1]
        .map(|text| text.replace("convert", "blur").lines().map(str::to_owned).collect::<Vec<_>>());
    lines.iter_mut().for_each(|lines| lines.sort());
    assert_eq!(lines[0], lines[1], "{inputs} {output}");
    let [new, old] = ["new", "old"].map(|name| files(&folder.join(name)));
    assert!(!new.is_empty() || found.0 != 0, "{inputs} {output}");
    assert!(new == old, "{inputs} {output} {more}: {:?}", new.keys());
    for name in ["new", "old"] {
        fs::remove_dir_all(folder.join(name)).unwrap();
    }
}

/// Writes an image of 7 x 5 pixels for each type and set of channels. Returns their names.
fn write_images(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let sets = [Channels::Gray, Channels::GrayAlpha, Channels::Rgb, Channels::Rgba];
    for (channels, set) in (1..=4).zip(sets) {
        let count = 35 * channels;
        let noise = Noise(channels as u64).bytes(count);
        let wide = noise.iter().map(|&value| u16::from(value) * 250 + 3).collect();
        let floats = noise.iter().map(|&value| f32::from(value) / 250.0).collect();
        let name = |dtype: &str| format!("{dtype}-{channels}.tif");
        let path = |dtype: &str| folder.join(name(dtype));
        write(path("u8"), &Image::new(7, 5, set, noise).unwrap()).unwrap();
        write(path("u16"), &Image::<u16>::new(7, 5, set, wide).unwrap()).unwrap();
        write(path("f32"), &Image::<f32>::new(7, 5, set, floats).unwrap()).unwrap();
        names.extend(["u8", "u16", "f32"].map(name));
    }
    names
}

#[test]
fn without_options_images_are_those_of_blur_with_sigma_0() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let inputs = write_images(folder).join(" ");
    for format in ["png", "jpeg", "tiff", "exr", "webp", "gif", "bmp", "pnm", "pfm"] {
        assert_is_plain(folder, &inputs, "", &format!("--format {format}"));
    }
    // Metadata, animations, pages, and other decoders.
    let names = ["animation.png", "metadata.jpg", "texts.png", "attributes.exr", "mixed.gif"];
    for name in names {
        fs::copy(fixture("images").join(name), folder.join(name)).unwrap();
    }
    let inputs = names.join(" ");
    for format in ["png", "webp", "tiff"] {
        assert_is_plain(folder, &inputs, "", &format!("--format {format}"));
    }
    assert_is_plain(folder, "metadata.jpg", "o.jpg", "--quality 70");
    assert_is_plain(folder, "animation.png", "o.gif", "--page 2..3");
    assert_is_plain(folder, "u16-3.tif", "o.jpg", "--strict");
}

#[test]
fn without_options_volumes_are_those_of_blur_with_sigma_0() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let names =
        ["i16_ras_gzip.nrrd", "u8_qform.nii.gz", "i16_scaled.nii", "f32_itk_zlib.mha", "i16.npy"];
    for name in names {
        fs::copy(fixture("volumes").join(name), folder.join(name)).unwrap();
    }
    for extension in ["nii.gz", "nrrd", "mha", "mrc", "npy", "zarr", "tif", "raw"] {
        assert_is_plain(folder, &names.join(" "), &format!("{{stem}}.{extension}"), "");
    }
    fs::create_dir(folder.join("slices")).unwrap();
    for (number, byte) in [7, 9, 8].into_iter().enumerate() {
        let slice = Image::new(4, 3, Channels::Gray, vec![byte; 12]).unwrap();
        write(folder.join(format!("slices/{number}.png")), &slice).unwrap();
    }
    for output in ["o.nrrd", "o.zarr"] {
        assert_is_plain(folder, "slices", output, "--stack");
    }
}

#[test]
fn conversions_run_on_volumes_batches_shards_and_stores() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let bytes = Noise(5).bytes(12 * 10 * 9).iter().map(|&v| v / 3 + 20).collect::<Vec<_>>();
    fs::write(folder.join("v_12x10x9_uint8.raw"), &bytes).unwrap();
    for (flags, scale) in [
        ("--scale minmax", Scale::MinMax),
        ("--scale=percentile", Scale::Percentile),
        ("--scale 30..90", Scale::Range([30.0, 90.0])),
    ] {
        let input = grid(1, Samples::U8(bytes.clone()));
        let expected = converted(Convert::new(None, Some(scale), None), &input).unwrap().samples;
        assert_volume_runs(folder, ["convert", flags, "20K"], expected.as_bytes());
        fs::remove_file(folder.join("parts.raw")).unwrap();
    }
    let input = grid(1, Samples::U8(Noise(5).bytes(12 * 90)));
    let narrow = Convert::new(None, Some(Scale::Range([-10.0, 60.5])), None);
    let expected = converted(narrow, &input).unwrap().samples;
    assert_batch_runs(folder, ["convert", "--scale -10..60.5"], expected.as_bytes());
    // A chain is its steps, one after another.
    works(folder, "convert a.pgm wide.tif --dtype i16 --scale percentile");
    works(folder, "blur wide.tif two.tif --sigma 1");
    works(folder, "convert a.pgm one.tif --dtype i16 --scale percentile --then blur --sigma 1");
    assert!(fs::read(folder.join("one.tif")).unwrap() == fs::read(folder.join("two.tif")).unwrap());
    works(folder, "blur a.pgm --sigma 1 --then convert --dtype u16 --scale full -o end.pgm");
    works(folder, "blur a.pgm middle.pgm --sigma 1");
    works(folder, "convert middle.pgm end2.pgm --dtype u16 --scale full");
    assert!(
        fs::read(folder.join("end.pgm")).unwrap() == fs::read(folder.join("end2.pgm")).unwrap()
    );
}

/// A warning names the samples and the type, once for all shards. With `--strict`, it is an error.
#[test]
fn clamped_samples_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let volume = Volume::new([2, 2, 3], vec![-5i16, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8, 300]).unwrap();
    write(folder.join("v.nrrd"), &volume).unwrap();
    let text = "samples are -5 to 300: those outside of u8 (0 to 255) are clamped";
    assert_contains(&works(folder, "convert v.nrrd o.nrrd --dtype u8"), text);
    let (code, stderr) = run(folder, "convert v.nrrd p.nrrd --dtype u8 --strict");
    assert_eq!(code, 4, "{stderr}");
    assert!(!folder.join("p.nrrd").exists());
    let shards =
        [0, 1].map(|n| works(folder, &format!("convert v.nrrd s.nrrd --dtype u8 --shard {n}/2")));
    assert_contains(&shards[1], text);
    assert!(!shards[0].contains("clamped"), "{shards:?}");
    let one = fs::read(folder.join("o.nrrd")).unwrap();
    assert!(fs::read(folder.join("s.nrrd")).unwrap() == one);
    for flags in
        ["--dtype i32", "--dtype f32", "--dtype u8 --scale minmax", "--dtype u8 --scale 0..99"]
    {
        assert_eq!(works(folder, &format!("convert v.nrrd o.nrrd {flags}")), "", "{flags}");
    }
}

/// The type of the result is not that of raw samples. Floats that hold integers keep their values in pictures.
#[test]
fn types_and_labels_are_those_of_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("x.raw"), bytemuck::cast_slice(&[1i16, 2, 3, 260, -1, 0])).unwrap();
    works(folder, "convert x.raw --dims 3x2x1 --raw-dtype i16 o.nrrd --dtype f32");
    let volume = gpuproc::read(folder.join("o.nrrd")).unwrap().into_volume::<f32>().unwrap();
    assert_eq!(volume.samples(), [1.0, 2.0, 3.0, 260.0, -1.0, 0.0]);
    let (code, stderr) = run(folder, "convert x.raw o.nrrd --dims 3x2x1 --dtype u64");
    assert_eq!(code, 2, "{stderr}");
    assert_contains(&run(folder, "convert x.raw o.nrrd --scale 9..3").1, "LOW..HIGH");
    write(folder.join("a.png"), &Image::new(3, 1, Channels::Gray, vec![0u8, 7, 255]).unwrap())
        .unwrap();
    works(folder, "convert a.png b.png --dtype f32");
    assert_eq!(fs::read(folder.join("a.png")).unwrap(), fs::read(folder.join("b.png")).unwrap());
    // OpenEXR holds light times alpha.
    let light = Image::new(1, 1, Channels::Rgba, vec![0.5f32, 0.25, 1.0, 0.5]).unwrap();
    write(folder.join("light.exr"), &light).unwrap();
    works(folder, "convert light.exr light.png --dtype u8 --scale full");
    let found = load_image(folder.join("light.png")).samples;
    assert_eq!(found, Samples::U8(vec![128, 64, 255, 128]));
    // Channels and bits that the user gives up cause no warning.
    write(folder.join("wide.png"), &Image::new(1, 1, Channels::GrayAlpha, vec![9u16, 7]).unwrap())
        .unwrap();
    let line = "convert wide.png o.jpg --dtype u8 --scale full --channels grey --strict";
    assert_eq!(works(folder, line), "");
    // Labels stay labels, which BMP would change, unless they are scaled.
    let text = "this format cannot hold labels of 16 bits";
    for step in ["--dtype u16", "--dtype u16 --channels grey"] {
        let (code, stderr) = run(folder, &format!("label a.png --then convert {step} -o l.bmp"));
        assert_eq!(code, 2, "{stderr}");
        assert_contains(&stderr, text);
    }
    works(folder, "label a.png --then convert --dtype u8 --scale full -o l.bmp");
}

#[test]
fn the_library_converts_to_the_type_of_the_result() {
    let device = Device::cpu();
    let image = Image::new(2, 1, Channels::Rgb, vec![0u16, 0, 0, 65_535, 65_535, 65_535]).unwrap();
    let full = Library::new().scale(ConvertScale::Full);
    let grey: Image<u8> = full.channels(ChannelSet::Grey).run(&device, &image).unwrap();
    assert_eq!((grey.channels(), grey.samples()), (Channels::Gray, &[0, 255][..]));
    let volume = Volume::new([2, 1, 1], vec![1.5f64, -3.0]).unwrap();
    let rounded: Volume<i8> = Library::new().run(&device, &volume).unwrap();
    assert_eq!(rounded.samples(), [2, -3]);
    let colours = Library::new().channels(ChannelSet::Rgb);
    let error = colours.run::<_, u8>(&device, &volume).unwrap_err();
    assert_contains(&error.to_string(), "a volume in memory has one channel");
    let wrong = Library::new().scale(ConvertScale::Range([3.0, 3.0]));
    assert_contains(&wrong.run::<_, u8>(&device, &volume).unwrap_err().to_string(), "ascending");
    assert!(Dtype::SAMPLES.contains(&SampleType::U8));
    assert!(Convert::new(None, None, None).properties().is_identity);
}
