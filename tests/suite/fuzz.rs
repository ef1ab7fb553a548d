//! The targets of the fuzzers (`tests/fuzz`), run for a short time on mutations of their seeds, so that every run of
//! the suite covers them.

use std::{env, fs, path::Path, time::Instant};

use crate::{
    common::Noise,
    fuzz_targets::{TARGETS, Target},
};

/// Makes one or several changes of the kinds that fuzzers make.
pub fn mutate(noise: &mut Noise, bytes: &mut Vec<u8>) {
    for _ in 0..1 + noise.next() % 4 {
        let at = noise.next() as usize % (bytes.len() + 1);
        let end = at + noise.next() as usize % (bytes.len() - at + 1).min(40);
        match noise.next() % 7 {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            3 => bytes.insert(at, noise.next() as u8),
            4 => bytes.extend((0..noise.next() % 9).map(|i| i as u8 * 31)),
            // Numbers at limits, such as the greatest of a type.
            5 if at < end => {
                let edge = [0, 0xff, 0x7f, 0x80][noise.next() as usize % 4];
                bytes[at..end.min(at + 4)].fill(edge);
            }
            _ if at < bytes.len() => bytes[at] ^= 1 << (noise.next() % 8),
            _ => {}
        }
    }
}

/// Runs a target for `GPUPROC_SOAK_SECONDS`, or on its seeds and on `mutations` of them, which are always the same.
fn drive(name: &str, mutations: usize) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    let seeds = (target.seeds)();
    seeds.iter().for_each(|seed| (target.body)(seed));
    let seconds = env::var("GPUPROC_SOAK_SECONDS").ok().map(|s| s.parse::<u64>().expect("seconds"));
    let mut noise = Noise(seconds.map_or(7, |_| std::process::id().into()));
    let start = Instant::now();
    for round in 0.. {
        match seconds {
            Some(seconds) if start.elapsed().as_secs() >= seconds => break,
            None if round >= mutations => break,
            _ => {}
        }
        let mut bytes = seeds[noise.next() as usize % seeds.len()].clone();
        mutate(&mut noise, &mut bytes);
        // A failure prints its input, so that it can be kept as a test.
        let run = std::panic::catch_unwind(|| (target.body)(&bytes));
        assert!(run.is_ok(), "{name} fails on {}", bytes.escape_ascii());
    }
}

#[test]
fn arguments_are_read_or_refused() {
    drive("arguments", 500);
}

#[test]
fn texts_are_read_as_rust_reads_numbers() {
    drive("text", 1500);
}

#[test]
fn npy_headers_are_read_or_refused() {
    drive("npy", 500);
}

#[test]
fn our_png_files_hold_what_went_in() {
    drive("png", 500);
}

#[test]
fn jpeg_files_are_decoded_or_left_alone() {
    drive("jpeg", 500);
}

#[test]
fn exr_files_are_decoded_as_by_the_crate_or_refused() {
    drive("exr", 500);
}

#[test]
fn tiff_files_are_read_or_refused() {
    drive("tiff", 1500);
}

#[test]
fn any_bytes_are_blurred_or_refused() {
    drive("blur", 500);
}

#[test]
fn any_bytes_are_counted_or_refused() {
    drive("histogram", 500);
}

#[test]
fn any_bytes_are_scanned_and_sorted_or_refused() {
    drive("scan", 500);
}

#[test]
fn any_bytes_are_meshed_or_refused() {
    drive("mesh", 500);
}

#[test]
fn any_bytes_are_volumes_or_refused() {
    drive("volume", 1500);
}

#[test]
fn any_parts_are_merged_or_refused() {
    drive("part", 300);
}

#[test]
fn any_files_are_zarr_or_refused() {
    drive("zarr", 500);
}

/// Writes the seeds to `GPUPROC_FUZZ_SEEDS`, with a folder for each target, as the first corpus of libFuzzer.
#[test]
fn seeds() {
    let folder = env::var_os("GPUPROC_FUZZ_SEEDS");
    for Target { name, seeds, .. } in TARGETS {
        let seeds = seeds();
        assert!(!seeds.is_empty(), "{name}");
        let Some(folder) = folder.as_ref().map(|folder| Path::new(folder).join(name)) else {
            continue;
        };
        fs::create_dir_all(&folder).unwrap();
        for (i, seed) in seeds.iter().enumerate() {
            fs::write(folder.join(format!("seed-{i}")), seed).unwrap();
        }
    }
}
