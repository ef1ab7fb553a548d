//! Writes pyramids as OME-NGFF: a folder with metadata, and an array of chunks for each level.
//!
//! Slices arrive in order. As soon as a layer (all chunks at the same z) is full, its chunks are written; and every
//! slice, or two, are at once reduced to one of the next level. So no level is read again, and one layer of each level
//! is in memory.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{blosc, group::Axis, group::Image, group::Kind};
use crate::{
    data::{
        dtype::Dtype,
        length,
        placement::Placement,
        pyramid::{Level, halved, is_zero, levels},
        samples::Samples,
        volume::Dims,
    },
    io::{
        Sink,
        part::temporary_name,
        volume::{Layout, VolumeFile},
    },
    util::{
        error::{Error, Result},
        memory,
        parallel::Parallel,
    },
};

/// Samples of a chunk along x, y and z, where neither the user nor the input says.
const CHUNK: [usize; 3] = [128, 128, 64];
/// Larger chunks of the input, in bytes, are halved.
const MOST_CHUNK: usize = 64 << 20;

/// Number of chunks of the finest level above which a file holds several chunks by default: ten terabytes then take
/// some 40,000 files, not millions.
const MANY_CHUNKS: usize = 1 << 16;
/// Number of chunks of a file along x and y in that case.
const CHUNKS_A_FILE: usize = 8;

/// How a pyramid is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PyramidOptions {
    /// Number of levels; by default as many as it takes until a level is small.
    pub levels: Option<usize>,
    /// Samples of a chunk along x, y and z; by default those of the input, or 128x128x64.
    pub chunk: Option<Dims>,
    /// Version of Zarr: 2 (OME-NGFF 0.4) or 3 (0.5); by default that of the input, or 3.
    pub version: Option<u8>,
    /// Number of chunks of a file along x and y (a shard of Zarr 3); by default 1, or 8 where there are many chunks.
    pub file_chunks: Option<usize>,
}

/// The plan of a store: its levels, chunks, axes and metadata. It depends on nothing but the input and the options, so
/// that several processes can write parts of one store.
#[derive(Debug)]
pub struct Pyramid {
    /// The levels, the finest first.
    pub levels: Vec<Level>,
    /// The type of samples.
    pub dtype: Dtype,
    version: u8,
    chunk: [usize; 3],
    /// Number of chunks of a file along x and y.
    file_chunks: usize,
    /// Axes that count volumes, the slowest first, with their lengths.
    others: Vec<(Axis, usize)>,
    /// Axes of a volume: those of z, y, x that the input has.
    axes: Vec<Axis>,
    name: Option<String>,
    omero: Option<Value>,
    are_labels: bool,
    losses: Vec<String>,
}

/// Whether `sink` names a store.
pub fn is_named_so(sink: &Sink) -> bool {
    sink.extension() == "zarr"
}

impl Pyramid {
    /// Plans the store of `dtype` samples for the volume of `file` that `layout` chooses, or for all volumes where it chooses none. `path`
    /// is the input's.
    ///
    /// # Errors
    /// When the input is a store whose metadata cannot be read, or when the options contradict each other.
    pub fn new(
        file: &VolumeFile,
        dtype: Dtype,
        path: Option<&Path>,
        layout: &Layout,
        options: PyramidOptions,
    ) -> Result<Self> {
        let store = path.filter(|path| super::is_store(path));
        let image = store.map(|path| Image::open(path, layout.level.unwrap_or(0)));
        let image = image.transpose().map_err(|error| {
            Error::bad_input("cannot read the metadata of the input").caused_by(error)
        })?;
        let image = image.as_ref();
        let placement = file.placement();
        let spacing = placement.map_or([1.0; 3], Placement::spacing);
        let first = placement.map_or([0.0; 3], |placement| placement.first);
        let unit = placement.and_then(|placement| placement.unit.as_deref());
        let unit = unit.map(|unit| length::long_name(unit).to_owned());
        let spatial = image.map(|image| super::spatial(&image.axes));
        let has = spatial.map_or([true; 3], |spatial| spatial.map(|axis| axis.is_some()));
        let axis = |at: usize| Axis {
            name: ["x", "y", "z"][at].into(),
            kind: Kind::Space,
            unit: unit.clone(),
            scale: Some(spacing[at]),
            first: Some(first[at]),
        };
        let others = image.map_or_else(Vec::new, |image| volume_axes(image, layout));
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
                return Err(Error::usage("Zarr 2 has a file for each chunk"));
            }
            (Some(count), _) => count,
            (None, 3) if count > MANY_CHUNKS => CHUNKS_A_FILE,
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

    /// What the store cannot hold of the input, in words.
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
    fn layer(&self, level: usize) -> usize {
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
        // The compressed chunks of a shard are held until all are there: at most a layer.
        let waiting = if self.file_chunks > 1 { level(first) / 2 } else { 0 };
        (first..self.levels.len()).map(level).sum::<u64>() + waiting + (4 * chunk * threads) as u64
    }

    /// Writes the metadata of the store into `folder`, which exists.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::util::error::Kind::Io) when that fails.
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

    /// Version of OME-NGFF.
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
                let kind = match axis.kind {
                    Kind::Space => Some("space"),
                    Kind::Channel => Some("channel"),
                    Kind::Time => Some("time"),
                    Kind::Other => None,
                };
                let mut fields = Map::new();
                fields.insert("name".into(), axis.name.clone().into());
                kind.map(|kind| fields.insert("type".into(), kind.into()));
                axis.unit.clone().map(|unit| fields.insert("unit".into(), unit.into()));
                fields.into()
            })
            .collect();
        let datasets: Vec<Value> = (0..self.levels.len())
            .map(|level| {
                let factors = self.levels[level].factors;
                let factor = |axis: &Axis| match axis.kind {
                    Kind::Space => ["x", "y", "z"]
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
        let chunk = self.sizes(|_| 1, self.chunk_of(level));
        let size = self.dtype.size();
        if self.version == 2 {
            let kind = match self.dtype {
                dtype if dtype.is_float() => 'f',
                dtype if dtype.is_signed() => 'i',
                _ => 'u',
            };
            let order = if size == 1 { '|' } else { '<' };
            return json!({
                "zarr_format": 2, "shape": shape, "chunks": chunk, "dtype": format!("{order}{kind}{size}"),
                "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
                "fill_value": 0, "order": "C", "filters": null, "dimension_separator": "/",
            });
        }
        let name = match self.dtype {
            Dtype::U8 => "uint8",
            Dtype::I8 => "int8",
            Dtype::U16 => "uint16",
            Dtype::I16 => "int16",
            Dtype::U32 => "uint32",
            Dtype::I32 => "int32",
            Dtype::U64 => "uint64",
            Dtype::I64 => "int64",
            Dtype::F32 => "float32",
            Dtype::F64 => "float64",
        };
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
        let file = self.sizes(|_| 1, self.file_of(level));
        let names: Vec<&str> = self.all_axes().map(|axis| axis.name.as_str()).collect();
        json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": name,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": file}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 0, "codecs": codecs,
            "dimension_names": names, "attributes": {},
        })
    }

    /// Samples of a chunk of a level, no more than the level has.
    fn chunk_of(&self, level: usize) -> [usize; 3] {
        std::array::from_fn(|axis| self.chunk[axis].min(self.levels[level].dims[axis]))
    }

    /// Number of chunks of a file of a level along x and y, no more than the level has.
    fn chunks_a_file(&self, level: usize) -> [usize; 2] {
        let (dims, chunk) = (self.levels[level].dims, self.chunk_of(level));
        [0, 1].map(|axis| self.file_chunks.min(dims[axis].div_ceil(chunk[axis])))
    }

    /// Samples of a file of a level along x, y and z.
    fn file_of(&self, level: usize) -> [usize; 3] {
        let ([x, y, z], count) = (self.chunk_of(level), self.chunks_a_file(level));
        [x * count[0], y * count[1], z]
    }

    /// The name, below the store's folder, of the file at `at` (x, y, z) in the grid of files.
    fn chunk_path(&self, level: usize, volume: usize, at: [usize; 3]) -> PathBuf {
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

/// What a store cannot hold of `file`, in words.
fn losses(file: &VolumeFile) -> Vec<String> {
    let mut losses = Vec::new();
    if file.placement().is_some_and(Placement::has_orientation) {
        losses.push("the orientation is dropped".to_owned());
    }
    let names = file.metadata().iter().map(|(name, _)| name.as_str());
    let dropped: Vec<&str> = names.filter(|&name| name != "name").collect();
    if !dropped.is_empty() {
        let names: String =
            dropped.join(", ").chars().filter(|c| !c.is_control()).take(200).collect();
        losses.push(format!("metadata is dropped ({names})"));
    }
    losses
}

/// The axes of the input that count volumes, with their lengths; none where `layout` chooses one volume.
fn volume_axes(image: &Image, layout: &Layout) -> Vec<(Axis, usize)> {
    let spatial = super::spatial(&image.axes);
    let is_chosen = |axis: &Axis| match axis.kind {
        Kind::Channel => layout.channel.is_some(),
        Kind::Time => layout.time.is_some(),
        _ => false,
    };
    let axes = image.axes.iter().zip(&image.array.shape).enumerate();
    axes.filter(|(number, (axis, _))| {
        !spatial.contains(&Some(*number)) && !is_chosen(axis) && layout.volume.is_none()
    })
    .map(|(_, (axis, &len))| (axis.clone(), len))
    .collect()
}

/// Samples of a chunk along x, y and z: those of the options, of the input, or [`CHUNK`]. Sides of chunks that are too
/// large are halved, the longest first.
fn chunk(dtype: Dtype, image: Option<&Image>, options: PyramidOptions) -> [usize; 3] {
    let kept = image.map(|image| {
        let spatial = super::spatial(&image.axes);
        spatial.map(|axis| axis.map_or(1, |axis| image.array.chunk[axis]))
    });
    let mut chunk = options.chunk.map_or(kept.unwrap_or(CHUNK), |chunk| chunk.0);
    let most = if options.chunk.is_some() { 1 << 30 } else { MOST_CHUNK };
    let bytes = |chunk: [usize; 3]| {
        chunk.iter().try_fold(dtype.size(), |bytes, &len| bytes.checked_mul(len))
    };
    while bytes(chunk).is_none_or(|bytes| bytes > most) {
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

/// Writes a file that other processes may write at the same time: first under a temporary name in the folder `beside`,
/// then renamed, so that it appears whole.
fn whole(path: &Path, bytes: &[u8], beside: &Path) -> io::Result<()> {
    let temporary = beside.join(temporary_name());
    let written = File::create_new(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_data()
    });
    let renamed = written.and_then(|()| fs::rename(&temporary, path));
    renamed.inspect_err(|_| drop(fs::remove_file(&temporary)))
}

/// Makes the folders of the file `name` below `root`, but not `root` itself: where that is gone, another process has
/// completed and renamed the store.
fn make_folders(root: &Path, name: &Path) -> io::Result<()> {
    let mut folder = root.to_owned();
    for part in name.parent().into_iter().flatten() {
        folder.push(part);
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Writes slices of a volume into consecutive levels of a store.
#[derive(Debug)]
pub struct PyramidWriter<'a> {
    pyramid: &'a Pyramid,
    folder: &'a Path,
    volume: usize,
    /// Whether other processes write into the same store.
    is_shared: bool,
    /// The level of the slices that are pushed.
    first: usize,
    /// That level and the coarser ones.
    levels: Vec<Waiting>,
    /// Whether the slices that are pushed are in the store already.
    has_first: bool,
    spare: Spare,
}

/// Memory that a thread uses to compress a chunk.
#[derive(Debug, Default)]
struct Buffers {
    samples: Vec<u8>,
    encoder: blosc::Encoder,
}

/// Buffers that no thread is using.
#[derive(Debug, Default)]
struct Spare(Mutex<Vec<Buffers>>);

impl Spare {
    /// Calls `make` with buffers of its own, and takes them back.
    fn lend<T>(&self, make: impl FnOnce(&mut Buffers) -> T) -> T {
        let free = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = free().pop();
        let mut buffers = found.unwrap_or_default();
        let made = make(&mut buffers);
        free().push(buffers);
        made
    }
}

/// Slices of a level that are not written or not reduced yet.
#[derive(Debug)]
struct Waiting {
    /// The number of the first slice that is not written.
    start: usize,
    /// Slices that wait until their layer is full.
    bytes: Vec<u8>,
    /// The last slice, which waits for its neighbour to be reduced with it.
    single: Vec<u8>,
}

impl<'a> PyramidWriter<'a> {
    /// Writes the levels `range` of a volume, from slice `start` of the level `range.start` on. `is_shared`: other
    /// processes write into the same store.
    pub fn new(
        pyramid: &'a Pyramid,
        folder: &'a Path,
        volume: usize,
        (range, start): (std::ops::Range<usize>, usize),
        is_shared: bool,
    ) -> Self {
        let from = pyramid.levels[range.start].factors[2];
        let level = |number: usize| Waiting {
            start: start * from / pyramid.levels[number].factors[2],
            bytes: Vec::new(),
            single: Vec::new(),
        };
        let levels = range.clone().map(level).collect();
        let (has_first, spare) = (false, Spare::default());
        Self { pyramid, folder, volume, is_shared, first: range.start, levels, has_first, spare }
    }

    /// Leaves out the level of the slices that are pushed, which is in the store already, and writes the coarser ones.
    pub fn leave_out_first(&mut self) {
        self.has_first = true;
    }

    /// Takes the next slices.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::util::error::Kind::Io) when a chunk cannot be written.
    pub fn push(&mut self, slices: &Samples) -> Result<()> {
        self.push_to(0, slices, false)
    }

    /// Writes all slices that still wait: the volume ends, or another process continues from here.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::util::error::Kind::Io) when a chunk cannot be written.
    pub fn finish(mut self) -> Result<()> {
        let none = Samples::zeros(self.pyramid.dtype, 0)?;
        self.push_to(0, &none, true)
    }

    /// Takes the next slices of the level number `at` of this writer: writes those that fill layers, and passes on what
    /// they are reduced to. `is_end`: no more slices follow.
    fn push_to(&mut self, at: usize, slices: &Samples, is_end: bool) -> Result<()> {
        self.write_layers(at, slices.as_bytes(), is_end)?;
        if at + 1 == self.levels.len() {
            return Ok(());
        }
        let next = self.reduced(at, slices, is_end)?;
        match next.is_empty() && !is_end {
            true => Ok(()),
            false => self.push_to(at + 1, &next, is_end),
        }
    }

    /// Bytes of a slice of the level number `at` of this writer.
    fn slice_bytes(&self, at: usize) -> usize {
        let [width, height, _] = self.pyramid.levels[self.first + at].dims;
        width * height * self.pyramid.dtype.size()
    }

    /// Writes the layers that the waiting slices and the `new` ones fill. The other slices wait.
    fn write_layers(&mut self, at: usize, new: &[u8], is_end: bool) -> Result<()> {
        let layer = self.pyramid.layer(self.first + at) * self.slice_bytes(at);
        let mut waiting = std::mem::take(&mut self.levels[at].bytes);
        // Whole layers among the new slices are written without a copy.
        let mut left = new;
        if !waiting.is_empty() {
            let (fills, rest) = left.split_at(left.len().min(layer - waiting.len()));
            waiting.extend_from_slice(fills);
            left = rest;
        }
        if waiting.len() == layer || (is_end && !waiting.is_empty()) {
            self.write_layer(at, &waiting)?;
            waiting.clear();
        }
        if waiting.is_empty() {
            let whole = if is_end { left.len() } else { left.len() / layer * layer };
            let (full, tail) = left.split_at(whole);
            for full in full.chunks(layer) {
                self.write_layer(at, full)?;
            }
            memory::reserve(&mut waiting, layer)?;
            waiting.extend_from_slice(tail);
        }
        self.levels[at].bytes = waiting;
        Ok(())
    }

    /// The slices of the next level that the `single` waiting slice and the new ones are reduced to. A slice without a
    /// neighbour waits.
    fn reduced(&mut self, at: usize, slices: &Samples, is_end: bool) -> Result<Samples> {
        let dtype = self.pyramid.dtype;
        let level = self.pyramid.levels[self.first + at];
        let steps = level.steps(&self.pyramid.levels[self.first + at + 1]);
        let (slice, new) = (self.slice_bytes(at), slices.as_bytes());
        let single = std::mem::take(&mut self.levels[at].single);
        let all = single.len() + new.len();
        let used = if is_end { all } else { all / (slice * steps[2]) * slice * steps[2] };
        if used == 0 {
            self.levels[at].single = [&single[..], new].concat();
            return Samples::zeros(dtype, 0);
        }
        let of_new = used - single.len();
        self.levels[at].single = new[of_new..].to_vec();
        let dims = [level.dims[0], level.dims[1], used / slice];
        if single.is_empty() && of_new == new.len() {
            return halved(slices, dims, steps, self.pyramid.are_labels);
        }
        let mut joined = Samples::zeros(dtype, used / dtype.size())?;
        let (head, tail) = joined.as_bytes_mut().split_at_mut(single.len());
        head.copy_from_slice(&single);
        tail.copy_from_slice(&new[..of_new]);
        halved(&joined, dims, steps, self.pyramid.are_labels)
    }

    /// Writes slices as a layer of chunks of the level number `at` of this writer.
    fn write_layer(&mut self, at: usize, bytes: &[u8]) -> Result<()> {
        let number = self.first + at;
        let Self { pyramid, folder, volume, is_shared, .. } = *self;
        let dims = pyramid.levels[number].dims;
        let size = pyramid.dtype.size();
        let slices = bytes.len() / (dims[0] * dims[1] * size);
        let chunk = pyramid.chunk_of(number);
        let z = self.levels[at].start / chunk[2];
        self.levels[at].start += slices;
        if at == 0 && self.has_first {
            return Ok(());
        }
        let layer = Layer { bytes, dims, slices, chunk, size };
        let per_file = pyramid.chunks_a_file(number);
        let counts = [0, 1].map(|axis| dims[axis].div_ceil(chunk[axis]).div_ceil(per_file[axis]));
        let put = |place: [usize; 3], content: &[u8]| -> Result<()> {
            let name = pyramid.chunk_path(number, volume, place);
            let path = folder.join(&name);
            let write = || match is_shared {
                true => whole(&path, content, folder.parent().unwrap_or(folder)),
                false => fs::write(&path, content),
            };
            let written = match write() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    make_folders(folder, &name).and_then(|()| write())
                }
                written => written,
            };
            written.map_err(|error| Error::io("write", &path, error))
        };
        let spare = &self.spare;
        (0..counts[0] * counts[1]).par_try_each(|i| -> Result<()> {
            let place = [i % counts[0], i / counts[0], z];
            // Chunks of zeros are not written: zero is the fill value.
            if pyramid.file_chunks == 1 {
                return spare.lend(|buffers| {
                    match layer.packed([place[0], place[1]], buffers)? {
                        Some(content) => put(place, content),
                        None => Ok(()),
                    }
                });
            }
            let first = [0, 1].map(|axis| place[axis] * per_file[axis]);
            let content = layer.shard(first, per_file, spare)?;
            content.map_or(Ok(()), |content| put(place, &content))
        })
    }
}

/// The slices of one layer of chunks.
struct Layer<'a> {
    bytes: &'a [u8],
    dims: [usize; 3],
    slices: usize,
    chunk: [usize; 3],
    /// Bytes of a sample.
    size: usize,
}

impl Layer<'_> {
    /// Compresses the chunk at `place` (x, y) in the grid; `None` where it is outside the level or all zero.
    fn packed<'b>(
        &self,
        place: [usize; 2],
        Buffers { samples, encoder }: &'b mut Buffers,
    ) -> Result<Option<&'b [u8]>> {
        let Self { bytes, dims, slices, chunk, size } = *self;
        let [x, y] = [place[0] * chunk[0], place[1] * chunk[1]];
        if x >= dims[0] || y >= dims[1] {
            return Ok(None);
        }
        let [width, height] = [chunk[0].min(dims[0] - x), chunk[1].min(dims[1] - y)];
        memory::resize(samples, chunk.iter().product::<usize>() * size)?;
        if [width, height, slices] != chunk {
            samples.fill(0);
        }
        for z in 0..slices {
            for row in 0..height {
                let from = ((z * dims[1] + y + row) * dims[0] + x) * size;
                let to = (z * chunk[1] + row) * chunk[0] * size;
                samples[to..to + width * size].copy_from_slice(&bytes[from..from + width * size]);
            }
        }
        if is_zero(samples) {
            return Ok(None);
        }
        if cfg!(target_endian = "big") {
            samples.chunks_exact_mut(size).for_each(<[u8]>::reverse);
        }
        encoder.encode(samples, size).map(Some)
    }

    /// Makes a shard: `count` chunks from the one at `first` on, x fastest, then offset and length of each, then a
    /// checksum of these numbers. `None` where all chunks are missing.
    fn shard(
        &self,
        first: [usize; 2],
        count: [usize; 2],
        spare: &Spare,
    ) -> Result<Option<Vec<u8>>> {
        let place = |i: usize| [first[0] + i % count[0], first[1] + i / count[0]];
        let chunks = (0..count[0] * count[1]).par_map(|i| {
            spare.lend(|buffers| Ok(self.packed(place(i), buffers)?.map(<[u8]>::to_vec)))
        });
        let (mut content, mut index) = (Vec::new(), Vec::new());
        for chunk in chunks {
            let chunk: Result<Option<Vec<u8>>> = chunk;
            let entry = match chunk? {
                None => [u64::MAX; 2],
                Some(chunk) => {
                    let from = content.len() as u64;
                    memory::reserve(&mut content, chunk.len())?;
                    content.extend_from_slice(&chunk);
                    [from, chunk.len() as u64]
                }
            };
            index.extend(entry.map(u64::to_le_bytes).concat());
        }
        if content.is_empty() {
            return Ok(None);
        }
        let sum = crc32c::crc32c(&index);
        content.extend(index);
        content.extend(sum.to_le_bytes());
        Ok(Some(content))
    }
}
