//! Where the meshes go: a name an isovalue, opened before the work where that is possible.

use std::path::PathBuf;

use super::{MeshJob, flags::Iso};
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

/// The name with `{iso}` replaced.
pub(super) fn named(sink: &Sink, iso: f64) -> Sink {
    match sink {
        Sink::Stdout => Sink::Stdout,
        Sink::File(path) => {
            Sink::File(path.to_string_lossy().replace("{iso}", &iso.to_string()).into())
        }
    }
}

/// `mesh.ply` as `mesh-2.ply`.
fn numbered(sink: &Sink, number: usize) -> Sink {
    let Sink::File(path) = sink else { return sink.clone() };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map(|e| format!(".{}", e.to_string_lossy()));
    Sink::File(path.with_file_name(format!("{stem}-{number}{}", extension.unwrap_or_default())))
}

/// The folder for temporary parts of a mesh: that of the output, else the system's.
pub(super) fn scratch_folder(sink: &Sink) -> PathBuf {
    let folder = match sink {
        Sink::File(path) => path.parent(),
        Sink::Stdout => None,
    };
    match folder {
        Some(folder) if folder.as_os_str().is_empty() => PathBuf::from("."),
        Some(folder) if !folder.starts_with("/dev") => folder.to_owned(),
        _ => std::env::temp_dir(),
    }
}
