//! Memory of connected components: inputs with many runs and many components within a small limit, and tables on disk.
#![cfg(target_os = "linux")]

use std::{fs, path::Path, sync::Arc};

use gpuproc::{
    data::{
        dtype::Dtype,
        grid::{Alpha, Grid, GridType, Shape},
        noise::Noise,
        samples::Samples,
    },
    device::{Device, DeviceChoice},
    kernels::{
        filter::{Block, Filter, InputPass, Preparation, Ready},
        hysteresis::Hysteresis,
        label::Label,
    },
    util::{spill::Workspace, timings::Timings},
};

use crate::{common::works, memory_inputs::run_within_memory};

/// Writes an image of `width` x `height` bytes, which `sample` returns for x and y.
fn write_image(path: &Path, [width, height]: [u32; 2], sample: impl Fn(u32, u32) -> bool) {
    let samples = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let samples: Vec<u8> = samples.map(|(x, y)| u8::from(sample(x, y)) * 200).collect();
    image::save_buffer(path, &samples, width, height, image::ColorType::L8).unwrap();
}

/// Runs `line` within `mib` MiB and 64 MB, and checks that the outputs are those of a run with much memory.
fn assert_bounded(folder: &Path, mib: u64, line: &str, outputs: &[&str]) {
    let run = run_within_memory(folder, mib, line);
    assert_eq!(run.code, Some(0), "{line}: {run:?}");
    let read = |name: &&str| fs::read(folder.join(name)).unwrap();
    let bounded: Vec<_> = outputs.iter().map(read).collect();
    works(folder, &line.replacen(' ', " --device cpu --max-memory 4G ", 1));
    for (name, bounded) in outputs.iter().zip(bounded) {
        assert!(read(name) == bounded, "{line}: {name} differs");
    }
}

/// The provisional numbers of 12 million runs take 48 MB.
#[test]
fn combs_are_labelled_within_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let size = [6000, 4000];
    write_image(&folder.join("comb.tif"), size, |x, y| x % 2 == 0 || y + 1 == size[1]);
    assert_bounded(folder, 4, "label comb.tif -o o.png", &["o.png"]);
}

#[test]
fn combs_are_thresholded_by_hysteresis_within_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_image(&folder.join("comb.tif"), [4000, 2400], |x, y| x % 2 == 0 || y == 2399);
    for line in [
        "threshold comb.tif -o o.png --hysteresis 10,20",
        "threshold comb.tif --value 10 -o o.png --then threshold --hysteresis 10,20",
    ] {
        assert_bounded(folder, 4, line, &["o.png"]);
    }
}

#[test]
fn tables_of_many_components_stay_within_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let is_dot = |x: u32, y: u32| x.is_multiple_of(2) && y.is_multiple_of(2);
    write_image(&folder.join("dots.tif"), [1600, 1600], is_dot);
    for line in [
        "label dots.tif -o o.tif --table t.csv",
        "label dots.tif -o o.tif --table t.csv --intensity dots.tif",
        "threshold dots.tif --value 10 -o o.tif --then label --table t.csv",
    ] {
        assert_bounded(folder, 4, line, &["o.tif", "t.csv"]);
    }
    let dots =
        |at: usize| [at % 160, at / 160 % 160, at / 25_600].iter().all(|at| at.is_multiple_of(2));
    let dots: Vec<u8> = (0..160 * 160 * 200).map(|at| u8::from(dots(at))).collect();
    fs::write(folder.join("v_160x160x200_uint8.raw"), dots).unwrap();
    let line = "label v_160x160x200_uint8.raw o.nrrd -n 6 --table t.csv";
    assert_bounded(folder, 8, line, &["o.nrrd", "t.csv"]);
    let line = "label v_160x160x200_uint8.raw o.zarr -n 6 --table t.csv";
    assert_bounded(folder, 64, line, &["t.csv"]);
}

/// Rows of one sample: no table has more than a few bytes for each.
#[test]
fn narrow_images_take_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_image(&folder.join("tall.png"), [1, 2_000_000], |_, y| y % 2 == 0);
    for line in ["label tall.png -o o.tif", "threshold tall.png -o o.tif --hysteresis 10,20"] {
        assert_bounded(folder, 4, line, &["o.tif"]);
    }
}

/// A pixel of several channels needs as much for runs and labels as one of one channel.
#[test]
fn channels_of_a_pixel_share_its_runs() {
    let label = Label::new(None, 2, false, 1).unwrap();
    let filters: [&dyn Filter; 2] = [&label, &Hysteresis::new([0.2, 0.5])];
    for dtype in [Dtype::U8, Dtype::U16, Dtype::F32] {
        for filter in filters {
            let pixel = |channels: usize| {
                let shape = Shape { dims: [640, 480, 1], channels };
                channels as u64 * filter.cost(GridType { shape, dtype }).working
            };
            for channels in [3, 4] {
                // The samples themselves and a copy, keys of 4 bytes, and a remainder.
                let more = 2 * (channels - 1) * dtype.size() + 4 + channels;
                let [grey, colour] = [1, channels].map(pixel);
                assert!(colour > grey, "{dtype} {filter:?} {channels}: {grey} {colour}");
                assert!(colour <= grey + more as u64, "{dtype} {filter:?} {channels}: {colour}");
            }
        }
    }
}

/// The result of `filter` for `grid` in blocks of `step` rows or slices, or of the whole grid.
fn in_blocks(
    filter: &dyn Filter,
    workspace: Workspace,
    grid: &Grid,
    step: Option<usize>,
) -> Vec<u8> {
    let device = Device::new(&DeviceChoice::Cpu, Arc::new(Timings::new(false)));
    let axis = if grid.dims[2] == 1 { 1 } else { 2 };
    let len = grid.dims[axis];
    let (step, stride) = (step.unwrap_or(len), grid.samples.len() / len);
    let block = |start: usize| {
        let range = start..len.min(start + step);
        let mut dims = grid.dims;
        dims[axis] = range.len();
        let samples = grid.samples.part(range.start * stride..range.end * stride);
        (range, Grid { dims, samples, ..*grid })
    };
    let starts = (0..len).step_by(step);
    let input = grid.grid_type().into();
    let pass: InputPass<'_> =
        &mut |consume| starts.clone().try_for_each(|start| consume(&block(start).1));
    let own = Preparation { device: &device, input: &input, axis, workspace, pass };
    let Ready { filter, result } = filter.prepare(own).unwrap();
    if let Some(result) = result {
        return result.as_bytes().to_vec();
    }
    let prepared = filter.expect("components are found first");
    let result = starts.flat_map(|start| {
        let (range, part) = block(start);
        let block = Block { axis, shape: grid.shape(), input: range.clone(), output: range };
        prepared.run(&device, &part, &block).unwrap().as_bytes().to_vec()
    });
    result.collect()
}

/// Without memory for tables, each band of slices goes to temporary files, and the results are the same.
#[test]
fn results_do_not_depend_on_bands_and_on_tables_on_disk() {
    let none = Workspace { bytes: 0, create_file: tempfile::tempfile };
    for dims in [[700, 600, 1], [90, 60, 80]] {
        let len = dims.iter().product();
        let bytes = Noise(5).bytes(len);
        for (connectivity, share) in [(0, 100), (1, 100), (0, 130)] {
            let samples = bytes.iter().map(|&byte| if byte < share { 1 + byte % 2 } else { 0 });
            let samples = Samples::U8(samples.collect());
            let grid = Grid { dims, channels: 1, alpha: Alpha::None, samples };
            let axes = if dims[2] == 1 { 2 } else { 3 };
            let connectivity = [[4, 8], [6, 26]][axes - 2][connectivity];
            for (is_equal, min_size) in [(false, 1), (true, 1), (false, 3), (true, 4)] {
                let label = Label::new(Some(connectivity), axes, is_equal, min_size).unwrap();
                let whole = in_blocks(&label, Workspace::UNLIMITED, &grid, None);
                for step in [None, Some(1), Some(7), Some(300)] {
                    let found = in_blocks(&label, none, &grid, step);
                    assert!(found == whole, "{label:?} {dims:?} {share}, blocks of {step:?}");
                }
            }
            let hysteresis = Hysteresis::new([0.5, 1.5]);
            let whole = in_blocks(&hysteresis, Workspace::UNLIMITED, &grid, None);
            for step in [None, Some(7)] {
                assert!(
                    in_blocks(&hysteresis, none, &grid, step) == whole,
                    "{dims:?} {share} {step:?}"
                );
            }
        }
    }
}

/// The memory that a filter holds throughout counts: the means of a plane take 24 bytes for each line.
#[test]
fn held_bytes_count() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("v_1000x1000x4_uint8.raw"), vec![7; 4_000_000]).unwrap();
    let line = "project v_1000x1000x4_uint8.raw o.nii --method mean --axis z";
    let run = run_within_memory(folder, 24, line);
    assert!(run.code == Some(4) && run.stderr.contains("needs at least"), "{run:?}");
    assert_eq!(run_within_memory(folder, 64, line).code, Some(0));
}
