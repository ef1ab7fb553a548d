//! Runs that are stopped by a signal, a crash or a timeout: an output is complete or absent.
//!
//! `GPUPROC_KILL_TRIES=500 cargo test --test suite stopped_runs::` stops every command this many times.
#![cfg(unix)]

use std::{
    env, fs,
    io::Write,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use predicates::str::contains;
use tempfile::TempDir;

use crate::{
    common::{Noise, gpuproc, program},
    files::{COMMANDS, command, folder, unexpected_files},
    harness::ignore,
};

#[test]
fn stopped_run_leaves_a_complete_output_or_none() {
    const SIGNALS: [&str; 9] =
        ["INT", "TERM", "HUP", "KILL", "QUIT", "USR1", "ALRM", "XCPU", "VTALRM"];
    let tries: usize = env::var("GPUPROC_KILL_TRIES").map_or(9, |tries| tries.parse().unwrap());
    let mut noise = Noise(tries as u64);
    let mut stopped = 0;
    for (line, name) in COMMANDS {
        let folder = folder();
        let output = folder.path().join(name);
        let start = std::time::Instant::now();
        assert!(command(folder.path(), line).status().unwrap().success(), "{line}");
        let whole = fs::read(&output).unwrap();
        let lasts = start.elapsed().as_micros() as u64;
        for round in 0..tries {
            fs::remove_file(&output).ok();
            let signal = SIGNALS[round % SIGNALS.len()];
            let mut child = command(folder.path(), line).stderr(Stdio::null()).spawn().unwrap();
            thread::sleep(Duration::from_micros(noise.next() % (lasts + lasts / 4)));
            let kill = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
            assert!(kill.unwrap().success());
            let status = child.wait().unwrap();
            let by = status.signal();
            let ending = [1, 2, 3, 9, 10, 14, 15, 24, 26];
            assert!(
                by.is_some_and(|by| ending.contains(&by)) || status.success(),
                "{line}: {status:?}"
            );
            stopped += usize::from(by.is_some());
            if let Ok(found) = fs::read(&output) {
                assert!(found == whole, "{line}: SIG{signal} leaves {} bytes", found.len());
            }
            let left = unexpected_files(folder.path(), name);
            // No process can clean up after SIGKILL, but temporary files are recognisable by their names.
            let parts = left.iter().filter(|n| n.starts_with(".gpuproc-") && n.ends_with(".part"));
            let allowed = usize::from(by == Some(9));
            assert!(parts.count() == left.len() && left.len() <= allowed, "{line}: {left:?}");
            left.iter().for_each(|name| fs::remove_file(folder.path().join(name)).unwrap());
        }
    }
    assert!(stopped > 0, "every run ended before its signal");
    println!("{stopped} of {} runs were stopped", tries * COMMANDS.len());
}

/// Starts a run and waits until it has opened its output and waits for input.
#[cfg(target_os = "linux")]
fn start_waiting_run() -> (TempDir, Child) {
    let folder = tempfile::tempdir().unwrap();
    let mut child = command(folder.path(), "scan - o.txt");
    let mut child = child.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_output(&mut child, folder.path());
    (folder, child)
}

/// Waits until `child` has opened a file in `folder`.
#[cfg(target_os = "linux")]
fn wait_for_output(child: &mut Child, folder: &Path) {
    let files = format!("/proc/{}/fd", child.id());
    let is_output = |file: fs::DirEntry| {
        let target = fs::read_link(file.path()).unwrap_or_default();
        target.starts_with(folder) && target != folder
    };
    for _ in 0..2000 {
        if fs::read_dir(&files).unwrap().any(|file| is_output(file.unwrap())) {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    panic!("the run did not open its output");
}

/// Runs that write into one folder do not lose it when the run that has created it fails or is stopped. The last run
/// removes it, unless there is an output in it.
#[cfg(target_os = "linux")]
#[test]
fn a_failed_run_keeps_the_folder_of_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let start = |name: &str| {
        let fifo = folder.path().join(name);
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success(), "mkfifo(1) failed");
        let line = format!("threshold {name} -o out/ --value 3");
        let mut child = command(folder.path(), &line).stderr(Stdio::null()).spawn().unwrap();
        // Opening it for reading as well does not wait.
        let mut input = fs::OpenOptions::new().read(true).write(true).open(fifo).unwrap();
        let header = b"NRRD0004\ntype: uint8\ndimension: 3\nsizes: 64 64 64\nencoding: raw\n\n";
        input.write_all(header).unwrap();
        input.write_all(&[0; 4000]).unwrap();
        wait_for_output(&mut child, &out);
        (child, input)
    };
    for is_stopped in [false, true] {
        let names = ["a", "b"].map(|name| format!("{name}{is_stopped}.nrrd"));
        let (mut failing, input) = start(&names[0]);
        let (mut other, mut whole) = start(&names[1]);
        if is_stopped {
            let kill = Command::new("kill").arg(failing.id().to_string()).status();
            assert!(kill.unwrap().success());
        }
        drop(input);
        let status = failing.wait().unwrap();
        let ended = if is_stopped { (None, Some(15)) } else { (Some(4), None) };
        assert_eq!((status.code(), status.signal()), ended);
        whole.write_all(&vec![0; 64 * 64 * 64 - 4000]).unwrap();
        drop(whole);
        assert!(other.wait().unwrap().success());
        assert!(out.join(&names[1]).is_file());
        fs::remove_dir_all(&out).unwrap();
    }
    let (mut last, _input) = start("c.nrrd");
    let kill = Command::new("kill").arg(last.id().to_string()).status();
    assert!(kill.unwrap().success() && !last.wait().unwrap().success() && !out.exists());
}

/// Whether the file system of this folder supports unnamed files (O_TMPFILE).
#[cfg(target_os = "linux")]
fn supports_unnamed_files(folder: &Path) -> bool {
    let stat = Command::new("stat").args(["-f", "-c", "%T"]).arg(folder).output();
    let kind = stat.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    kind.is_ok_and(|kind| ["ext2/ext3", "xfs", "btrfs", "tmpfs"].contains(&kind.as_str()))
}

#[cfg(target_os = "linux")]
#[test]
fn killed_or_crashed_run_leaves_no_files() {
    // No handler can clean up after these signals.
    for (signal, name) in [
        ("KILL", None),
        ("SEGV", Some("SIGSEGV")),
        ("ABRT", Some("SIGABRT")),
        ("BUS", Some("SIGBUS")),
        ("ILL", Some("SIGILL")),
        ("FPE", Some("SIGFPE")),
    ] {
        let (folder, child) = start_waiting_run();
        if !supports_unnamed_files(folder.path()) {
            let mut child = child;
            child.kill().unwrap();
            child.wait().unwrap();
            return ignore("the file system may not support unnamed files");
        }
        let kill = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
        assert!(kill.unwrap().success());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        match name {
            None => assert_eq!(output.status.signal(), Some(9)),
            Some(name) => {
                assert_eq!(output.status.code(), Some(1), "{name}: {stderr}");
                assert!(stderr.starts_with("error: ") && stderr.contains(name), "{stderr}");
                assert_eq!(stderr.lines().count(), 1, "{stderr}");
            }
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "{signal}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn signals_ignored_at_the_start_stay_ignored() {
    let folder = folder();
    // nohup(1) and shells with background jobs start programs like this.
    let script = "trap '' HUP QUIT; exec \"$0\" --device cpu scan - o.txt";
    let mut child = Command::new("sh");
    let child = child.current_dir(folder.path()).arg("-c").arg(script).arg(program());
    let mut child = child.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"1 2 3").unwrap();
    let status = format!("/proc/{}/status", child.id());
    let caught = |line: &str| {
        line.strip_prefix("SigCgt:").is_some_and(|set| set.trim() > "0000000000000100")
    };
    while !fs::read_to_string(&status).unwrap().lines().any(caught) {
        thread::sleep(Duration::from_millis(5));
    }
    thread::sleep(Duration::from_millis(100));
    for signal in ["HUP", "QUIT"] {
        let kill = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
        assert!(kill.unwrap().success());
    }
    thread::sleep(Duration::from_millis(100));
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert_eq!(fs::read_to_string(folder.path().join("o.txt")).unwrap(), "0 1 3");
}

#[test]
fn timeout_ends_the_run_without_an_output() {
    let folder = folder();
    let fifo = folder.path().join("never.raw");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success(), "mkfifo(1) failed");
    let before = fs::read_dir(folder.path()).unwrap().count();
    for line in [
        "mesh never.raw --dims 9x9x9 --iso 1 o.ply",
        "blur never.raw o.raw --dims 9x9x9",
        "scan never.raw o.npy",
    ] {
        gpuproc()
            .current_dir(folder.path())
            .args(["--device", "cpu", "--timeout", "0.2"])
            .args(line.split(' '))
            .assert()
            .code(124)
            .stderr(contains("error: stopped after 0.2 s (--timeout)\n"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), before, "{line}");
    }
    gpuproc().args(["--timeout", "0", "devices"]).assert().code(2);
    gpuproc()
        .args(["--timeout", "60", "--device", "cpu", "scan", "-"])
        .write_stdin("1 2")
        .assert()
        .success();
}
