//! Lists the chunk files of an array that exist. Missing files hold only the fill value: their samples are counted, not
//! read.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    ops::Range,
};

use super::{slicing::Slicing, store::Store};

/// Maximum number of files that are listed.
const MAX_FILES: usize = 1 << 19;

/// The files of an array that exist, in order. Each entry has the number that identifies the volumes in the file, and the
/// position along z, y and x in the grid of files.
#[derive(Debug)]
pub struct ExistingFiles(pub Vec<(usize, [usize; 3])>);

impl ExistingFiles {
    /// Lists the files of the volumes of `slicing` in `store`. `None` for a remote store, and if the store cannot list
    /// them, has too many, or seems to have all.
    pub fn list(slicing: &Slicing, store: &Store) -> Option<Self> {
        if store.is_remote() || Self::seem_complete(slicing, store) {
            return None;
        }
        let array = &slicing.array;
        let mut files = Vec::new();
        let complete = store.list(array.shape.len() + 1, &mut |name| {
            let Some(found) = array.parse_key(name) else { return true };
            let is_wanted = (0..found.len()).all(|axis| {
                match slicing.axes.contains(&Some(axis)) || slicing.others.contains(&axis) {
                    true => found[axis] < slicing.files_along(axis),
                    false => found[axis] == slicing.at[axis] / array.file[axis],
                }
            });
            if is_wanted {
                let [x, y, z] = slicing.axes.map(|axis| axis.map_or(0, |axis| found[axis]));
                files.push((Self::volume(slicing, |axis| found[axis]), [z, y, x]));
            }
            files.len() <= MAX_FILES
        });
        files.sort_unstable();
        complete.then_some(Self(files))
    }

    /// The number that identifies the volumes in a file, from its `position` along the axes that count volumes.
    fn volume(slicing: &Slicing, position: impl Fn(usize) -> usize) -> usize {
        slicing.others.iter().fold(0, |n, &axis| n * slicing.files_along(axis) + position(axis))
    }

    /// Whether all files of a random sample exist. Listing a large store takes long, and is useless if few files are
    /// missing.
    fn seem_complete(slicing: &Slicing, store: &Store) -> bool {
        const SAMPLE: u64 = 64;
        let random = RandomState::new();
        (0..SAMPLE).all(|number| {
            let mut hasher = random.build_hasher();
            hasher.write_u64(number);
            let mut rest = hasher.finish() as usize;
            let mut any = |count: usize| {
                let at = rest % count;
                rest /= count;
                at
            };
            let at =
                [0, 1, 2].map(|axis| any(slicing.dims()[axis].div_ceil(slicing.chunk()[axis])));
            let volumes = slicing.others.iter().map(|&axis| slicing.array.shape[axis]);
            let position = slicing.position(any(volumes.product()));
            store.has(&slicing.file(at, &position).0)
        })
    }

    /// Whether the file at `[x, y, z]` of the volume at `position` exists.
    pub fn has(&self, slicing: &Slicing, position: &[usize], [x, y, z]: [usize; 3]) -> bool {
        let volume = Self::volume(slicing, |axis| position[axis] / slicing.array.file[axis]);
        self.0.binary_search(&(volume, [z, y, x])).is_ok()
    }

    /// The first layer, from `layer` on, that has a file of the volume at `position`.
    pub fn next_layer(&self, slicing: &Slicing, position: &[usize], layer: usize) -> Option<usize> {
        self.layers(slicing, position, layer..usize::MAX).next().map(|number| self.0[number].1[0])
    }

    /// The range, in the list, of the files in some layers of the volume at `position`.
    pub fn layers(
        &self,
        slicing: &Slicing,
        position: &[usize],
        layers: Range<usize>,
    ) -> Range<usize> {
        let volume = Self::volume(slicing, |axis| position[axis] / slicing.array.file[axis]);
        let before = |layer: usize| self.0.partition_point(|&file| file < (volume, [layer, 0, 0]));
        before(layers.start)..before(layers.end)
    }
}
