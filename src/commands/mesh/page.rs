//! A page that shows the surfaces of a volume.

use serde_json::json;

use super::{input::VolumeInput, job::MeshJob, placing::Placed};
use crate::{
    error::{Error, Result},
    io::{
        Output, Sink,
        page::viewer::{Shown, Viewer},
    },
    session::Session,
};

/// Meshes the volume at `isovalues`, and writes a page of all surfaces; `about` describes the volume.
pub(super) fn write(
    job: &MeshJob,
    (input, placed, about): (&VolumeInput, &Placed, &str),
    isovalues: &[f64],
    sink: &Sink,
    mut output: Output,
    session: &Session,
) -> Result<()> {
    let mut viewer = Viewer {
        title: job.volume.to_string(),
        subtitle: about.to_owned(),
        view: job.view,
        unit: placed.unit.clone(),
        space: placed.space.map(|space| space.name().to_owned()),
        surfaces: Vec::new(),
    };
    if let Some(name) = job.volume.path().and_then(|path| path.file_name()) {
        viewer.title = name.to_string_lossy().into_owned();
    }
    for &iso in isovalues {
        let (surface, mut summary) = job.surface((input, placed), iso, session)?;
        summary.find_range(input)?;
        let facts =
            json!({ "iso": iso, "label": format!("Isovalue {iso}"), "stats": summary.stats });
        let shown = session.timings.time("pack", || Shown::new(&iso.to_string(), &surface, facts));
        summary.report(iso, sink, session);
        viewer.surfaces.push(shown);
    }
    session.timings.time("write", || {
        viewer.write(&mut output).map_err(|error| Error::io("write", sink.to_string(), error))?;
        output.commit()
    })
}
