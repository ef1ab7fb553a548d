//! Scan: the CPU and GPU kernels against serial references.

use gpuproc::{
    data::number::Number,
    device::Kernel,
    kernels::scan::{BLOCK, Op, Scan, Scannable, Scanned, SegmentedScan, Segments},
};

use crate::{
    asserts::assert_near,
    common::{Noise, assert_twins, wait_for_memory},
};

pub const LENGTHS: &[usize] =
    &[0, 1, 2, 3, 4, 5, 255, 256, 257, 511, 512, 513, 4095, 4096, 4097, 8191, 8193, 65_535, 65_537];

/// A number made of 64 random bits.
pub trait Random: Scannable {
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

pub fn noise<T: Random>(len: usize, seed: u64) -> Vec<T> {
    let mut noise = Noise(seed);
    (0..len).map(|_| T::random(noise.next())).collect()
}

/// The serial loop.
pub fn serial_scan<T: Copy>(
    input: &[T],
    inclusive: bool,
    init: T,
    join: impl Fn(T, T) -> T,
) -> Vec<T> {
    let mut sum = init;
    let mut output = Vec::new();
    for &number in input {
        let before = sum;
        sum = join(sum, number);
        output.push(if inclusive { sum } else { before });
    }
    output
}

pub fn bytes<T: Number>(values: &[T]) -> &[u8] {
    bytemuck::cast_slice(values)
}

/// Checks that the CPU and all devices give `expected`, bit for bit.
pub fn assert_scan<T: Scannable>(scan: &Scan<T>, input: &[T], expected: &[T]) {
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
fn comparison_detects_a_wrong_bit() {
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
    let _turn = wait_for_memory();
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
        assert_near(f64::from(found) / product, 1.0, 1e-5);
    }
}

#[test]
fn f64_sums_are_near_the_serial_scan() {
    let input: Vec<f64> = noise(100_003, 8);
    let scan = Scan::new(Op::Sum, false);
    let found = assert_twins(&scan, &input, assert_same);
    assert!(max_relative_error(&input, &found.values, false) < 1e-14);
}

/// Scans `input` in parts of `length` numbers, each of which continues from the one before.
fn scan_in_parts<T: Scannable>(mut scan: Scan<T>, input: &[T], length: usize) -> Scanned<T> {
    let mut values = Vec::new();
    for part in input.chunks(length) {
        let scanned = scan.cpu(part).unwrap();
        values.extend(scanned.values);
        scan.carry_in = scanned.carry_out;
    }
    Scanned { values, carry_out: scan.carry_in }
}

#[test]
fn scanning_in_two_parts_equals_one_scan() {
    let input: Vec<f32> = noise(BLOCK + 5000, 21);
    let scan = Scan::new(Op::Sum, false);
    let whole = scan.cpu(&input).unwrap();
    assert_same(&whole, &scan_in_parts(scan, &input, BLOCK), "in two parts");
}

#[test]
fn scanning_in_parts_of_any_length_equals_one_scan() {
    fn assert_parts_join<T: Random>(op: Op) {
        let input: Vec<T> = noise(5000, 22);
        for inclusive in [false, true] {
            let whole = Scan::new(op, inclusive).cpu(&input).unwrap();
            for length in [1, 7, 4096] {
                let found = scan_in_parts(Scan::new(op, inclusive), &input, length);
                assert_same(&whole, &found, &format!("parts of {length}"));
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

/// At both limits of each type: the last number that fits, and the first that does not, with every carry.
#[test]
fn checked_scans_find_overflow_at_the_limits_of_every_type() {
    fn check<T: Scannable>(op: Op, carry_in: T, numbers: &[T], overflow: Option<usize>) {
        for inclusive in [false, true] {
            let scan = Scan { carry_in, ..Scan::new(op, inclusive) };
            let found = scan.checked(numbers).unwrap();
            assert_eq!(found.err(), overflow, "{} {op}", T::DTYPE);
        }
    }
    macro_rules! limits {
        ($($type:ident)+) => {$(
            let (min, max) = ($type::MIN, $type::MAX);
            let carries: [$type; 3] = [0, 1, 5];
            for carry in carries {
                check(Op::Sum, carry, &[max - carry], None);
                check(Op::Sum, carry, &[max - carry, 1], Some(1));
                check(Op::Sum, carry, &[0, max - carry, 0, 2], Some(3));
                check(Op::Product, carry.max(1), &[max / carry.max(1)], None);
                check(Op::Product, 5, &[1, max / 5 + 1], Some(1));
            }
            check(Op::Product, max / 2, &[2], None);
            check(Op::Product, max / 2 + 1, &[1, 2, 0], Some(1));
            check(Op::Max, max, &[max, min], None);
            check(Op::Min, min, &[min, max], None);
        )+};
    }
    limits!(u32 u64);
    macro_rules! signed_limits {
        ($($type:ident)+) => {$(
            let (min, max) = ($type::MIN, $type::MAX);
            let carries: [$type; 5] = [0, 1, 5, -1, -7];
            for carry in carries {
                let (up, down) = (max - carry.max(0), min - carry.min(0));
                check(Op::Sum, carry.max(0), &[up], None);
                check(Op::Sum, carry.max(0), &[up, 1], Some(1));
                check(Op::Sum, carry.min(0), &[down], None);
                check(Op::Sum, carry.min(0), &[down, -1], Some(1));
                check(Op::Sum, carry.min(0), &[down, 0, 1, -2], Some(3));
            }
            check(Op::Product, min, &[1, -1], Some(1));
            check(Op::Product, -1, &[max, 1], None);
            check(Op::Product, min / 2, &[2], None);
            check(Op::Product, min / 2 - 1, &[2], Some(0));
            check(Op::Max, max, &[min, max], None);
        )+};
    }
    signed_limits!(i32 i64);
}
