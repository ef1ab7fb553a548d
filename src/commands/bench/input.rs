//! Cases on files of the user (`--input`).

use std::{borrow::Cow, path::Path, sync::Arc};

use super::{
    case::{Case, Input},
    cases,
    flags::Args,
};
use crate::{
    data::{
        dtype::{Dtype, Scalar},
        grid::{Alpha, Grid},
    },
    engine::session::Session,
    for_number,
    io::{
        Source,
        array::{ArrayFormat, ArrayReader},
        image::read_image,
        volume::{VolumeFile, is_volume},
    },
    kernels::{
        blur::Method,
        histogram::{Bins, Component, Luma, Pixels, moments, type_range},
        scan::Algorithm,
        sort::Records,
    },
    util::error::{Error, Result},
};

/// The isovalues of the published measurements.
const ISOVALUES: std::ops::RangeInclusive<u32> = 30..=110;

/// The families that can be measured with a file.
fn families(source: &Source, args: &Args) -> [&'static str; 2] {
    let layout = args.volume.layout();
    match source.extension().as_str() {
        _ if layout.dims.is_some() || layout.dtype.is_some() => ["mesh", "histogram"],
        "npy" | "txt" | "csv" | "tsv" | "text" | "" => ["scan", "sort"],
        "raw" | "bin" | "dat" | "u32" | "i32" | "f32"
            if args.wants_only_families(&["scan", "sort"]) =>
        {
            ["scan", "sort"]
        }
        _ if is_volume(source, &layout) => ["mesh", "histogram"],
        _ => ["blur", "histogram"],
    }
}

/// The cases selected by the flags that can be measured with `source`.
pub fn file_cases(source: &Source, args: &Args, session: &Session) -> Result<Vec<Case>> {
    let families = families(source, args);
    if !families.iter().any(|family| args.wants_family(family)) {
        return Err(Error::usage(format_args!(
            "{source}: such files are measured by {}; give images (.png, .jpg ...) for blur and histogram, volumes \
             (.raw) for mesh and histogram, arrays (.npy, .txt) for scan and sort",
            families.join(" and ")
        )));
    }
    match families[0] {
        "blur" => image_cases(source, session),
        "mesh" => volume_cases(source, args, session),
        _ => array_cases(source, session),
    }
}

/// An input that holds `data`, which has `bytes` bytes, and is named after its file.
fn given<T: Send + Sync + 'static>(source: &Source, bytes: usize, data: T) -> Input<T> {
    let data = Arc::new(data);
    Input::new(name(source).into(), bytes as u64, move || Ok(data.clone()))
}

fn name(source: &Source) -> Cow<'_, str> {
    let name = source.path().and_then(Path::file_name);
    name.map_or("standard input".into(), |name| name.to_string_lossy())
}

/// Blurs and histograms of an image.
fn image_cases(source: &Source, session: &Session) -> Result<Vec<Case>> {
    // Measuring keeps several copies of the input in memory.
    let image = read_image(source, session.limits(4), &session.timings)?;
    let dtype = image.samples.dtype();
    if !matches!(dtype, Dtype::U8 | Dtype::U16 | Dtype::F32) {
        return Err(Error::bad_input(format_args!(
            "{source}: pictures of u8, u16 and f32 are measured, not of {dtype}"
        )));
    }
    let alpha = if image.has_alpha() { Alpha::Straight } else { Alpha::None };
    let (dims, channels) = ([image.width, image.height, 1], image.channels);
    let (bytes, samples) = (image.samples.as_bytes().len(), image.samples.clone());
    let grid = given(source, bytes, Grid { dims, channels, alpha, samples });
    let radii = [3, 8, 24, 96].into_iter();
    let blurs = radii.flat_map(|radius| [(Method::Gaussian, radius), (Method::Box, radius)]);
    let mut cases: Vec<_> =
        blurs.map(|(method, radius)| cases::blur(&grid, method, radius)).collect();
    cases.extend(histograms(source, Pixels { samples: image.samples, channels })?);
    Ok(cases)
}

/// Histograms of a volume, and its surfaces at several isovalues.
fn volume_cases(source: &Source, args: &Args, session: &Session) -> Result<Vec<Case>> {
    let volume = VolumeFile::describe(source, &args.volume.layout())?;
    let volume = volume.read(session.limits(4), &session.timings)?;
    let mut cases = histograms(source, Pixels { samples: volume.samples.clone(), channels: 1 })?;
    let slab = given(source, volume.samples.as_bytes().len(), cases::slab(volume));
    cases.extend(
        ISOVALUES
            .step_by(10)
            .map(f64::from)
            .map(|iso| cases::mesh(&slab, iso).at("isovalue (units of the samples)", iso)),
    );
    Ok(cases)
}

/// Histograms of luminance and colours, or of one channel.
fn histograms(source: &Source, pixels: Pixels) -> Result<Vec<Case>> {
    let dtype = pixels.samples.dtype();
    let (low, high) = type_range(dtype).unwrap_or_else(|| {
        let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
        let found = moments(&pixels, Component::Channel(0), low, high, false);
        if found.count > 0 { (found.min, found.max) } else { (0.0, 1.0) }
    });
    let luma = Component::Luma(Luma::Bt709);
    let [r, g, b] = [0, 1, 2].map(Component::Channel);
    let components = match pixels.channels {
        3.. => vec![vec![luma], vec![r, g, b, luma]],
        _ => vec![vec![r]],
    };
    let counts: &[usize] = if dtype.size() == 1 { &[256] } else { &[256, 1 << 16] };
    let pixels = given(source, pixels.samples.as_bytes().len(), pixels);
    let mut cases = Vec::new();
    for &count in counts {
        let bins = Bins::new(count, low, high, dtype)?;
        let each = components.iter().cloned();
        cases.extend(each.map(|components| cases::histogram(&pixels, components, bins)));
    }
    Ok(cases)
}

/// Scans and sorts of an array.
fn array_cases(source: &Source, session: &Session) -> Result<Vec<Case>> {
    let limits = session.limits(4);
    let format = ArrayFormat::of_input(source, None)?;
    let mut reader = ArrayReader::open(source, format, None, limits)?;
    for_number!(reader.dtype(), T => {
        let keys = reader.read_all::<T>(limits.bytes)?;
        if keys.is_empty() {
            return Err(Error::bad_input(format_args!("{source} holds no number")));
        }
        let name = format!("{} {}, {}", keys.len(), T::DTYPE, name(source));
        let bytes = size_of_val(&keys[..]) as u64;
        let numbers: Arc<[T]> = keys.clone().into();
        let numbers = Input::new(name.clone(), bytes, move || Ok(numbers.clone()));
        let records = Arc::new(Records { keys, payload: None });
        let records = Input::new(name, bytes, move || Ok(records.clone()));
        let scans = [Algorithm::Auto, Algorithm::Blelloch].map(|algorithm| cases::scan(&numbers, algorithm));
        Ok(scans.into_iter().chain([cases::sort(&records)]).collect())
    })
}
