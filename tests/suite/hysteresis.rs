//! Thresholds by hysteresis: whole grids and blocks against a naive reference, and the command on every kind of input.

use std::{fs, sync::Arc};

use gpuproc::{
    data::{
        grid::{Alpha, Grid},
        noise::Noise,
        samples::Samples,
    },
    device::{Device, DeviceChoice},
    kernels::{
        chain::apply,
        filter::{Block, Filter, InputPass, Preparation},
        hysteresis::Hysteresis,
    },
    util::{spill::Workspace, timings::Timings},
};

use crate::common::{assert_batch_runs, assert_volume_runs, finite_types, numbers, run};

/// Fills the mask from each sample above `high`, over neighbours above `low`.
fn reference([low, high]: [f64; 2], grid: &Grid) -> Vec<u8> {
    let (values, [nx, ny, nz]) = (numbers(&grid.samples), grid.dims);
    let mut mask = vec![0; values.len()];
    let mut open: Vec<usize> = (0..values.len()).filter(|&at| values[at] > high).collect();
    while let Some(at) = open.pop() {
        if mask[at] == 255 || values[at] <= low {
            continue;
        }
        mask[at] = 255;
        let (x, y, z) = (at % nx, at / nx % ny, at / nx / ny);
        let neighbours = [
            (x > 0).then(|| at - 1),
            (x + 1 < nx).then(|| at + 1),
            (y > 0).then(|| at - nx),
            (y + 1 < ny).then(|| at + nx),
            (z > 0).then(|| at - nx * ny),
            (z + 1 < nz).then(|| at + nx * ny),
        ];
        open.extend(neighbours.into_iter().flatten());
    }
    mask
}

/// The mask of blocks of `step` rows or slices.
fn in_blocks(filter: &Hysteresis, device: &Device, grid: &Grid, step: usize) -> Vec<u8> {
    let axis = if grid.dims[2] == 1 { 1 } else { 2 };
    let len = grid.dims[axis];
    let stride = grid.samples.len() / len;
    let block = |start: usize| {
        let end = len.min(start + step);
        let mut dims = grid.dims;
        dims[axis] = end - start;
        (
            start..end,
            Grid { dims, samples: grid.samples.part(start * stride..end * stride), ..*grid },
        )
    };
    let starts = (0..len).step_by(step);
    let (input, shape) = (grid.grid_type().into(), grid.shape());
    let pass: InputPass<'_> =
        &mut |consume| starts.clone().try_for_each(|start| consume(&block(start).1));
    let workspace = Workspace::UNLIMITED;
    let own = Preparation { device, input: &input, axis, workspace, pass };
    let prepared = filter.prepare(own).unwrap().filter.expect("components are found first");
    let mask = starts.flat_map(|start| {
        let (range, part) = block(start);
        let block = Block { axis, shape, input: range.clone(), output: range };
        prepared.run(device, &part, &block).unwrap().as_bytes().to_vec()
    });
    mask.collect()
}

#[test]
fn every_sample_type_and_block_equals_the_reference() {
    let device = Device::new(&DeviceChoice::Cpu, Arc::new(Timings::new(false)));
    for (dims, len) in [([13, 6, 5], 390), ([13, 30, 1], 390), ([1, 1, 1], 1), ([1, 9, 1], 9)] {
        for samples in finite_types(len) {
            let grid = Grid { dims, channels: 1, alpha: Alpha::None, samples };
            let mut sorted = numbers(&grid.samples);
            sorted.sort_by(f64::total_cmp);
            for [low, high] in [[0.45, 0.97], [0.6, 0.99], [0.3, 0.3], [0.9, 1.0]] {
                let value = |share: f64| sorted[(share * (len - 1) as f64) as usize];
                let thresholds = [low, high].map(value);
                let filter = Hysteresis::new(thresholds);
                let expected = reference(thresholds, &grid);
                let found = apply(&filter, &device, &grid).unwrap().samples;
                assert!(found == Samples::U8(expected.clone()), "{dims:?} {thresholds:?}");
                for step in [1, 2, 7, 30] {
                    let found = in_blocks(&filter, &device, &grid, step);
                    assert!(found == expected, "{dims:?} {thresholds:?} {step}");
                }
            }
        }
    }
}

#[test]
fn thresholds_images_volumes_stores_batches_and_shards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let samples: Vec<u8> = Noise(5).bytes(12 * 10 * 9);
    fs::write(path.join("v_12x10x9_uint8.raw"), &samples).unwrap();
    let grid = Grid { dims: [12, 10, 9], channels: 1, alpha: Alpha::None, samples: samples.into() };
    let expected = reference([150.5, 250.0], &grid);
    let flags = "--hysteresis 150.5,250";
    assert_volume_runs(path, ["threshold", flags, "30K"], &expected);
    let image = Grid { dims: [12, 90, 1], ..grid };
    let expected = reference([150.5, 250.0], &image);
    assert_batch_runs(path, ["threshold", flags], &expected);
    for (flags, expected) in [
        ("--hysteresis 5", "two ascending"),
        ("--hysteresis 5,4", "two ascending"),
        ("--hysteresis 1,2,3", "two ascending"),
        ("--hysteresis 1,x", "two ascending"),
        ("--value 5,4", "--value: expected 1 to 255 ascending numbers"),
        ("--value nan", "--value: expected 1 to 255 ascending numbers"),
        ("--local mean --window 5,4,5", "--window is 4, expected an odd number from 1 to 20001"),
        ("--local sauvola --range 0", "--range is 0, expected a number above 0"),
    ] {
        let (code, message) = run(path, &format!("threshold v_12x10x9_uint8.raw o.raw {flags}"));
        assert_eq!((code, message.contains(expected)), (2, true), "{flags}: {message}");
    }
}
