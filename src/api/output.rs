//! Writes files of images, volumes and meshes.

use std::path::Path;

use super::{input::Content, mesh::Mesh, raster::Raster};
use crate::{
    data::{
        dtype::Dtype,
        grid::Grid,
        image::{Density, DensityUnit, Image, Metadata},
        placement::{Placement, Space},
        samples::Samples,
    },
    io::{
        OutputFolder, Sink,
        image::{Encoding, ImageFormat, ImageTarget},
        losses,
        mesh::{self, Details, MeshFolder, MeshFormat},
        volume::{
            Endian, Layout, Pyramid, PyramidOptions, PyramidWriter, VolumeFile, VolumeFormat,
            VolumeTarget, check_store_path, is_zarr_path,
        },
    },
    kernels::histogram::type_range,
    util::{
        error::{Error, Result},
        memory,
        timings::Timings,
    },
};

/// Options of writing.
///
/// ```
/// # fn main() -> gpuproc::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let [path, result] = ["a.nrrd", "b.nrrd"].map(|name| folder.path().join(name));
/// # let volume = gpuproc::Volume::new([2, 2, 2], vec![5u8; 8])?;
/// gpuproc::WriteOptions::new().spacing([0.2, 0.2, 1.0]).write(&path, &volume)?;
///
/// // The result of a filter, at the place of its input.
/// let content = gpuproc::read(&path)?;
/// let options = gpuproc::WriteOptions::new().placed_as(&content);
/// let soft = gpuproc::Blur::gaussian(1.0).run(&gpuproc::Device::best(), &content.into_volume::<u8>()?)?;
/// options.write(&result, &soft)?;
/// assert_eq!(gpuproc::read(&result)?.spacing(), Some([0.2, 0.2, 1.0]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteOptions {
    spacing: Option<[f64; 3]>,
    placement: Option<Placement>,
    unit: Option<String>,
    quality: Option<u8>,
}

impl WriteOptions {
    /// No spacing, and the usual quality of each format.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the distances between samples along x, y and z. Images hold those along x and y, as a density of pixels.
    #[must_use]
    pub fn spacing(self, spacing: [f64; 3]) -> Self {
        Self { spacing: Some(spacing), ..self }
    }

    /// Sets the rows of the matrix from the position (x, y, z, 1) of a sample to the world, as in nibabel: x to the
    /// patient's right, y to the front, z up. The last row is 0, 0, 0, 1.
    #[must_use]
    pub fn affine(self, [x, y, z, last]: [[f64; 4]; 4]) -> Self {
        let column = |j: usize| [x[j], y[j], z[j]];
        let steps = [0, 1, 2].map(column);
        // `placement` refuses NaN.
        let first = if last == [0.0, 0.0, 0.0, 1.0] { column(3) } else { [f64::NAN; 3] };
        let (space, unit) = (Some(Space::Ras), Some("mm".to_owned()));
        Self { placement: Some(Placement { steps, first, space, unit }), ..self }
    }

    /// Sets spacing, affine and unit to those of `content`.
    #[must_use]
    pub fn placed_as(self, content: &Content) -> Self {
        Self { placement: content.placement.clone(), spacing: None, unit: None, ..self }
    }

    /// Sets the unit of spacing and affine, such as `um`; by default `mm`. Formats of another unit, such as NRRD and images,
    /// convert the lengths.
    #[must_use]
    pub fn unit(self, unit: &str) -> Self {
        Self { unit: Some(unit.to_owned()), ..self }
    }

    /// Sets the quality of JPEG and WebP, 1 to 100. By default it is 90 for JPEG, and WebP is lossless.
    #[must_use]
    pub fn quality(self, quality: u8) -> Self {
        Self { quality: Some(quality), ..self }
    }

    /// Writes an image or a volume in the format of the extension of `path`: images to the [formats of
    /// images](crate::guide::blur), volumes and images of one channel to the [formats of
    /// volumes](crate::guide::volumes), a TIFF or a folder `.zarr`. What exists is replaced when the new file is complete.
    /// Content that the format cannot hold is lost, with a warning to the log; integers of 32 bits, such as labels, are never
    /// clamped.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) when an option is out of range, or the format is unknown or does not
    /// hold the samples, [`ErrorKind::Io`](crate::ErrorKind::Io) when the file cannot be written,
    /// [`ErrorKind::Failure`](crate::ErrorKind::Failure) when memory is exhausted.
    pub fn write<R: Raster>(&self, path: impl AsRef<Path>, raster: &R) -> Result<()> {
        self.write_grid(&Sink::File(path.as_ref().to_owned()), raster.grid(), R::AXES)
    }

    /// Writes `grid`, of 2 axes for an image and 3 for a volume, to `sink`.
    pub(crate) fn write_grid(&self, sink: &Sink, grid: &Grid, axes: usize) -> Result<()> {
        if self.quality.is_some_and(|quality| !(1..=100).contains(&quality)) {
            return Err(Error::usage("quality: expected 1 to 100"));
        }
        let (placement, is_volume) = (self.placement()?, writes_volume(sink, axes));
        memory::catch(|| match (is_volume, axes, grid.channels) {
            (true, _, 1) => write_volume(sink, grid, placement),
            (true, ..) => Err(Error::usage(format_args!(
                "{sink}: this format holds volumes and images of one channel"
            ))),
            (false, 3, _) => {
                VolumeFormat::for_output(sink)?;
                Err(Error::usage(format_args!(
                    "{sink}: cannot infer the format: the name has no extension"
                )))
            }
            (false, ..) => write_image(sink, grid, placement, self.quality),
        })
    }

    fn placement(&self) -> Result<Option<Placement>> {
        let placement = match (self.spacing, &self.placement) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => return Err(Error::usage("give spacing or affine, not both")),
            (Some(spacing), None) => {
                if spacing.iter().any(|v| !(v.is_finite() && *v > 0.0)) {
                    return Err(Error::usage("spacing: expected finite numbers above 0"));
                }
                let unit = Some("mm".to_owned());
                Placement { unit, ..Placement::axis_aligned(spacing, [0.0; 3]) }
            }
            (None, Some(placement)) => placement.clone(),
        };
        match placement.is_regular() {
            true => Ok(Some(Placement { unit: self.unit.clone().or(placement.unit), ..placement })),
            false => Err(Error::usage("affine: expected 4 x 4 numbers that span space")),
        }
    }
}

/// Writes an image or a volume in the format of the extension of `path`, as [`read`](crate::read) shows.
///
/// # Errors
/// As [`WriteOptions::write`].
pub fn write(path: impl AsRef<Path>, raster: &impl Raster) -> Result<()> {
    WriteOptions::new().write(path, raster)
}

/// Whether `sink` becomes a volume file if an array of `axes` axes, without that of channels, is written to it.
pub(crate) fn writes_volume(sink: &Sink, axes: usize) -> bool {
    let is_volume_format =
        is_zarr_path(sink) || matches!(VolumeFormat::for_output(sink), Ok(Some(_)));
    is_volume_format && (axes == 3 || ImageFormat::for_output(sink).is_err())
}

fn write_volume(sink: &Sink, grid: &Grid, placement: Option<Placement>) -> Result<()> {
    if grid.samples.is_empty() {
        return Err(Error::bad_input(format_args!("{sink}: the volume has no samples")));
    }
    let dtype = grid.samples.dtype();
    let file = VolumeFile::in_memory(grid.dims, dtype, placement);
    if let (true, Sink::File(path)) = (is_zarr_path(sink), sink) {
        return write_zarr(sink, path, &file, grid);
    }
    let target = VolumeTarget::new(sink, &file, dtype, Endian::Little)?;
    check_integers(sink, &grid.samples, target.dtype())?;
    if let Some(lost) = target.losses() {
        losses::report(sink, lost, false)?;
    }
    let mut writer = target.create(grid.dims, false)?;
    writer.write(grid.samples.copy()?)?;
    writer.finish()?.commit()
}

fn write_zarr(sink: &Sink, path: &Path, file: &VolumeFile, grid: &Grid) -> Result<()> {
    check_store_path(path)?;
    let (dtype, options) = (grid.samples.dtype(), PyramidOptions::default());
    let pyramid = Pyramid::new(file, dtype, &Layout::default(), options)?;
    if let Some(lost) = pyramid.losses() {
        losses::report(sink, lost, false)?;
    }
    let store = OutputFolder::create(path, false)?;
    pyramid.create(store.path())?;
    let levels = (0..pyramid.levels.len(), 0);
    let mut writer = PyramidWriter::new(&pyramid, store.path().to_owned(), 0, levels, false);
    writer.push(&grid.samples)?;
    writer.finish()?;
    store.commit()
}

fn write_image(
    sink: &Sink,
    grid: &Grid,
    placement: Option<Placement>,
    quality: Option<u8>,
) -> Result<()> {
    let format = ImageFormat::for_output(sink)?;
    let density = match placement.and_then(|own| own.in_nearest_unit(&["cm"])) {
        Some(own) if own.unit.is_some() => {
            let [x, y, _] = own.spacing();
            Density::new([1.0 / x, 1.0 / y], DensityUnit::Centimetre)
        }
        _ => None,
    };
    let [width, height, _] = grid.dims;
    let image = Image {
        width,
        height,
        channels: grid.channels,
        samples: grid.samples.copy()?,
        is_linear: false,
        metadata: Metadata { density, ..Metadata::default() },
    };
    if image.samples.is_empty() {
        return Err(Error::bad_input(format_args!("{sink}: the image has no samples")));
    }
    let encoding = Encoding { quality, ..Encoding::default() };
    let timings = Timings::new(false);
    let target = ImageTarget::new(sink, format, encoding, &timings);
    check_integers(sink, &image.samples, target.stored_dtype(image.samples.dtype()))?;
    target.write(image)
}

/// Refuses integers of 32 bits, such as labels, that a file of type `stored` would clamp.
fn check_integers(sink: &Sink, samples: &Samples, stored: Dtype) -> Result<()> {
    let Some((low, high)) = type_range(stored) else { return Ok(()) };
    let fits = |value: f64| (low..=high).contains(&value);
    let outside = match samples {
        Samples::U32(values) => values.iter().copied().map(f64::from).find(|&value| !fits(value)),
        Samples::I32(values) => values.iter().copied().map(f64::from).find(|&value| !fits(value)),
        _ => None,
    };
    match outside {
        Some(value) => Err(Error::usage(format_args!(
            "{sink}: the value {value} does not fit into {stored}, the type of the file"
        ))),
        None => Ok(()),
    }
}

impl Mesh {
    /// Writes the mesh in the format of the extension of `path`: those of [`Mesh::read`], and `.precomputed` (a folder for
    /// Neuroglancer). Coordinates are written as they are; readers take those of 3MF for millimetres, of GLB for metres,
    /// of precomputed meshes for nanometres. What exists is replaced when the new file is complete.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) when the extension is not that of a mesh,
    /// [`ErrorKind::BadInput`](crate::ErrorKind::BadInput) when a triangle has a vertex that does not exist,
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) when the file cannot be written,
    /// [`ErrorKind::Failure`](crate::ErrorKind::Failure) when memory is exhausted.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let sink = Sink::File(path.as_ref().to_owned());
        let wrong = |error| Error::usage(format_args!("{sink}: {error}"));
        let format: MeshFormat = sink.extension().parse().map_err(wrong)?;
        let copy = Self {
            positions: memory::copied(&self.positions)?,
            normals: memory::copied(&self.normals)?,
            triangles: memory::copied(&self.triangles)?,
            nan_cells: self.nan_cells,
        };
        let surface = copy.into_surface()?;
        let details = Details { ascii: false, space: None, metres: 1.0 };
        let (folder, mut output) = match format {
            MeshFormat::Html => return Err(wrong("only the program writes pages".to_owned())),
            MeshFormat::Precomputed => {
                let (folder, output) = MeshFolder::create(&sink, false)?;
                (Some(folder), output)
            }
            _ => (None, sink.create(false)?),
        };
        let written = memory::catch(|| Ok(mesh::write(&mut output, &surface, format, details)))?;
        written.map_err(|error| Error::io("write", sink.to_string(), error))?;
        output.commit()?;
        folder.map_or(Ok(()), MeshFolder::finish)
    }
}
