//! Standard streams that are closed, open in the wrong direction or closed by their reader; outputs that are open
//! files; file names and texts of any bytes.
#![cfg(unix)]

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::Read,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::Path,
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;

use crate::common::{Noise, gpuproc, program};

/// A folder with a small input of each kind.
fn input_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut noise = Noise(11);
    let picture = noise.bytes(300 * 200 * 3);
    let path = folder.path().join("a.png");
    image::save_buffer(path, &picture, 300, 200, image::ColorType::Rgb8).unwrap();
    fs::write(folder.path().join("v_16x16x16_uint8.raw"), noise.bytes(16 * 16 * 16)).unwrap();
    fs::write(folder.path().join("n.txt"), "3 1 2\n").unwrap();
    folder
}

/// Runs `gpuproc LINE` in a shell, which applies the redirections.
fn shell(folder: &Path, line: &str) -> Output {
    let script = format!("exec \"$0\" --device cpu {line}");
    let mut shell = Command::new("sh");
    let shell = shell.current_dir(folder).arg("-c").arg(script).arg(program());
    shell.env_remove("GPUPROC_DEVICE").output().unwrap()
}

fn assert_fails(folder: &Path, line: &str, message: &str) {
    let output = shell(folder, line);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{line}: {stderr}");
    assert!(stderr.starts_with("error: ") && stderr.contains(message), "{line}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{line}: {stderr}");
}

#[test]
fn rejects_closed_or_unreadable_standard_input() {
    let folder = input_folder();
    let before = fs::read_dir(&folder).unwrap().count();
    for line in [
        "scan -",
        "scan - o.npy",
        "scan /dev/stdin",
        "scan --inclusive n.txt --by-key /dev/fd/0 o.txt",
        "sort",
        "blur - o.png",
        "blur - o.raw --dims 4x4x4 --dtype u8",
        "mesh - o.ply --iso 1 --dims 4x4x4 --dtype u8",
        "histogram - -o h.csv",
        "info -",
    ] {
        assert_fails(folder.path(), &format!("{line} <&-"), "it is closed");
        let line = format!("{line} 0>/dev/null");
        assert_fails(folder.path(), &line, "it is open for writing only");
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), before);
    // An empty input is valid.
    let output = shell(folder.path(), "scan - </dev/null");
    assert!(output.status.success() && output.stdout.is_empty());
}

#[test]
fn rejects_closed_or_unwritable_standard_output() {
    let folder = input_folder();
    for line in [
        "scan n.txt",
        "scan n.txt -",
        "scan n.txt /dev/stdout",
        "sort n.txt",
        "sort n.txt o.txt --payload n.txt --payload-output -",
        "-q blur v_16x16x16_uint8.raw -",
        "blur --dry-run a.png o.png",
        "histogram a.png",
        "histogram --picture a.png",
        "mesh v_16x16x16_uint8.raw - --iso 80",
        "mesh v_16x16x16_uint8.raw - --iso 80 --stats",
        "info a.png",
        "info --json a.png",
        "devices",
        "completions bash",
        "--help",
        "--version",
        "scan --help",
    ] {
        assert_fails(folder.path(), &format!("{line} >&-"), "it is closed");
        let line = format!("{line} 1</dev/null");
        assert_fails(folder.path(), &line, "it is open for reading only");
    }
    // Python opens `subprocess.DEVNULL` for reading and writing.
    let output = shell(folder.path(), "scan - 0<>/dev/null 1<>/dev/null");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn closed_pipe_does_not_affect_the_other_outputs() {
    let folder = input_folder();
    let numbers: Vec<u8> = Noise(3).bytes(4 << 18);
    fs::write(folder.path().join("n.u32"), &numbers).unwrap();
    for (line, name) in [
        ("histogram a.png -o - -o h.json", "h.json"),
        ("histogram a.png -o h.json --picture", "h.json"),
        ("histogram a.png --equalize e.png -o -", "e.png"),
        ("mesh v_16x16x16_uint8.raw - --iso 80 --preview p.png", "p.png"),
        ("sort n.u32 - --payload n.u32 --payload-output p.u32", "p.u32"),
        ("sort n.u32 o.u32 --payload n.u32 --payload-output -", "o.u32"),
    ] {
        let expected = {
            assert!(shell(folder.path(), line).status.success(), "{line}");
            fs::read(folder.path().join(name)).unwrap()
        };
        fs::remove_file(folder.path().join(name)).unwrap();
        let mut child = Command::new(program());
        child.current_dir(&folder).args(["--device", "cpu", "-q"]).args(line.split(' '));
        let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        let status = child.wait().unwrap();
        assert!(status.success() && stderr.is_empty(), "{line}: {status} {stderr}");
        assert!(fs::read(folder.path().join(name)).unwrap() == expected, "{line}");
    }
}

#[test]
fn appends_to_open_file_descriptors() {
    let folder = input_folder();
    let log = folder.path().join("log");
    for (output, redirection) in [
        ("/dev/stdout", ">>log"),
        ("/dev/fd/1", ">>log"),
        ("/proc/self/fd/1", ">>log"),
        ("link", ">>log"),
        ("/dev/fd/3", "3>>log"),
        ("/dev/stderr", "2>>log"),
        ("-", ">>log"),
    ] {
        if output.starts_with("/proc") && !cfg!(target_os = "linux") {
            continue;
        }
        let _ = std::os::unix::fs::symlink("/dev/stdout", folder.path().join("link"));
        fs::write(&log, "kept\n").unwrap();
        let inode = fs::metadata(&log).unwrap().ino();
        for clobber in ["", "--no-clobber"] {
            let line = format!("{clobber} scan n.txt {output} {redirection}");
            let run = shell(folder.path(), &line);
            assert!(run.status.success(), "{line}: {run:?}");
        }
        assert_eq!(fs::read_to_string(&log).unwrap(), "kept\n0 3 4\n0 3 4\n", "{output}");
        assert_eq!(fs::metadata(&log).unwrap().ino(), inode, "{output} replaces the file");
    }
}

#[test]
fn rejects_two_outputs_to_the_same_file() {
    let folder = input_folder();
    let before = fs::read_dir(&folder).unwrap().count();
    for line in [
        "sort n.txt z --payload n.txt --payload-output ./z",
        "sort n.txt - --payload n.txt --payload-output /dev/stdout",
        "sort n.txt --payload n.txt --payload-output -",
        "mesh v_16x16x16_uint8.raw z.png --format ply --iso 1 --preview z.png",
        "mesh v_16x16x16_uint8.raw z-{iso}.ply --iso 60,60.0",
        "mesh v_16x16x16_uint8.raw z-{iso}.png --format ply --iso 60 --preview z-60.png",
        "histogram a.png -o z.csv -o z.csv",
        "histogram a.png -o z.png --equalize ./z.png",
        "histogram a.png --auto-levels z.png --equalize z.png",
        "histogram a.png -o - -o -",
        "histogram a.png -o - --picture",
        "blur a.png ./a.png --out-dir z",
        "bench copy -o z.csv -o z.csv",
    ] {
        let output = shell(folder.path(), line);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {stderr}");
        assert!(
            stderr.contains("would be")
                || stderr.contains("must differ")
                || stderr.contains("for two outputs"),
            "{line}: {stderr}"
        );
    }
    // An output that is the same file as standard output.
    let output = shell(folder.path(), "histogram a.png -o - -o z.csv >z.csv");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    fs::remove_file(folder.path().join("z.csv")).unwrap();
    assert_eq!(fs::read_dir(&folder).unwrap().count(), before);
    // /dev/null may be named twice.
    let line = "sort n.txt /dev/null --payload n.txt --payload-output /dev/null";
    assert!(shell(folder.path(), line).status.success());
}

#[test]
fn escapes_control_characters_in_messages() {
    let folder = input_folder();
    let name = "a\u{1b}]0;title\u{7}\u{1b}[2J.png";
    fs::copy(folder.path().join("a.png"), folder.path().join(name)).unwrap();
    fs::write(folder.path().join("bad.txt"), "1 \u{1b}[31mx 2").unwrap();
    fs::write(folder.path().join("bad\u{9b}2J.txt"), "1 x").unwrap();
    let lines: [&[&str]; 9] = [
        &["info", name],
        &["histogram", "--picture", name],
        &["blur", "--dry-run", name, "o.png"],
        &["blur", "missing\u{1b}[5m.png", "o.png"],
        &["blur", name, "o.\u{1b}[5m"],
        &["scan", "bad.txt"],
        &["scan", "bad\u{9b}2J.txt"],
        &["scan", "n.txt", "--type", "\u{1b}[31m"],
        &["\u{1b}[31m"],
    ];
    for arguments in lines {
        let output = gpuproc().current_dir(&folder).args(arguments).output().unwrap();
        for text in [output.stdout, output.stderr] {
            let text = String::from_utf8(text).unwrap();
            let control = text.chars().find(|char| char.is_control() && *char != '\n');
            assert_eq!(control, None, "{arguments:?}: {text:?}");
        }
    }
    let output = gpuproc().current_dir(&folder).args(["info", name]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("a\\u{1b}]0;title\\u{7}\\u{1b}[2J.png: PNG"), "{text}");
}

#[test]
fn file_names_need_not_be_utf8() {
    let folder = input_folder();
    let non_utf8 =
        |end: &str| OsString::from_iter([OsStr::from_bytes(b"\xff\xfe"), OsStr::new(end)]);
    let at = |name: &OsStr| folder.path().join(name);
    for (from, to) in
        [("a.png", "a.png"), ("v_16x16x16_uint8.raw", "_16x16x16_uint8.raw"), ("n.txt", "n.txt")]
    {
        fs::copy(at(OsStr::new(from)), at(&non_utf8(to))).unwrap();
    }
    let run = |arguments: &[&OsStr], output: OsString| {
        gpuproc().current_dir(&folder).args(["--device", "cpu"]).args(arguments).assert().success();
        assert!(at(&output).is_file(), "{arguments:?} {output:?}");
        fs::remove_file(at(&output)).unwrap();
    };
    let word = OsStr::new;
    let (picture, volume) = (non_utf8("a.png"), non_utf8("_16x16x16_uint8.raw"));
    run(&[word("scan"), &non_utf8("n.txt"), &non_utf8("o.txt")], non_utf8("o.txt"));
    run(&[word("sort"), &non_utf8("n.txt"), &non_utf8("o.txt")], non_utf8("o.txt"));
    run(&[word("blur"), &picture, &non_utf8("o.png")], non_utf8("o.png"));
    run(&[word("histogram"), &picture, word("-o"), &non_utf8("o.csv")], non_utf8("o.csv"));
    run(&[word("mesh"), &volume, word("--iso"), word("9")], non_utf8("_16x16x16_uint8.ply"));
    run(
        &[word("mesh"), &volume, &non_utf8("{iso}.ply"), word("--iso"), word("9")],
        non_utf8("9.ply"),
    );
    let numbered = [word("mesh"), &volume, &non_utf8("m.ply"), word("--iso"), word("8,9")];
    run(&numbered, non_utf8("m-9.ply"));
    let mut inside = OsString::from("d/");
    inside.push(&picture);
    run(&[word("blur"), &picture, word("--out-dir"), word("d")], inside);
}

#[test]
fn ignores_an_empty_device_variable() {
    let run = |device: &str| {
        let mut run = gpuproc();
        run.env("GPUPROC_DEVICE", device).args(["-v", "scan", "-"]).write_stdin("1 2 3");
        String::from_utf8(run.assert().success().get_output().stderr.clone()).unwrap()
    };
    assert_eq!(run(""), run("auto"));
}

#[test]
fn accepts_a_byte_order_mark_before_text() {
    let folder = input_folder();
    for (text, expected) in [
        ("\u{feff}1 2 3", "\u{feff}0 1 3"),
        ("\u{feff}", "\u{feff}"),
        ("\u{feff}\n1,2\n", "\u{feff}\n0,1\n"),
        ("1", "0"),
    ] {
        gpuproc().args(["scan", "-"]).write_stdin(text).assert().success().stdout(expected);
    }
    for text in ["\u{feff}\u{feff}1", "1 \u{feff}2"] {
        gpuproc().args(["scan", "-"]).write_stdin(text).assert().code(4);
    }
    fs::write(folder.path().join("keys.txt"), "\u{feff}7 7 8").unwrap();
    let line = "scan --inclusive n.txt --by-key keys.txt";
    assert_eq!(shell(folder.path(), line).stdout, b"3 4 2\n");
}

/// Otsu's threshold depends on all samples, which are read again for the mask.
#[test]
fn a_pipe_that_is_needed_twice_has_to_fit_into_memory() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = Noise(12).bytes(64 * 64 * 100);
    fs::write(folder.path().join("v_64x64x100_uint8.raw"), &bytes).unwrap();
    let threshold = |input: &str, more: &str| {
        let mut command = gpuproc();
        let line = format!("threshold {input} --otsu {more} --device cpu");
        command.current_dir(&folder).args(line.split_whitespace());
        command
    };
    let shape = "--dims 64x64x100 --dtype uint8";
    threshold("v_64x64x100_uint8.raw", "-o file.nrrd --max-memory 200k").assert().success();
    let piped =
        |more: &str| threshold("-", &format!("{shape} {more}")).write_stdin(&bytes[..]).assert();
    piped("-o pipe.nrrd").success();
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("pipe.nrrd"), read("file.nrrd"));
    let message = "error: standard input: a pipe can be read only once; raise --max-memory\n";
    piped("-o small.nrrd --max-memory 200k").code(4).stderr(message);
    assert!(!folder.path().join("small.nrrd").exists());
}
