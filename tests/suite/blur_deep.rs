//! Blur of 16-bit and float samples against the naive reference.

use gpuproc::{
    data::{
        grid::{Alpha, Grid},
        samples::Samples,
    },
    device::Kernel,
    gpu::Restrictions,
    kernels::blur::{Blur, Edge, Method, Rounding, Taps},
};

use crate::{
    blur::blur_in_blocks,
    blur_reference::{EDGES, box_blur, gaussian, reference},
    common::{Noise, Subject, assert_same_samples, assert_twins, open},
};

/// Checks that 16-bit results are equal on every device, and differ from the reference by at most `tolerance`.
fn check_u16(blur: &Blur, grid: &Grid, tolerance: f64) {
    let found = assert_twins(blur, grid, |cpu, gpu, name| {
        assert!(cpu == gpu, "{name}: {blur:?} of {:?} differs", grid.dims);
    });
    let Samples::U16(found) = found else { panic!("the type changed") };
    let expected = reference(blur, grid);
    assert_eq!(found.len(), expected.len());
    for (i, (&found, exact)) in found.iter().zip(&expected).enumerate() {
        let off = (f64::from(found) - exact).abs();
        assert!(off <= tolerance, "{blur:?} of {:?}: {found} at {i}, expected {exact}", grid.dims);
    }
}

/// Tolerance for noise images: 0.5 for the final rounding, the rest for the roundings before it.
const U16_TOLERANCE: f64 = 0.6;

/// A 16-bit image without alpha.
fn image_u16(dims: [usize; 3], channels: usize, value: impl FnMut(usize) -> u16) -> Grid {
    let samples = (0..dims.iter().product::<usize>() * channels).map(value).collect();
    Grid { dims, channels, alpha: Alpha::None, samples: Samples::U16(samples) }
}

fn noise_u16(dims: [usize; 3], channels: usize, seed: u64) -> Grid {
    let mut noise = Noise(seed);
    image_u16(dims, channels, |_| (noise.next() >> 48) as u16)
}

#[test]
fn u16_matches_reference() {
    // All channel counts with one edge mode, and all edge modes with one channel count each.
    let of_channels = (1..=4).map(|channels| (channels, EDGES[0]));
    let of_edges = EDGES[1..].iter().enumerate().map(|(i, &edge)| (i % 4 + 1, edge));
    for (channels, edge) in of_channels.chain(of_edges) {
        let grid = noise_u16([71, 53, 1], channels, 19);
        let twice = Blur { iterations: 2, ..gaussian(0.6) };
        let often = Blur { iterations: 3, ..box_blur(4) };
        for blur in [gaussian(0.4), gaussian(5.0), box_blur(7), box_blur(300), twice, often] {
            check_u16(&Blur { edge, ..blur }, &grid, U16_TOLERANCE);
        }
    }
    for edge in [Edge::Clamp, Edge::Wrap] {
        for sigma in [200.0, 500.0] {
            check_u16(
                &Blur { edge, ..gaussian(sigma) },
                &noise_u16([71, 53, 1], 1, 20),
                U16_TOLERANCE,
            );
        }
    }
    for dims in [[1, 1, 1], [2, 1, 1], [1, 2, 1], [3, 5, 1], [513, 3, 1], [3, 513, 1]] {
        for blur in
            [gaussian(0.3), gaussian(3.0), gaussian(30.0), box_blur(1), box_blur(9), box_blur(2000)]
        {
            check_u16(&Blur { edge: Edge::Mirror, ..blur }, &noise_u16(dims, 3, 21), U16_TOLERANCE);
        }
    }
    let x = Taps::gaussian(3.0, 9);
    for axes in [[x, Taps::NONE, Taps::NONE], [Taps::NONE, x, Taps::NONE]] {
        check_u16(&Blur { axes, ..gaussian(1.0) }, &noise_u16([97, 41, 1], 3, 22), U16_TOLERANCE);
    }
    // More than 1 MiB, so that the small device has to work in blocks, and rows of several tiles.
    check_u16(&gaussian(2.0), &noise_u16([701, 433, 1], 3, 23), U16_TOLERANCE);
    check_u16(
        &Blur { iterations: 2, ..box_blur(5) },
        &noise_u16([701, 433, 1], 3, 24),
        U16_TOLERANCE,
    );
    check_u16(&gaussian(1.0), &noise_u16([5003, 61, 1], 1, 25), U16_TOLERANCE);
    // With this radius, a block does not fit into workgroup memory, so the passes run one by one.
    check_u16(&gaussian(60.0), &noise_u16([101, 151, 1], 4, 26), U16_TOLERANCE);
    check_u16(&box_blur(150), &noise_u16([101, 151, 1], 4, 27), U16_TOLERANCE);
}

/// Images of full contrast: a checkerboard, edges, a point, a constant, and the pattern that maximises the error from
/// rounding the weights.
#[test]
fn u16_at_full_contrast_is_within_one_of_reference() {
    const FULL: u16 = u16::MAX;
    let dims = [67, 31, 1];
    let pictures = [
        image_u16(dims, 1, |i| if (i % 67 + i / 67) % 2 == 0 { FULL } else { 0 }),
        image_u16(dims, 1, |i| if i % 67 < 33 { FULL } else { 0 }),
        image_u16(dims, 1, |i| if i / 67 < 15 { 0 } else { FULL }),
        image_u16(dims, 1, |i| if i == 15 * 67 + 33 { FULL } else { 0 }),
        image_u16(dims, 1, |_| FULL),
    ];
    for grid in &pictures {
        for edge in [Edge::Clamp, Edge::Wrap, Edge::Constant(65535.0)] {
            for sigma in [0.3, 1.0, 3.3, 8.0, 27.0] {
                check_u16(&Blur { edge, ..gaussian(sigma) }, grid, 1.0);
            }
            for (radius, iterations) in [(1, 1), (3, 3), (40, 3), (1000, 1)] {
                check_u16(&Blur { edge, iterations, ..box_blur(radius) }, grid, 1.0);
            }
        }
    }
    // Full intensity where integer weights exceed the exact ones.
    for sigma in [1.0, 2.0, 8.0, 11.8, 13.0, 30.0] {
        let taps = Taps::gaussian(sigma, (3.0 * sigma).ceil() as usize);
        let exact = taps.half_weights(Method::Gaussian);
        let bits = taps.fine_bits();
        let integer = taps.integer_half_weights(Method::Gaussian, bits);
        let scale = 2f64.powi(bits as i32);
        let count = taps.count();
        let hard = image_u16([count, count, 1], 1, |i| {
            let [x, y] = [i % count, i / count].map(|at| at.abs_diff(taps.radius));
            let product = f64::from(integer[x]) * f64::from(integer[y]) / scale / scale;
            if product > exact[x] * exact[y] { FULL } else { 0 }
        });
        check_u16(&Blur { edge: Edge::Mirror, ..gaussian(sigma) }, &hard, 1.0);
    }
}

#[test]
fn u16_volumes_match_reference() {
    for (seed, edge) in EDGES.into_iter().enumerate() {
        let axes = [Taps::gaussian(1.0, 3), Taps::gaussian(1.5, 5), Taps::gaussian(0.8, 3)];
        let grid = noise_u16([21, 17, 13], 1, seed as u64);
        check_u16(&Blur { axes, edge, ..gaussian(1.0) }, &grid, U16_TOLERANCE);
        check_u16(&Blur { axes, edge, iterations: 2, ..gaussian(1.0) }, &grid, U16_TOLERANCE);
        let axes = [Taps::gaussian(9.0, 27), Taps::NONE, Taps::gaussian(4.0, 12)];
        check_u16(&Blur { axes, edge, ..gaussian(1.0) }, &grid, U16_TOLERANCE);
        let axes = [Taps::box_filter(1), Taps::box_filter(2), Taps::box_filter(5)];
        for iterations in [1, 3] {
            check_u16(&Blur { axes, edge, iterations, ..box_blur(1) }, &grid, U16_TOLERANCE);
        }
    }
    let checkers = image_u16([23, 21, 20], 1, |i| match (i % 23 + i / 23 % 21 + i / 483) % 2 {
        0 => u16::MAX,
        _ => 0,
    });
    for axes in [[Taps::gaussian(0.5, 2); 3], [Taps::gaussian(3.0, 9); 3]] {
        check_u16(&Blur { axes, ..gaussian(1.0) }, &checkers, 1.0);
    }
    let axes = [Taps::box_filter(2); 3];
    check_u16(&Blur { axes, iterations: 3, ..box_blur(1) }, &checkers, 1.0);
    let axes = [Taps::gaussian(1.0, 3); 3];
    check_u16(&Blur { axes, ..gaussian(1.0) }, &noise_u16([113, 97, 101], 1, 77), U16_TOLERANCE);
}

#[test]
fn u16_with_alpha_is_within_one_of_reference() {
    let mut grid = noise_u16([71, 53, 1], 4, 28);
    grid.alpha = Alpha::Straight;
    let Samples::U16(samples) = &mut grid.samples else { unreachable!() };
    // Float sums cannot resolve the colours of pixels with tiny alpha.
    samples.iter_mut().skip(3).step_by(4).for_each(|v| *v |= 0x4000);
    for edge in EDGES {
        for blur in [gaussian(0.4), gaussian(5.0), gaussian(200.0), box_blur(7), box_blur(300)] {
            let blur = Blur { edge, ..blur };
            let expected = reference(&blur, &grid);
            let Samples::U16(found) = assert_same_samples(&blur, &grid) else {
                panic!("the type changed")
            };
            for (found, exact) in found.iter().zip(&expected) {
                let off = (f64::from(*found) - exact.round()).abs();
                assert!(off <= 1.0, "{blur:?}: {found}, expected {exact}");
            }
        }
    }
}

#[test]
fn f32_matches_reference() {
    let grid = noise_f32([71, 53, 1], 3, 20);
    for edge in EDGES
        .map(|edge| if let Edge::Constant(v) = edge { Edge::Constant(v / 100.0) } else { edge })
    {
        for blur in [gaussian(0.4), gaussian(5.0), box_blur(7), box_blur(32), box_blur(300)] {
            check_f32(&Blur { edge, ..blur }, &grid);
        }
    }
    check_f32(&gaussian(500.0), &noise_f32([31, 23, 1], 1, 30));
    // Rows and columns that span several tiles, with each channel count.
    for channels in 1..=4 {
        for dims in [[1500, 5, 1], [5, 1500, 1]] {
            for blur in [gaussian(4.0), box_blur(33), box_blur(600)] {
                check_f32(&blur, &noise_f32(dims, channels, 31));
            }
        }
    }
    // The CPU blurs volumes tile by tile. Here rows are longer than a tile, and slices have fewer rows than one.
    for (dims, sigma) in [([131, 70, 11], [2.0, 1.0, 2.0]), ([64, 9, 21], [0.5, 3.0, 6.0])] {
        let axes = sigma.map(|sigma: f64| Taps::gaussian(sigma, (3.0 * sigma).ceil() as usize));
        let blur = Blur { axes, edge: Edge::Constant(0.5), ..gaussian(1.0) };
        check_f32(&blur, &noise_f32(dims, 1, 38));
    }
    let axes = [Taps::box_filter(130), Taps::box_filter(40), Taps::box_filter(200)];
    for edge in [Edge::Clamp, Edge::Mirror, Edge::Constant(0.5)] {
        let blur = Blur { axes, edge, ..box_blur(1) };
        check_f32(&blur, &noise_f32([43, 37, 31], 1, 32));
        check_f32(&Blur { iterations: 3, ..blur }, &noise_f32([43, 37, 31], 1, 33));
    }
    // More than 1 MiB, so that the small device has to work in blocks.
    check_f32(&box_blur(130), &noise_f32([403, 509, 1], 1, 34));
    // With a constant image and the longest windows, rounding errors all have the same sign.
    let grid = Grid { samples: Samples::F32(vec![0.1; 700]), ..noise_f32([70, 10, 1], 1, 35) };
    check_f32(&box_blur(10_000), &grid);
    // A device with small bindings works in blocks.
    let caps = Restrictions { binding_bytes: Some(1 << 20), ..Restrictions::default() };
    if let Some(Subject { context, .. }) = &open("small bindings", &caps) {
        let (blur, grid) = (gaussian(5.0), noise_f32([403, 509, 1], 2, 36));
        assert_eq!(blur.gpu(context, &grid).unwrap(), blur.cpu(&grid).unwrap());
    }
}

/// With a large common offset, results on every device are within a few units in the last place.
#[test]
fn f32_with_large_offset_is_accurate_to_a_few_ulp() {
    let mut grid = noise_f32([151, 97, 1], 1, 37);
    let Samples::F32(samples) = &mut grid.samples else { unreachable!() };
    samples.iter_mut().for_each(|v| *v = 1e6 + 2.0 * *v - 1.0);
    // The spacing of f32 at this offset.
    let unit = 1.0 / 16.0;
    for (blur, tolerance) in [
        (box_blur(2), 2.5),
        (box_blur(20), 4.5),
        (box_blur(40), 1.0),
        (gaussian(1.0), 3.0),
        (gaussian(8.0), 4.5),
        (gaussian(100.0), 5.0),
    ] {
        let expected = reference(&blur, &grid);
        let Samples::F32(found) = assert_same_samples(&blur, &grid) else { panic!() };
        let off = |(found, exact): (&f32, &f64)| (f64::from(*found) - exact).abs() / unit;
        let off = found.iter().zip(&expected).map(off).fold(0.0, f64::max);
        assert!(off <= tolerance, "{blur:?}: {off} units in the last place");
    }
}

fn noise_f32(dims: [usize; 3], channels: usize, seed: u64) -> Grid {
    let mut noise = Noise(seed);
    let samples = (0..dims.iter().product::<usize>() * channels).map(|_| noise.unit() as f32);
    Grid { dims, channels, alpha: Alpha::None, samples: Samples::F32(samples.collect()) }
}

/// Checks results for f32 samples between 0 and 1.
fn check_f32(blur: &Blur, grid: &Grid) {
    let expected = reference(blur, grid);
    let Samples::F32(found) = assert_same_samples(blur, grid) else { panic!("the type changed") };
    assert_eq!(found.len(), expected.len());
    for (i, (found, exact)) in found.iter().zip(&expected).enumerate() {
        let off = (f64::from(*found) - exact).abs();
        let dims = grid.dims;
        assert!(off <= 2e-6, "{blur:?} of {dims:?}: {found} at {i}, expected {exact}");
    }
}

/// Long box filters of floats are summed in blocks that begin at the first row of a window. Other filters use partial
/// sums.
#[test]
fn f32_result_does_not_depend_on_block_height() {
    let mut grid = noise_f32([41, 153, 1], 3, 36);
    let Samples::F32(samples) = &mut grid.samples else { unreachable!() };
    // From 1 down to about 2^-30.
    samples.iter_mut().for_each(|v| *v = v.powi(20));
    for blur in [box_blur(32), box_blur(50), Blur { iterations: 2, ..box_blur(37) }, gaussian(12.0)]
    {
        let whole = blur.cpu(&grid).unwrap();
        for height in [1, 7, 26, 100] {
            let all = blur_in_blocks(&blur, &grid, height, &|blur, grid| blur.cpu(grid)).unwrap();
            assert!(all == whole.as_bytes(), "{blur:?} {height}");
        }
    }
}

/// Sums are rounded to the nearest integer, halves up, by shifts and by divisors of every size.
#[test]
fn sums_are_rounded_halves_up() {
    for shift in 0..=28u32 {
        let unit = 1u64 << shift;
        for sum in
            [0, 1, unit / 2, unit / 2 + 1, unit - 1, unit, 3 * unit / 2, 1000 * unit + unit / 2]
                .into_iter()
                .flat_map(|sum| [sum.saturating_sub(1), sum])
        {
            // floor(sum / unit + 1 / 2)
            let expected = (2 * sum + unit) / (2 * unit);
            assert_eq!(Rounding::Shift(shift).apply(sum), expected, "{sum} by {shift} bits");
        }
    }
    for divisor in [1u32, 2, 3, 9, 10, 257, 65_537] {
        for up in [0, 4, 8] {
            for sum in (0..60).chain([65_535 * u64::from(divisor), 12_345_678]) {
                let exact = (sum << up) as f64 / f64::from(divisor);
                let expected = (exact + 0.5).floor() as u64;
                let found = Rounding::Divide { up, divisor }.apply(sum);
                assert_eq!(found, expected, "{sum} with {up} bits by {divisor}");
            }
        }
    }
    assert_eq!(Rounding::None.apply(77), 77);
}
