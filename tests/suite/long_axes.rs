//! Inputs with very many rows or slices of a few samples: memory for each row is bounded, and sizes that are too large
//! are refused before anything is allocated for them.
#![cfg(target_os = "linux")]

use std::{fs, path::Path, process::Command};

use crate::{
    common::{measured, program},
    inputs::{png_chunk, zlib},
    memory_inputs::run_within_memory,
    road_facts::with_input,
};

/// A PNG of one pixel a row, whose file has `stored` rows.
fn tall_png(height: u32, stored: usize) -> Vec<u8> {
    let mut header = [1u32.to_be_bytes(), height.to_be_bytes()].concat();
    header.extend([8, 0, 0, 0, 0]);
    let rows = zlib(&[0, 7].repeat(stored));
    let chunks = [png_chunk(b"IHDR", &header), png_chunk(b"IDAT", &rows), png_chunk(b"IEND", &[])];
    [b"\x89PNG\r\n\x1a\n".to_vec(), chunks.concat()].concat()
}

/// A Zarr array of 10^9 slices of one sample, none of which is stored.
fn write_long_zarr(folder: &Path) {
    fs::create_dir(folder.join("long.zarr")).unwrap();
    let header = serde_json::json!({
        "zarr_format": 3, "node_type": "array", "shape": [1_000_000_000, 1, 1],
        "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1_000_000, 1, 1]}},
        "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}],
    });
    fs::write(folder.join("long.zarr/zarr.json"), header.to_string()).unwrap();
}

/// Runs `command` with `mib` MiB of address space. It must end with `code` and, if that is an error, with one line.
fn assert_ends(folder: &Path, mib: u32, command: &str, code: i32, part: &str) {
    let limit = mib * 1024;
    let script = format!("ulimit -v {limit}; exec \"$0\" --threads 2 --device cpu -q {command}");
    let mut run = Command::new("sh");
    run.current_dir(folder).arg("-c").arg(script).arg(program()).env_remove("RUST_BACKTRACE");
    let output = run.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{command}: {stderr}");
    assert!(code == 0 || stderr.lines().count() == 1, "{command}: {stderr}");
    assert!(stderr.contains(part), "{command}: {stderr}");
}

/// Tables of all rows, of 8 bytes each, would take 17 GB.
#[test]
fn resize_makes_no_table_of_all_rows() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("claim.png"), tall_png(i32::MAX as u32, 100)).unwrap();
    fs::write(folder.join("tall.png"), tall_png(300_000, 300_000)).unwrap();
    write_long_zarr(folder);
    for flags in ["--max 100", "--scale 50%", "--max 9 --filter area"] {
        let command = format!("--max-memory 64M resize claim.png o.png {flags}");
        assert_ends(folder, 700, &command, 4, "claim.png");
    }
    for flags in ["--max 100", "--scale 50%", "--scale 200%", "--max 9 --filter area"] {
        let command = format!("--max-memory 64M resize tall.png o.png {flags}");
        assert_ends(folder, 700, &command, 0, "");
    }
    let command = "--max-memory 64M resize long.zarr o.nrrd --max 100";
    assert_ends(folder, 700, command, 4, "long.zarr");
    // A result that no memory can hold, with a limit that allows it.
    let command = "--max-memory 999999G resize tall.png o.bmp --size 16000000x16000000";
    assert_ends(folder, 700, command, 1, "out of memory");
}

/// Rows and slices of one sample.
#[test]
fn memory_for_each_row_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("tall.png"), tall_png(400_000, 400_000)).unwrap();
    fs::write(folder.join("deep_1x1x50000_uint8.raw"), vec![7; 50_000]).unwrap();
    fs::write(folder.join("high_1x50000x1_uint8.raw"), vec![7; 50_000]).unwrap();
    for input in ["tall.png", "deep_1x1x50000_uint8.raw", "high_1x50000x1_uint8.raw"] {
        let output = if input == "tall.png" { "o.tif" } else { "o.nrrd" };
        for command in [
            "blur",
            "blur --method box --radius 2",
            "blur --linear",
            "math 255-a",
            "median",
            "morph --op dilate",
            "threshold --value 3",
            "threshold --local sauvola",
            "gradient",
            "unsharp",
            "flip --axis y",
            "pad --by 1",
            "convert --dtype u16",
            "resize --scale 50%",
            "resize --scale 200% --filter area",
            "project --axis y",
        ] {
            let line = with_input(command, &format!("{input} {output}"));
            let run = run_within_memory(folder, 8, line.trim_end());
            assert_eq!(run.code, Some(0), "{line}: {run:?}");
        }
    }
    let run = measured(folder, "--max-memory 8M histogram tall.png -o o.csv".split(' '));
    assert!(run.code == Some(0) && run.peak <= 72, "{run:?}");
}
