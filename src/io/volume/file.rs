//! A volume whose shape is known and whose samples are still to be read.

use std::{
    borrow::Cow,
    fmt, io,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    convert,
    data::{self, Extent, Held, Opened, Place},
    dicom,
    format::{Endian, Format, Header, Loss, Packing, Start, Stored},
    formats::{by_extension, by_signature},
    raw::{self, Layout},
    slices::{
        self,
        names::{self, are_many},
        stack::{self, Slices, Stack},
    },
    zarr,
};
use crate::{
    data::{dtype::Dtype, placement::Placement, volume::Dims},
    io::{Limits, Source, image::foreign_refusal, losses, source::packed_extension},
    util::error::{Error, Hint, Result},
};

/// The files of a folder, a pattern or a store, or a header and the files that it names; `None` where `source` is one
/// file.
///
/// # Errors
/// When the folder cannot be read.
pub fn files_of(source: &Source) -> Result<Option<Vec<PathBuf>>> {
    let Some(path) = source.path() else { return Ok(None) };
    if zarr::is_store(path) {
        return Ok(Some(zarr::files(path)));
    }
    if are_many(source) {
        return names::files(source, path).map(Some);
    }
    if !["nhdr", "mhd", "hdr"].contains(&source.extension().as_str()) {
        return Ok(None);
    }
    // An error is reported when the volume is read.
    let file = VolumeFile::describe(source, &Layout { volume: Some(0), ..Layout::default() });
    Ok(match file.map(|file| file.place) {
        Ok(Place::Others(files)) => Some([vec![path.to_owned()], files].concat()),
        _ => None,
    })
}

/// Whether `source` can be read more than once.
pub fn can_reopen(source: &Source) -> bool {
    are_many(source) || matches!(source.size(), Ok(Some(_)))
}

/// Most bytes before the samples of a compressed file, which must be decompressed to be skipped.
const MOST_UNPACKED: u64 = 1 << 30;

/// A volume whose shape is known and whose samples are still to be read.
#[derive(Clone)]
pub struct VolumeFile {
    pub(super) source: Source,
    /// Samples along x, y and z.
    pub dims: [usize; 3],
    /// The type of the samples once read: values are scaled, and 64-bit integers become f64.
    pub dtype: Dtype,
    /// The format's name.
    format: Cow<'static, str>,
    /// Everything else that the file says before its samples.
    pub header: Header,
    pub(super) place: Place,
    /// Number of the chosen volume, counted from 0.
    pub(super) volume: usize,
    /// Bytes of all files of a volume of slices.
    packed_bytes: Option<u64>,
    /// A pipe whose header has been read. It is taken by the first reader.
    pub(super) held: Option<Arc<Mutex<Option<Held>>>>,
    /// Whether warnings have been reported.
    is_told: Arc<AtomicBool>,
}

impl fmt::Debug for VolumeFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VolumeFile")
            .field("source", &self.source)
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

impl VolumeFile {
    /// Reads the header of `source`, or takes the shape of a raw volume from `layout`, its name or its size.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::util::error::Kind::Io) when `source` cannot be read;
    /// [`Kind::BadInput`](crate::util::error::Kind::BadInput) when the header is broken or unsupported, when the shape is
    /// unknown, or when the file's length is not that of the shape; [`Kind::Usage`](crate::util::error::Kind::Usage) when
    /// `layout` contradicts the header.
    pub fn describe(source: &Source, layout: &Layout) -> Result<Self> {
        let (extension, is_packed) = packed_extension(source.path());
        if let Some(stack) = slices::find(source, layout)? {
            return Self::stacked(source, layout, stack);
        }
        if layout.is_raw() || raw::EXTENSIONS.contains(&extension.as_str()) {
            return Self::raw(source, layout, is_packed, None);
        }
        let by_name = by_extension(&extension);
        let header_file = source.path().and_then(|path| (by_name?.header_file?)(path));
        let source = &header_file.map_or_else(|| source.clone(), Source::File);
        let opened = Opened::new(source)?;
        let signed = by_signature(&opened.first);
        if signed.is_none()
            && let Some(refusal) = foreign_refusal(&opened.first, &extension)
        {
            return Err(Error::bad_input(format_args!("{source}: {refusal}")));
        }
        match signed.or(by_name) {
            Some(format) => Self::formatted(source, layout, format, opened),
            None if opened.can_reopen => Self::raw(source, layout, is_packed, None),
            None => {
                let gzip = opened.gzip && is_packed;
                Self::raw(source, layout, gzip, Some(Held { input: opened.input, position: 0 }))
            }
        }
    }

    fn raw(source: &Source, layout: &Layout, gzip: bool, held: Option<Held>) -> Result<Self> {
        let header = raw::header(source, layout)?;
        let place = Place::Own { source: source.clone(), gzip };
        Self::checked(source, layout, raw::NAME, header, place, held)
    }

    fn formatted(
        source: &Source,
        layout: &Layout,
        format: &Format,
        opened: Opened,
    ) -> Result<Self> {
        no_type_is_given(source, layout, format.name)?;
        let Opened { mut input, gzip, can_reopen, .. } = opened;
        let mut start = Start::new(&mut *input, source.path());
        let header = (format.read)(&mut start);
        let position = start.position;
        let mut header = header.map_err(|error| {
            let ends = error.downcast_ref::<io::Error>();
            let name = format.name;
            match ends.is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof) {
                true => Error::bad_input(format_args!(
                    "{source}: the file ends within its {name} header"
                )),
                false => {
                    data::unreadable(source, format_args!("cannot read {source} as {name}"), error)
                }
            }
        })?;
        if header.packing == Packing::Text {
            header.endian = Endian::Little;
        }
        let place = match &header.files {
            None => Place::Own { source: source.clone(), gzip },
            Some(names) => Place::others(source, names)?,
        };
        let is_own = matches!(place, Place::Own { .. });
        let held = (!can_reopen && is_own).then_some(Held { input, position });
        Self::checked(source, layout, format.name, header, place, held)
    }

    /// Makes a volume of slices.
    fn stacked(source: &Source, layout: &Layout, stack: Stack) -> Result<Self> {
        let Stack { format, header, dtype, bytes, slices } = stack;
        no_type_is_given(source, layout, &format)?;
        let mut file = Self::checked(source, layout, format, header, Place::Slices(slices), None)?;
        file.packed_bytes = Some(bytes);
        file.dtype = dtype;
        Ok(file)
    }

    /// Checks flags against the header, and sizes before anything is allocated for them.
    fn checked(
        source: &Source,
        layout: &Layout,
        format: impl Into<Cow<'static, str>>,
        header: Header,
        place: Place,
        held: Option<Held>,
    ) -> Result<Self> {
        let format = format.into();
        let Header { dims, volumes, stored, .. } = header;
        if layout.series.is_some() && format != dicom::NAME {
            return Err(Error::usage(format_args!("{source}: only DICOM files have series")));
        }
        let chooses = [layout.channel, layout.time, layout.level].iter().any(Option::is_some);
        if chooses && !zarr::NAMES.iter().any(|name| format.starts_with(name)) {
            return Err(Error::usage(format_args!(
                "{source}: channels, times and levels are chosen of Zarr alone; other files hold numbered volumes"
            )));
        }
        let volume = match (layout.volume, volumes) {
            (Some(volume), _) if volume < volumes => volume,
            (None, 1) => 0,
            (chosen, _) => return Err(wrong_volume(source, chosen, volumes, header.each)),
        };
        let held = held.map(|held| Arc::new(Mutex::new(Some(held))));
        let mut file = Self {
            source: source.clone(),
            dims,
            dtype: convert::dtype(stored, header.scale),
            format,
            header,
            place,
            volume,
            packed_bytes: None,
            held,
            is_told: Arc::default(),
        };
        let Header { skip, packing, .. } = file.header;
        let is_packed =
            packing != Packing::None || matches!(file.place, Place::Own { gzip: true, .. });
        let files = if let Place::Others(files) = &file.place { files.len() as u64 } else { 1 };
        let behind = skip.from.saturating_add(skip.bytes.unwrap_or(0)).saturating_mul(files);
        if is_packed && behind > MOST_UNPACKED {
            return Err(Error::bad_input(format_args!(
                "{source}: its samples are said to begin at byte {behind}"
            )));
        }
        let bytes = file.bytes().filter(|&bytes| isize::try_from(bytes).is_ok());
        if bytes.and(file.extent()).is_none() {
            return Err(Error::bad_input(format_args!("{source}: {} is too large", Dims(dims))));
        }
        file.check_length()?;
        if let Stored::As(dtype @ (Dtype::U64 | Dtype::I64)) = stored {
            file.header.losses.push(Loss::Integers(dtype));
        }
        Ok(file)
    }

    /// Stored bytes of the volumes before the chosen one, and of all; `None` on overflow.
    pub(super) fn extent(&self) -> Option<Extent> {
        let Header { dims, volumes, stored, .. } = &self.header;
        let samples = dims.iter().try_fold(1u64, |n, &dim| n.checked_mul(dim as u64))?;
        let bytes = samples.checked_mul(stored.size() as u64)?;
        Some(Extent {
            before: bytes.checked_mul(self.volume as u64)?,
            all: bytes.checked_mul(*volumes as u64)?,
        })
    }

    /// Compares the length of uncompressed samples with that of the shape.
    fn check_length(&mut self) -> Result<()> {
        let Header { skip, packing, dims, stored, volumes, .. } = &self.header;
        let (Some(after), true) = (skip.bytes, data::is_plain(*skip, *packing)) else {
            return Ok(());
        };
        let sizes: Option<Vec<u64>> = match &self.place {
            Place::Own { gzip: true, .. } | Place::Slices(_) => None,
            Place::Own { source, .. } => source.size()?.map(|size| vec![size]),
            Place::Others(paths) => {
                let size = |path: &PathBuf| Source::File(path.clone()).size();
                paths.iter().map(size).collect::<Result<Option<Vec<u64>>>>()?
            }
        };
        let Some(sizes) = sizes else { return Ok(()) };
        let head = skip.from.saturating_add(after);
        let found =
            sizes.iter().fold(0u64, |sum, size| sum.saturating_add(size.saturating_sub(head)));
        let Some(Extent { all, .. }) = self.extent() else { return Ok(()) };
        if found < all {
            let times = if *volumes > 1 { format!("{volumes} times ") } else { String::new() };
            return Err(Error::bad_input(format_args!(
                "{}: {times}{} of {} make {all} bytes, but there are only {found}",
                self.source,
                Dims(*dims),
                stored.name()
            )));
        }
        if found > all {
            self.header.losses.push(Loss::Trailing(found - all));
        }
        Ok(())
    }

    /// Announces that 64-bit integers will be read by [`VolumeReader::read_integers`], without conversion to f64.
    /// Returns their type; `None` where the volume stores no such values.
    pub fn keep_integers(&mut self) -> Option<Dtype> {
        let Header { stored, scale, ref mut losses, .. } = self.header;
        match (stored, scale) {
            (Stored::As(dtype @ (Dtype::U64 | Dtype::I64)), None) => {
                losses.retain(|loss| !matches!(loss, Loss::Integers(_)));
                Some(dtype)
            }
            _ => None,
        }
    }

    /// The input that holds the volume.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Whether the volume can be read more than once.
    pub fn can_reopen(&self) -> bool {
        self.held.is_none() && can_reopen(&self.source)
    }

    /// Bytes of all samples in memory; `None` on overflow.
    pub fn bytes(&self) -> Option<u64> {
        let count = self.dims.iter().try_fold(1u64, |n, &dim| n.checked_mul(dim as u64))?;
        count.checked_mul(self.dtype.size() as u64)
    }

    /// Bytes of memory that a reader takes beside the samples that it returns: an array in Fortran order is read as a
    /// whole, slices need memory to be decoded.
    pub fn held_bytes(&self) -> u64 {
        match &self.place {
            Place::Slices(slices) => stack::held_bytes(&**slices),
            _ if self.header.transposed => self.bytes().unwrap_or(u64::MAX),
            _ => 0,
        }
    }

    /// Bytes of the file, or of all files of a volume of slices; `None` for a pipe.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::util::error::Kind::Io) when the file is missing.
    pub fn packed_bytes(&self) -> Result<Option<u64>> {
        match self.packed_bytes {
            Some(bytes) => Ok(Some(bytes)),
            None => self.source.size(),
        }
    }

    pub(super) fn slices(&self) -> Option<&Arc<dyn Slices>> {
        match &self.place {
            Place::Slices(slices) => Some(slices),
            _ => None,
        }
    }

    /// Number of slices that are stored together, as in chunks.
    pub fn layer(&self) -> usize {
        self.slices().map_or(1, |slices| slices.layer())
    }

    /// The format's name.
    pub fn format(&self) -> &str {
        &self.format
    }

    /// Where samples lie in the world, if the file says so.
    pub fn placement(&self) -> Option<&Placement> {
        self.header.placement.as_ref()
    }

    /// Other entries of the header: names and texts.
    pub fn metadata(&self) -> &[(String, String)] {
        &self.header.metadata
    }

    /// In words, the loss of metadata in an output that `keeps` only some of them.
    pub(super) fn dropped_metadata(
        &self,
        keeps: impl Fn(&(String, String)) -> bool,
    ) -> Option<String> {
        let dropped = self.metadata().iter().filter(|entry| !keeps(entry));
        let names: Vec<&str> = dropped.map(|(name, _)| name.as_str()).collect();
        let shown = names.join(", ");
        let shown: String = shown.chars().filter(|c| !c.is_control()).take(200).collect();
        (!names.is_empty()).then(|| format!("metadata is dropped ({shown})"))
    }

    /// What was assumed or left out, in words.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let Header { warnings, losses, .. } = &self.header;
        warnings.iter().cloned().chain(losses.iter().map(ToString::to_string))
    }

    /// Checks the volume against `limits`, and reports, once, what was assumed or left out.
    ///
    /// # Errors
    /// [`Kind::BadInput`](crate::util::error::Kind::BadInput) when the volume takes more than allowed, or when something is
    /// left out and `limits` are strict.
    pub fn check(&self, limits: Limits) -> Result<()> {
        limits.check(&self.dims).map_err(|error| error.context(&self.source))?;
        if self.header.transposed && self.bytes() > Some(limits.bytes / 3) {
            return Err(Error::bad_input(format_args!(
                "{}: arrays in Fortran order are read at once, and three times their size is more than \
                 the {} bytes allowed",
                self.source, limits.bytes
            ))
            .with_hint(Hint::Memory));
        }
        self.allow(limits)?;
        if !self.is_told.swap(true, Ordering::Relaxed) {
            let report = |loss| losses::report(&self.source, loss, limits.strict);
            self.header.losses.iter().try_for_each(report)?;
            self.header.warnings.iter().for_each(|what| log::warn!("{}: {what}", self.source));
        }
        Ok(())
    }

    /// Sets how much memory a reader may take.
    ///
    /// # Errors
    /// [`Kind::BadInput`](crate::util::error::Kind::BadInput) when that is too little.
    pub fn allow(&self, limits: Limits) -> Result<()> {
        let allowed = self.slices().map_or(Ok(()), |slices| slices.allow(limits));
        allowed.map_err(|error| error.context(&self.source))
    }

    /// Checks that all samples together take no more memory than `limits` allow.
    ///
    /// # Errors
    /// [`Kind::BadInput`](crate::util::error::Kind::BadInput) when they do.
    pub fn check_bytes(&self, limits: Limits) -> Result<()> {
        let bytes = self.bytes().unwrap_or(u64::MAX);
        match bytes <= limits.bytes {
            true => Ok(()),
            false => Err(Error::bad_input(format_args!(
                "{}: {bytes} bytes are more than the {} allowed",
                self.source, limits.bytes
            ))
            .with_hint(Hint::Memory)),
        }
    }
}

/// An error where `layout` has flags for raw volumes.
fn no_type_is_given(source: &Source, layout: &Layout, format: &str) -> Result<()> {
    match layout.dtype.is_some() || layout.endian.is_some() {
        true => Err(Error::usage(format_args!(
            "{source}: {format} files state the type and the byte order of their samples"
        ))),
        false => Ok(()),
    }
}

fn wrong_volume(source: &Source, chosen: Option<usize>, volumes: usize, each: &str) -> Error {
    match chosen {
        Some(chosen) => Error::usage(format_args!(
            "{source}: there is no volume {}, only 1 to {volumes}",
            chosen + 1
        )),
        None => Error::bad_input(format_args!("{source} holds {volumes} {each}, 1 to {volumes}"))
            .with_hint(Hint::VolumeNumber),
    }
}
