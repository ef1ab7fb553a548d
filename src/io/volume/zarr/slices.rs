//! Reads the samples of a Zarr array slice by slice: chunks are read and decoded on all threads, then their rows are
//! copied into the slices.
//!
//! A layer is all chunks of a volume at the same z, as deep as a chunk. If the caller reads fewer slices at a time, the
//! last layer stays decoded in memory, within the limit, so that no chunk is decoded several times.

use std::{
    ops::Range,
    sync::{Arc, atomic::Ordering},
};

use super::{
    chunks::Chunks,
    fetch::fetch_all,
    reader::{CachedLayer, SCRATCH, ZarrSlices, lock},
};
use crate::{
    data::samples::Samples,
    io::{
        Limits,
        volume::slices::stack::{ReadChunks, Slices},
    },
    util::{error::Result, memory, parallel::Parallel},
};

/// Maximum number of bytes of chunks that are still in the CPU's cache when they are copied.
const IN_CACHE: u64 = 8 << 20;

impl ZarrSlices {
    /// The next slice that may be stored, if the slices from `slice` up to it are not.
    fn next_stored(&self, volume: usize, slice: usize) -> Option<usize> {
        let high = self.slicing.file_size()[2];
        let next = self.existing()?.next_layer(
            &self.slicing,
            &self.slicing.position(volume),
            slice / high,
        );
        let end = next.map_or(self.slicing.dims()[2], |layer| layer * high);
        (end > slice).then_some(end)
    }

    fn slice_bytes(&self) -> usize {
        let [width, height, _] = self.slicing.dims();
        width * height * self.dtype.size()
    }

    fn layer_bytes(&self) -> u64 {
        let depth = self.slicing.chunk()[2].min(self.slicing.dims()[2]);
        (self.slice_bytes() as u64).saturating_mul(depth as u64)
    }

    /// Whether layers of which only a part is read stay in memory.
    fn caches_layers(&self) -> bool {
        self.slicing.chunk()[2] > 1
            && self.layer_bytes() <= self.cache_bytes.load(Ordering::Relaxed)
    }

    /// Reads slices of one volume: whole layers directly into `out`, parts of layers through the cached layer.
    fn read_volume(&self, volume: usize, slices: Range<usize>, out: &mut [u8]) -> Result<()> {
        let (slice, high) = (self.slice_bytes(), self.slicing.chunk()[2]);
        let depth = self.slicing.dims()[2];
        let mut next = slices.start;
        while next < slices.end {
            if let Some(end) = self.next_stored(volume, next) {
                let end = end.min(slices.end);
                let missing = &mut out[(next - slices.start) * slice..(end - slices.start) * slice];
                missing.chunks_mut(slice).par_each(|slice| self.write_fill(slice));
                next = end;
                continue;
            }
            let layer = next / high;
            let from = &mut out[(next - slices.start) * slice..];
            let is_whole = |layer: usize| {
                layer * high >= slices.start && ((layer + 1) * high).min(depth) <= slices.end
            };
            let layers = (layer..depth.div_ceil(high)).take_while(|&layer| is_whole(layer)).count();
            if layers > 0 || !self.caches_layers() {
                let end = ((layer + layers.max(1)) * high).min(slices.end);
                self.decode(volume, next..end, &mut from[..(end - next) * slice])?;
                next = end;
                continue;
            }
            let end = ((layer + 1) * high).min(slices.end);
            let mut cached = lock(&self.cached);
            let has_layer =
                |cached: &CachedLayer| cached.volume == volume && cached.number == layer;
            let samples = match cached.take().filter(has_layer) {
                Some(cached) => cached.samples,
                None => {
                    let whole = layer * high..((layer + 1) * high).min(depth);
                    let mut samples = memory::zeros(whole.len() * slice)?;
                    self.decode(volume, whole, &mut samples)?;
                    samples
                }
            };
            let part = (next - layer * high) * slice..(end - layer * high) * slice;
            from[..part.len()].copy_from_slice(&samples[part]);
            *cached = Some(CachedLayer { volume, number: layer, samples });
            next = end;
        }
        Ok(())
    }

    /// Decodes the chunks that contain `slices`, group by group, and copies these slices.
    fn decode(&self, volume: usize, slices: Range<usize>, out: &mut [u8]) -> Result<()> {
        let (dims, chunk) = (self.slicing.dims(), self.slicing.chunk());
        let (position, existing) =
            (self.slicing.position(volume), self.existing().map(|existing| &**existing));
        let counts = [0, 1, 2].map(|axis| dims[axis].div_ceil(chunk[axis]));
        let layers = slices.start / chunk[2]..slices.end.div_ceil(chunk[2]);
        // Each chunk has 256 bytes of bookkeeping.
        let bytes = self.slicing.array.chunk_bytes() as u64 + 256;
        let threads = rayon::current_num_threads() as u64;
        let limit =
            if self.store.is_remote() { SCRATCH } else { IN_CACHE.max(4 * threads * bytes) };
        let per_group = (limit.min(SCRATCH) / bytes).max(threads).max(1) as usize;
        let per_layer = counts[0] * counts[1];
        let all = layers.start * per_layer..layers.end * per_layer;
        let slice = self.slice_bytes();
        for start in all.clone().step_by(per_group) {
            let group = start..(start + per_group).min(all.end);
            let at = |number: usize| {
                [number % counts[0], number / counts[0] % counts[1], number / per_layer]
            };
            let decoded = match self.store.is_remote() {
                false => group.par_map(|number| -> Result<_> {
                    let at = at(number);
                    let packed = self.read_chunk(at, &position, existing)?;
                    Ok((at, self.decode_chunk(at, &position, packed)?))
                }),
                true => {
                    let packed = fetch_all(group.clone(), |number| {
                        self.read_chunk(at(number), &position, None)
                    })?;
                    group.zip(packed).par_map(|(number, packed)| -> Result<_> {
                        let at = at(number);
                        Ok((at, self.decode_chunk(at, &position, packed)?))
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

    /// Copies slice `z` of the chunk at `at` in the grid into a slice of the volume. `samples`: `None` if the chunk is
    /// missing, for fill values.
    fn copy(&self, at: [usize; 3], z: usize, samples: Option<&[u8]>, out: &mut [u8]) {
        let (dims, chunk, size) = (self.slicing.dims(), self.slicing.chunk(), self.dtype.size());
        let [x0, y0] = [at[0] * chunk[0], at[1] * chunk[1]];
        let width = chunk[0].min(dims[0] - x0);
        for y in 0..chunk[1].min(dims[1] - y0) {
            let row = &mut out[((y0 + y) * dims[0] + x0) * size..][..width * size];
            match samples {
                Some(samples) => self.copy_row(samples, [y, z], row),
                None => self.write_fill(row),
            }
        }
    }
}

impl Slices for ZarrSlices {
    fn read(&self, z: usize, samples: &mut [u8]) -> Result<()> {
        self.read_range(z, samples.len(), samples)
    }

    fn read_range(&self, first: usize, bytes: usize, samples: &mut [u8]) -> Result<()> {
        let depth = self.slicing.dims()[2];
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
        let layer = if self.caches_layers() { self.layer_bytes() } else { 0 };
        let chunk = self.slicing.array.chunk_bytes() as u64;
        let volume = self.slice_bytes() as u64 * self.slicing.dims()[2] as u64;
        let group = SCRATCH.max(threads * chunk).min(volume.max(chunk));
        // All compressed chunks of a group of a remote store are in memory before they are decoded.
        let compressed = if self.store.is_remote() { group } else { 0 };
        // Each thread has a compressed chunk in addition to the decoded ones.
        layer + group + compressed + threads * chunk
    }

    fn is_sequential(&self) -> bool {
        true
    }

    fn allow(&self, limits: Limits) -> Result<()> {
        self.cache_bytes.store(limits.bytes() / 4, Ordering::Relaxed);
        // A thread that parses an index also has the bytes of the file, about as many, in memory.
        let threads = rayon::current_num_threads() as u64;
        let index = (self.slicing.array.index_bytes() as u64).saturating_mul(2 * threads);
        for (name, bytes) in
            [("a chunk", self.slicing.array.chunk_bytes() as u64), ("the index of a shard", index)]
        {
            if bytes > limits.bytes() {
                return Err(limits.exceeded(name, bytes));
            }
        }
        Ok(())
    }

    fn layer(&self) -> usize {
        self.slicing.chunk()[2]
    }

    fn fill(&self) -> Option<Samples> {
        let mut fill = Samples::zeros(self.dtype, 1).ok()?;
        fill.as_bytes_mut().copy_from_slice(&self.fill);
        Some(fill)
    }

    fn missing(&self, volume: usize, slice: usize) -> Option<(usize, Samples)> {
        Some((self.next_stored(volume, slice)?, self.fill()?))
    }

    fn stored_chunks(
        self: Arc<Self>,
        volume: usize,
        slices: Range<usize>,
        bytes: u64,
    ) -> Option<ReadChunks> {
        let existing = self.existing()?.clone();
        // Each chunk is in memory twice when decoded, and once compressed.
        let batch = bytes / (4 * self.slicing.array.chunk_bytes() as u64 + 256);
        (batch > 0).then(|| {
            let mut chunks = Chunks::new(self, volume, slices, existing, batch as usize);
            Box::new(move || chunks.read()) as _
        })
    }
}
