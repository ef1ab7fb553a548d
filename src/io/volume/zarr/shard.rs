//! The index of a shard: positions of its chunks in the file.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    array::{Array, Shard},
    codec,
    store::{ByteRange, Store},
};
use crate::io::volume::header::{BoxError, Endian};

/// Offset and length in bytes of each chunk of a shard; `None` for missing chunks.
#[derive(Debug)]
struct Index(Vec<Option<(u64, u64)>>);

impl Index {
    /// Reads the index of the shard `name` of `count` chunks; empty if the file is missing.
    fn read(store: &Store, name: &str, shard: &Shard, count: usize) -> Result<Self, BoxError> {
        // Only checksums are allowed as codecs of the index: its length in the file must be known.
        let sums = shard.codecs.iter().filter(|&&codec| codec == codec::Codec::Crc32c).count();
        if sums != shard.codecs.len() {
            return Err("codecs of the shard's index other than crc32c are not supported".into());
        }
        let bytes = (16 * count + 4 * sums) as u64;
        let part = if shard.is_at_end { ByteRange::Last(bytes) } else { ByteRange::First(bytes) };
        let Some(packed) = store.get(name, part, bytes)? else { return Ok(Self(Vec::new())) };
        if (packed.len() as u64) < bytes {
            return Err("shard is shorter than its index".into());
        }
        let index = codec::decode(&shard.codecs, packed, 16 * count, &mut Vec::new())
            .map_err(|error| format!("the index of the shard: {error}"))?;
        let number = |bytes: &[u8; 8]| match shard.endian {
            Endian::Little => u64::from_le_bytes(*bytes),
            Endian::Big => u64::from_be_bytes(*bytes),
        };
        let numbers = index.as_chunks().0;
        let entry = |pair: &[[u8; 8]]| match [number(&pair[0]), number(&pair[1])] {
            [u64::MAX, u64::MAX] => None,
            [from, bytes] => Some((from, bytes)),
        };
        Ok(Self(numbers.chunks_exact(2).map(entry).collect()))
    }
}

/// Indices of the shards read last, by the names of their files.
#[derive(Debug, Default)]
pub struct ShardIndices(Mutex<HashMap<String, Arc<Index>>>);

impl ShardIndices {
    /// Offset and length of the chunk at position `inner` of the shard `name`; `None` if it is missing. The indices take at
    /// most `max` bytes.
    pub fn find(
        &self,
        (store, name): (&Store, &str),
        array: &Array,
        (shard, inner): (&Shard, &[usize]),
        max: u64,
    ) -> Result<Option<(u64, u64)>, BoxError> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = array.chunks_per_file();
        let index = lock().get(name).cloned();
        let index = match index {
            Some(index) => index,
            None => {
                let index = Arc::new(Index::read(store, name, shard, counts.iter().product())?);
                let mut indices = lock();
                // Shards are read layer by layer, so that most indices are no longer needed when they take too much
                // memory. Each has 256 bytes of bookkeeping.
                let bytes = (indices.len() + 1) as u64 * (array.index_bytes() as u64 + 256);
                if bytes > max {
                    indices.clear();
                }
                indices.insert(name.to_owned(), index.clone());
                index
            }
        };
        let number = shard.order.iter().fold(0, |n, &axis| n * counts[axis] + inner[axis]);
        Ok(index.0.get(number).copied().flatten())
    }
}
