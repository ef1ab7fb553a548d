//! The outputs of a job: one for each isovalue or one for all, opened before the work where their names are known.

use super::{
    job::{Iso, MeshJob},
    label_list::PLACE,
    names::named,
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

/// The outputs of a job; `None` where a name contains an isovalue that is still to be found.
pub(super) fn known(job: &MeshJob) -> Option<Vec<Sink>> {
    if job.labels.is_some() {
        let is_known = !job.output.to_string().contains(PLACE);
        return is_known.then(|| vec![job.output.clone()]);
    }
    let has_place = job.output.to_string().contains("{iso}");
    let name = |&iso| match iso {
        Iso::Found(_) if has_place => None,
        Iso::Found(_) => Some(job.output.clone()),
        Iso::Value(value) => Some(named(&job.output, value)),
    };
    if job.is_together() && !has_place {
        return Some(vec![job.output.clone()]);
    }
    job.isovalues.iter().map(name).collect()
}

/// An output that is to be written: a mesh, or a page or GLB with several.
pub(super) struct Target {
    /// The isovalues of the output: one, or all those of a page or a GLB.
    pub(super) isovalues: Vec<Iso>,
    sink: Sink,
    /// `None` where the name contains an isovalue that is still to be found.
    output: Option<Opened>,
}

/// An open output of a mesh, with its folder where the format is a folder.
pub(super) type Opened = (Output, Option<MeshFolder>);

fn create(sink: &Sink, format: MeshFormat, session: &Session) -> Result<Opened> {
    if format == MeshFormat::Precomputed {
        let (folder, output) = MeshFolder::create(sink, session.no_clobber)?;
        return Ok((output, Some(folder)));
    }
    Ok((sink.create(session.no_clobber)?, None))
}

impl Target {
    /// Opens the outputs whose names are known, so that a wrong name fails before the work, and adds these names to
    /// `names`.
    pub(super) fn open_all(
        job: &MeshJob,
        names: &mut Names<'_>,
        session: &Session,
    ) -> Result<Vec<Self>> {
        let has_place = job.output.to_string().contains("{iso}");
        let open = |isovalues: &[Iso]| {
            let (sink, isovalues) = (job.output.clone(), isovalues.to_vec());
            let sink = match isovalues[0] {
                Iso::Value(value) => named(&sink, value),
                Iso::Found(_) if has_place => return Ok(Self { isovalues, sink, output: None }),
                Iso::Found(_) => sink,
            };
            names.add(&sink, &isovalues)?;
            let output = Some(create(&sink, job.format, session)?);
            Ok(Self { isovalues, sink, output })
        };
        let each = match job.is_together() && !has_place {
            true => job.isovalues.len(),
            false => 1,
        };
        job.isovalues.chunks(each).map(open).collect()
    }

    /// Opens the output once its isovalue is known, unless it is open already.
    pub(super) fn open(
        self,
        iso: f64,
        format: MeshFormat,
        names: &mut Names<'_>,
        session: &Session,
    ) -> Result<(Sink, Opened)> {
        let Self { sink, output, .. } = self;
        if let Some(output) = output {
            return Ok((sink, output));
        }
        let sink = named(&sink, iso);
        names.add(&sink, &[Iso::Value(iso)])?;
        let output = create(&sink, format, session)?;
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
