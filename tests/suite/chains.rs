//! Chains: commands joined by `--then` give the bytes of separate runs through lossless files.

use std::{fs, path::Path, sync::Arc};

use gpuproc::{
    data::{
        dtype::Dtype,
        grid::{Alpha, Grid, Shape},
        noise::Noise,
        samples::Samples,
    },
    device::Device,
    kernels::{
        blur::{Blur, Edge},
        chain::Chain,
        filter::{Block, Filter},
        morph::{ElementShape, Morph, Operation},
        resize::{Interpolation, Resize, Size},
        threshold::{Classify, Threshold},
    },
    util::timings::Timings,
};
use image::ColorType;
use predicates::str::contains;

use crate::{
    blur_reference::{box_blur, gaussian},
    common::{device_names, gpuproc, outcome, run, works},
};

/// A folder with volumes of several types, and images with and without alpha.
pub fn inputs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut noise = Noise(5);
    // Smooth in x, so that Otsu's thresholds and openings leave something.
    let mut ramps = |len: usize, max: f32| -> Vec<f32> {
        let value = |at: usize| (at % 8) as f32 / 8.0 * 0.7;
        (0..len).map(|at| (value(at) + (noise.next() >> 40) as f32 / 6e7) * max).collect()
    };
    let len = 8 * 7 * 90;
    let bytes: Vec<u8> = ramps(len, 255.0).iter().map(|&v| v as u8).collect();
    fs::write(folder.path().join("a_8x7x90_uint8.raw"), bytes).unwrap();
    let words: Vec<u8> =
        ramps(len, 60_000.0).iter().flat_map(|&v| (v as u16).to_le_bytes()).collect();
    fs::write(folder.path().join("b_8x7x90_uint16.raw"), words).unwrap();
    let floats: Vec<u8> = ramps(len, 9.0).iter().flat_map(|v| (v - 3.0).to_le_bytes()).collect();
    fs::write(folder.path().join("c_8x7x90_float32.raw"), floats).unwrap();
    for (name, stem) in [("a", "uint8"), ("b", "uint16"), ("c", "float32")] {
        works(folder.path(), &format!("blur {name}_8x7x90_{stem}.raw {name}.nrrd -s 0"));
    }
    for (name, channels, dtype, alpha) in [
        ("grey.png", 1, Dtype::U8, None),
        ("deep.png", 3, Dtype::U16, None),
        ("alpha.png", 4, Dtype::U8, Some(0)),
        // Hardly translucent: a blur makes it opaque.
        ("almost.png", 4, Dtype::U8, Some(254)),
        ("deep-alpha.png", 4, Dtype::U16, Some(3)),
    ] {
        let pixels = noise.bytes(30 * 1500 * channels * dtype.size());
        write_image(&folder.path().join(name), (channels, dtype), pixels, alpha);
    }
    folder
}

/// Writes an image of 30 x 1500 pixels, of which one has this alpha, and all others are opaque.
fn write_image(path: &Path, (channels, dtype): (usize, Dtype), pixels: Vec<u8>, alpha: Option<u8>) {
    let mut samples = Samples::zeros(dtype, 30 * 1500 * channels).unwrap();
    samples.as_bytes_mut().copy_from_slice(&pixels);
    if let Some(alpha) = alpha {
        let size = dtype.size();
        for (at, pixel) in samples.as_bytes_mut().chunks_mut(channels * size).enumerate() {
            pixel[(channels - 1) * size..].fill(if at == 700 { alpha } else { 255 });
        }
    }
    let color = match (channels, dtype) {
        (1, _) => ColorType::L8,
        (3, _) => ColorType::Rgb16,
        (_, Dtype::U8) => ColorType::Rgba8,
        _ => ColorType::Rgba16,
    };
    image::save_buffer(path, samples.as_bytes(), 30, 1500, color).unwrap();
}

/// Runs `steps` one by one through files `N.EXT`, and as a chain with each of `options`, and compares the results.
fn assert_same_as_separate(folder: &Path, input: &str, steps: &[&str], options: &[&str]) {
    let mut from = input.to_owned();
    for (number, step) in steps[..steps.len() - 1].iter().enumerate() {
        from = run_step(folder, &from, step, number);
    }
    assert_same_as_last(folder, input, steps, &from, options);
}

/// Runs the step from `from` to a file `NUMBER.EXT`, whose name is returned.
fn run_step(folder: &Path, from: &str, step: &str, number: usize) -> String {
    let (command, flags) = step.split_once(' ').unwrap_or((step, ""));
    let to = format!("{number}.{}", from.rsplit('.').next().unwrap());
    works(folder, &format!("{command} {from} {to} {flags}"));
    to
}

/// As [`assert_same_as_separate`], where `from` is the result of all steps but the last one.
fn assert_same_as_last(folder: &Path, input: &str, steps: &[&str], from: &str, options: &[&str]) {
    let extension = input.rsplit('.').next().unwrap();
    let expected = run_step(folder, from, steps[steps.len() - 1], steps.len());
    let expected = fs::read(folder.join(expected)).unwrap();
    for option in options {
        let chain = in_chain(input, steps, &format!("chain.{extension}"));
        works(folder, &format!("{option} {chain}"));
        let found = fs::read(folder.join(format!("chain.{extension}"))).unwrap();
        assert!(found == expected, "{option} {chain}: differs from separate runs");
    }
}

/// The command line that runs `steps` in a chain.
fn in_chain(input: &str, steps: &[&str], output: &str) -> String {
    let (command, flags) = steps[0].split_once(' ').unwrap_or((steps[0], ""));
    let first = format!("{command} {input} {flags}");
    [&[&*first], &steps[1..]].concat().join(" --then ") + " -o " + output
}

const VOLUME_STEPS: [&str; 9] = [
    "blur -s 1.2,0.8,1.5",
    "blur -r 2 --method box -n 2 --edge zero",
    "blur -s 1 --edge wrap",
    "morph --op open -r 1,1,2",
    "threshold --otsu",
    "threshold --value 2,100",
    "resize --scale 0.5,0.7,1.3 --filter linear",
    "project --method mean --axis x",
    "project",
];

/// The volumes, and the flag with which their filters run in blocks.
const MEMORY: [(&str, &str); 3] = [
    ("a.nrrd", "--max-memory 31k"),
    ("b.nrrd", "--max-memory 62k --threads 2"),
    ("c.nrrd", "--max-memory 110k"),
];

#[test]
fn pairs_on_volumes_equal_separate_runs() {
    let folder = inputs();
    let folder = folder.path();
    for (kind, (input, memory)) in MEMORY.into_iter().enumerate() {
        for (number, first) in VOLUME_STEPS.into_iter().enumerate() {
            let from = run_step(folder, input, first, 0);
            for (at, second) in VOLUME_STEPS.into_iter().enumerate() {
                // A third of the pairs, others for each type of samples.
                if (kind + number + at) % 3 > 0 {
                    continue;
                }
                let is_class = first.starts_with("threshold") || first.starts_with("project");
                if is_class && second == "threshold --otsu" {
                    // A mask of one class has no threshold.
                    continue;
                }
                // Wrapping needs all slices, and sums of two projections take more memory than the input.
                let needs_all = first.contains("wrap") || second.contains("wrap");
                let needs_all = needs_all || first.contains("mean") && second == first;
                let options = ["", memory];
                let options = &options[..if needs_all { 1 } else { 2 }];
                assert_same_as_last(folder, input, &[first, second], &from, options);
            }
        }
    }
}

#[test]
fn pairs_on_images_equal_separate_runs() {
    let folder = inputs();
    let folder = folder.path();
    let steps = [
        "blur -s 1.5",
        "blur -s 1 --edge zero",
        "blur -s 1.5 --linear --edge mirror",
        "blur -s 1 --edge wrap",
        "morph --op close -r 2",
        "threshold --otsu",
        "resize --size 23x900",
        "resize --scale 0.6 --filter area --linear",
    ];
    let inputs = ["grey.png", "deep.png", "alpha.png", "almost.png", "deep-alpha.png"];
    for (kind, input) in inputs.into_iter().enumerate() {
        for (number, first) in steps.into_iter().enumerate() {
            let from = run_step(folder, input, first, 0);
            for (at, second) in steps.into_iter().enumerate() {
                // A third of the pairs, others for each kind of image.
                let is_left_out = (kind + number + at) % 3 > 0;
                if is_left_out || first.starts_with("threshold") && second == first {
                    continue;
                }
                let limit = match input {
                    "grey.png" => "--max-memory 250k",
                    _ => "--max-memory 600k",
                };
                // Wrapping needs the whole image, and so does alpha.
                let needs_all =
                    first.contains("wrap") || second.contains("wrap") || input.contains("al");
                let options: &[&str] = if needs_all { &[""] } else { &["", limit] };
                assert_same_as_last(folder, input, &[first, second], &from, options);
            }
        }
    }
}

#[test]
fn large_images_are_filtered_in_blocks() {
    let folder = inputs();
    let line = "blur grey.png -v --max-memory 250k --then morph --op open -o o.png";
    let stderr = works(folder.path(), line);
    assert!(stderr.contains("grey.png: in blocks of "), "{stderr}");
    let (code, stderr) = run(folder.path(), &line.replace("grey", "deep-alpha"));
    assert!(code == 4 && stderr.contains("filter it step by step: it has alpha"), "{stderr}");
}

#[test]
fn long_chains_equal_separate_runs() {
    let folder = inputs();
    let folder = folder.path();
    for steps in [
        &["blur -s 1.5", "threshold --otsu", "morph --op open"][..],
        &[
            "morph --op tophat -r 2",
            "blur -s 1",
            "resize --scale 1,1,0.8",
            "threshold --otsu",
            "blur",
        ],
        &["resize --scale 0.6", "blur -s 1,1,0", "project --method std", "threshold --otsu"],
        &["threshold --value 50", "blur -s 2", "threshold --value 100", "morph --op close"],
        &["blur -s 1.5", "threshold --otsu", "morph --op open", "label --min-size 3"],
        &["median -r 1", "gradient --float", "threshold --hysteresis 1,9", "label -n 6"],
        &["unsharp -s 2", "threshold --local mean --window 5", "label --equal", "blur -s 1"],
        &["blur -s 1", "project --axis y", "resize --scale 2 --filter nearest", "blur -s 1"],
    ] {
        for (input, memory) in [
            ("a.nrrd", "--max-memory 110k"),
            ("b.nrrd", "--max-memory 130k --threads 2"),
            ("c.nrrd", "--max-memory 200k"),
        ] {
            assert_same_as_separate(folder, input, steps, &["", "--threads 3", memory]);
        }
    }
    let steps = ["resize --scale 1.5", "blur -s 2", "blur -s 1", "morph --op erode"];
    assert_same_as_separate(folder, "grey.png", &steps, &["", "--max-memory 300k"]);
    assert_same_as_separate(folder, "almost.png", &steps, &[""]);
}

#[test]
fn devices_give_the_same_bytes() {
    let folder = inputs();
    let steps = "blur a.nrrd -s 1.5 --then threshold --otsu --then morph --op open --then resize --scale 0.5";
    let mut results = Vec::new();
    for device in device_names() {
        let mut command = gpuproc();
        let words = ["--device", device].into_iter().chain(steps.split(' '));
        command.current_dir(&folder).args(words).args(["-o", "o.nrrd"]).assert().success();
        results.push(fs::read(folder.path().join("o.nrrd")).unwrap());
    }
    assert!(results.iter().all(|result| *result == results[0]));
}

/// The blocks of a chain are those of its result as a whole, wherever they are cut.
#[test]
fn blocks_are_parts_of_the_whole() {
    let device = Device::new(&"cpu".parse().unwrap(), Arc::new(Timings::new(false)));
    let zero = Blur { edge: Edge::Constant(0.0), ..gaussian(1.0) };
    let scale = |factor| {
        let size = Size::Scale([factor; 3]);
        Resize { size, axes: 3, filter: Interpolation::Cubic, linear: false, shrink_on_load: false }
    };
    let make = |number: usize| -> Box<dyn Filter> {
        match number {
            0 => Box::new(zero.clone()),
            1 => Box::new(box_blur(2)),
            2 => Box::new(Morph::new(Operation::BlackHat, ElementShape::Ball, [2, 2, 2])),
            3 => Box::new(scale(0.7)),
            4 => Box::new(scale(1.6)),
            5 => Box::new(Blur { edge: Edge::Wrap, ..gaussian(0.7) }),
            _ => Box::new(Classify::from(Threshold::Values(vec![80.0, 130.0]))),
        }
    };
    let mut noise = Noise(9);
    let mut below = |end: u64| (noise.next() % end) as usize;
    for round in 0..60 {
        let steps: Vec<usize> = (0..2 + below(3)).map(|_| below(7)).collect();
        let filters = steps.iter().map(|&step| Arc::from(make(step))).collect();
        let chain = Chain { steps: filters, before: None };
        let dims = [9, 8, 20 + below(9)];
        let samples = Samples::U8(Noise(round).bytes(dims.iter().product()));
        let grid = Grid { dims, channels: 1, alpha: Alpha::None, samples };
        let whole = chain.apply(&device, &grid).unwrap().samples;
        let output = chain.describe(grid.grid_type().into()).unwrap().grid;
        assert_eq!((output.dtype, output.shape.samples()), (whole.dtype(), whole.len()));
        let row = |dtype: Dtype, shape: Shape| shape.samples() / shape.dims[2] * dtype.size();
        let mut joined = Vec::new();
        let mut first = 0;
        while first < output.shape.dims[2] {
            let last = (first + 1 + below(7)).min(output.shape.dims[2]);
            let input = chain.reach(2, &(first..last), grid.shape()).input().unwrap();
            let slice = dims[0] * dims[1];
            let part = Grid {
                dims: [dims[0], dims[1], input.len()],
                samples: grid.samples.part(input.start * slice..input.end * slice),
                ..grid
            };
            let block = Block { axis: 2, shape: grid.shape(), input, output: first..last };
            let result = chain.run(&device, &part, &block).unwrap();
            assert_eq!(result.as_bytes().len(), (last - first) * row(output.dtype, output.shape));
            joined.extend_from_slice(result.as_bytes());
            first = last;
        }
        assert!(joined == whole.as_bytes(), "{steps:?} on {dims:?}");
    }
}

#[test]
fn shards_stores_and_batches_hold_for_the_whole_chain() {
    let folder = inputs();
    let folder = folder.path();
    let chain = "blur a.nrrd -s 1.5 --then threshold --otsu --then morph --op open -r 2 -o";
    works(folder, &format!("{chain} whole_8x7x90_uint8.raw"));
    let whole = fs::read(folder.join("whole_8x7x90_uint8.raw")).unwrap();
    for shard in ["2/3", "0/3", "1/3"] {
        works(folder, &format!("{chain} parts_8x7x90_uint8.raw --shard {shard}"));
    }
    assert!(fs::read(folder.join("parts_8x7x90_uint8.raw")).unwrap() == whole);
    works(folder, &format!("{chain} store.zarr --chunks 8x8x8"));
    works(folder, "blur store.zarr --level 0 copy_8x7x90_uint8.raw -s 0");
    assert!(fs::read(folder.join("copy_8x7x90_uint8.raw")).unwrap() == whole);
    // Masks of JPEG files become PNG, also if the last step is not the one that makes them.
    works(folder, "blur grey.png photo.jpg -s 1");
    let batch = "blur grey.png deep.png photo.jpg --then threshold --otsu --then morph --op erode -o out/ --resume";
    works(folder, batch);
    let names = ["out/grey.png", "out/deep.png", "out/photo.png"];
    let times = || names.map(|name| fs::metadata(folder.join(name)).unwrap().modified().unwrap());
    let before = times();
    works(folder, batch);
    assert_eq!(times(), before);
    works(folder, &batch.replace("--otsu", "--value 9"));
    assert_ne!(times(), before);
}

#[test]
fn wrong_chains_are_refused_before_anything_runs() {
    let folder = inputs();
    let folder = folder.path();
    for (line, message) in [
        ("blur a.nrrd --then", "--then: expected a command, as --then threshold --otsu"),
        ("blur a.nrrd --then -q -o o.nrrd", "--then: expected a command"),
        ("blur a.nrrd --then frobnicate -o o.nrrd", "there is no command `frobnicate`"),
        ("blur a.nrrd --then sort -o o.nrrd", "`sort` cannot be a step of a chain"),
        ("info a.nrrd --then blur -o o.nrrd", "`info` cannot be before --then"),
        (
            "blur a.nrrd --then mesh --iso 9 --then blur -o o.nrrd",
            "`mesh` cannot be before --then: its result is not an image or volume",
        ),
        ("histogram a.nrrd --then blur -o o.nrrd", "`histogram` cannot be before --then"),
        ("blur a.nrrd --then threshold", "the following required arguments were not provided"),
        ("blur a.nrrd --then morph --op open", "name an output: -o FILE, or -o DIR/"),
        ("blur --then morph --op open -o o.nrrd", "required arguments were not provided: <FILE>"),
        (
            "blur a.nrrd --then morph b.nrrd --op open --then blur -o o.nrrd",
            "step 2, morph: a file name is for the first or the last step",
        ),
        (
            "blur a.nrrd --then morph --op open -o b.nrrd --then blur -o o.nrrd",
            "step 2, morph: --output is for the first or the last step",
        ),
        (
            "blur grey.png --quality 80 --then blur -o o.jpg --quality 90",
            "the argument '--quality <Q>' cannot be used multiple times",
        ),
        ("blur -q a.nrrd --then blur -q -o o.nrrd", "'--quiet' cannot be used multiple times"),
        ("blur a.nrrd --then blur --sigma x -o o.nrrd", "invalid value 'x' for '--sigma"),
        ("blur grey.png --then project --axis z -o o.png", "--axis z is for volumes"),
    ] {
        let (code, stderr) = run(folder, line);
        assert_eq!(code, 2, "{line}: {stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains(message), "{line}: {stderr}");
        let written = ["o.nrrd", "o.png", "o.jpg"].iter().any(|name| folder.join(name).exists());
        assert!(!written, "{line}");
    }
    // A resized projection is not a plane any more.
    let line = "project a.nrrd --then resize --scale 3 --then blur -o o.png";
    let (code, stderr) = run(folder, line);
    assert!(code == 2 && stderr.contains("the result is a volume"), "{stderr}");
}

#[test]
fn flags_of_the_chain_may_be_in_the_first_or_the_last_step() {
    let folder = inputs();
    let folder = folder.path();
    works(folder, "blur a_8x7x90_uint8.raw --then morph --op erode expected.nrrd");
    for line in [
        "blur a_8x7x90_uint8.raw --then morph --op erode -o found.nrrd",
        "blur a_8x7x90_uint8.raw found.nrrd --then morph --op erode",
        "-q blur a_8x7x90_uint8.raw --dims 8x7x90 --then morph --op erode -o found.nrrd",
        "blur a_8x7x90_uint8.raw --then morph --op erode --dtype u8 -o found.nrrd --no-progress",
        "blur --header-bytes=0 -- a_8x7x90_uint8.raw --then morph --op erode -- found.nrrd",
    ] {
        works(folder, line);
        let [found, expected] = ["found", "expected"]
            .map(|name| fs::read(folder.join(format!("{name}.nrrd"))).unwrap());
        assert!(found == expected, "{line}");
        fs::remove_file(folder.join("found.nrrd")).unwrap();
    }
    // Flags from the environment are those of each step that has them.
    works(folder, "blur grey.png --edge mirror --then blur -s 1 --edge mirror -o mirror.png");
    let mut command = gpuproc();
    command.current_dir(folder).env("GPUPROC_FLAGS", "--edge mirror --compression 1");
    let line = "blur grey.png --then blur -s 1 -o flags.png";
    command.args(line.split(' ')).assert().success();
    let [one, other] =
        ["mirror", "flags"].map(|name| fs::read(folder.join(format!("{name}.png"))).unwrap());
    assert!(one == other);
    let line = "blur grey.png -s 3 --then threshold --otsu -o o.png --dry-run";
    outcome(folder, line)
        .success()
        .stdout(contains("grey.png -> o.png: blur sigma 3,3, radius 9,9, then threshold otsu 1"));
}

#[test]
fn timings_show_each_step() {
    let folder = inputs();
    let line = "blur a.nrrd --then threshold --otsu --then blur -s 1 --timings -o o.nrrd";
    let stderr = works(folder.path(), line);
    for step in ["step 1: blur", "step 2: threshold", "step 3: blur", "read", "write"] {
        assert!(stderr.contains(step), "{stderr}");
    }
    let json = "blur grey.png --then threshold --otsu --timings=json -o o.png";
    let stderr = works(folder.path(), json);
    assert!(stderr.contains(r#""steps":[{"blur""#), "{stderr}");
    assert!(stderr.contains("step 2: threshold"), "{stderr}");
}

#[test]
fn a_server_runs_chains() {
    let folder = inputs();
    let folder = folder.path();
    works(folder, "blur a.nrrd --then morph --op erode -o expected.nrrd");
    let jobs = concat!(
        r#"{"arguments": ["blur", "a.nrrd", "--then", "morph", "--op", "erode", "-o", "o.nrrd"]}"#,
        "\n",
        r#"{"arguments": ["blur", "a.nrrd", "--then", "sort"]}"#,
        "\n"
    );
    let mut command = gpuproc();
    command.current_dir(folder).args(["--device", "cpu", "serve"]).write_stdin(jobs);
    let answers = command.assert().success().get_output().stdout.clone();
    let answers = String::from_utf8(answers).unwrap();
    assert!(answers.contains(r#""code":0"#) && answers.contains("`sort` cannot be"), "{answers}");
    let [found, expected] =
        ["o", "expected"].map(|name| fs::read(folder.join(format!("{name}.nrrd"))).unwrap());
    assert!(found == expected);
}
