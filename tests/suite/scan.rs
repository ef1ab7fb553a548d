//! Scan: both twins against naive references, and the command line.

use std::{fs, path::Path};

use assert_cmd::Command;
use gpuproc::{
    device::Kernel,
    kernels::scan::{Algorithm, BLOCK, LOOKBACK, Op, Scan, Scannable, Scanned, Spec},
    number::{Number, NumberType},
};

use crate::common::{Noise, Subject, assert_twins, subjects};

const LENGTHS: &[usize] =
    &[0, 1, 2, 3, 4, 5, 255, 256, 257, 511, 512, 513, 4095, 4096, 4097, 65_535, 65_536, 65_537];

/// A number made of 64 random bits.
trait Random: Scannable {
    fn random(bits: u64) -> Self;
}

macro_rules! random {
    ($($type:ident)+) => { $(impl Random for $type { fn random(bits: u64) -> Self { bits as $type } })+ };
}
random! { u32 i32 u64 i64 }

impl Random for f32 {
    /// Mixed signs, magnitudes from 2^-8 to 2^8.
    fn random(bits: u64) -> Self {
        let magnitude = f32::from_bits((119 + (bits % 16) as u32) << 23 | (bits >> 41) as u32);
        if bits & 1 << 40 == 0 { magnitude } else { -magnitude }
    }
}

impl Random for f64 {
    fn random(bits: u64) -> Self {
        f32::random(bits).into()
    }
}

fn noise<T: Random>(len: usize, seed: u64) -> Vec<T> {
    let mut noise = Noise(seed);
    (0..len).map(|_| T::random(noise.next())).collect()
}

/// The textbook's loop.
fn naive<T: Copy>(input: &[T], inclusive: bool, init: T, join: impl Fn(T, T) -> T) -> Vec<T> {
    let mut sum = init;
    let mut output = Vec::new();
    for &number in input {
        let before = sum;
        sum = join(sum, number);
        output.push(if inclusive { sum } else { before });
    }
    output
}

fn bytes<T: Number>(values: &[T]) -> &[u8] {
    bytemuck::cast_slice(values)
}

/// Both twins give `expected`, to the bit.
fn assert_scan<T: Scannable>(scan: &Scan<T>, input: &[T], expected: &[T]) {
    let what = format!("{scan:?} of {} numbers", input.len());
    let found = assert_twins(scan, input, |cpu, gpu, name| {
        assert_same(cpu, gpu, &format!("{what} on {name}"));
    });
    assert_eq!(found.values.len(), expected.len());
    let wrong = found.values.iter().zip(expected).position(|(a, b)| bytes(&[*a]) != bytes(&[*b]));
    assert_eq!(wrong.map(|i| (i, found.values[i], expected[i])), None, "{what}");
}

/// Equal to the bit.
fn assert_same<T: Number>(a: &Scanned<T>, b: &Scanned<T>, what: &str) {
    assert_eq!(a.values.len(), b.values.len(), "{what}");
    let wrong = a.values.iter().zip(&b.values).position(|(a, b)| bytes(&[*a]) != bytes(&[*b]));
    assert_eq!(wrong.map(|i| (i, a.values[i], b.values[i])), None, "{what}");
    assert_eq!(bytes(&[a.after]), bytes(&[b.after]), "{what}: what comes after");
}

#[test]
fn comparators_see_one_wrong_bit() {
    let right = Scanned { values: vec![0.0f32, 1.0], after: 3.0 };
    let mut wrong = right.clone();
    wrong.values[0] = -0.0;
    let differs = |wrong: &Scanned<f32>| {
        std::panic::catch_unwind(|| assert_same(&right, wrong, "planted")).is_err()
    };
    assert!(!differs(&right));
    assert!(differs(&wrong));
    assert!(differs(&Scanned { after: 4.0, ..right.clone() }));
    assert!(differs(&Scanned { values: vec![0.0], after: 3.0 }));
}

#[test]
fn the_sums_of_the_text_book() {
    let scan = Scan::<u32>::new(Op::Sum, false);
    assert_scan(&scan, &[1, 2, 3], &[0, 1, 3]);
    assert_scan(&Scan { inclusive: true, ..scan }, &[1, 2, 3], &[1, 3, 6]);
}

#[test]
fn sums_of_u32_equal_the_serial_scan_at_every_length() {
    for &len in LENGTHS.iter().chain(&[(1 << 20) + 7]) {
        let input: Vec<u32> = noise(len, len as u64);
        for inclusive in [false, true] {
            let scan = Scan { before: 7, ..Scan::new(Op::Sum, inclusive) };
            assert_scan(&scan, &input, &naive(&input, inclusive, 7, u32::wrapping_add));
        }
    }
}

#[test]
fn sums_past_one_block_carry_on() {
    let input: Vec<u32> = noise(2 * BLOCK + 3, 5);
    let scan = Scan::new(Op::Sum, false);
    assert_scan(&scan, &input, &naive(&input, false, 0, u32::wrapping_add));
}

fn every_operation<T: Random + Eq>(join: [fn(T, T) -> T; 4]) {
    for len in [1, 257, 70_001] {
        let mut input: Vec<T> = noise(len, 11);
        for (op, join) in [Op::Sum, Op::Min, Op::Max, Op::Product].into_iter().zip(join) {
            if op == Op::Product {
                // Odd factors, so that products do not sink to zero.
                input
                    .iter_mut()
                    .for_each(|v| *v = if bytes(&[*v])[0] & 1 == 1 { *v } else { T::ONE });
            }
            for inclusive in [false, true] {
                let scan = Scan::<T>::new(op, inclusive);
                assert_scan(&scan, &input, &naive(&input, inclusive, T::identity(op), join));
            }
        }
    }
}

#[test]
fn every_operation_on_every_integer_equals_the_serial_scan() {
    every_operation::<u32>([u32::wrapping_add, Ord::min, Ord::max, u32::wrapping_mul]);
    every_operation::<i32>([i32::wrapping_add, Ord::min, Ord::max, i32::wrapping_mul]);
    every_operation::<u64>([u64::wrapping_add, Ord::min, Ord::max, u64::wrapping_mul]);
    every_operation::<i64>([i64::wrapping_add, Ord::min, Ord::max, i64::wrapping_mul]);
}

#[test]
fn extremes_of_floats_are_exact_and_keep_nan() {
    for len in [3, 9000] {
        let mut input: Vec<f32> = noise(len, 3);
        input[len / 3] = -0.0;
        for inclusive in [false, true] {
            let (min, max) = (f32::INFINITY, f32::NEG_INFINITY);
            let scan = Scan::new(Op::Min, inclusive);
            assert_scan(&scan, &input, &naive(&input, inclusive, min, f32::min));
            let scan = Scan::new(Op::Max, inclusive);
            assert_scan(&scan, &input, &naive(&input, inclusive, max, f32::max));
        }
        input[len / 2] = -f32::NAN;
        let scan = Scan::new(Op::Max, true);
        let found = assert_twins(&scan, &input, assert_same);
        let nan = found.values.iter().position(|v| v.is_nan());
        assert_eq!(nan, Some(len / 2));
        assert!(found.values[len / 2..].iter().all(|v| v.is_nan()));
    }
    let scan = Scan::<f64>::new(Op::Min, true);
    let input = [0.0, -0.0, 1e-310, -1e-310, f64::NAN, 1.0];
    let found = assert_twins(&scan, &input[..], assert_same);
    assert_eq!(bytes(&found.values[..4]), bytes(&[0.0, -0.0, -0.0, -1e-310]));
    assert!(found.values[4].is_nan() && found.values[5].is_nan());
}

/// The largest error of a float scan, relative to the sum of magnitudes up to there.
fn error<T: Number + Into<f64>>(input: &[T], found: &[T], inclusive: bool) -> f64 {
    let (mut sum, mut magnitude, mut worst) = (0.0f64, 0.0f64, 0.0f64);
    for (&number, &found) in input.iter().zip(found) {
        let number: f64 = number.into();
        let before = sum;
        sum += number;
        magnitude += number.abs();
        let expected = if inclusive { sum } else { before };
        worst = worst.max((found.into() - expected).abs() / magnitude);
    }
    worst
}

#[test]
fn sums_of_floats_have_the_same_bits_everywhere_and_are_near_the_f64_scan() {
    for &len in LENGTHS.iter().chain(&[(1 << 20) + 7]) {
        let input: Vec<f32> = noise(len, 1 + len as u64);
        for inclusive in [false, true] {
            let scan = Scan::new(Op::Sum, inclusive);
            let found = assert_twins(&scan, &input, assert_same);
            assert!(error(&input, &found.values, inclusive) < 3e-7, "{len} numbers");
        }
    }
}

#[test]
fn float_sums_of_one_sign_stay_within_1e_5_relative() {
    let input: Vec<f32> = noise::<f32>(BLOCK + 4099, 9).into_iter().map(f32::abs).collect();
    let found = Scan::new(Op::Sum, true).cpu(&input).unwrap();
    assert!(error(&input, &found.values, true) < 1e-6);
}

#[test]
fn float_products_are_near_the_f64_scan() {
    // Factors near 1, so that products stay in range.
    let mut noise = Noise(4);
    let input: Vec<f32> = (0..50_000).map(|_| 1.0 + (noise.unit() - 0.5) as f32 / 64.0).collect();
    let scan = Scan::new(Op::Product, true);
    let found = assert_twins(&scan, &input, assert_same);
    let mut product = 1.0f64;
    for (&factor, &found) in input.iter().zip(&found.values) {
        product *= f64::from(factor);
        assert!((f64::from(found) / product - 1.0).abs() < 1e-5);
    }
}

#[test]
fn f64_sums_are_near_the_serial_scan() {
    let input: Vec<f64> = noise(100_003, 8);
    let scan = Scan::new(Op::Sum, false);
    let found = assert_twins(&scan, &input, assert_same);
    assert!(error(&input, &found.values, false) < 1e-14);
}

#[test]
fn stretches_give_what_the_whole_gives() {
    let input: Vec<f32> = noise(BLOCK + 5000, 21);
    let mut scan = Scan::new(Op::Sum, false);
    let whole = scan.cpu(&input).unwrap();
    let mut parts = Vec::new();
    for stretch in input.chunks(BLOCK) {
        let scanned = scan.cpu(stretch).unwrap();
        parts.extend(scanned.values);
        scan.before = scanned.after;
    }
    assert_same(&whole, &Scanned { values: parts, after: scan.before }, "in two stretches");
}

#[test]
fn more_tiles_than_one_dimension_of_workgroups() {
    // 64 workgroups a dimension on the small device, and bindings of 64 tiles.
    let input: Vec<u32> = noise(4096 * 300 + 1, 2);
    let scan = Scan { algorithm: Algorithm::Reduce, ..Scan::new(Op::Sum, true) };
    assert_scan(&scan, &input, &naive(&input, true, 0, u32::wrapping_add));
    assert!(subjects().len() != 1, "both subjects or none");
}

#[test]
fn the_baseline_equals_the_serial_scan() {
    for len in [1, 2, 511, 512, 513, 512 * 512, 512 * 512 + 1, (1 << 20) + 7] {
        let input: Vec<i32> = noise(len, len as u64);
        for inclusive in [false, true] {
            let new = Scan::new(Op::Sum, inclusive);
            let scan = Scan { algorithm: Algorithm::Blelloch, before: -5, ..new };
            assert_scan(&scan, &input, &naive(&input, inclusive, -5, i32::wrapping_add));
        }
    }
}

/// Runs the look-back with changed constants on each device that can, and checks the result.
fn look_back(spec: Spec, input: &[u32], before: u32, expected: &[u32], changed: &[(&str, &str)]) {
    for Subject { name, context } in subjects() {
        if !spec.can_look_back(context) {
            continue;
        }
        let padded = (input.len().next_multiple_of(4) * 4) as u64;
        let source = context.allocate("source", padded).unwrap();
        context.write(&source, 0, input).unwrap();
        let result = context.allocate("result", padded).unwrap();
        let places = vec![before; spec.carry_places(context, input.len())];
        let carry = context.upload("carry", &places).unwrap();
        let shader = LOOKBACK.with(changed);
        let mut batch = context.batch();
        spec.record_lookback(context, &mut batch, &source, &result, input.len(), &carry, &shader)
            .unwrap();
        batch.run().unwrap();
        let found: Vec<u32> = context.read(&result, input.len()).unwrap();
        let wrong = found.iter().zip(expected).position(|(a, b)| a != b);
        assert_eq!(wrong, None, "{name}, {} numbers, {changed:?}", input.len());
    }
}

fn look_back_spec(inclusive: bool) -> Spec {
    let algorithm = Algorithm::Lookback;
    Spec { number: NumberType::U32, op: Op::Sum, inclusive, algorithm }
}

#[test]
fn the_look_back_equals_the_serial_scan() {
    for &len in LENGTHS.iter().chain(&[(1 << 20) + 7]) {
        let input: Vec<u32> = noise(len, len as u64);
        let sums = naive(&input, true, 3, u32::wrapping_add);
        look_back(look_back_spec(true), &input, 3, &sums, &[]);
    }
}

#[test]
fn the_look_back_does_without_tiles_that_never_answer() {
    // Every other one, long runs, nearly all; then no patience at all, so that most are made again.
    let input: Vec<u32> = noise(4096 * 40 + 5, 1);
    let sums = naive(&input, false, 9, u32::wrapping_add);
    for silent in ["1u", "24u", "0xfffffff7u"] {
        let changed = [("SILENT", silent), ("SPINS", "2u")];
        look_back(look_back_spec(false), &input, 9, &sums, &changed);
    }
    look_back(look_back_spec(false), &input, 9, &sums, &[("SPINS", "0u")]);
}

#[test]
fn the_look_back_is_for_hardware_that_is_known_to_go_on() {
    for Subject { name, context } in subjects() {
        let spec = Spec { algorithm: Algorithm::Auto, ..look_back_spec(false) };
        let nvidia = context.is_hardware() && context.info.vendor == 0x10de;
        let expected = match nvidia && *name == "full" {
            true => Algorithm::Lookback,
            false => Algorithm::Reduce,
        };
        assert_eq!(spec.choose(context), expected, "{name}");
        let floats = Spec { number: NumberType::F32, ..spec };
        assert_eq!(floats.choose(context), Algorithm::Reduce, "{name}");
    }
}

// The command line.

fn gpuproc(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("gpuproc").unwrap();
    command.args(arguments);
    command
}

/// What the program prints for `input`.
fn printed(arguments: &[&str], input: impl Into<Vec<u8>>) -> Vec<u8> {
    let run = gpuproc(arguments).write_stdin(input).assert().success();
    run.get_output().stdout.clone()
}

#[track_caller]
fn assert_fails(arguments: &[&str], input: &str, code: i32, message: &str) {
    let run = gpuproc(arguments).write_stdin(input).assert().code(code);
    let error = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(error.contains(message), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn texts_keep_their_layout() {
    for (arguments, input, output) in [
        (&["scan", "-"][..], "1 2 3", "0 1 3\n"),
        (&["scan", "--inclusive", "-"], "1 2 3\n", "1 3 6\n"),
        (&["scan", "-"], "1,2 , 3\r\n\n4\t5,", "0,1,3\n6 10\n"),
        (&["scan", "-"], "", ""),
        (&["scan", "-"], " \n ", ""),
        (&["scan", "-", "--init", "10"], "1 2", "10 11\n"),
        (&["scan", "-", "--op", "max"], "3 1 4", "0 3 3\n"),
        (&["scan", "-", "--op", "min", "--inclusive"], "3 1 4", "3 1 1\n"),
        (&["scan", "-", "--op", "product"], "3 5 4", "1 3 15\n"),
        (&["scan", "-", "--type", "i32", "--init", "-1"], "-1 2", "-1 -2\n"),
        (&["scan", "-", "--type", "f32"], "0.5 1e1 inf", "0 0.5 10.5\n"),
        (&["scan", "-"], "4294967295 1 1", "0 4294967295 0\n"),
        (&["scan", "-", "--type", "u64"], "4294967295 1 1", "0 4294967295 4294967296\n"),
    ] {
        let found = printed(arguments, input);
        assert_eq!(String::from_utf8_lossy(&found), output, "{arguments:?} {input:?}");
    }
}

#[test]
fn long_texts_are_cut_at_no_number() {
    let numbers: Vec<u32> = noise(100_000, 6);
    let text: String = numbers.iter().map(|v| format!("{v}\n")).collect();
    let expected: String =
        naive(&numbers, true, 0, u32::wrapping_add).iter().map(|v| format!("{v}\n")).collect();
    let found = printed(&["scan", "--inclusive", "-"], text);
    assert!(found == expected.as_bytes());
}

#[test]
fn bad_texts_are_told_with_line_and_value() {
    assert_fails(&["scan", "-"], "1\n2 x3", 4, "standard input: line 2: `x3` is no u32");
    assert_fails(&["scan", "-"], "-1", 4, "try --type i32");
    assert_fails(&["scan", "-"], "4294967296", 4, "try --type i64");
    assert_fails(&["scan", "-"], "2.5", 4, "try --type f32");
    assert_fails(&["scan", "-"], "1,,2", 4, "line 1: no number stands before a comma");
    assert_fails(&["scan", "-"], ",1", 4, "line 1: no number stands before a comma");
    assert_fails(&["scan", "-"], &"9".repeat(300_000), 4, "line 1: `9999");
    assert_fails(&["scan", "-", "--init", "x"], "1", 2, "--init x is no u32");
    assert_fails(&["scan", "missing.txt"], "", 7, "cannot read missing.txt");
    assert_fails(&["scan", "-", "out.xyz"], "1", 2, "the extension `xyz`");
}

#[test]
fn files_by_extension() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let input: Vec<i32> = noise(10_007, 12);
    let sums = naive(&input, false, 0, i32::wrapping_add);
    fs::write(path("in.raw"), bytes(&input)).unwrap();
    gpuproc(&["scan", "--type", "i32", &path("in.raw"), &path("out.npy")]).assert().success();
    // The output's header gives its type away.
    gpuproc(&["scan", "--inclusive", "--op", "max", &path("out.npy"), &path("max.raw")])
        .assert()
        .success();
    let max = naive(&sums, true, i32::MIN, Ord::max);
    assert!(fs::read(path("max.raw")).unwrap() == bytes(&max));
    gpuproc(&["scan", "--type", "i32", &path("in.raw"), &path("out.txt")]).assert().success();
    let text = fs::read_to_string(path("out.txt")).unwrap();
    assert_eq!(text.lines().map(|l| l.parse().unwrap()).collect::<Vec<i32>>(), sums);
    let from_stdin = printed(&["scan", "--format", "raw", "--type", "i32", "-"], bytes(&input));
    assert!(from_stdin == bytes(&sums));
    // A length that is not known beforehand.
    gpuproc(&["scan", "--format", "raw", "--type", "i32", "-", &path("piped.npy")])
        .write_stdin(bytes(&input))
        .assert()
        .success();
    assert!(fs::read(path("piped.npy")).unwrap() == fs::read(path("out.npy")).unwrap());
    let wrong = ["scan", "--type", "u32", &path("out.npy"), "-"];
    assert_fails(&wrong, "", 2, "holds i32; --type u32 cannot change that");
}

#[test]
fn broken_files_leave_no_output() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("odd.raw"), [0; 7]).unwrap();
    fs::write(path("text.npy"), "1 2 3 4 5 6 7 8").unwrap();
    printed(&["scan", "--format", "text", "-", &path("good.npy")], "1 2 3");
    let mut short = fs::read(path("good.npy")).unwrap();
    short.pop();
    fs::write(path("short.npy"), &short).unwrap();
    short.truncate(short.len() - 3);
    fs::write(path("shorter.npy"), &short).unwrap();
    let out = path("out.txt");
    assert_fails(&["scan", &path("odd.raw"), &out], "", 4, "7 bytes are no whole number of u32");
    assert_fails(&["scan", &path("text.npy"), &out], "", 4, "is no .npy file");
    assert_fails(&["scan", &path("short.npy"), &out], "", 4, "no whole number of u32");
    assert_fails(&["scan", &path("shorter.npy"), &out], "", 4, "the data end 1 numbers early");
    assert_fails(&["scan", "--format", "raw", "-", &out], "12345", 4, "5 bytes are no whole");
    assert_fails(&["scan", folder.path().to_str().unwrap(), &out], "", 7, "cannot read");
    assert_fails(&["scan", "-", "missing/out.txt"], "1", 7, "cannot write");
    assert!(!Path::new(&out).exists());
    if Path::new("/dev/full").exists() {
        assert_fails(&["scan", "-", "/dev/full", "--format", "text"], "1", 7, "cannot write");
    }
}

/// Medians of all cases, for development: runs by hand with GPUPROC_CASES=small or full.
#[test]
#[ignore]
fn measure() {
    use gpuproc::kernels;
    let full = std::env::var("GPUPROC_CASES").is_ok_and(|v| v == "full");
    let only = std::env::var("GPUPROC_ONLY").unwrap_or_default();
    let adapter = &gpuproc::gpu::adapters()[0];
    let timings = std::sync::Arc::new(gpuproc::timings::Timings::new(true));
    let caps = gpuproc::gpu::Caps::default();
    let context = gpuproc::gpu::Context::open(adapter, &caps, timings.clone()).unwrap();
    for case in kernels::scan::cases(full).into_iter().chain(kernels::sort::cases(full)) {
        let what = format!("{case:?}");
        if !what.contains(&only) {
            continue;
        }
        let mut prepared = match (case.prepare)(Some(&context)) {
            Ok(prepared) => prepared,
            Err(error) => {
                println!("{what}: {}", error.one_line());
                continue;
            }
        };
        let mut times = Vec::new();
        let mut passes = std::collections::BTreeMap::<String, Vec<f64>>::new();
        for round in 0..23 {
            timings.drain();
            (prepared.run)().unwrap();
            if round < 3 {
                continue;
            }
            let mut sum = 0.0;
            let mut each = std::collections::BTreeMap::<String, f64>::new();
            for sample in timings.drain() {
                if sample.clock == gpuproc::timings::Clock::Gpu {
                    let ms = sample.duration.as_secs_f64() * 1e3;
                    sum += ms;
                    *each.entry(sample.stage).or_default() += ms;
                }
            }
            times.push(sum);
            each.into_iter().for_each(|(k, v)| passes.entry(k).or_default().push(v));
        }
        let median = |v: &mut Vec<f64>| {
            v.sort_by(f64::total_cmp);
            v[v.len() / 2]
        };
        let ms = median(&mut times);
        let detail: Vec<String> =
            passes.iter_mut().map(|(k, v)| format!("{k} {:.4}", median(v))).collect();
        let ok = match (prepared.check)() {
            Ok(()) => "ok".to_owned(),
            Err(error) => error.one_line(),
        };
        let (rate, detail) = (case.bytes as f64 / ms / 1e6, detail.join(", "));
        println!("{what:40} {ms:9.4} ms {rate:7.0} GB/s {ok} [{detail}]");
    }
}
