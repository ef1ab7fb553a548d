//! `resize --fit` and `--fill`: sizes by the rule of vipsthumbnail, and samples against a resized grid that is cut.

use std::fs;

use gpuproc::{
    data::{
        description::Description,
        grid::{Alpha, Grid},
        noise::Noise,
        placement::Placement,
        samples::Samples,
    },
    kernels::{
        filter::Filter,
        resize::{Interpolation, Resize, Size},
    },
};

use crate::{
    asserts::assert_contains,
    common::{assert_volume_runs, finite_types, info_json, works},
    resize::{plain, twins},
};

/// vipsthumbnail divides both sides by the larger (to fit) or the smaller (to fill) of the two shrink factors, rounds
/// them, and then takes the centre.
fn assert_vips([width, height]: [usize; 2], target: [usize; 2], found: [usize; 2], fills: bool) {
    let shrink = [width as f64 / target[0] as f64, height as f64 / target[1] as f64];
    let shrink = if fills { shrink[0].min(shrink[1]) } else { shrink[0].max(shrink[1]) };
    for (side, found) in [width, height].into_iter().zip(found) {
        // Both neighbours of a half are right, since it may not be exact.
        let exact = (side as f64 / shrink).max(0.5);
        let is_rounded = (found as f64 - exact).abs() <= 0.5 + 1e-9;
        assert!(is_rounded, "{width}x{height} to {target:?}: {found}, not {exact}");
    }
}

#[test]
fn sizes_are_those_of_vipsthumbnail() {
    let mut noise = Noise(3);
    let mut side = || (noise.next() >> 40) as usize % 3000 + 1;
    for _ in 0..3000 {
        let (from, target) = ([side(), side()], [side(), side()]);
        let (dims, sides) = ([from[0], from[1], 1], [Some(target[0]), Some(target[1]), None]);
        let fit = Size::Fit(sides).resolve(dims, 2);
        assert_vips(from, target, [fit[0], fit[1]], false);
        assert!(fit[0] == target[0] || fit[1] == target[1], "{from:?} {target:?}: {fit:?}");
        let window = Size::Fill(sides).window(dims, 2);
        assert_eq!(window.dims[..2], target, "{from:?}");
        let [width, height, _] = window.resized;
        assert_vips(from, target, [width, height], true);
        for (axis, side) in target.into_iter().enumerate() {
            assert_eq!(window.first(axis), (window.resized[axis] - side) / 2);
        }
    }
    let resolve = |size: Size, dims, axes| size.resolve(dims, axes);
    assert_eq!(resolve(Size::Fit([Some(50), None, None]), [100, 80, 1], 2), [50, 40, 1]);
    assert_eq!(resolve(Size::Fit([Some(9); 3]), [3, 2, 1], 3), [9, 6, 3]);
    assert_eq!(resolve(Size::Fill([None, Some(40), None]), [100, 80, 20], 3), [50, 40, 10]);
    assert_eq!(resolve(Size::Fill([Some(5), Some(6), Some(7)]), [10, 10, 10], 3), [5, 6, 7]);
}

/// The part of `grid` that begins at `first`.
fn cut(grid: &Grid, first: [usize; 3], dims: [usize; 3]) -> Vec<u8> {
    let pixel = grid.channels * grid.samples.dtype().size();
    let [width, height, _] = grid.dims;
    let mut bytes = Vec::new();
    for (z, y) in (0..dims[2]).flat_map(|z| (0..dims[1]).map(move |y| (z, y))) {
        let start = (((z + first[2]) * height + y + first[1]) * width + first[0]) * pixel;
        bytes.extend_from_slice(&grid.samples.as_bytes()[start..start + dims[0] * pixel]);
    }
    bytes
}

#[test]
fn filling_cuts_the_centre_of_the_covering_size() {
    for (from, to, axes) in [
        ([13, 11, 1], [5, 9, 1], 2),
        ([13, 11, 1], [30, 12, 1], 2),
        // Only one axis is resized, or none.
        ([10, 20, 1], [10, 5, 1], 2),
        ([10, 20, 1], [20, 20, 1], 2),
        ([7, 6, 5], [3, 6, 2], 3),
        ([4, 9, 3], [6, 6, 7], 3),
    ] {
        for (channels, filter) in [1, 3].into_iter().flat_map(|channels| {
            use Interpolation::{Area, Cubic, Lanczos3, Linear, Nearest};
            [Nearest, Area, Linear, Cubic, Lanczos3].map(|filter| (channels, filter))
        }) {
            for samples in finite_types(from.iter().product::<usize>() * channels) {
                let case = format!("{from:?} to {to:?}, {filter:?}, {}", samples.dtype());
                let grid = Grid { dims: from, channels, alpha: Alpha::None, samples };
                let fill = Resize { size: Size::Fill(to.map(Some)), axes, filter, ..plain() };
                let window = fill.size.window(from, axes);
                assert_eq!(window.dims, to, "{case}");
                let size = Size::Exact(window.resized.map(Some));
                let whole = twins(&Resize { size, ..fill.clone() }, &grid);
                let whole = Grid { dims: window.resized, samples: whole, ..grid.clone() };
                let first = [0, 1, 2].map(|axis| window.first(axis));
                let found = twins(&fill, &grid);
                assert!(found.as_bytes() == cut(&whole, first, to), "{case}");
            }
        }
    }
}

/// Voxels that are kept stay in place.
#[test]
fn placement_follows_the_cut() {
    let placement = Placement::axis_aligned([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]);
    let grid = Grid::volume([8, 4, 4], Samples::U8(vec![0; 128]));
    let input = Description { placement: Some(placement), ..grid.grid_type().into() };
    let fill = Resize { size: Size::Fill([Some(4), Some(4), Some(4)]), ..plain() };
    let result = fill.describe(input.clone()).unwrap().placement.unwrap();
    // Columns 2 to 5 of the input.
    assert_eq!((result.first, result.spacing()), ([12.0, 20.0, 30.0], [1.0, 2.0, 3.0]));
    let fill = Resize { size: Size::Fill([Some(8), Some(8), Some(8)]), ..plain() };
    let result = fill.describe(input).unwrap().placement.unwrap();
    assert_eq!((result.first, result.spacing()), ([11.75, 19.5, 29.25], [0.5, 1.0, 1.5]));
}

#[test]
fn boxes_run_on_volumes_blocks_shards_and_stores() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let samples = Samples::U8(Noise(5).bytes(12 * 10 * 9));
    fs::write(folder.join("v_12x10x9_uint8.raw"), samples.as_bytes()).unwrap();
    let grid = Grid::volume([12, 10, 9], samples);
    for (flag, sides, filter) in [
        ("--fill 7x5x3", [7, 5, 3], Interpolation::Lanczos3),
        ("--fill 5x8x4 --filter linear", [5, 8, 4], Interpolation::Linear),
        ("--fill 12x10x5", [12, 10, 5], Interpolation::Lanczos3),
        ("--fill 6", [6; 3], Interpolation::Lanczos3),
        ("--fit 7x50x50 --filter area", [7, 50, 50], Interpolation::Area),
    ] {
        let sides = sides.map(Some);
        let size = if flag.contains("fit") { Size::Fit(sides) } else { Size::Fill(sides) };
        let expected = twins(&Resize { size, filter, ..plain() }, &grid);
        assert_volume_runs(folder, ["resize", flag, "40K"], expected.as_bytes());
        fs::remove_file(folder.join("parts.raw")).unwrap();
    }
}

/// As users of other programs type sizes. A note says that an image is distorted.
#[test]
fn sizes_of_other_programs_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for name in ["a.pgm", "b.pgm"] {
        fs::write(folder.join(name), [&b"P5 40 30 255\n"[..], &[7; 1200]].concat()).unwrap();
    }
    for (flag, width, height) in [
        ("--size 20", 20, 15),
        ("--size 50%", 20, 15),
        ("--size 50%,100%", 20, 30),
        ("--scale 2x", 80, 60),
        ("--fit 20x20", 20, 15),
        ("--fit 80", 80, 60),
        ("--fill 10x30", 10, 30),
        ("--max 80", 40, 30),
        ("--size 20x16", 20, 16),
    ] {
        assert_eq!(works(folder, &format!("resize a.pgm o.png {flag}")), "", "{flag}");
        let info = &info_json(folder, "o.png")[0];
        assert_eq!(info["size"], serde_json::json!([width, height]), "{flag}");
    }
    let text = "the aspect ratio changes; --fit keeps it, and --fill cuts off what does not fit";
    for line in [
        "resize a.pgm b.pgm -o out/ --size 20x20 --strict",
        "blur a.pgm -o out/ --then resize --size 20x20",
        "resize a.pgm o.tif --size 20x20 --max-memory 64K",
    ] {
        let stderr = works(folder, line);
        assert_contains(&stderr, text);
        assert_eq!(stderr.matches(text).count(), 1, "{line}: {stderr}");
    }
}
