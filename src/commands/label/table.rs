//! The table of components (`--table`).

use std::{
    io::{self, Write},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use crate::{
    data::{grid::Shape, samples::Samples},
    device::Device,
    io::{
        Limits, Output, Sink, Source,
        image::read_image,
        volume::{Layout, VolumeFile, VolumeReader},
    },
    kernels::{
        filter::{Block, Filter, Pass},
        histogram::Luma,
        label::{Label, Observer, Region, add_labels},
    },
    util::{
        error::{Error, Result},
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
    Image(Samples, usize),
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
            Self::Volume(reader) => reader.read(slices),
        }
    }
}

impl Table {
    /// Opens the intensity image, whose size must be `dims`.
    fn intensities(&self, dims: [usize; 3]) -> Result<Option<Intensities>> {
        let Some(source) = &self.intensity else { return Ok(None) };
        let (own, opened) = match &self.layout {
            Some(layout) => {
                let file = VolumeFile::describe(source, layout)?;
                file.check(self.limits)?;
                (file.dims, Intensities::Volume(Box::new(file.reader()?)))
            }
            None => {
                let image = read_image(source, self.limits, &self.timings)?;
                let grey = Luma::Bt709.grey(&image.samples, image.channels)?.into_owned();
                ([image.width, image.height, 1], Intensities::Image(grey, 0))
            }
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

    /// Name of the column of physical volumes, and the volume of a sample, if it is known.
    fn voxel(&self) -> Result<Option<(String, f64)>> {
        let Some(layout) = &self.layout else { return Ok(None) };
        let file = VolumeFile::describe(&self.source, layout)?;
        Ok(file.placement.as_ref().map(|placement| {
            let unit = placement.unit.as_ref().map(|unit| format!("_{unit}3"));
            (format!("volume{}", unit.unwrap_or_default()), placement.determinant().abs())
        }))
    }

    /// The names and values of a row.
    fn row(
        &self,
        label: usize,
        region: &Region,
        voxel: Option<&(String, f64)>,
    ) -> Vec<(String, String)> {
        let (axes, unit) = if self.layout.is_some() { (3, "voxels") } else { (2, "pixels") };
        let mut row = vec![("label".to_owned(), label.to_string())];
        row.push((unit.to_owned(), region.size.to_string()));
        row.extend(
            voxel.map(|(name, size)| (name.clone(), (region.size as f64 * size).to_string())),
        );
        let mut add = |name: &str, value: &dyn Fn(usize) -> String| {
            let axes = ["x", "y", "z"].into_iter().take(axes).enumerate();
            row.extend(axes.map(|(axis, letter)| (format!("{name}_{letter}"), value(axis))));
        };
        add("start", &|axis| region.bounds[axis].start.to_string());
        add("end", &|axis| region.bounds[axis].end.to_string());
        add("centroid", &|axis| region.centroid()[axis].to_string());
        if self.intensity.is_some() {
            let values = [region.mean(), region.extremes[0], region.extremes[1]];
            let cells = ["mean", "min", "max"].into_iter().zip(values);
            row.extend(cells.map(|(name, value)| (name.to_owned(), value.to_string())));
        }
        row
    }
}

/// Writes an array with an object for each row. JSON has no NaN and no infinity.
fn write_json(
    rows: impl Iterator<Item = Vec<(String, String)>>,
    file: &mut dyn Write,
) -> io::Result<()> {
    let mut before = "[";
    for row in rows {
        let cells = row.iter().map(|(name, value)| {
            let is_number = value.parse().is_ok_and(f64::is_finite);
            format!("\"{name}\": {}", if is_number { value } else { "null" })
        });
        write!(file, "{before}\n{{{}}}", cells.collect::<Vec<_>>().join(", "))?;
        before = ",";
    }
    file.write_all(if before == "[" { b"[]\n" } else { b"\n]\n" })
}

fn write_csv(
    rows: impl Iterator<Item = Vec<(String, String)>>,
    heads: Vec<(String, String)>,
    file: &mut dyn Write,
) -> io::Result<()> {
    let heads: Vec<String> = heads.into_iter().map(|(name, _)| name).collect();
    writeln!(file, "{}", heads.join(","))?;
    for row in rows {
        let cells: Vec<String> = row.into_iter().map(|(_, value)| value).collect();
        writeln!(file, "{}", cells.join(","))?;
    }
    Ok(())
}

impl Observer for Table {
    /// Measures the components and writes the table.
    fn observe(&self, labels: &Label, device: &Device, shape: Shape, pass: Pass<'_>) -> Result<()> {
        if self.is_written.swap(true, Relaxed) {
            return Err(Error::usage(
                "--table holds one page or volume: choose it with --page or --volume",
            ));
        }
        let axis = if self.layout.is_some() { 2 } else { 1 };
        let (mut regions, mut first) = (Vec::new(), 0);
        let mut intensities = self.intensities(shape.dims)?;
        let mut add = |labels: &Samples, dims: [usize; 3], first: usize| -> Result<()> {
            let read = |from: &mut Intensities| from.next(dims[axis], labels.len());
            let values = intensities.as_mut().map(read).transpose()?;
            add_labels(&mut regions, (labels, dims), (axis, first), values.as_ref());
            Ok(())
        };
        match labels.reduced(device, axis, pass)? {
            Some(labels) => add(&labels, shape.dims, 0)?,
            None => pass(&mut |grid| {
                let own = first..first + grid.dims[axis];
                first = own.end;
                let block = Block { axis, shape, input: own.clone(), output: own.clone() };
                add(&labels.run_block(device, grid, &block)?, grid.dims, own.start)
            })?,
        }
        let (sink, makes_folder) = &self.sink;
        if *makes_folder {
            sink.create_folder()?;
        }
        let voxel = self.voxel()?;
        let rows = regions.iter().enumerate();
        let rows = rows.map(|(index, region)| self.row(index + 1, region, voxel.as_ref()));
        let mut output = sink.create(self.no_clobber)?;
        match sink.extension().as_str() {
            "json" => write_json(rows, &mut output),
            _ => write_csv(rows, self.row(0, &Region::EMPTY, voxel.as_ref()), &mut output),
        }
        .map_err(|error| Error::io("write", sink.to_string(), error))?;
        *self.output.lock().unwrap_or_else(PoisonError::into_inner) = Some(output);
        Ok(())
    }

    fn finish(&self) -> Result<()> {
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner).take();
        output.map_or(Ok(()), Output::commit)
    }
}
