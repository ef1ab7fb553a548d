//! Full disks, and files and pipes that fail: an output is complete or absent.
#![cfg(unix)]

use std::{
    env,
    fs::{self, File},
    io::{Read, Write},
    path::Path,
    process::{Command, Stdio},
    thread,
};

use tempfile::TempDir;

use crate::{
    asserts::assert_absent,
    common::{Noise, gpuproc, peak_memory, program, subjects},
    harness::ignore,
};

/// A folder with inputs that take each command some tens of milliseconds.
pub fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut noise = Noise(5);
    let picture = noise.bytes(700 * 500 * 3);
    let path = folder.path().join("a.png");
    image::save_buffer(path, &picture, 700, 500, image::ColorType::Rgb8).unwrap();
    fs::write(folder.path().join("v_64x64x64_uint8.raw"), noise.bytes(64 * 64 * 64)).unwrap();
    fs::write(folder.path().join("n.u32"), noise.bytes(4 << 20)).unwrap();
    folder
}

/// Command lines and the names of their outputs.
pub const COMMANDS: [(&str, &str); 6] = [
    ("blur a.png o.png --sigma 9", "o.png"),
    ("histogram a.png --equalize o.png", "o.png"),
    ("scan n.u32 o.npy", "o.npy"),
    ("scan a.png o.raw", "o.raw"),
    ("sort n.u32 o.u32", "o.u32"),
    ("mesh v_64x64x64_uint8.raw o.ply --iso 80", "o.ply"),
];

pub fn command(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(program());
    command.current_dir(folder).env_remove("GPUPROC_DEVICE").args(["-q", "--device", "cpu"]);
    command.args(line.split(' ')).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Names of files that are neither inputs nor `output`.
pub fn unexpected_files(folder: &Path, output: &str) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    let inputs = ["a.png", "v_64x64x64_uint8.raw", "n.u32", output];
    names.filter(|name| !inputs.contains(&name.as_str())).collect()
}

/// With few threads available, a run gives the same result or one error line. Limits on processes do not apply to root
/// and count all processes of a user, so the program runs as the user nobody.
#[cfg(target_os = "linux")]
#[test]
fn thread_limit_gives_the_same_output_or_an_error() {
    use std::os::unix::fs::PermissionsExt;
    const NOBODY: &str = "--reuid=65534 --regid=65534 --clear-groups";
    let folder = folder();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let program = {
        let copy = tempfile::Builder::new().prefix("gpuproc-").tempfile().unwrap().into_temp_path();
        fs::copy(program(), &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
        copy
    };
    let limited = |threads: usize, line: &str| {
        let mut run = Command::new("prlimit");
        run.current_dir(&folder).arg(format!("--nproc={threads}")).arg("setpriv");
        run.args(NOBODY.split(' ')).args(["timeout", "-s", "KILL", "60"]).arg(&program);
        run.args(["-q", "--device", "cpu", "--threads", "8"]).args(line.split(' '));
        run.env_remove("GPUPROC_DEVICE").stdin(Stdio::null()).output()
    };
    if !limited(100, "completions bash").is_ok_and(|output| output.status.success()) {
        return ignore("needs root, prlimit(1) and setpriv(1) to run as the user nobody");
    }
    let batch = ("blur a.png bad.png v.png --out-dir d", "d/a.png");
    fs::copy(folder.path().join("a.png"), folder.path().join("v.png")).unwrap();
    fs::write(folder.path().join("bad.png"), "no picture").unwrap();
    let bands = ("blur a.png o.png --max-memory 1M", "o.png");
    for (line, name) in COMMANDS.into_iter().chain([batch, bands]) {
        let output = folder.path().join(name);
        let whole = limited(100, line).unwrap().status.code();
        assert!(matches!(whole, Some(0 | 3)), "{line}: {whole:?}");
        let expected = fs::read(&output).unwrap();
        let mut codes = Vec::new();
        // timeout(1) counts as a process, too.
        for threads in [2, 3, 4, 5, 6, 8, 12] {
            fs::remove_file(&output).unwrap_or_default();
            let run = limited(threads, line).unwrap();
            let stderr = String::from_utf8_lossy(&run.stderr);
            let context = format!("{threads} threads: {line}: {:?} {stderr}", run.status);
            codes.push(run.status.code());
            if run.status.code() == whole {
                assert!(fs::read(&output).unwrap() == expected, "{context}");
            } else {
                assert_eq!(run.status.code(), Some(1), "{context}");
                assert!(stderr.starts_with("error: ") && stderr.lines().count() == 1, "{context}");
                assert!(stderr.contains("no further thread"), "{context}");
                assert!(!output.exists(), "{context}");
            }
            let left = unexpected_files(folder.path(), name);
            assert!(
                left.iter().all(|name| ["v.png", "bad.png", "d"].contains(&&**name)),
                "{context} {left:?}"
            );
        }
        assert_eq!(codes.last(), Some(&whole), "{line}: {codes:?}");
        fs::remove_file(&output).unwrap_or_default();
    }
}

#[test]
fn thread_count_is_capped() {
    let output = gpuproc().args(["--threads", "4000", "devices", "--json"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let devices: serde_json::Value = serde_json::from_str(&text).unwrap();
    let name = devices[0]["name"].as_str().unwrap();
    let threads: usize = name.split(' ').next().unwrap().parse().unwrap();
    let cores = thread::available_parallelism().unwrap().get();
    assert_eq!(threads, 4 * cores.max(2), "{name}");
}

#[test]
fn reports_missing_temporary_folder() {
    let folder = folder();
    let line = "mesh v_64x64x64_uint8.raw - --iso 80 --max-memory 2M";
    for (tmpdir, succeeds) in [("/nowhere", false), ("", true)] {
        let output = command(folder.path(), line).env("TMPDIR", tmpdir).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), succeeds, "{stderr}");
        assert!(succeeds || stderr.contains("in /nowhere (TMPDIR): No such file"), "{stderr}");
    }
}

#[test]
fn closed_output_pipe_is_not_an_error() {
    let folder = folder();
    for line in [
        "scan n.u32 -",
        "scan --format text n.txt -",
        "blur --dry-run a.png o.png",
        "histogram a.png",
    ] {
        fs::write(folder.path().join("n.txt"), "1 2 3 4 5 6 7 8 9\n".repeat(9000)).unwrap();
        let mut child = command(folder.path(), line);
        let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && stderr.is_empty(), "{line}: {} {stderr}", output.status);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn stderr_write_errors_are_ignored_and_stdout_write_errors_reported() {
    let folder = folder();
    let full = || File::create("/dev/full").unwrap();
    let line = "mesh v_64x64x64_uint8.raw o.ply --iso 80 --timings";
    assert_eq!(command(folder.path(), line).stderr(full()).status().unwrap().code(), Some(0));
    let line = "blur missing.png o.png";
    assert_eq!(command(folder.path(), line).stderr(full()).status().unwrap().code(), Some(7));
    for line in ["histogram a.png", "scan n.u32 -", "devices", "blur --dry-run a.png o.png"] {
        let status = command(folder.path(), line).stdout(full()).stderr(Stdio::null()).status();
        assert_eq!(status.unwrap().code(), Some(7), "{line}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn rejects_output_folders_that_are_not_writable() {
    let folder = folder();
    // Not even root can create files in /proc.
    for (line, name) in COMMANDS {
        let line = line.replace(name, &format!("/proc/{name}"));
        let output = command(folder.path(), &line).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "{line}: {stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains("/proc/"), "{line}: {stderr}");
    }
}

#[test]
fn output_may_replace_the_input() {
    let folder = folder();
    for (line, name, input) in [
        ("blur a.png o.png --sigma 2", "o.png", "a.png"),
        ("scan n.u32 o.u32", "o.u32", "n.u32"),
        ("sort n.u32 o.u32", "o.u32", "n.u32"),
        ("histogram a.png --auto-levels o.png", "o.png", "a.png"),
    ] {
        assert!(command(folder.path(), line).status().unwrap().success(), "{line}");
        let expected = fs::read(folder.path().join(name)).unwrap();
        fs::copy(folder.path().join(input), folder.path().join(name)).unwrap();
        let line = line.replace(input, name);
        assert!(command(folder.path(), &line).status().unwrap().success(), "{line}");
        assert!(fs::read(folder.path().join(name)).unwrap() == expected, "{line}");
    }
}

#[test]
fn writes_outputs_to_named_pipes() {
    let folder = folder();
    for (line, name) in COMMANDS {
        let path = folder.path().join(name);
        assert!(command(folder.path(), line).status().unwrap().success(), "{line}");
        let expected = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success(), "mkfifo(1) failed");
        let reader = thread::spawn({
            let path = path.clone();
            move || fs::read(path).unwrap()
        });
        assert!(command(folder.path(), line).status().unwrap().success(), "{line}");
        assert!(reader.join().unwrap() == expected, "{line}");
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn concurrent_runs_leave_one_complete_output() {
    let folder = folder();
    let lines = ["scan n.u32 o.npy", "scan --inclusive n.u32 o.npy"];
    let results = lines.map(|line| {
        assert!(command(folder.path(), line).status().unwrap().success(), "{line}");
        fs::read(folder.path().join("o.npy")).unwrap()
    });
    for _ in 0..5 {
        let mut runs = lines.map(|line| command(folder.path(), line).spawn().unwrap());
        assert!(runs.iter_mut().all(|run| run.wait().unwrap().success()));
        let found = fs::read(folder.path().join("o.npy")).unwrap();
        assert!(results.contains(&found));
        assert!(unexpected_files(folder.path(), "o.npy").is_empty());
    }
    // With --no-clobber, one run wins and the other fails.
    fs::remove_file(folder.path().join("o.npy")).unwrap();
    let mut runs = lines.map(|line| {
        let line = format!("--no-clobber {line}");
        command(folder.path(), &line).stderr(Stdio::null()).spawn().unwrap()
    });
    let codes: Vec<_> = runs.iter_mut().map(|run| run.wait().unwrap().code()).collect();
    assert!(
        codes.contains(&Some(0)) && codes.iter().all(|c| matches!(c, Some(0 | 7))),
        "{codes:?}"
    );
    assert!(results.contains(&fs::read(folder.path().join("o.npy")).unwrap()));
}

#[test]
fn file_that_shrinks_while_it_is_read_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("n.u32");
    // The file is larger than the read-ahead. It is sparse, so it takes no disk space.
    let file = File::create(&path).unwrap();
    file.set_len((8 << 26) + 400).unwrap();
    let mut child = command(folder.path(), "scan n.u32 -");
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    // Once the first numbers have arrived, the run waits until the pipe is read.
    stdout.read_exact(&mut [0; 1000]).unwrap();
    file.set_len((7 << 26) + 4).unwrap();
    stdout.read_to_end(&mut Vec::new()).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{stderr}");
    assert!(stderr.contains("truncated: 16777315 numbers are missing"), "{stderr}");
    // A pipe that ends before the volume is complete.
    let mut child = command(folder.path(), "mesh - o.ply --iso 1 --dims 64x64x64");
    let mut child = child.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&[7; 100_000]).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(4));
    assert_absent(folder.path().join("o.ply"));
}

#[test]
fn concurrent_runs_share_a_gpu() {
    if subjects().is_empty() {
        return;
    }
    let folder = folder();
    let count = env::var("GPUPROC_KILL_TRIES").map_or(4, |_| 8);
    for (line, name) in [COMMANDS[0], COMMANDS[4]] {
        assert!(command(folder.path(), line).status().unwrap().success(), "{line}");
        let expected = fs::read(folder.path().join(name)).unwrap();
        let runs = (0..count).map(|i| {
            let own = format!("{i}{name}");
            let child = Command::new(program())
                .current_dir(folder.path())
                .args(["-q", "--device", "gpu"])
                .args(line.replace(name, &own).split(' '))
                .spawn()
                .unwrap();
            (own, child)
        });
        for (own, mut child) in runs.collect::<Vec<_>>() {
            assert!(child.wait().unwrap().success(), "{line}");
            let path = folder.path().join(own);
            assert!(fs::read(&path).unwrap() == expected, "{line}");
            fs::remove_file(path).unwrap();
        }
    }
}

/// One run with 60 images. `GPUPROC_LOAD` sets another number.
#[cfg(target_os = "linux")]
#[test]
fn long_batch_skips_bad_files_in_bounded_memory() {
    let count: usize = env::var("GPUPROC_LOAD").map_or(60, |count| count.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut noise = Noise(9);
    // Eleven kinds of files: images of four formats in two sizes, and three kinds of broken files.
    let kinds: Vec<(String, Vec<u8>, bool)> = (0..11)
        .map(|kind| {
            let (side, extension) =
                (100 + 150 * (kind / 4), ["png", "jpg", "bmp", "tif"][kind % 4]);
            let path = folder.join(format!("kind.{extension}"));
            let pixels = noise.bytes(side * side * 3);
            let side = side as u32;
            image::save_buffer(&path, &pixels, side, side, image::ColorType::Rgb8).unwrap();
            let mut file = fs::read(&path).unwrap();
            match kind {
                8 => file.truncate(40),
                9 => file.clear(),
                10 => file[..8].fill(7),
                _ => {}
            }
            fs::remove_file(path).unwrap();
            (extension.to_owned(), file, kind < 8)
        })
        .collect();
    let name = |i: usize| format!("{i:05}.{}", kinds[i % 11].0);
    let mut expected = Vec::new();
    for (i, (extension, file, good)) in kinds.iter().enumerate() {
        fs::write(folder.join(name(i)), file).unwrap();
        let line = format!("blur {} one.png --sigma 2", name(i));
        assert_eq!(command(folder, &line).stderr(Stdio::null()).status().unwrap().success(), *good);
        let effort = if extension == "png" { " --compression 0" } else { "" };
        let line = format!("blur {} --out-dir single --sigma 2{effort}", name(i));
        command(folder, &line).stderr(Stdio::null()).status().unwrap();
        expected.push(fs::read(folder.join("single").join(name(i))).ok());
    }
    (11..count).for_each(|i| fs::write(folder.join(name(i)), &kinds[i % 11].1).unwrap());
    let mut child = command(folder, "blur --out-dir out --sigma 2 --compression 0");
    child.args((0..count).map(name)).stderr(File::create(folder.join("stderr")).unwrap());
    let mut child = child.spawn().unwrap();
    let (status, peak) = peak_memory(&mut child);
    let stderr = fs::read_to_string(folder.join("stderr")).unwrap();
    assert_eq!(status.code(), Some(3), "{stderr}");
    for i in 0..count {
        let found = fs::read(folder.join("out").join(name(i))).ok();
        assert!(found == expected[i % 11], "{}", name(i));
        assert_eq!(stderr.contains(&name(i)), found.is_none(), "{}: {stderr}", name(i));
    }
    println!("{count} images, peak {} MiB", peak >> 10);
    assert!(peak < 100 << 10, "{peak} KiB for small images");
}

#[test]
fn full_disk_is_an_error_and_leaves_no_partial_output() {
    let folder = folder();
    let runs = [COMMANDS[0], COMMANDS[2], COMMANDS[4], COMMANDS[5]];
    for (line, name) in runs {
        // Exceeding the file size limit is an error like a full disk, whether or not SIGXFSZ is ignored.
        let trap = if name == "o.png" { "trap '' XFSZ;" } else { "" };
        let script = format!("{trap} ulimit -f 60; exec \"$0\" -q --device cpu {line}");
        let mut run = Command::new("sh");
        let run = run.current_dir(folder.path()).arg("-c").arg(script).arg(program());
        let output = run.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "{line}: {stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains(name), "{line}: {stderr}");
        assert!(
            !folder.path().join(name).exists() && unexpected_files(folder.path(), name).is_empty()
        );
    }
    // A small file system, if the user may mount one.
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    for (line, name) in runs {
        let line = line.replace(name, &format!("disk/{name}"));
        let script = format!(
            "mount -t tmpfs -o size=64k none disk || exit 99
             \"$0\" -q --device cpu {line}; code=$?
             ls -A disk | grep . && exit 98
             exit $code"
        );
        let mut run = Command::new("unshare");
        let run = run.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
        let Ok(output) = run.arg(program()).current_dir(folder.path()).output() else {
            return ignore("needs unshare(1) to mount a small file system");
        };
        let stderr = String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(99) || stderr.starts_with("unshare:") {
            return ignore("cannot mount a small file system on this machine");
        }
        assert_eq!(output.status.code(), Some(7), "{line}: {stderr}");
        assert!(stderr.contains("No space left"), "{line}: {stderr}");
    }
}
