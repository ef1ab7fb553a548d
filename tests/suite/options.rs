//! Help, the version, and options that all commands share.
#![cfg(unix)]

use std::{env, fs};

use predicates::{prelude::*, str::contains};

use crate::{
    asserts::assert_contains,
    common::{gpuproc, run, works},
    shell::files,
};

/// Standard output of the program with these arguments.
fn help(words: &[&str]) -> String {
    let output = gpuproc().args(words).assert().success();
    String::from_utf8(output.get_output().stdout.clone()).unwrap()
}

#[test]
fn short_help_has_at_most_50_lines_and_names_the_other_groups() {
    let text = help(&["--help"]);
    let commands = text.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands: Vec<&str> = commands.map_while(|line| line.split_whitespace().next()).collect();
    assert!(help(&["-h"]).lines().count() <= 50);
    for command in commands {
        let (short, long) = (help(&[command, "-h"]), help(&[command, "--help"]));
        assert!(short.lines().count() <= 50, "{command}: {} lines", short.lines().count());
        let more =
            short.split_once("More options in gpuproc").map(|(_, more)| more.replace('\n', " "));
        let more = more.unwrap_or_else(|| panic!("{short}"));
        // A heading ends with a colon, and indented options follow.
        let lines: Vec<&str> = long.lines().collect();
        let groups = lines.windows(2).filter(|pair| pair[1].starts_with("  "));
        let groups = groups.map(|pair| pair[0]).filter(|line| line.ends_with(':'));
        let others = ["Arguments:", "Options:", "Examples:"];
        let groups = groups.filter(|line| !line.starts_with(' ') && !others.contains(line));
        for group in groups {
            assert!(more.contains(group.trim_end_matches(':')), "{command}: {group} {more}");
        }
        // Examples come before the options.
        let at = |text: &str, what| text.find(what).unwrap_or(usize::MAX);
        assert!(at(&short, "Examples:") < at(&short, "Options:"), "{short}");
        assert!(at(&long, "Examples:") < at(&long, "Options:"), "{long}");
    }
}

#[test]
fn help_prints_chapters_of_the_guide() {
    gpuproc()
        .args(["help", "volumes"])
        .assert()
        .success()
        .stdout(predicates::str::starts_with("VOLUMES").and(contains("NIfTI")));
    // The chapter of a command leads to its options. Only code is wider than a terminal.
    let chapter = help(&["help", "label"]);
    assert!(chapter.ends_with("\nAll options: gpuproc label --help\n"), "{chapter}");
    for subject in ["label", "scaling", "volumes", "mesh"] {
        for line in help(&["help", subject]).lines() {
            let is_word = !line.trim().contains(' ');
            assert!(line.len() <= 80 || line.starts_with("  ") || is_word, "{line}");
        }
    }
    gpuproc()
        .args(["help", "nothing"])
        .assert()
        .code(2)
        .stderr(contains("no command or chapter `nothing`").and(contains("volumes, zarr")));
}

#[test]
fn help_is_the_same_by_flag_and_by_command_and_fits_80_columns() {
    assert_eq!(help(&["help", "bench"]), help(&["bench", "--help"]));
    assert_eq!(help(&["help"]), help(&["--help"]));
    let text = help(&["--help"]);
    let commands = text.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands: Vec<&str> = commands.map_while(|line| line.split_whitespace().next()).collect();
    let order = "blur convert crop flip gradient histogram label math median mesh morph pad project reorient resize rotate scan sort threshold transpose unsharp info merge serve devices bench completions man";
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
fn version_lists_features_and_instruction_set() {
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
fn usage_errors_have_one_line_and_a_hint() {
    for (words, line) in [
        (
            "blur a.png b.png --sigma",
            "a value is required for '--sigma <S[,S..]>' but none was supplied",
        ),
        (
            "mesh a.raw",
            "the following required arguments were not provided: --iso <VALUE>; --iso auto finds an isovalue, and --labels meshes a segmentation",
        ),
        (
            "mesh a.raw --iso 3 --smooth 0.5",
            "invalid value '0.5' for '--smooth <N>': expected a whole number",
        ),
        (
            "threshold a.png b.png --value 3 --window 5",
            "the argument '--value <T>' cannot be used with '--window <W[,W..]>'",
        ),
        (
            "threshold a.png b.png --value 3 --otsu",
            "the argument '--value <T>' cannot be used with '--otsu'",
        ),
        (
            "threshold a.png b.png --classes 17",
            "invalid value '17' for '--classes <N>': expected a whole number from 2 to 16",
        ),
        (
            "threshold a.png b.png --value -2,x",
            "invalid value 'x' for '--value <T>': expected a number",
        ),
        (
            "threshold a.png b.png --local mean --offset inf",
            "invalid value 'inf' for '--offset <D>': expected a number",
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
fn reads_flags_from_the_environment_and_a_file() {
    let folder = files();
    let folder = folder.path();
    fs::write(folder.join("flags"), "# mine\n[blur]\n--sigma\n3\n[sort]\n--descending\n").unwrap();
    let output = |flags: &str, line: &str| {
        let mut command = gpuproc();
        command.current_dir(folder).env("GPUPROC_CONFIG_PATH", "flags").env("GPUPROC_FLAGS", flags);
        let output = command.args(line.split(' ')).write_stdin("1 3 2").output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(text).unwrap())
    };
    let dry = "blur photo.png soft.png --dry-run";
    let expected = |sigma| {
        format!("photo.png -> soft.png: sigma {sigma},{sigma}, radius {0},{0}\n", 3 * sigma)
    };
    assert_eq!(output("", dry), (0, expected(3)));
    assert_eq!(output("--sigma=4", dry), (0, expected(4)));
    assert_eq!(output("--sigma=4", &format!("{dry} -s 5")), (0, expected(5)));
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
fn output_option_accepts_files_folders_and_templates() {
    let folder = files();
    let folder = folder.path();
    let exists = |name: &str| folder.join(name).is_file();
    works(folder, "blur photo.png -o soft.png");
    works(folder, "blur photo.png -o photos");
    works(folder, "blur photo.png -o new/");
    works(folder, "blur photo.png new2/");
    works(folder, "blur photo.png -o new3/{stem}-blur.{ext} --to jpeg");
    works(folder, "blur photo.png -o new --to webp");
    for name in
        ["soft.png", "photos/photo.png", "new/photo.png", "new2/photo.png", "new3/photo-blur.jpg"]
    {
        assert!(exists(name), "{name}");
    }
    assert!(exists("new/photo.webp"));
    // Results of absolute names are put directly into the folder, unless --keep-tree is given.
    let (one, two) = (folder.join("photo.png"), folder.join("photos/photo.png"));
    let (one, two) = (one.display(), two.display());
    let (code, text) = run(folder, &format!("blur {one} {two} -o flat/"));
    assert_eq!(code, 2);
    assert!(text.contains("two inputs would become flat/photo.png; --keep-tree"), "{text}");
    works(folder, &format!("blur {one} -o flat/"));
    works(folder, &format!("blur {one} --out-dir flat2"));
    works(folder, &format!("blur {one} {two} --out-dir tree --keep-tree"));
    assert!(exists("flat/photo.png") && exists("flat2/photo.png"));
    assert!(exists(&format!("tree{two}")));
    works(folder, "blur photo.png photos/photo.png --out-dir relative");
    assert!(exists("relative/photos/photo.png"));

    fs::write(folder.join("v_4x4x4_uint8.raw"), [[0; 32], [9; 32]].concat()).unwrap();
    works(folder, "mesh v_4x4x4_uint8.raw --iso 3 -o one.stl");
    works(folder, "mesh v_4x4x4_uint8.raw --iso 3 -o meshes/");
    works(folder, "mesh v_4x4x4_uint8.raw --iso 3,4 -o meshes/ --to obj");
    for name in ["one.stl", "meshes/v_4x4x4_uint8.ply", "meshes/v_4x4x4_uint8-4.obj"] {
        assert!(exists(name), "{name}");
    }
    fs::write(folder.join("n.txt"), "3 1 2").unwrap();
    works(folder, "sort n.txt -o sorted.txt");
    works(folder, "sort n.txt -o numbers/");
    works(folder, "scan n.txt -o {stem}-sums.{ext}");
    works(folder, "scan photo.png -o numbers/");
    // Names of inputs cannot lead out of the folder of a template.
    fs::create_dir(folder.join("deep")).unwrap();
    fs::copy(folder.join("photo.png"), folder.join("...png")).unwrap();
    works(folder, "blur ...png -o deep/{stem}/x.{ext} --to png");
    assert!(exists("deep/...png/x.png") && !exists("x.png"));
    let (code, text) = run(folder, "sort photos -o deep/.{ext}/x");
    assert_eq!((code, text.contains("`.{ext}` becomes `.`")), (2, true), "{text}");
    for name in ["sorted.txt", "numbers/n.txt", "n-sums.txt", "numbers/photo.npy"] {
        assert!(exists(name), "{name}");
    }
}

#[test]
fn json_timings_are_the_only_line_on_stderr() {
    let folder = files();
    let folder = folder.path();
    fs::write(folder.join("v_4x4x4_uint8.raw"), [[0; 32], [9; 32]].concat()).unwrap();
    let json = |line: &str| -> serde_json::Value {
        let (_, text) = run(folder, &format!("{line} --timings=json"));
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
    // Each command reports its results.
    fs::write(folder.join("n.txt"), "3 1 2").unwrap();
    for (line, key) in [
        ("blur photo.png -o soft.png", "sigma"),
        ("histogram photo.png -o h.json", "channels"),
        ("mesh v_4x4x4_uint8.raw --iso 3", "triangles"),
        ("scan n.txt -o s.txt", "numbers"),
        ("scan photo.png -o s.npy", "shape"),
        ("sort n.txt -o s.txt", "numbers"),
        ("info photo.png", "format"),
        ("devices", "kind"),
        ("bench copy --repeats 1 --warmup 0", "median_ms"),
    ] {
        let json = json(line);
        assert!(json["results"][0].get(key).is_some(), "{line}: {json}");
    }
    assert_contains(&run(folder, "sort n.txt -o s.txt -v").1, "device: CPU");
    let failed = json("blur nothing.png -o x.png");
    assert!(failed["error"].as_str().unwrap().starts_with("cannot read nothing.png"), "{failed}");
    let partly = json("blur nothing.png photo.png -o soft/");
    assert!(partly["messages"][0].as_str().unwrap().starts_with("error: cannot read nothing.png"));
}

#[test]
fn scan_by_key_accepts_keys_of_any_width() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("n.txt"), "1 2 3 4 5").unwrap();
    let sums = |keys: &str, kind: &str| {
        let line = format!("scan n.txt -o s.txt --inclusive --by-key {keys} --key-type {kind}");
        let (code, text) = run(folder, &line);
        if code == 0 {
            fs::read_to_string(folder.join("s.txt")).unwrap()
        } else {
            format!("{code} {text}")
        }
    };
    fs::write(folder.join("u8.raw"), [7, 7, 7, 8, 8]).unwrap();
    assert_eq!(sums("u8.raw", "u8").trim(), "1 3 6 4 9");
    fs::write(folder.join("names.raw"), b"anaanabobbobbob").unwrap();
    assert_eq!(sums("names.raw", "3").trim(), "1 3 3 7 12");
    let floats: Vec<u8> =
        [0.0f64, -0.0, 1.0, 1.0, 2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    fs::write(folder.join("f64.raw"), floats).unwrap();
    assert_eq!(sums("f64.raw", "f64").trim(), "1 3 3 7 5");
    assert_eq!(sums("f64.raw", "u64").trim(), "1 2 3 7 5");
    assert!(sums("names.raw", "4").starts_with("4 error: names.raw"));
    assert!(sums("u8.raw", "2").starts_with("4 error: u8.raw"));
    assert!(sums("u8.raw", "0").starts_with("2 "));
    assert!(sums("n.txt", "u8").starts_with("2 error: n.txt: --key-type is for raw keys"));
}

#[test]
fn very_large_and_small_floats_are_printed_with_exponents() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("n.txt"), "1e300 2.5e-300 -1.5 0.001 123456789012345680000 1e21")
        .unwrap();
    works(folder, "scan n.txt -o s.txt --type f64 --op max --inclusive --init=-9");
    works(folder, "scan n.txt -o p.txt --type f64 --op min --inclusive");
    let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(text("s.txt").trim(), "1e300 1e300 1e300 1e300 1e300 1e300");
    assert_eq!(text("p.txt").trim(), "1e300 2.5e-300 -1.5 -1.5 -1.5 -1.5");
    fs::write(folder.join("n.txt"), "123456789012345680000 1e21").unwrap();
    works(folder, "scan n.txt -o s.txt --type f64 --op max --inclusive");
    assert_eq!(text("s.txt").trim(), "123456789012345680000 1e21");
}

#[test]
fn sort_keeps_rows_and_columns_or_warns() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let npy = |shape: &str, numbers: &[u32]| {
        let header = format!("{{'descr': '<u4', 'fortran_order': False, 'shape': {shape}, }}");
        let head = format!("\u{1}\0v\0{header:<117}\n");
        let numbers: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        [b"\x93NUMPY", head.as_bytes(), &numbers].concat()
    };
    fs::write(folder.join("a.npy"), npy("(2, 3)", &[5, 2, 9, 7, 1, 3])).unwrap();
    let sorted = |flags: &str| {
        let stderr = works(folder, &format!("sort a.npy -o o.npy {flags}"));
        let bytes = fs::read(folder.join("o.npy")).unwrap();
        let head = String::from_utf8_lossy(&bytes[..128]).into_owned();
        let numbers = bytes[128..].as_chunks::<4>().0.iter().map(|&n| u32::from_le_bytes(n));
        (numbers.collect::<Vec<u32>>(), head.contains("(2, 3)"), stderr)
    };
    assert_eq!(sorted("--axis x"), (vec![2, 5, 9, 1, 3, 7], true, String::new()));
    assert_eq!(sorted("--axis y"), (vec![5, 1, 3, 7, 2, 9], true, String::new()));
    assert_eq!(sorted("--axis x --descending").0, [9, 5, 2, 7, 3, 1]);
    assert_eq!(sorted("--axis x --argsort").0, [1, 0, 2, 1, 2, 0]);
    assert_eq!(sorted("--axis y --argsort").0, [0, 1, 1, 1, 0, 0]);
    let (numbers, is_table, stderr) = sorted("");
    assert_eq!((numbers, is_table), (vec![1, 2, 3, 5, 7, 9], false));
    assert!(
        stderr.contains(
            "warning: a.npy: all 2x3 numbers are sorted together; to sort each row, use --axis x"
        ),
        "{stderr}"
    );
    fs::write(folder.join("p.npy"), npy("(6,)", &[10, 11, 12, 13, 14, 15])).unwrap();
    works(folder, "sort a.npy -o o.npy --axis x --payload p.npy --payload-output q.npy");
    let bytes = fs::read(folder.join("q.npy")).unwrap();
    let moved = bytes[128..].as_chunks::<4>().0.iter().map(|&n| u32::from_le_bytes(n));
    assert_eq!(moved.collect::<Vec<_>>(), [11, 10, 12, 14, 15, 13]);
    let (code, text) = run(folder, "sort p.npy -o o.npy --axis x");
    assert_eq!((code, text.contains("two or three axes")), (2, true), "{text}");
}

#[test]
fn background_accepts_css_colours() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("v_4x4x4_uint8.raw"), [[0; 32], [9; 32]].concat()).unwrap();
    for (name, colour) in [
        ("white", [255, 255, 255, 255]),
        ("SteelBlue", [70, 130, 180, 255]),
        ("#369", [0x33, 0x66, 0x99, 255]),
        ("#336699", [0x33, 0x66, 0x99, 255]),
        ("none", [0; 4]),
        ("transparent", [0; 4]),
    ] {
        works(
            folder,
            &format!(
                "mesh v_4x4x4_uint8.raw --iso 3 --preview p.png --size 32x32 --background {name}"
            ),
        );
        let corner = image::open(folder.join("p.png")).unwrap().to_rgba8().get_pixel(0, 0).0;
        assert_eq!(corner, colour, "{name}");
    }
    let (code, text) =
        run(folder, "mesh v_4x4x4_uint8.raw --iso 3 --preview p.png --background blurple");
    assert_eq!((code, text.contains("'blurple' for '--background")), (2, true), "{text}");
}
