//! The table of volume formats, and the choice of one by the name or the first bytes of a file.

use std::path::Path;

use super::{
    dicom,
    format::{Format, RecognizedInput, WriteSupport},
    layout::Layout,
    meta_image, mrc, nifti, npy, nrrd, raw,
    slices::{
        images,
        names::{self, display_name, folder_or_pattern, is_image_file, is_multi_file, skipped},
        tiff,
    },
    stream::OpenFile,
    zarr,
};
use crate::{
    io::{
        Source,
        image::{has_image_name, has_slices, unsupported_format},
        packing::{Packing, packed_extension},
        standard,
    },
    util::error::{Error, Result},
};

/// Every volume format. The first one that a file or its signature is of is chosen. MetaImage follows other formats with
/// signatures, since its only signature is the names of its fields.
const FORMATS: [&Format; 10] = [
    &zarr::FORMAT,
    &dicom::FORMAT,
    &tiff::FORMAT,
    &images::FORMAT,
    &nifti::FORMAT,
    &nrrd::FORMAT,
    &npy::FORMAT,
    &mrc::FORMAT,
    &meta_image::FORMAT,
    &raw::FORMAT,
];

/// The format of outputs without an extension whose input is of a format that is only read.
pub const DEFAULT_OUTPUT: &Format = &nrrd::FORMAT;

/// The formats that are written.
pub fn writers() -> impl Iterator<Item = (&'static Format, &'static WriteSupport)> {
    FORMATS.into_iter().filter_map(|format| Some((format, format.write.as_ref()?)))
}

/// The format of streams that has the extension `extension`.
pub fn by_extension(extension: &str) -> Option<&'static Format> {
    FORMATS
        .into_iter()
        .find(|format| format.is_file.is_none() && format.extensions.contains(&extension))
}

fn by_signature(first: &[u8]) -> Option<&'static Format> {
    FORMATS.into_iter().find(|format| (format.has_signature)(first))
}

/// The format of the file or store `source`, if it is read slice by slice.
fn by_file(source: &Source) -> Option<&'static Format> {
    FORMATS.into_iter().find(|format| format.is_file.is_some_and(|is_file| is_file(source)))
}

/// Whether `source` is read as a volume, by its name, the flags, the first bytes of standard input, or because the file
/// states that its pages are slices.
pub fn is_volume(source: &Source, layout: &Layout) -> bool {
    has_volume_name(source)
        || layout.describes_volume()
        || !layout.pages && has_slices(source)
        || *source == Source::Stdin && is_volume_piped()
}

/// Whether the name of `source` has the extension of a volume that is one file.
pub fn has_volume_extension(source: &Source) -> bool {
    let (extension, packing) = packed_extension(source.path());
    packing.is_some() || by_extension(&extension).is_some()
}

/// Whether the name of `source` is that of a volume, or of a folder or pattern of slices.
fn has_volume_name(source: &Source) -> bool {
    let (extension, packing) = packed_extension(source.path());
    packing.is_some()
        || FORMATS.iter().any(|format| format.extensions.contains(&extension.as_str()))
        || is_multi_file(source)
        || !has_image_name(source)
            && by_file(source).is_some_and(|format| format.name != tiff::FORMAT.name)
}

/// Whether standard input begins as a volume, or is compressed, which no image is.
fn is_volume_piped() -> bool {
    let first = standard::peek().unwrap_or_default();
    Packing::from_signature(&first).is_some() || by_signature(&first).is_some()
}

/// Recognizes the format of `source`.
pub fn recognize<'a>(source: &Source, layout: &'a Layout) -> Result<RecognizedInput<'a>> {
    let input = |format: &'static Format| RecognizedInput {
        format,
        source: source.clone(),
        layout,
        files: Vec::new(),
        warnings: Vec::new(),
        opened: None,
    };
    if layout.is_raw() {
        return Ok(input(&raw::FORMAT));
    }
    if (is_multi_file(source) || source.size()?.is_some())
        && let Some(format) = by_file(source)
    {
        return Ok(RecognizedInput { files: vec![source.clone()], ..input(format) });
    }
    if let Some(path) = folder_or_pattern(source) {
        return recognize_slices(path, input);
    }
    let extension = packed_extension(source.path()).0;
    let by_name = by_extension(&extension);
    if let Some(format) = by_name.filter(|format| format.is_raw) {
        return Ok(input(format));
    }
    let header_file = source.path().and_then(|path| (by_name?.header_file?)(path));
    let source = header_file.map_or_else(|| source.clone(), Source::from);
    let opened = OpenFile::new(&source)?;
    let signed = by_signature(&opened.first);
    if signed.is_none()
        && let Some(refusal) = unsupported_format(&opened.first, &extension)
    {
        return Err(Error::bad_input(format_args!("{source}: {refusal}")));
    }
    let format = signed.or(by_name).unwrap_or(&raw::FORMAT);
    Ok(RecognizedInput { source, opened: Some(opened), ..input(format) })
}

/// The files of the folder or pattern `path`. DICOM files may also lie in folders below it, unless it holds images.
pub fn slice_files(source: &Source, path: &Path) -> Result<Vec<Source>> {
    /// Number of files and folders below after which the search for a DICOM file ends.
    const MAX_OTHERS: usize = 1 << 14;
    let mut files = names::files(source, path)?;
    if path.is_dir() && (files.iter().any(dicom::is_dicom) || !files.iter().any(is_image_file)) {
        names::add_nested(source, path, (dicom::is_dicom, MAX_OTHERS), &mut files)?;
    }
    Ok(files)
}

/// Recognizes the format of the slices in the folder or pattern `path`.
fn recognize_slices<'a>(
    path: &Path,
    input: impl Fn(&'static Format) -> RecognizedInput<'a>,
) -> Result<RecognizedInput<'a>> {
    let source = Source::from(path);
    let files = slice_files(&source, path)?;
    for format in FORMATS.into_iter().filter(|format| format.has_folders) {
        let is_slice = |file: &Source| format.is_file.is_some_and(|is_file| is_file(file));
        let (slices, others): (Vec<Source>, Vec<Source>) =
            files.iter().cloned().partition(is_slice);
        if !slices.is_empty() {
            let warnings = skipped(&others);
            return Ok(RecognizedInput { files: slices, warnings, ..input(format) });
        }
    }
    let only = names::folders_in(path)
        .first()
        .map(|folder| format!(", only folders such as {}", display_name(folder)))
        .unwrap_or_default();
    Err(Error::bad_input(format_args!("{source}: contains no image slices{only}")))
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
