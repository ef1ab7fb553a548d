//! Reads and decodes the chunks of a Zarr array.

use std::{
    io,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    array::{Array, Shard},
    codec,
    existing::ExistingFiles,
    shard::ShardIndices,
    slicing::Slicing,
    store::{ByteRange, Store},
};
use crate::{
    data::dtype::Dtype,
    io::volume::{
        convert,
        header::{BoxError, Endian, StoredType},
        stream,
    },
    util::{
        error::{Error, Result},
        memory,
    },
};

/// Maximum number of bytes of chunks that are decoded at a time.
pub const SCRATCH: u64 = 64 << 20;

/// An array as volumes of slices, and the memory to read it.
pub struct ZarrSlices {
    pub slicing: Slicing,
    pub store: Store,
    /// The type of samples once read.
    pub dtype: Dtype,
    /// The value of missing chunks as one sample of `dtype`, in the machine's byte order.
    pub fill: Vec<u8>,
    /// The last layer of which only a part was read.
    pub cached: Mutex<Option<CachedLayer>>,
    /// Maximum number of bytes of that layer, and of `indices`.
    pub cache_bytes: AtomicU64,
    indices: ShardIndices,
    /// The files that exist; `None` if that is unknown.
    existing: OnceLock<Option<Arc<ExistingFiles>>>,
    /// Memory to reuse for the next chunks: the system would clear fresh memory first.
    spare: Mutex<Vec<Vec<u8>>>,
}

/// The slices of a layer of chunks, number `number` along z of a volume.
pub struct CachedLayer {
    pub volume: usize,
    pub number: usize,
    pub samples: Vec<u8>,
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ZarrSlices {
    pub fn new(slicing: Slicing, store: Store, dtype: Dtype) -> Self {
        let array = &slicing.array;
        let mut fill = array.fill.clone();
        if array.stored != StoredType::As(dtype) {
            let stored = (array.stored, Endian::Little);
            let number = std::mem::replace(&mut fill, vec![0; dtype.size()]);
            convert::read(&mut &number[..], stored, None, dtype, &mut fill).expect("a number");
        }
        let (cached, indices, existing, spare) = Default::default();
        let cache_bytes = AtomicU64::new(SCRATCH);
        Self { slicing, store, dtype, fill, cached, cache_bytes, indices, existing, spare }
    }

    /// The files that exist; `None` if that is unknown.
    pub fn existing(&self) -> Option<&Arc<ExistingFiles>> {
        self.existing
            .get_or_init(|| ExistingFiles::list(&self.slicing, &self.store).map(Arc::new))
            .as_ref()
    }

    /// Fills `out` with the value of missing samples.
    pub fn write_fill(&self, out: &mut [u8]) {
        match self.fill[..] {
            [fill] => out.fill(fill),
            _ => {
                let samples = out.chunks_exact_mut(self.fill.len());
                samples.for_each(|sample| sample.copy_from_slice(&self.fill));
            }
        }
    }

    /// Copies the first samples of row `y` in slice `z` of a chunk.
    pub fn copy_row(&self, chunk: &[u8], [y, z]: [usize; 2], row: &mut [u8]) {
        let (strides, size) = (self.slicing.strides(), self.dtype.size());
        let from = &chunk[(z * strides[2] + y * strides[1]) * size..];
        match strides[0] {
            1 => row.copy_from_slice(&from[..row.len()]),
            stride => {
                for (x, sample) in row.chunks_exact_mut(size).enumerate() {
                    sample.copy_from_slice(&from[x * stride * size..][..size]);
                }
            }
        }
    }

    /// Keeps the memory of chunks for the next ones.
    pub fn keep_spare(&self, chunks: impl Iterator<Item = Vec<u8>>) {
        lock(&self.spare).extend(chunks);
    }

    /// Adds the name of a chunk's file to an error of reading it.
    fn broken(&self, name: &str, error: BoxError) -> Error {
        let name = self.store.display_name(name);
        stream::unreadable(&name, format_args!("chunk {name} is damaged"), error)
    }

    /// A vector with memory to reuse, or an empty one. Its content is arbitrary.
    pub fn spare(&self) -> Vec<u8> {
        lock(&self.spare).pop().unwrap_or_default()
    }

    /// Reads the compressed bytes of a chunk; `None` if it is missing. Files that are not among the `existing` ones are not
    /// opened.
    pub fn read_chunk(
        &self,
        at: [usize; 3],
        position: &[usize],
        existing: Option<&ExistingFiles>,
    ) -> Result<Option<Vec<u8>>> {
        let (chunk, file) = (self.slicing.chunk(), self.slicing.file_size());
        let file = [0, 1, 2].map(|axis| at[axis] / (file[axis] / chunk[axis]));
        if existing.is_some_and(|existing| !existing.has(&self.slicing, position, file)) {
            return Ok(None);
        }
        let (name, inner) = self.slicing.file(at, position);
        let max = max_packed_bytes(self.slicing.array.chunk_bytes());
        let packed = match &self.slicing.array.shard {
            None => self.store.get_into(&name, ByteRange::Whole, max, self.spare()),
            Some(shard) => self.read_from_shard(&name, shard, &inner, max),
        };
        packed.map_err(|error| self.broken(&name, error))
    }

    /// Reads the compressed bytes of the chunk at position `inner` of a shard, at most `max`; `None` if it is missing.
    fn read_from_shard(
        &self,
        name: &str,
        shard: &Shard,
        inner: &[usize],
        max: u64,
    ) -> Result<Option<Vec<u8>>, BoxError> {
        let (array, cache) = (&self.slicing.array, self.cache_bytes.load(Ordering::Relaxed));
        let range = self.indices.find((&self.store, name), array, (shard, inner), cache)?;
        let Some((from, bytes)) = range else { return Ok(None) };
        let invalid = || "the index of the shard has an invalid offset or length".into();
        if from.checked_add(bytes).is_none() || bytes > max {
            return Err(invalid());
        }
        let part = ByteRange::At(from, bytes);
        let packed = self.store.get_into(name, part, max, self.spare())?.unwrap_or_default();
        if packed.len() as u64 == bytes { Ok(Some(packed)) } else { Err(invalid()) }
    }

    /// Decodes a chunk to samples of `dtype`, in the machine's byte order, beginning at the first sample of `position`
    /// along the axes other than x, y and z.
    pub fn decode_chunk(
        &self,
        at: [usize; 3],
        position: &[usize],
        packed: Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>> {
        let Array { stored, endian, .. } = &*self.slicing.array;
        let expected = self.slicing.array.chunk_bytes();
        let decode = |packed: Vec<u8>| -> Result<Vec<u8>, BoxError> {
            let mut spare = self.spare();
            let mut bytes =
                codec::decode(&self.slicing.array.codecs, packed, expected, &mut spare)?;
            // A chunk may contain several channels or times. The samples of one begin here; the strides skip the others.
            let first = self.slicing.first_in_chunk(position) * stored.size();
            bytes.drain(..first);
            if *stored == StoredType::As(self.dtype) {
                endian.to_native(&mut bytes, stored.size());
                lock(&self.spare).push(spare);
                return Ok(bytes);
            }
            memory::resize(&mut spare, bytes.len() / stored.size() * self.dtype.size())?;
            convert::read(&mut &bytes[..], (*stored, *endian), None, self.dtype, &mut spare)?;
            lock(&self.spare).push(bytes);
            Ok(spare)
        };
        packed.map(decode).transpose().map_err(|error| match error.downcast::<io::Error>() {
            // As text: an error of decoding must not be taken for one of reading the file.
            Ok(error) => self.broken(&self.slicing.file(at, position).0, error.to_string().into()),
            Err(error) => self.broken(&self.slicing.file(at, position).0, error),
        })
    }
}

/// Maximum number of bytes of a compressed chunk: codecs may make data longer.
fn max_packed_bytes(expected: usize) -> u64 {
    expected as u64 * 2 + (1 << 16)
}
