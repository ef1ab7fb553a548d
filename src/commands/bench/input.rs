//! Cases on files of the user (`--input`).

use std::{borrow::Cow, path::Path, sync::Arc};

use super::flags::Wanted;
use crate::{
    data::dtype::Dtype,
    data::grid::{Alpha, Grid},
    data::image::Image,
    data::samples::Samples,
    data::volume::Volume,
    device::Kernel,
    error::{Error, Kind, Result},
    for_number,
    io::{
        Limits, Source,
        array::{ArrayFormat, ArrayReader},
        image::read_image,
        volume::{Layout, VolumeFile, has_volume_name},
    },
    kernels::{
        blur::{Blur, Edge, Method, Taps},
        case::{Case, Sweep},
        histogram, mesh,
        scan::{Algorithm, Op, Scan, Scannable, Scanned},
        sort::{Records, Sort, Sortable},
    },
    session::Session,
};

/// The kind of data in a file, which decides what can be measured with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Image,
    Volume,
    Array,
}

impl Content {
    fn of(source: &Source, volume: &Layout, wanted: &Wanted) -> Self {
        match source.extension().as_str() {
            _ if volume.dims.is_some() || volume.dtype.is_some() => Self::Volume,
            "npy" | "txt" | "csv" | "tsv" | "text" | "" => Self::Array,
            "raw" | "bin" | "dat" | "u32" | "i32" | "f32"
                if wanted.only_families(&["scan", "sort"]) =>
            {
                Self::Array
            }
            _ if has_volume_name(source) => Self::Volume,
            _ => Self::Image,
        }
    }

    fn families(self) -> &'static [&'static str] {
        match self {
            Self::Image => &["blur", "histogram"],
            Self::Volume => &["mesh", "histogram"],
            Self::Array => &["scan", "sort"],
        }
    }
}

/// The wanted cases that can be measured with `source`, and the sweep over isovalues if it is a volume.
pub fn cases(
    source: &Source,
    wanted: &Wanted,
    volume: &Layout,
    session: &Session,
) -> Result<(Vec<Case>, Vec<Sweep>)> {
    let content = Content::of(source, volume, wanted);
    let able = content.families();
    if !able.iter().any(|family| wanted.family(family)) {
        return Err(Error::usage(format_args!(
            "{source}: such files are measured by {}; give images (.png, .jpg ...) for blur and \
             histogram, volumes (.raw) for mesh and histogram, arrays (.npy, .txt) for scan and sort",
            able.join(" and ")
        )));
    }
    match content {
        Content::Image => Ok((image_cases(source, wanted, session)?, Vec::new())),
        Content::Volume => volume_cases(source, wanted, volume, session),
        Content::Array => Ok((array_cases(source, wanted, session)?, Vec::new())),
    }
}

/// The name of a file in the table.
fn short_name(source: &Source) -> Cow<'_, str> {
    let name = source.path().and_then(Path::file_name);
    name.map_or("standard input".into(), |name| name.to_string_lossy())
}

/// Blurs and histograms of an image.
fn image_cases(source: &Source, wanted: &Wanted, session: &Session) -> Result<Vec<Case>> {
    let name = short_name(source);
    let image = read_image(source, limits(session), &session.timings)?;
    let dtype = image.samples.dtype();
    if !matches!(dtype, Dtype::U8 | Dtype::U16 | Dtype::F32) {
        return Err(Error::bad_input(format_args!(
            "{source}: pictures of u8, u16 and f32 are measured, not of {dtype}"
        )));
    }
    let mut cases = Vec::new();
    if wanted.family("blur") {
        cases.extend(blurs(&name, &image));
    }
    if wanted.family("histogram") {
        let dims = [image.width, image.height];
        cases.extend(histogram::cases_of(&name, dims, image.samples, image.channels)?);
    }
    Ok(cases)
}

/// Histograms of a volume, and the sweep over its isovalues.
fn volume_cases(
    source: &Source,
    wanted: &Wanted,
    layout: &Layout,
    session: &Session,
) -> Result<(Vec<Case>, Vec<Sweep>)> {
    let name = short_name(source);
    let volume = VolumeFile::describe(source, layout)?.read(limits(session), &session.timings)?;
    let (mut cases, mut sweeps) = (Vec::new(), Vec::new());
    if wanted.family("histogram") {
        let dims = [volume.samples.len(), 1];
        cases.extend(histogram::cases_of(&name, dims, volume.samples.clone(), 1)?);
    }
    if wanted.family("mesh") {
        sweeps.push(surfaces(&name, volume));
    }
    Ok((cases, sweeps))
}

/// Scans and sorts of an array.
fn array_cases(source: &Source, wanted: &Wanted, session: &Session) -> Result<Vec<Case>> {
    let (name, limits) = (short_name(source), limits(session));
    let format = ArrayFormat::of_input(source, None)?;
    let mut reader = ArrayReader::open(source, format, None, limits)?;
    let mut cases = Vec::new();
    for_number!(reader.dtype(), T => {
        let numbers: Arc<[T]> = reader.read_all::<T>(limits.bytes)?.into();
        if numbers.is_empty() {
            return Err(Error::bad_input(format_args!("{source} holds no number")));
        }
        if wanted.family("scan") {
            cases.extend(scans(&name, &numbers));
        }
        if wanted.family("sort") {
            cases.push(sorts(&name, numbers.to_vec()));
        }
    });
    Ok(cases)
}

/// The limits of an input, which is in memory several times while it is measured.
fn limits(session: &Session) -> Limits {
    session.limits(4)
}

fn wrong(text: std::fmt::Arguments<'_>) -> Error {
    Error::new(Kind::Failure, text)
}

fn blurs(name: &str, image: &Image) -> Vec<Case> {
    let Image { width, height, channels, samples, .. } = image;
    let bytes = 2 * samples.as_bytes().len() as u64;
    let raster = Arc::new(Grid {
        dims: [*width, *height, 1],
        channels: *channels,
        alpha: if image.has_alpha() { Alpha::Straight } else { Alpha::None },
        samples: samples.clone(),
    });
    let mut cases = Vec::new();
    for (method, algorithm, called) in
        [(Method::Gaussian, "separable", "Gaussian"), (Method::Box, "running sums", "box")]
    {
        for radius in [3, 8, 24, 96] {
            let axis = match method {
                Method::Gaussian => Taps::gaussian(radius as f64 / 3.0, radius),
                Method::Box => Taps::box_filter(radius),
            };
            let axes = [axis, axis, Taps::NONE];
            let blur = Blur { method, axes, iterations: 1, edge: Edge::Clamp, linear: false };
            let problem = format!("{called} r={radius}, {name}");
            cases.push(Case::of_kernel(
                ["blur", algorithm],
                problem,
                bytes,
                blur,
                &raster,
                check_blur,
            ));
        }
    }
    cases
}

/// Compares a hundred pixels with direct sums in double precision.
fn check_blur(blur: &Blur, raster: &Grid, found: &Samples) -> Result<()> {
    let [width, height, _] = raster.dims;
    let colours = raster.channels - usize::from(raster.has_alpha());
    let (old, most): (Vec<f64>, f64) = match &raster.samples {
        Samples::U8(v) => (v.iter().map(|&v| v.into()).collect(), 255.0),
        Samples::U16(v) => (v.iter().map(|&v| v.into()).collect(), 65535.0),
        Samples::F32(v) => (v.iter().map(|&v| v.into()).collect(), 1.0),
        other => unreachable!("images of {} are refused", other.dtype()),
    };
    let new: Vec<f64> = crate::for_samples!(found, values => {
        #[allow(clippy::cast_lossless, clippy::unnecessary_cast)]
        values.iter().map(|&v| v as f64).collect()
    });
    // Colours are weighted by alpha, so of images with alpha, only alpha itself is a plain sum.
    let channels = if raster.has_alpha() { colours..raster.channels } else { 0..colours };
    let half = blur.axes[0].half_weights(blur.method);
    let reach = half.len() as isize - 1;
    let weight = |i: isize| half[i.unsigned_abs()];
    let all: f64 = (-reach..=reach).map(weight).sum();
    for place in 0..100 {
        let at = place * (width * height).saturating_sub(1) / 99;
        let (x, y) = (at % width, at / width);
        for c in channels.clone() {
            let inside = |at: usize, by: isize, len: usize| {
                (at as isize + by).clamp(0, len as isize - 1) as usize
            };
            let row = |by: isize| -> f64 {
                let start = inside(y, by, height) * width;
                let sample = |by| old[(start + inside(x, by, width)) * raster.channels + c];
                (-reach..=reach).map(|by| weight(by) * sample(by)).sum()
            };
            let expected = (-reach..=reach).map(|by| weight(by) * row(by)).sum::<f64>() / all / all;
            let value = new[at * raster.channels + c];
            if (value - expected).abs() > most.max(100.0) / 100.0 {
                return Err(wrong(format_args!(
                    "pixel {x},{y} is {value} and should be {expected}"
                )));
            }
        }
    }
    Ok(())
}

/// The isovalues of the published sweep.
const ISOVALUES: std::ops::RangeInclusive<u32> = 30..=110;

fn surfaces(name: &str, volume: Volume) -> Sweep {
    let bytes = volume.samples.as_bytes().len() as u64;
    let isos: Vec<f64> = ISOVALUES.step_by(10).map(f64::from).collect();
    let points = mesh::sweep(&format!("{name},"), bytes, || Ok(volume), &isos);
    Sweep { along: "isovalue (units of the samples)", points }
}

fn scans<T: Scannable>(name: &str, numbers: &Arc<[T]>) -> Vec<Case> {
    let bytes = 2 * size_of_val(&numbers[..]) as u64;
    let algorithms = [
        ("reduce-then-scan", Algorithm::Reduce),
        ("look-back", Algorithm::Lookback),
        ("Blelloch", Algorithm::Blelloch),
    ];
    let case = |(called, algorithm)| {
        let scan = Scan::<T> { algorithm, ..Scan::new(Op::Sum, false) };
        let problem = format!("{} {}, {name}", numbers.len(), T::DTYPE);
        let case =
            Case::of_kernel(["scan", called], problem, bytes, scan, numbers, check_scan::<T>);
        Case {
            baseline: algorithm == Algorithm::Blelloch,
            on_cpu: algorithm == Algorithm::Reduce,
            ..case
        }
    };
    algorithms.map(case).into()
}

/// Compares integers with the serial sums exactly, and floats with the sums of the CPU within a tolerance.
fn check_scan<T: Scannable>(scan: &Scan<T>, numbers: &[T], found: &Scanned<T>) -> Result<()> {
    let is_float = T::DTYPE.is_float();
    let expected = match scan.checked(numbers)? {
        Ok(serial) if !is_float => serial.values,
        // Sums that wrap around, and floats, which are joined in another order than serially.
        _ => Scan { algorithm: Algorithm::Auto, ..*scan }.cpu(numbers)?.values,
    };
    let same = |a: &T, b: &T| {
        let (a, b) = (a.to_string(), b.to_string());
        let [a, b] = [a, b].map(|text| text.parse::<f64>().unwrap_or(f64::NAN));
        a == b || is_float && (a - b).abs() <= 1e-3 * a.abs().max(1.0)
    };
    match expected.iter().zip(&found.values).position(|(a, b)| a != b && !same(a, b)) {
        None if expected.len() == found.values.len() => Ok(()),
        None => Err(wrong(format_args!("{} of {} numbers", found.values.len(), expected.len()))),
        Some(i) => {
            Err(wrong(format_args!("number {i} is {}, not {}", found.values[i], expected[i])))
        }
    }
}

fn sorts<T: Sortable>(name: &str, keys: Vec<T>) -> Case {
    let problem = format!("{} {}, {name}", keys.len(), T::DTYPE);
    let bytes = 2 * size_of_val(&keys[..]) as u64;
    let records = Arc::new(Records { keys, payload: None });
    Case::of_kernel(["sort", "radix"], problem, bytes, Sort::new(false), &records, |_, old, new| {
        let mut keys: Vec<_> = old.keys.iter().map(|&key| key.to_key()).collect();
        keys.sort_unstable();
        match keys.into_iter().eq(new.keys.iter().map(|&key| key.to_key())) {
            true => Ok(()),
            false => Err(wrong(format_args!("not sorted as the standard library does"))),
        }
    })
}
