//! The camera, and the shader's parameters.

use std::f32::consts::TAU;

use crate::{
    data::{
        surface::Surface,
        vec3::{cross, dot},
    },
    gpu::Shader,
    shader, shader_struct,
    util::{
        error::{Error, Result},
        parallel::Parallel,
    },
};

/// `wgsl/render/render.wgsl`.
pub(super) static SHADER: Shader = shader!("render/render");

/// Subpixels along each side of a pixel.
pub(super) fn samples() -> u32 {
    SHADER.constant("SAMPLES")
}

/// Maximum distance of occluders, in subpixels.
const MAX_REACH: u16 = 600;

shader_struct! {
    /// The shader's parameters for one band of the picture and one chunk of the mesh.
    pub(super) struct RenderParams {
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

/// Draws a [`Surface`] as RGBA, 8 bits per channel, alpha not premultiplied, rows from the top. A surface
/// without normals is lit by those of its triangles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Render {
    /// Width and height in pixels.
    pub size: [u32; 2],
    /// Rotation of the camera around z, in degrees counter-clockwise as seen from above. At 0, it looks along +y.
    pub azimuth: f32,
    /// Elevation of the camera above the horizon, in degrees.
    pub elevation: f32,
    /// Red, green, blue and alpha in 0..1, not premultiplied.
    pub background: [f32; 4],
    /// The region that fills the picture; `None` for the extent of the surface.
    pub frame: Option<Frame>,
}

/// Minimum and maximum coordinate along the axes to the right, down and away from the eye.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame([[f32; 2]; 3]);

impl Frame {
    /// The smallest frame that contains both frames.
    pub fn union(self, other: Self) -> Self {
        let wider = |i: usize| {
            let ([low, high], [other_low, other_high]) = (self.0[i], other.0[i]);
            [low.min(other_low), high.max(other_high)]
        };
        Self(std::array::from_fn(wider))
    }
}

impl Render {
    /// Maximum width and height of a picture, in pixels.
    pub const MAX_SIDE: u32 = 16_384;

    /// Maximum bytes that the CPU takes to draw `surface`.
    pub fn bytes(&self, surface: &Surface) -> u64 {
        let [width, height] = self.size.map(|side| u64::from(side * samples()));
        let border = 2 * u64::from(MAX_REACH);
        // Depth and triangle of each subpixel, and depths with their border; the picture; points and normals of
        // vertices.
        let picture = 8 * width * height + 4 * (width + border) * (height + border);
        let [columns, rows] = self.size.map(u64::from);
        picture + 4 * columns * rows + 24 * surface.positions.len() as u64
    }

    /// Unit vectors to the right, down and away from the eye.
    fn axes(&self) -> [[f32; 3]; 3] {
        let (sin_a, cos_a) = self.azimuth.to_radians().sin_cos();
        let (sin_e, cos_e) = self.elevation.to_radians().sin_cos();
        // At azimuth 0 and elevation 0, x points to the right, z up, and y away from the eye.
        let right = [cos_a, sin_a, 0.0];
        let away = [-sin_a * cos_e, cos_a * cos_e, -sin_e];
        [right, cross(away, right), away]
    }

    /// The extent of `surface` as seen by the camera.
    pub fn frame_of(&self, surface: &Surface) -> Frame {
        Frame(self.axes().map(|axis| extent(&surface.positions, axis)))
    }

    /// The shader's parameters for the whole picture, with the mesh centred and 4 % from the border.
    pub(super) fn params(&self, surface: &Surface) -> RenderParams {
        let samples = samples();
        let [right, down, away] = self.axes();
        let Frame([x, y, z]) = self.frame.unwrap_or_else(|| self.frame_of(surface));
        let [width, height] = self.size.map(|pixels| (pixels * samples) as f32);
        let fit = |pixels: f32, [low, high]: [f32; 2]| 0.92 * pixels / (high - low).max(1e-30);
        let scale = if x[0] > x[1] { 1.0 } else { fit(width, x).min(fit(height, y)) };
        let axis = |d: [f32; 3], offset: f32| [d[0] * scale, d[1] * scale, d[2] * scale, offset];
        let centred = |[low, high]: [f32; 2], pixels: f32| (pixels - (low + high) * scale) / 2.0;
        RenderParams {
            right: axis(right, centred(x, width)),
            down: axis(down, centred(y, height)),
            // The nearest point is one subpixel away, so that depths are positive.
            away: axis(away, 1.0 - z[0] * scale),
            background: self.background,
            width: self.size[0] * samples,
            height: self.size[1] * samples,
            skip: 0,
            rows: self.size[1],
            triangles: surface.triangles.len() as u32,
            first: 0,
            // Large enough that cavities are dark inside; limited, since bands have a halo of this size.
            reach: (0.14 * width.min(height)).min(f32::from(MAX_REACH)),
            span: ((z[1] - z[0]) * scale).max(1.0),
        }
    }

    pub(super) fn check(&self, surface: &Surface) -> Result<()> {
        let Self { size, .. } = self;
        if size.iter().any(|side| !(1..=Self::MAX_SIDE).contains(side)) {
            let max = Self::MAX_SIDE;
            return Err(Error::usage(format_args!(
                "width and height of a picture must be 1 to {max} pixels"
            )));
        }
        if surface.triangles.len() as u64 >= u64::from(u32::MAX) {
            return Err(Error::bad_input("a mesh of 2^32 triangles or more is too large to draw"));
        }
        Ok(())
    }
}

/// A sample position of the search for occluders, relative to a subpixel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tap {
    /// Whole subpixels right and down.
    pub(super) offset: [f32; 2],
    /// Distance in subpixels.
    pub(super) distance: f32,
    /// Maximum rise of an occluder towards the eye, in units of `RenderParams::reach`.
    pub(super) rise: f32,
}

/// Rings of twelve taps up to `reach` subpixels away, denser towards the middle.
pub(super) fn taps(reach: f32) -> Vec<Tap> {
    const SPOKES: u32 = 12;
    /// Distance and maximum rise of each ring, in units of `reach`.
    const RINGS: [[f32; 2]; 5] = [[0.03, 0.25], [0.11, 0.25], [0.25, 0.25], [0.5, 1.0], [1.0, 2.5]];
    let tap = |ring: usize, spoke: u32| {
        let [distance, rise] = RINGS[ring];
        let distance = reach * distance;
        // Every other ring is rotated by half a spoke.
        let angle = TAU * (spoke as f32 + 0.5 * (ring % 2) as f32) / SPOKES as f32;
        let offset = [angle.cos(), angle.sin()].map(|along| (distance * along).round());
        Tap { offset, distance, rise }
    };
    (0..RINGS.len()).flat_map(|ring| (0..SPOKES).map(move |spoke| tap(ring, spoke))).collect()
}

/// Minimum and maximum coordinate along `axis`.
fn extent(positions: &[[f32; 3]], axis: [f32; 3]) -> [f32; 2] {
    let wider = |[low, high]: [f32; 2], other: [f32; 2]| [low.min(other[0]), high.max(other[1])];
    let none = [f32::INFINITY, f32::NEG_INFINITY];
    let of_one = |chunk: &[[f32; 3]]| chunk.iter().map(|&p| [dot(p, axis); 2]).fold(none, wider);
    positions.chunks(1 << 14).par_map(of_one).into_iter().fold(none, wider)
}
