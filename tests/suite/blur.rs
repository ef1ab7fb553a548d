//! Blur: the CPU and GPU kernels against a naive reference in f64.

use gpuproc::{
    data::{
        grid::{Alpha, Grid},
        samples::Samples,
    },
    device::Kernel,
    engine::Window,
    gpu::Restrictions,
    kernels::blur::{Blur, Edge, Method, Taps},
    util::error::Result,
};

use crate::common::{Noise, Subject, assert_same_samples, assert_twins, open, subjects};

const EDGES: [Edge; 6] = [
    Edge::Clamp,
    Edge::Reflect,
    Edge::Mirror,
    Edge::Wrap,
    Edge::Constant(0.0),
    Edge::Constant(77.0),
];

/// Maps a position outside the image to an index, one period at a time. Edge modes are those of scipy.ndimage.
fn reference_index(at: isize, n: usize, edge: Edge) -> Option<usize> {
    let n = n as isize;
    let mut at = at;
    while !(0..n).contains(&at) {
        at = match edge {
            Edge::Clamp => at.clamp(0, n - 1),
            Edge::Reflect => {
                if at < 0 {
                    -1 - at
                } else {
                    2 * n - 1 - at
                }
            }
            Edge::Mirror if n == 1 => 0,
            Edge::Mirror => {
                if at < 0 {
                    -at
                } else {
                    2 * n - 2 - at
                }
            }
            Edge::Wrap => {
                if at < 0 {
                    at + n
                } else {
                    at - n
                }
            }
            _ => return None,
        };
    }
    Some(at as usize)
}

fn reference_weights(axis: Taps, method: Method) -> Vec<f64> {
    let r = axis.radius as isize;
    let weights: Vec<f64> = (-r..=r)
        .map(|i| match method {
            Method::Gaussian => (-((i * i) as f64) / (2.0 * axis.sigma * axis.sigma)).exp(),
            Method::Box => 1.0,
        })
        .collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|w| w / sum).collect()
}

/// Blurs in f64 without rounding, in units of the samples. If the image has alpha, colours are premultiplied.
pub fn reference(blur: &Blur, grid: &Grid) -> Vec<f64> {
    let (mut values, full): (Vec<f64>, f64) = match &grid.samples {
        Samples::U8(v) => (v.iter().map(|&v| v.into()).collect(), 255.0),
        Samples::U16(v) => (v.iter().map(|&v| v.into()).collect(), 65535.0),
        Samples::F32(v) => (v.iter().map(|&v| v.into()).collect(), 1.0),
        _ => unreachable!(),
    };
    let c = grid.channels;
    let decode = |v: f64| match v <= 0.04045 {
        true => v / 12.92,
        false => ((v + 0.055) / 1.055).powf(2.4),
    };
    let encode = |v: f64| match v <= 0.0031308 {
        true => v * 12.92,
        false => 1.055 * v.powf(1.0 / 2.4) - 0.055,
    };
    let colours = c - usize::from(grid.has_alpha());
    for pixel in values.chunks_exact_mut(c) {
        let alpha = if grid.has_alpha() { pixel[c - 1] / full } else { 1.0 };
        for v in &mut pixel[..colours] {
            if blur.linear {
                *v = full * decode(*v / full);
            }
            *v *= alpha;
        }
    }
    for _ in 0..blur.iterations {
        for (number, &axis) in blur.axes.iter().enumerate() {
            if axis.radius == 0 {
                continue;
            }
            let weights = reference_weights(axis, blur.method);
            let stride: usize = grid.dims[..number].iter().product::<usize>() * c;
            let n = grid.dims[number];
            let before = values.clone();
            for (i, value) in values.iter_mut().enumerate() {
                let at = (i / stride % n) as isize;
                *value = weights
                    .iter()
                    .enumerate()
                    .map(|(k, w)| {
                        let to = at + k as isize - axis.radius as isize;
                        w * match (reference_index(to, n, blur.edge), blur.edge) {
                            (Some(to), _) => before[i - at as usize * stride + to * stride],
                            (None, Edge::Constant(0.0)) => 0.0,
                            (None, Edge::Constant(_)) if grid.has_alpha() && i % c == c - 1 => full,
                            (None, Edge::Constant(v)) if blur.linear => full * decode(v / full),
                            (None, Edge::Constant(v)) => v,
                            _ => unreachable!(),
                        }
                    })
                    .sum();
            }
        }
    }
    for pixel in values.chunks_exact_mut(c) {
        let alpha = if grid.has_alpha() { pixel[c - 1] / full } else { 1.0 };
        for v in &mut pixel[..colours] {
            *v = if alpha > 0.0 { *v / alpha } else { 0.0 };
            if blur.linear {
                *v = full * encode(*v / full);
            }
        }
    }
    values
}

fn gaussian(sigma: f64) -> Blur {
    let axis = Taps::gaussian(sigma, (3.0 * sigma).ceil() as usize);
    Blur {
        method: Method::Gaussian,
        axes: [axis, axis, Taps::NONE],
        iterations: 1,
        edge: Edge::Clamp,
        linear: false,
    }
}

fn box_blur(radius: usize) -> Blur {
    let axis = Taps::box_filter(radius);
    Blur { method: Method::Box, axes: [axis, axis, Taps::NONE], ..gaussian(1.0) }
}

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
            for dims in [[1, 1, 1], [2, 3, 1], [13, 7, 1], [67, 31, 1]] {
                let grid = noise_u8(dims, channels, seed as u64);
                for blur in [gaussian(1.3), gaussian(4.0), box_blur(1), box_blur(9)] {
                    check_u8(&Blur { edge, ..blur }, &grid);
                }
            }
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
    for edge in EDGES {
        let blur = Blur { edge, iterations: 2, ..gaussian(1.5) };
        check_u8(&blur, &noise_u8([403, 509, 1], 3, 6));
    }
    // With this radius, a block does not fit into workgroup memory, so the passes run one by one.
    for edge in [Edge::Clamp, Edge::Reflect, Edge::Wrap, Edge::Constant(9.0)] {
        check_u8(&Blur { edge, ..gaussian(60.0) }, &noise_u8([301, 401, 1], 4, 7));
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
fn blur_in_blocks(
    blur: &Blur,
    grid: &Grid,
    height: usize,
    run: &dyn Fn(&Blur, &Grid) -> Result<Samples>,
) -> Result<Vec<u8>> {
    let [width, rows, _] = grid.dims;
    let row = width * grid.channels;
    let mut all = Vec::new();
    for first in (0..rows).step_by(height) {
        let core = first..(first + height).min(rows);
        let Window { positions, before } = Window::new(&core, blur.halo(1), rows, false);
        let block = Grid {
            dims: [width, positions.len(), 1],
            samples: grid.samples.part(positions.start * row..positions.end * row),
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
                for Subject { name, context } in subjects() {
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
    check_u16(&gaussian(60.0), &noise_u16([301, 401, 1], 4, 26), U16_TOLERANCE);
    check_u16(&box_blur(150), &noise_u16([301, 401, 1], 4, 27), U16_TOLERANCE);
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
    for value in [0, 1, 100, 254, 255] {
        let samples = Samples::U8(vec![value; 50 * 40 * 3]);
        let grid = Grid { dims: [50, 40, 1], channels: 3, alpha: Alpha::None, samples };
        for blur in [gaussian(0.3), gaussian(7.0), gaussian(300.0), box_blur(1), box_blur(600)] {
            for iterations in [1, 4] {
                let blur = Blur { iterations, ..blur.clone() };
                assert_eq!(blur.cpu(&grid).unwrap(), grid.samples);
                assert_twins(&blur, &grid, |a, b, _| assert_eq!(a, b));
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
