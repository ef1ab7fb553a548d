//! Pictures of meshes: a rasteriser with smooth shading, ambient occlusion and anti-aliasing.
//!
//! The view is orthographic. Each pixel has 2 x 2 subpixels; on the GPU three passes find the nearest depth of each
//! subpixel, the triangle it belongs to, and that triangle's interpolated normal; a last one lights them.
//! Occlusion is found from the depths around a subpixel (Mittring, "Finding Next Gen: CryEngine 2", 2007),
//! measured against its tangent plane.

use std::{
    f32::consts::TAU,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use rayon::prelude::*;

use crate::{
    device::Kernel,
    error::{Error, Result},
    gpu::{Buffer, Context, Shader},
    memory::{self, raise},
    shader, shader_struct, simd,
};

/// `wgsl/render/render.wgsl`.
pub static SHADER: Shader = shader!("render/render");

shader_struct! {
    /// The shader's parameters for one band of the picture and one chunk of the mesh.
    struct View {
        right: [f32; 4],
        down: [f32; 4],
        away: [f32; 4],
        background: [f32; 4],
        width: u32,
        height: u32,
        skip: u32,
        rows: u32,
        triangles: u32,
        first: u32,
        reach: f32,
        span: f32,
    }
}

/// A mesh to be drawn.
#[derive(Clone, Copy, Debug)]
pub struct Surface<'a> {
    /// Where the vertices are.
    pub positions: &'a [[f32; 3]],
    /// Three vertices a triangle.
    pub triangles: &'a [[u32; 3]],
    /// A normal a vertex, of any length.
    pub normals: &'a [[f32; 3]],
}

/// How to draw it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Render {
    /// Width and height in pixels.
    pub size: [u32; 2],
    /// Degrees that the camera is turned around z, from looking along +y, counter-clockwise seen from above.
    pub azimuth: f32,
    /// Degrees that the camera is raised above the horizon.
    pub elevation: f32,
    /// Red, green, blue and alpha in 0..1, not premultiplied.
    pub background: [f32; 4],
}

/// A drawn picture: RGBA, 8 bits a channel, alpha not premultiplied, rows from the top.
pub type Picture = Vec<u8>;

const NOTHING: u64 = u64::MAX;

/// The normals of a mesh's vertices: those of the triangles around each, weighted by area. Their length
/// means nothing.
pub fn vertex_normals(positions: &[[f32; 3]], triangles: &[[u32; 3]]) -> Vec<[f32; 3]> {
    let mut normals = memory::zeros::<[f32; 3]>(positions.len()).unwrap_or_else(raise);
    for triangle in triangles {
        let [a, b, c] = triangle.map(|corner| positions[corner as usize]);
        let normal = cross(minus(b, a), minus(c, a));
        for &corner in triangle {
            let sum = &mut normals[corner as usize];
            *sum = [sum[0] + normal[0], sum[1] + normal[1], sum[2] + normal[2]];
        }
    }
    normals
}

impl Render {
    /// The widest and highest picture, in pixels.
    pub const MAX_SIDE: u32 = 16_384;

    /// The shader's parameters for the whole picture: the mesh centred, upright and 4 % from the border.
    fn view(&self, surface: &Surface<'_>) -> View {
        let samples = SHADER.constant("SAMPLES");
        let (sin_a, cos_a) = self.azimuth.to_radians().sin_cos();
        let (sin_e, cos_e) = self.elevation.to_radians().sin_cos();
        // At azimuth 0 and elevation 0, x is to the right, z is up, and y goes away.
        let right = [cos_a, sin_a, 0.0];
        let away = [-sin_a * cos_e, cos_a * cos_e, -sin_e];
        let down = cross(away, right);
        let [x, y, z] = [right, down, away].map(|axis| extent(surface.positions, axis));
        let [width, height] = self.size.map(|pixels| (pixels * samples) as f32);
        let fit = |pixels: f32, [low, high]: [f32; 2]| 0.92 * pixels / (high - low).max(1e-30);
        let scale = match surface.positions.is_empty() {
            true => 1.0,
            false => fit(width, x).min(fit(height, y)),
        };
        let axis = |d: [f32; 3], offset: f32| [d[0] * scale, d[1] * scale, d[2] * scale, offset];
        let centred = |[low, high]: [f32; 2], pixels: f32| (pixels - (low + high) * scale) / 2.0;
        View {
            right: axis(right, centred(x, width)),
            down: axis(down, centred(y, height)),
            // The nearest point is one subpixel away: depths stay positive.
            away: axis(away, 1.0 - z[0] * scale),
            background: self.background,
            width: self.size[0] * samples,
            height: self.size[1] * samples,
            skip: 0,
            rows: self.size[1],
            triangles: surface.triangles.len() as u32,
            first: 0,
            // So far that a cavity is dark inside; larger pictures would need too wide a halo.
            reach: (0.14 * width.min(height)).min(600.0),
            span: ((z[1] - z[0]) * scale).max(1.0),
        }
    }

    fn check(&self, surface: &Surface<'_>) -> Result<()> {
        let Self { size, .. } = self;
        if size.iter().any(|side| !(1..=Self::MAX_SIDE).contains(side)) {
            let most = Self::MAX_SIDE;
            return Err(Error::usage(format_args!("a picture's sides are 1 to {most} pixels")));
        }
        if surface.triangles.len() as u64 >= u64::from(u32::MAX) {
            return Err(Error::bad_input("a mesh of 2^32 triangles is too large to draw"));
        }
        Ok(())
    }
}

/// Where to look for occluders around a subpixel: rings of twelve, denser towards the middle. Whole
/// subpixels right and down, the distance, and how much nearer to the eye they may be, in reaches.
fn steps(reach: f32) -> Vec<[f32; 4]> {
    const SPOKES: u32 = 12;
    /// Distance and greatest rise of each ring, as shares of the reach.
    const RINGS: [[f32; 2]; 5] = [[0.03, 0.25], [0.11, 0.25], [0.25, 0.25], [0.5, 1.0], [1.0, 2.5]];
    let step = |ring: usize, spoke: u32| {
        let [distance, rise] = RINGS[ring];
        let distance = reach * distance;
        let angle = TAU * (spoke as f32 + 0.5 * (ring % 2) as f32) / SPOKES as f32;
        [(distance * angle.cos()).round(), (distance * angle.sin()).round(), distance, rise]
    };
    (0..RINGS.len()).flat_map(|ring| (0..SPOKES).map(move |spoke| step(ring, spoke))).collect()
}

/// The least and the greatest coordinate along `axis`.
fn extent(positions: &[[f32; 3]], axis: [f32; 3]) -> [f32; 2] {
    let all = positions.par_iter().map(|&p| [dot(p, axis); 2]);
    all.reduce(|| [f32::INFINITY, f32::NEG_INFINITY], |a, b| [a[0].min(b[0]), a[1].max(b[1])])
}

impl<'a> Kernel for (Render, Surface<'a>) {
    type In = ();
    type Out = Picture;
    const NAME: &'static str = "render";

    fn cpu(&self, (): &()) -> Result<Picture> {
        let (render, surface) = self;
        render.check(surface)?;
        Ok(Canvas::new(render.view(surface), surface).draw())
    }

    fn gpu(&self, context: &Context, (): &()) -> Result<Picture> {
        let (render, surface) = self;
        render.check(surface)?;
        let view = render.view(surface);
        let chunks = Chunk::split(context, surface)?;
        let samples = SHADER.constant("SAMPLES");
        let halo = view.reach.ceil() as u32;
        let row_bytes = u64::from(view.width) * 4;
        let fits = (context.max_binding() / row_bytes) as u32;
        let band = fits.saturating_sub(2 * halo).min(view.height) / samples;
        if band == 0 {
            return Err(Error::gpu("the picture is too wide for this device"));
        }
        let mut picture =
            memory::room(render.size.iter().map(|&n| n as usize).product::<usize>() * 4)?;
        for top in (0..render.size[1]).step_by(band as usize) {
            let rows = band.min(render.size[1] - top);
            let skip = halo.min(top * samples);
            let first = top * samples - skip;
            let height = (skip + rows * samples + halo).min(view.height - first);
            let mut down = view.down;
            down[3] -= first as f32;
            picture.extend(draw_band(context, &chunks, View { down, height, skip, rows, ..view })?);
        }
        Ok(picture)
    }
}

/// A run of triangles with the vertices that they use, on the device.
struct Chunk {
    /// Positions, then normals.
    vertices: Buffer,
    indices: Buffer,
    first: u32,
    triangles: u32,
}

impl Chunk {
    /// Uploads the mesh in runs of triangles whose vertices lie close enough together to fit one binding,
    /// which those of a surface that was extracted slice by slice do.
    fn split(context: &Context, surface: &Surface<'_>) -> Result<Vec<Self>> {
        // A position and a normal each; a triangle takes half of that.
        let most = (context.max_binding() / 24) as usize;
        let mut chunks = Vec::new();
        let mut start = 0;
        while start < surface.triangles.len() {
            let (mut low, mut high, mut end) = (u32::MAX, 0, start);
            while let Some(triangle) = surface.triangles.get(end) {
                let (least, greatest) =
                    triangle.iter().fold((low, high), |(l, h), &v| (l.min(v), h.max(v)));
                if end - start == most || (greatest - least) as usize >= most {
                    break;
                }
                (low, high, end) = (least, greatest, end + 1);
            }
            if end == start {
                return Err(Error::gpu("a triangle's vertices lie too far apart for this device"));
            }
            let range = low as usize..high as usize + 1;
            let bytes = 12 * range.len() as u64;
            let vertices = context.allocate("vertices", 2 * bytes)?;
            context.write(&vertices, 0, &surface.positions[range.clone()])?;
            context.write(&vertices, bytes, &surface.normals[range.clone()])?;
            let triangles = surface.triangles[start..end].par_iter();
            let indices = memory::collect(triangles.map(|t| t.map(|corner| corner - low)))?;
            chunks.push(Self {
                vertices,
                indices: context.upload("indices", &indices)?,
                first: start as u32,
                triangles: (end - start) as u32,
            });
            start = end;
        }
        Ok(chunks)
    }
}

fn draw_band(context: &Context, chunks: &[Chunk], view: View) -> Result<Picture> {
    let subpixels = u64::from(view.width) * u64::from(view.height);
    let grid = |label| context.allocate(label, subpixels * 4);
    let (depths, owners, facing) = (grid("depths")?, grid("owners")?, grid("normals")?);
    let pixels = u64::from(view.width / SHADER.constant("SAMPLES")) * u64::from(view.rows);
    let picture = context.allocate("picture", pixels * 4)?;
    let steps = context.upload("steps", &steps(view.reach))?;
    let each = |count: u64| context.fold(count.div_ceil(64));
    let mut batch = context.batch();
    batch
        .pass("render reset", &context.pipeline(&SHADER, "reset")?)
        .uniform("view", &view)
        .buffer("depths", &depths)
        .buffer("owners", &owners)
        .dispatch(each(subpixels)?);
    for (identify, label) in [("false", "render depths"), ("true", "render owners")] {
        let shader = SHADER.with(&[("IDENTIFY", identify)]);
        for chunk in chunks {
            let view = View { triangles: chunk.triangles, first: chunk.first, ..view };
            let groups = each(chunk.triangles.into())?;
            let strips = [groups[0], groups[1], view.height.div_ceil(256)];
            for (entry, groups) in [("raster_small", groups), ("raster_large", strips)] {
                batch
                    .pass(label, &context.pipeline(&shader, entry)?)
                    .uniform("view", &view)
                    .buffer("vertices", &chunk.vertices)
                    .buffer("indices", &chunk.indices)
                    .buffer("depths", &depths)
                    .buffer("owners", &owners)
                    .dispatch(groups);
            }
        }
    }
    for chunk in chunks {
        let view = View { triangles: chunk.triangles, first: chunk.first, ..view };
        batch
            .pass("render normals", &context.pipeline(&SHADER, "orient")?)
            .uniform("view", &view)
            .buffer("vertices", &chunk.vertices)
            .buffer("indices", &chunk.indices)
            .buffer("owners", &owners)
            .buffer("facing", &facing)
            .dispatch(each(subpixels)?);
    }
    batch
        .pass("render light", &context.pipeline(&SHADER, "shade")?)
        .uniform("view", &view)
        .buffer("depths", &depths)
        .buffer("facing", &facing)
        .buffer("picture", &picture)
        .buffer("steps", &steps)
        .dispatch(each(pixels)?);
    batch.run()?;
    context.read(&picture, pixels as usize * 4)
}

/// The native twin: the same arithmetic as the shader's, with depths and triangles found at once.
struct Canvas<'a> {
    view: View,
    surface: &'a Surface<'a>,
    samples: u32,
    /// The vertices in the picture.
    points: Vec<[f32; 3]>,
    /// The nearest depth of each subpixel, as bits, and below it the least triangle that has it.
    nearest: Vec<AtomicU64>,
}

/// The depths with a border, in which the outermost ones repeat, as wide as occluders are looked for, so
/// that looking needs no bounds.
struct Relief {
    depths: Vec<f32>,
    border: usize,
    stride: usize,
    /// Where to look, as a distance in `depths`, and as [`steps`] tells it.
    steps: Vec<(isize, [f32; 4])>,
}

impl Relief {
    /// The depth where there is no surface.
    const NOWHERE: f32 = 1e30;

    fn new(nearest: &[AtomicU64], view: View) -> Self {
        let (width, height) = (view.width as usize, view.height as usize);
        let border = view.reach.ceil() as usize;
        let stride = width + 2 * border;
        let mut padded = memory::zeros::<f32>(stride * (height + 2 * border)).unwrap_or_else(raise);
        padded.par_chunks_mut(stride).enumerate().for_each(|(y, row)| {
            let y = y.saturating_sub(border).min(height - 1);
            for (x, depth) in row.iter_mut().enumerate() {
                let x = x.saturating_sub(border).min(width - 1);
                *depth = match nearest[y * width + x].load(Relaxed) {
                    NOTHING => Self::NOWHERE,
                    found => f32::from_bits((found >> 32) as u32),
                };
            }
        });
        let offset = |[right, down, ..]: [f32; 4]| down as isize * stride as isize + right as isize;
        let steps = steps(view.reach).into_iter().map(|step| (offset(step), step)).collect();
        Self { depths: padded, border, stride, steps }
    }

    fn index(&self, x: usize, y: usize) -> usize {
        (y + self.border) * self.stride + x + self.border
    }
}

struct Triangle {
    corners: [u32; 3],
    points: [[f32; 3]; 3],
    low: [i32; 2],
    high: [i32; 2],
}

impl<'a> Canvas<'a> {
    fn new(view: View, surface: &'a Surface<'a>) -> Self {
        let project = |&p: &[f32; 3]| {
            let View { right, down, away, .. } = view;
            [right, down, away].map(|axis| dot([axis[0], axis[1], axis[2]], p) + axis[3])
        };
        let points =
            memory::collect(surface.positions.par_iter().map(project)).unwrap_or_else(raise);
        let subpixels = view.width as usize * view.height as usize;
        let nearest = (0..subpixels).into_par_iter().map(|_| AtomicU64::new(NOTHING));
        let nearest = memory::collect(nearest).unwrap_or_else(raise);
        Self { view, surface, samples: SHADER.constant("SAMPLES"), points, nearest }
    }

    fn draw(&self) -> Picture {
        let numbers = (0..self.view.triangles).into_par_iter();
        numbers.with_min_len(1024).for_each(|number| self.raster(number));
        let relief = Relief::new(&self.nearest, self.view);
        let columns = self.view.width / self.samples;
        let pixels = columns as usize * self.view.rows as usize;
        let mut picture = memory::zeros(pixels * 4).unwrap_or_else(raise);
        picture.par_chunks_mut(columns as usize * 4).enumerate().for_each(|(y, row)| {
            self.row(&relief, y as u32, row);
        });
        picture
    }

    fn triangle(&self, number: u32) -> Triangle {
        let corners = self.surface.triangles[number as usize];
        let points = corners.map(|corner| self.points[corner as usize]);
        let bound = |axis: usize, last: u32| {
            let [a, b, c] = points.map(|point| point[axis]);
            let (low, high) = (a.min(b).min(c) - 0.5, a.max(b).max(c) - 0.5);
            let low = low.clamp(0.0, last as f32).ceil();
            (low as i32, high.clamp(-1.0, last as f32 - 1.0).floor() as i32)
        };
        let (x, y) = (bound(0, self.view.width), bound(1, self.view.height));
        Triangle { corners, points, low: [x.0, y.0], high: [x.1, y.1] }
    }

    fn raster(&self, number: u32) {
        let t = self.triangle(number);
        for y in t.low[1]..=t.high[1] {
            for x in t.low[0]..=t.high[0] {
                if let Some(w) = t.weights([x as f32 + 0.5, y as f32 + 0.5]) {
                    let [a, b, c] = t.points.map(|point| point[2]);
                    let depth = w[0] * a + w[1] * b + w[2] * c;
                    let found = u64::from(depth.to_bits()) << 32 | u64::from(number);
                    let at = y as usize * self.view.width as usize + x as usize;
                    self.nearest[at].fetch_min(found, Relaxed);
                }
            }
        }
    }

    fn normal(&self, at: usize) -> [f32; 3] {
        let t = self.triangle(self.nearest[at].load(Relaxed) as u32);
        let width = self.view.width as usize;
        let point = [(at % width) as f32 + 0.5, (at / width) as f32 + 0.5];
        let w = t.weights(point).unwrap_or([0.0; 3]);
        let [a, b, c] = t.corners.map(|corner| self.surface.normals[corner as usize]);
        let n = [0, 1, 2].map(|i| w[0] * a[i] + w[1] * b[i] + w[2] * c[i]);
        let View { right, down, away, .. } = self.view;
        let along = |axis: [f32; 4]| dot([axis[0], axis[1], axis[2]], n);
        let seen = [along(right), -along(down), -along(away)];
        let length = dot(seen, seen).sqrt().max(1e-30);
        let sign = if seen[2] < 0.0 { -1.0 } else { 1.0 };
        // As coarse as the shader's two 16-bit numbers.
        let [x, y] = [seen[0], seen[1]].map(|v| (sign * v / length * 32767.0).round() / 32767.0);
        [x, y, (1.0 - (x * x + y * y)).max(0.0).sqrt()]
    }

    /// How open the surface is at each subpixel of row `y`, 0 to 1: neighbours that rise above its
    /// tangent plane shade it.
    fn openness(&self, relief: &Relief, y: usize, normals: &[[f32; 3]]) -> Vec<f32> {
        let slope = |axis: usize| move |n: &[f32; 3]| n[axis] / n[2].max(0.2);
        let across: Vec<f32> = normals.iter().map(slope(0)).collect();
        // The normal's y points up, the picture's down.
        let along: Vec<f32> = normals.iter().map(slope(1)).map(|slope| -slope).collect();
        let start = relief.index(0, y);
        let depths = &relief.depths[start..][..normals.len()];
        let mut open = vec![0.0; normals.len()];
        for &(offset, step) in &relief.steps {
            let there = &relief.depths[start.wrapping_add_signed(offset)..][..normals.len()];
            let most = step[3] * self.view.reach;
            simd::dispatch(|| shade(&mut open, depths, there, &across, &along, step, most));
        }
        let scale = 1.5 / relief.steps.len() as f32;
        open.iter_mut().for_each(|shade| *shade = (1.0 - scale * *shade).clamp(0.0, 1.0));
        open
    }

    fn lit(&self, depth: f32, open: f32, normal: [f32; 3]) -> [f32; 3] {
        let key = dot(normal, [-0.448, 0.647, 0.617]).max(0.0);
        let fill = dot(normal, [0.808, 0.115, 0.577]).max(0.0);
        let shine = dot(normal, [-0.249, 0.360, 0.899]).max(0.0).powf(40.0);
        let sky = 0.22 + 0.10 * normal[1];
        let distance = 1.0 - 0.3 * (depth / self.view.span).clamp(0.0, 1.0);
        let light = sky * open * open + 0.85 * key * (0.4 + 0.6 * open) + 0.18 * fill * open;
        [0.84, 0.76, 0.64].map(|bone| (bone * light + 0.10 * shine * open) * distance)
    }

    /// Draws a row of pixels.
    fn row(&self, relief: &Relief, row: u32, pixels: &mut [u8]) {
        let width = self.view.width as usize;
        let mut sums = vec![([0.0; 3], 0.0); pixels.len() / 4];
        for sample in 0..self.samples {
            let y = (row * self.samples + sample + self.view.skip) as usize;
            let depths = &relief.depths[relief.index(0, y)..][..width];
            let normals: Vec<[f32; 3]> = (0..width)
                .map(|x| match depths[x] < Relief::NOWHERE {
                    true => self.normal(y * width + x),
                    false => [0.0, 0.0, 1.0],
                })
                .collect();
            let open = self.openness(relief, y, &normals);
            for x in (0..width).filter(|&x| depths[x] < Relief::NOWHERE) {
                let lit = self.lit(depths[x], open[x], normals[x]);
                let (colour, covered) = &mut sums[x / self.samples as usize];
                *colour = [0, 1, 2].map(|i| colour[i] + lit[i]);
                *covered += 1.0;
            }
        }
        for (pixel, (colour, covered)) in pixels.as_chunks_mut::<4>().0.iter_mut().zip(sums) {
            *pixel = self.blend(colour, covered);
        }
    }

    /// The sum of the colours of `covered` subpixels, over the background.
    fn blend(&self, colour: [f32; 3], covered: f32) -> [u8; 4] {
        let front = covered / (self.samples * self.samples) as f32;
        let behind = self.view.background[3] * (1.0 - front);
        let alpha = front + behind;
        let mixed = |i: usize| {
            let surface = to_srgb(colour[i] / f32::max(covered, 1.0));
            (surface * front + self.view.background[i] * behind) / alpha.max(1e-6)
        };
        [mixed(0), mixed(1), mixed(2), alpha].map(|v| (v.clamp(0.0, 1.0) * 255.0).round() as u8)
    }
}

/// Adds how much the surface at `there`, a `step` away, shades that at `depths`, which rises by
/// `across` and `along` a subpixel.
#[inline(always)]
fn shade(
    shades: &mut [f32],
    depths: &[f32],
    there: &[f32],
    across: &[f32],
    along: &[f32],
    [right, down, distance, _]: [f32; 4],
    most: f32,
) {
    let squared = distance * distance + 1.0;
    let surface = depths.iter().zip(there).zip(across.iter().zip(along));
    for (shade, ((&depth, &there), (&across, &along))) in shades.iter_mut().zip(surface) {
        let rise = depth + (across * right + along * down) - there;
        let slope = rise / (rise * rise + squared).sqrt();
        let near = (2.0 - rise / most).clamp(0.0, 1.0);
        *shade += (slope - 0.08).clamp(0.0, 1.0) * near;
    }
}

impl Triangle {
    fn weights(&self, point: [f32; 2]) -> Option<[f32; 3]> {
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

/// The sRGB curve (IEC 61966-2-1).
fn to_srgb(linear: f32) -> f32 {
    match linear.clamp(0.0, 1.0) {
        c if c <= 0.003_130_8 => 12.92 * c,
        c => 1.055 * c.powf(1.0 / 2.4) - 0.055,
    }
}

fn dot(a: [f32; 3], b: [f32; 3]) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: [f32; 3], b: [f32; 3]) -> [f32; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn minus(a: [f32; 3], b: [f32; 3]) -> [f32; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}
