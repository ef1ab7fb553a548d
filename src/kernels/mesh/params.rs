//! The parameters of marching cubes, and the slab of a volume that a call works on.

use std::{ops::Range, sync::Arc};

use serde::Serialize;

use crate::{
    data::volume::Volume,
    util::error::{Error, Hint, Result},
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
    /// How ambiguous cells are resolved.
    pub topology: Topology,
    /// Bytes that the surface of a slab may take.
    pub most_bytes: u64,
}

/// How ambiguous cells are resolved, whose corners alone do not tell which of them the surface joins. Both ways give
/// closed surfaces with the same vertices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Topology {
    /// Inside corners are joined wherever a face's corners alternate; no tunnel goes through a cell (Lorensen and Cline
    /// 1987).
    #[default]
    Classic,
    /// As the trilinear interpolation of the samples joins them (see `deciders`).
    Exact,
}

impl MarchingCubes {
    /// The surface at `iso` of samples one unit apart, without normals.
    pub fn new(iso: f64) -> Self {
        let (spacing, origin, most_bytes) = ([1.0; 3], [0.0; 3], u64::MAX);
        let topology = Topology::default();
        Self { iso, spacing, origin, close: false, normals: false, topology, most_bytes }
    }
}

/// A range of z-slices of a volume, and which layers of cells to mesh in it.
#[derive(Clone, Debug)]
pub struct Slab {
    /// The slices that are at hand; shared, so that a caller may keep them without a copy.
    pub volume: Arc<Volume>,
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
    pub fn whole(volume: impl Into<Arc<Volume>>, kernel: &MarchingCubes) -> Self {
        let volume = volume.into();
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

    /// The slices of a volume of `depth` that must be at hand to mesh `layers`: their corners, and a halo
    /// of one slice above, which numbers the vertices of the topmost slice, and of one below, for the
    /// gradient and for the cells with NaN around a vertex.
    pub fn slices(&self, layers: &Range<usize>, depth: usize) -> Range<usize> {
        let start = layers.start.saturating_sub(self.pad() + 1).min(depth);
        let end = (layers.end + 2).saturating_sub(self.pad()).min(depth);
        start..end.max(start)
    }

    /// Bytes that [`Kernel::cpu`](crate::device::Kernel::cpu) takes beside samples and surface, about, for `layers`
    /// layers of a volume with slices of width and height `slice`, whose samples may be NaN.
    pub fn cpu_scratch(&self, [width, height]: [usize; 2], layers: usize, may_be_nan: bool) -> u64 {
        let pad = 2 * self.pad() as u64;
        let points = (width as u64 + pad).next_multiple_of(64) * (height as u64 + pad);
        // Planes of one bit per point: inside, and perhaps a number and valid. Each task numbers the vertices of two
        // slices, 16 bytes for 64 points each, at one time as many tasks as there are threads.
        let planes = if may_be_nan { 3 } else { 1 };
        let planes = planes * points.saturating_mul(layers as u64 + 3) / 8;
        let tasks = layers.div_ceil(4).min(rayon::current_num_threads()) as u64;
        planes.saturating_add(points.saturating_mul(tasks) / 2)
    }

    /// Refuses a surface of the slab with `layers` that takes more than [`most_bytes`](Self::most_bytes).
    pub(super) fn check_bytes(
        &self,
        layers: &Range<usize>,
        [vertices, triangles]: [u64; 2],
    ) -> Result<()> {
        let bytes = 12 * (vertices * if self.normals { 2 } else { 1 } + triangles);
        match bytes <= self.most_bytes {
            true => Ok(()),
            false => Err(Error::bad_input(format_args!(
                "the surface of layers {} to {} of the volume takes {bytes} bytes, more than the {} that there are \
                 for it",
                layers.start,
                layers.end - 1,
                self.most_bytes
            ))
            .with_hint(Hint::Memory)),
        }
    }

    /// Points beyond the samples on each side, 0 or 1.
    pub(super) fn pad(&self) -> usize {
        usize::from(self.close)
    }
}

/// An error when `count` more vertices than `before` cannot be numbered in 32 bits.
pub(super) fn check_count(before: u64, count: u64) -> Result<()> {
    match before + count > 1 << 32 {
        true => Err(Error::bad_input(
            "the surface has more than 4,294,967,296 vertices, which faces of 32-bit numbers cannot name",
        )
        .with_hint(Hint::Isovalue)),
        false => Ok(()),
    }
}
