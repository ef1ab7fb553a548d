//! Summed-area tables.

use crate::{
    kernels::scan::{
        Monoid, Scannable,
        table::{Axis, BAND_ROWS, Table},
    },
    util::{memory, parallel::Parallel},
};

/// Replaces the numbers of `table` by their sums along `axis`.
pub fn sum_table<T: Scannable>(table: &mut Table<T>, axis: Axis, inclusive: bool) {
    if table.values.is_empty() {
        return;
    }
    if axis != Axis::Y {
        let rows = table.values.chunks_mut(table.width * table.channels);
        rows.par_each(|row| sum_row(row, table.channels, inclusive));
    }
    if axis != Axis::X {
        sum_columns(table, inclusive);
    }
}

fn add<T: Scannable>(a: T, b: T) -> T {
    T::Sum::from_value(T::Sum::join(T::Sum::to_value(a), T::Sum::to_value(b)))
}

fn sum_row<T: Scannable>(row: &mut [T], channels: usize, inclusive: bool) {
    for channel in 0..channels {
        let mut sum = T::default();
        for value in row[channel..].iter_mut().step_by(channels) {
            let before = sum;
            sum = add(sum, *value);
            *value = if inclusive { sum } else { before };
        }
    }
}

/// Sums the columns of each band, accumulates these sums over the bands, then scans the rows of each band.
fn sum_columns<T: Scannable>(table: &mut Table<T>, inclusive: bool) {
    let pitch = table.width * table.channels;
    let add_row = |sums: &mut [T], row: &[T]| {
        sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum = add(*sum, value));
    };
    let band_sums = |band: &[T]| {
        let mut sums = memory::filled(T::default(), pitch);
        band.chunks_exact(pitch).for_each(|row| add_row(&mut sums, row));
        sums
    };
    let mut bands = table.values.chunks(BAND_ROWS * pitch).par_map(band_sums);
    let mut above = memory::filled(T::default(), pitch);
    for band in &mut bands {
        let sums = std::mem::replace(band, memory::collected(above.iter().copied()));
        add_row(&mut above, &sums);
    }
    let scan_band = |(band, mut sums): (&mut [T], Vec<T>)| {
        for row in band.chunks_exact_mut(pitch) {
            for (value, sum) in row.iter_mut().zip(&mut sums) {
                let before = *sum;
                *sum = add(*sum, *value);
                *value = if inclusive { *sum } else { before };
            }
        }
    };
    table.values.chunks_mut(BAND_ROWS * pitch).zip(bands).par_each(scan_band);
}
