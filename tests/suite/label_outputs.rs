//! Outputs of `label`: formats that would change labels are refused on every road, and tables belong to a finished run.

use std::{fs, path::Path};

use gpuproc::{Channels, Image, Volume, WriteOptions};

use crate::common::{run, works};

/// Writes inputs whose samples alternate along every axis: each sample is a separate component.
fn write_inputs(folder: &Path) {
    let parity = |at: usize, [x, y]: [usize; 2]| (at % x + at / x % y + at / (x * y)) % 2;
    for (x, y, z) in [(20, 16, 8), (70, 60, 50), (600, 300, 1)] {
        let samples: Vec<u8> = (0..x * y * z).map(|at| parity(at, [x, y]) as u8).collect();
        fs::write(folder.join(format!("v_{x}x{y}x{z}_uint8.raw")), &samples).unwrap();
        if z == 1 {
            let header = format!("P5 {x} {y} 255\n").into_bytes();
            fs::write(folder.join("many.pgm"), [header, samples].concat()).unwrap();
        }
    }
    let pages = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/images/animation.png");
    fs::copy(pages, folder.join("pages.png")).unwrap();
}

#[test]
fn labels_are_never_clamped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write_inputs(path);
    let count = || fs::read_dir(path).unwrap().count();
    let before = count();
    for line in [
        "label v_20x16x8_uint8.raw l_20x16x8_uint8.raw -n 6 --table t.csv",
        "label v_20x16x8_uint8.raw l_20x16x8_int8.raw -n 6",
        "label v_20x16x8_uint8.raw l_20x16x8_int16.raw -n 6",
        "label v_20x16x8_uint8.raw l_20x16x8_uint8.raw -n 6 --shard 0/2 --table t.csv",
        "label v_20x16x8_uint8.raw l_20x16x8_uint8.raw.gz -n 6",
        "label v_20x16x8_uint8.raw v_20x16x8_uint8.raw -o out/{name} -n 6 --table t.csv",
        "blur v_20x16x8_uint8.raw --sigma 0 --then label -n 6 --table t.csv -o l_20x16x8_uint8.raw",
        "label v_20x16x8_uint8.raw -n 6 --then morph --op dilate -o l_20x16x8_uint8.raw",
        "label v_20x16x8_uint8.raw -n 6 --then project -o p.jpg",
        "project v_20x16x8_uint8.raw --then label --table t.csv -o p.bmp",
        "project v_20x16x8_uint8.raw --then label --table t.csv -o p.jpg",
        "project v_20x16x8_uint8.raw --axis x --then label -o p.gif",
        "label pages.png p.gif --table t.csv",
        "label pages.png p.webp",
        "label many.pgm p.jpg --table t.csv",
        "label many.pgm p.pfm --dry-run",
        // More than 65,535 labels.
        "label many.pgm p.png -n 4 --table t.csv",
        "label many.pgm p.pgm -n 4 --table t.csv",
        "project v_600x300x1_uint8.raw --then label -n 6 --table t.csv -o p.png",
        "label v_70x60x50_uint8.raw l_70x60x50_uint16.raw -n 6 --table t.csv",
        "label v_70x60x50_uint8.raw l.mrc -n 6 --table t.csv",
        "label v_70x60x50_uint8.raw l_70x60x50_float32.raw -n 6 --shard 1/2",
    ] {
        let (code, message) = run(path, line);
        assert_eq!(code, 2, "{line}: {message}");
        assert_eq!((message.lines().count(), count()), (1, before), "{line}: {message}");
    }
    // What holds them is written, with the numbers of all labels.
    for (line, name, bytes) in [
        ("label v_20x16x8_uint8.raw OUT -n 6", "l_20x16x8_uint16.raw", 2),
        ("label v_20x16x8_uint8.raw OUT -n 6", "l_20x16x8_int32.raw", 4),
        ("label v_70x60x50_uint8.raw OUT -n 6", "l_70x60x50_uint32.raw", 4),
        ("label many.pgm --then blur --sigma 0 -o OUT", "p.tif", 1),
        ("project v_600x300x1_uint8.raw --then label -n 6 -o OUT", "q.tif", 1),
        (
            "label v_20x16x8_uint8.raw -n 6 --then threshold --value 1 -o OUT",
            "m_20x16x8_uint8.raw",
            1,
        ),
        ("project v_20x16x8_uint8.raw --then label --then threshold --value 0 -o OUT", "m.jpg", 1),
    ] {
        works(path, &line.replace("OUT", name));
        let file = fs::read(path.join(name)).unwrap();
        if bytes > 1 {
            let value = |chunk: &[u8]| {
                chunk.iter().rev().fold(0, |value, &byte| value << 8 | usize::from(byte))
            };
            let max = file.chunks(bytes).map(value).max();
            assert_eq!(max, Some(file.len() / bytes / 2), "{name}");
        }
    }
}

#[test]
fn the_library_does_not_clamp_labels() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (last, is_refused) in [(65_535_u32, false), (65_536, true)] {
        let image = Image::new(2, 1, Channels::Gray, vec![1, last]).unwrap();
        assert_eq!(WriteOptions::new().write(path("a.png"), &image).is_err(), is_refused, "{last}");
        WriteOptions::new().write(path("a.tif"), &image).unwrap();
        let volume = Volume::new([2, 1, 1], vec![1, last]).unwrap();
        let name = path("v_2x1x1_uint16.raw");
        assert_eq!(WriteOptions::new().write(name, &volume).is_err(), is_refused, "{last}");
        WriteOptions::new().write(path("v.nrrd"), &volume).unwrap();
    }
}

/// A table appears together with the labels, or not at all.
#[test]
fn a_failed_run_leaves_no_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write_inputs(path);
    for (line, code) in [
        ("label many.pgm missing/l.png --table t.csv", 7),
        ("label v_20x16x8_uint8.raw missing/l.nrrd --table t.csv", 7),
        ("label pages.png l.tif --table t.csv", 2),
        ("label pages.png --table t.csv --then histogram -o h.csv", 2),
    ] {
        let (found, message) = run(path, line);
        assert_eq!((found, path.join("t.csv").exists()), (code, false), "{line}: {message}");
    }
    works(path, "label pages.png --table t.csv --then histogram --page 1 -o h.csv");
    assert!(path.join("t.csv").exists());
}

/// `--resume` makes a missing or changed table again, and one that another flag asks for.
#[test]
fn resumed_runs_know_tables() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write_inputs(path);
    let table = path.join("t.csv");
    for (line, more) in [
        ("label many.pgm l.tif --min-size 2", ""),
        ("label v_20x16x8_uint8.raw l.nrrd --min-size 2", ""),
        ("label many.pgm -o out/ --min-size 2", ""),
        ("label many.pgm", "--then histogram -o h.csv"),
        ("label v_20x16x8_uint8.raw", "--then mesh --iso 0.5 -o m.ply"),
    ] {
        let input = line.split(' ').nth(1).unwrap();
        let resume = if more.is_empty() { " --resume" } else { "" };
        let more = if more.is_empty() { String::new() } else { format!("{more} --resume") };
        works(path, &format!("{line}{resume} {more}"));
        let line = format!("{line}{resume} --table t.csv {more}");
        works(path, &line);
        let plain = fs::read(&table).unwrap();
        let write_time = || table.metadata().unwrap().modified().unwrap();
        let time = write_time();
        works(path, &line);
        assert_eq!(write_time(), time, "{line}: made again");
        fs::write(&table, "changed").unwrap();
        works(path, &line);
        assert_eq!(fs::read(&table).unwrap(), plain, "{line}");
        fs::remove_file(&table).unwrap();
        works(path, &line);
        assert_eq!(fs::read(&table).unwrap(), plain, "{line}");
        // The same with an input of the table, which then changes.
        let other = format!("i-{input}");
        fs::copy(path.join(input), path.join(&other)).unwrap();
        let line = line.replace("t.csv", &format!("t.csv --intensity {other}"));
        works(path, &line);
        let bright = fs::read(&table).unwrap();
        assert_ne!(bright, plain, "{line}");
        let mut samples = fs::read(path.join(&other)).unwrap();
        samples.iter_mut().rev().take(99).for_each(|sample| *sample += 1);
        fs::write(path.join(&other), samples).unwrap();
        works(path, &line);
        assert_ne!(fs::read(&table).unwrap(), bright, "{line}");
        fs::remove_file(&table).unwrap();
    }
}
