//! The metadata of a Zarr array, of version 2 (`.zarray`) and 3 (`zarr.json`): its shape, its grid of chunks, the type
//! of its samples, and the codecs between the samples of a chunk and the bytes of a file.
//!
//! Sizes are checked here, once for all readers, before anything is allocated.

use serde::Serialize;
use serde_json::{Map, Value};

use super::{codec::Codec, fill::fill};
use crate::{
    data::dtype::Dtype,
    io::volume::format::{BoxError, Endian, Stored, shown},
};

/// More dimensions than any image has.
const MOST_AXES: usize = 16;
/// Most codecs of a chunk.
const MOST_CODECS: usize = 16;
/// Most bytes of a decompressed chunk. Blosc has the same limit.
const MOST_BYTES: usize = (1 << 31) - 1;

/// The layout of an array: shape, chunks, type, codecs, names of files.
#[derive(Debug, Serialize)]
pub struct Array {
    /// Samples along each axis, the slowest first.
    pub shape: Vec<usize>,
    /// Samples along each axis that a file holds: one chunk, or a shard of several.
    pub file: Vec<usize>,
    /// Samples along each axis of a chunk, the unit of decoding.
    pub chunk: Vec<usize>,
    pub stored: Stored,
    pub endian: Endian,
    /// The value of all samples of missing chunks, as little-endian bytes.
    pub fill: Vec<u8>,
    keys: Keys,
    /// Axes from the slowest to the fastest within a chunk.
    pub order: Vec<usize>,
    /// Codecs that compress the bytes of a chunk, in the order of encoding.
    pub codecs: Vec<Codec>,
    /// How shards are indexed, where files are shards.
    pub shard: Option<Shard>,
    /// Names of the axes (`dimension_names`).
    pub names: Option<Vec<Option<String>>>,
}

/// The index of a shard: offset and length of each chunk in the file.
#[derive(Debug, Serialize)]
pub struct Shard {
    /// Codecs of the index itself.
    pub codecs: Vec<Codec>,
    /// Whether the index stands at the end of the file, not at its beginning.
    pub is_at_end: bool,
    /// Axes of the index, from the slowest to the fastest.
    pub order: Vec<usize>,
    /// Byte order of its numbers.
    pub endian: Endian,
}

/// How the name of a file is made of its place in the grid of files: `c/0/1/2`, `0.1.2`.
#[derive(Debug, Serialize)]
struct Keys {
    /// First part of all names.
    prefix: Option<&'static str>,
    separator: char,
}

impl Array {
    /// Parses metadata of version 2.
    pub fn of_version_2(value: &Value) -> Result<Self, BoxError> {
        let fields = object(value)?;
        let shape = sizes(fields, "shape")?;
        let chunk = sizes(fields, "chunks")?;
        let (stored, endian) = type_2(field(fields, "dtype")?)?;
        let order: Vec<usize> = match fields.get("order").and_then(Value::as_str) {
            Some("F") => (0..shape.len()).rev().collect(),
            _ => (0..shape.len()).collect(),
        };
        let mut codecs = Vec::new();
        if let Some(filters) = fields.get("filters").and_then(Value::as_array) {
            for filter in filters {
                codecs.push(Codec::of_version_2(filter, stored.size())?);
            }
        }
        match fields.get("compressor") {
            None | Some(Value::Null) => {}
            Some(compressor) => codecs.push(Codec::of_version_2(compressor, stored.size())?),
        }
        let separator = match fields.get("dimension_separator").and_then(Value::as_str) {
            None | Some(".") => '.',
            Some("/") => '/',
            Some(other) => return Err(format!("its keys are joined by `{}`", shown(other)).into()),
        };
        let array = Self {
            file: chunk.clone(),
            fill: fill(fields.get("fill_value").unwrap_or(&Value::Null), stored)?,
            keys: Keys { prefix: None, separator },
            shard: None,
            names: None,
            shape,
            chunk,
            stored,
            endian,
            order,
            codecs,
        };
        array.checked()
    }

    /// Parses metadata of version 3.
    pub fn of_version_3(value: &Value) -> Result<Self, BoxError> {
        let fields = object(value)?;
        let shape = sizes(fields, "shape")?;
        let (grid, grid_fields) = named(field(fields, "chunk_grid")?)?;
        if grid != "regular" {
            return Err(format!("its chunks make a grid of the kind `{}`", shown(grid)).into());
        }
        let file = sizes(grid_fields, "chunk_shape")?;
        let stored = type_3(field(fields, "data_type")?)?;
        let transformers = fields.get("storage_transformers").and_then(Value::as_array);
        if transformers.is_some_and(|transformers| !transformers.is_empty()) {
            return Err("it has storage transformers, which are not understood".into());
        }
        let keys = Keys::of_version_3(fields)?;
        let whole: Vec<usize> = (0..shape.len()).collect();
        let chain = Chain::read(field(fields, "codecs")?, whole, true)?;
        let names = fields.get("dimension_names").and_then(Value::as_array).map(|names| {
            names.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Vec<_>>()
        });
        let (chunk, order, codecs, endian, shard) = match chain.sharding {
            None => (file.clone(), chain.order, chain.codecs, chain.endian, None),
            Some(inner) => {
                let mut chunk = vec![0; shape.len()];
                if inner.chunk.len() != shape.len() {
                    return Err("the chunks of its shards have other dimensions".into());
                }
                // The chunk shape within a shard counts axes as transpose codecs before the sharding codec left them.
                for (&axis, &size) in chain.order.iter().zip(&inner.chunk) {
                    chunk[axis] = size;
                }
                let shard = Shard {
                    codecs: inner.index.codecs,
                    is_at_end: inner.is_at_end,
                    order: chain.order,
                    endian: inner.index.endian,
                };
                let Chain { order, codecs, endian, .. } = *inner.chain;
                (chunk, order, codecs, endian, Some(shard))
            }
        };
        let array = Self {
            fill: fill(fields.get("fill_value").unwrap_or(&Value::Null), stored)?,
            keys,
            shape,
            file,
            chunk,
            stored,
            endian,
            order,
            codecs,
            shard,
            names,
        };
        array.checked()
    }

    /// Checks that sizes agree with each other and are not too large.
    fn checked(self) -> Result<Self, BoxError> {
        let Self { shape, file, chunk, stored, .. } = &self;
        if shape.is_empty() || shape.len() > MOST_AXES {
            return Err(format!("it has {} dimensions", shape.len()).into());
        }
        if file.len() != shape.len() {
            return Err("its chunks have other dimensions than the array".into());
        }
        if shape.contains(&0) {
            return Err("it is empty: its length along an axis is 0".into());
        }
        if file.contains(&0) || chunk.contains(&0) {
            return Err("its chunks have a length of 0".into());
        }
        if file.iter().zip(chunk).any(|(&file, &chunk)| !file.is_multiple_of(chunk)) {
            return Err("its shards are not made of whole chunks".into());
        }
        if self.codecs.len() > MOST_CODECS {
            return Err(format!("its chunks go through {} codecs", self.codecs.len()).into());
        }
        let bytes = chunk.iter().try_fold(stored.size(), |n, &len| n.checked_mul(len));
        if bytes.is_none_or(|bytes| bytes > MOST_BYTES) {
            return Err(format!("its chunks, {chunk:?}, are larger than 2 GiB").into());
        }
        let index = self.chunks_a_file().iter().try_fold(16usize, |n, &len| n.checked_mul(len));
        if index.is_none_or(|bytes| bytes > MOST_BYTES / 8) {
            return Err("its shards have too many chunks".into());
        }
        Ok(self)
    }

    /// Bytes of a decompressed chunk.
    pub fn chunk_bytes(&self) -> usize {
        self.chunk.iter().product::<usize>() * self.stored.size()
    }

    /// Bytes of memory that the index of a shard takes.
    pub fn index_bytes(&self) -> usize {
        let entry = size_of::<Option<(u64, u64)>>();
        if self.shard.is_some() {
            self.chunks_a_file().iter().product::<usize>() * entry
        } else {
            0
        }
    }

    /// Number of chunks of a file along each axis.
    pub fn chunks_a_file(&self) -> Vec<usize> {
        self.file.iter().zip(&self.chunk).map(|(file, chunk)| file / chunk).collect()
    }

    /// The position in the grid of files of the file `name`; `None` for other files.
    pub fn place_of(&self, name: &str) -> Option<Vec<usize>> {
        let place = self.keys.place_of(name)?;
        // Each file has exactly one name: `1`, not `01`.
        (place.len() == self.shape.len() && self.key(&place) == name).then_some(place)
    }

    /// The name of the file at `place` in the grid of files.
    pub fn key(&self, place: &[usize]) -> String {
        self.keys.key(place)
    }
}

impl Keys {
    /// Parses the `chunk_key_encoding` of version 3.
    fn of_version_3(fields: &Map<String, Value>) -> Result<Self, BoxError> {
        let (encoding, encoding_fields) = named(field(fields, "chunk_key_encoding")?)?;
        let (prefix, usual) = match encoding {
            "default" => (Some("c"), '/'),
            "v2" => (None, '.'),
            other => {
                return Err(format!("its keys are encoded by `{}`", shown(other)).into());
            }
        };
        let separator = match encoding_fields.get("separator").and_then(Value::as_str) {
            None => usual,
            Some(".") => '.',
            Some("/") => '/',
            Some(other) => return Err(format!("its keys are joined by `{}`", shown(other)).into()),
        };
        Ok(Self { prefix, separator })
    }

    fn place_of(&self, name: &str) -> Option<Vec<usize>> {
        let mut parts = name.split(self.separator);
        if self.prefix.is_some() && parts.next() != self.prefix {
            return None;
        }
        parts.map(|part| part.parse().ok()).collect()
    }

    fn key(&self, place: &[usize]) -> String {
        let numbers = place.iter().map(ToString::to_string);
        let parts: Vec<String> =
            self.prefix.iter().map(|&prefix| prefix.to_owned()).chain(numbers).collect();
        parts.join(&self.separator.to_string())
    }
}

/// The codecs of an array of version 3, or of a shard in it.
struct Chain {
    order: Vec<usize>,
    endian: Endian,
    codecs: Vec<Codec>,
    sharding: Option<Inner>,
}

/// The configuration of the codec `sharding_indexed`.
struct Inner {
    chunk: Vec<usize>,
    chain: Box<Chain>,
    index: Box<Chain>,
    is_at_end: bool,
}

impl Chain {
    /// Parses a list of codecs for samples whose axes come in `order`. Shards within shards are not supported.
    fn read(value: &Value, order: Vec<usize>, may_shard: bool) -> Result<Self, BoxError> {
        let list = value.as_array().ok_or("its codecs are no list")?;
        let mut chain = Self { order, endian: Endian::Little, codecs: Vec::new(), sharding: None };
        let mut has_bytes = false;
        for codec in list {
            let (name, fields) = named(codec)?;
            match name {
                "transpose" if !has_bytes => chain.transpose(fields)?,
                "bytes" | "endian" if !has_bytes => {
                    has_bytes = true;
                    chain.endian = match fields.get("endian").and_then(Value::as_str) {
                        None | Some("little") => Endian::Little,
                        Some("big") => Endian::Big,
                        Some(other) => {
                            return Err(format!("its byte order is `{}`", shown(other)).into());
                        }
                    };
                }
                "sharding_indexed" if !has_bytes && may_shard => {
                    has_bytes = true;
                    let axes = chain.order.clone();
                    let is_at_end = match fields.get("index_location").and_then(Value::as_str) {
                        None | Some("end") => true,
                        Some("start") => false,
                        Some(other) => {
                            return Err(format!(
                                "the index of its shards is at `{}`",
                                shown(other)
                            )
                            .into());
                        }
                    };
                    let index = Self::read(field(fields, "index_codecs")?, vec![], false)?;
                    chain.sharding = Some(Inner {
                        chunk: sizes(fields, "chunk_shape")?,
                        chain: Box::new(Self::read(field(fields, "codecs")?, axes, false)?),
                        index: Box::new(index),
                        is_at_end,
                    });
                }
                name if has_bytes && chain.sharding.is_none() => {
                    chain.codecs.push(Codec::of_version_3(name, fields)?);
                }
                name => {
                    return Err(
                        format!("the codec `{}` in this place is not read", shown(name)).into()
                    );
                }
            }
        }
        match has_bytes {
            true => Ok(chain),
            false => Err("none of its codecs makes bytes of samples".into()),
        }
    }

    fn transpose(&mut self, fields: &Map<String, Value>) -> Result<(), BoxError> {
        let axes = self.order.len();
        let order: Vec<usize> = match field(fields, "order")? {
            Value::String(name) if name == "C" => (0..axes).collect(),
            Value::String(name) if name == "F" => (0..axes).rev().collect(),
            _ => sizes(fields, "order")?,
        };
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if sorted != (0..axes).collect::<Vec<_>>() {
            return Err("its transpose codec does not name each axis once".into());
        }
        self.order = order.into_iter().map(|at| self.order[at]).collect();
        Ok(())
    }
}

pub fn object(value: &Value) -> Result<&Map<String, Value>, BoxError> {
    value.as_object().ok_or_else(|| "its metadata are no JSON object".into())
}

fn field<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<&'a Value, BoxError> {
    fields.get(name).ok_or_else(|| format!("its metadata have no `{name}`").into())
}

/// Name and configuration of an extension point of version 3: `"name"`, or `{"name": ..., "configuration": ...}`.
fn named(value: &Value) -> Result<(&str, &Map<String, Value>), BoxError> {
    static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    if let Some(name) = value.as_str() {
        return Ok((name, &NONE));
    }
    let fields = object(value)?;
    let name = field(fields, "name")?.as_str().ok_or("a name in its metadata is no text")?;
    Ok((name, fields.get("configuration").and_then(Value::as_object).unwrap_or(&NONE)))
}

fn sizes(fields: &Map<String, Value>, name: &str) -> Result<Vec<usize>, BoxError> {
    let numbers = field(fields, name)?.as_array().into_iter().flatten();
    let sizes: Option<Vec<usize>> =
        numbers.map(|size| usize::try_from(size.as_u64()?).ok()).collect();
    let list = fields[name].is_array();
    sizes.filter(|_| list).ok_or_else(|| format!("its `{name}` is no list of sizes").into())
}

/// Parses a type in NumPy's notation: `<u2`, `|b1`.
fn type_2(value: &Value) -> Result<(Stored, Endian), BoxError> {
    let text = value.as_str().ok_or("its samples are records, not numbers")?;
    let endian = if text.starts_with('>') { Endian::Big } else { Endian::Little };
    let stored = match text.trim_start_matches(['<', '>', '|', '=']) {
        "f2" => Some(Stored::F16),
        code => Dtype::from_numpy(code).map(Stored::As),
    };
    let stored = stored.ok_or_else(|| format!("samples of type `{}` are not read", shown(text)))?;
    Ok((stored, endian))
}

fn type_3(value: &Value) -> Result<Stored, BoxError> {
    let text = named(value)?.0;
    Ok(match text {
        "bool" => Stored::As(Dtype::U8),
        "float16" => Stored::F16,
        "char" | "byte" | "short" | "int" | "float" | "double" => {
            return Err(format!("samples of type `{text}` are not read").into());
        }
        _ => Stored::As(
            text.parse().map_err(|_| format!("samples of type `{}` are not read", shown(text)))?,
        ),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn base() -> Value {
        json!({
            "zarr_format": 3, "node_type": "array", "shape": [7, 6, 5], "data_type": "uint16",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 4, 4]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 3, "codecs": [{"name": "bytes", "configuration": {"endian": "big"}}],
        })
    }

    #[test]
    fn arrays_of_both_versions() {
        let array = Array::of_version_3(&base()).unwrap();
        assert_eq!((array.shape.clone(), array.chunk_bytes()), (vec![7, 6, 5], 128));
        assert_eq!((array.endian, array.fill.clone()), (Endian::Big, vec![3, 0]));
        assert_eq!(array.key(&[1, 0, 2]), "c/1/0/2");
        let value = json!({
            "zarr_format": 2, "shape": [7, 6], "chunks": [4, 4], "dtype": ">f4", "order": "F",
            "compressor": null, "filters": null, "fill_value": "NaN",
        });
        let array = Array::of_version_2(&value).unwrap();
        assert_eq!((array.order.clone(), array.key(&[1, 0])), (vec![1, 0], "1.0".into()));
        assert_eq!(array.fill, f32::NAN.to_le_bytes());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (name, value) in [
            ("shape", json!([7, 6])),
            ("shape", json!([7, 0, 5])),
            ("shape", json!([7, -1, 5])),
            ("shape", json!("7")),
            ("shape", json!([])),
            ("data_type", json!("complex64")),
            ("data_type", json!({"name": "numpy.datetime64"})),
            ("chunk_grid", json!({"name": "rectilinear"})),
            ("chunk_grid", json!({"name": "regular", "configuration": {"chunk_shape": [0, 1, 1]}})),
            (
                "chunk_grid",
                json!({"name": "regular", "configuration": {"chunk_shape": [1u64 << 40, 1u64 << 40, 9]}}),
            ),
            ("fill_value", json!(65536)),
            ("fill_value", json!("x")),
            ("codecs", json!([])),
            ("codecs", json!([{"name": "bytes"}, {"name": "zfp"}])),
            (
                "codecs",
                json!([{"name": "transpose", "configuration": {"order": [0, 0, 1]}}, "bytes"]),
            ),
        ] {
            let mut all = base();
            all[name] = value.clone();
            assert!(Array::of_version_3(&all).is_err(), "{name} {value}");
        }
    }
}
