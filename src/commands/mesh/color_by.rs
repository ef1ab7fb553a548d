//! `--color-by`: colours of the vertices by the values of another volume.

use super::{budget::allow, coordinates::MeshCoordinates};
use crate::{
    data::{grid::Grid, palette::Palette, placement::Placement, surface::Surface},
    engine::session::Session,
    for_samples,
    io::{
        Source,
        plot::ColorBar,
        volume::{Layout, VolumeFile},
    },
    kernels::mesh::MarchingCubes,
    util::{
        error::{Error, Result},
        parallel::{self, Parallel},
    },
};

/// The volume, palette and range that the user has chosen.
#[derive(Clone, Debug)]
pub(super) struct ColorBy {
    pub(super) source: Source,
    pub(super) palette: Palette,
    /// Values of the first and the last colour; `None` stands for the minimum and maximum on the surface.
    pub(super) range: Option<[f64; 2]>,
}

/// The colour of vertices that have no value: those outside the volume or next to a sample that is NaN.
const NOTHING: [u8; 3] = [128; 3];

/// Distance from the centre of a border sample at which the volume ends, in steps of the grid: half a step, to the side
/// of the volume's box, plus a tolerance for rounding.
const BORDER: f64 = 0.501;

impl ColorBy {
    /// Reads the volume whose values become the colours. `file` is the meshed volume; `kernel` and `coords` hold the
    /// grid of all its samples, before a region is cut out.
    pub(super) fn read(
        &self,
        file: &VolumeFile,
        kernel: &MarchingCubes,
        coords: &MeshCoordinates,
        session: &Session,
    ) -> Result<Colors<'_>> {
        let source = &self.source;
        let other = VolumeFile::describe(source, &Layout::default())?;
        let worlds = match (&file.placement, &other.placement) {
            (Some(own), Some(theirs)) => Some([own.clone(), theirs.in_system_of(own)]),
            _ if file.dims == other.dims => None,
            _ => {
                let sizes = [&file.dims, &other.dims].map(|[x, y, z]| format!("{x}x{y}x{z}"));
                return Err(Error::bad_input(format_args!(
                    "{source}: expected {} samples, as in the meshed volume, found {}; sizes may differ only if both \
                     files state world coordinates",
                    sizes[0], sizes[1]
                )));
            }
        };
        let grid = coords.map.clone().unwrap_or_else(|| {
            let first = |axis: usize| kernel.origin[axis] + kernel.spacing[axis] / 2.0;
            Placement::axis_aligned(kernel.spacing, std::array::from_fn(first))
        });
        let volume = other.read(session.limits(2), &session.timings)?;
        Ok(Colors { by: self, grid, worlds, volume })
    }
}

/// The volume whose values become the colours, in memory.
pub(super) struct Colors<'a> {
    by: &'a ColorBy,
    /// The grid of the meshed volume, in the coordinates of the mesh.
    grid: Placement,
    /// Placements of the meshed and of the colouring volume in the same space and unit; `None` if the files do not
    /// state both, and both volumes have the same dimensions.
    worlds: Option<[Placement; 2]>,
    volume: Grid,
}

impl Colors<'_> {
    /// Gives every vertex its colour and logs the range of values. Returns the colour bar; `None` if there is no value.
    pub(super) fn paint(
        &self,
        surface: &mut Surface,
        session: &Session,
    ) -> Result<Option<ColorBar>> {
        let bytes = self.volume.samples.as_bytes().len() as u64;
        let more = bytes.saturating_add(11 * surface.positions.len() as u64);
        allow("colouring a surface", surface, more, session)?;
        let values =
            parallel::mapped(&surface.positions, |position| self.value(position.map(f64::from)))?;
        let found = values.chunks(1 << 14).par_map(|values| {
            let numbers = values.iter().filter(|value| value.is_finite());
            numbers.fold([f64::MAX, f64::MIN], |[low, high], &v| [low.min(v), high.max(v)])
        });
        let found = found
            .into_iter()
            .reduce(|[low, high], other| [low.min(other[0]), high.max(other[1])])
            .filter(|[low, high]| low <= high);
        let ColorBy { source, palette, range } = self.by;
        let Some([low, high]) = range.or(found) else {
            log::warn!("{source}: no value lies on the surface, which is coloured grey");
            surface.colors = parallel::mapped(&values, |_| NOTHING)?;
            return Ok(None);
        };
        let table = palette.table();
        surface.colors = parallel::mapped(&values, |&value| {
            let part = match high > low {
                true => (value - low) / (high - low),
                // The range is a single value: values above it get the last colour.
                false => f64::from(u8::from(value > low)),
            };
            // The cast saturates: values below the range get the first colour.
            if value.is_nan() { NOTHING } else { table[((256.0 * part) as usize).min(255)] }
        })?;
        log::info!("colours: {palette} from {low} to {high} of {source}");
        Ok(Some(ColorBar { palette: *palette, range: [low, high] }))
    }

    /// The value at a position of the mesh, interpolated trilinearly; NaN outside the volume.
    fn value(&self, position: [f64; 3]) -> f64 {
        let mut at = self.grid.index_at(position);
        if let Some([own, other]) = &self.worlds {
            at = other.index_at(own.at(at));
        }
        let dims = self.volume.dims;
        let is_within =
            |axis: usize| (-BORDER..=dims[axis] as f64 - 1.0 + BORDER).contains(&at[axis]);
        if !(0..3).all(is_within) {
            return f64::NAN;
        }
        let at: [f64; 3] = std::array::from_fn(|axis| at[axis].clamp(0.0, dims[axis] as f64 - 1.0));
        let low = at.map(|v| v as usize);
        for_samples!(&self.volume.samples, samples => {
            let mut sum = 0.0;
            for corner in 0..8 {
                let (mut weight, mut index) = (1.0, 0);
                for axis in [2, 1, 0] {
                    let (part, is_high) = (at[axis] - low[axis] as f64, corner >> axis & 1);
                    weight *= if is_high == 1 { part } else { 1.0 - part };
                    index = index * dims[axis] + (low[axis] + is_high).min(dims[axis] - 1);
                }
                if weight > 0.0 {
                    #[allow(clippy::unnecessary_cast)]
                    let value = samples[index] as f64;
                    sum += weight * value;
                }
            }
            sum
        })
    }
}
