//! Exact values of resampling: means over areas, and the range of results.

use gpuproc::{
    data::{
        dtype::Dtype,
        grid::{Alpha, Grid},
        noise::Noise,
        samples::Samples,
    },
    device::Kernel,
    kernels::{
        filter::Block,
        resize::{Interpolation, Resample, Resize, Size},
    },
};

use crate::resize::{plain, twins};

/// The values of OpenCV's `INTER_AREA`.
#[test]
fn area_is_the_mean_of_parts_of_samples() {
    let line = |samples: Samples, to: usize, axis: usize| {
        let mut dims = [1; 3];
        dims[axis] = samples.len();
        let mut size = [Some(1); 3];
        size[axis] = Some(to);
        let grid = Grid { dims, channels: 1, alpha: Alpha::None, samples };
        let (size, filter) = (Size::Exact(size), Interpolation::Area);
        twins(&Resize { size, filter, ..plain() }, &grid)
    };
    for axis in 0..3 {
        for (from, to) in [
            (&[255u8, 0, 0, 0, 0][..], &[204u8, 0, 0, 0][..]),
            (&[10, 20, 30, 40, 50], &[14, 30, 46]),
            (&[255, 0, 0, 0], &[255, 64, 0, 0, 0]),
            (&[0, 90], &[0, 45, 90]),
            (&[9, 200], &[9, 9, 200, 200]),
        ] {
            assert_eq!(line(from.to_vec().into(), to.len(), axis), to.to_vec().into());
            let floats: Vec<f64> = from.iter().map(|&v| v.into()).collect();
            let Samples::F64(found) = line(floats.into(), to.len(), axis) else { unreachable!() };
            assert!(found.iter().zip(to).all(|(found, &v)| (found - f64::from(v)).abs() <= 0.5));
        }
    }
}

/// Overshoot along one axis is not clamped before the next axis: all types have the same values, and rows may be
/// exchanged with columns.
#[test]
fn all_types_clamp_only_the_result() {
    let side = 12;
    let is_white = |at: usize| (at % side < 5) != (at / side < 4) || (at * 7) % 11 == 3;
    let white: Vec<bool> = (0..side * side).map(is_white).collect();
    let transposed = |values: &[f64], width: usize| -> Vec<f64> {
        (0..values.len()).map(|at| values[at % width * width + at / width]).collect()
    };
    // Full scale is 255 in all types.
    let resized = |dtype: Dtype, is_linear: bool, is_transposed: bool, channels: usize, filter| {
        let max = match dtype {
            Dtype::U8 => 255.0,
            Dtype::U16 => 65_535.0,
            Dtype::U32 => u32::MAX.into(),
            Dtype::I32 => i32::MAX.into(),
            _ => 1.0,
        };
        let colours: Vec<f64> = white.iter().map(|&v| if v { max } else { 0.0 }).collect();
        let colours = if is_transposed { transposed(&colours, side) } else { colours };
        // Alpha that is opaque in most places. All types hold three fifths exactly.
        let alpha = |at: usize| if at % 17 == 5 { max * 0.6 } else { max };
        let pixel = |at: usize| [colours[at], alpha(at)].into_iter().take(channels);
        let values: Vec<f64> = (0..side * side).flat_map(pixel).collect();
        let samples = Samples::F64(values).converted(dtype).unwrap();
        let has_alpha = channels == 2 && dtype != Dtype::F64;
        let alpha = if has_alpha { Alpha::Straight } else { Alpha::None };
        let grid = Grid { dims: [side, side, 1], channels, alpha, samples };
        let size = Size::Exact([Some(30), Some(30), Some(1)]);
        let resize = Resize { size, axes: 2, filter, linear: is_linear, ..plain() };
        let Samples::F64(values) = twins(&resize, &grid).converted(Dtype::F64).unwrap() else {
            unreachable!()
        };
        let unit = |value: f64| (value / max * 255.0).clamp(0.0, 255.0);
        values.into_iter().map(unit).collect::<Vec<f64>>()
    };
    let assert_close = |found: &[f64], expected: &[f64], what: &str| {
        for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
            assert!((found - expected).abs() <= 0.7, "{what} at {at}: {found} {expected}");
        }
    };
    for filter in [Interpolation::Cubic, Interpolation::Lanczos3] {
        let exact = resized(Dtype::F64, false, false, 1, filter);
        for dtype in [Dtype::U8, Dtype::U16, Dtype::U32, Dtype::I32, Dtype::F32] {
            let found = resized(dtype, false, false, 1, filter);
            assert_close(&found, &exact, &format!("{dtype} {filter:?}"));
            let found = transposed(&resized(dtype, false, true, 1, filter), 30);
            assert_close(&found, &exact, &format!("{dtype} {filter:?} transposed"));
        }
        // With planes of alpha, and in linear light. Only the result of 8 bits is rounded by more than a hundredth.
        for (is_linear, channels) in [(true, 1), (false, 2), (true, 2)] {
            let deep = resized(Dtype::U16, is_linear, false, channels, filter);
            let bytes = resized(Dtype::U8, is_linear, false, channels, filter);
            let what = format!("{filter:?} linear {is_linear} {channels}");
            let pixels = deep.chunks(channels).zip(bytes.chunks(channels));
            // Colours of pixels that are almost transparent are ratios of small numbers.
            for (deep, bytes) in pixels.filter(|(deep, _)| channels == 1 || deep[1] > 20.0) {
                assert_close(bytes, deep, &what);
            }
        }
    }
}

/// The weights of an axis do not fit into one table, so that its results are computed in parts.
#[test]
fn rows_of_wide_images_are_resized_as_images_of_one_row() {
    let resized = |dims: [usize; 3], size: [usize; 3], samples: &[u8]| {
        let grid = Grid { dims, channels: 1, alpha: Alpha::None, samples: samples.to_vec().into() };
        let block = Block { axis: 2, shape: grid.shape(), input: 0..dims[2], output: 0..dims[2] };
        let resize = Resize { size: Size::Exact(size.map(Some)), ..plain() };
        let resized = Resample { resize: &resize, block: &block }.cpu(&grid).unwrap();
        assert_eq!(resized.len(), size.iter().product::<usize>());
        resized.as_bytes().to_vec()
    };
    for (dims, size, axis) in
        [([30_000, 3, 1], [60_000, 3, 1], 1), ([5, 30_000, 2], [5, 60_000, 2], 2)]
    {
        let bytes = Noise(1).bytes(dims.iter().product());
        let mut one = [dims, size];
        one.iter_mut().for_each(|dims| dims[axis] = 1);
        let parts = bytes.chunks(bytes.len() / dims[axis]);
        let parts: Vec<u8> = parts.flat_map(|part| resized(one[0], one[1], part)).collect();
        assert!(resized(dims, size, &bytes) == parts, "{dims:?}");
    }
}

/// The mean of `line` over the stretch that each of `count` results covers, or the triangle around its centre.
fn resized_line(line: &[f64], count: usize, filter: Interpolation) -> Vec<f64> {
    let scale = line.len() as f64 / count as f64;
    let result = |position: usize| {
        let (first, end) = (position as f64 * scale, (position + 1) as f64 * scale);
        let (centre, reach) = (first.midpoint(end), scale.max(1.0));
        let near = (centre - reach - 1.0).max(0.0) as usize
            ..line.len().min((centre + reach + 2.0) as usize);
        let weight = |at: usize| match filter {
            Interpolation::Area => (end.min(at as f64 + 1.0) - first.max(at as f64)).max(0.0),
            _ => (1.0 - ((at as f64 + 0.5 - centre) / reach).abs()).max(0.0),
        };
        let sum: f64 = near.clone().map(weight).sum();
        near.map(|at| line[at] * weight(at) / sum).sum()
    };
    (0..count).map(result).collect()
}

/// Results along x are computed in pieces of 8,192 pixels. All pieces have their own windows and weights, for each
/// number of channels.
#[test]
fn long_rows_of_every_type_equal_the_reference() {
    let mut noise = Noise(6);
    for (from, to) in [(3000, 20_000), (20_000, 8193)] {
        for channels in 1..=4 {
            let values: Vec<f64> =
                (0..from * channels).map(|_| (noise.unit() * 250.0).floor()).collect();
            for dtype in [Dtype::U8, Dtype::U16, Dtype::U32, Dtype::F32, Dtype::F64] {
                for filter in [Interpolation::Area, Interpolation::Linear] {
                    let samples = Samples::F64(values.clone()).converted(dtype).unwrap();
                    let grid = Grid { dims: [from, 1, 1], channels, alpha: Alpha::None, samples };
                    let block = Block { axis: 1, shape: grid.shape(), input: 0..1, output: 0..1 };
                    let size = Size::Exact([Some(to), Some(1), Some(1)]);
                    let resize = Resize { size, axes: 2, filter, ..plain() };
                    let found = Resample { resize: &resize, block: &block }.cpu(&grid).unwrap();
                    let Samples::F64(found) = found.converted(Dtype::F64).unwrap() else {
                        unreachable!()
                    };
                    assert_eq!(found.len(), to * channels);
                    let allowed = if dtype.is_float() { 1e-3 } else { 0.51 };
                    for c in 0..channels {
                        let line: Vec<f64> =
                            values.iter().skip(c).step_by(channels).copied().collect();
                        let expected = resized_line(&line, to, filter);
                        let own = found.iter().skip(c).step_by(channels).zip(&expected);
                        let wrong = own.clone().position(|(a, b)| (a - b).abs() > allowed);
                        assert_eq!(
                            wrong, None,
                            "{from} to {to}, {channels} channels, {dtype} {filter:?}"
                        );
                    }
                }
            }
        }
    }
}
