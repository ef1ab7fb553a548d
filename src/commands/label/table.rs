//! The table of components (`--table`).

use std::{
    borrow::Cow,
    fmt,
    io::{self, Write},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use bytemuck::Zeroable;

use crate::{
    data::{
        image::{Image, Orientation},
        placement::Placement,
        reader::Reader,
        samples::Samples,
    },
    io::{
        Limits, Output, Sink, Source,
        image::{RowsReader, open_rows, read_image},
        losses,
        volume::{Layout, VolumeFile, VolumeReader},
    },
    kernels::{
        filter::{Block, Filter, Preparation},
        histogram::Luma,
        label::{Label, Observer, Region, Regions},
    },
    util::{
        error::{Error, Result},
        memory,
        timings::Timings,
    },
};

/// Writes a table of the components of an input.
#[derive(Debug)]
pub struct Table {
    /// The output, and whether its folder is created.
    pub sink: (Sink, bool),
    pub source: Source,
    pub intensity: Option<Source>,
    /// How to read a volume; `None` for an image.
    pub layout: Option<Layout>,
    pub limits: Limits,
    pub no_clobber: bool,
    pub timings: Arc<Timings>,
    pub is_written: AtomicBool,
    /// The complete table until the labels are written.
    pub output: Mutex<Option<Output>>,
}

/// Samples that are read together with the labels.
enum Intensities {
    /// The luminance of an image, and the index of the next sample.
    Image(Samples, usize),
    /// The rows of an image, and its number of channels.
    Rows(RowsReader, usize),
    Volume(Box<VolumeReader>),
}

impl Intensities {
    /// The samples of the next rows or slices, of `count` samples in all.
    fn next(&mut self, slices: usize, count: usize) -> Result<Samples> {
        match self {
            Self::Image(samples, next) => {
                let range = *next..*next + count;
                *next = range.end;
                Ok(samples.part(range))
            }
            Self::Rows(reader, channels) => grey(reader.read_after(None, slices)?, *channels),
            Self::Volume(reader) => reader.read(slices),
        }
    }
}

/// The luminance of these samples.
fn grey(samples: Samples, channels: usize) -> Result<Samples> {
    match Luma::Bt709.grey(&samples, channels)? {
        Cow::Owned(grey) => Ok(grey),
        Cow::Borrowed(_) => Ok(samples),
    }
}

/// A value of a row.
#[derive(Clone, Copy)]
enum Cell {
    Count(u64),
    Number(f64),
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// Name of the column of physical volumes, and the volume of a sample.
fn voxel(placement: &Placement) -> (String, f64) {
    let unit = placement.unit.as_ref().map(|unit| format!("_{unit}3"));
    (format!("volume{}", unit.unwrap_or_default()), placement.determinant().abs())
}

impl Table {
    /// Opens the intensity image, whose size must be `dims`, within `bytes` of memory.
    fn intensities(&self, dims: [usize; 3], bytes: u64) -> Result<Option<Intensities>> {
        let Some(source) = &self.intensity else { return Ok(None) };
        // The reserve for buffers in the estimates covers an eighth.
        let limits = Limits { memory: bytes.max(self.limits.memory / 8), ..self.limits };
        let (own, opened) = match &self.layout {
            Some(layout) => {
                let file = VolumeFile::describe(source, layout)?;
                file.check(self.limits)?;
                if file.reader_bytes() > limits.memory {
                    let what = format_args!("{source}: the intensities");
                    return Err(memory::exceeds_rest(what, limits.memory));
                }
                (file.dims, Intensities::Volume(Box::new(file.reader()?)))
            }
            None => self.image(source, limits)?,
        };
        let text = |dims: [usize; 3]| dims.map(|dim| dim.to_string()).join(" x ");
        match own == dims {
            true => Ok(Some(opened)),
            false => Err(Error::bad_input(format_args!(
                "{source}: the intensities are {}, expected {} as in {}",
                text(own),
                text(dims),
                self.source
            ))),
        }
    }

    /// Opens an image. Its rows are read one after the other if it is large and its format allows.
    fn image(&self, source: &Source, limits: Limits) -> Result<([usize; 3], Intensities)> {
        let rows = match source {
            Source::File(_) => open_rows(source, limits)?,
            Source::Stdin => None,
        };
        if let Some(rows) = rows {
            let header = rows.header();
            let Image { width, height, channels, .. } = header.first.image;
            let bytes = (header.row_bytes() as u64).saturating_mul(height as u64);
            if bytes > limits.memory / 2 && header.first.orientation == Orientation::default() {
                limits.check(&[width, height]).map_err(|error| error.context(source))?;
                for loss in &header.first.losses {
                    losses::report(source, loss, limits.strict)?;
                }
                let rows = Intensities::Rows(RowsReader::new(rows, 0)?, channels);
                return Ok(([width, height, 1], rows));
            }
        }
        let image = read_image(source, limits, &self.timings)?;
        let dims = [image.width, image.height, 1];
        Ok((dims, Intensities::Image(grey(image.samples, image.channels)?, 0)))
    }

    /// Calls `add` with the name and the value of each column of a row.
    fn for_each_cell(
        &self,
        label: usize,
        region: &Region,
        voxel: Option<&(String, f64)>,
        mut add: impl FnMut(&str, Cell) -> io::Result<()>,
    ) -> io::Result<()> {
        let (is_volume, is_image) = (self.layout.is_some(), self.layout.is_none());
        add("label", Cell::Count(label as u64))?;
        add(if is_volume { "voxels" } else { "pixels" }, Cell::Count(region.size))?;
        if let Some((name, size)) = voxel {
            add(name, Cell::Number(region.size as f64 * size))?;
        }
        let [start, end] = [region.start, region.end].map(|bound| bound.map(Cell::Count));
        for (names, cells) in [
            (["start_x", "start_y", "start_z"], start),
            (["end_x", "end_y", "end_z"], end),
            (["centroid_x", "centroid_y", "centroid_z"], region.centroid().map(Cell::Number)),
        ] {
            let axes = names.into_iter().zip(cells).take(if is_image { 2 } else { 3 });
            axes.into_iter().try_for_each(|(name, cell)| add(name, cell))?;
        }
        if self.intensity.is_some() {
            let values = [region.mean(), region.extremes[0], region.extremes[1]];
            let cells = ["mean", "min", "max"].into_iter().zip(values.map(Cell::Number));
            cells.into_iter().try_for_each(|(name, cell)| add(name, cell))?;
        }
        Ok(())
    }

    /// Writes an array with an object for each row. JSON has no NaN and no infinity.
    fn write_json(
        &self,
        regions: Regions,
        voxel: Option<&(String, f64)>,
        file: &mut dyn Write,
    ) -> io::Result<()> {
        let mut before = "[";
        regions.for_each(|label, region| {
            writeln!(file, "{before}")?;
            let mut open = "{";
            self.for_each_cell(label, region, voxel, |name, cell| {
                match cell {
                    Cell::Number(number) if !number.is_finite() => {
                        write!(file, "{open}\"{name}\": null")?;
                    }
                    cell => write!(file, "{open}\"{name}\": {cell}")?,
                }
                open = ", ";
                Ok(())
            })?;
            before = ",";
            file.write_all(b"}")
        })?;
        file.write_all(if before == "[" { b"[]\n" } else { b"\n]\n" })
    }

    fn write_csv(
        &self,
        regions: Regions,
        voxel: Option<&(String, f64)>,
        file: &mut dyn Write,
    ) -> io::Result<()> {
        let mut before = "";
        self.for_each_cell(0, &Region::zeroed(), voxel, |name, _| {
            write!(file, "{}{name}", std::mem::replace(&mut before, ","))
        })?;
        file.write_all(b"\n")?;
        regions.for_each(|label, region| {
            let mut before = "";
            self.for_each_cell(label, region, voxel, |_, cell| {
                write!(file, "{}{cell}", std::mem::replace(&mut before, ","))
            })?;
            file.write_all(b"\n")
        })
    }
}

impl Observer for Table {
    /// Measures the components and writes the table.
    fn observe(&self, labels: &Label, own: Preparation<'_>) -> Result<()> {
        /// Samples that are measured at a time, unless a slice has more.
        const PART: usize = 1 << 18;
        if self.is_written.swap(true, Relaxed) {
            return Err(Error::usage(
                "--table holds one page or volume: choose it with --page or --volume",
            ));
        }
        let Preparation { device, input, workspace, pass, .. } = own;
        let (shape, axis) = (input.grid.shape, if self.layout.is_some() { 2 } else { 1 });
        let half = workspace.of(workspace.bytes / 2);
        let mut intensities = self.intensities(shape.dims, half.bytes)?;
        let (mut regions, mut next) = (Regions::new(half), 0);
        let [width, height, _] = shape.dims;
        let slice = if axis == 2 { width * height } else { width };
        let mut add = |labels: &Samples| -> Result<()> {
            let step = (PART / slice).max(1);
            for first in (0..labels.len() / slice).step_by(step) {
                let range = first * slice..labels.len().min((first + step) * slice);
                let count = range.len() / slice;
                let read = |from: &mut Intensities| from.next(count, range.len());
                let values = intensities.as_mut().map(read).transpose()?;
                regions.add(labels, range, [width, height], axis, next, values.as_ref())?;
                next += count;
            }
            Ok(())
        };
        match labels.with_whole(&mut add) {
            Some(added) => added?,
            None => {
                let mut first = 0;
                pass(&mut |grid| {
                    let own = first..first + grid.dims[axis];
                    first = own.end;
                    let block = Block { axis, shape, input: own.clone(), output: own };
                    add(&labels.run(device, grid, &block)?)
                })?;
            }
        }
        drop(intensities);
        let (sink, makes_folder) = &self.sink;
        if *makes_folder {
            sink.want_folder();
        }
        let voxel = input.placement.as_ref().map(voxel);
        let mut output = sink.create(self.no_clobber)?;
        match sink.extension().as_str() {
            "json" => self.write_json(regions, voxel.as_ref(), &mut output),
            _ => self.write_csv(regions, voxel.as_ref(), &mut output),
        }
        .map_err(|error| Error::io("write", sink.to_string(), error))?;
        *self.output.lock().unwrap_or_else(PoisonError::into_inner) = Some(output);
        Ok(())
    }

    fn finish(&self) -> Result<()> {
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner).take();
        output.map_or(Ok(()), Output::commit)
    }

    fn working_bytes(&self) -> u64 {
        // Labels, and intensities of up to 8 bytes.
        4 + if self.intensity.is_some() { 8 } else { 0 }
    }
}
