//! Where the meshes go: a name an isovalue, opened before the work where that is possible.

use super::{
    job::{Iso, MeshJob},
    names::{named, numbered},
};
use crate::{
    error::Result,
    io::{Output, Sink},
    session::Session,
};

/// A mesh to be written.
pub(super) struct Target {
    pub(super) iso: Iso,
    sink: Sink,
    /// Missing where the name holds an isovalue that is still to be found.
    output: Option<Output>,
}

impl Target {
    /// One an isovalue. Wrong names fail here, before the work.
    pub(super) fn open_all(job: &MeshJob, session: &Session) -> Result<Vec<Self>> {
        let several = job.isovalues.len() > 1;
        let has_place = job.output.to_string().contains("{iso}");
        let open = |(i, &iso)| {
            let sink = match several && !has_place {
                true => numbered(&job.output, i + 1),
                false => job.output.clone(),
            };
            let sink = match iso {
                Iso::Value(value) => named(&sink, value),
                Iso::Auto if has_place => return Ok(Self { iso, sink, output: None }),
                Iso::Auto => sink,
            };
            let output = Some(sink.create(session.no_clobber)?);
            Ok(Self { iso, sink, output })
        };
        job.isovalues.iter().enumerate().map(open).collect()
    }

    /// The output, now that the isovalue is known.
    pub(super) fn open(self, iso: f64, session: &Session) -> Result<(Sink, Output)> {
        let Self { sink, output, .. } = self;
        if let Some(output) = output {
            return Ok((sink, output));
        }
        let sink = named(&sink, iso);
        let output = sink.create(session.no_clobber)?;
        Ok((sink, output))
    }
}
