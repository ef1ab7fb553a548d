//! Where the meshes go: a name an isovalue, opened before the work where that is possible.

use super::{
    job::{Iso, MeshJob},
    labels,
    names::named,
    preview::Preview,
};
use crate::{
    error::Result,
    io::{
        Output, Sink,
        mesh::{MeshFolder, MeshFormat},
    },
    session::Session,
};

/// The outputs of a job; nothing where a name holds an isovalue that is still to be found.
pub(super) fn known(job: &MeshJob) -> Option<Vec<Sink>> {
    if job.labels.is_some() {
        let is_known = !job.output.to_string().contains(labels::PLACE);
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

/// A mesh, or a page or file of meshes, to be written.
pub(super) struct Target {
    /// One, or those of a page or of a GLB.
    pub(super) isovalues: Vec<Iso>,
    sink: Sink,
    /// Missing where the name holds an isovalue that is still to be found.
    output: Option<Opened>,
}

/// An output of a mesh, and the folder around it where its format is one.
pub(super) type Opened = (Output, Option<MeshFolder>);

fn create(sink: &Sink, format: MeshFormat, session: &Session) -> Result<Opened> {
    if format == MeshFormat::Precomputed {
        let (folder, output) = MeshFolder::create(sink, session.no_clobber)?;
        return Ok((output, Some(folder)));
    }
    Ok((sink.create(session.no_clobber)?, None))
}

impl Target {
    /// One an isovalue. Wrong names fail here, before the work, and `names` takes those that are known.
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

    /// The output, now that the isovalue is known.
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

/// The names of all meshes and their pictures, which must differ.
pub(super) struct Names<'a> {
    preview: Option<&'a Preview>,
    taken: Vec<Sink>,
}

impl<'a> Names<'a> {
    /// None yet.
    pub(super) fn new(job: &'a MeshJob) -> Self {
        Self { preview: job.preview.as_ref(), taken: Vec::new() }
    }

    /// Adds a mesh or a page, and its pictures unless their isovalue is still to be found.
    ///
    /// # Errors
    /// [`Kind::Usage`](crate::error::Kind::Usage) for a name that is taken.
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
