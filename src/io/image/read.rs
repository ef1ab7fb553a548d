//! Image files of every format: opened, then decoded page by page.

use std::{
    fs::File,
    io::{BufReader, Cursor, Read},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, PoisonError},
};

use super::{
    ImageFormat,
    codec::{Animation, BoxError, Decode, Decoded, OnePage, Pages, ReadSeek},
    foreign, jpeg,
};
use crate::{
    data::image::Image,
    error::{Error, Result},
    io::{Limits, Source, losses},
    memory,
    timings::Timings,
};

/// Reads and decodes `source`, whatever its name says of its format: the first page of several, which is told. A
/// picture stored rotated comes out upright. The file and its samples each take at most `limits`.
///
/// # Errors
/// [`Kind::Io`](crate::error::Kind::Io) when it cannot be read, [`Kind::BadInput`](crate::error::Kind::BadInput) when
/// it is no image, a broken one, or too large.
pub fn read_image(source: &Source, limits: impl Into<Limits>, timings: &Timings) -> Result<Image> {
    ImageFile::read(source, limits, timings)?.decode(timings)
}

/// A file that is read or opened but not decoded.
#[derive(Debug)]
pub struct ImageFile<'a> {
    source: &'a Source,
    data: Data,
    limits: Limits,
    /// Losses that have been told.
    told: Mutex<Vec<String>>,
}

#[derive(Debug)]
enum Data {
    /// All its bytes.
    Bytes(Vec<u8>),
    /// A file of a format that is read here and there.
    File(File),
}

impl<'a> ImageFile<'a> {
    /// Reads `source`, or opens it where it need not lie in memory. The file and its samples each take at most
    /// `limits`.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::error::Kind::Io) when it cannot be read.
    pub fn read(source: &'a Source, limits: impl Into<Limits>, timings: &Timings) -> Result<Self> {
        let limits = limits.into();
        if let Some(file) = seekable(source)? {
            return Ok(Self { source, data: Data::File(file), limits, told: Mutex::default() });
        }
        let bytes = timings.time("read", || source.read_all(limits.bytes))?;
        Ok(Self { source, data: Data::Bytes(bytes), limits, told: Mutex::default() })
    }

    /// Looks for the pages of the file.
    ///
    /// # Errors
    /// [`Kind::BadInput`](crate::error::Kind::BadInput) when it is no image, or a broken one.
    pub fn pages(&self, timings: &Timings) -> Result<ImagePages<'_>> {
        let pages = self.catching(timings, || {
            let codec = self.found()?.codec();
            Ok(match (codec.decode, &self.data) {
                (Decode::One(decode), Data::Bytes(bytes)) => {
                    Box::new(OnePage { bytes, limits: self.limits, decode }) as Box<dyn Pages>
                }
                (Decode::Pages(open), Data::Bytes(bytes)) => open(bytes, self.limits)?,
                (Decode::Seeking(open), Data::Bytes(bytes)) => {
                    open(Box::new(Cursor::new(&bytes[..])), self.limits)?
                }
                (Decode::Seeking(open), Data::File(file)) => {
                    open(Box::new(BufReader::new(file)) as Box<dyn ReadSeek>, self.limits)?
                }
                _ => return Err("the file has changed".into()),
            })
        })?;
        Ok(ImagePages { file: self, pages })
    }

    /// Its format.
    ///
    /// # Errors
    /// [`Kind::BadInput`](crate::error::Kind::BadInput) when it is no image that is known.
    pub fn format(&self) -> Result<ImageFormat> {
        self.found().map_err(|error| self.cannot_decode(error))
    }

    /// All its bytes, where they are in memory.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.data {
            Data::Bytes(bytes) => Some(bytes),
            Data::File(_) => None,
        }
    }

    /// Decodes the first page. That there are others is told.
    ///
    /// # Errors
    /// [`Kind::BadInput`](crate::error::Kind::BadInput) when it is no image, a broken one, or too large.
    pub fn decode(&self, timings: &Timings) -> Result<Image> {
        let mut pages = self.pages(timings)?;
        if pages.count() > 1 {
            pages.tell_first_only()?;
        }
        pages.decode(0, timings)
    }

    /// Decodes page `page`, counted from 0.
    ///
    /// # Errors
    /// [`Kind::BadInput`](crate::error::Kind::BadInput) when there is no such page, and as [`ImageFile::decode`].
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

    /// The coefficients of a JPEG file; nothing of other files, nor where its pixels have to be turned.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn jpeg(&self, timings: &Timings) -> Result<Option<jpeg::Picture>> {
        let Data::Bytes(bytes) = &self.data else {
            return Ok(None);
        };
        let picture = self.catching(timings, || Ok(jpeg::read_coefficients(bytes, self.limits)))?;
        if let Some(picture) = &picture {
            self.tell(&picture.losses, picture.damage.as_deref())?;
        }
        Ok(picture)
    }

    /// Samples a pixel of a JPEG file, whose pixels [`ImageFile::consume_jpeg`] may hand out.
    pub fn jpeg_channels(&self) -> Option<usize> {
        self.bytes().filter(|bytes| (jpeg::CODEC.has_signature)(bytes)).and_then(jpeg::channels)
    }

    /// Hands all pixels of a JPEG file to `consume`, whole rows as they are stored, from several threads and in any order.
    /// Their memory comes back from it. Returns whether that was possible: it is not for files of rare kinds.
    ///
    /// # Errors
    /// [`Kind::BadInput`](crate::error::Kind::BadInput) when the file is damaged and that is not allowed.
    pub fn consume_jpeg(&self, consume: &(dyn Fn(Vec<u8>) -> Vec<u8> + Sync)) -> Result<bool> {
        let Some(bytes) = self.bytes() else { return Ok(false) };
        let consumed = caught(|| Ok(jpeg::consume(bytes, self.limits, consume)));
        let consumed = consumed.map_err(|error| self.cannot_decode(error))?;
        let Some(consumed) = consumed else { return Ok(false) };
        self.tell(&consumed.losses, consumed.damage.as_deref())?;
        Ok(true)
    }

    fn found(&self) -> Result<ImageFormat, BoxError> {
        let extension = self.source.extension();
        match &self.data {
            Data::Bytes(bytes) => ImageFormat::of_file(bytes, &extension),
            Data::File(file) => ImageFormat::of_file(&beginning(file)?, &extension),
        }
    }

    fn cannot_decode(&self, cause: BoxError) -> Error {
        Error::bad_input(format_args!("cannot decode {}", self.source)).caused_by(cause)
    }

    /// Tells what of the file its image does not have.
    fn tell(&self, lost: &[String], damage: Option<&str>) -> Result<()> {
        let Self { source, limits: Limits { strict, .. }, .. } = *self;
        match damage {
            Some(damage) if strict => {
                return Err(
                    Error::bad_input(format_args!("cannot decode {source}")).caused_by(damage)
                );
            }
            Some(damage) => self.tell_once(damage, false)?,
            None => {}
        }
        lost.iter().try_for_each(|loss| self.tell_once(loss, strict))
    }

    /// Tells a loss once, however often the file is decoded.
    fn tell_once(&self, loss: &str, strict: bool) -> Result<()> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if !told.iter().any(|known| known == loss) {
            losses::tell(self.source, loss, strict)?;
            told.push(loss.to_owned());
        }
        Ok(())
    }

    /// Runs `decode`, and tells the file's name where that fails.
    fn catching<T>(
        &self,
        timings: &Timings,
        decode: impl FnOnce() -> Result<T, BoxError>,
    ) -> Result<T> {
        let decoded = timings.time("decode", || caught(decode));
        decoded.map_err(|error| self.cannot_decode(error))
    }
}

/// Decodes a JPEG picture that is a part of a file of another format.
///
/// # Errors
/// When it is no JPEG picture that is known, a broken one, or too large.
pub fn decode_jpeg(bytes: &[u8], limits: Limits) -> Result<Image, BoxError> {
    caught(|| {
        let Decoded { image, damage, .. } = jpeg::decode_file(bytes, limits)?;
        damage.map_or(Ok(image), |damage| Err(damage.into()))
    })
}

/// Runs `decode`. Decoders panic on some broken files.
pub fn caught<T>(decode: impl FnOnce() -> Result<T, BoxError>) -> Result<T, BoxError> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|panic| {
        Err(match memory::raised(panic) {
            Ok(error) => error.into(),
            Err(_) => "the decoder crashed on it".into(),
        })
    })
}

/// `source` where it is a file of a format that is read here and there.
fn seekable(source: &Source) -> Result<Option<File>> {
    let Some(path) = source.path().filter(|path| crate::io::standard::descriptor(path).is_none())
    else {
        return Ok(None);
    };
    if source.size()?.is_none() {
        return Ok(None);
    }
    let failed = |error| Error::io("read", path, error);
    let file = File::open(path).map_err(failed)?;
    let first = beginning(&file).map_err(failed)?;
    let format = ImageFormat::of_file(&first, &source.extension()).ok();
    let seeks = format.is_some_and(|format| matches!(format.codec().decode, Decode::Seeking(_)));
    Ok(seeks.then_some(file))
}

/// The first bytes of a file, from which the next read goes on at the file's start again.
fn beginning(mut file: &File) -> std::io::Result<Vec<u8>> {
    use std::io::Seek;
    file.rewind()?;
    let mut first = Vec::new();
    file.take(foreign::FIRST as u64).read_to_end(&mut first)?;
    file.rewind()?;
    Ok(first)
}

/// The pages of an opened file.
pub struct ImagePages<'a> {
    file: &'a ImageFile<'a>,
    pages: Box<dyn Pages + 'a>,
}

impl std::fmt::Debug for ImagePages<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImagePages").field("count", &self.count()).finish_non_exhaustive()
    }
}

impl ImagePages<'_> {
    /// How many there are: 1 or more.
    pub fn count(&self) -> usize {
        self.pages.count()
    }

    /// How they are shown in time; nothing where they are no animation.
    pub fn animation(&self) -> Option<&Animation> {
        self.pages.animation()
    }

    /// Bytes of the samples of page `page`, counted from 0, where that is known before it is decoded.
    pub fn sample_bytes(&self, page: usize) -> Option<u64> {
        self.pages.sample_bytes(page)
    }

    /// Tells that pages behind the first are left out.
    ///
    /// # Errors
    /// [`Kind::BadInput`](crate::error::Kind::BadInput) where losses are not allowed.
    pub fn tell_first_only(&self) -> Result<()> {
        let Self { file, .. } = self;
        let loss = format!("of its {} pages only the first is read", self.count());
        file.tell_once(&loss, file.limits.strict)
    }

    /// Decodes page `page`, counted from 0. A picture stored rotated comes out upright.
    ///
    /// # Errors
    /// [`Kind::BadInput`](crate::error::Kind::BadInput) when it is broken or too large.
    pub fn decode(&mut self, page: usize, timings: &Timings) -> Result<Image> {
        let Self { file, pages } = self;
        let decoded = file.catching(timings, || pages.decode(page))?;
        let Decoded { image, orientation, losses, damage } = decoded;
        file.tell(&losses, damage.as_deref())?;
        image.upright(orientation).map_err(|error| error.context(file.source))
    }
}
