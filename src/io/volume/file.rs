//! A volume whose shape is known and whose samples are still to be read.

use std::{
    fmt,
    ops::Deref,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    format::{Format, OpenedVolume},
    formats::{DEFAULT_OUTPUT, by_extension, recognize, slice_files},
    header::{Description, Encoding, Loss, StoredType},
    interleaved,
    layout::Layout,
    nifti,
    slices::{
        names::is_multi_file,
        stack::{self, Slices},
    },
    stream::{self, ByteExtent, MAX_SKIPPED, PipeRest, SampleLocation},
    zarr,
};
use crate::{
    data::{
        description::{self as data, Origin},
        dtype::Dtype,
        grid::{GridType, Shape},
        placement::Placement,
        volume::Dims,
    },
    io::{Limits, Source, image::has_planes, losses},
    util::error::{Error, Hint, Result},
};

/// The files of a folder, a pattern or a store, or a header and the files that it names; `None` if `source` is one file.
pub fn source_files(source: &Source) -> Result<Option<Vec<Source>>> {
    let Some(path) = source.path() else { return Ok(None) };
    if zarr::is_store(path) {
        return Ok(Some(zarr::files(path).into_iter().map(Source::from).collect()));
    }
    if is_multi_file(source) {
        return slice_files(source, path).map(Some);
    }
    let has_header = by_extension(&source.extension()).is_some_and(|format| !format.is_raw);
    // A pipe can be read only once.
    if !has_header || !can_reopen(source) {
        return Ok(None);
    }
    // An error is reported when the volume is read.
    let file = VolumeFile::describe(source, &Layout { volume: Some(0), ..Layout::default() });
    Ok(match file {
        Ok(VolumeFile { source, location: SampleLocation::DataFiles(files), .. }) => {
            Some([source].into_iter().chain(files.into_iter().map(Source::from)).collect())
        }
        _ => None,
    })
}

/// Whether `source` can be read more than once.
pub fn can_reopen(source: &Source) -> bool {
    is_multi_file(source) || matches!(source.size(), Ok(Some(_)))
}

/// The loss of volumes of colours, unless [`VolumeFile::keep_colors`] is called.
const GREY: &str = "colours become grey: the mean of red, green and blue";

/// A volume whose shape is known and whose samples are still to be read.
#[derive(Clone)]
pub struct VolumeFile {
    pub(super) source: Source,
    pub(super) format: &'static Format,
    description: Description,
    pub(super) location: SampleLocation,
    /// Index of the chosen volume.
    pub(super) volume: usize,
    /// Whether colours are read as channels. Else they become grey.
    keeps_colors: bool,
    /// A pipe whose header has been read. The first reader takes it.
    pub(super) pipe: Option<Arc<Mutex<Option<PipeRest>>>>,
    warnings_reported: Arc<AtomicBool>,
    /// The metadata of a Zarr store.
    pub(super) zarr: Option<Arc<zarr::Image>>,
}

impl Deref for VolumeFile {
    type Target = Description;

    fn deref(&self) -> &Description {
        &self.description
    }
}

impl fmt::Debug for VolumeFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VolumeFile")
            .field("source", &self.source)
            .field("description", &self.description)
            .finish_non_exhaustive()
    }
}

impl VolumeFile {
    /// Reads the header of `source`, or takes the shape of a raw volume from `layout`, its name or its size.
    pub fn describe(source: &Source, layout: &Layout) -> Result<Self> {
        let input = recognize(source, layout)?;
        let (format, source) = (input.format, input.source.clone());
        check_flags(&source, layout, format)?;
        let OpenedVolume { mut description, location, pipe, zarr } = (format.open)(input)?;
        let volume = match (layout.volume, description.volumes) {
            (Some(volume), volumes) if volume < volumes => volume,
            (None, 1) => 0,
            (chosen, volumes) => {
                let noun = description.volume_noun;
                return Err(wrong_volume(&source, (chosen, volumes), noun, format.has_channels));
            }
        };
        if let Some(header) = &mut description.nifti {
            header.volume = volume;
        }
        let mut file = Self {
            source,
            format,
            description,
            location,
            volume,
            keeps_colors: false,
            pipe: pipe.map(|pipe| Arc::new(Mutex::new(Some(pipe)))),
            warnings_reported: Arc::default(),
            zarr,
        };
        file.check_size()?;
        file.check_length()?;
        if let StoredType::As(dtype @ (Dtype::U64 | Dtype::I64)) = file.stored {
            file.description.losses.push(Loss::Integers(dtype));
        }
        if file.colors > 1 {
            file.description.losses.push(GREY.into());
        }
        Ok(file)
    }

    /// The description of a volume in memory, to write it. It cannot be read.
    pub fn in_memory(dims: [usize; 3], dtype: Dtype, placement: Option<Placement>) -> Self {
        let description = Description::new(dims, StoredType::As(dtype), 0);
        Self {
            source: Source::Stdin,
            format: DEFAULT_OUTPUT,
            description: Description { placement, ..description },
            location: SampleLocation::DataFiles(Vec::new()),
            volume: 0,
            keeps_colors: false,
            pipe: None,
            warnings_reported: Arc::default(),
            zarr: None,
        }
    }

    /// Another volume of the same file.
    pub fn with_volume(&self, volume: usize) -> Self {
        let mut other = Self { volume, warnings_reported: Arc::default(), ..self.clone() };
        if let Some(header) = &mut other.description.nifti {
            header.volume = volume;
        }
        other
    }

    /// Checks sizes before anything is allocated for them.
    fn check_size(&self) -> Result<()> {
        let (source, Description { skip, encoding, dims, .. }) = (&self.source, &**self);
        let (is_packed, files) = match &self.location {
            SampleLocation::HeaderFile { packing, .. } => (packing.is_some(), 1),
            SampleLocation::DataFiles(files) => (false, files.len() as u64),
            SampleLocation::Slices(_) => (false, 1),
        };
        let skipped = skip.from.saturating_add(skip.bytes.unwrap_or(0)).saturating_mul(files);
        if (is_packed || *encoding != Encoding::Raw) && skipped > MAX_SKIPPED {
            return Err(Error::bad_input(format_args!(
                "{source}: invalid offset of the samples in compressed data: {skipped}"
            )));
        }
        let bytes = self.bytes().filter(|&bytes| isize::try_from(bytes).is_ok());
        match bytes.and(self.extent()) {
            Some(_) => Ok(()),
            None => Err(Error::bad_input(format_args!(
                "{source}: a volume of {} samples is too large for this machine",
                Dims(*dims)
            ))),
        }
    }

    /// Stored bytes of the volumes before the chosen one, and of all; `None` on overflow.
    pub(super) fn extent(&self) -> Option<ByteExtent> {
        let Description { dims, volumes, stored, colors, .. } = &**self;
        let samples = dims.iter().try_fold(1u64, |n, &dim| n.checked_mul(dim as u64))?;
        let bytes = samples.checked_mul((colors * stored.size()) as u64)?;
        let inner = interleaved::count(&self.inner_axes);
        let group = bytes.checked_mul(inner as u64)?;
        Some(ByteExtent {
            before: group.checked_mul((self.volume / inner) as u64)?,
            all: bytes.checked_mul(*volumes as u64)?,
        })
    }

    /// Compares the length of uncompressed samples with that of the shape.
    fn check_length(&mut self) -> Result<()> {
        let Description { skip, encoding, dims, stored, volumes, .. } = &**self;
        let (Some(after), true) = (skip.bytes, stream::is_plain(*skip, *encoding)) else {
            return Ok(());
        };
        let sizes: Option<Vec<u64>> = match &self.location {
            SampleLocation::HeaderFile { packing: Some(_), .. } | SampleLocation::Slices(_) => None,
            SampleLocation::HeaderFile { source, .. } => source.size()?.map(|size| vec![size]),
            SampleLocation::DataFiles(paths) => {
                let size = |path: &PathBuf| Source::from(&**path).size();
                paths.iter().map(size).collect::<Result<Option<Vec<u64>>>>()?
            }
        };
        let Some(sizes) = sizes else { return Ok(()) };
        let head = skip.from.saturating_add(after);
        let found =
            sizes.iter().fold(0u64, |sum, size| sum.saturating_add(size.saturating_sub(head)));
        let Some(ByteExtent { all, .. }) = self.extent() else { return Ok(()) };
        if found < all {
            let times = if *volumes > 1 { format!("{volumes} times ") } else { String::new() };
            return Err(Error::bad_input(format_args!(
                "{}: {times}{} samples of {} take {all} bytes, but the file has only {found}",
                self.source,
                Dims(*dims),
                stored.name()
            )));
        }
        if found > all {
            self.description.losses.push(Loss::Trailing(found - all));
        }
        Ok(())
    }

    /// Announces that 64-bit integers will be read by [`VolumeReader::read_integers`], without conversion to f64.
    /// Returns their type; `None` if the volume stores no such values.
    pub fn keep_integers(&mut self) -> Option<Dtype> {
        // Slices are read as f64.
        if self.slices().is_some() {
            return None;
        }
        let Description { stored, scale, colors, ref mut losses, .. } = self.description;
        match (stored, scale) {
            (StoredType::As(dtype @ (Dtype::U64 | Dtype::I64)), None) if colors == 1 => {
                losses.retain(|loss| !matches!(loss, Loss::Integers(_)));
                Some(dtype)
            }
            _ => None,
        }
    }

    /// Reads colours as channels.
    pub fn keep_colors(&mut self) {
        self.keeps_colors = true;
        self.description.losses.retain(|loss| *loss != Loss::from(GREY));
    }

    /// Number of channels of the samples that are read.
    pub fn channels(&self) -> usize {
        if self.keeps_colors { self.colors } else { 1 }
    }

    /// The input that holds the volume.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Whether the volume can be read more than once.
    pub fn can_reopen(&self) -> bool {
        self.pipe.is_none() && can_reopen(&self.source)
    }

    /// Size and sample type of the volume in memory.
    pub fn grid_type(&self) -> GridType {
        GridType { shape: Shape { dims: self.dims, channels: self.channels() }, dtype: self.dtype }
    }

    /// Size, type, kind and placement of the samples.
    pub fn description(&self) -> data::Description {
        data::Description { placement: self.placement.clone(), ..self.grid_type().into() }
    }

    /// The header of the result of a filter of the file; `describe` describes the result.
    pub fn with_result(
        &self,
        describe: impl Fn(data::Description) -> Result<data::Description>,
    ) -> Result<Self> {
        let mut own = self.description.clone();
        let result = describe(self.description())?;
        let Shape { dims, channels } = result.grid.shape;
        own.placement = result.placement;
        let is_moved = dims != own.dims || own.placement != self.placement;
        (own.dims, own.colors) = (dims, channels);
        if result.origin == Origin::Other
            || result.origin == Origin::SameQuantity
                && own.metadata.iter().any(nifti::is_label_intent)
        {
            own.metadata.retain(|(name, _)| !nifti::is_intent(name));
        }
        if let Some(header) = &mut own.nifti {
            if let Some(qform) = header.qform.take() {
                let placed = data::Description { placement: Some(qform), ..self.description() };
                header.qform = describe(placed)?.placement;
            }
            header.has_same_slices &= !is_moved;
            header.has_same_quantity &= result.origin != Origin::Other;
        }
        Ok(Self { description: own, keeps_colors: true, ..self.clone() })
    }

    /// A volume that is computed from this one. `result` describes its samples, which `slices` returns.
    pub fn with_slices(&self, result: data::Description, slices: Arc<dyn Slices>) -> Self {
        let data::Description { grid, placement, .. } = result;
        let description = Description {
            dims: grid.shape.dims,
            dtype: grid.dtype,
            stored: StoredType::As(grid.dtype),
            colors: 1,
            scale: None,
            volumes: 1,
            transposed: false,
            inner_axes: Vec::new(),
            placement,
            // Reading the samples reports those of this file.
            warnings: Vec::new(),
            losses: Vec::new(),
            ..self.description.clone()
        };
        let location = SampleLocation::Slices(slices);
        let warnings_reported = Arc::default();
        Self { description, location, volume: 0, pipe: None, warnings_reported, ..self.clone() }
    }

    /// Bytes of all samples in memory; `None` on overflow.
    pub fn bytes(&self) -> Option<u64> {
        let count = self.dims.iter().try_fold(1u64, |n, &dim| n.checked_mul(dim as u64))?;
        count.checked_mul((self.channels() * self.dtype.size()) as u64)
    }

    /// Bytes of memory that a reader takes in addition to the samples that it returns: an array in Fortran order is read
    /// as a whole, slices need memory to be decoded, colours become grey.
    pub fn reader_bytes(&self) -> u64 {
        match &self.location {
            SampleLocation::Slices(slices) => stack::scratch_bytes(&**slices),
            _ if self.transposed => self.bytes().unwrap_or(u64::MAX),
            // The colours of a slice that becomes grey.
            _ if self.colors > self.channels() => {
                let numbers = self.dims[0].saturating_mul(self.dims[1]) as u64;
                numbers.saturating_mul((self.colors * self.dtype.size()) as u64)
            }
            _ => 0,
        }
    }

    /// Bytes of the file, or of all files of a volume of slices; `None` for a pipe.
    pub fn file_bytes(&self) -> Result<Option<u64>> {
        match self.description.file_bytes {
            Some(bytes) => Ok(Some(bytes)),
            None => self.source.size(),
        }
    }

    pub(super) fn slices(&self) -> Option<&Arc<dyn Slices>> {
        match &self.location {
            SampleLocation::Slices(slices) => Some(slices),
            _ => None,
        }
    }

    /// Number of slices that are stored together, as in chunks.
    pub fn layer(&self) -> usize {
        self.slices().map_or(1, |slices| slices.layer())
    }

    /// The format's name.
    pub fn format(&self) -> &str {
        self.variant.as_deref().unwrap_or(self.format.name)
    }

    /// A message about metadata that an output does not keep; `None` if it keeps all.
    pub(super) fn dropped_metadata(
        &self,
        keeps: impl Fn(&(String, String)) -> bool,
    ) -> Option<String> {
        let dropped = self.metadata.iter().filter(|entry| !keeps(entry));
        let names: Vec<&str> = dropped.map(|(name, _)| name.as_str()).collect();
        let list = names.join(", ");
        let list: String = list.chars().filter(|c| !c.is_control()).take(200).collect();
        (!names.is_empty()).then(|| format!("metadata is dropped ({list})"))
    }

    /// Messages about assumptions, and about content of the file that the volume does not have.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let Description { warnings, losses, .. } = &**self;
        warnings.iter().cloned().chain(losses.iter().map(ToString::to_string))
    }

    /// Checks the volume against `limits`, and reports its warnings once.
    pub fn check(&self, limits: Limits) -> Result<()> {
        limits.check(&self.dims).map_err(|error| error.context(&self.source))?;
        let bytes = self.bytes().unwrap_or(u64::MAX);
        if self.transposed && bytes > limits.bytes() / 3 {
            let what =
                format_args!("{}: an array in Fortran order, which is reordered,", self.source);
            return Err(limits.exceeded(what, bytes.saturating_mul(3)));
        }
        self.allow(limits)?;
        if !self.warnings_reported.swap(true, Ordering::Relaxed) {
            let report = |loss| losses::report(&self.source, loss, limits.strict);
            self.losses.iter().try_for_each(report)?;
            self.warnings.iter().for_each(|text| log::warn!("{}: {text}", self.source));
        }
        Ok(())
    }

    /// Sets the limit of memory for readers.
    pub fn allow(&self, limits: Limits) -> Result<()> {
        let allowed = self.slices().map_or(Ok(()), |slices| slices.allow(limits));
        allowed.map_err(|error| error.context(&self.source))
    }

    /// Checks that all samples together take no more memory than `limits` allow.
    pub fn check_bytes(&self, limits: Limits) -> Result<()> {
        let bytes = self.bytes().unwrap_or(u64::MAX);
        match bytes <= limits.bytes() {
            true => Ok(()),
            false => {
                let what = format_args!("{}: a volume of {} samples", self.source, Dims(self.dims));
                Err(limits.exceeded(what, bytes))
            }
        }
    }
}

/// Fails if `layout` has flags for other formats.
fn check_flags(source: &Source, layout: &Layout, format: &Format) -> Result<()> {
    let chooses = [layout.channel, layout.time, layout.level].iter().any(Option::is_some);
    if (layout.dtype.is_some() || layout.endian.is_some()) && !format.is_raw {
        return Err(Error::usage(format_args!(
            "{source}: type and byte order can be set for raw volumes only; {} files state both",
            format.name
        )));
    }
    if layout.series.is_some() && !format.has_series {
        return Err(Error::usage(format_args!("{source}: only DICOM files have series")));
    }
    if chooses && !format.has_channels {
        return Err(Error::usage(format_args!(
            "{source}: channel, time and level can be chosen only in Zarr images; here, volumes have numbers"
        )));
    }
    Ok(())
}

fn wrong_volume(
    source: &Source,
    (chosen, volumes): (Option<usize>, usize),
    noun: &'static str,
    has_channels: bool,
) -> Error {
    match chosen {
        Some(chosen) => Error::usage(format_args!(
            "{source}: volume {} does not exist; expected 1 to {volumes}",
            chosen + 1
        )),
        None => Error::bad_input(format_args!("{source}: file contains {volumes} {noun}"))
            .with_hint(match noun {
                "volumes" if has_planes(source) => Hint::VolumeOrPages,
                noun if has_channels && noun != "volumes" => Hint::ZarrVolume(noun),
                _ => Hint::VolumeNumber,
            }),
    }
}
