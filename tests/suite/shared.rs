//! Batches that the CPU and GPUs share: the outputs do not depend on which device processes a file.

use std::{fs, path::Path};

use crate::common::{Noise, adapter, gpuproc};

const FILES: usize = 5;

/// JPEG files of different sizes and qualities.
fn write_photos(folder: &Path) {
    let mut noise = Noise(5);
    for (i, quality) in (0..FILES).zip([60u8, 75, 85, 95, 98]) {
        let (width, height) = (75 + 31 * i as u32, 140 - 9 * i as u32);
        let smooth = |j: usize| ((j / 3 % width as usize) + j / 400) as u8;
        let pixels: Vec<u8> = (0..(width * height * 3) as usize)
            .map(|j| smooth(j) ^ (noise.next() as u8 >> 5))
            .collect();
        let picture = folder.join(format!("{i}.ppm"));
        image::save_buffer(&picture, &pixels, width, height, image::ColorType::Rgb8).unwrap();
        let line = format!("blur {i}.ppm {i}.jpg --sigma 0 --quality {quality} --device cpu");
        gpuproc().current_dir(folder).args(line.split(' ')).assert().success();
    }
}

/// The contents of the output files, and the numbers of files processed on the GPU and on the CPU.
type RunResult = (Vec<Vec<u8>>, usize, usize);

/// Runs `line`, with the files on the devices of `pattern` in turn: `0` is the GPU, `1` the CPU.
fn run(folder: &Path, line: &str, pattern: &str) -> RunResult {
    let output = folder.join("out");
    fs::create_dir(&output).unwrap();
    let names = (0..FILES).map(|i| format!("{i}.jpg"));
    let mut command = gpuproc();
    command.current_dir(folder).args(line.split(' ')).args(names);
    command.args(["--timings=json"]).env_remove("GPUPROC_DEVICE");
    command.env("GPUPROC_TEST_AUTO", "software").env("GPUPROC_TEST_SHARE", pattern);
    let stderr = command.assert().success().get_output().stderr.clone();
    let timings: serde_json::Value = serde_json::from_slice(&stderr).unwrap();
    let count = |name: &str, clock: &str| {
        let stages = timings["stages"].as_array().unwrap().iter();
        let found = stages.filter(|stage| stage["stage"] == name && stage["clock"] == clock);
        found.map(|stage| stage["count"].as_u64().unwrap() as usize).sum::<usize>()
    };
    let (gpu, cpu) = (count("jpeg pixels", "gpu"), count(line.split(' ').next().unwrap(), "wall"));
    let mut files: Vec<_> =
        fs::read_dir(&output).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let files = files.iter().map(|file| fs::read(file).unwrap()).collect();
    fs::remove_dir_all(&output).unwrap();
    (files, gpu, cpu)
}

#[test]
fn outputs_are_independent_of_the_device_of_each_file() {
    if adapter().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    write_photos(folder.path());
    for line in [
        "blur --out-dir out --sigma 3",
        "blur --out-dir out --method box --radius 5 --optimize",
        "histogram -o out/h.csv",
    ] {
        let (expected, gpu, cpu) = run(folder.path(), line, "1");
        assert_eq!((gpu, cpu), (0, FILES), "{line}");
        assert!(!expected.is_empty() && expected.iter().all(|file| file.len() > 500), "{line}");
        for pattern in ["0", "01", "11100"] {
            let (files, gpu, cpu) = run(folder.path(), line, pattern);
            // The scheduler indexes the pattern by the number of remaining files.
            let is_on_cpu = |left: &usize| pattern.as_bytes()[left % pattern.len()] == b'1';
            let on_cpu = (1..=FILES).filter(is_on_cpu).count();
            assert_eq!((gpu, cpu), (FILES - on_cpu, on_cpu), "{line} {pattern}");
            assert!(files == expected, "{line} {pattern}");
        }
    }
}

/// Four contexts of one device simulate four GPUs.
#[test]
fn several_gpus_write_the_same_bytes_as_one() {
    if adapter().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    write_photos(folder.path());
    let run = |device: &str, gpus: &str| {
        let mut command = gpuproc();
        command.current_dir(folder.path()).env("GPUPROC_TEST_GPUS", gpus);
        command.args(["histogram", "0.jpg", "1.jpg", "2.jpg", "3.jpg", "4.jpg", "-o", "-"]);
        command.args(["--timings=json", "--device", device]);
        let output = command.assert().success().get_output().clone();
        let timings: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
        (output.stdout, timings["device"].as_str().unwrap().to_owned())
    };
    let (one, name) = run("gpu", "");
    let (four, names) = run("all", "4");
    assert_eq!(names, format!("4 x {name}"));
    assert!(one == four && one.len() > 1000);
}

/// All float images are processed by one device, because the last bits of the results depend on the device.
#[test]
fn float_images_are_processed_by_one_device() {
    if adapter().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for i in 0..FILES {
        let samples: Vec<f32> = (0..48).map(|j| (i * j) as f32 / 7.0).collect();
        let bytes = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect::<Vec<u8>>();
        let header = b"PF\n4 4\n-1.0\n".to_vec();
        // The content determines the format, not the extension.
        fs::write(folder.path().join(format!("{i}.jpg")), [header, bytes].concat()).unwrap();
    }
    let line = "blur --out-dir out --sigma 1 --format pfm";
    let (files, _, cpu) = run(folder.path(), line, "1");
    assert_eq!((files.len(), cpu), (FILES, 0));
}
