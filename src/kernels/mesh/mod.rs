//! Marching cubes: the surface where a volume's samples pass an isovalue, as shared vertices and
//! triangles.
//!
//! Both twins work on one bit a sample, "inside", packed 32 to a word along x. Where the words of
//! neighbouring rows differ, an edge of the grid is crossed: XOR finds the vertices, popcount numbers
//! them. The canonical order, which every device and every slab height reproduces, is
//! - vertices: by z, y, word of 32 samples along x, axis of the edge (x, y, z), x;
//! - triangles: by z, y, x of their cell, then as in [`table`].
//!
//! Conventions: a sample i sits at `origin + (i + 0.5) * spacing`; it is inside when its value is
//! greater than the isovalue; normals point from inside to outside; x varies fastest.

mod bench;
pub(super) mod classic;
mod cpu;
pub(super) mod gpu;
mod otsu;
mod planes;
pub mod post;
mod slabs;
pub mod table;

pub use bench::{cases, sweep};
pub use otsu::Otsu;
pub use slabs::Slabs;

use std::ops::Range;

use crate::{
    data::{samples::Samples, surface::Surface, volume::Volume},
    device::Kernel,
    error::{Error, Result},
    gpu::Context,
};

/// Marching cubes with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct MarchingCubes {
    /// Samples above it are inside.
    pub iso: f64,
    /// Distance between samples along x, y and z.
    pub spacing: [f64; 3],
    /// The corner of the volume's box; the first sample sits half a spacing from it.
    pub origin: [f64; 3],
    /// Whether everything beyond the volume is outside, so that the surface is closed there, on the
    /// volume's box.
    pub close: bool,
    /// Whether vertices get normals.
    pub normals: bool,
}

impl MarchingCubes {
    /// The surface at `iso` of samples one unit apart, without normals.
    pub fn new(iso: f64) -> Self {
        Self { iso, spacing: [1.0; 3], origin: [0.0; 3], close: false, normals: false }
    }
}

/// A range of z-slices of a volume, and which layers of cells to mesh in it.
#[derive(Clone, Debug)]
pub struct Slab {
    /// The slices that are at hand.
    pub volume: Volume,
    /// The number of the first of them in the whole volume.
    pub first_slice: usize,
    /// Slices of the whole volume.
    pub depth: usize,
    /// The layers of cells to mesh, counted in the grid, which `close` makes one sample larger on
    /// every side.
    pub layers: Range<usize>,
    /// Vertices of all slabs before.
    pub first_vertex: u64,
}

impl Slab {
    /// The whole of `volume`.
    pub fn whole(volume: Volume, kernel: &MarchingCubes) -> Self {
        let depth = volume.dims[2];
        let layers = 0..kernel.layers(depth);
        Self { volume, first_slice: 0, depth, layers, first_vertex: 0 }
    }
}

impl MarchingCubes {
    /// Layers of cells in a volume of `depth` slices.
    pub fn layers(&self, depth: usize) -> usize {
        (depth + 2 * self.pad()).saturating_sub(1)
    }

    /// The slices of a volume of `depth` that must be at hand to mesh `layers`: their corners, one
    /// more above to number the vertices of the topmost slice, and one more below for the gradient and
    /// to see whether cells with NaN surround a vertex.
    pub fn slices(&self, layers: &Range<usize>, depth: usize) -> Range<usize> {
        let start = layers.start.saturating_sub(self.pad() + 1).min(depth);
        let end = (layers.end + 2).saturating_sub(self.pad()).min(depth);
        start..end.max(start)
    }

    fn pad(&self) -> usize {
        usize::from(self.close)
    }

    fn level(&self, samples: &Samples) -> Level {
        let wide = matches!(samples, Samples::U32(_) | Samples::I32(_) | Samples::F64(_));
        match wide {
            true => {
                Level { iso: self.iso, threshold: 0.0, level: 0.0, least_byte: 0, may_bytes: false }
            }
            false => {
                let level = (self.iso as f32).clamp(f32::MIN, f32::MAX);
                // The largest f32 that is no greater: samples exceed it exactly when they exceed iso.
                let above = f64::from(level) > self.iso;
                let threshold = if above { level.next_down() } else { level };
                let least = threshold.floor() + 1.0;
                Level {
                    iso: self.iso,
                    threshold,
                    level,
                    least_byte: least.clamp(0.0, 255.0) as u8,
                    may_bytes: least <= 255.0,
                }
            }
        }
    }
}

/// The isovalue in the terms of [`Sample::field`].
#[derive(Clone, Copy, Debug)]
struct Level {
    iso: f64,
    /// A sample is inside when its field is greater.
    threshold: f32,
    /// Where between two samples the surface passes.
    level: f32,
    /// The least byte that is inside, if any is.
    least_byte: u8,
    may_bytes: bool,
}

/// A type of sample.
trait Sample: Copy + Send + Sync {
    /// The sample as the f32 that the surface is computed from. Types that f32 holds exactly are
    /// themselves; for the others it is the rounded distance from the isovalue, whose sign is exact.
    fn field(self, level: &Level) -> f32;

    /// Whether there are samples that are no number.
    const MAY_BE_NAN: bool = false;

    /// Whether samples may be infinite, or so large that their difference is.
    const MAY_OVERFLOW: bool = false;

    /// Whether it is greater than the isovalue.
    #[inline(always)]
    fn is_inside(self, level: &Level) -> bool {
        self.field(level) > level.threshold
    }

    /// Whether it is a number.
    #[inline(always)]
    fn is_number(self, level: &Level) -> bool {
        !self.field(level).is_nan()
    }

    /// Where between fields `a` and `b`, one inside and one not, the surface passes: 0 at `a`, 1 at
    /// `b`.
    #[inline(always)]
    fn crossing(a: f32, b: f32, level: f32) -> f32 {
        if !Self::MAY_OVERFLOW {
            return (level - a) / (b - a);
        }
        // Halves, lest the difference of the largest values be infinite.
        let (a, b, level) = (a * 0.5, b * 0.5, level * 0.5);
        let t = (level - a) / (b - a);
        if t.is_nan() {
            // One or both ends are infinite: the surface passes the finite one.
            return if b.is_finite() { 1.0 } else { 0.5 };
        }
        t.clamp(0.0, 1.0)
    }
}

impl Sample for u8 {
    #[inline(always)]
    fn field(self, _: &Level) -> f32 {
        f32::from(self)
    }

    #[inline(always)]
    fn is_inside(self, level: &Level) -> bool {
        // Bytes among themselves: many more at a time.
        self >= level.least_byte && level.may_bytes
    }
}

macro_rules! narrow {
    ($($type:ty, $is_float:literal;)+) => {
        $(impl Sample for $type {
            const MAY_BE_NAN: bool = $is_float;
            const MAY_OVERFLOW: bool = $is_float;

            #[inline(always)]
            fn field(self, _: &Level) -> f32 {
                f32::from(self)
            }
        })+
    };
}
narrow!(i8, false; u16, false; i16, false; f32, true;);

macro_rules! wide {
    ($($type:ty, $is_float:literal;)+) => {
        $(impl Sample for $type {
            const MAY_BE_NAN: bool = $is_float;
            const MAY_OVERFLOW: bool = true;

            #[inline(always)]
            fn field(self, level: &Level) -> f32 {
                let distance = f64::from(self) - level.iso;
                let field = distance as f32;
                // A tiny distance must not lose its sign.
                if field == 0.0 && distance > 0.0 { f32::MIN_POSITIVE } else { field }
            }
        })+
    };
}
wide!(u32, false; i32, false; f64, true;);

/// How a slab lies in the grid of points that cells are made of: the volume's samples, with one more
/// point on every side when the surface is closed.
#[derive(Clone, Copy, Debug)]
struct Grid {
    /// Samples of a slice.
    width: usize,
    height: usize,
    /// Points beyond the samples on each side, 0 or 1.
    pad: usize,
    /// Points along x, y and z of the whole volume.
    points: [usize; 3],
    /// Words of 32 points a row, as vertices are numbered by them.
    words: usize,
    /// The first layer of cells, which is the first slice of points, and how many layers.
    first: usize,
    layers: usize,
    /// Slices of points at hand: the corners of all layers, and one more where the volume goes on.
    slices: usize,
    /// Where in the slab's volume the slice of point 0 along z would begin, in slices.
    sample_z: isize,
}

impl Grid {
    /// Nothing when there is no cell.
    fn new(kernel: &MarchingCubes, slab: &Slab) -> Option<Self> {
        let [width, height, held] = slab.volume.dims;
        let dims = [width, height, slab.depth];
        let Range { start, end } = slab.layers;
        if dims.iter().any(|&n| n + 2 * kernel.pad() < 2) || start >= end {
            return None;
        }
        assert!(end <= kernel.layers(slab.depth), "layers {:?} of {}", slab.layers, slab.depth);
        let needed = kernel.slices(&slab.layers, slab.depth);
        let held = slab.first_slice..slab.first_slice + held;
        assert!(held.start <= needed.start && needed.end <= held.end, "{held:?} for {needed:?}");
        Some(Self::of(kernel, dims, &held, &slab.layers))
    }

    /// The grid over `layers` of a volume of `dims` whose `slices` are at hand.
    fn of(
        kernel: &MarchingCubes,
        dims: [usize; 3],
        slices: &Range<usize>,
        layers: &Range<usize>,
    ) -> Self {
        let pad = kernel.pad();
        let points = dims.map(|n| n + 2 * pad);
        Self {
            width: dims[0],
            height: dims[1],
            pad,
            points,
            words: points[0].div_ceil(32),
            first: layers.start,
            layers: layers.len(),
            slices: (layers.end + 2).min(points[2]) - layers.start,
            sample_z: -((pad + slices.start) as isize),
        }
    }

    /// Words of a slice.
    fn slice_words(&self) -> usize {
        self.words * self.points[1]
    }

    /// Whether the topmost slice of the slab is the volume's.
    fn is_last(&self) -> bool {
        self.first + self.layers + 1 == self.points[2]
    }

    /// The slices whose vertices this slab emits.
    fn owned(&self) -> usize {
        self.layers + usize::from(self.is_last())
    }
}

/// An error when `count` more vertices than `before` cannot be numbered in 32 bits.
fn check_count(before: u64, count: u64) -> Result<()> {
    match before + count > 1 << 32 {
        true => Err(Error::bad_input(
            "the surface has more than 4,294,967,296 vertices, which faces of 32-bit numbers cannot \
             name: choose another --iso, or mesh parts of the volume",
        )),
        false => Ok(()),
    }
}

impl Kernel for MarchingCubes {
    type In = Slab;
    type Out = Surface;
    const NAME: &'static str = "marching cubes";

    fn cpu(&self, slab: &Slab) -> Result<Surface> {
        cpu::mesh(self, slab)
    }

    fn gpu(&self, context: &Context, slab: &Slab) -> Result<Surface> {
        gpu::mesh(self, context, slab)
    }
}
