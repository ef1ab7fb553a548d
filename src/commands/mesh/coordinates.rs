//! Coordinates of a mesh: world coordinates of the file, or coordinates of the grid.

use serde::Serialize;

use crate::{
    commands::flags::{Choice, choice_parser},
    data::{
        length,
        placement::{Placement, Space},
    },
    engine::session::Session,
    io::{Sink, Source, losses, mesh::MeshFormat, volume::VolumeFile},
    kernels::mesh::MarchingCubes,
    util::error::{Error, Result},
};

/// The coordinate system of a mesh. Spacing and origin are applied by the kernel, and `map` afterwards.
pub(super) struct MeshCoordinates {
    /// Map to be applied to the surface if the axes of the volume are rotated, mirrored or skewed.
    pub(super) map: Option<Placement>,
    /// Anatomical orientation of the axes, if known.
    pub(super) space: Option<Space>,
    /// Unit of the coordinates, if known.
    pub(super) unit: Option<String>,
}

impl MeshCoordinates {
    /// Factor from the coordinates to the unit of `format`; `None` if they need no conversion. Neuroglancer shows
    /// images in their own units, so a volume without a known unit gets a warning. 3MF is for printers, which take
    /// numbers as millimetres.
    pub(super) fn factor(
        &self,
        format: MeshFormat,
        sink: &Sink,
        session: &Session,
    ) -> Result<Option<f64>> {
        let Some(unit) = format.unit() else { return Ok(None) };
        let own = self.unit.as_deref();
        let factor = own.and_then(|own| length::convert(1.0, own, unit));
        if factor.is_none() && (own.is_some() || format != MeshFormat::ThreeMf) {
            let own = own.map_or("no unit".into(), |own| format!("the unit {own}"));
            let loss = format!("the volume states {own}, so its coordinates are taken as {unit}");
            losses::report(sink, loss, session.strict)?;
        }
        Ok(factor.filter(|&factor| factor != 1.0))
    }
}

/// The coordinates that the user chooses for a mesh.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) enum Coordinates {
    /// World coordinates of the file if it states them, otherwise those of the grid.
    World,
    /// World coordinates of the file, turned to this anatomical orientation.
    In(Space),
    /// Coordinates of the grid, as for raw volumes. The first sample is half a step away from the corner of the box.
    Voxel,
}

/// The flags that choose the coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, clap::Args)]
pub(super) struct CoordinateArgs {
    /// Coordinates of the mesh
    #[arg(long = "space", value_name = "SPACE", value_parser = choice_parser(&SPACES), default_value = "world")]
    #[arg(help_heading = "Coordinates")]
    pub(super) coordinates: Coordinates,

    /// Distance between samples along x, y and z, or one for all [default: the file's, else 1]
    #[arg(long, value_name = "X,Y,Z", value_parser = spacing)]
    #[arg(help_heading = "Coordinates")]
    pub(super) spacing: Option<[f64; 3]>,

    /// Corner of the volume's box [default: the file's, else 0,0,0]
    ///
    /// In the unit of --spacing. The first sample lies half a spacing from it.
    #[arg(long, value_name = "X,Y,Z", value_parser = triple, allow_negative_numbers = true)]
    #[arg(help_heading = "Coordinates")]
    pub(super) origin: Option<[f64; 3]>,
}

const SPACES: [Choice<Coordinates>; 4] = [
    (
        "world",
        Coordinates::World,
        "World coordinates of the file, or voxel coordinates if it has none",
    ),
    (
        "voxel",
        Coordinates::Voxel,
        "Samples are 1 apart and the first is at 0.5: ignores spacing, origin and orientation of the file",
    ),
    (
        "ras",
        Coordinates::In(Space::Ras),
        "World coordinates with x to the patient's right, y to the front (anterior) and z to the head (superior), as in NIfTI, FreeSurfer and 3D Slicer",
    ),
    (
        "lps",
        Coordinates::In(Space::Lps),
        "World coordinates with x to the patient's left, y to the back (posterior) and z to the head (superior), as in DICOM and ITK",
    ),
];

impl CoordinateArgs {
    /// Sets spacing and origin of `kernel` to those of `file`. Rotated, mirrored or skewed axes, which the kernel does
    /// not support, are returned as a map.
    pub(super) fn apply(
        &self,
        kernel: &mut MarchingCubes,
        source: &Source,
        file: &VolumeFile,
    ) -> Result<MeshCoordinates> {
        let Some(mut placement) = self.file_placement(source, file)? else {
            let (spacing, origin) =
                (self.spacing.unwrap_or([1.0; 3]), self.origin.unwrap_or([0.0; 3]));
            let first = std::array::from_fn(|axis| origin[axis] + spacing[axis] / 2.0);
            self.check(&Placement::axis_aligned(spacing, first), source, file)?;
            (kernel.spacing, kernel.origin) = (spacing, origin);
            return Ok(MeshCoordinates { map: None, space: None, unit: None });
        };
        let (space, unit) = (placement.space, placement.unit.clone());
        if let Some(spacing) = self.spacing {
            let directions = placement.directions();
            placement.steps =
                std::array::from_fn(|axis| directions[axis].map(|v| v * spacing[axis]));
        }
        if let Some(origin) = self.origin {
            let corner = placement.corner();
            placement.first = std::array::from_fn(|i| placement.first[i] - corner[i] + origin[i]);
        }
        self.check(&placement, source, file)?;
        if placement.is_axis_aligned() {
            kernel.spacing = placement.spacing();
            kernel.origin = placement.corner();
            return Ok(MeshCoordinates { map: None, space, unit });
        }
        Ok(MeshCoordinates { map: Some(placement), space, unit })
    }

    /// Fails if steps or coordinates are out of the range of f32, the type of the coordinates of a mesh.
    fn check(&self, placement: &Placement, source: &Source, file: &VolumeFile) -> Result<()> {
        /// Headroom for sums and differences of coordinates.
        const HEADROOM: f64 = 16.0;
        let (min, max) = (f64::from(f32::MIN_POSITIVE) * HEADROOM, f64::from(f32::MAX) / HEADROOM);
        let end = file.dims.map(|samples| samples as f64);
        let corner = |corner: usize| {
            placement.at(std::array::from_fn(|i| if corner >> i & 1 == 0 { -1.0 } else { end[i] }))
        };
        let fits = (0..8).flat_map(corner).all(|coordinate| coordinate.abs() <= max)
            && placement.spacing().iter().all(|step| (min..=max).contains(step));
        let is_given = self.spacing.is_some() || self.origin.is_some();
        match (fits, is_given) {
            (true, _) => Ok(()),
            (false, true) => Err(Error::usage(
                "--spacing or --origin is too large or too small for 32-bit coordinates",
            )),
            (false, false) => Err(Error::bad_input(format_args!(
                "{source}: the spacing or origin in the file is out of range for 32-bit coordinates; use --space voxel"
            ))),
        }
    }

    /// The placement of the file in the chosen coordinates; `None` for those of the grid.
    fn file_placement(&self, source: &Source, file: &VolumeFile) -> Result<Option<Placement>> {
        let placement = file.placement.as_ref();
        match self.coordinates {
            Coordinates::Voxel => Ok(None),
            Coordinates::World => Ok(placement.cloned()),
            Coordinates::In(space) => match placement.and_then(|placement| placement.to(space)) {
                Some(placement) => Ok(Some(placement)),
                None => Err(Error::usage(format_args!(
                    "{source}: the file does not state the anatomical orientation of its axes: use --space world or voxel"
                ))),
            },
        }
    }
}

/// Parses three numbers, one for each axis: `1,1,2.5`.
fn triple(text: &str) -> Result<[f64; 3], String> {
    let number = |part: &str| part.trim().parse().ok().filter(|v: &f64| v.is_finite());
    let numbers: Option<Vec<f64>> = text.split(',').map(number).collect();
    let triple = numbers.and_then(|numbers| numbers.try_into().ok());
    triple.ok_or_else(|| "expected three numbers such as 1,1,2.5".into())
}

/// Parses one positive step for all axes, or one for each.
fn spacing(text: &str) -> Result<[f64; 3], String> {
    // A single number holds for all axes.
    let spacing = match text.contains(',') {
        true => triple(text)?,
        false => triple(&format!("{text},{text},{text}"))
            .map_err(|_| "expected a number, or three numbers such as 1,1,2.5")?,
    };
    match spacing.iter().all(|&step| step > 0.0) {
        true => Ok(spacing),
        false => Err("expected numbers greater than 0".into()),
    }
}
