//! Expressions of samples: the kernel against closures in Rust, precedence, messages with columns, and the command on every
//! kind of input.

use std::fs;

use gpuproc::{
    Channels, Device, Filter, Image, Label, Math, SampleType,
    data::{
        grid::{Alpha, Grid},
        noise::Noise,
    },
    device::{Device as KernelDevice, DeviceChoice},
    kernels::{chain, math},
    util::timings::Timings,
};

use crate::common::{
    all_types, assert_batch_runs, assert_volume_runs, gpuproc, number, numbers, output_of, run,
    type_range, works,
};

/// An expression, and the same in Rust.
type Case = (&'static str, fn(f64) -> f64);

fn truth(is_true: bool) -> f64 {
    if is_true { 1.0 } else { 0.0 }
}

/// The remainder of NumPy: for ordinary numbers, a minus a multiple of b that is rounded down.
fn modulo(a: f64, b: f64) -> f64 {
    match a % b {
        0.0 => 0.0f64.copysign(b),
        rest => rest + if (rest < 0.0) == (b < 0.0) { 0.0 } else { b },
    }
}

/// The smaller number; NaN if one of them is.
fn min(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) }
}

fn max(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

const CASES: [Case; 31] = [
    ("a", |a| a),
    ("255 - a", |a| 255.0 - a),
    ("-a", |a| -a),
    ("+a * 1.5e1", |a| a * 15.0),
    ("a / 3", |a| a / 3.0),
    ("1 / a", |a| 1.0 / a),
    ("a / 0", |a| a / 0.0),
    ("a % 7", |a| modulo(a, 7.0)),
    ("a % -7.5", |a| modulo(a, -7.5)),
    ("a % 0", |_| f64::NAN),
    ("a ^ 2 / 100", |a| a * a / 100.0),
    ("abs(a) + pi", |a| a.abs() + std::f64::consts::PI),
    ("sqrt(a)", f64::sqrt),
    ("floor(a / 8) - ceil(a / 8)", |a| (a / 8.0).floor() - (a / 8.0).ceil()),
    ("round(a / 8)", |a| (a / 8.0).round()),
    ("min(a, 50)", |a| min(a, 50.0)),
    ("max(3, -a, a / 2)", |a| max(max(3.0, -a), a / 2.0)),
    ("clamp(a * 1.2, 10, 200)", |a| min(max(a * 1.2, 10.0), 200.0)),
    ("where(a > 80, a, 7)", |a| if a > 80.0 { a } else { 7.0 }),
    ("where(a, 1, inf)", |a| if a == 0.0 { f64::INFINITY } else { 1.0 }),
    ("where(a == a, a, nan)", |a| a),
    ("(a < 80) * 5 + (a >= 80) * 9", |a| truth(a < 80.0) * 5.0 + truth(a >= 80.0) * 9.0),
    ("(a <= 80) + (a != 80) * 2", |a| truth(a <= 80.0) + truth(a != 80.0) * 2.0),
    // Precedence and associativity.
    ("a - 5 - 4", |a| a - 5.0 - 4.0),
    ("a / 4 / 2", |a| a / 4.0 / 2.0),
    ("a - 2 * 3 ^ 2", |a| a - 18.0),
    ("a * 0 + 2 ^ 3 ^ 2 / 4", |a| a * 0.0 + 128.0),
    ("a * 0 - 2 ^ 2", |a| a * 0.0 - 4.0),
    ("a * 0 + -2 ** -2 * 16", |a| a * 0.0 - 4.0),
    ("a * 0 + (not a == 3) * 2", |a| a * 0.0 + truth(a != 3.0) * 2.0),
    ("a * 0 + (1 or 0 and 0) * 4", |a| a * 0.0 + 4.0),
];

/// Expressions that make masks.
const MASKS: [Case; 8] = [
    ("a > 80", |a| truth(a > 80.0)),
    ("(a == 3)", |a| truth(a == 3.0)),
    ("a != a", |a| truth(a.is_nan())),
    ("not a", |a| truth(a == 0.0)),
    ("!(a <= 4)", |a| truth(a.is_nan() || a > 4.0)),
    ("a > 20 and a + 5 < 80", |a| truth(a > 20.0 && a + 5.0 < 80.0)),
    ("a || 0 && 1", |a| truth(a != 0.0)),
    ("a < 9 or a > 90 and a < 200", |a| truth(a < 9.0 || a > 90.0 && a < 200.0)),
];

/// The result for a grid in memory.
fn computed(text: &str, dtype: Option<SampleType>, grid: &Grid) -> Grid {
    let filter = math::Math::new(text, dtype).unwrap_or_else(|error| panic!("{text}: {error}"));
    let device = KernelDevice::new(&DeviceChoice::Cpu, Timings::new(false).into());
    chain::apply(&filter, &device, grid).unwrap()
}

/// A number as a sample of type `dtype`: integers are rounded, halves away from 0, and clamped; NaN becomes 0.
fn as_sample(value: f64, dtype: SampleType) -> f64 {
    match dtype {
        SampleType::F64 => number(value),
        SampleType::F32 => number(f64::from(value as f32)),
        _ if value.is_nan() => 0.0,
        _ => {
            let (low, high) = type_range(dtype);
            value.round().clamp(low, high) + 0.0
        }
    }
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn every_type_equals_closures() {
    for samples in all_types(3000) {
        let (input, dtype) = (numbers(&samples), samples.dtype());
        let grid = Grid { dims: [100, 10, 3], channels: 1, alpha: Alpha::None, samples };
        for (text, closure) in CASES {
            let found = numbers(&computed(text, None, &grid).samples);
            let expected: Vec<f64> = input.iter().map(|&a| as_sample(closure(a), dtype)).collect();
            assert!(bits(&found) == bits(&expected), "{text} of {dtype}");
        }
        for (text, closure) in MASKS {
            let result = computed(text, None, &grid).samples;
            assert_eq!(result.dtype(), SampleType::U8, "{text}");
            let expected: Vec<f64> = input.iter().map(|&a| 255.0 * closure(a)).collect();
            assert_eq!(numbers(&result), expected, "{text} of {dtype}");
            let result = computed(text, Some(SampleType::I16), &grid).samples;
            let expected: Vec<f64> = input.iter().map(|&a| closure(a)).collect();
            assert_eq!((result.dtype(), numbers(&result)), (SampleType::I16, expected), "{text}");
        }
    }
}

/// exp, log and powers do not come from the system, but are as near to the exact numbers.
#[test]
fn other_functions_are_exact_to_the_last_bits() {
    let samples: Vec<f64> = (0..4000).map(|at| f64::from(at) * 0.013 - 20.0).collect();
    let grid =
        Grid { dims: [4000, 1, 1], channels: 1, alpha: Alpha::None, samples: samples.into() };
    let cases: [Case; 4] = [
        ("exp(a)", f64::exp),
        ("log(a)", f64::ln),
        ("abs(a) ^ 0.3", |a| a.abs().powf(0.3)),
        ("a ^ 3", |a| a.powf(3.0)),
    ];
    for (text, closure) in cases {
        let results = numbers(&computed(text, None, &grid).samples);
        for (&a, found) in numbers(&grid.samples).iter().zip(results) {
            let expected = closure(a);
            let is_near = (found - expected).abs() <= 1e-15 * expected.abs();
            assert!(is_near || found.is_nan() && expected.is_nan(), "{text} of {a}: {found}");
        }
    }
}

#[test]
fn results_have_the_chosen_type() {
    for samples in all_types(500) {
        let input = numbers(&samples);
        let grid = Grid { dims: [50, 10, 1], channels: 1, alpha: Alpha::None, samples };
        for dtype in SampleType::SAMPLES {
            let result = computed("a * 1.5 - 40", Some(dtype), &grid).samples;
            let expected: Vec<f64> =
                input.iter().map(|a| as_sample(a * 1.5 - 40.0, dtype)).collect();
            let is_same = bits(&numbers(&result)) == bits(&expected);
            assert!(is_same && result.dtype() == dtype, "{dtype}");
        }
    }
}

/// Alpha stays the same share of the range of the type.
#[test]
fn alpha_is_kept() {
    let samples: Vec<u8> = Noise(3).bytes(4 * 999);
    let grid = Grid {
        dims: [999, 1, 1],
        channels: 4,
        alpha: Alpha::Straight,
        samples: samples.clone().into(),
    };
    let found = numbers(&computed("255 - a", None, &grid).samples);
    let shorts = numbers(&computed("a * 2", Some(SampleType::U16), &grid).samples);
    let mask = numbers(&computed("a > 80", None, &grid).samples);
    for (at, &sample) in samples.iter().enumerate() {
        let sample = f64::from(sample);
        let expected = match at % 4 == 3 {
            true => [sample, sample * 257.0, sample],
            false => [255.0 - sample, sample * 2.0, 255.0 * truth(sample > 80.0)],
        };
        assert_eq!([found[at], shorts[at], mask[at]], expected, "{at}");
    }
}

#[test]
fn wrong_expressions_are_named_by_their_columns() {
    for (text, column, part) in [
        ("", 1, "expected a number, a name or ("),
        ("  ", 3, "expected a number, a name or ("),
        ("255 - ", 7, "expected a number, a name or ("),
        ("255 - * a", 7, "expected a number, a name or ("),
        ("a and", 6, "expected a number, a name or ("),
        ("a + and", 5, "expected a number, a name or ("),
        ("()", 2, "expected a number, a name or ("),
        ("a a", 3, "expected an operator or the end"),
        ("2a", 2, "expected an operator or the end"),
        ("a)", 2, "expected an operator or the end"),
        ("1.2.3", 4, "expected an operator or the end"),
        ("(a + 1", 7, "expected an operator or )"),
        ("a = 3", 3, "use == to compare"),
        ("a $ 3", 3, "unexpected character $"),
        ("ä + a", 1, "unexpected character ä"),
        ("a + (ä)", 6, "unexpected character ä"),
        (".", 1, "unexpected character ."),
        ("a + b", 5, "unknown name b; names are a, pi, inf, nan, functions are abs, sqrt"),
        ("sin(a)", 1, "unknown name sin"),
        ("sqrt a", 6, "expected ( after sqrt"),
        ("abs()", 5, "expected a number, a name or ("),
        ("abs(a, 1)", 6, "abs takes 1 values: expected )"),
        ("max(a)", 6, "max takes 2 or more values: expected a comma"),
        ("clamp(a, 1)", 11, "clamp takes 3 values: expected a comma"),
        ("where(a, 1, 2, 3)", 14, "where takes 3 values: expected )"),
        ("min(a, 1", 9, "expected an operator, a comma or )"),
        ("0 < a < 3", 7, "comparisons cannot follow each other"),
        ("a == 1 != 0", 8, "comparisons cannot follow each other"),
    ] {
        let error = math::Math::new(text, None).unwrap_err().to_string();
        let expected = format!("expression, column {column}: {part}");
        assert!(error.starts_with(&expected), "{text}: {error}, expected {expected}");
    }
}

#[test]
fn deep_expressions_are_refused_and_long_ones_are_not() {
    let image = Image::new(2, 1, Channels::Gray, vec![1u8, 2]).unwrap();
    let run = |text: &str| Math::new(text).run(&Device::cpu(), &image);
    for (open, close) in [("(", ")"), ("-", ""), ("abs(", ")"), ("2^", ""), ("not ", "")] {
        let text = |count: usize| format!("{}a{}", open.repeat(count), close.repeat(count));
        let error = run(&text(10_000)).unwrap_err();
        assert!(error.to_string().contains("at most 100 levels"), "{error}");
        assert!(run(&text(60)).is_ok(), "{open}");
    }
    let long = format!("a{}", " + a - a".repeat(10_000));
    assert_eq!(run(&long).unwrap().samples(), [1, 2]);
    let wide = format!("max({}a)", "a,".repeat(10_000));
    assert_eq!(run(&wide).unwrap().samples(), [1, 2]);
}

#[test]
fn the_library_runs_chains() {
    let image = Image::new(6, 1, Channels::Gray, vec![90u8, 80, 0, 0, 0, 99]).unwrap();
    let count = gpuproc::Chain::new(Math::new("a * 2"), Math::new("a > 170")).then(Label::new(8));
    assert_eq!(count.run(&Device::cpu(), &image).unwrap().samples(), [1, 0, 0, 0, 0, 2]);
    let floats = Image::new(3, 1, Channels::Gray, vec![0.5f32, 2.0, f32::NAN]).unwrap();
    assert_eq!(
        Math::new("a > 1").run(&Device::cpu(), &floats).unwrap().samples(),
        [0.0, 255.0, 0.0]
    );
    assert!(Math::new("a +").kernels(2).is_err());
}

/// Writes a volume of 12x10x9 u8 samples, and returns them.
fn write_volume(folder: &std::path::Path) -> Vec<u8> {
    let samples: Vec<u8> = Noise(5).bytes(12 * 10 * 9);
    fs::write(folder.join("v_12x10x9_uint8.raw"), &samples).unwrap();
    samples
}

#[test]
fn computes_images_volumes_stores_batches_and_shards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let samples = write_volume(path);
    let expected: Vec<u8> = samples.iter().map(|a| 255 - a).collect();
    assert_volume_runs(path, ["math 255-a", "", "36K"], &expected);
    assert_batch_runs(path, ["math 255-a", ""], &expected);
    let mask: Vec<u8> = samples.iter().map(|&a| if a > 80 { 255 } else { 0 }).collect();
    assert_volume_runs(path, ["math a>80", "", "36K"], &mask);
    let short = |a: u8| (u32::from(a) * 300).min(65535) as u16;
    let shorts: Vec<u8> = samples.iter().flat_map(|&a| short(a).to_le_bytes()).collect();
    assert_volume_runs(path, ["math a*300", "--dtype u16", "36K"], &shorts);
}

#[test]
fn steps_of_chains_keep_the_order_of_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let samples = write_volume(path);
    let expected: Vec<u8> = samples.iter().map(|a| (255 - a) / 2).collect();
    let name = "v_12x10x9_uint8.raw";
    for line in [
        format!("math 255-a {name} --then math floor(a/2) o.raw"),
        format!("math 255-a {name} --then math floor(a/2) -o o.raw"),
        format!("math 255-a {name} -o o.raw --then math floor(a/2)"),
        format!("math 255-a {name} --then math -o o.raw floor(a/2)"),
        format!(
            "math -a {name} --dtype i16 --then math a+255 --then math floor(a/2) -t u8 -o o.raw"
        ),
        format!("blur --sigma 0 {name} --dtype u8 --then math floor((255-a)/2) -o o.raw"),
        format!("math --raw-dtype u8 floor((255-a)/2) {name} -o o.raw -t u8"),
    ] {
        works(path, &line);
        assert!(fs::read(path.join("o.raw")).unwrap() == expected, "{line}");
        fs::remove_file(path.join("o.raw")).unwrap();
    }
    let counts = output_of(path, &format!("math a>80 {name} --then histogram --bins 2"));
    let above = samples.iter().filter(|&&a| a > 80).count();
    assert!(counts.contains(&format!(",{above}")), "{counts}");
}

#[test]
fn wrong_expressions_exit_with_2_before_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    write_volume(folder.path());
    let mut command = gpuproc();
    let words = ["math", "255 - ", "v_12x10x9_uint8.raw", "o.raw"];
    let outcome = command.current_dir(folder.path()).args(words).output().unwrap();
    assert_eq!(outcome.status.code(), Some(2));
    let message = String::from_utf8(outcome.stderr).unwrap();
    assert_eq!(message, "error: expression, column 7: expected a number, a name or (\n");
    for (line, part) in [
        ("math", "<EXPRESSION>"),
        ("math 255-b v_12x10x9_uint8.raw o.raw", "column 5: unknown name b"),
        ("math a v_12x10x9_uint8.raw o.raw --dtype u64", "u64"),
        ("math -a+ v_12x10x9_uint8.raw --then math a -o o.raw", "column 4"),
        ("blur v_12x10x9_uint8.raw --then math -o o.raw", "<EXPRESSION>"),
    ] {
        let (code, message) = run(folder.path(), line);
        assert_eq!((code, message.contains(part)), (2, true), "{line}: {message}");
    }
    assert!(!folder.path().join("o.raw").exists());
}

/// Masks of JPEG files become PNG, other results remain JPEG.
#[test]
fn results_of_jpeg_files_are_jpeg_unless_they_are_masks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("p.pgm"), [b"P5 16 12 255\n".to_vec(), Noise(1).bytes(192)].concat())
        .unwrap();
    works(path, "blur p.pgm p.jpg --sigma 0");
    works(path, "math 255-a p.jpg -o out/");
    works(path, "math a>80 p.jpg -o out/");
    assert!(path.join("out/p.jpg").exists() && path.join("out/p.png").exists());
}

/// Writes `samples` as a volume with the header of an NRRD file, with slices 2 mm apart from `first` on.
fn write_nrrd(path: &std::path::Path, dtype: &str, first: f64, samples: &[u8]) {
    let header = format!(
        "NRRD0004\ntype: {dtype}\ndimension: 3\nsizes: 12 10 9\nencoding: raw\nendian: little\nspace: RAS\n\
         space directions: (1,0,0) (0,1,0) (0,0,2)\nspace origin: (0,0,{first})\n\n"
    );
    fs::write(path, [header.as_bytes(), samples].concat()).unwrap();
}

/// The other input has another format and type. Blocks of it are read together with those of the first input.
#[test]
fn two_volumes_are_combined_on_every_road() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let samples = write_volume(path);
    let others: Vec<u16> =
        Noise(8).bytes(12 * 10 * 9).iter().map(|&b| u16::from(b) * 200).collect();
    let bytes: Vec<u8> = others.iter().flat_map(|v| v.to_le_bytes()).collect();
    write_nrrd(&path.join("b.nrrd"), "uint16", 0.0, &bytes);
    works(path, "blur b.nrrd b.nii.gz --sigma 0");
    works(path, "blur b.nrrd b.zarr --sigma 0 --levels 1 --chunks 5x4x4");
    let value = |a: u8, b: u16| (f64::from(b) - f64::from(a)) / f64::from(b).max(1.0) * 100.0;
    let pairs = samples.iter().zip(&others);
    let expected: Vec<u8> = pairs.map(|(&a, &b)| value(a, b).round() as u8).collect();
    for other in ["b.nrrd", "b.nii.gz", "b.zarr"] {
        let command = format!("math (b-a)/max(b,1)*100 b={other}");
        let memory = if other == "b.zarr" { "400K" } else { "60K" };
        assert_volume_runs(path, [&command, "", memory], &expected);
        for name in ["whole.raw", "slow.raw", "parts.raw", "back.raw"] {
            fs::remove_file(path.join(name)).unwrap();
        }
        fs::remove_dir_all(path.join("out.zarr")).unwrap();
    }
    // Steps before and after it, whose blocks overlap. The named files stay with their step.
    let v = "v_12x10x9_uint8.raw";
    works(path, &format!("math (b-a)/max(b,1)*100 {v} m.nrrd b=b.nrrd"));
    works(path, "median m.nrrd -o c.nrrd");
    works(path, &format!("blur {v} s.nrrd --sigma 1"));
    works(path, "math b-a a=s.nrrd b=b.nii.gz --dtype i16 -o d.nrrd");
    for (line, whole) in [
        (format!("math (b-a)/max(b,1)*100 a={v} b=b.nrrd --then median -o o.nrrd"), "c.nrrd"),
        (format!("math (b-a)/max(b,1)*100 {v} b=b.nii.gz --then median -o o.nrrd"), "c.nrrd"),
        (format!("blur {v} --sigma 1 --then math b-a b=b.nii.gz --dtype i16 o.nrrd"), "d.nrrd"),
        (
            format!("blur {v} --sigma 1 --then math b-a b=b.nrrd -t i16 --then math a -o o.nrrd"),
            "d.nrrd",
        ),
    ] {
        for memory in ["", "--max-memory 100K"] {
            works(path, &format!("{line} {memory}"));
            let [found, expected] =
                ["o.nrrd", whole].map(|name| gpuproc::read(path.join(name)).unwrap());
            let [found, expected] = [found, expected].map(|own| {
                let floats = own.converted::<f64>().unwrap();
                floats.into_volume::<f64>().unwrap().into_samples()
            });
            assert!(found == expected, "{line} {memory}");
            fs::remove_file(path.join("o.nrrd")).unwrap();
        }
    }
}

#[test]
fn images_are_combined_by_pixels() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let (color, grey) = (Noise(2).bytes(3 * 192), Noise(3).bytes(192));
    fs::write(path.join("c.ppm"), [b"P6 16 12 255\n", &color[..]].concat()).unwrap();
    fs::write(path.join("g.pgm"), [b"P5 16 12 255\n", &grey[..]].concat()).unwrap();
    works(path, "blur g.pgm g.tif --sigma 0");
    works(path, "math a-b/2 c.ppm b=g.tif -o o.ppm");
    let half = |at: usize| f64::from(grey[at / 3]) / 2.0;
    let expected: Vec<u8> =
        color.iter().enumerate().map(|(at, &a)| (f64::from(a) - half(at)).round() as u8).collect();
    assert!(fs::read(path.join("o.ppm")).unwrap().ends_with(&expected));
    works(path, "math max(a,b) g.pgm c.ppm b=g.pgm -o out/");
    assert!(fs::read(path.join("out/g.pgm")).unwrap().ends_with(&grey));
    works(path, "math where(mask,a,0) g.pgm mask=g.tif -o o.pgm");
    assert!(fs::read(path.join("o.pgm")).unwrap().ends_with(&grey));
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let samples = write_volume(path);
    write_nrrd(&path.join("b.nrrd"), "uint8", 0.0, &samples);
    write_nrrd(&path.join("moved.nrrd"), "uint8", 7.0, &samples);
    fs::write(path.join("small_12x10x8_uint8.raw"), &samples[..960]).unwrap();
    for (name, size) in [("g.pgm", 192), ("wide.pgm", 240)] {
        let header = format!("P5 {} 12 255\n", size / 12);
        fs::write(path.join(name), [header.as_bytes(), &samples[..size]].concat()).unwrap();
    }
    fs::write(path.join("c.ppm"), [b"P6 16 12 255\n", &samples[..576]].concat()).unwrap();
    for (line, part) in [
        (
            "math a-b b.nrrd b=small_12x10x8_uint8.raw -o o.nrrd",
            "small_12x10x8_uint8.raw: 12 x 10 x 8 samples of 1 channel, expected 12 x 10 x 9 samples of 1 channel",
        ),
        (
            "math a-b g.pgm b=wide.pgm -o o.pgm",
            "wide.pgm: 20 x 12 samples of 1 channel, expected 16 x 12",
        ),
        (
            "math a-b g.pgm b=c.ppm -o o.pgm",
            "c.ppm: 16 x 12 samples of 3 channels, expected 16 x 12 samples of 1 channel",
        ),
        ("math 255-a g.pgm b=g.pgm -o o.pgm", "b=g.pgm: the expression does not use it"),
        ("math a-min g.pgm min=g.pgm -o o.pgm", "min=g.pgm: this name is taken"),
        ("math a-b-c g.pgm b=g.pgm -o o.pgm", "column 5: unknown name c; names are a, b, pi"),
        ("math a-b g.pgm b=g.pgm b=c.ppm -o o.pgm", "b=c.ppm: this name is taken"),
        ("math a-b g.pgm b=wide.pgm -o wide.pgm", "wide.pgm"),
    ] {
        let (code, message) = run(path, line);
        assert_eq!((code, message.contains(part)), (2, true), "{line}: {message}");
    }
    assert!(!path.join("o.pgm").exists() && !path.join("o.nrrd").exists());
    assert_eq!(run(path, "math a-b g.pgm b=none.pgm -o o.pgm").0, 7);
    // The placements of volumes are compared.
    let warning = works(path, "math a-b b.nrrd b=moved.nrrd -o o.nrrd");
    assert!(warning.contains("moved.nrrd: its placement differs"), "{warning}");
    assert!(!works(path, "math a-b b.nrrd b=b.nrrd -o o.nrrd").contains("placement"));
}

/// `--resume` does work again if the expression or another input has changed.
#[test]
fn resumed_runs_know_the_expression_and_all_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let grey = Noise(3).bytes(192);
    for name in ["g.pgm", "b.pgm"] {
        fs::write(path.join(name), [b"P5 16 12 255\n", &grey[..]].concat()).unwrap();
    }
    let written = |line: &str| {
        works(path, &format!("{line} --resume"));
        ["o.pgm", "p.pgm"]
            .map(|name| path.join(name).metadata().map(|own| own.modified().unwrap()).ok())
    };
    let first = written("math a-b g.pgm b=b.pgm -o o.pgm -o p.pgm");
    assert_eq!(written("math a-b g.pgm b=b.pgm -o o.pgm -o p.pgm"), first);
    let second = written("math a+b g.pgm b=b.pgm -o o.pgm -o p.pgm");
    assert!(second[0] != first[0] && second[1] != first[1]);
    fs::write(path.join("b.pgm"), [b"P5 16 12 255\n", &vec![1; 192][..]].concat()).unwrap();
    let third = written("math a+b g.pgm b=b.pgm -o o.pgm -o p.pgm");
    assert!(third[0] != second[0] && third[1] != second[1]);
    let expected: Vec<u8> = grey.iter().map(|a| a.saturating_add(1)).collect();
    for name in ["o.pgm", "p.pgm"] {
        assert!(fs::read(path.join(name)).unwrap().ends_with(&expected), "{name}");
    }
}
