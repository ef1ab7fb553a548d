//! A DICOM file with pixels.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use super::{
    attributes::{Attributes, DOSE_SCALE, FRAMES, INTERCEPT, SLOPE},
    dataset::{self, Dataset, Input},
    frames::{self, Frames},
    pixel_format::PixelFormat,
};
use crate::io::{
    temporary_file, temporary_folder,
    volume::header::{BoxError, Scale},
};

/// A file with pixels: its attributes, and the positions of its frames.
#[derive(Debug)]
pub struct Image {
    pub path: PathBuf,
    pub data: Dataset,
    pub format: PixelFormat,
    pub frames: Frames,
    /// Number of frames.
    pub count: usize,
    /// The inflated pixels of a deflated data set with several frames.
    inflated: Mutex<Option<File>>,
}

impl Image {
    /// Reads the attributes of a file, but not its pixels. `None` if the file has no pixels.
    pub fn open(path: &Path) -> Result<Option<Self>, BoxError> {
        let data = dataset::read(path)?;
        let Some(pixels) = &data.pixels else { return Ok(None) };
        let format = PixelFormat::new(&data.top, pixels)?;
        let count = data.top.number(FRAMES).unwrap_or(1.0);
        if !(1.0..=dataset::MAX_FRAMES as f64).contains(&count) {
            return Err(format!("invalid number of frames: {count}").into());
        }
        let count = count as usize;
        let len = std::fs::metadata(path)?.len();
        let frames = frames::frames(path, &data, &format, count, len)?;
        let (path, inflated) = (path.to_owned(), Mutex::default());
        Ok(Some(Self { path, data, format, frames, count, inflated }))
    }

    /// Fills `bytes` from offset `at` of the data set. A deflated data set can only be read from its beginning, so the
    /// pixels of several frames are inflated once, to a temporary file.
    pub fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let is_deflated = self.data.syntax.deflated;
        if !is_deflated || self.count == 1 {
            return Input::open(&self.path, is_deflated, at)?.read_exact(bytes);
        }
        let pixels = self.data.pixels.expect("checked before");
        let mut inflated = self.inflated.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &mut *inflated {
            Some(file) => file,
            none => {
                let mut file = temporary_file(&temporary_folder())?;
                let input = Input::open(&self.path, true, pixels.at)?;
                io::copy(&mut input.take(pixels.len.unwrap_or(u64::MAX)), &mut file)?;
                none.insert(file)
            }
        };
        file.seek(SeekFrom::Start(at - pixels.at))?;
        file.read_exact(bytes)
    }

    /// The attributes of a frame, by precedence: its own functional groups, those shared by all frames, those of the
    /// file (PS3.3, C.7.6.16).
    fn attributes(&self, frame: usize) -> [Option<&Attributes>; 3] {
        [self.data.frames.get(frame), Some(&self.data.shared), Some(&self.data.top)]
    }

    /// The first value that `get` finds in [`Self::attributes`] of a frame.
    pub fn find<'a, T>(
        &'a self,
        frame: usize,
        get: impl Fn(&'a Attributes) -> Option<T>,
    ) -> Option<T> {
        self.attributes(frame).into_iter().flatten().find_map(get)
    }

    /// Slope and intercept from stored numbers to values; `None` if they change nothing or are invalid.
    pub fn scale(&self, frame: usize) -> Option<Scale> {
        let number = |tag| self.find(frame, |attributes| attributes.number(tag));
        let (slope, intercept) = match number(DOSE_SCALE) {
            Some(slope) => (slope, 0.0),
            None => (number(SLOPE).unwrap_or(1.0), number(INTERCEPT).unwrap_or(0.0)),
        };
        let is_identity = (slope, intercept) == (1.0, 0.0);
        let is_valid = slope.is_finite() && intercept.is_finite() && slope != 0.0;
        (is_valid && !is_identity).then_some(Scale { slope, intercept })
    }
}

/// A slice: one frame of one of the images of a series.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    pub image: usize,
    pub frame: usize,
    pub scale: Option<Scale>,
}
