//! The samples of a Zarr array, slice by slice: the chunks that hold them are read and decoded on all threads, and their
//! rows copied to where they belong.
//!
//! Chunks are as high as several slices. A reader that takes fewer at a time would decode each chunk again and again, so
//! the last layer of chunks that it took a part of is held, unless that takes too much memory.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    ops::Range,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    array::{Array, Shard},
    codec,
};
use crate::{
    data::dtype::Dtype,
    error::{Error, Result},
    io::{
        Limits,
        volume::{
            convert,
            data::is_content,
            format::{BoxError, Endian, Stored},
            slices::Slices,
        },
    },
    memory,
    parallel::Parallel,
};

/// Bytes of chunks that are decoded at a time.
const SCRATCH: u64 = 64 << 20;

/// The x, y and z axes of an array, and where it is along the others.
#[derive(Debug)]
pub struct View {
    pub array: Array,
    /// The axes that are x, y and z.
    pub axes: [Option<usize>; 3],
    /// The axes that volumes differ in, from the slowest.
    pub others: Vec<usize>,
    /// A place along each axis, for those that are chosen.
    pub at: Vec<usize>,
    /// The type of samples once read.
    pub dtype: Dtype,
    /// The sample of chunks that are not there.
    fill: Vec<u8>,
    /// The layer that is held.
    held: Mutex<Option<Layer>>,
    /// Bytes that it may have.
    most: AtomicU64,
    /// The indices of shards that have been read last.
    indices: Mutex<HashMap<PathBuf, Arc<Index>>>,
}

/// All chunks of a volume with the same place along z, as slices.
#[derive(Debug)]
struct Layer {
    volume: usize,
    number: usize,
    samples: Vec<u8>,
}

/// Where the chunks of a shard begin and how long they are.
#[derive(Debug)]
struct Index(Vec<Option<(u64, u64)>>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl View {
    pub fn new(
        array: Array,
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
        let (held, most, indices) = (Mutex::default(), AtomicU64::new(SCRATCH), Mutex::default());
        Self { array, axes, others, at, dtype, fill, held, most, indices }
    }

    /// Samples along x, y and z.
    pub fn dims(&self) -> [usize; 3] {
        self.axes.map(|axis| axis.map_or(1, |axis| self.array.shape[axis]))
    }

    /// Those of a chunk.
    pub fn chunk(&self) -> [usize; 3] {
        self.axes.map(|axis| axis.map_or(1, |axis| self.array.chunk[axis]))
    }

    fn slice_bytes(&self) -> usize {
        let [width, height, _] = self.dims();
        width * height * self.dtype.size()
    }

    /// Bytes of a layer of chunks.
    fn layer_bytes(&self) -> u64 {
        let depth = self.chunk()[2].min(self.dims()[2]);
        (self.slice_bytes() as u64).saturating_mul(depth as u64)
    }

    fn holds_layers(&self) -> bool {
        self.chunk()[2] > 1 && self.layer_bytes() <= self.most.load(Ordering::Relaxed)
    }

    /// Where the volume is along each axis; 0 along x, y and z.
    fn place(&self, volume: usize) -> Vec<usize> {
        let (mut place, mut rest) = (self.at.clone(), volume);
        for &axis in self.others.iter().rev() {
            place[axis] = rest % self.array.shape[axis];
            rest /= self.array.shape[axis];
        }
        place
    }

    /// Slices of one volume.
    fn read_volume(&self, volume: usize, slices: Range<usize>, out: &mut [u8]) -> Result<()> {
        let (slice, high) = (self.slice_bytes(), self.chunk()[2]);
        let depth = self.dims()[2];
        let mut next = slices.start;
        while next < slices.end {
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

    /// Decodes the chunks that `slices` meet, and copies what of them is in these.
    fn decode(&self, volume: usize, slices: Range<usize>, out: &mut [u8]) -> Result<()> {
        let (dims, chunk) = (self.dims(), self.chunk());
        let place = self.place(volume);
        let counts = [0, 1, 2].map(|axis| dims[axis].div_ceil(chunk[axis]));
        let layers = slices.start / chunk[2]..slices.end.div_ceil(chunk[2]);
        // With what is known of each beside its samples.
        let bytes = self.array.chunk_bytes() as u64 + 256;
        let threads = rayon::current_num_threads() as u64;
        let a_group = (SCRATCH / bytes).max(threads).max(1) as usize;
        let a_layer = counts[0] * counts[1];
        let all = layers.start * a_layer..layers.end * a_layer;
        let slice = self.slice_bytes();
        for start in all.clone().step_by(a_group) {
            let group = start..(start + a_group).min(all.end);
            let decoded = group.par_map(|number| -> Result<_> {
                let at = [number % counts[0], number / counts[0] % counts[1], number / a_layer];
                Ok((at, self.chunk_at(at, &place)?))
            });
            let decoded = decoded.into_iter().collect::<Result<Vec<_>>>()?;
            out.chunks_mut(slice).enumerate().par_each(|(i, out)| {
                let z = slices.start + i;
                for (at, samples) in &decoded {
                    if at[2] == z / chunk[2] {
                        self.copy(*at, z % chunk[2], samples.as_deref(), out);
                    }
                }
            });
        }
        Ok(())
    }

    /// Copies slice `z` of a chunk to its place in a slice of the volume; of one that is not there, nothing but fill values
    /// are known.
    fn copy(&self, at: [usize; 3], z: usize, samples: Option<&[u8]>, out: &mut [u8]) {
        let (dims, chunk, size) = (self.dims(), self.chunk(), self.dtype.size());
        let strides = self.strides();
        let [x0, y0] = [at[0] * chunk[0], at[1] * chunk[1]];
        let width = chunk[0].min(dims[0] - x0);
        for y in 0..chunk[1].min(dims[1] - y0) {
            let row = &mut out[((y0 + y) * dims[0] + x0) * size..][..width * size];
            let Some(samples) = samples else {
                row.chunks_exact_mut(size).for_each(|sample| sample.copy_from_slice(&self.fill));
                continue;
            };
            let from = &samples[(z * strides[2] + y * strides[1]) * size..];
            match strides[0] {
                1 => row.copy_from_slice(&from[..width * size]),
                stride => {
                    for (x, sample) in row.chunks_exact_mut(size).enumerate() {
                        sample.copy_from_slice(&from[x * stride * size..][..size]);
                    }
                }
            }
        }
    }

    /// Samples from one to the next along x, y and z within a chunk.
    fn strides(&self) -> [usize; 3] {
        let Array { chunk, order, .. } = &self.array;
        self.axes.map(|axis| {
            let behind = order.iter().rev().take_while(|&&other| Some(other) != axis);
            behind.map(|&other| chunk[other]).product()
        })
    }

    /// The samples of a chunk, but for those before it along other axes; nothing where there are none.
    fn chunk_at(&self, at: [usize; 3], place: &[usize]) -> Result<Option<Vec<u8>>> {
        let Array { chunk, stored, endian, .. } = &self.array;
        let mut grid: Vec<usize> = place.iter().zip(chunk).map(|(at, len)| at / len).collect();
        for (axis, at) in self.axes.iter().zip(at) {
            if let Some(axis) = axis {
                grid[*axis] = at;
            }
        }
        let per_file = self.array.chunks_a_file();
        let file: Vec<usize> = grid.iter().zip(&per_file).map(|(at, count)| at / count).collect();
        let path = self.array.path(&file);
        let expected = self.array.chunk_bytes();
        let packed = match &self.array.shard {
            None => whole_file(&path, expected),
            Some(shard) => {
                let inner: Vec<usize> =
                    grid.iter().zip(&per_file).map(|(at, count)| at % count).collect();
                self.part_of_shard(&path, shard, &inner, expected)
            }
        };
        let decode = |packed: Vec<u8>| -> Result<Vec<u8>, BoxError> {
            let mut bytes = codec::decode(&self.array.codecs, packed, expected)?;
            // Samples of one place along the other axes begin here and lie among those of their neighbours.
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
                return Ok(bytes);
            }
            let mut values = memory::zeros(bytes.len() / stored.size() * self.dtype.size())?;
            convert::read(&mut &bytes[..], (*stored, *endian), None, self.dtype, &mut values)?;
            Ok(values)
        };
        let name = path.display();
        let broken = |error: BoxError| {
            Error::bad_input(format_args!("the chunk {name} is broken")).caused_by(error)
        };
        let packed = packed.map_err(|error| match error.downcast::<io::Error>() {
            Ok(error) if !is_content(&error) => Error::io("read", &path, *error),
            Ok(error) => broken(error),
            Err(error) => broken(error),
        })?;
        packed.map(decode).transpose().map_err(broken)
    }

    /// The number of the first sample, within a chunk, of a place along the axes that are not x, y and z.
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

    /// The bytes of a chunk in a shard.
    fn part_of_shard(
        &self,
        path: &PathBuf,
        shard: &Shard,
        inner: &[usize],
        expected: usize,
    ) -> Result<Option<Vec<u8>>, BoxError> {
        let Some((mut file, len)) = open(path)? else { return Ok(None) };
        let counts = self.array.chunks_a_file();
        let index = lock(&self.indices).get(path).cloned();
        let index = match index {
            Some(index) => index,
            None => {
                let index = Arc::new(Index::read(&mut file, len, shard, counts.iter().product())?);
                let mut indices = lock(&self.indices);
                // Shards are read layer by layer: those of the layer before are no longer needed.
                let bytes = (indices.len() + 1) as u64 * self.array.index_bytes() as u64;
                if bytes > self.most.load(Ordering::Relaxed) {
                    indices.clear();
                }
                indices.insert(path.clone(), index.clone());
                index
            }
        };
        let number = shard.order.iter().fold(0, |n, &axis| n * counts[axis] + inner[axis]);
        let Some((from, bytes)) = index.0[number] else { return Ok(None) };
        if from.checked_add(bytes).is_none_or(|end| end > len) || bytes > most_packed(expected) {
            return Err("the index of the shard names bytes that are not there".into());
        }
        let mut packed = memory::zeros(bytes as usize)?;
        file.seek(SeekFrom::Start(from))?;
        file.read_exact(&mut packed)?;
        Ok(Some(packed))
    }
}

/// What a chunk may take when its codecs make it longer.
fn most_packed(expected: usize) -> u64 {
    expected as u64 * 2 + (1 << 16)
}

/// Opens a file that may be missing; what is no regular file is refused.
fn open(path: &PathBuf) -> Result<Option<(File, u64)>, BoxError> {
    let found = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    if !found.is_file() {
        return Err("it is no file".into());
    }
    Ok(Some((File::open(path)?, found.len())))
}

fn whole_file(path: &PathBuf, expected: usize) -> Result<Option<Vec<u8>>, BoxError> {
    let Some((file, len)) = open(path)? else { return Ok(None) };
    if len > most_packed(expected) {
        return Err(format!("its file has {len} bytes, which its shape does not take").into());
    }
    let mut bytes = memory::room(len as usize)?;
    file.take(len).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

impl Index {
    fn read(file: &mut File, len: u64, shard: &Shard, count: usize) -> Result<Self, BoxError> {
        // Its codecs are those of checksums: the length of what is packed must be known.
        let sums = shard.codecs.iter().filter(|&&codec| codec == codec::Codec::Crc32c).count();
        if sums != shard.codecs.len() {
            return Err("the index of the shard is packed, which is not read".into());
        }
        let bytes = 16 * count + 4 * sums;
        let from = len.checked_sub(bytes as u64).ok_or("the shard is shorter than its index")?;
        let mut packed = memory::zeros(bytes)?;
        file.seek(SeekFrom::Start(if shard.is_at_end { from } else { 0 }))?;
        file.read_exact(&mut packed)?;
        let index = codec::decode(&shard.codecs, packed, 16 * count)
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
        // Beside what is decoded, each thread has a chunk as it is packed.
        layer + SCRATCH.max(threads * chunk).min(volume.max(chunk)) + threads * chunk
    }

    fn one_by_one(&self) -> bool {
        true
    }

    fn allow(&self, limits: Limits) -> Result<()> {
        self.most.store(limits.bytes / 4, Ordering::Relaxed);
        // Each thread may read an index, which is as long again in the file.
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
                .with_hint(crate::error::Hint::Memory));
            }
        }
        Ok(())
    }

    fn layer(&self) -> usize {
        self.chunk()[2]
    }
}
