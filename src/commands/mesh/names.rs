//! Names of outputs.

use std::path::PathBuf;

use crate::io::Sink;

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
pub(super) fn numbered(sink: &Sink, number: usize) -> Sink {
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
