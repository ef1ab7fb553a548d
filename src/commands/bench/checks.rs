//! References for the results of all cases, for `--check`. None uses the code of the kernels.

use super::case::wrong;
use crate::{
    data::{dtype::Dtype, grid::Grid, samples::Samples, surface::Surface, volume::Volume},
    device::Kernel,
    for_samples,
    kernels::{
        baselines::{ClassicCubes, CountRgba, DirectBlur},
        blur::Blur,
        copy::Copy,
        histogram::{Component, Counts, Histogram, Pixels},
        mesh::{MarchingCubes, Slab, table},
        scan::{Scan, Scannable, Scanned},
        sort::{Records, Sort, Sortable},
    },
    util::{error::Result, parallel::Parallel},
};

fn require(is_right: bool, otherwise: &str) -> Result<()> {
    if is_right { Ok(()) } else { Err(wrong(otherwise)) }
}

/// Compares all samples with those of the CPU, and twenty pixels with direct sums in double precision.
pub fn blur(blur: &Blur, image: &Grid, found: &Samples) -> Result<()> {
    require(are_close(found, &blur.cpu(image)?, 0), "the blur differs from the CPU's")?;
    let value = |samples: &Samples, i: usize| -> f64 {
        for_samples!(samples, values => {
            #[allow(clippy::unnecessary_cast, clippy::cast_lossless)]
            (values[i] as f64)
        })
    };
    let ([width, height, _], step) = (image.dims, image.channels);
    // Colours are weighted by alpha, so of images with alpha, only alpha itself is a plain sum.
    let channels = if image.has_alpha() { step - 1..step } else { 0..step };
    let half = blur.axes[0].half_weights(blur.method);
    let reach = half.len() as isize - 1;
    let taps = || (-reach..=reach).map(|by| (by, half[by.unsigned_abs()]));
    let total: f64 = taps().map(|(_, weight)| weight).sum();
    let unit = if image.samples.dtype() == Dtype::F32 { 1e-3 } else { 1.0 };
    for number in 0..20 {
        let at = number * (width * height).saturating_sub(1) / 19;
        for c in channels.clone() {
            let inside = |at: usize, by: isize, len: usize| {
                (at as isize + by).clamp(0, len as isize - 1) as usize
            };
            let row = |by: isize| -> f64 {
                let start = inside(at / width, by, height) * width;
                let sample = |by| (start + inside(at % width, by, width)) * step + c;
                taps().map(|(by, weight)| weight * value(&image.samples, sample(by))).sum()
            };
            let expected = taps().map(|(by, weight)| weight * row(by)).sum::<f64>() / total / total;
            let off = (value(found, at * step + c) - expected).abs();
            // A difference of NaN, which float samples may give, passes.
            if off > unit * if unit < 1.0 { expected.abs().max(1.0) } else { 1.0 } {
                return Err(wrong(format_args!("pixel {at} is off by {off}")));
            }
        }
    }
    Ok(())
}

/// Compares all samples with those of a separable blur, whose rounding between the axes may change 8-bit samples by
/// one.
pub fn direct_blur(kernel: &DirectBlur, image: &Grid, found: &Samples) -> Result<()> {
    require(are_close(found, &kernel.cpu(image)?, 1), "the blur differs from a separable one")
}

/// Whether 8-bit samples differ by at most `tolerance`, and all others are equal. NaNs count as equal.
fn are_close(a: &Samples, b: &Samples, tolerance: u8) -> bool {
    match (a, b) {
        (Samples::U8(a), Samples::U8(b)) => {
            a.iter().zip(b).all(|(a, b)| a.abs_diff(*b) <= tolerance)
        }
        (Samples::U16(a), Samples::U16(b)) => a == b,
        (Samples::F32(a), Samples::F32(b)) => {
            a.iter().zip(b).all(|(a, b)| a == b || a.is_nan() && b.is_nan())
        }
        _ => false,
    }
}

/// Compares with counts made sample by sample from the edges of the bins.
pub fn histogram(kernel: &Histogram, pixels: &Pixels, found: &Vec<Counts>) -> Result<()> {
    let bins = &kernel.bins;
    let edges: Vec<f64> = (0..=bins.count).map(|bin| bins.edge(bin)).collect();
    for (component, found) in kernel.components.iter().zip(found) {
        let mut expected = vec![0u64; bins.count];
        match (component, &pixels.samples) {
            (Component::Channel(channel), samples) => for_samples!(samples, values => {
                for value in values.iter().skip(*channel).step_by(pixels.channels) {
                    #[allow(clippy::cast_lossless, clippy::unnecessary_cast)]
                    let value = *value as f64;
                    if value >= bins.low && value <= bins.high {
                        let bin = edges.partition_point(|&edge| edge <= value) - 1;
                        expected[bin.min(bins.count - 1)] += 1;
                    }
                }
            }),
            (Component::Luma(_), Samples::U8(values)) if bins.count == 256 => {
                for pixel in values.chunks_exact(pixels.channels) {
                    let [r, g, b] = [0, 1, 2].map(|c| u64::from(pixel[c]));
                    let luma = (2126 * r + 7152 * g + 722 * b) * 256 / 2_550_000;
                    expected[luma.min(255) as usize] += 1;
                }
            }
            // For other luminances, only the number of pixels is compared.
            _ => expected.clone_from(&found.bins),
        }
        require(expected == found.bins, "a bin of the histogram is wrong")?;
        require(found.total() == pixels.len() as u64, "not every pixel is counted once")?;
    }
    Ok(())
}

/// Compares with the counts of the CPU.
pub fn published_histogram(
    kernel: &CountRgba,
    pixels: &Pixels,
    found: &Vec<Vec<u64>>,
) -> Result<()> {
    require(*found == kernel.cpu(pixels)?, "a bin of the histogram is wrong")
}

/// Compares with serial sums. Integers must be equal; floats, summed in f64, may differ by 1e-5 of the sum of their
/// magnitudes.
pub fn scan<T: Scannable>(scan: &Scan<T>, numbers: &[T], found: &Scanned<T>) -> Result<()> {
    let (mut exact, mut sum, mut size) = (T::default(), 0.0, 0.0);
    let wide = |number: T| match T::DTYPE {
        Dtype::F32 => f64::from(bytemuck::cast::<T, f32>(number)),
        _ => bytemuck::cast::<T, f64>(number),
    };
    for (place, (&number, &found)) in numbers.iter().zip(&found.values).enumerate() {
        let is_right = match T::DTYPE.is_float() {
            // If the reference is NaN, any result passes.
            true => (wide(found) - sum).abs() <= 1e-5 * size || sum.is_nan(),
            false => found == exact,
        };
        if !is_right {
            return Err(wrong(format_args!("sum {place} is {found}")));
        }
        match T::DTYPE.is_float() {
            true => (sum, size) = (sum + wide(number), size + wide(number).abs()),
            false => exact = scan.op.join(exact, number),
        }
    }
    require(found.values.len() == numbers.len(), "there are more or fewer sums than numbers")
}

/// Compares the keys with those sorted by the standard library. Payloads, which count up, show whether the sort is
/// stable.
pub fn sort<T: Sortable>(_: &Sort<T>, old: &Records<T>, new: &Records<T>) -> Result<()> {
    let keys =
        |records: &Records<T>| records.keys.iter().map(|key| key.to_key()).collect::<Vec<_>>();
    let (before, after) = (keys(old), keys(new));
    let mut sorted = before.clone();
    sorted.sort_unstable();
    require(sorted == after, "the keys are not in order")?;
    let Some(payload) = &new.payload else { return Ok(()) };
    let moved = || payload.iter().zip(&after).map(|(&from, key)| (key, from));
    require(moved().is_sorted_by(|a, b| a < b), "equal keys do not keep their order")?;
    require(
        moved().all(|(key, from)| before[from as usize] == *key),
        "a payload does not belong to its key",
    )
}

/// Compares with the surface of the CPU, and with the numbers of crossed edges and of triangles.
pub fn mesh(kernel: &MarchingCubes, slab: &Slab, found: &Surface) -> Result<()> {
    let [vertices, triangles] = naive_counts(&slab.volume, kernel.iso);
    let counts_are_right = found.positions.len() == vertices && found.triangles.len() == triangles;
    require(counts_are_right, "the number of vertices or triangles is wrong")?;
    require(*found == kernel.cpu(slab)?, "the surface differs from the CPU's")
}

/// Compares with the corners of the triangles of the CPU's surface.
#[allow(clippy::ptr_arg, reason = "the type of a check names the kernel's output")]
pub fn classic_mesh(kernel: &ClassicCubes, slab: &Slab, found: &Vec<[f32; 3]>) -> Result<()> {
    let expected = kernel.cpu(slab)?;
    let near = |(a, b): (&[f32; 3], &[f32; 3])| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-4);
    let is_same = found.len() == expected.len() && found.iter().zip(&expected).all(near);
    require(is_same, "the triangles are not those of the CPU's surface")
}

/// Crossed edges and triangles, counted sample by sample.
fn naive_counts(volume: &Volume, iso: f64) -> [usize; 2] {
    let Volume { dims: [nx, ny, nz], samples } = volume;
    for_samples!(samples, values => {
        let is_inside = |x: usize, y: usize, z: usize| {
            #[allow(clippy::unnecessary_cast)]
            (values[(z * ny + y) * nx + x] as f64 > iso)
        };
        let count = |z: usize| {
            let (mut vertices, mut triangles) = (0, 0);
            for (y, x) in (0..*ny).flat_map(|y| (0..*nx).map(move |x| (y, x))) {
                let ends = [(x + 1, y, z), (x, y + 1, z), (x, y, z + 1)];
                let held = ends.iter().filter(|(x, y, z)| x < nx && y < ny && z < nz);
                let here = is_inside(x, y, z);
                vertices += held.filter(|&&(x, y, z)| is_inside(x, y, z) != here).count();
                if x + 1 < *nx && y + 1 < *ny && z + 1 < *nz {
                    let case = (0..8).fold(0, |case, corner| {
                        let [i, j, k] = table::CORNERS[corner].map(usize::from);
                        case | usize::from(is_inside(x + i, y + j, z + k)) << corner
                    });
                    triangles += table::CASES[case].triangles.len();
                }
            }
            [vertices, triangles]
        };
        (0..*nz).par_map(count).iter().fold([0; 2], |a, b| [a[0] + b[0], a[1] + b[1]])
    })
}

/// Compares the copy with its source.
pub fn copy(_: &Copy, words: &[u32], found: &Vec<u32>) -> Result<()> {
    require(words == found, "the copy differs from its source")
}
