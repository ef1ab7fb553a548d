//! Levels of pyramids: their sizes for every spacing, and the means of samples of every type.

use gpuproc::data::{
    pyramid::{halved, levels},
    samples::Samples,
};

use crate::{
    common::{all_types, numbers},
    inputs::as_f64,
};

/// The samples of the next level, group by group.
fn reference(samples: &Samples, dims: [usize; 3], steps: [usize; 3], are_labels: bool) -> Vec<f64> {
    let values = as_f64(samples);
    let next: [usize; 3] = std::array::from_fn(|axis| dims[axis].div_ceil(steps[axis]));
    let mut found = Vec::new();
    for place in (0..next.iter().product())
        .map(|i: usize| [i % next[0], i / next[0] % next[1], i / next[0] / next[1]])
    {
        let range = |axis: usize| {
            place[axis] * steps[axis]..((place[axis] + 1) * steps[axis]).min(dims[axis])
        };
        let mut group = Vec::new();
        for z in range(2) {
            for y in range(1) {
                group.extend(range(0).map(|x| values[(z * dims[1] + y) * dims[0] + x]));
            }
        }
        let count = group.len() as f64;
        // The sums of integers are exact.
        let sum: f64 = group.iter().sum();
        found.push(match samples.dtype().is_float() {
            _ if are_labels => group[0],
            true => sum / count,
            false => ((2.0 * sum + count) / (2.0 * count)).floor(),
        });
    }
    found
}

#[test]
fn samples_of_the_next_level_are_means() {
    for dims in [[6, 4, 2], [7, 5, 3], [1, 1, 1], [1, 6, 5], [5, 1, 1], [9, 2, 1]] {
        for samples in all_types(dims.iter().product()) {
            for bits in 0..8 {
                let steps = [0, 1, 2].map(|axis| 1 + (bits >> axis & 1));
                for are_labels in [false, true] {
                    let found = numbers(&halved(&samples, dims, steps, are_labels).unwrap());
                    let expected = reference(&samples, dims, steps, are_labels);
                    assert_eq!(found.len(), expected.len());
                    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
                        let is_near = (found - expected).abs() <= 1e-6 * expected.abs().max(100.0)
                            && samples.dtype().is_float();
                        // Infinite samples of both signs have no mean.
                        let is_same =
                            *found == expected || is_near || found.is_nan() && expected.is_nan();
                        assert!(
                            is_same,
                            "{} {dims:?} {steps:?} at {at}: {found} {expected}",
                            samples.dtype()
                        );
                    }
                }
            }
        }
    }
}

/// Axes whose samples are at most 1.5 times as far apart as the densest are halved together, until all are small.
#[test]
fn axes_are_halved_until_samples_are_cubes() {
    let sizes = |dims: [usize; 3], spacing: [f64; 3], count: Option<usize>| {
        levels(dims, spacing, count).into_iter().map(|level| level.dims).collect::<Vec<_>>()
    };
    for (dims, spacing, count, expected) in [
        ([256, 256, 256], [1.0; 3], None, vec![[256; 3]]),
        ([257, 256, 256], [1.0; 3], None, vec![[257, 256, 256], [129, 128, 128]]),
        ([1000, 600, 3], [1.0; 3], None, vec![[1000, 600, 3], [500, 300, 2], [250, 150, 1]]),
        ([8, 8, 8], [1.0, 1.5, 1.51], Some(2), vec![[8, 8, 8], [4, 4, 8]]),
        ([8, 8, 8], [1.0, 1.0, 4.0], Some(4), vec![[8, 8, 8], [4, 4, 8], [2, 2, 8], [1, 1, 4]]),
        ([8, 8, 8], [-1.0, 1.0, -4.0], Some(2), vec![[8, 8, 8], [4, 4, 8]]),
        ([3, 1, 1], [1.0; 3], Some(9), vec![[3, 1, 1], [2, 1, 1], [1, 1, 1]]),
        // An axis of one sample does not count.
        ([1, 8, 8], [0.1, 1.0, 1.0], Some(2), vec![[1, 8, 8], [1, 4, 4]]),
        ([8, 8, 8], [f64::NAN; 3], Some(2), vec![[8; 3], [4; 3]]),
        ([500, 500, 500], [1.0; 3], Some(1), vec![[500; 3]]),
    ] {
        assert_eq!(sizes(dims, spacing, count), expected, "{dims:?} {spacing:?} {count:?}");
    }
    let all = levels([8, 8, 8], [1.0, 1.0, 4.0], Some(4));
    let factors: Vec<[usize; 3]> = all.iter().map(|level| level.factors).collect();
    assert_eq!(factors, [[1, 1, 1], [2, 2, 1], [4, 4, 1], [8, 8, 2]]);
    assert_eq!([0, 1, 2].map(|i| all[i].steps(&all[i + 1])), [[2, 2, 1], [2, 2, 1], [2, 2, 2]]);
}
