//! Surfaces of volumes.

use super::{device::Device, sample::Sample, volume::Volume};
use crate::{
    data::surface::Surface,
    error::Result,
    kernels::mesh::{self, Slab},
};

/// Marching cubes: the surface between the samples that are greater than an isovalue and all others.
#[derive(Clone, Debug, PartialEq)]
pub struct MarchingCubes(mesh::MarchingCubes);

/// A triangle mesh. Triangles share vertices, and come in the same order on every device.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Mesh {
    /// The vertices.
    pub positions: Vec<[f32; 3]>,
    /// Unit vectors from inside to outside, one a vertex; empty unless [`MarchingCubes::normals`] asks for
    /// them.
    pub normals: Vec<[f32; 3]>,
    /// Three numbers of vertices each, counter-clockwise as seen from outside.
    pub triangles: Vec<[u32; 3]>,
    /// Cells that were left out because a corner is not a number.
    pub nan_cells: u64,
}

impl MarchingCubes {
    /// The surface at `iso`, in units of the samples, which are one unit of length apart.
    pub fn new(iso: f64) -> Self {
        Self(mesh::MarchingCubes::new(iso))
    }

    /// The distance between samples along x, y and z.
    #[must_use]
    pub fn spacing(self, spacing: [f64; 3]) -> Self {
        Self(mesh::MarchingCubes { spacing, ..self.0 })
    }

    /// The corner of the volume: sample i sits at `origin + (i + 0.5) * spacing`.
    #[must_use]
    pub fn origin(self, origin: [f64; 3]) -> Self {
        Self(mesh::MarchingCubes { origin, ..self.0 })
    }

    /// Closes the surface where it leaves the volume.
    #[must_use]
    pub fn close(self) -> Self {
        Self(mesh::MarchingCubes { close: true, ..self.0 })
    }

    /// Joins what the trilinear field between the samples joins, where the table of 256 cases joins what is inside.
    #[must_use]
    pub fn exact_topology(self) -> Self {
        Self(mesh::MarchingCubes { topology: mesh::Topology::Exact, ..self.0 })
    }

    /// Makes normals, from the volume's gradient.
    #[must_use]
    pub fn normals(self) -> Self {
        Self(mesh::MarchingCubes { normals: true, ..self.0 })
    }

    /// The surface of `volume`; an empty one where all samples are on one side.
    ///
    /// # Errors
    /// [`ErrorKind::BadInput`](crate::ErrorKind::BadInput) when there are more than 2^32 vertices,
    /// [`ErrorKind::Failure`](crate::ErrorKind::Failure) when there is no memory,
    /// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu) when the device fails.
    pub fn run<T: Sample>(&self, device: &Device, volume: &Volume<T>) -> Result<Mesh> {
        let slab = Slab::whole(volume.inner().clone(), &self.0);
        let Surface { positions, normals, triangles, nan_cells, .. } =
            device.run(&self.0, &slab)?;
        Ok(Mesh { positions, normals, triangles, nan_cells })
    }
}

/// The surface where the samples of `volume` pass `iso`.
///
/// # Errors
/// As [`MarchingCubes::run`].
pub fn mesh<T: Sample>(device: &Device, volume: &Volume<T>, iso: f64) -> Result<Mesh> {
    MarchingCubes::new(iso).run(device, volume)
}
