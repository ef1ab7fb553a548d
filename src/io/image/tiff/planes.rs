//! Pages of a file as planes of volumes: their order and spacing, from the descriptions of ImageJ, OME-XML and tifffile
//! if present, and sample values as stored, neither scaled nor converted to other colours.

use std::sync::Arc;

use super::{
    color_conversion::ColorConversion,
    density::density,
    description::{DescriptionFormat, description_format, imagej_value},
    directory::{Directory, PageList, TiffFile},
    exif::Exif,
    ome,
    page::Page,
    pages::{OpenedPage, TiffDescription, decode_page},
    plane_order::PlaneOrder,
    rows::RowReader,
    stack,
    storage::{Compression, SampleFormat},
    tag,
};
use crate::{
    data::{
        dtype::Dtype,
        image::{DensityUnit, Image},
        placement::Placement,
    },
    io::{
        Limits, RegularFile,
        image::error::BoxError,
        volume::header::{Description, Endian, Loss, StoredType},
    },
};

/// Planes of one size and type.
pub struct Planes {
    file: TiffFile<'static>,
    /// The first page.
    page: Page,
    /// Location of planes in the file, volume by volume.
    layout: PlaneLayout,
    /// Everything known about the volumes.
    pub description: Description,
    /// Number of colour channels of a plane, which become grey; 1 if stored samples are read without conversion.
    pub channels: usize,
    /// Whether the file states the spacing of slices. Otherwise that of pixels is assumed.
    has_slice_spacing: bool,
    limits: Limits,
}

/// Location of planes in a file.
enum PlaneLayout {
    /// Offset of the directory of each plane.
    Pages(Vec<u64>),
    /// Size of a plane in bytes, and index of each plane in file order. Only the first has a directory, as in ImageJ's
    /// files of more than 4 GiB.
    Contiguous(u64, Vec<usize>),
}

/// Shape of a stack, and order of its pages.
struct StackShape {
    /// Number of channels, slices and times.
    counts: [usize; 3],
    /// Page of each plane, volume by volume.
    pages: Vec<usize>,
}

impl StackShape {
    /// Each plane is stored in the page of its number.
    fn new(order: PlaneOrder) -> Self {
        let [slices, channels, times] = order.sizes();
        Self { counts: [channels, slices, times], pages: order.by_volume().collect() }
    }
}

/// Maximum number of planes that a description may claim.
const MAX: usize = 1 << 24;

impl Planes {
    /// Opens the file `input`, which is the first of `files` files with slices.
    pub fn open(input: &RegularFile, files: usize) -> Result<Self, BoxError> {
        let file = TiffFile::open_file(input)?;
        let PageList { offsets: pages, loss, .. } = file.pages()?;
        let directory = file.directory(pages[0])?;
        let page = Page::read(&file, &directory)?;
        page.colours()?;
        let description = file.text(&directory, tag::DESCRIPTION).unwrap_or_default();
        let format = description_format(&description);
        let mut planes = Self::new(file, page, pages.len());
        planes.read_colours(pages[0])?;
        planes.description.losses.extend(loss.map(Loss::from));
        planes.limits = planes.plane_limits();
        planes.read_texts(pages[0], format.is_some());
        let shape = planes.read_description(format, &description, &directory, pages.len())?;
        let slices = pages.len().max(planes.description.dims[2]).max(files);
        planes.description.warnings.extend(planes.slice_spacing_warning(slices));
        if let PlaneLayout::Pages(_) = planes.layout {
            planes.arrange(pages, shape)?;
        }
        Ok(planes)
    }

    /// Planes of one grey volume, of whose pages only the first has been read.
    fn new(file: TiffFile<'static>, page: Page, slices: usize) -> Self {
        let [width, height] = page.size;
        let stored = match (page.format, page.bits) {
            (SampleFormat::Float, 16) => StoredType::F16,
            (SampleFormat::Unsigned, 64) => StoredType::As(Dtype::U64),
            (SampleFormat::Signed, 64) => StoredType::As(Dtype::I64),
            _ => StoredType::As(page.dtype),
        };
        let mut description = Description::new([width, height, slices], stored, 0);
        description.variant = Some("TIFF stack".into());
        description.endian = if page.is_little_endian { Endian::Little } else { Endian::Big };
        description.file_bytes = Some(file.bytes.len());
        Self {
            description,
            channels: 1,
            has_slice_spacing: false,
            limits: Limits::from(u64::MAX),
            layout: PlaneLayout::Pages(Vec::new()),
            file,
            page,
        }
    }

    /// Memory limit for decoding a plane. A strip or tile may be somewhat larger than its plane.
    fn plane_limits(&self) -> Limits {
        let [width, height] = self.page.size.map(|side| side as u64);
        let sample = (self.channels * self.description.dtype.size()) as u64;
        let plane = width.saturating_mul(height).saturating_mul(4 * sample);
        Limits::from(plane.max(64 << 20))
    }

    /// Adds the texts of the page with the directory at `first` to the metadata.
    fn read_texts(&mut self, first: u64, describes_pages: bool) {
        let Some(exif) = Exif::from_page(&self.file, first, describes_pages) else { return };
        // Software and date describe the file, not the volume.
        let is_kept = |(name, _): &(&str, String)| !["software", "date"].contains(name);
        let texts = exif.texts().filter(is_kept);
        self.description.metadata.extend(texts.map(|(name, text)| (name.to_owned(), text)));
    }

    /// Takes format, spacing and order from the description in `format`, else the spacing from the resolution.
    fn read_description(
        &mut self,
        format: Option<DescriptionFormat>,
        description: &str,
        directory: &Directory,
        pages: usize,
    ) -> Result<Option<StackShape>, BoxError> {
        match format {
            Some(DescriptionFormat::ImageJ) => {
                self.description.variant = Some("ImageJ stack".into());
                self.read_imagej(description, directory, pages)
            }
            Some(DescriptionFormat::Ome) => {
                self.description.variant = Some("OME-TIFF".into());
                let entry = ("OME-XML".into(), format!("{} bytes", description.len()));
                self.description.metadata.push(entry);
                Ok(self.read_ome(description, pages))
            }
            Some(DescriptionFormat::Tifffile) => {
                Ok(self.read_tifffile(description, directory, pages))
            }
            None => {
                self.read_resolution(directory, None, None);
                Ok(None)
            }
        }
    }

    /// Arranges pages, given by the offsets of their directories, to volumes of `shape`, or else to the slices of one
    /// volume.
    fn arrange(&mut self, mut pages: Vec<u64>, shape: Option<StackShape>) -> Result<(), BoxError> {
        if let Some(StackShape { counts, pages: order }) = shape {
            self.set_counts(counts);
            self.channels_as_slices(counts);
            pages = order.into_iter().map(|page| pages[page]).collect();
        }
        self.check(&pages)?;
        self.layout = PlaneLayout::Pages(pages);
        Ok(())
    }

    /// Detects colours, which become grey.
    fn read_colours(&mut self, first: u64) -> Result<(), BoxError> {
        let Page { samples, compression, .. } = self.page;
        let is_colour = self.page.photometric.colours() > 1;
        if is_colour && samples > 1 {
            let opened = OpenedPage::new(&self.file, first, &TiffDescription::default())?;
            let ColorConversion { dtype, channels, .. } = opened.conversion;
            if self.description.stored != StoredType::F16 {
                self.description.stored = StoredType::As(dtype);
            }
            (self.channels, self.description.dtype) = (channels, dtype);
            self.description.losses.extend(opened.decoded.losses.iter().map(Loss::from));
        } else {
            self.description.losses.extend(self.page.loss().map(Loss::from));
            if samples > 1 {
                self.add_loss(format!("{} of its {samples} channels are left out", samples - 1));
            }
        }
        if compression.is_jpeg() && self.channels == 1 && samples > 1 {
            return Err("JPEG of several channels that are not colours is not supported".into());
        }
        Ok(())
    }

    /// Interprets many channels of one slice as slices: Python's tifffile calls unspecified pages channels. ImageJ
    /// shows at most seven channels together.
    fn channels_as_slices(&mut self, [channels, slices, times]: [usize; 3]) {
        const MAX_CHANNELS: usize = 7;
        if slices == 1 && times == 1 && channels > MAX_CHANNELS {
            self.set_counts([1, channels, 1]);
            let warning = format!("its {channels} channels are read as {channels} slices");
            self.description.warnings.push(warning);
        }
    }

    /// Takes order, spacing and origin from ImageJ's description.
    fn read_imagej(
        &mut self,
        description: &str,
        directory: &Directory,
        pages: usize,
    ) -> Result<Option<StackShape>, BoxError> {
        let (images, order) = stack::imagej_order(description, pages);
        self.read_imagej_spacing(description, directory);
        if images > pages
            && pages == 1
            && let Some(bytes) = self.plane_bytes(images)
            && let Some(order) = order
        {
            let shape = StackShape::new(order);
            self.set_counts(shape.counts);
            self.layout = PlaneLayout::Contiguous(bytes, shape.pages);
            return Ok(None);
        }
        if images != pages {
            self.add_loss(format!(
                "its description states {images} images, but the file has {pages}"
            ));
            return Ok(None);
        }
        Ok(order.map(StackShape::new))
    }

    /// Takes order and spacing from the JSON of tifffile.
    fn read_tifffile(
        &mut self,
        description: &str,
        directory: &Directory,
        pages: usize,
    ) -> Option<StackShape> {
        let fields = stack::tifffile_fields(description).unwrap_or_default();
        let depth = fields.get("spacing").and_then(serde_json::Value::as_f64);
        let unit = fields.get("unit").and_then(serde_json::Value::as_str);
        self.read_resolution(directory, unit, depth);
        let order = stack::tifffile_order(description)?;
        let all: usize = order.sizes().iter().product();
        if all != pages {
            self.add_loss(format!("its description states {all} images, but the file has {pages}"));
        }
        (all == pages).then(|| StackShape::new(order))
    }

    /// Takes spacing and origin from ImageJ's description and the resolution.
    fn read_imagej_spacing(&mut self, description: &str, directory: &Directory) {
        let number = |name| {
            let number = imagej_value(description, name)?.parse::<f64>().ok()?;
            Some(number).filter(|number| number.is_finite())
        };
        let [across, down] = self.resolution(directory);
        let resolution_unit =
            self.file.first_number(directory, tag::RESOLUTION_UNIT).ok().flatten();
        let by_centimetre = resolution_unit == Some(3);
        let stated = imagej_value(description, "unit");
        let unit = stated.or(by_centimetre.then_some("cm").filter(|_| across.is_some()));
        let units = [
            unit,
            imagej_value(description, "yunit").or(unit),
            imagej_value(description, "zunit").or(unit),
        ];
        let depth = number("spacing").map(f64::abs).filter(|&depth| depth > 0.0);
        if unit.is_some() || depth.is_some() {
            // ImageJ reads a resolution per centimetre as such only where the description says `um`.
            let scale = if by_centimetre && stated == Some("um") { 1e4 } else { 1.0 };
            let side = |count: Option<f64>| count.map_or(1.0, |count| scale / count);
            let [x, y] = [side(across), side(down)];
            // Origins are in samples.
            let origins = ["xorigin", "yorigin", "zorigin"].map(|name| number(name).unwrap_or(0.0));
            let spacing = [x, y, depth.unwrap_or(1.0)];
            let first = [0, 1, 2].map(|axis| (0.0 - origins[axis]) * spacing[axis]);
            self.description.set_placement_in(Placement::axis_aligned(spacing, first), units);
            self.has_slice_spacing = depth.is_some();
        }
    }

    /// Bytes of a plane if `images` planes follow each other in the file, and only the first has a directory.
    fn plane_bytes(&self, images: usize) -> Option<u64> {
        let page = &self.page;
        let plane = page.chunk_bytes(page.size[1]);
        let at = page.table.offset(0);
        let is_plain = page.compression == Compression::None
            && !page.is_tiled
            && self.channels == 1
            && page.samples == 1
            && page.bits.is_multiple_of(8);
        let end = plane.checked_mul(images as u64).and_then(|all| all.checked_add(at));
        let fits = end.is_some_and(|end| end <= self.file.bytes.len());
        (is_plain && images <= MAX && fits).then_some(plane)
    }

    /// Takes order and spacing from OME-XML (OME model 2016-06).
    fn read_ome(&mut self, text: &str, pages: usize) -> Option<StackShape> {
        let sizes = ome::sizes(text)?;
        let [x, y, z] = ome::lengths(text);
        if let Some(known) = x.or(y).or(z) {
            let lengths = [x, y, z].map(|length| length.unwrap_or(known));
            if x.is_none() {
                let known = known.0;
                let warning = format!("PhysicalSizeX is missing; assuming {known}");
                self.description.warnings.push(warning);
            }
            let spacing = lengths.map(|(length, _)| length);
            let units = lengths.map(|(_, unit)| Some(unit));
            self.description.set_placement_in(Placement::axis_aligned(spacing, [0.0; 3]), units);
            self.has_slice_spacing = z.is_some();
        }
        // Channels that are colours of a plane share one plane.
        let interleaved = if self.page.samples > 1 { self.page.samples } else { 1 };
        let [z_len, c_len, t_len] = sizes;
        let c_len = (c_len / interleaved).max(1);
        let all = z_len.checked_mul(c_len)?.checked_mul(t_len)?;
        let missing = format!("its OME-XML states {all} planes, but the file has {pages}");
        if all > pages {
            self.add_loss(missing);
            return None;
        }
        let order = ome::plane_order(text, [z_len, c_len, t_len])?;
        let plane_pages = ome::plane_pages(text, &order);
        let found: Option<Vec<usize>> = order
            .by_volume()
            .map(|plane| plane_pages[plane].filter(|&page| page < pages))
            .collect();
        if found.is_none() {
            self.add_loss(missing);
        } else if pages > all {
            let others = pages - all;
            self.add_loss(format!(
                "{others} pages that are not of the first image of its OME-XML are left out"
            ));
        }
        Some(StackShape { counts: [c_len, z_len, t_len], pages: found? })
    }

    /// The resolution across and down, in pixels per unit of the file.
    fn resolution(&self, directory: &Directory) -> [Option<f64>; 2] {
        let resolution = |tag| {
            let found = self.file.floats(directory, tag, 1)?.first().copied();
            found.filter(|&count| count.is_finite() && count > 0.0)
        };
        let across = resolution(tag::X_RESOLUTION);
        [across, resolution(tag::Y_RESOLUTION).or(across)]
    }

    /// Takes the spacing from the resolution, and from the spacing of slices in `unit` if a description states it. The
    /// unit is that of the resolution, too, if this has none.
    fn read_resolution(&mut self, directory: &Directory, unit: Option<&str>, depth: Option<f64>) {
        let depth = depth.map(f64::abs).filter(|&depth| depth.is_finite() && depth > 0.0);
        let density = density(&self.file, directory, None);
        let per_centimetre = density.and_then(|density| density.per(DensityUnit::Centimetre));
        let ([x, y], own) = match per_centimetre {
            Some(pixels) => (pixels.map(|pixels| 10.0 / pixels), Some("mm")),
            None if unit.is_none() && depth.is_none() => return,
            None => (self.resolution(directory).map(|count| 1.0 / count.unwrap_or(1.0)), unit),
        };
        let units = [own, own, unit.filter(|_| depth.is_some()).or(own)];
        let placement = Placement::axis_aligned([x, y, depth.unwrap_or(x)], [0.0; 3]);
        self.description.set_placement_in(placement, units);
        self.has_slice_spacing = depth.is_some();
    }

    /// Warning about the assumed spacing of `slices` slices; `None` if the file states it.
    fn slice_spacing_warning(&self, slices: usize) -> Option<String> {
        let placement = self.description.placement.as_ref();
        let [x, _, z] = placement.filter(|_| slices > 1 && !self.has_slice_spacing)?.spacing();
        let assumed = if x == z { "that of columns".into() } else { z.to_string() };
        Some(format!("the slice spacing is missing; assuming {assumed}"))
    }

    /// Checks that all pages have the size and type of the first one.
    fn check(&self, order: &[u64]) -> Result<(), BoxError> {
        for (number, &at) in order.iter().enumerate().skip(1) {
            let directory = self.file.directory(at)?;
            let page = Page::read(&self.file, &directory)
                .map_err(|error| format!("page {}: {error}", number + 1))?;
            let kind = |page: &Page| (page.size, page.bits, page.format, page.samples);
            if kind(&page) != kind(&self.page) {
                let format_kind = |page: &Page| {
                    let [width, height] = page.size;
                    let channels = match page.samples {
                        1 => String::new(),
                        count => format!(" with {count} channels"),
                    };
                    format!("{width}x{height} of {}{channels}", page.type_name())
                };
                return Err(format!(
                    "page {} is {}, but the first is {}: slices must be equal in size and type",
                    number + 1,
                    format_kind(&page),
                    format_kind(&self.page)
                )
                .into());
            }
        }
        Ok(())
    }

    /// Sets the numbers of channels, slices and times.
    fn set_counts(&mut self, [channels, slices, times]: [usize; 3]) {
        (self.description.dims[2], self.description.volumes) = (slices, channels * times);
        self.description.channels_and_times = Some([channels, times]);
    }

    /// Adds a message about content of the file that the volume does not have.
    fn add_loss(&mut self, message: String) {
        self.description.losses.push(message.into());
    }

    /// Reads the stored samples of plane `number`, counted over all volumes.
    pub fn read(&self, number: usize, samples: &mut [u8]) -> Result<(), BoxError> {
        let page = match &self.layout {
            PlaneLayout::Pages(pages) => {
                let directory = self.file.directory(pages[number])?;
                Page::read(&self.file, &directory)?
            }
            PlaneLayout::Contiguous(bytes, order) => {
                let mut page = self.page.clone();
                page.table.move_by(bytes * order[number] as u64);
                page
            }
        };
        let height = page.size[1];
        let limits = self.limits;
        let mut rows =
            RowReader::new(page, Arc::clone(&self.file.bytes), vec![0], limits, u64::MAX);
        rows.read(0..height, samples)?;
        match rows.damage() {
            Some(damage) => Err(damage.into()),
            None => Ok(()),
        }
    }

    /// Decodes plane `number` to an image, if planes have several channels.
    pub fn picture(&self, number: usize) -> Result<Image, BoxError> {
        let PlaneLayout::Pages(pages) = &self.layout else {
            return Err("colours are not supported in a stack with a single directory".into());
        };
        Ok(decode_page(&self.file, pages[number], &TiffDescription::default(), self.limits)?.image)
    }

    /// Bytes of memory for reading a plane, in addition to its samples.
    pub fn scratch(&self) -> u64 {
        let chunk = self.page.chunk_bytes(self.page.chunk[1]);
        let packed = self.page.max_packed().min(self.file.bytes.len());
        let picture = match self.channels {
            1 => 0,
            channels => {
                let [width, height] = self.page.size;
                2 * (width * height * channels * self.description.dtype.size()) as u64
            }
        };
        chunk.saturating_mul(2).saturating_add(packed).saturating_add(picture)
    }
}
