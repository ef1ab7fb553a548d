//! Crop, flip, rotate and the other rearrangements: against a naive reference, sample by sample, on every kind of input and
//! output.

use std::{fs, path::Path};

use gpuproc::{
    Content, ReadOptions,
    data::{
        dtype::Dtype,
        grid::{Alpha, Grid},
        samples::Samples,
    },
};

use crate::{
    common::{Noise, gpuproc, info_json, run, works},
    serve::Server,
    tiff_files::{TiffPage, tiff},
};

/// A position, or a size.
type Position = [usize; 3];

/// A command line for images or volumes, and its result.
struct Case {
    line: &'static str,
    /// Size of the result.
    size: fn(Position) -> Position,
    /// The position in an input of this size of a sample of the result; `None` for a sample that is 0.
    from: fn(Position, Position) -> Option<Position>,
}

macro_rules! cases {
    ($($line:literal, [$w:ident, $h:ident, $d:ident] => $size:expr, [$x:ident, $y:ident, $z:ident] => $from:expr;)+) => {
        [$(Case {
            line: $line,
            #[allow(unused_variables)]
            size: |[$w, $h, $d]| $size,
            #[allow(unused_variables)]
            from: |[$x, $y, $z], [$w, $h, $d]| $from.into(),
        }),+]
    };
}

/// The position of a sample that has been moved by `by`; `None` outside of `dims`.
fn moved(at: Position, by: Position, dims: Position) -> Option<Position> {
    let mut from = [0; 3];
    for axis in 0..3 {
        from[axis] = at[axis].checked_sub(by[axis]).filter(|&from| from < dims[axis])?;
    }
    Some(from)
}

/// The position of which a row of `len` samples, moved by `by` and reflected at both ends, has the sample at `at`.
fn reflected(at: usize, by: usize, len: usize) -> usize {
    if at < by {
        by - 1 - at
    } else if at < by + len {
        at - by
    } else {
        2 * len - 1 - (at - by)
    }
}

/// Cases that need all of their input at once, since their rows or slices lie across those of the input, or wrap around.
fn needs_all(line: &str, axes: usize) -> bool {
    let image =
        ["rotate --angle 90", "rotate --angle 270", "transpose", "pad --by 4,3 --edge wrap"];
    let volume = ["0 --axis x", "270 --axis y", "zyx", "yzx", "LSA", "wrap"];
    if axes == 2 {
        image.iter().any(|part| line.starts_with(part))
    } else {
        volume.iter().any(|part| line.contains(part))
    }
}

/// Cases of images, which are at least 8 samples wide and high.
fn images() -> impl Iterator<Item = Case> {
    cases! {
        "crop --region 2,1,4x5", [w, h, d] => [4, 5, 1], [x, y, z] => [x + 2, y + 1, 0];
        "crop --size 3x8", [w, h, d] => [3, 8, 1], [x, y, z] => [x + (w - 3) / 2, y + (h - 8) / 2, 0];
        "flip --axis x", [w, h, d] => [w, h, 1], [x, y, z] => [w - 1 - x, y, 0];
        "flip --axis y", [w, h, d] => [w, h, 1], [x, y, z] => [x, h - 1 - y, 0];
        "rotate --angle 90", [w, h, d] => [h, w, 1], [x, y, z] => [y, h - 1 - x, 0];
        "rotate --angle 180", [w, h, d] => [w, h, 1], [x, y, z] => [w - 1 - x, h - 1 - y, 0];
        "rotate --angle 270", [w, h, d] => [h, w, 1], [x, y, z] => [w - 1 - y, x, 0];
        "transpose --axes yx", [w, h, d] => [h, w, 1], [x, y, z] => [y, x, 0];
        "pad --by 2,1", [w, h, d] => [w + 4, h + 2, 1], [x, y, z] => moved([x, y, z], [2, 1, 0], [w, h, d]);
        "pad --by 3 --after 5,0 --edge reflect", [w, h, d] => [w + 8, h + 3, 1],
            [x, y, z] => [reflected(x, 3, w), reflected(y, 3, h), 0];
        "pad --by 4,3 --edge wrap", [w, h, d] => [w + 8, h + 6, 1],
            [x, y, z] => [(x + w - 4) % w, (y + h - 3) % h, 0];
    }
    .into_iter()
}

/// Cases of volumes, which have at least 8 samples along each axis.
fn volumes() -> impl Iterator<Item = Case> {
    cases! {
        "crop --region 2,1,3,4x5x2", [w, h, d] => [4, 5, 2], [x, y, z] => [x + 2, y + 1, z + 3];
        "crop --size 8x3x4", [w, h, d] => [8, 3, 4], [x, y, z] => [x + (w - 8) / 2, y + (h - 3) / 2, z + (d - 4) / 2];
        "flip --axis x", [w, h, d] => [w, h, d], [x, y, z] => [w - 1 - x, y, z];
        "flip --axis z", [w, h, d] => [w, h, d], [x, y, z] => [x, y, d - 1 - z];
        "rotate --angle 90", [w, h, d] => [h, w, d], [x, y, z] => [y, h - 1 - x, z];
        "rotate --angle 180 --axis y", [w, h, d] => [w, h, d], [x, y, z] => [w - 1 - x, y, d - 1 - z];
        "rotate --angle 90 --axis x", [w, h, d] => [w, d, h], [x, y, z] => [x, z, d - 1 - y];
        "rotate --angle 270 --axis y", [w, h, d] => [d, h, w], [x, y, z] => [z, y, d - 1 - x];
        "transpose --axes zyx", [w, h, d] => [d, h, w], [x, y, z] => [z, y, x];
        "transpose --axes yzx", [w, h, d] => [h, d, w], [x, y, z] => [z, x, y];
        "transpose --axes yx", [w, h, d] => [h, w, d], [x, y, z] => [y, x, z];
        "reorient --from RAS --to LSA", [w, h, d] => [w, d, h], [x, y, z] => [w - 1 - x, z, y];
        "pad --by 2,1,3", [w, h, d] => [w + 4, h + 2, d + 6], [x, y, z] => moved([x, y, z], [2, 1, 3], [w, h, d]);
        "pad --by 3,2,4 --after 0,0,5 --edge reflect", [w, h, d] => [w + 3, h + 2, d + 9],
            [x, y, z] => [reflected(x, 3, w), reflected(y, 2, h), reflected(z, 4, d)];
        "pad --by 1,0,3 --edge wrap", [w, h, d] => [w + 2, h, d + 6],
            [x, y, z] => [(x + w - 1) % w, y, (z + d - 3) % d];
    }
    .into_iter()
}

impl Case {
    /// The result for `grid`.
    fn result(&self, grid: &Grid) -> Grid {
        let (dims, bytes) = ((self.size)(grid.dims), grid.channels * grid.samples.dtype().size());
        let from = grid.samples.as_bytes();
        let mut samples =
            Samples::zeros(grid.samples.dtype(), dims.iter().product::<usize>() * grid.channels)
                .unwrap();
        for (at, to) in samples.as_bytes_mut().chunks_mut(bytes).enumerate() {
            let position = [at % dims[0], at / dims[0] % dims[1], at / (dims[0] * dims[1])];
            if let Some([x, y, z]) = (self.from)(position, grid.dims) {
                let at = (z * grid.dims[1] + y) * grid.dims[0] + x;
                to.copy_from_slice(&from[at * bytes..][..bytes]);
            }
        }
        Grid { dims, samples, ..*grid }
    }

    /// The command line with an input and an output.
    fn with(&self, input: &str, output: &str) -> String {
        let (command, flags) = self.line.split_once(' ').unwrap();
        format!("{command} {input} {output} {flags}")
    }
}

/// A grid of noise.
fn noisy(dims: Position, channels: usize, dtype: Dtype) -> Grid {
    let mut samples = Samples::zeros(dtype, dims.iter().product::<usize>() * channels).unwrap();
    let noise = Noise(dims[0] as u64).bytes(samples.as_bytes().len());
    samples.as_bytes_mut().copy_from_slice(&noise);
    if let Samples::F32(values) = &mut samples {
        values.iter_mut().enumerate().for_each(|(at, value)| *value = at as f32 / 7.0);
    }
    Grid { dims, channels, alpha: Alpha::None, samples }
}

/// Runs command lines in one process.
struct Jobs(Server);

impl Jobs {
    /// The exit code and the error of a command line.
    fn run(&mut self, line: &str) -> (u64, String) {
        let answer = self.0.run_job(line);
        (answer["code"].as_u64().unwrap(), answer["error"].to_string())
    }

    fn works(&mut self, line: &str) {
        let (code, error) = self.run(line);
        assert_eq!(code, 0, "{line}: {error}");
    }
}

/// The samples of a file as bytes of their type.
fn samples_of(path: &Path) -> Vec<u8> {
    bytes_of(&ReadOptions::new(), path)
}

/// The samples that are read by `options`, as bytes of their type.
fn bytes_of(options: &ReadOptions, path: &Path) -> Vec<u8> {
    let content = options.read(path).unwrap();
    macro_rules! bytes {
        ($($type:ident)+) => {
            match content.sample_type().to_string().as_str() {
                $(stringify!($type) => {
                    let samples = match content.is_volume() {
                        true => content.into_volume::<$type>().unwrap().into_samples(),
                        false => content.into_image::<$type>().unwrap().into_samples(),
                    };
                    bytemuck::cast_slice(&samples).to_vec()
                })+
                other => panic!("{other}"),
            }
        };
    }
    bytes!(u8 i8 u16 i16 u32 i32 f32 f64)
}

/// Writes `grid` as a raw volume, and returns its name.
fn write_volume(folder: &Path, grid: &Grid) -> String {
    let [x, y, z] = grid.dims;
    let name = format!("v_{x}x{y}x{z}_{}.raw", grid.samples.dtype().numpy_name());
    fs::write(folder.join(&name), grid.samples.as_bytes()).unwrap();
    name
}

/// Writes `grid` as an image of 1 to 4 channels, and returns its name.
fn write_image(folder: &Path, grid: &Grid) -> String {
    let ([width, height, _], dtype) = (grid.dims, grid.samples.dtype());
    let name = format!("i{}{dtype}.pam", grid.channels);
    let max = if dtype == Dtype::U8 { 255 } else { 65_535 };
    let kind = ["GRAYSCALE", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA"][grid.channels - 1];
    let head = format!(
        "P7\nWIDTH {width}\nHEIGHT {height}\nDEPTH {}\nMAXVAL {max}\nTUPLTYPE {kind}\nENDHDR\n",
        grid.channels
    );
    let mut samples = grid.samples.as_bytes().to_vec();
    if max > 255 {
        samples.as_chunks_mut::<2>().0.iter_mut().for_each(|sample| sample.reverse());
    }
    fs::write(folder.join(&name), [head.into_bytes(), samples].concat()).unwrap();
    name
}

#[test]
fn images_are_those_of_the_reference() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut jobs = Jobs(Server::start(path, "cpu"));
    // Larger than the tiles in which rows become columns.
    for (dims, channels, dtype) in [
        ([9, 8, 1], 1, Dtype::U8),
        ([70, 131, 1], 1, Dtype::U16),
        ([133, 67, 1], 3, Dtype::U8),
        ([20, 9, 1], 4, Dtype::U16),
        ([8, 30, 1], 2, Dtype::U8),
    ] {
        let grid = noisy(dims, channels, dtype);
        let input = write_image(path, &grid);
        for case in images() {
            let expected = case.result(&grid);
            jobs.works(&case.with(&input, "o.png"));
            let found = ReadOptions::new().read(path.join("o.png")).unwrap();
            assert_eq!(found.dims()[..2], expected.dims[..2], "{} {input}", case.line);
            let found = samples_of(&path.join("o.png"));
            assert!(found == expected.samples.as_bytes(), "{} {input}", case.line);
        }
    }
    jobs.0.shut_down();
}

#[test]
fn volumes_are_those_of_the_reference() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut jobs = Jobs(Server::start(path, "cpu"));
    for (dims, dtype) in
        [([12, 10, 9], Dtype::U8), ([8, 70, 11], Dtype::F32), ([67, 9, 8], Dtype::I16)]
    {
        let grid = noisy(dims, 1, dtype);
        let input = write_volume(path, &grid);
        for case in volumes() {
            let expected = case.result(&grid);
            jobs.works(&case.with(&input, "o.nrrd"));
            let found = ReadOptions::new().read(path.join("o.nrrd")).unwrap();
            assert_eq!(found.dims(), expected.dims, "{}", case.line);
            assert!(
                samples_of(&path.join("o.nrrd")) == expected.samples.as_bytes(),
                "{}",
                case.line
            );
        }
    }
    jobs.0.shut_down();
}

/// Stores, packed files, pipes, blocks and shards have the same result. A result whose slices lie across those of the input
/// needs all of it in memory.
#[test]
fn every_division_has_the_same_result() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let grid = noisy([12, 10, 33], 1, Dtype::U16);
    let input = write_volume(path, &grid);
    let mut jobs = Jobs(Server::start(path, "cpu"));
    jobs.works(&format!("blur {input} in.zarr --sigma 0 --levels 2 --chunks 5x4x2"));
    jobs.works(&format!("blur {input} in.nii.gz --sigma 0"));
    for case in volumes() {
        let expected = case.result(&grid).samples;
        for (input, more) in
            [(&*input, "--max-memory 20K"), ("in.zarr", "--max-memory 60K"), ("in.nii.gz", "")]
        {
            let line = format!("{} {more}", case.with(input, "part.raw"));
            if needs_all(case.line, 3) && more == "--max-memory 20K" {
                let (code, text) = jobs.run(&line);
                assert!(code == 4 && text.contains("--max-memory"), "{line}: {code} {text}");
                assert!(!path.join("part.raw").exists(), "{line}");
                continue;
            }
            jobs.works(&line);
            assert!(fs::read(path.join("part.raw")).unwrap() == expected.as_bytes(), "{line}");
            fs::remove_file(path.join("part.raw")).unwrap();
        }
        for shard in 0..3 {
            let line = case.with(&input, "shards.zarr");
            jobs.works(&format!("{line} --levels 2 --chunks 5x4x2 --shard {shard}/3"));
        }
        jobs.works(&case.with("in.zarr", "whole.zarr --levels 2"));
        let level =
            |store: &str, level| bytes_of(&ReadOptions::new().level(level), &path.join(store));
        for store in ["shards.zarr", "whole.zarr"] {
            assert!(level(store, 0) == expected.as_bytes(), "{} {store}", case.line);
        }
        assert!(level("shards.zarr", 1) == level("whole.zarr", 1), "{}", case.line);
        // The coarse level is that of a store of the same samples.
        jobs.works("blur whole.zarr again.zarr --sigma 0 --levels 2");
        assert!(level("again.zarr", 1) == level("whole.zarr", 1), "{}", case.line);
        for store in ["shards.zarr", "whole.zarr", "again.zarr"] {
            fs::remove_dir_all(path.join(store)).unwrap();
        }
    }
    // A pipe cannot be read backwards.
    let mut piped = gpuproc();
    piped.current_dir(path).args("flip - back.nrrd --axis z --device cpu".split(' '));
    jobs.works(&format!("blur {input} in.nrrd --sigma 0"));
    piped.write_stdin(fs::read(path.join("in.nrrd")).unwrap()).assert().success();
    let case = volumes().find(|case| case.line == "flip --axis z").unwrap();
    assert!(samples_of(&path.join("back.nrrd")) == case.result(&grid).samples.as_bytes());
    jobs.0.shut_down();
}

/// Rows of large images are read in order, from any row on.
#[test]
fn large_images_are_divided_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let grid = noisy([8, 30_000, 1], 1, Dtype::U8);
    write_image(path, &grid);
    works(path, "blur i1u8.pam tall.png --sigma 0");
    for case in images() {
        let line = format!("{} --max-memory 300K -v", case.with("tall.png", "o.tif"));
        if needs_all(case.line, 2) {
            let (code, text) = run(path, &line);
            assert!(code == 4 && text.contains("--max-memory"), "{line}: {code} {text}");
            continue;
        }
        let text = works(path, &line);
        assert!(text.contains("in blocks of "), "{line}: {text}");
        assert!(samples_of(&path.join("o.tif")) == case.result(&grid).samples.as_bytes(), "{line}");
    }
}

#[test]
fn batches_chains_and_pages_have_the_same_result() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut jobs = Jobs(Server::start(path, "cpu"));
    let grid = noisy([20, 9, 1], 3, Dtype::U8);
    let name = write_image(path, &grid);
    fs::copy(path.join(&name), path.join("other.pam")).unwrap();
    for case in images() {
        let expected = case.result(&grid).samples;
        let (command, flags) = case.line.split_once(' ').unwrap();
        jobs.works(&format!("{command} {name} other.pam -o batch/ {flags} --to png"));
        assert!(samples_of(&path.join("batch/other.png")) == expected.as_bytes(), "{}", case.line);
        // Between filters that are the same at every position.
        works(
            path,
            &format!("morph {name} --op dilate --then {} --then median -o chain.png", case.line),
        );
        jobs.works(&format!("morph {name} one.png --op dilate"));
        jobs.works(&case.with("one.png", "two.png"));
        jobs.works("median two.png three.png");
        let [chain, steps] = ["chain.png", "three.png"].map(|name| samples_of(&path.join(name)));
        assert!(chain == steps, "{}", case.line);
    }
    let pages = [3, 5].map(|value| TiffPage::grey([9, 8], 8, (value..value + 72).collect()));
    fs::write(path.join("pages.tif"), tiff(&pages)).unwrap();
    jobs.works("rotate pages.tif o.tif --angle 90");
    let second = ReadOptions::new().page(1).read(path.join("o.tif")).unwrap();
    let second = second.into_image::<u8>().unwrap();
    assert_eq!((second.width(), second.height()), (8, 9));
    assert_eq!(second.samples()[..8], [68, 59, 50, 41, 32, 23, 14, 5]);
    jobs.0.shut_down();
}

/// The coordinates of the corners of the result are those of the same samples of the input, and a density belongs to its
/// axis.
#[test]
fn samples_keep_their_positions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut jobs = Jobs(Server::start(path, "cpu"));
    let grid = noisy([12, 10, 9], 1, Dtype::U8);
    let head = "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 12 10 9\nencoding: raw\n\
        space: left-posterior-superior\nspace directions: (2,0.5,0) (0,3,0) (-1,0,5)\n\
        space origin: (10,20,30)\nspace units: \"mm\" \"mm\" \"mm\"\n\n";
    fs::write(path.join("v.nrrd"), [head.as_bytes(), grid.samples.as_bytes()].concat()).unwrap();
    jobs.works("blur v.nrrd v.nii --sigma 0");
    let place = |content: &Content, at: Position| {
        let rows = content.affine().unwrap();
        let at = [at[0] as f64, at[1] as f64, at[2] as f64, 1.0];
        [0, 1, 2].map(|row| (0..4).map(|i| rows[row][i] * at[i]).sum::<f64>())
    };
    for input in ["v.nrrd", "v.nii"] {
        let before = ReadOptions::new().read(path.join(input)).unwrap();
        // New samples are at other positions than those that they repeat.
        for case in volumes().filter(|case| !case.line.contains("--edge")) {
            let output = input.replace('v', "o");
            jobs.works(&case.with(input, &output));
            let after = ReadOptions::new().read(path.join(output)).unwrap();
            let [w, h, d] = after.dims().map(|len| len - 1);
            for corner in 0..8 {
                let at = [w * (corner & 1), h * (corner >> 1 & 1), d * (corner >> 2)];
                let Some(from) = (case.from)(at, grid.dims) else { continue };
                let [found, expected] = [place(&after, at), place(&before, from)];
                let is_close = (0..3).all(|axis| (found[axis] - expected[axis]).abs() < 1e-4);
                assert!(is_close, "{} {input} {at:?}: {found:?} {expected:?}", case.line);
            }
        }
    }
    // 2 mm by 5 mm are 5 and 2 pixels per centimetre.
    let head = "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 3 2 4\nspacings: 2 1 5\n\
        units: \"mm\" \"mm\" \"mm\"\nencoding: raw\n\n";
    fs::write(path.join("d.nrrd"), [head.as_bytes(), &[7; 24]].concat()).unwrap();
    jobs.works("project d.nrrd d.tif --axis y");
    for (line, expected) in [
        ("rotate d.tif o.tif --angle 90", "2 x 5 per cm"),
        ("rotate d.tif o.tif --angle 180", "5 x 2 per cm"),
        ("rotate d.tif --angle 270 --then rotate --angle 270 -o o.tif", "5 x 2 per cm"),
        ("rotate d.tif --angle 90 --then flip --axis x -o o.png", "2 x 5 per cm"),
    ] {
        jobs.works(line);
        let output = line.rsplit(' ').find(|word| word.starts_with("o.")).unwrap();
        let text = info_json(path, output)[0].to_string();
        assert!(text.contains(expected), "{line}: {text}");
    }
    jobs.0.shut_down();
}

#[test]
fn wrong_parameters_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let image = write_image(path, &noisy([9, 8, 1], 1, Dtype::U8));
    let volume = write_volume(path, &noisy([12, 10, 9], 1, Dtype::U8));
    for (line, part) in [
        (
            "crop IMAGE o.png --region 4,0,6x8",
            "4,0,6x8 is not inside of the input, whose size is 9x8",
        ),
        ("crop IMAGE o.png --region 0,0,4x8 --then crop --size 5x8", "whose size is 4x8"),
        ("crop IMAGE o.png --region 4,0,6", "--region"),
        ("crop IMAGE o.png --region 4,0,0x1", "--region"),
        ("crop IMAGE o.png", "--region"),
        ("crop VOLUME o.nrrd --region 0,0,9,1x1x1", "0,0,9,1x1x1 is not inside"),
        ("crop VOLUME o.nrrd --region 0,0,1x1", "--region has 2 axes, but the input has 3"),
        ("crop VOLUME o.nrrd --size 13x1x1", "whose size is 12x10x9"),
        ("flip IMAGE o.png --axis z", "--axis is an axis of volumes"),
        ("flip IMAGE o.png", "--axis"),
        ("rotate IMAGE o.png --angle 45", "--angle"),
        ("rotate IMAGE o.png --angle 91", "expected 90, 180 or 270"),
        ("rotate IMAGE o.png --angle 90 --axis x", "--axis is for volumes"),
        ("transpose IMAGE o.png --axes zyx", "--axes zyx is for volumes"),
        ("transpose IMAGE o.png --axes xx", "yx or zyx"),
        ("reorient IMAGE o.png --to RAS", "--to is for volumes"),
        ("reorient VOLUME o.nrrd --to RAX", "three letters"),
        ("reorient VOLUME o.nrrd --to RAS", "does not say in which directions"),
        ("pad IMAGE o.png --by 1,1,1", "--by has 3 values"),
        ("pad IMAGE o.png", "--by"),
    ] {
        let line = line.replace("IMAGE", &image).replace("VOLUME", &volume);
        let (code, text) = run(path, &line);
        assert!(code == 2 && text.contains(part), "{line}: {code} {text}");
    }
}

/// New samples that are 0 are transparent, and others are opaque.
#[test]
fn new_samples_of_images_with_alpha() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let samples = Samples::U8(vec![1, 2, 3, 100]);
    write_image(path, &Grid { dims: [1, 1, 1], channels: 4, alpha: Alpha::None, samples });
    for (edge, expected) in [("zero", [0; 4]), ("7", [7, 7, 7, 255]), ("clamp", [1, 2, 3, 100])] {
        works(path, &format!("pad i4u8.pam o.png --by 1,0 --edge {edge}"));
        let found = samples_of(&path.join("o.png"));
        assert_eq!(found, [expected, [1, 2, 3, 100], expected].concat(), "{edge}");
    }
}
