//! Single runs whose results once depended on the road, each with the result that is right. Those that are still wrong
//! are listed in `roads.rs`.

use std::{
    fmt::Debug,
    fs,
    path::{Path, PathBuf},
};

use gpuproc::{Channels, Device, Image, UnsharpMask};

use crate::{
    common::{run, works},
    dicom_files::{Attributes, PLAIN},
    road_facts::{Duty, Facts, Form, write_inputs},
    roads::Log,
    tiff_files::{TiffPage, tiff},
    zarr_reader::files,
};

/// A folder of inputs, and what failed.
struct Rows {
    folder: tempfile::TempDir,
    log: Log,
}

impl Rows {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the lines, which must succeed.
    fn works(&self, lines: &[&str]) {
        lines.iter().for_each(|line| drop(works(self.folder.path(), line)));
    }

    /// The exit code of `line`, and whether its message contains `message`.
    fn ends(&self, line: &str, message: &str) -> (i32, bool) {
        let (code, text) = run(self.folder.path(), line);
        (code, text.contains(message))
    }

    /// Adds a row, which fails if `found` is not `expected`.
    fn row<T: PartialEq + Debug>(&mut self, name: &str, found: T, expected: T) {
        let failure =
            (found != expected).then(|| format!("expected {expected:?}, found {found:?}"));
        self.log.add(format!("row | {name}"), failure);
    }

    /// Adds a row, which fails if a file differs from that of separate runs.
    fn same(&mut self, name: &str, [found, expected]: [&str; 2]) {
        let [found, expected] =
            [found, expected].map(|name| fs::read(self.path(name)).unwrap_or_default());
        self.row(name, (found == expected, found.is_empty()), (true, false));
    }

    fn facts(&self, form: Form, name: &str) -> Facts {
        form.read(&self.path(name))
    }
}

/// An image and a volume of two rectangles, ramps, and volumes of raw samples.
fn write_files(folder: &Path) {
    write_inputs(folder);
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    let is_set = |x: usize, y: usize| (2..6).contains(&x) && y < 7 || (9..14).contains(&x) && y > 8;
    let mask: Vec<u8> = (0..256).map(|at| if is_set(at % 16, at / 16) { 200 } else { 0 }).collect();
    write("m.pgm", &[b"P5 16 16 255\n", &mask[..]].concat());
    let ramp: Vec<u8> = (0..256).map(|at| 9 * (at % 16) as u8).collect();
    let page = TiffPage::grey([16, 16], 8, ramp);
    write("one.tif", &tiff(std::slice::from_ref(&page)));
    write("two.tif", &tiff(&[page.clone(), page]));
    // 1,024 pixels without neighbours.
    let is_set = |at: usize| at.is_multiple_of(2) && (at / 64).is_multiple_of(2);
    let isolated: Vec<u8> = (0..2 * 4096).map(|at| u8::from(is_set(at))).collect();
    write("i_64x64x2_uint8.raw", &isolated);
    let isolated: Vec<u8> = isolated.iter().map(|&value| 255 * value).collect();
    write("i.pgm", &[b"P5 64 64 255\n", &isolated[..4096]].concat());
    write("z_8x8x8_uint8.raw", &[0; 512]);
    write("half_8x8x8_uint8.raw", &[[0; 256], [9; 256]].concat());
}

#[test]
fn rows_of_known_defects() {
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path());
    let mut rows = Rows { folder, log: Log::default() };
    placement(&mut rows);
    floats_in_pages(&mut rows);
    labels(&mut rows);
    warnings(&mut rows);
    series(&mut rows);
    let (sharp, rounded) = sharpened_to_half();
    rows.row("rounding of 0.49999999999999994", (sharp, rounded), (0.5f64.next_down(), 0));
    rows.log.check();
}

/// Placement after a step that changes it.
fn placement(rows: &mut Rows) {
    rows.works(&[
        "resize a.nrrd --scale 0.5 --filter area --then label -o l.nrrd --table chain.csv",
        "resize a.nrrd --scale 0.5 --filter area -o half.nrrd",
        "label half.nrrd -o l.nrrd --table separate.csv",
        "resize a.nrrd --scale 0.5 --then project -o chain.png",
        "resize a.nrrd --scale 0.5 -o half.nrrd",
        "project half.nrrd -o separate.png",
    ]);
    rows.same("table after a resize", ["chain.csv", "separate.csv"]);
    rows.same("plane after a resize", ["chain.png", "separate.png"]);
}

/// Floats in units of bytes, in several pages and in a page that compares images.
fn floats_in_pages(rows: &mut Rows) {
    for extension in ["png", "webp"] {
        let [one, two] = ["one", "two"].map(|name| {
            let output = format!("{name}.{extension}");
            rows.works(&[&format!("gradient --float {name}.tif -o {output}")]);
            output
        });
        let one = rows.facts(Form::Image(1), &one).remove(&Duty::Samples).unwrap();
        let two = rows.facts(Form::Image(2), &two).remove(&Duty::Samples).unwrap();
        rows.row(&format!("pages of floats as {extension}"), two, format!("{one} + {one}"));
    }
    rows.works(&["gradient --float one.tif --compare -o one.html"]);
    let [page, image] = [(Form::Page, "one.html"), (Form::Image(1), "one.png")]
        .map(|(form, name)| rows.facts(form, name).remove(&Duty::Samples));
    rows.row("page of floats", page, image);
}

/// Labels in formats and steps that cannot hold them, and their tables.
fn labels(rows: &mut Rows) {
    for output in ["x.bmp", "x.jpg"] {
        let ends = ["label i.pgm -o", "project i_64x64x2_uint8.raw --then label -o"]
            .map(|line| rows.ends(&format!("{line} {output}"), "this format cannot hold labels"));
        let is_there = rows.path(output).exists();
        rows.row(&format!("labels as {output}"), (ends, is_there), ([(2, true); 2], false));
    }
    rows.works(&[
        "label a.nrrd -o l.nrrd --resume",
        "label a.nrrd -o l.nrrd --resume --table resumed.csv",
    ]);
    let was_there = fs::remove_file(rows.path("resumed.csv")).is_ok();
    rows.works(&["label a.nrrd -o l.nrrd --resume --table resumed.csv"]);
    let is_there = rows.path("resumed.csv").exists();
    rows.row("table of a resumed run", [was_there, is_there], [true; 2]);
    rows.works(&[
        "label m.pgm --then gradient --float -o steep.png",
        "label m.pgm -o l.png",
        "gradient --float l.png -o separate.png",
        "label a.nrrd --then blur -s 1 --levels 2 -o chain.zarr",
        "label a.nrrd -o l.nrrd",
        "blur l.nrrd -s 1 --levels 2 -o separate.zarr",
    ]);
    rows.same("gradient of labels", ["steep.png", "separate.png"]);
    let [chain, separate] = ["chain.zarr", "separate.zarr"].map(|name| files(&rows.path(name)));
    let differing = chain.iter().filter(|(name, bytes)| separate.get(*name) != Some(bytes));
    let names: Vec<String> = differing.map(|(name, _)| name.display().to_string()).collect();
    rows.row("blurred labels in a store", (names, chain.len()), (Vec::new(), separate.len()));
    for (line, code) in [
        ("label m.pgm --table no.csv -o l.bmp", 2),
        ("label a.nrrd --table no.csv -o no/such/l.nrrd", 7),
    ] {
        let found = (rows.ends(line, "").0, rows.path("no.csv").exists());
        let name = format!("no table with {}", line.rsplit(' ').next().unwrap());
        rows.row(&name, found, (code, false));
    }
}

/// Warnings and `--strict`.
fn warnings(rows: &mut Rows) {
    let fact = "all samples of the mask are 0";
    for (name, line) in [
        ("shard of NRRD", "a.nrrd --shard 0/1 -o s.nrrd"),
        ("shard of Zarr", "a.nrrd --shard 0/1 -o s.zarr"),
        ("page", "m.pgm --compare -o s.html"),
        ("histogram of a volume", "a.nrrd --then histogram -o s.csv"),
        ("histogram of an image", "m.pgm --then histogram -o s.csv"),
        ("volume", "a.nrrd -o whole.nrrd"),
    ] {
        let line = format!("threshold --value 255 {line}");
        let plain = rows.ends(&line, fact);
        let output = rows.path(line.rsplit(' ').next().unwrap());
        let removed = if output.is_dir() { fs::remove_dir_all } else { fs::remove_file }(&output);
        let strict = rows.ends(&format!("{line} --strict"), fact);
        let found = (plain, removed.is_ok(), strict, output.exists());
        rows.row(&format!("strict {name}"), found, ((0, true), true, (4, true), false));
    }
    // One shard has a mask of one class, the volume has two.
    let codes = [0, 1].map(|shard| {
        let line = format!("threshold half_8x8x8_uint8.raw --value 5 --shard {shard}/2 -o h.nrrd");
        rows.ends(&format!("{line} --strict"), fact)
    });
    let is_there = rows.path("h.nrrd").exists();
    rows.row("strict shards with one class", (codes, is_there), ([(0, false); 2], true));
    let (code, text) = run(rows.folder.path(), "threshold z_8x8x8_uint8.raw --otsu -o o.nrrd");
    let has_both = text.contains("z_8x8x8_uint8.raw") && text.contains("threshold z_8x8x8");
    rows.row("message of a volume without classes", (code, has_both), (4, true));
}

/// A series whose identifier begins another one.
fn series(rows: &mut Rows) {
    fs::create_dir(rows.path("dicom")).unwrap();
    for (uid, value) in [("1.2.3.1", 7), ("1.2.3.10", 9)] {
        for z in 0..2 {
            Attributes::picture([2, 2], 8)
                .text(0x0020_000e, b"UI", uid)
                .placed([0.0, 0.0, f64::from(z)], [1.0; 2])
                .pixels(&[value; 4])
                .write(rows.path(&format!("dicom/{uid}-{z}.dcm")), PLAIN);
        }
    }
    let found = rows.ends("blur dicom --series 1.2.3.1 -s 0 -o series.nrrd", "");
    let samples = fs::read(rows.path("series.nrrd")).unwrap_or_default();
    rows.row("exact series", (found.0, samples.ends_with(&[7; 8])), (0, true));
}

/// A result of `unsharp` just below one half: as a float, and as an integer.
fn sharpened_to_half() -> (f64, i32) {
    let (device, half) = (Device::cpu(), 0.5f64.next_down());
    let mask = UnsharpMask::new([1.0; 3]);
    for side in 2..200 {
        let samples = vec![0, -side];
        let floats = samples.iter().map(|&value| f64::from(value)).collect();
        let floats = Image::new(2, 1, Channels::Gray, floats).unwrap();
        let first = |amount| mask.amount(amount).run(&device, &floats).unwrap().samples()[0];
        let amount = half / first(1.0);
        if first(amount) == half {
            let whole = Image::new(2, 1, Channels::Gray, samples).unwrap();
            let sharp = mask.amount(amount).run(&device, &whole).unwrap();
            return (half, sharp.samples()[0]);
        }
    }
    (f64::NAN, i32::MIN)
}
