//! Batches: outputs, messages and their order do not depend on the number of threads, and memory stays within its
//! limit.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

#[cfg(target_os = "linux")]
use crate::common::measured;
use crate::common::{Noise, device_names, program};

fn command(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(program());
    command.current_dir(folder).env_remove("GPUPROC_DEVICE").args(line.split(' '));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn save_noise_image(path: &Path, side: u32, channels: usize, noise: &mut Noise) {
    let colour = if channels == 3 { image::ColorType::Rgb8 } else { image::ColorType::Rgba8 };
    let pixels = noise.bytes((side * side) as usize * channels);
    image::save_buffer(path, &pixels, side, side, colour).unwrap();
}

/// Writes twenty inputs and returns their names. Large images come first, so that later ones finish before them. Some
/// have alpha, which JPEG drops with a warning, and some are broken or missing.
fn write_mixed_inputs(folder: &Path) -> Vec<String> {
    let mut noise = Noise(3);
    let input = |i: usize| {
        let name = format!("{i:02}.{}", if i % 4 == 1 { "jpg" } else { "png" });
        let path = folder.join(&name);
        match i % 4 {
            0 => save_noise_image(&path, 600 - 30 * i as u32, 3, &mut noise),
            // The content is PNG. The extension only sets the format of the output.
            1 => {
                let png = folder.join("alpha.png");
                save_noise_image(&png, 60, 4, &mut noise);
                fs::rename(png, path).unwrap();
            }
            2 => save_noise_image(&path, 30 + i as u32, 4, &mut noise),
            _ => fs::write(path, "no picture").unwrap(),
        }
        name
    };
    let mut inputs: Vec<String> = (0..20).map(input).collect();
    inputs[13] = "missing.png".into();
    inputs
}

#[test]
fn blur_outputs_and_messages_do_not_depend_on_thread_count() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = write_mixed_inputs(folder.path());
    let run = |flags: &str| -> Output {
        let mut command = command(folder.path(), &format!("blur --out-dir {flags} --sigma 2"));
        command.args(&inputs).output().unwrap()
    };
    let expected = run("1 --threads 1 --device cpu");
    let messages = String::from_utf8(expected.stderr.clone()).unwrap();
    assert_eq!(expected.status.code(), Some(3), "{messages}");
    // Warnings and errors come in the order of the inputs, then the summary.
    let mentioned_names: Vec<&str> = messages
        .lines()
        .map(|line| inputs.iter().find(|name| line.contains(*name)).map_or("", String::as_str))
        .collect();
    let expected_names: Vec<&str> = (0..20)
        .filter(|i| matches!(i % 4, 1 | 3))
        .map(|i| inputs[i].as_str())
        .chain([""])
        .collect();
    assert_eq!(mentioned_names, expected_names, "{messages}");
    assert!(messages.ends_with("6 of 20 files failed\n"), "{messages}");
    for device in device_names() {
        for threads in [2, 3, 8, 40] {
            let out = format!("{device}{threads}");
            let found = run(&format!("{out} --threads {threads} --device {device}"));
            let stderr = String::from_utf8(found.stderr).unwrap();
            let stderr = stderr.replace(&format!("{out}/"), "1/");
            assert_eq!((found.status.code(), stderr), (Some(3), messages.clone()), "{out}");
            for name in &inputs {
                let read = |out: &str| fs::read(folder.path().join(out).join(name)).ok();
                assert!(read("1") == read(&out), "{out} {name}");
            }
        }
    }
}

/// Volumes are meshed in parallel, and two of them fail.
#[test]
fn meshes_do_not_depend_on_thread_count() {
    let folder = tempfile::tempdir().unwrap();
    let mut noise = Noise(6);
    let volume = |i: usize| {
        let side = 28 - 2 * i;
        let name = format!("{i}_{side}x{side}x{}_uint8.raw", side + i);
        let mut samples = noise.bytes(side * side * (side + i));
        if i % 4 == 2 {
            samples.pop();
        }
        fs::write(folder.path().join(&name), samples).unwrap();
        name
    };
    let volumes: Vec<String> = (0..8).map(volume).collect();
    let run = |flags: &str| -> Output {
        let line = format!("mesh --iso 200 --out-dir {flags}");
        command(folder.path(), &line).args(&volumes).output().unwrap()
    };
    for steps in ["", " --smooth 2 --simplify 0.5"] {
        let expected = run(&format!("1 --threads 1 --device cpu{steps}"));
        let messages = String::from_utf8(expected.stderr).unwrap();
        assert_eq!(expected.status.code(), Some(3), "{messages}");
        let names_broken_inputs =
            |line: &str| [&volumes[2], &volumes[6]].map(|name| line.contains(name));
        let errors: Vec<_> = messages.lines().filter(|line| line.contains("error")).collect();
        assert_eq!(names_broken_inputs(errors[0]), [true, false], "{messages}");
        assert_eq!(names_broken_inputs(errors[1]), [false, true], "{messages}");
        for threads in [2, 3, 8] {
            let found = run(&format!("{threads} --threads {threads} --device cpu{steps}"));
            let stderr = String::from_utf8(found.stderr).unwrap();
            let stderr = stderr.replace(&format!("{threads}/"), "1/");
            assert_eq!((found.status.code(), stderr), (Some(3), messages.clone()), "{threads}");
            let written = |out: &str| -> Vec<Vec<u8>> {
                let name = |volume: &String| volume.replace(".raw", ".ply");
                let read = |name| fs::read(folder.path().join(out).join(name)).ok();
                volumes.iter().map(name).filter_map(read).collect()
            };
            let (one, many) = (written("1"), written(&threads.to_string()));
            assert!(one == many && one.len() == 6, "{threads}{steps}");
        }
        for out in ["1", "2", "3", "8"] {
            fs::remove_dir_all(folder.path().join(out)).unwrap();
        }
    }
}

/// Without a limit, 12 images of 6 MiB on 8 threads take about 300 MiB.
#[cfg(target_os = "linux")]
#[test]
fn batch_stays_within_max_memory() {
    let folder = tempfile::tempdir().unwrap();
    save_noise_image(&folder.path().join("a.png"), 1448, 3, &mut Noise(4));
    let inputs: Vec<String> = (0..12).map(|i| format!("{i}.png")).collect();
    for input in &inputs {
        fs::hard_link(folder.path().join("a.png"), folder.path().join(input)).unwrap();
    }
    let peak = |memory: &str| {
        let line = "blur --out-dir out --sigma 2 --linear --threads 8 --device cpu --max-memory";
        let mut command = command(folder.path(), line);
        let mut child = command.arg(memory).args(&inputs).spawn().unwrap();
        let (status, kilobytes) = crate::common::peak_memory(&mut child);
        assert!(status.success(), "{memory}");
        kilobytes >> 10
    };
    let (bounded, free) = (peak("100M"), peak("4G"));
    println!("{bounded} MiB with a limit of 100 MiB, {free} MiB with a limit of 4096 MiB");
    // Every command takes at most the limit plus 64 MiB.
    assert!(bounded <= 164, "{bounded} MiB");
    assert!(free > 2 * bounded, "{free} MiB: the limit has no effect");
}

/// Only the name, the size and a few numbers of each file stay in memory.
#[cfg(target_os = "linux")]
#[test]
fn memory_does_not_grow_with_file_count() {
    // Enough files to fill the output buffers.
    const FEW: usize = 500;
    const MANY: usize = 2500;
    let folder = tempfile::tempdir().unwrap();
    let pixels = Noise(5).bytes(512);
    image::save_buffer(folder.path().join("a.pgm"), &pixels[..64], 8, 8, image::ColorType::L8)
        .unwrap();
    fs::write(folder.path().join("a.raw"), &pixels).unwrap();
    let name = |kind: &str, i: usize| match kind {
        "a.pgm" => format!("{i:05}.pgm"),
        _ => format!("v{i:05}_8x8x8_uint8.raw"),
    };
    for (kind, i) in ["a.pgm", "a.raw"].iter().flat_map(|kind| (0..MANY).map(move |i| (kind, i))) {
        fs::hard_link(folder.path().join(kind), folder.path().join(name(kind, i))).unwrap();
    }
    for (line, kind) in [
        ("blur --out-dir out --sigma 2", "a.pgm"),
        ("histogram -o h.csv", "a.pgm"),
        ("histogram -o h.json", "a.pgm"),
        ("histogram --format json -o each/", "a.pgm"),
        ("mesh --out-dir out --iso 100", "a.raw"),
        ("info", "a.pgm"),
    ] {
        let peak = |count: usize| {
            let names: Vec<String> = (0..count).map(|i| name(kind, i)).collect();
            // The memory of threads is not that of files.
            let flags = ["-q", "--threads", "2"];
            let words = line.split(' ').chain(flags).chain(names.iter().map(String::as_str));
            let run = measured(folder.path(), words);
            assert_eq!(run.code, Some(0), "{line}: {run:?}");
            run.peak_kib << 10
        };
        let (few, many) = (peak(FEW), peak(MANY));
        let per_file = many.saturating_sub(few) / (MANY - FEW) as u64;
        println!("{line}: {few} bytes for {FEW} files and {per_file} for each further file");
        // While the command line is parsed, each word takes about 300 bytes, and texts of `info` take up to 256 KiB. A hash
        // table has 33 bytes for the name of a file and for that of its output, and three times as many while it grows.
        assert!(per_file < 1024, "{line}: {per_file} bytes for each further file");
    }
}
