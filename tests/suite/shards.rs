//! Jobs in several processes: the result has the bytes of a single process with any number of shards, on any devices,
//! and even if shards are killed or started twice.

use std::{fs, path::Path, time::Duration};

use crate::{
    asserts::{assert_absent, assert_exists},
    common::{Noise, gpuproc, run, works},
    inputs::fixture,
    shard_runs::{run_shards, write_volume},
};

const SHARD_COUNTS: [usize; 4] = [1, 2, 7, 20];

/// Checks that the files `whole.X` and `joined.X` are equal for each extension X in `names`.
fn assert_same_files(folder: &Path, names: &[&str], context: &str) {
    for name in names {
        let read = |prefix: &str| fs::read(folder.join(format!("{prefix}.{name}"))).unwrap();
        let (whole, joined) = (read("whole"), read("joined"));
        assert!(whole == joined, "{context}: {name} of {} and {} bytes", whole.len(), joined.len());
    }
}

const TABLES: [&str; 3] = ["csv", "json", "svg"];

#[test]
fn merged_histogram_shards_equal_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut devices = ["cpu", "mixed"].into_iter().cycle();
    for (dtype, counts) in
        [("uint8", &SHARD_COUNTS[..]), ("uint16", &[7]), ("int32", &[2, 7]), ("float32", &[2, 64])]
    {
        let name = format!("v_13x11x17_{dtype}.raw");
        write_volume(&path.join(&name), [13, 11, 17], dtype);
        let line = format!("histogram {name} --bins 50 --percentiles 1,33.3,99");
        works(path, &format!("{line} -o whole.csv -o whole.json -o whole.svg"));
        for &count in counts {
            let device = devices.next().unwrap();
            run_shards(
                path,
                &format!("{line} --shard {{}} -o {{i}}.part"),
                count,
                device,
                count == 7,
            );
            let parts: Vec<String> = (0..count).rev().map(|i| format!("{i}.part")).collect();
            let parts = parts.join(" ");
            works(path, &format!("merge {parts} -o joined.csv -o joined.json -o joined.svg"));
            assert_same_files(path, &TABLES, &format!("{dtype}, {count} shards on {device}"));
        }
    }
}

#[test]
fn merged_mesh_shards_equal_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::create_dir(path.join("slices")).unwrap();
    for z in 0..9 {
        let pixels = Noise(z).bytes(20 * 14);
        let name = path.join(format!("slices/{z}.png"));
        image::save_buffer(name, &pixels, 20, 14, image::ColorType::L8).unwrap();
    }
    write_volume(&path.join("v_19x21x23_uint8.raw"), [19, 21, 23], "uint8");
    write_volume(&path.join("f_70x5x9_float32.raw"), [70, 5, 9], "float32");
    // Some samples are NaN.
    let nan = path.join("n_11x12x13_float32.raw");
    write_volume(&nan, [11, 12, 13], "float32");
    let mut bytes = fs::read(&nan).unwrap();
    (0..bytes.len())
        .step_by(4 * 61)
        .for_each(|at| bytes[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes()));
    fs::write(&nan, bytes).unwrap();
    for entry in fs::read_dir(fixture("volumes")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), path.join(entry.file_name())).unwrap();
    }
    let mut devices = ["cpu", "mixed"].into_iter().cycle();
    for (line, counts) in [
        ("v_19x21x23_uint8.raw --iso 100", &SHARD_COUNTS[..]),
        ("v_19x21x23_uint8.raw --iso 100 --close --normals --ascii", &[7]),
        ("f_70x5x9_float32.raw --iso auto --normals --spacing 1,2,3", &[2, 7]),
        ("n_11x12x13_float32.raw --iso 0.5 --close", &[7]),
        ("slices --iso 128", &[7]),
        ("i16_ras_gzip.nrrd --iso 10 --close", &[2]),
        ("v_19x21x23_uint8.raw --iso 255", &[2]),
    ] {
        let (input, flags) = line.split_once(' ').unwrap();
        let whole = works(path, &format!("mesh {input} whole.ply {flags}"));
        for &count in counts {
            let device = devices.next().unwrap();
            let line = format!("mesh {input} {{i}}.part {flags} --shard {{}}");
            run_shards(path, &line, count, device, count == 7);
            let parts: Vec<String> = (0..count).rev().map(|i| format!("{i}.part")).collect();
            let joined = works(path, &format!("merge {} -o joined.ply", parts.join(" ")));
            assert_same_files(path, &["ply"], &format!("{line}, {count} shards on {device}"));
            // For an empty mesh, the single run also reports the range of the samples, which part files do not store.
            let last = |text: &str| text.lines().last().unwrap().replace("whole", "joined");
            assert_eq!(last(&joined), last(&whole), "{line}");
        }
    }
}

#[test]
fn blur_shards_write_one_volume() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut devices = ["cpu", "mixed"].into_iter().cycle();
    for (dtype, flags, counts) in [
        ("uint8", "--sigma 1.5", &SHARD_COUNTS[..]),
        ("uint8", "--sigma 1,1,9 --edge reflect", &[7]),
        ("uint8", "--method box --radius 3 --iterations 3 --edge wrap", &[2, 7]),
        ("uint8", "--sigma 2 --edge 77 --max-memory 40k", &[2]),
        ("uint8", "--sigma 2,2,0 --edge mirror --linear", &[2]),
        ("uint16", "--sigma 2 --edge wrap", &[7]),
        ("float32", "--sigma 1", &[7]),
        ("float32", "--sigma 2,1,12 --edge 0.3", &[7]),
        ("float32", "--method box --radius 2", &[2]),
        ("int32", "--sigma 1", &[2]),
    ] {
        let input = format!("v_13x11x17_{dtype}.raw");
        write_volume(&path.join(&input), [13, 11, 17], dtype);
        for &count in counts {
            for extension in if count == 2 { &["raw", "npy"][..] } else { &["raw"] } {
                let whole = flags.replace("--max-memory 40k", "");
                works(path, &format!("blur {input} whole.{extension} {whole}"));
                let _ = fs::remove_file(path.join(format!("joined.{extension}")));
                let next = devices.next().unwrap();
                let device = if dtype == "uint8" { next } else { "mixed" };
                let line = format!("blur {input} joined.{extension} {flags} --shard {{}}");
                run_shards(path, &line, count, device, count == 7);
                assert_same_files(
                    path,
                    &[*extension],
                    &format!("{dtype} {flags}, {count} on {device}"),
                );
            }
        }
    }
    let left = fs::read_dir(path).unwrap().flatten().map(|entry| entry.file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().contains("shards-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn scan_shards_continue_from_a_carry() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let bytes = Noise(3).bytes(8 * 1001);
    fs::write(path.join("n.raw"), &bytes).unwrap();
    let text: Vec<String> = bytes.iter().map(|byte| format!("{byte}")).collect();
    fs::write(path.join("n.txt"), text.join(" ")).unwrap();
    // An array with a header.
    works(path, "scan n.raw n.npy --type u64 --op max");
    let mut devices = ["cpu", "mixed"].into_iter().cycle();
    for (line, counts) in [
        ("n.raw --type u32", &SHARD_COUNTS[..]),
        ("n.raw --type i64 --inclusive --op min --init 5", &[7]),
        ("n.raw --type i32 --inclusive --op product --init 3", &[2]),
        ("n.raw --type f32 --op max", &[7]),
        // A single block, which one shard processes.
        ("n.raw --type f64 --inclusive --init -0", &[2]),
        ("n.npy --inclusive", &[7]),
    ] {
        let (input, flags) = line.split_once(' ').unwrap();
        works(path, &format!("scan {input} whole.npy {flags}"));
        for &count in counts {
            let device = devices.next().unwrap();
            run_shards(
                path,
                &format!("scan {input} {{i}}.part {flags} --shard {{}}"),
                count,
                device,
                false,
            );
            let parts: Vec<String> = (0..count).rev().map(|i| format!("{i}.part")).collect();
            works(path, &format!("merge {} -o carry", parts.join(" ")));
            let _ = fs::remove_file(path.join("joined.npy"));
            let line = format!("scan {input} joined.npy {flags} --carry carry --shard {{}}");
            run_shards(path, &line, count, device, count == 7);
            assert_same_files(path, &["npy"], &format!("{line}, {count} on {device}"));
        }
    }
}

#[test]
fn rejects_jobs_that_cannot_be_sharded_and_parts_that_do_not_match() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write_volume(&path.join("v_9x9x9_uint8.raw"), [9, 9, 9], "uint8");
    fs::write(path.join("n.raw"), [0; 80]).unwrap();
    fs::write(path.join("n.txt"), "1 2 3").unwrap();
    image::save_buffer(path.join("a.png"), &[7; 12], 2, 2, image::ColorType::Rgb8).unwrap();
    let fails = |line: &str, code: i32, message: &str| {
        let (found, stderr) = run(path, line);
        assert!((found, stderr.contains(message)) == (code, true), "{line}: {found} {stderr}");
    };
    for (line, message) in [
        ("sort n.raw --shard 0/2", "a sort cannot be divided"),
        ("scan n.txt p --shard 0/2", "text"),
        ("scan n.raw p --shard 0/2 --checked", "--checked"),
        ("scan a.png p --shard 0/2", "cannot divide a summed-area table"),
        ("blur a.png b.png --shard 0/2", "a single image cannot be sharded"),
        ("blur v_9x9x9_uint8.raw b.raw.gz --shard 0/2", "uncompressed"),
        ("blur v_9x9x9_uint8.raw ./v_9x9x9_uint8.raw --shard 0/2", "cannot replace"),
        ("mesh v_9x9x9_uint8.raw p --iso 9 --largest --shard 0/2", "--largest"),
        ("mesh v_9x9x9_uint8.raw p --iso 9 --clean --shard 0/2", "--clean"),
        ("mesh v_9x9x9_uint8.raw p --iso 9 --min-volume 2 --shard 0/2", "--min-volume"),
        ("mesh v_9x9x9_uint8.raw p --iso 9,10 --shard 0/2", "one --iso"),
        ("mesh - p --iso 9 --shard 0/2", "standard input"),
        ("histogram v_9x9x9_uint8.raw --shard 0/2", "needs one -o FILE"),
        ("mesh v_9x9x9_uint8.raw p --iso 9 --shard 2/2", "expected an index from 0"),
    ] {
        fails(line, 2, message);
    }
    for (name, line) in [
        ("0", "mesh v_9x9x9_uint8.raw 0 --iso 9 --shard 0/2"),
        ("1", "mesh v_9x9x9_uint8.raw 1 --iso 9 --shard 1/2"),
        ("other", "mesh v_9x9x9_uint8.raw other --iso 10 --shard 1/2"),
        ("counts", "histogram v_9x9x9_uint8.raw -o counts --shard 1/2"),
    ] {
        works(path, line);
        assert_exists(path.join(name));
    }
    for (parts, message) in [
        ("0", "1 of 2 shards is missing: 1"),
        ("0 1 1", "same shard (1/2) as"),
        ("0 other", "parameters differ"),
        ("0 counts", "made by `histogram`, expected `mesh`"),
        ("0 n.raw", "not a part file"),
    ] {
        fails(&format!("merge {parts} -o m.ply"), 4, message);
    }
    assert_absent(path.join("m.ply"));
    fails("merge 0 1 -o m.stl", 2, "to a .ply");
    // The input has changed between two shards.
    let time = fs::metadata(path.join("v_9x9x9_uint8.raw")).unwrap().modified().unwrap();
    let file = fs::File::options().write(true).open(path.join("v_9x9x9_uint8.raw")).unwrap();
    file.set_modified(time + Duration::from_secs(9)).unwrap();
    works(path, "mesh v_9x9x9_uint8.raw 1 --iso 9 --shard 1/2");
    fails("merge 0 1 -o m.ply", 4, "was modified in between");
    works(path, "merge 0 1 -o m.ply --any-time");
    // Another volume of the same size.
    fs::write(path.join("v_9x9x9_uint8.raw"), Noise(2).bytes(729)).unwrap();
    works(path, "mesh v_9x9x9_uint8.raw 1 --iso 9 --shard 1/2");
    fails("merge 0 1 -o m.ply --any-time", 4, "the content of v_9x9x9_uint8.raw differs");
}

/// A part file with a flipped bit is neither merged nor accepted as finished work.
#[test]
fn rejects_damaged_part_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("v_9x9x9_uint8.raw"), Noise(1).bytes(729)).unwrap();
    fs::write(path.join("n.raw"), Noise(2).bytes(1000)).unwrap();
    for (line, merge) in [
        ("mesh v_9x9x9_uint8.raw 0.part --iso 128 --shard 0/1", "merge 0.part -o m.ply"),
        ("histogram v_9x9x9_uint8.raw -o 0.part --shard 0/1", "merge 0.part -o h.csv"),
        ("scan n.raw 0.part --shard 0/1", "merge 0.part -o carry"),
    ] {
        works(path, line);
        works(path, merge);
        let whole = fs::read(path.join("0.part")).unwrap();
        let mut noise = Noise(whole.len() as u64);
        for _ in 0..10 {
            let mut damaged = whole.clone();
            let bit = noise.next() as usize % (8 * whole.len());
            damaged[bit / 8] ^= 1 << (bit % 8);
            fs::write(path.join("0.part"), damaged).unwrap();
            let (code, text) = run(path, merge);
            assert_eq!((code, text.lines().count()), (4, 1), "{line}: bit {bit}: {text}");
        }
        works(path, &format!("{line} --resume"));
        assert!(fs::read(path.join("0.part")).unwrap() == whole, "{line}");
    }
}

/// The volumes of `--mask` and `--color-by` are inputs, too. If one of them changes, `--resume` repeats the work.
#[test]
fn resume_checks_all_inputs_of_a_mesh() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("v_9x9x9_uint8.raw"), Noise(1).bytes(729)).unwrap();
    fs::write(path.join("w_9x9x9_uint8.raw"), Noise(3).bytes(729)).unwrap();
    for flag in ["--mask", "--color-by"] {
        let line =
            format!("mesh v_9x9x9_uint8.raw o.ply --iso 99 {flag} w_9x9x9_uint8.raw --resume");
        let mut meshes = Vec::new();
        for content in [3, 3, 4] {
            let file = path.join("w_9x9x9_uint8.raw");
            if fs::read(&file).unwrap() != Noise(content).bytes(729) {
                fs::write(&file, Noise(content).bytes(729)).unwrap();
            }
            works(path, &line);
            meshes.push(fs::read(path.join("o.ply")).unwrap());
        }
        assert!(meshes[0] == meshes[1] && meshes[1] != meshes[2], "{flag}");
    }
}

/// Writes nine images and lists of their names: `lines`, and `nul` with names that end with NUL. Returns the names.
fn write_file_list(path: &Path) -> Vec<String> {
    fs::create_dir(path.join("in")).unwrap();
    let mut names = Vec::new();
    for i in 0..9u64 {
        let name = format!("in/{i} \u{e4}.png");
        image::save_buffer(path.join(&name), &Noise(i).bytes(300), 10, 10, image::ColorType::Rgb8)
            .unwrap();
        names.push(name);
    }
    fs::write(path.join("lines"), names.join("\n")).unwrap();
    fs::write(path.join("nul"), names.iter().map(|name| format!("{name}\0")).collect::<String>())
        .unwrap();
    names
}

/// Runs `line` with `--resume`. Returns how many files were done, and how many were skipped.
fn resume(path: &Path, line: &str) -> (usize, usize) {
    let _ = fs::remove_file(path.join("log"));
    works(path, &format!("{line} --resume --log-json log"));
    let log = fs::read_to_string(path.join("log")).unwrap();
    let events: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |status: &str| events.iter().filter(|event| event["status"] == status).count();
    assert_eq!(
        (&events[0]["event"], &events[events.len() - 1]["event"]),
        (&"start".into(), &"end".into())
    );
    let end = &events[events.len() - 1];
    assert_eq!(
        (end["code"].as_u64(), end["skipped"].as_u64()),
        (Some(0), Some(count("skipped") as u64))
    );
    assert!(
        events
            .iter()
            .filter(|event| event["status"] == "done")
            .all(|event| event["bytes_in"].as_u64() > Some(0))
    );
    (count("done"), count("skipped"))
}

/// Each shard processes some files of the list, with the results of one run on all files.
#[test]
fn file_lists_are_sharded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let names = write_file_list(path);
    works(path, "blur --files-from lines --out-dir whole --sigma 1");
    let same = |other: &str| {
        names.iter().all(|name| {
            let read = |folder: &str| fs::read(path.join(folder).join(name)).ok();
            read("whole").is_some() && read("whole") == read(other)
        })
    };
    for count in SHARD_COUNTS {
        for index in 0..count {
            let line = format!(
                "blur --files-from nul --out-dir d{count} --sigma 1 --shard {index}/{count}"
            );
            works(path, &line);
        }
        assert!(same(&format!("d{count}")), "{count}");
    }
    let mut stdin = gpuproc();
    stdin.current_dir(path).write_stdin(names.join("\n"));
    stdin
        .args("blur --files-from - --out-dir piped --sigma 1 --device cpu".split(' '))
        .assert()
        .success();
    assert!(same("piped"));
}

#[test]
fn resume_skips_finished_and_repeats_changed_work() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let names = write_file_list(path);
    let line = "blur --files-from lines --out-dir resumed --sigma 1";
    assert_eq!(resume(path, line), (9, 0));
    assert_eq!(resume(path, line), (0, 9));
    // The number of shards may change.
    assert_eq!(resume(path, &format!("{line} --shard 1/3")), (0, 3));
    fs::remove_file(path.join("resumed").join(&names[2])).unwrap();
    // An output that changed without changing its size.
    let other = path.join("resumed").join(&names[3]);
    let length = fs::metadata(&other).unwrap().len() as usize;
    fs::write(other, vec![0; length]).unwrap();
    image::save_buffer(path.join(&names[4]), &[9; 300], 10, 10, image::ColorType::Rgb8).unwrap();
    assert_eq!(resume(path, line), (3, 6));
    assert_eq!(resume(path, "blur --files-from lines --out-dir resumed --sigma 2"), (9, 0));
    assert_eq!(resume(path, "blur --files-from lines --out-dir resumed --sigma 2"), (0, 9));
}

/// The sample file that a header names is also an input.
#[test]
fn resume_notices_changes_of_sample_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // The extension of the header's file does not matter.
    for (name, samples) in [("d.mhd", "d.raw"), ("e.mha", "e.raw")] {
        let header = format!(
            "NDims = 3\nDimSize = 5 6 7\nElementType = MET_UCHAR\nElementDataFile = {samples}\n"
        );
        fs::write(path.join(name), header).unwrap();
        let line = format!("mesh {name} --out-dir resumed --iso 128");
        for (seed, done_and_skipped) in [(1, (1, 0)), (1, (0, 1)), (2, (1, 0))] {
            let bytes = Noise(seed).bytes(210);
            if fs::read(path.join(samples)).ok() != Some(bytes.clone()) {
                fs::write(path.join(samples), bytes).unwrap();
            }
            assert_eq!(resume(path, &line), done_and_skipped, "{line} {seed}");
        }
    }
}

/// A file that fails does not affect the others and is retried in the next run.
#[test]
fn resume_retries_failed_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let names = write_file_list(path);
    let line = "blur --files-from lines --out-dir resumed --sigma 2";
    assert_eq!(resume(path, line), (9, 0));
    fs::write(path.join(&names[5]), "broken").unwrap();
    fs::remove_file(path.join("log")).unwrap();
    for _ in 0..2 {
        let (code, stderr) = run(path, &format!("{line} --resume --log-json log"));
        let log = fs::read_to_string(path.join("log")).unwrap();
        fs::remove_file(path.join("log")).unwrap();
        let count = |part: &str| log.matches(part).count();
        assert_eq!(
            (code, count("\"done\""), count("\"skipped\":8"), count("\"retry\"")),
            (4, 0, 1, 1),
            "{stderr} {log}"
        );
    }
}

/// Histograms of many inputs, separate and summed.
#[test]
fn merged_histograms_of_file_lists_equal_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut names = Vec::new();
    for i in 0..5u64 {
        let name = format!("{i}.png");
        let side = 10 + i as u32;
        let pixels = Noise(i).bytes((side * side * 3) as usize);
        image::save_buffer(path.join(&name), &pixels, side, side, image::ColorType::Rgb8).unwrap();
        names.push(name);
    }
    fs::write(path.join("list"), names.join("\n")).unwrap();
    for (flags, tables) in [
        ("", &TABLES[..2]),
        ("--sum --log --luma linear", &TABLES[..]),
        ("--stats --bins 3", &TABLES[..2]),
    ] {
        let outputs = |prefix: &str| -> String {
            tables.iter().map(|table| format!(" -o {prefix}.{table}")).collect()
        };
        works(
            path,
            &format!("histogram --files-from list {flags}{}", outputs("whole")).replace("  ", " "),
        );
        for count in [1, 3, 7] {
            let line = format!("histogram --files-from list {flags} -o {{i}}.part --shard {{}}");
            run_shards(path, &line.replace("  ", " "), count, "cpu", count == 3);
            let parts: Vec<String> = (0..count).map(|i| format!("{i}.part")).collect();
            works(path, &format!("merge {}{}", parts.join(" "), outputs("joined")));
            assert_same_files(path, tables, &format!("{flags}, {count} shards"));
        }
    }
    // A broken input is skipped, as in a single process.
    fs::write(path.join("2.png"), "broken").unwrap();
    assert_eq!(run(path, "histogram --files-from list -o whole.csv -o whole.json").0, 3);
    for index in 0..2 {
        let line = format!("histogram --files-from list -o {index}.part --shard {index}/2");
        assert_eq!(run(path, &line).0, if index == 0 { 3 } else { 0 });
    }
    assert_eq!(run(path, "merge 0.part 1.part -o joined.csv -o joined.json").0, 3);
    assert_same_files(path, &TABLES[..2], "one input is broken");
}

/// Other processes would wait for a shard that can never be done.
#[test]
fn shards_of_refused_inputs_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("v_400x400x40_uint8.raw"), vec![1; 400 * 400 * 40]).unwrap();
    for output in ["o.nrrd", "o.zarr"] {
        let line = format!("blur v_400x400x40_uint8.raw {output} -s 9 --shard 0/2 --max-memory 1M");
        let (code, stderr) = run(folder, &line);
        assert!(code == 4 && stderr.contains("raise --max-memory"), "{code}: {stderr}");
        assert_eq!(fs::read_dir(folder).unwrap().count(), 1, "{output}");
    }
}
