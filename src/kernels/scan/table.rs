//! Summed-area tables (Crow 1984): sums along the rows of an image, down its columns, or both.

use clap::ValueEnum;
use rayon::prelude::*;

use crate::{
    data::{dtype::Dtype, number::Number},
    device::Kernel,
    error::Result,
    gpu::{Context, Shader},
    shader, shader_struct,
};

/// Sums of 32-bit integers on a GPU.
pub static TABLE: Shader = shader!("scan/table").unchecked(
    "pixels are read and written below band.height * band.width * band.channels, which the host \
         keeps within the bound rows; `above` has a place for each column",
);

shader_struct! {
    /// The rows that one pass works on.
    struct Band { width: u32, height: u32, channels: u32, inclusive: u32 }
}

/// Rows that the CPU sums up in one go: fixed, so that float sums do not depend on the threads. Bands
/// on a GPU are multiples of it, so that each begins where a binding may.
const STEP: usize = 64;

/// Which way an image is summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Axis {
    /// Along each row
    X,
    /// Down each column
    Y,
    /// Both: a summed-area table
    #[default]
    Both,
}

/// Numbers on a grid: rows from the top, channels interleaved.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid<T> {
    /// Pixels a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Numbers a pixel.
    pub channels: usize,
    /// `height * width * channels` numbers.
    pub values: Vec<T>,
}

/// A table of sums, each channel for itself. Integers wrap around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table<T> {
    /// Which way.
    pub axis: Axis,
    /// Whether a sum includes the pixel's own row and column.
    pub inclusive: bool,
    /// The type of numbers and sums.
    pub number: std::marker::PhantomData<T>,
}

impl<T: super::Scannable> Kernel for Table<T> {
    type In = Grid<T>;
    type Out = Grid<T>;
    const NAME: &'static str = "table";

    fn cpu(&self, input: &Grid<T>) -> Result<Grid<T>> {
        let mut grid = input.clone();
        if grid.values.is_empty() {
            return Ok(grid);
        }
        if self.axis != Axis::Y {
            let rows = grid.values.par_chunks_mut(grid.width * grid.channels);
            rows.for_each(|row| sum_row(row, grid.channels, self.inclusive));
        }
        if self.axis != Axis::X {
            sum_columns(&mut grid, self.inclusive);
        }
        Ok(grid)
    }

    fn gpu(&self, context: &Context, input: &Grid<T>) -> Result<Grid<T>> {
        let pitch = input.width * input.channels;
        let rows = (context.max_binding() as usize / 4).checked_div(pitch).unwrap_or(0);
        // One workgroup takes a channel of a row, and one invocation goes down a column, where
        // llvmpipe ends loops after 65,535 rounds.
        let groups = context.limits.folded_workgroups();
        let most = (groups as usize).checked_div(input.channels).unwrap_or(0);
        let rows = rows.min(most).min(1 << 15) / STEP * STEP;
        if T::DTYPE != Dtype::U32 || rows == 0 {
            let what = format_args!("tables of {} with rows of {pitch}", T::DTYPE);
            log::debug!("{what} are made on the CPU");
            return context.timings().time(Self::NAME, || self.cpu(input));
        }
        let data = context.upload("table", &input.values)?;
        let above = context.upload("sums above", &vec![0u32; pitch])?;
        let mut batch = context.batch();
        for first in (0..input.height).step_by(rows) {
            let height = rows.min(input.height - first);
            let bytes = (4 * first * pitch) as u64..(4 * (first + height) * pitch) as u64;
            let data = data.slice(bytes);
            let band = Band {
                width: input.width as u32,
                height: height as u32,
                channels: input.channels as u32,
                inclusive: self.inclusive.into(),
            };
            if self.axis != Axis::Y {
                let pipeline = context.pipeline(&TABLE, "rows")?;
                let pass = batch.pass("table rows", &pipeline).buffer("data", &data);
                let lines = (height * input.channels) as u64;
                pass.uniform("band", &band).dispatch(context.fold(lines)?);
            }
            if self.axis != Axis::X {
                let pipeline = context.pipeline(&TABLE, "columns")?;
                let pass = batch.pass("table columns", &pipeline).buffer("data", &data);
                let pass = pass.buffer("above", &above).uniform("band", &band);
                pass.dispatch(context.fold((pitch as u64).div_ceil(256))?);
            }
        }
        batch.run()?;
        let values = context.read(&data, input.values.len())?;
        Ok(Grid { values, ..*input })
    }
}

/// The sum of two numbers; integers wrap around.
fn add<T: super::Scannable>(a: T, b: T) -> T {
    type Sum<T> = <T as super::Scannable>::Sum;
    use super::Monoid;
    Sum::<T>::leave(Sum::<T>::join(Sum::<T>::enter(a), Sum::<T>::enter(b)))
}

fn sum_row<T: super::Scannable>(row: &mut [T], channels: usize, inclusive: bool) {
    for channel in 0..channels {
        let mut sum = T::default();
        for value in row[channel..].iter_mut().step_by(channels) {
            let before = sum;
            sum = add(sum, *value);
            *value = if inclusive { sum } else { before };
        }
    }
}

fn sum_columns<T: super::Scannable>(grid: &mut Grid<T>, inclusive: bool) {
    let pitch = grid.width * grid.channels;
    let add_row = |sums: &mut [T], row: &[T]| {
        sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum = add(*sum, value));
    };
    // Each band's column sums, then those of all bands above, then the rows.
    let mut bands: Vec<Vec<T>> = grid
        .values
        .par_chunks(STEP * pitch)
        .map(|band| {
            let mut sums = vec![T::default(); pitch];
            band.chunks_exact(pitch).for_each(|row| add_row(&mut sums, row));
            sums
        })
        .collect();
    let mut above = vec![T::default(); pitch];
    for band in &mut bands {
        let sums = std::mem::replace(band, above.clone());
        add_row(&mut above, &sums);
    }
    grid.values.par_chunks_mut(STEP * pitch).zip(bands).for_each(|(band, mut sums)| {
        for row in band.chunks_exact_mut(pitch) {
            for (value, sum) in row.iter_mut().zip(&mut sums) {
                let before = *sum;
                *sum = add(*sum, *value);
                *value = if inclusive { *sum } else { before };
            }
        }
    });
}

impl<T: Number> Table<T> {
    /// A table.
    pub fn new(axis: Axis, inclusive: bool) -> Self {
        Self { axis, inclusive, number: std::marker::PhantomData }
    }
}
