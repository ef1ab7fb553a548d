//! Where the mesh lies: in the file's world coordinates, or in the grid's.

use crate::{
    data::placement::{Placement, Space},
    error::{Error, Result},
    io::{Source, volume::VolumeFile},
    kernels::mesh::MarchingCubes,
};

/// Where a mesh lies.
pub(super) struct Placed {
    /// What is still to be applied to the surface: axes that are turned, mirrored or skew.
    pub(super) map: Option<Placement>,
    /// How the coordinates' axes point, where that is known.
    pub(super) space: Option<Space>,
    /// The coordinates' unit, where that is known.
    pub(super) unit: Option<String>,
}

/// Coordinates of a mesh.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Coordinates {
    /// Those of the file, where it states them, else the grid's.
    World,
    /// The file's, with their axes turned into these.
    In(Space),
    /// The grid's: samples half a step from the box's corner, as for raw volumes.
    Voxel,
}

/// What the flags say of where the mesh lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Placing {
    pub(super) coordinates: Coordinates,
    /// In place of the file's.
    pub(super) spacing: Option<[f64; 3]>,
    /// The corner of the volume's box, in place of the file's.
    pub(super) origin: Option<[f64; 3]>,
}

impl Placing {
    /// Puts the grid of `kernel` where the samples of `file` lie, as far as a grid can be put.
    pub(super) fn apply(
        &self,
        kernel: &mut MarchingCubes,
        source: &Source,
        file: &VolumeFile,
    ) -> Result<Placed> {
        let Some(mut placement) = self.of_file(source, file)? else {
            let (spacing, origin) =
                (self.spacing.unwrap_or([1.0; 3]), self.origin.unwrap_or([0.0; 3]));
            let first = std::array::from_fn(|axis| origin[axis] + spacing[axis] / 2.0);
            self.check(&Placement::straight(spacing, first), source, file)?;
            (kernel.spacing, kernel.origin) = (spacing, origin);
            return Ok(Placed { map: None, space: None, unit: None });
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
        if placement.is_straight() {
            kernel.spacing = placement.spacing();
            kernel.origin = placement.corner();
            return Ok(Placed { map: None, space, unit });
        }
        Ok(Placed { map: Some(placement), space, unit })
    }

    /// Refuses steps and coordinates that f32 does not hold, as those of a mesh are.
    fn check(&self, placement: &Placement, source: &Source, file: &VolumeFile) -> Result<()> {
        /// Room for the sums and differences of coordinates.
        const ROOM: f64 = 16.0;
        let (least, most) = (f64::from(f32::MIN_POSITIVE) * ROOM, f64::from(f32::MAX) / ROOM);
        let end = file.dims.map(|samples| samples as f64);
        let corner = |corner: usize| {
            placement.at(std::array::from_fn(|i| if corner >> i & 1 == 0 { -1.0 } else { end[i] }))
        };
        let held = (0..8).flat_map(corner).all(|place| place.abs() <= most)
            && placement.spacing().iter().all(|step| (least..=most).contains(step));
        let told = self.spacing.is_some() || self.origin.is_some();
        match (held, told) {
            (true, _) => Ok(()),
            (false, true) => Err(Error::usage(
                "--spacing or --origin lead to coordinates that a mesh of 32-bit floats cannot hold",
            )),
            (false, false) => Err(Error::bad_input(format_args!(
                "{source}: its samples lie where a mesh of 32-bit floats has no coordinates"
            ))),
        }
    }

    fn of_file(&self, source: &Source, file: &VolumeFile) -> Result<Option<Placement>> {
        let placement = file.placement();
        match self.coordinates {
            Coordinates::Voxel => Ok(None),
            Coordinates::World => Ok(placement.cloned()),
            Coordinates::In(space) => match placement.and_then(|placement| placement.to(space)) {
                Some(placement) => Ok(Some(placement)),
                None => Err(Error::usage(format_args!(
                    "{source} does not tell how its axes lie in the body: use --space world or voxel"
                ))),
            },
        }
    }
}
