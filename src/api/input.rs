//! Reads files of images, volumes and meshes.

use std::path::Path;

use super::{
    image::Image,
    mesh::Mesh,
    raster::Raster,
    sample::{Sample, sealed::Stored},
    volume::Volume,
};
use crate::{
    data::{
        dtype::Dtype,
        grid::{Alpha, Grid},
        image::DensityUnit,
        placement::{Placement, Space},
    },
    io::{
        Limits, Source,
        image::ImageFile,
        mesh::read_mesh,
        volume::{Layout, VolumeFile, is_volume},
    },
    util::{
        error::{Error, Result},
        memory,
        timings::Timings,
    },
};

/// An image or a volume that was read from a file.
///
/// ```
/// # fn main() -> gpuproc::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("head.nii.gz");
/// let volume = gpuproc::Volume::new([2, 1, 3], vec![-1000i16, 40, 0, 7, 8, 9])?;
/// gpuproc::WriteOptions::new().spacing([0.5, 0.5, 3.0]).write(&path, &volume)?;
///
/// let content = gpuproc::read(&path)?;
/// assert_eq!((content.dims(), content.sample_type().name()), ([2, 1, 3], "i16"));
/// assert_eq!((content.spacing(), content.unit()), (Some([0.5, 0.5, 3.0]), Some("mm")));
/// assert_eq!(content.into_volume::<i16>()?, volume);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    pub(crate) grid: Grid,
    pub(crate) is_volume: bool,
    pub(crate) placement: Option<Placement>,
}

impl Content {
    /// Whether this is a volume.
    pub fn is_volume(&self) -> bool {
        self.is_volume
    }

    /// Number of samples along x, y and z; an image has one along z.
    pub fn dims(&self) -> [usize; 3] {
        self.grid.dims
    }

    /// Number of channels, as [`Channels::count`](crate::Channels::count); 1 for volumes.
    pub fn channels(&self) -> usize {
        self.grid.channels
    }

    /// The type of the samples. Integers of 64 bits are read as `f64`.
    pub fn sample_type(&self) -> Dtype {
        self.grid.samples.dtype()
    }

    /// Distances between samples along x, y and z, if the file states them; 1 along z for images.
    pub fn spacing(&self) -> Option<[f64; 3]> {
        self.placement.as_ref().map(Placement::spacing)
    }

    /// The rows of the matrix from the position (x, y, z, 1) of a sample to the world, as in nibabel, if the file states
    /// it.
    pub fn affine(&self) -> Option<[[f64; 4]; 4]> {
        let Placement { steps: [x, y, z], first, .. } = self.placement.as_ref()?;
        let row = |i: usize| [x[i], y[i], z[i], first[i]];
        Some([row(0), row(1), row(2), [0.0, 0.0, 0.0, 1.0]])
    }

    /// Whether the directions of the world are known. They are then those of NIfTI: x to the patient's right, y to the
    /// front, z up.
    pub fn is_ras(&self) -> bool {
        self.placement.as_ref().is_some_and(|placement| placement.space.is_some())
    }

    /// The symbol of the unit of [`spacing`](Self::spacing) and [`affine`](Self::affine), such as `mm`, if the file
    /// states it.
    pub fn unit(&self) -> Option<&str> {
        self.placement.as_ref()?.unit.as_deref()
    }

    /// Converts the samples to the type `T` by their values: integers are rounded and clamped to its range, NaN becomes
    /// 0. So `u8` becomes `f32` from 0 to 255.
    ///
    /// # Errors
    /// [`ErrorKind::Failure`](crate::ErrorKind::Failure) when memory is exhausted.
    pub fn converted<T: Sample>(mut self) -> Result<Self> {
        if self.sample_type() != T::DTYPE {
            self.grid.samples = self.grid.samples.converted(T::DTYPE)?;
        }
        Ok(self)
    }

    /// Converts the content into an image, without a copy.
    ///
    /// # Errors
    /// [`ErrorKind::BadInput`](crate::ErrorKind::BadInput) when it is a volume, or has samples of another type.
    pub fn into_image<T: Sample>(self) -> Result<Image<T>> {
        self.into_raster()
    }

    /// Converts the content into a volume, without a copy.
    ///
    /// # Errors
    /// [`ErrorKind::BadInput`](crate::ErrorKind::BadInput) when it is an image, or has samples of another type.
    pub fn into_volume<T: Sample>(self) -> Result<Volume<T>> {
        self.into_raster()
    }

    fn into_raster<R: Raster>(self) -> Result<R> {
        let noun = |is_volume| if is_volume { "a volume" } else { "an image" };
        let (own, wanted) = (self.sample_type(), R::Sample::DTYPE);
        let wants_volume = R::AXES == 3;
        match (self.is_volume, own) == (wants_volume, wanted) {
            true => Ok(R::from_grid(self.grid)),
            false => Err(Error::bad_input(format_args!(
                "expected {} of {wanted} samples, found {} of {own} samples",
                noun(wants_volume),
                noun(self.is_volume)
            ))),
        }
    }
}

/// Options of reading.
///
/// ```
/// # fn main() -> gpuproc::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("stack.tif");
/// gpuproc::write(&path, &gpuproc::Volume::new([1, 1, 3], vec![7u8, 8, 9])?)?;
/// // The slices of a TIFF, as an image each or as one volume.
/// let last = gpuproc::ReadOptions::new().page(2).read(&path)?.into_image::<u8>()?;
/// assert_eq!(last.samples(), [9]);
/// let all = gpuproc::read(&path)?.into_volume::<u8>()?;
/// assert_eq!(all.samples(), [7, 8, 9]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    pub(crate) layout: Layout,
    pub(crate) page: Option<usize>,
    pub(crate) max_bytes: Option<u64>,
}

impl ReadOptions {
    /// The first page of an image file, or the only volume of others and of a TIFF whose pages are slices.
    pub fn new() -> Self {
        Self::default()
    }

    /// Chooses a page of an image file, counted from 0, even if it is the slice of a volume.
    #[must_use]
    pub fn page(self, page: usize) -> Self {
        Self { page: Some(page), ..self }
    }

    /// Reads the pages of any TIFF, or the images of a folder, as the slices of one volume.
    #[must_use]
    pub fn stack(self) -> Self {
        Self { layout: Layout { stack: true, ..self.layout }, ..self }
    }

    /// Chooses one of several volumes, counted from 0.
    #[must_use]
    pub fn volume(self, volume: usize) -> Self {
        Self { layout: Layout { volume: Some(volume), ..self.layout }, ..self }
    }

    /// Chooses a channel of an OME-Zarr, counted from 0.
    #[must_use]
    pub fn channel(self, channel: usize) -> Self {
        Self { layout: Layout { channel: Some(channel), ..self.layout }, ..self }
    }

    /// Chooses a time of an OME-Zarr, counted from 0.
    #[must_use]
    pub fn time(self, time: usize) -> Self {
        Self { layout: Layout { time: Some(time), ..self.layout }, ..self }
    }

    /// Chooses a level of resolution of an OME-Zarr; 0, the default, is the finest.
    #[must_use]
    pub fn level(self, level: usize) -> Self {
        Self { layout: Layout { level: Some(level), ..self.layout }, ..self }
    }

    /// Refuses files whose bytes or samples take more than `bytes` bytes of memory. Set this for untrusted files.
    #[must_use]
    pub fn max_bytes(self, bytes: u64) -> Self {
        Self { max_bytes: Some(bytes), ..self }
    }

    /// Reads a file, a folder of slices or an OME-Zarr. The content decides the format.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) when the file cannot be read,
    /// [`ErrorKind::BadInput`](crate::ErrorKind::BadInput) when it is damaged, too large or of an unknown format, or has no
    /// such page, [`ErrorKind::Usage`](crate::ErrorKind::Usage) when the options do not suit it,
    /// [`ErrorKind::Failure`](crate::ErrorKind::Failure) when memory is exhausted.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Content> {
        let source = Source::from(path.as_ref());
        memory::catch(|| self.content(&source))
    }

    fn content(&self, source: &Source) -> Result<Content> {
        let (limits, timings) =
            (Limits::from(self.max_bytes.unwrap_or(u64::MAX)), Timings::new(false));
        let layout = Layout { pages: self.page.is_some(), ..self.layout.clone() };
        if is_volume(source, &layout) {
            let file = VolumeFile::describe(source, &layout)?;
            let (grid, placement) = (file.read(limits, &timings)?, file.placement.clone());
            let placement = placement.map(|own| own.to(Space::Ras).unwrap_or(own));
            return Ok(Content { grid, is_volume: true, placement });
        }
        let file = ImageFile::read(source, limits, &timings)?;
        let mut image = match self.page {
            Some(page) => file.decode_page(page, &timings)?,
            None => file.decode(&timings)?,
        };
        if image.is_linear && image.has_alpha() {
            image = image.to_straight(Dtype::F32)?;
        }
        let density =
            image.metadata.density.and_then(|density| density.per(DensityUnit::Centimetre));
        let placement = density.map(|[x, y]| {
            let placement = Placement::axis_aligned([10.0 / x, 10.0 / y, 1.0], [0.0; 3]);
            Placement { unit: Some("mm".into()), ..placement }
        });
        let alpha = if image.has_alpha() { Alpha::Straight } else { Alpha::None };
        let dims = [image.width, image.height, 1];
        let grid = Grid { dims, channels: image.channels, alpha, samples: image.samples };
        Ok(Content { grid, is_volume: false, placement })
    }
}

/// Reads an image or a volume from a file of any format that the [program](crate::guide) reads.
///
/// ```
/// # fn main() -> gpuproc::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("image.png");
/// let image = gpuproc::Image::new(2, 1, gpuproc::Channels::Rgb, vec![255u8, 0, 0, 0, 0, 255])?;
/// gpuproc::write(&path, &image)?;
/// assert_eq!(gpuproc::read(&path)?.into_image::<u8>()?, image);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`ReadOptions::read`].
pub fn read(path: impl AsRef<Path>) -> Result<Content> {
    ReadOptions::new().read(path)
}

impl Mesh {
    /// Reads a mesh from a PLY, STL, OBJ, OFF, GLB, VTP, 3MF, GIfTI (`.gii`) or MZ3 file: positions and triangles, larger
    /// polygons as fans. Corners of STL at the same place become one vertex.
    ///
    /// ```
    /// # fn main() -> gpuproc::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("ball.ply");
    /// let volume = gpuproc::Volume::new([3; 3], (0..27).map(|i| f32::from(i == 13)).collect())?;
    /// let octahedron = gpuproc::mesh(&gpuproc::Device::best(), &volume, 0.5)?;
    /// octahedron.write(&path)?;
    /// assert_eq!(gpuproc::Mesh::read(&path)?, octahedron);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) when the file cannot be read,
    /// [`ErrorKind::BadInput`](crate::ErrorKind::BadInput) when it is damaged or compressed by meshopt,
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) when the extension is not that of a mesh.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let source = Source::from(path.as_ref());
        let found = memory::catch(|| read_mesh(&source, Limits::from(u64::MAX)))?;
        let Some((name, found)) = found else {
            return Err(Error::usage(format_args!(
                "{source}: no mesh format has the extension `{}`; use .ply, .stl, .obj, .off, .glb, .vtp, .3mf, .gii \
                 or .mz3",
                source.extension()
            )));
        };
        let compressed = || format!("{source}: the triangles of this {name} are compressed");
        found.surface.map(Self::from).ok_or_else(|| Error::bad_input(compressed()))
    }
}
