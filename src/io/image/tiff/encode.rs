//! Encoder of uncompressed TIFF files in strips, or of BigTIFF if the file exceeds 4 GiB. Directories precede samples,
//! so that files are written in order, without seeks.

use std::{
    io::{self, Write},
    iter,
};

use super::{
    density::density_to_write,
    description::{self, DescriptionFormat, description_format, imagej_value},
    directory::kind,
    exif::{Exif, RESOLUTION},
    storage::Photometric,
    tag,
    tree::{DirectoryTree, TagValue, header},
};
use crate::{
    data::{
        dtype::Dtype,
        image::{DensityUnit, Image, Metadata, Text},
        length,
        samples::Samples,
    },
    io::{
        Output,
        image::{
            error::BoxError,
            pages::{Encoding, PageWriter, Series},
            rows::WriteRows,
        },
    },
    util::memory,
};

/// Maximum size of a strip in bytes, unless a row is longer or there would be more than [`MAX_STRIPS`].
const STRIP: usize = 1 << 20;
/// Maximum number of strips. Their table is written before the samples, even if the input then ends early.
const MAX_STRIPS: usize = 1 << 16;

/// Texts that have a tag, by their keywords in PNG.
pub const TEXTS: [&str; 6] = ["Title", "Author", "Copyright", "Software", "Description", "Comment"];

/// The tags of [`TEXTS`].
const TEXT_TAGS: [u16; 6] = [269, 315, 33432, 305, tag::DESCRIPTION, tag::DESCRIPTION];

/// Adds texts as tags. Texts of the same tag are joined to lines, without duplicates.
fn add_texts(values: &mut Vec<TagValue>, texts: &[Text]) {
    for (keyword, tag) in TEXTS.into_iter().zip(TEXT_TAGS) {
        let has_keyword = |text: &&Text| text.keyword.eq_ignore_ascii_case(keyword);
        for Text { text, .. } in texts.iter().filter(has_keyword) {
            let text = text.replace('\0', "");
            match values.iter_mut().find(|value| value.tag == tag) {
                None => values.push(TagValue::text(tag, &text)),
                Some(value) => {
                    let known = String::from_utf8_lossy(&value.bytes);
                    let known = known.trim_end_matches('\0');
                    if !known.lines().any(|line| line == text) && known != text {
                        *value = TagValue::text(tag, &format!("{known}\n{text}"));
                    }
                }
            }
        }
    }
}

/// Sets the resolution across and down, in pixels per unit of the number `unit` in the tag.
fn set_resolution(values: &mut Vec<TagValue>, [across, down]: [f64; 2], unit: u16) {
    values.retain(|value| !RESOLUTION.contains(&value.tag));
    values.extend([
        TagValue::fraction(tag::X_RESOLUTION, across),
        TagValue::fraction(tag::Y_RESOLUTION, down),
        TagValue::shorts(tag::RESOLUTION_UNIT, &[unit]),
    ]);
}

/// Layout and metadata of a page to be written.
#[derive(Clone, Debug)]
pub struct OutgoingPage {
    /// Pixels across and down.
    pub size: [usize; 2],
    /// Samples per pixel: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA.
    pub channels: usize,
    pub dtype: Dtype,
    pub strip_rows: usize,
    pub description: DirectoryTree,
}

impl OutgoingPage {
    /// Page with the metadata of an image.
    pub fn picture(size: [usize; 2], channels: usize, dtype: Dtype, metadata: &Metadata) -> Self {
        let Metadata { icc, exif, xmp, iptc, texts, .. } = metadata;
        let mut description = exif.as_deref().and_then(Exif::from_block).unwrap_or_default().root;
        for (tag, kind, bytes) in [
            (tag::ICC, kind::UNDEFINED, icc),
            (tag::XMP, kind::BYTE, xmp),
            (tag::IPTC, kind::UNDEFINED, iptc),
        ] {
            let value = bytes.as_ref().map(|bytes| TagValue { tag, kind, bytes: bytes.clone() });
            description.values.extend(value);
        }
        if let Some(density) = density_to_write(metadata) {
            let unit = match density.unit {
                DensityUnit::Aspect => 1,
                DensityUnit::Inch => 2,
                DensityUnit::Centimetre => 3,
            };
            set_resolution(&mut description.values, density.pixels, unit);
        }
        add_texts(&mut description.values, texts);
        let row = size[0] * channels * dtype.size();
        let strip_rows = (STRIP / row.max(1)).max(size[1].div_ceil(MAX_STRIPS));
        let strip_rows = strip_rows.clamp(1, size[1].max(1));
        Self { size, channels, dtype, strip_rows, description }
    }

    fn new(image: &Image) -> Self {
        let (size, dtype) = ([image.width, image.height], image.samples.dtype());
        Self::picture(size, image.channels, dtype, &image.metadata)
    }

    /// The only page of a file.
    fn single(image: &Image) -> Self {
        let mut page = Self::new(image);
        page.describe(&image.metadata, 1);
        page
    }

    /// Adds the description of all pages to the first of `count` pages. A description of ImageJ defines the unit of the
    /// resolution.
    fn describe(&mut self, metadata: &Metadata, count: usize) {
        let Some(pages) = metadata.pages.as_ref().filter(|pages| pages.fits(count, self.dtype))
        else {
            return;
        };
        let values = &mut self.description.values;
        let text = match description_format(&pages.text) {
            Some(DescriptionFormat::ImageJ) if count > 1 => {
                let unit = imagej_value(&pages.text, "unit").and_then(length::symbol);
                let unit = unit.and_then(|unit| length::convert(1.0, &unit, "cm"));
                let per_centimetre =
                    metadata.density.and_then(|density| density.per(DensityUnit::Centimetre));
                if let (Some(unit), Some(pixels)) = (unit, per_centimetre) {
                    set_resolution(values, pixels.map(|pixels| pixels * unit), 1);
                }
                description::imagej_with_pages(&pages.text, count)
            }
            Some(DescriptionFormat::Ome | DescriptionFormat::Tifffile) => pages.text.to_string(),
            _ => return,
        };
        values.retain(|value| value.tag != tag::DESCRIPTION);
        values.push(TagValue::text(tag::DESCRIPTION, &text));
    }

    fn row_bytes(&self) -> u64 {
        (self.size[0] * self.channels * self.dtype.size()) as u64
    }

    fn bytes(&self) -> u64 {
        self.row_bytes().saturating_mul(self.size[1] as u64)
    }

    /// Directory of the page, whose samples start at offset `at`.
    fn directory(&self, at: u64, is_big_tiff: bool) -> DirectoryTree {
        let (mut tree, row) = (self.description.clone(), self.row_bytes());
        let colours = if self.channels < 3 { Photometric::MinIsBlack } else { Photometric::Rgb };
        let format = match self.dtype {
            Dtype::F32 | Dtype::F64 => 3,
            dtype if dtype.is_signed() => 2,
            _ => 1,
        };
        let same = |value: u16| vec![value; self.channels];
        tree.values.extend([
            TagValue::longs(tag::WIDTH, &[self.size[0] as u32]),
            TagValue::longs(tag::HEIGHT, &[self.size[1] as u32]),
            TagValue::shorts(tag::BITS, &same(8 * self.dtype.size() as u16)),
            TagValue::shorts(tag::COMPRESSION, &[1]),
            TagValue::shorts(tag::PHOTOMETRIC, &[colours as u16]),
            TagValue::shorts(tag::SAMPLES_PER_PIXEL, &[self.channels as u16]),
            TagValue::longs(tag::ROWS_PER_STRIP, &[self.strip_rows as u32]),
            TagValue::shorts(tag::PLANAR, &[1]),
            TagValue::shorts(tag::SAMPLE_FORMAT, &same(format)),
        ]);
        if matches!(self.channels, 2 | 4) {
            tree.values.push(TagValue::shorts(tag::EXTRA_SAMPLES, &[2]));
        }
        let firsts = (0..self.size[1]).step_by(self.strip_rows.max(1));
        let lengths =
            firsts.clone().map(|first| row * self.strip_rows.min(self.size[1] - first) as u64);
        let offsets = firsts.map(|first| at.saturating_add(row.saturating_mul(first as u64)));
        tree.values.extend([
            TagValue::offsets(tag::STRIP_OFFSETS, offsets, is_big_tiff),
            TagValue::offsets(tag::STRIP_BYTES, lengths, is_big_tiff),
        ]);
        tree
    }
}

/// Bytes of a file before its samples, which follow page by page, little-endian.
pub fn file_header<'a>(pages: impl Iterator<Item = &'a OutgoingPage> + Clone) -> Vec<u8> {
    let samples = pages.clone().map(OutgoingPage::bytes).fold(0, u64::saturating_add);
    let len = |is_big_tiff: bool| {
        let (_, first) = header(is_big_tiff);
        let len = |page: &OutgoingPage| page.directory(0, is_big_tiff).len(is_big_tiff);
        first + pages.clone().map(len).sum::<u64>()
    };
    let is_big_tiff = samples.saturating_add(len(false)) > u64::from(u32::MAX);
    let (mut file, _) = header(is_big_tiff);
    // Aligned to 16, so that samples of 8 bytes are aligned in a memory-mapped file.
    let mut at = len(is_big_tiff).next_multiple_of(16);
    let first = at as usize;
    let mut pages = pages.peekable();
    while let Some(page) = pages.next() {
        let directory = page.directory(at, is_big_tiff);
        let next = file.len() as u64 + directory.len(is_big_tiff);
        directory.write(&mut file, 0, is_big_tiff, if pages.peek().is_some() { next } else { 0 });
        at = at.saturating_add(page.bytes());
    }
    file.resize(first, 0);
    file
}

/// Converts the spacing to a unit in which the resolution fits the 32-bit fractions of TIFF, if necessary.
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

/// Bytes before the samples of a file with the slices of a volume, as ImageJ writes it. `spacing` is along x, y and z;
/// `first` is the position of the first sample in multiples of the spacing.
pub fn stack_header(
    dims: [usize; 3],
    dtype: Dtype,
    spacing: Option<[f64; 3]>,
    unit: Option<&str>,
    first: [f64; 3],
) -> Vec<u8> {
    let [width, height, slices] = dims;
    let (spacing, unit) = as_resolution(spacing, unit);
    let text = description::imagej_description(slices, spacing.map(|[.., z]| z), unit, first);
    let mut page = OutgoingPage::picture([width, height], 1, dtype, &Metadata::default());
    // One strip per page, as readers of stacks expect.
    page.strip_rows = height.max(1);
    if let Some([x, y, _]) = spacing {
        // The unit of the resolution is that of the description.
        set_resolution(&mut page.description.values, [1.0 / x, 1.0 / y], 1);
    }
    let mut first_page = page.clone();
    first_page.description.values.push(TagValue::text(tag::DESCRIPTION, &text));
    file_header(iter::once(&first_page).chain(iter::repeat_n(&page, slices.saturating_sub(1))))
}

pub fn encode(image: &Image) -> Result<Vec<u8>, BoxError> {
    let mut file = file_header([&OutgoingPage::single(image)].into_iter());
    let samples = image.samples.as_bytes();
    memory::reserve(&mut file, samples.len())?;
    file.extend_from_slice(samples);
    Ok(file)
}

/// Creates a file with one image, whose rows follow.
pub fn create_rows(
    image: &Image,
    _: &Encoding,
    mut output: Output,
) -> io::Result<Box<dyn WriteRows>> {
    output.write_all(&file_header([&OutgoingPage::single(image)].into_iter()))?;
    Ok(Box::new(TiffWriter(output)))
}

/// A file whose header and directories are written; only samples follow.
struct TiffWriter(Output);

impl WriteRows for TiffWriter {
    fn write(&mut self, samples: Samples) -> io::Result<()> {
        self.0.write_all(samples.as_bytes())
    }

    fn finish(self: Box<Self>) -> io::Result<Output> {
        Ok(self.0)
    }
}

/// Creates a file of several pages.
pub fn encode_pages<'a>(
    output: &'a mut dyn Write,
    series: Series,
    _: &Encoding,
) -> Result<Box<dyn PageWriter + 'a>, BoxError> {
    /// Bytes reserved for directories, because the metadata of pages are not known yet.
    const DIRECTORY_RESERVE: u64 = 64 << 20;
    let is_big_tiff = series.sample_bytes.saturating_add(DIRECTORY_RESERVE) > u64::from(u32::MAX);
    let (start, at) = header(is_big_tiff);
    output.write_all(&start)?;
    Ok(Box::new(TiffPages { output, at, is_big_tiff, left: series.count, count: series.count }))
}

struct TiffPages<'a> {
    output: &'a mut dyn Write,
    /// Number of bytes written so far.
    at: u64,
    is_big_tiff: bool,
    /// Number of pages to come.
    left: usize,
    count: usize,
}

impl PageWriter for TiffPages<'_> {
    fn page(&mut self, image: &Image) -> Result<(), BoxError> {
        let Self { at, is_big_tiff, .. } = *self;
        let mut page = OutgoingPage::new(image);
        if at == header(is_big_tiff).1 {
            page.describe(&image.metadata, self.count);
        }
        let first = (at + page.directory(0, is_big_tiff).len(is_big_tiff)).next_multiple_of(16);
        let next = (first + page.bytes()).next_multiple_of(2);
        if !is_big_tiff && u32::try_from(next).is_err() {
            return Err("the pages take more than 4 GiB, which exceeds the estimate".into());
        }
        self.left = self.left.checked_sub(1).ok_or("too many pages")?;
        let mut bytes = Vec::new();
        let following = if self.left > 0 { next } else { 0 };
        page.directory(first, is_big_tiff).write(&mut bytes, at, is_big_tiff, following);
        bytes.resize((first - at) as usize, 0);
        self.output.write_all(&bytes)?;
        self.output.write_all(image.samples.as_bytes())?;
        if self.left > 0 {
            self.output.write_all(&[0; 1][..(next - first - page.bytes()) as usize])?;
        }
        self.at = next;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), BoxError> {
        match self.left {
            0 => Ok(()),
            left => Err(format!("{left} pages are missing").into()),
        }
    }
}
