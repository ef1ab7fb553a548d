//! Comparison of results with those of the CPU (`--check`).

use crate::{
    data::{dtype::Dtype, samples::Samples},
    kernels::{
        scan::{Scannable, Scanned},
        sort::{Records, Sortable},
    },
};

/// Whether all 8-bit samples differ by at most `DISTANCE`.
pub fn are_close<const DISTANCE: u8>(expected: &Samples, found: &Samples) -> bool {
    match (expected, found) {
        (Samples::U8(a), Samples::U8(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.abs_diff(*b) <= DISTANCE)
        }
        _ => false,
    }
}

/// Whether integers are equal, and floats differ by at most 1e-5 of the largest sum so far: a baseline adds them in
/// another order.
pub fn same_sums<T: Scannable>(expected: &Scanned<T>, found: &Scanned<T>) -> bool {
    let wide = |number: T| match T::DTYPE {
        Dtype::F32 => f64::from(bytemuck::cast::<T, f32>(number)),
        _ => bytemuck::cast::<T, f64>(number),
    };
    let (expected, found) = (&expected.values, &found.values);
    if !T::DTYPE.is_float() || expected.len() != found.len() {
        return expected == found;
    }
    let mut largest: f64 = 0.0;
    expected.iter().zip(found).all(|(&expected, &found)| {
        let (expected, found) = (wide(expected), wide(found));
        largest = largest.max(expected.abs());
        (expected - found).abs() <= 1e-5 * largest || expected == found || expected.is_nan()
    })
}

/// Whether the bits of all keys and values are equal.
pub fn same_records<T: Sortable>(expected: &Records<T>, found: &Records<T>) -> bool {
    let [a, b] = [expected, found].map(|records| bytemuck::cast_slice::<T, u8>(&records.keys));
    expected.payload == found.payload && a == b
}

/// Whether the corners of triangles are equal, apart from rounding.
#[allow(clippy::ptr_arg, reason = "the type of a comparison names the kernel's output")]
pub fn same_corners(expected: &Vec<[f32; 3]>, found: &Vec<[f32; 3]>) -> bool {
    let near = |(a, b): (&[f32; 3], &[f32; 3])| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-4);
    expected.len() == found.len() && expected.iter().zip(found).all(near)
}
