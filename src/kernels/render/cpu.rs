//! The rasterizer on the CPU. It computes like the shader, but finds depths and triangles in one pass.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::view::{RenderParams, Tap, samples, taps};
use crate::{
    data::{srgb, surface::Surface, vec3::dot},
    util::{
        error::Result,
        memory,
        parallel::{self, Parallel},
        simd,
    },
};

pub(super) fn draw(
    params: RenderParams,
    surface: &Surface,
    normals: &[[f32; 3]],
) -> Result<Vec<u8>> {
    let project = |&p: &[f32; 3]| {
        let RenderParams { right, down, away, .. } = params;
        [right, down, away].map(|axis| dot(xyz(axis), p) + axis[3])
    };
    let points = parallel::mapped(&surface.positions, project)?;
    let subpixels = params.width as usize * params.height as usize;
    let nearest = parallel::generated(subpixels, |_| AtomicU64::new(EMPTY))?;
    let light = (0..=255u8).map(|v| srgb::to_linear(f64::from(v) / 255.0) as f32).collect();
    let canvas = Canvas { params, surface, normals, samples: samples(), points, light, nearest };
    let chunks = (0..params.triangles.div_ceil(CHUNK)).map(|chunk| chunk * CHUNK);
    chunks.par_each(|first| {
        (first..params.triangles.min(first + CHUNK)).for_each(|number| canvas.rasterize(number));
    });
    let depths = DepthMap::new(&canvas.nearest, params)?;
    let columns = (params.width / canvas.samples) as usize;
    let mut picture = memory::zeros(columns * params.rows as usize * 4)?;
    picture.chunks_mut(columns * 4).enumerate().par_each(|(y, row)| {
        canvas.draw_row(&depths, y as u32, row);
    });
    Ok(picture)
}

/// Triangles that a thread draws at a time.
const CHUNK: u32 = 1024;

/// The linear colour of surfaces without colours.
const BONE: [f32; 3] = [0.84, 0.76, 0.64];

/// The value of a subpixel without a surface.
const EMPTY: u64 = u64::MAX;

struct Canvas<'a> {
    params: RenderParams,
    surface: &'a Surface,
    normals: &'a [[f32; 3]],
    samples: u32,
    /// The vertices in picture coordinates.
    points: Vec<[f32; 3]>,
    /// Linear light of the 256 sRGB values.
    light: Vec<f32>,
    /// Nearest depth of each subpixel, and the lowest number of the triangles at that depth, as `depth bits << 32 |
    /// triangle`. Positive floats are ordered like their bits, so the minimum is the nearest triangle.
    nearest: Vec<AtomicU64>,
}

/// The depths, with a border that repeats the outermost ones. The border is as wide as the distance of occluders, so
/// the search needs no bounds checks.
struct DepthMap {
    depths: Vec<f32>,
    border: usize,
    stride: usize,
    /// The taps, with their offsets in `depths`.
    taps: Vec<(isize, Tap)>,
}

impl DepthMap {
    /// Depth of subpixels without a surface.
    const FAR: f32 = 1e30;

    fn new(nearest: &[AtomicU64], params: RenderParams) -> Result<Self> {
        let (width, height) = (params.width as usize, params.height as usize);
        let border = params.reach.ceil() as usize;
        let stride = width + 2 * border;
        let mut depths = memory::zeros::<f32>(stride * (height + 2 * border))?;
        depths.chunks_mut(stride).enumerate().par_each(|(y, row)| {
            let y = y.saturating_sub(border).min(height - 1);
            for (x, depth) in row.iter_mut().enumerate() {
                let x = x.saturating_sub(border).min(width - 1);
                *depth = match nearest[y * width + x].load(Relaxed) {
                    EMPTY => Self::FAR,
                    found => f32::from_bits((found >> 32) as u32),
                };
            }
        });
        let offset = |[right, down]: [f32; 2]| down as isize * stride as isize + right as isize;
        let taps = taps(params.reach).into_iter().map(|tap| (offset(tap.offset), tap)).collect();
        Ok(Self { depths, border, stride, taps })
    }

    fn index(&self, x: usize, y: usize) -> usize {
        (y + self.border) * self.stride + x + self.border
    }
}

/// A triangle in picture coordinates.
struct Projected {
    corners: [u32; 3],
    points: [[f32; 3]; 3],
    /// First and last subpixel with a centre in the bounding box.
    low: [i32; 2],
    high: [i32; 2],
}

impl Projected {
    /// Whether the corners are clockwise as seen from the eye. y points down.
    fn is_from_behind(&self) -> bool {
        let [a, b, c] = self.points;
        (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]) > 0.0
    }

    /// The weights of the corners at a point, which sum to 1; `None` outside the triangle.
    fn weights(&self, point: [f32; 2]) -> Option<[f32; 3]> {
        // Both triangles of an edge compute from its lower vertex, so no point between them is missed.
        let edge = |i: usize, j: usize| {
            let (p, q) = (self.points[i], self.points[j]);
            match self.corners[i] < self.corners[j] {
                true => (q[0] - p[0]) * (point[1] - p[1]) - (q[1] - p[1]) * (point[0] - p[0]),
                false => -((p[0] - q[0]) * (point[1] - q[1]) - (p[1] - q[1]) * (point[0] - q[0])),
            }
        };
        let w = [edge(1, 2), edge(2, 0), edge(0, 1)];
        let area = w[0] + w[1] + w[2];
        let inside = w.iter().all(|&w| w >= 0.0) || w.iter().all(|&w| w <= 0.0);
        (area != 0.0 && inside).then(|| w.map(|w| w / area))
    }
}

impl Canvas<'_> {
    fn triangle(&self, number: u32) -> Projected {
        let corners = self.surface.triangles[number as usize];
        let points = corners.map(|corner| self.points[corner as usize]);
        // The centre of subpixel n is at n + 1/2.
        let bound = |axis: usize, last: u32| {
            let [a, b, c] = points.map(|point| point[axis]);
            let (low, high) = (a.min(b).min(c) - 0.5, a.max(b).max(c) - 0.5);
            let low = low.clamp(0.0, last as f32).ceil();
            (low as i32, high.clamp(-1.0, last as f32 - 1.0).floor() as i32)
        };
        let (x, y) = (bound(0, self.params.width), bound(1, self.params.height));
        Projected { corners, points, low: [x.0, y.0], high: [x.1, y.1] }
    }

    fn rasterize(&self, number: u32) {
        let t = self.triangle(number);
        for y in t.low[1]..=t.high[1] {
            for x in t.low[0]..=t.high[0] {
                if let Some(w) = t.weights([x as f32 + 0.5, y as f32 + 0.5]) {
                    let depth = dot(w, t.points.map(|point| point[2]));
                    let found = u64::from(depth.to_bits()) << 32 | u64::from(number);
                    let at = y as usize * self.params.width as usize + x as usize;
                    self.nearest[at].fetch_min(found, Relaxed);
                }
            }
        }
    }

    /// The unit normal of the surface at a subpixel (x to the right, y up, z to the eye), and its colour in linear
    /// light.
    fn normal_and_color(&self, at: usize) -> ([f32; 3], [f32; 3]) {
        let t = self.triangle(self.nearest[at].load(Relaxed) as u32);
        let width = self.params.width as usize;
        let point = [(at % width) as f32 + 0.5, (at / width) as f32 + 0.5];
        let w = t.weights(point).unwrap_or([0.0; 3]);
        let [a, b, c] = t.corners.map(|corner| self.normals[corner as usize]);
        let n = [0, 1, 2].map(|i| w[0] * a[i] + w[1] * b[i] + w[2] * c[i]);
        let RenderParams { right, down, away, .. } = self.params;
        let seen = [dot(xyz(right), n), -dot(xyz(down), n), -dot(xyz(away), n)];
        let length = dot(seen, seen).sqrt().max(1e-30);
        // A surface seen from behind is lit like its front. Between the corners of a large triangle that faces the eye,
        // an interpolated normal may point away from the eye; it is then projected onto the picture plane.
        let side = if t.is_from_behind() { -1.0 } else { 1.0 };
        let length = if side * seen[2] < 0.0 { seen[0].hypot(seen[1]).max(1e-30) } else { length };
        // Rounded like the shader's 16-bit values.
        let [x, y] = [seen[0], seen[1]].map(|v| (side * v / length * 32767.0).round() / 32767.0);
        ([x, y, (1.0 - (x * x + y * y)).max(0.0).sqrt()], self.color(&t, w))
    }

    /// The colour at the point of a triangle with these weights.
    fn color(&self, triangle: &Projected, w: [f32; 3]) -> [f32; 3] {
        let colors = &self.surface.colors;
        if colors.is_empty() {
            return BONE;
        }
        let [a, b, c] = triangle.corners.map(|corner| colors[corner as usize].map(f32::from));
        // Rounded like the shader's 8-bit values.
        let value = |i: usize| (w[0] * a[i] + w[1] * b[i] + w[2] * c[i]).round();
        [0, 1, 2].map(|i| self.light[value(i) as usize])
    }

    /// Openness of the surface at each subpixel of row `y`, from 0 to 1. Neighbours above its tangent plane occlude it.
    fn openness(&self, map: &DepthMap, y: usize, normals: &[[f32; 3]]) -> Vec<f32> {
        let slope = |axis: usize| move |n: &[f32; 3]| n[axis] / n[2].max(0.2);
        let across: Vec<f32> = normals.iter().map(slope(0)).collect();
        // y of the normal points up, y of the picture down.
        let along: Vec<f32> = normals.iter().map(slope(1)).map(|slope| -slope).collect();
        let start = map.index(0, y);
        let depths = &map.depths[start..][..normals.len()];
        let mut open = memory::filled(0.0, normals.len());
        for &(offset, tap) in &map.taps {
            let there = &map.depths[start.wrapping_add_signed(offset)..][..normals.len()];
            let max_rise = tap.rise * self.params.reach;
            simd::dispatch(|| shade(&mut open, depths, there, &across, &along, tap, max_rise));
        }
        let scale = 1.5 / map.taps.len() as f32;
        open.iter_mut().for_each(|shade| *shade = (1.0 - scale * *shade).clamp(0.0, 1.0));
        open
    }

    /// The linear colour of a lit subpixel.
    fn light_subpixel(&self, depth: f32, open: f32, normal: [f32; 3], color: [f32; 3]) -> [f32; 3] {
        let key = dot(normal, [-0.448, 0.647, 0.617]).max(0.0);
        let fill = dot(normal, [0.808, 0.115, 0.577]).max(0.0);
        let shine = dot(normal, [-0.249, 0.360, 0.899]).max(0.0).powf(40.0);
        let sky = 0.22 + 0.10 * normal[1];
        let distance = 1.0 - 0.3 * (depth / self.params.span).clamp(0.0, 1.0);
        let light = sky * open * open + 0.85 * key * (0.4 + 0.6 * open) + 0.18 * fill * open;
        color.map(|color| (color * light + 0.10 * shine * open) * distance)
    }

    /// Draws a row of pixels.
    fn draw_row(&self, map: &DepthMap, row: u32, pixels: &mut [u8]) {
        let width = self.params.width as usize;
        let mut sums = memory::filled(([0.0; 3], 0.0), pixels.len() / 4);
        for sample in 0..self.samples {
            let y = (row * self.samples + sample + self.params.skip) as usize;
            let depths = &map.depths[map.index(0, y)..][..width];
            let (normals, colors): (Vec<[f32; 3]>, Vec<[f32; 3]>) = (0..width)
                .map(|x| match depths[x] < DepthMap::FAR {
                    true => self.normal_and_color(y * width + x),
                    false => ([0.0, 0.0, 1.0], [0.0; 3]),
                })
                .unzip();
            let open = self.openness(map, y, &normals);
            for x in (0..width).filter(|&x| depths[x] < DepthMap::FAR) {
                let lit = self.light_subpixel(depths[x], open[x], normals[x], colors[x]);
                let (colour, covered) = &mut sums[x / self.samples as usize];
                *colour = [0, 1, 2].map(|i| colour[i] + lit[i]);
                *covered += 1.0;
            }
        }
        for (pixel, (colour, covered)) in pixels.as_chunks_mut::<4>().0.iter_mut().zip(sums) {
            *pixel = self.blend(colour, covered);
        }
    }

    /// Blends a pixel over the background, given the number of covered subpixels and the sum of their colours. Blends
    /// sRGB values, as other programs do.
    fn blend(&self, colour: [f32; 3], covered: f32) -> [u8; 4] {
        let front = covered / (self.samples * self.samples) as f32;
        let behind = self.params.background[3] * (1.0 - front);
        let alpha = front + behind;
        let mixed = |i: usize| {
            let surface = srgb::from_linear_f32(colour[i] / f32::max(covered, 1.0));
            (surface * front + self.params.background[i] * behind) / alpha.max(1e-6)
        };
        [mixed(0), mixed(1), mixed(2), alpha].map(|v| (v.clamp(0.0, 1.0) * 255.0).round() as u8)
    }
}

/// Adds to `shades` the occlusion of the surface at `depths` by that at `there`, at the distance of `tap`. The tangent
/// plane rises by `across` and `along` per subpixel.
#[inline(always)]
fn shade(
    shades: &mut [f32],
    depths: &[f32],
    there: &[f32],
    across: &[f32],
    along: &[f32],
    Tap { offset: [right, down], distance, .. }: Tap,
    max_rise: f32,
) {
    let squared = distance * distance + 1.0;
    let surface = depths.iter().zip(there).zip(across.iter().zip(along));
    for (shade, ((&depth, &there), (&across, &along))) in shades.iter_mut().zip(surface) {
        let rise = depth + (across * right + along * down) - there;
        let slope = rise / (rise * rise + squared).sqrt();
        let near = (2.0 - rise / max_rise).clamp(0.0, 1.0);
        *shade += (slope - 0.08).clamp(0.0, 1.0) * near;
    }
}

fn xyz([x, y, z, _]: [f32; 4]) -> [f32; 3] {
    [x, y, z]
}
