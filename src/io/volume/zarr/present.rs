//! Lists the files of an array that exist. All samples of the others have the fill value: they are counted, not read.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    ops::Range,
};

use super::{slicing::Slicing, store::Store};

/// Maximum number of files that are listed.
const MOST: usize = 1 << 19;

/// The files of an array that exist, in order. Each entry has the number that identifies the volumes in the file, and
/// the position along z, y and x in the grid of files.
#[derive(Debug)]
pub struct Present(pub Vec<(usize, [usize; 3])>);

impl Present {
    /// Lists the files of the volumes of `view` in `store`. `None` for a remote store, and if the store cannot list them, has too
    /// many, or seems to have all.
    pub fn list(view: &Slicing, store: &Store) -> Option<Self> {
        if store.is_far() || Self::seem_all_there(view, store) {
            return None;
        }
        let array = &view.array;
        let mut files = Vec::new();
        let complete = store.list(array.shape.len() + 1, &mut |name| {
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
    fn volume(view: &Slicing, place: impl Fn(usize) -> usize) -> usize {
        let count = |axis: usize| view.array.shape[axis].div_ceil(view.array.file[axis]);
        view.others.iter().fold(0, |n, &axis| n * count(axis) + place(axis))
    }

    /// Whether all files of a random sample exist. Listing a large store takes long, and is of no use if few files are
    /// missing.
    fn seem_all_there(view: &Slicing, store: &Store) -> bool {
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
            store.has(&view.file(at, &place).0)
        })
    }

    /// Whether the file at `[x, y, z]` of the volume at `place` exists.
    pub fn has(&self, view: &Slicing, place: &[usize], [x, y, z]: [usize; 3]) -> bool {
        let volume = Self::volume(view, |axis| place[axis] / view.array.file[axis]);
        self.0.binary_search(&(volume, [z, y, x])).is_ok()
    }

    /// The first layer, from `layer` on, that has a file of the volume at `place`.
    pub fn next_layer(&self, view: &Slicing, place: &[usize], layer: usize) -> Option<usize> {
        self.layers(view, place, layer..usize::MAX).next().map(|number| self.0[number].1[0])
    }

    /// The range, in the list, of the files in some layers of the volume at `place`.
    pub fn layers(&self, view: &Slicing, place: &[usize], layers: Range<usize>) -> Range<usize> {
        let volume = Self::volume(view, |axis| place[axis] / view.array.file[axis]);
        let before = |layer: usize| self.0.partition_point(|&file| file < (volume, [layer, 0, 0]));
        before(layers.start)..before(layers.end)
    }
}
