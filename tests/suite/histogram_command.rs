//! The command `histogram`: tables, plots and messages.

use std::{fs, path::PathBuf};

use image::{GrayImage, ImageBuffer, Luma, RgbImage, RgbaImage};
use predicates::{prelude::*, str::contains};

use crate::{
    asserts::{assert_contains, assert_lacks, assert_near},
    common::{Noise, gpuproc, program},
};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs `gpuproc histogram` in this folder on the CPU.
    fn run(&self, arguments: &[&str]) -> assert_cmd::assert::Assert {
        let mut command = gpuproc();
        command.current_dir(&self.0).env_remove("NO_COLOR");
        command.args(["histogram", "--device", "cpu"]).args(arguments).assert()
    }

    fn stdout(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments).success().get_output().stdout.clone();
        String::from_utf8(output).unwrap()
    }

    /// Saves an image of 6 x 7 pixels in three colours.
    fn save_three_colours(&self, name: &str) {
        let colours = [([34, 51, 255], 18), ([255, 85, 85], 16), ([255, 221, 0], 8)];
        let bytes = colours.iter().flat_map(|(colour, n)| colour.repeat(*n)).collect();
        RgbImage::from_raw(6, 7, bytes).unwrap().save(self.path(name)).unwrap();
    }
}

#[test]
fn standard_output_is_csv_with_one_row_per_bin() {
    let folder = Folder::new();
    folder.save_three_colours("a.png");
    let table = folder.stdout(&["a.png", "--bins", "3"]);
    let expected = "bin,low,high,r,g,b,luma\n\
                    0,0,85,18,18,8,18\n\
                    1,85,170,0,16,16,16\n\
                    2,170,255,24,8,18,8\n";
    assert_eq!(table, expected);
    let table = folder.stdout(&["a.png", "--bins", "3", "--channels", "luma", "--cumulative"]);
    assert_eq!(table, "bin,low,high,luma\n0,0,85,18\n1,85,170,34\n2,170,255,42\n");
    let table = folder.stdout(&["a.png", "--bins", "1", "--channels", "r", "--normalize"]);
    assert_eq!(table, "bin,low,high,r\n0,0,255,1\n");
}

#[test]
fn grey_channel_and_alpha_modes_are_counted() {
    let folder = Folder::new();
    GrayImage::from_raw(2, 1, vec![0, 255]).unwrap().save(folder.path("g.png")).unwrap();
    let table = folder.stdout(&["g.png", "--bins", "2"]);
    assert_eq!(table, "bin,low,high,grey\n0,0,127.5,1\n1,127.5,255,1\n");
    folder.run(&["g.png", "--channels", "r"]).code(4).stderr(contains("no red channel"));
    let pixels = vec![9, 9, 9, 0, 8, 8, 8, 255];
    RgbaImage::from_raw(2, 1, pixels).unwrap().save(folder.path("a.png")).unwrap();
    let table = folder.stdout(&["a.png", "--bins", "1", "--channels", "a,r"]);
    assert_eq!(table, "bin,low,high,a,r\n0,0,255,2,2\n");
    let skipped = ["a.png", "--bins", "1", "--channels", "r", "--alpha", "skip-transparent"];
    assert_eq!(folder.stdout(&skipped), "bin,low,high,r\n0,0,255,1\n");
    let pixels = vec![9, 9, 9, 51, 8, 8, 8, 255];
    RgbaImage::from_raw(2, 1, pixels).unwrap().save(folder.path("a.png")).unwrap();
    let weighted = ["a.png", "--bins", "1", "--channels", "r", "--alpha", "weight"];
    assert_eq!(folder.stdout(&weighted), "bin,low,high,r\n0,0,255,1.2\n");
}

#[test]
fn values_outside_the_range_have_rows_of_their_own() {
    let folder = Folder::new();
    GrayImage::from_raw(4, 1, vec![1, 10, 20, 30]).unwrap().save(folder.path("g.png")).unwrap();
    let table = folder.stdout(&["g.png", "--bins", "1", "--range", "10,20"]);
    assert_eq!(table, "bin,low,high,grey\n0,10,20,2\nbelow,-inf,10,1\nabove,20,inf,1\n");
    let table = folder.stdout(&["g.png", "--bins", "1", "--range", "data"]);
    assert_eq!(table, "bin,low,high,grey\n0,1,30,4\n");
    folder.run(&["g.png", "--range", "20,10"]).code(2);
    folder.run(&["g.png", "--bins", "0"]).code(2);
    folder.run(&["g.png", "--bins", "65537"]).code(2);
}

#[test]
fn statistics_of_u16_levels_are_exact() {
    let folder = Folder::new();
    let wide: ImageBuffer<Luma<u16>, _> =
        ImageBuffer::from_raw(5, 1, vec![1000u16, 2000, 2000, 3000, 65_535]).unwrap();
    wide.save(folder.path("w.png")).unwrap();
    let text = folder.stdout(&["w.png", "--stats", "--percentiles", "0,20,20.5,100"]);
    let expected = "w.png,grey,5,0,0,0,1000,65535,14707,2000,";
    assert!(text.lines().nth(1).unwrap().starts_with(expected), "{text}");
    assert!(text.contains(",2000,") && text.contains(",0,0.2,1000,1000,2000,65535"), "{text}");
}

#[test]
fn json_contains_counts_and_statistics() {
    let folder = Folder::new();
    folder.save_three_colours("a.png");
    folder.run(&["a.png", "--bins", "3", "-o", "a.json", "-o", "b.csv"]).success().stdout("");
    let text = fs::read_to_string(folder.path("a.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let luma = &json[0]["channels"][3];
    assert_eq!(luma["name"], "luma");
    assert_eq!(luma["values"], serde_json::json!([18, 16, 8]));
    // The luminances of the three colours are 62.1146, 121.142 and 212.2722.
    let mean = (18.0 * 62.1146 + 16.0 * 121.142 + 8.0 * 212.2722) / 42.0;
    assert_near(luma["statistics"]["mean"].as_f64().unwrap(), mean, 1e-9);
    assert!(fs::read_to_string(folder.path("b.csv")).unwrap().starts_with("bin,"));
}

#[test]
fn plots_contain_colours_and_labels() {
    let folder = Folder::new();
    let bytes = Noise(20).bytes(3 * 64 * 64);
    RgbImage::from_raw(64, 64, bytes).unwrap().save(folder.path("n.png")).unwrap();
    for extra in [&[][..], &["--log"], &["--cumulative", "--normalize"], &["--bins", "3000"]] {
        let arguments = [&["n.png", "-o", "p.png", "-o", "p.svg"], extra].concat();
        folder.run(&arguments).success();
        let plot = image::open(folder.path("p.png")).unwrap().to_rgb8();
        assert_eq!(plot.dimensions(), (1152, 588));
        let distinct: std::collections::BTreeSet<[u8; 3]> =
            plot.pixels().map(|pixel| pixel.0).collect();
        assert!(distinct.len() > 20, "{}", distinct.len());
        let svg = fs::read_to_string(folder.path("p.svg")).unwrap();
        assert!(svg.starts_with("<svg"), "{svg}");
        assert!(svg.ends_with("</svg>\n"), "{svg}");
        assert_contains(&svg, "luminance");
        assert_contains(&svg, "mix-blend-mode:screen");
        assert_lacks(&svg, "NaN");
        assert_lacks(&svg, "inf");
    }
}

#[test]
fn empty_selection_gives_empty_plots_and_null_statistics() {
    let folder = Folder::new();
    GrayImage::from_raw(2, 2, vec![1, 2, 3, 4]).unwrap().save(folder.path("g.png")).unwrap();
    GrayImage::from_raw(2, 2, vec![0; 4]).unwrap().save(folder.path("m.png")).unwrap();
    let arguments = ["g.png", "--mask", "m.png", "-o", "p.svg", "-o", "p.png", "-o", "p.json"];
    let picture = folder.stdout(&[&arguments[..], &["--picture", "--log"]].concat());
    assert_contains(&picture, "no finite samples");
    let svg = fs::read_to_string(folder.path("p.svg")).unwrap();
    assert_lacks(&svg, "NaN");
    assert_lacks(&svg, "inf");
    let json = fs::read_to_string(folder.path("p.json")).unwrap();
    assert_contains(&json, "\"statistics\": null");
}

#[test]
fn reads_standard_input() {
    let folder = Folder::new();
    folder.save_three_colours("a.png");
    let mut command = gpuproc();
    let bytes = fs::read(folder.path("a.png")).unwrap();
    let arguments = ["histogram", "-", "--bins", "3", "--channels", "luma", "--device", "cpu"];
    let output = command.args(arguments).write_stdin(bytes).assert().success();
    output.stdout("bin,low,high,luma\n0,0,85,18\n1,85,170,16\n2,170,255,8\n");
}

#[test]
fn terminal_picture_has_bars_and_statistics() {
    let folder = Folder::new();
    folder.save_three_colours("a.png");
    let picture = folder.stdout(&["a.png", "--picture"]);
    assert_contains(&picture, "█");
    assert_contains(&picture, "std dev");
    assert_contains(&picture, "luma");
    // Standard output is not a terminal, so there are no escape sequences.
    assert!(!picture.contains('\x1b'));
}

#[test]
fn several_inputs_are_listed_or_summed() {
    let folder = Folder::new();
    folder.save_three_colours("a.png");
    folder.save_three_colours("b.png");
    let arguments = ["a.png", "b.png", "--bins", "1", "--channels", "luma"];
    let table = folder.stdout(&arguments);
    assert_eq!(table, "file,bin,low,high,luma\na.png,0,0,255,42\nb.png,0,0,255,42\n");
    let table = folder.stdout(&[&arguments[..], &["--sum"]].concat());
    assert_eq!(table, "bin,low,high,luma\n0,0,255,84\n");
    let plot = [&arguments[..], &["-o", "p.png"]].concat();
    folder.run(&plot).success();
    let missing = ["a.png", "none.jpg", "--bins", "1"];
    folder.run(&missing).code(3).stdout(contains("42")).stderr(contains("none.jpg"));
}

/// Counts that exceed `--max-memory` go to a temporary file.
#[test]
fn outputs_do_not_depend_on_max_memory() {
    let folder = Folder::new();
    let mut noise = Noise(22);
    let names = ["a.png", "b.png", "c.png", "d.png"];
    for name in [names[0], names[1], names[3]] {
        let samples: Vec<u16> = (0..64).map(|_| (noise.next() >> 48) as u16).collect();
        let wide: ImageBuffer<Luma<u16>, _> = ImageBuffer::from_raw(8, 8, samples).unwrap();
        wide.save(folder.path(name)).unwrap();
    }
    folder.save_three_colours(names[2]);
    let outputs = |memory: &str| {
        let files = ["-o", "h.csv", "-o", "h.json", "--bins", "65536", "--max-memory", memory];
        let picture = folder.stdout(&[&names[..], &files, &["--picture"]].concat());
        let read = |name: &str| fs::read_to_string(folder.path(name)).unwrap();
        [picture, read("h.csv"), read("h.json")]
    };
    let [all, few] = ["1G", "1M"].map(outputs);
    // `assert_eq` would print megabytes.
    assert!(all == few);
    let [_, table, json] = all;
    // One row per bin and input. The colour channels of the third input have their own columns.
    assert_eq!(table.lines().next(), Some("file,bin,low,high,grey,r,g,b,luma"));
    assert_eq!(table.lines().count(), 1 + 4 * 65_536);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    for (i, name) in names.iter().enumerate() {
        assert_eq!(json[i]["inputs"], serde_json::json!([name]));
        let values = json[i]["channels"][0]["values"].as_array().unwrap();
        let sum: u64 = values.iter().map(|value| value.as_u64().unwrap()).sum();
        assert_eq!(sum, if i == 2 { 42 } else { 64 });
    }
}

#[test]
fn roi_and_mask_select_pixels() {
    let folder = Folder::new();
    let pixels = (0..12).collect();
    GrayImage::from_raw(4, 3, pixels).unwrap().save(folder.path("g.png")).unwrap();
    let table = folder.stdout(&["g.png", "--roi", "1,1,2,2", "--bins", "12", "--range", "0,12"]);
    let counts: Vec<&str> = table.lines().skip(1).map(|l| l.rsplit(',').next().unwrap()).collect();
    assert_eq!(counts, ["0", "0", "0", "0", "0", "1", "1", "0", "0", "1", "1", "0"]);
    let mask = vec![255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    GrayImage::from_raw(4, 3, mask).unwrap().save(folder.path("m.png")).unwrap();
    let table = folder.stdout(&["g.png", "--mask", "m.png", "--bins", "2", "--range", "0,11"]);
    assert_eq!(table, "bin,low,high,grey\n0,0,5.5,1\n1,5.5,11,1\n");
    folder.run(&["g.png", "--roi", "3,0,2,1"]).code(4).stderr(contains("is not within the image"));
}

#[test]
fn equalize_and_auto_levels_fill_the_range() {
    let folder = Folder::new();
    let pixels = (0..100).map(|i| 100 + i / 4).collect();
    GrayImage::from_raw(10, 10, pixels).unwrap().save(folder.path("g.png")).unwrap();
    let arguments = ["g.png", "--equalize", "e.png", "--auto-levels", "l.png", "--clip", "0"];
    assert_eq!(folder.stdout(&arguments), "");
    let range = |name: &str| {
        let image = image::open(folder.path(name)).unwrap().to_luma8();
        assert_eq!(image.dimensions(), (10, 10));
        let values = image.into_raw();
        (*values.iter().min().unwrap(), *values.iter().max().unwrap())
    };
    assert_eq!(range("e.png"), (0, 255));
    assert_eq!(range("l.png"), (0, 255));
    folder.run(&["g.png", "--equalize", "e.xyz"]).code(2);
    folder.run(&["g.png", "--auto-levels", "e.png", "--clip", "50%"]).code(2);
    folder.run(&["g.png", "g.png", "--equalize", "e.png"]).code(2);
}

#[test]
fn shape_of_raw_volumes_comes_from_their_names() {
    let folder = Folder::new();
    let floats: Vec<u8> =
        [0.0f32, 0.5, 1.0, f32::NAN, -1.0, 2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    fs::write(folder.path("v_3x2x1_float32.raw"), floats).unwrap();
    let table = folder.stdout(&["v_3x2x1_float32.raw", "--bins", "3"]);
    assert_eq!(table, "bin,low,high,grey\n0,-1,0,1\n1,0,1,2\n2,1,2,2\nnan,NaN,NaN,1\n");
    let table = folder.stdout(&["v_3x2x1_float32.raw", "--bins", "2", "--range", "0,1"]);
    let expected = "bin,low,high,grey\n0,0,0.5,1\n1,0.5,1,2\n\
                    below,-inf,0,1\nabove,1,inf,1\nnan,NaN,NaN,1\n";
    assert_eq!(table, expected);
}

#[test]
fn volume_counts_do_not_depend_on_max_memory() {
    let folder = Folder::new();
    let values = Noise(21).bytes(20 * 15 * 11);
    let bytes: Vec<u8> = values.iter().flat_map(|&value| f32::from(value).to_le_bytes()).collect();
    fs::write(folder.path("v_20x15x11_float32.raw"), &bytes).unwrap();
    let arguments = ["v_20x15x11_float32.raw", "--stats", "--bins", "7", "--max-memory"];
    let [whole, parts, smallest_parts] =
        ["1G", "8K", "1K"].map(|memory| folder.stdout(&[&arguments[..], &[memory]].concat()));
    assert_eq!([&parts, &smallest_parts], [&whole; 2]);
    assert!(whole.contains(",3300,0,0,0,0,255,"), "{whole}");
    // A file that is too short is an error.
    fs::write(folder.path("short_20x15x12_float32.raw"), &bytes).unwrap();
    folder.run(&["short_20x15x12_float32.raw"]).code(4);
}

#[test]
fn bad_inputs_and_outputs_give_one_error_line() {
    let folder = Folder::new();
    folder.save_three_colours("a.png");
    fs::write(folder.path("empty.png"), "").unwrap();
    fs::write(folder.path("text.png"), "hello").unwrap();
    fs::write(folder.path("v_2x2x2_uint8.raw"), "1234567").unwrap();
    let one_line = || contains("error: ").count(1);
    folder.run(&["none.png"]).code(7).stderr(one_line());
    // A folder is a batch: its good pictures are counted.
    folder.run(&[".", "-q"]).code(3).stderr(contains("error: ").count(3));
    folder.run(&["empty.png"]).code(4).stderr(one_line());
    folder.run(&["text.png"]).code(4).stderr(one_line());
    folder.run(&["v_2x2x2_uint8.raw"]).code(4).stderr(contains("8").and(contains("7")));
    folder.run(&["a.png", "-o", "x.pdf"]).code(2).stderr(contains(".svg"));
    folder.run(&["a.png", "-o", "no/x.csv"]).code(7).stderr(one_line());
    fs::write(folder.path("old.csv"), "old").unwrap();
    folder.run(&["a.png", "-o", "old.csv", "--no-clobber"]).code(7);
    assert_eq!(fs::read_to_string(folder.path("old.csv")).unwrap(), "old");
    if cfg!(target_os = "linux") {
        folder.run(&["a.png", "-o", "/dev/full"]).code(2);
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = std::process::Command::new(program());
        command.current_dir(folder.0.path()).args(["histogram", "a.png"]).stdout(full);
        assert_eq!(command.status().unwrap().code(), Some(7));
    }
}
