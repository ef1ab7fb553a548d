//! Blur of 8-bit samples: the CPU and GPU kernels against a naive reference in f64.

use gpuproc::{
    data::{
        blocks::{Span, Split},
        grid::{Alpha, Grid},
        samples::Samples,
    },
    device::Kernel,
    gpu::Restrictions,
    kernels::blur::{Blur, BlurByAxis, Edge, Taps},
    util::error::Result,
};

use crate::{
    blur_reference::{EDGES, box_blur, gaussian, reference},
    common::{Noise, Subject, assert_twins, open, subjects},
};

fn noise_u8(dims: [usize; 3], channels: usize, seed: u64) -> Grid {
    let samples = Noise(seed).bytes(dims.iter().product::<usize>() * channels);
    Grid { dims, channels, alpha: Alpha::None, samples: Samples::U8(samples) }
}

/// Bound on the error from rounding the weights to integers. The largest error measured is 0.011, for a sigma of 60.
const WEIGHT_ROUNDING: f64 = 1.0 / 64.0;

/// Checks that 8-bit results are equal on every device and are the reference rounded to the nearest integer.
fn check_u8(blur: &Blur, grid: &Grid) {
    let found = assert_twins(blur, grid, |cpu, gpu, name| {
        assert!(cpu == gpu, "{name}: {blur:?} of {:?} differs", grid.dims);
    });
    let Samples::U8(found) = found else { panic!("the type changed") };
    let expected = reference(blur, grid);
    assert_eq!(found.len(), expected.len());
    for (i, (&found, exact)) in found.iter().zip(&expected).enumerate() {
        let last = i - i % grid.channels + grid.channels - 1;
        // Fully transparent pixels are black.
        let exact = if grid.has_alpha() && expected[last].round() == 0.0 { 0.0 } else { *exact };
        let off = (f64::from(found) - exact).abs();
        assert!(
            off <= 0.5 + WEIGHT_ROUNDING,
            "{blur:?} of {:?}: {found} at {i}, expected {exact}",
            grid.dims
        );
    }
}

#[test]
fn u8_matches_reference_for_all_edge_modes_and_channel_counts() {
    for (seed, edge) in EDGES.into_iter().enumerate() {
        for channels in 1..=4 {
            let check = |dims, blur| {
                check_u8(&Blur { edge, ..blur }, &noise_u8(dims, channels, seed as u64));
            };
            // Both radii with each edge mode and each channel count. Each combination needs separate shaders.
            let boxed = box_blur(if (seed + channels).is_multiple_of(2) { 1 } else { 9 });
            for dims in [[1, 1, 1], [2, 3, 1], [67, 31, 1]] {
                [gaussian(4.0), boxed.clone()].into_iter().for_each(|blur| check(dims, blur));
            }
            check([67, 31, 1], gaussian(1.3));
        }
    }
}

#[test]
fn u8_matches_reference_at_sizes_around_device_limits() {
    for width in [1, 3, 4, 5, 255, 256, 257, 511, 512, 513, 1031] {
        check_u8(&gaussian(1.0), &noise_u8([width, 5, 1], 4, 1));
        check_u8(&gaussian(2.0), &noise_u8([5, width, 1], 3, 2));
        check_u8(&box_blur(3), &noise_u8([width, 6, 1], 1, 3));
        check_u8(&box_blur(2), &noise_u8([6, width, 1], 2, 4));
    }
    // More than 1 MiB, so that the small device has to work in blocks.
    check_u8(&gaussian(2.0), &noise_u8([701, 433, 1], 4, 5));
    for edge in [Edge::Mirror, Edge::Wrap, Edge::Constant(9.0)] {
        let blur = Blur { edge, iterations: 2, ..gaussian(1.5) };
        check_u8(&blur, &noise_u8([403, 509, 1], 3, 6));
    }
    // With this radius, a block does not fit into workgroup memory, so the passes run one by one.
    for edge in [Edge::Clamp, Edge::Reflect, Edge::Wrap, Edge::Constant(9.0)] {
        check_u8(&Blur { edge, ..gaussian(60.0) }, &noise_u8([101, 151, 1], 4, 7));
    }
}

#[test]
fn u8_matches_reference_for_many_sigmas_and_radii() {
    for sigma in [0.1, 0.2, 0.34, 0.5, 0.8, 3.0, 11.0, 32.0, 63.9, 64.1, 100.0, 500.0] {
        check_u8(&gaussian(sigma), &noise_u8([97, 41, 1], 3, 8));
    }
    for radius in [1, 2, 15, 31, 100, 127, 128, 500, 1500] {
        check_u8(&box_blur(radius), &noise_u8([97, 41, 1], 3, 9));
    }
    let x = Taps::gaussian(3.0, 9);
    check_u8(
        &Blur { axes: [x, Taps::NONE, Taps::NONE], ..gaussian(1.0) },
        &noise_u8([97, 41, 1], 3, 10),
    );
    check_u8(
        &Blur { axes: [Taps::NONE, x, Taps::NONE], ..gaussian(1.0) },
        &noise_u8([97, 41, 1], 3, 11),
    );
    let cut = Taps::gaussian(3.0, 2);
    check_u8(&Blur { axes: [x, cut, Taps::NONE], ..gaussian(1.0) }, &noise_u8([97, 41, 1], 4, 12));
}

/// Boxes of even size begin half their size before the centre.
#[test]
fn even_boxes_match_reference() {
    for edge in EDGES {
        for [x, y, z] in [[2, 1, 1], [4, 7, 1], [1, 16, 1], [40, 12, 1], [6, 3, 2]] {
            let axes = [x, y, z].map(Taps::box_of_size);
            let blur = Blur { axes, edge, ..box_blur(1) };
            let bytes = noise_u8([37, 23, 5], 1, 14);
            check_u8(&blur, &bytes);
            let Samples::U8(values) = &bytes.samples else { unreachable!() };
            let words: Vec<u16> = values.iter().map(|&value| u16::from(value) * 257).collect();
            let floats: Vec<f32> = values.iter().map(|&value| f32::from(value)).collect();
            for (samples, tolerance) in [(Samples::U16(words), 0.51), (Samples::F32(floats), 1e-3)]
            {
                let grid = Grid { samples, ..bytes };
                let expected = reference(&blur, &grid);
                let found = assert_twins(&blur, &grid, |cpu, gpu, _| assert_eq!(cpu, gpu));
                let found: Vec<f64> = match found {
                    Samples::U16(v) => v.into_iter().map(f64::from).collect(),
                    Samples::F32(v) => v.into_iter().map(f64::from).collect(),
                    other => panic!("{other:?}"),
                };
                for (found, expected) in found.iter().zip(expected) {
                    assert!((found - expected).abs() <= tolerance, "{blur:?}: {found}, {expected}");
                }
            }
        }
    }
}

/// Floats are not rounded between axes.
#[test]
fn edges_by_axis_are_those_of_single_axes() {
    let samples: Vec<f32> = Noise(15).bytes(19 * 11 * 5).iter().map(|&v| f32::from(v)).collect();
    let grid = Grid::volume([19, 11, 5], samples.into());
    let edges = [Edge::Wrap, Edge::Constant(7.0), Edge::Reflect];
    for blur in [gaussian(1.5), box_blur(4)] {
        let blur = Blur { axes: [blur.axes[0]; 3], edge: edges[1], ..blur };
        let by_axis = BlurByAxis { blur: blur.clone(), edges };
        let found = assert_twins(&by_axis, &grid, |cpu, gpu, _| assert_eq!(cpu, gpu));
        let expected = (0..3).fold(grid.clone(), |grid, axis| {
            let mut axes = [Taps::NONE; 3];
            axes[axis] = blur.axes[axis];
            let samples = Blur { axes, edge: edges[axis], ..blur }.cpu(&grid).unwrap();
            Grid { samples, ..grid }
        });
        assert_eq!(found, expected.samples);
    }
}

/// The CPU and the GPU kernel split these images into several tiles and strips.
#[test]
fn u8_matches_reference_for_wide_and_tall_images() {
    check_u8(&gaussian(1.0), &noise_u8([5003, 61, 1], 3, 21));
    check_u8(&Blur { edge: Edge::Mirror, ..gaussian(0.3) }, &noise_u8([131, 1511, 1], 2, 22));
    // Long windows in several tiles and runs of rows.
    check_u8(&box_blur(300), &noise_u8([5003, 70, 1], 1, 25));
    check_u8(&Blur { edge: Edge::Reflect, ..box_blur(200) }, &noise_u8([3001, 131, 1], 4, 26));
}

/// The image fits into a binding, but not together with its halo to the left and right.
#[test]
fn wide_box_filter_of_narrow_image_works_with_small_bindings() {
    let caps = Restrictions { binding_bytes: Some(1 << 20), ..Restrictions::default() };
    let (blur, grid) = (box_blur(300), noise_u8([3, 700, 1], 4, 24));
    let expected = blur.cpu(&grid).unwrap();
    if let Some(Subject { name, context }) = &open("small bindings", &caps) {
        assert!(blur.gpu(context, &grid).unwrap() == expected, "{name}");
    }
}

/// Blurs `grid` in blocks of `height` rows, each with its halo.
pub fn blur_in_blocks(
    blur: &Blur,
    grid: &Grid,
    height: usize,
    run: &dyn Fn(&Blur, &Grid) -> Result<Samples>,
) -> Result<Vec<u8>> {
    let [width, rows, _] = grid.dims;
    let row = width * grid.channels;
    let mut all = Vec::new();
    let split = Split { len: rows, block: height, halo: [blur.halo(1); 2], wraps: false };
    for Span { core, padded, before } in split.spans() {
        let block = Grid {
            dims: [width, padded.len(), 1],
            samples: grid.samples.part(padded.start * row..padded.end * row),
            ..*grid
        };
        let blurred = run(blur, &block)?;
        all.extend_from_slice(blurred.part(before * row..(before + core.len()) * row).as_bytes());
    }
    Ok(all)
}

#[test]
fn result_does_not_depend_on_block_height() {
    let mut noise = Noise(23);
    let words = Samples::U16((0..41 * 53 * 3).map(|_| (noise.next() >> 48) as u16).collect());
    let mut opaque = with_alpha([31, 53, 1], 4);
    let Samples::U8(samples) = &mut opaque.samples else { unreachable!() };
    samples.iter_mut().skip(3).step_by(4).for_each(|alpha| *alpha = 255);
    let grids = [
        noise_u8([41, 53, 1], 3, 24),
        // The upper rows are opaque, but the image as a whole is not.
        Grid { alpha: Alpha::Translucent, ..half_opaque([41, 53, 1]) },
        opaque,
        Grid { dims: [41, 53, 1], channels: 3, alpha: Alpha::None, samples: words },
    ];
    for (number, grid) in grids.iter().enumerate() {
        for edge in EDGES.into_iter().filter(|&edge| edge != Edge::Wrap) {
            for blur in [gaussian(1.5), box_blur(6), Blur { iterations: 3, ..gaussian(0.7) }] {
                let blur = Blur { edge, ..blur };
                let whole = blur.cpu(grid).unwrap();
                for height in [1, 2, 3, 5, 9, 26, 27, 52, 53, 90] {
                    let all =
                        blur_in_blocks(&blur, grid, height, &|blur, grid| blur.cpu(grid)).unwrap();
                    assert!(all == whole.as_bytes(), "{number} {blur:?} {height}");
                }
                // Edges are outside of all blocks but the first and the last one.
                let on_gpu = matches!(edge, Edge::Clamp | Edge::Constant(_));
                for Subject { name, context } in subjects().iter().filter(|_| on_gpu) {
                    let all =
                        blur_in_blocks(&blur, grid, 20, &|blur, grid| blur.gpu(context, grid));
                    assert!(all.unwrap() == whole.as_bytes(), "{name} {number} {blur:?}");
                }
            }
        }
    }
}

/// An image with alpha whose upper half is opaque.
fn half_opaque(dims: [usize; 3]) -> Grid {
    let mut grid = with_alpha(dims, 4);
    let half = grid.samples.len() / 2;
    let Samples::U8(samples) = &mut grid.samples else { unreachable!() };
    samples[..half].iter_mut().skip(3).step_by(4).for_each(|alpha| *alpha = 255);
    grid
}

#[test]
fn iterated_blur_matches_reference() {
    for iterations in [2, 3, 10] {
        check_u8(&Blur { iterations, ..gaussian(1.0) }, &noise_u8([61, 43, 1], 3, 13));
        check_u8(&Blur { iterations, ..box_blur(2) }, &noise_u8([61, 43, 1], 4, 14));
        check_u8(&Blur { iterations, ..gaussian(70.0) }, &noise_u8([61, 43, 1], 1, 15));
    }
}

#[test]
fn u8_volumes_match_reference() {
    for (seed, edge) in EDGES.into_iter().enumerate() {
        let axes = [Taps::gaussian(1.0, 3), Taps::gaussian(1.5, 5), Taps::gaussian(0.8, 3)];
        let grid = noise_u8([21, 17, 13], 1, seed as u64);
        check_u8(&Blur { axes, edge, ..gaussian(1.0) }, &grid);
        // Box filters with few taps, and with more taps than the integer division of the shader supports.
        let few = [1, 2, 5].map(Taps::box_filter);
        for axes in [few, [Taps::box_filter(400); 3]] {
            check_u8(&Blur { axes, edge, ..box_blur(1) }, &grid);
            check_u8(&Blur { axes, edge, iterations: 2, ..box_blur(1) }, &grid);
        }
    }
    let axes = [Taps::gaussian(1.0, 3); 3];
    for edge in [Edge::Clamp, Edge::Mirror, Edge::Wrap] {
        check_u8(&Blur { axes, edge, ..gaussian(1.0) }, &noise_u8([113, 97, 101], 1, 77));
    }
}

/// An image with opaque, translucent and fully transparent areas.
fn with_alpha(dims: [usize; 3], channels: usize) -> Grid {
    let mut grid = noise_u8(dims, channels, 16);
    let Samples::U8(samples) = &mut grid.samples else { unreachable!() };
    for (i, pixel) in samples.chunks_exact_mut(channels).enumerate() {
        let (x, y) = (i % dims[0], i / dims[0]);
        let alpha = &mut pixel[channels - 1];
        match (x * 4 / dims[0], y * 2 / dims[1]) {
            (0, _) => *alpha = 0,
            (1, 0) => *alpha = 255,
            (2, 1) => *alpha &= 3,
            _ => {}
        }
    }
    grid.alpha = Alpha::Straight;
    grid
}

#[test]
fn images_with_alpha_match_reference() {
    for edge in EDGES {
        for blur in
            [gaussian(0.7), gaussian(3.0), box_blur(4), Blur { iterations: 3, ..gaussian(1.0) }]
        {
            for channels in [2, 4] {
                check_u8(&Blur { edge, ..blur.clone() }, &with_alpha([60, 37, 1], channels));
            }
        }
    }
    check_u8(&gaussian(40.0), &with_alpha([300, 77, 1], 4));
    // Sums of more than 32 bits, and windows that do not fit into workgroup memory.
    for (edge, radius) in
        [(Edge::Clamp, 127), (Edge::Reflect, 128), (Edge::Wrap, 300), (Edge::Constant(9.0), 1500)]
    {
        check_u8(&Blur { edge, ..box_blur(radius) }, &with_alpha([160, 37, 1], 4));
        check_u8(&Blur { edge, ..box_blur(radius) }, &with_alpha([37, 160, 1], 2));
    }
    // Opaque images take a faster path.
    let mut opaque = noise_u8([45, 33, 1], 4, 17);
    let Samples::U8(samples) = &mut opaque.samples else { unreachable!() };
    samples.iter_mut().skip(3).step_by(4).for_each(|alpha| *alpha = 255);
    opaque.alpha = Alpha::Straight;
    for edge in EDGES {
        check_u8(&Blur { edge, ..gaussian(2.0) }, &opaque);
    }
}

#[test]
fn linear_light_matches_reference() {
    for edge in EDGES {
        check_u8(&Blur { edge, linear: true, ..gaussian(2.0) }, &noise_u8([60, 37, 1], 3, 18));
        check_u8(&Blur { edge, linear: true, ..box_blur(2) }, &with_alpha([60, 37, 1], 4));
    }
    check_u8(&Blur { linear: true, ..box_blur(200) }, &noise_u8([60, 37, 1], 3, 18));
}

/// Published results for a single point in a 5x5 image with zeros outside.
#[test]
fn matches_published_point_responses() {
    let mut samples = vec![0f32; 25];
    samples[12] = 1.0;
    let grid =
        Grid { dims: [5, 5, 1], channels: 1, alpha: Alpha::None, samples: Samples::F32(samples) };
    let axis = Taps::gaussian(1.0 / 3.0, 1);
    let edge = Edge::Constant(0.0);
    let blur = Blur { axes: [axis, axis, Taps::NONE], edge, ..gaussian(1.0) };
    let check = |found: &Samples, name: &str| {
        let Samples::F32(found) = found else { panic!("the type changed") };
        for (at, golden) in [(12, 0.957002), (11, 0.010631), (7, 0.010631), (6, 0.000118), (0, 0.0)]
        {
            assert!((found[at] - golden).abs() < 1e-6, "{name}: {} for {golden}", found[at]);
        }
    };
    check(&assert_twins(&blur, &grid, |_, gpu, name| check(gpu, name)), "cpu");

    let mut samples = vec![0u8; 25];
    samples[12] = 255;
    let grid = Grid { samples: Samples::U8(samples), ..grid };
    let axis = Taps::gaussian(2.0 / 3.0, 2);
    let blur = Blur { axes: [axis, axis, Taps::NONE], ..blur };
    let Samples::U8(found) = assert_twins(&blur, &grid, |a, b, _| assert_eq!(a, b)) else {
        panic!()
    };
    for (at, golden) in [(12, 91), (11, 29), (6, 9), (10, 1)] {
        assert!(found[at].abs_diff(golden) <= 1, "{} for {golden}", found[at]);
    }

    let ramp = Grid { samples: Samples::U8((0..25).map(|i| i * 10).collect()), ..grid };
    check_u8(&blur, &ramp);
    check_u8(&Blur { edge: Edge::Clamp, ..blur }, &ramp);
}

#[test]
fn constant_images_stay_constant_and_points_stay_centred() {
    for value in [100, 255] {
        let samples = Samples::U8(vec![value; 50 * 40 * 3]);
        let grid = Grid { dims: [50, 40, 1], channels: 3, alpha: Alpha::None, samples };
        for blur in [gaussian(0.3), gaussian(7.0), gaussian(300.0), box_blur(1), box_blur(600)] {
            for iterations in [1, 4] {
                let blur = Blur { iterations, ..blur.clone() };
                let found = assert_twins(&blur, &grid, |a, b, _| assert_eq!(a, b));
                assert_eq!(found, grid.samples);
            }
        }
    }
    let mut samples = vec![0u8; 61 * 61];
    samples[30 * 61 + 30] = 255;
    let grid =
        Grid { dims: [61, 61, 1], channels: 1, alpha: Alpha::None, samples: Samples::U8(samples) };
    for blur in [gaussian(1.0), box_blur(2), Blur { iterations: 5, ..gaussian(0.8) }] {
        let Samples::U8(found) = assert_twins(&blur, &grid, |a, b, _| assert_eq!(a, b)) else {
            panic!()
        };
        let (mut x, mut y, mut sum) = (0, 0, 0);
        for (i, &v) in found.iter().enumerate() {
            (x, y, sum) = (x + i % 61 * v as usize, y + i / 61 * v as usize, sum + v as usize);
        }
        assert!(sum > 0 && x == 30 * sum && y == 30 * sum, "{blur:?}: {x} {y} of {sum}");
    }
}

#[test]
fn zero_radius_is_the_identity_and_empty_images_are_allowed() {
    for samples in [Samples::U8(Noise(1).bytes(64)), Samples::U16(vec![1, 500, 65535, 9])] {
        let dims = [samples.len() / 4, 1, 1];
        let grid = Grid { dims, channels: 4, alpha: Alpha::Straight, samples };
        for blur in [gaussian(0.0), box_blur(0)] {
            assert_twins(&blur, &grid, |_, gpu, _| assert_eq!(*gpu, grid.samples));
            assert_eq!(blur.cpu(&grid).unwrap(), grid.samples);
        }
    }
    let empty =
        Grid { dims: [0, 5, 1], channels: 3, alpha: Alpha::None, samples: Samples::U8(vec![]) };
    assert_eq!(gaussian(2.0).cpu(&empty).unwrap(), empty.samples);
    for Subject { context, .. } in subjects() {
        assert_eq!(gaussian(2.0).gpu(context, &empty).unwrap(), empty.samples);
    }
}
