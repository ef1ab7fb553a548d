//! The program as a whole: help, exit codes, devices, interruption.

use predicates::{prelude::*, str::contains};

use crate::{
    asserts::assert_contains,
    common::{gpuproc, subjects},
};

#[test]
fn help_of_every_command_has_examples() {
    let help = gpuproc().arg("--help").assert().success();
    let text = String::from_utf8(help.get_output().stdout.clone()).unwrap();
    assert_contains(&text, "Exit codes");
    let commands: Vec<&str> = text
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(commands.len() >= 3, "{commands:?}");
    for command in commands {
        gpuproc().args([command, "--help"]).assert().success().stdout(contains("Examples:"));
    }
}

#[test]
fn invalid_arguments_are_usage_errors() {
    gpuproc().assert().code(2).stderr(contains("Usage:"));
    gpuproc().arg("embiggen").assert().code(2);
    gpuproc().args(["devices", "--threads", "0"]).assert().code(2);
}

#[test]
fn devices_marks_one_choice_of_auto() {
    gpuproc().arg("devices").assert().success().stdout(contains("cpu"));
    let output = gpuproc().args(["devices", "--json"]).assert().success();
    let rows: serde_json::Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows[0]["device"], "cpu");
    assert_eq!(rows.iter().filter(|row| row["auto"] == true).count(), 1);
    if !subjects().is_empty() {
        assert_eq!(rows[1]["device"], "0");
        assert!(rows[1]["max_binding_bytes"].as_u64().unwrap() >= 128 << 20);
    }
}

#[test]
fn missing_device_exits_with_code_5() {
    let bench = || {
        let mut command = gpuproc();
        command.args(["bench", "copy", "--repeats", "1"]);
        command
    };
    // With this path, the Vulkan loader does not find a driver.
    let none = "/nonexistent/driver.json";
    bench()
        .args(["--device", "gpu"])
        .env("VK_DRIVER_FILES", none)
        .env("VK_ICD_FILENAMES", none)
        .assert()
        .code(5)
        .stderr(contains("error: no GPU found").and(contains("--device cpu")));
    bench().args(["--device", "99"]).assert().code(5).stderr(contains("no device 99"));
    bench().args(["--device", "abacus"]).assert().code(5).stderr(contains("`abacus`"));
    bench().env("GPUPROC_DEVICE", "abacus").assert().code(5);
    bench()
        .env("VK_DRIVER_FILES", none)
        .env("VK_ICD_FILENAMES", none)
        .arg("-v")
        .assert()
        .success()
        .stdout(contains("device CPU"));
}

#[test]
fn bench_writes_its_figures_to_csv() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("figures.csv");
    let mut devices = vec![("cpu", None)];
    if !subjects().is_empty() {
        devices.push(("gpu", Some("--check")));
    }
    for (device, check) in devices {
        gpuproc()
            .args(["bench", "copy", "--repeats", "2", "--device", device])
            .args(check)
            .arg("-o")
            .arg(&csv)
            .assert()
            .success()
            .stdout(contains("16 MiB"));
        let text = std::fs::read_to_string(&csv).unwrap();
        assert!(text.starts_with("family,algorithm,problem,"), "{text}");
        assert_eq!(text.lines().count(), 2);
    }
    gpuproc().args(["bench", "nonsense"]).assert().code(2).stderr(contains("nonsense"));
    gpuproc().args(["bench", "copy", "-o", "figures.doc"]).assert().code(2);
}

/// On a terminal, a bar shows the progress of many files and disappears at the end. Messages start on a new line.
#[cfg(target_os = "linux")]
#[test]
fn progress_bar_is_shown_only_on_terminals_and_keeps_lines_whole() {
    let folder = tempfile::tempdir().unwrap();
    image::RgbImage::new(30, 20).save(folder.path().join("a.png")).unwrap();
    std::fs::copy(folder.path().join("a.png"), folder.path().join("b.png")).unwrap();
    std::fs::write(folder.path().join("broken.png"), "no picture").unwrap();
    let program = crate::common::program().into_string().unwrap();
    // One input arrives after the delay at which the bar appears, and the error message follows it.
    let run = |more: &str, on_terminal: bool| {
        let line = format!(
            "rm -f slow.png; mkfifo slow.png; (sleep 0.7; cat a.png > slow.png) & \
             {program} blur a.png slow.png broken.png b.png --out-dir out --device cpu {more}"
        );
        let mut command = std::process::Command::new(if on_terminal { "script" } else { "sh" });
        match on_terminal {
            true => command.args(["-qec", &line, "/dev/null"]),
            false => command.args(["-c", &line]),
        };
        command.current_dir(folder.path()).env("TERM", "xterm").stdin(std::process::Stdio::null());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{more}");
        // On a terminal, stdout and stderr are one stream.
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let plain = |text: &str| text.replace("\u{1b}[1;31m", "").replace("\u{1b}[0m", "");
    let is_bar = |text: &str| text.contains('%') || text.contains('\u{1b}') || text.contains('█');
    let screen = run("", true);
    assert!(is_bar(&screen), "{screen}");
    let start = screen.find("\u{1b}[1;31merror:\u{1b}[0m cannot decode").unwrap();
    assert!(screen[..start].ends_with(['\n', '\r', 'K']), "{screen:?}");
    assert!(screen[start..].split("\r\n").next().unwrap().ends_with("known format"), "{screen:?}");
    for (more, on_terminal) in [("", false), ("--quiet", true)] {
        let plain = plain(&run(more, on_terminal));
        assert!(!is_bar(&plain) && plain.contains("error: "), "{more} {plain:?}");
    }
}
