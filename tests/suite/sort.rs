//! Sort: the CPU and GPU implementations against the standard library's stable sort, and the command line.

use std::fs;

use gpuproc::{
    gpu::{Buffer, Context},
    kernels::sort::{Records, Sort, SortBuffers, Sortable, onesweep},
};

use crate::{
    asserts::{assert_absent, assert_same_file},
    common::{Noise, Subject, assert_twins, subjects},
    scan_command::gpuproc,
};

fn noise(len: usize, bits: u32) -> Vec<u32> {
    let mut noise = Noise(len as u64);
    (0..len).map(|_| (noise.next() >> (64 - bits)) as u32).collect()
}

/// Checks that the CPU and all devices sort stably in the order of `compare`, bit for bit.
fn assert_sorts<T: Sortable>(
    keys: Vec<T>,
    descending: bool,
    compare: impl Fn(&T, &T) -> std::cmp::Ordering,
) {
    let len = keys.len();
    let mut order: Vec<u32> = (0..len as u32).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (&keys[a as usize], &keys[b as usize]);
        if descending { compare(b, a) } else { compare(a, b) }
    });
    let bits = |keys: &[T]| bytemuck::cast_slice::<T, u8>(keys).to_vec();
    let expected: Vec<T> = order.iter().map(|&index| keys[index as usize]).collect();
    let sort = Sort::new(descending);
    for payload in [None, Some((0..len as u32).collect::<Vec<_>>())] {
        let records = Records { keys: keys.clone(), payload };
        let check = |found: &Records<T>, name: &str| {
            assert!(bits(&found.keys) == bits(&expected), "{len} {} keys on {name}", T::DTYPE);
            let moved = found.payload.as_ref().is_none_or(|payload| *payload == order);
            assert!(moved && found.payload.is_some() == records.payload.is_some(), "{name}");
        };
        let cpu = assert_twins(&sort, &records, |_, gpu, name| check(gpu, name));
        check(&cpu, "the CPU");
    }
}

#[test]
fn sorts_u32_keys_of_every_length() {
    for len in [0, 1, 2, 255, 256, 257, 2047, 2048, 2049, 4099, 65_537] {
        assert_sorts(noise(len, 32), false, Ord::cmp);
    }
}

#[test]
fn equal_keys_keep_their_order() {
    for bits in [1, 4, 9] {
        assert_sorts(noise(30_011, bits), false, Ord::cmp);
        assert_sorts(noise(30_011, bits), true, Ord::cmp);
    }
    assert_sorts(vec![u32::MAX; 5000], false, Ord::cmp);
    assert_sorts((0..9000u32).rev().collect(), false, Ord::cmp);
}

#[test]
fn sorts_signed_integers_and_floats_in_both_directions() {
    for descending in [false, true] {
        let keys: Vec<i32> = noise(10_007, 32).into_iter().map(|v| v as i32).collect();
        assert_sorts(keys, descending, Ord::cmp);
        let mut keys: Vec<f32> = noise(10_007, 32).into_iter().map(f32::from_bits).collect();
        keys.retain(|key| !key.is_nan());
        keys.extend([0.0, -0.0, f32::INFINITY, 0.0, -0.0, f32::NEG_INFINITY]);
        assert_sorts(keys, descending, f32::total_cmp);
    }
}

/// Floats like measured data: few exponents, some integers, and zeros and NaNs of both signs. NaNs come last in both
/// directions.
#[test]
fn sorts_floats_of_few_exponents_in_both_directions() {
    let mut noise = Noise(5);
    let keys: Vec<f64> = (0..90_001)
        .map(|i| match (i % 100, noise.next()) {
            (0, bits) => f64::from_bits(bits | 0x7ff << 52),
            (1, bits) => {
                if bits % 2 == 0 {
                    0.0
                } else {
                    -0.0
                }
            }
            (2..40, bits) => (bits % 1000) as f64,
            (_, bits) => (bits >> 11) as f64 / (1u64 << 53) as f64 - 0.25,
        })
        .collect();
    for descending in [false, true] {
        // Positive NaNs come before negative ones in both directions.
        let nan_last = |a: &f64, b: &f64| {
            let forwards = a.is_sign_negative().cmp(&b.is_sign_negative()).then(a.total_cmp(b));
            let order = match (a.is_nan(), b.is_nan()) {
                (true, true) => forwards,
                (false, false) => return a.total_cmp(b),
                (a, b) => a.cmp(&b),
            };
            if descending { order.reverse() } else { order }
        };
        assert_sorts(keys.clone(), descending, nan_last);
        let singles: Vec<f32> = keys.iter().map(|&key| key as f32).collect();
        let nan_last = |a: &f32, b: &f32| nan_last(&f64::from(*a), &f64::from(*b));
        assert_sorts(singles, descending, nan_last);
    }
}

#[test]
fn sorts_64_bit_keys_in_both_directions() {
    let wide = |len: usize| -> Vec<u64> {
        let mut noise = Noise(len as u64);
        (0..len).map(|_| noise.next()).collect()
    };
    for len in [0, 1, 2, 257, 2049, 70_001] {
        assert_sorts(wide(len), false, Ord::cmp);
    }
    for descending in [false, true] {
        assert_sorts(wide(10_007), descending, Ord::cmp);
        assert_sorts(wide(10_007).iter().map(|&v| v as i64).collect(), descending, Ord::cmp);
        let mut keys: Vec<f64> = wide(10_007).into_iter().map(f64::from_bits).collect();
        keys.retain(|key| !key.is_nan());
        keys.extend([0.0, -0.0, f64::INFINITY, 0.0, -0.0, f64::NEG_INFINITY]);
        assert_sorts(keys, descending, f64::total_cmp);
        // Only some bits differ: of the lower word, of the upper word, of both, or none.
        for mask in [0xff, 0x3 << 40, 0xf << 30, 0] {
            assert_sorts(wide(5003).iter().map(|v| v & mask).collect(), descending, Ord::cmp);
        }
    }
}

/// Runs the onesweep sort with changed constants on each device that supports it, with up to two payload arrays, and
/// checks the result.
fn assert_onesweep_sorts(keys: &[u32], differing: u32, changed: &[(&str, &str)]) {
    let mut sorted: Vec<(u32, u32)> = keys.iter().copied().zip(0..).collect();
    sorted.sort_by_key(|&(key, _)| key);
    let (sorted, order): (Vec<u32>, Vec<u32>) = sorted.into_iter().unzip();
    for Subject { name, context } in subjects() {
        if !onesweep::is_supported(context) {
            continue;
        }
        for count in 0..3 {
            let name = format!("{name}, {} keys, {count} moved, {changed:?}", keys.len());
            let arrays: Vec<[Buffer; 2]> =
                (0..count).map(|i| buffer_pair(context, keys.len(), i)).collect();
            let moved: Vec<&[Buffer; 2]> = arrays.iter().collect();
            let data = buffer_pair(context, keys.len(), 0);
            context.write(&data[0], 0, keys).unwrap();
            let mut batch = context.batch();
            let arrays = SortBuffers { keys: &data, moved: &moved, len: keys.len(), differing };
            let shader = onesweep::ONESWEEP.with(changed);
            let at = onesweep::record_with(context, &mut batch, arrays, &shader).unwrap();
            batch.run().unwrap();
            assert!(context.read::<u32>(&data[at], keys.len()).unwrap() == sorted, "{name}");
            for (number, pair) in (0..).zip(moved) {
                let found: Vec<u32> = context.read(&pair[at], keys.len()).unwrap();
                let is_moved = |(found, index): (&u32, &u32)| *found == index + number;
                assert!(found.iter().zip(&order).all(is_moved), "{name}");
            }
        }
    }
}

/// Two buffers of numbers that count up from `first`.
fn buffer_pair(context: &Context, len: usize, first: u32) -> [Buffer; 2] {
    let mut numbers: Vec<u32> = (first..).take(len).collect();
    numbers.resize(len.next_multiple_of(4), 0);
    [(); 2].map(|()| context.upload("numbers", &numbers).unwrap())
}

#[test]
fn onesweep_sorts_keys_of_every_distribution() {
    // The tile size on llvmpipe, whose subgroups have 8 invocations.
    let tile = 16 * 8 * 21;
    for len in [1, 2, 255, tile - 1, tile, tile + 1, 4 * tile, 65_537, 16 * 32 * 21 * 3 + 1] {
        assert_onesweep_sorts(&noise(len, 32), u32::MAX, &[]);
    }
    for bits in [1, 4, 9] {
        assert_onesweep_sorts(&noise(30_011, bits), u32::MAX, &[]);
    }
    assert_onesweep_sorts(&[u32::MAX; 20_000], u32::MAX, &[]);
    assert_onesweep_sorts(&(0..20_000).collect::<Vec<_>>(), u32::MAX, &[]);
    assert_onesweep_sorts(&(0..20_000).rev().collect::<Vec<_>>(), u32::MAX, &[]);
    // Digits that are equal in all keys are skipped: one, two, all.
    assert_onesweep_sorts(&noise(20_001, 24), 0x00ff_ffff, &[]);
    let middle: Vec<u32> = noise(20_001, 16).iter().map(|key| key << 8).collect();
    assert_onesweep_sorts(&middle, 0x00ff_ff00, &[]);
    assert_onesweep_sorts(&[7; 9000], 0, &[]);
}

#[test]
fn onesweep_recomputes_tiles_that_never_publish() {
    let keys = noise(8192 * 12 + 5, 32);
    for silent in ["1u", "6u", "0xfffffff7u"] {
        assert_onesweep_sorts(&keys, u32::MAX, &[("SILENT", silent), ("SPINS", "2u")]);
    }
    assert_onesweep_sorts(&keys, u32::MAX, &[("SPINS", "0u")]);
}

#[test]
fn nan_sorts_last_in_both_directions() {
    let keys = vec![f32::NAN, 1.0, -f32::NAN, f32::INFINITY, -2.0];
    for descending in [false, true] {
        let records = Records { keys: keys.clone(), payload: None };
        let cpu = assert_twins(&Sort::new(descending), &records, |cpu, gpu, name| {
            let bits = |r: &Records<f32>| r.keys.iter().map(|k| k.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(cpu), bits(gpu), "{name}");
        });
        let mut numbers = [-2.0, 1.0, f32::INFINITY];
        if descending {
            numbers.reverse();
        }
        assert_eq!(cpu.keys[..3], numbers);
        assert!(cpu.keys[3..].iter().all(|key| key.is_nan()));
    }
}

#[test]
fn sorts_more_keys_than_one_binding_and_dispatch_dimension() {
    // The small device binds 2^18 keys at a time, twice as many tiles as it has workgroups in one dimension. One
    // outlier makes the first digit of the CPU sort useless.
    let mut keys = noise(3 * (1 << 18) + 100_001, 20);
    keys[1000] = u32::MAX;
    assert_sorts(keys, false, Ord::cmp);
}

#[test]
fn command_sorts_text_and_files() {
    let prints = |arguments: &[&str], input: &str, output: &'static str| {
        gpuproc(arguments).write_stdin(input).assert().success().stdout(output);
    };
    prints(&["sort", "-"], "3 1,2", "1\n2\n3\n");
    prints(&["sort"], "3 1,2", "1\n2\n3\n");
    prints(&["sort", "--descending"], "3 1,2", "3\n2\n1\n");
    prints(&["sort", "-", "--argsort"], "3 1,2", "1\n2\n0\n");
    prints(&["sort", "-", "--type", "i32", "--descending"], "-1 5 -7", "5\n-1\n-7\n");
    prints(&["sort", "-", "--type", "f32"], "nan 1e9 -0.5", "-0.5\n1000000000\nNaN\n");
    prints(
        &["sort", "--type", "f64", "--descending"],
        "nan 1e300 -0.5 1e-300",
        "1e300\n1e-300\n-0.5\nNaN\n",
    );
    prints(
        &["sort", "--type", "i64"],
        "5 -9223372036854775808 -1",
        "-9223372036854775808\n-1\n5\n",
    );
    prints(&["sort", "--type", "u64", "--argsort"], "7 18446744073709551615 3", "2\n0\n1\n");
    prints(&["sort", "-"], "", "");

    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let keys = noise(5000, 8);
    let ids: Vec<u32> = (0..5000).collect();
    fs::write(path("keys.raw"), bytemuck::cast_slice(&keys)).unwrap();
    fs::write(path("ids.raw"), bytemuck::cast_slice(&ids)).unwrap();
    let payload = ["--payload", &path("ids.raw"), "--payload-output", &path("moved.raw")];
    let files = ["sort", &path("keys.raw"), &path("sorted.raw")];
    gpuproc(&[&files[..], &payload].concat()).assert().success();
    gpuproc(&["sort", "--argsort", &path("keys.raw"), &path("indices.raw")]).assert().success();
    let mut sorted: Vec<(u32, u32)> = keys.iter().copied().zip(ids).collect();
    sorted.sort();
    let (keys, ids): (Vec<u32>, Vec<u32>) = sorted.into_iter().unzip();
    assert!(fs::read(path("sorted.raw")).unwrap() == bytemuck::cast_slice::<u32, u8>(&keys));
    assert!(fs::read(path("moved.raw")).unwrap() == bytemuck::cast_slice::<u32, u8>(&ids));
    assert_same_file(path("indices.raw"), path("moved.raw"));
}

#[test]
fn payloads_of_every_type_follow_their_keys() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (number, values, moved) in [
        ("u32", "7 8 9", "8\n9\n7\n"),
        ("i32", "-7 8 -9", "8\n-9\n-7\n"),
        ("f32", "0.5 nan -0", "NaN\n-0\n0.5\n"),
        ("u64", "1 18446744073709551615 3", "18446744073709551615\n3\n1\n"),
        ("i64", "1 -9223372036854775808 3", "-9223372036854775808\n3\n1\n"),
        ("f64", "1e300 -2 0.1", "-2\n0.1\n1"),
    ] {
        fs::write(path("values.txt"), values).unwrap();
        let payload = ["--payload", &path("values.txt"), "--payload-type", number];
        let output = ["--payload-output", &path("moved.txt")];
        gpuproc(&[&["sort", "-"][..], &payload, &output].concat())
            .write_stdin("3 1 2")
            .assert()
            .success()
            .stdout("1\n2\n3\n");
        let found = fs::read_to_string(path("moved.txt")).unwrap();
        assert!(found.starts_with(moved), "{number}: {found}");
    }
}

#[test]
fn sorts_empty_arrays_of_any_shape() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for shape in [
        "(0, 5)",
        "(0, 9223372036854775808)",
        "(9223372036854775808, 0, 4)",
        "(4611686018427387904, 0, 4611686018427387904)",
    ] {
        let header = format!("{{'descr': '<u4', 'fortran_order': False, 'shape': {shape}, }}");
        let start = format!("NUMPY\x01\0{}\0{header}", header.len() as u8 as char);
        fs::write(path("empty.npy"), [&b"\x93"[..], start.as_bytes()].concat()).unwrap();
        for axis in ["x", "y"] {
            gpuproc(&["sort", "--axis", axis, &path("empty.npy"), &path("out.npy")])
                .assert()
                .success();
            let sorted = fs::read(path("out.npy")).unwrap();
            assert!(String::from_utf8_lossy(&sorted).contains(shape), "{shape} {axis}");
        }
    }
}

#[test]
fn rejects_invalid_payloads_and_memory_limits() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("two.raw"), [0; 8]).unwrap();
    let fails = |arguments: &[&str], code: i32, message: &'static str| {
        let run = gpuproc(arguments).write_stdin("1 2 3").assert().code(code);
        run.stderr(predicates::str::contains(message));
    };
    let (two, moved) = (path("two.raw"), path("moved.raw"));
    let payload = ["sort", "-", "--payload", &two, "--payload-output", &moved];
    fails(&payload, 4, "3 keys cannot be sorted with a payload of 2 values");
    assert_absent(&moved);
    fails(&["sort", "-", "--payload", "x"], 2, "--payload-output");
    let same = path("same.txt");
    let twice = format!("{same} is named as the output and as --payload-output");
    let by_another_name = path("./same.txt");
    for output in [&same, &by_another_name] {
        let payload = ["--payload", &two, "--payload-output", &same];
        let run = gpuproc(&[&["sort", "-", output][..], &payload].concat()).assert().code(2);
        run.stderr(predicates::str::contains(&twice));
    }
    let to_stdout = ["sort", "-", "--payload", &two, "--payload-output", "-"];
    fails(&to_stdout, 2, "standard output is named as the output and as --payload-output");
    assert_absent(&same);
    fails(&["sort", "--max-memory", "12", "-"], 4, "--max-memory");
    fails(
        &["sort", "--max-memory", "39", &two],
        4,
        "sorting 2 numbers of type u32 needs at least 40 bytes",
    );
}
