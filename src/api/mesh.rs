//! Surfaces of volumes.

use super::{device::Device, sample::Sample, volume::Volume};
use crate::{
    data::surface::Surface,
    kernels::mesh::{self, Slab},
    util::error::Result,
};

/// Marching cubes: the surface between the samples that are greater than an isovalue and all others.
#[derive(Clone, Debug, PartialEq)]
pub struct MarchingCubes(mesh::MarchingCubes);

/// A triangle mesh. Triangles share vertices, and are in the same order on every device.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Mesh {
    /// The vertices.
    pub positions: Vec<[f32; 3]>,
    /// A unit vector for each vertex, which points outwards; empty unless [`MarchingCubes::normals`] asks for
    /// normals.
    pub normals: Vec<[f32; 3]>,
    /// The indices of the three vertices of each triangle, counter-clockwise as seen from outside.
    pub triangles: Vec<[u32; 3]>,
    /// The number of cells that were left out because a corner is NaN.
    pub nan_cells: u64,
}

impl MarchingCubes {
    /// The surface at the isovalue `iso`, for samples one unit of length apart.
    pub fn new(iso: f64) -> Self {
        Self(mesh::MarchingCubes::new(iso))
    }

    /// Sets the distance between samples along x, y and z.
    #[must_use]
    pub fn spacing(self, spacing: [f64; 3]) -> Self {
        Self(mesh::MarchingCubes { spacing, ..self.0 })
    }

    /// Sets the corner of the volume: sample i lies at `origin + (i + 0.5) * spacing`.
    #[must_use]
    pub fn origin(self, origin: [f64; 3]) -> Self {
        Self(mesh::MarchingCubes { origin, ..self.0 })
    }

    /// Closes the surface where it leaves the volume.
    #[must_use]
    pub fn close(self) -> Self {
        Self(mesh::MarchingCubes { close: true, ..self.0 })
    }

    /// Resolves ambiguous cells as the trilinear interpolation of the samples does, rather than by the table of 256
    /// cases.
    #[must_use]
    pub fn exact_topology(self) -> Self {
        Self(mesh::MarchingCubes { topology: mesh::Topology::Exact, ..self.0 })
    }

    /// Computes normals from the gradient of the volume.
    #[must_use]
    pub fn normals(self) -> Self {
        Self(mesh::MarchingCubes { normals: true, ..self.0 })
    }

    /// Computes the surface of `volume`, which is empty if all samples are on one side of the isovalue.
    ///
    /// # Errors
    /// [`ErrorKind::BadInput`](crate::ErrorKind::BadInput) when there are more than 2^32 vertices,
    /// [`ErrorKind::Failure`](crate::ErrorKind::Failure) when memory is exhausted,
    /// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu) when the device fails.
    pub fn run<T: Sample>(&self, device: &Device, volume: &Volume<T>) -> Result<Mesh> {
        let slab = Slab::whole(volume.inner().clone(), &self.0);
        let Surface { positions, normals, triangles, nan_cells, .. } =
            device.run(&self.0, &slab)?;
        Ok(Mesh { positions, normals, triangles, nan_cells })
    }
}

/// Computes the surface of `volume` at the isovalue `iso`.
///
/// # Errors
/// As [`MarchingCubes::run`].
pub fn mesh<T: Sample>(device: &Device, volume: &Volume<T>, iso: f64) -> Result<Mesh> {
    MarchingCubes::new(iso).run(device, volume)
}
