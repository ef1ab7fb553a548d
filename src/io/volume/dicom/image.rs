//! A DICOM file with pixels.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    sync::{Mutex, PoisonError},
};

use super::{
    attributes::{
        Attributes, DOSE_SCALE, FRAMES, INTERCEPT, PALETTE_DATA, PALETTE_SEGMENTS, SLOPE,
    },
    dataset::{self, Dataset, Input},
    frames::{self, Frames},
    mosaic::Mosaic,
    pixel_format::PixelFormat,
    syntax::Compression,
};
use crate::{
    io::{
        Source, temporary_file, temporary_folder,
        volume::{
            header::{BoxError, Scale},
            stream,
        },
    },
    util::error::Error,
};

/// A file with pixels: its attributes, and the positions of its frames.
#[derive(Debug)]
pub struct Image {
    pub source: Source,
    pub data: Dataset,
    /// Storage of a frame.
    pub stored: PixelFormat,
    /// Format of a slice: of a frame or one of its tiles, in grey.
    pub format: PixelFormat,
    pub frames: Frames,
    /// The tiles of each frame that are slices; `None` if frames are slices.
    pub mosaic: Option<Mosaic>,
    /// Number of slices.
    pub count: usize,
    /// The inflated pixels of a deflated data set with several frames.
    inflated: Mutex<Option<File>>,
}

/// A file that cannot be read, with the attributes that are known.
#[derive(Debug)]
pub struct Refusal {
    pub source: Source,
    pub top: Attributes,
    pub error: BoxError,
}

impl Refusal {
    /// The error of reading the file.
    pub fn into_error(self) -> Error {
        unreadable(&self.source, self.error)
    }
}

impl Image {
    /// Reads the attributes of a file, but not its pixels. `None` if the file has no pixels.
    pub fn open(source: &Source) -> Result<Option<Self>, Refusal> {
        let refusal = |top, error| Refusal { source: source.clone(), top, error };
        let mut data =
            dataset::read(source).map_err(|error| refusal(Attributes::default(), error))?;
        let Some(pixels) = data.pixels else { return Ok(None) };
        let layout = || -> Result<_, BoxError> {
            if let Compression::Refused(name) = data.syntax.compression {
                return Err(format!(
                    "compression of pixels by {name} is not supported; decompress them first, as by gdcmconv"
                )
                .into());
            }
            let stored = PixelFormat::new(&data.top, &pixels)?;
            let count = data.top.number(FRAMES).unwrap_or(1.0);
            if !(1.0..=dataset::MAX_FRAMES as f64).contains(&count) {
                return Err(format!("invalid number of frames: {count}").into());
            }
            let count = count as usize;
            let mosaic = Mosaic::find(&data, &stored)?;
            let slices = count.saturating_mul(mosaic.map_or(1, |mosaic| mosaic.count));
            if slices > dataset::MAX_FRAMES {
                return Err(
                    format!("more slices than the maximum of {}", dataset::MAX_FRAMES).into()
                );
            }
            let len = source.size()?.unwrap_or(0);
            Ok((stored, mosaic, slices, frames::frames(source, &data, &stored, count, len)?))
        };
        let (stored, mosaic, count, frames) = match layout() {
            Ok(layout) => layout,
            Err(error) => return Err(refusal(data.top, error)),
        };
        // They are read again with each frame.
        data.top.0.retain(|tag, _| ![PALETTE_DATA, PALETTE_SEGMENTS].as_flattened().contains(tag));
        let format = stored.of_slices(mosaic.map_or(1, |mosaic| mosaic.side));
        let (source, inflated) = (source.clone(), Mutex::default());
        Ok(Some(Self { source, data, stored, format, frames, mosaic, count, inflated }))
    }

    /// Number of frames.
    pub fn frame_count(&self) -> usize {
        self.count / self.mosaic.map_or(1, |mosaic| mosaic.count)
    }

    /// The frame that holds a slice, and the tile in it.
    pub fn location(&self, slice: usize) -> (usize, usize) {
        let tiles = self.mosaic.map_or(1, |mosaic| mosaic.count);
        (slice / tiles, slice % tiles)
    }

    /// Fills `bytes` from offset `at` of the data set. A deflated data set can only be read from its beginning, so the
    /// pixels of several frames are inflated once, to a temporary file.
    pub fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let is_deflated = self.data.syntax.deflated;
        if !is_deflated || self.frame_count() == 1 {
            return Input::open(&self.source, is_deflated, at)?.read_exact(bytes);
        }
        let pixels = self.data.pixels.expect("checked before");
        let mut inflated = self.inflated.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &mut *inflated {
            Some(file) => file,
            none => {
                let mut file = temporary_file(&temporary_folder())?;
                let input = Input::open(&self.source, true, pixels.at)?;
                io::copy(&mut input.take(pixels.len.unwrap_or(u64::MAX)), &mut file)?;
                none.insert(file)
            }
        };
        file.seek(SeekFrom::Start(at - pixels.at))?;
        file.read_exact(bytes)
    }

    /// The attributes of a slice, by precedence: its own functional groups, those shared by all frames, those of the
    /// file (PS3.3, C.7.6.16).
    fn attributes(&self, slice: usize) -> [Option<&Attributes>; 3] {
        let of_tiles = self.mosaic.is_some_and(|mosaic| mosaic.has_positions);
        let own = if of_tiles { slice } else { self.location(slice).0 };
        [self.data.frames.get(own), Some(&self.data.shared), Some(&self.data.top)]
    }

    /// The first value that `get` finds in [`Self::attributes`] of a slice.
    pub fn find<'a, T>(
        &'a self,
        slice: usize,
        get: impl Fn(&'a Attributes) -> Option<T>,
    ) -> Option<T> {
        self.attributes(slice).into_iter().flatten().find_map(get)
    }

    /// Slope and intercept from stored numbers to values; `None` if they change nothing or are invalid.
    pub fn scale(&self, slice: usize) -> Option<Scale> {
        let number = |tag| self.find(slice, |attributes| attributes.number(tag));
        let (slope, intercept) = match number(DOSE_SCALE) {
            Some(slope) => (slope, 0.0),
            None => (number(SLOPE).unwrap_or(1.0), number(INTERCEPT).unwrap_or(0.0)),
        };
        let is_identity = (slope, intercept) == (1.0, 0.0);
        let is_valid = slope.is_finite() && intercept.is_finite() && slope != 0.0;
        (is_valid && !is_identity && self.stored.palette.is_none())
            .then_some(Scale { slope, intercept })
    }
}

/// A slice of one of the images of a series.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    pub image: usize,
    /// Number in the image; `None` for a slice of zeros that a segmentation does not store.
    pub number: Option<usize>,
    pub scale: Option<Scale>,
}

/// Adds the name of the file to an error of reading it.
pub fn unreadable(source: &Source, error: BoxError) -> Error {
    let message = format!("cannot read {source} as DICOM");
    match error.downcast_ref::<io::Error>() {
        Some(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Error::bad_input(format_args!("{message}: file ends early"))
        }
        _ => stream::unreadable(source, message, error),
    }
}
