//! Random kernels, sizes, parameters and data on devices with random limits. The CPU and GPU implementations must agree
//! with each other and with a naive reference. A case that fails is shrunk to the smallest one that still fails.
//!
//! `GPUPROC_SOAK_SECONDS=3600 cargo test --test suite random::` runs for an hour with new cases all the time. Otherwise
//! the cases are the same in every run.

use std::{cell::Cell, env, ops, time::Instant};

use gpuproc::{
    data::{
        dtype::Dtype,
        grid::{Alpha, Grid},
        samples::Samples,
    },
    device::Kernel,
    gpu::{Baseline, Context, Features, Restrictions},
    kernels::{
        blur::{Blur, Edge, Method, Taps},
        histogram::{Bins, Component, Counts, Histogram, Pixels},
        mesh::{MarchingCubes, Slab},
        scan::{Op, Scan, Scannable, Scanned},
        sort::{Records, Sort},
    },
};
use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner},
};

use crate::{
    blur_reference,
    common::{Noise, Subject, open, subjects},
    mesh_reference,
};

#[derive(Clone, Debug)]
enum Case {
    Blur { blur: Blur, dims: [usize; 3], channels: usize, wide: bool, seed: u64 },
    Histogram { pixels: usize, channels: usize, bins: usize, wide: bool, spread: u32, seed: u64 },
    Scan { len: usize, op: Op, inclusive: bool, kind: u8, seed: u64 },
    Sort { len: usize, bits: u32, descending: bool, payload: bool, seed: u64 },
    Mesh { dims: [usize; 3], kernel: MarchingCubes, levels: u32, seed: u64 },
}

fn blur_cases() -> impl Strategy<Value = Case> {
    let edge = prop_oneof![
        Just(Edge::Clamp),
        Just(Edge::Reflect),
        Just(Edge::Mirror),
        Just(Edge::Wrap),
        (0..256u32).prop_map(|value| Edge::Constant(value.into())),
    ];
    let axis = (0.0..7.0f64, 0..24usize);
    let how = (any::<bool>(), prop::array::uniform3(axis), 1..3usize, edge);
    let what = (1..90usize, 1..60usize, 1..4usize, 1..=4usize, any::<bool>(), any::<u64>());
    (how, what).prop_map(|((mean, axes, iterations, edge), (x, y, z, channels, wide, seed))| {
        // Volumes have one channel.
        let (z, channels) = if channels == 1 { (z, 1) } else { (1, channels) };
        let method = if mean { Method::Box } else { Method::Gaussian };
        let axes = axes.map(|(sigma, radius)| match mean {
            true => Taps::box_filter(radius),
            false => Taps::gaussian(sigma, (3.0 * sigma).ceil() as usize),
        });
        let axes = if z == 1 { [axes[0], axes[1], Taps::NONE] } else { axes };
        let blur = Blur { method, axes, iterations, edge, linear: false };
        Case::Blur { blur, dims: [x, y, z], channels, wide, seed }
    })
}

fn mesh_cases() -> impl Strategy<Value = Case> {
    let flags = (any::<bool>(), any::<bool>(), 1..6u32);
    let steps = prop::array::uniform3(0.1..3.0f64);
    (prop::array::uniform3(1..14usize), flags, steps, 0..256u32, any::<u64>()).prop_map(
        |(dims, (close, normals, levels), spacing, iso, seed)| {
            let origin = [-1.0, 0.0, 7.5];
            let kernel = MarchingCubes {
                iso: iso.into(),
                spacing,
                origin,
                close,
                normals,
                ..MarchingCubes::new(0.0)
            };
            Case::Mesh { dims, kernel, levels, seed }
        },
    )
}

fn any_case() -> impl Strategy<Value = Case> {
    let op = prop_oneof![Just(Op::Sum), Just(Op::Min), Just(Op::Max), Just(Op::Product)];
    prop_oneof![
        blur_cases(),
        (1..9000usize, 1..=4usize, 1..700usize, any::<bool>(), 1..17u32, any::<u64>()).prop_map(
            |(pixels, channels, bins, wide, spread, seed)| Case::Histogram {
                pixels,
                channels,
                bins,
                wide,
                spread,
                seed
            }
        ),
        (0..70_000usize, op, any::<bool>(), 0..3u8, any::<u64>()).prop_map(
            |(len, op, inclusive, kind, seed)| Case::Scan { len, op, inclusive, kind, seed }
        ),
        (0..40_000usize, 1..=32u32, any::<bool>(), any::<bool>(), any::<u64>()).prop_map(
            |(len, bits, descending, payload, seed)| Case::Sort {
                len,
                bits,
                descending,
                payload,
                seed
            }
        ),
        mesh_cases(),
    ]
}

/// Runs a kernel on the CPU and on each device, and compares the results with `same`. Returns the result of the CPU.
fn assert_same_on_devices<K: Kernel>(
    kernel: &K,
    input: &K::In,
    devices: &[&Subject],
    same: impl Fn(&K::Out, &K::Out) -> bool,
) -> K::Out {
    let expected = kernel.cpu(input).expect("the CPU implementation succeeds");
    for Subject { name, context } in devices {
        let found = kernel.gpu(context, input);
        let found = found.unwrap_or_else(|error| panic!("{name}: {}", error.one_line()));
        assert!(same(&expected, &found), "{name}: the CPU and the GPU differ");
    }
    expected
}

impl Case {
    fn assert_matches_references(&self, devices: &[&Subject]) {
        match self {
            &Self::Blur { ref blur, dims, channels, wide, seed } => {
                let len = dims.iter().product::<usize>() * channels;
                let bytes = Noise(seed).bytes(len * if wide { 2 } else { 1 });
                let samples = match wide {
                    true => Samples::U16(bytemuck::pod_collect_to_vec(&bytes)),
                    false => Samples::U8(bytes),
                };
                let raster = Grid { dims, channels, alpha: Alpha::None, samples };
                let values = |samples: &Samples| -> Vec<f64> {
                    match samples {
                        Samples::U8(v) => v.iter().map(|&v| v.into()).collect(),
                        Samples::U16(v) => v.iter().map(|&v| v.into()).collect(),
                        _ => panic!("expected u8 or u16 samples"),
                    }
                };
                let found = assert_same_on_devices(blur, &raster, devices, |a, b| a == b);
                let expected = blur_reference::reference(blur, &raster);
                for (i, (found, exact)) in values(&found).into_iter().zip(expected).enumerate() {
                    assert!(
                        (found - exact).abs() <= 1.6,
                        "sample {i}: found {found}, expected {exact}"
                    );
                }
            }
            &Self::Histogram { pixels, channels, bins, wide, spread, seed } => {
                let mut noise = Noise(seed);
                let bits = spread.min(if wide { 16 } else { 8 });
                let values: Vec<u16> =
                    (0..pixels * channels).map(|_| (noise.next() >> (64 - bits)) as u16).collect();
                let (samples, dtype, high) = match wide {
                    true => (Samples::U16(values.clone()), Dtype::U16, 65_535.0),
                    false => {
                        let values = values.iter().map(|&v| v as u8).collect();
                        (Samples::U8(values), Dtype::U8, 255.0)
                    }
                };
                let bins = Bins::new(bins, 0.0, high, dtype).unwrap();
                let components: Vec<Component> = (0..channels).map(Component::Channel).collect();
                let kernel = Histogram { components, bins, weighted: false };
                let pixels = Pixels { samples, channels };
                let counts = assert_same_on_devices(&kernel, &pixels, devices, |a, b| a == b);
                for (channel, Counts { bins: found, .. }) in counts.iter().enumerate() {
                    let mut naive = vec![0u64; bins.count];
                    for &value in values.iter().skip(channel).step_by(channels) {
                        // The last bin whose lower edge is not above the value.
                        let bin = (0..bins.count).rfind(|&k| bins.edge(k) <= value.into());
                        naive[bin.unwrap()] += 1;
                    }
                    assert_eq!(*found, naive);
                }
            }
            &Self::Scan { len, op, inclusive, kind, seed } => match kind {
                0 => {
                    let join = [u32::wrapping_add, u32::wrapping_mul, Ord::min, Ord::max];
                    assert_scan(op, inclusive, len, seed, devices, |bits| bits, join);
                }
                1 => {
                    let join = [i32::wrapping_add, i32::wrapping_mul, Ord::min, Ord::max];
                    assert_scan(op, inclusive, len, seed, devices, |bits| bits as i32, join);
                }
                _ => {
                    // Sums of integers of this size are exact in any order.
                    let op = if op == Op::Product { Op::Sum } else { op };
                    let small = |bits: u32| (bits % 100) as f32;
                    let join = [ops::Add::add, ops::Mul::mul, f32::min, f32::max];
                    assert_scan(op, inclusive, len, seed, devices, small, join);
                }
            },
            &Self::Sort { len, bits, descending, payload, seed } => {
                let mut noise = Noise(seed);
                let keys: Vec<u32> =
                    (0..len).map(|_| (noise.next() >> (64 - bits)) as u32).collect();
                let mut order: Vec<u32> = (0..len as u32).collect();
                order.sort_by_key(|&i| {
                    let key = keys[i as usize];
                    if descending { !key } else { key }
                });
                let expected: Vec<u32> = order.iter().map(|&i| keys[i as usize]).collect();
                let payload = payload.then(|| (0..len as u32).collect());
                let records = Records { keys, payload };
                let sorted =
                    assert_same_on_devices(&Sort::new(descending), &records, devices, |a, b| {
                        a == b
                    });
                assert_eq!(sorted.keys, expected);
                assert!(sorted.payload.is_none_or(|payload| payload == order));
            }
            Self::Mesh { dims, kernel, levels, seed } => {
                let mut noise = Noise(*seed);
                let step = 255 / levels;
                let len = dims.iter().product();
                let samples = (0..len).map(|_| (noise.next() as u32 % (levels + 1) * step) as u8);
                let volume = Grid::volume(*dims, Samples::U8(samples.collect()));
                let slab = Slab::whole(volume, kernel);
                let surface = assert_same_on_devices(kernel, &slab, devices, |a, b| {
                    mesh_reference::assert_same_surface(a, b, "a random device");
                    true
                });
                mesh_reference::assert_matches_reference(&surface, &slab.volume, kernel);
            }
        }
    }
}

/// Compares a scan with the serial loop. The last argument has the functions of sum, product, minimum and maximum.
fn assert_scan<T: Scannable>(
    op: Op,
    inclusive: bool,
    len: usize,
    seed: u64,
    devices: &[&Subject],
    number: impl Fn(u32) -> T,
    [sum, product, min, max]: [fn(T, T) -> T; 4],
) {
    let join = match op {
        Op::Sum => sum,
        Op::Product => product,
        Op::Min => min,
        Op::Max => max,
    };
    let mut noise = Noise(seed);
    let input: Vec<T> = (0..len).map(|_| number((noise.next() >> 32) as u32)).collect();
    let kernel = Scan::<T>::new(op, inclusive);
    let found = assert_same_on_devices(&kernel, &input[..], devices, |a: &Scanned<T>, b| a == b);
    let mut sum = kernel.carry_in;
    for (&number, &found) in input.iter().zip(&found.values) {
        let before = sum;
        sum = join(sum, number);
        assert!(found == if inclusive { sum } else { before });
    }
}

/// Random limits that a device might have.
fn random_limits(noise: &mut Noise) -> Restrictions {
    let mut one_of = |values: &[u64]| values[noise.next() as usize % values.len()];
    Restrictions {
        // A histogram of 16-bit samples needs a table of 256 KiB.
        binding_bytes: Some(one_of(&[256 << 10, 409_600, 1 << 20, 128 << 20])),
        workgroups: Some(one_of(&[16, 33, 64, 255, 65_535]) as u32),
        workgroup_bytes: Some(one_of(&[16 << 10, 16 << 10, 32 << 10]) as u32),
        baseline: match one_of(&[0, 1, 2]) {
            0 => None,
            1 => Some(Baseline::WebGpu),
            _ => Some(Baseline::Downlevel),
        },
        without: [Features::all(), Features::SUBGROUP, Features::TIMESTAMP_QUERY]
            .into_iter()
            .filter(|_| one_of(&[0, 1]) == 1)
            .fold(Features::empty(), Features::union),
        checked: one_of(&[0, 1]) == 1,
        poison: true,
        ..Restrictions::default()
    }
}

#[test]
fn random_cases_match_the_references_on_random_devices() {
    let seconds = env::var("GPUPROC_SOAK_SECONDS").ok().map(|s| s.parse::<u64>().expect("seconds"));
    let config = Config { cases: 24, failure_persistence: None, ..Config::default() };
    let mut noise = Noise(seconds.map_or(3, |_| std::process::id().into()));
    let (start, mut rounds) = (Instant::now(), 0);
    loop {
        let limits = random_limits(&mut noise);
        let limited_device = open("odd", &limits);
        let devices: Vec<&Subject> = subjects().iter().chain(&limited_device).collect();
        // A runner counts its cases over its lifetime, so each round needs a new runner.
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &noise.bytes(32));
        let mut runner = TestRunner::new_with_rng(config.clone(), rng);
        let done = Cell::new(0);
        match runner.run(&any_case(), |case| {
            case.assert_matches_references(&devices);
            done.set(done.get() + 1);
            Ok(())
        }) {
            Ok(()) => {}
            Err(TestError::Fail(reason, case)) => panic!("{reason}: {case:?} with {limits:?}"),
            Err(other) => panic!("{other}"),
        }
        assert_eq!(done.get(), 24);
        rounds += 1;
        let enough = seconds.map_or(rounds == 2, |s| start.elapsed().as_secs() >= s);
        if enough {
            println!("{} random cases on {} devices each", rounds * 24, devices.len());
            return;
        }
    }
}

/// Several threads share one device, as the stages of a batch do.
#[test]
fn threads_share_a_device() {
    let check = |context: &Context, seed: u64| {
        let numbers = Noise(seed).u32s(20_000).unwrap();
        let scan = Scan::<u32>::new(Op::Sum, false);
        assert_eq!(scan.gpu(context, &numbers[..]).unwrap(), scan.cpu(&numbers[..]).unwrap());
    };
    for Subject { context, .. } in subjects() {
        std::thread::scope(|scope| {
            for seed in 0..4 {
                scope.spawn(move || (0..4).for_each(|round| check(context, seed * 10 + round)));
            }
        });
    }
}
