//! Writes pyramids as OME-NGFF: a folder with metadata, and an array of chunks for each level.
//!
//! Slices arrive in order. When a layer (all chunks at the same z) is full, its chunks are written. Every slice, or pair of
//! slices, is immediately reduced to one slice of the next level, so that no level is read again, and one layer of each
//! level is in memory.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use super::{blosc, pyramid::Pyramid};
use crate::{
    data::{
        pyramid::{halved, is_zero},
        samples::Samples,
    },
    io::unfinished::temporary_name,
    util::{
        error::{Error, Result},
        memory,
        parallel::Parallel,
    },
};

/// Writes a file that other processes may write at the same time: first under a temporary name in `folder`, then renamed,
/// so that it appears complete.
fn write_atomically(path: &Path, bytes: &[u8], folder: &Path) -> io::Result<()> {
    let temporary = folder.join(temporary_name());
    let written = File::create_new(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_data()
    });
    let renamed = written.and_then(|()| fs::rename(&temporary, path));
    renamed.inspect_err(|_| drop(fs::remove_file(&temporary)))
}

/// Makes the folders of the file `name` below `root`, but not `root` itself: if that is missing, another process has
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
    folder: PathBuf,
    volume: usize,
    /// Whether other processes write into the same store.
    is_shared: bool,
    /// The level of the slices that are pushed.
    first: usize,
    /// That level and the coarser ones.
    levels: Vec<PendingSlices>,
    /// Whether the store already contains the slices that are pushed.
    has_first: bool,
    buffers: BufferPool,
}

/// Memory that a thread uses to compress a chunk.
#[derive(Debug, Default)]
struct Buffers {
    samples: Vec<u8>,
    encoder: blosc::Encoder,
}

/// Buffers that no thread is using.
#[derive(Debug, Default)]
struct BufferPool(Mutex<Vec<Buffers>>);

impl BufferPool {
    /// Calls `make` with buffers that no other thread uses.
    fn with_buffers<T>(&self, make: impl FnOnce(&mut Buffers) -> T) -> T {
        let free = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = free().pop();
        let mut buffers = found.unwrap_or_default();
        let made = make(&mut buffers);
        free().push(buffers);
        made
    }
}

/// Slices of a level that have not been written or reduced.
#[derive(Debug)]
struct PendingSlices {
    /// The number of the first slice that has not been written.
    start: usize,
    /// Slices of a layer that is not full.
    bytes: Vec<u8>,
    /// The last slice, until its neighbour arrives with which it is reduced.
    single: Vec<u8>,
}

impl<'a> PyramidWriter<'a> {
    /// Writes the levels `range` of a volume, from slice `start` of the level `range.start` on. `is_shared`: other
    /// processes write into the same store.
    pub fn new(
        pyramid: &'a Pyramid,
        folder: PathBuf,
        volume: usize,
        (range, start): (std::ops::Range<usize>, usize),
        is_shared: bool,
    ) -> Self {
        let from = pyramid.levels[range.start].factors[2];
        let level = |number: usize| PendingSlices {
            start: start * from / pyramid.levels[number].factors[2],
            bytes: Vec::new(),
            single: Vec::new(),
        };
        let levels = range.clone().map(level).collect();
        let (has_first, buffers) = (false, BufferPool::default());
        Self { pyramid, folder, volume, is_shared, first: range.start, levels, has_first, buffers }
    }

    /// Writes only the levels that are coarser than the slices that are pushed, which the store already contains.
    pub fn skip_first_level(&mut self) {
        self.has_first = true;
    }

    /// Takes the next slices.
    pub fn push(&mut self, slices: &Samples) -> Result<()> {
        self.push_to(0, slices, false)
    }

    /// Writes all pending slices: the volume ends, or another process continues from here.
    pub fn finish(mut self) -> Result<()> {
        let none = Samples::zeros(self.pyramid.dtype, 0)?;
        self.push_to(0, &none, true)
    }

    /// Takes the next slices of the level number `at` of this writer: writes those that fill layers, and passes reduced
    /// slices to the next level. `is_end`: no more slices follow.
    fn push_to(&mut self, at: usize, slices: &Samples, is_end: bool) -> Result<()> {
        self.write_layers(at, slices.as_bytes(), is_end)?;
        if at + 1 == self.levels.len() {
            return Ok(());
        }
        let next = self.reduced(at, slices, is_end)?;
        if next.is_empty() && !is_end { Ok(()) } else { self.push_to(at + 1, &next, is_end) }
    }

    /// Bytes of a slice of the level number `at` of this writer.
    fn slice_bytes(&self, at: usize) -> usize {
        let [width, height, _] = self.pyramid.levels[self.first + at].dims;
        width * height * self.pyramid.dtype.size()
    }

    /// Writes the layers that the pending slices and the `new` ones fill. The other slices stay pending.
    fn write_layers(&mut self, at: usize, new: &[u8], is_end: bool) -> Result<()> {
        let layer = self.pyramid.layer(self.first + at) * self.slice_bytes(at);
        let mut pending = std::mem::take(&mut self.levels[at].bytes);
        // Whole layers among the new slices are written without a copy.
        let mut left = new;
        if !pending.is_empty() {
            let (fills, rest) = left.split_at(left.len().min(layer - pending.len()));
            pending.extend_from_slice(fills);
            left = rest;
        }
        if pending.len() == layer || (is_end && !pending.is_empty()) {
            self.write_layer(at, &pending)?;
            pending.clear();
        }
        if pending.is_empty() {
            let whole = if is_end { left.len() } else { left.len() / layer * layer };
            let (full, tail) = left.split_at(whole);
            for full in full.chunks(layer) {
                self.write_layer(at, full)?;
            }
            memory::reserve(&mut pending, layer)?;
            pending.extend_from_slice(tail);
        }
        self.levels[at].bytes = pending;
        Ok(())
    }

    /// Reduces the `single` pending slice and the new ones to slices of the next level. A slice without a neighbour stays
    /// pending.
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
        let &mut Self { pyramid, ref folder, volume, is_shared, .. } = self;
        let dims = pyramid.levels[number].dims;
        let size = pyramid.dtype.size();
        let slices = bytes.len() / (dims[0] * dims[1] * size);
        let chunk = pyramid.chunk_size(number);
        let z = self.levels[at].start / chunk[2];
        self.levels[at].start += slices;
        if at == 0 && self.has_first {
            return Ok(());
        }
        let layer = Layer { bytes, dims, slices, chunk, size };
        let per_file = pyramid.chunks_per_file(number);
        let counts = [0, 1].map(|axis| dims[axis].div_ceil(chunk[axis]).div_ceil(per_file[axis]));
        let put = |position: [usize; 3], content: &[u8]| -> Result<()> {
            let name = pyramid.chunk_path(number, volume, position);
            let path = folder.join(&name);
            let write = || match is_shared {
                true => write_atomically(&path, content, folder.parent().unwrap_or(folder)),
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
        let buffers = &self.buffers;
        (0..counts[0] * counts[1]).par_try_each(|i| -> Result<()> {
            let position = [i % counts[0], i / counts[0], z];
            // Chunks of zeros are not written: zero is the fill value.
            if pyramid.file_chunks == 1 {
                return buffers.with_buffers(|buffers| {
                    match layer.compress_chunk([position[0], position[1]], buffers)? {
                        Some(content) => put(position, content),
                        None => Ok(()),
                    }
                });
            }
            let first = [0, 1].map(|axis| position[axis] * per_file[axis]);
            let content = layer.make_shard(first, per_file, buffers)?;
            content.map_or(Ok(()), |content| put(position, &content))
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
    /// Compresses the chunk at `position` (x, y) in the grid; `None` if it is outside the level or all zero.
    fn compress_chunk<'b>(
        &self,
        position: [usize; 2],
        Buffers { samples, encoder }: &'b mut Buffers,
    ) -> Result<Option<&'b [u8]>> {
        let Self { bytes, dims, slices, chunk, size } = *self;
        let [x, y] = [position[0] * chunk[0], position[1] * chunk[1]];
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
        encoder.encode(samples, size).map(Some)
    }

    /// Makes a shard: `count` chunks from the one at `first` on, x fastest, then offset and length of each, then a checksum
    /// of these numbers. `None` if all chunks are missing.
    fn make_shard(
        &self,
        first: [usize; 2],
        count: [usize; 2],
        buffers: &BufferPool,
    ) -> Result<Option<Vec<u8>>> {
        let position = |i: usize| [first[0] + i % count[0], first[1] + i / count[0]];
        let chunks = (0..count[0] * count[1]).par_map(|i| {
            buffers.with_buffers(|buffers| {
                Ok(self.compress_chunk(position(i), buffers)?.map(<[u8]>::to_vec))
            })
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
