//! The plan of an OME-NGFF pyramid: its levels, chunks, axes and metadata.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    group::{Axis, AxisKind, Image},
    stack::spatial,
    store::is_store,
};
use crate::{
    data::{
        dtype::Dtype,
        length,
        placement::Placement,
        pyramid::{Level, levels},
        volume::Dims,
    },
    io::{
        Sink, link_target,
        volume::{file::VolumeFile, layout::Layout},
    },
    util::error::{Error, Result},
};

/// Samples of a chunk along x, y and z, if neither the user nor the input states them.
const CHUNK: [usize; 3] = [128, 128, 64];
/// Size in bytes above which chunks of the input are halved.
const MAX_CHUNK: usize = 64 << 20;

/// Number of chunks of the finest level above which a file contains several chunks by default: ten terabytes then take
/// some 40,000 files, not millions.
const MANY_CHUNKS: usize = 1 << 16;
/// Number of chunks of a file along x and y in that case.
const CHUNKS_PER_FILE: usize = 8;

/// Options for writing a pyramid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PyramidOptions {
    /// Number of levels; by default as many as it takes until a level is small.
    pub levels: Option<usize>,
    /// Samples of a chunk along x, y and z; by default those of the input, or 128x128x64.
    pub chunk: Option<Dims>,
    /// Version of Zarr: 2 (OME-NGFF 0.4) or 3 (0.5); by default that of the input, or 3.
    pub version: Option<u8>,
    /// Number of chunks of a file along x and y (a shard of Zarr 3); by default 1, or 8 if there are many chunks.
    pub file_chunks: Option<usize>,
}

/// The plan of a store: its levels, chunks, axes and metadata. It depends on the input and the options only, so that
/// several processes can write parts of one store.
#[derive(Debug)]
pub struct Pyramid {
    /// The levels, the finest first.
    pub levels: Vec<Level>,
    /// The type of samples.
    pub dtype: Dtype,
    version: u8,
    chunk: [usize; 3],
    /// Number of chunks of a file along x and y.
    pub(super) file_chunks: usize,
    /// Axes that count volumes, the slowest first, with their lengths.
    others: Vec<(Axis, usize)>,
    /// Axes of a volume: those of z, y, x that the input has.
    axes: Vec<Axis>,
    name: Option<String>,
    omero: Option<Value>,
    /// Whether samples are labels, of which coarser levels take one and not the mean.
    pub are_labels: bool,
    losses: Vec<String>,
}

/// Extension of a store, without the dot.
pub const EXTENSION: &str = "zarr";

/// Whether the name of `sink` is that of a store.
pub fn is_zarr_path(sink: &Sink) -> bool {
    sink.extension() == EXTENSION
}

/// Refuses to replace a file or folder that is not a Zarr store. An empty folder may be replaced, too.
pub fn check_store_path(path: &Path) -> Result<()> {
    // A symbolic link may lead to a store that is still to be made.
    let path = &link_target(path);
    let is_empty = || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    match fs::symlink_metadata(path) {
        Ok(_) if !is_store(path) && !is_empty() => Err(Error::usage(format_args!(
            "refusing to overwrite {}: it exists and is not a Zarr store",
            path.display()
        ))),
        _ => Ok(()),
    }
}

impl Pyramid {
    /// Plans the store of `dtype` samples for the volume of `file` that `layout` chooses, by default for all volumes.
    pub fn new(
        file: &VolumeFile,
        dtype: Dtype,
        layout: &Layout,
        options: PyramidOptions,
    ) -> Result<Self> {
        let image = file.zarr.as_deref();
        let placement = file.placement.as_ref();
        let spacing = placement.map_or([1.0; 3], Placement::spacing);
        let first = placement.map_or([0.0; 3], |placement| placement.first);
        let unit = placement.and_then(|placement| placement.unit.as_deref());
        let unit = unit.map(|unit| length::long_name(unit).to_owned());
        let spatial = image.map(|image| spatial(&image.axes));
        let has = spatial.map_or([true; 3], |spatial| spatial.map(|axis| axis.is_some()));
        let axis = |at: usize| Axis {
            name: ["x", "y", "z"][at].into(),
            kind: AxisKind::Space,
            unit: unit.clone(),
            scale: Some(spacing[at]),
            first: Some(first[at]),
        };
        let others = match image {
            Some(image) => volume_axes(image, layout),
            None => stated_axes(file, layout),
        };
        let version = options.version.unwrap_or(match image {
            Some(image) if image.version == 2 => 2,
            _ => 3,
        });
        let chunk = chunk(dtype, image, options);
        let volumes: usize = others.iter().map(|(_, len)| len).product();
        let count = (0..3).map(|axis| file.dims[axis].div_ceil(chunk[axis].max(1)));
        let count = count.fold(volumes, usize::saturating_mul);
        let file_chunks = match (options.file_chunks, version) {
            (Some(2..), 2) => {
                return Err(Error::usage(
                    "Zarr 2 cannot store several chunks in a file; use Zarr 3",
                ));
            }
            (Some(count), _) => count,
            (None, 3) if count > MANY_CHUNKS => CHUNKS_PER_FILE,
            (None, _) => 1,
        };
        Ok(Self {
            levels: levels(file.dims, spacing, options.levels),
            dtype,
            version,
            chunk,
            file_chunks,
            axes: [2, 1, 0].into_iter().filter(|&at| has[at]).map(axis).collect(),
            others,
            name: image.and_then(|image| image.name.clone()),
            omero: image.and_then(|image| chosen_channel(image.omero.clone()?, layout)),
            are_labels: image.is_some_and(|image| image.is_labels),
            losses: losses(file),
        })
    }

    /// A message about content of the input that the store cannot hold; `None` if it holds everything.
    pub fn losses(&self) -> Option<String> {
        (!self.losses.is_empty()).then(|| self.losses.join(" and "))
    }

    /// Number of volumes in the store.
    pub fn volumes(&self) -> usize {
        self.others.iter().map(|(_, len)| len).product()
    }

    /// Number of slices of the finest level that make a whole layer of `level`.
    pub fn unit(&self, level: usize) -> usize {
        self.layer(level) * self.levels[level].factors[2]
    }

    /// Number of slices of a layer.
    pub fn layer(&self, level: usize) -> usize {
        self.chunk[2].min(self.levels[level].dims[2])
    }

    /// Bytes of memory that writing the levels from `first` on takes.
    pub fn bytes(&self, first: usize) -> u64 {
        let level = |number: usize| {
            let [width, height, _] = self.levels[number].dims;
            // A layer, and slices that wait for a neighbour to be reduced.
            ((width * height * self.dtype.size()) as u64)
                .saturating_mul(2 * self.layer(number) as u64 + 2)
        };
        let chunk = self.chunk.iter().product::<usize>() * self.dtype.size();
        let threads = rayon::current_num_threads();
        // All compressed chunks of a shard are in memory before it is written: at most a layer.
        let waiting = if self.file_chunks > 1 { level(first) / 2 } else { 0 };
        (first..self.levels.len()).map(level).sum::<u64>() + waiting + (4 * chunk * threads) as u64
    }

    /// Writes the metadata of the store into `folder`, which exists.
    pub fn create(&self, folder: &Path) -> Result<()> {
        let put = |name: PathBuf, value: &Value| -> Result<()> {
            let path = folder.join(name);
            let failed = |error| Error::io("write", &path, error);
            fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(failed)?;
            let text = serde_json::to_string_pretty(value).expect("plain data") + "\n";
            fs::write(&path, text).map_err(failed)
        };
        let mut ngff = Map::new();
        ngff.insert("multiscales".into(), json!([self.multiscale()]));
        if let Some(omero) = &self.omero {
            ngff.insert("omero".into(), omero.clone());
        }
        if self.are_labels {
            ngff.insert("image-label".into(), json!({"version": self.ngff()}));
        }
        match self.version {
            2 => {
                put(".zgroup".into(), &json!({"zarr_format": 2}))?;
                put(".zattrs".into(), &Value::Object(ngff))?;
            }
            _ => {
                ngff.insert("version".into(), self.ngff().into());
                let group =
                    json!({"zarr_format": 3, "node_type": "group", "attributes": {"ome": ngff}});
                put("zarr.json".into(), &group)?;
            }
        }
        for level in 0..self.levels.len() {
            let name = if self.version == 2 { ".zarray" } else { "zarr.json" };
            put(Path::new(&level.to_string()).join(name), &self.array(level))?;
        }
        Ok(())
    }

    fn ngff(&self) -> &'static str {
        if self.version == 2 { "0.4" } else { "0.5" }
    }

    /// All axes of the arrays, the slowest first.
    fn all_axes(&self) -> impl Iterator<Item = &Axis> {
        self.others.iter().map(|(axis, _)| axis).chain(&self.axes)
    }

    /// The `multiscales` entry: axes, and the path, scale and translation of each level.
    fn multiscale(&self) -> Value {
        let axes: Vec<Value> = self
            .all_axes()
            .map(|axis| {
                let mut fields = json!({"name": axis.name});
                if axis.kind != AxisKind::Other {
                    fields["type"] = json!(axis.kind);
                }
                if let Some(unit) = &axis.unit {
                    fields["unit"] = json!(unit);
                }
                fields
            })
            .collect();
        let datasets: Vec<Value> = (0..self.levels.len())
            .map(|level| {
                let factors = self.levels[level].factors;
                let factor = |axis: &Axis| match axis.kind {
                    AxisKind::Space => ["x", "y", "z"]
                        .iter()
                        .position(|&name| name == axis.name)
                        .map_or(1.0, |at| factors[at] as f64),
                    _ => 1.0,
                };
                let scale = |axis: &Axis| axis.scale.unwrap_or(1.0) * factor(axis);
                // The centre of the first sample, which is the mean of `factor` samples of the finest level.
                let first = |axis: &Axis| {
                    axis.first.unwrap_or(0.0)
                        + axis.scale.unwrap_or(1.0) * (factor(axis) - 1.0) / 2.0
                };
                json!({"path": level.to_string(), "coordinateTransformations": [
                    {"type": "scale", "scale": self.all_axes().map(scale).collect::<Vec<_>>()},
                    {"type": "translation", "translation": self.all_axes().map(first).collect::<Vec<_>>()},
                ]})
            })
            .collect();
        let mut image = Map::new();
        image.insert("axes".into(), axes.into());
        image.insert("datasets".into(), datasets.into());
        image.insert("type".into(), if self.are_labels { "nearest" } else { "mean" }.into());
        self.name.clone().map(|name| image.insert("name".into(), name.into()));
        if self.version == 2 {
            image.insert("version".into(), self.ngff().into());
        }
        image.into()
    }

    /// A size for each axis of the array: `others` of the length of each axis that counts volumes, then those of
    /// `space` (x, y, z) for the axes of a volume.
    fn sizes(&self, others: impl Fn(usize) -> usize, space: [usize; 3]) -> Vec<usize> {
        let spatial = self.axes.iter().map(|axis| match axis.name.as_str() {
            "x" => space[0],
            "y" => space[1],
            _ => space[2],
        });
        self.others.iter().map(|&(_, len)| others(len)).chain(spatial).collect()
    }

    /// The metadata of the array of a level.
    fn array(&self, level: usize) -> Value {
        let dims = self.levels[level].dims;
        let shape = self.sizes(|len| len, dims);
        let chunk = self.sizes(|_| 1, self.chunk_size(level));
        let size = self.dtype.size();
        if self.version == 2 {
            let order = if size == 1 { '|' } else { '<' };
            return json!({
                "zarr_format": 2, "shape": shape, "chunks": chunk, "dtype": format!("{order}{}", self.dtype.numpy_code()),
                "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
                "fill_value": 0, "order": "C", "filters": null, "dimension_separator": "/",
            });
        }
        let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
        let blosc = json!({"name": "blosc", "configuration": {
            "cname": "lz4", "clevel": 5, "shuffle": if size == 1 { "noshuffle" } else { "shuffle" },
            "typesize": size, "blocksize": 0}});
        let codecs = match self.file_chunks {
            1 => json!([bytes, blosc]),
            _ => json!([{"name": "sharding_indexed", "configuration": {
                "chunk_shape": chunk, "codecs": [bytes, blosc],
                "index_codecs": [bytes, {"name": "crc32c"}], "index_location": "end"}}]),
        };
        let file = self.sizes(|_| 1, self.file_size(level));
        let names: Vec<&str> = self.all_axes().map(|axis| axis.name.as_str()).collect();
        json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": self.dtype.numpy_name(),
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": file}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 0, "codecs": codecs,
            "dimension_names": names, "attributes": {},
        })
    }

    /// Samples of a chunk of a level, no more than the level has.
    pub fn chunk_size(&self, level: usize) -> [usize; 3] {
        std::array::from_fn(|axis| self.chunk[axis].min(self.levels[level].dims[axis]))
    }

    /// Number of chunks of a file of a level along x and y, no more than the level has.
    pub fn chunks_per_file(&self, level: usize) -> [usize; 2] {
        let (dims, chunk) = (self.levels[level].dims, self.chunk_size(level));
        [0, 1].map(|axis| self.file_chunks.min(dims[axis].div_ceil(chunk[axis])))
    }

    /// Samples of a file of a level along x, y and z.
    fn file_size(&self, level: usize) -> [usize; 3] {
        let ([x, y, z], count) = (self.chunk_size(level), self.chunks_per_file(level));
        [x * count[0], y * count[1], z]
    }

    /// The name, below the store's folder, of the file at `at` (x, y, z) in the grid of files.
    pub fn chunk_path(&self, level: usize, volume: usize, at: [usize; 3]) -> PathBuf {
        let mut path = PathBuf::from(level.to_string());
        if self.version == 3 {
            path.push("c");
        }
        let mut place = self.sizes(|_| 0, at);
        let mut rest = volume;
        for (slot, (_, len)) in place.iter_mut().zip(&self.others).rev() {
            *slot = rest % len;
            rest /= len;
        }
        path.extend(place.iter().map(ToString::to_string));
        path
    }
}

/// Messages about content of `file` that a store cannot hold.
fn losses(file: &VolumeFile) -> Vec<String> {
    let mut losses = Vec::new();
    if file.placement.as_ref().is_some_and(Placement::has_orientation) {
        losses.push("the orientation is dropped".to_owned());
    }
    losses.extend(file.dropped_metadata(|(name, _)| name == "name"));
    losses
}

/// The axes of the input that count volumes, with their lengths; none if `layout` chooses one volume.
fn volume_axes(image: &Image, layout: &Layout) -> Vec<(Axis, usize)> {
    let spatial = spatial(&image.axes);
    let is_chosen = |axis: &Axis| match axis.kind {
        AxisKind::Channel => layout.channel.is_some(),
        AxisKind::Time => layout.time.is_some(),
        _ => false,
    };
    let axes = image.axes.iter().zip(&image.array.shape).enumerate();
    axes.filter(|(number, (axis, _))| {
        !spatial.contains(&Some(*number)) && !is_chosen(axis) && layout.volume.is_none()
    })
    .map(|(_, (axis, &len))| (axis.clone(), len))
    .collect()
}

/// The axes of channels and times that a file without named axes states; none if `layout` chooses one volume.
fn stated_axes(file: &VolumeFile, layout: &Layout) -> Vec<(Axis, usize)> {
    let axis =
        |name: &str, kind| Axis { name: name.into(), kind, unit: None, scale: None, first: None };
    let chosen = file.channels_and_times.filter(|_| layout.volume.is_none());
    let [channels, times] = chosen.unwrap_or([1, 1]);
    let axes = [(axis("t", AxisKind::Time), times), (axis("c", AxisKind::Channel), channels)];
    axes.into_iter().filter(|&(_, len)| len > 1).collect()
}

/// Samples of a chunk along x, y and z: those of the options, of the input, or [`CHUNK`]. Sides of chunks that are too
/// large are halved, the longest first.
fn chunk(dtype: Dtype, image: Option<&Image>, options: PyramidOptions) -> [usize; 3] {
    let own = image.map(|image| {
        let spatial = spatial(&image.axes);
        spatial.map(|axis| axis.map_or(1, |axis| image.array.chunk[axis]))
    });
    let mut chunk = options.chunk.map_or(own.unwrap_or(CHUNK), |chunk| chunk.0);
    let max = if options.chunk.is_some() { 1 << 30 } else { MAX_CHUNK };
    let bytes = |chunk: [usize; 3]| {
        chunk.iter().try_fold(dtype.size(), |bytes, &len| bytes.checked_mul(len))
    };
    while bytes(chunk).is_none_or(|bytes| bytes > max) {
        let longest = (0..3).max_by_key(|&axis| chunk[axis]).expect("three");
        chunk[longest] = chunk[longest].div_ceil(2);
    }
    chunk
}

/// The rendering of the channel that `layout` chooses, or of all channels.
fn chosen_channel(mut omero: Value, layout: &Layout) -> Option<Value> {
    if layout.volume.is_some() {
        return None;
    }
    if let Some(channel) = layout.channel {
        let list = omero.get_mut("channels")?.as_array_mut()?;
        let chosen = list.get(channel)?.clone();
        *list = vec![chosen];
    }
    Some(omero)
}
