//! The flags of every command that makes an image or volume of another one: inputs, outputs and their formats.

use std::{ffi::OsString, mem::take, sync::Arc};

use clap::Args;

use super::{
    FilesFromArgs, FolderArgs, IMAGE_FORMATS, OutputArgs, Outputs, PlannedOutput, ShardArgs,
    SideFiles, Step, Steps, Target, VolumeArgs, check_image_flags, choice_parser, is_volume_name,
    labels::check_labels, named_file, note_pages, refuse_terminal, with_pages_hint,
};
use crate::{
    data::volume::Dims,
    engine::{self, DescribeOnce, Job, Settings, Side, batch::check_all, session::Session},
    io::{
        Sink, Source, Sources,
        file_roles::{FileRoles, INPUT, replaces},
        image::{Encoding, ImageFormat, PageRange, has_jpeg_name},
        volume::{
            Layout, PyramidOptions, VolumeFormat, folder_or_pattern, is_volume, is_zarr_path,
        },
    },
    kernels::filter::Filter,
    util::error::{Error, Result},
};

/// Inputs and outputs of a filter, and their formats.
#[derive(Clone, Debug, Args)]
pub struct FilterArgs {
    /// The results are classes, which JPEG would change: where a result is named after a JPEG file, it becomes PNG.
    #[arg(skip)]
    pub makes_classes: bool,

    /// Input and output; with -o, only inputs; - is standard input or output
    #[arg(required_unless_present = "files_from", value_name = "FILE")]
    files: Vec<OsString>,

    #[command(flatten)]
    output: OutputArgs,

    /// Replace each input by its result
    ///
    /// With -o, it allows an output to replace its own input.
    #[arg(long)]
    #[arg(help_heading = "Output files")]
    in_place: bool,

    /// Quality of JPEG and WebP output, 1 to 100 [default: 90 for JPEG, lossless for WebP]
    ///
    /// JPEG below 95 and lossy WebP store colour at half the resolution.
    #[arg(long, value_name = "Q", value_parser = clap::value_parser!(u8).range(1..=100))]
    #[arg(help_heading = "Output files")]
    quality: Option<u8>,

    /// Make JPEG output smaller, but more slowly
    ///
    /// Huffman tables are computed for each image. The pixels stay the same.
    #[arg(long)]
    #[arg(help_heading = "Output files")]
    optimize: bool,

    /// Effort for PNG output, 0 (none) to 9 (smallest file) [default: 1]
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(..=9))]
    #[arg(help_heading = "Output files")]
    compression: Option<u8>,

    /// Format of image outputs; also --to [default: by the extension]
    ///
    /// On standard output, the default is the format of the input.
    #[arg(long, alias = "to", value_name = "FORMAT", value_parser = choice_parser(&IMAGE_FORMATS))]
    #[arg(help_heading = "Output files")]
    format: Option<ImageFormat>,

    /// Pages or frames to take: 3, 2..5 or 2.. [default: all, if the output can hold them]
    ///
    /// The first page is 1, and 2..5 includes page 5. TIFF, GIF, animated PNG and WebP can hold several pages.
    #[arg(long, value_name = "N|A..B")]
    #[arg(help_heading = "Output files")]
    page: Option<PageRange>,

    /// Number of levels of a Zarr output [default: until no axis is longer than 256]
    ///
    /// Each level is half as long as the one before.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=32))]
    #[arg(help_heading = "Output files")]
    levels: Option<u8>,

    /// Size of the chunks of a Zarr output along x, y and z [default: that of the input, else 128x128x64]
    #[arg(long, value_name = "XxYxZ")]
    #[arg(help_heading = "Output files")]
    chunks: Option<Dims>,

    /// Version of a Zarr output: 2 or 3 [default: that of the input, else 3]
    ///
    /// 2 writes OME-Zarr 0.4, 3 writes OME-Zarr 0.5.
    #[arg(long, value_name = "2|3", value_parser = clap::value_parser!(u8).range(2..=3))]
    #[arg(help_heading = "Output files")]
    zarr_version: Option<u8>,

    /// Chunks per file of a Zarr output, 1 to 64 [default: 1]
    ///
    /// Along x and y. Such a file is a shard of Zarr 3. The default is 8 if there are more than 65,536 chunks.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    #[arg(help_heading = "Output files")]
    file_chunks: Option<u8>,

    /// Write a page that shows the image before and after: -o page.html
    ///
    /// The page opens in a web browser and has a slider between both images.
    #[arg(long)]
    compare: bool,

    /// Print what would be done, without doing it
    #[arg(long)]
    dry_run: bool,

    /// Run another command on the result, such as --then threshold --otsu
    ///
    /// It may be repeated. Inputs are named in the first step, outputs in the last: `gpuproc help chains`.
    #[arg(long, value_name = "COMMAND", num_args = 1.., allow_hyphen_values = true)]
    then: Vec<OsString>,

    #[command(flatten)]
    list: FilesFromArgs,

    #[command(flatten)]
    folders: FolderArgs,

    #[command(flatten)]
    sharding: ShardArgs,

    #[command(flatten)]
    volume: VolumeArgs,
}

/// A command that filters files.
#[expect(missing_debug_implementations, reason = "it holds a function")]
pub struct FilterCommand {
    files: FilterArgs,
    step: Step,
}

impl FilterCommand {
    /// The command that filters `files` by the filter that `make` makes for an input of 2 or 3 axes.
    pub fn new(
        files: FilterArgs,
        make: impl Fn(&Source, usize) -> Result<Box<dyn Filter>> + Send + Sync + 'static,
    ) -> Self {
        let (makes_classes, reads) = (files.makes_classes, Vec::new());
        Self { files, step: Step { make: Arc::new(make), observed: None, makes_classes, reads } }
    }

    /// The same, but results depend on further inputs.
    pub fn reading(mut self, reads: Vec<Source>) -> Self {
        self.step.reads = reads;
        self
    }

    /// The same, but `make` makes filters that write further outputs.
    pub fn observed(
        mut self,
        make: impl Fn(&Source, usize) -> Result<(Box<dyn Filter>, SideFiles)> + Send + Sync + 'static,
    ) -> Self {
        self.step.observed = Some(Arc::new(make));
        self
    }

    /// Adds the command to a chain. Its files are not used.
    pub fn add_to(self, steps: &mut Steps) {
        steps.push(self.step);
    }

    /// Filters the results of `steps` for all inputs.
    ///
    /// # Errors
    /// When reading, computing or writing fails; [`Kind::Partial`](crate::util::error::Kind::Partial) when this
    /// concerns some of several files.
    pub fn run(self, mut steps: Steps, session: &Session) -> Result<()> {
        steps.push(self.step);
        let files = FilterArgs { makes_classes: steps.make_classes(), ..self.files };
        files.run(&steps, session)
    }
}

impl FilterArgs {
    /// How to read volumes. The number of a page means an image.
    pub fn layout(&self) -> Layout {
        let layout = self.volume.layout();
        Layout { pages: layout.pages || self.page.is_some(), ..layout }
    }

    /// Takes out the files that are named, as in `b=flat.tif`. Those named `first` remain, without the name.
    pub fn take_named(&mut self, first: &str) -> Vec<(String, Source)> {
        let mut named = Vec::new();
        self.files = take(&mut self.files)
            .into_iter()
            .filter_map(|word| match named_file(&word) {
                Some((name, file)) if name == first => Some(file.into()),
                Some((name, file)) => {
                    named.push((name.to_owned(), OsString::from(file).into()));
                    None
                }
                None => Some(word),
            })
            .collect();
        named
    }

    /// Whether this process does the first part of the job.
    pub fn is_first_shard(&self) -> bool {
        self.sharding.shard.is_none_or(|shard| shard.index() == 0)
    }

    /// Filters all inputs by `steps`, for one `-o` after the other.
    ///
    /// # Errors
    /// When flags contradict each other or the inputs, when two names mean one file, when the format of an output is
    /// unknown, and those of [`engine::run`].
    fn run(self, steps: &Steps, session: &Session) -> Result<()> {
        let outputs = self.output.split();
        self.list.check_outputs(outputs.len(), &self.files)?;
        let (count, mut left) = (outputs.len(), Some(self));
        let mut runs = Vec::new();
        session.check_files(|roles| {
            for output in outputs {
                // There may be many input names: the last run takes them without a copy.
                let args = if runs.len() + 1 == count { left.take() } else { left.clone() };
                let args = Self { output, ..args.expect("each output has a run") };
                // The first run writes the side files.
                let steps = Steps { leaves_side_files: !runs.is_empty(), ..steps.clone() };
                runs.push(args.plan(steps, roles, count == 1, session)?);
            }
            Ok(())
        })?;
        runs.into_iter().try_for_each(|(sources, jobs, settings)| {
            engine::run(sources, &|source| jobs.job(source), settings, session)
        })
    }

    /// The run for one `-o`, with its files added to `roles`. An output may replace its own input if it is the only one.
    fn plan(
        mut self,
        steps: Steps,
        roles: &mut FileRoles,
        is_one: bool,
        session: &Session,
    ) -> Result<(Sources, Jobs, Settings)> {
        let (mut sources, outputs) = self.files(session)?;
        // Another run of this command has the same inputs.
        if !steps.leaves_side_files {
            self.list.declare(roles)?;
            sources.iter().try_for_each(|source| roles.reads(INPUT, &source))?;
        }
        let settings = Settings {
            encoding: Encoding {
                quality: self.quality,
                optimized: self.optimize,
                compression: self.compression.unwrap_or(1),
            },
            pages: self.page.or(self.layout().pages.then_some(PageRange::ALL)),
            is_batch: self.list.files_from.is_some() || outputs.has_output_per_input(),
            shard: self.sharding.shard,
            resumes: self.sharding.resume,
            dry_run: self.dry_run,
        };
        let sharding = self.sharding;
        let jobs = Jobs { args: self, outputs, steps };
        // An error in any job is reported before the first job runs.
        check_all(&sources, |source| match jobs.job(source) {
            Err(error) if jobs.outputs.is_of_one_input(&error) => Ok(()),
            job => jobs.args.check_replaced(&job?),
        })?;
        jobs.check_encoding(&sources, session)?;
        jobs.declare(&sources, roles, is_one)?;
        if sources.iter().next().is_some_and(|first| jobs.steps.flatten(&first)) {
            note_pages(&sources, &jobs.args.layout());
        }
        if settings.is_batch {
            sources = sharding.files(sources.iter()).collect();
        }
        Ok((sources, jobs, settings))
    }

    /// The inputs, which are taken out of the flags, and where their results go.
    fn files(&mut self, session: &Session) -> Result<(Sources, Outputs)> {
        let mut files = take(&mut self.files);
        let mut output = None;
        if self.in_place && !self.output.is_given() {
            let sources = self.list.inputs(files, session)?;
            let sources = self.folders.pictures(sources, false)?;
            let outputs = Outputs::in_place(&sources);
            return Ok((sources, outputs));
        }
        if !self.output.is_given() {
            if files.len() != 2 || self.list.files_from.is_some() {
                return Err(Error::usage(match files.len() {
                    1 => "name an output: -o FILE, or -o DIR/",
                    _ => "give one input and one output, or inputs and -o DIR/",
                }));
            }
            output = files.pop().map(Target::from);
        }
        self.output.check_fields(output.as_ref(), &[])?;
        let sources = self.list.inputs(files, session)?;
        let is_volume =
            self.volume.layout().describes_volume() || self.output.is_volume(output.as_ref());
        let sources = self.folders.pictures(sources, is_volume)?;
        let outputs = self.output.plan(&sources, output)?;
        Ok((sources, outputs.expect("an output is named")))
    }

    /// Refuses to replace the input of `job`, unless the user typed its name as that of the output.
    fn check_replaced(&self, job: &Job) -> Result<()> {
        match job.makes_folder && !self.in_place && replaces(&job.sink, &job.source) {
            true => Err(Error::usage(format_args!(
                "{}: the output would replace the input; add --in-place if it should",
                job.source
            ))),
            false => Ok(()),
        }
    }

    /// The extension of the output for `source` where it differs from that of the input.
    fn extension(&self, source: &Source) -> Option<String> {
        let is_lossy = self.makes_classes && has_jpeg_name(source);
        if let Some(format) = self.format.or(is_lossy.then_some(ImageFormat::Png)) {
            return Some(format.extension().to_owned());
        }
        let path = folder_or_pattern(source)?;
        // The slices in a folder become one file. A dot in the name of the folder does not begin an extension: `a.b`
        // becomes `a.b.nrrd`.
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Some(match name.rsplit_once('.') {
            Some((stem, rest)) if !stem.is_empty() => format!("{rest}.nrrd"),
            _ => "nrrd".into(),
        })
    }

    /// The format of an image output; `None` for that of the input.
    fn image_format(
        &self,
        source: &Source,
        sink: &Sink,
        (is_volume, is_flat): (bool, bool),
    ) -> Result<Option<ImageFormat>> {
        let is_volume = match is_volume && is_flat && !is_zarr_path(sink) {
            true if self.format.is_some() => false,
            true if matches!(sink, Sink::File(_)) => ImageFormat::for_output(sink).is_err(),
            _ => is_volume,
        };
        Ok(match (is_volume, self.format, sink) {
            (true, Some(_), _) => {
                return Err(Error::usage(format_args!(
                    "{source}: --format is for images; the format of a volume follows from the extension of the output"
                )));
            }
            (true, None, sink) if is_zarr_path(sink) => None,
            (true, None, _) => {
                VolumeFormat::for_output(sink)?;
                None
            }
            (false, None, Sink::Stdout) => None,
            (false, None, _) => Some(ImageFormat::for_output(sink)?),
            (false, format, _) => format,
        })
    }
}

struct Jobs {
    args: FilterArgs,
    outputs: Outputs,
    steps: Steps,
}

impl Jobs {
    /// Adds the outputs of all jobs to `roles`, and their side files.
    fn declare(&self, sources: &Sources, roles: &mut FileRoles, is_one: bool) -> Result<()> {
        let args = &self.args;
        let extension = |source: &Source| Ok(args.extension(source));
        self.outputs.declare(sources, extension, roles, is_one)?;
        let layout = args.layout();
        let declare = |source| self.steps.side_files_of(&source, &layout)?.declare(roles);
        sources.iter().try_for_each(declare)
    }

    /// Refuses options of formats that no output has.
    fn check_encoding(&self, sources: &Sources, session: &Session) -> Result<()> {
        let FilterArgs { quality, optimize, compression, .. } = &self.args;
        let writes = |formats: &[ImageFormat]| {
            let mut jobs = sources.iter().filter_map(|source| self.job(source).ok());
            // The format of standard output is that of the input, and a page holds JPEG or PNG.
            jobs.any(|job| {
                job.volume.is_none() && job.format.is_none_or(|own| formats.contains(&own))
            })
        };
        for (is_given, flag, formats, name) in [
            (
                quality.is_some(),
                "quality",
                &[ImageFormat::Jpeg, ImageFormat::WebP][..],
                "JPEG or WebP",
            ),
            (*optimize, "optimize", &[ImageFormat::Jpeg], "JPEG"),
            (compression.is_some(), "compression", &[ImageFormat::Png], "PNG"),
        ] {
            if is_given && !session.defaults.iter().any(|name| name == flag) && !writes(formats) {
                return Err(Error::usage(format_args!(
                    "--{flag} is for {name}, but no output is {name}"
                )));
            }
        }
        Ok(())
    }

    /// Creates the job of the input `source`.
    ///
    /// # Errors
    /// When flags contradict the input, and when the format of its output is unknown.
    fn job(&self, source: Source) -> Result<Job> {
        let args = &self.args;
        let extension = args.extension(&source);
        let PlannedOutput { source, sink, makes_folder } =
            self.outputs.output_for(source, extension.as_deref())?;
        let layout = args.layout();
        let is_volume = is_volume(&source, &layout);
        let with_hint = |error| with_pages_hint(error, &source, is_volume);
        if is_volume && args.page.is_some() {
            return Err(Error::usage(format_args!(
                "{source}: --page is for images; this is a volume"
            )));
        }
        if !is_volume {
            check_image_flags(&source, &layout)?;
        }
        let compares = args.compare || sink.extension() == "html" && !is_volume;
        if compares && (is_volume || sink.extension() != "html" || args.format.is_some()) {
            return Err(with_hint(Error::usage(format_args!(
                "{source}: --compare makes a page of one image: name an output that ends with .html"
            ))));
        }
        let axes = if is_volume { 3 } else { 2 };
        // Only flags for volumes are worth the hint.
        let suits_other = || self.steps.filter(&source, 5 - axes).is_ok();
        let (filter, side) = self
            .steps
            .observed(&source, axes)
            .map_err(|error| if suits_other() { with_hint(error) } else { error })?;
        let is_flat = filter.flat_axis().is_some();
        let format = if compares {
            None
        } else {
            let format = args.image_format(&source, &sink, (is_volume, is_flat));
            // The output may have the extension of the input.
            let is_named_alike = sink.extension() == source.extension() && makes_folder;
            let is_about_volumes = is_volume || is_volume_name(&sink);
            let format = format.map_err(|error| match is_named_alike {
                true => self.outputs.unusable_name(&source, error),
                false if is_about_volumes => with_hint(error),
                false => error,
            })?;
            refuse_terminal(&sink)?;
            format
        };
        check_labels(&*filter, &sink, format, is_volume)?;
        let pyramid = PyramidOptions {
            levels: args.levels.map(usize::from),
            chunk: args.chunks,
            version: args.zarr_version,
            file_chunks: args.file_chunks.map(usize::from),
        };
        if pyramid != PyramidOptions::default() && !(is_volume && is_zarr_path(&sink)) {
            return Err(with_hint(Error::usage(format_args!(
                "{sink}: --levels, --chunks, --file-chunks and --zarr-version are for outputs whose name ends with .zarr"
            ))));
        }
        let volume = is_volume.then(|| Box::new(layout));
        let side = Side {
            reads: side.reads.into_iter().map(|(_, source)| source).collect(),
            writes: side.writes.into_iter().map(|(_, sink)| sink).collect(),
            pending: side.pending,
        };
        let prepared = None;
        Ok(Job {
            side,
            source,
            sink,
            filter,
            prepared,
            volume,
            described: DescribeOnce::default(),
            compares,
            format,
            makes_folder,
            pyramid,
        })
    }
}
