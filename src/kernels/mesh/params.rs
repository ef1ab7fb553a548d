//! The parameters of marching cubes, and the slab of a volume that a call works on.

use std::{ops::Range, sync::Arc};

use serde::Serialize;

use crate::{
    data::grid::Grid,
    util::{
        error::{Error, Hint, Result},
        memory,
    },
};

/// Marching cubes with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct MarchingCubes {
    /// Isovalue. Samples above it are inside.
    pub iso: f64,
    /// Distance between samples along x, y and z.
    pub spacing: [f64; 3],
    /// The corner of the volume's box; the first sample sits half a spacing from it.
    pub origin: [f64; 3],
    /// Whether everything beyond the volume counts as outside. The surface is then closed on the volume's box.
    pub close: bool,
    /// Whether vertices get normals.
    pub normals: bool,
    /// How ambiguous cells are resolved.
    pub topology: Topology,
    /// Maximum bytes of the surface of a slab.
    pub max_bytes: u64,
}

/// How ambiguous cells are resolved: cells where the signs of the corners allow several surfaces. Both choices give
/// closed surfaces with the same vertices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Topology {
    /// The 256 cases of Lorensen and Cline (1987): inside corners are joined on every face whose corners alternate, and
    /// cells have no tunnels.
    #[default]
    Classic,
    /// The topology of the trilinear interpolation of the samples (see `deciders`).
    Exact,
}

impl MarchingCubes {
    /// Marching cubes at `iso` for samples one unit apart, without normals.
    pub fn new(iso: f64) -> Self {
        let (spacing, origin, max_bytes) = ([1.0; 3], [0.0; 3], u64::MAX);
        let topology = Topology::default();
        Self { iso, spacing, origin, close: false, normals: false, topology, max_bytes }
    }
}

/// Consecutive slices of a volume, and the layers of cells to mesh in them.
#[derive(Clone, Debug)]
pub struct Slab {
    /// The slices. Shared, so that the caller can keep them without a copy.
    pub volume: Arc<Grid>,
    /// Index of the first slice in the whole volume.
    pub first_slice: usize,
    /// Number of slices of the whole volume.
    pub depth: usize,
    /// Layers of cells to mesh. With [`close`](MarchingCubes::close), the grid of cells is one sample larger on each
    /// side.
    pub layers: Range<usize>,
    /// Number of vertices of all slabs before this one.
    pub first_vertex: u64,
}

impl Slab {
    /// All of `volume` as one slab.
    pub fn whole(volume: impl Into<Arc<Grid>>, kernel: &MarchingCubes) -> Self {
        let volume = volume.into();
        let depth = volume.dims[2];
        let layers = 0..kernel.layers(depth);
        Self { volume, first_slice: 0, depth, layers, first_vertex: 0 }
    }
}

impl MarchingCubes {
    /// Number of layers of cells in a volume of `depth` slices.
    pub fn layers(&self, depth: usize) -> usize {
        (depth + 2 * self.pad()).saturating_sub(1)
    }

    /// Slices needed to mesh `layers` of a volume of `depth` slices: the corners of the cells and a halo of one slice
    /// on each side. The slice above is needed to number the vertices of the topmost slice, the one below for gradients
    /// and to find cells with NaN around a vertex.
    pub fn slices(&self, layers: &Range<usize>, depth: usize) -> Range<usize> {
        let start = layers.start.saturating_sub(self.pad() + 1).min(depth);
        let end = (layers.end + 2).saturating_sub(self.pad()).min(depth);
        start..end.max(start)
    }

    /// Approximate scratch memory of [`Kernel::cpu`](crate::device::Kernel::cpu) in bytes, in addition to samples and
    /// surface, for `layers` layers of slices with this width and height.
    pub fn cpu_scratch(&self, [width, height]: [usize; 2], layers: usize, may_be_nan: bool) -> u64 {
        let pad = 2 * self.pad() as u64;
        let points = (width as u64 + pad).next_multiple_of(64) * (height as u64 + pad);
        // Planes of one bit per point: inside, and for floats also number and valid. One task per thread numbers the
        // vertices of two slices at a time, which takes 16 bytes for 64 points of a slice.
        let planes = if may_be_nan { 3 } else { 1 };
        let planes = planes * points.saturating_mul(layers as u64 + 3) / 8;
        let tasks = layers.div_ceil(4).min(rayon::current_num_threads()) as u64;
        planes.saturating_add(points.saturating_mul(tasks) / 2)
    }

    /// Fails if the surface of `layers` takes more than [`max_bytes`](Self::max_bytes).
    pub(super) fn check_bytes(
        &self,
        layers: &Range<usize>,
        [vertices, triangles]: [u64; 2],
    ) -> Result<()> {
        let bytes = 12 * (vertices * if self.normals { 2 } else { 1 } + triangles);
        check_bytes("the surface", layers, bytes, self.max_bytes)
    }

    /// Points added beyond the samples on each side, 0 or 1.
    pub(super) fn pad(&self) -> usize {
        usize::from(self.close)
    }
}

/// Fails if `mesh`, the mesh of `layers`, takes more than `max` bytes.
pub(super) fn check_bytes(mesh: &str, layers: &Range<usize>, bytes: u64, max: u64) -> Result<()> {
    match bytes <= max {
        true => Ok(()),
        false => {
            let (first, last) = (layers.start, layers.end);
            Err(memory::exceeds_rest(format_args!("{mesh} of slices {first} to {last}"), max))
        }
    }
}

/// Fails if `before + count` vertices cannot be numbered in 32 bits.
pub(super) fn check_count(before: u64, count: u64) -> Result<()> {
    match before + count > 1 << 32 {
        true => Err(Error::bad_input(
            "the surface has more vertices than the maximum of 4,294,967,296 (32-bit vertex numbers)",
        )
        .with_hint(Hint::Isovalue)),
        false => Ok(()),
    }
}
