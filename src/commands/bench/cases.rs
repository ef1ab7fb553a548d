//! All cases, and the inputs that they generate.

use std::{ops::RangeInclusive, path::Path, sync::Arc};

use super::{
    case::{Case, Input},
    checks,
    transfer::transfer,
};
use crate::{
    data::{
        dtype::Dtype,
        grid::{Alpha, Grid},
        noise::Noise,
        samples::Samples,
    },
    engine::session::Session,
    io::{
        Source,
        volume::{Layout, VolumeFile},
    },
    kernels::{
        baselines::{ClassicCubes, CountAlgorithm, CountRgba, DirectBlur},
        blur::{Blur, Edge, Method, Taps},
        copy::CopyWords,
        histogram::{Bins, Component, Histogram, Pixels},
        mesh::{MarchingCubes, Slab},
        scan::{Algorithm, Op, Scan, Scannable},
        sort::{Records, Sort, Sortable},
    },
    util::{error::Result, parallel::Parallel},
};

/// All cases on generated inputs, in sizes for GPUs if `full`, else for software devices.
pub fn cases(full: bool) -> Vec<Case> {
    let pick = |small: usize, large: usize| if full { large } else { small };
    let mut cases = Vec::new();

    let image = noise_image(pick(512, 8192));
    for (method, radii, direct) in [
        (Method::Gaussian, &[3, 8, 24, 96][..], &[3, 8][..]),
        (Method::Box, &[1, 3, 24, 96, 500], &[3, 24, 96]),
    ] {
        cases.extend(radii.iter().map(|&radius| blur(&image, method, radius)));
        cases.extend(direct.iter().map(|&radius| direct_blur(&image, method, radius)));
    }

    // The size of the published measurements.
    let photo = [pick(613, 2448), pick(377, 1505)];
    let square = [pick(1024, 8192); 2];
    let pixels = rgba8(photo, None);
    for rows in [1, 4] {
        cases.push(levels(&pixels, rows));
        cases.extend(
            CountAlgorithm::ALL.map(|algorithm| published(&pixels, algorithm, rows, photo[0])),
        );
    }
    for content in [None, Some((0x8040_c0a0, "one colour"))] {
        cases.push(levels(&rgba8(square, content), 4));
    }
    for content in [None, Some((0xc0a0_c0a0, "one level"))] {
        let bins = Bins::new(1 << 16, 0.0, 65535.0, Dtype::U16).expect("a bin for each level");
        cases.push(histogram(&grey16(square, content), vec![Component::Channel(0)], bins));
    }

    for bits in if full { [24, 28] } else { [16, 20] } {
        let numbers = small_numbers::<u32>(bits);
        cases.push(scan(&numbers, Algorithm::Auto));
        cases.push(scan(&numbers, Algorithm::Blelloch));
        cases.push(scan(&small_numbers::<f32>(bits), Algorithm::Auto));
    }
    for with_payload in [false, true] {
        cases.push(sort(&noise_records(pick(16, 28), with_payload)));
    }

    let volume = gyroid(pick(96, 256));
    cases.push(mesh(&volume, 80.0));
    cases.push(classic_mesh(&volume, 80.0));
    if full {
        cases.push(mesh(&gyroid(1024), 80.0));
    }

    let bytes = pick(16 << 20, 1 << 30);
    cases.push(copy(bytes));
    cases.extend([true, false].map(|is_upload| transfer(is_upload, bytes)));
    cases
}

/// A blur by the kernel that `gpuproc blur` runs.
fn blur(image: &Input<Grid>, method: Method, radius: usize) -> Case {
    let algorithm = if method == Method::Box { "running sums" } else { "separable" };
    let (kernel, name) = blur_kernel(method, radius);
    let problem = format!("{name} r={radius}, {}", image.name);
    Case::new(["blur", algorithm], problem, kernel, image, image.bytes, checks::are_close::<0>)
}

fn direct_blur(image: &Input<Grid>, method: Method, radius: usize) -> Case {
    let algorithm = if method == Method::Box { "naive taps" } else { "direct 2-D" };
    let (kernel, name) = blur_kernel(method, radius);
    let problem = format!("{name} r={radius}, {}", image.name);
    let (kernel, bytes) = (DirectBlur(kernel), image.bytes);
    Case::new(["blur", algorithm], problem, kernel, image, bytes, checks::are_close::<1>)
        .as_baseline()
}

fn blur_kernel(method: Method, radius: usize) -> (Blur, &'static str) {
    let (name, taps) = match method {
        Method::Gaussian => ("Gaussian", Taps::gaussian(radius as f64 / 3.0, radius)),
        Method::Box => ("box", Taps::box_filter(radius)),
    };
    let axes = [taps, taps, Taps::NONE];
    (Blur { method, axes, iterations: 1, edge: Edge::Clamp, linear: false }, name)
}

/// A histogram of `components`.
fn histogram(pixels: &Input<Pixels>, components: Vec<Component>, bins: Bins) -> Case {
    let counted = match components[..] {
        [Component::Channel(_)] => "grey",
        [Component::Luma(_)] => "luminance",
        _ => "r, g, b, luminance",
    };
    let mut problem = format!("{}, {counted}", pixels.name);
    if bins.count != 256 {
        problem += &format!(", {} bins", bins.count);
    }
    let kernel = Histogram { components, bins, weighted: false };
    Case::new(["histogram", "workgroup bins"], problem, kernel, pixels, 0, PartialEq::eq)
}

fn levels(pixels: &Input<Pixels>, rows: usize) -> Case {
    let Histogram { components, bins, .. } = CountRgba::histogram(rows);
    histogram(pixels, components, bins)
}

fn published(pixels: &Input<Pixels>, algorithm: CountAlgorithm, rows: usize, width: usize) -> Case {
    let kernel = CountRgba { algorithm, rows, width };
    let problem = levels(pixels, rows).problem;
    let names = ["histogram", algorithm.name()];
    Case::new(names, problem, kernel, pixels, 0, PartialEq::eq).as_baseline()
}

/// An exclusive sum.
fn scan<T: Scannable>(numbers: &Input<[T]>, algorithm: Algorithm) -> Case {
    let kernel = Scan::<T> { algorithm, ..Scan::new(Op::Sum, false) };
    let (problem, bytes) = (numbers.name.clone(), numbers.bytes);
    let case = |name| Case::new(["scan", name], problem, kernel, numbers, bytes, checks::same_sums);
    match algorithm {
        Algorithm::Blelloch => case("Blelloch").as_baseline(),
        _ => case("exclusive sum"),
    }
}

/// A sort.
fn sort<T: Sortable>(records: &Input<Records<T>>) -> Case {
    let (problem, bytes) = (records.name.clone(), records.bytes);
    Case::new(
        ["sort", "radix"],
        problem,
        Sort::<T>::new(false),
        records,
        bytes,
        checks::same_records,
    )
}

/// Marching cubes. The bytes of the surface are not counted, since they are known only afterwards.
fn mesh(volume: &Input<Slab>, iso: f64) -> Case {
    let (problem, kernel) = (format!("{}, iso {iso}", volume.name), MarchingCubes::new(iso));
    Case::new(["mesh", "bit planes"], problem, kernel, volume, 0, PartialEq::eq)
}

fn classic_mesh(volume: &Input<Slab>, iso: f64) -> Case {
    let (names, problem) = (["mesh", "mark, scan, compact"], format!("{}, iso {iso}", volume.name));
    Case::new(names, problem, ClassicCubes { iso }, volume, 0, checks::same_corners).as_baseline()
}

/// A copy of `bytes` bytes.
pub fn copy(bytes: usize) -> Case {
    let name = format!("{} MiB", bytes >> 20);
    let make = move || Ok(Noise(0).u32s(bytes / 4)?.into());
    let words = Input::new(name.clone(), bytes as u64, make);
    Case::new(["copy", "copy"], name, CopyWords, &words, words.bytes, PartialEq::eq)
}

/// Noise in four 8-bit channels, none of them alpha.
fn noise_image(side: usize) -> Input<Grid> {
    let bytes = 4 * side * side;
    Input::new(format!("{side}x{side} RGBA8"), bytes as u64, move || {
        let samples = Samples::U8(bytemuck::pod_collect_to_vec(&Noise(0).u32s(bytes / 4)?));
        Ok(Arc::new(Grid { dims: [side, side, 1], channels: 4, alpha: Alpha::None, samples }))
    })
}

/// The word that fills the input and its description for the name of the case; `None` for noise.
type Content = Option<(u32, &'static str)>;

fn words(count: usize, content: Content) -> Result<Vec<u32>> {
    match content {
        Some((word, _)) => Ok(vec![word; count]),
        None => Noise(0).u32s(count),
    }
}

fn rgba8([width, height]: [usize; 2], content: Content) -> Input<Pixels> {
    let name = format!("{width}x{height} RGBA8 {}", content.map_or("noise", |(_, name)| name));
    Input::new(name, 4 * (width * height) as u64, move || {
        let samples = Samples::U8(bytemuck::pod_collect_to_vec(&words(width * height, content)?));
        Ok(Arc::new(Pixels { samples, channels: 4 }))
    })
}

fn grey16([width, height]: [usize; 2], content: Content) -> Input<Pixels> {
    let name = format!("{width}x{height} u16 {}", content.map_or("noise", |(_, name)| name));
    Input::new(name, 2 * (width * height) as u64, move || {
        let words = words(width * height / 2, content)?;
        let samples = Samples::U16(bytemuck::pod_collect_to_vec(&words));
        Ok(Arc::new(Pixels { samples, channels: 1 }))
    })
}

/// Small numbers of both signs: their sums wrap around in u32, and cancel out in f32.
fn small_numbers<T: Scannable>(bits: usize) -> Input<[T]> {
    let small = |number: u64| T::from_small((number >> 48) as i32 - (1 << 15));
    let make = move || Ok(Noise(0).collect(1 << bits, small)?.into());
    Input::new(format!("{} 2^{bits}", T::DTYPE), (size_of::<T>() as u64) << bits, make)
}

fn noise_records(bits: usize, with_payload: bool) -> Input<Records<u32>> {
    let (words, what) = if with_payload { (2, " with payload") } else { (1, "") };
    Input::new(format!("u32 2^{bits}{what}"), (4 * words) << bits, move || {
        let keys = Noise(0).u32s(1 << bits)?;
        let payload = with_payload.then(|| (0..1 << bits).collect());
        Ok(Arc::new(Records { keys, payload }))
    })
}

/// A gyroid with a period of 64 samples, as u8 values around 80.
fn gyroid(side: usize) -> Input<Slab> {
    Input::new(format!("{side}^3 u8"), side.pow(3) as u64, move || {
        let waves: Vec<(f32, f32)> =
            (0..side).map(|i| (i as f32 * std::f32::consts::TAU / 64.0).sin_cos()).collect();
        let mut values = vec![0u8; side.pow(3)];
        values.chunks_mut(side * side).zip(&waves).par_each(|(slice, &(sz, cz))| {
            for (row, &(sy, cy)) in slice.chunks_exact_mut(side).zip(&waves) {
                for (value, &(sx, cx)) in row.iter_mut().zip(&waves) {
                    *value = (80.0 + 70.0 * (sx * cy + sy * cz + sz * cx)).clamp(0.0, 255.0) as u8;
                }
            }
        });
        Ok(Arc::new(slab(Grid::volume([side; 3], Samples::U8(values)))))
    })
}

/// Meshes of the volume in `source` at several isovalues.
pub fn volume_cases(source: &Source, layout: &Layout, session: &Session) -> Result<Vec<Case>> {
    /// The isovalues of the published measurements.
    const ISOVALUES: RangeInclusive<u32> = 30..=110;
    // Measuring keeps several copies of the input in memory.
    let volume = VolumeFile::describe(source, layout)?.read(session.limits(4), &session.timings)?;
    let name = source.path().and_then(Path::file_name);
    let name = name.map_or("standard input".into(), |name| name.to_string_lossy().into_owned());
    let (bytes, slab) = (volume.samples.as_bytes().len() as u64, Arc::new(slab(volume)));
    let slab = Input::new(name, bytes, move || Ok(slab.clone()));
    Ok(ISOVALUES.step_by(10).map(|iso| mesh(&slab, iso.into())).collect())
}

/// The slab that covers all of `volume`. It is the same for every isovalue.
fn slab(volume: Grid) -> Slab {
    Slab::whole(volume, &MarchingCubes::new(0.0))
}
