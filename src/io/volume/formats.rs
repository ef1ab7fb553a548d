//! The table of volume formats, and the choice of one by the name or the first bytes of a file.

use std::path::Path;

use super::{
    dicom,
    format::{Format, WriteSupport},
    meta_image, mrc, nifti, npy, nrrd,
    raw::{self, Layout},
    slices::{names::is_multi_file, tiff},
    zarr,
};
use crate::io::{Source, image::has_image_name, source::packed_extension, standard};

/// Every volume format. The first one whose signature a file has is chosen. MetaImage follows the others, since its only
/// signature is the names of its fields.
pub const FORMATS: [&Format; 9] = [
    &nifti::FORMAT,
    &nrrd::FORMAT,
    &npy::FORMAT,
    &mrc::FORMAT,
    &meta_image::FORMAT,
    &dicom::FORMAT,
    &tiff::FORMAT,
    &zarr::FORMAT,
    &raw::FORMAT,
];

/// Whether `source` is read as a volume, by its name, the flags, or the first bytes of standard input.
pub fn is_volume(source: &Source, layout: &Layout) -> bool {
    has_volume_name(source)
        || layout.is_of_volume()
        || *source == Source::Stdin && is_volume_piped()
}

/// Whether the name of `source` has the extension of a volume in a single file.
pub fn has_volume_extension(source: &Source) -> bool {
    let (extension, is_packed) = packed_extension(source.path());
    is_packed
        || raw::FORMAT.extensions.contains(&extension.as_str())
        || by_extension(&extension).is_some()
}

/// Whether the name of `source` is that of a volume, or of a folder or pattern of slices.
fn has_volume_name(source: &Source) -> bool {
    has_volume_extension(source)
        || is_multi_file(source)
        || source.extension() == "zarr"
        // Many DICOM files have numbers as names, and no extension.
        || source.path().is_some_and(|path| !has_image_name(source) && dicom::is_dicom(path))
}

/// Whether standard input begins as a volume, or as gzip, which no image does.
fn is_volume_piped() -> bool {
    let first = standard::peek().unwrap_or_default();
    first.starts_with(&[0x1f, 0x8b]) || by_signature(&first).is_some()
}

/// The formats whose files begin with a header that is parsed.
fn with_header() -> impl Iterator<Item = &'static Format> {
    FORMATS.into_iter().filter(|format| format.parse.is_some())
}

/// How volumes are written, for each format that is.
pub fn write_supports() -> impl Iterator<Item = &'static WriteSupport> {
    FORMATS.into_iter().filter_map(|format| format.write.as_ref())
}

/// The format with a header that has the extension `extension`.
pub fn by_extension(extension: &str) -> Option<&'static Format> {
    with_header().find(|format| format.extensions.contains(&extension))
}

/// The format with a header whose signature `first` begins with.
pub fn by_signature(first: &[u8]) -> Option<&'static Format> {
    with_header().find(|format| (format.has_signature)(first))
}

/// Whether a name is that of an image and not of a volume: `.hdr` is both Radiance and NIfTI, and counts as NIfTI.
pub fn is_image(path: &Path) -> bool {
    let source = Source::File(path.to_owned());
    has_image_name(&source) && by_extension(&source.extension()).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_and_signatures_are_of_one_format() {
        let mut all: Vec<&str> =
            FORMATS.iter().flat_map(|format| format.extensions).copied().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert!(FORMATS.iter().all(|format| !(format.has_signature)(b"")));
    }
}
