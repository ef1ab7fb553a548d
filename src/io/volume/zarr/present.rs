//! Lists the files of an array that exist. All samples of the others have the fill value: they are counted, not read.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    ops::Range,
    sync::Arc,
};

use super::read::View;
use crate::{
    data::samples::Samples,
    io::volume::parts::StoredChunks,
    util::{error::Result, parallel::Parallel},
};

/// Maximum number of files that are listed.
const MOST: usize = 1 << 19;

/// The files of an array that exist, in order. Each entry has the number that identifies the volumes in the file, and
/// the position along z, y and x in the grid of files.
#[derive(Debug)]
pub struct Present(Vec<(usize, [usize; 3])>);

impl Present {
    /// Lists the files of the volumes of `view`. `None` for a remote store, and if the store cannot list them, has too
    /// many, or seems to have all.
    pub fn list(view: &View) -> Option<Self> {
        if view.store.is_far() || Self::seem_all_there(view) {
            return None;
        }
        let array = &view.array;
        let mut files = Vec::new();
        let complete = view.store.list(array.shape.len() + 1, &mut |name| {
            let Some(found) = array.place_of(name) else { return true };
            let is_wanted = (0..found.len()).all(|axis| {
                match view.axes.contains(&Some(axis)) || view.others.contains(&axis) {
                    true => found[axis] < array.shape[axis].div_ceil(array.file[axis]),
                    false => found[axis] == view.at[axis] / array.file[axis],
                }
            });
            if is_wanted {
                let [x, y, z] = view.axes.map(|axis| axis.map_or(0, |axis| found[axis]));
                files.push((Self::volume(view, |axis| found[axis]), [z, y, x]));
            }
            files.len() <= MOST
        });
        files.sort_unstable();
        complete.then_some(Self(files))
    }

    /// The number that identifies the volumes in a file, from its `place` along the axes that count volumes.
    fn volume(view: &View, place: impl Fn(usize) -> usize) -> usize {
        let count = |axis: usize| view.array.shape[axis].div_ceil(view.array.file[axis]);
        view.others.iter().fold(0, |n, &axis| n * count(axis) + place(axis))
    }

    /// Whether all files of a random sample exist. Listing a large store takes long, and is of no use if few files are
    /// missing.
    fn seem_all_there(view: &View) -> bool {
        /// Number of files in the sample.
        const SOME: u64 = 64;
        let random = RandomState::new();
        (0..SOME).all(|number| {
            let mut hasher = random.build_hasher();
            hasher.write_u64(number);
            let mut rest = hasher.finish() as usize;
            let mut any = |count: usize| {
                let at = rest % count;
                rest /= count;
                at
            };
            let at = [0, 1, 2].map(|axis| any(view.dims()[axis].div_ceil(view.chunk()[axis])));
            let volumes = view.others.iter().map(|&axis| view.array.shape[axis]);
            let place = view.place(any(volumes.product()));
            view.store.has(&view.file(at, &place).0)
        })
    }

    /// Whether the file at `[x, y, z]` of the volume at `place` exists.
    pub fn has(&self, view: &View, place: &[usize], [x, y, z]: [usize; 3]) -> bool {
        let volume = Self::volume(view, |axis| place[axis] / view.array.file[axis]);
        self.0.binary_search(&(volume, [z, y, x])).is_ok()
    }

    /// The first layer, from `layer` on, that has a file of the volume at `place`.
    pub fn next_layer(&self, view: &View, place: &[usize], layer: usize) -> Option<usize> {
        self.layers(view, place, layer..usize::MAX).next().map(|number| self.0[number].1[0])
    }

    /// The range, in the list, of the files in some layers of the volume at `place`.
    fn layers(&self, view: &View, place: &[usize], layers: Range<usize>) -> Range<usize> {
        let volume = Self::volume(view, |axis| place[axis] / view.array.file[axis]);
        let before = |layer: usize| self.0.partition_point(|&file| file < (volume, [layer, 0, 0]));
        before(layers.start)..before(layers.end)
    }
}

/// The stored chunks of some slices of a volume.
#[derive(Debug)]
pub struct Chunks {
    view: Arc<View>,
    place: Vec<usize>,
    slices: Range<usize>,
    present: Arc<Present>,
    /// The range, in the list, of the files that are not read yet.
    files: Range<usize>,
    /// Number of the next chunk in the first of them.
    next: usize,
    /// Number of chunks that are read at a time.
    at_once: usize,
}

impl Chunks {
    /// Reads the chunks of `slices`, `at_once` chunks at a time.
    pub fn new(
        view: Arc<View>,
        volume: usize,
        slices: Range<usize>,
        present: Arc<Present>,
        at_once: usize,
    ) -> Self {
        let depth = view.file_size()[2];
        let layers = slices.start / depth..slices.end.div_ceil(depth);
        let place = view.place(volume);
        let files = present.layers(&view, &place, layers);
        Self { view, place, slices, present, files, next: 0, at_once }
    }

    /// The positions of the next chunks along x, y and z in the grid of chunks.
    fn group(&mut self) -> Vec<[usize; 3]> {
        let (view, mut group) = (&self.view, Vec::new());
        let (dims, chunk, file) = (view.dims(), view.chunk(), view.file_size());
        let counts = [0, 1, 2].map(|axis| file[axis] / chunk[axis]);
        let all: usize = counts.iter().product();
        while group.len() < self.at_once && !self.files.is_empty() {
            let (_, [z, y, x]) = self.present.0[self.files.start];
            let n = self.next;
            let inner = [n % counts[0], n / counts[0] % counts[1], n / (counts[0] * counts[1])];
            let at = [0, 1, 2].map(|axis| [x, y, z][axis] * counts[axis] + inner[axis]);
            let first = [0, 1, 2].map(|axis| at[axis] * chunk[axis]);
            let is_inside = (0..3).all(|axis| first[axis] < dims[axis])
                && first[2] < self.slices.end
                && first[2] + chunk[2] > self.slices.start;
            if is_inside {
                group.push(at);
            }
            self.next += 1;
            if self.next == all {
                (self.next, self.files.start) = (0, self.files.start + 1);
            }
        }
        group
    }
}

impl StoredChunks for Chunks {
    fn read(&mut self) -> Result<Option<Samples>> {
        loop {
            let group = self.group();
            if group.is_empty() {
                return Ok(None);
            }
            let Self { view, place, slices, .. } = self;
            let read =
                |at: [usize; 3]| Ok((at, view.decoded(at, place, view.packed(at, place, None)?)?));
            let read = group.into_iter().par_map(read).into_iter().collect::<Result<Vec<_>>>()?;
            // A shard may lack chunks.
            let stored: Vec<([usize; 3], Vec<u8>)> =
                read.into_iter().filter_map(|(at, samples)| Some((at, samples?))).collect();
            if stored.is_empty() {
                continue;
            }
            let (dims, chunk) = (view.dims(), view.chunk());
            let within = |at: [usize; 3]| {
                let end = |axis: usize, end: usize| ((at[axis] + 1) * chunk[axis]).min(end);
                let first = at[2] * chunk[2];
                let depth = first.max(slices.start) - first..end(2, slices.end) - first;
                let [width, height] =
                    [0, 1].map(|axis| end(axis, dims[axis]) - at[axis] * chunk[axis]);
                (width, height, depth)
            };
            let count = |at| {
                let (width, height, depth) = within(at);
                width * height * depth.len()
            };
            let count = stored.iter().map(|&(at, _)| count(at)).sum();
            let mut samples = Samples::zeros(view.dtype, count)?;
            let mut left = samples.as_bytes_mut();
            for (at, chunk) in &stored {
                let (width, height, depth) = within(*at);
                for z in depth {
                    for y in 0..height {
                        let (row, rest) = left.split_at_mut(width * view.dtype.size());
                        view.copy_row(chunk, [y, z], row);
                        left = rest;
                    }
                }
            }
            view.keep_spare(stored.into_iter().map(|(_, chunk)| chunk));
            return Ok(Some(samples));
        }
    }
}
