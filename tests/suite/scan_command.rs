//! The command `scan`: text, arrays and messages.

use std::{fs, path::Path};

use assert_cmd::Command;

use crate::{
    asserts::{assert_absent, assert_same_file},
    common::Noise,
    scan::{bytes, noise, serial_scan},
};

// The command line.

pub fn gpuproc(arguments: &[&str]) -> Command {
    let mut command = crate::common::gpuproc();
    command.args(arguments);
    command
}

/// Standard output of the program for `input`.
pub fn stdout_of(arguments: &[&str], input: impl Into<Vec<u8>>) -> Vec<u8> {
    let run = gpuproc(arguments).write_stdin(input).assert().success();
    run.get_output().stdout.clone()
}

#[track_caller]
pub fn assert_fails(arguments: &[&str], input: &str, code: i32, message: &str) {
    let run = gpuproc(arguments).write_stdin(input).assert().code(code);
    let error = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(error.contains(message), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn text_keeps_its_layout() {
    for (arguments, input, output) in [
        (&["scan", "-"][..], "1 2 3", "0 1 3"),
        (&["scan", "--inclusive", "-"], "1 2 3\n", "1 3 6\n"),
        (&["scan", "-"], "1,2 , 3\r\n\n4\t5,", "0,1 , 3\r\n\n6\t10,"),
        (&["scan", "-"], "", ""),
        (&["scan", "-"], " \n ", " \n "),
        (&["scan", "-"], "\r\n  1\t\t2\x0c3\r\n\r\n", "\r\n  0\t\t1\x0c3\r\n\r\n"),
        (&["scan", "-"], "\u{feff}1, 2\r3", "\u{feff}0, 1\r3"),
        (&["scan", "-", "--init", "10"], "1 2", "10 11"),
        (&["scan", "-", "--op", "max"], "3 1 4", "0 3 3"),
        (&["scan", "-", "--op", "min", "--inclusive"], "3 1 4", "3 1 1"),
        (&["scan", "-", "--op", "product"], "3 5 4\n", "1 3 15\n"),
        (&["scan", "-", "--type", "i32", "--init", "-1"], "-1 2", "-1 -2"),
        (&["scan", "-", "--type", "f32"], "0.5 1e1 inf", "0 0.5 10.5"),
        (&["scan", "-"], "4294967295 1 1", "0 4294967295 0"),
        (&["scan", "-", "--type", "u64"], "4294967295 1 1", "0 4294967295 4294967296"),
    ] {
        let found = stdout_of(arguments, input);
        assert_eq!(String::from_utf8_lossy(&found), output, "{arguments:?} {input:?}");
    }
    // The extension of the output does not change the layout.
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (name, text) in [("a.tsv", "1\t2\r\n3\t4"), ("a.csv", "1, 2"), ("a.txt", "1  2\n")] {
        fs::write(path(name), text).unwrap();
        for output in ["o.csv", "o.txt", "o.tsv"] {
            gpuproc(&["scan", &path(name), &path(output), "--op", "max", "--inclusive"])
                .assert()
                .success();
            assert_eq!(fs::read_to_string(path(output)).unwrap(), text, "{name} {output}");
        }
    }
}

/// Separators of all kinds, in text that is read in several parts and does not end with a line break.
#[test]
fn text_that_is_read_in_parts_keeps_its_layout() {
    let mut noise = Noise(33);
    let mut separator = || -> String {
        let length = 1 + noise.next() % 5;
        let mut text: String = (0..length)
            .map(|_| [' ', '\t', '\n', '\r', '\x0c'][noise.next() as usize % 5])
            .collect();
        if noise.next().is_multiple_of(3) {
            text.insert(noise.next() as usize % text.len(), ',');
        }
        text
    };
    let mut text = separator().replace(',', " ");
    for i in 0..200_000 {
        text += &format!("{}{}", i % 7, separator());
    }
    text += "6";
    let found =
        stdout_of(&["scan", "-", "--op", "min", "--inclusive", "--max-memory", "1M"], text.clone());
    let expected = text.replace(|c: char| c.is_ascii_digit(), "0");
    assert!(found == expected.as_bytes());
}

/// Gaps that would need much memory are not kept.
#[test]
fn shortens_long_gaps_in_text_with_a_warning() {
    let text =
        format!("1{},{}2{}\n3", " ".repeat(400_000), " ".repeat(70_000), " ".repeat(100_000));
    let run = gpuproc(&["scan", "-"]).write_stdin(text.clone()).assert().success();
    assert_eq!(String::from_utf8_lossy(&run.get_output().stdout), "0,1\n3");
    let stderr = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(stderr.starts_with("warning: ") && stderr.contains("layout is not kept"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert_fails(&["scan", "-", "--strict"], &text, 4, "layout is not kept");
}

#[test]
fn numbers_are_never_split_between_parts() {
    let numbers: Vec<u32> = noise(100_000, 6);
    let text: String = numbers.iter().map(|v| format!("{v}\n")).collect();
    let expected: String = serial_scan(&numbers, true, 0, u32::wrapping_add)
        .iter()
        .map(|v| format!("{v}\n"))
        .collect();
    let found = stdout_of(&["scan", "--inclusive", "-"], text);
    assert!(found == expected.as_bytes());
}

#[test]
fn errors_in_text_state_line_and_value() {
    assert_fails(&["scan", "-"], "1\n2 x3", 4, "standard input: line 2: `x3` is not a valid u32");
    assert_fails(&["scan", "-"], "-1", 4, "try --type i32");
    assert_fails(&["scan", "-"], "4294967296", 4, "try --type i64");
    assert_fails(&["scan", "-"], "2.5", 4, "try --type f32");
    assert_fails(&["scan", "-"], "1,,2", 4, "line 1: expected a number before the comma");
    assert_fails(&["scan", "-"], ",1", 4, "line 1: expected a number before the comma");
    assert_fails(&["scan", "-"], &"9".repeat(300_000), 4, "line 1: `9999");
    assert_fails(&["scan", "-", "--init", "x"], "1", 2, "--init x: expected a number of type u32");
    assert_fails(&["scan", "missing.txt"], "", 7, "cannot read missing.txt");
    assert_fails(&["scan", "-", "out.xyz"], "1", 2, "the extension `xyz`");
}

#[test]
fn checked_scan_reports_the_first_overflow() {
    let fails = |arguments: &[&str], input: &str, message: &str| {
        assert_fails(&[&["scan", "--checked", "-"], arguments].concat(), input, 4, message);
    };
    fails(
        &[],
        "4294967295 0 1 7",
        "the sums overflow u32 at number 2, counted from 0; try --type u64",
    );
    fails(&["--type", "i32"], "-2147483648 -1", "the sums overflow i32 at number 1");
    fails(&["--op", "product", "--type", "u64"], "4294967296 4294967296", "products overflow u64");
    let fits = stdout_of(&["scan", "--checked", "-", "--inclusive"], "4294967294 0 1");
    assert_eq!(fits, b"4294967294 4294967294 4294967295");
    let floats = stdout_of(&["scan", "--checked", "-", "--type", "f32"], "3e38 3e38 1");
    assert_eq!(floats, b"0 3e38 inf");
    let max = stdout_of(&["scan", "--checked", "-", "--op", "max"], "4294967295 4294967295 0");
    assert_eq!(max, b"0 4294967295 4294967295");
}

#[test]
fn file_format_follows_the_extension() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let input: Vec<i32> = noise(10_007, 12);
    let sums = serial_scan(&input, false, 0, i32::wrapping_add);
    fs::write(path("in.raw"), bytes(&input)).unwrap();
    gpuproc(&["scan", "--type", "i32", &path("in.raw"), &path("out.npy")]).assert().success();
    // The header of the output states its type.
    gpuproc(&["scan", "--inclusive", "--op", "max", &path("out.npy"), &path("max.raw")])
        .assert()
        .success();
    let max = serial_scan(&sums, true, i32::MIN, Ord::max);
    assert!(fs::read(path("max.raw")).unwrap() == bytes(&max));
    gpuproc(&["scan", "--type", "i32", &path("in.raw"), &path("out.txt")]).assert().success();
    let text = fs::read_to_string(path("out.txt")).unwrap();
    assert_eq!(text.lines().map(|l| l.parse().unwrap()).collect::<Vec<i32>>(), sums);
    let from_stdin = stdout_of(&["scan", "--format", "raw", "--type", "i32", "-"], bytes(&input));
    assert!(from_stdin == bytes(&sums));
    // From a pipe, the length is not known in advance.
    gpuproc(&["scan", "--format", "raw", "--type", "i32", "-", &path("piped.npy")])
        .write_stdin(bytes(&input))
        .assert()
        .success();
    assert_same_file(path("piped.npy"), path("out.npy"));
    let wrong = ["scan", "--type", "u32", &path("out.npy"), "-"];
    assert_fails(&wrong, "", 2, "the file contains i32 numbers, but u32 is requested");
}

#[test]
fn broken_files_leave_no_output() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("odd.raw"), [0; 7]).unwrap();
    fs::write(path("text.npy"), "1 2 3 4 5 6 7 8").unwrap();
    stdout_of(&["scan", "--format", "text", "-", &path("good.npy")], "1 2 3");
    let mut short = fs::read(path("good.npy")).unwrap();
    short.pop();
    fs::write(path("short.npy"), &short).unwrap();
    short.truncate(short.len() - 3);
    fs::write(path("shorter.npy"), &short).unwrap();
    let out = path("out.txt");
    assert_fails(
        &["scan", &path("odd.raw"), &out],
        "",
        4,
        "7 bytes, expected a multiple of 4, the size of u32",
    );
    assert_fails(&["scan", &path("text.npy"), &out], "", 4, "invalid .npy file: bad magic number");
    assert_fails(
        &["scan", &path("short.npy"), &out],
        "",
        4,
        "expected a multiple of 4, the size of u32",
    );
    assert_fails(&["scan", &path("shorter.npy"), &out], "", 4, "truncated: 1 numbers are missing");
    assert_fails(
        &["scan", "--format", "raw", "-", &out],
        "12345",
        4,
        "5 bytes, expected a multiple of 4, the size of u32",
    );
    assert_fails(&["scan", folder.path().to_str().unwrap(), &out], "", 7, "cannot read");
    assert_fails(&["scan", "-", "missing/out.txt"], "1", 7, "cannot write");
    assert_absent(&out);
    if Path::new("/dev/full").exists() {
        assert_fails(&["scan", "-", "/dev/full", "--format", "text"], "1", 7, "cannot write");
    }
}

#[test]
fn restarts_the_scan_where_the_key_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("keys.txt"), "7 7 -1 -1 -1 7.5").unwrap();
    let by_key = ["scan", "-", "--by-key", &path("keys.txt")];
    assert_eq!(stdout_of(&by_key, "1 2 3 4 5 6"), b"0 1 0 3 7 0");
    let inclusive = [&by_key[..], &["--inclusive", "--init", "10"]].concat();
    assert_eq!(stdout_of(&inclusive, "1 2 3 4 5 6"), b"11 13 13 17 22 16");
    assert_fails(&by_key, "1 2 3 4 5 6 7", 4, "keys.txt: there are fewer keys than numbers");
    assert_fails(&by_key, "1 2 3 4 5", 4, "keys.txt: there are more keys than numbers");
}

#[test]
fn accepts_empty_arrays_with_rows_of_any_length() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    // The second axis alone would take 2^40 bytes; the third and fourth cannot be allocated at all.
    for shape in
        ["(0, 5)", "(0, 1099511627776)", "(0, 9223372036854775808)", "(0, 9223372036854775808, 4)"]
    {
        let header = format!("{{'descr': '<u4', 'fortran_order': False, 'shape': {shape}, }}");
        let start = format!("NUMPY\x01\0{}\0{header}", header.len() as u8 as char);
        fs::write(path("empty.npy"), [&b"\x93"[..], start.as_bytes()].concat()).unwrap();
        for axis in ["x", "y", "both"] {
            let scan = ["scan", "--axis", axis, "--max-memory", "1M", &path("empty.npy")];
            let table = stdout_of(&scan, "");
            assert!(String::from_utf8_lossy(&table).contains(shape), "{axis}");
            gpuproc(&[&scan[..], &[&path("table.txt")]].concat()).assert().success();
            assert_eq!(fs::read(path("table.txt")).unwrap(), b"", "{shape} {axis}");
        }
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "an unfinished output is left");
}

#[test]
fn scans_in_parts_that_fit_in_memory() {
    let numbers: Vec<u32> = noise(10_007, 5).into_iter().map(|v: u32| v >> 16).collect();
    let text = |numbers: &[u32]| numbers.iter().map(|v| format!("{v}\n")).collect::<String>();
    let run = |arguments: &[&str]| {
        let arguments = [&["scan", "-", "--inclusive", "--max-memory", "64K"], arguments].concat();
        gpuproc(&arguments).write_stdin(text(&numbers)).assert()
    };
    run(&[]).success().stdout(text(&serial_scan(&numbers, true, 0, u32::wrapping_add)));
    let highest = text(&serial_scan(&numbers, true, 0, Ord::max));
    run(&["--op", "max", "--type", "f32"]).success().stdout(highest);
    // Float sums can only be split at block boundaries, because the split affects rounding.
    let rejected = run(&["--type", "f32"]).code(4);
    rejected.stderr(predicates::str::contains(
        "a scan with sums of f32 in blocks of 16777216 numbers needs at least",
    ));
}
