//! A GPU that fails at any step: an error of the right kind, never a panic, a hang or a wrong result; with
//! `auto`, the CPU takes over.

use std::sync::Arc;

use gpuproc::{
    device::{Choice, Device, Kernel},
    error::Kind,
    gpu::{Caps, Context, Fault, adapters},
    io::volume::Volume,
    kernels::{
        blur::{Axis, Blur, Edge, Grid, Method},
        histogram::{Bins, Histogram, Luma, Pixels, Row},
        mesh::{MarchingCubes, Slab},
        render::{Render, Surface},
        scan::{Op, Scan},
        sort::{Records, Sort},
    },
    samples::{Dtype, Samples},
    timings::Timings,
};

/// Runs `kernel` on devices that go wrong at every step that it takes, one after the other.
fn assert_faults_are_errors<K: Kernel>(kernel: &K, input: &K::In)
where
    K::Out: PartialEq,
{
    let Some(adapter) = adapters().into_iter().next() else { return };
    let timings = Arc::new(Timings::new(true));
    let expected = kernel.cpu(input).expect("the CPU twin works");
    let faults = [
        Fault::Allocate,
        Fault::Submit,
        Fault::Map,
        Fault::Lose,
        Fault::Invalid,
        Fault::Uncaught,
        Fault::Hang,
        Fault::Panic,
    ];
    for fault in faults {
        for at in 0.. {
            let caps = Caps { fault: Some((fault, at)), ..Caps::default() };
            let open = || Context::open(&adapter, &caps, timings.clone()).expect("it opens");
            // Who asked for this GPU is told, and gets no other device's result.
            let device = Device::from_context(open(), Choice::Gpu, timings.clone());
            match device.run(kernel, input) {
                Err(error) => {
                    assert_eq!(error.kind(), Kind::Gpu, "{fault:?} {at}: {error:?}");
                    assert!(!error.one_line().contains('\n'), "{fault:?} {at}: {error:?}");
                }
                Ok(result) => {
                    assert!(at > 0, "{fault:?} is never met");
                    assert!(result == expected, "{fault:?} {at}: a result of a lost device");
                    break;
                }
            }
            // The later kinds go wrong at the steps of the first four.
            if at == 0 || faults[..4].contains(&fault) {
                let device = Device::from_context(open(), Choice::Auto, timings.clone());
                let result = device.run(kernel, input).expect("the CPU takes over");
                assert!(result == expected, "{fault:?} {at}: the CPU's result is not what arrives");
            }
            assert!(at < 100, "{fault:?}: the kernel never gets through");
        }
    }
}

#[test]
fn blurring_survives_faults() {
    let axis = Axis::gaussian(1.5, 5);
    let blur = Blur {
        method: Method::Gaussian,
        axes: [axis, axis, Axis::NONE],
        iterations: 1,
        edge: Edge::Clamp,
        linear: false,
    };
    let samples = Samples::U8((0..60 * 40 * 3).map(|i| (i * 37 % 256) as u8).collect());
    assert_faults_are_errors(
        &blur,
        &Grid { dims: [60, 40, 1], channels: 3, alpha: false, samples },
    );
}

#[test]
fn scanning_survives_faults() {
    let numbers: Vec<u32> = (0..10_000).map(|i: u32| i.wrapping_mul(2_654_435_761)).collect();
    assert_faults_are_errors(&Scan::<u32>::new(Op::Sum, false), &numbers[..]);
}

#[test]
fn counting_survives_faults() {
    let samples = Samples::U8((0..3000).map(|i| (i * 37 % 256) as u8).collect());
    let bins = Bins::new(256, 0.0, 255.0, Dtype::U8).unwrap();
    let rows = vec![Row::Channel(0), Row::Luma(Luma::Bt709)];
    let kernel = Histogram { rows, bins, weighted: false };
    assert_faults_are_errors(&kernel, &Pixels { samples, channels: 3 });
}

#[test]
fn sorting_survives_faults() {
    let keys: Vec<u32> = (0..5000).map(|i: u32| i.wrapping_mul(2_654_435_761)).collect();
    let payload = Some((0..5000).collect());
    assert_faults_are_errors(&Sort::new(false), &Records { keys, payload });
}

#[test]
fn a_lost_device_is_not_asked_again() {
    let Some(adapter) = adapters().into_iter().next() else { return };
    let timings = Arc::new(Timings::new(false));
    for fault in [Fault::Lose, Fault::Hang] {
        let caps = Caps { fault: Some((fault, 0)), ..Caps::default() };
        let context = Context::open(&adapter, &caps, timings.clone()).expect("it opens");
        let device = Device::from_context(context, Choice::Auto, timings.clone());
        let scan = Scan::<u32>::new(Op::Sum, true);
        for _ in 0..3 {
            assert_eq!(device.run(&scan, &[1, 2, 3][..]).unwrap().values, [1, 3, 6]);
            assert!(device.context().unwrap().is_some_and(Context::is_lost), "{fault:?}");
        }
    }
}

#[test]
fn meshing_survives_faults() {
    let samples = (0..512).map(|i| (i * 37 % 256) as u8).collect();
    let volume = Volume { dims: [8; 3], samples: Samples::U8(samples) };
    let kernel = MarchingCubes::new(80.0);
    assert_faults_are_errors(&kernel, &Slab::whole(volume, &kernel));
}

#[test]
fn rendering_survives_faults() {
    let surface = Surface {
        positions: &[[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
        triangles: &[[0, 1, 2]],
        normals: &[[0.0, -1.0, 0.0]; 3],
    };
    let render =
        Render { size: [40, 30], azimuth: 0.0, elevation: 0.0, background: [0.0, 0.0, 0.0, 1.0] };
    assert_faults_are_errors(&(render, surface), &());
}
