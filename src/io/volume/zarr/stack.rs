//! Volumes in Zarr stores: their axes, placement and files.

use std::{
    fs,
    hash::Hasher,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use fnv::FnvHasher;

use super::{
    group::{Axis, AxisKind, Image},
    reader::ZarrSlices,
    slicing::Slicing,
    store,
};
use crate::{
    data::placement::Placement,
    io::{
        Source,
        volume::{
            format::{Format, OpenedVolume, RecognizedInput},
            header::{BoxError, Description, Loss},
            layout::Layout,
            stream,
        },
    },
    util::error::{Error, Result},
};

/// The format.
pub const FORMAT: Format = Format {
    is_file: Some(|source| source.path().is_some_and(store::is_store)),
    has_channels: true,
    ..Format::new("Zarr", &["zarr"], open)
};

/// Opens the volume in a store.
fn open(input: RecognizedInput<'_>) -> Result<OpenedVolume> {
    let RecognizedInput { ref source, layout, .. } = input;
    let path = source.path().unwrap_or(Path::new(""));
    let unreadable = |error: BoxError| {
        stream::unreadable(&path.display(), format_args!("cannot read {source} as Zarr"), error)
    };
    let image = Image::open(path, layout.level.unwrap_or(0)).map_err(unreadable)?;
    let Image { array, axes, .. } = &image;
    let spatial = spatial(axes);
    if spatial[0].is_none() {
        return Err(unreadable("the image has no x axis".into()));
    }
    let (at, others) = choice(source, layout, axes, spatial, &array.shape)?;
    let dtype = array.stored.read_as(None);
    let count = |n: usize, &axis: &usize| n.checked_mul(array.shape[axis]);
    let volumes = others.iter().try_fold(1, count);
    let volumes = volumes.ok_or_else(|| unreadable("volume is too large".into()))?;
    let dims = spatial.map(|axis| axis.map_or(1, |axis| array.shape[axis]));
    let mut description = Description::new(dims, array.stored, 0);
    description.volumes = volumes;
    description.volume_noun = volume_noun(axes, &others, &array.shape);
    description.endian = array.endian;
    description.losses.extend(image.losses.iter().map(Loss::from));
    let name = image.name.clone().filter(|name| !name.is_empty());
    description.metadata.extend(name.map(|name| ("name".into(), name)));
    description.metadata.extend(image.metadata.iter().cloned());
    if let Some(placement) = placement(axes, spatial) {
        let first = spatial.into_iter().flatten().next();
        let unit = |axis: Option<usize>| axes[axis.or(first)?].unit.as_deref();
        description.set_placement_in(placement, spatial.map(unit));
    }
    let size = |file: PathBuf| fs::metadata(file).map_or(0, |found| found.len());
    description.variant = Some(image.format.into());
    description.file_bytes = Some(files(path).into_iter().map(size).sum());
    let slicing = Slicing { array: array.clone(), axes: spatial, others, at };
    let slices = ZarrSlices::new(slicing, image.store.clone(), dtype);
    let opened = OpenedVolume::from_slices(description, Arc::new(slices));
    Ok(OpenedVolume { zarr: Some(Arc::new(image)), ..opened })
}

/// The index along each axis that `layout` chooses (0 along all others), and the axes that count volumes: those that
/// are neither `spatial` nor chosen.
fn choice(
    source: &Source,
    layout: &Layout,
    axes: &[Axis],
    spatial: [Option<usize>; 3],
    shape: &[usize],
) -> Result<(Vec<usize>, Vec<usize>)> {
    let (mut at, mut others) = (vec![0; axes.len()], Vec::new());
    for (number, axis) in axes.iter().enumerate() {
        if spatial.contains(&Some(number)) {
            continue;
        }
        let (noun, chosen) = match axis.kind {
            AxisKind::Channel => ("channel", layout.channel),
            AxisKind::Time => ("time", layout.time),
            _ => ("index", None),
        };
        match chosen {
            Some(chosen) if chosen < shape[number] => at[number] = chosen,
            Some(chosen) => {
                return Err(Error::usage(format_args!(
                    "{source}: {noun} {} does not exist; expected 1 to {}",
                    chosen + 1,
                    shape[number]
                )));
            }
            None => others.push(number),
        }
    }
    for (kind, noun, chosen) in
        [(AxisKind::Channel, "channels", layout.channel), (AxisKind::Time, "times", layout.time)]
    {
        if chosen.is_some_and(|chosen| chosen > 0) && axes.iter().all(|axis| axis.kind != kind) {
            return Err(Error::usage(format_args!("{source}: store has no {noun}")));
        }
    }
    Ok((at, others))
}

/// The name of the volumes that the axes `others` count.
fn volume_noun(axes: &[Axis], others: &[usize], shape: &[usize]) -> &'static str {
    let varying: Vec<AxisKind> =
        others.iter().filter(|&&axis| shape[axis] > 1).map(|&axis| axes[axis].kind).collect();
    match varying[..] {
        [AxisKind::Channel] => "channels",
        [AxisKind::Time] => "times",
        [AxisKind::Time, AxisKind::Channel] => "times and channels",
        _ => "volumes",
    }
}

/// The numbers of the axes x, y and z in `axes`; `None` if there is no such axis.
pub fn spatial(axes: &[Axis]) -> [Option<usize>; 3] {
    let find = |name: &str| axes.iter().position(|axis| axis.name.eq_ignore_ascii_case(name));
    let mut spatial = [find("x"), find("y"), find("z")];
    if spatial == [None; 3] {
        // Axes with other names: the last axis of space is x, the one before it y.
        let space: Vec<usize> =
            (0..axes.len()).filter(|&axis| axes[axis].kind == AxisKind::Space).collect();
        for (to, axis) in spatial.iter_mut().zip(space.into_iter().rev()) {
            *to = Some(axis);
        }
    }
    spatial
}

/// Spacing and first position of the axes; `None` if no axis of space has either.
fn placement(axes: &[Axis], spatial: [Option<usize>; 3]) -> Option<Placement> {
    let values = |value: fn(&Axis) -> Option<f64>, usual: f64| {
        spatial.map(|axis| axis.and_then(|axis| value(&axes[axis])).unwrap_or(usual))
    };
    let is_stated = |axis: &Option<usize>| {
        axis.is_some_and(|axis| axes[axis].scale.or(axes[axis].first).is_some())
    };
    let is_placed = spatial.iter().any(is_stated);
    is_placed.then(|| {
        Placement::axis_aligned(values(|axis| axis.scale, 1.0), values(|axis| axis.first, 0.0))
    })
}

/// A hash of the metadata of a store at a web address, which has no modification time; `None` for local inputs.
pub fn address_state(source: &Source) -> Result<Option<u64>> {
    let Some(path) = source.path().filter(|path| store::is_address(path)) else { return Ok(None) };
    let image = Image::open(path, 0).map_err(|error| {
        let error = error.downcast::<io::Error>().map_or_else(io::Error::other, |error| *error);
        Error::io("read", path, error)
    })?;
    let mut hasher = FnvHasher::default();
    let layout = (&*image.array, &image.axes);
    hasher.write(&serde_json::to_vec(&layout).expect("plain data"));
    Ok(Some(hasher.finish()))
}

/// The local files of a store, at most 65,536.
pub fn files(path: &Path) -> Vec<PathBuf> {
    const MAX_FILES: usize = 1 << 16;
    if let Some(file) = store::zip_file(path) {
        return vec![file.to_owned()];
    }
    let (mut files, mut folders) = (Vec::new(), vec![path.to_owned()]);
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<PathBuf> = fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        entries.sort();
        for entry in entries {
            // Symbolic links are not followed: they could form a cycle.
            match fs::symlink_metadata(&entry) {
                Ok(found) if found.is_dir() => folders.push(entry),
                Ok(_) if files.len() < MAX_FILES => files.push(entry),
                _ => {}
            }
        }
        if files.len() >= MAX_FILES {
            break;
        }
    }
    files
}
