//! Jobs in several processes: the result is that of one, byte for byte, however the work is split, on whatever devices,
//! and though shards are stopped and started twice.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::common::{Noise, gpuproc, program, subjects, works};

const COUNTS: [usize; 4] = [1, 2, 7, 64];

/// The devices that shards are given in turn: the CPU, a GPU if there is one.
fn devices() -> Vec<&'static str> {
    if subjects().is_empty() { vec!["cpu"] } else { vec!["cpu", "gpu"] }
}

fn start(folder: &Path, line: &str) -> Child {
    let mut command = Command::new(program());
    command.current_dir(folder).env_remove("GPUPROC_DEVICE").args(line.split(' '));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Runs `line` for each of `count` shards, `{}` being I/N and `{i}` I: on `device`, or where it is `mixed`, on each in
/// turn. Where `rough`, some are killed first, and others are started twice at the same time.
fn shards(folder: &Path, line: &str, count: usize, device: &str, rough: bool) {
    let devices = devices();
    let mut noise = Noise(count as u64);
    for index in 0..count {
        let device = match device {
            "mixed" => devices[index % devices.len()],
            device => device,
        };
        let line =
            line.replace("{}", &format!("{index}/{count}")).replace("{i}", &index.to_string());
        let line = format!("{line} --device {device} --threads 2 --no-progress");
        let luck = if rough { noise.bytes(1)[0] } else { 255 };
        if luck < 64 {
            let mut child = start(folder, &line);
            std::thread::sleep(Duration::from_millis(u64::from(luck)));
            let _ = child.kill();
            child.wait().unwrap();
        }
        let twin = (luck < 128).then(|| start(folder, &line));
        let mut command = gpuproc();
        command.current_dir(folder).args(line.split(' ')).assert().success();
        if let Some(mut twin) = twin {
            assert!(twin.wait().unwrap().success(), "{line}");
        }
    }
}

/// Whether the files `names` are the same in the folders `whole` and `joined`.
fn assert_same(folder: &Path, names: &[&str], what: &str) {
    for name in names {
        let read = |prefix: &str| fs::read(folder.join(format!("{prefix}.{name}"))).unwrap();
        let (whole, joined) = (read("whole"), read("joined"));
        assert!(whole == joined, "{what}: {name} of {} and {} bytes", whole.len(), joined.len());
    }
}

/// A volume of smooth noise: blobs, and more than a few values.
fn volume(path: &Path, dims: [usize; 3], dtype: &str) {
    let mut noise = Noise(5);
    let phase: Vec<f64> = noise.bytes(3).into_iter().map(f64::from).collect();
    let mut bytes = Vec::new();
    for z in 0..dims[2] {
        for y in 0..dims[1] {
            for x in 0..dims[0] {
                let wave = |at: usize, axis: usize| (at as f64 * 0.37 + phase[axis]).sin();
                let jitter = f64::from(noise.bytes(1)[0]) / 2560.0;
                let value = (wave(x, 0) + wave(y, 1) + wave(z, 2)) / 6.0 + 0.5 + jitter;
                match dtype {
                    "uint8" => bytes.push((value * 200.0) as u8),
                    "uint16" => bytes.extend(((value * 50_000.0) as u16).to_le_bytes()),
                    "int32" => bytes.extend(((value * 1e9) as i32 - 300_000_000).to_le_bytes()),
                    _ => bytes.extend((value as f32).to_le_bytes()),
                }
            }
        }
    }
    fs::write(path, bytes).unwrap();
}

const TABLES: [&str; 3] = ["csv", "json", "svg"];

#[test]
fn histograms_of_shards_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut any = 0;
    for dtype in ["uint8", "uint16", "int32", "float32"] {
        let name = format!("v_13x11x17_{dtype}.raw");
        volume(&path.join(&name), [13, 11, 17], dtype);
        let line = format!("histogram {name} --bins 50 --percentiles 1,33.3,99");
        works(path, &format!("{line} -o whole.csv -o whole.json -o whole.svg"));
        for count in COUNTS {
            let device = ["cpu", "mixed"][any % 2];
            any += 1;
            shards(path, &format!("{line} --shard {{}} -o {{i}}.part"), count, device, count == 7);
            let parts: Vec<String> = (0..count).rev().map(|i| format!("{i}.part")).collect();
            let parts = parts.join(" ");
            works(path, &format!("merge {parts} -o joined.csv -o joined.json -o joined.svg"));
            assert_same(path, &TABLES, &format!("{dtype}, {count} shards on {device}"));
        }
    }
}
