//! Names that cannot be used, or not in the usual way: inputs that are not images, parts of shards, links to nothing, pipes,
//! and outputs that appear while a run is under way.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::common::{Noise, gpuproc, output_of, run, works};

fn write_image(path: &Path, seed: u64) {
    fs::write(path, [b"P5 8 8 255\n".to_vec(), Noise(seed).bytes(64)].concat()).unwrap();
}

/// Two images among names that are not images.
fn write_mixed(folder: &Path) {
    write_image(&folder.join("a.pgm"), 1);
    write_image(&folder.join("b.pgm"), 2);
    for name in ["LICENSE", "notes.txt", "IMG.heic"] {
        fs::write(folder.join(name), "text").unwrap();
    }
    fs::create_dir_all(folder.join("folders/empty")).unwrap();
    fs::write(folder.join("v_4x4x4_uint8.raw"), Noise(3).bytes(64)).unwrap();
}

#[test]
fn one_unusable_name_does_not_stop_a_batch() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write_mixed(path);
    let bad = ["LICENSE", "notes.txt", "IMG.heic", "folders", "folders/empty", "missing.png"];
    let list = ["a.pgm"].iter().chain(&bad).chain(&["b.pgm"]).copied().collect::<Vec<_>>();
    fs::write(path.join("list"), list.join("\n")).unwrap();
    let (bad, all) = (bad.join(" "), list.join(" "));
    for (line, outputs) in [
        (format!("blur {all} -o out/ -s 1"), ["out/a.pgm", "out/b.pgm"]),
        (format!("blur {all} -o one/{{stem}}.{{ext}} -s 1"), ["one/a.pgm", "one/b.pgm"]),
        ("blur --files-from list --out-dir list-out -s 1".into(), ["list-out/a.pgm"; 2]),
        (format!("label {all} -o labels/ --table tables/"), ["labels/a.pgm", "tables/b.csv"]),
        (format!("resize {all} -o small/ --max 4"), ["small/a.pgm", "small/b.pgm"]),
        (format!("histogram {all} -o h.csv"), ["h.csv"; 2]),
        (format!("histogram {all} -o each/"), ["each/a.csv", "each/b.csv"]),
        (
            format!("mesh v_4x4x4_uint8.raw {bad} -o meshes/ --iso 9"),
            ["meshes/v_4x4x4_uint8.ply"; 2],
        ),
        (format!("median {all} --in-place"), ["a.pgm", "b.pgm"]),
    ] {
        let (code, message) = run(path, &line);
        assert_eq!(code, 3, "{line}: {message}");
        for name in bad.split(' ') {
            let named = message.lines().filter(|line| line.contains(name)).count();
            assert!(named > 0, "{line}: no error names {name}: {message}");
        }
        assert!(outputs.iter().all(|name| path.join(name).is_file()), "{line}: {message}");
    }
    // Each shard does the files that it can.
    for shard in 0..3 {
        let line = format!("blur --files-from list -o shards/ -s 1 --shard {shard}/3");
        let (code, message) = run(path, &line);
        assert_eq!(code, 3, "{message}");
    }
    assert!(path.join("shards/a.pgm").is_file() && path.join("shards/b.pgm").is_file());
    // A dry run does not look whether a folder has images.
    let (code, message) = run(path, &format!("blur {all} -o dry/ -s 1 --dry-run"));
    assert_eq!((code, message.lines().count()), (3, 5), "{message}");
    // A name that no input could have is still wrong usage, as is the only input.
    for line in ["blur a.pgm b.pgm -o x/{stem}.heic -s 1", "blur LICENSE -o out/ -s 1"] {
        assert_eq!(run(path, line).0, 2, "{line}");
    }
}

#[test]
fn shards_do_not_replace_each_others_parts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("v_4x4x4_uint8.raw"), Noise(3).bytes(64)).unwrap();
    fs::write(path.join("n.raw"), Noise(4).bytes(64)).unwrap();
    let before = fs::read_dir(path).unwrap().count();
    for (line, name) in [
        ("mesh v_4x4x4_uint8.raw OUT --iso 80", "out.ply"),
        ("mesh v_4x4x4_uint8.raw -o OUT --iso 80", "out.stl"),
        ("histogram v_4x4x4_uint8.raw -o OUT", "h.csv"),
        ("histogram v_4x4x4_uint8.raw -o OUT", "h.json"),
        ("scan n.raw OUT", "sums.npy"),
    ] {
        for shard in 0..4 {
            let line = format!("{} --shard {shard}/4", line.replace("OUT", name));
            let (code, message) = run(path, &line);
            assert_eq!((code, message.contains(".part")), (2, true), "{line}: {message}");
            assert_eq!(fs::read_dir(path).unwrap().count(), before, "{line}");
        }
        for name in ["x.part", "y"] {
            let line = line.replace("OUT", name);
            works(path, &format!("{line} --shard 1/4"));
            let first = fs::read(path.join(name)).unwrap();
            for shard in [0, 2, 3] {
                let (code, message) = run(path, &format!("{line} --shard {shard}/4 --resume"));
                assert_eq!((code, message.contains("shard 1/4")), (2, true), "{line}: {message}");
            }
            // The same shard and other jobs may replace it.
            works(path, &format!("{line} --shard 1/4"));
            assert!(fs::read(path.join(name)).unwrap() == first, "{line}");
            works(path, &format!("{line} --shard 0/3"));
            fs::remove_file(path.join(name)).unwrap();
        }
    }
}

#[cfg(unix)]
#[test]
fn outputs_follow_links_to_missing_files() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write_mixed(path);
    fs::create_dir(path.join("sub")).unwrap();
    for (line, name) in [
        ("blur a.pgm OUT -s 1", "o.png"),
        ("blur a.pgm OUT -s 1 --no-clobber", "n.png"),
        ("blur v_4x4x4_uint8.raw OUT -s 1", "o.nrrd"),
        ("blur v_4x4x4_uint8.raw OUT -s 1", "o.zarr"),
        ("blur v_4x4x4_uint8.raw OUT -s 1 --shard 0/1", "s.raw"),
        ("blur v_4x4x4_uint8.raw OUT -s 1 --shard 0/1", "s.zarr"),
        ("label a.pgm l.png --table OUT", "t.csv"),
        ("histogram a.pgm -o OUT", "h.csv"),
        ("mesh v_4x4x4_uint8.raw OUT --iso 9", "m.ply"),
        ("mesh v_4x4x4_uint8.raw OUT --iso 9", "m.precomputed"),
        ("info a.pgm --log-json OUT", "log"),
    ] {
        symlink(format!("sub/{name}"), path.join("second")).unwrap();
        symlink("second", path.join(name)).unwrap();
        works(path, &line.replace("OUT", name));
        assert!(path.join(name).is_symlink() && path.join("sub").join(name).exists(), "{line}");
        fs::remove_file(path.join("second")).unwrap();
    }
    symlink("loop.png", path.join("loop.png")).unwrap();
    assert_eq!(run(path, "blur a.pgm loop.png -s 1").0, 7);
}

/// The output appears while the run reads its input: it is kept.
#[cfg(target_os = "linux")]
#[test]
fn no_clobber_holds_until_the_end() {
    use std::{io::Write, process::Stdio, thread, time::Duration};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for (name, theirs) in [("o.raw", "theirs"), ("o.zarr", "theirs")] {
        let mut command = std::process::Command::new(crate::common::program());
        command.args(["blur", "-", name, "-s", "1", "--dims", "16x16x64", "--no-clobber"]);
        command.args(["--device", "cpu"]).current_dir(path);
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(&[7; 16 * 16 * 32]).unwrap();
        // Unfinished files have no name, unfinished folders a hidden one.
        let files = format!("/proc/{}/fd", child.id());
        let has_begun = || {
            let open = fs::read_dir(&files).into_iter().flatten().flatten();
            let mut targets = open.filter_map(|file| fs::read_link(file.path()).ok());
            targets.any(|target| target.starts_with(path.canonicalize().unwrap()) && target != path)
                || fs::read_dir(path)
                    .unwrap()
                    .flatten()
                    .any(|entry| entry.file_name().to_string_lossy().starts_with(".gpuproc-"))
        };
        let started = std::time::Instant::now();
        while !has_begun() && started.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(5));
        }
        assert!(has_begun(), "{name}");
        fs::write(path.join(name), theirs).unwrap();
        input.write_all(&[7; 16 * 16 * 32]).unwrap();
        drop(input);
        let output = child.wait_with_output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "{name}: {message}");
        assert!(message.contains("exists already"), "{name}: {message}");
        assert_eq!(fs::read_to_string(path.join(name)).unwrap(), theirs);
        fs::remove_file(path.join(name)).unwrap();
        assert_eq!(fs::read_dir(path).unwrap().count(), 0, "{name}");
    }
    // Shards: the output appears between them.
    fs::write(path.join("v_4x4x8_uint8.raw"), Noise(3).bytes(128)).unwrap();
    for name in ["s.raw", "s.zarr"] {
        let line =
            format!("blur v_4x4x8_uint8.raw {name} -s 1 --chunks 4x4x2 --no-clobber --shard");
        let line = if name == "s.raw" { line.replace("--chunks 4x4x2", "") } else { line };
        works(path, &format!("{line} 0/2"));
        // A store may replace an empty folder, but not a file.
        let (theirs, is_file) = (path.join(name), name == "s.raw");
        if is_file { fs::write(&theirs, "theirs") } else { fs::create_dir(&theirs) }.unwrap();
        let (code, message) = run(path, &format!("{line} 1/2"));
        assert_eq!((code, message.contains("exists already")), (7, true), "{name}: {message}");
        if is_file { fs::remove_file(&theirs) } else { fs::remove_dir(&theirs) }.unwrap();
        works(path, &format!("{line} 1/2"));
        assert!(path.join(name).exists(), "{name}");
    }
}

#[cfg(unix)]
#[test]
fn pipes_do_not_block() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write_image(&path.join("a.pgm"), 1);
    let made = std::process::Command::new("mkfifo").arg(path.join("fifo.pgm")).status();
    assert!(made.unwrap().success(), "mkfifo(1) failed");
    for (config, code) in [("fifo.pgm", 2), ("/dev/zero", 2), ("/dev/null", 0)] {
        let mut command = gpuproc();
        command.current_dir(path).args(["info", "a.pgm"]).env("GPUPROC_CONFIG_PATH", config);
        command.timeout(std::time::Duration::from_secs(20)).assert().code(code);
    }
    // No job of a server can use what is not a file, or touch the server's log.
    let bad = [
        "blur fifo.pgm o.png -s 1",
        "blur a.pgm fifo.pgm -s 1",
        "blur /dev/stdin o.png -s 1",
        "blur /proc/self/fd/1 o.png -s 1",
        "blur - o.png -s 1",
        "blur a.pgm /dev/fd/0 --format png -s 1",
        "blur a.pgm /dev/fd/2 --format png -s 1",
        "blur a.pgm - -s 1",
        "blur --files-from fifo.pgm -o out/ -s 1",
        "blur --files-from /dev/zero -o out/ -s 1",
        "histogram fifo.pgm -o h.csv",
        "histogram /dev/zero -o h.csv",
        "histogram a.pgm --mask fifo.pgm -o h.csv",
        "label a.pgm l.png --table t.csv --intensity fifo.pgm",
        "mesh /dev/zero m.ply --iso 9 --dims 9x9x9",
        "scan /dev/zero s.raw",
        "scan a.pgm fifo.pgm --format raw",
        "sort fifo.pgm s.txt",
        "merge fifo.pgm -o m.ply",
        "info fifo.pgm",
        "blur a.pgm log --format png -s 1",
        "label a.pgm l.png --table ./log.csv --log-json log",
        "blur log o.png -s 1",
    ];
    let good = "blur a.pgm last.png -s 1";
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        format!("{}\n", json!({ "arguments": words }))
    };
    let jobs: String = bad.iter().chain(&[good]).map(|job| line(job)).collect();
    let mut command = gpuproc();
    command.current_dir(path).args(["serve", "--device", "cpu", "--log-json", "log"]);
    command.timeout(std::time::Duration::from_secs(60)).write_stdin(jobs);
    let output = command.assert().success().get_output().stdout.clone();
    let output = String::from_utf8(output).unwrap();
    let answers = output.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let codes: Vec<u64> = answers.map(|answer| answer["code"].as_u64().unwrap()).collect();
    assert_eq!(codes.len(), bad.len() + 1);
    for (line, code) in bad.iter().zip(&codes) {
        assert!(matches!(code, 2 | 7), "{line}: {code}");
    }
    assert_eq!(codes.last(), Some(&0));
    let log = fs::read_to_string(path.join("log")).unwrap();
    assert!(log.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    let mut names: Vec<_> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["a.pgm", "fifo.pgm", "last.png", "log"]);
}

#[test]
fn spreadsheets_run_no_file_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let names = ["=1+1.pgm", "+1.pgm", "-1.pgm", "@x.pgm", "a=b.pgm"];
    names.iter().for_each(|name| write_image(&path.join(name), 1));
    fs::write(path.join("list"), names.join("\n")).unwrap();
    for flags in ["--stats", "--bins 1"] {
        let text = output_of(path, &format!("histogram --files-from list {flags}"));
        let rows = text.lines().skip(1).map(|line| line.split(',').next().unwrap().to_owned());
        let mut rows: Vec<String> = rows.collect();
        rows.dedup();
        assert_eq!(rows, ["'=1+1.pgm", "'+1.pgm", "'-1.pgm", "'@x.pgm", "a=b.pgm"], "{flags}");
    }
    let json = output_of(path, "histogram --files-from list --format json");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["inputs"][0], "=1+1.pgm");
    for device in [",", "-", "..."] {
        let (code, message) = run(path, &format!("info a=b.pgm --device={device}"));
        assert_eq!((code, message.contains("expected auto, cpu")), (2, true), "{message}");
    }
}

/// A run that fails before it writes leaves no folder and does not let a later run create one.
#[test]
fn failed_runs_leave_no_folders() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("bad.png"), "text").unwrap();
    fs::write(path.join("bad.nrrd"), "NRRD0004\ntype: uint8\n").unwrap();
    fs::write(path.join("bad.txt"), "1 x").unwrap();
    write_image(&path.join("a.pgm"), 1);
    let before = fs::read_dir(path).unwrap().count();
    for line in [
        "blur bad.png -o new/ -s 1",
        "blur bad.png bad.png --out-dir new/deep -s 1",
        "blur bad.png -o new/{stem}.tif -s 1",
        "blur bad.nrrd -o new/ -s 1",
        "label bad.png -o new/ --table tables/",
        "mesh bad.nrrd -o new/ --iso 9",
        "histogram bad.png -o new/",
        "scan bad.txt -o new/",
        "sort bad.txt -o new/",
    ] {
        let (code, message) = run(path, line);
        assert!(code != 0, "{line}");
        assert_eq!(fs::read_dir(path).unwrap().count(), before, "{line}: {message}");
    }
    let jobs =
        ["blur bad.png -o new/ -s 1", "blur a.pgm new/a.png -s 1", "blur a.pgm -o new/ -s 1"];
    let jobs = jobs.map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        format!("{}\n", json!({ "arguments": words }))
    });
    let mut command = gpuproc();
    command.current_dir(path).args(["serve", "--device", "cpu"]).write_stdin(jobs.concat());
    let output = command.assert().success().get_output().stdout.clone();
    let answers = String::from_utf8(output).unwrap();
    let answers = answers.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let codes: Vec<u64> = answers.map(|answer| answer["code"].as_u64().unwrap()).collect();
    assert_eq!(codes, [4, 7, 0]);
    assert!(path.join("new/a.pgm").is_file());
}

/// The log of a run with a done, a failed and a skipped file: all fields with their values, except times.
#[test]
fn the_log_counts_files_and_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write_image(&path.join("a.pgm"), 1);
    fs::write(path.join("b.pgm"), "text").unwrap();
    write_image(&path.join("c.pgm"), 2);
    works(path, "blur a.pgm -o out/ -s 1 --resume");
    let line = "blur a.pgm b.pgm c.pgm -o out/ -s 1 --resume --log-json log";
    assert_eq!(run(path, line).0, 3);
    let log = fs::read_to_string(path.join("log")).unwrap();
    let mut lines: Vec<Value> = log.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    for line in &mut lines {
        let fields = line.as_object_mut().unwrap();
        assert!(fields.remove("time").unwrap().as_f64().unwrap() > 1e9);
        let seconds = fields.remove("seconds").map(|seconds| seconds.as_f64().unwrap());
        assert!(seconds.is_none_or(|seconds| (0.0..60.0).contains(&seconds)));
        fields.remove("process");
    }
    // Files of a batch end in any order.
    lines[2..4].sort_by_key(|line| line["event"].to_string());
    let words: Vec<&str> = ["--device", "cpu"].into_iter().chain(line.split(' ')).collect();
    let wrong = "cannot decode b.pgm: not an image of a known format";
    let expected = json!([
        { "event": "start", "command": "blur", "arguments": words, "version": env!("CARGO_PKG_VERSION") },
        { "event": "file", "status": "skipped", "input": "a.pgm", "output": "out/a.pgm",
          "bytes_in": 75, "bytes_out": 75 },
        { "event": "error", "input": "b.pgm", "message": wrong, "code": 4, "retry": false },
        { "event": "file", "status": "done", "input": "c.pgm", "output": "out/c.pgm",
          "bytes_in": 75, "bytes_out": 75 },
        { "event": "error", "message": "1 of 2 files failed", "code": 3, "retry": true },
        { "event": "end", "code": 3, "files": 3, "skipped": 1, "failed": 1, "bytes_in": 75, "bytes_out": 75 },
    ]);
    assert_eq!(Value::Array(lines), expected);
    // A part that an earlier run has made is skipped, not done as well.
    fs::write(path.join("n.raw"), Noise(1).bytes(64)).unwrap();
    for expected in ["done", "skipped"] {
        fs::remove_file(path.join("log")).ok();
        works(path, "scan n.raw s.part --shard 0/2 --resume --log-json log");
        let log = fs::read_to_string(path.join("log")).unwrap();
        let files: Vec<&str> = log.lines().filter(|line| line.contains("\"file\"")).collect();
        assert_eq!((files.len(), files[0].contains(expected)), (1, true), "{log}");
    }
}
