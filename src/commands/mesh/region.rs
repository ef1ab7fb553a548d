//! `--roi` and `--mask`: a box of samples of a volume, and a mask that excludes samples.

use std::str::FromStr;

use serde::Serialize;

use super::coordinates::MeshCoordinates;
use crate::{
    data::{grid::Grid, reader::Reader, samples::Samples},
    engine::session::Session,
    for_samples,
    io::{
        Source,
        volume::{Layout, VolumeFile},
    },
    kernels::{mesh::MarchingCubes, otsu::extremes},
    util::error::{Error, Result},
};

/// The samples that are meshed.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct RegionArgs {
    /// Mesh only this box of samples
    ///
    /// First sample, and number of samples along x, y and z. Coordinates stay those of the whole volume.
    #[arg(long, value_name = "X,Y,Z,WIDTH,HEIGHT,DEPTH")]
    #[arg(help_heading = "Selection of samples")]
    pub(super) roi: Option<Roi>,

    /// Mesh only where this volume is not 0
    ///
    /// Both volumes have the same size. Other samples become the minimum of the volume.
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = "Selection of samples")]
    pub(super) mask: Option<Source>,
}

/// A box of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Roi {
    start: [usize; 3],
    size: [usize; 3],
}

impl FromStr for Roi {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Option<Vec<usize>> =
            text.split(',').map(|part| part.trim().parse().ok()).collect();
        match numbers.as_deref() {
            Some(&[x, y, z, width, height, depth]) if width.min(height).min(depth) > 0 => {
                Ok(Self { start: [x, y, z], size: [width, height, depth] })
            }
            _ => Err(
                "expected x, y, z, width, height and depth in samples, such as 10,20,0,64,64,32"
                    .into(),
            ),
        }
    }
}

impl RegionArgs {
    /// Whether all samples are meshed, unchanged.
    pub(super) fn is_all(&self) -> bool {
        self.roi.is_none() && self.mask.is_none()
    }

    /// Moves the origin of the grid from the corner of the volume to that of the box.
    pub(super) fn place(&self, kernel: &mut MarchingCubes, coords: &mut MeshCoordinates) {
        let Some(Roi { start, .. }) = self.roi else { return };
        match &mut coords.map {
            None => {
                for (axis, start) in start.into_iter().enumerate() {
                    kernel.origin[axis] += kernel.spacing[axis] * start as f64;
                }
            }
            Some(map) => map.first = map.at(start.map(|index| index as f64)),
        }
    }

    /// The dimensions of the box, in samples along x, y and z.
    pub(super) fn dims(&self, file: &VolumeFile) -> Result<[usize; 3]> {
        let Some(Roi { start, size }) = self.roi else { return Ok(file.dims) };
        let fits = |axis: usize| {
            start[axis].checked_add(size[axis]).is_some_and(|end| end <= file.dims[axis])
        };
        match (0..3).all(fits) {
            true => Ok(size),
            false => Err(Error::usage(format_args!(
                "--roi is not within the volume's {}x{}x{} samples",
                file.dims[0], file.dims[1], file.dims[2]
            ))),
        }
    }

    /// Reads the samples of the region into memory.
    pub(super) fn read(
        &self,
        source: &Source,
        file: &VolumeFile,
        isovalues: &[f64],
        session: &Session,
    ) -> Result<Grid> {
        let dims = self.dims(file)?;
        let samples = session.timings.time("read", || self.read_box(file, session))?;
        let mut volume = Grid::volume(dims, samples);
        let Some(mask) = &self.mask else { return Ok(volume) };
        let mask_file = VolumeFile::describe(mask, &Layout::default())?;
        if mask_file.dims != file.dims {
            return Err(Error::bad_input(format_args!(
                "{mask}: the mask has {}x{}x{} samples, but {source} has {}x{}x{}",
                mask_file.dims[0],
                mask_file.dims[1],
                mask_file.dims[2],
                file.dims[0],
                file.dims[1],
                file.dims[2]
            )));
        }
        mask_file.check(session.limits(1))?;
        let mask = session.timings.time("read", || self.read_box(&mask_file, session))?;
        // Excluded samples get a value that is not above any isovalue, so they are outside of every surface.
        let [min, _] = extremes(&volume.samples);
        let min_iso = isovalues.iter().copied().fold(f64::INFINITY, f64::min);
        let outside = if min <= min_iso { min } else { min_iso.floor() };
        let is_out: Vec<bool> = for_samples!(&mask, values => {
            #[allow(clippy::unnecessary_cast)]
            values.iter().map(|&value| value as f64 == 0.0).collect()
        });
        for_samples!(&mut volume.samples, values => {
            for (value, _) in values.iter_mut().zip(is_out).filter(|(_, is_out)| *is_out) {
                #[allow(clippy::unnecessary_cast)]
                let outside = outside as _;
                *value = outside;
            }
        });
        Ok(volume)
    }

    /// Reads the samples of the box from `file`.
    fn read_box(&self, file: &VolumeFile, session: &Session) -> Result<Samples> {
        let width = file.dims[0];
        let whole = Roi { start: [0; 3], size: file.dims };
        let Roi { start, size: [columns, rows, slices] } = self.roi.unwrap_or(whole);
        let len = columns * rows * slices;
        let bytes = (len * file.dtype.size()) as u64;
        if bytes > session.max_memory {
            let what = format_args!("{}: --roi or --mask with {len} samples", file.source());
            return Err(session.exceeds_memory(what, bytes));
        }
        let mut reader = file.reader_at(start[2])?;
        let mut all = Samples::zeros(file.dtype, len)?;
        let size = file.dtype.size();
        let mut out = all.as_bytes_mut().chunks_exact_mut(columns * size);
        for _ in 0..slices {
            let slice = reader.read(1)?;
            for y in start[1]..start[1] + rows {
                let from = (y * width + start[0]) * size;
                let row = out.next().expect("one chunk per row");
                row.copy_from_slice(&slice.as_bytes()[from..from + row.len()]);
            }
            reader.reuse(slice);
        }
        if start[2] + slices == file.dims[2] {
            reader.expect_end()?;
        }
        Ok(all)
    }
}
