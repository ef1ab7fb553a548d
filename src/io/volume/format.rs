//! The description of a volume format ([`Format`]): how its files are recognized, opened and written.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    header::{BoxError, Description, Encoding, Endian, HeaderReader, NiftiHeader},
    layout::Layout,
    slices::stack::Slices,
    stream::{self, OpenFile, PipeRest, SampleLocation},
    zarr::Image,
};
use crate::{
    data::{
        dtype::Dtype,
        placement::{Placement, Space},
    },
    io::Source,
    util::error::{Error, Result},
};

/// A volume format: one constant in the file of the format.
#[derive(Debug)]
pub struct Format {
    /// Name in messages.
    pub name: &'static str,
    /// Extensions of files that are read as this format, in lower case, without `.gz`. Empty for those of images.
    pub extensions: &'static [&'static str],
    /// Whether a file that begins with these (decompressed) bytes is of this format.
    pub has_signature: fn(&[u8]) -> bool,
    /// Finds the file with the header, if that may not be the given file.
    pub header_file: Option<fn(&Path) -> Option<PathBuf>>,
    /// Whether a file or store is of this format, for formats that are read slice by slice; `None` for those that are
    /// read as a stream.
    pub is_file: Option<fn(&Source) -> bool>,
    /// Whether the files of a folder may be slices of a volume.
    pub has_folders: bool,
    /// Whether files have no header, so that flags state the type.
    pub is_raw: bool,
    /// Whether a folder may contain several series.
    pub has_series: bool,
    /// Whether volumes are counted by channels and times, and have levels of resolution.
    pub has_channels: bool,
    /// Opens a volume.
    pub open: fn(RecognizedInput<'_>) -> Result<OpenedVolume>,
    /// How files are written, if they are. Zarr is written by a [`PyramidWriter`](super::PyramidWriter) instead.
    pub write: Option<WriteSupport>,
}

impl Format {
    /// A format without signature and writer that is opened by `open`, for struct updates.
    pub const fn new(
        name: &'static str,
        extensions: &'static [&'static str],
        open: fn(RecognizedInput<'_>) -> Result<OpenedVolume>,
    ) -> Self {
        Self {
            name,
            extensions,
            has_signature: |_| false,
            header_file: None,
            is_file: None,
            has_folders: false,
            is_raw: false,
            has_series: false,
            has_channels: false,
            open,
            write: None,
        }
    }
}

/// An input whose format is known.
pub struct RecognizedInput<'a> {
    pub format: &'static Format,
    pub source: Source,
    pub layout: &'a Layout,
    /// The file or store, or files of slices; empty for a stream.
    pub files: Vec<Source>,
    /// Messages about files that are not slices.
    pub warnings: Vec<String>,
    /// The stream, if its beginning was needed to recognize the format.
    pub opened: Option<OpenFile>,
}

/// A volume that has been opened.
pub struct OpenedVolume {
    pub description: Description,
    pub location: SampleLocation,
    /// The rest of the input, if it is a pipe.
    pub pipe: Option<PipeRest>,
    /// The metadata of a Zarr store, for outputs that are stores, too.
    pub zarr: Option<Arc<Image>>,
}

impl OpenedVolume {
    /// A volume of slices.
    pub fn from_slices(description: Description, slices: Arc<dyn Slices>) -> Self {
        Self { description, location: SampleLocation::Slices(slices), pipe: None, zarr: None }
    }
}

impl RecognizedInput<'_> {
    /// Opens a file or pipe that begins with a header.
    pub fn with_header(
        self,
        parse: fn(&mut HeaderReader<'_>) -> Result<Description, BoxError>,
    ) -> Result<OpenedVolume> {
        let (source, name) = (self.source, self.format.name);
        let OpenFile { mut input, packing, can_reopen, .. } =
            self.opened.expect("its header was recognized");
        let mut reader = HeaderReader::new(&mut *input, source.path());
        let header = parse(&mut reader);
        let position = reader.position;
        let mut description = header.map_err(|error| {
            let io_error = error.downcast_ref::<io::Error>();
            match io_error.is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof) {
                true => {
                    Error::bad_input(format_args!("{source}: file ends within its {name} header"))
                }
                false => stream::unreadable(
                    &source,
                    format_args!("cannot read {source} as {name}"),
                    error,
                ),
            }
        })?;
        if description.encoding == Encoding::Text {
            description.endian = Endian::Little;
        }
        let location = match &description.files {
            None => SampleLocation::HeaderFile { source, packing },
            Some(names) => SampleLocation::data_files(&source, names)?,
        };
        let is_one_file = matches!(location, SampleLocation::HeaderFile { .. });
        let pipe = (!can_reopen && is_one_file).then_some(PipeRest { input, position });
        Ok(OpenedVolume { description, location, pipe, zarr: None })
    }
}

/// Makes the header of a new file and parses it again: sizes, type and offset of samples must be equal.
#[cfg(test)]
pub fn write_and_parse(
    format: &Format,
    parse: fn(&mut HeaderReader<'_>) -> Result<Description, BoxError>,
    content: &HeaderContent<'_>,
) -> Description {
    use super::header::{Skip, StoredType, parse_bytes};
    let bytes = (format.write.as_ref().expect("it is written").header)(content);
    assert!((format.has_signature)(&bytes));
    let header = parse_bytes(parse, &bytes).unwrap();
    assert_eq!((header.dims, header.stored), (content.dims, StoredType::As(content.dtype)));
    assert_eq!(header.skip, Skip::to(bytes.len() as u64));
    header
}

/// How files of a format are written: a header, then the samples, little-endian, x fastest.
#[derive(Debug)]
pub struct WriteSupport {
    /// Extensions of the files that are written, in lower case.
    pub extensions: &'static [&'static str],
    /// Whether the extension may be followed by `.gz`.
    pub can_gzip: bool,
    /// Sample types that can be written.
    pub dtypes: &'static [Dtype],
    /// Maximum number of samples along x, y and z.
    pub max_dims: [usize; 3],
    /// Placements that can be written.
    pub placement: PlacementSupport,
    /// Units of length that can be written.
    pub units: UnitSupport,
    /// Whether samples of this number of colours of this type can be written.
    pub holds_colors: fn(Dtype, usize) -> bool,
    /// Whether an entry of metadata can be written.
    pub keeps_metadata: fn(&(String, String)) -> bool,
    /// Makes the header.
    pub header: fn(&HeaderContent<'_>) -> Vec<u8>,
}

impl WriteSupport {
    /// Samples of any type and number alone, for struct updates.
    pub const BASE: Self = Self {
        extensions: &[],
        can_gzip: false,
        dtypes: &Dtype::SAMPLES,
        max_dims: [usize::MAX; 3],
        placement: PlacementSupport::None,
        units: UnitSupport::Any,
        holds_colors: |_, _| false,
        keeps_metadata: |_| false,
        header: |_| Vec::new(),
    };
}

/// The units in which a format can hold lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitSupport {
    /// Any, or none.
    Any,
    /// One of these, or none.
    OneOf(&'static [&'static str]),
    /// Always this one: readers take all lengths to be in it.
    Always(&'static str),
}

/// The unit of formats in which ITK, and so 3D Slicer, takes all lengths for millimetres, whatever unit a file states.
pub const ITK_UNITS: UnitSupport = UnitSupport::OneOf(&["mm"]);

/// The placements that a format can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementSupport {
    None,
    /// Spacing and origin, along the world's axes.
    Straight,
    /// Any affine map, to the coordinates of this space, or with `None` of the placement's own space.
    Affine(Option<Space>),
    /// Any affine map to the coordinates of this space. In an unknown space, only the spacing is stored.
    Anatomical(Space),
}

/// The content of a header to be written.
#[derive(Debug)]
pub struct HeaderContent<'a> {
    /// Samples along x, y and z.
    pub dims: [usize; 3],
    /// Stored numbers of a sample.
    pub channels: usize,
    /// One of [`WriteSupport::dtypes`].
    pub dtype: Dtype,
    /// Position and orientation, as far as [`WriteSupport::placement`] allows.
    pub placement: Option<&'a Placement>,
    /// Metadata that the format keeps.
    pub metadata: Vec<(String, String)>,
    /// The header of the NIfTI file that the volume is from.
    pub nifti: Option<&'a NiftiHeader>,
}
