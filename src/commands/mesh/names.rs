//! Names of output files, and the folder for temporary files.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use crate::io::{Sink, temporary_folder};

/// The name with `{iso}` replaced by the isovalue.
pub(super) fn named(sink: &Sink, iso: f64) -> Sink {
    match sink {
        Sink::Stdout => Sink::Stdout,
        Sink::File(path) => Sink::File(replaced(path, "{iso}", &iso.to_string())),
    }
}

/// The name with the field `place` replaced by a label.
pub(super) fn labelled(sink: &Sink, place: &str, label: u64) -> Sink {
    match sink {
        Sink::Stdout => Sink::Stdout,
        Sink::File(path) => Sink::File(replaced(path, place, &label.to_string())),
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
pub(super) fn with_isovalue(sink: Sink) -> Sink {
    let path = match sink {
        Sink::File(path) if !path.to_string_lossy().contains("{iso}") => path,
        other => return other,
    };
    let mut name = path.file_stem().unwrap_or(OsStr::new("")).to_owned();
    name.push("-{iso}");
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    Sink::File(path.with_file_name(name))
}

/// The folder for temporary parts of a mesh: that of the output file, else the system's temporary folder.
pub(super) fn scratch_folder(sink: &Sink) -> PathBuf {
    let folder = match sink {
        Sink::File(path) => path.parent(),
        Sink::Stdout => None,
    };
    match folder {
        Some(folder) if folder.as_os_str().is_empty() => PathBuf::from("."),
        Some(folder) if !folder.starts_with("/dev") => folder.to_owned(),
        _ => temporary_folder(),
    }
}
