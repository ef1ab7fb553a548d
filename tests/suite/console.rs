//! Console sessions as tests: `tests/snapshots/*.console`, the `console` blocks of the README and of the
//! guide (`src/guide`), and the examples that end each command's help.
//!
//! A line `$ COMMAND` is run by a shell in a folder of small inputs. The lines below it are its output on both streams,
//! and `? CODE` is its exit code if it fails. A group of options that an earlier help of the session has shown is one
//! line. `GPUPROC_BLESS=1 cargo test --test suite console::` writes the current output into these files.
#![cfg(unix)]

use std::{
    collections::BTreeMap,
    env, fs,
    io::Write,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use flate2::{Compression, write::GzEncoder};
use image::{ColorType, ImageFormat, save_buffer_with_format};
use tempfile::TempDir;

use crate::common::{Noise, program};

/// Splits a session before each `$ `. The first step is the text before the first command.
fn steps(session: &str) -> Vec<String> {
    let mut steps = vec![String::new()];
    for line in session.split_inclusive('\n') {
        if line.starts_with("$ ") {
            steps.push(String::new());
        }
        *steps.last_mut().expect("never empty") += line;
    }
    steps
}

/// Shortens the help of a command: each group that equals one of an earlier help becomes a line, which names that help.
/// `shown` has the groups so far, each with the command that printed it. Other steps are returned unchanged.
fn shorten(step: String, shown: &mut BTreeMap<String, String>) -> String {
    let (command, text) = step.split_once('\n').unwrap_or_default();
    let Some(command) = command.strip_prefix("$ ").filter(|name| name.ends_with("--help")) else {
        return step;
    };
    let mut groups = vec![String::new()];
    for line in text.split_inclusive('\n') {
        if line.ends_with(":\n") && !line.starts_with(' ') {
            groups.push(String::new());
        }
        *groups.last_mut().expect("never empty") += line;
    }
    let mut short = format!("$ {command}\n");
    for group in groups {
        match shown.get(group.trim_end()) {
            Some(earlier) => {
                let heading = group.lines().next().unwrap_or_default();
                short += &format!("{heading} as in {earlier}\n");
            }
            None => {
                shown.insert(group.trim_end().to_owned(), command.to_owned());
                short += &group;
            }
        }
    }
    short
}

/// A folder with the inputs of the examples, and a `PATH` with the program under test.
struct Sandbox(TempDir);

impl Sandbox {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        for home in
            [".zfunc", ".config/fish/completions", ".local/share/bash-completion/completions"]
        {
            fs::create_dir_all(path.join(home)).unwrap();
        }
        let programs = path.join(".programs");
        fs::create_dir(&programs).unwrap();
        symlink(program(), programs.join("gpuproc")).unwrap();
        symlink(repository_path("fixtures"), path.join("fixtures")).unwrap();
        // Stand-ins for other programs that the examples run.
        for (name, script) in [
            ("curl", "cat photo.png"),
            ("generate", "printf 12345678abcdefgh"),
            ("consume", "cat >/dev/null"),
            ("meshlab", "cat \"$1\" >/dev/null"),
            ("jq", "cat >/dev/null"),
        ] {
            let file = programs.join(name);
            fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        write_pictures(path);
        write_volumes(path);
        write_numbers(path);
        Self(folder)
    }

    /// Runs a command. Returns its output and its exit code.
    fn run(&self, command: &str) -> (String, i32) {
        let folder = self.0.path();
        let path = format!("{}:{}", folder.join(".programs").display(), env::var("PATH").unwrap());
        let output = Command::new("sh")
            .args(["-c", &format!("{{ {command}\n}} 2>&1")])
            .current_dir(folder)
            .env_clear()
            .envs([("PATH", path.as_str()), ("HOME", folder.to_str().unwrap())])
            .envs([("GPUPROC_DEVICE", "cpu"), ("TERM", "dumb")])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).expect("commands print text");
        let lines = text.trim_end().lines();
        (
            lines.map(|line| format!("{}\n", line.trim_end())).collect(),
            output.status.code().unwrap_or(-1),
        )
    }

    /// Runs a step again and returns it with its current output. Keeps the empty lines that follow it. `with_codes`
    /// adds exit codes.
    fn replay(&self, step: &str, with_codes: bool) -> String {
        let Some(line) = step.strip_prefix("$ ") else { return step.to_owned() };
        let command = line.lines().next().unwrap_or_default();
        let (text, code) = self.run(command);
        let code = if code != 0 && with_codes { format!("? {code}\n") } else { String::new() };
        let empty = "\n".repeat(step.len() - step.trim_end_matches('\n').len() - 1);
        format!("$ {command}\n{text}{code}{empty}")
    }

    /// Runs a session again. Returns it with its current outputs, and the steps whose output has changed.
    fn replay_all(&self, session: &str, with_codes: bool) -> (String, Vec<String>) {
        let (mut now, mut differences) = (String::new(), Vec::new());
        let mut shown = BTreeMap::new();
        for step in steps(session) {
            let replayed = shorten(self.replay(&step, with_codes), &mut shown);
            if replayed != step {
                differences.push(format!("{step}is now\n{replayed}"));
            }
            now += &replayed;
        }
        (now, differences)
    }
}

fn repository_path(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Writes images, and the slices of a volume.
fn write_pictures(folder: &Path) {
    const SIZE: [u32; 2] = [64, 48];
    let save = |name: &str, samples: &[u8], colour| {
        let (path, format) = (folder.join(name), ImageFormat::from_path(name).unwrap());
        save_buffer_with_format(path, samples, SIZE[0], SIZE[1], colour, format).unwrap();
    };
    let pixels = (SIZE[0] * SIZE[1]) as usize;
    let ramp: Vec<u8> = (0..3 * pixels).map(|i| (i / 40) as u8).collect();
    fs::create_dir(folder.join("photos")).unwrap();
    for name in [
        "photo.jpg",
        "photo.png",
        "page.png",
        "mask.png",
        "cells.tif",
        "photo.tif",
        "a.png",
        "dull.jpg",
        "fog.png",
        "xray.png",
        "photos/b.jpg",
        "photos/c.jpg",
    ] {
        save(name, &ramp, ColorType::Rgb8);
    }
    fs::create_dir(folder.join("slices")).unwrap();
    for slice in 8..11 {
        save(&format!("slices/{slice}.png"), &Noise(slice).bytes(pixels), ColorType::L8);
    }
    save("scan.tif", &ramp[..2 * pixels], ColorType::L16);
    save("scan16.png", &ramp[..2 * pixels], ColorType::L16);
    save("icon.png", &Noise(1).bytes(4 * pixels), ColorType::Rgba8);
    save("deep.png", &Noise(2).bytes(8 * pixels), ColorType::Rgba16);
    fs::copy(repository_path("fixtures/images/opaque.gif"), folder.join("walk.gif")).unwrap();
}

fn write_volumes(folder: &Path) {
    // Values fall with the distance from the centre, so that surfaces are round.
    let ball = |[width, height, depth]: [usize; 3]| -> Vec<u8> {
        let squares = |len: usize| -> Vec<usize> {
            (0..len).map(|at| ((2 * at + 1).abs_diff(len) * 16 / len).pow(2)).collect()
        };
        let (x, y, z) = (squares(width), squares(height), squares(depth));
        let rows = z.iter().flat_map(|z| y.iter().map(move |y| y + z));
        rows.flat_map(|outer| x.iter().map(move |x| 255 - (x + outer).min(255) as u8)).collect()
    };
    fs::write(folder.join("skull_256x256x256_uint8.raw"), ball([256; 3])).unwrap();
    fs::write(folder.join("engine_256x256x128_uint8.raw"), ball([256, 256, 128])).unwrap();
    let wide: Vec<u8> = ball([256, 256, 225]).iter().flat_map(|&v| [v, 0]).collect();
    let head = fs::File::create(folder.join("head_256x256x225_uint16.raw.gz")).unwrap();
    GzEncoder::new(head, Compression::fast()).write_all(&wide).unwrap();
    let unit = |v: &u8| (f32::from(*v) / 255.0).to_le_bytes();
    let field: Vec<u8> = ball([200, 100, 50]).iter().flat_map(unit).collect();
    fs::write(folder.join("field_200x100x50_float32.raw"), field).unwrap();
    for (name, copy) in [("i16_itk.nii.gz", "head.nii.gz"), ("i16_ras_gzip.nrrd", "head.nrrd")] {
        fs::copy(repository_path("fixtures/volumes").join(name), folder.join(copy)).unwrap();
    }
    let labels: Vec<u8> = (0..)
        .zip(ball([48, 40, 36]))
        .map(|(at, value)| match (value, at % 48) {
            (..120, _) => 0,
            (_, ..18) => 1,
            (_, ..30) => 3,
            _ => 12,
        })
        .collect();
    let organs = fs::File::create(folder.join("organs.nii.gz")).unwrap();
    let nifti = [nifti_header([48, 40, 36]), labels].concat();
    GzEncoder::new(organs, Compression::fast()).write_all(&nifti).unwrap();
    // A sparse file of zeros takes no disk space.
    fs::File::create(folder.join("ct.raw")).unwrap().set_len(512 * 512 * 300 * 2).unwrap();
}

/// Header of a NIfTI file of u8 samples with a spacing of 1, up to the first sample.
fn nifti_header(dims: [i16; 3]) -> Vec<u8> {
    let mut header = vec![0; 352];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &348i32.to_le_bytes());
    let [x, y, z] = dims;
    for (at, dim) in [3, x, y, z, 1, 1, 1, 1].into_iter().enumerate() {
        put(40 + 2 * at, &dim.to_le_bytes());
        put(76 + 4 * at, &1f32.to_le_bytes());
    }
    put(70, &[2, 0, 8, 0]);
    put(108, &352f32.to_le_bytes());
    put(344, b"n+1\0");
    header
}

fn write_numbers(folder: &Path) {
    for (name, text) in [
        ("keys.txt", "7 7 7 8 8\n"),
        ("heights.csv", "3,1,4\n1,5\n"),
        ("amounts.txt", "10 20 30 40\n"),
        ("customers.txt", "1 1 2 2\n"),
    ] {
        fs::write(folder.join(name), text).unwrap();
    }
    let floats: Vec<u8> = [2.5f32, -1.0, 0.5].iter().flat_map(|v| v.to_le_bytes()).collect();
    for name in ["scores.raw", "samples.raw"] {
        fs::write(folder.join(name), &floats).unwrap();
    }
    let integers: Vec<u8> = [5u32, 3, 9, 1, 7, 2].iter().flat_map(|v| v.to_le_bytes()).collect();
    for (name, shape) in [
        ("keys.npy", "(6,)"),
        ("ids.npy", "(6,)"),
        ("counts.npy", "(6,)"),
        ("numbers.npy", "(6,)"),
        ("rows.npy", "(2, 3)"),
    ] {
        let header = format!("{{'descr': '<u4', 'fortran_order': False, 'shape': {shape}, }}");
        let head = format!("\u{1}\0v\0{header:<117}\n");
        fs::write(folder.join(name), [b"\x93NUMPY", head.as_bytes(), &integers].concat()).unwrap();
    }
}

/// Fails if there are differences. With `GPUPROC_BLESS=1`, writes `now` to `path` instead.
fn check(path: &Path, now: &str, differences: &[String]) {
    if env::var_os("GPUPROC_BLESS").is_some_and(|value| value == "1") {
        return fs::write(path, now).unwrap();
    }
    let (name, all) = (path.display(), differences.join("\n"));
    assert!(differences.is_empty(), "{name}; GPUPROC_BLESS=1 rewrites it\n{all}");
}

#[test]
fn snapshots_match_program_output() {
    let mut files = 0;
    for entry in fs::read_dir(repository_path("tests/snapshots")).unwrap() {
        let path = entry.unwrap().path();
        let session = fs::read_to_string(&path).unwrap();
        let (now, differences) = Sandbox::new().replay_all(&session, true);
        check(&path, &now, &differences);
        files += 1;
    }
    assert!(files >= 3);
}

#[test]
fn readme_and_guide_match_program_output() {
    let sandbox = Sandbox::new();
    check_document(&repository_path("README.md"), &sandbox);
    let mut chapters = 0;
    for entry in fs::read_dir(repository_path("src/guide")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            check_document(&path, &sandbox);
            chapters += 1;
        }
    }
    assert!(chapters > 10);
}

/// Checks the `console` blocks of a document.
fn check_document(path: &Path, sandbox: &Sandbox) {
    let text = fs::read_to_string(path).unwrap();
    let (mut now, mut differences) = (String::new(), Vec::new());
    // Text and code blocks alternate.
    for (i, part) in text.split("```").enumerate() {
        let session = part.strip_prefix("console\n").filter(|_| i % 2 == 1);
        let (replayed, more) =
            session.map_or_else(Default::default, |s| sandbox.replay_all(s, false));
        differences.extend(more);
        let fence = if i == 0 { "" } else { "```" };
        let part = session.map_or(part.to_owned(), |_| format!("console\n{replayed}"));
        now += &format!("{fence}{part}");
    }
    check(path, &now, &differences);
}

#[test]
fn commands_share_options_and_their_examples_run() {
    let sandbox = Sandbox::new();
    let (help, _) = sandbox.run("gpuproc --help");
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let shared = help.split_once("Shared options:\n").expect("a group for all commands").1;
    let (shared, _) = shared.split_once("\n\nExit codes:").expect("the last group");
    assert!(shared.lines().count() > 40, "{shared}");
    let mut tried = 0;
    for command in commands.map_while(|line| line.split_whitespace().next()) {
        let (help, _) = sandbox.run(&format!("gpuproc {command} --help"));
        assert!(help.contains(shared), "{command}: other shared options\n{help}");
        let examples = help.lines().skip_while(|line| *line != "Examples:").skip(1);
        let examples = examples.take_while(|line| !line.is_empty());
        for example in examples.filter_map(|line| line.strip_prefix("  ")) {
            let (example, remark) = example.split_once("    ").unwrap_or((example, ""));
            // Benchmarks take minutes, so they are stopped after a second.
            let limit = if command == "bench" { " --timeout 1" } else { "" };
            let (text, code) = sandbox.run(&format!("{example}{limit}"));
            assert!(code == 0 || command == "bench" && code == 124, "{example}: {code}\n{text}");
            if let Some(promise) = remark.trim().strip_prefix("prints ") {
                let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(!words.is_empty() && promise.starts_with(&words), "{example}: {words}");
            }
            tried += 1;
        }
    }
    assert!(tried > 30, "{tried} examples");
}

#[test]
fn help_shows_each_group_once() {
    let mut shown = BTreeMap::new();
    let mut short = |step: &str| shorten(step.to_owned(), &mut shown);
    let first = "$ a --help\nA\n\nOptions:\n  -o  x:\n\nShared:\n  -s\n\n";
    assert_eq!(short(first), first);
    let second = "$ b --help\nB\n\nOptions:\n  -p  x:\n\nShared:\n  -s\n";
    let with_line = "$ b --help\nB\n\nOptions:\n  -p  x:\n\nShared: as in a --help\n";
    assert_eq!(short(second), with_line);
    assert_eq!(short("$ b -h\nShared:\n  -s\n"), "$ b -h\nShared:\n  -s\n");
    let other = "$ c --help\nC\n\nShared:\n  -t\n";
    assert_eq!(short(other), other);
}

#[test]
fn replay_detects_changes_of_a_session() {
    let sandbox = Sandbox::new();
    let session = "words\n$ printf 'a b\\nc  \\n'\na b\nc\n\n$ sh -c 'echo d; exit 3'\nd\n? 3\n";
    assert_eq!(sandbox.replay_all(session, true), (session.to_owned(), Vec::new()));
    for (from, to) in
        [("? 3", "? 4"), ("\n? 3", ""), ("\nd", ""), ("d\n", "d\ne\n"), ("a b\nc", "a\nc")]
    {
        let (now, differences) = sandbox.replay_all(&session.replace(from, to), true);
        assert_eq!((now.as_str(), differences.len()), (session, 1), "{from}");
    }
    assert_eq!(sandbox.replay_all(&session.replace("\n? 3", ""), false).1, [""; 0]);
}
