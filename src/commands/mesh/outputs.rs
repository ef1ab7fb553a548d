//! The outputs of a job: one for each isovalue or one for all. Outputs with known names are opened before the work.

use super::{
    job::{Iso, MeshJob},
    label_list::LABEL_FIELD,
    names::{ISO_FIELD, fill_field, has_field},
    preview::Preview,
};
use crate::{
    engine::session::Session,
    io::{
        Output, Sink,
        file_roles::{FileRoles, OUTPUT},
        mesh::{MeshFolder, MeshFormat},
    },
    util::error::Result,
};

/// The names of the outputs of a job; `None` if a name contains an isovalue or a label that is still to be found.
pub(super) fn known_names(job: &MeshJob) -> Option<Vec<Sink>> {
    if job.labels.is_some() {
        return (!has_field(&job.output, LABEL_FIELD)).then(|| vec![job.output.clone()]);
    }
    isovalues_by_output(job).map(|isovalues| known_name(job, isovalues[0])).collect()
}

/// The names of the pictures of a job; `None` if a name contains an isovalue that is still to be found.
pub(super) fn known_pictures(job: &MeshJob) -> Option<Vec<Sink>> {
    let Some(preview) = &job.preview else { return Some(Vec::new()) };
    if preview.is_together || job.labels.is_some() {
        return Some(vec![preview.sink.clone()]);
    }
    let name = |iso: &Iso| match *iso {
        Iso::Value(iso) => Some(preview.name(iso)),
        Iso::Auto(_) => (!has_field(&preview.sink, ISO_FIELD)).then(|| preview.sink.clone()),
    };
    job.isovalues.iter().map(name).collect()
}

/// The name of the output whose first isovalue is `iso`; `None` if it contains an isovalue that is still to be found.
fn known_name(job: &MeshJob, iso: Iso) -> Option<Sink> {
    match iso {
        Iso::Value(value) => Some(fill_field(&job.output, ISO_FIELD, value)),
        Iso::Auto(_) => (!has_field(&job.output, ISO_FIELD)).then(|| job.output.clone()),
    }
}

fn isovalues_by_output(job: &MeshJob) -> impl Iterator<Item = &[Iso]> {
    let is_one = job.is_together() && !has_field(&job.output, ISO_FIELD);
    job.isovalues.chunks(if is_one { job.isovalues.len() } else { 1 })
}

/// An output that is to be written: a mesh, or a page or GLB with several.
pub(super) struct PlannedMesh {
    /// The isovalues of the output: one, or all those of a page or a GLB.
    pub(super) isovalues: Vec<Iso>,
    /// `None` if the name contains an isovalue that is still to be found.
    opened: Option<(Sink, Opened)>,
}

/// An open output of a mesh, with its folder if the format is a folder.
pub(super) type Opened = (Output, Option<MeshFolder>);

fn create(sink: &Sink, format: MeshFormat, session: &Session) -> Result<Opened> {
    if format == MeshFormat::Precomputed {
        let (folder, output) = MeshFolder::create(sink, session.no_clobber)?;
        return Ok((output, Some(folder)));
    }
    Ok((sink.create(session.no_clobber)?, None))
}

impl PlannedMesh {
    /// Opens the outputs with known names, so that a wrong name fails before the work.
    pub(super) fn open_all(job: &MeshJob, session: &Session) -> Result<Vec<Self>> {
        let open = |isovalues: &[Iso]| {
            let mut target = Self { isovalues: isovalues.to_vec(), opened: None };
            if let Some(sink) = known_name(job, isovalues[0]) {
                let output = create(&sink, job.format, session)?;
                target.opened = Some((sink, output));
            }
            Ok(target)
        };
        isovalues_by_output(job).map(open).collect()
    }

    /// Opens the output of `job` for the isovalue `iso`, unless it is open.
    pub(super) fn open(
        self,
        iso: f64,
        job: &MeshJob,
        names: &mut Names<'_>,
        session: &Session,
    ) -> Result<(Sink, Opened)> {
        if let Some(opened) = self.opened {
            return Ok(opened);
        }
        let sink = fill_field(&job.output, ISO_FIELD, iso);
        names.add(&sink, &[Iso::Value(iso)])?;
        let output = create(&sink, job.format, session)?;
        Ok((sink, output))
    }
}

/// The names of all meshes and of their pictures, which must differ from each other and from all inputs.
pub(super) struct Names<'a> {
    preview: Option<&'a Preview>,
    roles: FileRoles,
}

impl<'a> Names<'a> {
    /// The names that are known from the start.
    pub(super) fn new(job: &'a MeshJob, session: &Session) -> Result<Self> {
        let mut roles = session.file_roles();
        job.declare_inputs(&mut roles)?;
        declare_outputs(job, &mut roles)?;
        Ok(Self { preview: job.preview.as_ref(), roles })
    }

    /// Adds the name of an output whose isovalue has been found, and the name of its picture.
    fn add(&mut self, mesh: &Sink, isovalues: &[Iso]) -> Result<()> {
        declare(mesh, isovalues, self.preview, &mut self.roles)
    }
}

/// Adds the known names of outputs to the files of a run, and those of their pictures.
pub(super) fn declare_outputs(job: &MeshJob, roles: &mut FileRoles) -> Result<()> {
    if job.labels.is_some() {
        let (names, picture) = (known_names(job).unwrap_or_default(), job.preview.as_ref());
        let all = names.iter().map(|name| (OUTPUT, name));
        let mut all = all.chain(picture.map(|preview| (PREVIEW, &preview.sink)));
        return all.try_for_each(|(role, sink)| roles.writes(role, sink));
    }
    for isovalues in isovalues_by_output(job) {
        if let Some(sink) = known_name(job, isovalues[0]) {
            declare(&sink, isovalues, job.preview.as_ref(), roles)?;
        }
    }
    Ok(())
}

/// The role of pictures.
const PREVIEW: &str = "--preview";

/// Adds the output `mesh` and its pictures to `roles`, except pictures whose isovalue is still to be found.
fn declare(
    mesh: &Sink,
    isovalues: &[Iso],
    preview: Option<&Preview>,
    roles: &mut FileRoles,
) -> Result<()> {
    roles.writes(OUTPUT, mesh)?;
    match preview {
        None => Ok(()),
        Some(preview) if preview.is_together => roles.writes(PREVIEW, &preview.sink),
        Some(preview) => isovalues.iter().try_for_each(|iso| match iso {
            Iso::Value(iso) => roles.writes(PREVIEW, &preview.name(*iso)),
            Iso::Auto(_) => Ok(()),
        }),
    }
}
