//! Filters of the public API against naive references: alone, in chains, with strides, with progress.

use std::{
    ops::ControlFlow,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use gpuproc::{
    Blur, Chain, Channels, Device, Edge, ErrorKind, Filter, GradientMagnitude, Histogram, Image,
    Label, LocalMethod, Median, Morph, MorphOperation, PerAxis, Resize, Sample, Size, Threshold,
    UnsharpMask, Volume, channel_statistics,
};

use crate::common::{Noise, adapter};

/// The CPU, and the GPU if there is one.
fn devices() -> Vec<Device> {
    let gpu = adapter().map(|_| Device::gpu().expect("the adapter opens"));
    [Device::cpu()].into_iter().chain(gpu).collect()
}

/// A volume of noise.
fn noise(dims: [usize; 3]) -> Volume<u8> {
    Volume::new(dims, Noise(7).bytes(dims.iter().product())).unwrap()
}

/// The samples of the box with the radius `radius` around each sample, beyond the border the nearest one.
fn boxes(volume: &Volume<u8>, radius: [usize; 3]) -> Vec<Vec<u8>> {
    let [x, y, z] = volume.dims();
    let near =
        |at: usize, d: usize, radius: usize, n: usize| (at + d).saturating_sub(radius).min(n - 1);
    let mut all = Vec::new();
    for i in 0..x * y * z {
        let mut own = Vec::new();
        for dz in 0..=2 * radius[2] {
            for dy in 0..=2 * radius[1] {
                for dx in 0..=2 * radius[0] {
                    let [px, py] =
                        [near(i % x, dx, radius[0], x), near(i / x % y, dy, radius[1], y)];
                    let pz = near(i / x / y, dz, radius[2], z);
                    own.push(volume.samples()[(pz * y + py) * x + px]);
                }
            }
        }
        own.sort_unstable();
        all.push(own);
    }
    all
}

#[test]
fn medians_and_percentiles_are_those_of_sorted_boxes() {
    let (volume, radius) = (noise([9, 7, 6]), [1, 2, 1]);
    let boxes = boxes(&volume, radius);
    let expected = |rank: usize| boxes.iter().map(|own| own[rank]).collect::<Vec<_>>();
    for device in devices() {
        let median = Median::new(radius);
        assert_eq!(median.run(&device, &volume).unwrap().samples(), expected(22));
        assert_eq!(median.percentile(0.0).run(&device, &volume).unwrap().samples(), expected(0));
        assert_eq!(median.percentile(100.0).run(&device, &volume).unwrap().samples(), expected(44));
        let image = Image::new(9, 42, Channels::Gray, volume.samples().to_vec()).unwrap();
        let flat = Median::new([1, 2, 50]).run(&device, &image).unwrap();
        assert_eq!(flat, Median::new([1, 2, 0]).run(&device, &image).unwrap());
        let same = Median::new(2usize).run(&device, &volume).unwrap();
        assert_eq!(same, Median::new([2; 3]).run(&device, &volume).unwrap());
    }
}

#[test]
fn gradients_unsharp_masks_and_thresholds_match_naive_references() {
    let samples = Noise(3).bytes(40);
    let image = Image::new(40, 1, Channels::Gray, samples.clone()).unwrap();
    let at = |i: usize, d: usize| f64::from(samples[(i + d).saturating_sub(1).min(39)]);
    // One row repeats, so that the weights 1 2 1 across add up to 4.
    let edges: Vec<f32> = (0..40).map(|i| (4.0 * (at(i, 2) - at(i, 0))).abs() as f32).collect();
    // scikit-image reflects at the border, which repeats the last sample.
    let mean = |i: usize| (at(i, 0) + at(i, 1) + at(i, 2)) / 3.0;
    let deviation = |i: usize| {
        let squares = (0..3).map(|d| at(i, d).powi(2)).sum::<f64>() / 3.0;
        (squares - mean(i).powi(2)).max(0.0).sqrt()
    };
    let mask = |is_above: &dyn Fn(usize) -> bool| {
        (0..40).map(|i| if is_above(i) { 255 } else { 0 }).collect::<Vec<u8>>()
    };
    for device in devices() {
        let sobel = GradientMagnitude::sobel();
        assert_eq!(sobel.run(&device, &image).unwrap().samples(), edges, "{}", device.name());
        let wide = Image::new(3, 1, Channels::Gray, vec![0u32, 0, 5]).unwrap();
        let edges: Image<f64> = sobel.run(&device, &wide).unwrap();
        assert_eq!(edges.samples(), [0.0, 20.0, 20.0]);
        let none = GradientMagnitude::gaussian([0.0, 2.0, 9.0]).run(&device, &image).unwrap();
        assert!(none.samples().iter().all(|&value| value < 1e-5));

        let same = UnsharpMask::new([2.0; 3]).threshold(255.0).run(&device, &image).unwrap();
        assert_eq!(same, image);
        assert_eq!(UnsharpMask::new([2.0; 3]).amount(0.0).run(&device, &image).unwrap(), image);
        assert_ne!(UnsharpMask::new([2.0; 3]).run(&device, &image).unwrap(), image);

        let local = Threshold::local(LocalMethod::Mean).window([3, 1, 9]).offset(20.0);
        let local = local.run(&device, &image).unwrap();
        assert_eq!(local.samples(), mask(&|i| at(i, 1) > mean(i) - 20.0));
        let narrow = Threshold::local(LocalMethod::Gaussian).sigma(PerAxis::from(0.0)).offset(1.0);
        let narrow = narrow.run(&device, &image).unwrap();
        assert_eq!(narrow.samples(), [255; 40]);
        let sauvola = Threshold::local(LocalMethod::Sauvola).window([3, 1, 1]).k(0.5).range(60.0);
        let found = sauvola.run(&device, &image).unwrap();
        // At the border, the window is mirrored without repeating the last sample, so the ends are not compared.
        let expected = mask(&|i| at(i, 1) > mean(i) * (1.0 + 0.5 * (deviation(i) / 60.0 - 1.0)));
        assert_eq!(found.samples()[1..39], expected[1..39]);

        let hysteresis = Threshold::hysteresis(100.0, 180.0).run(&device, &image).unwrap();
        let ends = |i: usize, step: isize| {
            let line = std::iter::successors(Some(i), |&i| i.checked_add_signed(step));
            line.take_while(|&i| i < 40 && samples[i] > 100).any(|i| samples[i] > 180)
        };
        assert_eq!(hysteresis.samples(), mask(&|i| ends(i, 1) || ends(i, -1)));
    }
}

#[test]
fn invalid_parameters_of_filters_are_errors() {
    fn usage<F: Filter>(filter: &F, message: &str) {
        let image = Image::new(2, 1, Channels::Gray, vec![1u8, 2]).unwrap();
        let chain = Chain::new(Median::new([1; 3]), filter.clone());
        let error = chain.run(&Device::cpu(), &image).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        assert!(error.to_string().contains(message), "{error}");
    }
    let nan = f64::NAN;
    usage(&Median::new([51, 0, 0]), "radius is 51, expected 0 to 50");
    usage(&Median::new([1; 3]).percentile(nan), "percentile is NaN, expected 0 to 100");
    usage(&GradientMagnitude::gaussian([0.0, 0.0, 1.0]), "above 0 along at least one axis");
    usage(&GradientMagnitude::gaussian([501.0; 3]), "sigma is 501, expected 0 to 500");
    usage(&UnsharpMask::new([-1.0; 3]), "sigma is -1, expected 0 to 500");
    usage(&UnsharpMask::new([1.0; 3]).amount(101.0), "amount is 101, expected -100 to 100");
    usage(&UnsharpMask::new([1.0; 3]).threshold(-1.0), "threshold is -1, expected 0 or more");
    let local = Threshold::local(LocalMethod::Sauvola);
    usage(&local.clone().window([4, 1, 1]), "window is 4, expected an odd number from 1 to 20001");
    usage(&local.clone().window(0usize), "window is 0, expected 1 to 20001");
    usage(&local.clone().sigma(PerAxis::from(nan)), "sigma is NaN");
    usage(&local.clone().offset(nan), "offset is NaN, expected a finite number");
    usage(&local.clone().k(nan), "k is NaN");
    usage(&local.clone().range(f64::INFINITY), "range is inf");
    usage(&local.range(0.0), "range is 0, expected a number above 0");
    usage(&Threshold::hysteresis(2.0, 1.0), "low is 2, expected at most high (1)");
    usage(&Threshold::hysteresis(nan, 1.0), "low is NaN, expected at most high (1)");
    usage(&Threshold::default(), "value: expected 1 to 255 ascending numbers");
    usage(&Label::default().reach(3usize), "reach is 3, expected 1 to 2");
}

#[test]
fn chains_equal_their_steps_and_results_go_into_given_memory() {
    let volume = noise([20, 15, 9]);
    for device in devices() {
        let (blur, threshold, label) = (Blur::gaussian(1.0), Threshold::otsu(2), Label::new(6));
        let soft = blur.run(&device, &volume).unwrap();
        let mask = threshold.run(&device, &soft).unwrap();
        let labels = label.run(&device, &mask).unwrap();
        let chain = Chain::new(blur, threshold).then(label);
        assert_eq!(chain.run(&device, &volume).unwrap(), labels);
        // Labels of 16 bits are converted to u32 before the next step.
        let largest = chain.then(Morph::new(MorphOperation::Dilate, [1; 3]));
        let expected = Morph::new(MorphOperation::Dilate, [1; 3]).run(&device, &labels).unwrap();
        let mut output = vec![9u32; 20 * 15 * 9];
        largest.run_into(&device, &volume, &mut output).unwrap();
        assert_eq!(output, expected.samples());
        let error = largest.run_into(&device, &volume, &mut output[1..]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadInput);
        assert_eq!(error.to_string(), "expected an output of 2700 samples, found 2699");
        assert_eq!(output, expected.samples());
    }
}

/// These stay on a GPU between the steps of a chain.
#[test]
fn chains_of_all_types_equal_their_steps() {
    fn check<T: Sample>(samples: Vec<T>)
    where
        Image<T>: PartialEq + std::fmt::Debug,
    {
        let image = Image::new(32, 9, Channels::Rgb, samples).unwrap();
        for device in devices() {
            let (blur, median) =
                (Blur::gaussian(1.5).edge(Edge::Constant(70.4)), Median::new([1; 3]));
            let open = Morph::new(MorphOperation::Open, [1, 0, 0]);
            let soft = median.run(&device, &blur.run(&device, &image).unwrap()).unwrap();
            let expected = open.run(&device, &soft).unwrap();
            assert_eq!(Chain::new(blur, median).then(open).run(&device, &image).unwrap(), expected);
        }
    }
    let bytes = Noise(9).bytes(32 * 9 * 3);
    check(bytes.iter().map(|&value| u16::from(value) * 257).collect());
    check(bytes.iter().map(|&value| f32::from(value) / 8.0).collect());
    check(bytes);
}

#[test]
fn strides_may_have_any_order_and_stay_within_the_samples() {
    let samples: Vec<i16> = (0..60).collect();
    for strides in [[1, 3, 12], [20, 5, 1], [-1, 3, 12], [20, -5, -1], [0, 1, 2], [7, 0, -3]] {
        let volume = Volume::from_strided([3, 4, 5], &samples, strides).unwrap();
        let sizes = [3isize, 4, 5];
        let reversed = (0..3).filter(|&axis| strides[axis] < 0);
        let first: isize = reversed.map(|axis| (1 - sizes[axis]) * strides[axis]).sum();
        let place = |i: isize| {
            let at = [i % 3, i / 3 % 4, i / 12];
            first + (0..3).map(|axis| at[axis] * strides[axis]).sum::<isize>()
        };
        let expected: Vec<i16> = (0..60).map(|i| place(i) as i16).collect();
        assert_eq!(volume.samples(), expected, "{strides:?}");
    }
    for strides in [[1, 3, 13], [-21, 5, 1], [isize::MIN, isize::MAX, 1]] {
        let error = Volume::from_strided([3, 4, 5], &samples, strides).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadInput, "{strides:?}");
    }
    let huge = Volume::from_strided([usize::MAX, usize::MAX, 2], &samples, [isize::MIN; 3]);
    assert_eq!(huge.unwrap_err().kind(), ErrorKind::BadInput);
    assert!(Volume::from_strided([usize::MAX, 1, 1], &samples, [0; 3]).is_err());
    let nothing = Volume::from_strided([3, 0, 5], &samples[..0], [100, 100, 100]).unwrap();
    assert!(nothing.samples().is_empty());
}

/// A device that adds each reported share to a list.
fn observed(device: Device) -> (Device, Arc<Mutex<Vec<f64>>>) {
    let shares = Arc::new(Mutex::new(Vec::new()));
    let list = shares.clone();
    let device = device.on_progress(move |share| {
        list.lock().unwrap().push(share);
        ControlFlow::Continue(())
    });
    (device, shares)
}

/// Checks that `filter` has the same result in blocks, and that its progress ascends from 0 to 1 in `calls` calls at least.
fn check_progress<F: Filter<Output<Volume<u8>>: PartialEq + std::fmt::Debug>>(
    filter: &F,
    calls: usize,
) {
    let volume = noise([16, 8, 40]);
    for device in devices() {
        let identity = Median::new([0; 3]);
        let chain = Chain::new(identity, filter.clone());
        let expected = chain.run(&device, &volume).unwrap();
        let (device, shares) = observed(device);
        assert_eq!(chain.run(&device, &volume).unwrap(), expected);
        let shares = shares.lock().unwrap();
        assert!(shares.is_sorted() && shares.len() >= calls, "{shares:?}");
        assert_eq!((shares[0], shares[shares.len() - 1]), (0.0, 1.0));
    }
}

#[test]
fn progress_ascends_and_blocks_do_not_change_results() {
    check_progress(&Median::new([1; 3]), 10);
    check_progress(&Blur::gaussian(1.0), 4);
    check_progress(&Blur::box_filter(2).edge(Edge::Wrap), 3);
    check_progress(&GradientMagnitude::sobel(), 10);
    check_progress(&Threshold::otsu(3), 10);
    check_progress(&Threshold::hysteresis(100.0, 200.0), 10);
    check_progress(&Label::new(26), 10);
    check_progress(&Morph::new(MorphOperation::Open, [1; 3]), 4);
    check_progress(&Resize::new(Size::Exact([Some(9), None, Some(77)])), 10);
    let image = Image::new(9, 300, Channels::Rgba, Noise(2).bytes(9 * 300 * 4)).unwrap();
    let (device, _) = observed(Device::cpu());
    let small = Resize::new(Size::Longest(100));
    assert_eq!(small.run(&device, &image).unwrap(), small.run(&Device::cpu(), &image).unwrap());
}

#[test]
fn a_callback_cancels_calls() {
    for device in devices() {
        let left = AtomicUsize::new(3);
        let device = device.on_progress(move |_| match left.fetch_sub(1, Ordering::Relaxed) {
            1 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        let error = Median::new([1; 3]).run(&device, &noise([8, 8, 40])).unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::Cancelled, "cancelled".into()));
    }
    let device = Device::cpu().on_progress(|_| ControlFlow::Break(()));
    assert_eq!(gpuproc::histogram(&device, &[1u8]).unwrap_err().kind(), ErrorKind::Cancelled);
}

#[test]
fn channels_and_luminance_are_counted() {
    let samples = Noise(5).bytes(999 * 4);
    let image = Image::new(333, 3, Channels::Rgba, samples.clone()).unwrap();
    let pixels = || samples.chunks(4);
    for device in devices() {
        let counts = Histogram::new(16).range(32.0, 160.0).channels(&device, &image).unwrap();
        let found = channel_statistics(&device, &image, &[50.0]).unwrap();
        assert_eq!((counts.len(), found.len()), (4, 4));
        for (channel, (counts, found)) in counts.iter().zip(&found).enumerate() {
            let mut values: Vec<u8> = pixels().map(|pixel| pixel[channel]).collect();
            values.sort_unstable();
            let mut bins = [0; 16];
            let inside = values.iter().filter(|value| (32..=160).contains(*value));
            inside.for_each(|value| bins[usize::from((value - 32) / 8).min(15)] += 1);
            assert_eq!(counts.bins, bins, "{}", device.name());
            assert_eq!(counts.above, values.iter().filter(|&&value| value > 160).count() as u64);
            let found = found.as_ref().unwrap();
            let mean = values.iter().map(|&value| f64::from(value)).sum::<f64>() / 999.0;
            assert!((found.mean - mean).abs() < 1e-9);
            assert_eq!((found.min, found.max), (f64::from(values[0]), f64::from(values[998])));
            assert_eq!(found.percentiles, [(50.0, f64::from(values[499]))]);
        }
        let mut luma = [0u64; 256];
        for pixel in pixels() {
            let [r, g, b] = [pixel[0], pixel[1], pixel[2]].map(u32::from);
            // The bins divide the range from 0 to 255.
            let bin = (1063 * r + 3576 * g + 361 * b) * 256 / (5000 * 255);
            luma[bin.min(255) as usize] += 1;
        }
        assert_eq!(Histogram::new(256).luminance(&device, &image).unwrap().bins, luma);
        // For floats, the bins of every channel cover all channels.
        let floats = Image::new(1, 1, Channels::GrayAlpha, vec![-1.0f32, 3.0]).unwrap();
        let counts = Histogram::new(2).channels(&device, &floats).unwrap();
        assert_eq!(counts.iter().map(|own| own.range).collect::<Vec<_>>(), [(-1.0, 3.0); 2]);
        let gray = Histogram::new(2).range(-2.0, 2.0).luminance(&device, &floats).unwrap();
        assert_eq!(gray.bins, [1, 0]);
    }
}

/// Every step of a chain knows which channel is alpha: transparent bright pixels do not tint their neighbours.
#[test]
fn chains_keep_alpha_between_their_steps() {
    let images = [Channels::GrayAlpha, Channels::Rgba].map(|channels| {
        let count = channels.count();
        let pixel = |i: usize| {
            let [colour, alpha] = if i.is_multiple_of(3) { [250, 0] } else { [20, 255 - i as u8] };
            std::iter::repeat_n(colour, count - 1).chain([alpha])
        };
        Image::new(12, 10, channels, (0..120).flat_map(pixel).collect::<Vec<u8>>()).unwrap()
    });
    // With a callback, steps run one by one.
    let reporting = devices().into_iter().map(|device| observed(device).0);
    let devices: Vec<Device> = devices().into_iter().chain(reporting).collect();
    macro_rules! check {
        ($first:expr, $second:expr) => {
            for (device, image) in devices.iter().flat_map(|d| images.iter().map(move |i| (d, i))) {
                let between = $first.run(device, image).unwrap();
                let expected = $second.run(device, &between).unwrap();
                let chain = Chain::new(Clone::clone(&$first), Clone::clone(&$second));
                let name = device.name();
                assert!(chain.run(device, image).unwrap() == expected, "{chain:?} {name}");
                // Colours stay dark where there was no bright opaque pixel.
                for pixel in expected.samples().chunks_exact(image.channels().count()) {
                    assert!(pixel[pixel.len() - 1] == 0 || pixel[0] <= 60, "{chain:?}: {pixel:?}");
                }
            }
        };
    }
    let (blur, half) = (Blur::gaussian(1.5), Resize::new(Size::Scale([0.5, 0.5, 1.0])));
    let unsharp = UnsharpMask::new([1.0; 3]).amount(0.1);
    check!(blur, half);
    check!(half, blur);
    check!(blur, blur);
    check!(unsharp, half);
    check!(half, unsharp);
}
