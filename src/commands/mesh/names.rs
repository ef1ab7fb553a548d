//! Names of output files, and the folder for temporary files.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use crate::io::{Sink, temporary_folder};

/// The field in the name of an output that stands for the isovalue.
pub(super) const ISO_FIELD: &str = "{iso}";

/// Whether the name of an output contains a field such as [`ISO_FIELD`].
pub(super) fn has_field(sink: &Sink, field: &str) -> bool {
    sink.to_string().contains(field)
}

/// Replaces a field in the name of an output by its value.
pub(super) fn fill_field(sink: &Sink, field: &str, value: impl ToString) -> Sink {
    match sink {
        Sink::Stdout => Sink::Stdout,
        Sink::File(path) => Sink::File(replaced(path, field, &value.to_string())),
    }
}

/// The path with every `from` replaced by `to`. On Unix, the path need not be UTF-8.
fn replaced(path: &Path, from: &str, to: &str) -> PathBuf {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::{OsStrExt, OsStringExt};
        let (mut name, mut rest) = (Vec::new(), path.as_os_str().as_bytes());
        while let Some(at) = rest.windows(from.len()).position(|part| part == from.as_bytes()) {
            name.extend_from_slice(&rest[..at]);
            name.extend_from_slice(to.as_bytes());
            rest = &rest[at + from.len()..];
        }
        name.extend_from_slice(rest);
        std::ffi::OsString::from_vec(name).into()
    }
    #[cfg(not(unix))]
    path.to_string_lossy().replace(from, to).into()
}

/// Turns `mesh.ply` into `mesh-{iso}.ply`, unless the name contains `{iso}` already.
pub(super) fn add_iso_field(sink: Sink) -> Sink {
    let path = match sink {
        Sink::File(path) if !path.to_string_lossy().contains(ISO_FIELD) => path,
        other => return other,
    };
    let mut name = path.file_stem().unwrap_or(OsStr::new("")).to_owned();
    name.push("-");
    name.push(ISO_FIELD);
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    Sink::File(path.with_file_name(name))
}

/// The folder for temporary parts of a mesh: the folder of the output file, otherwise the system's temporary folder.
pub(super) fn scratch_folder(sink: &Sink) -> PathBuf {
    let folder = match sink {
        Sink::File(path) => path.parent(),
        Sink::Stdout => None,
    };
    match folder {
        Some(folder) if !folder.starts_with("/dev") => {
            // The output may create its folder later.
            let found = folder.ancestors().find(|folder| folder.is_dir());
            found.map_or_else(|| PathBuf::from("."), Path::to_owned)
        }
        _ => temporary_folder(),
    }
}
