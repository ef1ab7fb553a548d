//! Reads the samples of a Zarr array slice by slice: chunks are read and decoded on all threads, then their rows are
//! copied into the slices.
//!
//! A layer is all chunks of a volume at the same z, as deep as a chunk. A caller that reads fewer slices at a time
//! would decode each chunk several times; so the last layer of which it took only a part is kept decoded, if the memory
//! limit allows.

use std::{
    collections::HashMap,
    io,
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    array::Array,
    codec,
    present::{Chunks, Present},
    requests::waiting,
    shard::Index,
    store::{Part, Store},
};
use crate::{
    data::{dtype::Dtype, samples::Samples},
    io::{
        Limits,
        volume::{
            convert,
            data::is_content,
            format::{BoxError, Endian, Stored},
            parts::StoredChunks,
            slices::Slices,
        },
    },
    util::{
        error::{Error, Result},
        memory,
        parallel::Parallel,
    },
};

/// Most bytes of chunks that are decoded at a time.
const SCRATCH: u64 = 64 << 20;
/// Bytes of chunks that are still in the CPU's cache when they are copied.
const IN_CACHE: u64 = 8 << 20;

/// An array as volumes of slices: its x, y and z axes, and positions along its other axes.
#[derive(Debug)]
pub struct View {
    pub array: Array,
    pub(super) store: Store,
    /// Which axes of the array are x, y and z.
    pub axes: [Option<usize>; 3],
    /// The axes that count volumes, the slowest first.
    pub others: Vec<usize>,
    /// The index along each axis: the user's choice of channel and time, 0 along all others.
    pub at: Vec<usize>,
    /// The type of samples once read.
    pub dtype: Dtype,
    /// The value of missing chunks as one sample of `dtype`, in the machine's byte order.
    fill: Vec<u8>,
    /// The layer that is kept.
    held: Mutex<Option<Layer>>,
    /// Most bytes of that layer, and of `indices`.
    pub(super) most: AtomicU64,
    /// Indices of the shards read last, by the names of their files.
    pub(super) indices: Mutex<HashMap<String, Arc<Index>>>,
    /// The files that exist; `None` if that is not known.
    present: OnceLock<Option<Arc<Present>>>,
    /// Memory of chunks that are copied, for the next chunks: fresh memory would be cleared by the system first.
    spare: Mutex<Vec<Vec<u8>>>,
}

/// The slices of a layer of chunks, number `number` along z of a volume.
#[derive(Debug)]
struct Layer {
    volume: usize,
    number: usize,
    samples: Vec<u8>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl View {
    pub fn new(
        array: Array,
        store: Store,
        axes: [Option<usize>; 3],
        others: Vec<usize>,
        at: Vec<usize>,
        dtype: Dtype,
    ) -> Self {
        let mut fill = array.fill.clone();
        if array.stored != Stored::As(dtype) {
            let stored = (array.stored, Endian::Little);
            let number = std::mem::replace(&mut fill, vec![0; dtype.size()]);
            convert::read(&mut &number[..], stored, None, dtype, &mut fill).expect("a number");
        } else if cfg!(target_endian = "big") {
            fill.reverse();
        }
        let (held, indices, present, spare) = Default::default();
        let most = AtomicU64::new(SCRATCH);
        Self { array, store, axes, others, at, dtype, fill, held, most, indices, present, spare }
    }

    /// Samples along x, y and z.
    pub fn dims(&self) -> [usize; 3] {
        self.axes.map(|axis| axis.map_or(1, |axis| self.array.shape[axis]))
    }

    /// Samples of a chunk along x, y and z.
    pub fn chunk(&self) -> [usize; 3] {
        self.axes.map(|axis| axis.map_or(1, |axis| self.array.chunk[axis]))
    }

    /// Samples of a file along x, y and z.
    pub(super) fn file_size(&self) -> [usize; 3] {
        self.axes.map(|axis| axis.map_or(1, |axis| self.array.file[axis]))
    }

    /// The files that exist; `None` if that is not known.
    fn present(&self) -> Option<&Arc<Present>> {
        self.present.get_or_init(|| Present::list(self).map(Arc::new)).as_ref()
    }

    /// The next slice of which something may be stored, if nothing is stored of the slices from `slice` up to it.
    fn next_stored(&self, volume: usize, slice: usize) -> Option<usize> {
        let high = self.file_size()[2];
        let next = self.present()?.next_layer(self, &self.place(volume), slice / high);
        let end = next.map_or(self.dims()[2], |layer| layer * high);
        (end > slice).then_some(end)
    }

    fn slice_bytes(&self) -> usize {
        let [width, height, _] = self.dims();
        width * height * self.dtype.size()
    }

    /// Bytes of a layer.
    fn layer_bytes(&self) -> u64 {
        let depth = self.chunk()[2].min(self.dims()[2]);
        (self.slice_bytes() as u64).saturating_mul(depth as u64)
    }

    /// Whether layers of which only a part is asked for are kept.
    fn holds_layers(&self) -> bool {
        self.chunk()[2] > 1 && self.layer_bytes() <= self.most.load(Ordering::Relaxed)
    }

    /// The index of a volume along each axis; 0 along x, y and z.
    pub(super) fn place(&self, volume: usize) -> Vec<usize> {
        let (mut place, mut rest) = (self.at.clone(), volume);
        for &axis in self.others.iter().rev() {
            place[axis] = rest % self.array.shape[axis];
            rest /= self.array.shape[axis];
        }
        place
    }

    /// Reads slices of one volume: whole layers straight into `out`, parts of layers by way of the layer that is kept.
    fn read_volume(&self, volume: usize, slices: Range<usize>, out: &mut [u8]) -> Result<()> {
        let (slice, high) = (self.slice_bytes(), self.chunk()[2]);
        let depth = self.dims()[2];
        let mut next = slices.start;
        while next < slices.end {
            if let Some(end) = self.next_stored(volume, next) {
                let end = end.min(slices.end);
                let missing = &mut out[(next - slices.start) * slice..(end - slices.start) * slice];
                missing.chunks_mut(slice).par_each(|slice| self.put_fill(slice));
                next = end;
                continue;
            }
            let layer = next / high;
            let from = &mut out[(next - slices.start) * slice..];
            let is_whole = |layer: usize| {
                layer * high >= slices.start && ((layer + 1) * high).min(depth) <= slices.end
            };
            let layers = (layer..depth.div_ceil(high)).take_while(|&layer| is_whole(layer)).count();
            if layers > 0 || !self.holds_layers() {
                let end = ((layer + layers.max(1)) * high).min(slices.end);
                self.decode(volume, next..end, &mut from[..(end - next) * slice])?;
                next = end;
                continue;
            }
            let end = ((layer + 1) * high).min(slices.end);
            let mut held = lock(&self.held);
            let is_there = |held: &Layer| held.volume == volume && held.number == layer;
            let samples = match held.take().filter(is_there) {
                Some(held) => held.samples,
                None => {
                    let whole = layer * high..((layer + 1) * high).min(depth);
                    let mut samples = memory::zeros(whole.len() * slice)?;
                    self.decode(volume, whole, &mut samples)?;
                    samples
                }
            };
            let part = (next - layer * high) * slice..(end - layer * high) * slice;
            from[..part.len()].copy_from_slice(&samples[part]);
            *held = Some(Layer { volume, number: layer, samples });
            next = end;
        }
        Ok(())
    }

    /// Decodes the chunks that contain `slices`, group by group, and copies these slices of them.
    fn decode(&self, volume: usize, slices: Range<usize>, out: &mut [u8]) -> Result<()> {
        let (dims, chunk) = (self.dims(), self.chunk());
        let (place, present) = (self.place(volume), self.present().map(|present| &**present));
        let counts = [0, 1, 2].map(|axis| dims[axis].div_ceil(chunk[axis]));
        let layers = slices.start / chunk[2]..slices.end.div_ceil(chunk[2]);
        // 256 bytes of bookkeeping for each chunk.
        let bytes = self.array.chunk_bytes() as u64 + 256;
        let threads = rayon::current_num_threads() as u64;
        let few = if self.store.is_far() { SCRATCH } else { IN_CACHE.max(4 * threads * bytes) };
        let a_group = (few.min(SCRATCH) / bytes).max(threads).max(1) as usize;
        let a_layer = counts[0] * counts[1];
        let all = layers.start * a_layer..layers.end * a_layer;
        let slice = self.slice_bytes();
        for start in all.clone().step_by(a_group) {
            let group = start..(start + a_group).min(all.end);
            let at = |number: usize| {
                [number % counts[0], number / counts[0] % counts[1], number / a_layer]
            };
            let decoded = match self.store.is_far() {
                false => group.par_map(|number| -> Result<_> {
                    let at = at(number);
                    Ok((at, self.decoded(at, &place, self.packed(at, &place, present)?)?))
                }),
                true => {
                    let packed =
                        waiting(group.clone(), |number| self.packed(at(number), &place, None))?;
                    group.zip(packed).par_map(|(number, packed)| -> Result<_> {
                        let at = at(number);
                        Ok((at, self.decoded(at, &place, packed?)?))
                    })
                }
            };
            let decoded = decoded.into_iter().collect::<Result<Vec<_>>>()?;
            out.chunks_mut(slice).enumerate().par_each(|(i, out)| {
                let z = slices.start + i;
                for (at, samples) in &decoded {
                    if at[2] == z / chunk[2] {
                        self.copy(*at, z % chunk[2], samples.as_deref(), out);
                    }
                }
            });
            self.keep_spare(decoded.into_iter().filter_map(|(_, samples)| samples));
        }
        Ok(())
    }

    /// Copies slice `z` of the chunk at `at` in the grid into a slice of the volume; fill values where `samples` is
    /// `None`, the chunk missing.
    fn copy(&self, at: [usize; 3], z: usize, samples: Option<&[u8]>, out: &mut [u8]) {
        let (dims, chunk, size) = (self.dims(), self.chunk(), self.dtype.size());
        let [x0, y0] = [at[0] * chunk[0], at[1] * chunk[1]];
        let width = chunk[0].min(dims[0] - x0);
        for y in 0..chunk[1].min(dims[1] - y0) {
            let row = &mut out[((y0 + y) * dims[0] + x0) * size..][..width * size];
            match samples {
                Some(samples) => self.copy_row(samples, [y, z], row),
                None => self.put_fill(row),
            }
        }
    }

    /// Fills `out` with the value of missing samples.
    fn put_fill(&self, out: &mut [u8]) {
        match self.fill[..] {
            [fill] => out.fill(fill),
            _ => {
                let samples = out.chunks_exact_mut(self.fill.len());
                samples.for_each(|sample| sample.copy_from_slice(&self.fill));
            }
        }
    }

    /// Copies the first samples of row `y` in slice `z` of a chunk.
    pub(super) fn copy_row(&self, chunk: &[u8], [y, z]: [usize; 2], row: &mut [u8]) {
        let (strides, size) = (self.strides(), self.dtype.size());
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
    pub(super) fn keep_spare(&self, chunks: impl Iterator<Item = Vec<u8>>) {
        lock(&self.spare).extend(chunks);
    }

    /// Strides along x, y and z within a chunk, in samples.
    fn strides(&self) -> [usize; 3] {
        let Array { chunk, order, .. } = &self.array;
        self.axes.map(|axis| {
            let behind = order.iter().rev().take_while(|&&other| Some(other) != axis);
            behind.map(|&other| chunk[other]).product()
        })
    }

    /// The position in the grid of chunks, for each axis of the array, of the chunk at `at` along x, y, z of the volume
    /// at `place`.
    fn grid(&self, at: [usize; 3], place: &[usize]) -> Vec<usize> {
        let mut grid: Vec<usize> =
            place.iter().zip(&self.array.chunk).map(|(at, len)| at / len).collect();
        for (axis, at) in self.axes.iter().zip(at) {
            if let Some(axis) = axis {
                grid[*axis] = at;
            }
        }
        grid
    }

    /// The name of the file that holds a chunk, and the position of the chunk in the grid within that file.
    pub(super) fn file(&self, at: [usize; 3], place: &[usize]) -> (String, Vec<usize>) {
        let (grid, per_file) = (self.grid(at, place), self.array.chunks_a_file());
        let file: Vec<usize> = grid.iter().zip(&per_file).map(|(at, count)| at / count).collect();
        let inner = grid.iter().zip(&per_file).map(|(at, count)| at % count).collect();
        (self.array.key(&file), inner)
    }

    /// Adds the name of a chunk's file to an error of reading it.
    fn broken(&self, name: &str, error: BoxError) -> Error {
        let name = self.store.shown(name);
        match error.downcast::<io::Error>() {
            Ok(error) if !is_content(&error) => Error::io("read", name, *error),
            Ok(error) => {
                Error::bad_input(format_args!("the chunk {name} is broken")).caused_by(error)
            }
            Err(error) => {
                Error::bad_input(format_args!("the chunk {name} is broken")).caused_by(error)
            }
        }
    }

    /// A vector with memory to reuse, or an empty one. Its content is arbitrary.
    pub(super) fn spare(&self) -> Vec<u8> {
        lock(&self.spare).pop().unwrap_or_default()
    }

    /// The compressed bytes of a chunk; `None` if it is missing. Files that are not among those `present` are not
    /// looked for.
    pub(super) fn packed(
        &self,
        at: [usize; 3],
        place: &[usize],
        present: Option<&Present>,
    ) -> Result<Option<Vec<u8>>> {
        let (chunk, file) = (self.chunk(), self.file_size());
        let file = [0, 1, 2].map(|axis| at[axis] / (file[axis] / chunk[axis]));
        if present.is_some_and(|present| !present.has(self, place, file)) {
            return Ok(None);
        }
        let (name, inner) = self.file(at, place);
        let most = most_packed(self.array.chunk_bytes());
        let packed = match &self.array.shard {
            None => self.store.get_into(&name, Part::Whole, most, self.spare()),
            Some(shard) => self.part_of_shard(&name, shard, &inner, most),
        };
        packed.map_err(|error| self.broken(&name, error))
    }

    /// Decodes a chunk to samples of `dtype`, in the machine's byte order, beginning at the first sample of `place`
    /// along the axes other than x, y and z.
    pub(super) fn decoded(
        &self,
        at: [usize; 3],
        place: &[usize],
        packed: Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>> {
        let Array { stored, endian, .. } = &self.array;
        let expected = self.array.chunk_bytes();
        let decode = |packed: Vec<u8>| -> Result<Vec<u8>, BoxError> {
            let mut spare = self.spare();
            let mut bytes = codec::decode(&self.array.codecs, packed, expected, &mut spare)?;
            // A chunk may hold several channels or times. The samples of one begin here; the strides skip the others.
            let first = self.first_in_chunk(place) * stored.size();
            bytes.drain(..first);
            if *stored == Stored::As(self.dtype) {
                if (*endian == Endian::Big) != cfg!(target_endian = "big") {
                    match stored.size() {
                        1 => {}
                        2 => bytes.as_chunks_mut::<2>().0.iter_mut().for_each(|v| v.reverse()),
                        size => bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse),
                    }
                }
                lock(&self.spare).push(spare);
                return Ok(bytes);
            }
            memory::resize(&mut spare, bytes.len() / stored.size() * self.dtype.size())?;
            convert::read(&mut &bytes[..], (*stored, *endian), None, self.dtype, &mut spare)?;
            lock(&self.spare).push(bytes);
            Ok(spare)
        };
        packed.map(decode).transpose().map_err(|error| match error.downcast::<io::Error>() {
            // As text: an error of decoding is none of reading the file.
            Ok(error) => self.broken(&self.file(at, place).0, error.to_string().into()),
            Err(error) => self.broken(&self.file(at, place).0, error),
        })
    }

    /// The offset in samples, within its chunk, of the first sample of `place` along the axes other than x, y and z.
    fn first_in_chunk(&self, place: &[usize]) -> usize {
        let Array { chunk, order, .. } = &self.array;
        let (mut stride, mut first) = (1, 0);
        for &axis in order.iter().rev() {
            if !self.axes.contains(&Some(axis)) {
                first += place[axis] % chunk[axis] * stride;
            }
            stride *= chunk[axis];
        }
        first
    }
}

/// Most bytes of a compressed chunk: codecs may make data longer.
fn most_packed(expected: usize) -> u64 {
    expected as u64 * 2 + (1 << 16)
}

impl Slices for View {
    fn read(&self, z: usize, samples: &mut [u8]) -> Result<()> {
        self.read_range(z, samples.len(), samples)
    }

    fn read_range(&self, first: usize, bytes: usize, samples: &mut [u8]) -> Result<()> {
        let depth = self.dims()[2];
        let (mut z, mut left) = (first, samples);
        while !left.is_empty() {
            let (volume, at) = (z / depth, z % depth);
            let count = (left.len() / bytes).min(depth - at);
            let (now, rest) = left.split_at_mut(count * bytes);
            self.read_volume(volume, at..at + count, now)?;
            (z, left) = (z + count, rest);
        }
        Ok(())
    }

    fn scratch(&self) -> u64 {
        let threads = rayon::current_num_threads() as u64;
        let layer = if self.holds_layers() { self.layer_bytes() } else { 0 };
        let chunk = self.array.chunk_bytes() as u64;
        let volume = self.slice_bytes() as u64 * self.dims()[2] as u64;
        let group = SCRATCH.max(threads * chunk).min(volume.max(chunk));
        // Of a remote store, the compressed chunks of a group are all held before they are decoded.
        let waiting = if self.store.is_far() { group } else { 0 };
        // Each thread holds a compressed chunk beside the decoded ones.
        layer + group + waiting + threads * chunk
    }

    fn one_by_one(&self) -> bool {
        true
    }

    fn allow(&self, limits: Limits) -> Result<()> {
        self.most.store(limits.bytes / 4, Ordering::Relaxed);
        // Each thread may parse an index while it holds the bytes of the file, about as many again.
        let threads = rayon::current_num_threads() as u64;
        let index = (self.array.index_bytes() as u64).saturating_mul(2 * threads);
        for (what, bytes) in
            [("a chunk", self.array.chunk_bytes() as u64), ("the index of a shard", index)]
        {
            if bytes > limits.bytes {
                return Err(Error::bad_input(format_args!(
                    "{what} takes {bytes} bytes, more than the {} allowed",
                    limits.bytes
                ))
                .with_hint(crate::util::error::Hint::Memory));
            }
        }
        Ok(())
    }

    fn layer(&self) -> usize {
        self.chunk()[2]
    }

    fn fill(&self) -> Option<Samples> {
        let mut fill = Samples::zeros(self.dtype, 1).ok()?;
        fill.as_bytes_mut().copy_from_slice(&self.fill);
        Some(fill)
    }

    fn missing(&self, volume: usize, slice: usize) -> Option<(usize, Samples)> {
        Some((self.next_stored(volume, slice)?, self.fill()?))
    }

    fn stored(
        self: Arc<Self>,
        volume: usize,
        slices: Range<usize>,
        bytes: u64,
    ) -> Option<Box<dyn StoredChunks>> {
        let present = self.present()?.clone();
        // Each chunk is in memory twice when decoded, and once compressed.
        let at_once = bytes / (4 * self.array.chunk_bytes() as u64 + 256);
        (at_once > 0)
            .then(|| Box::new(Chunks::new(self, volume, slices, present, at_once as usize)) as _)
    }
}
