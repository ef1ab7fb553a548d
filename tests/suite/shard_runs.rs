//! Runs of one job in several processes.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::common::{Noise, device_names, gpuproc, program};

fn start(folder: &Path, line: &str) -> Child {
    let mut command = Command::new(program());
    command.current_dir(folder).env_remove("GPUPROC_DEVICE").args(line.split(' '));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Runs `line` for each of `count` shards, with `{}` replaced by I/N and `{i}` by I. The device `mixed` stands for all
/// devices in turn. With `with_kills`, some shards are killed and restarted, and others run twice at the same time.
pub fn run_shards(folder: &Path, line: &str, count: usize, device: &str, with_kills: bool) {
    let devices = device_names();
    let mut noise = Noise(count as u64);
    for index in 0..count {
        let device = match device {
            // A GPU takes long to start, so only the first shards use it.
            "mixed" if index < 8 => devices[index % devices.len()],
            _ => "cpu",
        };
        let line =
            line.replace("{}", &format!("{index}/{count}")).replace("{i}", &index.to_string());
        let line = format!("{line} --device {device} --threads 2 --no-progress");
        let random = if with_kills { noise.bytes(1)[0] } else { 255 };
        if random < 64 {
            let mut child = start(folder, &line);
            std::thread::sleep(Duration::from_millis(u64::from(random)));
            let _ = child.kill();
            child.wait().unwrap();
        }
        let duplicate = (random < 128).then(|| start(folder, &line));
        let mut command = gpuproc();
        command.current_dir(folder).args(line.split(' ')).assert().success();
        if let Some(mut duplicate) = duplicate {
            assert!(duplicate.wait().unwrap().success(), "{line}");
        }
    }
}

/// Writes a volume of waves with some noise, so that it has blobs and many different values.
pub fn write_volume(path: &Path, dims: [usize; 3], dtype: &str) {
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
