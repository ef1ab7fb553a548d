//! Runs the fuzz targets (`tests/fuzz`) for a short time on mutations of their seeds.

use std::{env, fs, path::Path, time::Instant};

use crate::{
    common::Noise,
    fuzz_targets::{TARGETS, Target},
};

/// Applies one to four random mutations like those of a fuzzer.
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
            // Extreme numbers, such as the maximum of a type.
            5 if at < end => {
                let edge = [0, 0xff, 0x7f, 0x80][noise.next() as usize % 4];
                bytes[at..end.min(at + 4)].fill(edge);
            }
            _ if at < bytes.len() => bytes[at] ^= 1 << (noise.next() % 8),
            _ => {}
        }
    }
}

/// Runs a target on its seeds and on mutations of them: `mutations` reproducible ones, or random ones for
/// `GPUPROC_SOAK_SECONDS`.
fn run_target(name: &str, mutations: usize) {
    let target =
        TARGETS.iter().find(|target| target.name == name).expect("no target has this name");
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
        // A failure prints its input, so that it can become a test.
        let run = std::panic::catch_unwind(|| (target.body)(&bytes));
        assert!(run.is_ok(), "{name} fails on {}", bytes.escape_ascii());
    }
}

#[test]
fn arguments_are_read_or_rejected() {
    run_target("arguments", 500);
}

#[test]
fn text_numbers_parse_as_in_rust() {
    run_target("text", 1500);
}

#[test]
fn npy_headers_are_read_or_rejected() {
    run_target("npy", 500);
}

#[test]
fn png_encoder_round_trips() {
    run_target("png", 500);
}

#[test]
fn jpeg_files_are_decoded_or_rejected() {
    run_target("jpeg", 500);
}

#[test]
fn exr_files_decode_like_the_exr_crate_or_are_rejected() {
    run_target("exr", 500);
}

#[test]
fn tiff_files_are_read_or_rejected() {
    run_target("tiff", 1500);
}

#[test]
fn images_are_blurred_or_rejected() {
    run_target("blur", 500);
}

#[test]
fn image_histograms_are_computed_or_rejected() {
    run_target("histogram", 500);
}

#[test]
fn arrays_are_scanned_and_sorted_or_rejected() {
    run_target("scan", 500);
}

#[test]
fn raw_volumes_are_meshed_or_rejected() {
    run_target("mesh", 500);
}

#[test]
fn volumes_are_read_or_rejected() {
    run_target("volume", 1500);
}

#[test]
fn part_files_are_merged_or_rejected() {
    run_target("part", 300);
}

#[test]
fn zarr_stores_are_read_or_rejected() {
    run_target("zarr", 500);
}

/// If `GPUPROC_FUZZ_SEEDS` names a folder, the seeds of each target are written there as the first corpus of libFuzzer.
#[test]
fn every_target_has_seeds() {
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
