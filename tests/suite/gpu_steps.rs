//! Steps that run on a GPU without transfers between them: their results, and what they find out about the samples, are
//! those of the CPU, whatever is in the padding of rows.

use std::{fs, path::Path, sync::Arc};

use gpuproc::{
    data::{
        dtype::Dtype,
        grid::{Alpha, Grid, GridType, Shape},
        noise::Noise,
        samples::Samples,
    },
    device::{Device, Kernel},
    gpu::Context,
    jpeg::{ColourModel, Component, Frame, PixelEncoding, Quality, SparseCoefficients, forward},
    kernels::{
        blur::Blur,
        chain::apply,
        filter::Filter,
        gpu_chain::{GpuChain, GpuInput, GpuOutput},
        jpeg::{Decode, Encoder},
        median::Median,
        morph::{ElementShape, Morph, Operation},
        threshold::{Classify, Threshold},
    },
    util::timings::Timings,
};

use crate::{
    blur_reference::gaussian,
    common::{Subject, device_names, encode_jpeg, gpuproc, subjects},
    jpeg::random_coefficients,
};

type Steps<'a> = Vec<&'a dyn Filter>;

/// The result of `steps`, one after the other, on the CPU.
fn on_cpu(steps: &[&dyn Filter], input: &Grid) -> Grid {
    let device = Device::new(&"cpu".parse().unwrap(), Arc::new(Timings::new(false)));
    let copy = Grid { samples: input.samples.copy().unwrap(), ..*input };
    steps.iter().fold(copy, |grid, step| apply(*step, &device, &grid).unwrap())
}

fn grid(dims: [usize; 3], channels: usize, samples: Samples) -> Grid {
    Grid { dims, channels, alpha: Alpha::None, samples }
}

/// Samples of type `dtype` from 0 to 255.
fn noise_of(dtype: Dtype, count: usize, noise: &mut Noise) -> Samples {
    Samples::U8(noise.bytes(count)).converted(dtype).unwrap()
}

fn morph(operation: Operation) -> Morph {
    Morph::new(operation, ElementShape::Ball, [2, 2, 1])
}

fn threshold(values: &[f64]) -> Classify {
    Classify::from(Threshold::Values(values.to_vec()))
}

fn chain<'a>(steps: &[&'a dyn Filter], encoding: Option<PixelEncoding>) -> GpuChain<'a> {
    GpuChain { steps: steps.to_vec(), before: None, encoding }
}

/// Every filter, on grids whose rows are shorter than the unit to which they are padded, as long, or longer.
#[test]
fn padding_of_rows_changes_no_result() {
    let (blur, median) = (gaussian(1.0), Median::new(40.0, [1, 2, 1]));
    let (open, dilate) = (morph(Operation::Open), morph(Operation::Dilate));
    let (mask, classes) = (threshold(&[120.0]), threshold(&[60.0, 130.0]));
    let chains: [Steps<'_>; 5] = [
        vec![&blur, &median, &open, &blur],
        vec![&median, &mask, &dilate],
        vec![&open, &dilate],
        vec![&blur, &classes, &median],
        vec![&mask, &blur, &open],
    ];
    let mut noise = Noise(11);
    for (dims, channels, dtype, tried) in [
        ([1, 1, 1], 1, Dtype::U8, &[0, 1, 3][..]),
        ([7, 5, 1], 3, Dtype::U8, &[0, 1, 3, 4]),
        ([17, 9, 3], 1, Dtype::U8, &[0, 1, 3, 4]),
        ([16, 4, 2], 3, Dtype::U8, &[0, 1]),
        ([5, 6, 1], 4, Dtype::U8, &[1, 2]),
        ([33, 5, 2], 1, Dtype::U16, &[0, 3]),
        ([3, 7, 1], 3, Dtype::U16, &[1, 3]),
        ([18, 3, 2], 2, Dtype::I16, &[1, 2]),
        ([19, 4, 1], 1, Dtype::F32, &[0, 1]),
    ] {
        let shape = Shape { dims, channels };
        let input = grid(dims, channels, noise_of(dtype, shape.samples(), &mut noise));
        for steps in tried.iter().map(|&number| &chains[number]) {
            let chain = chain(steps, None);
            assert_eq!(chain.types(input.grid_type()).len(), steps.len() + 1, "{steps:?} {dtype}");
            let expected = on_cpu(steps, &input).samples;
            for Subject { name, context } in subjects() {
                let found = chain.gpu(context, &GpuInput::Samples(shape, &input.samples)).unwrap();
                // Devices that round floats otherwise than the CPU do not blur them.
                if dtype == Dtype::F32 && found.is_none() {
                    continue;
                }
                let expected = Some((steps.len(), GpuOutput::Samples(expected.copy().unwrap())));
                assert!(found == expected, "{name}: {steps:?}, {dims:?} x {channels} {dtype}");
            }
        }
    }
}

/// Alpha, linear light and types that only the CPU computes end what runs on a GPU.
#[test]
fn steps_without_a_gpu_version_end_a_chain() {
    let (blur, median) = (gaussian(1.0), Median::new(50.0, [1, 1, 0]));
    let linear = Blur { linear: true, ..gaussian(1.0) };
    let (mask, otsu) = (threshold(&[9.0]), Classify::from(Threshold::Otsu(1)));
    let count = |steps: &[&dyn Filter], channels: usize, dtype: Dtype| {
        let shape = Shape { dims: [20, 10, 1], channels };
        chain(steps, None).types(GridType { shape, dtype }).len() - 1
    };
    assert_eq!(count(&[&median, &blur, &median], 4, Dtype::U8), 1);
    assert_eq!(count(&[&median, &median, &linear], 3, Dtype::U8), 2);
    assert_eq!(count(&[&mask, &blur, &mask], 4, Dtype::U8), 3);
    assert_eq!(count(&[&mask], 3, Dtype::F32), 0);
    assert_eq!(count(&[&median, &mask], 1, Dtype::I32), 2);
    assert_eq!(count(&[&median], 1, Dtype::F64), 0);
    assert_eq!(count(&[&blur, &otsu, &median], 1, Dtype::U8), 1);
}

fn frame(size: [usize; 2], colour: ColourModel, samplings: &[[usize; 2]]) -> Frame {
    let component = |&sampling| Component { sampling, steps: [5; 64] };
    Frame { size, colour, components: samplings.iter().map(component).collect() }
}

/// Runs `steps` from the coefficients `input` on `context`.
fn from_jpeg(
    context: &Context,
    steps: &[&dyn Filter],
    input: &SparseCoefficients,
    encoding: Option<PixelEncoding>,
) -> Option<GpuOutput> {
    let (count, output) = chain(steps, encoding).gpu(context, &GpuInput::Jpeg(input)).unwrap()?;
    assert_eq!(count, steps.len());
    Some(output)
}

/// Every filter works on coefficients of JPEG and ends in coefficients, as if the pixels were decoded, filtered and
/// encoded.
#[test]
fn steps_from_jpeg_to_jpeg_equal_those_on_the_pixels() {
    let (blur, median) = (gaussian(1.5), Median::new(50.0, [1, 1, 0]));
    let (close, mask) = (morph(Operation::Close), threshold(&[100.0]));
    let chains: [Steps<'_>; 5] = [
        vec![&blur],
        vec![&median],
        vec![&close],
        vec![&mask],
        vec![&median, &blur, &mask, &close],
    ];
    let half = [[2, 2], [1, 1], [1, 1], [2, 2]];
    let mut noise = Noise(18);
    for (number, (size, colour, samplings)) in [
        ([1, 1], ColourModel::YCbCr, &half[..3]),
        ([7, 5], ColourModel::Grey, &[[1, 1]]),
        ([17, 9], ColourModel::YCbCr, &half[..3]),
        ([33, 20], ColourModel::YCbCr, &[[2, 1], [1, 1], [1, 1]]),
        ([31, 18], ColourModel::Cmyk, &half),
        ([48, 16], ColourModel::Rgb, &[[1, 1]; 3]),
        ([700, 310], ColourModel::YCbCr, &half[..3]),
    ]
    .into_iter()
    .enumerate()
    {
        let input = random_coefficients(&frame(size, colour, samplings), &mut noise, false);
        let pixels = Samples::U8(Decode.cpu(&input).unwrap());
        let pixels = grid([size[0], size[1], 1], colour.channels(), pixels);
        // All chains for one image, and one chain for each of the others.
        let chosen = if number == 2 { &chains[..] } else { &chains[number % 5..][..1] };
        for steps in chosen {
            let Grid { channels, samples, .. } = on_cpu(steps, &pixels);
            let encoding = PixelEncoding { quality: Quality(80), half_chroma: true };
            let encoded = Frame::for_pixels(size, channels, encoding.quality, true);
            let encoded = forward::coefficients(&encoded, samples.as_bytes()).unwrap();
            for Subject { name, context } in subjects() {
                let results = [None, Some(encoding)]
                    .map(|encoding| from_jpeg(context, steps, &input, encoding));
                let expected =
                    [GpuOutput::Samples(samples.clone()), GpuOutput::Jpeg(encoded.clone())];
                for (found, expected) in results.iter().zip(&expected) {
                    match found {
                        Some(found) => {
                            assert!(found == expected, "{name}: {steps:?} {size:?} {colour:?}");
                        }
                        // A large image does not fit into the bindings of a small device.
                        None => assert!(*name == "small" && size[0] > 600, "{name}: {size:?}"),
                    }
                }
            }
        }
    }
}

/// The pixels next to the right border, and those in the padding, do not change each other.
#[test]
fn encoding_is_identical_on_all_devices() {
    let mut noise = Noise(17);
    for (size, channels, half_chroma) in [
        ([1, 1], 3, true),
        ([1, 1], 1, false),
        ([16, 17], 3, true),
        ([17, 16], 3, true),
        ([63, 66], 3, false),
        ([70, 33], 1, false),
    ] {
        for quality in [1, 40, 100] {
            let pixels = noise.bytes(size[0] * size[1] * channels);
            let frame = Frame::for_pixels(size, channels, Quality(quality), half_chroma);
            let expected = forward::coefficients(&frame, &pixels).unwrap();
            for Subject { name, context } in subjects() {
                let encoder = Encoder::new(context, &frame).unwrap().unwrap();
                let input = encoder.pixels().upload(context, &pixels).unwrap();
                let mut batch = context.batch();
                let encoded = encoder.record(&mut batch, &input).unwrap();
                batch.run().unwrap();
                let found = encoder.read(&encoded).unwrap();
                assert!(found == expected, "{name}: {size:?} x {channels}, quality {quality}");
            }
        }
    }
}

/// A threshold that runs on a GPU knows as much about the samples as one on the CPU: whether all have one class, and their
/// range. Padding does not count.
#[test]
fn thresholds_find_the_same_facts_on_all_devices() {
    let inf = f32::INFINITY;
    let cases: [(usize, Samples); 10] = [
        (1, vec![7u8, 9, 8, 7, 9].into()),
        (1, vec![200u8, 255, 201, 200, 199].into()),
        (1, vec![7u8, 9, 250, 7, 9].into()),
        (3, vec![90u8, 100, 110, 1, 2, 3, 255, 40, 0, 5, 5, 5, 6, 6, 6].into()),
        (1, vec![-3i16, -300, -4, -2, -9].into()),
        (2, vec![60_000u16, 1, 50_000, 2, 65_535, 3, 100, 4, 101, 5].into()),
        (1, vec![1.5f32, -2.5, -0.0, 3.25, inf].into()),
        (1, vec![f32::NAN, -2.5, -inf, 3.25, 0.5].into()),
        (1, vec![f32::NAN, 120.5, 130.0, 200.0, 101.0].into()),
        (1, vec![f32::NAN; 5].into()),
    ];
    for (channels, samples) in cases {
        let shape = Shape { dims: [5, 1, 1], channels };
        let input = grid(shape.dims, channels, samples);
        for Subject { name, context } in subjects() {
            let mask = threshold(&[100.0]);
            let samples = GpuInput::Samples(shape, &input.samples);
            let single = chain(&[&mask], None);
            assert_eq!(single.gpu(context, &samples).unwrap(), None, "{name}: saves no transfer");
            // The facts of the second step join those of the first.
            let both = chain(&[&mask, &mask], None);
            assert_eq!(both.gpu(context, &samples).unwrap().unwrap().0, 2);
            let expected = threshold(&[100.0]);
            on_cpu(&[&expected, &expected], &input);
            assert_eq!(mask.finding(), expected.finding(), "{name}: {:?}", input.samples);
            let (own, other) =
                (mask.warning(&[mask.finding()]), expected.warning(&[expected.finding()]));
            assert_eq!(own, other, "{name}: {:?}", input.samples);
        }
    }
}

/// Runs `line` on each device. Checks that the steps run together on a GPU if `together` is in its timings, and that all
/// devices write the same file `output`.
fn assert_together(folder: &Path, line: &str, output: &str, together: &str) {
    let mut results = Vec::new();
    for device in device_names() {
        let mut command = gpuproc();
        command.current_dir(folder).args(["--device", device]).args(line.split(' '));
        let text = command.arg("--timings").assert().success().get_output().stderr.clone();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.contains(together), *device == "gpu", "{line}: {text}");
        results.push(fs::read(folder.join(output)).unwrap());
    }
    assert!(results.iter().all(|result| *result == results[0]), "{line}");
}

/// Steps that can run on a GPU one after another transfer no grids between them.
#[test]
fn steps_stay_on_the_gpu() {
    let folder = tempfile::tempdir().unwrap();
    let values = Noise(3).bytes(17 * 9 * 40);
    let words: Vec<u8> = values.iter().flat_map(|&value| u16::from(value).to_le_bytes()).collect();
    let floats = values.iter().flat_map(|&value| f32::from(value).to_le_bytes()).collect();
    // The limit of memory leaves some slices for each block.
    let inputs =
        [("uint8", values, "110k"), ("uint16", words, "110k"), ("float32", floats, "140k")];
    for (at, (dtype, bytes, memory)) in inputs.iter().enumerate() {
        let input = format!("w_17x9x40_{dtype}.raw");
        fs::write(folder.path().join(&input), bytes).unwrap();
        for (first, rest, together) in [
            (
                "blur",
                "-s 1.5 --then median --then morph --op close --then morph --op dilate -r 2",
                "steps 1 to 4",
            ),
            (
                "unsharp",
                "--then blur -s 1 --then threshold --value 127 --then morph --op open --then label",
                "steps 2 to 4",
            ),
        ] {
            // One of them as a single block.
            let memory = if at == 0 { String::new() } else { format!(" --max-memory {memory}") };
            let line = format!("{first} {input} {rest} -o o.nrrd{memory}");
            assert_together(folder.path(), &line, "o.nrrd", together);
        }
    }
}

/// So do those of images, from and to any format.
#[test]
fn steps_of_images_stay_on_the_gpu() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut noise = Noise(21);
    let (width, height) = (37, 21);
    for (name, color) in [
        ("rgb.png", image::ColorType::Rgb8),
        ("alpha.png", image::ColorType::Rgba8),
        ("deep.tif", image::ColorType::L16),
    ] {
        let bytes = noise.bytes(37 * 21 * usize::from(color.bytes_per_pixel()));
        image::save_buffer(path(name), &bytes, width, height, color).unwrap();
    }
    let frame = Frame::for_pixels([37, 21], 3, Quality(85), true);
    let jpeg = encode_jpeg(&frame, &noise.bytes(37 * 21 * 3), false);
    fs::write(path("photo.jpg"), jpeg).unwrap();
    for (line, output, together) in [
        (
            "blur rgb.png -s 1.5 --then median --then morph --op close -o o.png",
            "o.png",
            "steps 1 to 3",
        ),
        (
            "blur photo.jpg --then threshold --value 99 --then morph --op open -o o.jpg",
            "o.jpg",
            "steps 1 to 3",
        ),
        // The blur of alpha runs by itself.
        ("blur alpha.png --then median --then morph --op erode -o o.png", "o.png", "steps 2 to 3"),
    ] {
        assert_together(folder.path(), line, output, together);
    }
    // Single steps, which decode or encode on the GPU or not.
    for line in [
        "median photo.jpg -o o.jpg -r 2",
        "morph photo.jpg -o o.png --op tophat",
        "gradient deep.tif --then threshold --value 99 -o o.jpg",
    ] {
        let output = line.split(' ').find(|word| word.starts_with("o.")).unwrap();
        let mut results = Vec::new();
        for device in device_names() {
            let mut command = gpuproc();
            command.current_dir(folder.path()).args(["--device", device]).args(line.split(' '));
            command.assert().success();
            results.push(fs::read(path(output)).unwrap());
        }
        assert!(results.iter().all(|result| *result == results[0]), "{line}");
    }
}

/// Each position has a 0 within five slices, unless a block cuts its neighbours off. Such results belong to another block, and
/// say nothing about the mask.
#[test]
fn thresholds_find_no_facts_about_the_halo_of_a_block() {
    let folder = tempfile::tempdir().unwrap();
    let slices = (0..100).flat_map(|z| [if z % 11 == 0 { 0u8 } else { 200 }; 64 * 64]);
    fs::write(folder.path().join("w_64x64x100_uint8.raw"), slices.collect::<Vec<_>>()).unwrap();
    let line = "morph w_64x64x100_uint8.raw --op erode --radius 0,0,5 --then threshold --value 0.5 -o m.nrrd \
                --max-memory 600k -v";
    for device in device_names() {
        let mut command = gpuproc();
        command.current_dir(&folder).args(["--device", device]).args(line.split_whitespace());
        let output = command.assert().success().get_output().clone();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains("in blocks of"), "{device}: {stderr}");
        assert!(stderr.contains("all samples of the mask are 0"), "{device}: {stderr}");
    }
}
