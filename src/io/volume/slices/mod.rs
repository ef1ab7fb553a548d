//! Volumes whose slices are read one at a time, in any order and by several threads at once: a folder of images, a
//! DICOM series, the pages of a TIFF, a Zarr store.
//!
//! Each of these makes a [`Stack`]: a header as of any volume, and the [`Slices`] themselves. The `VolumeReader` then
//! asks for as many slices as it needs next.

pub mod names;
mod pictures;
pub mod tiff;

use std::{
    fmt,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

pub use names::are_many;

use super::{FORMATS, Layout, dicom, format::Header, parts::StoredChunks, zarr};
use crate::{
    data::{dtype::Dtype, samples::Samples},
    io::{
        Limits, Source,
        image::{has_image_name, is_tiff},
    },
    util::{
        error::{Error, Result},
        parallel::Parallel,
    },
};

/// Slices of one size and type.
pub trait Slices: fmt::Debug + Send + Sync {
    /// Reads slice `z`, counted from 0 over all volumes, into `samples`: rows from the first on, rescaled values of
    /// [`Stack::dtype`] in the machine's byte order.
    ///
    /// # Errors
    /// When the slice cannot be read, or has another size or type than the others.
    fn read(&self, z: usize, samples: &mut [u8]) -> Result<()>;

    /// Bytes of memory that reading a slice takes beside its samples.
    fn scratch(&self) -> u64;

    /// Whether reading is fastest one slice after the other, in order.
    fn one_by_one(&self) -> bool {
        false
    }

    /// Makes the loss of values an error from now on, not a warning.
    fn refuse_losses(&self) {}

    /// Reads the slices from number `first` on, each of `bytes` bytes, on all threads.
    ///
    /// # Errors
    /// As [`Slices::read`].
    fn read_range(&self, first: usize, bytes: usize, samples: &mut [u8]) -> Result<()> {
        let at_once = at_once(self);
        for (group, samples) in samples.chunks_mut(bytes * at_once).enumerate() {
            let first = first + group * at_once;
            let each = samples.chunks_mut(bytes).enumerate();
            each.par_try_each(|(i, samples)| self.read(first + i, samples))?;
        }
        Ok(())
    }

    /// Sets how much memory reading may take; a part of it may be kept between slices.
    ///
    /// # Errors
    /// When that is too little.
    fn allow(&self, _limits: Limits) -> Result<()> {
        Ok(())
    }

    /// Number of slices that are stored together, as in chunks.
    fn layer(&self) -> usize {
        1
    }

    /// The value of samples that are not stored; `None` if all are stored.
    fn fill(&self) -> Option<Samples> {
        None
    }

    /// If no samples of slice `slice` of a volume are stored: the number of the next slice that may be stored, and the
    /// value of all samples before it.
    fn missing(&self, _volume: usize, _slice: usize) -> Option<(usize, Samples)> {
        None
    }

    /// The stored chunks of `slices` of a volume, as many at a time as fit into `bytes` of memory. `None` if it is not
    /// known which are stored, or if one of them takes more.
    fn stored(
        self: Arc<Self>,
        _volume: usize,
        _slices: Range<usize>,
        _bytes: u64,
    ) -> Option<Box<dyn StoredChunks>> {
        None
    }
}

/// A volume of slices.
#[derive(Debug)]
pub struct Stack {
    /// The format's name.
    pub format: &'static str,
    /// Sizes, type, placement and metadata. `skip`, `files` and `packing` are not used.
    pub header: Header,
    /// The type of the samples once read.
    pub dtype: Dtype,
    /// Bytes of all files.
    pub bytes: u64,
    /// The slices, in order.
    pub slices: Arc<dyn Slices>,
}

/// Most bytes of memory that concurrent reads of slices take beside the samples.
const SCRATCH: u64 = 64 << 20;

/// Number of slices that are read at the same time.
fn at_once(slices: &(impl Slices + ?Sized)) -> usize {
    if slices.one_by_one() {
        return 1;
    }
    (SCRATCH / slices.scratch().max(1)).clamp(1, rayon::current_num_threads() as u64) as usize
}

/// Bytes of memory that reading takes beside the samples.
pub fn held_bytes(slices: &dyn Slices) -> u64 {
    slices.scratch().saturating_mul(at_once(slices) as u64)
}

/// Reads the slices from number `first` on, each of `bytes` bytes, into `samples`, on all threads.
pub fn read(slices: &dyn Slices, first: usize, bytes: usize, samples: &mut [u8]) -> Result<()> {
    slices.read_range(first, bytes, samples)
}

/// The stack that `source` is: a folder, a pattern of names, a Zarr store, a DICOM file, or an image; `None` for any
/// other file.
///
/// # Errors
/// When there are no slices in the folder, or they do not belong together.
pub fn find(source: &Source, layout: &Layout) -> Result<Option<Stack>> {
    let Some(path) = source.path().filter(|_| !layout.is_raw()) else { return Ok(None) };
    if !are_many(source) {
        if dicom::is_dicom(path) && source.size()?.is_some() {
            let files = [path.to_owned()];
            return dicom::stack(source, &files, layout.series.as_ref(), Vec::new()).map(Some);
        }
        let is_image = is_image(path) && source.size()?.is_some();
        let one = || match is_tiff(path) {
            true => tiff::stack(source, path),
            false => pictures::stack(source, vec![path.to_owned()], Vec::new()),
        };
        return is_image.then(one).transpose();
    }
    if zarr::is_store(path) {
        return zarr::stack(source, path, layout).map(Some);
    }
    let files = names::files(source, path)?;
    let (dicom, files): (Vec<PathBuf>, Vec<PathBuf>) =
        files.into_iter().partition(|file| !is_image(file) && dicom::is_dicom(file));
    if !dicom.is_empty() {
        return dicom::stack(source, &dicom, layout.series.as_ref(), left_out(&files)).map(Some);
    }
    let (pictures, others): (Vec<PathBuf>, Vec<PathBuf>) =
        files.into_iter().partition(|file| is_image(file));
    if pictures.is_empty() {
        let folder = names::folder(path);
        let below = folder.map(|name| format!(", only folders such as {name}")).unwrap_or_default();
        return Err(Error::bad_input(format_args!("{source}: there are no slices in it{below}")));
    }
    pictures::stack(source, pictures, left_out(&others)).map(Some)
}

/// Whether a name is that of an image and not of a volume: `.hdr` is both Radiance and NIfTI, and counts as NIfTI.
fn is_image(path: &Path) -> bool {
    let source = Source::File(path.to_owned());
    let extension = source.extension();
    let is_volume = FORMATS.iter().any(|format| format.extensions.contains(&extension.as_str()));
    has_image_name(&source) && !is_volume
}

/// A warning about files that are no slices.
pub fn left_out(files: &[PathBuf]) -> Vec<String> {
    let name = |file: &PathBuf| names::shown(file);
    match files {
        [] => Vec::new(),
        [file] => vec![format!("{} is no slice and left out", name(file))],
        [file, ..] => {
            vec![format!("{} files such as {} are no slices and left out", files.len(), name(file))]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slice z is full of z.
    #[derive(Debug)]
    struct Numbered;

    impl Slices for Numbered {
        fn read(&self, z: usize, samples: &mut [u8]) -> Result<()> {
            samples.fill(z as u8);
            match z {
                99 => Err(Error::bad_input("there is no slice 99")),
                _ => Ok(()),
            }
        }

        fn scratch(&self) -> u64 {
            SCRATCH / 2
        }
    }

    #[test]
    fn slices_come_in_order() {
        let mut samples = [0; 15];
        read(&Numbered, 7, 3, &mut samples).unwrap();
        assert_eq!(samples, [7, 7, 7, 8, 8, 8, 9, 9, 9, 10, 10, 10, 11, 11, 11]);
        assert!(read(&Numbered, 97, 3, &mut samples).is_err());
        assert!((1..=2).contains(&at_once(&Numbered)));
    }
}
