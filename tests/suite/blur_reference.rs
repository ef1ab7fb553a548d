//! Naive blur in f64.

use gpuproc::{
    data::{grid::Grid, samples::Samples},
    kernels::blur::{Blur, Edge, Method, Taps},
};

pub const EDGES: [Edge; 6] = [
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
    let weights: Vec<f64> = (-r..axis.count() as isize - r)
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
            // For each position, the positions of its window, and their weights.
            let windows: Vec<Vec<(Option<usize>, f64)>> = (0..n as isize)
                .map(|at| {
                    let first = at - axis.radius as isize;
                    let at = (first..).map(|to| reference_index(to, n, blur.edge));
                    at.zip(weights.iter().copied()).collect()
                })
                .collect();
            for (i, value) in values.iter_mut().enumerate() {
                let at = i / stride % n;
                let outside = match blur.edge {
                    Edge::Constant(0.0) => 0.0,
                    Edge::Constant(_) if grid.has_alpha() && i % c == c - 1 => full,
                    Edge::Constant(v) if blur.linear => full * decode(v / full),
                    Edge::Constant(v) => v,
                    _ => f64::NAN,
                };
                *value = windows[at]
                    .iter()
                    .map(|&(to, w)| {
                        w * to.map_or(outside, |to| before[i - at * stride + to * stride])
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

pub fn gaussian(sigma: f64) -> Blur {
    let axis = Taps::gaussian(sigma, (3.0 * sigma).ceil() as usize);
    Blur {
        method: Method::Gaussian,
        axes: [axis, axis, Taps::NONE],
        iterations: 1,
        edge: Edge::Clamp,
        linear: false,
    }
}

pub fn box_blur(radius: usize) -> Blur {
    let axis = Taps::box_filter(radius);
    Blur { method: Method::Box, axes: [axis, axis, Taps::NONE], ..gaussian(1.0) }
}
