//! TIFF and BigTIFF. Reading goes through these modules: directories (`directory`) state where the strips and tiles
//! (`chunk`) of a page (`page`, `chunk_table`) are; these are decoded to rows of samples (`rows`), and samples are
//! converted to a picture (`picture`). Files are written by `encode`.

mod bytes;
mod chunk;
mod chunk_table;
mod directory;
mod encode;
mod exif;
mod ome;
mod page;
mod picture;
mod planes;
mod rows;
mod stack;
mod tag;
mod tree;
mod unpack;

use std::{fs, iter, panic::catch_unwind, path::Path, sync::Arc};

pub use self::planes::Planes;
use self::{
    bytes::{FileBytes, SharedBytes},
    directory::{Directory, File, PageList},
    encode::Outgoing,
    exif::Exif,
    page::Page,
    picture::Meaning,
    rows::{Rows, TALL},
    tree::Value,
};
use super::{
    codec::{Beside, BoxError, Codec, Decode, Decoded, Holds, Pages, ReadSeek, Texts},
    limits::check_size,
    metadata::{LONGEST_ICC, LONGEST_IPTC, LONGEST_XMP, capped_exif, fits},
    probe::{Probe, in_words},
    read::caught,
    rows::{ReadRows, RowsInfo},
};
use crate::{
    data::{
        dtype::Dtype,
        image::{Density, DensityUnit, Image, Metadata, Orientation, PagesText, Part},
        length,
        samples::Samples,
    },
    io::{Limits, Source, losses},
    util::error::{Error, Result},
};

/// TIFF.
pub(super) const CODEC: Codec = Codec {
    extensions: &["tif", "tiff"],
    has_signature: |bytes| {
        [b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"]
            .iter()
            .any(|signature| bytes.starts_with(*signature))
    },
    holds: Holds {
        dtypes: &Dtype::SAMPLES,
        alpha: true,
        linear: false,
        true_colour: true,
        animation: false,
        metadata: Beside { texts: Texts::Of(&encode::TEXTS), pages: true, ..Beside::ALL },
    },
    decode: Decode::Seeking(open_pages),
    encode: |image, _| encode::encode(image),
    encode_pages: Some(encode::encode_pages),
};

fn open_pages<'a>(
    input: Box<dyn ReadSeek + 'a>,
    limits: Limits,
) -> Result<Box<dyn Pages + 'a>, BoxError> {
    let file = File::open(Arc::new(SharedBytes::new(input)?))?;
    let pages = file.pages()?;
    let told = Told::of(&file, &pages)?;
    Ok(Box::new(TiffPages { file, pages: pages.offsets, told, limits }))
}

/// What the description (tag 270) of the first page states about all pages, and which of them are missing.
#[derive(Clone, Debug, Default)]
struct Told {
    /// Whether the description is about the pages of the file, not about the picture.
    is_of_pages: bool,
    pages: Option<PagesText>,
    /// What is lost of the description, and which pages are missing, in words.
    losses: Vec<String>,
}

impl Told {
    fn of(file: &File<'_>, pages: &PageList) -> Result<Self, BoxError> {
        let mut told = Self::described(file, &pages.offsets)?;
        told.losses.extend(pages.loss.clone());
        Ok(told)
    }

    fn described(file: &File<'_>, pages: &[u64]) -> Result<Self, BoxError> {
        /// Maximum length in bytes of a description that is kept.
        const LONGEST: u64 = 1 << 20;
        let directory = file.directory(pages[0])?;
        let Some(entry) = directory.find(tag::DESCRIPTION) else { return Ok(Self::default()) };
        let text = file.text(&directory, tag::DESCRIPTION).unwrap_or_default();
        let Some(by) = stack::writer(&text) else { return Ok(Self::default()) };
        let page = Page::read(file, &directory)?;
        let loss = stack::loss(by, &text);
        if by == stack::Writer::Tifffile && loss.is_none() && (pages.len() == 1 || page.is_planar) {
            // The description only states the shape of the file that tifffile wrote.
            return Ok(Self { is_of_pages: true, ..Self::default() });
        }
        if entry.bytes() > LONGEST {
            let losses = loss.map(str::to_owned).into_iter().collect();
            return Ok(Self { is_of_pages: true, pages: None, losses });
        }
        let pages = PagesText {
            text: text.into(),
            pages: pages.len(),
            dtype: page.dtype,
            is_divisible: by == stack::Writer::ImageJ,
            loss,
        };
        Ok(Self { is_of_pages: true, pages: Some(pages), losses: Vec::new() })
    }
}

/// The pages of a file.
struct TiffPages<'a> {
    file: File<'a>,
    /// Offsets of their directories.
    pages: Vec<u64>,
    told: Told,
    limits: Limits,
}

impl Pages for TiffPages<'_> {
    fn count(&self) -> usize {
        self.pages.len()
    }

    fn decode(&mut self, page: usize) -> Result<Decoded, BoxError> {
        decode_page(&self.file, self.pages[page], &self.told, self.limits)
    }

    fn sample_bytes(&self, page: usize) -> Option<u64> {
        let directory = self.file.directory(*self.pages.get(page)?).ok()?;
        let page = Page::read(&self.file, &directory).ok()?;
        let meaning = Meaning::of(&self.file, &directory, &page).ok()?;
        Some(meaning.bytes(&page))
    }
}

/// A page whose directory is read.
struct Opened {
    page: Page,
    meaning: Meaning,
    metadata: Metadata,
    orientation: Orientation,
    losses: Vec<String>,
}

impl Opened {
    /// Reads the directory at offset `at`, and the metadata of its page. `told` is of the whole file.
    fn new(file: &File<'_>, at: u64, told: &Told) -> Result<Self, BoxError> {
        let directory = file.directory(at)?;
        let page = Page::read(file, &directory)?;
        let meaning = Meaning::of(file, &directory, &page)?;
        let mut losses = meaning.losses.clone();
        losses.extend(page.loss());
        losses.extend_from_slice(&told.losses);
        let exif = Exif::of_page(file, at, told.is_of_pages);
        if exif.as_ref().is_some_and(|exif| exif.is_partial) {
            losses.push("EXIF that cannot be read, or is too long, is left out".into());
        }
        let exif = capped_exif(exif.map(|exif| exif.to_block()), &mut losses);
        // Lengths are checked before values are read, which may be as long as the file.
        let mut value = |tag, longest, what: &str| {
            let entry = directory.find(tag)?;
            let fits = fits(entry.bytes(), longest, what, &mut losses);
            let value = fits.then(|| file.value(entry).ok()).flatten()?;
            (!value.is_empty()).then_some(value)
        };
        // A profile of CMYK colours does not apply to the picture, which becomes RGB.
        let icc = (page.photometric != page::photometric::CMYK)
            .then(|| value(tag::ICC, LONGEST_ICC, "a colour profile"))
            .flatten();
        let metadata = Metadata {
            icc,
            exif,
            xmp: value(tag::XMP, LONGEST_XMP, "XMP"),
            iptc: value(tag::IPTC, LONGEST_IPTC, "IPTC"),
            density: density(file, &directory, told.pages.as_ref()),
            pages: told.pages.clone(),
            parts: parts(&directory),
            ..Metadata::default()
        };
        let orientation = file.number_of(&directory, tag::ORIENTATION).ok().flatten();
        let orientation =
            orientation.and_then(|value| Orientation::from_exif(value.try_into().ok()?));
        Ok(Self { page, meaning, metadata, orientation: orientation.unwrap_or_default(), losses })
    }
}

/// Private tags of microscope programs, which are not kept.
fn parts(directory: &Directory) -> Vec<Part> {
    const MICROSCOPE: &str = "what the microscope's program wrote beside is dropped";
    const TAGS: [(u16, &str, &str); 5] = [
        (33628, "MetaMorph", MICROSCOPE),
        (34361, "FluoView", MICROSCOPE),
        (34412, "LSM", MICROSCOPE),
        (50839, "ImageJ", "ImageJ's labels and marks are dropped"),
        (51123, "Micro-Manager", MICROSCOPE),
    ];
    let found = TAGS.iter().filter(|(tag, ..)| directory.find(*tag).is_some());
    let part = |&(_, name, loss): &(u16, &'static str, &'static str)| Part {
        format: name,
        name: name.to_owned(),
        bytes: Vec::new(),
        loss: Some(loss),
    };
    found.map(part).collect()
}

/// The density of the pixels of a page. `told` is the description of all pages, which takes precedence.
fn density(file: &File<'_>, directory: &Directory, told: Option<&PagesText>) -> Option<Density> {
    let text = told.map_or("", |told| &told.text);
    let by = stack::writer(text);
    let [x, y, _] = match by {
        Some(stack::Writer::Ome) => ome::lengths(text),
        _ => [None; 3],
    };
    if let Some(x) = x {
        let side = |(length, unit)| length::convert(length, &length::symbol(unit)?, "cm");
        let pixels = [side(x)?, side(y.unwrap_or(x))?].map(|length| 1.0 / length);
        return Density::new(pixels, DensityUnit::Centimetre);
    }
    let first = |tag| file.floats(directory, tag, 1)?.first().copied();
    let across = first(tag::X_RESOLUTION)?;
    let pixels = [across, first(tag::Y_RESOLUTION).unwrap_or(across)];
    let unit = match file.number_of(directory, tag::RESOLUTION_UNIT).ok().flatten() {
        Some(1) => DensityUnit::Aspect,
        Some(3) => DensityUnit::Centimetre,
        _ => DensityUnit::Inch,
    };
    if unit == DensityUnit::Aspect {
        // In ImageJ's files, the resolution is per unit that the description names.
        let unit = stack::line(text, "unit").filter(|_| by == Some(stack::Writer::ImageJ));
        let unit = unit.and_then(length::symbol);
        if let Some(length) = unit.and_then(|unit| length::convert(1.0, &unit, "cm")) {
            let pixels = pixels.map(|count| count / length);
            return Density::new(pixels, DensityUnit::Centimetre);
        }
    }
    Density::new(pixels, unit).filter(|_| unit != DensityUnit::Aspect || pixels[0] != pixels[1])
}

/// Decodes the page with the directory at offset `at`. `told` is of the whole file.
fn decode_page(file: &File<'_>, at: u64, told: &Told, limits: Limits) -> Result<Decoded, BoxError> {
    let Opened { page, meaning, metadata, orientation, losses } = Opened::new(file, at, told)?;
    let [width, height] = page.size;
    // Bytes of a pixel as stored and, if it is converted, as decoded.
    let stored = (meaning.wanted.len() * page.dtype.size()) as u64;
    let made = (meaning.channels * meaning.dtype.size()) as u64;
    let both = if stored == made { stored } else { stored + made };
    let pixels = (width as u64).saturating_mul(height as u64);
    check_size(limits, page.size, pixels.saturating_mul(both))?;
    let mut samples = Samples::zeros(page.dtype, width * height * meaning.wanted.len())?;
    let mut rows =
        Rows::new(page, Arc::clone(&file.bytes), meaning.wanted.clone(), limits, u64::MAX);
    rows.read(0..height, samples.as_bytes_mut())?;
    let samples = meaning.apply(samples)?;
    let channels = meaning.channels;
    let image = Image { width, height, channels, samples, is_linear: false, metadata };
    Ok(Decoded { image, orientation, losses, damage: rows.damage() })
}

/// The value of a tag in the first directory of a block that has the form of a TIFF file.
pub(super) fn number_in(block: &[u8], tag: u16) -> Option<u64> {
    let bytes: Arc<dyn bytes::Bytes + '_> = Arc::new(block);
    let file = File::open(bytes).ok()?;
    let directory = file.directory(file.first).ok()?;
    file.number_of(&directory, tag).ok().flatten()
}

/// The density in a block of EXIF.
pub(super) fn exif_density(block: &[u8]) -> Option<Density> {
    let bytes: Arc<dyn bytes::Bytes + '_> = Arc::new(block);
    let file = File::open(bytes).ok()?;
    let directory = file.directory(file.first).ok()?;
    density(&file, &directory, None)
}

/// The texts in a block of EXIF, with their names.
pub(super) fn exif_texts(block: &[u8]) -> Vec<(&'static str, String)> {
    Exif::of_block(block).map_or_else(Vec::new, |exif| exif.texts().collect())
}

/// Whether a block of EXIF describes the picture, and not only its file. A block that cannot be read counts as if it
/// did.
pub(super) fn exif_describes(block: &[u8]) -> bool {
    Exif::of_block(block).is_none_or(|exif| exif.describes())
}

/// The first page of a file, read by rows.
pub(super) struct TiffRows {
    rows: Rows<'static>,
    meaning: Meaning,
    info: RowsInfo,
    /// Number of the next row.
    next: usize,
    name: String,
    is_strict: bool,
}

impl TiffRows {
    /// Opens a file; `None` if it is no TIFF file, or has a broken header.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(source: &Source, limits: Limits) -> Result<Option<Self>> {
        let Some(path) = source.path() else { return Ok(None) };
        if source.size()?.is_none() {
            return Ok(None);
        }
        // An error is reported when the picture is decoded as a whole instead.
        let opened = catch_unwind(|| {
            let file = open(path)?;
            let pages = file.pages()?;
            let told = Told::of(&file, &pages)?;
            let opened = Opened::new(&file, pages.offsets[0], &told)?;
            Ok::<_, BoxError>((file, pages.offsets.len(), opened))
        });
        let Ok(Ok((file, count, opened))) = opened else { return Ok(None) };
        let Opened { page, meaning, metadata, orientation, losses } = opened;
        let ([width, height], stored) = (page.size, page.dtype.size() * meaning.wanted.len());
        let rows = Rows::new(page, file.bytes, meaning.wanted.clone(), limits, TALL);
        let info = RowsInfo {
            width,
            height,
            channels: meaning.channels,
            dtype: meaning.dtype,
            metadata,
            is_upright: orientation == Orientation::default(),
            pages: count,
            is_held_whole: false,
            held_bytes: rows.held_bytes().saturating_add((width * stored) as u64),
            losses,
        };
        let (name, is_strict) = (source.to_string(), limits.strict);
        Ok(Some(Self { rows, meaning, info, next: 0, name, is_strict }))
    }

    fn try_read(&mut self, rows: &mut [u8]) -> Result<(), BoxError> {
        let count = rows.len() / self.info.row_bytes().max(1);
        let range = self.next..self.next + count;
        self.next += count;
        let page = self.rows.page();
        let stored = page.dtype;
        let mut samples = Samples::zeros(stored, count * page.size[0] * self.meaning.wanted.len())?;
        self.rows.read(range, samples.as_bytes_mut())?;
        let samples = self.meaning.apply(samples)?;
        rows.copy_from_slice(samples.as_bytes());
        if self.next == self.info.height
            && let Some(damage) = self.rows.damage()
        {
            losses::tell(&self.name, damage, self.is_strict)?;
        }
        Ok(())
    }
}

impl ReadRows for TiffRows {
    fn info(&self) -> &RowsInfo {
        &self.info
    }

    fn read(&mut self, rows: &mut [u8]) -> Result<()> {
        // Decoders panic on some broken files.
        let read = caught(|| self.try_read(rows));
        read.map_err(|error| {
            Error::bad_input(format_args!("cannot decode {}", self.name)).caused_by(error)
        })
    }
}

/// The bytes before the samples of a file with one picture.
pub(super) fn head_of_picture(info: &RowsInfo) -> Vec<u8> {
    let size = [info.width, info.height];
    let page = Outgoing::only(size, info.channels, info.dtype, &info.metadata);
    encode::head([&page].into_iter())
}

/// The spacing in a unit whose resolution fits the fractions of 32 bits of TIFF: the given one where it does.
fn as_resolution(
    spacing: Option<[f64; 3]>,
    unit: Option<&str>,
) -> (Option<[f64; 3]>, Option<&str>) {
    let fits = |[x, y, _]: [f64; 3]| [x, y].iter().all(|side| (1e-9..=1e9).contains(side));
    if let (Some(lengths), Some(from)) = (spacing, unit)
        && !fits(lengths)
    {
        for to in ["nm", "um", "mm", "m", "km"] {
            let Some(factor) = length::convert(1.0, from, to) else { break };
            let lengths = lengths.map(|length| length * factor);
            if fits(lengths) {
                return (Some(lengths), Some(to));
            }
        }
    }
    (spacing, unit)
}

/// The bytes before the samples of a file with the slices of a volume, as ImageJ writes it. `spacing` is along x, y and
/// z; `first` is the position of the first sample, in multiples of the spacing.
pub fn stack_header(
    dims: [usize; 3],
    dtype: Dtype,
    spacing: Option<[f64; 3]>,
    unit: Option<&str>,
    first: [f64; 3],
) -> Vec<u8> {
    let [width, height, slices] = dims;
    let (spacing, unit) = as_resolution(spacing, unit);
    let text = planes::description(slices, spacing.map(|[.., z]| z), unit, first);
    let mut page = Outgoing::picture([width, height], 1, dtype, &Metadata::default());
    // One strip for each page: readers of stacks expect pages in one piece.
    page.strip_rows = height.max(1);
    if let Some([x, y, _]) = spacing {
        // The resolution is in pixels per unit. The description names the unit.
        page.description.values.extend([
            Value::fraction(tag::X_RESOLUTION, 1.0 / x),
            Value::fraction(tag::Y_RESOLUTION, 1.0 / y),
            Value::shorts(tag::RESOLUTION_UNIT, &[1]),
        ]);
    }
    let mut first_page = page.clone();
    first_page.description.values.push(Value::text(tag::DESCRIPTION, &text));
    encode::head(iter::once(&first_page).chain(iter::repeat_n(&page, slices.saturating_sub(1))))
}

/// Opens a file on disk, and reads its header only.
fn open(path: &Path) -> Result<File<'static>, BoxError> {
    File::open(Arc::new(FileBytes::new(fs::File::open(path)?)?))
}

/// Reads the directories of the file at `path`.
///
/// # Errors
/// If the file is broken, or its first page is not supported.
pub(super) fn probe(path: &Path) -> Result<Probe, BoxError> {
    let file = open(path)?;
    let pages = file.pages()?;
    let first = pages.offsets[0];
    let directory = file.directory(first)?;
    let page = Page::read(&file, &directory)?;
    let meaning = Meaning::of(&file, &directory, &page)?;
    let mut metadata = vec![("compression".to_owned(), page.compression.name().to_owned())];
    let mut tell = |name: &str, value: String| metadata.push((name.to_owned(), value));
    if page.is_tiled {
        let [width, height] = page.chunk;
        tell("tiles", format!("{width}x{height}"));
    }
    if page.is_planar {
        tell("planes", "each channel apart".to_owned());
    }
    if let Some(entry) = directory.find(tag::ICC) {
        tell("colour profile", format!("{} bytes", entry.count));
    }
    for (tag, name) in [(tag::XMP, "XMP"), (tag::IPTC, "IPTC")] {
        if let Some(entry) = directory.find(tag) {
            tell(name, format!("{} bytes", entry.count));
        }
    }
    let told = Told::of(&file, &pages)?;
    if let Some(density) = density(&file, &directory, told.pages.as_ref()) {
        tell("pixels", in_words(density));
    }
    if let Some(exif) = Exif::of_page(&file, first, told.is_of_pages) {
        for (name, text) in exif.texts() {
            tell(name, text);
        }
        tell("EXIF", format!("{} bytes", exif.to_block().len()));
    }
    let orientation = file.number_of(&directory, tag::ORIENTATION).ok().flatten();
    if let Some(orientation) = orientation.filter(|&orientation| orientation > 1) {
        tell("orientation", format!("{orientation}, as in EXIF"));
    }
    for loss in meaning.losses.iter().chain(&page.loss()).chain(&told.losses) {
        tell("note", loss.clone());
    }
    let bytes = meaning.bytes(&page);
    Ok(Probe {
        format: if file.is_big_tiff() { "BigTIFF" } else { "TIFF" }.to_owned(),
        size: page.size,
        dtype: page.type_name(),
        channels: meaning.channel_names(&page),
        pages: Some(pages.offsets.len()),
        metadata,
        bytes,
        is_turned: orientation.is_some_and(|orientation| orientation > 4),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Alpha beside YCbCr is left out, and told.
    #[test]
    fn colours_of_ycbcr_are_converted_beside_other_samples() {
        let samples = [10, 128, 128, 0, 200, 128, 128, 255];
        let (mut bytes, _) = tree::header(false);
        let mut directory = tree::Tree::default();
        directory.values.extend([
            Value::shorts(tag::WIDTH, &[2]),
            Value::shorts(tag::HEIGHT, &[1]),
            Value::shorts(tag::BITS, &[8; 4]),
            Value::shorts(tag::PHOTOMETRIC, &[page::photometric::YCBCR as u16]),
            Value::shorts(tag::SAMPLES_PER_PIXEL, &[4]),
            Value::shorts(tag::EXTRA_SAMPLES, &[2]),
            Value::shorts(tag::YCBCR_SUBSAMPLING, &[1, 1]),
            Value::longs(tag::STRIP_BYTES, &[8]),
            Value::longs(tag::STRIP_OFFSETS, &[0]),
        ]);
        let at = bytes.len() as u64 + directory.len(false);
        directory.values.pop();
        directory.values.push(Value::longs(tag::STRIP_OFFSETS, &[at as u32]));
        directory.write(&mut bytes, false, 0);
        bytes.extend(samples);
        let file = File::open(Arc::new(&bytes[..])).unwrap();
        let page = decode_page(&file, file.first, &Told::default(), Limits::from(1 << 20)).unwrap();
        assert_eq!(page.image.samples, Samples::U8(vec![10, 10, 10, 200, 200, 200]));
        assert_eq!(page.image.channels, 3);
        assert!(
            page.losses[0].starts_with("1 of its 4 channels are left out"),
            "{:?}",
            page.losses
        );
    }

    /// Rows are the same in bands of any height, and with strips unpacked as a whole or as a stream.
    #[test]
    fn rows_do_not_depend_on_how_many_are_read_at_once() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/tiff"));
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut count = 0;
        for path in names.filter(|path| path.extension().is_some_and(|e| e == "tif")) {
            let file = open(&path).unwrap();
            let directory = file.directory(file.pages().unwrap().offsets[0]).unwrap();
            let page = Page::read(&file, &directory).unwrap();
            let height = page.size[1];
            let wanted: Vec<usize> = (0..page.samples).rev().collect();
            let limits = Limits::from(u64::MAX);
            let rows = |tall| {
                Rows::new(page.clone(), Arc::clone(&file.bytes), wanted.clone(), limits, tall)
            };
            let mut whole = vec![0; rows(0).row_bytes() * height];
            rows(u64::MAX).read(0..height, &mut whole).unwrap();
            for (tall, step) in [(u64::MAX, 1), (u64::MAX, 5), (0, 1), (0, 3), (0, height)] {
                let mut rows = rows(tall);
                let mut parts = vec![0; whole.len()];
                let each = parts.chunks_mut(rows.row_bytes() * step);
                for (part, first) in each.zip((0..height).step_by(step)) {
                    rows.read(first..(first + step).min(height), part).unwrap();
                }
                assert!(parts == whole, "{}: {step} rows, {tall}", path.display());
            }
            count += 1;
        }
        assert!(count > 25);
    }
}
