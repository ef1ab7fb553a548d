//! Outputs of volumes: files, planes as images, and Zarr stores. One process writes them, or several.
//!
//! A store has levels. Each level is computed from the next finer one while that is in memory. With shards, each
//! process writes the chunks of its slices, on all levels that have at least one layer of chunks per shard. The process
//! that ends last writes the coarser levels.

use std::{
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::job::Job;
use crate::{
    data::{
        description::{Description, Kind, Origin},
        dtype::Dtype,
        grid::Shape,
        image::{Density, DensityUnit, Image, Metadata},
        samples::Samples,
        shard::Shard,
    },
    engine::session::Session,
    io::{
        Finished, OutputFolder, Sink, Source,
        file_roles::replaces,
        identity::Identity,
        image::{Encoding, ImageTarget},
        losses,
        shared_output::{SharedFile, SharedOutput},
        volume::{
            self, Endian, Layout, Pyramid, PyramidWriter, VolumeFile, VolumeTarget,
            check_store_path, is_zarr_path,
        },
    },
    util::error::{Error, Result},
};

/// The output of a volume, planned for a result.
pub struct VolumeOutput<'a> {
    sink: &'a Sink,
    result: Description,
    form: Form<'a>,
}

enum Form<'a> {
    File(VolumeTarget<'a>),
    /// A result that is flat along an axis, as an image.
    Plane(ImageTarget<'a>, usize),
    Store(Pyramid, &'a Path),
}

/// Writes the slices of a result.
pub trait VolumeWriter: Send {
    /// The slices that this process computes.
    fn own(&self) -> Range<usize>;

    /// Whether the result should be written in blocks even if it fits into memory.
    fn takes_blocks(&self) -> bool {
        false
    }

    /// Begins volume `number`, whose samples have the type `dtype`.
    ///
    /// # Errors
    /// If the output cannot hold that type.
    fn begin(&mut self, _number: usize, _dtype: Dtype) -> Result<()> {
        Ok(())
    }

    /// Writes the slices from `first` on. They arrive in order.
    ///
    /// # Errors
    /// `Kind::Io`.
    fn write(&mut self, first: usize, samples: Samples) -> Result<()>;

    /// Ends a volume.
    ///
    /// # Errors
    /// `Kind::Io`.
    fn end(&mut self) -> Result<()> {
        Ok(())
    }

    /// Whether other processes have completed the output.
    fn is_complete(&self) -> bool {
        false
    }

    /// Completes the output, except for its name, or the part of this shard. `finding` is the
    /// [finding](crate::kernels::filter::Filter::finding) of the filter.
    ///
    /// # Errors
    /// `Kind::Io`.
    fn finish(self: Box<Self>, finding: &Value) -> Result<Option<Finished>>;
}

impl<'a> VolumeOutput<'a> {
    /// Plans the output of `job`. `described` is the input with the size and placement of the result; `result`
    /// describes the samples of the result.
    ///
    /// # Errors
    /// If the output cannot hold the result.
    pub fn new(
        job: &'a Job,
        described: &VolumeFile,
        result: Description,
        (layout, encoding): (&Layout, Encoding),
        session: &'a Session,
    ) -> Result<Self> {
        let sink = &job.sink;
        let form = if is_zarr_path(sink) {
            let Sink::File(path) = sink else {
                return Err(Error::usage("Zarr needs a folder as output, not standard output"));
            };
            check_store_path(path)?;
            let dtype = result.grid.dtype;
            let mut pyramid = Pyramid::new(described, dtype, layout, job.pyramid)?;
            // Means of labels are not labels.
            pyramid.are_labels &= result.origin == Origin::Selected;
            pyramid.are_labels |= result.kind == Kind::Labels;
            Form::Store(pyramid, path)
        } else if let (Some(format), Some(axis)) = (job.format, job.filter.flat_axis()) {
            if result.grid.shape.dims[axis] != 1 {
                return Err(Error::usage(format_args!(
                    "{sink}: the result is a volume; use a volume format such as .nii or .nrrd"
                )));
            }
            Form::Plane(session.image_target(sink, format, encoding), axis)
        } else {
            let endian = layout.endian.unwrap_or(Endian::Little);
            Form::File(VolumeTarget::new(sink, described, result.grid.dtype, endian)?)
        };
        Ok(Self { sink, result, form })
    }

    /// Refuses labels that the output cannot hold, and reports what else is lost.
    ///
    /// # Errors
    /// If labels do not fit, or anything is lost and the session is strict.
    pub fn check(&self, session: &Session) -> Result<()> {
        let (dtype, are_labels) = (self.result.grid.dtype, self.result.kind == Kind::Labels);
        let lost = match &self.form {
            Form::File(target) => {
                if are_labels {
                    target.check_labels(dtype)?;
                }
                target.losses()
            }
            // Losses of images are reported when they are encoded.
            Form::Plane(target, _) => {
                if are_labels {
                    target.check_labels(dtype)?;
                }
                None
            }
            Form::Store(pyramid, _) => pyramid.losses(),
        };
        lost.map_or(Ok(()), |lost| losses::report(self.sink, lost, session.strict))
    }

    /// Bytes in memory while slices are written.
    pub fn held(&self) -> u64 {
        if let Form::Store(pyramid, _) = &self.form { pyramid.bytes(0) } else { 0 }
    }

    /// Number of volumes in the output.
    pub fn volumes(&self) -> usize {
        if let Form::Store(pyramid, _) = &self.form { pyramid.volumes() } else { 1 }
    }

    /// Number of slices.
    pub fn depth(&self) -> usize {
        self.result.grid.shape.dims[2]
    }

    /// Creates the output for all slices.
    ///
    /// # Errors
    /// `Kind::Io`.
    pub fn create<'p>(&'p self, session: &'p Session) -> Result<Box<dyn VolumeWriter + 'p>> {
        let (dims, own) = (self.result.grid.shape.dims, 0..self.depth());
        Ok(match &self.form {
            Form::File(target) => {
                Box::new(FileWriter { writer: target.create(dims, session.no_clobber)?, own })
            }
            Form::Plane(target, axis) => {
                let samples = Samples::zeros(self.result.grid.dtype, 0)?;
                Box::new(PlaneWriter { target, result: &self.result, axis: *axis, samples })
            }
            Form::Store(pyramid, path) => {
                let folder = OutputFolder::create(path, session.no_clobber)?;
                pyramid.create(folder.path())?;
                let place = Place::New(folder);
                Box::new(StoreWriter::new(pyramid, place, own, pyramid.levels.len()))
            }
        })
    }

    /// Opens the output for the slices of `shard`; `None` if that shard is done.
    ///
    /// # Errors
    /// `Kind::Io`, and `Kind::Usage` for outputs that several processes cannot share.
    pub fn open_shared<'p>(
        &'p self,
        job: &'p Job,
        (layout, shard): (&Layout, Shard),
        session: &'p Session,
    ) -> Result<Option<Box<dyn VolumeWriter + 'p>>> {
        let identity = identity(job, layout, shard, session)?;
        let [width, height, depth] = self.result.grid.shape.dims;
        let opened: Option<Box<dyn VolumeWriter + 'p>> = match &self.form {
            Form::File(target) => {
                let header = target.header([width, height, depth]).ok_or_else(|| {
                    Error::usage(format_args!(
                        "{}: --shard needs an uncompressed output",
                        self.sink
                    ))
                })?;
                let slice = (width * height * target.channels() * target.dtype().size()) as u64;
                let length = header.len() as u64 + slice * depth as u64;
                let complete =
                    move |_: &Path, findings: &[Value]| job.report_warning_of(findings, session);
                let file =
                    SharedFile::open(self.sink, &identity, length, session.no_clobber, &complete)?;
                let own = shard.range(depth);
                match file {
                    None => None,
                    Some(file) => {
                        if shard.index() == 0 {
                            file.write_at(&header, 0)?;
                        }
                        let (first, complete) = (header.len() as u64, Box::new(complete));
                        Some(Box::new(SharedWriter { target, file, own, first, slice, complete }))
                    }
                }
            }
            Form::Store(pyramid, _) => {
                let layers = |level: usize| depth.div_ceil(pyramid.unit(level));
                // The coarsest level that has a layer of chunks for every shard, or else the finest level.
                let levels = (0..pyramid.levels.len()).rev();
                let last = { levels }.find(|&level| layers(level) >= shard.count()).unwrap_or(0);
                let create = |data: &Path| {
                    fs::create_dir(data).map_err(|error| Error::io("write", data, error))?;
                    pyramid.create(data)
                };
                let complete = move |data: &Path, findings: &[Value]| {
                    job.report_warning_of(findings, session)?;
                    complete_store(pyramid, data, last, session)
                };
                let own = shard.range(layers(last));
                let slice = |layer: usize| (layer * pyramid.unit(last)).min(depth);
                let own = slice(own.start)..slice(own.end);
                let place = SharedOutput::open(
                    self.sink,
                    &identity,
                    session.no_clobber,
                    &create,
                    &complete,
                )?;
                let place = place.map(|place| Place::Shared(place, Box::new(complete)));
                place.map(|place| {
                    Box::new(StoreWriter::new(pyramid, place, own, last + 1)) as Box<_>
                })
            }
            Form::Plane(..) => {
                return Err(Error::usage(format_args!(
                    "{}: --shard cannot write an image",
                    self.sink
                )));
            }
        };
        if opened.is_none() {
            session.events.skipped(&job.source, Some(&job.sink));
        }
        Ok(opened)
    }
}

/// Identity of the part of `job` that `shard` computes.
fn identity(job: &Job, layout: &Layout, shard: Shard, session: &Session) -> Result<Identity> {
    if replaces(&job.sink, &job.source) {
        return Err(Error::usage(format_args!(
            "{}: --shard cannot replace its input, which other shards still read",
            job.sink
        )));
    }
    let parameters = (job.filter.parameters(), layout, &job.pyramid, session.strict);
    let inputs = std::iter::once(&job.source).chain(&job.side.reads);
    Identity::new(job.filter.name(), &parameters, inputs, shard)
}

struct FileWriter<'p> {
    writer: volume::VolumeWriter<'p>,
    own: Range<usize>,
}

impl VolumeWriter for FileWriter<'_> {
    fn own(&self) -> Range<usize> {
        self.own.clone()
    }

    fn write(&mut self, _first: usize, samples: Samples) -> Result<()> {
        self.writer.write(samples)
    }

    fn finish(self: Box<Self>, _finding: &Value) -> Result<Option<Finished>> {
        Ok(Some(Finished::File(self.writer.finish()?)))
    }
}

struct PlaneWriter<'p> {
    target: &'p ImageTarget<'p>,
    result: &'p Description,
    axis: usize,
    samples: Samples,
}

impl VolumeWriter for PlaneWriter<'_> {
    fn own(&self) -> Range<usize> {
        0..self.result.grid.shape.dims[2]
    }

    fn write(&mut self, _first: usize, samples: Samples) -> Result<()> {
        self.samples.append(&samples)
    }

    fn finish(self: Box<Self>, _finding: &Value) -> Result<Option<Finished>> {
        let Self { target, result, axis, samples } = *self;
        let Shape { dims, channels } = result.grid.shape;
        let [across, down] = [[1, 2], [0, 2], [0, 1]][axis];
        let placement = result.placement.as_ref().filter(|own| own.unit.is_some());
        let spacing =
            placement.and_then(|own| own.in_nearest_unit(&["cm"])).map(|own| own.spacing());
        let density = spacing.and_then(|spacing| {
            let per_centimetre = [across, down].map(|axis| 1.0 / spacing[axis]);
            Density::new(per_centimetre, DensityUnit::Centimetre)
        });
        let metadata = Metadata { density, ..Metadata::default() };
        let (width, height) = (dims[across], dims[down]);
        let image = Image { width, height, channels, samples, is_linear: false, metadata };
        let image = target.with_numbers(image, result.numbers)?;
        target.encode(image).map(Some)
    }
}

/// Writes the slices of a shard to their offset in a file.
struct SharedWriter<'p> {
    target: &'p VolumeTarget<'p>,
    file: SharedFile,
    own: Range<usize>,
    /// Offset of the first slice of the volume.
    first: u64,
    /// Bytes of a slice.
    slice: u64,
    complete: Complete<'p>,
}

/// An owned [`CompleteFn`](crate::io::shared_output::CompleteFn).
type Complete<'p> = Box<dyn Fn(&Path, &[Value]) -> Result<()> + Send + Sync + 'p>;

impl VolumeWriter for SharedWriter<'_> {
    fn own(&self) -> Range<usize> {
        self.own.clone()
    }

    fn takes_blocks(&self) -> bool {
        true
    }

    fn write(&mut self, first: usize, samples: Samples) -> Result<()> {
        let samples = self.target.stored(samples)?;
        self.file.write_at(samples.as_bytes(), self.first + self.slice * first as u64)
    }

    fn finish(self: Box<Self>, finding: &Value) -> Result<Option<Finished>> {
        self.file.finish(finding, &*self.complete)?;
        Ok(None)
    }
}

/// Writes the levels of volumes to a store.
struct StoreWriter<'p> {
    pyramid: &'p Pyramid,
    place: Place<'p>,
    own: Range<usize>,
    /// Number of levels to write.
    levels: usize,
    /// Writes the current volume.
    writer: Option<PyramidWriter<'p>>,
}

/// Output folder of a store.
enum Place<'p> {
    New(OutputFolder),
    Shared(SharedOutput, Complete<'p>),
}

impl<'p> StoreWriter<'p> {
    fn new(pyramid: &'p Pyramid, place: Place<'p>, own: Range<usize>, levels: usize) -> Self {
        Self { pyramid, place, own, levels, writer: None }
    }
}

impl VolumeWriter for StoreWriter<'_> {
    fn own(&self) -> Range<usize> {
        self.own.clone()
    }

    fn takes_blocks(&self) -> bool {
        true
    }

    fn begin(&mut self, number: usize, dtype: Dtype) -> Result<()> {
        if dtype.size() > self.pyramid.dtype.size() {
            return Err(Error::bad_input(format_args!(
                "volume {number} has more than 65,535 labels, and the first one has fewer; use --volume to label one at a time",
            )));
        }
        let (folder, is_shared) = match &self.place {
            Place::New(folder) => (folder.path().to_owned(), false),
            Place::Shared(output, _) => (output.data(), true),
        };
        let levels = (0..self.levels, self.own.start);
        self.writer = Some(PyramidWriter::new(self.pyramid, folder, number, levels, is_shared));
        Ok(())
    }

    fn write(&mut self, _first: usize, samples: Samples) -> Result<()> {
        let is_other = samples.dtype() != self.pyramid.dtype;
        let samples = if is_other { samples.converted(self.pyramid.dtype)? } else { samples };
        self.writer.as_mut().map_or(Ok(()), |writer| writer.push(&samples))
    }

    fn end(&mut self) -> Result<()> {
        self.writer.take().map_or(Ok(()), PyramidWriter::finish)
    }

    fn is_complete(&self) -> bool {
        matches!(&self.place, Place::Shared(output, _) if output.is_complete())
    }

    fn finish(self: Box<Self>, finding: &Value) -> Result<Option<Finished>> {
        match self.place {
            Place::New(folder) => Ok(Some(Finished::Folder(folder))),
            Place::Shared(output, complete) => output.finish(finding, &*complete).map(|()| None),
        }
    }
}

/// Writes the levels of a store that are coarser than level `last`, which is complete.
fn complete_store(pyramid: &Pyramid, data: &Path, last: usize, session: &Session) -> Result<()> {
    let levels = pyramid.levels.len();
    if last + 1 >= levels {
        return Ok(());
    }
    for volume in 0..pyramid.volumes() {
        let layout = Layout { volume: Some(volume), level: Some(last), ..Layout::default() };
        let source = Source::from(PathBuf::from(data));
        let file = VolumeFile::describe(&source, &layout)?;
        file.check(session.limits(1))?;
        let range = (last..levels, 0);
        let mut writer = PyramidWriter::new(pyramid, data.to_owned(), volume, range, true);
        writer.skip_first_level();
        let (mut reader, depth) = (file.reader()?, file.dims[2]);
        let step = pyramid.unit(last) / pyramid.levels[last].factors[2];
        for first in (0..depth).step_by(step.max(1)) {
            writer.push(&reader.read(step.min(depth - first))?)?;
        }
        writer.finish()?;
    }
    Ok(())
}
