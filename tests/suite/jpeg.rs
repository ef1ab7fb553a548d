//! JPEG transforms: the CPU and GPU implementations against each other and against a direct f64 reference.

use gpuproc::{
    data::{dtype::Dtype, noise::Noise},
    device::Kernel,
    jpeg::{
        self, ColourModel, Component, Frame, Picture, Quality, SparseCoefficients, Upsampling,
        forward,
    },
    kernels::{
        histogram::{Bins, Component as Counted, Histogram, Luma},
        jpeg::Decode,
        jpeg_histogram::JpegHistogram,
    },
};

use crate::common::{assert_twins, decode_jpeg, encode_jpeg};

fn assert_equal<T: PartialEq>(cpu: &T, gpu: &T, name: &str) {
    assert!(cpu == gpu, "{name}");
}

/// Random coefficients, fewer and smaller at higher frequencies. With `out_of_range`, each may be as large as 4096.
pub fn random_coefficients(
    frame: &Frame,
    noise: &mut Noise,
    out_of_range: bool,
) -> SparseCoefficients {
    let mut block = || {
        let mut block = [0i16; 64];
        let last = noise.next() % 64;
        for (i, value) in block.iter_mut().enumerate().take(last as usize + 1) {
            let size = if out_of_range { 4096 } else { 1 + 128 / (1 + i as u64) };
            *value = (noise.next() % (2 * size)) as i16 - size as i16;
        }
        block
    };
    let mut sparse = SparseCoefficients::zeros(frame, 0).unwrap();
    let blocks: Vec<_> = sparse.blocks.iter().map(|_| block()).collect();
    sparse.set(0, &blocks).unwrap();
    sparse
}

fn frame(size: [usize; 2], colour: ColourModel, samplings: &[[usize; 2]], step: u16) -> Frame {
    let component = |&sampling| Component { sampling, steps: [step; 64] };
    Frame { size, colour, components: samplings.iter().map(component).collect() }
}

/// Pixels in f64 by the formulas of ITU-T T.81 and T.871, without rounding.
fn reference_pixels(coefficients: &SparseCoefficients) -> Vec<f64> {
    let frame = &coefficients.frame;
    let rows = |c: usize| (0..frame.blocks(c)[1]).map(move |y| coefficients.row(c, y).unwrap());
    let blocks: Vec<Vec<_>> = (0..frame.components.len()).map(|c| rows(c).collect()).collect();
    let cosine = |x: usize, u: usize| {
        let scale = if u == 0 { 0.5f64.sqrt() } else { 1.0 };
        scale * ((2 * x + 1) as f64 * u as f64 * std::f64::consts::PI / 16.0).cos() / 2.0
    };
    let sample = |c: usize, x: usize, y: usize| {
        let block = &blocks[c][y / 8][x / 8];
        let mut sum = 128.0;
        for (i, &value) in block.iter().enumerate().filter(|(_, value)| **value != 0) {
            let step = f64::from(frame.components[c].steps[i]);
            sum += f64::from(value) * step * cosine(x % 8, i % 8) * cosine(y % 8, i / 8);
        }
        sum.clamp(0.0, 255.0)
    };
    // The two nearest samples of the component, and the weight of the farther one.
    let nearest = |at: usize, last: usize| {
        let far =
            if at.is_multiple_of(2) { (at / 2).saturating_sub(1) } else { (at / 2 + 1).min(last) };
        [(at / 2, 0.75), (far, 0.25)]
    };
    let upsampled = |c: usize, x: usize, y: usize| {
        let [columns, rows] = frame.samples(c);
        let whole = |at: usize| [(at, 1.0), (at, 0.0)];
        let (xs, ys) = match frame.upsampling(c).unwrap() {
            Upsampling::Full => (whole(x), whole(y)),
            Upsampling::Across => (nearest(x, columns - 1), whole(y)),
            Upsampling::Down => (whole(x), nearest(y, rows - 1)),
            Upsampling::Both => (nearest(x, columns - 1), nearest(y, rows - 1)),
            Upsampling::Repeat([across, down]) => (whole(x / across), whole(y / down)),
        };
        let terms = xs.iter().flat_map(|&x| ys.iter().map(move |&y| (x, y)));
        terms.filter(|(x, y)| x.1 * y.1 > 0.0).map(|(x, y)| sample(c, x.0, y.0) * x.1 * y.1).sum()
    };
    let mut pixels = Vec::new();
    let [width, height] = frame.size;
    for (x, y) in (0..height).flat_map(|y| (0..width).map(move |x| (x, y))) {
        let values: Vec<f64> = (0..frame.components.len()).map(|c| upsampled(c, x, y)).collect();
        let rgb = |v: &[f64]| {
            let (cb, cr) = (v[1] - 128.0, v[2] - 128.0);
            [v[0] + 1.402 * cr, v[0] - 0.344136 * cb - 0.714136 * cr, v[0] + 1.772 * cb]
                .map(|value| value.clamp(0.0, 255.0))
        };
        match frame.colour {
            ColourModel::Grey => pixels.push(values[0]),
            ColourModel::Rgb | ColourModel::Raw => pixels.extend(&values),
            ColourModel::YCbCr => pixels.extend(rgb(&values)),
            ColourModel::Cmyk => pixels.extend(values[..3].iter().map(|v| v * values[3] / 255.0)),
            ColourModel::Ycck => {
                pixels.extend(rgb(&values).map(|v| (255.0 - v) * values[3] / 255.0));
            }
        }
    }
    pixels
}

#[test]
fn decodes_every_sampling_and_colour_model_identically_on_all_devices() {
    use ColourModel::{Cmyk, Grey, Rgb, YCbCr, Ycck};
    let mut noise = Noise(15);
    let mut cases = vec![
        frame([1, 1], Grey, &[[1, 1]], 7),
        frame([37, 21], Grey, &[[1, 1]], 1),
        frame([53, 40], Rgb, &[[1, 1], [1, 1], [1, 1]], 3),
        frame([40, 33], Rgb, &[[2, 2], [1, 1], [2, 1]], 3),
        frame([61, 35], YCbCr, &[[1, 1], [2, 2], [1, 1]], 3),
        frame([35, 35], Cmyk, &[[1, 1], [1, 1], [1, 1], [1, 1]], 2),
        frame([70, 19], Ycck, &[[2, 2], [1, 1], [1, 1], [2, 2]], 2),
        frame([1000, 300], YCbCr, &[[2, 2], [1, 1], [1, 1]], 2),
    ];
    for across in 1..=4 {
        for down in 1..=4 {
            for width in [1, 2, 3, 5, 17, 66] {
                let size = [width, 1 + (noise.next() % 70) as usize];
                let samplings = [[across, down], [1, 1], [1, 1]];
                cases.push(frame(size, YCbCr, &samplings, 1 + (noise.next() % 20) as u16));
            }
        }
    }
    let mut inexact = 0;
    for frame in &cases {
        let coefficients = random_coefficients(frame, &mut noise, false);
        let pixels = assert_twins(&Decode, &coefficients, assert_equal);
        let expected = reference_pixels(&coefficients);
        assert_eq!(pixels.len(), expected.len());
        // The transform is exact to half a step; filters and colour conversion each round once more.
        for (found, expected) in pixels.iter().zip(&expected) {
            let error = (f64::from(*found) - expected).abs();
            assert!(error < 3.6, "{frame:?}: found {found}, expected {expected}");
            inexact += usize::from(error > 1.5);
        }
    }
    let total: usize = cases.iter().map(|frame| frame.size.iter().product::<usize>() * 3).sum();
    assert!(inexact * 20 < total, "{inexact} of {total} samples are inexact");
}

/// Intermediate values that exceed 16 bits wrap around identically on every device.
#[test]
fn out_of_range_coefficients_decode_identically_on_all_devices() {
    let mut noise = Noise(16);
    for step in [1, 90, 255, 65_535] {
        let frame = frame([130, 50], ColourModel::YCbCr, &[[2, 1], [1, 1], [1, 1]], step);
        assert_twins(&Decode, &random_coefficients(&frame, &mut noise, true), assert_equal);
    }
}

#[test]
fn rejects_fractional_sampling_ratios() {
    let frame = frame([30, 30], ColourModel::YCbCr, &[[3, 1], [2, 1], [1, 1]], 1);
    let error = Decode.cpu(&random_coefficients(&frame, &mut Noise(1), false)).unwrap_err();
    assert!(error.to_string().contains("fraction"), "{error}");
}

fn test_image(size: [usize; 2], channels: usize, noise: &mut Noise) -> Vec<u8> {
    let [width, height] = size;
    let mut pixels = Vec::new();
    for (x, y) in (0..height).flat_map(|y| (0..width).map(move |x| (x, y))) {
        for c in 0..channels {
            let wave = ((x * (c + 1)) as f64 / 9.0).sin() * (y as f64 / 7.0).cos();
            pixels.push((128.0 + 100.0 * wave + (noise.next() % 27) as f64 - 13.0) as u8);
        }
    }
    pixels
}

#[test]
fn encoding_round_trips() {
    let mut noise = Noise(17);
    for (size, channels, half_colour) in [
        ([1, 1], 3, true),
        ([1, 1], 1, false),
        ([16, 17], 3, true),
        ([17, 16], 3, true),
        ([63, 66], 3, false),
        ([70, 33], 1, false),
        ([1000, 301], 3, true),
    ] {
        for quality in [1, 40, 90, 100] {
            let pixels = test_image(size, channels, &mut noise);
            let frame = Frame::for_pixels(size, channels, Quality(quality), half_colour);
            let coefficients = forward::coefficients(&frame, &pixels).unwrap();
            // The file from coefficients equals the file from the pixels, also with optimised Huffman
            // tables.
            let [plain, optimized] = [false, true].map(|optimized| {
                let file = encode_jpeg(&frame, &pixels, optimized);
                let coefficients = Picture::Coefficients(&coefficients);
                let other = jpeg::encode(&frame, coefficients, &[], optimized);
                assert!(other.unwrap() == file, "{size:?}");
                file
            });
            assert!(optimized.len() < plain.len(), "{size:?}");
            let read = |file: &[u8]| image::load_from_memory(file).unwrap();
            assert!(read(&plain) == read(&optimized), "{size:?} {quality}");
            if quality < 100 || half_colour {
                continue;
            }
            // Every quantization step is 1, so only rounding is left: luma and chroma are off by at most 1, chroma is
            // scaled by 1.772 in blue, and blue is rounded itself.
            let back = Decode.cpu(&coefficients).unwrap();
            let worst = back.iter().zip(&pixels).map(|(a, b)| a.abs_diff(*b)).max();
            assert!(worst <= Some(4), "{size:?}: {worst:?}");
        }
    }
}

/// Histograms of coefficients against a loop over the decoded pixels, for widths with and without padding and for one
/// to four components.
#[test]
fn histogram_of_coefficients_equals_histogram_of_the_pixels() {
    let mut noise = Noise(77);
    let half = [[2, 2], [1, 1], [1, 1]];
    for (size, colour, samplings) in [
        ([64, 40], ColourModel::YCbCr, &half[..]),
        ([61, 33], ColourModel::YCbCr, &half),
        ([48, 17], ColourModel::Grey, &[[1, 1]]),
        ([80, 3], ColourModel::Rgb, &[[1, 1]; 3]),
    ] {
        let input = random_coefficients(&frame(size, colour, samplings, 9), &mut noise, false);
        let pixels = Decode.cpu(&input).unwrap();
        let channels = colour.channels();
        let mut components: Vec<Counted> = (0..channels).map(Counted::Channel).collect();
        if channels == 3 {
            components.push(Counted::Luma(Luma::Bt601));
        }
        for count in [256, 7, 1000] {
            let bins = Bins::new(count, 0.0, 255.0, Dtype::U8).unwrap();
            let kernel = Histogram { components: components.clone(), bins, weighted: false };
            let counts = assert_twins(&JpegHistogram(kernel), &input, assert_equal);
            for (component, counts) in components.iter().zip(counts) {
                let mut expected = vec![0u64; count];
                for pixel in pixels.chunks_exact(channels) {
                    let thousandths = match component {
                        Counted::Channel(channel) => 1000 * u64::from(pixel[*channel]),
                        Counted::Luma(_) => {
                            let weighted = pixel.iter().zip([299, 587, 114]);
                            weighted.map(|(&sample, weight)| u64::from(sample) * weight).sum()
                        }
                    };
                    let bin = thousandths * count as u64 / 255_000;
                    expected[(bin as usize).min(count - 1)] += 1;
                }
                assert_eq!(counts.bins, expected, "{size:?} {colour:?} {component:?} {count}");
            }
        }
    }
}

/// Several threads decode the restart intervals of a file. The result equals that of one thread, even if a byte is
/// missing.
#[test]
fn parallel_decoding_of_restart_intervals_equals_serial_decoding() {
    let mut noise = Noise(19);
    let decoded = |threads: usize, bytes: &[u8]| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| decode_jpeg(bytes)).unwrap()
    };
    for (channels, half_chroma) in [(1, false), (3, false), (3, true)] {
        let size = [1003, 1301];
        let pixels = test_image(size, channels, &mut noise);
        let frame = Frame::for_pixels(size, channels, Quality(90), half_chroma);
        let [file, optimized] = [false, true].map(|how| encode_jpeg(&frame, &pixels, how));
        assert!(file.windows(2).any(|pair| pair == [0xff, 0xd0]) && optimized.len() < file.len());
        let (one, damage) = decoded(1, &file);
        assert_eq!(damage, None);
        assert!((one.clone(), None) == decoded(3, &file), "{channels} {half_chroma}");
        assert!(one == decoded(3, &optimized).0, "{channels} {half_chroma}");
        let cut = [&file[..file.len() / 2], &file[file.len() / 2 + 1..]].concat();
        let (found, damage) = decoded(3, &cut);
        assert!(damage.is_some() || found != one, "{channels} {half_chroma}");
        assert!((found, damage) == decoded(1, &cut), "{channels} {half_chroma}");
    }
}
