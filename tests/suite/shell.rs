//! At home in a shell: completions, manual pages, flags from elsewhere, one meaning of `-o`, one line for each mistake.
#![cfg(unix)]

use std::{env, fs, path::Path, process::Command};

use predicates::{prelude::*, str::contains};

use crate::common::{gpuproc, program, run, works};

/// What `script` prints in `shell`, in a folder of files, or nothing where there is no such shell.
fn in_shell(shell: &[&str], folder: &Path, script: &str) -> Option<Vec<String>> {
    let program = program();
    let bin = Path::new(&program).parent().unwrap();
    let path = format!("{}:{}", bin.display(), env::var("PATH").unwrap());
    let mut command = Command::new(shell[0]);
    command.args(&shell[1..]).arg(script).current_dir(folder).env("PATH", path);
    command.env("HOME", folder).env_remove("GPUPROC_DEVICE");
    let output = match command.output() {
        Ok(output) => output,
        Err(_) => {
            crate::harness::ignore("no such shell");
            return None;
        }
    };
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(|line| line.trim_end().to_owned()).collect())
}

/// A folder with a picture and a folder in it.
fn files() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    image::RgbImage::new(8, 6).save(folder.path().join("photo.png")).unwrap();
    fs::create_dir(folder.path().join("photos")).unwrap();
    folder
}

/// Command lines, and some of what completes their last word.
const COMPLETED: [(&str, &[&str]); 9] = [
    ("gpuproc hist", &["histogram"]),
    ("gpuproc blur pho", &["photo.png", "photos/"]),
    ("gpuproc blur photo.png -o pho", &["photo.png", "photos/"]),
    ("gpuproc blur photo.png --edge mi", &["mirror"]),
    ("gpuproc mesh --dtype u1", &["u16"]),
    ("gpuproc sort --device c", &["cpu"]),
    ("gpuproc bench tr", &["transfer"]),
    ("gpuproc histogram --channels r,lu", &["r,luma"]),
    ("gpuproc scan --algorithm lo", &["lookback"]),
];

fn assert_completed(shell: &str, complete: impl Fn(&str) -> Option<Vec<String>>) {
    for (line, expected) in COMPLETED {
        let Some(found) = complete(line) else { return };
        for word in expected {
            assert!(found.iter().any(|found| found == word), "{shell}: {line}: {found:?}");
        }
        assert!(found.len() < 6, "{shell}: {line}: {found:?}");
    }
}

#[test]
fn bash_completes_commands_flags_values_and_files() {
    let folder = files();
    assert_completed("bash", |line| {
        // What bash sets before it calls the function of a completion.
        let script = format!(
            "source <(gpuproc completions bash); COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             COMP_TYPE=9; _clap_complete_gpuproc gpuproc \"${{COMP_WORDS[COMP_CWORD]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        in_shell(&["bash", "--norc", "-c"], folder.path(), &script)
    });
}

#[test]
fn fish_completes_commands_flags_values_and_files() {
    let folder = files();
    assert_completed("fish", |line| {
        let script =
            format!("gpuproc completions fish | source; complete --do-complete '{line}' | cut -f1");
        in_shell(&["fish", "--no-config", "-c"], folder.path(), &script)
    });
}

#[test]
fn zsh_completes_commands_flags_values_and_files() {
    let folder = files();
    assert_completed("zsh", |line| {
        // The function that the script defines, with what it is called with, and its list printed.
        let script = format!(
            "compdef() {{ : }}; _describe() {{ local -a all; all=(\"${{(@P)3}}\"); \
             [[ $3 == dirs ]] && all=(\"${{all[@]/%//}}\"); print -rl -- \"${{(@)all%%:*}}\" }}; \
             source <(gpuproc completions zsh); words=({line}); CURRENT=${{#words}}; \
             _clap_dynamic_completer_gpuproc"
        );
        in_shell(&["zsh", "--no-rcs", "-c"], folder.path(), &script)
    });
}

#[test]
fn powershell_asks_the_same() {
    let output = gpuproc().args(["completions", "powershell"]).assert().success();
    let script = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    assert!(script.contains("Register-ArgumentCompleter -Native -CommandName gpuproc"), "{script}");
    gpuproc()
        .env("GPUPROC_COMPLETE", "powershell")
        .args(["--", "gpuproc", "blur", "--edge", "mi"])
        .assert()
        .success()
        .stdout("mirror\n");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    gpuproc().arg("man").assert().success().stdout(contains(".TH gpuproc 1"));
    works(folder.path(), "man pages");
    let page = |name: &str| fs::read_to_string(folder.path().join("pages").join(name)).unwrap();
    assert!(page("gpuproc.1").contains("Exit codes"));
    for (name, flag) in [("blur", "sigma"), ("mesh", "iso"), ("man", "device")] {
        let page = page(&format!("gpuproc-{name}.1"));
        assert!(page.contains(&format!("\\fB\\-\\-{flag}\\fR")), "{page}");
        assert!(page.contains("Examples:"));
    }
}

#[test]
fn help_of_a_command_has_three_ways() {
    let help = |words: &[&str]| {
        let output = gpuproc().args(words).assert().success();
        String::from_utf8(output.get_output().stdout.clone()).unwrap()
    };
    assert_eq!(help(&["help", "blur"]), help(&["blur", "--help"]));
    assert_eq!(help(&["help"]), help(&["--help"]));
    let text = help(&["--help"]);
    let commands = text.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands: Vec<&str> = commands.map_while(|line| line.split_whitespace().next()).collect();
    let order = "blur histogram mesh scan sort info merge serve devices bench completions man";
    assert_eq!(commands.join(" "), order);
    for command in commands {
        for flag in ["-h", "--help"] {
            let text = help(&[command, flag]);
            let long = text.lines().find(|line| line.chars().count() > 80);
            assert_eq!(long, None, "{command} {flag}");
        }
    }
    let long = text.lines().find(|line| line.chars().count() > 80);
    assert_eq!(long, None);
}

#[test]
fn the_version_tells_what_runs() {
    let short = concat!("gpuproc ", env!("CARGO_PKG_VERSION"));
    gpuproc().arg("-V").assert().success().stdout(format!("{short}\n"));
    gpuproc()
        .arg("--version")
        .assert()
        .success()
        .stdout(contains(short).and(contains("features: cli")).and(contains("SIMD: ")));
    gpuproc()
        .env("GPUPROC_SIMD", "scalar")
        .arg("--version")
        .assert()
        .stdout(contains("SIMD: scalar"));
}

#[test]
fn a_mistake_is_one_line_and_a_hint() {
    for (words, line) in [
        (
            "blur a.png b.png --sigma",
            "a value is required for '--sigma <S[,S..]>' but none was supplied",
        ),
        ("mesh a.raw", "the following required arguments were not provided: --iso <VALUE>"),
        (
            "mesh a.raw --iso 3 --smooth 0.5",
            "invalid value '0.5' for '--smooth <N>': this is no whole number",
        ),
    ] {
        let command = words.split(' ').next().unwrap();
        let expected = format!("error: {line}\nhint: gpuproc {command} --help\n");
        gpuproc().args(words.split(' ')).assert().code(2).stderr(expected);
    }
    gpuproc().assert().code(2).stderr(contains("Usage:").and(contains("histogram")));
    gpuproc().env("GPUPROC_DEVICE", "cpu").assert().code(2).stderr(contains("Usage:"));
}

#[test]
fn flags_come_from_the_environment_too() {
    let folder = files();
    let at = folder.path();
    fs::write(at.join("flags"), "# mine\n[blur]\n--sigma\n3\n[sort]\n--descending\n").unwrap();
    let output = |flags: &str, line: &str| {
        let mut command = gpuproc();
        command.current_dir(at).env("GPUPROC_CONFIG_PATH", "flags").env("GPUPROC_FLAGS", flags);
        let output = command.args(line.split(' ')).write_stdin("1 3 2").output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(text).unwrap())
    };
    let dry = "blur photo.png soft.png --dry-run";
    let told = |sigma| {
        format!("photo.png -> soft.png: sigma {sigma},{sigma}, radius {0},{0}\n", 3 * sigma)
    };
    assert_eq!(output("", dry), (0, told(3)));
    assert_eq!(output("--sigma=4", dry), (0, told(4)));
    assert_eq!(output("--sigma=4", &format!("{dry} -s 5")), (0, told(5)));
    assert_eq!(output("--device cpu", "sort"), (0, "3\n2\n1\n".into()));
    let (code, text) = output("--sigma=x", dry);
    assert_eq!(code, 2);
    assert!(text.starts_with("error: GPUPROC_FLAGS: invalid value 'x' for '--sigma"), "{text}");
    let (code, text) = output("--sgima=4", dry);
    assert_eq!(
        (code, text.as_str()),
        (2, "error: GPUPROC_FLAGS: no command has a flag `--sgima=4`\n")
    );
    let (_, text) = output("--quality=80 -v", "sort");
    assert!(text.contains("GPUPROC_FLAGS: sort has no --quality=80, which is left out"), "{text}");
}

#[test]
fn an_output_is_a_file_a_folder_or_a_template() {
    let folder = files();
    let at = folder.path();
    let there = |name: &str| at.join(name).is_file();
    works(at, "blur photo.png -o soft.png");
    works(at, "blur photo.png -o photos");
    works(at, "blur photo.png -o new/");
    works(at, "blur photo.png new2/");
    works(at, "blur photo.png -o new3/{stem}-blur.{ext} --to jpeg");
    works(at, "blur photo.png -o new --to webp");
    for name in
        ["soft.png", "photos/photo.png", "new/photo.png", "new2/photo.png", "new3/photo-blur.jpg"]
    {
        assert!(there(name), "{name}");
    }
    assert!(there("new/photo.webp"));
    // Absolute names lie flat unless their folders are wanted.
    let (one, two) = (at.join("photo.png"), at.join("photos/photo.png"));
    let (one, two) = (one.display(), two.display());
    let (code, text) = run(at, &format!("blur {one} {two} -o flat/"));
    assert_eq!(code, 2);
    assert!(text.contains("two inputs would become flat/photo.png; --keep-tree"), "{text}");
    works(at, &format!("blur {one} -o flat/"));
    works(at, &format!("blur {one} --out-dir flat2"));
    works(at, &format!("blur {one} {two} --out-dir tree --keep-tree"));
    assert!(there("flat/photo.png") && there("flat2/photo.png"));
    assert!(there(&format!("tree{two}")));
    works(at, "blur photo.png photos/photo.png --out-dir relative");
    assert!(there("relative/photos/photo.png"));

    fs::write(at.join("v_4x4x4_uint8.raw"), [[0; 32], [9; 32]].concat()).unwrap();
    works(at, "mesh v_4x4x4_uint8.raw --iso 3 -o one.stl");
    works(at, "mesh v_4x4x4_uint8.raw --iso 3 -o meshes/");
    works(at, "mesh v_4x4x4_uint8.raw --iso 3,4 -o meshes/ --to obj");
    for name in ["one.stl", "meshes/v_4x4x4_uint8.ply", "meshes/v_4x4x4_uint8-4.obj"] {
        assert!(there(name), "{name}");
    }
    fs::write(at.join("n.txt"), "3 1 2").unwrap();
    works(at, "sort n.txt -o sorted.txt");
    works(at, "sort n.txt -o numbers/");
    works(at, "scan n.txt -o {stem}-sums.{ext}");
    works(at, "scan photo.png -o numbers/");
    for name in ["sorted.txt", "numbers/n.txt", "n-sums.txt", "numbers/photo.npy"] {
        assert!(there(name), "{name}");
    }
}

#[test]
fn timings_as_json_are_alone() {
    let folder = files();
    let at = folder.path();
    fs::write(at.join("v_4x4x4_uint8.raw"), [[0; 32], [9; 32]].concat()).unwrap();
    let json = |line: &str| -> serde_json::Value {
        let (_, text) = run(at, &format!("{line} --timings=json"));
        assert_eq!(text.lines().count(), 1, "{text}");
        serde_json::from_str(&text).unwrap()
    };
    let mesh = json("mesh v_4x4x4_uint8.raw --iso 3 -v");
    assert!(
        mesh["messages"]
            .as_array()
            .unwrap()
            .iter()
            .any(|line| line.as_str().unwrap().contains("vertices"))
    );
    let failed = json("blur nothing.png -o x.png");
    assert!(failed["error"].as_str().unwrap().starts_with("cannot read nothing.png"), "{failed}");
    let partly = json("blur nothing.png photo.png -o soft/");
    assert!(partly["messages"][0].as_str().unwrap().starts_with("error: cannot read nothing.png"));
}
