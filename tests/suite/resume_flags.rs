//! `--resume` does work again if any flag has changed that the bytes of an output depend on. The flags are those that the
//! parser declares, so a new flag needs a case here, or a place in [`WITHOUT_EFFECT`].

use std::{collections::BTreeSet, fs, path::Path};

use gpuproc::cli;

use crate::common::{Noise, gpuproc, works};

/// Flags on which the bytes of outputs do not depend: they choose files, processes, resources and messages.
const WITHOUT_EFFECT: [&str; 23] = [
    "device",
    "timings",
    "threads",
    "max-memory",
    "max-pixels",
    "timeout",
    "log-json",
    "quiet",
    "verbose",
    "no-clobber",
    "no-progress",
    "help",
    "files-from",
    "output",
    "out-dir",
    "in-place",
    "keep-tree",
    "recursive",
    "shard",
    "resume",
    "dry-run",
    // The name of an output that ends with .html says the same.
    "compare",
    // With it, nothing is skipped.
    "picture",
];

/// Cases of a command: the flag, the input, the extension of the output, and the other flags without and with it.
type Case<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str);

/// Cases of all flags that say how volumes are read.
const READING: [Case<'_>; 11] = [
    ("dims", "d.raw", "", "", "--dims 8x4x2"),
    ("dtype", "d.raw", "", "--dims 4x4x2 --dtype u16", "--dims 4x4x2 --dtype i16"),
    ("endian", "d.raw", "", "--dims 4x4x2 --dtype u16", "--dims 4x4x2 --dtype u16 --endian big"),
    ("header-bytes", "d.raw", "", "", "--dims 4x4x3 --header-bytes 16"),
    ("volume", "times.nrrd", "", "--volume 1", "--volume 2"),
    ("pages", "pages.tif", "", "", "--pages"),
    ("stack", "pages.tif", "", "", "--stack"),
    ("series", "mixed", "", "--series 1", "--series 3"),
    ("channel", "tc.zarr", "", "--time 1 --channel 1", "--time 1 --channel 2"),
    ("time", "tc.zarr", "", "--channel 1 --time 1", "--channel 1 --time 2"),
    ("level", "in.zarr", "", "", "--level 1"),
];

/// Cases of the flags of every filter.
const WRITING: [Case<'_>; 11] = [
    ("quality", "p.pgm", "jpg", "", "--quality 50"),
    ("optimize", "p.pgm", "jpg", "", "--optimize"),
    ("compression", "p.pgm", "png", "", "--compression 9"),
    ("format", "p.pgm", "png", "", "--format pnm"),
    ("page", "pages.png", "png", "--page 1", "--page 2"),
    ("levels", "v.nrrd", "zarr", "--levels 1", "--levels 2"),
    ("chunks", "v.nrrd", "zarr", "", "--chunks 4x4x4"),
    ("zarr-version", "v.nrrd", "zarr", "", "--zarr-version 2"),
    ("file-chunks", "v.nrrd", "zarr", "", "--file-chunks 2"),
    ("then", "p.pgm", "png", "--then median", "--then median --radius 2"),
    ("strict", "p.pgm", "png", "", "--strict"),
];

const FILTERS: [(&str, &[Case<'_>]); 17] = [
    (
        "blur",
        &[
            ("sigma", "p.pgm", "png", "--sigma 1", "--sigma 2"),
            ("radius", "p.pgm", "png", "--method box --radius 1", "--method box --radius 2"),
            ("truncate", "p.pgm", "png", "--sigma 1", "--sigma 1 --truncate 2"),
            ("method", "p.pgm", "png", "--sigma 1", "--sigma 1 --method box"),
            ("iterations", "p.pgm", "png", "-r 1 -m box", "-r 1 -m box --iterations 2"),
            ("edge", "p.pgm", "png", "--sigma 1", "--sigma 1 --edge wrap"),
            ("channels", "c.ppm", "png", "--sigma 1", "--sigma 1 --channels r"),
            ("linear", "p.pgm", "png", "--sigma 1", "--sigma 1 --linear"),
        ],
    ),
    (
        "crop",
        &[
            ("region", "p.pgm", "png", "--region 0,0,4x4", "--region 0,1,4x4"),
            ("size", "p.pgm", "png", "--size 4", "--size 3"),
        ],
    ),
    ("flip", &[("axis", "p.pgm", "png", "--axis x", "--axis y")]),
    (
        "pad",
        &[
            ("by", "p.pgm", "png", "--by 1", "--by 2"),
            ("after", "p.pgm", "png", "--by 1", "--by 1 --after 2"),
            ("edge", "p.pgm", "png", "--by 1", "--by 1 --edge 7"),
        ],
    ),
    (
        "reorient",
        &[
            ("to", "v.nrrd", "nrrd", "--from RAS --to RAS", "--from RAS --to LAS"),
            ("from", "v.nrrd", "nrrd", "--from RAS --to RAS", "--from LAS --to RAS"),
        ],
    ),
    (
        "rotate",
        &[
            ("angle", "p.pgm", "png", "--angle 90", "--angle 180"),
            ("axis", "v.nrrd", "nrrd", "--angle 90", "--angle 90 --axis x"),
        ],
    ),
    ("transpose", &[("axes", "v.nrrd", "nrrd", "", "--axes yx")]),
    (
        "gradient",
        &[("sigma", "p.pgm", "png", "", "--sigma 2"), ("float", "p.pgm", "tif", "", "--float")],
    ),
    (
        "label",
        &[
            ("connectivity", "p.pgm", "png", "", "--connectivity 4"),
            ("equal", "p.pgm", "png", "", "--equal"),
            ("min-size", "p.pgm", "png", "", "--min-size 3"),
            ("table", "p.pgm", "png", "", "--table OUT.csv"),
            ("intensity", "p.pgm", "png", "--table OUT.csv", "--table OUT.csv --intensity p.pgm"),
        ],
    ),
    (
        "math a*2",
        &[
            ("dtype", "p.pgm", "tif", "", "--dtype u16"),
            (
                "raw-dtype",
                "d.raw",
                "nrrd",
                "--dims 4x4x2 --raw-dtype u16",
                "--dims 4x4x2 --raw-dtype i16",
            ),
        ],
    ),
    (
        "median",
        &[
            ("radius", "p.pgm", "png", "", "--radius 2"),
            ("percentile", "p.pgm", "png", "", "--percentile 20"),
        ],
    ),
    (
        "morph",
        &[
            ("op", "p.pgm", "png", "--op dilate", "--op erode"),
            ("radius", "p.pgm", "png", "--op dilate", "--op dilate --radius 2"),
            ("element", "p.pgm", "png", "--op dilate -r 2", "--op dilate -r 2 --element ball"),
        ],
    ),
    (
        "project",
        &[
            ("method", "v.nrrd", "png", "", "--method min"),
            ("axis", "v.nrrd", "png", "", "--axis x"),
        ],
    ),
    (
        "resize",
        &[
            ("size", "p.pgm", "png", "--size 8x4", "--size 4x8"),
            ("fit", "p.pgm", "png", "--fit 8x4", "--fit 4x8"),
            ("fill", "p.pgm", "png", "--fill 8x4", "--fill 4x8"),
            ("scale", "p.pgm", "png", "--scale 0.5", "--scale 0.25"),
            ("max", "p.pgm", "png", "--max 8", "--max 7"),
            ("filter", "p.pgm", "png", "--max 8", "--max 8 --filter linear"),
            ("linear", "p.pgm", "png", "--max 8", "--max 8 --linear"),
            ("no-shrink-on-load", "p.jpg", "png", "--max 2", "--max 2 --no-shrink-on-load"),
        ],
    ),
    (
        "threshold",
        &[
            ("value", "p.pgm", "png", "--value 3", "--value 99"),
            ("otsu", "p.pgm", "png", "--value 3", "--otsu"),
            ("classes", "p.pgm", "png", "--otsu", "--classes 3"),
            ("hysteresis", "p.pgm", "png", "--hysteresis 3,99", "--hysteresis 3,98"),
            ("local", "p.pgm", "png", "--local mean", "--local sauvola"),
            ("window", "p.pgm", "png", "--local mean", "--local mean --window 5"),
            ("sigma", "p.pgm", "png", "--local gaussian", "--local gaussian --sigma 3"),
            ("offset", "p.pgm", "png", "--local mean", "--local mean --offset 3"),
            ("k", "p.pgm", "png", "--local sauvola", "--local sauvola --k 0.3"),
            ("range", "p.pgm", "png", "--local sauvola", "--local sauvola --range 9"),
        ],
    ),
    (
        "convert",
        &[
            ("dtype", "p.pgm", "png", "", "--dtype u16"),
            (
                "raw-dtype",
                "d.raw",
                "nrrd",
                "--dims 4x4x2 --raw-dtype u16",
                "--dims 4x4x2 --raw-dtype i16",
            ),
            ("scale", "p.pgm", "png", "--scale full", "--scale minmax"),
            ("channels", "c.ppm", "png", "--channels r", "--channels g"),
        ],
    ),
    (
        "unsharp",
        &[
            ("sigma", "p.pgm", "png", "", "--sigma 2"),
            ("amount", "p.pgm", "png", "", "--amount 2"),
            ("threshold", "p.pgm", "png", "", "--threshold 5"),
        ],
    ),
];

const HISTOGRAM: [Case<'_>; 23] = [
    ("page", "pages.png", "csv", "--page 1", "--page 2"),
    ("bins", "p.pgm", "csv", "", "--bins 5"),
    ("range", "p.pgm", "csv", "", "--range 1,9"),
    ("channels", "c.ppm", "csv", "", "--channels r"),
    ("luma", "c.ppm", "csv", "", "--luma bt601"),
    ("alpha", "p.pgm", "csv", "", "--alpha weight"),
    ("roi", "p.pgm", "csv", "", "--roi 1,1,2,2"),
    ("mask", "p.pgm", "csv", "", "--mask p.pgm"),
    ("cumulative", "p.pgm", "csv", "", "--cumulative"),
    ("normalize", "p.pgm", "csv", "", "--normalize"),
    ("log", "p.pgm", "svg", "", "--log"),
    ("stats", "p.pgm", "csv", "", "--stats"),
    ("percentiles", "p.pgm", "csv", "--stats", "--stats --percentiles 3"),
    ("size", "p.pgm", "svg", "", "--size 320x200"),
    ("theme", "p.pgm", "svg", "", "--theme light"),
    ("title", "p.pgm", "svg", "", "--title x"),
    ("ymax", "p.pgm", "svg", "", "--ymax 7"),
    ("equalize", "p.pgm", "csv", "", "--equalize OUT.png"),
    ("auto-levels", "p.pgm", "csv", "", "--auto-levels OUT.png"),
    ("clip", "p.pgm", "csv", "--auto-levels OUT.png", "--auto-levels OUT.png --clip 9"),
    ("sum", "p.pgm", "csv", "", "--sum"),
    ("format", "p.pgm", "", "--format csv", "--format json"),
    ("strict", "p.pgm", "csv", "", "--strict"),
];

const MESH: [Case<'_>; 32] = [
    ("preview", "v.nrrd", "ply", "--iso 50", "--iso 50 --preview OUT.png"),
    (
        "size",
        "v.nrrd",
        "ply",
        "--iso 50 --preview OUT.png --size 64x64",
        "--iso 50 --preview OUT.png --size 32x32",
    ),
    (
        "background",
        "v.nrrd",
        "ply",
        "--iso 50 --preview OUT.png --size 64x64",
        "--iso 50 --preview OUT.png --size 64x64 --background white",
    ),
    ("iso", "v.nrrd", "ply", "--iso 50", "--iso 60"),
    ("labels", "v.nrrd", "ply", "--iso 1", "--labels"),
    ("space", "s.nrrd", "ply", "--iso 50", "--iso 50 --space voxel"),
    ("spacing", "v.nrrd", "ply", "--iso 50", "--iso 50 --spacing 1,2,3"),
    ("origin", "v.nrrd", "ply", "--iso 50", "--iso 50 --origin 1,2,3"),
    ("close", "v.nrrd", "ply", "--iso 50", "--iso 50 --close"),
    ("topology", "v.nrrd", "ply", "--iso 50", "--iso 50 --topology exact"),
    ("normals", "v.nrrd", "ply", "--iso 50", "--iso 50 --normals"),
    ("clean", "v.nrrd", "ply", "--iso 50", "--iso 50 --clean"),
    ("printable", "v.nrrd", "stl", "--iso 50 --close --clean", "--iso 50 --printable --smooth 3"),
    ("largest", "v.nrrd", "ply", "--iso 50", "--iso 50 --largest"),
    ("min-triangles", "v.nrrd", "ply", "--iso 50", "--iso 50 --min-triangles 9"),
    ("min-volume", "v.nrrd", "ply", "--iso 50", "--iso 50 --min-volume 2"),
    ("fill-holes", "v.nrrd", "ply", "--iso 50", "--iso 50 --fill-holes"),
    ("roi", "v.nrrd", "ply", "--iso 50", "--iso 50 --roi 0,0,0,3,3,3"),
    ("mask", "v.nrrd", "ply", "--iso 50", "--iso 50 --mask v.nrrd"),
    ("smooth", "v.nrrd", "ply", "--iso 50", "--iso 50 --smooth 2"),
    ("simplify", "v.nrrd", "ply", "--iso 50", "--iso 50 --simplify 0.5"),
    ("max-error", "v.nrrd", "ply", "--iso 50", "--iso 50 --max-error 0.1"),
    ("stats", "v.nrrd", "ply", "--iso 50 --simplify 0.5", "--iso 50 --simplify 0.5 --stats"),
    ("format", "v.nrrd", "ply", "--iso 50", "--iso 50 --format stl"),
    ("live", "v.nrrd", "html", "--iso 50", "--iso 50 --live"),
    ("color", "v.nrrd", "glb", "--iso 50", "--iso 50 --color red"),
    ("color-by", "v.nrrd", "ply", "--iso 50", "--iso 50 --color-by v.nrrd"),
    (
        "palette",
        "v.nrrd",
        "ply",
        "--iso 50 --color-by v.nrrd",
        "--iso 50 --color-by v.nrrd --palette magma",
    ),
    (
        "color-range",
        "v.nrrd",
        "ply",
        "--iso 50 --color-by v.nrrd",
        "--iso 50 --color-by v.nrrd --color-range 1,9",
    ),
    ("ascii", "v.nrrd", "ply", "--iso 50", "--iso 50 --ascii"),
    ("view", "v.nrrd", "html", "--iso 50", "--iso 50 --view 1,2"),
    ("strict", "v.nrrd", "ply", "--iso 50", "--iso 50 --strict"),
];

/// Scans resume only their shards.
const SCAN: [Case<'_>; 5] = [
    ("op", "n.raw", "part", "--shard 0/2", "--shard 0/2 --op max"),
    ("inclusive", "n.raw", "part", "--shard 0/2", "--shard 0/2 --inclusive"),
    ("init", "n.raw", "part", "--shard 0/2", "--shard 0/2 --init 3"),
    ("type", "n.raw", "part", "--shard 0/2", "--shard 0/2 --type i32"),
    (
        "format",
        "n.dat",
        "part",
        "--shard 0/2 --format raw --type u32",
        "--shard 0/2 --format raw --type i32",
    ),
];

/// The names of the flags of a command, without hidden ones.
fn flags_of(command: &str) -> BTreeSet<String> {
    let mut parser = cli::command();
    parser.build();
    let command = parser.find_subcommand(command.split(' ').next().unwrap()).unwrap();
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    shown.filter_map(|arg| arg.get_long().map(str::to_owned)).collect()
}

fn write_inputs(folder: &Path) {
    let mut noise = Noise(4);
    fs::write(folder.join("p.pgm"), [b"P5 16 12 255\n".to_vec(), noise.bytes(192)].concat())
        .unwrap();
    fs::write(folder.join("c.ppm"), [b"P6 4 4 255\n".to_vec(), noise.bytes(48)].concat()).unwrap();
    fs::write(folder.join("d.raw"), noise.bytes(64)).unwrap();
    for name in ["n.raw", "n.dat"] {
        fs::write(folder.join(name), noise.bytes(400)).unwrap();
    }
    fs::write(folder.join("v_8x7x6_uint8.raw"), noise.bytes(336)).unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    fs::copy(fixtures.join("volumes/i16_ras_gzip.nrrd"), folder.join("s.nrrd")).unwrap();
    fs::copy(fixtures.join("volumes/i16_time.nrrd"), folder.join("times.nrrd")).unwrap();
    fs::create_dir(folder.join("mixed")).unwrap();
    for series in ["ct", "big"] {
        for entry in fs::read_dir(fixtures.join("dicom").join(series)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            fs::copy(&path, folder.join("mixed").join(format!("{series}-{name}"))).unwrap();
        }
    }
    for line in [
        "blur v_8x7x6_uint8.raw v.nrrd --sigma 0",
        "blur v_8x7x6_uint8.raw pages.tif --sigma 0",
        "blur v_8x7x6_uint8.raw in.zarr --sigma 0 --levels 2",
        "resize p.pgm p.jpg --scale 1",
    ] {
        works(folder, line);
    }
    let pages = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/images/animation.png");
    fs::copy(pages, folder.join("pages.png")).unwrap();
    // Two time points of two channels.
    let array = "{\"zarr_format\": 2, \"shape\": [2, 2, 3, 4, 5], \"chunks\": [2, 2, 3, 4, 5], \"dtype\": \"|u1\", \
                 \"compressor\": null, \"fill_value\": 0, \"order\": \"C\", \"filters\": null, \"dimension_separator\": \"/\"}";
    let axes = "[{\"name\": \"t\", \"type\": \"time\"}, {\"name\": \"c\", \"type\": \"channel\"}, \
                {\"name\": \"z\", \"type\": \"space\"}, {\"name\": \"y\", \"type\": \"space\"}, {\"name\": \"x\", \"type\": \"space\"}]";
    let scale = "[{\"type\": \"scale\", \"scale\": [1, 1, 1, 1, 1]}]";
    let group = format!(
        "{{\"multiscales\": [{{\"version\": \"0.4\", \"axes\": {axes}, \"datasets\": \
         [{{\"path\": \"0\", \"coordinateTransformations\": {scale}}}]}}]}}"
    );
    let chunk = folder.join("tc.zarr/0/0/0/0/0");
    fs::create_dir_all(&chunk).unwrap();
    fs::write(chunk.join("0"), noise.bytes(240)).unwrap();
    fs::write(folder.join("tc.zarr/0/.zarray"), array).unwrap();
    fs::write(folder.join("tc.zarr/.zgroup"), "{\"zarr_format\": 2}").unwrap();
    fs::write(folder.join("tc.zarr/.zattrs"), group).unwrap();
}

/// Runs each case without the flag, with it, and with it again, all with `--resume`. Only the last run is skipped.
fn assert_flags_count(lines: &[(String, String, String)]) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_inputs(folder);
    let (mut jobs, mut names) = (String::new(), Vec::new());
    for (number, (flag, before, after)) in lines.iter().enumerate() {
        for line in [before, after, after] {
            let line = line.replace("OUT", &format!("out{number}"));
            let words: Vec<&str> = line.split_whitespace().collect();
            jobs += &format!("{}\n", serde_json::json!({ "arguments": words }));
            names.push(format!("--{flag}: {line}"));
        }
    }
    let mut command = gpuproc();
    command.current_dir(folder).args([
        "serve",
        "--device",
        "cpu",
        "--threads",
        "2",
        "--log-json",
        "log",
    ]);
    let output = command.write_stdin(jobs).assert().success().get_output().stdout.clone();
    let parsed = |text: &str| -> Vec<serde_json::Value> {
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let answers = parsed(std::str::from_utf8(&output).unwrap());
    for (answer, name) in answers.iter().zip(&names) {
        assert_eq!(answer["code"], 0, "{name}: {answer}");
    }
    let log = parsed(&fs::read_to_string(folder.join("log")).unwrap());
    let files = log.iter().filter(|line| line["event"] == "file");
    let found: Vec<&str> = files.map(|line| line["status"].as_str().unwrap()).collect();
    assert_eq!(found.len(), names.len());
    let wrong = |(index, status): (usize, &str)| {
        let expected = if index % 3 == 2 { "skipped" } else { "done" };
        (expected != status).then(|| format!("{status}: {}", names[index]))
    };
    let wrong: Vec<String> = found.iter().copied().enumerate().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The lines of `cases` of `command`, whose further flags are `own`.
fn lines(command: &str, own: &str, cases: &[Case<'_>]) -> Vec<(String, String, String)> {
    let line = |input: &str, extension: &str, flags: &str| {
        let dot = if extension.is_empty() { "" } else { "." };
        format!("{command} {input} {own} {flags} -o OUT{dot}{extension} --resume")
    };
    let both = |&(flag, input, extension, before, after): &Case<'_>| {
        let [before, after] = [before, after].map(|flags| line(input, extension, flags));
        (flag.to_owned(), before, after)
    };
    cases.iter().map(both).collect()
}

/// The cases of [`READING`] with outputs of this extension.
fn reading(extension: &'static str) -> Vec<Case<'static>> {
    let with = |&(flag, input, _, before, after): &Case<'static>| {
        let extension = if matches!(flag, "pages" | "stack") && extension == "nrrd" {
            "tif"
        } else {
            extension
        };
        (flag, input, extension, before, after)
    };
    READING.iter().map(with).collect()
}

fn assert_all_known(command: &str, known: &[&str]) {
    let is_known = |flag: &str| WITHOUT_EFFECT.contains(&flag) || known.contains(&flag);
    let unknown: Vec<String> =
        flags_of(command).into_iter().filter(|flag| !is_known(flag)).collect();
    assert!(unknown.is_empty(), "{command}: no case for {unknown:?}");
}

fn names<'a>(cases: &[Case<'a>]) -> Vec<&'a str> {
    cases.iter().map(|case| case.0).collect()
}

#[test]
fn filters_know_all_flags() {
    let shared = [names(&READING), names(&WRITING)].concat();
    for (command, own) in FILTERS {
        assert_all_known(command, &[&shared[..], &names(own)].concat());
    }
    let mut all = lines("blur", "--sigma 1", &[&reading("nrrd")[..], &WRITING].concat());
    all.extend(FILTERS.iter().flat_map(|(command, own)| lines(command, "", own)));
    assert_flags_count(&all);
}

#[test]
fn histograms_know_all_flags() {
    assert_all_known("histogram", &[names(&READING), names(&HISTOGRAM)].concat());
    assert_flags_count(&lines("histogram", "", &[&reading("csv")[..], &HISTOGRAM].concat()));
}

#[test]
fn meshes_know_all_flags() {
    assert_all_known("mesh", &[names(&READING), names(&MESH)].concat());
    // A mesh is made of volumes only.
    let volumes: Vec<_> = reading("ply").into_iter().filter(|case| case.0 != "pages").collect();
    let mut all = lines("mesh", "--iso 50", &volumes);
    all.extend(lines("mesh", "", &MESH));
    assert_flags_count(&all);
}

#[test]
fn shards_of_scans_know_all_flags() {
    // The part holds sums, which the file of carries does not change; the others are refused.
    let others = ["carry", "axis", "by-key", "key-type", "checked", "page", "exclusive", "strict"];
    assert_all_known("scan", &[names(&SCAN), others.to_vec()].concat());
    assert_flags_count(&lines("scan", "", &SCAN));
}
