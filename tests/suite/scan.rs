//! Scan: the CPU and GPU implementations against serial references, and the command line.

use std::{fs, path::Path};

use assert_cmd::Command;
use gpuproc::{
    data::{dtype::Dtype, number::Number},
    device::Kernel,
    gpu::Features,
    kernels::scan::{
        Algorithm, Axis, BLOCK, Op, Scan, ScanBuffers, Scannable, Scanned, SegmentedScan, Segments,
        Spec, Table, TableScan, lookback,
    },
};

use crate::common::{Noise, Subject, assert_twins, subjects};

const LENGTHS: &[usize] =
    &[0, 1, 2, 3, 4, 5, 255, 256, 257, 511, 512, 513, 4095, 4096, 4097, 8191, 8193, 65_535, 65_537];

/// A number made of 64 random bits.
trait Random: Scannable {
    fn random(bits: u64) -> Self;
}

macro_rules! random {
    ($($type:ident)+) => { $(impl Random for $type { fn random(bits: u64) -> Self { bits as $type } })+ };
}
random! { u32 i32 u64 i64 }

impl Random for f32 {
    /// Floats of either sign, with magnitudes from 2^-8 to 2^8.
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

/// The serial loop.
fn serial_scan<T: Copy>(input: &[T], inclusive: bool, init: T, join: impl Fn(T, T) -> T) -> Vec<T> {
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

/// Checks that the CPU and all devices give `expected`, bit for bit.
fn assert_scan<T: Scannable>(scan: &Scan<T>, input: &[T], expected: &[T]) {
    let label = format!("{scan:?} of {} numbers", input.len());
    let found = assert_twins(scan, input, |cpu, gpu, name| {
        assert_same(cpu, gpu, &format!("{label} on {name}"));
    });
    assert_eq!(found.values.len(), expected.len());
    let wrong = found.values.iter().zip(expected).position(|(a, b)| bytes(&[*a]) != bytes(&[*b]));
    assert_eq!(wrong.map(|i| (i, found.values[i], expected[i])), None, "{label}");
}

/// Checks that two results are bit-identical.
fn assert_same<T: Number>(a: &Scanned<T>, b: &Scanned<T>, label: &str) {
    assert_eq!(a.values.len(), b.values.len(), "{label}");
    let wrong = a.values.iter().zip(&b.values).position(|(a, b)| bytes(&[*a]) != bytes(&[*b]));
    assert_eq!(wrong.map(|i| (i, a.values[i], b.values[i])), None, "{label}");
    assert_eq!(bytes(&[a.carry_out]), bytes(&[b.carry_out]), "{label}: carry_out");
}

#[test]
fn comparison_detects_one_wrong_bit() {
    let right = Scanned { values: vec![0.0f32, 1.0], carry_out: 3.0 };
    let mut wrong = right.clone();
    wrong.values[0] = -0.0;
    let differs = |wrong: &Scanned<f32>| {
        std::panic::catch_unwind(|| assert_same(&right, wrong, "modified")).is_err()
    };
    assert!(!differs(&right));
    assert!(differs(&wrong));
    assert!(differs(&Scanned { carry_out: 4.0, ..right.clone() }));
    assert!(differs(&Scanned { values: vec![0.0], carry_out: 3.0 }));
}

#[test]
fn computes_textbook_prefix_sums() {
    let scan = Scan::<u32>::new(Op::Sum, false);
    assert_scan(&scan, &[1, 2, 3], &[0, 1, 3]);
    assert_scan(&Scan { inclusive: true, ..scan }, &[1, 2, 3], &[1, 3, 6]);
}

#[test]
fn u32_sums_equal_the_serial_scan_at_every_length() {
    for &len in LENGTHS.iter().chain(&[(1 << 20) + 7]) {
        let input: Vec<u32> = noise(len, len as u64);
        for inclusive in [false, true] {
            let scan = Scan { carry_in: 7, ..Scan::new(Op::Sum, inclusive) };
            assert_scan(&scan, &input, &serial_scan(&input, inclusive, 7, u32::wrapping_add));
        }
    }
}

#[test]
fn sums_carry_over_block_boundaries() {
    let input: Vec<u32> = noise(2 * BLOCK + 3, 5);
    let scan = Scan::new(Op::Sum, false);
    assert_scan(&scan, &input, &serial_scan(&input, false, 0, u32::wrapping_add));
}

fn assert_operations<T: Random + Eq>(join: [fn(T, T) -> T; 4]) {
    for len in [1, 257, 70_001] {
        let mut input: Vec<T> = noise(len, 11);
        for (op, join) in [Op::Sum, Op::Min, Op::Max, Op::Product].into_iter().zip(join) {
            if op == Op::Product {
                // Odd factors, so that products do not become 0.
                input
                    .iter_mut()
                    .for_each(|v| *v = if bytes(&[*v])[0] & 1 == 1 { *v } else { T::ONE });
            }
            for inclusive in [false, true] {
                let scan = Scan::<T>::new(op, inclusive);
                assert_scan(&scan, &input, &serial_scan(&input, inclusive, T::identity(op), join));
            }
        }
    }
}

#[test]
fn integer_operations_equal_the_serial_scan() {
    assert_operations::<u32>([u32::wrapping_add, Ord::min, Ord::max, u32::wrapping_mul]);
    assert_operations::<i32>([i32::wrapping_add, Ord::min, Ord::max, i32::wrapping_mul]);
    assert_operations::<u64>([u64::wrapping_add, Ord::min, Ord::max, u64::wrapping_mul]);
    assert_operations::<i64>([i64::wrapping_add, Ord::min, Ord::max, i64::wrapping_mul]);
}

#[test]
fn float_min_and_max_are_exact_and_propagate_nan() {
    for len in [3, 9000] {
        let mut input: Vec<f32> = noise(len, 3);
        input[len / 3] = -0.0;
        for inclusive in [false, true] {
            let (min, max) = (f32::INFINITY, f32::NEG_INFINITY);
            let scan = Scan::new(Op::Min, inclusive);
            assert_scan(&scan, &input, &serial_scan(&input, inclusive, min, f32::min));
            let scan = Scan::new(Op::Max, inclusive);
            assert_scan(&scan, &input, &serial_scan(&input, inclusive, max, f32::max));
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

/// The maximum error of a float scan, relative to the sum of magnitudes up to each number.
fn max_relative_error<T: Number + Into<f64>>(input: &[T], found: &[T], inclusive: bool) -> f64 {
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
fn float_sums_are_identical_on_all_devices_and_near_the_f64_scan() {
    for &len in LENGTHS.iter().chain(&[(1 << 20) + 7]) {
        let input: Vec<f32> = noise(len, 1 + len as u64);
        for inclusive in [false, true] {
            let scan = Scan::new(Op::Sum, inclusive);
            let found = assert_twins(&scan, &input, assert_same);
            assert!(max_relative_error(&input, &found.values, inclusive) < 3e-7, "{len} numbers");
        }
    }
}

#[test]
fn positive_float_sums_have_a_relative_error_below_1e_6() {
    let input: Vec<f32> = noise::<f32>(BLOCK + 4099, 9).into_iter().map(f32::abs).collect();
    let found = Scan::new(Op::Sum, true).cpu(&input).unwrap();
    assert!(max_relative_error(&input, &found.values, true) < 1e-6);
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
    assert!(max_relative_error(&input, &found.values, false) < 1e-14);
}

#[test]
fn scanning_in_two_parts_equals_one_scan() {
    let input: Vec<f32> = noise(BLOCK + 5000, 21);
    let mut scan = Scan::new(Op::Sum, false);
    let whole = scan.cpu(&input).unwrap();
    let mut parts = Vec::new();
    for part in input.chunks(BLOCK) {
        let scanned = scan.cpu(part).unwrap();
        parts.extend(scanned.values);
        scan.carry_in = scanned.carry_out;
    }
    assert_same(&whole, &Scanned { values: parts, carry_out: scan.carry_in }, "in two parts");
}

#[test]
fn scanning_in_parts_of_any_length_equals_one_scan() {
    fn assert_parts_join<T: Random>(op: Op) {
        let input: Vec<T> = noise(5000, 22);
        for inclusive in [false, true] {
            let whole = Scan::new(op, inclusive).cpu(&input).unwrap();
            for length in [1, 7, 4096] {
                let mut scan = Scan::<T>::new(op, inclusive);
                let mut parts = Vec::new();
                for part in input.chunks(length) {
                    let scanned = scan.cpu(part).unwrap();
                    parts.extend(scanned.values);
                    scan.carry_in = scanned.carry_out;
                }
                assert_same(&whole, &Scanned { values: parts, carry_out: scan.carry_in }, "parts");
            }
        }
    }
    for op in [Op::Sum, Op::Min, Op::Max, Op::Product] {
        assert_parts_join::<u32>(op);
        assert_parts_join::<i64>(op);
    }
    assert_parts_join::<f32>(Op::Max);
}

/// The serial loop, which restarts at each segment.
fn serial_segmented_scan<T: Copy>(
    Segments { numbers, starts }: &Segments<T>,
    inclusive: bool,
    (before, start): (T, T),
    join: impl Fn(T, T) -> T,
) -> Vec<T> {
    let mut sum = before;
    let mut expected = Vec::new();
    for (&number, &begins) in numbers.iter().zip(starts) {
        let before = if begins { start } else { sum };
        sum = join(before, number);
        expected.push(if inclusive { sum } else { before });
    }
    expected
}

/// Segments of very different lengths, from single numbers to several tiles.
fn segments<T: Random>(len: usize) -> Segments<T> {
    let mut starts: Vec<bool> = noise::<u32>(len, 32).iter().map(|v| v % 20_000 == 7).collect();
    let (from, to) = (len / 2, len.min(len / 2 + 100));
    starts[from..to].fill(true);
    Segments { numbers: noise(len, 31), starts }
}

#[test]
fn segmented_scan_restarts_at_each_segment() {
    // The last length exceeds one binding of the small device.
    for len in [1, 33, 4097, 270_003] {
        let input = segments::<u32>(len);
        for (op, join) in [(Op::Sum, u32::wrapping_add as fn(u32, u32) -> u32), (Op::Max, Ord::max)]
        {
            for inclusive in [false, true] {
                let scan = Scan { carry_in: 5, ..Scan::new(op, inclusive) };
                let expected = serial_segmented_scan(&input, inclusive, (5, 9), join);
                let kernel = SegmentedScan { scan, start: 9 };
                let found = assert_twins(&kernel, &input, |cpu, gpu, name| {
                    assert_same(cpu, gpu, &format!("{len} numbers, {op}, on {name}"));
                });
                assert!(found.values == expected, "{len} numbers, {op}, {inclusive}");
            }
        }
    }
    let wide = segments::<i64>(9001);
    let kernel = SegmentedScan { scan: Scan::new(Op::Min, true), start: i64::MAX };
    let found = assert_twins(&kernel, &wide, assert_same);
    assert!(found.values == serial_segmented_scan(&wide, true, (i64::MAX, i64::MAX), Ord::min));
}

#[test]
fn segmented_float_scan_is_identical_on_all_devices() {
    let input = segments::<f32>(100_007);
    for inclusive in [false, true] {
        let kernel = SegmentedScan { scan: Scan::new(Op::Sum, inclusive), start: 0.25 };
        let found = assert_twins(&kernel, &input, assert_same);
        let wide = Segments {
            numbers: input.numbers.iter().map(|&v| f64::from(v)).collect(),
            starts: input.starts.clone(),
        };
        let exact = serial_segmented_scan(&wide, inclusive, (0.0, 0.25), |a, b| a + b);
        // Magnitudes are below 2^8, and no segment has more than 10^5 numbers.
        let near = found.values.iter().zip(&exact).all(|(&a, b)| (f64::from(a) - b).abs() < 1.0);
        assert!(near);
    }
}

#[test]
fn segments_continue_in_the_next_part() {
    let input = segments::<u32>(200_003);
    let mut scan = Scan { carry_in: 5, ..Scan::new(Op::Sum, false) };
    let mut parts = Vec::new();
    for (numbers, starts) in input.numbers.chunks(77_777).zip(input.starts.chunks(77_777)) {
        let part = Segments { numbers: numbers.to_vec(), starts: starts.to_vec() };
        let scanned = SegmentedScan { scan, start: 9 }.cpu(&part).unwrap();
        parts.extend(scanned.values);
        scan.carry_in = scanned.carry_out;
    }
    assert!(parts == serial_segmented_scan(&input, false, (5, 9), u32::wrapping_add));
}

#[test]
fn scans_more_tiles_than_one_dispatch_dimension() {
    // The small device has 64 workgroups per dimension, and bindings of 64 tiles.
    let input: Vec<u32> = noise(4096 * 300 + 1, 2);
    let scan = Scan { algorithm: Algorithm::Reduce, ..Scan::new(Op::Sum, true) };
    assert_scan(&scan, &input, &serial_scan(&input, true, 0, u32::wrapping_add));
    assert!(subjects().len() != 1 || std::env::var_os("GPUPROC_TEST_SUBJECTS").is_some());
}

#[test]
fn blelloch_scan_equals_the_serial_scan() {
    fn check<T: Random + Eq>(len: usize, join: impl Fn(T, T) -> T) {
        let input: Vec<T> = noise(len, len as u64);
        for inclusive in [false, true] {
            let before = T::random(12_345);
            let new = Scan::new(Op::Sum, inclusive);
            let scan = Scan { algorithm: Algorithm::Blelloch, carry_in: before, ..new };
            assert_scan(&scan, &input, &serial_scan(&input, inclusive, before, &join));
        }
    }
    for len in [1, 2, 511, 512, 513, 1025, 512 * 512, 512 * 512 + 1] {
        check(len, i32::wrapping_add);
        check(len, u64::wrapping_add);
        check(len, i64::wrapping_add);
    }
    check((1 << 20) + 7, i32::wrapping_add);
    // The order of additions differs from that of the serial scan.
    let input: Vec<f64> = (0..3000).map(f64::from).collect();
    let scan = Scan { algorithm: Algorithm::Blelloch, ..Scan::new(Op::Sum, true) };
    assert_scan(&scan, &input, &serial_scan(&input, true, 0.0, |a, b| a + b));
}

/// Runs the look-back scan with changed constants on each device that supports it, and checks the result.
fn assert_lookback_scan(
    spec: Spec,
    input: &[u32],
    before: u32,
    expected: &[u32],
    changed: &[(&str, &str)],
) {
    for Subject { name, context } in subjects() {
        if !lookback::is_supported(&spec, context) {
            continue;
        }
        let padded = (input.len().next_multiple_of(4) * 4) as u64;
        let source = context.allocate("source", padded).unwrap();
        context.write(&source, 0, input).unwrap();
        let result = context.allocate("result", padded).unwrap();
        let places = vec![before; spec.carry_len(context, input.len())];
        let carry = context.upload("carry", &places).unwrap();
        let shader = lookback::LOOKBACK.with(changed);
        let mut batch = context.batch();
        let arrays =
            ScanBuffers { source: &source, result: &result, len: input.len(), carry: &carry };
        lookback::record_with(&spec, context, &mut batch, arrays, &shader).unwrap();
        batch.run().unwrap();
        let found: Vec<u32> = context.read(&result, input.len()).unwrap();
        let wrong = found.iter().zip(expected).position(|(a, b)| a != b);
        assert_eq!(wrong, None, "{name}, {} numbers, {changed:?}", input.len());
    }
}

fn lookback_spec(inclusive: bool) -> Spec {
    let algorithm = Algorithm::Lookback;
    Spec { dtype: Dtype::U32, op: Op::Sum, inclusive, algorithm }
}

#[test]
fn lookback_scan_equals_the_serial_scan() {
    for &len in LENGTHS.iter().chain(&[(1 << 20) + 7]) {
        let input: Vec<u32> = noise(len, len as u64);
        let sums = serial_scan(&input, true, 3, u32::wrapping_add);
        assert_lookback_scan(lookback_spec(true), &input, 3, &sums, &[]);
    }
    let input: Vec<u32> = noise::<u32>(30_001, 4).iter().map(|v| v | 1).collect();
    for (op, join) in [
        (Op::Min, Ord::min as fn(u32, u32) -> u32),
        (Op::Max, Ord::max),
        (Op::Product, u32::wrapping_mul),
    ] {
        let spec = Spec { op, ..lookback_spec(false) };
        assert_lookback_scan(spec, &input, 3, &serial_scan(&input, false, 3, join), &[]);
    }
}

#[test]
fn lookback_scan_recomputes_tiles_that_never_publish() {
    // Every other tile never publishes its sum, then long runs of tiles, then nearly all. Finally tiles do not wait at
    // all, so most sums are recomputed.
    let input: Vec<u32> = noise(8192 * 40 + 5, 1);
    let sums = serial_scan(&input, false, 9, u32::wrapping_add);
    for silent in ["1u", "24u", "0xfffffff7u"] {
        let changed = [("SILENT", silent), ("SPINS", "2u")];
        assert_lookback_scan(lookback_spec(false), &input, 9, &sums, &changed);
    }
    assert_lookback_scan(lookback_spec(false), &input, 9, &sums, &[("SPINS", "0u")]);
}

#[test]
fn lookback_scan_is_correct_in_repeated_runs() {
    for Subject { name, context } in subjects() {
        let spec = lookback_spec(true);
        if !lookback::is_supported(&spec, context) {
            continue;
        }
        let (rounds, len) =
            if context.is_hardware() { (10_000, (1 << 20) + 7) } else { (40, 70_007) };
        // The input is bound as a whole.
        let len = len.min(context.max_binding() as usize / 4 - 9);
        let mut input: Vec<u32> = noise(len, 1);
        let sums = serial_scan(&input, true, 0, u32::wrapping_add);
        input.resize(len.next_multiple_of(4), 0);
        let source = context.upload("source", &input).unwrap();
        let result = context.allocate("result", source.bytes()).unwrap();
        let carry = context.allocate("carry", 8).unwrap();
        let mut batch = context.batch();
        // No result of the previous run may remain.
        batch.clear(&result);
        batch.clear(&carry);
        let arrays = ScanBuffers { source: &source, result: &result, len, carry: &carry };
        lookback::record_with(&spec, context, &mut batch, arrays, &lookback::LOOKBACK).unwrap();
        for round in 0..rounds {
            batch.run().unwrap();
            let after: Vec<u32> = context.read(&carry, 2).unwrap();
            assert_eq!(after[1], sums[len - 1], "{name}, round {round}");
            if round % 20 == 0 {
                assert!(context.read::<u32>(&result, len).unwrap() == sums, "{name}, {round}");
            }
        }
    }
}

#[test]
fn lookback_is_chosen_only_on_hardware_with_forward_progress() {
    for Subject { name, context } in subjects() {
        let spec = Spec { algorithm: Algorithm::Auto, ..lookback_spec(false) };
        let nvidia = context.is_hardware() && context.info.vendor == 0x10de;
        let expected = match nvidia && context.has(Features::SUBGROUP) {
            true => Algorithm::Lookback,
            false => Algorithm::Reduce,
        };
        assert_eq!(spec.choose(context), expected, "{name}");
        let floats = Spec { dtype: Dtype::F32, ..spec };
        assert_eq!(floats.choose(context), expected, "{name}");
        let wide = Spec { dtype: Dtype::F64, ..spec };
        assert_eq!(wide.choose(context), Algorithm::Reduce, "{name}");
    }
}

/// Runs the chained scan of f32 with changed constants on each device that supports it. The result must be
/// bit-identical to that of the CPU.
fn assert_chained_scan(op: Op, inclusive: bool, input: &[f32], changed: &[(&str, &str)]) {
    let before = 0.1;
    let scan = Scan { carry_in: before, ..Scan::new(op, inclusive) };
    let expected = scan.cpu(input).unwrap();
    let algorithm = Algorithm::Lookback;
    let spec = Spec { dtype: Dtype::F32, op, inclusive, algorithm };
    for Subject { name, context } in subjects() {
        if !lookback::is_supported(&spec, context) {
            continue;
        }
        let padded = (input.len().next_multiple_of(4) * 4) as u64;
        let source = context.allocate("source", padded).unwrap();
        context.write(&source, 0, input).unwrap();
        let result = context.allocate("result", padded).unwrap();
        let carry = context.upload("carry", &[before; 3]).unwrap();
        let mut batch = context.batch();
        let arrays =
            ScanBuffers { source: &source, result: &result, len: input.len(), carry: &carry };
        lookback::record_with(&spec, context, &mut batch, arrays, &lookback::CHAINED.with(changed))
            .unwrap();
        batch.run().unwrap();
        let found: Vec<f32> = context.read(&result, input.len()).unwrap();
        let differs = |(a, b): (&f32, &f32)| a.to_bits() != b.to_bits();
        let wrong = found.iter().zip(&expected.values).position(differs);
        assert_eq!(wrong, None, "{name}, {} numbers, {changed:?}", input.len());
        let after = context.read::<f32>(&carry, 2).unwrap()[1];
        assert_eq!(after.to_bits(), expected.carry_out.to_bits(), "{name}, {}", input.len());
    }
}

/// Numbers whose sums and products are rounded but stay in range.
fn fractions(len: usize) -> Vec<f32> {
    let mut noise = Noise(len as u64);
    (0..len)
        .map(|_| 1.0 + ((noise.next() >> 40) as f32 / (1u32 << 24) as f32 - 0.5) / 64.0)
        .collect()
}

#[test]
fn chained_scan_rounds_like_the_cpu() {
    for &len in LENGTHS.iter().chain(&[4096 * 16, 4096 * 40 + 9, (1 << 20) + 7]) {
        assert_chained_scan(Op::Sum, true, &fractions(len), &[]);
        assert_chained_scan(Op::Sum, false, &fractions(len), &[]);
    }
    assert_chained_scan(Op::Product, false, &fractions(300_001), &[]);
    // More than a block.
    assert_chained_scan(Op::Sum, false, &fractions(BLOCK + 4096 * 37 + 5), &[]);
}

#[test]
fn chained_scan_recomputes_tiles_that_never_publish() {
    let input = fractions(4096 * 70 + 5);
    for silent in ["2u", "24u", "0xfffffff7u"] {
        assert_chained_scan(Op::Sum, false, &input, &[("SILENT", silent), ("SPINS", "2u")]);
    }
    assert_chained_scan(Op::Sum, true, &input, &[("SPINS", "0u")]);
}

/// The sum of all pixels to the left and above each pixel, added up one by one.
fn naive_summed_area_table(grid: &Table<u32>, axis: Axis, inclusive: bool) -> Vec<u32> {
    let Table { width, height, channels, ref values } = *grid;
    let (width, height) = (width as isize, height as isize);
    let at = |x: isize, y: isize, c: usize| values[(y * width + x) as usize * channels + c];
    let mut sums = Vec::new();
    for y in 0..height {
        for x in 0..width {
            for c in 0..channels {
                let one_more = isize::from(inclusive);
                let across = if axis == Axis::Y { x..x + 1 } else { 0..x + one_more };
                let down = if axis == Axis::X { y..y + 1 } else { 0..y + one_more };
                let pixels = down.flat_map(|y| across.clone().map(move |x| (x, y)));
                sums.push(pixels.fold(0, |sum: u32, (x, y)| sum.wrapping_add(at(x, y, c))));
            }
        }
    }
    sums
}

#[test]
fn summed_area_tables_equal_naive_sums() {
    for (width, height, channels) in [(1, 1, 1), (7, 130, 1), (65, 64, 3), (130, 66, 4)] {
        let values = noise(width * height * channels, 77);
        let grid = Table { width, height, channels, values };
        for axis in [Axis::X, Axis::Y, Axis::Both] {
            for inclusive in [false, true] {
                let table = TableScan::<u32>::new(axis, inclusive);
                let found = assert_twins(&table, &grid, |cpu, gpu, name| {
                    assert!(cpu == gpu, "{width} x {height}, {table:?} on {name}");
                });
                assert!(
                    found.values == naive_summed_area_table(&grid, axis, inclusive),
                    "{table:?}"
                );
            }
        }
    }
}

#[test]
fn summed_area_tables_of_wide_tall_and_empty_images() {
    // Rows longer than a workgroup processes at once, and several blocks on the small device.
    for (width, height, channels) in [(2049, 300, 1), (33, 9001, 3), (70_000, 2, 1)] {
        let values = noise(width * height * channels, 78);
        let grid = Table { width, height, channels, values };
        let table = TableScan::<u32>::new(Axis::Both, true);
        let found = assert_twins(&table, &grid, |cpu, gpu, name| {
            assert!(cpu == gpu, "{width} x {height} on {name}");
        });
        // The last pixel holds the sum of all pixels.
        for c in 0..channels {
            let of_channel = grid.values[c..].iter().step_by(channels);
            let sum = of_channel.fold(0u32, |sum, &value| sum.wrapping_add(value));
            assert_eq!(found.values[found.values.len() - channels + c], sum);
        }
    }
    for (width, height, channels) in [(0, 5, 1), (1 << 40, 0, 3), (usize::MAX, 0, 2)] {
        let empty = Table { width, height, channels, values: Vec::new() };
        let table = TableScan::<u32>::new(Axis::Both, true);
        assert_twins(&table, &empty, |cpu, gpu, name| assert_eq!(cpu, gpu, "{name}"));
    }
}

// The command line.

fn gpuproc(arguments: &[&str]) -> Command {
    let mut command = crate::common::gpuproc();
    command.args(arguments);
    command
}

/// Standard output of the program for `input`.
fn stdout_of(arguments: &[&str], input: impl Into<Vec<u8>>) -> Vec<u8> {
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
    assert!(fs::read(path("piped.npy")).unwrap() == fs::read(path("out.npy")).unwrap());
    let wrong = ["scan", "--type", "u32", &path("out.npy"), "-"];
    assert_fails(&wrong, "", 2, "numbers are i32, expected u32");
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
        "7 bytes, expected a multiple of 4 for u32",
    );
    assert_fails(&["scan", &path("text.npy"), &out], "", 4, "invalid .npy file: bad magic number");
    assert_fails(&["scan", &path("short.npy"), &out], "", 4, "expected a multiple of 4 for u32");
    assert_fails(&["scan", &path("shorter.npy"), &out], "", 4, "truncated: 1 numbers are missing");
    assert_fails(
        &["scan", "--format", "raw", "-", &out],
        "12345",
        4,
        "5 bytes, expected a multiple of 4 for u32",
    );
    assert_fails(&["scan", folder.path().to_str().unwrap(), &out], "", 7, "cannot read");
    assert_fails(&["scan", "-", "missing/out.txt"], "1", 7, "cannot write");
    assert!(!Path::new(&out).exists());
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
fn writes_summed_area_tables_of_images() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("grey.pgm"), b"P5 3 2 255\n\x01\x02\x03\x0a\x14\xff").unwrap();
    let (image, table) = (path("grey.pgm"), path("table.txt"));
    for (arguments, text) in [
        (&["--inclusive"][..], "1 3 6\n11 33 291\n"),
        (&[], "0 0 0\n0 1 3\n"),
        (&["--inclusive", "--axis", "x"], "1 3 6\n10 30 285\n"),
        (&["--axis", "y", "--type", "f64"], "0 0 0\n1 2 3\n"),
    ] {
        gpuproc(&[&["scan", &image, &table], arguments].concat()).assert().success();
        assert_eq!(fs::read_to_string(&table).unwrap(), text, "{arguments:?}");
    }
    // The same from an array, in C and Fortran order.
    for (order, numbers) in
        [("False", "\x01\x02\x03\x0a\x14\x7f"), ("True", "\x01\x0a\x02\x14\x03\x7f")]
    {
        let header = format!("{{'descr': '|u1', 'fortran_order': {order}, 'shape': (2, 3), }}");
        let start = format!("NUMPY\x01\0{}\0{header}{numbers}", header.len() as u8 as char);
        fs::write(path("grey.npy"), [&b"\x93"[..], start.as_bytes()].concat()).unwrap();
        for (arguments, text) in [
            (&["--inclusive", "--axis", "both"][..], "1 3 6\n11 33 163\n"),
            (&["--inclusive", "--axis", "y"], "1 2 3\n11 22 130\n"),
            (&["--inclusive"], "1\n3\n6\n16\n36\n163\n"),
        ] {
            gpuproc(&[&["scan", &path("grey.npy"), &table], arguments].concat()).assert().success();
            assert_eq!(fs::read_to_string(&table).unwrap(), text, "{order} {arguments:?}");
        }
    }
    let line = ["scan", "--axis", "x", "-"];
    assert_fails(&line, "1 2", 2, "--axis is for images and for .npy arrays");
    // The default format on standard output is .npy.
    let npy = stdout_of(&["scan", "--inclusive", &image], "");
    let header = String::from_utf8_lossy(&npy[..128]).into_owned();
    assert!(header.contains("'<u4'") && header.contains("(2, 3)"), "{header}");
    assert!(npy[128..] == *bytes(&[1u32, 3, 6, 11, 33, 291]));
    assert_fails(
        &["scan", "--op", "max", &image, &table],
        "",
        2,
        "summed-area tables support only --op sum",
    );
    // 65,535 times 65,538 no longer fits 32 bits.
    let mut wide = b"P5 65538 1 65535\n".to_vec();
    wide.extend([0xff; 2 * 65_538]);
    fs::write(path("wide.pgm"), wide).unwrap();
    gpuproc(&["scan", "--inclusive", &path("wide.pgm"), &path("wide.txt")]).assert().success();
    let text = fs::read_to_string(path("wide.txt")).unwrap();
    assert_eq!(text.split_whitespace().last().unwrap(), (65_535u64 * 65_538).to_string());
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
    let refused = run(&["--type", "f32"]).code(4);
    refused.stderr(predicates::str::contains("scanning sums of f32 in blocks of 16777216 takes"));
}
