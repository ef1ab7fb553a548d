//! The [`MeshJob`] that the flags of `gpuproc mesh` make.

mod args;
mod preview;
mod values;

use std::{
    ffi::OsString,
    mem::take,
    path::{Path, PathBuf},
};

pub use self::args::Args;
use super::{
    color_by::ColorBy,
    job::{Iso, MeshJob, holds_several},
    label_list::{LABEL_FIELD, LabelList},
    names::{ISO_FIELD, add_iso_field, has_field},
    outputs::declare_outputs,
    preview::Preview,
};
use crate::{
    commands::flags::{Outputs, PlannedOutput, ShardArgs, Steps, Target, refuse_terminal},
    engine::{batch::check_all, session::Session},
    io::{
        Sink, Source, Sources, file_roles::FileRoles, image::has_image_name, mesh::MeshFormat,
        volume::is_dicom,
    },
    kernels::mesh::{
        MarchingCubes, Topology,
        labels::DEFAULT_STEPS,
        post::{Goal, PartFilter},
    },
    util::error::{Error, Result},
};

/// Makes the job of each volume.
#[derive(Debug)]
pub(super) struct Jobs {
    flags: Args,
    /// Destination of the results; `None` for the default output of one volume.
    outputs: Option<Outputs>,
    /// Whether the volume is the only one, with an output that is not in a folder.
    is_alone: bool,
    /// Whether there is more than one volume.
    are_several: bool,
}

impl Jobs {
    /// The shard of this process, and whether finished work is skipped.
    pub(super) fn sharding(&self) -> ShardArgs {
        self.flags.sharding
    }

    /// Whether the job is one volume, whose layers shards divide among themselves.
    pub(super) fn is_alone(&self) -> bool {
        self.is_alone
    }

    fn is_of_one_input(&self, error: &Error) -> bool {
        self.outputs.as_ref().is_some_and(|outputs| outputs.is_of_one_input(error))
    }

    /// The job that meshes the volume `source`.
    pub(super) fn job_for(&self, source: Source) -> Result<MeshJob> {
        let Some(outputs) = &self.outputs else { return self.flags.job(source, None) };
        let extension = self.flags.extension()?;
        let extension = (!self.is_alone).then_some(extension);
        let PlannedOutput { source, sink, makes_folder } = outputs.output_for(source, extension)?;
        let job = self.flags.job(source, Some(sink))?;
        match job.preview {
            Some(_) if self.are_several => Err(Error::usage(
                "--preview draws one volume, not several: mesh them one at a time",
            )),
            _ => Ok(MeshJob { creates_folder: makes_folder, ..job }),
        }
    }
}

impl Args {
    /// The same for the results of `steps`.
    pub fn after(self, steps: Steps) -> Self {
        Self { steps, ..self }
    }

    /// Validates the flags, makes the jobs, and adds their files to `roles`; the inputs only if this is the first run.
    pub(super) fn work(
        mut self,
        roles: &mut FileRoles,
        is_first: bool,
        session: &Session,
    ) -> Result<(Sources, Jobs)> {
        let mut files = take(&mut self.files);
        if let Some(list) = self.list_among(&mut files)? {
            self.labels = Some(list);
        }
        self.inputs_and_jobs(files, roles, is_first, session)
    }

    /// These flags once for each `-o`.
    pub(super) fn for_each_output(self) -> Result<Vec<Self>> {
        let outputs = self.output.split();
        self.list.check_outputs(outputs.len(), &self.files)?;
        if outputs.len() <= 1 {
            return Ok(vec![self]);
        }
        let with = |(number, output)| {
            let leaves_side_files = number > 0;
            let steps = Steps { leaves_side_files, ..self.steps.clone() };
            let mut one = Self { output, steps, ..self.clone() };
            if leaves_side_files {
                one.preview.remove();
            }
            one
        };
        Ok(outputs.into_iter().enumerate().map(with).collect())
    }

    /// Removes the list of labels from `files`. In `--labels 1,3`, without `=`, the parser takes the list for a file.
    fn list_among(&self, files: &mut Vec<OsString>) -> Result<Option<LabelList>> {
        let is_list = |file: &OsString| {
            let text = file.to_string_lossy();
            let is_mesh =
                text.rsplit('.').next().is_some_and(|end| end.parse::<MeshFormat>().is_ok());
            let is_like = text.contains(',') || text.contains("..") || text.parse::<u64>().is_ok();
            text.starts_with(|c: char| c.is_ascii_digit()) && is_like && !is_mesh
        };
        if self.labels != Some(LabelList::All) {
            return Ok(None);
        }
        let at = files.iter().position(|file| is_list(file) && !Path::new(file).exists());
        let list = at.map(|at| files.remove(at).to_string_lossy().parse());
        list.transpose().map_err(|error| Error::usage(format_args!("--labels: {error}")))
    }

    fn inputs_and_jobs(
        self,
        mut files: Vec<OsString>,
        roles: &mut FileRoles,
        is_first: bool,
        session: &Session,
    ) -> Result<(Sources, Jobs)> {
        let mut output = None;
        if !self.output.is_given() {
            output = match (files.len(), &self.list.files_from) {
                (1, None) => None,
                (2, None) => files.pop().map(Target::from),
                _ => {
                    let message = "give one volume and one output, or volumes and -o DIR/";
                    return Err(slices_error(&files).unwrap_or_else(|| Error::usage(message)));
                }
            };
        }
        let field = if self.labels.is_some() { LABEL_FIELD } else { ISO_FIELD };
        self.output.check_fields(output.as_ref(), &[field])?;
        let extension = |_: &Source| Ok(Some(self.extension()?.to_owned()));
        let mut sources = self.list.inputs(files, session)?;
        let planned = self.output.plan(&sources, output);
        let outputs = planned.map_err(|error| {
            let names = sources.iter().filter_map(|source| Some(source.path()?.into()));
            slices_error(&names.collect::<Vec<_>>()).unwrap_or(error)
        })?;
        if let Some(outputs) = &outputs {
            // Isovalues in the names are still to be filled in.
            outputs.declare(&sources, extension, &mut FileRoles::default(), true)?;
        }
        let has_output_per_input = outputs.as_ref().is_some_and(Outputs::has_output_per_input);
        let is_listed = outputs.is_some() && self.list.files_from.is_some();
        let is_alone =
            outputs.is_none() || sources.len() == 1 && !is_listed && !has_output_per_input;
        let jobs = Jobs { flags: self, outputs, is_alone, are_several: sources.len() > 1 };
        // Jobs are built again when they run. Here, errors of any of them are reported before the first one runs.
        check_all(&sources, |source| match jobs.job_for(source) {
            Err(error) if jobs.is_of_one_input(&error) => Ok(()),
            job => job.map(drop),
        })?;
        jobs.flags.list.declare(roles)?;
        for source in sources.iter() {
            let job = match jobs.job_for(source) {
                Err(error) if jobs.is_of_one_input(&error) => continue,
                job => job?,
            };
            if is_first {
                job.declare_inputs(roles)?;
            }
            job.steps.side_files(&job.volume, 3)?.declare(roles)?;
            declare_outputs(&job, roles)?;
        }
        if !is_alone {
            sources = jobs.sharding().files(sources.iter()).collect();
        }
        Ok((sources, jobs))
    }

    /// The extension of outputs that are named like the inputs.
    fn extension(&self) -> Result<&'static str> {
        Ok(self.format(None)?.extension())
    }

    /// The job that meshes `volume`, to `output` or by default to a file named like the volume.
    fn job(&self, volume: Source, output: Option<Sink>) -> Result<MeshJob> {
        if self.raw.layout().pages {
            return Err(Error::usage("--pages is for images; surfaces are those of volumes"));
        }
        let sharding = self.sharding;
        // The format of the mesh does not follow from the name of a shard's part file.
        let is_part = sharding.shard.is_some() && !self.output.has_output_per_input();
        let format = self.format(output.as_ref().filter(|_| !is_part))?;
        let isovalues: Vec<Iso> = self.iso.iter().flat_map(|iso| iso.0.clone()).collect();
        let several = isovalues.len() > 1 && !holds_several(format);
        let output = self.output_name(&volume, output, format, several)?;
        if !self.ascii && format.is_binary() {
            refuse_terminal(&output)?;
        }
        self.check_colors(format)?;
        self.check_live(format)?;
        if self.printable && !format.is_for_printing() {
            return Err(Error::usage("--printable is for STL and 3MF"));
        }
        if self.labels.is_some() {
            self.check_labels(&output, format)?;
        }
        let preview = self.picture(&output, format, isovalues.len() > 1)?;
        Ok(MeshJob {
            volume,
            layout: self.raw.layout(),
            steps: self.steps.clone(),
            labels: self.labels.clone(),
            region: self.region.clone(),
            isovalues,
            kernel: MarchingCubes {
                close: self.close || self.printable,
                // Viewers of glTF draw facets where there are no normals.
                normals: self.normals || (format == MeshFormat::Glb && self.labels.is_none()),
                topology: self.topology,
                ..MarchingCubes::new(0.0)
            },
            coordinates: self.coordinates,
            cleans: self.clean || self.printable,
            printable: self.printable,
            parts: PartFilter {
                largest: self.largest,
                min_triangles: self.min_triangles,
                min_volume: self.min_volume,
                fill_holes: self.fill_holes,
            },
            smooth: self.smooth.unwrap_or(if self.labels.is_some() { DEFAULT_STEPS } else { 0 }),
            simplify: self.goal(),
            stats: self.stats,
            output,
            creates_folder: false,
            format,
            colors: self.color.clone(),
            color_by: self.color_by.clone().map(|source| ColorBy {
                source,
                palette: self.palette,
                range: self.color_range,
            }),
            ascii: self.ascii,
            view: self.preview.view(),
            live: self.live,
            preview,
            sharding,
        })
    }

    /// The name of the output, with `{iso}` in it where `several` isovalues need a file each.
    fn output_name(
        &self,
        volume: &Source,
        output: Option<Sink>,
        format: MeshFormat,
        several: bool,
    ) -> Result<Sink> {
        match output {
            Some(sink) if several && sink.is_stream() => Err(Error::usage(
                "several --iso need a file each: name an output such as {iso}.ply",
            )),
            Some(sink) if several => Ok(add_iso_field(sink)),
            Some(sink) => Ok(sink),
            None if self.sharding.shard.is_some() => {
                Err(Error::usage("with --shard, name the part to write, as 3.part"))
            }
            None if several => Ok(add_iso_field(default_output(volume, format)?)),
            None => default_output(volume, format),
        }
    }

    /// Refuses colours that the format cannot hold, and two kinds of colours.
    fn check_colors(&self, format: MeshFormat) -> Result<()> {
        if !self.color.is_empty() && format != MeshFormat::Glb {
            return Err(Error::usage("--color is for GLB only"));
        }
        if self.color_by.is_some() && !format.has_colors() {
            return Err(Error::usage(format_args!(
                "--color-by colours the vertices of PLY, OBJ and GLB; {} is written without colours",
                format.extension()
            )));
        }
        if self.color_by.is_some() && !self.color.is_empty() {
            return Err(Error::usage(
                "--color and --color-by exclude each other: give one of them",
            ));
        }
        Ok(())
    }

    /// Refuses `--live` for other formats than pages, and with flags that a page cannot apply.
    fn check_live(&self, format: MeshFormat) -> Result<()> {
        if self.live && format != MeshFormat::Html {
            return Err(Error::usage("--live is for pages: name an output that ends with .html"));
        }
        let changed = self.chooses_parts() || self.clean || self.topology != Topology::Classic;
        let changed = changed || !self.region.is_all();
        let smoothed = self.smooth.is_some_and(|steps| steps > 0);
        if self.live && (changed || smoothed || self.goal().is_some()) {
            return Err(Error::usage(
                "--live meshes the volume in the browser, without --topology, --roi, --mask, --clean, --smooth, --simplify, --max-error and the flags that choose parts: leave these out",
            ));
        }
        Ok(())
    }

    /// The preview of `output`, if requested.
    fn picture(&self, output: &Sink, format: MeshFormat, several: bool) -> Result<Option<Preview>> {
        let in_one = format == MeshFormat::Glb && !has_field(output, ISO_FIELD);
        self.preview.job(several, in_one)
    }

    /// Refuses flags and formats that do not go with `--labels`.
    fn check_labels(&self, output: &Sink, format: MeshFormat) -> Result<()> {
        let region = !self.region.is_all();
        let refused = [
            (self.goal().is_some(), "--simplify would tear the borders between labels"),
            (self.normals, "--normals are gradients of the samples, which labels do not have"),
            (
                self.chooses_parts(),
                "--labels keeps all parts of each label: leave out --largest, --min-triangles, --min-volume, \
                 --fill-holes",
            ),
            (region, "--labels meshes whole volumes: leave out --roi and --mask"),
            (!self.color.is_empty(), "--color is for --iso: labels have fixed colours"),
            (self.color_by.is_some(), "--color-by is for --iso: labels have fixed colours"),
            (self.clean, "--clean is for --iso: surfaces of labels have no degenerate triangles"),
            (self.printable, "--printable is for --iso: surfaces of labels are always closed"),
            (
                format == MeshFormat::Precomputed,
                "--labels cannot write precomputed folders: use .ply",
            ),
            (self.live, "--live is for --iso, not for --labels"),
            (self.topology != Topology::Classic, "--topology is for --iso, not for --labels"),
            (
                format == MeshFormat::Html && has_field(output, LABEL_FIELD),
                "a page shows all labels: leave {label} out of the output's name",
            ),
            (
                self.sharding.shard.is_some() && !self.output.has_output_per_input(),
                "--shard cannot divide one volume with --labels",
            ),
        ];
        if let Some((_, why)) = refused.iter().find(|(is_so, _)| *is_so) {
            return Err(Error::usage(why));
        }
        let is_each = has_field(output, LABEL_FIELD);
        let has_parts = matches!(
            format,
            MeshFormat::Ply | MeshFormat::Glb | MeshFormat::Obj | MeshFormat::Html
        );
        match is_each || has_parts {
            true => Ok(()),
            false => Err(Error::usage(format_args!(
                "one {} file holds one surface: put {} into the output's name for one file per label",
                format.extension(),
                LABEL_FIELD
            ))),
        }
    }

    /// Whether flags may leave out connected parts of the surface.
    fn chooses_parts(&self) -> bool {
        self.largest.is_some() || self.min_triangles > 0 || self.min_volume > 0.0 || self.fill_holes
    }

    fn goal(&self) -> Option<Goal> {
        (self.simplify.is_some() || self.max_error.is_some()).then(|| Goal {
            size: self.simplify.unwrap_or_default(),
            max_error: self.max_error,
            measures: self.stats,
        })
    }

    fn format(&self, output: Option<&Sink>) -> Result<MeshFormat> {
        let format = match (self.format, output) {
            (Some(format), _) => format,
            (None, Some(sink)) if !sink.extension().is_empty() => {
                sink.extension().parse().map_err(|error| {
                    Error::usage(format_args!("{sink}: {error}; name the format with --format"))
                })?
            }
            _ => MeshFormat::Ply,
        };
        match self.ascii && !format.has_text_form() {
            true => Err(Error::usage("--ascii is for PLY and STL only")),
            false => Ok(format),
        }
    }
}

/// The default output: the volume's name with the extension of the mesh, in the current folder.
fn default_output(source: &Source, format: MeshFormat) -> Result<Sink> {
    let Some(path) = source.path() else {
        return Err(Error::usage("name an output: standard input has no name to make one from"));
    };
    // A path such as `.` has no file name. Reading it fails later, with a better message.
    let name = Path::new(path.file_name().unwrap_or(path.as_os_str()));
    Ok(Sink::File(with_extension(name.to_owned(), format)))
}

/// Replaces the extension of a volume's name by that of the mesh; `.nii.gz` counts as one extension.
fn with_extension(name: PathBuf, format: MeshFormat) -> PathBuf {
    let is_packed =
        name.extension().is_some_and(|extension| extension == "gz" || extension == "bz2");
    let name = if is_packed { name.with_extension("") } else { name };
    name.with_extension(format.extension())
}

/// The error for `files` if several of them may be the slices of one volume: pictures or DICOM files of one folder.
fn slices_error(files: &[OsString]) -> Option<Error> {
    let is_slice = |file: &&OsString| {
        let source = Source::File(PathBuf::from(file).into());
        has_image_name(&source) || is_dicom(&source)
    };
    let slices: Vec<&OsString> = files.iter().filter(is_slice).collect();
    let folder = Path::new(slices.first()?).parent()?;
    let is_one =
        slices.len() > 1 && slices.iter().all(|file| Path::new(file).parent() == Some(folder));
    let name = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    is_one.then(|| {
        let count = slices.len();
        Error::usage(format_args!(
            "{count} slices of one volume: name their folder, {}",
            name.display()
        ))
    })
}
