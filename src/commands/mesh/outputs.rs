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
pub(super) struct Target {
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

impl Target {
    /// Opens the outputs with known names, so that a wrong name fails before the work, and adds their names to `names`.
    pub(super) fn open_all(
        job: &MeshJob,
        names: &mut Names<'_>,
        session: &Session,
    ) -> Result<Vec<Self>> {
        let open = |isovalues: &[Iso]| {
            let mut target = Self { isovalues: isovalues.to_vec(), opened: None };
            if let Some(sink) = known_name(job, isovalues[0]) {
                names.add(&sink, isovalues)?;
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

/// The names of all meshes and of their pictures, which must differ.
pub(super) struct Names<'a> {
    preview: Option<&'a Preview>,
    taken: Vec<Sink>,
}

impl<'a> Names<'a> {
    /// No names yet.
    pub(super) fn new(job: &'a MeshJob) -> Self {
        Self { preview: job.preview.as_ref(), taken: Vec::new() }
    }

    /// Adds the name of an output and those of its pictures, except pictures whose isovalue is still to be found.
    ///
    /// # Errors
    /// [`Kind::Usage`](crate::util::error::Kind::Usage) for a name that is already taken.
    fn add(&mut self, mesh: &Sink, isovalues: &[Iso]) -> Result<()> {
        self.taken.push(mesh.clone());
        if let Some(preview) = self.preview.filter(|preview| preview.is_together) {
            self.taken.push(preview.sink.clone());
            return Sink::all_differ(&self.taken);
        }
        for iso in isovalues {
            if let (Some(preview), Iso::Value(iso)) = (self.preview, iso) {
                self.taken.push(preview.name(*iso));
            }
        }
        Sink::all_differ(&self.taken)
    }
}
