//! Reading of image files of every format: a file is opened, then decoded page by page.

use std::{ops::Range, sync::Arc};

use super::{
    codec::{Decode, ReadAt},
    consistency::turn,
    error::{BoxError, catch_panic},
    formats::ImageFormat,
    jpeg,
    pages::{Animation, DecodedPage, OnePage, Pages, Picture, Shrink},
    tiff::bytes::FileBytes,
};
use crate::{
    data::{
        dtype::Dtype,
        grid::{GridType, Shape},
        image::{Image, Orientation},
    },
    io::{Limits, RegularFile, Source, losses::LossLog, standard::descriptor},
    jpeg::{Summary, has_signature},
    util::{
        error::{Error, Hint, Result},
        timings::Timings,
    },
};

/// Reads and decodes the first page of `source`, and reports further pages as a loss. The format is recognized by
/// content, not by name. A rotated image comes out upright. The file and its samples may each take at most
/// `limits`.
pub fn read_image(source: &Source, limits: impl Into<Limits>, timings: &Timings) -> Result<Image> {
    ImageFile::read(source, limits, timings)?.decode(timings)
}

/// An image file that has been read into memory or opened, but not decoded.
#[derive(Debug)]
pub struct ImageFile<'a> {
    source: &'a Source,
    data: Data,
    limits: Limits,
    /// Losses that have been reported.
    reported: LossLog,
}

#[derive(Debug)]
enum Data {
    /// All bytes of the file.
    Bytes(Vec<u8>),
    /// An open file of a format whose decoder seeks ([`Decode::Seeking`]).
    File(Arc<RegularFile>),
}

impl<'a> ImageFile<'a> {
    /// Reads `source`, or only opens it if the decoder of its format seeks. The file and its samples may each take at
    /// most `limits`.
    pub fn read(source: &'a Source, limits: impl Into<Limits>, timings: &Timings) -> Result<Self> {
        let limits = limits.into();
        if let Some(file) = seekable(source)? {
            return Ok(Self {
                source,
                data: Data::File(file),
                limits,
                reported: LossLog::default(),
            });
        }
        let bytes = timings.time("read", || source.read_all(limits))?;
        Ok(Self { source, data: Data::Bytes(bytes), limits, reported: LossLog::default() })
    }

    /// Reads the headers of the pages.
    pub fn pages(&self, timings: &Timings) -> Result<ImagePages<'_>> {
        self.shrunken_pages(&|_, _| None, timings)
    }

    /// As [`ImageFile::pages`], but a JPEG image, or the only page of a TIFF with smaller copies, is decoded in the size that
    /// `shrink` chooses.
    pub fn shrunken_pages<'b>(
        &'b self,
        shrink: Shrink<'b>,
        timings: &Timings,
    ) -> Result<ImagePages<'b>> {
        let pages = self.decode_timed(timings, || {
            let format = self.detect_format()?;
            let codec = format.codec();
            Ok(match (codec.decode, &self.data) {
                (_, Data::Bytes(bytes)) if format == ImageFormat::Jpeg => {
                    let decode = || jpeg::decode_shrunken(bytes, self.limits, shrink);
                    Box::new(OnePage(decode)) as Box<dyn Pages>
                }
                (Decode::One(decode), Data::Bytes(bytes)) => {
                    Box::new(OnePage(move || decode(bytes, self.limits))) as Box<dyn Pages>
                }
                (Decode::Pages(open), Data::Bytes(bytes)) => open(bytes, self.limits)?,
                (Decode::Seeking(open), data) => {
                    let bytes: Arc<dyn ReadAt + '_> = match data {
                        Data::Bytes(bytes) => Arc::new(&bytes[..]),
                        Data::File(file) => Arc::new(FileBytes::new(file)?),
                    };
                    let mut pages = open(bytes, self.limits)?;
                    pages.shrink(shrink);
                    pages
                }
                _ => return Err("the file changed while it was read".into()),
            })
        })?;
        Ok(ImagePages { file: self, pages })
    }

    /// The format of the file.
    pub fn format(&self) -> Result<ImageFormat> {
        self.detect_format().map_err(|error| self.cannot_decode(error))
    }

    /// All bytes of the file, if they are in memory.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.data {
            Data::Bytes(bytes) => Some(bytes),
            Data::File(_) => None,
        }
    }

    /// Decodes the first page. Further pages are reported as a loss.
    pub fn decode(&self, timings: &Timings) -> Result<Image> {
        let mut pages = self.pages(timings)?;
        if pages.count() > 1 {
            pages.report_skipped_pages()?;
        }
        pages.decode(0, timings)
    }

    /// Decodes page `page`, counted from 0.
    pub fn decode_page(&self, page: usize, timings: &Timings) -> Result<Image> {
        let mut pages = self.pages(timings)?;
        if page >= pages.count() {
            let (source, count) = (self.source, pages.count());
            return Err(Error::bad_input(format_args!(
                "{source}: there is no page {}, only {count}",
                page + 1
            )));
        }
        pages.decode(page, timings)
    }

    /// A JPEG image with its coefficients; `None` for other files, and for images that have to be rotated or mirrored.
    pub fn jpeg(&self, timings: &Timings) -> Result<Option<Picture>> {
        let Some(bytes) = self.jpeg_bytes() else { return Ok(None) };
        let read =
            self.decode_timed(timings, || Ok(jpeg::read_coefficients(bytes, self.limits)))?;
        let Some((coefficients, decoded)) = read else { return Ok(None) };
        self.report(&decoded.losses, decoded.damage.as_deref())?;
        Ok(Some(Picture { image: decoded.image, coefficients: Some(coefficients) }))
    }

    /// Size and type of the pixels of a JPEG file of 8 bits, in the stored orientation; `None` for other files, and for
    /// lossless ones.
    pub fn jpeg_type(&self) -> Option<GridType> {
        let Summary { size: [width, height], channels, precision, is_lossless, .. } =
            Summary::new(self.jpeg_bytes()?)?;
        let shape = Shape { dims: [width, height, 1], channels };
        (precision == 8 && !is_lossless).then_some(GridType { shape, dtype: Dtype::U8 })
    }

    /// Decodes a JPEG file and passes its pixels, in the stored orientation, to `consume`: whole rows, from several
    /// threads and in any order.
    pub fn consume_jpeg(&self, consume: &(dyn Fn(&mut Vec<u8>) + Sync)) -> Result<()> {
        let bytes = self.bytes().unwrap_or_default();
        let consumed = catch_panic(|| jpeg::consume(bytes, self.limits, consume));
        let (losses, damage) = consumed.map_err(|error| self.cannot_decode(error))?;
        self.report(&losses, damage.as_deref())
    }

    fn jpeg_bytes(&self) -> Option<&[u8]> {
        self.bytes().filter(|bytes| has_signature(bytes))
    }

    fn detect_format(&self) -> Result<ImageFormat, BoxError> {
        let extension = self.source.extension();
        match &self.data {
            Data::Bytes(bytes) => ImageFormat::from_bytes(bytes, &extension),
            Data::File(file) => ImageFormat::from_bytes(&file.first, &extension),
        }
    }

    fn cannot_decode(&self, cause: BoxError) -> Error {
        Error::bad_input(format_args!("cannot decode {}", self.source)).caused_by(cause)
    }

    /// Reports losses and damage. Damage is a warning, and an error if `strict`.
    fn report(&self, lost: &[String], damage: Option<&str>) -> Result<()> {
        let Self { source, limits: Limits { strict, .. }, .. } = *self;
        match damage {
            Some(damage) if strict => {
                return Err(
                    Error::bad_input(format_args!("cannot decode {source}")).caused_by(damage)
                );
            }
            Some(damage) => self.reported.report_once(source, damage, false)?,
            None => {}
        }
        lost.iter().try_for_each(|loss| self.reported.report_once(source, loss, strict))
    }

    /// Runs `decode` as a timed step, and adds the name of the file to its error.
    fn decode_timed<T>(
        &self,
        timings: &Timings,
        decode: impl FnOnce() -> Result<T, BoxError>,
    ) -> Result<T> {
        let decoded = timings.time("decode", || catch_panic(decode));
        decoded.map_err(|error| self.cannot_decode(error))
    }
}

/// The open file of `source` if it is a regular file of a format whose decoder seeks.
fn seekable(source: &Source) -> Result<Option<Arc<RegularFile>>> {
    Ok(source.regular()?.filter(|file| {
        let format = ImageFormat::from_bytes(&file.first, &source.extension());
        format.is_ok_and(|format| matches!(format.codec().decode, Decode::Seeking(_)))
            && source.path().and_then(descriptor).is_none()
    }))
}

/// Maximum ratio of the decoded bytes of several pages to the bytes of their file.
const MAX_EXPANSION: u64 = 1 << 14;
/// Decoded bytes that several pages may have in a file of any size.
const MIN_EXPANDED_LIMIT: u64 = 256 << 20;

/// The pages of an opened file.
#[expect(missing_debug_implementations, reason = "decoders have none")]
pub struct ImagePages<'a> {
    file: &'a ImageFile<'a>,
    pages: Box<dyn Pages + 'a>,
}

impl ImagePages<'_> {
    /// Number of pages, at least 1.
    pub fn count(&self) -> usize {
        self.pages.count()
    }

    /// Timing of an animation; `None` for other files.
    pub fn animation(&self) -> Option<&Animation> {
        self.pages.animation()
    }

    /// Whether all of `pages` have one size and number of channels, and one type after `stored`, as the frames of an
    /// animation must.
    pub fn are_equal(&self, mut pages: Range<usize>, stored: impl Fn(Dtype) -> Dtype) -> bool {
        let kind = |page| {
            let header = self.pages.header(page)?;
            let dtype = stored(header.image.samples.dtype());
            Some((header.upright_size(), header.image.channels, dtype))
        };
        let first = kind(pages.start);
        pages.all(|page| kind(page) == first)
    }

    /// Checks that the file does not state that its pages are slices of a volume, which are not filtered one by one. This
    /// happens where the input can be read only once: files are recognized as volumes before.
    pub fn check_no_slices(&self) -> Result<()> {
        match self.pages.are_slices() {
            false => Ok(()),
            true => Err(Error::usage(format_args!(
                "{}: the slices of a volume in a TIFF cannot be read from a pipe: name a file",
                self.file.source
            ))
            .with_hint(Hint::Pages)),
        }
    }

    /// Bytes of the samples of page `page`, counted from 0, if known before the page is decoded.
    pub fn sample_bytes(&self, page: usize) -> Option<u64> {
        self.pages.sample_bytes(page)
    }

    /// Bytes of the samples of `pages` whose sizes are known. Refuses far more bytes than the size of the file allows,
    /// since a few bytes of an animation can declare another frame of any size.
    pub fn check_all(&self, pages: Range<usize>) -> Result<u64> {
        let count = pages.len();
        let sizes = pages.map(|page| self.sample_bytes(page).unwrap_or(0));
        let all = sizes.fold(0, u64::saturating_add);
        let file_bytes = match &self.file.data {
            Data::Bytes(bytes) => bytes.len() as u64,
            Data::File(file) => file.file().metadata().map_or(0, |found| found.len()),
        };
        if count < 2 || all <= MIN_EXPANDED_LIMIT.max(file_bytes.saturating_mul(MAX_EXPANSION)) {
            return Ok(all);
        }
        Err(Error::bad_input(format_args!(
            "{}: {count} pages take {all} bytes, far too many for a file of {file_bytes} bytes",
            self.file.source
        )))
    }

    /// Reports that only the first page is read.
    pub fn report_skipped_pages(&self) -> Result<()> {
        let Self { file, .. } = self;
        let loss = format!("only the first of its {} pages is read", self.count());
        file.reported.report_once(file.source, &loss, file.limits.strict)
    }

    /// Decodes page `page`, counted from 0. A rotated image comes out upright.
    pub fn decode(&mut self, page: usize, timings: &Timings) -> Result<Image> {
        let Self { file, pages } = self;
        let decoded = file.decode_timed(timings, || pages.decode(page))?;
        let DecodedPage { mut image, orientation, losses, damage } = decoded;
        file.report(&losses, damage.as_deref())?;
        if orientation != Orientation::default() {
            turn(&mut image.metadata, orientation);
        }
        image.upright(orientation).map_err(|error| error.context(file.source))
    }
}
