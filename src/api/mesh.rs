//! Surfaces of volumes.

use super::{device::Device, operation::choices, sample::Sample, volume::Volume};
use crate::{
    data::surface::Surface,
    kernels::mesh::{
        self, Slab,
        labels::{DEFAULT_STEPS, LabelSurfaces, MAX_STEPS, Scratch, SurfaceNets, world_positions},
        post::{self, Goal},
    },
    util::{
        error::{Error, Result, check_range},
        memory,
    },
};

choices! {
    mesh::Topology {
        Classic: "classic", "Join the inside corners on ambiguous faces, by the table of 256 cases";
        Exact: "exact", "Follow the trilinear interpolation of the samples";
    }
}

/// Marching cubes: the surface between the samples that are greater than an isovalue and all others.
///
/// ```
/// use gpuproc::{Device, MarchingCubes, Volume};
///
/// # fn main() -> gpuproc::Result<()> {
/// let volume = Volume::new([2, 1, 1], vec![0u8, 10])?;
/// let mesh = MarchingCubes::new(5.0).close().spacing([2.0; 3]).run(&Device::best(), &volume)?;
/// assert_eq!(mesh.triangles.len(), 8);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MarchingCubes(mesh::MarchingCubes);

/// A triangle mesh. Triangles share vertices, and are in the same order on every device.
///
/// ```
/// use gpuproc::{Device, Volume, mesh};
///
/// # fn main() -> gpuproc::Result<()> {
/// let volume = Volume::new([3, 3, 3], (0..27).map(|i| f32::from(i == 13)).collect())?;
/// let octahedron = mesh(&Device::best(), &volume, 0.5)?;
/// assert_eq!((octahedron.positions.len(), octahedron.triangles.len()), (6, 8));
/// # Ok(())
/// # }
/// ```
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
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) when a parameter is not a finite number, or a spacing not above 0,
    /// [`ErrorKind::BadInput`](crate::ErrorKind::BadInput) when there are more than 2^32 vertices,
    /// [`ErrorKind::Failure`](crate::ErrorKind::Failure) when memory is exhausted,
    /// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu) when the device fails.
    pub fn run<T: Sample>(&self, device: &Device, volume: &Volume<T>) -> Result<Mesh> {
        if self.0.iso.is_nan() {
            return Err(Error::usage("the isovalue is NaN"));
        }
        check_placement(self.0.spacing, self.0.origin)?;
        if volume.samples().is_empty() {
            return Ok(Surface::default().into());
        }
        let slab = Slab::whole(volume.shared(), &self.0);
        memory::catch(|| device.run(&self.0, &slab)).map(Mesh::from)
    }
}

fn check_placement(spacing: [f64; 3], origin: [f64; 3]) -> Result<()> {
    match spacing.iter().all(|step| *step > 0.0 && step.is_finite())
        && origin.iter().all(|position| position.is_finite())
    {
        true => Ok(()),
        false => Err(Error::usage("expected finite numbers as origin, and a spacing above 0")),
    }
}

impl From<Surface> for Mesh {
    fn from(surface: Surface) -> Self {
        let Surface { positions, normals, triangles, nan_cells, .. } = surface;
        Self { positions, normals, triangles, nan_cells }
    }
}

impl Mesh {
    /// Reduces the mesh to a share of its triangles, from 0 to 1, by edge collapses in the order of their quadric error
    /// (Garland and Heckbert 1997). Parts stay connected, and closed surfaces closed.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) when the share is out of range,
    /// [`ErrorKind::BadInput`](crate::ErrorKind::BadInput) when a triangle has a vertex that does not exist,
    /// [`ErrorKind::Failure`](crate::ErrorKind::Failure) when memory is exhausted.
    pub fn simplify(self, share: f64) -> Result<Self> {
        if !(0.0..=1.0).contains(&share) {
            return Err(Error::usage(format_args!("the share is {share}, expected 0 to 1")));
        }
        self.changed(|surface| post::simplify(surface, &Goal::share(share)).map(drop))
    }

    /// Smooths the mesh by `steps` pairs of shrinking and growing steps (Taubin 1995). Closed parts keep their volume.
    ///
    /// # Errors
    /// As [`Mesh::simplify`].
    pub fn smooth(self, steps: u32) -> Result<Self> {
        self.changed(|surface| post::smooth(surface, steps))
    }

    fn changed(self, change: impl FnOnce(&mut Surface) -> Result<()>) -> Result<Self> {
        let mut surface = self.into_surface()?;
        memory::catch(|| change(&mut surface))?;
        Ok(surface.into())
    }

    /// The mesh as a surface, if its triangles and normals are those of its vertices.
    pub(super) fn into_surface(self) -> Result<Surface> {
        let count = self.positions.len();
        if self.triangles.iter().flatten().any(|&vertex| vertex as usize >= count)
            || !(self.normals.is_empty() || self.normals.len() == count)
        {
            return Err(Error::bad_input("a triangle or a normal belongs to no vertex"));
        }
        let Self { positions, normals, triangles, nan_cells } = self;
        Ok(Surface { positions, normals, triangles, nan_cells, ..Surface::default() })
    }
}

/// The surfaces of all labels of a volume in one pass (surface nets; Frisken 2022). Neighbouring labels share vertices;
/// label 0 is the background.
///
/// ```
/// use gpuproc::{Device, LabelMeshes, Volume};
///
/// # fn main() -> gpuproc::Result<()> {
/// let volume = Volume::new([2, 1, 1], vec![7u16, 9])?;
/// let meshes = LabelMeshes::new().run(&Device::best(), &volume)?;
/// assert_eq!(meshes.iter().map(|(label, _)| *label).collect::<Vec<_>>(), [7, 9]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LabelMeshes {
    steps: u32,
    spacing: [f64; 3],
    origin: [f64; 3],
}

impl Default for LabelMeshes {
    fn default() -> Self {
        Self { steps: DEFAULT_STEPS, spacing: [1.0; 3], origin: [0.0; 3] }
    }
}

impl LabelMeshes {
    /// Ten smoothing steps, for samples one unit of length apart.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number of smoothing steps, 0 to 1000. With 0, the faces are those of the voxels.
    #[must_use]
    pub fn smoothing(self, steps: u32) -> Self {
        Self { steps, ..self }
    }

    /// Sets the distance between samples along x, y and z.
    #[must_use]
    pub fn spacing(self, spacing: [f64; 3]) -> Self {
        Self { spacing, ..self }
    }

    /// Sets the corner of the volume: sample i lies at `origin + (i + 0.5) * spacing`.
    #[must_use]
    pub fn origin(self, origin: [f64; 3]) -> Self {
        Self { origin, ..self }
    }

    /// Computes the surface of each label of `volume`, in ascending order of the labels.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) when a parameter is out of range or not a finite number,
    /// [`ErrorKind::BadInput`](crate::ErrorKind::BadInput) when the samples are floats, or negative,
    /// [`ErrorKind::Failure`](crate::ErrorKind::Failure) when memory is exhausted,
    /// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu) when the device fails.
    pub fn run<T: Sample>(&self, device: &Device, volume: &Volume<T>) -> Result<Vec<(u32, Mesh)>> {
        check_placement(self.spacing, self.origin)?;
        check_range("smoothing", self.steps.into(), 0.0..=MAX_STEPS.into())?;
        let slab = SurfaceNets::whole(volume.shared());
        memory::catch(|| {
            let mesh = device.run(&SurfaceNets::new(self.steps), &slab)?;
            let at = |position: [f64; 3]| {
                std::array::from_fn(|i| (self.origin[i] + position[i] * self.spacing[i]) as f32)
            };
            let positions = world_positions(&mesh.vertices, at)?;
            let surfaces = LabelSurfaces::new(&mesh, &positions)?;
            let mut scratch = Scratch::default();
            let surface =
                |(index, label)| Ok((label, surfaces.surface(index, &mut scratch)?.into()));
            surfaces.labels().enumerate().map(surface).collect()
        })
    }
}

/// Computes the surface of `volume` at the isovalue `iso`.
///
/// # Errors
/// As [`MarchingCubes::run`].
pub fn mesh<T: Sample>(device: &Device, volume: &Volume<T>, iso: f64) -> Result<Mesh> {
    MarchingCubes::new(iso).run(device, volume)
}
