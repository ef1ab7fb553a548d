//! Pages of a file as images, decoded as a whole or by rows.

use std::sync::Arc;

use super::{
    color_conversion::ColorConversion,
    density::density,
    description::{self, DescriptionFormat, description_format},
    directory::{Directory, PageList, TiffFile},
    exif::{Exif, orientation},
    page::Page,
    rows::{RowReader, STREAM_THRESHOLD},
    stack,
    storage::Photometric,
    tag,
};
use crate::{
    data::{
        image::{AncillaryData, Metadata, Orientation, StackDescription},
        samples::Samples,
    },
    io::{
        Limits, RegularFile, Source,
        image::{
            codec::ReadAt,
            error::{BoxError, catch_panic},
            limits::check_size,
            metadata::MetadataBlock,
            pages::{DecodedPage, Pages, Shrink},
            rows::{ReadRows, RowsHeader},
        },
        losses,
    },
    util::error::{Error, Result},
};

pub fn open<'a>(
    input: Arc<dyn ReadAt + 'a>,
    limits: Limits,
) -> Result<Box<dyn Pages + 'a>, BoxError> {
    let file = TiffFile::open(input)?;
    let pages = file.pages()?;
    let description = TiffDescription::read(&file, &pages)?;
    Ok(Box::new(TiffPages { file, pages, description, limits, level: None }))
}

/// Description (tag 270) of all pages in the first page, and warnings about missing pages.
#[derive(Clone, Debug, Default)]
pub struct TiffDescription {
    /// Whether the description is about all pages of the file, not about the image.
    pub describes_pages: bool,
    pub pages: Option<StackDescription>,
    /// Warnings about the description and missing pages.
    pub losses: Vec<String>,
}

impl TiffDescription {
    pub fn read(file: &TiffFile<'_>, pages: &PageList) -> Result<Self, BoxError> {
        let mut description = Self::read_text(file, &pages.offsets)?;
        description.losses.extend(pages.loss.clone());
        Ok(description)
    }

    fn read_text(file: &TiffFile<'_>, pages: &[u64]) -> Result<Self, BoxError> {
        /// Maximum length in bytes of a description that is kept.
        const MAX_LEN: u64 = 1 << 20;
        let directory = file.directory(pages[0])?;
        let Some(entry) = directory.find(tag::DESCRIPTION) else { return Ok(Self::default()) };
        let text = file.text(&directory, tag::DESCRIPTION).unwrap_or_default();
        let Some(by) = description_format(&text) else { return Ok(Self::default()) };
        let page = Page::read(file, &directory)?;
        let loss = description::loss(by, &text);
        if by == DescriptionFormat::Tifffile
            && loss.is_none()
            && (pages.len() == 1 || page.is_planar)
        {
            // The description only states the shape of the file that tifffile wrote.
            return Ok(Self { describes_pages: true, ..Self::default() });
        }
        if entry.bytes() > MAX_LEN {
            let losses = loss.map(str::to_owned).into_iter().collect();
            return Ok(Self { describes_pages: true, pages: None, losses });
        }
        let pages = StackDescription {
            text: text.into(),
            pages: pages.len(),
            dtype: page.dtype,
            is_divisible: by == DescriptionFormat::ImageJ,
            loss,
        };
        Ok(Self { describes_pages: true, pages: Some(pages), losses: Vec::new() })
    }
}

struct TiffPages<'a> {
    file: TiffFile<'a>,
    pages: PageList,
    description: TiffDescription,
    limits: Limits,
    /// Offset of the directory of the smaller copy that is decoded in place of the only page.
    level: Option<u64>,
}

impl Pages for TiffPages<'_> {
    fn count(&self) -> usize {
        self.pages.offsets.len()
    }

    fn decode(&mut self, page: usize) -> Result<DecodedPage, BoxError> {
        let at = self.pages.offsets[page];
        let Some(level) = self.level else {
            return decode_page(&self.file, at, &self.description, self.limits);
        };
        let mut smaller = decode_page(&self.file, level, &self.description, self.limits)?;
        let whole = OpenedPage::new(&self.file, at, &self.description)?.decoded;
        smaller.image.metadata = whole.image.metadata;
        smaller.losses = whole.losses;
        Ok(smaller)
    }

    fn shrink(&mut self, choose: Shrink<'_>) {
        let Some((full, levels)) = usable_levels(&self.file, &self.pages) else { return };
        let sizes: Vec<[usize; 2]> = levels.iter().map(|(_, size)| *size).collect();
        self.level = choose(full, &sizes).map(|chosen| levels[chosen].0);
    }

    fn header(&self, page: usize) -> Option<DecodedPage> {
        let at = *self.pages.offsets.get(page)?;
        Some(OpenedPage::new(&self.file, at, &self.description).ok()?.decoded)
    }

    fn sample_bytes(&self, page: usize) -> Option<u64> {
        let directory = self.file.directory(*self.pages.offsets.get(page)?).ok()?;
        let page = Page::read(&self.file, &directory).ok()?;
        let conversion = ColorConversion::read(&self.file, &directory, &page).ok()?;
        Some(conversion.bytes(&page))
    }

    fn are_slices(&self) -> bool {
        let text = self.description.pages.as_ref().map_or("", |pages| &pages.text);
        self.count() > 1 && stack::states_slices(text)
    }
}

/// The offset of a smaller copy's directory, and its size.
type Level = (u64, [usize; 2]);

/// Size of an image, and sizes of its smaller copies, the smallest first.
pub type SmallerSizes = ([usize; 2], Vec<[usize; 2]>);

/// Size of the only page, and its smaller copies that may be decoded instead; `None` if it is stored rotated.
fn usable_levels(file: &TiffFile<'_>, pages: &PageList) -> Option<([usize; 2], Vec<Level>)> {
    let levels = file.copies(pages).ok()?.levels;
    let directory = file.directory(pages.offsets[0]).ok()?;
    let is_usable =
        !levels.is_empty() && orientation(file, &directory).is_none_or(|stated| stated == 1);
    let size = || Page::read(file, &directory).ok().map(|page| page.size);
    is_usable.then(size).flatten().map(|size| (size, levels))
}

/// Size of the image of the file `input`, and the sizes of its smaller copies, the smallest first.
pub fn smaller_sizes(input: &RegularFile) -> Result<Option<SmallerSizes>, BoxError> {
    let file = TiffFile::open_file(input)?;
    let levels = usable_levels(&file, &file.pages()?);
    Ok(levels.map(|(full, levels)| (full, levels.into_iter().map(|(_, size)| size).collect())))
}

/// A page whose directory has been read.
pub struct OpenedPage {
    pub page: Page,
    pub conversion: ColorConversion,
    pub decoded: DecodedPage,
}

impl OpenedPage {
    /// Reads the directory at offset `at`, and the metadata of its page. `whole` is the description of the file.
    pub fn new(file: &TiffFile<'_>, at: u64, whole: &TiffDescription) -> Result<Self, BoxError> {
        let directory = file.directory(at)?;
        let page = Page::read(file, &directory)?;
        let conversion = ColorConversion::read(file, &directory, &page)?;
        let mut losses = conversion.losses.clone();
        losses.extend(page.loss());
        losses.extend_from_slice(&whole.losses);
        let exif = Exif::from_page(file, at, whole.describes_pages);
        if exif.as_ref().is_some_and(|exif| exif.is_partial) {
            losses.push("EXIF that cannot be read, or is too long, is left out".into());
        }
        let exif = MetadataBlock::Exif.capped(exif.and_then(|exif| exif.to_block()), &mut losses);
        // Lengths are checked before values are read, which may be as long as the file.
        let mut value = |tag, block: MetadataBlock| {
            let entry = directory.find(tag)?;
            let fits = block.fits(entry.bytes(), &mut losses);
            let value = fits.then(|| file.value(entry).ok()).flatten()?;
            (!value.is_empty()).then_some(value)
        };
        // A profile of CMYK colours does not apply to the image, which becomes RGB.
        let icc = (page.photometric != Photometric::Cmyk)
            .then(|| value(tag::ICC, MetadataBlock::Icc))
            .flatten();
        let metadata = Metadata {
            icc,
            exif,
            xmp: value(tag::XMP, MetadataBlock::Xmp),
            iptc: value(tag::IPTC, MetadataBlock::Iptc),
            density: density(file, &directory, whole.pages.as_ref()),
            pages: whole.pages.clone(),
            ancillary: parts(&directory),
            ..Metadata::default()
        };
        let orientation = orientation(file, &directory).and_then(Orientation::from_exif);
        let (orientation, channels) = (orientation.unwrap_or_default(), conversion.channels);
        let decoded = DecodedPage::header(
            page.size,
            channels,
            conversion.dtype,
            metadata,
            orientation,
            losses,
        )?;
        Ok(Self { page, conversion, decoded })
    }
}

/// Private tags of microscope software, which are not kept.
fn parts(directory: &Directory) -> Vec<AncillaryData> {
    const MICROSCOPE: &str = "metadata of the microscope software are dropped";
    const TAGS: [(u16, &str, &str); 5] = [
        (33628, "MetaMorph", MICROSCOPE),
        (34361, "FluoView", MICROSCOPE),
        (34412, "LSM", MICROSCOPE),
        (50839, "ImageJ", "ImageJ's labels and marks are dropped"),
        (51123, "Micro-Manager", MICROSCOPE),
    ];
    let found = TAGS.iter().filter(|(tag, ..)| directory.find(*tag).is_some());
    let part = |&(_, name, loss): &(u16, &'static str, &'static str)| AncillaryData {
        format: name,
        name: name.to_owned(),
        bytes: Vec::new(),
        loss: Some(loss),
    };
    found.map(part).collect()
}

/// Decodes the page with the directory at offset `at`. `whole` is the description of the file.
pub fn decode_page(
    file: &TiffFile<'_>,
    at: u64,
    whole: &TiffDescription,
    limits: Limits,
) -> Result<DecodedPage, BoxError> {
    let OpenedPage { page, conversion, decoded } = OpenedPage::new(file, at, whole)?;
    let [width, height] = page.size;
    // Bytes of a pixel as stored and, if it is converted, as decoded.
    let stored = (conversion.wanted.len() * page.dtype.size()) as u64;
    let made = (conversion.channels * conversion.dtype.size()) as u64;
    let both = if stored == made { stored } else { stored + made };
    let pixels = (width as u64).saturating_mul(height as u64);
    check_size(limits, page.size, pixels.saturating_mul(both))?;
    let mut samples = Samples::zeros(page.dtype, width * height * conversion.wanted.len())?;
    let mut rows =
        RowReader::new(page, Arc::clone(&file.bytes), conversion.wanted.clone(), limits, u64::MAX);
    rows.read(0..height, samples.as_bytes_mut())?;
    let damage = rows.damage();
    Ok(DecodedPage { damage, ..decoded.with_samples(conversion.apply(samples)?) })
}

/// The first page of a file, read by rows.
struct TiffRows {
    rows: RowReader<'static>,
    conversion: ColorConversion,
    header: RowsHeader,
    next: usize,
    name: String,
    is_strict: bool,
}

/// Opens a file; `None` for broken headers.
pub fn open_rows(
    source: &Source,
    input: &RegularFile,
    limits: Limits,
) -> Result<Option<Box<dyn ReadRows>>> {
    // The error is reported when the image is decoded as a whole instead.
    let opened = catch_panic(|| {
        let file = TiffFile::open_file(input)?;
        let pages = file.pages()?;
        let description = TiffDescription::read(&file, &pages)?;
        let opened = OpenedPage::new(&file, pages.offsets[0], &description)?;
        Ok((file, pages.offsets.len(), opened))
    });
    let Ok((file, count, opened)) = opened else { return Ok(None) };
    let OpenedPage { page, conversion, decoded } = opened;
    let stored_row = page.size[0] * page.dtype.size() * conversion.wanted.len();
    let rows =
        RowReader::new(page, file.bytes, conversion.wanted.clone(), limits, STREAM_THRESHOLD);
    let reader_bytes = rows.held_bytes().saturating_add(stored_row as u64);
    let header =
        RowsHeader { first: decoded, page_count: count, reader_bytes, reads_whole_file: false };
    let (name, is_strict) = (source.to_string(), limits.strict);
    Ok(Some(Box::new(TiffRows { rows, conversion, header, next: 0, name, is_strict })))
}

impl TiffRows {
    fn try_read(&mut self, rows: &mut [u8]) -> Result<(), BoxError> {
        let count = rows.len() / self.header.row_bytes().max(1);
        let range = self.next..self.next + count;
        self.next += count;
        let page = self.rows.page();
        let stored = page.dtype;
        let mut samples =
            Samples::zeros(stored, count * page.size[0] * self.conversion.wanted.len())?;
        self.rows.read(range, samples.as_bytes_mut())?;
        let samples = self.conversion.apply(samples)?;
        rows.copy_from_slice(samples.as_bytes());
        if self.next == self.header.first.image.height
            && let Some(damage) = self.rows.damage()
        {
            losses::report(&self.name, damage, self.is_strict)?;
        }
        Ok(())
    }
}

impl ReadRows for TiffRows {
    fn header(&self) -> &RowsHeader {
        &self.header
    }

    fn read(&mut self, rows: &mut [u8]) -> Result<()> {
        // Some decoders panic on broken files.
        let read = catch_panic(|| self.try_read(rows));
        read.map_err(|error| {
            Error::bad_input(format_args!("cannot decode {}", self.name)).caused_by(error)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{
        super::{
            storage::Photometric,
            tree::{self, TagValue},
        },
        *,
    };

    /// Alpha in addition to YCbCr is left out with a warning.
    #[test]
    fn colours_of_ycbcr_are_converted_beside_other_samples() {
        let samples = [10, 128, 128, 0, 200, 128, 128, 255];
        let (mut bytes, _) = tree::header(false);
        let mut directory = tree::DirectoryTree::default();
        directory.values.extend([
            TagValue::shorts(tag::WIDTH, &[2]),
            TagValue::shorts(tag::HEIGHT, &[1]),
            TagValue::shorts(tag::BITS, &[8; 4]),
            TagValue::shorts(tag::PHOTOMETRIC, &[Photometric::YCbCr as u16]),
            TagValue::shorts(tag::SAMPLES_PER_PIXEL, &[4]),
            TagValue::shorts(tag::EXTRA_SAMPLES, &[2]),
            TagValue::shorts(tag::YCBCR_SUBSAMPLING, &[1, 1]),
            TagValue::longs(tag::STRIP_BYTES, &[8]),
            TagValue::longs(tag::STRIP_OFFSETS, &[0]),
        ]);
        let at = bytes.len() as u64 + directory.len(false);
        directory.values.pop();
        directory.values.push(TagValue::longs(tag::STRIP_OFFSETS, &[at as u32]));
        directory.write(&mut bytes, 0, false, 0);
        bytes.extend(samples);
        let file = TiffFile::open(Arc::new(&bytes[..])).unwrap();
        let page = decode_page(
            &file,
            file.first_directory,
            &TiffDescription::default(),
            Limits::from(1 << 20),
        )
        .unwrap();
        assert_eq!(page.image.samples, Samples::U8(vec![10, 10, 10, 200, 200, 200]));
        assert_eq!(page.image.channels, 3);
        assert!(
            page.losses[0].starts_with("1 of its 4 channels are left out"),
            "{:?}",
            page.losses
        );
    }

    /// Rows do not depend on the number read at a time, nor on streaming.
    #[test]
    fn rows_do_not_depend_on_how_many_are_read_at_once() {
        let folder = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/tiff"));
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut count = 0;
        for path in names.filter(|path| path.extension().is_some_and(|e| e == "tif")) {
            let source = Source::from(&*path);
            let input = source.regular().unwrap().unwrap();
            let file = TiffFile::open_file(&input).unwrap();
            let directory = file.directory(file.pages().unwrap().offsets[0]).unwrap();
            let page = Page::read(&file, &directory).unwrap();
            let height = page.size[1];
            let wanted: Vec<usize> = (0..page.samples).rev().collect();
            let limits = Limits::from(u64::MAX);
            let rows = |tall| {
                RowReader::new(page.clone(), Arc::clone(&file.bytes), wanted.clone(), limits, tall)
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
