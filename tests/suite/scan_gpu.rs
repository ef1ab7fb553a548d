//! The GPU algorithms of scan, each selected and changed by hand.

use gpuproc::{
    data::{dtype::Dtype, number::Number},
    device::Kernel,
    gpu::{Context, Features, Shader},
    kernels::scan::{Algorithm, BLOCK, Op, Scan, ScanBuffers, ScanSpec, lookback},
};

use crate::{
    common::{Noise, Subject, subjects},
    scan::{LENGTHS, Random, assert_scan, noise, serial_scan},
};

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

/// Runs the look-back scan with `shader` and the initial contents of the carry buffer. Returns the result and the first
/// two numbers of the carry buffer after the scan.
fn scan_with_shader<T: Number>(
    spec: &ScanSpec,
    context: &Context,
    input: &[T],
    carry: &[T],
    shader: &Shader,
) -> (Vec<T>, Vec<T>) {
    let padded = (input.len().next_multiple_of(4) * 4) as u64;
    let source = context.allocate("source", padded).unwrap();
    context.write(&source, 0, input).unwrap();
    let result = context.allocate("result", padded).unwrap();
    let carry_len = carry.len().min(2);
    let carry = context.upload("carry", carry).unwrap();
    let mut batch = context.batch();
    let buffers = ScanBuffers { source: &source, result: &result, len: input.len(), carry: &carry };
    lookback::record_with(spec, context, &mut batch, buffers, shader).unwrap();
    batch.run().unwrap();
    (context.read(&result, input.len()).unwrap(), context.read(&carry, carry_len).unwrap())
}

/// Runs the look-back scan with changed constants on each device that supports it, and checks the result.
fn assert_lookback_scan(
    spec: ScanSpec,
    input: &[u32],
    before: u32,
    expected: &[u32],
    changed: &[(&str, &str)],
) {
    for Subject { name, context } in subjects() {
        if !lookback::is_supported(&spec, context) {
            continue;
        }
        let carry = vec![before; spec.carry_len(context, input.len())];
        let shader = lookback::LOOKBACK.with(changed);
        let (found, _) = scan_with_shader(&spec, context, input, &carry, &shader);
        let wrong = found.iter().zip(expected).position(|(a, b)| a != b);
        assert_eq!(wrong, None, "{name}, {} numbers, {changed:?}", input.len());
    }
}

fn lookback_spec(inclusive: bool) -> ScanSpec {
    let algorithm = Algorithm::Lookback;
    ScanSpec { dtype: Dtype::U32, op: Op::Sum, inclusive, algorithm }
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
        let spec = ScanSpec { op, ..lookback_spec(false) };
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
        let spec = ScanSpec { algorithm: Algorithm::Auto, ..lookback_spec(false) };
        let nvidia = context.is_hardware() && context.info.vendor == 0x10de;
        let expected = match nvidia && context.has(Features::SUBGROUP) {
            true => Algorithm::Lookback,
            false => Algorithm::Reduce,
        };
        assert_eq!(spec.choose(context), expected, "{name}");
        let floats = ScanSpec { dtype: Dtype::F32, ..spec };
        assert_eq!(floats.choose(context), expected, "{name}");
        let wide = ScanSpec { dtype: Dtype::F64, ..spec };
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
    let spec = ScanSpec { dtype: Dtype::F32, op, inclusive, algorithm };
    for Subject { name, context } in subjects() {
        if !lookback::is_supported(&spec, context) {
            continue;
        }
        let shader = lookback::CHAINED.with(changed);
        let (found, carry) = scan_with_shader(&spec, context, input, &[before; 3], &shader);
        let differs = |(a, b): (&f32, &f32)| a.to_bits() != b.to_bits();
        let wrong = found.iter().zip(&expected.values).position(differs);
        assert_eq!(wrong, None, "{name}, {} numbers, {changed:?}", input.len());
        let after = carry[1];
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
