//! The metadata of a Zarr array, of version 2 (`.zarray`) and 3 (`zarr.json`): its shape, its grid of chunks, the type
//! of its samples, and the codecs between the samples of a chunk and the bytes of a file.
//!
//! Sizes are checked here, once for all readers, before anything is allocated.

use serde::Serialize;
use serde_json::{Map, Value};

use super::{codec::Codec, fill::fill};
use crate::{
    data::dtype::Dtype,
    io::volume::header::{BoxError, Endian, StoredType, excerpt},
};

/// Maximum number of dimensions, more than any image has.
const MAX_AXES: usize = 16;
/// Maximum number of codecs of a chunk.
const MAX_CODECS: usize = 16;
/// Maximum number of bytes of a decompressed chunk. Blosc has the same limit.
const MAX_CHUNK_BYTES: usize = (1 << 31) - 1;

/// The layout of an array: shape, chunks, type, codecs, names of files.
#[derive(Debug, Serialize)]
pub struct Array {
    /// Samples along each axis, the slowest first.
    pub shape: Vec<usize>,
    /// Samples of a file along each axis: one chunk, or a shard of several.
    pub file: Vec<usize>,
    /// Samples along each axis of a chunk, the unit of decoding.
    pub chunk: Vec<usize>,
    pub stored: StoredType,
    pub endian: Endian,
    /// The value of all samples of missing chunks, as little-endian bytes.
    pub fill: Vec<u8>,
    keys: ChunkKeys,
    /// Axes from the slowest to the fastest within a chunk.
    pub order: Vec<usize>,
    /// Codecs that compress the bytes of a chunk, in the order of encoding.
    pub codecs: Vec<Codec>,
    /// The index of shards, if files are shards.
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

/// The encoding of positions in the grid of files as names: `c/0/1/2`, `0.1.2`.
#[derive(Debug, Serialize)]
struct ChunkKeys {
    /// First part of all names.
    prefix: Option<&'static str>,
    separator: char,
}

impl Array {
    /// Parses metadata of version 2.
    pub fn from_v2(value: &Value) -> Result<Self, BoxError> {
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
                codecs.push(Codec::from_v2(filter, stored.size())?);
            }
        }
        match fields.get("compressor") {
            None | Some(Value::Null) => {}
            Some(compressor) => codecs.push(Codec::from_v2(compressor, stored.size())?),
        }
        let separator = separator(fields, "dimension_separator", '.')?;
        let array = Self {
            file: chunk.clone(),
            fill: fill(fields.get("fill_value").unwrap_or(&Value::Null), stored)?,
            keys: ChunkKeys { prefix: None, separator },
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
    pub fn from_v3(value: &Value) -> Result<Self, BoxError> {
        let fields = object(value)?;
        let shape = sizes(fields, "shape")?;
        let (grid, grid_fields) = named(field(fields, "chunk_grid")?)?;
        if grid != "regular" {
            return Err(format!("chunk grid `{}` is not supported", excerpt(grid)).into());
        }
        let file = sizes(grid_fields, "chunk_shape")?;
        let stored = type_3(field(fields, "data_type")?)?;
        let transformers = fields.get("storage_transformers").and_then(Value::as_array);
        if transformers.is_some_and(|transformers| !transformers.is_empty()) {
            return Err("storage transformers are not supported".into());
        }
        let keys = ChunkKeys::from_v3(fields)?;
        let whole: Vec<usize> = (0..shape.len()).collect();
        let chain = CodecChain::parse(field(fields, "codecs")?, whole, true)?;
        let names = fields.get("dimension_names").and_then(Value::as_array).map(|names| {
            names.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Vec<_>>()
        });
        let (chunk, order, codecs, endian, shard) = match chain.sharding {
            None => (file.clone(), chain.order, chain.codecs, chain.endian, None),
            Some(inner) => {
                let mut chunk = vec![0; shape.len()];
                if inner.chunk.len() != shape.len() {
                    return Err("chunk_shape of the shards: expected one size per axis".into());
                }
                // The chunk shape within a shard has the order of axes that results from transpose codecs before the
                // sharding codec.
                for (&axis, &size) in chain.order.iter().zip(&inner.chunk) {
                    chunk[axis] = size;
                }
                let shard = Shard {
                    codecs: inner.index.codecs,
                    is_at_end: inner.is_at_end,
                    order: chain.order,
                    endian: inner.index.endian,
                };
                let CodecChain { order, codecs, endian, .. } = *inner.chain;
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
        if shape.is_empty() || shape.len() > MAX_AXES {
            return Err(
                format!("array has {} dimensions; expected 1 to {MAX_AXES}", shape.len()).into()
            );
        }
        if file.len() != shape.len() {
            return Err("shape of chunks: expected one size per axis".into());
        }
        if shape.contains(&0) {
            return Err("array is empty: its size along an axis is 0".into());
        }
        if file.contains(&0) || chunk.contains(&0) {
            return Err("chunks have a size of 0".into());
        }
        if file.iter().zip(chunk).any(|(&file, &chunk)| !file.is_multiple_of(chunk)) {
            return Err("size of shards is not a multiple of the size of chunks".into());
        }
        if self.codecs.len() > MAX_CODECS {
            let count = self.codecs.len();
            return Err(format!("chunks have {count} codecs; expected at most {MAX_CODECS}").into());
        }
        let bytes = chunk.iter().try_fold(stored.size(), |n, &len| n.checked_mul(len));
        if bytes.is_none_or(|bytes| bytes > MAX_CHUNK_BYTES) {
            return Err(format!(
                "chunks of {chunk:?} samples are larger than the maximum of 2 GiB"
            )
            .into());
        }
        let index = self.chunks_per_file().iter().try_fold(16usize, |n, &len| n.checked_mul(len));
        if index.is_none_or(|bytes| bytes > MAX_CHUNK_BYTES / 8) {
            return Err("too many chunks in a shard".into());
        }
        Ok(self)
    }

    /// Bytes of a decompressed chunk.
    pub fn chunk_bytes(&self) -> usize {
        self.chunk.iter().product::<usize>() * self.stored.size()
    }

    /// Bytes of memory that the index of a shard takes.
    pub fn index_bytes(&self) -> usize {
        match self.shard {
            Some(_) => {
                self.chunks_per_file().iter().product::<usize>() * size_of::<Option<(u64, u64)>>()
            }
            None => 0,
        }
    }

    /// Number of chunks of a file along each axis.
    pub fn chunks_per_file(&self) -> Vec<usize> {
        self.file.iter().zip(&self.chunk).map(|(file, chunk)| file / chunk).collect()
    }

    /// The position in the grid of files of the file `name`; `None` for other files.
    pub fn parse_key(&self, name: &str) -> Option<Vec<usize>> {
        let place = self.keys.parse_key(name)?;
        // Each file has exactly one name: `1`, not `01`.
        (place.len() == self.shape.len() && self.key(&place) == name).then_some(place)
    }

    /// The name of the file at `position` in the grid of files.
    pub fn key(&self, position: &[usize]) -> String {
        self.keys.key(position)
    }
}

impl ChunkKeys {
    /// Parses the `chunk_key_encoding` of version 3.
    fn from_v3(fields: &Map<String, Value>) -> Result<Self, BoxError> {
        let (encoding, encoding_fields) = named(field(fields, "chunk_key_encoding")?)?;
        let (prefix, usual) = match encoding {
            "default" => (Some("c"), '/'),
            "v2" => (None, '.'),
            other => {
                return Err(
                    format!("chunk_key_encoding `{}` is not supported", excerpt(other)).into()
                );
            }
        };
        Ok(Self { prefix, separator: separator(encoding_fields, "separator", usual)? })
    }

    fn parse_key(&self, name: &str) -> Option<Vec<usize>> {
        let mut parts = name.split(self.separator);
        if self.prefix.is_some() && parts.next() != self.prefix {
            return None;
        }
        parts.map(|part| part.parse().ok()).collect()
    }

    fn key(&self, position: &[usize]) -> String {
        let numbers = position.iter().map(ToString::to_string);
        let parts: Vec<String> =
            self.prefix.iter().map(|&prefix| prefix.to_owned()).chain(numbers).collect();
        parts.join(&self.separator.to_string())
    }
}

/// The codecs of an array of version 3, or of a shard in it.
struct CodecChain {
    order: Vec<usize>,
    endian: Endian,
    codecs: Vec<Codec>,
    sharding: Option<Sharding>,
}

/// The configuration of the codec `sharding_indexed`.
struct Sharding {
    chunk: Vec<usize>,
    chain: Box<CodecChain>,
    index: Box<CodecChain>,
    is_at_end: bool,
}

impl CodecChain {
    /// Parses a list of codecs for samples whose axes come in `order`. Shards within shards are not supported.
    fn parse(value: &Value, order: Vec<usize>, may_shard: bool) -> Result<Self, BoxError> {
        let list = value.as_array().ok_or("codecs: expected an array")?;
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
                            return Err(format!("invalid byte order `{}`", excerpt(other)).into());
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
                            let other = excerpt(other);
                            return Err(format!("invalid index_location `{other}`").into());
                        }
                    };
                    let index = Self::parse(field(fields, "index_codecs")?, vec![], false)?;
                    chain.sharding = Some(Sharding {
                        chunk: sizes(fields, "chunk_shape")?,
                        chain: Box::new(Self::parse(field(fields, "codecs")?, axes, false)?),
                        index: Box::new(index),
                        is_at_end,
                    });
                }
                name if has_bytes && chain.sharding.is_none() => {
                    chain.codecs.push(Codec::from_v3(name, fields)?);
                }
                name => {
                    return Err(format!(
                        "codec `{}` is not supported at this position",
                        excerpt(name)
                    )
                    .into());
                }
            }
        }
        match has_bytes {
            true => Ok(chain),
            false => Err("codecs: expected one that converts samples to bytes".into()),
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
            return Err("order of the transpose codec: expected each axis once".into());
        }
        self.order = order.into_iter().map(|at| self.order[at]).collect();
        Ok(())
    }
}

pub fn object(value: &Value) -> Result<&Map<String, Value>, BoxError> {
    value.as_object().ok_or_else(|| "metadata: expected a JSON object".into())
}

fn field<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<&'a Value, BoxError> {
    fields.get(name).ok_or_else(|| format!("{name} is missing in the metadata").into())
}

/// Name and configuration of an extension point of version 3: `"name"`, or `{"name": ..., "configuration": ...}`.
fn named(value: &Value) -> Result<(&str, &Map<String, Value>), BoxError> {
    static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    if let Some(name) = value.as_str() {
        return Ok((name, &NONE));
    }
    let fields = object(value)?;
    let name = field(fields, "name")?.as_str().ok_or("name: expected a string")?;
    Ok((name, fields.get("configuration").and_then(Value::as_object).unwrap_or(&NONE)))
}

fn sizes(fields: &Map<String, Value>, name: &str) -> Result<Vec<usize>, BoxError> {
    let numbers = field(fields, name)?.as_array().into_iter().flatten();
    let sizes: Option<Vec<usize>> =
        numbers.map(|size| usize::try_from(size.as_u64()?).ok()).collect();
    let list = fields[name].is_array();
    sizes.filter(|_| list).ok_or_else(|| format!("{name}: expected an array of sizes").into())
}

/// Parses a type in NumPy's notation: `<u2`, `|b1`.
fn type_2(value: &Value) -> Result<(StoredType, Endian), BoxError> {
    let text = value.as_str().ok_or("samples that are records are not supported")?;
    let endian = if text.starts_with('>') { Endian::Big } else { Endian::Little };
    let stored = match text.trim_start_matches(['<', '>', '|', '=']) {
        "f2" => Some(StoredType::F16),
        code => Dtype::from_numpy(code).map(StoredType::As),
    };
    Ok((stored.ok_or_else(|| unsupported_type(text))?, endian))
}

fn type_3(value: &Value) -> Result<StoredType, BoxError> {
    let text = named(value)?.0;
    Ok(match text {
        "bool" => StoredType::As(Dtype::U8),
        "float16" => StoredType::F16,
        // C's names are not those of Zarr.
        "char" | "byte" | "short" | "int" | "float" | "double" => {
            return Err(unsupported_type(text));
        }
        _ => StoredType::As(text.parse().map_err(|_| unsupported_type(text))?),
    })
}

fn unsupported_type(name: &str) -> BoxError {
    format!("samples of type `{}` are not supported", excerpt(name)).into()
}

/// The separator of the parts of chunk keys.
fn separator(fields: &Map<String, Value>, name: &str, default: char) -> Result<char, BoxError> {
    match fields.get(name).and_then(Value::as_str) {
        None => Ok(default),
        Some(".") => Ok('.'),
        Some("/") => Ok('/'),
        Some(other) => Err(format!("invalid {name} `{}`", excerpt(other)).into()),
    }
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
    fn invalid_metadata_are_refused() {
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
            assert!(Array::from_v3(&all).is_err(), "{name} {value}");
        }
    }
}
